//! The strategies: a scene and a plan in, all pairs out.

pub(super) mod arrange;
mod column;
pub(super) mod columns;
mod endpoints;
pub(super) mod entry;
mod partition;
pub(super) mod plan;
pub(super) mod records;
pub(super) mod sweep;

use crate::cpu::accept::Accept;
use crate::cpu::clock::Clock;
use crate::cpu::incremental::search::{Partners, Search};
use crate::cpu::incremental::tree::Tree;
use crate::cpu::output::collect::{Collector, Found, Spare};
use crate::cpu::scene::Scene;
use crate::cpu::tuning::MOST_COPIES;
use crate::packing;
use crate::threads::on_threads;
use crate::{Config, OverlapRule, Result, Sorts, Strategy, Timings};
use arrange::{Grid, Split, Worlds, in_one_column, order_by_min};
use columns::{Columns, area};
use endpoints::Ranges;
use partition::Partition;
use plan::Plan;
use records::Records;
use sweep::{Pass, Role, of_pass, run};

/// What two sets and rounds are swept by: endpoint records serve one whole set.
pub(in crate::cpu) fn swept(strategy: Strategy) -> Strategy {
    if strategy == Strategy::Endpoints {
        Strategy::Sweep
    } else {
        strategy
    }
}

/// The pairs of a scene; past `limit` they are only counted. Work that exceeds the bound of its plan is
/// given up, and the tree finds them all.
pub(in crate::cpu) fn found(
    config: &Config,
    scene: &Scene,
    plan: &Plan,
    limit: u64,
    spare: &Spare,
    timings: &mut Timings,
    clock: &mut Clock,
) -> Result<Found> {
    let mut tests = 0;
    if !plan.by_tree {
        let mut collector = Collector::new(limit, spare);
        if plan.is_bounded {
            collector = collector.bounded(scene.boxes.len());
        }
        let found = by_plan(config, scene, plan, &collector, timings, clock)?;
        if !collector.is_exceeded() {
            return Ok(found);
        }
        tests = found.tests;
        found.blocks.into_iter().for_each(|block| spare.give(block));
    }
    let mut found = on_threads(|| {
        let tree = Tree::new(scene, config.rule)?;
        timings.sort += clock.lap();
        let search = Search {
            tree: &tree,
            scene,
            some: tree.walk(),
            partners: Partners::Later,
            accept: &Accept::new(scene, scene, config.rule, true),
        };
        Ok(search.run(&Collector::new(limit, spare)))
    })?;
    timings.sweep += clock.lap();
    found.sorts.keys += scene.boxes.len() as u64;
    found.tests += tests;
    found.by_tree = true;
    Ok(found)
}

/// The pairs of two sets by a tree of the second.
pub(in crate::cpu) fn between(
    first: &Scene,
    second: &Scene,
    rule: OverlapRule,
    limit: u64,
    spare: &Spare,
) -> Result<Found> {
    let (some, held) = packing::order(first.packed())?;
    let search = Search {
        tree: &Tree::new(second, rule)?,
        scene: first,
        some: &some[..held],
        partners: Partners::Others,
        accept: &Accept::new(first, second, rule, true),
    };
    Ok(search.run(&Collector::new(limit, spare)))
}

/// The pairs of a scene by one of the sweeps, unless the collector's bound is exceeded.
fn by_plan(
    config: &Config,
    scene: &Scene,
    plan: &Plan,
    collector: &Collector,
    timings: &mut Timings,
    clock: &mut Clock,
) -> Result<Found> {
    let (boxes, axis, spare) = (&scene.boxes, plan.axis, collector.spare());
    let mut sorts = Sorts::default();
    let in_columns = Accept::new(scene, scene, config.rule, false);
    let anywhere = Accept::new(scene, scene, config.rule, true);
    if plan.strategy == Strategy::Endpoints {
        let ranges = Ranges::new(boxes, config, &mut sorts)?;
        timings.sort = clock.lap();
        let found = ranges.run(&anywhere, collector);
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
        let found = run(&[Pass::within(&all, &anywhere)], collector);
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
    let (large, small) = if split.has_large() || ids.is_some() {
        let order = order_by_min(boxes, axis, config, &mut sorts)?;
        split.parts(&order)?
    } else {
        (Vec::new(), Vec::new())
    };
    let mut found = if ids.is_none() {
        let partition = Partition::new(boxes, config.rule, axis, columns, &split, spare)?;
        timings.sort = clock.lap();
        partition.sweep(&in_columns, collector)
    } else {
        let columns = grid.records(boxes, ids, split.spans(), &small, config, &mut sorts)?;
        timings.sort = clock.lap();
        of_pass(&Pass::within(&columns, &in_columns), collector)
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
            found = found.merge(of_pass(pass, collector));
        }
    }
    spare.give_spans(split.into_spans());
    timings.sweep = clock.lap();
    Ok(found.sorted_by(sorts))
}

/// All boxes of each set in sweep order, without a list of oversized ones, worlds told apart by columns: those of the plan
/// unless they would take too many copies.
pub(in crate::cpu) fn arranged(
    config: &Config,
    sets: &[&Scene],
    plan: &Plan,
) -> Result<Vec<Records>> {
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
    use super::*;
    use crate::cpu::Engine;
    use crate::cpu::full::columns::Cuts;
    use crate::cpu::full::plan::plan;
    use crate::cpu::output::order::order;
    use crate::{Aabb, Filter, FilterFlags, Frame, OnInvalid, OverlapRule, Pair};

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

    /// A frame with all that keeps boxes apart.
    struct Mixed {
        boxes: Vec<Aabb>,
        filters: Vec<Filter>,
        worlds: Vec<u32>,
        excluded: Vec<Pair>,
    }

    impl Mixed {
        fn new(n: usize) -> Self {
            let boxes = plates_among_boxes()[..n].to_vec();
            let filter = |i: u32| Filter {
                layers: 1 << (i % 3),
                mask: if i.is_multiple_of(7) { 0b101 } else { 0b111 },
                group: if i.is_multiple_of(4) { i % 5 } else { 0 },
                flags: FilterFlags((i % 6) & 3),
            };
            Self {
                filters: (0..n as u32).map(filter).collect(),
                worlds: (0..n as u32).map(|i| 1000 * (i / 7 % 3)).collect(),
                excluded: (0..n as u32 - 1).map(|i| Pair { a: i, b: i + 1 }).collect(),
                boxes,
            }
        }

        /// With some of it, by the bits of a number.
        fn scene(&self, with: u32) -> Scene {
            let has = |bit: u32| with >> bit & 1 == 1;
            let frame = Frame {
                filters: has(0).then_some(&self.filters[..]),
                worlds: has(1).then_some(&self.worlds[..]),
                excluded: if has(2) { &self.excluded } else { &[] },
                ..Frame::boxes(&self.boxes)
            };
            let mut scene = Scene::default();
            let read = scene.read(&frame, OnInvalid::Error, 0.0, &Scene::default());
            assert!(read.is_ok());
            scene
        }
    }

    fn pairs_of(found: Result<Found>, rows: usize) -> Vec<Pair> {
        let Ok(Ok(found)) = found.map(Found::stored) else {
            panic!("no memory")
        };
        let mut pairs = Vec::new();
        assert!(order(found.blocks, rows, &mut pairs, &Spare::default()).is_ok());
        pairs
    }

    #[test]
    fn the_tree_finds_what_brute_force_finds() {
        let (some, others) = (Mixed::new(2500), Mixed::new(700));
        for rule in [OverlapRule::Closed, OverlapRule::Open] {
            for with in 0..8 {
                let config = Config {
                    rule,
                    ..Config::default()
                };
                let scene = some.scene(with);
                let mut plan = plan(&scene.boxes, scene.worlds.as_deref(), Strategy::Auto);
                plan.by_tree = true;
                let spare = Spare::default();
                let (clock, timings) = (&mut Clock::start(), &mut Timings::default());
                let found = found(&config, &scene, &plan, u64::MAX, &spare, timings, clock);
                let accept = Accept::new(&scene, &scene, rule, true);
                let all = |i: usize, j: usize| {
                    scene.boxes[i].overlaps(&scene.boxes[j], rule)
                        && accept.keeps(i as u32, j as u32)
                };
                let n = scene.boxes.len();
                let expected: Vec<Pair> = (0..n)
                    .flat_map(|i| (i + 1..n).map(move |j| (i, j)))
                    .filter(|&(i, j)| all(i, j))
                    .map(|(i, j)| Pair::new(i as u32, j as u32))
                    .collect();
                assert!(expected.len() > 300);
                assert!(pairs_of(found, n) == expected, "{rule:?}, with {with:b}");

                // Two sets, of which one may have no filters.
                for second in [others.scene(with & 3), others.scene(0)] {
                    let found = between(&scene, &second, rule, u64::MAX, &spare);
                    let accept = Accept::new(&scene, &second, rule, true);
                    let mut expected = Vec::new();
                    for i in 0..n {
                        for j in 0..second.boxes.len() {
                            if scene.boxes[i].overlaps(&second.boxes[j], rule)
                                && accept.keeps(i as u32, j as u32)
                            {
                                expected.push(Pair {
                                    a: i as u32,
                                    b: j as u32,
                                });
                            }
                        }
                    }
                    assert!(pairs_of(found, n) == expected, "{rule:?}, with {with:b}");
                }
            }
        }
    }

    #[test]
    fn classes_that_do_not_pair_are_not_tested() {
        let n = 20_000;
        let boxes = vec![Aabb::new([0.0; 3], [1.0; 3]); n];
        let of = |filter: fn(u32) -> Filter| (0..n as u32).map(filter).collect::<Vec<_>>();
        let cases = [
            of(|_| Filter {
                flags: FilterFlags::STATIC,
                ..Filter::default()
            }),
            of(|_| Filter {
                group: 7,
                ..Filter::default()
            }),
            of(|i| Filter {
                layers: 1 << (i % 2),
                mask: 2 >> (i % 2) << 2,
                ..Filter::default()
            }),
            of(|i| Filter {
                group: i % 3 / 2,
                flags: FilterFlags(3),
                ..Filter::default()
            }),
        ];
        for filters in cases {
            let mut broad_phase = Engine::new(&Config::default());
            let frame = Frame {
                filters: Some(&filters),
                ..Frame::boxes(&boxes)
            };
            let Ok(report) = broad_phase.update(&Config::default(), &frame) else {
                panic!("no memory")
            };
            assert_eq!(report.pairs, 0);
            // What the bound lets through before it stops, and little more.
            assert!(report.tests < 200 * n as u64, "{} tests", report.tests);
        }
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
                let clock = &mut Clock::start();
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
