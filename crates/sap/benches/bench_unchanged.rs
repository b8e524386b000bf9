//! Times updates in which nothing changed and the caller says so, with caches warm and cold:
//! `cargo bench -p radsweep-sap --bench bench_unchanged [-- BOXES...]`.
//!
//! Boxes are uniform, as in `bench_sweep`. Before each such update, or the first of several, one
//! box in a hundred moves and is listed, or all move. Prints nanoseconds of the first update and of
//! the next: the median and the 99th percentile.

#[allow(dead_code)] // only some of its numbers are needed here
#[path = "../tests/common/random.rs"]
mod random;

use random::Random;
use sap::{Aabb, Backend, BroadPhase, Config, Frame, Result};
use std::num::NonZero;
use std::time::Instant;

const RUNS: usize = 300;
/// Bytes that are written between two updates where caches are cold: more than any holds.
const CACHES: usize = 64 << 20;

/// Moves each `one_in`th box by up to a tenth of a unit. Returns which moved.
fn walk(boxes: &mut [Aabb], one_in: usize, random: &mut Random) -> Vec<u32> {
    let moving = (0..boxes.len()).step_by(one_in);
    let step = |i: usize| {
        let by = random.between(0.0, 0.1);
        boxes[i].min[0] += by;
        boxes[i].max[0] += by;
        i as u32
    };
    moving.map(step).collect()
}

/// Nanoseconds of updates of one kind.
#[derive(Default)]
struct Times(Vec<u128>);

impl Times {
    fn measure(&mut self, engine: &mut BroadPhase, boxes: &[Aabb]) -> Result<()> {
        let frame = Frame::boxes(boxes).changed(&[]);
        let start = Instant::now();
        let pairs = engine.update(frame)?.pairs;
        self.0.push(start.elapsed().as_nanos());
        assert_eq!(pairs, engine.pairs().len() as u64);
        assert!(engine.started().is_empty() && engine.ended().is_empty());
        Ok(())
    }

    fn show(&mut self) -> String {
        self.0.sort_unstable();
        let at = |share: usize| self.0[self.0.len() * share / 100];
        format!("{:6} {:6}", at(50), at(99))
    }
}

/// Prints a line of one kind of motion, with warm or cold caches.
fn line(name: &str, threads: Option<usize>, n: usize, one_in: usize) -> Result<()> {
    let mut random = Random::new(7);
    let side = (n as f32).cbrt();
    let mut boxes = random.boxes(n, [side; 3]);
    let mut engine = BroadPhase::new(Config {
        backend: Backend::Cpu,
        threads: threads.and_then(NonZero::new),
        ..Config::default()
    })?;
    engine.update(&boxes)?;
    let mut caches = vec![0_u8; CACHES];
    let runs = RUNS.min(30_000_000 / (n / one_in + 1)).max(20);
    let mut shown = Vec::new();
    for is_cold in [false, true] {
        let (mut first, mut next) = (Times::default(), Times::default());
        for run in 0..runs {
            let moved = walk(&mut boxes, one_in, &mut random);
            engine.update(Frame::boxes(&boxes).changed(&moved))?;
            for times in [&mut first, &mut next] {
                if is_cold {
                    caches
                        .iter_mut()
                        .step_by(64)
                        .for_each(|byte| *byte = run as u8);
                }
                times.measure(&mut engine, &boxes)?;
            }
        }
        shown.extend([first.show(), next.show()]);
    }
    println!(
        "{name:20} {n:8} {:9} | {}",
        if one_in == 1 { "all" } else { "1 %" },
        shown.join(" | ")
    );
    Ok(())
}

fn main() -> Result<()> {
    let sizes: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|n| n.parse().ok())
        .collect();
    let sizes = if sizes.is_empty() {
        vec![10, 1000, 100_000]
    } else {
        sizes
    };
    println!(
        "threads                 boxes     moved | warm: first   | next          | cold: first   | next"
    );
    for n in sizes {
        for one_in in [100, 1] {
            line("all", None, n, one_in)?;
            line("Config::threads 1", Some(1), n, one_in)?;
            rayon::scope(|_| line("in a rayon thread", None, n, one_in))?;
        }
    }
    Ok(())
}
