//! Large scenes pair by pair against parry's tree, which shares no code with ours. Its pairs are
//! tested again here.

use super::generators::{Made, Scene};
use super::{RULES, equal, oracle, rule_name, same};
use libtest_mimic::Failed;
use parry3d::bounding_volume::Aabb as ParryAabb;
use parry3d::math::Vector;
use parry3d::partitioning::{Bvh, BvhBuildStrategy};
use sap::{Aabb, Backend, BroadPhase, Config, OverlapRule, Pair, Strategy};

/// Scenes in which more boxes overlap take long and show nothing new.
const MOST_PAIRS: usize = 2_000_000;

/// Compares a scene by every strategy, under one of the two rules, then three frames in each of
/// which one box in a hundred moves.
pub fn check(
    scene: &Scene,
    backend: Backend,
    strategies: &[Strategy],
    turn: usize,
) -> Result<(), Failed> {
    if compare(scene, backend, strategies, turn)? {
        return Ok(());
    }
    // Of 2,000 boxes few enough overlap, even if all do.
    let few = Scene {
        n: scene.n.min(2000),
        ..scene.clone()
    };
    let is_compared = compare(&few, backend, strategies, turn)?;
    is_compared
        .then_some(())
        .ok_or_else(|| "nothing was compared".into())
}

/// Compares a scene. Returns false if too many boxes overlap.
fn compare(
    scene: &Scene,
    backend: Backend,
    strategies: &[Strategy],
    turn: usize,
) -> Result<bool, Failed> {
    let rule = RULES[turn % 2];
    let mut made = scene.make();
    let Some(mut expected) = overlaps(&made, rule, MOST_PAIRS) else {
        return Ok(false);
    };
    let mut engines = Vec::new();
    for &strategy in strategies {
        engines.push(BroadPhase::new(Config {
            backend,
            strategy,
            rule,
            ..Config::default()
        })?);
    }
    for frame in 0..4 {
        let mut moved = Vec::new();
        if frame > 0 {
            moved = made.step(frame);
            move_pairs(&mut expected, &made, &moved, rule);
        }
        for (engine, strategy) in engines.iter_mut().zip(strategies) {
            let what = |found: Failed| {
                let text = found.message().unwrap_or("failed").to_string();
                format!(
                    "{scene}, {strategy}, {}, frame {frame}: {text}",
                    rule_name(rule)
                )
            };
            engine.update(made.frame().changed(&moved))?;
            same(engine.pairs(), &expected).map_err(what)?;
            equal(engine.report().pairs, expected.len() as u64)?;
        }
    }
    Ok(true)
}

/// Replaces the pairs of moved boxes, each of which is compared with all boxes.
fn move_pairs(pairs: &mut Vec<Pair>, made: &Made, moved: &[u32], rule: OverlapRule) {
    let mut is_moved = vec![false; made.boxes.len()];
    for &i in moved {
        is_moved[i as usize] = true;
    }
    pairs.retain(|pair| !is_moved[pair.a as usize] && !is_moved[pair.b as usize]);
    for i in moved.iter().map(|&i| i as usize) {
        let met = |&j: &usize| {
            // A pair of two moved boxes is found by the first one.
            j != i
                && (j > i || !is_moved[j])
                && oracle::overlap(&made.boxes[i], &made.boxes[j], rule)
                && made.allows(i, j)
        };
        let others = (0..made.boxes.len()).filter(met);
        pairs.extend(others.map(|j| Pair::new(i as u32, j as u32)));
    }
    pairs.sort_unstable();
}

/// Returns the pairs of a scene in order.
pub fn pairs(made: &Made, rule: OverlapRule) -> Vec<Pair> {
    overlaps(made, rule, usize::MAX).unwrap_or_default()
}

/// Returns the pairs of a scene in order, unless more than `most` boxes overlap.
fn overlaps(made: &Made, rule: OverlapRule, most: usize) -> Option<Vec<Pair>> {
    // parry refuses infinite sides. Clamped boxes still overlap the same boxes.
    let cut = |corner: [f32; 3]| Vector::from_array(corner.map(|x| x.clamp(-f32::MAX, f32::MAX)));
    let leaf = |b: &Aabb| ParryAabb::new(cut(b.min), cut(b.max));
    let leaves: Vec<ParryAabb> = made.boxes.iter().map(leaf).collect();
    let tree = Bvh::from_leaves(BvhBuildStrategy::Binned, &leaves);
    let (mut count, mut pairs) = (0, Vec::new());
    for (i, query) in leaves.iter().enumerate() {
        for j in tree.intersect_aabb(query).map(|j| j as usize) {
            if i < j && oracle::overlap(&made.boxes[i], &made.boxes[j], rule) {
                count += 1;
                if made.allows(i, j) {
                    pairs.push(Pair::new(i as u32, j as u32));
                }
            }
        }
        if count > most {
            return None;
        }
    }
    pairs.sort_unstable();
    Some(pairs)
}
