//! Sorts the pairs of a bucket, or of some rows, in cache. A *row* is all pairs of one `a`.

use crate::Pair;
use crate::cpu::lanes::{Job, LANES, Lanes, run_best};
use crate::cpu::small_sort::{insertion_sort, prefix_sums};
use crate::cpu::tuning::{MIN_COUNTED_ROW, MIN_GROUPED_ROW, ROW_GROUP, SPARSE_ROWS};
use std::collections::TryReserveError;

/// Sorts buckets on one thread, with memory that is reused.
#[derive(Default)]
pub(super) struct RowSorter {
    /// The number of pairs of each row; then the position of its next pair, at last its end.
    ends: Vec<u32>,
    /// The pairs of sparse rows as numbers.
    codes: Vec<u64>,
    /// The `b` of each pair, by row.
    seconds: Vec<u32>,
    groups: Groups,
}

impl RowSorter {
    /// Sorts pairs whose `a` is in `first..first + range`: counts them by `a`, then sorts each row.
    /// Very few pairs are sorted in place, as are all if memory is refused.
    pub(super) fn sort(&mut self, pairs: &mut [Pair], first: u32, range: usize) {
        if range > 4 * pairs.len() || self.sort_counted(pairs, first, range).is_err() {
            pairs.sort_unstable_by_key(|pair| pair.code());
        }
    }

    /// Sorts the `b`s of each row from `first` on, which are together, and writes the pairs. The
    /// rows are part of a longer list, where `ends` are their ends.
    pub(super) fn sort_rows(
        &mut self,
        pairs: &mut [Pair],
        seconds: &mut [u32],
        first: u32,
        ends: &[u32],
    ) {
        run_best(RowsJob {
            groups: &mut self.groups,
            first,
            start: ends.last().map_or(0, |end| end - pairs.len() as u32),
            ends,
            seconds,
            pairs,
        });
    }

    fn sort_counted(
        &mut self,
        pairs: &mut [Pair],
        first: u32,
        range: usize,
    ) -> Result<(), TryReserveError> {
        let Self {
            ends,
            codes,
            seconds,
            groups,
        } = self;
        ends.clear();
        resize(ends, range)?;
        pairs
            .iter()
            .for_each(|pair| ends[(pair.a - first) as usize] += 1);
        let are_small = prefix_sums(ends);
        if are_small && pairs.len() < SPARSE_ROWS * range {
            resize(codes, pairs.len())?;
            for pair in pairs.iter() {
                let end = &mut ends[(pair.a - first) as usize];
                codes[*end as usize] = pair.code();
                *end += 1;
            }
            insertion_sort(codes);
            for (pair, &code) in pairs.iter_mut().zip(&*codes) {
                let (a, b) = ((code >> 32) as u32, code as u32);
                *pair = Pair { a, b };
            }
            return Ok(());
        }
        resize(seconds, pairs.len())?;
        for pair in pairs.iter() {
            let end = &mut ends[(pair.a - first) as usize];
            seconds[*end as usize] = pair.b;
            *end += 1;
        }
        run_best(RowsJob {
            groups,
            first,
            start: 0,
            ends,
            seconds,
            pairs,
        });
        Ok(())
    }
}

/// Resizes a list. Its elements are unspecified.
fn resize<T: Clone + Default>(list: &mut Vec<T>, len: usize) -> Result<(), TryReserveError> {
    list.try_reserve(len.saturating_sub(list.len()))?;
    list.resize(len, T::default());
    Ok(())
}

/// Sorts the `b`s of each row and writes the pairs.
struct RowsJob<'a> {
    groups: &'a mut Groups,
    first: u32,
    /// The start of the first row.
    start: u32,
    /// The end of each row.
    ends: &'a [u32],
    seconds: &'a mut [u32],
    pairs: &'a mut [Pair],
}

impl Job for RowsJob<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let mut start = 0;
        for (a, &end) in (self.first..).zip(self.ends) {
            let end = (end - self.start) as usize;
            let row = std::mem::replace(&mut start, end)..end;
            let (seconds, pairs) = (&mut self.seconds[row.clone()], &mut self.pairs[row]);
            match seconds.len() {
                0 => {}
                1..MIN_COUNTED_ROW => in_place(a, seconds, pairs),
                MIN_COUNTED_ROW..MIN_GROUPED_ROW => by_counting(a, seconds, pairs),
                _ => self.groups.sort(a, seconds, pairs),
            }
        }
    }
}

/// Sorts a row by counting. All `b` differ, so the rank of each is the number of smaller ones, and
/// no branch depends on their values.
#[inline(always)]
fn by_counting(a: u32, seconds: &[u32], pairs: &mut [Pair]) {
    for some in seconds.chunks(LANES) {
        // Indices have 31 bits. Signed numbers are compared by one instruction.
        let mut eight = [0; LANES];
        for (to, &b) in eight.iter_mut().zip(some) {
            *to = b as i32;
        }
        let mut smaller = [0_u32; LANES];
        for &other in seconds {
            for (count, b) in smaller.iter_mut().zip(eight) {
                *count += u32::from((other as i32) < b);
            }
        }
        for (&b, rank) in some.iter().zip(smaller) {
            pairs[rank as usize] = Pair { a, b };
        }
    }
}

/// Sorts long rows: dense ones by bits, others first into groups of even ranges of `b`, about
/// [`ROW_GROUP`] pairs each.
#[derive(Default)]
struct Groups {
    ends: Vec<u32>,
    seconds: Vec<u32>,
    bits: Vec<u64>,
}

impl Groups {
    #[inline(always)]
    fn sort(&mut self, a: u32, row: &mut [u32], pairs: &mut [Pair]) {
        let (min, max) = row
            .iter()
            .fold((u32::MAX, 0), |(min, max), &b| (min.min(b), max.max(b)));
        let words = ((max - min) / u64::BITS + 1) as usize;
        if words <= row.len() && resize(&mut self.bits, words).is_ok() {
            return by_bits(a, min, row, pairs, &mut self.bits);
        }
        let wanted = (row.len() / ROW_GROUP) as u32;
        let shift = ((max - min) / wanted)
            .checked_ilog2()
            .map_or(0, |bits| bits + 1);
        let group = |b: u32| ((b - min) >> shift) as usize;
        let Self { ends, seconds, .. } = self;
        ends.clear();
        if resize(ends, group(max) + 1).is_err() || resize(seconds, row.len()).is_err() {
            return in_place(a, row, pairs);
        }
        row.iter().for_each(|&b| ends[group(b)] += 1);
        prefix_sums(ends);
        for &b in &*row {
            let end = &mut ends[group(b)];
            seconds[*end as usize] = b;
            *end += 1;
        }
        let mut start = 0;
        for &end in &*ends {
            let range = std::mem::replace(&mut start, end as usize)..end as usize;
            let (seconds, pairs) = (&mut seconds[range.clone()], &mut pairs[range]);
            if seconds.len() < MIN_GROUPED_ROW {
                by_counting(a, seconds, pairs);
            } else {
                in_place(a, seconds, pairs);
            }
        }
    }
}

/// Sorts a row that is dense in the range of its `b`s, which all differ: sets a bit for each of
/// them, then reads the bits in order.
fn by_bits(a: u32, min: u32, row: &[u32], pairs: &mut [Pair], bits: &mut [u64]) {
    for &b in row {
        let offset = b - min;
        bits[(offset / u64::BITS) as usize] |= 1 << (offset % u64::BITS);
    }
    let mut to = pairs.iter_mut();
    for (word, first) in bits.iter_mut().zip((min..).step_by(u64::BITS as usize)) {
        let mut left = std::mem::take(word);
        while left != 0
            && let Some(pair) = to.next()
        {
            let b = first + left.trailing_zeros();
            *pair = Pair { a, b };
            left &= left - 1;
        }
    }
}

/// Sorts a row by comparison.
fn in_place(a: u32, seconds: &mut [u32], pairs: &mut [Pair]) {
    seconds.sort_unstable();
    for (pair, &b) in pairs.iter_mut().zip(&*seconds) {
        *pair = Pair { a, b };
    }
}
