//! Pairs in order without a sort of their keys: by rows of one smaller index (`kernels/sap/rows.cuh`).

use crate::Result;
use crate::cuda::abi::State;
use crate::cuda::kernels::{linear, module};
use crate::cuda::memory::Grow;
use crate::cuda::offsets::Offsets;
use gpu::{Device, Kernel, Slice, SliceMut, Stream, args};

/// Rows longer than this are not ranked: `LONGEST_ROW` of the kernels.
const LONGEST: u64 = 256;
/// Lists with room for more pairs than this are sorted: their rows do not stay in the device's cache (H200, 1.4, 5 and 13.7
/// million pairs: 65, 200 and 1,050 us by rows, 108, 234 and 650 by a sort).
const MOST_PAIRS: usize = 8 << 20;
/// Frames that are sorted after one had a row too long.
const WAIT: u32 = 64;

/// Where the pairs found are counted: the addresses of the rows and of the pairs' ranks.
#[derive(Clone, Copy)]
pub(crate) struct RowCounts {
    pub(crate) rows: u64,
    pub(crate) ranks: u64,
}

pub(crate) struct Rows {
    scatter: Kernel,
    rank: Kernel,
    offsets: Offsets,
    ranks: Grow<u32>,
    /// Frames to go before rows are tried again.
    wait: u32,
}

impl Rows {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        let module = module(device)?;
        Ok(Self {
            scatter: module.kernel("sap_rows_scatter")?,
            rank: module.kernel("sap_rows_rank")?,
            offsets: Offsets::new(device)?,
            ranks: Grow::default(),
            wait: 0,
        })
    }

    /// Makes room to count the pairs of `n` boxes while they are found, `capacity` at most; nothing where they are better sorted
    /// by keys.
    pub(crate) fn begin(
        &mut self,
        stream: &Stream,
        n: usize,
        capacity: usize,
    ) -> Result<Option<RowCounts>> {
        if self.wait > 0 || capacity > MOST_PAIRS || n == 0 {
            self.wait = self.wait.saturating_sub(1);
            return Ok(None);
        }
        self.offsets.begin(stream, n)?;
        self.ranks.reserve(stream, capacity)?;
        Ok(Some(RowCounts {
            rows: self.offsets.ptr(),
            ranks: self.ranks.ptr(),
        }))
    }

    /// Puts the pairs found, packed in `bits` a box, in order.
    ///
    /// # Safety
    ///
    /// `state` is the address of the counters; the pairs found have been counted where `begin` said.
    pub(crate) unsafe fn order(
        &self,
        stream: &Stream,
        state: u64,
        found: Slice<u64>,
        between: SliceMut<u64>,
        pairs: SliceMut<u64>,
        bits: u32,
    ) -> Result<()> {
        let capacity = found.len();
        let (rows, ranks) = (self.offsets.ptr(), self.ranks.ptr());
        let longest = state + std::mem::offset_of!(State, longest) as u64;
        let launch = linear(capacity);
        // SAFETY: the caller's promise; all lists have room for `capacity`.
        unsafe {
            self.offsets.make(stream, longest, 0)?;
            stream.launch(
                &self.scatter,
                &launch,
                &args![
                    found,
                    ranks,
                    capacity as u64,
                    state,
                    bits,
                    rows,
                    between.ptr()
                ],
            )?;
            stream.launch(
                &self.rank,
                &launch,
                &args![between, capacity as u64, state, bits, rows, pairs],
            )?;
        }
        Ok(())
    }

    /// Whether the rows of a frame were short enough for their pairs to be in order now.
    pub(crate) const fn are_short(state: &State) -> bool {
        state.longest <= LONGEST
    }

    /// Has the next frames sorted by keys.
    pub(crate) fn give_up(&mut self) {
        self.wait = WAIT;
    }
}
