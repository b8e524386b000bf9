//! The transport between devices of one process: by copies of the driver.

use super::agree::agree;
use super::transport::{Below, DeviceTransport, check, delegate};
use crate::transport::{Traffic, Transport, TransportError};
use gpu::{Device, DevicePtr, Event, Memory, Slice, SliceMut, Stream};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// Moves device memory from device to device by copies of the driver: directly where two devices
/// are connected, else over the host. All ranks must be threads of one process; several may share a
/// device. All else goes over another transport.
///
/// An exchange is queued on the streams of all ranks. A rank waits there for the other ranks, by
/// the time limit of the transport below, and not for a device. Memory of
/// [`gpu::Slice::from_raw`] must stay until all ranks have returned.
///
/// ```
/// use sap_dist::{DeviceTransport, Peers, Threads, Transport, TransportError};
/// use std::time::Duration;
///
/// let Ok(count @ 1..) = gpu::Device::count() else { return Ok(()) }; // no GPU here
/// let results = Threads::run(2, Duration::from_secs(60), |threads| {
///     let device = gpu::Device::open(threads.rank() % count)?;
///     let stream = gpu::Stream::new(&device)?;
///     let mut transport = Peers::new(threads, &device)?;
///     // Each rank sends its number to both.
///     let rank = transport.rank() as u8;
///     let sent = stream.from_slice(&[rank])?;
///     let mut got = stream.alloc::<u8>(2)?;
///     let (first, second) = got.slice_mut().split_at(1)?;
///     transport.exchange_device(&stream, &[sent.slice(); 2], &mut [first, second])?;
///     Ok::<_, TransportError>(stream.to_vec(got.slice())?)
/// })?;
/// assert!(results.into_iter().all(|got| got == Ok(vec![0, 1])));
/// # Ok::<(), TransportError>(())
/// ```
#[derive(Debug)]
pub struct Peers<T: Transport> {
    below: Below<T>,
    board: Arc<Board>,
    turn: usize,
}

impl<T: Transport> Peers<T> {
    /// Lets the devices of all ranks reach `device`, that of this rank. All ranks call this
    /// together.
    ///
    /// # Errors
    ///
    /// The same on all ranks: [`TransportError::OtherProcess`], or an error of the transport below.
    /// [`TransportError::Device`] if the device fails, [`TransportError::Elsewhere`] on the others.
    pub fn new(transport: T, device: &Device) -> Result<Self, TransportError> {
        let mut transport = transport;
        let made = (transport.rank() == 0).then(Board::register);
        let id = made.as_ref().map_or(0, |(id, _)| *id);
        let rows = transport.all_gather(&[process(), id, device.info().ordinal as u64])?;
        let (rows, _) = rows.as_chunks::<3>();
        if let Some(rank) = rows.iter().position(|row| row[0] != rows[0][0]) {
            return Err(TransportError::OtherProcess { rank });
        }
        let ordinals = rows.iter().map(|row| row[2] as usize);
        let reached = reach(device, ordinals).map_err(TransportError::from);
        // Rank 0 has the board until all have agreed.
        let board = Board::registered(rows[0][1]).ok_or_else(|| TransportError::Device {
            detail: "rank 0 has left".to_owned(),
        });
        let board = agree(&mut transport, reached.and(board))?;
        Ok(Self::on(transport, board))
    }

    /// A transport of ranks that share a board, and whose devices reach each other.
    pub(super) const fn on(transport: T, board: Arc<Board>) -> Self {
        Self {
            below: Below::new(transport),
            board,
            turn: 0,
        }
    }
}

/// Lets the devices of these numbers reach a device, where the driver allows it. Where it does not,
/// it copies over the host.
pub(super) fn reach(device: &Device, others: impl Iterator<Item = usize>) -> gpu::Result<()> {
    for other in others {
        match device.let_reach(&Device::open(other)?) {
            Ok(_) | Err(gpu::Error::Call { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A number of this process that no other has.
fn process() -> u64 {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    *PROCESS.get_or_init(|| RandomState::new().hash_one(std::process::id()))
}

/// Where the ranks of an exchange find what the others send, and when that has been copied.
///
/// Exchanges take turns with two lists. A rank may begin the next exchange while others still read
/// the list of this one, but the one after only when all have joined the next.
#[derive(Debug, Default)]
pub(super) struct Board(Mutex<[Vec<Slot>; 2]>);

/// What a rank has written on the board.
#[derive(Debug, Default, Clone)]
struct Slot {
    offer: Option<Arc<Offer>>,
    /// After its copies of what the others sent.
    copied: Option<Arc<Event>>,
}

/// What a rank sends to each.
#[derive(Debug)]
struct Offer {
    parts: Vec<(DevicePtr<u8>, usize)>,
    device: Device,
    /// After the work that writes the parts.
    ready: Event,
    /// The parts, which are not freed while a rank may copy them.
    _memory: Vec<Memory>,
}

impl Offer {
    fn new(stream: &Stream, outgoing: &[Slice<u8>]) -> gpu::Result<Self> {
        let parts = outgoing.iter();
        let memory: Vec<_> = parts
            .clone()
            .map(Slice::memory)
            .collect::<gpu::Result<_>>()?;
        // What comes from another stream is used by this one from here on.
        stream.using(&memory, || Ok::<(), gpu::Error>(()))?;
        Ok(Self {
            parts: parts.map(|part| (part.device_ptr(), part.len())).collect(),
            device: stream.device().clone(),
            ready: stream.record()?,
            _memory: memory,
        })
    }
}

type Registry = Mutex<Vec<(u64, Weak<Board>)>>;
static BOARDS: Registry = Mutex::new(Vec::new());

/// Locks what a thread that panicked has left whole.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Board {
    /// Makes a board that other threads find by its number.
    fn register() -> (u64, Arc<Self>) {
        let board = Arc::new(Self::default());
        let mut boards = lock(&BOARDS);
        boards.retain(|(_, board)| board.strong_count() > 0);
        let id = boards.last().map_or(0, |(id, _)| id + 1);
        boards.push((id, Arc::downgrade(&board)));
        (id, board)
    }

    fn registered(id: u64) -> Option<Arc<Self>> {
        let boards = lock(&BOARDS);
        let mut found = boards.iter().filter(|(number, _)| *number == id);
        found.next().and_then(|(_, board)| board.upgrade())
    }

    /// Drops what exchanges that failed have left.
    pub(super) fn clear(&self) {
        *lock(&self.0) = Default::default();
    }

    /// Changes the slot of a rank.
    fn set(&self, (turn, rank): (usize, usize), f: impl FnOnce(&mut Slot)) {
        let slots = &mut lock(&self.0)[turn];
        if slots.len() <= rank {
            slots.resize(rank + 1, Slot::default());
        }
        f(&mut slots[rank]);
    }

    fn slots(&self, turn: usize) -> Vec<Slot> {
        lock(&self.0)[turn].clone()
    }

    fn exchange(
        &self,
        (transport, turn): (&mut dyn Transport, usize),
        stream: &Stream,
        (outgoing, incoming): (&[Slice<u8>], &mut [SliceMut<u8>]),
    ) -> Result<(), TransportError> {
        let rank = transport.rank();
        let own = (turn, rank);
        let offered = check(transport.size(), outgoing, incoming).and_then(|()| {
            let offer = Some(Arc::new(Offer::new(stream, outgoing)?));
            self.set(own, |slot| slot.offer = offer);
            Ok(())
        });
        agree(transport, offered)?;
        let offers = self.slots(turn);
        let copied = copy(stream, (rank, outgoing), &offers, incoming).map(|event| {
            let copied = Some(Arc::new(event));
            self.set(own, |slot| slot.copied = copied);
        });
        let agreed = agree(transport, copied).and_then(|()| {
            // The work that follows may overwrite and free what this rank sent.
            let slots = self.slots(turn);
            let sent = slots.iter().zip(outgoing).enumerate();
            let mut others = sent.filter(|(to, (_, part))| *to != rank && !part.is_empty());
            let waits = others.try_for_each(|(_, (slot, _))| match &slot.copied {
                Some(copied) => stream.wait(copied),
                None => Ok(()),
            });
            waits?;
            self.set(own, |slot| slot.offer = None);
            Ok(())
        });
        if agreed.is_err() {
            // The ranks that sent may not wait for these copies, whose memory `offers` keeps until
            // they are done. The error of the exchange says more than that of this wait.
            let _: gpu::Result<()> = stream.synchronize();
        }
        agreed
    }
}

/// Queues the copies of what all ranks send to this one. Returns an event after them.
fn copy(
    stream: &Stream,
    (rank, outgoing): (usize, &[Slice<u8>]),
    offers: &[Slot],
    incoming: &mut [SliceMut<u8>],
) -> Result<Event, TransportError> {
    let ranks = incoming.len();
    // Ranks begin with different ones, so that no device sends to all at once.
    for from in (0..ranks).map(|k| (rank + k) % ranks) {
        let to = incoming[from].reborrow();
        if from == rank {
            stream.copy(to, outgoing[rank])?;
            continue;
        }
        let offer = offers.get(from).and_then(|slot| slot.offer.as_ref());
        let (given, expected) = (offer.map_or(0, |o| o.parts[rank].1), to.len());
        if given != expected {
            return Err(TransportError::Lengths {
                rank: from,
                expected: expected as u64,
                given: given as u64,
            });
        }
        if let Some(offer) = offer.filter(|_| given > 0) {
            stream.wait(&offer.ready)?;
            // SAFETY: the part has this length, and is written before `ready`. Its rank has its
            // stream wait for the event that this function returns, and then overwrites and frees
            // it. If the exchange fails, the offer keeps the memory, and what came is dropped.
            unsafe { stream.copy_from_device(to, offer.parts[rank].0, &offer.device)? };
        }
    }
    Ok(stream.record()?)
}

delegate!(Peers);

impl<T: Transport> DeviceTransport for Peers<T> {
    fn exchange_device(
        &mut self,
        stream: &Stream,
        outgoing: &[Slice<u8>],
        incoming: &mut [SliceMut<u8>],
    ) -> Result<(), TransportError> {
        self.below.count(outgoing);
        self.turn = 1 - self.turn;
        let Self { below, board, turn } = self;
        let both = (outgoing, incoming);
        below.call(|transport| board.exchange((transport, *turn), stream, both))
    }
}
