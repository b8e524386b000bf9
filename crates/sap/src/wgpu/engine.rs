//! The engine: the state between updates, and the calls.

use super::gpu::Gpu;
use super::input::{Input, Source};
use super::lists::PairLists;
use super::pairs::WgpuPairs;
use super::resident::Resident;
use super::search::Searcher;
use crate::cpu::shared::{
    Clock, Cuts, Delivery, MIN_ROUND_PAIRS, PairLimit, ROUND_PAIRS_PER_BOX, Scene, axes,
    check_count, difference, max_pairs, plan_without_tree, read_alone,
};
use crate::engine::assert_downloaded;
use crate::handover::Last;
use crate::query::Labels;
use crate::subdivision::Subdivision;
use crate::try_alloc::{self, concat};
use crate::{
    Aabb, Aabb64, Backend, ChunkReport, Config, Error, Filter, Frame, Invalid, Pair, Report,
    Result, Sorts, Stats, Strategy,
};
use std::borrow::Cow;
use std::time::Instant;
use wgpu_device::{Adapters, Device};

/// The engine on `wgpu`: the last frame, its lists, and the memory of searches.
pub(crate) struct Engine {
    pub(super) config: Config,
    pub(super) search: Searcher,
    /// The last frame of the host, and memory for the next.
    pub(super) scene: Scene,
    spare: Scene,
    /// The last frame of the device, with its lists.
    pub(super) resident: Resident,
    /// Whether the last frame is that of the device.
    pub(super) is_on_device: bool,
    /// The report of the last update; None before the first.
    pub(super) last: Option<Report>,
    /// How the last update that looked at all boxes cut the space.
    pub(super) subdivision: Option<Subdivision>,
    /// The number of pairs of the last call with two sets.
    last_between: u64,
    /// The lists of the last update on the host, if `is_on_host`; else they are empty.
    pub(super) pairs: Vec<Pair>,
    pub(super) started: Vec<Pair>,
    pub(super) ended: Vec<Pair>,
    pub(super) is_on_host: bool,
}

/// What it took to find all pairs of some boxes.
#[derive(Default)]
pub(super) struct Cost {
    pub(super) tests: u64,
    pub(super) sorts: Sorts,
    pub(super) regrown: u32,
    pub(super) axis: usize,
    pub(super) subdivision: Option<Subdivision>,
}

impl Cost {
    /// Takes the cost of lists that were found along an axis, and perhaps in columns.
    pub(super) fn new(lists: PairLists, axis: usize, cuts: [Vec<f32>; 2]) -> Result<Self> {
        Ok(Self {
            tests: lists.tests(),
            regrown: lists.regrown,
            axis,
            subdivision: lists.in_columns().then(|| columns(axis, cuts)),
            sorts: lists.sorts()?,
        })
    }

    /// Returns the report of `n` boxes, without numbers of pairs.
    pub(super) fn report(&self, config: &Config, n: usize, clock: &mut Clock) -> Report {
        let strategy = match config.strategy {
            Strategy::Auto if self.subdivision.is_some() => Strategy::Subdivided,
            Strategy::Auto => Strategy::Sweep,
            strategy => strategy,
        };
        let none = Report::none(Backend::Wgpu, strategy);
        Report {
            n,
            stats: Stats {
                axis: self.axis,
                tests: self.tests,
                regrown: self.regrown,
                sorts: self.sorts,
                timings: clock.finish(),
                ..none.stats
            },
            ..none
        }
    }
}

/// Returns how cuts of the two other axes subdivide the space.
pub(super) const fn columns(axis: usize, cuts: [Vec<f32>; 2]) -> Subdivision {
    let [_, u, v] = axes(axis);
    Subdivision::Columns { axes: [u, v], cuts }
}

/// Returns the report of an update that found everything as in the last.
pub(super) fn unchanged(last: &Report, invalid: Option<Invalid>, clock: &mut Clock) -> Report {
    let last = last.clone();
    Report {
        invalid,
        started: 0,
        ended: 0,
        stats: Stats {
            tests: 0,
            regrown: 0,
            sorts: Sorts::default(),
            timings: clock.finish(),
            ..last.stats
        },
        ..last
    }
}

impl Engine {
    /// Creates an engine on the best adapter of a kind.
    ///
    /// # Errors
    ///
    /// [`Error::NoWgpu`] where there is none, [`Error::Unsupported`] for a strategy that is not
    /// there, [`Error::Wgpu`] where the device is too small for the kernels.
    pub(crate) fn new(config: Config, adapters: Adapters) -> Result<Self> {
        check_strategy(config.strategy)?;
        Ok(Self::with(config, Gpu::open(adapters)?))
    }

    /// Creates an engine on a device of the caller.
    pub(crate) fn on(config: Config, device: &Device) -> Result<Self> {
        check_strategy(config.strategy)?;
        Ok(Self::with(config, Gpu::new(device)?))
    }

    fn with(config: Config, gpu: Gpu) -> Self {
        Self {
            config,
            resident: Resident::new(gpu.clone()),
            is_on_device: false,
            is_on_host: true,
            search: Searcher::new(gpu),
            scene: Scene::default(),
            spare: Scene::default(),
            last: None,
            subdivision: None,
            last_between: 0,
            pairs: Vec::new(),
            started: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Returns the pairs where they are on the device.
    pub(crate) fn device_pairs(&self) -> Option<WgpuPairs<'_>> {
        self.is_on_device.then(|| self.resident.pairs.view())
    }

    /// Returns the launches since the last call with the milliseconds that each took, and has the
    /// next ones measured.
    pub(crate) fn launches(&mut self) -> Vec<(&'static str, f64)> {
        let times = &mut self.search.batch.times;
        times.replace(Vec::new()).unwrap_or_default()
    }

    fn on_host<'a>(&self, list: &'a [Pair]) -> &'a [Pair] {
        assert_downloaded(self.is_on_host);
        list
    }

    /// Downloads the last frame, if it is on the device, for an update with one of the host.
    fn bring_to_host(&mut self) -> Result<()> {
        if self.is_on_device {
            crate::engine::Engine::download(self)?;
            let invalid = self.last.as_ref().and_then(|last| last.invalid);
            let device = self.search.gpu().device();
            self.scene = self.resident.scene.download(device, invalid)?;
        }
        Ok(())
    }

    /// Updates by a scene that was read.
    fn update_by(&mut self, scene: &Scene, clock: &mut Clock) -> Result<Report> {
        if let Some(last) = &self.last
            && scene.same_pairs(&self.scene)
        {
            self.started.clear();
            self.ended.clear();
            return Ok(unchanged(last, scene.invalid, clock));
        }
        let first = self.config.initial_pair_capacity.unwrap_or(0);
        let expected = self.pairs.len().max(first).max(scene.boxes.len()) as u64;
        let (pairs, cost) = self.find(scene, &scene.excluded, 0, expected, clock)?;
        let (started, ended) = if self.config.events {
            difference(&self.pairs, &pairs)?
        } else {
            Default::default()
        };
        clock.lap(|timings| &mut timings.events);
        self.pairs = pairs;
        (self.started, self.ended) = (started, ended);
        let report = Report {
            pairs: self.pairs.len() as u64,
            started: self.started.len() as u64,
            ended: self.ended.len() as u64,
            invalid: scene.invalid,
            ..cost.report(&self.config, scene.boxes.len(), clock)
        };
        self.subdivision = cost.subdivision;
        Ok(report)
    }

    /// Finds all pairs of a scene, or of its first `first_set` boxes with the others.
    fn find(
        &mut self,
        scene: &Scene,
        excluded: &[Pair],
        first_set: usize,
        expected: u64,
        clock: &mut Clock,
    ) -> Result<(Vec<Pair>, Cost)> {
        let boxes = scene.boxes.len();
        let memory = match first_set {
            0 => PairLimit::of_update(&self.config, boxes, max_pairs(boxes)),
            first => PairLimit::new(&self.config, boxes, first as u64 * (boxes - first) as u64),
        };
        let max = memory.max;
        let mut pairs = Vec::new();
        if max == 0 {
            return Ok((pairs, Cost::default()));
        }
        let input = self.input(scene, excluded, first_set);
        clock.lap(|timings| &mut timings.bounds);
        let arranged = self.search.arrange(&input, clock)?;
        let mut lists = PairLists::new(&mut self.search, arranged, expected.min(max))?;
        clock.lap(|timings| &mut timings.sweep);
        let count = lists.count();
        memory.check(count, 0)?;
        lists.deliver(count, clock, |search, packed, clock| {
            let list = search.read_pairs(packed, clock)?;
            if pairs.is_empty() {
                pairs = list;
                return Ok(());
            }
            try_alloc::reserve(&mut pairs, count as usize)?;
            pairs.extend_from_slice(&list);
            Ok(())
        })?;
        Ok((pairs, Cost::new(lists, input.axis, input.cuts)?))
    }

    /// Plans a search in a scene.
    fn input<'a>(&self, scene: &'a Scene, excluded: &'a [Pair], first_set: usize) -> Input<'a> {
        let worlds = scene.worlds.as_deref();
        let plan = plan_without_tree(&scene.boxes, worlds, self.config.strategy);
        // Boxes of different worlds are apart already.
        let cuts = match worlds {
            None => plan.columns.cuts.each_ref().map(Cuts::to_vec),
            Some(_) => Default::default(),
        };
        Input {
            source: Source::Host(scene),
            excluded,
            first_set,
            rule: self.config.rule,
            axis: plan.axis,
            cuts,
        }
    }
}

impl crate::engine::Engine for Engine {
    fn config(&self) -> &Config {
        &self.config
    }

    fn backend(&self) -> Backend {
        Backend::Wgpu
    }

    fn update(&mut self, frame: &Frame) -> Result<Report> {
        check_count(frame)?;
        let mut clock = Clock::start();
        self.bring_to_host()?;
        let mut scene = std::mem::take(&mut self.spare);
        let (on_invalid, margin) = (self.config.on_invalid, self.config.margin);
        let result = scene
            .read(frame, on_invalid, margin, &self.scene)
            .and_then(|()| self.update_by(&scene, &mut clock));
        if result.is_ok() {
            std::mem::swap(&mut self.scene, &mut scene);
        }
        self.spare = scene;
        let report = result?;
        self.is_on_device = false;
        self.last = Some(report.clone());
        Ok(report)
    }

    fn pairs(&self) -> &[Pair] {
        self.on_host(&self.pairs)
    }

    fn started(&self) -> &[Pair] {
        self.on_host(&self.started)
    }

    fn ended(&self) -> &[Pair] {
        self.on_host(&self.ended)
    }

    /// Copies the pairs of the last update to the host, unless they are there, and compares them
    /// with those of the one before.
    fn download(&mut self) -> Result<()> {
        if self.is_on_host {
            return Ok(());
        }
        let (resident, device) = (&self.resident, self.search.gpu().device());
        let pairs = resident.pairs.download(device)?;
        let (started, ended) = if resident.has_events {
            difference(&resident.before.download(device)?, &pairs)?
        } else {
            Default::default()
        };
        (self.pairs, self.started, self.ended) = (pairs, started, ended);
        self.is_on_host = true;
        Ok(())
    }

    fn subdivision(&self) -> Option<Subdivision> {
        self.subdivision.clone()
    }

    fn boxes(&self) -> Result<Cow<'_, [Aabb]>> {
        if self.is_on_device {
            let device = self.search.gpu().device();
            return Ok(self.resident.scene.boxes(device)?.into());
        }
        Ok(self.scene.given().into())
    }

    fn labels(&self) -> Result<Labels<'_>> {
        if self.is_on_device {
            return self.resident.scene.labels(self.search.gpu().device());
        }
        Ok(self.scene.labels())
    }

    fn clear(&mut self) {
        self.scene = Scene::default();
        self.last = None;
        self.resident.clear();
        (self.is_on_device, self.is_on_host) = (false, true);
        self.subdivision = None;
        self.pairs.clear();
        self.started.clear();
        self.ended.clear();
    }

    fn overlaps_between(&mut self, a: &Frame, b: &Frame) -> Result<Vec<Pair>> {
        let (first, second) = (read_alone(&self.config, a)?, read_alone(&self.config, b)?);
        let scene = joined(&first, &second)?;
        let expected = self.last_between.max(scene.boxes.len() as u64);
        let first_set = first.boxes.len();
        if first_set == 0 {
            return Ok(Vec::new());
        }
        let clock = &mut Clock::start();
        let (pairs, _) = self.find(&scene, &first.excluded, first_set, expected, clock)?;
        self.last_between = pairs.len() as u64;
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
        let boxes = scene.boxes.len();
        let mut delivery = Delivery::new(chunk, f);
        let mut tests = 0;
        if boxes > 1 {
            let clock = &mut Clock::start();
            let input = self.input(&scene, &scene.excluded, 0);
            let arranged = self.search.arrange(&input, clock)?;
            let round = MIN_ROUND_PAIRS.max(ROUND_PAIRS_PER_BOX * boxes as u64);
            let round = PairLimit::new(&self.config, boxes, max_pairs(boxes)).round(round);
            let expected = round.min(boxes as u64);
            let mut lists = PairLists::new(&mut self.search, arranged, expected)?;
            lists.deliver(round, clock, |search, packed, clock| {
                delivery.deliver(&search.read_pairs(packed, clock)?);
                Ok(())
            })?;
            tests = lists.tests();
        }
        Ok(ChunkReport {
            pairs: delivery.pairs,
            chunks: delivery.chunks,
            invalid: scene.invalid,
            tests,
            ms: start.elapsed().as_secs_f64() * 1e3,
        })
    }

    fn last(&mut self) -> Result<Last> {
        if self.is_on_device {
            // What nobody has read is lost with the device, as `BroadPhase::fallback` says.
            self.download().ok();
            let device = self.search.gpu().device();
            self.scene = (self.resident.scene.download(device, None)).unwrap_or_default();
        }
        let scene = &self.scene;
        let stored = if scene.tight.is_empty() {
            &[]
        } else {
            &*scene.boxes
        };
        Ok(Last {
            pairs: concat(&[&self.pairs])?,
            started: concat(&[&self.started])?,
            ended: concat(&[&self.ended])?,
            given: concat(&[scene.given()])?,
            labels: scene.labels().into_owned()?,
            stored: concat(&[stored])?,
        })
    }
}

fn check_strategy(strategy: Strategy) -> Result<()> {
    match strategy {
        Strategy::Auto | Strategy::Sweep | Strategy::Subdivided => Ok(()),
        Strategy::Endpoints => Err(Error::Unsupported {
            backend: Backend::Wgpu.name(),
            what: format!("the strategy `{strategy}`"),
        }),
    }
}

/// Fails if an update found more pairs, of at most `max`, than may be listed.
pub(super) fn check_pairs(config: &Config, boxes: usize, max: u64, count: u64) -> Result<()> {
    PairLimit::of_update(config, boxes, max).check(count, 0)
}

/// Returns the boxes of two sets, one after the other. What only one set has is the default for the
/// other.
fn joined(first: &Scene, second: &Scene) -> Result<Scene> {
    fn both<T: Copy>(
        [first, second]: [&Option<Vec<T>>; 2],
        boxes: [usize; 2],
        default: T,
    ) -> Result<Option<Vec<T>>> {
        if first.is_none() && second.is_none() {
            return Ok(None);
        }
        let mut all = Vec::new();
        try_alloc::reserve(&mut all, boxes[0] + boxes[1])?;
        for (list, boxes) in [(first, boxes[0]), (second, boxes[1])] {
            match list {
                Some(list) => all.extend_from_slice(list),
                None => all.resize(all.len() + boxes, default),
            }
        }
        Ok(Some(all))
    }
    let boxes = [first, second].map(|scene| scene.boxes.len());
    let is_exact = first.exact.is_some() || second.exact.is_some();
    let mut scene = Scene {
        boxes: concat(&[&first.boxes, &second.boxes])?,
        filters: both([&first.filters, &second.filters], boxes, Filter::default())?,
        worlds: both([&first.worlds, &second.worlds], boxes, 0)?,
        ..Scene::default()
    };
    if is_exact {
        // Boxes that were given as `f32` are that exactly.
        scene.make_exact()?;
        for (set, start) in [(first, 0), (second, boxes[0])] {
            let exact: &[Aabb64] = set.exact.as_deref().unwrap_or_default();
            if let Some(all) = &mut scene.exact {
                all[start..start + exact.len()].copy_from_slice(exact);
            }
        }
    }
    Ok(scene)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu;
    use crate::engine::Engine as _;
    use crate::wgpu::or_skipped;

    /// Long lists and many tests, in parts that are as small as those of a frame too large for a
    /// test.
    #[test]
    fn lists_and_launches_in_parts() {
        for strategy in [Strategy::Sweep, Strategy::Subdivided] {
            let config = Config {
                strategy,
                ..Config::default()
            };
            if let Some(engine) = or_skipped(Engine::new(config, Adapters::Any)) {
                in_parts(engine);
            }
        }
    }

    fn in_parts(mut engine: Engine) {
        (engine.search.max_list, engine.search.piece_tests) = (2000, 5001);
        let at = |i: usize, step: f32| i as f32 % 7.0 * step;
        let boxes: Vec<Aabb> = (0..400)
            .map(|i| [at(i, 0.3), at(i / 7, 0.4), at(i / 49, 0.5)])
            .map(|min| Aabb::new(min, min.map(|x| x + 1.0)))
            .collect();
        let worlds: Vec<u32> = (0..400).map(|i| i % 3 * 5).collect();
        let frame = Frame::boxes(&boxes);
        for frame in [frame, frame.worlds(&worlds)] {
            let mut on_cpu = cpu::Engine::new(Config::default());
            on_cpu.update(&frame).expect("the frame is valid");
            let report = engine.update(&frame).expect("the device answers");
            assert!(
                report.stats.tests > 2 * 5001 && report.pairs > 3 * 2000,
                "{report:?}"
            );
            assert!(engine.pairs() == on_cpu.pairs());
            let (mut all, mut longest) = (Vec::new(), 0);
            let mut deliver = |pairs: &[Pair]| {
                longest = longest.max(pairs.len());
                all.extend_from_slice(pairs);
            };
            let report = engine.for_each_pair_chunk(&frame, usize::MAX, &mut deliver);
            assert!(report.is_ok_and(|report| report.chunks > 3));
            assert!(all == on_cpu.pairs() && longest <= 2000);
            let [x, y] = [&mut engine as &mut dyn crate::engine::Engine, &mut on_cpu]
                .map(|engine| engine.overlaps_between(&frame, &Frame::boxes(&boxes[..300])));
            assert!(x.is_ok_and(|pairs| pairs.len() > 1000 && pairs == y.expect("no error")));
        }
    }
}
