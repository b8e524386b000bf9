//! Events of lists longer than one block compares, similar or not, against the CPU engine.

use super::{Other, cpu, cuda, engine, same_lists, text, uniform};
use crate::common::equal;
use crate::common::scenes::Random;
use libtest_mimic::Failed;
use sap::{Aabb, Strategy};
use std::ops::Range;

pub const ALL: &[(&str, Other)] = &[("events::long_lists", long_lists)];

/// The boxes missing in a frame: every `step`-th of a range.
const GONE: [(Range<usize>, usize); 15] = [
    (0..0, 1),
    (700..701, 1),
    (0..0, 1),
    (300..1500, 1), // long runs of pairs come and go, and all pairs after them shift
    (300..1500, 7),
    (0..0, 1),
    (0..2000, 2),
    (1..2000, 2),
    (0..2000, 97),
    (0..1999, 1),
    (0..0, 1),
    (1990..2000, 1),
    (0..10, 1),
    (0..2000, 1),
    (50..90, 3),
];

fn long_lists() -> Result<(), Failed> {
    let mut random = Random::new(5);
    let boxes = uniform(&mut random, 2000, 3.0);
    let config = cuda(Strategy::Subdivided);
    let (mut ours, mut theirs) = (engine(&config), engine(&cpu(&config)));
    let mut most = 0;
    for (range, step) in GONE {
        let mut boxes = boxes.clone();
        boxes[range]
            .iter_mut()
            .step_by(step)
            .for_each(|b| *b = Aabb::EMPTY);
        ours.update(&boxes).map_err(text)?;
        theirs.update(&boxes).map_err(text)?;
        same_lists(&ours, &theirs)?;
        equal(ours.report().started, theirs.report().started)?;
        equal(ours.report().ended, theirs.report().ended)?;
        most = most.max(ours.pairs().len());
    }
    // Several blocks.
    equal(most > 5 * 1024, true)
}
