//! The input of an update, from the host or from the device.

use crate::frame::Boxes;
use crate::{Aabb, Aabb64, Filter, Frame, Invalid, InvalidReason, Pair, Result};
use bytemuck::Pod;
use gpu::{Slice, Stream};

/// A list of a frame.
#[derive(Clone, Copy)]
pub(crate) enum List<'a, T> {
    Host(&'a [T]),
    Device(Slice<'a, T>),
}

impl<T: Pod> List<'_, T> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Host(list) => list.len(),
            Self::Device(list) => list.len(),
        }
    }

    pub(crate) const fn is_on_host(&self) -> bool {
        matches!(self, Self::Host(_))
    }

    /// Returns one element. Waits if it is on the device.
    fn get(&self, stream: &Stream, index: usize) -> Result<T> {
        match self {
            Self::Host(list) => Ok(list[index]),
            Self::Device(list) => Ok(stream.to_vec(list.range(index..=index)?)?[0]),
        }
    }
}

/// Boxes in one of their forms.
#[derive(Clone, Copy)]
pub(crate) enum BoxLists<'a> {
    Plain(List<'a, Aabb>),
    /// Starts and ends.
    Swept(List<'a, Aabb>, List<'a, Aabb>),
    Exact(List<'a, Aabb64>),
}

/// The input of an update.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) boxes: BoxLists<'a>,
    pub(crate) filters: Option<List<'a, Filter>>,
    pub(crate) worlds: Option<List<'a, u32>>,
    pub(crate) excluded: &'a [Pair],
    pub(crate) changed: Option<&'a [u32]>,
}

impl<'a> From<&Frame<'a>> for Source<'a> {
    fn from(frame: &Frame<'a>) -> Self {
        Self {
            boxes: match frame.boxes {
                Boxes::Plain(boxes) => BoxLists::Plain(List::Host(boxes)),
                Boxes::Swept(start, end) => BoxLists::Swept(List::Host(start), List::Host(end)),
                Boxes::Exact(boxes) => BoxLists::Exact(List::Host(boxes)),
            },
            filters: frame.filters.map(List::Host),
            worlds: frame.worlds.map(List::Host),
            excluded: frame.excluded,
            changed: frame.changed,
        }
    }
}

impl<'a> Source<'a> {
    pub(crate) const fn new(boxes: BoxLists<'a>) -> Self {
        Self {
            boxes,
            filters: None,
            worlds: None,
            excluded: &[],
            changed: None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self.boxes {
            BoxLists::Plain(boxes) | BoxLists::Swept(boxes, _) => boxes.len(),
            BoxLists::Exact(boxes) => boxes.len(),
        }
    }

    pub(crate) const fn is_on_host(&self) -> bool {
        match self.boxes {
            BoxLists::Plain(boxes) | BoxLists::Swept(boxes, _) => boxes.is_on_host(),
            BoxLists::Exact(boxes) => boxes.is_on_host(),
        }
    }

    pub(crate) const fn is_exact(&self) -> bool {
        matches!(self.boxes, BoxLists::Exact(_))
    }

    /// Returns what is known of the invalid boxes, from the counters of the kernels: their count,
    /// and `2^32` less the index of the first.
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
        let checked = match self.boxes {
            BoxLists::Plain(boxes) => boxes.get(stream, first)?.check(),
            BoxLists::Swept(start, end) => match start.get(stream, first)?.check() {
                Ok(()) => end.get(stream, first)?.check(),
                reason => reason,
            },
            BoxLists::Exact(boxes) => boxes.get(stream, first)?.check(),
        };
        // A box on the device may have been mended since, but it was invalid in this update.
        let reason = checked.err().unwrap_or(InvalidReason::NanMin { axis: 0 });
        Ok(Some(Invalid {
            count,
            first,
            reason,
        }))
    }
}
