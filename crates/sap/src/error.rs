//! The errors of this crate. An error leaves the result of the last update unchanged. What only a
//! GPU had is lost if that GPU fails; [`crate::BroadPhase::fallback`] lists it.

use crate::Pair;
use std::fmt;

/// The result of a fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Says why a box is invalid. Axes are 0, 1, 2 for x, y, z.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum InvalidReason {
    /// `min` is NaN on this axis.
    NanMin {
        /// The axis.
        axis: usize,
    },
    /// `max` is NaN on this axis.
    NanMax {
        /// The axis.
        axis: usize,
    },
    /// `min > max` on this axis.
    Inverted {
        /// The axis.
        axis: usize,
        /// Its `min`.
        min: f64,
        /// Its `max`.
        max: f64,
    },
}

impl fmt::Display for InvalidReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |axis: usize| ["x", "y", "z"][axis.min(2)];
        match *self {
            Self::NanMin { axis } => write!(f, "min {} is NaN", name(axis)),
            Self::NanMax { axis } => write!(f, "max {} is NaN", name(axis)),
            Self::Inverted { axis, min, max } => {
                write!(f, "min {0} = {min} is above max {0} = {max}", name(axis))
            }
        }
    }
}

/// Says why a call failed. The result of the last update is unchanged.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A box has a NaN coordinate or is inverted. The error names the first such box.
    #[error("box {index} is invalid: {reason}")]
    InvalidAabb {
        /// The index of the box in the frame.
        index: usize,
        /// What is wrong with the box.
        reason: InvalidReason,
    },
    /// The pairs do not fit in the memory that is free or allowed for them.
    /// [`BroadPhase::for_each_pair_chunk`](crate::BroadPhase::for_each_pair_chunk) delivers them
    /// all in bounded memory.
    #[error(
        "there are {count} pairs, but the memory for them holds {limit}: allow more by \
         `Config::pair_memory` if the machine has it, or use `for_each_pair_chunk`"
    )]
    TooManyPairs {
        /// The exact number of pairs.
        count: u64,
        /// The number of pairs that fit.
        limit: u64,
    },
    /// The frame has more boxes than the backend can index.
    #[error("{boxes} boxes exceed the limit of {limit} boxes in a frame")]
    TooManyBoxes {
        /// The number of boxes in the frame.
        boxes: u64,
        /// The max number of boxes.
        limit: u64,
    },
    /// A triangle has a vertex index that is out of range. The error names the first such triangle.
    #[error(
        "vertex index {vertex} of triangle {triangle} is out of range: the mesh has {vertices} \
         vertices"
    )]
    VertexIndex {
        /// The index of the triangle.
        triangle: usize,
        /// Its first vertex index that is out of range.
        vertex: u32,
        /// The number of vertices.
        vertices: usize,
    },
    /// An offset is below the one before it, or above the number of vertices. The error names the
    /// first such offset.
    #[error(
        "offset {index} is {offset}, which is below the offset before it or above the number of \
         vertices ({vertices})"
    )]
    Offset {
        /// The index of the offset.
        index: usize,
        /// The offset.
        offset: u32,
        /// The number of vertices.
        vertices: usize,
    },
    /// A list that needs one entry for each box has another length.
    #[error("there are {boxes} boxes but {given} {what}: the numbers must be equal")]
    LengthMismatch {
        /// The list: `"filters"`, `"worlds"`, `"end boxes"`, `"triangles"` or `"objects"`.
        what: &'static str,
        /// The number of boxes.
        boxes: usize,
        /// The number of entries in the list.
        given: usize,
    },
    /// The excluded pairs are not sorted by `(a, b)`, or one of them has `a >= b`.
    #[error(
        "excluded pair {index} ({}, {}) is out of order: the list must be sorted, with a < b in \
         each pair",
        pair.a, pair.b
    )]
    ExcludedOrder {
        /// The index of the first pair that is out of order.
        index: usize,
        /// That pair.
        pair: Pair,
    },
    /// The list of changed boxes ([`Frame::changed`](crate::Frame::changed)) has an index beyond
    /// the last box.
    #[error("changed index {index} is out of range: the frame has {boxes} boxes")]
    ChangedIndex {
        /// The first such index.
        index: u32,
        /// The number of boxes in the frame.
        boxes: usize,
    },
    /// The margin is negative, NaN or infinite.
    #[error("the margin is {margin}: it must be finite and at least 0")]
    Margin {
        /// The given margin.
        margin: f32,
    },
    /// A name is not one of the known names.
    #[error("unknown {what} `{name}`: known are {known}")]
    UnknownName {
        /// The kind of name: `"strategy"` or `"backend"`.
        what: &'static str,
        /// The given name.
        name: String,
        /// The known names, separated by commas.
        known: &'static str,
    },
    /// CUDA was requested and is not available.
    #[error("no CUDA backend: {looked_for}")]
    NoCuda {
        /// What was looked for and not found.
        looked_for: String,
    },
    /// `wgpu` was requested and is not available.
    #[error("no wgpu backend: {looked_for}")]
    NoWgpu {
        /// What was looked for and not found.
        looked_for: String,
    },
    /// The backend does not have what the configuration asks for.
    #[error("the backend `{backend}` does not support {what}")]
    Unsupported {
        /// The name of the backend.
        backend: &'static str,
        /// What was asked for, such as "the strategy `endpoints`".
        what: String,
    },
    /// The system refused an allocation of host memory.
    #[error("out of host memory: cannot allocate {bytes} bytes")]
    OutOfMemory {
        /// The requested size in bytes.
        bytes: u64,
    },
    /// The last call of `FrameGraph::renew` failed, so there is no graph to launch.
    #[cfg(cuda)]
    #[error("the frame graph has no recording since `renew` failed: call `renew` before `launch`")]
    NotRecorded,
    /// A sort failed.
    #[error(transparent)]
    Sort(#[from] gpusort::Error),
    /// The GPU, or a call to it, failed.
    #[cfg(cuda)]
    #[error(transparent)]
    Gpu(#[from] gpu::Error),
    /// A buffer of a [`WgpuFrame`](crate::WgpuFrame) is too small.
    #[cfg(feature = "wgpu")]
    #[error("the buffer of {what} has {given} bytes, and {boxes} boxes need {needed}")]
    BufferSize {
        /// The list: `"boxes"`, `"end boxes"`, `"filters"` or `"worlds"`.
        what: &'static str,
        /// The number of boxes.
        boxes: usize,
        /// The bytes that they need.
        needed: u64,
        /// The bytes of the buffer.
        given: u64,
    },
    /// A buffer of a [`WgpuFrame`](crate::WgpuFrame) lacks the usage `STORAGE`.
    #[cfg(feature = "wgpu")]
    #[error("the buffer of {what} needs the usage STORAGE, and has {usage:?}")]
    BufferUsage {
        /// The list: `"boxes"`, `"end boxes"`, `"filters"` or `"worlds"`.
        what: &'static str,
        /// The usages of the buffer.
        usage: wgpu_device::BufferUsages,
    },
    /// A buffer of a [`WgpuFrame`](crate::WgpuFrame) is not of the device that the broad phase
    /// works on.
    #[cfg(feature = "wgpu")]
    #[error("the buffer of {what} cannot be bound on {adapter}: {reason}")]
    ForeignBuffer {
        /// The list: `"boxes"`, `"start or end boxes"`, `"filters"` or `"worlds"`.
        what: &'static str,
        /// The adapter that the broad phase works on.
        adapter: String,
        /// The message of `wgpu`.
        reason: String,
    },
    /// The device of `wgpu` returned an error.
    #[cfg(feature = "wgpu")]
    #[error(transparent)]
    Wgpu(#[from] wgpu_device::Error),
}

#[cfg(on_device)]
impl Error {
    /// Tells whether the GPU could not do a call that the CPU may do: it failed, refused memory, or
    /// cannot sort so many keys.
    pub(crate) const fn is_gpu_failure(&self) -> bool {
        match self {
            #[cfg(cuda)]
            Self::Gpu(_) | Self::Sort(gpusort::Error::Gpu(_)) => true,
            #[cfg(feature = "wgpu")]
            Self::Wgpu(_)
            | Self::Sort(gpusort::Error::Wgpu(_) | gpusort::Error::TooManyKeys { .. }) => true,
            _ => false,
        }
    }
}

#[cfg(cuda)]
impl Error {
    /// Tells whether an allocation on the GPU was refused, in a sort or elsewhere.
    pub(crate) const fn is_out_of_device_memory(&self) -> bool {
        matches!(
            self,
            Self::Gpu(gpu::Error::OutOfMemory { .. })
                | Self::Sort(gpusort::Error::Gpu(gpu::Error::OutOfMemory { .. }))
        )
    }
}
