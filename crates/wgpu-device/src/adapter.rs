//! The choice of an adapter.

use crate::{Error, Result};
use std::fmt;
use std::num::ParseIntError;
use std::sync::{Mutex, PoisonError};
use wgpu::{
    Adapter, AdapterInfo, Backends, DeviceType, Instance, InstanceDescriptor, InstanceFlags,
};

/// The adapters that [`Device::new`](crate::Device::new) may choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Adapters {
    /// Graphics processors only.
    #[default]
    Real,
    /// A GPU if there is one, else a software driver.
    Any,
    /// Software drivers only, for tests.
    Software,
}

impl Adapters {
    const fn looked_for(self) -> &'static str {
        match self {
            Self::Real => "a GPU",
            Self::Any => "a GPU or a software driver",
            Self::Software => "a software driver",
        }
    }

    /// Returns the rank of an adapter of this type, the best first, or `None` if it is not asked
    /// for. A type that the driver does not tell counts as a GPU.
    const fn rank(self, of: DeviceType) -> Option<u32> {
        match (self, of) {
            (Self::Software, DeviceType::Cpu) | (Self::Any, DeviceType::Cpu) => Some(4),
            (Self::Real, DeviceType::Cpu) | (Self::Software, _) => None,
            (_, DeviceType::DiscreteGpu) => Some(0),
            (_, DeviceType::IntegratedGpu) => Some(1),
            (_, DeviceType::VirtualGpu) => Some(2),
            (_, DeviceType::Other) => Some(3),
        }
    }
}

/// An adapter of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdapterSummary {
    /// Its name and interface, such as "llvmpipe (LLVM 15.0.6, 256 bits), Vulkan".
    pub name: String,
    /// Whether it is a software driver.
    pub is_software: bool,
}

impl AdapterSummary {
    pub(crate) fn new(info: &AdapterInfo) -> Self {
        Self {
            name: format!("{}, {}", info.name, info.backend),
            is_software: info.device_type == DeviceType::Cpu,
        }
    }
}

impl fmt::Display for AdapterSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_software { " (software)" } else { "" };
        write!(f, "{}{kind}", self.name)
    }
}

/// Returns all adapters of this machine: those of Vulkan, Metal and DirectX 12, unless
/// [`set_instances`] says otherwise.
///
/// ```
/// for adapter in wgpu_device::adapters() {
///     println!("{adapter}");
/// }
/// ```
#[must_use]
pub fn adapters() -> Vec<AdapterSummary> {
    let found = enumerate(&instance());
    let infos = found.iter().map(Adapter::get_info);
    infos.map(|info| AdapterSummary::new(&info)).collect()
}

/// Returns the best adapter, the first among equals.
pub(crate) fn choose(adapters: Adapters) -> Result<Adapter> {
    let found = enumerate(&instance());
    let ranked = found.iter().filter_map(|adapter| {
        let rank = adapters.rank(adapter.get_info().device_type)?;
        Some((rank, adapter))
    });
    let best = ranked.min_by_key(|&(rank, _)| rank);
    best.map(|(_, adapter)| adapter.clone())
        .ok_or_else(|| Error::NoAdapter {
            looked_for: adapters.looked_for(),
            found: listed(&found),
        })
}

/// Returns the adapters and the sizes that the arguments of a benchmark name: real adapters, unless
/// one is `--software`, and all other arguments as numbers.
#[doc(hidden)]
pub fn bench_arguments() -> Result<(Adapters, Vec<usize>), ParseIntError> {
    // `cargo bench` adds a word to all that it runs.
    let arguments = std::env::args().skip(1).filter(|word| word != "--bench");
    let (software, sizes): (Vec<_>, Vec<_>) =
        arguments.partition(|argument| argument == "--software");
    let adapters = if software.is_empty() {
        Adapters::Real
    } else {
        Adapters::Software
    };
    let sizes = sizes
        .iter()
        .map(|size| size.parse())
        .collect::<Result<_, _>>()?;
    Ok((adapters, sizes))
}

/// How an instance is described.
static DESCRIBE: Mutex<fn() -> InstanceDescriptor> = Mutex::new(usual);

/// Describes an instance of the graphics APIs that this crate is for. In builds with debug
/// assertions it validates. It leaves out debug information of shaders, which old validation layers
/// of Vulkan refuse.
fn usual() -> InstanceDescriptor {
    InstanceDescriptor {
        backends: Backends::PRIMARY,
        flags: InstanceFlags::default() - InstanceFlags::DEBUG,
        ..InstanceDescriptor::new_without_display_handle()
    }
}

/// Sets the graphics APIs and flags with which this process looks for adapters from now on. This
/// crate reads no environment variable; a program may pass on those of `wgpu` in this way.
///
/// ```
/// use wgpu_device::wgpu::{Backends, InstanceDescriptor};
///
/// wgpu_device::set_instances(|| InstanceDescriptor {
///     backends: Backends::from_env().unwrap_or(Backends::PRIMARY),
///     ..InstanceDescriptor::new_without_display_handle_from_env()
/// });
/// ```
pub fn set_instances(describe: fn() -> InstanceDescriptor) {
    *DESCRIBE.lock().unwrap_or_else(PoisonError::into_inner) = describe;
}

fn instance() -> Instance {
    let describe = *DESCRIBE.lock().unwrap_or_else(PoisonError::into_inner);
    Instance::new(describe())
}

fn enumerate(instance: &Instance) -> Vec<Adapter> {
    pollster::block_on(instance.enumerate_adapters(Backends::all()))
}

fn listed(found: &[Adapter]) -> String {
    let all: Vec<_> = found
        .iter()
        .map(|adapter| AdapterSummary::new(&adapter.get_info()).to_string())
        .collect();
    if all.is_empty() {
        "none".to_owned()
    } else {
        all.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_is_chosen_only_if_asked_for_and_after_all_others() {
        let types = [
            DeviceType::DiscreteGpu,
            DeviceType::IntegratedGpu,
            DeviceType::VirtualGpu,
            DeviceType::Other,
        ];
        for of in types {
            assert_eq!(Adapters::Software.rank(of), None);
            assert_eq!(Adapters::Real.rank(of), Adapters::Any.rank(of));
            assert!(Adapters::Any.rank(of) < Adapters::Any.rank(DeviceType::Cpu));
        }
        assert_eq!(Adapters::Real.rank(DeviceType::Cpu), None);
        assert!(Adapters::Software.rank(DeviceType::Cpu).is_some());
        assert!(types.map(|of| Adapters::Real.rank(of)).is_sorted());
    }
}
