//! The engine: what is kept between updates, and the calls.

use super::bound::{Bound, Finder};
use super::device_frame::DeviceFrame;
use super::events::Difference;
use super::grid::Grid;
use super::held::Held;
use super::memory::{Grow, HostPairs, Uploader};
use super::pairs::{HOST, is_out_of_memory, out_of_memory};
use super::params::State;
use super::query::{Queries, Question};
use super::scene::Scene;
use super::source::Source;
use super::sweep::Sweep;
use super::tree::Tree;
use crate::last::Last;
use crate::query::Candidate;
use crate::room::{concat, zeros};
use crate::{
    Aabb, Backend, Choice, Config, Error, Frame, Invalid, OnInvalid, Pair, Report, Result,
    Strategy, Subdivision, Timings,
};
use gpu::{Device, Slice, Stages, Stream};

/// See the module.
pub(crate) struct Engine {
    pub(super) stream: Stream,
    pub(super) sweep: Sweep,
    pub(super) grid: Grid,
    pub(super) tree: Tree,
    pub(super) held: Held,
    /// Whether the frame at hand leaves those out.
    pub(super) apart: bool,
    /// What finds the pairs of the frame.
    pub(super) finder: Finder,
    /// What `Auto` knows of its work, whether that is bounded at all, and the tests of this call that were given up.
    pub(super) bound: Bound,
    pub(super) is_bounded: bool,
    pub(super) wasted: u64,
    /// Why, where it was chosen.
    pub(super) choice: Option<Choice>,
    /// Whether they are counted by row.
    pub(super) by_rows: bool,
    pub(super) uploader: Uploader,
    pub(super) stages: Marks,
    /// The scene of the last update, and one to read the next into.
    pub(super) scene: Scene,
    pub(super) spare: Scene,
    pub(super) has_last: bool,
    /// Whether the last update found everything as it was, and its sweep axis.
    rested: bool,
    axis: usize,
    /// Pairs of the last update; room for those of the next as the sweep finds them, packed, and in order.
    pub(super) list: Grow<u64>,
    pub(super) pairs: usize,
    pub(super) found: Grow<u64>,
    pub(super) room: Grow<u64>,
    pub(super) events: [Difference; 2],
    pub(super) spare_events: [Difference; 2],
    /// The lists of the last update on the host, by what they are of, and memory for the next; empty unless `is_on_host`.
    host: [HostPairs; 3],
    spare_host: [HostPairs; 3],
    is_on_host: bool,
    queries: Queries,
}

/// The times of an update's stages.
pub(super) struct Marks {
    stages: Stages,
    /// Off while a graph is recorded, which has no times.
    pub(super) on: bool,
}

impl Marks {
    /// Begins a stage, whose time counts to the next mark.
    pub(super) fn mark(&mut self, stream: &Stream, stage: &'static str) -> Result<()> {
        if self.on {
            self.stages.mark(stream, stage)?;
        }
        Ok(())
    }

    /// Milliseconds by stage since the last call. Waits.
    pub(super) fn finish(&mut self, stream: &Stream) -> Result<Vec<(&'static str, f32)>> {
        Ok(self.stages.finish(stream)?)
    }
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
            tree: Tree::new(&device)?,
            held,
            apart: false,
            finder: Finder::Axis(config.strategy),
            bound: Bound::default(),
            is_bounded: false,
            wasted: 0,
            choice: None,
            by_rows: false,
            uploader: Uploader::default(),
            stages: Marks {
                stages: Stages::new(),
                on: true,
            },
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
            is_on_host: true,
            queries: Queries::default(),
        })
    }

    pub(crate) fn update(&mut self, config: &Config, frame: &Frame) -> Result<Report> {
        self.update_from(config, Source::Host(frame))
    }

    pub(crate) fn update_device(&mut self, config: &Config, frame: &DeviceFrame) -> Result<Report> {
        self.update_from(config, Source::Device(frame))
    }

    fn update_from(&mut self, config: &Config, source: Source) -> Result<Report> {
        self.wasted = 0;
        self.is_bounded = config.strategy == Strategy::Auto;
        self.hold(config)?;
        let result = self.find(config, source);
        if result.is_err() {
            self.forget_stages();
        }
        result
    }

    fn find(&mut self, config: &Config, source: Source) -> Result<Report> {
        let stream = self.stream.clone();
        let from_host = matches!(source, Source::Host(_));
        let n = source.len();
        self.read(&[source], config.margin, true)?;
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
                return self.rest(config, n, invalid, &state, from_host);
            }
            if self.apart && state.still_changed != 0 {
                return self.find_as_one(config, source);
            }
        }
        if self.apart {
            self.held.gather_moving(&stream, &self.spare)?;
        }
        self.arrange(config, may_rest)?;

        let (state, regrown) = self.find_pairs(config, &[source], 0..n as u64, config.events)?;
        if self.apart && (state.still_changed != 0 || state.stopped != 0) {
            return self.find_as_one(config, source);
        }
        let invalid = source.invalid(&stream, state.invalid, state.first_invalid)?;
        if may_rest && state.changed == 0 {
            return self.rest(config, n, invalid, &state, from_host);
        }

        let (count, axis) = (state.pairs as usize, state.axis as usize);
        let counts = if config.events {
            [state.started, state.ended]
        } else {
            [0; 2]
        };
        let lists = self.lists(count);
        let (events, kernels) = (&mut self.spare_events, &self.sweep.kernels);
        let totals = self.sweep.event_counts();
        // SAFETY: the lists are those which the differences were found in.
        unsafe { Difference::complete(events, &stream, kernels, lists, totals, counts) }
            .map_err(|error| out_of_memory(config, state.pairs, error))?;
        let [started, ended] = &self.spare_events;
        let mut report = Report {
            pairs: state.pairs,
            started: started.len() as u64,
            ended: ended.len() as u64,
            tests: state.tests + state.between + self.wasted,
            resting: self.held.len() as u64,
            regrown,
            sorts: state.sorts(),
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
        self.spare.has_bad = invalid.is_some();
        std::mem::swap(&mut self.scene, &mut self.spare);
        std::mem::swap(&mut self.list, &mut self.room);
        std::mem::swap(&mut self.events, &mut self.spare_events);
        self.pairs = count;
        self.has_last = true;
        self.rested = false;
        self.axis = axis;
        std::mem::swap(&mut self.host, &mut self.spare_host);
        self.is_on_host = from_host;
        if !from_host {
            self.host.iter_mut().for_each(HostPairs::clear);
        }
        self.held.note(may_rest && state.still_changed == 0);
        Ok(report)
    }

    /// Finds the pairs again, of all boxes: those held apart were not as they had been, or took too many tests.
    fn find_as_one(&mut self, config: &Config, source: Source) -> Result<Report> {
        self.held.release();
        self.find(config, source)
    }

    pub(super) fn report(&self, n: usize, invalid: Option<Invalid>, axis: usize) -> Report {
        Report {
            n,
            invalid,
            axis,
            choice: self.choice,
            ..Report::none(Backend::Cuda, self.finder.strategy())
        }
    }

    /// Ends an update that found everything as it was.
    fn rest(
        &mut self,
        config: &Config,
        n: usize,
        invalid: Option<Invalid>,
        state: &State,
        from_host: bool,
    ) -> Result<Report> {
        refuse(config, invalid)?;
        if from_host {
            self.download()?;
        }
        let mut report = self.report(n, invalid, self.axis);
        report.sorts = state.sorts();
        report.pairs = self.pairs as u64;
        report.resting = self.held.len() as u64;
        report.timings = timings(&self.stages.finish(&self.stream)?);
        self.rested = true;
        self.events.iter_mut().for_each(Difference::clear);
        self.host[STARTED].clear();
        self.host[ENDED].clear();
        // Boxes that moved within their margin are not where they were.
        self.spare.has_bad = invalid.is_some();
        std::mem::swap(&mut self.scene, &mut self.spare);
        Ok(report)
    }

    pub(crate) fn subdivision(&self) -> Option<Subdivision> {
        (self.finder == Finder::Cells).then(|| self.grid.subdivision())?
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
        debug_assert!(
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
            Err(error) if is_out_of_memory(&error) => Ok(None),
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
    pub(super) fn forget_plan(&mut self) {
        self.grid.forget();
    }

    pub(crate) fn clear(&mut self) {
        self.has_last = false;
        self.held.release();
        self.rested = false;
        self.pairs = 0;
        self.events.iter_mut().for_each(Difference::clear);
        self.host.iter_mut().for_each(HostPairs::clear);
        self.is_on_host = true;
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
        self.is_bounded = config.strategy == Strategy::Auto;
        let result = self.find_between(config, [Source::Host(a), Source::Host(b)]);
        self.forget_stages();
        result
    }

    fn find_between(&mut self, config: &Config, sets: [Source; 2]) -> Result<Vec<Pair>> {
        self.read_apart(&sets)?;
        self.arrange(config, false)?;
        let (state, _) = self.find_pairs(config, &sets, 0..sets[0].len() as u64, false)?;
        let count = state.pairs as usize;
        let mut pairs = zeros(count)?;
        self.stream
            .download(self.room.part(count)?.cast()?, &mut pairs)?;
        Ok(pairs)
    }

    /// Drops the marks of a call that takes no times, lest the next update counts them.
    pub(super) fn forget_stages(&mut self) {
        // A device that has failed says so again at the next call.
        let _ = self.stages.finish(&self.stream);
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
        // Host memory must not go before the copies to and from it are done. A device that has failed makes none.
        let _ = self.stream.synchronize();
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
