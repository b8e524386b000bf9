//! Finds the candidates of loosened boxes: all of them, or those of boxes that were loosened again.

use crate::cpu::accept::{Accept, WorldTest};
use crate::cpu::clock::Clock;
use crate::cpu::full::brute::Sides;
use crate::cpu::full::plan::plan;
use crate::cpu::full::{FullSearch, Scratch};
use crate::cpu::incremental::changed::ChangedSet;
use crate::cpu::incremental::search::{Partners, Search};
use crate::cpu::incremental::tree::Tree;
use crate::cpu::limits::max_pairs;
use crate::cpu::output::collect::{Collector, SpareBlocks};
use crate::cpu::output::order::order;
use crate::cpu::scene::Scene;
use crate::cpu::tuning::MAX_LEFT_BRUTE;
use crate::threads::with_threads;
use crate::{Aabb, Config, OverlapRule, Pair, Result, Strategy, try_alloc};

/// Where loosened boxes are looked for.
#[derive(Default)]
pub(super) enum Searcher {
    /// Nothing is built yet.
    #[default]
    None,
    /// Every box is tested.
    Brute(Box<Sides>),
    /// A tree is searched. The first search builds it, so that the frame of a new list is shorter.
    Tree(Box<Tree>),
}

/// The rule of loosened boxes: whatever the rule of the frame, its pairs are among the candidates.
pub(super) const RULE: OverlapRule = OverlapRule::Closed;

fn accept(loose: &Scene) -> Result<Accept<'_>> {
    Accept::new(loose, loose, RULE, WorldTest::PerPair)
}

impl Searcher {
    /// Finds all candidates, in order. Returns the tests that took, or None where there are more
    /// than `max`.
    pub(super) fn all(
        &mut self,
        loose: &Scene,
        max: u64,
        scratch: &mut Scratch,
        blocks: &SpareBlocks,
        pairs: &mut Vec<Pair>,
    ) -> Result<Option<u64>> {
        let n = loose.boxes.len();
        if n <= MAX_LEFT_BRUTE {
            if !matches!(self, Self::Brute(_)) {
                *self = Self::Brute(Box::default());
            }
            let Self::Brute(sides) = self else {
                return Ok(None);
            };
            sides.all(&loose.boxes, RULE, pairs)?;
            let accept = accept(loose)?;
            if accept.tests_anything() {
                pairs.retain(|pair| accept.keeps(pair.a, pair.b));
            }
            return Ok((pairs.len() as u64 <= max).then_some(max_pairs(n)));
        }
        *self = Self::None;
        let config = Config {
            rule: RULE,
            ..Config::default()
        };
        let plan = plan(&loose.boxes, loose.worlds.as_deref(), Strategy::Auto);
        let finder = FullSearch {
            config: &config,
            scene: loose,
            plan: &plan,
            blocks,
        };
        let found = finder.run(max, scratch, &mut Clock::start())?.stored()?;
        if found.count > max {
            return Ok(None);
        }
        let tests = found.tests;
        order(found.blocks, n, pairs, blocks)?;
        Ok(Some(tests))
    }

    /// Finds the candidates of some boxes, in any order, after these were loosened again. With the
    /// loosened boxes `before`, in the order of `left`, it leaves out most candidates that were
    /// such before. A candidate of two boxes that left may be listed twice.
    pub(super) fn of(
        &mut self,
        loose: &Scene,
        left: &ChangedSet,
        before: Option<&[Aabb]>,
        blocks: &SpareBlocks,
        pairs: &mut Vec<Pair>,
    ) -> Result<u64> {
        pairs.clear();
        let tests = match std::mem::take(self) {
            Self::Brute(mut sides) => {
                let accept = accept(loose)?;
                let tests_more = accept.tests_anything();
                for &i in left.list() {
                    sides.set(i as usize, &loose.boxes[i as usize]);
                }
                for (rank, &i) in left.list().iter().enumerate() {
                    try_alloc::grow(pairs, loose.boxes.len())?;
                    let before = before.map(|before| &before[rank]);
                    sides.overlapping(i as usize, |other| {
                        let (pair, b) = (Pair::new(i, other), &loose.boxes[other as usize]);
                        let is_known = before.is_some_and(|before| before.overlaps(b, RULE));
                        if is_known && !left.has(other) {
                            return;
                        }
                        if !tests_more || accept.keeps(pair.a, pair.b) {
                            pairs.push(pair);
                        }
                    });
                }
                *self = Self::Brute(sides);
                (left.list().len() * loose.boxes.len()) as u64
            }
            searcher => {
                let (tree, found) = with_threads(|| {
                    let tree = match searcher {
                        Self::Tree(tree) => *tree,
                        _ => Tree::new(loose, RULE)?,
                    };
                    let refreshed = tree.refresh(loose, left.list(), &[]);
                    // Boxes, filters and worlds neither come nor go while there is a list, so only
                    // memory can be missing.
                    let (tree, walk) = refreshed.ok_or(try_alloc::refused::<Tree>(1))?;
                    let search = Search {
                        tree: &tree,
                        scene: loose,
                        some: &walk,
                        partners: match before {
                            Some(before) => Partners::New(left, before),
                            None => Partners::Changed(left),
                        },
                        accept: &accept(loose)?,
                    };
                    let found = search.run(&Collector::new(u64::MAX, blocks)).stored()?;
                    Ok((tree, found))
                })?;
                *self = Self::Tree(Box::new(tree));
                for block in found.blocks {
                    try_alloc::grow(pairs, block.len())?;
                    pairs.extend_from_slice(&block);
                    blocks.give(block);
                }
                found.tests
            }
        };
        Ok(tests)
    }
}
