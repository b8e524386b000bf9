//! Inputs on the device: many in a row, 256 MiB in all, and the first of them sorted, to check
//! results.

use crate::input::{BenchKey, Distribution};
use crate::measure::{Case, Load, value_word};
use bytemuck::Pod;
use radsweep::gpu::{Buffer, Slice, Stream};
use radsweep::sort::{KeyType, SortOptions, cpu};
use radsweep_common::Result;
use rayon::prelude::*;

/// Bytes of all inputs of a rotation: several times the largest level-two cache.
const ROTATED: u64 = 256 << 20;
/// Elements of the distinct inputs, before they repeat.
const DISTINCT: usize = 1 << 21;

/// The last inputs, reused for contenders that sort the same.
#[derive(Default)]
pub(super) struct Inputs {
    pub keys: Option<Keys>,
    pub values: Option<Values>,
}

/// Many inputs of one kind, and the first of them sorted.
pub(super) struct Keys {
    kind: (KeyType, Distribution, usize),
    pub inputs: Rotated,
    /// The first input's keys as ordered bits.
    ordered: Vec<u64>,
    /// The first input's argsort, once it is needed.
    index: Option<Vec<u32>>,
    /// The first input's sorted keys as bytes, once they are needed.
    sorted: Option<Vec<u8>>,
}

/// The values sorted with the keys; the same for each input.
pub(super) struct Values {
    kind: (usize, usize),
    pub inputs: Rotated,
}

/// A buffer of equal pieces of `bytes` each.
pub(super) struct Rotated {
    all: Buffer<u8>,
    bytes: usize,
}

impl Rotated {
    /// Fills a buffer of at least `capacity` bytes with the pieces in `host`, repeated.
    fn new(stream: &Stream, host: &[u8], bytes: usize, capacity: usize) -> Result<Self> {
        let given = host.len() / bytes.max(1);
        let count = (capacity / bytes.max(1)).max(given);
        let mut all = stream.alloc::<u8>(count * bytes)?;
        stream.upload(all.range_mut(..host.len())?, host)?;
        let mut filled = host.len();
        while filled < all.len() && filled > 0 {
            let (done, rest) = all.slice_mut().split_at(filled)?;
            let more = filled.min(rest.len());
            stream.copy(rest.split_at(more)?.0, done.as_slice().range(..more)?)?;
            filled += more;
        }
        stream.synchronize()?;
        Ok(Self { all, bytes })
    }

    pub fn piece<T: Pod>(&self, run: usize) -> Result<Slice<'_, T>> {
        let pieces = (self.all.len() / self.bytes.max(1)).max(1);
        let start = run % pieces * self.bytes;
        Ok(self.all.range(start..start + self.bytes)?.cast()?)
    }
}

impl Inputs {
    /// Makes the inputs, unless the last ones can be reused.
    pub fn prepare<K: BenchKey>(&mut self, stream: &Stream, case: &Case) -> Result<()> {
        let n = case.n;
        let capacity = usize::try_from(ROTATED.min(stream.device().info().memory_bytes / 16))?;
        let kind = (case.key, case.distribution, n);
        if self.keys.as_ref().is_none_or(|keys| keys.kind != kind) {
            self.keys = None;
            let distinct = (DISTINCT.min(capacity / size_of::<K>()) / n.max(1)).clamp(1, 64);
            let ordered: Vec<Vec<u64>> = (0..distinct as u64)
                .map(|seed| case.distribution.generate(n, K::BITS, seed + 1))
                .collect();
            let host: Vec<K> = ordered
                .par_iter()
                .flatten()
                .map(|&bits| K::from_ordered(bits))
                .collect();
            let inputs = Rotated::new(
                stream,
                bytemuck::cast_slice(&host),
                n * size_of::<K>(),
                capacity,
            )?;
            let ordered = ordered.into_iter().next().unwrap_or_default();
            self.keys = Some(Keys {
                kind,
                inputs,
                ordered,
                index: None,
                sorted: None,
            });
        }
        let bytes = case.load.bytes();
        if bytes > 0
            && self
                .values
                .as_ref()
                .is_none_or(|values| values.kind != (n, bytes))
        {
            self.values = None;
            let words = bytes / 4;
            let host: Vec<u32> = (0..n * words)
                .into_par_iter()
                .map(|at| value_word((at / words) as u32, at % words))
                .collect();
            let inputs = Rotated::new(stream, bytemuck::cast_slice(&host), n * bytes, capacity)?;
            self.values = Some(Values {
                kind: (n, bytes),
                inputs,
            });
        }
        Ok(())
    }
}

impl Keys {
    /// Compares a result with that of the CPU, byte by byte.
    pub fn check<K: BenchKey>(
        &mut self,
        load: Load,
        keys_out: &[u8],
        values_out: &[u8],
    ) -> Result<(), String> {
        let cannot = |error: radsweep::sort::Error| error.to_string();
        if load == Load::Keys && self.sorted.is_none() {
            let mut keys: Vec<K> = self
                .ordered
                .par_iter()
                .map(|&bits| K::from_ordered(bits))
                .collect();
            cpu::sort_keys(&mut keys, &SortOptions::new()).map_err(cannot)?;
            self.sorted = Some(bytemuck::cast_slice(&keys).to_vec());
        }
        if load != Load::Keys && self.index.is_none() {
            let keys: Vec<K> = self
                .ordered
                .par_iter()
                .map(|&bits| K::from_ordered(bits))
                .collect();
            let mut index = vec![0; keys.len()];
            cpu::sort_index(&keys, &mut index, &SortOptions::new()).map_err(cannot)?;
            self.index = Some(index);
        }
        if let (Load::Keys, Some(sorted)) = (load, &self.sorted) {
            return same("key", keys_out, sorted, size_of::<K>());
        }
        let index = self.index.as_deref().unwrap_or_default();
        if matches!(load, Load::U32 | Load::U64) {
            let sorted: Vec<K> = index
                .par_iter()
                .map(|&i| K::from_ordered(self.ordered[i as usize]))
                .collect();
            same(
                "key",
                keys_out,
                bytemuck::cast_slice(&sorted),
                size_of::<K>(),
            )?;
        }
        let words = out_bytes(load) / 4;
        let expected: Vec<u32> = (0..index.len() * words)
            .into_par_iter()
            .map(|at| value_word(index[at / words], at % words))
            .collect();
        same(
            "value",
            values_out,
            bytemuck::cast_slice(&expected),
            4 * words,
        )
    }
}

fn same(what: &str, found: &[u8], expected: &[u8], bytes: usize) -> Result<(), String> {
    let pieces = found
        .par_chunks_exact(bytes)
        .zip(expected.par_chunks_exact(bytes));
    match pieces.position_first(|(found, expected)| found != expected) {
        None if found.len() == expected.len() => Ok(()),
        None => Err(format!(
            "{} bytes of {what}s instead of {}",
            found.len(),
            expected.len()
        )),
        Some(at) => Err(format!(
            "{what} {at} of {} differs from the CPU's",
            found.len() / bytes
        )),
    }
}

/// Returns the bytes of output per element other than its key.
pub(super) fn out_bytes(load: Load) -> usize {
    if load == Load::Index { 4 } else { load.bytes() }
}
