//! Pairs in order by rows, in graphs: a row is the pairs of one smaller index
//! (`kernels/sap/rows.cuh`).

use crate::Result;
use crate::cuda::abi::{self, Clear, Keys, State, counter};
use crate::cuda::launch::{linear, module};
use crate::cuda::offsets::Offsets;
use crate::cuda::tuning::MAX_ROWS_PAIRS;
use gpu::{ByValue, Device, DevicePtr, Kernel, SliceMut, Stream, args};

/// The means to put pairs in order by rows.
pub(super) struct Rows {
    scatter: Kernel,
    rank: Kernel,
    offsets: Offsets,
}

impl Rows {
    pub(super) fn new(device: &Device) -> Result<Self> {
        let module = module(device)?;
        Ok(Self {
            scatter: module.kernel("sap_rows_scatter")?,
            rank: module.kernel("sap_rows_rank")?,
            offsets: Offsets::new(device)?,
        })
    }

    /// Returns what is to be zero before pairs are found, of at most `max` units.
    pub(super) fn clear_ahead(&mut self, max: u64) -> Clear {
        self.offsets.clear_ahead(max)
    }

    /// Reserves memory to count the pairs of `n` boxes while they are found, `expected` ones, and
    /// adds its address to `keys`. Returns false, and does neither, where the pairs are too many.
    pub(super) fn begin(
        &mut self,
        stream: &Stream,
        n: usize,
        expected: usize,
        keys: &mut Keys,
    ) -> Result<bool> {
        if expected > MAX_ROWS_PAIRS {
            return Ok(false);
        }
        self.offsets.begin(stream, n)?;
        keys.counts = self.offsets.ptr();
        Ok(true)
    }

    /// Puts the pairs found in order, with memory for as many `between`.
    ///
    /// # Safety
    ///
    /// `state` is the address of the counters. `keys` is what `begin` made of it for the search,
    /// with ranks.
    pub(super) unsafe fn order(
        &self,
        stream: &Stream,
        state: DevicePtr<State>,
        keys: Keys,
        between: SliceMut<u64>,
        pairs: SliceMut<u64>,
    ) -> Result<()> {
        let rows = abi::Rows {
            found: keys.keys,
            ranks: keys.ranks,
            rows: self.offsets.ptr(),
            keys: between.device_ptr(),
            pairs: pairs.device_ptr(),
            state,
            capacity: keys.capacity,
            bits: keys.bits,
            pad: 0,
        };
        let launch = linear(pairs.len());
        // SAFETY: the caller's promise; all lists have memory for the capacity.
        unsafe {
            let longest = counter!(state, longest);
            self.offsets.make(stream, longest, DevicePtr::NULL)?;
            for kernel in [&self.scatter, &self.rank] {
                stream.launch(kernel, &launch, &args![ByValue(rows)])?;
            }
        }
        Ok(())
    }
}
