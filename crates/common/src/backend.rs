//! Chooses the backend of a command. The program reads `RADSWEEP_BACKEND` here; the library reads
//! no environment variable.

use super::Result;
use super::terminal::note;
use radsweep::sort::Algorithm;
use radsweep::{Backend, BroadPhase, Config, Error};
use std::fmt;

/// A CUDA device.
#[cfg(cuda)]
pub type Device = radsweep::gpu::Device;
/// A CUDA device: none exists without the feature `cuda`.
#[cfg(not(cuda))]
pub type Device = std::convert::Infallible;

/// Opens the first CUDA device.
///
/// # Errors
///
/// Says why there is no device.
#[cfg(cuda)]
pub fn device() -> Result<Device, String> {
    radsweep::gpu::Device::first().map_err(|error| error.to_string())
}
/// Fails: there is no device without the feature `cuda`.
///
/// # Errors
///
/// Always.
#[cfg(not(cuda))]
pub fn device() -> Result<Device, String> {
    Err("this build has no feature `cuda`".into())
}

/// A chosen backend, with its device and the reason.
#[derive(Debug)]
pub struct Choice {
    /// The CUDA device; `None` for the CPU.
    pub device: Option<Device>,
    /// Why this backend was chosen, for the user.
    pub why: String,
}

impl Choice {
    /// Returns the backend: CUDA or the CPU.
    #[must_use]
    pub fn backend(&self) -> Backend {
        if self.device.is_some() {
            Backend::Cuda
        } else {
            Backend::Cpu
        }
    }
}

/// Warns once when the CPU takes over from a GPU that failed.
///
/// A machine without a GPU or its driver causes no warning.
#[derive(Debug, Default)]
pub struct Fallback {
    is_reported: bool,
}

impl Fallback {
    /// Warns if this broad phase fell back to the CPU and no warning was printed yet.
    pub fn report(&mut self, broad_phase: &BroadPhase) {
        if let Some(reason) = broad_phase.fallback().filter(|_| !self.is_reported) {
            self.is_reported = true;
            if has_device() {
                crate::terminal::warn(&format!("continuing on the CPU: {reason}"));
            }
        }
    }
}

/// Tells whether a GPU exists, or the CUDA driver fails to say so.
fn has_device() -> bool {
    #[cfg(cuda)]
    let found = !matches!(
        radsweep::gpu::Device::count(),
        Ok(0) | Err(radsweep::gpu::Error::NoDriver { .. })
    );
    #[cfg(not(cuda))]
    let found = false;
    found || adapters().iter().any(|adapter| !adapter.is_software)
}

/// Returns the backend that `RADSWEEP_BACKEND` names, if `asked` is [`Backend::Auto`] and it is
/// set.
fn from_environment(asked: Backend) -> radsweep::Result<Option<Backend>> {
    match (asked, std::env::var("RADSWEEP_BACKEND")) {
        (Backend::Auto, Ok(name)) if !name.is_empty() => match name.parse() {
            Err(Error::UnknownName { name, known, .. }) => Err(Error::UnknownName {
                what: "value of RADSWEEP_BACKEND",
                name,
                known,
            }),
            parsed => parsed.map(Some),
        },
        _ => Ok(None),
    }
}

/// Returns the backend that is asked for, and who asks.
fn wanted(asked: Backend) -> radsweep::Result<(Backend, &'static str)> {
    Ok(match from_environment(asked)? {
        Some(named) => (named, "requested by RADSWEEP_BACKEND"),
        None => (asked, "requested by --backend"),
    })
}

/// A graphics adapter of this machine.
#[derive(Debug, Clone)]
pub struct Adapter {
    /// Its name and interface, and whether it is a software driver.
    text: String,
    is_software: bool,
}

impl fmt::Display for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Lets the environment variables of `wgpu`, such as `WGPU_BACKEND`, choose the graphics APIs of
/// the backend `wgpu`. It comes before all other uses of that backend.
pub fn follow_wgpu_variables() {
    #[cfg(feature = "wgpu")]
    radsweep::wgpu_device::set_instances(|| {
        use radsweep::wgpu_device::wgpu::{Backends, InstanceDescriptor};
        InstanceDescriptor {
            backends: Backends::from_env().unwrap_or(Backends::PRIMARY),
            ..InstanceDescriptor::new_without_display_handle_from_env()
        }
    });
}

/// Returns the adapters that the backend `wgpu` may use.
#[must_use]
pub fn adapters() -> Vec<Adapter> {
    #[cfg(feature = "wgpu")]
    let found = radsweep::wgpu_device::adapters()
        .into_iter()
        .map(|adapter| Adapter {
            text: adapter.to_string(),
            is_software: adapter.is_software,
        })
        .collect();
    #[cfg(not(feature = "wgpu"))]
    let found = Vec::new();
    found
}

/// Returns the backend of a command that finds pairs, and why: as [`choose`] does, or `wgpu`, where
/// [`Backend::Auto`] uses no software driver.
///
/// # Errors
///
/// As [`choose`]; `wgpu` is requested but missing.
pub fn of_pairs(asked: Backend, adapters: &[Adapter]) -> Result<(Backend, String)> {
    let (wanted, asked_by) = wanted(asked)?;
    if wanted == Backend::Wgpu {
        // Says what is missing.
        BroadPhase::new(Config {
            backend: wanted,
            ..Config::default()
        })?;
        return Ok((wanted, asked_by.into()));
    }
    let choice = choose(asked)?;
    let real = adapters.iter().find(|adapter| !adapter.is_software);
    match real.filter(|_| wanted == Backend::Auto && choice.device.is_none()) {
        Some(adapter) => Ok((Backend::Wgpu, format!("{adapter}; {}", choice.why))),
        None if wanted == Backend::Auto && choice.device.is_none() && !adapters.is_empty() => {
            let why = format!("{}; auto does not use software drivers of wgpu", choice.why);
            Ok((choice.backend(), why))
        }
        None => Ok((choice.backend(), choice.why)),
    }
}

/// Creates the broad phase of a command. `RADSWEEP_BACKEND` decides for [`Backend::Auto`].
///
/// # Errors
///
/// As [`BroadPhase::new`]; `RADSWEEP_BACKEND` names no backend.
pub fn broad_phase(mut config: Config) -> radsweep::Result<BroadPhase> {
    if let Some(backend) = from_environment(config.backend)? {
        config.backend = backend;
    }
    BroadPhase::new(config)
}

/// Notes the sorts that were asked for, if they are not used: only CUDA has more than one.
pub fn note_sort(sorts: &[Algorithm], backend: Backend) {
    let asked: Vec<&str> = sorts
        .iter()
        .filter(|&&sort| sort != Algorithm::Auto)
        .map(|sort| sort.name())
        .collect();
    if !asked.is_empty() && backend != Backend::Cuda {
        let asked = asked.join(",");
        note(&format!(
            "--sort {asked} has no effect: {backend} has one sort"
        ));
    }
}

/// Why a command that sorts keys refuses the backend `wgpu`.
pub const NOT_ON_WGPU: &str =
    "`sort` and `bench` do not run on `wgpu`: use the backend cpu or cuda";

/// Chooses the backend of a command that sorts keys: `asked`, or for [`Backend::Auto`] the one that
/// `RADSWEEP_BACKEND` names, or else the best one on this machine.
///
/// # Errors
///
/// CUDA is requested but missing, `wgpu` is requested, or `RADSWEEP_BACKEND` names no backend.
pub fn choose(asked: Backend) -> Result<Choice> {
    let (wanted, asked_by) = wanted(asked)?;
    match (wanted, device()) {
        (Backend::Cpu, _) => Ok(Choice {
            device: None,
            why: asked_by.into(),
        }),
        (Backend::Cuda, Ok(device)) => Ok(Choice {
            device: Some(device),
            why: asked_by.into(),
        }),
        (Backend::Cuda, Err(looked_for)) => Err(Error::NoCuda { looked_for }.into()),
        (Backend::Wgpu, _) if asked == Backend::Auto => {
            Err(format!("RADSWEEP_BACKEND asks for wgpu, but {NOT_ON_WGPU}").into())
        }
        (Backend::Wgpu, _) => Err(NOT_ON_WGPU.into()),
        (_, Ok(device)) => Ok(Choice {
            device: Some(device),
            why: "a CUDA device was found".into(),
        }),
        (_, Err(reason)) => Ok(Choice {
            device: None,
            why: reason,
        }),
    }
}
