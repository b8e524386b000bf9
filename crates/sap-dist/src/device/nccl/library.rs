//! NCCL as a library. It is bound when it is first needed, so that nothing links to it.

use crate::TransportError;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

/// The environment variable that names the library.
const ENV: &str = "RADSWEEP_NCCL";
const NAME: &str = "libnccl.so.2";
/// `RTLD_NOW` on every Linux that the crate is for.
const NOW: c_int = 2;

/// The oldest version that can be used: major, minor and patch. Before it, a rank writes into the
/// buffers of another rank of its process, and one device cannot access the memory pools of
/// another.
const NEEDED: [u32; 3] = [2, 23, 0];

/// What a function of NCCL returns.
pub(super) const SUCCESS: c_int = 0;
/// What one returns that goes on in the background.
pub(super) const IN_PROGRESS: c_int = 7;
/// NCCL's type of bytes.
pub(super) const BYTES: c_int = 1;

unsafe extern "C" {
    fn dlopen(path: *const c_char, mode: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

/// NCCL's handle of a communicator.
pub(super) type Handle = *mut c_void;

/// What all ranks of a communicator know: a name by which they find each other.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Id(pub [u8; 128]);

/// The options of a communicator, as in version 2.14, which every later one accepts.
#[repr(C)]
pub(super) struct Options {
    size: usize,
    magic: u32,
    version: u32,
    blocking: c_int,
}

impl Options {
    /// Every call returns at once.
    pub const NON_BLOCKING: Self = Self {
        size: size_of::<Self>(),
        magic: 0xcafe_beef,
        version: 2_14_00,
        blocking: 0,
    };
}

macro_rules! functions {
    ($($field:ident $name:literal ($($type:ty),*),)*) => {
        /// The functions of the open library, which is never closed.
        #[derive(Debug)]
        pub(super) struct Library {
            $(pub $field: unsafe extern "C" fn($($type),*) -> c_int,)*
        }

        impl Library {
            fn bind(library: *mut c_void) -> Result<Self, String> {
                Ok(Self {
                    $($field: {
                        // SAFETY: the library is never closed, and the name is a C string.
                        let found = unsafe { dlsym(library, $name.as_ptr()) };
                        if found.is_null() {
                            return Err(format!("it has no {}", $name.to_string_lossy()));
                        }
                        // SAFETY: NCCL's function of that name has this type.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($type),*) -> c_int,
                            >(found)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    get_version c"ncclGetVersion" (*mut c_int),
    get_unique_id c"ncclGetUniqueId" (*mut Id),
    init c"ncclCommInitRankConfig" (*mut Handle, c_int, Id, c_int, *const Options),
    async_error c"ncclCommGetAsyncError" (Handle, *mut c_int),
    destroy c"ncclCommDestroy" (Handle),
    abort c"ncclCommAbort" (Handle),
    group_start c"ncclGroupStart" (),
    group_end c"ncclGroupEnd" (),
    send c"ncclSend" (*const c_void, usize, c_int, c_int, Handle, *mut c_void),
    recv c"ncclRecv" (*mut c_void, usize, c_int, c_int, Handle, *mut c_void),
}

/// Why there is no library.
enum Missing {
    NotFound(String),
    Old([u32; 3]),
}

static LIBRARY: OnceLock<Result<Library, Missing>> = OnceLock::new();

impl Library {
    /// Returns the library of this process, for a rank.
    pub fn get(rank: usize) -> Result<&'static Self, TransportError> {
        let library = LIBRARY.get_or_init(Self::open);
        library.as_ref().map_err(|missing| match missing {
            Missing::NotFound(detail) => TransportError::NoNccl {
                rank,
                detail: detail.clone(),
            },
            &Missing::Old(found) => TransportError::OldNccl {
                rank,
                found,
                needed: NEEDED,
            },
        })
    }

    fn open() -> Result<Self, Missing> {
        let forced = std::env::var_os(ENV).filter(|name| !name.is_empty());
        let name = forced.unwrap_or_else(|| OsString::from(NAME));
        let not_found = |reason| {
            let name = name.to_string_lossy();
            Missing::NotFound(format!("looked for {name} ({reason})"))
        };
        let library = load(&name).and_then(Self::bind).map_err(not_found)?;
        let mut version = 0;
        // SAFETY: the out pointer is valid.
        let code = unsafe { (library.get_version)(&mut version) };
        if code != SUCCESS {
            return Err(not_found(format!("ncclGetVersion returned {code}")));
        }
        let found = parts(u32::try_from(version).unwrap_or(0));
        if found < NEEDED {
            return Err(Missing::Old(found));
        }
        Ok(library)
    }
}

fn load(name: &OsStr) -> Result<*mut c_void, String> {
    let path = CString::new(name.as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: the path is a C string. The library's constructors run, which the caller asks for.
    let library = unsafe { dlopen(path.as_ptr(), NOW) };
    if !library.is_null() {
        return Ok(library);
    }
    // SAFETY: `dlerror` has no conditions. A non-null result is a C string until this thread's next
    // call of `dlopen`, `dlsym` or `dlerror`.
    let text = unsafe {
        let text = dlerror();
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    };
    Err(text.unwrap_or_else(|| "no reason given".to_owned()))
}

/// Returns major, minor and patch of NCCL's number of a version, which has two digits for each of
/// the latter since 2.9 and one before.
const fn parts(version: u32) -> [u32; 3] {
    if version < 10_000 {
        [version / 1000, version / 100 % 10, version % 100]
    } else {
        [version / 10_000, version / 100 % 100, version % 100]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(parts(22_809), [2, 28, 9]);
        assert_eq!(parts(2_804), [2, 8, 4]);
        assert_eq!(parts(0), [0, 0, 0]);
        assert!(parts(22_205) < NEEDED && NEEDED < parts(22_304));
    }
}
