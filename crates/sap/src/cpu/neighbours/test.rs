//! Tests of two boxes that lie anywhere. They compare floating-point numbers, which is exact unless
//! the processor takes denormal numbers for zero. Those for an overlap need boxes that are not
//! empty.

use crate::cpu::lanes::MARK;
use crate::{Aabb, Pair};

/// Tells whether this thread's floating-point mode takes denormal numbers for zero, or makes zero
/// of results that would be such.
pub(in crate::cpu) fn ignores_denormals() -> bool {
    // Not known to the compiler, so that the processor compares.
    let [smallest, least] = std::hint::black_box([f32::from_bits(1), f32::MIN_POSITIVE]);
    std::hint::black_box(smallest == 0.0 || (least / 2.0).to_bits() == 0)
}

/// Returns a bit for each of up to 32 candidates, which may have theirs set.
#[inline(always)]
pub(super) fn each_overlapping(candidates: &[Pair], overlaps: impl Fn(u32, u32) -> bool) -> u32 {
    let bit = |pair: &Pair| u32::from(overlaps(pair.a, pair.b & !MARK));
    let bits = candidates.iter().map(bit);
    (0..).zip(bits).fold(0, |all, (i, bit)| all | bit << i)
}

/// Tells which candidates have boxes that overlap or touch; see [`each_overlapping`].
#[inline(always)]
pub(super) fn overlapping_closed(boxes: &[Aabb], candidates: &[Pair]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        sse::overlapping(boxes, candidates, sse::closed)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        each_overlapping(candidates, |a, b| {
            boxes[a as usize].overlaps(&boxes[b as usize], crate::OverlapRule::Closed)
        })
    }
}

/// Tells which candidates have boxes that overlap by more than touching; see [`each_overlapping`].
#[inline(always)]
pub(super) fn overlapping_open(boxes: &[Aabb], candidates: &[Pair]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        sse::overlapping(boxes, candidates, sse::open)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        each_overlapping(candidates, |a, b| {
            boxes[a as usize].overlaps(&boxes[b as usize], crate::OverlapRule::Open)
        })
    }
}

/// Returns how deep two boxes overlap on the axis where that is least, which is below 0 if they are
/// apart: the sign is exact. Sides at the same infinity touch.
#[inline(always)]
pub(super) fn depth(a: &Aabb, b: &Aabb) -> f32 {
    #[cfg(target_arch = "x86_64")]
    {
        sse::depth(a, b)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let side = |max: f32, min: f32| if max == min { 0.0 } else { max - min };
        (0..3).fold(f32::INFINITY, |depth, k| {
            let [one, other] = [side(a.max[k], b.min[k]), side(b.max[k], a.min[k])];
            depth.min(one).min(other)
        })
    }
}

/// Returns how far any side of a box has moved at most. Sides that stay infinite do not move.
pub(super) fn farthest<'a>(moves: impl Iterator<Item = (&'a Aabb, &'a Aabb)>) -> f32 {
    #[cfg(target_arch = "x86_64")]
    {
        sse::farthest(moves)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        moves.fold(0.0, |most, (b, before)| {
            most.max(super::margin::step(b, before))
        })
    }
}

/// Tells whether a box lies within another.
#[inline(always)]
pub(super) fn is_within(b: &Aabb, outer: &Aabb) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        sse::is_within(b, outer)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        outer.contains(b)
    }
}

/// All axes at once, with what every x86-64 processor has.
#[cfg(target_arch = "x86_64")]
mod sse {
    use crate::cpu::lanes::{MARK, load_box};
    use crate::cpu::tuning::CANDIDATE_GROUP;
    use crate::{Aabb, Pair};
    use std::arch::x86_64::*;

    /// Moves max x y z to the lanes of min x y z.
    #[inline(always)]
    fn max(last: __m128) -> __m128 {
        // SAFETY: SSE is part of x86-64.
        unsafe { _mm_shuffle_ps::<0b00_11_10_01>(last, last) }
    }

    #[inline(always)]
    pub(super) fn closed(min: __m128, max: __m128) -> __m128 {
        // SAFETY: SSE is part of x86-64.
        unsafe { _mm_cmple_ps(min, max) }
    }

    #[inline(always)]
    pub(super) fn open(min: __m128, max: __m128) -> __m128 {
        // SAFETY: SSE is part of x86-64.
        unsafe { _mm_cmplt_ps(min, max) }
    }

    /// Tests candidates one after the other without a branch.
    #[inline(always)]
    pub(super) fn overlapping(
        boxes: &[Aabb],
        candidates: &[Pair],
        is_before: impl Fn(__m128, __m128) -> __m128,
    ) -> u32 {
        let mut axes = [0_u8; CANDIDATE_GROUP];
        for (axes, pair) in axes.iter_mut().zip(candidates) {
            let (a, b) = (pair.a as usize, (pair.b & !MARK) as usize);
            let ([a_min, a_max], [b_min, b_max]) = (load_box(&boxes[a]), load_box(&boxes[b]));
            let (begins, ends) = (is_before(a_min, max(b_max)), is_before(b_min, max(a_max)));
            // SAFETY: SSE is part of x86-64.
            *axes = unsafe { _mm_movemask_ps(_mm_and_ps(begins, ends)) } as u8;
        }
        let (low, high) = (&axes[..16], &axes[16..]);
        // SAFETY: SSE2 is part of x86-64; both halves have 16 bytes.
        let [low, high] = [low, high].map(|half| unsafe {
            let all = _mm_set1_epi8(0b111);
            let half = _mm_and_si128(_mm_loadu_si128(half.as_ptr().cast()), all);
            _mm_movemask_epi8(_mm_cmpeq_epi8(half, all)) as u32
        });
        low | high << 16
    }

    #[inline(always)]
    pub(super) fn depth(a: &Aabb, b: &Aabb) -> f32 {
        let ([a_min, a_max], [b_min, b_max]) = (load_box(a), load_box(b));
        // SAFETY: SSE is part of x86-64.
        unsafe {
            let begins = _mm_sub_ps(max(b_max), a_min);
            let ends = _mm_sub_ps(max(a_max), b_min);
            // 0 instead of what is no number.
            let [begins, ends] =
                [begins, ends].map(|side| _mm_and_ps(side, _mm_cmpord_ps(side, side)));
            let xyz = _mm_min_ps(begins, ends);
            let yz = _mm_min_ps(xyz, _mm_shuffle_ps::<0b10_10_10_01>(xyz, xyz));
            _mm_cvtss_f32(_mm_min_ss(yz, _mm_shuffle_ps::<0b10_10_10_10>(xyz, xyz)))
        }
    }

    pub(super) fn farthest<'a>(moves: impl Iterator<Item = (&'a Aabb, &'a Aabb)>) -> f32 {
        // SAFETY: SSE is part of x86-64.
        let mut most = [unsafe { _mm_setzero_ps() }; 2];
        for (b, before) in moves {
            let (now, before) = (load_box(b), load_box(before));
            for half in 0..2 {
                // SAFETY: as above. Where a difference is no number, the max is the other.
                most[half] = unsafe {
                    let by = _mm_sub_ps(now[half], before[half]);
                    _mm_max_ps(_mm_andnot_ps(_mm_set1_ps(-0.0), by), most[half])
                };
            }
        }
        let mut all = [0.0; 4];
        // SAFETY: as above; the store needs no alignment.
        unsafe { _mm_storeu_ps(all.as_mut_ptr(), _mm_max_ps(most[0], most[1])) };
        all.into_iter().fold(0.0, f32::max)
    }

    #[inline(always)]
    pub(super) fn is_within(b: &Aabb, outer: &Aabb) -> bool {
        let ([b_min, b_max], [outer_min, outer_max]) = (load_box(b), load_box(outer));
        // SAFETY: SSE is part of x86-64.
        let [min, max] = unsafe {
            [
                _mm_movemask_ps(_mm_cmple_ps(outer_min, b_min)),
                _mm_movemask_ps(_mm_cmple_ps(b_max, outer_max)),
            ]
        };
        (min | 0b1000) & (max | 0b0001) == 0b1111
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OverlapRule;
    use crate::random::Random;

    #[test]
    fn tests_are_those_of_boxes() {
        let mut random = Random(5);
        let values = [
            f32::NEG_INFINITY,
            -1.0,
            -0.0,
            0.0,
            1e-45,
            1.0,
            f32::MAX,
            f32::INFINITY,
        ];
        let mut next = || values[(random.bits() >> 29) as usize];
        let mut one = || {
            let (a, b) = ([(); 3].map(|()| next()), [(); 3].map(|()| next()));
            Aabb::new(
                std::array::from_fn(|k| a[k].min(b[k])),
                std::array::from_fn(|k| a[k].max(b[k])),
            )
        };
        let mut overlaps = [0; 3];
        for _ in 0..20_000 {
            let (a, b) = (one(), one());
            let (boxes, pair) = ([a, b], Pair { a: 0, b: 1 | MARK });
            let found = [
                overlapping_closed(&boxes, &[pair]) == 1,
                overlapping_open(&boxes, &[pair]) == 1,
                is_within(&a, &b),
            ];
            let expected = [
                a.overlaps(&b, OverlapRule::Closed),
                a.overlaps(&b, OverlapRule::Open),
                b.contains(&a),
            ];
            assert_eq!(found, expected, "{a:?} {b:?}");
            let depth = depth(&a, &b);
            assert_eq!([depth >= 0.0, depth > 0.0], expected[..2], "{a:?} {b:?}");
            (0..3).for_each(|k| overlaps[k] += u32::from(found[k]));
        }
        assert!(overlaps.iter().all(|&count| count > 200), "{overlaps:?}");
    }
}
