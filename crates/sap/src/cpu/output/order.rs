//! Sorts pairs: partitions them by ranges of `a`, then sorts each range in cache.

use super::collect::SpareBlocks;
use super::rows::RowSorter;
use crate::cpu::scatter::{Positions, Target, cut};
use crate::cpu::tuning::{LARGE_BUCKET, MAX_BUCKETS, PAIR_BUCKET, SERIAL_PAIRS};
use crate::threads::on_threads;
use crate::try_alloc::{self, zeros};
use crate::{Pair, Result};
use rayon::prelude::*;

/// Sorts the pairs of all blocks by `(a, b)` into `sorted`. Each `a` is below `boxes`. O(pairs),
/// plus small sorts.
pub(in crate::cpu) fn order(
    blocks: Vec<Vec<Pair>>,
    boxes: usize,
    sorted: &mut Vec<Pair>,
    spare: &SpareBlocks,
) -> Result<()> {
    let count: usize = blocks.iter().map(Vec::len).sum();
    if count > SERIAL_PAIRS {
        return on_threads(|| by_buckets(blocks, count, boxes, sorted, spare));
    }
    sorted.clear();
    try_alloc::reserve(sorted, count)?;
    for block in blocks {
        sorted.extend_from_slice(&block);
        spare.give(block);
    }
    RowSorter::default().sort(sorted, 0, boxes);
    Ok(())
}

/// Sorts `count` pairs by a partition into buckets.
fn by_buckets(
    blocks: Vec<Vec<Pair>>,
    count: usize,
    boxes: usize,
    sorted: &mut Vec<Pair>,
    spare: &SpareBlocks,
) -> Result<()> {
    // The bucket of a pair is the high bits of `a`.
    let buckets = (count as u64).div_ceil(PAIR_BUCKET).clamp(1, MAX_BUCKETS);
    let shift = (boxes as u64)
        .div_ceil(buckets)
        .next_power_of_two()
        .trailing_zeros();
    let buckets = (boxes >> shift) + 1;
    let bucket = |pair: &Pair| (pair.a >> shift) as usize;
    let mut counts = zeros::<u32>(blocks.len() * buckets)?;
    let histogram = |(counts, block): (&mut [u32], &Vec<Pair>)| {
        block.iter().for_each(|pair| counts[bucket(pair)] += 1);
    };
    counts
        .par_chunks_mut(buckets)
        .zip(&blocks)
        .for_each(histogram);
    let Positions { mut starts, ends } = Positions::new(&counts, buckets)?;
    let target = Target::reserve(sorted, count)?;
    let write = |(block, starts): (Vec<Pair>, &mut [usize])| {
        for pair in &block {
            // SAFETY: the positions of all blocks and buckets differ and are below `count`, which
            // was reserved, because each block writes to a bucket as many pairs as it counted
            // there.
            unsafe { target.write(&mut starts[bucket(pair)], *pair) };
        }
        spare.give(block);
    };
    blocks
        .into_par_iter()
        .zip(starts.par_chunks_mut(buckets))
        .for_each(write);
    // SAFETY: `count` pairs were reserved, and each of them was written above.
    unsafe { sorted.set_len(count) };
    let mut start = 0;
    let lengths = ends
        .iter()
        .map(|&end| end - std::mem::replace(&mut start, end));
    let slices = cut(sorted, lengths);
    let first = |bucket: usize| (bucket << shift) as u32;
    let sort = |sorter: &mut RowSorter, (bucket, slice): (usize, &mut [Pair])| {
        if slice.len() as u64 > LARGE_BUCKET {
            slice.par_sort_unstable_by_key(|pair| pair.code());
        } else {
            sorter.sort(slice, first(bucket), 1 << shift);
        }
    };
    slices
        .into_par_iter()
        .enumerate()
        .for_each_init(RowSorter::default, sort);
    Ok(())
}

/// Returns the pairs of a search in order. Each `a` is below `boxes`.
#[cfg(test)]
pub(in crate::cpu) fn sorted_pairs(
    found: Result<super::collect::Found>,
    boxes: usize,
) -> Vec<Pair> {
    let found = found.and_then(super::collect::Found::stored);
    let blocks = found.expect("memory for the search").blocks;
    let mut sorted = Vec::new();
    order(blocks, boxes, &mut sorted, &SpareBlocks::default()).expect("memory for the pairs");
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn blocks_of_any_size_are_sorted() {
        let spare = SpareBlocks::default();
        for (count, boxes, skew) in [
            (0, 5, 1),
            (1, 2, 1),
            (3000, 10, 1),
            (100_000, 1_000_000, 1),
            (100_000, 300, 1),
            (700_000, 1_000_000, 1 << 20),
        ] {
            let mut random = Random(3);
            let mut pair = |_| Pair {
                a: random.below(boxes) / skew,
                b: random.bits() >> 1,
            };
            let mut expected: Vec<Pair> = (0..count).map(&mut pair).collect();
            let blocks = expected.chunks(10_000).map(<[Pair]>::to_vec).collect();
            let mut sorted = vec![Pair::default(); 7];
            assert!(order(blocks, boxes as usize, &mut sorted, &spare).is_ok());
            expected.sort_unstable();
            assert!(sorted == expected, "{count} {boxes}");
        }
    }
}
