//! The bytes that the process has allocated: `#[global_allocator] static COUNTING: Counting = Counting;` in a test binary.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator, counting.
pub struct Counting;

static NOW: AtomicU64 = AtomicU64::new(0);
static MOST: AtomicU64 = AtomicU64::new(0);

/// Bytes allocated now.
pub fn bytes() -> u64 {
    NOW.load(Ordering::Relaxed)
}

/// Forgets the past, so that the most is what there is now.
pub fn forget_most() {
    MOST.store(bytes(), Ordering::Relaxed);
}

/// The most bytes there were at once.
pub fn most() -> u64 {
    MOST.load(Ordering::Relaxed)
}

// SAFETY: all is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = layout.size() as u64;
        let now = NOW.fetch_add(size, Ordering::Relaxed) + size;
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}
