//! The kernels that look at the balls of a frame for the host, and make lines of their pairs.

use super::overview::Overview;
use crate::camera::View;
use crate::lines::Line;
use crate::look::LINK;
use crate::render::sun_axes;
use crate::snapshot::{FAR, MAX_LINKS};
use bytemuck::{Pod, Zeroable};
use glam::Vec4;
use radsweep::WgpuPairs;
use radsweep::wgpu_device::{BufferUsages, Device, Kernel, Result};
use radsweep_scenes::Balls;
use std::mem::offset_of;
use wgpu::{Buffer, ComputePassDescriptor};

/// `THREADS` of the kernels.
const THREADS: u32 = 128;
/// Max workgroups of the kernels: enough for a large device.
const MAX_GROUPS: u32 = 1024;
/// Threads of a workgroup that makes lines.
const LINE_THREADS: u32 = 256;

/// The kernels, and the memory of their results.
pub(super) struct Probe {
    /// Kernels that many workgroups run, each with the one that adds up their results.
    sums: [Kernel; 2],
    reaches: [Kernel; 2],
    make_lines: Kernel,
    parts: [Buffer; 2],
    overview: Buffer,
}

/// `Params` of `overview.wgsl`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Params {
    axes: [Vec4; 3],
    sun: [Vec4; 3],
    balls: u32,
    groups: u32,
    far: f32,
    unused: u32,
}

/// `Params` of `links.wgsl`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct LineParams {
    colour: [f32; 4],
    count: u32,
    width: f32,
    unused: [u32; 2],
}

const _: () = {
    assert!(size_of::<Params>() == 112);
    assert!(offset_of!(Params, sun) == 48);
    assert!(offset_of!(Params, balls) == 96);
    assert!(offset_of!(Params, groups) == 100);
    assert!(offset_of!(Params, far) == 104);
    assert!(size_of::<LineParams>() == 32);
    assert!(offset_of!(LineParams, count) == 16);
    assert!(offset_of!(LineParams, width) == 20);
};

impl Probe {
    pub fn new(device: &Device) -> Result<Self> {
        let module = device.module("overview", include_str!("overview.wgsl"))?;
        let links = device.module("links", include_str!("links.wgsl"))?;
        let kernel = |name| module.kernel(device, name);
        let part = |bytes| {
            let bytes = bytes * u64::from(MAX_GROUPS);
            device.buffer("parts of an overview", bytes, BufferUsages::STORAGE)
        };
        let read = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
        Ok(Self {
            sums: [kernel("sum_parts")?, kernel("sum_all")?],
            reaches: [kernel("reach_parts")?, kernel("reach_all")?],
            make_lines: links.kernel(device, "make_lines")?,
            parts: [part(64)?, part(48)?],
            overview: device.buffer("overview", size_of::<Overview>() as u64, read)?,
        })
    }

    /// Looks at balls for a camera, and waits for the overview.
    pub fn look(&self, balls: &Balls, view: &View) -> Result<Overview> {
        let device = balls.device();
        let groups = balls.count().div_ceil(THREADS).min(MAX_GROUPS);
        let params = Params {
            axes: [
                view.right.extend(view.slopes.x),
                view.up.extend(view.slopes.y),
                view.forward.extend(0.0),
            ],
            sun: sun_axes().map(|axis| axis.extend(0.0)),
            balls: balls.count(),
            groups,
            far: FAR,
            unused: 0,
        };
        let params = device.upload("view", &[params], BufferUsages::UNIFORM)?;
        let all = [
            &params,
            balls.at(),
            balls.velocities(),
            balls.pairs(),
            &self.parts[0],
            &self.parts[1],
            &self.overview,
        ];
        let [sum, sum_all] = &self.sums;
        let [reach, reach_all] = &self.reaches;
        let steps: [(&Kernel, &[u32], u32); 4] = [
            (sum, &[0, 1, 2, 3, 4], groups),
            (sum_all, &[0, 4, 6], 1),
            (reach, &[0, 1, 5, 6], groups),
            (reach_all, &[0, 5, 6], 1),
        ];
        let bound = steps.map(|(kernel, bindings, groups)| {
            let buffers = bindings.iter().map(|&at| (at, all[at as usize]));
            let buffers = buffers.map(|(at, buffer)| (at, buffer.as_entire_binding()));
            let bound = kernel.bind(device, &buffers.collect::<Vec<_>>());
            bound.map(|bound| (kernel, bound, groups))
        });
        let mut encoder = device.encoder("overview")?;
        let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
        for step in bound {
            let (kernel, bound, groups) = step?;
            kernel.launch(&mut pass, &bound, groups);
        }
        drop(pass);
        device.submit(encoder)?;
        let bytes = size_of::<Overview>() as u64;
        let overview: Vec<Overview> = device.download(&self.overview, 0..bytes)?.wait()?;
        Ok(overview.first().copied().unwrap_or_else(Overview::zeroed))
    }

    /// Makes lines of the first pairs, as many as are drawn, and returns their number.
    pub fn lines(&self, balls: &Balls, pairs: WgpuPairs<'_>) -> Result<Option<(Buffer, u32)>> {
        let Some((pairs, count)) = pairs.buffers().next() else {
            return Ok(None);
        };
        let device = balls.device();
        let count = count.min(MAX_LINKS as u64) as u32;
        let bytes = u64::from(count) * size_of::<Line>() as u64;
        let usage = BufferUsages::STORAGE | BufferUsages::VERTEX | BufferUsages::COPY_SRC;
        let lines = device.buffer("lines of pairs", bytes, usage)?;
        let params = LineParams {
            colour: LINK,
            count,
            width: 1.0,
            unused: [0; 2],
        };
        let params = device.upload("lines", &[params], BufferUsages::UNIFORM)?;
        let buffers = [(0, &params), (1, balls.at()), (2, pairs), (3, &lines)];
        let buffers = buffers.map(|(at, buffer)| (at, buffer.as_entire_binding()));
        let bound = self.make_lines.bind(device, &buffers)?;
        let mut encoder = device.encoder("lines of pairs")?;
        let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
        let groups = count.div_ceil(LINE_THREADS);
        self.make_lines.launch(&mut pass, &bound, groups);
        drop(pass);
        device.submit(encoder)?;
        Ok(Some((lines, count)))
    }
}
