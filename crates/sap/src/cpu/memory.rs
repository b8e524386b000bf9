//! Limits the number of pairs that a call may keep, by the memory that is available.

use super::available::available;
use super::output::collect::Found;
use super::tuning::{BOX_BYTES, UNCHECKED_PAIRS};
use crate::{Config, Pair, Result};

/// Bytes of a pair.
const PAIR: u64 = size_of::<Pair>() as u64;

/// Returns the number of pairs if all boxes overlap.
pub(crate) const fn max_pairs(boxes: usize) -> u64 {
    let boxes = boxes as u64;
    boxes * boxes.saturating_sub(1) / 2
}

/// What decides how many pairs a call may keep.
pub(crate) struct Memory<'a> {
    pub(super) config: &'a Config,
    /// The number of boxes, whose memory is not available for pairs.
    pub(super) boxes: usize,
    /// The max number of pairs that the boxes can have.
    pub(super) max: u64,
    /// The number of pairs of the call before, if there was one.
    pub(super) last: Option<u64>,
    /// Bytes for pairs that the engine has allocated already.
    pub(super) owned: u64,
    /// Whether the pairs that started and ended are listed too.
    pub(super) events: bool,
}

impl<'a> Memory<'a> {
    /// Creates the limits of a call that has no call before it.
    pub(crate) const fn new(config: &'a Config, boxes: usize, max: u64) -> Self {
        Self {
            config,
            boxes,
            max,
            last: None,
            owned: 0,
            events: false,
        }
    }

    /// Collects the pairs that `sweep` finds. It is called with the number of pairs that it may
    /// store, and counts the others. Returns the final limit too.
    ///
    /// The available memory is queried only if the last call had many pairs, or this one has. The
    /// first sweep may store a quarter of the limit, or a little more than the pairs of the last
    /// call. If there are more pairs, and all fit the limit, a second sweep stores them.
    pub(super) fn collect(
        &self,
        mut sweep: impl FnMut(u64) -> Result<Found>,
    ) -> Result<(Found, u64)> {
        if let Some(bytes) = self.config.pair_memory {
            let limit = bytes / PAIR;
            return Ok((sweep(limit)?, limit));
        }
        if self.max <= UNCHECKED_PAIRS {
            return Ok((sweep(u64::MAX)?, u64::MAX));
        }
        let had_few = self.last.is_some_and(|last| last <= UNCHECKED_PAIRS / 2);
        let known_limit = (!had_few).then(|| self.limit());
        let first = match known_limit {
            None => UNCHECKED_PAIRS,
            Some(u64::MAX) => u64::MAX,
            Some(limit) => {
                let expected = self.last.map_or(0, |last| last + last / 4);
                (limit / 4).max(expected).clamp(UNCHECKED_PAIRS, limit)
            }
        };
        let found = sweep(first)?;
        if found.count <= first {
            return Ok((found, known_limit.unwrap_or(u64::MAX)));
        }
        let limit = known_limit.unwrap_or_else(|| self.limit());
        if found.count > limit {
            return Ok((found, limit));
        }
        drop(found);
        Ok((sweep(limit)?, limit))
    }

    /// Returns `wanted`, or the limit where memory holds fewer pairs.
    pub(crate) fn round(&self, wanted: u64) -> u64 {
        if self.max <= UNCHECKED_PAIRS {
            return wanted;
        }
        wanted.min(self.limit())
    }

    /// Returns the limit of a list of `count` pairs that has the memory for `capacity`.
    pub(super) fn of_list(&self, count: u64, capacity: usize) -> u64 {
        match self.config.pair_memory {
            Some(bytes) => bytes / PAIR,
            None if count <= UNCHECKED_PAIRS.max(capacity as u64) => u64::MAX,
            None => self.limit(),
        }
    }

    /// Returns the number of pairs that half of the available memory holds, at least
    /// `UNCHECKED_PAIRS`. A pair takes memory in the list, in the unsorted copy and, with events,
    /// in the lists of started and ended pairs.
    fn limit(&self) -> u64 {
        let lists = if self.events { 4 } else { 2 };
        available().map_or(u64::MAX, |bytes| {
            let boxes = self.boxes as u64 * BOX_BYTES;
            let bytes = bytes.saturating_add(self.owned).saturating_sub(boxes);
            (bytes / 2 / (lists * PAIR)).max(UNCHECKED_PAIRS)
        })
    }
}
