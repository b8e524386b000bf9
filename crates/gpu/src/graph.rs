//! Graphs: captured work that is replayed with one call.

use core::fmt;
use core::ptr;
use std::sync::{Mutex, PoisonError};

use crate::capture::{self, Resources};
use crate::driver::{self, CUgraph, CUgraphExec};
use crate::memory::Allocation;
use crate::{Device, Error, Result, Stream};

/// Work that [`Stream::capture`] captured from a stream, and that one call replays.
///
/// A graph keeps alive the kernels that it runs and these buffers: those that it fills, copies, or
/// passes to kernels as slices; those named by [`Stream::using`]; and those that were dropped
/// during the capture. They are freed when the graph is dropped and its last run is done. Memory
/// that a kernel knows in another way, such as by an address in a struct, must outlive the graph,
/// as [`Stream::launch`] asks.
pub struct Graph {
    device: Device,
    // The driver allows one thread at a time to use a graph.
    exec: Mutex<Exec>,
    // Dropped after `Drop::drop` has ordered the frees after the graph's runs.
    kept: Resources,
}

struct Exec {
    handle: CUgraphExec,
    /// The streams that ran the graph. Its resources are freed after their work.
    streams: Vec<Stream>,
}
// SAFETY: any thread may use the driver's handle, and the mutex around it admits one at a time.
unsafe impl Send for Exec {}

/// A capture in progress. Dropping it ends the capture, so that the stream is usable again even
/// after a panic.
struct Capture<'a> {
    stream: &'a Stream,
    id: u64,
    ended: bool,
}

/// `CU_STREAM_CAPTURE_MODE_RELAXED`: calls that do not concern the stream, such as loading a
/// module, remain allowed on all threads.
const RELAXED: i32 = 2;

impl<'a> Capture<'a> {
    fn begin(stream: &'a Stream) -> Result<Capture<'a>> {
        // Dropping `capture` uncounts it.
        capture::count();
        let mut capture = Capture {
            stream,
            id: 0,
            ended: true,
        };
        let id = stream.exclusive(|| {
            if stream.capture_id()?.is_some() {
                return Err(Error::Capturing {
                    call: "another capture",
                });
            }
            stream.device().bind()?;
            // SAFETY: the stream is live.
            unsafe { driver::cuStreamBeginCapture_v2(stream.raw(), RELAXED)? };
            capture.ended = false;
            let id = stream.capture_id()?;
            if let Some(id) = id {
                capture::begun(id);
            }
            Ok(id)
        })?;
        capture.id = id.ok_or(Error::Unsupported {
            device: stream.device().info().ordinal,
            what: "stream capture",
        })?;
        Ok(capture)
    }

    /// Ends the capture. Returns the graph and the resources that it must keep.
    fn end(mut self) -> (Result<CUgraph>, Resources) {
        let graph = self.finish();
        (graph, capture::ended(self.id))
    }

    fn finish(&mut self) -> Result<CUgraph> {
        self.ended = true;
        let mut graph = ptr::null_mut();
        self.stream.exclusive(|| {
            self.stream.device().bind()?;
            // SAFETY: the stream is live. Whatever this returns, the stream is no longer captured.
            unsafe { driver::cuStreamEndCapture(self.stream.raw(), &mut graph) }
        })?;
        Ok(graph)
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        if !self.ended
            && let Ok(graph) = self.finish()
            && !graph.is_null()
        {
            // The error that ended the capture is the one to return.
            // SAFETY: the capture just returned the graph, and nothing else refers to it.
            let _ = unsafe { driver::cuGraphDestroy(graph) };
        }
        capture::uncount();
        drop(capture::ended(self.id));
    }
}

/// A captured graph that is not instantiated yet.
struct Captured(CUgraph);

impl Drop for Captured {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // A drop cannot return an error; if the device has failed, the next call returns it.
            // SAFETY: only this value owns the graph, and an instantiated graph does not need it.
            let _ = unsafe { driver::cuGraphDestroy(self.0) };
        }
    }
}

impl Graph {
    fn capture(stream: &Stream, f: impl FnOnce(&Stream) -> Result<()>) -> Result<Graph> {
        let capture = Capture::begin(stream)?;
        let outcome = f(stream);
        let (graph, kept) = capture.end();
        // The closure's own error explains more than that of the capture that it may have
        // invalidated.
        let graph = outcome.and(graph.map(Captured));
        let graph = graph?;
        let mut handle = ptr::null_mut();
        stream.device().bind()?;
        // SAFETY: the graph came from the capture, and the out pointer is valid.
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

    /// Queues a run of the graph on `stream`, after the work queued there before and after the
    /// graph's last run. The call does not wait for the run.
    ///
    /// # Errors
    ///
    /// [`Error::OtherDevice`](crate::Error::OtherDevice),
    /// [`Error::Capturing`](crate::Error::Capturing); the driver's errors.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        let mut exec = self.on(stream)?;
        let new = !exec.streams.iter().any(|other| other.same(stream));
        if new {
            let mut allocations = self.kept.of_type::<Allocation>();
            allocations.try_for_each(|allocation| allocation.begin_use(stream))?;
        }
        // SAFETY: graph and stream are live, and the lock admits one thread at a time.
        stream.immediate("Graph::launch", || unsafe {
            driver::cuGraphLaunch(exec.handle, stream.raw())
        })?;
        if new {
            exec.streams.push(stream.clone());
        }
        Ok(())
    }

    /// Uploads the graph to the device ahead of its first [`Graph::launch`], which then is as fast
    /// as later ones.
    ///
    /// # Errors
    ///
    /// As for [`Graph::launch`].
    pub fn upload(&self, stream: &Stream) -> Result<()> {
        let exec = self.on(stream)?;
        // SAFETY: graph and stream are live, and the lock admits one thread at a time.
        stream.immediate("Graph::upload", || unsafe {
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
            let allocations = self.kept.of_type::<Allocation>();
            allocations.for_each(|allocation| allocation.end_use(stream));
        }
        if self.device.bind().is_ok() {
            // SAFETY: the graph is not used again, and the driver lets a run in progress end.
            let _: Result<()> = unsafe { driver::cuGraphExecDestroy(exec.handle) };
        }
    }
}

impl Stream {
    /// Captures the work that `f` queues on the stream into a graph, instead of running it.
    ///
    /// `f` may launch kernels, fill, copy within the device and from and to pinned memory, and
    /// record and wait for events. A stream that waits for an event of this stream joins the
    /// capture; this stream must wait for it in turn before `f` ends.
    ///
    /// Calls that cannot be captured, such as an allocation, [`Stream::upload`] or
    /// [`Stream::synchronize`], fail with [`Error::Capturing`], and the capture continues. The same
    /// holds for all work that another thread queues on the stream meanwhile. This call first waits
    /// for calls of other threads that are using the stream. If `f` fails or panics, nothing is
    /// captured, and the stream is usable again.
    ///
    /// The graph keeps alive the kernels and buffers that its work uses, and the buffers that are
    /// dropped in `f` ([`Graph`]).
    ///
    /// # Errors
    ///
    /// The first error of `f`; [`Error::Capturing`] inside another capture; the driver's errors.
    ///
    /// ```
    /// # fn f(stream: &gpu::Stream) -> gpu::Result<()> {
    /// let mut counter = stream.alloc_zeroed::<u32>(1)?;
    /// let graph = stream.capture(|stream| stream.fill_u32(counter.slice_mut(), 7))?;
    /// graph.launch(stream)?;
    /// assert_eq!(stream.to_vec(counter.slice())?, [7]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn capture(&self, f: impl FnOnce(&Stream) -> Result<()>) -> Result<Graph> {
        Graph::capture(self, f)
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("device", self.device.info())
            .finish_non_exhaustive()
    }
}
