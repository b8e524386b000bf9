//! Scenes whose boxes move little: the CPU engine's neighbour list, and its kept tree where boxes
//! move by more, against an engine that begins anew with each frame.

#![allow(clippy::unwrap_used, missing_docs)]

#[allow(dead_code)] // only some of it is needed here
#[path = "common/random.rs"]
mod random;

use random::{Random, around};
use sap::{
    Aabb, Aabb64, Backend, BroadPhase, Config, Filter, FilterFlags, Frame, OnInvalid, OverlapRule,
    Pair, Strategy,
};
use std::num::NonZero;

/// What a scene has, and how its boxes move.
#[derive(Clone, Copy, Default)]
struct Case {
    n: usize,
    /// How far a box moves in a frame, in its own size.
    step: f32,
    /// One box in this many moves.
    one_in: usize,
    filters: bool,
    worlds: bool,
    excluded: bool,
    /// Empty, infinite, flat and bad boxes.
    odd: bool,
    listed: bool,
    exact: bool,
    margin: f32,
    open: bool,
    /// Boxes come and go.
    comes_and_goes: bool,
}

struct World {
    boxes: Vec<Aabb>,
    filters: Vec<Filter>,
    worlds: Vec<u32>,
    excluded: Vec<Pair>,
    exact: Vec<Aabb64>,
}

fn one(n: usize, random: &mut Random) -> Aabb {
    let side = (n as f32).cbrt();
    let centre = [(); 3].map(|()| random.between(0.0, side));
    around(centre, [(); 3].map(|()| random.between(0.2, 0.5)))
}

fn filter(random: &mut Random) -> Filter {
    Filter {
        layers: 1 << random.below(3),
        mask: 1 + random.below(7) as u32,
        group: random.below(4) as u32,
        flags: FilterFlags(random.below(4) as u32),
    }
}

impl World {
    fn new(case: &Case, random: &mut Random) -> Self {
        let n = case.n;
        let excluded = (0..n.saturating_sub(1) as u32).step_by(3);
        Self {
            boxes: (0..n).map(|_| one(n, random)).collect(),
            filters: (0..n).map(|_| filter(random)).collect(),
            worlds: (0..n).map(|_| random.below(3) as u32).collect(),
            excluded: excluded.map(|a| Pair { a, b: a + 1 }).collect(),
            exact: Vec::new(),
        }
    }

    /// Moves some boxes and lists them.
    fn step(&mut self, case: &Case, frame: usize, random: &mut Random) -> Vec<u32> {
        let mut changed = Vec::new();
        for i in 0..self.boxes.len() {
            if !(i + frame).is_multiple_of(case.one_in) {
                continue;
            }
            changed.push(i as u32);
            let b = &mut self.boxes[i];
            if case.odd && random.below(40) == 0 {
                let all = [f32::INFINITY; 3];
                *b = match random.below(6) {
                    0 => Aabb::EMPTY,
                    1 => Aabb::new(all.map(|x| -x), all),
                    2 => Aabb::new([f32::NAN; 3], [0.0; 3]),
                    3 => Aabb::new([1.0; 3], [1.0; 3]),
                    4 => Aabb::new([-1e30, 0.0, -1e30], [1e30, 0.1, 1e30]),
                    _ => one(case.n, random),
                };
            } else if b.min.iter().chain(&b.max).all(|x| x.is_finite()) {
                for k in 0..3 {
                    let step = case.step * (b.max[k] - b.min[k]).min(1.0);
                    let step = random.between(-step, step);
                    (b.min[k], b.max[k]) = (b.min[k] + step, b.max[k] + step);
                }
            } else {
                *b = one(case.n, random);
            }
            if case.filters && random.below(50) == 0 {
                self.filters[i] = filter(random);
            }
            if case.worlds && random.below(50) == 0 {
                self.worlds[i] = random.below(3) as u32;
            }
        }
        if case.comes_and_goes && frame % 5 == 4 {
            let n = case.n / 2 + random.below(case.n);
            self.boxes.resize_with(n, || one(case.n, random));
            self.filters.resize_with(n, || filter(random));
            self.worlds.resize(n, 1);
        }
        let wide = |side: [f32; 3]| side.map(|x| f64::from(x) * (1.0 + 1e-9));
        let boxes = self.boxes.iter();
        self.exact = boxes
            .map(|b| Aabb64::new(wide(b.min), wide(b.max)))
            .collect();
        changed
    }

    fn frame(&self, case: &Case) -> Frame<'_> {
        let mut frame = if case.exact {
            Frame::exact(&self.exact)
        } else {
            Frame::boxes(&self.boxes)
        };
        if case.filters {
            frame = frame.filters(&self.filters);
        }
        if case.worlds {
            frame = frame.worlds(&self.worlds);
        }
        if case.excluded {
            frame = frame.excluded(&self.excluded);
        }
        frame
    }
}

/// Pairs that one list has and the other has not; both are sorted.
fn missing(from: &[Pair], of: &[Pair]) -> Vec<Pair> {
    let missing = of.iter().filter(|pair| from.binary_search(pair).is_err());
    missing.copied().collect()
}

/// Runs a case. Returns the tests of its last frames, and those of an engine that begins anew.
fn check(case: &Case, frames: usize) -> [u64; 2] {
    let mut random = Random::new(case.n as u64 + 3);
    let mut world = World::new(case, &mut random);
    let config = Config {
        backend: Backend::Cpu,
        margin: case.margin,
        on_invalid: if case.odd {
            OnInvalid::Skip
        } else {
            OnInvalid::Error
        },
        rule: if case.open {
            OverlapRule::Open
        } else {
            OverlapRule::Closed
        },
        ..Config::default()
    };
    let mut kept = BroadPhase::new(config.clone()).unwrap();
    // With a margin, boxes are stored as the engine has kept them: compare with one that never
    // leaves any out, and keeps no list and no tree.
    let mut whole = BroadPhase::new(Config {
        min_resting: Some(usize::MAX),
        strategy: Strategy::Sweep,
        ..config
    })
    .unwrap();
    let (mut last, mut tests) = (Vec::new(), [0; 2]);
    for frame in 0..frames {
        let changed = world.step(case, frame, &mut random);
        let same_boxes = frame > 0 && !(case.comes_and_goes && frame % 5 == 4);
        let mut given = world.frame(case);
        if case.listed && same_boxes {
            given = given.changed(&changed);
        }
        let report = kept.update(given).unwrap().clone();
        let other = whole.update(world.frame(case)).unwrap().clone();
        assert!(
            kept.pairs() == whole.pairs(),
            "{} boxes, frame {frame}",
            case.n
        );
        assert_eq!(
            kept.started(),
            missing(&last, kept.pairs()),
            "frame {frame}"
        );
        assert_eq!(kept.ended(), missing(kept.pairs(), &last), "frame {frame}");
        let counts = [&report, &other].map(|r| (r.n, r.pairs, r.started, r.ended, r.invalid));
        assert_eq!(counts[0], counts[1]);
        last = kept.pairs().to_vec();
        if frame + 8 > frames {
            tests[0] += report.stats.tests;
            tests[1] += other.stats.tests;
        }
    }
    tests
}

#[test]
fn pairs_and_events_are_those_of_a_full_update() {
    let plain = Case {
        step: 0.02,
        one_in: 1,
        ..Case::default()
    };
    let cases = [
        plain,
        Case { step: 0.1, ..plain },
        Case { step: 0.5, ..plain },
        Case {
            one_in: 10,
            ..plain
        },
        Case {
            one_in: 10,
            listed: true,
            ..plain
        },
        Case {
            open: true,
            ..plain
        },
        Case {
            filters: true,
            ..plain
        },
        Case {
            worlds: true,
            excluded: true,
            ..plain
        },
        Case {
            filters: true,
            worlds: true,
            excluded: true,
            one_in: 7,
            listed: true,
            ..plain
        },
        Case { odd: true, ..plain },
        Case {
            odd: true,
            open: true,
            filters: true,
            one_in: 3,
            ..plain
        },
        Case {
            odd: true,
            worlds: true,
            one_in: 3,
            listed: true,
            ..plain
        },
        Case {
            exact: true,
            ..plain
        },
        Case {
            exact: true,
            open: true,
            filters: true,
            one_in: 5,
            listed: true,
            ..plain
        },
        Case {
            margin: 0.05,
            ..plain
        },
        Case {
            comes_and_goes: true,
            ..plain
        },
        Case {
            comes_and_goes: true,
            filters: true,
            odd: true,
            one_in: 2,
            ..plain
        },
    ];
    for case in cases {
        for n in [1, 2, 9, 60, 400, 700, 2500] {
            check(&Case { n, ..case }, if n > 1000 { 24 } else { 60 });
        }
    }
    check(
        &Case {
            n: 20_000,
            filters: true,
            ..plain
        },
        12,
    );
    // So many that candidates are tested when they are due.
    check(&Case { n: 33_000, ..plain }, 24);
    for case in [
        Case {
            filters: true,
            ..plain
        },
        Case {
            one_in: 3,
            listed: true,
            open: true,
            ..plain
        },
    ] {
        check(&Case { n: 33_000, ..case }, 8);
    }
}

#[test]
fn boxes_that_move_little_are_not_looked_for() {
    for n in [200, 1000, 10_000] {
        let [kept, whole] = check(
            &Case {
                n,
                step: 0.01,
                one_in: 1,
                ..Case::default()
            },
            40,
        );
        assert!(3 * kept < whole, "{n} boxes: {kept} tests, {whole} in full");
    }
}

#[test]
fn small_frames_are_found_by_the_kept_tree() {
    let n = 300;
    let case = Case {
        n,
        step: 0.2,
        one_in: 1,
        ..Case::default()
    };
    let [kept, _] = check(&case, 20);
    let all_against_all = 7 * n as u64 * (n as u64 - 1) / 2;
    assert!(4 * kept < all_against_all, "{kept} tests");
}

#[test]
fn boxes_that_jump_cost_little_more_than_a_full_update() {
    // Half the size of a box in a frame, and now and then a frame of little motion.
    for n in [300, 3000] {
        let [kept, whole] = check(
            &Case {
                n,
                step: 0.5,
                one_in: 1,
                ..Case::default()
            },
            80,
        );
        assert!(
            kept < 2 * whole + 8 * (n * n) as u64 / 2,
            "{n} boxes: {kept} tests, {whole}"
        );
    }
}

#[test]
fn a_frame_of_too_many_pairs_leaves_the_last_result() {
    let mut random = Random::new(11);
    let start: Vec<Aabb> = (0..200).map(|_| one(200, &mut random)).collect();
    // Boxes keep their sizes and come nearer to each other by 1 % in each frame.
    let at = |frame: i32| -> Vec<Aabb> {
        let scale = 0.99_f32.powi(frame);
        let moved = |b: &Aabb| {
            let min = b.min.map(|x| x * scale);
            Aabb::new(min, std::array::from_fn(|k| min[k] + (b.max[k] - b.min[k])))
        };
        start.iter().map(moved).collect()
    };
    let limit = 400;
    let config = Config {
        backend: Backend::Cpu,
        pair_memory: Some(8 * limit),
        ..Config::default()
    };
    let mut broad_phase = BroadPhase::new(config).unwrap();
    let (mut last, mut failed) = (Vec::new(), 0);
    for frame in (0..80).chain((0..80).rev()) {
        match broad_phase.update(&at(frame)).map(|report| report.pairs) {
            Ok(count) => {
                assert_eq!(count, broad_phase.pairs().len() as u64);
                let pairs = broad_phase.pairs();
                assert_eq!(
                    broad_phase.started(),
                    missing(&last, pairs),
                    "frame {frame}"
                );
                assert_eq!(broad_phase.ended(), missing(pairs, &last), "frame {frame}");
                last = pairs.to_vec();
            }
            Err(error) => {
                let error = format!("{error:?}");
                assert!(error.starts_with("TooManyPairs"), "{error}");
                assert!(broad_phase.pairs() == last, "frame {frame}");
                failed += 1;
            }
        }
    }
    assert!(failed > 10 && last.len() > 100, "{failed} failed");
}

fn on_cpu() -> BroadPhase {
    BroadPhase::new(Config {
        backend: Backend::Cpu,
        ..Config::default()
    })
    .unwrap()
}

/// Moves boxes by up to 1 % of their size.
fn walk(boxes: &mut [Aabb], random: &mut Random) {
    for b in boxes {
        for k in 0..3 {
            let step = random.between(-0.01, 0.01) * (b.max[k] - b.min[k]);
            b.min[k] += step;
            b.max[k] += step;
        }
    }
}

#[test]
fn boxes_that_come_now_and_then_do_not_end_the_use_of_the_list() {
    let mut random = Random::new(12);
    let mut boxes: Vec<Aabb> = (0..1000).map(|_| one(1000, &mut random)).collect();
    let mut broad_phase = on_cpu();
    let mut by_list = 0;
    for frame in 0..500 {
        walk(&mut boxes, &mut random);
        if frame % 20 == 0 {
            boxes.push(one(1000, &mut random));
        }
        let stats = &broad_phase.update(&boxes).unwrap().stats;
        assert!(stats.timings.bounds > 0.0 && stats.timings.sweep > 0.0);
        // A sweep tests 35 boxes for each.
        by_list += u32::from(frame >= 300 && stats.tests < 8 * boxes.len() as u64);
    }
    assert!(by_list > 160, "{by_list} of 200 frames");
}

#[test]
fn boxes_that_wait_for_their_turn_are_loosened_before() {
    // With margins for only those that move when the list is built, a fifth of the boxes would
    // leave in each of the next frames.
    let n = 5000;
    let mut random = Random::new(13);
    let mut boxes: Vec<Aabb> = (0..n).map(|_| one(n, &mut random)).collect();
    let mut broad_phase = on_cpu();
    let mut most = 0;
    for frame in 0..20 {
        let turn = (frame % 5..n).step_by(5);
        turn.for_each(|i| walk(&mut boxes[i..=i], &mut random));
        let tests = broad_phase.update(&boxes).unwrap().stats.tests;
        if frame > 3 {
            most = most.max(tests);
        }
    }
    assert!(most < 6 * n as u64, "{most} tests of a frame of {n} boxes");
}

#[test]
fn margins_that_reach_to_the_next_tower_shrink() {
    // Towers of cubes, half a cube apart, that shake.
    let mut random = Random::new(14);
    let towers: Vec<Aabb> = (0..5000_u16)
        .map(|i| {
            let (tower, layer) = (i / 100, i % 100);
            let min = [tower % 7, layer, tower / 7].map(f32::from);
            let min = [1.5 * min[0], min[1], 1.5 * min[2]];
            Aabb::new(min, min.map(|x| x + 1.0))
        })
        .collect();
    let mut broad_phase = on_cpu();
    let mut tests = Vec::new();
    for _ in 0..150 {
        let mut boxes = towers.clone();
        (0..2).for_each(|_| walk(&mut boxes, &mut random));
        tests.push(broad_phase.update(&boxes).unwrap().stats.tests);
    }
    let (early, late) = (tests[10], tests[140..].iter().max().unwrap());
    assert!(
        2 * late < early,
        "{late} tests of 5,000 boxes after {early}"
    );
}

#[test]
fn frames_too_small_for_the_list_end_its_use() {
    let mut random = Random::new(13);
    let mut boxes: Vec<Aabb> = (0..200).map(|_| one(200, &mut random)).collect();
    let mut broad_phase = BroadPhase::new(Config {
        backend: Backend::Cpu,
        min_resting: Some(150),
        ..Config::default()
    })
    .unwrap();
    let mut last = Vec::new();
    for frame in 0..60 {
        walk(&mut boxes, &mut random);
        let n = if frame % 8 == 7 { 100 } else { 200 };
        broad_phase.update(&boxes[..n]).unwrap();
        let pairs = broad_phase.pairs();
        assert!(broad_phase.started() == missing(&last, pairs), "{frame}");
        assert!(broad_phase.ended() == missing(pairs, &last), "{frame}");
        last = pairs.to_vec();
    }
}

/// Boxes that differ by denormal numbers, under modes that take these for zero or make zero of
/// them.
#[cfg(target_arch = "x86_64")]
#[test]
#[allow(deprecated)]
fn denormal_numbers_count_in_every_mode() {
    use std::arch::x86_64::{_mm_getcsr, _mm_setcsr};
    let at = |x: f32| Aabb::new([x, 0.0, 0.0], [x, 1.0, 1.0]);
    // SAFETY: SSE is part of x86-64; the mode is set back before anything else is computed.
    let mode = unsafe { _mm_getcsr() };
    // That denormal operands and results are zero; that results are, with so many boxes that
    // candidates are tested when they are due.
    for (bits, more) in [(0x8040, 0), (0x8000, 0), (0x8000, 33_000)] {
        let mut broad_phase = BroadPhase::new(Config {
            threads: NonZero::new(1),
            backend: Backend::Cpu,
            ..Config::default()
        })
        .unwrap();
        for frame in 0..12_u32 {
            // Two boxes a denormal number apart, and others that move on and keep a list in use.
            let y = frame as f32 * 0.001;
            let moving = |x: f32| Aabb::new([x, y, 0.0], [x + 1.0, y + 1.0, 1.0]);
            let mut boxes = vec![at(0.0), at(f32::from_bits(7)), moving(5.0), moving(5.0)];
            boxes.extend((0..more).map(|i| moving(10.0 + 2.0 * i as f32)));
            // SAFETY: as above.
            unsafe { _mm_setcsr(mode | bits) };
            broad_phase.update(&boxes).unwrap();
            // SAFETY: as above.
            unsafe { _mm_setcsr(mode) };
            assert_eq!(
                broad_phase.pairs(),
                [Pair { a: 2, b: 3 }],
                "{bits:x} {more}"
            );
        }
    }
}
