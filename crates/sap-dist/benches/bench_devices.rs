//! Measures updates of boxes that lie on several GPUs, beside one GPU with all of them and with the
//! boxes of one rank.
//!
//! `cargo bench -p radsweep-dist --features cuda --bench bench_devices [-- [BOXES OF A RANK]
//! [FRAMES] [staged|nccl|both]]`
//!
//! Arguments are told apart by their order: one can be left out with all that follow it.
//!
//! It measures both ways from device to device, one after the other, if none is chosen.
//!
//! Every rank brings the boxes of its own slab of a uniform scene, which move a little from frame
//! to frame. Times are medians in milliseconds, from the call to its return.

mod measured;

use measured::{arguments, kinds, median};
use sap::{Aabb, Backend, BroadPhase};
use sap_dist::{
    Config, DeviceDistributed, DeviceFrame, DeviceTransport, Nccl, Report, Staged, Threads,
    Transport, TransportKind,
};
use std::error::Error;
use std::time::{Duration, Instant};

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// Two frames of the boxes of a slab one after the other: each has a volume of 1 to itself.
fn slab(rank: usize, boxes: usize) -> [Vec<Aabb>; 2] {
    let side = (boxes as f64).cbrt() as f32;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ rank as u64;
    let mut random = move |low: f32, high: f32| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        low + (high - low) * ((state >> 40) as f32 / (1 << 24) as f32)
    };
    let mut one = || {
        let center: [f32; 3] = std::array::from_fn(|axis| {
            random(0.0, side) + if axis == 0 { side * rank as f32 } else { 0.0 }
        });
        let half = [(); 3].map(|()| random(0.2, 0.5));
        let by = [(); 3].map(|()| random(-0.05, 0.05));
        [0.0, 1.0].map(|step| {
            let at = |k: usize, sign: f32| center[k] + step * by[k] + sign * half[k];
            Aabb::new(
                std::array::from_fn(|k| at(k, -1.0)),
                std::array::from_fn(|k| at(k, 1.0)),
            )
        })
    };
    let mut frames = [Vec::with_capacity(boxes), Vec::with_capacity(boxes)];
    for _ in 0..boxes {
        let [first, second] = one();
        frames[0].push(first);
        frames[1].push(second);
    }
    frames
}

/// Returns the median time of an update of one engine, and its pairs of the last frame.
fn one_engine(all: &[Vec<Aabb>; 2], frames: usize) -> Result<(f64, u64)> {
    let config = sap::Config {
        backend: Backend::Cuda,
        ..sap::Config::default()
    };
    let mut broad_phase = BroadPhase::new(config)?;
    let stream = broad_phase
        .stream()
        .cloned()
        .ok_or("the engine has no device")?;
    let boxes = [stream.from_slice(&all[0])?, stream.from_slice(&all[1])?];
    let (mut times, mut pairs) = (Vec::new(), 0);
    for frame in 0..frames {
        let start = Instant::now();
        pairs = broad_phase.update_device(boxes[frame % 2].slice())?.pairs;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok((median(times.split_off(frames / 4)), pairs))
}

const LIMIT: Duration = Duration::from_secs(60);

/// Returns the median time of an update of all ranks, and the last report.
fn all_ranks(
    kind: TransportKind,
    parts: &[[Vec<Aabb>; 2]],
    frames: usize,
) -> Result<(f64, Report)> {
    let run = |threads: &mut Threads| -> Result<(f64, Report)> {
        let broad_phase = DeviceDistributed::new(Config::default(), threads.rank())?;
        match kind {
            TransportKind::Nccl => {
                let transport = Nccl::new(threads, broad_phase.stream(), LIMIT)?;
                one_rank(transport, broad_phase, parts, frames)
            }
            _ => one_rank(Staged::new(threads), broad_phase, parts, frames),
        }
    };
    let mut results = Threads::run(parts.len(), LIMIT, run)?;
    results.swap_remove(0)
}

fn one_rank(
    mut transport: impl DeviceTransport,
    mut broad_phase: DeviceDistributed,
    parts: &[[Vec<Aabb>; 2]],
    frames: usize,
) -> Result<(f64, Report)> {
    let rank = transport.rank();
    let stream = broad_phase.stream().clone();
    let first = parts[..rank].iter().map(|part| part[0].len() as u64).sum();
    let part = &parts[rank];
    let boxes = [stream.from_slice(&part[0])?, stream.from_slice(&part[1])?];
    let mut times = Vec::new();
    for frame in 0..frames {
        transport.barrier()?;
        let start = Instant::now();
        let frame = DeviceFrame::from_id(first, boxes[frame % 2].slice());
        broad_phase.update(&mut transport, frame)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok((
        median(times.split_off(frames / 4)),
        broad_phase.report().clone(),
    ))
}

fn main() -> Result<()> {
    let mut arguments = arguments();
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |word| word.parse());
    let (boxes, frames) = (number(1_000_000)?, number(40)?.max(4));
    let kinds = kinds(arguments.next().as_deref())?;
    let ranks = match gpu::Device::count() {
        Ok(ranks) => ranks,
        Err(error) => {
            println!("nothing to measure: {error}");
            return Ok(());
        }
    };
    let parts = Threads::run(ranks, LIMIT, |threads| slab(threads.rank(), boxes))?;
    println!("{boxes} boxes a rank, {ranks} GPUs");
    let (one, _) = one_engine(&parts[0], frames)?;
    println!("{one:.3} ms one GPU, {boxes} boxes");
    let all = [0, 1].map(|frame| {
        let of_rank: Vec<_> = parts.iter().map(|part| &part[frame][..]).collect();
        of_rank.concat()
    });
    // All boxes may need more memory than one GPU has.
    let whole = one_engine(&all, frames);
    drop(all);
    match &whole {
        Ok((ms, pairs)) => println!("{ms:.3} ms one GPU, all boxes, {pairs} pairs"),
        Err(error) => println!("not measured on one GPU, all boxes: {error}"),
    }
    for &kind in &kinds {
        let (ms, report) = match all_ranks(kind, &parts, frames) {
            Ok(measured) => measured,
            Err(error) if kinds.len() > 1 => {
                println!("not measured over {kind}: {error}");
                continue;
            }
            Err(error) => return Err(error),
        };
        println!("{ms:.3} ms {ranks} GPUs over {kind}, all boxes");
        if let Ok((whole, pairs)) = whole {
            if report.pairs != pairs {
                return Err(format!("{} pairs, but one engine finds {pairs}", report.pairs).into());
            }
            println!("{:.2} times one GPU", whole / ms);
        }
        println!("{report}");
    }
    Ok(())
}
