//! Requests: the memory that a sort reads and writes.

use super::buffers::Buffers;
use super::gather::Records;
use super::payload::{Payload, Value};
use crate::{Error, Key, Result};
use bytemuck::Pod;
use gpu::{DevicePtr, Slice, SliceMut};
use std::marker::PhantomData;

/// The buffers of a sort: its keys, what moves with them, and where the results go.
/// [`Sorter::sort`](super::Sorter::sort) takes it.
///
/// | sort | request |
/// | --- | --- |
/// | keys | `Request::keys(input, output)` |
/// | pairs | `Request::keys(input, output).values(input, output)` |
/// | keys or pairs in place | `Request::in_place(keys)`, `Request::in_place(keys).values_in_place(values)` |
/// | index | `Request::index(keys, index)` |
/// | records | `Request::records(keys, input, output)` |
/// | index or records, and the sorted keys | `….keys_out(output)` |
/// | the number of keys is read from the device | `….count(count)` |
///
/// A wrong request, such as one with lengths that differ or buffers that overlap, is an error of
/// the sort.
#[derive(Debug)]
#[must_use = "a request sorts nothing until it is given to a sorter"]
pub struct Request<'a, K> {
    /// The parts so far, or the first error.
    parts: Result<Parts>,
    /// Borrows the memory until the sort holds a share in it.
    borrowed: PhantomData<&'a mut K>,
}

/// The device addresses of a request, and its buffers.
#[derive(Debug)]
pub(super) struct Parts {
    pub buffers: Buffers,
    pub keys_in: DevicePtr<u8>,
    /// `None` if the caller does not ask for the sorted keys.
    pub keys_out: Option<DevicePtr<u8>>,
    in_place: bool,
    pub moved: Moved,
    /// Null, or the device address of the number of keys.
    pub device_count: DevicePtr<u64>,
}

/// What moves with the keys.
#[derive(Debug, Clone, Copy)]
pub(super) enum Moved {
    Nothing,
    Values {
        input: DevicePtr<u8>,
        output: DevicePtr<u8>,
        bytes: usize,
    },
    Index(DevicePtr<u32>),
    Records(Records),
}

impl Moved {
    fn payload(self) -> Payload {
        match self {
            Self::Nothing => Payload::None,
            Self::Values { bytes: 4, .. } => Payload::U32,
            Self::Values { .. } => Payload::U64,
            Self::Index(_) => Payload::Index,
            Self::Records(_) => Payload::Records,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Values { .. } => "values",
            Self::Index(_) => "index",
            Self::Records(_) => "records",
        }
    }
}

impl<'a, K: Key> Request<'a, K> {
    /// Sorts `input` into `output`.
    ///
    /// ```
    /// # use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
    /// # use gpusort::SortOptions;
    /// # fn main() -> gpusort::Result<()> {
    /// # let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
    /// # let stream = gpu::Stream::new(&device)?;
    /// # let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// # let bytes = Sorter::scratch_bytes::<u32>(3, Payload::None)?;
    /// # let mut scratch = stream.alloc::<u8>(bytes as usize)?;
    /// # let scratch = scratch.slice_mut();
    /// let input = stream.from_slice(&[9_u32, 4, 7])?;
    /// let mut output = stream.alloc::<u32>(3)?;
    /// let request = Request::keys(input.slice(), output.slice_mut());
    /// sorter.sort(&stream, request, scratch, &SortOptions::new().descending())?;
    /// assert_eq!(stream.to_vec(output.slice())?, [9, 7, 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keys(input: Slice<'a, K>, output: SliceMut<'a, K>) -> Self {
        let sort = Self::of("keys_in", input);
        sort.with(|parts| {
            parts.keys_out = Some(parts.buffers.writes("keys_out", &output)?.cast());
            Ok(())
        })
    }

    /// Sorts `keys` in place.
    ///
    /// ```
    /// # use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
    /// # use gpusort::SortOptions;
    /// # fn main() -> gpusort::Result<()> {
    /// # let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
    /// # let stream = gpu::Stream::new(&device)?;
    /// # let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// # let bytes = Sorter::scratch_bytes::<i64>(3, Payload::None)?;
    /// # let mut scratch = stream.alloc::<u8>(bytes as usize)?;
    /// # let scratch = scratch.slice_mut();
    /// let mut keys = stream.from_slice(&[9_i64, -4, 7])?;
    /// sorter.sort(&stream, Request::in_place(keys.slice_mut()), scratch, &SortOptions::new())?;
    /// assert_eq!(stream.to_vec(keys.slice())?, [-4, 7, 9]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_place(keys: SliceMut<'a, K>) -> Self {
        let mut buffers = Buffers::new(keys.len());
        let address = buffers.writes("keys", &keys);
        Self::from(address.map(|address| Parts {
            keys_in: address.cast(),
            keys_out: Some(address.cast()),
            in_place: true,
            ..Parts::new(buffers)
        }))
    }

    /// Writes the permutation that sorts: `keys[index[0]]` is the first key in order, and so on.
    /// The keys are unchanged. The sort generates the indices 0, 1, 2, … itself.
    ///
    /// ```
    /// # use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
    /// # use gpusort::SortOptions;
    /// # fn main() -> gpusort::Result<()> {
    /// # let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
    /// # let stream = gpu::Stream::new(&device)?;
    /// # let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// # let bytes = Sorter::scratch_bytes::<f32>(3, Payload::Index)?;
    /// # let mut scratch = stream.alloc::<u8>(bytes as usize)?;
    /// # let scratch = scratch.slice_mut();
    /// let keys = stream.from_slice(&[3.0_f32, -1.0, 2.0])?;
    /// let (mut index, mut sorted) = (stream.alloc::<u32>(3)?, stream.alloc::<f32>(3)?);
    /// // Without `keys_out` the sorted keys are not written.
    /// let request = Request::index(keys.slice(), index.slice_mut()).keys_out(sorted.slice_mut());
    /// sorter.sort(&stream, request, scratch, &SortOptions::new())?;
    /// assert_eq!(stream.to_vec(index.slice())?, [1, 2, 0]);
    /// assert_eq!(stream.to_vec(sorted.slice())?, [-1.0, 2.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn index(keys: Slice<'a, K>, index: SliceMut<'a, u32>) -> Self {
        let sort = Self::of("keys", keys);
        sort.with(|parts| {
            parts.moved = Moved::Index(parts.buffers.writes("index", &index)?);
            Ok(())
        })
    }

    /// Moves records of any size to the sorted position of their keys. The sort is an index sort,
    /// followed by one read and one write of each record, in pieces of up to 16 bytes as size and
    /// addresses allow. The keys are unchanged.
    ///
    /// ```
    /// # use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
    /// # use gpusort::SortOptions;
    /// # fn main() -> gpusort::Result<()> {
    /// # let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
    /// # let stream = gpu::Stream::new(&device)?;
    /// # let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// # let bytes = Sorter::scratch_bytes::<u32>(2, Payload::Records)?;
    /// # let mut scratch = stream.alloc::<u8>(bytes as usize)?;
    /// # let scratch = scratch.slice_mut();
    /// let keys = stream.from_slice(&[7_u32, 4])?;
    /// let points = stream.from_slice(&[[0.0_f32, 0.5, 1.0], [2.0, 2.5, 3.0]])?;
    /// let mut sorted = stream.alloc::<[f32; 3]>(2)?;
    /// let request = Request::records(keys.slice(), points.slice(), sorted.slice_mut());
    /// sorter.sort(&stream, request, scratch, &SortOptions::new())?;
    /// assert_eq!(stream.to_vec(sorted.slice())?, [[2.0, 2.5, 3.0], [0.0, 0.5, 1.0]]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn records<R: Pod>(
        keys: Slice<'a, K>,
        input: Slice<'a, R>,
        output: SliceMut<'a, R>,
    ) -> Self {
        let sort = Self::of("keys", keys);
        sort.with(|parts| {
            parts.moved = Moved::Records(Records {
                input: parts.buffers.reads("records", &input)?.cast(),
                output: parts.buffers.writes("records_out", &output)?.cast(),
                bytes: size_of::<R>(),
            });
            Ok(())
        })
    }

    /// Moves the value of each key of [`Request::keys`] to the key's position in `output`.
    ///
    /// ```
    /// # use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
    /// # use gpusort::SortOptions;
    /// # fn main() -> gpusort::Result<()> {
    /// # let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
    /// # let stream = gpu::Stream::new(&device)?;
    /// # let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// # let bytes = Sorter::scratch_bytes::<u32>(2, Payload::U64)?;
    /// # let mut scratch = stream.alloc::<u8>(bytes as usize)?;
    /// # let scratch = scratch.slice_mut();
    /// let (keys, values) = (stream.from_slice(&[7_u32, 4])?, stream.from_slice(&[70_u64, 40])?);
    /// let (mut sorted, mut moved) = (stream.alloc::<u32>(2)?, stream.alloc::<u64>(2)?);
    /// let request = Request::keys(keys.slice(), sorted.slice_mut())
    ///     .values(values.slice(), moved.slice_mut());
    /// sorter.sort(&stream, request, scratch, &SortOptions::new())?;
    /// assert_eq!(stream.to_vec(moved.slice())?, [40, 70]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn values<V: Value>(self, input: Slice<'a, V>, output: SliceMut<'a, V>) -> Self {
        self.with(|parts| {
            parts.needs_none("values")?;
            if parts.in_place {
                return Err(conflict("values", "in_place"));
            }
            parts.moved = Moved::Values {
                input: parts.buffers.reads("values_in", &input)?.cast(),
                output: parts.buffers.writes("values_out", &output)?.cast(),
                bytes: size_of::<V>(),
            };
            Ok(())
        })
    }

    /// Moves the value of each key of [`Request::in_place`] in place.
    ///
    /// ```
    /// # use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
    /// # use gpusort::SortOptions;
    /// # fn main() -> gpusort::Result<()> {
    /// # let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
    /// # let stream = gpu::Stream::new(&device)?;
    /// # let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// # let bytes = Sorter::scratch_bytes::<u32>(2, Payload::U32)?;
    /// # let mut scratch = stream.alloc::<u8>(bytes as usize)?;
    /// # let scratch = scratch.slice_mut();
    /// let mut keys = stream.from_slice(&[7_u32, 4])?;
    /// let mut values = stream.from_slice(&[70_u32, 40])?;
    /// let request = Request::in_place(keys.slice_mut()).values_in_place(values.slice_mut());
    /// sorter.sort(&stream, request, scratch, &SortOptions::new())?;
    /// assert_eq!(stream.to_vec(values.slice())?, [40, 70]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn values_in_place<V: Value>(self, values: SliceMut<'a, V>) -> Self {
        self.with(|parts| {
            parts.needs_none("values_in_place")?;
            if !parts.in_place {
                return Err(conflict("values_in_place", "keys"));
            }
            let address = parts.buffers.writes("values", &values)?.cast();
            parts.moved = Moved::Values {
                input: address,
                output: address,
                bytes: size_of::<V>(),
            };
            Ok(())
        })
    }

    /// Also writes the sorted keys of [`Request::index`] or [`Request::records`].
    pub fn keys_out(self, output: SliceMut<'a, K>) -> Self {
        self.with(|parts| {
            if parts.keys_out.is_some() {
                return Err(conflict("keys_out", "keys"));
            }
            parts.keys_out = Some(parts.buffers.writes("keys_out", &output)?.cast());
            Ok(())
        })
    }

    /// Reads the number of keys from the device when the sort runs, so that the host need not know
    /// it. `count` is one number; a number above the length of the input counts as that length. The
    /// rest of each output is unchanged.
    ///
    /// ```
    /// # use gpusort::cuda::{Payload, Request, Sorter, SorterConfig};
    /// # use gpusort::SortOptions;
    /// # fn main() -> gpusort::Result<()> {
    /// # let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
    /// # let stream = gpu::Stream::new(&device)?;
    /// # let sorter = Sorter::new(&device, SorterConfig::default())?;
    /// # let bytes = Sorter::scratch_bytes::<u32>(4, Payload::None)?;
    /// # let mut scratch = stream.alloc::<u8>(bytes as usize)?;
    /// # let scratch = scratch.slice_mut();
    /// let (input, count) = (stream.from_slice(&[9_u32, 4, 7, 1])?, stream.from_slice(&[3_u64])?);
    /// let mut output = stream.from_slice(&[0_u32; 4])?;
    /// let request = Request::keys(input.slice(), output.slice_mut()).count(count.slice());
    /// sorter.sort(&stream, request, scratch, &SortOptions::new())?;
    /// assert_eq!(stream.to_vec(output.slice())?, [4, 7, 9, 0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn count(self, count: Slice<'a, u64>) -> Self {
        self.with(|parts| {
            parts.device_count = parts.buffers.number("count", &count)?;
            Ok(())
        })
    }

    /// Returns the number of keys, and what moves with them.
    pub(super) fn shape(&self) -> Result<(u64, Payload)> {
        let parts = self.parts.as_ref().map_err(Error::clone)?;
        Ok((parts.buffers.keys() as u64, parts.moved.payload()))
    }

    pub(super) fn into_parts(self) -> Result<Parts> {
        self.parts
    }

    fn of(what: &'static str, keys: Slice<'a, K>) -> Self {
        let mut buffers = Buffers::new(keys.len());
        let address = buffers.reads(what, &keys);
        Self::from(address.map(|keys_in| Parts {
            keys_in: keys_in.cast(),
            ..Parts::new(buffers)
        }))
    }

    fn from(parts: Result<Parts>) -> Self {
        Self {
            parts,
            borrowed: PhantomData,
        }
    }

    fn with(self, add: impl FnOnce(&mut Parts) -> Result<()>) -> Self {
        let parts = self.parts.and_then(|mut parts| {
            add(&mut parts)?;
            Ok(parts)
        });
        Self::from(parts)
    }
}

impl Parts {
    fn new(buffers: Buffers) -> Self {
        Self {
            buffers,
            keys_in: DevicePtr::NULL,
            keys_out: None,
            in_place: false,
            moved: Moved::Nothing,
            device_count: DevicePtr::NULL,
        }
    }

    /// Fails if the request already has a payload.
    fn needs_none(&self, wanted: &'static str) -> Result<()> {
        match self.moved {
            Moved::Nothing => Ok(()),
            other => Err(conflict(wanted, other.name())),
        }
    }
}

fn conflict(first: &'static str, second: &'static str) -> Error {
    Error::Conflict { first, second }
}
