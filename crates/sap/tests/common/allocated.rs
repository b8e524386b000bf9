//! Counts the bytes that the process has allocated, and the allocations of each thread. A test
//! binary has `#[global_allocator] static COUNTING: Counting = Counting;`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator with counters.
pub struct Counting;

static NOW: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static OF_THREAD: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of allocations of this thread so far.
pub fn of_thread() -> u64 {
    OF_THREAD.get()
}

/// Returns the bytes allocated now.
pub fn bytes() -> u64 {
    NOW.load(Ordering::Relaxed)
}

/// Resets the peak to the bytes allocated now.
pub fn reset_peak() {
    PEAK.store(bytes(), Ordering::Relaxed);
}

/// Returns the max bytes allocated at once since the reset.
pub fn peak() -> u64 {
    PEAK.load(Ordering::Relaxed)
}

// SAFETY: the system's allocator does all the work; no counter needs memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        OF_THREAD.set(OF_THREAD.get() + 1);
        let size = layout.size() as u64;
        let now = NOW.fetch_add(size, Ordering::Relaxed) + size;
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}
