//! Queries: those that scan the boxes on the device and those through the tree, against the CPU engine, bit for bit.

use super::{Other, cpu, cuda, engine, text};
use crate::common::equal;
use crate::common::scenes::{Random, around};
use libtest_mimic::Failed;
use sap::{Aabb, BroadPhase, Config, OverlapRule, RayHit, Strategy};

pub const ALL: &[(&str, Other)] = &[
    ("queries::as_the_cpu", as_the_cpu),
    ("queries::more_than_there_is_room_for", more_than_room),
];

/// Queries after each update: the device answers the first 16.
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

/// Mostly a usual number, now and then an odd one.
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

/// A box of any kind that a frame may hold.
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

fn bits(hits: Vec<RayHit>) -> Vec<(u32, u32)> {
    hits.iter()
        .map(|hit| (hit.index, hit.t.to_bits()))
        .collect()
}

/// One query of some kind, of both engines.
fn ask(
    random: &mut Random,
    engines: &mut [BroadPhase; 2],
    boxes: &[Aabb],
) -> Result<usize, Failed> {
    let [ours, theirs] = engines;
    let (a, b) = (three(random, 6), three(random, 6));
    let radius = number(random, 3);
    let some = boxes[random.below(boxes.len())];
    let found = match random.below(6) {
        0 => {
            let query = Aabb::new(a, b);
            [ours, theirs].map(|engine| engine.query_box(&query))
        }
        1 => [ours, theirs].map(|engine| engine.query_box(&some)),
        2 => [ours, theirs].map(|engine| engine.query_point(some.max)),
        3 => [ours, theirs].map(|engine| engine.query_sphere(a, radius)),
        4 => [ours, theirs].map(|engine| engine.query_sphere(some.min, radius.abs())),
        _ => {
            let [ours, theirs] = [ours, theirs].map(|engine| engine.query_ray(a, b, radius));
            let (ours, theirs) = (bits(ours?), bits(theirs?));
            equal(&ours, &theirs)?;
            return Ok(ours.len());
        }
    };
    let [ours, theirs] = found;
    let (ours, theirs) = (ours?, theirs?);
    equal(&ours, &theirs)?;
    Ok(ours.len())
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
            for n in [1, 31, 257, 1000, 1000, 700] {
                let boxes: Vec<Aabb> = (0..n).map(|_| some_box(&mut random)).collect();
                for engine in &mut engines {
                    engine.update(&boxes).map_err(text)?;
                }
                for _ in 0..ASKED {
                    found += ask(&mut random, &mut engines, &boxes)?;
                }
            }
            engines.iter_mut().for_each(BroadPhase::clear);
            for mut engine in engines {
                equal(engine.query_point([0.0; 3])?.len(), 0)?;
            }
        }
    }
    equal(found > 10_000, true)
}

fn more_than_room() -> Result<(), Failed> {
    // Few pairs, as boxes are apart.
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
        // With nothing asked before, so that the device is asked first.
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
