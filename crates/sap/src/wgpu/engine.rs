//! The engine: the state between updates, and the calls.

use super::frame::WgpuFrame;
use super::gpu::Gpu;
use super::input::Input;
use super::lists::Lists;
use super::pairs::{Part, WgpuPairs};
use super::search::Search;
use crate::cpu::shared::{
    Clock, Cuts, Delivery, MIN_ROUND_PAIRS, Memory, ROUND_PAIRS_PER_BOX, Scene, UNCHECKED_PAIRS,
    axes, check_count, difference, max_pairs, plan_without_tree, read_alone,
};
use crate::last::Last;
use crate::query::Labels;
use crate::subdivision::Subdivision;
use crate::try_alloc::{self, concat};
use crate::{
    Aabb, Aabb64, Backend, ChunkReport, Config, Error, Filter, Frame, Pair, Report, Result, Sorts,
    Stats, Strategy,
};
use std::borrow::Cow;
use std::time::Instant;
use wgpu_device::{Adapters, BufferUsages, Device};

/// The engine on `wgpu`: the last frame, its lists, and the memory of searches.
pub(crate) struct Engine {
    config: Config,
    search: Search,
    /// The last frame, and memory for the next.
    scene: Scene,
    spare: Scene,
    /// The report of the last update; None before the first.
    last: Option<Report>,
    /// How the last update that looked at all boxes cut the space.
    subdivision: Option<Subdivision>,
    /// The number of pairs of the last call with two sets.
    last_between: u64,
    pairs: Vec<Pair>,
    started: Vec<Pair>,
    ended: Vec<Pair>,
    /// The pairs on the device, after an update with boxes there.
    on_device: Option<Vec<Part>>,
}

/// All pairs of some boxes, and what it took to find them.
#[derive(Default)]
struct AllPairs {
    pairs: Vec<Pair>,
    tests: u64,
    sorts: Sorts,
    regrown: u32,
    axis: usize,
    subdivision: Option<Subdivision>,
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
            search: Search::new(gpu),
            scene: Scene::default(),
            spare: Scene::default(),
            last: None,
            subdivision: None,
            last_between: 0,
            pairs: Vec::new(),
            started: Vec::new(),
            ended: Vec::new(),
            on_device: None,
        }
    }

    pub(crate) fn update_wgpu(&mut self, frame: &WgpuFrame) -> Result<Report> {
        use crate::engine::Engine as _;
        let gpu = self.search.gpu().clone();
        let device = gpu.device();
        let n = frame.n as u64;
        let boxes: Vec<Aabb> = device.download(frame.boxes, 0..24 * n)?.wait()?;
        let mut host = Frame::boxes(&boxes).excluded(frame.excluded);
        let (filters, worlds);
        if let Some(list) = frame.filters {
            filters = device.download(list, 0..16 * n)?.wait::<Filter>()?;
            host = host.filters(&filters);
        }
        if let Some(list) = frame.worlds {
            worlds = device.download(list, 0..4 * n)?.wait::<u32>()?;
            host = host.worlds(&worlds);
        }
        let report = self.update(&host)?;
        let usage = BufferUsages::STORAGE
            | BufferUsages::VERTEX
            | BufferUsages::INDEX
            | BufferUsages::COPY_SRC;
        let parts = self.pairs.chunks(self.search.max_list as usize);
        let parts = parts.map(|part| {
            Ok(Part {
                buffer: device.upload("pairs", part, usage)?,
                pairs: part.len() as u64,
            })
        });
        self.on_device = Some(parts.collect::<Result<_>>()?);
        Ok(report)
    }

    pub(crate) fn device_pairs(&self) -> Option<WgpuPairs<'_>> {
        self.on_device.as_deref().map(WgpuPairs::new)
    }

    /// Updates by a scene that was read.
    fn update_by(&mut self, scene: &Scene, clock: &mut Clock) -> Result<Report> {
        if let Some(last) = &self.last
            && scene.same_pairs(&self.scene)
        {
            let last = last.clone();
            self.started.clear();
            self.ended.clear();
            return Ok(Report {
                invalid: scene.invalid,
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
            });
        }
        let first = self.config.initial_pair_capacity.unwrap_or(0);
        let expected = self.pairs.len().max(first).max(scene.boxes.len()) as u64;
        let found = self.find(scene, &scene.excluded, 0, expected, clock)?;
        let (started, ended) = if self.config.events {
            difference(&self.pairs, &found.pairs)?
        } else {
            Default::default()
        };
        clock.lap(|timings| &mut timings.events);
        let in_columns = found.subdivision.is_some();
        let strategy = match self.config.strategy {
            Strategy::Auto if in_columns => Strategy::Subdivided,
            Strategy::Auto => Strategy::Sweep,
            strategy => strategy,
        };
        self.pairs = found.pairs;
        self.subdivision = found.subdivision;
        (self.started, self.ended) = (started, ended);
        Ok(Report {
            n: scene.boxes.len(),
            pairs: self.pairs.len() as u64,
            started: self.started.len() as u64,
            ended: self.ended.len() as u64,
            invalid: scene.invalid,
            stats: Stats {
                strategy,
                axis: found.axis,
                tests: found.tests,
                regrown: found.regrown,
                sorts: found.sorts,
                timings: clock.finish(),
                ..Report::none(Backend::Wgpu, Strategy::Sweep).stats
            },
        })
    }

    /// Finds all pairs of a scene, or of its first `first_set` boxes with the others.
    fn find(
        &mut self,
        scene: &Scene,
        excluded: &[Pair],
        first_set: usize,
        expected: u64,
        clock: &mut Clock,
    ) -> Result<AllPairs> {
        let boxes = scene.boxes.len();
        let max = match first_set {
            0 => max_pairs(boxes),
            first => first as u64 * (boxes - first) as u64,
        };
        if max == 0 {
            return Ok(AllPairs::default());
        }
        let input = self.input(scene, excluded, first_set);
        clock.lap(|timings| &mut timings.bounds);
        let arranged = self.search.arrange(&input, clock)?;
        let mut lists = Lists::new(&mut self.search, arranged, expected.min(max))?;
        clock.lap(|timings| &mut timings.sweep);
        let count = lists.count();
        let limit = max_listed(&self.config, boxes, max, count);
        if count > limit {
            return Err(Error::TooManyPairs { count, limit });
        }
        let mut pairs = Vec::new();
        lists.deliver(count, clock, |list| {
            if pairs.is_empty() {
                pairs = list;
                return Ok(());
            }
            try_alloc::reserve(&mut pairs, count as usize)?;
            pairs.extend_from_slice(&list);
            Ok(())
        })?;
        Ok(AllPairs {
            pairs,
            tests: lists.tests(),
            sorts: lists.sorts,
            regrown: lists.regrown,
            axis: input.axis,
            subdivision: lists.in_columns().then_some(input).map(columns),
        })
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
            scene,
            excluded,
            first_set,
            rule: self.config.rule,
            axis: plan.axis,
            cuts,
        }
    }
}

/// Returns the columns of a search.
fn columns(input: Input) -> Subdivision {
    let [_, u, v] = axes(input.axis);
    Subdivision::Columns {
        axes: [u, v],
        cuts: input.cuts,
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
        self.on_device = None;
        self.last = Some(report.clone());
        Ok(report)
    }

    fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    fn started(&self) -> &[Pair] {
        &self.started
    }

    fn ended(&self) -> &[Pair] {
        &self.ended
    }

    fn subdivision(&self) -> Option<Subdivision> {
        self.subdivision.clone()
    }

    fn boxes(&self) -> Result<Cow<'_, [Aabb]>> {
        Ok(self.scene.given().into())
    }

    fn labels(&self) -> Result<Labels<'_>> {
        Ok(self.scene.labels())
    }

    fn clear(&mut self) {
        self.scene = Scene::default();
        self.last = None;
        self.on_device = None;
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
        let found = self.find(
            &scene,
            &first.excluded,
            first_set,
            expected,
            &mut Clock::start(),
        )?;
        self.last_between = found.pairs.len() as u64;
        Ok(found.pairs)
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
            let round = Memory::new(&self.config, boxes, max_pairs(boxes)).round(round);
            let expected = round.min(boxes as u64);
            let mut lists = Lists::new(&mut self.search, arranged, expected)?;
            lists.deliver(round, clock, |list| {
                delivery.deliver(&list);
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
            labels: self.labels()?.into_owned(),
            stored: concat(&[stored])?,
        })
    }
}

fn check_strategy(strategy: Strategy) -> Result<()> {
    match strategy {
        Strategy::Auto | Strategy::Sweep | Strategy::Subdivided => Ok(()),
        Strategy::Endpoints => Err(Error::Unsupported {
            backend: Backend::Wgpu.name(),
            what: format!("strategy `{strategy}`"),
        }),
    }
}

/// Returns the number of pairs that may be listed, if there are `count` of at most `max`.
fn max_listed(config: &Config, boxes: usize, max: u64, count: u64) -> u64 {
    match config.pair_memory {
        Some(bytes) => bytes / size_of::<Pair>() as u64,
        None if count <= UNCHECKED_PAIRS => u64::MAX,
        None => Memory::new(config, boxes, max).round(u64::MAX),
    }
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

    /// Long lists and many tests, in parts that are as small as those of a frame too large for a
    /// test.
    #[test]
    fn lists_and_launches_in_parts() {
        for strategy in [Strategy::Sweep, Strategy::Subdivided] {
            let config = Config {
                strategy,
                ..Config::default()
            };
            match Engine::new(config, Adapters::Any) {
                Ok(engine) => in_parts(engine),
                Err(error) => eprintln!("SKIPPED: {error}"),
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
