//! Boxes much larger than most, which have a list while they are few, against the CPU engine.

use super::{Other, cpu, cuda, engine, holds, same_lists, sized, text, uniform};
use crate::common::against_cpu::Extras;
use crate::common::equal;
use crate::common::scenes::Random;
use libtest_mimic::Failed;
use sap::{Aabb, Config, Frame, FrameGraph, OverlapRule, Strategy};

pub const ALL: &[(&str, Other)] = &[
    ("walls::of_any_number", of_any_number),
    ("walls::of_a_graph", of_a_graph),
    ("walls::is_tested_nearby", is_tested_nearby),
];

/// Few boxes, as many as the list holds, one more, and many, by turns, so that a plan for few has
/// too many in the next frame; of several sizes, and infinite. Boxes are sparse and crowded; there
/// are filters, and worlds, which have no list; both rules, and boxes that go to regions first.
fn of_any_number() -> Result<(), Failed> {
    let n = sized(20_000, 3_000);
    let mut random = Random::new(5);
    for (case, density) in [1.5, 12.0, 60.0, 1.5].into_iter().enumerate() {
        let config = Config {
            min_resting: [None, Some(usize::MAX), None, Some(100)][case],
            rule: [OverlapRule::Closed, OverlapRule::Open][case % 2],
            ..cuda(Strategy::Subdivided)
        };
        let (mut ours, mut theirs) = (engine(&config), engine(&cpu(&config)));
        for (frame, walls) in [6, 128, 129, 0, 1, 200, 64, 400, 400, 6]
            .into_iter()
            .enumerate()
        {
            let mut boxes = uniform(&mut random, n, density);
            let side = (n as f32 / density).cbrt();
            for wall in 0..walls {
                let low: [f32; 3] = std::array::from_fn(|_| random.between(-1.0, side));
                let mut high = low.map(|x| x + random.between(3.0, 3.0 + 0.5 * side));
                if wall % 50 == 49 {
                    high[wall % 3] = f32::INFINITY;
                }
                boxes[wall * n / walls] = Aabb::new(low, high);
            }
            let extras = match frame % 3 {
                0 => Extras::default(),
                _ => Extras::random(&mut random, n),
            };
            let frame = extras.with(Frame::boxes(&boxes));
            ours.update(frame).map_err(text)?;
            theirs.update(frame).map_err(text)?;
            same_lists(&ours, &theirs)?;
        }
    }
    Ok(())
}

/// A graph whose list has room for the pairs of its frame and no more: its first searches count
/// the pairs of the floor once.
fn of_a_graph() -> Result<(), Failed> {
    let mut boxes = uniform(&mut Random::new(7), 1_000, 1.0);
    boxes[0] = Aabb::new([-1.0; 3], [11.0, 11.0, 0.0]);
    let mut on_cpu = engine(&cpu(&cuda(Strategy::Subdivided)));
    let pairs = on_cpu.update(&boxes).map_err(text)?.pairs;
    let config = Config {
        pair_memory: Some(8 * pairs),
        ..cuda(Strategy::Subdivided)
    };
    let mut graph = FrameGraph::new(&config, &boxes, None, None, 0).map_err(text)?;
    graph.launch().map_err(text)?;
    equal(graph.report().map_err(text)?.pairs, pairs)?;
    graph.renew(0).map_err(text)
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
