//! The choice of a device, devices of the caller, and devices that fail.

use super::{Other, wgpu};
use crate::common::against_cpu::{cpu, engine, uniform};
use crate::common::published;
use crate::common::scenes::Random;
use crate::common::{equal, same};
use libtest_mimic::Failed;
use sap::{Aabb, Backend, BroadPhase, Config, Error, OverlapRule, Pair, Strategy};
use wgpu_device::wgpu::{self, Features, Instance, InstanceDescriptor};
use wgpu_device::{Adapters, Device};

pub const ALL: &[(&str, Other)] = &[
    ("device::choice", choice),
    ("device::missing_strategy", missing_strategy),
    ("device::without_subgroups", without_subgroups),
    ("device::lost", lost),
    ("device::many_tests", many_tests),
];

/// `Auto` takes no software driver.
fn choice() -> Result<(), Failed> {
    let auto = BroadPhase::new(Config::default())?;
    let backend = auto.report().stats.backend;
    match (Device::new(Adapters::Real), backend) {
        (_, Backend::Cuda) | (Ok(_), Backend::Wgpu) => equal(auto.fallback().is_none(), true),
        (Err(_), Backend::Cpu) => equal(auto.fallback().is_some(), true),
        (_, backend) => Err(backend.to_string().into()),
    }
}

fn missing_strategy() -> Result<(), Failed> {
    match BroadPhase::new(wgpu(Strategy::Endpoints)).err() {
        Some(Error::Unsupported { backend, what }) => equal(
            (backend, what.as_str()),
            ("wgpu", "the strategy `endpoints`"),
        ),
        other => Err(format!("{other:?}").into()),
    }
}

/// Opens the adapter of the tests with these features only, and perhaps with a limit of the bytes
/// that a binding has.
pub fn opened(features: Features, bytes: Option<u64>) -> Result<Device, Failed> {
    open(&adapter()?, features, bytes)
}

/// Opens two devices of one adapter.
pub fn two_opened() -> Result<[Device; 2], Failed> {
    let adapter = adapter()?;
    let one = || open(&adapter, Features::empty(), None);
    Ok([one()?, one()?])
}

fn adapter() -> Result<wgpu::Adapter, Failed> {
    let name = Device::new(Adapters::Any)?.name().to_owned();
    let instance = Instance::new(InstanceDescriptor::new_without_display_handle_from_env());
    let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    let is_meant = |adapter: &wgpu::Adapter| {
        let info = adapter.get_info();
        format!("{}, {}", info.name, info.backend) == name
    };
    let adapter = adapters.into_iter().find(is_meant);
    Ok(adapter.ok_or("no such adapter")?)
}

fn open(adapter: &wgpu::Adapter, features: Features, bytes: Option<u64>) -> Result<Device, Failed> {
    let limits = adapter.limits();
    let descriptor = wgpu::DeviceDescriptor {
        required_features: features,
        required_limits: wgpu::Limits {
            max_storage_buffer_binding_size: bytes
                .unwrap_or(limits.max_storage_buffer_binding_size),
            ..limits
        },
        ..wgpu::DeviceDescriptor::default()
    };
    let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))?;
    Ok(Device::from_parts(device, queue))
}

/// The published scenes on a device of the caller, whose sorts cannot use subgroups.
fn without_subgroups() -> Result<(), Failed> {
    let device = opened(Features::empty(), None)?;
    equal(device.subgroups(), None)?;
    published::check_built_in(|boxes, rule| {
        let mut broad_phase = BroadPhase::on_wgpu(
            &device,
            Config {
                rule,
                ..Config::default()
            },
        )?;
        equal(broad_phase.config().backend, Backend::Wgpu)?;
        broad_phase.update(boxes)?;
        Ok(broad_phase.pairs().to_vec())
    })
}

/// A lost device is an error, and the last result stays.
fn lost() -> Result<(), Failed> {
    let device = opened(Features::empty(), None)?;
    let mut broad_phase = BroadPhase::on_wgpu(&device, Config::default())?;
    let boxes = uniform(&mut Random::new(1), 300, 4.0);
    broad_phase.update(&boxes)?;
    let before = broad_phase.pairs().to_vec();
    device.wgpu().destroy();
    for _ in 0..2 {
        match broad_phase.update(&boxes[1..]).map(|_| ()) {
            Err(Error::Wgpu(_) | Error::Sort(_)) => {}
            other => return Err(format!("{other:?}").into()),
        }
        same(broad_phase.pairs(), &before)?;
        // The boxes are on the host.
        equal(broad_phase.query_box(&boxes[0])?.contains(&0), true)?;
    }
    // A frame that is the same as the last needs no device.
    equal(broad_phase.update(&boxes)?.stats.tests, 0)
}

/// Boxes with more pairs than boxes, whose last workgroup has few tests.
fn many_tests() -> Result<(), Failed> {
    for n in [2, 90, 92, 513, 700] {
        let boxes: Vec<Aabb> = (0..n)
            .map(|i| Aabb::new([0.0, i as f32, 0.0], [1.0, i as f32 + 300.0, 1.0]))
            .collect();
        for rule in [OverlapRule::Closed, OverlapRule::Open] {
            let config = Config {
                rule,
                ..wgpu(Strategy::Sweep)
            };
            let pairs = |config: &Config| -> Result<Vec<Pair>, Failed> {
                let mut broad_phase = engine(config);
                broad_phase.update(&boxes)?;
                Ok(broad_phase.pairs().to_vec())
            };
            same(&pairs(&config)?, &pairs(&cpu(&config))?)?;
        }
    }
    Ok(())
}
