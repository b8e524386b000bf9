//! Points in a stream's work: to wait for, and to take times between.

use core::{fmt, iter, ptr};
use std::sync::{PoisonError, RwLock};
use std::thread::{self, ThreadId};

use crate::driver::{self, CUevent};
use crate::error::NOT_READY;
use crate::{Device, Error, Result, Stream};

/// A point in a stream's work, with its time. One that is recorded during a capture is of that
/// capture: only the thread that captures has streams wait for it.
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
    /// The thread that captured the stream when it was recorded there; a stream that waits for it
    /// joins that capture. Held while it is recorded and waited for.
    captured: RwLock<Option<ThreadId>>,
}

// SAFETY: the driver lets any thread use an event.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event that was not recorded yet; waiting for it does not wait.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn new(device: &Device) -> Result<Event> {
        device.bind()?;
        let mut handle = ptr::null_mut();
        // SAFETY: a place to write to. 0: with time, waiting by spinning.
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

    /// Waits until the work before it is done.
    ///
    /// # Errors
    ///
    /// The driver's errors, those of the work waited for among them.
    pub fn synchronize(&self) -> Result<()> {
        self.device.bind()?;
        // SAFETY: a live event.
        unsafe { driver::cuEventSynchronize(self.handle) }
    }

    /// True when the work before it is done.
    ///
    /// # Errors
    ///
    /// The driver's errors, those of the work among them.
    pub fn is_done(&self) -> Result<bool> {
        self.device.bind()?;
        // SAFETY: a live event.
        ready(unsafe { driver::cuEventQuery(self.handle) })
    }

    /// Milliseconds from this event to `end`, to about half a microsecond.
    ///
    /// # Errors
    ///
    /// A driver's error with code 400 when one of the two was never recorded, 600 when one is not
    /// done.
    pub fn elapsed_ms(&self, end: &Event) -> Result<f32> {
        self.device.bind()?;
        let mut milliseconds = 0.0;
        // SAFETY: two live events and a place to write to.
        unsafe { driver::cuEventElapsedTime(&mut milliseconds, self.handle, end.handle)? };
        Ok(milliseconds)
    }
}

/// The answer of a query call.
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
            // A drop can tell nobody; a device that has failed says so at the next call.
            // SAFETY: not used again. The driver lets work that waits for it go on.
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

impl Stream {
    /// A new event after all work given to the stream so far.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn record(&self) -> Result<Event> {
        let event = Event::new(self.device())?;
        self.record_into(&event)?;
        Ok(event)
    }

    /// Moves `event` to after all work given to the stream so far.
    ///
    /// # Errors
    ///
    /// [`Error::OtherDevice`]; the driver's errors.
    pub fn record_into(&self, event: &Event) -> Result<()> {
        self.check_device("the event", event.device())?;
        let lock = &event.captured;
        let mut captured = lock.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a live event and a live stream.
        let within = self.give(None, iter::empty(), || unsafe {
            driver::cuEventRecord(event.handle, self.raw())
        })?;
        *captured = within.then(|| thread::current().id());
        Ok(())
    }

    /// Makes later work on this stream wait for `event`, which may be of another stream or device.
    /// The host does not wait.
    ///
    /// # Errors
    ///
    /// [`Error::Capturing`] when just one of the two, stream and event, is of a capture, unless it
    /// is the event, of a capture of this thread; the driver's errors.
    pub fn wait(&self, event: &Event) -> Result<()> {
        let captured = event
            .captured
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a live event and a live stream.
        let wait = || unsafe { driver::cuStreamWaitEvent(self.raw(), event.raw(), 0) };
        match *captured {
            None => self.now("waiting for an event that is not captured", wait),
            Some(thread) if thread != thread::current().id() => Err(Error::Capturing {
                call: "the work of a thread that does not capture",
            }),
            Some(_) => self.alone(|| {
                self.own_capture()?;
                self.device().bind()?;
                wait()
            }),
        }
    }
}
