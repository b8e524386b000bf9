//! Pairs in order by bins (`kernels/sap/bins.cuh`): the search puts each pair into the bin of its
//! smaller index, which has room by the pairs of the last frame, and warps order the bins on chip.

use crate::Result;
use crate::cuda::abi::{self, Bin, BinOrder, Clear, Keys, State, counter};
use crate::cuda::launch::{THREADS, WARP, linear, module};
use crate::cuda::offsets::Offsets;
use crate::cuda::tuning::{
    FEW_BINS, HUGE_BIN_SHARE, LONG_BIN, LONG_BIN_SHARE, LONGEST_LONG_BIN, MANY_LONG_BLOCKS,
    MEAN_BIN, MIN_MEAN_BIN,
};
use gpu::{
    ByValue, Device, DevicePtr, Grow, Kernel, Launch, Slice, SliceMut, Stream, args, blocks,
};
use std::mem;

/// Threads of a block whose warps order a bin each: `BIN_THREADS` of the kernels.
const BIN_THREADS: u32 = 64;
/// Threads of a block that orders long bins: `LONG_BIN_THREADS` of the kernels.
const LONG_BIN_THREADS: u32 = 256;
/// The most pairs that a warp orders: `LONGEST_BIN` of the kernels.
const LONGEST_BIN: u64 = 1024;
/// The most bits of the keys of a bin that is longer than a block can hold: `HUGE_KEY_BITS` of the
/// kernels.
const HUGE_KEY_BITS: u32 = 20;
/// Room of each bin, beyond a quarter more than it had: `BIN_SLACK` of the kernels.
const SLACK: usize = 32;

/// How pairs are divided.
#[derive(Clone, Copy, Default)]
pub(super) struct Division {
    /// The boxes.
    pub(super) n: usize,
    /// A bin is the pairs of `2^shift` smaller indices.
    pub(super) shift: u32,
}

impl Division {
    /// Returns the division of so many pairs, in bins of at most `mean` where there are many.
    pub(super) fn of(n: usize, bits: u32, pairs: usize, mean: usize) -> Self {
        Self {
            n,
            shift: shift(n, bits, pairs, mean),
        }
    }

    pub(super) fn bins(self) -> usize {
        self.n.div_ceil(1 << self.shift)
    }

    /// Returns the bins that have room in the next frame: some more, as there may be more boxes.
    fn next_bins(self) -> usize {
        let bins = self.bins();
        bins + bins / 32 + 16
    }

    /// Returns the entries that these have room for, after a frame of so many pairs.
    fn room(self, pairs: usize) -> usize {
        let (bins, next) = (self.bins(), self.next_bins());
        pairs + pairs / 4 + SLACK * next + (next - bins) * (2 * pairs / bins.max(1))
    }
}

/// What a frame leaves for the next one.
#[derive(Clone, Copy)]
struct Known {
    division: Division,
    pairs: usize,
    longest: u64,
}

/// What launches have made for the next frame.
struct Made {
    /// What was in `bins` before, if they were filled.
    known: Option<Known>,
    division: Division,
    /// The pairs that were seen at most.
    seen: u64,
}

/// The means to put pairs in order by bins.
pub(super) struct Bins {
    starts_kernel: Kernel,
    order: Kernel,
    order_long: Kernel,
    find: Kernel,
    make: Kernel,
    bins: Grow<Bin>,
    /// Those of the next frame.
    next: Grow<Bin>,
    entries: Grow<u32>,
    /// Where bins begin in the list of pairs.
    starts: Offsets,
    /// What there is in `bins`, unless a search fills them.
    known: Option<Known>,
    /// That, while a search fills them, and its own division.
    filled: Option<(Known, Division)>,
    /// What `next` was made for.
    made: Option<Made>,
    /// By how much bins are narrower than their mean suggests, because some were long: a power of
    /// two.
    narrower: u32,
}

impl Bins {
    pub(super) fn new(device: &Device) -> Result<Self> {
        let module = module(device)?;
        Ok(Self {
            starts_kernel: module.kernel("sap_bin_starts")?,
            order: module.kernel("sap_order_bins")?,
            order_long: module.kernel("sap_order_long_bins")?,
            find: module.kernel("sap_find_bins")?,
            make: module.kernel("sap_make_bins")?,
            bins: Grow::default(),
            next: Grow::default(),
            entries: Grow::default(),
            starts: Offsets::new(device)?,
            known: None,
            filled: None,
            made: None,
            narrower: 0,
        })
    }

    /// Returns the bytes of all entries.
    pub(super) fn bytes(&self) -> u64 {
        (self.entries.capacity() * size_of::<u32>()) as u64
    }

    /// Returns what is to be zero before bins are ordered, of at most `max` units.
    pub(super) fn clear_ahead(&mut self, max: u64) -> Clear {
        self.starts.clear_ahead(max)
    }

    /// Makes room for the pairs of `n` boxes, and adds its address to `keys`. Returns false, and
    /// adds nothing, where the last frame does not tell how much each bin needs.
    pub(super) fn begin(&mut self, stream: &Stream, n: usize, keys: &mut Keys) -> Result<bool> {
        (self.filled, self.made) = (None, None);
        let Some(known) = self.known.take() else {
            return Ok(false);
        };
        let last = known.division;
        let now = Division { n, ..last };
        // An entry has 32 bits, and its place 31.
        let least = last.room(known.pairs);
        let fits = now.shift + keys.bits <= u32::BITS && i32::try_from(least).is_ok();
        if !fits || now.bins() > last.next_bins() {
            return Ok(false);
        }
        let (capacity, len) = (keys.capacity as usize, now.next_bins());
        let most = Division::of(n, keys.bits, capacity, MEAN_BIN);
        let wished = most.room(capacity).max(least);
        let entries = self.entries.reserve_up_to(stream, least, wished)?;
        self.next
            .reserve_up_to(stream, len, most.next_bins().max(len).next_power_of_two())?;
        self.starts.begin(stream, now.bins())?;
        keys.bins = abi::Bins {
            bins: self.bins.device_ptr(),
            entries: entries.device_ptr(),
            len: least as u32,
            shift: now.shift,
        };
        self.filled = Some((known, now));
        Ok(true)
    }

    /// Puts the pairs found in order.
    ///
    /// # Safety
    ///
    /// `state` is the address of the counters. `keys` is what `begin` made of it for the search.
    pub(super) unsafe fn order(
        &mut self,
        stream: &Stream,
        state: DevicePtr<State>,
        keys: Keys,
        pairs: SliceMut<u64>,
    ) -> Result<()> {
        let Some((known, division)) = self.filled.take() else {
            return Ok(());
        };
        let (bins, len) = (division.bins() as u32, division.next_bins() as u32);
        let has_long = known.longest > LONGEST_BIN * 7 / 8;
        let long_blocks = bins
            .div_ceil(LONG_BIN_SHARE)
            .min(MANY_LONG_BLOCKS)
            .max(bins.div_ceil(WARP));
        let (kernel, long_blocks, launch) = match has_long {
            true => (&self.order_long, long_blocks, long_launch(len, long_blocks)),
            false => {
                let blocks = len.div_ceil(BIN_THREADS / WARP);
                (&self.order, 0, Launch::linear(blocks, BIN_THREADS))
            }
        };
        let order = BinOrder {
            bins: keys.bins,
            starts: self.starts.ptr(),
            next: self.next.device_ptr(),
            pairs: pairs.device_ptr(),
            state,
            capacity: pairs.len() as u64,
            count: bins,
            len,
            bits: keys.bits,
            long_blocks,
        };
        // SAFETY: the caller's promise; there is memory for the bins of both frames and for the
        // entries, and the list has `capacity` pairs.
        unsafe {
            let (of_starts, longest) = (&self.starts_kernel, counter!(state, longest));
            self.starts
                .of_bins(stream, of_starts, keys.bins.bins, longest)?;
            stream.launch(kernel, &launch, &args![ByValue(order)])?;
        }
        self.made = Some(Made {
            known: Some(known),
            division,
            seen: u64::MAX,
        });
        Ok(())
    }

    /// Finds the bins of pairs that are in order, of `n` boxes and about `expected`.
    ///
    /// # Safety
    ///
    /// `state` is the address of the counters, and there are as many pairs as it tells, or all.
    pub(super) unsafe fn find(
        &mut self,
        stream: &Stream,
        state: DevicePtr<State>,
        (n, bits): (usize, u32),
        expected: usize,
        pairs: Slice<u64>,
    ) -> Result<()> {
        (self.known, self.filled, self.made) = (None, None, None);
        let [division, narrowest] =
            [MEAN_BIN, MIN_MEAN_BIN].map(|mean| Division::of(n, bits, expected, mean));
        let shift = division.shift.saturating_sub(self.narrower);
        let shift = shift.max(narrowest.shift);
        let division = Division { n, shift };
        let (bins, len) = (division.bins() as u32, division.next_bins());
        // All memory that the list of pairs may ask for, so that it does not grow later.
        let most = Division::of(n, bits, pairs.len(), MEAN_BIN);
        self.starts.reserve(stream, most.bins())?;
        self.starts.reserve(stream, bins as usize)?;
        let room = most.room(pairs.len());
        if i32::try_from(room).is_ok() {
            // Without this memory the next frame is sorted too.
            let _ = self.entries.reserve(stream, room);
        }
        let generous = most.next_bins().max(len).next_power_of_two();
        self.bins.reserve_up_to(stream, len, generous)?;
        let next = self.next.reserve_up_to(stream, len, generous)?;
        let (starts, capacity) = (self.starts.ptr(), pairs.len() as u64);
        let launch = Launch::linear(blocks(bins as usize + 1, THREADS), THREADS);
        // SAFETY: the caller's promise; there is memory for the bins and one more.
        unsafe {
            let arguments = args![pairs, capacity, bins, shift, starts, state];
            stream.launch(&self.find, &launch, &arguments)?;
            let next_bins = len as u32;
            let arguments = args![starts, bins, next_bins, next];
            stream.launch(&self.make, &linear(len), &arguments)?;
        }
        self.made = Some(Made {
            known: None,
            division,
            seen: capacity,
        });
        Ok(())
    }

    /// Records a frame without pairs, which leaves the bins as they are.
    pub(super) fn record_none(&mut self) {
        self.known = self.made.take().and_then(|made| made.known);
    }

    /// Records the bins that `order` or `find` has left. The next frame has bins if these suit it.
    pub(super) fn record(&mut self, bits: u32, state: &State) {
        self.known = None;
        let Some(Made { division, seen, .. }) = self.made.take() else {
            return;
        };
        mem::swap(&mut self.bins, &mut self.next);
        let (pairs, longest) = (state.pairs as usize, state.longest);
        let Division { n, shift: now } = division;
        let wanted = shift(n, bits, pairs, MEAN_BIN);
        if longest == u64::MAX || state.pairs > seen {
            return;
        }
        // By so much bins should be narrower: enough to make the longest one short, if boxes next
        // to each other have about as many pairs, but not so that all have few.
        let are_narrower = wanted.saturating_sub(now);
        let narrower = match longest / LONG_BIN {
            0 => are_narrower.saturating_sub((LONG_BIN / 2 / longest.max(1)).max(1).ilog2()),
            times => are_narrower + times.ilog2() + 1,
        };
        let max = wanted - shift(n, bits, pairs, MIN_MEAN_BIN).min(wanted);
        self.narrower = narrower.min(max);
        let target = wanted - self.narrower;
        let is_huge = longest > LONGEST_LONG_BIN;
        let is_worth = now + bits <= HUGE_KEY_BITS && longest <= state.pairs / HUGE_BIN_SHARE;
        if (!is_huge || is_worth) && target <= now + 1 && now <= target + 1 {
            self.known = Some(Known {
                division,
                pairs,
                longest,
            });
        }
    }

    /// Forgets the bins of the last frame.
    pub(super) const fn forget(&mut self) {
        (self.known, self.made) = (None, None);
    }
}

/// Returns the launch that puts so many bins of any length in order, with some more blocks.
pub(super) fn long_launch(bins: u32, more: u32) -> Launch {
    let blocks = more + bins.div_ceil(LONG_BIN_THREADS / WARP);
    Launch::linear(blocks, LONG_BIN_THREADS)
}

/// Returns how many smaller indices make a bin of at most so many pairs in the mean, and at least
/// half of them, as a power of two.
fn shift(n: usize, bits: u32, pairs: usize, mean: usize) -> u32 {
    let mean = (pairs / FEW_BINS).clamp(MIN_MEAN_BIN, mean);
    let indices = (n * mean / pairs.max(1)).clamp(1, n.max(1));
    // An entry has 32 bits.
    indices.ilog2().min(u32::BITS - bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_have_some_hundred_pairs() {
        let bits = |n: usize| usize::BITS - (n - 1).leading_zeros();
        let of = |n: usize, pairs| shift(n, bits(n), pairs, MEAN_BIN);
        assert_eq!(of(1_000_000, 1_360_000), 8);
        assert_eq!(of(10_000_000, 13_660_000), 8);
        assert_eq!(of(92_230, 4_540_000), 3);
        assert_eq!(of(10_000, 13_100), 5);
        // An entry has all bits of the greater index, and some of the smaller one.
        assert_eq!(of(100_000_000, 137_000_000), 5);
        assert_eq!(of(1 << 32, 1), 0);
        assert_eq!(of(1000, 0), 9);
        assert_eq!(of(2, 1), 1);
        assert_eq!(of(1000, 400_000), 0);
        assert_eq!(shift(92_230, 17, 4_540_000, MIN_MEAN_BIN), 0);
    }
}
