//! Tests of `FourWayRadix` and `EightWayRadix` on a GPU.

use crate::common::{Distribution, TestKey, by_index};
use crate::gpu_rig::{
    Form, Gpu, Guarded, Outcome, Rig, Scratch, reference, same, text, unless_quick,
};
use crate::suite::{Suite, check_counted};
use crate::{common, suite};
use gpusort::cuda::baseline::{Baseline, Baselines};
use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
use gpusort::{Algorithm, SortOptions, SortReport};
use libtest_mimic::Failed;

/// Adds the trials.
pub fn add(suite: &mut Suite) {
    own_trials(suite, Algorithm::FourWayRadix);
    own_trials(suite, Algorithm::EightWayRadix);
    for which in [Baseline::Bitonic, Baseline::Split, Baseline::Radix16] {
        suite.add(format!("baseline {which:?}"), move |gpu| {
            baseline(gpu, which)
        });
    }
    // The suite runs for `FourWayRadix`; these are its main trials for `EightWayRadix`.
    eight_way(
        suite,
        "every n below 1024: u32",
        suite::every_small_n::<u32>,
    );
    eight_way(
        suite,
        "every n below 1024: f64",
        suite::every_small_n::<f64>,
    );
    eight_way(
        suite,
        "n around the tile: u32",
        suite::around_the_tile::<u32>,
    );
    eight_way(
        suite,
        "n around the tile: i64",
        suite::around_the_tile::<i64>,
    );
    eight_way(suite, "distributions: u32", suite::distributions::<u32>);
    eight_way(suite, "distributions: f32", suite::distributions::<f32>);
    eight_way(suite, "distributions: i64", suite::distributions::<i64>);
    eight_way(suite, "bit windows: i32", suite::bit_windows::<i32>);
    eight_way(suite, "bit windows: u64", suite::bit_windows::<u64>);
    eight_way(suite, "powers of two: u32", suite::powers_of_two::<u32>);
    eight_way(suite, "stable over few values", suite::stability);
    eight_way(suite, "graph capture and replay", suite::graph_replay);
    eight_way(suite, "2^26 keys and pairs", |gpu| {
        suite::large(gpu, unless_quick(1 << 26, 1 << 14))
    });
}

fn of(gpu: &Gpu, algorithm: Algorithm) -> Gpu {
    Gpu {
        algorithm,
        ..gpu.clone()
    }
}

fn eight_way(suite: &mut Suite, name: &str, test: Test) {
    suite.add(format!("eight-way: {name}"), move |gpu| {
        test(&of(gpu, Algorithm::EightWayRadix))
    });
}

type Test = fn(&Gpu) -> Outcome;

fn own_trials(suite: &mut Suite, algorithm: Algorithm) {
    let trials: [(&str, Test); 6] = [
        (
            "the sort ends when the keys are in order: u32",
            ends_in_order::<u32>,
        ),
        (
            "the sort ends when the keys are in order: i64",
            ends_in_order::<i64>,
        ),
        (
            "one pair out of order anywhere is seen: f32",
            one_exchange::<f32>,
        ),
        (
            "one pair out of order anywhere is seen: u64",
            one_exchange::<u64>,
        ),
        ("a launch for each phase sorts the same", timed),
        ("count on the device", count_on_device),
    ];
    for (name, test) in trials {
        suite.add(format!("{algorithm}: {name}"), move |gpu| {
            test(&of(gpu, algorithm))
        });
    }
}

fn digit_bits(gpu: &Gpu) -> u32 {
    match gpu.algorithm {
        Algorithm::FourWayRadix => 2,
        _ => 3,
    }
}

/// Sorts out of place and returns the report.
fn report_of<K: TestKey>(
    gpu: &Gpu,
    sorter: &Sorter,
    keys: &[K],
    options: &SortOptions,
) -> Result<SortReport, Failed> {
    let (stream, n) = (gpu.stream()?, keys.len());
    let input = Guarded::new(&stream, keys)?;
    let mut output = Guarded::poisoned(&stream, n)?;
    let mut scratch = Scratch::new::<K>(&stream, gpu.algorithm, n, Payload::None, false)?;
    sorter.sort(
        &stream,
        Request::keys(input.slice(), output.slice_mut()),
        scratch.slice_mut(),
        options,
    )?;
    let sorted = by_index(keys, &reference(keys, options));
    same("keys", &output.read(&stream, "output")?, &sorted)?;
    scratch.check(&stream)?;
    Ok(sorter.report(&stream, scratch.slice())?)
}

fn expect_passes(report: &SortReport, run: u32, of: u32) -> Outcome {
    let (skipped, early) = (of - run, run < of);
    let got = (report.passes_run, report.passes_skipped, report.early_exit);
    if got != (run, skipped, early) {
        return Err(format!("{report:?}, expected {run} of {of} passes").into());
    }
    Ok(())
}

/// §4.2: keys whose leading bits agree are in order after the passes for the other bits. The result
/// must be in the output for any number of passes.
fn ends_in_order<K: TestKey>(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    let n = unless_quick(300_000, 9_000);
    let width = digit_bits(gpu);
    for (begin, end) in [(0, K::BITS), (0, K::BITS - 1), (3, K::BITS - 4)] {
        let options = gpu.options().bits(begin..end);
        let passes = (end - begin).div_ceil(width);
        for run in [0, 1, 2, 3, 4, passes - 1, passes] {
            let bits = (begin + run * width).min(end);
            // Only these bits of the window vary.
            let keys: Vec<K> = (0..n as u64)
                .map(|i| {
                    let random = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    let random = (random ^ random >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                    let random = random ^ random >> 32;
                    K::from_raw(if bits == 64 {
                        random
                    } else {
                        random & ((1 << bits) - 1)
                    })
                })
                .collect();
            let report = report_of(gpu, &gpu.sorter, &keys, &options)?;
            expect_passes(&report, run, passes)?;
            if report.algorithm != gpu.algorithm.name() || report.n != n as u64 {
                return Err(format!("{report:?}").into());
            }
            let forms = unless_quick(Form::ALL, &Form::ALL[run as usize % 4..][..4]);
            rig.check(&keys, &options, forms)
                .map_err(|failed| format!("{run} of {passes} passes: {}", text(&failed)))?;
        }
    }
    Ok(())
}

/// §4.2: the order check looks at the leading √n keys, then at the others. It must compare all
/// neighbours, also between threads, warps, tiles and parts, and at the √n boundary.
fn one_exchange<K: TestKey>(gpu: &Gpu) -> Outcome {
    let passes = K::BITS.div_ceil(digit_bits(gpu));
    let tile = Sorter::tile_keys::<K>(gpu.algorithm, Payload::None);
    for n in [
        2,
        3,
        5,
        100,
        tile + 1,
        unless_quick(2_000_000, 5 * tile + 7),
    ] {
        let all = Distribution::Uniform.keys::<K>(n, 21);
        let options = gpu.options();
        let mut sorted = by_index(&all, &reference(&all, &options));
        let lead = n.isqrt();
        expect_passes(&report_of(gpu, &gpu.sorter, &sorted, &options)?, 0, passes)?;
        for at in [
            0,
            1,
            lead.wrapping_sub(2),
            lead.wrapping_sub(1),
            lead,
            7,
            8,
            11,
            12,
            15,
            16,
            31,
            191,
            255,
            383,
            511,
            tile - 1,
            tile,
            2 * tile - 1,
            n / 2,
            n - 2,
        ] {
            let (i, j) = (at, at.wrapping_add(1));
            if j >= n
                || j == 0
                || common::compared(sorted[i], &options) == common::compared(sorted[j], &options)
            {
                continue;
            }
            sorted.swap(i, j);
            let report = report_of(gpu, &gpu.sorter, &sorted, &options)?;
            if report.passes_run == 0 {
                return Err(format!("{n} keys, {i} and {j} exchanged: {report:?}").into());
            }
            sorted.swap(i, j);
        }
    }
    Ok(())
}

/// With timings each phase is a launch.
fn timed(gpu: &Gpu) -> Outcome {
    let (stream, n) = (gpu.stream()?, unless_quick(500_000, 40_000));
    let config = SorterConfig::new().timings(true);
    let timed = Sorter::new(&gpu.device, config)?;
    let rig = Rig::new(&timed, &stream);
    let keys = Distribution::UniformBits.keys::<u32>(n, 22);
    rig.check(&keys, &gpu.options(), &[Form::Pairs64InPlace, Form::Index])?;
    let report = report_of(gpu, &timed, &keys, &gpu.options())?;
    let passes = 32_u32.div_ceil(digit_bits(gpu));
    expect_passes(&report, passes, passes)?;
    let names: Vec<_> = report.stages.iter().map(|stage| stage.0).collect();
    let mut expected = vec!["start"];
    expected.extend(["count", "map"].repeat(passes as usize));
    expected.push("copy");
    if names != expected || report.stages.iter().any(|stage| stage.1 < 0.0) {
        return Err(format!("{:?}", report.stages).into());
    }
    let small = Distribution::Bits(0, 6).keys::<u32>(n, 23);
    let run = 6_u32.div_ceil(digit_bits(gpu));
    expect_passes(
        &report_of(gpu, &timed, &small, &gpu.options())?,
        run,
        passes,
    )
}

fn count_on_device(gpu: &Gpu) -> Outcome {
    let most = 30_000;
    let keys = Distribution::UniformBits.keys::<i64>(most, 18);
    let tile = Sorter::tile_keys::<i64>(gpu.algorithm, Payload::U32);
    let counts = [0, 1, 2, 1000, tile - 1, tile + 1, 4 * tile, most, most + 7];
    check_counted(gpu, &keys, &gpu.options().descending(), &counts)
}

fn baseline(gpu: &Gpu, which: Baseline) -> Outcome {
    let stream = gpu.stream()?;
    let baselines = Baselines::new(&gpu.device);
    let options = gpu.options();
    let most = unless_quick(3_000_000, 9_000);
    for n in [0, 1, 2, 31, 1000, 2047, 2048, 2049, 4096, 4097, most] {
        for spread in [
            Distribution::UniformBits,
            Distribution::Few(3),
            Distribution::Sorted,
            Distribution::Extremes,
        ] {
            let keys = spread.keys::<u32>(n, 24);
            let index = reference(&keys, &options);
            let values: Vec<u32> = (0..n as u32).collect();
            let (keys_in, values_in) = (
                Guarded::new(&stream, &keys)?,
                Guarded::new(&stream, &values)?,
            );
            for pairs in [false, true] {
                let (mut keys_out, mut values_out) = (
                    Guarded::poisoned(&stream, n)?,
                    Guarded::poisoned(&stream, n)?,
                );
                let bytes = Baselines::scratch_bytes(which, n as u64, pairs)? as usize;
                let mut scratch = Guarded::<u8>::poisoned(&stream, bytes + 256)?;
                let room = scratch.slice_mut();
                let aligned = room.ptr().next_multiple_of(256) - room.ptr();
                let room = room.range(aligned as usize..aligned as usize + bytes)?;
                let with = pairs.then(|| (values_in.slice(), values_out.slice_mut()));
                baselines.sort(
                    which,
                    &stream,
                    keys_in.slice(),
                    keys_out.slice_mut(),
                    with,
                    room,
                )?;
                let what = format!("{which:?} of {n} {spread:?}, pairs {pairs}");
                same(
                    &what,
                    &keys_out.read(&stream, "keys_out")?,
                    &by_index(&keys, &index),
                )?;
                if pairs {
                    same(&what, &values_out.read(&stream, "values_out")?, &index)?;
                }
                scratch.read(&stream, "scratch")?;
            }
        }
    }
    Ok(())
}
