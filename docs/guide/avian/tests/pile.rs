//! Tests that avian finds the same contacts with radsweep as without.

use avian_recipe::RadsweepBroadPhasePlugin;
use avian3d::dynamics::joints::joint_graph::JointGraph;
use avian3d::prelude::*;
use bevy::prelude::*;
use bevy::time::TimeUpdateStrategy;
use std::time::Duration;

fn app(ours: bool) -> App {
    let mut app = App::new();
    let physics = PhysicsPlugins::default().build();
    app.add_plugins((MinimalPlugins, TransformPlugin));
    if ours {
        app.add_plugins(
            physics
                .disable::<BvhBroadPhasePlugin>()
                .add(RadsweepBroadPhasePlugin),
        );
    } else {
        app.add_plugins(physics);
    }
    app.insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_secs_f64(
        1.0 / 60.0,
    )));
    app.finish();
    app
}

fn floor(app: &mut App) {
    app.world_mut().spawn((
        RigidBody::Static,
        Collider::cuboid(40.0, 1.0, 40.0),
        Position::from_xyz(0.0, -0.5, 0.0),
    ));
}

/// Returns the heights of all bodies, lowest first, and the number of touching pairs.
fn end(ours: bool) -> (Vec<f32>, usize) {
    let mut app = app(ours);
    floor(&mut app);
    for index in 0..27 {
        let [x, y, z] = [index % 3, index / 9, index / 3 % 3].map(|cell| cell as f32 * 1.5);
        app.world_mut().spawn((
            RigidBody::Dynamic,
            Collider::cuboid(1.0, 1.0, 1.0),
            Position::from_xyz(x, y + 1.0, z),
        ));
    }
    for _ in 0..180 {
        app.update();
    }
    let mut bodies = app
        .world_mut()
        .query_filtered::<&Position, With<Collider>>();
    let mut heights: Vec<f32> = bodies.iter(app.world()).map(|place| place.0.y).collect();
    heights.sort_by(f32::total_cmp);
    let contacts = app.world().resource::<ContactGraph>();
    let all = contacts.iter_active().chain(contacts.iter_sleeping());
    (heights, all.filter(|pair| pair.is_touching()).count())
}

#[test]
fn cubes_come_to_rest_where_they_do_without_it() {
    let (ours, touching) = end(true);
    let (theirs, expected) = end(false);
    assert_eq!(touching, expected);
    assert!(
        touching >= 27,
        "{touching} pairs touch: each cube rests on something"
    );
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert!((ours - theirs).abs() < 0.05, "{ours} and {theirs}");
    }
}

/// The checks so far.
#[derive(Resource, Default)]
struct Looked {
    steps: usize,
    overlapping: usize,
    against_the_rules: usize,
}

type Parts = (
    Entity,
    &'static ColliderAabb,
    &'static CollisionLayers,
    Option<&'static ColliderOf>,
    Has<Sensor>,
);

/// Checks, between the broad and the narrow phase, that two colliders have a contact exactly if
/// they overlap and no rule forbids it.
fn look(
    colliders: Query<Parts>,
    bodies: Query<&RigidBody>,
    contacts: Res<ContactGraph>,
    joints: Res<JointGraph>,
    mut looked: ResMut<Looked>,
) {
    looked.steps += 1;
    for [a, b] in colliders.iter_combinations() {
        let bodies_of = [a, b].map(|(.., of, _)| of.map(|of| of.body));
        let fixed = [a, b]
            .into_iter()
            .zip(bodies_of)
            .all(|((.., sensor), body)| {
                !sensor && body.is_some_and(|body| bodies.get(body).is_ok_and(RigidBody::is_static))
            });
        let parted = match bodies_of {
            [Some(first), Some(second)] => joints
                .joints_between(first, second)
                .any(|joint| joint.collision_disabled),
            _ => false,
        };
        let may = a.2.interacts_with(*b.2) && bodies_of[0] != bodies_of[1] && !fixed && !parted;
        let overlap = a.1.intersects(b.1);
        let has = contacts.contains(a.0, b.0);
        let step = looked.steps;
        assert!(may || !has, "step {step}: {} and {} pair", a.0, b.0);
        assert!(
            !may || !overlap || has,
            "step {step}: {} and {} do not pair",
            a.0,
            b.0
        );
        looked.overlapping += usize::from(may && overlap);
        looked.against_the_rules += usize::from(!may && overlap);
    }
}

/// Returns a pseudo-random number from 0 to 1 for each `index`.
fn any(index: u32) -> f32 {
    (index.wrapping_mul(2_654_435_769) >> 8) as f32 / (1 << 24) as f32
}

#[test]
fn pairs_keep_avians_rules_in_every_step() {
    for ours in [true, false] {
        let mut app = app(ours);
        app.init_resource::<Looked>();
        app.add_systems(PhysicsSchedule, look.in_set(BroadPhaseSystems::Last));
        floor(&mut app);
        let mut last = None;
        for index in 0..150 {
            let place = [0, 1, 2].map(|axis| any(3 * index + axis) * 7.0);
            let place = Position::from_xyz(place[0], place[1], place[2]);
            let shape = Collider::cuboid(0.6 + any(index), 0.8, 0.6);
            let layers = match index % 10 {
                0 => CollisionLayers::from_bits(1, 1),
                1 => CollisionLayers::from_bits(2, !1),
                _ => CollisionLayers::ALL,
            };
            let mut entity = app.world_mut().spawn((shape, place, layers));
            match index % 7 {
                0 => drop(entity.insert(RigidBody::Static)),
                1 => drop(entity.insert((RigidBody::Static, Sensor))),
                2 => drop(entity.insert((
                    RigidBody::Kinematic,
                    LinearVelocity(Vec3::new(any(index), 0.0, 0.0)),
                ))),
                3 => {} // a collider without a body
                4 => drop(
                    entity
                        .insert(RigidBody::Dynamic)
                        .with_child((Collider::sphere(0.7), Transform::from_xyz(0.5, 0.0, 0.0))),
                ),
                _ => drop(entity.insert(RigidBody::Dynamic)),
            }
            let this = entity.id();
            if index % 7 == 6
                && let Some(last) = last.replace(this)
            {
                let joint = FixedJoint::new(last, this);
                app.world_mut().spawn((joint, JointCollisionDisabled));
            }
        }
        for _ in 0..60 {
            app.update();
        }
        let looked = app.world().resource::<Looked>();
        assert!(looked.steps >= 50, "{} steps", looked.steps);
        assert!(looked.overlapping > 5_000, "{} pairs", looked.overlapping);
        assert!(looked.against_the_rules > 1_000);
    }
}
