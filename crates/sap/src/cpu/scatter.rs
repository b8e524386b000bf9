//! A stable counting sort on many threads: each thread counts its part of the input, then writes
//! it.

use crate::Result;
use crate::try_alloc::{self, zeros};

/// The positions at which each part writes its elements of each group. The output has the groups
/// one after the other, and within a group the parts in order.
pub(super) struct Positions {
    /// The first position of each group of each part: `starts[part * groups + group]`.
    pub(super) starts: Vec<usize>,
    /// The end of each group, which is the begin of the next one.
    pub(super) ends: Vec<usize>,
}

impl Positions {
    /// Sums the counts of each part's elements of each group: `counts[part * groups + group]`.
    pub(super) fn new(counts: &[u32], groups: usize) -> Result<Self> {
        let mut starts = zeros::<usize>(counts.len())?;
        let mut ends = Vec::new();
        try_alloc::reserve(&mut ends, groups)?;
        let mut at = 0;
        for group in 0..groups {
            for index in (group..counts.len()).step_by(groups) {
                starts[index] = at;
                at += counts[index] as usize;
            }
            ends.push(at);
        }
        Ok(Self { starts, ends })
    }

    /// Returns the number of all elements.
    pub(super) fn total(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }
}

/// Cuts a slice into consecutive parts of these lengths.
pub(super) fn cut<T>(mut slice: &mut [T], lengths: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    let next = |length| {
        let (part, rest) = std::mem::take(&mut slice).split_at_mut(length);
        slice = rest;
        part
    };
    lengths.map(next).collect()
}

/// Memory that many threads write, each at different positions.
pub(super) struct Target<T>(*mut T);

// SAFETY: `Target::write` is only called with positions that no other thread writes.
unsafe impl<T: Send> Sync for Target<T> {}

impl<T> Target<T> {
    /// Empties a list and reserves `len` elements to be written.
    pub(super) fn reserve(list: &mut Vec<T>, len: usize) -> Result<Self> {
        list.clear();
        try_alloc::reserve_ahead(list, len)?;
        Ok(Self(list.as_mut_ptr()))
    }

    /// Writes an element at `*position` and increments the position.
    ///
    /// # Safety
    ///
    /// The position is below the reserved length, the list was not used since, and no other thread
    /// writes at the position.
    #[inline(always)]
    pub(super) unsafe fn write(&self, position: &mut usize, value: T) {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(*position).write(value) };
        *position += 1;
    }
}
