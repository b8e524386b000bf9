//! Boxes in buffers of the caller, on the caller's device, whose pairs stay there: the same as on
//! the CPU, bit for bit.

use super::device::{opened, two_opened};
use super::{Other, wgpu};
use crate::common::against_cpu::{Extras, cpu, sized, uniform};
use crate::common::scenes::Random;
use crate::common::{RULES, equal, same};
use libtest_mimic::Failed;
use sap::{
    Aabb, Aabb64, Backend, BroadPhase, Config, Error, Filter, FilterFlags, Frame, OnInvalid, Pair,
    Strategy, WgpuFrame,
};
use wgpu_device::wgpu::{Buffer, Features};
use wgpu_device::{BufferUsages, Device};

pub const ALL: &[(&str, Other)] = &[
    ("resident::frames", frames),
    ("resident::margins", margins),
    ("resident::few_boxes", few_boxes),
    ("resident::one_wait", one_wait),
    ("resident::beyond_cells", beyond_cells),
    ("resident::bad_boxes", bad_boxes),
    ("resident::forms", forms),
    ("resident::unchanged", unchanged),
    ("resident::beside_host_frames", beside_host_frames),
    ("resident::without_events", without_events),
    ("resident::crowds", crowds),
    ("resident::lists_in_parts", lists_in_parts),
    ("resident::too_many_pairs", too_many_pairs),
    ("resident::buffers", buffers),
    ("resident::lost", lost),
    ("resident::other_engines", other_engines),
];

/// The form of the boxes of a frame.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Plain,
    Swept,
    Exact,
}

const FORMS: [Form; 3] = [Form::Plain, Form::Swept, Form::Exact];

/// The lists of a frame. Each form reads its own boxes.
#[derive(Clone, Default)]
struct Lists {
    form: Form,
    boxes: Vec<Aabb>,
    ends: Vec<Aabb>,
    exact: Vec<Aabb64>,
    extras: Extras,
}

impl Lists {
    fn of(boxes: Vec<Aabb>) -> Self {
        Self {
            boxes,
            ..Self::default()
        }
    }

    fn frame(&self) -> Frame<'_> {
        self.extras.with(match self.form {
            Form::Plain => Frame::boxes(&self.boxes),
            Form::Swept => Frame::swept(&self.boxes, &self.ends),
            Form::Exact => Frame::exact(&self.exact),
        })
    }

    /// Creates a random frame.
    fn random(random: &mut Random, n: usize) -> Self {
        let density = [0.3, 1.0, 8.0][random.below(3)];
        let form = FORMS[random.below(3)];
        let mut lists = Self::of(uniform(random, n, density));
        spice(random, &mut lists.boxes);
        lists = lists.in_form(random, form);
        spice(random, &mut lists.ends);
        for _ in 0..n / 60 {
            lists.exact[random.below(n)] = [
                Aabb64::new([-1e300; 3], [1e-300, 1e300, 0.1]),
                Aabb64::new([-1e-60; 3], [1e-44, 4e-39, 1.0]),
                Aabb64::EMPTY,
            ][random.below(3)];
        }
        lists.extras = Extras::random(random, n);
        lists
    }

    /// Adds the boxes that a form needs. Some `f64` boxes differ from their `f32` ones by less than
    /// `f32` tells.
    fn in_form(mut self, random: &mut Random, form: Form) -> Self {
        self.form = form;
        self.ends.clone_from(&self.boxes);
        for bounds in &mut self.ends {
            shift_box(bounds, std::array::from_fn(|_| random.between(-0.5, 0.5)));
        }
        let exact = self.boxes.iter().map(|bounds| {
            let by = [0.0, 1e-9, -1e-9][random.below(3)];
            Aabb64::new(
                bounds.min.map(|x| f64::from(x) + by),
                bounds.max.map(|x| f64::from(x) + by),
            )
        });
        self.exact = exact.collect();
        self
    }

    fn truncate(&mut self, n: usize) {
        self.boxes.truncate(n);
        self.ends.truncate(n);
        self.exact.truncate(n);
    }

    /// Moves all boxes, by far less or more than their sides.
    fn shift(&mut self, random: &mut Random, by: f32) {
        for i in 0..self.boxes.len() {
            let shift: [f32; 3] = std::array::from_fn(|_| random.between(-by, by));
            shift_box(&mut self.boxes[i], shift);
            if let Some(end) = self.ends.get_mut(i) {
                shift_box(end, shift);
            }
            let Some(exact) = self.exact.get_mut(i) else {
                continue;
            };
            for (axis, shift) in shift.into_iter().enumerate() {
                exact.min[axis] += f64::from(shift);
                exact.max[axis] += f64::from(shift);
            }
        }
    }
}

fn shift_box(bounds: &mut Aabb, shift: [f32; 3]) {
    for (axis, shift) in shift.into_iter().enumerate() {
        bounds.min[axis] += shift;
        bounds.max[axis] += shift;
    }
}

/// Makes some boxes special: infinite, huge, flat, empty and equal ones, denormals, and zeros of
/// both signs.
fn spice(random: &mut Random, boxes: &mut [Aabb]) {
    const INF: f32 = f32::INFINITY;
    let n = boxes.len();
    for _ in 0..n / 30 {
        let copied = boxes[random.below(n)];
        boxes[random.below(n)] = match random.below(8) {
            0 => Aabb::EMPTY,
            1 => Aabb::new([-INF; 3], [INF, 0.0, INF]),
            2 => Aabb::new([0.0, -0.0, 0.0], [-0.0, 0.0, 1.0]),
            3 => Aabb::new([-1e-45, 1e-45, 0.0], [1e-45, 3e-39, 1.0]),
            4 => Aabb::new([f32::MIN; 3], [0.5, 0.5, f32::MAX]),
            5 => Aabb::new(copied.min, copied.min),
            6 => Aabb::new(copied.max, copied.max.map(|x| x + 1.0)),
            _ => copied,
        };
    }
}

/// The broad phase on a device of the caller, and one on the CPU.
struct Rig {
    device: Device,
    resident: BroadPhase,
    on_cpu: BroadPhase,
    /// How often the host has waited in the last update.
    waits: u64,
}

impl Rig {
    fn new(config: &Config) -> Result<Self, Failed> {
        Self::on(opened(Features::empty(), None)?, config)
    }

    fn on(device: Device, config: &Config) -> Result<Self, Failed> {
        Ok(Self {
            resident: BroadPhase::on_wgpu(&device, config.clone())?,
            on_cpu: BroadPhase::new(cpu(config))?,
            device,
            waits: 0,
        })
    }

    /// Returns a buffer of the caller, with nothing but what is needed.
    fn buffer<T: bytemuck::Pod>(&self, list: &[T]) -> Result<Buffer, Failed> {
        Ok(self.device.upload("list", list, BufferUsages::STORAGE)?)
    }

    /// Updates both with a frame, and compares all that can be seen. Returns the tests of the
    /// device.
    fn check(&mut self, lists: &Lists) -> Result<u64, Failed> {
        let before = self.resident.report().clone();
        let boxes = self.buffer(&lists.boxes)?;
        let ends = self.buffer(&lists.ends)?;
        let exact = self.buffer(&lists.exact)?;
        let filters = lists.extras.filters.as_ref().map(|list| self.buffer(list));
        let worlds = lists.extras.worlds.as_ref().map(|list| self.buffer(list));
        let (filters, worlds) = (filters.transpose()?, worlds.transpose()?);
        let n = lists.boxes.len();
        let frame = match lists.form {
            Form::Plain => WgpuFrame::boxes(&boxes, n),
            Form::Swept => WgpuFrame::swept(&boxes, &ends, n),
            Form::Exact => WgpuFrame::exact(&exact, n),
        };
        let mut frame = frame.excluded(&lists.extras.excluded);
        if let Some(filters) = &filters {
            frame = frame.filters(filters);
        }
        if let Some(worlds) = &worlds {
            frame = frame.worlds(worlds);
        }
        let waits = self.device.waits();
        let found = self.resident.update_wgpu(frame).cloned();
        self.waits = self.device.waits() - waits;
        let expected = self.on_cpu.update(lists.frame()).cloned();
        match (found, expected) {
            (Ok(found), Ok(expected)) => {
                equal(found.stats.backend, Backend::Wgpu)?;
                let seen = |report: &sap::Report| {
                    let counts = [report.pairs, report.started, report.ended];
                    (report.n, counts, report.invalid)
                };
                equal(seen(&found), seen(&expected))?;
            }
            (Err(found), Err(expected)) => {
                equal(found.to_string(), expected.to_string())?;
                equal(self.resident.report() == &before, true)?;
            }
            (found, expected) => return Err(format!("{found:?} for {expected:?}").into()),
        }
        self.check_lists()?;
        Ok(self.resident.report().stats.tests)
    }

    /// Compares the lists of the last update, on the device and downloaded, and some queries.
    fn check_lists(&mut self) -> Result<(), Failed> {
        same(&self.on_device()?, self.on_cpu.pairs())?;
        self.resident.download()?;
        same(self.resident.pairs(), self.on_cpu.pairs())?;
        same(self.resident.started(), self.on_cpu.started())?;
        same(self.resident.ended(), self.on_cpu.ended())?;
        let everything = Aabb::new([f32::MIN; 3], [f32::MAX; 3]);
        for bounds in [everything, Aabb::new([0.0; 3], [1.5; 3])] {
            for filter in [
                Filter::default(),
                Filter {
                    mask: 2,
                    ..Filter::default()
                },
            ] {
                let ask = |engine: &BroadPhase| {
                    let query = engine.query(bounds).filter(filter);
                    Ok::<_, Error>((query.collect()?, query.world(7).collect()?))
                };
                equal(ask(&self.resident)?, ask(&self.on_cpu)?)?;
            }
        }
        Ok(())
    }

    /// Reads the pairs where they are.
    fn on_device(&self) -> Result<Vec<Pair>, Failed> {
        let lists = self.resident.wgpu_pairs().ok_or("no pairs on the device")?;
        let mut all = Vec::new();
        for (buffer, pairs) in lists.buffers() {
            equal(pairs > 0, true)?;
            let part: Vec<Pair> = self.device.download(buffer, 0..8 * pairs)?.wait()?;
            all.extend_from_slice(&part);
        }
        equal(
            (lists.len(), lists.is_empty()),
            (all.len() as u64, all.is_empty()),
        )?;
        Ok(all)
    }
}

/// Returns the configurations of all strategies and both rules.
fn configs() -> impl Iterator<Item = Config> {
    let strategies = [Strategy::Auto, Strategy::Sweep, Strategy::Subdivided];
    let both = strategies
        .into_iter()
        .flat_map(|strategy| RULES.map(|rule| (strategy, rule)));
    both.map(|(strategy, rule)| Config {
        rule,
        ..wgpu(strategy)
    })
}

/// Frames that move, grow and shrink, with lists that come and go.
fn frames() -> Result<(), Failed> {
    let random = &mut Random::new(11);
    for config in configs() {
        let mut rig = Rig::new(&config)?;
        for n in [sized(3000, 700), 0, 90, sized(8000, 2000)] {
            let mut lists = Lists::random(random, n);
            for step in [0.0, 0.02, 0.7] {
                lists.shift(random, step);
                rig.check(&lists)?;
            }
            lists.truncate(n / 2);
            lists.extras.filters = None;
            lists.extras.worlds = None;
            rig.check(&lists)?;
        }
    }
    Ok(())
}

/// Boxes keep their stored bounds while they stay within, also those that were stored by a frame of
/// the host.
fn margins() -> Result<(), Failed> {
    let random = &mut Random::new(12);
    for margin in [0.05, 0.3, 1e-40, 2e38] {
        for rule in RULES {
            let mut rig = Rig::new(&Config {
                margin,
                rule,
                ..wgpu(Strategy::Auto)
            })?;
            let mut lists = Lists::random(random, sized(2000, 400));
            rig.resident.update(lists.frame())?;
            rig.on_cpu.update(lists.frame())?;
            for by in [0.01, 0.0, 0.1, 0.04, 0.4, 0.02] {
                lists.shift(random, by);
                rig.check(&lists)?;
            }
            let more = Lists::random(random, 300);
            rig.check(&more)?;
            lists.shift(random, 0.02);
            rig.check(&lists)?;
        }
    }
    Ok(())
}

fn few_boxes() -> Result<(), Failed> {
    let mut rig = Rig::new(&wgpu(Strategy::Auto))?;
    let one = Aabb::new([0.0; 3], [1.0; 3]);
    for n in [0, 1, 2, 0, 3, 1, 1] {
        rig.check(&Lists::of(vec![one; n]))?;
    }
    rig.check(&Lists::of(vec![Aabb::EMPTY; 5]))?;
    rig.resident.clear();
    rig.on_cpu.clear();
    equal(rig.resident.wgpu_pairs().is_none(), true)?;
    same(rig.resident.pairs(), &[])?;
    rig.check(&Lists::of(vec![one; 2]))?;
    Ok(())
}

/// A frame like the last is one submission that the host waits for once, also where the plan is
/// made anew. One that has outgrown what the last promised takes more, and its pairs are as right.
fn one_wait() -> Result<(), Failed> {
    let random = &mut Random::new(20);
    for (strategy, events) in [
        (Strategy::Auto, true),
        (Strategy::Sweep, false),
        (Strategy::Subdivided, true),
    ] {
        let mut rig = Rig::new(&Config {
            events,
            ..wgpu(strategy)
        })?;
        let mut lists = Lists::of(uniform(random, sized(3000, 900), 4.0));
        rig.check(&lists)?;
        equal(rig.waits > 1, true)?;
        for _ in 0..36 {
            lists.shift(random, 0.01);
            rig.check(&lists)?;
            equal(rig.waits, 1)?;
        }
        equal(rig.resident.report().stats.sorts.keys > 0, true)?;
        for boxes in lists.boxes.chunks_exact_mut(2) {
            boxes[0] = boxes[1];
        }
        for scale in [0.5, 0.1, 3.0] {
            for bounds in &mut lists.boxes {
                let side: [f32; 3] = std::array::from_fn(|k| bounds.max[k] - bounds.min[k]);
                bounds.min = bounds.min.map(|x| x * scale);
                bounds.max = std::array::from_fn(|k| bounds.min[k] + side[k]);
            }
            rig.check(&lists)?;
        }
        lists.shift(random, 0.01);
        rig.check(&lists)?;
        equal(rig.waits, 1)?;
        rig.check(&lists)?;
        equal((rig.waits, rig.resident.report().stats.tests), (1, 0))?;
    }
    Ok(())
}

/// Frames that are not for cells are sorted once one has shown it: one box overlaps all others, and
/// nearly all boxes begin in one step.
fn beyond_cells() -> Result<(), Failed> {
    let random = &mut Random::new(21);
    let mut crossed = vec![Aabb::new([-1.0; 3], [60.0; 3])];
    crossed.extend((0..1500).map(|i| {
        let min = [i % 12, i / 12 % 12, i / 144].map(|x| 2.0 * x as f32);
        Aabb::new(min, min.map(|x| x + 1.0))
    }));
    let steep = (0..1500).map(|_| {
        let low = 0.8_f32.powf(random.between(0.0, 300.0));
        Aabb::new([low, 0.0, 0.0], [1.01 * low, 1.0, 1.0])
    });
    for boxes in [crossed, steep.collect()] {
        let mut rig = Rig::new(&wgpu(Strategy::Auto))?;
        let mut lists = Lists::of(boxes);
        for waits_once in [false, false, true, true] {
            rig.check(&lists)?;
            equal(rig.waits == 1, waits_once)?;
            for bounds in &mut lists.boxes {
                bounds.min = bounds.min.map(|x| 1.001 * x);
                bounds.max = bounds.max.map(|x| 1.001 * x);
            }
        }
    }
    Ok(())
}

/// Bad boxes are named, or skipped, and the last result stays.
fn bad_boxes() -> Result<(), Failed> {
    let random = &mut Random::new(13);
    for on_invalid in [OnInvalid::Error, OnInvalid::Skip] {
        for margin in [0.0, 0.1] {
            let mut rig = Rig::new(&Config {
                on_invalid,
                margin,
                ..wgpu(Strategy::Auto)
            })?;
            let good = uniform(random, sized(1000, 500), 4.0);
            for form in FORMS {
                let good = Lists::of(good.clone()).in_form(random, form);
                rig.check(&good)?;
                for bad in [
                    Aabb::new([0.0, f32::NAN, 0.0], [1.0; 3]),
                    Aabb::new([0.0; 3], [1.0, 1.0, -f32::NAN]),
                    Aabb::new([0.0, 0.0, 1e-45], [1.0, 1.0, 0.0]),
                    Aabb::new([f32::INFINITY, 0.0, 0.0], [f32::NEG_INFINITY, 1.0, 1.0]),
                ] {
                    let mut lists = good.clone();
                    lists.boxes[499] = bad;
                    lists.ends[77] = bad;
                    for at in [77, 499] {
                        lists.exact[at] =
                            Aabb64::new(bad.min.map(f64::from), bad.max.map(f64::from));
                    }
                    // The order of two `f64` that are one number in `f32`.
                    lists.exact[300] = Aabb64::new([1.0 + 1e-15; 3], [1.0; 3]);
                    rig.check(&lists)?;
                    let count = rig.resident.report().invalid.map(|invalid| invalid.count);
                    let expected = match form {
                        Form::Plain => 1,
                        Form::Swept => 2,
                        Form::Exact => 3,
                    };
                    equal(count, (on_invalid == OnInvalid::Skip).then_some(expected))?;
                    rig.check(&good)?;
                }
            }
        }
    }
    Ok(())
}

/// Swept and `f64` boxes follow plain ones and each other. Frames like the last take one wait, and
/// those that are the same make no test.
fn forms() -> Result<(), Failed> {
    let random = &mut Random::new(22);
    for margin in [0.0, 0.1] {
        let mut rig = Rig::new(&Config {
            margin,
            ..wgpu(Strategy::Auto)
        })?;
        for form in [
            Form::Swept,
            Form::Exact,
            Form::Plain,
            Form::Exact,
            Form::Swept,
        ] {
            let mut lists = Lists::of(uniform(random, sized(3000, 900), 4.0));
            lists = lists.in_form(random, form);
            rig.check(&lists)?;
            for _ in 0..2 {
                lists.shift(random, 0.01);
                rig.check(&lists)?;
            }
            equal(rig.waits, 1)?;
            equal(rig.check(&lists)?, 0)?;
            // One `f64` box moves by what `f32` does not tell.
            let bounds = &mut lists.exact[5];
            bounds.max[0] += 1e-12;
            rig.check(&lists)?;
        }
    }
    Ok(())
}

/// A frame that is the same as the last makes no test, and one whose filters alone have changed is
/// not the same.
fn unchanged() -> Result<(), Failed> {
    let random = &mut Random::new(14);
    let mut rig = Rig::new(&wgpu(Strategy::Auto))?;
    let mut lists = Lists::of(uniform(random, 500, 4.0));
    lists.extras.filters = Some(vec![Filter::default(); 500]);
    equal(rig.check(&lists)? > 0, true)?;
    for _ in 0..3 {
        equal(rig.check(&lists)?, 0)?;
    }
    lists.extras.filters = Some(vec![
        Filter {
            flags: FilterFlags::STATIC,
            ..Filter::default()
        };
        500
    ]);
    equal(rig.check(&lists)? > 0, true)?;
    equal(rig.resident.report().pairs, 0)?;
    lists.extras.worlds = Some(vec![5; 500]);
    equal(rig.check(&lists)? > 0, true)?;
    // Boxes that move within their margin.
    let mut rig = Rig::new(&Config {
        margin: 0.5,
        ..wgpu(Strategy::Auto)
    })?;
    rig.check(&lists)?;
    lists.shift(random, 0.2);
    equal(rig.check(&lists)?, 0)
}

/// Frames of the host and of the device follow each other.
fn beside_host_frames() -> Result<(), Failed> {
    let random = &mut Random::new(15);
    for margin in [0.0, 0.2] {
        let mut rig = Rig::new(&Config {
            margin,
            ..wgpu(Strategy::Auto)
        })?;
        let mut lists = Lists::random(random, 600);
        for frame in 0..8 {
            lists.shift(random, 0.1);
            if frame % 3 == 1 {
                rig.resident.update(lists.frame())?;
                rig.on_cpu.update(lists.frame())?;
                equal(rig.resident.wgpu_pairs().is_none(), true)?;
                same(rig.resident.pairs(), rig.on_cpu.pairs())?;
                same(rig.resident.started(), rig.on_cpu.started())?;
                same(rig.resident.ended(), rig.on_cpu.ended())?;
            } else {
                rig.check(&lists)?;
            }
            // A frame of the host that fails changes nothing.
            let broken = [Aabb::new([f32::NAN; 3], [1.0; 3])];
            equal(rig.resident.update(&broken).is_err(), true)?;
            same(rig.resident.pairs(), rig.on_cpu.pairs())?;
            let others = rig
                .resident
                .overlaps_between(lists.frame(), &lists.boxes[..50])?;
            equal(
                others
                    == rig
                        .on_cpu
                        .overlaps_between(lists.frame(), &lists.boxes[..50])?,
                true,
            )?;
        }
    }
    Ok(())
}

fn without_events() -> Result<(), Failed> {
    let random = &mut Random::new(16);
    let mut rig = Rig::new(&Config {
        events: false,
        ..wgpu(Strategy::Auto)
    })?;
    for n in [300, 400, 200] {
        rig.check(&Lists::of(uniform(random, n, 4.0)))?;
    }
    Ok(())
}

/// Boxes that were spread out come together, so that the plan of the frames before no longer suits.
fn crowds() -> Result<(), Failed> {
    let random = &mut Random::new(17);
    let n = sized(6000, 2000);
    let wide = uniform(random, n, 0.5);
    for strategy in [Strategy::Auto, Strategy::Subdivided] {
        let mut rig = Rig::new(&wgpu(strategy))?;
        for scale in [1.0, 1.0, 0.3, 0.1, 4.0, 4.0] {
            let moved = |b: &Aabb| {
                let min = b.min.map(|x| x * scale);
                Aabb::new(min, std::array::from_fn(|k| min[k] + b.max[k] - b.min[k]))
            };
            rig.check(&Lists::of(wide.iter().map(moved).collect()))?;
        }
    }
    Ok(())
}

/// A device that binds little sorts its pairs in parts.
fn lists_in_parts() -> Result<(), Failed> {
    let random = &mut Random::new(18);
    for rule in RULES {
        let device = opened(Features::empty(), Some(1 << 16))?;
        let mut rig = Rig::on(
            device,
            &Config {
                rule,
                ..wgpu(Strategy::Sweep)
            },
        )?;
        let mut lists = Lists::of(uniform(random, 900, 60.0));
        for step in [0.0, 0.05, 0.3] {
            lists.shift(random, step);
            rig.check(&lists)?;
            let parts = rig.resident.wgpu_pairs().map(|pairs| pairs.buffers().len());
            equal(parts > Some(2), true)?;
        }
        // The pairs of a frame of the host are compared in parts too.
        rig.resident.update(lists.frame())?;
        rig.on_cpu.update(lists.frame())?;
        lists.shift(random, 0.3);
        rig.check(&lists)?;
        lists.boxes.truncate(40);
        rig.check(&lists)?;
        let parts = rig.resident.wgpu_pairs().map(|pairs| pairs.buffers().len());
        equal(parts, Some(1))?;
    }
    Ok(())
}

/// More pairs than allowed are an error with their number, and the last result stays.
fn too_many_pairs() -> Result<(), Failed> {
    let mut rig = Rig::new(&Config {
        pair_memory: Some(8 * 10),
        ..wgpu(Strategy::Auto)
    })?;
    let one = Aabb::new([0.0; 3], [1.0; 3]);
    for n in [3, 5, 6, 4, 20] {
        rig.check(&Lists::of(vec![one; n]))?;
    }
    equal(rig.resident.report().pairs, 6)?;
    // Nor are lists lost that nobody has downloaded.
    let boxes = rig.buffer(&[one; 20])?;
    for n in [3, 20, 7] {
        let frame = WgpuFrame::boxes(&boxes, n);
        let found = rig.resident.update_wgpu(frame).is_ok();
        equal(found, rig.on_cpu.update(&[one; 20][..n]).is_ok())?;
    }
    rig.check_lists()
}

/// Buffers that cannot be used are errors that say why.
fn buffers() -> Result<(), Failed> {
    let [device, other] = two_opened()?;
    let mut rig = Rig::on(device, &wgpu(Strategy::Auto))?;
    let lists = Lists::of(vec![Aabb::new([0.0; 3], [1.0; 3]); 4]);
    rig.check(&lists)?;
    let boxes = rig.buffer(&lists.boxes)?;
    let four = rig.buffer(&[0_u32; 4])?;
    let refused = |rig: &mut Rig, frame: WgpuFrame| rig.resident.update_wgpu(frame).err();
    let short = refused(&mut rig, WgpuFrame::boxes(&boxes, 5));
    let (needed, given) = (120, 96);
    match short {
        Some(Error::BufferSize {
            what: "boxes",
            boxes: 5,
            needed: n,
            given: g,
        }) => equal((n, g), (needed, given))?,
        other => return Err(format!("{other:?}").into()),
    }
    match refused(&mut rig, WgpuFrame::swept(&boxes, &four, 4)) {
        Some(Error::BufferSize {
            what: "end boxes",
            needed: 96,
            given: 16,
            ..
        }) => {}
        other => return Err(format!("{other:?}").into()),
    }
    match refused(&mut rig, WgpuFrame::exact(&boxes, 4)) {
        Some(Error::BufferSize {
            what: "boxes",
            needed: 192,
            given: 96,
            ..
        }) => {}
        other => return Err(format!("{other:?}").into()),
    }
    let few = WgpuFrame::boxes(&boxes, 4).filters(&four);
    match refused(&mut rig, few) {
        Some(Error::BufferSize {
            what: "filters", ..
        }) => {}
        other => return Err(format!("{other:?}").into()),
    }
    let usage = BufferUsages::COPY_DST | BufferUsages::COPY_SRC;
    let wrong = rig.device.upload("boxes", &lists.boxes, usage)?;
    match refused(&mut rig, WgpuFrame::boxes(&wrong, 4)) {
        Some(Error::BufferUsage {
            what: "boxes",
            usage: found,
        }) => equal(found, usage)?,
        other => return Err(format!("{other:?}").into()),
    }
    let foreign = other.upload("boxes", &lists.boxes, BufferUsages::STORAGE)?;
    let worlds = WgpuFrame::boxes(&boxes, 4).worlds(&foreign);
    for (what, frame) in [
        ("boxes", WgpuFrame::boxes(&foreign, 4)),
        ("start or end boxes", WgpuFrame::swept(&boxes, &foreign, 4)),
        ("boxes", WgpuFrame::exact(&foreign, 2)),
        ("worlds", worlds),
    ] {
        match refused(&mut rig, frame) {
            Some(Error::ForeignBuffer { what: found, .. }) => equal(found, what)?,
            other => return Err(format!("{other:?}").into()),
        }
    }
    let order = [Pair { a: 2, b: 1 }];
    let excluded = WgpuFrame::boxes(&boxes, 4).excluded(&order);
    match refused(&mut rig, excluded) {
        Some(Error::ExcludedOrder { index: 0, .. }) => {}
        other => return Err(format!("{other:?}").into()),
    }
    // A longer buffer is as good.
    equal(
        rig.resident.update_wgpu(WgpuFrame::boxes(&boxes, 2))?.pairs,
        1,
    )?;
    rig.on_cpu.update(&lists.boxes[..2])?;
    rig.check_lists()
}

/// A lost device is an error, and the report of the last update stays.
fn lost() -> Result<(), Failed> {
    let mut rig = Rig::new(&wgpu(Strategy::Auto))?;
    let lists = Lists::of(uniform(&mut Random::new(19), 300, 4.0));
    rig.check(&lists)?;
    let boxes = rig.buffer(&lists.boxes[1..])?;
    rig.device.wgpu().destroy();
    for _ in 0..2 {
        match rig
            .resident
            .update_wgpu(WgpuFrame::boxes(&boxes, 299))
            .err()
        {
            Some(Error::Wgpu(_) | Error::Sort(_) | Error::ForeignBuffer { .. }) => {}
            other => return Err(format!("{other:?}").into()),
        }
        equal(rig.resident.report().n, 300)?;
        same(rig.resident.pairs(), rig.on_cpu.pairs())?;
    }
    Ok(())
}

/// Other engines refuse buffers.
fn other_engines() -> Result<(), Failed> {
    let device = opened(Features::empty(), None)?;
    let boxes = device.upload("boxes", &[0.0_f32; 6], BufferUsages::STORAGE)?;
    let mut on_cpu = BroadPhase::new(cpu(&wgpu(Strategy::Auto)))?;
    match on_cpu.update_wgpu(WgpuFrame::boxes(&boxes, 1)).err() {
        Some(Error::NoWgpu { looked_for }) => equal(looked_for.contains("cpu"), true)?,
        other => return Err(format!("{other:?}").into()),
    }
    equal(on_cpu.wgpu_pairs().is_none(), true)
}
