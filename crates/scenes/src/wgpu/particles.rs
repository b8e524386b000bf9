//! The scene `particles` on the device, with the kernels of `kernels/wgsl/demo/particles.wgsl`.

use super::balls::Balls;
use super::bodies::{Bodies, OnWgpu, buffer};
use super::neighbours::Neighbours;
use super::work::Work;
use crate::Landscape;
use crate::particles::{Particles, ROUNDS, Rules};
use bytemuck::{Pod, Zeroable};
use radsweep::WgpuPairs;
use radsweep::wgpu_device::wgpu::Buffer;
use radsweep::wgpu_device::{BufferUsages, Device, Kernel};
use radsweep_kernels::wgsl::Demo;
use std::mem::offset_of;

/// The landscape, and what the rounds keep between them.
struct OnLandscape {
    fall: Kernel,
    push: Kernel,
    settle: Kernel,
    params: Buffer,
    /// The positions after a round and before it; the two alternate.
    next: [Buffer; 2],
    heights: Buffer,
    neighbours: Neighbours,
}

/// `Rules` of the kernels.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Params {
    rules: Rules,
    spacing: f32,
    width: u32,
    bodies: u32,
}

const _: () = {
    assert!(size_of::<Params>() == 44);
    assert!(offset_of!(Params, spacing) == 32);
    assert!(offset_of!(Params, width) == 36);
    assert!(offset_of!(Params, bodies) == 40);
    assert!(offset_of!(Rules, gravity) == 4);
    assert!(offset_of!(Rules, max_speed) == 8);
    assert!(offset_of!(Rules, margin) == 12);
    assert!(offset_of!(Rules, share) == 16);
    assert!(offset_of!(Rules, friction) == 20);
    assert!(offset_of!(Rules, ground_friction) == 24);
    assert!(offset_of!(Rules, side) == 28);
};

/// Takes particles to a device.
pub(super) fn scene(
    device: &Device,
    landscape: &Landscape,
    rules: Rules,
    particles: &Particles,
) -> radsweep::Result<OnWgpu> {
    let text = Demo::Particles.text();
    // SAFETY: each list has an element for each body, pair or part, pairs refer to bodies, and a
    // row is a range of pairs, which ends each loop. A height is looked up within the landscape.
    let module = unsafe { device.trusted_module("particles", &text)? };
    let bodies = particles.from.len();
    let params = Params {
        rules,
        spacing: landscape.spacing,
        width: landscape.width as u32,
        bodies: bodies as u32,
    };
    let next = || buffer(device, "positions of a round", 16, bodies);
    let simulation = OnLandscape {
        fall: module.kernel(device, "fall")?,
        push: module.kernel(device, "push")?,
        settle: module.kernel(device, "settle")?,
        params: device.upload("rules of particles", &[params], BufferUsages::UNIFORM)?,
        next: [next()?, next()?],
        heights: device.upload("landscape", &landscape.heights, BufferUsages::STORAGE)?,
        neighbours: Neighbours::new(device, &module, bodies)?,
    };
    let balls = Balls::new(device, &particles.from, &particles.velocities)?;
    Ok(OnWgpu::new(balls, simulation))
}

impl Bodies for OnLandscape {
    fn place(&mut self, work: &mut Work<'_>, from: &Balls, to: &Balls) -> radsweep::Result<()> {
        let buffers = [
            (0, &self.params),
            (1, from.at()),
            (2, from.velocities()),
            (3, &self.next[0]),
            (5, to.boxes()),
        ];
        let fall = work.step(&self.fall, &buffers, from.count())?;
        work.stage("place", &[fall]);
        Ok(())
    }

    fn respond(
        &mut self,
        work: &mut Work<'_>,
        pairs: WgpuPairs<'_>,
        from: &Balls,
        to: &Balls,
    ) -> radsweep::Result<()> {
        self.neighbours.find(work, pairs)?;
        let [rows, below, above] = self.neighbours.lists();
        let (params, starts, heights) = ((0, &self.params), (1, from.at()), (17, &self.heights));
        let rounds = (0..ROUNDS).map(|round| {
            let [before, after] = [round, round + 1].map(|which| &self.next[which % 2]);
            let moved = [params, starts, (3, after), (7, before)];
            let buffers = [&moved[..], &[rows, below, above, heights]].concat();
            work.step(&self.push, &buffers, from.count())
        });
        let rounds: Vec<_> = rounds.collect::<Result<_, _>>()?;
        work.stage("collide", &rounds);
        let buffers = [
            params,
            starts,
            (3, to.at()),
            (4, to.velocities()),
            (6, to.pairs()),
            (7, &self.next[ROUNDS % 2]),
            rows,
            heights,
        ];
        let settle = work.step(&self.settle, &buffers, from.count())?;
        work.stage("settle", &[settle]);
        Ok(())
    }
}
