//! Replaces pairs of the last list by those of this update, in place.
//!
//! The list is cut into parts. A part moves by the number of pairs that came before it less those
//! that went. Parts move at the same time: what a part writes over the end of its neighbour is
//! copied first. A part itself goes through a copy that stays in cache. So the list is read once
//! and written once, and nothing beside it is as long.

use super::changed::ChangedSet;
use crate::cpu::scatter::cut;
use crate::cpu::tuning::{PAIR_TASK, SPLICE_PART, SPLICE_RUN};
use crate::threads::in_pool;
use crate::{Pair, Result, try_alloc};
use rayon::prelude::*;
use std::ops::Range;

/// Returns the pairs that have a changed box, in order.
pub(in crate::cpu) fn pairs_of(changed: &ChangedSet, pairs: &[Pair]) -> Result<Vec<Pair>> {
    let of_part = |pairs: &[Pair]| {
        let mut found = Vec::new();
        for &pair in pairs.iter().filter(|pair| changed.has_either(pair)) {
            try_alloc::push(&mut found, pair)?;
        }
        Ok(found)
    };
    if pairs.len() <= PAIR_TASK || !in_pool() {
        return of_part(pairs);
    }
    let found: Result<Vec<_>> = pairs.par_chunks(PAIR_TASK).map(of_part).collect();
    try_alloc::concat(&found?)
}

/// Inserts the pairs `started` and removes the pairs `ended`, which the list has. All are in order.
/// An error leaves the list as it is. O(list).
pub(in crate::cpu) fn splice(
    pairs: &mut Vec<Pair>,
    started: &[Pair],
    ended: &[Pair],
) -> Result<()> {
    let (before, count) = (pairs.len(), pairs.len() + started.len() - ended.len());
    try_alloc::reserve_ahead(pairs, count)?;
    let parts = Parts::new(pairs, started, ended)?;
    let parallel = parts.starts.len() > SPLICE_RUN && in_pool();
    let runs = if parallel {
        parts.starts.len().div_ceil(SPLICE_RUN)
    } else {
        1
    };
    let mut copies = Vec::new();
    try_alloc::reserve(&mut copies, runs)?;
    for _ in 0..runs {
        let mut copy = Vec::new();
        try_alloc::reserve(&mut copy, parts.length.min(before))?;
        copies.push(copy);
    }
    // Nothing fails from here on.
    pairs.resize(before.max(count), Pair::default());
    let lengths = parts.all().map(|part| part.length_after());
    let outputs = cut(pairs, lengths);
    let mut tasks: Vec<_> = parts.all().zip(outputs).collect();
    let run = |(tasks, copy): (&mut [(Part, &mut [Pair])], &mut Vec<Pair>)| {
        for (part, output) in tasks {
            part.write(copy, output);
        }
    };
    if parallel {
        let tasks = tasks.par_chunks_mut(SPLICE_RUN).zip(&mut copies);
        tasks.for_each(run);
    } else if let Some(copy) = copies.first_mut() {
        run((&mut tasks, copy));
    }
    pairs.truncate(count);
    Ok(())
}

/// Where a part begins.
#[derive(Clone, Copy)]
struct Start {
    /// Its first pair in the list.
    pair: usize,
    /// The numbers of pairs before that one that started and that ended.
    started: usize,
    ended: usize,
    /// Where its border begins in the copy of all borders.
    border: usize,
}

impl Start {
    /// Returns by how much the pairs here move.
    const fn shift(&self) -> isize {
        self.started as isize - self.ended as isize
    }

    /// Returns the pairs next to the border, of a list of `len`, that the part on its other side
    /// writes over.
    fn overwritten(&self, len: usize) -> Range<usize> {
        let moved = self.pair.saturating_add_signed(self.shift()).min(len);
        self.pair.min(moved)..self.pair.max(moved)
    }
}

/// The parts of a list.
struct Parts<'a> {
    started: &'a [Pair],
    ended: &'a [Pair],
    /// The number of pairs of all parts but the last.
    length: usize,
    /// The start of each part, and the end of the list.
    starts: Vec<Start>,
    /// Copies of the pairs that the part on the other side of a border writes over.
    borders: Vec<Pair>,
}

impl<'a> Parts<'a> {
    fn new(pairs: &[Pair], started: &'a [Pair], ended: &'a [Pair]) -> Result<Self> {
        let mut parts = Self {
            started,
            ended,
            length: SPLICE_PART,
            starts: Vec::new(),
            borders: Vec::new(),
        };
        // No part may move beyond its neighbour. A single part has none.
        while !parts.cut(pairs)? {
            parts.length *= 2;
        }
        parts.copy_borders(pairs)?;
        Ok(parts)
    }

    /// Finds the parts. Returns false if one moves by more than its length.
    fn cut(&mut self, pairs: &[Pair]) -> Result<bool> {
        let count = pairs.len().div_ceil(self.length);
        self.starts.clear();
        try_alloc::reserve(&mut self.starts, count + 1)?;
        let mut border = 0;
        for pair in (0..pairs.len().max(1)).step_by(self.length) {
            let before = |list: &[Pair]| match pairs.get(pair) {
                Some(first) if pair > 0 => list.partition_point(|other| other < first),
                _ => 0,
            };
            let start = Start {
                pair,
                started: before(self.started),
                ended: before(self.ended),
                border,
            };
            if start.shift().unsigned_abs() > self.length {
                return Ok(false);
            }
            border += start.overwritten(pairs.len()).len();
            self.starts.push(start);
        }
        self.starts.push(Start {
            pair: pairs.len(),
            started: self.started.len(),
            ended: self.ended.len(),
            border,
        });
        Ok(true)
    }

    fn copy_borders(&mut self, pairs: &[Pair]) -> Result<()> {
        let total = self.starts.last().map_or(0, |end| end.border);
        try_alloc::reserve(&mut self.borders, total)?;
        for start in &self.starts[..self.starts.len() - 1] {
            let overwritten = start.overwritten(pairs.len());
            self.borders.extend_from_slice(&pairs[overwritten]);
        }
        Ok(())
    }

    fn all(&self) -> impl Iterator<Item = Part<'_>> {
        let last = self.starts.len().saturating_sub(2);
        self.starts.windows(2).enumerate().map(move |(i, ends)| {
            let [start, end] = [ends[0], ends[1]];
            let length = end.pair - start.pair;
            // Where pairs move to the right, they write over the head of the next part, else over
            // the tail of the one before.
            let [left, right] = [start.shift(), if i == last { 0 } else { end.shift() }];
            let head = length.min(left.max(0) as usize);
            let tail = (-right).max(0) as usize;
            Part {
                length,
                left,
                is_last: i == last,
                right: end.shift(),
                head: &self.borders[start.border..start.border + head],
                tail: &self.borders[end.border..end.border + tail],
                started: &self.started[start.started..end.started],
                ended: &self.ended[start.ended..end.ended],
            }
        })
    }
}

/// A part of the list, and what it needs to move.
struct Part<'a> {
    /// The number of its pairs.
    length: usize,
    /// By how much its first pair moves, and the one after its last.
    left: isize,
    right: isize,
    /// Whether nothing follows it in the list.
    is_last: bool,
    /// Copies of its first and its last pairs, which its neighbours write over.
    head: &'a [Pair],
    tail: &'a [Pair],
    started: &'a [Pair],
    ended: &'a [Pair],
}

impl Part<'_> {
    /// Returns how many pairs of the list it covers when it has moved. The last part covers those
    /// that are cut off afterwards too.
    fn length_after(&self) -> usize {
        let right = if self.is_last {
            self.right.max(0)
        } else {
            self.right
        };
        self.length.saturating_add_signed(right - self.left)
    }

    /// Writes the part. `output` is what it covers when it has moved, and has all of its pairs but
    /// the head and the tail.
    fn write(&self, copy: &mut Vec<Pair>, output: &mut [Pair]) {
        if self.left == 0 && self.started.is_empty() && self.ended.is_empty() {
            return;
        }
        let from = (-self.left).max(0) as usize;
        let here = self.length - self.head.len() - self.tail.len();
        copy.clear();
        copy.extend_from_slice(self.head);
        copy.extend_from_slice(&output[from..from + here]);
        copy.extend_from_slice(self.tail);

        let (mut rest, mut to) = (&copy[..], output);
        let (mut started, mut ended) = (self.started, self.ended);
        let mut put = |pairs: &[Pair]| {
            let (here, after) = std::mem::take(&mut to).split_at_mut(pairs.len());
            here.copy_from_slice(pairs);
            to = after;
        };
        let step = self.length / (started.len() + ended.len()).max(1);
        loop {
            let starts = match (started.first(), ended.first()) {
                (None, None) => break,
                (Some(new), Some(old)) => new < old,
                (new, _) => new.is_some(),
            };
            let edits = if starts { &mut started } else { &mut ended };
            let (pair, others) = edits.split_at(1);
            *edits = others;
            let (same, after) = rest.split_at(position(rest, &pair[0], step));
            put(same);
            rest = after;
            if starts {
                put(pair);
            } else {
                rest = &rest[1..];
            }
        }
        put(rest);
    }
}

/// Returns the number of pairs before `pair`, by exponential search from the start, which is
/// expected to end near `step`.
fn position(pairs: &[Pair], pair: &Pair, step: usize) -> usize {
    let is_before = |other: &Pair| other.code() < pair.code();
    let (mut start, mut end) = (0, step + 1);
    while pairs.get(end - 1).is_some_and(is_before) {
        start = end;
        end *= 2;
    }
    start + pairs[start..pairs.len().min(end)].partition_point(is_before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::collections::BTreeSet;

    /// Returns pairs in order, a share of all codes below `n`.
    fn some(n: u32, share: u32, seed: u32) -> BTreeSet<Pair> {
        let mut random = Random(seed);
        let mut all = BTreeSet::new();
        for code in 0..n {
            if random.bits() >> 16 & 0xff < share {
                all.insert(Pair {
                    a: code / 9,
                    b: code / 9 + 1 + code % 9,
                });
            }
        }
        all
    }

    fn check(old: &BTreeSet<Pair>, new: &BTreeSet<Pair>) {
        let mut list: Vec<Pair> = old.iter().copied().collect();
        let started: Vec<Pair> = new.difference(old).copied().collect();
        let ended: Vec<Pair> = old.difference(new).copied().collect();
        for parallel in [false, true] {
            list.clear();
            list.extend(old);
            let done = if parallel {
                rayon::scope(|_| splice(&mut list, &started, &ended))
            } else {
                splice(&mut list, &started, &ended)
            };
            assert!(done.is_ok());
            assert!(list.iter().eq(new), "{} to {} pairs", old.len(), new.len());
        }
    }

    #[test]
    fn a_list_becomes_any_other() {
        let n = 40 * SPLICE_PART as u32;
        let full = some(n, 256, 1);
        let half = some(n, 128, 2);
        let lists = [
            some(0, 1, 1),
            some(9, 256, 1),
            some(2 * SPLICE_PART as u32, 256, 1),
            some(n, 1, 3),
            half.iter()
                .filter(|pair| pair.a % 7 != 3)
                .copied()
                .collect(),
            half.iter()
                .filter(|pair| pair.a > n / 20)
                .copied()
                .collect(),
            half,
            full.iter()
                .filter(|pair| pair.code() % 911 != 3)
                .copied()
                .collect(),
            full.iter()
                .filter(|pair| pair.code() % 919 != 3)
                .copied()
                .collect(),
            full,
        ];
        for old in &lists {
            for new in &lists {
                check(old, new);
            }
        }
    }
}
