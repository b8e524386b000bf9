//! The bodies of the scene as entities, and as the lists that the solver uses.

use crate::body::{Body, Contact};
use crate::chair::Part;
use crate::contacts::{Form, Placed};
use crate::grip::Grip;
use crate::islands::Islands;
use crate::picture::Shape;
use crate::scene::{BoxIndex, Boxes};
use bevy_ecs::prelude::*;
use glam::{Mat3, Vec3};
use parry3d::math::Pose3;
use radsweep::{Aabb, Filter, FilterFlags};

/// The pose of a body's centre of mass.
#[derive(Component, Clone, Copy)]
pub struct Pose(pub Pose3);

#[derive(Component, Clone, Copy, Default)]
pub struct Velocity {
    pub linear: Vec3,
    pub angular: Vec3,
}

/// Whether a body sleeps.
#[derive(Component, Clone, Copy, Default)]
pub struct Asleep(pub bool);

/// The mass and inertia of a body, and its index in the solver. The floor is body 0 and has
/// infinite mass.
#[derive(Component, Clone)]
pub struct RigidBody {
    pub index: u32,
    pub mass: Mass,
}

/// How a body resists forces.
#[derive(Debug, Clone)]
pub struct Mass {
    pub inverse_mass: f32,
    pub inertia: Mat3,
    pub inverse_inertia: Mat3,
    pub damping: f32,
}

impl Mass {
    /// The mass of a body that never moves.
    pub const INFINITE: Self = Self {
        inverse_mass: 0.0,
        inertia: Mat3::ZERO,
        inverse_inertia: Mat3::ZERO,
        damping: 0.0,
    };

    pub fn new(mass: f32, inertia: Mat3, damping: f32) -> Self {
        Self {
            inverse_mass: 1.0 / mass,
            inertia,
            inverse_inertia: inertia.inverse(),
            damping,
        }
    }
}

/// A box or ball of a body: its centre and half extents in the body's axes.
#[derive(Component)]
pub struct PartOf {
    body: u32,
    form: Form,
    part: Part,
}

/// The bodies and boxes as plain lists, for the stages that process pairs.
#[derive(Resource, Default)]
pub struct Physics {
    pub bodies: Vec<Body>,
    /// The shape and scale of each body, to draw it.
    pub shapes: Vec<(Shape, Vec3)>,
    pub boxes: Vec<Placed>,
    pub contacts: Vec<Contact>,
    /// Contacts between sleeping bodies. The frame that wakes the bodies reuses them: it has no
    /// pairs for them yet, and nothing has moved.
    pub dormant: Vec<Contact>,
    /// The spring by which the user drags a body.
    pub grip: Option<Grip>,
}

impl Physics {
    /// Wakes the islands of sleeping bodies.
    pub fn wake(&mut self, islands: &Islands, bodies: impl Iterator<Item = u32>) {
        if islands.wake(&mut self.bodies, bodies) {
            self.resume();
        }
    }

    /// Takes up the contacts of bodies that were woken.
    pub fn resume(&mut self) {
        let bodies = &self.bodies;
        let woken = self
            .dormant
            .extract_if(.., |contact| !is_still(contact, bodies));
        self.contacts.extend(woken);
        self.contacts.sort_by_key(|contact| contact.pair);
    }

    /// Puts aside the contacts of bodies that fell asleep.
    pub fn rest(&mut self) {
        let bodies = &self.bodies;
        let asleep = self
            .contacts
            .extract_if(.., |contact| is_still(contact, bodies));
        self.dormant.extend(asleep);
    }
}

/// Tells whether neither of the two bodies moves.
fn is_still(contact: &Contact, bodies: &[Body]) -> bool {
    let mut both = contact.bodies.into_iter();
    both.all(|body| !bodies[body as usize].is_awake())
}

/// A body to add to the scene.
pub struct New<'a> {
    pub pose: Pose3,
    pub velocity: Velocity,
    pub mass: Mass,
    /// Its shape and scale, to draw it.
    pub shape: (Shape, Vec3),
    pub form: Form,
    pub parts: &'a [Part],
}

impl New<'_> {
    /// Adds the body with its boxes. Its index, and those of its boxes, follow the last ones.
    pub fn spawn(&self, world: &mut World) {
        let mut physics = world.resource_mut::<Physics>();
        let index = physics.shapes.len() as u32;
        physics.shapes.push(self.shape);
        let count = physics.boxes.len() + self.parts.len();
        physics.boxes.resize(count, Placed::default());
        let body = RigidBody {
            index,
            mass: self.mass.clone(),
        };
        world.spawn((Pose(self.pose), self.velocity, body, Asleep::default()));
        for &part in self.parts {
            let mut boxes = world.resource_mut::<Boxes>();
            let next = BoxIndex(boxes.aabbs.len() as u32);
            boxes.aabbs.push(Aabb::EMPTY);
            boxes.bodies.push(index);
            // Sleeping bodies do not pair with the floor, which is body 0.
            boxes.filters.push(Filter {
                group: index,
                flags: match index {
                    0 => FilterFlags::STATIC | FilterFlags::ASLEEP,
                    _ => FilterFlags::NONE,
                },
                ..Filter::default()
            });
            let form = self.form;
            let body = index;
            world.spawn((next, PartOf { body, form, part }));
        }
    }
}

/// Copies the bodies to the solver's list. The order of the entities is that of their indices.
pub fn gather(query: Query<(&RigidBody, &Pose, &Velocity, &Asleep)>, mut physics: ResMut<Physics>) {
    physics.bodies.clear();
    physics
        .bodies
        .extend(query.iter().map(|(body, pose, velocity, asleep)| Body {
            pose: pose.0,
            linear: velocity.linear,
            angular: velocity.angular,
            inverse_mass: body.mass.inverse_mass,
            inertia: body.mass.inertia,
            inverse_inertia: body.mass.inverse_inertia,
            damping: body.mass.damping,
            asleep: asleep.0,
        }));
}

/// Updates the boxes and their filters.
pub fn place(
    query: Query<(&BoxIndex, &PartOf)>,
    mut physics: ResMut<Physics>,
    mut boxes: ResMut<Boxes>,
) {
    let physics = &mut *physics;
    for (&index, own) in &query {
        let body = &physics.bodies[own.body as usize];
        let placed = Placed::new(own.body, body, own.form, &own.part);
        let (center, half) = placed.swept();
        boxes.set(index, center, half);
        if own.body > 0 {
            boxes.filters[index.0 as usize].flags = if body.asleep {
                FilterFlags::ASLEEP
            } else {
                FilterFlags::NONE
            };
        }
        physics.boxes[index.0 as usize] = placed;
    }
}

/// Copies the bodies back to their entities.
pub fn scatter(
    mut query: Query<(&RigidBody, &mut Pose, &mut Velocity, &mut Asleep)>,
    physics: Res<Physics>,
) {
    for (body, mut pose, mut velocity, mut asleep) in &mut query {
        let moved = &physics.bodies[body.index as usize];
        pose.0 = moved.pose;
        *velocity = Velocity {
            linear: moved.linear,
            angular: moved.angular,
        };
        asleep.0 = moved.asleep;
    }
}
