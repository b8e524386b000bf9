//! The calls, on scratch memory that is kept.

use super::entry::{Apart, Carried, Entry, IndexOf};
use super::lsd::{self, Array, Digit};
use super::scratch::Scratch;
use super::tuning::{DIGIT_WIDTH, LEAST_SHARE, SMALL};
use super::view::View;
use crate::{Error, Key, Result, SortOptions, SortReport};
use bytemuck::Pod;
use rayon::prelude::*;
use std::time::Instant;

/// Sorts on the CPU and keeps its scratch memory from call to call.
///
/// The functions of [`super`] make a new one each time. Something that sorts every frame is faster with one of its own:
/// from 2^16 keys on, asking the system for memory takes longer than sorting.
///
/// ```
/// use gpusort::{SortOptions, cpu};
///
/// let mut sorter = cpu::Sorter::new();
/// let mut index = [0; 3];
/// for keys in [[3.0_f32, -1.0, 2.0], [0.5, 0.25, 0.75]] {
///     sorter.sort_index(&keys, &mut index, &SortOptions::default())?;
///     assert!(keys[index[0] as usize] <= keys[index[1] as usize]);
/// }
/// # Ok::<(), gpusort::Error>(())
/// ```
#[derive(Default)]
pub struct Sorter {
    /// Two of entries on their way, and the index that records are moved by.
    passes: [Scratch; 2],
    index: Scratch,
}

/// What a look at the keys has shown.
enum Found<B> {
    /// Nothing is to be moved.
    Sorted,
    /// They are few: `std` sorts them.
    Few(View<B>),
    /// They are many, and differ in the bits of these digits.
    Many {
        view: View<B>,
        varying: u64,
        shares: usize,
    },
}

impl Sorter {
    /// A sorter that holds no memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes of scratch memory held. Dropping the sorter gives them back.
    #[must_use]
    pub fn scratch_bytes(&self) -> usize {
        self.passes
            .iter()
            .chain([&self.index])
            .map(Scratch::bytes)
            .sum()
    }

    /// [`super::sort_keys`] on this scratch memory.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn sort_keys<K: Key>(
        &mut self,
        keys: &mut [K],
        options: &SortOptions,
    ) -> Result<SortReport> {
        let mut clock = Clock::start(keys.len());
        match look(keys, options, &mut clock)? {
            Found::Sorted => {}
            Found::Few(view) => {
                keys.sort_by_key(|&key| view.of(key));
                clock.compared();
            }
            Found::Many { view, .. } if numbered(keys.len()).is_err() => {
                keys.par_sort_by_key(|&key| view.of(key));
                clock.compared();
            }
            Found::Many {
                view,
                varying,
                shares,
            } => {
                let (n, digits, keys) = (keys.len(), lsd::plan(varying), Array::new(keys));
                // SAFETY: `read` and the target are the same `n` keys, borrowed by us alone and reached through one
                // pointer; a sort in place reads all of them before it writes the first.
                unsafe {
                    let read = move |i| keys.read(i);
                    let key = move |&key: &K| view.of(key).into();
                    lsd::sort(n, &digits, shares, &mut self.passes, read, key, keys)?;
                }
                clock.passes(&digits);
            }
        }
        Ok(clock.report)
    }

    /// [`super::sort_pairs`] on this scratch memory.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn sort_pairs<K: Key, V: Pod + Send + Sync>(
        &mut self,
        keys: &mut [K],
        values: &mut [V],
        options: &SortOptions,
    ) -> Result<SortReport> {
        // As bytes: one sort for all values of a size.
        match size_of::<V>() {
            _ if keys.len() <= SMALL => self.sort_records(keys, values, options),
            4 => self.carry(
                keys,
                bytemuck::cast_slice_mut::<V, [u8; 4]>(values),
                options,
            ),
            8 => self.carry(
                keys,
                bytemuck::cast_slice_mut::<V, [u8; 8]>(values),
                options,
            ),
            _ => self.sort_records(keys, values, options),
        }
    }

    /// Sorts pairs by moving keys and values together in every pass.
    fn carry<K: Key, V: Pod + Send + Sync>(
        &mut self,
        keys: &mut [K],
        values: &mut [V],
        options: &SortOptions,
    ) -> Result<SortReport> {
        numbered(keys.len())?;
        same_length(keys.len(), values.len())?;
        let mut clock = Clock::start(keys.len());
        if let Found::Many {
            view,
            varying,
            shares,
        } = look(keys, options, &mut clock)?
        {
            let (n, digits) = (keys.len(), lsd::plan(varying));
            let (keys, values) = (Array::new(keys), Array::new(values));
            // SAFETY: as in `sort_keys`, for keys and values both.
            unsafe {
                let read = move |i| Carried {
                    key: keys.read(i),
                    value: values.read(i),
                };
                let key = move |pair: &Carried<K, V>| view.of(pair.key).into();
                let target = Apart(keys, values);
                lsd::sort(n, &digits, shares, &mut self.passes, read, key, target)?;
            }
            clock.passes(&digits);
        }
        Ok(clock.report)
    }

    /// [`super::sort_index`] on this scratch memory.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn sort_index<K: Key>(
        &mut self,
        keys: &[K],
        index: &mut [u32],
        options: &SortOptions,
    ) -> Result<SortReport> {
        let n = numbered(keys.len())?;
        same_length(keys.len(), index.len())?;
        let mut clock = Clock::start(keys.len());
        match look(keys, options, &mut clock)? {
            Found::Sorted => index.iter_mut().zip(0..n).for_each(|(index, i)| *index = i),
            Found::Few(view) => {
                // With the index below the key no two are equal, so that the faster, unstable sort is stable.
                let entry =
                    |(&key, i): (&K, u32)| u128::from(view.of(key).into()) << 32 | u128::from(i);
                let entries = self.passes[0].reserve::<u128>(keys.len())?;
                entries
                    .iter_mut()
                    .zip(keys.iter().zip(0..n))
                    .for_each(|(to, from)| *to = entry(from));
                entries.sort_unstable();
                index
                    .iter_mut()
                    .zip(entries)
                    .for_each(|(index, entry)| *index = *entry as u32);
                clock.compared();
            }
            Found::Many {
                view,
                varying,
                shares,
            } => {
                let shift = varying.trailing_zeros();
                let digits = lsd::plan(varying >> shift);
                let key = move |i: usize| view.of(keys[i]).into() >> shift;
                if varying >> shift <= u64::from(u32::MAX) {
                    self.index_passes(move |i| u64::new(key(i), i as u32), &digits, shares, index)?;
                } else {
                    self.index_passes(
                        move |i| <[u32; 3]>::new(key(i), i as u32),
                        &digits,
                        shares,
                        index,
                    )?;
                }
                clock.passes(&digits);
            }
        }
        Ok(clock.report)
    }

    fn index_passes<E: Entry>(
        &mut self,
        read: impl Fn(usize) -> E + Copy + Send + Sync,
        digits: &[Digit],
        shares: usize,
        index: &mut [u32],
    ) -> Result<()> {
        let target = IndexOf(Array::new(index));
        // SAFETY: the index has one place per entry and is borrowed by us alone.
        unsafe {
            lsd::sort(
                index.len(),
                digits,
                shares,
                &mut self.passes,
                read,
                E::key,
                target,
            )
        }
    }

    /// [`super::sort_records`] on this scratch memory.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn sort_records<K: Key, R: Pod + Send + Sync>(
        &mut self,
        keys: &mut [K],
        records: &mut [R],
        options: &SortOptions,
    ) -> Result<SortReport> {
        same_length(keys.len(), records.len())?;
        if size_of::<R>() == 0 {
            return self.sort_keys(keys, options);
        }
        let mut index = std::mem::take(&mut self.index);
        let report = self.sort_by_index(keys, records, options, &mut index);
        self.index = index;
        report
    }

    fn sort_by_index<K: Key, R: Pod + Send + Sync>(
        &mut self,
        keys: &mut [K],
        records: &mut [R],
        options: &SortOptions,
        index: &mut Scratch,
    ) -> Result<SortReport> {
        let index = index.reserve::<u32>(keys.len())?;
        let mut report = self.sort_index(keys, index, options)?;
        if report.early_exit {
            return Ok(report);
        }
        let start = Instant::now();
        // Both before the first is used, so that running out of memory leaves keys and records as they were.
        let [a, b] = &mut self.passes;
        let (moved_keys, moved_records) = (a.reserve(keys.len())?, b.reserve(records.len())?);
        gather(keys, index, moved_keys);
        gather(records, index, moved_records);
        let ms = start.elapsed().as_secs_f64() * 1e3;
        report.stages.push(("gather", ms));
        report.total_ms += ms;
        Ok(report)
    }
}

/// Puts `all[index[i]]` at place `i`, by way of `moved`.
fn gather<T: Pod + Send + Sync>(all: &mut [T], index: &[u32], moved: &mut [T]) {
    let shares = shares(all.len());
    let least = all.len().div_ceil(shares);
    if shares == 1 {
        moved
            .iter_mut()
            .zip(index)
            .for_each(|(moved, &i)| *moved = all[i as usize]);
        all.copy_from_slice(moved);
    } else {
        let places = moved.par_iter_mut().zip(index).with_min_len(least);
        places.for_each(|(moved, &i)| *moved = all[i as usize]);
        let chunks = all.par_chunks_mut(least).zip(moved.par_chunks(least));
        chunks.for_each(|(all, moved)| all.copy_from_slice(moved));
    }
}

/// Whether keys are in order by the window and direction of `options`.
pub(super) fn is_sorted<K: Key>(keys: &[K], options: &SortOptions) -> Result<bool> {
    Ok(View::new::<K>(options)?.is_sorted(keys, shares(keys.len())))
}

/// Checks the options and looks at the keys.
fn look<K: Key>(keys: &[K], options: &SortOptions, clock: &mut Clock) -> Result<Found<K::Bits>> {
    let view = View::new::<K>(options)?;
    let shares = shares(keys.len());
    clock.report.passes_skipped = view.width.div_ceil(DIGIT_WIDTH);
    clock.report.early_exit = view.is_sorted(keys, shares);
    let found = if clock.report.early_exit {
        Found::Sorted
    } else if keys.len() <= SMALL {
        Found::Few(view)
    } else {
        Found::Many {
            view,
            varying: view.varying(keys, shares),
            shares,
        }
    };
    clock.stage("order check");
    Ok(found)
}

/// Number of shares that `n` elements are cut into: one per thread, but none below a least size.
fn shares(n: usize) -> usize {
    match n / LEAST_SHARE {
        0 | 1 => 1,
        shares => shares.min(rayon::current_num_threads()),
    }
}

fn same_length(keys: usize, values: usize) -> Result<()> {
    if keys == values {
        Ok(())
    } else {
        Err(Error::LengthMismatch { keys, values })
    }
}

/// `n` as the index counts.
pub(super) fn numbered(n: usize) -> Result<u32> {
    u32::try_from(n).map_err(|_| Error::TooManyKeys {
        keys: n as u64,
        limit: u32::MAX.into(),
    })
}

/// A report that is being made.
struct Clock {
    last: Instant,
    report: SortReport,
}

impl Clock {
    fn start(n: usize) -> Self {
        let n = n as u64;
        let report = SortReport {
            algorithm: "cpu-lsd",
            backend: "cpu",
            n,
            ..SortReport::default()
        };
        Self {
            last: Instant::now(),
            report,
        }
    }

    fn stage(&mut self, name: &'static str) {
        let now = Instant::now();
        let ms = (now - self.last).as_secs_f64() * 1e3;
        self.report.stages.push((name, ms));
        self.report.total_ms += ms;
        self.last = now;
    }

    /// Passes were run for these digits.
    fn passes(&mut self, digits: &[Digit]) {
        self.report.passes_run = digits.len() as u32;
        self.report.passes_skipped = self
            .report
            .passes_skipped
            .saturating_sub(digits.len() as u32);
        self.stage("passes");
    }

    /// A sort without digits has run.
    fn compared(&mut self) {
        self.report.algorithm = "cpu-std";
        self.report.passes_skipped = 0;
        self.stage("sort");
    }
}
