//! Kernels: the entry points of a WGSL module.

use crate::{Device, Result};
use std::panic::{self, AssertUnwindSafe};
use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindingResource, ComputePass, ComputePipeline,
    ComputePipelineDescriptor, PipelineCompilationOptions, ShaderModule, ShaderModuleDescriptor,
    ShaderRuntimeChecks, ShaderSource,
};

/// The distance in bytes between the parameters of two launches in one buffer: the alignment of a
/// uniform that every device takes.
pub const PARAMS_STRIDE: usize = 256;

/// A module of WGSL that the device has read.
#[derive(Debug)]
pub struct Module(ShaderModule);

/// A kernel that the device has compiled.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Kernel {
    pipeline: ComputePipeline,
    name: &'static str,
}

impl Device {
    /// Reads a module of WGSL.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`](crate::Error::Failed) with the message of the compiler; those of
    /// [`Device::checked`].
    pub fn module(&self, what: &str, text: &str) -> Result<Module> {
        let read = || self.wgpu().create_shader_module(source(what, text));
        Ok(Module(self.checked("create_shader_module", read)?))
    }

    /// Reads a module of WGSL whose indices and loops are not checked at run time.
    ///
    /// # Safety
    ///
    /// Its kernels must not index outside of an array, divide by zero, or loop without an end.
    ///
    /// # Errors
    ///
    /// Those of [`Device::module`].
    pub unsafe fn trusted_module(&self, what: &str, text: &str) -> Result<Module> {
        let checks = ShaderRuntimeChecks::unchecked();
        let read = || {
            let source = source(what, text);
            // SAFETY: the caller promises what is not checked.
            unsafe { self.wgpu().create_shader_module_trusted(source, checks) }
        };
        Ok(Module(self.checked("create_shader_module_trusted", read)?))
    }
}

fn source<'a>(what: &'a str, text: &'a str) -> ShaderModuleDescriptor<'a> {
    ShaderModuleDescriptor {
        label: Some(what),
        source: ShaderSource::Wgsl(text.into()),
    }
}

impl Module {
    /// Compiles an entry point. The memory of its workgroups is not zeroed.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`](crate::Error::Failed) with the message of the compiler; those of
    /// [`Device::checked`].
    pub fn kernel(&self, device: &Device, name: &'static str) -> Result<Kernel> {
        let descriptor = ComputePipelineDescriptor {
            label: Some(name),
            layout: None,
            module: &self.0,
            entry_point: Some(name),
            compilation_options: PipelineCompilationOptions {
                zero_initialize_workgroup_memory: false,
                ..PipelineCompilationOptions::default()
            },
            cache: None,
        };
        let compile = || device.wgpu().create_compute_pipeline(&descriptor);
        let pipeline = device.checked("create_compute_pipeline", compile)?;
        Ok(Kernel { pipeline, name })
    }
}

impl Kernel {
    /// Returns the name of the entry point.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Binds the resources of group 0, all that the kernel uses and no others.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`](crate::Error::Failed) for other resources; those of [`Device::checked`].
    pub fn bind(&self, device: &Device, all: &[(u32, BindingResource<'_>)]) -> Result<BindGroup> {
        let entries: Vec<_> = all
            .iter()
            .map(|(binding, resource)| BindGroupEntry {
                binding: *binding,
                resource: resource.clone(),
            })
            .collect();
        let bind = || {
            let layout = self.pipeline.get_bind_group_layout(0);
            device.wgpu().create_bind_group(&BindGroupDescriptor {
                label: Some(self.name),
                layout: &layout,
                entries: &entries,
            })
        };
        // `wgpu` may panic here if a resource is of another instance of it.
        let call = "create_bind_group";
        let bound = device.checked(call, || panic::catch_unwind(AssertUnwindSafe(bind)))?;
        bound.map_err(|_| device.failed(call, "a resource is not of this instance".to_owned()))
    }

    /// Adds a launch of `groups` workgroups to a pass, in two dimensions if they are more than one
    /// takes: the kernel must leave out the groups beyond.
    pub fn launch(&self, pass: &mut ComputePass<'_>, bound: &BindGroup, groups: u32) {
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, bound, &[]);
        let [x, y] = grid(groups);
        pass.dispatch_workgroups(x, y, 1);
    }
}

/// The number of workgroups in a dimension that every device takes.
const MAX_GROUPS: u32 = 65_535;

fn grid(groups: u32) -> [u32; 2] {
    let y = groups.div_ceil(MAX_GROUPS).max(1);
    [groups.div_ceil(y), y]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_all_groups_and_few_more() {
        for groups in [0, 1, 65_535, 65_536, 65_537, 1 << 20, (1 << 22) + 3] {
            let [x, y] = grid(groups);
            assert!(x <= MAX_GROUPS && y <= MAX_GROUPS);
            assert!(x * y >= groups && x * y - groups < y, "{groups}");
        }
    }
}
