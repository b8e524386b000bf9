//! Measures the broad phase on `wgpu` from boxes in a buffer of the device to sorted pairs in
//! buffers there.
//!
//! `cargo bench -p radsweep-sap --features wgpu --bench bench_wgpu_sweep [-- --software]
//! [n...]`
//!
//! The scene `uniform` (centres uniform in a cube of side n^(1/3), half sides uniform in 0.2 to 0.5
//! per axis) has 10,000, 100,000 and 1,000,000 boxes unless sizes are named. A shader moves all
//! boxes before each update, and the clock starts when they have moved. With events and without, it
//! prints one JSON object a line, of the update whose time is the median of 30: `ms` until the
//! device has done all of it, `call_ms` until `update_wgpu` has returned, both by the host's clock;
//! the stages of the report, and the tests. The pairs of the last update are compared with those of
//! the CPU.
//!
//! Where the device measures times, the update is measured again, launch by launch:
//! `launches` has the median microseconds from the start of each to that of the next. Each is in a
//! pass of its own then.
//!
//! `--software` takes a software driver, and `RADSWEEP_QUICK=1` small sizes and few updates.

use sap::{Aabb, Backend, BroadPhase, Config, Report, WgpuFrame};
use std::error::Error;
use std::time::Instant;
use wgpu_device::wgpu::{Buffer, ComputePassDescriptor};
use wgpu_device::{BufferUsages, Device, Kernel, bench_arguments};

type Outcome<T> = Result<T, Box<dyn Error>>;

const WARM_UP: usize = 5;
/// The updates whose launches are measured.
const MEASURED: usize = 9;

/// Moves each box by up to a fiftieth of the max side on each axis, to and fro.
const SHADER: &str = "
    @group(0) @binding(0) var<storage, read> placed: array<f32>;
    @group(0) @binding(1) var<storage, read_write> boxes: array<f32>;
    @group(0) @binding(2) var<uniform> frame: vec4<f32>;

    @compute @workgroup_size(256)
    fn step(
        @builtin(local_invocation_index) lid: u32,
        @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
    ) {
        let index = (group.y * groups.x + group.x) * 256u + lid;
        if 6u * index < arrayLength(&boxes) {
            for (var axis = 0u; axis < 3u; axis += 1u) {
                let at = 6u * index + axis;
                let shift = 0.02 * sin(frame.x + f32(at % 97u));
                boxes[at] = placed[at] + shift;
                boxes[at + 3u] = placed[at + 3u] + shift;
            }
        }
    }
";

fn main() -> Outcome<()> {
    let quick = std::env::var("RADSWEEP_QUICK").is_ok_and(|value| value == "1");
    let (adapters, mut sizes) = bench_arguments()?;
    if sizes.is_empty() {
        sizes = if quick {
            vec![1000]
        } else {
            vec![10_000, 100_000, 1_000_000]
        };
    }
    let device = Device::new(adapters)?;
    for n in sizes {
        for events in [true, false] {
            measure(&device, n, events, if quick { 3 } else { 30 })?;
        }
    }
    Ok(())
}

fn measure(device: &Device, n: usize, events: bool, updates: usize) -> Outcome<()> {
    let moving = Moving::new(device, n)?;
    let config = Config {
        events,
        ..Config::default()
    };
    let mut broad_phase = BroadPhase::on_wgpu(device, config.clone())?;
    let mut timed: Vec<([f64; 2], Report)> = Vec::new();
    for update in 0..WARM_UP + updates {
        moving.step(device, update as f32)?;
        let start = Instant::now();
        let ms = || start.elapsed().as_secs_f64() * 1e3;
        let report = broad_phase.update_wgpu(WgpuFrame::boxes(&moving.boxes, n))?;
        let (called, report) = (ms(), report.clone());
        wait(device, &moving.boxes)?;
        if update >= WARM_UP {
            timed.push(([ms(), called], report));
        }
    }
    let launches = launches(device, &mut broad_phase, &moving)?;
    let boxes: Vec<Aabb> = device.download(&moving.boxes, 0..24 * n as u64)?.wait()?;
    let mut on_cpu = BroadPhase::new(Config {
        backend: Backend::Cpu,
        ..config
    })?;
    on_cpu.update(&boxes)?;
    broad_phase.download()?;
    if broad_phase.pairs() != on_cpu.pairs() {
        return Err(format!("{n} boxes: other pairs than on the CPU").into());
    }
    timed.sort_by(|x, y| x.0[0].total_cmp(&y.0[0]));
    let ([ms, called], report) = &timed[timed.len() / 2];
    let stats = &report.stats;
    let stages: serde_json::Map<_, _> = (stats.timings.stages())
        .map(|(stage, ms)| (stage.to_owned(), ms.into()))
        .collect();
    let line = serde_json::json!({
        "bench": "wgpu_sweep", "scene": "uniform", "n": n, "events": events,
        "pairs": report.pairs, "tests": stats.tests, "strategy": stats.strategy.name(),
        "ms": ms, "call_ms": called, "min_ms": timed[0].0[0], "updates": updates, "stages": stages,
        "launches": launches,
        "device": device.name(),
    });
    println!("{line}");
    Ok(())
}

/// Measures the launches of an update: of each its name and the median of its microseconds.
fn launches(
    device: &Device,
    broad_phase: &mut BroadPhase,
    moving: &Moving,
) -> Outcome<Vec<(&'static str, f64)>> {
    let mut all: Vec<Vec<(&'static str, f64)>> = Vec::new();
    broad_phase.wgpu_launches()?;
    for update in 0..if device.has_timestamps() { MEASURED } else { 0 } {
        moving.step(device, 0.5 + update as f32)?;
        broad_phase.update_wgpu(WgpuFrame::boxes(&moving.boxes, moving.n))?;
        all.push(broad_phase.wgpu_launches()?);
    }
    // Every few updates there is one more, which draws a sample.
    let fewest = all.iter().map(Vec::len).min().unwrap_or(0);
    all.retain(|launches| launches.len() == fewest);
    let median = |at: usize| {
        let mut us: Vec<f64> = all.iter().map(|launches| 1e3 * launches[at].1).collect();
        us.sort_by(f64::total_cmp);
        (all[0][at].0, (10.0 * us[us.len() / 2]).round() / 10.0)
    };
    Ok((0..fewest).map(median).collect())
}

/// Waits until the device has done all that was submitted.
fn wait(device: &Device, any: &Buffer) -> Outcome<()> {
    device.download(any, 0..4)?.wait::<u32>()?;
    Ok(())
}

/// Boxes that a shader moves.
struct Moving {
    kernel: Kernel,
    placed: Buffer,
    boxes: Buffer,
    n: usize,
}

impl Moving {
    fn new(device: &Device, n: usize) -> Outcome<Self> {
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
        Ok(Self {
            kernel: device.module("boxes", SHADER)?.kernel(device, "step")?,
            placed: device.upload("boxes", &uniform(n), usage)?,
            boxes: device.buffer("moved boxes", 24 * n as u64, usage)?,
            n,
        })
    }

    /// Moves all boxes, and waits until they have.
    fn step(&self, device: &Device, frame: f32) -> Outcome<()> {
        let frame = device.upload("frame", &[frame, 0.0, 0.0, 0.0], BufferUsages::UNIFORM)?;
        let lists = [&self.placed, &self.boxes, &frame].map(Buffer::as_entire_binding);
        let bound: Vec<_> = (0..).zip(lists).collect();
        let bound = self.kernel.bind(device, &bound)?;
        let mut encoder = device.encoder("step")?;
        let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
        self.kernel
            .launch(&mut pass, &bound, self.n.div_ceil(256) as u32);
        drop(pass);
        device.submit(encoder)?;
        wait(device, &self.boxes)
    }
}

/// Returns the boxes of the scene.
fn uniform(n: usize) -> Vec<Aabb> {
    let side = (n as f32).cbrt();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut unit = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1_u64 << 24) as f32
    };
    let mut one = || {
        let centre: [f32; 3] = std::array::from_fn(|_| unit() * side);
        let half: [f32; 3] = std::array::from_fn(|_| 0.2 + 0.3 * unit());
        Aabb::new(
            std::array::from_fn(|axis| centre[axis] - half[axis]),
            std::array::from_fn(|axis| centre[axis] + half[axis]),
        )
    };
    (0..n).map(|_| one()).collect()
}
