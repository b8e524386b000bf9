//! The program `radsweep-mpi`: the pairs of a file of boxes, found by all ranks of `mpirun`.

use clap::{Parser, Subcommand};
use npyz::WriterBuilder;
use sap::{Aabb, OnInvalid, OverlapRule};
use sap_dist::{Config, Distributed, Frame, Pair, Transport};
use sap_mpi::Mpi;
use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

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
}

#[derive(clap::Args)]
struct Pairs {
    /// A .npy file of float32 (n, 6): min xyz, then max xyz.
    boxes: PathBuf,
    /// Writes the pairs as a .npy file of uint64 (m, 2), sorted.
    #[arg(short, long, value_name = "PAIRS.npy")]
    output: Option<PathBuf>,
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
    let Command::Pairs(pairs) = Arguments::parse().command;
    let Some(universe) = mpi::initialize() else {
        eprintln!("radsweep-mpi: MPI does not start");
        return ExitCode::FAILURE;
    };
    let limit = Duration::from_secs(pairs.limit);
    let mut transport = match Mpi::new(&universe.world(), limit) {
        Ok(transport) => transport,
        Err(error) => {
            eprintln!("radsweep-mpi: {error}");
            return ExitCode::FAILURE;
        }
    };
    if let Err(error) = run(&pairs, &mut transport) {
        eprintln!("radsweep-mpi: rank {}: {error}", transport.rank());
        transport.abort(); // the others may wait for this rank
    }
    ExitCode::SUCCESS
}

fn run(arguments: &Pairs, transport: &mut Mpi) -> Result<(), Box<dyn Error>> {
    let config = Config {
        rule: if arguments.open {
            OverlapRule::Open
        } else {
            OverlapRule::Closed
        },
        on_invalid: if arguments.skip_invalid {
            OnInvalid::Skip
        } else {
            OnInvalid::Error
        },
        events: false,
        threads: arguments.threads,
        ..Config::default()
    };
    let (first, boxes) = read(&arguments.boxes, transport.rank(), transport.size())?;
    let mut broad_phase = Distributed::new(config)?;
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
