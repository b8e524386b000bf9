//! Keys on the device of a rank, with a value each if values are sorted too.

use bytemuck::Pod;
use gpu::{Buffer, DevicePtr, Memory, Stream};

pub(super) struct Elements<K: Pod, V: Pod> {
    pub(super) keys: Buffer<K>,
    /// The value of each key, or nothing.
    pub(super) values: Buffer<V>,
    pub(super) has_values: bool,
}

impl<K: Pod, V: Pod> Elements<K, V> {
    pub(super) fn alloc(stream: &Stream, count: usize, has_values: bool) -> gpu::Result<Self> {
        Ok(Self {
            keys: stream.alloc(count)?,
            values: stream.alloc(if has_values { count } else { 0 })?,
            has_values,
        })
    }

    /// Returns the addresses of keys and values.
    pub(super) fn addresses(&self) -> [DevicePtr<u8>; 2] {
        let (keys, values) = (self.keys.slice(), self.values.slice());
        [keys.device_ptr().cast(), values.device_ptr().cast()]
    }

    pub(super) fn memory(&self) -> gpu::Result<[Memory; 2]> {
        Ok([self.keys.slice().memory()?, self.values.slice().memory()?])
    }
}
