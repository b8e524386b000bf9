//! The program `radsweep-mpi`: the pairs of a file of boxes, found by all ranks of `mpirun`.

use clap::{Parser, Subcommand};
use mpi::topology::SimpleCommunicator;
#[cfg(cuda)]
use mpi::traits::Communicator;
use npyz::{NpyHeader, Order};
use radsweep_common::npy::{self, Element, Writer};
use radsweep_common::output;
use sap::{Aabb, OnInvalid, OverlapRule};
use sap_dist::{Config, Distributed, Frame, Pair, RankReport, Reduce, Report, Transport};
use sap_mpi::Mpi;
use std::error::Error;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
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
    /// A .npy file of float32 (n, 6), min xyz, then max xyz, or of (n, 2, 3), in C or Fortran
    /// order.
    boxes: PathBuf,
    /// Writes the pairs as a .npy file of uint64 (m, 2), sorted.
    #[arg(short, long, value_name = "PAIRS.npy")]
    output: Option<PathBuf>,
    /// Each rank works on a CUDA device. The ranks of a machine are dealt to its devices: all, or
    /// the first N.
    #[cfg(cuda)]
    #[arg(long, value_name = "all|N", value_parser = devices)]
    devices: Option<NonZero<usize>>,
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
    /// Threads that a rank works on [default: those that it may use].
    #[arg(long)]
    threads: Option<NonZero<usize>>,
    /// Seconds that a call waits for the other ranks, and as long again to find who is missing.
    #[arg(long, default_value_t = 60)]
    limit: u64,
}

fn main() -> ExitCode {
    output::remove_on_signals();
    let command = Arguments::parse().command;
    let (Command::Pairs(Pairs { options, .. }) | Command::Bench(Bench { options, .. })) = &command;
    let Some(universe) = mpi::initialize() else {
        eprintln!("radsweep-mpi: MPI does not start");
        return ExitCode::FAILURE;
    };
    let limit = Duration::from_secs(options.limit);
    let world = universe.world();
    let mut transport = match Mpi::new(&world, limit) {
        Ok(transport) => transport,
        Err(error) => {
            eprintln!("radsweep-mpi: {error}");
            return ExitCode::FAILURE;
        }
    };
    let done = match &command {
        Command::Pairs(pairs) => run(pairs, &world, &mut transport),
        Command::Bench(bench) => measure(bench, &mut transport),
    };
    if let Err(error) = done {
        // In one piece, so that lines of several ranks do not mix.
        let line = format!("radsweep-mpi: rank {}: {error}\n", transport.rank());
        let _: io::Result<()> = io::stderr().write_all(line.as_bytes());
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

/// Parses a number of devices; the max number stands for all.
#[cfg(cuda)]
fn devices(text: &str) -> Result<NonZero<usize>, String> {
    match text {
        "all" => Ok(NonZero::<usize>::MAX),
        text => text.parse().map_err(|_| "neither all nor a number".into()),
    }
}

/// Returns the device of this rank, among so many of its machine.
#[cfg(cuda)]
fn device_of(world: &SimpleCommunicator, count: NonZero<usize>) -> Result<usize, Box<dyn Error>> {
    let there = gpu::Device::count()?;
    let count = match count.get() {
        _ if there == 0 => return Err(gpu::Error::NoDevice.into()),
        usize::MAX => there,
        count if count <= there => count,
        count => return Err(format!("--devices {count}: this machine has {there}").into()),
    };
    Ok(world.split_shared(world.rank()).rank() as usize % count)
}

#[cfg_attr(not(cuda), expect(unused_variables, reason = "`world` is for devices"))]
fn run(
    arguments: &Pairs,
    world: &SimpleCommunicator,
    transport: &mut Mpi,
) -> Result<(), Box<dyn Error>> {
    let file = arguments.output.as_deref();
    let is_first = transport.rank() == 0;
    let writer = file.filter(|_| is_first).map(Writer::create).transpose()?;
    let (first, boxes) = read(&arguments.boxes, transport.rank(), transport.size())?;
    #[cfg(cuda)]
    if let Some(count) = arguments.devices {
        transport.barrier()?; // what follows waits for all ranks without a limit
        let device = device_of(world, count)?;
        let limit = Duration::from_secs(arguments.options.limit);
        let mut devices = sap_mpi::DeviceMpi::new(Mpi::new(world, limit)?)?;
        if is_first {
            let way = match devices.is_direct() {
                true => "from device to device, by MPI",
                false => "over the host",
            };
            writeln!(output::beside([file]), "memory travels {way}")?;
        }
        let mut broad_phase = sap_dist::DeviceDistributed::new(arguments.options.config(), device)?;
        let stream = broad_phase.stream().clone();
        let boxes = stream.from_slice(&boxes)?;
        let frame = sap_dist::DeviceFrame::from_id(first, boxes.slice());
        broad_phase.update(&mut devices, frame)?;
        let pairs = stream.to_vec(broad_phase.pairs())?;
        return finish(broad_phase.report(), &pairs, (file, writer), transport);
    }
    let mut broad_phase = Distributed::new(arguments.options.config())?;
    broad_phase.update(transport, Frame::from_id(first, &boxes))?;
    let (report, pairs) = (broad_phase.report(), broad_phase.pairs());
    finish(report, pairs, (file, writer), transport)
}

/// Prints the report, and sends all pairs to rank 0, which has the writer of the file. Ids come in
/// the order of the ranks, so the pairs do too.
fn finish(
    report: &Report,
    own: &[Pair],
    (file, writer): (Option<&Path>, Option<Writer>),
    transport: &mut Mpi,
) -> Result<(), Box<dyn Error>> {
    let (boxes, pairs) = (report.boxes, report.pairs);
    if transport.rank() == 0 {
        writeln!(
            output::beside([file]),
            "{boxes} boxes, {pairs} pairs\n{report}"
        )?;
    }
    if file.is_none() {
        return Ok(());
    }
    let mut messages = vec![Vec::new(); transport.size()];
    messages[0] = bytemuck::cast_slice(own).to_vec();
    let all = transport.exchange(messages)?;
    if let Some(mut writer) = writer {
        writer.header::<u64>(&[pairs, 2])?;
        for message in &all {
            writer.append(&bytemuck::pod_collect_to_vec::<u8, u64>(message))?;
        }
        writer.finish()?;
    }
    Ok(())
}

fn measure(arguments: &Bench, transport: &mut Mpi) -> Result<(), Box<dyn Error>> {
    let mut broad_phase = Distributed::new(arguments.options.config())?;
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

/// Reads the boxes of a rank, and returns them with the index of the first. In either order of the
/// file it reads no others.
fn read(path: &Path, rank: usize, ranks: usize) -> npy::Result<(u64, Vec<Aabb>)> {
    let named = |error| read_error(path, error);
    let mut file = File::open(path).map_err(named)?;
    let header = NpyHeader::from_reader(&mut file).map_err(named)?;
    let start = file.stream_position().map_err(named)?;
    let found = file.metadata().map_err(named)?.len().saturating_sub(start);
    let (n, columns) = layout(path, &header, found)?;
    let border = |rank: usize| (u128::from(n) * rank as u128 / ranks as u128) as u64;
    let (from, to) = (border(rank), border(rank + 1));
    let count = (to - from) as usize;
    let mut numbers: Vec<f32> = Vec::new();
    let reserved = numbers.try_reserve_exact(6 * count);
    reserved.map_err(|_| npy::Error::OutOfMemory {
        path: path.to_owned(),
        bytes: 24 * count as u64,
    })?;
    numbers.resize(6 * count, 0.0);
    // Rows are one after the other, or columns are.
    let (run, first) = match header.order() {
        Order::C => (6 * count, 6 * from),
        Order::Fortran => (count, from),
    };
    for (column, part) in (0..).zip(numbers.chunks_mut(run.max(1))) {
        let at = SeekFrom::Start(start + 4 * (first + n * column));
        file.seek(at).map_err(named)?;
        let bytes = bytemuck::cast_slice_mut(part);
        file.read_exact(bytes).map_err(named)?;
    }
    let place = |row: usize, k: usize| match header.order() {
        Order::C => 6 * row + k,
        Order::Fortran => count * columns[k] + row,
    };
    let of_row = |row| Aabb::from_min_max(std::array::from_fn(|k| numbers[place(row, k)]));
    Ok((from, (0..count).map(of_row).collect()))
}

/// Checks the header of a file with so many bytes of data. Returns the number of boxes, and which
/// columns of an array in Fortran order are x, y and z of the min corner, then of the max corner.
fn layout(path: &Path, header: &NpyHeader, found: u64) -> npy::Result<(u64, [usize; 6])> {
    let (path, shape) = (path.to_owned(), header.shape().to_vec());
    let descr = header.dtype().descr(); // a string of Python, or a list
    let descr = descr.trim_matches('\'');
    if descr != f32::DESCR {
        return Err(npy::Error::Type {
            path,
            expected: "<f4 (float32)",
            found: descr.to_owned(),
        });
    }
    let (n, columns) = match *shape {
        [n, 6] => (n, [0, 1, 2, 3, 4, 5]),
        [n, 2, 3] => (n, [0, 2, 4, 1, 3, 5]),
        _ => {
            return Err(npy::Error::Shape {
                path,
                expected: "(n, 6) or (n, 2, 3)".to_owned(),
                shape,
            });
        }
    };
    let expected = n.checked_mul(24);
    if expected == Some(found) {
        return Ok((n, columns));
    }
    Err(npy::Error::Length {
        path,
        shape,
        descr: f32::DESCR,
        expected,
        found,
    })
}

/// Returns the error of a file of boxes that was not read.
fn read_error(path: &Path, source: io::Error) -> npy::Error {
    let path = path.to_owned();
    match source.kind() {
        ErrorKind::IsADirectory => npy::Error::Directory { path },
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof => {
            let reason = source.to_string();
            npy::Error::Foreign { path, reason }
        }
        _ => npy::Error::Read { path, source },
    }
}
