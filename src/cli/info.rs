//! `radsweep info`: prints the devices, the driver, and the chosen backend with the reason.

use super::args::Info;
use radsweep::Backend;
use radsweep_common::numbers::counted;
use radsweep_common::{Result, backend};
use serde_json::{Value, json};
use std::io::{self, Write};

pub(super) fn run(args: &Info) -> Result<()> {
    let adapters = backend::adapters();
    let (backend, why) = match backend::of_pairs(Backend::Auto, &adapters) {
        Ok((backend, why)) => (Some(backend.name()), why),
        Err(error) => (None, error.to_string()),
    };
    let cuda = cuda();
    let threads = rayon::current_num_threads();
    let mut out = io::stdout().lock();
    if args.json {
        let info = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "backend": backend,
            "why": why,
            "threads": threads,
            "cuda": cuda,
            "adapters": adapters.iter().map(ToString::to_string).collect::<Vec<_>>(),
        });
        return Ok(writeln!(out, "{info}")?);
    }
    writeln!(out, "radsweep {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "backend  {}: {why}", backend.unwrap_or("none"))?;
    let counted = counted(threads as u64, "thread", "threads");
    writeln!(out, "cpu      {counted}")?;
    if let Some(driver) = cuda["driver"].as_str() {
        writeln!(out, "driver   CUDA {driver}")?;
    }
    for device in cuda["devices"].as_array().into_iter().flatten() {
        let text = |key: &str| device[key].as_str().unwrap_or_default().to_owned();
        let number = |key: &str| device[key].as_u64().unwrap_or_default();
        let (name, capability) = (text("name"), text("compute_capability"));
        let (ordinal, processors) = (number("ordinal"), number("multiprocessors"));
        let gib = |key| number(key) as f64 / f64::from(1 << 30);
        writeln!(
            out,
            "cuda {ordinal}   {name}, compute capability {capability}, {processors} multiprocessors, {:.1} of {:.1} GiB free",
            gib("memory_free"),
            gib("memory_bytes"),
        )?;
    }
    // Printed above already where it is the reason for the backend.
    if let Some(error) = cuda["error"].as_str().filter(|error| !why.contains(error)) {
        writeln!(out, "cuda     {error}")?;
    }
    for adapter in adapters {
        writeln!(out, "wgpu     {adapter}")?;
    }
    Ok(())
}

/// Asks the CUDA driver for its version and its devices; on failure returns the error.
#[cfg(cuda)]
fn cuda() -> Value {
    let version = |(major, minor): (u32, u32)| format!("{major}.{minor}");
    let device = |ordinal| -> radsweep::gpu::Result<Value> {
        let device = radsweep::gpu::Device::open(ordinal)?;
        let info = device.info();
        let (free, _) = device.memory()?;
        Ok(json!({
            "ordinal": ordinal,
            "name": info.name,
            "compute_capability": version(info.compute_capability),
            "multiprocessors": info.multiprocessors,
            "memory_bytes": info.memory_bytes,
            "memory_free": free,
            "l2_bytes": info.l2_bytes,
            "clock_khz": info.clock_khz,
        }))
    };
    let devices: radsweep::gpu::Result<Vec<Value>> =
        radsweep::gpu::Device::count().and_then(|count| (0..count).map(device).collect());
    let (devices, error) = match devices {
        Ok(devices) => (devices, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let driver = radsweep::gpu::driver_version().ok().map(version);
    json!({"built": true, "driver": driver, "devices": devices, "error": error})
}
#[cfg(not(cuda))]
fn cuda() -> Value {
    json!({"built": false, "driver": null, "devices": [], "error": "this build has no feature `cuda`"})
}
