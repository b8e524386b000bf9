//! The order of the pairs found: by rows of one smaller index where these are short, else by a sort
//! of their keys.

mod rows;

use crate::Result;
use crate::cuda::abi::{Keys, PAIR_SORT, State};
use crate::cuda::counters::Counters;
use crate::cuda::launch::{linear, module};
use crate::cuda::sorting::Sorting;
use gpu::{Device, Kernel, Slice, SliceMut, Stream, args};
use gpusort::cuda::{Payload, Request};
pub(crate) use rows::Packed;
use rows::Rows;

/// The way in which the pairs of one search are put in order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// By rows, which the search counts.
    Rows,
    /// By a sort of their keys.
    Sort,
}

/// The means to put pairs in order.
pub(crate) struct PairOrder {
    unpack: Kernel,
    rows: Rows,
}

impl PairOrder {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            unpack: module(device)?.kernel("sap_unpack")?,
            rows: Rows::new(device)?,
        })
    }

    /// Has the coming search count its pairs by row, if they are likely few enough: the last one
    /// found `last_pairs`, none if there was none.
    pub(crate) fn begin(
        &mut self,
        stream: &Stream,
        n: usize,
        last_pairs: usize,
        keys: &mut Keys,
    ) -> Result<Order> {
        let expected = match last_pairs {
            0 => keys.capacity as usize,
            pairs => pairs,
        };
        let counted = self.rows.begin(stream, n, expected, keys)?;
        Ok(if counted { Order::Rows } else { Order::Sort })
    }

    /// Puts packed pairs in order and unpacks them: as many as are counted, and at most all.
    pub(crate) fn order(
        &self,
        stream: &Stream,
        sorting: &mut Sorting,
        counters: &mut Counters,
        order: Order,
        packed: Packed,
        mut pairs: SliceMut<u64>,
    ) -> Result<()> {
        let Packed { keys, bits } = packed;
        if keys.is_empty() {
            return Ok(());
        }
        if order == Order::Rows {
            let scratch = sorting.scratch_of_pairs(stream, keys.len())?;
            let between = scratch.range(..keys.bytes())?.cast()?;
            // SAFETY: the search has counted the pairs by row.
            return unsafe {
                self.rows
                    .order(stream, counters.ptr(), packed, between, pairs)
            };
        }
        let request = Request::keys(keys, pairs.reborrow()).count(counters.pairs()?);
        let key_bits = 2 * bits.max(1);
        sorting.sort(stream, request, keys.len(), Payload::None, key_bits)?;
        self.unpack(stream, counters.pairs()?, pairs, bits)?;
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

    /// Tells whether the pairs of a search are in order, by its counters.
    pub(crate) const fn is_done(order: Order, state: &State) -> bool {
        matches!(order, Order::Sort) || Rows::are_short(state)
    }

    /// Has the pairs of the next frames put in order by a sort: a row was too long.
    pub(crate) fn avoid_rows(&mut self) {
        self.rows.avoid();
    }
}
