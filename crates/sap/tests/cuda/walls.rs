//! Boxes much larger than most, which have a list while they are few, against the CPU engine.

use super::{Other, cpu, cuda, engine, holds, same_lists, sized, text, uniform};
use crate::common::against_cpu::Extras;
use crate::common::scenes::Random;
use libtest_mimic::Failed;
use sap::{Aabb, Config, Frame, OverlapRule, Strategy};

pub const ALL: &[(&str, Other)] = &[
    ("walls::of_any_number", of_any_number),
    ("walls::is_tested_nearby", is_tested_nearby),
];

/// Few boxes, as many as the list holds, one more, and many; of several sizes, and infinite. Boxes
/// are sparse and crowded, so that a warp takes 32, 8 or 4 of them; there are filters and worlds,
/// both rules, and boxes that go to regions first.
fn of_any_number() -> Result<(), Failed> {
    let n = sized(20_000, 3_000);
    let mut random = Random::new(5);
    for (case, walls) in [1, 6, 128, 129, 400, 0].into_iter().enumerate() {
        for (at, density) in [1.5, 12.0, 60.0].into_iter().enumerate() {
            let config = Config {
                min_resting: (at == case % 3).then_some(100),
                rule: [OverlapRule::Closed, OverlapRule::Open][(case + at) % 2],
                ..cuda(Strategy::Subdivided)
            };
            let (mut ours, mut theirs) = (engine(&config), engine(&cpu(&config)));
            for frame in 0..4 {
                let mut boxes = uniform(&mut random, n, density);
                let side = (n as f32 / density).cbrt();
                for wall in 0..walls {
                    let low: [f32; 3] = std::array::from_fn(|_| random.between(-1.0, side));
                    let mut high = low.map(|x| x + random.between(3.0, 0.5 * side));
                    if wall % 50 == 49 {
                        high[wall % 3] = f32::INFINITY;
                    }
                    let at = random.below(boxes.len());
                    boxes[at] = Aabb::new(low, high);
                }
                let extras = match frame {
                    0 => Extras::default(),
                    _ => Extras::random(&mut random, n),
                };
                ours.update(extras.with(Frame::boxes(&boxes)))
                    .map_err(text)?;
                theirs
                    .update(extras.with(Frame::boxes(&boxes)))
                    .map_err(text)?;
                same_lists(&ours, &theirs)?;
            }
        }
    }
    Ok(())
}

/// The floor is tested with the boxes near it, although the cells of its level hold all of them.
fn is_tested_nearby() -> Result<(), Failed> {
    let mut boxes = uniform(&mut Random::new(6), 6_000, 1.0);
    let mut engine = engine(&cuda(Strategy::Subdivided));
    let mut tests = |boxes: &[Aabb]| -> Result<u64, Failed> {
        Ok(engine.update(boxes).map_err(text)?.stats.tests)
    };
    let without = tests(&boxes)?;
    boxes[5_999] = Aabb::new([-1.0; 3], [20.0, 20.0, 0.0]);
    let more = tests(&boxes)?.saturating_sub(without);
    holds((100..1_500).contains(&more), || {
        format!("{more} more tests")
    })
}
