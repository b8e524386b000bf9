//! Frames of which most is as it was: their pairs from those of the last update.
//!
//! A pair of two boxes that are as they were, filters, worlds and all, is one now if it was one then. So what has
//! *changed* is looked for in a tree of all boxes, its old pairs are dropped, and all others stay: nothing at rest is sorted or tested
//! against what is at rest, whether it is static or not. A tree is made once a few frames in a row had few changes; boxes that
//! move grow the unions above them, and when that has cost as much as a tree, it is made anew.
//!
//! Which boxes have changed the caller tells ([`crate::Frame::changed`]), or a comparison with the last frame.

pub(super) mod changed;
pub(super) mod search;
pub(super) mod splice;
mod tag;
pub(super) mod tree;

use crate::cpu::accept::Accept;
use crate::cpu::output::collect::{Collector, Found, Spare};
use crate::cpu::scene::Scene;
use crate::cpu::tuning::{
    FEWEST_KEPT, MEET_COST, MOST_CHANGED, MOST_PATIENCE, PATIENCE, SAMPLE, STREAM_TASK, SWEPT_COST,
};
use crate::{Config, Report, Result, room};
use changed::Changed;
use rayon::prelude::*;
use search::{Partners, Search};
use std::ops::Range;
use tree::Tree;

/// See the module.
pub(in crate::cpu) struct Kept {
    tree: Option<Tree>,
    changed: Changed,
    /// Those that are there, neighbours near each other.
    walk: Vec<u32>,
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
            walk: Vec::new(),
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

/// How many of `n` boxes may have changed; none where too few are left, or there are none at all.
fn most_changed(n: usize, config: &Config) -> Option<usize> {
    let fewest = config.hold_from.map_or(FEWEST_KEPT, |boxes| boxes as u64);
    let spare = (n as u64).checked_sub(fewest.max(1))? as usize;
    Some(spare.min((n as f64 * MOST_CHANGED) as usize))
}

impl Kept {
    /// Notes what the caller says has changed in a frame of `n` boxes, after one of `before`. False where that is too much, or
    /// there is no tree yet, so that frames are best compared as a whole.
    pub(in crate::cpu) fn told(
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
        self.note(n.max(before), listed, ends) && self.changed.list.len() <= most
    }

    /// Notes what has changed between two frames. False where that is too much.
    pub(in crate::cpu) fn compared(
        &mut self,
        scene: &Scene,
        last: &Scene,
        config: &Config,
    ) -> bool {
        let n = scene.boxes.len();
        let Some(most) = most_changed(n, config).filter(|_| scene.excluded == last.excluded) else {
            return false;
        };
        let differs = |&i: &usize| !scene.same_box(last, i);
        // Steps of the golden section: boxes of one kind often stand at even distances.
        let sampled = (0..SAMPLE as u32).map(|k| {
            let part = u64::from(k.wrapping_mul(0x9e37_79b9));
            ((part * n as u64) >> 32) as usize
        });
        let some = sampled.filter(differs).count();
        // Twice as many as may be, lest chance decides.
        if some * n > 2 * most * SAMPLE {
            return false;
        }
        self.begin();
        // Lists of one task each, which are small.
        let of_task = |task: usize| -> Vec<u32> {
            let boxes = task * STREAM_TASK..n.min((task + 1) * STREAM_TASK);
            boxes.filter(differs).map(|i| i as u32).collect()
        };
        let tasks = (0..n.div_ceil(STREAM_TASK)).into_par_iter();
        let found: Vec<Vec<u32>> = tasks.map(of_task).collect();
        let Ok(found) = room::concat(&found) else {
            return false;
        };
        let before = last.boxes.len();
        let gone = n as u32..before.max(n) as u32;
        self.note(n.max(before), found.into_iter(), gone) && self.changed.list.len() <= most
    }

    /// Notes boxes below `n`. False where memory for them is refused; noting more than what has changed does no harm.
    fn note(
        &mut self,
        n: usize,
        boxes: impl ExactSizeIterator<Item = u32>,
        ends: Range<u32>,
    ) -> bool {
        let noted = self.changed.add(n, boxes).is_ok() && self.changed.add(n, ends).is_ok();
        self.changed.list.par_sort_unstable();
        noted
    }

    /// Forgets the last changes, unless the tree alone knows of them.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.settled, false) {
            self.changed.clear();
        }
    }

    /// The boxes noted.
    pub(in crate::cpu) const fn changed(&self) -> &Changed {
        &self.changed
    }

    /// Brings the tree up to date after [`Kept::told`] or [`Kept::compared`] with few changes; makes it where it is due. Whether
    /// it is there.
    pub(in crate::cpu) fn renew(&mut self, scene: &Scene, config: &Config) -> bool {
        self.calm += 1;
        if self.calm < self.patience {
            return false;
        }
        let changed = self.changed.list();
        let good = self.excess <= SWEPT_COST * scene.boxes.len() as u64;
        let old = self.tree.as_mut().filter(|_| good);
        let mut walk = old.and_then(|tree| tree.take(scene, changed));
        if walk.is_none() {
            (self.usual, self.excess) = (0, 0);
            self.tree = Tree::new(scene, config.rule).ok();
            walk = self
                .tree
                .as_mut()
                .and_then(|tree| tree.take(scene, changed));
        }
        if walk.is_none() {
            // Without the memory for it frames are swept as a whole.
            self.tree = None;
        }
        self.walk = walk.unwrap_or_default();
        self.tree.is_some()
    }

    /// Takes note of a frame that was swept as a whole: where it had many changes, the tree is of no use.
    pub(in crate::cpu) fn pass(&mut self, few: bool, report: &Report) {
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
    pub(in crate::cpu) fn meet(
        &self,
        scene: &Scene,
        limit: u64,
        config: &Config,
        spare: &Spare,
    ) -> Result<Found> {
        let Some(tree) = &self.tree else {
            return Ok(Found::default());
        };
        let search = Search {
            tree,
            scene,
            some: &self.walk,
            partners: Partners::Changed(&self.changed),
            accept: &Accept::new(scene, scene, config.rule, true),
        };
        search.run(&Collector::new(limit, spare)).stored()
    }

    /// Takes note of the tests that an update took which has succeeded.
    pub(in crate::cpu) fn settle(&mut self, tests: u64) {
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
