//! Shared libraries that are opened at run time: the CUDA driver, and others that a program needs
//! only where it uses them.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt;
use core::ptr::NonNull;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

unsafe extern "C" {
    fn dlopen(path: *const c_char, mode: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}
/// `RTLD_NOW` of glibc and musl, on every target of this crate; `RTLD_LOCAL` is 0.
const NOW: c_int = 2;

/// An open library. It is never closed.
#[derive(Debug)]
pub struct Library {
    name: String,
    handle: NonNull<c_void>,
}
// SAFETY: the handle is only passed to `dlsym`, which any thread may call, and the library is never
// closed.
unsafe impl Send for Library {}
// SAFETY: the handle is only passed to `dlsym`, which threads may call at once.
unsafe impl Sync for Library {}

impl Library {
    fn open(name: &OsStr) -> Result<Self, String> {
        if name.is_empty() {
            return Err("the name is empty".to_owned()); // it would be that of the program itself
        }
        let path = CString::new(name.as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: the path is a C string. Opening runs the library's constructors: whoever names a
        // library trusts it.
        let handle = unsafe { dlopen(path.as_ptr(), NOW) };
        let name = name.to_string_lossy().into_owned();
        if let Some(handle) = NonNull::new(handle) {
            return Ok(Self { name, handle });
        }
        // SAFETY: `dlerror` has no conditions.
        let text = unsafe { dlerror() };
        if text.is_null() {
            return Err("no reason given".to_owned());
        }
        // SAFETY: a non-null result is a C string until this thread's next call of `dlopen`,
        // `dlsym` or `dlerror`.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        // The text usually begins with the path, which the error names already.
        let reason = text.strip_prefix(&name).unwrap_or(&text);
        Err(reason.trim_start_matches(": ").to_owned())
    }

    /// Returns the name or path that the library was opened by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the address of a function, or `None` if the library lacks it.
    pub fn symbol(&self, name: &str) -> Option<NonNull<c_void>> {
        let name = CString::new(name).ok()?; // a name with a zero in it is no name of a function
        // SAFETY: the library is never closed, and the name is a C string.
        NonNull::new(unsafe { dlsym(self.handle.as_ptr(), name.as_ptr()) })
    }
}

/// Opens the first library of `names`, names or paths, that `bind` accepts, and returns what it
/// makes of it. A library that `bind` refuses stays open, because closing would run the destructors
/// of an unknown library.
///
/// # Errors
///
/// [`LoadError`], with the reason of the dynamic linker or of `bind` for each name.
pub fn open_first<T>(
    names: &[impl AsRef<OsStr>],
    bind: impl Fn(Library) -> Result<T, String>,
) -> Result<T, LoadError> {
    let mut error = LoadError {
        looked_for: Vec::new(),
        reasons: Vec::new(),
    };
    for name in names.iter().map(AsRef::as_ref) {
        match Library::open(name).and_then(&bind) {
            Ok(bound) => return Ok(bound),
            Err(reason) => error.reasons.push(reason),
        }
        error.looked_for.push(name.to_string_lossy().into_owned());
    }
    Err(error)
}

/// The names that a library is looked for by, until [`replace`](Self::replace) gives another one.
#[derive(Debug)]
pub struct Names {
    usual: &'static [&'static str],
    /// The name that replaces them. It is fixed, as `None`, when they are first used.
    other: OnceLock<Option<OsString>>,
}

impl Names {
    /// Takes the usual names and paths, in the order in which they are tried.
    pub const fn new(usual: &'static [&'static str]) -> Self {
        Self {
            usual,
            other: OnceLock::new(),
        }
    }

    /// Replaces the names by another one, a path or a name.
    ///
    /// # Errors
    ///
    /// [`AlreadyBound`] if the names were used or replaced before.
    pub fn replace(&self, name: impl Into<OsString>) -> Result<(), AlreadyBound> {
        self.other
            .set(Some(name.into()))
            .map_err(|_| AlreadyBound {})
    }

    /// Opens the library, as [`open_first`] does. The names cannot be replaced afterwards.
    ///
    /// # Errors
    ///
    /// As [`open_first`].
    pub fn open<T>(&self, bind: impl Fn(Library) -> Result<T, String>) -> Result<T, LoadError> {
        match self.other.get_or_init(|| None) {
            Some(name) => open_first(&[name], bind),
            None => open_first(self.usual, bind),
        }
    }
}

/// The error of a library that was not found: the names tried, and the dynamic linker's message for
/// each.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadError {
    /// The names and paths tried, in order.
    pub looked_for: Vec<String>,
    /// The reason why each was refused, in the same order.
    pub reasons: Vec<String>,
}

impl LoadError {
    /// Returns the names and paths as one line.
    pub fn names(&self) -> String {
        self.looked_for.join(", ")
    }

    /// Returns the reasons as one line. Equal neighbours are given once.
    pub fn reason(&self) -> String {
        let mut reasons = self.reasons.clone();
        reasons.dedup();
        reasons.join("; ")
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "looked for {} ({})", self.names(), self.reason())
    }
}

impl std::error::Error for LoadError {}

/// The error of naming a library too late: the process has looked for it, or has another name for
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AlreadyBound {}

impl fmt::Display for AlreadyBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the process has looked for this library, or has another name for it")
    }
}

impl std::error::Error for AlreadyBound {}
