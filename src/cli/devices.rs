//! `--devices`: the pairs of boxes on several CUDA devices.

use super::args::{Devices, misuse};
use super::table::round;
use radsweep::{Aabb, Config, Filter, Pair, gpu};
use radsweep_common::npy::{self, Boxes};
use radsweep_common::{Result, numbers::counted};
use sap_dist::{Cause, Error, RankReport, Report};
use serde_json::{Map, Value, json};
use std::time::Instant;

/// Pairs that are passed on at a time: 8 MiB.
const CHUNK: usize = 1 << 20;

/// The devices of a call.
pub(super) struct Work(sap_dist::Devices);

/// What an update did.
pub(super) struct Updated {
    pub pairs: u64,
    pub ms: f64,
    /// What each device did, as a table and as JSON.
    pub ranks: (String, Value),
}

impl Work {
    /// Opens the devices.
    pub fn new(devices: Devices, config: &Config) -> Result<Self> {
        let there = gpu::Device::count()?;
        let count = match devices {
            _ if there == 0 => return Err(gpu::Error::NoDevice.into()),
            Devices::All => there,
            Devices::First(count) if count <= there => count,
            Devices::First(count) => {
                let there = counted(there as u64, "CUDA device", "CUDA devices");
                return Err(misuse(format!(
                    "--devices {count}: this machine has {there}"
                )));
            }
        };
        let config = sap_dist::Config {
            rule: config.rule,
            on_invalid: config.on_invalid,
            strategy: config.strategy,
            events: config.events,
            ..sap_dist::Config::default()
        };
        let opened = sap_dist::Devices::new(config, 0..count);
        Ok(Self(opened.map_err(|error| worded(&error))?))
    }

    /// Finds the pairs of the boxes of a file of this name.
    pub fn update(&mut self, boxes: &Boxes, name: &str) -> Result<Updated> {
        let Boxes::F32(boxes) = boxes else {
            return Err(misuse(format!(
                "--devices takes float32 boxes, and those of {name} are float64"
            )));
        };
        let start = Instant::now();
        let report = self.0.update(boxes).map_err(|error| match &error {
            Error::Rank {
                cause: cause @ Cause::InvalidAabb { .. },
                ..
            } => format!("{name}: {cause}"),
            error => worded(error),
        })?;
        Ok(Updated {
            ms: start.elapsed().as_secs_f64() * 1e3,
            pairs: report.pairs,
            ranks: (report.to_string(), report.ranks.iter().map(row).collect()),
        })
    }

    /// Finds the pairs of the boxes of a scene.
    pub fn update_scene(&mut self, boxes: &[Aabb], filters: &[Filter]) -> Result<&Report> {
        let updated = match filters {
            [] => self.0.update(boxes),
            filters => self.0.update_filtered(boxes, filters),
        };
        Ok(updated.map_err(|error| worded(&error))?)
    }

    /// Passes the pairs to `f` in order and in chunks. Those of one device at a time are copied to
    /// the host.
    pub fn for_each_chunk(&self, mut f: impl FnMut(&[Pair]) -> npy::Result<()>) -> Result<()> {
        // Indices of a frame, which has fewer boxes than 2^32.
        let narrow = |pair: &sap_dist::Pair| Pair {
            a: pair.a as u32,
            b: pair.b as u32,
        };
        for pairs in self.0.pairs() {
            let pairs = pairs.map_err(|error| worded(&error))?;
            for chunk in pairs.chunks(CHUNK) {
                f(&chunk.iter().map(narrow).collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }
}

/// Returns the report of a device as JSON.
pub(super) fn row(rank: &RankReport) -> Value {
    let steps = rank.timings.steps().into_iter();
    json!({
        "boxes": rank.boxes,
        "homes": rank.homes,
        "copies": rank.copies,
        "tests": rank.tests,
        "pairs": rank.pairs,
        "messages": rank.messages,
        "bytes": rank.bytes,
        "ms": steps.map(|(name, ms)| (name.into(), round(ms))).collect::<Map<_, _>>(),
    })
}

/// Returns why a device failed. The ranks of this command are the devices by number.
fn worded(error: &Error) -> String {
    match error {
        Error::Rank { rank, cause } => format!("CUDA device {rank}: {cause}"),
        other => other.to_string(),
    }
}
