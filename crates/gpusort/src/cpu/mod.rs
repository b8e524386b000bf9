//! The sorts on the CPU. They sort slices on the threads of the current `rayon` pool, are stable,
//! and use sort crates.
//!
//! Every sort first checks the order of the keys, and is done if they are in order. Otherwise the
//! number of keys selects a library: `std` for few (reported as `"cpu-std"`), the radix sort of
//! [`radsort`] for more (`"cpu-radsort"`), and those of [`rdst`] on all threads for many
//! (`"cpu-rdst"`). `tuning.rs` has the limits. The results are the same bits for any number of
//! threads, because there is only one stable order.
//!
//! * Index sort: it sorts numbers with the key in the high bits and the index in the low bits. They
//!   have 8 bytes if the keys differ within 32 adjacent bits, else 16.
//! * Keys alone: by all bits they are sorted as unsigned numbers. With a bit window `radsort` sorts
//!   them by the window, and `rdst` sorts an index.
//! * Pairs with values of up to 8 bytes: `radsort` sorts them directly. Many pairs are first
//!   divided into parts by the topmost digit, so that all threads sort and each part fits a cache.
//!   Larger values and records move once, by the index.
//!
//! The report counts a pass for each digit of 8 bits in which keys differ. The crates skip all
//! other digits, and `rdst` also skips digits that are in order. [`SortOptions::algorithm`] selects
//! a GPU sort and has no effect here.
//!
//! There are three ways to call the sorts: the methods of [`RadixSort`] on slices, the functions of
//! this module, and a [`Sorter`]. A sorter keeps its scratch memory for the next call, while the
//! others allocate it each time. If that allocation fails, the call returns an error. The crates
//! allocate as much again while they sort, and abort if *that* allocation fails.
//!
//! Fewer than 2^20 keys are sorted without a pool. In a forked process, where the threads of the
//! global pool do not exist, more keys are sorted on a pool that this process makes.
//!
//! # Why these crates
//!
//! `crates/bench/benches/cpu_sorts.rs` compares `std`, `rayon`, `radsort`, `rdst`,
//! `voracious_radix_sort` and `glidesort`. Every candidate does the whole task: an index sort
//! starts from keys and ends with the index. The tables have median microseconds on 2 cores of an
//! EPYC that was building other programs meanwhile, which affects the sorts on two threads most.
//!
//! | index sort, f32 | `Sorter` | function | `std` | `rayon` | `radsort` | `rdst` | `rdst` stable | `voracious` | `voracious` mt | `glidesort` |
//! |---|---|---|---|---|---|---|---|---|---|---|
//! | 2^10 | 5.2 | 5.2 | 5.5 | 6.0 | 4.7 | 10.3 | 6.2 | 7.9 | 6.1 | 10.6 |
//! | 2^12 | 19.3 | 19.6 | 25.2 | 39.8 | 17.9 | 34.1 | 21.0 | 25.9 | 22.7 | 39.8 |
//! | 2^14 | 75.1 | 135 | 113 | 317 | 127 | 183 | 137 | 192 | 326 | 256 |
//! | 2^16 | 305 | 670 | 664 | 747 | 641 | 890 | 689 | 1278 | 1349 | 1385 |
//! | 2^18 | 1271 | 2918 | 2930 | 3987 | 3889 | 1708 | 3211 | 4082 | 3030 | 4414 |
//! | 2^20 | 5609 | 10392 | 12912 | 12809 | 14050 | 20343 | 12118 | 22917 | 12993 | 19403 |
//! | 2^22 | 43925 | 52317 | 70886 | 72017 | 58169 | 41881 | 60471 | 84360 | 38407 | 98364 |
//!
//! | index sort, f64 | `Sorter` | `std` | `rayon` | `radsort` | `rdst` | `glidesort` |
//! |---|---|---|---|---|---|---|
//! | 2^10 | 9.8 | 8.9 | 8.4 | 10.3 | 28.7 | 12.3 |
//! | 2^12 | 38.5 | 41.1 | 60.0 | 38.3 | 108 | 55.2 |
//! | 2^14 | 168 | 328 | 411 | 152 | 429 | 314 |
//! | 2^16 | 888 | 1512 | 1143 | 915 | 2062 | 1669 |
//! | 2^18 | 3468 | 6333 | 6774 | 3586 | 7257 | 8605 |
//! | 2^20 | 30431 | 27764 | 19844 | 36324 | 56315 | 38141 |
//! | 2^22 | 146527 | 151168 | 117663 | 168474 | 134963 | 219816 |
//!
//! | keys alone, u32 | `Sorter` | `std` | `rayon` | `radsort` | `rdst` | `rdst` stable | `voracious` | `voracious` mt | `glidesort` |
//! |---|---|---|---|---|---|---|---|---|---|
//! | 2^10 | 3.8 | 4.9 | 5.4 | 3.5 | 4.7 | 4.7 | 4.5 | 5.6 | 8.6 |
//! | 2^12 | 13.3 | 22.6 | 55.2 | 12.6 | 16.1 | 16.1 | 14.1 | 48.1 | 38.1 |
//! | 2^14 | 52.8 | 107 | 321 | 50.6 | 62.1 | 62.1 | 53.0 | 321 | 171 |
//! | 2^16 | 210 | 622 | 755 | 198 | 245 | 247 | 203 | 693 | 976 |
//! | 2^18 | 917 | 2803 | 2863 | 825 | 1013 | 853 | 1231 | 2963 | 4416 |
//! | 2^20 | 3699 | 12233 | 12371 | 4684 | 3180 | 3286 | 5555 | 12240 | 18754 |
//! | 2^22 | 13439 | 52723 | 50326 | 24298 | 13279 | 32313 | 32205 | 14725 | 78762 |
//!
//! | keys alone, u64 | `Sorter` | `std` | `rayon` | `radsort` | `rdst` | `rdst` stable | `voracious` | `voracious` mt | `glidesort` |
//! |---|---|---|---|---|---|---|---|---|---|
//! | 2^10 | 7.8 | 5.1 | 5.5 | 7.4 | 9.6 | 9.6 | 5.4 | 5.3 | 10.2 |
//! | 2^12 | 29.1 | 23.2 | 46.1 | 27.6 | 34.0 | 34.0 | 18.1 | 20.0 | 38.4 |
//! | 2^14 | 115 | 107 | 314 | 110 | 131 | 131 | 67.6 | 332 | 171 |
//! | 2^16 | 474 | 692 | 1389 | 456 | 536 | 537 | 296 | 1466 | 982 |
//! | 2^18 | 2182 | 3000 | 4268 | 2014 | 2470 | 3045 | 1409 | 6064 | 4379 |
//! | 2^20 | 9347 | 12444 | 25861 | 11052 | 10030 | 32775 | 7238 | 24184 | 19441 |
//! | 2^22 | 60757 | 52678 | 99182 | 79982 | 55828 | 152103 | 47844 | 28888 | 80046 |
//!
//! | pairs, u32 + u32 | `Sorter` | `std` stable | `rayon` | `radsort` | `glidesort` |
//! |---|---|---|---|---|---|
//! | 2^10 | 5.7 | 6.8 | 17.0 | 3.8 | 10.8 |
//! | 2^12 | 21.5 | 30.9 | 113 | 13.9 | 41.1 |
//! | 2^14 | 84.0 | 182 | 568 | 54.5 | 207 |
//! | 2^16 | 352 | 994 | 2528 | 227 | 1036 |
//! | 2^18 | 1476 | 4445 | 11270 | 984 | 4765 |
//! | 2^20 | 7678 | 21231 | 49920 | 7311 | 21158 |
//! | 2^22 | 108058 | 104495 | 242072 | 66770 | 116735 |
//!
//! A later measurement on a busier machine, with the pairs divided into parts:
//!
//! | pairs, u32 + u32 | `Sorter` | `std` stable | `rayon` | `radsort` | `rdst` stable | `glidesort` |
//! |---|---|---|---|---|---|---|
//! | 2^22 | 122128 | 316730 | 686331 | 199830 | 271211 | 229196 |
//! | 2^24 | 519480 | 1190296 | 3558672 | 1141528 | 1667275 | 1800932 |
//!
//! The choice is `radsort`: it is stable, sorts by any function of an element, and in most rows is
//! the fastest index and pair sort of one thread from 2^10 on. A [`Sorter`], which reuses its
//! memory, is twice as fast again from 2^14 to 2^20. `radsort` uses one thread. `rdst` uses all
//! threads of its pool and is faster for many keys; one of its sorts (`MtLsb`) is stable, and so
//! needs no pass over the index. `voracious_radix_sort` is faster for 64-bit keys alone, but it is
//! not stable and sorts no pairs, so `rdst` would be needed too. The multi-threaded sort of `rayon`
//! is faster for index sorts of 64-bit keys from 2^20 on, and as a rule slower elsewhere.

mod entry;
mod library;
mod parts;
mod plain;
mod scratch;
mod slice;
mod sorter;
mod tasks;
mod threads;
mod tuning;
mod view;

use crate::{Key, Result, SortOptions, SortReport};
use bytemuck::Pod;
pub use slice::RadixSort;
pub use sorter::Sorter;
pub use threads::{on_threads, with_threads};

/// Sorts keys. It takes time O(n) for each digit in which keys differ. More than `u32::MAX` keys
/// with a bit window are sorted by a merge sort (`rayon`).
///
/// Keys that are equal within the bit window keep their order, and every key keeps its bits.
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
/// [`Error::BitWindow`](crate::Error::BitWindow) and
/// [`Error::OutOfMemory`](crate::Error::OutOfMemory); the keys are unchanged then.
pub fn sort_keys<K: Key>(keys: &mut [K], options: &SortOptions) -> Result<SortReport> {
    Sorter::new().sort_keys(keys, options)
}

/// Sorts keys and moves the value of each with it.
///
/// Values of up to 8 bytes move in every pass, unless there are few or very many. Other values move
/// once, as records do.
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
/// [`Error::LengthMismatch`](crate::Error::LengthMismatch),
/// [`Error::TooManyKeys`](crate::Error::TooManyKeys) above `u32::MAX`, and those of [`sort_keys`];
/// keys and values are unchanged then.
pub fn sort_pairs<K: Key, V: Pod + Send + Sync>(
    keys: &mut [K],
    values: &mut [V],
    options: &SortOptions,
) -> Result<SortReport> {
    Sorter::new().sort_pairs(keys, values, options)
}

/// Writes the stable order of `keys` to `index` (argsort): the sorted keys are `keys[index[0]]`,
/// `keys[index[1]]`, and so on.
///
/// The previous contents of `index` do not matter.
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
/// Those of [`sort_pairs`]; `index` is unchanged then.
pub fn sort_index<K: Key>(
    keys: &[K],
    index: &mut [u32],
    options: &SortOptions,
) -> Result<SortReport> {
    Sorter::new().sort_index(keys, index, options)
}

/// Sorts keys and moves the record of each with it. Records of any size move once, by the index.
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
/// Those of [`sort_pairs`]; keys and records are unchanged then.
pub fn sort_records<K: Key, R: Pod + Send + Sync>(
    keys: &mut [K],
    records: &mut [R],
    options: &SortOptions,
) -> Result<SortReport> {
    Sorter::new().sort_records(keys, records, options)
}

/// Tells whether `keys` are in order by the direction and bit window of `options`. It stops soon
/// after the first key that is out of order.
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
