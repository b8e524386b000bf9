//! Trials of small inputs, which take one launch.

use crate::common::{Distribution, TestKey, around};
use crate::each_type;
use crate::gpu_rig::{Form, Gpu, Outcome, Rig, unless_quick};
use crate::suite::{Suite, all_distributions, check_counted};
use gpusort::cuda::{Knobs, Payload, Request, Sorter, SorterConfig};

/// Adds the trials.
pub fn add(suite: &mut Suite) {
    each_type!(suite, "launch shapes of small inputs", launch_shapes);
    each_type!(suite, "one block", one_block);
    each_type!(
        suite,
        "the launches of large inputs for small ones",
        large_launches
    );
    suite.add("a block for each highest digit", digit_blocks);
    for (name, key_of) in SPREADS {
        let name = format!("a block for each segment: {name}");
        suite.add(name, move |gpu| segments(gpu, key_of));
    }
    suite.add("a block for each segment: full ones", full_segments);
    suite.add("uneven ranges of small inputs", uneven_ranges);
    suite.add("one launch for small inputs", one_launch);
}

/// Returns a sorter that always uses the launches of large inputs.
fn large_only(gpu: &Gpu) -> Result<Sorter, gpusort::Error> {
    let config = SorterConfig::new().knobs(Knobs {
        no_small: true,
        ..Knobs::default()
    });
    Sorter::new(&gpu.device, config)
}

/// Sorts keys of which a block sorts those of one highest digit: evenly spread, or so that many
/// have the same next bits; and with as many keys of one digit as a block sorts, and one more.
fn digit_blocks(gpu: &Gpu) -> Outcome {
    let (stream, sorter) = (gpu.stream()?, large_only(gpu)?);
    let rig = Rig::new(&sorter, &stream);
    let n = unless_quick(1_900_000, 9_000);
    for mask in [
        u64::MAX,
        0xff00_00ff_ff00_00ff,
        0x1ff0_000f_1ff0_000f,
        0xfffc_0000,
    ] {
        let words = Distribution::UniformBits.keys::<u64>(n, 26);
        let wide: Vec<u64> = words.iter().map(|word| word & mask).collect();
        let narrow: Vec<u32> = wide.iter().map(|&word| word as u32).collect();
        let floats: Vec<f32> = narrow.iter().map(|&word| f32::from_bits(word)).collect();
        rig.check_all(&wide, &gpu.options())?;
        rig.check_all(&narrow, &gpu.orders()[1])?;
        rig.check_all(&narrow, &gpu.options().bits(3..29))?;
        rig.check_all(&floats, &gpu.options())?;
    }
    let forms = [Form::Keys, Form::KeysInPlace, Form::Pairs32, Form::Index];
    for most in [8_192, 12_288, 16_384] {
        for count in [most, most + 1] {
            let mut keys = Distribution::UniformBits.keys::<u32>(count + 300, 27);
            for (i, key) in keys.iter_mut().enumerate() {
                if (150..150 + count).contains(&i) {
                    *key &= 0x00ff_ffff;
                } else {
                    *key |= 0x0100_0000;
                }
            }
            rig.check(&keys, &gpu.options(), &forms)?;
        }
    }
    Ok(())
}

/// Makes a key of its position and an evenly spread one.
type KeyOf = fn(usize, u64) -> u64;

/// How keys are spread over segments: also so that segments are seen to be too large, or are not
/// seen to be. Of two keys that begin at 16 bytes, only the first can be in the sample.
const SPREADS: [(&str, KeyOf); 5] = [
    ("even", |_, key| key),
    ("equal", |_, key| key & 0xffff_0000_000f_0000),
    ("crowded", |_, key| key & 0x80ff_ffff_ffff_ffff),
    ("a large one of even positions", |i, key| {
        key >> (16 * (1 - i % 2))
    }),
    ("a large one of odd positions", |i, key| {
        key >> (16 * (i % 2))
    }),
];

/// Returns a sorter that always divides keys into segments, for each of which there is a block.
fn segment_sorter(gpu: &Gpu) -> Result<Sorter, gpusort::Error> {
    let config = SorterConfig::new().knobs(Knobs {
        no_small: true,
        segments: true,
        ..Knobs::default()
    });
    Sorter::new(&gpu.device, config)
}

/// Sorts keys in segments.
fn segments(gpu: &Gpu, key_of: KeyOf) -> Outcome {
    let (stream, sorter) = (gpu.stream()?, segment_sorter(gpu)?);
    let rig = Rig::new(&sorter, &stream);
    for n in unless_quick(&[100_000, 3_500_000][..], &[30_000]) {
        let keys = Distribution::UniformBits.keys::<u64>(*n, 28).into_iter();
        let keys: Vec<u64> = keys.enumerate().map(|(i, key)| key_of(i, key)).collect();
        let floats: Vec<f64> = keys.iter().map(|&key| f64::from_bits(key)).collect();
        rig.check_all(&keys, &gpu.options())?;
        rig.check_all(&keys, &gpu.orders()[1])?;
        rig.check_all(&keys, &gpu.options().bits(3..62))?;
        rig.check_all(&keys, &gpu.options().bits(8..64))?;
        rig.check_all(&floats, &gpu.options())?;
        let narrow: Vec<u32> = keys.iter().map(|key| (key >> 32) as u32).collect();
        let floats: Vec<f32> = narrow.iter().map(|&key| f32::from_bits(key)).collect();
        rig.check_all(&narrow, &gpu.options())?;
        rig.check_all(&narrow, &gpu.orders()[1])?;
        rig.check_all(&narrow, &gpu.options().bits(3..30))?;
        rig.check_all(&narrow, &gpu.options().bits(8..32))?;
        rig.check_all(&floats, &gpu.options())?;
    }
    Ok(())
}

/// Sorts keys of 32 bits of which those of a segment have the same next bits, so that a block sorts
/// by digits; as many keys of one segment as a block sorts with values, and one more; and counts on
/// the device.
fn full_segments(gpu: &Gpu) -> Outcome {
    let (stream, sorter) = (gpu.stream()?, segment_sorter(gpu)?);
    let rig = Rig::new(&sorter, &stream);
    for (n, segment_bits) in unless_quick(&[(30_000, 8), (3_500_000, 12)][..], &[(30_000, 8)]) {
        let words = Distribution::UniformBits.keys::<u32>(*n, 29);
        let shift = 32 - segment_bits;
        let same = words.iter().map(|word| {
            let segment = word >> shift;
            segment << shift | (segment & 15) << 16 | word & 15
        });
        rig.check_all(&same.collect::<Vec<u32>>(), &gpu.options())?;
        let most = 1 << segment_bits;
        for count in [most, most + 1] {
            let mut keys = words.clone();
            for (i, key) in keys.iter_mut().enumerate() {
                let rest = *key & (u32::MAX >> segment_bits);
                if i < count {
                    *key = 5 << shift | rest;
                } else if *key >> shift == 5 {
                    *key = 6 << shift | rest;
                }
            }
            rig.check_all(&keys, &gpu.options())?;
        }
    }
    let divided = Gpu {
        sorter: sorter.clone(),
        ..gpu.clone()
    };
    let keys = Distribution::UniformBits.keys::<u32>(30_000, 30);
    let counts = [0, 1, 999, 29_999, 30_000];
    check_counted(&divided, &keys, &gpu.options(), &counts)
}

/// Sorts sizes around those at which the launch changes its shape.
fn launch_shapes<K: TestKey>(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    let powers: &[usize] = unless_quick(
        &[
            1 << 8,
            1 << 9,
            1 << 11,
            3 << 10,
            1 << 12,
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

/// Sorts as many keys as one block sorts, and other numbers, with which its warps have uneven runs
/// to merge.
fn one_block<K: TestKey>(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let rig = Rig::new(&gpu.sorter, &stream);
    all_distributions::<K>(gpu, &rig, unless_quick(4_096, 1_100), Form::ALL)?;
    // A bin with as many keys as are compared at most, and with one more, which has all merged.
    for most in [32, 33] {
        let is_there = |i: usize| i.is_multiple_of(100) && i / 100 < most - 1;
        let bin = |i: usize| if is_there(i) { 7 } else { i as u64 };
        let key = |i: usize| K::from_raw((bin(i) << (K::BITS - 12)) + i as u64 % 3);
        let keys: Vec<K> = (0..4_096).map(key).collect();
        rig.check_all(&keys, &gpu.options())?;
    }
    for n in [1, 2, 31, 256, 257, 700, 1_793, 3_333, 4_095] {
        let keys = Distribution::Few(3).keys::<K>(n, 25);
        rig.check_all(&keys, &gpu.options())?;
    }
    Ok(())
}

/// Nearly all keys are in a small part of the range: more than a block's capacity, unless they
/// differ in few digits.
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

/// The stages show that small inputs take one launch.
fn one_launch(gpu: &Gpu) -> Outcome {
    let stream = gpu.stream()?;
    let config = SorterConfig::new().timings(true);
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
        sorter.sort(
            &stream,
            Request::keys(keys.slice(), to),
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
