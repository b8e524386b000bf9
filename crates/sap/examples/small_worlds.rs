//! Times small and coherent worlds beside parry's kept tree, by turns in one process:
//! `cargo run --release -p radsweep-sap --example small_worlds -- [THREADS] [MODE | BOXES]...`.
//!
//! Modes: `all` (every box walks by up to 10 % of its size), `walk` (by 1 %), `listed` (1 % of the
//! boxes walk by 10 % and are listed), `some` (the same, not listed), `none` (nothing changes, an
//! empty list), `game` (a fifth of the boxes walk by 5 %, 16 ms of sleep between frames).
//! Microseconds, medians. With CPU_TIME set, time of all threads instead of the clock: it depends
//! less on what else the machine does, and has 0.3 us of its own.

use parry3d::bounding_volume::Aabb as ParryAabb;
use parry3d::math::Vector;
use parry3d::partitioning::{Bvh, BvhBuildStrategy, BvhWorkspace};
use sap::{Aabb, Backend, BroadPhase, Config, Frame, Pair};
use std::time::{Duration, Instant};

/// Numbers in 0..1, the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1 << 24) as f32
    }
}

/// Half extents of 0.2 to 0.5, centres uniform in a cube of side n^(1/3).
fn uniform(n: usize, random: &mut Random) -> Vec<Aabb> {
    let side = (n as f32).cbrt();
    let mut one = || {
        let centre = [(); 3].map(|()| side * random.next());
        let half = [(); 3].map(|()| 0.2 + 0.3 * random.next());
        Aabb::new(
            std::array::from_fn(|k| centre[k] - half[k]),
            std::array::from_fn(|k| centre[k] + half[k]),
        )
    };
    (0..n).map(|_| one()).collect()
}

/// Moves a box by up to a share of its size on each axis.
fn walk(b: &mut Aabb, share: f32, random: &mut Random) {
    for k in 0..3 {
        let step = share * (b.max[k] - b.min[k]) * (2.0 * random.next() - 1.0);
        b.min[k] += step;
        b.max[k] += step;
    }
}

#[derive(Clone, Copy, PartialEq)]
struct Mode {
    name: &'static str,
    /// One box in this many moves; 0: none.
    one_in: usize,
    share: f32,
    listed: bool,
    sleep: bool,
}

const MODES: [Mode; 6] = [
    Mode {
        name: "all",
        one_in: 1,
        share: 0.1,
        listed: false,
        sleep: false,
    },
    Mode {
        name: "walk",
        one_in: 1,
        share: 0.01,
        listed: false,
        sleep: false,
    },
    Mode {
        name: "listed",
        one_in: 100,
        share: 0.1,
        listed: true,
        sleep: false,
    },
    Mode {
        name: "some",
        one_in: 100,
        share: 0.1,
        listed: false,
        sleep: false,
    },
    Mode {
        name: "none",
        one_in: 0,
        share: 0.1,
        listed: true,
        sleep: false,
    },
    Mode {
        name: "game",
        one_in: 5,
        share: 0.05,
        listed: false,
        sleep: true,
    },
];

fn parry(b: &Aabb) -> ParryAabb {
    ParryAabb::new(Vector::from_array(b.min), Vector::from_array(b.max))
}

/// parry's tree, kept, each changed leaf updated, on one thread.
struct Kept {
    tree: Bvh,
    workspace: BvhWorkspace,
    pairs: Vec<Pair>,
}

impl Kept {
    fn new(boxes: &[Aabb]) -> Self {
        let leaves: Vec<ParryAabb> = boxes.iter().map(parry).collect();
        Self {
            tree: Bvh::from_leaves(BvhBuildStrategy::Binned, &leaves),
            workspace: BvhWorkspace::default(),
            pairs: Vec::new(),
        }
    }

    fn update(&mut self, boxes: &[Aabb], changed: &[u32]) {
        for &i in changed {
            self.tree
                .insert_or_update_partially(parry(&boxes[i as usize]), i, 0.0);
        }
        self.tree.optimize_incremental(&mut self.workspace);
        self.tree.refit(&mut self.workspace);
        let Self {
            tree,
            workspace,
            pairs,
        } = self;
        pairs.clear();
        tree.traverse_bvtt_single_tree::<false>(workspace, &mut |a, b| pairs.push(Pair::new(a, b)));
    }
}

/// Seconds: of this process on all processors with `CPU_TIME` set, else of the clock.
fn now(start: Instant) -> f64 {
    #[cfg(unix)]
    if std::env::var_os("CPU_TIME").is_some() {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the call writes the struct that it is given.
        unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
        return time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64;
    }
    start.elapsed().as_secs_f64()
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Times of a mode: the median and the mean of ours, the median of parry's.
struct Times {
    ours: f64,
    mean: f64,
    parry: f64,
}

/// Calls `f` and returns its time in microseconds.
fn timed<T>(epoch: Instant, f: impl FnOnce() -> T) -> (T, f64) {
    let start = now(epoch);
    let made = f();
    (made, 1e6 * (now(epoch) - start))
}

fn run(n: usize, mode: Mode) -> sap::Result<Times> {
    let mut random = Random(7 + n as u64);
    let mut boxes = uniform(n, &mut random);
    let mut ours = BroadPhase::new(Config {
        backend: Backend::Cpu,
        events: false,
        ..Config::default()
    })?;
    ours.update(&boxes)?;
    let mut parry = Kept::new(&boxes);
    let frames = if mode.sleep {
        120
    } else {
        (4_000_000 / n.max(1)).clamp(24, 2000)
    };
    let (mut times, mut peers) = (Vec::new(), Vec::new());
    let epoch = Instant::now();
    for frame in 0..frames {
        let first = frame % mode.one_in.max(1);
        let moving = (first..n).step_by(mode.one_in.max(1));
        let changed: Vec<u32> = match mode.one_in {
            0 => Vec::new(),
            _ => moving.map(|i| i as u32).collect(),
        };
        for &i in &changed {
            walk(&mut boxes[i as usize], mode.share, &mut random);
        }
        if mode.sleep {
            std::thread::sleep(Duration::from_millis(16));
        }
        // By turns, each first in every other frame.
        for turn in 0..2 {
            if (frame + turn) % 2 == 0 {
                let given = Frame::boxes(&boxes);
                let given = if mode.listed {
                    given.changed(&changed)
                } else {
                    given
                };
                let (updated, time) = timed(epoch, || ours.update(given).map(|_| ()));
                updated?;
                times.push(time);
            } else {
                peers.push(timed(epoch, || parry.update(&boxes, &changed)).1);
            }
        }
        if frame % 16 == 0 {
            parry.pairs.sort_unstable();
            assert!(parry.pairs == ours.pairs(), "{n} boxes, frame {frame}");
        }
    }
    Ok(Times {
        mean: times.iter().sum::<f64>() / times.len() as f64,
        ours: median(&mut times),
        parry: median(&mut peers),
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1).peekable();
    let number = |word: &String| word.parse::<usize>().ok();
    let threads = words.next_if(|word| number(word).is_some());
    let threads = threads.as_ref().and_then(number).unwrap_or(2);
    let words: Vec<String> = words.collect();
    let mut sizes: Vec<usize> = words.iter().filter_map(number).collect();
    if sizes.is_empty() {
        sizes = vec![10, 30, 100, 300, 1000, 3000, 10_000, 100_000];
    }
    let names: Vec<&String> = words
        .iter()
        .filter(|&word| number(word).is_none())
        .collect();
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()?;
    println!("  mode     boxes          us        mean    parry us  ratio");
    for mode in MODES {
        if !names.is_empty() && !names.iter().any(|&name| name == mode.name) {
            continue;
        }
        for &n in &sizes {
            let Times { ours, mean, parry } = run(n, mode)?;
            let ratio = ours / parry;
            println!(
                "{:>6} {n:>9} {ours:>11.2} {mean:>11.2} {parry:>11.2} {ratio:>6.2}",
                mode.name
            );
        }
    }
    Ok(())
}
