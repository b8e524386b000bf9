//! Searches a tree for the partners of some boxes, several boxes at once.

use super::changed::ChangedSet;
use super::tag::Tag;
use super::tree::{LANES_LOG2, Tree};
use crate::cpu::accept::Accept;
use crate::cpu::lanes::{Job, LANES, Lanes, MARK, Naming, each_bit, retain_bits, run_best};
use crate::cpu::node::{Probe, overlap, probe, union};
use crate::cpu::output::collect::{Collector, Found, Task};
use crate::cpu::scene::Scene;
use crate::cpu::tuning::{MAX_GROUP_NODES, MAX_GROUP_SLOTS, OPEN_NODES, SEARCH_GROUP, SEARCH_TASK};
use crate::{Aabb, Pair};

/// The boxes of a tree that a searched box may pair with.
#[derive(Clone, Copy)]
pub(in crate::cpu) enum Partners<'a> {
    /// All boxes; of two boxes of the changed set only one finds the other.
    Changed(&'a ChangedSet),
    /// All boxes, but for unchanged ones that the bounds which the searched box had before overlap.
    /// Bounds are in the order of the changed set.
    New(&'a ChangedSet, &'a [Aabb]),
    /// Boxes that overlap the searched box now or overlapped it before, but not both. The tree was
    /// refreshed with the same bounds, which are in the order of the changed set; none is empty.
    /// The second index of a pair that has ended has the bit [`MARK`].
    Differing(&'a ChangedSet, &'a [Aabb]),
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
    /// The searched boxes, best in the order of the tree.
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
    /// The box, or one of several.
    p: u32,
    probe: Probe,
    tag: Tag,
    /// The first slot of the tree that may have a partner.
    first_slot: usize,
    /// The bounds of the box now and before; see [`Partners::New`] and [`Partners::Differing`].
    step: Option<[Probe; 2]>,
}

impl Query {
    fn union(self, other: Self) -> Self {
        Self {
            p: self.p,
            probe: union(self.probe, other.probe),
            tag: self.tag.with(&other.tag),
            first_slot: self.first_slot.min(other.first_slot),
            step: None,
        }
    }
}

/// A node to visit for a query.
#[derive(Clone, Copy)]
struct Visit {
    level: u16,
    /// The position of the query in its group.
    query: u16,
    /// The first entry of the node.
    start: u32,
}

impl SearchJob<'_, '_> {
    /// Returns the bounds that a box had before, where they are known.
    fn before(&self, p: u32) -> Option<Probe> {
        let (Partners::New(changed, before) | Partners::Differing(changed, before)) =
            self.search.partners
        else {
            return None;
        };
        let before = before.get(changed.list().binary_search(&p).ok()?)?;
        Some(probe(before, self.search.tree.rule))
    }

    /// Returns the query of a box; None for an empty one.
    fn query(&self, p: u32) -> Option<Query> {
        let tree = self.search.tree;
        let first_slot = match self.search.partners {
            Partners::Later => tree.slots[p as usize] as usize + 1,
            _ => 0,
        };
        let tag = if tree.tags.is_empty() {
            Tag::NONE
        } else {
            Tag::of(self.search.scene, p as usize)
        };
        let now = probe(&self.search.scene.boxes[p as usize], tree.rule);
        let step = self.before(p).map(|before| [now, before]);
        let probe = match (self.search.partners, step) {
            (Partners::Differing(..), Some([now, before])) => union(now, before),
            _ => now,
        };
        // An empty box begins behind its end.
        (probe[0][0] != i32::MAX).then_some(Query {
            p,
            probe,
            tag,
            first_slot,
            step,
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

    /// Finds the partners of a box among the boxes of a leaf node.
    #[inline(always)]
    fn leaf<L: Lanes>(&mut self, query: &Query, start: usize, storing: bool) {
        let p = query.p;
        if let (Partners::Differing(..), Some(step)) = (self.search.partners, &query.step) {
            return self.differing::<L>(p, step, start, storing);
        }
        let index = &self.search.tree.index;
        let mut mask = self.touched::<L>(0, start, query);
        if let (Partners::New(changed, _), Some([_, before])) = (self.search.partners, &query.step)
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
            Partners::Later | Partners::Others | Partners::Differing(..) => accepts,
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
                    Partners::Later | Partners::Others | Partners::Differing(..) => true,
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

    /// Finds what box `p` overlaps now or overlapped before, but not both, in a leaf node.
    #[inline(always)]
    fn differing<L: Lanes>(&mut self, p: u32, step: &[Probe; 2], start: usize, storing: bool) {
        let (tree, accept) = (self.search.tree, self.search.accept);
        self.task.found.tests += LANES as u64;
        // SAFETY: `start` is the first entry of a leaf, below an entry that overlaps something.
        let now = unsafe { tree.overlap::<L>(start, &step[0]) };
        // SAFETY: as above.
        let mut before = unsafe { tree.overlap::<L>(start, &step[1]) };
        let (mut differing, moved) = (now ^ before, u32::from(tree.moved[start / LANES]));
        if moved != 0 {
            // Boxes that moved too are no longer where they were. One of two finds the other.
            let index = &tree.index;
            let overlapped = retain_bits(moved, |lane| {
                let other = self.before(index[start + lane]);
                other.is_some_and(|other| overlap(&step[1], &other))
            });
            before = before & !moved | overlapped;
            let later = retain_bits(moved, |lane| index[start + lane] > p);
            differing = (now ^ before) & (!moved | later);
        }
        if differing == 0 {
            return;
        }
        if accept.tests_anything() {
            let overlapping = differing.count_ones();
            differing = retain_bits(differing, |lane| {
                let pair = Pair::new(p, tree.index[start + lane]);
                accept.keeps(pair.a, pair.b)
            });
            self.task.drop_pairs(overlapping - differing.count_ones());
        }
        if !storing {
            return self.task.count(differing.count_ones());
        }
        each_bit(differing, |lane| {
            let Pair { a, b } = Pair::new(p, tree.index[start + lane]);
            let ended = if before >> lane & 1 == 1 { MARK } else { 0 };
            self.task.push(Pair { a, b: b | ended });
        });
    }

    /// Tells whether queries may be near each other in the tree, given the first and the last.
    fn may_be_near(&self, first: &Query, last: &Query) -> bool {
        if let Partners::Others = self.search.partners {
            return true; // The boxes of another set have no slots.
        }
        let [first, last] = [first, last].map(|query| self.search.tree.slots[query.p as usize]);
        first.abs_diff(last) <= MAX_GROUP_SLOTS
    }

    /// Lists the nodes below one in which a query may have partners, and asks for their memory.
    #[inline(always)]
    fn descend<L: Lanes>(&mut self, visit: Visit, query: &Query, below: &mut Vec<Visit>) {
        let (tree, level, start) = (self.search.tree, visit.level.into(), visit.start as usize);
        let mask = self.touched::<L>(level, start, query);
        each_bit(mask, |lane| {
            let start = tree.below(level, start + lane);
            tree.ask(start);
            below.push(Visit {
                level: visit.level - 1,
                start: start as u32,
                ..visit
            });
        });
    }

    /// Replaces nodes by those below them in which a query may have partners, down to the level
    /// above the leaves, as long as these are few.
    #[inline(always)]
    fn narrow<L: Lanes>(&mut self, query: &Query, nodes: &mut Vec<Visit>, below: &mut Vec<Visit>) {
        for _ in 2..self.search.tree.starts.len() {
            below.clear();
            for &visit in &*nodes {
                self.descend::<L>(visit, query, below);
            }
            if below.len() > MAX_GROUP_NODES {
                return;
            }
            std::mem::swap(nodes, below);
        }
    }
}

impl Job for SearchJob<'_, '_> {
    #[inline(always)]
    fn run<L: Lanes>(mut self) {
        let storing = self.task.storing();
        let starts = &self.search.tree.starts;
        let top = starts.len() - 1;
        let root = Visit {
            level: top as u16,
            query: 0,
            start: starts[top] as u32,
        };
        let mut queries = Vec::with_capacity(SEARCH_GROUP);
        let (mut first_nodes, mut open, mut batch) = (Vec::new(), Vec::new(), Vec::new());
        for boxes in self.search.some.chunks(SEARCH_GROUP) {
            queries.clear();
            queries.extend(boxes.iter().filter_map(|&p| self.query(p)));
            first_nodes.clear();
            first_nodes.push(root);
            if let [first, .., last] = &queries[..]
                && self.may_be_near(first, last)
                && let Some(all) = queries.iter().copied().reduce(Query::union)
            {
                self.narrow::<L>(&all, &mut first_nodes, &mut batch);
            }
            for query in 0..queries.len() as u16 {
                open.extend(first_nodes.iter().map(|&visit| Visit { query, ..visit }));
            }
            // The memory of a node is asked for before other nodes are tested, which shortens the
            // wait for it. The last nodes come first, so that few are open at a time.
            while !open.is_empty() {
                batch.clear();
                batch.extend(open.drain(open.len().saturating_sub(OPEN_NODES)..));
                for &visit in &batch {
                    let query = &queries[usize::from(visit.query)];
                    if visit.level == 0 {
                        self.leaf::<L>(query, visit.start as usize, storing);
                    } else {
                        self.descend::<L>(visit, query, &mut open);
                    }
                }
            }
        }
    }
}
