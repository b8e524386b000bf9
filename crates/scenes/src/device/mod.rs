//! Scenes that live on the CUDA device of a broad phase: their boxes are written there, their pairs are read there, and the host only
//! gives the work.

mod galaxy;
mod neighbours;
mod particles;

pub(super) use galaxy::Galaxy;
pub(super) use particles::OnLandscape;

use super::{Picture, Step};
use radsweep::gpu::{Buffer, Device, Launch, Module, Slice, Stages, Stream};
use radsweep::{Aabb, BroadPhase, Pair};
use std::sync::OnceLock;

/// Threads of a block, except for gravity.
const THREADS: u32 = 256;

/// Bodies on the device, and the kernels that move them.
pub(super) trait Bodies: Send + Sync {
    /// Moves what moves by itself and writes the boxes.
    fn place(&mut self, stream: &Stream) -> radsweep::gpu::Result<()>;

    /// The boxes.
    fn boxes(&self) -> Slice<'_, Aabb>;

    /// What follows from the pairs; `stages` is told where each stage begins.
    fn respond(
        &mut self,
        stream: &Stream,
        pairs: Slice<'_, Pair>,
        stages: &mut Stages,
    ) -> radsweep::Result<()>;

    /// Downloads what there is to draw.
    fn draw(&self, stream: &Stream, picture: &mut Picture) -> radsweep::gpu::Result<()>;
}

/// A scene on the device.
pub(super) struct OnDevice {
    bodies: Box<dyn Bodies>,
    stages: Stages,
    stream: Stream,
    /// The boxes on the host, once asked for.
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

    /// One frame on the stream of the broad phase. The host waits for the counts of the pairs, and for the end: from then on the
    /// memory may be used on any stream.
    pub fn step(&mut self, broad_phase: &mut BroadPhase) -> radsweep::Result<Step> {
        let stream = broad_phase.stream().cloned();
        let stream = stream.unwrap_or_else(|| self.stream.clone());
        self.boxes = OnceLock::new();
        let done = self.run(&stream, broad_phase);
        // The times are taken, and the end waited for, whatever came before.
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
        let pairs = broad_phase.device_pairs();
        let pairs = pairs.ok_or_else(|| radsweep::Error::NoCuda {
            looked_for: "the pairs of this update on the device".to_owned(),
        })?;
        self.bodies.respond(stream, pairs, &mut self.stages)?;
        Ok(report)
    }

    /// The boxes, downloaded at the first call after a frame.
    pub fn boxes(&self) -> radsweep::Result<&[Aabb]> {
        if let Some(boxes) = self.boxes.get() {
            return Ok(boxes);
        }
        let boxes = self.stream.to_vec(self.bodies.boxes())?;
        Ok(self.boxes.get_or_init(|| boxes))
    }

    /// As [`super::Scene::picture`].
    pub fn draw(&self, picture: &mut Picture) -> radsweep::Result<()> {
        Ok(self.bodies.draw(&self.stream, picture)?)
    }
}

/// The stage between the others; its times are in the report.
const BROAD_PHASE: &str = "broad phase";

fn module(device: &Device) -> radsweep::gpu::Result<Module> {
    let image = &radsweep_kernels::DEMO;
    device.load(image.name, image.ptx())
}

/// A thread an item; items are numbered by 32 bits.
fn linear(items: usize) -> Launch {
    Launch::linear(items.div_ceil(THREADS as usize) as u32, THREADS)
}

/// Room for `len` elements; what was there is lost.
fn reserve<T: bytemuck::Pod>(
    stream: &Stream,
    buffer: &mut Buffer<T>,
    len: usize,
) -> radsweep::gpu::Result<()> {
    if buffer.len() < len {
        *buffer = stream.alloc(len + len / 2)?;
    }
    Ok(())
}
