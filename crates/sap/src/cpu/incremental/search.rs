//! Searches a tree for the partners of some boxes, several boxes at once.

use super::changed::ChangedSet;
use super::tag::Tag;
use super::tree::{LANES_LOG2, Probe, Tree, probe};
use crate::Aabb;
use crate::cpu::accept::Accept;
use crate::cpu::lanes::{Job, LANES, Lanes, Naming, each_bit, retain_bits, run_best};
use crate::cpu::output::collect::{Collector, Found, Task};
use crate::cpu::scene::Scene;
use crate::cpu::tuning::{MAX_GROUP_NODES, SEARCH_GROUP, SEARCH_TASK};

/// The boxes of a tree that a searched box may pair with.
#[derive(Clone, Copy)]
pub(in crate::cpu) enum Partners<'a> {
    /// All boxes. Of two boxes of the changed set only one finds the other.
    Changed(&'a ChangedSet),
    /// The same, but for unchanged boxes that the bounds which the searched box had before overlap.
    /// Bounds are in the order of the changed set.
    New(&'a ChangedSet, &'a [Aabb]),
    /// The boxes after the searched one in the tree, which holds all searched boxes.
    Later,
    /// The boxes of a greater index.
    Greater,
    /// All boxes. The tree is of another set than the searched box.
    Others,
}

/// A search for the boxes of a tree that overlap some boxes of a scene.
pub(in crate::cpu) struct Search<'a> {
    pub(in crate::cpu) tree: &'a Tree,
    pub(in crate::cpu) scene: &'a Scene,
    /// The searched boxes, best with neighbours near each other.
    pub(in crate::cpu) some: &'a [u32],
    pub(in crate::cpu) partners: Partners<'a>,
    pub(in crate::cpu) accept: &'a Accept<'a>,
}

impl Search<'_> {
    /// Finds all pairs of the searched boxes. A few boxes are searched on this thread.
    pub(in crate::cpu) fn run(&self, collector: &Collector) -> Found {
        collector.run_parts(self.some.len(), SEARCH_TASK, |task, range| {
            let some = &self.some[range];
            run_best(SearchJob {
                search: Search { some, ..*self },
                task,
            });
        })
    }
}

/// A search on one thread.
struct SearchJob<'a, 'b> {
    search: Search<'a>,
    task: &'a mut Task<'b>,
}

/// The bounds to search for, of one box or of several together.
#[derive(Clone, Copy)]
struct Query {
    probe: Probe,
    tag: Tag,
    /// The first slot of the tree that may have a partner.
    first_slot: usize,
    /// The bounds that the box had before; see [`Partners::New`].
    before: Option<Probe>,
}

impl Query {
    fn union(self, other: Self) -> Self {
        let ([a, b], [c, d]) = (self.probe, other.probe);
        let min = std::array::from_fn(|k| a[k].min(c[k]));
        Self {
            probe: [min, std::array::from_fn(|k| b[k].max(d[k]))],
            tag: self.tag.with(&other.tag),
            first_slot: self.first_slot.min(other.first_slot),
            before: None,
        }
    }
}

impl SearchJob<'_, '_> {
    /// Returns the query of a box; None for an empty one.
    fn query(&self, p: u32) -> Option<Query> {
        let (b, tree) = (&self.search.scene.boxes[p as usize], self.search.tree);
        let first_slot = match self.search.partners {
            Partners::Later => tree.slots[p as usize] as usize + 1,
            _ => 0,
        };
        let tag = if tree.tags.is_empty() {
            Tag::NONE
        } else {
            Tag::of(self.search.scene, p as usize)
        };
        let before = match self.search.partners {
            Partners::New(changed, before) => {
                let rank = changed.list().binary_search(&p).ok();
                let before = rank.and_then(|rank| before.get(rank));
                before.map(|before| probe(before, tree.rule))
            }
            _ => None,
        };
        (!b.is_empty()).then_some(Query {
            probe: probe(b, tree.rule),
            tag,
            first_slot,
            before,
        })
    }

    /// Returns the entries of a node that may have partners.
    #[inline(always)]
    fn touched<L: Lanes>(&mut self, level: usize, start: usize, query: &Query) -> u32 {
        let tree = self.search.tree;
        self.task.found.tests += LANES as u64;
        // SAFETY: `start` is the first entry of the node of the last level, or of one below an
        // entry that overlaps something.
        let mut mask = unsafe { tree.overlap::<L>(start, &query.probe) };
        let first = query.first_slot >> (LANES_LOG2 * level);
        let first = first.saturating_sub(start - tree.starts[level]);
        mask &= u32::MAX << first.min(LANES);
        if !tree.tags.is_empty() {
            mask = retain_bits(mask, |lane| tree.tags[start + lane].may_pair(&query.tag));
        }
        mask
    }

    /// Finds the nodes of level `to` that may have partners. Returns false once they are more than
    /// `max`.
    #[inline(always)]
    fn descend<L: Lanes>(
        &mut self,
        query: &Query,
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
            let mask = self.touched::<L>(level, start, query);
            each_bit(mask, |lane| {
                nodes
                    .open
                    .push((level - 1, tree.below(level, start + lane)));
            });
        }
        true
    }

    /// Finds the partners of box `p` among the boxes of a leaf node.
    #[inline(always)]
    fn leaf<L: Lanes>(&mut self, p: u32, query: &Query, start: usize, storing: bool) {
        let index = &self.search.tree.index;
        let mut mask = self.touched::<L>(0, start, query);
        if let (Partners::New(changed, _), Some(before)) = (self.search.partners, &query.before)
            && mask != 0
        {
            // SAFETY: as in `touched`.
            let known = unsafe { self.search.tree.overlap::<L>(start, before) };
            mask &= !retain_bits(mask & known, |lane| !changed.has(index[start + lane]));
        }
        let (between, accept) = (
            matches!(self.search.partners, Partners::Others),
            self.search.accept,
        );
        // The tags of leaves have tested filters and worlds already.
        let accepts = if self.search.tree.tags.is_empty() {
            accept.tests_anything()
        } else {
            accept.tests_more()
        };
        let one_by_one = match self.search.partners {
            Partners::Changed(_) | Partners::New(..) | Partners::Greater => true,
            Partners::Later | Partners::Others => accepts,
        };
        if one_by_one {
            let overlapping = mask.count_ones();
            mask = retain_bits(mask, |lane| {
                let q = index[start + lane];
                let is_partner = match self.search.partners {
                    Partners::Changed(changed) | Partners::New(changed, _) => {
                        q > p || !changed.has(q)
                    }
                    Partners::Greater => q > p,
                    Partners::Later | Partners::Others => true,
                };
                let (a, b) = if between {
                    (p, q)
                } else {
                    (p.min(q), p.max(q))
                };
                is_partner && (!accepts || accept.keeps(a, b))
            });
            self.task.drop_pairs(overlapping - mask.count_ones());
        }
        if storing && mask != 0 {
            let naming = if between {
                Naming::Searching
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

/// The nodes of a descent.
#[derive(Default)]
struct Nodes {
    /// The level and the first entry of each node still to visit.
    open: Vec<(usize, usize)>,
    /// The first entry of each node found.
    found: Vec<usize>,
}

impl Job for SearchJob<'_, '_> {
    #[inline(always)]
    fn run<L: Lanes>(mut self) {
        let storing = self.task.storing();
        let mut nodes = Nodes::default();
        // Several boxes descend together as far as the level above the leaves.
        let low = usize::from(self.search.tree.starts.len() > 1);
        let mut group = Vec::with_capacity(SEARCH_GROUP);
        for boxes in self.search.some.chunks(SEARCH_GROUP) {
            group.clear();
            group.extend(boxes.iter().filter_map(|&p| Some((p, self.query(p)?))));
            let Some(all) = group.iter().map(|&(_, query)| query).reduce(Query::union) else {
                continue;
            };
            let are_near = self.descend::<L>(&all, low, MAX_GROUP_NODES, &mut nodes);
            for &(p, query) in &group {
                if !are_near {
                    self.descend::<L>(&query, low, usize::MAX, &mut nodes);
                }
                for &start in &nodes.found {
                    if low == 0 {
                        self.leaf::<L>(p, &query, start, storing);
                        continue;
                    }
                    let mask = self.touched::<L>(low, start, &query);
                    each_bit(mask, |lane| {
                        let leaf = self.search.tree.below(low, start + lane);
                        self.leaf::<L>(p, &query, leaf, storing);
                    });
                }
            }
        }
    }
}
