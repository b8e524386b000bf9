//! Full update: finds all pairs of a frame by the sweep of its plan or a tree ([`FullSearch`]), all
//! against all ([`brute`]), or by the kept tree ([`kept`]).

pub(super) mod arrange;
pub(super) mod brute;
mod column;
pub(super) mod columns;
mod endpoints;
mod entry;
pub(super) mod kept;
mod partition;
pub(super) mod plan;
pub(super) mod records;
pub(super) mod sample;
pub(super) mod split;
mod sweep;
pub(super) mod two_sets;

use crate::cpu::accept::{Accept, WorldTest};
use crate::cpu::clock::Clock;
use crate::cpu::incremental::search::{Partners, Search};
use crate::cpu::incremental::tree::Tree;
use crate::cpu::output::collect::{Collector, Found, SpareBlocks};
use crate::cpu::scene::Scene;
use crate::threads::on_threads;
use crate::{Config, Result, Sorts, Strategy};
use arrange::{ColumnLayout, Worlds, in_one_column, order_by_min};
use columns::{Columns, Span};
use endpoints::Ranges;
use entry::Entry;
use partition::Partition;
use plan::Plan;
use split::Split;
use sweep::{Pass, Role, run_pass};

/// Memory of the sweep inside columns, reused by every update.
#[derive(Default)]
pub(super) struct Scratch {
    entries: Vec<Entry>,
    spans: Vec<Span>,
}

/// Stores memory for reuse. Most of it is freed if much less was needed.
fn put_back<T>(to: &mut Vec<T>, mut memory: Vec<T>) {
    if memory.capacity() / 4 > memory.len() {
        memory.shrink_to(2 * memory.len());
    }
    *to = memory;
}

/// Finds all pairs of a scene by its plan.
pub(super) struct FullSearch<'a> {
    pub(super) config: &'a Config,
    pub(super) scene: &'a Scene,
    pub(super) plan: &'a Plan,
    pub(super) blocks: &'a SpareBlocks,
}

impl FullSearch<'_> {
    /// Finds the pairs. Beyond `limit` they are only counted. A sweep that exceeds its budget
    /// stops, and the tree finds all pairs.
    pub(super) fn run(
        &self,
        limit: u64,
        scratch: &mut Scratch,
        clock: &mut Clock,
    ) -> Result<Found> {
        if self.is_one_sweep() {
            return self.find(limit, scratch, clock);
        }
        on_threads(|| self.find(limit, scratch, clock))
    }

    /// Tells whether the plan is a single sweep of all boxes. In a small frame that needs no other
    /// thread.
    fn is_one_sweep(&self) -> bool {
        let sweeps = self.plan.strategy != Strategy::Endpoints && !self.plan.by_tree;
        sweeps && self.plan.columns.count() == 1 && self.scene.worlds.is_none()
    }

    fn find(&self, limit: u64, scratch: &mut Scratch, clock: &mut Clock) -> Result<Found> {
        if self.plan.by_tree {
            return self.by_tree(limit, clock);
        }
        let mut collector = Collector::new(limit, self.blocks);
        if self.plan.is_bounded {
            collector = collector.bounded(self.scene.boxes.len());
        }
        let found = match self.plan.strategy {
            Strategy::Endpoints => self.by_endpoints(&collector, clock),
            _ if self.is_one_sweep() => self.by_one_sweep(&collector, clock),
            _ => self.by_columns(&collector, scratch, clock),
        }?;
        if !collector.is_exceeded() {
            return Ok(found);
        }
        let tests = found.tests;
        let blocks = found.blocks.into_iter();
        blocks.for_each(|block| self.blocks.give(block));
        let mut found = self.by_tree(limit, clock)?;
        found.tests += tests;
        Ok(found)
    }

    /// Finds the pairs by [`Strategy::Endpoints`].
    fn by_endpoints(&self, collector: &Collector, clock: &mut Clock) -> Result<Found> {
        let mut sorts = Sorts::default();
        let ranges = Ranges::new(&self.scene.boxes, self.config, &mut sorts)?;
        clock.lap(|timings| &mut timings.sort);
        let found = ranges.run(&self.accept_all()?, collector);
        clock.lap(|timings| &mut timings.sweep);
        Ok(found.with_sorts(sorts))
    }

    /// Finds the pairs by one sweep of all boxes along one axis.
    fn by_one_sweep(&self, collector: &Collector, clock: &mut Clock) -> Result<Found> {
        let (boxes, axis) = (&self.scene.boxes, self.plan.axis);
        let mut sorts = Sorts::default();
        let order = order_by_min(boxes, axis, self.config, &mut sorts)?;
        clock.lap(|timings| &mut timings.keys);
        let all = in_one_column(boxes, order, axis, self.config)?;
        clock.lap(|timings| &mut timings.sort);
        let found = run_pass(&Pass::within(&all, &self.accept_all()?), collector);
        clock.lap(|timings| &mut timings.sweep);
        Ok(found.with_sorts(sorts))
    }

    /// Finds the pairs by a sweep inside each column, and those of oversized boxes by a sweep
    /// against all boxes.
    fn by_columns(
        &self,
        collector: &Collector,
        scratch: &mut Scratch,
        clock: &mut Clock,
    ) -> Result<Found> {
        let (config, boxes, axis) = (self.config, &self.scene.boxes, self.plan.axis);
        let mut sorts = Sorts::default();
        let ids = self.scene.worlds.as_deref();
        let worlds = Worlds::new([ids, None])?;
        let one = Columns::default();
        let layout = ColumnLayout {
            columns: if worlds.fit(&self.plan.columns) {
                &self.plan.columns
            } else {
                &one
            },
            worlds: &worlds,
            axis,
        };
        let spans = std::mem::take(&mut scratch.spans);
        let split = Split::new(boxes, &layout, self.plan, spans)?;
        clock.lap(|timings| &mut timings.keys);
        let (oversized, others) = if split.has_oversized() || ids.is_some() {
            split.parts(&order_by_min(boxes, axis, config, &mut sorts)?)?
        } else {
            (Vec::new(), Vec::new())
        };
        let accept = Accept::new(self.scene, self.scene, config.rule, WorldTest::ByColumns)?;
        let mut found = if ids.is_none() {
            let entries = std::mem::take(&mut scratch.entries);
            let partition = Partition::new(&split, &layout, config.rule, entries)?;
            clock.lap(|timings| &mut timings.sort);
            let (found, entries) = partition.sweep(&accept, collector);
            put_back(&mut scratch.entries, entries);
            found
        } else {
            let all = layout.records(boxes, ids, split.spans(), &others, config, &mut sorts)?;
            clock.lap(|timings| &mut timings.sort);
            run_pass(&Pass::within(&all, &accept), collector)
        };
        if !oversized.is_empty() {
            found = found.merge(self.by_oversized(oversized, others, collector)?);
        }
        put_back(&mut scratch.spans, split.into_spans());
        clock.lap(|timings| &mut timings.sweep);
        Ok(found.with_sorts(sorts))
    }

    /// Finds the pairs of oversized boxes with each other and with all others. Both lists are in
    /// sweep order.
    fn by_oversized(
        &self,
        oversized: Vec<u32>,
        others: Vec<u32>,
        collector: &Collector,
    ) -> Result<Found> {
        let one = |order| in_one_column(&self.scene.boxes, order, self.plan.axis, self.config);
        let (oversized, others, accept) = (one(oversized)?, one(others)?, self.accept_all()?);
        let between = |from, into, role| Pass {
            from,
            into,
            role,
            accept: &accept,
        };
        let passes = [
            Pass::within(&oversized, &accept),
            between(&oversized, &others, Role::ForthPart),
            between(&others, &oversized, Role::BackPart),
        ];
        Ok(sweep::run(&passes, collector))
    }

    /// Finds the pairs by a tree of all boxes.
    fn by_tree(&self, limit: u64, clock: &mut Clock) -> Result<Found> {
        on_threads(|| {
            let tree = Tree::new(self.scene, self.config.rule)?;
            clock.lap(|timings| &mut timings.sort);
            let search = Search {
                tree: &tree,
                scene: self.scene,
                some: tree.leaf_order(),
                partners: Partners::Later,
                accept: &self.accept_all()?,
            };
            let mut found = search.run(&Collector::new(limit, self.blocks));
            clock.lap(|timings| &mut timings.sweep);
            found.sorts.keys += self.scene.boxes.len() as u64;
            found.by_tree = true;
            Ok(found)
        })
    }

    /// Returns all tests of pairs, worlds included.
    fn accept_all(&self) -> Result<Accept<'_>> {
        Accept::new(self.scene, self.scene, self.config.rule, WorldTest::PerPair)
    }
}

/// Returns all pairs of a scene in order, found by `plan`.
#[cfg(test)]
pub(in crate::cpu) fn all_pairs(config: &Config, scene: &Scene, plan: &Plan) -> Vec<crate::Pair> {
    let blocks = SpareBlocks::default();
    let search = FullSearch {
        config,
        scene,
        plan,
        blocks: &blocks,
    };
    let found = search.run(u64::MAX, &mut Scratch::default(), &mut Clock::start());
    crate::cpu::output::order::sorted_pairs(found, scene.boxes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu;
    use crate::cpu::full::arrange::order_by_min;
    use crate::cpu::full::columns::Cuts;
    use crate::cpu::full::plan::plan;
    use crate::cpu::full::two_sets::by_tree;
    use crate::cpu::output::order::sorted_pairs;
    use crate::engine::Engine;
    use crate::random::Random;
    use crate::{Aabb, Filter, FilterFlags, Frame, OnInvalid, OverlapRule, Pair};

    /// Returns small boxes, and plates that are flat on z and span all columns of x and y.
    fn plates_among_boxes() -> Vec<Aabb> {
        let mut random = Random(7);
        let mut next = || random.unit();
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

    /// A frame with everything that keeps boxes from pairing.
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

        /// Reads the frame. The bits of `with` select filters, worlds and excluded pairs.
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
                let pairs = all_pairs(&config, &scene, &plan);
                let accept = Accept::new(&scene, &scene, rule, WorldTest::PerPair).expect("memory");
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
                assert!(pairs == expected, "{rule:?}, with {with:b}");

                // Two sets, one of which may have no filters.
                for second in [others.scene(with & 3), others.scene(0)] {
                    let spare = SpareBlocks::default();
                    let found = by_tree(&scene, &second, rule, u64::MAX, &spare);
                    let accept =
                        Accept::new(&scene, &second, rule, WorldTest::PerPair).expect("memory");
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
                    assert!(
                        sorted_pairs(found, n) == expected,
                        "{rule:?}, with {with:b}"
                    );
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
            let mut broad_phase = cpu::Engine::new(Config::default());
            let frame = Frame {
                filters: Some(&filters),
                ..Frame::boxes(&boxes)
            };
            let Ok(report) = broad_phase.update(&frame) else {
                panic!("no memory")
            };
            assert_eq!(report.pairs, 0);
            // The sweep stops at its budget, and the tree makes few tests.
            assert!(
                report.stats.tests < 200 * n as u64,
                "{} tests",
                report.stats.tests
            );
        }
    }

    #[test]
    fn oversized_boxes_are_swept_against_all_others() {
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
                // Columns are narrower than planned, so that the plates count as oversized.
                let mut plan = plan(&boxes, worlds, Strategy::Subdivided);
                let even: Vec<f32> = (0..30).map(|i| i as f32).collect();
                plan.columns.cuts = [Cuts::even(&even, 30), Cuts::even(&even, 30)];
                let Ok(indices) = Worlds::new([worlds, None]) else {
                    panic!("no memory")
                };
                let layout = ColumnLayout {
                    columns: &plan.columns,
                    worlds: &indices,
                    axis: plan.axis,
                };
                let sorts = &mut Sorts::default();
                let Ok(order_x) = order_by_min(&boxes, plan.axis, &config, sorts) else {
                    panic!("the sort failed")
                };
                let Ok(split) = Split::new(&boxes, &layout, &plan, Vec::new()) else {
                    panic!("no memory")
                };
                let oversized = order_x.iter().filter(|&&i| split.is_oversized(i as usize));
                assert_eq!(
                    (oversized.count(), order_x.len()),
                    (400, 8000),
                    "axis {}",
                    plan.axis
                );

                let pairs = all_pairs(&config, &scene, &plan);
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
