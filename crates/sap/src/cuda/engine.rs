//! The engine: what is kept between updates, and the calls.

use crate::cuda::abi::{List, State};
use crate::cuda::events::Difference;
use crate::cuda::find::bound::{Bound, Finder};
use crate::cuda::find::grid::Grid;
use crate::cuda::find::plan::{FoundBy, Plan};
use crate::cuda::find::sweep::Sweep;
use crate::cuda::find::tree::Tree;
use crate::cuda::input::scene::Scene;
use crate::cuda::input::source::Source;
use crate::cuda::memory::{Grow, HostPairs, Uploader};
use crate::cuda::query::{Queries, Question};
use crate::cuda::resting::{self, RestingSet};
use crate::cuda::stages::Marks;
use crate::last::Last;
use crate::query::Candidate;
use crate::room::concat;
use crate::{Aabb, Config, Error, Invalid, OnInvalid, Pair, Result, Subdivision};
use gpu::{Device, Slice, Stream};

/// The CUDA engine: everything that is kept between updates. What belongs to one call is in a [`Plan`].
pub(crate) struct Engine {
    pub(crate) stream: Stream,
    pub(crate) sweep: Sweep,
    pub(crate) grid: Grid,
    pub(crate) tree: Tree,
    pub(crate) resting: RestingSet,
    /// What `Auto` knows of its work.
    pub(crate) bound: Bound,
    pub(crate) uploader: Uploader,
    pub(crate) stages: Marks,
    /// The scene of the last update, and one to read the next into.
    pub(crate) scene: Scene,
    pub(crate) spare: Scene,
    pub(crate) has_last: bool,
    /// Whether the last update found everything unchanged, and what has found its pairs.
    pub(crate) rested: bool,
    pub(crate) found_by: FoundBy,
    /// Pairs of the last update; those of the next as they are found, packed, and in order.
    pub(crate) list: Grow<u64>,
    pub(crate) pairs: usize,
    pub(crate) packed: Grow<u64>,
    pub(crate) ordered: Grow<u64>,
    pub(crate) events: [Difference; 2],
    pub(crate) spare_events: [Difference; 2],
    /// The lists of the last update on the host, by what they are of, and memory for the next; empty unless `is_on_host`.
    pub(crate) host: [HostPairs; 3],
    pub(crate) spare_host: [HostPairs; 3],
    pub(crate) is_on_host: bool,
    queries: Queries,
}

/// Places in [`Engine::host`].
const PAIRS: usize = 0;
const STARTED: usize = 1;
const ENDED: usize = 2;

impl Engine {
    /// An engine on the first device.
    ///
    /// # Errors
    ///
    /// [`Error::NoCuda`] where no device answers, [`Error::Gpu`] where it cannot load the kernels or lacks memory.
    pub(crate) fn new(config: &Config) -> Result<Self> {
        let missing = |error: gpu::Error| Error::NoCuda {
            looked_for: error.to_string(),
        };
        let device = Device::first().map_err(missing)?;
        let stream = Stream::new(&device).map_err(missing)?;
        let sweep = Sweep::new(&stream, config)?;
        let grid = Grid::new(&device)?;
        let fewest = config.hold_from.unwrap_or(resting::FEWEST);
        let mut packed = Grow::default();
        let wished = config.initial_pair_capacity.unwrap_or(0);
        let allowed = config.pair_memory.map_or(usize::MAX, |bytes| {
            (bytes / size_of::<Pair>() as u64) as usize
        });
        packed.reserve_exact(&stream, wished.min(allowed))?;
        Ok(Self {
            resting: RestingSet::new(&stream, fewest)?,
            stream,
            sweep,
            grid,
            tree: Tree::new(&device)?,
            bound: Bound::default(),
            uploader: Uploader::default(),
            stages: Marks::new(),
            scene: Scene::default(),
            spare: Scene::default(),
            has_last: false,
            rested: false,
            found_by: FoundBy::new(&Plan::new(config), 0),
            list: Grow::default(),
            pairs: 0,
            packed,
            ordered: Grow::default(),
            events: Default::default(),
            spare_events: Default::default(),
            host: Default::default(),
            spare_host: Default::default(),
            is_on_host: true,
            queries: Queries::default(),
        })
    }

    /// The new list, of at most `n` pairs, and the last, each to be compared with the other.
    pub(crate) fn lists(&self, n: usize) -> [List; 2] {
        let new = List {
            pairs: self.ordered.ptr(),
            n: n as u64,
            count: self.sweep.state.ptr(),
        };
        let last = List {
            pairs: self.list.ptr(),
            n: self.pairs as u64,
            count: 0,
        };
        [new, last]
    }

    /// Forgets what the last update has started and ended.
    pub(crate) fn clear_events(&mut self) {
        self.events.iter_mut().for_each(Difference::clear);
        self.host[STARTED].clear();
        self.host[ENDED].clear();
    }

    pub(crate) fn subdivision(&self) -> Option<Subdivision> {
        let in_cells = self.found_by.finder == Finder::Cells;
        in_cells.then(|| self.grid.subdivision())?
    }

    pub(crate) fn pairs(&self) -> &[Pair] {
        self.on_host(PAIRS)
    }

    pub(crate) fn started(&self) -> &[Pair] {
        self.on_host(STARTED)
    }

    pub(crate) fn ended(&self) -> &[Pair] {
        self.on_host(ENDED)
    }

    fn on_host(&self, list: usize) -> &[Pair] {
        assert!(
            self.is_on_host,
            "the lists are on the device: call `download` before they are read"
        );
        &self.host[list]
    }

    /// Copies the lists of the last update to the host, unless they are there. After an error none is.
    pub(crate) fn download(&mut self) -> Result<()> {
        if self.is_on_host {
            return Ok(());
        }
        let [started, ended] = &self.events;
        let lists = [
            self.list.part(self.pairs)?.cast()?,
            started.pairs()?,
            ended.pairs()?,
        ];
        let mut copies = self.host.iter_mut().zip(lists);
        let downloaded = copies.try_for_each(|(copy, list)| copy.download(&self.stream, list));
        if downloaded.is_err() {
            self.host.iter_mut().for_each(HostPairs::clear);
        }
        self.is_on_host = downloaded.is_ok();
        downloaded
    }

    /// The boxes of the last update as they were given: swept ones merged, `f64` ones rounded, bad ones empty. Waits.
    pub(crate) fn boxes(&self) -> Result<Vec<Aabb>> {
        if !self.has_last {
            return Ok(Vec::new());
        }
        Ok(self.stream.to_vec(self.scene.given()?)?)
    }

    /// At least the boxes of [`Engine::boxes`] that are asked for; none where they are too many to look for on the device, or there
    /// is no memory for it.
    pub(crate) fn candidates(&mut self, question: Question) -> Result<Option<Vec<Candidate>>> {
        if !self.has_last {
            return Ok(Some(Vec::new()));
        }
        let boxes = self.scene.given()?;
        match self.queries.ask(&self.stream, boxes, question) {
            Err(error) if error.is_out_of_device_memory() => Ok(None),
            found => found,
        }
    }

    /// What there is of the last update on the host, and what can still be had of a device that has failed.
    pub(crate) fn last(&mut self, config: &Config) -> Result<Last> {
        // Lists that nobody has read are lost with the device, as `BroadPhase::fallback` says: they are empty then.
        self.download().ok();
        // So are the boxes, which are for queries and margins.
        let given = self.boxes().unwrap_or_default();
        let stored = match self.scene.boxes() {
            Ok(boxes) if config.margin > 0.0 && !given.is_empty() => self.stream.to_vec(boxes),
            _ => Ok(Vec::new()),
        };
        Ok(Last {
            pairs: concat(&[&*self.host[PAIRS]])?,
            started: concat(&[&*self.host[STARTED]])?,
            ended: concat(&[&*self.host[ENDED]])?,
            given,
            stored: stored.unwrap_or_default(),
        })
    }

    pub(crate) fn device_pairs(&self) -> Result<Slice<'_, Pair>> {
        Ok(self.list.part(self.pairs)?.cast()?)
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Has the space cut anew for the next frame.
    pub(crate) fn forget_plan(&mut self) {
        self.grid.forget();
    }

    pub(crate) fn clear(&mut self) {
        self.has_last = false;
        self.resting.release();
        self.rested = false;
        self.pairs = 0;
        self.events.iter_mut().for_each(Difference::clear);
        self.host.iter_mut().for_each(HostPairs::clear);
        self.is_on_host = true;
    }

    /// Drops the marks of a call that takes no times, lest the next update counts them.
    pub(crate) fn forget_stages(&mut self) {
        // A device that has failed says so again at the next call.
        let _ = self.stages.timings(&self.stream);
    }

    /// The bad boxes of the first set, or of the second; an error where they may not be.
    pub(crate) fn refuse_invalid(
        &self,
        config: &Config,
        sets: &[Source],
        state: &State,
    ) -> Result<Option<Invalid>> {
        let counted = [
            (state.invalid, state.first_invalid),
            (state.invalid_b, state.first_invalid_b),
        ];
        let mut first = None;
        for (set, (count, first_code)) in sets.iter().zip(counted) {
            let invalid = set.invalid(&self.stream, count, first_code)?;
            refuse(config, invalid)?;
            first = first.or(invalid);
        }
        Ok(first)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Host memory must not go before the copies to and from it are done. A device that has failed makes none.
        let _ = self.stream.synchronize();
    }
}

/// An error for bad boxes, unless they are skipped.
pub(crate) fn refuse(config: &Config, invalid: Option<Invalid>) -> Result<()> {
    match (config.on_invalid, invalid) {
        (
            OnInvalid::Error,
            Some(Invalid {
                first: index,
                reason,
                ..
            }),
        ) => Err(Error::InvalidAabb { index, reason }),
        _ => Ok(()),
    }
}
