//! The sorts as methods of slices.

use super::scratch::try_with_capacity;
use super::sorter::Sorter;
use crate::{Key, Result, SortOptions, SortReport};
use bytemuck::Pod;

/// The sorts of [`cpu`](super) as methods of slices of keys. They are stable, and use several
/// threads for many keys.
///
/// ```
/// use gpusort::cpu::RadixSort;
///
/// let mut distance = [2.5_f32, -1.0, 7.25];
/// assert_eq!(distance.radix_argsort()?, [1, 0, 2]);
/// distance.radix_sort()?;
/// assert_eq!(distance, [-1.0, 2.5, 7.25]);
/// # Ok::<(), gpusort::Error>(())
/// ```
///
/// A [`Sorter`] keeps its memory from call to call, and is faster for a program that sorts every
/// frame.
pub trait RadixSort: sealed::Sealed {
    /// Sorts the keys, smallest first.
    ///
    /// ```
    /// use gpusort::cpu::RadixSort;
    ///
    /// let mut keys = vec![30_u64, 10, 20];
    /// keys.radix_sort()?;
    /// assert_eq!(keys, [10, 20, 30]);
    /// # Ok::<(), gpusort::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`sort_keys`](super::sort_keys).
    fn radix_sort(&mut self) -> Result<SortReport> {
        self.radix_sort_by(&SortOptions::new())
    }

    /// Sorts the keys in the order and by the bits that `options` ask for.
    ///
    /// ```
    /// use gpusort::{SortOptions, cpu::RadixSort};
    ///
    /// let mut keys = [1_i32, -3, 2];
    /// keys.radix_sort_by(&SortOptions::new().descending())?;
    /// assert_eq!(keys, [2, 1, -3]);
    /// # Ok::<(), gpusort::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`sort_keys`](super::sort_keys).
    fn radix_sort_by(&mut self, options: &SortOptions) -> Result<SortReport>;

    /// Sorts the keys, smallest first, and moves the value of each key with it.
    ///
    /// ```
    /// use gpusort::cpu::RadixSort;
    ///
    /// let (mut age, mut person) = ([42_u32, 7], [[b'A', b'd', b'a'], [b'E', b'v', b'e']]);
    /// age.radix_sort_with(&mut person)?;
    /// assert_eq!((age, person), ([7, 42], [*b"Eve", *b"Ada"]));
    /// # Ok::<(), gpusort::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`sort_pairs`](super::sort_pairs).
    fn radix_sort_with<V: Pod + Send + Sync>(&mut self, values: &mut [V]) -> Result<SortReport>;

    /// Returns the permutation that sorts, smallest key first: `self[index[0]]` is the first key in
    /// order, and so on.
    ///
    /// ```
    /// use gpusort::cpu::RadixSort;
    ///
    /// assert_eq!([0.5_f64, -1.0, 0.5].radix_argsort()?, [1, 0, 2]);
    /// # Ok::<(), gpusort::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`sort_index`](super::sort_index).
    fn radix_argsort(&self) -> Result<Vec<u32>>;
}

mod sealed {
    pub trait Sealed {}
    impl<K: super::Key> Sealed for [K] {}
}

impl<K: Key> RadixSort for [K] {
    fn radix_sort_by(&mut self, options: &SortOptions) -> Result<SortReport> {
        Sorter::new().sort_keys(self, options)
    }

    fn radix_sort_with<V: Pod + Send + Sync>(&mut self, values: &mut [V]) -> Result<SortReport> {
        Sorter::new().sort_pairs(self, values, &SortOptions::new())
    }

    fn radix_argsort(&self) -> Result<Vec<u32>> {
        let mut index = try_with_capacity(self.len())?;
        index.resize(self.len(), 0);
        Sorter::new().sort_index(self, &mut index, &SortOptions::new())?;
        Ok(index)
    }
}
