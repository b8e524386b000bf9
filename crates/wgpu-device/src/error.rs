//! The errors of this crate. They name the adapter and the call.

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a call on a device failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No adapter is of the kind asked for.
    #[error("no graphics adapter: looked for {looked_for}, found {found}")]
    NoAdapter {
        /// The kind of adapter asked for.
        looked_for: &'static str,
        /// The adapters found.
        found: String,
    },
    /// The adapter gave no device.
    #[error("{adapter}: no device: {reason}")]
    NoDevice {
        /// The adapter.
        adapter: String,
        /// The driver's message.
        reason: String,
    },
    /// The device has no memory left for the call.
    #[error("{adapter}: out of memory in {call}")]
    OutOfMemory {
        /// The adapter.
        adapter: String,
        /// The call.
        call: &'static str,
    },
    /// A buffer or another resource must be larger than the device allows.
    #[error("{adapter}: {what} needs {needed}, but the device allows {limit}")]
    TooLarge {
        /// The adapter.
        adapter: String,
        /// The buffer, or other resource.
        what: &'static str,
        /// The bytes, or the number, needed.
        needed: u64,
        /// The limit of the device.
        limit: u64,
    },
    /// A range of bytes does not lie within a buffer, or is not aligned.
    #[error(
        "{adapter}: {call}: bytes {start}..{end} are not a range of 4-byte words in a buffer of \
         {size} bytes"
    )]
    Range {
        /// The adapter.
        adapter: String,
        /// The call.
        call: &'static str,
        /// The first byte.
        start: u64,
        /// The end of the range, one past its last byte.
        end: u64,
        /// The bytes of the buffer.
        size: u64,
    },
    /// The device is lost: nothing works on it any more.
    #[error("{adapter}: the device was lost before or in {call}: {reason}")]
    Lost {
        /// The adapter.
        adapter: String,
        /// The call.
        call: &'static str,
        /// The driver's message.
        reason: String,
    },
    /// The driver or the validation of `wgpu` refused the call.
    #[error("{adapter}: {call} failed: {reason}")]
    Failed {
        /// The adapter.
        adapter: String,
        /// The call.
        call: &'static str,
        /// The message.
        reason: String,
    },
}
