//! Requests: the buffers that a sort reads and writes.

use super::params::Target;
use super::scratch::Payload;
use crate::{Error, Key, Result};
use std::marker::PhantomData;
use wgpu_device::wgpu::{Buffer, BufferUsages};

/// The buffers of a sort on the device: its keys, what moves with them, and where the results go.
/// [`Sorter::encode`](super::Sorter::encode) takes it.
///
/// | sort | request |
/// | --- | --- |
/// | keys | `Request::keys(n, input, output)` |
/// | pairs | `Request::keys(n, input, output).values(input, output)` |
/// | index | `Request::index(n, keys, index)` |
/// | index and the sorted keys | `Request::index(n, keys, index).keys_out(output)` |
///
/// Input and output may be the same buffer; two are faster. Buffers need
/// [`BufferUsages::STORAGE`] and may be longer than `n` elements; what lies beyond is unchanged.
/// Keys of 64 bits are two words, the low one first.
#[derive(Debug, Clone, Copy)]
#[must_use = "a request sorts nothing until it is given to a sorter"]
pub struct Request<'a, K> {
    pub(super) n: u64,
    pub(super) keys_in: &'a Buffer,
    pub(super) keys_out: Option<&'a Buffer>,
    pub(super) values_in: Option<&'a Buffer>,
    pub(super) values_out: Option<&'a Buffer>,
    /// Where the number of keys is, if the device has counted them.
    pub(super) counted: Option<(&'a Buffer, u64)>,
    key: PhantomData<K>,
}

impl<'a, K: Key> Request<'a, K> {
    /// Sorts the first `n` keys of `input` into `output`.
    pub fn keys(n: u64, input: &'a Buffer, output: &'a Buffer) -> Self {
        Self {
            n,
            keys_in: input,
            keys_out: Some(output),
            values_in: None,
            values_out: None,
            counted: None,
            key: PhantomData,
        }
    }

    /// Moves the `u32` value of each key of [`Request::keys`] to the key's position in `output`.
    pub fn values(self, input: &'a Buffer, output: &'a Buffer) -> Self {
        Self {
            values_in: Some(input),
            values_out: Some(output),
            ..self
        }
    }

    /// Writes the permutation that sorts the first `n` keys as `u32`; the keys are unchanged.
    pub fn index(n: u64, keys: &'a Buffer, index: &'a Buffer) -> Self {
        Self {
            n,
            keys_in: keys,
            keys_out: None,
            values_in: None,
            values_out: Some(index),
            counted: None,
            key: PhantomData,
        }
    }

    /// Has [`Request::index`] write the sorted keys too.
    pub fn keys_out(self, output: &'a Buffer) -> Self {
        Self {
            keys_out: Some(output),
            ..self
        }
    }

    /// Sorts as many keys as the `u32` at an offset of a buffer says, at most the `n` of the
    /// request. It is read when the sort runs.
    ///
    /// The buffer needs [`BufferUsages::STORAGE`], and the offset is a multiple of 4. The time
    /// depends on the number found, and a little on `n`, whose workgroups all start.
    pub fn counted(self, count: &'a Buffer, offset: u64) -> Self {
        Self {
            counted: Some((count, offset)),
            ..self
        }
    }

    /// Returns where the last pass writes a list: not to what it may read.
    pub(super) fn target(&self, output: Option<&Buffer>) -> Target {
        match output {
            None => Target::None,
            Some(out) if out == self.keys_in || Some(out) == self.values_in => Target::Scratch,
            Some(_) => Target::Output,
        }
    }

    pub(super) fn payload(&self) -> Payload {
        match (self.values_in, self.values_out) {
            (Some(_), _) => Payload::U32,
            (None, Some(_)) => Payload::Index,
            (None, None) => Payload::None,
        }
    }

    /// Checks the lengths and usages of the buffers.
    pub(super) fn check(&self) -> Result<()> {
        let key = size_of::<K>() as u64;
        let buffers = [
            ("keys_in", Some(self.keys_in), key),
            ("keys_out", self.keys_out, key),
            ("values_in", self.values_in, 4),
            ("values_out", self.values_out, 4),
        ];
        for (what, buffer, bytes) in buffers {
            let Some(buffer) = buffer else { continue };
            if buffer.size() / bytes < self.n {
                return Err(Error::LengthMismatch {
                    keys: usize::try_from(self.n).unwrap_or(usize::MAX),
                    values: usize::try_from(buffer.size() / bytes).unwrap_or(usize::MAX),
                });
            }
            if !buffer.usage().contains(BufferUsages::STORAGE) {
                return Err(Error::NotStorage { what });
            }
        }
        if let Some((buffer, offset)) = self.counted {
            let fits = offset.is_multiple_of(4) && offset + 4 <= buffer.size();
            if !fits || !buffer.usage().contains(BufferUsages::STORAGE) {
                return Err(Error::NoCount {
                    offset,
                    bytes: buffer.size(),
                    usage: buffer.usage(),
                });
            }
        }
        Ok(())
    }
}
