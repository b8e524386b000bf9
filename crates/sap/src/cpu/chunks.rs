//! Delivers all pairs in order, in bounded memory.
//!
//! Pairs that fit into one round are collected and sorted as in an update. Otherwise each round
//! searches a tree for the pairs of a range of boxes, its *rows*: the pairs whose smaller index is
//! in that range. Where a large part of all boxes overlap each other, every box is tested against
//! all boxes after it instead. Those pairs are found in order and need no sort.

use super::accept::{Accept, WorldTest};
use super::incremental::search::{Partners, Search};
use super::incremental::tree::Tree;
use super::key::{lift, ordered};
use super::lanes::{Bounds, Job, LANES, Lanes, Naming, retain_bits, run_best};
use super::output::collect::{Collector, Found, SpareBlocks};
use super::output::order::order;
use super::scene::Scene;
use super::tuning::{
    DENSE_SHARE, DENSE_TASK_PAIRS, FIRST_FILL, MAX_ROUND_GROWTH, RETRY_FILL, ROUND_FILL,
};
use crate::threads::on_threads;
use crate::{Aabb, OverlapRule, Pair, Result, try_alloc};
use rayon::prelude::*;
use std::ops::Range;

/// Passes pairs to the caller in chunks and counts them.
pub(crate) struct Delivery<'a> {
    chunk: usize,
    f: &'a mut dyn FnMut(&[Pair]),
    pub(crate) pairs: u64,
    pub(crate) chunks: u64,
}

impl<'a> Delivery<'a> {
    /// Creates a delivery to `f` of at most `chunk` pairs at once.
    pub(crate) fn new(chunk: usize, f: &'a mut dyn FnMut(&[Pair])) -> Self {
        Self {
            chunk,
            f,
            pairs: 0,
            chunks: 0,
        }
    }

    /// Delivers all pairs of a scene. `found` has all of them only if they are at most `limit`.
    /// Returns the number of all tests.
    pub(super) fn all(
        &mut self,
        scene: &Scene,
        rule: OverlapRule,
        found: Found,
        limit: u64,
        blocks: &SpareBlocks,
    ) -> Result<u64> {
        let (boxes, tests) = (scene.boxes.len(), found.tests);
        if found.count <= limit {
            let mut pairs = Vec::new();
            order(found.blocks, boxes, &mut pairs, blocks)?;
            self.deliver(&pairs);
            return Ok(tests);
        }
        let more = if is_dense(found.count, boxes as u64) {
            let accept = Accept::new(scene, scene, rule, WorldTest::PerPair)?;
            DenseRows::new(&scene.boxes, rule)?.deliver(limit, &accept, self)?
        } else {
            by_rounds(scene, rule, found.count, limit, self)?
        };
        Ok(tests + more)
    }

    /// Delivers pairs that follow all before them.
    pub(crate) fn deliver(&mut self, pairs: &[Pair]) {
        for chunk in pairs.chunks(self.chunk) {
            (self.f)(chunk);
            self.pairs += chunk.len() as u64;
            self.chunks += 1;
        }
    }
}

/// Tells whether testing all boxes against all others is cheaper than sorting the pairs.
const fn is_dense(pairs: u64, boxes: u64) -> bool {
    pairs > boxes * boxes / 2 / DENSE_SHARE
}

/// Delivers `total` pairs in rounds of at most `limit` pairs, or of one row if that has more.
fn by_rounds(
    scene: &Scene,
    rule: OverlapRule,
    total: u64,
    limit: u64,
    delivery: &mut Delivery,
) -> Result<u64> {
    let boxes = scene.boxes.len();
    let tree = &on_threads(|| Tree::new(scene, rule))?;
    let accept = &Accept::new(scene, scene, rule, WorldTest::PerPair)?;
    let spare = &SpareBlocks::default();
    let mut sorted = Vec::new();
    let mut tests = 0;
    let mut first = 0;
    let mut rows = (boxes as f64 * (limit as f64 / total as f64) * FIRST_FILL) as usize;
    while first < boxes {
        rows = rows.clamp(1, boxes - first);
        let search = Search {
            tree,
            scene,
            some: &tree.in_leaf_order(first as u32..(first + rows) as u32)?,
            partners: Partners::Greater,
            accept,
        };
        let limit = if rows == 1 { u64::MAX } else { limit };
        let Found {
            blocks,
            count,
            tests: more,
            ..
        } = on_threads(|| search.run(&Collector::new(limit, spare)).stored())?;
        tests += more;
        if count > limit {
            rows = (rows as f64 * (limit as f64 / count as f64) * RETRY_FILL) as usize;
            continue;
        }
        order(blocks, boxes, &mut sorted, spare)?;
        delivery.deliver(&sorted);
        first += rows;
        let step = ROUND_FILL * limit as f64 / count.max(1) as f64;
        rows = (rows as f64 * step.min(MAX_ROUND_GROWTH)) as usize;
    }
    Ok(tests)
}

/// All boxes in index order. Each array has [`LANES`] more entries than there are boxes.
struct DenseRows {
    min: Bounds<3>,
    max: Bounds<3>,
    index: Vec<u32>,
}

impl DenseRows {
    fn new(boxes: &[Aabb], rule: OverlapRule) -> Result<Self> {
        let mut index = Vec::new();
        try_alloc::reserve(&mut index, boxes.len() + LANES)?;
        index.extend((0..boxes.len() as u32).filter(|&i| !boxes[i as usize].is_empty()));
        let (mut min, mut max) = (Bounds::<3>::default(), Bounds::<3>::default());
        for axis in 0..3 {
            let fill = |bound: &mut Vec<i32>, of: &dyn Fn(&Aabb) -> i32| -> Result<()> {
                try_alloc::reserve(bound, index.len() + LANES)?;
                bound.extend(index.iter().map(|&i| of(&boxes[i as usize])));
                bound.extend([0; LANES]);
                Ok(())
            };
            fill(&mut min[axis], &|b| ordered(b.min[axis]) + lift(rule))?;
            fill(&mut max[axis], &|b| ordered(b.max[axis]))?;
        }
        index.extend([0; LANES]);
        Ok(Self { min, max, index })
    }

    /// Delivers all pairs, of which it holds about `limit` at a time. Returns the number of tests,
    /// n (n − 1) / 2.
    fn deliver(&self, limit: u64, accept: &Accept, delivery: &mut Delivery) -> Result<u64> {
        let n = self.index.len() - LANES;
        let rows = (DENSE_TASK_PAIRS / n.max(1)).max(1);
        let accept = accept.tests_anything().then_some(accept);
        let of_task = rows * (n + LANES);
        let tasks = on_threads(|| Ok(4 * rayon::current_num_threads()))?;
        let tasks = tasks.min((limit / of_task as u64).max(1) as usize);
        let mut found = vec![Vec::new(); tasks];
        for pairs in &mut found {
            try_alloc::reserve(pairs, of_task)?;
        }
        for start in (0..n).step_by(rows * found.len()) {
            let fill = |(task, pairs): (usize, &mut Vec<Pair>)| {
                let first = (start + task * rows).min(n);
                pairs.clear();
                run_best(DenseJob {
                    all: self,
                    range: first..(first + rows).min(n),
                    accept,
                    pairs,
                });
            };
            on_threads(|| {
                found.par_iter_mut().enumerate().for_each(fill);
                Ok(())
            })?;
            found.iter().for_each(|pairs| delivery.deliver(pairs));
        }
        let n = n as u64;
        Ok(n * n.saturating_sub(1) / 2)
    }
}

/// Tests each box of `range` against all boxes after it.
struct DenseJob<'a> {
    all: &'a DenseRows,
    range: Range<usize>,
    accept: Option<&'a Accept<'a>>,
    pairs: &'a mut Vec<Pair>,
}

impl Job for DenseJob<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self {
            all: DenseRows { min, max, index },
            range,
            accept,
            pairs,
        } = self;
        let n = index.len() - LANES;
        for i in range {
            let [low, high] = [min, max].map(|bound| std::array::from_fn(|axis| bound[axis][i]));
            let a = index[i];
            // `deliver` has reserved this already.
            pairs.reserve(n - i + LANES);
            for j in (i + 1..n).step_by(LANES) {
                // SAFETY: `j` is below n and the arrays are LANES longer; the processor suits `L`.
                let mut mask = unsafe { L::overlap(min, max, j, [&low, &high]) };
                if n - j < LANES {
                    mask &= (1 << (n - j)) - 1;
                }
                if let Some(accept) = accept {
                    mask = retain_bits(mask, |lane| accept.keeps(a, index[j + lane]));
                }
                // SAFETY: as above; a row has at most n - i - 1 pairs, so there is capacity for
                // eight more.
                unsafe {
                    let length = pairs.len();
                    let end = pairs.as_mut_ptr().add(length);
                    L::pairs(index, j, mask, a, Naming::Searching, end);
                    pairs.set_len(length + mask.count_ones() as usize);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::full::all_pairs;
    use crate::cpu::full::plan::plan;
    use crate::random::Random;
    use crate::{Config, Frame, OnInvalid, Strategy};

    /// Returns boxes on a small lattice. Many touch, are thin or equal; every tenth is large.
    fn lattice(n: usize) -> Vec<Aabb> {
        let mut random = Random(1);
        let mut next = |below| random.below(below);
        let mut one = |i: usize| {
            let min = [(); 3].map(|()| next(20) as f32);
            let sides = if i.is_multiple_of(10) { 15 } else { 4 };
            Aabb::new(min, min.map(|v| v + next(sides) as f32))
        };
        (0..n).map(&mut one).collect()
    }

    #[test]
    fn rounds_and_rows_deliver_what_an_update_finds() {
        let boxes = lattice(1500);
        let worlds: Vec<u32> = (0..1500).map(|i| i % 3).collect();
        for (rule, strategy, in_worlds) in [
            (OverlapRule::Closed, Strategy::Sweep, false),
            (OverlapRule::Open, Strategy::Sweep, true),
            (OverlapRule::Closed, Strategy::Subdivided, false),
            (OverlapRule::Open, Strategy::Subdivided, false),
            (OverlapRule::Closed, Strategy::Subdivided, true),
        ] {
            let config = Config {
                rule,
                strategy,
                ..Config::default()
            };
            let frame = Frame::boxes(&boxes);
            let frame = if in_worlds {
                frame.worlds(&worlds)
            } else {
                frame
            };
            let mut scene = Scene::default();
            assert!(
                scene
                    .read(&frame, OnInvalid::Error, 0.0, &Scene::default())
                    .is_ok()
            );
            let plan = plan(&boxes, scene.worlds.as_deref(), strategy);
            assert_eq!(plan.strategy, strategy);
            let expected = all_pairs(&config, &scene, &plan);
            let total = expected.len() as u64;
            assert!(total > 2000, "{total}");

            let accept = Accept::new(&scene, &scene, rule, WorldTest::PerPair).expect("memory");
            for limit in [1, 100, 5000, total] {
                let mut got = Vec::new();
                let mut f = |pairs: &[Pair]| got.extend_from_slice(pairs);
                let mut delivery = Delivery::new(777, &mut f);
                assert!(by_rounds(&scene, rule, total, limit, &mut delivery).is_ok());
                assert!(got == expected, "{strategy} {rule:?} {limit}");
            }
            let mut got = Vec::new();
            let mut f = |pairs: &[Pair]| got.extend_from_slice(pairs);
            let mut delivery = Delivery::new(10, &mut f);
            let rows = DenseRows::new(&boxes, rule)
                .and_then(|rows| rows.deliver(total, &accept, &mut delivery));
            assert!(rows.is_ok());
            assert!(got == expected, "{strategy} {rule:?} rows");
        }
    }
}
