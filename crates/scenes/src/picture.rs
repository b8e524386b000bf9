//! The drawable form of a scene: an instance for each body, by shape, and the landscape.

use bevy_ecs::prelude::Resource;
use bytemuck::{Pod, Zeroable};
use glam::{Vec4, Vec4Swizzles};
use radsweep::Aabb;

/// The shape of a body.
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
    /// The centre; for a chair, the centre of mass.
    pub position: [f32; 3],
    /// The index of the body; [`super::Scene::body_of_box`] maps boxes to bodies.
    pub body: u32,
    /// Unit quaternion, x y z w.
    pub rotation: [f32; 4],
    /// Size along its own axes, in the unit of its [`Shape`].
    pub scale: [f32; 3],
    /// Speed in units of the coordinates per second.
    pub speed: f32,
    /// 1 for a sleeping body, else 0.
    pub asleep: u32,
}

impl Instance {
    /// Returns an instance for a box that is a body of its own, with speed 0.
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

    /// Returns an instance for a ball, given its centre and radius, and its velocity per second.
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

/// A landscape: heights above the plane y = 0 on a square grid, row by row along x.
#[derive(Resource, Debug, Clone, PartialEq)]
pub struct Landscape {
    /// Min x and z.
    pub origin: [f32; 2],
    /// Distance between neighbouring points.
    pub spacing: f32,
    /// Points along x.
    pub width: usize,
    /// The height of each point.
    pub heights: Vec<f32>,
}

/// The instances to draw in one frame. Reusing it for the next frame saves allocations.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    /// Bodies of shape [`Shape::Box`], by index.
    pub boxes: Vec<Instance>,
    /// Bodies of shape [`Shape::Chair`], by index.
    pub chairs: Vec<Instance>,
    /// Bodies of shape [`Shape::Sphere`], by index.
    pub spheres: Vec<Instance>,
}

impl Picture {
    /// Returns the bodies of a shape.
    #[must_use]
    pub fn of(&self, shape: Shape) -> &[Instance] {
        match shape {
            Shape::Box => &self.boxes,
            Shape::Chair => &self.chairs,
            Shape::Sphere => &self.spheres,
        }
    }

    /// Adds a body of a shape.
    pub(super) fn add(&mut self, shape: Shape, instance: Instance) {
        match shape {
            Shape::Box => self.boxes.push(instance),
            Shape::Chair => self.chairs.push(instance),
            Shape::Sphere => self.spheres.push(instance),
        }
    }

    pub(super) fn clear(&mut self) {
        self.boxes.clear();
        self.chairs.clear();
        self.spheres.clear();
    }
}
