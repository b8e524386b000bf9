//! Measures sorts of pairs of `u32` with and without the hint that they are nearly sorted, on the
//! first GPU.
//!
//! `cargo bench -p gpusort --features cuda --bench bench_nearly_sorted [-- n ...]`
//!
//! Times are medians between GPU events; every result is compared with the CPU.

#[path = "../tests/common/mod.rs"]
mod common;

use common::scrambled;
use gpu::{Buffer, Device, Stream};
use gpusort::cuda::{Knobs, Payload, Request, Sorter, SorterConfig};
use gpusort::{Algorithm, SortOptions, cpu};
use std::error::Error;

type Outcome<T> = Result<T, Box<dyn Error>>;

const RUNS: usize = 15;

fn main() -> Outcome<()> {
    let sizes: Vec<usize> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .map(|size| size.parse())
        .collect::<Result<_, _>>()?;
    let sizes = if sizes.is_empty() {
        vec![1 << 20, 1 << 22, 1 << 24, 1 << 26]
    } else {
        sizes
    };
    let device = Device::first()?;
    println!("{}", device.info().name);
    println!(
        "{:24} {:>10} {:>10} {:>10} {:>7}  path",
        "keys", "n", "plain ms", "hinted ms", "gain"
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
        ] {
            compare(&device, name, &keys)?;
        }
        let ms = tile_sorts(&device, n)?;
        println!(
            "{:24} {n:>10} {:>10} {:>10.4}",
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

fn compare(device: &Device, name: &str, keys: &[u32]) -> Outcome<()> {
    let (stream, n) = (Stream::new(device)?, keys.len());
    let config = SorterConfig::new().knobs(Knobs {
        adaptive_from: Some(0),
        ..Knobs::default()
    });
    let sorter = Sorter::new(device, config)?;
    let bytes = Sorter::scratch_bytes::<u32>(n as u64, Payload::U32)? as usize;
    let (input, values) = (
        stream.from_slice(keys)?,
        stream.from_slice(&(0..n as u32).collect::<Vec<_>>())?,
    );
    let (mut keys_out, mut values_out) = (stream.alloc::<u32>(n)?, stream.alloc::<u32>(n)?);
    let mut scratch: Buffer<u8> = stream.alloc(bytes)?;
    let (mut expected, mut moved) = (keys.to_vec(), (0..n as u32).collect::<Vec<_>>());
    cpu::sort_pairs(&mut expected, &mut moved, &SortOptions::new())?;
    let mut times = [0.0; 2];
    let mut path = String::new();
    for (time, options) in times
        .iter_mut()
        .zip([SortOptions::new(), SortOptions::new().nearly_sorted()])
    {
        let mut runs = Vec::new();
        for _ in 0..RUNS {
            stream.fill_bytes(keys_out.slice_mut(), 0xee)?;
            stream.fill_bytes(values_out.slice_mut(), 0xee)?;
            let start = stream.record()?;
            let (k, v) = (keys_out.slice_mut(), values_out.slice_mut());
            sorter.sort(
                &stream,
                Request::keys(input.slice(), k).values(values.slice(), v),
                scratch.slice_mut(),
                &options,
            )?;
            let end = stream.record()?;
            end.synchronize()?;
            runs.push(f64::from(start.elapsed_ms(&end)?));
        }
        runs.sort_by(f64::total_cmp);
        *time = runs[RUNS / 2];
        if stream.to_vec(keys_out.slice())? != expected
            || stream.to_vec(values_out.slice())? != moved
        {
            return Err(format!("{name}, {n}: wrong").into());
        }
        path = match sorter.report(&stream, scratch.slice())?.displaced {
            Some(count) => format!("{count} taken out"),
            None => "Onesweep".into(),
        };
    }
    let [plain, hinted] = times;
    println!(
        "{{\"bench\":\"nearly_sorted\",\"what\":\"{name}\",\"n\":{n},\"plain_ms\":{plain:.6},\"hinted_ms\":{hinted:.6}}}"
    );
    println!(
        "{name:24} {n:>10} {plain:>10.4} {hinted:>10.4} {:>7.2}  {path}",
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
