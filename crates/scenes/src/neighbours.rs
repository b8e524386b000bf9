//! Lists the neighbours of every body from the sorted pairs.
//!
//! Each body can then gather the effects of its neighbours in parallel and always in the same
//! order.

use bevy_ecs::prelude::Resource;
use radsweep::Pair;

/// A row for each body: the bodies that its box overlaps, in ascending order.
#[derive(Resource, Debug, Default)]
pub(super) struct Neighbours {
    /// The offset of each row, and the end of the last.
    starts: Vec<u32>,
    others: Vec<u32>,
}

impl Neighbours {
    /// Fills the rows from the pairs in O(bodies + pairs).
    ///
    /// Each pair adds an entry to two rows. The pairs are sorted, so the rows are too: that of body
    /// i has the pairs (a, i) by a, then the pairs (i, b) by b.
    pub fn rebuild(&mut self, bodies: usize, pairs: &[Pair]) {
        self.starts.clear();
        self.starts.resize(bodies + 1, 0);
        let starts = &mut self.starts;
        for pair in pairs {
            starts[pair.a as usize] += 1;
            starts[pair.b as usize] += 1;
        }
        let mut sum = 0;
        for start in starts.iter_mut() {
            sum += *start;
            *start = sum;
        }
        // Rows are filled from their ends, after which the offsets are those of their starts.
        self.others.resize(2 * pairs.len(), 0);
        for pair in pairs.iter().rev() {
            for (own, other) in [(pair.a, pair.b), (pair.b, pair.a)] {
                let at = &mut starts[own as usize];
                *at -= 1;
                self.others[*at as usize] = other;
            }
        }
    }

    /// Returns the neighbours of a body.
    pub fn of(&self, body: usize) -> &[u32] {
        &self.others[self.starts[body] as usize..self.starts[body + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_both_sides_of_each_pair_in_order() {
        let pairs = [(0, 3), (0, 4), (1, 3), (2, 3), (3, 4)].map(|(a, b)| Pair::new(a, b));
        let mut neighbours = Neighbours::default();
        for _ in 0..2 {
            neighbours.rebuild(6, &pairs);
            let rows: Vec<_> = (0..6).map(|body| neighbours.of(body)).collect();
            let expected: [&[u32]; 6] = [&[3, 4], &[3], &[3], &[0, 1, 2, 4], &[0, 3], &[]];
            assert_eq!(rows, expected);
        }
        neighbours.rebuild(2, &[]);
        assert!(neighbours.of(0).is_empty() && neighbours.of(1).is_empty());
    }
}
