//! Ranks that fail, or are missing: one error on all ranks, the last result, and no hang.

mod common;

use common::random::uniform_in;
use common::{LIMIT, Scene};
use sap::{Aabb, Filter, OnInvalid, OverlapRule};
use sap_dist::{
    Cause, Config, Distributed, Error, Frame, List, Pair, Reduce, Threads, Traffic, Transport,
    TransportError, sort_pairs,
};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
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

/// The calls of an update between ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Gather,
    Exchange,
}

/// What a rank does at a call.
#[derive(Debug, Clone, Copy)]
enum Stop {
    /// It does not join, and its thread ends.
    Leave,
    /// It does not join before the others have given up.
    Hang,
    /// It joins, and its thread ends before it has read what came.
    Forget,
}

/// The transport of a rank that stops at a call of the second update.
struct Stopping<'a> {
    inner: &'a mut Threads,
    calls: Vec<Call>,
    stop: Option<(usize, Stop)>,
    /// How many others have failed.
    failed: &'a AtomicUsize,
}

impl Stopping<'_> {
    /// What a rank has as an error that does not know what the others have received.
    const STOPPED: TransportError = TransportError::Library {
        call: "stop",
        code: 1,
    };

    fn make<R>(
        &mut self,
        call: Call,
        make: impl FnOnce(&mut Threads) -> Result<R, TransportError>,
    ) -> Result<R, TransportError> {
        let number = self.calls.len();
        self.calls.push(call);
        match self.stop.filter(|&(at, _)| at == number) {
            Some((_, Stop::Leave)) => Err(Self::STOPPED),
            Some((_, Stop::Forget)) => make(self.inner).and(Err(Self::STOPPED)),
            Some((_, Stop::Hang)) => {
                let start = Instant::now();
                let others = self.inner.size() - 1;
                while self.failed.load(Ordering::SeqCst) < others && start.elapsed() < LIMIT {
                    std::thread::yield_now();
                }
                make(self.inner)
            }
            None => make(self.inner),
        }
    }
}

impl Transport for Stopping<'_> {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn all_gather(&mut self, words: &[u64]) -> Result<Vec<u64>, TransportError> {
        self.make(Call::Gather, |inner| inner.all_gather(words))
    }

    fn exchange(&mut self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, TransportError> {
        self.make(Call::Exchange, |inner| inner.exchange(outgoing))
    }

    fn traffic(&self) -> Traffic {
        self.inner.traffic()
    }
}

/// What is left of a rank whose thread has ended.
struct Rest {
    broad_phase: Distributed,
    /// Its pairs after the first update.
    before: Vec<Pair>,
    /// The calls of the second update.
    calls: Vec<Call>,
    second: Result<(), Error>,
    took: Duration,
}

/// Two frames of three ranks. In the second the boxes have moved, and other ranks bring them.
fn two_frames() -> [Scene; 2] {
    let first = Scene::dealt(uniform_in(300, [6.0; 3], 9));
    let mut second = Scene::dealt(uniform_in(300, [6.0; 3], 10));
    second.origins.iter_mut().for_each(|origin| *origin += 1);
    [first, second]
}

/// Updates three ranks twice. In the second update rank 1 stops at a call. All threads end.
fn stop(scenes: &[Scene; 2], limit: Duration, stop: Option<(usize, Stop)>) -> Vec<Rest> {
    let failed = AtomicUsize::new(0);
    let firsts = Threads::run(3, LIMIT, |transport| {
        let mut broad_phase = Distributed::new(Config::default()).expect("the CPU is there");
        let first = scenes[0].part(transport.rank(), 3);
        let report = broad_phase.update(transport, first.frame());
        report.map(drop).expect("all join");
        Mutex::new(Some(broad_phase))
    });
    let firsts = firsts.expect("threads start");
    let run = |inner: &mut Threads| {
        let rank = inner.rank();
        let mut transport = Stopping {
            inner,
            calls: Vec::new(),
            stop: stop.filter(|_| rank == 1),
            failed: &failed,
        };
        let mut first = firsts[rank].lock().expect("nothing panics with it");
        let mut broad_phase = first.take().expect("once for each rank");
        let before = broad_phase.pairs().to_vec();
        let part = scenes[1].part(rank, 3);
        let started = Instant::now();
        let second = broad_phase.update(&mut transport, part.frame()).map(drop);
        let took = started.elapsed();
        if rank != 1 {
            failed.fetch_add(1, Ordering::SeqCst);
        }
        Rest {
            broad_phase,
            before,
            calls: transport.calls,
            second,
            took,
        }
    };
    Threads::run(3, limit, run).expect("threads start")
}

/// Makes the second update on new threads. Returns what each rank found, or its error.
fn update_again(rests: &mut [Rest], scene: &Scene, clear: bool) -> Vec<Result<Vec<Pair>, Error>> {
    let ranks: Vec<_> = rests.iter_mut().map(Mutex::new).collect();
    let run = |transport: &mut Threads| {
        let rank = transport.rank();
        let mut rest = ranks[rank].lock().expect("nothing panics with it");
        if clear {
            rest.broad_phase.clear();
        }
        let part = scene.part(rank, 3);
        rest.broad_phase.update(transport, part.frame())?;
        let pairs = rest.broad_phase.pairs().to_vec();
        assert!(!clear || rest.broad_phase.started() == pairs);
        Ok(pairs)
    };
    Threads::run(3, LIMIT, run).expect("threads start")
}

/// Checks that after `clear` the next update of all ranks is right.
fn all_recover(rests: &mut [Rest], scene: &Scene) {
    let parts = update_again(rests, scene, true).into_iter();
    let mut pairs = parts
        .collect::<Result<Vec<_>, _>>()
        .expect("all join")
        .concat();
    pairs.sort_unstable();
    assert_eq!(pairs, scene.expected(&Config::default()));
}

/// The calls of the second update: all of them, up to the end.
fn calls_of_the_second(scenes: &[Scene; 2]) -> Vec<Call> {
    let whole = stop(scenes, LIMIT, None);
    assert!(whole.iter().all(|rest| rest.second == Ok(())));
    let calls = &whole[0].calls;
    // Boxes, pairs, and twice the events of boxes that others bring now. Before them the frames
    // are told, and samples if the cuts are tried again.
    let told = calls.iter().take_while(|&&call| call == Call::Gather);
    let (told, rest) = calls.split_at(told.count());
    assert!((1..=2).contains(&told.len()), "{calls:?}");
    let [exchanges @ .., Call::Gather] = rest else {
        panic!("{calls:?}");
    };
    assert_eq!(exchanges, [Call::Exchange; 4]);
    calls.clone()
}

/// Stops rank 1 at each call of an update: at the frames, between the exchanges, and in the last
/// gather. The other ranks keep the last result and name rank 1.
fn stop_at_every_call(how: Stop, limit: Duration, error: impl Fn(u64) -> TransportError) {
    let waits = match how {
        Stop::Hang => limit,
        _ => Duration::ZERO,
    };
    let scenes = two_frames();
    for at in 0..calls_of_the_second(&scenes).len() {
        let mut rests = stop(&scenes, limit, Some((at, how)));
        for (rank, rest) in rests.iter().enumerate() {
            assert_eq!(
                rest.calls.len(),
                at + 1,
                "{how:?} at {at}: rank {rank} stops there"
            );
            let call = at as u64;
            if rank != 1 {
                let expected = Err(Error::Transport(error(call)));
                assert_eq!(rest.second, expected, "{how:?} at {at}: rank {rank}");
                let most = waits + Duration::from_secs(10); // on a busy machine
                assert!(rest.took < most, "{how:?} at {at}: {:?}", rest.took);
            }
            assert!(matches!(rest.second, Err(Error::Transport(_))));
            assert_eq!(rest.broad_phase.pairs(), rest.before, "{how:?} at {at}");
        }
        assert!(rests.iter().any(|rest| !rest.before.is_empty()));
        all_recover(&mut rests, &scenes[1]);
    }
}

#[test]
fn a_rank_may_leave_at_every_call_of_an_update() {
    stop_at_every_call(Stop::Leave, LIMIT, |call| TransportError::Left {
        rank: 1,
        call,
    });
}

#[test]
fn a_rank_may_hang_at_every_call_of_an_update() {
    let limit = Duration::from_secs(1);
    stop_at_every_call(Stop::Hang, limit, |call| TransportError::Timeout {
        rank: 1,
        call,
        limit_ms: 1000,
    });
}

/// Then the others have the new result already.
#[test]
fn a_rank_that_leaves_at_the_very_end_is_out_of_step() {
    let scenes = two_frames();
    let last = calls_of_the_second(&scenes).len() - 1;
    let mut rests = stop(&scenes, LIMIT, Some((last, Stop::Forget)));
    for (rank, rest) in rests.iter().enumerate() {
        let kept = rest.broad_phase.pairs() == rest.before;
        assert_eq!((kept, rest.second.is_err()), (rank == 1, rank == 1));
    }
    let cause = Cause::OutOfStep {
        updates: 1,
        expected: 2,
    };
    for again in update_again(&mut rests, &scenes[1], false) {
        let cause = cause.clone();
        assert_eq!(again, Err(Error::Rank { rank: 1, cause }));
    }
    all_recover(&mut rests, &scenes[1]);
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
