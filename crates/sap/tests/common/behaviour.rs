//! Edge cases that take several frames, or that check more than pairs.

use super::scenes::{Random, around, at, clustered, uniform, uniform_in};
use super::{Setup, equal, oracle, quick, same, without};
use gpusort::Algorithm;
use libtest_mimic::Failed;
use sap::internals::{PairHasher, pair_hash};
use sap::{
    Aabb, Backend, BroadPhase, Config, Error, Filter, FilterFlags, Frame, InvalidReason, OnInvalid,
    Pair, Sorts, Strategy,
};

type Check = fn(&Setup) -> Result<(), Failed>;

pub const ALL: &[(&str, Check)] = &[
    ("invalid_is_an_error_naming_the_first", invalid_errors),
    ("invalid_is_skipped", invalid_skipped),
    ("errors_in_one_order", errors_in_one_order),
    ("pair_memory_short_by_one_and_by_far", pair_memory),
    ("pair_capacity_grows", pair_capacity),
    ("added_and_removed", added_and_removed),
    ("away_and_back", away_and_back),
    ("nothing_moved", nothing_moved),
    ("sorts_are_reported", sorts),
    ("filters_in_all_combinations", filters),
    ("shuffled", shuffled),
    ("worlds", worlds),
    ("excluded", excluded),
    ("margins", margins),
    ("two_sets", two_sets),
    ("chunks", chunks),
    ("swept", swept),
    ("f64", exact),
    ("errors_leave_the_last_result", errors_leave_the_last),
    ("queries", queries),
];

/// Returns the error of a call that must fail.
fn fails<T>(result: Result<T, Error>) -> Result<Error, Failed> {
    result.err().ok_or_else(|| "no error".into())
}

fn invalid_errors(setup: &Setup) -> Result<(), Failed> {
    let boxes = uniform(300, 1);
    let mut broad_phase = setup.broad_phase();
    broad_phase.update(&boxes)?;
    let before = broad_phase.pairs().to_vec();
    for number in 0..6 {
        for value in [f32::NAN, f32::from_bits(0xffff_ffff)] {
            let mut broken = boxes.clone();
            for index in [250, 77, 299] {
                let corner = if number < 3 {
                    &mut broken[index].min
                } else {
                    &mut broken[index].max
                };
                corner[number % 3] = value;
            }
            let axis = number % 3;
            let expected = if number < 3 {
                InvalidReason::NanMin { axis }
            } else {
                InvalidReason::NanMax { axis }
            };
            match fails(broad_phase.update(&broken))? {
                Error::InvalidAabb { index, reason } => equal((index, reason), (77, expected))?,
                other => return Err(other.to_string().into()),
            }
            same(broad_phase.pairs(), &before)?;
        }
    }
    let mut broken = boxes;
    (broken[8].min[2], broken[8].max[2]) = (2.0, 1.0);
    // EMPTY on two axes only is an inverted box.
    broken[9] = Aabb::new(
        [f32::INFINITY, f32::INFINITY, 0.0],
        [f32::NEG_INFINITY, f32::NEG_INFINITY, 1.0],
    );
    match fails(broad_phase.update(&broken))? {
        Error::InvalidAabb { index, reason } => {
            equal(
                (index, reason),
                (
                    8,
                    InvalidReason::Inverted {
                        axis: 2,
                        min: 2.0,
                        max: 1.0,
                    },
                ),
            )?;
        }
        other => return Err(other.to_string().into()),
    }
    broken.remove(8);
    match fails(broad_phase.update(&broken))? {
        Error::InvalidAabb {
            index: 8,
            reason: InvalidReason::Inverted { axis: 0, .. },
        } => {}
        other => return Err(other.to_string().into()),
    }
    same(broad_phase.pairs(), &before)
}

/// A frame has every error at once, and each step mends one: lengths, excluded pairs, invalid
/// boxes, too many pairs.
fn errors_in_one_order(setup: &Setup) -> Result<(), Failed> {
    let n = 200;
    let mut engine = BroadPhase::new(Config {
        pair_memory: Some(8),
        ..setup.config()
    })?;
    let mut boxes = vec![at(0.0, 0.0, 0.0); n];
    boxes[150].min[1] = f32::NAN;
    boxes[120].min[0] = 3.0;
    let (filters, worlds) = (vec![Filter::default(); n], vec![0; n]);
    let wrong = [Pair::new(3, 5), Pair::new(2, 7)];
    let frame = || Frame::boxes(&boxes).filters(&filters).worlds(&worlds);
    let short = frame()
        .filters(&filters[1..])
        .worlds(&worlds[1..])
        .excluded(&wrong);
    let length = |error: Error| match error {
        Error::LengthMismatch { what, .. } => Ok(what),
        other => Err(Failed::from(other.to_string())),
    };
    equal(length(fails(engine.update(short))?)?, "filters")?;
    equal(
        length(fails(engine.update(short.filters(&filters)))?)?,
        "worlds",
    )?;
    let order = |error: Error| matches!(error, Error::ExcludedOrder { index: 1, .. });
    equal(order(fails(engine.update(frame().excluded(&wrong)))?), true)?;
    let bad = |error: Error| match error {
        Error::InvalidAabb { index, .. } => Ok(index),
        other => Err(Failed::from(other.to_string())),
    };
    equal(bad(fails(engine.update(frame()))?)?, 120)?;
    equal(bad(fails(engine.update(&boxes))?)?, 120)?;
    let none = |_: &[Pair]| {};
    equal(
        bad(fails(engine.for_each_pair_chunk(&boxes, 10, none))?)?,
        120,
    )?;
    // The first set is checked first.
    equal(
        bad(fails(engine.overlaps_between(&boxes, &boxes[140..]))?)?,
        120,
    )?;
    equal(
        bad(fails(
            engine.overlaps_between(&boxes[..100], &boxes[140..]),
        )?)?,
        10,
    )?;
    let many = |error: Error| matches!(error, Error::TooManyPairs { .. });
    let (good, few) = (&boxes[..120], &boxes[121..150]);
    equal(many(fails(engine.update(good))?), true)?;
    equal(many(fails(engine.overlaps_between(good, few))?), true)?;
    // Invalid boxes are skipped, and the pairs of the others are still too many.
    let mut skipping = BroadPhase::new(Config {
        on_invalid: OnInvalid::Skip,
        ..engine.config().clone()
    })?;
    equal(many(fails(skipping.update(&boxes))?), true)
}

fn invalid_skipped(setup: &Setup) -> Result<(), Failed> {
    let config = Config {
        on_invalid: OnInvalid::Skip,
        ..setup.config()
    };
    let mut broad_phase = BroadPhase::new(config)?;
    let mut boxes = uniform(2000, 2);
    for (k, index) in (13..2000).step_by(37).enumerate() {
        match k % 7 {
            6 => boxes[index] = Aabb::new([0.0, 1.0, 0.0], [9.0, 0.0, 9.0]),
            k if k < 3 => boxes[index].min[k] = f32::NAN,
            k => boxes[index].max[k - 3] = f32::NAN,
        }
    }
    broad_phase.update(&boxes)?;
    let invalid = broad_phase.report().invalid.ok_or("not counted")?;
    equal((invalid.count, invalid.first), (54, 13))?;
    equal(invalid.reason, InvalidReason::NanMin { axis: 0 })?;
    same(broad_phase.pairs(), &oracle::brute(&boxes, setup.rule))?;
    broad_phase.update(&[Aabb::new([f32::NAN; 3], [1.0; 3]); 70])?;
    equal(
        broad_phase.report().invalid.map(|invalid| invalid.count),
        Some(70),
    )?;
    same(broad_phase.pairs(), &[])
}

fn pair_memory(setup: &Setup) -> Result<(), Failed> {
    let boxes = vec![at(0.0, 0.0, 0.0); if quick() { 200 } else { 700 }];
    let expected = oracle::brute(&boxes, setup.rule);
    let count = expected.len() as u64;
    for limit in [count, count - 1, count / 1000, 0] {
        let mut broad_phase = BroadPhase::new(Config {
            pair_memory: Some(8 * limit),
            ..setup.config()
        })?;
        match broad_phase.update(&boxes) {
            Ok(report) => equal((report.pairs, limit), (count, count))?,
            Err(Error::TooManyPairs {
                count: found,
                limit: given,
            }) => {
                equal((found, given), (count, limit))?;
                equal(limit < count, true)?;
                same(broad_phase.pairs(), &[])?;
            }
            Err(other) => return Err(other.into()),
        }
        // Nothing is lost: chunks deliver the pairs that do not fit.
        let mut all = Vec::new();
        broad_phase.for_each_pair_chunk(&boxes, 1000, |pairs| all.extend_from_slice(pairs))?;
        same(&all, &expected)?;
    }
    Ok(())
}

fn pair_capacity(setup: &Setup) -> Result<(), Failed> {
    let boxes = clustered(if quick() { 400 } else { 1500 }, 3);
    let expected = oracle::brute(&boxes, setup.rule);
    for capacity in [expected.len() - 1, expected.len() / 1000, 0] {
        let mut broad_phase = BroadPhase::new(Config {
            initial_pair_capacity: Some(capacity),
            ..setup.config()
        })?;
        broad_phase.update(&boxes)?;
        same(broad_phase.pairs(), &expected)?;
    }
    Ok(())
}

/// Fails unless the events lead from one list to the other.
pub fn events_lead(broad_phase: &BroadPhase, before: &[Pair]) -> Result<(), Failed> {
    let after = broad_phase.pairs();
    same(broad_phase.started(), &without(after, before))?;
    same(broad_phase.ended(), &without(before, after))?;
    let report = broad_phase.report();
    equal(
        (report.started, report.ended),
        (
            broad_phase.started().len() as u64,
            broad_phase.ended().len() as u64,
        ),
    )?;
    equal(report.pairs, broad_phase.pairs().len() as u64)
}

fn added_and_removed(setup: &Setup) -> Result<(), Failed> {
    // Sizes 1 to 100. Absent boxes are empty, so that indices stay the same.
    let side = 6.0;
    let all = uniform_in(100, [side; 3], 4);
    let orders: [&dyn Fn(usize) -> usize; 3] = [&|i| i, &|i| 99 - i, &|i| {
        if i < 50 { 2 * i } else { 2 * (i - 50) + 1 }
    }];
    let step = if quick() { 11 } else { 1 };
    for order in orders {
        let mut broad_phase = setup.broad_phase();
        let mut boxes = vec![Aabb::EMPTY; 100];
        for frame in (0..200).step_by(step) {
            for frame in frame..(frame + step).min(200) {
                let i = order(frame % 100);
                boxes[i] = if frame < 100 { all[i] } else { Aabb::EMPTY };
            }
            let before = broad_phase.pairs().to_vec();
            broad_phase.update(&boxes)?;
            same(broad_phase.pairs(), &oracle::brute(&boxes, setup.rule))?;
            events_lead(&broad_phase, &before)?;
        }
    }
    // Now frames grow and shrink.
    let mut broad_phase = setup.broad_phase();
    for n in (1..=100).chain((0..100).rev()).step_by(step) {
        let before = broad_phase.pairs().to_vec();
        broad_phase.update(&all[..n])?;
        same(broad_phase.pairs(), &oracle::brute(&all[..n], setup.rule))?;
        events_lead(&broad_phase, &before)?;
    }
    Ok(())
}

fn away_and_back(setup: &Setup) -> Result<(), Failed> {
    let mut broad_phase = setup.broad_phase();
    let boxes = uniform(500, 5);
    broad_phase.update(&boxes)?;
    let before = broad_phase.pairs().to_vec();
    // A box that moves away and back within one frame changes nothing. Another box becomes empty,
    // so that the update has work to do.
    let mut moved = boxes.clone();
    moved[7] = at(100.0, 0.0, 0.0);
    moved[7] = boxes[7];
    moved[8] = Aabb::EMPTY;
    broad_phase.update(&moved)?;
    events_lead(&broad_phase, &before)?;
    let ended = broad_phase.ended().to_vec();
    equal(ended.iter().all(|pair| pair.a == 8 || pair.b == 8), true)?;
    broad_phase.update(&boxes)?;
    same(broad_phase.started(), &ended)?;
    same(broad_phase.pairs(), &before)
}

fn nothing_moved(setup: &Setup) -> Result<(), Failed> {
    let mut broad_phase = setup.broad_phase();
    let boxes = uniform(500, 6);
    broad_phase.update(&boxes)?;
    let before = broad_phase.pairs().to_vec();
    let report = broad_phase.update(&boxes)?;
    equal(
        (report.started, report.ended, report.stats.tests),
        (0, 0, 0),
    )?;
    equal(report.pairs, before.len() as u64)?;
    same(broad_phase.pairs(), &before)?;
    same(broad_phase.started(), &[])?;
    // Other filters on the same boxes are a change.
    let filters = vec![
        Filter {
            flags: FilterFlags::STATIC,
            ..Filter::default()
        };
        500
    ];
    broad_phase.update(Frame::boxes(&boxes).filters(&filters))?;
    same(broad_phase.pairs(), &[])?;
    same(broad_phase.ended(), &before)
}

/// The report counts the sorted keys and the sorts that ended early. An unchanged frame sorts none.
fn sorts(setup: &Setup) -> Result<(), Failed> {
    let mut broad_phase = BroadPhase::new(Config {
        // Pairs that CUDA counts by row are not sorted.
        sort: Algorithm::Onesweep,
        ..setup.config()
    })?;
    let boxes = uniform(600, 6);
    let report = broad_phase.update(&boxes)?.clone();
    let on_cuda = setup.backend == Backend::Cuda;
    let keys = report.stats.sorts.keys - report.pairs;
    match setup.strategy {
        Strategy::Sweep => equal(keys, 600)?,
        Strategy::Endpoints => equal(keys, 1200)?,
        // Cells need no sort of boxes; in columns each box is sorted at least once.
        _ if on_cuda => equal(keys, 0)?,
        _ if keys >= 600 => {}
        _ => return Err(format!("{report:?}").into()),
    }
    if on_cuda && report.stats.sorts.passes_run == 0 {
        return Err(format!("{report:?}").into());
    }
    // The first unchanged frame may sort before the comparison shows that nothing changed.
    broad_phase.update(&boxes)?;
    equal(broad_phase.update(&boxes)?.stats.sorts, Sorts::default())?;
    let row: Vec<Aabb> = (0..600)
        .map(|i| around([3.0 * i as f32, 0.0, 0.0], [1.0; 3]))
        .collect();
    let report = broad_phase.update(&row)?;
    if setup.strategy == Strategy::Sweep && report.stats.sorts.early_exits == 0 {
        return Err(format!("{report:?}").into());
    }
    Ok(())
}

fn filters(setup: &Setup) -> Result<(), Failed> {
    let mut all = Vec::new();
    for bits in 0..256_u32 {
        let [layers, mask, group, flags] = [bits & 3, bits >> 2 & 3, bits >> 4 & 3, bits >> 6];
        all.push(Filter {
            layers,
            mask,
            group,
            flags: FilterFlags(flags),
        });
    }
    // All boxes overlap, so each combination is tested against each.
    let boxes = vec![at(0.0, 0.0, 0.0); all.len()];
    let mut expected = oracle::brute(&boxes, setup.rule);
    expected.retain(|pair| {
        let (a, b) = (all[pair.a as usize], all[pair.b as usize]);
        let both = a.flags.0 & b.flags.0;
        a.layers & b.mask != 0
            && b.layers & a.mask != 0
            && (a.group == 0 || a.group != b.group)
            && both & 3 == 0
    });
    let mut broad_phase = setup.broad_phase();
    broad_phase.update(Frame::boxes(&boxes).filters(&all))?;
    same(broad_phase.pairs(), &expected)
}

fn shuffled(setup: &Setup) -> Result<(), Failed> {
    let boxes = uniform(if quick() { 500 } else { 3000 }, 7);
    let expected = setup.pairs(&boxes);
    let mut random = Random::new(7);
    let mut origin: Vec<u32> = (0..boxes.len() as u32).collect();
    for i in (1..origin.len()).rev() {
        origin.swap(i, random.below(i + 1));
    }
    let moved: Vec<Aabb> = origin.iter().map(|&i| boxes[i as usize]).collect();
    let mut found: Vec<Pair> = setup
        .pairs(&moved)
        .iter()
        .map(|pair| Pair::new(origin[pair.a as usize], origin[pair.b as usize]))
        .collect();
    found.sort_unstable();
    same(&found, &expected)
}

fn worlds(setup: &Setup) -> Result<(), Failed> {
    let n = if quick() { 400 } else { 3000 };
    let boxes = uniform_in(n, [5.0; 3], 8);
    let all = oracle::brute(&boxes, setup.rule);
    let numbering: [&dyn Fn(usize) -> u32; 4] = [
        &|_| 7,
        &|i| (i % 50) as u32,
        &|i| (i as u32 % 10) * 429_496_729,
        &|i| if i % 2 == 0 { i as u32 } else { u32::MAX },
    ];
    let mut broad_phase = setup.broad_phase();
    for number in numbering {
        let worlds: Vec<u32> = (0..n).map(number).collect();
        let mut expected = all.clone();
        expected.retain(|pair| worlds[pair.a as usize] == worlds[pair.b as usize]);
        broad_phase.update(Frame::boxes(&boxes).worlds(&worlds))?;
        same(broad_phase.pairs(), &expected)?;
        let between = broad_phase.overlaps_between(
            Frame::boxes(&boxes[..100]).worlds(&worlds[..100]),
            Frame::boxes(&boxes[100..]).worlds(&worlds[100..]),
        )?;
        let mut expected = oracle::brute_between(&boxes[..100], &boxes[100..], setup.rule);
        expected.retain(|pair| worlds[pair.a as usize] == worlds[100 + pair.b as usize]);
        same(&between, &expected)?;
    }
    Ok(())
}

fn excluded(setup: &Setup) -> Result<(), Failed> {
    let boxes = uniform_in(300, [4.0; 3], 9);
    let all = oracle::brute(&boxes, setup.rule);
    let mut excluded: Vec<Pair> = all.iter().copied().step_by(3).collect();
    excluded.extend([
        Pair { a: 0, b: 299 },
        Pair {
            a: 5,
            b: 4_000_000_000,
        },
        Pair {
            a: 4_000_000_000,
            b: 4_000_000_001,
        },
    ]);
    excluded.sort_unstable();
    let mut expected = all.clone();
    expected.retain(|pair| excluded.binary_search(pair).is_err());
    let mut broad_phase = setup.broad_phase();
    broad_phase.update(Frame::boxes(&boxes).excluded(&excluded))?;
    same(broad_phase.pairs(), &expected)?;
    let mut wrong = excluded.clone();
    wrong.swap(3, 4);
    match fails(broad_phase.update(Frame::boxes(&boxes).excluded(&wrong)))? {
        Error::ExcludedOrder { index: 4, .. } => {}
        other => return Err(other.to_string().into()),
    }
    match fails(broad_phase.update(Frame::boxes(&boxes).excluded(&[Pair { a: 2, b: 2 }])))? {
        Error::ExcludedOrder { index: 0, .. } => {}
        other => return Err(other.to_string().into()),
    }
    same(broad_phase.pairs(), &expected)
}

fn margins(setup: &Setup) -> Result<(), Failed> {
    let margin = 0.125;
    let mut broad_phase = BroadPhase::new(Config {
        margin,
        ..setup.config()
    })?;
    let mut boxes = uniform(400, 10);
    let mut stored: Vec<Aabb> = Vec::new();
    let mut random = Random::new(10);
    for frame in 0..12 {
        if frame > 0 {
            for b in &mut boxes {
                let step = [(); 3].map(|()| random.between(-0.06, 0.06));
                *b = Aabb::new(
                    std::array::from_fn(|k| b.min[k] + step[k]),
                    std::array::from_fn(|k| b.max[k] + step[k]),
                );
            }
        }
        match frame {
            4 => boxes[3] = Aabb::EMPTY,
            5 => boxes[3] = at(2.0, 2.0, 2.0),
            6 => boxes.truncate(350),
            8 => boxes.extend(uniform(30, 11)),
            _ => {}
        }
        stored.truncate(boxes.len());
        for (i, b) in boxes.iter().enumerate() {
            let fat = Aabb::new(b.min.map(|v| v - margin), b.max.map(|v| v + margin));
            match stored.get_mut(i) {
                Some(kept) => {
                    let inside = (0..3).all(|k| kept.min[k] <= b.min[k] && b.max[k] <= kept.max[k]);
                    if !inside || b.is_empty() {
                        *kept = fat;
                    }
                }
                None => stored.push(fat),
            }
        }
        broad_phase.update(&boxes)?;
        same(broad_phase.pairs(), &oracle::brute(&stored, setup.rule))?;
    }
    // Small motion changes nothing, and costs only the check.
    let before = broad_phase.pairs().to_vec();
    boxes.iter_mut().for_each(|b| b.max[0] -= 1e-4);
    equal(broad_phase.update(&boxes)?.stats.tests, 0)?;
    same(broad_phase.pairs(), &before)?;
    for margin in [-1.0, f32::NAN, f32::INFINITY] {
        match fails(
            BroadPhase::new(Config {
                margin,
                ..setup.config()
            })
            .map(drop),
        )? {
            Error::Margin { .. } => {}
            other => return Err(other.to_string().into()),
        }
    }
    Ok(())
}

fn two_sets(setup: &Setup) -> Result<(), Failed> {
    let scale = if quick() { 10 } else { 1 };
    let (many, few) = (
        uniform(4000 / scale, 12),
        uniform_in(300 / scale, [15.0; 3], 13),
    );
    let touching: Vec<Aabb> = (0..50).map(|i| at(i as f32, 0.0, 0.0)).collect();
    let mut holes = few.clone();
    holes.iter_mut().step_by(2).for_each(|b| *b = Aabb::EMPTY);
    let mut walls = few.clone();
    walls[0] = Aabb::new([f32::NEG_INFINITY; 3], [f32::INFINITY, 3.0, f32::INFINITY]);
    let sets = [&many, &few, &touching, &holes, &walls, &Vec::new()];
    let mut broad_phase = setup.broad_phase();
    broad_phase.update(&few)?;
    let before = broad_phase.pairs().to_vec();
    for a in sets {
        for b in sets {
            same(
                &broad_phase.overlaps_between(a, b)?,
                &oracle::brute_between(a, b, setup.rule),
            )?;
        }
    }
    let excluded = [Pair { a: 2, b: 0 }, Pair { a: 2, b: 2 }];
    let found =
        broad_phase.overlaps_between(Frame::boxes(&touching).excluded(&excluded), &touching)?;
    let mut expected = oracle::brute_between(&touching, &touching, setup.rule);
    expected.retain(|pair| !excluded.contains(pair));
    same(&found, &expected)?;
    let filters = vec![
        Filter {
            layers: 2,
            mask: 1,
            ..Filter::default()
        };
        few.len()
    ];
    let found = broad_phase.overlaps_between(
        Frame::boxes(&few).filters(&filters),
        Frame::boxes(&few).filters(&filters),
    )?;
    same(&found, &[])?;
    // The last update is unchanged.
    same(broad_phase.pairs(), &before)
}

fn chunks(setup: &Setup) -> Result<(), Failed> {
    let scale = if quick() { 10 } else { 1 };
    let dense = uniform_in(600 / scale, [3.0; 3], 14);
    for boxes in [
        &uniform(3000 / scale, 15),
        &dense,
        &vec![at(0.0, 0.0, 0.0); 400 / scale],
        &Vec::new(),
    ] {
        let expected = oracle::brute(boxes, setup.rule);
        let mut broad_phase = setup.broad_phase();
        for chunk in [0, 1, 7, 1000, usize::MAX] {
            let (mut all, mut calls, mut fits) = (Vec::new(), 0, true);
            let mut hasher = PairHasher::new();
            let report = broad_phase.for_each_pair_chunk(boxes, chunk, |pairs| {
                fits &= !pairs.is_empty() && pairs.len() <= chunk.max(1);
                all.extend_from_slice(pairs);
                hasher.write(pairs);
                calls += 1;
            })?;
            same(&all, &expected)?;
            equal(
                (report.pairs, report.chunks, fits),
                (all.len() as u64, calls, true),
            )?;
            equal(hasher.finish(), pair_hash(&expected))?;
        }
        equal(broad_phase.pairs().len(), 0)?;
    }
    Ok(())
}

fn swept(setup: &Setup) -> Result<(), Failed> {
    let (start, end) = (uniform(600, 16), uniform(600, 17));
    let union: Vec<Aabb> = start.iter().zip(&end).map(|(s, e)| s.merged(e)).collect();
    let mut broad_phase = setup.broad_phase();
    broad_phase.update(Frame::swept(&start, &end))?;
    same(broad_phase.pairs(), &oracle::brute(&union, setup.rule))?;
    let mut broken = end.clone();
    broken[44].max[1] = f32::NAN;
    match fails(broad_phase.update(Frame::swept(&start, &broken)))? {
        Error::InvalidAabb {
            index: 44,
            reason: InvalidReason::NanMax { axis: 1 },
        } => {}
        other => return Err(other.to_string().into()),
    }
    // A fast box passes through a thin wall.
    let wall = around([0.0; 3], [0.01, 5.0, 5.0]);
    let (from, to) = (
        around([-9.0, 0.0, 0.0], [0.1; 3]),
        around([9.0, 0.0, 0.0], [0.1; 3]),
    );
    broad_phase.update(Frame::swept(&[wall, from], &[wall, to]))?;
    same(broad_phase.pairs(), &[Pair { a: 0, b: 1 }])
}

fn exact(setup: &Setup) -> Result<(), Failed> {
    use sap::Aabb64;
    // Bounds that are equal in f32, and some beyond its range.
    let mut random = Random::new(18);
    let mut number = || 16.0 + random.below(40) as f64 * 1e-9;
    let mut boxes: Vec<Aabb64> = (0..250)
        .map(|_| {
            let pairs = [(); 3].map(|()| (number(), number()));
            Aabb64::new(pairs.map(|(a, b)| a.min(b)), pairs.map(|(a, b)| a.max(b)))
        })
        .collect();
    boxes.push(Aabb64::new([-1e300; 3], [1e300; 3]));
    boxes.push(Aabb64::new([1e300; 3], [f64::INFINITY; 3]));
    boxes.push(Aabb64::new([1e299; 3], [1e300; 3]));
    boxes.push(Aabb64::new([-1e-310; 3], [-0.0; 3]));
    boxes.push(Aabb64::new([0.0; 3], [1e-310; 3]));
    boxes.push(Aabb64::EMPTY);
    let mut expected = Vec::new();
    for (i, a) in boxes.iter().enumerate() {
        for (j, b) in boxes.iter().enumerate().skip(i + 1) {
            if a.overlaps(b, setup.rule) {
                expected.push(Pair {
                    a: i as u32,
                    b: j as u32,
                });
            }
        }
    }
    let mut broad_phase = setup.broad_phase();
    broad_phase.update(Frame::exact(&boxes))?;
    same(broad_phase.pairs(), &expected)?;
    let between =
        broad_phase.overlaps_between(Frame::exact(&boxes[..1]), Frame::exact(&boxes[1..]))?;
    let of_first = expected.iter().filter(|pair| pair.a == 0).map(|pair| Pair {
        a: 0,
        b: pair.b - 1,
    });
    same(&between, &of_first.collect::<Vec<_>>())
}

fn errors_leave_the_last(setup: &Setup) -> Result<(), Failed> {
    let boxes = uniform(200, 19);
    let mut broad_phase = setup.broad_phase();
    broad_phase.update(&boxes)?;
    let before = (
        broad_phase.pairs().to_vec(),
        broad_phase.started().to_vec(),
        broad_phase.report().clone(),
    );
    let filters = vec![Filter::default(); 199];
    let lengths = [
        fails(broad_phase.update(Frame::boxes(&boxes).filters(&filters)))?,
        fails(broad_phase.update(Frame::boxes(&boxes).worlds(&[1])))?,
        fails(broad_phase.update(Frame::swept(&boxes, &boxes[1..])))?,
    ];
    for (error, expected) in lengths.iter().zip(["filters", "worlds", "end boxes"]) {
        match error {
            Error::LengthMismatch {
                what, boxes: 200, ..
            } => equal(*what, expected)?,
            other => return Err(other.to_string().into()),
        }
    }
    let mut broken = boxes.clone();
    broken[0].min[0] = f32::NAN;
    fails(broad_phase.update(&broken))?;
    fails(broad_phase.overlaps_between(&boxes, &broken))?;
    fails(broad_phase.for_each_pair_chunk(&broken, 9, |_| {}))?;
    let after = (
        broad_phase.pairs().to_vec(),
        broad_phase.started().to_vec(),
        broad_phase.report().clone(),
    );
    equal(after == before, true)?;
    equal(broad_phase.query_box(&boxes[0])?.contains(&0), true)
}

fn queries(setup: &Setup) -> Result<(), Failed> {
    let inf = f32::INFINITY;
    let mut boxes = uniform(700, 20);
    boxes[5] = Aabb::EMPTY;
    boxes[6] = Aabb::new([-inf, 2.0, -inf], [inf, 2.5, inf]);
    boxes[7] = Aabb::new([inf; 3], [inf; 3]);
    let mut broad_phase = setup.broad_phase();
    equal(broad_phase.query_point([0.0; 3])?, Vec::new())?;
    broad_phase.update(&boxes)?;
    let met = |query: &Aabb| -> Vec<u32> {
        (0..700)
            .filter(|&i| oracle::overlap(&boxes[i as usize], query, setup.rule))
            .collect()
    };
    for query in boxes.iter().chain(&uniform_in(50, [20.0; 3], 21)) {
        equal(broad_phase.query_box(query)?, met(query))?;
        equal(
            broad_phase.query_point(query.min)?,
            met(&Aabb::new(query.min, query.min)),
        )?;
    }
    let nan = f32::NAN;
    equal(
        broad_phase.query_box(&Aabb::new([nan; 3], [1.0; 3]))?,
        Vec::new(),
    )?;
    equal(broad_phase.query_point([nan, 0.0, 0.0])?, Vec::new())?;
    equal(broad_phase.query_sphere([0.0; 3], nan)?, Vec::new())?;
    equal(broad_phase.query_sphere([0.0; 3], -1.0)?, Vec::new())?;
    equal(broad_phase.query_sphere([nan; 3], 1.0)?, Vec::new())?;
    equal(
        broad_phase.query_sphere([0.0; 3], inf)?.len(),
        if setup.rule == sap::OverlapRule::Closed {
            699
        } else {
            698
        },
    )?;
    let mut random = Random::new(22);
    for _ in 0..50 {
        let center = [(); 3].map(|()| random.between(-1.0, 10.0));
        let radius = random.between(0.0, 3.0);
        let near = |b: &Aabb| {
            let squares = (0..3).map(|k| {
                f64::from((b.min[k] - center[k]).max(center[k] - b.max[k]).max(0.0)).powi(2)
            });
            squares.sum::<f64>() <= f64::from(radius).powi(2)
        };
        let expected = (0..700)
            .filter(|&i| i != 5 && near(&boxes[i as usize]))
            .collect::<Vec<u32>>();
        equal(broad_phase.query_sphere(center, radius)?, expected)?;
    }
    for k in 0..80 {
        let origin = [(); 3].map(|()| random.between(-3.0, 12.0));
        let mut dir = [(); 3].map(|()| random.between(-1.0, 1.0));
        dir.iter_mut()
            .enumerate()
            .filter(|(axis, _)| k >> axis & 1 == 1)
            .for_each(|(_, d)| *d = if k & 8 == 0 { 0.0 } else { -0.0 });
        let hits = broad_phase.query_ray(origin, dir, 9.0)?;
        let meets = |b: &Aabb| {
            let (mut near, mut far) = (0.0_f64, 9.0_f64);
            for k in 0..3 {
                let [o, d, min, max] = [origin[k], dir[k], b.min[k], b.max[k]].map(f64::from);
                if d == 0.0 {
                    if o < min || o > max {
                        return None;
                    }
                } else {
                    let (s, t) = ((min - o) / d, (max - o) / d);
                    (near, far) = (near.max(s.min(t)), far.min(s.max(t)));
                }
            }
            (near <= far).then_some(near as f32)
        };
        let mut expected: Vec<(u32, f32)> = (0..700)
            .filter(|&i| i != 5)
            .filter_map(|i| Some((i, meets(&boxes[i as usize])?)))
            .collect();
        expected.sort_by(|x, y| x.1.total_cmp(&y.1).then(x.0.cmp(&y.0)));
        equal(
            hits.iter().map(|hit| (hit.index, hit.t)).collect(),
            expected,
        )?;
    }
    for bad in [nan, inf, -inf] {
        equal(
            broad_phase.query_ray([bad, 0.0, 0.0], [1.0; 3], 1.0)?,
            Vec::new(),
        )?;
        equal(
            broad_phase.query_ray([0.0; 3], [0.0, bad, 1.0], 1.0)?,
            Vec::new(),
        )?;
    }
    equal(broad_phase.query_ray([0.0; 3], [1.0; 3], nan)?, Vec::new())?;
    equal(broad_phase.query_ray([0.0; 3], [1.0; 3], -1.0)?, Vec::new())?;
    equal(
        broad_phase
            .query_ray([1.0, 2.25, 1.0], [0.0; 3], inf)?
            .iter()
            .any(|hit| hit.index == 6),
        true,
    )
}
