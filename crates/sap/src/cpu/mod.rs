//! The CPU engine: all strategies, on the threads of the current rayon pool.
//!
//! An update reads the frame into a [`scene::Scene`]: checked, in `f32`, with margins. Then it
//! takes the first of these ways that applies ([`update`]):
//!
//! 1. Nothing changed: the last pairs are still valid.
//! 2. There is a neighbour list: it tests its candidates ([`neighbours`]).
//! 3. Few boxes changed: it searches for the pairs of these boxes only ([`incremental`]).
//! 4. Boxes moved little: it builds a neighbour list.
//! 5. Otherwise it finds all pairs ([`full`]): by a tree that is kept while boxes move, a few boxes
//!    all against all, or by a planned sweep.
//!
//! The neighbour list has its pairs in order, and knows what changed. After the other ways the
//! pairs are put in order and compared with those of the last update ([`output`]). An update that
//! fails changes nothing that the caller can see.

mod accept;
mod available;
mod chunks;
mod clock;
mod full;
mod incremental;
pub(crate) mod key;
mod lanes;
mod limits;
mod neighbours;
mod node;
mod output;
mod scatter;
mod scene;
mod small_sort;
pub(crate) mod tuning;
mod update;
mod update_full;

#[cfg(any(cuda, feature = "wgpu"))]
pub(crate) use full::sample::sample_size;

/// What the engine on `wgpu` does on the host in the same way.
#[cfg(feature = "wgpu")]
pub(crate) mod shared {
    pub(crate) use super::chunks::Delivery;
    pub(crate) use super::clock::Clock;
    pub(crate) use super::full::columns::Cuts;
    pub(crate) use super::full::plan::{plan_by_sample, plan_without_tree};
    pub(crate) use super::full::records::axes;
    pub(crate) use super::full::split::max_copies;
    pub(crate) use super::limits::{PairLimit, max_pairs};
    pub(crate) use super::output::events::difference;
    pub(crate) use super::scene::Scene;
    pub(crate) use super::tuning::{MIN_ROUND_PAIRS, ROUND_PAIRS_PER_BOX};
    pub(crate) use super::{check_count, read_alone};
}

use crate::policy::Backoff;
use crate::query::Labels;
use crate::subdivision::Subdivision;
use crate::threads::{on_threads, with_threads};
use crate::{Aabb, Backend, ChunkReport, Config, Error, Frame, Pair, Report, Result};
use chunks::Delivery;
use clock::Clock;
use full::arrange::MAX_COLUMNS;
use full::brute::Sides;
use full::columns::Cuts;
use full::kept::Kept;
use full::plan::{Planned, plan};
use full::two_sets::TwoSets;
use full::{FullSearch, Scratch, records};
use incremental::Incremental;
use incremental::policy::resting_threshold;
use limits::{PairLimit, max_pairs};
use neighbours::Neighbours;
use output::lists::Lists;
use output::order::order;
use scene::Scene;
use std::borrow::Cow;
use tuning::{
    MAX_TREE_FRAMES, MEDIUM_FRAME, MIN_ROUND_PAIRS, MIN_TREE_FRAMES, READ_HERE,
    ROUND_PAIRS_PER_BOX, SMALL_FRAME, SMALL_LIST, STREAM_TASK,
};
use web_time::Instant;

/// The CPU engine: the last frame, its lists, and what updates keep for the next one.
pub(crate) struct Engine {
    config: Config,
    /// The last frame.
    scene: Scene,
    /// The lists of the last update.
    lists: Lists,
    /// The report of the last update; None before the first.
    last: Option<Report>,
    /// The tree and the changed set of incremental updates.
    incremental: Incremental,
    /// The neighbour list, while it is in use, and the costs that decide about it.
    neighbours: Neighbours,
    /// Memory for the caller's list of changed boxes.
    listed: Vec<u32>,
    /// Memory for a small frame that is tested all against all.
    sides: Sides,
    /// The plan of the last planned update; None after all against all, or by the kept tree.
    planned: Option<Planned>,
    /// The tree that is kept while boxes move.
    kept: Kept,
    /// The number of threads of the pool, once an update has used it.
    pool_threads: usize,
    /// Has the tree used instead of plans, after a sweep that exceeded its budget and was wasted.
    plan_backoff: Backoff,
    /// The number of pairs of the last call with two sets.
    last_between: Option<u64>,
    /// Memory for the next scene.
    spare_scene: Scene,
    /// Memory for the sweep inside columns.
    scratch: Scratch,
}

impl Engine {
    pub(crate) fn new(config: Config) -> Self {
        if cfg!(target_family = "wasm") && config.threads.is_some() {
            // Starts the global pool of `rayon`, which is this thread where no other can be
            // started. A caller in a pool needs no pool of `Config::threads`.
            rayon::current_num_threads();
        }
        Self::with_lists(
            Lists::with_capacity(config.initial_pair_capacity.unwrap_or(0)),
            config,
        )
    }

    /// Creates an engine without boxes that uses these lists.
    fn with_lists(lists: Lists, config: Config) -> Self {
        Self {
            config,
            scene: Scene::default(),
            lists,
            last: None,
            incremental: Incremental::default(),
            neighbours: Neighbours::default(),
            listed: Vec::new(),
            sides: Sides::default(),
            planned: None,
            kept: Kept::default(),
            pool_threads: 0,
            plan_backoff: Backoff::new(MIN_TREE_FRAMES, MAX_TREE_FRAMES),
            last_between: None,
            spare_scene: Scene::default(),
            scratch: Scratch::default(),
        }
    }

    /// Creates an engine that continues from the last result of one that failed. The next update's
    /// events are relative to that result, and its margins to the stored boxes.
    #[cfg(on_device)]
    pub(crate) fn following(config: Config, last: crate::handover::Last) -> Self {
        let (boxes, tight) = if last.stored.is_empty() {
            (last.given, Vec::new())
        } else {
            (last.stored, last.given)
        };
        let lists = Lists {
            pairs: last.pairs,
            started: last.started,
            ended: last.ended,
            ..Lists::with_capacity(config.initial_pair_capacity.unwrap_or(0))
        };
        Self {
            scene: Scene {
                filters: Some(last.labels.filters.into_owned()).filter(|all| !all.is_empty()),
                worlds: Some(last.labels.worlds.into_owned()).filter(|all| !all.is_empty()),
                boxes,
                tight,
                ..Scene::default()
            },
            ..Self::with_lists(lists, config)
        }
    }

    /// Runs an update of `n` boxes where that takes the least time: on this thread, or on one of
    /// the pool, because each parallel step that begins outside of it costs two changes of threads.
    fn on_best_thread<T: Send>(
        &mut self,
        n: usize,
        update: impl FnOnce(&mut Self) -> Result<T> + Send,
    ) -> Result<T> {
        let max_here = match self.pool_threads {
            1 if self.kept.in_use() => READ_HERE,
            1 => STREAM_TASK,
            _ => MEDIUM_FRAME,
        };
        match n {
            ..=SMALL_FRAME => update(self),
            _ if n <= max_here => with_threads(|| update(self)),
            _ => on_threads(|| {
                self.pool_threads = rayon::current_num_threads();
                update(self)
            }),
        }
    }

    /// Tells whether there is a neighbour list, and a frame is small enough for it to need no other
    /// thread.
    fn is_small_list(&self, frame: &Frame) -> bool {
        self.neighbours.in_use() && frame.len() <= SMALL_LIST
    }

    fn between(&self, a: &Frame, b: &Frame) -> Result<Vec<Pair>> {
        let (mut first, mut second) = (read_alone(&self.config, a)?, read_alone(&self.config, b)?);
        if first.exact.is_some() || second.exact.is_some() {
            first.make_exact()?;
            second.make_exact()?;
        }
        let sets = TwoSets::new(&self.config, &first, &second)?;
        let memory = PairLimit {
            last: self.last_between,
            ..PairLimit::new(
                &self.config,
                a.len() + b.len(),
                a.len() as u64 * b.len() as u64,
            )
        };
        let blocks = &self.lists.blocks;
        let (found, limit) = memory.collect(|limit| sets.find(limit, blocks))?;
        let mut pairs = Vec::new();
        order(found.within(limit)?.blocks, a.len(), &mut pairs, blocks)?;
        Ok(pairs)
    }
}

impl crate::engine::Engine for Engine {
    fn config(&self) -> &Config {
        &self.config
    }

    fn backend(&self) -> Backend {
        Backend::Cpu
    }

    fn update(&mut self, frame: &Frame) -> Result<Report> {
        check_count(frame)?;
        // With a list of changed boxes, the others need not be read.
        let listed = frame.changed.filter(|_| {
            let may_rest =
                resting_threshold(&self.config) < frame.len() as u64 || self.neighbours.in_use();
            may_rest && self.last.is_some() && self.scene.has_form_of(frame, &self.config)
        });
        let by_list = match listed {
            // These have no parallel step.
            Some(listed) if self.is_small_list(frame) => self.update_listed(frame, listed)?,
            Some(listed) => with_threads(|| self.update_listed(frame, listed))?,
            None => None,
        };
        let report = match by_list {
            Some(report) => report,
            None => {
                let mut scene = std::mem::take(&mut self.spare_scene);
                let result = if self.is_small_list(frame) {
                    self.update_compared(frame, &mut scene)
                } else {
                    self.on_best_thread(frame.len(), |engine| {
                        engine.update_compared(frame, &mut scene)
                    })
                };
                if result.is_ok() {
                    std::mem::swap(&mut self.scene, &mut scene);
                }
                self.spare_scene = scene;
                result?
            }
        };
        self.last = Some(report.clone());
        Ok(report)
    }

    fn pairs(&self) -> &[Pair] {
        &self.lists.pairs
    }

    fn has_list(&self) -> bool {
        self.neighbours.in_use()
    }

    fn started(&self) -> &[Pair] {
        &self.lists.started
    }

    fn ended(&self) -> &[Pair] {
        &self.lists.ended
    }

    fn excluded(&self) -> &[Pair] {
        &self.scene.excluded
    }

    /// Returns the cuts of the last planned update, if it had several columns and no worlds.
    fn subdivision(&self) -> Option<Subdivision> {
        let [_, u, v] = records::axes(self.last.as_ref()?.stats.axis);
        let columns = self.planned.as_ref()?.columns();
        let used = columns.count() > 1 && self.scene.worlds.is_none();
        used.then(|| Subdivision::Columns {
            axes: [u, v],
            cuts: columns.cuts.each_ref().map(Cuts::to_vec),
        })
    }

    fn boxes(&self) -> Result<Cow<'_, [Aabb]>> {
        Ok(self.scene.given().into())
    }

    fn labels(&self) -> Result<Labels<'_>> {
        Ok(self.scene.labels())
    }

    fn clear(&mut self) {
        self.lists.clear();
        let lists = std::mem::take(&mut self.lists);
        *self = Self {
            spare_scene: std::mem::take(&mut self.spare_scene),
            scratch: std::mem::take(&mut self.scratch),
            ..Self::with_lists(lists, self.config.clone())
        };
    }

    fn overlaps_between(&mut self, a: &Frame, b: &Frame) -> Result<Vec<Pair>> {
        let pairs = on_threads(|| self.between(a, b))?;
        self.last_between = Some(pairs.len() as u64);
        Ok(pairs)
    }

    fn for_each_pair_chunk(
        &mut self,
        frame: &Frame,
        chunk: usize,
        f: &mut dyn FnMut(&[Pair]),
    ) -> Result<ChunkReport> {
        let start = Instant::now();
        let scene = read_alone(&self.config, frame)?;
        let (n, pairs) = (frame.len(), max_pairs(frame.len()));
        let round = MIN_ROUND_PAIRS.max(ROUND_PAIRS_PER_BOX * n as u64);
        let limit = PairLimit::new(&self.config, n, pairs).round(round);
        let search = FullSearch {
            config: &self.config,
            scene: &scene,
            plan: &plan(&scene.boxes, scene.worlds.as_deref(), self.config.strategy),
            blocks: &self.lists.blocks,
        };
        let scratch = &mut self.scratch;
        let found = on_threads(|| search.run(limit, scratch, &mut Clock::start()))?;
        let mut delivery = Delivery::new(chunk, f);
        let blocks = &self.lists.blocks;
        let tests = delivery.all(&scene, self.config.rule, found.stored()?, limit, blocks)?;
        Ok(ChunkReport {
            pairs: delivery.pairs,
            chunks: delivery.chunks,
            invalid: scene.invalid,
            tests,
            ms: start.elapsed().as_secs_f64() * 1e3,
        })
    }
}

/// Reads a frame without margins, independent of the last update.
pub(crate) fn read_alone(config: &Config, frame: &Frame) -> Result<Scene> {
    check_count(frame)?;
    let mut scene = Scene::default();
    scene.read(frame, config.on_invalid, 0.0, &Scene::default())?;
    Ok(scene)
}

/// Checks that the boxes are not too many. Indices have 31 bits, because an endpoint record has one
/// more bit. With worlds, each box of two sets may have a column of its own.
pub(crate) fn check_count(frame: &Frame) -> Result<()> {
    let boxes = frame.len() as u64;
    let limit = if frame.worlds.is_some() {
        MAX_COLUMNS / 4
    } else {
        i32::MAX as u64
    };
    if boxes > limit {
        Err(Error::TooManyBoxes { boxes, limit })
    } else {
        Ok(())
    }
}
