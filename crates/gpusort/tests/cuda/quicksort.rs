//! Tests of `Quicksort` on a GPU.

use crate::common::{Distribution, TestKey, by_index, scrambled};
use crate::gpu_rig::{
    Form, Gpu, Guarded, Outcome, Rig, Scratch, quick, reference, same, unless_quick,
};
use crate::suite::{Suite, check_counted};
use crate::{each_type, suite};
use gpusort::SortReport;
use gpusort::cuda::{Payload, Request, Sorter};

/// Adds the trials.
pub fn add(suite: &mut Suite) {
    each_type!(suite, "phase two alone", phase_two_alone);
    suite.add("two levels of phase one and more", several_levels);
    suite.add("the number of keys is read from the device", counted);
    suite.add("equal keys are moved once", equal_keys_are_moved_once);
    suite.add("every arrangement takes the planned levels", arrangements);
    each_type!(suite, "keys made against the sample", against_the_sample, u32 f32 u64);
}

/// Phase two partitions everything, with one block and its stack.
fn phase_two_alone<K: TestKey>(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig {
        sorter: &gpu.large,
        stream: &stream,
        large: true,
    };
    suite::all_distributions::<K>(gpu, &rig, unless_quick(100_000, 17_000), Form::ALL)
}

fn several_levels(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    let n = unless_quick(10_000_000, 220_000);
    let forms = [Form::Keys, Form::Pairs32InPlace, Form::Index];
    for spread in [Distribution::UniformBits, Distribution::Zipf] {
        rig.check(&spread.keys::<u32>(n, 1), &gpu.options(), &forms)?;
        rig.check(&spread.keys::<f64>(n, 2), &gpu.options(), &forms[..1])?;
    }
    Ok(())
}

/// Counts below, at and above every limit: 0, a leaf, one level, all keys, more than all keys.
fn counted(gpu: &Gpu) -> Outcome {
    let leaf = Sorter::tile_keys::<u32>(gpu.algorithm, Payload::U32);
    let most = unless_quick(1_000_000, 3 * leaf);
    let keys = Distribution::Zipf.keys::<u32>(most, 3);
    let counts = [0, 1, leaf, leaf + 1, 2 * leaf + 7, most, most + 5];
    check_counted(gpu, &keys, &gpu.options(), &counts)
}

/// Sorts keys alone and returns the report. Its `passes_run` is the depth of the deepest partition,
/// its `partitioned` the keys that all partitions moved together.
fn report<K: TestKey>(gpu: &Gpu, keys: &[K]) -> Result<SortReport, libtest_mimic::Failed> {
    let (stream, options) = (gpu.stream()?, gpu.options());
    let input = Guarded::new(&stream, keys)?;
    let mut output = Guarded::poisoned(&stream, keys.len())?;
    let mut scratch = Scratch::new::<K>(&stream, gpu.algorithm, keys.len(), Payload::None, false)?;
    gpu.sorter.sort(
        &stream,
        Request::keys(input.slice(), output.slice_mut()),
        scratch.slice_mut(),
        &options,
    )?;
    let expected = by_index(keys, &reference(keys, &options));
    same("keys", &output.read(&stream, "output")?, &expected)?;
    Ok(gpu.sorter.report(&stream, scratch.slice())?)
}

fn equal_keys_are_moved_once(gpu: &Gpu) -> Outcome {
    let n = unless_quick(5_000_000, 220_000);
    for spread in [Distribution::Constant, Distribution::AllMax] {
        let report = report(gpu, &spread.keys::<u32>(n, 1))?;
        if (report.passes_run, report.partitioned) != (1, n as u64) {
            return Err(format!("{spread:?}: {report:?}").into());
        }
    }
    // Every value is frequent enough to be two pivots.
    let report = report(gpu, &Distribution::Few(8).keys::<f32>(n, 1))?;
    if (report.passes_run, report.partitioned) != (1, n as u64) {
        return Err(format!("8 values: {report:?}").into());
    }
    Ok(())
}

/// For every arrangement of keys, no level moves more than all keys, and hardly any are left to
/// phase two.
fn arrangements(gpu: &Gpu) -> Outcome {
    let n = unless_quick(5_000_000, 220_000);
    for &spread in Distribution::ALL {
        if quick() && !matches!(spread, Distribution::PipeOrgan | Distribution::Staggered) {
            continue;
        }
        let keys = spread.keys::<u32>(n, 4);
        let report = report(gpu, &keys)?;
        if report.partitioned > 3 * n as u64 || report.passes_run > 4 {
            return Err(format!("{spread:?}: {report:?}").into());
        }
    }
    Ok(())
}

/// Computes `hash` of kernels/sort/quicksort_partition.cuh.
fn hash(x: u32) -> u32 {
    let x = (x ^ x >> 16).wrapping_mul(0x7feb_352d);
    let x = (x ^ x >> 15).wrapping_mul(0x846c_a68b);
    x ^ x >> 16
}

/// `QUICKSORT_SAMPLE` in kernels/sort/quicksort_tuning.cuh.
const SAMPLE: u32 = 1024;

/// Returns the indices of a sequence that `sample_bounds` samples.
fn sample_indices(begin: usize, size: usize) -> Vec<usize> {
    let salt = hash((begin + size) as u32).wrapping_mul(SAMPLE);
    (0..SAMPLE)
        .map(|i| {
            let jitter = u64::from(hash(i.wrapping_add(salt)));
            (u64::from(i) * size as u64 + ((jitter * size as u64) >> 32)) as usize / SAMPLE as usize
        })
        .collect()
}

/// Returns the keys of an adversary who knows every sampled index. Each sample consists of the
/// smallest remaining keys, so that a partition splits off next to nothing. The other keys are
/// spread over all magnitudes, which is the worst for cuts at equal distances of values.
fn adversarial<K: TestKey>(n: usize, rounds: usize) -> Vec<K> {
    let (mut rank, mut next) = (vec![u32::MAX; n], 0);
    let (mut left, mut begin): (Vec<usize>, usize) = ((0..n).collect(), 0);
    for _ in 0..rounds {
        let mut sample = Vec::new();
        for place in sample_indices(begin, left.len()) {
            let at = left[place];
            if rank[at] == u32::MAX {
                rank[at] = next;
                next += 1;
            }
            sample.push(rank[at]);
        }
        sample.sort_unstable();
        let bound = sample[SAMPLE as usize / 32 * 31]; // the last of the 31 pivots
        let before = left.len();
        left.retain(|&at| rank[at] >= bound);
        begin += before - left.len();
    }
    let top = f64::from(K::BITS.min(50)) - 1.0;
    let low = f64::from(next).log2().ceil() + 1.0;
    (0..n)
        .map(|i| match rank[i] {
            u32::MAX => {
                let unit = scrambled(i) as f64 / u64::MAX as f64;
                K::from_raw((low + unit * (top - low)).exp2() as u64)
            }
            rank => K::from_raw(rank.into()),
        })
        .collect()
}

/// No input makes the sort quadratic, because after some partitions by sampled pivots a sequence is
/// cut at equal distances of values.
fn against_the_sample<K: TestKey>(gpu: &Gpu) -> Outcome {
    let n = unless_quick(300_000, 20_000);
    let keys = adversarial::<K>(n, 12);
    let report = report(gpu, &keys)?;
    // The keys are the worst case if they use up all partitions by sampled pivots.
    if report.passes_run < 7 {
        return Err(format!("the keys were not bad enough: {report:?}").into());
    }
    if report.passes_run > 3 + 6 + 14 || report.partitioned > n as u64 * 23 {
        return Err(format!("too much work: {report:?}").into());
    }
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    rig.check(&keys, &gpu.options(), &[Form::Index, Form::Pairs64InPlace])
}
