//! The join of a kept tree with itself.
//!
//! 1. Pairs of nodes that overlap are found from the top down to the nodes above the leaves: a node
//!    with itself, or with another. One thread does that; these nodes have 64 boxes each.
//! 2. All threads take such pairs, and test the boxes of their leaves: a leaf rotated against
//!    itself, and the boxes of two leaves.
//!
//! A node with another one costs a test of the eight entries of the first against the union of the
//! second, and for each entry that overlaps it a test against the eight of the second.

use super::tree::{ALL, Tree};
use crate::Pair;
use crate::cpu::accept::Accept;
use crate::cpu::lanes::{Job, LANES, Lanes, MAX_ROTATION, Naming, each_bit, retain_bits, run_best};
use crate::cpu::output::collect::{Collector, Found, Task};
use crate::cpu::tuning::JOIN_TASK;

/// Two nodes of a level, or one node twice.
type Near = [u32; 2];

/// Finds all pairs of the boxes of a tree.
pub(super) fn pairs(tree: &Tree, accept: &Accept, collector: &Collector) -> Found {
    let (mut near, mut tests) = (vec![[0, 0]], 0);
    run_best(Descend {
        tree,
        near: &mut near,
        tests: &mut tests,
    });
    let mut found = collector.run_parts(near.len(), JOIN_TASK, |task, range| {
        if task.charge() {
            run_best(JoinLeaves {
                tree,
                near: &near[range],
                accept,
                task,
            });
        }
    });
    found.tests += tests;
    found
}

/// Returns the entries of the first of two nodes of a level that overlap the union of the second.
/// One that overlaps any entry of the second is among them, also where both are one node. The node
/// at the top has no union, and all of its entries are returned.
///
/// # Safety
///
/// The processor suits `L`.
#[inline(always)]
unsafe fn touching<L: Lanes>(tree: &Tree, level: usize, [p, q]: [usize; 2]) -> u32 {
    if level == tree.top() {
        return ALL;
    }
    let union = tree.level(level + 1)[q / LANES].probe(q % LANES);
    // SAFETY: the caller's promise.
    unsafe { tree.level(level)[p].overlap::<L>(&union) }
}

/// Lists the pairs of entries of two nodes of a level that overlap, or of one node, where each
/// entry makes a pair with itself too. Entries are counted in their level. Returns the number of
/// tests.
///
/// # Safety
///
/// The processor suits `L`.
#[inline(always)]
unsafe fn expand<L: Lanes>(tree: &Tree, level: usize, near: Near, to: &mut Vec<Near>) -> u64 {
    let [p, q] = near.map(|node| node as usize);
    let nodes = tree.level(level);
    // SAFETY: the caller's promise.
    let mut entries = unsafe { touching::<L>(tree, level, [p, q]) };
    let tests = 1 + entries.count_ones() as usize;
    while entries != 0 {
        let lane = entries.trailing_zeros() as usize;
        entries &= entries - 1;
        // SAFETY: the caller's promise.
        let mut mask = unsafe { nodes[q].overlap::<L>(&nodes[p].probe(lane)) };
        if p == q {
            mask &= ALL << lane;
        }
        let (entry, first) = ((p * LANES + lane) as u32, (q * LANES) as u32);
        each_bit(mask, |lane| to.push([entry, first + lane as u32]));
    }
    (LANES * tests) as u64
}

/// Finds the nodes above the leaves that overlap.
struct Descend<'a> {
    tree: &'a Tree,
    /// The node at the top; then the nodes that were found.
    near: &'a mut Vec<Near>,
    tests: &'a mut u64,
}

impl Job for Descend<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self { tree, near, tests } = self;
        let mut next = Vec::new();
        for level in (2..=tree.top()).rev() {
            for &pair in &*near {
                // SAFETY: the processor suits `L`.
                *tests += unsafe { expand::<L>(tree, level, pair, &mut next) };
            }
            std::mem::swap(near, &mut next);
            next.clear();
        }
    }
}

/// A list of at most `N - LANES` pairs of numbers. An addition writes `LANES` slots.
struct List<const N: usize> {
    pairs: [Pair; N],
    len: usize,
}

impl<const N: usize> List<N> {
    const fn new() -> Self {
        Self {
            pairs: [Pair { a: 0, b: 0 }; N],
            len: 0,
        }
    }

    /// Adds the pairs of a number with the bits of a mask. With AVX2 its steps do not depend on the
    /// mask.
    ///
    /// # Safety
    ///
    /// The processor suits `L`.
    #[inline(always)]
    unsafe fn add<L: Lanes>(&mut self, a: u32, mask: u32) {
        const BITS: [u32; LANES] = [0, 1, 2, 3, 4, 5, 6, 7];
        let to = &mut self.pairs[self.len..][..LANES];
        // SAFETY: there are as many numbers and slots as lanes; the caller's promise.
        unsafe { L::pairs(&BITS, 0, mask, a, Naming::Searching, to.as_mut_ptr()) };
        self.len += mask.count_ones() as usize;
    }

    fn as_slice(&self) -> &[Pair] {
        &self.pairs[..self.len]
    }
}

/// A box by its slot, a leaf, and which boxes of the leaf it overlaps.
type Hit = (u32, u32, u32);

/// Finds the pairs of the boxes below pairs of nodes, which are right above the leaves.
///
/// The tests of leaves and of boxes go through lists. A processor cannot foresee the end of a loop
/// over the few bits of a mask.
struct JoinLeaves<'a, 'b> {
    tree: &'a Tree,
    near: &'a [Near],
    accept: &'a Accept<'a>,
    task: &'a mut Task<'b>,
}

impl Job for JoinLeaves<'_, '_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Self {
            tree,
            near,
            accept,
            task,
        } = self;
        let accept = accept.tests_anything().then_some(accept);
        let storing = task.storing();
        let (index, leaves, nodes) = (&tree.index[..], tree.level(0), tree.level(1));
        // Leaves of `p` with lanes of `q`; positions in that list with lanes of the leaf of `p`.
        let mut two_leaves = List::<{ LANES * LANES + LANES }>::new();
        let mut boxes = List::<{ LANES * LANES * LANES + LANES }>::new();
        // Of one node at most 8 x 28 in single leaves, and 28 x 8 others.
        let mut hits: [Hit; LANES * LANES * LANES] = [(0, 0, 0); _];
        let mut tests = 0;
        for &pair in near {
            let [p, q] = pair.map(|node| node as usize);
            (two_leaves.len, boxes.len) = (0, 0);
            let mut found = 0;
            if p == q {
                let own = p * LANES..leaves.len().min((p + 1) * LANES);
                tests += own.len() * MAX_ROTATION * LANES;
                for leaf in own {
                    // SAFETY: the processor suits `L`.
                    let overlapping = unsafe { leaves[leaf].overlap_rotated::<L>() };
                    each_bit(overlapping, |bit| {
                        let (lane, by) = (bit % LANES, bit / LANES + 1);
                        let slot = (leaf * LANES + lane) as u32;
                        hits[found] = (slot, leaf as u32, 1 << ((lane + by) % LANES));
                        found += 1;
                    });
                }
            }
            // SAFETY: the processor suits `L`.
            let entries = unsafe { touching::<L>(tree, 1, [p, q]) };
            each_bit(entries, |lane| {
                // Later ones only.
                let others = if p == q { (ALL - 1) << lane } else { ALL };
                // SAFETY: the processor suits `L`.
                unsafe {
                    let mask = nodes[q].overlap::<L>(&nodes[p].probe(lane));
                    two_leaves.add::<L>((p * LANES + lane) as u32, mask & others);
                }
            });
            for (k, two) in (0..).zip(two_leaves.as_slice()) {
                let two = [two.a as usize, q * LANES + two.b as usize];
                // SAFETY: the processor suits `L`.
                unsafe { boxes.add::<L>(k, touching::<L>(tree, 0, two)) };
            }
            for one in boxes.as_slice() {
                let Pair { a: own, b: lane } = two_leaves.pairs[one.a as usize];
                let (own, leaf) = (own as usize, q * LANES + lane as usize);
                let lane = one.b as usize;
                // SAFETY: the processor suits `L`.
                let mask = unsafe { leaves[leaf].overlap::<L>(&leaves[own].probe(lane)) };
                hits[found] = ((own * LANES + lane) as u32, leaf as u32, mask);
                found += usize::from(mask != 0);
            }
            let tested = 1 + entries.count_ones() as usize + two_leaves.len + boxes.len;
            tests += LANES * tested;
            for &(slot, leaf, mut mask) in &hits[..found] {
                let (i, first) = (index[slot as usize], leaf as usize * LANES);
                if let Some(accept) = accept {
                    let overlapping = mask.count_ones();
                    mask = retain_bits(mask, |lane| {
                        let pair = Naming::Smaller.pair(i, index[first + lane]);
                        accept.keeps(pair.a, pair.b)
                    });
                    task.drop_pairs(overlapping - mask.count_ones());
                }
                if storing {
                    // SAFETY: the slots are whole leaves; the processor suits `L`.
                    unsafe { task.push_mask::<L>(index, first, mask, i, Naming::Smaller) };
                } else {
                    task.count(mask.count_ones());
                }
            }
        }
        task.found.tests += tests as u64;
    }
}
