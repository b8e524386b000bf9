//! Many pairs on all threads: dealt to parts by the topmost digit, and each part sorted in the cache of one thread.
//!
//! The dealing is a counting sort in two parallel passes over stretches of the input, so that it is stable: count each
//! stretch's digits, then move each stretch's pairs behind those of the stretches before. Most-significant digit first, as in
//! Stehle and Jacobsen 2017 on GPUs; the parts then cost no memory bandwidth.

use super::scratch::with_room;
use crate::Result;
use bytemuck::Pod;
use rayon::prelude::*;

const DIGITS: usize = 256;
/// Stretches for each thread, so that the last to finish is not far behind.
const STRETCHES: usize = 4;

/// Where the pairs go: every place is written once, by whoever counted it.
struct Places<T>(*mut T);

// SAFETY: the threads that share it write to places of their own.
unsafe impl<T: Send> Sync for Places<T> {}

/// Sorts pairs by `bits` of the key, of which the topmost differ; `sort_part` sorts those of one part.
pub(super) fn sort<K: Pod + Send + Sync, V: Pod + Send + Sync>(
    keys: &mut [K],
    values: &mut [V],
    bits: impl Fn(K) -> u64 + Copy + Send + Sync,
    sort_part: impl Fn(&mut [(K, V)]) + Send + Sync,
) -> Result<()> {
    let n = keys.len();
    let digit = |key: K| (bits(key) >> 56) as usize;
    let stretch = n.div_ceil(STRETCHES * rayon::current_num_threads()).max(1);
    let mut moved: Vec<(K, V)> = with_room(n)?;

    let counted = keys.par_chunks(stretch).map(|keys| {
        let mut counts = [0; DIGITS];
        keys.iter().for_each(|&key| counts[digit(key)] += 1);
        counts
    });
    let mut starts: Vec<[usize; DIGITS]> = counted.collect();
    let mut parts = [0; DIGITS];
    let mut before = 0;
    for d in 0..DIGITS {
        let first = before;
        for counts in &mut starts {
            (counts[d], before) = (before, before + counts[d]);
        }
        parts[d] = before - first;
    }

    let places = Places(moved.as_mut_ptr());
    let stretches = keys.par_chunks(stretch).zip(values.par_chunks(stretch));
    stretches
        .zip(starts)
        .for_each(|((keys, values), mut next)| {
            let places = &places;
            for (&key, &value) in keys.iter().zip(values) {
                let place = &mut next[digit(key)];
                // SAFETY: the counts above give each pair of each stretch a place of its own below n, which is the capacity.
                unsafe { places.0.add(*place).write((key, value)) };
                *place += 1;
            }
        });
    // SAFETY: all n places are written: the parts' lengths add up to n.
    unsafe { moved.set_len(n) };

    let mut rest = moved.as_mut_slice();
    let mut slices = Vec::with_capacity(DIGITS);
    for length in parts {
        let (part, behind) = rest.split_at_mut(length);
        slices.push(part);
        rest = behind;
    }
    slices.into_par_iter().for_each(sort_part);

    let pairs = keys.par_iter_mut().zip(values);
    pairs
        .zip(moved)
        .for_each(|((key, value), pair)| (*key, *value) = pair);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `n` keys, each of `spread` values, in no order.
    fn keys(n: usize, spread: u32) -> Vec<u32> {
        let key = |i: usize| (i as u32).wrapping_mul(0x9e37_79b1).rotate_left(13) % spread;
        (0..n).map(key).collect()
    }

    #[test]
    fn pairs_are_sorted_as_std_does_whatever_the_threads() {
        for threads in [1, 2, 3, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let pool = pool.build().expect("threads");
            for n in [0, 1, 2, 255, 1000, 40_000] {
                for spread in [1, 2, 300, u32::MAX] {
                    let before = keys(n, spread);
                    let shift = before.iter().fold(0, |all, key| all | key).leading_zeros();
                    let mut expected: Vec<(u32, u32)> = before.iter().copied().zip(0..).collect();
                    expected.sort_by_key(|pair| pair.0);
                    let (mut keys, mut values) = (before, (0..n as u32).collect::<Vec<_>>());
                    let bits = |key: u32| u64::from(key) << 32 << shift.min(31);
                    let sort_part = |part: &mut [(u32, u32)]| part.sort_by_key(|pair| pair.0);
                    pool.install(|| sort(&mut keys, &mut values, bits, sort_part))
                        .expect("memory");
                    let got: Vec<_> = keys.into_iter().zip(values).collect();
                    assert!(got == expected, "{n} keys of {spread}, {threads} threads");
                }
            }
        }
    }
}
