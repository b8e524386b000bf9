//! A stable counting sort by many threads: each counts its own part, then writes it.

use crate::Result;
use crate::room::{self, zeros};

/// Where each part writes its elements of each group: the groups one after the other, in each the
/// parts in turn.
pub(super) struct Positions {
    /// As the counts: for each part, one for each group.
    pub(super) starts: Vec<usize>,
    /// Where each group ends; it begins where the one before it ends.
    pub(super) ends: Vec<usize>,
}

impl Positions {
    /// Adds up what each part has of each group: `counts[part * groups + group]`.
    pub(super) fn new(counts: &[u32], groups: usize) -> Result<Self> {
        let mut starts = zeros::<usize>(counts.len())?;
        let mut ends = Vec::new();
        room::reserve(&mut ends, groups)?;
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

    /// Returns the number of elements.
    pub(super) fn total(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }
}

/// Memory that many threads write, each at positions of its own.
pub(super) struct Target<T>(*mut T);

// SAFETY: `Target::write` is only called with positions that no other thread writes.
unsafe impl<T: Send> Sync for Target<T> {}

impl<T> Target<T> {
    /// Empties a list, and reserves `len` elements to be written.
    pub(super) fn reserve(list: &mut Vec<T>, len: usize) -> Result<Self> {
        list.clear();
        room::reserve(list, len)?;
        Ok(Self(list.as_mut_ptr()))
    }

    /// Writes an element to `*position`, and moves on to the next.
    ///
    /// # Safety
    ///
    /// The position is below the length reserved, the list was not touched since, and no other
    /// thread writes there.
    #[inline(always)]
    pub(super) unsafe fn write(&self, position: &mut usize, value: T) {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(*position).write(value) };
        *position += 1;
    }
}
