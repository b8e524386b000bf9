//! Properties of random scenes: sizes over decades, filters, worlds, two sets, chunks, motion,
//! numbers of threads.

mod common;

use common::scenes::{Random, clustered, mixed_sizes, uniform, uniform_in};
use common::{RULES, oracle};
use proptest::prelude::*;
use sap::{
    Aabb, Aabb64, Backend, BroadPhase, Config, Error, Filter, FilterFlags, Frame, OnInvalid,
    OverlapRule, Pair, Strategy as Sweeping,
};
use std::collections::BTreeSet;

/// Makes a scene by kind, size and seed. Smaller kinds are simpler.
fn scene(kind: usize, n: usize, seed: u64) -> Vec<Aabb> {
    let mut random = Random::new(seed);
    match kind {
        0 => uniform(n, seed),
        1 => clustered(n, seed),
        2 => mixed_sizes(n, seed),
        // Small whole numbers: many boxes touch, are thin or equal.
        3 => {
            let mut one = || {
                let min = [(); 3].map(|()| random.below(8) as f32 - 4.0);
                Aabb::new(min, min.map(|v| v + random.below(4) as f32))
            };
            (0..n).map(|_| one()).collect()
        }
        // Arbitrary bits, sorted. Some sides are infinite, some boxes empty.
        4 => {
            let mut number = || loop {
                let value = f32::from_bits(random.bits() as u32);
                if !value.is_nan() {
                    return value;
                }
            };
            let mut one = || {
                let sides = [(); 3].map(|()| (number(), number()));
                Aabb::new(sides.map(|(a, b)| a.min(b)), sides.map(|(a, b)| a.max(b)))
            };
            let mut boxes: Vec<Aabb> = (0..n).map(|_| one()).collect();
            boxes
                .iter_mut()
                .step_by(7)
                .for_each(|b| b.max[1] = f32::INFINITY);
            boxes
                .iter_mut()
                .step_by(11)
                .for_each(|b| b.min[2] = f32::NEG_INFINITY);
            boxes.iter_mut().step_by(13).for_each(|b| *b = Aabb::EMPTY);
            boxes
        }
        // Long sticks along each axis.
        5 => {
            let mut boxes = uniform(n, seed);
            for b in &mut boxes {
                b.max[random.below(3)] += random.between(0.0, 20.0);
            }
            boxes
        }
        _ => uniform_in(n, [30.0, 0.0, 0.01], seed),
    }
}

fn any_scene(max: usize) -> impl Strategy<Value = Vec<Aabb>> {
    (0_usize..7, 0..=max, any::<u64>()).prop_map(|(kind, n, seed)| scene(kind, n, seed))
}

fn any_rule() -> impl Strategy<Value = OverlapRule> {
    prop::sample::select(RULES.to_vec())
}

fn any_strategy() -> impl Strategy<Value = Sweeping> {
    prop::sample::select(Sweeping::ALL.to_vec())
}

fn config(strategy: Sweeping, rule: OverlapRule) -> Config {
    Config {
        backend: Backend::Cpu,
        strategy,
        rule,
        ..Config::default()
    }
}

fn updated<'a>(config: Config, frame: impl Into<Frame<'a>>) -> BroadPhase {
    let mut broad_phase = BroadPhase::new(config).expect("the CPU is there");
    broad_phase.update(frame).expect("the frame is valid");
    broad_phase
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn pairs_are_those_of_brute_force(boxes in any_scene(500), rule in any_rule()) {
        let expected = oracle::brute(&boxes, rule);
        prop_assert_eq!(oracle::ordered(&boxes, rule), &expected[..]);
        for &strategy in Sweeping::ALL {
            let broad_phase = updated(config(strategy, rule), &boxes);
            prop_assert_eq!(broad_phase.pairs(), &expected, "{}", strategy);
            prop_assert_eq!(broad_phase.report().pairs, expected.len() as u64);
            prop_assert!(broad_phase.report().stats.tests >= expected.len() as u64);
        }
    }

    #[test]
    fn filters_worlds_and_exclusions(
        boxes in any_scene(250), seed in any::<u64>(), strategy in any_strategy(), rule in any_rule(), spread in 1..60_u32,
    ) {
        let mut random = Random::new(seed);
        let n = boxes.len();
        let filters: Vec<Filter> = (0..n).map(|_| Filter {
            layers: random.bits() as u32 % 8,
            mask: random.bits() as u32 % 8,
            group: (random.bits() as u32 % 6).saturating_sub(2),
            flags: FilterFlags((random.bits() as u32 % 4) & random.bits() as u32),
        }).collect();
        let worlds: Vec<u32> = (0..n).map(|_| (random.below(3) as u32).wrapping_mul(u32::MAX / spread)).collect();
        let all = oracle::brute(&boxes, rule);
        let excluded: Vec<Pair> = all.iter().copied().filter(|_| random.below(4) == 0).collect();
        let keep = |with: [bool; 3], pair: &Pair| {
            let (i, j) = (pair.a as usize, pair.b as usize);
            (!with[0] || filters[i].allows(&filters[j]))
                && (!with[1] || worlds[i] == worlds[j])
                && (!with[2] || excluded.binary_search(pair).is_err())
        };
        for with in [[true, false, false], [false, true, false], [false, false, true], [true, true, true]] {
            let mut frame = Frame::boxes(&boxes);
            if with[0] { frame = frame.filters(&filters) }
            if with[1] { frame = frame.worlds(&worlds) }
            if with[2] { frame = frame.excluded(&excluded) }
            let expected: Vec<Pair> = all.iter().copied().filter(|pair| keep(with, pair)).collect();
            let mut broad_phase = updated(config(strategy, rule), frame);
            prop_assert_eq!(broad_phase.pairs(), &expected, "{:?}", with);
            let mut chunked = Vec::new();
            broad_phase.for_each_pair_chunk(frame, 100, |pairs| chunked.extend_from_slice(pairs)).expect("the frame is valid");
            prop_assert_eq!(&chunked, &expected, "{:?}", with);
        }
    }

    #[test]
    fn shuffled_scenes_map_back(boxes in any_scene(400), seed in any::<u64>(), strategy in any_strategy(), rule in any_rule()) {
        let mut random = Random::new(seed);
        let mut origin: Vec<u32> = (0..boxes.len() as u32).collect();
        (1..origin.len()).for_each(|i| origin.swap(i, random.below(i + 1)));
        let shuffled: Vec<Aabb> = origin.iter().map(|&i| boxes[i as usize]).collect();
        let found = updated(config(strategy, rule), &shuffled);
        let back = found.pairs().iter().map(|pair| Pair::new(origin[pair.a as usize], origin[pair.b as usize]));
        let back: BTreeSet<Pair> = back.collect();
        let expected = updated(config(strategy, rule), &boxes);
        prop_assert!(back.iter().eq(expected.pairs()));
    }

    #[test]
    fn events_add_up_to_the_difference(
        frames in prop::collection::vec(any_scene(120), 1..8), strategy in any_strategy(), rule in any_rule(), margin in prop::sample::select(vec![0.0, 0.2_f32]),
    ) {
        let mut broad_phase = BroadPhase::new(Config { margin, ..config(strategy, rule) }).expect("the CPU is there");
        let mut live: BTreeSet<Pair> = BTreeSet::new();
        for boxes in &frames {
            broad_phase.update(boxes).expect("the frame is valid");
            for pair in broad_phase.ended() {
                prop_assert!(live.remove(pair), "{:?} ended but was not there", pair);
            }
            for pair in broad_phase.started() {
                prop_assert!(live.insert(*pair), "{:?} started twice", pair);
            }
            prop_assert!(live.iter().eq(broad_phase.pairs()));
            if margin == 0.0 {
                prop_assert_eq!(broad_phase.pairs(), oracle::brute(boxes, rule));
            }
        }
    }

    #[test]
    fn margins_miss_nothing(n in 0_usize..200, seed in any::<u64>(), strategy in any_strategy(), rule in any_rule()) {
        let margin = 0.125;
        let mut boxes = uniform(n, seed);
        let mut random = Random::new(seed);
        let mut broad_phase = BroadPhase::new(Config { margin, ..config(strategy, rule) }).expect("the CPU is there");
        for _ in 0..5 {
            broad_phase.update(&boxes).expect("the frame is valid");
            let found: BTreeSet<_> = broad_phase.pairs().iter().copied().collect();
            prop_assert!(oracle::brute(&boxes, rule).iter().all(|pair| found.contains(pair)));
            let loose: Vec<Aabb> = boxes.iter().map(|b| b.loosened(2.01 * margin)).collect();
            let loose: BTreeSet<_> = oracle::brute(&loose, rule).into_iter().collect();
            prop_assert!(found.is_subset(&loose));
            for b in &mut boxes {
                let step = random.between(-0.1, 0.1);
                *b = Aabb::new(b.min.map(|v| v + step), b.max.map(|v| v + step));
            }
        }
    }

    #[test]
    fn two_sets_are_those_of_brute_force(a in any_scene(250), b in any_scene(250), strategy in any_strategy(), rule in any_rule()) {
        let mut broad_phase = BroadPhase::new(config(strategy, rule)).expect("the CPU is there");
        prop_assert_eq!(broad_phase.overlaps_between(&a, &b).expect("both are valid"), oracle::brute_between(&a, &b, rule));
        prop_assert_eq!(broad_phase.overlaps_between(&a, &a).expect("both are valid"), oracle::brute_between(&a, &a, rule));
    }

    #[test]
    fn swept_boxes_enclose_both_ends(n in 0_usize..200, seeds in any::<[u64; 2]>(), kind in 0_usize..7, strategy in any_strategy(), rule in any_rule()) {
        let [start, end] = seeds.map(|seed| scene(kind, n, seed));
        let union: Vec<Aabb> = start.iter().zip(&end).map(|(s, e)| s.merged(e)).collect();
        let broad_phase = updated(config(strategy, rule), Frame::swept(&start, &end));
        prop_assert_eq!(broad_phase.pairs(), oracle::brute(&union, rule));
    }

    #[test]
    fn f64_boxes_are_tested_in_f64(boxes in any_scene(250), seed in any::<u64>(), scale in prop::sample::select(vec![1.0, 1e-8, 1e-50, 1e200]), strategy in any_strategy(), rule in any_rule()) {
        let mut random = Random::new(seed);
        // Bounds near those of f32, but between them.
        let mut nudge = |value: f32| (f64::from(value) + (random.below(5) as f64 - 2.0) * 1e-12) * scale;
        let wide: Vec<Aabb64> = boxes.iter().map(|b| {
            if b.is_empty() { return Aabb64::EMPTY }
            let (p, q) = (b.min.map(&mut nudge), b.max.map(&mut nudge));
            Aabb64::new(std::array::from_fn(|k| p[k].min(q[k])), std::array::from_fn(|k| p[k].max(q[k])))
        }).collect();
        let mut expected = Vec::new();
        for (i, a) in wide.iter().enumerate() {
            let met = wide.iter().enumerate().skip(i + 1).filter(|(_, b)| a.overlaps(b, rule));
            expected.extend(met.map(|(j, _)| Pair { a: i as u32, b: j as u32 }));
        }
        let broad_phase = updated(config(strategy, rule), Frame::exact(&wide));
        prop_assert_eq!(broad_phase.pairs(), expected);
    }

    #[test]
    fn no_bits_panic(numbers in prop::collection::vec(any::<[u32; 6]>(), 0..200), strategy in any_strategy(), rule in any_rule()) {
        let boxes: Vec<Aabb> = numbers.iter().map(|bits| Aabb::from_min_max(bits.map(f32::from_bits))).collect();
        let first = boxes.iter().position(|b| b.check().is_err());
        let mut broad_phase = BroadPhase::new(config(strategy, rule)).expect("the CPU is there");
        match (broad_phase.update(&boxes).map(|report| report.pairs), first) {
            (Err(Error::InvalidAabb { index, .. }), Some(first)) => prop_assert_eq!(index, first),
            (Ok(_), None) => {}
            other => prop_assert!(false, "{:?}", other),
        }
        let skip = Config { on_invalid: OnInvalid::Skip, ..config(strategy, rule) };
        let broad_phase = updated(skip, &boxes);
        prop_assert_eq!(broad_phase.pairs(), oracle::brute(&boxes, rule));
        for b in boxes.iter().take(20) {
            broad_phase.query_box(b)?;
            broad_phase.query_sphere(b.min, b.max[0])?;
            broad_phase.query_ray(b.min, b.max, b.max[2])?;
        }
    }
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn pairs_are_those_of_parry(kind in prop::sample::select(vec![0_usize, 1, 2, 5, 6]), n in 2000_usize..12_000, seed in any::<u64>(), rule in any_rule()) {
        let boxes = scene(kind, n, seed);
        let expected = oracle::parry(&boxes, rule);
        for &strategy in Sweeping::ALL {
            let broad_phase = updated(config(strategy, rule), &boxes);
            prop_assert_eq!(broad_phase.pairs(), &expected, "{}", strategy);
        }
    }

    #[test]
    fn thread_counts_change_nothing(kind in 0_usize..7, n in 2000_usize..6000, seed in any::<u64>(), strategy in any_strategy(), rule in any_rule()) {
        let boxes = scene(kind, n, seed);
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
            pool.install(|| {
                let mut broad_phase = updated(config(strategy, rule), &boxes[..n / 2]);
                broad_phase.update(&boxes).expect("the frame is valid");
                let report = broad_phase.report();
                let key = (report.stats.tests, report.stats.axis, report.stats.strategy);
                (broad_phase.pairs().to_vec(), broad_phase.started().to_vec(), broad_phase.ended().to_vec(), key)
            })
        };
        let one = run(1);
        for threads in [2, 3, 8] {
            prop_assert!(run(threads) == one, "{} threads", threads);
        }
    }
}
