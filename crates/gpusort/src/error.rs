//! What can be wrong with a call. Every error leaves keys, values and output as they were.

use crate::Algorithm;

/// The result of every call here.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a sort did not run.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bit window does not satisfy `begin <= end <= bits`.
    #[error("bit window {begin}..{end} does not lie within the {bits} bits of the key")]
    BitWindow {
        /// First bit of the window.
        begin: u32,
        /// One past its last bit.
        end: u32,
        /// Bits of the key.
        bits: u32,
    },
    /// Keys and values (or records, or index) differ in number.
    #[error("{keys} keys, but {values} values")]
    LengthMismatch {
        /// Number of keys.
        keys: usize,
        /// Number of values, records or index entries.
        values: usize,
    },
    /// More keys than the sort can number.
    #[error("{keys} keys are more than the {limit} that this sort can number")]
    TooManyKeys {
        /// Number of keys.
        keys: u64,
        /// The most there can be.
        limit: u64,
    },
    /// Scratch memory smaller than the sort needs.
    #[error("scratch of {given} bytes is too small: {needed} are needed")]
    ScratchTooSmall {
        /// Bytes needed.
        needed: u64,
        /// Bytes given.
        given: u64,
    },
    /// Two buffers that must be apart share memory.
    #[error("{first} and {second} overlap in memory")]
    Overlap {
        /// One of them, such as `"keys_in"`.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// Two parts of a request exclude each other.
    #[error("`{first}` cannot be asked for together with `{second}`")]
    Conflict {
        /// The part that was added last, such as `"values"`.
        first: &'static str,
        /// What it cannot be added to.
        second: &'static str,
    },
    /// A buffer does not start where its elements may.
    #[error("{what} starts at address {address:#x}, which is not a multiple of {alignment}")]
    Misaligned {
        /// The buffer, such as `"scratch"`.
        what: &'static str,
        /// Where it starts.
        address: u64,
        /// The alignment it needs, in bytes.
        alignment: u64,
    },
    /// A buffer at address 0.
    #[error("{what} is at address 0")]
    Null {
        /// The buffer, such as `"keys_in"`.
        what: &'static str,
    },
    /// Host memory ran out.
    #[error("no host memory for {bytes} bytes")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: u64,
    },
    /// A pool of threads was needed, in this process or as a fork of another, and the system gives none.
    #[error("no threads to work on: {reason}")]
    NoThreads {
        /// The system's words.
        reason: String,
    },
    /// The algorithm cannot do what was asked.
    #[error("`{algorithm}` cannot take {what}")]
    Unsupported {
        /// The algorithm.
        algorithm: Algorithm,
        /// What it cannot take.
        what: &'static str,
    },
    /// No NVRTC, which a [`Comparator`](crate::cuda::Comparator) is compiled by.
    #[cfg(cuda)]
    #[error("no CUDA compiler library: looked for {looked_for} ({reason})")]
    NoCompiler {
        /// The names and paths tried.
        looked_for: String,
        /// The dynamic linker's words.
        reason: String,
    },
    /// The source of a [`Comparator`](crate::cuda::Comparator) does not compile.
    #[cfg(cuda)]
    #[error("the comparator does not compile:\n{log}")]
    BadComparator {
        /// What the compiler said.
        log: String,
    },
    /// NVRTC failed, and not for the source.
    #[cfg(cuda)]
    #[error("{call} failed with {code}")]
    Compiler {
        /// The call.
        call: &'static str,
        /// Its code, an `nvrtcResult`.
        code: i32,
    },
    /// The GPU, or the call to it, failed.
    #[cfg(cuda)]
    #[error(transparent)]
    Gpu(#[from] gpu::Error),
}
