//! The frames that other engines are measured on, and radsweep's updates of them.
//!
//! `engine_frames write FOLDER` writes the frames of `bench sap --scenes uniform --motion
//! all,walk,listed,none` at five sizes, with the number of pairs of each, in the format of
//! `frames.hpp`. `engine_frames run FILE` measures radsweep on a file, as `frames.hpp` does an
//! engine.

use radsweep::{Aabb, Backend, BroadPhase, Config, Frame};
use radsweep_scenes::{Kind, Options, Scene};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::time::Instant;

const SIZES: [usize; 5] = [10, 100, 1000, 10_000, 100_000];
/// The motions of `bench sap`: their names, one in how many boxes moves (none at 0), and the share
/// of its size by which a box moves at most.
const MOTIONS: [(&str, usize, f32); 4] = [
    ("all", 1, 0.1),
    ("walk", 1, 0.01),
    ("listed", 100, 0.1),
    ("none", 0, 0.0),
];
/// As in `bench sap`.
const SEED: u64 = 7;
/// As in `frames.hpp`.
const WARM_UP: usize = 2;
const SECONDS: f64 = 1.0;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match &words[..] {
        [what, folder] if what == "write" => write_all(Path::new(folder)),
        [what, file] if what == "run" => run(Path::new(file)),
        _ => Err("usage: engine_frames write FOLDER, or engine_frames run FILE".into()),
    };
    if let Err(error) = done {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn broad_phase() -> Result<BroadPhase> {
    Ok(BroadPhase::new(Config {
        backend: Backend::Cpu,
        events: false,
        ..Config::default()
    })?)
}

fn write_all(folder: &Path) -> Result<()> {
    for (name, one_in, share) in MOTIONS {
        for n in SIZES {
            write(&folder.join(format!("{name}-{n}.frames")), n, one_in, share)?;
        }
    }
    Ok(())
}

fn write(path: &Path, n: usize, one_in: usize, share: f32) -> Result<()> {
    let options = Options {
        bodies: Some(n),
        ..Options::default()
    };
    let mut scene = Scene::new(Kind::Uniform, &options)?;
    let mut finder = broad_phase()?;
    scene.step(&mut finder)?;
    let mut boxes = scene.boxes()?.to_vec();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let rounds = WARM_UP + (4_000_000 / n).clamp(21, 2000);
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(bytemuck::bytes_of(&[n as u32, rounds as u32]))?;
    file.write_all(bytemuck::cast_slice(&boxes))?;
    for round in 1..=rounds {
        let changed: Vec<u32> = match one_in {
            0 => Vec::new(),
            _ => (round % one_in..n)
                .step_by(one_in)
                .map(|i| i as u32)
                .collect(),
        };
        let mut is_changed = vec![false; n];
        for &i in &changed {
            walk(&mut boxes[i as usize], share, &mut rng);
            is_changed[i as usize] = true;
        }
        finder.update(&boxes)?;
        let pairs = finder.pairs();
        let of_changed = pairs
            .iter()
            .filter(|pair| is_changed[pair.a as usize] || is_changed[pair.b as usize]);
        let counts = [pairs.len() as u64, of_changed.count() as u64];
        let moved: Vec<Aabb> = changed.iter().map(|&i| boxes[i as usize]).collect();
        file.write_all(bytemuck::bytes_of(&(changed.len() as u32)))?;
        file.write_all(bytemuck::cast_slice(&changed))?;
        file.write_all(bytemuck::cast_slice(&moved))?;
        file.write_all(bytemuck::cast_slice(&counts))?;
    }
    Ok(file.flush()?)
}

fn walk(b: &mut Aabb, share: f32, rng: &mut Xoshiro256PlusPlus) {
    for k in 0..3 {
        let by = rng.random_range(-share..share) * (b.max[k] - b.min[k]);
        b.min[k] += by;
        b.max[k] += by;
    }
}

/// Reads this many values.
fn values<T: bytemuck::Pod>(file: &mut impl Read, count: usize) -> Result<Vec<T>> {
    let mut values = vec![T::zeroed(); count];
    file.read_exact(bytemuck::cast_slice_mut(&mut values))?;
    Ok(values)
}

fn run(path: &Path) -> Result<()> {
    let mut file = BufReader::new(File::open(path)?);
    let header: Vec<u32> = values(&mut file, 2)?;
    let n = header[0] as usize;
    let mut boxes: Vec<Aabb> = values(&mut file, n)?;
    let mut finder = broad_phase()?;
    finder.update(&boxes)?;
    let mut times = Vec::new();
    let mut pairs = 0;
    for round in 0..header[1] as usize {
        if times.len() >= 3 && times.iter().sum::<f64>() > SECONDS {
            break;
        }
        let count = values::<u32>(&mut file, 1)?[0] as usize;
        let changed: Vec<u32> = values(&mut file, count)?;
        let moved: Vec<Aabb> = values(&mut file, count)?;
        let counts: Vec<u64> = values(&mut file, 2)?;
        for (&i, b) in changed.iter().zip(moved) {
            boxes[i as usize] = b;
        }
        let frame = Frame::boxes(&boxes);
        let frame = if count < n {
            frame.changed(&changed)
        } else {
            frame
        };
        let begun = Instant::now();
        finder.update(frame)?;
        let took = begun.elapsed().as_secs_f64();
        pairs = finder.pairs().len() as u64;
        if pairs != counts[0] {
            return Err(format!("{pairs} pairs instead of {} in update {round}", counts[0]).into());
        }
        if round >= WARM_UP {
            times.push(took);
        }
    }
    times.sort_by(f64::total_cmp);
    let us = times[times.len() / 2] * 1e6;
    let updates = times.len();
    println!(
        "{{\"engine\":\"radsweep\",\"n\":{n},\"us\":{us:.3},\"updates\":{updates},\"pairs\":{pairs}}}"
    );
    Ok(())
}
