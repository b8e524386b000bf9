//! Lists the neighbours of every body from the pairs on the device, with the kernels of
//! `kernels/demo/neighbours.cuh`.

use super::bodies::linear;
use crate::Error;
use bytemuck::{Pod, Zeroable};
use radsweep::Pair;
use radsweep::gpu::{
    Buffer, DevicePtr, Grow, Kernel, Module, Scratch, Slice, Stream, args, assert_layout,
};
use radsweep::sort::cuda::{Request, Sorter, SorterConfig};
use radsweep::sort::{Algorithm, SortOptions};

/// The pairs sorted by either side: the broad phase sorts them by `a`, and a stable sort then sorts
/// them by `b`.
pub(super) struct Neighbours {
    split: Kernel,
    rows: Kernel,
    sorter: Sorter,
    scratch: Scratch,
    /// `b` and `a` of each pair, then the same two lists sorted by `b`.
    lists: [Grow<u32>; 4],
    upper: Buffer<[u32; 2]>,
    lower: Buffer<[u32; 2]>,
}

/// The rows as the kernels see them, which call them `Neighbours`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Rows {
    pairs: DevicePtr<Pair>,
    a_sorted: DevicePtr<u32>,
    upper: DevicePtr<[u32; 2]>,
    lower: DevicePtr<[u32; 2]>,
}

assert_layout!(Rows, 32: pairs 0, a_sorted 8, upper 16, lower 24);

impl Neighbours {
    pub fn new(stream: &Stream, module: &Module, bodies: usize) -> Result<Self, Error> {
        let sorter = Sorter::new(stream.device(), SorterConfig::default())?;
        // The driver takes seconds to compile kernels for the first time: do it now, not in the
        // first frame.
        sorter.prepare::<u32>(Algorithm::Onesweep, 8 * bodies as u64)?;
        Ok(Self {
            split: module.kernel("demo_split")?,
            rows: module.kernel("demo_rows")?,
            sorter,
            scratch: Scratch::new(),
            lists: Default::default(),
            upper: stream.alloc(bodies)?,
            lower: stream.alloc(bodies)?,
        })
    }

    /// Returns the sorter, which is prepared for keys of 32 bits.
    pub fn sorter(&self) -> Sorter {
        self.sorter.clone()
    }

    /// Finds the rows of every body. They point into `pairs` and into buffers of `self`, and are
    /// valid until either changes.
    pub fn find(&mut self, stream: &Stream, pairs: Slice<'_, Pair>) -> radsweep::Result<Rows> {
        let bodies = self.upper.len();
        let m = pairs.len();
        let limit = u64::from(u32::MAX);
        let count = u32::try_from(m).map_err(|_| radsweep::Error::TooManyPairs {
            count: m as u64,
            limit,
        })?;
        stream.fill_bytes(self.upper.slice_mut(), 0)?;
        stream.fill_bytes(self.lower.slice_mut(), 0)?;
        let [b, a, b_sorted, a_sorted] = &mut self.lists;
        let [mut b, mut a] = [b.reserve(stream, m)?, a.reserve(stream, m)?];
        let mut b_sorted = b_sorted.reserve(stream, m)?;
        let mut a_sorted = a_sorted.reserve(stream, m)?;
        if m > 0 {
            // SAFETY: the lists have an element for each pair, the rows one for each body, and
            // pairs refer to bodies.
            unsafe {
                stream.launch(
                    &self.split,
                    &linear(m),
                    &args![
                        pairs,
                        count,
                        b.reborrow(),
                        a.reborrow(),
                        self.upper.slice_mut()
                    ],
                )?;
            }
            let bits = u32::BITS - (bodies as u32).leading_zeros();
            let options = SortOptions::new()
                .algorithm(Algorithm::Onesweep)
                .bits(0..bits);
            let by_b = Request::keys(b.as_slice(), b_sorted.reborrow())
                .values(a.as_slice(), a_sorted.reborrow());
            let scratch = &mut self.scratch;
            self.sorter.sort_growing(stream, by_b, scratch, &options)?;
            // SAFETY: as above.
            unsafe {
                stream.launch(
                    &self.rows,
                    &linear(m),
                    &args![b_sorted.as_slice(), count, self.lower.slice_mut()],
                )?;
            }
        }
        Ok(Rows {
            pairs: pairs.device_ptr(),
            a_sorted: a_sorted.device_ptr(),
            upper: self.upper.slice().device_ptr(),
            lower: self.lower.slice().device_ptr(),
        })
    }
}
