//! Moves boxes at random.

use radsweep::Aabb;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// Boxes of a file move by at most this share of their size from their original positions.
const DRIFT: f32 = 0.025;

/// Moves a box by up to a share of its size on each axis. Infinite sides stay.
pub(super) fn walk(b: &mut Aabb, share: f32, rng: &mut Xoshiro256PlusPlus) {
    for k in 0..3 {
        let by = rng.random_range(-share..share) * (b.max[k] - b.min[k]);
        if by.is_finite() {
            b.min[k] += by;
            b.max[k] += by;
        }
    }
}

/// Returns boxes that all have moved a little.
pub(super) fn moved(boxes: &[Aabb], seed: u64) -> Vec<Aabb> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut boxes = boxes.to_vec();
    boxes.iter_mut().for_each(|b| walk(b, DRIFT, &mut rng));
    boxes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_of_a_file_move_by_little_and_infinite_sides_stay() {
        let plane = Aabb::new(
            [f32::NEG_INFINITY, f32::NEG_INFINITY, -1.0],
            [f32::INFINITY, f32::INFINITY, 0.0],
        );
        let boxes = [Aabb::new([0.0; 3], [2.0; 3]), plane, Aabb::EMPTY];
        let after = moved(&boxes, 7);
        assert!((0..3).all(|k| after[0].min[k].abs() <= 2.0 * DRIFT));
        assert_ne!(after[0], boxes[0]);
        assert_eq!(after[1].min[..2], plane.min[..2]);
        assert_eq!(after[2], Aabb::EMPTY);
    }
}
