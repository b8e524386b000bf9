//! Boxes that move, come and go, on 1 to 7 ranks, against one engine.

mod common;

use common::churn::Churn;
use common::random::uniform_in;
use common::{LIMIT, RULES, Scene, check, run};
use sap::{Aabb, OnInvalid};
use sap_dist::{Config, Pair};

/// Boxes that gather in a corner, and stay there in the last frame.
fn gathering(frames: usize) -> Vec<Scene> {
    let start = uniform_in(3000, [60.0, 30.0, 8.0], 5);
    let frame = |number: usize| {
        let shrink = 1.0 - number.min(frames - 2) as f32 / frames as f32;
        let boxes = start.iter().map(|b| {
            let to = [b.min[0] * shrink * shrink, b.min[1] * shrink, b.min[2]];
            Aabb::new(to, std::array::from_fn(|k| to[k] + b.max[k] - b.min[k]))
        });
        Scene::dealt(boxes.collect())
    };
    (0..frames).map(frame).collect()
}

/// Returns how many threads of this process are of a pool of radsweep.
#[cfg(target_os = "linux")]
fn pool_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("the tasks are listed");
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
    let names = tasks.filter_map(|task| name(task.ok()?).ok());
    names.filter(|name| name.starts_with("radsweep-")).count()
}

#[test]
#[cfg(target_os = "linux")]
fn a_rank_works_on_as_many_threads_as_asked_for() {
    let config = Config {
        threads: std::num::NonZero::new(3),
        ..Config::default()
    };
    let broad_phase = sap_dist::Distributed::new(config.clone()).expect("it is made");
    let start = std::time::Instant::now();
    while pool_threads() < 3 && start.elapsed() < LIMIT {
        std::thread::yield_now(); // a thread takes its name when it starts
    }
    assert_eq!(pool_threads(), 3);
    // Each rank has a pool, in which its engine works too.
    check(&gathering(3), 2, &config);
    drop(broad_phase);
}

#[test]
fn cuts_follow_boxes_that_gather() {
    let scenes = gathering(7);
    for rule in RULES {
        for ranks in 1..=7 {
            let reports = check(
                &scenes,
                ranks,
                &Config {
                    rule,
                    ..Config::default()
                },
            );
            let cuts = reports.iter().filter(|report| report.new_cuts).count();
            assert!(
                reports[0].new_cuts && (ranks == 1 || cuts > 1),
                "{ranks} ranks: {cuts} cuts"
            );
            let last = &reports[6];
            assert_eq!(last.ranks.iter().map(|rank| rank.homes).sum::<u64>(), 3000);
            assert!(last.balance() < 2.0, "{ranks} ranks\n{last}");
        }
    }
}

#[test]
fn random_scenes_have_the_pairs_and_events_of_one_engine() {
    let mut invalid = 0;
    for seed in 0..6 {
        let mut churn = Churn::new(seed);
        let scenes: Vec<Scene> = (0..14).map(|_| churn.step()).collect();
        let rule = RULES[seed as usize / 3];
        let config = Config {
            rule,
            on_invalid: OnInvalid::Skip,
            ..Config::default()
        };
        for ranks in 1..=7 {
            let reports = check(&scenes, ranks, &config);
            for (report, scene) in reports.iter().zip(&scenes) {
                let bad = || {
                    scene
                        .boxes
                        .iter()
                        .zip(&scene.ids)
                        .filter(|(b, _)| b.check().is_err())
                };
                let count = report.invalid.map_or(0, |invalid| invalid.count);
                let first = report.invalid.map(|invalid| invalid.first);
                assert_eq!(count, bad().count() as u64);
                assert_eq!(first, bad().map(|(_, &id)| id).min());
                invalid += count;
            }
        }
    }
    assert!(invalid > 0);
}

#[test]
fn many_thin_slabs_get_rows() {
    // A plate of 24 x 24: 20 slabs would be thinner than two boxes.
    let scenes = [
        uniform_in(4000, [24.0, 24.0, 2.0], 1),
        uniform_in(4000, [24.0, 24.0, 2.0], 2),
    ];
    let scenes = scenes.map(Scene::dealt);
    for ranks in [9, 20] {
        let reports = check(&scenes, ranks, &Config::default());
        let report = &reports[1];
        assert_eq!(report.axes.len(), 2, "{report}");
        assert!(
            !report.axes.contains(&2) && report.slabs < ranks,
            "{report}"
        );
    }
}

#[test]
fn extreme_scenes() {
    let cube = Aabb::new([0.0; 3], [1.0; 3]);
    let all = Aabb::new([f32::NEG_INFINITY; 3], [f32::INFINITY; 3]);
    let mut giant = uniform_in(500, [30.0; 3], 3);
    giant[77] = all;
    let scenes = [
        Scene::default(),
        Scene::dealt(vec![cube]),
        Scene::dealt(vec![cube; 3]),
        Scene::dealt(vec![cube; 200]), // all in one slab
        Scene::dealt(vec![all; 40]),   // all everywhere
        Scene::dealt(giant),
        Scene::dealt(vec![Aabb::EMPTY; 9]),
        Scene {
            origins: vec![0; 500],
            ..Scene::dealt(uniform_in(500, [30.0; 3], 4))
        }, // empty ranks
        Scene::default(),
    ];
    for rule in RULES {
        for ranks in 1..=7 {
            let config = Config {
                rule,
                ..Config::default()
            };
            check(&scenes, ranks, &config);
            let reversed: Vec<Scene> = scenes.iter().rev().cloned().collect();
            check(&reversed, ranks, &config);
        }
    }
}

#[test]
fn a_giant_box_is_copied_to_all_cells() {
    let mut boxes = uniform_in(2000, [40.0; 3], 3);
    boxes[5] = Aabb::new([-100.0; 3], [100.0; 3]);
    let scene = Scene::dealt(boxes);
    let reports = check(&[scene], 6, &Config::default());
    let report = &reports[0];
    assert!(
        report.ranks.iter().filter(|rank| rank.copies > 0).count() >= 5,
        "{report}"
    );
    let parts = run(
        &[Scene::dealt(vec![Aabb::new([0.0; 3], [1.0; 3]); 6])],
        6,
        &Config::default(),
    );
    assert_eq!(parts[4][0].lists[0], [Pair { a: 4, b: 5 }]);
}
