//! A pile of cubes falls the same way under both broad phases: what rests on what does not depend on who found the pairs.

use avian_recipe::RadsweepBroadPhasePlugin;
use avian3d::prelude::*;
use bevy::prelude::*;
use bevy::time::TimeUpdateStrategy;
use std::time::Duration;

fn app(ours: bool) -> App {
    let mut app = App::new();
    let physics = PhysicsPlugins::default().build();
    app.add_plugins((
        MinimalPlugins,
        bevy::transform::TransformPlugin,
        bevy::asset::AssetPlugin::default(),
    ));
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
    app.world_mut().spawn((
        RigidBody::Static,
        Collider::cuboid(40.0, 1.0, 40.0),
        Position::from_xyz(0.0, -0.5, 0.0),
    ));
    for index in 0..27 {
        let [x, y, z] = [index % 3, index / 9, index / 3 % 3].map(|cell| cell as f32 * 1.5);
        app.world_mut().spawn((
            RigidBody::Dynamic,
            Collider::cuboid(1.0, 1.0, 1.0),
            Position::from_xyz(x, y + 1.0, z),
        ));
    }
    app
}

/// The places of all bodies, lowest first, and the pairs that touch.
fn end(ours: bool) -> (Vec<f32>, usize) {
    let mut app = app(ours);
    for _ in 0..180 {
        app.update();
    }
    let mut bodies = app
        .world_mut()
        .query_filtered::<&Position, With<Collider>>();
    let mut heights: Vec<f32> = bodies.iter(app.world()).map(|place| place.0.y).collect();
    heights.sort_by(f32::total_cmp);
    let touching = app
        .world()
        .resource::<ContactGraph>()
        .iter()
        .filter(|pair| pair.is_touching())
        .count();
    (heights, touching)
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
