//! Frames of which most is as it was: their pairs from those of the last update.
//!
//! A pair of two boxes that are as they were, filters, worlds and all, is one now if it was one then. So what has
//! *changed* is looked for in a tree of all boxes, its old pairs are dropped, and all others stay: nothing at rest is sorted or tested
//! against what is at rest, whether it is static or not. A tree is made once a few frames in a row had few changes; boxes that
//! move grow the unions above them, and when that has cost as much as a tree, it is made anew.
//!
//! Which boxes have changed the caller tells ([`crate::Frame::changed`]), or a comparison with the last frame.

use super::accept::Accept;
use super::collect::{Collector, Found, Spare, Task};
use super::lanes::run_best;
use super::scene::Scene;
use super::tree::{Meet, Tree};
use super::tuning::{
    FEWEST_KEPT, MEET_COST, MEET_TASK, MOST_CHANGED, MOST_PATIENCE, PATIENCE, SAMPLE, STREAM_TASK,
    SWEPT_COST,
};
use crate::{Config, Pair, Report};
use rayon::prelude::*;

/// Some boxes of a frame.
#[derive(Default)]
pub(super) struct Changed {
    /// In order, each once.
    list: Vec<u32>,
    bits: Vec<u64>,
}

impl Changed {
    /// Adds boxes below `n`; others are passed over.
    fn add(&mut self, n: usize, boxes: impl IntoIterator<Item = u32>) {
        if self.bits.len() < n.div_ceil(64) {
            self.bits.resize(n.div_ceil(64), 0);
        }
        let new = |i: &u32| {
            let (word, bit) = (*i as usize / 64, 1 << (i % 64));
            let new = (*i as usize) < n && self.bits[word] & bit == 0;
            if new {
                self.bits[word] |= bit;
            }
            new
        };
        self.list.extend(boxes.into_iter().filter(new));
        self.list.sort_unstable();
    }

    fn clear(&mut self) {
        for i in self.list.drain(..) {
            self.bits[i as usize / 64] = 0;
        }
    }

    #[inline(always)]
    pub(super) fn has(&self, i: u32) -> bool {
        self.bits[i as usize / 64] >> (i % 64) & 1 == 1
    }

    #[inline(always)]
    pub(super) fn has_one(&self, pair: &Pair) -> bool {
        self.has(pair.a) || self.has(pair.b)
    }

    pub(super) fn list(&self) -> &[u32] {
        &self.list
    }
}

/// See the module.
pub(super) struct Kept {
    tree: Option<Tree>,
    changed: Changed,
    /// Whether the update that the changes were noted for has succeeded. Else the tree knows them, and the last frame does not.
    settled: bool,
    /// Frames of few changes in a row, how many it takes for a tree, and how many it has served.
    calm: u64,
    patience: u64,
    served: u64,
    /// Tests for each box looked for when the tree was new, and those more than that since.
    usual: u64,
    excess: u64,
    /// What the last frame cost that was swept as a whole.
    whole: u64,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            tree: None,
            changed: Changed::default(),
            settled: true,
            calm: 0,
            patience: PATIENCE,
            served: 0,
            usual: 0,
            excess: 0,
            whole: u64::MAX,
        }
    }
}

/// How many of `n` boxes may have changed; none where too few are left.
fn most_changed(n: usize, config: &Config) -> Option<usize> {
    let fewest = config.hold_from.map_or(FEWEST_KEPT, |boxes| boxes as u64);
    let spare = (n as u64).checked_sub(fewest)? as usize;
    Some(spare.min((n as f64 * MOST_CHANGED) as usize))
}

impl Kept {
    /// Notes what the caller says has changed in a frame of `n` boxes, after one of `before`. False where that is too much, or
    /// there is no tree yet, so that frames are best compared as a whole.
    pub(super) fn told(
        &mut self,
        changed: &[u32],
        n: usize,
        before: usize,
        config: &Config,
    ) -> bool {
        let most = most_changed(n, config).unwrap_or(0);
        let other = n.abs_diff(before);
        if self.tree.is_none() || changed.len() + other > most {
            return false;
        }
        self.begin();
        let ends = n.min(before) as u32..n.max(before) as u32;
        let listed = changed.iter().copied();
        self.changed.add(n.max(before), listed.chain(ends));
        self.changed.list.len() <= most
    }

    /// Notes what has changed between two frames. False where that is too much.
    pub(super) fn compared(&mut self, scene: &Scene, last: &Scene, config: &Config) -> bool {
        let n = scene.boxes.len();
        let Some(most) = most_changed(n, config).filter(|_| scene.excluded == last.excluded) else {
            return false;
        };
        let differs = |&i: &usize| !scene.same_box(last, i);
        // Steps of the golden section: boxes of one kind often stand at even distances.
        let sampled = (0..SAMPLE).map(|k| (k * 0x9e37_79b9 & 0xffff_ffff) * n >> 32);
        let some = sampled.filter(differs).count();
        // Twice as many as may be, lest chance decides.
        if some * n > 2 * most * SAMPLE {
            return false;
        }
        self.begin();
        let found: Vec<u32> = (0..n)
            .into_par_iter()
            .with_min_len(STREAM_TASK)
            .filter(differs)
            .map(|i| i as u32)
            .collect();
        let before = last.boxes.len();
        self.changed.add(
            n.max(before),
            found.into_iter().chain(n as u32..before as u32),
        );
        self.changed.list.len() <= most
    }

    /// Forgets the last changes, unless the tree alone knows of them.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.settled, false) {
            self.changed.clear();
        }
    }

    /// The boxes noted.
    pub(super) const fn changed(&self) -> &Changed {
        &self.changed
    }

    /// Brings the tree up to date after [`Kept::told`] or [`Kept::compared`] with few changes; makes it where it is due. Whether
    /// it is there.
    pub(super) fn renew(&mut self, scene: &Scene, config: &Config) -> bool {
        self.calm += 1;
        if self.calm < self.patience {
            return false;
        }
        let n = scene.boxes.len() as u64;
        let spent = self.excess > SWEPT_COST * n;
        let tree = self.tree.take().filter(|_| !spent);
        self.tree =
            tree.and_then(|mut tree| tree.take(&scene.boxes, self.changed.list()).then_some(tree));
        if self.tree.is_none() {
            self.tree = Some(Tree::new(&scene.boxes, config.rule));
            (self.usual, self.excess) = (0, 0);
        }
        true
    }

    /// Takes note of a frame that was swept as a whole: where it had many changes, the tree is of no use.
    pub(super) fn pass(&mut self, few: bool, report: &Report) {
        self.whole = SWEPT_COST * report.n as u64 + report.tests;
        if !few {
            self.forget();
        }
        self.settled = true;
    }

    /// Lets go of the tree. One that did not last makes the next wait longer.
    fn forget(&mut self) {
        self.patience = match &self.tree {
            None => self.patience,
            Some(_) if self.served > self.patience => PATIENCE,
            Some(_) => (2 * self.patience).min(MOST_PATIENCE),
        };
        (self.tree, self.calm, self.served) = (None, 0, 0);
    }

    /// All pairs of the changed boxes, after [`Kept::renew`].
    pub(super) fn meet(&self, scene: &Scene, limit: u64, config: &Config, spare: &Spare) -> Found {
        let Some(tree) = &self.tree else {
            return Found::default();
        };
        let collector = Collector::new(limit, spare);
        let accept = &Accept::new(scene, scene, config.rule, true);
        let n = scene.boxes.len();
        let mut walk: Vec<u32> = self.changed.list.clone();
        walk.truncate(walk.partition_point(|&i| (i as usize) < n));
        tree.arrange(&mut walk);
        let meet = |mut task, some: &[u32]| {
            run_best(Meet {
                tree,
                boxes: &scene.boxes,
                some,
                changed: &self.changed,
                accept,
                task: &mut task,
            });
            task
        };
        if walk.len() <= MEET_TASK {
            return meet(collector.task(), &walk).finish();
        }
        let tasks = walk.par_chunks(MEET_TASK).fold(|| collector.task(), meet);
        tasks.map(Task::finish).reduce(Found::default, Found::merge)
    }

    /// Takes note of the tests that an update took which has succeeded.
    pub(super) fn settle(&mut self, tests: u64) {
        self.settled = true;
        self.served += 1;
        let looked_for = self.changed.list.len() as u64;
        if looked_for == 0 {
            return;
        }
        if self.usual == 0 {
            self.usual = tests.div_ceil(looked_for).max(1);
        }
        self.excess += tests.saturating_sub(2 * self.usual * looked_for);
        // Boxes that are near each other, and yet no pairs, are not for a tree.
        if tests + MEET_COST * looked_for > self.whole {
            self.served = 0;
            self.forget();
        }
    }
}
