//! Which backend runs, and why: what [`sap::BroadPhase`] decides for itself, for the commands that have none.

use super::Result;
use sap::Backend;

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
