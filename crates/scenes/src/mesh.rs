//! The mesh of a chair.

use super::chair;
use glam::Vec3;

/// A triangle mesh with a normal for each vertex.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mesh {
    /// The position of each vertex.
    pub positions: Vec<[f32; 3]>,
    /// The outward unit normal of each vertex.
    pub normals: Vec<[f32; 3]>,
    /// Three vertices per triangle, counterclockwise as seen from outside.
    pub indices: Vec<u32>,
}

/// Loads the chair of `assets/chair.obj`, in metres, with its centre of mass at the origin.
///
/// An [`Instance`](super::Instance) of shape [`Chair`](super::Shape::Chair) places it.
///
/// ```
/// let chair = radsweep_scenes::chair_mesh();
/// assert!(chair.indices.len() / 3 > 500);
/// ```
#[must_use]
pub fn chair_mesh() -> Mesh {
    let options = tobj::LoadOptions {
        single_index: true,
        ..Default::default()
    };
    let mut file = &include_bytes!("../assets/chair.obj")[..];
    // The file is part of the program, has no materials, and is checked by a test.
    let no_materials = |_: &std::path::Path| Err(tobj::LoadError::OpenFileFailed);
    let (models, _) =
        tobj::load_obj_buf(&mut file, &options, no_materials).unwrap_or((Vec::new(), Ok(vec![])));
    let Some(tobj::Model { mesh, .. }) = models.into_iter().next() else {
        return Mesh::default();
    };
    let center = chair::model().center;
    let vectors = |flat: &[f32]| flat.as_chunks().0.to_vec();
    let mut positions: Vec<[f32; 3]> = vectors(&mesh.positions);
    for position in &mut positions {
        *position = (Vec3::from(*position) - center).into();
    }
    Mesh {
        positions,
        normals: vectors(&mesh.normals),
        indices: mesh.indices,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mesh_is_closed_and_stays_inside_the_collision_boxes() {
        let mesh = chair_mesh();
        let (vertices, triangles) = (mesh.positions.len(), mesh.indices.len() / 3);
        assert!((500..4000).contains(&triangles), "{triangles}");
        assert_eq!((mesh.normals.len(), mesh.indices.len() % 3), (vertices, 0));
        let parts = chair::model().parts;
        let outside = |position: &&[f32; 3]| {
            let position = Vec3::from(**position);
            let within = |part: &chair::Part| {
                let slack = part.half + 1e-3 - (position - part.center).abs();
                slack.min_element() >= 0.0
            };
            !parts.iter().any(within)
        };
        // Only the slats of the back have no box: eight corners and their edges each.
        let free = mesh.positions.iter().filter(outside).count();
        assert!(free < vertices / 4, "{free} of {vertices}");
        let [low, high] = [Vec3::min, Vec3::max].map(|pick| {
            let all = mesh.positions.iter().copied().map(Vec3::from);
            all.reduce(pick).expect("vertices")
        });
        assert!((high.y - low.y - 0.95).abs() < 1e-3, "{low} {high}");
        for triangle in mesh.indices.as_chunks::<3>().0 {
            let [a, b, c] = triangle.map(|index| Vec3::from(mesh.positions[index as usize]));
            let normal = triangle
                .map(|index| Vec3::from(mesh.normals[index as usize]))
                .into_iter()
                .sum::<Vec3>();
            assert!((b - a).cross(c - a).dot(normal) > 0.0, "{triangle:?}");
        }
        let unit = |normal: &[f32; 3]| (Vec3::from(*normal).length() - 1.0).abs() < 1e-3;
        assert!(mesh.normals.iter().all(unit));
    }
}
