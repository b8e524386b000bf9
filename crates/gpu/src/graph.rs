//! Captured work, to be replayed at once.

use core::fmt;
use core::ptr;
use std::sync::{Mutex, PoisonError};

use crate::capture::{Capture, Kept};
use crate::driver::{self, CUgraph, CUgraphExec};
use crate::{Device, Result, Stream};

/// Work captured from a stream by [`Stream::capture`], replayed with one call.
///
/// It keeps the kernels that it runs, and the buffers that were dropped while it was captured.
/// Every other buffer that it uses must outlive it: a replay after one is gone is a use of freed
/// device memory, against the promise made at [`Stream::launch`].
pub struct Graph {
    device: Device,
    // The driver wants one thread at a time on a graph.
    exec: Mutex<Exec>,
    // Freed after `Drop::drop` has ended the graph's use of them.
    kept: Kept,
}

struct Exec {
    handle: CUgraphExec,
    /// Where it was launched: what was kept for it is freed when these are done.
    streams: Vec<Stream>,
}
// SAFETY: a driver handle, which any thread may use; the mutex around it lets one at a time.
unsafe impl Send for Exec {}

/// A captured graph that is not ready to run yet.
struct Captured(CUgraph);

impl Drop for Captured {
    fn drop(&mut self) {
        if !self.0.is_null() {
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
    /// [`Error::OtherDevice`](crate::Error::OtherDevice); the driver's errors.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        let mut exec = self.on(stream)?;
        // SAFETY: a live graph and a live stream, one thread at a time.
        unsafe { driver::cuGraphLaunch(exec.handle, stream.raw())? };
        if !exec.streams.iter().any(|s| s.same(stream)) {
            exec.streams.push(stream.clone());
        }
        Ok(())
    }

    /// Sends it to the device ahead of its first [`Graph::launch`], which is then as quick as the
    /// later ones.
    ///
    /// # Errors
    ///
    /// [`Error::OtherDevice`](crate::Error::OtherDevice); the driver's errors.
    pub fn upload(&self, stream: &Stream) -> Result<()> {
        let exec = self.on(stream)?;
        // SAFETY: as in `launch`.
        unsafe { driver::cuGraphUpload(exec.handle, stream.raw()) }
    }

    fn on(&self, stream: &Stream) -> Result<std::sync::MutexGuard<'_, Exec>> {
        stream.check_device("the graph", &self.device)?;
        stream.device().bind()?;
        Ok(self.exec.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let exec = self.exec.get_mut().unwrap_or_else(PoisonError::into_inner);
        if self.device.bind().is_err() {
            return;
        }
        if !self.kept.allocations.is_empty() {
            for stream in &exec.streams {
                // A stream that is being captured cannot be waited for; it is then the capture's
                // graph that uses the buffers.
                let _: Result<()> = stream.synchronize();
            }
        }
        // SAFETY: not used again. The driver lets a run in progress end.
        let _: Result<()> = unsafe { driver::cuGraphExecDestroy(exec.handle) };
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("device", self.device.info())
            .finish_non_exhaustive()
    }
}
