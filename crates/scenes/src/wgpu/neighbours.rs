//! Lists the neighbours of every body from the pairs on the device, with the kernels of
//! `kernels/wgsl/demo/neighbours.wgsl`.

use super::bodies::buffer;
use super::work::Work;
use bytemuck::{Pod, Zeroable};
use radsweep::WgpuPairs;
use radsweep::sort::SortOptions;
use radsweep::sort::wgpu::{Payload, Request, Scratch, Sorter, SorterConfig};
use radsweep::wgpu_device::wgpu::Buffer;
use radsweep::wgpu_device::{BufferUsages, Device, Kernel, Module};
use std::mem::offset_of;

/// The pairs sorted by either side: the broad phase sorts them by `a`, and a stable sort then sorts
/// them by `b`.
pub(super) struct Neighbours {
    split: Kernel,
    mark_below: Kernel,
    mark_above: Kernel,
    sorter: Sorter,
    bodies: usize,
    rows: Buffer,
    lists: Lists,
}

/// The lists of some pairs, and the memory to sort them.
struct Lists {
    capacity: u64,
    /// `a` and `b` of each pair, then the same two lists sorted by `b`.
    a: Buffer,
    b: Buffer,
    a_sorted: Buffer,
    b_sorted: Buffer,
    scratch: Scratch,
}

/// A part of the pairs as the kernels see it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Run {
    first: u32,
    count: u32,
}

const _: () = assert!(size_of::<Run>() == 8 && offset_of!(Run, count) == 4);

impl Neighbours {
    pub fn new(device: &Device, module: &Module, bodies: usize) -> radsweep::Result<Self> {
        let sorter = Sorter::new(device, SorterConfig::default())?;
        Ok(Self {
            split: module.kernel(device, "split")?,
            mark_below: module.kernel(device, "mark_below")?,
            mark_above: module.kernel(device, "mark_above")?,
            bodies,
            rows: buffer(device, "rows of neighbours", 16, bodies)?,
            lists: Lists::new(&sorter, bodies as u64)?,
            sorter,
        })
    }

    /// Finds the rows of every body.
    pub fn find(&mut self, work: &mut Work<'_>, pairs: WgpuPairs<'_>) -> radsweep::Result<()> {
        let (device, m) = (work.device, pairs.len());
        let limit = u64::from(u32::MAX);
        let count =
            u32::try_from(m).map_err(|_| radsweep::Error::TooManyPairs { count: m, limit })?;
        if self.lists.capacity < m {
            self.lists = Lists::new(&self.sorter, m + m / 2)?;
        }
        work.encoder.clear_buffer(&self.rows, 0, None);
        if m == 0 {
            return Ok(());
        }
        let run = |first, count| {
            let run = Run { first, count };
            device.upload("run of pairs", &[run], BufferUsages::UNIFORM)
        };
        let lists = &self.lists;
        let mut first = 0;
        for (part, pairs) in pairs.buffers() {
            // At most `count` in all.
            let pairs = pairs as u32;
            let run = run(first, pairs)?;
            let buffers = [(8, &run), (9, part), (10, &lists.a), (11, &lists.b)];
            work.stage("neighbours", &[work.step(&self.split, &buffers, pairs)?]);
            first += pairs;
        }
        let bits = u32::BITS - (self.bodies as u32).leading_zeros();
        let request = Request::<u32>::keys(m, &lists.b, &lists.b_sorted);
        let request = request.values(&lists.a, &lists.a_sorted);
        let options = SortOptions::new().bits(0..bits);
        self.sorter
            .encode(&mut work.encoder, request, &lists.scratch, &options)?;
        let run = run(0, count)?;
        let mark =
            |kernel, owners| work.step(kernel, &[(8, &run), (12, owners), (13, &self.rows)], count);
        let marks = [
            mark(&self.mark_below, &lists.b_sorted)?,
            mark(&self.mark_above, &lists.a)?,
        ];
        work.stage("neighbours", &marks);
        Ok(())
    }

    /// Returns the buffers of the rows, and of the neighbours of smaller and of larger index, with
    /// their bindings.
    pub fn lists(&self) -> [(u32, &Buffer); 3] {
        [
            (14, &self.rows),
            (15, &self.lists.a_sorted),
            (16, &self.lists.b),
        ]
    }
}

impl Lists {
    fn new(sorter: &Sorter, capacity: u64) -> radsweep::Result<Self> {
        let device = sorter.device();
        let list = |what| device.buffer(what, 4 * capacity, BufferUsages::STORAGE);
        Ok(Self {
            capacity,
            a: list("a of pairs")?,
            b: list("b of pairs")?,
            a_sorted: list("a of pairs by b")?,
            b_sorted: list("b of pairs in order")?,
            scratch: sorter.scratch::<u32>(capacity, Payload::U32)?,
        })
    }
}
