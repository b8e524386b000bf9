//! Finds the gravity of many bodies on the device, with the kernels of `kernels/demo/gravity.cuh`.

use super::bodies::linear;
use crate::Error;
use bytemuck::{Pod, Zeroable};
use glam::Vec4;
use radsweep::gpu::{
    Buffer, ByValue, DevicePtr, Kernel, Launch, Module, Scratch, Slice, SliceMut, Stream, args,
    assert_layout, blocks,
};
use radsweep::sort::cuda::{Request, Sorter};
use radsweep::sort::{Algorithm, SortOptions};

/// Threads of a block of the kernel that goes through the tree, and of the one that builds it.
const GRAVITY_THREADS: u32 = 128;
const NODES_THREADS: u32 = 512;
/// Lanes of a warp, which goes through the tree with as many bodies.
const WARP: usize = 32;
/// Children of a node.
const CHILDREN: usize = 8;
/// Max blocks of the kernel that finds the bounds, whose warps all change the same six words.
const BOUNDS_BLOCKS: u32 = 264;
/// Bits of a Morton code.
const CODE_BITS: u32 = 30;

/// The tree of a frame, whose memory the next one reuses.
pub(super) struct Gravity {
    bounds: Kernel,
    code: Kernel,
    build: Kernel,
    pull: Kernel,
    drift: Kernel,
    sorter: Sorter,
    scratch: Scratch,
    /// The bounds of all bodies.
    ends: Buffer<u32>,
    codes: Buffer<u32>,
    /// The index of each body, in Morton order, and the bodies in that order.
    order: Buffer<u32>,
    sorted: Buffer<Vec4>,
    /// Of each node, from the first level to the root: mass, least corner, greatest corner.
    nodes: [Buffer<Vec4>; 3],
    /// The force on each warp's bodies, and the acceleration of all together.
    forces: Buffer<Vec4>,
    drifts: Buffer<Vec4>,
}

/// The nodes as the kernels see them, which call them `Nodes`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Nodes {
    masses: DevicePtr<Vec4>,
    lows: DevicePtr<Vec4>,
    highs: DevicePtr<Vec4>,
}

assert_layout!(Nodes, 24: masses 0, lows 8, highs 16);

impl Gravity {
    /// `sorter` is prepared for keys of 32 bits.
    pub fn new(
        stream: &Stream,
        module: &Module,
        sorter: Sorter,
        bodies: usize,
    ) -> Result<Self, Error> {
        let nodes = levels(bodies).skip(1).sum();
        Ok(Self {
            bounds: module.kernel("demo_bounds")?,
            code: module.kernel("demo_codes")?,
            build: module.kernel("demo_nodes")?,
            pull: module.kernel("demo_gravity")?,
            drift: module.kernel("demo_drift")?,
            sorter,
            scratch: Scratch::new(),
            ends: stream.alloc(6)?,
            codes: stream.alloc(bodies)?,
            order: stream.alloc(bodies)?,
            sorted: stream.alloc(bodies)?,
            nodes: [
                stream.alloc(nodes)?,
                stream.alloc(nodes)?,
                stream.alloc(nodes)?,
            ],
            forces: stream.alloc(bodies.div_ceil(WARP))?,
            drifts: stream.alloc(1)?,
        })
    }

    /// Finds the acceleration of each body (position, mass) by all others, with a gravitational
    /// constant of 1 and the length `softening`. Returns what is to be subtracted from each, so
    /// that the forces sum up to 0.
    pub fn find(
        &mut self,
        stream: &Stream,
        at: Slice<'_, Vec4>,
        pulls: SliceMut<'_, Vec4>,
        softening: f32,
    ) -> radsweep::Result<Slice<'_, Vec4>> {
        self.sort(stream, at)?;
        let n = at.len();
        let nodes = self.build(stream, at)?;
        let warps = self.forces.len() as u32;
        // SAFETY: the lists have an element for each body, node or warp, and the order is of the
        // bodies.
        unsafe {
            stream.launch(
                &self.pull,
                &Launch::linear(blocks(n, GRAVITY_THREADS), GRAVITY_THREADS),
                &args![
                    self.sorted.slice(),
                    self.order.slice(),
                    ByValue(nodes),
                    pulls,
                    self.forces.slice_mut(),
                    n as u32,
                    softening * softening
                ],
            )?;
            let masses = self.nodes[0].slice();
            stream.launch(
                &self.drift,
                &Launch::linear(1, 256),
                &args![
                    self.forces.slice(),
                    warps,
                    masses.range(masses.len() - 1..masses.len())?,
                    self.drifts.slice_mut()
                ],
            )?;
        }
        Ok(self.drifts.slice())
    }

    /// Finds the Morton order of the bodies.
    fn sort(&mut self, stream: &Stream, at: Slice<'_, Vec4>) -> radsweep::Result<()> {
        let n = at.len();
        stream.fill_bytes(self.ends.slice_mut(), 0xff)?;
        let mut launch = linear(n);
        launch.grid.0 = launch.grid.0.min(BOUNDS_BLOCKS);
        // SAFETY: as above.
        unsafe {
            stream.launch(
                &self.bounds,
                &launch,
                &args![at, self.ends.slice_mut(), n as u32],
            )?;
            stream.launch(
                &self.code,
                &linear(n),
                &args![at, self.ends.slice(), self.codes.slice_mut(), n as u32],
            )?;
        }
        let options = SortOptions::new()
            .algorithm(Algorithm::Onesweep)
            .bits(0..CODE_BITS);
        let request = Request::index(self.codes.slice(), self.order.slice_mut());
        let scratch = &mut self.scratch;
        Ok(self
            .sorter
            .sort_growing(stream, request, scratch, &options)?)
    }

    /// Builds the nodes, three levels in a launch.
    fn build(&mut self, stream: &Stream, at: Slice<'_, Vec4>) -> radsweep::Result<Nodes> {
        let [masses, lows, highs] = &mut self.nodes;
        let nodes = Nodes {
            masses: masses.slice_mut().device_ptr(),
            lows: lows.slice_mut().device_ptr(),
            highs: highs.slice_mut().device_ptr(),
        };
        let counts: Vec<usize> = levels(at.len()).collect();
        for level in (0..counts.len() - 1).step_by(3) {
            let first: usize = counts[1..level.max(1)].iter().sum();
            // SAFETY: as above.
            unsafe {
                stream.launch(
                    &self.build,
                    &Launch::linear(blocks(counts[level], NODES_THREADS), NODES_THREADS),
                    &args![
                        at,
                        self.order.slice(),
                        self.sorted.slice_mut(),
                        ByValue(nodes),
                        level as u32,
                        first as u32,
                        counts[level] as u32
                    ],
                )?;
            }
        }
        Ok(nodes)
    }
}

/// Returns the number of bodies, and of nodes of each level up to the root.
fn levels(bodies: usize) -> impl Iterator<Item = usize> {
    let mut last = false;
    std::iter::successors(Some(bodies), move |&count| {
        let parents = count.div_ceil(CHILDREN);
        (!std::mem::replace(&mut last, parents == 1)).then_some(parents)
    })
}

#[cfg(test)]
mod tests {
    use super::levels;

    #[test]
    fn levels_end_with_the_root() {
        for (bodies, expected) in [
            (1, &[1, 1][..]),
            (8, &[8, 1]),
            (9, &[9, 2, 1]),
            (512, &[512, 64, 8, 1]),
            (513, &[513, 65, 9, 2, 1]),
        ] {
            assert_eq!(levels(bodies).collect::<Vec<_>>(), expected);
        }
    }
}
