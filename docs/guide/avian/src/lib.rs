//! Replaces avian's broad phase by radsweep.
//!
//! ```no_run
//! use avian3d::prelude::*;
//! use avian_recipe::RadsweepBroadPhasePlugin;
//! use bevy::prelude::*;
//!
//! App::new().add_plugins(
//!     PhysicsPlugins::default()
//!         .build()
//!         .disable::<BvhBroadPhasePlugin>()
//!         .add(RadsweepBroadPhasePlugin),
//! );
//! ```
//!
//! As in avian, these do not pair: colliders whose layers exclude each other, two static ones
//! unless one is a sensor, two of the same body, two without a body, and those of two bodies whose
//! joint disables collisions. The pairs are those whose boxes overlap;
//! avian also lists those of which only the enlarged boxes of its tree overlap. `CollisionHooks`
//! are not supported: they are a type parameter of avian's own plugin.

use avian3d::collision::CollisionDiagnostics;
use avian3d::collision::contact_types::ContactEdgeFlags;
use avian3d::dynamics::joints::joint_graph::JointGraph;
use avian3d::prelude::*;
use bevy::prelude::*;
use sap::{Aabb, BroadPhase, Config, Filter, FilterFlags, Frame, OnInvalid};
use std::time::Instant;

/// Finds the pairs of avian's colliders with radsweep.
#[derive(Default)]
pub struct RadsweepBroadPhasePlugin;

impl Plugin for RadsweepBroadPhasePlugin {
    fn build(&self, app: &mut App) {
        let config = Config {
            // A collider without a box yet, or with an invalid one, must not stop the others.
            on_invalid: OnInvalid::Skip,
            events: false,
            ..Config::default()
        };
        match BroadPhase::new(config) {
            Ok(engine) => {
                app.insert_resource(Engine {
                    engine,
                    boxes: Vec::new(),
                    filters: Vec::new(),
                    colliders: Vec::new(),
                });
                app.add_systems(
                    PhysicsSchedule,
                    collect.in_set(BroadPhaseSystems::CollectCollisions),
                );
            }
            Err(error) => error!("no broad phase: {error}"),
        }
    }
}

#[derive(Resource)]
struct Engine {
    engine: BroadPhase,
    boxes: Vec<Aabb>,
    filters: Vec<Filter>,
    colliders: Vec<Collided>,
}

/// The data of a collider that a pair needs.
struct Collided {
    entity: Entity,
    body: Option<Entity>,
    sensor: bool,
    events: bool,
}

type Parts = (
    Entity,
    &'static ColliderAabb,
    &'static CollisionLayers,
    Option<&'static ColliderOf>,
    Has<Sensor>,
    Has<CollisionEventsEnabled>,
);

fn collect(
    mut engine: ResMut<Engine>,
    colliders: Query<Parts, Without<ColliderDisabled>>,
    bodies: Query<(&RigidBody, Has<RigidBodyDisabled>)>,
    mut contacts: ResMut<ContactGraph>,
    joints: Res<JointGraph>,
    mut diagnostics: ResMut<CollisionDiagnostics>,
) {
    let start = Instant::now();
    let Engine {
        engine,
        boxes,
        filters,
        colliders: collided,
    } = &mut *engine;
    boxes.clear();
    filters.clear();
    collided.clear();
    for (entity, aabb, layers, of, sensor, events) in &colliders {
        let body = of.map(|of| of.body);
        let fixed = body
            .and_then(|body| bodies.get(body).ok())
            .is_some_and(|(body, _)| body.is_static());
        boxes.push(Aabb::new(aabb.min.into(), aabb.max.into()));
        filters.push(Filter {
            layers: layers.memberships.0,
            mask: layers.filters.0,
            // Colliders of the same body, or of none, do not pair; 0 would be no group.
            group: body.map_or(u32::MAX, |body| body.index_u32().wrapping_add(1)),
            flags: if fixed && !sensor {
                FilterFlags::STATIC
            } else {
                FilterFlags::NONE
            },
        });
        collided.push(Collided {
            entity,
            body,
            sensor,
            events,
        });
    }
    if let Err(error) = engine.update(Frame::boxes(boxes).filters(filters)) {
        error!("no pairs in this step: {error}");
        return;
    }

    for pair in engine.pairs() {
        let [a, b] = [pair.a, pair.b].map(|index| &collided[index as usize]);
        // avian keeps a contact until the boxes separate.
        if contacts.contains(a.entity, b.entity) {
            continue;
        }
        let enabled = |body: Option<Entity>| {
            body.and_then(|body| bodies.get(body).ok())
                .is_some_and(|(_, off)| !off)
        };
        if let (Some(first), Some(second)) = (a.body, b.body)
            && joints
                .joints_between(first, second)
                .any(|joint| joint.collision_disabled)
        {
            continue;
        }
        let mut edge = ContactEdge::new(a.entity, b.entity);
        (edge.body1, edge.body2) = (a.body, b.body);
        edge.flags
            .set(ContactEdgeFlags::CONTACT_EVENTS, a.events || b.events);
        contacts.add_edge_with(edge, |contact| {
            (contact.body1, contact.body2) = (a.body, b.body);
            let solid = enabled(a.body) && enabled(b.body) && !a.sensor && !b.sensor;
            contact
                .flags
                .set(ContactPairFlags::GENERATE_CONSTRAINTS, solid);
        });
    }
    diagnostics.broad_phase += start.elapsed();
}
