//! The launches of a part of a frame, and the times of their stages.

use radsweep::wgpu_device::wgpu::{BindGroup, Buffer, CommandEncoder};
use radsweep::wgpu_device::{Device, Kernel, Result, StageTimes, Stages};
use radsweep_kernels::wgsl::WORKGROUP;

/// Max passes of a part of a frame.
const MAX_PASSES: u32 = 16;

/// Launches that are submitted together.
pub(super) struct Work<'a> {
    pub device: &'a Device,
    pub encoder: CommandEncoder,
    stages: Stages,
}

/// A kernel with its buffers, and the number of workgroups.
pub(super) struct Step<'a>(&'a Kernel, BindGroup, u32);

impl<'a> Work<'a> {
    pub fn new(device: &'a Device) -> Result<Self> {
        Ok(Self {
            device,
            encoder: device.encoder("frame of a scene")?,
            stages: Stages::new(device, MAX_PASSES)?,
        })
    }

    /// Returns a launch with a thread for each of `items`.
    pub fn step<'k>(
        &self,
        kernel: &'k Kernel,
        buffers: &[(u32, &Buffer)],
        items: u32,
    ) -> Result<Step<'k>> {
        let all = buffers
            .iter()
            .map(|&(at, buffer)| (at, buffer.as_entire_binding()));
        let all: Vec<_> = all.collect();
        let bound = kernel.bind(self.device, &all)?;
        Ok(Step(kernel, bound, items.div_ceil(WORKGROUP)))
    }

    /// Adds launches, one after the other, to a stage.
    pub fn stage(&mut self, name: &'static str, steps: &[Step<'_>]) {
        let mut pass = self.stages.pass(&mut self.encoder, name);
        for Step(kernel, bound, groups) in steps {
            kernel.launch(&mut pass, bound, *groups);
        }
    }

    pub fn submit(self) -> Result<StageTimes> {
        self.stages.submit(self.device, self.encoder)
    }
}

/// Waits for the milliseconds of each stage, from the begin of its first pass to the end of its
/// last. There are none where the device measures no times.
pub(super) fn wait(times: StageTimes) -> Result<Vec<(&'static str, f64)>> {
    let mut stages: Vec<(&'static str, [f64; 2])> = Vec::new();
    for (name, [begin, end]) in times.spans()? {
        match stages.last_mut() {
            Some((last, span)) if *last == name => span[1] = end,
            _ => stages.push((name, [begin, end])),
        }
    }
    let lengths = stages
        .into_iter()
        .map(|(name, [begin, end])| (name, end - begin));
    Ok(lengths.collect())
}
