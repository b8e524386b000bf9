//! Captures in progress, and the resources that their graphs must keep alive.

use core::any::Any;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::driver::{self, CUstream};
use crate::{Device, Result};

/// What the graph of a capture keeps alive: kernels, memory and streams that may be dropped before
/// it. Their types are not named here, because each asks this module when it is dropped.
#[derive(Default)]
pub(crate) struct Resources {
    /// The capturing thread.
    thread: Option<ThreadId>,
    things: Vec<Box<dyn Any + Send + Sync>>,
    /// What the captured work shares, by address.
    shared: BTreeMap<u64, Arc<dyn Any + Send + Sync>>,
}

impl Resources {
    /// Keeps a thing.
    pub fn keep(&mut self, thing: impl Any + Send + Sync) {
        self.things.push(Box::new(thing));
    }

    /// Keeps a share in the thing at that address, once.
    pub fn share<T: Any + Send + Sync>(&mut self, address: u64, thing: &Arc<T>) {
        let entry = self.shared.entry(address);
        entry.or_insert_with(|| Arc::<T>::clone(thing));
    }

    /// Returns the things of one type.
    pub fn of_type<T: Any>(&self) -> impl Iterator<Item = &T> {
        let shared = self.shared.values().map(|thing| &**thing as &dyn Any);
        let things = self.things.iter().map(|thing| &**thing as &dyn Any);
        shared.chain(things).filter_map(<dyn Any>::downcast_ref)
    }
}

/// `CU_STREAM_CAPTURE_STATUS_NONE`.
const NONE: i32 = 0;

/// The number of captures in progress in this process. While it is 0, the driver need not be asked
/// about a stream.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);
/// The resources of each capture, by the driver's id for it. The stream is no key: other streams
/// join a capture by waiting for its events.
static KEPT: Mutex<BTreeMap<u64, Resources>> = Mutex::new(BTreeMap::new());

fn kept() -> MutexGuard<'static, BTreeMap<u64, Resources>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether any stream of this process is being captured.
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
pub(crate) fn keep<T: Any + Send + Sync>(id: u64, thing: T) -> Option<T> {
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
            kept.keep(thing);
            None
        }
        None => Some(thing),
    }
}

/// Counts a capture that is about to begin, so that no thread misses it.
pub(crate) fn count() {
    let _none_outside = kept();
    ACTIVE.fetch_add(1, Ordering::SeqCst);
}

/// Counts a capture no more.
pub(crate) fn uncount() {
    ACTIVE.fetch_sub(1, Ordering::SeqCst);
}

/// Notes that this thread runs capture `id`.
pub(crate) fn begun(id: u64) {
    let own = Resources {
        thread: Some(thread::current().id()),
        ..Resources::default()
    };
    kept().insert(id, own);
}

/// Returns the resources of capture `id`, which has ended. They are dropped by the caller, because
/// dropping them may lock the table again.
pub(crate) fn ended(id: u64) -> Resources {
    kept().remove(&id).unwrap_or_default()
}
