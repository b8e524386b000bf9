//! What a sort moves with its keys.

use bytemuck::Pod;

/// What goes with the keys, for [`Sorter::scratch_bytes`](super::Sorter::scratch_bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Payload {
    /// Nothing: `sort_keys`.
    None,
    /// A 4-byte value: `sort_pairs`.
    U32,
    /// An 8-byte value: `sort_pairs`.
    U64,
    /// Their places in the input: `sort_index`.
    Index,
    /// Records of any size: `sort_records`.
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

    /// Whether the values are the keys' places, made up on the way.
    pub(super) fn implicit(self) -> bool {
        matches!(self, Payload::Index | Payload::Records)
    }
}

/// A type that `sort_pairs` moves with a key: `u32` or `u64`. Sealed.
pub trait Value: Pod + Send + Sync + sealed::Sealed {
    /// The same, for [`Sorter::scratch_bytes`](super::Sorter::scratch_bytes).
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
