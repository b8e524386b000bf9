//! The strategies: a scene and a plan in, all pairs out.

use super::Clock;
use super::accept::Accept;
use super::arrange::{Grid, Split, Worlds, in_one_column, order_by_min};
use super::collect::{Collector, Found, Spare};
use super::columns::{Columns, area};
use super::endpoints::Ranges;
use super::partition::Partition;
use super::plan::Plan;
use super::records::Records;
use super::scene::Scene;
use super::sweep::{Pass, Role, of_pass, run};
use super::tuning::MOST_COPIES;
use crate::{Config, Result, Sorts, Strategy, Timings};

/// What two sets and rounds are swept by: endpoint records serve one whole set.
pub(super) fn swept(strategy: Strategy) -> Strategy {
    if strategy == Strategy::Endpoints {
        Strategy::Sweep
    } else {
        strategy
    }
}

/// The pairs of a scene; past `limit` they are only counted.
pub(super) fn found(
    config: &Config,
    scene: &Scene,
    plan: &Plan,
    limit: u64,
    spare: &Spare,
    timings: &mut Timings,
    clock: &mut Clock,
) -> Result<Found> {
    let (boxes, axis) = (&scene.boxes, plan.axis);
    let mut sorts = Sorts::default();
    let in_columns = Accept::new(scene, scene, config.rule, false);
    let anywhere = Accept::new(scene, scene, config.rule, true);
    if plan.strategy == Strategy::Endpoints {
        let ranges = Ranges::new(boxes, config, &mut sorts)?;
        timings.sort = clock.lap();
        let found = ranges.run(&anywhere, limit, spare);
        timings.sweep = clock.lap();
        return Ok(found.sorted_by(sorts));
    }
    let ids = scene.worlds.as_deref();
    let worlds = Worlds::new([ids, None])?;
    let none = Columns::default();
    let columns = if worlds.fit(&plan.columns) {
        &plan.columns
    } else {
        &none
    };
    let one = |order| in_one_column(boxes, order, axis, config);
    if ids.is_none() && columns.count() == 1 {
        let order = order_by_min(boxes, axis, config, &mut sorts)?;
        timings.keys = clock.lap();
        let all = one(order)?;
        timings.sort = clock.lap();
        let found = run(&[Pass::within(&all, &anywhere)], limit, spare);
        timings.sweep = clock.lap();
        return Ok(found.sorted_by(sorts));
    }
    let grid = Grid {
        columns,
        worlds: &worlds,
        axis,
    };
    let split = Split::new(boxes, &grid, plan, spare.spans())?;
    timings.keys = clock.lap();
    let collector = Collector::new(limit, spare);
    let (large, small) = if split.has_large() || ids.is_some() {
        let order = order_by_min(boxes, axis, config, &mut sorts)?;
        split.parts(&order)?
    } else {
        (Vec::new(), Vec::new())
    };
    let mut found = if ids.is_none() {
        let partition = Partition::new(boxes, config.rule, axis, columns, &split, spare)?;
        timings.sort = clock.lap();
        partition.sweep(&in_columns, &collector, spare)
    } else {
        let columns = grid.records(boxes, ids, split.spans(), &small, config, &mut sorts)?;
        timings.sort = clock.lap();
        of_pass(&Pass::within(&columns, &in_columns), &collector)
    };
    if !large.is_empty() {
        let (large, small) = (one(large)?, one(small)?);
        let between = |from, into, role| Pass {
            from,
            into,
            role,
            accept: &anywhere,
        };
        let passes = [
            Pass::within(&large, &anywhere),
            between(&large, &small, Role::ForthPart),
            between(&small, &large, Role::BackPart),
        ];
        for pass in &passes {
            found = found.merge(of_pass(pass, &collector));
        }
    }
    spare.give_spans(split.into_spans());
    timings.sweep = clock.lap();
    Ok(found.sorted_by(sorts))
}

/// All boxes of each set in sweep order, without a list of oversized ones, worlds told apart by columns: those of the plan
/// unless they would take too many copies.
pub(super) fn arranged(config: &Config, sets: &[&Scene], plan: &Plan) -> Result<Vec<Records>> {
    let ids = |set: usize| sets.get(set).and_then(|scene| scene.worlds.as_deref());
    let worlds = Worlds::new([ids(0), ids(1)])?;
    let none = Columns::default();
    let spans = |columns| {
        let grid = Grid {
            columns,
            worlds: &worlds,
            axis: plan.axis,
        };
        sets.iter()
            .map(|scene| grid.spans(&scene.boxes))
            .collect::<Result<Vec<_>>>()
    };
    let few = |sets: &[Vec<_>]| {
        let (boxes, copies) = sets
            .iter()
            .flatten()
            .fold((0, 0), |(n, copies), span| (n + 1, copies + area(span)));
        copies <= MOST_COPIES * boxes + 1_000_000
    };
    let (columns, spans) = match spans(&plan.columns)? {
        spans if few(&spans) && worlds.fit(&plan.columns) => (&plan.columns, spans),
        _ => (&none, spans(&none)?),
    };
    let grid = Grid {
        columns,
        worlds: &worlds,
        axis: plan.axis,
    };
    let one = columns.count() == 1 && sets.iter().all(|scene| scene.worlds.is_none());
    let records = |(set, (scene, spans)): (usize, (&&Scene, Vec<_>))| {
        let order = order_by_min(&scene.boxes, plan.axis, config, &mut Sorts::default())?;
        if one {
            return in_one_column(&scene.boxes, order, plan.axis, config);
        }
        grid.records(
            &scene.boxes,
            ids(set),
            &spans,
            &order,
            config,
            &mut Sorts::default(),
        )
    };
    sets.iter().zip(spans).enumerate().map(records).collect()
}

#[cfg(test)]
mod tests {
    use super::super::columns::Cuts;
    use super::super::order::order;
    use super::super::plan::plan;
    use super::*;
    use crate::{Aabb, Frame, OnInvalid, OverlapRule, Pair};
    use std::time::Instant;

    /// Small boxes, and plates that are thin on z and reach through all columns of x and y.
    fn plates_among_boxes() -> Vec<Aabb> {
        let mut state = 7_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32
        };
        let mut one = |i: usize| {
            let mut min = [(); 3].map(|()| 30.0 * next());
            let mut side = [0.3 + 0.7 * next(); 3];
            if i.is_multiple_of(20) {
                (min[0], min[1], side) = (-1.0, -1.0, [40.0, 40.0, 0.01]);
            }
            Aabb::new(min, std::array::from_fn(|k| min[k] + side[k]))
        };
        (0..8000).map(&mut one).collect()
    }

    #[test]
    fn oversized_boxes_are_swept_on_their_own() {
        let boxes = plates_among_boxes();
        let worlds: Vec<u32> = (0..boxes.len() as u32).map(|i| i % 2).collect();
        for rule in [OverlapRule::Closed, OverlapRule::Open] {
            for worlds in [None, Some(&worlds[..])] {
                let config = Config {
                    rule,
                    strategy: Strategy::Subdivided,
                    ..Config::default()
                };
                let frame = Frame {
                    worlds,
                    ..Frame::boxes(&boxes)
                };
                let mut scene = Scene::default();
                assert!(
                    scene
                        .read(&frame, OnInvalid::Error, 0.0, &Scene::default())
                        .is_ok()
                );
                // Columns narrower than the plan would have them, so that the plates are worth a list of their own.
                let mut plan = plan(&boxes, worlds, Strategy::Subdivided);
                let even: Vec<f32> = (0..30).map(|i| i as f32).collect();
                plan.columns.cuts = [Cuts::new(&even, 30), Cuts::new(&even, 30)];
                let Ok(numbers) = Worlds::new([worlds, None]) else {
                    panic!("no memory")
                };
                let grid = Grid {
                    columns: &plan.columns,
                    worlds: &numbers,
                    axis: plan.axis,
                };
                let sorts = &mut Sorts::default();
                let Ok(order_x) = order_by_min(&boxes, plan.axis, &config, sorts) else {
                    panic!("the sort failed")
                };
                let Ok(split) = Split::new(&boxes, &grid, &plan, Vec::new()) else {
                    panic!("no memory")
                };
                let large = order_x.iter().filter(|&&i| split.is_large(i as usize));
                assert_eq!(
                    (large.count(), order_x.len()),
                    (400, 8000),
                    "axis {}",
                    plan.axis
                );

                let spare = Spare::default();
                let clock = &mut Clock(Instant::now());
                let all = found(
                    &config,
                    &scene,
                    &plan,
                    u64::MAX,
                    &spare,
                    &mut Timings::default(),
                    clock,
                );
                let Ok(all) = all else {
                    panic!("the sort failed")
                };
                let mut pairs = Vec::new();
                assert!(order(all.blocks, boxes.len(), &mut pairs, &spare).is_ok());
                let mut expected = Vec::new();
                for (i, a) in boxes.iter().enumerate() {
                    for (j, b) in boxes.iter().enumerate().skip(i + 1) {
                        if a.overlaps(b, rule) && worlds.is_none_or(|worlds| worlds[i] == worlds[j])
                        {
                            expected.push(Pair {
                                a: i as u32,
                                b: j as u32,
                            });
                        }
                    }
                }
                assert!(
                    pairs == expected,
                    "{} pairs, expected {}",
                    pairs.len(),
                    expected.len()
                );
            }
        }
    }
}
