//! The mesh of the landscape, and coarse meshes. The shader draws boxes and balls; the scene has
//! the mesh of the chair.

use glam::Vec3;
use radsweep_scenes::{Landscape, Mesh};
use std::collections::{BTreeMap, HashMap};

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

/// Returns a coarse mesh of these boxes (low, high).
pub(super) fn coarse(boxes: &[[Vec3; 2]]) -> Mesh {
    let mut coarse = Mesh::default();
    for &[low, high] in boxes {
        add_box(&mut coarse, low, high);
    }
    coarse
}

/// Returns these boxes for `vs_flat` of the shader: each point has the centre of its box instead of
/// a position, and half its size instead of a normal, and its index says which corner it is.
pub(super) fn flat(boxes: &[[Vec3; 2]]) -> Mesh {
    let mut flat = Mesh::default();
    for [low, high] in boxes {
        let first = flat.positions.len() as u32;
        let (center, half) = ((low + high) / 2.0, (high - low) / 2.0);
        // Corners 0 and 3, and 2 and 4, are at the same place.
        let faces = [0, 6, 12].map(|face| [0, 1, 2, 0, 2, 5].map(|corner| first + face + corner));
        flat.positions.extend([center.to_array(); 18]);
        flat.normals.extend([half.to_array(); 18]);
        flat.indices.extend(faces.as_flattened());
    }
    flat
}

/// Returns a box (low, high) around each connected part, the largest boxes first.
///
/// Points at the same position are one point, whatever their normals.
pub(super) fn parts(mesh: &Mesh) -> Vec<[Vec3; 2]> {
    let mut known: HashMap<[u32; 3], u32> = HashMap::new();
    let mut roots: Vec<u32> = (0..mesh.positions.len() as u32).collect();
    for (position, index) in mesh.positions.iter().zip(0..) {
        let first = known.entry(position.map(f32::to_bits)).or_insert(index);
        roots[index as usize] = *first;
    }
    for corners in mesh.indices.as_chunks::<3>().0 {
        let [a, b, c] = corners.map(|corner| root(&roots, corner));
        let least = a.min(b).min(c);
        for corner in [a, b, c] {
            roots[corner as usize] = least;
        }
    }
    let mut boxes: BTreeMap<u32, [Vec3; 2]> = BTreeMap::new();
    for (&position, index) in mesh.positions.iter().zip(0..) {
        let at = Vec3::from(position);
        let [low, high] = boxes.entry(root(&roots, index)).or_insert([at; 2]);
        (*low, *high) = (low.min(at), high.max(at));
    }
    let mut boxes: Vec<[Vec3; 2]> = boxes.into_values().collect();
    let volume = |[low, high]: &[Vec3; 2]| (high - low).element_product();
    boxes.sort_by(|a, b| volume(b).total_cmp(&volume(a)));
    boxes
}

fn root(roots: &[u32], mut at: u32) -> u32 {
    while roots[at as usize] != at {
        at = roots[at as usize];
    }
    at
}

/// Adds a box: six faces of four corners and two triangles each, counterclockwise from outside.
fn add_box(mesh: &mut Mesh, low: Vec3, high: Vec3) {
    for axis in 0..3 {
        let (u, v) = (Vec3::AXES[(axis + 1) % 3], Vec3::AXES[(axis + 2) % 3]);
        for (side, normal) in [(low, -Vec3::AXES[axis]), (high, Vec3::AXES[axis])] {
            let first = mesh.positions.len() as u32;
            let (u, v) = if normal[axis] > 0.0 { (u, v) } else { (v, u) };
            let corner = |along: Vec3| Vec3::select(along.cmpgt(Vec3::ZERO), high, low);
            for along in [Vec3::ZERO, u, u + v, v] {
                let mut position = corner(along);
                position[axis] = side[axis];
                mesh.positions.push(position.into());
                mesh.normals.push(normal.into());
            }
            mesh.indices.extend([0, 1, 2, 0, 2, 3].map(|k| first + k));
        }
    }
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
    fn the_parts_of_a_chair_are_boxes_around_it() {
        let chair = radsweep_scenes::chair_mesh();
        let boxes = parts(&chair);
        let coarse = coarse(&boxes);
        // Nine boxes that collide, and five slats.
        assert_eq!(coarse.indices.len(), 14 * 36);
        assert!(coarse.indices.len() * 10 < chair.indices.len());
        let extent = |mesh: &Mesh| {
            let points = mesh.positions.iter().copied().map(Vec3::from);
            (
                points.clone().reduce(Vec3::min).expect("points"),
                points.reduce(Vec3::max).expect("points"),
            )
        };
        assert_eq!(extent(&coarse), extent(&chair));
        let corners = coarse.indices.as_chunks::<3>().0;
        for ([a, b, c], corners) in triangles(&coarse).zip(corners) {
            let normal = Vec3::from(coarse.normals[corners[0] as usize]);
            let face = (b - a).cross(c - a).normalize();
            assert!(face.abs_diff_eq(normal, 1e-3), "{face} {normal}");
        }
        // The largest first: the seat.
        let seat = extent(&Mesh {
            positions: coarse.positions[..24].to_vec(),
            ..Mesh::default()
        });
        assert!((seat.1 - seat.0).abs_diff_eq(Vec3::new(0.44, 0.04, 0.44), 1e-3));
        assert!(parts(&Mesh::default()).is_empty());
    }

    #[test]
    fn a_flat_box_has_three_faces_of_four_corners() {
        let boxes = parts(&radsweep_scenes::chair_mesh());
        let (flat, coarse) = (flat(&boxes), coarse(&boxes));
        // Of vertices and triangles, half as many as all sides have: they take most of the time.
        let mut corners = flat.indices.clone();
        corners.sort_unstable();
        corners.dedup();
        assert_eq!(corners.len() * 2, coarse.positions.len());
        assert_eq!(flat.indices.len() * 2, coarse.indices.len());
        assert_eq!(flat.positions.len(), flat.normals.len());
        for (points, &[low, high]) in flat.indices.chunks(18).zip(&boxes) {
            for &point in points {
                let at = |list: &[[f32; 3]]| Vec3::from(list[point as usize]);
                let (center, half) = (at(&flat.positions), at(&flat.normals));
                assert!((center - half).abs_diff_eq(low, 1e-6));
                assert!((center + half).abs_diff_eq(high, 1e-6));
            }
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
