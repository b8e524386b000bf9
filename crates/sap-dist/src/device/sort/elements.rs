//! Keys on the device of a rank, with a value each if values are sorted too. They are bytes here,
//! so that what all types share is compiled once.

use crate::device::abi::Run;
use bytemuck::Pod;
use gpu::{Buffer, DevicePtr, Memory, Scratch, Slice, SliceMut, Stream};
use gpusort::{Key, KeyType};

/// What keys and values are.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) key: KeyType,
    /// The bytes of a value, or 0 if there are only keys.
    pub(super) value_bytes: usize,
}

impl Form {
    pub(super) fn new<K: Key, V: Pod>(has_values: bool) -> Self {
        Self {
            key: K::TYPE,
            value_bytes: if has_values { size_of::<V>() } else { 0 },
        }
    }

    pub(super) fn key_bytes(self) -> usize {
        self.key.bits() as usize / 8
    }

    /// Returns `length` of the elements at these addresses, from the one at `start` on.
    pub(super) fn run(
        self,
        [keys, values]: [DevicePtr<u8>; 2],
        start: usize,
        length: usize,
    ) -> Run {
        Run {
            keys: keys.byte_add((start * self.key_bytes()) as u64),
            values: values.byte_add((start * self.value_bytes) as u64),
            length: length as u64,
        }
    }
}

/// Elements in some memory.
pub(super) struct Elements<'a> {
    pub(super) form: Form,
    pub(super) keys: SliceMut<'a, u8>,
    /// The value of each key, or nothing.
    pub(super) values: SliceMut<'a, u8>,
}

impl<'a> Elements<'a> {
    /// Elements in these buffers.
    pub(super) fn of<K: Pod, V: Pod>(
        (keys, values): &'a mut (Buffer<K>, Buffer<V>),
        form: Form,
    ) -> gpu::Result<Self> {
        Ok(Self {
            form,
            keys: keys.slice_mut().cast()?,
            values: values.slice_mut().cast()?,
        })
    }

    /// Returns the same elements for a shorter time.
    pub(super) fn reborrow(&mut self) -> Elements<'_> {
        Elements {
            form: self.form,
            keys: self.keys.reborrow(),
            values: self.values.reborrow(),
        }
    }

    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        self.keys.len() / self.form.key_bytes()
    }

    /// Returns the keys to read.
    pub(super) fn keys(&self) -> Slice<'_, u8> {
        self.keys.as_slice()
    }

    /// Returns `length` elements from the one at `start` on, which are in order.
    pub(super) fn run(&self, start: usize, length: usize) -> Run {
        let all = [self.keys.device_ptr(), self.values.device_ptr()];
        self.form.run(all, start, length)
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
    /// Returns memory for `count` elements.
    pub(super) fn reserve(
        &mut self,
        stream: &Stream,
        count: usize,
        form: Form,
    ) -> gpu::Result<Elements<'_>> {
        Ok(Elements {
            form,
            keys: self.keys.reserve(stream, count * form.key_bytes())?,
            values: self.values.reserve(stream, count * form.value_bytes)?,
        })
    }
}
