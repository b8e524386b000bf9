//! Keys on the device of a rank, with a value each if values are sorted too.

use bytemuck::Pod;
use gpu::{Buffer, DevicePtr, Memory, Scratch, SliceMut, Stream};

/// Elements in some memory.
pub(super) struct Elements<'a, K: Pod, V: Pod> {
    pub(super) keys: SliceMut<'a, K>,
    /// The value of each key, or nothing.
    pub(super) values: SliceMut<'a, V>,
    pub(super) has_values: bool,
}

impl<'a, K: Pod, V: Pod> Elements<'a, K, V> {
    /// Elements in these buffers.
    pub(super) fn of((keys, values): &'a mut (Buffer<K>, Buffer<V>), has_values: bool) -> Self {
        Self {
            keys: keys.slice_mut(),
            values: values.slice_mut(),
            has_values,
        }
    }

    /// Returns the addresses of keys and values.
    pub(super) fn addresses(&self) -> [DevicePtr<u8>; 2] {
        [
            self.keys.device_ptr().cast(),
            self.values.device_ptr().cast(),
        ]
    }

    /// Returns shares in the memory of both.
    pub(super) fn memory(&self) -> gpu::Result<[Memory; 2]> {
        Ok([self.keys.memory()?, self.values.memory()?])
    }
}

/// Memory for elements that is kept for later sorts: where other devices reach it, new memory takes
/// milliseconds.
#[derive(Default)]
pub(super) struct Kept {
    keys: Scratch,
    values: Scratch,
}

impl Kept {
    /// Returns memory for `count` keys, and as many values or none.
    pub(super) fn reserve<K: Pod, V: Pod>(
        &mut self,
        stream: &Stream,
        count: usize,
        has_values: bool,
    ) -> gpu::Result<Elements<'_, K, V>> {
        let values = if has_values { count } else { 0 };
        let keys = self.keys.reserve(stream, count * size_of::<K>())?;
        let values = self.values.reserve(stream, values * size_of::<V>())?;
        Ok(Elements {
            keys: keys.cast()?,
            values: values.cast()?,
            has_values,
        })
    }
}
