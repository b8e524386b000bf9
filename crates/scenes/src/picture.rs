//! What there is to draw of a scene: one instance for each body, by shape, and the ground.

use bevy_ecs::prelude::Resource;
use bytemuck::{Pod, Zeroable};
use glam::{Vec4, Vec4Swizzles};
use radsweep::Aabb;

/// What a body looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A box; [`Instance::scale`] is its half extents.
    Box,
    /// The chair of `assets/`; [`Instance::scale`] is 1 on all axes, lengths are metres.
    Chair,
    /// A ball; [`Instance::scale`] is its radius on all axes.
    Sphere,
}

/// One body: 52 bytes, laid out for a vertex buffer.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct Instance {
    /// Where its middle is; of a chair, its centre of mass.
    pub position: [f32; 3],
    /// The body, counted from 0; [`super::Scene::body_of_box`] says which boxes it has.
    pub body: u32,
    /// Unit quaternion, x y z w.
    pub rotation: [f32; 4],
    /// Size along its own axes, as its shape says.
    pub scale: [f32; 3],
    /// Distance in a second, in the unit of the coordinates.
    pub speed: f32,
    /// Whether it sleeps (1) or not (0).
    pub asleep: u32,
}

impl Instance {
    /// A box that stands still as far as is known, and is a body of its own.
    pub(super) fn of_box(aabb: &Aabb, body: u32) -> Self {
        let axis = |axis: usize| (aabb.min[axis], aabb.max[axis]);
        let middle = |(min, max): (f32, f32)| min.midpoint(max);
        let half = |(min, max): (f32, f32)| (max - min) / 2.0;
        Self {
            position: [middle(axis(0)), middle(axis(1)), middle(axis(2))],
            body,
            rotation: [0.0, 0.0, 0.0, 1.0],
            scale: [half(axis(0)), half(axis(1)), half(axis(2))],
            speed: 0.0,
            asleep: 0,
        }
    }

    /// A ball: its middle and radius, and its velocity in a second.
    pub(super) fn of_ball(at: Vec4, velocity: Vec4, body: u32) -> Self {
        Self {
            position: at.xyz().into(),
            body,
            rotation: [0.0, 0.0, 0.0, 1.0],
            scale: [at.w; 3],
            speed: velocity.xyz().length(),
            asleep: 0,
        }
    }
}

/// A landscape of heights above the plane y = 0: a square grid that begins at `origin` (x, z), row after row along x.
#[derive(Resource, Debug, Clone, PartialEq)]
pub struct Landscape {
    /// Least x and z.
    pub origin: [f32; 2],
    /// Distance of neighbours.
    pub spacing: f32,
    /// Points along x; the rest of `heights` follows row after row along z.
    pub width: usize,
    /// One height a point.
    pub heights: Vec<f32>,
}

/// What there is to draw of one frame. Kept from frame to frame, so that nothing is allocated anew.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    /// The bodies of each shape, in the order of their numbers.
    pub boxes: Vec<Instance>,
    /// See [`Shape::Chair`].
    pub chairs: Vec<Instance>,
    /// See [`Shape::Sphere`].
    pub spheres: Vec<Instance>,
}

impl Picture {
    /// The bodies of a shape.
    #[must_use]
    pub fn of(&self, shape: Shape) -> &[Instance] {
        match shape {
            Shape::Box => &self.boxes,
            Shape::Chair => &self.chairs,
            Shape::Sphere => &self.spheres,
        }
    }

    pub(super) fn clear(&mut self) {
        self.boxes.clear();
        self.chairs.clear();
        self.spheres.clear();
    }
}
