//! Tests that boxes, pairs and messages follow the changes of a world.

#![allow(clippy::unwrap_used)]

use bevy_ecs::prelude::*;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use sap::{Aabb, Config, Filter, OverlapRule, Shape};
use sap_ecs::{
    BoxIndex, BroadPhase, BroadPhaseSchedule, Collider, EntityHit, Error, Moved, PairEnded,
    PairStarted,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

type Pairs = BTreeSet<[Entity; 2]>;

fn world() -> World {
    let mut world = World::new();
    sap_ecs::install(&mut world, Config::default()).unwrap();
    world
}

fn run(world: &mut World) -> &BroadPhase {
    world.run_schedule(BroadPhaseSchedule);
    world.resource::<BroadPhase>()
}

fn ordered([a, b]: [Entity; 2]) -> [Entity; 2] {
    if a < b { [a, b] } else { [b, a] }
}

fn pairs(world: &World) -> Pairs {
    let pairs = world.resource::<BroadPhase>().pairs();
    let set: Pairs = pairs.map(ordered).collect();
    assert_eq!(set.len(), world.resource::<BroadPhase>().pairs().len());
    set
}

/// Returns the pairs that started and ended in the last run.
fn events(world: &World) -> (Pairs, Pairs) {
    let started = world.resource::<Messages<PairStarted>>();
    let ended = world.resource::<Messages<PairEnded>>();
    (
        started
            .iter_current_update_messages()
            .map(|pair| ordered(pair.0))
            .collect(),
        ended
            .iter_current_update_messages()
            .map(|pair| ordered(pair.0))
            .collect(),
    )
}

/// Finds all pairs by brute force.
fn brute_force(world: &mut World) -> Pairs {
    let mut query = world.query::<(Entity, &Collider, &Moved)>();
    let placed: Vec<(Entity, Aabb, Filter)> = query
        .iter(world)
        .map(|(entity, collider, moved)| {
            let add = |corner: [f32; 3]| std::array::from_fn(|axis| corner[axis] + moved.0[axis]);
            let Aabb { min, max } = collider.bounds;
            (entity, Aabb::new(add(min), add(max)), collider.filter)
        })
        .collect();
    let mut pairs = Pairs::new();
    for (i, (entity, bounds, filter)) in placed.iter().enumerate() {
        for (other, other_bounds, other_filter) in &placed[..i] {
            if bounds.overlaps(other_bounds, OverlapRule::Closed) && filter.allows(other_filter) {
                pairs.insert(ordered([*entity, *other]));
            }
        }
    }
    pairs
}

fn place(rng: &mut Xoshiro256PlusPlus, side: f32) -> Moved {
    Moved(std::array::from_fn(|_| rng.random_range(0.0..side)))
}

#[test]
fn only_what_moved_is_written() {
    let mut world = world();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let bodies: Vec<Entity> = (0..10_000)
        .map(|_| {
            world
                .spawn((Collider::new([0.5; 3]), place(&mut rng, 40.0)))
                .id()
        })
        .collect();
    assert_eq!(run(&mut world).written(), 10_000);
    let report = world.resource::<BroadPhase>().report().clone();
    assert_eq!(report.n, 10_000);

    for frame in 0..5 {
        for &body in bodies.iter().skip(frame).step_by(100) {
            let by: [f32; 3] = std::array::from_fn(|_| rng.random_range(-1.0..1.0));
            let mut moved = world.get_mut::<Moved>(body).unwrap();
            moved.0 = std::array::from_fn(|axis| moved.0[axis] + by[axis]);
        }
        assert_eq!(run(&mut world).written(), 100);
    }
    assert_eq!(pairs(&world), brute_force(&mut world));

    let before = world.resource::<BroadPhase>().report().clone();
    assert_eq!(run(&mut world).written(), 0);
    assert_eq!(
        *world.resource::<BroadPhase>().report(),
        before,
        "nothing moved, so nothing was done"
    );
}

#[test]
fn churn_gives_what_a_rebuild_gives() {
    for seed in 0..4 {
        churn(seed);
    }
}

fn churn(seed: u64) {
    let mut world = world();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut bodies: Vec<Entity> = Vec::new();
    let mut last = Pairs::new();
    let mut most = 0;
    for frame in 0..150 {
        for _ in 0..rng.random_range(0..12) {
            let half = [0; 3].map(|_| rng.random_range(0.1..1.0));
            let mut collider = Collider::new(half);
            if rng.random_bool(0.3) {
                collider.filter.group = rng.random_range(0..3);
            }
            collider = match rng.random_range(0..6) {
                0 => collider.fixed(),
                1 => collider.asleep(),
                _ => collider,
            };
            bodies.push(world.spawn((collider, place(&mut rng, 8.0))).id());
        }
        for _ in 0..rng.random_range(0..10).min(bodies.len()) {
            let at = rng.random_range(0..bodies.len());
            let body = bodies[at];
            match rng.random_range(0..7) {
                0 | 1 => {
                    world.despawn(bodies.swap_remove(at));
                }
                2 => {
                    world.entity_mut(body).remove::<Collider>();
                }
                3 => {
                    // Replaces the collider, or adds it to a body that had lost it.
                    world.entity_mut(body).insert(Collider::new([0.7; 3]));
                }
                4 => {
                    let mut collider = world.get_mut::<Collider>(body);
                    if let Some(collider) = &mut collider {
                        collider.filter.mask = rng.random_range(0..4);
                    }
                }
                _ => {
                    let moved = place(&mut rng, 8.0);
                    world.entity_mut(body).insert(moved);
                }
            }
        }
        let expected = brute_force(&mut world);
        run(&mut world);
        let found = pairs(&world);
        assert_eq!(found, expected, "seed {seed} frame {frame}");
        let (started, ended) = events(&world);
        // A collider that was removed and added again between two updates has a new box: its old
        // pairs end and start.
        let again: Pairs = started.intersection(&ended).copied().collect();
        let without = |set: &Pairs| set.difference(&again).copied().collect::<Pairs>();
        assert_eq!(
            without(&started),
            found.difference(&last).copied().collect()
        );
        assert_eq!(without(&ended), last.difference(&found).copied().collect());
        assert!(again.is_subset(&found) && again.is_subset(&last));
        last = found;

        let broad_phase = world.resource::<BroadPhase>();
        let colliders = broad_phase.colliders();
        assert_eq!(colliders, world.query::<&Collider>().iter(&world).len());
        most = most.max(colliders);
        let mut indices = world.query_filtered::<&BoxIndex, With<Collider>>();
        let taken: BTreeSet<_> = indices
            .iter(&world)
            .map(|index| index.get().unwrap())
            .collect();
        assert_eq!(taken.len(), colliders, "two colliders with one box");
    }
    let boxes = world.resource::<BroadPhase>().report().n;
    assert!(
        boxes <= most + 24,
        "{boxes} boxes for at most {most} colliders: not reused"
    );
    assert!(
        last.len() > 10,
        "the churn found too little: {}",
        last.len()
    );
}

#[test]
fn pairs_of_a_removed_entity_end_with_that_entity() {
    let mut world = world();
    let still = world.spawn(Collider::new([1.0; 3])).id();
    let old = world.spawn(Collider::new([1.0; 3])).id();
    run(&mut world);
    world.despawn(old);
    let new = world.spawn(Collider::new([1.0; 3])).id();
    run(&mut world);
    let one = |a, b| Pairs::from([ordered([a, b])]);
    assert_eq!(events(&world), (one(still, new), one(still, old)));
    assert_eq!(pairs(&world), one(still, new));
    // The old entity's box is free now.
    let reused = world.spawn(Collider::new([1.0; 3])).id();
    run(&mut world);
    assert_eq!(world.resource::<BroadPhase>().report().n, 3);
    assert_eq!(
        events(&world).0,
        Pairs::from([ordered([still, reused]), ordered([new, reused])])
    );
}

#[test]
fn an_index_is_for_life() {
    let mut world = world();
    let bodies: Vec<Entity> = (0..50)
        .map(|_| world.spawn(Collider::new([1.0; 3])).id())
        .collect();
    let index = |world: &World, body| world.get::<BoxIndex>(body).unwrap().get().unwrap();
    let before: Vec<u32> = bodies.iter().map(|&body| index(&world, body)).collect();
    for &body in bodies.iter().step_by(3) {
        world.despawn(body);
    }
    run(&mut world);
    for (at, &body) in bodies.iter().enumerate().filter(|(at, _)| at % 3 != 0) {
        world.entity_mut(body).insert(Collider::new([2.0; 3]));
        world.entity_mut(body).insert(Name); // another archetype
        assert_eq!(index(&world, body), before[at]);
        assert_eq!(
            world.resource::<BroadPhase>().entity(before[at]),
            Some(body)
        );
    }
}

#[derive(Component)]
struct Name;

#[test]
fn an_invalid_box_is_reported_and_the_pairs_are_unchanged() {
    let mut world = world();
    let a = world.spawn(Collider::new([1.0; 3])).id();
    let b = world.spawn(Collider::new([1.0; 3])).id();
    assert!(run(&mut world).error().is_none());
    world.get_mut::<Moved>(b).unwrap().0[1] = f32::NAN;
    let bad = world.resource::<BroadPhase>().pairs().len();
    assert_eq!(bad, 1);
    for _ in 0..2 {
        let error = run(&mut world).error().cloned();
        assert!(matches!(error, Some(Error::InvalidCollider { entity, .. }) if entity == b));
        assert_eq!(pairs(&world), Pairs::from([ordered([a, b])]));
        assert_eq!(events(&world), Default::default());
    }
    world.get_mut::<Moved>(b).unwrap().0 = [9.0; 3];
    assert!(run(&mut world).error().is_none());
    assert_eq!(events(&world).1, Pairs::from([ordered([a, b])]));
    assert_eq!(pairs(&world), Pairs::new());
}

#[test]
fn install_adds_existing_colliders() {
    let mut world = World::new();
    let bodies: Vec<Entity> = (0..4)
        .map(|_| world.spawn(Collider::new([1.0; 3])).id())
        .collect();
    assert_eq!(world.get::<BoxIndex>(bodies[0]).unwrap().get(), None);
    for _ in 0..2 {
        sap_ecs::install(&mut world, Config::default()).unwrap();
        world.despawn(bodies[0]);
        assert_eq!(run(&mut world).pairs().len(), 3);
    }
    world.remove_resource::<BroadPhase>();
    world.despawn(bodies[1]); // before any broad phase exists
    sap_ecs::install(&mut world, Config::default()).unwrap();
    assert_eq!(run(&mut world).pairs().len(), 1);
    world.entity_mut(bodies[2]).remove::<BoxIndex>();
    assert_eq!(run(&mut world).pairs().len(), 0);
    assert_eq!(world.resource::<BroadPhase>().colliders(), 1);
    world.entity_mut(bodies[2]).insert(Collider::new([1.0; 3]));
    assert_eq!(run(&mut world).pairs().len(), 1);
}

#[test]
fn queries_answer_by_entity() -> Result<(), sap_ecs::Error> {
    let mut world = world();
    let near = world
        .spawn((Collider::new([1.0; 3]), Moved([5.0, 0.0, 0.0])))
        .id();
    let far = world
        .spawn((Collider::new([1.0; 3]), Moved([9.0, 0.0, 0.0])))
        .id();
    run(&mut world);
    let broad_phase = world.resource::<BroadPhase>();
    let hits = broad_phase.query_ray([0.0; 3], [2.0, 0.0, 0.0], 100.0)?;
    assert_eq!(
        hits.iter()
            .map(|hit| (hit.entity, hit.t))
            .collect::<Vec<_>>(),
        [(near, 2.0), (far, 4.0)]
    );
    assert_eq!(broad_phase.query_point([9.5, 0.0, 0.0])?, [far]);
    assert_eq!(broad_phase.query_sphere([7.0, 0.0, 0.0], 0.5)?, []);
    assert_eq!(broad_phase.query_sphere([7.0, 0.0, 0.0], 1.0)?, [near, far]);
    let all = Aabb::new([f32::NEG_INFINITY; 3], [f32::INFINITY; 3]);
    assert_eq!(broad_phase.query_box(&all)?, [near, far]);
    Ok(())
}

#[test]
fn queries_leave_out_entities_by_filter_and_stop_early() -> Result<(), sap_ecs::Error> {
    let mut world = world();
    let layer = |layers| Filter {
        layers,
        ..Filter::default()
    };
    let bodies = [1, 2, 2].map(|layers| {
        let place = Moved([layers as f32 * 4.0, 0.0, 0.0]);
        let collider = Collider::new([1.0; 3]).with_filter(layer(layers));
        world.spawn((collider, place)).id()
    });
    let broad_phase = run(&mut world);
    let ray = Shape::Ray {
        origin: [0.0; 3],
        dir: [1.0, 0.0, 0.0],
        max_t: 100.0,
    };
    let of_second = broad_phase.query(ray).filter(Filter {
        mask: 2,
        ..Filter::default()
    });
    assert_eq!(of_second.collect()?, bodies[1..]);
    let expected = EntityHit::new(bodies[1], 7.0);
    assert_eq!(of_second.closest()?, Some(expected));
    let seen = of_second.visit(|hit| ControlFlow::Break(hit.entity))?;
    assert_eq!(seen, Some(bodies[1]));
    let beside = Aabb::new([5.0, -1.0, -1.0], [7.0, 1.0, 1.0]);
    let touching = broad_phase.query(beside);
    assert!(touching.any()?);
    assert!(!touching.rule(OverlapRule::Open).any()?);
    assert_eq!(touching.hits()?.len(), 3);
    Ok(())
}

#[test]
fn a_bad_configuration_is_an_error() {
    let config = Config {
        margin: f32::NAN,
        ..Config::default()
    };
    let mut world = World::new();
    assert!(matches!(
        sap_ecs::install(&mut world, config),
        Err(Error::BroadPhase(sap::Error::Margin { .. }))
    ));
    assert!(!world.contains_resource::<BroadPhase>());
}
