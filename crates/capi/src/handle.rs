//! Handles, and the table that maps them to broad phases.

use crate::error::Failure;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, TryLockError};

/// A broad phase: finds the overlapping pairs of a scene in every frame. radsweep_create makes one.
#[derive(Debug)]
pub struct RadsweepBroadPhase {
    _nothing: (),
}

/// The state behind a handle.
pub(crate) struct State {
    pub(crate) broad_phase: sap::BroadPhase,
    /// The pairs between two sets that the last call lent.
    pub(crate) between: Vec<sap::Pair>,
    pub(crate) indices: Vec<u32>,
    pub(crate) hits: Vec<crate::types::RadsweepRayHit>,
}

/// The states by handle. Handles are never reused, so a destroyed one is never found.
static TABLE: RwLock<Option<HashMap<usize, Arc<RwLock<State>>>>> = RwLock::new(None);

/// The next handle. On 64-bit machines no address of a program has the top bit set, and no aligned
/// address is odd.
static NEXT: AtomicUsize = AtomicUsize::new(FIRST);
const FIRST: usize = 1 << (usize::BITS - 1) | 1;

/// Adds a broad phase to the table and returns its handle.
pub(crate) fn insert(broad_phase: sap::BroadPhase) -> *mut RadsweepBroadPhase {
    let state = State {
        broad_phase,
        between: Vec::new(),
        indices: Vec::new(),
        hits: Vec::new(),
    };
    let number = NEXT.fetch_add(2, Ordering::Relaxed);
    // Nothing panics under the lock, so the table is consistent even if it is poisoned.
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let handles = table.get_or_insert_default();
    handles.insert(number, Arc::new(RwLock::new(state)));
    std::ptr::without_provenance_mut(number)
}

/// Removes a handle from the table. Its state is dropped when the last call that uses it returns.
pub(crate) fn remove(handle: *mut RadsweepBroadPhase) -> Result<(), Failure> {
    let number = handle.addr();
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let found = table.as_mut().and_then(|handles| handles.remove(&number));
    drop(table);
    found.map(drop).ok_or(Failure::Handle { handle: number })
}

/// Calls a function with exclusive access to the state behind a handle.
pub(crate) fn with(
    handle: *const RadsweepBroadPhase,
    call: impl FnOnce(&mut State) -> Result<(), Failure>,
) -> Result<(), Failure> {
    match find(handle)?.try_write() {
        Ok(mut state) => call(&mut state),
        Err(TryLockError::WouldBlock) => Err(Failure::Busy),
        Err(TryLockError::Poisoned(_)) => Err(Failure::Poisoned),
    }
}

/// Calls a function with shared access to the state behind a handle.
pub(crate) fn with_shared(
    handle: *const RadsweepBroadPhase,
    call: impl FnOnce(&State) -> Result<(), Failure>,
) -> Result<(), Failure> {
    match find(handle)?.try_read() {
        Ok(state) => call(&state),
        Err(TryLockError::WouldBlock) => Err(Failure::Busy),
        Err(TryLockError::Poisoned(_)) => Err(Failure::Poisoned),
    }
}

fn find(handle: *const RadsweepBroadPhase) -> Result<Arc<RwLock<State>>, Failure> {
    let number = handle.addr();
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    let found = table.as_ref().and_then(|handles| handles.get(&number));
    found.cloned().ok_or(Failure::Handle { handle: number })
}
