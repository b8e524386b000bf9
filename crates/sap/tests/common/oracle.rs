//! Oracles for pairs: all against all, in the order of x, and parry's tree.

use parry3d::bounding_volume::Aabb as ParryAabb;
use parry3d::math::Vector;
use parry3d::partitioning::{Bvh, BvhBuildStrategy};
use sap::{Aabb, OverlapRule, Pair};

// Without a branch for each axis, which would be mispredicted often.
#[inline]
fn valid(b: &Aabb) -> bool {
    (0..3).fold(true, |all, k| all & (b.min[k] <= b.max[k]))
}

/// The overlap rule, written independently.
#[inline]
pub fn overlap(a: &Aabb, b: &Aabb, rule: OverlapRule) -> bool {
    let met = (0..3).fold(true, |all, k| {
        all & match rule {
            OverlapRule::Closed => (a.min[k] <= b.max[k]) & (b.min[k] <= a.max[k]),
            OverlapRule::Open => (a.min[k] < b.max[k]) & (b.min[k] < a.max[k]),
        }
    });
    met & valid(a) & valid(b)
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
    let mut order: Vec<(u32, Aabb)> = (0..).zip(boxes.iter().copied()).collect();
    order.retain(|(_, b)| valid(b));
    order.sort_by(|(_, a), (_, b)| a.min[0].total_cmp(&b.min[0]));
    let mut pairs = Vec::new();
    for (at, (i, a)) in order.iter().enumerate() {
        for (j, b) in &order[at + 1..] {
            if b.min[0] > a.max[0] {
                break;
            }
            if overlap(a, b, rule) {
                pairs.push(Pair::new(*i, *j));
            }
        }
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
