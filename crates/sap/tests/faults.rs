//! A GPU that fails: each call to the driver in turn, during an update and before there is an
//! engine. No result is lost, nothing panics, each error has a message, and the next update is
//! right.
//!
//! The emulated driver injects the faults, so this runs under `scripts/emulate` only:
//! `scripts/emulate cargo test -p radsweep-sap --features cuda --test faults`.

#![allow(clippy::unwrap_used, missing_docs)]

use libtest_mimic::{Arguments, Failed, Trial};
#[cfg(cuda)]
use sap::FrameGraph;
use sap::internals::Reason;
use sap::{Aabb, Backend, BroadPhase, Config, Filter, FilterFlags, Frame, Pair, Strategy};
use std::collections::BTreeSet;
use std::env;
#[cfg(cuda)]
use std::ops::Range;
use std::process::{Command, ExitCode};

/// The variable that tells the emulated driver what fails.
const FAULT: &str = "RADSWEEP_EMULATE_FAULT";
/// Names the backend that a child process tries.
const CHILD: &str = "RADSWEEP_TEST_CHILD";

fn main() -> ExitCode {
    if let Ok(backend) = env::var(CHILD) {
        return child(&backend);
    }
    let emulated = cfg!(cuda) && env::var_os("RADSWEEP_EMULATE_NVCC").is_some();
    let mut trials = Vec::new();
    for strategy in [Strategy::Sweep, Strategy::Subdivided, Strategy::Endpoints] {
        for (name, code) in [("out_of_memory", 2), ("illegal_address", 700)] {
            let trial = move || updates(strategy, code).map_err(Failed::from);
            trials.push(Trial::test(format!("updates/{strategy}/{name}"), trial));
        }
    }
    trials.push(Trial::test("updates/device_lost", || {
        lost().map_err(Failed::from)
    }));
    trials.push(Trial::test("updates/no_memory_for_the_tree", || {
        no_tree().map_err(Failed::from)
    }));
    for &(name, check) in AUTO {
        let trial = move || check().map_err(Failed::from);
        trials.push(Trial::test(format!("updates/auto_{name}"), trial));
    }
    for &(name, check) in READS {
        let trial = move || check().map_err(Failed::from);
        trials.push(Trial::test(format!("reads/{name}"), trial));
    }
    #[cfg(cuda)]
    for &(name, check) in STEADY {
        let trial = move || check().map_err(Failed::from);
        trials.push(Trial::test(format!("steady/{name}"), trial));
    }
    for (name, fault, says) in BEFORE {
        let trial = move || before(fault, says).map_err(Failed::from);
        trials.push(Trial::test(format!("before/{name}"), trial));
    }
    if !emulated {
        println!(
            "all ignored: faults are made by the emulated driver (scripts/emulate), with the feature `cuda`"
        );
    }
    let trials = trials
        .into_iter()
        .map(|trial| trial.with_ignored_flag(!emulated))
        .collect();
    let mut arguments = Arguments::from_args();
    // One at a time, because a fault holds for the whole process.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Sets the fault of the driver, or removes it.
fn set(fault: Option<&str>) {
    // SAFETY: trials run one after the other. Meanwhile other threads only read the environment,
    // through the same lock or, in the driver, within a call of this thread.
    unsafe {
        match fault {
            Some(fault) => env::set_var(FAULT, fault),
            None => env::remove_var(FAULT),
        }
    }
}

/// Returns the boxes of a frame, some of which move from frame to frame.
fn frame(number: usize, n: usize) -> Vec<Aabb> {
    let at = |index: usize| {
        let swing = ((index * 7 + number * 13) % 11) as f32 * 0.09;
        let cell = [index % 7, index / 7 % 7, index / 49].map(|cell| cell as f32 * 1.1);
        let min = [cell[0] + swing, cell[1] - swing, cell[2] + 0.5 * swing];
        Aabb::new(min, min.map(|side| side + 1.0))
    };
    (0..n).map(at).collect()
}

fn config(backend: Backend, strategy: Strategy) -> Config {
    Config {
        backend,
        strategy,
        ..Config::default()
    }
}

fn expected(boxes: &[Aabb]) -> Vec<Pair> {
    let mut on_cpu = BroadPhase::new(config(Backend::Cpu, Strategy::Sweep)).unwrap();
    on_cpu.update(boxes).unwrap();
    on_cpu.pairs().to_vec()
}

fn check(what: &str, found: &[Pair], expected: &[Pair]) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "{what}: {} pairs, expected {}",
        found.len(),
        expected.len()
    ))
}

fn without(a: &[Pair], b: &[Pair]) -> Vec<Pair> {
    let b: BTreeSet<_> = b.iter().collect();
    a.iter().filter(|pair| !b.contains(pair)).copied().collect()
}

/// From one call after the other on, no memory is left, in an update that exceeds its bound. It
/// works without the tree, or fails.
fn no_tree() -> Result<(), String> {
    // All boxes are at one place, and all but the last are static.
    let at = |i: usize| [i % 31, i % 37, i % 41].map(|x| x as f32 / 80.0);
    let boxes: Vec<Aabb> = (0..2000)
        .map(at)
        .map(|min| Aabb::new(min, min.map(|x| x + 2.0)))
        .collect();
    let fixed = Filter {
        flags: FilterFlags::STATIC,
        ..Filter::default()
    };
    let mut filters = vec![fixed; 1999];
    filters.push(Filter::default());
    // Lists of events would need memory too.
    let without_events = Config {
        events: false,
        ..config(Backend::Cuda, Strategy::Auto)
    };
    let (mut with, mut without) = (0, 0);
    for call in 1..100 {
        let mut broad_phase =
            BroadPhase::new(without_events.clone()).map_err(|error| error.to_string())?;
        let frame = Frame::boxes(&boxes).filters(&filters);
        set(Some(&format!("cuMemAllocFromPoolAsync {call}+ 2")));
        let result = broad_phase.update(frame).cloned();
        set(None);
        if let Ok(report) = result {
            if report.pairs != 1999 {
                return Err(format!("call {call}: {report:?}"));
            }
            match report.stats.choice.map(|choice| choice.reason) {
                Some(Reason::TooManyTests) => with += 1,
                _ => without += 1,
            }
        }
        let report = broad_phase
            .update(frame)
            .map_err(|error| error.to_string())?;
        if report.pairs != 1999 {
            return Err(format!("after call {call}: {report:?}"));
        }
        // No call failed.
        if with > 0 {
            break;
        }
    }
    match (with, without) {
        (1, 1..) => Ok(()),
        counts => Err(format!("with the tree and without: {counts:?}")),
    }
}

/// One call after the other fails, in an update after a successful one.
fn updates(strategy: Strategy, code: i32) -> Result<(), String> {
    let frames = [frame(0, 200), frame(1, 320)];
    let pairs = [expected(&frames[0]), expected(&frames[1])];
    let mut survived = 0;
    let mut without_fault = 0;
    for call in 1.. {
        // A new engine each time, because the first update of a size allocates buffers.
        let mut broad_phase =
            BroadPhase::new(config(Backend::Cuda, strategy)).map_err(|error| error.to_string())?;
        broad_phase
            .update(&frames[0])
            .map_err(|error| error.to_string())?;
        set(Some(&format!("any {call} {code}")));
        let result = broad_phase.update(&frames[1]).map(|_| ());
        set(None);
        let failed = result.is_err();
        if let Err(error) = result {
            survived += 1;
            without_fault = 0;
            let message = error.to_string();
            if message.len() < 20 || matches!(error, sap::Error::TooManyPairs { .. }) {
                return Err(format!("call {call}: the message is {message:?}"));
            }
            check(
                &format!("call {call}, the last pairs"),
                broad_phase.pairs(),
                &pairs[0],
            )?;
            check(
                &format!("call {call}, the last starts"),
                broad_phase.started(),
                &pairs[0],
            )?;
            check(
                &format!("call {call}, the last ends"),
                broad_phase.ended(),
                &[],
            )?;
            let touched = broad_phase
                .query_box(&frames[0][0])
                .map_err(|error| format!("call {call}, a query: {error}"))?;
            if !touched.contains(&0) {
                return Err(format!(
                    "call {call}: a query no longer finds the boxes of the last good update"
                ));
            }
            broad_phase
                .update(&frames[1])
                .map_err(|error| format!("call {call}, the update after: {error}"))?;
        } else {
            without_fault += 1;
        }
        let after = if failed {
            "the update after"
        } else {
            "the update with it"
        };
        check(
            &format!("call {call}, {after}"),
            broad_phase.pairs(),
            &pairs[1],
        )?;
        check(
            &format!("call {call}, starts"),
            broad_phase.started(),
            &without(&pairs[1], &pairs[0]),
        )?;
        check(
            &format!("call {call}, ends"),
            broad_phase.ended(),
            &without(&pairs[0], &pairs[1]),
        )?;
        // Some calls may fail without an error, such as a try for more memory. After the last call
        // none fails.
        if without_fault == 12 {
            break;
        }
    }
    if survived < 20 {
        return Err(format!(
            "only {survived} calls failed: is the fault injected at all?"
        ));
    }
    Ok(())
}

/// From some call on everything fails for good. The last pairs stay, and a CPU engine still works.
fn lost() -> Result<(), String> {
    let frames = [frame(0, 200), frame(1, 320)];
    let pairs = [expected(&frames[0]), expected(&frames[1])];
    for call in [1, 2, 5, 10, 20, 30] {
        let mut broad_phase = BroadPhase::new(config(Backend::Cuda, Strategy::Auto))
            .map_err(|error| error.to_string())?;
        broad_phase
            .update(&frames[0])
            .map_err(|error| error.to_string())?;
        set(Some(&format!("any {call}+ 700")));
        let results = [0, 1, 2].map(|_| broad_phase.update(&frames[1]).map(|_| ()));
        for result in results {
            let message = result
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default();
            if !message.contains("a kernel did something illegal; the device is unusable to this process until it restarts") {
                set(None);
                return Err(format!("call {call}: {message:?}"));
            }
        }
        let kept = check("the last pairs", broad_phase.pairs(), &pairs[0]);
        let mut on_cpu = BroadPhase::new(config(Backend::Cpu, Strategy::Auto)).unwrap();
        let taken_over = on_cpu.update(&frames[1]).map(|_| ());
        drop(broad_phase); // while all calls fail
        set(None);
        kept?;
        taken_over.map_err(|error| error.to_string())?;
        check("the CPU's", on_cpu.pairs(), &pairs[1])?;
    }
    Ok(())
}

type Check = fn() -> Result<(), String>;

/// The trials of an engine with `Backend::Auto`.
const AUTO: &[(&str, Check)] = &[
    ("goes_on_with_the_cpu", taken_over),
    ("goes_on_after_any_call", taken_over_anywhere),
    ("goes_on_with_margins", margins_go_on),
    ("goes_on_in_other_calls", other_calls_taken_over),
    ("keeps_the_last_result", not_taken_over),
    #[cfg(cuda)]
    ("leaves_boxes_on_the_device", on_the_device),
];

/// The trials of results that are still on the device.
const READS: &[(&str, Check)] = &[
    #[cfg(cuda)]
    ("from_the_device", what_is_on_the_device),
    #[cfg(cuda)]
    ("into_plain_memory", nothing_pinned),
    #[cfg(cuda)]
    ("filters_for_queries", filters_on_the_device),
    ("filters_taken_over", filters_taken_over),
];

fn auto(config: Config) -> Result<BroadPhase, String> {
    let config = Config {
        backend: Backend::Auto,
        ..config
    };
    let broad_phase = BroadPhase::new(config).map_err(|error| error.to_string())?;
    match (broad_phase.report().stats.backend, broad_phase.fallback()) {
        (Backend::Cuda, None) => Ok(broad_phase),
        (backend, reason) => Err(format!("at first it is on {backend}: {reason:?}")),
    }
}

/// With `Backend::Auto`, an update whose device is lost continues on the CPU. Its pairs and events
/// are those without the fault.
fn taken_over() -> Result<(), String> {
    let frames = [frame(0, 200), frame(1, 320), frame(2, 250)];
    let pairs = frames.each_ref().map(|boxes| expected(boxes));
    for call in [1, 2, 5, 10, 20, 30] {
        let mut broad_phase = auto(Config::default())?;
        broad_phase
            .update(&frames[0])
            .map_err(|error| error.to_string())?;
        set(Some(&format!("any {call}+ 700")));
        let result = broad_phase.update(&frames[1]).cloned();
        set(None);
        let report = result.map_err(|error| format!("call {call}: {error}"))?;
        if report.stats.backend != Backend::Cpu || broad_phase.report() != &report {
            return Err(format!(
                "call {call}: {} is said to have worked",
                report.stats.backend
            ));
        }
        let reason = broad_phase.fallback().map(ToString::to_string);
        if !reason.is_some_and(|reason| reason.contains("a kernel did something illegal")) {
            return Err(format!("call {call}: {:?}", broad_phase.fallback()));
        }
        for (last, now) in [(0, 1), (1, 2)] {
            if now == 2 {
                broad_phase
                    .update(&frames[2])
                    .map_err(|error| format!("the update after: {error}"))?;
            }
            check("pairs", broad_phase.pairs(), &pairs[now])?;
            let (started, ended) = (broad_phase.started(), broad_phase.ended());
            check("starts", started, &without(&pairs[now], &pairs[last]))?;
            check("ends", ended, &without(&pairs[last], &pairs[now]))?;
        }
    }
    Ok(())
}

/// One call after the other fails once. Each update is right, on one backend or the other. Too
/// little device memory for the pairs is no fault of the device and may be an error.
fn taken_over_anywhere() -> Result<(), String> {
    let frames = [frame(0, 200), frame(1, 320)];
    let pairs = [expected(&frames[0]), expected(&frames[1])];
    for code in [2, 700] {
        let (mut taken_over, mut without_fault) = (0, 0);
        for call in 1.. {
            let mut broad_phase = auto(Config::default())?;
            broad_phase
                .update(&frames[0])
                .map_err(|error| error.to_string())?;
            set(Some(&format!("any {call} {code}")));
            let result = broad_phase.update(&frames[1]).cloned();
            set(None);
            let what = |what| format!("{what}, call {call} fails with {code}");
            match result {
                Ok(report) => {
                    check(&what("pairs"), broad_phase.pairs(), &pairs[1])?;
                    let (started, ended) = (broad_phase.started(), broad_phase.ended());
                    check(&what("starts"), started, &without(&pairs[1], &pairs[0]))?;
                    check(&what("ends"), ended, &without(&pairs[0], &pairs[1]))?;
                    let on_cpu = report.stats.backend == Backend::Cpu;
                    if on_cpu != broad_phase.fallback().is_some() {
                        return Err(what("no reason, or one without need"));
                    }
                    taken_over += usize::from(on_cpu);
                    without_fault = if on_cpu { 0 } else { without_fault + 1 };
                }
                Err(sap::Error::TooManyPairs { .. }) if code == 2 => {
                    check(&what("the last pairs"), broad_phase.pairs(), &pairs[0])?;
                }
                Err(error) => return Err(format!("{}: {error}", what("no result"))),
            }
            if without_fault == 12 {
                break;
            }
        }
        if taken_over < 10 {
            return Err(format!(
                "only {taken_over} calls failed with {code}: is the fault injected at all?"
            ));
        }
    }
    Ok(())
}

/// If the device can still be read, the boxes stored for margins move to the CPU too, so the pairs
/// are those of one engine. Queries find the last boxes.
fn margins_go_on() -> Result<(), String> {
    let config = Config {
        margin: 0.3,
        ..Config::default()
    };
    let frames = [frame(0, 200), frame(1, 200), frame(2, 200)];
    let mut alone = BroadPhase::new(Config {
        backend: Backend::Cpu,
        ..config.clone()
    })
    .map_err(|error| error.to_string())?;
    let mut broad_phase = auto(config)?;
    for (number, boxes) in frames.iter().enumerate() {
        alone.update(boxes).map_err(|error| error.to_string())?;
        // The first launch of the second update fails, and nothing else.
        set((number == 1).then_some("cuLaunchKernel 1 700"));
        let result = broad_phase.update(boxes).map(|report| report.stats.backend);
        set(None);
        let backend = result.map_err(|error| format!("frame {number}: {error}"))?;
        let should = if number == 0 {
            Backend::Cuda
        } else {
            Backend::Cpu
        };
        if backend != should {
            return Err(format!("frame {number} was done on {backend}"));
        }
        check("pairs", broad_phase.pairs(), alone.pairs())?;
        check("starts", broad_phase.started(), alone.started())?;
        check("ends", broad_phase.ended(), alone.ended())?;
    }
    Ok(())
}

/// Two sets continue on the CPU, as do chunks of which none was delivered. The last result stays.
fn other_calls_taken_over() -> Result<(), String> {
    let frames = [frame(0, 200), frame(1, 320)];
    let pairs = [expected(&frames[0]), expected(&frames[1])];
    let between = {
        let mut on_cpu = BroadPhase::new(config(Backend::Cpu, Strategy::Sweep)).unwrap();
        on_cpu.overlaps_between(&frames[0], &frames[1]).unwrap()
    };
    for two_sets in [true, false] {
        let mut broad_phase = auto(Config::default())?;
        broad_phase
            .update(&frames[0])
            .map_err(|error| error.to_string())?;
        set(Some("cuLaunchKernel 2 700"));
        let mut found = Vec::new();
        let result = if two_sets {
            let result = broad_phase.overlaps_between(&frames[0], &frames[1]);
            result.map(|pairs| found = pairs)
        } else {
            let hand = |pairs: &[Pair]| found.extend_from_slice(pairs);
            let result = broad_phase.for_each_pair_chunk(&frames[1], 100, hand);
            result.map(|_| ())
        };
        set(None);
        result.map_err(|error| error.to_string())?;
        let should = if two_sets { &between } else { &pairs[1] };
        check("pairs of the call", &found, should)?;
        if broad_phase.fallback().is_none() || broad_phase.report().stats.backend != Backend::Cpu {
            return Err("no reason is stored".to_owned());
        }
        check("the last pairs", broad_phase.pairs(), &pairs[0])?;
        check("the last starts", broad_phase.started(), &pairs[0])?;
        if !broad_phase
            .query_box(&frames[0][0])
            .is_ok_and(|found| found.contains(&0))
        {
            return Err("a query no longer finds the last boxes".to_owned());
        }
        broad_phase
            .update(&frames[1])
            .map_err(|error| error.to_string())?;
        let started = without(&pairs[1], &pairs[0]);
        check("the starts after", broad_phase.started(), &started)?;
    }
    Ok(())
}

/// If the CPU fails too, its error is returned and the last result stays. An engine with
/// `Backend::Cuda` does not continue on the CPU.
fn not_taken_over() -> Result<(), String> {
    let boxes = frame(0, 200);
    let pairs = expected(&boxes);
    let mut bad = frame(1, 320);
    bad[7].min[1] = f32::NAN;
    let mut broad_phase = auto(Config::default())?;
    broad_phase
        .update(&boxes)
        .map_err(|error| error.to_string())?;
    set(Some("any 1+ 700"));
    let result = broad_phase.update(&bad).map(|_| ());
    set(None);
    match result {
        Err(sap::Error::InvalidAabb { index: 7, .. }) => {}
        other => return Err(format!("{other:?}")),
    }
    check("the last pairs", broad_phase.pairs(), &pairs)?;
    if broad_phase.fallback().is_some() || broad_phase.report().stats.backend != Backend::Cuda {
        return Err("a fallback is reported, but there was none".to_owned());
    }
    let mut by_name = BroadPhase::new(config(Backend::Cuda, Strategy::Auto))
        .map_err(|error| error.to_string())?;
    set(Some("any 5+ 700"));
    let result = by_name.update(&boxes).map(|_| ());
    set(None);
    match result {
        Err(error) if error.to_string().contains("a kernel did something illegal") => {}
        other => return Err(format!("asked for by name: {other:?}")),
    }
    match by_name.fallback() {
        None => Ok(()),
        Some(reason) => Err(format!("asked for by name, but fell back: {reason}")),
    }
}

/// An update of boxes on the device returns the error. The next one from the host continues on the
/// CPU, with events relative to the last pairs that were read.
#[cfg(cuda)]
fn on_the_device() -> Result<(), String> {
    let frames = [frame(0, 200), frame(1, 320)];
    let pairs = [expected(&frames[0]), expected(&frames[1])];
    let text = |error: sap::Error| error.to_string();
    let mut broad_phase = auto(Config::default())?;
    let stream = broad_phase.stream().ok_or("no stream")?.clone();
    let boxes = stream
        .from_slice(&frames[0])
        .map_err(|error| error.to_string())?;
    broad_phase.update_device(boxes.slice()).map_err(text)?;
    broad_phase.download().map_err(text)?;
    check("pairs of the device", broad_phase.pairs(), &pairs[0])?;
    set(Some("any 1+ 700"));
    let on_device = broad_phase.update_device(boxes.slice()).map(|_| ());
    let kept = broad_phase.fallback().is_none();
    let from_host = broad_phase
        .update(&frames[1])
        .map(|report| report.stats.backend);
    set(None);
    match on_device {
        Err(sap::Error::Gpu(_)) if kept => {}
        other => return Err(format!("of boxes on the device: {other:?}")),
    }
    if from_host.map_err(text)? != Backend::Cpu {
        return Err("the update from the host was done on a lost device".to_owned());
    }
    let started = without(&pairs[1], &pairs[0]);
    check("pairs", broad_phase.pairs(), &pairs[1])?;
    check("starts", broad_phase.started(), &started)?;
    match broad_phase.update_device(boxes.slice()) {
        Err(sap::Error::NoCuda { .. }) => Ok(()),
        other => Err(format!("after it: {other:?}")),
    }
}

/// The trials of frames that are like those before them. In each of them, once the first frames are
/// over, the calls that take long fail: the second wait of an update, and any allocation.
#[cfg(cuda)]
const STEADY: &[(&str, Check)] = &[
    ("renewed_graph", || {
        let scaled = |b: &Aabb| Aabb::new(b.min.map(|x| x * 0.4), b.max.map(|x| x * 0.4 + 0.5));
        let dense: Vec<Aabb> = frame(1, 200).iter().map(scaled).collect();
        renewed(&frame(0, 200), &dense).map(drop)
    }),
    ("renewed_graph_with_bins", || {
        // One box overlaps all, which makes rows too long.
        let mut boxes = frame(1, 600);
        boxes[300] = Aabb::new([-1e3; 3], [1e3; 3]);
        match renewed(&frame(0, 600), &boxes)? {
            0 => Err("no renewal without memory sorts".to_owned()),
            _ => Ok(()),
        }
    }),
    ("after_no_memory", after_no_memory),
    ("moving", || {
        let boxes = |number| frame(number, 2000);
        waits_once(2..200, boxes)?;
        steady("cuMemAllocFromPoolAsync 1 719", 9..200, boxes).map(drop)
    }),
    ("flickering", || {
        // The faces of all boxes touch in every second frame.
        let boxes = |number| {
            let inset = if number % 2 == 0 { 0.0 } else { 1e-3 };
            let at = |i| [i % 12, i / 12 % 12, i / 144].map(|cell| cell as f32);
            let of =
                |min: [f32; 3]| Aabb::new(min.map(|x| x + inset), min.map(|x| x + 1.0 - inset));
            (0..1728).map(at).map(of).collect()
        };
        waits_once(4..100, boxes)?;
        steady("cuMemAllocFromPoolAsync 1 719", 9..100, boxes).map(drop)
    }),
    // They take ever more tests, so that the space is cut again.
    ("contracting", || {
        let boxes = |number| {
            let scale = 1.0 / (1.0 + 0.02 * number as f32);
            let of = |b: &Aabb| {
                let min = b.min.map(|x| x * scale);
                Aabb::new(min, min.map(|x| x + 0.7))
            };
            frame(number, 2000).iter().map(of).collect()
        };
        let cuts = waits_once(2..60, boxes)?;
        if cuts < 2 {
            return Err(format!("the space was cut {cuts} times"));
        }
        Ok(())
    }),
];

/// From one allocation after the other on there is no memory, in an update of more boxes. The next
/// update is right.
#[cfg(cuda)]
fn after_no_memory() -> Result<(), String> {
    let text = |error: sap::Error| error.to_string();
    let frames = [frame(0, 200), frame(1, 800)];
    let pairs = expected(&frames[1]);
    let mut failed = 0;
    for call in 1..=24 {
        let config = config(Backend::Cuda, Strategy::Subdivided);
        let mut broad_phase = BroadPhase::new(config).map_err(text)?;
        broad_phase.update(&frames[0]).map_err(text)?;
        set(Some(&format!("cuMemAllocFromPoolAsync {call}+ 2")));
        let result = broad_phase.update(&frames[1]).map(|_| ());
        set(None);
        failed += u32::from(result.is_err());
        broad_phase
            .update(&frames[1])
            .map_err(|error| format!("allocation {call}, the update after: {error}"))?;
        let what = format!("allocation {call}, the update after");
        check(&what, broad_phase.pairs(), &pairs)?;
    }
    if failed < 5 {
        return Err(format!("only {failed} updates failed"));
    }
    Ok(())
}

/// One call after the other fails, in a renewal of a graph for other boxes, whose pairs are put in
/// order without a sort; then one allocation after the other, as often as it is tried. The next
/// renewal is right, and so is one for the first boxes. Returns how many renewals without memory
/// have pairs sorted.
#[cfg(cuda)]
fn renewed(first: &[Aabb], other: &[Aabb]) -> Result<usize, String> {
    let no_memory = |call| format!("cuMemAllocFromPoolAsync {call}-{} 2", call + 3);
    renewals(|call| format!("any {call} 2"), 20, first, other)?;
    renewals(no_memory, 1, first, other)
}

/// Returns how many of the renewals that succeed in spite of the faults have pairs sorted.
#[cfg(cuda)]
fn renewals(
    fault: impl Fn(usize) -> String,
    min_failed: usize,
    first: &[Aabb],
    other: &[Aabb],
) -> Result<usize, String> {
    let text = |error: sap::Error| error.to_string();
    let [of_first, of_other] = [first, other].map(expected);
    let (mut failed, mut without_fault, mut sorted) = (0, 0, 0);
    for call in 1.. {
        let config = config(Backend::Cuda, Strategy::Auto);
        let mut graph = FrameGraph::new(&config, first, None, None, 0).map_err(text)?;
        upload(&mut graph, other)?;
        set(Some(&fault(call)));
        let result = graph.renew(0);
        set(None);
        if result.is_err() {
            (failed, without_fault) = (failed + 1, 0);
            graph
                .renew(0)
                .map_err(|error| format!("call {call}, the renewal after: {error}"))?;
        } else {
            without_fault += 1;
        }
        let sorts = launch(&format!("call {call}, the graph"), &mut graph, &of_other)?;
        sorted += usize::from(sorts > 0 && result.is_ok());
        upload(&mut graph, first)?;
        graph.renew(0).map_err(text)?;
        launch(&format!("call {call}, the graph"), &mut graph, &of_first)?;
        if without_fault == 12 {
            if sorts != 0 {
                return Err(format!("{sorts} pairs were sorted"));
            }
            break;
        }
    }
    if failed < min_failed {
        return Err(format!("only {failed} renewals failed"));
    }
    Ok(sorted)
}

#[cfg(cuda)]
fn upload(graph: &mut FrameGraph, boxes: &[Aabb]) -> Result<(), String> {
    let stream = graph.stream().clone();
    let uploaded = stream.upload(graph.boxes_mut(), boxes);
    uploaded.map_err(|error| error.to_string())
}

/// Launches a graph and compares its pairs. Returns how many keys it has sorted.
#[cfg(cuda)]
fn launch(what: &str, graph: &mut FrameGraph, expected: &[Pair]) -> Result<u64, String> {
    let text = |error: sap::Error| error.to_string();
    graph.launch().map_err(text)?;
    let report = graph.report().map_err(text)?;
    let found = graph.pairs().map_err(text)?.range(..report.pairs as usize);
    let found = found.and_then(|list| graph.stream().to_vec(list));
    check(what, &found.map_err(|error| error.to_string())?, expected)?;
    Ok(report.stats.sorts.keys)
}

/// Updates by frames on the device, in some of which a second wait for the counters fails, and then
/// any second wait for all work. Returns how often the space was cut.
#[cfg(cuda)]
fn waits_once(
    frames: Range<usize>,
    boxes: impl Fn(usize) -> Vec<Aabb> + Copy,
) -> Result<usize, String> {
    steady("cuStreamQuery 2 719", frames.clone(), boxes)?;
    steady("cuStreamSynchronize 2 719", frames, boxes)
}

/// Updates by frames on the device, in some of which a call fails if it is made. Returns how often
/// the space was cut.
#[cfg(cuda)]
fn steady(
    fault: &str,
    steady: Range<usize>,
    boxes: impl Fn(usize) -> Vec<Aabb>,
) -> Result<usize, String> {
    let text = |error: sap::Error| error.to_string();
    let mut most = 0;
    for strategy in [Strategy::Auto, Strategy::Subdivided] {
        let mut broad_phase = BroadPhase::new(Config {
            initial_pair_capacity: Some(100_000),
            ..config(Backend::Cuda, strategy)
        })
        .map_err(text)?;
        let stream = broad_phase.stream().ok_or("no stream")?.clone();
        let mut cuts = Vec::new();
        for number in 0..steady.end {
            let boxes = boxes(number);
            let on_device = stream
                .from_slice(&boxes)
                .map_err(|error| error.to_string())?;
            set(steady.contains(&number).then_some(fault));
            let result = broad_phase.update_device(on_device.slice()).map(|_| ());
            set(None);
            result.map_err(|error| format!("{strategy}, frame {number}: {error}"))?;
            cuts.push(broad_phase.subdivision());
            broad_phase.download().map_err(text)?;
            if number % 16 == 0 {
                let what = format!("{strategy}, frame {number}");
                check(&what, broad_phase.pairs(), &expected(&boxes))?;
            }
        }
        cuts.dedup();
        most = most.max(cuts.len());
    }
    Ok(most)
}

/// Lists and boxes that cannot be downloaded are an error, and are available once the device works
/// again.
#[cfg(cuda)]
fn what_is_on_the_device() -> Result<(), String> {
    let boxes = frame(0, 200);
    let pairs = expected(&boxes);
    let text = |error: sap::Error| error.to_string();
    let mut broad_phase = BroadPhase::new(config(Backend::Cuda, Strategy::Auto)).map_err(text)?;
    let stream = broad_phase.stream().ok_or("no stream")?.clone();
    let there = stream
        .from_slice(&boxes)
        .map_err(|error| error.to_string())?;
    for call in 1..=2 {
        broad_phase.clear();
        broad_phase.update_device(there.slice()).map_err(text)?;
        set(Some(&format!("cuMemcpyDtoHAsync_v2 {call}+ 719")));
        let failed = broad_phase.download().is_err();
        set(None);
        if !failed {
            return Err(format!("copy {call} did not fail"));
        }
        broad_phase.download().map_err(text)?;
        check("pairs", broad_phase.pairs(), &pairs)?;
        check("starts", broad_phase.started(), &pairs)?;
    }
    // The first queries run on the device, the others in a tree of the downloaded boxes.
    for query in 0..40 {
        set(Some("cuMemcpyDtoHAsync_v2 1+ 719"));
        let failed = broad_phase.query_box(&boxes[0]);
        set(None);
        // The tree is built after the first 16 queries, which failed, and one that did not.
        if failed.is_ok() != (query > 20) {
            return Err(format!("query {query}: {failed:?}"));
        }
        if query == 20 {
            let found = broad_phase.query_box(&boxes[0]).map_err(text)?;
            if !found.contains(&0) {
                return Err(format!("{found:?}"));
            }
        }
    }
    Ok(())
}

/// Boxes, half of them in another layer, and the indices of the others.
fn layered() -> (Vec<Aabb>, Vec<Filter>, Vec<u32>) {
    let layers = |i: u32| 1 + i % 2;
    let filter = |i: u32| Filter {
        layers: layers(i),
        ..Filter::default()
    };
    let of_first = (0..200).filter(|&i| layers(i) == 1).collect();
    (frame(0, 200), (0..200).map(filter).collect(), of_first)
}

/// The boxes of the first layer that a query meets, which has all of them in it.
fn of_first_layer(broad_phase: &BroadPhase) -> sap::Result<Vec<u32>> {
    let all = Aabb::new([f32::MIN; 3], [f32::MAX; 3]);
    let filter = Filter {
        mask: 1,
        ..Filter::default()
    };
    broad_phase.query(all).filter(filter).collect()
}

/// Filters that cannot be copied from the device are an error of that query alone; those that were
/// copied are kept.
#[cfg(cuda)]
fn filters_on_the_device() -> Result<(), String> {
    let (boxes, filters, of_first) = layered();
    let text = |error: sap::Error| error.to_string();
    let mut broad_phase = BroadPhase::new(config(Backend::Cuda, Strategy::Auto)).map_err(text)?;
    for update in 0..2 {
        let frame = Frame::boxes(&boxes[update..]).filters(&filters[update..]);
        broad_phase.update(frame).map_err(text)?;
        let of_first: Vec<u32> = match update {
            0 => of_first.clone(),
            _ => of_first[1..].iter().map(|i| i - 1).collect(),
        };
        // The first copy of a query is that of candidates, the second that of filters.
        for (copy, fails) in [(1, true), (2, true), (9, false), (2, false), (1, true)] {
            set(Some(&format!("cuMemcpyDtoHAsync_v2 {copy} 719")));
            let found = of_first_layer(&broad_phase);
            set(None);
            match found {
                Err(_) if fails => {}
                Ok(found) if !fails && found == of_first => {}
                other => return Err(format!("copy {copy}: {other:?}")),
            }
        }
        if of_first_layer(&broad_phase).map_err(text)? != of_first {
            return Err("after a failure: other boxes".to_owned());
        }
    }
    Ok(())
}

/// Queries after the CPU took over leave out what they did before.
fn filters_taken_over() -> Result<(), String> {
    let (boxes, filters, of_first) = layered();
    let text = |error: sap::Error| error.to_string();
    let mut broad_phase = auto(Config::default())?;
    broad_phase
        .update(Frame::boxes(&boxes).filters(&filters))
        .map_err(text)?;
    set(Some("cuLaunchKernel 2 700"));
    let between = broad_phase.overlaps_between(&boxes, &boxes);
    set(None);
    between.map_err(text)?;
    if broad_phase.fallback().is_none() {
        return Err("the CPU has not taken over".to_owned());
    }
    match of_first_layer(&broad_phase).map_err(text)? {
        found if found == of_first => Ok(()),
        found => Err(format!("{found:?}")),
    }
}

/// Everything works where no memory can be pinned.
#[cfg(cuda)]
fn nothing_pinned() -> Result<(), String> {
    let boxes = frame(0, 200);
    let pairs = expected(&boxes);
    let text = |error: sap::Error| error.to_string();
    for code in [1, 2, 304, 801] {
        set(Some(&format!("cuMemHostAlloc 1+ {code}")));
        let mut broad_phase =
            BroadPhase::new(config(Backend::Cuda, Strategy::Auto)).map_err(text)?;
        broad_phase.update(&boxes).map_err(text)?;
        check("pairs", broad_phase.pairs(), &pairs)?;
        broad_phase.update(&boxes[1..]).map_err(text)?;
        let stream = broad_phase.stream().ok_or("no stream")?.clone();
        let there = stream
            .from_slice(&boxes)
            .map_err(|error| error.to_string())?;
        broad_phase.update_device(there.slice()).map_err(text)?;
        broad_phase.download().map_err(text)?;
        check("pairs of the device", broad_phase.pairs(), &pairs)?;
        let mut all = Vec::new();
        broad_phase
            .for_each_pair_chunk(&boxes, 7, |chunk| all.extend_from_slice(chunk))
            .map_err(text)?;
        check("pairs in chunks", &all, &pairs)?;
        let found = broad_phase.query_box(&boxes[0]).map_err(text)?;
        if !found.contains(&0) {
            return Err(format!("{found:?}"));
        }
    }
    set(None);
    Ok(())
}

/// Faults before there is an engine, and what the message must say where CUDA was requested.
const BEFORE: [(&str, &str, &str); 8] = [
    ("no_device", "cuDeviceGetCount 1+ 100", "finds no device"),
    ("not_initialised", "cuInit 1+ 3", "not initialised"),
    ("versions_differ", "cuInit 1+ 803", "of different versions"),
    ("unknown", "cuInit 1+ 999", "kernel module"),
    (
        "no_memory_for_a_context",
        "cuDevicePrimaryCtxRetain 1+ 2",
        "cuDevicePrimaryCtxRetain",
    ),
    (
        "driver_too_old_for_the_image",
        "cuModuleLoadDataEx 1+ 222",
        "a newer driver",
    ),
    (
        "image_for_another_device",
        "cuModuleLoadDataEx 1+ 209",
        "cannot run here",
    ),
    ("kernel_missing", "cuModuleGetFunction 1+ 500", "kernel"),
];

/// Runs a fault in a child process, because a device stays open in a process.
fn before(fault: &str, says: &str) -> Result<(), String> {
    let run = |backend: &str| -> Result<String, String> {
        let own = env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(own);
        let output = command.env(CHILD, backend).env(FAULT, fault).output();
        let output = output.map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(text);
        }
        Err(format!(
            "{backend}: {} {text} {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ))
    };
    let forced = run("cuda")?;
    if !(forced.starts_with("error: ") && forced.contains(says)) {
        return Err(format!("asked for CUDA: {forced:?} does not say {says:?}"));
    }
    let count = expected(&frame(0, 200)).len();
    let auto = run("auto")?;
    let mut lines = auto.lines();
    if lines.next() != Some(&format!("cpu: {count} pairs")) {
        return Err(format!("asked for any backend: {auto:?}"));
    }
    if !lines.next().is_some_and(|reason| reason.contains(says)) {
        return Err(format!("the reason is not {says:?}: {auto:?}"));
    }
    Ok(())
}

fn child(backend: &str) -> ExitCode {
    let made = BroadPhase::new(config(backend.parse().unwrap(), Strategy::Auto));
    let updated = made.and_then(|mut broad_phase| {
        let report = broad_phase.update(&frame(0, 200))?;
        let (backend, pairs) = (report.stats.backend, report.pairs);
        Ok((backend, pairs, broad_phase.fallback().cloned()))
    });
    match updated {
        Ok((backend, pairs, reason)) => {
            println!("{backend}: {pairs} pairs");
            reason.inspect(|reason| println!("{reason}"));
        }
        Err(error) => println!("error: {error}"),
    }
    ExitCode::SUCCESS
}
