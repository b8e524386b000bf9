//! Pictures of the viewer without a window: each scene against a golden image, through whatever Vulkan driver there is, and what
//! the program says where there is none, or no display.
//!
//! `RADSWEEP_BLESS=1` writes the golden images anew (look at them!); `RADSWEEP_VIEWER=required` makes a missing driver a failure.

use libtest_mimic::{Arguments, Failed, Trial};
use radsweep::scenes::Kind;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

type Result<T = ()> = std::result::Result<T, Failed>;

/// Width and height of what is drawn; golden images are kept at half of it.
const SIZE: [usize; 2] = [480, 300];
/// Side of the squares whose means are compared: drivers differ in single pixels along edges, not in squares.
const SQUARE: usize = 5;
/// How far apart means of squares may be, of 255: on average, and the worst. Chairs that a change of the solver let fall a little
/// otherwise differed by 0.5 and 31. Not measured over several drivers.
const MEAN: f64 = 0.6;
const WORST: f64 = 24.0;

/// Bodies and frames of a scene's golden image: enough to know it by, and quick in a debug build.
fn scale(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::FallingChairs => ("40", "70"),
        Kind::Particles => ("4000", "30"),
        _ => ("2000", "5"),
    }
}

fn main() {
    let arguments = Arguments::from_args();
    let missing = missing();
    let required = std::env::var("RADSWEEP_VIEWER").is_ok_and(|value| value == "required");
    if let (Some(reason), true) = (&missing, required) {
        panic!("the viewer's tests are required here: {reason}");
    }
    if let Some(reason) = &missing {
        eprintln!("SKIPPED: the viewer's pictures: {reason}");
    }
    let goldens = Kind::ALL
        .iter()
        .map(|&kind| Trial::test(format!("golden::{kind}"), move || golden(kind)));
    let others = [
        Trial::test("panels_are_drawn_over_the_scene", panels),
        Trial::test("a_picked_body_and_boxes_are_seen", picked),
        Trial::test("numbered_pictures_show_the_frames_on_the_way", numbered),
        Trial::test("bad_sizes_and_folders_are_refused", refused),
    ];
    let drawn = goldens.chain(others);
    let drawn = drawn.map(|trial| trial.with_ignored_flag(missing.is_some()));
    let mut trials: Vec<Trial> = drawn.collect();
    trials.push(Trial::test(
        "no_display_is_said_and_the_scene_runs",
        no_display,
    ));
    trials.push(Trial::test(
        "no_driver_is_one_line_that_says_what_to_install",
        no_driver,
    ));
    libtest_mimic::run(&arguments, trials).exit();
}

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_radsweep"));
    // The pairs, so the pictures, are the same on every backend; the report in the panels is not.
    command.env("RADSWEEP_BACKEND", "cpu");
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    command
}

fn error_of(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    // A driver may have something to say by itself, such as Wayland's library that XDG_RUNTIME_DIR is not set.
    let ours = |line: &&str| line.starts_with("error: ") && !line.contains("XDG_RUNTIME_DIR");
    stderr.lines().filter(ours).collect::<Vec<_>>().join("\n")
}

/// Why nothing draws here, if so.
fn missing() -> Option<String> {
    let folder = TempDir::new().expect("a temporary folder");
    let output = take(
        &folder.path().join("probe.png"),
        Kind::Uniform,
        &["--size", "8x8"],
    );
    let error = error_of(&output);
    error.contains("no graphics driver").then_some(error)
}

fn take(path: &Path, kind: Kind, more: &[&str]) -> Output {
    let (bodies, frames) = scale(kind);
    let mut command = program();
    command.args(["view", kind.name(), "--bodies", bodies, "--frames", frames]);
    command.arg("--screenshot").arg(path).args(more);
    command.output().expect("the program starts")
}

struct Image {
    size: [usize; 2],
    /// Three bytes a pixel.
    pixels: Vec<u8>,
}

impl Image {
    fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut reader = png::Decoder::new(BufReader::new(file)).read_info()?;
        let mut pixels = vec![0; reader.output_buffer_size().ok_or("too large")?];
        let info = reader.next_frame(&mut pixels)?;
        if info.color_type != png::ColorType::Rgb {
            return Err(format!("{:?}, not RGB", info.color_type).into());
        }
        let size = [info.width as usize, info.height as usize];
        Ok(Self { size, pixels })
    }

    /// A picture of this scene.
    fn take(kind: Kind, more: &[&str]) -> Result<Self> {
        let folder = TempDir::new()?;
        let path = folder.path().join("picture.png");
        let size = ["--size", "480x300"];
        let size = if more.contains(&"--size") {
            &[]
        } else {
            &size[..]
        };
        let output = take(&path, kind, &[size, more].concat());
        if !output.status.success() {
            return Err(error_of(&output).into());
        }
        Self::read(&path)
    }

    fn write(&self, path: &Path) -> Result {
        let [width, height] = self.size.map(|side| side as u32);
        let mut encoder = png::Encoder::new(File::create(path)?, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_compression(png::Compression::High);
        encoder.write_header()?.write_image_data(&self.pixels)?;
        Ok(())
    }

    /// As many times smaller.
    fn reduced(&self, times: usize) -> Self {
        let means = self.squares(times);
        let round = |mean: f64| mean.round() as u8;
        Self {
            size: self.size.map(|side| side / times),
            pixels: means.into_iter().flat_map(|mean| mean.map(round)).collect(),
        }
    }

    /// Means of the channels of each square of this side, row after row.
    fn squares(&self, side: usize) -> Vec<[f64; 3]> {
        let [width, height] = self.size;
        let square = |x: usize, y: usize| {
            let mut sum = [0.0; 3];
            for row in y..y + side {
                let first = 3 * (row * width + x);
                for pixel in self.pixels[first..first + 3 * side].as_chunks::<3>().0 {
                    sum = std::array::from_fn(|channel| sum[channel] + f64::from(pixel[channel]));
                }
            }
            sum.map(|sum| sum / (side * side) as f64)
        };
        let rows = (0..height).step_by(side);
        rows.flat_map(|y| (0..width).step_by(side).map(move |x| square(x, y)))
            .collect()
    }

    /// How far apart two are: the mean of the differences of squares, and the greatest.
    fn difference(&self, other: &Self) -> (f64, f64) {
        assert_eq!(self.size, other.size);
        let squares = self.squares(SQUARE).into_iter();
        let squares = squares.zip(other.squares(SQUARE));
        let differences = squares.map(|(a, b)| {
            let channels = a.iter().zip(&b).map(|(a, b)| (a - b).abs());
            channels.fold(0.0, f64::max)
        });
        let differences: Vec<f64> = differences.collect();
        let mean = differences.iter().sum::<f64>() / differences.len() as f64;
        (mean, differences.into_iter().fold(0.0, f64::max))
    }
}

fn golden(kind: Kind) -> Result {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/viewer/golden");
    let expected = folder.join(format!("{kind}.png"));
    let taken = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{kind}.png"));
    let output = take(&taken, kind, &["--no-overlay", "--size", "480x300"]);
    if !output.status.success() {
        return Err(error_of(&output).into());
    }
    let found = Image::read(&taken)?;
    if found.size != SIZE {
        return Err(format!("{:?} pixels", found.size).into());
    }
    let found = found.reduced(2);
    if std::env::var_os("RADSWEEP_BLESS").is_some_and(|value| value == "1") {
        found.write(&expected)?;
    }
    let expected = Image::read(&expected)?;
    let (mean, worst) = found.difference(&expected);
    if mean > MEAN || worst > WORST {
        let what = format!("differs by {mean:.2}, at most {worst:.1}");
        return Err(format!("{what}, see {}", taken.display()).into());
    }
    // A picture of nothing is no picture: neighbouring squares differ in many places.
    let squares = found.squares(SQUARE);
    let neighbours = squares.iter().zip(&squares[1..]);
    let edges = neighbours.filter(|(a, b)| a.iter().zip(*b).any(|(a, b)| (a - b).abs() > 8.0));
    let edges = edges.count();
    if edges < 60 {
        return Err(format!("only {edges} squares differ from their neighbours").into());
    }
    Ok(())
}

fn check(condition: bool, what: impl std::fmt::Debug) -> Result {
    if condition {
        Ok(())
    } else {
        Err(format!("{what:?}").into())
    }
}

fn panels() -> Result {
    let size = ["--size", "1000x640"];
    let plain = Image::take(Kind::Stack, &[&size[..], &["--no-overlay"]].concat());
    let (plain, with) = (plain?, Image::take(Kind::Stack, &size)?);
    let (mean, worst) = plain.difference(&with);
    check(mean > 20.0 && worst > 100.0, (mean, worst))?;
    // Text and bars: in the panel on the right there are both dark and light pixels.
    let right = |y: usize, x: usize| with.pixels[3 * (y * 1000 + x)];
    let panel = (10..500).flat_map(|y| (690..990).map(move |x| (y, x)));
    let values: Vec<u8> = panel.map(|(y, x)| right(y, x)).collect();
    let light = values.iter().filter(|&&value| value > 160).count();
    let dark = values.iter().filter(|&&value| value < 60).count();
    check(light > 500 && dark > 50_000, (light, dark))
}

fn picked() -> Result {
    let plain = Image::take(Kind::Stack, &["--no-overlay"])?;
    for more in [
        ["--body", "700"].as_slice(),
        &["--boxes"],
        &["--colour", "overlaps"],
    ] {
        let other = Image::take(Kind::Stack, &[&["--no-overlay"], more].concat())?;
        let (mean, worst) = plain.difference(&other);
        check(mean > 0.2 && worst > 10.0, (more, mean, worst))?;
    }
    Ok(())
}

fn numbered() -> Result {
    let folder = TempDir::new()?;
    let path = folder.path().join("f.png");
    let size = ["--size", "480x300", "--no-overlay", "--every", "30"];
    let output = take(&path, Kind::FallingChairs, &size);
    check(output.status.success(), error_of(&output))?;
    let read = |name: &str| Image::read(&folder.path().join(name));
    let (first, second, last) = (read("f-0030.png")?, read("f-0060.png")?, read("f.png")?);
    check(first.difference(&second).0 > 0.5, "the chairs fell")?;
    check(second.difference(&last).0 > 0.05, "and fell on")?;
    check(
        std::fs::read_dir(folder.path())?.count() == 3,
        "no other file",
    )
}

fn refused() -> Result {
    let folder = TempDir::new()?;
    let path = folder.path().join("f.png");
    for (size, part) in [("0x5", "0x5"), ("100000x5", "100000x5"), ("5", "`5`")] {
        let output = take(&path, Kind::Uniform, &["--size", size]);
        let error = error_of(&output);
        check(!output.status.success() && error.contains(part), error)?;
    }
    let output = take(&folder.path().join("no/f.png"), Kind::Uniform, &[]);
    let error = error_of(&output);
    check(
        !output.status.success() && error.contains("no/f.png"),
        error,
    )?;
    let none = ["--bodies", "0"];
    let mut command = program();
    command
        .args(["view", "uniform"])
        .args(none)
        .arg("--screenshot")
        .arg(&path);
    let output = command.output()?;
    let error = error_of(&output);
    check(
        !output.status.success() && error.contains("0 bodies"),
        error,
    )?;
    check(!path.exists(), "nothing was written")
}

fn no_display() -> Result {
    let mut command = program();
    command.args(["view", "uniform", "--bodies", "300", "--frames", "2"]);
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let note = String::from_utf8_lossy(&output.stderr);
    check(output.status.success(), &note)?;
    check(note.contains("note: no display answers"), &note)?;
    check(
        text.contains("pairs a frame") && text.contains("sweep"),
        text,
    )
}

fn no_driver() -> Result {
    let folder = TempDir::new()?;
    let path = folder.path().join("f.png");
    let mut command = program();
    for variable in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"] {
        command.env(variable, "/dev/null");
    }
    command.args(["view", "uniform", "--bodies", "9", "--frames", "1"]);
    let output = command.arg("--screenshot").arg(&path).output()?;
    if cfg!(not(target_os = "linux")) {
        return Ok(()); // these variables are Vulkan's alone
    }
    let error = error_of(&output);
    check(output.status.code() == Some(1), &error)?;
    check(
        error.contains("mesa-vulkan-drivers") && error.lines().count() == 1,
        &error,
    )?;
    check(!path.exists(), "nothing was written")
}
