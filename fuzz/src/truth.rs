//! Computes the pairs and queries of a frame by brute force.

use crate::boxes::{Form, Item};
use sap::{Aabb, OverlapRule, Pair};

/// A frame with everything that decides its pairs.
#[derive(Clone)]
pub struct Truth {
    pub items: Vec<Item>,
    pub form: Form,
    pub filtered: bool,
    pub parted: bool,
    pub excluded: Vec<Pair>,
    pub rule: OverlapRule,
}

impl Truth {
    /// Returns the boxes that the broad phase sees; invalid ones are empty.
    pub fn given(&self) -> Vec<Aabb> {
        let given = |item: &Item| item.given(self.form).unwrap_or(Aabb::EMPTY);
        self.items.iter().map(given).collect()
    }

    pub fn first_bad(&self) -> Option<usize> {
        self.items
            .iter()
            .position(|item| item.given(self.form).is_none())
    }

    fn allows(&self, a: &Item, b: &Item) -> bool {
        (!self.filtered || a.filter.allows(&b.filter)) && (!self.parted || a.world == b.world)
    }

    fn overlap(&self, a: &Item, b: &Item) -> bool {
        match (a.given(self.form), b.given(self.form)) {
            (Some(_), Some(_)) if self.form == Form::Exact => a.wide.overlaps(&b.wide, self.rule),
            (Some(x), Some(y)) => x.overlaps(&y, self.rule),
            _ => false,
        }
    }

    /// Returns all pairs, of the given boxes or of those in `stored`.
    pub fn pairs(&self, stored: Option<&[Aabb]>) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for (i, a) in self.items.iter().enumerate() {
            for (j, b) in self.items.iter().enumerate().skip(i + 1) {
                let pair = Pair::new(i as u32, j as u32);
                let overlap = match stored {
                    Some(stored) => stored[i].overlaps(&stored[j], self.rule),
                    None => self.overlap(a, b),
                };
                if overlap && self.allows(a, b) && self.excluded.binary_search(&pair).is_err() {
                    pairs.push(pair);
                }
            }
        }
        pairs
    }

    /// Returns the pairs of the boxes before an index with those from it on, with indices from 0 in
    /// each set; no pairs are excluded.
    pub fn between(&self, cut: usize) -> Vec<Pair> {
        let (first, second) = self.items.split_at(cut);
        let mut pairs = Vec::new();
        for (a, x) in (0..).zip(first) {
            let met = (0..)
                .zip(second)
                .filter(|(_, y)| self.overlap(x, y) && self.allows(x, y));
            pairs.extend(met.map(|(b, _)| Pair { a, b }));
        }
        pairs
    }

    pub fn touching(&self, query: &Aabb) -> Vec<u32> {
        self.indices(|b| b.overlaps(query, self.rule))
    }

    /// Returns the boxes within a radius, by distances in `f64`, as documented for queries.
    pub fn within(&self, center: [f32; 3], radius: f32) -> Vec<u32> {
        if center.iter().any(|x| x.is_nan()) || radius.is_nan() || radius < 0.0 {
            return Vec::new();
        }
        let limit = f64::from(radius).powi(2);
        self.indices(|b| {
            let gap = |axis: usize| {
                let (c, min, max) = (center[axis], b.min[axis], b.max[axis]);
                match () {
                    () if c < min => f64::from(min) - f64::from(c),
                    () if c > max => f64::from(c) - f64::from(max),
                    () => 0.0,
                }
            };
            let distance = gap(0) * gap(0) + gap(1) * gap(1) + gap(2) * gap(2);
            match self.rule {
                OverlapRule::Closed => distance <= limit,
                OverlapRule::Open => distance < limit,
            }
        })
    }

    /// Returns the boxes that a ray hits, by the min and max `t` on every axis.
    pub fn along(&self, origin: [f32; 3], dir: [f32; 3], most: f32) -> Vec<u32> {
        if origin.iter().chain(&dir).any(|x| !x.is_finite()) || most.is_nan() || most < 0.0 {
            return Vec::new();
        }
        self.indices(|b| {
            let (mut near, mut far) = (0.0, f64::from(most));
            for axis in 0..3 {
                let [start, step, min, max] =
                    [origin[axis], dir[axis], b.min[axis], b.max[axis]].map(f64::from);
                if step == 0.0 {
                    if !(min..=max).contains(&start) {
                        return false;
                    }
                } else {
                    let [s, t] = [(min - start) / step, (max - start) / step];
                    (near, far) = (s.min(t).max(near), s.max(t).min(far));
                }
            }
            near <= far && near <= f64::from(f32::MAX)
        })
    }

    fn indices(&self, meets: impl Fn(&Aabb) -> bool) -> Vec<u32> {
        let given = self.given();
        let valid = |b: &Aabb| (0..3).all(|axis| b.min[axis] <= b.max[axis]);
        let met = (0..).zip(&given).filter(|(_, b)| valid(b) && meets(b));
        met.map(|(index, _)| index).collect()
    }
}

/// Updates the boxes that an engine with a margin stores: unchanged while the given box is inside,
/// else enlarged again.
pub fn store(stored: &mut Vec<Aabb>, given: &[Aabb], margin: f32) {
    stored.truncate(given.len());
    for (stored, b) in stored.iter_mut().zip(given) {
        if b.is_empty() || !stored.contains(b) {
            *stored = b.loosened(margin);
        }
    }
    let new = &given[stored.len()..];
    stored.extend(new.iter().map(|b| b.loosened(margin)));
}
