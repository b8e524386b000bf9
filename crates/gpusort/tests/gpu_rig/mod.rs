//! The rig of the GPU tests: a device, guarded buffers, and a check that runs every form of a sort.

use crate::common::{TestKey, all_compared, by_index, index_of};
use bytemuck::Pod;
use gpu::{Buffer, Device, Slice, SliceMut, Stream};
use gpusort::cuda::{Knobs, Payload, Request, Sorter, SorterConfig};
use gpusort::{Algorithm, SortOptions};
use libtest_mimic::Failed;
use rayon::prelude::*;
use std::fmt::Debug;

pub type Outcome = Result<(), Failed>;

/// Returns whether to test small sizes only, for runs under a sanitizer.
pub fn quick() -> bool {
    std::env::var_os("RADSWEEP_QUICK").is_some_and(|value| value == "1")
}

/// Returns `full`, or `short` in a quick run.
pub fn unless_quick<T>(full: T, short: T) -> T {
    if quick() { short } else { full }
}

/// The device and the settings of a trial.
#[derive(Clone)]
pub struct Gpu {
    pub device: Device,
    pub sorter: Sorter,
    /// A sorter with 64-bit offsets.
    pub large: Sorter,
    /// The algorithm of the trials.
    pub algorithm: Algorithm,
    /// Whether the trials' sorts have the hint of nearly sorted input, for every size.
    pub nearly_sorted: bool,
}

impl Gpu {
    pub fn open(algorithm: Algorithm, nearly_sorted: bool) -> Result<Self, String> {
        let device = Device::first().map_err(|error| error.to_string())?;
        let sorter = |force_large| {
            let config = SorterConfig::new().knobs(Knobs {
                force_large,
                adaptive_from: nearly_sorted.then_some(0),
                no_memory: true,
                no_small: nearly_sorted,
                ..Knobs::default()
            });
            Sorter::new(&device, config).map_err(|error| error.to_string())
        };
        Ok(Self {
            sorter: sorter(false)?,
            large: sorter(true)?,
            device,
            algorithm,
            nearly_sorted,
        })
    }

    /// Returns the default options with the algorithm of the trials.
    pub fn options(&self) -> SortOptions {
        let mut options = SortOptions::new().algorithm(self.algorithm);
        options.nearly_sorted = self.nearly_sorted;
        options
    }

    /// Returns the default options in both orders.
    pub fn orders(&self) -> [SortOptions; 2] {
        [self.options(), self.options().descending()]
    }

    pub fn stream(&self) -> Result<Stream, Failed> {
        Ok(Stream::new(&self.device)?)
    }
}

/// Elements on the device between guards that must not change. They do not start at a 16-byte
/// boundary.
pub struct Guarded<T: Pod> {
    buffer: Buffer<T>,
    n: usize,
}

const BEFORE: usize = 5;
const AFTER: usize = 67;
const POISON: u8 = 0xa5;

impl<T: Pod + Debug + PartialEq> Guarded<T> {
    #[inline(never)]
    pub fn new(stream: &Stream, all: &[T]) -> Result<Self, Failed> {
        let mut guarded = Self::poisoned(stream, all.len())?;
        stream.upload(guarded.slice_mut(), all)?;
        Ok(guarded)
    }

    /// Allocates `n` poisoned elements.
    #[inline(never)]
    pub fn poisoned(stream: &Stream, n: usize) -> Result<Self, Failed> {
        let mut buffer = stream.alloc::<T>(n + BEFORE + AFTER)?;
        stream.fill_bytes(buffer.slice_mut(), POISON)?;
        Ok(Self { buffer, n })
    }

    pub fn slice(&self) -> Slice<'_, T> {
        self.buffer.range(BEFORE..BEFORE + self.n).expect("within")
    }

    pub fn slice_mut(&mut self) -> SliceMut<'_, T> {
        self.buffer
            .range_mut(BEFORE..BEFORE + self.n)
            .expect("within")
    }

    /// Checks the guards and returns the elements.
    #[inline(never)]
    pub fn read(&self, stream: &Stream, what: &str) -> Result<Vec<T>, Failed> {
        let mut all = stream.to_vec(self.buffer.slice())?;
        let guards = all[..BEFORE].iter().chain(&all[BEFORE + self.n..]);
        for (i, guard) in guards.enumerate() {
            if bytemuck::bytes_of(guard).iter().any(|&byte| byte != POISON) {
                return Err(format!(
                    "{what}: guard element {i} ({BEFORE} before, the rest behind) is now {guard:?}"
                )
                .into());
            }
        }
        all.truncate(BEFORE + self.n);
        all.drain(..BEFORE);
        Ok(all)
    }
}

/// Scratch memory of the exact size, poisoned, with a guard behind it.
pub struct Scratch(Buffer<u8>, usize);

impl Scratch {
    pub fn new<K: TestKey>(
        stream: &Stream,
        algorithm: Algorithm,
        n: usize,
        payload: Payload,
        large: bool,
    ) -> Result<Self, Failed> {
        let bytes = Sorter::scratch_bytes_for::<K>(algorithm, n as u64, payload)? as usize;
        // 64-bit offsets double the look-back and bin words, which takes less than this.
        let bytes = if large { 2 * bytes + 65536 } else { bytes };
        let mut buffer = stream.alloc::<u8>(bytes + 256)?;
        stream.fill_bytes(buffer.slice_mut(), 0xc3)?;
        Ok(Self(buffer, bytes))
    }

    pub fn slice_mut(&mut self) -> SliceMut<'_, u8> {
        self.0.range_mut(..self.1).expect("within")
    }

    pub fn slice(&self) -> Slice<'_, u8> {
        self.0.range(..self.1).expect("within")
    }

    pub fn check(&self, stream: &Stream) -> Outcome {
        let guard = stream.to_vec(self.0.range(self.1..)?)?;
        match guard.iter().position(|&byte| byte != 0xc3) {
            Some(at) => Err(format!(
                "byte {at} behind the {} bytes of scratch was written",
                self.1
            )
            .into()),
            None => Ok(()),
        }
    }
}

/// Fails unless all bits are equal, and reports the first difference.
#[inline(never)]
pub fn same<T: Pod + Debug>(what: &str, got: &[T], expected: &[T]) -> Outcome {
    if got.len() != expected.len() {
        return Err(format!("{what}: {} elements, not {}", got.len(), expected.len()).into());
    }
    let (got_bytes, expected_bytes) = (bytemuck::cast_slice(got), bytemuck::cast_slice(expected));
    let Some((i, wrong)) = difference(got_bytes, expected_bytes, size_of::<T>()) else {
        return Ok(());
    };
    let shown = |x: &T| format!("{x:?} (0x{})", hex(bytemuck::bytes_of(x)));
    Err(format!(
        "{what}: element {i} of {} is {}, expected {}; {wrong} differ",
        got.len(),
        shown(&got[i]),
        shown(&expected[i])
    )
    .into())
}

/// Returns the first element of `size` bytes that differs, and how many differ. It compares bytes,
/// so that it is built once for all types.
fn difference(got: &[u8], expected: &[u8], size: usize) -> Option<(usize, usize)> {
    if got == expected {
        return None;
    }
    let elements = got.chunks(size).zip(expected.chunks(size));
    let mut differ = elements
        .enumerate()
        .filter(|(_, (got, expected))| got != expected);
    let first = differ.next()?.0;
    Some((first, 1 + differ.count()))
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .rev()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Returns the stable argsort: by `std` for few keys, else by an equivalent parallel sort of (key,
/// index).
#[inline(never)]
pub fn reference<K: TestKey>(keys: &[K], options: &SortOptions) -> Vec<u32> {
    let numbers = all_compared(keys, options);
    if keys.len() <= 1 << 17 {
        return index_of(&numbers);
    }
    parallel_index_of(&numbers)
}

fn parallel_index_of(numbers: &[u64]) -> Vec<u32> {
    let numbers = numbers.par_iter().enumerate();
    let mut pairs: Vec<(u64, u32)> = numbers.map(|(i, &number)| (number, i as u32)).collect();
    pairs.par_sort_unstable();
    pairs.into_par_iter().map(|pair| pair.1).collect()
}

/// A kind of call of a sorter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    Keys,
    KeysInPlace,
    Pairs32,
    Pairs64,
    Pairs32InPlace,
    Pairs64InPlace,
    Index,
    IndexAndKeys,
    Records12,
    Records5,
    Records32AndKeys,
}

impl Form {
    pub const ALL: &[Self] = &[
        Self::Keys,
        Self::KeysInPlace,
        Self::Pairs32,
        Self::Pairs64,
        Self::Pairs32InPlace,
        Self::Pairs64InPlace,
        Self::Index,
        Self::IndexAndKeys,
        Self::Records12,
        Self::Records5,
        Self::Records32AndKeys,
    ];
}

/// Returns a value that determines the index, but differs from it.
fn mixed(i: usize) -> u64 {
    (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A sorter on a stream.
pub struct Rig<'a> {
    pub sorter: &'a Sorter,
    pub stream: &'a Stream,
    pub large: bool,
}

impl<'a> Rig<'a> {
    pub fn new(sorter: &'a Sorter, stream: &'a Stream) -> Self {
        Self {
            sorter,
            stream,
            large: false,
        }
    }

    /// Compares every form of a sort of these keys with the reference.
    pub fn check_all<K: TestKey>(&self, keys: &[K], options: &SortOptions) -> Outcome {
        self.check(keys, options, Form::ALL)
    }

    /// Compares some forms of a sort of these keys with the reference.
    #[inline(never)]
    pub fn check<K: TestKey>(&self, keys: &[K], options: &SortOptions, forms: &[Form]) -> Outcome {
        let index = reference(keys, options);
        let sorted = by_index(keys, &index);
        for &form in forms {
            self.run(form, keys, options, &index, &sorted)
                .map_err(|failed| {
                    format!(
                        "{form:?} of {} {}, {options:?}: {}",
                        keys.len(),
                        K::TYPE,
                        text(&failed)
                    )
                })?;
        }
        Ok(())
    }

    fn run<K: TestKey>(
        &self,
        form: Form,
        keys: &[K],
        options: &SortOptions,
        index: &[u32],
        sorted: &[K],
    ) -> Outcome {
        let (sorter, stream, n) = (self.sorter, self.stream, keys.len());
        let scratch_for =
            |payload| Scratch::new::<K>(stream, options.algorithm, n, payload, self.large);
        let mut input = Guarded::new(stream, keys)?;
        match form {
            Form::Keys => {
                let mut scratch = scratch_for(Payload::None)?;
                let mut output = Guarded::poisoned(stream, n)?;
                sorter.sort(
                    stream,
                    Request::keys(input.slice(), output.slice_mut()),
                    scratch.slice_mut(),
                    options,
                )?;
                same("keys", &output.read(stream, "output")?, sorted)?;
                same("input", &input.read(stream, "input")?, keys)?;
                scratch.check(stream)
            }
            Form::KeysInPlace => {
                let mut scratch = scratch_for(Payload::None)?;
                sorter.sort(
                    stream,
                    Request::in_place(input.slice_mut()),
                    scratch.slice_mut(),
                    options,
                )?;
                same("keys", &input.read(stream, "keys")?, sorted)?;
                scratch.check(stream)
            }
            Form::Pairs32 | Form::Pairs32InPlace => {
                let values: Vec<u32> = (0..n).map(|i| mixed(i) as u32).collect();
                self.pairs(
                    form == Form::Pairs32InPlace,
                    keys,
                    &values,
                    Payload::U32,
                    options,
                    index,
                    sorted,
                )
            }
            Form::Pairs64 | Form::Pairs64InPlace => {
                let values: Vec<u64> = (0..n).map(mixed).collect();
                self.pairs(
                    form == Form::Pairs64InPlace,
                    keys,
                    &values,
                    Payload::U64,
                    options,
                    index,
                    sorted,
                )
            }
            Form::Index | Form::IndexAndKeys => {
                let mut scratch = scratch_for(Payload::Index)?;
                let (mut output, mut places) = (
                    Guarded::poisoned(stream, n)?,
                    Guarded::<u32>::poisoned(stream, n)?,
                );
                let with_keys = form == Form::IndexAndKeys;
                let mut request = Request::index(input.slice(), places.slice_mut());
                if with_keys {
                    request = request.keys_out(output.slice_mut());
                }
                sorter.sort(stream, request, scratch.slice_mut(), options)?;
                same("index", &places.read(stream, "index")?, index)?;
                if with_keys {
                    same("keys", &output.read(stream, "keys_out")?, sorted)?;
                }
                same("input", &input.read(stream, "input")?, keys)?;
                scratch.check(stream)
            }
            Form::Records12 => self.records(
                keys,
                |i| [mixed(i) as u32, i as u32, 7],
                false,
                options,
                index,
                sorted,
            ),
            Form::Records5 => {
                let record = |i| mixed(i).to_le_bytes()[3..].try_into().unwrap_or([0_u8; 5]);
                self.records(keys, record, false, options, index, sorted)
            }
            Form::Records32AndKeys => {
                let record = |i| [mixed(i), i as u64, 1, mixed(i + 1)];
                self.records(keys, record, true, options, index, sorted)
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "input, what to do, and answers")]
    #[inline(never)]
    fn pairs<K: TestKey, V: gpusort::cuda::Value + Debug + PartialEq>(
        &self,
        in_place: bool,
        keys: &[K],
        values: &[V],
        payload: Payload,
        options: &SortOptions,
        index: &[u32],
        sorted: &[K],
    ) -> Outcome {
        let (sorter, stream, n) = (self.sorter, self.stream, keys.len());
        let mut scratch = Scratch::new::<K>(stream, options.algorithm, n, payload, self.large)?;
        let (mut keys_in, mut values_in) =
            (Guarded::new(stream, keys)?, Guarded::new(stream, values)?);
        let moved = by_index(values, index);
        if in_place {
            let (k, v) = (keys_in.slice_mut(), values_in.slice_mut());
            sorter.sort(
                stream,
                Request::in_place(k).values_in_place(v),
                scratch.slice_mut(),
                options,
            )?;
            same("keys", &keys_in.read(stream, "keys")?, sorted)?;
            same("values", &values_in.read(stream, "values")?, &moved)?;
            return scratch.check(stream);
        }
        let (mut keys_out, mut values_out) =
            (Guarded::poisoned(stream, n)?, Guarded::poisoned(stream, n)?);
        let (ki, vi, ko, vo) = (
            keys_in.slice(),
            values_in.slice(),
            keys_out.slice_mut(),
            values_out.slice_mut(),
        );
        sorter.sort(
            stream,
            Request::keys(ki, ko).values(vi, vo),
            scratch.slice_mut(),
            options,
        )?;
        same("keys", &keys_out.read(stream, "keys_out")?, sorted)?;
        same("values", &values_out.read(stream, "values_out")?, &moved)?;
        same("keys_in", &keys_in.read(stream, "keys_in")?, keys)?;
        same("values_in", &values_in.read(stream, "values_in")?, values)?;
        scratch.check(stream)
    }

    #[inline(never)]
    fn records<K: TestKey, R: Pod + Debug + PartialEq + Sync>(
        &self,
        keys: &[K],
        record: impl Fn(usize) -> R,
        with_keys: bool,
        options: &SortOptions,
        index: &[u32],
        sorted: &[K],
    ) -> Outcome {
        let (sorter, stream, n) = (self.sorter, self.stream, keys.len());
        let records: Vec<R> = (0..n).map(record).collect();
        let mut scratch =
            Scratch::new::<K>(stream, options.algorithm, n, Payload::Records, self.large)?;
        let (keys_in, records_in) = (Guarded::new(stream, keys)?, Guarded::new(stream, &records)?);
        let (mut keys_out, mut records_out) =
            (Guarded::poisoned(stream, n)?, Guarded::poisoned(stream, n)?);
        let (ki, ri, ro) = (keys_in.slice(), records_in.slice(), records_out.slice_mut());
        let mut request = Request::records(ki, ri, ro);
        if with_keys {
            request = request.keys_out(keys_out.slice_mut());
        }
        sorter.sort(stream, request, scratch.slice_mut(), options)?;
        same(
            "records",
            &records_out.read(stream, "records_out")?,
            &by_index(&records, index),
        )?;
        if with_keys {
            same("keys", &keys_out.read(stream, "keys_out")?, sorted)?;
        }
        same("keys_in", &keys_in.read(stream, "keys_in")?, keys)?;
        same(
            "records_in",
            &records_in.read(stream, "records_in")?,
            &records,
        )?;
        scratch.check(stream)
    }
}

/// Returns the message of a failure.
pub fn text(failed: &Failed) -> String {
    failed.message().unwrap_or("failed").to_string()
}
