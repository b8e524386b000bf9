//! Contact points as constraints on the velocities of their bodies, four at once.

use super::body::{Body, Contact, SLOP, SUBSTEP};
use super::lanes::{LANES, Matrices, Vectors};
use glam::{Mat3A, Quat, Vec3, Vec3A, Vec4};
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

/// The velocities of a body in each lane.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Velocities {
    pub linear: Vectors,
    pub angular: Vectors,
}

impl Velocities {
    /// Takes the velocities of these bodies.
    pub fn gather(bodies: &[u32; LANES], all: &[Velocity]) -> Self {
        let of = |lane: usize| &all[bodies[lane] as usize];
        Self {
            linear: Vectors::gather(|lane| of(lane).linear),
            angular: Vectors::gather(|lane| of(lane).angular),
        }
    }

    /// Returns the velocities of the lanes.
    pub fn scatter(&self) -> impl Iterator<Item = Velocity> {
        let both = self
            .linear
            .scatter()
            .into_iter()
            .zip(self.angular.scatter());
        both.map(|(linear, angular)| Velocity { linear, angular })
    }

    fn at(&self, anchor: Vectors) -> Vectors {
        self.linear + self.angular.cross(anchor)
    }
}

/// How a body in each lane resists impulses.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Masses {
    inverse_mass: Vec4,
    inverse_inertia: Matrices,
}

impl Masses {
    pub fn gather(bodies: &[u32; LANES], all: &[Motion]) -> Self {
        let of = |lane: usize| &all[bodies[lane] as usize];
        Self {
            inverse_mass: Vec4::from_array([0, 1, 2, 3].map(|lane| of(lane).inverse_mass)),
            inverse_inertia: Matrices::gather(|lane| &of(lane).inverse_inertia),
        }
    }
}

/// How a body in each lane has moved since the start of the frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moved {
    shift: Vectors,
    turn: Matrices,
}

impl Moved {
    pub fn gather(bodies: &[u32; LANES], all: &[Motion]) -> Self {
        let of = |lane: usize| &all[bodies[lane] as usize];
        Self {
            shift: Vectors::gather(|lane| of(lane).shift),
            turn: Matrices::gather(|lane| &of(lane).turn),
        }
    }
}

/// Per-contact data of a frame, for a contact in each lane. A lane without a contact has masses of
/// 0.
#[derive(Debug, Clone)]
pub(super) struct Constraints {
    /// The normal, then two tangents.
    axes: [Vectors; 3],
    anchors: [Vectors; 2],
    /// The accumulated impulse along the axes.
    impulse: Vectors,
    /// Impulse for a unit change of speed along the normal and along the stiffer tangent. With one
    /// mass for both tangents, friction opposes the sliding exactly.
    mass: Vec4,
    tangent_mass: Vec4,
    /// The separation minus the distance of the anchors, which changes as they move.
    offset: Vec4,
    approach: Vec4,
    strongest: Vec4,
    /// The index in the list of contacts.
    contacts: [Option<u32>; LANES],
}

impl Constraints {
    /// Takes the contact of each lane that has one.
    pub fn new(
        contacts: [Option<u32>; LANES],
        all: &[Contact],
        masses: &[Masses; 2],
        at: &[Velocities; 2],
    ) -> Self {
        let of = |lane: usize| contacts[lane].map(|index| &all[index as usize]);
        let vectors = |of_one: &dyn Fn(&Contact) -> Vec3| {
            Vectors::gather(|lane| of(lane).map_or(Vec3A::ZERO, |contact| of_one(contact).into()))
        };
        let normal = vectors(&|contact| contact.normal);
        let anchors = [0, 1].map(|end| vectors(&|contact| contact.anchors[end]));
        let separation = [0, 1, 2, 3].map(|lane| of(lane).map_or(0.0, |it| it.separation));
        let [first, second] = normal.tangents();
        let axes = [normal, first, second];
        let is_there = glam::BVec4A::from_array([0, 1, 2, 3].map(|lane| contacts[lane].is_some()));
        let [mass, first, second] = axes.map(|axis| {
            let of = |end: usize| {
                let arm = anchors[end].cross(axis);
                masses[end].inverse_mass + arm.dot(masses[end].inverse_inertia * arm)
            };
            Vec4::select(is_there, Vec4::ONE / (of(0) + of(1)), Vec4::ZERO)
        });
        let velocity = at[1].at(anchors[1]) - at[0].at(anchors[0]);
        Self {
            axes,
            anchors,
            impulse: vectors(&|contact| contact.impulse),
            mass,
            tangent_mass: first.min(second),
            offset: Vec4::from_array(separation) - (anchors[1] - anchors[0]).dot(normal),
            approach: velocity.dot(normal),
            strongest: Vec4::ZERO,
            contacts,
        }
    }

    /// Applies the accumulated impulses to the velocities.
    pub fn warm(&self, velocities: &mut [Velocities; 2], masses: &[Masses; 2]) {
        self.apply(self.impulse, velocities, masses);
    }

    fn apply(&self, impulse: Vectors, velocities: &mut [Velocities; 2], masses: &[Masses; 2]) {
        let impulse =
            self.axes[0] * impulse.x + self.axes[1] * impulse.y + self.axes[2] * impulse.z;
        let change = |end: usize| {
            let own = &masses[end];
            let angular = own.inverse_inertia * self.anchors[end].cross(impulse);
            (impulse * own.inverse_mass, angular)
        };
        let (linear, angular) = change(0);
        velocities[0].linear -= linear;
        velocities[0].angular -= angular;
        let (linear, angular) = change(1);
        velocities[1].linear += linear;
        velocities[1].angular += angular;
    }

    /// Returns the velocity of the second body's anchor relative to the first's.
    fn velocity(&self, velocities: &[Velocities; 2]) -> Vectors {
        velocities[1].at(self.anchors[1]) - velocities[0].at(self.anchors[0])
    }

    pub fn solve(
        &mut self,
        velocities: &mut [Velocities; 2],
        masses: &[Masses; 2],
        moved: &[Moved; 2],
        spring: &Spring,
    ) {
        let at = |end: usize| moved[end].shift + moved[end].turn * self.anchors[end];
        let separation = self.offset + (at(1) - at(0)).dot(self.axes[0]);
        // Not touching yet: the bodies may approach by the separation.
        let is_apart = separation.cmpgt(Vec4::ZERO);
        let choose =
            |apart: f32, else_: f32| Vec4::select(is_apart, Vec4::splat(apart), Vec4::splat(else_));
        let depth = (separation + SLOP).min(Vec4::ZERO);
        let push = (depth * spring.bias).max(Vec4::splat(-PUSH_SPEED));
        let bias = Vec4::select(is_apart, separation / SUBSTEP, push);
        let mass = self.mass * choose(1.0, spring.mass);
        let give = choose(0.0, spring.impulse);
        let old = self.impulse;
        let velocity = self.velocity(velocities);
        let speed = velocity.dot(self.axes[0]);
        let normal = (old.x - mass * (speed + bias) - give * old.x).max(Vec4::ZERO);
        if (normal + old.x + old.y.abs() + old.z.abs()) == Vec4::ZERO {
            return; // most contacts that do not touch yet
        }
        // Coulomb's law: the normal impulse bounds the friction of both tangents together.
        let first = old.y - self.tangent_mass * velocity.dot(self.axes[1]);
        let second = old.z - self.tangent_mass * velocity.dot(self.axes[2]);
        let bound = normal * FRICTION;
        let squares = first * first + second * second;
        let is_sliding = squares.cmpgt(bound * bound);
        let share = Vec4::select(is_sliding, bound / squares.sqrt(), Vec4::ONE);
        self.impulse = Vectors {
            x: normal,
            y: first * share,
            z: second * share,
        };
        self.strongest = self.strongest.max(normal);
        self.apply(self.impulse - old, velocities, masses);
    }

    /// Applies restitution: an impact keeps a share of its speed.
    pub fn bounce(&mut self, velocities: &mut [Velocities; 2], masses: &[Masses; 2]) {
        let is_impact =
            self.approach.cmple(Vec4::splat(-BOUNCE_SPEED)) & self.strongest.cmpgt(Vec4::ZERO);
        if !is_impact.any() {
            return;
        }
        let speed = self.velocity(velocities).dot(self.axes[0]);
        let impulse = self.impulse.x - self.mass * (speed + self.approach * RESTITUTION);
        let impulse = Vec4::select(is_impact, impulse.max(Vec4::ZERO), self.impulse.x);
        let change = Vectors {
            x: impulse - self.impulse.x,
            ..Vectors::default()
        };
        self.impulse.x = impulse;
        self.apply(change, velocities, masses);
    }

    /// Stores the impulses in the contacts.
    pub fn store(&self, contacts: &mut [Contact]) {
        for (index, impulse) in self.contacts.iter().zip(self.impulse.scatter()) {
            if let Some(index) = index {
                contacts[*index as usize].impulse = impulse.into();
            }
        }
    }
}
