//! Where an update reads from: a frame on the host, or one on the device.

use crate::cuda::input::device_frame::{DeviceBoxes, DeviceFrame};
use crate::frame::Boxes;
use crate::{Aabb, Filter, Frame, Invalid, InvalidReason, Pair, Result};
use gpu::{Slice, Stream};

/// A frame that comes from the host, or lies on the device already.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    Host(&'a Frame<'a>),
    Device(&'a DeviceFrame<'a>),
}

/// A list of a frame.
pub(crate) enum List<'a, T> {
    Host(&'a [T]),
    Device(Slice<'a, T>),
}

impl<'a> Source<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Host(frame) => frame.len(),
            Self::Device(frame) => frame.len(),
        }
    }

    pub(crate) const fn is_exact(&self) -> bool {
        match self {
            Self::Host(frame) => matches!(frame.boxes, Boxes::Exact(_)),
            Self::Device(frame) => matches!(frame.boxes, DeviceBoxes::Exact(_)),
        }
    }

    pub(crate) const fn is_swept(&self) -> bool {
        match self {
            Self::Host(frame) => matches!(frame.boxes, Boxes::Swept(..)),
            Self::Device(frame) => matches!(frame.boxes, DeviceBoxes::Swept(..)),
        }
    }

    pub(crate) fn filters(&self) -> Option<List<'a, Filter>> {
        match self {
            Self::Host(frame) => frame.filters.map(List::Host),
            Self::Device(frame) => frame.filters.map(List::Device),
        }
    }

    pub(crate) fn worlds(&self) -> Option<List<'a, u32>> {
        match self {
            Self::Host(frame) => frame.worlds.map(List::Host),
            Self::Device(frame) => frame.worlds.map(List::Device),
        }
    }

    pub(crate) const fn excluded(&self) -> &'a [Pair] {
        match self {
            Self::Host(frame) => frame.excluded,
            Self::Device(frame) => frame.excluded,
        }
    }

    /// The bad boxes by what the kernels counted: how many, and `2^32` less the index of the first.
    pub(crate) fn invalid(
        &self,
        stream: &Stream,
        count: u64,
        first_code: u64,
    ) -> Result<Option<Invalid>> {
        if count == 0 {
            return Ok(None);
        }
        let first = ((1 << 32) - first_code) as usize;
        let one = |boxes: Slice<Aabb>| -> Result<_> {
            Ok(stream.to_vec(boxes.range(first..=first)?)?[0].check())
        };
        let checked = match self {
            Self::Host(frame) => match frame.boxes {
                Boxes::Plain(boxes) => boxes[first].check(),
                Boxes::Swept(start, end) => start[first].check().and_then(|()| end[first].check()),
                Boxes::Exact(boxes) => boxes[first].check(),
            },
            Self::Device(frame) => match frame.boxes {
                DeviceBoxes::Plain(boxes) => one(boxes)?,
                DeviceBoxes::Swept(start, end) => match one(start)? {
                    Ok(()) => one(end)?,
                    reason => reason,
                },
                DeviceBoxes::Exact(boxes) => stream.to_vec(boxes.range(first..=first)?)?[0].check(),
            },
        };
        // A box on the device may have been mended in the meantime; that it was bad stands.
        let reason = checked.err().unwrap_or(InvalidReason::NanMin { axis: 0 });
        Ok(Some(Invalid {
            count,
            first,
            reason,
        }))
    }
}
