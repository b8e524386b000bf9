//! Incremental update: reuses the last frame's pairs when few boxes changed.
//!
//! Two boxes that are unchanged, with their filters and worlds, are a pair if they were one in the
//! last frame. So only the pairs of the *changed set* are searched for, in a tree of all boxes.
//! Where only bounds changed, the search compares what they overlap with what they overlapped, and
//! finds the pairs that started and those that ended. Else it finds all pairs of the set, which are
//! compared with those in the last list. That list is then edited in place ([`splice`]). Unchanged
//! boxes are neither sorted nor tested against each other, whether they are static or not.
//!
//! The tree is built after a few frames in a row with few changes. Boxes that move enlarge the
//! nodes above them. When that has cost as much as building a tree, it is rebuilt ([`policy`]).
//!
//! The caller lists the changed set ([`crate::Frame::changed`]), or a comparison with the last
//! frame finds it.

pub(super) mod changed;
pub(super) mod policy;
pub(super) mod search;
pub(super) mod splice;
mod tag;
pub(super) mod tree;

use crate::cpu::accept::{Accept, WorldTest};
use crate::cpu::output::collect::{Collector, Found, SpareBlocks};
use crate::cpu::scene::Scene;
use crate::{Aabb, Config, Report, Result};
use changed::{ChangedSet, compare};
use policy::{Policy, max_changed};
use search::{Partners, Search};
use std::ops::Range;
use tree::Tree;

/// The changed set of a frame, the tree of all boxes, and the policy that decides whether to use
/// them.
#[derive(Default)]
pub(in crate::cpu) struct Incremental {
    policy: Policy,
    /// The tree of all boxes of the last frame; None while updates are full.
    tree: Option<Tree>,
    changed: ChangedSet,
    /// The changed boxes that the frame still has, in leaf order: neighbours are near each other.
    searched: Vec<u32>,
    /// Set while an update is unfinished, and after it failed: the tree may hold its changes
    /// already, the last frame does not. The next update then adds to this changed set.
    is_ahead: bool,
}

impl Incremental {
    /// Takes the changed set from the caller's list. The frame has `n` boxes, the last one had
    /// `before`. Returns false if the set is too large or there is no tree yet; then the frames
    /// should be compared.
    pub(in crate::cpu) fn take_list(
        &mut self,
        listed: &[u32],
        n: usize,
        before: usize,
        config: &Config,
    ) -> bool {
        let max = max_changed(n, config).unwrap_or(0);
        if self.tree.is_none() || listed.len() + n.abs_diff(before) > max {
            return false;
        }
        let ends = n.min(before) as u32..n.max(before) as u32;
        self.set(n.max(before), listed.iter().copied(), ends, max)
    }

    /// Takes the changed set from a comparison of two frames. Returns false if it is too large.
    pub(in crate::cpu) fn compare(&mut self, scene: &Scene, last: &Scene, config: &Config) -> bool {
        let (n, before) = (scene.boxes.len(), last.boxes.len());
        let max = max_changed(n, config).filter(|_| scene.excluded == last.excluded);
        let Some((max, found)) = max.and_then(|max| Some((max, compare(scene, last, max)?))) else {
            return false;
        };
        let missing = n as u32..before.max(n) as u32;
        self.set(n.max(before), found.into_iter(), missing, max)
    }

    /// Sets the changed set to `boxes` and `range`; indices from `n` on are ignored. Returns false
    /// if they are more than `max` or an allocation failed. The set may have unchanged boxes too:
    /// they only cost time.
    fn set(
        &mut self,
        n: usize,
        boxes: impl ExactSizeIterator<Item = u32>,
        range: Range<u32>,
        max: usize,
    ) -> bool {
        if !std::mem::replace(&mut self.is_ahead, true) {
            self.changed.clear();
        }
        self.changed.add(n, boxes, range).is_ok() && self.changed.list().len() <= max
    }

    /// Returns the changed set.
    pub(in crate::cpu) const fn changed(&self) -> &ChangedSet {
        &self.changed
    }

    /// Updates the tree by the changed set, or builds it if that is due. `before` holds the old
    /// bounds of the changed boxes, or is empty. Returns whether there is a tree.
    pub(in crate::cpu) fn refresh(
        &mut self,
        scene: &Scene,
        before: &[Aabb],
        config: &Config,
    ) -> bool {
        if !self.policy.count_quiet() {
            return false;
        }
        let changed = self.changed.list();
        let is_worn = self.policy.is_worn(scene.boxes.len());
        let old = self.tree.take().filter(|_| !is_worn);
        let refreshed = old
            .and_then(|tree| tree.refresh(scene, changed, before))
            .or_else(|| {
                let new = Tree::new(scene, config.rule).ok()?;
                let new = new.refresh(scene, changed, before);
                new.inspect(|_| self.policy.begin())
            });
        // Without memory for a tree, updates are full.
        let (tree, searched) = refreshed.unzip();
        self.searched = searched.unwrap_or_default();
        self.tree = tree;
        self.tree.is_some()
    }

    /// Finds all pairs of the changed set, after [`Incremental::refresh`]; if that was given the
    /// bounds that the boxes had, it finds the pairs that started or ended
    /// ([`Partners::Differing`]). Beyond `limit` they are only counted.
    pub(in crate::cpu) fn find(
        &self,
        scene: &Scene,
        before: &[Aabb],
        config: &Config,
        limit: u64,
        blocks: &SpareBlocks,
    ) -> Result<Found> {
        let Some(tree) = &self.tree else {
            return Ok(Found::default());
        };
        let search = Search {
            tree,
            scene,
            some: &self.searched,
            partners: if before.is_empty() {
                Partners::Changed(&self.changed)
            } else {
                Partners::Differing(&self.changed, before)
            },
            accept: &Accept::new(scene, scene, config.rule, WorldTest::PerPair)?,
        };
        search.run(&Collector::new(limit, blocks)).stored()
    }

    /// Ends a successful incremental update.
    pub(in crate::cpu) fn end_incremental(&mut self, tests: u64) {
        self.is_ahead = false;
        let searched = self.changed.list().len() as u64;
        if !self.policy.record_incremental(searched, tests) {
            self.tree = None;
        }
    }

    /// Ends a successful full update.
    pub(in crate::cpu) fn end_full(&mut self, report: &Report) {
        self.policy.record_full(report.n, report.stats.tests);
        self.is_ahead = false;
    }

    /// Drops the tree, because many boxes changed.
    pub(in crate::cpu) fn drop_tree(&mut self) {
        self.policy.end();
        self.tree = None;
    }
}
