//! Tests of two boxes that lie anywhere, of which neither is empty. They compare floating-point
//! numbers, which is exact unless the processor takes denormal numbers for zero.

use crate::Aabb;

/// Tells whether this thread's floating-point mode takes denormal numbers for zero.
pub(in crate::cpu) fn ignores_denormals() -> bool {
    // Not known to the compiler, so that the processor compares.
    let smallest = std::hint::black_box(f32::from_bits(1));
    std::hint::black_box(smallest == 0.0)
}

/// Tells whether two boxes overlap, or only touch.
#[inline(always)]
pub(super) fn overlap_closed(a: &Aabb, b: &Aabb) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        sse::overlap_closed(a, b)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        (0..3).all(|k| a.min[k] <= b.max[k] && b.min[k] <= a.max[k])
    }
}

/// Tells whether two boxes overlap by more than touching.
#[inline(always)]
pub(super) fn overlap_open(a: &Aabb, b: &Aabb) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        sse::overlap_open(a, b)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        (0..3).all(|k| a.min[k] < b.max[k] && b.min[k] < a.max[k])
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
    use crate::Aabb;
    use std::arch::x86_64::*;

    /// The first four of a box's six numbers and the last four: min x y z, max x; min z, max x y z.
    #[inline(always)]
    fn load(b: &Aabb) -> [__m128; 2] {
        let numbers: &[f32; 6] = bytemuck::cast_ref(b);
        // SAFETY: SSE is part of x86-64; both loads lie within the six numbers and need no
        // alignment.
        unsafe {
            [
                _mm_loadu_ps(numbers.as_ptr()),
                _mm_loadu_ps(numbers.as_ptr().add(2)),
            ]
        }
    }

    /// Moves max x y z to the lanes of min x y z.
    #[inline(always)]
    fn max(last: __m128) -> __m128 {
        // SAFETY: SSE is part of x86-64.
        unsafe { _mm_shuffle_ps::<0b00_11_10_01>(last, last) }
    }

    #[inline(always)]
    pub(super) fn overlap_closed(a: &Aabb, b: &Aabb) -> bool {
        let ([a_min, a_max], [b_min, b_max]) = (load(a), load(b));
        // SAFETY: SSE is part of x86-64.
        let all = unsafe {
            let begins = _mm_cmple_ps(a_min, max(b_max));
            _mm_movemask_ps(_mm_and_ps(begins, _mm_cmple_ps(b_min, max(a_max))))
        };
        all & 0b111 == 0b111
    }

    #[inline(always)]
    pub(super) fn overlap_open(a: &Aabb, b: &Aabb) -> bool {
        let ([a_min, a_max], [b_min, b_max]) = (load(a), load(b));
        // SAFETY: SSE is part of x86-64.
        let all = unsafe {
            let begins = _mm_cmplt_ps(a_min, max(b_max));
            _mm_movemask_ps(_mm_and_ps(begins, _mm_cmplt_ps(b_min, max(a_max))))
        };
        all & 0b111 == 0b111
    }

    #[inline(always)]
    pub(super) fn is_within(b: &Aabb, outer: &Aabb) -> bool {
        let ([b_min, b_max], [outer_min, outer_max]) = (load(b), load(outer));
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

    #[test]
    fn tests_are_those_of_boxes() {
        let mut state = 5_u32;
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
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            values[(state >> 29) as usize]
        };
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
            let found = [
                overlap_closed(&a, &b),
                overlap_open(&a, &b),
                is_within(&a, &b),
            ];
            let expected = [
                a.overlaps(&b, OverlapRule::Closed),
                a.overlaps(&b, OverlapRule::Open),
                b.contains(&a),
            ];
            assert_eq!(found, expected, "{a:?} {b:?}");
            (0..3).for_each(|k| overlaps[k] += u32::from(found[k]));
        }
        assert!(overlaps.iter().all(|&count| count > 200), "{overlaps:?}");
    }
}
