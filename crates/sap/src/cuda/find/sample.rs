//! The sample of a frame's boxes, and what is estimated from it.

use crate::Aabb;
use bytemuck::{Pod, Zeroable};
use gpu::assert_layout;

/// A box of the sample and its world: the layout of `Sampled` in `kernels/sap/grid.cuh`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Sampled {
    pub(crate) aabb: Aabb,
    pub(crate) world: u32,
    pub(crate) pad: u32,
}

assert_layout!(Sampled, 32: aabb 0, world 24, pad 28);

/// Returns the boxes of the sample that are not empty.
pub(super) fn present(sample: &[Sampled]) -> impl Iterator<Item = &Sampled> {
    sample.iter().filter(|sampled| !sampled.aabb.is_empty())
}

/// Returns the candidates among `n` boxes on the axis with the fewest, estimated from a sample:
/// pairs of one world whose intervals overlap there.
pub(super) fn candidates(sample: &[Sampled], n: usize) -> f64 {
    let boxes: Vec<&Sampled> = present(sample).collect();
    let on_axis = |axis: usize| {
        let interval =
            |&&Sampled { aabb, world, .. }: &&Sampled| (world, aabb.min[axis], aabb.max[axis]);
        let mut intervals: Vec<(u32, f32, f32)> = boxes.iter().map(interval).collect();
        intervals.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let runs = intervals.iter().enumerate().map(|(i, &(world, _, max))| {
            intervals[i + 1..].partition_point(|other| other.0 == world && other.1 <= max)
        });
        runs.sum::<usize>() as f64
    };
    let scale = n as f64 / boxes.len().max(1) as f64;
    (0..3).map(on_axis).fold(f64::INFINITY, f64::min) * scale * scale
}

/// Returns the length of a side, infinite for infinite sides.
pub(super) fn side(b: &Aabb, axis: usize) -> f64 {
    f64::from(b.max[axis]) - f64::from(b.min[axis])
}

/// Returns the finite values in order.
pub(crate) fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Returns a quantile of sorted values, 0 of none.
pub(crate) fn quantile(sorted: &[f64], q: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted
        .get((last as f64 * q).round() as usize)
        .copied()
        .unwrap_or(0.0)
}
