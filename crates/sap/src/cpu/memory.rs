//! How many pairs may be kept, and when the system is asked for it.

use super::available::available;
use super::output::collect::Found;
use super::tuning::{BOX_BYTES, CARED_PAIRS};
use crate::{Config, Pair, Result};

/// Bytes of a pair.
const PAIR: u64 = size_of::<Pair>() as u64;

/// The pairs of so many boxes when all overlap.
pub(super) const fn max_pairs(boxes: usize) -> u64 {
    let boxes = boxes as u64;
    boxes * boxes.saturating_sub(1) / 2
}

/// What decides how many pairs a call may keep.
pub(super) struct Memory<'a> {
    pub(super) config: &'a Config,
    /// Boxes of the call, whose own memory comes first.
    pub(super) boxes: usize,
    /// The max number of pairs that they can have.
    pub(super) max: u64,
    /// Pairs that the call before had, if there was one.
    pub(super) last: Option<u64>,
    /// Bytes for pairs that the engine has already.
    pub(super) owned: u64,
    /// Whether pairs that started and ended are listed too.
    pub(super) events: bool,
}

impl<'a> Memory<'a> {
    /// For a call that nothing is known of before.
    pub(super) const fn new(config: &'a Config, boxes: usize, max: u64) -> Self {
        Self {
            config,
            boxes,
            max,
            last: None,
            owned: 0,
            events: false,
        }
    }

    /// Collects the pairs that `sweep` finds, which stores as many as it is given and counts the
    /// others. Gives the limit too: more pairs than that are only counted.
    ///
    /// The system is asked only where the last call had many pairs, or this one turns out to. A
    /// quarter of the limit is filled before all pairs are counted, unless the last call had more;
    /// where they fit, they are then swept for once more.
    pub(super) fn collect(
        &self,
        mut sweep: impl FnMut(u64) -> Result<Found>,
    ) -> Result<(Found, u64)> {
        if let Some(bytes) = self.config.pair_memory {
            let limit = bytes / PAIR;
            return Ok((sweep(limit)?, limit));
        }
        if self.max <= CARED_PAIRS {
            return Ok((sweep(u64::MAX)?, u64::MAX));
        }
        let few = self.last.is_some_and(|last| last <= CARED_PAIRS / 2);
        let asked = (!few).then(|| self.limit());
        let first = match asked {
            None => CARED_PAIRS,
            Some(u64::MAX) => u64::MAX,
            Some(limit) => {
                let expected = self.last.map_or(0, |last| last + last / 4);
                (limit / 4).max(expected).clamp(CARED_PAIRS, limit)
            }
        };
        let found = sweep(first)?;
        if found.count <= first {
            return Ok((found, asked.unwrap_or(u64::MAX)));
        }
        let limit = asked.unwrap_or_else(|| self.limit());
        if found.count > limit {
            return Ok((found, limit));
        }
        drop(found);
        Ok((sweep(limit)?, limit))
    }

    /// As many pairs as are wanted at once, or fewer where memory does not hold them.
    pub(super) fn round(&self, wanted: u64) -> u64 {
        if self.max <= CARED_PAIRS {
            return wanted;
        }
        wanted.min(self.limit())
    }

    /// The pairs that half of the memory available holds: each in the list, in the copy that it is
    /// sorted from, and with events in the two lists of those. As many as nobody asks for are
    /// always allowed.
    fn limit(&self) -> u64 {
        let lists = if self.events { 4 } else { 2 };
        available().map_or(u64::MAX, |bytes| {
            let boxes = self.boxes as u64 * BOX_BYTES;
            let bytes = bytes.saturating_add(self.owned).saturating_sub(boxes);
            (bytes / 2 / (lists * PAIR)).max(CARED_PAIRS)
        })
    }
}
