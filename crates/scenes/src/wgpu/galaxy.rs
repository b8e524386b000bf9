//! The scene `galaxy` on the device, with the kernels of `kernels/wgsl/demo/galaxy.wgsl`.

use super::balls::Balls;
use super::bodies::{Bodies, OnWgpu, buffer};
use super::neighbours::Neighbours;
use super::work::Work;
use crate::galaxy::{self, RULES};
use bytemuck::{Pod, Zeroable};
use glam::{Vec4, Vec4Swizzles};
use radsweep::WgpuPairs;
use radsweep::wgpu_device::wgpu::Buffer;
use radsweep::wgpu_device::{BufferUsages, Device, Kernel};
use radsweep_kernels::wgsl::{Demo, WORKGROUP};
use std::mem::offset_of;

/// Max bodies on a device: the sum of 2^34 interactions takes a slow one a third of a second, and
/// drivers stop a launch of some seconds. More bodies stay on the host, whose tree is faster then.
pub(super) const MAX_BODIES: usize = 1 << 17;
/// Min workgroups of the gravity kernel: enough to hide latency on a large device.
const GRAVITY_GROUPS: usize = 1024;

struct Galaxies {
    advance: Kernel,
    gravity: Kernel,
    kick: Kernel,
    find_partner: Kernel,
    bounce: Kernel,
    params: Buffer,
    /// Velocities and masses before the bounces.
    moves: Buffer,
    pulls: Buffer,
    /// The threads of the gravity kernel, and the sums of each part.
    threads: u32,
    partial: Buffer,
    partners: Buffer,
    neighbours: Neighbours,
}

/// `Rules` of the kernels.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Params {
    frame: f32,
    soft: f32,
    bodies: u32,
    parts: u32,
    share: u32,
}

const _: () = {
    assert!(size_of::<Params>() == 20);
    assert!(offset_of!(Params, soft) == 4);
    assert!(offset_of!(Params, bodies) == 8);
    assert!(offset_of!(Params, parts) == 12);
    assert!(offset_of!(Params, share) == 16);
};

/// Takes galaxies to a device.
pub(super) fn scene(device: &Device, bodies: &galaxy::Bodies) -> radsweep::Result<OnWgpu> {
    let text = Demo::Galaxy.text();
    // SAFETY: each list has an element for each body, pair or part, pairs refer to bodies, and a
    // row is a range of pairs, which ends each loop.
    let module = unsafe { device.trusted_module("galaxy", &text)? };
    let (n, group) = (bodies.at.len(), WORKGROUP as usize);
    let groups = n.div_ceil(group);
    let share = n.div_ceil(GRAVITY_GROUPS.div_ceil(groups));
    let share = share.next_multiple_of(group);
    let parts = n.div_ceil(share);
    let params = Params {
        frame: RULES.frame,
        soft: RULES.softening * RULES.softening,
        bodies: n as u32,
        parts: parts as u32,
        share: share as u32,
    };
    let simulation = Galaxies {
        advance: module.kernel(device, "advance")?,
        gravity: module.kernel(device, "gravity")?,
        kick: module.kernel(device, "kick")?,
        find_partner: module.kernel(device, "find_partner")?,
        bounce: module.kernel(device, "bounce")?,
        params: device.upload("rules of galaxies", &[params], BufferUsages::UNIFORM)?,
        moves: buffer(device, "velocities before bounces", 16, n)?,
        pulls: buffer(device, "pulls", 16, n)?,
        threads: (groups * parts * group) as u32,
        partial: buffer(device, "pulls of parts", 16 * parts, n)?,
        partners: buffer(device, "partners", 4, n)?,
        neighbours: Neighbours::new(device, &module, n)?,
    };
    // Masses and radii change sides: so the balls are drawn as others are.
    let each = bodies.at.iter().zip(&bodies.moves);
    let swapped =
        |(at, moves): (&Vec4, &Vec4)| [at.xyz().extend(moves.w), moves.xyz().extend(at.w)];
    let (at, moves): (Vec<_>, Vec<_>) = each.map(swapped).map(<(Vec4, Vec4)>::from).unzip();
    Ok(OnWgpu::new(Balls::new(device, &at, &moves)?, simulation))
}

impl Bodies for Galaxies {
    fn place(&mut self, work: &mut Work<'_>, from: &Balls, to: &Balls) -> radsweep::Result<()> {
        let buffers = [
            (0, &self.params),
            (1, from.at()),
            (2, from.velocities()),
            (3, to.at()),
            (4, &self.moves),
            (5, to.boxes()),
            (17, &self.pulls),
        ];
        let advance = work.step(&self.advance, &buffers, from.count())?;
        work.stage("place", &[advance]);
        Ok(())
    }

    fn respond(
        &mut self,
        work: &mut Work<'_>,
        pairs: WgpuPairs<'_>,
        from: &Balls,
        to: &Balls,
    ) -> radsweep::Result<()> {
        let n = from.count();
        let (params, at, moves) = ((0, &self.params), (1, to.at()), (2, &self.moves));
        let (partial, partners) = ((7, &self.partial), (18, &self.partners));
        let kicked = [params, (4, &self.moves), partial, (17, &self.pulls)];
        let summed = [params, at, moves, partial];
        let gravity = [
            work.step(&self.gravity, &summed, self.threads)?,
            work.step(&self.kick, &kicked, n)?,
        ];
        work.stage("gravity", &gravity);
        self.neighbours.find(work, pairs)?;
        let [rows, below, above] = self.neighbours.lists();
        let met = [
            params,
            at,
            moves,
            (6, to.pairs()),
            rows,
            below,
            above,
            partners,
        ];
        let bounced = [params, at, moves, (4, to.velocities()), partners];
        let collide = [
            work.step(&self.find_partner, &met, n)?,
            work.step(&self.bounce, &bounced, n)?,
        ];
        work.stage("collide", &collide);
        Ok(())
    }
}
