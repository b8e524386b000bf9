//! Runs tests of pictures, and reads and compares them: these tests and the program's
//! `tests/view.rs`.

#![allow(dead_code)] // neither test uses all of it

use libtest_mimic::{Arguments, Failed, Trial};
use radsweep_scenes::Kind;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

pub type Result<T = ()> = std::result::Result<T, Failed>;

/// Returns the bodies and frames of a scene: enough to recognise it, and quick in a debug build.
pub fn scale(kind: Kind) -> (usize, u32) {
    match kind {
        Kind::FallingChairs => (40, 70),
        Kind::Particles => (4000, 30),
        _ => (2000, 5),
    }
}

/// Says what is skipped here and why, which is a failure if `RADSWEEP_VIEWER=required` is set.
pub fn skip(what: &str, reason: &str) {
    let required = std::env::var("RADSWEEP_VIEWER").is_ok_and(|value| value == "required");
    assert!(!required, "the viewer's tests are required here: {reason}");
    eprintln!("SKIPPED: {what}: {reason}");
}

/// Runs all trials and exits. Those in `drawn` are ignored if `missing` says why nothing can be
/// drawn here, as in [`skip`].
pub fn run(missing: Option<String>, drawn: Vec<Trial>, mut others: Vec<Trial>) -> ! {
    if let Some(reason) = &missing {
        skip("the viewer's pictures", reason);
    }
    let drawn = drawn.into_iter();
    others.extend(drawn.map(|trial| trial.with_ignored_flag(missing.is_some())));
    libtest_mimic::run(&Arguments::from_args(), others).exit()
}

/// Side of the squares whose means are compared. Drivers differ in single pixels along edges, not
/// in squares.
pub const SQUARE: usize = 5;

/// A picture read from a file.
pub struct Image {
    pub size: [usize; 2],
    /// Three bytes per pixel.
    pub pixels: Vec<u8>,
}

impl Image {
    pub fn read(path: &Path) -> Result<Self> {
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

    pub fn write(&self, path: &Path) -> Result {
        let [width, height] = self.size.map(|side| side as u32);
        let mut encoder = png::Encoder::new(File::create(path)?, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_compression(png::Compression::High);
        encoder.write_header()?.write_image_data(&self.pixels)?;
        Ok(())
    }

    /// Returns the picture scaled down by a factor.
    pub fn reduced(&self, times: usize) -> Self {
        let means = self.squares(times);
        let round = |mean: f64| mean.round() as u8;
        Self {
            size: self.size.map(|side| side / times),
            pixels: means.into_iter().flat_map(|mean| mean.map(round)).collect(),
        }
    }

    /// Returns the means of the channels of each square of this side, row by row.
    pub fn squares(&self, side: usize) -> Vec<[f64; 3]> {
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

    /// Returns the mean and the max difference of the squares of two pictures.
    pub fn difference(&self, other: &Self) -> (f64, f64) {
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

/// Fails with `what` unless the condition holds.
pub fn check(condition: bool, what: impl std::fmt::Debug) -> Result {
    if condition {
        Ok(())
    } else {
        Err(format!("{what:?}").into())
    }
}
