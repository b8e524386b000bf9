//! Streams: queues of work, and their locks against captures of other threads.

use core::ffi::c_void;
use core::{fmt, mem, ptr};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use crate::driver::{self, CUstream};
use crate::{Device, Error, Event, Result, capture, event};

/// A queue of work for a device, which runs in order and independently of other streams, the legacy
/// default stream included. Clones are handles of the same stream. Any thread may use it; work that
/// two threads queue at the same time runs in either order. While the stream is being captured,
/// only the capturing thread may use it.
///
/// Unless its documentation says otherwise, a call returns as soon as the work is queued, and a
/// later call returns the errors of that work.
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

struct Inner {
    handle: Handle,
    /// Locked for reading, by any number of threads, from the check whether the stream is being
    /// captured until the work is queued, or done if the call lends host memory to it. Locked for
    /// writing while a capture begins, ends, or is joined. No thread locks those of two streams.
    capture: RwLock<()>,
}

/// The driver's handle of a stream.
struct Handle {
    device: Device,
    raw: CUstream,
}
// SAFETY: the driver lets any thread use a stream.
unsafe impl Send for Handle {}
// SAFETY: the driver lets any number of threads use a stream at once.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // A stream that is part of a capture must live until the capture ends.
        if let Ok(Some(id)) = capture::id(&self.device, self.raw) {
            let moved = Handle {
                device: self.device.clone(),
                raw: mem::replace(&mut self.raw, ptr::null_mut()),
            };
            match capture::keep(id, moved) {
                None => return,
                Some(mut back) => mem::swap(self, &mut back),
            }
        }
        if !self.raw.is_null() && self.device.bind().is_ok() {
            // A drop cannot return an error; if the device has failed, the next call returns it.
            // SAFETY: the stream is not used again, and the driver lets its queued work end.
            let _ = unsafe { driver::cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;

impl Stream {
    /// Makes a stream.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn new(device: &Device) -> Result<Stream> {
        device.bind()?;
        let mut handle = ptr::null_mut();
        // SAFETY: the out pointer is valid.
        unsafe { driver::cuStreamCreate(&mut handle, NON_BLOCKING)? };
        Ok(Self::owning(device, handle))
    }

    /// Makes a stream whose kernels get a multiprocessor before those of other streams that wait
    /// for one. What runs already is not interrupted. It is for short work that others wait for,
    /// beside long work that fills the device.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn urgent(device: &Device) -> Result<Stream> {
        device.bind()?;
        let (mut least, mut greatest, mut handle) = (0, 0, ptr::null_mut());
        // SAFETY: the out pointers are valid.
        unsafe {
            driver::cuCtxGetStreamPriorityRange(&mut least, &mut greatest)?;
            driver::cuStreamCreateWithPriority(&mut handle, NON_BLOCKING, greatest)?;
        }
        Ok(Self::owning(device, handle))
    }

    fn owning(device: &Device, handle: CUstream) -> Stream {
        Stream(Arc::new(Inner {
            handle: Handle {
                device: device.clone(),
                raw: handle,
            },
            capture: RwLock::default(),
        }))
    }

    /// Returns the device of the stream.
    pub fn device(&self) -> &Device {
        &self.0.handle.device
    }

    /// Returns the driver's handle, a `CUstream`, for libraries that queue work of their own. It is
    /// valid while a handle of the stream lives. [`Stream::using`] makes the device current for
    /// such work, and keeps the memory that it uses.
    pub fn handle(&self) -> *mut c_void {
        self.raw().cast()
    }

    pub(crate) fn raw(&self) -> CUstream {
        self.0.handle.raw
    }

    /// Returns whether both are handles of one stream.
    pub(crate) fn same(&self, other: &Stream) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn check_device(&self, what: &'static str, other: &Device) -> Result<()> {
        let (stream, other_ordinal) = (self.device().info().ordinal, other.info().ordinal);
        if other.same(self.device()) {
            Ok(())
        } else {
            Err(Error::OtherDevice {
                what,
                other: other_ordinal,
                stream,
            })
        }
    }

    /// Returns the id of the capture that the stream is part of.
    pub(crate) fn capture_id(&self) -> Result<Option<u64>> {
        capture::id(self.device(), self.raw())
    }

    /// Fails if the stream is being captured. The capture continues, while the driver's own refusal
    /// would invalidate it.
    pub(crate) fn refuse_capture(&self, call: &'static str) -> Result<()> {
        match self.capture_id()? {
            Some(_) => Err(Error::Capturing { call }),
            None => Ok(()),
        }
    }

    /// Runs `f`, which begins, ends or joins a capture, while no other thread queues work on the
    /// stream. `f` must not call this method or the two that follow.
    pub(crate) fn exclusive<R>(&self, f: impl FnOnce() -> R) -> R {
        let lock = &self.0.capture;
        let _alone = lock.write().unwrap_or_else(PoisonError::into_inner);
        f()
    }

    /// Locks out captures of the stream: none begins while the guard lives.
    pub(crate) fn no_capture_begins(&self) -> RwLockReadGuard<'_, ()> {
        let lock = &self.0.capture;
        lock.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `f`, which waits for the stream or queues what cannot be captured, with the context
    /// current. No capture can begin meanwhile. `f` must not call this method or the next.
    pub(crate) fn immediate<R>(
        &self,
        call: &'static str,
        f: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let _no_capture_begins = self.no_capture_begins();
        self.refuse_capture(call)?;
        self.device().bind()?;
        f()
    }

    /// Returns the id of the capture that the stream is part of. Fails if another thread captures
    /// it, because this thread's work is not meant for that graph.
    pub(crate) fn this_threads_capture(&self) -> Result<Option<u64>> {
        match self.capture_id()? {
            Some(id) if !capture::of_this_thread(id) => Err(Error::Capturing {
                call: "work of another thread than the capturing one",
            }),
            capture => Ok(capture),
        }
    }

    /// Orders work queued from now on after the work queued on `other` so far.
    pub(crate) fn run_after(&self, other: &Stream) -> Result<()> {
        const CALL: &str = "the first or last use of a buffer by another stream";
        let event = Event::new(other.device())?;
        // SAFETY: event and stream are live.
        other.immediate(CALL, || unsafe {
            driver::cuEventRecord(event.raw(), other.raw())
        })?;
        // SAFETY: event and stream are live.
        self.immediate(CALL, || unsafe {
            driver::cuStreamWaitEvent(self.raw(), event.raw(), 0)
        })
    }

    /// Waits for all work; the caller has locked `capture` and made the context current. Afterwards
    /// no work uses host memory that was lent to it.
    pub(crate) fn finish(&self) -> Result<()> {
        // SAFETY: the stream is live. The first wait may return early with an error of earlier
        // work. A second wait returns early only if the context is dead, and then nothing copies
        // any more.
        unsafe {
            driver::cuStreamSynchronize(self.raw()).inspect_err(|_| {
                let _: Result<()> = driver::cuStreamSynchronize(self.raw());
            })
        }
    }

    /// Waits until all work queued on the stream is done.
    ///
    /// # Errors
    ///
    /// [`Error::Capturing`]; the driver's errors, including those of the work.
    pub fn synchronize(&self) -> Result<()> {
        self.immediate("Stream::synchronize", || self.finish())
    }

    /// Returns whether all work queued on the stream is done.
    ///
    /// # Errors
    ///
    /// As [`Stream::synchronize`].
    pub fn is_idle(&self) -> Result<bool> {
        self.immediate("Stream::is_idle", || {
            // SAFETY: the stream is live.
            event::ready(unsafe { driver::cuStreamQuery(self.raw()) })
        })
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("device", &self.device().info().ordinal)
            .field("handle", &self.raw())
            .finish()
    }
}
