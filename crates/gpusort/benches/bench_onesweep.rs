//! Measures Onesweep on the first GPU, and the merge sort last, so that every line of the CUB bench
//! has its counterpart here.
//!
//! `cargo bench -p gpusort --features cuda --bench bench_onesweep [-- [--sizes 1048576,16777216]
//! [--runs 20] [--algorithm onesweep]]`
//!
//! It prints one JSON object a line, then a table. Times are medians between GPU events after a
//! warm-up. As in the CUB bench, the runs rotate through 256 MiB of inputs, so that small ones are
//! read from memory. The result of every line is compared once with the CPU, in an output that was
//! poisoned before. `byte_limit_share` is the time in which the algorithm's bytes could be moved at
//! the copy rate of this run, divided by the measured time.

#[path = "../tests/common/mod.rs"]
mod common;

use bytemuck::Pod;
use common::scrambled;
use gpu::{Buffer, Device, Slice, Stream};
use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
use gpusort::{Algorithm, Key, SortOptions, cpu};
use rayon::prelude::*;
use std::error::Error;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Bytes of inputs that the runs rotate through: several times the largest level-two cache.
const ROTATED_BYTES: usize = 256 << 20;
const WARM_UP: usize = 3;

/// Inputs of `n` elements each, which follow each other in memory.
struct Inputs<T> {
    n: usize,
    all: Buffer<T>,
}

impl<T: Pod + Send + Sync> Inputs<T> {
    fn new(stream: &Stream, n: usize, element: impl Fn(usize) -> T + Sync + Send) -> Outcome<Self> {
        let count = (ROTATED_BYTES / (n * size_of::<T>())).max(1);
        let all: Vec<T> = (0..count * n).into_par_iter().map(element).collect();
        Ok(Inputs {
            n,
            all: stream.from_slice(&all)?,
        })
    }

    fn next(&self, run: usize) -> Slice<'_, T> {
        let start = run % (self.all.len() / self.n) * self.n;
        self.all.range(start..start + self.n).expect("inside")
    }
}

fn main() -> Outcome<()> {
    let (sizes, runs, algorithm) = arguments()?;
    let device = Device::first()?;
    let stream = Stream::new(&device)?;
    let sorter = Sorter::new(&device, SorterConfig::default())?;
    let mut bench = Bench {
        stream: &stream,
        sorter: &sorter,
        runs,
        options: SortOptions::new().algorithm(algorithm),
        copy_gb_s: 0.0,
        table: Vec::new(),
    };
    println!(
        "{}",
        json(&[
            ("bench", "\"onesweep\"".into()),
            ("what", "\"device\"".into()),
            ("name", format!("{:?}", device.info().name))
        ])
    );
    bench.copy()?;
    for &n in &sizes {
        bench.keys::<u32>("keys_u32", n, Input::Random)?;
    }
    for &n in sizes.iter().filter(|&&n| n <= 1 << 22) {
        bench.keys_from_graph(n)?;
    }
    for &n in &sizes {
        bench.pairs::<u32>("pairs_u32_u32", n)?;
    }
    for n in [1 << 12, 1 << 20, 1 << 24] {
        bench.keys::<u64>("keys_u64", n, Input::Random)?;
        bench.pairs::<u64>("pairs_u64_u32", n)?;
        bench.keys::<f32>("keys_f32", n, Input::Random)?;
        bench.keys::<u32>("keys_u32_sorted", n, Input::Sorted)?;
        bench.keys::<u32>("keys_u32_constant", n, Input::Constant)?;
        bench.index::<u32>("index_u32", n)?;
        bench.index::<f32>("index_f32", n)?;
        bench.stages(n)?;
    }
    bench.options = SortOptions::new().algorithm(Algorithm::SatishMerge);
    for n in [1 << 20, 1 << 24] {
        bench.pairs::<u32>("merge_pairs_u32_u32", n)?;
    }
    println!(
        "\n{:19} {:>10} {:>11} {:>9} {:>7}",
        "what", "n", "ms", "G/s", "limit"
    );
    for line in &bench.table {
        println!("{line}");
    }
    Ok(())
}

fn arguments() -> Outcome<(Vec<usize>, usize, Algorithm)> {
    let (mut sizes, mut runs): (Vec<usize>, _) =
        ((10..=28).step_by(2).map(|power| 1 << power).collect(), 21);
    let mut algorithm = Algorithm::Onesweep;
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(word) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--sizes" => sizes = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--runs" => runs = value.parse::<usize>()?.max(1),
            "--algorithm" => algorithm = value.parse()?,
            _ => return Err(format!("unknown argument {word}").into()),
        }
    }
    Ok((sizes, runs, algorithm))
}

#[derive(Clone, Copy)]
enum Input {
    Random,
    Sorted,
    Constant,
}

/// A key type that is made from a 64-bit pattern.
trait Random: Key {
    fn random(bits: u64) -> Self;
}
impl Random for u32 {
    fn random(bits: u64) -> Self {
        bits as u32
    }
}
impl Random for u64 {
    fn random(bits: u64) -> Self {
        bits
    }
}
impl Random for f32 {
    fn random(bits: u64) -> Self {
        f32::from_bits(bits as u32)
    }
}

struct Bench<'a> {
    stream: &'a Stream,
    sorter: &'a Sorter,
    runs: usize,
    options: SortOptions,
    copy_gb_s: f64,
    table: Vec<String>,
}

impl Bench<'_> {
    /// Measures the copy bandwidth: bytes read plus bytes written.
    fn copy(&mut self) -> Outcome<()> {
        let bytes = 1_usize << 30;
        let from = self.stream.alloc_zeroed::<u8>(bytes)?;
        let mut to = self.stream.alloc::<u8>(bytes)?;
        let ms = self.median(|stream, _| Ok(stream.copy(to.slice_mut(), from.slice())?))?;
        self.copy_gb_s = 2.0 * bytes as f64 / ms / 1e6;
        let rate = format!("{:.1}", self.copy_gb_s);
        println!(
            "{}",
            json(&[
                ("bench", "\"onesweep\"".into()),
                ("what", "\"copy\"".into()),
                ("n", bytes.to_string()),
                ("ms", format!("{ms:.6}")),
                ("gb_s", rate)
            ])
        );
        Ok(())
    }

    fn keys<K: Random>(&mut self, what: &str, n: usize, input: Input) -> Outcome<()> {
        let inputs = self.inputs::<K>(n, input)?;
        let mut output = self.stream.alloc::<K>(n)?;
        let mut scratch = self.scratch::<K>(n, Payload::None)?;
        let (sorter, options) = (self.sorter, self.options.clone());
        let ms = self.median(|stream, run| {
            Ok(sorter.sort(
                stream,
                Request::keys(inputs.next(run), output.slice_mut()),
                scratch.slice_mut(),
                &options,
            )?)
        })?;
        self.stream.fill_bytes(output.slice_mut(), 0xee)?;
        sorter.sort(
            self.stream,
            Request::keys(inputs.next(0), output.slice_mut()),
            scratch.slice_mut(),
            &options,
        )?;
        let mut expected = self.stream.to_vec(inputs.next(0))?;
        cpu::sort_keys(&mut expected, &options)?;
        verify(what, n, &self.stream.to_vec(output.slice())?, &expected)?;
        let passes = match input {
            Input::Random => size_of::<K>(),
            Input::Sorted | Input::Constant => 1, // the copy
        };
        self.line(what, n, ms, size_of::<K>() * (1 + 2 * passes));
        Ok(())
    }

    fn pairs<K: Random>(&mut self, what: &str, n: usize) -> Outcome<()> {
        let inputs = self.inputs::<K>(n, Input::Random)?;
        let indices: Vec<u32> = (0..n as u32).collect();
        let values = Inputs::new(self.stream, n, |i| (i % n) as u32)?;
        let (mut keys_out, mut values_out) =
            (self.stream.alloc::<K>(n)?, self.stream.alloc::<u32>(n)?);
        let mut scratch = self.scratch::<K>(n, Payload::U32)?;
        let (sorter, options) = (self.sorter, self.options.clone());
        let mut sort = |stream: &Stream, run: usize, poison: bool| -> Outcome<()> {
            if poison {
                stream.fill_bytes(keys_out.slice_mut(), 0xee)?;
                stream.fill_bytes(values_out.slice_mut(), 0xee)?;
            }
            let (k, v) = (keys_out.slice_mut(), values_out.slice_mut());
            Ok(sorter.sort(
                stream,
                Request::keys(inputs.next(run), k).values(values.next(run), v),
                scratch.slice_mut(),
                &options,
            )?)
        };
        let ms = self.median(|stream, run| sort(stream, run, false))?;
        sort(self.stream, 0, true)?;
        let (mut expected, mut moved) = (self.stream.to_vec(inputs.next(0))?, indices);
        cpu::sort_pairs(&mut expected, &mut moved, &options)?;
        verify(what, n, &self.stream.to_vec(keys_out.slice())?, &expected)?;
        verify(what, n, &self.stream.to_vec(values_out.slice())?, &moved)?;
        let algorithm = self.options.algorithm;
        let bytes = algorithm.bytes_per_element(size_of::<K>(), 4, n as u64);
        self.line(what, n, ms, bytes as usize);
        Ok(())
    }

    fn index<K: Random>(&mut self, what: &str, n: usize) -> Outcome<()> {
        let inputs = self.inputs::<K>(n, Input::Random)?;
        let mut index = self.stream.alloc::<u32>(n)?;
        let mut scratch = self.scratch::<K>(n, Payload::Index)?;
        let (sorter, options) = (self.sorter, self.options.clone());
        let mut sort = |stream: &Stream, run: usize, poison: bool| -> Outcome<()> {
            if poison {
                stream.fill_bytes(index.slice_mut(), 0xee)?;
            }
            let input = inputs.next(run);
            Ok(sorter.sort(
                stream,
                Request::index(input, index.slice_mut()),
                scratch.slice_mut(),
                &options,
            )?)
        };
        let ms = self.median(|stream, run| sort(stream, run, false))?;
        sort(self.stream, 0, true)?;
        let (keys, mut expected) = (self.stream.to_vec(inputs.next(0))?, vec![0; n]);
        cpu::sort_index(&keys, &mut expected, &options)?;
        verify(what, n, &self.stream.to_vec(index.slice())?, &expected)?;
        // The bytes are those of pairs, without reading values in the first pass and writing keys
        // in the last.
        self.line(
            what,
            n,
            ms,
            size_of::<K>() + size_of::<K>() * 2 * (size_of::<K>() + 4) - 4 - size_of::<K>(),
        );
        Ok(())
    }

    /// Measures the same launches replayed from a graph, without the gaps between them.
    fn keys_from_graph(&mut self, n: usize) -> Outcome<()> {
        let inputs = self.inputs::<u32>(n, Input::Random)?;
        let mut output = self.stream.alloc::<u32>(n)?;
        let mut scratch = self.scratch::<u32>(n, Payload::None)?;
        self.sorter
            .prepare::<u32>(self.options.algorithm, n as u64)?;
        let mut refused = None;
        let graph = self.stream.capture(|stream| {
            let (from, to, scratch) = (inputs.next(0), output.slice_mut(), scratch.slice_mut());
            refused = self
                .sorter
                .sort(stream, Request::keys(from, to), scratch, &self.options)
                .err();
            Ok(())
        })?;
        if let Some(error) = refused {
            return Err(error.into());
        }
        let ms = self.median(|stream, _| Ok(graph.launch(stream)?))?;
        self.line("keys_u32_graph", n, ms, 36);
        Ok(())
    }

    /// Prints the stage times of one sort.
    fn stages(&mut self, n: usize) -> Outcome<()> {
        let timed = Sorter::new(self.stream.device(), SorterConfig::new().timings(true))?;
        let inputs = self.inputs::<u32>(n, Input::Random)?;
        let mut output = self.stream.alloc::<u32>(n)?;
        let mut scratch = self.scratch::<u32>(n, Payload::None)?;
        for run in 0..WARM_UP {
            timed.sort(
                self.stream,
                Request::keys(inputs.next(run), output.slice_mut()),
                scratch.slice_mut(),
                &self.options,
            )?;
        }
        let report = timed.report(self.stream, scratch.slice())?;
        let stages: Vec<_> = report
            .stages
            .iter()
            .map(|(stage, ms)| format!("\"{stage}\":{ms:.6}"))
            .collect();
        let fields = [
            ("bench", "\"onesweep\"".into()),
            ("what", "\"stages_keys_u32\"".into()),
            ("n", n.to_string()),
            ("stages", format!("{{{}}}", stages.join(","))),
        ];
        println!("{}", json(&fields));
        Ok(())
    }

    fn inputs<K: Random>(&self, n: usize, input: Input) -> Outcome<Inputs<K>> {
        Inputs::new(self.stream, n, |i| {
            K::random(match input {
                Input::Random => scrambled(i),
                Input::Sorted => (i % n) as u64,
                Input::Constant => 0x1234_5678,
            })
        })
    }

    fn scratch<K: Key>(&self, n: usize, payload: Payload) -> Outcome<Buffer<u8>> {
        Ok(self.stream.alloc(Sorter::scratch_bytes_for::<K>(
            self.options.algorithm,
            n as u64,
            payload,
        )? as usize)?)
    }

    /// Returns the median milliseconds of the runs after the warm-up.
    fn median(&self, mut run: impl FnMut(&Stream, usize) -> Outcome<()>) -> Outcome<f64> {
        let mut times = Vec::new();
        for i in 0..WARM_UP + self.runs {
            let start = self.stream.record()?;
            run(self.stream, i)?;
            let end = self.stream.record()?;
            end.synchronize()?;
            times.push(f64::from(start.elapsed_ms(&end)?));
        }
        let mut times = times.split_off(WARM_UP);
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }

    fn line(&mut self, what: &str, n: usize, ms: f64, bytes: usize) {
        let gkeys = n as f64 / ms / 1e6;
        let share = (n * bytes) as f64 / self.copy_gb_s / 1e6 / ms;
        println!(
            "{}",
            json(&[
                ("bench", "\"onesweep\"".into()),
                ("what", format!("\"{what}\"")),
                ("n", n.to_string()),
                ("ms", format!("{ms:.6}")),
                ("gkeys", format!("{gkeys:.4}")),
                ("byte_limit_share", format!("{share:.4}")),
            ])
        );
        self.table.push(format!(
            "{what:19} {n:>10} {ms:>11.4} {gkeys:>9.3} {share:>7.3}"
        ));
    }
}

fn json(fields: &[(&str, String)]) -> String {
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    format!("{{{}}}", fields.join(","))
}

fn verify<T: bytemuck::Pod + std::fmt::Debug + Sync>(
    what: &str,
    n: usize,
    got: &[T],
    expected: &[T],
) -> Outcome<()> {
    let differ = |i: &usize| bytemuck::bytes_of(&got[*i]) != bytemuck::bytes_of(&expected[*i]);
    match (0..n).into_par_iter().find_first(differ) {
        Some(i) => Err(format!(
            "{what}, {n}: element {i} is {:?}, expected {:?}",
            got[i], expected[i]
        )
        .into()),
        None => Ok(()),
    }
}
