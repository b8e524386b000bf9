//! Ranks that fail, or are missing: one error on all ranks, the last result, and no hang.

mod common;

use common::random::uniform_in;
use common::{LIMIT, Scene};
use sap::{Aabb, Filter, OnInvalid, OverlapRule};
use sap_dist::{
    Cause, Config, Distributed, Error, Frame, List, Pair, Reduce, Threads, Transport,
    TransportError, sort_pairs,
};
use std::time::{Duration, Instant};

const CUBE: Aabb = Aabb::new([0.0; 3], [1.0; 3]);

/// What a rank has at the end: its failed update, and its pairs after it and after a good one.
type Outcome = (Result<(), Error>, Vec<Pair>, Result<u64, Error>);

/// Makes a good update on three ranks, one in which `bad` acts, and the good one again.
fn fail(
    config: &Config,
    bad: impl Fn(usize, &mut Threads, &mut Distributed) -> Result<(), Error> + Sync,
) -> Vec<Outcome> {
    let scene = Scene::dealt(uniform_in(300, [6.0; 3], 9));
    let run = |transport: &mut Threads| {
        let rank = transport.rank();
        let part = scene.part(rank, 3);
        let mut broad_phase = Distributed::new(config.clone()).expect("the CPU is there");
        broad_phase
            .update(transport, part.frame())
            .expect("the frame is good");
        let before = broad_phase.pairs().to_vec();
        let failed = bad(rank, transport, &mut broad_phase);
        assert_eq!(broad_phase.pairs(), before, "the last result stays");
        let again = broad_phase
            .update(transport, part.frame())
            .map(|report| report.started);
        (failed, before, again)
    };
    Threads::run(3, LIMIT, run).expect("threads start")
}

/// Checks that all ranks failed alike, and that the next update was good.
fn all_alike(outcomes: &[Outcome], expected: &Error) {
    for (failed, _, again) in outcomes {
        assert_eq!(failed.as_ref().err(), Some(expected));
        assert_eq!(again, &Ok(0), "nothing started since the last good update");
    }
    assert!(outcomes.iter().any(|(_, pairs, _)| !pairs.is_empty()));
}

/// Makes a bad update: rank 1 brings `bad`, the others a box each.
fn bad_frame(bad: Frame, expected: Cause) {
    let outcomes = fail(&Config::default(), |rank, transport, broad_phase| {
        let id = [rank as u64];
        let frame = if rank == 1 {
            bad
        } else {
            Frame::with_ids(&id, &[CUBE])
        };
        broad_phase.update(transport, frame).map(drop)
    });
    all_alike(
        &outcomes,
        &Error::Rank {
            rank: 1,
            cause: expected,
        },
    );
}

#[test]
fn bad_frames_fail_on_all_ranks_and_name_the_rank() {
    let nan = Aabb::new([0.0, f32::NAN, 0.0], [1.0; 3]);
    let inverted = Aabb::new([0.0; 3], [1.0, 1.0, -1.0]);
    let reason = |b: &Aabb| b.check().expect_err("the box is invalid");
    let invalid = |id, b: &Aabb| Cause::InvalidAabb {
        id,
        reason: reason(b),
    };
    bad_frame(Frame::with_ids(&[9, 7], &[inverted, nan]), invalid(7, &nan));
    bad_frame(
        Frame::from_id(40, &[CUBE, inverted]),
        invalid(41, &inverted),
    );
    let length = |what, given| Cause::LengthMismatch {
        what,
        expected: 1,
        given,
    };
    bad_frame(Frame::with_ids(&[1, 2], &[CUBE]), length(List::Ids, 2));
    bad_frame(Frame::with_ids(&[], &[CUBE]), length(List::Ids, 0));
    let filters = [Filter::default(); 3];
    bad_frame(
        Frame::from_id(9, &[CUBE]).filters(&filters),
        length(List::Filters, 3),
    );
    bad_frame(
        Frame::from_id(9, &[CUBE]).worlds(&[]),
        length(List::Worlds, 0),
    );
    let pair = Pair { a: 4, b: 4 };
    let excluded = [Pair { a: 1, b: 2 }, pair];
    bad_frame(
        Frame::from_id(9, &[CUBE]).excluded(&excluded),
        Cause::ExcludedOrder { index: 1, pair },
    );
    bad_frame(
        Frame::from_id(u64::MAX, &[CUBE]),
        Cause::IdRange {
            first: u64::MAX,
            boxes: 1,
        },
    );
}

#[test]
fn frames_that_do_not_fit_each_other_fail() {
    let update = |frame: fn(usize) -> Frame<'static>| {
        fail(&Config::default(), move |rank, transport, broad_phase| {
            broad_phase.update(transport, frame(rank)).map(drop)
        })
    };
    let of = |rank, cause| Error::Rank { rank, cause };
    let found = update(|rank| Frame::from_id(rank as u64, &[CUBE, CUBE]));
    all_alike(&found, &of(1, Cause::DuplicateId { id: 1 }));
    // Equal ids in lists are seen when their boxes meet; the rank that finds them is named.
    let found = update(|_| Frame::with_ids(&[5], &[CUBE]));
    let same = |outcome: &Outcome| {
        matches!(
            outcome.0,
            Err(Error::Rank {
                cause: Cause::DuplicateId { id: 5 },
                ..
            })
        )
    };
    assert!(found.iter().all(same));
    // They are also seen when a third box meets both, whose id is not the one that is named.
    const APART: [Aabb; 2] = [CUBE, Aabb::new([5.0; 3], [6.0; 3])];
    const LONG: Aabb = Aabb::new([0.0; 3], [6.0; 3]);
    let of_two_ranks = update(|rank| match rank {
        0 => Frame::with_ids(&[1], &[LONG]),
        1 => Frame::with_ids(&[5], &APART[..1]),
        _ => Frame::with_ids(&[5], &APART[1..]),
    });
    let of_one_rank = update(|rank| match rank {
        0 => Frame::with_ids(&[5, 5], &APART),
        _ => Frame::with_ids(&[6][..rank % 2], &[LONG][..rank % 2]),
    });
    assert!(of_two_ranks.iter().chain(&of_one_rank).all(same));
    let found = update(|rank| match rank {
        2 => Frame::from_id(2, &[CUBE]),
        _ => Frame::from_id(rank as u64, &[CUBE]).worlds(&[0]),
    });
    all_alike(&found, &of(2, Cause::MissingList { what: List::Worlds }));
}

#[test]
fn ranks_with_other_configurations_or_histories_fail() {
    let results = Threads::run(2, LIMIT, |transport| {
        let rules = [OverlapRule::Closed, OverlapRule::Open];
        let config = Config {
            rule: rules[transport.rank()],
            ..Config::default()
        };
        let mut broad_phase = Distributed::new(config)?;
        let configs = broad_phase
            .update(transport, Frame::from_id(0, &[]))
            .map(drop);
        let mut broad_phase = Distributed::new(Config::default())?;
        broad_phase.update(transport, Frame::from_id(0, &[]))?;
        if transport.rank() == 1 {
            broad_phase.clear();
        }
        let steps = broad_phase
            .update(transport, Frame::from_id(0, &[]))
            .map(drop);
        broad_phase.clear();
        broad_phase.update(transport, Frame::from_id(0, &[]))?;
        Ok::<_, Error>((configs, steps))
    });
    for result in results.expect("threads start") {
        let (configs, steps) = result.expect("the other updates succeed");
        assert_eq!(
            configs,
            Err(Error::Rank {
                rank: 1,
                cause: Cause::Config
            })
        );
        let cause = Cause::OutOfStep {
            updates: 0,
            expected: 1,
        };
        assert_eq!(steps, Err(Error::Rank { rank: 1, cause }));
    }
}

#[test]
fn too_many_pairs_on_one_rank_fail_on_all() {
    let config = Config {
        pair_memory: Some(80_000),
        on_invalid: OnInvalid::Skip,
        ..Config::default()
    };
    let outcomes = fail(&config, |rank, transport, broad_phase| {
        let boxes = vec![CUBE; 600];
        broad_phase
            .update(transport, Frame::from_id(600 * rank as u64, &boxes))
            .map(drop)
    });
    let count = 1800 * 1799 / 2;
    let first = outcomes[0].0.clone().expect_err("the pairs do not fit");
    let fits = |error: &Error| matches!(error, Error::Rank { cause: Cause::TooManyPairs { count: found, .. }, .. } if *found == count);
    assert!(fits(&first), "{first}");
    all_alike(&outcomes, &first);
}

#[test]
fn a_rank_that_leaves_ends_the_calls_of_all() {
    for step in 0..4 {
        let started = Instant::now();
        // Rank 1 makes some calls of the update by hand and returns.
        let outcomes = fail(&Config::default(), move |rank, transport, broad_phase| {
            if rank != 1 {
                return broad_phase
                    .update(transport, Frame::from_id(rank as u64, &[CUBE]))
                    .map(drop);
            }
            // The others wait in the header, or find another call there.
            match step {
                0 => transport.barrier()?,
                1 => transport.exchange(vec![Vec::new(); 3]).map(drop)?,
                2 => transport.all_reduce(&mut [1, 2], Reduce::Max)?,
                _ => sort_pairs(transport, vec![1_u32], vec![2_u32]).map(drop)?,
            }
            Ok(())
        });
        for (failed, _, again) in outcomes {
            assert!(
                matches!(
                    failed,
                    Err(Error::Transport(TransportError::Mismatch { call: _, .. }))
                ),
                "{failed:?}"
            );
            assert!(
                matches!(again, Err(Error::Transport(_))),
                "the transport stays broken"
            );
        }
        assert!(started.elapsed() < LIMIT / 2);
    }
}

#[test]
fn a_panic_of_a_rank_ends_the_calls_of_all() {
    let mut transports = Threads::new(3, LIMIT);
    let lost = transports.pop().expect("three ranks");
    let run = |mut transport: Threads| {
        move || {
            let frame = Frame::from_id(transport.rank() as u64, &[CUBE]);
            let mut broad_phase = Distributed::new(Config::default())?;
            broad_phase.update(&mut transport, frame)?;
            broad_phase.update(&mut transport, frame).map(drop)
        }
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = transports
            .into_iter()
            .map(|transport| scope.spawn(run(transport)))
            .collect();
        let panics = scope.spawn(move || {
            let mut transport = lost;
            let mut broad_phase = Distributed::new(Config::default()).expect("the CPU is there");
            broad_phase
                .update(&mut transport, Frame::from_id(2, &[CUBE]))
                .expect("all join");
            panic!("as the test wants");
        });
        assert!(panics.join().is_err());
        for other in others {
            let error = other
                .join()
                .expect("only one rank panics")
                .expect_err("a rank is lost");
            assert!(
                matches!(
                    error,
                    Error::Transport(TransportError::Left { rank: 2, .. })
                ),
                "{error}"
            );
        }
    });
}

#[test]
fn a_rank_that_hangs_ends_in_a_time_limit() {
    let limit = Duration::from_millis(100);
    let results = Threads::run(3, limit, |transport| {
        let mut broad_phase = Distributed::new(Config::default())?;
        let frame = Frame::from_id(transport.rank() as u64, &[CUBE]);
        broad_phase.update(transport, frame)?;
        if transport.rank() == 1 {
            std::thread::sleep(4 * limit);
        }
        let late = broad_phase.update(transport, frame).map(drop);
        Ok::<_, Error>((late, transport.barrier(), broad_phase.report().pairs))
    });
    for result in results.expect("threads start") {
        let (late, after, pairs) = result.expect("the first update succeeds");
        let Err(Error::Transport(error)) = late else {
            panic!("{late:?}");
        };
        assert!(
            matches!(
                error,
                TransportError::Timeout {
                    rank: 1,
                    limit_ms: 100,
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(after, Err(error));
        assert_eq!(pairs, 3);
    }
}

#[test]
fn words_are_reduced() {
    let results = Threads::run(2, LIMIT, |transport| {
        transport.barrier()?;
        let mut words = [transport.rank() as u64, 5];
        transport.all_reduce(&mut words, Reduce::Max)?;
        assert_eq!(words, [1, 5]);
        transport.all_reduce(&mut words, Reduce::Sum)?;
        assert_eq!(words, [2, 10]);
        Ok::<_, TransportError>(())
    });
    assert_eq!(results.expect("threads start"), [Ok(()), Ok(())]);
}

/// The others would take the next call of that rank for this one.
#[test]
fn a_wrong_number_of_messages_ends_the_calls_of_all() {
    let error = || TransportError::Messages { given: 1, ranks: 2 };
    let results = Threads::run(2, LIMIT, |transport| {
        let messages = if transport.rank() == 0 { 1 } else { 2 };
        let exchanged = transport.exchange(vec![Vec::new(); messages]);
        assert_eq!(exchanged, Err(error()));
        let again = transport.exchange(vec![Vec::new(); 2]);
        assert_eq!(again, Err(error()));
        transport.barrier()
    });
    assert_eq!(
        results.expect("threads start"),
        [Err(error()), Err(error())]
    );
}
