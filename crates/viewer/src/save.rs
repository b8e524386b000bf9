//! Writes files completely or not at all.

use super::error::Error;
use radsweep_common::output;
use std::io;
use std::path::{Path, PathBuf};

/// Writes a file.
pub(super) fn save(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    output::write(path, bytes).map_err(|source| refused(path, source))
}

/// Checks before the work that a path can be written.
pub(super) fn check(path: &Path) -> Result<(), Error> {
    output::check(path).map_err(|source| refused(path, source))
}

fn refused(path: &Path, source: io::Error) -> Error {
    let path = output::name(path, "stdout").into();
    Error::Save { path, source }
}

/// Writes a picture, given red, green, blue and opacity as bytes.
pub(super) fn save_png(path: &Path, size: [u32; 2], pixels: &[u8]) -> Result<(), Error> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, size[0], size[1]);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
    let colours = pixels
        .as_chunks::<4>()
        .0
        .iter()
        .flat_map(|&[r, g, b, _]| [r, g, b]);
    let colours: Vec<u8> = colours.collect();
    let encoded = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(&colours)?;
        writer.finish()
    });
    encoded.map_err(|error| refused(path, io::Error::other(error)))?;
    save(path, &bytes)
}

/// Returns the first name of `radsweep-SCENE-1.EXT`, `-2`, … that does not exist in the current
/// folder.
pub(super) fn free_name(scene: &str, extension: &str) -> PathBuf {
    let name = |number| PathBuf::from(format!("radsweep-{scene}-{number}.{extension}"));
    let mut numbered = (1_u32..).map(name);
    numbered.find(|path| !path.exists()).unwrap_or(name(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_saved_picture_reads_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("two.png");
        let pixels = [[1, 2, 3, 255], [200, 100, 50, 255]].concat();
        for _ in 0..2 {
            save_png(&path, [2, 1], &pixels).expect("written, then replaced");
        }
        let file = io::BufReader::new(fs::File::open(&path).expect("there"));
        let mut reader = png::Decoder::new(file).read_info().expect("a picture");
        let mut read = [0; 6];
        let info = reader.next_frame(&mut read).expect("its pixels");
        assert_eq!((info.width, info.height), (2, 1));
        assert_eq!(read, [1, 2, 3, 200, 100, 50]);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn an_error_names_a_missing_folder_as_given() {
        let error = save(Path::new("/nowhere/at/all.csv"), b"").expect_err("no folder");
        let text = error.to_string();
        assert!(
            text.starts_with("cannot write /nowhere/at/all.csv: "),
            "{text}"
        );
        assert_eq!(text.matches('/').count(), 3, "{text}"); // and no other path
        save(Path::new("/dev/null"), b"x").expect("takes all");
        assert!(!fs::metadata("/dev/null").expect("still there").is_file());
    }
}
