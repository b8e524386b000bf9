//! `radsweep sort`: sorts the keys of a file and writes them, their argsort, or both.

use super::args::{Sort, misuse};
use super::table::{Stages, round};
use radsweep::Backend;
use radsweep::sort::{Order, SortOptions, SortReport, cpu};
use radsweep_common::Result;
use radsweep_common::backend::{self, Device, note_sort};
use radsweep_common::npy::{self, Element, Keys, Writer};
use radsweep_common::numbers::counted;
use radsweep_common::output::beside;
use radsweep_common::terminal::{note, spinner};
use serde_json::json;
use std::io::Write;

pub(super) fn run(args: &Sort) -> Result<()> {
    if args.output.is_some() && args.output == args.index {
        return Err(misuse("--output and --index name the same file"));
    }
    let output = args.output.as_deref().map(Writer::create).transpose()?;
    let index = args.index.as_deref().map(Writer::create).transpose()?;
    let choice = backend::choose(args.backend)?;
    note_sort(&[args.sort], choice.backend());
    let bar = spinner("reading");
    let keys = npy::read_keys(&args.keys)?;
    bar.set_message("sorting");
    let work = Work {
        options: SortOptions::new()
            .algorithm(args.sort)
            .order(match args.descending {
                true => Order::Descending,
                false => Order::Ascending,
            }),
        device: choice.device,
        may_fall_back: args.backend == Backend::Auto,
    };
    let key_type = keys.key_type().name();
    let report = match keys {
        Keys::U32(keys) => work.sort_into(keys, output, index),
        Keys::I32(keys) => work.sort_into(keys, output, index),
        Keys::F32(keys) => work.sort_into(keys, output, index),
        Keys::U64(keys) => work.sort_into(keys, output, index),
        Keys::I64(keys) => work.sort_into(keys, output, index),
        Keys::F64(keys) => work.sort_into(keys, output, index),
    }?;
    bar.finish_and_clear();
    print(args, key_type, &report)
}

/// How to sort keys of any type, and where.
struct Work {
    options: SortOptions,
    device: Option<Device>,
    /// Whether the CPU sorts keys that do not fit on the device.
    may_fall_back: bool,
}

impl Work {
    fn sort_into<K: Element>(
        &self,
        mut keys: Vec<K>,
        output: Option<Writer>,
        index: Option<Writer>,
    ) -> Result<SortReport> {
        let shape = [keys.len() as u64];
        let mut permutation = index.is_some().then(|| iota(keys.len())).transpose()?;
        let report = self.sort(&mut keys, permutation.as_deref_mut())?;
        // Both files are complete before either appears.
        let mut written = Vec::new();
        if let Some(mut writer) = output {
            writer.header::<K>(&shape)?;
            writer.append(&keys)?;
            written.push(writer);
        }
        if let (Some(mut writer), Some(permutation)) = (index, permutation) {
            writer.header::<u32>(&shape)?;
            writer.append(&permutation)?;
            written.push(writer);
        }
        written.into_iter().try_for_each(Writer::finish)?;
        Ok(report)
    }

    /// Sorts the keys, and with them `index`, which holds 0, 1, 2 and so on.
    fn sort<K: Element>(
        &self,
        keys: &mut [K],
        mut index: Option<&mut [u32]>,
    ) -> radsweep::sort::Result<SortReport> {
        if let Some(device) = &self.device {
            match on_device(device, keys, index.as_deref_mut(), &self.options) {
                Err(error) if self.may_fall_back && is_out_of_memory(&error) => {
                    note(&format!("sorting on the CPU: {error}"));
                }
                done => return done,
            }
        }
        match index {
            None => cpu::sort_keys(keys, &self.options),
            Some(index) => cpu::sort_pairs(keys, index, &self.options),
        }
    }
}

/// Sorts the keys on the device; on failure leaves keys and index unchanged.
#[cfg(cuda)]
fn on_device<K: Element>(
    device: &Device,
    keys: &mut [K],
    index: Option<&mut [u32]>,
    options: &SortOptions,
) -> radsweep::sort::Result<SortReport> {
    use radsweep::sort::Algorithm;
    use radsweep::sort::cuda::{Calibration, Payload, Request, Sorter, SorterConfig};
    let n = keys.len();
    let payload = if index.is_some() {
        Payload::Index
    } else {
        Payload::None
    };
    let scratch_bytes = Sorter::scratch_bytes_for::<K>(options.algorithm, n as u64, payload)?;
    let config = SorterConfig::new().timings(true);
    let calibration = match options.algorithm {
        Algorithm::Auto => radsweep_common::calibration::load(device),
        _ => Calibration::default(),
    };
    let sorter = Sorter::with_calibration(device, config, calibration)?;
    let stream = radsweep::gpu::Stream::new(device)?;
    let input = stream.from_slice(keys)?;
    let mut output = stream.alloc(n)?;
    let mut scratch = stream.alloc(usize::try_from(scratch_bytes).unwrap_or(usize::MAX))?;
    let report = match index {
        None => {
            sorter.sort(
                &stream,
                Request::keys(input.slice(), output.slice_mut()),
                scratch.slice_mut(),
                options,
            )?;
            sorter.report(&stream, scratch.slice())?
        }
        Some(index) => {
            let mut order = stream.alloc(n)?;
            let (sorted, order_out) = (output.slice_mut(), order.slice_mut());
            sorter.sort(
                &stream,
                Request::index(input.slice(), order_out).keys_out(sorted),
                scratch.slice_mut(),
                options,
            )?;
            let report = sorter.report(&stream, scratch.slice())?;
            stream.download(order.slice(), index)?;
            report
        }
    };
    stream.download(output.slice(), keys)?;
    Ok(report)
}

#[cfg(not(cuda))]
fn on_device<K>(
    device: &Device,
    _: &mut [K],
    _: Option<&mut [u32]>,
    _: &SortOptions,
) -> radsweep::sort::Result<SortReport> {
    match *device {}
}

/// Returns whether the keys did not fit in the device's memory.
fn is_out_of_memory(error: &radsweep::sort::Error) -> bool {
    match error {
        #[cfg(cuda)]
        radsweep::sort::Error::Gpu(radsweep::gpu::Error::OutOfMemory { .. }) => true,
        _ => false,
    }
}

/// Returns 0, 1, 2 and so on, one number per key.
fn iota(keys: usize) -> radsweep::sort::Result<Vec<u32>> {
    let limit = u64::from(u32::MAX);
    match u32::try_from(keys) {
        Ok(count) => Ok((0..count).collect()),
        Err(_) => Err(radsweep::sort::Error::TooManyKeys {
            keys: keys as u64,
            limit,
        }),
    }
}

fn print(args: &Sort, key_type: &str, report: &SortReport) -> Result<()> {
    let stages: Stages = report.stages.iter().copied().collect();
    let mut out = beside([args.output.as_deref(), args.index.as_deref()]);
    if args.json {
        let record = json!({
            "n": report.n,
            "type": key_type,
            "algorithm": report.algorithm,
            "backend": report.backend,
            "ms": round(report.total_ms),
            "stages": stages.json(report.total_ms),
            "passes": report.passes_run,
            "passes_skipped": report.passes_skipped,
            "early_exit": report.early_exit,
        });
        return Ok(writeln!(out, "{record}")?);
    }
    let (n, algorithm, backend) = (report.n, report.algorithm, report.backend);
    let (run, skipped) = (report.passes_run, report.passes_skipped);
    let early = if report.early_exit {
        ", stopped early: already in order"
    } else {
        ""
    };
    let (keys, passes) = (
        counted(n, "key", "keys"),
        counted(run.into(), "pass", "passes"),
    );
    writeln!(
        out,
        "{keys} of {key_type}, {algorithm} on {backend}: {passes}, {skipped} skipped{early}\n"
    )?;
    Ok(stages.print(&mut out, ("total", report.total_ms), 1)?)
}
