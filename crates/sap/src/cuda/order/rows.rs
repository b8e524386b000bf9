//! Pairs in order without a sort of their keys, by rows: a row is the pairs of one smaller index
//! (`kernels/sap/rows.cuh`).

use crate::Result;
use crate::cuda::abi::{Keys, State, counter};
use crate::cuda::launch::{linear, module};
use crate::cuda::memory::Grow;
use crate::cuda::offsets::Offsets;
use crate::cuda::tuning::{
    MAX_RANKED_CAPACITY, MAX_RANKED_PAIRS, MAX_ROW, MAX_ROWS_WAIT, MIN_ROWS_WAIT,
};
use crate::policy::Backoff;
use gpu::{Device, DevicePtr, Kernel, Slice, SliceMut, Stream, args};

/// Pairs as keys `a * 2^bits + b`.
#[derive(Clone, Copy)]
pub(crate) struct Packed<'a> {
    pub(crate) keys: Slice<'a, u64>,
    pub(crate) bits: u32,
}

/// The means to put pairs in order by rows.
pub(super) struct Rows {
    scatter: Kernel,
    rank: Kernel,
    offsets: Offsets,
    ranks: Grow<u32>,
    /// Whether the last pairs were too many for rows.
    are_many: bool,
    /// Has frames sorted by keys after a row that was too long.
    backoff: Backoff,
}

impl Rows {
    pub(super) fn new(device: &Device) -> Result<Self> {
        let module = module(device)?;
        Ok(Self {
            scatter: module.kernel("sap_rows_scatter")?,
            rank: module.kernel("sap_rows_rank")?,
            offsets: Offsets::new(device)?,
            ranks: Grow::default(),
            are_many: false,
            backoff: Backoff::new(MIN_ROWS_WAIT, MAX_ROWS_WAIT),
        })
    }

    /// Reserves memory to count the pairs of `n` boxes while they are found, `expected` ones, and
    /// adds its addresses to `keys`. Returns false, and does neither, where the pairs are better
    /// sorted by keys.
    pub(super) fn begin(
        &mut self,
        stream: &Stream,
        n: usize,
        expected: usize,
        keys: &mut Keys,
    ) -> Result<bool> {
        // Pairs about as many as the limit do not change the order from frame to frame.
        let max = if self.are_many {
            MAX_RANKED_PAIRS - MAX_RANKED_PAIRS / 4
        } else {
            MAX_RANKED_PAIRS
        };
        self.are_many = expected > max || keys.capacity as usize > MAX_RANKED_CAPACITY;
        if self.backoff.begin_frame() || self.are_many || n == 0 {
            return Ok(false);
        }
        self.offsets.begin(stream, n)?;
        self.ranks.reserve(stream, keys.capacity as usize)?;
        (keys.rows, keys.ranks) = (self.offsets.ptr(), self.ranks.ptr());
        Ok(true)
    }

    /// Puts the pairs found in order, with memory for as many `between`.
    ///
    /// # Safety
    ///
    /// `state` is the address of the counters. The pairs found were counted where `begin` said.
    pub(super) unsafe fn order(
        &self,
        stream: &Stream,
        state: DevicePtr<State>,
        Packed { keys, bits }: Packed,
        between: SliceMut<u64>,
        pairs: SliceMut<u64>,
    ) -> Result<()> {
        let capacity = keys.len() as u64;
        let (rows, ranks, ranked) = (self.offsets.ptr(), self.ranks.ptr(), between.device_ptr());
        let launch = linear(keys.len());
        // SAFETY: the caller's promise; all lists have memory for the capacity.
        unsafe {
            let longest = counter!(state, longest);
            self.offsets.make(stream, longest, DevicePtr::NULL)?;
            stream.launch(
                &self.scatter,
                &launch,
                &args![keys, ranks, capacity, state, bits, rows, ranked],
            )?;
            stream.launch(
                &self.rank,
                &launch,
                &args![between, capacity, state, bits, rows, pairs],
            )?;
        }
        Ok(())
    }

    /// Tells whether the rows of a frame were short enough for its pairs to be in order.
    pub(super) const fn are_short(state: &State) -> bool {
        state.longest <= MAX_ROW
    }

    /// Has the next frames sorted by keys.
    pub(super) fn avoid(&mut self) {
        self.backoff.record_failure();
    }
}
