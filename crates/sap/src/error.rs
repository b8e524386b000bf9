//! What can go wrong. Every error leaves the last result as it was.

use crate::Pair;
use std::fmt;

/// The result of every fallible call here.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a box is invalid. Axes are 0, 1, 2 for x, y, z.
#[derive(Debug, Clone, Copy, PartialEq)]
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

/// Why a call did not do what it was asked. The result of the last update is as it was.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A box is NaN or inverted: the first such box.
    #[error("box {index} is invalid: {reason}")]
    InvalidAabb {
        /// Its index in the frame.
        index: usize,
        /// What is wrong with it.
        reason: InvalidReason,
    },
    /// The pairs do not fit in the memory allowed for them. [`crate::BroadPhase::for_each_pair_chunk`] delivers them all.
    #[error("{count} pairs do not fit in the memory allowed, which holds {limit}")]
    TooManyPairs {
        /// How many there are, exactly.
        count: u64,
        /// How many fit.
        limit: u64,
    },
    /// More boxes than indices can number.
    #[error("{boxes} boxes are more than the {limit} that can be numbered")]
    TooManyBoxes {
        /// Boxes in the frame.
        boxes: u64,
        /// The most there can be.
        limit: u64,
    },
    /// A triangle names a vertex that is not there: the first such triangle.
    #[error("triangle {triangle} names vertex {vertex} of {vertices}")]
    VertexIndex {
        /// Its place among the triangles.
        triangle: usize,
        /// Its first index that is too large.
        vertex: u32,
        /// How many vertices there are.
        vertices: usize,
    },
    /// An offset is below the one before it, or beyond the last vertex: the first such offset.
    #[error("offset {index} is {offset}: below the one before, or above the {vertices} vertices")]
    Offset {
        /// Its place among the offsets.
        index: usize,
        /// The offset.
        offset: u32,
        /// How many vertices there are.
        vertices: usize,
    },
    /// A list that comes with the boxes has another length.
    #[error("{boxes} boxes, but {given} {what}")]
    LengthMismatch {
        /// Which list: `"filters"`, `"worlds"`, `"end boxes"`, `"triangles"` or `"objects"`.
        what: &'static str,
        /// Boxes.
        boxes: usize,
        /// Entries in the list.
        given: usize,
    },
    /// The excluded pairs are not sorted by `(a, b)`, or one of them has `a >= b`.
    #[error("excluded pair {index} ({}, {}) is out of order, or its indices are", pair.a, pair.b)]
    ExcludedOrder {
        /// The first pair that is wrong.
        index: usize,
        /// That pair.
        pair: Pair,
    },
    /// A box is told to have changed that is not in the frame ([`crate::Frame::changed`]).
    #[error("box {index} is told to have changed, of a frame of {boxes} boxes")]
    ChangedIndex {
        /// The first such index.
        index: u32,
        /// Boxes in the frame.
        boxes: usize,
    },
    /// The margin is negative, NaN or infinite.
    #[error("margin {margin} is not a finite number of at least 0")]
    Margin {
        /// The margin given.
        margin: f32,
    },
    /// A name that is none of the known ones.
    #[error("unknown {what} `{name}`: known are {known}")]
    UnknownName {
        /// What was to be named: `"strategy"` or `"backend"`.
        what: &'static str,
        /// The name given.
        name: String,
        /// The names there are, with spaces between.
        known: &'static str,
    },
    /// CUDA was asked for and cannot be had.
    #[error("no CUDA backend: {looked_for}")]
    NoCuda {
        /// What was looked for and not found.
        looked_for: String,
    },
    /// Host memory ran out.
    #[error("no host memory for {bytes} bytes")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: u64,
    },
    /// A frame graph that could not be renewed, and has nothing to launch until it is.
    #[cfg(cuda)]
    #[error("the frame graph could not be renewed: call `renew` again before `launch`")]
    NotRecorded,
    /// A sort failed.
    #[error(transparent)]
    Sort(#[from] gpusort::Error),
    /// The GPU, or a call to it, failed.
    #[cfg(cuda)]
    #[error(transparent)]
    Gpu(#[from] gpu::Error),
}

#[cfg(cuda)]
impl Error {
    /// Whether it is the GPU that failed, by whichever call.
    pub(crate) const fn is_of_gpu(&self) -> bool {
        matches!(self, Self::Gpu(_) | Self::Sort(gpusort::Error::Gpu(_)))
    }

    /// Whether the GPU has no memory for something, whichever call asked for it.
    pub(crate) const fn is_out_of_device_memory(&self) -> bool {
        matches!(
            self,
            Self::Gpu(gpu::Error::OutOfMemory { .. })
                | Self::Sort(gpusort::Error::Gpu(gpu::Error::OutOfMemory { .. }))
        )
    }
}
