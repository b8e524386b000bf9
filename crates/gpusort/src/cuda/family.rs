//! What a family of sorts is to the rest: sizes that need no device, and work for a stream.

use super::context::Context;
use super::order::KeyOrder;
use super::payload::Payload;
use crate::{Algorithm, Error, Key, KeyType, Result};
use gpu::{DevicePtr, Layout, SliceMut, Stream};

/// What a sort's memory and launches depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub n: u64,
    pub key: KeyType,
    /// 0, 4 or 8.
    pub value_bytes: usize,
    /// For tests: offsets of 64 bits, whatever the number of keys.
    pub large: bool,
    /// For measurements: the paper's parameter, in the place of what the family has tuned.
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

/// A [`Request`](super::Request) that was checked: every address is aligned for its type and has room for `shape.n` elements; `shape.n` is not 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    pub shape: Shape,
    pub order: KeyOrder,
    pub keys_in: DevicePtr<u8>,
    /// Equal to `keys_in` for a sort in place, else apart from it; scratch memory where the sorted keys are not wanted.
    pub keys_out: DevicePtr<u8>,
    /// The sorted keys need not be written.
    pub drop_keys: bool,
    /// Null: the values are the keys' places, 0, 1, 2, …
    pub values_in: DevicePtr<u8>,
    /// Equal to `values_in` for a sort in place.
    pub values_out: DevicePtr<u8>,
    /// Null, or where the number of keys stands on the device; at most `shape.n` count.
    pub device_count: DevicePtr<u64>,
    /// The hint of [`SortOptions`](crate::SortOptions::nearly_sorted).
    pub nearly_sorted: bool,
}

impl Task {
    pub fn in_place(&self) -> bool {
        self.keys_in == self.keys_out
    }
}

/// Bytes of the scratch memory that `carve` takes.
pub(super) fn measured<R>(carve: impl FnOnce(&mut Layout<'static>) -> Result<R>) -> Result<u64> {
    let mut layout = Layout::measure();
    carve(&mut layout)?;
    Ok(layout.bytes() as u64)
}

/// One family of sorts. Nothing here allocates device memory, waits, or looks at the device's answers.
pub(super) trait Family: Sync {
    /// The most keys that it takes.
    fn limit(&self, shape: &Shape) -> u64;

    /// Bytes of scratch memory. Needs no device. `Outcome` lies at their start.
    fn scratch_bytes(&self, shape: &Shape) -> Result<u64>;

    /// For tests: keys of a tile, where sizes are worth trying.
    fn tile_keys(&self, shape: &Shape) -> usize;

    /// Loads the kernels.
    fn prepare(&self, context: &Context, shape: &Shape) -> Result<()>;

    /// Launches the sort; `scratch` has at least [`Family::scratch_bytes`], aligned to [`gpu::ALIGNMENT`], with anything in it.
    fn sort(
        &self,
        context: &Context,
        stream: &Stream,
        task: &Task,
        scratch: SliceMut<'_, u8>,
    ) -> Result<()>;
}

/// Fails where a sort cannot take its number of keys from the device.
pub(super) fn no_device_count(algorithm: Algorithm, task: &Task) -> Result<()> {
    if task.device_count.is_null() {
        return Ok(());
    }
    Err(Error::Unsupported {
        algorithm,
        what: "a number of keys that stands on the device",
    })
}
