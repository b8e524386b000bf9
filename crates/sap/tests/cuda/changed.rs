//! Frames with a list of changed boxes, against the CPU engine, which reads all boxes.

use super::{Other, cpu, cuda, engine, same_lists, text, uniform};
use crate::common::scenes::Random;
use crate::common::{equal, same};
use libtest_mimic::Failed;
use sap::{Aabb, BroadPhase, Config, Error, Filter, FilterFlags, Frame, OnInvalid, Strategy};

pub const ALL: &[(&str, Other)] = &[
    ("changed::boxes", || run(0.0)),
    ("changed::margin", || run(0.25)),
    ("changed::is_all_that_is_uploaded", is_all_that_is_uploaded),
];

/// Enough boxes for a partial upload.
const N: usize = 16 * 1024;

fn pair_of_engines(margin: f32) -> (BroadPhase, BroadPhase) {
    let config = Config {
        on_invalid: OnInvalid::Skip,
        margin,
        ..cuda(Strategy::Auto)
    };
    (engine(&config), engine(&cpu(&config)))
}

/// Boxes move, their number grows, filters and worlds come and go, and boxes are invalid for a
/// while.
fn run(margin: f32) -> Result<(), Failed> {
    let mut random = Random::new(21);
    let mut boxes = uniform(&mut random, N + 40, 1.0);
    let mut filters = vec![Filter::default(); N + 60];
    let mut worlds = vec![0; N + 60];
    let (mut ours, mut theirs) = pair_of_engines(margin);
    for number in 0..14 {
        let mut changed: Vec<u32> = Vec::new();
        for _ in 0..300 {
            let i = random.below(N);
            changed.push(i as u32);
            match number {
                3 => filters[i].flags = FilterFlags::STATIC,
                5 => worlds[i] = 1 + random.below(2) as u32,
                7 => boxes[i].min[2] = f32::NAN,
                8 => boxes[i] = Aabb::EMPTY,
                _ => {
                    let step = random.between(-0.3, 0.3);
                    boxes[i].min[number % 3] = boxes[i].max[number % 3] - 0.5 + step.abs();
                    boxes[i].max[(number + 1) % 3] = boxes[i].min[(number + 1) % 3] + 0.5 + step;
                }
            }
        }
        if number == 9 {
            let valid = |b: &mut Aabb| {
                if b.check().is_err() {
                    *b = Aabb::EMPTY;
                }
            };
            boxes.iter_mut().for_each(valid);
            changed.extend(0..N as u32);
        }
        // Some are listed twice, and some have not changed.
        changed.extend_from_within(..20);
        changed.extend((0..20).map(|_| random.below(N) as u32));
        let n = if number < 11 { N } else { N + 40 };
        let whole = Frame::boxes(&boxes[..n]).filters(&filters[..n]);
        let whole = if number > 1 {
            whole.worlds(&worlds[..n])
        } else {
            whole
        };
        ours.update(whole.changed(&changed)).map_err(text)?;
        theirs.update(whole).map_err(text)?;
        same_lists(&ours, &theirs)?;
        let [a, b] = [&ours, &theirs]
            .map(|engine| engine.report().invalid.map(|bad| (bad.count, bad.first)));
        equal(a, b)?;
        equal(ours.query_box(&boxes[5])?, theirs.query_box(&boxes[5])?)?;
    }
    equal(ours.pairs().len() > 1000, true)
}

fn is_all_that_is_uploaded() -> Result<(), Failed> {
    let mut random = Random::new(22);
    let mut boxes = uniform(&mut random, N, 1.0);
    let config = cuda(Strategy::Auto);
    let (mut ours, mut theirs) = (engine(&config), engine(&cpu(&config)));
    ours.update(&boxes).map_err(text)?;
    let nothing = vec![Aabb::new([f32::NAN; 3], [0.0; 3]); N];
    let mut given = nothing.clone();
    for i in [7, N - 1] {
        boxes[i] = Aabb::new([3.0; 3], [9.0; 3]);
        given[i] = boxes[i];
    }
    let changed = [N as u32 - 1, 7];
    ours.update(Frame::boxes(&given).changed(&changed))
        .map_err(text)?;
    theirs.update(&boxes).map_err(text)?;
    same(ours.pairs(), theirs.pairs())?;
    // An invalid box is an error and changes nothing.
    let failed = ours.update(Frame::boxes(&nothing).changed(&[3]));
    equal(
        matches!(failed, Err(Error::InvalidAabb { index: 3, .. })),
        true,
    )?;
    same(ours.pairs(), theirs.pairs())?;
    // The update after an error reads all boxes, and the next one only the listed ones again.
    for given in [&boxes, &nothing] {
        let report = ours
            .update(Frame::boxes(given).changed(&[]))
            .map_err(text)?;
        equal((report.started, report.ended), (0, 0))?;
        same(ours.pairs(), theirs.pairs())?;
    }
    Ok(())
}
