//! Measures the sort of keys that lie on several GPUs, beside one GPU with all keys.
//!
//! `cargo bench -p radsweep-dist --features cuda --bench bench_sort_devices [-- [KEYS] [RUNS]
//! [driver|nccl|host|all] [DIFFERENT] [MIB]]`
//!
//! Arguments are told apart by their order: one can be left out with all that follow it.
//!
//! - `KEYS`: the keys on each GPU, 2^24 if not given. All GPUs that CUDA shows take part.
//! - `RUNS`: sorts of keys alone, and as many with values; 12 if not given, at least 4. The first
//!   quarter does not count.
//! - From device to device by copies of the driver, by NCCL or over the host; by all of them, one
//!   after the other, if not given.
//! - `DIFFERENT`: keys are random `u32` below this number, 2^32 if not given.
//! - `MIB`: what is exchanged at once is at least this, unless a rank has less
//!   (`MIN_PIECE_BYTES` of `src/device/tuning.rs` if not given).
//!
//! Keys are sorted alone and with a value of 4 bytes each. Times are medians in milliseconds, those
//! of the slowest GPU, from the call to its end on all devices. With several GPUs they have the
//! memory for the result in them, which one GPU gets before. Results are checked.

mod measured;

use gpu::{Buffer, Stream};
use gpusort::SortOptions;
use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
use measured::{Way, arguments, devices, median, ways};
use sap_dist::{
    DeviceSorter, DeviceTransport, Nccl, Peers, Staged, Threads, Transport, TransportError,
};
use std::error::Error;
use std::time::{Duration, Instant};

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

const LIMIT: Duration = Duration::from_secs(60);

fn keys_of(rank: usize, count: usize, different: u64) -> Vec<u32> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ rank as u64;
    let mut next = move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        ((state >> 32) % different) as u32
    };
    (0..count).map(|_| next()).collect()
}

/// Returns the median times to sort all keys on one device, alone and with values.
fn one_device(keys: &[Vec<u32>], runs: usize) -> Result<[f64; 2]> {
    let device = gpu::Device::first()?;
    let stream = Stream::new(&device)?;
    let sorter = Sorter::new(&device, SorterConfig::default())?;
    let n: usize = keys.iter().map(Vec::len).sum();
    let (mut input, mut output) = (stream.alloc::<u32>(n)?, stream.alloc::<u32>(n)?);
    let mut start = 0;
    for part in keys {
        stream.upload(input.range_mut(start..start + part.len())?, part)?;
        start += part.len();
    }
    let values = stream.alloc_zeroed::<u32>(n)?;
    let mut moved = stream.alloc::<u32>(n)?;
    let bytes = |payload| Sorter::scratch_bytes::<u32>(n as u64, payload);
    let bytes = bytes(Payload::None)?.max(bytes(Payload::U32)?);
    let mut scratch = stream.alloc::<u8>(bytes as usize)?;
    let mut times = [Vec::new(), Vec::new()];
    for run in 0..2 * runs {
        let start = Instant::now();
        let mut request = Request::keys(input.slice(), output.slice_mut());
        if run % 2 == 1 {
            request = request.values(values.slice(), moved.slice_mut());
        }
        sorter.sort(&stream, request, scratch.slice_mut(), &SortOptions::new())?;
        stream.synchronize()?;
        times[run % 2].push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(times.map(|times| median(times.split_at(runs / 4).1.to_vec())))
}

/// The value of a key.
fn value_of(key: u32) -> u32 {
    key.wrapping_mul(0x9e37_79b9)
}

/// Returns the median times of a rank, and the keys that it got: alone, and with values.
fn one_rank(
    mut transport: impl DeviceTransport,
    mut sorter: DeviceSorter,
    keys: &[u32],
    runs: usize,
) -> Result<([f64; 2], [Vec<u32>; 2])> {
    let stream = sorter.stream().clone();
    let values: Vec<u32> = keys.iter().copied().map(value_of).collect();
    let (keys, values) = (stream.from_slice(keys)?, stream.from_slice(&values)?);
    let mut times = [Vec::new(), Vec::new()];
    let mut alone = Vec::new();
    let mut sorted: Option<(Buffer<u32>, Option<Buffer<u32>>)> = None;
    for run in 0..2 * runs {
        // The memory of the last result is freed before, as a program would do.
        let last = sorted.take();
        if let Some((keys, None)) = last.filter(|_| run + 1 == 2 * runs) {
            alone = stream.to_vec(keys.slice())?;
        }
        stream.synchronize()?;
        transport.barrier()?;
        let start = Instant::now();
        sorted = Some(match run % 2 {
            0 => (sorter.sort_keys(&mut transport, keys.slice())?, None),
            _ => {
                let (keys, values) =
                    sorter.sort_pairs(&mut transport, keys.slice(), values.slice())?;
                (keys, Some(values))
            }
        });
        times[run % 2].push(start.elapsed().as_secs_f64() * 1e3);
    }
    let Some((keys, Some(values))) = sorted else {
        return Err("no run".into());
    };
    let (keys, values) = (stream.to_vec(keys.slice())?, stream.to_vec(values.slice())?);
    let is_with_its_key = |(&key, &value): (&u32, &u32)| value == value_of(key);
    if !keys.iter().zip(&values).all(is_with_its_key) {
        return Err("a value is not with its key".into());
    }
    let times = times.map(|times| median(times.split_at(runs / 4).1.to_vec()));
    Ok((times, [alone, keys]))
}

/// Returns the median times of all ranks, and checks the result.
fn all_ranks(way: Way, keys: &[Vec<u32>], runs: usize, piece: Option<u64>) -> Result<[f64; 2]> {
    let run = |threads: &mut Threads| {
        let rank = threads.rank();
        let mut sorter = DeviceSorter::new(rank)?;
        if let Some(mib) = piece {
            sorter = sorter.min_piece_bytes(mib << 20);
        }
        match way {
            Way::Driver => {
                let transport = Peers::new(threads, sorter.stream().device())?;
                one_rank(transport, sorter, &keys[rank], runs)
            }
            Way::Nccl => {
                let transport = Nccl::new(threads, sorter.stream(), LIMIT)?;
                one_rank(transport, sorter, &keys[rank], runs)
            }
            Way::Host => one_rank(Staged::new(threads), sorter, &keys[rank], runs),
        }
    };
    let results: Result<Vec<_>> = Threads::run(keys.len(), LIMIT, run)?.into_iter().collect();
    let results = results?;
    let sum = |keys: &mut dyn Iterator<Item = &u32>| keys.map(|&key| u64::from(key)).sum::<u64>();
    let given = sum(&mut keys.iter().flatten());
    for with_values in [0, 1] {
        let sorted = results.iter().flat_map(|(_, sorted)| &sorted[with_values]);
        if !sorted.clone().is_sorted() || sum(&mut sorted.clone()) != given {
            return Err("the keys of all ranks are not sorted".into());
        }
    }
    Ok([0, 1].map(|i| {
        results
            .iter()
            .map(|(times, _)| times[i])
            .fold(0.0, f64::max)
    }))
}

fn main() -> Result<()> {
    let mut arguments = arguments();
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |word| word.parse());
    let (count, runs) = (number(1 << 24)?, number(12)?.max(4));
    let ways = ways(arguments.next().as_deref())?;
    let mut number = || arguments.next().map(|word| word.parse::<u64>()).transpose();
    let (different, piece) = (number()?.unwrap_or(1 << 32), number()?);
    let Some(ranks) = devices() else {
        return Ok(());
    };
    let generate = |threads: &mut Threads| keys_of(threads.rank(), count, different.max(1));
    let keys = Threads::run::<Vec<u32>>(ranks, LIMIT, generate)?;
    println!("{count} keys a rank, {ranks} GPUs");
    let [one, with_values] = one_device(&keys[..1], runs)?;
    println!("{one:.3} ms keys, {with_values:.3} ms pairs: one GPU, the keys of a rank");
    let whole = one_device(&keys, runs)?;
    println!(
        "{:.3} ms keys, {:.3} ms pairs: one GPU, all keys",
        whole[0], whole[1]
    );
    for way in ways {
        match all_ranks(way, &keys, runs, piece) {
            Ok([alone, with_values]) => println!(
                "{alone:.3} ms keys, {with_values:.3} ms pairs: {ranks} GPUs by {way}, {:.2} and \
                 {:.2} times one GPU",
                whole[0] / alone,
                whole[1] / with_values
            ),
            Err(error) if error.is::<TransportError>() => {
                println!("not measured by {way}: {error}");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
