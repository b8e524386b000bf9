//! Implements [`Lanes`] with AVX2.

use super::{ALL_HOMES, Avx2, CoarseBounds, LANES, Lanes, MARK, MAX_ROTATION, Naming, ROTATED};
use crate::Pair;
use std::arch::x86_64::*;

/// Loads four numbers and the other four.
#[inline(always)]
fn halves(numbers: &[i32; LANES]) -> [__m128i; 2] {
    // SAFETY: SSE2 is part of x86-64; both loads are of half the numbers.
    unsafe {
        [
            _mm_loadu_si128(numbers.as_ptr().cast()),
            _mm_loadu_si128(numbers.as_ptr().add(4).cast()),
        ]
    }
}

/// Returns what an instruction for two times four numbers makes of eight.
macro_rules! of_eight {
    ($instruction:ident, $numbers:expr) => {{
        let [low, high] = halves($numbers);
        let four = $instruction(low, high);
        let two = $instruction(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
        let one = $instruction(two, _mm_shuffle_epi32::<0b10_11_00_01>(two));
        _mm_cvtsi128_si32(one)
    }};
}

impl Lanes for Avx2 {
    #[inline(always)]
    unsafe fn overlap_eight<const K: usize>(
        min: [&[i32; LANES]; K],
        max: [&[i32; LANES]; K],
        probe: [&[i32; K]; 2],
    ) -> u32 {
        // SAFETY: the caller's promise; the loads need no alignment.
        unsafe {
            let mut disjoint = _mm256_setzero_si256();
            for axis in 0..K {
                let min = _mm256_loadu_si256(min[axis].as_ptr().cast());
                let max = _mm256_loadu_si256(max[axis].as_ptr().cast());
                let behind = _mm256_cmpgt_epi32(min, _mm256_set1_epi32(probe[1][axis]));
                let before = _mm256_cmpgt_epi32(_mm256_set1_epi32(probe[0][axis]), max);
                disjoint = _mm256_or_si256(disjoint, _mm256_or_si256(behind, before));
            }
            !(_mm256_movemask_ps(_mm256_castsi256_ps(disjoint)) as u32) & 0xff
        }
    }

    #[inline(always)]
    unsafe fn overlap_rotated(min: &[[i32; LANES]; 3], max: &[[i32; LANES]; 3]) -> u32 {
        // SAFETY: the caller's promise; the loads need no alignment.
        unsafe {
            let load = |eight: &[i32; LANES]| _mm256_loadu_si256(eight.as_ptr().cast());
            let (min, max) = (min.each_ref().map(load), max.each_ref().map(load));
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let mut disjoint = 0;
            for by in 1..=MAX_ROTATION {
                // Of an index, only the lowest three bits count.
                let to = _mm256_add_epi32(lanes, _mm256_set1_epi32(by as i32));
                let mut apart = _mm256_setzero_si256();
                for k in 0..3 {
                    let [first, last] =
                        [min[k], max[k]].map(|side| _mm256_permutevar8x32_epi32(side, to));
                    let behind = _mm256_cmpgt_epi32(min[k], last);
                    let before = _mm256_cmpgt_epi32(first, max[k]);
                    apart = _mm256_or_si256(apart, _mm256_or_si256(behind, before));
                }
                let apart = _mm256_movemask_ps(_mm256_castsi256_ps(apart)) as u32;
                disjoint |= apart << (LANES * (by - 1));
            }
            !disjoint & ROTATED
        }
    }

    /// A saturating difference is zero where the first number is at most the second.
    #[inline(always)]
    unsafe fn near(coarse: &[CoarseBounds; 2], start: usize, probe: &[[u8; 3]; 2]) -> u32 {
        // SAFETY: the caller keeps `start + COARSE_LANES` within the lengths; the loads need no
        // alignment.
        unsafe {
            let mut disjoint = _mm256_setzero_si256();
            for axis in 0..3 {
                let min = _mm256_loadu_si256(coarse[0][axis].as_ptr().add(start).cast());
                let max = _mm256_loadu_si256(coarse[1][axis].as_ptr().add(start).cast());
                let [first, last] = [0, 1].map(|k| _mm256_set1_epi8(probe[k][axis] as i8));
                let behind = _mm256_subs_epu8(min, last);
                let before = _mm256_subs_epu8(first, max);
                disjoint = _mm256_or_si256(disjoint, _mm256_or_si256(behind, before));
            }
            let overlap = _mm256_cmpeq_epi8(disjoint, _mm256_setzero_si256());
            _mm256_movemask_epi8(overlap) as u32
        }
    }

    #[inline(always)]
    unsafe fn least(numbers: &[i32; LANES]) -> i32 {
        // SAFETY: the caller's promise.
        unsafe { of_eight!(_mm_min_epi32, numbers) }
    }

    #[inline(always)]
    unsafe fn greatest(numbers: &[i32; LANES]) -> i32 {
        // SAFETY: the caller's promise.
        unsafe { of_eight!(_mm_max_epi32, numbers) }
    }

    #[inline(always)]
    unsafe fn at_most(keys: &[i64], start: usize, limit: i64) -> u32 {
        // SAFETY: the caller keeps `start + LANES` within the length; the loads need no
        // alignment.
        unsafe {
            let keys = keys.as_ptr().add(start);
            let limit = _mm256_set1_epi64x(limit);
            let above = |at: *const i64| {
                let above = _mm256_cmpgt_epi64(_mm256_loadu_si256(at.cast()), limit);
                _mm256_movemask_pd(_mm256_castsi256_pd(above)) as u32
            };
            !(above(keys) | above(keys.add(4)) << 4) & 0xff
        }
    }

    #[inline(always)]
    unsafe fn starts_within(starts: &[i32], start: usize, limit: i32) -> u32 {
        // SAFETY: the caller keeps `start + LANES` within the length; the load needs no
        // alignment.
        unsafe {
            let starts = _mm256_loadu_si256(starts.as_ptr().add(start).cast());
            let above = _mm256_cmpgt_epi32(starts, _mm256_set1_epi32(limit));
            !(_mm256_movemask_ps(_mm256_castsi256_ps(above)) as u32) & 0xff
        }
    }

    #[inline(always)]
    unsafe fn reported_here(homes: &[u8], start: usize, home: u8) -> u32 {
        // SAFETY: the caller keeps `start + LANES` within the length; the load needs no
        // alignment.
        unsafe {
            let homes = _mm_loadl_epi64(homes.as_ptr().add(start).cast());
            let both = _mm_or_si128(homes, _mm_set1_epi8(home as i8));
            _mm_movemask_epi8(_mm_cmpeq_epi8(both, _mm_set1_epi8(ALL_HOMES as i8))) as u32 & 0xff
        }
    }

    /// Moves the lanes of `mask` to the front, then interleaves the two indices of each pair.
    #[inline(always)]
    unsafe fn pairs(
        index: &[u32],
        start: usize,
        mask: u32,
        p: u32,
        naming: Naming,
        out: *mut Pair,
    ) {
        // SAFETY: the caller keeps `start + LANES` within the length and has the capacity for
        // eight pairs; loads and stores need no alignment; a mask is below 256.
        unsafe {
            let q = _mm256_loadu_si256(index.as_ptr().add(start).cast());
            let lanes = _mm_cvtsi64_si128(*FRONT.get_unchecked(mask as usize) as i64);
            let q = _mm256_permutevar8x32_epi32(q, _mm256_cvtepu8_epi32(lanes));
            let p = _mm256_set1_epi32(p as i32);
            let (a, b) = match naming {
                Naming::Smaller => (_mm256_min_epu32(p, q), _mm256_max_epu32(p, q)),
                Naming::Searching => (p, q),
                Naming::Found => (q, p),
            };
            // Within each half: pairs 0 1 and 4 5, then pairs 2 3 and 6 7.
            let (low, high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
            let out: *mut __m256i = out.cast();
            _mm256_storeu_si256(out, _mm256_permute2x128_si256(low, high, 0x20));
            _mm256_storeu_si256(out.add(1), _mm256_permute2x128_si256(low, high, 0x31));
        }
    }

    /// Moves the marked pairs of each half to the front.
    #[inline(always)]
    unsafe fn marked(pairs: &[Pair], start: usize, out: *mut Pair) -> usize {
        let mut count = 0;
        for half in 0..2 {
            // SAFETY: the caller keeps `start + LANES` within the length and has the capacity
            // for eight pairs; loads and stores need no alignment; a mask is below 16.
            unsafe {
                let four = pairs.as_ptr().add(start + half * LANES / 2);
                let four = _mm256_loadu_si256(four.cast());
                let mask = _mm256_movemask_pd(_mm256_castsi256_pd(four)) as usize;
                let lanes = _mm_cvtsi64_si128(*FRONT_PAIRS.get_unchecked(mask) as i64);
                let front = _mm256_permutevar8x32_epi32(four, _mm256_cvtepu8_epi32(lanes));
                let mark = _mm256_set1_epi64x(i64::from(MARK) << 32);
                let to: *mut __m256i = out.add(count).cast();
                _mm256_storeu_si256(to, _mm256_andnot_si256(mark, front));
                count += mask.count_ones() as usize;
            }
        }
        count
    }

    #[inline(always)]
    unsafe fn marks(pairs: &[Pair], start: usize) -> u32 {
        // SAFETY: the caller keeps `start + LANES` within the length; the loads need no
        // alignment.
        unsafe {
            let pairs = pairs.as_ptr().add(start);
            let four = |at: *const Pair| {
                let four = _mm256_loadu_si256(at.cast());
                _mm256_movemask_pd(_mm256_castsi256_pd(four)) as u32
            };
            four(pairs) | four(pairs.add(LANES / 2)) << (LANES / 2)
        }
    }
}

/// The lanes of the pairs of each mask in order, a byte each; a pair takes two lanes.
static FRONT_PAIRS: [u64; 16] = {
    let mut all = [0; 16];
    let mut mask = 0;
    while mask < all.len() {
        let (mut pair, mut filled) = (0, 0);
        while pair < 4 {
            if mask >> pair & 1 == 1 {
                let lanes = 2 * pair as u64 * 0x0101 + 0x0100;
                all[mask] |= lanes << filled;
                filled += 16;
            }
            pair += 1;
        }
        mask += 1;
    }
    all
};

/// The lanes of each mask's bits in order, a byte each.
static FRONT: [u64; 1 << LANES] = {
    let mut all = [0; 1 << LANES];
    let mut mask = 0;
    while mask < all.len() {
        let (mut lane, mut filled) = (0, 0);
        while lane < LANES {
            if mask >> lane & 1 == 1 {
                all[mask] |= (lane as u64) << filled;
                filled += 8;
            }
            lane += 1;
        }
        mask += 1;
    }
    all
};
