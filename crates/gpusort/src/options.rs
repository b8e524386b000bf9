//! The options of a sort.

use crate::{Algorithm, Error, Key, Result};
use std::ops::Range;

/// The direction of a sort. Equal keys keep their order in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// Smallest key first.
    #[default]
    Ascending,
    /// Largest key first.
    Descending,
}

/// The algorithm, direction and bit window of a sort. The default is [`Algorithm::Auto`],
/// ascending, all bits.
///
/// ```
/// use gpusort::{SortOptions, cpu};
///
/// // Sort by the high byte only, largest first. Keys with equal high bytes keep their order.
/// let mut keys = [0x0102_u32, 0x0201, 0x0101, 0x0202];
/// cpu::sort_keys(&mut keys, &SortOptions::new().descending().bits(8..32))?;
/// assert_eq!(keys, [0x0201, 0x0202, 0x0102, 0x0101]);
/// # Ok::<(), gpusort::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct SortOptions {
    /// The algorithm that runs on CUDA.
    pub algorithm: Algorithm,
    /// The direction of the sort.
    pub order: Order,
    /// The window `[begin, end)` of [`Key::to_ordered_bits`] that keys are compared by, with bit 0
    /// the lowest. `None` means all bits. With an empty window all keys are equal, so nothing
    /// moves.
    pub bits: Option<Range<u32>>,
    /// A hint that most elements are in order already, and that the others are near their sorted
    /// position: for example, 1 % of them up to 1000 positions away. [`Algorithm::Auto`] and
    /// [`Algorithm::Onesweep`] on CUDA then read and write each element about once, however many
    /// bits keys have. Where more than about 5 % are out of order, or one is further away than
    /// about 1100 positions, this is an attempt in vain, and the sort takes up to half as long
    /// again.
    ///
    /// After an attempt in vain the next sort of keys at that address makes none, after a second
    /// one the next 3, then the next 7, 15, 31 and 63. So keys that are in order again are sorted
    /// faster after 63 sorts at the latest, unless others are sorted at that address in turns. A
    /// sort without an attempt takes 4 to 5 µs longer than without the hint. Captured sorts do the
    /// same. The result is the same either way:
    /// [`SortReport::displaced`](crate::SortReport::displaced) tells which way it was.
    ///
    /// The hint is ignored by all other algorithms, for less than 24 MiB of keys and values (3
    /// million pairs of `u32`), by devices with too little shared memory for it, and by sorts that
    /// read the number of keys from the device.
    pub nearly_sorted: bool,
}

impl SortOptions {
    /// Returns the default options: [`Algorithm::Auto`], ascending, all bits.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            algorithm: Algorithm::Auto,
            order: Order::Ascending,
            bits: None,
            nearly_sorted: false,
        }
    }

    /// Sets the algorithm.
    #[must_use]
    pub fn algorithm(self, algorithm: Algorithm) -> Self {
        Self { algorithm, ..self }
    }

    /// Sets the direction.
    #[must_use]
    pub fn order(self, order: Order) -> Self {
        Self { order, ..self }
    }

    /// Sorts the largest key first.
    #[must_use]
    pub fn descending(self) -> Self {
        self.order(Order::Descending)
    }

    /// Compares keys by the bits `[begin, end)` of their ordered bits only.
    #[must_use]
    pub fn bits(self, window: Range<u32>) -> Self {
        Self {
            bits: Some(window),
            ..self
        }
    }

    /// Sets the hint [`SortOptions::nearly_sorted`].
    #[must_use]
    pub fn nearly_sorted(self) -> Self {
        Self {
            nearly_sorted: true,
            ..self
        }
    }

    /// Returns the bit window for keys of type `K`, and checks that `begin <= end <= K::BITS`.
    ///
    /// # Errors
    ///
    /// [`Error::BitWindow`] if the window does not fit the key.
    pub fn window<K: Key>(&self) -> Result<Range<u32>> {
        let window = self.bits.clone().unwrap_or(0..K::BITS);
        if window.start <= window.end && window.end <= K::BITS {
            Ok(window)
        } else {
            Err(Error::BitWindow {
                begin: window.start,
                end: window.end,
                bits: K::BITS,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_checked_against_the_key() {
        let window = |range| SortOptions::new().bits(range).window::<u32>();
        assert_eq!(SortOptions::new().window::<f64>().ok(), Some(0..64));
        assert_eq!(window(0..0).ok(), Some(0..0));
        assert_eq!(window(32..32).ok(), Some(32..32));
        for bad in [Range { start: 3, end: 2 }, 0..33, 33..33, 40..64] {
            assert!(
                matches!(window(bad.clone()), Err(Error::BitWindow { begin, end, bits: 32 })
                    if begin == bad.start && end == bad.end),
                "{bad:?}"
            );
        }
    }
}
