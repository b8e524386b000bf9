//! Searches for the scenes on which the CPU engine is worst, and prints them as a Markdown table.
//!
//! `cargo bench -p radsweep-sap --bench cliffs [-- [tests|time|moving|queries] [SECONDS [SEED]]]`
//!
//! `cargo bench -p radsweep-sap --bench cliffs -- SCENE...` measures scenes of an earlier table.
//!
//! It mutates the worst scene so far of each shape. It maximises one of:
//! - `tests`: [`sap::Stats::tests`] for each box and pair, which is the same on every machine.
//! - `time`: the time of an update, relative to parry3d's `Bvh` built anew and traversed.
//! - `moving`: the tests where one box in a hundred moves and is listed as changed, for each of
//!   those boxes and its pairs.
//! - `queries`: the time of `query_box`, relative to the same `Bvh`, built before.
//!
//! The strategy is `auto`, and both use one thread. The numbers of pairs are compared.

#[path = "../tests/common/generators.rs"]
mod generators;
#[allow(dead_code)] // only some of it is needed here
#[path = "../tests/common/random.rs"]
mod random;
#[path = "../tests/common/shapes.rs"]
mod shapes;

use generators::{Made, Scene};
use parry3d::bounding_volume::Aabb as ParryAabb;
use parry3d::math::Vector;
use parry3d::partitioning::{Bvh, BvhBuildStrategy, BvhWorkspace};
use random::Random;
use sap::{Aabb, Backend, BroadPhase, Config, Error};
use shapes::Shape;
use std::time::{Duration, Instant};

/// The number of boxes in the search, and in the final measurement.
const SEARCHED: usize = 5_000;
const MEASURED: [usize; 2] = [20_000, 200_000];
/// A scene of more pairs is of no interest, because finding them is all the work.
const MOST_PAIRS: u64 = 20_000_000;
/// The max time to measure a scene, were it quadratic.
const MOST_MS: f64 = 40_000.0;
/// The number of timed queries.
const QUERIES: usize = 1_000;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Clone, Copy, PartialEq)]
enum Objective {
    Tests,
    Time,
    Moving,
    Queries,
}

/// The cost of a scene.
struct Measured {
    scene: Scene,
    pairs: u64,
    tests: u64,
    /// Tests for each searched box and its pairs.
    each: f64,
    ours_ms: f64,
    parry_ms: f64,
    parry_pairs: u64,
}

impl Measured {
    fn ratio(&self) -> f64 {
        self.ours_ms / self.parry_ms
    }

    /// Tells whether that many boxes would take minutes or too much memory, if time grew as the
    /// square.
    fn is_too_long(&self, n: usize) -> bool {
        let more = n as f64 / self.scene.n as f64;
        let ms = self.ours_ms.max(self.parry_ms) * more * more;
        ms > MOST_MS || self.pairs as f64 * more * more > MOST_PAIRS as f64 * 10.0
    }

    fn score(&self, objective: Objective) -> f64 {
        match objective {
            Objective::Tests | Objective::Moving => self.each,
            Objective::Time | Objective::Queries => self.ratio(),
        }
    }
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .peekable();
    let objective = match arguments.peek().map(String::as_str) {
        None | Some("tests") => Objective::Tests,
        Some("time") => Objective::Time,
        Some("moving") => Objective::Moving,
        Some("queries") => Objective::Queries,
        Some(_) => {
            let scenes: Result<Vec<Scene>, String> = arguments.map(|text| text.parse()).collect();
            let scenes = scenes?;
            return one_thread()?.install(|| named(&scenes));
        }
    };
    arguments.next();
    let seconds = arguments.next().map_or(Ok(120), |text| text.parse())?;
    let seed = arguments.next().map_or(Ok(1), |text| text.parse())?;
    one_thread()?.install(|| {
        let worst = search(objective, Duration::from_secs(seconds), seed);
        report(objective, &worst)
    })
}

fn one_thread() -> Result<rayon::ThreadPool, rayon::ThreadPoolBuildError> {
    rayon::ThreadPoolBuilder::new().num_threads(1).build()
}

/// Measures scenes by name, by every measure.
fn named(scenes: &[Scene]) -> Result<(), Failure> {
    for objective in [Objective::Time, Objective::Moving, Objective::Queries] {
        head(objective);
        for scene in scenes {
            match measure(scene, objective, Runs(3, 3))? {
                Some(measured) => row(&measured),
                None => println!("| `{scene}` | too many pairs |"),
            }
        }
    }
    Ok(())
}

/// Searches for the worst scene of each shape: mutates the worst so far, or begins at random.
fn search(objective: Objective, time: Duration, seed: u64) -> Vec<Scene> {
    let mut random = Random::new(seed);
    let end = Instant::now() + time;
    let mut worst: Vec<(f64, Scene)> = Shape::ALL
        .iter()
        .map(|&shape| (0.0, Scene::of(shape, [128; 4], SEARCHED)))
        .collect();
    let mut tried = 0;
    while Instant::now() < end {
        for (score, best) in &mut worst {
            let mut scene = best.clone();
            if *score == 0.0 || random.chance(5) {
                scene = Scene::any(best.parts[0].shape, SEARCHED, &mut random);
            } else {
                for _ in 0..=random.below(3) {
                    scene.mutate(&mut random);
                }
            }
            let timed = matches!(objective, Objective::Time | Objective::Queries);
            let runs = if timed { Runs(2, 2) } else { Runs(1, 0) };
            tried += 1;
            if let Ok(Some(measured)) = measure(&scene, objective, runs)
                && measured.score(objective) > *score
            {
                (*score, *best) = (measured.score(objective), scene);
            }
        }
    }
    eprintln!(
        "{tried} scenes of {SEARCHED} boxes in {} s, seed {seed}",
        time.as_secs()
    );
    worst.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    worst.into_iter().map(|(_, scene)| scene).collect()
}

/// The number of timed runs of ours, and of parry.
#[derive(Clone, Copy)]
struct Runs(usize, usize);

/// Prints the table, with as many boxes as pairs and time allow.
fn report(objective: Objective, worst: &[Scene]) -> Result<(), Failure> {
    head(objective);
    for scene in worst {
        let mut best: Option<Measured> = None;
        for n in MEASURED {
            let larger = Scene { n, ..scene.clone() };
            if best.as_ref().is_some_and(|smaller| smaller.is_too_long(n)) {
                break;
            }
            let Some(measured) = measure(&larger, objective, Runs(2, 2))? else {
                break;
            };
            best = Some(measured);
        }
        match best.or(measure(scene, objective, Runs(2, 2))?) {
            Some(measured) => row(&measured),
            None => println!("| `{scene}` | too many pairs |"),
        }
    }
    Ok(())
}

fn head(objective: Objective) {
    let of = match objective {
        Objective::Tests | Objective::Time => "n + pairs",
        Objective::Moving => "moved + their pairs",
        Objective::Queries => "no tests are counted",
    };
    println!("\n| scene | n | pairs | tests | tests per ({of}) | ours, ms | parry, ms | ratio |");
    println!("|---|---|---|---|---|---|---|---|");
}

fn row(m: &Measured) {
    let differ = if m.pairs == m.parry_pairs {
        String::new()
    } else {
        format!(" (parry: {})", m.parry_pairs)
    };
    println!(
        "| `{}` | {} | {}{differ} | {} | {:.1} | {:.3} | {:.3} | {:.2} |",
        m.scene,
        m.scene.n,
        m.pairs,
        m.tests,
        m.each,
        m.ours_ms,
        m.parry_ms,
        m.ratio()
    );
}

/// Measures a scene: the min time of some runs. None if it has too many pairs.
fn measure(scene: &Scene, objective: Objective, runs: Runs) -> sap::Result<Option<Measured>> {
    let made = scene.make();
    let measured = match objective {
        Objective::Tests | Objective::Time => update(&made, runs),
        Objective::Moving => moving(made, runs),
        Objective::Queries => queries(&made, runs),
    };
    match measured {
        Ok(Some(measured)) => Ok(Some(Measured {
            scene: scene.clone(),
            ..measured
        })),
        Ok(None) | Err(Error::TooManyPairs { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn engine() -> sap::Result<BroadPhase> {
    BroadPhase::new(Config {
        backend: Backend::Cpu,
        pair_memory: Some(8 * MOST_PAIRS),
        events: false,
        ..Config::default()
    })
}

fn update(made: &Made, runs: Runs) -> sap::Result<Option<Measured>> {
    let mut all = empty();
    for _ in 0..runs.0 {
        let mut engine = engine()?;
        let start = Instant::now();
        let report = engine.update(made.frame())?.clone();
        all.ours_ms = all.ours_ms.min(ms(start));
        (all.pairs, all.tests) = (report.pairs, report.stats.tests);
        all.each = report.stats.tests as f64 / (report.n as u64 + report.pairs) as f64;
    }
    parry(made, runs, &mut all);
    Ok(Some(all))
}

/// Measures frames in each of which one box in a hundred moves and is listed as changed: the worst
/// one once there is a tree.
fn moving(mut made: Made, runs: Runs) -> sap::Result<Option<Measured>> {
    let mut engine = engine()?;
    let mut all = empty();
    for frame in 0..10 {
        let changed = made.step(frame);
        let start = Instant::now();
        let report = engine.update(made.frame().changed(&changed))?.clone();
        let time = ms(start);
        let is_changed = |i: u32| i as usize % 100 == frame;
        let near = engine
            .pairs()
            .iter()
            .filter(|pair| is_changed(pair.a) || is_changed(pair.b));
        let each = report.stats.tests as f64 / (changed.len() + near.count()) as f64;
        if frame > 3 && each > all.each {
            (all.tests, all.each, all.ours_ms) = (report.stats.tests, each, time);
        }
    }
    all.pairs = engine.pairs().len() as u64;
    parry(&made, runs, &mut all);
    Ok(Some(all))
}

/// Measures queries with boxes of the scene.
fn queries(made: &Made, runs: Runs) -> sap::Result<Option<Measured>> {
    let mut engine = engine()?;
    engine.update(made.frame())?;
    let step = made.boxes.len().div_ceil(QUERIES);
    let asked: Vec<Aabb> = made.boxes.iter().step_by(step).copied().collect();
    engine.query_box(&asked[0])?;
    let tree = built(&made.boxes);
    let mut all = empty();
    for _ in 0..runs.0 {
        let start = Instant::now();
        all.pairs = asked
            .iter()
            .map(|query| Ok(engine.query_box(query)?.len() as u64))
            .sum::<sap::Result<u64>>()?;
        all.ours_ms = all.ours_ms.min(ms(start));
        let start = Instant::now();
        let found = |query: &Aabb| {
            let mut found: Vec<u32> = tree.intersect_aabb(&parry_box(query)).collect();
            found.sort_unstable();
            found.len() as u64
        };
        all.parry_pairs = asked.iter().map(found).sum();
        all.parry_ms = all.parry_ms.min(ms(start));
    }
    Ok(Some(all))
}

fn empty() -> Measured {
    Measured {
        scene: Scene::of(Shape::Uniform, [0; 4], 0),
        pairs: 0,
        tests: 0,
        each: 0.0,
        ours_ms: f64::INFINITY,
        parry_ms: f64::INFINITY,
        parry_pairs: 0,
    }
}

fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

fn parry_box(b: &Aabb) -> ParryAabb {
    ParryAabb::new(Vector::from_array(b.min), Vector::from_array(b.max))
}

fn built(boxes: &[Aabb]) -> Bvh {
    let leaves: Vec<ParryAabb> = boxes.iter().map(parry_box).collect();
    Bvh::from_leaves(BvhBuildStrategy::Binned, &leaves)
}

/// Builds parry's tree and traverses it against itself. Pairs that filters exclude are dropped.
fn parry(made: &Made, runs: Runs, all: &mut Measured) {
    for _ in 0..runs.1 {
        let start = Instant::now();
        let tree = built(&made.boxes);
        let mut pairs = Vec::new();
        tree.traverse_bvtt_single_tree::<false>(&mut BvhWorkspace::default(), &mut |a, b| {
            if made.allows(a as usize, b as usize) {
                pairs.push([a, b]);
            }
        });
        all.parry_ms = all.parry_ms.min(ms(start));
        all.parry_pairs = pairs.len() as u64;
    }
}
