//! Small inputs in one launch, and several arrays side by side.

use crate::common::{Distribution, TestKey, around, by_index};
use crate::gpu_rig::{
    Form, Gpu, Guarded, Outcome, Rig, quick, reference, same, text, unless_quick,
};
use crate::suite::all_distributions;
use crate::{each_type, expect_error, suite::Suite};
use gpu::Stream;
use gpusort::cuda::{Payload, Sorter, SorterConfig};
use gpusort::{Error, SortOptions};

/// Adds the trials.
pub fn add(suite: &mut Suite) {
    each_type!(suite, "launch shapes of small inputs", launch_shapes);
    each_type!(
        suite,
        "the launches of large inputs for small ones",
        large_launches
    );
    each_type!(suite, "arrays side by side", side_by_side);
    suite.add("uneven ranges of small inputs", uneven_ranges);
    suite.add("one launch for small inputs", one_launch);
    suite.add(
        "arrays of different length or overlapping are errors",
        wrong_arrays,
    );
}

/// A sorter that takes the launches of large inputs always.
fn large_only(gpu: &Gpu) -> Result<Sorter, gpusort::Error> {
    let config = SorterConfig {
        no_small: true,
        ..SorterConfig::default()
    };
    Sorter::new(&gpu.device, config)
}

/// Sizes around those at which the launch changes its shape.
fn launch_shapes<K: TestKey>(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    let powers: &[usize] = unless_quick(
        &[
            1 << 8,
            1 << 9,
            1 << 11,
            1 << 13,
            1 << 15,
            1 << 17,
            1 << 18,
            1 << 19,
            3 << 18,
        ],
        &[1 << 8, 1 << 11, 1 << 12, 1 << 14],
    );
    let forms = [
        Form::Pairs32InPlace,
        Form::Pairs64,
        Form::Index,
        Form::KeysInPlace,
    ];
    for (i, n) in around(powers).into_iter().enumerate() {
        let forms = unless_quick(&forms[..], &forms[i % forms.len()..][..1]);
        let keys = Distribution::UniformBits.keys::<K>(n, 21);
        rig.check(&keys, &gpu.orders()[i % 2], forms)?;
    }
    Ok(())
}

/// All keys in a small part of the range but for a few: more than a block has room for, unless they differ in few digits.
fn uneven_ranges(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    for n in unless_quick(
        &[3_000, 20_000, 300_000, 1_000_000][..],
        &[3_000, 12_000][..],
    )
    .iter()
    .copied()
    {
        for few in [0, 1, n / 100] {
            let lone = |i: usize| few > 0 && i % (n / few) == n / few / 2;
            let ints: Vec<u32> = Distribution::UniformBits.keys(n, 22);
            let ints: Vec<u32> = (0..n)
                .map(|i| if lone(i) { ints[i] } else { ints[i] >> 12 })
                .collect();
            let floats: Vec<f32> = Distribution::Uniform.keys(n, 23);
            let floats: Vec<f32> = (0..n)
                .map(|i| if lone(i) { floats[i] * 1e20 } else { floats[i] })
                .collect();
            let infinite: Vec<f64> = (0..n)
                .map(|i| {
                    if lone(i) {
                        f64::NEG_INFINITY
                    } else {
                        f64::from(floats[i])
                    }
                })
                .collect();
            for options in gpu.orders() {
                rig.check(&ints, &options, &[Form::Pairs32, Form::KeysInPlace])?;
                rig.check(&floats, &options, &[Form::Pairs32InPlace, Form::Index])?;
                rig.check(&infinite, &options, &[Form::Pairs64InPlace])?;
            }
        }
    }
    Ok(())
}

/// As the stages tell; grids of `tests/cuda_sort.rs` apart.
fn one_launch(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let config = SorterConfig {
        timings: true,
        ..SorterConfig::default()
    };
    let sorter = Sorter::new(&gpu.device, config)?;
    for (n, expected) in [
        (1, &["one block"][..]),
        (1_000, &["one block"]),
        (5_000, &["one grid"]),
    ] {
        let keys = stream.from_slice(&Distribution::UniformBits.keys::<u32>(n, 26))?;
        let mut output = stream.alloc::<u32>(n)?;
        let bytes = Sorter::scratch_bytes_for::<u32>(gpu.algorithm, n as u64, Payload::None)?;
        let mut scratch = stream.alloc::<u8>(bytes as usize)?;
        let to = output.slice_mut();
        sorter.sort_keys(
            &stream,
            keys.slice(),
            to,
            scratch.slice_mut(),
            &gpu.options(),
        )?;
        let report = sorter.report(&stream, scratch.slice())?;
        let stages: Vec<_> = report.stages.iter().map(|stage| stage.0).collect();
        if stages != expected {
            return Err(format!("{n} keys: {stages:?}, not {expected:?}").into());
        }
    }
    Ok(())
}

fn large_launches<K: TestKey>(gpu: &Gpu) -> Outcome {
    let (stream, sorter) = (gpu.stream()?, large_only(gpu)?);
    let rig = Rig::new(&sorter, &stream);
    all_distributions::<K>(gpu, &rig, unless_quick(50_000, 7_700), Form::ALL)?;
    for n in [1, 2, 31, 257, 1000] {
        let keys = Distribution::Few(3).keys::<K>(n, 24);
        rig.check_all(&keys, &gpu.options())?;
    }
    Ok(())
}

fn side_by_side<K: TestKey>(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let large = large_only(gpu)?;
    let sizes: &[usize] = unless_quick(
        &[0, 1, 300, 1_000, 5_000, 40_001, 200_000, 1_300_000],
        &[0, 1, 1_000, 2_500, 9_000],
    );
    for (i, &n) in sizes.iter().enumerate() {
        for (j, sorter) in [&gpu.sorter, &large].into_iter().enumerate() {
            if quick() && (i + j) % 2 == K::TYPE as usize % 2 {
                continue;
            }
            let options = &gpu.orders()[(i + j) % 2];
            let case = |failed| format!("{n} keys, large launches {j}: {}", text(&failed));
            check_axes::<K, 1>(sorter, &stream, n, options).map_err(case)?;
            check_axes::<K, 2>(sorter, &stream, n, options).map_err(case)?;
            check_axes::<K, 3>(sorter, &stream, n, options).map_err(case)?;
        }
    }
    Ok(())
}

/// As the single sorts, which the other trials check.
fn check_axes<K: TestKey, const N: usize>(
    sorter: &Sorter,
    stream: &Stream,
    n: usize,
    options: &SortOptions,
) -> Outcome {
    let spreads = [
        Distribution::UniformBits,
        Distribution::Sorted,
        Distribution::Zipf,
    ];
    let keys: [Vec<K>; N] = std::array::from_fn(|axis| spreads[axis].keys::<K>(n, axis as u64));
    let inputs = keys.each_ref().map(|keys| Guarded::new(stream, keys));
    let inputs = inputs.into_iter().collect::<Result<Vec<_>, _>>()?;
    let slices = std::array::from_fn(|axis| inputs[axis].slice());
    let expected = keys.each_ref().map(|keys| reference(keys, options));
    for with_keys in [false, true] {
        let poisoned = || {
            (0..N)
                .map(|_| Guarded::<u32>::poisoned(stream, n))
                .collect::<Result<Vec<_>, _>>()
        };
        let mut index = poisoned()?;
        let mut sorted = (0..N)
            .map(|_| Guarded::<K>::poisoned(stream, n))
            .collect::<Result<Vec<_>, _>>()?;
        let bytes =
            Sorter::scratch_bytes_axes::<K, N>(options.algorithm, n as u64, Payload::Index)?;
        let mut scratch = stream.alloc::<u8>(bytes as usize)?;
        stream.fill_bytes(scratch.slice_mut(), 0xc3)?;
        let places = array(index.iter_mut().map(Guarded::slice_mut));
        let keys_out = with_keys.then(|| array(sorted.iter_mut().map(Guarded::slice_mut)));
        sorter.sort_index_axes::<K, N>(
            stream,
            slices,
            keys_out,
            places,
            scratch.slice_mut(),
            options,
        )?;
        for axis in 0..N {
            same(
                "index",
                &index[axis].read(stream, "index")?,
                &expected[axis],
            )?;
            if with_keys {
                same(
                    "keys",
                    &sorted[axis].read(stream, "keys_out")?,
                    &by_index(&keys[axis], &expected[axis]),
                )?;
            }
        }
    }
    let mut sorted = (0..N)
        .map(|_| Guarded::<K>::poisoned(stream, n))
        .collect::<Result<Vec<_>, _>>()?;
    let bytes = Sorter::scratch_bytes_axes::<K, N>(options.algorithm, n as u64, Payload::None)?;
    let mut scratch = stream.alloc::<u8>(bytes as usize)?;
    stream.fill_bytes(scratch.slice_mut(), 0xc3)?;
    let outputs = array(sorted.iter_mut().map(Guarded::slice_mut));
    sorter.sort_keys_axes::<K, N>(stream, slices, outputs, scratch.slice_mut(), options)?;
    for axis in 0..N {
        same(
            "keys",
            &sorted[axis].read(stream, "output")?,
            &by_index(&keys[axis], &expected[axis]),
        )?;
        same("input", &inputs[axis].read(stream, "input")?, &keys[axis])?;
    }
    if sorter.report(stream, scratch.slice())?.n != n as u64 {
        return Err("the report has another number of keys".into());
    }
    Ok(())
}

/// As many as there are.
fn array<T, const N: usize>(mut items: impl Iterator<Item = T>) -> [T; N] {
    std::array::from_fn(|_| items.next().expect("one for each axis"))
}

fn wrong_arrays(gpu: &Gpu) -> Outcome {
    let (stream, sorter, options) = (gpu.stream()?, &gpu.sorter, gpu.options());
    let keys = stream.from_slice(&Distribution::UniformBits.keys::<u32>(1000, 25))?;
    let (mut a, mut b) = (stream.alloc::<u32>(1000)?, stream.alloc::<u32>(1000)?);
    let bytes = |n| Sorter::scratch_bytes_axes::<u32, 2>(options.algorithm, n, Payload::None);
    let mut scratch = stream.alloc::<u8>(bytes(1000)? as usize)?;
    let both = [keys.slice(), keys.slice()];

    let uneven = [keys.slice(), keys.range(..999)?];
    let outputs = [a.slice_mut(), b.slice_mut()];
    let result = sorter.sort_keys_axes(&stream, uneven, outputs, scratch.slice_mut(), &options);
    expect_error!(
        result,
        Error::LengthMismatch {
            keys: 1000,
            values: 999
        }
    );

    let outputs = [a.slice_mut(), b.range_mut(..7)?];
    let result = sorter.sort_keys_axes(&stream, both, outputs, scratch.slice_mut(), &options);
    expect_error!(
        result,
        Error::LengthMismatch {
            keys: 1000,
            values: 7
        }
    );

    // SAFETY: the same memory twice on purpose; no sort may use it.
    let twice = unsafe { gpu::SliceMut::<u32>::from_raw(a.slice().ptr(), 1000) };
    let outputs = [a.slice_mut(), twice];
    let result = sorter.sort_keys_axes(&stream, both, outputs, scratch.slice_mut(), &options);
    expect_error!(
        result,
        Error::Overlap {
            first: "output",
            second: "output"
        }
    );

    let one = Sorter::scratch_bytes::<u32>(1000, Payload::None)?;
    let less = scratch.range_mut(..one as usize)?;
    let outputs = [a.slice_mut(), b.slice_mut()];
    let result = sorter.sort_keys_axes(&stream, both, outputs, less, &options);
    expect_error!(result, Error::ScratchTooSmall { .. });

    let outputs = [a.slice_mut(), b.slice_mut()];
    sorter.sort_keys_axes(&stream, both, outputs, scratch.slice_mut(), &options)?;
    same(
        "both",
        &stream.to_vec(a.slice())?,
        &stream.to_vec(b.slice())?,
    )
}
