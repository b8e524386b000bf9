//! Checks what the driver's library has, and stands in for functions that it lacks.

use crate::library::{Library, LoadError, Names};
use core::ffi::{CStr, c_char};

/// The code that every function returns without a driver: `CUDA_ERROR_NO_DEVICE`.
pub const NO_DEVICE: i32 = 100;
/// The code that a function returns that the driver lacks: `CUDA_ERROR_NOT_FOUND`.
pub const NOT_FOUND: i32 = 500;
const INVALID_VALUE: i32 = 1;

/// Where the driver's library is looked for.
pub(crate) static NAMES: Names = Names::new(&[
    "libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
    "/run/opengl-driver/lib/libcuda.so.1",
]);

/// Opens the first library that is a driver.
pub(crate) fn open() -> Result<Library, LoadError> {
    NAMES.open(|library| match library.symbol("cuInit") {
        Some(_) => Ok(library),
        None => Err("it is not a CUDA driver: it has no cuInit".to_owned()),
    })
}

/// Returns the function that stands in for one that the library lacks, or for all without one.
pub(crate) fn stand_in(name: &str, has_driver: bool) -> *mut () {
    match name {
        "cuGetErrorName" => error_name as ErrorText as *mut (),
        "cuGetErrorString" => error_string as ErrorText as *mut (),
        _ if has_driver => not_found as Answer as *mut (),
        _ => no_device as Answer as *mut (),
    }
}

// The functions that stand in for missing ones. They do not read the arguments that callers pass.
// This is sound, because in the C calling conventions of both processors the caller removes its own
// arguments.
type Answer = extern "C" fn() -> i32;
extern "C" fn no_device() -> i32 {
    NO_DEVICE
}
extern "C" fn not_found() -> i32 {
    NOT_FOUND
}

type ErrorText = unsafe extern "C" fn(i32, *mut *const c_char) -> i32;
unsafe extern "C" fn error_name(code: i32, text: *mut *const c_char) -> i32 {
    let name = match code {
        0 => Some(c"CUDA_SUCCESS"),
        INVALID_VALUE => Some(c"CUDA_ERROR_INVALID_VALUE"),
        NO_DEVICE => Some(c"CUDA_ERROR_NO_DEVICE"),
        NOT_FOUND => Some(c"CUDA_ERROR_NOT_FOUND"),
        _ => None,
    };
    // SAFETY: the caller promises that `text` is null or may be written.
    unsafe { answer(name, text) }
}
unsafe extern "C" fn error_string(code: i32, text: *mut *const c_char) -> i32 {
    let string = match code {
        0 => Some(c"no error"),
        INVALID_VALUE => Some(c"invalid argument"),
        NO_DEVICE => Some(c"no CUDA driver was found"),
        NOT_FOUND => Some(c"the CUDA driver does not have this function"),
        _ => None,
    };
    // SAFETY: the caller promises that `text` is null or may be written.
    unsafe { answer(string, text) }
}

/// Writes `found` to `text` and returns the code of success, or writes null and returns "invalid
/// value".
///
/// # Safety
///
/// `text` is null or may be written.
unsafe fn answer(found: Option<&'static CStr>, text: *mut *const c_char) -> i32 {
    if text.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: `text` is not null, so the caller promises that it may be written.
    unsafe { *text = found.map_or(core::ptr::null(), CStr::as_ptr) };
    if found.is_some() { 0 } else { INVALID_VALUE }
}
