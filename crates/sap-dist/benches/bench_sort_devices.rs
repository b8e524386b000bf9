//! Measures the sort of keys that lie on several GPUs, beside one GPU with all keys.
//!
//! `cargo bench -p radsweep-dist --features cuda --bench bench_sort_devices [-- [KEYS OF A RANK]
//! [RUNS] [driver|nccl|host|all] [DIFFERENT KEYS] [MIB OF A PIECE]]`
//!
//! Arguments are told apart by their order: one can be left out with all that follow it.
//!
//! It measures all ways from device to device, one after the other, if none is chosen.
//!
//! Keys are random `u32`, of all or only of the first so many, alone and with a value of 4 bytes
//! each. Times are medians in milliseconds, from the call to its end on all devices.

mod measured;

use gpu::{Buffer, Stream};
use gpusort::SortOptions;
use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
use measured::{Way, arguments, median, ways};
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
    let bytes = Sorter::scratch_bytes::<u32>(n as u64, Payload::U32)?;
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

/// Returns the median times of a rank, its number of sorted keys, and the first and last of them.
fn one_rank(
    mut transport: impl DeviceTransport,
    mut sorter: DeviceSorter,
    keys: &[u32],
    runs: usize,
) -> Result<([f64; 2], Vec<u32>)> {
    let stream = sorter.stream().clone();
    let keys = stream.from_slice(keys)?;
    let values = stream.alloc_zeroed::<u32>(keys.len())?;
    let mut times = [Vec::new(), Vec::new()];
    let mut sorted: Option<Buffer<u32>> = None;
    for run in 0..2 * runs {
        // The memory of the last result is freed before, as a program would do.
        drop(sorted.take());
        stream.synchronize()?;
        transport.barrier()?;
        let start = Instant::now();
        sorted = Some(match run % 2 {
            0 => sorter.sort_keys(&mut transport, keys.slice())?,
            _ => {
                let pairs = sorter.sort_pairs(&mut transport, keys.slice(), values.slice())?;
                pairs.0
            }
        });
        times[run % 2].push(start.elapsed().as_secs_f64() * 1e3);
    }
    let sorted = sorted.ok_or("no run")?;
    Ok((
        times.map(|times| median(times.split_at(runs / 4).1.to_vec())),
        stream.to_vec(sorted.slice())?,
    ))
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
    let sorted = results.iter().flat_map(|(_, sorted)| sorted);
    let sum = |keys: &mut dyn Iterator<Item = &u32>| keys.map(|&key| u64::from(key)).sum::<u64>();
    if !sorted.clone().is_sorted() || sum(&mut sorted.clone()) != sum(&mut keys.iter().flatten()) {
        return Err("the keys of all ranks are not sorted".into());
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
    let ranks = match gpu::Device::count() {
        Ok(ranks) => ranks,
        Err(error) => {
            println!("nothing to measure: {error}");
            return Ok(());
        }
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
