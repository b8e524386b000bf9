//! Ranks on devices that fail: one error on all ranks, and the last result.

use super::{Check, Moment, OnDevice, device_of, divide, divide_mut, lists};
use crate::common::random::uniform_in;
use crate::common::{LIMIT, Scene};
use libtest_mimic::Failed;
use sap::Aabb;
use sap_dist::{
    Cause, Config, DeviceDistributed, DeviceFrame, DeviceTransport, Distributed, Error, Frame,
    List, Pair, Staged, Threads, Transport, TransportError,
};

pub const ALL: &[(&str, Check)] = &[
    ("faults::bad_frames", bad_frames),
    ("faults::bad_ids", bad_ids),
    ("faults::equal_ids", equal_ids),
    ("faults::too_many_pairs", too_many_pairs),
    ("faults::a_rank_on_the_cpu", a_rank_on_the_cpu),
    ("faults::other_lengths", other_lengths),
    ("faults::other_numbers_of_ranks", other_numbers_of_ranks),
];

const CUBE: Aabb = Aabb::new([0.0; 3], [1.0; 3]);

/// The error of a bad update, and how many pairs started in the good one after it.
type Outcome = (Option<Error>, u64);

/// Makes a good update on three ranks, a bad one in which `bad` acts, and the good one again.
fn fail(
    config: &Config,
    bad: impl Fn(usize, &mut Staged<&mut Threads>, &mut DeviceDistributed) -> Result<(), Error> + Sync,
) -> Result<Vec<Outcome>, Failed> {
    let moment = Moment::new(Scene::dealt(uniform_in(300, [6.0; 3], 9)));
    let run = |threads: &mut Threads| -> Result<Outcome, Failed> {
        let rank = threads.rank();
        let mut transport = Staged::new(threads);
        let mut broad_phase = DeviceDistributed::new(config.clone(), device_of(rank))?;
        let own = OnDevice::new(&broad_phase.stream().clone(), &moment, rank, 3)?;
        broad_phase.update(&mut transport, own.frame())?;
        let before = lists(&broad_phase)?;
        let failed = bad(rank, &mut transport, &mut broad_phase);
        assert_eq!(lists(&broad_phase)?, before, "the last result stays");
        let again = broad_phase.update(&mut transport, own.frame())?;
        Ok((failed.err(), again.started + again.ended))
    };
    Threads::run(3, LIMIT, run)?.into_iter().collect()
}

fn all_alike(outcomes: &[Outcome], expected: &Error) {
    for (failed, events) in outcomes {
        assert_eq!(failed.as_ref(), Some(expected));
        assert_eq!(*events, 0, "nothing changed since the last good update");
    }
}

fn bad_frames() -> Result<(), Failed> {
    let inverted = Aabb::new([0.0; 3], [1.0, 1.0, -1.0]);
    let reason = inverted.check().expect_err("the box is invalid");
    let length = |what| Cause::LengthMismatch {
        what,
        expected: 2,
        given: 1,
    };
    let cases = [
        Cause::InvalidAabb { id: 41, reason },
        length(List::Filters),
        length(List::Worlds),
        Cause::IdRange {
            first: u64::MAX,
            boxes: 2,
        },
        Cause::MissingList { what: List::Worlds },
        Cause::DuplicateId { id: 20 },
    ];
    for cause in cases {
        let outcomes = fail(&Config::default(), |rank, transport, broad_phase| {
            let stream = broad_phase.stream().clone();
            let upload = |boxes: &[Aabb]| stream.from_slice(boxes).expect("there is memory");
            let is_invalid = rank == 1 && matches!(cause, Cause::InvalidAabb { .. });
            let boxes = upload(&[CUBE, if is_invalid { inverted } else { CUBE }]);
            let filters = stream.from_slice(&[sap::Filter::default()]);
            let filters = filters.expect("there is memory");
            let worlds = stream.from_slice(&[0_u32, 0]).expect("there is memory");
            let mut frame = DeviceFrame::from_id(40 * rank as u64, boxes.slice());
            match &cause {
                Cause::LengthMismatch { what, .. } if rank == 1 => match what {
                    List::Filters => frame = frame.filters(filters.slice()),
                    _ => frame = frame.worlds(worlds.range(..1).expect("it has two")),
                },
                Cause::IdRange { .. } if rank == 1 => {
                    frame = DeviceFrame::from_id(u64::MAX, boxes.slice());
                }
                Cause::MissingList { .. } if rank != 1 => frame = frame.worlds(worlds.slice()),
                Cause::DuplicateId { .. } if rank < 2 => {
                    frame = DeviceFrame::from_id(19 + rank as u64, boxes.slice());
                }
                _ => {}
            }
            broad_phase.update(transport, frame).map(drop)
        })?;
        let cause = cause.clone();
        all_alike(&outcomes, &Error::Rank { rank: 1, cause });
    }
    Ok(())
}

/// The lists of rank 1 are wrong.
fn bad_ids() -> Result<(), Failed> {
    let many: Vec<u64> = (0..2000)
        .map(|id| if id == 1500 { 9 } else { id + 5000 })
        .collect();
    let length = Cause::LengthMismatch {
        what: List::Ids,
        expected: 2,
        given: 3,
    };
    let pair = Pair { a: 7, b: 7 };
    let cases = [
        (vec![8, 8], vec![], Cause::IdOrder { index: 1, id: 8 }),
        (
            vec![u64::MAX, 0],
            vec![],
            Cause::IdOrder { index: 1, id: 0 },
        ),
        (many, vec![], Cause::IdOrder { index: 1500, id: 9 }),
        (vec![7, 8, 9], vec![], length),
        (
            vec![7, 8],
            vec![pair],
            Cause::ExcludedOrder { index: 0, pair },
        ),
    ];
    for (ids, excluded, cause) in cases {
        let count = ids.len().max(2) - usize::from(ids.len() == 3);
        let outcomes = fail(&Config::default(), |rank, transport, broad_phase| {
            let stream = broad_phase.stream().clone();
            let boxes = stream.from_slice(&vec![CUBE; if rank == 1 { count } else { 2 }]);
            let (boxes, ids) = (
                boxes.expect("memory"),
                stream.from_slice(&ids).expect("memory"),
            );
            let frame = match rank {
                1 => DeviceFrame::with_ids(ids.slice(), boxes.slice()).excluded(&excluded),
                _ => DeviceFrame::from_id(10_000 + 2 * rank as u64, boxes.slice()),
            };
            broad_phase.update(transport, frame).map(drop)
        })?;
        all_alike(&outcomes, &Error::Rank { rank: 1, cause });
    }
    Ok(())
}

/// Two ranks bring boxes with the id 20, which overlap each other or both the box of a smaller id.
fn equal_ids() -> Result<(), Failed> {
    let at = |x: f32, side: f32| Aabb::new([x, 0.0, 0.0], [x + side, 1.0, 1.0]);
    let (left, right, both) = (at(0.0, 1.0), at(8.0, 1.0), at(0.0, 9.0));
    // The ids and boxes of each rank.
    type Brought = (&'static [u64], Vec<Aabb>);
    let cases: [[Brought; 3]; 4] = [
        [(&[20], vec![CUBE]), (&[20], vec![CUBE]), (&[], vec![])],
        [
            (&[20], vec![left]),
            (&[20], vec![right]),
            (&[3], vec![both]),
        ],
        [
            (&[3, 20], vec![both, left]),
            (&[20], vec![right]),
            (&[], vec![]),
        ],
        [
            (&[20], vec![left]),
            (&[], vec![]),
            (&[3, 20], vec![both, right]),
        ],
    ];
    for case in &cases {
        let outcomes = fail(&Config::default(), |rank, transport, broad_phase| {
            let (ids, boxes) = &case[rank];
            let stream = broad_phase.stream().clone();
            let ids = stream.from_slice(ids).expect("memory");
            let boxes = stream.from_slice(boxes).expect("memory");
            let frame = DeviceFrame::with_ids(ids.slice(), boxes.slice());
            broad_phase.update(transport, frame).map(drop)
        })?;
        let first = outcomes[0].0.clone().ok_or("two boxes have one id")?;
        assert!(
            matches!(
                &first,
                Error::Rank {
                    cause: Cause::DuplicateId { id: 20 },
                    ..
                }
            ),
            "{first}"
        );
        all_alike(&outcomes, &first);
    }
    Ok(())
}

fn too_many_pairs() -> Result<(), Failed> {
    let config = Config {
        pair_memory: Some(80_000),
        ..Config::default()
    };
    let outcomes = fail(&config, |rank, transport, broad_phase| {
        let boxes = broad_phase.stream().from_slice(&vec![CUBE; 200]);
        let boxes = boxes.expect("there is memory");
        let frame = DeviceFrame::from_id(200 * rank as u64, boxes.slice());
        broad_phase.update(transport, frame).map(drop)
    })?;
    let count = 600 * 599 / 2;
    let first = outcomes[0].0.clone().ok_or("the pairs do not fit")?;
    assert!(
        matches!(&first, Error::Rank { cause: Cause::TooManyPairs { count: found, .. }, .. } if *found == count),
        "{first}"
    );
    all_alike(&outcomes, &first);
    Ok(())
}

fn a_rank_on_the_cpu() -> Result<(), Failed> {
    let results = Threads::run(2, LIMIT, |threads| -> Result<Error, Failed> {
        let failed = if threads.rank() == 0 {
            let mut broad_phase = DeviceDistributed::new(Config::default(), 0)?;
            let boxes = broad_phase.stream().clone().from_slice(&[CUBE])?;
            let frame = DeviceFrame::from_id(0, boxes.slice());
            broad_phase
                .update(&mut Staged::new(threads), frame)
                .map(drop)
        } else {
            let mut broad_phase = Distributed::new(Config::default())?;
            let frame = Frame::from_id(1, &[CUBE]);
            broad_phase.update(threads, frame).map(drop)
        };
        Ok(failed.err().ok_or("the ranks do not fit each other")?)
    })?;
    for result in results {
        let cause = Cause::Config;
        assert_eq!(result?, Error::Rank { rank: 1, cause });
    }
    Ok(())
}

/// A rank sends less than was agreed on.
fn other_lengths() -> Result<(), Failed> {
    let results = Threads::run(2, LIMIT, |threads| -> Result<_, Failed> {
        let rank = threads.rank();
        let mut transport = Staged::new(threads);
        let stream = gpu::Stream::new(&gpu::Device::open(device_of(rank))?)?;
        let sent = stream.from_slice(&[7_u8; 8])?;
        let mut got = stream.alloc_zeroed::<u8>(8)?;
        let lengths = if rank == 0 { [4, 4] } else { [3, 4] };
        let outgoing = divide(sent.slice(), &lengths)?;
        let mut incoming = divide_mut(got.slice_mut(), &[4, 4])?;
        let done = transport.exchange_device(&stream, &outgoing, &mut incoming);
        let expected = TransportError::Lengths {
            rank: 1,
            expected: 4,
            given: 3,
        };
        if rank == 0 {
            assert_eq!(done, Err(expected.clone()));
            assert_eq!(transport.barrier(), Err(expected), "it stays broken");
        } else {
            done?;
            assert_eq!(stream.to_vec(got.slice())?, [7; 8]);
        }
        Ok(())
    })?;
    results.into_iter().collect()
}

/// A broad phase goes on with another number of ranks.
fn other_numbers_of_ranks() -> Result<(), Failed> {
    let update = |ranks: usize, mut all: Vec<DeviceDistributed>| -> Result<_, Failed> {
        all.truncate(ranks);
        while all.len() < ranks {
            all.push(DeviceDistributed::new(Config::default(), 0)?);
        }
        // New ones made no updates yet.
        if ranks == 3 {
            all.iter_mut().for_each(DeviceDistributed::clear);
        }
        let transports = Threads::new(ranks, LIMIT);
        let moment = Moment::new(Scene::dealt(uniform_in(300, [6.0; 3], 9)));
        let run = |(mut one, threads): (DeviceDistributed, Threads)| -> Result<_, Failed> {
            let rank = threads.rank();
            let own = OnDevice::new(&one.stream().clone(), &moment, rank, ranks)?;
            one.update(&mut Staged::new(threads), own.frame())?;
            let pairs: Vec<Pair> = one.stream().to_vec(one.pairs())?;
            Ok((one, pairs))
        };
        let found: Result<Vec<_>, Failed> = std::thread::scope(|scope| {
            let start = |both| scope.spawn(|| run(both));
            let threads: Vec<_> = all.into_iter().zip(transports).map(start).collect();
            let join =
                |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().expect("it ends");
            threads.into_iter().map(join).collect()
        });
        let (all, pairs): (Vec<_>, Vec<_>) = found?.into_iter().unzip();
        assert_eq!(pairs.concat(), moment.scene.expected(&Config::default()));
        Ok(all)
    };
    let four = update(4, Vec::new())?;
    let two = update(2, four)?;
    update(3, two).map(drop)
}
