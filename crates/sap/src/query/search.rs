//! Searches a tree for all hits, for the closest, or for one after the other from the nearest on.

use super::node::{BRANCH, lanes};
use super::probe::{Level, Probe};
use super::sieve::Sieve;
use super::tree::Tree;
use crate::{Error, Hit, Result};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

/// What is looked for in a tree.
pub(crate) struct TreeQuery<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) probe: Probe,
    pub(crate) sieve: Option<Sieve<'a>>,
}

impl TreeQuery<'_> {
    /// Calls `found` with all hits, in an order that has no meaning, until it breaks.
    pub(crate) fn each<B>(&self, found: &mut impl FnMut(Hit) -> ControlFlow<B>) -> ControlFlow<B> {
        let root = self.tree.root();
        root.map_or(ControlFlow::Continue(()), |level| {
            self.descend(level, 0, found)
        })
    }

    fn descend<B>(
        &self,
        level: usize,
        node: usize,
        found: &mut impl FnMut(Hit) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let mut nearest = [0.0; BRANCH];
        for lane in lanes(self.met(level, node, &mut nearest)) {
            let child = node * BRANCH + lane;
            match level.checked_sub(1) {
                Some(below) => self.descend(below, child, found)?,
                None => found(self.hit(child, nearest[lane]))?,
            }
        }
        ControlFlow::Continue(())
    }

    /// The first of all hits by distance, then index. Nodes farther than the best hit so far are
    /// not looked at.
    pub(crate) fn closest(&self) -> Option<Hit> {
        let mut best = None;
        if let Some(level) = self.tree.root() {
            self.descend_nearest(level, 0, &mut best);
        }
        best
    }

    fn descend_nearest(&self, level: usize, node: usize, best: &mut Option<Hit>) {
        let mut nearest = [0.0; BRANCH];
        let met = self.met(level, node, &mut nearest);
        let Some(below) = level.checked_sub(1) else {
            for lane in lanes(met) {
                let hit = self.hit(node * BRANCH + lane, nearest[lane]);
                if best.is_none_or(|best| hit.rank() < best.rank()) {
                    *best = Some(hit);
                }
            }
            return;
        };
        let mut order = [0; BRANCH];
        let mut count = 0;
        for lane in lanes(met) {
            let before = order[..count].iter().rev();
            let later = before
                .take_while(|&&other| nearest[other] > nearest[lane])
                .count();
            order.copy_within(count - later..count, count - later + 1);
            order[count - later] = lane;
            count += 1;
        }
        for &lane in &order[..count] {
            if best.is_some_and(|best| nearest[lane] > best.t) {
                return;
            }
            self.descend_nearest(below, node * BRANCH + lane, best);
        }
    }

    /// Calls `found` with all hits by distance, then index, until it breaks. Looks at no node that
    /// is farther than the last hit.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]: the nodes that are yet to be looked at are kept.
    pub(crate) fn nearest_first<B>(
        &self,
        mut found: impl FnMut(Hit) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        // Distance, then nodes before boxes, so that among equals the smallest index comes first.
        let mut ahead = BinaryHeap::new();
        let entry = |t: f32, level: Option<usize>, id: u32| {
            let kind = level.map_or(u8::MAX, |level| level as u8);
            Reverse((t.to_bits(), kind, id))
        };
        let mut next = self.tree.root().map(|level| entry(0.0, Some(level), 0));
        while let Some(Reverse((t, kind, id))) = next {
            if kind == u8::MAX {
                if let flow @ ControlFlow::Break(_) = found(Hit {
                    index: id,
                    t: f32::from_bits(t),
                }) {
                    return Ok(flow);
                }
            } else {
                let (level, node) = (usize::from(kind), id as usize);
                let mut nearest = [0.0; BRANCH];
                let met = self.met(level, node, &mut nearest);
                let more = met.count_ones() as usize;
                ahead.try_reserve(more).map_err(|_| Error::OutOfMemory {
                    bytes: ((ahead.len() + more) * size_of::<(u32, u8, u32)>()) as u64,
                })?;
                for lane in lanes(met) {
                    let child = node * BRANCH + lane;
                    ahead.push(match level.checked_sub(1) {
                        Some(below) => entry(nearest[lane], Some(below), child as u32),
                        None => entry(nearest[lane], None, self.tree.order[child]),
                    });
                }
            }
            next = ahead.pop();
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Returns which children of a node are met, and let through by the sieve, a bit for each.
    #[inline]
    fn met(&self, level: usize, node: usize, nearest: &mut [f32; BRANCH]) -> u32 {
        let children = self.tree.children(level, node);
        let all = u32::MAX >> (u32::BITS as usize - children);
        let boxes = &self.tree.levels[level][node];
        let kind = if level == 0 {
            Level::Leaf
        } else {
            Level::Inner
        };
        let met = all & self.probe.meets(boxes, kind, nearest);
        let Some(sieve) = &self.sieve else {
            return met;
        };
        let passes = |lane: usize| {
            let child = node * BRANCH + lane;
            match level.checked_sub(1) {
                Some(below) => sieve.enters(below, child),
                None => sieve.passes(self.tree.order[child]),
            }
        };
        let passing = lanes(met).filter(|&lane| passes(lane));
        passing.fold(0, |mask, lane| mask | 1 << lane)
    }

    fn hit(&self, child: usize, t: f32) -> Hit {
        let index = self.tree.order[child];
        Hit { index, t }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::probe::LOOKS;
    use crate::query::tree::threads_for;
    use crate::random::Random;
    use crate::{Aabb, OverlapRule, Shape};

    /// Cubes about as far from each other as they are large.
    fn cubes(n: usize) -> Vec<Aabb> {
        let mut random = Random(7);
        let mut next = || random.unit();
        let side = (n as f32).cbrt();
        let mut cube = || {
            let min = [(); 3].map(|()| side * next());
            Aabb::new(min, min.map(|low| low + 0.5))
        };
        (0..n).map(|_| cube()).collect()
    }

    fn tree(boxes: &[Aabb]) -> Tree {
        let Ok(tree) = Tree::new(boxes, &[], threads_for(boxes.len())) else {
            panic!("no memory")
        };
        tree
    }

    fn search<'a>(tree: &'a Tree, shape: &Shape) -> TreeQuery<'a> {
        let Some(probe) = Probe::new(shape, OverlapRule::Closed) else {
            panic!("{shape:?} meets nothing")
        };
        TreeQuery {
            tree,
            probe,
            sieve: None,
        }
    }

    fn all(search: &TreeQuery) -> Vec<Hit> {
        let mut all = Vec::new();
        let flow = search.each(&mut |hit| {
            all.push(hit);
            ControlFlow::<()>::Continue(())
        });
        assert!(flow.is_continue());
        all
    }

    /// How many boxes and unions something looks at.
    fn looks<T>(f: impl FnOnce() -> T) -> (u64, T) {
        let before = LOOKS.get();
        let result = f();
        (LOOKS.get() - before, result)
    }

    /// The mean of what small queries look at.
    fn mean_looks(boxes: &[Aabb]) -> u64 {
        let tree = tree(boxes);
        let mut sum = 0;
        for k in 0..100 {
            let query = Aabb::new([0.2 * k as f32; 3], [0.2 * k as f32 + 1.0; 3]);
            let (looked, found) = looks(|| all(&search(&tree, &query.into())));
            sum += looked;
            let mut found: Vec<u32> = found.iter().map(|hit| hit.index).collect();
            found.sort_unstable();
            let overlaps = |&i: &u32| boxes[i as usize].overlaps(&query, OverlapRule::Closed);
            let expected: Vec<u32> = (0..boxes.len() as u32).filter(overlaps).collect();
            assert_eq!(found, expected);
        }
        sum / 100
    }

    #[test]
    fn one_far_box_leaves_queries_unchanged() {
        let boxes = cubes(20_000);
        let before = mean_looks(&boxes);
        assert!(before < 400, "{before} looks a query");
        let far = [
            Aabb::new([f32::MIN, -1.0, f32::MIN], [f32::MAX, 0.0, f32::MAX]),
            Aabb::new([f32::NEG_INFINITY; 3], [f32::INFINITY; 3]),
            Aabb::new([0.0, -1e8, 0.0], [1.0, -1e8, 1.0]),
            Aabb::new([1e30; 3], [1e30; 3]),
            Aabb::new([f32::MAX; 3], [f32::INFINITY; 3]),
        ];
        for one in far {
            for index in [0, 777, 19_999] {
                let mut boxes = boxes.clone();
                boxes[index] = one;
                let after = mean_looks(&boxes);
                assert!(
                    after < before + before / 4 + 16,
                    "{one:?}: {before} to {after}"
                );
            }
        }
    }

    #[test]
    fn scales_that_differ_are_told_apart() {
        // Two heaps of 10,000, each a point to the other; and sizes over eight decades.
        let mut boxes = cubes(10_000);
        let far = boxes.clone();
        boxes.extend(far.iter().map(|b| {
            let move_far = |side: [f32; 3]| side.map(|value| 1e-3 * value - 1e9);
            Aabb::new(move_far(b.min), move_far(b.max))
        }));
        let looked = mean_looks(&boxes);
        assert!(looked < 500, "{looked} looks a query");
        let mut boxes = cubes(20_000);
        for (k, b) in boxes.iter_mut().enumerate() {
            let scale = 10_f32.powi(k as i32 % 9 - 6);
            *b = Aabb::new(b.min, std::array::from_fn(|axis| b.min[axis] + scale));
        }
        let found = boxes.iter().filter(|b| b.max[0] - b.min[0] > 1.0).count() as u64;
        let looked = mean_looks(&boxes);
        assert!(
            looked < 2 * found,
            "{looked} looks a query, {found} large boxes"
        );
    }

    /// Rays through the whole scene, and spheres over it.
    fn long_shapes() -> impl Iterator<Item = Shape> {
        let mut random = Random(7);
        let mut next = move || random.unit();
        (0..40).map(move |k| {
            let start = [(); 3].map(|()| 27.0 * next());
            if k % 2 == 0 {
                let dir = [(); 3].map(|()| next() - 0.5);
                let max_t = 1e6;
                return Shape::Ray {
                    origin: start,
                    dir,
                    max_t,
                };
            }
            Shape::Sphere {
                center: start,
                radius: 20.0,
            }
        })
    }

    #[test]
    fn who_stops_early_looks_at_little() {
        let boxes = cubes(20_000);
        let tree = tree(&boxes);
        let mut sums = [0; 4];
        for shape in long_shapes() {
            let search = search(&tree, &shape);
            let (of_all, mut hits) = looks(|| all(&search));
            hits.sort_unstable_by_key(Hit::rank);
            let (of_closest, closest) = looks(|| search.closest());
            let (of_first, first) = looks(|| {
                search
                    .nearest_first(ControlFlow::Break)
                    .map(ControlFlow::break_value)
            });
            let (of_any, any) = looks(|| search.each(&mut |_| ControlFlow::Break(())));
            assert_eq!(closest, hits.first().copied());
            assert_eq!(first.ok(), Some(closest));
            assert_eq!(any.is_break(), closest.is_some());
            // No node is looked at that begins after the hit: none could be left out.
            assert!(of_first <= of_closest && of_closest <= of_all, "{shape:?}");
            let some = [of_all, of_closest, of_first, of_any];
            sums.iter_mut()
                .zip(some)
                .for_each(|(sum, looks)| *sum += looks);
        }
        let [of_all, of_closest, of_first, of_any] = sums;
        assert!(10 * of_closest < of_all, "{sums:?}");
        assert!(10 * of_first < of_all && 10 * of_any < of_all, "{sums:?}");
    }

    #[test]
    fn a_visitor_that_breaks_later_looks_at_no_more_than_it_must() {
        let boxes = cubes(20_000);
        let tree = tree(&boxes);
        for shape in long_shapes() {
            let search = search(&tree, &shape);
            let mut expected = all(&search);
            expected.sort_unstable_by_key(Hit::rank);
            let mut last = 0;
            for count in [1, 2, 5, 20, 20 + expected.len()] {
                let mut seen = Vec::new();
                let (looked, flow) = looks(|| {
                    search.nearest_first(|hit| {
                        seen.push(hit);
                        if seen.len() < count {
                            ControlFlow::Continue(())
                        } else {
                            ControlFlow::Break(())
                        }
                    })
                });
                assert!(flow.is_ok());
                assert_eq!(seen, expected[..seen.len()]);
                assert_eq!(seen.len(), count.min(expected.len()));
                assert!(last <= looked, "{shape:?}");
                last = looked;
            }
        }
    }

    #[test]
    fn a_sieve_leaves_out_whole_nodes() {
        use crate::Filter;
        use crate::query::{Labels, Sieve};
        let boxes = cubes(20_000);
        // Half of the space is another layer, and as many boxes in each of 16 worlds.
        let filters: Vec<Filter> = (boxes.iter())
            .map(|b| Filter {
                layers: 1 << u32::from(b.min[0] > 13.5),
                ..Filter::default()
            })
            .collect();
        let worlds: Vec<u32> = (0..20_000).map(|i| i % 16).collect();
        let labels = || Labels {
            filters: filters.clone().into(),
            worlds: worlds.clone().into(),
        };
        let all_of_it = Shape::Aabb(Aabb::new([0.0; 3], [30.0; 3]));
        let filter = Filter {
            mask: 1,
            ..Filter::default()
        };
        let Ok(by_world) = Tree::new(&boxes, &worlds, threads_for(boxes.len())) else {
            panic!("no memory")
        };
        for (filter, world, part) in [(Some(filter), None, 2), (None, Some(3), 16)] {
            let Ok(sieve) = Sieve::new(filter, world, labels()).of(&by_world) else {
                panic!("no memory")
            };
            let search = TreeQuery {
                sieve: Some(sieve),
                ..search(&by_world, &all_of_it)
            };
            let (looked, found) = looks(|| all(&search));
            let expected = (0..20_000).filter(|&i| {
                filter.is_none_or(|filter| filter.allows(&filters[i]))
                    && world.is_none_or(|world| world == worlds[i])
            });
            assert_eq!(found.len(), expected.count());
            assert!(looked < 2 * 23_000 / part, "{looked} looks");
        }
    }
}
