//! Cubes and balls fall onto a floor, once with avian's own broad phase and once with radsweep.
//!
//! `cargo run --release --example pile -- 500` drops 500 bodies. The contacts have another order,
//! and a pile is chaotic: the two piles are similar but not equal. `tests/pile.rs` tests that both
//! find the same pairs.

use avian_recipe::RadsweepBroadPhasePlugin;
use avian3d::collision::CollisionDiagnostics;
use avian3d::prelude::*;
use bevy::prelude::*;
use bevy::time::TimeUpdateStrategy;
use std::time::Duration;

const STEPS: u32 = 240;
const EVERY: u32 = 30;

fn app(ours: bool, bodies: u32) -> App {
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
    app.world_mut().spawn((
        RigidBody::Static,
        Collider::cuboid(80.0, 1.0, 80.0),
        Position::from_xyz(0.0, -0.5, 0.0),
    ));
    for index in 0..bodies {
        let [x, y, z] = [index % 6, index / 36, index / 6 % 6].map(|cell| cell as f32 * 1.2);
        let shape = if index % 3 == 0 {
            Collider::sphere(0.5)
        } else {
            Collider::cuboid(1.0, 1.0, 1.0)
        };
        // Each layer is shifted a little, so that the pile falls over.
        app.world_mut().spawn((
            RigidBody::Dynamic,
            shape,
            Position::from_xyz(x + 0.3 * y, y + 1.0, z),
        ));
    }
    app
}

/// The figures after a step.
struct Seen {
    pairs: usize,
    touching: usize,
    lowest: f32,
    height: f32,
}

fn seen(app: &mut App) -> Seen {
    let mut bodies = app.world_mut().query::<(&Position, &RigidBody)>();
    let heights: Vec<f32> = bodies
        .iter(app.world())
        .filter(|(_, body)| body.is_dynamic())
        .map(|(place, _)| place.0.y)
        .collect();
    let contacts = app.world().resource::<ContactGraph>();
    let all = || contacts.iter_active().chain(contacts.iter_sleeping());
    Seen {
        pairs: all().count(),
        touching: all().filter(|pair| pair.is_touching()).count(),
        lowest: heights.iter().copied().fold(f32::INFINITY, f32::min),
        height: heights.iter().sum::<f32>() / heights.len() as f32,
    }
}

fn median(times: &mut Vec<Duration>) -> f64 {
    times.sort();
    let middle = times[times.len() / 2].as_secs_f64() * 1e3;
    times.clear();
    middle
}

fn main() {
    let bodies = std::env::args().nth(1);
    let bodies: u32 = bodies.map_or(200, |given| given.parse().expect("a number of bodies"));
    let mut apps = [app(false, bodies), app(true, bodies)];
    let mut times = [Vec::new(), Vec::new()];
    println!("{bodies} bodies fall onto a floor, with the broad phase of avian | of radsweep");
    if cfg!(debug_assertions) {
        println!("a debug build: its times say nothing");
    }
    println!("  step         pairs      touching     mean height     ms a step");
    for step in 1..=STEPS {
        for (app, times) in apps.iter_mut().zip(&mut times) {
            app.update();
            times.push(app.world().resource::<CollisionDiagnostics>().broad_phase);
        }
        if step % EVERY == 0 {
            let [theirs, ours] = apps.each_mut().map(seen);
            let [their_time, our_time] = times.each_mut().map(median);
            println!(
                "{step:>6} {:>6} | {:<6}{:>5} | {:<6}{:>6.3} | {:<6.3}{their_time:>7.3} | {our_time:.3}",
                theirs.pairs,
                ours.pairs,
                theirs.touching,
                ours.touching,
                theirs.height,
                ours.height,
            );
        }
    }
    for seen in apps.each_mut().map(seen) {
        assert!(seen.touching as u32 >= bodies, "something rests on nothing");
        assert!(seen.lowest > 0.4, "something fell through the floor");
    }
}
