//! A sample sort over all ranks.
//!
//! Every rank sorts its elements and takes every t-th as a sample. The samples of all ranks are
//! sorted, and splitters taken from them at equal distances divide the elements among the ranks.
//!
//! The bound: elements are ordered by key, then by rank, then by position, so all are different
//! and equal keys divide like others. An element that is the j-th sample has at least `j t`
//! elements up to it, and at most `j t + (s - 1)(t - 1)`, since every other of the `s` ranks has at
//! most `t - 1` elements between two samples. Between two splitters there are less than `n / s + t`
//! elements by the first count, and `(s - 1)(t - 1)` more by the second. With `t = n / s^2`,
//! rounded down but at least 1, that is at most `2 n / s`.
//!
//! On devices the part of each rank is cut into `p` pieces by more splitters, with
//! `t = n / (p s^2)`.

use crate::error::{Result, WORDS, agree, fault, reserve};
use crate::{Cause, List, Transport};
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use gpusort::{Key, SortOptions, cpu};

/// Sorts the keys of all ranks, ascending by [`Key::to_ordered_bits`]. Each rank gets a sorted
/// part, and no key of a rank is above one of a later rank. No rank gets more than `2 n / s` of the
/// `n` keys of `s` ranks (rounded up), however they were spread and however many are equal.
///
/// ```
/// use sap_dist::{Threads, Transport, sort_keys};
/// use std::time::Duration;
///
/// let parts = Threads::run(3, Duration::from_secs(10), |transport| {
///     let keys = [vec![5_u32, 1, 4], vec![], vec![2, 2, 0]];
///     sort_keys(transport, keys[transport.rank()].clone())
/// })?;
/// let sorted: Vec<u32> = parts.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
/// assert_eq!(sorted, [0, 1, 2, 2, 4, 5]);
/// # Ok::<(), sap_dist::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Rank`](crate::Error::Rank) on all ranks if one fails,
/// [`Error::Transport`](crate::Error::Transport) if a rank is missing.
pub fn sort_keys<T: Transport, K: Key>(transport: &mut T, keys: Vec<K>) -> Result<Vec<K>> {
    let values = vec![(); keys.len()];
    let local = |keys: &mut [K], _: &mut [()]| {
        cpu::sort_keys(keys, &SortOptions::new())?;
        Ok(())
    };
    sort(transport, (keys, values), local).map(|(keys, _)| keys)
}

/// Sorts keys with a value each, as [`sort_keys`] does. The sort is stable: equal keys keep the
/// order of their ranks, and within a rank that of their positions.
///
/// ```
/// use sap_dist::{Threads, Transport, sort_pairs};
/// use std::time::Duration;
///
/// let parts = Threads::run(2, Duration::from_secs(10), |transport| {
///     let rank = transport.rank() as u32;
///     sort_pairs(transport, vec![7_u32, 7], vec![10 * rank, 10 * rank + 1])
/// })?;
/// let parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
/// let values: Vec<u32> = parts.into_iter().flat_map(|(_, values)| values).collect();
/// assert_eq!(values, [0, 1, 10, 11]);
/// # Ok::<(), sap_dist::Error>(())
/// ```
///
/// # Errors
///
/// As [`sort_keys`], and [`Cause::LengthMismatch`] if there is not one value for each key.
pub fn sort_pairs<T: Transport, K: Key, V: Pod + Send + Sync>(
    transport: &mut T,
    keys: Vec<K>,
    values: Vec<V>,
) -> Result<(Vec<K>, Vec<V>)> {
    let local = |keys: &mut [K], values: &mut [V]| {
        if keys.len() != values.len() {
            return Err(Cause::LengthMismatch {
                what: List::Values,
                expected: keys.len() as u64,
                given: values.len() as u64,
            });
        }
        cpu::sort_pairs(keys, values, &SortOptions::new())?;
        Ok(())
    };
    sort(transport, (keys, values), local)
}

type Elements<K, V> = (Vec<K>, Vec<V>);
type Local<T> = Result<T, Cause>;

/// Sorts keys and values, which have no bytes if there are only keys. `local` sorts those of this
/// rank: a sort of keys alone is another function than one of pairs.
fn sort<K: Key, V: Pod + Send + Sync>(
    transport: &mut dyn Transport,
    (mut keys, mut values): Elements<K, V>,
    local: impl Fn(&mut [K], &mut [V]) -> Local<()>,
) -> Result<Elements<K, V>> {
    let (rank, ranks) = (transport.rank(), transport.size());
    let sorted = local(&mut keys, &mut values).map(|()| (keys, values));
    let length = sorted.as_ref().map_or(0, |(keys, _)| keys.len() as u64);
    let rows = transport.all_gather(&[&fault(&sorted)[..], &[length]].concat())?;
    agree(&rows, WORDS + 1, (rank, &sorted))?;
    let (keys, values) = sorted.unwrap_or_default();
    let lengths: Vec<u64> = rows.chunks_exact(WORDS + 1).map(|row| row[WORDS]).collect();

    let plan = Plan::new(&lengths, 1);
    let gathered = transport.all_gather(&plan.samples(&keys))?;
    let splitters = plan.splitters(&gathered);
    let ends = splitters.iter().map(|splitter| splitter.end(&keys, rank));
    let ends: Vec<usize> = ends.chain([keys.len()]).collect();
    let messages = write(&keys, &values, &ends, ranks);
    drop((keys, values));
    let (messages, state) = match messages {
        Ok(messages) => (messages, Ok(())),
        Err(cause) => (vec![Vec::new(); ranks], Err(cause)),
    };
    let incoming = transport.exchange(messages)?;
    // The runs come in the order of the ranks, so a stable sort is stable over all.
    let merged = state.and_then(|()| read::<K, V>(&incoming));
    drop(incoming);
    let merged = merged.and_then(|(mut keys, mut values)| {
        local(&mut keys, &mut values)?;
        Ok((keys, values))
    });
    let rows = transport.all_gather(&fault(&merged))?;
    agree(&rows, WORDS, (rank, &merged))?;
    Ok(merged.unwrap_or_default())
}

fn bits<K: Key>(key: K) -> u64 {
    key.to_ordered_bits().into()
}

/// The distance of samples, and how many each rank gives.
pub(crate) struct Plan {
    n: u64,
    /// The parts that all elements are divided into.
    parts: u64,
    pub(crate) distance: u64,
    pub(crate) counts: Vec<usize>,
}

/// An element that ends a part.
pub(crate) struct Splitter {
    pub(crate) bits: u64,
    pub(crate) rank: usize,
    pub(crate) position: usize,
}

impl Plan {
    /// Plans to divide the elements of ranks that have these numbers of them, into `pieces` parts
    /// a rank.
    pub(crate) fn new(lengths: &[u64], pieces: u64) -> Self {
        let n: u64 = lengths.iter().sum();
        let ranks = lengths.len() as u64;
        let parts = ranks * pieces;
        let distance = (n / (ranks * parts).max(1)).max(1);
        let counts = lengths.iter().map(|length| (length / distance) as usize);
        Self {
            n,
            parts,
            distance,
            counts: counts.collect(),
        }
    }

    /// Returns every t-th key as a word, and zeros up to the number of the rank that has most.
    fn samples<K: Key>(&self, keys: &[K]) -> Vec<u64> {
        let distance = self.distance as usize;
        let mut words: Vec<u64> = keys
            .iter()
            .skip(distance - 1)
            .step_by(distance)
            .map(|&key| bits(key))
            .collect();
        words.resize(self.width(), 0);
        words
    }

    pub(crate) fn width(&self) -> usize {
        self.counts.iter().copied().max().unwrap_or(0)
    }

    /// Returns the last elements of all parts but the last.
    pub(crate) fn splitters(&self, gathered: &[u64]) -> Vec<Splitter> {
        let mut samples = Vec::with_capacity(self.counts.iter().sum());
        let of_ranks = gathered.chunks_exact(self.width().max(1)).zip(&self.counts);
        for (rank, (words, &count)) in of_ranks.enumerate() {
            samples.extend((0..count).map(|i| (words[i], rank, i)));
        }
        samples.sort_unstable();
        let splitter = |part: u64| {
            let all = u128::from(self.parts) * u128::from(self.distance);
            let upto = u128::from(part) * u128::from(self.n) / all;
            // The first parts of a few elements are empty: nothing is at or below such a splitter.
            let before = Splitter {
                bits: 0,
                rank: 0,
                position: 0,
            };
            let index = (upto as usize).min(samples.len());
            let Some(&(bits, rank, i)) = index.checked_sub(1).map(|last| &samples[last]) else {
                return before;
            };
            Splitter {
                bits,
                rank,
                position: (i + 1) * self.distance as usize,
            }
        };
        (1..self.parts).map(splitter).collect()
    }
}

impl Splitter {
    /// Returns how many of the sorted keys of a rank are at or below this element.
    fn end<K: Key>(&self, keys: &[K], rank: usize) -> usize {
        if rank == self.rank {
            return self.position;
        }
        let before = rank < self.rank;
        keys.partition_point(|&key| bits(key) < self.bits || (before && bits(key) == self.bits))
    }
}

/// Writes the keys up to each end, and then their values, to a message.
fn write<K: Key, V: Pod>(
    keys: &[K],
    values: &[V],
    ends: &[usize],
    ranks: usize,
) -> Local<Vec<Vec<u8>>> {
    let mut messages = vec![Vec::new(); ranks];
    let mut start = 0;
    for (message, &end) in messages.iter_mut().zip(ends) {
        let keys: &[u8] = cast_slice(&keys[start..end]);
        let values: &[u8] = cast_slice(&values[start..end]);
        reserve(message, keys.len() + values.len())?;
        message.extend_from_slice(keys);
        message.extend_from_slice(values);
        start = end;
    }
    Ok(messages)
}

fn read<K: Key, V: Pod>(messages: &[Vec<u8>]) -> Local<Elements<K, V>> {
    let count = |message: &Vec<u8>| message.len() / (size_of::<K>() + size_of::<V>());
    let all = messages.iter().map(count).sum();
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    reserve(&mut keys, all)?;
    reserve(&mut values, all)?;
    for message in messages {
        let (first, second) = message.split_at(count(message) * size_of::<K>());
        append(&mut keys, first, count(message));
        append(&mut values, second, count(message));
    }
    Ok((keys, values))
}

/// Appends elements by their bytes, of which there are none if they have no size.
fn append<T: Pod>(list: &mut Vec<T>, bytes: &[u8], count: usize) {
    let start = list.len();
    list.resize(start + count, T::zeroed());
    cast_slice_mut(&mut list[start..]).copy_from_slice(bytes);
}
