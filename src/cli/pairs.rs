//! `radsweep pairs`: reads boxes from a file, finds their pairs and writes them to a file.

use super::args::Pairs;
use super::table::{Stages, hex, sorts};
use radsweep::internals::PairHasher;
use radsweep::{
    Aabb, BroadPhase, ChunkReport, Config, Error, Invalid, OnInvalid, OverlapRule, Pair, Sorts,
};
use radsweep_common::Result;
use radsweep_common::backend::{self, Fallback};
use radsweep_common::npy::{self, Writer};
use radsweep_common::terminal::{note, progress, spinner};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::time::Instant;

/// Pairs per chunk when they do not all fit in memory: 32 MiB.
const CHUNK: usize = 1 << 22;

/// The pairs found, and how.
struct Found {
    pairs: u64,
    hash: u64,
    stages: Stages,
    total_ms: f64,
    invalid: Option<Invalid>,
    strategy: &'static str,
    /// The sorts of an update; `None` for other calls, which do not report them.
    sorts: Option<Sorts>,
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
        ..args.engine.config()
    };
    // Missing devices and unwritable outputs fail before the work starts.
    let mut broad_phase = backend::broad_phase(config)?;
    let mut fallback = Fallback::default();
    fallback.report(&broad_phase);
    let mut output = args.output.as_deref().map(Writer::create).transpose()?;
    let bar = spinner("reading");
    let boxes = npy::read_boxes(&args.boxes)?;
    let other = args.between.as_deref().map(npy::read_boxes).transpose()?;
    bar.set_message("pairing");
    let found = match &other {
        None => among(&mut broad_phase, &args.boxes, &boxes, &mut output)?,
        Some(other) => between(&mut broad_phase, args, &boxes, other, &mut output)?,
    };
    bar.finish_and_clear();
    fallback.report(&broad_phase);
    output.map_or(Ok(()), Writer::finish)?;
    let backend = broad_phase.report().stats.backend.name();
    print(
        args,
        &found,
        boxes.len(),
        other.map(|other| other.len()),
        backend,
    )
}

fn among(
    broad_phase: &mut BroadPhase,
    path: &Path,
    boxes: &[Aabb],
    output: &mut Option<Writer>,
) -> Result<Found> {
    let report = match broad_phase.update(boxes) {
        Ok(report) => report.clone(),
        Err(Error::TooManyPairs { count, limit }) => {
            note(&format!(
                "only {limit} of {count} pairs fit in memory: writing them in chunks"
            ));
            return in_chunks(broad_phase, boxes, count, output);
        }
        Err(error) => return Err(format!("{}: {error}", path.display()).into()),
    };
    let pairs = broad_phase.pairs();
    write(output, pairs)?;
    Ok(Found {
        pairs: report.pairs,
        hash: radsweep::internals::pair_hash(pairs),
        stages: report.stats.timings.stages().collect(),
        total_ms: report.stats.timings.total,
        invalid: report.invalid,
        strategy: report.stats.strategy.name(),
        sorts: Some(report.stats.sorts),
    })
}

/// Writes more pairs than fit in memory: each chunk is written and dropped.
fn in_chunks(
    broad_phase: &mut BroadPhase,
    boxes: &[Aabb],
    count: u64,
    output: &mut Option<Writer>,
) -> Result<Found> {
    if let Some(writer) = output {
        writer.header::<u32>(&[count, 2])?;
    }
    let bar = progress(count, "pairs");
    let mut hasher = PairHasher::new();
    let report = deliver(broad_phase, boxes, CHUNK, |pairs| {
        hasher.write(pairs);
        if let Some(writer) = output {
            writer.append::<u32>(bytemuck::cast_slice(pairs))?;
        }
        bar.inc(pairs.len() as u64);
        Ok(())
    })?;
    bar.finish_and_clear();
    Ok(Found {
        pairs: report.pairs,
        hash: hasher.finish(),
        stages: Stages::default(),
        total_ms: report.ms,
        invalid: report.invalid,
        strategy: broad_phase.config().strategy.name(),
        sorts: None,
    })
}

/// Passes all pairs to `f` in chunks, up to the first error.
///
/// The broad phase has no call that stops early, so an error of `f` unwinds through it.
fn deliver(
    broad_phase: &mut BroadPhase,
    boxes: &[Aabb],
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

fn between(
    broad_phase: &mut BroadPhase,
    args: &Pairs,
    boxes: &[Aabb],
    other: &[Aabb],
    output: &mut Option<Writer>,
) -> Result<Found> {
    let start = Instant::now();
    let pairs = broad_phase
        .overlaps_between(boxes, other)
        .map_err(|error| {
            let path = match (&error, &args.between) {
                // The first set is checked first. The bad box is in the second only where the first
                // has none at that index.
                (Error::InvalidAabb { index, .. }, Some(path))
                    if !boxes.get(*index).is_some_and(is_bad) =>
                {
                    path
                }
                _ => &args.boxes,
            };
            format!("{}: {error}", path.display())
        })?;
    let total_ms = start.elapsed().as_secs_f64() * 1e3;
    let skipped = boxes
        .iter()
        .chain(other)
        .filter(|aabb| is_bad(aabb))
        .count() as u64;
    if skipped > 0 {
        note(&format!("skipped {}", invalid_boxes(skipped)));
    }
    write(output, &pairs)?;
    Ok(Found {
        pairs: pairs.len() as u64,
        hash: radsweep::internals::pair_hash(&pairs),
        stages: Stages::default(),
        total_ms,
        invalid: None,
        strategy: broad_phase.config().strategy.name(),
        sorts: None,
    })
}

fn is_bad(aabb: &Aabb) -> bool {
    let ordered = (0..3).all(|axis| aabb.min[axis] <= aabb.max[axis]);
    !ordered && *aabb != Aabb::EMPTY
}

fn invalid_boxes(count: u64) -> String {
    let boxes = if count == 1 { "box" } else { "boxes" };
    format!("{count} invalid {boxes}")
}

fn write(output: &mut Option<Writer>, pairs: &[Pair]) -> npy::Result<()> {
    let Some(writer) = output else { return Ok(()) };
    writer.header::<u32>(&[pairs.len() as u64, 2])?;
    writer.append::<u32>(bytemuck::cast_slice(pairs))
}

fn print(args: &Pairs, found: &Found, n: usize, other: Option<usize>, backend: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let hash = hex(found.hash);
    if args.json {
        let invalid = found.invalid.map_or(Value::Null, |invalid| {
            json!({"count": invalid.count, "first": invalid.first, "reason": invalid.reason.to_string()})
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
            "ms": found.stages.json(found.total_ms),
        });
        return Ok(writeln!(out, "{record}")?);
    }
    if let Some(invalid) = found.invalid {
        let (count, first, reason) = (invalid_boxes(invalid.count), invalid.first, invalid.reason);
        note(&format!(
            "skipped {count}; the first is box {first}: {reason}"
        ));
    }
    match other {
        None => writeln!(out, "{n} boxes, {} pairs, hash {hash}", found.pairs)?,
        Some(other) => writeln!(
            out,
            "{n} and {other} boxes, {} pairs between them, hash {hash}",
            found.pairs
        )?,
    }
    writeln!(out, "strategy {} on {backend}\n", found.strategy)?;
    Ok(found.stages.print(&mut out, ("total", found.total_ms), 1)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use radsweep::Backend;

    /// 50 boxes all overlap, and there is memory for 10 pairs.
    #[test]
    fn pairs_that_do_not_fit_in_memory_are_all_written() {
        let boxes = [Aabb::new([0.0; 3], [1.0; 3]); 50];
        let config = Config {
            backend: Backend::Cpu,
            pair_memory: Some(80),
            ..Config::default()
        };
        let mut broad_phase = BroadPhase::new(config).expect("the CPU is there");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pairs.npy");
        let mut output = Some(Writer::create(&path).expect("writable"));
        let found = among(
            &mut broad_phase,
            Path::new("boxes.npy"),
            &boxes,
            &mut output,
        )
        .expect("delivered");
        output
            .map(Writer::finish)
            .expect("a writer")
            .expect("written");

        let expected: Vec<Pair> = (0..50)
            .flat_map(|a| (a + 1..50).map(move |b| Pair { a, b }))
            .collect();
        assert_eq!(
            (found.pairs, found.hash),
            (1225, radsweep::internals::pair_hash(&expected))
        );
        let bytes = std::fs::read(&path).expect("bytes");
        let file = npyz::NpyFile::new(bytes.as_slice()).expect("a header");
        assert_eq!(file.shape(), [1225, 2]);
        let numbers: Vec<u32> = file.into_vec().expect("numbers");
        assert_eq!(numbers, bytemuck::cast_slice::<Pair, u32>(&expected));
    }

    #[test]
    fn a_failing_output_ends_the_work_at_once() {
        let boxes = [Aabb::new([0.0; 3], [1.0; 3]); 50];
        let config = Config {
            backend: Backend::Cpu,
            ..Config::default()
        };
        let mut broad_phase = BroadPhase::new(config).expect("the CPU is there");
        let mut calls = 0;
        let done = deliver(&mut broad_phase, &boxes, 10, |_| {
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
