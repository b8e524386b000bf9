//! An index sort: orders 200,000 transparent particles for drawing, farthest first, without moving
//! them. The sort on the CPU and, if there is a device, every sort on the GPU give the same order.
//!
//! `cargo run --release -p radsweep --example argsort`

use radsweep::sort::{SortOptions, cpu};
use std::error::Error;
use std::time::Instant;

const PARTICLES: u32 = 200_000;

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let camera = [3.0_f32, 2.0, -40.0];
    let positions: Vec<[f32; 3]> = (0..PARTICLES).map(position).collect();
    let depth: Vec<f32> = positions
        .iter()
        .map(|position| distance(*position, camera))
        .collect();

    let options = SortOptions::new().descending();
    let start = Instant::now();
    let mut order = vec![0; depth.len()];
    let report = cpu::sort_index(&depth, &mut order, &options)?;
    println!(
        "{PARTICLES} particles, farthest first: {:.2} ms by {} in {} passes",
        start.elapsed().as_secs_f64() * 1e3,
        report.algorithm,
        report.passes_run
    );
    for (name, index) in [("farthest", order[0]), ("nearest", order[order.len() - 1])] {
        let index = index as usize;
        println!(
            "{name:>9}: particle {index} at {:.2?}, {:.2} away",
            positions[index], depth[index]
        );
    }
    let wrong = order.windows(2).filter(|two| {
        let [first, second] = [two[0], two[1]].map(|index| depth[index as usize]);
        first < second || first == second && two[0] > two[1] // equal ones keep their order
    });
    let wrong = wrong.count();
    if wrong > 0 {
        return Err(format!("{wrong} particles are out of order").into());
    }
    on_a_device(&depth, &order, &options)
}

/// Returns a position in a ball, denser towards its centre; the same in every run.
fn position(index: u32) -> [f32; 3] {
    let mix = |salt: u32| {
        let mixed = (index ^ salt).wrapping_mul(0x9e37_79b1);
        (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca77) as f32 / u32::MAX as f32 - 0.5
    };
    [1, 2, 3].map(|salt| 60.0 * mix(salt * 0x1000_0001).powi(3) + mix(salt))
}

fn distance(position: [f32; 3], camera: [f32; 3]) -> f32 {
    let square: f32 = (0..3)
        .map(|axis| (position[axis] - camera[axis]).powi(2))
        .sum();
    square.sqrt()
}

#[cfg(cuda)]
fn on_a_device(
    depth: &[f32],
    expected: &[u32],
    options: &SortOptions,
) -> Result<(), Box<dyn Error>> {
    use radsweep::gpu::{Device, Stream};
    use radsweep::sort::Algorithm;
    use radsweep::sort::cuda::{Payload, Request, Sorter, SorterConfig};

    let device = match Device::first() {
        Ok(device) => device,
        Err(error) => {
            println!("no GPU: only the CPU's sort ran: {error}");
            return Ok(());
        }
    };
    println!("on {}:", device.info().name);
    let stream = Stream::new(&device)?;
    let sorter = Sorter::new(&device, SorterConfig::default())?;
    let keys = stream.from_slice(depth)?;
    let mut index = stream.alloc::<u32>(depth.len())?;
    for &algorithm in Algorithm::ALL {
        let bytes =
            Sorter::scratch_bytes_for::<f32>(algorithm, depth.len() as u64, Payload::Index)?;
        let mut scratch = stream.alloc::<u8>(bytes as usize)?;
        let options = options.clone().algorithm(algorithm);
        // The first call compiles the kernels, or loads them from the driver's cache; the second is
        // timed.
        let mut milliseconds = 0.0;
        for _ in 0..2 {
            let begin = stream.record()?;
            let request = Request::index(keys.slice(), index.slice_mut());
            sorter.sort(&stream, request, scratch.slice_mut(), &options)?;
            let end = stream.record()?;
            end.synchronize()?;
            milliseconds = begin.elapsed_ms(&end)?;
        }
        if stream.to_vec(index.slice())? != expected {
            return Err(format!("{algorithm} gives another order").into());
        }
        println!("{algorithm:>13}: {milliseconds:.3} ms, the same order");
    }
    Ok(())
}

#[cfg(not(cuda))]
fn on_a_device(_: &[f32], _: &[u32], _: &SortOptions) -> Result<(), Box<dyn Error>> {
    println!("built without the feature `cuda`: only the CPU's sort ran");
    Ok(())
}
