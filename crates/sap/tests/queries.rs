//! Queries against brute force: every shape and every end, with filters, worlds and rules; from
//! many threads at once, on a pool of their own, and without memory in the steady state.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::allocated::{self, Counting};
use common::scenes::{Random, around, uniform};
use rayon::prelude::*;
use sap::{
    Aabb, Backend, BroadPhase, Config, Error, Filter, FilterFlags, Frame, Hit, OnInvalid,
    OverlapRule, Pair, Query, Shape,
};
use std::num::NonZero;
use std::ops::ControlFlow::{Break, Continue};
use std::sync::Barrier;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn on_cpu(rule: OverlapRule) -> BroadPhase {
    let config = Config {
        backend: Backend::Cpu,
        on_invalid: OnInvalid::Skip,
        rule,
        ..Config::default()
    };
    BroadPhase::new(config).unwrap()
}

/// A scene by kind: usual; small whole numbers, where much touches and much is thin; odd numbers,
/// empty and invalid boxes; many alike.
fn scene(kind: usize, n: usize, random: &mut Random) -> Vec<Aabb> {
    let odd = [0.0, -0.0, 1e-45, 1e30, f32::MAX, f32::INFINITY];
    let mut one = |i: usize| match kind {
        0 => around([(); 3].map(|()| random.between(0.0, 10.0)), [0.4; 3]),
        1 => {
            let min = [(); 3].map(|()| random.below(8) as f32 - 4.0);
            Aabb::new(min, min.map(|v| v + random.below(4) as f32))
        }
        2 if i.is_multiple_of(5) => Aabb::EMPTY,
        2 if i.is_multiple_of(7) => Aabb::new([1.0; 3], [f32::NAN, 2.0, 2.0]),
        2 => {
            let sides = [(); 3].map(|()| {
                [(); 2].map(|()| {
                    let sign = if random.chance(2) { 1.0 } else { -1.0 };
                    match random.below(3) {
                        0 => sign * odd[random.below(odd.len())],
                        _ => sign * random.between(0.0, 6.0),
                    }
                })
            });
            Aabb::new(sides.map(|[a, b]| a.min(b)), sides.map(|[a, b]| a.max(b)))
        }
        _ => around([(i % 3) as f32, 0.0, 0.0], [0.5; 3]),
    };
    (0..n).map(&mut one).collect()
}

/// What boxes have beside them.
#[derive(Default)]
struct Lists {
    boxes: Vec<Aabb>,
    filters: Vec<Filter>,
    worlds: Vec<u32>,
}

impl Lists {
    fn new(kind: usize, n: usize, labels: usize, random: &mut Random) -> Self {
        let boxes = scene(kind, n, random);
        let filters = (0..n).map(|_| filter(random));
        let filters = if labels & 1 == 1 {
            filters.collect()
        } else {
            Vec::new()
        };
        let worlds = (0..n).map(|_| random.below(3) as u32);
        let worlds = if labels & 2 == 2 {
            worlds.collect()
        } else {
            Vec::new()
        };
        Self {
            boxes,
            filters,
            worlds,
        }
    }

    fn frame(&self) -> Frame<'_> {
        let mut frame = Frame::boxes(&self.boxes);
        if !self.filters.is_empty() {
            frame = frame.filters(&self.filters);
        }
        if !self.worlds.is_empty() {
            frame = frame.worlds(&self.worlds);
        }
        frame
    }
}

fn filter(random: &mut Random) -> Filter {
    Filter {
        layers: random.bits() as u32 & 0b111,
        mask: random.bits() as u32 & 0b111,
        group: random.below(3) as u32,
        flags: FilterFlags(random.below(4) as u32),
    }
}

/// A shape of any kind, often one that ends on sides of boxes.
fn shape(boxes: &[Aabb], random: &mut Random) -> Shape {
    let some = match boxes.len() {
        0 => Aabb::new([0.0; 3], [1.0; 3]),
        n => boxes[random.below(n)],
    };
    let whole = |random: &mut Random| [(); 3].map(|()| random.below(9) as f32 - 4.0);
    let start = match random.below(3) {
        0 => some.min,
        1 => whole(random),
        _ => [(); 3].map(|()| random.between(-2.0, 11.0)),
    };
    // Along edges, along axes, nowhere, and anywhere.
    let dir = match random.below(3) {
        0 => [(); 3].map(|()| random.below(3) as f32 - 1.0),
        1 => std::array::from_fn(|axis| some.max[axis] - start[axis]),
        _ => [(); 3].map(|()| random.between(-1.0, 1.0)),
    };
    let odd = [0.0, -1.0, f32::NAN, f32::INFINITY, f32::MAX, 1e-30];
    let far = match random.below(4) {
        0 => odd[random.below(odd.len())],
        1 => random.below(4) as f32,
        _ => random.between(0.0, 20.0),
    };
    match random.below(8) {
        0 => some.into(),
        1 => Aabb::new(start, start.map(|x| x + random.below(3) as f32)).into(),
        2 => Shape::Point(start),
        3 => Shape::Sphere {
            center: start,
            radius: far,
        },
        4 => Shape::Cast {
            aabb: Aabb::new(start, start.map(|x| x + random.below(3) as f32)),
            dir,
            max_t: far,
        },
        _ => Shape::Ray {
            origin: start,
            dir,
            max_t: far,
        },
    }
}

/// Where a moving box, of which a ray is one, enters another.
fn enters(b: &Aabb, moving: &Aabb, dir: [f32; 3], max_t: f32) -> Option<f32> {
    let numbers = [moving.min, moving.max, dir];
    if !numbers.iter().flatten().all(|x| x.is_finite()) || max_t.is_nan() || max_t < 0.0 {
        return None;
    }
    let (mut near, mut far) = (0.0_f64, f64::from(max_t));
    for (k, d) in dir.into_iter().enumerate() {
        let (d, min, max) = (f64::from(d), f64::from(b.min[k]), f64::from(b.max[k]));
        let (low, high) = (f64::from(moving.min[k]), f64::from(moving.max[k]));
        if d == 0.0 {
            if high < min || low > max {
                return None;
            }
        } else {
            let (s, t) = ((min - high) / d, (max - low) / d);
            (near, far) = (near.max(s.min(t)), far.min(s.max(t)));
        }
    }
    (near <= far && near <= f64::from(f32::MAX)).then_some(near as f32 + 0.0)
}

/// The distance of a box that a shape meets.
fn met(b: &Aabb, shape: &Shape, rule: OverlapRule) -> Option<f32> {
    if !(0..3).all(|k| b.min[k] <= b.max[k]) {
        return None;
    }
    match *shape {
        Shape::Aabb(aabb) => common::oracle::overlap(b, &aabb, rule).then_some(0.0),
        Shape::Point(p) => common::oracle::overlap(b, &Aabb::new(p, p), rule).then_some(0.0),
        Shape::Sphere { center, radius } => {
            let gap = |k: usize| {
                let (min, max, c) = (b.min[k], b.max[k], center[k]);
                let gap = if c < min {
                    f64::from(min) - f64::from(c)
                } else if c > max {
                    f64::from(c) - f64::from(max)
                } else {
                    0.0
                };
                gap * gap
            };
            let square = gap(0) + gap(1) + gap(2);
            let limit = f64::from(radius) * f64::from(radius);
            let is_within = match rule {
                OverlapRule::Closed => square <= limit,
                OverlapRule::Open => square < limit,
            };
            let is_valid = radius >= 0.0 && !center.iter().any(|c| c.is_nan());
            (is_valid && is_within).then_some(square.sqrt() as f32)
        }
        Shape::Ray { origin, dir, max_t } => enters(b, &Aabb::new(origin, origin), dir, max_t),
        Shape::Cast { aabb, dir, max_t } => enters(b, &aabb, dir, max_t),
        _ => unreachable!("no other shapes"),
    }
}

/// The filters' rule, written out once more.
fn pair(a: &Filter, b: &Filter) -> bool {
    let flags = a.flags.0 & b.flags.0 & 3;
    let groups = a.group == b.group && a.group != 0;
    a.layers & b.mask != 0 && b.layers & a.mask != 0 && !groups && flags == 0
}

#[derive(Default)]
struct Asked {
    filter: Option<Filter>,
    world: Option<u32>,
    rule: Option<OverlapRule>,
}

impl Asked {
    fn new(random: &mut Random) -> Self {
        Self {
            filter: random.chance(2).then(|| filter(random)),
            world: random.chance(2).then(|| random.below(4) as u32),
            rule: random.chance(4).then_some(OverlapRule::Open),
        }
    }

    fn of<'a>(&self, broad_phase: &'a BroadPhase, shape: Shape) -> Query<'a> {
        let mut query = broad_phase.query(shape);
        if let Some(filter) = self.filter {
            query = query.filter(filter);
        }
        if let Some(world) = self.world {
            query = query.world(world);
        }
        if let Some(rule) = self.rule {
            query = query.rule(rule);
        }
        query
    }

    /// All hits by brute force, in order.
    fn expected(&self, lists: &Lists, shape: &Shape, rule: OverlapRule) -> Vec<Hit> {
        let mut hits = Vec::new();
        for (i, b) in lists.boxes.iter().enumerate() {
            let own = lists.filters.get(i).copied().unwrap_or_default();
            let world = lists.worlds.get(i).copied().unwrap_or_default();
            let passes = self.filter.is_none_or(|filter| pair(&filter, &own))
                && self.world.is_none_or(|asked| asked == world);
            if let Some(t) = met(b, shape, self.rule.unwrap_or(rule)).filter(|_| passes) {
                hits.push(Hit::new(i as u32, t));
            }
        }
        hits.sort_by(|x, y| x.t.total_cmp(&(y.t)).then(x.index.cmp(&y.index)));
        hits
    }
}

/// Asks in every way, and compares.
fn check(query: Query, expected: &[Hit], has_order: bool, random: &mut Random) {
    assert_eq!(query.hits().unwrap(), expected);
    let mut indices: Vec<u32> = expected.iter().map(|hit| hit.index).collect();
    indices.sort_unstable();
    assert_eq!(query.collect().unwrap(), indices);
    let mut into = vec![77; 3];
    query.collect_into(&mut into).unwrap();
    assert_eq!(into, indices);
    assert_eq!(query.closest().unwrap(), expected.first().copied());
    assert_eq!(query.any().unwrap(), !expected.is_empty());
    let count = random.below(expected.len() + 2);
    let mut seen = Vec::new();
    let broken = query.visit(|hit| {
        if seen.len() == count {
            return Break(hit);
        }
        seen.push(hit);
        Continue(())
    });
    assert_eq!(broken.unwrap().is_some(), count < expected.len());
    assert_eq!(seen.len(), count.min(expected.len()));
    if has_order {
        assert_eq!(seen, expected[..seen.len()]);
        assert_eq!(broken_hit(query, count), expected.get(count).copied());
    }
    seen.sort_by_key(|hit| hit.index);
    seen.dedup();
    assert_eq!(seen.len(), count.min(expected.len()));
    assert!(seen.iter().all(|hit| expected.contains(hit)));
}

/// The hit with which a visitor stops after some.
fn broken_hit(query: Query, mut after: usize) -> Option<Hit> {
    let visitor = |hit| match after.checked_sub(1) {
        Some(less) => {
            after = less;
            Continue(())
        }
        None => Break(hit),
    };
    query.visit(visitor).unwrap()
}

#[test]
fn every_end_of_every_shape_is_that_of_brute_force() {
    let mut random = Random::new(41);
    let mut found = 0;
    for rule in [OverlapRule::Closed, OverlapRule::Open] {
        let mut broad_phase = on_cpu(rule);
        for (n, asked) in [
            (0, 20),
            (1, 40),
            (8, 60),
            (9, 60),
            (65, 150),
            (600, 150),
            (5000, 15),
        ] {
            for kind in 0..4 {
                for labels in 0..4 {
                    let lists = Lists::new(kind, n, labels, &mut random);
                    broad_phase.update(lists.frame()).unwrap();
                    for _ in 0..asked {
                        let shape = shape(&lists.boxes, &mut random);
                        let asked = Asked::new(&mut random);
                        let expected = asked.expected(&lists, &shape, rule);
                        let has_order = !matches!(shape, Shape::Aabb(_) | Shape::Point(_));
                        let query = asked.of(&broad_phase, shape);
                        check(query, &expected, has_order, &mut random);
                        found += expected.len();
                    }
                }
            }
        }
    }
    assert!(found > 100_000, "{found}");
}

#[test]
fn rays_meet_borders_and_begin_inside() {
    let unit = Aabb::new([0.0; 3], [1.0; 3]);
    let boxes = [
        unit,
        Aabb::new([2.0, 0.0, 0.0], [2.0, 1.0, 1.0]),
        Aabb::EMPTY,
        unit,
    ];
    for rule in [OverlapRule::Closed, OverlapRule::Open] {
        let mut broad_phase = on_cpu(rule);
        broad_phase.update(&boxes).unwrap();
        let hits = |origin, dir, max_t| -> Vec<(u32, f32)> {
            let hits = broad_phase.query_ray(origin, dir, max_t).unwrap();
            hits.iter().map(|hit| (hit.index, hit.t)).collect()
        };
        // Along an edge of both, through corners, from inside, and to where it just ends.
        let x = [1.0, 0.0, 0.0];
        assert_eq!(
            hits([-1.0, 1.0, 1.0], x, 9.0),
            [(0, 1.0), (3, 1.0), (1, 3.0)]
        );
        assert_eq!(hits([-1.0; 3], [2.0; 3], 9.0), [(0, 0.5), (3, 0.5)]);
        assert_eq!(hits([0.5; 3], x, 9.0), [(0, 0.0), (3, 0.0), (1, 1.5)]);
        assert_eq!(hits([0.5; 3], x, 1.5).len(), 3);
        assert_eq!(hits([0.5; 3], x, 1.499).len(), 2);
        assert_eq!(hits([1.0; 3], [0.0, -0.0, 0.0], 0.0), [(0, 0.0), (3, 0.0)]);
        assert_eq!(hits([1.1; 3], [0.0; 3], f32::INFINITY), []);
        // Starting on the far side: 0 has no sign.
        assert_eq!(hits([1.0, 0.5, 0.5], x, 9.0)[0].1.to_bits(), 0);
    }
}

/// As many boxes that the tree is built on all threads.
fn many() -> (Vec<Aabb>, BroadPhase, Vec<Vec<u32>>) {
    let boxes = uniform(30_000, 3);
    let mut broad_phase = on_cpu(OverlapRule::Closed);
    broad_phase.update(&boxes).unwrap();
    let expected = boxes
        .iter()
        .step_by(40)
        .map(|b| broad_phase.query_box(b).unwrap());
    let expected = expected.collect();
    (boxes, broad_phase, expected)
}

/// On WebAssembly there is one thread, whatever is asked for. The first frames are too small for
/// others, the next ones are not.
#[test]
fn threads_that_are_asked_for_change_no_pair() {
    let config = Config {
        backend: Backend::Cpu,
        threads: NonZero::new(3),
        ..Config::default()
    };
    let mut broad_phase = BroadPhase::new(config).unwrap();
    for n in [4, 20_000] {
        let neighbours: Vec<_> = (1..n).map(|b| Pair { a: b - 1, b }).collect();
        for shift in [0.0, 0.25, 100.0] {
            let row = (0..n).map(|i| i as f32 + shift);
            let boxes: Vec<_> = row.map(|x| Aabb::new([x; 3], [x + 1.0; 3])).collect();
            broad_phase.update(&boxes).unwrap();
            assert!(broad_phase.pairs() == neighbours);
            assert_eq!(broad_phase.query(boxes[1]).collect().unwrap(), [0, 1, 2]);
        }
    }
}

#[test]
fn threads_query_at_once_the_first_query_too() {
    let (mut boxes, mut broad_phase, expected) = many();
    let filter = Filter::default();
    for round in 0..6 {
        // A changed box that no query meets: a new update, so that nothing is built yet.
        boxes.truncate(30_000);
        boxes.push(around([-100.0 - round as f32; 3], [0.1; 3]));
        broad_phase.update(&boxes).unwrap();
        let (broad_phase, boxes) = (&broad_phase, &boxes);
        let ask = |i: usize| {
            let query = broad_phase.query(boxes[40 * i]);
            // The marks of filters are raced for as well.
            let found = if i.is_multiple_of(2) {
                query.filter(filter).collect()
            } else {
                query.collect()
            };
            assert_eq!(found.unwrap(), expected[i]);
        };
        let all = 0..expected.len();
        match round % 3 {
            // Threads of their own.
            0 => {
                let barrier = Barrier::new(4);
                std::thread::scope(|scope| {
                    for thread in 0..4 {
                        let (barrier, all, ask) = (&barrier, all.clone(), &ask);
                        scope.spawn(move || {
                            barrier.wait();
                            all.skip(thread).step_by(4).for_each(ask);
                        });
                    }
                });
            }
            // Threads of a pool: one that builds the tree takes other queries meanwhile.
            1 => all.into_par_iter().for_each(ask),
            // Both.
            _ => {
                rayon::scope(|scope| {
                    scope.spawn(|_| all.clone().into_par_iter().for_each(ask));
                    std::thread::scope(|threads| {
                        threads.spawn(|| all.clone().for_each(ask));
                    });
                });
            }
        }
    }
}

#[test]
fn a_buffer_that_suffices_is_used_again() {
    let (boxes, broad_phase, expected) = many();
    let (mut indices, mut hits) = (Vec::with_capacity(30_000), Vec::with_capacity(30_000));
    let capacities = (indices.capacity(), hits.capacity());
    let world = 0;
    broad_phase.query(boxes[0]).world(world).any().unwrap();
    let before = allocated::of_thread();
    for (b, expected) in boxes.iter().step_by(40).zip(&expected) {
        let query = broad_phase.query(b).world(world).filter(Filter::default());
        query.collect_into(&mut indices).unwrap();
        query.hits_into(&mut hits).unwrap();
        assert!(indices == *expected && hits.len() == expected.len());
        let ray = broad_phase.query(Shape::Ray {
            origin: b.min,
            dir: [0.3, 0.2, 0.1],
            max_t: 1e9,
        });
        ray.hits_into(&mut hits).unwrap();
        assert_eq!(ray.closest().unwrap(), hits.first().copied());
        assert!(ray.any().unwrap());
    }
    assert_eq!(allocated::of_thread(), before);
    assert_eq!(capacities, (indices.capacity(), hits.capacity()));
}

#[test]
fn a_failed_update_leaves_queries_unchanged() {
    let mut broad_phase = BroadPhase::new(Config {
        backend: Backend::Cpu,
        ..Config::default()
    })
    .unwrap();
    let boxes = [Aabb::new([0.0; 3], [1.0; 3]); 2];
    let filters = [
        Filter::default(),
        Filter {
            layers: 2,
            ..Filter::default()
        },
    ];
    broad_phase
        .update(Frame::boxes(&boxes).filters(&filters))
        .unwrap();
    let broken = [boxes[0], Aabb::new([f32::NAN; 3], [1.0; 3])];
    let failed = broad_phase.update(&broken);
    assert!(matches!(failed, Err(Error::InvalidAabb { index: 1, .. })));
    let query = broad_phase.query(boxes[0]);
    assert_eq!(query.collect().unwrap(), [0, 1]);
    let second = Filter {
        mask: 2,
        ..Filter::default()
    };
    // The default filter is in every layer.
    assert_eq!(query.filter(second).collect().unwrap(), [0, 1]);
    let first = Filter {
        mask: 1,
        ..Filter::default()
    };
    assert_eq!(query.filter(first).collect().unwrap(), [0]);
    // Without filters they all have the default one, and are in world 0.
    broad_phase.update(&boxes).unwrap();
    let query = broad_phase.query(boxes[0]);
    assert_eq!(query.filter(first).world(0).collect().unwrap(), [0, 1]);
    assert!(query.world(1).collect().unwrap().is_empty());
    broad_phase.clear();
    assert!(!broad_phase.query(boxes[0]).any().unwrap());
}
