//! Launches of kernels.

use crate::Result;
use wgpu_device::wgpu::{
    BindGroup, BindingResource, Buffer, BufferBinding, CommandEncoder, ComputePassDescriptor,
};
use wgpu_device::{BufferUsages, Device, Kernel};

/// A kernel with its resources, and the number of workgroups.
pub(super) struct Step<'a>(&'a Kernel, BindGroup, u32);

impl<'a> Step<'a> {
    /// Binds parameters and whole buffers.
    pub(super) fn new(
        device: &Device,
        kernel: &'a Kernel,
        params: &Buffer,
        buffers: &[(u32, &Buffer)],
        groups: u32,
    ) -> Result<Self> {
        let params = (0, params.as_entire_binding());
        let buffers = buffers
            .iter()
            .map(|(at, buffer)| (*at, buffer.as_entire_binding()));
        let all: Vec<_> = std::iter::once(params).chain(buffers).collect();
        Self::of(device, kernel, &all, groups)
    }

    /// Binds resources.
    pub(super) fn of(
        device: &Device,
        kernel: &'a Kernel,
        resources: &[(u32, BindingResource<'_>)],
        groups: u32,
    ) -> Result<Self> {
        Ok(Self(kernel, kernel.bind(device, resources)?, groups))
    }
}

/// Returns a resource of the first bytes of a buffer.
pub(super) fn start_of(buffer: &Buffer, bytes: u64) -> BindingResource<'_> {
    BindingResource::Buffer(BufferBinding {
        buffer,
        offset: 0,
        size: std::num::NonZeroU64::new(bytes),
    })
}

/// Adds launches to an encoder, one after the other.
pub(super) fn launch(encoder: &mut CommandEncoder, steps: &[Step<'_>]) {
    let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
    for Step(kernel, bound, groups) in steps {
        kernel.launch(&mut pass, bound, *groups);
    }
}

/// Uploads the parameters of a launch.
pub(super) fn uniform<T: bytemuck::Pod>(device: &Device, params: T) -> Result<Buffer> {
    Ok(device.upload("parameters of a launch", &[params], BufferUsages::UNIFORM)?)
}
