//! The engine: what is kept between updates, and the calls.

use super::events::Difference;
use super::grid::{Asked, Grid};
use super::held::Held;
use super::memory::{Grow, HostPairs, Uploader, zeroed_pairs};
use super::params::{GRID_WORDS, List, SWEEP_WORDS, State};
use super::scene::{Scene, Source, Tools, address};
use super::sweep::{Sweep, index_bits, packed};
use crate::{
    Aabb, Backend, Choice, Config, Error, Frame, Invalid, OnInvalid, Pair, Report, Result,
    Strategy, Timings,
};
use gpu::{Device, Slice, SliceMut, Stages, Stream};
use gpusort::Algorithm;
use std::ops::Range;
use std::sync::OnceLock;

/// See the module.
pub(crate) struct Engine {
    pub(super) stream: Stream,
    pub(super) sweep: Sweep,
    grid: Grid,
    held: Held,
    /// Whether the frame at hand leaves those out.
    apart: bool,
    /// What finds the pairs of the frame.
    strategy: Strategy,
    /// Why, where it was chosen.
    choice: Option<Choice>,
    /// Whether they are counted by row.
    by_rows: bool,
    pub(super) uploader: Uploader,
    stages: Stages,
    /// The scene of the last update, and one to read the next into.
    scene: Scene,
    pub(super) spare: Scene,
    has_last: bool,
    /// Whether the last update found everything as it was, and its sweep axis.
    rested: bool,
    axis: usize,
    /// Pairs of the last update; room for those of the next as the sweep finds them, packed, and in order.
    list: Grow<u64>,
    pairs: usize,
    pub(super) found: Grow<u64>,
    pub(super) room: Grow<u64>,
    events: [Difference; 2],
    spare_events: [Difference; 2],
    /// Copies on the host, by what they are of; downloaded when first asked for, or by an update from the host.
    host: [OnceLock<HostPairs>; 3],
    spare_host: [HostPairs; 3],
    given: OnceLock<Vec<Aabb>>,
}

/// `Auto` takes the sweep where it is expected to take less than this part of what cells take: where boxes crowd, the sample
/// tells less of cells than of intervals.
const SURE: f64 = 0.5;

/// The name of the time in which the device waits for the host.
const HOST: &str = "host";

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
        let held = Held::new(&stream, config.hold_from.unwrap_or(super::held::FEWEST))?;
        let mut found = Grow::default();
        let wished = config.initial_pair_capacity.unwrap_or(0);
        let allowed = config.pair_memory.map_or(usize::MAX, |bytes| {
            (bytes / size_of::<Pair>() as u64) as usize
        });
        found.reserve_exact(&stream, wished.min(allowed))?;
        Ok(Self {
            stream,
            sweep,
            grid,
            held,
            apart: false,
            strategy: config.strategy,
            choice: None,
            by_rows: false,
            uploader: Uploader::default(),
            stages: Stages::new(),
            scene: Scene::default(),
            spare: Scene::default(),
            has_last: false,
            rested: false,
            axis: 0,
            list: Grow::default(),
            pairs: 0,
            found,
            room: Grow::default(),
            events: Default::default(),
            spare_events: Default::default(),
            host: Default::default(),
            spare_host: Default::default(),
            given: OnceLock::new(),
        })
    }

    pub(crate) fn update(&mut self, config: &Config, frame: &Frame) -> Result<Report> {
        self.update_from(config, Source::Host(frame))
    }

    pub(crate) fn update_device(&mut self, config: &Config, boxes: Slice<Aabb>) -> Result<Report> {
        let limit = u64::from(u32::MAX);
        if boxes.len() as u64 > limit {
            return Err(Error::TooManyBoxes {
                boxes: boxes.len() as u64,
                limit,
            });
        }
        self.update_from(config, Source::Device(boxes))
    }

    fn update_from(&mut self, config: &Config, source: Source) -> Result<Report> {
        let result = self.find(config, source);
        if result.is_err() {
            self.forget_stages();
        }
        result
    }

    fn find(&mut self, config: &Config, source: Source) -> Result<Report> {
        let stream = self.stream.clone();
        let from_host = matches!(source, Source::Host(_));
        let last = self.has_last.then_some(&self.scene);
        let n = source.len();
        read(
            &mut self.spare,
            &mut self.sweep,
            &mut self.uploader,
            &mut self.stages,
            &[source],
            config.margin,
            last,
            self.held.is_on(),
        )?;
        let may_rest = self.has_last && self.spare.like(&self.scene);
        if !may_rest {
            self.held.release();
        }
        self.apart = self.held.is_on();
        // Nothing moved in the last frame: likely it is so again, which is worth a wait.
        if may_rest && self.rested {
            let state = self.sweep.read()?;
            if state.changed == 0 {
                let invalid = source.invalid(&stream, state.invalid, state.first_invalid)?;
                return self.rest(config, n, invalid, from_host);
            }
            if self.apart && state.still_changed != 0 {
                return self.find_as_one(config, source);
            }
        }
        if self.apart {
            self.held.gather_moving(&stream, &self.spare)?;
        }
        self.arrange(config, may_rest)?;

        let (state, regrown) = self.find_pairs(config, 0..n as u64, config.events)?;
        if self.apart && state.still_changed != 0 {
            return self.find_as_one(config, source);
        }
        let invalid = source.invalid(&stream, state.invalid, state.first_invalid)?;
        refuse(config, invalid)?;
        if may_rest && state.changed == 0 {
            return self.rest(config, n, invalid, from_host);
        }

        let (count, axis) = (state.pairs as usize, state.axis as usize);
        let counts = if config.events {
            [state.started, state.ended]
        } else {
            [0; 2]
        };
        let lists = self.lists(count);
        for ((difference, count), list) in self.spare_events.iter_mut().zip(counts).zip(lists) {
            // SAFETY: the list is that which the differences were found in.
            unsafe {
                difference
                    .complete(&stream, &self.sweep.kernels, list, count as usize)
                    .map_err(|error| out_of_memory(config, state.pairs, error))?;
            }
        }
        let [started, ended] = &self.spare_events;
        let mut report = Report {
            pairs: state.pairs,
            started: started.len() as u64,
            ended: ended.len() as u64,
            tests: state.tests + state.between,
            resting: self.held.len() as u64,
            regrown,
            ..self.report(n, invalid, axis)
        };

        self.stages.mark(&stream, "download")?;
        if from_host {
            let [pairs, of_started, of_ended] = &mut self.spare_host;
            pairs.download(&stream, self.room.part(count)?.cast()?)?;
            of_started.download(&stream, started.pairs()?)?;
            of_ended.download(&stream, ended.pairs()?)?;
        }
        report.timings = timings(&self.stages.finish(&stream)?);

        // Everything is there: the new takes the place of the last.
        std::mem::swap(&mut self.scene, &mut self.spare);
        std::mem::swap(&mut self.list, &mut self.room);
        std::mem::swap(&mut self.events, &mut self.spare_events);
        self.pairs = count;
        self.has_last = true;
        self.rested = false;
        self.axis = axis;
        self.keep_host(&[PAIRS, STARTED, ENDED], from_host);
        self.given.take();
        self.hold(config, may_rest && state.still_changed == 0);
        Ok(report)
    }

    /// Finds the pairs again, of all boxes: those held apart were not as they had been.
    fn find_as_one(&mut self, config: &Config, source: Source) -> Result<Report> {
        self.held.release();
        self.find(config, source)
    }

    /// Holds static and sleeping boxes of the frame that is done apart, if they `stayed` as they were for long enough.
    fn hold(&mut self, config: &Config, stayed: bool) {
        if !self.held.is_time(stayed) {
            return;
        }
        let accept = self.sweep.accept(&self.scene, 0..self.scene.n as u64);
        let bits = index_bits(&self.scene);
        let limit = self.pair_limit(config).unwrap_or(0);
        // Where there is no memory for it frames are found as a whole, as before.
        // SAFETY: the addresses are those of this scene.
        let _ = unsafe {
            self.held.take(
                &self.stream,
                &self.sweep.kernels,
                &self.scene,
                accept,
                bits,
                limit,
            )
        };
    }

    /// The boxes of the frame at hand that are sorted and swept.
    const fn swept(&self) -> &Scene {
        if self.apart {
            self.held.moving()
        } else {
            &self.spare
        }
    }

    fn report(&self, n: usize, invalid: Option<Invalid>, axis: usize) -> Report {
        Report {
            n,
            invalid,
            axis,
            choice: self.choice,
            ..Report::none(Backend::Cuda, self.strategy)
        }
    }

    /// The new list, of at most `n` pairs, and the last, each to be compared with the other.
    fn lists(&self, n: usize) -> [List; 2] {
        let new = List {
            pairs: self.room.ptr(),
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

    /// Ends an update that found everything as it was.
    fn rest(
        &mut self,
        config: &Config,
        n: usize,
        invalid: Option<Invalid>,
        from_host: bool,
    ) -> Result<Report> {
        refuse(config, invalid)?;
        let mut report = self.report(n, invalid, self.axis);
        report.pairs = self.pairs as u64;
        report.resting = self.held.len() as u64;
        report.timings = timings(&self.stages.finish(&self.stream)?);
        self.rested = true;
        self.events.iter_mut().for_each(Difference::clear);
        self.spare_host.iter_mut().for_each(HostPairs::clear);
        self.keep_host(&[STARTED, ENDED], from_host);
        // Boxes that moved within their margin are not where they were.
        std::mem::swap(&mut self.scene, &mut self.spare);
        self.given.take();
        Ok(report)
    }

    /// The lists downloaded take the place of the last; without, those are forgotten. Their memory is kept.
    fn keep_host(&mut self, lists: &[usize], downloaded: bool) {
        for &list in lists {
            let last = self.host[list].take();
            if downloaded {
                let new = std::mem::replace(&mut self.spare_host[list], last.unwrap_or_default());
                // The cell was emptied above.
                let _ = self.host[list].set(new);
            } else if let Some(last) = last {
                self.spare_host[list] = last;
            }
        }
    }

    /// Puts the boxes of the frame at hand in order for the sweep.
    pub(super) fn arrange(&mut self, config: &Config, may_rest: bool) -> Result<()> {
        self.stages.mark(&self.stream, "keys")?;
        self.strategy = config.strategy;
        self.choice = None;
        let scene = if self.apart {
            self.held.moving()
        } else {
            &self.spare
        };
        let ids = if self.apart {
            self.held.moving_ids()
        } else {
            0
        };
        if matches!(config.strategy, Strategy::Auto | Strategy::Subdivided) {
            self.grid.plan(&self.stream, scene)?;
        }
        if config.strategy == Strategy::Auto {
            self.choice = self.grid.choice();
            let sweeps = self.choice.is_some_and(|choice| {
                choice
                    .subdivided_ms
                    .is_none_or(|ms| choice.sweep_ms < SURE * ms)
            });
            self.strategy = if sweeps {
                Strategy::Sweep
            } else {
                Strategy::Subdivided
            };
        }
        if self.strategy == Strategy::Subdivided {
            self.stages.mark(&self.stream, "sort")?;
            return self
                .grid
                .arrange(&self.stream, scene, ids, self.sweep.state.ptr());
        }
        self.sweep.choose_axis(scene)?;
        self.sweep.make_keys(scene)?;
        self.stages.mark(&self.stream, "sort")?;
        self.sweep.sort(scene, may_rest)?;
        if self.apart {
            // SAFETY: the boxes that were sorted have a place each.
            unsafe { self.held.number(&self.stream, self.sweep.index())? };
        }
        Ok(())
    }

    /// What is asked of a grid for the frame at hand.
    fn asked(&self, a: Range<u64>) -> Asked {
        Asked {
            accept: self.sweep.accept(&self.spare, a),
            worlds: address(&self.spare.worlds),
            state: self.sweep.state.ptr(),
        }
    }

    /// Finds the pairs of the frame arranged with `a` in a range, packed, in no order, as many as there is room for; counts
    /// them all.
    fn sweep(&mut self, config: &Config, a: Range<u64>) -> Result<()> {
        let capacity = self.found.capacity();
        let rows = match config.sort {
            Algorithm::Auto => self
                .sweep
                .rows
                .begin(&self.stream, self.spare.n, capacity)?,
            _ => None,
        };
        self.by_rows = rows.is_some();
        let keys = packed(&self.spare, &self.found.part_mut(capacity)?, rows);
        let in_cells = self.strategy == Strategy::Subdivided;
        self.sweep
            .zero(if in_cells { GRID_WORDS } else { SWEEP_WORDS })?;
        let asked = self.asked(a.clone());
        // SAFETY: the addresses are those of this frame and this engine.
        unsafe {
            if self.apart {
                self.held.seed(&self.stream, keys, asked.state)?;
                self.held.find(&self.stream, asked, keys)?;
            }
            if in_cells {
                return self.grid.find(&self.stream, self.swept().n, asked, keys);
            }
        }
        self.sweep.find(&self.spare, a, keys)
    }

    /// Counts the pairs of the frame arranged by `a`.
    pub(super) fn count_by_a(&mut self, mut by_a: SliceMut<u32>) -> Result<()> {
        if self.strategy != Strategy::Subdivided {
            return self.sweep.count_by_a(&self.spare, by_a);
        }
        self.sweep.zero(GRID_WORDS)?;
        self.stream.fill_u32(by_a.reborrow(), 0)?;
        let n = self.spare.n;
        let asked = self.asked(0..n as u64);
        // SAFETY: as in `sweep`.
        unsafe { self.grid.count_by_a(&self.stream, n, asked, by_a) }
    }

    /// Finds the pairs of the frame at hand with `a` in a range and puts them in order in `room`, which grows until all fit;
    /// with `events` they are compared with the last list too. Waits once for each time. Gives the counters, and how often
    /// it grew.
    pub(super) fn find_pairs(
        &mut self,
        config: &Config,
        a: Range<u64>,
        events: bool,
    ) -> Result<(State, u32)> {
        if self.found.capacity() == 0 && config.initial_pair_capacity.is_none() {
            // At first two pairs a box. No room yet is no error: the sweep tells how much is needed.
            let limit = usize::try_from(self.pair_limit(config)?).unwrap_or(usize::MAX);
            let wished = 2 * self.spare.n + 1024;
            let _ = self.found.reserve_exact(&self.stream, wished.min(limit));
        }
        let mut regrown = 0;
        loop {
            self.stages.mark(&self.stream, "sweep")?;
            self.sweep(config, a.clone())?;
            // Should there be no room to order them, the sweep still tells how many there are.
            let ordered = self.order_and_compare(events);
            self.stages.mark(&self.stream, HOST)?;
            let state = self.sweep.read()?;
            let short = !self.by_rows || self.sweep.rows.are_short(&state);
            if self.strategy == Strategy::Subdivided {
                self.grid.note(self.swept().n, &state);
            }
            if self.apart && state.still_changed != 0 {
                return Ok((state, regrown));
            }
            if state.pairs > self.found.capacity() as u64 {
                let limit = self.pair_limit(config)?;
                self.make_room(config, state.pairs, limit)?;
                regrown += 1;
            } else if short {
                ordered.map_err(|error| out_of_memory(config, state.pairs, error))?;
                return Ok((state, regrown));
            }
        }
    }

    /// Puts the pairs found in order, and compares them with the last list.
    fn order_and_compare(&mut self, events: bool) -> Result<()> {
        let capacity = self.found.capacity();
        self.stages.mark(&self.stream, "compact")?;
        self.room.reserve_exact(&self.stream, capacity)?;
        let (found, room) = (self.found.part(capacity)?, self.room.part_mut(capacity)?);
        self.sweep
            .put_in_order(&self.spare, found, room, self.by_rows)?;

        self.stages.mark(&self.stream, "events")?;
        self.spare_events.iter_mut().for_each(Difference::clear);
        if events {
            let [new, last] = self.lists(capacity);
            let [of_started, of_ended] = self.sweep.event_counts();
            let [started, ended] = &mut self.spare_events;
            let (stream, kernels) = (&self.stream, &self.sweep.kernels);
            // SAFETY: the lists and numbers are this engine's.
            unsafe {
                started.find(stream, kernels, new, last, of_started)?;
                ended.find(stream, kernels, last, new, of_ended)?;
            }
        }
        Ok(())
    }

    /// Makes room for `count` pairs and an eighth more.
    pub(super) fn make_room(&mut self, config: &Config, count: u64, limit: u64) -> Result<()> {
        let too_many = Error::TooManyPairs { count, limit };
        let exact = usize::try_from(count)
            .ok()
            .filter(|_| count <= limit)
            .ok_or(too_many)?;
        let generous = (exact + exact / 8).min(usize::try_from(limit).unwrap_or(usize::MAX));
        let grown = self.found.reserve_exact(&self.stream, generous);
        grown
            .or_else(|_| self.found.reserve_exact(&self.stream, exact))
            .map_err(|error| out_of_memory(config, count, error))
    }

    /// The most pairs that may be kept: as configured, else what half of the memory holds that is free or taken for pairs.
    pub(super) fn pair_limit(&self, config: &Config) -> Result<u64> {
        match config.pair_memory {
            Some(bytes) => Ok(bytes / size_of::<Pair>() as u64),
            None => {
                let lists = self.list.capacity() + self.room.capacity() + self.found.capacity();
                let held = (lists * size_of::<Pair>()) as u64 + self.sweep.scratch_bytes();
                let (free, _) = self.stream.device().memory()?;
                Ok((free + held) / 2 / bytes_a_pair(config))
            }
        }
    }

    pub(crate) fn pairs(&self) -> &[Pair] {
        self.copy(PAIRS, || self.device_pairs())
    }

    pub(crate) fn started(&self) -> &[Pair] {
        self.copy(STARTED, || self.events[0].pairs())
    }

    pub(crate) fn ended(&self) -> &[Pair] {
        self.copy(ENDED, || self.events[1].pairs())
    }

    /// The host's copy of a list. Empty where the device has failed since the update.
    fn copy<'a>(
        &'a self,
        list: usize,
        device: impl FnOnce() -> Result<Slice<'a, Pair>>,
    ) -> &'a [Pair] {
        self.host[list].get_or_init(|| {
            let mut copy = HostPairs::default();
            match device().and_then(|pairs| copy.download(&self.stream, pairs)) {
                Ok(()) => copy,
                Err(_) => HostPairs::default(),
            }
        })
    }

    /// The boxes of the last update as they were given: swept ones merged, `f64` ones rounded, bad ones empty. Empty where
    /// the device has failed since.
    pub(crate) fn boxes(&self) -> &[Aabb] {
        self.given.get_or_init(|| {
            let given = if self.has_last {
                self.scene.given()
            } else {
                return Vec::new();
            };
            given
                .and_then(|boxes| Ok(self.stream.to_vec(boxes)?))
                .unwrap_or_default()
        })
    }

    pub(crate) fn device_pairs(&self) -> Result<Slice<'_, Pair>> {
        Ok(self.list.part(self.pairs)?.cast()?)
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(crate) fn clear(&mut self) {
        self.has_last = false;
        self.held.release();
        self.rested = false;
        self.pairs = 0;
        self.events.iter_mut().for_each(Difference::clear);
        self.keep_host(&[PAIRS, STARTED, ENDED], false);
        self.given.take();
    }

    pub(crate) fn overlaps_between(
        &mut self,
        config: &Config,
        a: &Frame,
        b: &Frame,
    ) -> Result<Vec<Pair>> {
        let (boxes, limit) = (a.len() as u64 + b.len() as u64, u64::from(u32::MAX));
        if boxes > limit {
            return Err(Error::TooManyBoxes { boxes, limit });
        }
        let result = self.find_between(config, [Source::Host(a), Source::Host(b)]);
        self.forget_stages();
        result
    }

    fn find_between(&mut self, config: &Config, sets: [Source; 2]) -> Result<Vec<Pair>> {
        self.read_apart(&sets)?;
        self.arrange(config, false)?;
        let (state, _) = self.find_pairs(config, 0..sets[0].len() as u64, false)?;
        self.refuse_invalid(config, &sets, &state)?;
        let count = state.pairs as usize;
        let mut pairs = zeroed_pairs(count)?;
        self.stream
            .download(self.room.part(count)?.cast()?, &mut pairs)?;
        Ok(pairs)
    }

    /// Drops the marks of a call that takes no times, lest the next update counts them.
    pub(super) fn forget_stages(&mut self) {
        let _ = self.stages.finish(&self.stream);
    }

    /// Reads sets into the spare scene, without margin and apart from the last update.
    pub(super) fn read_apart(&mut self, sets: &[Source]) -> Result<()> {
        read(
            &mut self.spare,
            &mut self.sweep,
            &mut self.uploader,
            &mut self.stages,
            sets,
            0.0,
            None,
            false,
        )?;
        self.apart = false;
        Ok(())
    }

    /// The bad boxes of the first set, or of the second; an error where they may not be.
    pub(super) fn refuse_invalid(
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
        // Pinned memory must not go before the copies to and from it are done.
        let _ = self.stream.synchronize();
    }
}

/// Uploads sets into `scene`, checks and stores their boxes. `holds` tells whether boxes are held apart, which stand for frames like
/// the last.
fn read(
    scene: &mut Scene,
    sweep: &mut Sweep,
    uploader: &mut Uploader,
    stages: &mut Stages,
    sets: &[Source],
    margin: f32,
    last: Option<&Scene>,
    holds: bool,
) -> Result<()> {
    let stream = sweep.stream.clone();
    uploader.start(&stream)?;
    let from_host = sets.iter().any(|set| matches!(set, Source::Host(_)));
    if from_host {
        stages.mark(&stream, "upload")?;
    }
    let mut tools = Tools {
        stream: &stream,
        kernels: &sweep.kernels,
        uploader,
        state: &sweep.state,
    };
    scene.upload(&mut tools, sets, margin)?;
    stages.mark(&stream, "bounds")?;
    sweep.reset()?;
    let tools = Tools {
        stream: &stream,
        kernels: &sweep.kernels,
        uploader,
        state: &sweep.state,
    };
    let apart = holds && last.is_some_and(|last| scene.like(last));
    scene.prepare(&tools, sets, margin, last, apart)
}

/// Device bytes that a pair takes: as found, in the list, in that of the last update and while it is sorted; with events it may
/// be in those of both updates too.
const fn bytes_a_pair(config: &Config) -> u64 {
    let lists = if config.events { 6 } else { 4 };
    lists * size_of::<Pair>() as u64
}

/// Device memory that ran out for the sake of `count` pairs means that they are too many.
fn out_of_memory(config: &Config, count: u64, error: Error) -> Error {
    match error {
        Error::Gpu(gpu::Error::OutOfMemory { free, .. })
        | Error::Sort(gpusort::Error::Gpu(gpu::Error::OutOfMemory { free, .. })) => {
            Error::TooManyPairs {
                count,
                limit: (free / bytes_a_pair(config)).min(count.saturating_sub(1)),
            }
        }
        error => error,
    }
}

/// An error for bad boxes, unless they are skipped.
fn refuse(config: &Config, invalid: Option<Invalid>) -> Result<()> {
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

fn timings(stages: &[(&'static str, f32)]) -> Timings {
    let of = |name| {
        f64::from(
            stages
                .iter()
                .filter(|(stage, _)| *stage == name)
                .map(|(_, ms)| ms)
                .sum::<f32>(),
        )
    };
    Timings {
        upload: of("upload"),
        bounds: of("bounds"),
        keys: of("keys"),
        sort: of("sort"),
        sweep: of("sweep"),
        compact: of("compact"),
        events: of("events"),
        download: of("download"),
        total: stages
            .iter()
            .filter(|(stage, _)| *stage != HOST)
            .map(|(_, ms)| f64::from(*ms))
            .sum(),
    }
}
