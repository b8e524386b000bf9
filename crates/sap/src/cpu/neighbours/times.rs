//! When the candidates of a long list are to be tested again.
//!
//! Two boxes overlap by a depth, or are apart by one, on some axis. In a frame in which no side of
//! any box moves by more than `m`, no depth changes by more than `2 m`. So a clock adds up the
//! moves of all frames, and a candidate is due once the clock has come to half its depth. The list
//! keeps that time modulo 256, a byte for each candidate.
//!
//! Where all boxes walk by the same step, a quarter of the candidates are due in a frame. Where a
//! few move much farther than others, nearly all are: the list is then tested as a whole.

use crate::cpu::tuning::{DUE_FRAMES, DUE_WAITS, MAX_DUE, STEP_TICKS, TIMED_LIST};
use crate::policy::Backoff;

/// The longest time until a candidate is due: less than half of what a byte tells apart.
const MAX_WAIT: u8 = 120;
/// By how much less some candidates wait at most, so that those that wait long are not due at once.
/// A power of 2, less 1.
const LESS_WAIT: u8 = 31;
/// Half of a depth, less more than what depths and moves are rounded by.
const HALF: f32 = 0.4999;
/// The least ticks in a move by 1. Of two finite sides whose distance is no finite number, that is
/// farther than the longest wait.
const MIN_SCALE: f32 = 1e-36;
const _: () = assert!(MAX_WAIT as f32 <= f32::MAX * HALF * MIN_SCALE);

/// Decides whether times are kept.
pub(super) struct Times {
    clock: Ticks,
    /// The frames since candidates got times or were judged last, and how many were due in them.
    frames: u32,
    due: usize,
    backoff: Backoff,
}

/// The clock of a frame.
#[derive(Clone, Copy, Default)]
pub(super) struct Ticks {
    /// The ticks in a move by 1; 0 where no times are kept.
    scale: f32,
    now: u8,
    /// Boxes moved farther than the clock can tell.
    pub(super) all_due: bool,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            clock: Ticks::default(),
            frames: 0,
            due: 0,
            backoff: Backoff::new(DUE_WAITS[0], DUE_WAITS[1]),
        }
    }
}

impl Times {
    /// Begins a frame of `n` boxes, given the steps of a sample. Returns whether times are kept.
    pub(super) fn begin_frame(&mut self, n: usize, steps: impl Iterator<Item = f32>) -> bool {
        if n < TIMED_LIST || self.backoff.begin_frame() {
            self.stop();
        } else if self.clock.scale == 0.0 {
            let mut steps: Vec<f32> = steps.filter(|&step| step > 0.0).collect();
            steps.sort_unstable_by(f32::total_cmp);
            let scale = steps.get(steps.len() / 2).map(|step| STEP_TICKS / step);
            let is_fit = |scale: &f32| (MIN_SCALE..=f32::MAX).contains(scale);
            self.clock.scale = scale.filter(is_fit).unwrap_or(0.0);
            (self.frames, self.due) = (0, 0);
        }
        self.clock.scale > 0.0
    }

    /// Ends the times that are kept.
    pub(super) fn stop(&mut self) {
        self.clock = Ticks::default();
    }

    /// Adds what sides have moved in a frame at most.
    pub(super) fn advance(&mut self, moved: f32) {
        let clock = &mut self.clock;
        let ticks = (moved * clock.scale).ceil().max(f32::from(moved > 0.0));
        clock.all_due = ticks > f32::from(MAX_WAIT);
        clock.now = clock.now.wrapping_add(ticks as u8);
    }

    /// Returns the clock, if times are kept.
    pub(super) fn clock(&self) -> Option<Ticks> {
        Some(self.clock).filter(|clock| clock.scale > 0.0)
    }

    /// Ends a frame in which some of the candidates were due.
    pub(super) fn end_frame(&mut self, due: usize, candidates: usize) {
        self.frames += 1;
        // In the first frame all are due, since none has a time.
        if self.clock.scale == 0.0 || self.frames == 1 {
            return;
        }
        self.due += due;
        if self.due as f64 > MAX_DUE * f64::from(DUE_FRAMES) * candidates as f64 {
            self.backoff.record_failure();
            self.stop();
        } else if self.frames > DUE_FRAMES {
            self.backoff.record_success();
            (self.frames, self.due) = (1, 0);
        }
    }
}

impl Ticks {
    /// Returns the time of a candidate that is due at once.
    pub(super) const fn past(self) -> u8 {
        self.now.wrapping_sub(1)
    }

    /// Returns when a candidate of that depth is due. `i` tells it from others of its block.
    #[inline(always)]
    pub(super) fn due(self, depth: f32, i: u16) -> u8 {
        let most = MAX_WAIT - (i as u8 & LESS_WAIT);
        let wait = (depth.abs() * self.scale * HALF).min(f32::from(most));
        self.now.wrapping_add(wait as u8)
    }

    /// Returns a bit for each of up to 32 times, set where it has passed.
    #[inline(always)]
    pub(super) fn passed(self, times: &[u8]) -> u32 {
        #[cfg(target_arch = "x86_64")]
        if let Ok(times) = times.try_into() {
            return sse::passed(times, self.now);
        }
        let bits = times.iter().map(|time| time.wrapping_sub(self.now) >> 7);
        (0..)
            .zip(bits)
            .fold(0, |all, (i, bit)| all | u32::from(bit) << i)
    }
}

#[cfg(target_arch = "x86_64")]
mod sse {
    use std::arch::x86_64::*;

    #[inline(always)]
    pub(super) fn passed(times: &[u8; 32], now: u8) -> u32 {
        let bits = |half: &[u8]| {
            // SAFETY: SSE2 is part of x86-64, and a half has 16 bytes.
            unsafe {
                let times = _mm_loadu_si128(half.as_ptr().cast());
                _mm_movemask_epi8(_mm_sub_epi8(times, _mm_set1_epi8(now as i8))) as u32
            }
        };
        bits(&times[..16]) | bits(&times[16..]) << 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Aabb;
    use crate::cpu::neighbours::test::{depth, farthest};
    use crate::random::Random;

    #[test]
    fn no_candidate_changes_before_it_is_due() {
        let mut random = Random(1);
        let mut number = |below| random.below(below) as f32 / 16.0;
        let (mut waited, mut changed, mut longest) = (0, 0, 0);
        for round in 0..600 {
            let mut times = Times::default();
            // Small steps too, for long waits. The clock goes around more than once.
            let unit = if round % 3 == 0 { 1.0 } else { 0.0625 };
            let steps = [0.25 * unit, 0.5 * unit, 0.0];
            assert!(times.begin_frame(TIMED_LIST, steps.into_iter()));
            let mut one = || {
                let min = [(); 3].map(|()| number(64));
                let mut b = Aabb::new(min, min.map(|x| x + number(64)));
                let endless = [f32::NEG_INFINITY, f32::INFINITY];
                match round % 8 {
                    0 => (b.min[0], b.max[0]) = endless.into(),
                    1 => (b.min[1], b.max[1]) = (endless[1], endless[1]),
                    _ => {}
                }
                b
            };
            let mut boxes = [one(), one()];
            let mut due = None;
            for _ in 0..150 {
                let depth = depth(&boxes[0], &boxes[1]);
                let expected = boxes[0].overlaps(&boxes[1], crate::OverlapRule::Closed);
                assert_eq!(depth >= 0.0, expected, "{boxes:?}");
                let clock = times.clock;
                if let Some((time, overlapped)) = due
                    && clock.passed(&[time; 32]) == 0
                    && !clock.all_due
                {
                    assert_eq!(overlapped, expected, "{boxes:?}");
                    waited += 1;
                } else {
                    changed += u32::from(due.is_some_and(|(_, was)| was != expected));
                    due = Some((clock.due(depth, 0), expected));
                    longest = longest.max(clock.due(depth, 0).wrapping_sub(clock.now));
                }
                let before = boxes;
                for b in &mut boxes {
                    let by = [(); 3].map(|()| (number(9) - 0.25) * unit);
                    (0..3)
                        .for_each(|k| (b.min[k], b.max[k]) = (b.min[k] + by[k], b.max[k] + by[k]));
                }
                times.advance(farthest(boxes.iter().zip(&before)));
            }
        }
        assert!(waited > 1000 && changed > 1000, "{waited} {changed}");
        assert_eq!(longest, MAX_WAIT);
    }

    #[test]
    fn times_that_have_passed_are_told_around_the_clock() {
        for now in 0..=255_u8 {
            let clock = Ticks {
                scale: 1.0,
                now,
                all_due: false,
            };
            let times: [u8; 32] = std::array::from_fn(|i| now.wrapping_add(8 * i as u8));
            assert_eq!(clock.passed(&times), 0xffff_0000, "{now}");
            assert_eq!(clock.passed(&times[..31]), 0x7fff_0000, "{now}");
            assert_eq!(clock.passed(&[clock.past(); 7]), 0x7f);
            assert_eq!(
                [0.0, f32::INFINITY, 4.1].map(|d| clock.due(d, 33).wrapping_sub(now)),
                [0, 119, 2]
            );
        }
    }

    #[test]
    fn times_are_not_kept_while_most_candidates_are_due() {
        let mut times = Times::default();
        let mut kept = |due, frames| {
            let mut frame = || {
                let is_kept = times.begin_frame(TIMED_LIST, std::iter::once(1.0));
                times.advance(1.0);
                times.end_frame(due, 100);
                is_kept
            };
            (0..frames).filter(|_| frame()).count() as u32
        };
        // In the first frame none has a time yet.
        assert_eq!(kept(100, 1), 1);
        assert_eq!(kept(35, 10 * DUE_FRAMES), 10 * DUE_FRAMES);
        assert_eq!(kept(100, 10), (f64::from(DUE_FRAMES) * MAX_DUE) as u32 + 1);
        assert!(!Times::default().begin_frame(TIMED_LIST - 1, std::iter::once(1.0)));
        assert!(!Times::default().begin_frame(TIMED_LIST, std::iter::once(0.0)));
        // Its sides may be so far apart that their distance is infinite.
        assert!(!Times::default().begin_frame(TIMED_LIST, std::iter::once(4e36)));
        assert!(Times::default().begin_frame(TIMED_LIST, std::iter::once(2e36)));
    }
}
