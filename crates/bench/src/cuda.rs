//! Sorts on a GPU, by its events.
//!
//! Each run sorts the next of many inputs that lie one behind the other, 256 MiB in all, so that small ones come from memory and not
//! from a cache. The first result is compared with the CPU's, over outputs that were filled with another pattern.

use super::input::{BenchKey, Distribution, with_key};
use super::measure::{
    Baseline, Case, Contender, Effort, Load, Measured, Missing, Times, repeat, value_word,
};
use bytemuck::Pod;
use radsweep::gpu::{Buffer, Device, Slice, Stream};
use radsweep::sort::cuda::baseline::{self, Baselines};
use radsweep::sort::cuda::{Calibration, Payload, Request, Sorter, SorterConfig, Value};
use radsweep::sort::{Algorithm, KeyType, SortOptions, SortReport, cpu};
use radsweep_common::Result;
use radsweep_common::byte_limit::copy_rate;
use rayon::prelude::*;

/// Bytes of inputs to rotate among: several times the largest level-two cache.
const ROTATED: u64 = 256 << 20;
/// Elements of different inputs, before they repeat.
const DISTINCT: usize = 1 << 21;
const POISON: u8 = 0xee;

pub(crate) struct Bench {
    stream: Stream,
    calibration: Calibration,
    copy_rate: f64,
    cpu: super::cpu::Bench,
    sorters: Vec<(Option<u32>, [Sorter; 2])>,
    baselines: Baselines,
    /// The last, for the contenders that sort the same.
    keys: Option<Keys>,
    values: Option<Values>,
}

/// Many inputs of one kind, and how the first looks in order.
struct Keys {
    kind: (KeyType, Distribution, usize),
    inputs: Rotated,
    /// Of the first: the keys as ordered bits, their argsort, and their bytes in order; the latter two when asked for.
    ordered: Vec<u64>,
    index: Option<Vec<u32>>,
    sorted: Option<Vec<u8>>,
}

/// What goes with the keys; the same for each input.
struct Values {
    kind: (usize, usize),
    inputs: Rotated,
}

/// `count` pieces of `bytes` each.
struct Rotated {
    all: Buffer<u8>,
    bytes: usize,
}

impl Rotated {
    /// Room for pieces of `bytes`, and the distinct ones that `host` holds, over and over.
    fn new(stream: &Stream, host: &[u8], bytes: usize, room: usize) -> Result<Self> {
        let given = host.len() / bytes.max(1);
        let count = (room / bytes.max(1)).max(given);
        let mut all = stream.alloc::<u8>(count * bytes)?;
        stream.upload(all.range_mut(..host.len())?, host)?;
        let mut filled = host.len();
        while filled < all.len() && filled > 0 {
            let (done, rest) = all.slice_mut().split_at(filled)?;
            let more = filled.min(rest.len());
            stream.copy(rest.split_at(more)?.0, done.as_slice().range(..more)?)?;
            filled += more;
        }
        stream.synchronize()?;
        Ok(Self { all, bytes })
    }

    fn piece<T: Pod>(&self, run: usize) -> Result<Slice<'_, T>> {
        let pieces = (self.all.len() / self.bytes.max(1)).max(1);
        let start = run % pieces * self.bytes;
        Ok(self.all.range(start..start + self.bytes)?.cast()?)
    }
}

impl Bench {
    pub fn new(device: &Device, calibration: Calibration) -> Result<Self> {
        let stream = Stream::new(device)?;
        let copy_rate = copy_rate(&stream)?;
        Ok(Self {
            stream,
            calibration,
            copy_rate,
            cpu: super::cpu::Bench::new(),
            sorters: Vec::new(),
            baselines: Baselines::new(device),
            keys: None,
            values: None,
        })
    }

    pub fn device(&self) -> String {
        self.stream.device().info().name.clone()
    }

    pub fn copy_rate(&self) -> f64 {
        self.copy_rate
    }

    pub fn measure(
        &mut self,
        case: &Case,
        contender: Contender,
        parameter: Option<u32>,
        effort: Effort,
    ) -> Result<Measured> {
        let measured = with_key!(case.key, K => self.sort::<K>(case, contender, parameter, effort));
        match measured {
            Err(error) => match error.downcast_ref::<radsweep::sort::Error>() {
                Some(error) if is_refusal(error) => {
                    Ok(Err(Missing::Unsupported(error.to_string())))
                }
                _ => match error.downcast_ref::<radsweep::gpu::Error>() {
                    Some(error @ radsweep::gpu::Error::OutOfMemory { .. }) => {
                        Ok(Err(Missing::Unsupported(error.to_string())))
                    }
                    _ => Err(error),
                },
            },
            measured => measured,
        }
    }

    fn sort<K: BenchKey>(
        &mut self,
        case: &Case,
        contender: Contender,
        parameter: Option<u32>,
        effort: Effort,
    ) -> Result<Measured> {
        if contender == Contender::Cpu {
            return self.cpu.measure(case, contender, effort);
        }
        self.prepare::<K>(case)?;
        let [sorter, timed] = self.sorters(parameter)?;
        let (Some(keys), stream) = (&mut self.keys, &self.stream) else {
            return Err("no keys".into());
        };
        let (n, value_bytes) = (case.n, out_bytes(case.load));
        let (runner, scratch_bytes) = match contender {
            Contender::Baseline(which) => {
                let which = which.of_library();
                if K::TYPE != KeyType::U32 || ![Load::Keys, Load::U32].contains(&case.load) {
                    return Ok(Err(Missing::Unsupported("u32 keys and values only".into())));
                }
                let bytes = Baselines::scratch_bytes(which, n as u64, value_bytes > 0)?;
                (Runner::Baseline(&self.baselines, which), bytes)
            }
            _ => {
                let bytes = Sorter::scratch_bytes_for::<K>(
                    contender.algorithm(),
                    n as u64,
                    case.load.payload(),
                )?;
                (Runner::Sorter(&sorter), bytes)
            }
        };
        let mut job = Job {
            stream,
            options: SortOptions {
                bits: case.window.clone(),
                ..SortOptions::new().algorithm(contender.algorithm())
            },
            load: case.load,
            keys: &keys.inputs,
            values: self.values.as_ref().map(|values| &values.inputs),
            keys_out: stream.alloc(n * size_of::<K>())?,
            values_out: stream.alloc(n * value_bytes)?,
            scratch: stream.alloc(usize::try_from(scratch_bytes)?)?,
        };

        stream.fill_bytes(job.keys_out.slice_mut(), POISON)?;
        stream.fill_bytes(job.values_out.slice_mut(), POISON)?;
        if let Err(error) = job.run::<K>(runner, 0) {
            // A parameter may ask for more than the tuned sort does.
            let Some(&radsweep::sort::Error::ScratchTooSmall { needed, .. }) = error.downcast_ref()
            else {
                return Err(error);
            };
            job.scratch = stream.alloc(usize::try_from(needed)?)?;
            job.run::<K>(runner, 0)?;
        }
        let report = match runner {
            Runner::Sorter(sorter) => sorter.report(stream, job.scratch.slice())?,
            Runner::Baseline(..) => SortReport {
                algorithm: contender.name(),
                ..SortReport::default()
            },
        };
        let (keys_out, values_out) = (&job.keys_out, &job.values_out);
        let found = match effort.check {
            true => (
                stream.to_vec(keys_out.slice())?,
                stream.to_vec(values_out.slice())?,
            ),
            false => Default::default(),
        };
        let times = repeat(effort, |run| {
            let start = stream.record()?;
            job.run::<K>(runner, run)?;
            let end = stream.record()?;
            end.synchronize()?;
            Ok(f64::from(start.elapsed_ms(&end)?))
        })?;
        let mut stages = Vec::new();
        if effort.stages {
            let runner = Runner::Sorter(&timed);
            job.run::<K>(runner, 0)?;
            timed.report(stream, job.scratch.slice())?;
            job.run::<K>(runner, 1)?;
            stages = timed.report(stream, job.scratch.slice())?.stages;
        }
        drop(job);
        if effort.check
            && let Err(wrong) = keys.check::<K>(case.load, &found.0, &found.1)
        {
            return Ok(Err(Missing::Wrong(wrong)));
        }
        Ok(Ok(Times {
            ran: report.algorithm,
            stages,
            largest_bucket: report.largest_bucket,
            ..Times::new(times)
        }))
    }

    /// A sorter with this parameter, and one that takes the times of stages.
    fn sorters(&mut self, parameter: Option<u32>) -> Result<[Sorter; 2]> {
        if let Some((_, sorters)) = self.sorters.iter().find(|(known, _)| *known == parameter) {
            return Ok(sorters.clone());
        }
        let make = |timings| {
            let config = SorterConfig {
                timings,
                parameter,
                ..SorterConfig::default()
            };
            Sorter::with_calibration(self.stream.device(), config, self.calibration.clone())
        };
        let sorters = [make(false)?, make(true)?];
        self.sorters.push((parameter, sorters.clone()));
        Ok(sorters)
    }

    /// Makes the inputs, unless they are those of before.
    fn prepare<K: BenchKey>(&mut self, case: &Case) -> Result<()> {
        let n = case.n;
        let room = usize::try_from(ROTATED.min(self.stream.device().info().memory_bytes / 16))?;
        let kind = (case.key, case.distribution, n);
        if self.keys.as_ref().is_none_or(|keys| keys.kind != kind) {
            self.keys = None;
            let distinct = (DISTINCT.min(room / size_of::<K>()) / n.max(1)).clamp(1, 64);
            let ordered: Vec<Vec<u64>> = (0..distinct as u64)
                .map(|seed| case.distribution.generate(n, K::BITS, seed + 1))
                .collect();
            let host: Vec<K> = ordered
                .par_iter()
                .flatten()
                .map(|&bits| K::from_ordered(bits))
                .collect();
            let inputs = Rotated::new(
                &self.stream,
                bytemuck::cast_slice(&host),
                n * size_of::<K>(),
                room,
            )?;
            let ordered = ordered.into_iter().next().unwrap_or_default();
            self.keys = Some(Keys {
                kind,
                inputs,
                ordered,
                index: None,
                sorted: None,
            });
        }
        let bytes = case.load.bytes();
        if bytes > 0
            && self
                .values
                .as_ref()
                .is_none_or(|values| values.kind != (n, bytes))
        {
            self.values = None;
            let words = bytes / 4;
            let host: Vec<u32> = (0..n * words)
                .into_par_iter()
                .map(|at| value_word((at / words) as u32, at % words))
                .collect();
            let inputs = Rotated::new(&self.stream, bytemuck::cast_slice(&host), n * bytes, room)?;
            self.values = Some(Values {
                kind: (n, bytes),
                inputs,
            });
        }
        Ok(())
    }
}

/// One sort, over and over.
struct Job<'a> {
    stream: &'a Stream,
    options: SortOptions,
    load: Load,
    keys: &'a Rotated,
    values: Option<&'a Rotated>,
    keys_out: Buffer<u8>,
    values_out: Buffer<u8>,
    scratch: Buffer<u8>,
}

/// What sorts.
#[derive(Clone, Copy)]
enum Runner<'a> {
    Sorter(&'a Sorter),
    Baseline(&'a Baselines, baseline::Baseline),
}

impl Contender {
    fn algorithm(self) -> Algorithm {
        if let Self::Algorithm(algorithm) = self {
            algorithm
        } else {
            Algorithm::Auto
        }
    }
}

impl Baseline {
    fn of_library(self) -> baseline::Baseline {
        match self {
            Self::Bitonic => baseline::Baseline::Bitonic,
            Self::OneBit => baseline::Baseline::Split,
            Self::Radix16 => baseline::Baseline::Radix16,
        }
    }
}

impl Load {
    fn payload(self) -> Payload {
        match self {
            Self::Keys => Payload::None,
            Self::U32 => Payload::U32,
            Self::U64 => Payload::U64,
            Self::Index => Payload::Index,
            Self::Records(_) => Payload::Records,
        }
    }
}

impl Job<'_> {
    fn run<K: BenchKey>(&mut self, by: Runner<'_>, run: usize) -> Result<()> {
        let sorter = match by {
            Runner::Sorter(sorter) => sorter,
            Runner::Baseline(baselines, which) => {
                let values = self.values.filter(|_| self.load == Load::U32);
                let values_in = values.map(|values| values.piece(run)).transpose()?;
                let values_out = self.values_out.slice_mut().cast()?;
                let values = values_in.map(|values_in| (values_in, values_out));
                let (keys, out) = (self.keys.piece(run)?, self.keys_out.slice_mut().cast()?);
                let scratch = self.scratch.slice_mut();
                return Ok(baselines.sort(which, self.stream, keys, out, values, scratch)?);
            }
        };
        let (stream, options) = (self.stream, &self.options);
        let keys = self.keys.piece::<K>(run)?;
        let scratch = self.scratch.slice_mut();
        match self.load {
            Load::Keys => {
                let out = self.keys_out.slice_mut().cast()?;
                Ok(sorter.sort(stream, Request::keys(keys, out), scratch, options)?)
            }
            Load::Index => {
                let out = self.values_out.slice_mut().cast()?;
                Ok(sorter.sort(stream, Request::index(keys, out), scratch, options)?)
            }
            Load::U32 => self.pairs::<K, u32>(sorter, run),
            Load::U64 => self.pairs::<K, u64>(sorter, run),
            Load::Records(4) => self.records::<K, [u32; 1]>(sorter, run),
            Load::Records(8) => self.records::<K, [u32; 2]>(sorter, run),
            Load::Records(16) => self.records::<K, [u32; 4]>(sorter, run),
            Load::Records(32) => self.records::<K, [u32; 8]>(sorter, run),
            Load::Records(64) => self.records::<K, [u32; 16]>(sorter, run),
            Load::Records(_) => self.records::<K, [u32; 32]>(sorter, run),
        }
    }

    fn pairs<K: BenchKey, V: Value>(&mut self, sorter: &Sorter, run: usize) -> Result<()> {
        let values = self.values.ok_or("no values")?.piece::<V>(run)?;
        let (keys, keys_out) = (
            self.keys.piece::<K>(run)?,
            self.keys_out.slice_mut().cast()?,
        );
        let (values_out, scratch) = (
            self.values_out.slice_mut().cast()?,
            self.scratch.slice_mut(),
        );
        Ok(sorter.sort(
            self.stream,
            Request::keys(keys, keys_out).values(values, values_out),
            scratch,
            &self.options,
        )?)
    }

    fn records<K: BenchKey, R: Pod>(&mut self, sorter: &Sorter, run: usize) -> Result<()> {
        let records = self.values.ok_or("no records")?.piece::<R>(run)?;
        let (keys, out) = (
            self.keys.piece::<K>(run)?,
            self.values_out.slice_mut().cast()?,
        );
        let scratch = self.scratch.slice_mut();
        Ok(sorter.sort(
            self.stream,
            Request::records(keys, records, out),
            scratch,
            &self.options,
        )?)
    }
}

impl Keys {
    /// Compares with the sort of the CPU, byte for byte.
    fn check<K: BenchKey>(
        &mut self,
        load: Load,
        keys_out: &[u8],
        values_out: &[u8],
    ) -> std::result::Result<(), String> {
        let cannot = |error: radsweep::sort::Error| error.to_string();
        if load == Load::Keys && self.sorted.is_none() {
            let mut keys: Vec<K> = self
                .ordered
                .par_iter()
                .map(|&bits| K::from_ordered(bits))
                .collect();
            cpu::sort_keys(&mut keys, &SortOptions::new()).map_err(cannot)?;
            self.sorted = Some(bytemuck::cast_slice(&keys).to_vec());
        }
        if load != Load::Keys && self.index.is_none() {
            let keys: Vec<K> = self
                .ordered
                .par_iter()
                .map(|&bits| K::from_ordered(bits))
                .collect();
            let mut index = vec![0; keys.len()];
            cpu::sort_index(&keys, &mut index, &SortOptions::new()).map_err(cannot)?;
            self.index = Some(index);
        }
        if let (Load::Keys, Some(sorted)) = (load, &self.sorted) {
            return same("key", keys_out, sorted, size_of::<K>());
        }
        let index = self.index.as_deref().unwrap_or_default();
        if matches!(load, Load::U32 | Load::U64) {
            let sorted: Vec<K> = index
                .par_iter()
                .map(|&i| K::from_ordered(self.ordered[i as usize]))
                .collect();
            same(
                "key",
                keys_out,
                bytemuck::cast_slice(&sorted),
                size_of::<K>(),
            )?;
        }
        let words = out_bytes(load) / 4;
        let expected: Vec<u32> = (0..index.len() * words)
            .into_par_iter()
            .map(|at| value_word(index[at / words], at % words))
            .collect();
        same(
            "value",
            values_out,
            bytemuck::cast_slice(&expected),
            4 * words,
        )
    }
}

fn same(
    what: &str,
    found: &[u8],
    expected: &[u8],
    bytes: usize,
) -> std::result::Result<(), String> {
    let pieces = found
        .par_chunks_exact(bytes)
        .zip(expected.par_chunks_exact(bytes));
    match pieces.position_first(|(found, expected)| found != expected) {
        None if found.len() == expected.len() => Ok(()),
        None => Err(format!(
            "{} bytes of {what}s instead of {}",
            found.len(),
            expected.len()
        )),
        Some(at) => Err(format!(
            "{what} {at} of {} is not that of the CPU",
            found.len() / bytes
        )),
    }
}

/// Bytes that come out beside, or instead of, each key.
fn out_bytes(load: Load) -> usize {
    if load == Load::Index { 4 } else { load.bytes() }
}

/// Whether the sort cannot be run here, rather than something having gone wrong.
fn is_refusal(error: &radsweep::sort::Error) -> bool {
    use radsweep::sort::Error;
    matches!(
        error,
        Error::Unsupported { .. }
            | Error::TooManyKeys { .. }
            | Error::Gpu(radsweep::gpu::Error::OutOfMemory { .. })
    )
}
