//! Measures updates of boxes that lie on several GPUs, beside one GPU with all of them and with the
//! boxes of one rank.
//!
//! `cargo bench -p radsweep-dist --features cuda --bench bench_devices [-- [BOXES OF A RANK]
//! [FRAMES] [driver|nccl|host|all] [STEP]]`
//!
//! Arguments are told apart by their order: one can be left out with all that follow it.
//!
//! It measures all ways from device to device, one after the other, if none is chosen.
//!
//! Every rank brings the boxes of its own slab of a uniform scene. From frame to frame they move by
//! `STEP` or less on each axis, forth and back between four places: 0.02, or what is given. Their
//! sides are 0.4 to 1. Times are medians in milliseconds, from the call to the end of its work.

mod measured;

use measured::{Way, arguments, devices, median, ways};
use sap::{Aabb, Backend, BroadPhase};
use sap_dist::{
    Config, DeviceDistributed, DeviceFrame, DeviceTransport, Nccl, Peers, Report, Staged, Threads,
    Transport,
};
use std::error::Error;
use std::time::{Duration, Instant};

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

const PLACES: usize = 4;
/// The boxes at each of their places.
type Places = [Vec<Aabb>; PLACES];

/// Returns the place at which boxes are in a frame.
fn place(frame: usize) -> usize {
    const TURNS: usize = PLACES - 1;
    TURNS - (frame % (2 * TURNS)).abs_diff(TURNS)
}

/// The boxes of a slab, each of which has a volume of 1 to itself.
fn slab(rank: usize, boxes: usize, step: f32) -> Places {
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
        let by = [(); 3].map(|()| random(-step, step));
        std::array::from_fn::<_, PLACES, _>(|place| {
            let at = |k: usize, sign: f32| center[k] + place as f32 * by[k] + sign * half[k];
            Aabb::new(
                std::array::from_fn(|k| at(k, -1.0)),
                std::array::from_fn(|k| at(k, 1.0)),
            )
        })
    };
    let mut places = Places::default();
    for _ in 0..boxes {
        for (place, at) in places.iter_mut().zip(one()) {
            place.push(at);
        }
    }
    places
}

/// Returns the median time of an update of one engine, and its pairs of the last frame.
fn one_engine(all: &Places, frames: usize) -> Result<(f64, u64)> {
    let config = sap::Config {
        backend: Backend::Cuda,
        ..sap::Config::default()
    };
    let mut broad_phase = BroadPhase::new(config)?;
    let stream = broad_phase
        .stream()
        .cloned()
        .ok_or("the engine has no device")?;
    let upload = |boxes: &Vec<Aabb>| stream.from_slice(boxes);
    let boxes = all.iter().map(upload).collect::<gpu::Result<Vec<_>>>()?;
    let (mut times, mut pairs) = (Vec::new(), 0);
    for frame in 0..frames {
        let start = Instant::now();
        pairs = broad_phase
            .update_device(boxes[place(frame)].slice())?
            .pairs;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok((median(times.split_off(frames / 4)), pairs))
}

const LIMIT: Duration = Duration::from_secs(60);

/// Returns the median time of an update of all ranks, and the last report.
fn all_ranks(way: Way, parts: &[Places], frames: usize) -> Result<(f64, Report)> {
    let run = |threads: &mut Threads| -> Result<(f64, Report)> {
        let broad_phase = DeviceDistributed::new(Config::default(), threads.rank())?;
        match way {
            Way::Driver => {
                let transport = Peers::new(threads, broad_phase.stream().device())?;
                one_rank(transport, broad_phase, parts, frames)
            }
            Way::Nccl => {
                let transport = Nccl::new(threads, broad_phase.stream(), LIMIT)?;
                one_rank(transport, broad_phase, parts, frames)
            }
            Way::Host => one_rank(Staged::new(threads), broad_phase, parts, frames),
        }
    };
    let mut results = Threads::run(parts.len(), LIMIT, run)?;
    results.swap_remove(0)
}

fn one_rank(
    mut transport: impl DeviceTransport,
    mut broad_phase: DeviceDistributed,
    parts: &[Places],
    frames: usize,
) -> Result<(f64, Report)> {
    let rank = transport.rank();
    let stream = broad_phase.stream().clone();
    let first = parts[..rank].iter().map(|part| part[0].len() as u64).sum();
    let part = &parts[rank];
    let upload = |boxes: &Vec<Aabb>| stream.from_slice(boxes);
    let boxes = part.iter().map(upload).collect::<gpu::Result<Vec<_>>>()?;
    let mut times = Vec::new();
    for frame in 0..frames {
        transport.barrier()?;
        let start = Instant::now();
        let frame = DeviceFrame::from_id(first, boxes[place(frame)].slice());
        broad_phase.update(&mut transport, frame)?;
        stream.synchronize()?;
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
    let ways = ways(arguments.next().as_deref())?;
    let step = arguments.next().map_or(Ok(0.02), |word| word.parse())?;
    let Some(ranks) = devices() else {
        return Ok(());
    };
    let parts = Threads::run(ranks, LIMIT, |threads| slab(threads.rank(), boxes, step))?;
    println!("{boxes} boxes a rank, {ranks} GPUs");
    let (one, _) = one_engine(&parts[0], frames)?;
    println!("{one:.3} ms one GPU, {boxes} boxes");
    let all = std::array::from_fn(|place| {
        let of_rank: Vec<_> = parts.iter().map(|part| &part[place][..]).collect();
        of_rank.concat()
    });
    // All boxes may need more memory than one GPU has.
    let whole = one_engine(&all, frames);
    drop(all);
    match &whole {
        Ok((ms, pairs)) => println!("{ms:.3} ms one GPU, all boxes, {pairs} pairs"),
        Err(error) => println!("not measured on one GPU, all boxes: {error}"),
    }
    for &way in &ways {
        let (ms, report) = match all_ranks(way, &parts, frames) {
            Ok(measured) => measured,
            Err(error) if ways.len() > 1 => {
                println!("not measured by {way}: {error}");
                continue;
            }
            Err(error) => return Err(error),
        };
        println!("{ms:.3} ms {ranks} GPUs by {way}, all boxes");
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
