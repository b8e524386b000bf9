//! The scene `particles` on a device, with the kernels of `kernels/demo/particles.cuh`.

use super::bodies::{Bodies, linear, module};
use super::neighbours::Neighbours;
use crate::particles::{Particles, ROUNDS, Rules};
use crate::{Error, Instance, Landscape, Picture};
use bytemuck::{Pod, Zeroable};
use glam::Vec4;
use radsweep::gpu::{
    Buffer, ByValue, DevicePtr, Kernel, Slice, Stages, Stream, args, assert_layout,
};
use radsweep::{Aabb, Pair};

/// The particles and the landscape in device memory.
pub(crate) struct OnLandscape {
    fall: Kernel,
    push: Kernel,
    settle: Kernel,
    rules: Rules,
    from: Buffer<Vec4>,
    /// The positions of the last round and of this one; the two alternate.
    next: [Buffer<Vec4>; 2],
    velocities: Buffer<Vec4>,
    boxes: Buffer<Aabb>,
    heights: Buffer<f32>,
    /// Points of the landscape along x, and their spacing.
    width: u32,
    spacing: f32,
    neighbours: Neighbours,
}

/// The landscape as the kernels see it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Ground {
    heights: DevicePtr<f32>,
    width: u32,
    spacing: f32,
}

assert_layout!(Ground, 16: heights 0, width 8, spacing 12);
assert_layout!(
    Rules, 32:
    frame 0, gravity 4, max_speed 8, margin 12, share 16, friction 20, ground_friction 24, side 28,
);

impl OnLandscape {
    pub fn new(
        stream: &Stream,
        landscape: &Landscape,
        rules: Rules,
        particles: &Particles,
    ) -> Result<Self, Error> {
        let module = module(stream.device())?;
        let count = particles.from.len();
        Ok(Self {
            fall: module.kernel("demo_fall")?,
            push: module.kernel("demo_push")?,
            settle: module.kernel("demo_settle")?,
            rules,
            from: stream.from_slice(&particles.from)?,
            next: [stream.alloc(count)?, stream.alloc(count)?],
            velocities: stream.from_slice(&particles.velocities)?,
            boxes: stream.from_slice(&vec![Aabb::EMPTY; count])?,
            heights: stream.from_slice(&landscape.heights)?,
            width: landscape.width as u32,
            spacing: landscape.spacing,
            neighbours: Neighbours::new(stream, &module, count)?,
        })
    }
}

impl Bodies for OnLandscape {
    fn place(&mut self, stream: &Stream) -> radsweep::gpu::Result<()> {
        let n = self.from.len();
        let [next, _] = &mut self.next;
        // SAFETY: each list has an element for each of the `n` particles.
        unsafe {
            stream.launch(
                &self.fall,
                &linear(n),
                &args![
                    self.from.slice(),
                    next.slice_mut(),
                    self.velocities.slice_mut(),
                    self.boxes.slice_mut(),
                    n as u32,
                    ByValue(self.rules)
                ],
            )
        }
    }

    fn boxes(&self) -> Slice<'_, Aabb> {
        self.boxes.slice()
    }

    fn respond(
        &mut self,
        stream: &Stream,
        pairs: Slice<'_, Pair>,
        stages: &mut Stages,
    ) -> radsweep::Result<()> {
        let n = self.from.len();
        stages.mark(stream, "neighbours")?;
        let rows = self.neighbours.find(stream, pairs)?;
        stages.mark(stream, "collide")?;
        let ground = Ground {
            heights: self.heights.slice().device_ptr(),
            width: self.width,
            spacing: self.spacing,
        };
        let [next, before] = &mut self.next;
        for _ in 0..ROUNDS {
            std::mem::swap(next, before);
            // SAFETY: as in `place`; the rows refer to particles, and the walls keep every one
            // above the landscape, which has `width` times `width` heights.
            unsafe {
                stream.launch(
                    &self.push,
                    &linear(n),
                    &args![
                        before.slice(),
                        self.from.slice(),
                        next.slice_mut(),
                        ByValue(rows),
                        ByValue(ground),
                        n as u32,
                        ByValue(self.rules)
                    ],
                )?;
            }
        }
        stages.mark(stream, "settle")?;
        // SAFETY: as above.
        unsafe {
            stream.launch(
                &self.settle,
                &linear(n),
                &args![
                    next.slice(),
                    self.from.slice_mut(),
                    self.velocities.slice_mut(),
                    ByValue(ground),
                    n as u32,
                    ByValue(self.rules)
                ],
            )?;
        }
        Ok(())
    }

    fn draw(&self, stream: &Stream, picture: &mut Picture) -> radsweep::gpu::Result<()> {
        let at = stream.to_vec(self.from.slice())?;
        let velocities = stream.to_vec(self.velocities.slice())?;
        let each = at.iter().zip(&velocities).zip(0..);
        picture
            .spheres
            .extend(each.map(|((at, velocity), body)| Instance::of_ball(*at, *velocity, body)));
        Ok(())
    }
}
