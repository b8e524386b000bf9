//! Keys on the device of a rank, with a value each if values are sorted too.

use bytemuck::Pod;
use gpu::{Buffer, DevicePtr, Memory, Stream};

pub(super) struct Elements<K: Pod, V: Pod> {
    pub(super) keys: Buffer<K>,
    pub(super) values: Option<Buffer<V>>,
}

impl<K: Pod, V: Pod> Elements<K, V> {
    pub(super) fn alloc(stream: &Stream, count: usize, has_values: bool) -> gpu::Result<Self> {
        Ok(Self {
            keys: stream.alloc(count)?,
            values: has_values.then(|| stream.alloc(count)).transpose()?,
        })
    }

    /// Returns the addresses of keys and values.
    pub(super) fn addresses(&self) -> [DevicePtr<u8>; 2] {
        let values = self.values.as_ref().map(Buffer::slice);
        let values = values.map_or(DevicePtr::NULL, |values| values.device_ptr().cast());
        [self.keys.slice().device_ptr().cast(), values]
    }

    pub(super) fn memory(&self) -> gpu::Result<Vec<Memory>> {
        let values = self.values.as_ref().map(|values| values.slice().memory());
        let both = [Some(self.keys.slice().memory()), values];
        both.into_iter().flatten().collect()
    }
}
