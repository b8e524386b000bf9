//! Sorts the same keys with `gpusort` on `wgpu`, `lampshade` and `wgpu_sort`, on one GPU:
//! `wgpu-peers [--software] [SIZE…]`, by default 2^16 to 2^26 keys.
//!
//! It prints one JSON object a line, with rates in billion keys per second. A rate is that of
//! several sorts in one submission, and the median of several submissions; the three take turns.
//! Each result is compared with that of the CPU. Sorts in place get their keys back by a copy
//! before each sort, whose own time is measured and taken off.

mod older;

use gpusort::wgpu::{Payload, PreparedSort, Request, Sorter, SorterConfig};
use gpusort::{SortOptions, cpu};
use std::error::Error;
use std::time::{Duration, Instant};
use wgpu_device::wgpu::{Buffer, CommandEncoder, ComputePassDescriptor};
use wgpu_device::{BufferUsages, Device, bench_arguments};

type Outcome<T> = Result<T, Box<dyn Error>>;

const SUBMISSIONS: usize = 9;
/// The keys of a submission, at least: enough that its start and its wait count little.
const SUBMITTED_KEYS: usize = 1 << 28;
/// How long the device works before each measurement: an idle one has a lower clock.
const WARM_UP: Duration = Duration::from_millis(300);

/// The keys of a measurement with their values, and both in order.
struct Given {
    keys: Vec<u32>,
    values: Vec<u32>,
    sorted: Vec<u32>,
    moved: Vec<u32>,
}

/// A sort of given keys on the device.
trait Contender {
    fn name(&self) -> &'static str;
    /// Submits so many sorts, or only what prepares each, and waits for them. Returns the seconds.
    fn run(&mut self, repeats: usize, what: What) -> Outcome<f64>;
    /// Returns the keys and values of the last sort; no values if it moves none.
    fn result(&mut self) -> Outcome<[Vec<u32>; 2]>;
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    Sorts,
    /// What a sort in place needs before it.
    Copies,
}

fn main() -> Outcome<()> {
    let (adapters, mut sizes) = bench_arguments()?;
    if sizes.is_empty() {
        sizes.extend((16..=26).step_by(2).map(|bits| 1 << bits));
    }
    let device = Device::new(adapters)?;
    let older = older::Opened::new(device.is_software())?;
    for n in sizes {
        let given = Given::new(n)?;
        let repeats = if device.is_software() {
            1
        } else {
            (SUBMITTED_KEYS / n).clamp(1, 100)
        };
        for with_values in [false, true] {
            let mut all: Vec<Box<dyn Contender + '_>> = vec![
                Box::new(Ours::new(&device, &given, with_values)?),
                Box::new(Lampshade::new(&device, &given, with_values)?),
            ];
            if with_values {
                all.push(Box::new(older.sort(&given)));
            }
            measure(&device, &given, &mut all, repeats, with_values)?;
        }
    }
    Ok(())
}

fn measure(
    device: &Device,
    given: &Given,
    all: &mut [Box<dyn Contender + '_>],
    repeats: usize,
    with_values: bool,
) -> Outcome<()> {
    let n = given.keys.len();
    let mut times = vec![Vec::new(); all.len()];
    let begin = Instant::now();
    while begin.elapsed() < WARM_UP && !device.is_software() {
        all[0].run(repeats, What::Sorts)?;
    }
    for _ in 0..SUBMISSIONS {
        for (contender, times) in all.iter_mut().zip(&mut times) {
            let copies = contender.run(repeats, What::Copies)?;
            times.push(contender.run(repeats, What::Sorts)? - copies);
        }
    }
    for (contender, times) in all.iter_mut().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let [keys, values] = contender.result()?;
        let right = keys == given.sorted && (values.is_empty() || values == given.moved);
        println!(
            "{{\"bench\":\"wgpu_peers\",\"sort\":\"{}\",\"what\":\"{}\",\"n\":{n},\
             \"gkeys_per_s\":{:.3},\"right\":{right},\"device\":\"{}\"}}",
            contender.name(),
            if with_values { "pairs" } else { "keys" },
            (n * repeats) as f64 / times[times.len() / 2] / 1e9,
            device.name(),
        );
    }
    Ok(())
}

impl Given {
    fn new(n: usize) -> Outcome<Self> {
        let mix = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let key = |i| (mix(i) ^ mix(i) >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
        let keys: Vec<u32> = (0..n).map(|i| key(i) as u32).collect();
        let values: Vec<u32> = (0..n as u32).collect();
        let (mut sorted, mut moved) = (keys.clone(), values.clone());
        cpu::sort_pairs(&mut sorted, &mut moved, &SortOptions::new())?;
        Ok(Self {
            keys,
            values,
            sorted,
            moved,
        })
    }
}

const USAGE: BufferUsages = BufferUsages::STORAGE
    .union(BufferUsages::COPY_SRC)
    .union(BufferUsages::COPY_DST);

/// The buffers of a sort from one to another.
struct Buffers {
    device: Device,
    given: [Buffer; 2],
    sorted: [Buffer; 2],
}

impl Buffers {
    fn new(device: &Device, given: &Given) -> Outcome<Self> {
        let bytes = 4 * given.keys.len() as u64;
        Ok(Self {
            device: device.clone(),
            given: [
                device.upload("keys", &given.keys, USAGE)?,
                device.upload("values", &given.values, USAGE)?,
            ],
            sorted: [
                device.buffer("sorted", bytes, USAGE)?,
                device.buffer("moved", bytes, USAGE)?,
            ],
        })
    }

    /// Submits what is recorded so many times, and returns the seconds until it is done.
    fn run(
        &self,
        repeats: usize,
        mut record: impl FnMut(&mut CommandEncoder) -> Outcome<()>,
    ) -> Outcome<f64> {
        let mut encoder = self.device.encoder("bench")?;
        for _ in 0..repeats {
            record(&mut encoder)?;
        }
        // What `wgpu` does for each command is not the device's time.
        let commands = encoder.finish();
        let start = Instant::now();
        self.device.queue().submit([commands]);
        self.device.download(&self.sorted[0], 0..4)?.wait::<u32>()?;
        Ok(start.elapsed().as_secs_f64())
    }

    fn result(&self, with_values: bool) -> Outcome<[Vec<u32>; 2]> {
        let read = |buffer: &Buffer| self.device.download(buffer, 0..buffer.size())?.wait();
        Ok([
            read(&self.sorted[0])?,
            if with_values {
                read(&self.sorted[1])?
            } else {
                Vec::new()
            },
        ])
    }
}

struct Ours {
    sort: PreparedSort,
    buffers: Buffers,
    with_values: bool,
}

impl Ours {
    fn new(device: &Device, given: &Given, with_values: bool) -> Outcome<Self> {
        let sorter = Sorter::new(device, SorterConfig::default())?;
        let payload = if with_values {
            Payload::U32
        } else {
            Payload::None
        };
        let n = given.keys.len() as u64;
        let (buffers, scratch) = (
            Buffers::new(device, given)?,
            sorter.scratch::<u32>(n, payload)?,
        );
        let Buffers { given, sorted, .. } = &buffers;
        let mut request = Request::<u32>::keys(n, &given[0], &sorted[0]);
        if with_values {
            request = request.values(&given[1], &sorted[1]);
        }
        Ok(Self {
            sort: sorter.prepare(&request, &scratch, &SortOptions::new())?,
            buffers,
            with_values,
        })
    }
}

impl Contender for Ours {
    fn name(&self) -> &'static str {
        "gpusort"
    }

    fn run(&mut self, repeats: usize, what: What) -> Outcome<f64> {
        if what == What::Copies {
            return Ok(0.0);
        }
        self.buffers.run(repeats, |encoder| {
            self.sort.begin(encoder);
            let descriptor = ComputePassDescriptor::default();
            self.sort
                .launch(&mut encoder.begin_compute_pass(&descriptor));
            Ok(())
        })
    }

    fn result(&mut self) -> Outcome<[Vec<u32>; 2]> {
        self.buffers.result(self.with_values)
    }
}

struct Lampshade {
    keys: lampshade::Sorter,
    pairs: Option<lampshade::KeyValueSoaSorter>,
    buffers: Buffers,
}

impl Lampshade {
    fn new(device: &Device, given: &Given, with_values: bool) -> Outcome<Self> {
        let (raw, queue) = (device.wgpu(), device.queue());
        let buffers = Buffers::new(device, given)?;
        let pairs = with_values.then(|| lampshade::KeyValueSoaSorter::new(raw, queue));
        let mut all = Self {
            keys: lampshade::Sorter::new_for_adapter(raw, queue, &raw.adapter_info()),
            pairs,
            buffers,
        };
        if let Some(pairs) = &mut all.pairs {
            let [keys, values] = &all.buffers.sorted;
            pairs.prepare_sort(keys, values, given.keys.len() as u32)?;
        }
        Ok(all)
    }
}

impl Contender for Lampshade {
    fn name(&self) -> &'static str {
        "lampshade"
    }

    fn run(&mut self, repeats: usize, what: What) -> Outcome<f64> {
        let Buffers { given, sorted, .. } = &self.buffers;
        let bytes = given[0].size();
        let n = (bytes / 4) as u32;
        let (sorter, pairs) = (&mut self.keys, &self.pairs);
        match pairs {
            None if what == What::Copies => Ok(0.0),
            None => self.buffers.run(repeats, |encoder| {
                Ok(sorter.record_sort(encoder, &given[0], &sorted[0], n)?)
            }),
            // In place.
            Some(pairs) => self.buffers.run(repeats, |encoder| {
                for (given, sorted) in given.iter().zip(sorted) {
                    encoder.copy_buffer_to_buffer(given, 0, sorted, 0, bytes);
                }
                if what == What::Sorts {
                    pairs.record_reserved_sort(encoder, &sorted[0], &sorted[1], n)?;
                }
                Ok(())
            }),
        }
    }

    fn result(&mut self) -> Outcome<[Vec<u32>; 2]> {
        self.buffers.result(self.pairs.is_some())
    }
}
