//! The graphics device.

use crate::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use wgpu::{
    Adapter, Backends, Device, DeviceDescriptor, DeviceType, Features, Instance,
    InstanceDescriptor, Limits, PowerPreference, Queue, RequestAdapterOptions, Surface,
};
use winit::event_loop::OwnedDisplayHandle;

/// The features that the clock uses where there are any.
pub(super) const TIMESTAMPS: Features =
    Features::TIMESTAMP_QUERY.union(Features::TIMESTAMP_QUERY_INSIDE_ENCODERS);

/// What a device is asked for if its adapter has it: also what sorts use, where scenes live on it.
const FEATURES: Features = match cfg!(feature = "wgpu") {
    true => TIMESTAMPS.union(Features::SUBGROUP),
    false => TIMESTAMPS,
};

/// A device, its queue, and its first error.
#[derive(Debug, Clone)]
pub(crate) struct Gpu {
    pub adapter: Adapter,
    pub device: Device,
    pub queue: Queue,
    failure: Arc<Mutex<Option<String>>>,
}

impl Gpu {
    /// Opens the drivers of the platform, software ones too; those of OpenGL only where there are
    /// no others. `WGPU_BACKEND` selects among them. OpenGL can show pictures only in windows of
    /// the display that it is opened with.
    ///
    /// # Errors
    ///
    /// [`Error::NoAdapter`] if no driver answers.
    pub fn instance(display: Option<OwnedDisplayHandle>) -> Result<Instance, Error> {
        let found = |backends: Backends| {
            let mut descriptor = InstanceDescriptor::new_without_display_handle_from_env();
            descriptor.backends &= backends;
            let display = display.clone();
            descriptor.display = display.map(|display| Box::new(display) as Box<_>);
            let instance = Instance::new(descriptor);
            let adapters = pollster::block_on(instance.enumerate_adapters(backends));
            (!adapters.is_empty()).then_some(instance)
        };
        let instance = found(Backends::PRIMARY).or_else(|| found(Backends::GL));
        instance.ok_or(Error::NoAdapter)
    }

    /// Opens the fastest device that can show `surface`, if one is given.
    pub fn new(instance: &Instance, surface: Option<&Surface<'_>>) -> Result<Self, Error> {
        let options = RequestAdapterOptions {
            power_preference: PowerPreference::HighPerformance,
            force_fallback_adapter: false,
            compatible_surface: surface,
            apply_limit_buckets: false,
        };
        let adapter = pollster::block_on(instance.request_adapter(&options));
        let adapter = adapter.map_err(|_| Error::NoAdapter)?;
        let descriptor = DeviceDescriptor {
            label: Some("radsweep"),
            required_features: adapter.features() & FEATURES,
            required_limits: match cfg!(feature = "wgpu") {
                true => adapter.limits(),
                false => Limits::downlevel_webgl2_defaults().using_resolution(adapter.limits()),
            },
            ..DeviceDescriptor::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))
            .map_err(|error| Error::Device(error.to_string()))?;
        let failure = Arc::new(Mutex::new(None));
        let note = {
            let failure = Arc::clone(&failure);
            move |message: String| {
                let mut first = failure.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(message);
            }
        };
        let lost = note.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| note(error.to_string())));
        device.set_device_lost_callback(move |_, message| lost(format!("device lost: {message}")));
        Ok(Self {
            adapter,
            device,
            queue,
            failure,
        })
    }

    /// Returns the first error of the device, after which it is unusable.
    pub fn failure(&self) -> Option<Error> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.clone().map(Error::Device)
    }

    /// Returns the name of the device, such as "llvmpipe (LLVM 15.0.6, 256 bits), Vulkan".
    pub fn name(&self) -> String {
        let info = self.adapter.get_info();
        format!("{}, {}", info.name, info.backend)
    }

    /// Tells whether the driver draws on the CPU.
    pub fn is_software(&self) -> bool {
        self.adapter.get_info().device_type == DeviceType::Cpu
    }

    /// Returns the max width and height of a picture.
    pub fn max_pixels(&self) -> u32 {
        self.device.limits().max_texture_dimension_2d
    }
}
