//! Scenes that change in every way from frame to frame, each compared with a rebuild.

use super::scenes::{Random, around, uniform_in};
use super::{equal, same, without};
use libtest_mimic::Failed;
use sap::{Aabb, Backend, BroadPhase, Config, Filter, FilterFlags, Frame, Pair, Strategy};

/// The side of the cube that boxes are in.
const SIDE: f32 = 12.0;

/// The length and the size of a run.
#[derive(Clone, Copy)]
pub struct Size {
    pub frames: usize,
    /// The number of boxes in most frames.
    pub max_boxes: usize,
    /// The number of boxes in the few large frames.
    pub jump: usize,
}

impl Size {
    /// Sets the number of frames, unless `RADSWEEP_SOAK_FRAMES` does.
    pub fn new(frames: usize, max_boxes: usize, jump: usize) -> Self {
        let wished = std::env::var("RADSWEEP_SOAK_FRAMES").ok();
        let wished = wished.and_then(|number| number.parse().ok());
        Self {
            frames: wished.unwrap_or(frames),
            max_boxes,
            jump,
        }
    }

    /// Returns the number of frames from one jump to the next. All memory is in use after the first
    /// jumps.
    fn period(&self) -> usize {
        (self.frames / 8).clamp(12, 500)
    }
}

/// A scene of boxes, each with a filter and a world.
struct Churn {
    random: Random,
    size: Size,
    boxes: Vec<Aabb>,
    filters: Vec<Filter>,
    worlds: Vec<u32>,
    with_filters: bool,
    with_worlds: bool,
}

impl Churn {
    fn new(size: Size, seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            size,
            boxes: Vec::new(),
            filters: Vec::new(),
            worlds: Vec::new(),
            with_filters: false,
            with_worlds: false,
        }
    }

    fn frame(&self) -> Frame<'_> {
        self.with_all(&self.boxes)
    }

    /// Returns a frame of these boxes with the filters and worlds of this scene.
    fn with_all<'a>(&'a self, boxes: &'a [Aabb]) -> Frame<'a> {
        let mut frame = Frame::boxes(boxes);
        if self.with_filters {
            frame = frame.filters(&self.filters);
        }
        if self.with_worlds {
            frame = frame.worlds(&self.worlds);
        }
        frame
    }

    /// Makes the next frame. Now and then all boxes appear at once and disappear again: a jump. All
    /// jumps have the same boxes, so no frame needs more memory than the first two jumps. Those
    /// have filters and worlds. They are an odd number of frames apart, because an engine
    /// alternates between two buffers of each kind.
    fn step(&mut self, number: usize) {
        match number % self.size.period() {
            3 | 5 | 8 => self.resize(0),
            6 => self.resize(1),
            4 | 7 => {
                let everything = (number / self.size.period()).is_multiple_of(2);
                (self.with_filters, self.with_worlds) = (everything, everything);
                self.boxes = uniform_in(self.size.jump, [SIDE; 3], 1);
                self.resize(self.size.jump);
            }
            _ => self.change(),
        }
    }

    fn change(&mut self) {
        if self.random.chance(8) {
            return; // an unchanged frame
        }
        if self.random.chance(40) {
            self.with_filters = !self.with_filters;
        }
        if self.random.chance(40) {
            self.with_worlds = !self.with_worlds;
        }
        if self.boxes.is_empty() || self.random.chance(50) {
            let max_boxes = self.size.max_boxes;
            let n = [0, 1, 2, 31, 33, max_boxes][self.random.below(6)];
            let any = self.random.below(max_boxes + 1);
            let n = if self.random.chance(3) { n } else { any };
            return self.resize(n);
        }
        let few = 1 + self.boxes.len() / 50;
        for _ in 0..self.random.below(few + 1) {
            self.remove();
        }
        let free = self.size.max_boxes.saturating_sub(self.boxes.len());
        for _ in 0..self.random.below(few + 1).min(free) {
            self.add();
        }
        for _ in 0..few.min(self.boxes.len()) {
            let i = self.random.below(self.boxes.len());
            self.change_one(i);
        }
        // Some of the boxes move a little.
        if self.random.chance(2) && !self.boxes.is_empty() {
            let first = self.random.below(self.boxes.len());
            for b in self.boxes.iter_mut().skip(first) {
                let step = [(); 3].map(|()| self.random.between(-0.05, 0.05));
                *b = moved(b, step);
            }
        }
    }

    fn resize(&mut self, n: usize) {
        self.boxes.truncate(n);
        self.filters.truncate(n);
        self.worlds.truncate(n);
        self.filters.resize(self.boxes.len(), Filter::default());
        self.worlds.resize(self.boxes.len(), 0);
        while self.boxes.len() < n {
            self.add();
        }
    }

    fn some_box(&mut self) -> Aabb {
        let center = [(); 3].map(|()| self.random.between(0.0, SIDE));
        around(center, [(); 3].map(|()| self.random.between(0.2, 0.5)))
    }

    fn some_filter(&mut self) -> Filter {
        let bits = self.random.bits() as u32;
        Filter {
            layers: bits & 7,
            mask: bits >> 3 & 7,
            group: (bits >> 6 & 15).saturating_sub(10),
            flags: FilterFlags(bits >> 10 & bits >> 12 & 3),
        }
    }

    fn add(&mut self) {
        let (new, filter) = (self.some_box(), self.some_filter());
        self.boxes.push(new);
        self.filters.push(filter);
        self.worlds.push(self.random.below(3) as u32);
    }

    /// Removes a box: the last one, one that the last one replaces, or one that becomes empty.
    fn remove(&mut self) {
        if self.boxes.is_empty() {
            return;
        }
        let last = self.boxes.len() - 1;
        let i = self.random.below(last + 1);
        let i = match self.random.below(3) {
            0 => last,
            1 => i,
            _ => return self.boxes[i] = Aabb::EMPTY,
        };
        self.boxes.swap_remove(i);
        self.filters.swap_remove(i);
        self.worlds.swap_remove(i);
    }

    /// Moves a box far, shrinks or grows it, or changes its filter or world.
    fn change_one(&mut self, i: usize) {
        let b = self.boxes[i];
        let kind = self.random.below(8);
        self.boxes[i] = match kind {
            0 | 1 => self.some_box(),
            2 => scaled(&b, 0.5),
            3 => scaled(&b, 0.0),
            4 if (0..3).all(|k| b.max[k] - b.min[k] < SIDE / 4.0) => scaled(&b, 2.0),
            5 => moved(&b, [(); 3].map(|()| self.random.between(-2.0, 2.0))),
            _ => b,
        };
        match kind {
            6 => self.filters[i] = self.some_filter(),
            7 => self.worlds[i] = self.random.below(3) as u32,
            _ => {}
        }
    }
}

fn moved(b: &Aabb, by: [f32; 3]) -> Aabb {
    Aabb::new(
        std::array::from_fn(|k| b.min[k] + by[k]),
        std::array::from_fn(|k| b.max[k] + by[k]),
    )
}

/// Scales a box about its centre. An empty box stays empty.
fn scaled(b: &Aabb, by: f32) -> Aabb {
    if b.is_empty() {
        return *b;
    }
    let center: [f32; 3] = std::array::from_fn(|k| (b.min[k] + b.max[k]) / 2.0);
    around(
        center,
        std::array::from_fn(|k| (b.max[k] - b.min[k]) / 2.0 * by),
    )
}

/// Updates the boxes that an engine with a margin stores: a stored box is replaced once it no
/// longer contains the given one.
fn update_stored(stored: &mut Vec<Aabb>, boxes: &[Aabb], margin: f32) {
    stored.truncate(boxes.len());
    for (stored, b) in stored.iter_mut().zip(boxes) {
        if b.is_empty() || !stored.contains(b) {
            *stored = b.loosened(margin);
        }
    }
    let new = &boxes[stored.len()..];
    stored.extend(new.iter().map(|b| b.loosened(margin)));
}

/// Checks that an update gives these pairs, and the events since `before`.
fn check(engine: &mut BroadPhase, frame: Frame, lists: [&Vec<Pair>; 3]) -> Result<(), Failed> {
    let report = engine.update(frame)?;
    let counts = [report.pairs, report.started, report.ended];
    equal(counts, lists.map(|list| list.len() as u64))?;
    let found = [engine.pairs(), engine.started(), engine.ended()];
    found
        .into_iter()
        .zip(lists)
        .try_for_each(|(found, expected)| same(found, expected))
}

/// Runs one scene with an engine of each configuration, made by `engine`; they differ in backend
/// and strategy only. A new engine on the CPU rebuilds each frame, and events must be the
/// differences. `used` returns the bytes in use, which may grow by at most `slack` after the
/// warm-up.
pub fn soak(
    configs: &[Config],
    engine: impl Fn(Config) -> sap::Result<BroadPhase>,
    size: Size,
    slack: u64,
    used: impl Fn(&[BroadPhase]) -> Result<u64, Failed>,
) -> Result<(), Failed> {
    let Config { margin, rule, .. } = configs[0];
    let rebuild = Config {
        backend: Backend::Cpu,
        strategy: Strategy::Sweep,
        margin: 0.0,
        events: false,
        ..configs[0].clone()
    };
    let mut engines = configs
        .iter()
        .map(|config| engine(config.clone()))
        .collect::<Result<Vec<_>, _>>()?;
    let mut churn = Churn::new(size, u64::from(margin.to_bits()) + rule as u64);
    let (mut stored, mut before) = (Vec::new(), Vec::new());
    let mut bytes = Vec::with_capacity(size.frames);
    let mut seen = [0; 2];
    for number in 0..size.frames {
        churn.step(number);
        let mut rebuilt = BroadPhase::new(rebuild.clone())?;
        if margin > 0.0 {
            update_stored(&mut stored, &churn.boxes, margin);
            rebuilt.update(churn.with_all(&stored))?;
        } else {
            rebuilt.update(churn.frame())?;
        }
        let pairs = rebuilt.pairs().to_vec();
        drop(rebuilt);
        let (started, ended) = (without(&pairs, &before), without(&before, &pairs));
        for (engine, config) in engines.iter_mut().zip(configs) {
            let checked = check(engine, churn.frame(), [&pairs, &started, &ended]);
            checked.map_err(|failed| {
                let said = failed.message().unwrap_or("failed").to_string();
                format!("frame {number}, {}: {said}", config.strategy)
            })?;
        }
        seen[0] += started.len();
        seen[1] += ended.len();
        before = pairs;
        drop((started, ended));
        bytes.push(used(&engines)?);
    }
    equal(seen.iter().all(|&events| events > size.frames), true)?;
    let max = |from: usize, to: usize| bytes[from..to].iter().max().copied().unwrap_or(0);
    let (warm, half) = (size.period(), size.frames / 2);
    let (early, late) = (max(warm, half), max(half, size.frames));
    if late > early + slack {
        return Err(format!("{early} bytes in use by frame {half}, {late} later").into());
    }
    Ok(())
}
