//! Tests of `SatishRadix` on a GPU.

use crate::common::{Distribution, TestKey, around};
use crate::each_type;
use crate::gpu_rig::{Form, Gpu, Outcome, Rig, Scratch, quick, text, unless_quick};
use crate::suite::{Suite, check_counted};
use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};

/// Max keys that one block sorts by all digits (`SMALL` in satish_radix/tuning.rs), by bytes of the
/// larger of key and value.
const SMALL: [usize; 2] = [512 * 24, 512 * 12];
/// Max tiles for which no scan kernel runs.
const UNSCANNED_TILES: usize = 512;

/// Adds the trials.
pub fn add(suite: &mut Suite) {
    each_type!(suite, "n around what one block sorts", around_one_block);
    suite.add("tiles around the first scan: u32", around_the_scan::<u32>);
    suite.add("tiles around the first scan: f64", around_the_scan::<f64>);
    suite.add("digits that all keys share", shared_digits);
    suite.add("each digit alone sorts stably", one_digit);
    suite.add("reports: passes, skips, stages", reports);
    suite.add("count on the device", count_on_device);
    if !quick() {
        suite.add_many_keys("more than 2^31 keys", (1 << 31) + 12_345);
    }
}

fn around_one_block<K: TestKey>(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    for (i, n) in around(&SMALL).into_iter().enumerate() {
        let forms = unless_quick(Form::ALL, &Form::ALL[2 * i % 9..][..2]);
        let options = &gpu.orders()[i % 2];
        rig.check(&Distribution::UniformBits.keys::<K>(n, 20), options, forms)?;
    }
    Ok(())
}

fn around_the_scan<K: TestKey>(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    let tile = Sorter::tile_keys::<K>(gpu.algorithm, Payload::U32);
    // A quick run sorts by two digits.
    let options = gpu.options().bits(0..unless_quick(K::BITS, 8));
    let most = UNSCANNED_TILES * tile;
    for n in unless_quick(around(&[most, 2 * most]), vec![most + 1]) {
        let keys = Distribution::UniformBits.keys::<K>(n, 21);
        rig.check(&keys, &options, &[Form::Pairs32])?;
    }
    Ok(())
}

/// Depending on the digits that vary, a sort continues from the input or the output, copies, or
/// moves nothing.
fn shared_digits(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    let n = unless_quick(300_000, 13_000);
    let windows = [
        (0, 4),
        (28, 32),
        (4, 8),
        (12, 20),
        (3, 5),
        (0, 1),
        (31, 32),
        (7, 7),
    ];
    for (i, (begin, end)) in windows.into_iter().enumerate() {
        let keys = Distribution::Bits(begin, end).keys::<u32>(n, 22);
        let forms = unless_quick(Form::ALL, &[Form::KeysInPlace, Form::Index, Form::Pairs64]);
        for bits in [0..32, 4..32, 0..4, 5..6] {
            let options = gpu.orders()[i % 2].clone().bits(bits);
            rig.check(&keys, &options, forms)
                .map_err(|failed| format!("bits {begin}..{end} vary: {}", text(&failed)))?;
        }
    }
    // Only one key differs, in the last, partial tile.
    for at in [0, n / 2, n - 1] {
        let mut keys = vec![f32::MAX; n];
        keys[at] = -0.0;
        rig.check(&keys, &gpu.options(), &[Form::Keys, Form::Index])?;
    }
    Ok(())
}

/// A pass is a stable counting sort, of each tile and of all keys: for any four bits, with one
/// block and with many.
fn one_digit(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    for n in unless_quick([5_000, 200_000], [700, 13_000]) {
        for begin in (0..=60).step_by(unless_quick(3, 15)) {
            let options = gpu.orders()[begin as usize % 2]
                .clone()
                .bits(begin..begin + 4);
            for spread in [Distribution::UniformBits, Distribution::Gaussian] {
                rig.check(&spread.keys::<f64>(n, 23), &options, &[Form::Pairs32])?;
                rig.check(&spread.keys::<u64>(n, 23), &options, &[Form::IndexAndKeys])?;
            }
        }
    }
    Ok(())
}

fn reports(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let timed = SorterConfig::new().timings(true);
    let timed = Sorter::new(&gpu.device, timed)?;
    let tile = Sorter::tile_keys::<u32>(gpu.algorithm, Payload::None);
    let scanned = (UNSCANNED_TILES + 1) * tile;
    let sizes = unless_quick(vec![1_000, SMALL[0], 20_000, scanned], vec![1_000, 13_000]);
    for n in sizes {
        for (spread, window, run, skipped) in [
            (Distribution::UniformBits, 0..32, 8, 0),
            (Distribution::UniformBits, 3..20, 5, 0),
            (Distribution::Bits(8, 16), 0..32, 2, 6),
            (Distribution::Bits(10, 14), 0..32, 2, 6),
            (Distribution::Bits(8, 16), 16..32, 0, 4),
            (Distribution::Constant, 0..32, 0, 8),
            (Distribution::UniformBits, 0..0, 0, 0),
        ] {
            let keys = stream.from_slice(&spread.keys::<u32>(n, 24))?;
            let mut output = stream.alloc::<u32>(n)?;
            let mut scratch = Scratch::new::<u32>(&stream, gpu.algorithm, n, Payload::None, false)?;
            let (out, options) = (output.slice_mut(), gpu.options().bits(window.clone()));
            timed.sort(
                &stream,
                Request::keys(keys.slice(), out),
                scratch.slice_mut(),
                &options,
            )?;
            let report = timed.report(&stream, scratch.slice())?;
            let got = (
                report.passes_run,
                report.passes_skipped,
                report.early_exit,
                report.n,
            );
            if got != (run, skipped, run == 0, n as u64) || report.algorithm != "satish-radix" {
                return Err(format!(
                    "{n} {spread:?} {window:?}: {report:?}, expected {run} run, {skipped} skipped"
                )
                .into());
            }
            let pass: &[&str] = if n >= scanned {
                &["tiles", "scan", "scatter"]
            } else {
                &["tiles", "scatter"]
            };
            let expected = match window.len().div_ceil(4) {
                _ if n <= SMALL[0] => vec!["one block"],
                0 => vec!["scatter"],
                passes => pass.repeat(passes),
            };
            let stages: Vec<_> = report.stages.iter().map(|stage| stage.0).collect();
            if stages != expected {
                return Err(format!("{n} {window:?}: stages {stages:?}").into());
            }
        }
    }
    Ok(())
}

fn count_on_device(gpu: &Gpu) -> Outcome {
    let tile = Sorter::tile_keys::<i64>(gpu.algorithm, Payload::U32);
    for most in [2_000, 30_000, unless_quick(2_000_000, 0)] {
        let keys = Distribution::UniformBits.keys::<i64>(most, 25);
        let counts = [0, 1, 1_000, tile, tile + 1, most, most + 7];
        check_counted(gpu, &keys, &gpu.options().descending(), &counts)?;
    }
    Ok(())
}
