//! The mesh of the landscape. The shader draws boxes and balls; the scene has the mesh of the
//! chair.

use glam::Vec3;
use radsweep_scenes::{Landscape, Mesh};

/// Returns the surface with its normals; empty where a side has fewer than two points.
pub(super) fn landscape(land: &Landscape) -> Mesh {
    let width = land.width;
    let depth = land.heights.len().checked_div(width).unwrap_or(0);
    let mut mesh = Mesh::default();
    if width < 2 || depth < 2 {
        return mesh;
    }
    let height = |x: usize, z: usize| land.heights[z * width + x];
    for z in 0..depth {
        for x in 0..width {
            let [x0, z0] = land.origin;
            let at = |origin: f32, step: usize| origin + step as f32 * land.spacing;
            let position = [at(x0, x), height(x, z), at(z0, z)];
            mesh.positions.push(position);
            // Central differences, one-sided at the border.
            let (left, right) = (x.saturating_sub(1), (x + 1).min(width - 1));
            let (back, front) = (z.saturating_sub(1), (z + 1).min(depth - 1));
            let along_x = (height(right, z) - height(left, z)) / (right - left) as f32;
            let along_z = (height(x, front) - height(x, back)) / (front - back) as f32;
            let normal = Vec3::new(-along_x, land.spacing, -along_z);
            mesh.normals.push(normal.normalize_or(Vec3::Y).into());
        }
    }
    for z in 0..depth - 1 {
        for x in 0..width - 1 {
            let corner = (z * width + x) as u32;
            let below = corner + width as u32;
            let triangles = [corner, below, below + 1, corner, below + 1, corner + 1];
            mesh.indices.extend(triangles);
        }
    }
    mesh
}

/// Returns the corners of each triangle.
pub(super) fn triangles(mesh: &Mesh) -> impl Iterator<Item = [Vec3; 3]> {
    let corner = |index: u32| Vec3::from(mesh.positions[index as usize]);
    let (threes, _) = mesh.indices.as_chunks::<3>();
    threes.iter().map(move |three| three.map(corner))
}

/// Returns the radius of the ball around the origin that contains the mesh.
pub(super) fn radius(mesh: &Mesh) -> f32 {
    let points = mesh.positions.iter().copied().map(Vec3::from);
    points.map(Vec3::length).fold(0.0, f32::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_landscape_has_its_positions_and_heights() {
        let land = Landscape {
            origin: [-1.0, 2.0],
            spacing: 0.5,
            width: 3,
            heights: vec![0.0, 1.0, 2.0, 0.0, 1.0, 2.0],
        };
        let mesh = landscape(&land);
        assert_eq!(mesh.positions[5], [0.0, 2.0, 2.5]);
        assert_eq!(triangles(&mesh).count(), 4);
        let slope = Vec3::new(-2.0, 1.0, 0.0).normalize();
        let mut normals = mesh.normals.iter().copied().map(Vec3::from);
        assert!(normals.all(|normal| normal.abs_diff_eq(slope, 1e-6)));
        assert!((radius(&mesh) - Vec3::new(0.0, 2.0, 2.5).length()).abs() < 1e-6);
        for width in [6, 0] {
            let line = Landscape {
                width,
                ..land.clone()
            };
            assert_eq!(landscape(&line), Mesh::default());
        }
    }

    #[test]
    fn its_normals_agree_with_its_triangles() {
        let land = Landscape {
            origin: [0.0; 2],
            spacing: 0.5,
            width: 4,
            heights: (0..12).map(|point| 0.1 * (point as f32).sin()).collect(),
        };
        let mesh = landscape(&land);
        let corners = mesh.indices.as_chunks::<3>().0;
        for ([a, b, c], corners) in triangles(&mesh).zip(corners) {
            let face = (b - a).cross(c - a);
            let mut normals = corners
                .iter()
                .map(|&i| Vec3::from(mesh.normals[i as usize]));
            assert!(normals.all(|normal| normal.dot(face) > 0.0));
        }
    }
}
