//! The leaf order of a kept tree: boxes are halved by their centres, down to leaves.
//!
//! Halves have whole leaves, the first a power of two of them, so that every node of the tree is
//! one of the parts. Very large boxes would widen the leaf of any neighbour, so they come last,
//! among themselves.

use crate::cpu::lanes::LANES;
use crate::cpu::scene::size;
use crate::cpu::tuning::{LARGE_BOX, SIZE_SAMPLE, STREAM_TASK};
use crate::stratified::draw;
use crate::threads::in_pool;
use crate::{Aabb, Result, try_alloc};

/// A box by its centre.
type Centered = ([f32; 3], u32);

/// Returns the boxes in leaf order. O(n log n), on all threads.
pub(super) fn leaf_order(boxes: &[Aabb]) -> Result<Vec<u32>> {
    let mut sizes: Vec<f32> = draw(boxes.len(), boxes.len().min(SIZE_SAMPLE), 0)
        .map(|i| size(&boxes[i]))
        .collect();
    sizes.sort_unstable_by(f32::total_cmp);
    let max = sizes
        .get(sizes.len() / 2)
        .map_or(0.0, |typical| LARGE_BOX * typical);
    let is_large = |&(_, i): &Centered| size(&boxes[i as usize]) > max;
    let centered = |(i, b): (usize, &Aabb)| (center(b), i as u32);
    let mut all = try_alloc::collect(boxes.iter().enumerate().map(centered))?;
    let large = all.iter().filter(|&one| is_large(one)).count();
    let middle = boxes.len() - large;
    if large > 0 && middle > 0 {
        all.select_nth_unstable_by_key(middle, |one| (is_large(one), one.1));
    }
    let (small, large) = all.split_at_mut(middle);
    halve(small);
    halve(large);
    try_alloc::collect(all.into_iter().map(|(_, i)| i))
}

/// Returns the centre of a box; 0 where there is none.
fn center(b: &Aabb) -> [f32; 3] {
    [0, 1, 2].map(|k| {
        let center = 0.5 * b.min[k] + 0.5 * b.max[k];
        if center.is_finite() { center } else { 0.0 }
    })
}

/// Halves boxes on the axis on which their centres are farthest apart.
fn halve(all: &mut [Centered]) {
    if all.len() <= LANES {
        return;
    }
    let (mut low, mut high) = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
    for (center, _) in &*all {
        for k in 0..3 {
            (low[k], high[k]) = (low[k].min(center[k]), high[k].max(center[k]));
        }
    }
    let extent = |k: usize| high[k] - low[k];
    let k = (0..3)
        .max_by(|&i, &j| extent(i).total_cmp(&extent(j)))
        .unwrap_or(0);
    let middle = all.len().div_ceil(LANES).next_power_of_two() / 2 * LANES;
    all.select_nth_unstable_by(middle, |x, y| x.0[k].total_cmp(&y.0[k]).then(x.1.cmp(&y.1)));
    let is_small = all.len() <= STREAM_TASK;
    let (first, second) = all.split_at_mut(middle);
    if is_small || !in_pool() {
        halve(first);
        halve(second);
    } else {
        rayon::join(|| halve(first), || halve(second));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(at: [f32; 3]) -> Aabb {
        Aabb::new(at, at.map(|x| x + 1.0))
    }

    #[test]
    fn leaves_are_cubes_of_a_lattice_and_large_boxes_come_last() {
        let at = |i: u32| [i % 16, i / 16 % 16, i / 256].map(|x| 2.0 * x as f32);
        let mut boxes: Vec<Aabb> = (0..4096).map(|i| unit(at(i * 1001 % 4096))).collect();
        for i in [0, 100, 4000] {
            boxes.insert(i, Aabb::new([-1.0; 3], [f32::INFINITY; 3]));
        }
        boxes.push(Aabb::EMPTY);
        let order = leaf_order(&boxes).expect("memory");
        assert_eq!(order.iter().max(), Some(&4099));
        let mut once = order.clone();
        once.sort_unstable();
        assert!(once.into_iter().eq(0..4100));
        assert!([0, 100, 4000].iter().all(|i| order[4096..].contains(i)));
        let is_cube = |leaf: &&[u32]| {
            let all = leaf.iter().map(|&i| boxes[i as usize]);
            let all = all.reduce(|a, b| a.merged(&b)).expect("boxes");
            (0..3).all(|k| all.max[k] - all.min[k] == 3.0)
        };
        let cubes = order.chunks_exact(LANES).filter(is_cube).count();
        assert!(cubes > 400, "{cubes}");
    }

    #[test]
    fn any_number_of_boxes_in_any_place_is_ordered() {
        for n in [0, 1, 8, 9, 65, 1000, 5000] {
            for boxes in [
                vec![unit([3.0; 3]); n],
                vec![Aabb::EMPTY; n],
                (0..n).map(|i| unit([(i * 7 % 13) as f32; 3])).collect(),
            ] {
                let mut order = leaf_order(&boxes).expect("memory");
                order.sort_unstable();
                assert!(order.into_iter().eq(0..n as u32));
            }
        }
    }
}
