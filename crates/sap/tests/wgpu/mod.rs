//! The trials of the engine on `wgpu`. Without a real adapter all are ignored, and the reason is
//! printed. With `RADSWEEP_WGPU` set they take a software driver too, and having none is a failure.

mod device;
mod resident;
mod soak;

use crate::common::against_cpu;
use crate::common::{self, published};
use libtest_mimic::{Failed, Trial};
use sap::{Backend, Config, Strategy};
use std::sync::LazyLock;
use wgpu_device::{Adapters, Device};

/// A check that is independent of the strategy.
type Other = fn() -> Result<(), Failed>;

/// The strategies of `wgpu`: a new one is tested, or has to be named here.
static STRATEGIES: LazyLock<Vec<Strategy>> =
    LazyLock::new(|| common::strategies_but(&[Strategy::Endpoints]));

pub fn trials() -> Vec<Trial> {
    let mut trials = common::trials(Backend::Wgpu, &STRATEGIES);
    trials.extend(published::trials(Backend::Wgpu, &STRATEGIES));
    trials.extend(against_cpu::ALL.iter().flat_map(|&(name, check)| {
        STRATEGIES.iter().map(move |&strategy| {
            Trial::test(format!("{name}::{strategy}"), move || {
                check(&wgpu(strategy))
            })
        })
    }));
    trials.extend(
        device::ALL
            .iter()
            .chain(resident::ALL)
            .chain(soak::ALL)
            .map(|&(name, check)| Trial::test(name, check)),
    );
    let wanted = std::env::var("RADSWEEP_WGPU");
    let adapters = match wanted {
        Ok(_) => Adapters::Any,
        Err(_) => Adapters::Real,
    };
    match (Device::new(adapters), wanted) {
        (Ok(device), _) => {
            eprintln!("on {}", device.name());
            trials
        }
        (Err(error), Ok(wanted)) => vec![Trial::test("device", move || {
            Err(format!("RADSWEEP_WGPU={wanted}: {error}").into())
        })],
        (Err(error), Err(_)) => {
            eprintln!("all trials are ignored: {error}");
            trials
                .into_iter()
                .map(|trial| trial.with_kind("no adapter").with_ignored_flag(true))
                .collect()
        }
    }
}

/// Returns a configuration for `wgpu`.
fn wgpu(strategy: Strategy) -> Config {
    Config {
        backend: Backend::Wgpu,
        strategy,
        ..Config::default()
    }
}
