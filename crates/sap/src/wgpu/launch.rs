//! Launches of kernels, which are gathered and submitted together.

use super::tuning::KEPT_BATCHES;
use crate::Result;
use bytemuck::Pod;
use gpusort::wgpu::PreparedSort;
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::ops::Range;
use wgpu_device::wgpu::{
    BindGroup, BindingResource, Buffer, BufferBinding, CommandEncoder, ComputePass,
    ComputePassDescriptor,
};
use wgpu_device::{BufferUsages, Device, Download, Kernel, PARAMS_STRIDE, Stages};

/// Launches in one pass, one after the other. A pass of its own for each would take a device longer
/// than many of them do, and their bind groups the host; those of the last few batches are kept.
#[derive(Default)]
pub(super) struct Batch {
    /// The parameters of all launches, and their bytes so far.
    params: Option<Buffer>,
    bytes: Vec<u8>,
    /// What is cleared before the first launch.
    clears: Vec<(Buffer, u64)>,
    launches: Vec<Launch>,
    bind_groups: HashMap<Bindings, (BindGroup, u64)>,
    batches: u64,
    /// The milliseconds from the start of each launch to that of the next, where a benchmark has
    /// asked for them.
    pub(super) times: Option<Vec<(&'static str, f64)>>,
}

/// A kernel, where its parameters are, and its lists.
type Bindings = (Kernel, u64, Vec<(u32, Buffer)>);

enum Launch {
    Step(Kernel, BindGroup, u32),
    Sort(PreparedSort),
}

/// The bytes of the parameters of a batch.
const PARAMS_BYTES: usize = 64 * PARAMS_STRIDE;
/// The launches of a batch that are measured, at most.
const MAX_STAGES: u32 = 128;

impl Batch {
    /// Adds a launch with parameters and whole buffers.
    pub(super) fn step<T: Pod>(
        &mut self,
        device: &Device,
        kernel: &Kernel,
        params: T,
        buffers: &[(u32, &Buffer)],
        groups: u32,
    ) -> Result<()> {
        let (params, offset) = self.write_params(device, params)?;
        let lists: Vec<_> = (buffers.iter())
            .map(|&(at, buffer)| (at, buffer.clone()))
            .collect();
        let bindings = (kernel.clone(), offset, lists);
        let batches = self.batches;
        let bound = match self.bind_groups.get_mut(&bindings) {
            Some((bound, last)) => {
                *last = batches;
                bound.clone()
            }
            None => {
                let lists = buffers
                    .iter()
                    .map(|(at, buffer)| (*at, buffer.as_entire_binding()));
                let params = (0, part_of(&params, offset, size_of::<T>() as u64));
                let all: Vec<_> = std::iter::once(params).chain(lists).collect();
                let bound = kernel.bind(device, &all)?;
                self.bind_groups.insert(bindings, (bound.clone(), batches));
                bound
            }
        };
        self.launches
            .push(Launch::Step(kernel.clone(), bound, groups));
        Ok(())
    }

    /// Adds a launch that reads the start of a buffer of the caller, which is not kept.
    pub(super) fn step_of_caller<T: Pod>(
        &mut self,
        device: &Device,
        kernel: &Kernel,
        params: T,
        resources: &[(u32, BindingResource<'_>)],
        groups: u32,
    ) -> Result<()> {
        let (params, offset) = self.write_params(device, params)?;
        let params = (0, part_of(&params, offset, size_of::<T>() as u64));
        let all: Vec<_> = std::iter::once(params)
            .chain(resources.iter().cloned())
            .collect();
        let bound = kernel.bind(device, &all)?;
        self.launches
            .push(Launch::Step(kernel.clone(), bound, groups));
        Ok(())
    }

    /// Adds a sort.
    pub(super) fn sort(&mut self, sort: PreparedSort) {
        self.launches.push(Launch::Sort(sort));
    }

    /// Has the first bytes of a buffer cleared before the first launch.
    pub(super) fn clear(&mut self, buffer: &Buffer, bytes: u64) {
        self.clears.push((buffer.clone(), bytes));
    }

    /// Returns the number of launches so far.
    pub(super) fn len(&self) -> usize {
        self.launches.len()
    }

    /// Leaves out the launches after the first few.
    pub(super) fn truncate(&mut self, launches: usize) {
        self.launches.truncate(launches);
    }

    /// Submits the launches.
    pub(super) fn submit(&mut self, device: &Device) -> Result<()> {
        let encoder = self.finish(device)?;
        device.submit(encoder)?;
        Ok(())
    }

    /// Submits the launches, and copies of parts of buffers to the host.
    pub(super) fn submit_and_download(
        &mut self,
        device: &Device,
        parts: &[(&Buffer, Range<u64>)],
    ) -> Result<Download> {
        let encoder = self.finish(device)?;
        Ok(device.submit_and_download(encoder, parts)?)
    }

    /// Writes parameters, and returns where they are.
    fn write_params<T: Pod>(&mut self, device: &Device, params: T) -> Result<(Buffer, u64)> {
        if self.bytes.len() + PARAMS_STRIDE > PARAMS_BYTES {
            self.submit(device)?;
        }
        let buffer = match self.params.take() {
            Some(buffer) => buffer,
            None => {
                let usage = BufferUsages::UNIFORM | BufferUsages::COPY_DST;
                device.buffer("parameters of launches", PARAMS_BYTES as u64, usage)?
            }
        };
        self.params = Some(buffer.clone());
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(bytemuck::bytes_of(&params));
        self.bytes.resize(offset + PARAMS_STRIDE, 0);
        Ok((buffer, offset as u64))
    }

    /// Encodes the launches, and forgets them.
    fn finish(&mut self, device: &Device) -> Result<CommandEncoder> {
        let launches = std::mem::take(&mut self.launches);
        let clears = std::mem::take(&mut self.clears);
        let bytes = std::mem::take(&mut self.bytes);
        if let (Some(params), false) = (&self.params, bytes.is_empty()) {
            let write = || device.queue().write_buffer(params, 0, &bytes);
            device.checked("write_buffer", write)?;
        }
        let mut encoder = device.encoder("batch")?;
        let mut stages = match &self.times {
            Some(_) => Stages::new(device, MAX_STAGES)?,
            None => Stages::unmeasured(),
        };
        if stages.are_measured() {
            drop(stages.pass(&mut encoder, "clear"));
        }
        for (buffer, bytes) in clears {
            encoder.clear_buffer(&buffer, 0, Some(bytes));
        }
        for launch in &launches {
            if let Launch::Sort(sort) = launch {
                sort.begin(&mut encoder);
            }
        }
        if stages.are_measured() {
            for launch in &launches {
                launch.measure(&mut encoder, &mut stages);
            }
        } else if !launches.is_empty() {
            let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
            for launch in &launches {
                launch.add_to(&mut pass);
            }
        }
        self.batches += 1;
        let batches = self.batches;
        (self.bind_groups).retain(|_, (_, last)| batches - *last <= KEPT_BATCHES);
        if let Some(times) = self.times.as_mut().filter(|_| stages.are_measured()) {
            let spans = stages.submit(device, encoder)?.spans()?;
            let ends = (spans.iter().skip(1).map(|(_, [begin, _])| *begin))
                .chain(spans.last().map(|(_, [_, end])| *end));
            times.extend(
                (spans.iter().zip(ends)).map(|((name, [begin, _]), end)| (*name, end - begin)),
            );
            return Ok(device.encoder("batch")?);
        }
        Ok(encoder)
    }
}

impl Launch {
    fn add_to(&self, pass: &mut ComputePass<'_>) {
        match self {
            Self::Step(kernel, bound, groups) => kernel.launch(pass, bound, *groups),
            Self::Sort(sort) => sort.launch(pass),
        }
    }

    /// Adds the launch in a pass of its own, which is measured.
    fn measure(&self, encoder: &mut CommandEncoder, stages: &mut Stages) {
        match self {
            Self::Step(kernel, bound, groups) => {
                kernel.launch(&mut stages.pass(encoder, kernel.name()), bound, *groups);
            }
            Self::Sort(sort) => sort.measure(encoder, stages),
        }
    }
}

/// The sort of the last update, which the next may repeat.
#[derive(Default)]
pub(super) struct KeptSort(Option<(u64, u32, Vec<Buffer>, PreparedSort)>);

impl KeptSort {
    /// Returns the sort of up to `n` keys in some buffers by some bits, and prepares it if it is
    /// not that of the last update.
    pub(super) fn get(
        &mut self,
        n: u64,
        bits: u32,
        buffers: &[&Buffer],
        prepare: impl FnOnce() -> Result<PreparedSort>,
    ) -> Result<PreparedSort> {
        if let Some((kept_n, kept_bits, kept, sort)) = &self.0
            && (*kept_n, *kept_bits) == (n, bits)
            && kept.iter().eq(buffers.iter().copied())
        {
            return Ok(sort.clone());
        }
        let sort = prepare()?;
        let buffers = buffers.iter().map(|&buffer| buffer.clone()).collect();
        self.0 = Some((n, bits, buffers, sort.clone()));
        Ok(sort)
    }
}

/// Returns a resource of the first bytes of a buffer.
pub(super) fn start_of(buffer: &Buffer, bytes: u64) -> BindingResource<'_> {
    part_of(buffer, 0, bytes)
}

fn part_of(buffer: &Buffer, offset: u64, bytes: u64) -> BindingResource<'_> {
    BindingResource::Buffer(BufferBinding {
        buffer,
        offset,
        size: NonZeroU64::new(bytes),
    })
}
