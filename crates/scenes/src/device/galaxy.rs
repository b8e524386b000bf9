//! The scene `galaxy` on a device, with the kernels of `kernels/demo/galaxy.cuh`.

use super::bodies::{Bodies, linear, module};
use super::gravity::Gravity;
use super::neighbours::Neighbours;
use crate::galaxy::{self, RULES};
use crate::{Error, Instance, Picture};
use glam::{Vec4, Vec4Swizzles};
use radsweep::gpu::{Buffer, ByValue, Kernel, Slice, Stages, Stream, args};
use radsweep::{Aabb, Pair};

/// The bodies of the scene in device memory.
pub(crate) struct Galaxy {
    step: Kernel,
    kick: Kernel,
    partner: Kernel,
    bounce: Kernel,
    at: Buffer<Vec4>,
    /// Velocities and radii before and after the bounces; the two alternate.
    moves: [Buffer<Vec4>; 2],
    pulls: Buffer<Vec4>,
    gravity: Gravity,
    partners: Buffer<u32>,
    boxes: Buffer<Aabb>,
    neighbours: Neighbours,
}

impl Galaxy {
    pub fn new(stream: &Stream, bodies: &galaxy::Bodies) -> Result<Self, Error> {
        let module = module(stream.device())?;
        let n = bodies.at.len();
        let neighbours = Neighbours::new(stream, &module, n)?;
        Ok(Self {
            step: module.kernel("demo_move")?,
            kick: module.kernel("demo_kick")?,
            partner: module.kernel("demo_partner")?,
            bounce: module.kernel("demo_bounce")?,
            at: stream.from_slice(&bodies.at)?,
            moves: [stream.from_slice(&bodies.moves)?, stream.alloc(n)?],
            pulls: stream.alloc_zeroed(n)?,
            gravity: Gravity::new(stream, &module, neighbours.sorter(), n)?,
            partners: stream.alloc(n)?,
            boxes: stream.from_slice(&vec![Aabb::EMPTY; n])?,
            neighbours,
        })
    }
}

impl Bodies for Galaxy {
    fn place(&mut self, stream: &Stream) -> radsweep::gpu::Result<()> {
        let n = self.at.len();
        // SAFETY: each list has an element for each of the `n` bodies.
        unsafe {
            stream.launch(
                &self.step,
                &linear(n),
                &args![
                    self.at.slice_mut(),
                    self.moves[0].slice_mut(),
                    self.pulls.slice(),
                    self.boxes.slice_mut(),
                    n as u32,
                    RULES.frame
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
        let n = self.at.len();
        stages.mark(stream, "gravity")?;
        let [moves, after] = &mut self.moves;
        let pulls = self.pulls.slice_mut();
        let soft = RULES.softening;
        let drift = self.gravity.find(stream, self.at.slice(), pulls, soft)?;
        // SAFETY: as in `place`.
        unsafe {
            stream.launch(
                &self.kick,
                &linear(n),
                &args![
                    self.pulls.slice_mut(),
                    drift,
                    moves.slice_mut(),
                    n as u32,
                    RULES.frame
                ],
            )?;
        }
        stages.mark(stream, "neighbours")?;
        let rows = self.neighbours.find(stream, pairs)?;
        stages.mark(stream, "collide")?;
        // SAFETY: as above; the rows name bodies, and so do the partners.
        unsafe {
            stream.launch(
                &self.partner,
                &linear(n),
                &args![
                    self.at.slice(),
                    moves.slice(),
                    ByValue(rows),
                    self.partners.slice_mut(),
                    n as u32
                ],
            )?;
            stream.launch(
                &self.bounce,
                &linear(n),
                &args![
                    self.at.slice(),
                    moves.slice(),
                    self.partners.slice(),
                    after.slice_mut(),
                    n as u32
                ],
            )?;
        }
        std::mem::swap(moves, after);
        Ok(())
    }

    fn draw(&self, stream: &Stream, picture: &mut Picture) -> radsweep::gpu::Result<()> {
        let at = stream.to_vec(self.at.slice())?;
        let moves = stream.to_vec(self.moves[0].slice())?;
        let each = at.iter().zip(&moves).zip(0..);
        picture.spheres.extend(
            each.map(|((at, moves), body)| {
                Instance::of_ball(at.xyz().extend(moves.w), *moves, body)
            }),
        );
        Ok(())
    }
}
