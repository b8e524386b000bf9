//! The ranks of mpirun on CUDA devices against one engine: over the host, by MPI itself, and by
//! NCCL where each rank has a device. Also ranks that fail and hang. Run by `scripts/mpi-test` with
//! the emulated driver, whose memory any MPI can read. An argument is the length of the longest
//! message.

mod common;

use common::{compare, frame, part};
use gpu::{Buffer, Device, Slice, SliceMut, Stream};
use mpi::traits::Communicator;
use sap::BroadPhase;
use sap_dist::{
    Config, DeviceDistributed, DeviceFrame, DeviceTransport, Nccl, Staged, Transport,
    TransportError,
};
use sap_mpi::{DeviceMpi, Mpi};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_secs(1);

fn main() {
    let universe = mpi::initialize().expect("MPI starts");
    let world = universe.world();
    let mpi = |limit| Mpi::new(&world, limit).expect("MPI returns errors");
    let over_mpi = |limit| DeviceMpi::new(mpi(limit)).expect("all are there");
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let count = Device::count().expect("a driver");
        let device = Device::open(world.rank() as usize % count).expect("a device");
        let stream = &Stream::new(&device).expect("a stream");
        let transport = &mut over_mpi(LIMIT);
        every_length(transport, stream);
        pairs(transport, &device);
        pairs(&mut Staged::new(mpi(LIMIT)), &device);
        let nccl = match Nccl::new(mpi(LIMIT), stream, LIMIT) {
            Ok(mut nccl) => {
                pairs(&mut nccl, &device);
                "NCCL too".to_owned()
            }
            Err(error @ (TransportError::NoNccl { .. } | TransportError::SharedDevice { .. })) => {
                error.to_string()
            }
            Err(error) => panic!("{error}"),
        };
        if transport.is_direct() {
            a_rank_fails(&mut over_mpi(LIMIT), stream);
        }
        for check in [another_length, hang] {
            check(&mut over_mpi(SHORT), stream);
            transport.barrier().expect("all are there");
        }
        if transport.rank() == 0 {
            let way = if transport.is_direct() {
                "direct"
            } else {
                "staged"
            };
            println!("ok: devices of {} ranks, {way}; {nccl}", transport.size());
        }
    }));
    if result.is_err() {
        world.abort(1);
    }
}

/// Frames that move, compared with one engine on every rank.
fn pairs(transport: &mut impl DeviceTransport, device: &Device) {
    let mut one = BroadPhase::new(sap::Config::default()).expect("an engine");
    let mut broad_phase =
        DeviceDistributed::new(Config::default(), device.info().ordinal).expect("an engine");
    let stream = broad_phase.stream().clone();
    for number in 0..3 {
        let boxes = frame(600, number);
        one.update(&boxes).expect("the boxes are valid");
        let (ids, boxes) = part(&boxes, number, transport);
        let ids = stream.from_slice(&ids).expect("memory");
        let boxes = stream.from_slice(&boxes).expect("memory");
        let frame = DeviceFrame::with_ids(ids.slice(), boxes.slice());
        broad_phase.update(transport, frame).expect("all are there");
        let found = [
            broad_phase.pairs(),
            broad_phase.started(),
            broad_phase.ended(),
        ];
        let found = found.map(|list| stream.to_vec(list).expect("a copy"));
        compare(transport, found, &one);
    }
}

/// Memory for each rank, of lengths in turn.
fn divide<'a>(buffer: &'a Buffer<u8>, lengths: &[usize]) -> Vec<Slice<'a, u8>> {
    let mut end = 0;
    let part = |&length: &usize| {
        end += length;
        buffer.range(end - length..end).expect("it is that long")
    };
    lengths.iter().map(part).collect()
}

fn divide_mut<'a>(buffer: &'a mut Buffer<u8>, lengths: &[usize]) -> Vec<SliceMut<'a, u8>> {
    let mut rest = Some(buffer.slice_mut());
    let part = |&length: &usize| {
        let (part, others) = rest.take()?.split_at(length).ok()?;
        rest = Some(others);
        Some(part)
    };
    lengths.iter().map_while(part).collect()
}

/// Messages of unequal lengths, some of them empty, to the rank itself too.
fn every_length(transport: &mut impl DeviceTransport, stream: &Stream) {
    let longest = std::env::args().nth(1);
    let longest = longest.map_or(300_001, |text| text.parse().expect("a length"));
    let (rank, ranks) = (transport.rank(), transport.size());
    let before = transport.traffic();
    let mut bytes = 0;
    for (round, unit) in [0, 1, 4096, longest / 2].into_iter().enumerate() {
        let length = |from: usize, to: usize| (from + 2 * to + round) % 3 * unit;
        let byte = |from: usize, to: usize, at: usize| (16 * from + to + 7 * at + at / 251) as u8;
        let message = |from, to| (0..length(from, to)).map(move |at| byte(from, to, at));
        let to: Vec<usize> = (0..ranks).map(|to| length(rank, to)).collect();
        let from: Vec<usize> = (0..ranks).map(|from| length(from, rank)).collect();
        let sent: Vec<u8> = (0..ranks).flat_map(|to| message(rank, to)).collect();
        let sent = stream.from_slice(&sent).expect("memory");
        let mut got = stream.alloc_zeroed(from.iter().sum()).expect("memory");
        transport
            .exchange_device(
                stream,
                &divide(&sent, &to),
                &mut divide_mut(&mut got, &from),
            )
            .expect("all are there");
        let expected: Vec<u8> = (0..ranks).flat_map(|from| message(from, rank)).collect();
        let got = stream.to_vec(got.slice()).expect("a copy");
        assert!(got == expected, "messages of round {round}");
        bytes += (to.iter().sum::<usize>() - to[rank]) as u64;
    }
    assert_eq!(transport.traffic().exchanges - before.exchanges, 4);
    assert_eq!(transport.traffic().bytes - before.bytes, bytes);
}

/// Exchanges with `to` bytes to each rank and `from` from each.
fn exchange(
    transport: &mut DeviceMpi,
    stream: &Stream,
    to: &[usize],
    from: &[usize],
) -> Result<(), TransportError> {
    let sent = stream.alloc_zeroed(to.iter().sum()).expect("memory");
    let mut got = stream.alloc_zeroed(from.iter().sum()).expect("memory");
    transport.exchange_device(stream, &divide(&sent, to), &mut divide_mut(&mut got, from))
}

/// A rank whose device fails tells the others at once.
fn a_rank_fails(transport: &mut DeviceMpi, stream: &Stream) {
    let (rank, ranks) = (transport.rank(), transport.size());
    let mut to = vec![5; ranks];
    if rank == 1 {
        to[1] = 4; // no copy to itself
    }
    let error = exchange(transport, stream, &to, &vec![5; ranks]);
    match (&error, ranks) {
        (Ok(()), 1) | (Err(TransportError::Elsewhere { rank: 1 }), _) if rank != 1 => {}
        (Err(TransportError::Device { .. }), _) if rank == 1 => {}
        _ => panic!("{error:?}"),
    }
    assert_eq!(transport.barrier(), error, "it stays broken");
}

/// A rank that sends less than it should is an error, and no wait of another has no end.
fn another_length(transport: &mut DeviceMpi, stream: &Stream) {
    let (rank, ranks) = (transport.rank(), transport.size());
    let mut to = vec![5; ranks];
    if rank == 1 {
        to.fill(4);
        to[1] = 5;
    }
    let done = exchange(transport, stream, &to, &vec![5; ranks]);
    match done {
        Ok(()) if ranks == 1 || rank == 1 && !transport.is_direct() => {}
        Err(TransportError::Timeout { .. }) if rank == 1 && transport.is_direct() => {}
        Err(error) => {
            let (expected, given) = (5, 4);
            let lengths = TransportError::Lengths {
                rank: 1,
                expected,
                given,
            };
            assert_eq!((error, rank != 1), (lengths, true));
        }
        Ok(()) => panic!("rank {rank} has seen no error"),
    }
}

/// A rank that does not come ends the exchange of the others in their time limit.
fn hang(transport: &mut DeviceMpi, stream: &Stream) {
    let ranks = transport.size();
    if transport.rank() == 0 && ranks > 1 {
        return;
    }
    let done = exchange(transport, stream, &vec![5; ranks], &vec![5; ranks]);
    if ranks > 1 {
        let missing = matches!(
            done,
            Err(TransportError::Timeout {
                rank: 0,
                limit_ms: 1000,
                ..
            })
        );
        assert!(missing, "{done:?}");
        assert_eq!(transport.barrier(), done);
    }
}
