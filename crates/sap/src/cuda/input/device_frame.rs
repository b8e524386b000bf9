//! What an update of boxes on the device reads.

use crate::frame::check_lists;
use crate::{Aabb, Aabb64, Filter, Frame, Pair, Result};
use gpu::Slice;

/// The boxes in one of their forms.
#[derive(Clone, Copy)]
pub(crate) enum DeviceBoxes<'a> {
    Plain(Slice<'a, Aabb>),
    Swept(Slice<'a, Aabb>, Slice<'a, Aabb>),
    Exact(Slice<'a, Aabb64>),
}

/// As [`Frame`], with lists that lie on the device; excluded pairs come from the host.
///
/// ```
/// use sap::{Aabb, Backend, BroadPhase, Config, DeviceFrame};
///
/// let config = Config { backend: Backend::Cuda, ..Config::default() };
/// let Ok(mut broad_phase) = BroadPhase::new(config) else { return Ok(()) }; // no GPU here
/// let Some(stream) = broad_phase.stream().cloned() else { return Ok(()) };
/// let boxes = stream.from_slice(&[Aabb::new([0.0; 3], [1.0; 3]); 4])?;
/// let worlds = stream.from_slice(&[0, 0, 7, 7])?;
/// let frame = DeviceFrame::boxes(boxes.slice()).worlds(worlds.slice());
/// assert_eq!(broad_phase.update_device(frame)?.pairs, 2);
/// # Ok::<(), sap::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct DeviceFrame<'a> {
    pub(crate) boxes: DeviceBoxes<'a>,
    pub(crate) filters: Option<Slice<'a, Filter>>,
    pub(crate) worlds: Option<Slice<'a, u32>>,
    pub(crate) excluded: &'a [Pair],
}

impl<'a> DeviceFrame<'a> {
    const fn of(boxes: DeviceBoxes<'a>) -> Self {
        Self {
            boxes,
            filters: None,
            worlds: None,
            excluded: &[],
        }
    }

    /// Boxes as they are.
    #[must_use]
    pub const fn boxes(boxes: Slice<'a, Aabb>) -> Self {
        Self::of(DeviceBoxes::Plain(boxes))
    }

    /// Boxes that move, as [`Frame::swept`]. One end for each start.
    #[must_use]
    pub const fn swept(start: Slice<'a, Aabb>, end: Slice<'a, Aabb>) -> Self {
        Self::of(DeviceBoxes::Swept(start, end))
    }

    /// Boxes of `f64`, as [`Frame::exact`].
    #[must_use]
    pub const fn exact(boxes: Slice<'a, Aabb64>) -> Self {
        Self::of(DeviceBoxes::Exact(boxes))
    }

    /// The same with a filter for each box.
    #[must_use]
    pub const fn filters(self, filters: Slice<'a, Filter>) -> Self {
        Self {
            filters: Some(filters),
            ..self
        }
    }

    /// The same with a world for each box.
    #[must_use]
    pub const fn worlds(self, worlds: Slice<'a, u32>) -> Self {
        Self {
            worlds: Some(worlds),
            ..self
        }
    }

    /// The same with pairs never to report, on the host: `a < b` in each, sorted by `(a, b)`.
    #[must_use]
    pub const fn excluded(self, excluded: &'a [Pair]) -> Self {
        Self { excluded, ..self }
    }

    /// Number of boxes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.boxes {
            DeviceBoxes::Plain(boxes) | DeviceBoxes::Swept(boxes, _) => boxes.len(),
            DeviceBoxes::Exact(boxes) => boxes.len(),
        }
    }

    /// Whether there is no box.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As for a frame on the host.
    pub(crate) fn check(&self) -> Result<()> {
        let ends = match self.boxes {
            DeviceBoxes::Swept(_, end) => Some(end.len()),
            _ => None,
        };
        let (filters, worlds) = (
            self.filters.map(|list| list.len()),
            self.worlds.map(|list| list.len()),
        );
        check_lists(self.len(), ends, filters, worlds)?;
        Frame::boxes(&[])
            .excluded(self.excluded)
            .check_excluded(true)
    }
}

impl<'a> From<Slice<'a, Aabb>> for DeviceFrame<'a> {
    fn from(boxes: Slice<'a, Aabb>) -> Self {
        Self::boxes(boxes)
    }
}
