//! Pairs in order by counted bins, in graphs (`kernels/sap/bins.cuh`): the search lists pairs and
//! counts them by bin, so that each bin has as much room as it needs, whatever the last frame had.

use crate::Result;
use crate::cuda::abi::{self, BinOrder, Clear, Keys, State, counter};
use crate::cuda::launch::{linear, module};
use crate::cuda::offsets::Offsets;
use crate::cuda::order::bins::{Division, long_launch};
use crate::cuda::tuning::{LONG_COUNTED_BIN, MAX_FILLED_BIN, MEAN_BIN, MIN_MEAN_BIN};
use gpu::{ByValue, Device, DevicePtr, Grow, Kernel, SliceMut, Stream, args};
use std::mem;

/// The words of a bin, of which the first one counts.
const BIN_WORDS: usize = size_of::<abi::Bin>() / size_of::<u32>();
/// The most bits of an entry: `BitOrder` of the kernels takes no more.
const ENTRY_BITS: u32 = 31;

/// The means to put pairs in order by counted bins.
pub(super) struct CountedBins {
    starts_kernel: Kernel,
    fill: Kernel,
    order: Kernel,
    bins: Grow<abi::Bin>,
    /// Where bins begin in the list of pairs.
    starts: Offsets,
    /// How the search that has begun, or was the last, divides pairs.
    division: Division,
    /// How many pairs it lists at most.
    capacity: u64,
    /// By how much bins are narrower than their mean suggests: a power of two.
    narrower: u32,
    /// The first bins that count nothing.
    zero: usize,
    /// Whether a sort is better: a bin was too long, or memory was refused.
    sorts: bool,
}

impl CountedBins {
    pub(super) fn new(device: &Device) -> Result<Self> {
        let module = module(device)?;
        Ok(Self {
            starts_kernel: module.kernel("sap_bin_starts")?,
            fill: module.kernel("sap_fill_bins")?,
            order: module.kernel("sap_order_long_bins")?,
            bins: Grow::default(),
            starts: Offsets::new(device)?,
            division: Division::default(),
            capacity: 0,
            narrower: 0,
            zero: 0,
            sorts: false,
        })
    }

    /// Returns what is to be zero before pairs are found, of at most `max` units.
    pub(super) fn clear_ahead(&mut self, max: u64) -> Clear {
        self.starts.clear_ahead(max)
    }

    /// Forgets how long bins were.
    pub(super) const fn forget(&mut self) {
        (self.narrower, self.sorts) = (0, false);
    }

    /// Has pairs sorted until [`CountedBins::forget`].
    pub(super) const fn do_without(&mut self) {
        self.sorts = true;
    }

    /// Reserves memory to count the pairs of `n` boxes while they are found, `expected` ones, and
    /// adds its address to `keys`. Returns false, and adds nothing, where the pairs are to be
    /// sorted.
    pub(super) fn begin(
        &mut self,
        stream: &Stream,
        n: usize,
        expected: usize,
        keys: &mut Keys,
    ) -> Result<bool> {
        let widths = widths(n, keys.bits, expected);
        let Some([narrowest, widest]) = widths.filter(|_| !self.sorts) else {
            return Ok(false);
        };
        let shift = widest.saturating_sub(self.narrower).max(narrowest);
        (self.division, self.capacity) = (Division { n, shift }, keys.capacity);
        let (len, zero) = (self.division.bins(), mem::take(&mut self.zero));
        let bins = self.bins.reserve(stream, len)?;
        let counts = bins.device_ptr().cast();
        if zero < len {
            stream.fill_u32(bins.cast()?, 0)?;
        }
        self.starts.begin(stream, len)?;
        (keys.counts, keys.spread) = (counts, BIN_WORDS.ilog2());
        keys.bins.shift = shift;
        Ok(true)
    }

    /// Puts the pairs found in order, with memory for as many `entries`.
    ///
    /// # Safety
    ///
    /// `state` is the address of the counters. `keys` is what `begin` made of it for the search,
    /// with ranks.
    pub(super) unsafe fn order(
        &mut self,
        stream: &Stream,
        state: DevicePtr<State>,
        keys: Keys,
        entries: SliceMut<u32>,
        pairs: SliceMut<u64>,
    ) -> Result<()> {
        let len = self.division.bins();
        let launch = long_launch(len as u32, 0);
        let order = BinOrder {
            bins: abi::Bins {
                bins: self.bins.device_ptr(),
                entries: entries.device_ptr(),
                ..keys.bins
            },
            starts: self.starts.ptr(),
            next: DevicePtr::NULL,
            pairs: pairs.device_ptr(),
            state,
            capacity: keys.capacity,
            count: len as u32,
            len: len as u32,
            bits: keys.bits,
            long_blocks: 0,
        };
        let (bins, longest) = (self.bins.device_ptr(), counter!(state, longest));
        // SAFETY: the caller's promise; all lists have memory for the capacity.
        unsafe {
            self.starts
                .of_bins(stream, &self.starts_kernel, bins, longest)?;
            let (from, starts) = (ByValue(keys), self.starts.ptr());
            let arguments = args![from, starts, state, entries];
            stream.launch(&self.fill, &linear(pairs.len()), &arguments)?;
            stream.launch(&self.order, &launch, &args![ByValue(order)])?;
        }
        self.zero = len;
        Ok(())
    }

    /// Records a search. Returns false where the next one of the same boxes would do better.
    pub(super) fn record(&mut self, bits: u32, state: &State) -> bool {
        let (Division { n, shift }, longest) = (self.division, state.longest);
        let widths = widths(n, bits, state.pairs as usize);
        // Of more pairs than have room, some were not counted.
        let is_known = state.pairs <= self.capacity && longest > LONG_COUNTED_BIN;
        let Some([narrowest, widest]) = widths.filter(|_| is_known) else {
            return true;
        };
        let times = (longest / LONG_COUNTED_BIN).ilog2() + 1;
        let next = shift.saturating_sub(times).max(narrowest);
        if next < shift {
            self.narrower = widest.saturating_sub(next);
        } else {
            self.sorts = true;
        }
        false
    }
}

/// Returns the shifts of the narrowest and of the widest bins of so many pairs, or none where one
/// box that fills its bin would take too long.
fn widths(n: usize, bits: u32, pairs: usize) -> Option<[u32; 2]> {
    let [narrowest, widest] =
        [MIN_MEAN_BIN, MEAN_BIN].map(|mean| Division::of(n, bits, pairs, mean).shift);
    let keys = MAX_FILLED_BIN / n.max(1) as u64;
    let most = keys.max(1).ilog2().min(ENTRY_BITS).checked_sub(bits)?;
    (narrowest <= most).then_some([narrowest, widest.min(most)])
}
