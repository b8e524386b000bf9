//! Tests of Onesweep and of the sorter's other calls on a GPU.

use crate::common::{Distribution, TestKey, by_index};
use crate::gpu_rig::{
    Form, Gpu, Guarded, Outcome, Rig, Scratch, quick, reference, same, text, unless_quick,
};
use crate::suite::{Suite, all_distributions, check_counted};
use crate::{common, each_type, expect_error};
use gpusort::cuda::{Knobs, Payload, Request, Sorter, SorterConfig};
use gpusort::{Algorithm, Error, SortOptions};
use libtest_mimic::Failed;

/// Adds the trials.
pub fn add(suite: &mut Suite) {
    each_type!(suite, "distributions, 64-bit offsets", distributions_large);
    each_type!(suite, "is_sorted", is_sorted);
    super::onesweep_small::add(suite);
    suite.add("misuse is an error and writes nothing", misuse);
    suite.add(
        "parts of a request that exclude each other are an error",
        conflicts,
    );
    suite.add("scratch sizes are known without a device", scratch_sizes);
    suite.add("stalled blocks in the look-back", stalled_blocks);
    suite.add("reports: passes, skips, early exit, times", reports);
    suite.add("count on the device", count_on_device);
    if !quick() {
        suite.add_many_keys("more than 2^30 keys", (1 << 30) + 12_345);
    }
}

fn stalled_blocks(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let n: usize = unless_quick(1_000_000, 20_000);
    let tiles = n.div_ceil(Sorter::tile_keys::<u32>(gpu.algorithm, Payload::U32)) as u32;
    for tile in [0, 1, tiles / 2, tiles - 1] {
        // About 5 ms at 2 GHz, so that every later tile waits.
        let stall = Some((tile, unless_quick(10_000_000, 100_000)));
        let sorter = Sorter::new(
            &gpu.device,
            SorterConfig::new().knobs(Knobs {
                stall,
                ..Knobs::default()
            }),
        )?;
        let rig = Rig::new(&sorter, &stream);
        rig.check(
            &Distribution::UniformBits.keys::<u32>(n, 15),
            &gpu.options(),
            &[Form::Pairs32, Form::KeysInPlace],
        )
        .map_err(|failed| format!("tile {tile} stalled: {}", text(&failed)))?;
    }
    Ok(())
}

fn reports(gpu: &Gpu) -> Outcome {
    let (stream, n) = (gpu.stream()?, 20_000);
    let timed = Sorter::new(&gpu.device, SorterConfig::new().timings(true))?;
    let constant = |bits: std::ops::Range<u32>| Distribution::Bits(bits.start, bits.end);
    for (spread, window, run, skipped, early) in [
        (Distribution::UniformBits, 0..32, 4, 0, false),
        (Distribution::UniformBits, 0..20, 3, 0, false),
        (constant(8..16), 0..32, 1, 3, false),
        (constant(4..12), 0..32, 2, 2, false),
        (constant(8..16), 16..32, 0, 2, true),
        (Distribution::Constant, 0..32, 0, 4, true),
        (Distribution::Sorted, 0..32, 0, 4, true),
        (Distribution::UniformBits, 0..0, 0, 0, true),
    ] {
        let keys = stream.from_slice(&spread.keys::<u32>(n, 17))?;
        let mut output = stream.alloc::<u32>(n)?;
        let mut scratch = Scratch::new::<u32>(&stream, gpu.algorithm, n, Payload::None, false)?;
        let options = gpu.options().bits(window.clone());
        for sorter in [&gpu.sorter, &timed] {
            sorter.sort(
                &stream,
                Request::keys(keys.slice(), output.slice_mut()),
                scratch.slice_mut(),
                &options,
            )?;
            let report = sorter.report(&stream, scratch.slice())?;
            let outcome = stream.to_vec(Sorter::outcome(scratch.slice())?)?[0];
            let told = (outcome.passes_run(), outcome.passes_skipped());
            if (told, outcome.early_exit(), outcome.n()) != ((run, skipped), early, n as u64)
                || outcome.algorithm() != Some(Algorithm::Onesweep)
            {
                return Err(format!("{spread:?} {window:?}: {outcome:?}").into());
            }
            let got = (
                report.passes_run,
                report.passes_skipped,
                report.early_exit,
                report.n,
            );
            if got != (run, skipped, early, n as u64)
                || (report.algorithm, report.backend) != ("onesweep", "cuda")
            {
                return Err(format!("{spread:?} {window:?}: {report:?}, expected {run} run, {skipped} skipped, early {early}").into());
            }
        }
        let report = {
            timed.sort(
                &stream,
                Request::keys(keys.slice(), output.slice_mut()),
                scratch.slice_mut(),
                &options,
            )?;
            timed.report(&stream, scratch.slice())?
        };
        let names: Vec<_> = report.stages.iter().map(|stage| stage.0).collect();
        if names != ["one grid"] {
            return Err(format!("stages {names:?}").into());
        }
        let sum: f64 = report.stages.iter().map(|stage| stage.1).sum();
        if report.total_ms.is_nan()
            || report.total_ms <= 0.0
            || (sum - report.total_ms).abs() > 1e-9
        {
            return Err(format!("{report:?}").into());
        }
    }
    let mut scratch = Scratch::new::<u32>(&stream, gpu.algorithm, 0, Payload::None, false)?;
    let mut empty = stream.alloc::<u32>(0)?;
    gpu.sorter.sort(
        &stream,
        Request::in_place(empty.slice_mut()),
        scratch.slice_mut(),
        &gpu.options(),
    )?;
    let report = gpu.sorter.report(&stream, scratch.slice())?;
    if (report.n, report.passes_run) != (0, 0) {
        return Err(format!("no keys: {report:?}").into());
    }
    Ok(())
}

fn count_on_device(gpu: &Gpu) -> Outcome {
    let most = 30_000;
    let keys = Distribution::UniformBits.keys::<i64>(most, 18);
    let tile = Sorter::tile_keys::<i64>(gpu.algorithm, Payload::U32);
    let counts = [
        0,
        1,
        2,
        1000,
        tile - 1,
        tile,
        tile + 1,
        4 * tile,
        most - 1,
        most,
        most + 7,
    ];
    check_counted(gpu, &keys, &gpu.options().descending(), &counts)?;
    // By one block.
    check_counted(
        gpu,
        &keys[..2_000],
        &gpu.options(),
        &[0, 1, 255, 1_000, 2_000, 2_001],
    )
}

fn distributions_large<K: TestKey>(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig {
        sorter: &gpu.large,
        stream: &stream,
        large: true,
    };
    all_distributions::<K>(gpu, &rig, unless_quick(40_001, 7_700), Form::ALL)
}

fn is_sorted<K: TestKey>(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let most = unless_quick(40_000, 5_000);
    let mut scratch = Scratch::new::<K>(&stream, gpu.algorithm, 0, Payload::None, false)?;
    let mut ask = |keys: &[K], options: &SortOptions| -> Result<bool, Failed> {
        let keys = Guarded::new(&stream, keys)?;
        Ok(gpu
            .sorter
            .is_sorted(&stream, keys.slice(), scratch.slice_mut(), options)?)
    };
    for options in gpu.orders() {
        for n in [0, 1, 2, 3, 4, 5, 127, 128, 129, 2048, 4096, 4097, most] {
            let keys = Distribution::UniformBits.keys::<K>(n, 6);
            let sorted = by_index(&keys, &reference(&keys, &options));
            if !ask(&sorted, &options)? {
                return Err(
                    format!("{n} sorted keys are said to be out of order, {options:?}").into(),
                );
            }
            // The check finds one pair of neighbours out of order anywhere: at either end, within
            // and between vectors, warps and tiles.
            for at in [
                0,
                1,
                2,
                3,
                126,
                127,
                128,
                2047,
                2048,
                4095,
                n / 2,
                n.saturating_sub(2),
            ] {
                let mut keys = sorted.clone();
                if at + 1 >= n
                    || common::compared(keys[at], &options)
                        == common::compared(keys[at + 1], &options)
                {
                    continue;
                }
                keys.swap(at, at + 1);
                if ask(&keys, &options)? {
                    return Err(format!("{n} keys with {at} and the next exchanged are said to be in order, {options:?}").into());
                }
                let none = options.clone().bits(0..0);
                if !ask(&keys, &none)? {
                    return Err("keys are out of order by no bits".into());
                }
            }
        }
    }
    Ok(())
}

fn scratch_sizes(_: &Gpu) -> Outcome {
    let limit = Sorter::scratch_bytes::<u64>(1 << 40, Payload::U64)?;
    if limit < 16 << 40 {
        return Err(format!("{limit} bytes for 2^40 pairs of 16 bytes").into());
    }
    expect_error!(
        Sorter::scratch_bytes::<u32>(1 << 32, Payload::Index),
        Error::TooManyKeys {
            limit: 0xffff_ffff,
            ..
        }
    );
    expect_error!(
        Sorter::scratch_bytes::<u32>(u64::MAX, Payload::None),
        Error::TooManyKeys { .. }
    );
    Ok(())
}

fn misuse(gpu: &Gpu) -> Outcome {
    let (stream, sorter) = (gpu.stream()?, &gpu.sorter);
    let (n, options) = (1000, gpu.options());
    let keys = Distribution::UniformBits.keys::<u32>(n, 11);
    let input = stream.from_slice(&keys)?;
    let mut output = stream.from_slice(&keys)?;
    let mut both = stream.from_slice(&keys)?;
    let mut scratch = Scratch::new::<u32>(&stream, gpu.algorithm, n, Payload::Records, false)?;
    // SAFETY: these slices overlap or have no memory on purpose; every sort refuses them before
    // use.
    let raw = |ptr, len| unsafe { gpu::Slice::<u32>::from_raw(ptr, len) };
    // SAFETY: these slices overlap or have no memory on purpose; every sort refuses them before
    // use.
    let raw_mut = |ptr, len| unsafe { gpu::SliceMut::<u32>::from_raw(ptr, len) };
    let part = output.slice_mut().as_slice().ptr();

    let mut to = |window: std::ops::Range<u32>| {
        sorter.sort(
            &stream,
            Request::keys(input.slice(), output.slice_mut()),
            scratch.slice_mut(),
            &options.clone().bits(window),
        )
    };
    expect_error!(
        to(0..33),
        Error::BitWindow {
            begin: 0,
            end: 33,
            bits: 32
        }
    );
    #[expect(clippy::reversed_empty_ranges, reason = "the mistake under test")]
    let reversed = to(9..8);
    expect_error!(
        reversed,
        Error::BitWindow {
            begin: 9,
            end: 8,
            bits: 32
        }
    );

    let short = output.range_mut(..n - 1)?;
    let result = sorter.sort(
        &stream,
        Request::keys(input.slice(), short),
        scratch.slice_mut(),
        &options,
    );
    expect_error!(
        result,
        Error::LengthMismatch {
            keys: 1000,
            values: 999
        }
    );
    let short = output.range_mut(..n - 1)?;
    let result = sorter.sort(
        &stream,
        Request::index(input.slice(), short),
        scratch.slice_mut(),
        &options,
    );
    expect_error!(
        result,
        Error::LengthMismatch {
            keys: 1000,
            values: 999
        }
    );

    let needed = Sorter::scratch_bytes::<u32>(n as u64, Payload::None)?;
    let less = scratch.slice_mut().range(..needed as usize - 256)?;
    let result = sorter.sort(
        &stream,
        Request::keys(input.slice(), output.slice_mut()),
        less,
        &options,
    );
    expect_error!(result, Error::ScratchTooSmall { .. });
    let none = scratch.slice_mut().range(..0)?;
    let result = sorter.is_sorted(&stream, input.slice(), none, &options);
    expect_error!(result, Error::ScratchTooSmall { given: 0, .. });
    let none = scratch.slice().range(..0)?;
    expect_error!(
        sorter.report(&stream, none),
        Error::ScratchTooSmall { given: 0, .. }
    );
    let off = scratch.slice_mut().range(4..)?;
    let result = sorter.sort(
        &stream,
        Request::keys(input.slice(), output.slice_mut()),
        off,
        &options,
    );
    expect_error!(
        result,
        Error::Misaligned {
            what: "scratch",
            alignment: 256,
            ..
        }
    );

    let odd = raw(input.slice().ptr() + 2, n - 1);
    let result = sorter.sort(
        &stream,
        Request::keys(odd, output.range_mut(1..)?),
        scratch.slice_mut(),
        &options,
    );
    expect_error!(
        result,
        Error::Misaligned {
            what: "keys_in",
            alignment: 4,
            ..
        }
    );
    let result = sorter.sort(
        &stream,
        Request::keys(raw(0, n), output.slice_mut()),
        scratch.slice_mut(),
        &options,
    );
    expect_error!(result, Error::Null { what: "keys_in" });

    let result = sorter.sort(
        &stream,
        Request::keys(raw(part, n), raw_mut(part, n)),
        scratch.slice_mut(),
        &options,
    );
    expect_error!(
        result,
        Error::Overlap {
            first: "keys_in",
            second: "keys_out"
        }
    );
    let result = sorter.sort(
        &stream,
        Request::keys(raw(part, 500), raw_mut(part + 4 * 499, 500)),
        scratch.slice_mut(),
        &options,
    );
    expect_error!(result, Error::Overlap { .. });
    let inside = scratch.slice().ptr() + 512;
    let result = sorter.sort(
        &stream,
        Request::keys(input.slice(), raw_mut(inside, n)),
        scratch.slice_mut(),
        &options,
    );
    expect_error!(
        result,
        Error::Overlap {
            first: "keys_out",
            second: "scratch"
        }
    );
    let twice = raw_mut(both.slice_mut().as_slice().ptr(), n);
    let result = sorter.sort(
        &stream,
        Request::in_place(both.slice_mut()).values_in_place(twice),
        scratch.slice_mut(),
        &options,
    );
    expect_error!(
        result,
        Error::Overlap {
            first: "keys",
            second: "values"
        }
    );

    let none = scratch.slice().range(..31)?;
    expect_error!(
        Sorter::outcome(none),
        Error::ScratchTooSmall {
            needed: 32,
            given: 31
        }
    );

    same("output", &stream.to_vec(output.slice())?, &keys)?;
    same("keys and values", &stream.to_vec(both.slice())?, &keys)?;
    // Adjacent buffers do not overlap, and two inputs may be the same.
    let (mut a, mut b) = (stream.alloc::<u32>(n)?, stream.alloc::<u32>(n)?);
    sorter.sort(
        &stream,
        Request::keys(input.slice(), a.slice_mut()).values(input.slice(), b.slice_mut()),
        scratch.slice_mut(),
        &options,
    )?;
    same(
        "value = key",
        &stream.to_vec(a.slice())?,
        &stream.to_vec(b.slice())?,
    )?;
    let (left, right) = both.slice_mut().split_at(n / 2)?;
    sorter.sort(
        &stream,
        Request::keys(left.into_slice(), right),
        scratch.slice_mut(),
        &options,
    )?;
    stream.synchronize()?;
    Ok(())
}

/// Parts of a request that exclude each other are refused in every order.
fn conflicts(gpu: &Gpu) -> Outcome {
    let (stream, n) = (gpu.stream()?, 1000);
    let (a, mut b, mut c) = (
        stream.from_slice(&Distribution::UniformBits.keys::<u32>(n, 11))?,
        stream.alloc::<u32>(n)?,
        stream.alloc::<u32>(n)?,
    );
    let mut scratch = Scratch::new::<u32>(&stream, gpu.algorithm, n, Payload::Records, false)?;
    let mut fails = |request: Request<'_, u32>, wanted: [&str; 2]| -> Outcome {
        match (gpu.sorter).sort(&stream, request, scratch.slice_mut(), &gpu.options()) {
            Err(Error::Conflict { first, second }) if [first, second] == wanted => Ok(()),
            other => Err(format!("{other:?}, not a conflict of {wanted:?}").into()),
        }
    };
    let a = a.slice();
    let in_place = Request::in_place(b.slice_mut());
    fails(in_place.values(a, c.slice_mut()), ["values", "in_place"])?;
    let in_place = Request::in_place(b.slice_mut());
    fails(in_place.keys_out(c.slice_mut()), ["keys_out", "keys"])?;
    let keys = Request::keys(a, b.slice_mut());
    fails(keys.keys_out(c.slice_mut()), ["keys_out", "keys"])?;
    let keys = Request::keys(a, b.slice_mut());
    fails(
        keys.values_in_place(c.slice_mut()),
        ["values_in_place", "keys"],
    )?;
    let index = Request::index(a, b.slice_mut());
    fails(index.values(a, c.slice_mut()), ["values", "index"])?;
    let records = Request::records(a, a, b.slice_mut());
    fails(
        records.values_in_place(c.slice_mut()),
        ["values_in_place", "records"],
    )?;
    // The error is the first of several mistakes.
    let index = Request::index(a, b.range_mut(..7)?);
    let result = gpu.sorter.sort(
        &stream,
        index.values(a, c.slice_mut()),
        scratch.slice_mut(),
        &gpu.options(),
    );
    expect_error!(
        result,
        Error::LengthMismatch {
            keys: 1000,
            values: 7
        }
    );
    // Every kind of request may have no keys, whose addresses may all be equal.
    // SAFETY: the slice has no elements.
    let empty = unsafe { gpu::Slice::<u32>::from_raw(0, 0) };
    // SAFETY: the slice has no elements.
    let output = || unsafe { gpu::SliceMut::<u32>::from_raw(0, 0) };
    let request = Request::keys(empty, output()).values(empty, output());
    gpu.sorter
        .sort(&stream, request, scratch.slice_mut(), &gpu.options())?;
    Ok(())
}
