//! Captures in progress: what the graphs that come out of them must keep alive.

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::driver::{self, CUgraph, CUstream};
use crate::memory::{Allocation, Owner};
use crate::stream::Handle;
use crate::{Device, Error, Kernel, Result, Stream};

/// What a captured graph uses that may be dropped before it.
#[derive(Default)]
pub(crate) struct Kept {
    /// The thread that captures.
    thread: Option<ThreadId>,
    kernels: Vec<Kernel>,
    /// Memory that its work is known to use, by address.
    used: BTreeMap<u64, Arc<Allocation>>,
    /// Memory dropped during the capture, which its work may use.
    pub dropped: Vec<Allocation>,
    /// Streams of the capture dropped during it.
    pub streams: Vec<Handle>,
}

impl Kept {
    /// Keeps what a piece of work uses.
    pub fn work<'a>(&mut self, kernel: Option<&Kernel>, owners: impl Iterator<Item = Owner<'a>>) {
        self.kernels.extend(kernel.cloned());
        for owner in owners {
            if let Owner::Buffer(allocation) = owner
                && allocation.ptr() != 0
            {
                let used = self.used.entry(allocation.ptr());
                used.or_insert_with(|| Arc::clone(allocation));
            }
        }
    }

    pub fn allocations(&self) -> impl Iterator<Item = &Allocation> {
        let used = self.used.values().map(Arc::as_ref);
        used.chain(&self.dropped)
    }
}

/// Captures in progress in this process. While there are none, streams need not be asked.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);
/// By the driver's number for the capture: work of other streams joins a capture by waiting for its
/// events, so the stream does not tell.
static KEPT: Mutex<BTreeMap<u64, Kept>> = Mutex::new(BTreeMap::new());

fn kept() -> MutexGuard<'static, BTreeMap<u64, Kept>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True while any stream of this process is being captured by [`Stream::capture`].
fn any() -> bool {
    ACTIVE.load(Ordering::SeqCst) != 0
}

/// Runs `f`, which would break captures off, while no stream is being captured and none can begin
/// to be. `None` when one is.
pub(crate) fn apart<R>(f: impl FnOnce() -> R) -> Option<R> {
    let _no_capture_begins = kept();
    (!any()).then(f)
}

/// The capture that a stream is part of.
pub(crate) fn id(device: &Device, stream: CUstream) -> Result<Option<u64>> {
    if !any() {
        return Ok(None);
    }
    let (mut status, mut id) = (0, 0);
    device.bind()?;
    // SAFETY: a live stream, and two places to write to.
    unsafe { driver::cuStreamGetCaptureInfo(stream, &mut status, &mut id)? };
    Ok((status != NONE).then_some(id))
}

/// True unless another thread captures. A capture that was broken off may have no number any more:
/// the driver refuses all work then.
pub(crate) fn of_this_thread(id: u64) -> bool {
    let thread = kept().get(&id).and_then(|kept| kept.thread);
    thread.is_none_or(|thread| thread == thread::current().id())
}

/// What is kept for the graph of capture `id`.
pub(crate) fn with(id: u64, f: impl FnOnce(&mut Kept)) {
    if let Some(kept) = kept().get_mut(&id) {
        f(kept);
    }
}

/// Keeps `thing` for the graph of capture `id`; gives it back when there is no such capture.
pub(crate) fn keep<T>(id: u64, list: impl FnOnce(&mut Kept) -> &mut Vec<T>, thing: T) -> Option<T> {
    let mut kept = kept();
    // A capture that was broken off may have no number any more: then any that is still open keeps
    // the thing long enough.
    let id = if kept.contains_key(&id) {
        Some(id)
    } else {
        kept.keys().next_back().copied()
    };
    match id.and_then(|id| kept.get_mut(&id)) {
        Some(kept) => {
            list(kept).push(thing);
            None
        }
        None => Some(thing),
    }
}

/// A capture in progress. Dropping it ends the capture, so that the stream stays usable after a
/// panic too.
pub(crate) struct Capture<'a> {
    stream: &'a Stream,
    id: u64,
    ended: bool,
}

/// `CU_STREAM_CAPTURE_MODE_RELAXED`: calls that do not concern the stream, such as loading a
/// module, stay allowed on all threads.
const RELAXED: i32 = 2;
/// `CU_STREAM_CAPTURE_STATUS_NONE`.
const NONE: i32 = 0;

impl<'a> Capture<'a> {
    pub fn begin(stream: &'a Stream) -> Result<Capture<'a>> {
        // Before the capture begins, so that no thread misses it; dropping `capture` takes it back.
        {
            let _not_within_apart = kept();
            ACTIVE.fetch_add(1, Ordering::SeqCst);
        }
        let mut capture = Capture {
            stream,
            id: 0,
            ended: true,
        };
        let id = stream.alone(|| {
            if stream.capture_id()?.is_some() {
                return Err(Error::Capturing {
                    call: "another capture",
                });
            }
            stream.device().bind()?;
            // SAFETY: a live stream.
            unsafe { driver::cuStreamBeginCapture_v2(stream.raw(), RELAXED)? };
            capture.ended = false;
            let id = stream.capture_id()?;
            if let Some(id) = id {
                let thread = Some(thread::current().id());
                let own = Kept {
                    thread,
                    ..Kept::default()
                };
                kept().insert(id, own);
            }
            Ok(id)
        })?;
        capture.id = id.ok_or(Error::Unsupported {
            device: stream.device().info().ordinal,
            what: "stream capture",
        })?;
        Ok(capture)
    }

    /// The graph, and what it must keep.
    pub fn end(mut self) -> (Result<CUgraph>, Kept) {
        let graph = self.finish();
        (graph, kept().remove(&self.id).unwrap_or_default())
    }

    fn finish(&mut self) -> Result<CUgraph> {
        self.ended = true;
        let mut graph = ptr::null_mut();
        self.stream.alone(|| {
            self.stream.device().bind()?;
            // SAFETY: a live stream; whatever this returns, the stream is no longer captured.
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
            // The error that ended the capture is the one to tell.
            // SAFETY: the graph came from the capture just now and nobody else has it.
            let _ = unsafe { driver::cuGraphDestroy(graph) };
        }
        ACTIVE.fetch_sub(1, Ordering::SeqCst);
        // Dropped after the lock is released: dropping an allocation may come back here.
        let rest = kept().remove(&self.id);
        drop(rest);
    }
}
