//! The payload of a sort: what moves with the keys.

use bytemuck::Pod;

/// What moves with the keys, for [`Sorter::scratch_bytes`](super::Sorter::scratch_bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Payload {
    /// Nothing.
    None,
    /// A value of 4 bytes: [`Request::values`](super::Request::values).
    U32,
    /// A value of 8 bytes: [`Request::values`](super::Request::values).
    U64,
    /// The indices of the keys in the input: [`Request::index`](super::Request::index).
    Index,
    /// Records of any size: [`Request::records`](super::Request::records).
    Records,
}

impl Payload {
    pub(super) fn value_bytes(self) -> usize {
        match self {
            Payload::None => 0,
            Payload::U32 | Payload::Index | Payload::Records => 4,
            Payload::U64 => 8,
        }
    }

    /// Returns whether the values are the keys' indices, which the sort generates itself.
    pub(super) fn implicit(self) -> bool {
        matches!(self, Payload::Index | Payload::Records)
    }
}

/// A type that [`Request::values`](super::Request::values) moves with a key: `u32` or `u64`. The
/// trait is sealed.
pub trait Value: Pod + Send + Sync + sealed::Sealed {
    /// The payload of this type, for [`Sorter::scratch_bytes`](super::Sorter::scratch_bytes).
    const PAYLOAD: Payload;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

impl Value for u32 {
    const PAYLOAD: Payload = Payload::U32;
}
impl Value for u64 {
    const PAYLOAD: Payload = Payload::U64;
}
