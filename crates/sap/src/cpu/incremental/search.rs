//! Searches a tree for the partners of some boxes, several at once.

use super::changed::ChangedSet;
use super::tag::Tag;
use super::tree::{LANES_LOG2, Probe, Tree, probe};
use crate::cpu::accept::Accept;
use crate::cpu::lanes::{Job, LANES, Lanes, Naming, each_bit, run_best};
use crate::cpu::output::collect::{Collector, Found, Task};
use crate::cpu::scene::Scene;
use crate::cpu::tuning::{MAX_NODES, MEET_GROUP, MEET_TASK};
use rayon::prelude::*;

/// Which boxes of a tree a box may be paired with.
#[derive(Clone, Copy)]
pub(in crate::cpu) enum Partners<'a> {
    /// All; two that are both in the changed set find each other once.
    Changed(&'a ChangedSet),
    /// Those after it in the tree, which holds all that are looked for.
    Later,
    /// Those of a greater index.
    Greater,
    /// All, of another set than its own.
    Others,
}

/// Finds the boxes of a tree that overlap some boxes of a scene.
pub(in crate::cpu) struct Search<'a> {
    pub(in crate::cpu) tree: &'a Tree,
    pub(in crate::cpu) scene: &'a Scene,
    /// What to look for: neighbours near each other, best.
    pub(in crate::cpu) some: &'a [u32],
    pub(in crate::cpu) partners: Partners<'a>,
    pub(in crate::cpu) accept: &'a Accept<'a>,
}

impl Search<'_> {
    /// All pairs of them; few boxes are looked for on this thread.
    pub(in crate::cpu) fn run(&self, collector: &Collector) -> Found {
        let meet = |mut task, some: &[u32]| {
            run_best(Meet {
                search: Search { some, ..*self },
                task: &mut task,
            });
            task
        };
        if self.some.len() <= MEET_TASK {
            return meet(collector.task(), self.some).finish();
        }
        let tasks = self.some.par_chunks(MEET_TASK);
        tasks
            .fold(|| collector.task(), meet)
            .map(Task::finish)
            .reduce(Found::default, Found::merge)
    }
}

/// A search on one thread.
struct Meet<'a, 'b> {
    search: Search<'a>,
    task: &'a mut Task<'b>,
}

/// What is looked for: a box or the union of some.
#[derive(Clone, Copy)]
struct Asked {
    probe: Probe,
    tag: Tag,
    /// The first slot of the tree that is of interest.
    from: usize,
}

impl Asked {
    fn union(self, other: Self) -> Self {
        let ([a, b], [c, d]) = (self.probe, other.probe);
        let min = std::array::from_fn(|k| a[k].min(c[k]));
        Self {
            probe: [min, std::array::from_fn(|k| b[k].max(d[k]))],
            tag: self.tag.with(&other.tag),
            from: self.from.min(other.from),
        }
    }
}

impl Meet<'_, '_> {
    fn asked(&self, p: u32) -> Option<Asked> {
        let (b, tree) = (&self.search.scene.boxes[p as usize], self.search.tree);
        let from = match self.search.partners {
            Partners::Later => tree.slots[p as usize] as usize + 1,
            _ => 0,
        };
        let tag = if tree.tags.is_empty() {
            Tag::NONE
        } else {
            Tag::of(self.search.scene, p as usize)
        };
        let probe = probe(b, tree.rule);
        (!b.is_empty()).then_some(Asked { probe, tag, from })
    }

    /// Which entries of a node may have partners of what is asked for.
    #[inline(always)]
    fn touched<L: Lanes>(&mut self, level: usize, start: usize, asked: &Asked) -> u32 {
        let tree = self.search.tree;
        self.task.found.tests += LANES as u64;
        // SAFETY: `start` is the first entry of the node of the last level, or of one below an
        // entry that overlaps something.
        let mut mask = unsafe { tree.overlap::<L>(start, &asked.probe) };
        let first = (asked.from >> (LANES_LOG2 * level)).saturating_sub(start - tree.starts[level]);
        mask &= u32::MAX << first.min(LANES);
        if !tree.tags.is_empty() {
            each_bit(mask, |lane| {
                let may = tree.tags[start + lane].may_pair(&asked.tag);
                mask &= !(u32::from(!may) << lane);
            });
        }
        mask
    }

    /// Adds the nodes of a level that touch what is asked for, below the top: false where they
    /// become more than `max`.
    #[inline(always)]
    fn descend<L: Lanes>(
        &mut self,
        asked: &Asked,
        to: usize,
        max: usize,
        nodes: &mut Nodes,
    ) -> bool {
        let (tree, top) = (self.search.tree, self.search.tree.starts.len() - 1);
        nodes.found.clear();
        nodes.open.clear();
        nodes.open.push((top, tree.starts[top]));
        while let Some((level, start)) = nodes.open.pop() {
            if level == to {
                nodes.found.push(start);
                if nodes.found.len() > max {
                    return false;
                }
                continue;
            }
            let mask = self.touched::<L>(level, start, asked);
            each_bit(mask, |lane| {
                nodes
                    .open
                    .push((level - 1, tree.below(level, start + lane)));
            });
        }
        true
    }

    /// The boxes below a node of level 0 that overlap box `p`.
    #[inline(always)]
    fn leaf<L: Lanes>(&mut self, p: u32, asked: &Asked, start: usize, storing: bool) {
        let index = &self.search.tree.index;
        let mut mask = self.touched::<L>(0, start, asked);
        let (between, accept) = (
            matches!(self.search.partners, Partners::Others),
            self.search.accept,
        );
        // Tags of single boxes say all that filters and worlds say.
        let accepts = if self.search.tree.tags.is_empty() {
            accept.tests_anything()
        } else {
            accept.tests_more()
        };
        let one_by_one = match self.search.partners {
            Partners::Changed(_) | Partners::Greater => true,
            Partners::Later | Partners::Others => accepts,
        };
        if one_by_one {
            let overlapping = mask.count_ones();
            each_bit(mask, |lane| {
                let q = index[start + lane];
                let is_partner = match self.search.partners {
                    Partners::Changed(changed) => q > p || !changed.has(q),
                    Partners::Greater => q > p,
                    Partners::Later | Partners::Others => true,
                };
                let (a, b) = if between {
                    (p, q)
                } else {
                    (p.min(q), p.max(q))
                };
                let kept = is_partner && (!accepts || accept.keeps(a, b));
                mask &= !(u32::from(!kept) << lane);
            });
            self.task.drop_pairs(overlapping - mask.count_ones());
        }
        if storing && mask != 0 {
            let naming = if between {
                Naming::Sweeping
            } else {
                Naming::Smaller
            };
            // SAFETY: `index` has as many entries as level 0, which is whole nodes.
            unsafe { self.task.push_mask::<L>(index, start, mask, p, naming) };
        } else {
            self.task.count(mask.count_ones());
        }
    }
}

/// Nodes to be looked at, and those found.
#[derive(Default)]
struct Nodes {
    open: Vec<(usize, usize)>,
    found: Vec<usize>,
}

impl Job for Meet<'_, '_> {
    #[inline(always)]
    fn run<L: Lanes>(mut self) {
        let storing = self.task.storing();
        let mut nodes = Nodes::default();
        // Most levels once for several boxes.
        let low = usize::from(self.search.tree.starts.len() > 1);
        let mut group = Vec::with_capacity(MEET_GROUP);
        for boxes in self.search.some.chunks(MEET_GROUP) {
            group.clear();
            group.extend(boxes.iter().filter_map(|&p| Some((p, self.asked(p)?))));
            let Some(all) = group.iter().map(|&(_, asked)| asked).reduce(Asked::union) else {
                continue;
            };
            let near = self.descend::<L>(&all, low, MAX_NODES, &mut nodes);
            for &(p, asked) in &group {
                if !near {
                    self.descend::<L>(&asked, low, usize::MAX, &mut nodes);
                }
                for &start in &nodes.found {
                    if low == 0 {
                        self.leaf::<L>(p, &asked, start, storing);
                        continue;
                    }
                    let mask = self.touched::<L>(low, start, &asked);
                    each_bit(mask, |lane| {
                        let leaf = self.search.tree.below(low, start + lane);
                        self.leaf::<L>(p, &asked, leaf, storing);
                    });
                }
            }
        }
    }
}
