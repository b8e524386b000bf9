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

    /// Returns a run whose element 0 is `number` elements before the first of this one.
    pub(super) fn element(self, run: Run, number: u64) -> Run {
        let before = |address: DevicePtr<u8>, bytes: usize| {
            address.byte_add((number * bytes as u64).wrapping_neg())
        };
        Run {
            keys: before(run.keys, self.key_bytes()),
            values: before(run.values, self.value_bytes),
            ..run
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
        let form = self.form;
        Run {
            keys: (self.keys.device_ptr()).byte_add((start * form.key_bytes()) as u64),
            values: (self.values.device_ptr()).byte_add((start * form.value_bytes) as u64),
            length: length as u64,
        }
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
