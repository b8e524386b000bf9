//! Tests random changes of worlds, in every way that the components allow, with every engine,
//! against a rebuild from the entities.
//!
//! `RADSWEEP_ECS_RUNS` is the number of runs.

#![allow(clippy::unwrap_used)]

use bevy_ecs::prelude::*;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use sap::{Aabb, Backend, Config, Filter, FilterFlags, OnInvalid, OverlapRule, Strategy};
use sap_ecs::{
    BoxIndex, BroadPhase, BroadPhaseSchedule, Collider, Error, Moved, PairEnded, PairStarted,
};
use std::collections::{BTreeMap, BTreeSet};

type Pairs = BTreeSet<[Entity; 2]>;

fn ordered([a, b]: [Entity; 2]) -> [Entity; 2] {
    if a < b { [a, b] } else { [b, a] }
}

#[test]
fn every_change_gives_what_a_rebuild_gives() {
    let runs = std::env::var("RADSWEEP_ECS_RUNS").ok();
    let runs: u64 = runs.map_or(24, |runs| runs.parse().unwrap());
    let good: usize = (0..runs).map(|seed| Run::new(seed).frames(60)).sum();
    assert!(good as u64 > 20 * runs, "{good} of {} frames", 60 * runs);
}

/// An unrelated component, to move entities between archetypes.
#[derive(Component)]
struct Name;

struct Run {
    seed: u64,
    random: Xoshiro256PlusPlus,
    config: Config,
    world: World,
    bodies: Vec<Entity>,
    /// The written boxes of entities that have one.
    placed: BTreeMap<Entity, (Aabb, Filter)>,
    last: Pairs,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let config = Config {
            backend: Backend::Cpu,
            strategy: Strategy::ALL[random.random_range(0..Strategy::ALL.len())],
            rule: [OverlapRule::Closed, OverlapRule::Open][random.random_range(0..2)],
            on_invalid: [OnInvalid::Error, OnInvalid::Skip][random.random_range(0..2)],
            // Lets small worlds have a resting set.
            min_resting: (!seed.is_multiple_of(4)).then_some(1),
            pair_memory: (seed % 6 == 5).then_some(8 * 150),
            ..Config::default()
        };
        let mut world = World::new();
        sap_ecs::install(&mut world, config.clone()).unwrap();
        Self {
            seed,
            random,
            config,
            world,
            bodies: Vec::new(),
            placed: BTreeMap::new(),
            last: Pairs::new(),
        }
    }

    /// Runs frames and returns how many of them succeeded.
    fn frames(&mut self, frames: usize) -> usize {
        for _ in 0..self.random.random_range(0..150) {
            self.spawn();
        }
        let mut good = 0;
        for frame in 0..frames {
            // Few changes, none, or many.
            let changes = [0, 1, 3, 8, 60][self.random.random_range(0..5)];
            for _ in 0..changes {
                self.change();
            }
            self.world.run_schedule(BroadPhaseSchedule);
            self.record_written();
            self.check_indices();
            good += usize::from(self.check(frame));
        }
        good
    }

    fn number(&mut self) -> f32 {
        match self.random.random_range(0..60) {
            0 => f32::INFINITY,
            1 => -f32::MAX,
            2 => 1e30,
            3 => f32::from_bits(1),
            4 => -0.0,
            5..=20 => self.random.random_range(0..16) as f32 * 0.5,
            _ => self.random.random_range(0.0..8.0),
        }
    }

    fn place(&mut self) -> Moved {
        Moved([(); 3].map(|()| self.number()))
    }

    fn collider(&mut self) -> Collider {
        let mut collider = match self.random.random_range(0..40) {
            0 => Collider::from_aabb(Aabb::EMPTY),
            1 => Collider::new([f32::INFINITY, 0.5, f32::INFINITY]),
            2 => Collider::new([f32::MAX, 0.0, 1.0]),
            3 if self.random.random_bool(0.3) => Collider::new([f32::NAN; 3]),
            4 => Collider::new([0.0; 3]),
            _ => Collider::new([(); 3].map(|()| self.random.random_range(0.1..1.0))),
        };
        if self.random.random_bool(0.4) {
            collider.filter = Filter {
                layers: self.random.random_range(0..8),
                mask: self.random.random_range(0..8),
                group: self.random.random_range(0..3),
                flags: FilterFlags(self.random.random_range(0..4)),
            };
        }
        collider
    }

    fn spawn(&mut self) {
        let (collider, place) = (self.collider(), self.place());
        self.bodies.push(self.world.spawn((collider, place)).id());
    }

    fn change(&mut self) {
        if self.bodies.is_empty() || (self.bodies.len() < 200 && self.random.random_bool(0.25)) {
            return self.spawn();
        }
        let at = self.random.random_range(0..self.bodies.len());
        let body = self.bodies[at];
        let (collider, place) = (self.collider(), self.place());
        match self.random.random_range(0..14) {
            0 | 1 => {
                self.world.despawn(body);
                self.bodies.swap_remove(at);
                self.placed.remove(&body);
            }
            2 => {
                self.world.entity_mut(body).remove::<Collider>();
                self.placed.remove(&body);
            }
            3 => drop(self.world.entity_mut(body).insert(collider)),
            4 => {
                if let Some(mut old) = self.world.get_mut::<Collider>(body) {
                    old.filter = collider.filter;
                }
            }
            5 => drop(self.world.entity_mut(body).remove::<Moved>()),
            6 => {
                self.world.entity_mut(body).remove::<BoxIndex>();
                self.placed.remove(&body);
            }
            7 => drop(self.world.entity_mut(body).insert(Name)),
            8 => drop(self.world.entity_mut(body).remove::<Name>()),
            // Removed and added again between two runs.
            9 => {
                self.world.entity_mut(body).remove::<Collider>();
                self.placed.remove(&body);
                self.world.entity_mut(body).insert((collider, place));
            }
            10 if self.random.random_bool(0.05) => {
                // Installs again: existing colliders are added, and written if they have a `Moved`.
                sap_ecs::install(&mut self.world, self.config.clone()).unwrap();
                self.placed.clear();
                self.last.clear();
                self.record_written();
            }
            _ => drop(self.world.entity_mut(body).insert(place)),
        }
    }

    /// Records the boxes that a run writes: those of entities with a `Moved`.
    fn record_written(&mut self) {
        let mut query = self.world.query::<(Entity, &Collider, &Moved, &BoxIndex)>();
        for (entity, collider, moved, index) in query.iter(&self.world) {
            if index.get().is_some() {
                let add = |corner: [f32; 3]| std::array::from_fn(|k| corner[k] + moved.0[k]);
                let Aabb { min, max } = collider.bounds;
                let placed = Aabb::new(add(min), add(max));
                self.placed.insert(entity, (placed, collider.filter));
            }
        }
    }

    /// Checks that every collider has a box of its own, unless its index was removed.
    fn check_indices(&mut self) {
        let mut query = self.world.query::<(&Collider, &BoxIndex)>();
        let indices = query.iter(&self.world).map(|(_, index)| index.get());
        let indices: Vec<Option<u32>> = indices.collect();
        let different: BTreeSet<_> = indices.iter().collect();
        assert_eq!(different.len(), indices.len(), "seed {}", self.seed);
        assert!(!different.contains(&None), "seed {}", self.seed);
    }

    fn rebuilt(&self) -> Pairs {
        let mut pairs = Pairs::new();
        for (a, (x, filter)) in &self.placed {
            for (b, (y, other)) in self.placed.range(..a) {
                if x.overlaps(y, self.config.rule) && filter.allows(other) {
                    pairs.insert(ordered([*a, *b]));
                }
            }
        }
        pairs
    }

    fn events(&self) -> (Pairs, Pairs) {
        let started = self.world.resource::<Messages<PairStarted>>();
        let ended = self.world.resource::<Messages<PairEnded>>();
        let started = started.iter_current_update_messages();
        let ended = ended.iter_current_update_messages();
        (
            started.map(|pair| ordered(pair.0)).collect(),
            ended.map(|pair| ordered(pair.0)).collect(),
        )
    }

    /// Checks the pairs: the expected ones after a successful run, else the last ones. Returns
    /// whether the run succeeded.
    fn check(&mut self, frame: usize) -> bool {
        let what = format!("seed {} frame {frame}", self.seed);
        let expected = self.rebuilt();
        let (started, ended) = self.events();
        let bad = |body: &Entity| {
            let placed = self.placed.get(body);
            placed.is_some_and(|(placed, _)| placed.check().is_err())
        };
        let broad_phase = self.world.resource::<BroadPhase>();
        let found: Pairs = broad_phase.pairs().map(ordered).collect();
        assert_eq!(found.len(), broad_phase.pairs().len(), "{what}");
        match broad_phase.error() {
            None => assert_eq!(found, expected, "{what}"),
            Some(Error::InvalidCollider { entity, .. }) => {
                assert!(bad(entity), "{what}");
                assert_eq!(self.config.on_invalid, OnInvalid::Error, "{what}");
            }
            Some(Error::BroadPhase(sap::Error::TooManyPairs { count, .. })) => {
                assert_eq!(*count, expected.len() as u64, "{what}");
            }
            Some(error) => panic!("{what}: {error}"),
        }
        // Ended pairs come first: a collider that was added again between two runs has a new box.
        assert!(ended.is_subset(&self.last), "{what}");
        let left: Pairs = self.last.difference(&ended).copied().collect();
        assert!(left.is_disjoint(&started), "{what}");
        assert_eq!(&left | &started, found, "{what}");
        let good = broad_phase.error().is_none();
        self.last = found;
        if good {
            self.query(&what);
        }
        good
    }

    fn query(&mut self, what: &str) {
        let [a, b] = [self.place().0, self.place().0];
        let pick = |f: fn(f32, f32) -> f32| std::array::from_fn(|k| f(a[k], b[k]));
        let query = Aabb::new(pick(f32::min), pick(f32::max));
        let rule = self.config.rule;
        let met = self
            .placed
            .iter()
            .filter(|(_, (b, _))| b.overlaps(&query, rule));
        let expected: BTreeSet<Entity> = met.map(|(entity, _)| *entity).collect();
        let broad_phase = self.world.resource::<BroadPhase>();
        let found = broad_phase.query_box(&query).expect("the CPU answers");
        let set: BTreeSet<Entity> = found.iter().copied().collect();
        assert_eq!((set.len(), set), (found.len(), expected), "{what}");
    }
}
