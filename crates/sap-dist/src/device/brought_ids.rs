//! The ids that a rank brought to its last update, on its device.

use super::frame::DeviceFrame;
use super::kernels::Kernels;
use super::survey::Surveyed;
use crate::Pair;
use crate::frame::Ids;
use gpu::{Buffer, ByValue, Slice, Stream, args};

/// The ids of a rank's boxes.
pub(crate) enum Brought {
    /// Consecutive ones: the first, and how many.
    From(u64, usize),
    Each(Buffer<u64>),
}

impl Brought {
    pub(crate) const NOTHING: Self = Self::From(0, 0);

    /// Copies the ids of a frame: its list may be overwritten before the next update.
    pub(crate) fn of(stream: &Stream, frame: &DeviceFrame) -> gpu::Result<Self> {
        Ok(match frame.ids {
            Ids::From(first) => Self::From(first, frame.len()),
            Ids::Each(ids) => {
                let mut copy = stream.alloc(ids.len())?;
                stream.copy(copy.slice_mut(), ids)?;
                Self::Each(copy)
            }
        })
    }

    /// Returns the list that the ids of a frame are compared with, if they can be the same.
    pub(crate) fn comparable(&self, frame: &DeviceFrame) -> Option<Slice<'_, u64>> {
        match (self, frame.ids) {
            (Self::Each(last), Ids::Each(ids)) if last.len() == ids.len() => Some(last.slice()),
            _ => None,
        }
    }

    /// Tells whether a frame, of which this is the survey, has other ids.
    pub(crate) fn differs(&self, frame: &DeviceFrame, survey: &Surveyed) -> bool {
        match (self, frame.ids) {
            (&Self::From(last, boxes), Ids::From(first)) => (last, boxes) != (first, frame.len()),
            _ => self.comparable(frame).is_none() || survey.has_other_ids(),
        }
    }

    /// Returns the events of boxes that are not among these, in any order.
    pub(crate) fn moved(&self, kernels: &Kernels, events: Slice<Pair>) -> gpu::Result<Vec<Pair>> {
        match self {
            Self::From(first, boxes) => moved(kernels, events, (Ids::From(*first), *boxes)),
            Self::Each(ids) => moved(kernels, events, (Ids::Each(ids.slice()), ids.len())),
        }
    }
}

/// Returns the events whose boxes `a` are not among the boxes of these ids, in any order.
pub(crate) fn moved(
    kernels: &Kernels,
    events: Slice<Pair>,
    (ids, boxes): (Ids<Slice<u64>>, usize),
) -> gpu::Result<Vec<Pair>> {
    let stream = &kernels.stream;
    let mut moved = stream.alloc::<Pair>(events.len())?;
    let mut count = stream.alloc_zeroed::<u64>(1)?;
    let (memory, ids) = (ids.memory()?, ByValue(ids.abi()));
    stream.using(memory.as_slice(), || {
        // SAFETY: there are as many ids as boxes, and there is memory for all events.
        unsafe {
            kernels.for_each(
                &kernels.moved,
                events.len(),
                &args![
                    events,
                    events.len() as u64,
                    ids,
                    boxes as u64,
                    moved.slice_mut(),
                    count.slice_mut()
                ],
            )
        }
    })?;
    let count = stream.to_vec(count.slice())?[0] as usize;
    stream.to_vec(moved.range(..count)?)
}
