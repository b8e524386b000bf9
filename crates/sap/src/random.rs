//! Pseudo-random numbers for unit tests.

/// A linear congruential generator, whose upper bits are random.
pub(crate) struct Random(pub(crate) u32);

impl Random {
    pub(crate) const fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0
    }

    pub(crate) const fn below(&mut self, n: u32) -> u32 {
        (self.bits() >> 8) % n
    }

    /// Returns a number that is at least zero and below one.
    pub(crate) const fn unit(&mut self) -> f32 {
        (self.bits() >> 8) as f32 / (1 << 24) as f32
    }
}
