//! Oracles for pairs: all against all, in the order of x, and parry's tree.

use parry3d::bounding_volume::Aabb as ParryAabb;
use parry3d::math::Vector;
use parry3d::partitioning::{Bvh, BvhBuildStrategy};
use sap::{Aabb, OverlapRule, Pair};

fn valid(b: &Aabb) -> bool {
    (0..3).all(|k| b.min[k] <= b.max[k])
}

/// The overlap rule, written independently.
pub fn overlap(a: &Aabb, b: &Aabb, rule: OverlapRule) -> bool {
    valid(a)
        && valid(b)
        && (0..3).all(|k| match rule {
            OverlapRule::Closed => a.min[k] <= b.max[k] && b.min[k] <= a.max[k],
            OverlapRule::Open => a.min[k] < b.max[k] && b.min[k] < a.max[k],
        })
}

/// Returns the pairs of one set, all against all.
pub fn brute(boxes: &[Aabb], rule: OverlapRule) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (i, a) in boxes.iter().enumerate() {
        for (j, b) in boxes.iter().enumerate().skip(i + 1) {
            if overlap(a, b, rule) {
                pairs.push(Pair {
                    a: i as u32,
                    b: j as u32,
                });
            }
        }
    }
    pairs
}

/// Returns what [`brute`] does, in less time. Boxes are compared in the order in which they begin
/// on x: a box can only overlap the later ones that begin before it ends.
pub fn ordered(boxes: &[Aabb], rule: OverlapRule) -> Vec<Pair> {
    let mut order: Vec<u32> = (0..boxes.len() as u32)
        .filter(|&i| valid(&boxes[i as usize]))
        .collect();
    order.sort_by(|&i, &j| boxes[i as usize].min[0].total_cmp(&boxes[j as usize].min[0]));
    let mut pairs = Vec::new();
    for (at, &i) in order.iter().enumerate() {
        let a = &boxes[i as usize];
        let near = order[at + 1..]
            .iter()
            .take_while(|&&j| boxes[j as usize].min[0] <= a.max[0]);
        let met = near.filter(|&&j| overlap(a, &boxes[j as usize], rule));
        pairs.extend(met.map(|&j| Pair::new(i, j)));
    }
    pairs.sort_unstable();
    pairs
}

/// Returns the pairs of two sets, all against all.
pub fn brute_between(a: &[Aabb], b: &[Aabb], rule: OverlapRule) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (i, x) in a.iter().enumerate() {
        let met = b.iter().enumerate().filter(|(_, y)| overlap(x, y, rule));
        pairs.extend(met.map(|(j, _)| Pair {
            a: i as u32,
            b: j as u32,
        }));
    }
    pairs
}

/// Returns the pairs by parry's tree, under the closed rule, for finite boxes.
pub fn parry(boxes: &[Aabb], rule: OverlapRule) -> Vec<Pair> {
    let convert = |b: &Aabb| ParryAabb::new(Vector::from(b.min), Vector::from(b.max));
    let tree = Bvh::from_iter(
        BvhBuildStrategy::Binned,
        boxes.iter().map(convert).enumerate(),
    );
    let mut pairs = Vec::new();
    for (i, a) in boxes.iter().enumerate() {
        let query = convert(a);
        let touching = tree.intersect_aabb(&query).map(|j| j as usize);
        let met = touching.filter(|&j| i < j && overlap(a, &boxes[j], rule));
        pairs.extend(met.map(|j| Pair {
            a: i as u32,
            b: j as u32,
        }));
    }
    pairs.sort_unstable();
    pairs
}
