//! Refuses large allocations. A test binary has
//! `#[global_allocator] static ALLOCATOR: Refusing = Refusing;`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Min bytes of an allocation that counts. Smaller ones belong to a task or a block, not to a
/// frame.
pub const LARGE: usize = 64 << 10;

/// The system's allocator, which refuses what [`refuse`] says.
pub struct Refusing;

/// Which allocations are refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Refuse {
    One,
    AllLater,
}

/// What came of it.
#[derive(Clone, Copy)]
pub struct Refused {
    /// Whether an allocation was refused.
    pub any: bool,
    /// Whether another was wanted after it.
    pub more: bool,
}

/// The number of large allocations until one is refused; 0 if none is.
static LEFT: AtomicU64 = AtomicU64::new(0);
static ALL_LATER: AtomicBool = AtomicBool::new(false);
static ANY: AtomicBool = AtomicBool::new(false);
static MORE: AtomicBool = AtomicBool::new(false);

/// Has a large allocation refused, the next one if `number` is 1, alone or with all later ones.
pub fn refuse(number: u64, which: Refuse) {
    ANY.store(false, Relaxed);
    MORE.store(false, Relaxed);
    ALL_LATER.store(which == Refuse::AllLater, Relaxed);
    LEFT.store(number, Relaxed);
}

/// Has no more refused.
pub fn stop() -> Refused {
    LEFT.store(0, Relaxed);
    Refused {
        any: ANY.swap(false, Relaxed),
        more: MORE.load(Relaxed),
    }
}

fn refuses(bytes: usize) -> bool {
    if bytes < LARGE {
        return false;
    }
    if ANY.load(Relaxed) {
        MORE.store(true, Relaxed);
    }
    let count = |left: u64| match left {
        1 if ALL_LATER.load(Relaxed) => Some(1),
        left => left.checked_sub(1),
    };
    let refuses = LEFT.fetch_update(Relaxed, Relaxed, count) == Ok(1);
    if refuses {
        ANY.store(true, Relaxed);
    }
    refuses
}

// SAFETY: this is the system's allocator, or null, which every caller must expect.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refuses(layout.size()) {
            return null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if refuses(layout.size()) {
            return null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if bytes > layout.size() && refuses(bytes) {
            return null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.realloc(place, layout, bytes) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }
}
