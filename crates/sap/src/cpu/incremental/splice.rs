//! Splices the new pairs of the changed set into the last update's.

use super::changed::ChangedSet;
use crate::{Error, Pair, Result, room};
use rayon::prelude::*;

/// Pairs of the last update that one task looks at.
const PART: usize = 64 * 1024;

/// A part of the last update's pairs, what is dropped from it, and what comes in.
struct Part<'a> {
    before: &'a [Pair],
    new: &'a [Pair],
    /// Indices in `before`.
    dropped: Vec<usize>,
}

/// Counts the pairs that have no changed box.
pub(in crate::cpu) fn unchanged_pairs(before: &[Pair], changed: &ChangedSet) -> u64 {
    let unchanged = before.par_iter().filter(|pair| !changed.has_one(pair));
    unchanged.count() as u64
}

/// Writes to `all`, in order, the pairs of `before` that have no changed box, and the `new` ones,
/// all of which have one. Returns those dropped; an error where there are more than `limit`.
/// O(before + new).
pub(in crate::cpu) fn splice(
    before: &[Pair],
    changed: &ChangedSet,
    new: &[Pair],
    limit: u64,
    all: &mut Vec<Pair>,
) -> Result<Vec<Pair>> {
    let parts = before.len().div_ceil(PART).max(1);
    let begin = |part: usize| match part {
        0 => 0,
        _ if part == parts => new.len(),
        _ => new.partition_point(|pair| *pair < before[part * PART]),
    };
    let part = |part: usize| {
        let before = &before[part * PART..before.len().min((part + 1) * PART)];
        let mut dropped = Vec::new();
        for i in (0..before.len()).filter(|&i| changed.has_one(&before[i])) {
            room::push(&mut dropped, i)?;
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
    room::resize(all, count, Pair::default())?;
    let (mut rest, mut tasks) = (&mut all[..], Vec::with_capacity(parts.len()));
    for part in &parts {
        let (own, after) =
            rest.split_at_mut(part.before.len() - part.dropped.len() + part.new.len());
        tasks.push((part, own));
        rest = after;
    }
    match &mut tasks[..] {
        [(part, all)] => part.write(all),
        _ => tasks
            .into_par_iter()
            .for_each(|(part, all)| part.write(all)),
    }
    let mut dropped = Vec::new();
    room::reserve(&mut dropped, dropped_count)?;
    for part in &parts {
        dropped.extend(part.dropped.iter().map(|&i| part.before[i]));
    }
    Ok(dropped)
}

impl Part<'_> {
    fn write(&self, mut all: &mut [Pair]) {
        let mut put = |pairs: &[Pair]| {
            let (to, rest) = std::mem::take(&mut all).split_at_mut(pairs.len());
            to.copy_from_slice(pairs);
            all = rest;
        };
        let (mut at, mut dropped) = (0, self.dropped.iter().copied().peekable());
        let mut keep_to = |end: usize, put: &mut dyn FnMut(&[Pair])| {
            while let Some(out) = dropped.next_if(|&out| out < end) {
                put(&self.before[at..out]);
                at = out + 1;
            }
            put(&self.before[at..end]);
            at = end;
        };
        let mut end = 0;
        for pair in self.new {
            end += position(&self.before[end..], pair);
            keep_to(end, &mut put);
            put(std::slice::from_ref(pair));
        }
        keep_to(self.before.len(), &mut put);
    }
}

/// How many of some pairs come before another; the sooner found the fewer they are.
fn position(pairs: &[Pair], pair: &Pair) -> usize {
    let mut reach = 1;
    while pairs.get(reach - 1).is_some_and(|other| other < pair) {
        reach *= 2;
    }
    let known = reach / 2;
    known + pairs[known..pairs.len().min(reach)].partition_point(|other| other < pair)
}
