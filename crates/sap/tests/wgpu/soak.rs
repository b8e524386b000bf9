//! Frames in which boxes come, go, move, jump and change, each against a rebuild on the CPU. Device
//! memory must not grow.

use super::{STRATEGIES, wgpu};
use crate::common::against_cpu::sized;
use crate::common::churn::{Size, soak};
use libtest_mimic::Failed;
use sap::{BroadPhase, Config, OverlapRule};
use wgpu_device::wgpu::PollType;
use wgpu_device::{Adapters, Device};

pub const ALL: &[(&str, super::Other)] = &[
    ("soak::closed", || run(OverlapRule::Closed, 0.0)),
    ("soak::open_with_margins", || run(OverlapRule::Open, 0.1)),
];

/// Bytes by which frames may differ: buffers that are read back are as long as their lists. The
/// full run has 2,000 frames, in half of which a leak of 64 bytes a frame is as much.
const SLACK: u64 = 1 << 16;

fn run(rule: OverlapRule, margin: f32) -> Result<(), Failed> {
    let configs: Vec<Config> = STRATEGIES
        .iter()
        .map(|&strategy| Config {
            rule,
            margin,
            ..wgpu(strategy)
        })
        .collect();
    let size = Size::new(sized(2000, 80), sized(2000, 150), sized(20_000, 1500));
    let device = Device::new(Adapters::Any)?;
    let engine = |config| BroadPhase::on_wgpu(&device, config);
    soak(&configs, engine, size, SLACK, |_| in_use(&device))
}

/// Returns the bytes that are allocated on the device, if its driver has them counted.
fn in_use(device: &Device) -> Result<u64, Failed> {
    // What the last frame dropped is freed once the device is done with it.
    device.wgpu().poll(PollType::wait_indefinitely())?;
    let report = device.wgpu().generate_allocator_report();
    Ok(report.map_or(0, |report| report.total_allocated_bytes))
}
