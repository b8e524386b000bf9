//! Measures sorts with and without the hint that the input is nearly sorted, on the first GPU.
//!
//! `cargo bench -p gpusort --features cuda --bench bench_nearly_sorted [-- n ...]`
//!
//! Times are between GPU events: the mean of 64 sorts in a row, and the last one of those with the
//! hint. Where attempts are in vain, that is the only one of the 64 that makes one. The first and
//! the last result are compared with the CPU.

#[path = "../tests/common/mod.rs"]
mod common;

use common::scrambled;
use gpu::{Buffer, Device, Stream};
use gpusort::cuda::{Knobs, Payload, Request, Sorter, SorterConfig};
use gpusort::{Algorithm, Key, SortOptions, cpu};
use std::error::Error;

type Outcome<T> = Result<T, Box<dyn Error>>;

const RUNS: usize = 64;
/// Sorts with the hint before those: until attempts in vain are as rare as they get.
const BEFORE: usize = 127;

fn main() -> Outcome<()> {
    let sizes: Vec<usize> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .map(|size| size.parse())
        .collect::<Result<_, _>>()?;
    let sizes = if sizes.is_empty() {
        vec![3 << 20, 6 << 20, 1 << 22, 1 << 24]
    } else {
        sizes
    };
    let device = Device::first()?;
    println!("{}", device.info().name);
    println!(
        "{:10} {:24} {:>10} {:>10} {:>10} {:>10} {:>7}  path",
        "elements", "keys", "n", "plain ms", "hinted ms", "last ms", "gain"
    );
    for n in sizes {
        for (name, keys) in [
            ("sorted", (0..n as u32).collect()),
            ("1 % moved up to 1000", moved(n, 100, 1000)),
            ("1 % swapped, up to 1000", swapped(n, n / 100, 1000)),
            ("0.1 % moved up to 1000", moved(n, 1000, 1000)),
            ("one far away", swapped(n, 1, n)),
            ("10 % moved up to 1000", moved(n, 10, 1000)),
            ("random", (0..n).map(|i| scrambled(i) as u32).collect()),
            (
                "16 values at random",
                (0..n).map(|i| scrambled(i) as u32 % 16).collect(),
            ),
        ] {
            let wide: Vec<u64> = keys.iter().map(|&key| wide(key)).collect();
            compare(&device, name, &keys, Payload::None)?;
            compare(&device, name, &keys, Payload::U32)?;
            compare(&device, name, &wide, Payload::U32)?;
        }
        let ms = tile_sorts(&device, n)?;
        println!(
            "{:10} {:24} {n:>10} {:>10} {:>10.4}",
            "u32 + u32",
            "two sorts of all tiles",
            "",
            2.0 * ms
        );
    }
    Ok(())
}

/// Returns the milliseconds in which the merge sort sorts all its tiles of 5,888 pairs, without the
/// merges. A method that sorts tiles twice, the second time shifted by half a tile, takes at least
/// twice as long.
fn tile_sorts(device: &Device, n: usize) -> Outcome<f64> {
    let stream = Stream::new(device)?;
    let config = SorterConfig::new().timings(true);
    let sorter = Sorter::new(device, config)?;
    let options = SortOptions::new().algorithm(Algorithm::SatishMerge);
    let bytes = Sorter::scratch_bytes_for::<u32>(options.algorithm, n as u64, Payload::U32)?;
    let keys = stream.from_slice(&moved(n, 100, 1000))?;
    let values = stream.alloc_zeroed::<u32>(n)?;
    let (mut keys_out, mut values_out) = (stream.alloc::<u32>(n)?, stream.alloc::<u32>(n)?);
    let mut scratch: Buffer<u8> = stream.alloc(bytes as usize)?;
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let (k, v) = (keys_out.slice_mut(), values_out.slice_mut());
        let memory = scratch.slice_mut();
        sorter.sort(
            &stream,
            Request::keys(keys.slice(), k).values(values.slice(), v),
            memory,
            &options,
        )?;
        times.push(sorter.report(&stream, scratch.slice())?.stages[0].1);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[RUNS / 2])
}

/// Returns a key with other digits in all its bits, in the same order.
fn wide(key: u32) -> u64 {
    u64::from(key) << 32 | scrambled(key as usize) >> 32
}

/// Compares sorts of `keys` with and without the hint. `payload` is none or values of u32.
fn compare<K: Key>(device: &Device, name: &str, keys: &[K], payload: Payload) -> Outcome<()> {
    let (stream, n) = (Stream::new(device)?, keys.len());
    let config = SorterConfig::new().knobs(Knobs {
        adaptive_from: Some(0),
        ..Knobs::default()
    });
    let sorter = Sorter::new(device, config)?;
    let bytes = Sorter::scratch_bytes::<K>(n as u64, payload)? as usize;
    let (mut expected, mut moved) = (keys.to_vec(), (0..n as u32).collect::<Vec<_>>());
    let (input, values) = (stream.from_slice(keys)?, stream.from_slice(&moved)?);
    let (mut keys_out, mut values_out) = (stream.alloc::<K>(n)?, stream.alloc::<u32>(n)?);
    let mut scratch: Buffer<u8> = stream.alloc(bytes)?;
    cpu::sort_pairs(&mut expected, &mut moved, &SortOptions::new())?;
    let mut path = String::new();
    let mut run = |options: &SortOptions, sorts: usize| -> Outcome<[f64; 2]> {
        let mut times = Vec::new();
        for i in 0..sorts {
            stream.fill_bytes(keys_out.slice_mut(), 0xee)?;
            stream.fill_bytes(values_out.slice_mut(), 0xee)?;
            let start = stream.record()?;
            let mut request = Request::keys(input.slice(), keys_out.slice_mut());
            if payload == Payload::U32 {
                request = request.values(values.slice(), values_out.slice_mut());
            }
            sorter.sort(&stream, request, scratch.slice_mut(), options)?;
            let end = stream.record()?;
            end.synchronize()?;
            times.push(f64::from(start.elapsed_ms(&end)?));
            if i > 0 && i + 1 < sorts {
                continue;
            }
            let keys = stream.to_vec(keys_out.slice())?;
            let sorted = bytemuck::cast_slice::<K, u8>(&keys) == bytemuck::cast_slice(&expected);
            if !sorted || payload == Payload::U32 && stream.to_vec(values_out.slice())? != moved {
                return Err(format!("{name}, {n}: wrong").into());
            }
            if i == 0 {
                path = match sorter.report(&stream, scratch.slice())?.displaced {
                    Some(count) => format!("{count} taken out"),
                    None => "Onesweep".into(),
                };
            }
        }
        let last = &times[sorts - RUNS..];
        Ok([last.iter().sum::<f64>() / RUNS as f64, last[RUNS - 1]])
    };
    let options = SortOptions::new();
    run(&options, RUNS)?; // loads kernels, also those that sorts with the hint share
    let [plain, _] = run(&options, RUNS)?;
    let [hinted, last] = run(&options.nearly_sorted(), BEFORE + RUNS)?;
    let elements = match (payload, size_of::<K>()) {
        (Payload::None, _) => "u32",
        (_, 4) => "u32 + u32",
        _ => "u64 + u32",
    };
    println!(
        "{{\"bench\":\"nearly_sorted\",\"elements\":\"{elements}\",\"what\":\"{name}\",\"n\":{n},\"plain_ms\":{plain:.6},\"hinted_ms\":{hinted:.6},\"last_ms\":{last:.6}}}"
    );
    println!(
        "{elements:10} {name:24} {n:>10} {plain:>10.4} {hinted:>10.4} {last:>10.4} {:>7.2}  {path}",
        plain / hinted
    );
    Ok(())
}

/// Returns sorted keys of which one in `one_in` is moved by up to `max` positions.
fn moved(n: usize, one_in: u64, max: i64) -> Vec<u32> {
    let mut ranks: Vec<(i64, u32)> = (0..n)
        .map(|i| {
            let far = (scrambled(2 * i) % (2 * max as u64 + 1)) as i64 - max;
            let by = if scrambled(2 * i + 1).is_multiple_of(one_in) {
                far
            } else {
                0
            };
            (2 * (i as i64 + by) + i64::from(by > 0), i as u32)
        })
        .collect();
    ranks.sort();
    ranks.into_iter().map(|rank| rank.1).collect()
}

fn swapped(n: usize, count: usize, max: usize) -> Vec<u32> {
    let mut keys: Vec<u32> = (0..n as u32).collect();
    for k in 0..count {
        let (i, by) = (
            scrambled(k) as usize % n,
            scrambled(k + n) as usize % max + 1,
        );
        keys.swap(i, (i + by) % n);
    }
    keys
}
