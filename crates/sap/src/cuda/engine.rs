//! The engine: what is kept between updates, and the calls.

use super::events::{Difference, difference};
use super::memory::{Grow, HostPairs, Uploader, zeroed_pairs};
use super::params::State;
use super::scene::{Scene, Source, Tools};
use super::sweep::Sweep;
use crate::{
    Aabb, Backend, Config, Error, Frame, Invalid, OnInvalid, Pair, Report, Result, Strategy,
    Timings,
};
use gpu::{Device, Pinned, Slice, Stages, Stream};
use std::ops::Range;
use std::sync::OnceLock;

/// See the module.
pub(crate) struct Engine {
    pub(super) stream: Stream,
    pub(super) sweep: Sweep,
    pub(super) uploader: Uploader,
    stages: Stages,
    /// The scene of the last update, and one to read the next into.
    scene: Scene,
    pub(super) spare: Scene,
    has_last: bool,
    /// Pairs of the last update, and room for those of the next: packed by the sweep, then sorted and unpacked in place.
    list: Grow<u64>,
    pairs: usize,
    pub(super) room: Grow<u64>,
    events: [Difference; 2],
    spare_events: [Difference; 2],
    event_counts: [Pinned<u64>; 2],
    /// Copies on the host, by what they are of; downloaded when first asked for, or by an update from the host.
    host: [OnceLock<HostPairs>; 3],
    spare_host: [HostPairs; 3],
    given: OnceLock<Vec<Aabb>>,
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
        let mut room = Grow::default();
        let wished = config.initial_pair_capacity.unwrap_or(0);
        let allowed = config.pair_memory.map_or(usize::MAX, |bytes| {
            (bytes / size_of::<Pair>() as u64) as usize
        });
        room.reserve_exact(&stream, wished.min(allowed))?;
        Ok(Self {
            event_counts: [Pinned::new(&device, 1)?, Pinned::new(&device, 1)?],
            stream,
            sweep,
            uploader: Uploader::default(),
            stages: Stages::new(),
            scene: Scene::default(),
            spare: Scene::default(),
            has_last: false,
            list: Grow::default(),
            pairs: 0,
            room,
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
        self.stages.mark(&stream, "upload")?;
        let last = self.has_last.then_some(&self.scene);
        read(
            &mut self.spare,
            &mut self.sweep,
            &mut self.uploader,
            &mut self.stages,
            &[source],
            config.margin,
            last,
        )?;
        let may_rest = self.has_last && self.spare.like(&self.scene);
        self.arrange(may_rest)?;

        self.stages.mark(&stream, "sweep")?;
        let (state, regrown) = self.find_pairs(config, 0..source.len() as u64)?;
        let invalid = source.invalid(&stream, state.invalid, state.first_invalid)?;
        refuse(config, invalid)?;
        let mut report = Report {
            n: source.len(),
            invalid,
            axis: state.axis as usize,
            regrown,
            ..Report::none(Backend::Cuda, Strategy::Sweep)
        };
        let from_host = matches!(source, Source::Host(_));
        if may_rest && state.changed == 0 {
            return self.rest(report, from_host);
        }

        let count = state.pairs as usize;
        self.order_and_compare(config, count)
            .map_err(|error| out_of_memory(config, state.pairs, error))?;
        let [started, ended] = &self.spare_events;
        (report.pairs, report.started, report.ended) =
            (state.pairs, started.len() as u64, ended.len() as u64);
        report.tests = state.tests;

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
        self.keep_host(&[PAIRS, STARTED, ENDED], from_host);
        self.given.take();
        Ok(report)
    }

    /// Puts the `count` pairs in `room` in order, and compares them with the last list.
    fn order_and_compare(&mut self, config: &Config, count: usize) -> Result<()> {
        self.stages.mark(&self.stream, "compact")?;
        self.sweep
            .put_in_order(&self.spare, self.room.part_mut(count)?)?;

        self.stages.mark(&self.stream, "events")?;
        let [started, ended] = &mut self.spare_events;
        started.clear();
        ended.clear();
        if config.events {
            let (old, new) = (
                self.list.part(self.pairs)?.cast()?,
                self.room.part(count)?.cast()?,
            );
            difference(
                &self.stream,
                &self.sweep.kernels,
                [old, new],
                [started, ended],
                &mut self.event_counts,
            )?;
        }
        Ok(())
    }

    /// Ends an update that found everything as it was.
    fn rest(&mut self, mut report: Report, from_host: bool) -> Result<Report> {
        report.pairs = self.pairs as u64;
        report.timings = timings(&self.stages.finish(&self.stream)?);
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

    /// Keys, sort and work list of the spare scene.
    pub(super) fn arrange(&mut self, may_rest: bool) -> Result<()> {
        self.stages.mark(&self.stream, "keys")?;
        self.sweep.make_keys(&self.spare)?;
        self.stages.mark(&self.stream, "sort")?;
        self.sweep.sort(&self.spare, may_rest)
    }

    /// Sweeps the spare scene into `room`, which grows until all pairs fit. Gives the counters, and how often it grew.
    fn find_pairs(&mut self, config: &Config, a: Range<u64>) -> Result<(State, u32)> {
        // As much as the last list has, lest the two take turns in growing; at first two pairs a box.
        let at_first = self.room.capacity() == 0 && config.initial_pair_capacity.is_none();
        let wished = self
            .list
            .capacity()
            .max(if at_first { 2 * self.spare.n + 1024 } else { 0 });
        if self.room.capacity() < wished {
            // No room yet is no error: the sweep tells how much is needed.
            let limit = usize::try_from(self.pair_limit(config)?).unwrap_or(usize::MAX);
            let _ = self.room.reserve_exact(&self.stream, wished.min(limit));
        }
        let mut regrown = 0;
        loop {
            let capacity = self.room.capacity();
            self.sweep
                .find(&self.spare, a.clone(), self.room.part_mut(capacity)?)?;
            let state = self.sweep.read()?;
            if state.pairs <= capacity as u64 {
                return Ok((state, regrown));
            }
            let limit = self.pair_limit(config)?;
            self.make_room(config, state.pairs, limit)?;
            regrown += 1;
        }
    }

    /// Makes `room` for `count` pairs and an eighth more.
    pub(super) fn make_room(&mut self, config: &Config, count: u64, limit: u64) -> Result<()> {
        let too_many = Error::TooManyPairs { count, limit };
        let exact = usize::try_from(count)
            .ok()
            .filter(|_| count <= limit)
            .ok_or(too_many)?;
        let generous = (exact + exact / 8).min(usize::try_from(limit).unwrap_or(usize::MAX));
        let grown = self.room.reserve_exact(&self.stream, generous);
        grown
            .or_else(|_| self.room.reserve_exact(&self.stream, exact))
            .map_err(|error| out_of_memory(config, count, error))
    }

    /// The most pairs that may be kept: as configured, else what half of the memory holds that is free or taken for pairs.
    pub(super) fn pair_limit(&self, config: &Config) -> Result<u64> {
        match config.pair_memory {
            Some(bytes) => Ok(bytes / size_of::<Pair>() as u64),
            None => {
                let lists = self.list.capacity() + self.room.capacity();
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
        self.arrange(false)?;
        let (state, _) = self.find_pairs(config, 0..sets[0].len() as u64)?;
        self.refuse_invalid(config, &sets, &state)?;
        let count = state.pairs as usize;
        self.sweep
            .put_in_order(&self.spare, self.room.part_mut(count)?)?;
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
        )?;
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

/// Uploads sets into `scene`, checks and stores their boxes, and chooses the axis.
fn read(
    scene: &mut Scene,
    sweep: &mut Sweep,
    uploader: &mut Uploader,
    stages: &mut Stages,
    sets: &[Source],
    margin: f32,
    last: Option<&Scene>,
) -> Result<()> {
    let stream = sweep.stream.clone();
    uploader.start(&stream)?;
    sweep.reset()?;
    let mut tools = Tools {
        stream: &stream,
        kernels: &sweep.kernels,
        uploader,
        state: &sweep.state,
    };
    scene.upload(&mut tools, sets, margin)?;
    stages.mark(&stream, "bounds")?;
    scene.prepare(&tools, sets, margin, last)?;
    sweep.choose_axis(scene)
}

/// Device bytes that a pair takes: in the list, in that of the last update and while it is sorted; with events it may be in
/// those of both updates too.
const fn bytes_a_pair(config: &Config) -> u64 {
    let lists = if config.events { 5 } else { 3 };
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
        total: stages.iter().map(|(_, ms)| f64::from(*ms)).sum(),
    }
}
