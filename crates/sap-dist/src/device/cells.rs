//! The cells of all ranks in the memory of a device.

use super::abi;
use super::kernels::Kernels;
use crate::layout::Layout;
use gpu::{Buffer, ByValue, Slice, Stream, args};
use sap::Aabb;

/// A layout, and its copy on the device.
pub(crate) struct DeviceCells {
    layout: Layout,
    axes: [u32; 2],
    cuts: Buffer<i32>,
    first: Buffer<u32>,
    rows: Buffer<i32>,
}

impl DeviceCells {
    pub(crate) fn new(stream: &Stream, layout: &Layout) -> gpu::Result<Self> {
        let flat = layout.flat();
        Ok(Self {
            layout: layout.clone(),
            axes: flat.axes,
            cuts: stream.from_slice(&flat.cuts)?,
            first: stream.from_slice(&flat.first)?,
            rows: stream.from_slice(&flat.rows)?,
        })
    }

    pub(crate) fn is_of(&self, layout: &Layout) -> bool {
        self.layout == *layout
    }

    pub(crate) fn ranks(&self) -> usize {
        self.layout.ranks()
    }

    /// Returns the home of each box, `u32::MAX` where it has none.
    pub(crate) fn homes(&self, kernels: &Kernels, boxes: Slice<Aabb>) -> gpu::Result<Buffer<u32>> {
        let mut homes = kernels.stream.alloc::<u32>(boxes.len())?;
        let (n, cells) = (boxes.len() as u64, ByValue(self.abi(0)));
        // SAFETY: there is memory for the home of each box. The cells are of this stream, which
        // frees them after this work.
        unsafe {
            kernels.for_each(
                &kernels.home,
                boxes.len(),
                &args![boxes, n, cells, homes.slice_mut()],
            )?
        };
        Ok(homes)
    }

    /// Returns the cells as the kernels take them.
    pub(crate) fn abi(&self, rank: usize) -> abi::Cells {
        abi::Cells {
            axes: self.axes,
            columns: self.layout.slabs() as u32,
            rank: rank as u32,
            cuts: self.cuts.slice().device_ptr(),
            first: self.first.slice().device_ptr(),
            rows: self.rows.slice().device_ptr(),
        }
    }
}
