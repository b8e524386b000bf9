//! Lists of pairs that stay on the device.

use wgpu_device::wgpu::Buffer;

/// The pairs of the last update on the device, sorted:
/// [`BroadPhase::wgpu_pairs`](crate::BroadPhase::wgpu_pairs) returns them.
///
/// They are in one buffer, or in several if they are more than the device binds at once. All pairs
/// of a buffer come before those of the next.
#[derive(Debug, Clone, Copy)]
pub struct WgpuPairs<'a> {
    parts: &'a [Part],
}

/// A buffer with the number of pairs in it.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) buffer: Buffer,
    pub(super) pairs: u64,
}

impl<'a> WgpuPairs<'a> {
    pub(super) const fn new(parts: &'a [Part]) -> Self {
        Self { parts }
    }

    /// Returns the number of all pairs.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.pairs).sum()
    }

    /// Tells whether there is no pair.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the buffers in order, each with its number of pairs, which is at least 1. A pair is
    /// two `u32`, `a` and `b`; what lies behind the last is undefined. There is no buffer if there
    /// is no pair.
    pub fn buffers(&self) -> impl ExactSizeIterator<Item = (&'a Buffer, u64)> + use<'a> {
        self.parts.iter().map(|part| (&part.buffer, part.pairs))
    }
}
