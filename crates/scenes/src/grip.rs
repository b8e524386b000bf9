//! The spring by which a user drags a rigid body.

use super::body::{Body, FRAME, skew};
use super::constraint::Spring;
use glam::{Mat3, Vec3};

/// Frequency of the spring in Hz, with which a body follows within some tenths of a second.
const FREQUENCY: f32 = 3.0;
/// Max speed (m/s) at which the spring pulls, so that a distant target does not throw the body.
const MAX_SPEED: f32 = 15.0;
/// Max acceleration by the spring (m/s²): a body can pull itself out of a heap, but not the heap.
const MAX_PULL: f32 = 400.0;

/// A spring between a point of a body and a point of the world.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grip {
    pub body: u32,
    /// The held point, from the centre of mass in the body's axes.
    pub anchor: Vec3,
    pub target: Vec3,
}

impl Grip {
    /// Applies the impulse of a frame to the body, critically damped and implicitly integrated.
    pub fn pull(&self, body: &mut Body) {
        if !body.is_awake() {
            return;
        }
        let spring = Spring::new(FREQUENCY, 1.0, FRAME);
        let turn = Mat3::from_quat(body.pose.rotation);
        let arm = turn * self.anchor;
        let inverse_inertia = turn * body.inverse_inertia * turn.transpose();
        // The velocity of the held point per impulse.
        let cross = skew(arm);
        let give =
            Mat3::from_diagonal(Vec3::splat(body.inverse_mass)) - cross * inverse_inertia * cross;
        let velocity = body.linear + body.angular.cross(arm);
        let way = self.target - body.pose.translation - arm;
        let wanted = (way * spring.bias).clamp_length_max(MAX_SPEED);
        let impulse = give.inverse() * (wanted - velocity) * spring.mass;
        let impulse = impulse.clamp_length_max(MAX_PULL * FRAME / body.inverse_mass);
        body.linear += impulse * body.inverse_mass;
        body.angular += inverse_inertia * arm.cross(impulse);
    }
}
