//! A tree over the boxes of a frame, kept from frame to frame: eight children a node, a node tested at once.

use super::accept::Accept;
use super::collect::{Collector, Found, Task};
use super::kept::Changed;
use super::key::{lift, ordered};
use super::lanes::{Bounds, Job, LANES, Lanes, Naming, each_bit, run_best};
use super::scene::Scene;
use super::tag::Tag;
use super::tuning::{MEET_GROUP, MEET_TASK, MOST_NODES, ROOM, STREAM_TASK};
use crate::packing;
use crate::room::{self, gather, zeros};
use crate::{Aabb, OverlapRule, Result};
use rayon::prelude::*;
use std::ops::Range;

/// Boxes and the unions above them. A node is [`LANES`] entries; entry `i` of level `l + 1` is the
/// union of node `i` of level `l`; the last level is one node. Boxes were in the order of [`packing`]
/// when the tree was made.
pub(super) struct Tree {
    /// All levels one after the other, in whole nodes, what is missing filled up with boxes that overlap nothing.
    min: Bounds<3>,
    max: Bounds<3>,
    /// What filters and worlds say of each entry; empty where a frame has neither.
    tags: Vec<Tag>,
    /// Where each level begins, and the number of its entries.
    starts: Vec<usize>,
    counts: Vec<usize>,
    /// The boxes of level 0, and what fills it up.
    index: Vec<u32>,
    /// The place of each box in level 0.
    places: Vec<u32>,
    /// Places that no box has.
    free: Vec<u32>,
    rule: OverlapRule,
}

/// Entries of a node, as a power of two.
const LANES_LOG2: usize = LANES.trailing_zeros() as usize;

/// A box as the least and the greatest bounds.
type Probe = [[i32; 3]; 2];

/// Overlaps nothing, and changes no union.
const NONE: Probe = [[i32::MAX; 3], [i32::MIN; 3]];

fn least(values: &[i32]) -> i32 {
    values.iter().copied().fold(i32::MAX, i32::min)
}

fn most(values: &[i32]) -> i32 {
    values.iter().copied().fold(i32::MIN, i32::max)
}

fn probe(b: &Aabb, rule: OverlapRule) -> Probe {
    if b.is_empty() {
        return NONE;
    }
    [
        b.min.map(|value| ordered(value) + lift(rule)),
        b.max.map(ordered),
    ]
}

impl Tree {
    /// A tree of these boxes, with room for some more. O(n log n), on all threads.
    pub(super) fn new(scene: &Scene, rule: OverlapRule) -> Result<Self> {
        let boxes = &scene.boxes;
        let (mut index, _) = packing::order(scene.packed())?;
        let n = index.len();
        let mut places = zeros(n)?;
        for (place, &i) in (0..).zip(&index) {
            places[i as usize] = place;
        }
        room::resize(&mut index, (n + n / ROOM + 1).next_multiple_of(LANES), 0)?;
        let (mut starts, mut counts) = (Vec::new(), Vec::new());
        let (mut total, mut count) = (0, index.len());
        loop {
            starts.push(total);
            counts.push(count);
            total += count.next_multiple_of(LANES);
            if count <= LANES {
                break;
            }
            count = count.div_ceil(LANES);
        }
        let probes = index[..n].par_iter();
        let sorted = gather(probes.map(|&i| probe(&boxes[i as usize], rule)))?;
        let (mut min, mut max) = (Bounds::<3>::default(), Bounds::<3>::default());
        for (end, bounds) in [&mut min, &mut max].into_iter().enumerate() {
            for (k, all) in bounds.iter_mut().enumerate() {
                room::resize(all, total, NONE[end][k])?;
                let boxes = all.par_iter_mut().zip(&sorted);
                boxes.for_each(|(to, b)| *to = b[end][k]);
            }
        }
        let mut tags = Vec::new();
        if Tag::is_needed(scene) {
            room::resize(&mut tags, total, Tag::NONE)?;
            let places = tags.par_iter_mut().zip(&index[..n]);
            places.for_each(|(tag, &i)| *tag = Tag::of(scene, i as usize));
        }
        let free = room::collect((n as u32..index.len() as u32).rev())?;
        let mut tree = Self {
            min,
            max,
            tags,
            starts,
            counts,
            free,
            index,
            places,
            rule,
        };
        for level in 1..tree.starts.len() {
            tree.join_all(level);
        }
        Ok(tree)
    }

    /// The boxes in the order of a tree that was just made.
    pub(super) fn walk(&self) -> &[u32] {
        &self.index[..self.places.len()]
    }

    /// Some boxes that are not empty, neighbours near each other.
    pub(super) fn in_order(&self, boxes: Range<u32>) -> Result<Vec<u32>> {
        let places = &self.places[boxes.start as usize..boxes.end as usize];
        let mut places = room::collect(places.iter().copied())?;
        places.sort_unstable();
        room::collect(places.into_iter().map(|place| self.index[place as usize]))
    }

    /// Takes the boxes that have changed, of which those beyond the end are gone. Gives those that are not in the order of their
    /// places: neighbours near each other. None where there is no room for new ones, or memory is refused: then it is of no use
    /// any more.
    pub(super) fn take(&mut self, scene: &Scene, changed: &[u32]) -> Option<Vec<u32>> {
        let boxes = &scene.boxes;
        if self.tags.is_empty() == Tag::is_needed(scene) {
            return None;
        }
        let here = changed.partition_point(|&i| (i as usize) < boxes.len());
        let kept = boxes.len().min(self.places.len());
        let (mut gone, mut places) = (Vec::new(), Vec::new());
        room::copy(&mut gone, &self.places[kept..]).ok()?;
        self.places.truncate(kept);
        let free = self.free.len() + gone.len();
        room::reserve(&mut self.free, free).ok()?;
        room::reserve(&mut self.places, boxes.len()).ok()?;
        room::reserve(&mut places, here + gone.len()).ok()?;
        while self.places.len() < boxes.len() {
            let place = self.free.pop()?;
            // A frame has fewer boxes than a u32 counts.
            self.index[place as usize] = self.places.len() as u32;
            self.places.push(place);
        }
        places.extend(changed[..here].iter().map(|&i| self.places[i as usize]));
        places.par_sort_unstable();
        let walk = room::collect(places.iter().map(|&place| self.index[place as usize])).ok()?;
        for (&place, &i) in places.iter().zip(&walk) {
            self.set(place, &probe(&boxes[i as usize], self.rule));
            if let Some(tag) = self.tags.get_mut(place as usize) {
                *tag = Tag::of(scene, i as usize);
            }
        }
        gone.iter().for_each(|&place| self.set(place, &NONE));
        self.free.extend(&gone);
        places.append(&mut gone);
        for level in 1..self.starts.len() {
            places.iter_mut().for_each(|entry| *entry /= LANES as u32);
            places.dedup();
            if places.len() > self.counts[level] / 4 {
                self.join_all(level);
            } else {
                places
                    .iter()
                    .for_each(|&entry| self.join(level, entry as usize));
            }
        }
        Some(walk)
    }

    fn set(&mut self, place: u32, [least, most]: &Probe) {
        for k in 0..3 {
            self.min[k][place as usize] = least[k];
            self.max[k][place as usize] = most[k];
        }
    }

    /// Makes an entry of a level anew.
    fn join(&mut self, level: usize, entry: usize) {
        let to = self.starts[level] + entry;
        let from = self.starts[level - 1] + entry * LANES;
        let node = from..from + LANES;
        self.min
            .iter_mut()
            .for_each(|all| all[to] = least(&all[node.clone()]));
        self.max
            .iter_mut()
            .for_each(|all| all[to] = most(&all[node.clone()]));
        if !self.tags.is_empty() {
            self.tags[to] = Tag::union(&self.tags[node]);
        }
    }

    /// Makes all entries of a level anew.
    fn join_all(&mut self, level: usize) {
        let [below, start] = [level - 1, level].map(|level| self.starts[level]);
        let count = self.counts[level];
        let join = |all: &mut Vec<i32>, union: fn(&[i32]) -> i32| {
            let (from, to) = all.split_at_mut(start);
            let nodes = from[below..].par_chunks(LANES);
            let entries = to[..count].par_iter_mut().with_min_len(STREAM_TASK);
            entries.zip(nodes).for_each(|(to, node)| *to = union(node));
        };
        self.min.iter_mut().for_each(|all| join(all, least));
        self.max.iter_mut().for_each(|all| join(all, most));
        if !self.tags.is_empty() {
            let (from, to) = self.tags.split_at_mut(start);
            let nodes = from[below..].par_chunks(LANES);
            let entries = to[..count].par_iter_mut().with_min_len(STREAM_TASK);
            entries
                .zip(nodes)
                .for_each(|(to, node)| *to = Tag::union(node));
        }
    }

    /// Which entries of a node overlap a probe.
    ///
    /// # Safety
    ///
    /// `start` is the first entry of a node: the one of the last level, or that below an entry that overlaps something.
    #[inline(always)]
    unsafe fn overlap<L: Lanes>(&self, start: usize, [least, most]: &Probe) -> u32 {
        // SAFETY: levels are whole nodes, and there is a node below each entry that is no filling.
        unsafe { L::overlap(&self.min, &self.max, start, [least, most]) }
    }

    /// The node below an entry.
    #[inline(always)]
    fn below(&self, level: usize, entry: usize) -> usize {
        self.starts[level - 1] + (entry - self.starts[level]) * LANES
    }
}

/// Which boxes of a tree a box may be paired with.
#[derive(Clone, Copy)]
pub(super) enum Partners<'a> {
    /// All; two that are both among the changed find each other once.
    Changed(&'a Changed),
    /// Those after it in the tree, which holds all that are looked for.
    Later,
    /// Those of a greater index.
    Greater,
    /// All, of another set than its own.
    Others,
}

/// Finds the boxes of a tree that overlap some boxes of a scene.
pub(super) struct Search<'a> {
    pub(super) tree: &'a Tree,
    pub(super) scene: &'a Scene,
    /// What to look for: neighbours near each other, best.
    pub(super) some: &'a [u32],
    pub(super) partners: Partners<'a>,
    pub(super) accept: &'a Accept<'a>,
}

impl Search<'_> {
    /// All pairs of them; few boxes are looked for on this thread.
    pub(super) fn run(&self, collector: &Collector) -> Found {
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
    /// The first place of the tree that is of interest.
    from: usize,
}

impl Asked {
    fn union(self, other: Self) -> Self {
        let ([a, b], [c, d]) = (self.probe, other.probe);
        let least = std::array::from_fn(|k| a[k].min(c[k]));
        Self {
            probe: [least, std::array::from_fn(|k| b[k].max(d[k]))],
            tag: self.tag.with(&other.tag),
            from: self.from.min(other.from),
        }
    }
}

impl Meet<'_, '_> {
    fn asked(&self, p: u32) -> Option<Asked> {
        let (b, tree) = (&self.search.scene.boxes[p as usize], self.search.tree);
        let from = match self.search.partners {
            Partners::Later => tree.places[p as usize] as usize + 1,
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
        // SAFETY: `start` is the first entry of the node of the last level, or of one below an entry
        // that overlaps something.
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

    /// Adds the nodes of a level that touch what is asked for, below the top: false where they become
    /// more than `most`.
    #[inline(always)]
    fn descend<L: Lanes>(
        &mut self,
        asked: &Asked,
        to: usize,
        most: usize,
        nodes: &mut Nodes,
    ) -> bool {
        let (tree, top) = (self.search.tree, self.search.tree.starts.len() - 1);
        nodes.found.clear();
        nodes.open.clear();
        nodes.open.push((top, tree.starts[top]));
        while let Some((level, start)) = nodes.open.pop() {
            if level == to {
                nodes.found.push(start);
                if nodes.found.len() > most {
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
        for group in self.search.some.chunks(MEET_GROUP) {
            let each = group.iter().filter_map(|&p| self.asked(p));
            let Some(all) = each.reduce(Asked::union) else {
                continue;
            };
            let near = self.descend::<L>(&all, low, MOST_NODES, &mut nodes);
            for &p in group {
                let Some(asked) = self.asked(p) else {
                    continue;
                };
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
