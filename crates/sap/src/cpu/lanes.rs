//! The inner loops of all searches: what a processor does to eight entries at once, or to 32 bytes.
//! A test of one box against several gives a bit for each.

#[cfg(target_arch = "x86_64")]
mod avx2;

#[cfg(target_arch = "x86_64")]
use crate::Aabb;
use crate::Pair;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m128, _mm_loadu_ps};

/// Number of boxes tested at once.
pub(super) const LANES: usize = 8;

/// How far behind an entry another may be, in a ring of eight, for the two to be compared. Of those
/// four behind only half are, since the other half would be the same pairs.
pub(super) const MAX_ROTATION: usize = LANES / 2;

/// The bits of [`Lanes::overlap_rotated`], one for each of the 28 pairs.
const ROTATED: u32 = u32::MAX >> (LANES / 2);

/// One array for each bound on `K` axes.
pub(super) type Bounds<const K: usize> = [Vec<i32>; K];

/// Number of boxes tested at once by coarse bounds.
pub(super) const COARSE_LANES: usize = 32;

/// Bounds of a byte on three axes.
pub(super) type CoarseBounds = [Vec<u8>; 3];

/// Steps that take several entries at once. Bit `l` of a mask is for entry `start + l`.
pub(super) trait Lanes {
    /// Returns the entries that overlap the probe, a `[min, max]`, on all `K` axes.
    ///
    /// # Safety
    ///
    /// `start + LANES` is at most the length of each array; the processor has the instructions of
    /// the implementation.
    #[inline(always)]
    unsafe fn overlap<const K: usize>(
        min: &Bounds<K>,
        max: &Bounds<K>,
        start: usize,
        probe: [&[i32; K]; 2],
    ) -> u32 {
        let eight = |all: &Vec<i32>| {
            // SAFETY: the caller keeps `start + LANES` within the length.
            unsafe { &*all.as_ptr().add(start).cast::<[i32; LANES]>() }
        };
        // SAFETY: the caller's promise.
        unsafe {
            Self::overlap_eight(
                std::array::from_fn(|axis| eight(&min[axis])),
                std::array::from_fn(|axis| eight(&max[axis])),
                probe,
            )
        }
    }

    /// Returns which of eight entries overlap the probe, a `[min, max]`, on all `K` axes.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of the implementation.
    unsafe fn overlap_eight<const K: usize>(
        min: [&[i32; LANES]; K],
        max: [&[i32; LANES]; K],
        probe: [&[i32; K]; 2],
    ) -> u32;

    /// Returns which of eight entries overlap each other on three axes, once for each pair: bit
    /// `8 (t - 1) + l` is for entry `l` and the one `t` behind it, counted on from the last to the
    /// first. `t` is up to [`MAX_ROTATION`]. For the last `t`, only the first half of the entries
    /// have a bit.
    ///
    /// # Safety
    ///
    /// As [`Lanes::overlap_eight`].
    unsafe fn overlap_rotated(min: &[[i32; LANES]; 3], max: &[[i32; LANES]; 3]) -> u32;

    /// Returns which of [`COARSE_LANES`] entries overlap the probe; both are a `[min, max]`.
    ///
    /// # Safety
    ///
    /// `start + COARSE_LANES` is at most the length of each array; the processor has the
    /// instructions of the implementation.
    unsafe fn near(coarse: &[CoarseBounds; 2], start: usize, probe: &[[u8; 3]; 2]) -> u32;

    /// Returns the least of eight numbers.
    ///
    /// # Safety
    ///
    /// As [`Lanes::overlap_eight`].
    unsafe fn least(numbers: &[i32; LANES]) -> i32;

    /// Returns the greatest of eight numbers.
    ///
    /// # Safety
    ///
    /// As [`Lanes::overlap_eight`].
    unsafe fn greatest(numbers: &[i32; LANES]) -> i32;

    /// Returns the keys that are at most `limit`.
    ///
    /// # Safety
    ///
    /// As [`Lanes::overlap`].
    unsafe fn at_most(keys: &[i64], start: usize, limit: i64) -> u32;

    /// Returns the starts that are at most `limit`.
    ///
    /// # Safety
    ///
    /// As [`Lanes::overlap`].
    unsafe fn starts_within(starts: &[i32], start: usize, limit: i32) -> u32;

    /// Returns the entries whose home bits and those of `home` together are all set.
    ///
    /// # Safety
    ///
    /// As [`Lanes::overlap`].
    unsafe fn reported_here(homes: &[u8], start: usize, home: u8) -> u32;

    /// Writes the pairs of box `p` with the boxes of `mask` to `out`, without gaps.
    ///
    /// # Safety
    ///
    /// As [`Lanes::overlap`]; `mask` has only the lowest [`LANES`] bits; `out` has the capacity for
    /// [`LANES`] pairs, all of which may be written.
    unsafe fn pairs(index: &[u32], start: usize, mask: u32, p: u32, naming: Naming, out: *mut Pair);

    /// Writes the pairs of [`LANES`] that have the bit [`MARK`], without it, to `out`, without
    /// gaps. Returns how many these are.
    ///
    /// # Safety
    ///
    /// As [`Lanes::pairs`].
    unsafe fn marked(pairs: &[Pair], start: usize, out: *mut Pair) -> usize;

    /// Returns which of [`LANES`] pairs have the bit [`MARK`].
    ///
    /// # Safety
    ///
    /// As [`Lanes::overlap`].
    unsafe fn marks(pairs: &[Pair], start: usize) -> u32;
}

/// The bit of a pair's second index that marks it. Indices have 31 bits.
pub(super) const MARK: u32 = 1 << 31;

/// Decides which of two boxes is first in a pair: `p`, for which partners are searched, or `q`,
/// which was found.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Naming {
    /// The smaller index is first.
    Smaller,
    /// Box `p` is first.
    Searching,
    /// Box `q` is first.
    Found,
}

impl Naming {
    /// Returns the pair of two boxes.
    #[inline(always)]
    pub(super) fn pair(self, p: u32, q: u32) -> Pair {
        match self {
            Self::Smaller => Pair::new(p, q),
            Self::Searching => Pair { a: p, b: q },
            Self::Found => Pair { a: q, b: p },
        }
    }
}

/// Calls `f` with each bit of a mask, lowest first.
#[inline(always)]
pub(super) fn each_bit(mut mask: u32, mut f: impl FnMut(usize)) {
    while mask != 0 {
        f(mask.trailing_zeros() as usize);
        mask &= mask - 1;
    }
}

/// Returns the bits of a mask that are accepted.
#[inline(always)]
pub(super) fn retain_bits(mask: u32, mut accept: impl FnMut(usize) -> bool) -> u32 {
    let mut accepted = mask;
    each_bit(mask, |lane| accepted &= !(u32::from(!accept(lane)) << lane));
    accepted
}

/// The implementation for any processor.
pub(super) struct Portable;

impl Lanes for Portable {
    #[inline(always)]
    unsafe fn overlap_eight<const K: usize>(
        min: [&[i32; LANES]; K],
        max: [&[i32; LANES]; K],
        probe: [&[i32; K]; 2],
    ) -> u32 {
        let mut mask = u32::MAX >> (32 - LANES);
        for axis in 0..K {
            let (min, max) = (min[axis], max[axis]);
            let overlaps = |lane: usize| min[lane] <= probe[1][axis] && probe[0][axis] <= max[lane];
            mask &= (0..LANES).fold(0, |mask, lane| mask | u32::from(overlaps(lane)) << lane);
        }
        mask
    }

    #[inline(always)]
    unsafe fn overlap_rotated(min: &[[i32; LANES]; 3], max: &[[i32; LANES]; 3]) -> u32 {
        let mut mask = 0;
        for bit in 0..ROTATED.count_ones() as usize {
            let (lane, other) = (bit % LANES, (bit + bit / LANES + 1) % LANES);
            let overlaps =
                (0..3).all(|k| min[k][lane] <= max[k][other] && min[k][other] <= max[k][lane]);
            mask |= u32::from(overlaps) << bit;
        }
        mask
    }

    #[inline(always)]
    unsafe fn near(coarse: &[CoarseBounds; 2], start: usize, probe: &[[u8; 3]; 2]) -> u32 {
        let mut mask = u32::MAX;
        for axis in 0..3 {
            let [min, max] = coarse.each_ref().map(|all| {
                // SAFETY: the caller keeps `start + COARSE_LANES` within the lengths.
                unsafe { all[axis].get_unchecked(start..start + COARSE_LANES) }
            });
            let overlaps = |lane: usize| min[lane] <= probe[1][axis] && probe[0][axis] <= max[lane];
            let of_axis = (0..COARSE_LANES).map(|lane| u32::from(overlaps(lane)) << lane);
            mask &= of_axis.fold(0, |mask, bit| mask | bit);
        }
        mask
    }

    #[inline(always)]
    unsafe fn least(numbers: &[i32; LANES]) -> i32 {
        numbers.iter().fold(i32::MAX, |x, &y| x.min(y))
    }

    #[inline(always)]
    unsafe fn greatest(numbers: &[i32; LANES]) -> i32 {
        numbers.iter().fold(i32::MIN, |x, &y| x.max(y))
    }

    #[inline(always)]
    unsafe fn at_most(keys: &[i64], start: usize, limit: i64) -> u32 {
        // SAFETY: the caller keeps `start + LANES` within the length.
        let keys = unsafe { keys.get_unchecked(start..start + LANES) };
        (0..LANES).fold(0, |mask, lane| {
            mask | u32::from(keys[lane] <= limit) << lane
        })
    }

    #[inline(always)]
    unsafe fn starts_within(starts: &[i32], start: usize, limit: i32) -> u32 {
        // SAFETY: the caller keeps `start + LANES` within the length.
        let starts = unsafe { starts.get_unchecked(start..start + LANES) };
        (0..LANES).fold(0, |mask, lane| {
            mask | u32::from(starts[lane] <= limit) << lane
        })
    }

    #[inline(always)]
    unsafe fn reported_here(homes: &[u8], start: usize, home: u8) -> u32 {
        // SAFETY: the caller keeps `start + LANES` within the length.
        let homes = unsafe { homes.get_unchecked(start..start + LANES) };
        (0..LANES).fold(0, |mask, lane| {
            mask | u32::from(homes[lane] | home == ALL_HOMES) << lane
        })
    }

    #[inline(always)]
    unsafe fn pairs(
        index: &[u32],
        start: usize,
        mask: u32,
        p: u32,
        naming: Naming,
        mut out: *mut Pair,
    ) {
        each_bit(mask, |lane| {
            // SAFETY: the caller keeps `start + LANES` within the length and has the capacity for
            // as many pairs as bits.
            unsafe {
                out.write(naming.pair(p, *index.get_unchecked(start + lane)));
                out = out.add(1);
            }
        });
    }

    #[inline(always)]
    unsafe fn marked(pairs: &[Pair], start: usize, out: *mut Pair) -> usize {
        // SAFETY: the caller keeps `start + LANES` within the length.
        let pairs = unsafe { pairs.get_unchecked(start..start + LANES) };
        let mut count = 0;
        for &Pair { a, b } in pairs {
            // SAFETY: the caller has the capacity for as many pairs; at most one follows each.
            unsafe { out.add(count).write(Pair { a, b: b & !MARK }) };
            count += (b >> 31) as usize;
        }
        count
    }

    #[inline(always)]
    unsafe fn marks(pairs: &[Pair], start: usize) -> u32 {
        // SAFETY: the caller keeps `start + LANES` within the length.
        let pairs = unsafe { pairs.get_unchecked(start..start + LANES) };
        (0..LANES).fold(0, |mask, lane| mask | pairs[lane].b >> 31 << lane)
    }
}

/// The home bits of both axes.
pub(super) const ALL_HOMES: u8 = 3;

/// The implementation for x86 processors with AVX2: two loads and two compares an axis for eight
/// boxes.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx2;

/// Prefetches the entry at an index, if there is one. A gather in index order asks for entries
/// `PREFETCH_DISTANCE` ahead, because they are scattered over memory. An entry may lie in several
/// lines of the cache.
#[inline(always)]
pub(super) fn prefetch<T>(values: &[T], index: Option<&u32>) {
    #[cfg(target_arch = "x86_64")]
    if let Some(value) = index.and_then(|&index| values.get(index as usize)) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let first: *const i8 = std::ptr::from_ref(value).cast();
        // SAFETY: SSE is part of x86-64; a prefetch reads nothing that the program can see.
        unsafe {
            for line in (0..size_of::<T>()).step_by(64) {
                _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(line));
            }
            if align_of::<T>() < 64 && !64_usize.is_multiple_of(size_of::<T>()) {
                _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(size_of::<T>() - 1));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, index);
}

/// Returns the first four of a box's six numbers, and the last four: min x y z, max x; min z, max x
/// y z.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn load_box(b: &Aabb) -> [__m128; 2] {
    let numbers: &[f32; 6] = bytemuck::cast_ref(b);
    // SAFETY: SSE is part of x86-64; both loads lie within the six numbers and need no alignment.
    unsafe {
        [
            _mm_loadu_ps(numbers.as_ptr()),
            _mm_loadu_ps(numbers.as_ptr().add(2)),
        ]
    }
}

/// An inner loop, written once for all processors. Implementations of `run` are
/// `#[inline(always)]`, so that they are compiled with the instructions of their caller.
pub(super) trait Job {
    fn run<L: Lanes>(self);
}

/// Runs a job with the best instructions of this processor. They do not change its results.
pub(super) fn run_best<J: Job>(job: J) {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the processor has what the function is compiled for.
        return unsafe { run_avx2(job) };
    }
    job.run::<Portable>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn run_avx2<J: Job>(job: J) {
    job.run::<Avx2>();
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    let has = [
        std::arch::is_x86_feature_detected!("avx2"),
        std::arch::is_x86_feature_detected!("bmi1"),
        std::arch::is_x86_feature_detected!("popcnt"),
    ];
    has == [true; 3]
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Returns the results of all functions of an implementation for some numbers.
    #[inline(always)]
    fn all_of<L: Lanes>(numbers: &[u32]) -> Vec<u64> {
        let number = |i: usize| numbers[i % numbers.len()];
        let bounds = |from: usize| -> Bounds<3> {
            std::array::from_fn(|axis| {
                (0..64)
                    .map(|i| number(from + 64 * axis + i) as i32 >> (i % 30))
                    .collect()
            })
        };
        let (min, max) = (bounds(0), bounds(200));
        let coarse = |from: usize| -> CoarseBounds {
            std::array::from_fn(|axis| {
                (0..96)
                    .map(|i| number(from + 96 * axis + i) as u8)
                    .collect()
            })
        };
        let coarse = [coarse(50), coarse(300)];
        let keys: Vec<i64> = (0..64).map(|i| i64::from(number(i)) << 20).collect();
        let homes: Vec<u8> = (0..64).map(|i| number(i) as u8 & ALL_HOMES).collect();
        let index: Vec<u32> = (0..64).map(number).collect();
        let mut made = Vec::new();
        for start in 0..=64 - LANES {
            let probe = [[0, 1, 2], [3, 4, 5]]
                .map(|axes| axes.map(|i| number(7 * start + i) as i32 >> (start % 30)));
            let mut pairs = [Pair::default(); LANES];
            // SAFETY: all arrays have 64 entries, and `pairs` has eight.
            let masks = unsafe {
                let eight = |all: &Bounds<3>| -> [[i32; LANES]; 3] {
                    std::array::from_fn(|k| std::array::from_fn(|i| all[k][start + i]))
                };
                made.push(L::overlap_rotated(&eight(&min), &eight(&max)).into());
                let overlap = L::overlap(&min, &max, start, [&probe[0], &probe[1]]);
                let near = [0, 1].map(|k| [3, 4, 5].map(|i| number(start + i + k) as u8));
                made.push(L::near(&coarse, start, &near).into());
                let at_most = L::at_most(&keys, start, i64::from(number(start + 3)) << 20);
                let here = L::reported_here(&homes, start, number(start) as u8 & ALL_HOMES);
                let within = L::starts_within(&min[0], start, number(start + 5) as i32);
                for naming in [Naming::Smaller, Naming::Searching, Naming::Found] {
                    let mask = number(start + 11) & 0xff;
                    L::pairs(
                        &index,
                        start,
                        mask,
                        number(start),
                        naming,
                        pairs.as_mut_ptr(),
                    );
                    made.extend(
                        pairs[..mask.count_ones() as usize]
                            .iter()
                            .map(|pair| pair.code()),
                    );
                }
                let candidates: Vec<Pair> = (0..64)
                    .map(|i| Pair {
                        a: number(i),
                        b: number(i + 64),
                    })
                    .collect();
                let marked = L::marked(&candidates, start, pairs.as_mut_ptr());
                made.extend(pairs[..marked].iter().map(|pair| pair.code()));
                let marks = L::marks(&candidates, start);
                let eight = std::array::from_fn(|lane| number(start + lane) as i32);
                let bounds = [L::least(&eight) as u32, L::greatest(&eight) as u32];
                [overlap, at_most, here, within, marks, bounds[0], bounds[1]]
            };
            made.extend(masks.map(u64::from));
        }
        made
    }

    #[target_feature(enable = "avx2,bmi1,popcnt")]
    fn all_of_avx2(numbers: &[u32]) -> Vec<u64> {
        all_of::<Avx2>(numbers)
    }

    #[test]
    fn both_implementations_are_the_same() {
        if !has_avx2() {
            return;
        }
        let mut random = Random(9);
        for _ in 0..50 {
            let mut next = || {
                let bits = random.bits();
                bits ^ bits >> 15
            };
            let numbers: Vec<u32> = (0..600).map(|_| next()).collect();
            // SAFETY: the processor has AVX2, BMI1 and POPCNT.
            assert_eq!(all_of::<Portable>(&numbers), unsafe {
                all_of_avx2(&numbers)
            });
        }
    }
}
