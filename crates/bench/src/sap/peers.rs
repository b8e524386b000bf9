//! Other broad phases on the CPU: the trees of other crates, and a plain sweep.
//!
//! Each takes the boxes of a frame as a slice and returns all overlapping pairs, in any order, on
//! all threads where it can.

use parry3d::bounding_volume::Aabb as ParryAabb;
use parry3d::math::Vector;
use parry3d::partitioning::{Bvh, BvhBuildStrategy, BvhLeafUpdateStatus, BvhWorkspace};
use radsweep::{Aabb, Pair};
use rayon::prelude::*;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::str::FromStr;

/// Query boxes per task.
#[cfg(feature = "peers")]
const QUERIES: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// parry's `Bvh`, rebuilt each frame and traversed against itself.
    ParryRebuild,
    /// parry's `Bvh`, updated each frame: the leaves that changed are updated, the tree is
    /// optimised a little, refitted, and traversed against itself.
    ParryUpdate,
    /// The same on one thread, as its documentation shows it.
    ParryUpdate1,
    /// parry's `Bvh` as rapier's broad phase uses it, on one thread: only the leaves that changed
    /// are traversed, and pairs are kept in a hash map.
    ParryChanged,
    /// `obvhs`: PLOC, then a query for each box.
    Obvhs,
    /// `bvh`: SAH, then a query for each box.
    Bvh,
    /// A sweep along x: the boxes are sorted, and each is tested with those that begin before it
    /// ends.
    PlainSweep,
}

impl Peer {
    pub const ALL: [Self; 7] = [
        Self::ParryRebuild,
        Self::ParryUpdate,
        Self::ParryUpdate1,
        Self::ParryChanged,
        Self::Obvhs,
        Self::Bvh,
        Self::PlainSweep,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::ParryRebuild => "parry-rebuild",
            Self::ParryUpdate => "parry-update",
            Self::ParryUpdate1 => "parry-update-1",
            Self::ParryChanged => "parry-changed",
            Self::Obvhs => "obvhs",
            Self::Bvh => "bvh",
            Self::PlainSweep => "plain-sweep",
        }
    }

    /// Tells whether this build has it.
    pub fn is_here(self) -> bool {
        cfg!(feature = "peers") || !matches!(self, Self::Obvhs | Self::Bvh)
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|peer| peer.name() == name);
        let peer = found.ok_or_else(|| format!("unknown peer `{name}`: known are {}", known()))?;
        if peer.is_here() {
            return Ok(peer);
        }
        Err(format!(
            "this build has no {name}: build with `--features peers`"
        ))
    }
}

/// The threads that a peer uses.
#[derive(Clone, Copy)]
pub(super) enum Threads {
    All,
    One,
}

/// A peer with its state between frames.
pub(super) enum Running {
    ParryRebuild(BvhWorkspace),
    ParryUpdate {
        tree: Bvh,
        workspace: BvhWorkspace,
        threads: Threads,
    },
    ParryChanged(Box<ParryChanged>),
    #[cfg(feature = "peers")]
    Obvhs(crates::Obvhs),
    #[cfg(feature = "peers")]
    Bvh,
    PlainSweep,
}

impl Running {
    /// Starts a peer; `None` where this build does not have it.
    pub fn new(peer: Peer) -> Option<Self> {
        let update = |threads| Self::ParryUpdate {
            tree: Bvh::new(),
            workspace: BvhWorkspace::default(),
            threads,
        };
        Some(match peer {
            Peer::ParryRebuild => Self::ParryRebuild(BvhWorkspace::default()),
            Peer::ParryUpdate => update(Threads::All),
            Peer::ParryUpdate1 => update(Threads::One),
            Peer::ParryChanged => Self::ParryChanged(Box::default()),
            #[cfg(feature = "peers")]
            Peer::Obvhs => Self::Obvhs(crates::Obvhs::default()),
            #[cfg(feature = "peers")]
            Peer::Bvh => Self::Bvh,
            #[cfg(not(feature = "peers"))]
            Peer::Obvhs | Peer::Bvh => return None,
            Peer::PlainSweep => Self::PlainSweep,
        })
    }

    /// Finds all overlapping pairs, in any order. A tree that is kept is told which boxes differ
    /// from those of the last call. A peer that keeps its pairs returns none: see [`Self::kept`].
    pub fn find(&mut self, boxes: &[Aabb], changed: &[u32]) -> Vec<Pair> {
        match self {
            Self::ParryRebuild(workspace) => {
                let leaves: Vec<ParryAabb> = boxes.iter().map(parry).collect();
                let tree = Bvh::from_leaves(BvhBuildStrategy::Binned, &leaves);
                walk(&tree, workspace, Threads::All)
            }
            Self::ParryUpdate {
                tree,
                workspace,
                threads,
            } => {
                if tree.leaf_count() as usize != boxes.len() {
                    let leaves: Vec<ParryAabb> = boxes.iter().map(parry).collect();
                    *tree = Bvh::from_leaves(BvhBuildStrategy::Binned, &leaves);
                } else {
                    for &leaf in changed {
                        tree.insert_or_update_partially(parry(&boxes[leaf as usize]), leaf, 0.0);
                    }
                    tree.optimize_incremental(workspace);
                    match threads {
                        Threads::All => tree.refit_parallel(workspace),
                        Threads::One => tree.refit(workspace),
                    }
                }
                walk(tree, workspace, *threads)
            }
            Self::ParryChanged(peer) => {
                peer.update(boxes, changed);
                Vec::new()
            }
            #[cfg(feature = "peers")]
            Self::Obvhs(obvhs) => obvhs.find(boxes),
            #[cfg(feature = "peers")]
            Self::Bvh => crates::bvh(boxes),
            Self::PlainSweep => plain_sweep(boxes),
        }
    }
}

impl Running {
    /// Returns the pairs of a peer that keeps them.
    pub fn kept(&self) -> Option<Vec<Pair>> {
        match self {
            Self::ParryChanged(peer) => Some(peer.pairs.keys().copied().collect()),
            _ => None,
        }
    }
}

/// parry's tree and the pairs of the last frame, with the frame that found each.
#[derive(Default)]
pub(super) struct ParryChanged {
    tree: Bvh,
    workspace: BvhWorkspace,
    pairs: HashMap<Pair, u32, BuildHasherDefault<PairHasher>>,
    frame: u32,
}

impl ParryChanged {
    /// Finds the pairs of the boxes that changed, and drops those of their pairs that ended.
    fn update(&mut self, boxes: &[Aabb], changed: &[u32]) {
        self.frame += 1;
        let Self {
            tree,
            workspace,
            pairs,
            frame,
        } = self;
        if tree.leaf_count() as usize != boxes.len() {
            let leaves: Vec<ParryAabb> = boxes.iter().map(parry).collect();
            *tree = Bvh::from_leaves(BvhBuildStrategy::Binned, &leaves);
            pairs.clear();
            tree.traverse_bvtt_single_tree::<false>(workspace, &mut |a, b| {
                pairs.insert(Pair::new(a, b), *frame);
            });
            return;
        }
        if changed.is_empty() {
            return;
        }
        for &leaf in changed {
            // A leaf counts as changed only if there is a margin. This one is lost by rounding.
            let margin = f32::MIN_POSITIVE;
            let aabb = parry(&boxes[leaf as usize]);
            let status = tree.insert_or_update_partially(aabb, leaf, margin);
            if status == BvhLeafUpdateStatus::Unchanged {
                // It lies within the last one, which was kept; nothing lies within an invalid one.
                tree.insert_or_update_partially(ParryAabb::new_invalid(), leaf, 0.0);
                tree.insert_or_update_partially(aabb, leaf, margin);
            }
        }
        tree.optimize_incremental(workspace);
        tree.refit(workspace);
        tree.traverse_bvtt_single_tree::<true>(workspace, &mut |a, b| {
            pairs.insert(Pair::new(a, b), *frame);
        });
        pairs.retain(|pair, seen| {
            let leaves = (tree.leaf_node(pair.a), tree.leaf_node(pair.b));
            let (Some(a), Some(b)) = leaves else {
                return false;
            };
            *seen == *frame || !(a.is_changed() || b.is_changed()) || a.intersects(b)
        });
    }
}

/// A hash by one multiplication, as engines use for pairs.
#[derive(Default)]
pub(super) struct PairHasher(u64);

impl Hasher for PairHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, value: u32) {
        let mixed = self.0.rotate_left(5) ^ u64::from(value);
        self.0 = mixed.wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}

fn parry(b: &Aabb) -> ParryAabb {
    ParryAabb::new(Vector::from_array(b.min), Vector::from_array(b.max))
}

/// Returns all overlapping pairs of leaves of a tree.
fn walk(tree: &Bvh, workspace: &mut BvhWorkspace, threads: Threads) -> Vec<Pair> {
    let mut pairs = Vec::new();
    match threads {
        Threads::All => {
            let found = tree.traverse_bvtt_single_tree_parallel::<false>();
            pairs.extend(found.into_iter().map(|(a, b)| Pair::new(a, b)));
        }
        Threads::One => {
            let mut found = |a, b| pairs.push(Pair::new(a, b));
            tree.traverse_bvtt_single_tree::<false>(workspace, &mut found);
        }
    }
    pairs
}

fn plain_sweep(boxes: &[Aabb]) -> Vec<Pair> {
    let mut sorted: Vec<(u32, Aabb)> = (0..).zip(boxes.iter().copied()).collect();
    sorted.par_sort_unstable_by(|(_, a), (_, b)| a.min[0].total_cmp(&b.min[0]));
    let ranks = (0..sorted.len()).into_par_iter().with_min_len(256);
    let sweep = |rank: usize| {
        let (i, a) = &sorted[rank];
        let candidates = sorted[rank + 1..].iter();
        let candidates = candidates.take_while(|(_, b)| b.min[0] <= a.max[0]);
        let overlaps = |b: &Aabb| (1..3).all(|k| a.min[k] <= b.max[k] && b.min[k] <= a.max[k]);
        candidates
            .filter(move |(_, b)| overlaps(b))
            .map(|(j, _)| Pair::new(*i, *j))
    };
    ranks.flat_map_iter(sweep).collect()
}

/// The crates of the feature `peers`.
#[cfg(feature = "peers")]
mod crates {
    use super::{Aabb, Pair, QUERIES};
    use bvh::aabb::{Aabb as BvhAabb, Bounded};
    use bvh::bounding_hierarchy::BHShape;
    use bvh::bvh::{Bvh, rayon_executor};
    use nalgebra::Point3;
    use obvhs::aabb::Aabb as ObvhsAabb;
    use obvhs::bvh2::Bvh2;
    use obvhs::ploc::{PlocBuilder, PlocSearchDistance, SortPrecision};
    use rayon::prelude::*;

    /// A tree that is rebuilt in the memory of the last.
    #[derive(Default)]
    pub struct Obvhs {
        builder: PlocBuilder,
        tree: Bvh2,
    }

    impl Obvhs {
        pub fn find(&mut self, boxes: &[Aabb]) -> Vec<Pair> {
            let leaves: Vec<ObvhsAabb> = boxes
                .par_iter()
                .map(|b| ObvhsAabb::new(b.min.into(), b.max.into()))
                .collect();
            // The fastest build: better trees save less in the queries than they cost.
            self.builder.build_with_bvh(
                &mut self.tree,
                PlocSearchDistance::Minimum,
                &leaves,
                (0..boxes.len() as u32).collect(),
                SortPrecision::U64,
                0,
            );
            let ask = |a: usize| {
                let mut found = Vec::new();
                self.tree.aabb_traverse(leaves[a], |tree, node| {
                    let node = &tree.nodes[node as usize];
                    let first = node.first_index as usize;
                    for &b in &tree.primitive_indices[first..first + node.prim_count as usize] {
                        if (a as u32) < b && leaves[a].intersect_aabb(&leaves[b as usize]) {
                            found.push(Pair { a: a as u32, b });
                        }
                    }
                    true
                });
                found
            };
            let asked = (0..boxes.len()).into_par_iter().with_min_len(QUERIES);
            asked.flat_map_iter(ask).collect()
        }
    }

    struct Shape {
        bounds: BvhAabb<f32, 3>,
        index: u32,
        node: usize,
    }

    impl Bounded<f32, 3> for Shape {
        fn aabb(&self) -> BvhAabb<f32, 3> {
            self.bounds
        }
    }

    impl BHShape<f32, 3> for Shape {
        fn set_bh_node_index(&mut self, node: usize) {
            self.node = node;
        }

        fn bh_node_index(&self) -> usize {
            self.node
        }
    }

    pub fn bvh(boxes: &[Aabb]) -> Vec<Pair> {
        let shape = |(b, index): (&Aabb, u32)| Shape {
            bounds: BvhAabb::with_bounds(Point3::from(b.min), Point3::from(b.max)),
            index,
            node: 0,
        };
        let mut shapes: Vec<Shape> = boxes.iter().zip(0..).map(shape).collect();
        let tree = Bvh::build_with_executor(&mut shapes, rayon_executor);
        let ask = |a: usize| {
            let a = &shapes[a];
            let hit = tree.traverse_iterator(&a.bounds, &shapes);
            hit.filter(|b| a.index < b.index).map(|b| Pair {
                a: a.index,
                b: b.index,
            })
        };
        let asked = (0..shapes.len()).into_par_iter().with_min_len(QUERIES);
        asked.flat_map_iter(ask).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radsweep::{Backend, BroadPhase, Config};

    /// Returns a lattice of touching boxes, with some inside others. Every third grows.
    fn boxes(shift: f32, grown: f32) -> Vec<Aabb> {
        (0..600_u16)
            .map(|i| {
                let at = [i % 10, i / 10 % 10, i / 100].map(|k| f32::from(k) + shift);
                let side = if i % 7 == 0 { 1.5 } else { 1.0 };
                let grown = if i % 3 == 0 { grown } else { 0.0 };
                Aabb::new(at.map(|x| x - grown), at.map(|x| x + side + grown))
            })
            .collect()
    }

    #[test]
    fn all_peers_find_our_pairs_frame_after_frame() {
        let config = Config {
            backend: Backend::Cpu,
            ..Config::default()
        };
        let mut broad_phase = BroadPhase::new(config).expect("the CPU is there");
        for peer in Peer::ALL {
            let Some(mut running) = Running::new(peer) else {
                assert!(!peer.is_here());
                continue;
            };
            // The last frames grow and shrink boxes in their places.
            for (shift, grown) in [
                (0.0, 0.0),
                (0.25, 0.0),
                (8.0, 0.0),
                (0.5, 0.0),
                (0.5, 0.75),
                (0.5, 0.25),
            ] {
                let boxes = boxes(shift, grown);
                let all: Vec<u32> = (0..boxes.len() as u32).collect();
                let found = running.find(&boxes, &all);
                let mut pairs = running.kept().unwrap_or(found);
                pairs.sort_unstable();
                broad_phase.update(&boxes).expect("pairs");
                assert!(pairs == broad_phase.pairs(), "{peer} at {shift} {grown}");
            }
        }
    }

    #[test]
    fn names_parse_back_and_an_unknown_one_lists_the_known() {
        for peer in Peer::ALL {
            assert_eq!(peer.name().parse::<Peer>().is_ok(), peer.is_here());
        }
        let error = "embree".parse::<Peer>().expect_err("unknown");
        assert!(error.contains("parry-update"), "{error}");
    }
}
