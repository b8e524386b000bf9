//! The public face: an engine, the report of its last update, and the tree for queries.

use crate::backend::Chosen;
use crate::engine::Engine;
use crate::frame::Form;
use crate::query::Lookup;
use crate::subdivision::Subdivision;
use crate::threads::OwnPool;
use crate::{
    Backend, ChunkReport, Config, Error, Frame, Pair, Report, Result, Sorts, Strategy, Timings,
};
#[cfg(feature = "wgpu")]
mod wgpu;

/// Finds the overlapping pairs of a scene, frame after frame.
///
/// Pairs are sorted by `(a, b)`, `a < b`, without duplicates, and the same on every backend,
/// strategy, thread count and run. No input causes a panic, and a call that fails leaves the last
/// result unchanged. Only [`BroadPhase::pairs`], [`BroadPhase::started`] and [`BroadPhase::ended`]
/// panic, if they are called before [`BroadPhase::download`] where boxes or pairs stay on a GPU.
/// Memory, kept between updates on the CPU: 80 to 90 bytes a box and 16 to 32 a pair. While boxes
/// move little, it is 160 to 190 a box and 8 for each candidate: two or three for each pair in most
/// scenes, at most eight for each box and pair when it begins. Filters, worlds, margins and `f64`
/// boxes take more.
pub struct BroadPhase {
    /// The form of the last frame, if the CPU updated it without invalid boxes: a frame of the same
    /// form with an empty list of changed boxes is no work.
    form: Option<Form>,
    /// Whether the last update failed. The next one compares all boxes: its caller's list may lack
    /// those that changed in the failed one.
    has_failed: bool,
    report: Report,
    chosen: Chosen,
    /// What [`queries`](crate::queries) keeps until the next update.
    pub(crate) lookup: Lookup,
}

impl BroadPhase {
    /// Creates a broad phase of this configuration, without boxes.
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
    /// [`Error::Margin`] for a margin that is negative or not finite, [`Error::NoCuda`] and
    /// [`Error::NoWgpu`] where these are asked for and missing, [`Error::Unsupported`] for a
    /// strategy that the backend does not have.
    pub fn new(config: Config) -> Result<Self> {
        check_margin(&config)?;
        Chosen::new(config).map(Self::with)
    }

    /// A broad phase that works on a CUDA stream of the caller. [`Config::backend`] is
    /// [`Backend::Cuda`](crate::Backend::Cuda) then, and [`Config::device`] that of the stream,
    /// whatever was given.
    ///
    /// ```
    /// use sap::{Aabb, BroadPhase, Config};
    ///
    /// let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
    /// let stream = gpu::Stream::new(&device)?;
    /// let mut broad_phase = BroadPhase::on_stream(&stream, Config::default())?;
    /// let boxes = stream.from_slice(&[Aabb::new([0.0; 3], [1.0; 3]); 3])?;
    /// assert_eq!(broad_phase.update_device(boxes.slice())?.pairs, 3);
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Margin`] as [`BroadPhase::new`], and [`Error::Gpu`] where the device cannot load
    /// the kernels or lacks memory.
    #[cfg(cuda)]
    pub fn on_stream(stream: &gpu::Stream, config: Config) -> Result<Self> {
        check_margin(&config)?;
        let (backend, device) = (crate::Backend::Cuda, Some(stream.device().info().ordinal));
        let config = Config {
            backend,
            device,
            ..config
        };
        Chosen::on_stream(stream, config).map(Self::with)
    }

    /// A broad phase on a device of `wgpu` that the caller has opened, such as that of a renderer.
    /// [`Config::backend`] is [`Backend::Wgpu`](crate::Backend::Wgpu) then, whatever was given.
    ///
    /// ```
    /// use sap::{Aabb, Backend, BroadPhase, Config};
    /// use wgpu_device::{Adapters, Device};
    ///
    /// let Ok(device) = Device::new(Adapters::Any) else { return Ok(()) }; // no driver here
    /// let mut broad_phase = BroadPhase::on_wgpu(&device, Config::default())?;
    /// let report = broad_phase.update(&[Aabb::new([0.0; 3], [1.0; 3]); 3])?;
    /// assert_eq!((report.stats.backend, report.pairs), (Backend::Wgpu, 3));
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Margin`] and [`Error::Unsupported`] as [`BroadPhase::new`], and what the device
    /// reports.
    #[cfg(feature = "wgpu")]
    pub fn on_wgpu(device: &wgpu_device::Device, config: Config) -> Result<Self> {
        check_margin(&config)?;
        let backend = crate::Backend::Wgpu;
        Chosen::on_wgpu(device, Config { backend, ..config }).map(Self::with)
    }

    fn with(chosen: Chosen) -> Self {
        let engine = &chosen.engine;
        Self {
            form: None,
            has_failed: false,
            report: Report::none(engine.backend(), engine.config().strategy),
            chosen,
            lookup: Lookup::default(),
        }
    }

    /// Takes the boxes of a frame and finds all their pairs.
    ///
    /// O(n log n + pairs) where boxes are spread out; [`Stats::tests`](crate::Stats::tests) tells.
    /// A frame that is the same as the last costs one comparison with it.
    ///
    /// ```
    /// use sap::{Aabb, BroadPhase, Config, Error};
    ///
    /// let mut broad_phase = BroadPhase::new(Config::default())?;
    /// broad_phase.update(&[Aabb::new([0.0; 3], [1.0; 3]); 2])?;
    /// let broken = [Aabb::new([0.0; 3], [1.0; 3]), Aabb::new([f32::NAN; 3], [1.0; 3])];
    /// assert!(matches!(broad_phase.update(&broken), Err(Error::InvalidAabb { index: 1, .. })));
    /// assert_eq!(broad_phase.pairs().len(), 1); // the last result is still there
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidAabb`] for an invalid box (unless they are skipped), [`Error::TooManyPairs`]
    /// with the exact count where the pairs do not fit, [`Error::LengthMismatch`],
    /// [`Error::ExcludedOrder`], [`Error::ChangedIndex`] and [`Error::TooManyBoxes`] for a frame
    /// whose parts do not agree, [`Error::OutOfMemory`], and what the sort or the device reports.
    pub fn update<'a>(&mut self, frame: impl Into<Frame<'a>>) -> Result<&Report> {
        let frame = frame.into();
        if self.is_unchanged(&frame) {
            self.keep_all();
            return Ok(&self.report);
        }
        let updated = self.update_frame(frame);
        self.publish(updated)
    }

    /// Tells whether the caller's list says that a frame is the last one again.
    #[inline]
    fn is_unchanged(&self, frame: &Frame) -> bool {
        frame.changed.is_some_and(<[_]>::is_empty)
            && !self.has_failed
            && self.form.is_some()
            && self.form == Form::of(frame)
            && (frame.excluded.is_empty() || self.has_excluded(frame.excluded))
    }

    /// Tells whether these were the excluded pairs of the last update.
    #[inline(never)]
    fn has_excluded(&self, excluded: &[Pair]) -> bool {
        self.chosen.engine.excluded() == excluded
    }

    /// Completes an update in which nothing changed.
    ///
    /// A game comes here with cold caches, where each line and each page costs 0.1 us. So this and
    /// [`BroadPhase::is_unchanged`] read and write this struct only, and leave the times at zero:
    /// reading the clock would take as long. The engine's lists of events stay: without events in
    /// the report they are not shown.
    #[inline]
    fn keep_all(&mut self) {
        (self.report.started, self.report.ended) = (0, 0);
        self.report.stats.tests = 0;
        self.report.stats.sorts = Sorts::default();
        self.report.stats.timings = Timings::default();
    }

    /// Updates by a frame that may differ from the last.
    #[inline(never)]
    fn update_frame(&mut self, mut frame: Frame) -> Result<Report> {
        frame.check_lengths()?;
        frame.check_excluded()?;
        if self.has_failed {
            frame.changed = None;
        }
        let report = self.chosen.run(|engine| engine.update(&frame))?;
        let is_known = report.stats.backend == Backend::Cpu && report.invalid.is_none();
        self.form = Form::of(&frame).filter(|_| is_known);
        Ok(report)
    }

    /// Takes the result of an update.
    fn publish(&mut self, updated: Result<Report>) -> Result<&Report> {
        self.has_failed = updated.is_err();
        self.report = updated?;
        self.lookup = Lookup::default();
        Ok(&self.report)
    }

    /// Returns the pairs of the last update, sorted by `(a, b)`. After an `update_device` or
    /// `update_wgpu` they are on the device: [`BroadPhase::download`] copies them to the host, and
    /// comes first.
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
    /// After an `update_device` or `update_wgpu` without [`BroadPhase::download`]: an empty list
    /// would be taken for the result.
    #[must_use]
    pub fn pairs(&self) -> &[Pair] {
        self.chosen.engine.pairs()
    }

    /// Returns the pairs of the last update that the one before did not have, sorted. Empty with
    /// [`Config::events`] off.
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
    /// After an `update_device` or `update_wgpu` without [`BroadPhase::download`]: an empty list
    /// would be taken for the result.
    #[must_use]
    pub fn started(&self) -> &[Pair] {
        match self.form {
            Some(_) if self.report.started == 0 => &[],
            _ => self.chosen.engine.started(),
        }
    }

    /// Returns the pairs that the update before had and the last has not, sorted; see
    /// [`BroadPhase::started`].
    ///
    /// # Panics
    ///
    /// After an `update_device` or `update_wgpu` without [`BroadPhase::download`]: an empty list
    /// would be taken for the result.
    #[must_use]
    pub fn ended(&self) -> &[Pair] {
        match self.form {
            Some(_) if self.report.ended == 0 => &[],
            _ => self.chosen.engine.ended(),
        }
    }

    /// Copies the pairs and events of the last `update_device` or `update_wgpu` to the host, 8
    /// bytes each, so that [`BroadPhase::pairs`], [`BroadPhase::started`] and
    /// [`BroadPhase::ended`] can be read. Does nothing after any other update.
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
    /// [`Error::OutOfMemory`] where the host has no memory for them, and what the device reports.
    /// Those on the device are still there then: call it again.
    pub fn download(&mut self) -> Result<()> {
        self.chosen.engine.download()
    }

    /// Returns what the last update found, and how.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// How the last update that looked at all boxes cut the space: nothing where it swept along one
    /// axis at once, and on the CPU for frames with worlds, each of which has its own columns.
    ///
    /// ```
    /// use sap::internals::Subdivision;
    /// use sap::{Aabb, Backend, BroadPhase, Config, Strategy};
    ///
    /// let (backend, strategy) = (Backend::Cpu, Strategy::Subdivided);
    /// let mut broad_phase = BroadPhase::new(Config { backend, strategy, ..Config::default() })?;
    /// assert_eq!(broad_phase.subdivision(), None);
    /// let at = |i: usize| [i % 20, i / 20 % 20, i / 400].map(|x| x as f32);
    /// let small = |min: [f32; 3]| Aabb::new(min, min.map(|x| x + 0.5));
    /// let boxes: Vec<Aabb> = (0..8000).map(at).map(small).collect();
    /// broad_phase.update(&boxes)?;
    /// let Some(Subdivision::Columns { axes, cuts }) = broad_phase.subdivision() else { panic!() };
    /// assert!(!axes.contains(&broad_phase.report().stats.axis));
    /// assert!(cuts.iter().flatten().all(|cut| (0.0..20.0).contains(cut)));
    /// # Ok::<(), sap::Error>(())
    /// ```
    #[doc(hidden)]
    #[must_use]
    pub fn subdivision(&self) -> Option<Subdivision> {
        let ran = self.report.n > 0 && self.report.stats.strategy == Strategy::Subdivided;
        ran.then(|| self.chosen.engine.subdivision())?
    }

    /// Returns why [`Backend::Auto`](crate::Backend::Auto) works on the CPU although this build can
    /// use a GPU: the error of the search for a GPU, or the error with which the GPU failed later.
    /// Returns None while a GPU works, or if none was tried.
    ///
    /// A GPU that fails in [`BroadPhase::update`], [`BroadPhase::overlaps_between`] or
    /// [`BroadPhase::for_each_pair_chunk`] (before the first chunk) is not used again. The CPU
    /// repeats the call, with events relative to the last result, and
    /// [`Stats::backend`](crate::Stats::backend) is [`Backend::Cpu`](crate::Backend::Cpu) from then
    /// on.
    ///
    /// What only the device had is lost: the boxes loosened by margins, which the next update
    /// loosens again; the boxes for queries, until the next update; and pairs of `update_device` or
    /// `update_wgpu` that were not downloaded, so that the next update reports all pairs as
    /// started.
    ///
    /// ```
    /// use sap::{Backend, BroadPhase, Config};
    ///
    /// let broad_phase = BroadPhase::new(Config::default())?;
    /// if let Some(reason) = broad_phase.fallback() {
    ///     println!("on the CPU: {reason}");
    ///     assert_eq!(broad_phase.report().stats.backend, Backend::Cpu);
    /// }
    /// # Ok::<(), sap::Error>(())
    /// ```
    #[must_use]
    pub const fn fallback(&self) -> Option<&Error> {
        self.chosen.fallback.as_ref()
    }

    /// Returns the configuration that this broad phase was created with.
    #[must_use]
    pub fn config(&self) -> &Config {
        self.chosen.engine.config()
    }

    /// Forgets the last update: its boxes, pairs and margins. The next update starts every pair
    /// that it finds.
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
        let engine = &mut self.chosen.engine;
        engine.clear();
        self.form = None;
        self.report = Report::none(engine.backend(), engine.config().strategy);
        self.lookup = Lookup::default();
    }

    /// Finds the overlapping pairs between two sets: `Pair::a` indexes the first and `Pair::b` the
    /// second; sorted. Margins do not apply; the excluded pairs are those of the first frame, as
    /// (index in the first, index in the second). The result of the last update stays.
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
    /// Those of [`BroadPhase::update`]. The index of an invalid box is that in its own set; the
    /// first set is checked first.
    pub fn overlaps_between<'a, 'b>(
        &mut self,
        a: impl Into<Frame<'a>>,
        b: impl Into<Frame<'b>>,
    ) -> Result<Vec<Pair>> {
        let (a, b) = (a.into(), b.into());
        a.check_lengths()?;
        b.check_lengths()?;
        a.check_excluded_between()?;
        let pairs = self.chosen.run(|engine| engine.overlaps_between(&a, &b))?;
        self.report.stats.backend = self.chosen.engine.backend();
        Ok(pairs)
    }

    /// Delivers all pairs of a frame, sorted over all calls, at most `chunk` at once (0 counts as
    /// 1), in memory that does not grow with their number. Margins do not apply. The result of the
    /// last update stays.
    ///
    /// If the pairs do not fit in memory at once, it takes about as long as two updates, and the
    /// time to sort the pairs.
    ///
    /// ```
    /// use sap::{Aabb, BroadPhase, Config};
    ///
    /// let boxes = [Aabb::new([0.0; 3], [1.0; 3]); 100];
    /// let mut broad_phase = BroadPhase::new(Config::default())?;
    /// let mut most = 0;
    /// let report =
    ///     broad_phase.for_each_pair_chunk(&boxes, 1000, |pairs| most = most.max(pairs.len()))?;
    /// assert_eq!((report.pairs, report.chunks, most), (4950, 5, 1000));
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`BroadPhase::update`], except [`Error::TooManyPairs`]. Nothing was delivered
    /// before an error, unless a device failed or memory was refused in the midst of it.
    pub fn for_each_pair_chunk<'a>(
        &mut self,
        frame: impl Into<Frame<'a>>,
        chunk: usize,
        mut f: impl FnMut(&[Pair]),
    ) -> Result<ChunkReport> {
        let frame = frame.into();
        frame.check_lengths()?;
        frame.check_excluded()?;
        let chunk = chunk.max(1);
        let mut delivered = false;
        let mut hand = |pairs: &[Pair]| {
            delivered = true;
            f(pairs);
        };
        let Chosen { engine, pool, .. } = &mut self.chosen;
        let report = match pool.run(|| engine.for_each_pair_chunk(&frame, chunk, &mut hand)) {
            // Pairs were delivered that must not come twice.
            Err(error) if !delivered => self.chosen.replace(error, |engine| {
                engine.for_each_pair_chunk(&frame, chunk, &mut f)
            }),
            done => done,
        }?;
        self.report.stats.backend = self.chosen.engine.backend();
        Ok(report)
    }

    /// Updates by boxes, filters and worlds in the memory of the CUDA device
    /// ([`DeviceFrame`](crate::DeviceFrame)) on which the engine works, like
    /// [`BroadPhase::update`]. Pairs and events stay there too ([`BroadPhase::device_pairs`]) until
    /// [`BroadPhase::download`] copies them to the host.
    ///
    /// The lists are read on [`BroadPhase::stream`]: work that writes them on another stream must
    /// be ordered before by an event. Once this returns without an error, they may be overwritten
    /// or freed; after an error, once the stream is done. A last kernel, which reads none of them,
    /// may still be running.
    ///
    /// ```
    /// use sap::{Aabb, Backend, BroadPhase, Config};
    ///
    /// let config = Config { backend: Backend::Cuda, ..Config::default() };
    /// let Ok(mut broad_phase) = BroadPhase::new(config) else { return Ok(()) }; // no GPU here
    /// let Some(stream) = broad_phase.stream().cloned() else { return Ok(()) };
    /// let boxes = stream.from_slice(&[Aabb::new([0.0; 3], [1.0; 3]); 3])?;
    /// assert_eq!(broad_phase.update_device(boxes.slice())?.pairs, 3);
    /// assert_eq!(broad_phase.device_pairs()?.len(), 3);
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`BroadPhase::update`], and [`Error::NoCuda`] on another backend. A
    /// GPU that fails here is an error with [`Backend::Auto`](crate::Backend::Auto) too, since only
    /// it has the boxes.
    #[cfg(cuda)]
    pub fn update_device<'a>(
        &mut self,
        frame: impl Into<crate::DeviceFrame<'a>>,
    ) -> Result<&Report> {
        let frame = frame.into();
        let checked = frame
            .check_lengths()
            .and_then(|()| frame.only_excluded().check_excluded());
        let updated = checked.and_then(|()| self.cuda_mut()?.update_device(&frame));
        self.publish(updated)
    }

    /// Finds the overlapping pairs between two sets in the memory of the CUDA device, like
    /// [`BroadPhase::overlaps_between`], and leaves them there, sorted. Boxes, filters and worlds
    /// are on the device; the excluded pairs of the first set come from the host. The result of the
    /// last update stays.
    ///
    /// The lists are read as by [`BroadPhase::update_device`]. The host waits for the count of
    /// pairs. Read them on [`BroadPhase::stream`], or on another stream that waits for an event of
    /// it; the next call of this broad phase may overwrite them.
    ///
    /// ```
    /// use sap::{Aabb, Backend, BroadPhase, Config, Pair};
    ///
    /// let config = Config { backend: Backend::Cuda, ..Config::default() };
    /// let Ok(mut broad_phase) = BroadPhase::new(config) else { return Ok(()) }; // no GPU here
    /// let Some(stream) = broad_phase.stream().cloned() else { return Ok(()) };
    /// let bullets = stream.from_slice(&[Aabb::new([0.4; 3], [0.6; 3])])?;
    /// let targets = [Aabb::new([5.0; 3], [6.0; 3]), Aabb::new([0.0; 3], [1.0; 3])];
    /// let targets = stream.from_slice(&targets)?;
    /// let pairs = broad_phase.overlaps_between_device(bullets.slice(), targets.slice())?;
    /// assert_eq!(stream.to_vec(pairs)?, [Pair { a: 0, b: 1 }]);
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`BroadPhase::overlaps_between`], and [`Error::NoCuda`] on another backend. A GPU
    /// that fails here is an error with [`Backend::Auto`](crate::Backend::Auto) too.
    #[cfg(cuda)]
    pub fn overlaps_between_device<'a, 'b>(
        &mut self,
        a: impl Into<crate::DeviceFrame<'a>>,
        b: impl Into<crate::DeviceFrame<'b>>,
    ) -> Result<gpu::Slice<'_, Pair>> {
        let (a, b) = (a.into(), b.into());
        a.check_lengths()?;
        b.check_lengths()?;
        a.only_excluded().check_excluded_between()?;
        self.cuda_mut()?.between([a.source, b.source])
    }

    /// Returns the pairs of the last update in the memory of the device, sorted. Read them on
    /// [`BroadPhase::stream`], or on another stream that waits for an event of it; the next call
    /// that changes the broad phase may overwrite them.
    ///
    /// # Errors
    ///
    /// [`Error::NoCuda`] for an engine that does not work on CUDA.
    #[cfg(cuda)]
    pub fn device_pairs(&self) -> Result<gpu::Slice<'_, Pair>> {
        self.cuda()?.device_pairs()
    }

    /// Returns the pairs that the last update started, and those that it ended, as
    /// [`BroadPhase::device_pairs`]; none with [`Config::events`] off.
    ///
    /// ```
    /// use sap::{Aabb, Backend, BroadPhase, Config, Pair};
    ///
    /// let config = Config { backend: Backend::Cuda, ..Config::default() };
    /// let Ok(mut broad_phase) = BroadPhase::new(config) else { return Ok(()) }; // no GPU here
    /// let stream = broad_phase.stream().expect("it works on CUDA").clone();
    /// let at = |x: f32| Aabb::new([x, 0.0, 0.0], [x + 1.0, 1.0, 1.0]);
    /// for (x, events) in [(0.5, [1, 0]), (5.0, [0, 1])] {
    ///     let boxes = stream.from_slice(&[at(0.0), at(x)])?;
    ///     broad_phase.update_device(boxes.slice())?;
    ///     let lists = broad_phase.device_events()?;
    ///     assert_eq!(lists.map(|list| list.len()), events);
    ///     for list in lists {
    ///         assert!(stream.to_vec(list)?.iter().all(|&pair| pair == Pair { a: 0, b: 1 }));
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoCuda`] for an engine that does not work on CUDA.
    #[cfg(cuda)]
    pub fn device_events(&self) -> Result<[gpu::Slice<'_, Pair>; 2]> {
        self.cuda()?.device_events()
    }

    /// Returns the stream that the engine works on; none for an engine on another backend.
    #[cfg(cuda)]
    #[must_use]
    pub fn stream(&self) -> Option<&gpu::Stream> {
        Some(self.chosen.cuda()?.stream())
    }

    #[cfg(cuda)]
    fn cuda(&self) -> Result<&crate::cuda::Engine> {
        let backend = self.chosen.engine.backend();
        self.chosen.cuda().ok_or_else(|| not_on_cuda(backend))
    }

    #[cfg(cuda)]
    fn cuda_mut(&mut self) -> Result<&mut crate::cuda::Engine> {
        let backend = self.chosen.engine.backend();
        self.chosen.cuda_mut().ok_or_else(|| not_on_cuda(backend))
    }

    /// The threads of [`Config::threads`].
    pub(crate) fn pool(&self) -> &OwnPool {
        &self.chosen.pool
    }

    /// The engine at work.
    pub(crate) fn engine(&self) -> &dyn Engine {
        &*self.chosen.engine
    }
}

fn check_margin(config: &Config) -> Result<()> {
    let margin = config.margin;
    if margin.is_finite() && margin >= 0.0 {
        Ok(())
    } else {
        Err(Error::Margin { margin })
    }
}

#[cfg(cuda)]
fn not_on_cuda(backend: Backend) -> Error {
    Error::NoCuda {
        looked_for: format!("this broad phase works on the backend `{backend}`"),
    }
}
