//! Pictures as the tests read and compare them; those of the program in `tests/view.rs` too.

#![allow(dead_code)] // neither uses all

use libtest_mimic::Failed;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

pub type Result<T = ()> = std::result::Result<T, Failed>;

/// Side of the squares whose means are compared: drivers differ in single pixels along edges, not
/// in squares.
pub const SQUARE: usize = 5;

/// A picture, read back.
pub struct Image {
    pub size: [usize; 2],
    /// Three bytes a pixel.
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

    /// As many times smaller.
    pub fn reduced(&self, times: usize) -> Self {
        let means = self.squares(times);
        let round = |mean: f64| mean.round() as u8;
        Self {
            size: self.size.map(|side| side / times),
            pixels: means.into_iter().flat_map(|mean| mean.map(round)).collect(),
        }
    }

    /// Means of the channels of each square of this side, row after row.
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

    /// How far apart two are: the mean of the differences of squares, and the greatest.
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
