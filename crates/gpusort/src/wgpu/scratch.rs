//! Scratch memory of a sort.

use super::params::{MAX_PASSES, MAX_WORKGROUPS, RADIX, State};
use crate::{Error, Key, KeyType, Result, SortReport};
use radsweep_kernels::wgsl::{self, RADIX_FEW, RADIX_ITEMS, WORKGROUP};
use std::ops::Range;
use wgpu_device::{BufferUsages, Device, wgpu};

/// What a sort moves with each key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Payload {
    /// Nothing.
    None,
    /// A value of 32 bits.
    U32,
    /// The index of the key.
    Index,
}

impl Payload {
    pub(super) const fn value(self) -> wgsl::Value {
        match self {
            Self::None => wgsl::Value::None,
            Self::U32 => wgsl::Value::U32,
            Self::Index => wgsl::Value::Index,
        }
    }
}

/// Scratch memory for sorts of up to a number of keys, one at a time.
/// [`Sorter::scratch`](super::Sorter::scratch) makes it.
///
/// It holds two copies of keys and values, and 16 KiB for each 2,048 keys, at most 2 MiB.
#[derive(Debug)]
pub struct Scratch {
    pub(super) state: wgpu::Buffer,
    pub(super) keys: wgpu::Buffer,
    /// `None` without values.
    pub(super) values: Option<wgpu::Buffer>,
    pub(super) table: wgpu::Buffer,
    /// Bound where a kernel writes no output.
    pub(super) unused: wgpu::Buffer,
}

impl Scratch {
    pub(super) fn new<K: Key>(device: &Device, n: u64, payload: Payload) -> Result<Self> {
        let table_bytes = table_bytes(checked_count(device, n, K::TYPE)?);
        let buffer = |what, bytes| device.buffer(what, bytes, BufferUsages::STORAGE);
        let outcome = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
        let values = match payload {
            Payload::None => None,
            _ => Some(buffer("values of a sort", 8 * n)?),
        };
        Ok(Self {
            state: device.buffer("state of a sort", size_of::<State>() as u64, outcome)?,
            keys: buffer("keys of a sort", 2 * n * size_of::<K>() as u64)?,
            values,
            table: buffer("counts of a sort", table_bytes)?,
            unused: buffer("unused", 512)?,
        })
    }

    /// The bytes of [`Scratch::outcome`].
    pub const OUTCOME_BYTES: u64 = size_of::<State>() as u64;

    /// Returns where the last submitted sort with this memory leaves what it did, for a caller who
    /// downloads that with results of their own: [`Scratch::report`] reads it.
    #[must_use]
    pub fn outcome(&self) -> (&wgpu::Buffer, Range<u64>) {
        (&self.state, 0..Self::OUTCOME_BYTES)
    }

    /// Returns the report in the bytes of [`Scratch::outcome`]; that of no sort for fewer bytes.
    #[must_use]
    pub fn report(outcome: &[u8]) -> SortReport {
        let state = outcome.get(..size_of::<State>());
        let state: State = state.map_or_else(State::default, bytemuck::pod_read_unaligned);
        state.report()
    }

    /// Fails unless a sort of `n` keys of type `K` can use this memory.
    pub(super) fn check<K: Key>(&self, n: u32, payload: Payload) -> Result<()> {
        let value_bytes = if payload == Payload::None { 0 } else { 4 };
        let needs = [
            (Some(&self.keys), 2 * u64::from(n) * size_of::<K>() as u64),
            (self.values.as_ref(), 2 * u64::from(n) * value_bytes),
            (Some(&self.table), table_bytes(n)),
        ];
        for (buffer, needed) in needs {
            let given = buffer.map_or(0, wgpu::Buffer::size);
            if given < needed {
                return Err(Error::ScratchTooSmall { needed, given });
            }
        }
        Ok(())
    }
}

/// Returns the number of tiles of `n` keys, for a thread's number of keys in each.
pub(super) const fn tiles(n: u32, items: u32) -> u32 {
    n.div_ceil(WORKGROUP * items)
}

/// Returns the bytes of the table of counts of up to `n` keys: a row for each workgroup, or two for
/// each pass where these are few.
pub(super) fn table_bytes(n: u32) -> u64 {
    let tiles = tiles(n, RADIX_ITEMS);
    let rows = (2 * MAX_PASSES * tiles.min(RADIX_FEW)).max(tiles.min(MAX_WORKGROUPS) + 1);
    4 * u64::from(RADIX) * u64::from(rows)
}

/// Returns `n` if the device can bind the scratch memory of this many keys.
pub(super) fn checked_count(device: &Device, n: u64, key: KeyType) -> Result<u32> {
    let limits = device.limits();
    let bytes = limits
        .max_storage_buffer_binding_size
        .min(limits.max_buffer_size);
    // Keys and values have two copies each, whose elements 32 bits number. The counts take less.
    let widest = u64::from(key.bits() / 8);
    let limit = (bytes / (2 * widest)).min(1 << 30);
    u32::try_from(n)
        .ok()
        .filter(|_| n <= limit)
        .ok_or(Error::TooManyKeys { keys: n, limit })
}
