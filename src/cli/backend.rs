//! Which backend runs, and why: what [`sap::BroadPhase`] decides for itself, for the commands that have none.

use super::Result;
use sap::{Backend, BroadPhase};

#[cfg(cuda)]
pub(crate) type Device = gpu::Device;
/// There is none without the feature `cuda`.
#[cfg(not(cuda))]
pub(crate) type Device = std::convert::Infallible;

/// The first CUDA device, or why there is none.
#[cfg(cuda)]
pub(crate) fn device() -> std::result::Result<Device, String> {
    gpu::Device::first().map_err(|error| error.to_string())
}
#[cfg(not(cuda))]
pub(crate) fn device() -> std::result::Result<Device, String> {
    Err("this build has no feature `cuda`".into())
}

/// A backend with the device that it runs on; without one it is the CPU.
#[derive(Debug)]
pub(crate) struct Choice {
    pub device: Option<Device>,
    pub why: String,
}

impl Choice {
    pub fn backend(&self) -> Backend {
        if self.device.is_some() {
            Backend::Cuda
        } else {
            Backend::Cpu
        }
    }
}

/// Warns, once, that the CPU works in the place of a GPU, and why; not where there is no driver or no device, which is no fault.
#[derive(Default)]
pub(crate) struct Fallback {
    is_told: bool,
}

impl Fallback {
    pub fn tell(&mut self, broad_phase: &BroadPhase) {
        if let Some(reason) = broad_phase.fallback().filter(|_| !self.is_told) {
            self.is_told = true;
            if has_device() {
                super::warn(&format!("going on with the CPU: {reason}"));
            }
        }
    }
}

/// Whether there are a driver and a device, or an error where they should be.
fn has_device() -> bool {
    #[cfg(cuda)]
    let found = !matches!(
        gpu::Device::count(),
        Ok(0) | Err(gpu::Error::NoDriver { .. })
    );
    #[cfg(not(cuda))]
    let found = false;
    found
}

/// What `asked` comes to here; `RADSWEEP_BACKEND` decides for [`Backend::Auto`].
pub(crate) fn choose(asked: Backend) -> Result<Choice> {
    let (wanted, asked_by) = match (asked, std::env::var("RADSWEEP_BACKEND")) {
        (Backend::Auto, Ok(name)) if !name.is_empty() => {
            (name.parse()?, "RADSWEEP_BACKEND asks for it")
        }
        (asked, _) => (asked, "--backend asks for it"),
    };
    match (wanted, device()) {
        (Backend::Cpu, _) => Ok(Choice {
            device: None,
            why: asked_by.into(),
        }),
        (Backend::Cuda, Ok(device)) => Ok(Choice {
            device: Some(device),
            why: asked_by.into(),
        }),
        (Backend::Cuda, Err(looked_for)) => Err(sap::Error::NoCuda { looked_for }.into()),
        (Backend::Auto, Ok(device)) => Ok(Choice {
            device: Some(device),
            why: "a CUDA device answers".into(),
        }),
        (Backend::Auto, Err(reason)) => Ok(Choice {
            device: None,
            why: reason,
        }),
    }
}
