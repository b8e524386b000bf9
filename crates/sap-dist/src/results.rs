//! The pairs that a rank owns, in order, and what started and ended.

use crate::error::{copy, push, reserve};
use crate::{Cause, Frame, Pair, Transport, TransportError};
use bytemuck::{bytes_of, cast_slice, pod_read_unaligned};
use rayon::prelude::*;
use std::cmp::Ordering;

/// The lists of an update on one rank, each sorted.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) pairs: Vec<Pair>,
    pub(crate) started: Vec<Pair>,
    pub(crate) ended: Vec<Pair>,
}

/// Appends the pairs of a message.
fn read(message: &[u8], pairs: &mut Vec<Pair>) {
    let (whole, _) = message.as_chunks::<{ size_of::<Pair>() }>();
    pairs.extend(whole.iter().map(|bytes| pod_read_unaligned::<Pair>(bytes)));
}

/// Tells whether a sorted list has a pair that is not before the last one asked for: both lists are
/// walked once.
fn walk(list: &[Pair]) -> impl FnMut(&Pair) -> bool + '_ {
    let mut rest = list;
    move |pair| {
        while let Some((first, tail)) = rest.split_first() {
            match first.cmp(pair) {
                Ordering::Less => rest = tail,
                Ordering::Equal => return true,
                Ordering::Greater => return false,
            }
        }
        false
    }
}

/// Returns the pairs of `these` that `those` lack. Both are sorted.
fn without(these: &[Pair], those: &[Pair]) -> Result<Vec<Pair>, Cause> {
    let (mut has, mut rest) = (walk(those), Vec::new());
    for pair in these.iter().filter(|pair| !has(pair)) {
        push(&mut rest, *pair)?;
    }
    Ok(rest)
}

impl Results {
    /// Sorts the pairs that all ranks found for the frame of this one, and drops the excluded
    /// ones. `last` are the pairs of the last update if events are wanted.
    pub(crate) fn new(
        messages: Vec<Vec<u8>>,
        frame: &Frame,
        last: Option<&[Pair]>,
    ) -> Result<Self, Cause> {
        let mut pairs = Vec::new();
        let bytes: usize = messages.iter().map(Vec::len).sum();
        reserve(&mut pairs, bytes / size_of::<Pair>())?;
        messages
            .iter()
            .for_each(|message| read(message, &mut pairs));
        drop(messages); // the stable sort takes as much
        // Most of each message is in order, which the stable sort makes use of: it takes half the
        // time on one thread.
        if rayon::current_num_threads() == 1 {
            pairs.sort();
        } else {
            pairs.par_sort_unstable();
        }
        // Every pair is found once, so equal pairs are of boxes with equal ids. Boxes `a` are of
        // this rank.
        if let Some(&[Pair { a, b }, _]) = pairs.array_windows().find(|[one, next]| one == next) {
            let of_a = frame.each_id().iter().filter(|&&id| id == a);
            return Err(Cause::DuplicateId {
                id: if of_a.count() > 1 { a } else { b },
            });
        }
        let mut is_excluded = walk(frame.excluded);
        pairs.retain(|pair| !is_excluded(pair));
        let (started, ended) = match last {
            Some(last) => (without(&pairs, last)?, without(last, &pairs)?),
            None => (Vec::new(), Vec::new()),
        };
        Ok(Self {
            pairs,
            started,
            ended,
        })
    }

    /// Returns the lengths of the three lists.
    pub(crate) fn lengths(&self) -> [u64; 3] {
        [&self.pairs, &self.started, &self.ended].map(|list| list.len() as u64)
    }

    /// Drops events of pairs whose box `a` another rank brings now.
    pub(crate) fn settle(
        &mut self,
        transport: &mut dyn Transport,
        [last_ids, ids]: [&[u64]; 2],
    ) -> Result<(), TransportError> {
        let moved = |list: &[Pair], ids: &[u64]| {
            let is_moved = |pair: &&Pair| ids.binary_search(&pair.a).is_err();
            list.iter().filter(is_moved).copied().collect()
        };
        let moved = [moved(&self.ended, ids), moved(&self.started, last_ids)];
        let dropped = settle(transport, moved)?;
        for (list, dropped) in [&mut self.ended, &mut self.started]
            .into_iter()
            .zip(&dropped)
        {
            let mut has = walk(dropped);
            list.retain(|pair| !has(pair));
        }
        Ok(())
    }
}

/// Returns which events did not happen, sorted: if box `a` of a pair is brought by another rank
/// now, the pair seems to end on one rank and to start on another. `moved` are the ended pairs of
/// boxes that this rank no longer brings, and the started pairs of those that it brings newly. Each
/// rank sends these to the rank that the id chooses. That one compares, and replies with what to
/// drop.
pub(crate) fn settle(
    transport: &mut dyn Transport,
    moved: [Vec<Pair>; 2],
) -> Result<[Vec<Pair>; 2], TransportError> {
    let ranks = transport.size();
    let mut questions = vec![[Vec::new(), Vec::new()]; ranks];
    for (kind, list) in moved.into_iter().enumerate() {
        for pair in list {
            questions[scatter(pair.a, ranks)][kind].push(pair);
        }
    }
    let asked = transport.exchange(questions.iter().map(pack).collect())?;
    let replies = compare(&asked);
    let replies = transport.exchange(replies.iter().map(pack).collect())?;
    let mut dropped = [Vec::new(), Vec::new()];
    for reply in &replies {
        for (dropped, pairs) in dropped.iter_mut().zip(unpack(reply)) {
            dropped.extend(pairs);
        }
    }
    dropped.iter_mut().for_each(|list| list.sort_unstable());
    Ok(dropped)
}

/// Spreads ids over the ranks.
fn scatter(id: u64, ranks: usize) -> usize {
    let mixed = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((u128::from(mixed) * ranks as u128) >> 64) as usize
}

/// Returns, for each rank, its ended pairs that started elsewhere and its started pairs that ended
/// elsewhere.
fn compare(asked: &[Vec<u8>]) -> Vec<[Vec<Pair>; 2]> {
    let mut all = [Vec::new(), Vec::new()];
    for (from, message) in asked.iter().enumerate() {
        for (all, pairs) in all.iter_mut().zip(unpack(message)) {
            all.extend(pairs.into_iter().map(|pair| (pair, from)));
        }
    }
    all.iter_mut().for_each(|list| list.sort_unstable());
    let mut replies = vec![[Vec::new(), Vec::new()]; asked.len()];
    for kind in 0..2 {
        let other: Vec<Pair> = all[1 - kind].iter().map(|&(pair, _)| pair).collect();
        let mut has = walk(&other);
        for &(pair, from) in all[kind].iter().filter(|(pair, _)| has(pair)) {
            replies[from][kind].push(pair);
        }
    }
    replies
}

/// Packs two lists: the length of the first, then both. Nothing if both are empty.
fn pack(lists: &[Vec<Pair>; 2]) -> Vec<u8> {
    let [first, second] = lists;
    if first.is_empty() && second.is_empty() {
        return Vec::new();
    }
    let length = first.len() as u64;
    [bytes_of(&length), cast_slice(first), cast_slice(second)].concat()
}

fn unpack(message: &[u8]) -> [Vec<Pair>; 2] {
    let mut lists = [Vec::new(), Vec::new()];
    if let Some((length, pairs)) = message.split_first_chunk::<8>() {
        let bytes = u64::from_ne_bytes(*length) as usize * size_of::<Pair>();
        let (first, second) = pairs.split_at(bytes.min(pairs.len()));
        read(first, &mut lists[0]);
        read(second, &mut lists[1]);
    }
    lists
}

/// The ids that a rank brought to its last update.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Brought {
    first: Option<u64>,
    boxes: usize,
    /// All ids where they are not consecutive.
    each: Vec<u64>,
}

impl Brought {
    pub(crate) fn of(frame: &Frame) -> Result<Self, Cause> {
        Ok(Self {
            first: frame.ids.first(),
            boxes: frame.len(),
            each: copy(frame.each_id())?,
        })
    }

    /// Returns all ids, sorted.
    pub(crate) fn sorted(&self) -> Vec<u64> {
        match self.first {
            Some(first) => (first..first + self.boxes as u64).collect(),
            None => {
                let mut ids = self.each.clone();
                ids.sort_unstable();
                ids
            }
        }
    }
}
