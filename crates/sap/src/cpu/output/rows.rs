//! Sorts the pairs of one bucket in cache.

use crate::Pair;
use crate::cpu::lanes::{Job, LANES, Lanes, run_best};
use crate::cpu::small_sort::{add_up, insertion_sort};
use crate::cpu::tuning::{COUNTED_ROW, GROUP, INSERTED_ROW, SPARSE};
use std::collections::TryReserveError;

/// What one thread sorts buckets with.
#[derive(Default)]
pub(super) struct RowSorter {
    ends: Vec<u32>,
    codes: Vec<u64>,
    seconds: Vec<u32>,
    groups: Groups,
}

impl RowSorter {
    /// Sorts pairs whose `a` lies in `first..first + range`: counted by `a`, then each `a`'s `b`s
    /// sorted, all at once where they are few. In place where they are very few, or memory is
    /// refused.
    pub(super) fn sort(&mut self, pairs: &mut [Pair], first: u32, range: usize) {
        if range > 4 * pairs.len() || self.sort_counted(pairs, first, range).is_err() {
            pairs.sort_unstable_by_key(|pair| pair.code());
        }
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
        let few = add_up(ends);
        if few && pairs.len() < SPARSE * range {
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
            ends,
            seconds,
            pairs,
        });
        Ok(())
    }
}

/// Makes a list that long; its elements need not stay.
fn resize<T: Clone + Default>(list: &mut Vec<T>, len: usize) -> Result<(), TryReserveError> {
    list.try_reserve(len.saturating_sub(list.len()))?;
    list.resize(len, T::default());
    Ok(())
}

/// Pairs by `a`, each `a`'s `b`s to be put in order.
struct RowsJob<'a> {
    groups: &'a mut Groups,
    first: u32,
    /// Where each `a`'s end.
    ends: &'a [u32],
    seconds: &'a mut [u32],
    pairs: &'a mut [Pair],
}

impl Job for RowsJob<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let mut start = 0;
        for (a, &end) in (self.first..).zip(self.ends) {
            let row = std::mem::replace(&mut start, end as usize)..end as usize;
            let (seconds, pairs) = (&mut self.seconds[row.clone()], &mut self.pairs[row]);
            match seconds.len() {
                0 => {}
                1..INSERTED_ROW => {
                    // By insertion.
                    in_place(a, seconds, pairs);
                }
                INSERTED_ROW..COUNTED_ROW => by_counting(a, seconds, pairs),
                _ => self.groups.sort(a, seconds, pairs),
            }
        }
    }
}

/// Puts a row in order. All `b` differ, so the rank of each is the number of smaller ones: no
/// branch depends on them.
#[inline(always)]
fn by_counting(a: u32, seconds: &[u32], pairs: &mut [Pair]) {
    for some in seconds.chunks(LANES) {
        // Indices have 31 bits; signed numbers are compared by one instruction.
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

/// Puts long rows in order: first into groups of even ranges, some [`GROUP`] pairs each.
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
        let wanted = (row.len() / GROUP) as u32;
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
        add_up(ends);
        for &b in &*row {
            let end = &mut ends[group(b)];
            seconds[*end as usize] = b;
            *end += 1;
        }
        let mut start = 0;
        for &end in &*ends {
            let range = std::mem::replace(&mut start, end as usize)..end as usize;
            let (seconds, pairs) = (&mut seconds[range.clone()], &mut pairs[range]);
            if seconds.len() < COUNTED_ROW {
                by_counting(a, seconds, pairs);
            } else {
                in_place(a, seconds, pairs);
            }
        }
    }
}

/// Puts a row in order that is dense in the range of its `b`s, which all differ: a bit for each of
/// them in a set that is read from end to end.
fn by_bits(a: u32, min: u32, row: &[u32], pairs: &mut [Pair], bits: &mut [u64]) {
    for &b in row {
        let at = b - min;
        bits[(at / u64::BITS) as usize] |= 1 << (at % u64::BITS);
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

/// Sorts a row.
fn in_place(a: u32, seconds: &mut [u32], pairs: &mut [Pair]) {
    seconds.sort_unstable();
    for (pair, &b) in pairs.iter_mut().zip(&*seconds) {
        *pair = Pair { a, b };
    }
}
