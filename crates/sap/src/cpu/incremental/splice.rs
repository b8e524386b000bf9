//! Pairs of the last update without those of changed boxes, and with new ones instead.

use super::changed::Changed;
use crate::{Error, Pair, Result, room};
use rayon::prelude::*;

/// Pairs of the last update that one task looks at.
const PART: usize = 64 * 1024;

/// Some pairs of the last update, what is taken out of them, and what comes in.
struct Part<'a> {
    before: &'a [Pair],
    new: &'a [Pair],
    /// Places in `before`.
    gone: Vec<usize>,
}

/// How many pairs have no changed box.
pub(in crate::cpu) fn kept_pairs(before: &[Pair], changed: &Changed) -> u64 {
    let kept = before.par_iter().filter(|pair| !changed.has_one(pair));
    kept.count() as u64
}

/// Puts the pairs of `before` that have no changed box, and the `new` ones, all of which have one, into `all`, in order. Gives those left
/// out; an error where there are more than `limit`. O(before + new).
pub(in crate::cpu) fn splice(
    before: &[Pair],
    changed: &Changed,
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
        let mut gone = Vec::new();
        for i in (0..before.len()).filter(|&i| changed.has_one(&before[i])) {
            room::push(&mut gone, i)?;
        }
        Ok(Part {
            before,
            new: &new[begin(part)..begin(part + 1)],
            gone,
        })
    };
    let parts: Result<Vec<Part>> = match parts {
        1 => part(0).map(|part| vec![part]),
        _ => (0..parts).into_par_iter().map(part).collect(),
    };
    let parts = parts?;
    let left_out: usize = parts.iter().map(|part| part.gone.len()).sum();
    let count = before.len() - left_out + new.len();
    if count as u64 > limit {
        let count = count as u64;
        return Err(Error::TooManyPairs { count, limit });
    }
    all.truncate(count);
    room::resize(all, count, Pair::default())?;
    let (mut rest, mut tasks) = (&mut all[..], Vec::with_capacity(parts.len()));
    for part in &parts {
        let (own, after) = rest.split_at_mut(part.before.len() - part.gone.len() + part.new.len());
        tasks.push((part, own));
        rest = after;
    }
    match &mut tasks[..] {
        [(part, all)] => part.write(all),
        _ => tasks
            .into_par_iter()
            .for_each(|(part, all)| part.write(all)),
    }
    let mut gone = Vec::new();
    room::reserve(&mut gone, left_out)?;
    for part in &parts {
        gone.extend(part.gone.iter().map(|&i| part.before[i]));
    }
    Ok(gone)
}

impl Part<'_> {
    fn write(&self, mut all: &mut [Pair]) {
        let mut put = |pairs: &[Pair]| {
            let (to, rest) = std::mem::take(&mut all).split_at_mut(pairs.len());
            to.copy_from_slice(pairs);
            all = rest;
        };
        let (mut at, mut gone) = (0, self.gone.iter().copied().peekable());
        let mut keep_to = |end: usize, put: &mut dyn FnMut(&[Pair])| {
            while let Some(out) = gone.next_if(|&out| out < end) {
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
