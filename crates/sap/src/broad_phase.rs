//! The public face: chooses the engine, keeps the report and the query structure.

use crate::query::{Boxes, Index};
use crate::threads::on_threads;
use crate::{
    Aabb, Backend, ChunkReport, Config, Error, Frame, Pair, RayHit, Report, Result, Strategy,
    Subdivision, cpu,
};
#[cfg(cuda)]
use crate::{cuda, query};

/// The engine at work. Each has the same calls, and an update that fails changes nothing that can be seen.
enum Engine {
    Cpu(Box<cpu::Engine>),
    #[cfg(cuda)]
    Cuda(Box<cuda::Engine>),
}

/// An engine, and how it came to be the one.
struct Chosen {
    engine: Engine,
    /// Whether it is on a GPU only since [`Backend::Auto`] found one.
    #[cfg_attr(not(cuda), expect(dead_code, reason = "no GPU without the feature"))]
    by_auto: bool,
    /// Why it is on the CPU although a GPU was tried.
    fallback: Option<Error>,
}

/// Runs one call on whichever engine there is.
macro_rules! on_engine {
    ($engine:expr, $name:ident => $call:expr) => {
        match $engine {
            Engine::Cpu($name) => $call,
            #[cfg(cuda)]
            Engine::Cuda($name) => $call,
        }
    };
}

/// Finds the overlapping pairs of a scene, frame after frame.
///
/// Pairs are sorted by `(a, b)`, `a < b`, without duplicates, and the same on every backend, strategy, thread count and
/// run. No input panics, and a call that fails leaves the last result as it was. Memory: about 100 bytes a box and 8 to
/// 24 a pair, kept between updates.
pub struct BroadPhase {
    config: Config,
    chosen: Chosen,
    report: Report,
    index: Option<Index>,
    /// Queries since the update that a device answered.
    #[cfg(cuda)]
    scans: u32,
}

/// Queries after an update that a device answers by looking at all boxes. Of 1,000,000 boxes, 16 should take 0.6 ms, where the
/// download of the boxes and the tree take 50 ms.
#[cfg(cuda)]
const MOST_SCANS: u32 = 16;

impl BroadPhase {
    /// An engine for this configuration, without boxes.
    ///
    /// ```
    /// use sap::{Backend, BroadPhase, Config};
    ///
    /// let broad_phase = BroadPhase::new(Config { backend: Backend::Cpu, ..Config::default() })?;
    /// assert!(broad_phase.pairs().is_empty());
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Margin`] for a margin that is negative or not finite, [`Error::NoCuda`] where CUDA is asked for and
    /// missing, [`Error::UnknownName`] where
    /// `RADSWEEP_BACKEND` names no backend.
    pub fn new(config: Config) -> Result<Self> {
        let margin = config.margin;
        if !margin.is_finite() || margin < 0.0 {
            return Err(Error::Margin { margin });
        }
        let chosen = choose(&config)?;
        let backend = match chosen.engine {
            Engine::Cpu(_) => Backend::Cpu,
            #[cfg(cuda)]
            Engine::Cuda(_) => Backend::Cuda,
        };
        let report = Report::none(backend, config.strategy);
        Ok(Self {
            config,
            chosen,
            report,
            index: None,
            #[cfg(cuda)]
            scans: 0,
        })
    }

    /// Takes the boxes of a frame and finds all their pairs.
    ///
    /// O(n log n + pairs) where boxes are spread out; [`Report::tests`] tells. A frame that is the same as the last
    /// costs one comparison with it.
    ///
    /// ```
    /// use sap::{Aabb, BroadPhase, Config, Error};
    ///
    /// let mut broad_phase = BroadPhase::new(Config::default())?;
    /// broad_phase.update(&[Aabb::new([0.0; 3], [1.0; 3]); 2])?;
    /// let broken = [Aabb::new([0.0; 3], [1.0; 3]), Aabb::new([f32::NAN; 3], [1.0; 3])];
    /// assert!(matches!(broad_phase.update(&broken), Err(Error::InvalidAabb { index: 1, .. })));
    /// assert_eq!(broad_phase.pairs().len(), 1); // as it was
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidAabb`] for a bad box (unless they are skipped), [`Error::TooManyPairs`] with the exact count where
    /// the pairs do not fit, [`Error::LengthMismatch`], [`Error::ExcludedOrder`], [`Error::ChangedIndex`] and [`Error::TooManyBoxes`] for a frame
    /// that does not hold together, [`Error::OutOfMemory`], and what the sort or the device reports.
    pub fn update<'a>(&mut self, frame: impl Into<Frame<'a>>) -> Result<&Report> {
        let frame = frame.into();
        frame.check_lengths()?;
        frame.check_excluded(true)?;
        let updated =
            on_engine!(&mut self.chosen.engine, engine => engine.update(&self.config, &frame));
        self.report = match updated {
            Ok(report) => report,
            Err(error) => self.on_cpu(error, |engine, config| engine.update(config, &frame))?,
        };
        self.forget_index();
        Ok(&self.report)
    }

    /// The pairs of the last update, sorted by `(a, b)`. After an `update_device` they are on the device:
    /// [`BroadPhase::download`] copies them to the host, and comes first.
    ///
    /// ```
    /// # use sap::{Aabb, BroadPhase, Config, Pair};
    /// let mut broad_phase = BroadPhase::new(Config::default())?;
    /// broad_phase.update(&[Aabb::new([0.0; 3], [1.0; 3]); 3])?;
    /// let pairs = [Pair { a: 0, b: 1 }, Pair { a: 0, b: 2 }, Pair { a: 1, b: 2 }];
    /// assert_eq!(broad_phase.pairs(), pairs);
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// After an `update_device` without [`BroadPhase::download`]: an empty list would be taken for the result.
    #[must_use]
    pub fn pairs(&self) -> &[Pair] {
        on_engine!(&self.chosen.engine, engine => engine.pairs())
    }

    /// The pairs of the last update that the one before did not have, sorted. Empty with [`Config::events`] off.
    ///
    /// ```
    /// # use sap::{Aabb, BroadPhase, Config, Pair};
    /// let (here, there) = (Aabb::new([0.0; 3], [1.0; 3]), Aabb::new([9.0; 3], [10.0; 3]));
    /// let mut broad_phase = BroadPhase::new(Config::default())?;
    /// broad_phase.update(&[here, here, there])?;
    /// broad_phase.update(&[here, there, there])?;
    /// assert_eq!(broad_phase.started(), [Pair { a: 1, b: 2 }]);
    /// assert_eq!(broad_phase.ended(), [Pair { a: 0, b: 1 }]);
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// After an `update_device` without [`BroadPhase::download`]: an empty list would be taken for the result.
    #[must_use]
    pub fn started(&self) -> &[Pair] {
        on_engine!(&self.chosen.engine, engine => engine.started())
    }

    /// The pairs that the update before had and the last has not, sorted; see [`BroadPhase::started`].
    ///
    /// # Panics
    ///
    /// After an `update_device` without [`BroadPhase::download`]: an empty list would be taken for the result.
    #[must_use]
    pub fn ended(&self) -> &[Pair] {
        on_engine!(&self.chosen.engine, engine => engine.ended())
    }

    /// Copies the lists of the last update to the host, where `update_device` has left them on the device: then
    /// [`BroadPhase::pairs`], [`BroadPhase::started`] and [`BroadPhase::ended`] have them. Else they have them anyway, and this does
    /// nothing.
    ///
    /// ```
    /// # use sap::{Aabb, BroadPhase, Config};
    /// let mut broad_phase = BroadPhase::new(Config::default())?;
    /// broad_phase.update(&[Aabb::new([0.0; 3], [1.0; 3]); 2])?;
    /// broad_phase.download()?; // after any kind of update
    /// assert_eq!(broad_phase.pairs().len() as u64, broad_phase.report().pairs);
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] where the host has no memory for them, and what the device reports. Those on the device are still
    /// there then: call it again.
    pub fn download(&mut self) -> Result<()> {
        match &mut self.chosen.engine {
            Engine::Cpu(_) => Ok(()),
            #[cfg(cuda)]
            Engine::Cuda(engine) => engine.download(),
        }
    }

    /// What the last update did.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// How the last update that looked at all boxes cut the space: nothing where it swept along one axis at once, and on the CPU for
    /// frames with worlds, which have columns each of their own.
    ///
    /// ```
    /// use sap::{Aabb, Backend, BroadPhase, Config, Strategy, Subdivision};
    ///
    /// let (backend, strategy) = (Backend::Cpu, Strategy::Subdivided);
    /// let mut broad_phase = BroadPhase::new(Config { backend, strategy, ..Config::default() })?;
    /// assert_eq!(broad_phase.subdivision(), None);
    /// let at = |i: usize| [i % 20, i / 20 % 20, i / 400].map(|x| x as f32);
    /// let boxes: Vec<Aabb> = (0..8000).map(at).map(|min| Aabb::new(min, min.map(|x| x + 0.5))).collect();
    /// broad_phase.update(&boxes)?;
    /// let Some(Subdivision::Columns { axes, cuts }) = broad_phase.subdivision() else { panic!() };
    /// assert!(!axes.contains(&broad_phase.report().axis));
    /// assert!(cuts.iter().flatten().all(|cut| (0.0..20.0).contains(cut)));
    /// # Ok::<(), sap::Error>(())
    /// ```
    #[must_use]
    pub fn subdivision(&self) -> Option<Subdivision> {
        let ran = self.report.n > 0 && self.report.strategy == Strategy::Subdivided;
        ran.then(|| on_engine!(&self.chosen.engine, engine => engine.subdivision()))?
    }

    /// Why [`Backend::Auto`] works on the CPU although this build can use a GPU: the error from when it was looked for, or with which
    /// it failed later. None while a GPU works, or where none was to be tried.
    ///
    /// A GPU that fails in [`BroadPhase::update`], [`BroadPhase::overlaps_between`] or [`BroadPhase::for_each_pair_chunk`] (there,
    /// before anything was delivered) is left for good: the call is done on the CPU, with events against the last result,
    /// which is kept, and [`Report::backend`] tells. What is on the device alone is lost with it: the boxes that margins
    /// have kept, so that these begin anew, those for queries until the next update, and after a
    /// `update_device` pairs that nobody has read, so that the next update starts all.
    ///
    /// ```
    /// use sap::{Backend, BroadPhase, Config};
    ///
    /// let broad_phase = BroadPhase::new(Config::default())?;
    /// if let Some(reason) = broad_phase.fallback() {
    ///     println!("on the CPU: {reason}");
    ///     assert_eq!(broad_phase.report().backend, Backend::Cpu);
    /// }
    /// # Ok::<(), sap::Error>(())
    /// ```
    #[must_use]
    pub const fn fallback(&self) -> Option<&Error> {
        self.chosen.fallback.as_ref()
    }

    /// The configuration it was made with.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Forgets the last update: no boxes, no pairs, no margins; the next update starts every pair it finds.
    ///
    /// ```
    /// # use sap::{Aabb, BroadPhase, Config};
    /// let mut broad_phase = BroadPhase::new(Config::default())?;
    /// broad_phase.update(&[Aabb::new([0.0; 3], [1.0; 3]); 2])?;
    /// broad_phase.clear();
    /// assert!(broad_phase.pairs().is_empty() && broad_phase.query_point([0.5; 3])?.is_empty());
    /// # Ok::<(), sap::Error>(())
    /// ```
    pub fn clear(&mut self) {
        on_engine!(&mut self.chosen.engine, engine => engine.clear());
        self.report = Report::none(self.report.backend, self.config.strategy);
        self.forget_index();
    }

    /// The overlapping pairs between two sets: `Pair::a` indexes the first and `Pair::b` the second; sorted. Margins
    /// do not apply; the excluded pairs are those of the first frame, as (index in the first, index in the second).
    /// The result of the last update stays.
    ///
    /// ```
    /// use sap::{Aabb, BroadPhase, Config, Pair};
    ///
    /// let bullets = [Aabb::new([0.4; 3], [0.6; 3])];
    /// let targets = [Aabb::new([5.0; 3], [6.0; 3]), Aabb::new([0.0; 3], [1.0; 3])];
    /// let mut broad_phase = BroadPhase::new(Config::default())?;
    /// assert_eq!(broad_phase.overlaps_between(&bullets, &targets)?, [Pair { a: 0, b: 1 }]);
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::update`]; the index of a bad box is that in its own set, the first set being looked at first.
    pub fn overlaps_between<'a, 'b>(
        &mut self,
        a: impl Into<Frame<'a>>,
        b: impl Into<Frame<'b>>,
    ) -> Result<Vec<Pair>> {
        let (a, b) = (a.into(), b.into());
        a.check_lengths()?;
        b.check_lengths()?;
        a.check_excluded(false)?;
        on_engine!(&mut self.chosen.engine, engine => engine.overlaps_between(&self.config, &a, &b))
            .or_else(|error| {
                self.on_cpu(error, |engine, config| {
                    engine.overlaps_between(config, &a, &b)
                })
            })
    }

    /// Delivers all pairs of a frame, sorted over all calls, at most `chunk` at once (0 counts as 1), in memory that
    /// does not grow with their number. Margins do not apply. The result of the last update stays.
    ///
    /// Costs about two updates, the ordering of the pairs apart, when they do not fit in one round.
    ///
    /// ```
    /// use sap::{Aabb, BroadPhase, Config};
    ///
    /// let boxes = [Aabb::new([0.0; 3], [1.0; 3]); 100];
    /// let mut broad_phase = BroadPhase::new(Config::default())?;
    /// let mut most = 0;
    /// let report = broad_phase.for_each_pair_chunk(&boxes, 1000, |pairs| most = most.max(pairs.len()))?;
    /// assert_eq!((report.pairs, report.chunks, most), (4950, 5, 1000));
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::update`], except [`Error::TooManyPairs`]. Where one comes, nothing was delivered yet unless a
    /// device fails, or memory is refused, midway.
    pub fn for_each_pair_chunk<'a>(
        &mut self,
        frame: impl Into<Frame<'a>>,
        chunk: usize,
        mut f: impl FnMut(&[Pair]),
    ) -> Result<ChunkReport> {
        let frame = frame.into();
        frame.check_lengths()?;
        frame.check_excluded(true)?;
        let chunk = chunk.max(1);
        let mut delivered = false;
        let mut hand = |pairs: &[Pair]| {
            delivered = true;
            f(pairs);
        };
        let done = on_engine!(&mut self.chosen.engine, engine => engine.for_each_pair_chunk(&self.config, &frame, chunk, &mut hand));
        match done {
            // Pairs were delivered that must not come twice.
            Err(error) if !delivered => self.on_cpu(error, |engine, config| {
                engine.for_each_pair_chunk(config, &frame, chunk, &mut f)
            }),
            done => done,
        }
    }

    /// The boxes of the last update that overlap this one by [`Config::rule`], by index. Boxes are those given, without
    /// margin; swept ones as start and end together, `f64` ones rounded outward. A bad box overlaps nothing.
    ///
    /// The first query after an update builds a tree, O(n log n). A query then looks at O(log n + results) boxes where few unions of
    /// neighbours touch it that hold no result: so it is for boxes spread and sized in any way, whatever a few of them are (far,
    /// huge, infinite). No tree of boxes does better than O(n^(2/3) + results) for every input. On CUDA the first 16 are
    /// scans of all boxes on the device, as long as they find no more than 16,384, and the tree comes after them.
    ///
    /// ```
    /// use sap::{Aabb, BroadPhase, Config};
    ///
    /// let mut broad_phase = BroadPhase::new(Config::default())?;
    /// broad_phase.update(&[Aabb::new([0.0; 3], [1.0; 3]), Aabb::new([4.0; 3], [5.0; 3])])?;
    /// assert_eq!(broad_phase.query_box(&Aabb::new([1.0; 3], [4.0; 3]))?, [0, 1]);
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Sort`] where the system grants no thread to build the tree; what the device reports where the boxes are there.
    pub fn query_box(&mut self, query: &Aabb) -> Result<Vec<u32>> {
        let rule = self.config.rule;
        #[cfg(cuda)]
        if let Some(near) = self.scan(cuda::Question::Touching(*query))? {
            return Ok(near.overlapping(query, rule));
        }
        Ok(self.index()?.overlapping(query, rule))
    }

    /// The boxes of the last update that hold this point, by index; borders count under the closed rule.
    ///
    /// ```
    /// # use sap::{Aabb, BroadPhase, Config};
    /// # let mut broad_phase = BroadPhase::new(Config::default())?;
    /// broad_phase.update(&[Aabb::new([0.0; 3], [1.0; 3]), Aabb::new([4.0; 3], [5.0; 3])])?;
    /// assert_eq!(broad_phase.query_point([4.5, 4.5, 5.0])?, [1]);
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::query_box`].
    pub fn query_point(&mut self, point: [f32; 3]) -> Result<Vec<u32>> {
        self.query_box(&Aabb::new(point, point))
    }

    /// The boxes of the last update within `radius` of `center`, by index: distance at most `radius` under the closed
    /// rule, below it under the open rule; distances are taken in `f64`. None for a negative or NaN radius.
    ///
    /// ```
    /// # use sap::{Aabb, BroadPhase, Config};
    /// # let mut broad_phase = BroadPhase::new(Config::default())?;
    /// broad_phase.update(&[Aabb::new([0.0; 3], [1.0; 3]), Aabb::new([4.0; 3], [5.0; 3])])?;
    /// assert_eq!(broad_phase.query_sphere([0.5, 0.5, 3.0], 2.0)?, [0]);
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::query_box`].
    pub fn query_sphere(&mut self, center: [f32; 3], radius: f32) -> Result<Vec<u32>> {
        let rule = self.config.rule;
        #[cfg(cuda)]
        if let Some(near) = self.scan(cuda::Question::Touching(query::around(center, radius)))? {
            return Ok(near.within(center, radius, rule));
        }
        Ok(self.index()?.within(center, radius, rule))
    }

    /// The boxes of the last update that the ray `origin + t * dir`, `0 <= t <= max_t`, meets (borders included), by
    /// `t`, then index. `dir` need not be a unit vector; `t` counts in its lengths and is 0 for a box around the origin.
    /// None where a number is NaN, or origin or direction infinite; a direction of length 0 asks for the origin alone.
    ///
    /// ```
    /// # use sap::{Aabb, BroadPhase, Config, RayHit};
    /// # let mut broad_phase = BroadPhase::new(Config::default())?;
    /// broad_phase.update(&[Aabb::new([4.0; 3], [5.0; 3]), Aabb::new([0.0; 3], [1.0; 3])])?;
    /// let hits = broad_phase.query_ray([0.5; 3], [1.0; 3], 10.0)?;
    /// assert_eq!(hits, [RayHit { index: 1, t: 0.0 }, RayHit { index: 0, t: 3.5 }]);
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::query_box`].
    pub fn query_ray(
        &mut self,
        origin: [f32; 3],
        dir: [f32; 3],
        max_t: f32,
    ) -> Result<Vec<RayHit>> {
        #[cfg(cuda)]
        if let Some(near) = self.scan(cuda::Question::Along(origin, dir, max_t))? {
            return Ok(near.along(origin, dir, max_t));
        }
        Ok(self.index()?.along(origin, dir, max_t))
    }

    /// As [`BroadPhase::update`], for boxes on the device, with their filters and worlds ([`crate::DeviceFrame`]): the first CUDA device, which the engine works on. Pairs and events
    /// stay there too ([`BroadPhase::device_pairs`]) until [`BroadPhase::download`]
    /// copies them to the host.
    ///
    /// The lists are read on [`BroadPhase::stream`]: work that writes them on another stream must be ordered before by an
    /// event. They may be overwritten once this returns.
    ///
    /// ```
    /// use sap::{Aabb, Backend, BroadPhase, Config};
    ///
    /// let config = Config { backend: Backend::Cuda, ..Config::default() };
    /// let Ok(mut broad_phase) = BroadPhase::new(config) else { return Ok(()) }; // no GPU here
    /// let Some(stream) = broad_phase.stream().cloned() else { return Ok(()) };
    /// let boxes = stream.from_slice(&[Aabb::new([0.0; 3], [1.0; 3]); 3])?;
    /// assert_eq!(broad_phase.update_device(boxes.slice())?.pairs, 3);
    /// assert_eq!(broad_phase.device_pairs().map(|pairs| pairs.len()), Some(3));
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::update`]; [`Error::NoCuda`] where the engine works on the CPU. A GPU that fails here is an error with
    /// [`Backend::Auto`] too, since the boxes are there.
    #[cfg(cuda)]
    pub fn update_device<'a>(
        &mut self,
        frame: impl Into<crate::DeviceFrame<'a>>,
    ) -> Result<&Report> {
        let frame = frame.into();
        frame.check()?;
        self.report = match &mut self.chosen.engine {
            Engine::Cuda(engine) => engine.update_device(&self.config, &frame)?,
            Engine::Cpu(_) => {
                return Err(Error::NoCuda {
                    looked_for: "this broad phase works on the CPU".to_owned(),
                });
            }
        };
        self.forget_index();
        Ok(&self.report)
    }

    /// The pairs of the last update where they are on the device, sorted; none for an engine on the CPU. To be read on
    /// [`BroadPhase::stream`], or on another stream that waits for an event of it.
    #[cfg(cuda)]
    #[must_use]
    pub fn device_pairs(&self) -> Option<gpu::Slice<'_, Pair>> {
        match &self.chosen.engine {
            Engine::Cuda(engine) => engine.device_pairs().ok(),
            Engine::Cpu(_) => None,
        }
    }

    /// The stream that the engine works on; none for an engine on the CPU.
    #[cfg(cuda)]
    #[must_use]
    pub fn stream(&self) -> Option<&gpu::Stream> {
        match &self.chosen.engine {
            Engine::Cuda(engine) => Some(engine.stream()),
            Engine::Cpu(_) => None,
        }
    }

    /// Does a call again on the CPU, and stays there, if it was a GPU that failed and nobody has asked for it by name. Gives the
    /// error otherwise.
    #[cfg_attr(not(cuda), expect(unused_variables, reason = "no GPU to fail"))]
    fn on_cpu<T>(
        &mut self,
        error: Error,
        call: impl FnOnce(&mut cpu::Engine, &Config) -> Result<T>,
    ) -> Result<T> {
        #[cfg(cuda)]
        if let Engine::Cuda(failed) = &mut self.chosen.engine
            && self.chosen.by_auto
            && error.is_of_gpu()
        {
            let last = failed.last(&self.config)?;
            let mut engine = Box::new(cpu::Engine::following(&self.config, last));
            // If this fails too, what has the last result is still there.
            let done = call(&mut engine, &self.config)?;
            self.chosen = Chosen {
                engine: Engine::Cpu(engine),
                by_auto: false,
                fallback: Some(error),
            };
            self.report.backend = Backend::Cpu;
            return Ok(done);
        }
        Err(error)
    }

    fn forget_index(&mut self) {
        self.index = None;
        #[cfg(cuda)]
        {
            self.scans = 0;
        }
    }

    /// At least the boxes asked for, where a device is to look for them: the first few times after an update, unless it
    /// finds very many.
    #[cfg(cuda)]
    fn scan(&mut self, question: cuda::Question) -> Result<Option<Vec<query::Candidate>>> {
        let Engine::Cuda(engine) = &mut self.chosen.engine else {
            return Ok(None);
        };
        if self.index.is_some() || self.scans == MOST_SCANS {
            return Ok(None);
        }
        self.scans += 1;
        engine.candidates(question)
    }

    /// The tree over the boxes of the last update, built by the first query that needs it.
    fn index(&mut self) -> Result<&Index> {
        let index = match (self.index.take(), &self.chosen.engine) {
            (Some(index), _) => index,
            (None, Engine::Cpu(engine)) => on_threads(|| Ok(Index::new(engine.boxes())))?,
            #[cfg(cuda)]
            (None, Engine::Cuda(engine)) => {
                let boxes = engine.boxes()?;
                on_threads(|| Ok(Index::new(&boxes)))?
            }
        };
        Ok(self.index.insert(index))
    }
}

/// The engine that the configuration and the environment ask for.
fn choose(config: &Config) -> Result<Chosen> {
    let backend = match (config.backend, std::env::var("RADSWEEP_BACKEND")) {
        (Backend::Auto, Ok(name)) if !name.is_empty() => name.parse()?,
        (backend, _) => backend,
    };
    let on_cpu = |fallback| Chosen {
        engine: Engine::Cpu(Box::new(cpu::Engine::new(config))),
        by_auto: false,
        fallback,
    };
    #[cfg(cuda)]
    let cuda = |by_auto| {
        Ok(Chosen {
            engine: Engine::Cuda(Box::new(cuda::Engine::new(config)?)),
            by_auto,
            fallback: None,
        })
    };
    match backend {
        Backend::Cpu => Ok(on_cpu(None)),
        #[cfg(cuda)]
        Backend::Auto => cuda(true).or_else(|error| Ok(on_cpu(Some(error)))),
        #[cfg(cuda)]
        Backend::Cuda => cuda(false),
        #[cfg(not(cuda))]
        Backend::Auto => Ok(on_cpu(None)),
        #[cfg(not(cuda))]
        Backend::Cuda => Err(Error::NoCuda {
            looked_for: "this build has no feature `cuda`".to_owned(),
        }),
    }
}
