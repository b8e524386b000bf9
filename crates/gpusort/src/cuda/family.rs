//! The trait of a family of sorts: sizes, which need no device, and launches on a stream.

use super::abi::{DROP_KEYS, IN_PLACE};
use super::context::Context;
use super::order::KeyOrder;
use super::payload::Payload;
use crate::{Algorithm, Error, Key, KeyType, Result};
use gpu::{DevicePtr, Layout, SliceMut, Stream};

/// The properties of a sort that determine its memory and its launches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub n: u64,
    pub key: KeyType,
    /// Bytes of a value: 0, 4 or 8.
    pub value_bytes: usize,
    /// For tests: takes the path for large inputs, such as offsets of 64 bits, for any number of
    /// keys.
    pub large: bool,
    /// For measurements: the paper's parameter, instead of the tuned one.
    pub parameter: Option<u32>,
}

impl Shape {
    pub fn new<K: Key>(n: u64, payload: Payload) -> Self {
        Self {
            n,
            key: K::TYPE,
            value_bytes: payload.value_bytes(),
            large: false,
            parameter: None,
        }
    }

    pub fn key_bytes(&self) -> usize {
        self.key.bits() as usize / 8
    }
}

/// A checked [`Request`](super::Request). Every address is aligned for its type and has `shape.n`
/// elements. `shape.n` is not 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    pub shape: Shape,
    pub order: KeyOrder,
    pub keys_in: DevicePtr<u8>,
    /// Equal to `keys_in` for a sort in place, else a buffer that does not overlap it. Scratch
    /// memory if the caller does not ask for the sorted keys.
    pub keys_out: DevicePtr<u8>,
    /// Whether the sorted keys need not be written.
    pub drop_keys: bool,
    /// Null if the values are the keys' indices 0, 1, 2, …
    pub values_in: DevicePtr<u8>,
    /// Equal to `values_in` for a sort in place.
    pub values_out: DevicePtr<u8>,
    /// Null, or the device address of the number of keys. Larger numbers than `shape.n` count as
    /// `shape.n`.
    pub device_count: DevicePtr<u64>,
    /// The hint of [`SortOptions`](crate::SortOptions::nearly_sorted).
    pub nearly_sorted: bool,
}

impl Task {
    pub fn in_place(&self) -> bool {
        self.keys_in == self.keys_out
    }

    /// Returns the flags that all families share.
    pub fn flags(&self) -> u32 {
        let in_place = if self.in_place() { IN_PLACE } else { 0 };
        in_place | if self.drop_keys { DROP_KEYS } else { 0 }
    }
}

/// Returns the bytes of scratch memory that `carve` takes.
pub(super) fn measured<R>(carve: impl FnOnce(&mut Layout<'static>) -> Result<R>) -> Result<u64> {
    let mut layout = Layout::measure();
    carve(&mut layout)?;
    Ok(layout.bytes() as u64)
}

/// A family of sorts. Its methods neither allocate device memory nor wait for the device.
pub(super) trait Family: Sync {
    /// Returns the max number of keys.
    fn limit(&self, shape: &Shape) -> u64;

    /// Returns the bytes of scratch memory, without a device. Scratch memory begins with the
    /// `SortOutcome`.
    fn scratch_bytes(&self, shape: &Shape) -> Result<u64>;

    /// For tests: returns the keys of a tile, because sizes around it are worth a test.
    fn tile_keys(&self, shape: &Shape) -> usize;

    /// Loads the kernels for sorts of that shape.
    fn prepare(&self, context: &Context, shape: &Shape) -> Result<()>;

    /// Launches the sort. `scratch` has at least [`Family::scratch_bytes`] bytes of any content,
    /// aligned to [`gpu::ALIGNMENT`].
    fn sort(
        &self,
        context: &Context,
        stream: &Stream,
        task: &Task,
        scratch: SliceMut<'_, u8>,
    ) -> Result<()>;
}

/// Fails if a task reads its number of keys from the device, for an algorithm that cannot do so.
pub(super) fn no_device_count(algorithm: Algorithm, task: &Task) -> Result<()> {
    if task.device_count.is_null() {
        return Ok(());
    }
    Err(Error::Unsupported {
        algorithm,
        what: "a number of keys that is read from the device",
    })
}
