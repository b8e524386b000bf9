//! Stable least-significant-digit radix sort, single- and multi-threaded.
//!
//! 1. The *plan*: digits that hold every bit in which two keys differ. No digit is spent on bits that all keys share,
//!    so a narrow key range costs few passes wherever it lies.
//! 2. One *pass* per digit: each thread counts the digits of its share, the counts are scanned digit by digit and
//!    within a digit share by share, and each thread moves its share to the places that are its own. A single thread
//!    counts all digits in one sweep, for counts of the whole do not change from pass to pass.
//!
//! The first pass reads its elements through a function and the last one writes them through a [`Target`]: an index
//! sort makes its elements from the keys on the way in and writes nothing but the index, so that n elements are moved
//! once per digit and never else.

use super::scratch::Scratch;
use super::tuning::DIGIT_WIDTH;
use crate::Result;
use bytemuck::Pod;
use rayon::prelude::*;
use std::ops::Range;

/// [`DIGIT_WIDTH`] bits of a key, from bit `shift` up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digit {
    shift: u32,
}

impl Digit {
    #[inline(always)]
    fn of(self, key: u64) -> usize {
        (key >> self.shift) as usize & (BUCKETS - 1)
    }
}

const BUCKETS: usize = 1 << DIGIT_WIDTH;

/// One count, and later one place, per value of a digit.
type Counts = [u32; BUCKETS];

/// The fewest digits, lowest first, that together hold every bit set in `varying`.
pub(super) fn plan(varying: u64) -> Vec<Digit> {
    let (mut digits, mut rest) = (Vec::new(), varying);
    while rest != 0 {
        let shift = rest.trailing_zeros();
        digits.push(Digit { shift });
        rest &= u64::MAX.checked_shl(shift + DIGIT_WIDTH).unwrap_or(0);
    }
    digits
}

/// Where elements go, from many threads at once.
pub(super) trait Target<T>: Copy + Send + Sync {
    /// # Safety
    ///
    /// `place` is within the target and is written by no other thread meanwhile, and nothing is borrowed from it.
    unsafe fn write(self, place: usize, element: T);
}

/// The elements of a slice, reached without borrowing it.
pub(super) struct Array<T>(*mut T);

impl<T> Array<T> {
    pub(super) fn new(slice: &mut [T]) -> Self {
        Self(slice.as_mut_ptr())
    }

    /// # Safety
    ///
    /// `place` is within the slice, which is still alive, and is not written meanwhile.
    #[inline(always)]
    pub(super) unsafe fn read(self, place: usize) -> T
    where
        T: Copy,
    {
        // SAFETY: the caller says so.
        unsafe { self.0.add(place).read() }
    }
}

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Array<T> {}
// SAFETY: every access is `unsafe` and its caller sees to it that no two threads meet at one place.
unsafe impl<T: Send + Sync> Send for Array<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Array<T> {}

impl<T: Copy + Send + Sync> Target<T> for Array<T> {
    #[inline(always)]
    unsafe fn write(self, place: usize, element: T) {
        // SAFETY: the caller says that the place is within the slice and its own.
        unsafe { self.0.add(place).write(element) }
    }
}

/// Share `i` of `n` elements cut into `shares` of one size, give or take one.
pub(super) fn share(n: usize, shares: usize, i: usize) -> Range<usize> {
    let at = |i: usize| (n as u128 * i as u128 / shares as u128) as usize;
    at(i)..at(i + 1)
}

/// Sorts elements `0..n`, made by `read`, by the `digits` of their `key` and writes them to `target`.
///
/// `read` may read what `target` overwrites: nothing is written there before all is read. Memory runs out before
/// anything is written, or not at all.
///
/// # Safety
///
/// `target` takes `n` elements, at most `u32::MAX`, and nothing is borrowed from it; `key` is pure.
pub(super) unsafe fn sort<T: Pod + Send + Sync>(
    n: usize,
    digits: &[Digit],
    shares: usize,
    scratch: &mut [Scratch; 2],
    read: impl Fn(usize) -> T + Copy + Send + Sync,
    key: impl Fn(&T) -> u64 + Copy + Send + Sync,
    target: impl Target<T>,
) -> Result<()> {
    let [a, b] = scratch;
    let mut to: &mut [T] = a.reserve(if digits.len() > 1 { n } else { 0 })?;
    let mut from: &mut [T] = b.reserve(if digits.len() != 2 { n } else { 0 })?;
    let mut counts = if shares == 1 {
        count_all(n, digits, move |i| key(&read(i)))
    } else {
        Vec::new()
    };
    for (j, &digit) in digits.iter().enumerate() {
        let counts = counts.get_mut(j);
        // SAFETY: `to` holds `n` elements that nothing else uses; the rest is as the caller says.
        unsafe {
            if j + 1 < digits.len() {
                let to = Array::new(to);
                match j {
                    0 => pass(n, shares, digit, counts, read, key, to),
                    _ => pass(n, shares, digit, counts, from_at(from), key, to),
                }
            } else {
                if j == 0 {
                    from.iter_mut()
                        .enumerate()
                        .for_each(|(i, element)| *element = read(i));
                }
                pass(n, shares, digit, counts, from_at(from), key, target);
            }
        }
        std::mem::swap(&mut from, &mut to);
    }
    Ok(())
}

fn from_at<T: Copy + Sync>(from: &[T]) -> impl Fn(usize) -> T + Copy + Send + Sync {
    move |i| from[i]
}

/// One stable pass: counts, unless given, then moves.
///
/// # Safety
///
/// As [`sort`]; `counts` are those of this digit over all elements.
#[inline(never)]
unsafe fn pass<T: Pod + Send + Sync>(
    n: usize,
    shares: usize,
    digit: Digit,
    counts: Option<&mut Counts>,
    read: impl Fn(usize) -> T + Copy + Send + Sync,
    key: impl Fn(&T) -> u64 + Copy + Send + Sync,
    target: impl Target<T>,
) {
    let mut own = Vec::new();
    let places = match counts {
        Some(counts) => std::slice::from_mut(counts),
        None => {
            own.resize(shares, [0; BUCKETS]);
            each_share(&mut own, move |i, counts| {
                count(share(n, shares, i), [digit], [counts], move |i| {
                    key(&read(i))
                });
            });
            &mut own
        }
    };
    scan(places);
    each_share(places, move |i, places| {
        // SAFETY: places are the scanned counts of these elements, so each is handed out once and is below `n`.
        unsafe { scatter(share(n, shares, i), digit, places, read, key, target) }
    });
}

/// Moves the elements of one share. All it needs comes by value: through references, the compiler would have to load it
/// anew after every write to `target`.
///
/// # Safety
///
/// As [`sort`]; `places` are those of the elements in `range`.
#[inline(always)]
unsafe fn scatter<T: Pod>(
    range: Range<usize>,
    digit: Digit,
    places: &mut Counts,
    read: impl Fn(usize) -> T,
    key: impl Fn(&T) -> u64,
    target: impl Target<T>,
) {
    for i in range {
        let element = read(i);
        let place = &mut places[digit.of(key(&element))];
        // SAFETY: as the caller says.
        unsafe { target.write(*place as usize, element) };
        *place += 1;
    }
}

/// Calls `work` on the counts of each share, on as many threads.
fn each_share(counts: &mut [Counts], work: impl Fn(usize, &mut Counts) + Send + Sync) {
    match counts {
        [counts] => work(0, counts),
        _ => counts
            .par_iter_mut()
            .enumerate()
            .for_each(|(i, counts)| work(i, counts)),
    }
}

/// Exclusive prefix sum, in place, digit by digit and within a digit share by share.
fn scan(counts: &mut [Counts]) {
    let mut sum = 0;
    for value in 0..BUCKETS {
        for share in &mut *counts {
            sum += std::mem::replace(&mut share[value], sum);
        }
    }
}

/// The counts of every digit, in one sweep over the keys for every four.
fn count_all(n: usize, digits: &[Digit], key: impl Fn(usize) -> u64 + Copy) -> Vec<Counts> {
    let mut counts = vec![[0; BUCKETS]; digits.len()];
    for (digits, counts) in digits.chunks(4).zip(counts.chunks_mut(4)) {
        match (digits, counts) {
            (&[d], [i]) => count(0..n, [d], [i], key),
            (&[d, e], [i, j]) => count(0..n, [d, e], [i, j], key),
            (&[d, e, f], [i, j, k]) => count(0..n, [d, e, f], [i, j, k], key),
            (&[d, e, f, g], [i, j, k, l]) => count(0..n, [d, e, f, g], [i, j, k, l], key),
            _ => {}
        }
    }
    counts
}

/// Counts `D` digits: few, and their number known to the compiler, so that all is in registers.
#[inline(always)]
fn count<const D: usize>(
    range: Range<usize>,
    digits: [Digit; D],
    counts: [&mut Counts; D],
    key: impl Fn(usize) -> u64,
) {
    for i in range {
        let key = key(i);
        for d in 0..D {
            counts[d][digits[d].of(key)] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_covers_what_varies_with_few_digits() {
        let shifts = |varying| {
            plan(varying)
                .iter()
                .map(|digit| digit.shift)
                .collect::<Vec<_>>()
        };
        assert_eq!(shifts(0), []);
        assert_eq!(shifts(0b100), [2]);
        assert_eq!(shifts(1 | 1 << 63), [0, 63]);
        assert_eq!(shifts(0x000f_f000), [12]);
        assert_eq!(shifts(0x3fff_ffff), [0, 8, 16, 24]);
        assert_eq!(shifts(u64::MAX).len(), 8);
        assert_eq!(shifts(0x0100_0080_0000_0001), [0, 39, 56]);
    }

    #[test]
    fn sorts_by_any_number_of_digits_and_shares() {
        for bits in [1, 8, 9, 16, 17, 30, 64] {
            let key = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits);
            let keys: Vec<u64> = (0..5000).map(key).collect();
            let mut expected = keys.clone();
            expected.sort();
            for shares in [1, 3] {
                let mut got = keys.clone();
                let place = Array::new(&mut got);
                // SAFETY: `got` is read and written through this pointer alone.
                let done = unsafe {
                    let read = move |i| place.read(i);
                    sort(
                        5000,
                        &plan(u64::MAX >> (64 - bits)),
                        shares,
                        &mut Default::default(),
                        read,
                        |&k| k,
                        place,
                    )
                };
                assert!(done.is_ok());
                assert_eq!(got, expected, "{bits} bits, {shares} shares");
            }
        }
    }
}
