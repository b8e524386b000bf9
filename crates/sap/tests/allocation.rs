//! Refused allocations on the CPU. In calls with 70,000 boxes the first, second, third… allocation
//! of 64 KiB or more is refused, once alone and once with all later ones. Either the call returns
//! an error with the number of bytes and the last result stays, or it works without them and its
//! result is right. [`ABORTS`] lists the exceptions.
//!
//! A refused allocation without an error value ends the process, so each call has its own process.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::refusing::{LARGE, Refuse, Refused, Refusing, refuse, stop};
use common::scenes::{Random, around};
use rayon::prelude::*;
use sap::{
    Aabb, Aabb64, Backend, BroadPhase, Config, Error, Filter, FilterFlags, Frame, Pair, Strategy,
};
use std::env;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Names the case and the first attempt of a child. Attempts 0 and 1 refuse the first allocation:
/// alone, and with all later ones; 2 and 3 refuse the second; and so on.
const CHILD: &str = "RADSWEEP_TEST_ALLOCATION";

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// The call of a case.
#[derive(Clone, Copy)]
enum Call {
    /// An update with everything that a `Frame` can have.
    Update(Strategy, Form),
    /// An update in which few boxes changed, with or without a list of them.
    Changed {
        listed: bool,
    },
    Between,
    /// The first query after an update, which finds many boxes.
    Query {
        filtered: bool,
    },
    /// Chunks of spread or crowded boxes.
    Chunks {
        crowded: bool,
    },
    /// The boxes of triangles and of objects.
    Meshes,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Plain,
    /// Filters, worlds, excluded pairs and a margin.
    Rich,
    /// Some boxes span many columns.
    Plates,
    /// Most boxes are in one column.
    Row,
    Exact,
    /// Nearly all boxes are empty, and a bit for each says whether excluded pairs have it.
    Empty,
}

/// Those that take longest come first, so that others run beside them.
const CASES: &[(&str, Call)] = &[
    ("chunks_crowded", Call::Chunks { crowded: true }),
    (
        "subdivided_row",
        Call::Update(Strategy::Subdivided, Form::Row),
    ),
    ("sweep", Call::Update(Strategy::Sweep, Form::Plain)),
    (
        "subdivided",
        Call::Update(Strategy::Subdivided, Form::Plain),
    ),
    ("endpoints", Call::Update(Strategy::Endpoints, Form::Plain)),
    ("auto", Call::Update(Strategy::Auto, Form::Plain)),
    ("sweep_rich", Call::Update(Strategy::Sweep, Form::Rich)),
    (
        "subdivided_rich",
        Call::Update(Strategy::Subdivided, Form::Rich),
    ),
    (
        "subdivided_plates",
        Call::Update(Strategy::Subdivided, Form::Plates),
    ),
    ("exact", Call::Update(Strategy::Auto, Form::Exact)),
    ("empty", Call::Update(Strategy::Auto, Form::Empty)),
    ("changed", Call::Changed { listed: false }),
    ("changed_listed", Call::Changed { listed: true }),
    ("between", Call::Between),
    ("query", Call::Query { filtered: false }),
    ("query_filtered", Call::Query { filtered: true }),
    ("chunks", Call::Chunks { crowded: false }),
    ("meshes", Call::Meshes),
];

/// The cases in which a refused allocation may end the process, and the max number of such
/// allocations, refused alone or with all later ones. `radsort`, which `gpusort` uses, allocates
/// once a sort without an error value.
const ABORTS: &[(&str, u64)] = &[
    ("sweep", 1),
    ("endpoints", 1),
    ("empty", 1),
    ("sweep_rich", 2),
    ("subdivided_rich", 2),
    ("between", 4),
];

/// The outcomes of refused allocations.
#[derive(Default)]
struct Counts {
    typed: u64,
    absorbed: u64,
    aborted: u64,
}

fn main() -> ExitCode {
    if let Ok(which) = env::var(CHILD) {
        let (case, first) = which.split_once('/').unwrap();
        let call = CASES.iter().find(|(name, _)| *name == case).unwrap().1;
        child(call, first.parse().unwrap());
        return ExitCode::SUCCESS;
    }
    if env::args().any(|argument| argument == "--list") {
        println!("allocation: test"); // a harness of one test
        return ExitCode::SUCCESS;
    }
    // A child uses one thread. The bridge takes the cases in their order.
    let good: Vec<bool> = CASES
        .iter()
        .par_bridge()
        .map(|(name, _)| run(name))
        .collect();
    if good.iter().all(|&good| good) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs a case and prints what it found. Returns whether that is as it should be.
fn run(name: &str) -> bool {
    let start = Instant::now();
    let counts = match refuse_all(name) {
        Ok(counts) => counts,
        Err(text) => {
            eprintln!("{name}: {text}");
            return false;
        }
    };
    println!("{name} ({:.1} s)", start.elapsed().as_secs_f64());
    let known = ABORTS.iter().find(|(case, _)| *case == name);
    let max_aborted = known.map_or(0, |(_, max)| *max);
    let mut good = true;
    for (how, counts) in ["alone", "with all later ones"].iter().zip(counts) {
        let Counts {
            typed,
            absorbed,
            aborted,
        } = counts;
        println!(
            "    refused {how}: {typed} are an error, {absorbed} are done without, {aborted} end the process"
        );
        good &= typed > 0 && aborted <= max_aborted;
    }
    if !good {
        eprintln!("{name}: that is not what it should be");
    }
    good
}

/// Lets a child refuse one allocation after the other. Where it ends for lack of memory, another
/// child continues. Returns the outcomes of even and of odd attempts.
fn refuse_all(name: &str) -> Result<[Counts; 2], String> {
    let mut counts = <[Counts; 2]>::default();
    let mut next = 0;
    loop {
        let mut command = Command::new(env::current_exe().unwrap());
        let output = command
            .env(CHILD, format!("{name}/{next}"))
            // One thread, so that the order of allocations is always the same.
            .env("RAYON_NUM_THREADS", "1")
            // The C library of Linux keeps freed memory for the next attempt.
            .env("MALLOC_MMAP_MAX_", "0")
            .env("MALLOC_TRIM_THRESHOLD_", u32::MAX.to_string())
            .output()
            .unwrap();
        let (text, said) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        for line in text.lines() {
            match line {
                "typed" => counts[next % 2].typed += 1,
                "absorbed" => counts[next % 2].absorbed += 1,
                "done" => return Ok(counts),
                other => return Err(format!("attempt {next}: {other}")),
            }
            next += 1;
        }
        let out_of_memory = said.contains("memory allocation of") && !said.contains("panicked");
        if output.status.success() || !out_of_memory {
            return Err(format!("attempt {next}: {} {said}", output.status));
        }
        if env::var("RADSWEEP_TEST_VERBOSE").is_ok() {
            eprintln!("{name}, attempt {next}: {said}");
        }
        counts[next % 2].aborted += 1;
        next += 1;
    }
}

/// Two frames, and the parts of them that an update uses.
struct Scenes {
    call: Call,
    config: Config,
    small: Vec<Aabb>,
    large: Vec<Aabb>,
    exact: Vec<Aabb64>,
    filters: Vec<Filter>,
    worlds: Vec<u32>,
    excluded: Vec<Pair>,
    changed: Vec<u32>,
}

impl Scenes {
    fn new(call: Call) -> Self {
        let n = match call {
            Call::Chunks { crowded: true } => 3_000,
            Call::Update(_, Form::Empty) => 9 * LARGE,
            _ => 70_000,
        };
        let mut random = Random::new(5);
        let sides = match call {
            Call::Chunks { crowded: true } => [1.0; 3],
            // A long scene has fewer candidates on one axis, and as many pairs.
            Call::Update(Strategy::Sweep | Strategy::Endpoints, _) => [450.0, 14.0, 14.0],
            _ => [45.0; 3],
        };
        let plates = matches!(call, Call::Update(_, Form::Plates));
        let empty = matches!(call, Call::Update(_, Form::Empty));
        let row = matches!(call, Call::Update(_, Form::Row));
        let one = |i: usize, random: &mut Random| {
            let center = sides.map(|side| random.between(0.0, side));
            let half: [f32; 3] = std::array::from_fn(|_| random.between(0.3, 0.5));
            if empty && i >= 3_000 {
                return Aabb::EMPTY;
            }
            if row && !i.is_multiple_of(4) {
                return around([100.0 * center[0], 0.0, 0.0], half);
            }
            if plates && i.is_multiple_of(500) {
                around(center, [25.0, 25.0, 0.005])
            } else {
                around(center, half)
            }
        };
        let large: Vec<Aabb> = (0..n).map(|i| one(i, &mut random)).collect();
        let is_changed = matches!(call, Call::Changed { .. });
        let small = if is_changed {
            large.clone()
        } else {
            large[..2_000].to_vec()
        };
        let changed: Vec<u32> = (0..n as u32).step_by(20).collect();
        let mut large = large;
        if is_changed {
            for &i in &changed {
                large[i as usize] = one(1, &mut random);
            }
        }
        let (strategy, margin) = match call {
            Call::Update(strategy, form) => (strategy, if form == Form::Rich { 0.1 } else { 0.0 }),
            _ => (Strategy::Auto, 0.0),
        };
        let filters = (0..n)
            .map(|i| Filter {
                group: i as u32 % 1000,
                flags: if i.is_multiple_of(3) {
                    FilterFlags::STATIC
                } else {
                    FilterFlags::default()
                },
                ..Filter::default()
            })
            .collect();
        Self {
            call,
            config: Config {
                backend: Backend::Cpu,
                strategy,
                margin,
                ..Config::default()
            },
            exact: large
                .iter()
                .map(|b| Aabb64::new(b.min.map(f64::from), b.max.map(f64::from)))
                .collect(),
            small,
            filters,
            worlds: (0..n).map(|i| i as u32 % 3).collect(),
            excluded: (0..14_000).map(|a| Pair { a, b: a + 3 }).collect(),
            large,
            changed,
        }
    }

    fn frame(&self, large: bool) -> Frame<'_> {
        let boxes = if large { &self.large } else { &self.small };
        let n = boxes.len();
        match self.call {
            Call::Query { filtered: true } => Frame::boxes(boxes)
                .filters(&self.filters[..n])
                .worlds(&self.worlds[..n]),
            Call::Update(_, Form::Rich) => Frame::boxes(boxes)
                .filters(&self.filters[..n])
                .worlds(&self.worlds[..n])
                .excluded(&self.excluded),
            Call::Update(_, Form::Empty) => Frame::boxes(boxes).excluded(&self.excluded),
            Call::Update(_, Form::Exact) => Frame::exact(&self.exact[..n]),
            Call::Changed { listed: true } if large => Frame::boxes(boxes).changed(&self.changed),
            _ => Frame::boxes(boxes),
        }
    }

    /// Returns an engine after one update.
    fn engine(&self) -> BroadPhase {
        let mut broad_phase = BroadPhase::new(self.config.clone()).unwrap();
        let asks = matches!(self.call, Call::Query { .. });
        broad_phase.update(self.frame(asks)).unwrap();
        if matches!(self.call, Call::Changed { .. }) {
            // Until updates are incremental.
            let mut boxes = self.small.clone();
            for round in 1..4 {
                boxes[round].max[0] += 0.01;
                broad_phase.update(&boxes).unwrap();
            }
        }
        broad_phase
    }

    /// Makes the call under test and returns all its pairs.
    fn call(&self, broad_phase: &mut BroadPhase, into: &mut Vec<Pair>) -> Result<(), Error> {
        into.clear();
        match self.call {
            Call::Update(..) | Call::Changed { .. } => {
                broad_phase.update(self.frame(true))?;
            }
            Call::Between => {
                let found = broad_phase.overlaps_between(&self.large, &self.large[..35_000])?;
                into.extend_from_slice(&found);
            }
            Call::Query { filtered } => {
                let mut query = broad_phase.query(Aabb::new([1.0; 3], [44.0; 3]));
                if filtered {
                    query = query.world(1).filter(self.filters[0]);
                }
                let found = query.collect()?;
                assert!(found.len() > LARGE / size_of::<u32>());
                into.extend(found.into_iter().map(|a| Pair { a, b: a }));
            }
            Call::Chunks { .. } => {
                // The list has its memory already.
                let hand = |pairs: &[Pair]| into.extend_from_slice(pairs);
                broad_phase.for_each_pair_chunk(self.frame(true), 10_000, hand)?;
            }
            Call::Meshes => {
                let vertices = bytemuck::cast_slice(&self.large);
                let triangles = bytemuck::cast_slice(&self.worlds[..69_999]);
                let of_triangles = sap::aabbs_from_mesh(vertices, triangles)?;
                let of_objects = sap::aabbs_from_objects(vertices, &self.changed)?;
                for b in of_triangles.iter().chain(&of_objects) {
                    let [a, b] = [b.min[0], b.max[0]].map(f32::to_bits);
                    into.push(Pair { a, b });
                }
            }
        }
        Ok(())
    }

    const fn is_update(&self) -> bool {
        matches!(self.call, Call::Update(..) | Call::Changed { .. })
    }
}

/// The pairs, and those that started and ended.
type Lists = [Vec<Pair>; 3];

fn lists(broad_phase: &BroadPhase) -> Lists {
    [
        broad_phase.pairs(),
        broad_phase.started(),
        broad_phase.ended(),
    ]
    .map(<[_]>::to_vec)
}

/// Makes the attempts from `first` on, and prints the outcome of each.
fn child(call: Call, first: u64) {
    let scenes = Scenes::new(call);
    let mut good = scenes.engine();
    let before = lists(&good);
    let mut expected = Vec::new();
    scenes.call(&mut good, &mut expected).unwrap();
    let after = lists(&good);
    assert!(!scenes.is_update() || after != before);
    drop(good);
    let mut found = Vec::with_capacity(expected.len());
    let mut last = None;
    for attempt in first.. {
        let which = [Refuse::One, Refuse::AllLater][attempt as usize % 2];
        // Where no more was wanted after the refused allocation, both attempts are the same.
        if let Some((what, Refused { more: false, .. })) = last.take()
            && which == Refuse::AllLater
        {
            println!("{what}");
            continue;
        }
        let mut broad_phase = scenes.engine();
        refuse(attempt / 2 + 1, which);
        let result = scenes.call(&mut broad_phase, &mut found);
        let refused = stop();
        let what = match (result, refused.any) {
            (Ok(()), refused) => {
                assert!(lists(&broad_phase) == after, "another result");
                assert!(found == expected, "other pairs");
                if refused { "absorbed" } else { "done" }
            }
            (
                Err(
                    Error::OutOfMemory { bytes }
                    | Error::Sort(gpusort::Error::OutOfMemory { bytes, .. }),
                ),
                true,
            ) if bytes >= LARGE as u64 => {
                assert!(lists(&broad_phase) == before, "the last result is gone");
                scenes.call(&mut broad_phase, &mut found).unwrap();
                assert!(lists(&broad_phase) == after, "the call after");
                assert!(found == expected, "pairs of the call after");
                "typed"
            }
            (Err(error), _) => {
                println!("{error:?}");
                return;
            }
        };
        println!("{what}");
        if what == "done" {
            return;
        }
        last = Some((what, refused));
    }
}
