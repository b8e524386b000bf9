//! The ranks of mpirun against one engine: pairs, events, sorts, and a rank that hangs. Run by
//! `scripts/mpi-test`.

mod common;

use common::random::Random;
use common::{compare, frame, part};
use sap::{Aabb, BroadPhase, OverlapRule};
use sap_dist::{
    Cause, Config, Distributed, Error, Frame, Reduce, Transport, TransportError, sort_pairs,
};
use sap_mpi::Mpi;
use std::time::Duration;

fn main() {
    let universe = mpi::initialize().expect("MPI starts");
    let world = universe.world();
    let transport = &mut Mpi::new(&world, Duration::from_secs(60)).expect("MPI returns errors");
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        calls(transport);
        pairs(transport);
        invalid(transport);
        sort(transport);
        transport.barrier().expect("all are there");
        refused(&mut Mpi::new(&world, Duration::from_secs(60)).expect("MPI returns errors"));
        hang(&mut Mpi::new(&world, Duration::from_millis(300)).expect("MPI returns errors"));
        transport.barrier().expect("all are there");
    }));
    if result.is_err() {
        transport.abort();
    }
    if transport.rank() == 0 {
        println!("ok: {} ranks", transport.size());
    }
}

fn calls(transport: &mut Mpi) {
    let (rank, size) = (transport.rank() as u64, transport.size() as u64);
    let mut words = [rank, 1];
    transport
        .all_reduce(&mut words, Reduce::Sum)
        .expect("all are there");
    assert_eq!(words, [size * (size - 1) / 2, size]);
    // Messages of different lengths, some empty.
    let message =
        |from: u64, to: u64| vec![from as u8; ((from * 7 + to * 3) % 5 * 100_000) as usize];
    let incoming = transport.exchange((0..size).map(|to| message(rank, to)).collect());
    let expected: Vec<Vec<u8>> = (0..size).map(|from| message(from, rank)).collect();
    assert!(incoming.expect("all are there") == expected);
    // Most ranks get nothing, and rank 0 sends nothing.
    let mut outgoing = vec![Vec::new(); size as usize];
    outgoing[0] = vec![7; rank as usize];
    let incoming = transport.exchange(outgoing).expect("all are there");
    let expected = |from: u64| vec![7_u8; if rank == 0 { from as usize } else { 0 }];
    assert!(incoming == (0..size).map(expected).collect::<Vec<_>>());
}

/// Frames that move, compared with one engine on every rank.
fn pairs(transport: &mut Mpi) {
    let size = transport.size();
    for rule in [OverlapRule::Closed, OverlapRule::Open] {
        let mut one = BroadPhase::new(sap::Config {
            rule,
            ..sap::Config::default()
        })
        .expect("an engine");
        let mut broad_phase = Distributed::new(Config {
            rule,
            ..Config::default()
        })
        .expect("an engine");
        let mut cuts = 0;
        for number in 0..6 {
            let boxes = frame(5000, number);
            one.update(&boxes).expect("the boxes are valid");
            let (ids, boxes) = part(&boxes, number, transport);
            let report = broad_phase
                .update(transport, Frame::with_ids(&ids, &boxes))
                .expect("all are there");
            cuts += usize::from(report.new_cuts);
            let found = [
                broad_phase.pairs(),
                broad_phase.started(),
                broad_phase.ended(),
            ];
            compare(transport, found.map(<[_]>::to_vec), &one);
        }
        assert!(size == 1 || cuts > 1, "{cuts} new cuts");
    }
}

/// A bad box of the last rank is an error on all, and all go on.
fn invalid(transport: &mut Mpi) {
    let (rank, last) = (transport.rank(), transport.size() - 1);
    let x = if rank == last { f32::NAN } else { 0.0 };
    let boxes = [Aabb::new([x; 3], [1.0; 3])];
    let mut broad_phase = Distributed::new(Config::default()).expect("an engine");
    let error = broad_phase
        .update(transport, Frame::from_id(rank as u64, &boxes))
        .expect_err("a bad box");
    let Error::Rank {
        rank: of,
        cause: Cause::InvalidAabb { id, .. },
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!((of, id), (last, last as u64));
    broad_phase
        .update(transport, Frame::from_id(0, &[]))
        .expect("all go on");
}

fn sort(transport: &mut Mpi) {
    let mut random = Random::new(transport.rank() as u64);
    let n = 10_000 * (1 + transport.rank());
    let keys: Vec<u32> = (0..n).map(|_| random.below(5000) as u32).collect();
    let values: Vec<u64> = (0..n as u64)
        .map(|i| (transport.rank() as u64) << 32 | i)
        .collect();
    let (keys, values) = sort_pairs(transport, keys, values).expect("all are there");
    let all: usize = (1..=transport.size()).map(|rank| 10_000 * rank).sum();
    assert!(keys.len() <= (2 * all).div_ceil(transport.size()));
    let pairs: Vec<(u32, u64)> = keys.into_iter().zip(values).collect();
    assert!(pairs.is_sorted(), "equal keys keep their order");
    let end = |pair: Option<&(u32, u64)>| pair.map_or(0, |&(key, _)| u64::from(key));
    let ends = transport.all_gather(&[end(pairs.first()), end(pairs.last()), pairs.len() as u64]);
    let ends = ends.expect("all are there");
    assert_eq!(ends.iter().skip(2).step_by(3).sum::<u64>(), all as u64);
    assert!(
        ends.chunks(3)
            .collect::<Vec<_>>()
            .windows(2)
            .all(|two| two[0][1] <= two[1][0])
    );
}

/// Not even the next call is made after a wrong number of messages.
fn refused(transport: &mut Mpi) {
    let ranks = transport.size();
    let given = ranks + 1;
    let expected = TransportError::Messages { given, ranks };
    let refused = transport.exchange(vec![Vec::new(); given]);
    assert_eq!(refused, Err(expected.clone()));
    assert_eq!(transport.barrier(), Err(expected));
}

/// A rank that does not come ends the calls of the others in their time limit.
fn hang(transport: &mut Mpi) {
    if transport.rank() == 0 && transport.size() > 1 {
        return;
    }
    let mut broad_phase = Distributed::new(Config::default()).expect("an engine");
    let update = broad_phase
        .update(transport, Frame::from_id(0, &[]))
        .map(drop);
    if transport.size() > 1 {
        let Err(Error::Transport(error)) = update else {
            panic!("{update:?}");
        };
        assert!(
            matches!(
                error,
                TransportError::Timeout {
                    rank: 0,
                    limit_ms: 300,
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(transport.barrier(), Err(error));
    }
}
