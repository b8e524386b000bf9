//! Pair buffers that are too small, and scenes with more than 2^32 pairs.

use super::{Check, Random, cuda, engine, expected, holds, sized, text, uniform};
use crate::common::{equal, same};
use libtest_mimic::Failed;
use sap::{Aabb, Config, Error, OverlapRule, Pair, Strategy};

pub const ALL: &[(&str, Check)] = &[
    ("memory::buffer_too_small", too_small),
    ("memory::buffers_are_kept", buffers_are_kept),
    ("memory::capacity_grows_ahead", grows_ahead),
    ("memory::too_many_pairs", too_many),
    ("memory::everything_overlaps_beyond_i32", beyond_i32),
    ("memory::everything_overlaps_is_counted", counted),
    (
        "memory::everything_overlaps_in_chunks_beyond_i32",
        |strategy| in_chunks(strategy, sized(65_537, 700)),
    ),
    (
        "memory::everything_overlaps_in_chunks_beyond_u32",
        |strategy| in_chunks(strategy, sized(92_683, 900)),
    ),
];

/// Buffers too small by one pair, by half, by a factor of 1000, by all.
fn too_small(strategy: Strategy) -> Result<(), Failed> {
    let boxes = uniform(&mut Random::new(1), sized(50_000, 1000), 2.0);
    let pairs = expected(&boxes, OverlapRule::Closed);
    let n = pairs.len();
    for (capacity, regrown) in [
        (n, 0),
        (n + 1, 0),
        (n - 1, 1),
        (n / 2, 1),
        (n / 1000, 1),
        (0, 1),
    ] {
        let mut broad_phase = engine(&Config {
            initial_pair_capacity: Some(capacity),
            ..cuda(strategy)
        });
        let report = broad_phase.update(&boxes).map_err(text)?;
        holds(report.stats.regrown == regrown, || {
            format!(
                "room for {capacity} of {n}: grown {} times",
                report.stats.regrown
            )
        })?;
        same(broad_phase.pairs(), &pairs)?;
        // The list of the last update is another buffer, which a second sweep does not grow.
        let moved: Vec<Aabb> = boxes
            .iter()
            .map(|b| Aabb::new(b.min.map(|x| x + 1.0), b.max.map(|x| x + 1.0)))
            .collect();
        let report = broad_phase.update(&moved).map_err(text)?;
        holds(report.stats.regrown == 0, || {
            format!(
                "room for {capacity} of {n}, second update: grown {} times",
                report.stats.regrown
            )
        })?;
        same(broad_phase.pairs(), &expected(&moved, OverlapRule::Closed))?;
    }
    Ok(())
}

/// Updates of the same sizes take no more device memory after the first few.
fn buffers_are_kept(strategy: Strategy) -> Result<(), Failed> {
    let mut broad_phase = engine(&cuda(strategy));
    let device = broad_phase.stream().ok_or("no stream")?.device().clone();
    let mut random = Random::new(2);
    let frames = [(); 2].map(|()| uniform(&mut random, sized(100_000, 1000), 1.0));
    let mut used = Vec::new();
    for number in 0..10 {
        broad_phase.update(&frames[number % 2]).map_err(text)?;
        used.push(device.memory_used().map_err(text)?);
    }
    holds(used[4..].iter().all(|&bytes| bytes <= used[4]), || {
        format!("memory in use by frame: {used:?}")
    })
}

/// While pairs become more by 3 % a frame, no frame searches twice, and none takes more new memory
/// than for the pairs as found and their ranks: less than half of what a larger capacity takes.
fn grows_ahead(strategy: Strategy) -> Result<(), Failed> {
    let boxes = uniform(&mut Random::new(5), sized(100_000, 3000), 4.0);
    let mut broad_phase = engine(&cuda(strategy));
    let device = broad_phase.stream().ok_or("no stream")?.device().clone();
    let (mut first, mut before) = (0, 0);
    for frame in 0..60 {
        let scale = 1.0 + 0.01 * frame as f32;
        let grown = |b: &Aabb| {
            Aabb::new(
                b.min,
                std::array::from_fn(|k| b.min[k] + scale * (b.max[k] - b.min[k])),
            )
        };
        let boxes: Vec<Aabb> = boxes.iter().map(grown).collect();
        let report = broad_phase.update(&boxes).map_err(text)?.clone();
        let used = device.memory_used().map_err(text)?.unwrap_or(0);
        if frame == 0 {
            first = report.pairs;
        } else if frame > 4 {
            let taken = used.saturating_sub(before);
            holds(
                report.stats.regrown == 0 && taken <= 36 * report.pairs + (1 << 16),
                || format!("frame {frame} took {taken} bytes: {report:?}"),
            )?;
        }
        before = used;
        if frame % 20 == 19 {
            same(broad_phase.pairs(), &expected(&boxes, OverlapRule::Closed))?;
        }
    }
    let pairs = broad_phase.report().pairs;
    holds(pairs > 3 * first, || {
        format!("{first} pairs became {pairs}")
    })
}

/// The error has the exact count, the last result stays, and chunks deliver all pairs.
fn too_many(strategy: Strategy) -> Result<(), Failed> {
    let boxes = uniform(&mut Random::new(3), sized(20_000, 600), 4.0);
    let pairs = expected(&boxes, OverlapRule::Closed);
    let few = uniform(&mut Random::new(4), 20, 1.0);
    let limit = pairs.len() as u64 - 1;
    let mut broad_phase = engine(&Config {
        pair_memory: Some(limit * 8 + 7),
        ..cuda(strategy)
    });
    broad_phase.update(&few).map_err(text)?;
    let before = broad_phase.pairs().to_vec();
    match broad_phase.update(&boxes) {
        Err(Error::TooManyPairs {
            count,
            limit: found,
        }) if count == pairs.len() as u64 && found == limit => {}
        other => return Err(format!("{:?}", other.map(|report| report.pairs)).into()),
    }
    same(broad_phase.pairs(), &before)?;
    let mut found = Vec::new();
    broad_phase
        .for_each_pair_chunk(&boxes, 1000, |chunk| found.extend_from_slice(chunk))
        .map_err(text)?;
    same(&found, &pairs)?;
    let mut enough = engine(&Config {
        pair_memory: Some(pairs.len() as u64 * 8),
        ..cuda(strategy)
    });
    enough.update(&boxes).map_err(text)?;
    same(enough.pairs(), &pairs)
}

/// Returns the pair at an index of the list of all pairs of `n` boxes.
fn nth(n: u64, place: u64) -> Pair {
    // Rows before row a hold a (2 n - a - 1) / 2 pairs.
    let before = |a: u64| a * (2 * n - a - 1) / 2;
    let (mut low, mut high) = (0, n);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if before(middle) <= place {
            low = middle
        } else {
            high = middle
        }
    }
    Pair {
        a: low as u32,
        b: (low + 1 + place - before(low)) as u32,
    }
}

/// 65,537 boxes at one place: 2,147,516,416 pairs in one update, on the device.
fn beyond_i32(strategy: Strategy) -> Result<(), Failed> {
    let n = sized(65_537, 700);
    let boxes = vec![Aabb::new([0.0; 3], [1.0; 3]); n];
    let count = n as u64 * (n as u64 - 1) / 2;
    let mut broad_phase = engine(&Config {
        events: false,
        ..cuda(strategy)
    });
    let stream = broad_phase.stream().ok_or("no stream")?.clone();
    let on_device = stream.from_slice(&boxes).map_err(text)?;
    let (_, total) = stream.device().memory().map_err(text)?;
    match broad_phase.update_device(on_device.slice()) {
        Ok(report) => equal((report.pairs, report.stats.tests), (count, count))?,
        // On a small device the error has the exact count.
        Err(Error::TooManyPairs { count: found, .. }) if total < 110 << 30 => {
            return equal(found, count);
        }
        Err(error) => return Err(text(error)),
    }
    let list = broad_phase.device_pairs().map_err(text)?;
    equal(list.len() as u64, count)?;
    let places = 2000.min(count);
    for i in 0..places {
        let place = i * (count - 1) / (places - 1);
        let found = stream
            .to_vec(list.range(place as usize..=place as usize).map_err(text)?)
            .map_err(text)?;
        equal((place, found[0]), (place, nth(n as u64, place)))?;
    }
    Ok(())
}

/// With a limit of a million pairs the error has the exact count, beyond 31 and beyond 32 bits, and
/// the last result stays.
fn counted(strategy: Strategy) -> Result<(), Failed> {
    let room = sized(1 << 20, 1 << 10) as u64;
    let mut broad_phase = engine(&Config {
        pair_memory: Some(8 * room),
        ..cuda(strategy)
    });
    let everything = vec![Aabb::new([0.0; 3], [1.0; 3]); sized(92_683, 900)];
    broad_phase.update(&everything[..2]).map_err(text)?;
    for n in [sized(65_537, 700), everything.len()] {
        match broad_phase.update(&everything[..n]) {
            Err(Error::TooManyPairs { count, limit }) => {
                equal((count, limit), (n as u64 * (n as u64 - 1) / 2, room))?;
            }
            other => return Err(format!("{:?}", other.map(|report| report.pairs)).into()),
        }
        same(broad_phase.pairs(), &[Pair { a: 0, b: 1 }])?;
    }
    Ok(())
}

/// Many boxes at one place, in chunks, with memory for a few million pairs: 2,147,516,416 pairs of
/// 65,537 boxes, and 4,295,022,903 of 92,683.
fn in_chunks(strategy: Strategy, n: usize) -> Result<(), Failed> {
    let boxes = vec![Aabb::new([0.0; 3], [1.0; 3]); n];
    let (n, room) = (n as u64, sized(1 << 26, 1 << 15) as u64);
    let count = n * (n - 1) / 2;
    let mut broad_phase = engine(&Config {
        pair_memory: Some(8 * room),
        ..cuda(strategy)
    });
    let device = broad_phase.stream().ok_or("no stream")?.device().clone();
    let before = device.memory_used().map_err(text)?.unwrap_or(0);
    let mut most = before;
    let mut at = 0;
    let mut wrong = None;
    let report = broad_phase.for_each_pair_chunk(&boxes, 4 << 20, |pairs| {
        // Only the ends and a sample of each chunk are checked. All would take longer than the
        // search.
        for i in (0..pairs.len()).step_by(4099).chain([pairs.len() - 1]) {
            if pairs[i] != nth(n, at + i as u64) {
                wrong.get_or_insert((at + i as u64, pairs[i]));
            }
        }
        at += pairs.len() as u64;
        most = most.max(
            device
                .memory_used()
                .map_or(u64::MAX, Option::unwrap_or_default),
        );
    });
    let report = report.map_err(text)?;
    holds(wrong.is_none(), || format!("place and pair {wrong:?}"))?;
    equal((report.pairs, at), (count, count))?;
    // The pairs as found and in order, twice as much during the sort, and the memory of the boxes.
    holds(most - before <= 8 * 4 * room + (64 << 20), || {
        format!("{} bytes for room for {room} pairs", most - before)
    })
}
