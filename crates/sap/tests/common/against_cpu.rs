//! Random frames on a device and on the CPU give the same pairs, events and reports.

use super::scenes::Random;
use super::{equal, quick, same};
use libtest_mimic::Failed;
use sap::{
    Aabb, Aabb64, Backend, BroadPhase, Config, Filter, FilterFlags, Frame, OnInvalid, OverlapRule,
    Pair, Report, Strategy,
};

/// A check of one configuration, which names the backend and the strategy.
type Check = fn(&Config) -> Result<(), Failed>;

pub const ALL: &[(&str, Check)] = &[
    ("against_cpu::frames", frames),
    ("against_cpu::sizes", sizes),
    ("against_cpu::margins", margins),
    ("against_cpu::two_sets", two_sets),
    ("against_cpu::chunks", chunks),
    ("against_cpu::bad_boxes", bad_boxes),
    ("against_cpu::many_worlds", many_worlds),
    ("against_cpu::million", million),
];

/// Returns the same configuration for the CPU.
pub fn cpu(config: &Config) -> Config {
    Config {
        backend: Backend::Cpu,
        ..config.clone()
    }
}

pub fn engine(config: &Config) -> BroadPhase {
    BroadPhase::new(config.clone()).expect("the backend is there")
}

/// Returns the size to test: `quick` where a tool slows everything down.
pub fn sized(full: usize, small: usize) -> usize {
    if quick() { small } else { full }
}

/// Fails with a message unless a condition holds.
pub fn holds(condition: bool, text: impl FnOnce() -> String) -> Result<(), Failed> {
    if condition {
        Ok(())
    } else {
        Err(text().into())
    }
}

/// Returns `n` boxes, about `density` in a unit of volume, with half sides of 0.2 to 0.5.
pub fn uniform(random: &mut Random, n: usize, density: f32) -> Vec<Aabb> {
    random.boxes(n, [(n as f32 / density).cbrt(); 3])
}

/// The lists that a frame may have besides its boxes.
#[derive(Clone, Default)]
pub struct Extras {
    pub filters: Option<Vec<Filter>>,
    pub worlds: Option<Vec<u32>>,
    pub excluded: Vec<Pair>,
}

impl Extras {
    /// Creates random lists for `n` boxes, each in half of the cases.
    pub fn random(random: &mut Random, n: usize) -> Self {
        let mut extras = Self::default();
        if random.chance(2) {
            let filter = |random: &mut Random| Filter {
                layers: 1 << random.below(3),
                mask: random.bits() as u32 & 7,
                group: random.below(4) as u32,
                flags: FilterFlags(random.bits() as u32 & 7),
            };
            extras.filters = Some((0..n).map(|_| filter(random)).collect());
        }
        if random.chance(2) {
            // Worlds of all sizes, with the max id.
            let world = |random: &mut Random| [0, 7, 7, u32::MAX][random.below(4)];
            extras.worlds = Some((0..n).map(|_| world(random)).collect());
        }
        if n > 1 && random.chance(2) {
            let pairs = (0..n).map(|_| Pair::new(random.below(n) as u32, random.below(n) as u32));
            extras.excluded = pairs.filter(|pair| pair.a < pair.b).collect();
            extras.excluded.sort_unstable();
        }
        extras
    }

    /// Adds the lists to a frame.
    pub fn with<'a>(&'a self, mut frame: Frame<'a>) -> Frame<'a> {
        if let Some(filters) = &self.filters {
            frame = frame.filters(filters);
        }
        if let Some(worlds) = &self.worlds {
            frame = frame.worlds(worlds);
        }
        frame.excluded(&self.excluded)
    }
}

/// A frame that owns its lists.
#[derive(Clone)]
pub struct Owned {
    pub form: usize,
    pub boxes: Vec<Aabb>,
    pub ends: Vec<Aabb>,
    pub exact: Vec<Aabb64>,
    pub extras: Extras,
}

impl Owned {
    /// Creates a frame. `form`: 0 plain, 1 swept, 2 `f64`; everything else is random.
    pub fn new(random: &mut Random, n: usize, form: usize) -> Self {
        let density = [0.3, 1.0, 8.0][random.below(3)];
        let mut owned = Self {
            form,
            boxes: uniform(random, n, density),
            ends: Vec::new(),
            exact: Vec::new(),
            extras: Extras::default(),
        };
        owned.spice(random);
        owned.extras = Extras::random(random, n);
        owned
    }

    /// Adds special boxes: infinite, huge, flat, empty and equal ones, and zeros of both signs.
    fn spice(&mut self, random: &mut Random) {
        const INF: f32 = f32::INFINITY;
        let n = self.boxes.len();
        for _ in 0..n / 40 {
            let copied = self.boxes[random.below(n)];
            self.boxes[random.below(n)] = match random.below(8) {
                0 => Aabb::EMPTY,
                1 => Aabb::new([-INF; 3], [INF, 0.0, INF]),
                2 => Aabb::new([-INF, 1.0, 1.0], [INF, 1.0, 2.0]),
                3 => Aabb::new([0.0, -0.0, 0.0], [-0.0, 0.0, 1.0]),
                4 => Aabb::new([f32::MIN; 3], [0.5, 0.5, f32::MAX]),
                5 => Aabb::new(copied.min, copied.min),
                6 => Aabb::new(copied.max, copied.max.map(|x| x + 1.0)),
                _ => copied,
            };
        }
        let shift = |b: &Aabb, by: f32| Aabb::new(b.min.map(|x| x + by), b.max.map(|x| x + by));
        self.ends = self
            .boxes
            .iter()
            .map(|b| shift(b, random.between(-0.5, 0.5)))
            .collect();
        let jitter = |random: &mut Random, b: &Aabb| {
            let by = f64::from(random.between(0.0, 1e-7));
            Aabb64::new(
                b.min.map(|x| f64::from(x) + by),
                b.max.map(|x| f64::from(x) + by),
            )
        };
        self.exact = self.boxes.iter().map(|b| jitter(random, b)).collect();
    }

    /// Moves a few boxes a little.
    fn step(&mut self, random: &mut Random) {
        let n = self.boxes.len();
        for _ in 0..n / 5 {
            let i = random.below(n);
            let by = random.between(-0.2, 0.2);
            self.boxes[i] = Aabb::new(
                self.boxes[i].min.map(|x| x + by),
                self.boxes[i].max.map(|x| x + by),
            );
            self.exact[i] = Aabb64::new(
                self.boxes[i].min.map(f64::from),
                self.boxes[i].max.map(f64::from),
            );
        }
    }

    pub fn frame(&self) -> Frame<'_> {
        self.extras.with(match self.form {
            0 => Frame::boxes(&self.boxes),
            1 => Frame::swept(&self.boxes, &self.ends),
            _ => Frame::exact(&self.exact),
        })
    }
}

/// Runs both engines on the same frames.
struct Both {
    device: BroadPhase,
    cpu: BroadPhase,
    /// Whether both have planned a frame.
    has_plan: bool,
}

impl Both {
    fn new(config: &Config) -> Self {
        Self {
            device: engine(config),
            cpu: engine(&cpu(config)),
            has_plan: false,
        }
    }

    fn update(&mut self, frame: Frame, worlds: bool, what: &str) -> Result<(), Failed> {
        let (on_device, on_cpu) = (
            self.device.update(frame).cloned(),
            self.cpu.update(frame).cloned(),
        );
        let (on_device, on_cpu) = match (on_device, on_cpu) {
            (Ok(x), Ok(y)) => (x, y),
            (x, y) => {
                let [x, y] =
                    [x, y].map(|result| result.map(|_| ()).map_err(|error| error.to_string()));
                return holds(x == y, || {
                    format!("{what}: the device gives {x:?}, the CPU {y:?}")
                });
            }
        };
        let lists = [
            ("pairs", self.device.pairs(), self.cpu.pairs()),
            ("started", self.device.started(), self.cpu.started()),
            ("ended", self.device.ended(), self.cpu.ended()),
        ];
        for (list, x, y) in lists {
            same(x, y).map_err(|error| {
                format!("{what}: {list}: {}", error.message().unwrap_or_default())
            })?;
        }
        // With worlds the engines estimate candidates differently and may sweep on different axes.
        // Cells and columns do not compare at all. After its first frame the CPU may follow its
        // last plan, where the device makes a new one.
        let is_planned = !std::mem::replace(&mut self.has_plan, true);
        let alike = is_planned && !worlds && self.device.config().strategy != Strategy::Subdivided;
        let axis = |report: &Report| if alike { report.stats.axis } else { 0 };
        let counts = |report: &Report| {
            (
                report.n,
                report.pairs,
                report.started,
                report.ended,
                report.invalid,
                axis(report),
            )
        };
        holds(counts(&on_device) == counts(&on_cpu), || {
            format!("{what}: {on_device:?}, on the CPU {on_cpu:?}")
        })?;
        let boxes = [
            Aabb::new([0.0; 3], [3.0; 3]),
            Aabb::new([-1e30; 3], [1e30; 3]),
        ];
        for query in boxes {
            equal(self.device.query_box(&query)?, self.cpu.query_box(&query)?)?;
        }
        Ok(())
    }
}

fn both_rules(check: impl Fn(OverlapRule) -> Result<(), Failed>) -> Result<(), Failed> {
    [OverlapRule::Closed, OverlapRule::Open]
        .into_iter()
        .try_for_each(check)
}

/// Sequences of frames of all forms, with everything that a frame can carry.
fn frames(base: &Config) -> Result<(), Failed> {
    both_rules(|rule| {
        for seed in 0..sized(40, 4) as u64 {
            let mut random = Random::new(seed);
            let margin = [0.0, 0.0, 0.1][random.below(3)];
            let mut both = Both::new(&Config {
                rule,
                margin,
                ..base.clone()
            });
            let mut owned = Owned::new(&mut random, 1, 0);
            for number in 0..6 {
                match random.below(4) {
                    0 => {}
                    1 | 2 => owned.step(&mut random),
                    _ => {
                        let (n, form) = (random.below(sized(3000, 300)), random.below(3));
                        owned = Owned::new(&mut random, n, form);
                    }
                }
                let what = format!(
                    "{rule:?}, seed {seed}, frame {number}, n {}, form {}, margin {margin}",
                    owned.boxes.len(),
                    owned.form
                );
                both.update(owned.frame(), owned.extras.worlds.is_some(), &what)?;
            }
        }
        Ok(())
    })
}

/// Sizes around warps, chunks, tiles and blocks. Both engines count the same candidates.
fn sizes(base: &Config) -> Result<(), Failed> {
    let edges = [
        0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 383, 384, 385,
        511, 513, 1023, 1025, 4095, 4097,
    ];
    let mut both = Both::new(base);
    for n in edges.into_iter().take(sized(edges.len(), 8)) {
        for density in [0.5, 4.0] {
            let boxes = uniform(&mut Random::new(n as u64), n, density);
            both.update(
                Frame::boxes(&boxes),
                false,
                &format!("n {n}, density {density}"),
            )?;
            let (x, y) = (
                both.device.report().stats.tests,
                both.cpu.report().stats.tests,
            );
            holds(x == y || base.strategy == Strategy::Subdivided, || {
                format!("n {n}: {x} tests, on the CPU {y}")
            })?;
        }
    }
    Ok(())
}

/// Boxes that creep, jump, come and go with a margin.
fn margins(base: &Config) -> Result<(), Failed> {
    both_rules(|rule| {
        let mut random = Random::new(5);
        let mut both = Both::new(&Config {
            rule,
            margin: 0.25,
            ..base.clone()
        });
        let mut owned = Owned::new(&mut random, sized(1500, 200), 0);
        for number in 0..sized(12, 4) {
            owned.step(&mut random);
            let n = random.below(owned.boxes.len()) + 1;
            let frame = Owned {
                boxes: owned.boxes[..n].to_vec(),
                extras: Extras::default(),
                ..owned.clone()
            };
            both.update(frame.frame(), false, &format!("{rule:?}, frame {number}"))?;
        }
        Ok(())
    })
}

fn two_sets(base: &Config) -> Result<(), Failed> {
    both_rules(|rule| {
        for seed in 0..sized(40, 6) as u64 {
            let mut random = Random::new(1000 + seed);
            let config = Config {
                rule,
                ..base.clone()
            };
            let mut set = |limit: usize| {
                let (n, form) = (random.below(limit), random.below(3));
                Owned::new(&mut random, n, form)
            };
            let (mut a, b) = (set(sized(2000, 200)), set(sized(3000, 300)));
            let excluded = (0..a.boxes.len()).map(|i| Pair {
                a: i as u32,
                b: (i / 2) as u32,
            });
            a.extras.excluded = excluded.collect();
            let mut on_device = engine(&config);
            let last = uniform(&mut Random::new(1), 50, 4.0);
            on_device.update(&last).map_err(|error| error.to_string())?;
            let before = on_device.pairs().to_vec();
            let found = on_device
                .overlaps_between(a.frame(), b.frame())
                .map_err(|error| error.to_string())?;
            let expected = engine(&cpu(&config))
                .overlaps_between(a.frame(), b.frame())
                .map_err(|error| error.to_string())?;
            same(&found, &expected).map_err(|error| {
                format!(
                    "{rule:?}, seed {seed}, forms {} {}: {}",
                    a.form,
                    b.form,
                    error.message().unwrap_or_default()
                )
            })?;
            same(on_device.pairs(), &before)?;
        }
        Ok(())
    })
}

/// Chunks of all sizes, in one group and in many.
fn chunks(base: &Config) -> Result<(), Failed> {
    let mut random = Random::new(77);
    let owned = Owned::new(&mut random, sized(1500, 250), 0);
    let mut on_cpu = engine(&cpu(base));
    on_cpu
        .update(owned.frame())
        .map_err(|error| error.to_string())?;
    let expected = on_cpu.pairs();
    for pair_memory in [None, Some(8 * 100), Some(8)] {
        for chunk in [1, 7, 1000, usize::MAX] {
            if chunk == 1 && pair_memory.is_some() {
                continue;
            }
            let mut broad_phase = engine(&Config {
                pair_memory,
                ..base.clone()
            });
            let mut found = Vec::new();
            let mut most = 0;
            let report = broad_phase.for_each_pair_chunk(owned.frame(), chunk, |pairs| {
                most = most.max(pairs.len());
                found.extend_from_slice(pairs);
            });
            let report = report.map_err(|error| error.to_string())?;
            let what = format!("pair_memory {pair_memory:?}, chunk {chunk}");
            same(&found, expected)
                .map_err(|error| format!("{what}: {}", error.message().unwrap_or_default()))?;
            holds(most <= chunk && report.pairs == found.len() as u64, || {
                format!("{what}: {most} at once, {report:?}")
            })?;
            equal(report.chunks, (found.len() as u64).div_ceil(chunk as u64))?;
            holds(broad_phase.pairs().is_empty(), || {
                format!("{what}: the last update is not left alone")
            })?;
        }
    }
    Ok(())
}

/// Invalid boxes in all forms give the same error, or the same report and pairs.
fn bad_boxes(base: &Config) -> Result<(), Failed> {
    const NAN: f32 = f32::NAN;
    for on_invalid in [OnInvalid::Error, OnInvalid::Skip] {
        for form in 0..3 {
            let mut random = Random::new(form as u64);
            let mut both = Both::new(&Config {
                on_invalid,
                ..base.clone()
            });
            let good = Owned::new(&mut random, sized(700, 150), form);
            both.update(good.frame(), good.extras.worlds.is_some(), "good")?;
            let n = good.boxes.len();
            let breaks: [fn(&mut Aabb); 4] = [
                |b| b.min[1] = NAN,
                |b| b.max[2] = -NAN,
                |b| (b.min[0], b.max[0]) = (2.0, 1.0),
                |b| (b.min[2], b.max[2]) = (f32::INFINITY, f32::NEG_INFINITY),
            ];
            for (number, spoil) in breaks.into_iter().enumerate() {
                let mut bad = good.clone();
                for _ in 0..=random.below(40) {
                    let i = random.below(n);
                    spoil(&mut bad.boxes[i]);
                    spoil(&mut bad.ends[random.below(n)]);
                    let widened = Aabb64::new(
                        bad.boxes[i].min.map(f64::from),
                        bad.boxes[i].max.map(f64::from),
                    );
                    bad.exact[i] = widened;
                }
                let what = format!("{on_invalid:?}, form {form}, break {number}");
                both.update(bad.frame(), bad.extras.worlds.is_some(), &what)?;
                // After an error both have their last result.
                same(both.device.pairs(), both.cpu.pairs())?;
                let (x, y) = (
                    both.device.overlaps_between(good.frame(), bad.frame()),
                    both.cpu.overlaps_between(good.frame(), bad.frame()),
                );
                equal(
                    x.map_err(|error| error.to_string()),
                    y.map_err(|error| error.to_string()),
                )?;
            }
        }
    }
    Ok(())
}

/// Thousands of small worlds at one place. The sweep stays within each.
fn many_worlds(base: &Config) -> Result<(), Failed> {
    let (worlds, each) = (sized(4000, 40), 50);
    let mut random = Random::new(9);
    let boxes = uniform(&mut random, worlds * each, worlds as f32);
    let ids: Vec<u32> = (0..boxes.len())
        .map(|_| random.below(worlds) as u32)
        .collect();
    let mut both = Both::new(base);
    // On the CPU `Endpoints` tests worlds last.
    both.cpu = engine(&Config {
        strategy: Strategy::Auto,
        ..cpu(base)
    });
    both.update(Frame::boxes(&boxes).worlds(&ids), true, "many worlds")?;
    let (tests, pairs) = (both.device.report().stats.tests, both.device.report().pairs);
    // About half the boxes of a world overlap on an axis.
    let most = (worlds * each * each) as u64;
    holds(tests < most, || {
        format!("{tests} tests for {pairs} pairs: worlds are swept together")
    })
}

/// The uniform scene that peers are measured on.
fn million(base: &Config) -> Result<(), Failed> {
    let boxes = uniform(&mut Random::new(3), sized(1_000_000, 2_000), 1.0);
    let mut both = Both::new(base);
    // The reference uses a fast strategy.
    both.cpu = engine(&Config {
        strategy: Strategy::Subdivided,
        ..cpu(base)
    });
    both.device
        .update(&boxes)
        .map_err(|error| error.to_string())?;
    both.cpu.update(&boxes).map_err(|error| error.to_string())?;
    same(both.device.pairs(), both.cpu.pairs())
}
