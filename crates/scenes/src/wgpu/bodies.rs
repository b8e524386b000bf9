//! A scene on the device as bodies that kernels move, and what these have in common.

use super::balls::{Balls, Pool};
use super::work::{Work, wait};
use crate::{Picture, Step};
use radsweep::wgpu_device::{BufferUsages, Device, wgpu::Buffer};
use radsweep::{Aabb, BroadPhase, WgpuFrame, WgpuPairs};
use std::sync::{Arc, OnceLock};

/// Bodies on the device, and the kernels that move them from a frame to the next.
pub(super) trait Bodies: Send + Sync {
    /// Moves the bodies and writes their boxes.
    fn place(&mut self, work: &mut Work<'_>, from: &Balls, to: &Balls) -> radsweep::Result<()>;

    /// Runs the stages after the broad phase.
    fn respond(
        &mut self,
        work: &mut Work<'_>,
        pairs: WgpuPairs<'_>,
        from: &Balls,
        to: &Balls,
    ) -> radsweep::Result<()>;
}

/// A scene on the device.
pub(crate) struct OnWgpu {
    bodies: Box<dyn Bodies>,
    pool: Pool,
    /// The last frame.
    balls: Arc<Balls>,
    /// Its boxes on the host, once they are downloaded.
    boxes: OnceLock<Vec<Aabb>>,
}

impl OnWgpu {
    pub(super) fn new(balls: Balls, bodies: impl Bodies + 'static) -> Self {
        Self {
            bodies: Box::new(bodies),
            pool: Pool::default(),
            balls: Arc::new(balls),
            boxes: OnceLock::new(),
        }
    }

    /// Runs one frame. After an error the bodies are those of the last.
    ///
    /// The host waits for the number of pairs, and for the times of the frame.
    pub(crate) fn step(&mut self, broad_phase: &mut BroadPhase) -> radsweep::Result<Step> {
        let device = self.balls.device();
        let to = self.pool.take(device, self.balls.count())?;
        let mut work = Work::new(device)?;
        self.bodies.place(&mut work, &self.balls, &to)?;
        let placed = work.submit()?;
        let frame = WgpuFrame::boxes(to.boxes(), to.count() as usize);
        let report = broad_phase.update_wgpu(frame)?.clone();
        let pairs = broad_phase
            .wgpu_pairs()
            .ok_or_else(|| radsweep::Error::NoWgpu {
                looked_for: "the pairs of this update on the device".to_owned(),
            })?;
        let mut work = Work::new(device)?;
        self.bodies.respond(&mut work, pairs, &self.balls, &to)?;
        let responded = work.submit()?;
        let mut stages = wait(placed)?;
        stages.extend(wait(responded)?);
        self.balls = to;
        self.boxes = OnceLock::new();
        Ok(Step { report, stages })
    }

    pub(crate) fn balls(&self) -> &Arc<Balls> {
        &self.balls
    }

    /// Returns the boxes; the first call after a frame downloads them.
    pub(crate) fn boxes(&self) -> radsweep::Result<&[Aabb]> {
        if let Some(boxes) = self.boxes.get() {
            return Ok(boxes);
        }
        let boxes = self.balls.download_boxes()?;
        Ok(self.boxes.get_or_init(|| boxes))
    }

    /// As [`crate::Scene::picture`].
    pub(crate) fn draw(&self, picture: &mut Picture) -> radsweep::Result<()> {
        picture.spheres = self.balls.download()?;
        Ok(())
    }
}

/// Makes a buffer of the simulation's own: `bytes` for each body.
pub(super) fn buffer(
    device: &Device,
    what: &'static str,
    bytes: usize,
    bodies: usize,
) -> radsweep::Result<Buffer> {
    let usage = BufferUsages::STORAGE | BufferUsages::COPY_DST;
    Ok(device.buffer(what, (bytes * bodies) as u64, usage)?)
}
