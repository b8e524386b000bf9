//! Triangles to draw: the chair and the landscape. Boxes and balls are made by the shader.

use glam::Vec3;
use radsweep::scenes::Landscape;

/// Triangles with a normal at each corner; `indices` by threes, counter-clockwise from outside.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Mesh {
    pub positions: Vec<Vec3>,
    pub normals: Vec<Vec3>,
    pub indices: Vec<u32>,
}

impl Mesh {
    /// The triangles' corners.
    pub fn triangles(&self) -> impl Iterator<Item = [Vec3; 3]> {
        let corner = |index: u32| self.positions[index as usize];
        let (threes, _) = self.indices.as_chunks::<3>();
        threes.iter().map(move |three| three.map(corner))
    }

    /// Radius of the ball around the origin that holds it.
    pub fn radius(&self) -> f32 {
        let squares = self.positions.iter().map(|point| point.length_squared());
        squares.fold(0.0, f32::max).sqrt()
    }

    /// Adds a box.
    fn push_box(&mut self, center: Vec3, half: Vec3) {
        for axis in 0..3 {
            for side in [1.0, -1.0] {
                let mut normal = Vec3::ZERO;
                normal[axis] = side;
                let u = Vec3::AXES[(axis + 1) % 3] * side;
                let v = Vec3::AXES[(axis + 2) % 3];
                let first = self.positions.len() as u32;
                for (x, y) in [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)] {
                    self.positions
                        .push(center + half * (normal + u * x + v * y));
                    self.normals.push(normal);
                }
                let quad = [0, 1, 2, 0, 2, 3];
                self.indices.extend(quad.map(|corner| first + corner));
            }
        }
    }

    /// A chair of nine boxes about its centre of mass, those of the scene: seat, legs, posts and rails.
    pub fn chair() -> Self {
        // The centre of mass is this far above the feet; see `the_chair_is_balanced`.
        let middle = Vec3::new(0.0, 0.464_801, -0.048_598);
        let mut mesh = Self::default();
        let mut part = |center: [f32; 3], size: [f32; 3]| {
            mesh.push_box(Vec3::from(center) - middle, Vec3::from(size) / 2.0);
        };
        part([0.0, 0.43, 0.0], [0.44, 0.04, 0.44]);
        part([0.0, 0.88, -0.20], [0.36, 0.10, 0.03]);
        part([0.0, 0.66, -0.20], [0.36, 0.06, 0.03]);
        for x in [-0.20, 0.20] {
            part([x, 0.70, -0.20], [0.04, 0.50, 0.04]);
            for z in [-0.20, 0.20] {
                part([x, 0.205, z], [0.04, 0.41, 0.04]);
            }
        }
        mesh
    }

    /// The surface of a landscape, with normals from the slopes; nothing where it has less than two points a side.
    pub fn landscape(land: &Landscape) -> Self {
        let width = land.width;
        let depth = land.heights.len().checked_div(width).unwrap_or(0);
        if width < 2 || depth < 2 {
            return Self::default();
        }
        let height = |x: usize, z: usize| land.heights[z * width + x];
        let mut mesh = Self::default();
        for z in 0..depth {
            for x in 0..width {
                let [x0, z0] = land.origin;
                let at = |origin: f32, step: usize| origin + step as f32 * land.spacing;
                mesh.positions
                    .push(Vec3::new(at(x0, x), height(x, z), at(z0, z)));
                // Central differences, one-sided at the rim.
                let (left, right) = (x.saturating_sub(1), (x + 1).min(width - 1));
                let (back, front) = (z.saturating_sub(1), (z + 1).min(depth - 1));
                let along_x = (height(right, z) - height(left, z)) / (right - left) as f32;
                let along_z = (height(x, front) - height(x, back)) / (front - back) as f32;
                let normal = Vec3::new(-along_x, land.spacing, -along_z);
                mesh.normals.push(normal.normalize_or(Vec3::Y));
            }
        }
        for z in 0..depth - 1 {
            for x in 0..width - 1 {
                let corner = (z * width + x) as u32;
                let below = corner + width as u32;
                mesh.indices
                    .extend([corner, below, below + 1, corner, below + 1, corner + 1]);
            }
        }
        mesh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six times the volume, and its first moment over the volume, by signed tetrahedra; holds for closed surfaces.
    fn volume_and_center(mesh: &Mesh) -> (f32, Vec3) {
        let (mut volume, mut moment) = (0.0, Vec3::ZERO);
        for [a, b, c] in mesh.triangles() {
            let part = a.dot(b.cross(c));
            volume += part;
            moment += (a + b + c) / 4.0 * part;
        }
        (volume / 6.0, moment / volume)
    }

    #[test]
    fn the_chair_is_balanced() {
        let chair = Mesh::chair();
        assert_eq!(chair.triangles().count(), 9 * 12);
        let (volume, center) = volume_and_center(&chair);
        assert!(volume > 0.01, "its triangles face outwards: {volume}");
        assert!(center.length() < 1e-3, "{center}");
        assert!((0.5..0.8).contains(&chair.radius()));
    }

    #[test]
    fn normals_agree_with_the_triangles() {
        let land = Landscape {
            origin: [-1.0, 2.0],
            spacing: 0.5,
            width: 4,
            heights: (0..12).map(|point| 0.1 * (point as f32).sin()).collect(),
        };
        for mesh in [Mesh::chair(), Mesh::landscape(&land)] {
            let corners = mesh.indices.as_chunks::<3>().0;
            for (triangle, index) in mesh.triangles().zip(corners) {
                let [a, b, c] = triangle;
                let face = (b - a).cross(c - a);
                let normals = index.map(|index| mesh.normals[index as usize]);
                assert!(normals.iter().all(|normal| normal.dot(face) > 0.0));
                assert!(
                    normals
                        .iter()
                        .all(|normal| (normal.length() - 1.0).abs() < 1e-5)
                );
            }
        }
    }

    #[test]
    fn a_landscape_stands_where_it_says() {
        let land = Landscape {
            origin: [-1.0, 2.0],
            spacing: 0.5,
            width: 3,
            heights: vec![0.0, 1.0, 2.0, 0.0, 1.0, 2.0],
        };
        let mesh = Mesh::landscape(&land);
        assert_eq!(mesh.positions[5], Vec3::new(0.0, 2.0, 2.5));
        assert_eq!(mesh.triangles().count(), 4);
        let slope = Vec3::new(-2.0, 1.0, 0.0).normalize();
        assert!(
            mesh.normals
                .iter()
                .all(|normal| normal.abs_diff_eq(slope, 1e-6))
        );
        let line = Landscape { width: 6, ..land };
        assert_eq!(Mesh::landscape(&line), Mesh::default());
        assert_eq!(
            Mesh::landscape(&Landscape { width: 0, ..line }),
            Mesh::default()
        );
    }
}
