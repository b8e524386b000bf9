//! Captured work, to be replayed at once.

use core::fmt;
use core::ptr;
use std::sync::{Mutex, PoisonError};

use crate::capture::{Capture, Kept};
use crate::driver::{self, CUgraph, CUgraphExec};
use crate::{Device, Result, Stream};

/// Work captured from a stream by [`Stream::capture`], replayed with one call.
///
/// It keeps alive the kernels that it runs, the buffers that it fills, copies, or has as kernels'
/// arguments, those named by [`Stream::using`], and those that were dropped while it was captured:
/// they are freed when the graph is dropped and its last run is done. Memory that a kernel knows
/// otherwise, such as by an address in a struct, must outlive it, by the promise made at
/// [`Stream::launch`].
pub struct Graph {
    device: Device,
    // The driver wants one thread at a time on a graph.
    exec: Mutex<Exec>,
    // Freed after `Drop::drop` has told the allocations where the graph ran.
    kept: Kept,
}

struct Exec {
    handle: CUgraphExec,
    /// Where it was launched: what is kept for it is freed when these are done.
    streams: Vec<Stream>,
}
// SAFETY: a driver handle, which any thread may use; the mutex around it lets one at a time.
unsafe impl Send for Exec {}

/// A captured graph that is not ready to run yet.
struct Captured(CUgraph);

impl Drop for Captured {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // A drop can tell nobody; a device that has failed says so at the next call.
            // SAFETY: owned by this value alone; a graph made ready to run does not need it.
            let _ = unsafe { driver::cuGraphDestroy(self.0) };
        }
    }
}

impl Graph {
    pub(crate) fn capture(stream: &Stream, f: impl FnOnce(&Stream) -> Result<()>) -> Result<Graph> {
        let capture = Capture::begin(stream)?;
        let outcome = f(stream);
        let (graph, kept) = capture.end();
        // A failed closure's own error explains more than the broken capture that it may have left.
        let graph = outcome.and(graph.map(Captured));
        let graph = graph?;
        let mut handle = ptr::null_mut();
        stream.device().bind()?;
        // SAFETY: a graph from the capture, and a place to write to.
        unsafe { driver::cuGraphInstantiateWithFlags(&mut handle, graph.0, 0)? };
        let exec = Mutex::new(Exec {
            handle,
            streams: Vec::new(),
        });
        Ok(Graph {
            device: stream.device().clone(),
            exec,
            kept,
        })
    }

    /// Runs it on `stream`, after the work given to that stream before and after its own last run.
    /// Asynchronous.
    ///
    /// # Errors
    ///
    /// [`Error::OtherDevice`](crate::Error::OtherDevice),
    /// [`Error::Capturing`](crate::Error::Capturing); the driver's errors.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        let mut exec = self.on(stream)?;
        let new = !exec.streams.iter().any(|other| other.same(stream));
        if new {
            let mut allocations = self.kept.allocations();
            allocations.try_for_each(|allocation| allocation.enter(stream))?;
        }
        // SAFETY: a live graph and a live stream, one thread at a time.
        stream.now("Graph::launch", || unsafe {
            driver::cuGraphLaunch(exec.handle, stream.raw())
        })?;
        if new {
            exec.streams.push(stream.clone());
        }
        Ok(())
    }

    /// Sends it to the device ahead of its first [`Graph::launch`], which is then as quick as the
    /// later ones.
    ///
    /// # Errors
    ///
    /// As [`Graph::launch`].
    pub fn upload(&self, stream: &Stream) -> Result<()> {
        let exec = self.on(stream)?;
        // SAFETY: as in `launch`.
        stream.now("Graph::upload", || unsafe {
            driver::cuGraphUpload(exec.handle, stream.raw())
        })
    }

    fn on(&self, stream: &Stream) -> Result<std::sync::MutexGuard<'_, Exec>> {
        stream.check_device("the graph", &self.device)?;
        Ok(self.exec.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let exec = self.exec.get_mut().unwrap_or_else(PoisonError::into_inner);
        for stream in &exec.streams {
            let allocations = self.kept.allocations();
            allocations.for_each(|allocation| allocation.leave(stream));
        }
        if self.device.bind().is_ok() {
            // SAFETY: not used again. The driver lets a run in progress end.
            let _: Result<()> = unsafe { driver::cuGraphExecDestroy(exec.handle) };
        }
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("device", self.device.info())
            .finish_non_exhaustive()
    }
}
