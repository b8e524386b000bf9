//! The engine: the state between updates, and the calls that read it.

use crate::cuda::abi::{State, counter};
use crate::cuda::counters::Counters;
use crate::cuda::differences::List;
use crate::cuda::events::Events;
use crate::cuda::find::bound::{Bound, Finder};
use crate::cuda::find::grid::Grid;
use crate::cuda::find::plan::{FoundBy, Plan};
use crate::cuda::find::sweep::Sweep;
use crate::cuda::find::tree::Tree;
use crate::cuda::input::reader::Reader;
use crate::cuda::input::scene::Scene;
use crate::cuda::input::source::Source;
use crate::cuda::memory::HostPairs;
use crate::cuda::neighbours::Neighbours;
use crate::cuda::order::PairOrder;
use crate::cuda::query::{Queries, copied, copied_some};
use crate::cuda::resting::RestingSet;
use crate::cuda::sorting::Sorting;
use crate::cuda::stages::Marks;
use crate::cuda::tuning::MIN_RESTING;
use crate::engine::assert_downloaded;
use crate::handover::Last;
use crate::query::{Labels, NearBox, Question};
use crate::subdivision::Subdivision;
use crate::try_alloc::{concat, into_owned, zeros};
use crate::{Aabb, Backend, ChunkReport, Config, Error, Frame, Invalid, Pair, Report, Result};
use gpu::{Device, DevicePtr, Grow, Slice, Stream};
use std::borrow::Cow;

/// The CUDA engine: the state between updates. The state of one call is in a [`Plan`].
pub(crate) struct Engine {
    pub(crate) config: Config,
    pub(crate) stream: Stream,
    pub(crate) reader: Reader,
    pub(crate) counters: Counters,
    pub(crate) sorting: Sorting,
    pub(crate) sweep: Sweep,
    pub(crate) grid: Grid,
    pub(crate) tree: Tree,
    pub(crate) resting: RestingSet,
    pub(crate) neighbours: Neighbours,
    /// The bound of `Auto`.
    pub(crate) bound: Bound,
    /// For one set of boxes, and for two.
    pub(crate) pair_orders: [PairOrder; 2],
    pub(crate) stages: Marks,
    /// The scene of the last update, and one to read the next into.
    pub(crate) scene: Scene,
    pub(crate) spare: Scene,
    pub(crate) has_last: bool,
    /// Whether the last update found everything unchanged, and what found its pairs.
    pub(crate) was_unchanged: bool,
    pub(crate) found_by: FoundBy,
    /// The pairs of the last update.
    pub(crate) list: Grow<u64>,
    /// The number of pairs of the last update.
    pub(crate) pairs: usize,
    /// The capacity for pairs that could not be raised ahead of need.
    pub(crate) refused_ahead: usize,
    /// The pairs of the next update as they are found, packed.
    pub(crate) packed: Grow<u64>,
    /// The pairs of the next update, in order.
    pub(crate) ordered: Grow<u64>,
    pub(crate) events: Events,
    pub(crate) spare_events: Events,
    /// The lists of the last update on the host, and memory for the next. They are empty unless
    /// `is_on_host`.
    pub(crate) host: [HostPairs; 3],
    pub(crate) spare_host: [HostPairs; 3],
    pub(crate) is_on_host: bool,
    queries: Queries,
}

/// Indices in [`Engine::host`].
const PAIRS: usize = 0;
const STARTED: usize = 1;
const ENDED: usize = 2;

impl Engine {
    /// Creates an engine on the device of the configuration.
    ///
    /// # Errors
    ///
    /// [`Error::NoCuda`] where the device does not answer, [`Error::Gpu`] where it cannot load the
    /// kernels or lacks memory.
    pub(crate) fn new(config: Config) -> Result<Self> {
        let missing = |error: gpu::Error| Error::NoCuda {
            looked_for: error.to_string(),
        };
        let device = config.device.map_or_else(Device::first, Device::open);
        let device = device.map_err(missing)?;
        let stream = Stream::new(&device).map_err(missing)?;
        Self::on(stream, config)
    }

    /// Creates an engine that works on a stream.
    ///
    /// # Errors
    ///
    /// [`Error::Gpu`] if the device cannot load the kernels or lacks memory.
    pub(crate) fn on(stream: Stream, config: Config) -> Result<Self> {
        let device = stream.device().clone();
        let min_resting = config.min_resting.unwrap_or(MIN_RESTING);
        let mut packed = Grow::default();
        let wished = config.initial_pair_capacity.unwrap_or(0);
        let allowed = config
            .pair_limit()
            .map_or(usize::MAX, |limit| limit as usize);
        packed.reserve_exact(&stream, wished.min(allowed))?;
        Ok(Self {
            reader: Reader::new(&device)?,
            counters: Counters::alternating(&stream)?,
            sorting: Sorting::new(&device, config.sort)?,
            sweep: Sweep::new(&device, config.strategy)?,
            grid: Grid::new(&device, config.min_resting)?,
            tree: Tree::new(&device)?,
            resting: RestingSet::new(&stream, min_resting)?,
            neighbours: Neighbours::new(&device, config.min_resting)?,
            bound: Bound::default(),
            pair_orders: [PairOrder::new(&device)?, PairOrder::new(&device)?],
            stages: Marks::new(config.timings),
            scene: Scene::default(),
            spare: Scene::default(),
            has_last: false,
            was_unchanged: false,
            found_by: FoundBy::new(&Plan::new(&config), 0),
            list: Grow::default(),
            pairs: 0,
            refused_ahead: 0,
            packed,
            ordered: Grow::default(),
            events: Events::new(&device)?,
            spare_events: Events::new(&device)?,
            host: Default::default(),
            spare_host: Default::default(),
            is_on_host: true,
            queries: Queries::default(),
            stream,
            config,
        })
    }

    /// Returns the new list, of at most `n` pairs, and the last, to compare them.
    pub(crate) fn lists(&self, n: usize) -> [List; 2] {
        let state = self.counters.ptr();
        let new = List::new(self.ordered.device_ptr(), n, counter!(state, pairs));
        let last = List::new(self.list.device_ptr(), self.pairs, DevicePtr::NULL);
        [new, last]
    }

    /// Empties the events of the last update.
    pub(crate) fn clear_events(&mut self) {
        self.events.clear();
        self.host[STARTED].clear();
        self.host[ENDED].clear();
    }

    fn on_host(&self, list: usize) -> &[Pair] {
        assert_downloaded(self.is_on_host);
        &self.host[list]
    }

    pub(crate) fn device_pairs(&self) -> Result<Slice<'_, Pair>> {
        Ok(self.list.part(self.pairs)?.cast()?)
    }

    pub(crate) fn device_events(&self) -> Result<[Slice<'_, Pair>; 2]> {
        Ok([self.events.started()?, self.events.ended()?])
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Has the next frame cut the space again, and choose anew how to put pairs in order.
    pub(crate) fn drop_plan(&mut self) {
        self.grid.drop_plan();
        self.pair_orders.iter_mut().for_each(PairOrder::forget);
    }

    /// Drops the marks of a call that reports no times, so that the next update does not count
    /// them.
    pub(crate) fn drop_marks(&mut self) {
        // A device that has failed reports it at the next call too.
        let _ = self.stages.timings(&self.stream, false);
    }

    /// Returns the invalid boxes of the first set, or of the second, or an error unless these are
    /// skipped.
    pub(crate) fn check_invalid(&self, sets: &[Source], state: &State) -> Result<Option<Invalid>> {
        let counted = [
            (state.invalid, state.first_invalid),
            (state.invalid_b, state.first_invalid_b),
        ];
        let mut first = None;
        for (set, (count, first_code)) in sets.iter().zip(counted) {
            let invalid = set.invalid(&self.stream, count, first_code)?;
            Invalid::check(invalid, self.config.on_invalid)?;
            first = first.or(invalid);
        }
        Ok(first)
    }
}

impl crate::engine::Engine for Engine {
    fn config(&self) -> &Config {
        &self.config
    }

    fn backend(&self) -> Backend {
        Backend::Cuda
    }

    fn update(&mut self, frame: &Frame) -> Result<Report> {
        self.update_from(frame.into())
    }

    fn subdivision(&self) -> Option<Subdivision> {
        let in_cells = self.found_by.finder == Finder::Cells;
        in_cells.then(|| self.grid.subdivision())?
    }

    fn pairs(&self) -> &[Pair] {
        self.on_host(PAIRS)
    }

    fn has_list(&self) -> bool {
        self.neighbours.in_use()
    }

    fn started(&self) -> &[Pair] {
        self.on_host(STARTED)
    }

    fn ended(&self) -> &[Pair] {
        self.on_host(ENDED)
    }

    /// Copies the lists of the last update to the host, unless they are there. After an error none
    /// are there.
    fn download(&mut self) -> Result<()> {
        if self.is_on_host {
            return Ok(());
        }
        let lists = [
            self.list.part(self.pairs)?.cast()?,
            self.events.started()?,
            self.events.ended()?,
        ];
        let mut copies = self.host.iter_mut().zip(lists);
        let downloaded = copies.try_for_each(|(copy, list)| copy.download(&self.stream, list));
        if downloaded.is_err() {
            self.host.iter_mut().for_each(HostPairs::clear);
        }
        self.is_on_host = downloaded.is_ok();
        downloaded
    }

    /// Downloads the boxes.
    fn boxes(&self) -> Result<Cow<'_, [Aabb]>> {
        if !self.has_last {
            return Ok(Cow::default());
        }
        Ok(copied(&self.stream, self.scene.given()?)?.into())
    }

    /// Downloads the filters and worlds.
    fn labels(&self) -> Result<Labels<'_>> {
        if !self.has_last {
            return Ok(Labels::default());
        }
        let (n, stream) = (self.scene.n, &self.stream);
        Ok(Labels {
            filters: copied_some(stream, &self.scene.filters, n)?.into(),
            worlds: copied_some(stream, &self.scene.worlds, n)?.into(),
        })
    }

    /// Looks at all boxes on the device. Returns none where it finds too many, or memory for them
    /// is refused.
    fn near_boxes(&self, question: Question) -> Result<Option<Vec<NearBox>>> {
        if !self.has_last {
            return Ok(Some(Vec::new()));
        }
        let boxes = self.scene.given()?;
        match self.queries.ask(&self.stream, boxes, question) {
            Err(error) if error.is_out_of_device_memory() => Ok(None),
            found => found,
        }
    }

    /// Returns the last update as far as it is on the host, or can still be downloaded from a
    /// device that has failed.
    fn last(&mut self) -> Result<Last> {
        // Lists that nobody has read are lost with the device, as `BroadPhase::fallback` says: they
        // are empty then.
        self.download().ok();
        // The boxes, for queries and margins, are lost likewise; without their labels they must not
        // be met.
        let found = self
            .boxes()
            .and_then(|boxes| Ok((into_owned(boxes)?, self.labels()?.into_owned()?)));
        let (given, labels) = found.unwrap_or_default();
        let stored = match self.scene.boxes() {
            Ok(boxes) if self.config.margin > 0.0 && !given.is_empty() => self.stream.to_vec(boxes),
            _ => Ok(Vec::new()),
        };
        Ok(Last {
            pairs: concat(&[&*self.host[PAIRS]])?,
            started: concat(&[&*self.host[STARTED]])?,
            ended: concat(&[&*self.host[ENDED]])?,
            given,
            labels,
            stored: stored.unwrap_or_default(),
        })
    }

    fn clear(&mut self) {
        self.has_last = false;
        self.resting.release();
        self.neighbours.release();
        self.was_unchanged = false;
        self.pairs = 0;
        self.events.clear();
        self.host.iter_mut().for_each(HostPairs::clear);
        self.is_on_host = true;
    }

    fn overlaps_between(&mut self, a: &Frame, b: &Frame) -> Result<Vec<Pair>> {
        let stream = self.stream.clone();
        let found = self.between([a.into(), b.into()])?;
        let mut pairs = zeros(found.len())?;
        stream.download(found, &mut pairs)?;
        Ok(pairs)
    }

    fn for_each_pair_chunk(
        &mut self,
        frame: &Frame,
        chunk: usize,
        f: &mut dyn FnMut(&[Pair]),
    ) -> Result<ChunkReport> {
        self.deliver_chunks(frame, chunk, f)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Host memory must outlive the copies to and from it. A device that has failed makes none.
        let _ = self.stream.synchronize();
    }
}
