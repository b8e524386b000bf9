//! A communicator of NCCL: the connections of a device to those of all ranks.

use super::library::{BYTES, Handle, IN_PROGRESS, Id, Library, Options, SUCCESS};
use crate::device::agree::agree;
use crate::device::transport::check as check_counts;
use crate::device::tuning::{EAGER, PAUSE};
use crate::{Transport, TransportError};
use bytemuck::{cast, cast_slice};
use gpu::{Slice, SliceMut, Stream};
use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};
use std::{mem, ptr, thread};

/// What makes a communicator, and what begins an exchange; both go on in the background.
const BEGIN: &str = "ncclCommInitRankConfig";
const EXCHANGE: &str = "ncclGroupEnd";

/// Connections that all ranks made together, each for its device. Every call ends within a limit.
#[derive(Debug)]
pub(in crate::device) struct Communicator {
    library: &'static Library,
    handle: Handle,
    rank: usize,
    device: usize,
    limit: Duration,
    /// Whether all ranks can go on.
    whole: bool,
}

// SAFETY: NCCL lets any thread use a communicator, one at a time.
unsafe impl Send for Communicator {}

impl Communicator {
    /// Connects the device of `stream` to those of all ranks, which call this together.
    pub fn new(
        transport: &mut dyn Transport,
        stream: &Stream,
        limit: Duration,
    ) -> Result<Self, TransportError> {
        let rank = transport.rank();
        let own = Library::get(rank).and_then(|library| {
            let (uuid, mut id) = (stream.device().uuid()?, Id([0; 128]));
            if rank == 0 {
                // SAFETY: the out pointer is valid.
                let code = unsafe { (library.get_unique_id)(&mut id) };
                check(rank, "ncclGetUniqueId", code)?;
            }
            let (uuid, id): ([u64; 2], [u64; 16]) = (cast(uuid), cast(id.0));
            Ok((library, [&uuid[..], &id].concat()))
        });
        let (library, row) = agree(transport, own)?;
        let rows = transport.all_gather(&row)?;
        let uuids: Vec<&[u64]> = rows.chunks_exact(row.len()).map(|row| &row[..2]).collect();
        for (other, uuid) in uuids.iter().enumerate() {
            if let Some(rank) = uuids[..other].iter().position(|before| before == uuid) {
                return Err(TransportError::SharedDevice { rank, other });
            }
        }
        let mut id = Id([0; 128]);
        id.0.copy_from_slice(cast_slice(&rows[2..row.len()]));
        let mut communicator = Self {
            library,
            handle: ptr::null_mut(),
            rank,
            device: stream.device().info().ordinal,
            limit,
            whole: false,
        };
        let begun = stream.using(&[], || communicator.begin(transport.size(), id));
        // A rank that could not begin would keep the others waiting.
        agree(transport, begun)?;
        let done = communicator.wait(BEGIN, || communicator.is_ready(BEGIN));
        agree(transport, done)?;
        communicator.whole = true;
        Ok(communicator)
    }

    /// Begins to connect with the other ranks, in the background.
    fn begin(&mut self, ranks: usize, id: Id) -> Result<(), TransportError> {
        let (ranks, rank) = (ranks as c_int, self.rank as c_int);
        let (init, options) = (self.library.init, &Options::NON_BLOCKING);
        // SAFETY: the out pointer and the options are valid, and the device is current.
        let code = unsafe { init(&mut self.handle, ranks, id, rank, options) };
        check(self.rank, BEGIN, code)
    }

    /// Exchanges ranges of device memory with all ranks, which make this call together.
    pub fn exchange(
        &mut self,
        transport: &mut dyn Transport,
        stream: &Stream,
        (outgoing, incoming): (&[Slice<u8>], &mut [SliceMut<u8>]),
    ) -> Result<(), TransportError> {
        let sent = outgoing.iter().map(Slice::memory);
        let got = incoming.iter().map(SliceMut::memory);
        let memory = sent.chain(got).collect::<gpu::Result<Vec<_>>>();
        self.whole = false;
        let queued = memory.map_err(TransportError::from).and_then(|memory| {
            stream.using(&memory, || {
                check_counts(transport.size(), outgoing, incoming)?;
                self.queue(stream, (outgoing, incoming))
            })
        });
        // Whatever this rank could not do, the others wait for what it says. Meanwhile the devices
        // are at work.
        agree(transport, queued)?;
        self.wait(EXCHANGE, || {
            Ok(self.is_ready(EXCHANGE)? && stream.is_idle()?)
        })?;
        self.whole = true;
        Ok(())
    }

    /// Queues the exchange on the stream, and waits until NCCL has done so.
    fn queue(
        &self,
        stream: &Stream,
        (outgoing, incoming): (&[Slice<u8>], &mut [SliceMut<u8>]),
    ) -> Result<(), TransportError> {
        let Library {
            group_start,
            group_end,
            send,
            recv,
            ..
        } = *self.library;
        let (of, handle) = (stream.device().info().ordinal, stream.handle());
        if of != self.device {
            return Err(gpu::Error::OtherDevice {
                what: "the communicator",
                other: self.device,
                stream: of,
            }
            .into());
        }
        // SAFETY: it has no conditions.
        check(self.rank, "ncclGroupStart", unsafe { group_start() })?;
        let mut queue = |(peer, (from, to)): (usize, (&Slice<u8>, &mut SliceMut<u8>))| {
            if peer == self.rank {
                return Ok(stream.copy(to.reborrow(), *from)?);
            }
            let (peer, sent, got) = (
                peer as c_int,
                from.ptr() as *const c_void,
                to.ptr() as *mut c_void,
            );
            if !from.is_empty() {
                // SAFETY: the communicator and the stream are live, the device is current, and the
                // memory outlives the work, as `Stream::using` promises.
                let code = unsafe { send(sent, from.len(), BYTES, peer, self.handle, handle) };
                check(self.rank, "ncclSend", code)?;
            }
            if !to.is_empty() {
                // SAFETY: as above, and nothing else uses the memory.
                let code = unsafe { recv(got, to.len(), BYTES, peer, self.handle, handle) };
                check(self.rank, "ncclRecv", code)?;
            }
            Ok(())
        };
        let mut parts = outgoing.iter().zip(incoming).enumerate();
        let queued = parts.try_for_each(&mut queue);
        // A group that failed must end too.
        // SAFETY: this thread has begun a group.
        let ended = check(self.rank, EXCHANGE, unsafe { group_end() });
        queued.and(ended)?;
        self.wait(EXCHANGE, || self.is_ready(EXCHANGE))
    }

    /// Returns whether NCCL has done what it was asked to, by `call` last.
    fn is_ready(&self, call: &'static str) -> Result<bool, TransportError> {
        let mut state = SUCCESS;
        // SAFETY: the communicator is live, and the out pointer is valid.
        let code = unsafe { (self.library.async_error)(self.handle, &mut state) };
        check(self.rank, "ncclCommGetAsyncError", code)?;
        check(self.rank, call, state)?;
        Ok(state != IN_PROGRESS)
    }

    fn wait(
        &self,
        call: &'static str,
        is_done: impl Fn() -> Result<bool, TransportError>,
    ) -> Result<(), TransportError> {
        let start = Instant::now();
        while !is_done()? {
            match start.elapsed() {
                waited if waited > self.limit => {
                    return Err(TransportError::NcclTimeout {
                        rank: self.rank,
                        call,
                        limit_ms: self.limit.as_millis() as u64,
                    });
                }
                waited if waited > EAGER => thread::sleep(PAUSE),
                _ => thread::yield_now(),
            }
        }
        Ok(())
    }

    /// Ends the connections, and what may still run.
    pub fn abort(&mut self) {
        self.whole = false;
        self.end();
    }

    fn end(&mut self) {
        let end = match self.whole {
            true => self.library.destroy,
            false => self.library.abort,
        };
        let handle = mem::replace(&mut self.handle, ptr::null_mut());
        if !handle.is_null() {
            // A drop cannot return an error.
            // SAFETY: the communicator is live, and is not used again.
            unsafe { end(handle) };
        }
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns the error of a call that neither succeeded nor goes on in the background.
fn check(rank: usize, call: &'static str, code: c_int) -> Result<(), TransportError> {
    match code {
        SUCCESS | IN_PROGRESS => Ok(()),
        code => Err(TransportError::Nccl { rank, call, code }),
    }
}
