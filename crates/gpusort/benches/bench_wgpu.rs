//! Measures the sort on `wgpu` on the best GPU, by default of 2^16 to 2^26 keys.
//!
//! `cargo bench -p gpusort --features wgpu --bench bench_wgpu [-- [--software] SIZE…]`
//!
//! `--software` takes a software driver instead, to try the program.
//!
//! It prints one JSON object a line, with rates in billion keys per second. A rate is that
//! of several sorts in one submission, from uniform keys to other buffers, so that the waits of the
//! host do not count. It is the median of several submissions. Each result is compared once with
//! that of the CPU. The milliseconds of each stage are those of one sort of keys alone, in place.

use gpusort::wgpu::{Payload, Request, Sorter, SorterConfig, Subgroups};
use gpusort::{SortOptions, cpu};
use std::error::Error;
use std::time::{Duration, Instant};
use wgpu_device::wgpu::ComputePassDescriptor;
use wgpu_device::{BufferUsages, Device, bench_arguments};

type Outcome<T> = Result<T, Box<dyn Error>>;

const SUBMISSIONS: usize = 15;
/// The keys of a submission, at least: enough that its start and its wait count little.
const SUBMITTED_KEYS: usize = 1 << 27;
/// How long a device works before it is measured: an idle one has a lower clock.
const WARM_UP: Duration = Duration::from_millis(300);

fn main() -> Outcome<()> {
    let (adapters, mut sizes) = bench_arguments()?;
    if sizes.is_empty() {
        sizes.extend((16..=26).step_by(2).map(|bits| 1 << bits));
    }
    let device = Device::new(adapters)?;
    for subgroups in [Subgroups::Auto, Subgroups::Never] {
        let config = SorterConfig::new().subgroups(subgroups).timings(true);
        let sorter = Sorter::new(&device, config)?;
        for &n in &sizes {
            for payload in [Payload::None, Payload::U32] {
                measure(&sorter, n, payload)?;
            }
        }
    }
    Ok(())
}

fn measure(sorter: &Sorter, n: usize, payload: Payload) -> Outcome<()> {
    let device = sorter.device();
    let mix = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let keys: Vec<u32> = (0..n)
        .map(|i| ((mix(i) ^ mix(i) >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32)
        .collect();
    let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
    let bytes = 4 * n as u64;
    let input = device.upload("keys", &keys, usage)?;
    let index: Vec<u32> = (0..n as u32).collect();
    let values = device.upload("values", &index, usage)?;
    let [keys_out, values_out] = [
        device.buffer("sorted", bytes, usage)?,
        device.buffer("moved", bytes, usage)?,
    ];
    let scratch = sorter.scratch::<u32>(n as u64, payload)?;
    let request = Request::<u32>::keys(n as u64, &input, &keys_out);
    let request = match payload {
        Payload::None => request,
        _ => request.values(&values, &values_out),
    };
    let sort = sorter.prepare(&request, &scratch, &SortOptions::new())?;
    let repeats = if device.is_software() {
        1
    } else {
        (SUBMITTED_KEYS / n).clamp(1, 200)
    };
    let mut rates = Vec::new();
    let begin = Instant::now();
    while rates.len() < SUBMISSIONS {
        let mut encoder = device.encoder("bench")?;
        for _ in 0..repeats {
            sort.begin(&mut encoder);
            sort.launch(&mut encoder.begin_compute_pass(&ComputePassDescriptor::default()));
        }
        // What `wgpu` does for each command is not the device's time either.
        let commands = encoder.finish();
        let start = Instant::now();
        device.queue().submit([commands]);
        sorter.report(&scratch)?;
        if begin.elapsed() > WARM_UP || device.is_software() {
            rates.push((n * repeats) as f64 / start.elapsed().as_secs_f64() / 1e9);
        }
    }
    rates.sort_by(f64::total_cmp);
    let timed = sorter.sort_keys(&mut keys.clone(), &SortOptions::new())?;
    let mut expected = keys;
    let mut moved = index;
    cpu::sort_pairs(&mut expected, &mut moved, &SortOptions::new())?;
    let sorted: Vec<u32> = device.download(&keys_out, 0..bytes)?.wait()?;
    let is_right = sorted == expected
        && (payload == Payload::None
            || device.download(&values_out, 0..bytes)?.wait::<u32>()? == moved);
    if !is_right {
        return Err(format!("{n} keys are not sorted").into());
    }
    println!(
        "{{\"what\":\"{}\",\"n\":{n},\"subgroups\":{},\"device\":\"{}\",\"gkeys_per_s\":{:.3},\"ms\":{:.3?}}}",
        if payload == Payload::None {
            "keys"
        } else {
            "pairs"
        },
        sorter.uses_subgroups(),
        device.name(),
        rates[rates.len() / 2],
        Vec::from_iter(timed.stages.iter().map(|stage| stage.1)),
    );
    Ok(())
}
