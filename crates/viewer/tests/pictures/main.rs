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
    let others = [
        Trial::test("panels_are_drawn_over_the_scene", panels),
        Trial::test("bodies_cast_shadows_if_asked_to", shadows),
    ];
    let (live, ignored) = live_trials();
    let drawn = goldens.chain(others).chain(live).collect();
    image::run(missing(), drawn, ignored);
}

/// Returns the trials of scenes that live on the device that draws: those to run, and those to
/// ignore where the pairs cannot be found there. A driver of OpenGL only draws.
#[cfg(feature = "wgpu")]
fn live_trials() -> (Vec<Trial>, Vec<Trial>) {
    let of = |kind| {
        let trial =
            move |look| Trial::test(format!("live::{kind}::{look}"), move || live(kind, look));
        (0..LOOKS).map(trial)
    };
    let trials = [Kind::Particles, Kind::Galaxy].into_iter().flat_map(of);
    let config = Config {
        backend: Backend::Wgpu,
        ..Config::default()
    };
    match radsweep::BroadPhase::new(config) {
        Ok(_) => (trials.collect(), Vec::new()),
        Err(error) => {
            image::skip("scenes that live on the device", &error.to_string());
            let ignored = trials.map(|trial| trial.with_ignored_flag(true));
            (Vec::new(), ignored.collect())
        }
    }
}

#[cfg(not(feature = "wgpu"))]
fn live_trials() -> (Vec<Trial>, Vec<Trial>) {
    Default::default()
}

/// Returns why nothing can be drawn here, if so.
fn missing() -> Option<String> {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("probe.png");
    match screenshot(&of(&path, Kind::Uniform, [8, 8]), || {}) {
        Err(error @ Error::NoAdapter) => Some(error.to_string()),
        _ => None,
    }
}

/// Returns the picture of the last frame of a scene, without panels.
fn of(path: &Path, kind: Kind, size: [u32; 2]) -> Screenshot {
    let (bodies, frames) = scale(kind);
    Screenshot {
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
        overlay: false,
        shadows: true,
        colour: None,
        wireframes: false,
        cells: false,
        body: None,
    }
}

/// Takes a picture.
fn take(wanted: &Screenshot) -> Result<Image> {
    screenshot(wanted, || {})?;
    Image::read(&wanted.path)
}

fn golden(kind: Kind) -> Result {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pictures/golden");
    let expected = folder.join(format!("{kind}.png"));
    let taken = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{kind}.png"));
    let found = take(&of(&taken, kind, SIZE))?;
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
    let plain = of(&path, Kind::Stack, [1000, 640]);
    let with = Screenshot {
        overlay: true,
        ..plain.clone()
    };
    let (plain, with) = (take(&plain)?, take(&with)?);
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

fn shadows() -> Result {
    let folder = TempDir::new()?;
    let path = folder.path().join("picture.png");
    for kind in [Kind::FallingChairs, Kind::Uniform, Kind::Particles] {
        let with = of(&path, kind, SIZE);
        let without = Screenshot {
            shadows: false,
            ..with.clone()
        };
        let (with, without) = (take(&with)?, take(&without)?);
        let (with, without) = (with.squares(SQUARE), without.squares(SQUARE));
        let darker: Vec<f64> = with
            .iter()
            .zip(&without)
            .map(|(a, b)| b[1] - a[1])
            .collect();
        // A shadow only ever takes light away, and the sky stays as it is.
        let brightest = darker.iter().copied().fold(0.0, f64::min);
        check(brightest > -2.0, (kind, brightest))?;
        let count = |at: &mut dyn Iterator<Item = f64>, least| at.filter(|&by| by > least).count();
        let all = count(&mut darker.iter().copied(), 3.0);
        check((60..darker.len() / 2).contains(&all), (kind, all))?;
        if kind == Kind::FallingChairs {
            // The sun shines from the right: the floor is dark on the left of the heap, not there.
            let floor = |pixels: [std::ops::Range<usize>; 2], least| {
                let [columns, rows] = pixels.map(|range| range.start / SQUARE..range.end / SQUARE);
                let width = SIZE[0] as usize / SQUARE;
                let rows = rows.flat_map(|y| columns.clone().map(move |x| y * width + x));
                count(&mut rows.map(|square| darker[square]), least)
            };
            let (left, right) = (
                floor([165..195, 175..205], 12.0),
                floor([330..480, 150..300], 2.0),
            );
            check(left > 8 && right == 0, (left, right))?;
        }
    }
    Ok(())
}

/// The ways to draw a scene that [`live`] compares.
#[cfg(feature = "wgpu")]
const LOOKS: usize = 4;

/// A scene that lives on the device that draws looks as one of the host, in each way that it can be
/// drawn.
#[cfg(feature = "wgpu")]
fn live(kind: Kind, look: usize) -> Result {
    use radsweep_viewer::Colour;

    let folder = TempDir::new()?;
    let path = folder.path().join("picture.png");
    let mut plain = of(&path, kind, SIZE);
    // A software driver takes long for each frame, and the tests of scenes compare more of them.
    plain.frames = plain.frames.min(6);
    let looks: [Screenshot; LOOKS] = [
        plain.clone(),
        Screenshot {
            colour: Some(Colour::Overlaps),
            wireframes: true,
            shadows: false,
            // The camera follows.
            every: Some(2),
            ..plain.clone()
        },
        Screenshot {
            colour: Some(Colour::Body),
            cells: true,
            size: [400, 640],
            ..plain.clone()
        },
        Screenshot {
            body: Some(70),
            ..plain
        },
    ];
    let mut wanted = looks[look].clone();
    let host = take(&wanted)?;
    wanted.settings.config.backend = Backend::Wgpu;
    let live = take(&wanted)?;
    let (mean, worst) = live.difference(&host);
    check(mean < MEAN && worst < WORST, (mean, worst))?;
    // Something is there to see.
    let squares = host.squares(SQUARE);
    let edges = squares.windows(2);
    let edges = edges.filter(|both| (both[0][1] - both[1][1]).abs() > 4.0);
    let edges = edges.count();
    check(edges > 60, edges)
}
