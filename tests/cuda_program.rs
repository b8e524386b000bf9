//! GPU suite: every scene finds the same pairs on CUDA as on the CPU in every frame, and the
//! program sorts, measures and calibrates on CUDA.
//!
//! In `falling-chairs` the pairs of a frame move the chairs of the next, so that a single wrong
//! pair changes all later ones. The program is taken from cargo's build, or from beside the folder
//! of this binary.

use libtest_mimic::{Arguments, Failed, Trial};
use radsweep::internals::pair_hash;
use radsweep::sort::Algorithm;
use radsweep::{Backend, BroadPhase, Config, Strategy};
use radsweep_common::npy::{self, Element};
use radsweep_scenes::{Instance, Kind, Options, Picture, Scene};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt, SeedableRng};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns why CUDA is missing, if it is.
#[cfg(cuda)]
fn missing() -> Option<String> {
    radsweep::gpu::Device::first()
        .err()
        .map(|error| format!("no CUDA device: {error}"))
}
#[cfg(not(cuda))]
fn missing() -> Option<String> {
    Some("built without the feature `cuda`".into())
}

fn quick() -> bool {
    std::env::var_os("RADSWEEP_QUICK").is_some_and(|value| value == "1")
}

/// Returns pairs, started, ended and hash of every frame.
fn frames(
    kind: Kind,
    bodies: usize,
    frames: u32,
    backend: Backend,
    strategy: Strategy,
) -> Result<Vec<[u64; 4]>, Failed> {
    let mut scene = Scene::new(
        kind,
        &Options {
            bodies: Some(bodies),
            ..Options::default()
        },
    )?;
    let mut broad_phase = BroadPhase::new(Config {
        backend,
        strategy,
        ..Config::default()
    })?;
    (0..frames)
        .map(|_| {
            let step = scene.step(&mut broad_phase)?;
            broad_phase.download()?;
            let report = step.report;
            if report.stats.backend != backend {
                return Err(format!("ran on {}", report.stats.backend).into());
            }
            let hash = pair_hash(broad_phase.pairs());
            Ok([report.pairs, report.started, report.ended, hash])
        })
        .collect()
}

fn same_on_both(kind: Kind, strategy: Strategy) -> Result<(), Failed> {
    let (bodies, count) = match (kind, quick()) {
        (Kind::FallingChairs, false) => (100, 150),
        (Kind::FallingChairs, true) => (5, 40),
        (_, false) => (50_000, 10),
        (_, true) => (300, 3),
    };
    let cuda = frames(kind, bodies, count, Backend::Cuda, strategy)?;
    let cpu = frames(kind, bodies, count, Backend::Cpu, Strategy::Auto)?;
    match cuda.iter().zip(&cpu).position(|(cuda, cpu)| cuda != cpu) {
        None if cpu.iter().all(|frame| frame[0] == 0) => Err("no pairs in any frame".into()),
        None => Ok(()),
        Some(at) => Err(format!(
            "frame {at}: {:?} on CUDA, {:?} on the CPU",
            cuda[at], cpu[at]
        )
        .into()),
    }
}

/// Creates a scene and its broad phase, entirely on the device or on the CPU.
fn at_home(kind: Kind, bodies: usize, backend: Backend) -> Result<(Scene, BroadPhase), Failed> {
    let broad_phase = BroadPhase::new(Config {
        backend,
        ..Config::default()
    })?;
    let options = Options {
        bodies: Some(bodies),
        ..Options::default()
    };
    Ok((Scene::new_on(kind, &options, &broad_phase)?, broad_phase))
}

fn spheres(scene: &Scene) -> Result<Vec<Instance>, Failed> {
    let mut picture = Picture::default();
    scene.picture(&mut picture)?;
    Ok(picture.spheres)
}

/// Particles move on the device as on the CPU, to the bit.
fn particles_live_on_the_device() -> Result<(), Failed> {
    let (bodies, count) = if quick() { (600, 40) } else { (100_000, 120) };
    let mut homes = [Backend::Cuda, Backend::Cpu].map(|on| at_home(Kind::Particles, bodies, on));
    let [Ok(cuda), Ok(cpu)] = &mut homes else {
        return Err("a scene could not be made".into());
    };
    let mut most = 0;
    for frame in 0..count {
        let [on_cuda, on_cpu] = [&mut *cuda, &mut *cpu].map(|(scene, broad_phase)| {
            let step = scene.step(broad_phase)?;
            broad_phase.download()?;
            Ok::<_, Failed>((
                step.report.pairs,
                pair_hash(broad_phase.pairs()),
                step.stages.len(),
            ))
        });
        let (on_cuda, on_cpu) = (on_cuda?, on_cpu?);
        if on_cuda != on_cpu {
            return Err(
                format!("frame {frame}: {on_cuda:?} on CUDA, {on_cpu:?} on the CPU").into(),
            );
        }
        most = most.max(on_cpu.0);
        if cuda.0.boxes()? != cpu.0.boxes()? {
            return Err(format!("frame {frame}: other boxes").into());
        }
    }
    let [on_cuda, on_cpu] = [spheres(&cuda.0)?, spheres(&cpu.0)?];
    if on_cuda != on_cpu {
        return Err("the pictures differ".into());
    }
    let landscapes = [cuda.0.landscape().is_some(), cpu.0.landscape().is_some()];
    if most < bodies as u64 / 4 || landscapes != [true; 2] {
        return Err(format!("at most {most} pairs, landscapes {landscapes:?}").into());
    }
    Ok(())
}

/// A galaxy moves on the device nearly as on the CPU, which opens other nodes of the same tree, and
/// its centre of mass does not move.
fn galaxy_lives_on_the_device() -> Result<(), Failed> {
    // Bodies and frames, for trees of one level to seven: a launch builds up to three.
    let all: &[(usize, usize)] = if quick() {
        &[(2, 20), (40, 20), (400, 20), (700, 120), (20_000, 3)]
    } else {
        &[
            (2, 20),
            (40, 20),
            (400, 20),
            (700, 20),
            (20_000, 120),
            (300_000, 20),
        ]
    };
    all.iter()
        .try_for_each(|&(bodies, frames)| galaxy_of(bodies, frames))
}

/// Few frames are compared: each bounce multiplies the differences, and after a hundred frames most
/// bodies have bounced.
fn galaxy_of(bodies: usize, count: usize) -> Result<(), Failed> {
    let compared_frames = count.min(20);
    let (mut scene, mut broad_phase) = at_home(Kind::Galaxy, bodies, Backend::Cuda)?;
    let (mut near, mut near_broad_phase) = at_home(Kind::Galaxy, bodies, Backend::Cpu)?;
    scene.step(&mut broad_phase)?;
    near.step(&mut near_broad_phase)?;
    let first = spheres(&scene)?;
    let mut pairs = 0;
    for _ in 1..compared_frames {
        pairs += scene.step(&mut broad_phase)?.report.pairs;
        near.step(&mut near_broad_phase)?;
    }
    let (compared, expected) = (spheres(&scene)?, spheres(&near)?);
    for _ in compared_frames..count {
        pairs += scene.step(&mut broad_phase)?.report.pairs;
    }
    let last = spheres(&scene)?;
    let distance = |a: &Instance, b: &Instance| -> f64 {
        let square = |axis: usize| f64::from(a.position[axis] - b.position[axis]).powi(2);
        (0..3).map(square).sum::<f64>().sqrt()
    };
    // Two bodies that bounce on one side and miss each other on the other differ from then on.
    let mut apart: Vec<f64> = compared
        .iter()
        .zip(&expected)
        .map(|(a, b)| distance(a, b))
        .collect();
    apart.sort_by(f64::total_cmp);
    let (most, allowed) = (apart[bodies * 9 / 10], 0.01);
    // The masses of `crates/scenes/src/galaxy.rs`: two fifths are in the centre, the other bodies
    // share the rest evenly.
    let half = bodies / 2;
    let mass = |body: usize| {
        if body.is_multiple_of(half) {
            0.4
        } else {
            0.6 / (half - 1) as f64
        }
    };
    let mut way = 0.0;
    let mut sum = [0.0; 3];
    for (body, (a, b)) in first.iter().zip(&last).enumerate() {
        way += distance(a, b) * mass(body);
        for (axis, sum) in sum.iter_mut().enumerate() {
            *sum += f64::from(b.position[axis] - a.position[axis]) * mass(body);
        }
    }
    let drift = sum.iter().map(|along| along * along).sum::<f64>().sqrt() / way;
    let touching = pairs > 0 || bodies < 100;
    if most > allowed || drift > 3e-5 || !touching || way <= 0.0 {
        return Err(format!(
            "{bodies} bodies: {most} from the CPU's, {drift} of {way} drifted, {pairs} pairs"
        )
        .into());
    }
    Ok(())
}

fn program() -> Result<PathBuf, Failed> {
    let here = std::env::current_exe()?;
    let packed = here
        .ancestors()
        .nth(2)
        .map(|folder| folder.join("radsweep"));
    let places = [Some(env!("CARGO_BIN_EXE_radsweep").into()), packed];
    let found = places.iter().flatten().find(|place| place.is_file());
    found
        .cloned()
        .ok_or_else(|| format!("no program at any of {places:?}").into())
}

/// Returns what the program prints, and the files of sorted keys and argsort that it writes.
fn sorted(
    keys: &Path,
    backend: &str,
    more: &[&str],
) -> Result<(serde_json::Value, [Vec<u8>; 2]), Failed> {
    let folder = tempfile::tempdir()?;
    let files = ["sorted.npy", "index.npy"].map(|name| folder.path().join(name));
    let mut command = Command::new(program()?);
    command
        .arg("sort")
        .arg(keys)
        .args(["--json", "--backend", backend])
        .args(more);
    let output = command
        .arg("-o")
        .arg(&files[0])
        .arg("--index")
        .arg(&files[1])
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let [sorted, index] = files.map(std::fs::read);
    Ok((serde_json::from_slice(&output.stdout)?, [sorted?, index?]))
}

/// Sorts random bits as keys, so that every kind of float occurs.
fn program_sorts_the_same<K: Element>() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("keys.npy");
    let mut keys = vec![K::zeroed(); if quick() { 5000 } else { 3_000_000 }];
    Xoshiro256PlusPlus::seed_from_u64(1).fill_bytes(bytemuck::cast_slice_mut(&mut keys));
    npy::write(&path, &[keys.len() as u64], &keys)?;
    for more in [&[][..], &["--descending"]] {
        let (record, cuda) = sorted(&path, "cuda", more)?;
        if record["backend"] != "cuda" {
            return Err(format!("not on CUDA: {record}").into());
        }
        let (_, cpu) = sorted(&path, "cpu", more)?;
        if let Some(file) = (0..2).find(|&file| cuda[file] != cpu[file]) {
            return Err(format!("{} {more:?} differ", ["sorted keys", "argsorts"][file]).into());
        }
    }
    Ok(())
}

/// Runs the program with its configuration in `config`, and returns stdout and stderr.
fn printed(config: &Path, args: &[&str]) -> Result<[String; 2], Failed> {
    let output = Command::new(program()?)
        .args(args)
        .env("XDG_CONFIG_HOME", config)
        .output()?;
    let [out, err] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if output.status.success() {
        Ok([out, err])
    } else {
        Err(format!("{args:?}: {err}").into())
    }
}

/// Finds the same pairs on all devices together as on the CPU.
fn program_finds_pairs_on_all_devices() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let n = if quick() { 1000 } else { 1_000_000 };
    let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
    let side = (n as f32).cbrt();
    let mut boxes = Vec::with_capacity(6 * n);
    for _ in 0..n {
        let min = [(); 3].map(|()| side * random.random::<f32>());
        boxes.extend(min);
        boxes.extend(min.map(|min| min + 1.5 * random.random::<f32>()));
    }
    let file = path("boxes.npy");
    npy::write(Path::new(&file), &[n as u64, 6], &boxes)?;
    let found = |options: &[&str], pairs: &str| {
        let args = [&["pairs", &file, "-o", pairs, "--json"], options].concat();
        let [out, _] = printed(folder.path(), &args)?;
        let record: serde_json::Value = serde_json::from_str(&out)?;
        Ok::<_, Failed>((record, std::fs::read(pairs)?))
    };
    for rule in [&[][..], &["--open"]] {
        let all = found(&[&["--devices", "all"], rule].concat(), &path("all.npy"))?;
        let one = found(&[&["--backend", "cpu"], rule].concat(), &path("one.npy"))?;
        if all.1 != one.1 || all.0["hash"] != one.0["hash"] || all.0["pairs"] != one.0["pairs"] {
            return Err(format!("{rule:?}: {} and on the CPU {}", all.0, one.0).into());
        }
        let ranks = all.0["ranks"].as_array().ok_or("no ranks")?;
        let boxes: Option<u64> = ranks.iter().map(|rank| rank["boxes"].as_u64()).sum();
        if boxes != Some(n as u64) {
            return Err(format!("{boxes:?} boxes of {n}: {}", all.0).into());
        }
    }
    let [out, _] = printed(folder.path(), &["pairs", &file, "--devices", "1"])?;
    if !out.contains("found on cuda") || !out.contains("balance 1.00") {
        return Err(out.into());
    }
    Ok(())
}

/// Runs scenes on all devices together as on the CPU, frame by frame.
fn program_runs_scenes_on_all_devices() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    for kind in Kind::ALL.iter().map(|kind| kind.name()) {
        let (bodies, frames) = match (kind, quick()) {
            ("falling-chairs", false) => ("200", "120"),
            ("falling-chairs", true) => ("5", "40"),
            (_, false) => ("100000", "20"),
            (_, true) => ("300", "4"),
        };
        let scene = ["run", kind, "--bodies", bodies, "--frames", frames];
        let records = |more: &[&str]| -> Result<Vec<serde_json::Value>, Failed> {
            let [out, _] = printed(folder.path(), &[&scene, more, &["--json"]].concat())?;
            Ok(out
                .lines()
                .map(serde_json::from_str)
                .collect::<Result<_, _>>()?)
        };
        let (all, one) = (
            records(&["--devices", "all"])?,
            records(&["--backend", "cpu"])?,
        );
        if all.len() != one.len() {
            return Err(format!("{kind}: {} frames, and {}", all.len(), one.len()).into());
        }
        for (all, one) in all.iter().zip(&one) {
            let same = ["frame", "n", "pairs", "started", "ended", "hash"];
            if same.iter().any(|key| all[key] != one[key]) || all["backend"] != "cuda" {
                return Err(format!("{kind}: {all} and on the CPU {one}").into());
            }
            let keys = one.as_object().ok_or("no object")?.keys();
            let missing = keys.filter(|key| all.get(key).is_none()).count();
            let ranks = all["ranks"].as_array().ok_or("no ranks")?;
            let boxes: Option<u64> = ranks.iter().map(|rank| rank["boxes"].as_u64()).sum();
            if missing > 0 || boxes != all["n"].as_u64() || one.get("ranks").is_some() {
                return Err(format!("{kind}: {all} and on the CPU {one}").into());
            }
        }
        if one.iter().all(|frame| frame["pairs"] == 0) {
            return Err(format!("{kind}: no pairs in any frame").into());
        }
    }
    let scene = ["run", "uniform", "--bodies", "1000", "--frames", "3"];
    let [out, _] = printed(folder.path(), &[&scene[..], &["--devices", "1"]].concat())?;
    let (frames, devices) = out
        .split_once("\nmean of a frame on each device:\n")
        .ok_or("no table")?;
    let rows: Vec<Vec<&str>> = devices
        .lines()
        .map(|row| row.split_whitespace().collect())
        .collect();
    let [_, device, balance] = &rows[..] else {
        return Err(out.into());
    };
    // Of one device: boxes, homes and copies.
    if device[..4] != ["0", "1000", "1000", "0"] || balance[..2] != ["balance", "1.00,"] {
        return Err(out.into());
    }
    for part in ["place", "search", "download", "pairs per frame\n"] {
        if !frames.contains(part) {
            return Err(format!("{part}: {out}").into());
        }
    }
    Ok(())
}

/// Measures all algorithms and payloads. The program itself compares the results with the CPU.
fn program_measures() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let payload = "keys,u32,u64,index,records";
    let types = if quick() { "f32" } else { "u32,i64,f32,f64" };
    let [out, _] = printed(
        folder.path(),
        &[
            "bench",
            "sort",
            "--backend",
            "cuda",
            "--sizes",
            "1000,5000",
            "--runs",
            "3",
            "--json",
            "--payload",
            payload,
            "--types",
            types,
            "--distributions",
            "uniform,zero",
        ],
    )?;
    let record: serde_json::Value = serde_json::from_str(&out)?;
    let results = record["results"].as_array().ok_or("no results")?;
    let algorithms = Algorithm::ALL.len() - 1; // all but `auto`
    let expected = algorithms * 5 * 2 * 2 * types.split(',').count();
    let of_onesweep =
        |one: &&serde_json::Value| one["algorithm"] == "onesweep" && one["ms"].as_f64() > Some(0.0);
    if results.len() != expected
        || results.iter().filter(of_onesweep).count() * algorithms != expected
    {
        return Err(format!("not {expected} results: {record}").into());
    }
    Ok(())
}

/// A calibration is saved and used; a damaged one is reported and ignored.
fn program_calibrates() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let [table, _] = printed(
        folder.path(),
        &[
            "calibrate",
            "--sizes",
            if quick() { "2^8" } else { "2^8,1000" },
        ],
    )?;
    if !table.contains("2^8") || !table.contains("u64 + u32") {
        return Err(table.into());
    }
    let saved = std::fs::read_dir(folder.path().join("radsweep"))?
        .next()
        .ok_or("no file")??
        .path();
    let text = std::fs::read_to_string(&saved)?;
    if !text.contains("\nkeys 4 values 0 from 0 ") || !text.ends_with("\nend\n") {
        return Err(format!("saved: {text}").into());
    }
    let sort = [
        "bench",
        "sort",
        "--backend",
        "cuda",
        "--algorithms",
        "auto",
        "--sizes",
        "900",
        "--runs",
        "1",
        "--payload",
        "keys",
        "--json",
    ];
    // The bench also says if other programs have run meanwhile, such as these tests.
    let sorted = || {
        let [out, err] = printed(folder.path(), &sort)?;
        let notes = err.lines().filter(|line| !line.contains("too busy"));
        Ok::<_, Failed>((out, notes.collect::<Vec<_>>().join("\n")))
    };
    let (out, err) = sorted()?;
    let winner = text
        .lines()
        .rfind(|line| line.starts_with("keys 4 values 0"))
        .ok_or("no rule")?;
    let record: serde_json::Value = serde_json::from_str(&out)?;
    let ran = record["results"][0]["ran"].as_str().ok_or("nothing ran")?;
    if !winner.ends_with(ran) || !err.is_empty() {
        return Err(format!("{ran} ran, not as in: {winner} {err}").into());
    }
    let other = text.replacen("\ndriver ", "\ndriver 0.", 1);
    for (unusable, why) in [
        (&text[..text.len() / 2], "damaged in line"),
        (&other, "measured with driver 0."),
    ] {
        std::fs::write(&saved, unusable)?;
        let (_, err) = sorted()?;
        if err.lines().count() != 1 || !err.contains(why) {
            return Err(format!("{why}: {err}").into());
        }
    }
    Ok(())
}

fn main() {
    let arguments = Arguments::from_args();
    let missing = missing();
    let required = std::env::var_os("RADSWEEP_REQUIRE_CUDA").is_some_and(|value| value == "1");
    if let (Some(reason), false) = (&missing, required) {
        println!("skipped: {reason}");
    }
    let ignored = missing.is_some() && !required;
    let mut trials = Vec::new();
    let mut trial = |name: String, run: Box<dyn FnOnce() -> Result<(), Failed> + Send>| {
        let missing = missing.clone();
        let run = move || missing.map_or_else(run, |reason| Err(reason.into()));
        trials.push(Trial::test(name, run).with_ignored_flag(ignored));
    };
    for &kind in Kind::ALL {
        for strategy in [Strategy::Sweep, Strategy::Auto] {
            trial(
                format!("{kind}/{strategy}"),
                Box::new(move || same_on_both(kind, strategy)),
            );
        }
    }
    trial(
        "program/pairs on all devices".into(),
        Box::new(program_finds_pairs_on_all_devices),
    );
    trial(
        "program/scenes on all devices".into(),
        Box::new(program_runs_scenes_on_all_devices),
    );
    trial(
        "on the device/particles".into(),
        Box::new(particles_live_on_the_device),
    );
    trial(
        "on the device/galaxy".into(),
        Box::new(galaxy_lives_on_the_device),
    );
    trial(
        "program/sort u32".into(),
        Box::new(program_sorts_the_same::<u32>),
    );
    trial(
        "program/sort f32".into(),
        Box::new(program_sorts_the_same::<f32>),
    );
    trial(
        "program/sort i64".into(),
        Box::new(program_sorts_the_same::<i64>),
    );
    trial(
        "program/sort f64".into(),
        Box::new(program_sorts_the_same::<f64>),
    );
    trial("program/bench sort".into(), Box::new(program_measures));
    trial("program/calibrate".into(), Box::new(program_calibrates));
    libtest_mimic::run(&arguments, trials).exit();
}
