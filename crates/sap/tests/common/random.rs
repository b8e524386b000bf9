//! Pseudo-random numbers, and boxes by centre.

use sap::Aabb;

/// A pseudo-random generator that gives the same numbers everywhere: splitmix64.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }

    pub fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    /// Returns a number that is at least `low` and below `high`.
    pub fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * ((self.bits() >> 40) as f32 / (1 << 24) as f32)
    }

    /// Returns boxes like those of [`uniform_in`].
    pub fn boxes(&mut self, n: usize, sides: [f32; 3]) -> Vec<Aabb> {
        let mut one = || {
            let center = sides.map(|side| self.between(0.0, side));
            around(center, [(); 3].map(|()| self.between(0.2, 0.5)))
        };
        (0..n).map(|_| one()).collect()
    }
}

pub fn around(center: [f32; 3], half: [f32; 3]) -> Aabb {
    Aabb::new(
        std::array::from_fn(|k| center[k] - half[k]),
        std::array::from_fn(|k| center[k] + half[k]),
    )
}

/// Returns boxes with centres uniform in a box of these sides, and half extents uniform in 0.2 to
/// 0.5.
pub fn uniform_in(n: usize, sides: [f32; 3], seed: u64) -> Vec<Aabb> {
    Random::new(seed).boxes(n, sides)
}
