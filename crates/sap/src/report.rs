//! What an update found, and what it did to find it.

use crate::choice::Choice;
use crate::{Backend, Error, InvalidReason, OnInvalid, Result, Strategy};
use std::ops::AddAssign;

/// The invalid boxes that an update skipped ([`OnInvalid::Skip`](crate::OnInvalid::Skip)).
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Invalid {
    /// Their number.
    pub count: u64,
    /// The index of the first.
    pub first: usize,
    /// What is wrong with the first.
    pub reason: InvalidReason,
}

impl Invalid {
    /// Fails for invalid boxes, unless they are skipped.
    pub(crate) fn check(invalid: Option<Self>, on_invalid: OnInvalid) -> Result<()> {
        match (on_invalid, invalid) {
            (OnInvalid::Error, Some(Self { first, reason, .. })) => Err(Error::InvalidAabb {
                index: first,
                reason,
            }),
            _ => Ok(()),
        }
    }
}

/// The milliseconds of each stage: host time on the CPU and on `wgpu`, device time on CUDA. A stage
/// that was not needed has 0. On CUDA all have 0 without
/// [`Config::timings`](crate::Config::timings).
///
/// On CUDA the host waits for the counters once an update. That wait is in no stage; one for a new
/// plan of cells is in `keys`. On `wgpu` the keys are made in the stage `sort`; an update with
/// boxes there that waits once has all in `sweep`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Timings {
    /// Copying the boxes to the device.
    pub upload: f64,
    /// Checking the boxes, margins, statistics. On the CPU also the choice of strategy, axis and
    /// columns; on CUDA also the whole of a frame by a neighbour list.
    pub bounds: f64,
    /// Making the keys. On CUDA also a new plan of cells, where the last one does not suit; in
    /// cells whose plan is kept it is 0.
    pub keys: f64,
    /// Sorting them, and gathering boxes in their order.
    pub sort: f64,
    /// Finding the pairs: by interval tests, in cells or by a tree.
    pub sweep: f64,
    /// Putting the pairs in order.
    pub order: f64,
    /// Comparing with the pairs of the last update.
    pub events: f64,
    /// Copying the results to the host.
    pub download: f64,
    /// The sum of the stages. It is 0 after an empty list of changed boxes on the CPU, which reads
    /// no clock.
    pub total: f64,
}

impl Timings {
    /// Returns the stages by name, in the order they run, without the total.
    pub fn stages(&self) -> impl Iterator<Item = (&'static str, f64)> {
        [
            ("upload", self.upload),
            ("bounds", self.bounds),
            ("keys", self.keys),
            ("sort", self.sort),
            ("sweep", self.sweep),
            ("order", self.order),
            ("events", self.events),
            ("download", self.download),
        ]
        .into_iter()
    }
}

/// What all sorts of an update did together.
///
/// - On CUDA [`gpusort`] sorts boxes or their ends (`Sweep` and `Endpoints`), and pairs. Cells need
///   no sort of boxes, and pairs that are ordered by bins or rows need none, so all may be 0.
///   The figures come with the counters of the update, without another wait. If a step was
///   repeated, the last time counts.
/// - On `wgpu` [`gpusort`] sorts boxes and pairs.
/// - On the CPU [`gpusort`] sorts boxes or their ends. Pairs and the boxes of a column are sorted
///   in cache, without passes, and count as keys only.
///
/// All are 0 if nothing had to be sorted, such as in a frame equal to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Sorts {
    /// Keys sorted.
    pub keys: u64,
    /// Digits by which radix sorts moved keys.
    pub passes_run: u32,
    /// Digits that were skipped, because all keys had the same or were in order already.
    pub passes_skipped: u32,
    /// Sorts that found their keys in order before all passes were run.
    pub early_exits: u32,
}

impl AddAssign for Sorts {
    fn add_assign(&mut self, other: Self) {
        self.keys += other.keys;
        self.passes_run += other.passes_run;
        self.passes_skipped += other.passes_skipped;
        self.early_exits += other.early_exits;
    }
}

impl From<&gpusort::SortReport> for Sorts {
    fn from(report: &gpusort::SortReport) -> Self {
        Self {
            keys: report.n,
            passes_run: report.passes_run,
            passes_skipped: report.passes_skipped,
            early_exits: report.early_exit.into(),
        }
    }
}

/// What an update found.
///
/// ```
/// use sap::{Aabb, BroadPhase, Config};
///
/// let mut broad_phase = BroadPhase::new(Config::default())?;
/// let report = broad_phase.update(&[Aabb::new([0.0; 3], [1.0; 3]); 3])?;
/// assert_eq!((report.n, report.pairs, report.started, report.ended), (3, 3, 3, 0));
/// for (stage, ms) in report.stats.timings.stages() {
///     println!("{stage:10} {ms:.3} ms");
/// }
/// # Ok::<(), sap::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Boxes in the frame.
    pub n: usize,
    /// Pairs that overlap.
    pub pairs: u64,
    /// Pairs that the update before did not have; 0 with events off.
    pub started: u64,
    /// Pairs that only the update before had; 0 with events off.
    pub ended: u64,
    /// Invalid boxes, if there were any.
    pub invalid: Option<Invalid>,
    /// How the pairs were found, and at what cost.
    pub stats: Stats,
}

impl Report {
    /// The report before the first update.
    pub(crate) fn none(backend: Backend, strategy: Strategy) -> Self {
        Self {
            n: 0,
            pairs: 0,
            started: 0,
            ended: 0,
            invalid: None,
            stats: Stats {
                backend,
                strategy,
                choice: None,
                axis: 0,
                tests: 0,
                resting: 0,
                regrown: 0,
                sorts: Sorts::default(),
                timings: Timings::default(),
            },
        }
    }
}

/// How an update found its pairs, and at what cost, for display and tuning. The pairs never depend
/// on it.
///
/// ```
/// use sap::{Aabb, Backend, BroadPhase, Config, Strategy};
///
/// let mut broad_phase = BroadPhase::new(Config { backend: Backend::Cpu, ..Config::default() })?;
/// let stats = &broad_phase.update(&[Aabb::new([0.0; 3], [1.0; 3]); 3])?.stats;
/// assert_eq!((stats.backend, stats.strategy, stats.tests), (Backend::Cpu, Strategy::Sweep, 3));
/// # Ok::<(), sap::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The backend that ran.
    pub backend: Backend,
    /// The strategy that ran. After an update that reused the last pairs, the neighbour list or the
    /// kept tree, it is that of the last planned update. Boxes tested all against all count as
    /// [`Strategy::Sweep`].
    pub strategy: Strategy,
    /// Why [`Strategy::Auto`] took this strategy.
    #[doc(hidden)]
    pub choice: Option<Choice>,
    /// The sweep axis: 0, 1, 2 for x, y, z.
    pub axis: usize,
    /// The number of tests of two boxes. It is 0 if no box had changed since the last update.
    ///
    /// - All against all, by `Auto` on the CPU for some hundred boxes: all pairs of boxes.
    /// - Along an axis: the candidates, that is, pairs whose intervals overlap on the sweep axis.
    ///   In columns a pair counts in each column that both boxes are in.
    /// - In cells, on CUDA: each box of the cells that were searched.
    /// - In a tree: each child of the nodes that were visited; in an incremental update on the CPU
    ///   each box of these nodes.
    /// - By the neighbour list: its candidates, and the tests that found new ones.
    pub tests: u64,
    /// The number of boxes that were neither sorted nor tested against each other, because they are
    /// unchanged: on CUDA the resting set, on the CPU all boxes that an incremental update leaves
    /// out.
    pub resting: u64,
    /// How often a buffer was too small, so that a step was repeated.
    pub regrown: u32,
    /// What was sorted, and in how many passes.
    pub sorts: Sorts,
    /// Time by stage.
    pub timings: Timings,
}

/// What [`BroadPhase::for_each_pair_chunk`](crate::BroadPhase::for_each_pair_chunk) delivered.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ChunkReport {
    /// Pairs delivered.
    pub pairs: u64,
    /// Calls that delivered them.
    pub chunks: u64,
    /// Invalid boxes, if there were any.
    pub invalid: Option<Invalid>,
    /// The number of tests of two boxes, as [`Stats::tests`].
    pub tests: u64,
    /// The milliseconds of the call, including the caller's function.
    pub ms: f64,
}
