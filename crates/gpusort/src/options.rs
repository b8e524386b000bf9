//! What a sort is asked to do.

use crate::{Algorithm, Error, Key, Result};
use std::ops::Range;

/// Direction of a sort. Both are stable: equal keys keep the order they came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// Smallest key first.
    #[default]
    Ascending,
    /// Largest key first.
    Descending,
}

/// Algorithm, direction and bit window of a sort. The default is [`Algorithm::Auto`], ascending, all bits.
///
/// ```
/// use gpusort::{SortOptions, cpu};
///
/// // By the high byte only, largest first; keys with equal high bytes stay as they came.
/// let mut keys = [0x0102_u32, 0x0201, 0x0101, 0x0202];
/// cpu::sort_keys(&mut keys, &SortOptions::new().descending().bits(8..32))?;
/// assert_eq!(keys, [0x0201, 0x0202, 0x0102, 0x0101]);
/// # Ok::<(), gpusort::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SortOptions {
    /// The family of sorts that runs on a GPU.
    pub algorithm: Algorithm,
    /// The direction.
    pub order: Order,
    /// Window `[begin, end)` of [`Key::to_ordered_bits`], bit 0 the lowest, that keys are compared by; `None` = all.
    /// An empty window makes all keys equal, so that a stable sort moves nothing.
    pub bits: Option<Range<u32>>,
    /// A hint that most elements are in order already and no other is far from its place, such as 1 % of them up to 1000 places
    /// away. A GPU then sorts by [`Algorithm::Auto`] or [`Algorithm::Onesweep`] in about one read and one write of each element,
    /// however many bits keys have, and costs little more than without the hint where it turns out wrong. All others ignore it,
    /// and so do inputs too small to gain by it and sorts that take the number of keys from the device.
    pub nearly_sorted: bool,
}

impl SortOptions {
    /// The default: [`Algorithm::Auto`], ascending, all bits.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            algorithm: Algorithm::Auto,
            order: Order::Ascending,
            bits: None,
            nearly_sorted: false,
        }
    }

    /// The same with this algorithm.
    #[must_use]
    pub fn algorithm(self, algorithm: Algorithm) -> Self {
        Self { algorithm, ..self }
    }

    /// The same in this direction.
    #[must_use]
    pub fn order(self, order: Order) -> Self {
        Self { order, ..self }
    }

    /// The same, largest key first.
    #[must_use]
    pub fn descending(self) -> Self {
        self.order(Order::Descending)
    }

    /// The same with keys compared by the bits `[begin, end)` of their ordered bits only.
    #[must_use]
    pub fn bits(self, window: Range<u32>) -> Self {
        Self {
            bits: Some(window),
            ..self
        }
    }

    /// The same with the hint [`SortOptions::nearly_sorted`].
    #[must_use]
    pub fn nearly_sorted(self) -> Self {
        Self {
            nearly_sorted: true,
            ..self
        }
    }

    /// The bit window for keys of type `K`, checked: `begin <= end <= K::BITS`.
    ///
    /// # Errors
    ///
    /// [`Error::BitWindow`] where the window does not fit.
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
