//! What only the engine on `wgpu` can do: boxes and pairs in buffers of the device.

use super::BroadPhase;
use crate::wgpu::Engine;
use crate::{Error, Report, Result, WgpuFrame, WgpuPairs};
use std::any::Any;

impl BroadPhase {
    /// Finds the pairs, as [`BroadPhase::update`] does, of boxes in buffers of the device of
    /// [`BroadPhase::on_wgpu`], with their filters and worlds ([`WgpuFrame`](crate::WgpuFrame)).
    /// Pairs stay there too ([`BroadPhase::wgpu_pairs`]) until [`BroadPhase::download`] copies them
    /// and the events to the host.
    ///
    /// The buffers are read after all that was submitted to the queue before. They may be written
    /// by what is submitted after this returns.
    ///
    /// ```
    /// use sap::{Aabb, BroadPhase, Config, WgpuFrame};
    /// use wgpu_device::{Adapters, BufferUsages, Device};
    ///
    /// let Ok(device) = Device::new(Adapters::Any) else { return Ok(()) }; // no driver here
    /// let boxes = [Aabb::new([0.0; 3], [1.0; 3]); 3];
    /// let boxes = device.upload("boxes", &boxes, BufferUsages::STORAGE)?;
    /// let mut broad_phase = BroadPhase::on_wgpu(&device, Config::default())?;
    /// assert_eq!(broad_phase.update_wgpu(WgpuFrame::boxes(&boxes, 3))?.pairs, 3);
    /// broad_phase.download()?;
    /// assert_eq!(broad_phase.pairs().len(), 3);
    /// # Ok::<(), sap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::update`]; [`Error::BufferSize`], [`Error::BufferUsage`] and
    /// [`Error::ForeignBuffer`] for buffers that cannot be used; [`Error::NoWgpu`] where the engine
    /// works elsewhere. A device that fails here is an error with
    /// [`Backend::Auto`](crate::Backend::Auto) too, since the boxes are there.
    pub fn update_wgpu<'a>(&mut self, frame: impl Into<WgpuFrame<'a>>) -> Result<&Report> {
        let frame = frame.into();
        let checked = frame.check();
        let updated = checked.and_then(|()| self.on_device()?.update_wgpu(&frame));
        self.publish(updated)
    }

    fn on_device(&mut self) -> Result<&mut Engine> {
        let backend = self.chosen.engine.backend();
        let engine: &mut dyn Any = &mut *self.chosen.engine;
        engine.downcast_mut().ok_or_else(|| Error::NoWgpu {
            looked_for: format!("this broad phase works on the backend `{backend}`"),
        })
    }

    /// Returns the launches since the last call, each with the milliseconds from its start to that
    /// of the next, or to its own end. From then on they are measured, which takes time.
    #[doc(hidden)]
    pub fn wgpu_launches(&mut self) -> Result<Vec<(&'static str, f64)>> {
        Ok(self.on_device()?.launches())
    }

    /// The pairs of the last [`BroadPhase::update_wgpu`] in buffers of the device, sorted; none
    /// after any other update, and for other engines. Each update may bring other buffers.
    ///
    /// The buffers have the usages `STORAGE`, `VERTEX`, `INDEX` and `COPY_SRC`: a shader reads
    /// them, a draw call takes them as instances, or as the ends of lines.
    ///
    /// ```
    /// use sap::{Aabb, BroadPhase, Config, Pair, WgpuFrame};
    /// use wgpu_device::{Adapters, BufferUsages, Device};
    ///
    /// let Ok(device) = Device::new(Adapters::Any) else { return Ok(()) }; // no driver here
    /// let boxes = [Aabb::new([0.0; 3], [1.0; 3]); 2];
    /// let boxes = device.upload("boxes", &boxes, BufferUsages::STORAGE)?;
    /// let mut broad_phase = BroadPhase::on_wgpu(&device, Config::default())?;
    /// broad_phase.update_wgpu(WgpuFrame::boxes(&boxes, 2))?;
    /// for (buffer, pairs) in broad_phase.wgpu_pairs().into_iter().flat_map(|all| all.buffers()) {
    ///     let pairs: Vec<Pair> = device.download(buffer, 0..8 * pairs)?.wait()?;
    ///     assert_eq!(pairs, [Pair { a: 0, b: 1 }]);
    /// }
    /// # Ok::<(), sap::Error>(())
    /// ```
    #[must_use]
    pub fn wgpu_pairs(&self) -> Option<WgpuPairs<'_>> {
        let engine: &dyn Any = &*self.chosen.engine;
        engine.downcast_ref::<Engine>()?.device_pairs()
    }
}
