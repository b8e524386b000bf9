//! What a rank brings to an update from its device.

use super::abi;
use crate::frame::{Ids, check_excluded};
use crate::wire::Lists;
use crate::{Cause, List, Pair};
use bytemuck::Pod;
use gpu::{DevicePtr, Memory, Slice};
use sap::{Aabb, Filter};

impl Ids<Slice<'_, u64>> {
    /// Returns a share in the memory of the list, if there is one.
    pub(crate) fn memory(&self) -> gpu::Result<Option<Memory>> {
        match self {
            Self::From(_) => Ok(None),
            Self::Each(ids) => ids.memory().map(Some),
        }
    }

    /// Returns the ids as the kernels take them.
    pub(crate) fn abi(&self) -> abi::Ids {
        match *self {
            Self::From(first) => abi::Ids {
                each: DevicePtr::NULL,
                first,
            },
            Self::Each(ids) => abi::Ids {
                each: ids.device_ptr(),
                first: 0,
            },
        }
    }
}

/// The boxes that a rank brings from the memory of its device, with their ids, and optionally with
/// filters and worlds, which lie there too, and excluded pairs. Ids are unique over all ranks; a
/// rank may bring other boxes in each frame.
///
/// ```
/// use sap::Aabb;
/// use sap_dist::DeviceFrame;
///
/// let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
/// let stream = gpu::Stream::new(&device)?;
/// let boxes = stream.from_slice(&[Aabb::new([0.0; 3], [1.0; 3]); 2])?;
/// let by_offset = DeviceFrame::from_id(1000, boxes.slice()); // ids 1000 and 1001
/// let ids = stream.from_slice(&[3_u64, 7])?;
/// let by_id = DeviceFrame::with_ids(ids.slice(), boxes.slice());
/// assert_eq!((by_offset.len(), by_id.len()), (2, 2));
/// # Ok::<(), gpu::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct DeviceFrame<'a> {
    pub(crate) ids: Ids<Slice<'a, u64>>,
    pub(crate) boxes: Slice<'a, Aabb>,
    pub(crate) filters: Option<Slice<'a, Filter>>,
    pub(crate) worlds: Option<Slice<'a, u32>>,
    pub(crate) excluded: &'a [Pair],
}

/// Returns the address of a list, null where there is none.
pub(crate) fn address<T: Pod>(list: Option<Slice<T>>) -> DevicePtr<T> {
    list.map_or(DevicePtr::NULL, |list| list.device_ptr())
}

impl<'a> DeviceFrame<'a> {
    /// A frame of boxes whose ids are `first..first + boxes.len()`.
    #[must_use]
    pub const fn from_id(first: u64, boxes: Slice<'a, Aabb>) -> Self {
        Self::of(Ids::From(first), boxes)
    }

    /// A frame of boxes with an id each, in the memory of the device, of which each is above the
    /// one before. All ranks then send 8 bytes more for each box that travels.
    #[must_use]
    pub const fn with_ids(ids: Slice<'a, u64>, boxes: Slice<'a, Aabb>) -> Self {
        Self::of(Ids::Each(ids), boxes)
    }

    const fn of(ids: Ids<Slice<'a, u64>>, boxes: Slice<'a, Aabb>) -> Self {
        Self {
            ids,
            boxes,
            filters: None,
            worlds: None,
            excluded: &[],
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

    /// Adds pairs of the host that are never reported, as
    /// [`Frame::excluded`](crate::Frame::excluded). Each update copies them to the device, and then
    /// passes once over the pairs of this rank. All ranks may be given the same list, so that it
    /// need not follow boxes from rank to rank.
    #[must_use]
    pub const fn excluded(self, excluded: &'a [Pair]) -> Self {
        Self { excluded, ..self }
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

    /// Returns all ids unless they are consecutive.
    pub(crate) const fn each_id(&self) -> Option<Slice<'a, u64>> {
        match self.ids {
            Ids::From(_) => None,
            Ids::Each(ids) => Some(ids),
        }
    }

    /// Checks the number of boxes, the lengths of the lists and the order of the excluded pairs.
    pub(crate) fn check(&self) -> Result<(), Cause> {
        let boxes = self.len() as u64;
        let limit = u64::from(u32::MAX);
        if boxes > limit {
            return Err(sap::Error::TooManyBoxes { boxes, limit }.into());
        }
        if let Ids::From(first) = self.ids
            && first.checked_add(boxes).is_none()
        {
            return Err(Cause::IdRange { first, boxes });
        }
        let lists = [
            (List::Ids, self.each_id().map(|list| list.len())),
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
            None => check_excluded(self.excluded),
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
            ids: self.ids.abi(),
            n: self.len() as u64,
        }
    }

    /// Returns shares in the memory of all lists.
    pub(crate) fn memory(&self) -> gpu::Result<Vec<Memory>> {
        let filters = self.filters.map(|list| list.memory());
        let worlds = self.worlds.map(|list| list.memory());
        let ids = self.ids.memory().transpose();
        [Some(self.boxes.memory()), filters, worlds, ids]
            .into_iter()
            .flatten()
            .collect()
    }
}
