//! A contact point as a constraint on the velocities of its two bodies.

use super::body::{Body, Contact, SLOP, SUBSTEP};
use glam::{Mat3A, Quat, Vec2, Vec3A};
use parry3d::math::Pose3;

/// Coefficient of friction: wood on wood.
pub(super) const FRICTION: f32 = 0.5;
const RESTITUTION: f32 = 0.1;
/// Impacts slower than this (m/s) do not bounce, or gravity would make resting contacts chatter.
const BOUNCE_SPEED: f32 = 1.0;
/// Max speed (m/s) at which penetration is undone, so that deep overlaps do not explode.
const PUSH_SPEED: f32 = 2.0;

/// The velocity of a body, as the contacts change it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Velocity {
    pub linear: Vec3A,
    pub angular: Vec3A,
}

impl Velocity {
    pub fn of(body: &Body) -> Self {
        Self {
            linear: body.linear.into(),
            angular: body.angular.into(),
        }
    }

    fn at(&self, anchor: Vec3A) -> Vec3A {
        self.linear + self.angular.cross(anchor)
    }
}

/// Per-body data of a frame besides the state. A body that is not awake has zero inverse mass and
/// inertia.
#[derive(Debug, Clone)]
pub(super) struct Motion {
    inverse_mass: f32,
    inverse_inertia: Mat3A,
    start: Pose3,
    shift: Vec3A,
    turn: Mat3A,
}

impl Motion {
    pub fn new(body: &Body) -> Self {
        let rotation = Mat3A::from_quat(body.pose.rotation);
        let inertia = rotation * Mat3A::from(body.inverse_inertia) * rotation.transpose();
        let awake = body.is_awake();
        Self {
            inverse_mass: if awake { body.inverse_mass } else { 0.0 },
            inverse_inertia: if awake { inertia } else { Mat3A::ZERO },
            start: body.pose,
            shift: Vec3A::ZERO,
            turn: Mat3A::IDENTITY,
        }
    }

    /// Updates the data to the body's current pose.
    pub fn follow(&mut self, pose: &Pose3) {
        self.shift = (pose.translation - self.start.translation).into();
        let turn: Quat = pose.rotation * self.start.rotation.inverse();
        self.turn = Mat3A::from_quat(turn);
    }
}

/// A damped spring, for a contact or a grip: the share of the velocity error that an impulse
/// corrects, the share of the accumulated impulse that it takes back, and the rate at which it
/// undoes penetration.
pub(super) struct Spring {
    pub bias: f32,
    pub mass: f32,
    impulse: f32,
}

impl Spring {
    pub const RIGID: Self = Self {
        bias: 0.0,
        mass: 1.0,
        impulse: 0.0,
    };

    /// Creates an implicitly integrated spring of this frequency (Hz) and damping ratio (GDC 2011).
    pub fn new(frequency: f32, damping: f32, step: f32) -> Self {
        let omega = std::f32::consts::TAU * frequency;
        let a = 2.0 * damping + step * omega;
        let b = step * omega * a;
        Self {
            bias: omega / a,
            mass: b / (1.0 + b),
            impulse: 1.0 / (1.0 + b),
        }
    }
}

/// Per-contact data of a frame.
#[derive(Debug, Clone)]
pub(super) struct Constraint {
    /// The normal, then two tangents.
    axes: [Vec3A; 3],
    anchors: [Vec3A; 2],
    /// The accumulated impulse along the axes.
    pub impulse: Vec3A,
    /// Impulse for a unit change of speed along the normal and along the stiffer tangent. With one
    /// mass for both tangents, friction opposes the sliding exactly.
    mass: f32,
    tangent_mass: f32,
    /// The separation minus the distance of the anchors, which changes as they move.
    offset: f32,
    approach: f32,
    strongest: f32,
    /// The index in the list of contacts.
    pub contact: u32,
}

impl Constraint {
    pub fn new(contact: &Contact, index: u32, motions: [&Motion; 2], at: &[Velocity; 2]) -> Self {
        let normal = Vec3A::from(contact.normal);
        let (first, second) = normal.any_orthonormal_pair();
        let axes = [normal, first, second];
        let anchors = contact.anchors.map(Vec3A::from);
        let [mass, first, second] = axes.map(|axis| {
            let of = |end: usize| {
                let arm = anchors[end].cross(axis);
                motions[end].inverse_mass + arm.dot(motions[end].inverse_inertia * arm)
            };
            1.0 / (of(0) + of(1))
        });
        let velocity = at[1].at(anchors[1]) - at[0].at(anchors[0]);
        Self {
            axes,
            anchors,
            impulse: contact.impulse.into(),
            mass,
            tangent_mass: first.min(second),
            offset: contact.separation - (anchors[1] - anchors[0]).dot(normal),
            approach: velocity.dot(normal),
            strongest: 0.0,
            contact: index,
        }
    }

    /// Applies the accumulated impulse to the velocities.
    pub fn warm(&self, velocities: &mut [Velocity; 2], motions: [&Motion; 2]) {
        self.apply(self.impulse, velocities, motions);
    }

    fn apply(&self, impulse: Vec3A, velocities: &mut [Velocity; 2], motions: [&Motion; 2]) {
        let impulse =
            self.axes[0] * impulse.x + self.axes[1] * impulse.y + self.axes[2] * impulse.z;
        for (end, impulse) in [-impulse, impulse].into_iter().enumerate() {
            velocities[end].linear += impulse * motions[end].inverse_mass;
            velocities[end].angular +=
                motions[end].inverse_inertia * self.anchors[end].cross(impulse);
        }
    }

    /// Returns the velocity of the second body's anchor relative to the first's.
    fn velocity(&self, velocities: &[Velocity; 2]) -> Vec3A {
        velocities[1].at(self.anchors[1]) - velocities[0].at(self.anchors[0])
    }

    pub fn solve(
        &mut self,
        velocities: &mut [Velocity; 2],
        motions: [&Motion; 2],
        spring: &Spring,
    ) {
        let [a, b] = motions;
        let apart = b.shift + b.turn * self.anchors[1] - a.shift - a.turn * self.anchors[0];
        let separation = self.offset + apart.dot(self.axes[0]);
        let (bias, mass, give) = if separation > 0.0 {
            // Not touching yet: the bodies may approach by the separation.
            (separation / SUBSTEP, 1.0, 0.0)
        } else {
            let depth = (separation + SLOP).min(0.0);
            (
                (spring.bias * depth).max(-PUSH_SPEED),
                spring.mass,
                spring.impulse,
            )
        };
        let old = self.impulse;
        let velocity = self.velocity(velocities);
        let speed = velocity.dot(self.axes[0]);
        let normal = (old.x - self.mass * mass * (speed + bias) - give * old.x).max(0.0);
        if normal == 0.0 && old == Vec3A::ZERO {
            return; // most contacts that do not touch yet
        }
        // Coulomb's law: the normal impulse bounds the friction of both tangents together.
        let sliding = Vec2::new(velocity.dot(self.axes[1]), velocity.dot(self.axes[2]));
        let slide = Vec2::new(old.y, old.z) - self.tangent_mass * sliding;
        let slide = slide.clamp_length_max(FRICTION * normal);
        self.impulse = Vec3A::new(normal, slide.x, slide.y);
        self.strongest = self.strongest.max(normal);
        self.apply(self.impulse - old, velocities, motions);
    }

    /// Applies restitution: an impact keeps a share of its speed.
    pub fn bounce(&mut self, velocities: &mut [Velocity; 2], motions: [&Motion; 2]) {
        if self.approach > -BOUNCE_SPEED || self.strongest == 0.0 {
            return;
        }
        let speed = self.velocity(velocities).dot(self.axes[0]);
        let impulse = (self.impulse.x - self.mass * (speed + RESTITUTION * self.approach)).max(0.0);
        let change = Vec3A::X * (impulse - self.impulse.x);
        self.impulse += change;
        self.apply(change, velocities, motions);
    }
}
