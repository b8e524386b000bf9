//! The frame of boxes in buffers of `wgpu`.

use crate::frame::check_lists;
use crate::{Aabb, Aabb64, Error, Filter, Frame, Pair, Result};
use wgpu_device::wgpu::{Buffer, BufferUsages};

/// The boxes of a frame in one of their forms.
#[derive(Debug, Clone, Copy)]
pub(super) enum BoxBuffers<'a> {
    Plain(&'a Buffer),
    Swept(&'a Buffer, &'a Buffer),
    Exact(&'a Buffer),
}

/// A [`Frame`] whose lists are in buffers of the device of a
/// [`BroadPhase::on_wgpu`](crate::BroadPhase::on_wgpu). Excluded pairs come from the host.
///
/// Each buffer begins with its list and may be longer. It needs [`BufferUsages::STORAGE`], and is
/// only read. One of another device is an error, but `wgpu` may take one of another
/// [`Instance`](wgpu_device::wgpu::Instance) for one of its own.
///
/// ```
/// use sap::{Aabb, BroadPhase, Config, WgpuFrame};
/// use wgpu_device::{Adapters, BufferUsages, Device};
///
/// let Ok(device) = Device::new(Adapters::Any) else { return Ok(()) }; // no driver here
/// let boxes = [Aabb::new([0.0; 3], [1.0; 3]); 4];
/// let boxes = device.upload("boxes", &boxes, BufferUsages::STORAGE)?;
/// let worlds = device.upload("worlds", &[0, 0, 7, 7], BufferUsages::STORAGE)?;
/// let mut broad_phase = BroadPhase::on_wgpu(&device, Config::default())?;
/// let frame = WgpuFrame::boxes(&boxes, 4).worlds(&worlds);
/// assert_eq!(broad_phase.update_wgpu(frame)?.pairs, 2);
/// # Ok::<(), sap::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct WgpuFrame<'a> {
    pub(super) boxes: BoxBuffers<'a>,
    pub(super) n: usize,
    pub(super) filters: Option<&'a Buffer>,
    pub(super) worlds: Option<&'a Buffer>,
    pub(super) excluded: &'a [Pair],
}

impl<'a> WgpuFrame<'a> {
    const fn of(boxes: BoxBuffers<'a>, n: usize) -> Self {
        Self {
            boxes,
            n,
            filters: None,
            worlds: None,
            excluded: &[],
        }
    }

    /// Returns a frame of the first `n` boxes of a buffer: six `f32` each, as [`Aabb`].
    #[must_use]
    pub const fn boxes(buffer: &'a Buffer, n: usize) -> Self {
        Self::of(BoxBuffers::Plain(buffer), n)
    }

    /// Returns a frame of boxes that move, as [`Frame::swept`]: the first `n` of a buffer of starts
    /// and of one of ends, in the layout of [`WgpuFrame::boxes`].
    ///
    /// ```
    /// use sap::{Aabb, BroadPhase, Config, WgpuFrame};
    /// use wgpu_device::{Adapters, BufferUsages, Device};
    ///
    /// let Ok(device) = Device::new(Adapters::Any) else { return Ok(()) }; // no driver here
    /// let at = |x: f32| Aabb::new([x, 0.0, 0.0], [x + 1.0, 1.0, 1.0]);
    /// let start = device.upload("start", &[at(5.0), at(0.0)], BufferUsages::STORAGE)?;
    /// let end = device.upload("end", &[at(5.0), at(9.0)], BufferUsages::STORAGE)?;
    /// let mut broad_phase = BroadPhase::on_wgpu(&device, Config::default())?;
    /// let report = broad_phase.update_wgpu(WgpuFrame::swept(&start, &end, 2))?;
    /// assert_eq!(report.pairs, 1); // the second box passes through the first
    /// # Ok::<(), sap::Error>(())
    /// ```
    #[must_use]
    pub const fn swept(start: &'a Buffer, end: &'a Buffer, n: usize) -> Self {
        Self::of(BoxBuffers::Swept(start, end), n)
    }

    /// Returns a frame of the first `n` `f64` boxes of a buffer, as [`Frame::exact`]: six `f64`
    /// each, as [`Aabb64`]. The device needs no `f64` of its own.
    ///
    /// ```
    /// use sap::{Aabb64, BroadPhase, Config, WgpuFrame};
    /// use wgpu_device::{Adapters, BufferUsages, Device};
    ///
    /// let Ok(device) = Device::new(Adapters::Any) else { return Ok(()) }; // no driver here
    /// let boxes = [
    ///     Aabb64::new([0.0; 3], [1.0; 3]),
    ///     Aabb64::new([1.0 + 1e-12, 0.0, 0.0], [2.0; 3]),
    /// ];
    /// let boxes = device.upload("boxes", &boxes, BufferUsages::STORAGE)?;
    /// let mut broad_phase = BroadPhase::on_wgpu(&device, Config::default())?;
    /// assert_eq!(broad_phase.update_wgpu(WgpuFrame::exact(&boxes, 2))?.pairs, 0);
    /// # Ok::<(), sap::Error>(())
    /// ```
    #[must_use]
    pub const fn exact(buffer: &'a Buffer, n: usize) -> Self {
        Self::of(BoxBuffers::Exact(buffer), n)
    }

    /// Sets a [`Filter`] for each box: four `u32` each.
    #[must_use]
    pub const fn filters(self, filters: &'a Buffer) -> Self {
        Self {
            filters: Some(filters),
            ..self
        }
    }

    /// Sets a world for each box: a `u32` each.
    #[must_use]
    pub const fn worlds(self, worlds: &'a Buffer) -> Self {
        Self {
            worlds: Some(worlds),
            ..self
        }
    }

    /// Sets pairs never to report, on the host: `a < b` in each, sorted by `(a, b)`.
    #[must_use]
    pub const fn excluded(self, excluded: &'a [Pair]) -> Self {
        Self { excluded, ..self }
    }

    /// Returns the number of boxes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.n
    }

    /// Tells whether there is no box.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Returns the buffers, each with its name and the bytes of an element.
    pub(super) fn buffers(&self) -> impl Iterator<Item = (&'static str, &'a Buffer, u64)> {
        let (boxes, ends, bytes) = match self.boxes {
            BoxBuffers::Plain(boxes) => (boxes, None, size_of::<Aabb>()),
            BoxBuffers::Swept(start, end) => (start, Some(end), size_of::<Aabb>()),
            BoxBuffers::Exact(boxes) => (boxes, None, size_of::<Aabb64>()),
        };
        let lists = [
            ("boxes", Some(boxes), bytes),
            ("end boxes", ends, bytes),
            ("filters", self.filters, size_of::<Filter>()),
            ("worlds", self.worlds, size_of::<u32>()),
        ];
        let given = |(what, buffer, bytes): (_, Option<_>, usize)| {
            buffer.map(|buffer| (what, buffer, bytes as u64))
        };
        lists.into_iter().filter_map(given)
    }

    /// Checks the buffers, as far as their device need not be asked, and the excluded pairs.
    pub(crate) fn check(&self) -> Result<()> {
        check_lists(self.n, None, None, None)?;
        for (what, buffer, bytes) in self.buffers() {
            let usage = buffer.usage();
            if !usage.contains(BufferUsages::STORAGE) {
                return Err(Error::BufferUsage { what, usage });
            }
            let (needed, given) = (self.n as u64 * bytes, buffer.size());
            if given < needed {
                return Err(Error::BufferSize {
                    what,
                    boxes: self.n,
                    needed,
                    given,
                });
            }
        }
        Frame::boxes(&[]).excluded(self.excluded).check_excluded()
    }
}
