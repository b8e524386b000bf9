//! A hash of a pair list, to compare results with published ones.

use crate::Pair;

/// 64-bit FNV-1a over pairs as they come, for lists that arrive in chunks.
///
/// ```
/// use sap::Pair;
/// use sap::internals::{PairHasher, pair_hash};
///
/// let pairs = [Pair { a: 0, b: 1 }, Pair { a: 0, b: 2 }, Pair { a: 1, b: 2 }];
/// let mut hasher = PairHasher::new();
/// pairs.chunks(2).for_each(|chunk| hasher.write(chunk));
/// assert_eq!(hasher.finish(), pair_hash(&pairs));
/// ```
#[derive(Debug, Clone)]
pub struct PairHasher(u64);

impl PairHasher {
    /// The hash of no pairs.
    #[must_use]
    pub const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds pairs, each as `a` then `b`, as little-endian `u32`.
    pub fn write(&mut self, pairs: &[Pair]) {
        for pair in pairs {
            let bytes = u64::from(pair.a) | u64::from(pair.b) << 32;
            for byte in bytes.to_le_bytes() {
                self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
    }

    /// The hash so far.
    #[must_use]
    pub const fn finish(&self) -> u64 {
        self.0
    }
}

impl Default for PairHasher {
    fn default() -> Self {
        Self::new()
    }
}

/// 64-bit FNV-1a over the pairs, each as little-endian `u32` `a`, then `b`. O(pairs).
///
/// ```
/// use sap::{Pair, internals::pair_hash};
///
/// assert_eq!(pair_hash(&[]), 0xcbf29ce484222325);
/// assert_ne!(pair_hash(&[Pair { a: 0, b: 1 }]), pair_hash(&[Pair { a: 0, b: 2 }]));
/// ```
#[must_use]
pub fn pair_hash(pairs: &[Pair]) -> u64 {
    let mut hasher = PairHasher::new();
    hasher.write(pairs);
    hasher.finish()
}
