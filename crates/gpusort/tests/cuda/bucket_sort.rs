//! Tests of `BucketSort` on a GPU.

use crate::common::{Distribution, TestKey};
use crate::gpu_rig::{Form, Gpu, Outcome, Rig, Scratch, same, unless_quick};
use crate::suite::Suite;
use crate::{each_type, expect_error, gpu_rig};
use gpusort::SortReport;
use gpusort::cuda::{Payload, Request, Sorter, SorterConfig, bucket_count};

/// Adds the trials.
pub fn add(suite: &mut Suite) {
    each_type!(suite, "no bucket above 2n/s", no_bucket_above_the_bound);
    each_type!(suite, "buckets of several tiles", buckets_of_several_tiles);
    suite.add("one tile is one bucket", one_tile);
    suite.add("stages are the paper's steps", stages);
    suite.add("no counts on the device", no_counts);
}

/// Sorts an index of the keys with timings, checks it, and returns the report.
fn sorted<K: TestKey>(gpu: &Gpu, keys: &[K]) -> Result<SortReport, libtest_mimic::Failed> {
    let (stream, options) = (gpu.stream()?, gpu.options());
    let config = SorterConfig::new().timings(true);
    let sorter = Sorter::new(&gpu.device, config)?;
    let input = stream.from_slice(keys)?;
    let mut index = stream.alloc::<u32>(keys.len())?;
    let mut scratch = Scratch::new::<K>(&stream, gpu.algorithm, keys.len(), Payload::Index, false)?;
    let (places, memory) = (index.slice_mut(), scratch.slice_mut());
    sorter.sort(
        &stream,
        Request::index(input.slice(), places),
        memory,
        &options,
    )?;
    let report = sorter.report(&stream, scratch.slice())?;
    let expected = gpu_rig::reference(keys, &options);
    same("index", &stream.to_vec(index.slice())?, &expected)?;
    Ok(report)
}

fn no_bucket_above_the_bound<K: TestKey>(gpu: &Gpu) -> Outcome {
    let tile = Sorter::tile_keys::<K>(gpu.algorithm, Payload::Index);
    for n in unless_quick(
        &[tile + 1, 3 * tile, 40 * tile + 77, 300 * tile][..],
        &[5 * tile + 77][..],
    ) {
        let buckets = bucket_count::<K>(*n as u64, Payload::Index);
        if buckets < 2 {
            return Err(format!("{n} keys are one bucket").into());
        }
        // Equal keys in every sublist, in one sublist, in turns, and in the order of the sublists.
        let staggered = |i: usize| K::from_raw((i / tile * 7919 % 64) as u64);
        let adverse: [Vec<K>; 3] = [
            (0..*n).map(staggered).collect(),
            (0..*n).map(|i| K::from_raw((i % tile) as u64)).collect(),
            (0..*n).map(|i| K::from_raw((i / tile) as u64)).collect(),
        ];
        let spreads = Distribution::ALL
            .iter()
            .map(|spread| spread.keys::<K>(*n, 3));
        for (i, keys) in spreads.chain(adverse).enumerate() {
            // In a quick run, and if buckets have several tiles, the types share the distributions.
            if (gpu_rig::quick() || *n > 100 * tile) && i % 6 != K::TYPE as usize {
                continue;
            }
            let report = sorted(gpu, &keys)?;
            let largest = report.largest_bucket;
            if largest * buckets > 2 * *n as u64 || largest * buckets < *n as u64 {
                return Err(format!(
                    "distribution {i} of {n} keys: the largest of {buckets} buckets has {largest}"
                )
                .into());
            }
        }
    }
    Ok(())
}

/// Two buckets are forced: with few tiles, which are split into parts, and with more than 32, which
/// are merged in pairs.
fn buckets_of_several_tiles<K: TestKey>(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig {
        large: true,
        ..Rig::new(&gpu.large, &stream)
    };
    let tile = Sorter::tile_keys::<K>(gpu.algorithm, Payload::U32);
    for (i, n) in unless_quick(
        &[
            3 * tile,
            7 * tile + 5,
            50 * tile + 1,
            70 * tile,
            150 * tile + 99,
        ][..],
        &[5 * tile + 5, 66 * tile + 3][..],
    )
    .iter()
    .enumerate()
    {
        let spreads = [
            Distribution::UniformBits,
            Distribution::Few(3),
            Distribution::Sorted,
            Distribution::Constant,
        ];
        for (j, spread) in spreads.into_iter().enumerate() {
            if gpu_rig::quick() && j != K::TYPE as usize % 4 {
                continue;
            }
            let forms = [
                Form::Keys,
                Form::KeysInPlace,
                Form::Pairs32,
                Form::Pairs64InPlace,
                Form::Index,
            ];
            let forms = unless_quick(&forms[..], &forms[K::TYPE as usize % 5..][..1]);
            let options = &gpu.orders()[(i + j) % 2];
            rig.check(&spread.keys::<K>(*n, 4), options, forms)?;
            let options = options.clone().bits(3..K::BITS - 5);
            rig.check(&spread.keys::<K>(*n, 5), &options, &forms[..1])?;
        }
    }
    Ok(())
}

fn one_tile(gpu: &Gpu) -> Outcome {
    let tile = Sorter::tile_keys::<u32>(gpu.algorithm, Payload::Index);
    for n in [1, 1000, tile] {
        let report = sorted(gpu, &Distribution::UniformBits.keys::<u32>(n, 6))?;
        let stages = report.stages.len();
        if bucket_count::<u32>(n as u64, Payload::Index) != 1
            || report.largest_bucket != n as u64
            || stages != 1
            || (report.algorithm, report.n) != ("bucket", n as u64)
        {
            return Err(format!("{n} keys: {report:?}").into());
        }
    }
    Ok(())
}

fn stages(gpu: &Gpu) -> Outcome {
    let n = 3 * Sorter::tile_keys::<u32>(gpu.algorithm, Payload::Index);
    let report = sorted(gpu, &Distribution::UniformBits.keys::<u32>(n, 7))?;
    let names: Vec<_> = report.stages.iter().map(|stage| stage.0).collect();
    let expected = [
        "steps 1 to 3: local sort",
        "step 4: sort of the samples",
        "step 5: global samples",
        "step 6: sample indexing",
        "step 7: prefix sum",
        "step 8: relocation",
        "step 9: bucket sort",
    ];
    if names != expected {
        return Err(format!("{names:?}").into());
    }
    Ok(())
}

fn no_counts(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let input = stream.from_slice(&[3_u32, 1, 2])?;
    let (mut output, count) = (stream.alloc::<u32>(3)?, stream.from_slice(&[2_u64])?);
    let mut scratch = Scratch::new::<u32>(&stream, gpu.algorithm, 3, Payload::None, false)?;
    let (keys, memory) = (output.slice_mut(), scratch.slice_mut());
    let result = gpu.sorter.sort(
        &stream,
        Request::keys(input.slice(), keys).count(count.slice()),
        memory,
        &gpu.options(),
    );
    expect_error!(result, gpusort::Error::Unsupported { .. });
    Ok(())
}
