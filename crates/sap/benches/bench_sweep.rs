//! Measures the CUDA engine from boxes on the device to sorted pairs on the device.
//!
//! `cargo bench -p radsweep-sap --features cuda --bench bench_sweep [-- --strategy NAME]
//! [--runs FRAMES] [--scenes [--only PART OF A NAME]] [n...]`
//!
//! Scenes: `uniform` (centres uniform in a cube of side n^(1/3), half sides uniform in 0.2 to 0.5
//! per axis) of the given sizes, else of 10,000 to 10,000,000 boxes; the same 3.7 times as dense (5
//! pairs a box), walking by 1 and by 10 % of their size (with events, with a neighbour list and
//! without, and with a list but without events and times), not moving, with 99 of 100 boxes static
//! (with and without a resting set), as a graph (and with a box that overlaps all others, recorded
//! with it, so that the graph sorts, or before), and from the host with one box in 100 moving (with
//! and without [`Frame::changed`]); and, all of whose boxes move, the
//! `.npy` scenes of `SCENES` in the folder that `RADSWEEP_DATA` names. With `--scenes` these are
//! left out, and there are others ([`scenes`]) instead, in all of which all boxes move: sparse and
//! crowded, long, flat, very unequal and touching boxes, walls, clusters, islands and heaps.
//!
//! The strategy is `auto` unless one is named, without events. Pairs are compared with those of the
//! CPU engine. It prints one JSON object a line, then a table. All times are medians: `ms` is the
//! sum of the stages by GPU events, `whole_ms` what the call takes for the caller, with the wait of
//! the host, `max_whole_ms` the longest of these, and `untimed_whole_ms` what it takes without
//! [`Config::timings`]. `RADSWEEP_QUICK=1` takes small sizes and few runs.

use sap::internals::pair_hash;
use sap::{
    Aabb, Backend, BroadPhase, Config, DeviceFrame, Filter, FilterFlags, Frame, FrameGraph, Report,
    Strategy,
};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

/// Published scenes.
const SCENES: [&str; 2] = ["ccd_cloth-ball_faces", "ccd_cloth-ball_edges"];
/// Scenes of [`scenes`] that are measured as graphs too.
const GRAPHS: [&str; 5] = [
    "20 pairs a box, 100k",
    "20 pairs a box, 1M",
    "few large, 1M",
    "ten giants, 1M",
    "heavy tail, 200k",
];
const WARM_UP: usize = 5;
/// Frames of boxes that walk which are uploaded before they are measured, so that all but the first
/// of them follow another one at once, as in the other scenes.
const UPLOADED: usize = 8;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// One line of the table.
struct Measured {
    scene: String,
    n: usize,
    pairs: u64,
    tests: u64,
    ms: f64,
    whole_ms: f64,
    stages: Vec<(&'static str, f64)>,
}

fn main() -> Result<()> {
    let quick = std::env::var("RADSWEEP_QUICK").is_ok_and(|value| value == "1");
    let mut strategy = Strategy::Auto;
    let mut given: Vec<usize> = Vec::new();
    let mut of_scenes = false;
    let mut only = String::new();
    let mut runs = if quick { 2 } else { 20 };
    let mut arguments = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(argument) = arguments.next() {
        if argument == "--strategy" {
            strategy = arguments.next().ok_or("--strategy of what?")?.parse()?;
        } else if argument == "--runs" {
            runs = arguments.next().ok_or("--runs of how many?")?.parse()?;
        } else if argument == "--scenes" {
            of_scenes = true;
        } else if argument == "--only" {
            only = arguments.next().ok_or("--only which?")?;
        } else {
            given.push(argument.parse()?);
        }
    }
    let mut measured = Vec::new();
    if of_scenes {
        let share = if quick { 1_000 } else { 1 };
        for scene in scenes(share) {
            if scene.scene.contains(&only) {
                measured.push(measure(&scene, strategy, runs)?);
                if GRAPHS.contains(&scene.scene) {
                    let name = format!("{}, as a graph", scene.scene);
                    graph(&name, &scene.boxes, &scene.boxes, strategy, runs)?;
                }
            }
        }
        print_table(&measured);
        return Ok(());
    }
    let sizes = match (given.is_empty(), quick) {
        (false, _) => given,
        (true, false) => vec![10_000, 100_000, 1_000_000, 10_000_000],
        (true, true) => vec![1_000],
    };
    for &n in &sizes {
        for (scene, motion) in [("uniform", Motion::One), ("uniform, all move", Motion::All)] {
            let run = Run {
                motion,
                ..Run::new(scene, uniform(n, 1.0))
            };
            measured.push(measure(&run, strategy, runs)?);
        }
    }
    for &n in &sizes {
        for share in [0.01, 0.1] {
            measured.extend(walking(n, share, strategy, runs)?);
        }
    }
    if let Some(&n) = sizes.iter().filter(|&&n| n <= 1_000_000).max() {
        for scene in variants(n) {
            measured.push(measure(&scene, strategy, runs)?);
        }
    }
    for &n in &sizes {
        graphs(n, strategy, runs)?;
        if n <= 1_000_000 {
            from_host(n, false, runs)?;
            from_host(n, true, runs)?;
        }
    }
    if let Some(folder) = std::env::var_os("RADSWEEP_DATA").filter(|_| !quick) {
        for scene in SCENES {
            let file = Path::new(&folder).join(format!("{scene}.npy"));
            let run = Run {
                motion: Motion::All,
                ..Run::new(scene, read(&file)?)
            };
            measured.push(measure(&run, strategy, runs)?);
        }
    }
    print_table(&measured);
    Ok(())
}

fn print_table(measured: &[Measured]) {
    println!(
        "{:24} {:>9} {:>9} {:>10} {:>9} {:>9}  stages, ms",
        "scene", "n", "pairs", "tests/pair", "whole", "ms"
    );
    for m in measured {
        let stages: Vec<String> = m
            .stages
            .iter()
            .map(|(name, ms)| format!("{name} {ms:.3}"))
            .collect();
        let each = m.tests as f64 / m.pairs.max(1) as f64;
        println!(
            "{:24} {:9} {:9} {each:10.1} {:9.3} {:9.3}  {}",
            m.scene,
            m.n,
            m.pairs,
            m.whole_ms,
            m.ms,
            stages.join(", ")
        );
    }
}

/// The boxes that move from frame to frame, by less than keeps a pair from being one.
#[derive(Clone, Copy, PartialEq)]
enum Motion {
    None,
    /// The first.
    One,
    All,
    /// All, to where no two of them touch and back.
    Apart,
}

impl Motion {
    /// Returns box `i` in every second frame.
    fn of(self, i: usize, b: &Aabb) -> Aabb {
        match self {
            Self::One if i == 0 => nudged(b),
            Self::All => nudged(b),
            Self::Apart => Aabb::new(b.min.map(|x| x + 1e-3), b.max.map(|x| x - 1e-3)),
            _ => *b,
        }
    }
}

/// The boxes of a measurement.
struct Run {
    scene: &'static str,
    boxes: Vec<Aabb>,
    filters: Option<Vec<Filter>>,
    /// `usize::MAX` has all boxes searched in each frame, without a neighbour list too.
    min_resting: Option<usize>,
    motion: Motion,
}

impl Run {
    const fn new(scene: &'static str, boxes: Vec<Aabb>) -> Self {
        Self {
            scene,
            boxes,
            filters: None,
            min_resting: Some(usize::MAX),
            motion: Motion::One,
        }
    }

    fn frame(&self) -> Frame<'_> {
        let frame = Frame::boxes(&self.boxes);
        match &self.filters {
            Some(filters) => frame.filters(filters),
            None => frame,
        }
    }
}

/// Measures graphs of uniform boxes, and of the same where one overlaps all others.
fn graphs(n: usize, strategy: Strategy, runs: usize) -> Result<()> {
    let recorded = uniform(n, 1.0);
    let mut boxes = recorded.clone();
    graph("uniform, as a graph", &recorded, &boxes, strategy, runs)?;
    boxes[0] = Aabb::new([-1e9; 3], [1e9; 3]);
    graph("the same, one overlaps all", &boxes, &boxes, strategy, runs)?;
    graph(
        "the same, recorded before",
        &recorded,
        &boxes,
        strategy,
        runs,
    )
}

/// Measures frames of boxes as a graph that was recorded with others, by events around a launch,
/// and prints the JSON line.
fn graph(
    scene: &str,
    recorded: &[Aabb],
    boxes: &[Aabb],
    strategy: Strategy,
    runs: usize,
) -> Result<()> {
    let n = boxes.len();
    let config = Config {
        backend: Backend::Cuda,
        strategy,
        ..Config::default()
    };
    let mut graph = FrameGraph::new(&config, recorded, None, None, 3 * n)?;
    let stream = graph.stream().clone();
    stream.upload(graph.boxes_mut(), boxes)?;
    let mut times = Vec::new();
    for run in 0..WARM_UP + runs {
        let start = stream.record()?;
        graph.launch()?;
        let end = stream.record()?;
        end.synchronize()?;
        if run >= WARM_UP {
            times.push(f64::from(start.elapsed_ms(&end)?));
        }
    }
    let pairs = graph.report()?.pairs;
    let found = stream.to_vec(graph.pairs()?.range(..pairs as usize)?)?;
    let mut on_cpu = BroadPhase::new(Config {
        backend: Backend::Cpu,
        ..config
    })?;
    on_cpu.update(boxes)?;
    if found != on_cpu.pairs() {
        return Err(format!("{scene}, {n} boxes: other pairs than on the CPU").into());
    }
    let (count, ms) = (times.len(), median(times));
    let line = serde_json::json!({
        "bench": "sweep", "scene": scene, "n": n, "pairs": pairs, "ms": ms, "runs": count,
    });
    println!("{line}");
    Ok(())
}

/// Measures frames from the host in which one box in 100 moves, with events, and the first query
/// after each: time on the host, and of the stages on the device. Prints the JSON line.
fn from_host(n: usize, listed: bool, runs: usize) -> Result<()> {
    let config = Config {
        backend: Backend::Cuda,
        ..Config::default()
    };
    let mut boxes = uniform(n, 1.0);
    let mut broad_phase = BroadPhase::new(config.clone())?;
    let mut times: [Vec<f64>; 4] = Default::default();
    for run in 0..WARM_UP + runs {
        let changed: Vec<u32> = (run..n).step_by(100).map(|i| i as u32).collect();
        for &i in &changed {
            let b = &mut boxes[i as usize];
            let step = if run % 2 == 0 { 0.1 } else { -0.1 };
            *b = Aabb::new(b.min.map(|x| x + step), b.max.map(|x| x + step));
        }
        let mut frame = Frame::boxes(&boxes);
        if listed {
            frame = frame.changed(&changed);
        }
        let start = Instant::now();
        let timings = broad_phase.update(frame)?.stats.timings;
        let update = start.elapsed();
        let start = Instant::now();
        std::hint::black_box(broad_phase.query_box(&boxes[n / 2])?);
        let query = start.elapsed();
        if run >= WARM_UP {
            let [wall, query] = [update, query].map(|time| time.as_secs_f64() * 1e3);
            let values = [wall, timings.upload, timings.events, query];
            times
                .iter_mut()
                .zip(values)
                .for_each(|(all, value)| all.push(value));
        }
    }
    let mut on_cpu = BroadPhase::new(Config {
        backend: Backend::Cpu,
        ..config
    })?;
    on_cpu.update(&boxes)?;
    if broad_phase.pairs() != on_cpu.pairs() {
        return Err(format!("from the host, {n}: other pairs than on the CPU").into());
    }
    let [wall, upload, events, query] = times.map(median);
    let scene = if listed {
        "uniform from the host, changes listed"
    } else {
        "uniform from the host"
    };
    let line = serde_json::json!({
        "bench": "sweep", "scene": scene, "n": n, "pairs": on_cpu.pairs().len(), "ms": wall, "runs": runs,
        "stages": {"upload": upload, "events": events}, "query_ms": query,
    });
    println!("{line}");
    Ok(())
}

/// Updates an engine with two frames on its device by turns, and downloads its pairs. Returns the
/// engine, and of each run its report and what it took the caller, in ms.
fn update_often(
    config: Config,
    frames: [&[Aabb]; 2],
    filters: Option<&[Filter]>,
    runs: usize,
) -> Result<(BroadPhase, Vec<Report>, Vec<f64>)> {
    let mut broad_phase = BroadPhase::new(config)?;
    let stream = broad_phase.stream().ok_or("no stream")?.clone();
    let [even, odd] = frames;
    let frames = [stream.from_slice(even)?, stream.from_slice(odd)?];
    let filters = filters.map(|list| stream.from_slice(list)).transpose()?;
    let (mut reports, mut wholes) = (Vec::new(), Vec::new());
    for number in 0..2 * (WARM_UP + runs).div_ceil(2) {
        let mut frame = DeviceFrame::boxes(frames[(number + 1) % 2].slice());
        if let Some(filters) = &filters {
            frame = frame.filters(filters.slice());
        }
        stream.synchronize()?;
        let start = Instant::now();
        let report = broad_phase.update_device(frame)?.clone();
        let whole = start.elapsed().as_secs_f64() * 1e3;
        if number >= WARM_UP {
            reports.push(report);
            wholes.push(whole);
        }
    }
    broad_phase.download()?;
    Ok((broad_phase, reports, wholes))
}

/// Measures updates from the device, and prints the JSON line.
fn measure(run: &Run, strategy: Strategy, runs: usize) -> Result<Measured> {
    let (scene, boxes) = (run.scene, &run.boxes[..]);
    let config = Config {
        backend: Backend::Cuda,
        strategy,
        events: false,
        min_resting: run.min_resting,
        ..Config::default()
    };
    // Two frames alternate, because an unchanged frame would be recognised and not swept.
    let moved = |(i, b)| run.motion.of(i, b);
    let shifted: Vec<Aabb> = boxes.iter().enumerate().map(moved).collect();
    let often = |timings| {
        let config = Config {
            timings,
            ..config.clone()
        };
        update_often(config, [boxes, &shifted], run.filters.as_deref(), runs)
    };
    // One after the other: an engine's frames take longer between those of another.
    let (untimed, _, untimed_wholes) = often(false)?;
    let (broad_phase, reports, wholes) = often(true)?;
    if untimed.pairs() != broad_phase.pairs() {
        return Err(format!("{scene}: other pairs without times").into());
    }
    let hash = pair_hash(broad_phase.pairs());

    let mut on_cpu = BroadPhase::new(Config {
        backend: Backend::Cpu,
        strategy: Strategy::Auto,
        ..config
    })?;
    let pairs = on_cpu.update(run.frame())?.pairs;
    let expected = pair_hash(on_cpu.pairs());
    let last = reports.last().ok_or("no runs")?;
    if (last.pairs, hash) != (pairs, expected) {
        return Err(format!(
            "{scene}: {} pairs of hash {hash:016x}, on the CPU {pairs} of {expected:016x}",
            last.pairs
        )
        .into());
    }

    let stages = medians_of_stages(&reports);
    let (n, tests) = (boxes.len(), last.stats.tests);
    let totals = reports.iter().map(|report| report.stats.timings.total);
    let ms = median(totals.collect());
    let max_ms = wholes.iter().copied().fold(0.0, f64::max);
    let whole_ms = median(wholes);
    let untimed_whole_ms = median(untimed_wholes);
    let by_name: serde_json::Map<_, _> = stages
        .iter()
        .map(|&(name, ms)| (name.to_owned(), ms.into()))
        .collect();
    let line = serde_json::json!({
        "bench": "sweep", "scene": scene, "n": n, "pairs": pairs, "hash": format!("{hash:016x}"), "tests": tests, "resting": last.stats.resting,
        "strategy": last.stats.strategy.name(), "ms": ms, "whole_ms": whole_ms, "max_whole_ms": max_ms,
        "untimed_whole_ms": untimed_whole_ms,
        "stages": by_name, "runs": reports.len(),
    });
    println!("{line}");
    Ok(Measured {
        scene: scene.to_owned(),
        n,
        pairs,
        tests,
        ms,
        whole_ms,
        stages,
    })
}

/// Measures frames in which all boxes walk by up to a share of their size, by turns: with the
/// neighbour list, without one, and with it but without events and [`Config::timings`].
fn walking(n: usize, share: f32, strategy: Strategy, runs: usize) -> Result<[Measured; 3]> {
    let engine = |min_resting, timings| {
        BroadPhase::new(Config {
            backend: Backend::Cuda,
            strategy,
            min_resting,
            timings,
            events: timings,
            ..Config::default()
        })
    };
    let mut engines = [
        engine(None, true)?,
        engine(Some(usize::MAX), true)?,
        engine(None, false)?,
    ];
    let mut boxes = uniform(n, 1.0);
    let mut next = random();
    let mut reports: [Vec<Report>; 3] = Default::default();
    let mut wholes: [Vec<f64>; 3] = Default::default();
    let stream = engines[0].stream().ok_or("no stream")?.clone();
    let mut walk = |_| {
        for b in &mut boxes {
            let by: [f32; 3] = std::array::from_fn(|k| {
                (2.0 * next() as f32 - 1.0) * share * (b.max[k] - b.min[k])
            });
            let moved = |side: [f32; 3]| std::array::from_fn(|k| side[k] + by[k]);
            *b = Aabb::new(moved(b.min), moved(b.max));
        }
        stream.from_slice(&boxes)
    };
    let frames = WARM_UP + 2 * runs;
    for first in (0..frames).step_by(UPLOADED) {
        let uploaded = first..frames.min(first + UPLOADED);
        let uploaded: Vec<_> = uploaded.map(&mut walk).collect::<gpu::Result<_>>()?;
        stream.synchronize()?;
        for (number, on_device) in (first..).zip(&uploaded) {
            // The first one of a frame may find boxes that are not in a cache.
            for at in [0, 1, 2].map(|at| (number + at) % 3) {
                let broad_phase = &mut engines[at];
                let start = Instant::now();
                let report = broad_phase.update_device(on_device.slice())?.clone();
                let whole = start.elapsed().as_secs_f64() * 1e3;
                if number >= WARM_UP {
                    reports[at].push(report);
                    wholes[at].push(whole);
                }
            }
        }
    }
    let mut hashes = Vec::new();
    for broad_phase in &mut engines {
        broad_phase.download()?;
        hashes.push(pair_hash(broad_phase.pairs()));
    }
    let mut on_cpu = BroadPhase::new(Config {
        backend: Backend::Cpu,
        ..Config::default()
    })?;
    on_cpu.update(&boxes)?;
    let expected = pair_hash(on_cpu.pairs());
    if hashes != [expected; 3] {
        return Err(format!("{n} walk by {share}: other pairs than on the CPU").into());
    }
    let mut measured = Vec::new();
    let names = ["", ", searched", ", untimed"];
    for (at, name) in names.into_iter().enumerate() {
        let scene = format!("walk by {} %{name}", 100.0 * share);
        let last = reports[at].last().ok_or("no runs")?;
        let count = wholes[at].len() as f64;
        let mean = wholes[at].iter().sum::<f64>() / count;
        let max = wholes[at].iter().copied().fold(0.0, f64::max);
        let totals = reports[at].iter().map(|report| report.stats.timings.total);
        let one = Measured {
            n,
            pairs: last.pairs,
            tests: last.stats.tests,
            ms: median(totals.collect()),
            whole_ms: median(wholes[at].clone()),
            stages: medians_of_stages(&reports[at]),
            scene,
        };
        let line = serde_json::json!({
            "bench": "sweep", "scene": &one.scene, "n": n, "pairs": one.pairs, "hash": format!("{expected:016x}"), "tests": one.tests,
            "ms": one.ms, "whole_ms": one.whole_ms, "mean_whole_ms": mean, "max_whole_ms": max, "runs": count,
        });
        println!("{line}");
        measured.push(one);
    }
    measured.try_into().map_err(|_| "three rows".into())
}

/// Returns the name of each stage, and the median of its milliseconds.
fn medians_of_stages(reports: &[Report]) -> Vec<(&'static str, f64)> {
    let stages = reports[0].stats.timings.stages().enumerate();
    let median_of = |(at, (name, _))| {
        let of_one = |report: &Report| report.stats.timings.stages().nth(at).map_or(0.0, |it| it.1);
        (name, median(reports.iter().map(of_one).collect()))
    };
    stages.map(median_of).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the box with its `min` one step of `f32` lower on x, which almost surely keeps all
/// pairs.
fn nudged(b: &Aabb) -> Aabb {
    Aabb::new([b.min[0].next_down(), b.min[1], b.min[2]], b.max)
}

/// Uniform boxes: denser, not moving, and nearly all static, with and without a resting set.
fn variants(n: usize) -> [Run; 4] {
    let filter = |i: usize| Filter {
        flags: if i.is_multiple_of(100) {
            FilterFlags::NONE
        } else {
            FilterFlags::STATIC
        },
        ..Filter::default()
    };
    let filters: Vec<Filter> = (0..n).map(filter).collect();
    [
        Run::new("uniform, 5 pairs a box", uniform(n, 3.68)),
        Run {
            motion: Motion::None,
            ..Run::new("uniform, not moving", uniform(n, 1.0))
        },
        Run {
            filters: Some(filters.clone()),
            min_resting: None,
            ..Run::new("uniform, 99 % static", uniform(n, 1.0))
        },
        Run {
            filters: Some(filters),
            ..Run::new("the same, without a resting set", uniform(n, 1.0))
        },
    ]
}

/// Scenes that are hard in different ways: few boxes for the device, crowds, boxes of very unequal
/// sides or sizes, and boxes in a lattice whose faces touch and part. There are `share` times fewer
/// boxes than at full size.
fn scenes(share: usize) -> Vec<Run> {
    let all = |scene, boxes| Run {
        motion: Motion::All,
        ..Run::new(scene, boxes)
    };
    let million = 1_000_000 / share;
    let sticks = |units: [f64; 3]| {
        let long = (3.0 * units[0]) as usize;
        std::array::from_fn(|k| if k == long { 2.0 } else { 0.05 })
    };
    let heavy = |units: [f64; 3]| [0.12 * units[0].max(1e-6).powf(-0.6); 3];
    let few_large = |units: [f64; 3]| [if units[0] < 1e-3 { 8.0 } else { 0.35 }; 3];
    vec![
        all("uniform 30k", uniform(30_000 / share, 1.0)),
        all("uniform 300k", uniform(300_000 / share, 1.0)),
        all("10 pairs a box, 150k", uniform(150_000 / share, 7.3)),
        all("20 pairs a box, 100k", uniform(100_000 / share, 14.7)),
        all("20 pairs a box, 1M", uniform(million, 14.7)),
        all("100 pairs a box, 300k", uniform(300_000 / share, 73.0)),
        all("200 pairs a box, 440k", uniform(440_000 / share, 158.0)),
        all("sticks, 1M", of_sides(million, 1.0, sticks)),
        all("few large, 1M", of_sides(million, 1.0, few_large)),
        all("in a room, 1M", in_a_room(million)),
        all("uniform 3M", uniform(3 * million, 1.0)),
        all("uniform by cells, 1M", by_cells(uniform(million, 1.0))),
        all("sparse, 1M", uniform(million, 0.148)),
        all(
            "sizes from 1 to 100, 1M",
            of_sides(million, 0.15, |u| [0.05 * 100.0_f64.powf(u[0]); 3]),
        ),
        all("ten giants, 1M", with_large(million, 10, 0.25)),
        all("two cover all, 1M", with_large(million, 2, 2.0)),
        all("in a plane, 1M", along(million, [1.0, 1.0, 0.0])),
        all("on a line, 1M", along(million, [1.0, 0.0, 0.0])),
        all(
            "flat, 1M",
            of_sides(million, 1.0, |u| [0.2 + 0.6 * u[0], 0.2 + 0.6 * u[1], 0.02]),
        ),
        all("clusters, 1M", clusters(million)),
        all("two far islands, 1M", islands(million)),
        all(
            "in one place, 4k",
            vec![around([0.0; 3], [0.5; 3]); 4_000 / share.min(40)],
        ),
        all("heavy tail, 200k", of_sides(200_000 / share, 8.28, heavy)),
        Run {
            motion: Motion::Apart,
            ..Run::new("lattice that touches", lattice(million))
        },
    ]
}

/// Returns a pseudo-random generator of numbers in 0 to 1: splitmix64.
fn random() -> impl FnMut() -> f64 {
    let mut state = 0_u64;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn around(center: [f64; 3], half: [f64; 3]) -> Aabb {
    Aabb::new(
        std::array::from_fn(|k| (center[k] - half[k]) as f32),
        std::array::from_fn(|k| (center[k] + half[k]) as f32),
    )
}

fn uniform(n: usize, density: f64) -> Vec<Aabb> {
    let mut next = random();
    let side = (n as f64 / density).cbrt();
    let mut one = || {
        let center: [f64; 3] = std::array::from_fn(|_| next() * side);
        around(center, std::array::from_fn(|_| 0.2 + 0.3 * next()))
    };
    (0..n).map(|_| one()).collect()
}

/// Returns the boxes in the order of the cells of a grid.
fn by_cells(mut boxes: Vec<Aabb>) -> Vec<Aabb> {
    boxes.sort_by_key(|b| [2, 1, 0].map(|axis| b.min[axis].floor() as i32));
    boxes
}

/// Returns uniform boxes, some of which have half sides of this share of the scene's side.
fn with_large(n: usize, large: usize, half: f64) -> Vec<Aabb> {
    let mut boxes = uniform(n, 1.0);
    let half = half * (n as f64).cbrt();
    for b in boxes.iter_mut().step_by(n / large).take(large) {
        *b = around(b.min.map(f64::from), [half; 3]);
    }
    boxes
}

/// Returns boxes whose centres are uniform in the axes whose share is 1, one in a unit.
fn along(n: usize, shares: [f64; 3]) -> Vec<Aabb> {
    let mut next = random();
    let side = (n as f64).powf(1.0 / shares.iter().sum::<f64>());
    let mut one = || {
        let center = shares.map(|share| share * next() * side);
        around(center, std::array::from_fn(|_| 0.2 + 0.3 * next()))
    };
    (0..n).map(|_| one()).collect()
}

/// Returns boxes in a thousand clusters, dense in their middles.
fn clusters(n: usize) -> Vec<Aabb> {
    let mut next = random();
    let side = 2.0 * (n as f64).cbrt();
    let centers: Vec<[f64; 3]> = (0..1000)
        .map(|_| std::array::from_fn(|_| next() * side))
        .collect();
    let mut one = |i: usize| {
        let near = centers[i % centers.len()].map(|x| x + 9.0 * (next() + next() + next() - 1.5));
        around(near, std::array::from_fn(|_| 0.2 + 0.3 * next()))
    };
    (0..n).map(&mut one).collect()
}

/// Returns two scenes of uniform boxes, a million sides of them apart.
fn islands(n: usize) -> Vec<Aabb> {
    let far = 1e6_f32;
    let moved = |(i, b): (usize, Aabb)| match i % 2 {
        0 => b,
        _ => Aabb::new(b.min.map(|x| x + far), b.max.map(|x| x + far)),
    };
    uniform(n, 1.0).into_iter().enumerate().map(moved).collect()
}

/// Returns uniform boxes between six walls, which they touch.
fn in_a_room(n: usize) -> Vec<Aabb> {
    let mut boxes = uniform(n - 6, 1.0);
    let side = (boxes.len() as f64).cbrt() as f32;
    for axis in 0..3 {
        let (mut low, mut high) = ([-1.0; 3], [side + 1.0; 3]);
        (low[axis], high[axis]) = (-1.0, 0.0);
        boxes.push(Aabb::new(low, high));
        (low[axis], high[axis]) = (side, side + 1.0);
        boxes.push(Aabb::new(low, high));
    }
    boxes
}

/// Returns boxes whose half sides are what `half` makes of three random numbers.
fn of_sides(n: usize, density: f64, half: impl Fn([f64; 3]) -> [f64; 3]) -> Vec<Aabb> {
    let mut next = random();
    let side = (n as f64 / density).cbrt();
    let mut one = || {
        let center: [f64; 3] = std::array::from_fn(|_| next() * side);
        around(center, half(std::array::from_fn(|_| next())))
    };
    (0..n).map(|_| one()).collect()
}

/// Returns unit boxes in a lattice. Each touches its 26 neighbours.
fn lattice(n: usize) -> Vec<Aabb> {
    let side = (n as f64).cbrt().round() as usize;
    let at = |i: usize| [i % side, i / side % side, i / side / side].map(|x| x as f64);
    (0..side.pow(3)).map(|i| around(at(i), [0.5; 3])).collect()
}

/// Reads a `.npy` file of `float32 (n, 6)`.
fn read(file: &Path) -> Result<Vec<Aabb>> {
    let npy = npyz::NpyFile::new(std::io::BufReader::new(std::fs::File::open(file)?))?;
    let numbers: Vec<f32> = npy.into_vec()?;
    Ok(numbers
        .chunks_exact(6)
        .map(|six| Aabb::new([six[0], six[1], six[2]], [six[3], six[4], six[5]]))
        .collect())
}
