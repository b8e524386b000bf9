//! The program `radsweep-mpi`: the pairs of a file of boxes, found by all ranks of `mpirun`.

use clap::{Parser, Subcommand};
use npyz::WriterBuilder;
use sap::{Aabb, OnInvalid, OverlapRule};
use sap_dist::{Config, Distributed, Frame, Pair, RankReport, Reduce, Transport};
use sap_mpi::Mpi;
use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Finds overlapping boxes on all ranks of mpirun.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Finds the pairs of a file of boxes. Each rank reads its part.
    Pairs(Pairs),
    /// Measures an update for each of several files of boxes, such as the frames of a simulation.
    /// Prints a line of JSON for each: pairs, a hash of them in any order, and the milliseconds of
    /// the slowest rank.
    Bench(Bench),
}

#[derive(clap::Args)]
struct Pairs {
    /// A .npy file of float32 (n, 6): min xyz, then max xyz.
    boxes: PathBuf,
    /// Writes the pairs as a .npy file of uint64 (m, 2), sorted.
    #[arg(short, long, value_name = "PAIRS.npy")]
    output: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

#[derive(clap::Args)]
struct Bench {
    /// A file for each update, as for `pairs`.
    #[arg(required = true)]
    frames: Vec<PathBuf>,
    #[command(flatten)]
    options: Options,
}

#[derive(clap::Args)]
struct Options {
    /// Boxes that only touch do not overlap.
    #[arg(long)]
    open: bool,
    /// Skips boxes that are NaN or inverted.
    #[arg(long)]
    skip_invalid: bool,
    /// Threads that a rank works on [default: those of its machine].
    #[arg(long)]
    threads: Option<NonZero<usize>>,
    /// Seconds that a call waits for the other ranks.
    #[arg(long, default_value_t = 60)]
    limit: u64,
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    let (Command::Pairs(Pairs { options, .. }) | Command::Bench(Bench { options, .. })) = &command;
    let Some(universe) = mpi::initialize() else {
        eprintln!("radsweep-mpi: MPI does not start");
        return ExitCode::FAILURE;
    };
    let limit = Duration::from_secs(options.limit);
    let mut transport = match Mpi::new(&universe.world(), limit) {
        Ok(transport) => transport,
        Err(error) => {
            eprintln!("radsweep-mpi: {error}");
            return ExitCode::FAILURE;
        }
    };
    let done = Distributed::new(options.config())
        .map_err(Into::into)
        .and_then(|broad_phase| match &command {
            Command::Pairs(pairs) => run(pairs, broad_phase, &mut transport),
            Command::Bench(bench) => measure(bench, broad_phase, &mut transport),
        });
    if let Err(error) = done {
        eprintln!("radsweep-mpi: rank {}: {error}", transport.rank());
        transport.abort(); // the others may wait for this rank
    }
    ExitCode::SUCCESS
}

impl Options {
    fn config(&self) -> Config {
        Config {
            rule: if self.open {
                OverlapRule::Open
            } else {
                OverlapRule::Closed
            },
            on_invalid: if self.skip_invalid {
                OnInvalid::Skip
            } else {
                OnInvalid::Error
            },
            events: false,
            threads: self.threads,
            ..Config::default()
        }
    }
}

fn run(
    arguments: &Pairs,
    mut broad_phase: Distributed,
    transport: &mut Mpi,
) -> Result<(), Box<dyn Error>> {
    let (first, boxes) = read(&arguments.boxes, transport.rank(), transport.size())?;
    broad_phase.update(transport, Frame::from_id(first, &boxes))?;
    let report = broad_phase.report();
    if transport.rank() == 0 {
        println!("{} boxes, {} pairs\n{report}", report.boxes, report.pairs);
    }
    let pairs = report.pairs;
    match &arguments.output {
        Some(output) => write(output, pairs, broad_phase.pairs(), transport),
        None => Ok(()),
    }
}

fn measure(
    arguments: &Bench,
    mut broad_phase: Distributed,
    transport: &mut Mpi,
) -> Result<(), Box<dyn Error>> {
    for path in &arguments.frames {
        let (first, boxes) = read(path, transport.rank(), transport.size())?;
        transport.barrier()?;
        let begun = Instant::now();
        broad_phase.update(transport, Frame::from_id(first, &boxes))?;
        let mut whole = [begun.elapsed().as_nanos() as u64];
        transport.all_reduce(&mut whole, Reduce::Max)?;
        let pairs = broad_phase.pairs().iter();
        let mut hash = [pairs.fold(0, |sum: u64, pair| sum.wrapping_add(hash(pair)))];
        transport.all_reduce(&mut hash, Reduce::Sum)?;
        if transport.rank() == 0 {
            let report = broad_phase.report();
            let slowest =
                |step: fn(&RankReport) -> f64| report.ranks.iter().map(step).fold(0.0, f64::max);
            println!(
                "{{\"pairs\":{},\"hash\":\"{:016x}\",\"ms\":{{\"whole\":{:.3},\"plan\":{:.3},\
                 \"send\":{:.3},\"search\":{:.3},\"return\":{:.3},\"order\":{:.3}}}}}",
                report.pairs,
                hash[0],
                whole[0] as f64 * 1e-6,
                slowest(|rank| rank.timings.plan),
                slowest(|rank| rank.timings.send),
                slowest(|rank| rank.timings.search),
                slowest(|rank| rank.timings.return_pairs),
                slowest(|rank| rank.timings.order),
            );
        }
    }
    Ok(())
}

/// Returns the hash of a pair. The sum of them does not depend on the order.
fn hash(pair: &Pair) -> u64 {
    let mix = |x: u64| {
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    mix(mix(pair.a).wrapping_add(pair.b))
}

/// Reads the boxes of a rank, and returns them with the index of the first.
fn read(path: &Path, rank: usize, ranks: usize) -> Result<(u64, Vec<Aabb>), Box<dyn Error>> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(|error| named(&error))?;
    let file = npyz::NpyFile::new(BufReader::new(file)).map_err(|error| named(&error))?;
    let &[n, 6] = file.shape() else {
        return Err(named(&format!("the shape is {:?} and not (n, 6)", file.shape())).into());
    };
    let border = |rank: usize| (u128::from(n) * rank as u128 / ranks as u128) as u64;
    let (from, to) = (border(rank), border(rank + 1));
    let mut data = file.data::<f32>().map_err(|error| named(&error))?;
    data.seek_to(6 * from).map_err(|error| named(&error))?;
    let numbers: Result<Vec<f32>, _> = data.take(6 * (to - from) as usize).collect();
    let numbers = numbers.map_err(|error| named(&error))?;
    let (rows, _) = numbers.as_chunks::<6>();
    Ok((
        from,
        rows.iter().map(|row| Aabb::from_min_max(*row)).collect(),
    ))
}

/// Sends all pairs to rank 0, which writes them. Ids come in the order of the ranks, so the pairs
/// do too.
fn write(path: &Path, count: u64, own: &[Pair], transport: &mut Mpi) -> Result<(), Box<dyn Error>> {
    let mut messages = vec![Vec::new(); transport.size()];
    messages[0] = bytemuck::cast_slice(own).to_vec();
    let all = transport.exchange(messages)?;
    if transport.rank() > 0 {
        return Ok(());
    }
    let mut file = BufWriter::new(File::create(path)?);
    let options = npyz::WriteOptions::new().default_dtype().shape(&[count, 2]);
    let mut writer = options.writer(&mut file).begin_nd()?;
    for message in &all {
        writer.extend(bytemuck::pod_collect_to_vec::<u8, u64>(message))?;
    }
    writer.finish()?;
    file.flush()?;
    Ok(())
}
