//! The order of the pairs found: by bins of smaller indices, which the search fills and which are
//! ordered on chip. Bins have room by the last frame. Where there was none, or the room does not
//! suffice, pairs are sorted by all bits of their keys. A graph cannot turn to another way: its
//! search lists pairs, and counts what each bin needs or, where pairs are few, each row of one
//! smaller index; or it sorts.

mod bins;
mod counted;
mod rows;

use crate::Result;
use crate::cuda::abi::{Clear, Keys, PAIR_SORT, State};
use crate::cuda::counters::Counters;
use crate::cuda::launch::{linear, module};
use crate::cuda::sorting::Sorting;
use crate::cuda::tuning::{LASTING_BINS, MAX_BINS_WAIT, MAX_ROW};
use crate::policy::Backoff;
use bins::Bins;
use counted::CountedBins;
use gpu::{Device, Grow, Kernel, Slice, SliceMut, Stream, args};
use gpusort::cuda::Request;
use rows::Rows;

/// The way in which the pairs of one search are put in order.
#[derive(Clone, Copy)]
pub(crate) enum Order {
    /// Pairs go to the bins of their smaller index.
    Bins(Keys),
    /// Pairs are listed, and counted by their smaller index.
    Rows(Keys),
    /// Pairs are listed, and counted in the bins of their smaller index.
    CountedBins(Keys),
    /// Pairs are sorted by all bits of their keys. Those of this many boxes tell how much room the
    /// bins of the next frame need, if that is asked for.
    Sort(Option<usize>),
}

/// The means to put pairs in order.
pub(crate) struct PairOrder {
    unpack: Kernel,
    bins: Bins,
    counted: CountedBins,
    rows: Rows,
    /// In graphs, of each pair listed, how many of its row or bin came before.
    ranks: Grow<u32>,
    /// The pairs that the coming search is expected to find, by the last one.
    expected: usize,
    /// Has frames sorted after bins that had no room.
    backoff: Backoff,
    /// The frames since then, up to [`LASTING_BINS`].
    lasted: u32,
    /// Whether frames are recorded, and may turn to no other way.
    in_graph: bool,
    /// Whether a graph does without rows: one was long, or memory was refused.
    has_long_row: bool,
}

impl PairOrder {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            unpack: module(device)?.kernel("sap_unpack")?,
            bins: Bins::new(device)?,
            counted: CountedBins::new(device)?,
            rows: Rows::new(device)?,
            ranks: Grow::default(),
            expected: 0,
            backoff: Backoff::new(1, MAX_BINS_WAIT),
            lasted: 0,
            in_graph: false,
            has_long_row: false,
        })
    }

    /// Has all frames take ways that are right for any pairs, so that a frame may be recorded.
    pub(crate) const fn stay(&mut self) {
        self.in_graph = true;
    }

    /// Returns what is to be zero before pairs are found, of at most `max` units.
    pub(crate) fn clear_ahead(&mut self, max: u64) -> Clear {
        if self.in_graph {
            // One of them counted last, or rows did first and had it done again.
            match self.rows.clear_ahead(max) {
                Clear { len: 0, .. } => self.counted.clear_ahead(max),
                clear => clear,
            }
        } else {
            self.bins.clear_ahead(max)
        }
    }

    /// Chooses how the pairs of the coming search among `n` boxes, all of them or some, are put in
    /// order, and tells `keys` where they go.
    pub(crate) fn begin(
        &mut self,
        stream: &Stream,
        n: usize,
        are_all: bool,
        keys: &mut Keys,
    ) -> Result<Order> {
        if self.expected == 0 {
            self.expected = keys.capacity as usize;
        }
        // Some of the pairs tell nothing of others.
        if n == 0 || keys.capacity == 0 || !are_all {
            return Ok(Order::Sort(None));
        }
        if self.in_graph {
            return self.begin_in_graph(stream, n, keys);
        }
        let has_bins = !self.backoff.begin_frame()
            && match self.bins.begin(stream, n, keys) {
                Err(error) if error.is_out_of_device_memory() => {
                    self.backoff.record_failure();
                    false
                }
                has_bins => has_bins?,
            };
        Ok(match has_bins {
            true => Order::Bins(*keys),
            false => Order::Sort(Some(n)),
        })
    }

    /// The same in a graph. Where memory is refused, it is not asked for again, as a recording may
    /// not ask: the pairs are sorted.
    fn begin_in_graph(&mut self, stream: &Stream, n: usize, keys: &mut Keys) -> Result<Order> {
        let order = self.begin_to_count(stream, n, *keys);
        match order {
            Ok(Order::Rows(counted) | Order::CountedBins(counted)) => *keys = counted,
            Err(error) if error.is_out_of_device_memory() => {
                self.has_long_row = true;
                self.counted.do_without();
                return Ok(Order::Sort(None));
            }
            _ => {}
        }
        order
    }

    /// Has the coming search count its pairs by row or by bin, or else sorts them.
    fn begin_to_count(&mut self, stream: &Stream, n: usize, mut keys: Keys) -> Result<Order> {
        // Counts and ranks have 31 bits.
        let Ok(capacity) = i32::try_from(keys.capacity) else {
            return Ok(Order::Sort(None));
        };
        let by_row = !self.has_long_row && self.rows.begin(stream, n, self.expected, &mut keys)?;
        if !by_row && !self.counted.begin(stream, n, self.expected, &mut keys)? {
            return Ok(Order::Sort(None));
        }
        let ranks = self.ranks.reserve(stream, capacity as usize)?;
        keys.ranks = ranks.device_ptr();
        Ok(match by_row {
            true => Order::Rows(keys),
            false => Order::CountedBins(keys),
        })
    }

    /// Returns the bytes that bins take.
    pub(crate) fn bytes(&self) -> u64 {
        self.bins.bytes()
    }

    /// Forgets how long rows and bins were.
    pub(crate) const fn forget(&mut self) {
        self.backoff.record_success();
        self.bins.forget();
        self.counted.forget();
        self.has_long_row = false;
    }

    /// Puts the pairs found in order: as many as are counted, and at most all that the lists take,
    /// the first of keys and the second of pairs.
    pub(crate) fn order(
        &mut self,
        stream: &Stream,
        sorting: &mut Sorting,
        counters: &mut Counters,
        order: Order,
        bits: u32,
        (packed, ordered): (&Grow<u64>, &mut Grow<u64>),
    ) -> Result<()> {
        let n = packed.capacity();
        ordered.reserve_exact(stream, n)?;
        if n == 0 {
            return Ok(());
        }
        let state = counters.ptr();
        let boxes = match order {
            Order::Bins(keys) => {
                // The next frame may be sorted, for which memory is not to grow late.
                let _ = sorting.scratch_of_pairs(stream, n);
                // SAFETY: the search has put the pairs into the bins of these keys.
                return unsafe { self.bins.order(stream, state, keys, ordered.part_mut(n)?) };
            }
            Order::Rows(keys) => {
                let scratch = sorting.scratch_of_pairs(stream, n)?;
                let between = scratch.range(..n * size_of::<u64>())?.cast()?;
                let pairs = ordered.part_mut(n)?;
                // SAFETY: the search has counted the pairs by row.
                return unsafe { self.rows.order(stream, state, keys, between, pairs) };
            }
            Order::CountedBins(keys) => {
                let scratch = sorting.scratch_of_pairs(stream, n)?;
                let entries = scratch.range(..n * size_of::<u32>())?.cast()?;
                let pairs = ordered.part_mut(n)?;
                // SAFETY: the search has counted the pairs in the bins of these keys.
                return unsafe { self.counted.order(stream, state, keys, entries, pairs) };
            }
            Order::Sort(boxes) => boxes,
        };
        let request = Request::keys(packed.part(n)?, ordered.part_mut(n)?);
        let request = request.count(counters.pairs()?);
        sorting.sort(stream, request, 0..2 * bits.max(1))?;
        self.unpack(stream, counters.pairs()?, ordered.part_mut(n)?, bits)?;
        sorting.copy_outcome(stream, counters.sort_outcome(PAIR_SORT)?)?;
        if let Some(boxes) = boxes {
            let (expected, pairs) = (self.expected, ordered.part(n)?);
            // SAFETY: the address is that of the counters, and the pairs are in order.
            let found = unsafe {
                self.bins
                    .find(stream, state, (boxes, bits), expected, pairs)
            };
            match found {
                // Without the memory the next frame is sorted too.
                Err(error) if error.is_out_of_device_memory() => {}
                found => found?,
            }
        }
        Ok(())
    }

    /// Turns packed pairs into pairs in the same memory, as many as `count` says.
    fn unpack(
        &self,
        stream: &Stream,
        count: Slice<u64>,
        keys: SliceMut<u64>,
        bits: u32,
    ) -> Result<()> {
        let (n, pairs) = (keys.len(), keys.device_ptr());
        // SAFETY: each thread reads its key before it writes its pair, of the same size, over it.
        unsafe {
            stream.launch(
                &self.unpack,
                &linear(n),
                &args![keys, n as u64, count, bits, pairs],
            )?;
        }
        Ok(())
    }

    /// Records a search. Returns false where a bin had no room: the pairs are in no order then, and
    /// the next search sorts them. The same where a graph had a long row or bin, whose pairs are in
    /// order, but slowly: the next search has bins, narrower ones, or sorts.
    pub(crate) fn record(&mut self, order: Order, bits: u32, state: &State) -> bool {
        // A search that was given up tells nothing.
        if state.stopped != 0 {
            self.bins.forget();
            return true;
        }
        // Nor does one of boxes that are all unchanged. Without pairs bins keep their room.
        if state.pairs == 0 && (state.changed == 0 || matches!(order, Order::Bins(_))) {
            self.bins.record_none();
            return true;
        }
        self.expected = state.pairs as usize;
        match order {
            Order::Rows(_) => {
                self.has_long_row = state.longest > MAX_ROW;
                return !self.has_long_row;
            }
            Order::CountedBins(_) => return self.counted.record(bits, state),
            Order::Sort(None) => return true,
            Order::Sort(Some(_)) | Order::Bins(_) => self.bins.record(bits, state),
        }
        let is_done = state.longest < u64::MAX;
        if !is_done {
            self.backoff.record_failure();
            self.lasted = 0;
        } else if self.lasted < LASTING_BINS {
            self.lasted += 1;
        } else {
            self.backoff.record_success();
        }
        is_done
    }
}
