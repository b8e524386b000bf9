//! How an update cut the space: for pictures of it.

/// How [`crate::Strategy::Subdivided`] cut the space, so that boxes far from each other are not
/// tested: what [`crate::BroadPhase::subdivision`] gives.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Subdivision {
    /// Columns along the sweep axis, on the CPU and on `wgpu`; a box is in all that it touches.
    Columns {
        /// The two other axes: 0, 1, 2 for x, y, z.
        axes: [usize; 2],
        /// The cuts of each of the two axes, ascending, in the unit of the boxes. There is one more
        /// column than cuts.
        cuts: [Vec<f32>; 2],
    },
    /// Cells, on CUDA: those of the size that most boxes are in, or of the smallest in use where
    /// that is not known. Larger boxes are in cells of twice the size, four times, and so on, with
    /// corners at the same place.
    Cells {
        /// Where corners of cells of every size lie.
        origin: [f32; 3],
        /// Width, height and depth of a cell.
        size: [f32; 3],
    },
}
