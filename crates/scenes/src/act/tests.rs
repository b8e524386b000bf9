//! Tests of the actions on every scene; those on the chairs are in `falling_chairs/tests.rs`.

use super::*;
use crate::{Kind, Options, Picture, Scene};
use radsweep::{Aabb, Backend, BroadPhase, Config, Filter, FilterFlags, Pair};

/// Scenes that take actions.
const ACTING: [Kind; 6] = [
    Kind::FallingChairs,
    Kind::Particles,
    Kind::Galaxy,
    Kind::Uniform,
    Kind::Clustered,
    Kind::MixedSizes,
];

fn scene(kind: Kind, bodies: usize) -> (Scene, BroadPhase) {
    let options = Options {
        bodies: Some(bodies),
        ..Options::default()
    };
    let config = Config {
        backend: Backend::Cpu,
        ..Config::default()
    };
    let scene = Scene::new(kind, &options).expect("a scene");
    (scene, BroadPhase::new(config).expect("the CPU is there"))
}

/// Runs a frame and compares its pairs with brute force.
fn step(scene: &mut Scene, broad_phase: &mut BroadPhase) {
    scene.step(broad_phase).expect("valid boxes");
    let boxes = scene.boxes().expect("host boxes");
    let filters = scene.filters();
    let filter = |index: usize| filters.get(index).copied().unwrap_or_default();
    let mut expected = Vec::new();
    for a in 0..boxes.len() {
        for b in a + 1..boxes.len() {
            if overlap(&boxes[a], &boxes[b]) && may_pair(filter(a), filter(b)) {
                expected.push(Pair::new(a as u32, b as u32));
            }
        }
    }
    assert_eq!(broad_phase.pairs(), expected);
}

fn overlap(a: &Aabb, b: &Aabb) -> bool {
    (0..3).all(|axis| a.min[axis] <= b.max[axis] && b.min[axis] <= a.max[axis])
}

fn may_pair(a: Filter, b: Filter) -> bool {
    let both = |flag| a.flags.contains(flag) && b.flags.contains(flag);
    let grouped = a.group != 0 && a.group == b.group;
    !grouped && !both(FilterFlags::STATIC) && !both(FilterFlags::ASLEEP)
}

/// Returns the position and speed of a body.
fn body(scene: &Scene, index: usize) -> (Vec3, f32) {
    let mut picture = Picture::default();
    scene.picture(&mut picture).expect("on the host");
    let lists = [picture.boxes, picture.chairs, picture.spheres];
    let found = lists
        .into_iter()
        .flatten()
        .find(|one| one.body == index as u32);
    let found = found.expect("the body is drawn");
    (found.position.into(), found.speed)
}

fn bodies(scene: &Scene) -> usize {
    let mut picture = Picture::default();
    scene.picture(&mut picture).expect("on the host");
    picture.boxes.len() + picture.chairs.len() + picture.spheres.len()
}

#[test]
fn added_bodies_and_balls_get_their_pairs_in_every_scene() {
    for kind in ACTING {
        let (mut scene, mut broad_phase) = scene(kind, 60);
        for _ in 0..3 {
            step(&mut scene, &mut broad_phase);
        }
        let before = bodies(&scene);
        scene
            .act(&Action::Add { count: 40 })
            .expect("there is room");
        let (there, _) = body(&scene, before / 2);
        let ball = Action::Throw {
            from: there.into(),
            velocity: [1.0, 2.0, 3.0],
            radius: 0.5,
        };
        scene.act(&ball).expect("there is room");
        assert_eq!(bodies(&scene), before + 41, "{kind}: drawn at once");
        let drawn = body(&scene, before + 40).0.distance(there);
        assert!(drawn < 1.0, "{kind}: {drawn} from where it was thrown");
        step(&mut scene, &mut broad_phase);
        let last = scene.boxes().expect("host boxes").len() as u32 - 1;
        let met = broad_phase.pairs().iter().any(|pair| pair.b == last);
        assert!(met, "{kind}: the ball is where a body is");
        for _ in 0..20 {
            step(&mut scene, &mut broad_phase);
        }
    }
}

#[test]
fn a_held_body_follows_and_an_explosion_drives_bodies_away() {
    for kind in ACTING {
        let (mut scene, mut broad_phase) = scene(kind, 30);
        step(&mut scene, &mut broad_phase);
        let (start, _) = body(&scene, 7);
        let point = start.into();
        scene
            .act(&Action::Grab { body: 7, point })
            .expect("it moves");
        // Away from the walls of the drifting boxes, which reflect them.
        let flies = matches!(kind, Kind::FallingChairs | Kind::Particles | Kind::Galaxy);
        let way = if flies || start.y < 1.5 {
            Vec3::Y
        } else {
            Vec3::NEG_Y
        };
        let target = start + way;
        scene
            .act(&Action::Drag {
                target: target.into(),
            })
            .expect("any scene that acts");
        for _ in 0..90 {
            step(&mut scene, &mut broad_phase);
        }
        let (there, _) = body(&scene, 7);
        let left = target.distance(there);
        assert!(left < 0.6, "{kind}: {left} from the target");
        scene.act(&Action::Release).expect("it is held");
        let blast = Action::Explode {
            at: (there - way * 0.1).into(),
            speed: 9.0,
            radius: 2.0,
        };
        scene.act(&blast).expect("any scene that acts");
        for _ in 0..3 {
            step(&mut scene, &mut broad_phase);
        }
        let (after, _) = body(&scene, 7);
        assert!((after - there).dot(way) > 0.05, "{kind}: {there} {after}");
    }
}

#[test]
fn a_seed_and_the_same_actions_give_the_same_bits() {
    for kind in ACTING {
        let run = || {
            let (mut scene, mut broad_phase) = scene(kind, 50);
            for frame in 0..30 {
                if frame % 10 == 3 {
                    scene.act(&Action::Add { count: 3 }).expect("room");
                }
                scene.step(&mut broad_phase).expect("valid boxes");
            }
            scene.boxes().expect("host boxes").to_vec()
        };
        assert_eq!(run(), run(), "{kind}");
    }
}

#[test]
fn an_impossible_action_is_refused_and_changes_nothing() {
    let (mut fixed, _) = scene(Kind::Stack, 40);
    let refused = fixed.act(&Action::Add { count: 1 });
    assert_eq!(refused, Err(Refusal::FixedPaths));
    assert_eq!(fixed.refusal(), Some(Refusal::FixedPaths));
    for kind in ACTING {
        let (mut scene, mut broad_phase) = scene(kind, 40);
        step(&mut scene, &mut broad_phase);
        assert_eq!(scene.refusal(), None);
        let before = (bodies(&scene), scene.boxes().expect("host boxes").to_vec());
        let grab = |body| Action::Grab {
            body,
            point: [0.0; 3],
        };
        assert_eq!(scene.act(&grab(9999)), Err(Refusal::Body { body: 9999 }));
        let many = scene.act(&Action::Add { count: usize::MAX });
        assert!(matches!(many, Err(Refusal::TooMany { .. })), "{many:?}");
        for radius in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let (from, velocity) = ([0.0; 3], [0.0; 3]);
            let thrown = scene.act(&Action::Throw {
                from,
                velocity,
                radius,
            });
            assert!(matches!(thrown, Err(Refusal::Value { .. })), "{thrown:?}");
        }
        let far = scene.act(&Action::Drag {
            target: [0.0, f32::NAN, 0.0],
        });
        assert!(matches!(far, Err(Refusal::Value { .. })), "{far:?}");
        scene.act(&Action::Release).expect("nothing is held");
        let after = (bodies(&scene), scene.boxes().expect("host boxes").to_vec());
        assert_eq!(before, after, "{kind}");
    }
    // The floor under the chairs.
    let (mut chairs, _) = scene(Kind::FallingChairs, 2);
    let floor = Action::Grab {
        body: 0,
        point: [0.0; 3],
    };
    assert_eq!(chairs.act(&floor), Err(Refusal::Body { body: 0 }));
}
