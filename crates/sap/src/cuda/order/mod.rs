//! The order of the pairs found: by rows of one smaller index, which are counted while pairs are
//! found, or where there are many by groups of a sort of the top bits of their keys. Where a row or
//! a group is too long they are sorted by all bits. A graph cannot turn to another way: it takes
//! rows of any length, or a sort.

mod groups;
mod rows;

use crate::Result;
use crate::cuda::abi::{Clear, Keys, PAIR_SORT, State};
use crate::cuda::counters::Counters;
use crate::cuda::launch::{linear, module};
use crate::cuda::sorting::Sorting;
use crate::cuda::tuning::{MAX_ROW, MAX_ROWS_WAIT, MIN_ROWS_WAIT};
use crate::policy::Backoff;
use gpu::{Device, Grow, Kernel, Slice, SliceMut, Stream, args};
use gpusort::cuda::Request;
use groups::Groups;
use rows::{Packed, Rows};
use std::mem;

/// The way in which the pairs of one search are put in order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Pairs go to the rows of their first index, which the search counts.
    Rows {
        /// Whether rows may have any length, as in a graph.
        any: bool,
    },
    /// Pairs are sorted by their top bits into groups, which are sorted on chip.
    Groups {
        /// The bits below those that are sorted.
        shift: u32,
    },
    /// Pairs are sorted by all bits of their keys.
    Sort,
}

/// The means to put pairs in order.
pub(crate) struct PairOrder {
    unpack: Kernel,
    rows: Rows,
    groups: Groups,
    /// The pairs that the coming search is expected to find, by the last one.
    expected: usize,
    /// Has frames sorted by all bits after a row or group that was too long.
    backoff: Backoff,
    /// Whether frames are recorded, and may turn to no other way.
    in_graph: bool,
}

impl PairOrder {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            unpack: module(device)?.kernel("sap_unpack")?,
            rows: Rows::new(device)?,
            groups: Groups::new(device)?,
            expected: 0,
            backoff: Backoff::new(MIN_ROWS_WAIT, MAX_ROWS_WAIT),
            in_graph: false,
        })
    }

    /// Has all frames take ways that are right for any pairs, so that a frame may be recorded.
    pub(crate) const fn stay(&mut self) {
        self.in_graph = true;
    }

    /// Returns what is to be zero before pairs are found, of at most `max` units.
    pub(crate) fn clear_ahead(&mut self, max: u64) -> Clear {
        self.rows.clear_ahead(max)
    }

    /// Chooses how the pairs of the coming search are put in order, and has it count them by row if
    /// need be.
    pub(crate) fn begin(&mut self, stream: &Stream, n: usize, keys: &mut Keys) -> Result<Order> {
        if self.expected == 0 {
            self.expected = keys.capacity as usize;
        }
        let expected = self.expected;
        if self.backoff.begin_frame() || n == 0 {
            return Ok(Order::Sort);
        }
        if self.rows.begin(stream, n, expected, keys)? {
            return Ok(Order::Rows { any: self.in_graph });
        }
        if self.in_graph {
            return Ok(Order::Sort);
        }
        let shift = groups::shift(n, keys.bits, expected);
        Ok(shift.map_or(Order::Sort, |shift| Order::Groups { shift }))
    }

    /// Forgets rows and groups that were too long.
    pub(crate) const fn forget(&mut self) {
        self.backoff.record_success();
    }

    /// Puts packed pairs in order and unpacks them: as many as are counted, and at most all. The
    /// lists are of those and of the pairs. They may be swapped, if both have the same capacity.
    pub(crate) fn order(
        &self,
        stream: &Stream,
        sorting: &mut Sorting,
        counters: &mut Counters,
        order: Order,
        bits: u32,
        [packed, ordered]: [&mut Grow<u64>; 2],
    ) -> Result<()> {
        let n = packed.capacity();
        ordered.reserve_exact(stream, n)?;
        if n == 0 {
            return Ok(());
        }
        let (keys, state) = (packed.part(n)?, counters.ptr());
        let shift = match order {
            Order::Rows { any } => {
                let scratch = sorting.scratch_of_pairs(stream, n)?;
                let between = scratch.range(..keys.bytes())?.cast()?;
                let (packed, pairs) = (Packed { keys, bits }, ordered.part_mut(n)?);
                // SAFETY: the search has counted the pairs by row.
                return unsafe { self.rows.order(stream, state, packed, between, pairs, any) };
            }
            Order::Groups { shift } if ordered.capacity() == n => Some(shift),
            Order::Groups { .. } | Order::Sort => None,
        };
        let request = Request::keys(keys, ordered.part_mut(n)?).count(counters.pairs()?);
        let sorted_bits = shift.unwrap_or(0)..2 * bits.max(1);
        sorting.sort(stream, request, sorted_bits)?;
        if let Some(shift) = shift {
            let (keys, pairs) = (ordered.part(n)?, packed.part_mut(n)?);
            let sorted = Packed { keys, bits };
            // SAFETY: the address is that of the counters, and both lists have `n` elements.
            unsafe { self.groups.order(stream, state, sorted, shift, pairs)? };
            mem::swap(packed, ordered);
        } else {
            self.unpack(stream, counters.pairs()?, ordered.part_mut(n)?, bits)?;
        }
        sorting.copy_outcome(stream, counters.sort_outcome(PAIR_SORT)?)
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

    /// Records a search. Returns false where a row or group was too long: its pairs are in no order
    /// then, or, in rows of any length, in order but slowly. Those of the next frames are sorted by
    /// all bits, unless there were many more pairs than groups were made for.
    pub(crate) fn record(&mut self, order: Order, state: &State) -> bool {
        let expected = self.expected;
        // A search of boxes that are all unchanged finds none.
        if state.pairs > 0 {
            self.expected = state.pairs as usize;
        }
        let is_done = order == Order::Sort || state.longest <= MAX_ROW;
        let were_many = matches!(order, Order::Groups { .. }) && self.expected / 2 > expected;
        if !is_done && !were_many {
            self.backoff.record_failure();
        }
        is_done
    }
}
