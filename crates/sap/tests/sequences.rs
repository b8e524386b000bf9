//! Long sequences of frames of hard scenes, with and without lists of changed boxes, each frame
//! pair by pair against parry's tree.
//!
//! `RADSWEEP_SEQUENCE_FRAMES` is the number of frames of each sequence.

mod common;

use common::generators::{Made, Scene};
use common::independent;
use common::quick;
use common::random::Random;
use common::shapes::Shape;
use sap::{Aabb, Backend, BroadPhase, Config, Filter, FilterFlags, OverlapRule, Pair, Strategy};

/// More boxes than an incremental update needs.
const N: usize = 1_400;
/// A scene of more pairs is left out.
const MOST_PAIRS: usize = 60_000;
/// The number of frames of a scene.
const SCENE: usize = 40;

#[test]
fn closed() {
    run(OverlapRule::Closed, 1);
}

#[test]
fn open() {
    run(OverlapRule::Open, 2);
}

fn run(rule: OverlapRule, seed: u64) {
    let frames = std::env::var("RADSWEEP_SEQUENCE_FRAMES").ok();
    let frames = frames.map_or(if quick() { 80 } else { 400 }, |frames| {
        frames.parse().expect("a number")
    });
    let mut random = Random::new(seed);
    let mut engines: Vec<BroadPhase> = Strategy::ALL
        .iter()
        .map(|&strategy| {
            let config = Config {
                backend: Backend::Cpu,
                strategy,
                rule,
                ..Config::default()
            };
            BroadPhase::new(config).expect("the CPU is there")
        })
        .collect();
    let mut last: Vec<Pair> = Vec::new();
    let (mut done, mut rested) = (0, 0);
    while done < frames {
        let shape = Shape::ALL[random.below(Shape::ALL.len())];
        let scene = Scene::any(shape, N + random.below(300), &mut random);
        let mut made = scene.make();
        if independent::pairs(&made, rule).len() > MOST_PAIRS {
            continue;
        }
        for frame in 0..SCENE {
            let changed = if frame == 0 {
                (0..made.boxes.len() as u32).collect()
            } else {
                change(&mut made, frame, &mut random)
            };
            let listed = frame % 8 < 5;
            let expected = independent::pairs(&made, rule);
            let what = format!("{scene}, frame {frame} of it, {done} in all");
            for engine in &mut engines {
                let whole = made.frame();
                let frame = if listed {
                    whole.changed(&changed)
                } else {
                    whole
                };
                let report = engine.update(frame).expect("boxes are valid");
                rested += u64::from(report.stats.resting > 0);
                assert!(engine.pairs() == expected, "{what}: other pairs");
                assert!(
                    engine.started() == without(&expected, &last),
                    "{what}: started"
                );
                assert!(engine.ended() == without(&last, &expected), "{what}: ended");
            }
            last = expected;
            done += 1;
        }
    }
    assert!(
        rested as usize > done,
        "{rested} incremental updates of {done} frames"
    );
}

/// Moves some boxes, and now and then changes one in each other way. Returns the changed boxes, the
/// last one twice.
fn change(made: &mut Made, frame: usize, random: &mut Random) -> Vec<u32> {
    if random.chance(12) {
        return Vec::new();
    }
    let mut changed = made.step(frame);
    for _ in 0..random.below(12) {
        let (i, j) = (
            random.below(made.boxes.len()),
            random.below(made.boxes.len()),
        );
        changed.push(i as u32);
        match random.below(8) {
            0 => made.boxes[i] = Aabb::EMPTY,
            1 => made.boxes[i] = Aabb::new([-0.0; 3], [0.0; 3]),
            2 => made.boxes[i] = Aabb::new([-f32::MAX; 3], [f32::MAX, -1e30, f32::MAX]),
            3 if !made.boxes[i].is_empty() => made.boxes[i].max = made.boxes[i].min,
            4 => {
                if let Some(filters) = &mut made.filters {
                    filters[i] = Filter {
                        flags: FilterFlags(random.below(4) as u32),
                        ..filters[j]
                    };
                }
            }
            5 => {
                if let Some(worlds) = &mut made.worlds {
                    worlds[i] = worlds[j];
                }
            }
            _ => made.boxes[i] = made.boxes[j],
        }
    }
    // Boxes are removed from the end or added there, which need not be listed.
    if random.chance(6) {
        let less = made.boxes.len() - random.below(30);
        made.boxes.truncate(less);
        made.filters
            .iter_mut()
            .for_each(|filters| filters.truncate(less));
        made.worlds
            .iter_mut()
            .for_each(|worlds| worlds.truncate(less));
        changed.retain(|&i| (i as usize) < less);
    } else if random.chance(6) {
        for _ in 0..random.below(30) {
            made.boxes.push(made.boxes[random.below(made.boxes.len())]);
            made.filters
                .iter_mut()
                .for_each(|filters| filters.push(filters[0]));
            made.worlds
                .iter_mut()
                .for_each(|worlds| worlds.push(worlds[0]));
        }
    }
    changed.extend(changed.last().copied());
    changed
}

/// Returns the elements of `these` that are not in `those`. Both are sorted.
fn without(these: &[Pair], those: &[Pair]) -> Vec<Pair> {
    let missing = |pair: &&Pair| those.binary_search(pair).is_err();
    these.iter().filter(missing).copied().collect()
}
