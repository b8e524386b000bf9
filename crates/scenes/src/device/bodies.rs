//! A scene on the device as bodies that kernels move, and what these have in common.

use crate::{Picture, Step};
use radsweep::gpu::{Device, Launch, Module, Slice, Stages, Stream, blocks};
use radsweep::{Aabb, BroadPhase, Pair};
use std::sync::OnceLock;

/// Threads of a block, except in the kernels of the tree.
const THREADS: u32 = 256;

/// Bodies on the device, and the kernels that move them.
pub(crate) trait Bodies: Send + Sync {
    /// Moves the bodies and writes their boxes.
    fn place(&mut self, stream: &Stream) -> radsweep::gpu::Result<()>;

    /// Returns the boxes.
    fn boxes(&self) -> Slice<'_, Aabb>;

    /// Runs the stages after the broad phase, and marks the start of each in `stages`.
    fn respond(
        &mut self,
        stream: &Stream,
        pairs: Slice<'_, Pair>,
        stages: &mut Stages,
    ) -> radsweep::Result<()>;

    /// Downloads the instances to draw.
    fn draw(&self, stream: &Stream, picture: &mut Picture) -> radsweep::gpu::Result<()>;
}

/// A scene on the device.
pub(crate) struct OnDevice {
    bodies: Box<dyn Bodies>,
    stages: Stages,
    stream: Stream,
    /// The boxes on the host, once they are downloaded.
    boxes: OnceLock<Vec<Aabb>>,
}

impl OnDevice {
    pub fn new(stream: &Stream, bodies: impl Bodies + 'static) -> Self {
        Self {
            bodies: Box::new(bodies),
            stages: Stages::new(),
            stream: stream.clone(),
            boxes: OnceLock::new(),
        }
    }

    /// Runs one frame on the stream of the broad phase.
    ///
    /// The host waits for the number of pairs and for the end of the frame. Afterwards any stream
    /// may use the memory.
    pub fn step(&mut self, broad_phase: &mut BroadPhase) -> radsweep::Result<Step> {
        let stream = broad_phase.stream().cloned();
        let stream = stream.unwrap_or_else(|| self.stream.clone());
        self.boxes = OnceLock::new();
        let done = self.run(&stream, broad_phase);
        // Even after an error, the stages are finished and their end is waited for.
        let stages = self.stages.finish(&stream).map_err(radsweep::Error::from);
        let report = done?;
        let own = |(name, _): &(&str, f32)| *name != BROAD_PHASE;
        Ok(Step {
            report,
            stages: stages?
                .into_iter()
                .filter(own)
                .map(|(name, ms)| (name, ms.into()))
                .collect(),
        })
    }

    fn run(
        &mut self,
        stream: &Stream,
        broad_phase: &mut BroadPhase,
    ) -> radsweep::Result<radsweep::Report> {
        self.stages.mark(stream, "place")?;
        self.bodies.place(stream)?;
        self.stages.mark(stream, BROAD_PHASE)?;
        let report = broad_phase.update_device(self.bodies.boxes())?.clone();
        let pairs = broad_phase.device_pairs()?;
        self.bodies.respond(stream, pairs, &mut self.stages)?;
        Ok(report)
    }

    /// Returns the boxes; the first call after a frame downloads them.
    pub fn boxes(&self) -> radsweep::Result<&[Aabb]> {
        if let Some(boxes) = self.boxes.get() {
            return Ok(boxes);
        }
        let boxes = self.stream.to_vec(self.bodies.boxes())?;
        Ok(self.boxes.get_or_init(|| boxes))
    }

    /// As [`crate::Scene::picture`].
    pub fn draw(&self, picture: &mut Picture) -> radsweep::Result<()> {
        Ok(self.bodies.draw(&self.stream, picture)?)
    }
}

/// The stage of the broad phase, whose times are in the report.
const BROAD_PHASE: &str = "broad phase";

pub(super) fn module(device: &Device) -> radsweep::gpu::Result<Module> {
    let image = &radsweep_kernels::DEMO;
    device.load(image.name, image.ptx())
}

/// Returns a launch with one thread per item.
pub(super) fn linear(items: usize) -> Launch {
    Launch::linear(blocks(items, THREADS), THREADS)
}
