//! The errors of the sorts. Unless it comes from the driver, an error leaves keys, values and
//! output unchanged.

use crate::Algorithm;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a sort did not run.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bit window does not satisfy `begin <= end <= bits`.
    #[error("bit window {begin}..{end} does not lie within the {bits} bits of the key")]
    BitWindow {
        /// The first bit of the window.
        begin: u32,
        /// The end of the window, one past its last bit.
        end: u32,
        /// The number of bits of the key.
        bits: u32,
    },
    /// The number of values, records or index entries differs from the number of keys.
    #[error("{keys} keys and {values} values: the numbers must be equal")]
    LengthMismatch {
        /// The number of keys.
        keys: usize,
        /// The number of values, records or index entries.
        values: usize,
    },
    /// There are more keys than the sort takes.
    #[error("{keys} keys are too many: this sort takes at most {limit}")]
    TooManyKeys {
        /// The number of keys.
        keys: u64,
        /// The maximum.
        limit: u64,
    },
    /// The scratch memory is smaller than the sort needs.
    #[error("scratch memory of {given} bytes is too small: the sort needs {needed}")]
    ScratchTooSmall {
        /// Bytes needed.
        needed: u64,
        /// Bytes given.
        given: u64,
    },
    /// Two buffers overlap that must not.
    #[error("the buffers {first} and {second} overlap in memory")]
    Overlap {
        /// One of them, such as `"keys_in"`.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// Two parts of a request exclude each other.
    #[error("a request cannot combine `{first}` with `{second}`")]
    Conflict {
        /// The part that was added last, such as `"values"`.
        first: &'static str,
        /// The part that excludes it.
        second: &'static str,
    },
    /// A buffer is not aligned for its elements.
    #[error(
        "the buffer {what} is misaligned: its address {address:#x} is not a multiple of {alignment}"
    )]
    Misaligned {
        /// The buffer, such as `"scratch"`.
        what: &'static str,
        /// Its address.
        address: u64,
        /// The alignment that it needs, in bytes.
        alignment: u64,
    },
    /// A buffer that is not empty has address 0.
    #[error("the buffer {what} has address 0")]
    Null {
        /// The buffer, such as `"keys_in"`.
        what: &'static str,
    },
    /// Host memory ran out.
    #[error("out of host memory: cannot allocate {bytes} bytes")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: u64,
    },
    /// A pool of threads was needed, and the system refused to start one thread.
    #[error("cannot start worker threads: {reason}")]
    NoThreads {
        /// The system's message.
        reason: String,
    },
    /// The algorithm does not support a part of the request.
    #[error("the algorithm `{algorithm}` does not support {what}")]
    Unsupported {
        /// The algorithm.
        algorithm: Algorithm,
        /// The part that it does not support.
        what: &'static str,
    },
    /// NVRTC is missing, which compiles a [`Comparator`](crate::cuda::Comparator).
    #[cfg(cuda)]
    #[error("no CUDA compiler library (NVRTC): looked for {looked_for} ({reason})")]
    NoCompiler {
        /// The names and paths tried.
        looked_for: String,
        /// The dynamic linker's message.
        reason: String,
    },
    /// The source of a [`Comparator`](crate::cuda::Comparator) does not compile.
    #[cfg(cuda)]
    #[error("the comparator does not compile:\n{log}")]
    BadComparator {
        /// The compiler's log.
        log: String,
    },
    /// A call of NVRTC failed, but not because of the source.
    #[cfg(cuda)]
    #[error("{call} failed with code {code}")]
    Compiler {
        /// The function of NVRTC.
        call: &'static str,
        /// The code it returned, an `nvrtcResult`.
        code: i32,
    },
    /// The device layer returned an error.
    #[cfg(cuda)]
    #[error(transparent)]
    Gpu(#[from] gpu::Error),
    /// A buffer of a request cannot be bound to a kernel.
    #[cfg(feature = "wgpu")]
    #[error("the buffer {what} has no usage `STORAGE`")]
    NotStorage {
        /// The buffer, such as `"keys_in"`.
        what: &'static str,
    },
    /// The number of keys of a request cannot be read from a buffer.
    #[cfg(feature = "wgpu")]
    #[error(
        "there is no number of keys at {offset} in a buffer of {bytes} bytes with the usages \
         {usage:?}: it takes 4 bytes at a multiple of 4, and `STORAGE`"
    )]
    NoCount {
        /// Where it is to be.
        offset: u64,
        /// The size of the buffer.
        bytes: u64,
        /// The usages of the buffer.
        usage: wgpu_device::BufferUsages,
    },
    /// The device of `wgpu` returned an error.
    #[cfg(feature = "wgpu")]
    #[error(transparent)]
    Wgpu(#[from] wgpu_device::Error),
}

/// Fails unless there are as many values as keys.
pub(crate) fn same_length(keys: usize, values: usize) -> Result<()> {
    if keys == values {
        Ok(())
    } else {
        Err(Error::LengthMismatch { keys, values })
    }
}
