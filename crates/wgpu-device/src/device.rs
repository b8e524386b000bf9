//! The device: its queue, its limits, and its failures as errors.

use crate::adapter::{self, AdapterSummary, Adapters};
use crate::{Error, Result};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use wgpu::{
    Adapter, AdapterInfo, BufferDescriptor, BufferUsages, CommandEncoder, CommandEncoderDescriptor,
    DeviceDescriptor, ErrorFilter, ErrorScopeGuard, Features, Limits, PollType, Queue,
    SubmissionIndex,
};

/// A device and its queue. It is cheap to clone, and several threads may use it at once.
///
/// After [`Error::Lost`] every call on the device fails with that error.
#[derive(Debug, Clone)]
pub struct Device(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    device: wgpu::Device,
    queue: Queue,
    adapter: AdapterSummary,
    limits: Limits,
    subgroups: Option<SubgroupSizes>,
    failure: Arc<Failure>,
    /// The bytes of all downloads.
    downloaded: AtomicU64,
    /// The waits for downloads.
    waits: AtomicU64,
}

/// The numbers of lanes that a subgroup of a device may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SubgroupSizes {
    /// The min number.
    pub min: u32,
    /// The max number.
    pub max: u32,
}

/// What a device reports outside of a call.
#[derive(Debug, Default)]
struct Failure {
    /// Why the device was lost.
    lost: Mutex<Option<String>>,
    /// The first error that no call caught, until a call returns it.
    uncaught: Mutex<Option<String>>,
}

impl Failure {
    fn note(slot: &Mutex<Option<String>>, message: String) {
        let mut first = slot.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(message);
    }

    fn lost(&self) -> Option<String> {
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.clone()
    }

    fn take_uncaught(&self) -> Option<String> {
        let mut first = self.uncaught.lock().unwrap_or_else(PoisonError::into_inner);
        first.take()
    }
}

/// What a device is asked for if its adapter has it.
const WANTED: Features = Features::SUBGROUP.union(Features::TIMESTAMP_QUERY);

impl Device {
    /// Opens the best adapter of the kind asked for, with all its limits.
    ///
    /// ```
    /// use wgpu_device::{Adapters, Device, Error};
    ///
    /// match Device::new(Adapters::Real) {
    ///     Ok(device) => assert!(!device.is_software()),
    ///     Err(Error::NoAdapter { found, .. }) => println!("only {found}"),
    ///     Err(error) => println!("{error}"),
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoAdapter`] and [`Error::NoDevice`].
    pub fn new(adapters: Adapters) -> Result<Self> {
        Self::open(&adapter::choose(adapters)?)
    }

    /// Opens the best adapter of the kind asked for, with these limits: to try what another device,
    /// or a browser, would allow.
    ///
    /// ```
    /// use wgpu_device::{Adapters, Device, wgpu::Limits};
    ///
    /// // `Limits::default()` are what every browser with WebGPU promises.
    /// if let Ok(device) = Device::with_limits(Adapters::Any, Limits::default()) {
    ///     assert_eq!(device.limits().max_compute_workgroup_storage_size, 16384);
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoAdapter`]; [`Error::NoDevice`], also if the adapter does not have these limits.
    pub fn with_limits(adapters: Adapters, limits: Limits) -> Result<Self> {
        Self::request(&adapter::choose(adapters)?, limits)
    }

    /// Opens an adapter of the caller, with all its limits.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`].
    pub fn open(adapter: &Adapter) -> Result<Self> {
        Self::request(adapter, adapter.limits())
    }

    fn request(adapter: &Adapter, required_limits: Limits) -> Result<Self> {
        let descriptor = DeviceDescriptor {
            label: Some("radsweep"),
            required_features: adapter.features() & WANTED,
            required_limits,
            ..DeviceDescriptor::default()
        };
        let (device, queue) =
            pollster::block_on(adapter.request_device(&descriptor)).map_err(|error| {
                Error::NoDevice {
                    adapter: AdapterSummary::new(&adapter.get_info()).name,
                    reason: error.to_string(),
                }
            })?;
        let failure = Arc::new(Failure::default());
        let uncaught = Arc::clone(&failure);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            Failure::note(&uncaught.uncaught, error.to_string());
        }));
        let lost = Arc::clone(&failure);
        device.set_device_lost_callback(move |reason, message| {
            Failure::note(&lost.lost, format!("{reason:?} {message}"));
        });
        Ok(Self::with(device, queue, failure))
    }

    /// Takes a device and queue of the caller, with the limits and features that it was made with.
    ///
    /// The callbacks of the caller for lost devices and uncaught errors stay in place. Subgroups
    /// and times are used if the device has [`Features::SUBGROUP`] and
    /// [`Features::TIMESTAMP_QUERY`].
    ///
    /// ```
    /// use wgpu_device::{Device, wgpu};
    ///
    /// fn sort_beside_the_renderer(device: &wgpu::Device, queue: &wgpu::Queue) -> Device {
    ///     Device::from_parts(device.clone(), queue.clone())
    /// }
    /// ```
    #[must_use]
    pub fn from_parts(device: wgpu::Device, queue: Queue) -> Self {
        Self::with(device, queue, Arc::default())
    }

    fn with(device: wgpu::Device, queue: Queue, failure: Arc<Failure>) -> Self {
        let info = device.adapter_info();
        Self(Arc::new(Inner {
            adapter: AdapterSummary::new(&info),
            limits: device.limits(),
            subgroups: subgroups(device.features(), &info),
            failure,
            device,
            queue,
            downloaded: AtomicU64::new(0),
            waits: AtomicU64::new(0),
        }))
    }

    /// Returns the device of `wgpu`.
    #[must_use]
    pub fn wgpu(&self) -> &wgpu::Device {
        &self.0.device
    }

    /// Returns the queue of `wgpu`.
    #[must_use]
    pub fn queue(&self) -> &Queue {
        &self.0.queue
    }

    /// Returns the name of the adapter and its interface.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.adapter.name
    }

    /// Tells whether the adapter is a software driver.
    #[must_use]
    pub fn is_software(&self) -> bool {
        self.0.adapter.is_software
    }

    /// Returns the limits of the device.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Returns the sizes of subgroups, if kernels may use them.
    #[must_use]
    pub fn subgroups(&self) -> Option<SubgroupSizes> {
        self.0.subgroups
    }

    /// Tells whether the device measures times.
    #[must_use]
    pub fn has_timestamps(&self) -> bool {
        self.0.device.features().contains(Features::TIMESTAMP_QUERY)
    }

    /// Returns the bytes that all downloads have copied to the host so far, by this device and its
    /// clones.
    ///
    /// ```
    /// use wgpu_device::{Adapters, BufferUsages, Device};
    ///
    /// # fn main() -> wgpu_device::Result<()> {
    /// let Ok(device) = Device::new(Adapters::Any) else { return Ok(()) }; // no driver here
    /// let buffer = device.upload("numbers", &[1_u32, 2, 3], BufferUsages::COPY_SRC)?;
    /// device.download(&buffer, 0..8)?.wait::<u32>()?;
    /// assert_eq!(device.downloaded(), 8);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn downloaded(&self) -> u64 {
        self.0.downloaded.load(Ordering::Relaxed)
    }

    pub(crate) fn count_download(&self, bytes: u64) {
        self.0.downloaded.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns how often the host has waited for a download so far, by this device and its clones.
    #[must_use]
    pub fn waits(&self) -> u64 {
        self.0.waits.load(Ordering::Relaxed)
    }

    pub(crate) fn count_wait(&self) {
        self.0.waits.fetch_add(1, Ordering::Relaxed);
    }

    /// Fails if more is needed of something than the device allows.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`].
    pub fn within(&self, what: &'static str, needed: u64, limit: u64) -> Result<()> {
        if needed <= limit {
            return Ok(());
        }
        Err(Error::TooLarge {
            adapter: self.name().to_owned(),
            what,
            needed,
            limit,
        })
    }

    /// Runs calls of `wgpu`, and returns the errors that they report.
    ///
    /// ```
    /// use wgpu_device::{Adapters, BufferUsages, Device, Error, wgpu};
    ///
    /// # fn main() -> wgpu_device::Result<()> {
    /// let Ok(device) = Device::new(Adapters::Any) else { return Ok(()) }; // no driver here
    /// let wrong = wgpu::BufferDescriptor {
    ///     label: None,
    ///     size: 3, // not a multiple of 4
    ///     usage: BufferUsages::COPY_DST,
    ///     mapped_at_creation: true,
    /// };
    /// let refused = device.checked("create_buffer", || device.wgpu().create_buffer(&wrong));
    /// assert!(matches!(refused, Err(Error::Failed { call: "create_buffer", .. })));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::Failed`], [`Error::Lost`].
    pub fn checked<T>(&self, call: &'static str, run: impl FnOnce() -> T) -> Result<T> {
        self.alive(call)?;
        let (value, [validation, memory, internal]) = self.scoped(run);
        self.alive(call)?;
        if memory.is_some() {
            let adapter = self.name().to_owned();
            return Err(Error::OutOfMemory { adapter, call });
        }
        match validation.or(internal) {
            Some(error) => Err(self.failed(call, error.to_string())),
            None => Ok(value),
        }
    }

    /// Runs calls, and returns their first errors of validation, memory and other kinds.
    fn scoped<T>(&self, run: impl FnOnce() -> T) -> (T, [Option<wgpu::Error>; 3]) {
        let filters = [
            ErrorFilter::Internal,
            ErrorFilter::OutOfMemory,
            ErrorFilter::Validation,
        ];
        let [internal, memory, validation] =
            filters.map(|filter| self.0.device.push_error_scope(filter));
        let value = run();
        // The scopes end in the opposite order, and their results are there at once.
        let ended = [validation, memory, internal].map(ErrorScopeGuard::pop);
        (value, ended.map(pollster::block_on))
    }

    /// Makes a command encoder.
    ///
    /// # Errors
    ///
    /// Those of [`Device::checked`].
    pub fn encoder(&self, label: &str) -> Result<CommandEncoder> {
        let descriptor = CommandEncoderDescriptor { label: Some(label) };
        self.checked("create_command_encoder", || {
            self.0.device.create_command_encoder(&descriptor)
        })
    }

    /// Finishes an encoder and submits its commands.
    ///
    /// # Errors
    ///
    /// Those of [`Device::checked`]; nothing was submitted then, or the device was lost.
    pub fn submit(&self, encoder: CommandEncoder) -> Result<SubmissionIndex> {
        let commands = self.checked("finish", || encoder.finish())?;
        self.checked("submit", || self.0.queue.submit([commands]))
    }

    /// Delivers the results of calls that have ended, or of one that `how` waits for.
    pub(crate) fn poll(&self, call: &'static str, how: PollType) -> Result<()> {
        self.alive(call)?;
        // `wgpu` panics here if the device is lost in the call.
        let polled = panic::catch_unwind(AssertUnwindSafe(|| self.0.device.poll(how)));
        self.alive(call)?;
        match polled {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(self.failed(call, error.to_string())),
            Err(_) => Err(self.lost(call, "the driver does not answer".to_owned())),
        }
    }

    /// Fails if the device is lost, or failed outside of a call since the last one.
    fn alive(&self, call: &'static str) -> Result<()> {
        if let Some(reason) = self.0.failure.lost() {
            return Err(self.lost(call, reason));
        }
        match self.0.failure.take_uncaught() {
            Some(reason) => Err(self.failed(call, reason)),
            None => Ok(()),
        }
    }

    /// Returns the error of a call on a lost device, and remembers that it is lost.
    fn lost(&self, call: &'static str, reason: String) -> Error {
        Failure::note(&self.0.failure.lost, reason.clone());
        let adapter = self.name().to_owned();
        Error::Lost {
            adapter,
            call,
            reason,
        }
    }

    /// Returns the error of a call that was refused. On a lost device anything is refused, and only
    /// the owner of the device is told why.
    pub(crate) fn failed(&self, call: &'static str, reason: String) -> Error {
        if !self.answers() {
            return self.lost(call, reason);
        }
        let adapter = self.name().to_owned();
        Error::Failed {
            adapter,
            call,
            reason,
        }
    }

    /// Tells whether the device still makes buffers.
    fn answers(&self) -> bool {
        let descriptor = BufferDescriptor {
            label: Some("probe"),
            size: 4,
            usage: BufferUsages::COPY_SRC,
            mapped_at_creation: true,
        };
        let probe = || self.0.device.create_buffer(&descriptor);
        self.scoped(probe).0.get_mapped_range_mut(..).is_ok()
    }
}

fn subgroups(features: Features, info: &AdapterInfo) -> Option<SubgroupSizes> {
    let sizes = SubgroupSizes {
        min: info.subgroup_min_size,
        max: info.subgroup_max_size,
    };
    features.contains(Features::SUBGROUP).then_some(sizes)
}
