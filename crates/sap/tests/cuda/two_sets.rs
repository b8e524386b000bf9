//! Two sets of boxes that are on the device have the pairs that they have from the host.

use super::against_cpu::{Extras, Owned};
use super::{Check, Random, cpu, cuda, engine, holds, sized, text, uniform};
use crate::common::{equal, same};
use gpu::{Buffer, Device, Stream};
use libtest_mimic::Failed;
use sap::{
    Aabb, Aabb64, BroadPhase, Config, DeviceFrame, Error, Filter, OnInvalid, OverlapRule, Pair,
    Strategy,
};

pub const ALL: &[(&str, Check)] = &[
    ("two_sets::frames", frames),
    ("two_sets::empty", empty),
    ("two_sets::bad_boxes", bad_boxes),
    ("two_sets::lists", lists),
    ("two_sets::growth", growth),
    ("two_sets::between_updates", between_updates),
];

/// The lists of a frame, on the device.
struct There {
    boxes: Buffer<Aabb>,
    ends: Buffer<Aabb>,
    exact: Buffer<Aabb64>,
    filters: Option<Buffer<Filter>>,
    worlds: Option<Buffer<u32>>,
}

impl There {
    fn new(stream: &Stream, owned: &Owned) -> Result<Self, Failed> {
        let (filters, worlds) = (&owned.extras.filters, &owned.extras.worlds);
        Ok(Self {
            boxes: stream.from_slice(&owned.boxes)?,
            ends: stream.from_slice(&owned.ends)?,
            exact: stream.from_slice(&owned.exact)?,
            filters: filters
                .as_ref()
                .map(|list| stream.from_slice(list))
                .transpose()?,
            worlds: worlds
                .as_ref()
                .map(|list| stream.from_slice(list))
                .transpose()?,
        })
    }

    fn frame<'a>(&'a self, owned: &'a Owned) -> DeviceFrame<'a> {
        let mut frame = match owned.form {
            0 => DeviceFrame::boxes(self.boxes.slice()),
            1 => DeviceFrame::swept(self.boxes.slice(), self.ends.slice()),
            _ => DeviceFrame::exact(self.exact.slice()),
        };
        if let Some(filters) = &self.filters {
            frame = frame.filters(filters.slice());
        }
        if let Some(worlds) = &self.worlds {
            frame = frame.worlds(worlds.slice());
        }
        frame.excluded(&owned.extras.excluded)
    }
}

fn stream(broad_phase: &BroadPhase) -> Result<Stream, Failed> {
    Ok(broad_phase.stream().ok_or("no stream")?.clone())
}

/// Returns the pairs of two sets that are brought to the device.
fn found(broad_phase: &mut BroadPhase, a: &Owned, b: &Owned) -> Result<Vec<Pair>, Failed> {
    let stream = stream(broad_phase)?;
    let (first, second) = (There::new(&stream, a)?, There::new(&stream, b)?);
    let pairs = broad_phase.overlaps_between_device(first.frame(a), second.frame(b))?;
    Ok(stream.to_vec(pairs)?)
}

/// Creates two sets of all forms, with and without filters and worlds, and the excluded pairs of
/// the first, `a >= b` in some.
fn two(random: &mut Random) -> [Owned; 2] {
    let limits = [sized(2000, 200), sized(3000, 300)];
    let [mut a, b] = limits.map(|limit| {
        let (n, form) = (random.below(limit), random.below(3));
        Owned::new(random, n, form)
    });
    let excluded = (0..a.boxes.len() as u32).map(|i| Pair { a: i, b: i / 2 });
    a.extras.excluded = excluded.collect();
    [a, b]
}

/// Both rules, all forms and lists: the pairs are those of the host's call and of the CPU.
fn frames(strategy: Strategy) -> Result<(), Failed> {
    for rule in [OverlapRule::Closed, OverlapRule::Open] {
        let config = Config {
            rule,
            ..cuda(strategy)
        };
        let (mut on_device, mut on_cpu) = (engine(&config), engine(&cpu(&config)));
        for seed in 0..sized(40, 6) as u64 {
            let [a, b] = two(&mut Random::new(2000 + seed));
            let pairs = found(&mut on_device, &a, &b)?;
            same(&pairs, &on_cpu.overlaps_between(a.frame(), b.frame())?)?;
            same(&pairs, &on_device.overlaps_between(a.frame(), b.frame())?)?;
        }
    }
    Ok(())
}

/// No box pairs with a set of none.
fn empty(strategy: Strategy) -> Result<(), Failed> {
    let mut random = Random::new(7);
    let [none, some] = [0, 100].map(|n| Owned::new(&mut random, n, 0));
    let mut broad_phase = engine(&cuda(strategy));
    for (a, b) in [(&none, &some), (&some, &none), (&none, &none)] {
        equal(found(&mut broad_phase, a, b)?.len(), 0)?;
    }
    Ok(())
}

/// An error names the box in its own set, the first set first. Skipped boxes have no pairs.
fn bad_boxes(strategy: Strategy) -> Result<(), Failed> {
    let mut random = Random::new(8);
    let good = Owned::new(&mut random, 200, 0);
    let mut bad = Owned::new(&mut random, 150, 0);
    bad.boxes[120].min[2] = f32::NAN;
    bad.boxes[140].max[0] = f32::NEG_INFINITY;
    for on_invalid in [OnInvalid::Error, OnInvalid::Skip] {
        let config = Config {
            on_invalid,
            ..cuda(strategy)
        };
        let (mut on_device, mut on_cpu) = (engine(&config), engine(&cpu(&config)));
        let stream = stream(&on_device)?;
        let [first, second] = [&good, &bad].map(|owned| There::new(&stream, owned));
        let (first, second) = (first?.boxes, second?.boxes);
        for (a, b, here_a, here_b) in [
            (&first, &second, &good, &bad),
            (&second, &first, &bad, &good),
            (&second, &second, &bad, &bad),
        ] {
            let pairs = on_device
                .overlaps_between_device(a.slice(), b.slice())
                .map_err(|error| error.to_string())
                .map(|pairs| stream.to_vec(pairs));
            let expected = on_cpu.overlaps_between(&here_a.boxes, &here_b.boxes);
            match (pairs, expected) {
                (Ok(pairs), Ok(expected)) => same(&pairs?, &expected)?,
                (Err(error), Err(expected)) => equal(error, expected.to_string())?,
                other => return Err(format!("{on_invalid:?}: {other:?}").into()),
            }
        }
    }
    Ok(())
}

/// Lists of wrong lengths and excluded pairs out of order are errors.
fn lists(strategy: Strategy) -> Result<(), Failed> {
    let mut broad_phase = engine(&cuda(strategy));
    let stream = stream(&broad_phase)?;
    let three = stream.from_slice(&[Aabb::EMPTY; 3])?;
    let short = stream.from_slice(&[0_u32; 2])?;
    let wrong = DeviceFrame::boxes(three.slice()).worlds(short.slice());
    for (a, b) in [(wrong, three.slice().into()), (three.slice().into(), wrong)] {
        match broad_phase.overlaps_between_device(a, b) {
            Err(Error::LengthMismatch {
                what: "worlds",
                boxes: 3,
                given: 2,
            }) => {}
            other => return Err(format!("{:?}", other.map(|pairs| pairs.len())).into()),
        }
    }
    let excluded = [Pair { a: 1, b: 0 }, Pair { a: 0, b: 2 }];
    let wrong = DeviceFrame::boxes(three.slice()).excluded(&excluded);
    match broad_phase.overlaps_between_device(wrong, three.slice()) {
        Err(Error::ExcludedOrder { index: 1, .. }) => Ok(()),
        other => Err(format!("{:?}", other.map(|pairs| pairs.len())).into()),
    }
}

/// Capacity that is too small grows; memory that may not grow is an error with the count.
fn growth(strategy: Strategy) -> Result<(), Failed> {
    let mut random = Random::new(9);
    let sets = [0; 2].map(|form| Owned {
        boxes: uniform(&mut random, sized(5000, 300), 4.0),
        extras: Extras::default(),
        ..Owned::new(&mut random, 0, form)
    });
    let [a, b] = &sets;
    let expected = engine(&cpu(&cuda(strategy))).overlaps_between(&a.boxes, &b.boxes)?;
    let count = expected.len() as u64;
    for capacity in [0, 1, expected.len() - 1, expected.len()] {
        let initial_pair_capacity = Some(capacity);
        let mut broad_phase = engine(&Config {
            initial_pair_capacity,
            ..cuda(strategy)
        });
        same(&found(&mut broad_phase, a, b)?, &expected)?;
    }
    let pair_memory = Some(8 * (count - 1));
    let mut broad_phase = engine(&Config {
        pair_memory,
        ..cuda(strategy)
    });
    let stream = stream(&broad_phase)?;
    let (first, second) = (stream.from_slice(&a.boxes)?, stream.from_slice(&b.boxes)?);
    match broad_phase.overlaps_between_device(first.slice(), second.slice()) {
        Err(Error::TooManyPairs {
            count: found,
            limit,
        }) => equal((found, limit), (count, count - 1)),
        other => Err(format!("{:?}", other.map(|pairs| pairs.len())).into()),
    }
}

/// The lists of the last update stay, on the device and on the host, as do the next one's events.
fn between_updates(strategy: Strategy) -> Result<(), Failed> {
    let mut random = Random::new(10);
    let sets = [0; 2].map(|form| Owned::new(&mut random, sized(3000, 300), form));
    let [mut host, mut device] = [0; 2].map(|_| engine(&cuda(strategy)));
    let stream = stream(&device)?;
    for owned in &sets {
        let there = stream.from_slice(&owned.boxes)?;
        device.update_device(there.slice())?;
        host.update(&owned.boxes)?;
        found(&mut device, &sets[1], &sets[0])?;
        let list = device.device_pairs().map_err(text)?;
        same(&stream.to_vec(list)?, host.pairs())?;
        device.download()?;
        same(device.started(), host.started())?;
        same(device.ended(), host.ended())?;
    }
    Ok(())
}

/// Boxes of another device are an error, and the engine goes on.
pub fn of_another_device() -> Result<(), Failed> {
    let mut broad_phase = engine(&cuda(Strategy::Auto));
    let here = stream(&broad_phase)?;
    let there = Stream::new(&Device::open(1)?)?;
    let boxes = [Aabb::new([0.0; 3], [1.0; 3]); 2];
    let (own, foreign) = (here.from_slice(&boxes)?, there.from_slice(&boxes)?);
    let is_refused = |error: Option<Error>| {
        let of_device = Some(Error::Gpu(gpu::Error::OtherDevice {
            what: "the buffer",
            other: 1,
            stream: 0,
        }));
        equal(error.map(text_of), of_device.map(text_of))
    };
    is_refused(broad_phase.update_device(foreign.slice()).err())?;
    for (a, b) in [(&own, &foreign), (&foreign, &own)] {
        is_refused(
            broad_phase
                .overlaps_between_device(a.slice(), b.slice())
                .err(),
        )?;
    }
    let pairs = broad_phase
        .overlaps_between_device(own.slice(), own.slice())
        .map_err(text)?;
    holds(pairs.len() == 4, || format!("{} pairs", pairs.len()))
}

fn text_of(error: Error) -> String {
    error.to_string()
}
