//! The order in which a grid takes many boxes: that of their cells in the last frame, where boxes
//! next to each other in the frame lie far apart (`kernels/sap/grid.cuh`).

use crate::cuda::abi::State;
use crate::cuda::tuning::{MAX_ORDER_WAIT, MIN_ORDER_WAIT, MIN_ORDERED, NEAR_SHARE};
use crate::policy::Backoff;
use gpu::{DevicePtr, Grow, Stream};

/// One block of boxes in this many is sampled: `NEAR_SAMPLE` of the kernels.
const SAMPLE: usize = 64;
/// The boxes of a block: `GRID_THREADS` of the kernels.
const BLOCK: usize = 256;

/// The order of the last frame's cells, and whether it is of use.
pub(super) struct BoxOrder {
    /// The order in which this frame takes the boxes, and memory for that of the next frame.
    lists: [Grow<u32>; 2],
    /// The boxes of the first list, 0 for none.
    len: usize,
    min_boxes: usize,
    /// Whether this frame took the boxes in that order.
    is_used: bool,
    /// Whether boxes as they are given lie far apart.
    is_wanted: bool,
    /// The frames without an order after one in which boxes had moved far.
    backoff: Backoff,
}

/// Indices of all boxes, in the order in which this frame takes them, and memory for that of the
/// next. Each may be null.
pub(super) struct Orders {
    pub(super) now: DevicePtr<u32>,
    pub(super) next: DevicePtr<u32>,
}

impl Orders {
    pub(super) const NONE: Self = Self {
        now: DevicePtr::NULL,
        next: DevicePtr::NULL,
    };
}

impl BoxOrder {
    pub(super) fn new(min_boxes: Option<usize>) -> Self {
        Self {
            lists: Default::default(),
            len: 0,
            min_boxes: min_boxes.unwrap_or(MIN_ORDERED),
            is_used: false,
            is_wanted: false,
            backoff: Backoff::new(MIN_ORDER_WAIT, MAX_ORDER_WAIT),
        }
    }

    /// Begins a frame of `n` boxes. Without memory for an order there is none.
    pub(super) fn begin(&mut self, stream: &Stream, n: usize) -> Orders {
        if n != self.len {
            self.len = 0;
        }
        // Once there is memory it grows with the frames, whether an order is wanted or not.
        let [now, next] = &mut self.lists;
        let needs_memory = n >= self.min_boxes && (self.is_wanted || next.capacity() > 0);
        let has_memory =
            needs_memory && now.reserve(stream, n).is_ok() && next.reserve(stream, n).is_ok();
        let takes_next = has_memory && self.is_wanted && !self.backoff.begin_frame();
        self.is_used = has_memory && self.len > 0;
        let or_null = |list: &Grow<u32>, is_taken: bool| match is_taken {
            true => list.device_ptr(),
            false => DevicePtr::NULL,
        };
        Orders {
            now: or_null(now, self.is_used),
            next: or_null(next, takes_next),
        }
    }

    /// Has the next frame take the order that this one has written, if any.
    pub(super) fn end(&mut self, orders: &Orders, n: usize) {
        self.lists.swap(0, 1);
        self.len = if orders.next.is_null() { 0 } else { n };
    }

    /// Records how near boxes were to those before them.
    pub(super) fn record(&mut self, n: usize, state: &State) {
        let sampled = n.div_ceil(BLOCK * SAMPLE) * BLOCK;
        let are_near = state.near as f64 > NEAR_SHARE * sampled.min(n) as f64;
        if !self.is_used {
            self.is_wanted = !are_near;
        } else if !are_near {
            self.backoff.record_failure();
            self.len = 0;
        }
    }
}
