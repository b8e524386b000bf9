//! Queries by a scan of the boxes on the device and by the tree, against the CPU engine, bit for
//! bit.

use super::{Other, cpu, cuda, engine, text};
use crate::common::equal;
use crate::common::scenes::{Random, around};
use libtest_mimic::Failed;
use sap::{Aabb, BroadPhase, Config, Filter, Frame, Hit, OverlapRule, Shape, Strategy};
use std::ops::ControlFlow::{Break, Continue};

pub const ALL: &[(&str, Other)] = &[
    ("queries::as_the_cpu", as_the_cpu),
    ("queries::more_than_there_is_room_for", more_than_room),
    ("queries::from_threads", from_threads),
];

/// Queries after each update. The device answers the first 16.
const ASKED: usize = 20;

const VALUES: [f32; 16] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.5,
    4.0,
    1e-20,
    -1e-20,
    1e-45,
    1e30,
    -1e30,
    f32::MAX,
    f32::MIN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

/// Returns a coordinate, now and then a special one.
fn number(random: &mut Random, odd: usize) -> f32 {
    match random.below(odd) {
        0 => VALUES[random.below(VALUES.len())],
        1 => random.below(8) as f32,
        _ => random.between(-1.0, 8.0),
    }
}

fn three(random: &mut Random, odd: usize) -> [f32; 3] {
    [(); 3].map(|()| number(random, odd))
}

/// Returns a box of any kind that a frame may have.
fn some_box(random: &mut Random) -> Aabb {
    let (a, b) = (three(random, 12), three(random, 12));
    let usual = around([(); 3].map(|()| random.between(0.0, 8.0)), [0.4; 3]);
    if random.chance(30) {
        return Aabb::EMPTY;
    }
    if !random.chance(5) || a.iter().chain(&b).any(|value| value.is_nan()) {
        return usual;
    }
    Aabb::new(
        std::array::from_fn(|k| a[k].min(b[k])),
        std::array::from_fn(|k| a[k].max(b[k])),
    )
}

fn bits(hits: Vec<Hit>) -> Vec<(u32, u32)> {
    hits.iter()
        .map(|hit| (hit.index, hit.t.to_bits()))
        .collect()
}

/// A shape of some kind.
fn some_shape(random: &mut Random, boxes: &[Aabb]) -> Shape {
    let (a, b) = (three(random, 6), three(random, 6));
    let far = number(random, 3);
    let some = boxes[random.below(boxes.len())];
    match random.below(7) {
        0 => Aabb::new(a, b).into(),
        1 => some.into(),
        2 => Shape::Point(some.max),
        3 => Shape::Sphere {
            center: a,
            radius: far,
        },
        4 => Shape::Sphere {
            center: some.min,
            radius: far.abs(),
        },
        5 => Shape::Cast {
            aabb: some,
            dir: b,
            max_t: far,
        },
        _ => Shape::Ray {
            origin: a,
            dir: b,
            max_t: far,
        },
    }
}

fn some_filter(random: &mut Random) -> Filter {
    Filter {
        layers: random.below(4) as u32,
        mask: random.below(4) as u32,
        ..Filter::default()
    }
}

/// One query of some kind, of both engines, in every way.
fn ask(random: &mut Random, engines: &[BroadPhase; 2], boxes: &[Aabb]) -> Result<usize, Failed> {
    let shape = some_shape(random, boxes);
    let filter = random.chance(2).then(|| some_filter(random));
    let world = random.chance(3).then(|| random.below(3) as u32);
    let [ours, theirs] = engines.each_ref().map(|engine| {
        let mut query = engine.query(shape);
        if let Some(filter) = filter {
            query = query.filter(filter);
        }
        if let Some(world) = world {
            query = query.world(world);
        }
        query
    });
    let expected = theirs.hits()?;
    match random.below(5) {
        0 => equal(ours.collect()?, theirs.collect()?)?,
        1 => equal(ours.closest()?, expected.first().copied())?,
        2 => equal(ours.any()?, !expected.is_empty())?,
        3 if !matches!(shape, Shape::Aabb(_) | Shape::Point(_)) => {
            let mut hits = expected.iter();
            let other = ours.visit(|hit| match hits.next() {
                Some(next) if *next == hit => Continue(()),
                other => Break((hit, other.copied())),
            })?;
            equal(other, None)?;
            equal(hits.len(), 0)?;
        }
        _ => equal(bits(ours.hits()?), bits(expected.clone()))?,
    }
    Ok(expected.len())
}

fn as_the_cpu() -> Result<(), Failed> {
    let mut random = Random::new(77);
    let mut found = 0;
    for rule in [OverlapRule::Closed, OverlapRule::Open] {
        for margin in [0.0, 0.25] {
            let config = Config {
                rule,
                margin,
                ..cuda(Strategy::Subdivided)
            };
            let mut engines = [engine(&config), engine(&cpu(&config))];
            for (labels, n) in [1, 31, 257, 1000, 1000, 700].into_iter().enumerate() {
                let boxes: Vec<Aabb> = (0..n).map(|_| some_box(&mut random)).collect();
                let filters: Vec<Filter> = (0..n).map(|_| some_filter(&mut random)).collect();
                let worlds: Vec<u32> = (0..n).map(|_| random.below(3) as u32).collect();
                let mut frame = Frame::boxes(&boxes);
                if labels % 4 > 1 {
                    frame = frame.filters(&filters);
                }
                if labels % 2 == 1 {
                    frame = frame.worlds(&worlds);
                }
                for engine in &mut engines {
                    engine.update(frame).map_err(text)?;
                }
                for _ in 0..ASKED {
                    found += ask(&mut random, &engines, &boxes)?;
                }
            }
            engines.iter_mut().for_each(BroadPhase::clear);
            for engine in engines {
                equal(engine.query_point([0.0; 3])?.len(), 0)?;
            }
        }
    }
    equal(found > 3_000, true)
}

/// The first queries after an update come from several threads.
fn from_threads() -> Result<(), Failed> {
    let boxes: Vec<Aabb> = (0..6_000)
        .map(|i| around([1.5 * i as f32, 0.0, 0.0], [1.0; 3]))
        .collect();
    let mut ours = engine(&cuda(Strategy::Sweep));
    ours.update(&boxes).map_err(text)?;
    let ours = &ours;
    let ask = |i: usize| -> Result<(), sap::Error> {
        let found = ours.query_box(&boxes[i])?;
        let expected: Vec<u32> = (i.saturating_sub(1)..(i + 2).min(6_000))
            .map(|i| i as u32)
            .collect();
        assert_eq!(found, expected);
        Ok(())
    };
    std::thread::scope(|scope| {
        let asked = |thread: usize| (thread..60).step_by(3).try_for_each(|i| ask(100 * i));
        let threads = [0, 1, 2].map(|thread| scope.spawn(move || asked(thread)));
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("no query panics"))
    })
    .map_err(text)
}

fn more_than_room() -> Result<(), Failed> {
    // Few boxes overlap.
    let boxes: Vec<Aabb> = (0..17_000)
        .map(|i| around([2.0 * i as f32, 0.0, 0.0], [0.5; 3]))
        .collect();
    let config = cuda(Strategy::Sweep);
    let mut ours = engine(&config);
    ours.update(&boxes).map_err(text)?;
    for (far, expected) in [
        (600.0, 301),
        (32_766.0, 16_384),
        (32_768.0, 16_385),
        (1e9, 17_000),
    ] {
        // The first query after an update runs on the device.
        ours.clear();
        ours.update(&boxes).map_err(text)?;
        let all: Vec<u32> = (0..expected).collect();
        equal(
            ours.query_box(&Aabb::new([0.0; 3], [far, 1.0, 1.0]))? == all,
            true,
        )?;
        equal(
            ours.query_ray([0.0; 3], [1.0, 0.0, 0.0], far)?.len(),
            all.len(),
        )?;
    }
    Ok(())
}
