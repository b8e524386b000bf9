//! Limits the number of pairs that a call may keep, by the memory that is available.

use super::available::available;
use super::output::collect::Found;
use super::tuning::{BOX_BYTES, FIRST_SHARE, UNCHECKED_PAIRS};
use crate::{Config, Error, Pair, Result};

/// Bytes of a pair.
const PAIR: u64 = size_of::<Pair>() as u64;

/// Returns the number of pairs if all boxes overlap.
pub(crate) const fn max_pairs(boxes: usize) -> u64 {
    let boxes = boxes as u64;
    boxes * boxes.saturating_sub(1) / 2
}

/// What decides how many pairs a call may keep.
pub(crate) struct PairLimit<'a> {
    pub(super) config: &'a Config,
    /// The number of boxes, whose memory is not available for pairs.
    pub(super) boxes: usize,
    /// The max number of pairs that the boxes can have.
    pub(crate) max: u64,
    /// The number of pairs of the call before, if there was one.
    pub(super) last: Option<u64>,
    /// Bytes of the engine that the call can reuse for its pairs.
    pub(super) reusable: u64,
    /// Whether the pairs that started and ended are listed too.
    pub(super) events: bool,
}

impl<'a> PairLimit<'a> {
    /// Creates the limits of a call that lists pairs, but no events, and has no call before it.
    pub(crate) const fn new(config: &'a Config, boxes: usize, max: u64) -> Self {
        Self {
            config,
            boxes,
            max,
            last: None,
            reusable: 0,
            events: false,
        }
    }

    /// Creates the limits of an update, which lists events too if they are wanted.
    pub(crate) const fn of_update(config: &'a Config, boxes: usize, max: u64) -> Self {
        let new = Self::new(config, boxes, max);
        Self {
            events: config.events,
            ..new
        }
    }

    /// Collects the pairs that `sweep` finds. It is called with the number of pairs that it may
    /// store, and counts the others. Returns the final limit too.
    ///
    /// The available memory is queried only in a first call, where the last call had more than
    /// half of [`UNCHECKED_PAIRS`], or where this one has more than all of them. The
    /// first sweep may store a quarter of the limit, or a little more than the pairs of the last
    /// call. If there are more pairs, and all fit the limit, a second sweep stores them.
    pub(super) fn collect(
        &self,
        mut sweep: impl FnMut(u64) -> Result<Found>,
    ) -> Result<(Found, u64)> {
        if let Some(limit) = self.config.pair_limit() {
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
                let expected = self.last.map_or(0, |last| last + last / FIRST_SHARE);
                (limit / FIRST_SHARE)
                    .max(expected)
                    .clamp(UNCHECKED_PAIRS, limit)
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

    /// Fails if `count` pairs are too many for a list that has the memory for `capacity`.
    pub(crate) fn check(&self, count: u64, capacity: usize) -> Result<()> {
        let limit = match self.config.pair_limit() {
            Some(limit) => limit,
            None if count <= UNCHECKED_PAIRS.max(capacity as u64) => return Ok(()),
            None => self.limit(),
        };
        if count > limit {
            return Err(Error::TooManyPairs { count, limit });
        }
        Ok(())
    }

    /// Returns the number of pairs that half of the available memory holds, at least
    /// `UNCHECKED_PAIRS`. A pair takes memory in the list, in the unsorted copy and, with events,
    /// in the lists of started and ended pairs.
    fn limit(&self) -> u64 {
        let lists = if self.events { 4 } else { 2 };
        available().map_or(u64::MAX, |bytes| {
            let boxes = self.boxes as u64 * BOX_BYTES;
            let bytes = bytes.saturating_add(self.reusable).saturating_sub(boxes);
            (bytes / 2 / (lists * PAIR)).max(UNCHECKED_PAIRS)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Engine;
    use crate::cpu::available::tests::IS_EXHAUSTED;
    use crate::engine::Engine as _;
    use crate::random::Random;
    use crate::{Aabb, Frame, Sorts};
    use std::sync::atomic::Ordering::Relaxed;

    /// Boxes of a size in a cube, which move a little between two frames. Pseudo-random.
    fn boxes(frame: u32, size: f32) -> Vec<Aabb> {
        let mut random = Random(1);
        let mut next = || random.unit();
        let mut one = || {
            let min = [(); 3].map(|()| next() * 11.1 + frame as f32 * 0.002 * next());
            Aabb::new(min, min.map(|x| x + size))
        };
        (0..20_000).map(|_| one()).collect()
    }

    #[test]
    fn the_neighbour_list_keeps_to_the_available_memory() {
        // Not a `BroadPhase`, so that these tests need no code of other engines.
        let mut engine = Engine::new(Config::default());
        let mut update = |frame, size| engine.update(&Frame::boxes(&boxes(frame, size)));
        for frame in 0..3 {
            update(frame, 1.0).expect("the CPU engine works");
        }
        let report = update(3, 1.0).expect("the CPU engine works");
        assert!(report.pairs < UNCHECKED_PAIRS && report.stats.sorts == Sorts::default());
        IS_EXHAUSTED.store(true, Relaxed);
        let refused = update(4, 1.02);
        IS_EXHAUSTED.store(false, Relaxed);
        let limit = UNCHECKED_PAIRS;
        assert!(matches!(refused, Err(Error::TooManyPairs { limit: found, .. }) if found == limit));
    }

    /// Memory that exceeds what any machine has makes the limit independent of this one.
    #[test]
    #[cfg_attr(target_family = "wasm", ignore = "the system does not tell its memory")]
    fn an_update_with_events_needs_twice_the_memory() {
        let limit = |events| {
            let config = Config {
                events,
                ..Config::default()
            };
            let memory = PairLimit {
                reusable: 1 << 60,
                ..PairLimit::of_update(&config, 0, u64::MAX)
            };
            match memory.check(u64::MAX, 0) {
                Err(Error::TooManyPairs { limit, .. }) => limit >> 50,
                _ => 0,
            }
        };
        assert_eq!((limit(false), limit(true)), (1 << 5, 1 << 4));
    }
}
