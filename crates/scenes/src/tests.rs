//! Tests of the properties of all scenes, and of the synthetic scenes.

use super::*;
use radsweep::{Aabb, Backend, Config};

fn scene(kind: Kind, bodies: usize) -> (Scene, BroadPhase) {
    let scene = Scene::new(
        kind,
        &Options {
            bodies: Some(bodies),
            ..Options::default()
        },
    )
    .expect("a scene");
    let config = Config {
        backend: Backend::Cpu,
        ..Config::default()
    };
    (scene, BroadPhase::new(config).expect("the CPU is there"))
}

fn sizes(aabb: &Aabb) -> [f32; 3] {
    std::array::from_fn(|axis| aabb.max[axis] - aabb.min[axis])
}

#[test]
fn names_parse_back_and_an_unknown_one_lists_the_known() {
    for &kind in Kind::ALL {
        assert_eq!(kind.to_string().parse::<Kind>().ok(), Some(kind));
    }
    let message = "lava".parse::<Kind>().map_err(|error| error.to_string());
    let known = "falling-chairs, particles, galaxy, uniform, clustered, mixed-sizes, stack";
    assert_eq!(
        message,
        Err(format!("unknown scene `lava`: known are {known}"))
    );
}

#[test]
fn bodies_and_density_are_checked() {
    for &kind in Kind::ALL {
        for bodies in [0, Options::MAX_BOXES + 1, usize::MAX] {
            let options = Options {
                bodies: Some(bodies),
                ..Options::default()
            };
            assert!(
                matches!(Scene::new(kind, &options), Err(Error::Bodies { .. })),
                "{kind} {bodies}"
            );
        }
        for density in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e-9] {
            let options = Options {
                bodies: Some(1),
                density,
                ..Options::default()
            };
            assert!(
                matches!(Scene::new(kind, &options), Err(Error::Density { .. })),
                "{kind} {density}"
            );
        }
    }
}

#[test]
fn one_body_is_a_scene() {
    for &kind in Kind::ALL {
        let (mut scene, mut broad_phase) = scene(kind, 1);
        for _ in 0..3 {
            scene.step(&mut broad_phase).expect("valid boxes");
        }
    }
}

#[test]
fn pictures_show_every_body_before_and_after_the_first_frame() {
    for &kind in Kind::ALL {
        let (mut scene, mut broad_phase) = scene(kind, 40);
        let mut picture = Picture::default();
        for frame in 0..2 {
            scene.picture(&mut picture).expect("a picture");
            let (chairs, spheres) = (picture.chairs.len(), picture.spheres.len());
            let expected = match kind {
                Kind::FallingChairs => (1, 40, 0),
                Kind::Particles | Kind::Galaxy => (0, 0, 40),
                Kind::Stack => (41, 0, 0),
                _ => (40, 0, 0),
            };
            assert_eq!(
                (picture.boxes.len(), chairs, spheres),
                expected,
                "{kind} {frame}"
            );
            scene.step(&mut broad_phase).expect("valid boxes");
            let boxes = scene.boxes().expect("host boxes").len();
            assert!([0, boxes].contains(&scene.body_of_box().len()), "{kind}");
            assert_eq!(scene.landscape().is_some(), kind == Kind::Particles);
        }
        let all = [&picture.boxes, &picture.chairs, &picture.spheres];
        for one in all.into_iter().flatten() {
            let body = scene.body_of_box().iter().max();
            assert!(one.body <= body.copied().unwrap_or(40), "{kind}: {one:?}");
            assert!(one.speed.is_finite() && one.scale.iter().all(|&scale| scale > 0.0));
        }
    }
}

#[test]
fn a_seed_gives_the_same_arrangement_in_every_version() {
    // Recorded once: with other values, results of different versions could not be compared.
    let (mut scene, mut broad_phase) = scene(Kind::Uniform, 1000);
    let first = scene.step(&mut broad_phase).expect("valid boxes");
    assert_eq!(
        (
            first.report.pairs,
            radsweep::internals::pair_hash(broad_phase.pairs())
        ),
        (1212, 0x8984_4d24_f763_1830)
    );
}

#[test]
fn uniform_boxes_have_the_documented_sizes_and_volume_and_drift() {
    let (mut scene, mut broad_phase) = scene(Kind::Uniform, 8000);
    scene.step(&mut broad_phase).expect("valid boxes");
    let first = scene.boxes().expect("host boxes").to_vec();
    for _ in 0..50 {
        scene.step(&mut broad_phase).expect("valid boxes");
    }
    assert!(
        first
            .iter()
            .zip(scene.boxes().expect("host boxes"))
            .all(|(before, after)| before != after)
    );
    for aabb in first.iter().chain(scene.boxes().expect("host boxes")) {
        assert!(
            sizes(aabb)
                .iter()
                .all(|size| (0.399..=1.001).contains(size)),
            "{aabb:?}"
        );
        let centers = (0..3).map(|axis| (aabb.min[axis] + aabb.max[axis]) / 2.0);
        assert!(
            centers
                .into_iter()
                .all(|center| (-0.001..=20.001).contains(&center)),
            "{aabb:?}"
        );
    }
}

#[test]
fn clusters_are_denser_than_an_even_spread() {
    let most = |kind| {
        let (mut scene, mut broad_phase) = scene(kind, 20_000);
        scene.step(&mut broad_phase).expect("valid boxes");
        let mut count = vec![0_u32; 20_000];
        broad_phase
            .pairs()
            .iter()
            .for_each(|pair| count[pair.a as usize] += 1);
        count.into_iter().max().unwrap_or(0)
    };
    let (clustered, uniform) = (most(Kind::Clustered), most(Kind::Uniform));
    assert!(clustered > 3 * uniform, "{clustered} {uniform}");
}

#[test]
fn mixed_sizes_span_six_decades_with_about_ten_pairs_per_box() {
    let (mut scene, mut broad_phase) = scene(Kind::MixedSizes, 20_000);
    let step = scene.step(&mut broad_phase).expect("valid boxes");
    let per_box = step.report.pairs as f64 / 20_000.0;
    assert!((7.0..13.0).contains(&per_box), "{per_box}");
    let largest = || {
        scene
            .boxes()
            .expect("host boxes")
            .iter()
            .map(|aabb| sizes(aabb).into_iter().fold(0.0, f32::max))
    };
    let (low, high) = (
        largest().fold(f32::MAX, f32::min),
        largest().fold(0.0, f32::max),
    );
    assert!(high / low > 10.0_f32.powf(5.8), "{low} {high}");
}

#[test]
fn stacked_cubes_touch_exactly_in_every_frame() {
    let (mut scene, mut broad_phase) = scene(Kind::Stack, 32 * 25);
    for _ in 0..20 {
        scene.step(&mut broad_phase).expect("valid boxes");
        let boxes = scene.boxes().expect("host boxes");
        let faces = |lower: usize, upper: usize, axis: usize| {
            (boxes[lower].max[axis], boxes[upper].min[axis])
        };
        for tower in 0..25 {
            for layer in 0..32 {
                let cube = 1 + tower * 32 + layer;
                let (top, bottom) = if layer == 0 {
                    faces(0, cube, 1)
                } else {
                    faces(cube - 1, cube, 1)
                };
                assert_eq!(top, bottom);
                if tower % 5 > 0 {
                    let (right, left) = faces(cube - 32, cube, 0);
                    assert_eq!(right, left);
                }
            }
        }
    }
}
