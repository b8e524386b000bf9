//! Frames in which most boxes are static or asleep and form a resting set, each against a rebuild.

use super::equal;
use super::scenes::{Random, around};
use libtest_mimic::Failed;
use sap::{
    Aabb, Backend, BroadPhase, Config, Filter, FilterFlags, Frame, OnInvalid, OverlapRule, Pair,
    Report, Strategy,
};

/// The side of the cube that boxes are in.
const SIDE: f32 = 10.0;

/// A frame that owns its lists.
struct Scene {
    random: Random,
    boxes: Vec<Aabb>,
    filters: Vec<Filter>,
    worlds: Option<Vec<u32>>,
    excluded: Vec<Pair>,
}

impl Scene {
    /// Creates `n` boxes. One in `one_in` moves; the others are static or asleep.
    fn new(seed: u64, n: usize, one_in: usize) -> Self {
        let mut random = Random::new(seed);
        let mut filter = |i: usize| {
            let flags = match random.below(3) {
                _ if i.is_multiple_of(one_in) => FilterFlags(0),
                0 => FilterFlags::STATIC,
                1 => FilterFlags::ASLEEP,
                _ => FilterFlags(FilterFlags::STATIC.0 | FilterFlags::ASLEEP.0),
            };
            Filter {
                layers: 1 << random.below(2),
                mask: 1 + random.below(3) as u32,
                group: random.below(5) as u32,
                flags,
            }
        };
        let filters = (0..n).map(&mut filter).collect();
        let boxes = (0..n).map(|_| one(&mut random)).collect();
        let worlds = random
            .chance(3)
            .then(|| (0..n).map(|_| [0, 7, u32::MAX][random.below(3)]).collect());
        let mut excluded: Vec<Pair> = (0..n)
            .map(|_| Pair::new(random.below(n) as u32, random.below(n) as u32))
            .filter(|pair| pair.a < pair.b)
            .collect();
        excluded.sort_unstable();
        Self {
            random,
            boxes,
            filters,
            worlds,
            excluded,
        }
    }

    fn frame(&self) -> Frame<'_> {
        let frame = Frame::boxes(&self.boxes)
            .filters(&self.filters)
            .excluded(&self.excluded);
        match &self.worlds {
            Some(worlds) => frame.worlds(worlds),
            None => frame,
        }
    }

    fn is_fixed(&self, i: usize) -> bool {
        self.filters[i].flags.0 & 3 != 0
    }

    fn fixed_boxes(&self) -> usize {
        (0..self.boxes.len()).filter(|&i| self.is_fixed(i)).count()
    }

    /// Picks a box that is static or asleep, or one that is not.
    fn any(&mut self, fixed: bool) -> usize {
        loop {
            let i = self.random.below(self.boxes.len());
            if self.is_fixed(i) == fixed {
                return i;
            }
        }
    }

    fn move_the_others(&mut self) {
        for i in 0..self.boxes.len() {
            if !self.is_fixed(i) {
                self.boxes[i] = one(&mut self.random);
            }
        }
    }

    /// Changes at least one box of the resting set, or ends the set otherwise.
    fn disturb(&mut self, how: usize) {
        let i = self.any(true);
        match how {
            0 => self.boxes[i] = one(&mut self.random),
            1 => self.filters[i].flags = FilterFlags(0),
            2 => {
                let i = self.any(false);
                self.filters[i].flags = FilterFlags::ASLEEP;
            }
            3 => self.filters[i].mask ^= 3,
            4 => self.boxes[i] = Aabb::new([f32::NAN; 3], [0.0; 3]),
            5 => {
                self.boxes.push(one(&mut self.random));
                self.filters.push(self.filters[i]);
                if let Some(worlds) = &mut self.worlds {
                    worlds.push(7);
                }
            }
            6 => self.excluded.clear(),
            _ => match &mut self.worlds {
                Some(worlds) => worlds[i] ^= 7,
                None => self.filters[i].layers ^= 3,
            },
        }
    }
}

/// The number of ways of [`Scene::disturb`].
const DISTURBANCES: usize = 8;

/// A random box: most are small, some are large, flat, infinite or empty.
fn one(random: &mut Random) -> Aabb {
    const INF: f32 = f32::INFINITY;
    let center = std::array::from_fn(|_| random.between(0.0, SIDE));
    let half = match random.below(24) {
        0 => 3.0,
        1 => 0.0,
        2 => 0.01,
        _ => random.between(0.1, 0.6),
    };
    match random.below(60) {
        0 => Aabb::EMPTY,
        1 => Aabb::new([-INF; 3], [INF, 1.0, INF]),
        2 => Aabb::new([-1e30; 3], [1e30, 5.0, 1e30]),
        _ => around(center, [half, half * random.between(0.3, 1.0), half]),
    }
}

/// Creates the engine to compare with, which has no resting set. It runs along, because with a
/// margin the stored boxes depend on earlier frames.
fn rebuild(config: &Config) -> Result<BroadPhase, sap::Error> {
    BroadPhase::new(Config {
        backend: Backend::Cpu,
        strategy: Strategy::Sweep,
        min_resting: Some(usize::MAX),
        ..config.clone()
    })
}

fn update(
    engine: &mut BroadPhase,
    plain: &mut BroadPhase,
    scene: &Scene,
    what: &str,
) -> Result<Report, Failed> {
    update_changed(engine, plain, scene, None, what)
}

fn update_changed(
    engine: &mut BroadPhase,
    plain: &mut BroadPhase,
    scene: &Scene,
    changed: Option<&[u32]>,
    what: &str,
) -> Result<Report, Failed> {
    let frame = scene.frame();
    let frame = changed.map_or(frame, |changed| frame.changed(changed));
    let found = engine.update(frame)?.clone();
    let expected = plain.update(scene.frame())?.clone();
    let counts = |report: &Report| {
        (
            report.n,
            report.pairs,
            report.started,
            report.ended,
            report.invalid.map(|invalid| (invalid.count, invalid.first)),
        )
    };
    let lists = [
        (engine.pairs(), plain.pairs()),
        (engine.started(), plain.started()),
        (engine.ended(), plain.ended()),
    ];
    for (found, expected) in lists {
        super::same(found, expected)
            .map_err(|failed| format!("{what}: {}", failed.message().unwrap_or("failed")))?;
    }
    equal(counts(&found), counts(&expected))?;
    Ok(found)
}

/// Runs frames of static and moving boxes, with each disturbance of the resting set.
pub fn frames(backend: Backend, strategy: Strategy, n: usize, seeds: u64) -> Result<(), Failed> {
    let configs = [
        (OverlapRule::Closed, 0.0),
        (OverlapRule::Open, 0.0),
        (OverlapRule::Closed, 0.05),
    ];
    for seed in 0..seeds {
        let (rule, margin) = configs[seed as usize % configs.len()];
        let config = Config {
            backend,
            strategy,
            rule,
            margin,
            on_invalid: OnInvalid::Skip,
            min_resting: Some(1),
            ..Config::default()
        };
        for how in 0..DISTURBANCES {
            let mut scene = Scene::new(seed * 31 + how as u64, n, 2 + how);
            let (mut engine, mut plain) = (BroadPhase::new(config.clone())?, rebuild(&config)?);
            let mut run = |scene: &mut Scene, frames: usize, what: &str| {
                let mut last = None;
                for number in 0..frames {
                    let what = format!("seed {seed}, disturbance {how}, {what} {number}");
                    last = Some(update(&mut engine, &mut plain, scene, &what)?);
                    scene.move_the_others();
                }
                Ok::<_, Failed>(last.map(|report| report.stats.resting))
            };
            equal(
                run(&mut scene, 5, "before")?,
                Some(scene.fixed_boxes() as u64),
            )?;
            scene.disturb(how);
            equal(run(&mut scene, 1, "disturbed")?, Some(0))?;
            equal(
                run(&mut scene, 8, "after")?,
                Some(scene.fixed_boxes() as u64),
            )?;
        }
    }
    Ok(())
}

/// Static boxes that all overlap cost no tests while they rest. Below the threshold none rest.
pub fn costs_nothing(backend: Backend, strategy: Strategy) -> Result<(), Failed> {
    const STATIC: usize = 600;
    let fixed = Filter {
        flags: FilterFlags::STATIC,
        ..Filter::default()
    };
    let mut filters = vec![fixed; STATIC];
    filters.extend([Filter::default(); 4]);
    let mut boxes = vec![Aabb::new([0.0; 3], [1.0; 3]); STATIC];
    boxes.extend((0..4).map(|i| around([i as f32 * 0.01, 0.5, 50.0], [0.1; 3])));
    for (min_resting, resting) in [(Some(STATIC), STATIC), (Some(STATIC + 1), 0)] {
        let mut engine = BroadPhase::new(Config {
            backend,
            strategy,
            min_resting,
            ..Config::default()
        })?;
        for number in 0..8_u8 {
            // The others move far from the static boxes.
            boxes[STATIC].min[2] = 49.0 - f32::from(number);
            let report = engine.update(Frame::boxes(&boxes).filters(&filters))?;
            equal(report.pairs, 6)?;
            if number > 3 {
                equal(report.stats.resting, resting as u64)?;
                // At most each moving box against each static one. The static ones alone have
                // 179,700 pairs.
                let max_tests = if resting > 0 {
                    5 * STATIC as u64
                } else {
                    u64::MAX
                };
                equal(report.stats.tests <= max_tests, true)?;
            }
        }
    }
    Ok(())
}

/// All that decides the pairs of a box, bit for bit.
fn state(scene: &Scene, i: usize) -> ([u32; 6], Filter, u32) {
    let bits = bytemuck::cast(scene.boxes[i]);
    let world = scene.worlds.as_ref().map_or(0, |worlds| worlds[i]);
    (bits, scene.filters[i], world)
}

/// Runs episodes of quiet frames, each of which begins with several disturbances at once. Every
/// second run lists the changed boxes. Also compares queries.
pub fn churn(backend: Backend, strategy: Strategy, n: usize, seeds: u64) -> Result<(), Failed> {
    // A run may disturb the resting set so often that there is none; most do not.
    let mut resting = 0;
    for seed in 0..seeds {
        let config = Config {
            backend,
            strategy,
            rule: [OverlapRule::Closed, OverlapRule::Open][seed as usize / 2 % 2],
            margin: if seed % 5 == 4 { 0.05 } else { 0.0 },
            on_invalid: OnInvalid::Skip,
            min_resting: Some(1),
            ..Config::default()
        };
        let mut scene = Scene::new(97 * seed + 5, n, 2 + seed as usize % 7);
        let (mut engine, mut plain) = (BroadPhase::new(config.clone())?, rebuild(&config)?);
        let mut last = Vec::new();
        for episode in 0..8 {
            let quiet_frames = 1 + scene.random.below(14);
            for number in 0..quiet_frames {
                if number == 0 && episode > 0 {
                    disturb_much(&mut scene, n);
                } else if scene.random.chance(4) {
                    let i = scene.any(false);
                    scene.boxes[i] = one(&mut scene.random);
                } else if !scene.random.chance(5) {
                    scene.move_the_others();
                }
                let now: Vec<_> = (0..scene.boxes.len()).map(|i| state(&scene, i)).collect();
                let differs = |&i: &u32| now.get(i as usize) != last.get(i as usize);
                let changed: Vec<u32> = (0..now.len() as u32).rev().filter(differs).collect();
                let changed = (seed % 2 == 1).then_some(&changed[..]);
                let what =
                    format!("seed {seed}, episode {episode}, frame {number} of {quiet_frames}");
                resting += update_changed(&mut engine, &mut plain, &scene, changed, &what)?
                    .stats
                    .resting;
                last = now;
                let query = one(&mut scene.random);
                equal(engine.query_box(&query)?, plain.query_box(&query)?)?;
            }
        }
    }
    equal(resting > 0, true)
}

/// Disturbs the resting set in several ways in one frame, also in some that [`Scene::disturb`]
/// lacks.
fn disturb_much(scene: &mut Scene, max_boxes: usize) {
    for _ in 0..=scene.random.below(4) {
        let how = scene.random.below(DISTURBANCES + 4);
        let n = scene.boxes.len();
        match how - how.min(DISTURBANCES) {
            _ if how < DISTURBANCES && (how != 5 || n < max_boxes) => scene.disturb(how),
            0 | 1 => {
                // Few enough that moving and resting boxes are left.
                let less = n - scene.random.below(n / 10);
                scene.boxes.truncate(less);
                scene.filters.truncate(less);
                if let Some(worlds) = &mut scene.worlds {
                    worlds.truncate(less);
                }
            }
            2 => {
                // A moving box falls asleep.
                let i = scene.any(false);
                scene.filters[i].flags = FilterFlags::ASLEEP;
            }
            _ => {
                let new = [scene.random.below(n), scene.random.below(n)].map(|i| i as u32);
                scene.excluded.push(Pair::new(new[0], new[1]));
                scene.excluded.retain(|pair| pair.a < pair.b);
                scene.excluded.sort_unstable();
            }
        }
    }
    // Some boxes always move.
    for i in 0..4 {
        scene.filters[i].flags = FilterFlags::NONE;
    }
    for b in &mut scene.boxes {
        if b.min[0].is_nan() && scene.random.chance(2) {
            *b = one(&mut scene.random);
        }
    }
}
