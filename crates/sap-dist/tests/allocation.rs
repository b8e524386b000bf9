//! Refused allocations: in an update of two ranks each allocation of 64 KiB or more is refused,
//! once alone and once with all later ones. Both ranks return the same error and keep the last
//! result, or the update does without. A refused allocation without an error value would end the
//! process.

mod common;
#[path = "../../sap/tests/common/refusing.rs"]
#[allow(dead_code)]
mod refusing;

use common::random::Random;
use common::{LIMIT, Scene};
use refusing::{Refuse, Refusing, refuse, stop};
use sap::{Aabb, Strategy};
use sap_dist::{Cause, Config, Distributed, Error, Pair, Threads, Transport};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// Boxes that all reach both cells, and empty ones, which stay where they are. They are so few that
/// the sort of the engine, which allocates without an error value, takes less than 64 KiB.
fn scene(seed: u64) -> Scene {
    let mut random = Random::new(seed);
    let one = |i: usize| {
        let [x, y, z] = [10.0, 60.0, 60.0].map(|side| random.between(0.0, side));
        match i % 8 {
            0 | 1 => Aabb::new([x, y, z], [x + 10.0, y + 1.0, z + 1.0]),
            _ => Aabb::EMPTY,
        }
    };
    let mut scene = Scene::dealt((0..40_000).map(one).collect());
    scene.ids.iter_mut().for_each(|id| *id *= 3);
    scene
}

/// What a rank has after an update.
type After = (Result<(), Error>, [Vec<Pair>; 3]);

/// Makes an update by the first scene, and one by the second in which the large allocation of that
/// number is refused, if any. Returns what each rank has after both, and whether one was refused.
fn update(parts: &[[Scene; 2]; 2], refused: Option<(u64, Refuse)>) -> (Vec<[After; 2]>, bool) {
    let any = AtomicBool::new(false);
    let ranks = Threads::run(2, LIMIT, |transport| {
        let rank = transport.rank();
        let config = Config {
            strategy: Strategy::Subdivided,
            // With one thread the pairs are sorted by `std`, which allocates.
            threads: NonZero::new(2),
            ..Config::default()
        };
        let mut one = Distributed::new(config).expect("an engine");
        let lists =
            |one: &Distributed| [one.pairs(), one.started(), one.ended()].map(<[Pair]>::to_vec);
        let first = one.update(transport, parts[0][rank].frame()).map(drop);
        let first = (first, lists(&one));
        transport.barrier().expect("all are there");
        if let Some((number, which)) = refused.filter(|_| rank == 0) {
            refuse(number, which);
        }
        transport.barrier().expect("all are there");
        let second = one.update(transport, parts[1][rank].frame()).map(drop);
        transport.barrier().expect("all are there");
        if rank == 0 {
            any.store(stop().any, Relaxed);
        }
        transport.barrier().expect("all are there");
        [first, (second, lists(&one))]
    });
    (ranks.expect("threads start"), any.into_inner())
}

#[test]
fn every_refused_allocation_is_an_error_on_all_ranks() {
    let parts = [scene(1), scene(2)].map(|scene| [0, 1].map(|rank| scene.part(rank, 2)));
    let (good, _) = update(&parts, None);
    for [first, second] in &good {
        assert!(first.0.is_ok() && second.0.is_ok() && first.1 != second.1);
        assert!(
            second.1.iter().all(|list| list.len() > 4096),
            "lists are long"
        );
    }
    let mut failed = 0;
    for number in 1.. {
        let mut done = true;
        for which in [Refuse::One, Refuse::AllLater] {
            let (found, refused) = update(&parts, Some((number, which)));
            done &= !refused;
            let error = found[0][1].0.clone().err();
            for ([before, after], good) in found.iter().zip(&good) {
                assert_eq!(after.0.clone().err(), error);
                let expected = if error.is_some() { before } else { &good[1] };
                assert!(after.1 == expected.1, "attempt {number}");
            }
            let is_memory = |error| {
                matches!(
                    error,
                    Error::Rank {
                        cause: Cause::OutOfMemory { .. },
                        ..
                    }
                )
            };
            assert!(error.clone().is_none_or(is_memory), "{error:?}");
            failed += u64::from(error.is_some());
        }
        if done {
            break;
        }
    }
    assert!(failed > 20);
}
