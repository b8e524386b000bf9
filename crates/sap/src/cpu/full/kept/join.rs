//! The join of a kept tree with itself.
//!
//! 1. Pairs of nodes that overlap are found from the top down to the nodes above the leaves: a node
//!    with itself, or with another. One thread does that; these nodes have 64 boxes each.
//! 2. All threads take such pairs, and test the boxes of their leaves.
//!
//! A node with another one costs a test of the eight entries of the first against the union of the
//! second, and for each entry that overlaps it a test against the eight of the second.

use super::tree::{ALL, Tree};
use crate::cpu::accept::Accept;
use crate::cpu::lanes::{Job, LANES, Lanes, Naming, each_bit, retain_bits, run_best};
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

/// Returns the entries of the first of two nodes of a level that overlap the union of the second;
/// all of one node.
///
/// # Safety
///
/// The processor suits `L`.
#[inline(always)]
unsafe fn touching<L: Lanes>(tree: &Tree, level: usize, [p, q]: [usize; 2]) -> u32 {
    if p == q {
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

/// Finds the pairs of the boxes below pairs of nodes, which are right above the leaves.
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
        let (index, leaves) = (&tree.index[..], tree.level(0));
        let (mut pairs, mut tests) = (Vec::new(), 0);
        for &pair in near {
            pairs.clear();
            // SAFETY: the processor suits `L`.
            tests += unsafe { expand::<L>(tree, 1, pair, &mut pairs) };
            for &leaf in &pairs {
                let [p, q] = leaf.map(|node| node as usize);
                // SAFETY: the processor suits `L`.
                let mut entries = unsafe { touching::<L>(tree, 0, [p, q]) };
                tests += u64::from(LANES as u32 * (1 + entries.count_ones()));
                while entries != 0 {
                    let lane = entries.trailing_zeros() as usize;
                    entries &= entries - 1;
                    // SAFETY: the processor suits `L`.
                    let mut mask = unsafe { leaves[q].overlap::<L>(&leaves[p].probe(lane)) };
                    if p == q {
                        // Later ones only.
                        mask &= (ALL - 1) << lane;
                    }
                    if mask == 0 {
                        continue;
                    }
                    let (i, first) = (index[p * LANES + lane], q * LANES);
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
        }
        task.found.tests += tests;
    }
}
