//! Captures in progress, and the resources that their graphs must keep alive.

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::driver::{self, CUgraph, CUstream};
use crate::memory::{Allocation, Owner};
use crate::stream::Handle;
use crate::{Device, Error, Kernel, Result, Stream};

/// The resources of a captured graph that may be dropped before it.
#[derive(Default)]
pub(crate) struct Resources {
    /// The capturing thread.
    thread: Option<ThreadId>,
    kernels: Vec<Kernel>,
    /// Memory that the captured work is known to use, by address.
    used: BTreeMap<u64, Arc<Allocation>>,
    /// Memory that was dropped during the capture; the captured work may use it.
    pub dropped: Vec<Allocation>,
    /// Streams of the capture that were dropped during it.
    pub streams: Vec<Handle>,
}

impl Resources {
    /// Keeps the kernel and the memory of captured work.
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

/// The number of captures in progress in this process. While it is 0, the driver need not be asked
/// about a stream.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);
/// The resources of each capture, by the driver's id for it. The stream is no key: other streams
/// join a capture by waiting for its events.
static KEPT: Mutex<BTreeMap<u64, Resources>> = Mutex::new(BTreeMap::new());

fn kept() -> MutexGuard<'static, BTreeMap<u64, Resources>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether any stream of this process is being captured by [`Stream::capture`].
fn any() -> bool {
    ACTIVE.load(Ordering::SeqCst) != 0
}

/// Runs `f`, which would invalidate captures, unless a capture is in progress; none can begin
/// meanwhile. Returns `None` if one is in progress.
pub(crate) fn outside<R>(f: impl FnOnce() -> R) -> Option<R> {
    let _no_capture_begins = kept();
    (!any()).then(f)
}

/// Returns the id of the capture that a stream is part of.
pub(crate) fn id(device: &Device, stream: CUstream) -> Result<Option<u64>> {
    if !any() {
        return Ok(None);
    }
    let (mut status, mut id) = (0, 0);
    device.bind()?;
    // SAFETY: the stream is live, and both out pointers are valid.
    unsafe { driver::cuStreamGetCaptureInfo(stream, &mut status, &mut id)? };
    Ok((status != NONE).then_some(id))
}

/// Returns false if another thread runs capture `id`. An invalidated capture may have no entry any
/// more; the driver then refuses all work itself.
pub(crate) fn of_this_thread(id: u64) -> bool {
    let thread = kept().get(&id).and_then(|kept| kept.thread);
    thread.is_none_or(|thread| thread == thread::current().id())
}

/// Runs `f` on the resources of capture `id`, if it is in progress.
pub(crate) fn with(id: u64, f: impl FnOnce(&mut Resources)) {
    if let Some(kept) = kept().get_mut(&id) {
        f(kept);
    }
}

/// Keeps `thing` for the graph of capture `id`. Returns it if no capture is in progress.
pub(crate) fn keep<T>(
    id: u64,
    list: impl FnOnce(&mut Resources) -> &mut Vec<T>,
    thing: T,
) -> Option<T> {
    let mut kept = kept();
    // An invalidated capture may have no entry any more. Any other open capture then keeps the
    // thing for long enough.
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

/// A capture in progress. Dropping it ends the capture, so that the stream is usable again even
/// after a panic.
pub(crate) struct Capture<'a> {
    stream: &'a Stream,
    id: u64,
    ended: bool,
}

/// `CU_STREAM_CAPTURE_MODE_RELAXED`: calls that do not concern the stream, such as loading a
/// module, remain allowed on all threads.
const RELAXED: i32 = 2;
/// `CU_STREAM_CAPTURE_STATUS_NONE`.
const NONE: i32 = 0;

impl<'a> Capture<'a> {
    pub fn begin(stream: &'a Stream) -> Result<Capture<'a>> {
        // Counted before the capture begins, so that no thread misses it. Dropping `capture`
        // uncounts it.
        {
            let _none_outside = kept();
            ACTIVE.fetch_add(1, Ordering::SeqCst);
        }
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
                let thread = Some(thread::current().id());
                let own = Resources {
                    thread,
                    ..Resources::default()
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

    /// Ends the capture. Returns the graph and the resources that it must keep.
    pub fn end(mut self) -> (Result<CUgraph>, Resources) {
        let graph = self.finish();
        (graph, kept().remove(&self.id).unwrap_or_default())
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
        ACTIVE.fetch_sub(1, Ordering::SeqCst);
        // Dropped after the lock is released, because dropping an allocation may lock again.
        let rest = kept().remove(&self.id);
        drop(rest);
    }
}
