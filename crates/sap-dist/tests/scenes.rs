//! The published scenes on 1 to 7 ranks: the hash of all pairs is the published one.

mod common;

use common::{LIMIT, RULES, Scene, check, data};
use sap::internals::PairHasher;
use sap::{Aabb, OverlapRule};
use sap_dist::{Config, Distributed, Error, Frame, Threads, Transport};
use serde_json::Value;

/// Returns the number and the hash of all pairs of boxes that are spread over the ranks in runs.
fn hash(boxes: &[Aabb], ranks: usize, rule: OverlapRule) -> (u64, String) {
    let config = Config {
        rule,
        events: false,
        ..Config::default()
    };
    let one = |transport: &mut Threads| {
        let border = |rank: usize| rank * boxes.len() / ranks;
        let (from, to) = (border(transport.rank()), border(transport.rank() + 1));
        let mut broad_phase = Distributed::new(config.clone())?;
        broad_phase.update(transport, Frame::from_id(from as u64, &boxes[from..to]))?;
        let small = |pair: &sap_dist::Pair| sap::Pair {
            a: pair.a as u32,
            b: pair.b as u32,
        };
        Ok::<_, Error>(broad_phase.pairs().iter().map(small).collect::<Vec<_>>())
    };
    let parts = Threads::run(ranks, LIMIT, one).expect("threads start");
    // Ids come in the order of the ranks, so the pairs do too.
    let (mut hasher, mut count) = (PairHasher::new(), 0);
    for part in parts {
        let part = part.expect("the update succeeds");
        hasher.write(&part);
        count += part.len() as u64;
    }
    (count, format!("{:016x}", hasher.finish()))
}

/// Checks every scene under both rules.
fn published(ranks: impl Iterator<Item = usize> + Clone) {
    let (mut checked, mut missing) = (0, 0);
    for line in data::SCENES.lines() {
        let case: Value = serde_json::from_str(line).expect("the fixture is JSON lines");
        let file = case["file"].as_str().expect("a file name");
        let Some(boxes) = data::boxes(file) else {
            missing += 1;
            continue;
        };
        let fields = [["pairs", "hash"], ["pairs_open", "hash_open"]];
        for (rule, [count, hash_field]) in RULES.into_iter().zip(fields) {
            for ranks in ranks.clone() {
                let (found, hash) = hash(&boxes, ranks, rule);
                assert_eq!(Some(found), case[count].as_u64(), "{file} {rule:?} {ranks}");
                let expected = case[hash_field].as_str();
                assert_eq!(Some(&*hash), expected, "{file} {rule:?} {ranks}");
            }
        }
        checked += 1;
    }
    assert!(checked > 0, "some scenes are built in");
    if missing > 0 {
        eprintln!("{}", data::skipped(missing));
    }
}

// Two tests, each on one core: the ranks of most scenes wait for the largest part.
#[test]
fn published_scenes_have_their_pairs_on_odd_numbers_of_ranks() {
    published((1..=7).step_by(2));
}

#[test]
fn published_scenes_have_their_pairs_on_even_numbers_of_ranks() {
    published((2..=7).step_by(2));
}

#[test]
fn cases_of_other_projects_have_their_pairs() {
    for line in data::PEER_CASES.lines() {
        let case: Value = serde_json::from_str(line).expect("the fixture is JSON lines");
        let Some(rows) = case["boxes"].as_array() else {
            continue;
        };
        let row = |row: &Value| {
            let numbers = row.as_array().expect("a box").iter();
            let numbers: Vec<f32> = numbers
                .map(|x| x.as_f64().expect("a number") as f32)
                .collect();
            Aabb::from_min_max(numbers.try_into().expect("six numbers"))
        };
        let scene = Scene::dealt(rows.iter().map(row).collect());
        for rule in RULES {
            let config = Config {
                rule,
                ..Config::default()
            };
            for ranks in 1..=7 {
                check(std::slice::from_ref(&scene), ranks, &config);
            }
        }
    }
}

#[test]
fn scenes_that_move_have_the_same_pairs_and_events() {
    let scene = |number: usize| {
        let file = ["mujoco_flag_00.npy", "mujoco_flag_10.npy"][number];
        Scene::dealt(data::boxes(file).expect("the scene is built in"))
    };
    let frames = [scene(0), scene(1), scene(0), scene(0), scene(1)];
    for rule in RULES {
        for ranks in 1..=7 {
            check(
                &frames,
                ranks,
                &Config {
                    rule,
                    ..Config::default()
                },
            );
        }
    }
}
