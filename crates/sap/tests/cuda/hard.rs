//! Scenes that are hard for sweep and cells. The work of `Auto` is bounded, in tests, for any
//! scene, and the tree that bounds it finds what the CPU finds.

use super::{Other, Random, cpu, cuda, engine, holds, sized, text};
use crate::common::{RULES, equal, hard, same};
use libtest_mimic::Failed;
use sap::internals::Reason;
use sap::{
    Aabb, Aabb64, Config, Filter, FilterFlags, Frame, FrameGraph, OverlapRule, Pair, Report,
    Strategy,
};

pub const ALL: &[(&str, Other)] = &[
    ("hard::tests_are_bounded", tests_are_bounded),
    ("hard::tree_finds_all", tree_finds_all),
    ("hard::tree_in_all_calls", tree_in_all_calls),
];

/// Max tests for a box and pair after the first frame: 512 in cells, which the tree must not exceed
/// either.
const KNOWN: u64 = 600;
/// The same in the first frame: the tests of the tree, and those in cells or of the sweep before
/// it. The sweep makes 16 tests in the time of one in cells, and an eighth more before all its
/// warps stop.
const FIRST: [u64; 2] = [1200, 600 + 512 * 16 * 9 / 8 + 600];

fn tests_are_bounded() -> Result<(), Failed> {
    let only = std::env::var("RADSWEEP_SCENE").ok();
    let number = std::env::var("RADSWEEP_N")
        .ok()
        .and_then(|n| n.parse().ok());
    let n = number.unwrap_or(sized(40_000, 4000));
    let mut wrong = Vec::new();
    for scene in hard::ALL {
        if only.as_ref().is_some_and(|name| name != scene.name) {
            continue;
        }
        let (mut boxes, filters) = scene.make(n);
        let config = Config {
            min_resting: Some(usize::MAX),
            ..cuda(Strategy::Auto)
        };
        let (mut on_cuda, mut on_cpu) = (engine(&config), engine(&cpu(&config)));
        let mut worst = [0; 2];
        for frame in 0..3 {
            // Two boxes change places.
            boxes.swap(frame, n - 1 - frame);
            let mut given = Frame::boxes(&boxes);
            if !filters.is_empty() {
                given = given.filters(&filters);
            }
            let report = on_cuda.update(given)?;
            let max = &mut worst[frame.min(1)];
            *max = (*max).max(tests(report));
            on_cpu.update(given)?;
            same(on_cuda.pairs(), on_cpu.pairs())?;
        }
        let report = on_cuda.report();
        println!(
            "{:24} n {n} pairs {:8} tests a box and pair {:5} {:5}, {} {:?}",
            scene.name,
            report.pairs,
            worst[0],
            worst[1],
            report.stats.strategy,
            report.stats.choice.map(|choice| choice.reason)
        );
        let first = FIRST[usize::from(report.n > 16_384)];
        if worst[0] > first || worst[1] > KNOWN {
            wrong.push(scene.name);
        }
    }
    holds(wrong.is_empty(), || format!("{wrong:?}"))
}

/// Returns the tests for a box and pair. 16 tests of the sweep count as one in cells.
fn tests(report: &Report) -> u64 {
    let tests = match report.stats.strategy {
        Strategy::Sweep => report.stats.tests / 16,
        _ => report.stats.tests,
    };
    tests / (report.n as u64 + report.pairs)
}

/// Makes a scene for which `Auto` takes the tree: the given boxes at the sampled indices, and
/// elsewhere static boxes at one place, which cells test all against all. Returns which boxes those
/// are.
fn with_heap(boxes: &[Aabb]) -> (Vec<Aabb>, Vec<bool>) {
    let heap = |i: usize| Aabb::new([5e5; 3], [5e5 + 1.0 + (i % 7) as f32; 3]);
    let mut all: Vec<Aabb> = (0..ALL_BOXES).map(heap).collect();
    let mut in_heap = vec![true; ALL_BOXES];
    for (&i, b) in hard::sampled(ALL_BOXES).iter().zip(boxes.iter().cycle()) {
        (all[i], in_heap[i]) = (*b, false);
    }
    (all, in_heap)
}

const ALL_BOXES: usize = 5500;
const SAMPLED: usize = 2048;

fn is_tree(report: &Report) -> bool {
    report.stats.choice.map(|choice| choice.reason) == Some(Reason::TooManyTests)
}

/// All hard scenes, each with a heap that makes `Auto` take the tree.
fn tree_finds_all() -> Result<(), Failed> {
    let mut trees = 0;
    for (scene, rule) in hard::ALL.iter().zip(RULES.into_iter().cycle()) {
        let (some, of_some) = scene.make(SAMPLED);
        let (boxes, in_heap) = with_heap(&some);
        let mut of_some = of_some.into_iter();
        let filters: Vec<Filter> = in_heap
            .iter()
            .map(|&heap| match heap {
                true => fixed(),
                false => of_some.next().unwrap_or_default(),
            })
            .collect();
        let config = Config {
            rule,
            ..cuda(Strategy::Auto)
        };
        let (mut on_cuda, mut on_cpu) = (engine(&config), engine(&cpu(&config)));
        let frame = Frame::boxes(&boxes).filters(&filters);
        let report = on_cuda.update(frame)?.clone();
        on_cpu.update(frame)?;
        same(on_cuda.pairs(), on_cpu.pairs())?;
        trees += usize::from(is_tree(&report));
    }
    // In the other scenes the sampled boxes make it take the sweep.
    holds(2 * trees > hard::ALL.len(), || format!("{trees} trees"))
}

fn fixed() -> Filter {
    Filter {
        flags: FilterFlags::STATIC,
        ..Filter::default()
    }
}

/// Random frames with everything that a frame may have, by every call.
fn tree_in_all_calls() -> Result<(), Failed> {
    for seed in 0..sized(24, 4) as u64 {
        let mut random = Random::new(seed);
        let mut some = super::uniform(&mut random, SAMPLED, 2.0);
        for _ in 0..20 {
            let (from, to) = (random.below(SAMPLED), random.below(SAMPLED));
            some[to] = match random.below(4) {
                0 => Aabb::EMPTY,
                1 => Aabb::new([f32::NEG_INFINITY; 3], [f32::INFINITY, 0.0, f32::INFINITY]),
                2 => Aabb::new([f32::INFINITY; 3], [f32::INFINITY; 3]),
                _ => some[from],
            };
        }
        let (boxes, in_heap) = with_heap(&some);
        let n = boxes.len();
        let layers = random.chance(2);
        let filters: Vec<Filter> = (0..n)
            .map(|i| Filter {
                layers: if layers { 1 << random.below(3) } else { 1 },
                mask: if layers { random.bits() as u32 & 7 } else { 1 },
                group: random.below(4) as u32,
                flags: FilterFlags(if in_heap[i] {
                    1
                } else {
                    random.below(4) as u32
                }),
            })
            .collect();
        let worlds: Vec<u32> = (0..n)
            .map(|i| {
                if in_heap[i] {
                    3
                } else {
                    [0, 3, 9, u32::MAX][random.below(4)]
                }
            })
            .collect();
        let mut excluded: Vec<Pair> = (0..n)
            .map(|_| Pair::new(random.below(n) as u32, random.below(n) as u32))
            .filter(|pair| pair.a < pair.b)
            .collect();
        excluded.sort_unstable();
        let exact: Vec<Aabb64> = boxes
            .iter()
            .map(|b| Aabb64::new(b.min.map(f64::from), b.max.map(|x| f64::from(x) + 1e-9)))
            .collect();
        let mut frame = if seed % 3 == 2 {
            Frame::exact(&exact)
        } else {
            Frame::boxes(&boxes)
        };
        frame = frame.filters(&filters).excluded(&excluded);
        if seed % 2 == 1 {
            frame = frame.worlds(&worlds);
        }
        let config = Config {
            rule: RULES[seed as usize % 2],
            min_resting: Some(if seed % 4 < 2 { 1 } else { usize::MAX }),
            ..cuda(Strategy::Auto)
        };
        all_calls(&config, frame, &boxes, &in_heap)?;
    }
    Ok(())
}

fn all_calls(
    config: &Config,
    frame: Frame,
    boxes: &[Aabb],
    in_heap: &[bool],
) -> Result<(), Failed> {
    let (mut on_cuda, mut on_cpu) = (engine(config), engine(&cpu(config)));
    on_cpu.update(frame)?;
    let report = on_cuda.update(frame)?;
    holds(is_tree(report), || format!("{report:?}"))?;
    equal(on_cuda.subdivision().is_some(), false)?;
    for _ in 0..4 {
        same(on_cuda.pairs(), on_cpu.pairs())?;
        on_cuda.update(frame)?;
    }
    let mut all = Vec::new();
    on_cuda.for_each_pair_chunk(frame, 100, |pairs| all.extend_from_slice(pairs))?;
    same(&all, on_cpu.pairs())?;
    // Between two sets no box pairs with one of its own set.
    let (first, second) = (&boxes[..boxes.len() - 100], &boxes[4000..]);
    same(
        &on_cuda.overlaps_between(first, second)?,
        &on_cpu.overlaps_between(first, second)?,
    )?;
    if config.rule == OverlapRule::Closed {
        let of = |&heap: &bool| if heap { fixed() } else { Filter::default() };
        let filters: Vec<Filter> = in_heap.iter().map(of).collect();
        let mut graph = FrameGraph::new(config, boxes, Some(&filters), None, 9).map_err(text)?;
        graph.launch().map_err(text)?;
        let report = graph.report().map_err(text)?;
        holds(report.stats.strategy == Strategy::Subdivided, || {
            format!("{report:?}")
        })?;
        let stream = graph.stream().clone();
        let pairs = graph.pairs().map_err(text)?.range(..report.pairs as usize);
        let pairs = stream.to_vec(pairs.map_err(text)?).map_err(text)?;
        on_cpu.update(Frame::boxes(boxes).filters(&filters))?;
        same(&pairs, on_cpu.pairs())?;
    }
    Ok(())
}
