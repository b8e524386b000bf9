//! The sides of eight boxes as integers, one array for each.

use crate::Aabb;
use crate::cpu::lanes::LANES;
use crate::cpu::node::Node;

/// Writes the sides of eight boxes to a node, the mins with `lift` added. Returns a bit for each
/// that is empty.
#[inline(always)]
pub(super) fn write_sides(boxes: [&Aabb; LANES], lift: i32, to: &mut Node) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        sse::write_sides(boxes, lift, to)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        one_by_one(boxes, lift, to)
    }
}

/// The implementation for any processor.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn one_by_one(boxes: [&Aabb; LANES], lift: i32, to: &mut Node) -> u32 {
    use crate::cpu::key::ordered;
    let of = |side: fn(&Aabb) -> [f32; 3], more: i32| {
        [0, 1, 2].map(|k| boxes.map(|b| ordered(side(b)[k]) + more))
    };
    (to.min, to.max) = (of(|b| b.min, lift), of(|b| b.max, 0));
    let is_empty = boxes.map(|b| u32::from(b.is_empty()));
    (0..LANES).fold(0, |all, lane| all | is_empty[lane] << lane)
}

/// Four boxes at once, with what every x86-64 processor has.
#[cfg(target_arch = "x86_64")]
mod sse {
    use crate::Aabb;
    use crate::cpu::lanes::{LANES, load_box};
    use crate::cpu::node::Node;
    use std::arch::x86_64::*;

    /// Returns numbers as integers of the same order: see [`crate::cpu::key::ordered`].
    #[inline(always)]
    fn ordered(numbers: __m128) -> __m128i {
        // SAFETY: SSE2 is part of x86-64.
        unsafe {
            let bits = _mm_castps_si128(numbers);
            let sign = _mm_srai_epi32::<31>(bits);
            let size = _mm_and_si128(bits, _mm_set1_epi32(i32::MAX));
            _mm_sub_epi32(_mm_xor_si128(size, sign), sign)
        }
    }

    #[inline(always)]
    pub(super) fn write_sides(boxes: [&Aabb; LANES], lift: i32, to: &mut Node) -> u32 {
        let mut empty = 0;
        for half in [0, 4] {
            let ([mut x, mut y, mut z, mut w], [a, b, c, d]) = (
                [0, 1, 2, 3].map(|lane| load_box(boxes[half + lane])[0]),
                [0, 1, 2, 3].map(|lane| load_box(boxes[half + lane])[1]),
            );
            // SAFETY: SSE2 is part of x86-64; each of the six stores is of half a list.
            unsafe {
                // Four times min x y z, max x become one of these for four boxes.
                _MM_TRANSPOSE4_PS(&mut x, &mut y, &mut z, &mut w);
                let (low, high) = (_mm_unpackhi_ps(a, b), _mm_unpackhi_ps(c, d));
                let min = [x, y, z].map(ordered);
                let max = [w, _mm_movelh_ps(low, high), _mm_movehl_ps(high, low)];
                let max = max.map(ordered);
                let is_empty = _mm_castsi128_ps(_mm_cmpgt_epi32(min[0], max[0]));
                empty |= (_mm_movemask_ps(is_empty) as u32) << half;
                let min = min.map(|side| _mm_add_epi32(side, _mm_set1_epi32(lift)));
                for (to, from) in [&mut to.min, &mut to.max].into_iter().zip([min, max]) {
                    for (to, from) in to.iter_mut().zip(from) {
                        _mm_storeu_si128(to[half..].as_mut_ptr().cast(), from);
                    }
                }
            }
        }
        empty
    }
}

// Elsewhere both are one function.
#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn sides_are_those_of_the_boxes() {
        let values = [
            f32::NEG_INFINITY,
            f32::MIN,
            -1.0,
            -1e-45,
            -0.0,
            0.0,
            1e-45,
            2.5,
            f32::INFINITY,
        ];
        let mut random = Random(5);
        let mut next = || values[random.below(values.len() as u32) as usize];
        for _ in 0..2000 {
            let boxes: [Aabb; LANES] = std::array::from_fn(|_| {
                let (a, b) = ([(); 3].map(|()| next()), [(); 3].map(|()| next()));
                if a == b {
                    return Aabb::EMPTY;
                }
                Aabb::new(
                    std::array::from_fn(|k| a[k].min(b[k])),
                    std::array::from_fn(|k| a[k].max(b[k])),
                )
            });
            for lift in [0, 1] {
                let boxes = boxes.each_ref();
                let [mut a, mut b] = [Node::NONE; 2];
                let empty = [
                    write_sides(boxes, lift, &mut a),
                    one_by_one(boxes, lift, &mut b),
                ];
                assert_eq!(empty[0], empty[1], "{boxes:?}");
                assert_eq!((a.min, a.max), (b.min, b.max), "{boxes:?}");
            }
        }
    }
}
