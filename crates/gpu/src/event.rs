//! Events: points in a stream's work, to wait for and to measure times between.

use core::{fmt, ptr};
use std::sync::RwLock;
use std::thread::ThreadId;

use crate::driver::{self, CUevent};
use crate::error::NOT_READY;
use crate::{Device, Error, Result};

/// A point in a stream's work, with its time. An event that is recorded during a capture belongs to
/// that capture: only the capturing thread may make streams wait for it.
///
/// ```
/// # fn time(stream: &gpu::Stream) -> gpu::Result<f32> {
/// let start = stream.record()?;
/// // … work …
/// let end = stream.record()?;
/// end.synchronize()?;
/// start.elapsed_ms(&end)
/// # }
/// ```
pub struct Event {
    device: Device,
    handle: CUevent,
    /// The capturing thread, if the event was last recorded during a capture. A stream that waits
    /// for the event then joins that capture. Locked while the event is recorded or waited for.
    pub(crate) captured: RwLock<Option<ThreadId>>,
}

// SAFETY: the driver lets any thread use an event.
unsafe impl Send for Event {}
// SAFETY: the driver lets any number of threads use an event at once.
unsafe impl Sync for Event {}

impl Event {
    /// Makes an event that is not recorded yet. Waiting for it returns at once.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn new(device: &Device) -> Result<Event> {
        device.bind()?;
        let mut handle = ptr::null_mut();
        // SAFETY: the out pointer is valid. Flag 0 asks for times, and for waits that spin.
        unsafe { driver::cuEventCreate(&mut handle, 0)? };
        Ok(Event {
            device: device.clone(),
            handle,
            captured: RwLock::default(),
        })
    }

    pub(crate) fn raw(&self) -> CUevent {
        self.handle
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Waits until the work before the event is done.
    ///
    /// # Errors
    ///
    /// The driver's errors, including those of the work waited for.
    pub fn synchronize(&self) -> Result<()> {
        self.device.bind()?;
        // SAFETY: the event is live.
        unsafe { driver::cuEventSynchronize(self.handle) }
    }

    /// Returns whether the work before the event is done.
    ///
    /// # Errors
    ///
    /// The driver's errors, including those of the work.
    pub fn is_done(&self) -> Result<bool> {
        self.device.bind()?;
        // SAFETY: the event is live.
        ready(unsafe { driver::cuEventQuery(self.handle) })
    }

    /// Returns the milliseconds from this event to `end`, with a resolution of about half a
    /// microsecond.
    ///
    /// # Errors
    ///
    /// A driver's error with code 400 if one of the two was never recorded, 600 if one is not done.
    pub fn elapsed_ms(&self, end: &Event) -> Result<f32> {
        self.device.bind()?;
        let mut milliseconds = 0.0;
        // SAFETY: both events are live, and the out pointer is valid.
        unsafe { driver::cuEventElapsedTime(&mut milliseconds, self.handle, end.handle)? };
        Ok(milliseconds)
    }
}

/// Converts the result of a query call: "not ready" is false, not an error.
pub(crate) fn ready(answer: Result<()>) -> Result<bool> {
    match answer {
        Ok(()) => Ok(true),
        Err(Error::Call {
            code: NOT_READY, ..
        }) => Ok(false),
        Err(error) => Err(error),
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // A drop cannot return an error; if the device has failed, the next call returns it.
            // SAFETY: the event is not used again, and the driver lets work that waits for it
            // continue.
            let _ = unsafe { driver::cuEventDestroy_v2(self.handle) };
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}
