//! Sorts pairs. Where threads and boxes are few and pairs many, they are counted and written by
//! row; else they are partitioned by ranges of `a`, each of which is sorted in cache.

use super::collect::SpareBlocks;
use super::rows::RowSorter;
use crate::cpu::scatter::{Positions, Target, cut};
use crate::cpu::tuning::{
    LARGE_BUCKET, MAX_BUCKETS, MAX_ROW_BOXES, MAX_ROW_THREADS, PAIR_BUCKET, SERIAL_PAIRS,
    SPARSE_ROWS,
};
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
    sorted.clear();
    if count > SERIAL_PAIRS {
        try_alloc::reserve_ahead(sorted, count)?;
        return on_threads(|| match RowMemory::new(count, boxes) {
            Some(memory) => by_rows(blocks, memory, count, boxes, sorted, spare),
            None => by_buckets(blocks, count, boxes, sorted, spare),
        });
    }
    try_alloc::reserve(sorted, count)?;
    for block in blocks {
        sorted.extend_from_slice(&block);
        spare.give(block);
    }
    RowSorter::default().sort(sorted, 0, boxes);
    Ok(())
}

/// What a sort by rows needs beside the pairs.
struct RowMemory {
    /// The number of pairs of each row of each thread; then the position of the next, at last the
    /// end.
    ends: Vec<u32>,
    /// The `b`s of the rows: capacity for all.
    seconds: Vec<u32>,
}

impl RowMemory {
    /// Returns none if threads or boxes are too many, pairs too few, rows so long that threads are
    /// to share one, or memory is refused.
    fn new(count: usize, boxes: usize) -> Option<Self> {
        let threads = rayon::current_num_threads();
        let are_few = threads <= MAX_ROW_THREADS && boxes <= MAX_ROW_BOXES;
        // The products are of few boxes, so that they fit in 32 bits.
        if !are_few || count < SPARSE_ROWS * boxes || count > PAIR_BUCKET as usize * boxes {
            return None;
        }
        u32::try_from(count).ok()?;
        let mut seconds = Vec::new();
        try_alloc::reserve(&mut seconds, count).ok()?;
        let ends = zeros(threads * boxes).ok()?;
        Some(Self { ends, seconds })
    }
}

/// Sorts `count` pairs by row: each thread counts those of its part of the blocks, then writes each
/// `b` to its row.
fn by_rows(
    blocks: Vec<Vec<Pair>>,
    memory: RowMemory,
    count: usize,
    boxes: usize,
    sorted: &mut Vec<Pair>,
    spare: &SpareBlocks,
) -> Result<()> {
    let RowMemory {
        mut ends,
        mut seconds,
    } = memory;
    let part = blocks.len().div_ceil(ends.len() / boxes);
    ends.par_chunks_mut(boxes)
        .zip(blocks.par_chunks(part))
        .for_each(|(counts, blocks)| {
            for block in blocks {
                block.iter().for_each(|pair| counts[pair.a as usize] += 1);
            }
        });
    let mut before = 0;
    for row in 0..boxes {
        for index in (row..ends.len()).step_by(boxes) {
            before += std::mem::replace(&mut ends[index], before);
        }
    }
    sorted.resize(count, Pair::default());
    let target = Target::reserve(&mut seconds, count)?;
    ends.par_chunks_mut(boxes)
        .zip(blocks.par_chunks(part))
        .for_each(|(ends, blocks)| {
            for block in blocks {
                for pair in block {
                    let end = &mut ends[pair.a as usize];
                    let mut at = *end as usize;
                    // SAFETY: the positions of all parts and rows differ and are below `count`,
                    // which was reserved, because each part writes to a row as many `b`s as it
                    // counted there.
                    unsafe { target.write(&mut at, pair.b) };
                    *end = at as u32;
                }
            }
        });
    blocks.into_iter().for_each(|block| spare.give(block));
    // SAFETY: as many were reserved, and each of them was written above.
    unsafe { seconds.set_len(count) };
    // The ends of the last part are those of the rows.
    sort_in_tasks(sorted, &mut seconds, &ends[ends.len() - boxes..])
}

/// Sorts the `b`s of each row and writes its pairs. A task has about a bucket of pairs.
fn sort_in_tasks(mut pairs: &mut [Pair], mut seconds: &mut [u32], ends: &[u32]) -> Result<()> {
    let mut tasks = Vec::new();
    let (mut row, mut start) = (0, 0_u32);
    while row < ends.len() {
        let full = start.saturating_add(PAIR_BUCKET as u32);
        let count = ends[row..].partition_point(|&end| end < full) + 1;
        let rows = row..(row + count).min(ends.len());
        let end = ends[rows.end - 1];
        let (some_pairs, more_pairs) = pairs.split_at_mut((end - start) as usize);
        let (some_seconds, more_seconds) = seconds.split_at_mut((end - start) as usize);
        let task = (some_pairs, some_seconds, row as u32, &ends[rows.clone()]);
        try_alloc::push(&mut tasks, task)?;
        (pairs, seconds, row, start) = (more_pairs, more_seconds, rows.end, end);
    }
    tasks.into_par_iter().for_each_init(
        RowSorter::default,
        |sorter, (pairs, seconds, first, ends)| {
            sorter.sort_rows(pairs, seconds, first, ends);
        },
    );
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
        // By row where threads and boxes are few and rows neither short nor long, else by bucket.
        for threads in [1, 3, MAX_ROW_THREADS + 1] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let pool = pool.expect("threads");
            for (count, boxes, skew) in [
                (0, 5, 1),
                (1, 2, 1),
                (3000, 10, 1),
                (100_000, 1_000_000, 1),
                (100_000, 300, 1),
                (100_000, 20_000, 1),
                (17_000, 3_000, 1),
                (200_000, 30, 10),
                (100_000, 20_000, 50),
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
                let done = pool.install(|| order(blocks, boxes as usize, &mut sorted, &spare));
                assert!(done.is_ok());
                expected.sort_unstable();
                assert!(sorted == expected, "{threads} {count} {boxes}");
            }
        }
    }
}
