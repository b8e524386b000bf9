//! `radsweep pairs --devices`: the pairs of boxes on several CUDA devices.

use super::super::args::{Devices, misuse};
use super::super::table::round;
use radsweep::{Config, Pair};
use radsweep_common::npy::Boxes;
use radsweep_common::{Result, numbers::counted};
use sap_dist::{Cause, Error, RankReport};
use serde_json::{Value, json};
use std::time::Instant;

/// The devices of a call.
pub(super) struct Work(sap_dist::Devices);

impl Work {
    /// Opens the devices.
    pub fn new(devices: Devices, config: &Config) -> Result<Self> {
        let there = sap_dist::Devices::count().map_err(|error| match error {
            Error::Rank { cause, .. } => cause.to_string(),
            other => other.to_string(),
        })?;
        let count = match devices {
            Devices::All => there,
            Devices::First(count) if count <= there => count,
            Devices::First(count) => {
                let there = counted(there as u64, "CUDA device", "CUDA devices");
                return Err(format!("--devices {count}: this machine has {there}").into());
            }
        };
        let config = sap_dist::Config {
            rule: config.rule,
            on_invalid: config.on_invalid,
            strategy: config.strategy,
            events: false,
            ..sap_dist::Config::default()
        };
        let opened = sap_dist::Devices::new(config, 0..count);
        Ok(Self(opened.map_err(|error| worded(&error))?))
    }

    /// Finds the pairs of the boxes of a file of this name. Returns the milliseconds, and what each
    /// device did as a table and as JSON.
    pub fn update(&mut self, boxes: &Boxes, name: &str) -> Result<(f64, (String, Value))> {
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
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let rows = report.ranks.iter().map(row).collect();
        Ok((ms, (report.to_string(), rows)))
    }

    /// Returns the pairs of one device after the other.
    pub fn pairs(&self) -> impl Iterator<Item = Result<Vec<Pair>>> {
        // Indices of a frame, which has fewer boxes than 2^32.
        let narrow = |pair: sap_dist::Pair| Pair {
            a: pair.a as u32,
            b: pair.b as u32,
        };
        self.0.pairs().map(move |pairs| {
            let pairs = pairs.map_err(|error| worded(&error))?;
            Ok(pairs.into_iter().map(narrow).collect())
        })
    }
}

/// Returns the report of a device as JSON.
fn row(rank: &RankReport) -> Value {
    let times = &rank.timings;
    json!({
        "boxes": rank.boxes,
        "homes": rank.homes,
        "copies": rank.copies,
        "tests": rank.tests,
        "pairs": rank.pairs,
        "messages": rank.messages,
        "bytes": rank.bytes,
        "ms": {
            "plan": round(times.plan),
            "send": round(times.send),
            "search": round(times.search),
            "return": round(times.return_pairs),
            "order": round(times.order),
        },
    })
}

/// Returns why a device failed. The ranks of this command are the devices by number.
fn worded(error: &Error) -> String {
    match error {
        Error::Rank { rank, cause } => format!("CUDA device {rank}: {cause}"),
        other => other.to_string(),
    }
}
