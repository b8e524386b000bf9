//! The published scenes and other projects' cases: counts, hashes and pairs.

use super::{RULES, Setup, data, equal, rule_name, same, scenes};
use libtest_mimic::{Failed, Trial};
use sap::internals::pair_hash;
use sap::{Aabb, Backend, OverlapRule, Pair, Strategy};
use serde_json::Value;
use std::sync::Arc;

/// Returns a trial of each scene and case on a backend, by each strategy and under both rules.
pub fn trials(backend: Backend, strategies: &[Strategy]) -> Vec<Trial> {
    let (mut trials, mut missing) = (Vec::new(), 0);
    for (lines, trial) in [
        (data::SCENES, scene as fn(Value, Setup) -> Trial),
        (data::PEER_CASES, peer_case),
    ] {
        for line in lines.lines() {
            let case: Value = serde_json::from_str(line).expect("the fixture is JSON lines");
            let is_missing = |file: &str| data::boxes(file).is_none();
            if case["file"].as_str().is_some_and(is_missing) {
                missing += 1;
                continue;
            }
            for &strategy in strategies {
                for rule in RULES {
                    trials.push(trial(
                        case.clone(),
                        Setup {
                            backend,
                            strategy,
                            rule,
                        },
                    ));
                }
            }
        }
    }
    if missing > 0 {
        trials.push(Trial::test(data::skipped(missing), || Ok(())).with_ignored_flag(true));
    }
    trials
}

/// Checks a scene of `boxes.jsonl`.
fn scene(case: Value, setup: Setup) -> Trial {
    let file = case["file"].as_str().expect("a file name").to_owned();
    let name = format!("{file}::{}::{}", setup.strategy, rule_name(setup.rule));
    Trial::test(name, move || {
        let boxes = data::boxes(&file).ok_or("the file is gone")?;
        check_scene(&case, &boxes, setup.rule, &setup.pairs(&boxes))
    })
}

/// Fails unless a scene has the published count and hash.
fn check_scene(
    case: &Value,
    boxes: &[Aabb],
    rule: OverlapRule,
    pairs: &[Pair],
) -> Result<(), Failed> {
    let [count, hash] = scenes::of(rule, [["pairs", "hash"], ["pairs_open", "hash_open"]]);
    equal(Some(boxes.len() as u64), case["n"].as_u64())?;
    equal(Some(pairs.len() as u64), case[count].as_u64())?;
    equal(
        Some(format!("{:016x}", pair_hash(pairs)).as_str()),
        case[hash].as_str(),
    )
}

/// Checks the built-in scenes, under both rules, with the pairs that `find` returns.
pub fn check_built_in(
    find: impl Fn(&[Aabb], OverlapRule) -> Result<Vec<Pair>, Failed>,
) -> Result<(), Failed> {
    for line in data::SCENES.lines() {
        let case: Value = serde_json::from_str(line)?;
        let file = case["file"].as_str().ok_or("no file name")?;
        let Some(boxes) = data::built_in(file) else {
            continue;
        };
        for rule in RULES {
            check_scene(&case, &boxes, rule, &find(&boxes, rule)?)?;
        }
    }
    Ok(())
}

/// Checks a case of `peer_cases.jsonl`: its boxes, or those that its note describes.
fn peer_case(case: Value, setup: Setup) -> Trial {
    let name = case["name"].as_str().expect("a name").to_owned();
    let full = format!("{name}::{}::{}", setup.strategy, rule_name(setup.rule));
    let case = Arc::new(case);
    Trial::test(full, move || {
        let boxes = match case["boxes"].as_array() {
            Some(rows) => rows
                .iter()
                .map(row)
                .collect::<Option<Vec<Aabb>>>()
                .ok_or("a box of other than six numbers")?,
            None => constructed(&name).ok_or("no boxes and no construction")?,
        };
        let [count, list] = scenes::of(
            setup.rule,
            [["closed", "closed_pairs"], ["open", "open_pairs"]],
        );
        let pairs = setup.pairs(&boxes);
        equal(Some(boxes.len() as u64), case["n"].as_u64())?;
        equal(Some(pairs.len() as u64), case[count].as_u64())?;
        let Some(expected) = case[list].as_array() else {
            return Ok(());
        };
        let pair = |pair: &Value| {
            Some(Pair {
                a: pair[0].as_u64()? as u32,
                b: pair[1].as_u64()? as u32,
            })
        };
        let expected: Vec<Pair> = expected
            .iter()
            .map(pair)
            .collect::<Option<_>>()
            .ok_or("a pair of other than two numbers")?;
        same(&pairs, &expected)
    })
}

fn row(row: &Value) -> Option<Aabb> {
    let numbers: Option<Vec<f32>> = row
        .as_array()?
        .iter()
        .map(|value| value.as_f64().map(|value| value as f32))
        .collect();
    Some(Aabb::from_min_max(numbers?.try_into().ok()?))
}

/// Makes the three large cases, as their notes describe.
fn constructed(name: &str) -> Option<Vec<Aabb>> {
    match name {
        "arborx_stack_4096" => Some(
            (0..4096)
                .map(|i| scenes::at(i as f32, i as f32, i as f32))
                .collect(),
        ),
        "arborx_lattice_11" => {
            let point = |i: usize| [i % 11, i / 11 % 11, i / 121].map(|k| 10.0 * k as f32);
            Some((0..1331).map(|i| Aabb::new(point(i), point(i))).collect())
        }
        "box2d_grid_20x20" => Some(
            (0..400)
                .map(|i| scenes::at((i % 20) as f32, (i / 20) as f32, 0.0))
                .collect(),
        ),
        _ => None,
    }
}
