//! The status codes, and why calls fail.

use std::ffi::c_char;

/// The result of every call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum RadsweepStatus {
    /// The call succeeded.
    Ok = 0,
    /// The handle is null, destroyed, or not a handle.
    Handle = 1,
    /// Another thread, or a callback of this one, is using the handle.
    Busy = 2,
    /// A pointer is null that must not be.
    Null = 3,
    /// A pointer is not aligned for its type.
    Alignment = 4,
    /// An argument is out of range, or a combination of arguments is not allowed.
    Argument = 5,
    /// A structure's size is below that of the first version, or it sets members that this version
    /// does not know.
    Version = 6,
    /// A box is NaN or inverted; the detail has the index of the first such box.
    InvalidAabb = 7,
    /// The pairs exceed the memory limit; the detail has their exact number.
    /// radsweep_for_each_pair_chunk delivers them all.
    TooManyPairs = 8,
    /// The given capacity is too small; the returned count says how much is needed.
    TooSmall = 9,
    /// CUDA was requested but is missing.
    NoCuda = 10,
    /// An allocation was refused, on the host or on the GPU; the message has its size. Only small
    /// allocations, and the memory in which keys are sorted on the CPU, end the process instead if
    /// they are refused, with the message of Rust's allocator.
    OutOfMemory = 11,
    /// The GPU, or a call to it, failed.
    Gpu = 12,
    /// A bug in the library: please report the message. The handle can only be destroyed.
    Panic = 13,
    /// Another failure, which the message describes.
    Other = 14,
    /// The backend wgpu was requested but is missing.
    NoWgpu = 15,
}

impl RadsweepStatus {
    /// All statuses with their names.
    const ALL: [(Self, &'static str); 16] = [
        (Self::Ok, "ok\0"),
        (Self::Handle, "handle\0"),
        (Self::Busy, "busy\0"),
        (Self::Null, "null\0"),
        (Self::Alignment, "alignment\0"),
        (Self::Argument, "argument\0"),
        (Self::Version, "version\0"),
        (Self::InvalidAabb, "invalid aabb\0"),
        (Self::TooManyPairs, "too many pairs\0"),
        (Self::TooSmall, "too small\0"),
        (Self::NoCuda, "no cuda\0"),
        (Self::OutOfMemory, "out of memory\0"),
        (Self::Gpu, "gpu\0"),
        (Self::Panic, "panic\0"),
        (Self::Other, "other\0"),
        (Self::NoWgpu, "no wgpu\0"),
    ];
}

/// The numbers of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct RadsweepErrorDetail {
    /// The status of this thread's last failed call; RADSWEEP_STATUS_OK if there is none.
    pub status: RadsweepStatus,
    /// For RADSWEEP_STATUS_INVALID_AABB, the index of the first invalid box; else 0.
    pub index: u64,
    /// For RADSWEEP_STATUS_TOO_MANY_PAIRS, the number of pairs; for RADSWEEP_STATUS_TOO_SMALL, the
    /// number of elements needed; else 0.
    pub count: u64,
}

/// Why a call fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{handle:#x} is not a broad phase: it is null, destroyed, or not from radsweep_create")]
    Handle { handle: usize },
    #[error("the broad phase is in use, by another thread or by the call that runs this callback")]
    Busy,
    #[error("{what} is null")]
    Null { what: &'static str },
    #[error("{what} at {address:#x} is not aligned to {align} bytes")]
    Alignment {
        what: &'static str,
        address: usize,
        align: usize,
    },
    #[error("{what} is {given}, but must be {allowed}")]
    Argument {
        what: &'static str,
        given: String,
        allowed: &'static str,
    },
    #[error("{what} has a size of {given} bytes: {problem}")]
    Version {
        what: &'static str,
        given: usize,
        problem: &'static str,
    },
    #[error("the capacity is {capacity} elements, but {needed} are needed")]
    TooSmall { capacity: usize, needed: usize },
    #[error("a bug in radsweep: {message}")]
    Panic { message: String },
    #[error("an earlier call hit a bug in radsweep: this broad phase can only be destroyed")]
    Poisoned,
    #[error(transparent)]
    Sap(#[from] sap::Error),
}

impl Failure {
    pub(crate) fn detail(&self) -> RadsweepErrorDetail {
        use RadsweepStatus as Status;
        let (status, index, count) = match self {
            Self::Handle { .. } => (Status::Handle, 0, 0),
            Self::Busy => (Status::Busy, 0, 0),
            Self::Null { .. } => (Status::Null, 0, 0),
            Self::Alignment { .. } => (Status::Alignment, 0, 0),
            Self::Argument { .. } => (Status::Argument, 0, 0),
            Self::Version { .. } => (Status::Version, 0, 0),
            Self::TooSmall { needed, .. } => (Status::TooSmall, 0, *needed as u64),
            Self::Panic { .. } | Self::Poisoned => (Status::Panic, 0, 0),
            Self::Sap(error) => match error {
                sap::Error::InvalidAabb { index, .. } => (Status::InvalidAabb, *index as u64, 0),
                sap::Error::TooManyPairs { count, .. } => (Status::TooManyPairs, 0, *count),
                sap::Error::NoCuda { .. } => (Status::NoCuda, 0, 0),
                sap::Error::NoWgpu { .. } => (Status::NoWgpu, 0, 0),
                sap::Error::OutOfMemory { .. }
                | sap::Error::Sort(gpusort::Error::OutOfMemory { .. }) => {
                    (Status::OutOfMemory, 0, 0)
                }
                #[cfg(feature = "wgpu")]
                sap::Error::Wgpu(_) | sap::Error::Sort(gpusort::Error::Wgpu(_)) => {
                    (Status::Gpu, 0, 0)
                }
                #[cfg(cuda)]
                sap::Error::Gpu(error) | sap::Error::Sort(gpusort::Error::Gpu(error)) => {
                    match error {
                        gpu::Error::OutOfMemory { .. } | gpu::Error::OutOfHostMemory { .. } => {
                            (Status::OutOfMemory, 0, 0)
                        }
                        _ => (Status::Gpu, 0, 0),
                    }
                }
                sap::Error::TooManyBoxes { .. }
                | sap::Error::LengthMismatch { .. }
                | sap::Error::ExcludedOrder { .. }
                | sap::Error::ChangedIndex { .. }
                | sap::Error::Margin { .. }
                | sap::Error::Unsupported { .. }
                | sap::Error::UnknownName { .. } => (Status::Argument, 0, 0),
                _ => (Status::Other, 0, 0),
            },
        };
        RadsweepErrorDetail {
            status,
            index,
            count,
        }
    }
}

/// Returns the failure of calls about a device in a build without CUDA.
#[cfg(not(cuda))]
pub(crate) fn no_cuda() -> Failure {
    let looked_for = "this build of the library has no feature `cuda`".to_owned();
    sap::Error::NoCuda { looked_for }.into()
}

/// Returns the name of a status, such as "invalid aabb"; "unknown" for other numbers. The pointer
/// is never null and always valid.
#[unsafe(no_mangle)]
pub extern "C" fn radsweep_status_name(status: i32) -> *const c_char {
    let known = RadsweepStatus::ALL
        .iter()
        .find(|(known, _)| *known as i32 == status);
    known.map_or("unknown\0", |(_, name)| name).as_ptr().cast()
}
