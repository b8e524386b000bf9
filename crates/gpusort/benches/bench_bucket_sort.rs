//! Measures Bucket Sort on the first GPU.
//!
//! `cargo bench -p gpusort --features cuda --bench bench_bucket_sort [-- [--n 33554432] [--runs 9]
//! [--sizes 1048576,67108864]]`
//!
//! It prints three tables: `n` keys (u32) of many distributions, which take the same time according
//! to the paper, with the largest bucket as a multiple of the average; the steps of a sort; and
//! uniform keys by type and payload. Times are medians between GPU events after a warm-up. Results
//! are checked to be in order here, and compared with the CPU by the tests.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Distribution, TestKey, scrambled};
use gpu::{Device, Stream};
use gpusort::cuda::{Payload, Request, Sorter, SorterConfig, bucket_count};
use gpusort::{Algorithm, SortOptions, SortReport};
use rayon::prelude::*;
use std::error::Error;

type Outcome<T> = Result<T, Box<dyn Error>>;

const WARM_UP: usize = 2;

const DISTRIBUTIONS: &[Distribution] = &[
    Distribution::UniformBits,
    Distribution::Gaussian,
    Distribution::Sorted,
    Distribution::Reverse,
    Distribution::Constant,
    Distribution::Bucket,
    Distribution::Staggered,
    Distribution::Zipf,
    Distribution::Few(16),
    Distribution::And(3),
    Distribution::TwoRuns,
    Distribution::PipeOrgan,
];

fn main() -> Outcome<()> {
    let (mut n, mut runs, mut sizes) = (1 << 25, 9, vec![1 << 20, 1 << 24, 1 << 26]);
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(word) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--n" => n = value.parse()?,
            "--runs" => runs = value.parse::<usize>()?.max(1),
            "--sizes" => sizes = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
            _ => return Err(format!("unknown argument {word}").into()),
        }
    }
    let device = Device::first()?;
    let bench = Bench {
        stream: Stream::new(&device)?,
        sorter: Sorter::new(&device, SorterConfig::default())?,
        timed: Sorter::new(&device, SorterConfig::new().timings(true))?,
        runs,
    };

    println!(
        "{n} u32 keys\n{:24} {:>9} {:>8} {:>14}",
        "distribution", "ms", "G/s", "largest bucket"
    );
    let all: Vec<Vec<u32>> = DISTRIBUTIONS
        .par_iter()
        .map(|distribution| distribution.keys(n, 1))
        .collect();
    for (distribution, keys) in DISTRIBUTIONS.iter().zip(&all) {
        let (ms, report) = bench.sort(keys, Payload::None)?;
        let buckets = bucket_count::<u32>(n as u64, Payload::None);
        let largest = report.largest_bucket as f64 * buckets as f64 / n as f64;
        let name = format!("{distribution:?}");
        println!("{name:24} {ms:9.4} {:8.2} {largest:14.4}", rate(n, ms));
    }
    // The steps show where a difference comes from.
    let stages = |keys: &[u32]| Ok::<_, Box<dyn Error>>(bench.sort(keys, Payload::None)?.1.stages);
    let (uniform, sorted) = (stages(&all[0])?, stages(&all[2])?);
    println!("\n{:28} {:>9} {:>9}", "step, ms", "uniform", "sorted");
    for ((stage, uniform), (_, sorted)) in uniform.iter().zip(&sorted) {
        println!("{stage:28} {uniform:9.4} {sorted:9.4}");
    }
    drop(all);

    for n in sizes {
        let keys: Vec<u32> = (0..n)
            .into_par_iter()
            .map(|i| scrambled(i) as u32)
            .collect();
        println!("\n{n} uniform keys");
        for payload in [Payload::None, Payload::U32, Payload::U64, Payload::Index] {
            let (ms, report) = bench.sort(&keys, payload)?;
            println!("u32 {payload:?}: {ms:.4} ms, {:.2} G/s", rate(n, ms));
            if payload == Payload::None || payload == Payload::U32 {
                for (stage, ms) in report.stages {
                    println!("    {stage:28} {ms:.4}");
                }
            }
        }
        let floats: Vec<f32> = keys.par_iter().map(|&key| key as f32).collect();
        let (ms, _) = bench.sort(&floats, Payload::None)?;
        println!("f32 None: {ms:.4} ms, {:.2} G/s", rate(n, ms));
        let wide: Vec<u64> = (0..n).into_par_iter().map(scrambled).collect();
        for payload in [Payload::None, Payload::U32] {
            let (ms, _) = bench.sort(&wide, payload)?;
            println!("u64 {payload:?}: {ms:.4} ms, {:.2} G/s", rate(n, ms));
        }
    }
    Ok(())
}

struct Bench {
    stream: Stream,
    sorter: Sorter,
    timed: Sorter,
    runs: usize,
}

impl Bench {
    /// Returns the median milliseconds of a sort, and the report of one more sort.
    fn sort<K: TestKey>(&self, keys: &[K], payload: Payload) -> Outcome<(f64, SortReport)> {
        let (stream, n) = (&self.stream, keys.len());
        let options = SortOptions::new().algorithm(Algorithm::BucketSort);
        let input = stream.from_slice(keys)?;
        let mut output = stream.alloc::<K>(n)?;
        let bytes = Sorter::scratch_bytes_for::<K>(Algorithm::BucketSort, n as u64, payload)?;
        let mut scratch = stream.alloc::<u8>(bytes as usize)?;
        let (v32, mut w32) = (stream.alloc_zeroed::<u32>(n)?, stream.alloc::<u32>(n)?);
        let (v64, mut w64) = (stream.alloc_zeroed::<u64>(n)?, stream.alloc::<u64>(n)?);
        let mut run = |sorter: &Sorter| -> Outcome<()> {
            let (from, to, memory) = (input.slice(), output.slice_mut(), scratch.slice_mut());
            Ok(match payload {
                Payload::U32 => sorter.sort(
                    stream,
                    Request::keys(from, to).values(v32.slice(), w32.slice_mut()),
                    memory,
                    &options,
                ),
                Payload::U64 => sorter.sort(
                    stream,
                    Request::keys(from, to).values(v64.slice(), w64.slice_mut()),
                    memory,
                    &options,
                ),
                Payload::None => sorter.sort(stream, Request::keys(from, to), memory, &options),
                _ => sorter.sort(
                    stream,
                    Request::index(from, w32.slice_mut()).keys_out(to),
                    memory,
                    &options,
                ),
            }?)
        };
        let mut times = Vec::new();
        for _ in 0..WARM_UP + self.runs {
            let start = stream.record()?;
            run(&self.sorter)?;
            let end = stream.record()?;
            end.synchronize()?;
            times.push(f64::from(start.elapsed_ms(&end)?));
        }
        times.drain(..WARM_UP);
        times.sort_by(f64::total_cmp);
        run(&self.timed)?;
        let report = self.timed.report(stream, scratch.slice())?;
        if !self
            .sorter
            .is_sorted(stream, output.slice(), scratch.slice_mut(), &options)?
        {
            return Err(format!("{n} keys are not in order").into());
        }
        Ok((times[times.len() / 2], report))
    }
}

fn rate(n: usize, ms: f64) -> f64 {
    n as f64 / ms / 1e6
}
