//! `radsweep pairs`: reads boxes from a file, finds their pairs, shows the first and writes all.

mod sink;

use super::args::{Devices, Pairs, misuse};
#[cfg(cuda)]
use super::devices;
use super::table::{Stages, hex, sorts};
use radsweep::internals::PairHasher;
use radsweep::{
    Aabb, Aabb64, BroadPhase, ChunkReport, Config, Error, Frame, InvalidReason, OnInvalid,
    OverlapRule, Pair, Sorts,
};
use radsweep_common::Result;
use radsweep_common::backend::{self, Fallback, note_sort};
use radsweep_common::npy::{self, Boxes};
use radsweep_common::numbers::counted;
use radsweep_common::output::{self, beside, has_ending, is_dash, is_same, is_text};
use radsweep_common::terminal::{ProgressBar, note, progress, spinner};
use serde_json::{Value, json};
use sink::Sink;
use std::io::Write;
use std::mem;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::time::Instant;

/// Max memory of the list of pairs: 32 Mi pairs, which the CPU holds twice while it sorts them.
/// More are found in chunks, which takes about two updates.
const PAIR_MEMORY: u64 = 1 << 28;
/// Pairs per chunk: 32 MiB.
const CHUNK: usize = 1 << 22;
/// Pairs that the report shows.
const SHOWN: usize = 10;

/// The boxes, by the names of their files.
struct Inputs<'a> {
    boxes: Boxes,
    path: &'a Path,
    /// The boxes of `--between`.
    other: Option<(Boxes, &'a Path)>,
}

/// The pairs found, and how.
struct Found {
    pairs: u64,
    hash: u64,
    first: Vec<Pair>,
    stages: Stages,
    total_ms: f64,
    /// The strategy and the sorts of an update; `None` for other calls, which do not report them.
    strategy: Option<&'static str>,
    sorts: Option<Sorts>,
    /// What each of several devices did, as a table and as JSON.
    ranks: Option<(String, Value)>,
}

/// The invalid boxes that were skipped.
struct Skipped {
    count: u64,
    /// The file of the first, its index, and what is wrong with it.
    file: String,
    first: usize,
    reason: InvalidReason,
}

pub(super) fn run(args: &Pairs) -> Result<()> {
    let config = Config {
        rule: if args.open {
            OverlapRule::Open
        } else {
            OverlapRule::Closed
        },
        on_invalid: if args.skip_invalid {
            OnInvalid::Skip
        } else {
            OnInvalid::Error
        },
        events: false,
        pair_memory: Some(PAIR_MEMORY),
        ..args.engine.config()
    };
    if is_dash(&args.boxes) && args.between.as_deref().is_some_and(is_dash) {
        return Err(misuse("stdin can be read only once: name a file"));
    }
    if let Some(output) = &args.output {
        let inputs = [Some(&args.boxes), args.between.as_ref()];
        if inputs.iter().flatten().any(|input| is_same(input, output)) {
            let name = output.display();
            return Err(misuse(format!(
                "--output names {name}, a file of boxes to read"
            )));
        }
        let name = output.display();
        if args.csv && has_ending(output, &["npy"]) {
            return Err(misuse(format!(
                "--csv writes text, but {name} ends in .npy: leave out --csv, or name a .csv file"
            )));
        }
        if !args.csv && is_text(output) && !sink::is_csv(output) {
            return Err(misuse(format!("to write text to {name}, add --csv")));
        }
    }
    // Missing devices and unwritable outputs fail before the work starts.
    if let Some(devices) = args.devices {
        devices.check(config.backend)?;
        return on_devices(args, devices, &config);
    }
    let mut broad_phase = backend::broad_phase(config)?;
    let mut fallback = Fallback::default();
    fallback.report(&broad_phase);
    note_sort(&[args.engine.sort], broad_phase.report().stats.backend);
    let mut sink = Sink::create(args)?;
    let bar = spinner("reading");
    let inputs = Inputs::read(args)?;
    bar.set_message("finding pairs");
    let mut work = Work {
        broad_phase: &mut broad_phase,
        sink: &mut sink,
        bar,
    };
    let found = match &inputs.other {
        None => work.among(&inputs)?,
        Some((other, _)) => work.between(&inputs, other)?,
    };
    work.bar.finish_and_clear();
    fallback.report(&broad_phase);
    sink.finish()?;
    let backend = broad_phase.report().stats.backend.name();
    print(args, &found, &inputs, backend)
}

/// Finds the pairs on several devices.
#[cfg(cuda)]
fn on_devices(args: &Pairs, devices: Devices, config: &Config) -> Result<()> {
    use radsweep::Backend;

    let mut work = devices::Work::new(devices, config)?;
    let mut sink = Sink::create(args)?;
    let bar = spinner("reading");
    let inputs = Inputs::read(args)?;
    bar.set_message("finding pairs");
    let name = output::name(inputs.path, "stdin").display().to_string();
    let updated = work.update(&inputs.boxes, &name)?;
    let mut tally = Tally::begin(&mut sink, updated.pairs)?;
    work.for_each_chunk(|pairs| tally.take(pairs))?;
    let found = Found {
        ranks: Some(updated.ranks),
        ..tally.found(updated.ms)
    };
    bar.finish_and_clear();
    sink.finish()?;
    print(args, &found, &inputs, Backend::Cuda.name())
}
#[cfg(not(cuda))]
fn on_devices(_: &Pairs, _: Devices, _: &Config) -> Result<()> {
    backend::device().map(drop).map_err(Into::into)
}

impl<'a> Inputs<'a> {
    fn read(args: &'a Pairs) -> Result<Self> {
        let mut boxes = npy::read_boxes(&args.boxes)?;
        let mut other = None;
        if let Some(path) = args.between.as_deref() {
            let mut others = npy::read_boxes(path)?;
            // One of f32 and one of f64 are compared in f64.
            if mem::discriminant(&boxes) != mem::discriminant(&others) {
                for set in [&mut boxes, &mut others] {
                    if let Boxes::F32(narrow) = set {
                        *set = widened(narrow);
                    }
                }
            }
            other = Some((others, path));
        }
        Ok(Self {
            boxes,
            path: &args.boxes,
            other,
        })
    }

    /// Puts the name of the file before a message about a box.
    fn blame(&self, error: &Error) -> String {
        let path = match (error, &self.other) {
            // The first set is checked first. The invalid box is in the second only where the first
            // has none at that index.
            (Error::InvalidAabb { index, .. }, Some((_, path)))
                if fault(&self.boxes, *index).is_none() =>
            {
                path
            }
            _ => self.path,
        };
        format!("{}: {error}", output::name(path, "stdin").display())
    }

    /// Counts the invalid boxes.
    fn skipped(&self) -> Option<Skipped> {
        let other = self.other.as_ref().map(|(boxes, path)| (boxes, *path));
        let mut skipped: Option<Skipped> = None;
        for (boxes, path) in [(&self.boxes, self.path)].into_iter().chain(other) {
            for (index, reason) in (0..boxes.len()).filter_map(|at| Some((at, fault(boxes, at)?))) {
                skipped
                    .get_or_insert_with(|| Skipped {
                        count: 0,
                        file: output::name(path, "stdin").display().to_string(),
                        first: index,
                        reason,
                    })
                    .count += 1;
            }
        }
        skipped
    }
}

fn widened(boxes: &[Aabb]) -> Boxes {
    let wide = |one: &Aabb| Aabb64::new(one.min.map(f64::from), one.max.map(f64::from));
    Boxes::F64(boxes.iter().map(wide).collect())
}

/// Returns what is wrong with the box of this index, if there is one and it is invalid.
fn fault(boxes: &Boxes, index: usize) -> Option<InvalidReason> {
    let checked = match boxes {
        Boxes::F32(boxes) => boxes.get(index)?.check(),
        Boxes::F64(boxes) => boxes.get(index)?.check(),
    };
    checked.err()
}

fn frame(boxes: &Boxes, range: Range<usize>) -> Frame<'_> {
    match boxes {
        Boxes::F32(boxes) => Frame::boxes(&boxes[range]),
        Boxes::F64(boxes) => Frame::exact(&boxes[range]),
    }
}

/// What finds the pairs, and where they go.
struct Work<'a> {
    broad_phase: &'a mut BroadPhase,
    sink: &'a mut Sink,
    bar: ProgressBar,
}

impl Work<'_> {
    fn among(&mut self, inputs: &Inputs<'_>) -> Result<Found> {
        let boxes = frame(&inputs.boxes, 0..inputs.boxes.len());
        let report = match self.broad_phase.update(boxes) {
            Ok(report) => report.clone(),
            Err(Error::TooManyPairs { count, .. }) => return self.in_chunks(boxes, count),
            Err(error) => return Err(inputs.blame(&error).into()),
        };
        let mut tally = Tally::begin(self.sink, report.pairs)?;
        tally.take(self.broad_phase.pairs())?;
        Ok(Found {
            stages: report.stats.timings.stages().collect(),
            strategy: Some(report.stats.strategy.name()),
            sorts: Some(report.stats.sorts),
            ..tally.found(report.stats.timings.total)
        })
    }

    /// Finds more pairs than are held in memory: each chunk is written and dropped.
    fn in_chunks(&mut self, boxes: Frame<'_>, count: u64) -> Result<Found> {
        let bar = self.announce(count);
        let mut tally = Tally::begin(self.sink, count)?;
        let report = deliver(self.broad_phase, boxes, CHUNK, |pairs| {
            bar.inc(pairs.len() as u64);
            tally.take(pairs)
        })?;
        bar.finish_and_clear();
        Ok(tally.found(report.ms))
    }

    fn between(&mut self, inputs: &Inputs<'_>, other: &Boxes) -> Result<Found> {
        let (all, others) = (0..inputs.boxes.len(), frame(other, 0..other.len()));
        let start = Instant::now();
        let found = self
            .broad_phase
            .overlaps_between(frame(&inputs.boxes, all), others);
        let tally = match found {
            Ok(pairs) => {
                let mut tally = Tally::begin(self.sink, pairs.len() as u64)?;
                tally.take(&pairs)?;
                tally
            }
            Err(Error::TooManyPairs { count, limit }) => {
                let bar = self.announce(count);
                let mut tally = Tally::begin(self.sink, count)?;
                let part = (inputs.boxes.len() as u64 * limit / count / 2) as usize;
                in_parts(self.broad_phase, &inputs.boxes, others, part, |pairs| {
                    bar.inc(pairs.len() as u64);
                    tally.take(pairs)
                })?;
                bar.finish_and_clear();
                tally
            }
            Err(error) => return Err(inputs.blame(&error).into()),
        };
        Ok(tally.found(start.elapsed().as_secs_f64() * 1e3))
    }

    /// Says that there are more pairs than are held in memory, and shows their progress.
    fn announce(&self, count: u64) -> ProgressBar {
        self.bar.finish_and_clear();
        note(&format!(
            "{count} pairs exceed {} MiB: they are found in chunks, in about twice the time",
            PAIR_MEMORY >> 20
        ));
        progress(count, "pairs")
    }
}

/// Hashes the pairs on their way to the sink, and keeps the first.
struct Tally<'a> {
    sink: &'a mut Sink,
    hasher: PairHasher,
    first: Vec<Pair>,
    pairs: u64,
}

impl<'a> Tally<'a> {
    fn begin(sink: &'a mut Sink, count: u64) -> npy::Result<Self> {
        sink.begin(count)?;
        Ok(Self {
            sink,
            hasher: PairHasher::new(),
            first: Vec::new(),
            pairs: 0,
        })
    }

    fn take(&mut self, pairs: &[Pair]) -> npy::Result<()> {
        self.hasher.write(pairs);
        self.pairs += pairs.len() as u64;
        let missing = SHOWN - self.first.len();
        self.first.extend(&pairs[..missing.min(pairs.len())]);
        self.sink.append(pairs)
    }

    fn found(self, total_ms: f64) -> Found {
        Found {
            pairs: self.pairs,
            hash: self.hasher.finish(),
            first: self.first,
            stages: Stages::default(),
            total_ms,
            strategy: None,
            sorts: None,
            ranks: None,
        }
    }
}

/// Passes all pairs to `f` in chunks, up to the first error.
///
/// The broad phase has no call that stops early, so an error of `f` unwinds through it.
fn deliver(
    broad_phase: &mut BroadPhase,
    boxes: Frame<'_>,
    chunk: usize,
    mut f: impl FnMut(&[Pair]) -> npy::Result<()>,
) -> Result<ChunkReport> {
    let delivered = panic::catch_unwind(AssertUnwindSafe(|| {
        broad_phase.for_each_pair_chunk(boxes, chunk, |pairs| {
            f(pairs).unwrap_or_else(|error| panic::resume_unwind(Box::new(error)));
        })
    }));
    match delivered {
        Ok(report) => Ok(report?),
        Err(panic) => match panic.downcast::<npy::Error>() {
            Ok(error) => Err(error),
            Err(panic) => panic::resume_unwind(panic),
        },
    }
}

/// Passes all pairs between two sets to `f`, for some boxes of the first set at a time, so that the
/// pairs of a part fit in memory. It begins with `part` boxes.
fn in_parts(
    broad_phase: &mut BroadPhase,
    boxes: &Boxes,
    others: Frame<'_>,
    part: usize,
    mut f: impl FnMut(&[Pair]) -> npy::Result<()>,
) -> Result<()> {
    let (mut start, mut part) = (0, part.max(1));
    while start < boxes.len() {
        let end = boxes.len().min(start.saturating_add(part));
        match broad_phase.overlaps_between(frame(boxes, start..end), others) {
            Ok(mut pairs) => {
                pairs.iter_mut().for_each(|pair| pair.a += start as u32);
                f(&pairs)?;
                start = end;
                part = part.saturating_mul(2);
            }
            Err(Error::TooManyPairs { .. }) if end - start > 1 => part = (end - start) / 2,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn print(args: &Pairs, found: &Found, inputs: &Inputs<'_>, backend: &str) -> Result<()> {
    let n = inputs.boxes.len();
    let other = inputs.other.as_ref().map(|(boxes, _)| boxes.len());
    let hash = hex(found.hash);
    let file = sink::file(args);
    let mut out = beside([file]);
    // Without the option an invalid box would have been an error.
    let skipped = args.skip_invalid.then(|| inputs.skipped()).flatten();
    if args.json {
        let invalid = skipped.map_or(Value::Null, |skipped| {
            json!({"count": skipped.count, "file": skipped.file, "first": skipped.first, "reason": skipped.reason.to_string()})
        });
        let record = json!({
            "n": n,
            "n_other": other,
            "pairs": found.pairs,
            "hash": hash,
            "backend": backend,
            "strategy": found.strategy,
            "rule": if args.open { "open" } else { "closed" },
            "invalid": invalid,
            "sorts": found.sorts.as_ref().map(sorts),
            "ranks": found.ranks.as_ref().map(|(_, json)| json),
            "ms": found.stages.json(found.total_ms),
        });
        return Ok(writeln!(out, "{record}")?);
    }
    if let Some(skipped) = skipped {
        let count = counted(skipped.count, "invalid box", "invalid boxes");
        let (file, first, reason) = (skipped.file, skipped.first, skipped.reason);
        note(&format!(
            "skipped {count}; the first is box {first} of {file}: {reason}"
        ));
    }
    if file.is_some_and(is_dash) {
        return Ok(()); // All pairs were printed.
    }
    let pairs = counted(found.pairs, "pair", "pairs");
    match other {
        None => {
            let boxes = counted(n as u64, "box", "boxes");
            writeln!(out, "{boxes}, {pairs}, hash {hash}")?;
        }
        Some(other) => {
            let boxes = counted(other as u64, "box", "boxes");
            writeln!(out, "{n} and {boxes}, {pairs} between them, hash {hash}")?;
        }
    }
    match found.strategy {
        Some(strategy) => writeln!(out, "strategy {strategy} on {backend}\n")?,
        None => writeln!(out, "found on {backend}\n")?,
    }
    for pair in &found.first {
        writeln!(out, "{:>10} {:>10}", pair.a, pair.b)?;
    }
    match found.pairs - found.first.len() as u64 {
        0 => {}
        more if file.is_some() => writeln!(out, "… and {more} more")?,
        more => writeln!(
            out,
            "… and {more} more: --csv prints all, -o PAIRS.npy writes them"
        )?,
    }
    if !found.first.is_empty() {
        writeln!(out)?;
    }
    if let Some((table, _)) = &found.ranks {
        writeln!(out, "{table}\n")?;
    }
    Ok(found.stages.print(&mut out, ("total", found.total_ms), 1)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use radsweep::Backend;
    use radsweep_common::npy::Writer;

    const BOX: Aabb = Aabb::new([0.0; 3], [1.0; 3]);

    fn broad_phase(pair_memory: Option<u64>) -> BroadPhase {
        let config = Config {
            backend: Backend::Cpu,
            pair_memory,
            ..Config::default()
        };
        BroadPhase::new(config).expect("the CPU is there")
    }

    /// All boxes overlap, and there is memory for 10 pairs.
    #[track_caller]
    fn check(inputs: &Inputs<'_>, expected: &[Pair]) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pairs.npy");
        let mut sink = Sink::Npy(Writer::create(&path).expect("writable"));
        let mut work = Work {
            broad_phase: &mut broad_phase(Some(80)),
            sink: &mut sink,
            bar: spinner("pairing"),
        };
        let found = match &inputs.other {
            None => work.among(inputs),
            Some((other, _)) => work.between(inputs, other),
        };
        let found = found.expect("delivered");
        sink.finish().expect("written");
        let hash = radsweep::internals::pair_hash(expected);
        assert_eq!((found.pairs, found.hash), (expected.len() as u64, hash));
        assert_eq!(found.first, expected[..SHOWN]);
        let bytes = std::fs::read(&path).expect("bytes");
        let file = npyz::NpyFile::new(bytes.as_slice()).expect("a header");
        assert_eq!(file.shape(), [expected.len() as u64, 2]);
        let numbers: Vec<u32> = file.into_vec().expect("numbers");
        assert_eq!(numbers, bytemuck::cast_slice::<Pair, u32>(expected));
    }

    #[test]
    fn pairs_that_do_not_fit_in_memory_are_all_written() {
        let expected: Vec<Pair> = (0..50)
            .flat_map(|a| (a + 1..50).map(move |b| Pair { a, b }))
            .collect();
        let inputs = Inputs {
            boxes: Boxes::F32(vec![BOX; 50]),
            path: Path::new("boxes.npy"),
            other: None,
        };
        check(&inputs, &expected);
    }

    #[test]
    fn pairs_between_sets_that_do_not_fit_in_memory_are_all_written() {
        let expected: Vec<Pair> = (0..50)
            .flat_map(|a| (0..7).map(move |b| Pair { a, b }))
            .collect();
        let set = |n| widened(&vec![BOX; n]);
        let inputs = Inputs {
            boxes: set(50),
            path: Path::new("boxes.npy"),
            other: Some((set(7), Path::new("other.npy"))),
        };
        check(&inputs, &expected);
    }

    #[test]
    fn a_failing_output_ends_the_work_at_once() {
        let boxes = [BOX; 50];
        let mut broad_phase = broad_phase(None);
        let mut calls = 0;
        let done = deliver(&mut broad_phase, Frame::boxes(&boxes), 10, |_| {
            calls += 1;
            let missing = Path::new("/nowhere/at/all.npy");
            if calls == 2 {
                Writer::create(missing).map(drop)
            } else {
                Ok(())
            }
        });
        let error = done.expect_err("the output has failed").to_string();
        assert!(
            error.starts_with("cannot write /nowhere/at/all.npy"),
            "{error}"
        );
        assert_eq!(calls, 2);
    }
}
