//! The frame of every call: its status, and the last failure of each thread.

use crate::error::{Failure, RadsweepErrorDetail, RadsweepStatus};
use crate::pointer;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

const NONE: RadsweepErrorDetail = RadsweepErrorDetail {
    status: RadsweepStatus::Ok,
    index: 0,
    count: 0,
};

thread_local! {
    static LAST: RefCell<(CString, RadsweepErrorDetail)> = RefCell::new((CString::default(), NONE));
}

/// Runs the body of a call. A failure or a panic becomes a status and is stored for the thread.
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
    // A thread that is ending cannot store a failure. The text has no zero bytes.
    let _ =
        LAST.try_with(|last| *last.borrow_mut() = (CString::new(text).unwrap_or_default(), detail));
    detail.status
}

/// Returns the message of this thread's last failed call, in one line; "" if there is none.
///
/// The pointer is never null, and valid until the next call of this thread fails.
#[unsafe(no_mangle)]
pub extern "C" fn radsweep_last_error() -> *const c_char {
    let stored = LAST.try_with(|last| last.borrow().0.as_ptr());
    stored.unwrap_or(c"".as_ptr())
}

/// Returns the numbers of this thread's last failed call. It leaves radsweep_last_error unchanged
/// unless it fails itself.
///
/// # Safety
///
/// `detail` points to memory for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_last_error_detail(
    detail: *mut RadsweepErrorDetail,
) -> RadsweepStatus {
    entry(|| {
        let stored = LAST.try_with(|last| last.borrow().1).unwrap_or(NONE);
        // SAFETY: guaranteed by the caller.
        unsafe { pointer::write(detail, "detail", stored) }
    })
}
