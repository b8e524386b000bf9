//! The search for the driver's library, and the functions that stand in for missing ones.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;

/// The environment variable that names the driver's library.
pub const ENV: &str = "RADSWEEP_CUDA_LIBRARY";
/// The code that every function returns without a driver: `CUDA_ERROR_NO_DEVICE`.
pub const NO_DEVICE: i32 = 100;
/// The code that a function returns that the driver lacks: `CUDA_ERROR_NOT_FOUND`.
pub const NOT_FOUND: i32 = 500;
const INVALID_VALUE: i32 = 1;

/// The names and paths where the driver's library is looked for, in this order.
const CANDIDATES: [&str; 3] = [
    "libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
    "/run/opengl-driver/lib/libcuda.so.1",
];

unsafe extern "C" {
    fn dlopen(path: *const c_char, mode: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}
/// `RTLD_NOW` of glibc and musl, on every target of this crate; `RTLD_LOCAL` is 0.
const NOW: c_int = 2;

pub(crate) struct Library {
    pub name: String,
    handle: *mut c_void,
}
// SAFETY: the handle is only passed to `dlsym`, which any thread may call, and the library is never
// closed.
unsafe impl Send for Library {}
// SAFETY: the handle is only passed to `dlsym`, which threads may call at once.
unsafe impl Sync for Library {}

impl Library {
    fn open(candidate: &CString) -> Result<Library, String> {
        // SAFETY: the path is a C string. Opening runs the library's constructors. The user of this
        // crate asks for the driver's, and whoever set `RADSWEEP_CUDA_LIBRARY` asked for those of
        // that library.
        let handle = unsafe { dlopen(candidate.as_ptr(), NOW) };
        let library = Library {
            name: candidate.to_string_lossy().into_owned(),
            handle,
        };
        if handle.is_null() {
            // SAFETY: `dlerror` has no conditions.
            let text = unsafe { dlerror() };
            if text.is_null() {
                return Err("no reason given".to_owned());
            }
            // SAFETY: a non-null result is a C string until this thread's next call of `dlopen`,
            // `dlsym` or `dlerror`.
            let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
            // The text usually begins with the path, which the error names already.
            let reason = text.strip_prefix(&library.name).unwrap_or(&text);
            Err(reason.trim_start_matches(": ").to_owned())
        } else if library.symbol("cuInit").is_null() {
            // It is left open, because closing would run the destructors of an unknown library.
            Err("it is not a CUDA driver: it has no cuInit".to_owned())
        } else {
            Ok(library)
        }
    }

    pub fn symbol(&self, name: &str) -> *mut c_void {
        let Ok(name) = CString::new(name) else {
            return core::ptr::null_mut();
        };
        // SAFETY: the library is never closed, and the name is a C string.
        unsafe { dlsym(self.handle, name.as_ptr()) }
    }
}

/// The error of a missing driver: the candidates, and the dynamic linker's message for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// The names and paths tried, in order.
    pub looked_for: Vec<String>,
    /// The reason why each was refused, in the same order.
    pub reasons: Vec<String>,
}

impl LoadError {
    /// Returns the reasons as one line. Equal neighbours are given once.
    pub fn reason(&self) -> String {
        let mut reasons = self.reasons.clone();
        reasons.dedup();
        reasons.join("; ")
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no CUDA driver: looked for {} ({})",
            self.looked_for.join(", "),
            self.reason()
        )
    }
}

impl std::error::Error for LoadError {}

/// Returns the function that stands in for one that the library lacks, or for all without one.
pub(crate) fn stand_in(name: &str, has_driver: bool) -> *mut () {
    match name {
        "cuGetErrorName" => error_name as ErrorText as *mut (),
        "cuGetErrorString" => error_string as ErrorText as *mut (),
        _ if has_driver => not_found as Answer as *mut (),
        _ => no_device as Answer as *mut (),
    }
}

/// Opens the first library that is a driver.
pub(crate) fn open() -> Result<Library, LoadError> {
    let forced = std::env::var_os(ENV).filter(|value| !value.is_empty());
    let candidates = forced.map_or_else(
        || CANDIDATES.map(OsString::from).to_vec(),
        |candidate| vec![candidate],
    );
    let mut error = LoadError {
        looked_for: Vec::new(),
        reasons: Vec::new(),
    };
    for candidate in candidates {
        error
            .looked_for
            .push(candidate.to_string_lossy().into_owned());
        let opened = CString::new(candidate.into_vec())
            .map_err(|e| e.to_string())
            .and_then(|candidate| Library::open(&candidate));
        match opened {
            Ok(library) => return Ok(library),
            Err(reason) => error.reasons.push(reason),
        }
    }
    Err(error)
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
