//! The layouts of the vertex buffers, with the locations of `scene.wgsl`.

use crate::lines::Line;
use radsweep::Aabb;
use radsweep_scenes::Instance;
use wgpu::{VertexAttribute, VertexBufferLayout, VertexStepMode, vertex_attr_array};

const INSTANCE: [VertexAttribute; 6] = vertex_attr_array![
    0 => Float32x3, 1 => Uint32, 2 => Float32x4, 3 => Float32x3, 4 => Float32, 5 => Uint32
];
const MARK: [VertexAttribute; 1] = vertex_attr_array![6 => Uint32];
const POINT: [VertexAttribute; 1] = vertex_attr_array![7 => Float32x3];
const NORMAL: [VertexAttribute; 1] = vertex_attr_array![8 => Float32x3];
const CENTER: [VertexAttribute; 1] = vertex_attr_array![0 => Float32x4];
const VELOCITY: [VertexAttribute; 1] = vertex_attr_array![1 => Float32x4];
const BOX: [VertexAttribute; 2] = vertex_attr_array![0 => Float32x3, 1 => Float32x3];
const LINE: [VertexAttribute; 4] =
    vertex_attr_array![0 => Float32x3, 1 => Float32, 2 => Float32x3, 3 => Float32x4];

/// Bodies with their marks.
pub(super) const BODIES: [VertexBufferLayout<'_>; 2] = [
    rows::<Instance>(&INSTANCE, VertexStepMode::Instance),
    rows::<u32>(&MARK, VertexStepMode::Instance),
];
/// Balls on the device: centres and radii, velocities, and numbers of pairs as marks.
pub(super) const LIVE: [VertexBufferLayout<'_>; 3] = [
    rows::<[f32; 4]>(&CENTER, VertexStepMode::Instance),
    rows::<[f32; 4]>(&VELOCITY, VertexStepMode::Instance),
    rows::<u32>(&MARK, VertexStepMode::Instance),
];
/// The points of a mesh with their normals.
pub(super) const MESH: [VertexBufferLayout<'_>; 2] = [
    rows::<[f32; 3]>(&POINT, VertexStepMode::Vertex),
    rows::<[f32; 3]>(&NORMAL, VertexStepMode::Vertex),
];
pub(super) const BOXES: [VertexBufferLayout<'_>; 1] =
    [rows::<Aabb>(&BOX, VertexStepMode::Instance)];
pub(super) const LINES: [VertexBufferLayout<'_>; 1] =
    [rows::<Line>(&LINE, VertexStepMode::Instance)];

/// Bodies that a mesh draws.
pub(super) fn meshes() -> [VertexBufferLayout<'static>; 4] {
    let [instances, marks] = BODIES;
    let [points, normals] = MESH;
    [instances, marks, points, normals]
}

const fn rows<T>(
    attributes: &[VertexAttribute],
    step_mode: VertexStepMode,
) -> VertexBufferLayout<'_> {
    VertexBufferLayout {
        array_stride: size_of::<T>() as u64,
        step_mode,
        attributes,
    }
}
