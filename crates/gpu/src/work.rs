//! Work on streams: it is ordered with the memory that it uses, and becomes part of a capture.

use core::iter;
use std::sync::PoisonError;
use std::thread;

use crate::memory::{Memory, Owner};
use crate::{Error, Event, Kernel, Result, Stream, capture, driver};

impl Stream {
    /// Runs `f`, which queues work that uses `kernel` and the memory of `owners`, with the context
    /// current. If this thread captures the stream, the work becomes part of the graph, which then
    /// keeps the kernel and the memory. Returns whether the work was captured.
    pub(crate) fn submit<'a>(
        &self,
        kernel: Option<&Kernel>,
        owners: impl Iterator<Item = Owner<'a>> + Clone,
        f: impl FnOnce() -> Result<()>,
    ) -> Result<bool> {
        owners.clone().try_for_each(|owner| owner.begin_use(self))?;
        {
            let _no_capture_begins = self.no_capture_begins();
            let capture = self.this_threads_capture()?;
            self.device().bind()?;
            f()?;
            if let Some(id) = capture {
                capture::with(id, |kept| {
                    if let Some(kernel) = kernel {
                        kept.keep(kernel.clone());
                    }
                    owners.for_each(|owner| owner.share(kept));
                });
                return Ok(true);
            }
        }
        owners.for_each(|owner| owner.end_use(self));
        Ok(false)
    }

    /// Runs `f`, which queues work that knows `memory` by address only, such as a kernel with
    /// addresses inside a struct. The memory is freed after that work, or after the graph that the
    /// work becomes part of. Slices that are arguments themselves need no such call.
    ///
    /// # Errors
    ///
    /// The errors of `f`; [`Error::OtherDevice`]; [`Error::Capturing`] while another thread
    /// captures the stream; the driver's errors.
    pub fn using<R, E: From<Error>>(
        &self,
        memory: &[Memory],
        f: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        let owners = memory.iter().map(Memory::owner);
        let captured = self.submit(None, owners.clone(), || Ok(()))?;
        let outcome = f();
        if !captured {
            owners.for_each(|owner| owner.end_use(self));
        }
        outcome
    }

    /// Records a new event after all work queued on the stream so far.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn record(&self) -> Result<Event> {
        let event = Event::new(self.device())?;
        self.record_into(&event)?;
        Ok(event)
    }

    /// Records `event` again, after all work queued on the stream so far.
    ///
    /// # Errors
    ///
    /// [`Error::OtherDevice`]; the driver's errors.
    pub fn record_into(&self, event: &Event) -> Result<()> {
        self.check_device("the event", event.device())?;
        let lock = &event.captured;
        let mut captured = lock.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: event and stream are live.
        let within = self.submit(None, iter::empty(), || unsafe {
            driver::cuEventRecord(event.raw(), self.raw())
        })?;
        *captured = within.then(|| thread::current().id());
        Ok(())
    }

    /// Makes later work on this stream wait for `event`, which may be of another stream or device.
    /// The host does not wait.
    ///
    /// # Errors
    ///
    /// [`Error::Capturing`] if the stream is being captured and the event is not, or if the event
    /// belongs to a capture of another thread; the driver's errors.
    pub fn wait(&self, event: &Event) -> Result<()> {
        let captured = event
            .captured
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        // SAFETY: event and stream are live.
        let wait = || unsafe { driver::cuStreamWaitEvent(self.raw(), event.raw(), 0) };
        match *captured {
            None => self.immediate("waiting for an event that is not captured", wait),
            Some(thread) if thread != thread::current().id() => Err(Error::Capturing {
                call: "work of another thread than the capturing one",
            }),
            Some(_) => self.exclusive(|| {
                self.this_threads_capture()?;
                self.device().bind()?;
                wait()
            }),
        }
    }
}
