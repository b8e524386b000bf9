//! The sorter: the calls of this module on scratch memory that is kept.

use super::entry::Entry;
use super::library::{Library, needs_threads, parallel};
use super::parts;
use super::plain;
use super::scratch::{Scratch, try_with_capacity};
use super::tasks::{run, task_size};
use super::threads::on_threads;
use super::tuning::PARALLEL_PAIRS;
use super::view::View;
use crate::error::same_length;
use crate::{Error, Key, Result, SortOptions, SortReport};
use bytemuck::Pod;
use web_time::Instant;

/// Sorts on the CPU and keeps its scratch memory from call to call.
///
/// The functions of [`super`] make a new one each time. A program that sorts every frame is faster
/// with a sorter that it keeps.
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
    entries: Scratch,
    /// The sorted index of a record sort.
    index: Scratch,
    /// The records in sorted order, before they are copied back.
    moved: Scratch,
}

impl Sorter {
    /// Makes a sorter without scratch memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the bytes of scratch memory. Dropping the sorter frees them.
    #[must_use]
    pub fn scratch_bytes(&self) -> usize {
        self.entries.bytes() + self.index.bytes() + self.moved.bytes()
    }

    /// Sorts as [`super::sort_keys`] does, on this scratch memory.
    ///
    /// # Errors
    ///
    /// Those of [`sort_keys`](super::sort_keys).
    pub fn sort_keys<K: Key>(
        &mut self,
        keys: &mut [K],
        options: &SortOptions,
    ) -> Result<SortReport> {
        if needs_threads(keys.len()) {
            return on_threads(|| self.sort_keys(keys, options))?;
        }
        let mut clock = Clock::start(keys.len());
        let Some(found) = inspect(keys, options, &mut clock)? else {
            return Ok(clock.report);
        };
        if found.view.width == K::BITS {
            plain::sort(keys, found.view, found.library)?;
            clock.sorted(&found, found.varying >> found.shift);
            return Ok(clock.report);
        }
        match found.library {
            Library::Radsort => found.radsort(keys, |&key| key),
            Library::Rdst if checked_count(keys.len()).is_ok() => {
                return self.sort_records(keys, &mut vec![(); keys.len()], options);
            }
            // Few keys, or more than an index can number.
            Library::Std | Library::Rdst => keys.sort_by_key(|&key| found.view.of(key)),
        }
        clock.sorted(&found, found.varying);
        Ok(clock.report)
    }

    /// Sorts as [`super::sort_pairs`] does, on this scratch memory.
    ///
    /// # Errors
    ///
    /// Those of [`sort_pairs`](super::sort_pairs).
    pub fn sort_pairs<K: Key, V: Pod + Send + Sync>(
        &mut self,
        keys: &mut [K],
        values: &mut [V],
        options: &SortOptions,
    ) -> Result<SortReport> {
        if needs_threads(keys.len()) {
            return on_threads(|| self.sort_pairs(keys, values, options))?;
        }
        same_length(keys.len(), values.len())?;
        if Library::pick(keys.len()) == Library::Std || size_of::<V>() > 8 {
            return self.sort_records(keys, values, options);
        }
        let mut clock = Clock::start(keys.len());
        clock.report.algorithm = Library::Radsort.name();
        if let Some(found) = inspect(keys, options, &mut clock)? {
            // One closure for both: `radsort` is compiled for each.
            let sort = |part: &mut [(K, V)]| found.radsort(part, |pair| pair.0);
            if keys.len() >= PARALLEL_PAIRS && rayon::current_num_threads() > 1 {
                parts::sort(keys, values, found.bits(), sort)?;
            } else {
                let mut pairs = try_with_capacity(keys.len())?;
                pairs.extend(keys.iter().copied().zip(values.iter().copied()));
                sort(&mut pairs);
                for ((key, value), pair) in keys.iter_mut().zip(values).zip(pairs) {
                    (*key, *value) = pair;
                }
            }
            clock.sorted(&found, found.varying);
        }
        Ok(clock.report)
    }

    /// Sorts as [`super::sort_index`] does, on this scratch memory.
    ///
    /// # Errors
    ///
    /// Those of [`sort_index`](super::sort_index).
    pub fn sort_index<K: Key>(
        &mut self,
        keys: &[K],
        index: &mut [u32],
        options: &SortOptions,
    ) -> Result<SortReport> {
        if needs_threads(keys.len()) {
            return on_threads(|| self.sort_index(keys, index, options))?;
        }
        let n = checked_count(keys.len())?;
        same_length(keys.len(), index.len())?;
        let mut clock = Clock::start(keys.len());
        match inspect(keys, options, &mut clock)? {
            None => index.iter_mut().zip(0..n).for_each(|(index, i)| *index = i),
            Some(found) => {
                if found.narrow() {
                    found.sort_index(keys, self.entries.reserve::<u64>(keys.len())?, index);
                } else {
                    found.sort_index(keys, self.entries.reserve::<u128>(keys.len())?, index);
                }
                clock.sorted(&found, found.varying);
            }
        }
        Ok(clock.report)
    }

    /// Sorts as [`super::sort_records`] does, on this scratch memory.
    ///
    /// # Errors
    ///
    /// Those of [`sort_records`](super::sort_records).
    pub fn sort_records<K: Key, R: Pod + Send + Sync>(
        &mut self,
        keys: &mut [K],
        records: &mut [R],
        options: &SortOptions,
    ) -> Result<SortReport> {
        if needs_threads(keys.len()) {
            return on_threads(|| self.sort_records(keys, records, options))?;
        }
        same_length(keys.len(), records.len())?;
        // An error frees this memory, and the next call allocates it again.
        let mut kept = std::mem::take(&mut self.index);
        let index = kept.reserve::<u32>(keys.len())?;
        let mut report = self.sort_index(keys, index, options)?;
        if !report.early_exit {
            let start = Instant::now();
            // Both are reserved before the first is used, so that a failed allocation leaves keys
            // and records unchanged.
            let moved_keys = self.entries.reserve(keys.len())?;
            let moved_records = self.moved.reserve(records.len())?;
            gather(keys, index, moved_keys);
            gather(records, index, moved_records);
            let ms = start.elapsed().as_secs_f64() * 1e3;
            report.stages.push(("gather", ms));
            report.total_ms += ms;
        }
        self.index = kept;
        Ok(report)
    }
}

/// Moves `all[index[i]]` to index `i`, by way of `moved`.
fn gather<T: Pod + Send + Sync>(all: &mut [T], index: &[u32], moved: &mut [T]) {
    let take = |moved: &mut [T], index: &[u32], all: &[T]| {
        let targets = moved.iter_mut().zip(index);
        targets.for_each(|(moved, &i)| *moved = all[i as usize]);
    };
    if parallel(all.len()) {
        let size = task_size(all.len());
        let from = &*all;
        let parts = moved.chunks_mut(size).zip(index.chunks(size));
        run(parts.map(|(moved, index)| move || take(moved, index, from)));
        let parts = all.chunks_mut(size).zip(moved.chunks(size));
        run(parts.map(|(all, moved)| || all.copy_from_slice(moved)));
    } else {
        take(moved, index, all);
        all.copy_from_slice(moved);
    }
}

/// Tells whether keys are in order by the window and direction of `options`.
pub(super) fn is_sorted<K: Key>(keys: &[K], options: &SortOptions) -> Result<bool> {
    if needs_threads(keys.len()) {
        return on_threads(|| is_sorted(keys, options))?;
    }
    Ok(View::new::<K>(options)?.is_sorted(keys, parallel(keys.len())))
}

/// The properties of keys that are not in order.
struct Inspection<K: Key> {
    view: View<K::Bits>,
    /// The shift that moves the topmost bit in which keys differ to bit 63.
    shift: u32,
    /// The bits in which keys differ, shifted by `shift`.
    varying: u64,
    library: Library,
}

impl<K: Key> Inspection<K> {
    /// Tells whether all bits in which keys differ are among 32 adjacent ones.
    fn narrow(&self) -> bool {
        self.varying & u64::from(u32::MAX) == 0
    }

    /// Returns a function from a key to the bits that keys are compared by, shifted to the upper
    /// end. The closure has a copy of all it needs, which stays in registers.
    fn bits(&self) -> impl Fn(K) -> u64 + Copy + Send + Sync + use<K> {
        let (view, shift) = (self.view, self.shift);
        move |key| view.of(key).into() << shift
    }

    /// Sorts with `radsort`, which skips digits in which keys do not differ.
    fn radsort<T>(&self, all: &mut [T], key: impl Fn(&T) -> K + Copy) {
        let bits = self.bits();
        if self.narrow() {
            radsort::sort_by_key(all, move |element| (bits(key(element)) >> 32) as u32);
        } else {
            radsort::sort_by_key(all, move |element| bits(key(element)));
        }
    }

    /// Makes `entries` from `keys`, sorts them, and writes their indices to `index`.
    fn sort_index<E: Entry>(&self, keys: &[K], entries: &mut [E], index: &mut [u32]) {
        let bits = self.bits();
        let make = move |entries: &mut [E], keys: &[K], first: usize| {
            let made = entries.iter_mut().zip(keys).enumerate();
            made.for_each(|(i, (to, &key))| *to = E::new(bits(key), (first + i) as u32));
        };
        if self.library == Library::Rdst {
            let size = task_size(keys.len());
            let parts = entries.chunks_mut(size).zip(keys.chunks(size));
            let parts = parts.zip((0..).step_by(size));
            run(parts.map(|((entries, keys), first)| move || make(entries, keys, first)));
        } else {
            make(entries, keys, 0);
        }
        sort_entries(entries, index, self.library);
    }
}

/// Sorts entries, and writes their indices to `index`.
fn sort_entries<E: Entry>(entries: &mut [E], index: &mut [u32], library: Library) {
    match library {
        Library::Std => entries.sort_unstable(),
        Library::Radsort => E::radsort(entries),
        Library::Rdst => E::rdst(entries),
    }
    let take = |index: &mut [u32], entries: &[E]| {
        let taken = index.iter_mut().zip(entries);
        taken.for_each(|(index, entry)| *index = entry.index());
    };
    if library == Library::Rdst {
        let size = task_size(entries.len());
        let parts = index.chunks_mut(size).zip(entries.chunks(size));
        run(parts.map(|(index, entries)| move || take(index, entries)));
    } else {
        take(index, entries);
    }
}

/// Checks the options and inspects the keys. Returns `None` if they are in order.
fn inspect<K: Key>(
    keys: &[K],
    options: &SortOptions,
    clock: &mut Clock,
) -> Result<Option<Inspection<K>>> {
    let view = View::new::<K>(options)?;
    let parallel = parallel(keys.len());
    clock.report.passes_skipped = view.width.div_ceil(8);
    clock.report.early_exit = view.is_sorted(keys, parallel);
    let found = (!clock.report.early_exit).then(|| {
        let varying = view.varying(keys, parallel);
        let shift = varying.leading_zeros();
        Inspection {
            view,
            shift,
            varying: varying << shift,
            library: Library::pick(keys.len()),
        }
    });
    clock.stage("order check");
    Ok(found)
}

/// Returns `n` as a `u32`, the type of an index.
pub(super) fn checked_count(n: usize) -> Result<u32> {
    u32::try_from(n).map_err(|_| Error::TooManyKeys {
        keys: n as u64,
        limit: u32::MAX.into(),
    })
}

/// A report in the making, with the time of its last stage.
struct Clock {
    last: Instant,
    report: SortReport,
}

impl Clock {
    fn start(n: usize) -> Self {
        let report = SortReport {
            algorithm: Library::pick(n).name(),
            backend: "cpu",
            n: n as u64,
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

    /// Ends the stage of the sort and counts its passes: the digits in which keys differ, or none
    /// for `std`.
    fn sorted<K: Key>(&mut self, found: &Inspection<K>, varying: u64) {
        let report = &mut self.report;
        let digits = varying.to_le_bytes();
        (report.passes_run, report.passes_skipped) = match found.library {
            Library::Std => (0, 0),
            _ => {
                let run = digits.iter().filter(|&&digit| digit != 0).count() as u32;
                (run, report.passes_skipped.saturating_sub(run))
            }
        };
        self.stage("sort");
    }
}
