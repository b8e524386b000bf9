//! Status codes, and the message of the last failure of each thread.

use crate::pointer;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What every call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum RadsweepStatus {
    /// It did what it was asked.
    Ok = 0,
    /// The handle is null, destroyed, or was never one.
    Handle = 1,
    /// Another thread, or a callback of this one, is using the handle.
    Busy = 2,
    /// A pointer is null where it may not be.
    Null = 3,
    /// A pointer is not aligned for what it should point at.
    Alignment = 4,
    /// A number or a combination is outside of what is allowed.
    Argument = 5,
    /// A structure's size is below that of the first version, or members that this version does not know are set.
    Version = 6,
    /// A box is NaN or inverted; the detail has the index of the first.
    InvalidAabb = 7,
    /// The pairs do not fit in the memory allowed; the detail has their exact count, radsweep_for_each_pair_chunk delivers them all.
    TooManyPairs = 8,
    /// The room given is too small; the count that the call returns says what is needed.
    TooSmall = 9,
    /// CUDA was asked for and cannot be had.
    NoCuda = 10,
    /// Memory ran out. On the CPU most large allocations end the process instead, with the message of Rust's allocator.
    OutOfMemory = 11,
    /// The GPU, or a call to it, failed.
    Gpu = 12,
    /// A defect of the library: please report the message. The handle can only be destroyed from then on.
    Panic = 13,
    /// Any other failure; the message says which.
    Other = 14,
}

impl RadsweepStatus {
    /// Every status, for their names.
    const ALL: [(Self, &'static str); 15] = [
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
    ];
}

/// Numbers that belong to a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct RadsweepErrorDetail {
    /// The status of the last call of this thread that failed; RADSWEEP_STATUS_OK if none did.
    pub status: RadsweepStatus,
    /// RADSWEEP_STATUS_INVALID_AABB: the index of the first invalid box; else 0.
    pub index: u64,
    /// RADSWEEP_STATUS_TOO_MANY_PAIRS: how many there are; RADSWEEP_STATUS_TOO_SMALL: how many elements are needed; else 0.
    pub count: u64,
}

/// Why a call fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{handle:#x} is no broad phase: null, destroyed, or never made by radsweep_create")]
    Handle { handle: usize },
    #[error(
        "the broad phase is in use: by another thread, or by the call that this callback belongs to"
    )]
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
    #[error("room for {room} elements, but {needed} are needed")]
    TooSmall { room: usize, needed: usize },
    #[error("a defect of radsweep: {message}")]
    Panic { message: String },
    #[error(
        "an earlier call on this broad phase met a defect of radsweep: it can only be destroyed"
    )]
    Poisoned,
    #[error(transparent)]
    Sap(#[from] sap::Error),
}

impl Failure {
    fn detail(&self) -> RadsweepErrorDetail {
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
                sap::Error::OutOfMemory { .. }
                | sap::Error::Sort(gpusort::Error::OutOfMemory { .. }) => {
                    (Status::OutOfMemory, 0, 0)
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

const NONE: RadsweepErrorDetail = RadsweepErrorDetail {
    status: RadsweepStatus::Ok,
    index: 0,
    count: 0,
};

thread_local! {
    static LAST: RefCell<(CString, RadsweepErrorDetail)> = RefCell::new((CString::default(), NONE));
}

/// Runs what an entry does: a failure becomes a status and is kept for the thread, and so does a panic.
pub(crate) fn entry(call: impl FnOnce() -> Result<(), Failure>) -> RadsweepStatus {
    let outcome = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Failure::Panic {
            message: message.unwrap_or_default(),
        })
    });
    let Err(failure) = outcome else {
        return RadsweepStatus::Ok;
    };
    let detail = failure.detail();
    let text = failure.to_string().replace('\0', " ");
    // A thread that is ending has no place left; and no zero byte is left in the text.
    let _ =
        LAST.try_with(|last| *last.borrow_mut() = (CString::new(text).unwrap_or_default(), detail));
    detail.status
}

/// What went wrong in the last call of this thread that failed, in one line; "" if none did. Never null; stays until the next call
/// of this thread fails.
#[unsafe(no_mangle)]
pub extern "C" fn radsweep_last_error() -> *const c_char {
    let kept = LAST.try_with(|last| last.borrow().0.as_ptr());
    kept.unwrap_or(c"".as_ptr())
}

/// The numbers of the last call of this thread that failed. Does not change what radsweep_last_error gives unless it fails itself.
///
/// # Safety
///
/// `detail` points at one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_last_error_detail(
    detail: *mut RadsweepErrorDetail,
) -> RadsweepStatus {
    entry(|| {
        let kept = LAST.try_with(|last| last.borrow().1).unwrap_or(NONE);
        // SAFETY: the caller's promise.
        unsafe { pointer::write(detail, "detail", kept) }
    })
}

/// The name of a status, as "invalid aabb"; "unknown" for a number that is none. Never null; stays for ever.
#[unsafe(no_mangle)]
pub extern "C" fn radsweep_status_name(status: i32) -> *const c_char {
    let known = RadsweepStatus::ALL
        .iter()
        .find(|(known, _)| *known as i32 == status);
    known.map_or("unknown\0", |(_, name)| name).as_ptr().cast()
}
