//! How many boxes a warp takes at once in the sweep of cells (`kernels/sap/grid_sweep.cuh`): its
//! unit.
//!
//! Wide units cost the fewest instructions. Narrow ones make more warps, where there are few boxes,
//! and are more even, where boxes crowd.

use crate::cuda::tuning::{FEW_TESTS, MANY_TESTS, MIN_UNITS, WARPS_A_UNIT};

/// Boxes of a unit, by kernel.
pub(super) const WIDTHS: [u32; 3] = [32, 8, 4];

/// Returns the width, as an index in [`WIDTHS`], for `n` boxes that take `tests_a_box` each, on a
/// device with `warps` resident warps.
pub(super) fn choose(n: usize, tests_a_box: f64, warps: u32) -> usize {
    let (n, warps) = (n as f64, f64::from(warps));
    let even = tests_a_box * n / (warps * MIN_UNITS);
    let max_tests = even.clamp(FEW_TESTS, MANY_TESTS);
    let suits = |width: u32| {
        let width = f64::from(width);
        width * tests_a_box <= max_tests && width * warps <= n * WARPS_A_UNIT
    };
    let narrowest = WIDTHS.len() - 1;
    WIDTHS
        .iter()
        .position(|&width| suits(width))
        .unwrap_or(narrowest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_scenes_get_their_fastest_width() {
        // Boxes, tests a box with the look-ups of rows, the fastest width on an H200 (2026-11-22).
        // The last three had 2, which 4 replaced; the first two of them were measured again
        // (2026-11-28).
        for (n, tests, width) in [
            (10_000, 22.0, 8),
            (30_000, 22.0, 32),
            (100_000, 22.0, 32),
            (1_000_000, 22.0, 32),
            (1_000_000, 44.0, 32),
            (149_845, 57.0, 8),
            (100_000, 123.0, 8),
            (300_000, 532.0, 8),
            (1_000_000, 378.0, 8),
            (200_000, 534.0, 8),
            (92_230, 271.0, 4),
            (138_825, 312.0, 4),
            (440_280, 1624.0, 4),
        ] {
            assert_eq!(WIDTHS[choose(n, tests, 132 * 32)], width, "{n} {tests}");
        }
    }
}
