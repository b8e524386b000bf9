//! A tree of all boxes that is kept from frame to frame while these move, and joined with itself.
//!
//! 1. Each leaf takes the new bounds of its eight boxes, and each entry above takes the union of
//!    the node below it ([`tree`]). Boxes keep their slots, so nothing is sorted.
//! 2. The tree is joined with itself ([`join`]).
//!
//! A frame costs less than by a plan, which sorts its boxes anew. Building the tree ([`halve`])
//! costs as much as two frames or three, so boxes must stay near where they were. Those that walk
//! widen the unions. When that has cost as much as a new tree, there is a new one.

mod halve;
mod join;
mod sides;
mod tree;

use crate::cpu::accept::Accept;
use crate::cpu::output::collect::{Collector, Found};
use crate::cpu::scene::Scene;
use crate::cpu::tuning::{
    HALVED_COST, JOINED_COST, JOINED_TESTS, KEPT_BOX_COST, KEPT_LIMITS, KEPT_PAIR_COST,
    MAX_KEPT_COST,
};
use crate::policy::Hysteresis;
use crate::{OverlapRule, Result};
use tree::Tree;

/// The kept tree, and what decides whether to keep one.
pub(in crate::cpu) struct Kept {
    policy: Hysteresis,
    tree: Option<Tree>,
    /// The tests of the tree's first frame, and those of later ones beyond that.
    first_tests: u64,
    excess: u64,
    /// The cost of the last full update without a tree, which was by a plan or all against all. The
    /// order of pairs does not count.
    cost_without: u64,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            policy: Hysteresis::new(KEPT_LIMITS),
            tree: None,
            first_tests: 0,
            excess: 0,
            cost_without: u64::MAX,
        }
    }
}

/// Returns what a frame by a kept tree is expected to cost, without the order of pairs.
pub(in crate::cpu) fn expected_cost(n: usize, pairs: usize) -> u64 {
    let tests = JOINED_TESTS[0] * n as u64 + JOINED_TESTS[1] * pairs as u64;
    cost(n, tests, pairs as u64)
}

fn cost(n: usize, tests: u64, pairs: u64) -> u64 {
    KEPT_BOX_COST * n as u64 + JOINED_COST * tests / 2 + KEPT_PAIR_COST * pairs
}

impl Kept {
    /// Tells whether there is a tree.
    pub(in crate::cpu) const fn in_use(&self) -> bool {
        self.policy.in_use()
    }

    /// Drops the tree, because the next frame may not be like the last.
    pub(in crate::cpu) fn drop_tree(&mut self) {
        self.policy.end();
        self.tree = None;
    }

    /// Records the cost of a full update without a tree, but for the order of its pairs.
    pub(in crate::cpu) const fn record_without(&mut self, cost: u64) {
        self.cost_without = cost;
    }

    /// Begins a frame of `n` boxes that are near where they were, after one that had `pairs`:
    /// counts it, and drops a worn tree. Returns whether a tree should find its pairs: if there is
    /// one, if a worn one has lasted and is built anew, or if a new one is due and expected to cost
    /// less than a frame without a tree.
    pub(in crate::cpu) fn begin_frame(&mut self, n: usize, pairs: usize) -> bool {
        if self.excess > HALVED_COST * n as u64 {
            self.tree = None;
            self.excess = 0;
            if self.policy.end() {
                self.policy.begin();
            }
        }
        self.policy.count_quiet();
        if self.in_use() {
            return true;
        }
        let max = MAX_KEPT_COST * self.cost_without as f32;
        self.policy.is_due() && (expected_cost(n, pairs) as f32) < max
    }

    /// Brings the tree up to date with a scene, or builds it.
    pub(in crate::cpu) fn refit(&mut self, scene: &Scene, rule: OverlapRule) -> Result<()> {
        let mut tree = match self.tree.take() {
            Some(tree) => tree,
            None => {
                (self.first_tests, self.excess) = (0, 0);
                Tree::new(&scene.boxes)?
            }
        };
        tree.refit(&scene.boxes, rule);
        self.tree = Some(tree);
        if !self.in_use() {
            self.policy.begin();
        }
        Ok(())
    }

    /// Finds all pairs by the tree.
    pub(in crate::cpu) fn pairs(&self, accept: &Accept, collector: &Collector) -> Found {
        let tree = self.tree.as_ref();
        tree.map_or_else(Found::default, |tree| join::pairs(tree, accept, collector))
    }

    /// Ends a frame of `n` boxes by the tree. Returns its cost, without the order of pairs. Drops a
    /// tree that costs more than a frame without a tree.
    pub(in crate::cpu) fn end_frame(&mut self, n: usize, tests: u64, pairs: u64) -> u64 {
        if self.first_tests == 0 {
            self.first_tests = tests;
        }
        self.excess += tests.saturating_sub(self.first_tests);
        let cost = cost(n, tests, pairs);
        if cost > self.cost_without {
            self.reject();
        }
        cost
    }

    /// Drops a tree that costs too much.
    pub(in crate::cpu) fn reject(&mut self) {
        self.policy.reject();
        self.tree = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::accept::WorldTest;
    use crate::cpu::output::collect::SpareBlocks;
    use crate::cpu::output::order::sorted_pairs;
    use crate::random::Random;
    use crate::{Aabb, Pair};

    /// Returns boxes of whole coordinates that differ by frame, some of them flat, very large or
    /// empty.
    fn scene(n: usize, frame: u32) -> Scene {
        let mut random = Random(5);
        let mut next = |steps| random.below(steps) as f32;
        let mut one = |i: usize| {
            let at = [(); 3].map(|()| next(24) - 12.0);
            let by = [(); 3].map(|()| next(3) * frame as f32);
            let side = [(); 3].map(|()| next(3));
            match i % 50 {
                7 => Aabb::EMPTY,
                9 => Aabb::new([f32::NEG_INFINITY, at[0], at[1]], [f32::INFINITY; 3]),
                _ => Aabb::new(
                    std::array::from_fn(|k| at[k] + by[k]),
                    std::array::from_fn(|k| at[k] + by[k] + side[k]),
                ),
            }
        };
        Scene {
            boxes: (0..n).map(&mut one).collect(),
            ..Scene::default()
        }
    }

    #[test]
    fn the_tree_finds_all_pairs_frame_after_frame() {
        for n in [0, 1, 2, 8, 9, 64, 65, 500, 1300] {
            for rule in [OverlapRule::Closed, OverlapRule::Open] {
                let mut kept = Kept::default();
                for frame in 0..3 {
                    let scene = scene(n, frame);
                    assert!(kept.refit(&scene, rule).is_ok());
                    let spare = SpareBlocks::default();
                    let accept =
                        Accept::new(&scene, &scene, rule, WorldTest::PerPair).expect("memory");
                    let found = kept.pairs(&accept, &Collector::new(u64::MAX, &spare));
                    let boxes = || (0..).zip(&scene.boxes);
                    let of = |(a, first): (u32, &Aabb)| {
                        let later = boxes().skip(a as usize + 1);
                        let overlapping = later.filter(|(_, b)| first.overlaps(b, rule));
                        let pairs = overlapping.map(|(b, _)| Pair { a, b });
                        pairs.collect::<Vec<_>>()
                    };
                    let expected: Vec<Pair> = boxes().flat_map(of).collect();
                    assert!(
                        sorted_pairs(Ok(found), n) == expected,
                        "{n} {rule:?} {frame}"
                    );
                }
            }
        }
    }

    /// Runs frames by the tree with these tests each. Returns whether it is there after each.
    fn run(kept: &mut Kept, n: usize, tests: &[u64]) -> Vec<bool> {
        let scene = scene(n, 0);
        let one = |&tests: &u64| {
            if kept.begin_frame(n, 0) {
                assert!(kept.refit(&scene, OverlapRule::Closed).is_ok());
                kept.end_frame(n, tests, 0);
            }
            kept.tree.is_some()
        };
        tests.iter().map(one).collect()
    }

    #[test]
    fn a_tree_is_kept_while_it_pays() {
        let n = 1000;
        let expected = expected_cost(n, 0);
        let with_plan = |cost: u64| {
            let mut kept = Kept::default();
            kept.record_without(cost);
            kept
        };
        assert_eq!(run(&mut with_plan(expected), n, &[5000; 2]), [false; 2]);
        assert_eq!(run(&mut with_plan(2 * expected), n, &[5000; 2]), [true; 2]);
        // One that costs more than a plan is due again after two frames.
        let tests = [2 * expected, 0, 0];
        let mut kept = with_plan(2 * expected);
        assert_eq!(run(&mut kept, n, &tests), [false, false, true]);
        // One that is worn is replaced at once if it has lasted, else after two frames.
        let worn = HALVED_COST * n as u64 + 2;
        for (frames, next) in [(2, false), (20, true)] {
            let mut kept = with_plan(u64::MAX);
            let mut tests = vec![1; frames];
            tests.push(worn);
            assert!(
                run(&mut kept, n, &tests)
                    .into_iter()
                    .all(|is_there| is_there)
            );
            assert_eq!(run(&mut kept, n, &[1]), [next]);
            assert_eq!(kept.first_tests, 1);
        }
    }
}
