//! The landscape of `particles`: the scaled heights of `assets/landscape.npy`.

use super::Landscape;
use glam::Vec3;

/// Height of the highest mountain above the deepest valley, as a share of the side.
const RELIEF: f32 = 0.3;

impl Landscape {
    /// Loads the landscape, scaled to a square of this side, with its lowest point at y = 0.
    pub(super) fn of_side(side: f32) -> Self {
        // The file is part of the program, and a test checks it: a header of version 1, then `<u2`.
        let file = &include_bytes!("../assets/landscape.npy")[..];
        let length = usize::from(u16::from_le_bytes([file[8], file[9]]));
        let words: Vec<u16> = file[10 + length..]
            .chunks_exact(2)
            .map(|word| u16::from_le_bytes([word[0], word[1]]))
            .collect();
        let width = words.len().isqrt();
        let unit = side * RELIEF / f32::from(u16::MAX);
        Self {
            origin: [0.0; 2],
            spacing: side / (width - 1) as f32,
            width,
            heights: words.iter().map(|&word| f32::from(word) * unit).collect(),
        }
    }

    /// Returns the height of the ground at (x, z) and its slopes along x and z, by bilinear
    /// interpolation.
    ///
    /// `ground_at` in `kernels/demo/particles.cuh` takes the same steps in the same order, so that
    /// the bits agree.
    pub(super) fn at(&self, x: f32, z: f32) -> Vec3 {
        let (column, u) = self.cell((x - self.origin[0]) / self.spacing);
        let (row, v) = self.cell((z - self.origin[1]) / self.spacing);
        let at = row * self.width + column;
        let [a, b] = [self.heights[at], self.heights[at + 1]];
        let [c, d] = [
            self.heights[at + self.width],
            self.heights[at + self.width + 1],
        ];
        let (near, far) = (a + (b - a) * u, c + (d - c) * u);
        let along_x = ((b - a) + ((d - c) - (b - a)) * v) / self.spacing;
        Vec3::new(
            along_x,
            near + (far - near) * v,
            (far - near) / self.spacing,
        )
    }

    /// Returns the cell that contains a coordinate, and the position within it.
    fn cell(&self, at: f32) -> (usize, f32) {
        let cell = (at as usize).min(self.width - 2);
        (cell, at - cell as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_match_the_grid_points_and_slopes_the_surface() {
        let ground = Landscape::of_side(100.0);
        assert_eq!(ground.heights.len(), ground.width * ground.width);
        assert!(ground.width > 100, "the asset was read");
        let high = ground.heights.iter().copied().fold(0.0, f32::max);
        assert!((high - 100.0 * RELIEF).abs() < 1e-3, "{high}");
        for (column, row) in [(0, 0), (7, 200), (256, 256), (31, 100)] {
            let found = ground.at(column as f32 * ground.spacing, row as f32 * ground.spacing);
            let expected = ground.heights[row * ground.width + column];
            assert!((found.y - expected).abs() < 1e-3, "{column} {row}");
        }
        let (x, z, step) = (41.3, 57.9, 0.01);
        let here = ground.at(x, z);
        let slope_x = (ground.at(x + step, z).y - here.y) / step;
        let slope_z = (ground.at(x, z + step).y - here.y) / step;
        assert!((slope_x - here.x).abs() < 0.02, "{slope_x} {here}");
        assert!((slope_z - here.z).abs() < 0.02, "{slope_z} {here}");
    }
}
