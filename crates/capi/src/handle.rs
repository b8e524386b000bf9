//! Handles, and the table in which they are looked up.

use crate::error::Failure;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, TryLockError};

/// A broad phase: what finds the overlapping pairs of a scene, frame after frame. Made by radsweep_create.
#[derive(Debug)]
pub struct RadsweepBroadPhase {
    _nothing: (),
}

/// What a handle stands for.
pub(crate) struct State {
    pub(crate) broad_phase: sap::BroadPhase,
    /// What the last call lent out and the broad phase does not keep.
    pub(crate) between: Vec<sap::Pair>,
    pub(crate) indices: Vec<u32>,
    pub(crate) hits: Vec<crate::RadsweepRayHit>,
}

/// Handles by their number, which no handle gets twice: one that was destroyed is never found again.
static TABLE: RwLock<Option<HashMap<usize, Arc<Mutex<State>>>>> = RwLock::new(None);

/// The next number. With the top bit set no number is an address that a program can have on 64-bit machines, and odd ones are none
/// of anything that is aligned.
static NEXT: AtomicUsize = AtomicUsize::new(FIRST);
const FIRST: usize = 1 << (usize::BITS - 1) | 1;

/// Puts a broad phase into the table.
pub(crate) fn insert(broad_phase: sap::BroadPhase) -> *mut RadsweepBroadPhase {
    let state = State {
        broad_phase,
        between: Vec::new(),
        indices: Vec::new(),
        hits: Vec::new(),
    };
    let number = NEXT.fetch_add(2, Ordering::Relaxed);
    // Nothing panics while it holds the lock, so what a poisoned one guards is whole.
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let handles = table.get_or_insert_default();
    handles.insert(number, Arc::new(Mutex::new(state)));
    std::ptr::without_provenance_mut(number)
}

/// Takes a handle out of the table. What it stands for ends with the last call that is still at work with it.
pub(crate) fn remove(handle: *mut RadsweepBroadPhase) -> Result<(), Failure> {
    let number = handle.addr();
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let found = table.as_mut().and_then(|handles| handles.remove(&number));
    drop(table);
    found.map(drop).ok_or(Failure::Handle { handle: number })
}

/// Does something with what a handle stands for.
pub(crate) fn with(
    handle: *const RadsweepBroadPhase,
    call: impl FnOnce(&mut State) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let number = handle.addr();
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    let found = table
        .as_ref()
        .and_then(|handles| handles.get(&number))
        .cloned();
    drop(table);
    let state = found.ok_or(Failure::Handle { handle: number })?;
    match state.try_lock() {
        Ok(mut state) => call(&mut state),
        Err(TryLockError::WouldBlock) => Err(Failure::Busy),
        Err(TryLockError::Poisoned(_)) => Err(Failure::Poisoned),
    }
}
