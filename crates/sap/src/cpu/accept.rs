//! Decides whether two boxes that overlap in `f32` are a pair: worlds, filters, `f64` bounds and
//! excluded pairs.

use super::scene::Scene;
use crate::{Aabb64, Filter, OverlapRule, Pair, Result, try_alloc};

/// Says where boxes of different worlds are told apart.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum WorldTest {
    /// Each pair is tested.
    PerPair,
    /// Each world has columns of its own, so no test is needed.
    ByColumns,
}

/// The tests that remain for two boxes whose `f32` bounds overlap. `a` is an index into the first
/// set, `b` into the second. Within one set both scenes are the same, and `a < b`.
pub(super) struct Accept<'a> {
    a: &'a Scene,
    b: &'a Scene,
    rule: OverlapRule,
    /// A bit for each box of the first set, set if an excluded pair has it as `a`.
    excluding: Vec<u64>,
    worlds: WorldTest,
}

impl<'a> Accept<'a> {
    pub(super) fn new(
        a: &'a Scene,
        b: &'a Scene,
        rule: OverlapRule,
        worlds: WorldTest,
    ) -> Result<Self> {
        let mut excluding = Vec::new();
        if !a.excluded.is_empty() {
            excluding = try_alloc::zeros::<u64>(a.boxes.len().div_ceil(64))?;
        }
        for pair in &a.excluded {
            if let Some(word) = excluding.get_mut(pair.a as usize / 64) {
                *word |= 1 << (pair.a % 64);
            }
        }
        Ok(Self {
            a,
            b,
            rule,
            excluding,
            worlds,
        })
    }

    fn tests_worlds(&self) -> bool {
        self.worlds == WorldTest::PerPair
    }

    /// Tells whether there is anything to test.
    pub(super) fn tests_anything(&self) -> bool {
        let any = |scene: &Scene| {
            scene.filters.is_some()
                || scene.exact.is_some()
                || (self.tests_worlds() && scene.worlds.is_some())
        };
        any(self.a) || any(self.b) || !self.excluding.is_empty()
    }

    /// Tells whether there is anything to test other than filters and worlds.
    pub(super) fn tests_more(&self) -> bool {
        let exact = |scene: &Scene| scene.exact.is_some();
        exact(self.a) || exact(self.b) || !self.excluding.is_empty()
    }

    /// Tells whether two boxes that overlap in `f32` are a pair.
    pub(super) fn keeps(&self, a: u32, b: u32) -> bool {
        let (i, j) = (a as usize, b as usize);
        let world = |scene: &Scene, i: usize| scene.worlds.as_ref().map_or(0, |worlds| worlds[i]);
        if self.tests_worlds() && world(self.a, i) != world(self.b, j) {
            return false;
        }
        let filter = |scene: &Scene, i: usize| {
            scene
                .filters
                .as_ref()
                .map_or(Filter::default(), |filters| filters[i])
        };
        if (self.a.filters.is_some() || self.b.filters.is_some())
            && !filter(self.a, i).allows(&filter(self.b, j))
        {
            return false;
        }
        if let (Some(x), Some(y)) = (&self.a.exact, &self.b.exact)
            && !Aabb64::overlaps(&x[i], &y[j], self.rule)
        {
            return false;
        }
        let excluding = !self.excluding.is_empty() && self.excluding[i / 64] >> (i % 64) & 1 == 1;
        !(excluding && self.a.excluded.binary_search(&Pair { a, b }).is_ok())
    }
}
