//! Incremental update: reuses the last frame's pairs when few boxes changed.
//!
//! A pair of two unchanged boxes, filters and worlds included, is one now if it was one in the last
//! frame. So the pairs of the *changed set* are looked for in a tree of all boxes, those it had are
//! dropped, and all others stay: unchanged boxes are neither sorted nor tested against each other,
//! static or not. The tree is built once a few frames in a row had few changes. Boxes that move
//! grow the unions above them; when that has cost as much as a tree, it is built anew ([`policy`]).
//!
//! The caller lists what has changed ([`crate::Frame::changed`]), or a comparison with the last
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
use crate::{Config, Report, Result};
use changed::{ChangedSet, compare};
use policy::{Policy, max_changed};
use search::{Partners, Search};
use std::ops::Range;
use tree::Tree;

/// The changed set of a frame, the tree of its boxes, and what decides whether to use them.
#[derive(Default)]
pub(in crate::cpu) struct Incremental {
    policy: Policy,
    /// All boxes of the last frame; None while frames are swept in full.
    tree: Option<Tree>,
    changed: ChangedSet,
    /// The changed boxes that the frame has, in the order of the tree's leaves: neighbours near
    /// each other.
    walk: Vec<u32>,
    /// Set after a failed update: the tree may hold the changed set already, and the last frame
    /// does not. Then the set is kept and added to.
    is_ahead: bool,
}

impl Incremental {
    /// Takes the changed set of a frame of `n` boxes, after one of `before`, from the caller's
    /// list. Returns false where it is too large, or there is no tree yet: then frames are best
    /// compared as a whole.
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

    /// Takes the changed set from a comparison of two frames. Returns false where it is too large.
    pub(in crate::cpu) fn compare(&mut self, scene: &Scene, last: &Scene, config: &Config) -> bool {
        let (n, before) = (scene.boxes.len(), last.boxes.len());
        let max = max_changed(n, config).filter(|_| scene.excluded == last.excluded);
        let Some((max, found)) = max.and_then(|max| Some((max, compare(scene, last, max)?))) else {
            return false;
        };
        let missing = n as u32..before.max(n) as u32;
        self.set(n.max(before), found.into_iter(), missing, max)
    }

    /// Makes boxes below `n` and a range of them the changed set. Returns false where they are more
    /// than `max`, or memory is refused; a set of more than what has changed does no harm.
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

    /// Brings the tree up to date with a small changed set, or builds it when it is due. Returns
    /// whether there is one.
    pub(in crate::cpu) fn refresh(&mut self, scene: &Scene, config: &Config) -> bool {
        if !self.policy.count_quiet() {
            return false;
        }
        let changed = self.changed.list();
        let is_worn = self.policy.is_worn(scene.boxes.len());
        let old = self.tree.take().filter(|_| !is_worn);
        let refreshed = old
            .and_then(|tree| tree.refresh(scene, changed))
            .or_else(|| {
                let new = Tree::new(scene, config.rule).ok()?.refresh(scene, changed);
                new.inspect(|_| self.policy.begin())
            });
        // Without the memory for a tree, frames are swept in full.
        let (tree, walk) = refreshed.unzip();
        self.walk = walk.unwrap_or_default();
        self.tree = tree;
        self.tree.is_some()
    }

    /// Finds all pairs of the changed set, after [`Incremental::refresh`]. Past `limit` they are
    /// only counted.
    pub(in crate::cpu) fn find(
        &self,
        scene: &Scene,
        limit: u64,
        config: &Config,
        blocks: &SpareBlocks,
    ) -> Result<Found> {
        let Some(tree) = &self.tree else {
            return Ok(Found::default());
        };
        let search = Search {
            tree,
            scene,
            some: &self.walk,
            partners: Partners::Changed(&self.changed),
            accept: &Accept::new(scene, scene, config.rule, WorldTest::Here),
        };
        search.run(&Collector::new(limit, blocks)).stored()
    }

    /// Ends an incremental update that has succeeded.
    pub(in crate::cpu) fn succeed(&mut self, tests: u64) {
        self.is_ahead = false;
        let looked_for = self.changed.list().len() as u64;
        if !self.policy.note_incremental(looked_for, tests) {
            self.tree = None;
        }
    }

    /// Ends a full update that has succeeded.
    pub(in crate::cpu) fn note_full(&mut self, report: &Report) {
        self.policy.note_full(report.n, report.tests);
        self.is_ahead = false;
    }

    /// Drops the tree: many boxes changed.
    pub(in crate::cpu) fn drop_tree(&mut self) {
        self.policy.end();
        self.tree = None;
    }
}
