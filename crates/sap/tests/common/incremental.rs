//! Frames in which few boxes change: boxes fall asleep, wake up and change while asleep. The
//! changed boxes are listed or found by comparison.

use super::behaviour::events_lead;
use super::scenes::{Random, around, at, uniform_in};
use super::{Setup, equal, oracle, same};
use libtest_mimic::Failed;
use sap::{
    Aabb, Aabb64, Backend, BroadPhase, Config, Error, Filter, FilterFlags, Frame, OnInvalid, Pair,
    Strategy,
};
use std::sync::OnceLock;

type Check = fn(&Setup) -> Result<(), Failed>;

pub const ALL: &[(&str, Check)] = &[
    ("plain", |setup| run(setup, Kind::Plain, false)),
    ("worlds_and_excluded", |setup| {
        run(setup, Kind::Worlds, false)
    }),
    ("f64", |setup| run(setup, Kind::Exact, false)),
    ("swept", |setup| run(setup, Kind::Swept, false)),
    ("margins", |setup| run(setup, Kind::Margin, false)),
    ("listed", |setup| run(setup, Kind::Plain, true)),
    ("listed_worlds_and_excluded", |setup| {
        run(setup, Kind::Worlds, true)
    }),
    ("listed_f64", |setup| run(setup, Kind::Exact, true)),
    ("listed_swept", |setup| run(setup, Kind::Swept, true)),
    ("listed_margins", |setup| run(setup, Kind::Margin, true)),
    ("only_listed_boxes_are_read", only_listed_boxes_are_read),
    ("lists_after_errors", lists_after_errors),
    ("empty_lists", empty_lists),
    ("jumps", jumps),
    ("few_boxes", few_boxes),
    ("thresholds", thresholds),
    ("cost_nothing", cost_nothing),
    ("too_many_pairs", too_many_pairs),
    ("errors_leave_all", errors_leave_all),
    ("unsteady", unsteady),
];

const STATIC: FilterFlags = FilterFlags::STATIC;
const ASLEEP: FilterFlags = FilterFlags::ASLEEP;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Worlds,
    Exact,
    Swept,
    Margin,
}

/// The bounds, filters and worlds that decide the pairs.
type State = (Vec<[[u32; 3]; 2]>, Vec<Filter>, Vec<u32>);

const FRAMES: usize = 50;
const SIDE: f32 = 14.0;
const MARGIN: f32 = 0.05;

struct Scene {
    random: Random,
    boxes: Vec<Aabb>,
    filters: Vec<Filter>,
    worlds: Vec<u32>,
    excluded: Vec<Pair>,
}

impl Scene {
    /// Creates a scene. A third of the boxes have whole coordinates, so that they touch; some of
    /// those are thin. Two boxes are infinite.
    fn new(n: usize, seed: u64) -> Self {
        let mut scene = Self {
            random: Random::new(seed),
            boxes: Vec::new(),
            filters: Vec::new(),
            worlds: Vec::new(),
            excluded: Vec::new(),
        };
        scene.grow(n);
        scene.boxes[5].max[1] = f32::INFINITY;
        scene.boxes[6].min[0] = f32::NEG_INFINITY;
        scene.filters[5].flags = STATIC;
        scene.filters[6].flags = FilterFlags::NONE;
        scene
    }

    fn grow(&mut self, n: usize) {
        while self.boxes.len() < n {
            let new = self.some_box();
            let flags = [STATIC, ASLEEP, STATIC | ASLEEP, FilterFlags::NONE];
            let flags = flags[self.random.below(8).saturating_sub(4)];
            self.boxes.push(new);
            self.filters.push(Filter {
                layers: 1 << self.random.below(3),
                mask: 7 & !(1 << self.random.below(5)),
                flags,
                ..Filter::default()
            });
            self.worlds.push(self.random.below(3) as u32);
        }
    }

    fn some_box(&mut self) -> Aabb {
        let c = [(); 3].map(|()| self.random.between(0.0, SIDE));
        if self.random.chance(3) {
            let mut b = at(c[0].floor(), c[1].floor(), c[2].floor());
            if self.random.chance(4) {
                b.max[self.random.below(3)] -= 1.0;
            }
            return b;
        }
        around(c, [(); 3].map(|()| self.random.between(0.1, 0.4)))
    }

    fn some(&mut self) -> usize {
        self.random.below(self.boxes.len())
    }

    fn state(&self) -> State {
        let bits = |b: &Aabb| [b.min, b.max].map(|corner| corner.map(f32::to_bits));
        (
            self.boxes.iter().map(bits).collect(),
            self.filters.clone(),
            self.worlds.clone(),
        )
    }

    /// Lists the boxes that changed since `last`, some unchanged ones and some duplicates, not in
    /// order.
    fn changed(&mut self, last: &State) -> Vec<u32> {
        let (boxes, filters, worlds) = self.state();
        let differs = |&i: &usize| {
            boxes.get(i) != last.0.get(i)
                || filters.get(i) != last.1.get(i)
                || worlds.get(i) != last.2.get(i)
        };
        let mut changed: Vec<u32> = (0..boxes.len().min(last.0.len()))
            .filter(differs)
            .map(|i| i as u32)
            .collect();
        changed.extend((0..20).map(|_| self.some() as u32));
        changed.reverse();
        changed
    }

    fn step(&mut self, number: usize) {
        for i in 0..self.boxes.len() {
            if self.filters[i].flags == FilterFlags::NONE {
                let step = [(); 3].map(|()| self.random.between(-0.1, 0.1));
                for (k, step) in step.into_iter().enumerate() {
                    self.boxes[i].min[k] += step;
                    self.boxes[i].max[k] += step;
                }
            }
        }
        for _ in 0..15 {
            let i = self.some();
            match number % 12 {
                2 | 6 => self.filters[i].flags = ASLEEP,
                3 | 8 => self.filters[i].flags = FilterFlags::NONE,
                // The box is probably static or asleep.
                4 => self.boxes[i] = self.some_box(),
                5 => self.filters[i].mask ^= 1 << self.random.below(3),
                7 => self.worlds[i] = self.random.below(3) as u32,
                9 => self.boxes[i] = Aabb::EMPTY,
                10 => self.boxes[i].min[1] = f32::NAN,
                _ => {}
            }
        }
        match number % 17 {
            11 => {
                let all = oracle::ordered(&self.boxes[..400], sap::OverlapRule::Closed);
                let offset = self.random.below(3);
                self.excluded = all.into_iter().skip(offset).step_by(3).collect();
            }
            12 => {
                let n = self.boxes.len() - 40;
                self.boxes.truncate(n);
                self.filters.truncate(n);
                self.worlds.truncate(n);
            }
            14 => self.grow(self.boxes.len() + 60),
            _ => {}
        }
    }
}

/// A scene from frame to frame, with what its frames borrow.
struct Run {
    kind: Kind,
    scene: Scene,
    last: State,
    /// The boxes that changed since the last frame.
    changed: Vec<u32>,
    shifted: Vec<Aabb>,
    wide: Vec<Aabb64>,
}

impl Run {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            scene: Scene::new(2500, 31 + kind as u64),
            last: State::default(),
            changed: Vec::new(),
            shifted: Vec::new(),
            wide: Vec::new(),
        }
    }

    fn step(&mut self, number: usize) {
        let scene = &mut self.scene;
        scene.step(number);
        self.changed = scene.changed(&self.last);
        self.last = scene.state();
        self.shifted = scene.boxes.iter().map(ahead).collect();
        self.wide = scene.boxes.iter().zip(0_u32..).map(wider).collect();
    }

    fn frame(&self, number: usize) -> Frame<'_> {
        self.with_lists(
            number,
            match self.kind {
                Kind::Exact => Frame::exact(&self.wide),
                Kind::Swept => Frame::swept(&self.scene.boxes, &self.shifted),
                _ => Frame::boxes(&self.scene.boxes),
            },
        )
    }

    /// Adds the lists. One frame has no filters, one no worlds.
    fn with_lists<'a>(&'a self, number: usize, mut frame: Frame<'a>) -> Frame<'a> {
        if number != 23 {
            frame = frame.filters(&self.scene.filters);
        }
        if self.kind == Kind::Worlds && number != 31 {
            frame = frame.worlds(&self.scene.worlds);
        }
        if self.kind == Kind::Worlds {
            frame = frame.excluded(&self.scene.excluded);
        }
        frame
    }
}

fn config(setup: &Setup, kind: Kind) -> Config {
    Config {
        on_invalid: OnInvalid::Skip,
        margin: if kind == Kind::Margin { MARGIN } else { 0.0 },
        ..setup.config()
    }
}

/// The pairs of each frame.
type Rebuilt = OnceLock<Result<Vec<Vec<Pair>>, Failed>>;

/// Returns the pairs of each frame, each by a new engine. They are the same for every backend and
/// strategy, and whether or not the changed boxes are listed.
fn rebuilt(setup: &Setup, kind: Kind) -> Result<Vec<Vec<Pair>>, Failed> {
    let rebuild = Config {
        backend: Backend::Cpu,
        strategy: Strategy::Sweep,
        margin: 0.0,
        ..config(setup, kind)
    };
    let mut run = Run::new(kind);
    let mut stored: Vec<Aabb> = Vec::new();
    let mut all = Vec::new();
    let mut fixed_pairs = 0;
    for number in 0..FRAMES {
        run.step(number);
        let mut engine = BroadPhase::new(rebuild.clone())?;
        if kind == Kind::Margin {
            loosen(&mut stored, &run.scene.boxes);
            engine.update(run.with_lists(number, Frame::boxes(&stored)))?;
        } else {
            engine.update(run.frame(number))?;
        }
        equal(engine.report().stats.resting, 0)?;
        let is_fixed = |i: u32| run.scene.filters[i as usize].flags != FilterFlags::NONE;
        let is_fixed_pair = |pair: &&Pair| is_fixed(pair.a) && is_fixed(pair.b);
        fixed_pairs += engine.pairs().iter().filter(is_fixed_pair).count();
        all.push(engine.pairs().to_vec());
    }
    equal(fixed_pairs > 1000, true)?;
    Ok(all)
}

/// Runs frames of a scene, each against a new engine. `listed`: the changed boxes are listed.
fn run(setup: &Setup, kind: Kind, listed: bool) -> Result<(), Failed> {
    static REBUILT: [[Rebuilt; 2]; 5] = [const { [const { Rebuilt::new() }; 2] }; 5];
    let rebuilt = REBUILT[kind as usize][setup.rule as usize].get_or_init(|| rebuilt(setup, kind));
    let rebuilt = rebuilt.as_ref().map_err(Failed::clone)?;
    let mut engine = BroadPhase::new(config(setup, kind))?;
    let mut run = Run::new(kind);
    let mut before: &[Pair] = &[];
    let mut incremental = 0;
    for (number, expected) in rebuilt.iter().enumerate() {
        run.step(number);
        let mut frame = run.frame(number);
        if listed {
            frame = frame.changed(&run.changed);
        }
        let report = engine.update(frame)?;
        incremental += u64::from(report.stats.resting > 1000);
        same(engine.pairs(), expected).map_err(|failed| {
            let said = failed.message().unwrap_or("failed");
            format!("frame {number}: {said}")
        })?;
        events_lead(&engine, before)?;
        before = expected;
    }
    equal(incremental > 25, true)
}

/// The end of a swept box, for static boxes too.
fn ahead(b: &Aabb) -> Aabb {
    let step = |value: f32| value + 0.25;
    let end = Aabb::new(
        [step(b.min[0]), b.min[1], b.min[2]],
        [step(b.max[0]), b.max[1], b.max[2]],
    );
    if b.is_empty() { *b } else { end }
}

/// The box in `f64`, a little smaller for two boxes in three.
fn wider((b, i): (&Aabb, u32)) -> Aabb64 {
    let mut wide = Aabb64::new(b.min.map(f64::from), b.max.map(f64::from));
    for k in 0..3 {
        if b.min[k] < b.max[k] {
            wide.max[k] -= f64::from(i % 3) * 1e-12;
        }
    }
    wide
}

/// Updates the boxes that an engine with a margin stores.
fn loosen(stored: &mut Vec<Aabb>, boxes: &[Aabb]) {
    let valid = |b: &Aabb| if b.check().is_ok() { *b } else { Aabb::EMPTY };
    stored.truncate(boxes.len());
    for (i, b) in boxes.iter().map(valid).enumerate() {
        match stored.get_mut(i) {
            Some(stored) if stored.contains(&b) && !b.is_empty() => {}
            Some(stored) => *stored = b.loosened(MARGIN),
            None => stored.push(b.loosened(MARGIN)),
        }
    }
}

fn flagged(flags: impl Fn(usize) -> FilterFlags, n: usize) -> Vec<Filter> {
    let filter = |i| Filter {
        flags: flags(i),
        ..Filter::default()
    };
    (0..n).map(filter).collect()
}

/// Updates are incremental from 1,024 unchanged boxes on, and up to a sixth of changed ones.
fn thresholds(setup: &Setup) -> Result<(), Failed> {
    for (fixed, moving, is_incremental) in [
        (1023, 10, false),
        (1024, 10, true),
        (1025, 0, false), // nothing moves, so there is nothing to do
        (5000, 1000, true),
        (4900, 1100, false),
    ] {
        let n = fixed + moving;
        let mut boxes = uniform_in(n, [10.0; 3], n as u64);
        let filters = flagged(
            |i| {
                if i % n < moving {
                    FilterFlags::NONE
                } else {
                    STATIC
                }
            },
            n,
        );
        let mut engine = setup.broad_phase();
        let mut resting = 0;
        for frame in 0..6 {
            for b in &mut boxes[..moving] {
                b.max[frame % 3] += 0.01;
            }
            resting = engine
                .update(Frame::boxes(&boxes).filters(&filters))?
                .stats
                .resting;
            let mut expected = oracle::ordered(&boxes, setup.rule);
            expected.retain(|pair| (pair.a as usize) < moving);
            same(engine.pairs(), &expected)?;
        }
        equal(
            (fixed, moving, resting),
            (fixed, moving, if is_incremental { fixed as u64 } else { 0 }),
        )?;
    }
    Ok(())
}

/// Many static boxes at one place cost no tests while the others move elsewhere.
fn cost_nothing(setup: &Setup) -> Result<(), Failed> {
    let n = 5000;
    let mut boxes = uniform_in(n, [3.0; 3], 5);
    for (i, b) in boxes.iter_mut().enumerate().take(20) {
        *b = at(100.0 + 3.0 * i as f32, 0.0, 0.0);
    }
    let filters = flagged(|i| if i < 20 { FilterFlags::NONE } else { STATIC }, n);
    let mut engine = setup.broad_phase();
    let first = engine
        .update(Frame::boxes(&boxes).filters(&filters))?
        .stats
        .tests;
    equal(first > 100_000, true)?;
    for frame in 0..6 {
        boxes[frame].min[1] -= 0.5;
        let report = engine.update(Frame::boxes(&boxes).filters(&filters))?;
        if frame > 2 {
            // The few that move may be tested against each other.
            equal(
                (report.stats.resting, report.stats.tests < 200),
                (n as u64 - 1, true),
            )?;
        }
        same(engine.pairs(), &[])?;
    }
    // A box moves among the static ones.
    boxes[7] = around([1.5; 3], [0.3; 3]);
    engine.update(Frame::boxes(&boxes).filters(&filters))?;
    let mut expected = oracle::ordered(&boxes, setup.rule);
    expected.retain(|pair| pair.a == 7 || pair.b == 7);
    equal(expected.len() > 20, true)?;
    same(engine.pairs(), &expected)
}

/// The error for too many pairs has the exact count, whether or not static boxes are in them.
fn too_many_pairs(setup: &Setup) -> Result<(), Failed> {
    let n = 3000;
    let mut boxes = uniform_in(n, [10.0; 3], 8);
    let flags = [FilterFlags::NONE, STATIC, ASLEEP, STATIC, ASLEEP];
    let filters = flagged(|i| flags[i % 5], n);
    let count = |boxes: &[Aabb]| {
        let mut expected = oracle::ordered(boxes, setup.rule);
        expected.retain(|pair| filters[pair.a as usize].allows(&filters[pair.b as usize]));
        expected
    };
    let limit = count(&boxes).len() as u64 + 500;
    let mut engine = BroadPhase::new(Config {
        pair_memory: Some(8 * limit),
        ..setup.config()
    })?;
    for frame in 0..5 {
        boxes[5 * frame].max[0] += 0.001;
        engine.update(Frame::boxes(&boxes).filters(&filters))?;
    }
    equal(engine.report().stats.resting, n as u64 - 1)?;
    let before = engine.pairs().to_vec();
    let (mut crowd, mut lone) = (boxes.clone(), boxes.clone());
    for i in (0..500).step_by(5) {
        crowd[i] = at(50.0, 0.0, 0.0);
        lone[i] = Aabb::new([0.0; 3], [9.0; 3]);
    }
    for many in [&crowd, &lone] {
        match engine.update(Frame::boxes(many).filters(&filters)) {
            Err(Error::TooManyPairs {
                count: found,
                limit: given,
            }) => {
                equal((found, given), (count(many).len() as u64, limit))?;
            }
            other => return Err(format!("{other:?}").into()),
        }
        same(engine.pairs(), &before)?;
    }
    boxes[0].max[1] += 0.001;
    engine.update(Frame::boxes(&boxes).filters(&filters))?;
    // The boxes that changed in the failed updates are searched again.
    equal(engine.report().stats.resting, n as u64 - 100)?;
    same(engine.pairs(), &count(&boxes))
}

/// Static boxes change in an update that fails, and are as before in the next.
fn errors_leave_all(setup: &Setup) -> Result<(), Failed> {
    let n = 3000;
    let mut boxes = uniform_in(n, [10.0; 3], 9);
    let flags = [FilterFlags::NONE, STATIC, ASLEEP, STATIC, ASLEEP];
    let mut filters = flagged(|i| flags[i % 5], n);
    let expected = |boxes: &[Aabb], filters: &[Filter]| {
        let mut expected = oracle::ordered(boxes, setup.rule);
        expected.retain(|pair| filters[pair.a as usize].allows(&filters[pair.b as usize]));
        expected
    };
    let limit = 40_000;
    let mut engine = BroadPhase::new(Config {
        pair_memory: Some(8 * limit),
        ..setup.config()
    })?;
    let mut before = Vec::new();
    for frame in 0..14 {
        boxes[5 * frame].max[0] += 0.001;
        if frame % 4 == 3 {
            // Static boxes move to one place, a third of them is removed, and flags change. The
            // next frame has none of that.
            let mut wrong = boxes.clone();
            for b in &mut wrong[1..1001] {
                *b = at(20.0, 0.0, 0.0);
            }
            let mut other = filters.clone();
            other[1..1001].fill(Filter::default());
            let failed = engine.update(Frame::boxes(&wrong[..2000]).filters(&other[..2000]));
            equal(matches!(failed, Err(Error::TooManyPairs { .. })), true)?;
            same(engine.pairs(), &before)?;
        }
        if frame == 9 {
            filters[100].flags = FilterFlags::NONE;
        }
        let report = engine.update(Frame::boxes(&boxes).filters(&filters))?;
        let wanted = if frame == 2 {
            n as u64 - 1
        } else {
            report.stats.resting
        };
        equal(report.stats.resting, wanted)?;
        same(engine.pairs(), &expected(&boxes, &filters))?;
        events_lead(&engine, &before)?;
        before = engine.pairs().to_vec();
    }
    Ok(())
}

/// All static boxes move, in each frame, each second or each fifth one.
fn unsteady(setup: &Setup) -> Result<(), Failed> {
    let n = 2500;
    for period in [1, 2, 5] {
        let mut boxes = uniform_in(n, [12.0; 3], 10);
        let filters = flagged(
            |i| {
                if i % 8 == 0 {
                    FilterFlags::NONE
                } else {
                    STATIC
                }
            },
            n,
        );
        let mut engine = setup.broad_phase();
        let mut incremental = 0;
        for frame in 0..16 {
            for (i, b) in boxes.iter_mut().enumerate() {
                if i % 8 == 0 || frame % period == 0 {
                    b.max[frame % 3] += 0.01;
                }
            }
            incremental += u64::from(
                engine
                    .update(Frame::boxes(&boxes).filters(&filters))?
                    .stats
                    .resting
                    > 0,
            );
            let mut expected = oracle::ordered(&boxes, setup.rule);
            expected.retain(|pair| pair.a % 8 == 0 || pair.b % 8 == 0);
            same(engine.pairs(), &expected)?;
        }
        equal(incremental > 0, period > 2)?;
    }
    Ok(())
}

/// Boxes that are not listed are not read, so they may even be NaN.
fn only_listed_boxes_are_read(setup: &Setup) -> Result<(), Failed> {
    let n = 4000;
    let mut boxes = uniform_in(n, [14.0; 3], 12);
    let mut engine = setup.broad_phase();
    for frame in 0..4 {
        boxes[frame].min[0] -= 0.125;
        engine.update(Frame::boxes(&boxes).changed(&[frame as u32]))?;
    }
    equal(engine.report().stats.resting, n as u64 - 1)?;
    let mut given = vec![Aabb::new([f32::NAN; 3], [1.0; 3]); n];
    boxes[9] = around([7.0; 3], [1.0; 3]);
    given[9] = boxes[9];
    engine.update(Frame::boxes(&given).changed(&[9]))?;
    same(engine.pairs(), &oracle::ordered(&boxes, setup.rule))?;
    // An invalid box that is listed is an error and changes nothing.
    let failed = engine.update(Frame::boxes(&given).changed(&[11, 10]));
    equal(
        matches!(failed, Err(Error::InvalidAabb { index: 10, .. })),
        true,
    )?;
    let failed = engine.update(Frame::boxes(&given).changed(&[3, 4000]));
    let beyond = Error::ChangedIndex {
        index: 4000,
        boxes: n,
    };
    equal(
        failed.err().map(|error| error.to_string()),
        Some(beyond.to_string()),
    )?;
    same(engine.pairs(), &oracle::ordered(&boxes, setup.rule))?;
    // Boxes listed in failed updates are searched again. Then there is nothing to do.
    engine.update(Frame::boxes(&boxes).changed(&[]))?;
    let report = engine.update(Frame::boxes(&boxes).changed(&[]))?;
    equal(
        (report.started, report.ended, report.stats.tests),
        (0, 0, 0),
    )?;
    // Without a list all boxes are read.
    let failed = engine.update(&given);
    equal(
        matches!(failed, Err(Error::InvalidAabb { index: 0, .. })),
        true,
    )?;
    boxes[5] = Aabb::EMPTY;
    engine.update(&boxes)?;
    same(engine.pairs(), &oracle::ordered(&boxes, setup.rule))
}

/// A box that changed in a failed update need not be listed in the next.
fn lists_after_errors(setup: &Setup) -> Result<(), Failed> {
    for n in [100, 4000] {
        let mut boxes = uniform_in(n, [14.0; 3], 13);
        let mut engine = setup.broad_phase();
        for _ in 0..4 {
            boxes[5].max[1] += 0.125;
            engine.update(Frame::boxes(&boxes).changed(&[5]))?;
        }
        for (near, listed) in [(n - 1, &[][..]), (n - 2, &[7]), (n - 3, &[])] {
            boxes[3] = boxes[near];
            let mut broken = boxes.clone();
            broken[8].max[0] = f32::NAN;
            let failed = engine.update(Frame::boxes(&broken).changed(&[3, 8]));
            equal(
                matches!(failed, Err(Error::InvalidAabb { index: 8, .. })),
                true,
            )?;
            engine.update(Frame::boxes(&boxes).changed(listed))?;
            same(engine.pairs(), &oracle::ordered(&boxes, setup.rule))?;
        }
    }
    Ok(())
}

/// An empty list says that the frame is the last one again, unless the frame shows that it is not:
/// by other kinds of lists, other excluded pairs, or another number of boxes.
fn empty_lists(setup: &Setup) -> Result<(), Failed> {
    let n = 3000;
    let boxes = uniform_in(n, [12.0; 3], 14);
    let wide = |given: &Aabb| Aabb64::new(given.min.map(f64::from), given.max.map(f64::from));
    let exact: Vec<Aabb64> = boxes.iter().map(wide).collect();
    let flagged = |flags| Filter {
        flags,
        ..Filter::default()
    };
    let filters: Vec<Filter> = [STATIC, FilterFlags::NONE, STATIC]
        .map(flagged)
        .repeat(n / 3);
    let worlds: Vec<u32> = (0..n as u32).map(|i| i % 2).collect();
    let all = {
        let mut engine = setup.broad_phase();
        engine.update(&boxes)?;
        engine.pairs().to_vec()
    };
    let plain = Frame::boxes(&boxes);
    let frames = [
        plain,
        plain.filters(&filters),
        plain.worlds(&worlds),
        plain.filters(&filters).worlds(&worlds),
        plain.excluded(&all[..9]),
        plain.excluded(&all[1..10]),
        plain.excluded(&all[..5]),
        Frame::exact(&exact),
        Frame::swept(&boxes, &boxes),
        Frame::boxes(&boxes[..n - 1]),
        plain,
    ];
    let mut engine = setup.broad_phase();
    for frame in frames {
        let mut fresh = setup.broad_phase();
        fresh.update(frame)?;
        engine.update(frame.changed(&[]))?;
        same(engine.pairs(), fresh.pairs())?;
        for _ in 0..2 {
            let report = engine.update(frame.changed(&[]))?;
            let found = (report.n, report.pairs, report.started, report.ended);
            equal(found, (frame.len(), fresh.pairs().len() as u64, 0, 0))?;
            equal(report.stats.tests, 0)?;
            same(engine.pairs(), fresh.pairs())?;
            same(engine.started(), &[])?;
            same(engine.ended(), &[])?;
        }
    }
    // A list that does not fit is an error, and what was there stays.
    for wrong in [
        plain.filters(&filters[1..]),
        plain.worlds(&[]),
        Frame::swept(&boxes, &boxes[1..]),
    ] {
        let failed = engine.update(wrong.changed(&[]));
        equal(matches!(failed, Err(Error::LengthMismatch { .. })), true)?;
        same(engine.pairs(), &all)?;
    }
    engine.clear();
    engine.update(plain.changed(&[]))?;
    same(engine.started(), &all)
}

/// Boxes jump anywhere in each frame, which wears the tree out. The costs stay small.
fn jumps(setup: &Setup) -> Result<(), Failed> {
    let n = 3000;
    let mut random = Random::new(13);
    let mut boxes = uniform_in(n, [14.0; 3], 13);
    let mut engine = setup.broad_phase();
    let (mut max_tests, mut changed) = (0, Vec::new());
    for frame in 0..120 {
        changed.clear();
        for _ in 0..100 {
            let i = random.below(n);
            let c = [(); 3].map(|()| random.between(0.0, 14.0));
            boxes[i] = around(c, [0.3; 3]);
            changed.push(i as u32);
        }
        let report = engine.update(Frame::boxes(&boxes).changed(&changed))?;
        if frame > 2 {
            equal(report.stats.resting >= n as u64 - 100, true)?;
            max_tests = max_tests.max(report.stats.tests);
        }
        if frame % 8 == 0 {
            same(engine.pairs(), &oracle::ordered(&boxes, setup.rule))?;
        }
    }
    // A tree that is never rebuilt makes 300,000 tests, all boxes against a hundred.
    equal(max_tests < 150_000, true)
}

/// Few boxes come and go, with incremental updates from one box on.
fn few_boxes(setup: &Setup) -> Result<(), Failed> {
    let mut engine = BroadPhase::new(Config {
        min_resting: Some(0),
        ..setup.config()
    })?;
    let mut boxes = uniform_in(12, [2.0; 3], 14);
    for (frame, n) in [0, 0, 1, 1, 0, 12, 12, 12, 12, 11, 11, 12, 12, 2, 0, 0, 1]
        .into_iter()
        .enumerate()
    {
        boxes[frame % 12].max[1] += 0.25;
        let changed = [(frame % 12) as u32];
        let now = Frame::boxes(&boxes[..n]);
        let now = if frame % 12 < n {
            now.changed(&changed)
        } else {
            now
        };
        engine.update(now)?;
        same(engine.pairs(), &oracle::ordered(&boxes[..n], setup.rule))?;
    }
    Ok(())
}
