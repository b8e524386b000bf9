//! Sorts many pairs on all threads: divides them into parts by the topmost digit, and sorts each
//! part in the cache of one thread.
//!
//! The division is a counting sort in two parallel passes over chunks of the input. The first pass
//! counts the digits of each chunk, the second moves the pairs of each chunk behind those of the
//! chunks before, so it is stable. Sorting by the most significant digit first, as Stehle and
//! Jacobsen do on GPUs (2017), makes parts that cost no memory bandwidth.

use super::scratch::try_with_capacity;
use super::tasks::run;
use super::tuning::CHUNKS_PER_THREAD;
use crate::Result;
use bytemuck::Pod;

/// The values of a digit: a byte, the topmost of the key.
const DIGITS: usize = 256;

/// The slots that the pairs move to. Every slot is written once, by the thread that counted it.
struct Slots<T>(*mut T);

// SAFETY: the threads that share it write to disjoint slots.
unsafe impl<T: Send> Sync for Slots<T> {}

/// Sorts pairs by `bits` of the key, whose topmost bit differs between keys. `sort_part` sorts the
/// pairs of one part.
pub(super) fn sort<K: Pod + Send + Sync, V: Pod + Send + Sync>(
    keys: &mut [K],
    values: &mut [V],
    bits: impl Fn(K) -> u64 + Copy + Send + Sync,
    sort_part: impl Fn(&mut [(K, V)]) + Sync,
) -> Result<()> {
    let n = keys.len();
    let digit = |key: K| (bits(key) >> 56) as usize;
    let chunk = n
        .div_ceil(CHUNKS_PER_THREAD * rayon::current_num_threads())
        .max(1);
    let mut moved: Vec<(K, V)> = try_with_capacity(n)?;

    let mut starts = vec![[0; DIGITS]; n.div_ceil(chunk)];
    run(keys.chunks(chunk).zip(&mut starts).map(|(keys, counts)| {
        || {
            let mut own = [0; DIGITS];
            keys.iter().for_each(|&key| own[digit(key)] += 1);
            *counts = own;
        }
    }));
    let mut parts = [0; DIGITS];
    let mut before = 0;
    for d in 0..DIGITS {
        let first = before;
        for counts in &mut starts {
            (counts[d], before) = (before, before + counts[d]);
        }
        parts[d] = before - first;
    }

    let slots = Slots(moved.as_mut_ptr());
    let slots = &slots;
    let chunks = keys.chunks(chunk).zip(values.chunks(chunk)).zip(starts);
    run(chunks.map(|((keys, values), mut next)| {
        move || {
            for (&key, &value) in keys.iter().zip(values) {
                let slot = &mut next[digit(key)];
                // SAFETY: the counts above give each pair of each chunk a slot of its own below n,
                // which is the capacity.
                unsafe { slots.0.add(*slot).write((key, value)) };
                *slot += 1;
            }
        }
    }));
    // SAFETY: all n slots are written, because the lengths of the parts add up to n.
    unsafe { moved.set_len(n) };

    let mut rest = moved.as_mut_slice();
    let mut slices = Vec::with_capacity(DIGITS);
    for length in parts {
        let (part, behind) = rest.split_at_mut(length);
        slices.push(part);
        rest = behind;
    }
    let sort_part = &sort_part;
    run(slices.into_iter().map(|part| move || sort_part(part)));

    let chunks = keys.chunks_mut(chunk).zip(values.chunks_mut(chunk));
    run(chunks
        .zip(moved.chunks(chunk))
        .map(|((keys, values), moved)| {
            move || {
                let pairs = keys.iter_mut().zip(values).zip(moved);
                pairs.for_each(|((key, value), &pair)| (*key, *value) = pair);
            }
        }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `n` unordered keys of `spread` different values.
    fn keys(n: usize, spread: u32) -> Vec<u32> {
        let key = |i: usize| (i as u32).wrapping_mul(0x9e37_79b1).rotate_left(13) % spread;
        (0..n).map(key).collect()
    }

    #[test]
    fn pairs_are_sorted_as_by_std_on_any_number_of_threads() {
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
