//! NCCL as a library. It is bound when it is first needed, so that nothing links to it.

use crate::TransportError;
use gpu::AlreadyBound;
use gpu::library::{Library as Opened, Names};
use std::ffi::{OsString, c_int, c_void};
use std::sync::OnceLock;

/// Where the library is looked for.
static NAMES: Names = Names::new(&["libnccl.so.2"]);

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
            fn bind(library: Opened) -> Result<Self, String> {
                Ok(Self {
                    $($field: {
                        let found = library
                            .symbol($name)
                            .ok_or_else(|| format!("it has no {}", $name))?;
                        // SAFETY: NCCL's function of that name has this type.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($type),*) -> c_int,
                            >(found.as_ptr())
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    get_version "ncclGetVersion" (*mut c_int),
    get_unique_id "ncclGetUniqueId" (*mut Id),
    init "ncclCommInitRankConfig" (*mut Handle, c_int, Id, c_int, *const Options),
    async_error "ncclCommGetAsyncError" (Handle, *mut c_int),
    destroy "ncclCommDestroy" (Handle),
    abort "ncclCommAbort" (Handle),
    group_start "ncclGroupStart" (),
    group_end "ncclGroupEnd" (),
    send "ncclSend" (*const c_void, usize, c_int, c_int, Handle, *mut c_void),
    recv "ncclRecv" (*mut c_void, usize, c_int, c_int, Handle, *mut c_void),
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
        let bound = NAMES.open(|library| {
            let library = Self::bind(library)?;
            let mut version = 0;
            // SAFETY: the out pointer is valid.
            match unsafe { (library.get_version)(&mut version) } {
                SUCCESS => Ok((library, parts(u32::try_from(version).unwrap_or(0)))),
                code => Err(format!("ncclGetVersion returned {code}")),
            }
        });
        match bound {
            Ok((_, found)) if found < NEEDED => Err(Missing::Old(found)),
            Ok((library, _)) => Ok(library),
            Err(error) => Err(Missing::NotFound(error.to_string())),
        }
    }
}

/// Names the library of NCCL, a path or a name, instead of `libnccl.so.2` on the dynamic linker's
/// paths. The process must call this before it makes its first [`Nccl`](crate::Nccl).
///
/// # Errors
///
/// [`AlreadyBound`] if the process has looked for the library, or has called this before.
///
/// ```
/// sap_dist::set_nccl_library("/opt/nccl/lib/libnccl.so.2")?;
/// # Ok::<(), gpu::AlreadyBound>(())
/// ```
pub fn set_nccl_library(name: impl Into<OsString>) -> Result<(), AlreadyBound> {
    NAMES.replace(name)
}

/// Splits NCCL's number of a version into major, minor and patch. Minor and patch have two digits
/// each since 2.9, one before.
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
