//! Fallible allocation: lists that grow with the frame, where a refused allocation is an error.

use crate::cpu::tuning::{GROWTH, MAX_GROWTH};
use crate::{Error, Result};
use bytemuck::Zeroable;
use rayon::prelude::*;
use std::borrow::Cow;

/// Returns the error for a refused allocation of `len` elements.
pub(crate) fn refused<T>(len: usize) -> Error {
    let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
    Error::OutOfMemory { bytes }
}

/// Reserves capacity for `len` elements in all.
pub(crate) fn reserve<T>(list: &mut Vec<T>, len: usize) -> Result<()> {
    list.try_reserve_exact(len.saturating_sub(list.len()))
        .map_err(|_| refused::<T>(len))
}

/// Reserves capacity for `len` elements in all, and for some more where the list has to grow: fresh
/// memory costs more than what is written to it, and the next frame may need a little more.
pub(crate) fn reserve_ahead<T>(list: &mut Vec<T>, len: usize) -> Result<()> {
    if list.capacity() >= len {
        return Ok(());
    }
    reserve(list, len + (len / GROWTH).min(MAX_GROWTH))
}

/// Resizes a list to `len` elements, filling with `value`.
pub(crate) fn resize<T: Copy>(list: &mut Vec<T>, len: usize, value: T) -> Result<()> {
    reserve(list, len)?;
    list.resize(len, value);
    Ok(())
}

/// Returns `len` zeros. The pages come zeroed from the system, so the threads that write them touch
/// them first.
pub(crate) fn zeros<T: Zeroable>(len: usize) -> Result<Vec<T>> {
    bytemuck::allocation::try_zeroed_vec(len).map_err(|()| refused::<T>(len))
}

/// Copies a list into `to`, whose memory it reuses.
pub(crate) fn copy<T: Copy>(to: &mut Vec<T>, from: &[T]) -> Result<()> {
    to.clear();
    reserve(to, from.len())?;
    to.extend_from_slice(from);
    Ok(())
}

/// Returns a list as its own, copied unless it is.
pub(crate) fn into_owned<T: Copy>(list: Cow<[T]>) -> Result<Vec<T>> {
    match list {
        Cow::Borrowed(list) => concat(&[list]),
        Cow::Owned(list) => Ok(list),
    }
}

/// Concatenates lists.
pub(crate) fn concat<T: Copy>(lists: &[impl AsRef<[T]>]) -> Result<Vec<T>> {
    let mut all = Vec::new();
    reserve(&mut all, lists.iter().map(|list| list.as_ref().len()).sum())?;
    lists
        .iter()
        .for_each(|list| all.extend_from_slice(list.as_ref()));
    Ok(all)
}

/// Appends an element.
pub(crate) fn push<T>(list: &mut Vec<T>, value: T) -> Result<()> {
    if list.len() == list.capacity() {
        list.try_reserve(1)
            .map_err(|_| refused::<T>(2 * list.len()))?;
    }
    list.push(value);
    Ok(())
}

/// Reserves capacity for `more` further elements, and some beyond if the list has to grow.
pub(crate) fn grow<T>(list: &mut Vec<T>, more: usize) -> Result<()> {
    list.try_reserve(more)
        .map_err(|_| refused::<T>(list.len() + more))
}

/// Collects an iterator of known length.
pub(crate) fn collect<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>> {
    let mut list = Vec::new();
    refill(&mut list, items)?;
    Ok(list)
}

/// Collects an iterator of known length into `list`, whose memory it reuses.
pub(crate) fn refill<T>(list: &mut Vec<T>, items: impl ExactSizeIterator<Item = T>) -> Result<()> {
    list.clear();
    reserve(list, items.len())?;
    list.extend(items);
    Ok(())
}

/// Collects a parallel iterator into `list`, whose memory it reuses.
pub(crate) fn fill<T: Send>(
    list: &mut Vec<T>,
    items: impl IndexedParallelIterator<Item = T>,
) -> Result<()> {
    list.clear();
    reserve(list, items.len())?;
    // The capacity is reserved, so this allocates nothing.
    items.collect_into_vec(list);
    Ok(())
}

/// Collects a parallel iterator.
pub(crate) fn gather<T: Send>(items: impl IndexedParallelIterator<Item = T>) -> Result<Vec<T>> {
    let mut list = Vec::new();
    fill(&mut list, items)?;
    Ok(list)
}

/// Maps a list, in parallel where it is longer than `task` elements.
pub(crate) fn map<T: Sync, U: Send>(
    all: &[T],
    task: usize,
    f: impl Fn(&T) -> U + Sync + Send,
) -> Result<Vec<U>> {
    if all.len() <= task {
        return collect(all.iter().map(f));
    }
    gather(all.par_iter().with_min_len(task).map(f))
}
