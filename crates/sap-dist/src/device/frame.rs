//! What a rank brings to an update from its device.

use super::abi;
use crate::wire::Lists;
use crate::{Cause, List};
use bytemuck::Pod;
use gpu::{DevicePtr, Memory, Slice};
use sap::{Aabb, Filter};

/// The boxes that a rank brings from the memory of its device, with consecutive ids, and optionally
/// with filters and worlds, which lie there too.
///
/// ```
/// use sap::Aabb;
/// use sap_dist::DeviceFrame;
///
/// let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
/// let stream = gpu::Stream::new(&device)?;
/// let boxes = stream.from_slice(&[Aabb::new([0.0; 3], [1.0; 3]); 2])?;
/// let frame = DeviceFrame::from_id(1000, boxes.slice()); // ids 1000 and 1001
/// assert_eq!(frame.len(), 2);
/// # Ok::<(), gpu::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct DeviceFrame<'a> {
    pub(crate) first: u64,
    pub(crate) boxes: Slice<'a, Aabb>,
    pub(crate) filters: Option<Slice<'a, Filter>>,
    pub(crate) worlds: Option<Slice<'a, u32>>,
}

/// Returns the address of a list, null where there is none.
pub(crate) fn address<T: Pod>(list: Option<Slice<T>>) -> DevicePtr<T> {
    list.map_or(DevicePtr::NULL, |list| list.device_ptr())
}

impl<'a> DeviceFrame<'a> {
    /// A frame of boxes whose ids are `first..first + boxes.len()`.
    #[must_use]
    pub const fn from_id(first: u64, boxes: Slice<'a, Aabb>) -> Self {
        Self {
            first,
            boxes,
            filters: None,
            worlds: None,
        }
    }

    /// Adds a filter for each box, as [`Frame::filters`](crate::Frame::filters).
    #[must_use]
    pub const fn filters(self, filters: Slice<'a, Filter>) -> Self {
        Self {
            filters: Some(filters),
            ..self
        }
    }

    /// Adds a world for each box, as [`Frame::worlds`](crate::Frame::worlds).
    #[must_use]
    pub const fn worlds(self, worlds: Slice<'a, u32>) -> Self {
        Self {
            worlds: Some(worlds),
            ..self
        }
    }

    /// Returns the number of boxes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.boxes.len()
    }

    /// Tells whether this rank brings no boxes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.boxes.is_empty()
    }

    pub(crate) const fn lists(&self) -> Lists {
        Lists {
            filters: self.filters.is_some(),
            worlds: self.worlds.is_some(),
        }
    }

    /// Checks the number of boxes, the ids and the lengths of the lists.
    pub(crate) fn check(&self) -> Result<(), Cause> {
        let (first, boxes) = (self.first, self.len() as u64);
        let limit = u64::from(u32::MAX);
        if boxes > limit {
            return Err(sap::Error::TooManyBoxes { boxes, limit }.into());
        }
        if first.checked_add(boxes).is_none() {
            return Err(Cause::IdRange { first, boxes });
        }
        let lists = [
            (List::Filters, self.filters.map(|list| list.len())),
            (List::Worlds, self.worlds.map(|list| list.len())),
        ];
        match lists.into_iter().find_map(|(what, given)| {
            let given = given? as u64;
            (given != boxes).then_some((what, given))
        }) {
            Some((what, given)) => Err(Cause::LengthMismatch {
                what,
                expected: boxes,
                given,
            }),
            None => Ok(()),
        }
    }

    /// Returns the frame as the engine takes it.
    pub(crate) fn engine(&self) -> sap::DeviceFrame<'a> {
        let mut frame = sap::DeviceFrame::boxes(self.boxes);
        if let Some(filters) = self.filters {
            frame = frame.filters(filters);
        }
        if let Some(worlds) = self.worlds {
            frame = frame.worlds(worlds);
        }
        frame
    }

    /// Returns the frame as the kernels take it.
    pub(crate) fn abi(&self) -> abi::Frame {
        abi::Frame {
            boxes: self.boxes.device_ptr(),
            filters: address(self.filters),
            worlds: address(self.worlds),
            n: self.len() as u64,
        }
    }

    /// Returns shares in the memory of all lists.
    pub(crate) fn memory(&self) -> gpu::Result<Vec<Memory>> {
        let filters = self.filters.map(|list| list.memory());
        let worlds = self.worlds.map(|list| list.memory());
        [Some(self.boxes.memory()), filters, worlds]
            .into_iter()
            .flatten()
            .collect()
    }
}
