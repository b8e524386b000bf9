//! Memory that grows with the frame, asked for so that it may be refused.

use crate::{Error, Result};
use bytemuck::Zeroable;
use rayon::prelude::*;

/// The error for memory of so many elements.
pub(crate) fn refused<T>(len: usize) -> Error {
    let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
    Error::OutOfMemory { bytes }
}

/// Makes room for `len` elements in all.
pub(crate) fn reserve<T>(list: &mut Vec<T>, len: usize) -> Result<()> {
    list.try_reserve_exact(len.saturating_sub(list.len()))
        .map_err(|_| refused::<T>(len))
}

/// Makes it `len` elements, new ones being `value`.
pub(crate) fn resize<T: Copy>(list: &mut Vec<T>, len: usize, value: T) -> Result<()> {
    reserve(list, len)?;
    list.resize(len, value);
    Ok(())
}

/// So many zeros: pages of the system, which threads touch when they write them.
pub(crate) fn zeros<T: Zeroable>(len: usize) -> Result<Vec<T>> {
    bytemuck::allocation::try_zeroed_vec(len).map_err(|()| refused::<T>(len))
}

/// Copies a list into memory that is there already, if it suffices.
pub(crate) fn copy<T: Copy>(to: &mut Vec<T>, from: &[T]) -> Result<()> {
    to.clear();
    reserve(to, from.len())?;
    to.extend_from_slice(from);
    Ok(())
}

/// All lists one after the other.
pub(crate) fn concat<T: Copy>(lists: &[impl AsRef<[T]>]) -> Result<Vec<T>> {
    let mut all = Vec::new();
    reserve(&mut all, lists.iter().map(|list| list.as_ref().len()).sum())?;
    lists
        .iter()
        .for_each(|list| all.extend_from_slice(list.as_ref()));
    Ok(all)
}

/// Adds an element.
pub(crate) fn push<T>(list: &mut Vec<T>, value: T) -> Result<()> {
    if list.len() == list.capacity() {
        list.try_reserve(1)
            .map_err(|_| refused::<T>(2 * list.len()))?;
    }
    list.push(value);
    Ok(())
}

/// What an iterator gives that knows its length.
pub(crate) fn collect<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>> {
    let mut list = Vec::new();
    refill(&mut list, items)?;
    Ok(list)
}

/// The same, in a list that is there already.
pub(crate) fn refill<T>(list: &mut Vec<T>, items: impl ExactSizeIterator<Item = T>) -> Result<()> {
    list.clear();
    reserve(list, items.len())?;
    list.extend(items);
    Ok(())
}

/// What a parallel iterator gives, in a list that is there already.
pub(crate) fn fill<T: Send>(
    list: &mut Vec<T>,
    items: impl IndexedParallelIterator<Item = T>,
) -> Result<()> {
    list.clear();
    reserve(list, items.len())?;
    // The room is there, so that nothing more is asked for.
    items.collect_into_vec(list);
    Ok(())
}

/// The same in a new list.
pub(crate) fn gather<T: Send>(items: impl IndexedParallelIterator<Item = T>) -> Result<Vec<T>> {
    let mut list = Vec::new();
    fill(&mut list, items)?;
    Ok(list)
}

/// Maps a list, on the threads of the pool where it is longer than what one task takes.
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
