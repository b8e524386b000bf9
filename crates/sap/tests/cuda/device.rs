//! Boxes and pairs that stay on the device, engines on several threads, and the choice of the
//! backend.

use super::{Check, Random, cuda, engine, expected, holds, same_lists, sized, text, uniform};
use crate::common::{equal, same};
use libtest_mimic::Failed;
use sap::{
    Aabb, Aabb64, Backend, BroadPhase, Config, DeviceFrame, Error, Filter, FilterFlags, Frame,
    InvalidReason, OnInvalid, OverlapRule, Pair, Strategy,
};

pub const ALL: &[(&str, Check)] = &[
    ("device::resident_equals_host", resident),
    ("device::frames", frames),
    ("device::addresses_of_four_bytes", unaligned),
    ("device::bad_boxes", bad_boxes),
    ("device::nothing_moved", nothing_moved),
    ("device::unchanged_from_the_host", unchanged_from_the_host),
    ("device::same_twice", same_twice),
    ("device::two_threads", two_threads),
    ("device::untimed", untimed),
];

/// Lists are the same for boxes from the device and from the host, downloaded or not.
fn resident(strategy: Strategy) -> Result<(), Failed> {
    let (mut host, mut device) = (engine(&cuda(strategy)), engine(&cuda(strategy)));
    let stream = device.stream().ok_or("no stream")?.clone();
    let mut random = Random::new(1);
    for number in 0..6 {
        let boxes = uniform(&mut random, sized(20_000, 500) / (number + 1), 2.0);
        let on_device = stream.from_slice(&boxes).map_err(text)?;
        let report = device
            .update_device(on_device.slice())
            .map_err(text)?
            .clone();
        drop(on_device);
        let other = host.update(&boxes).map_err(text)?;
        equal(
            (
                report.pairs,
                report.started,
                report.ended,
                report.stats.axis,
            ),
            (other.pairs, other.started, other.ended, other.stats.axis),
        )?;
        let list = device.device_pairs().map_err(text)?;
        same(&stream.to_vec(list).map_err(text)?, host.pairs())?;
        // Every second frame leaves the lists on the device.
        if number % 2 == 1 {
            device.download()?;
            same_lists(&device, &host)?;
            equal(device.query_point([1.0; 3])?, host.query_point([1.0; 3])?)?;
        }
    }
    device.clear();
    holds(
        device.pairs().is_empty() && device.device_pairs().map_err(text)?.is_empty(),
        || "not cleared".to_owned(),
    )
}

/// Without times everything else is the same, whatever the last frames were: in frames of as many
/// boxes, of others, of none, and where nothing moves.
fn untimed(strategy: Strategy) -> Result<(), Failed> {
    let config = Config {
        timings: false,
        ..cuda(strategy)
    };
    let (mut timed, mut untimed) = (engine(&cuda(strategy)), engine(&config));
    let stream = timed.stream().ok_or("no stream")?.clone();
    let mut random = Random::new(9);
    let n = sized(20_000, 300);
    for n in [n, n, n, n / 2, n / 2, 0, 0, 1, n, n] {
        let boxes = uniform(&mut random, n, 2.0);
        for from_host in [false, false, true] {
            let on_device = stream.from_slice(&boxes).map_err(text)?;
            let update = |broad_phase: &mut BroadPhase| {
                let report = if from_host {
                    broad_phase.update(&boxes)?.clone()
                } else {
                    let report = broad_phase.update_device(on_device.slice())?.clone();
                    broad_phase.download()?;
                    report
                };
                Ok::<_, Error>(report)
            };
            let (with, without) = (update(&mut timed)?, update(&mut untimed)?);
            holds(with.stats.timings.total > 0.0 || n == 0, || {
                format!("no times of {n} boxes")
            })?;
            equal(without.stats.timings, Default::default())?;
            equal(
                (with.pairs, with.started, with.ended, with.stats.tests),
                (
                    without.pairs,
                    without.started,
                    without.ended,
                    without.stats.tests,
                ),
            )?;
            same_lists(&untimed, &timed)?;
        }
        same(untimed.pairs(), &expected(&boxes, OverlapRule::Closed))?;
    }
    Ok(())
}

/// Filters, worlds, excluded pairs and all forms of boxes, on the device and on the host.
fn frames(strategy: Strategy) -> Result<(), Failed> {
    let mut random = Random::new(5);
    for margin in [0.0, 0.1] {
        let config = Config {
            margin,
            ..cuda(strategy)
        };
        let (mut host, mut device) = (engine(&config), engine(&config));
        let stream = device.stream().ok_or("no stream")?.clone();
        for number in 0..12 {
            let n = random.below(sized(20_000, 400));
            let boxes = uniform(&mut random, n, 4.0);
            let ends = uniform(&mut random, n, 4.0);
            let exact: Vec<Aabb64> = boxes
                .iter()
                .map(|b| Aabb64::new(b.min.map(|x| f64::from(x) + 1e-9), b.max.map(f64::from)))
                .collect();
            let filters: Vec<Filter> = (0..n)
                .map(|_| Filter {
                    mask: random.bits() as u32 | 1,
                    group: random.below(9) as u32,
                    flags: FilterFlags(random.below(4) as u32),
                    ..Filter::default()
                })
                .collect();
            let worlds: Vec<u32> = (0..n).map(|_| random.below(3) as u32).collect();
            let excluded = [
                Pair { a: 0, b: 1 },
                Pair { a: 0, b: 2 },
                Pair { a: 1, b: 2 },
            ];
            // The slices begin in the middle of a buffer, at multiples of 24 and of 48 bytes.
            let on_device = stream
                .from_slice(&[&[Aabb::EMPTY], &boxes[..]].concat())
                .map_err(text)?;
            let on_device = on_device.range(1..).map_err(text)?;
            let ends_there = stream.from_slice(&ends).map_err(text)?;
            let nowhere = Aabb64::new([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
            let exact_there = stream
                .from_slice(&[&[nowhere], &exact[..]].concat())
                .map_err(text)?;
            let exact_there = exact_there.range(1..).map_err(text)?;
            let filters_there = stream.from_slice(&filters).map_err(text)?;
            let worlds_there = stream.from_slice(&worlds).map_err(text)?;
            let (mut there, mut here) = match number % 3 {
                0 => (DeviceFrame::boxes(on_device), Frame::boxes(&boxes)),
                1 => (
                    DeviceFrame::swept(on_device, ends_there.slice()),
                    Frame::swept(&boxes, &ends),
                ),
                _ => (DeviceFrame::exact(exact_there), Frame::exact(&exact)),
            };
            if random.chance(2) {
                there = there.filters(filters_there.slice());
                here = here.filters(&filters);
            }
            if random.chance(2) {
                there = there.worlds(worlds_there.slice());
                here = here.worlds(&worlds);
            }
            if random.chance(2) {
                (there, here) = (there.excluded(&excluded), here.excluded(&excluded));
            }
            let on_device = device.update_device(there).map_err(text)?.clone();
            let on_host = host.update(here).map_err(text)?;
            equal(
                (
                    on_device.n,
                    on_device.pairs,
                    on_device.started,
                    on_device.ended,
                ),
                (on_host.n, on_host.pairs, on_host.started, on_host.ended),
            )?;
            device.download()?;
            same_lists(&device, &host)?;
        }
        let short = stream.from_slice(&[0_u32; 2]).map_err(text)?;
        let three = stream.from_slice(&[Aabb::EMPTY; 3]).map_err(text)?;
        let frame = DeviceFrame::boxes(three.slice()).worlds(short.slice());
        match device.update_device(frame) {
            Err(Error::LengthMismatch {
                what: "worlds",
                boxes: 3,
                given: 2,
            }) => {}
            other => return Err(format!("{other:?}").into()),
        }
        same(device.pairs(), host.pairs())?;
    }
    Ok(())
}

/// A slice may begin at any multiple of 4 bytes.
fn unaligned(strategy: Strategy) -> Result<(), Failed> {
    let boxes = uniform(&mut Random::new(2), sized(3000, 300), 2.0);
    let mut broad_phase = engine(&cuda(strategy));
    let stream = broad_phase.stream().ok_or("no stream")?.clone();
    let mut words = vec![f32::NAN];
    words.extend_from_slice(bytemuck::cast_slice(&boxes));
    let words = stream.from_slice(&words).map_err(text)?;
    let slice = words
        .range(1..)
        .and_then(gpu::Slice::cast::<Aabb>)
        .map_err(text)?;
    broad_phase.update_device(slice).map_err(text)?;
    broad_phase.download()?;
    same(broad_phase.pairs(), &expected(&boxes, OverlapRule::Closed))
}

fn bad_boxes(strategy: Strategy) -> Result<(), Failed> {
    let mut boxes = uniform(&mut Random::new(3), sized(3000, 300), 2.0);
    let pairs = expected(&boxes, OverlapRule::Closed);
    let mut broad_phase = engine(&cuda(strategy));
    let stream = broad_phase.stream().ok_or("no stream")?.clone();
    let good = stream.from_slice(&boxes).map_err(text)?;
    broad_phase.update_device(good.slice()).map_err(text)?;
    for i in [200, 150, 222] {
        boxes[i].max[1] = f32::NAN;
    }
    let bad = stream.from_slice(&boxes).map_err(text)?;
    let reason = InvalidReason::NanMax { axis: 1 };
    match broad_phase.update_device(bad.slice()) {
        Err(Error::InvalidAabb {
            index: 150,
            reason: found,
        }) if found == reason => {}
        other => return Err(format!("{other:?}").into()),
    }
    broad_phase.download()?;
    same(broad_phase.pairs(), &pairs)?;
    let mut skipping = engine(&Config {
        on_invalid: OnInvalid::Skip,
        ..cuda(strategy)
    });
    let report = skipping.update_device(bad.slice()).map_err(text)?;
    let invalid = report.invalid.map(|bad| (bad.count, bad.first, bad.reason));
    equal(invalid, Some((3, 150, reason)))
}

/// An unchanged frame is recognised, as are moves within a margin.
fn nothing_moved(strategy: Strategy) -> Result<(), Failed> {
    let mut boxes = uniform(&mut Random::new(4), sized(5000, 300), 2.0);
    let mut broad_phase = engine(&Config {
        margin: 0.1,
        ..cuda(strategy)
    });
    broad_phase.update(&boxes).map_err(text)?;
    let pairs = broad_phase.pairs().to_vec();
    for moved in [0.0, 0.05, -0.05] {
        boxes
            .iter_mut()
            .for_each(|b| *b = Aabb::new(b.min.map(|x| x + moved), b.max.map(|x| x + moved)));
        let report = broad_phase.update(&boxes).map_err(text)?;
        equal(
            (
                report.stats.tests,
                report.pairs,
                report.started,
                report.ended,
            ),
            (0, pairs.len() as u64, 0, 0),
        )?;
        same(broad_phase.pairs(), &pairs)?;
        holds(
            broad_phase.started().is_empty() && broad_phase.ended().is_empty(),
            || "events of nothing".to_owned(),
        )?;
        let inside = boxes[7].min;
        holds(broad_phase.query_point(inside)?.contains(&7), || {
            "queries see the boxes of before".to_owned()
        })?;
    }
    boxes[0] = Aabb::new([1e6; 3], [2e6; 3]);
    let report = broad_phase.update(&boxes).map_err(text)?;
    holds(report.stats.tests > 0 && report.ended > 0, || {
        format!("a box left, {report:?}")
    })
}

/// An update from the host has its lists on the host, even if an update of boxes on the device has
/// found the same pairs before.
fn unchanged_from_the_host(strategy: Strategy) -> Result<(), Failed> {
    let boxes = uniform(&mut Random::new(6), sized(3000, 300), 2.0);
    let mut broad_phase = engine(&cuda(strategy));
    let stream = broad_phase.stream().ok_or("no stream")?.clone();
    let on_device = stream.from_slice(&boxes)?;
    for _ in 0..3 {
        broad_phase.update_device(on_device.slice())?;
    }
    let report = broad_phase.update(&boxes)?;
    equal(report.stats.tests, 0)?;
    same(broad_phase.pairs(), &expected(&boxes, OverlapRule::Closed))?;
    holds(broad_phase.started().is_empty(), || "events".to_owned())
}

fn same_twice(strategy: Strategy) -> Result<(), Failed> {
    let boxes = uniform(&mut Random::new(5), sized(200_000, 1000), 1.0);
    let run = || -> Result<Vec<Pair>, Failed> {
        let mut broad_phase = engine(&cuda(strategy));
        broad_phase.update(&boxes).map_err(text)?;
        Ok(broad_phase.pairs().to_vec())
    };
    let first = run()?;
    for _ in 0..3 {
        same(&run()?, &first)?;
    }
    Ok(())
}

/// Two engines at once, each on its own stream.
fn two_threads(strategy: Strategy) -> Result<(), Failed> {
    let work = |seed: u64| -> Result<(), Failed> {
        let mut broad_phase = engine(&cuda(strategy));
        let mut random = Random::new(seed);
        for _ in 0..sized(10, 3) {
            let boxes = uniform(&mut random, sized(20_000, 300), 1.0);
            broad_phase.update(&boxes).map_err(text)?;
            same(broad_phase.pairs(), &expected(&boxes, OverlapRule::Closed))?;
        }
        Ok(())
    };
    std::thread::scope(|threads| {
        let running = [10, 20].map(|seed| threads.spawn(move || work(seed)));
        running.into_iter().try_for_each(|thread| {
            thread
                .join()
                .map_err(|_| Failed::from("a thread panicked"))?
        })
    })
}

/// CUDA has every strategy, and `Backend::Auto` takes CUDA.
pub fn choice() -> Result<(), Failed> {
    let new = |backend, strategy| {
        BroadPhase::new(Config {
            backend,
            strategy,
            ..Config::default()
        })
    };
    for &strategy in Strategy::ALL {
        let backend = |backend| {
            new(backend, strategy)
                .map(|broad_phase| broad_phase.report().stats.backend)
                .map_err(text)
        };
        equal(backend(Backend::Cuda)?, Backend::Cuda)?;
        equal(backend(Backend::Auto)?, Backend::Cuda)?;
    }
    let mut on_cpu = new(Backend::Cpu, Strategy::Auto).map_err(text)?;
    holds(
        on_cpu.stream().is_none() && matches!(on_cpu.device_pairs(), Err(Error::NoCuda { .. })),
        || "a stream on the CPU".to_owned(),
    )?;
    let stream = engine(&cuda(Strategy::Sweep))
        .stream()
        .ok_or("no stream")?
        .clone();
    let boxes = stream.from_slice(&[Aabb::EMPTY]).map_err(text)?;
    holds(
        matches!(
            on_cpu.update_device(boxes.slice()),
            Err(Error::NoCuda { .. })
        ) && matches!(
            on_cpu.overlaps_between_device(boxes.slice(), boxes.slice()),
            Err(Error::NoCuda { .. })
        ),
        || "no error on the CPU".to_owned(),
    )
}

/// The engine works on the device that is asked for, beside one on the first.
pub fn second() -> Result<(), Failed> {
    let config = Config {
        device: Some(1),
        ..cuda(Strategy::Auto)
    };
    let (mut first, mut second) = (engine(&cuda(Strategy::Auto)), engine(&config));
    let ordinal = |engine: &BroadPhase| engine.stream().map(|s| s.device().info().ordinal);
    equal([ordinal(&first), ordinal(&second)], [Some(0), Some(1)])?;
    let boxes = uniform(&mut Random::new(11), sized(20_000, 500), 2.0);
    first.update(&boxes)?;
    second.update(&boxes)?;
    same(second.pairs(), first.pairs())
}

/// A device that is not there is an error with the number of those that are, and `Auto` goes on
/// without CUDA.
pub fn missing() -> Result<(), Failed> {
    let count = gpu::Device::count()?;
    let on = |backend| {
        BroadPhase::new(Config {
            backend,
            device: Some(count),
            ..Config::default()
        })
    };
    let message = format!("no CUDA device {count}: the driver finds {count} device");
    let error = on(Backend::Cuda).err().map(|error| error.to_string());
    holds(
        error.as_ref().is_some_and(|error| error.contains(&message)),
        || format!("{error:?}"),
    )?;
    let backend = on(Backend::Auto)?.report().stats.backend;
    holds(backend != Backend::Cuda, || "another device".to_owned())
}
