//! Compares a screenshot of each scene with a golden image, with any Vulkan driver.
//!
//! `RADSWEEP_BLESS=1` replaces the golden images: look at them. `RADSWEEP_VIEWER=required` makes a
//! missing driver a failure.

mod image;

use image::{Image, Result, SQUARE, check, scale};
use libtest_mimic::Trial;
use radsweep::{Backend, Config};
use radsweep_scenes::{Kind, Options};
use radsweep_viewer::{Error, Screenshot, Settings, screenshot};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Width and height of the screenshots; golden images have half of it.
const SIZE: [u32; 2] = [480, 300];
/// Max differences of the means of squares, of 255: on average, and of any square. After a small
/// change of the solver, chairs differed by 0.5 and 31. Other drivers were not measured.
const MEAN: f64 = 0.6;
const WORST: f64 = 24.0;

fn main() {
    let goldens = Kind::ALL
        .iter()
        .map(|&kind| Trial::test(format!("golden::{kind}"), move || golden(kind)));
    let panels = Trial::test("panels_are_drawn_over_the_scene", panels);
    image::run(missing(), goldens.chain([panels]).collect(), Vec::new());
}

/// Returns why nothing can be drawn here, if so.
fn missing() -> Option<String> {
    let folder = TempDir::new().expect("a temporary folder");
    match take(
        &folder.path().join("probe.png"),
        Kind::Uniform,
        [8, 8],
        false,
    ) {
        Err(error @ Error::NoAdapter) => Some(error.to_string()),
        _ => None,
    }
}

/// Takes a picture of the last frame of a scene.
fn take(path: &Path, kind: Kind, size: [u32; 2], overlay: bool) -> std::result::Result<(), Error> {
    let (bodies, frames) = scale(kind);
    let wanted = Screenshot {
        settings: Settings {
            kind,
            options: Options {
                bodies: Some(bodies),
                ..Options::default()
            },
            // Every backend finds the same pairs, so the pictures are the same, but the report in
            // the panels is not.
            config: Config {
                backend: Backend::Cpu,
                ..Config::default()
            },
        },
        path: path.into(),
        frames,
        every: None,
        size,
        overlay,
        colour: None,
        wireframes: false,
        cells: false,
        body: None,
    };
    screenshot(&wanted, || {})
}

fn golden(kind: Kind) -> Result {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pictures/golden");
    let expected = folder.join(format!("{kind}.png"));
    let taken = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{kind}.png"));
    take(&taken, kind, SIZE, false)?;
    let found = Image::read(&taken)?;
    if found.size != SIZE.map(|side| side as usize) {
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
    // The picture must not be empty: neighbouring squares differ in many places.
    let squares = found.squares(SQUARE);
    let neighbours = squares.iter().zip(&squares[1..]);
    let edges = neighbours.filter(|(a, b)| a.iter().zip(*b).any(|(a, b)| (a - b).abs() > 8.0));
    let edges = edges.count();
    if edges < 60 {
        return Err(format!("only {edges} squares differ from their neighbours").into());
    }
    Ok(())
}

fn panels() -> Result {
    let folder = TempDir::new()?;
    let path = folder.path().join("picture.png");
    let draw = |overlay| {
        take(&path, Kind::Stack, [1000, 640], overlay)?;
        Image::read(&path)
    };
    let (plain, with) = (draw(false)?, draw(true)?);
    let (mean, worst) = plain.difference(&with);
    check(mean > 20.0 && worst > 100.0, (mean, worst))?;
    // The panel on the right has both dark and light pixels, from its text and bars.
    let right = |y: usize, x: usize| with.pixels[3 * (y * 1000 + x)];
    let panel = (10..500).flat_map(|y| (690..990).map(move |x| (y, x)));
    let values: Vec<u8> = panel.map(|(y, x)| right(y, x)).collect();
    let light = values.iter().filter(|&&value| value > 160).count();
    let dark = values.iter().filter(|&&value| value < 60).count();
    check(light > 500 && dark > 50_000, (light, dark))
}
