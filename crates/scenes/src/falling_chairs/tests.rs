//! Tests that chairs fall, pile up, sleep and wake.

use super::bodies::{Asleep, Pose, RigidBody};
use super::*;
use crate::body::{Body, GRAVITY, SLOP};
use crate::contacts::Placed;
use crate::{Action, Kind, Options, Step};
use glam::Mat3;
use radsweep::{Backend, BroadPhase, Config, FilterFlags};

fn scene(bodies: usize) -> (Scene, BroadPhase) {
    let options = Options {
        bodies: Some(bodies),
        ..Options::default()
    };
    let scene = Scene::new(Kind::FallingChairs, &options).expect("a scene");
    let config = Config {
        backend: Backend::Cpu,
        ..Config::default()
    };
    (scene, BroadPhase::new(config).expect("the CPU is there"))
}

fn step(scene: &mut Scene, broad_phase: &mut BroadPhase) -> Step {
    scene.step(broad_phase).expect("valid boxes")
}

/// Returns the kinetic and potential energy in joules.
fn energy(body: &Body) -> f32 {
    let spin = body.pose.rotation.inverse() * body.angular;
    let kinetic = body.linear.length_squared() / body.inverse_mass + spin.dot(body.inertia * spin);
    kinetic / 2.0 - GRAVITY.dot(body.pose.translation) / body.inverse_mass
}

/// Returns the height of the lowest corner of a box.
fn lowest(placed: &Placed) -> f32 {
    let axes = Mat3::from_quat(placed.pose.rotation);
    let height = Vec3::new(axes.x_axis.y, axes.y_axis.y, axes.z_axis.y)
        .abs()
        .dot(placed.half);
    placed.pose.translation.y - height
}

#[test]
fn chairs_fall_tumble_pile_up_and_come_to_rest() {
    let (mut scene, mut broad_phase) = scene(60);
    let mut before = f32::MAX;
    let mut first = 0.0;
    let mut turned: f32 = 0.0;
    for frame in 0..600 {
        let start = scene.world.resource::<Physics>().bodies.clone();
        step(&mut scene, &mut broad_phase);
        let physics = scene.world.resource::<Physics>();
        let chairs = &physics.bodies[1..];
        assert!(
            chairs.iter().all(|body| body.pose.is_finite()),
            "frame {frame}"
        );
        let now: f32 = chairs.iter().map(energy).sum();
        if frame == 0 {
            (before, first) = (now, now);
        }
        // Nothing adds energy, but undoing penetration lifts bodies a little.
        assert!(
            now < before + 1e-3 * first,
            "frame {frame}: {before} J, then {now} J"
        );
        before = now;
        let turns = start
            .iter()
            .skip(1)
            .zip(chairs)
            .map(|(a, b)| a.pose.rotation.angle_between(b.pose.rotation));
        turned += turns.sum::<f32>() / 60.0;
    }
    let physics = scene.world.resource::<Physics>();
    let chairs = &physics.bodies[1..];
    assert!(before < 0.12 * first, "they fell: {before} of {first} J");
    assert!(turned > 1.0, "they tumbled: {turned} radians each");

    let awake = chairs.iter().filter(|body| body.is_awake()).count();
    assert_eq!(awake, 0, "they came to rest");
    assert!(broad_phase.pairs().is_empty());
    let bottom = physics.boxes[1..]
        .iter()
        .map(lowest)
        .fold(f32::MAX, f32::min);
    assert!(bottom > -4.0 * SLOP, "the floor holds: {bottom} m");
    let mut depths: Vec<f32> = physics
        .dormant
        .iter()
        .map(|contact| contact.separation)
        .collect();
    depths.sort_by(f32::total_cmp);
    assert!(depths[0] > -0.03, "none is inside another: {} m", depths[0]);
    assert!(
        depths[depths.len() / 100] > -0.005,
        "few are deeper than the slop: {} m",
        depths[depths.len() / 100]
    );

    let mut on_floor = vec![false; physics.bodies.len()];
    let touching = physics
        .dormant
        .iter()
        .filter(|contact| contact.separation < 0.002);
    for contact in touching.filter(|contact| contact.bodies[0] == 0) {
        on_floor[contact.bodies[1] as usize] = true;
    }
    let above = on_floor[1..].iter().filter(|&&touches| !touches).count();
    assert!(
        above > 10 && above < 50,
        "they piled up: {above} of 60 lie on others"
    );
    let furthest = chairs
        .iter()
        .map(|body| body.pose.translation.with_y(0.0).length())
        .fold(0.0, f32::max);
    assert!(furthest < 12.0, "they stayed together: {furthest} m");
}

#[test]
fn in_2000_frames_a_heap_sleeps_without_moving_wakes_when_hit_and_never_sinks() {
    let (mut scene, mut broad_phase) = scene(40);
    let asleep = |scene: &Scene| {
        let bodies = &scene.world.resource::<Physics>().bodies[1..];
        bodies.iter().filter(|body| body.asleep).count()
    };
    let (mut sunk, mut fewest) = (0, usize::MAX);
    let mut rested = Vec::new();
    for frame in 0..2000 {
        step(&mut scene, &mut broad_phase);
        let placed = &scene.world.resource::<Physics>().boxes[1..];
        let below = |placed: &&Placed| lowest(placed) < -0.02;
        sunk += placed.iter().filter(below).count();
        match frame {
            699 => {
                assert_eq!(asleep(&scene), 40);
                rested = scene.boxes().expect("host boxes").to_vec();
                assert!(
                    scene.filters()[1..]
                        .iter()
                        .all(|f| f.flags == FilterFlags::ASLEEP)
                );
            }
            999 => {
                assert_eq!(
                    scene.boxes().expect("host boxes"),
                    rested,
                    "sleeping bodies do not move"
                );
                drop_one(&mut scene);
            }
            1000..1100 => fewest = fewest.min(asleep(&scene)),
            _ => {}
        }
    }
    assert_eq!(sunk, 0, "boxes below the floor, over all frames");
    assert!(
        fewest < 30,
        "at least {fewest} of 40 slept on when one was hit"
    );
    assert_eq!(asleep(&scene), 40, "and all sleep again");
    let mut picture = Picture::default();
    scene.picture(&mut picture).expect("a picture");
    assert_eq!([picture.boxes.len(), picture.chairs.len()], [1, 40]);
    let at_rest = |chair: &Instance| chair.asleep == 1 && chair.speed == 0.0;
    assert!(picture.chairs.iter().all(at_rest));
}

/// Lifts the last chair above the heap and drops it.
fn drop_one(scene: &mut Scene) {
    let mut chairs = scene
        .world
        .query::<(&RigidBody, &mut Pose, &mut Velocity, &mut Asleep)>();
    let all = chairs.iter_mut(&mut scene.world);
    let last = all.max_by_key(|(body, ..)| body.index);
    let (_, mut pose, mut velocity, mut asleep) = last.expect("chairs");
    pose.0.translation = Vec3::new(0.0, 6.0, 0.0);
    velocity.linear = Vec3::new(0.0, -2.0, 0.0);
    asleep.0 = false;
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("threads").install(|| {
            let (mut scene, mut broad_phase) = scene(80);
            for _ in 0..150 {
                step(&mut scene, &mut broad_phase);
            }
            scene.boxes().expect("host boxes").to_vec()
        })
    };
    assert_eq!(run(1), run(4));
}

#[test]
fn a_chair_in_the_air_falls_by_gravity() {
    let (mut scene, mut broad_phase) = scene(12);
    step(&mut scene, &mut broad_phase);
    let top = |scene: &Scene| scene.world.resource::<Physics>().bodies[12].clone();
    let start = top(&scene);
    for _ in 0..30 {
        step(&mut scene, &mut broad_phase);
    }
    let (end, seconds) = (top(&scene), 0.5);
    let expected = start.linear * seconds + GRAVITY * seconds * seconds / 2.0;
    let fallen = end.pose.translation - start.pose.translation;
    assert!(fallen.abs_diff_eq(expected, 0.01), "{fallen} {expected}");
}

#[test]
fn boxes_of_one_chair_never_pair() {
    let (mut scene, mut broad_phase) = scene(30);
    let mut pairs = 0;
    for _ in 0..90 {
        step(&mut scene, &mut broad_phase);
        let group = |index: u32| scene.filters()[index as usize].group;
        let mut all = broad_phase.pairs().iter();
        assert!(all.all(|pair| group(pair.a) != group(pair.b)));
        pairs += broad_phase.pairs().len();
    }
    assert!(pairs > 1000, "{pairs}");
}

/// Runs frames until all bodies sleep.
fn settle(scene: &mut Scene, broad_phase: &mut BroadPhase) {
    for _ in 0..1500 {
        step(scene, broad_phase);
        let bodies = &scene.world.resource::<Physics>().bodies;
        if bodies[1..].iter().all(|body| body.asleep) {
            return;
        }
    }
    panic!("they do not come to rest");
}

fn awake(scene: &Scene) -> usize {
    let bodies = &scene.world.resource::<Physics>().bodies;
    bodies.iter().filter(|body| body.is_awake()).count()
}

#[test]
fn a_thrown_ball_wakes_the_heap_through_its_pairs_and_comes_to_rest() {
    let (mut scene, mut broad_phase) = scene(40);
    settle(&mut scene, &mut broad_phase);
    let target = scene.world.resource::<Physics>().bodies[1].pose.translation;
    let from = target + Vec3::new(0.0, 3.0, 4.0);
    scene
        .act(&Action::Throw {
            from: from.into(),
            velocity: ((target - from) * 3.0).into(),
            radius: 0.4,
        })
        .expect("there is room");
    step(&mut scene, &mut broad_phase);
    assert_eq!(awake(&scene), 1, "the heap sleeps until the ball is there");
    let momentum = |scene: &Scene| {
        let bodies = scene.world.resource::<Physics>().bodies[1..].iter();
        bodies
            .map(|body| body.linear / body.inverse_mass)
            .sum::<Vec3>()
    };
    let mut hit = None;
    for _ in 0..60 {
        let before = momentum(&scene);
        step(&mut scene, &mut broad_phase);
        if hit.is_none() && awake(&scene) > 10 {
            hit = Some((before, momentum(&scene)));
        }
    }
    let (before, after) = hit.expect("it hits the heap");
    assert!(before.z < -200.0, "kg m/s: {before}");
    // Only the floor can take some of it.
    assert!(
        after.z > 1.05 * before.z && after.z < 0.3 * before.z,
        "{before} {after}"
    );
    settle(&mut scene, &mut broad_phase);
    let physics = scene.world.resource::<Physics>();
    let ball = physics.bodies.last().expect("the ball");
    assert!(
        (ball.pose.translation.y - 0.4) > -0.02,
        "it lies on something"
    );
    let mut picture = Picture::default();
    scene.picture(&mut picture).expect("a picture");
    assert_eq!(picture.spheres.len(), 1);
    assert_eq!(picture.spheres[0].scale, [0.4; 3]);
}

#[test]
fn a_chair_is_dragged_out_of_a_sleeping_heap_to_the_target_and_falls_when_let_go() {
    let (mut scene, mut broad_phase) = scene(12);
    settle(&mut scene, &mut broad_phase);
    let start = scene.world.resource::<Physics>().bodies[3].pose.translation;
    let seat = start + Vec3::Y * 0.02;
    scene
        .act(&Action::Grab {
            body: 3,
            point: seat.into(),
        })
        .expect("a chair");
    assert!(awake(&scene) > 0, "it wakes");
    let target = Vec3::new(1.0, 5.0, -1.0);
    scene
        .act(&Action::Drag {
            target: target.into(),
        })
        .expect("it is held");
    let mut fastest: f32 = 0.0;
    for _ in 0..240 {
        step(&mut scene, &mut broad_phase);
        let body = &scene.world.resource::<Physics>().bodies[3];
        fastest = fastest.max(body.linear.length());
    }
    let held = |scene: &Scene| {
        let physics = scene.world.resource::<Physics>();
        let grip = physics.grip.as_ref().expect("it is held");
        physics.bodies[3].pose * grip.anchor
    };
    let off = held(&scene).distance(target);
    assert!(off < 0.1, "{off} m from the target");
    assert!(fastest < 20.0, "{fastest} m/s");
    // It may fall asleep in the air, and still follows and falls.
    for _ in 0..600 {
        step(&mut scene, &mut broad_phase);
    }
    scene
        .act(&Action::Drag {
            target: (target + Vec3::X).into(),
        })
        .expect("it is held");
    for _ in 0..120 {
        step(&mut scene, &mut broad_phase);
    }
    let off = held(&scene).distance(target + Vec3::X);
    assert!(off < 0.1, "{off} m from the second target");
    scene.act(&Action::Release).expect("it is held");
    settle(&mut scene, &mut broad_phase);
    let end = scene.world.resource::<Physics>().bodies[3].pose.translation;
    assert!(end.y < 2.0, "it fell: {end}");
}

#[test]
fn an_explosion_wakes_a_heap_once_and_throws_it_apart() {
    let (mut scene, mut broad_phase) = scene(40);
    settle(&mut scene, &mut broad_phase);
    let width = |scene: &Scene| {
        let bodies = scene.world.resource::<Physics>().bodies[1..].iter();
        bodies
            .map(|body| body.pose.translation.length())
            .sum::<f32>()
    };
    let before = width(&scene);
    scene
        .act(&Action::Explode {
            at: [0.0, -0.5, 0.0],
            speed: 12.0,
            radius: 4.0,
        })
        .expect("chairs");
    assert!(awake(&scene) > 5);
    let physics = scene.world.resource::<Physics>();
    let twice = physics.dormant.iter().filter(|contact| {
        let mut both = contact.bodies.into_iter();
        both.any(|body| physics.bodies[body as usize].is_awake())
    });
    assert_eq!(twice.count(), 0, "their contacts sleep no longer");
    settle(&mut scene, &mut broad_phase);
    let after = width(&scene);
    assert!(after > 1.3 * before, "{before} m, then {after} m");
    let bottom = scene.world.resource::<Physics>().boxes[1..]
        .iter()
        .map(lowest);
    let bottom = bottom.fold(f32::MAX, f32::min);
    assert!(bottom > -0.02, "none is in the floor: {bottom} m");
}

#[test]
fn a_body_that_leaves_the_floor_stops_out_of_sight() {
    let (mut scene, mut broad_phase) = scene(1);
    scene
        .act(&Action::Throw {
            from: [200.0, 1.0, 0.0],
            velocity: [5.0, 0.0, 0.0],
            radius: 0.3,
        })
        .expect("there is room");
    settle(&mut scene, &mut broad_phase);
    let height = scene.world.resource::<Physics>().bodies[2]
        .pose
        .translation
        .y;
    assert!((-22.0..-20.0).contains(&height), "{height} m");
}
