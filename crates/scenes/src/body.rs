//! Rigid bodies, the contacts between them, and the time steps of their simulation.

use glam::{Mat3, Vec3};
use parry3d::math::Pose3;
use radsweep::Pair;

pub(super) const GRAVITY: Vec3 = Vec3::new(0.0, -9.81, 0.0);
/// Duration of a frame in seconds.
pub(super) const FRAME: f32 = 1.0 / 60.0;
pub(super) const SUBSTEPS: u32 = 8;
pub(super) const SUBSTEP: f32 = FRAME / SUBSTEPS as f32;
/// Penetration in metres that is not undone, so that resting contacts stay contacts.
pub(super) const SLOP: f32 = 0.002;

/// A rigid body; one with an `inverse_mass` of 0 does not move.
#[derive(Debug, Clone)]
pub(super) struct Body {
    /// The pose of the centre of mass.
    pub pose: Pose3,
    pub linear: Vec3,
    pub angular: Vec3,
    pub inverse_mass: f32,
    /// The inertia in the body's axes.
    pub inertia: Mat3,
    pub inverse_inertia: Mat3,
    /// Damping of rotation per second, for air drag and the friction that point contacts lack.
    pub damping: f32,
    /// Whether it sleeps: it does not move, and others rest on it as on the floor.
    pub asleep: bool,
}

impl Body {
    /// Tells whether it moves and contacts can change its velocity.
    pub fn is_awake(&self) -> bool {
        self.inverse_mass > 0.0 && !self.asleep
    }

    /// Returns the velocity of a point, given from the centre of mass.
    pub fn speed(&self, anchor: Vec3) -> Vec3 {
        self.linear + self.angular.cross(anchor)
    }
}

/// One point of contact between two boxes of different bodies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contact {
    /// The boxes, and the features that touch: they identify the contact in the next frame.
    pub pair: Pair,
    pub features: (u32, u32),
    /// Indices of the bodies.
    pub bodies: [u32; 2],
    /// The unit normal, from the first body to the second.
    pub normal: Vec3,
    /// The contact point relative to each body's centre of mass, in the world's axes.
    pub anchors: [Vec3; 2],
    /// Distance along the normal; negative for penetration.
    pub separation: f32,
    /// Accumulated impulse along the normal and the two tangents of the last substep.
    pub impulse: Vec3,
}

/// Returns the matrix of the cross product with `v`.
pub(super) fn skew(v: Vec3) -> Mat3 {
    Mat3::from_cols(
        Vec3::new(0.0, v.z, -v.y),
        Vec3::new(-v.z, 0.0, v.x),
        Vec3::new(v.y, -v.x, 0.0),
    )
}
