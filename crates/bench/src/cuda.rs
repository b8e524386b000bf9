//! Measures sorts on a GPU with its events.
//!
//! Each run sorts the next of many inputs (`inputs.rs`), so that small ones are read from memory
//! and not from a cache. The first result is compared with the CPU's; the outputs are filled with a
//! pattern before.

mod inputs;

use super::input::{BenchKey, with_key};
use super::measure::{Baseline, Case, Contender, Effort, Load, Measured, Missing, Times, repeat};
use bytemuck::Pod;
use inputs::{Inputs, Rotated, out_bytes};
use radsweep::gpu::{Buffer, Device, Stream};
use radsweep::sort::cuda::baseline::{self, Baselines};
use radsweep::sort::cuda::{Calibration, Knobs, Payload, Request, Sorter, SorterConfig, Value};
use radsweep::sort::{Algorithm, KeyType, SortOptions, SortReport};
use radsweep_common::Result;
use radsweep_common::byte_limit::copy_rate;

const POISON: u8 = 0xee;

pub(crate) struct Bench {
    stream: Stream,
    calibration: Calibration,
    copy_rate: f64,
    cpu: super::cpu::Bench,
    sorters: Vec<(Option<u32>, [Sorter; 2])>,
    baselines: Baselines,
    inputs: Inputs,
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
            inputs: Inputs::default(),
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
                Some(error) if is_unsupported(error) => {
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
        self.inputs.prepare::<K>(&self.stream, case)?;
        let [sorter, timed] = self.sorters(parameter)?;
        let (Some(keys), stream) = (&mut self.inputs.keys, &self.stream) else {
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
        let mut options = SortOptions::new().algorithm(contender.algorithm());
        options.bits.clone_from(&case.window);
        let mut job = Job {
            stream,
            options,
            load: case.load,
            keys: &keys.inputs,
            values: self.inputs.values.as_ref().map(|values| &values.inputs),
            keys_out: stream.alloc(n * size_of::<K>())?,
            values_out: stream.alloc(n * value_bytes)?,
            scratch: stream.alloc(usize::try_from(scratch_bytes)?)?,
        };
        job.first::<K>(runner)?;
        let report = match runner {
            Runner::Sorter(sorter) => sorter.report(stream, job.scratch.slice())?,
            Runner::Baseline(..) => {
                let mut report = SortReport::default();
                report.algorithm = contender.name();
                report
            }
        };
        let found = match effort.check {
            true => (
                stream.to_vec(job.keys_out.slice())?,
                stream.to_vec(job.values_out.slice())?,
            ),
            false => Default::default(),
        };
        let times = job.times::<K>(runner, effort)?;
        let stages = match effort.stages {
            true => job.stages::<K>(&timed)?,
            false => Vec::new(),
        };
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

    /// Creates a sorter with this parameter, and another that also measures its stages.
    fn sorters(&mut self, parameter: Option<u32>) -> Result<[Sorter; 2]> {
        if let Some((_, sorters)) = self.sorters.iter().find(|(known, _)| *known == parameter) {
            return Ok(sorters.clone());
        }
        let config = SorterConfig::new().knobs(Knobs {
            parameter,
            ..Knobs::default()
        });
        let make = |config| {
            Sorter::with_calibration(self.stream.device(), config, self.calibration.clone())
        };
        let sorters = [make(config)?, make(config.timings(true))?];
        self.sorters.push((parameter, sorters.clone()));
        Ok(sorters)
    }
}

/// One sort that is repeated.
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

/// The sort that runs: one of the library or a baseline.
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
    /// Sorts the first input into outputs that are first filled with a pattern.
    fn first<K: BenchKey>(&mut self, by: Runner<'_>) -> Result<()> {
        self.stream.fill_bytes(self.keys_out.slice_mut(), POISON)?;
        self.stream
            .fill_bytes(self.values_out.slice_mut(), POISON)?;
        let Err(error) = self.run::<K>(by, 0) else {
            return Ok(());
        };
        // A parameter may need more scratch memory than the tuned sort.
        let Some(&radsweep::sort::Error::ScratchTooSmall { needed, .. }) = error.downcast_ref()
        else {
            return Err(error);
        };
        self.scratch = self.stream.alloc(usize::try_from(needed)?)?;
        self.run::<K>(by, 0)
    }

    /// Measures many runs, in milliseconds.
    fn times<K: BenchKey>(&mut self, by: Runner<'_>, effort: Effort) -> Result<Vec<f64>> {
        repeat(effort, |run| {
            let start = self.stream.record()?;
            self.run::<K>(by, run)?;
            let end = self.stream.record()?;
            end.synchronize()?;
            Ok(f64::from(start.elapsed_ms(&end)?))
        })
    }

    /// Measures each stage in the second run of a sorter with timings, in milliseconds.
    fn stages<K: BenchKey>(&mut self, timed: &Sorter) -> Result<Vec<(&'static str, f64)>> {
        self.run::<K>(Runner::Sorter(timed), 0)?;
        timed.report(self.stream, self.scratch.slice())?;
        self.run::<K>(Runner::Sorter(timed), 1)?;
        Ok(timed.report(self.stream, self.scratch.slice())?.stages)
    }

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

/// Tells whether the device or the sort does not support this case; other errors are failures.
fn is_unsupported(error: &radsweep::sort::Error) -> bool {
    use radsweep::sort::Error;
    matches!(
        error,
        Error::Unsupported { .. }
            | Error::TooManyKeys { .. }
            | Error::Gpu(radsweep::gpu::Error::OutOfMemory { .. })
    )
}
