//! The sorts on the CPU: on slices, on the threads of the current `rayon` pool, stable.
//!
//! Every sort first checks the order of the keys, and does nothing more where they are in order. Few keys are then
//! sorted by `std` (reported as `"cpu-std"`), many by a radix sort (`"cpu-lsd"`): 8-bit digits from the lowest up, one
//! pass over the elements for each digit in which two keys differ, none for the others. Results are the same bits for any
//! number of threads, since a stable order is the only one there is.
//!
//! [`SortOptions::algorithm`] names a family of GPU sorts and changes nothing here.
//!
//! The functions below allocate scratch memory of up to two copies of what a pass moves (a key; a key and a value; or
//! 8 bytes per 32-bit key, 12 per 64-bit key, of an index sort), and records are moved by way of one more copy. A
//! [`Sorter`] does the same and keeps that memory for the next call, which halves the time of a sort of medium size.
//!
//! # Why not one of the sort crates
//!
//! Measured with `benches/cpu_sorts.rs` (see there what is timed). None of `rdst`, `radsort`, `voracious_radix_sort`,
//! `glidesort`, `std` and `rayon` has a stable index sort, or a bit window that is known at run time, or keeps its scratch
//! memory; `rdst` and `voracious_radix_sort` are not stable, `radsort` and `glidesort` use one thread. What they can do is
//! sort composites of key and index, or keys alone. Median microseconds, 2 cores of an EPYC that others were using too
//! (which tells on the larger sizes, and on whatever uses both cores); *fresh* is the function, without a kept `Sorter`:
//!
//! | index sort, f32 | `Sorter` | fresh | `std` unstable | `rayon` | `radsort` | `voracious` | `rdst` | `glidesort` |
//! |---|---|---|---|---|---|---|---|---|
//! | 2^10 | 5.6 | 5.9 | 5.8 | 5.5 | 4.7 | 7.6 | 10.0 | 10.2 |
//! | 2^12 | 21.7 | 21.8 | 27.7 | 47.8 | 18.1 | 25.5 | 34.4 | 38.9 |
//! | 2^14 | 84.2 | 145 | 130 | 278 | 128 | 152 | 190 | 236 |
//! | 2^16 | 343 | 717 | 715 | 1344 | 651 | 1317 | 868 | 1328 |
//! | 2^18 | 1442 | 3343 | 3433 | 5703 | 2960 | 4403 | 2212 | 4458 |
//! | 2^20 | 8683 | 17246 | 14910 | 28584 | 30658 | 35963 | 41286 | 21094 |
//!
//! | keys alone, u32 | `Sorter` | fresh | `std` unstable | `rayon` | `radsort` | `voracious` | `rdst` | `glidesort` |
//! |---|---|---|---|---|---|---|---|---|
//! | 2^12 | 16.7 | 16.9 | 25.9 | 36.8 | 12.0 | 14.3 | 16.0 | 36.7 |
//! | 2^14 | 65.7 | 67.1 | 122 | 283 | 47.9 | 52.3 | 62.5 | 163 |
//! | 2^16 | 257 | 262 | 675 | 1387 | 192 | 204 | 248 | 941 |
//! | 2^18 | 1074 | 1112 | 3723 | 9904 | 877 | 1293 | 1685 | 8269 |
//!
//! | pairs, u32 + u32 | `Sorter` | fresh | `std` stable | `rayon` stable | `radsort` | `glidesort` |
//! |---|---|---|---|---|---|---|
//! | 2^12 | 18.0 | 18.4 | 29.1 | 110 | 13.9 | 40.7 |
//! | 2^14 | 71.3 | 73.3 | 134 | 448 | 54.7 | 182 |
//! | 2^16 | 282 | 294 | 930 | 2520 | 229 | 1030 |
//! | 2^18 | 1217 | 1336 | 4178 | 11217 | 1151 | 4911 |
//!
//! So: `std` for few keys; a radix sort like `radsort`'s, for it is the best of them where broad phases live, but one that
//! makes its elements while it reads the keys, writes nothing but the index, keeps its memory and uses all threads. That
//! makes the index sort, which is what a broad phase runs every frame, twice as fast as the best of the crates from 2^16
//! on. For keys and pairs alone `radsort` stays up to a third faster in one thread, as it does without bit windows.

mod entry;
mod lsd;
mod scratch;
mod sorter;
mod tuning;
mod view;

use crate::{Key, Result, SortOptions, SortReport};
use bytemuck::Pod;
pub use sorter::Sorter;

/// Sorts keys. O(n) per digit that differs; n from 0 to what memory holds.
///
/// Keys that are equal within the bit window keep their order, and every key its bits.
///
/// ```
/// use gpusort::{SortOptions, cpu};
///
/// let mut keys = [2.0_f32, -0.0, f32::INFINITY, 0.0, -3.5];
/// let report = cpu::sort_keys(&mut keys, &SortOptions::default())?;
/// assert_eq!(keys, [-3.5, -0.0, 0.0, 2.0, f32::INFINITY]);
/// assert_eq!((report.backend, report.early_exit), ("cpu", false));
/// # Ok::<(), gpusort::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::BitWindow`](crate::Error::BitWindow) and [`Error::OutOfMemory`](crate::Error::OutOfMemory); the keys are as
/// before then. Above `u32::MAX` keys, the parallel stable sort of `rayon` runs, which aborts where memory runs out.
pub fn sort_keys<K: Key>(keys: &mut [K], options: &SortOptions) -> Result<SortReport> {
    Sorter::new().sort_keys(keys, options)
}

/// Sorts keys and moves the value of each with it.
///
/// Values of 4 and 8 bytes move in every pass; others move once, as records do.
///
/// ```
/// use gpusort::{SortOptions, cpu};
///
/// let (mut keys, mut values) = ([30_u64, 10, 20], ['c', 'a', 'b'].map(u32::from));
/// cpu::sort_pairs(&mut keys, &mut values, &SortOptions::default())?;
/// assert_eq!(keys, [10, 20, 30]);
/// assert_eq!(values, ['a', 'b', 'c'].map(u32::from));
/// # Ok::<(), gpusort::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::LengthMismatch`](crate::Error::LengthMismatch), [`Error::TooManyKeys`](crate::Error::TooManyKeys) above
/// `u32::MAX`, and those of [`sort_keys`]; keys and values are as before then.
pub fn sort_pairs<K: Key, V: Pod + Send + Sync>(
    keys: &mut [K],
    values: &mut [V],
    options: &SortOptions,
) -> Result<SortReport> {
    Sorter::new().sort_pairs(keys, values, options)
}

/// Writes to `index` the stable order of `keys`: place `i` of the sorted keys is `keys[index[i]]` (argsort).
///
/// What `index` held does not matter: there is nothing to fill before.
///
/// ```
/// use gpusort::{SortOptions, cpu};
///
/// let keys = [0.5_f64, -1.0, 0.5];
/// let mut index = [0; 3];
/// cpu::sort_index(&keys, &mut index, &SortOptions::default())?;
/// assert_eq!(index, [1, 0, 2]);
/// # Ok::<(), gpusort::Error>(())
/// ```
///
/// # Errors
///
/// Those of [`sort_pairs`]; `index` is as before then.
pub fn sort_index<K: Key>(
    keys: &[K],
    index: &mut [u32],
    options: &SortOptions,
) -> Result<SortReport> {
    Sorter::new().sort_index(keys, index, options)
}

/// Sorts keys and moves the record of each with it: once, by the index, whatever its size.
///
/// ```
/// use gpusort::{SortOptions, cpu};
///
/// let mut keys = [2_i32, -7];
/// let mut bodies = [[1.0_f32; 12], [2.0; 12]]; // 48 bytes each
/// cpu::sort_records(&mut keys, &mut bodies, &SortOptions::default())?;
/// assert_eq!((keys[0], bodies[0][0]), (-7, 2.0));
/// # Ok::<(), gpusort::Error>(())
/// ```
///
/// # Errors
///
/// Those of [`sort_pairs`]; keys and records are as before then.
pub fn sort_records<K: Key, R: Pod + Send + Sync>(
    keys: &mut [K],
    records: &mut [R],
    options: &SortOptions,
) -> Result<SortReport> {
    Sorter::new().sort_records(keys, records, options)
}

/// Whether `keys` are in order by the direction and bit window of `options`. Stops soon after the first that is not.
///
/// ```
/// use gpusort::{SortOptions, cpu};
///
/// assert!(cpu::is_sorted(&[-0.0_f32, 0.0, -0.0, 1.0], &SortOptions::default())?);
/// assert!(!cpu::is_sorted(&[1_u32, 2], &SortOptions::new().descending())?);
/// # Ok::<(), gpusort::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::BitWindow`](crate::Error::BitWindow).
pub fn is_sorted<K: Key>(keys: &[K], options: &SortOptions) -> Result<bool> {
    sorter::is_sorted(keys, options)
}
