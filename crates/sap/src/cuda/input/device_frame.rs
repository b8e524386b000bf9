//! The frame of boxes on the device.

use crate::cuda::input::source::{BoxLists, List, Source};
use crate::frame::check_lists;
use crate::{Aabb, Aabb64, Filter, Frame, Pair, Result};
use gpu::Slice;

/// A [`Frame`] whose lists are on the device. Excluded pairs come from the host.
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
    pub(crate) source: Source<'a>,
}

impl<'a> DeviceFrame<'a> {
    const fn of(boxes: BoxLists<'a>) -> Self {
        Self {
            source: Source::new(boxes),
        }
    }

    /// Returns a frame of boxes that do not move within it.
    #[must_use]
    pub const fn boxes(boxes: Slice<'a, Aabb>) -> Self {
        Self::of(BoxLists::Plain(List::Device(boxes)))
    }

    /// Returns a frame of boxes that move, as [`Frame::swept`]. There is one end for each start.
    #[must_use]
    pub const fn swept(start: Slice<'a, Aabb>, end: Slice<'a, Aabb>) -> Self {
        Self::of(BoxLists::Swept(List::Device(start), List::Device(end)))
    }

    /// Returns a frame of `f64` boxes, as [`Frame::exact`].
    #[must_use]
    pub const fn exact(boxes: Slice<'a, Aabb64>) -> Self {
        Self::of(BoxLists::Exact(List::Device(boxes)))
    }

    /// Sets a filter for each box.
    #[must_use]
    pub const fn filters(mut self, filters: Slice<'a, Filter>) -> Self {
        self.source.filters = Some(List::Device(filters));
        self
    }

    /// Sets a world for each box.
    #[must_use]
    pub const fn worlds(mut self, worlds: Slice<'a, u32>) -> Self {
        self.source.worlds = Some(List::Device(worlds));
        self
    }

    /// Sets pairs never to report, on the host: `a < b` in each, sorted by `(a, b)`.
    #[must_use]
    pub const fn excluded(mut self, excluded: &'a [Pair]) -> Self {
        self.source.excluded = excluded;
        self
    }

    /// Returns the number of boxes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.source.len()
    }

    /// Tells whether there is no box.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks the lengths of the lists.
    pub(crate) fn check_lengths(&self) -> Result<()> {
        let source = &self.source;
        let ends = match source.boxes {
            BoxLists::Swept(_, end) => Some(end.len()),
            _ => None,
        };
        let filters = source.filters.map(|list| list.len());
        let worlds = source.worlds.map(|list| list.len());
        check_lists(self.len(), ends, filters, worlds)
    }

    /// Returns a frame of no boxes with the excluded pairs, to check these.
    pub(crate) fn only_excluded(&self) -> Frame<'a> {
        Frame::boxes(&[]).excluded(self.source.excluded)
    }
}

impl<'a> From<Slice<'a, Aabb>> for DeviceFrame<'a> {
    fn from(boxes: Slice<'a, Aabb>) -> Self {
        Self::boxes(boxes)
    }
}
