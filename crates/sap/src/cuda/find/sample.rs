//! The sample of a frame's boxes, and what is estimated from it.

use crate::Aabb;
use bytemuck::{Pod, Zeroable};
use gpu::assert_layout;
use gpusort::Key;

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
        let keys = |end: fn(&Aabb) -> [f32; 3]| {
            let key = |&&Sampled { aabb, world, .. }: &&Sampled| {
                u64::from(world) << 32 | u64::from(end(&aabb)[axis].to_ordered_bits())
            };
            let mut keys: Vec<u64> = boxes.iter().map(key).collect();
            keys.sort_unstable();
            keys
        };
        // Those that start up to where one ends, in its world or one before: all that it overlaps
        // there of its world, and those before it in the order of starts and itself.
        let starts = keys(|b| b.min);
        let mut started = 0;
        let up_to_ends = keys(|b| b.max).into_iter().map(|end| {
            started += starts[started..]
                .iter()
                .take_while(|&&start| start <= end)
                .count();
            started
        });
        let n = boxes.len();
        up_to_ends.sum::<usize>() as f64 - (n * (n + 1) / 2) as f64
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

/// Returns some quantiles of the finite values, in ascending order, 0 of none. O(values).
pub(super) fn quantiles<const N: usize>(
    values: impl Iterator<Item = f64>,
    ascending: [f64; N],
) -> [f64; N] {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    let last = values.len().saturating_sub(1);
    let mut first = 0;
    ascending.map(|q| {
        let at = (last as f64 * q).round() as usize - first;
        if values.is_empty() {
            return 0.0;
        }
        let (_, &mut value, _) = values[first..].select_nth_unstable_by(at, f64::total_cmp);
        first += at;
        value
    })
}

/// Returns a quantile of sorted values, 0 of none.
pub(crate) fn quantile(sorted: &[f64], q: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted
        .get((last as f64 * q).round() as usize)
        .copied()
        .unwrap_or(0.0)
}
