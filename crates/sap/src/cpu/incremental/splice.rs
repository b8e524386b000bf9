//! Splices the new pairs of the changed set into the list of the last update.

use super::changed::ChangedSet;
use crate::cpu::scatter::cut;
use crate::cpu::tuning::PAIR_TASK;
use crate::{Error, Pair, Result, try_alloc};
use rayon::prelude::*;

/// A part of the last update's pairs, with the pairs to drop from it and those to insert.
struct Part<'a> {
    before: &'a [Pair],
    new: &'a [Pair],
    /// Indices in `before`.
    dropped: Vec<usize>,
}

/// Counts the pairs that have no changed box.
pub(in crate::cpu) fn unchanged_pairs(before: &[Pair], changed: &ChangedSet) -> u64 {
    let unchanged = before.par_iter().filter(|pair| !changed.has_either(pair));
    unchanged.count() as u64
}

/// Writes to `all`, in order, the pairs of `before` without a changed box, and the `new` pairs,
/// each of which has one. Returns the dropped pairs, or an error if `all` would exceed `limit`.
/// O(before + new).
pub(in crate::cpu) fn splice(
    before: &[Pair],
    changed: &ChangedSet,
    new: &[Pair],
    limit: u64,
    all: &mut Vec<Pair>,
) -> Result<Vec<Pair>> {
    let parts = before.len().div_ceil(PAIR_TASK).max(1);
    let begin = |part: usize| match part {
        0 => 0,
        _ if part == parts => new.len(),
        _ => new.partition_point(|pair| *pair < before[part * PAIR_TASK]),
    };
    let part = |part: usize| {
        let before = &before[part * PAIR_TASK..before.len().min((part + 1) * PAIR_TASK)];
        let mut dropped = Vec::new();
        for i in (0..before.len()).filter(|&i| changed.has_either(&before[i])) {
            try_alloc::push(&mut dropped, i)?;
        }
        Ok(Part {
            before,
            new: &new[begin(part)..begin(part + 1)],
            dropped,
        })
    };
    let parts: Result<Vec<Part>> = match parts {
        1 => part(0).map(|part| vec![part]),
        _ => (0..parts).into_par_iter().map(part).collect(),
    };
    let parts = parts?;
    let dropped_count: usize = parts.iter().map(|part| part.dropped.len()).sum();
    let count = before.len() - dropped_count + new.len();
    if count as u64 > limit {
        let count = count as u64;
        return Err(Error::TooManyPairs { count, limit });
    }
    all.truncate(count);
    try_alloc::resize(all, count, Pair::default())?;
    let mut outputs = cut(all, parts.iter().map(Part::len));
    match (&parts[..], &mut outputs[..]) {
        ([part], [output]) => part.write(output),
        (parts, outputs) => {
            let tasks = parts.par_iter().zip(outputs);
            tasks.for_each(|(part, output)| part.write(output));
        }
    }
    let mut dropped = Vec::new();
    try_alloc::reserve(&mut dropped, dropped_count)?;
    for part in &parts {
        dropped.extend(part.dropped.iter().map(|&i| part.before[i]));
    }
    Ok(dropped)
}

impl Part<'_> {
    /// Returns the length of the spliced part.
    const fn len(&self) -> usize {
        self.before.len() - self.dropped.len() + self.new.len()
    }

    /// Writes the spliced part.
    fn write(&self, mut all: &mut [Pair]) {
        let mut put = |pairs: &[Pair]| {
            let (to, rest) = std::mem::take(&mut all).split_at_mut(pairs.len());
            to.copy_from_slice(pairs);
            all = rest;
        };
        let (mut start, mut dropped) = (0, self.dropped.iter().copied().peekable());
        let mut copy_to = |end: usize, put: &mut dyn FnMut(&[Pair])| {
            while let Some(drop) = dropped.next_if(|&drop| drop < end) {
                put(&self.before[start..drop]);
                start = drop + 1;
            }
            put(&self.before[start..end]);
            start = end;
        };
        let mut end = 0;
        for pair in self.new {
            end += position(&self.before[end..], pair);
            copy_to(end, &mut put);
            put(std::slice::from_ref(pair));
        }
        copy_to(self.before.len(), &mut put);
    }
}

/// Returns the number of pairs before `pair`, by exponential search from the start.
fn position(pairs: &[Pair], pair: &Pair) -> usize {
    let mut end = 1;
    while pairs.get(end - 1).is_some_and(|other| other < pair) {
        end *= 2;
    }
    let start = end / 2;
    start + pairs[start..pairs.len().min(end)].partition_point(|other| other < pair)
}
