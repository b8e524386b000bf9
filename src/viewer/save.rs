//! Files that are there as a whole or not at all.

use super::Error;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Writes beside `path` and renames; what is no regular file, such as `/dev/null`, is written directly.
pub(super) fn save(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let write = || {
        let special = fs::metadata(path).is_ok_and(|target| !target.is_file());
        if special {
            return fs::write(path, bytes);
        }
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let mut file = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
        file.write_all(bytes)?;
        // A temporary file is for its owner alone; the result is like any file.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            file.as_file()
                .set_permissions(fs::Permissions::from_mode(0o644))?;
        }
        file.persist(path).map(drop).map_err(|error| error.error)
    };
    write().map_err(|source| Error::Save {
        path: path.into(),
        source,
    })
}

/// A picture of red, green, blue and opacity by bytes.
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
    encoded.map_err(|error| Error::Save {
        path: path.into(),
        source: io::Error::other(error),
    })?;
    save(path, &bytes)
}

/// The first of `radsweep-SCENE-1.EXT`, `-2`, … in the current folder that is not there yet.
pub(super) fn free_name(scene: &str, extension: &str) -> PathBuf {
    let name = |number| PathBuf::from(format!("radsweep-{scene}-{number}.{extension}"));
    let mut numbered = (1_u32..).map(name);
    numbered.find(|path| !path.exists()).unwrap_or(name(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_comes_back_as_it_was() {
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
    fn a_folder_that_is_not_there_is_named() {
        let error = save(Path::new("/nowhere/at/all.csv"), b"").expect_err("no folder");
        assert!(error.to_string().contains("/nowhere/at/all.csv"), "{error}");
        save(Path::new("/dev/null"), b"x").expect("takes all");
        assert!(!fs::metadata("/dev/null").expect("still there").is_file());
    }
}
