//! Which backend runs, and why: what [`radsweep::BroadPhase`] decides for itself, for the commands that have none.

use super::Result;
use radsweep::{Backend, BroadPhase};

/// A CUDA device.
#[cfg(cuda)]
pub type Device = radsweep::gpu::Device;
/// There is none without the feature `cuda`.
#[cfg(not(cuda))]
pub type Device = std::convert::Infallible;

/// Opens the first CUDA device.
///
/// # Errors
///
/// Why there is none.
#[cfg(cuda)]
pub fn device() -> std::result::Result<Device, String> {
    radsweep::gpu::Device::first().map_err(|error| error.to_string())
}
/// Opens nothing: there is no device without the feature `cuda`.
///
/// # Errors
///
/// Always, with just that.
#[cfg(not(cuda))]
pub fn device() -> std::result::Result<Device, String> {
    Err("this build has no feature `cuda`".into())
}

/// A backend with the device that it runs on; without one it is the CPU.
#[derive(Debug)]
pub struct Choice {
    /// The device, or none for the CPU.
    pub device: Option<Device>,
    /// Who asked for it, or what answered.
    pub why: String,
}

impl Choice {
    /// CUDA or the CPU.
    #[must_use]
    pub fn backend(&self) -> Backend {
        if self.device.is_some() {
            Backend::Cuda
        } else {
            Backend::Cpu
        }
    }
}

/// Warns, once, that the CPU works in the place of a GPU, and why; not where there is no driver or no device, which is no fault.
#[derive(Debug, Default)]
pub struct Fallback {
    is_told: bool,
}

impl Fallback {
    /// Warns if this broad phase fell back and nothing was said so far.
    pub fn tell(&mut self, broad_phase: &BroadPhase) {
        if let Some(reason) = broad_phase.fallback().filter(|_| !self.is_told) {
            self.is_told = true;
            if has_device() {
                crate::terminal::warn(&format!("going on with the CPU: {reason}"));
            }
        }
    }
}

/// Whether there are a driver and a device, or an error where they should be.
fn has_device() -> bool {
    #[cfg(cuda)]
    let found = !matches!(
        radsweep::gpu::Device::count(),
        Ok(0) | Err(radsweep::gpu::Error::NoDriver { .. })
    );
    #[cfg(not(cuda))]
    let found = false;
    found
}

/// Decides what `asked` comes to here; `RADSWEEP_BACKEND` decides for [`Backend::Auto`].
///
/// # Errors
///
/// CUDA is asked for and not there, or `RADSWEEP_BACKEND` names no backend.
pub fn choose(asked: Backend) -> Result<Choice> {
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
        (Backend::Cuda, Err(looked_for)) => Err(radsweep::Error::NoCuda { looked_for }.into()),
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
