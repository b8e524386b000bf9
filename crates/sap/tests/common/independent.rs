//! Large scenes pair by pair against parry's tree, which shares no code with ours. Its pairs are
//! tested again here.

use super::generators::{Made, Scene};
use super::{RULES, equal, oracle, rule_name, same};
use libtest_mimic::Failed;
use parry3d::bounding_volume::Aabb as ParryAabb;
use parry3d::math::Vector;
use parry3d::partitioning::{Bvh, BvhBuildStrategy, BvhWorkspace};
use sap::{Aabb, Backend, BroadPhase, Config, OverlapRule, Pair, Strategy};

/// Scenes of more pairs take long and show nothing new.
const MOST_PAIRS: usize = 2_000_000;

/// Compares a scene by every strategy, under one of the two rules, then three frames in each of
/// which one box in a hundred moves. Returns false if it has too many pairs.
pub fn check(
    scene: &Scene,
    backend: Backend,
    strategies: &[Strategy],
    turn: usize,
) -> Result<bool, Failed> {
    let rule = RULES[turn % 2];
    let mut made = scene.make();
    let mut expected = Vec::new();
    let count = overlaps(&made, rule, &mut |pair| {
        if expected.len() < MOST_PAIRS {
            expected.push(pair);
        }
    });
    if count > MOST_PAIRS {
        return Ok(false);
    }
    expected.sort_unstable();
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
            expected = pairs(&made, rule);
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

/// Returns the pairs of a scene in order.
pub fn pairs(made: &Made, rule: OverlapRule) -> Vec<Pair> {
    let mut pairs = Vec::new();
    overlaps(made, rule, &mut |pair| pairs.push(pair));
    pairs.sort_unstable();
    pairs
}

fn overlaps(made: &Made, rule: OverlapRule, found: &mut dyn FnMut(Pair)) -> usize {
    // parry refuses infinite sides. Clamped boxes still overlap the same boxes.
    let cut = |corner: [f32; 3]| Vector::from_array(corner.map(|x| x.clamp(-f32::MAX, f32::MAX)));
    let leaf = |b: &Aabb| ParryAabb::new(cut(b.min), cut(b.max));
    let leaves: Vec<ParryAabb> = made.boxes.iter().map(leaf).collect();
    let tree = Bvh::from_leaves(BvhBuildStrategy::Binned, &leaves);
    let mut count = 0;
    tree.traverse_bvtt_single_tree::<false>(&mut BvhWorkspace::default(), &mut |a, b| {
        let (i, j) = (a as usize, b as usize);
        if oracle::overlap(&made.boxes[i], &made.boxes[j], rule) {
            count += 1;
            if made.allows(i, j) {
                found(Pair::new(a, b));
            }
        }
    });
    count
}
