//! The transport of `sap_dist` over MPI.

use mpi::ffi::{self, MPI_Comm, MPI_Request};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{AsRaw, Communicator};
use sap_dist::{Traffic, Transport, TransportError};
use std::mem::ManuallyDrop;
use std::os::raw::c_int;
use std::time::{Duration, Instant};

/// The connection of a process to all processes of a communicator.
///
/// Every call is posted and then tested until its time limit, so a rank that hangs ends the calls
/// of all others. It takes another limit to find out which rank is missing. MPI cannot take such a
/// call back: its buffers are never freed, and the transport is broken from then on.
pub struct Mpi {
    /// A duplicate, so that no message of the program is taken for one of the transport. It is
    /// freed by the end of MPI, which may only come after all ranks have reached it.
    pub(super) communicator: ManuallyDrop<SimpleCommunicator>,
    pub(super) rank: usize,
    pub(super) size: usize,
    limit: Duration,
    pub(super) calls: u64,
    broken: Option<TransportError>,
    pub(super) traffic: Traffic,
}

impl Mpi {
    /// Creates the transport of this process. All processes of the communicator call it. `limit` is
    /// the time that a call waits for the other ranks.
    ///
    /// # Errors
    ///
    /// [`TransportError::Library`] if MPI refuses to return errors as values.
    pub fn new(communicator: &impl Communicator, limit: Duration) -> Result<Self, TransportError> {
        let communicator = communicator.duplicate();
        // SAFETY: the communicator was just made, and the error handler is a constant of MPI.
        let code = unsafe {
            ffi::MPI_Comm_set_errhandler(communicator.as_raw(), ffi::RSMPI_ERRORS_RETURN)
        };
        check("MPI_Comm_set_errhandler", code)?;
        let (rank, size) = (communicator.rank(), communicator.size());
        Ok(Self {
            communicator: ManuallyDrop::new(communicator),
            rank: rank as usize,
            size: size as usize,
            limit,
            calls: 0,
            broken: None,
            traffic: Traffic::default(),
        })
    }

    /// Ends all processes of the communicator at once.
    pub fn abort(&self) -> ! {
        self.communicator.abort(1)
    }

    /// Posts a call of MPI and waits until it is complete. `post` must start a request that reads
    /// and writes nothing but memory owned by `buffers`, on the heap.
    fn complete<B>(
        &mut self,
        name: &'static str,
        buffers: B,
        post: impl FnOnce(&mut B, MPI_Comm, &mut MPI_Request) -> c_int,
    ) -> Result<B, TransportError> {
        self.call(|mpi| {
            // Not dropped unless the call is complete: MPI may write to them at any time until
            // then.
            let mut buffers = ManuallyDrop::new(buffers);
            // SAFETY: a constant of MPI.
            let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
            let code = post(&mut buffers, mpi.communicator.as_raw(), &mut request);
            check(name, code)?;
            mpi.wait(name, std::slice::from_mut(&mut request))?;
            Ok(ManuallyDrop::into_inner(buffers))
        })
    }

    /// Makes a call, unless one failed before, and keeps its error.
    pub(super) fn call<R>(
        &mut self,
        call: impl FnOnce(&mut Self) -> Result<R, TransportError>,
    ) -> Result<R, TransportError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let done = call(self);
        self.broken = done.as_ref().err().cloned();
        done
    }

    /// Tests requests one after the other, each until it is complete or the time is over.
    pub(super) fn wait(
        &self,
        name: &'static str,
        requests: &mut [MPI_Request],
    ) -> Result<(), TransportError> {
        for request in requests {
            let start = Instant::now();
            let mut done: c_int = 0;
            loop {
                // SAFETY: the request was started, and no status is asked for.
                let code = unsafe { ffi::MPI_Test(request, &mut done, ffi::RSMPI_STATUS_IGNORE) };
                check(name, code)?;
                if done != 0 {
                    break;
                }
                if start.elapsed() > self.limit {
                    return Err(TransportError::Timeout {
                        rank: self.missing(),
                        call: self.calls - 1,
                        limit_ms: self.limit.as_millis() as u64,
                    });
                }
                std::thread::yield_now(); // ranks may share a core
            }
        }
        Ok(())
    }

    /// Finds the first rank that did not come to a call: this one tells all others that it did, and
    /// waits for the same from them. Those that came run out of time at most one limit later.
    fn missing(&self) -> usize {
        const CAME: c_int = 1;
        let communicator = self.communicator.as_raw();
        let mut came = vec![false; self.size];
        came[self.rank] = true;
        for other in (0..self.size).filter(|&other| other != self.rank) {
            // SAFETY: a message without a word has no buffer. A request that was started is given
            // back, so that MPI ends it by itself.
            unsafe {
                let mut request = ffi::RSMPI_REQUEST_NULL;
                let (no_words, word) = (std::ptr::null(), ffi::RSMPI_UINT64_T);
                let to = other as c_int;
                let code = ffi::MPI_Isend(no_words, 0, word, to, CAME, communicator, &mut request);
                if check("MPI_Isend", code).is_ok() {
                    ffi::MPI_Request_free(&mut request);
                }
            }
        }
        let start = Instant::now();
        while start.elapsed() <= self.limit && came.contains(&false) {
            for (other, came) in came.iter_mut().enumerate().filter(|(_, came)| !**came) {
                let (mut found, from) = (0, other as c_int);
                // SAFETY: the flag is valid, and no status is asked for.
                let code = unsafe {
                    let ignored = ffi::RSMPI_STATUS_IGNORE;
                    ffi::MPI_Iprobe(from, CAME, communicator, &mut found, ignored)
                };
                *came = check("MPI_Iprobe", code).is_ok() && found != 0;
            }
            std::thread::yield_now();
        }
        let missing = came.iter().position(|came| !came);
        missing.unwrap_or(self.rank)
    }

    /// Tells each rank the length of the message for it, and all ranks a word. Returns the lengths
    /// of the messages to come, and the words of all ranks.
    pub(super) fn lengths(
        &mut self,
        outgoing: &[u64],
        word: u64,
    ) -> Result<(Vec<u64>, Vec<u64>), TransportError> {
        let own: Vec<u64> = outgoing.iter().flat_map(|&length| [length, word]).collect();
        let all = vec![0_u64; own.len()];
        let (_, all) =
            self.complete("MPI_Ialltoall", (own, all), |(own, all), comm, request| {
                // SAFETY: both buffers have two words for each rank.
                unsafe {
                    ffi::MPI_Ialltoall(
                        own.as_ptr().cast(),
                        2,
                        ffi::RSMPI_UINT64_T,
                        all.as_mut_ptr().cast(),
                        2,
                        ffi::RSMPI_UINT64_T,
                        comm,
                        request,
                    )
                }
            })?;
        let (rows, _) = all.as_chunks::<2>();
        Ok(rows.iter().map(|&[length, word]| (length, word)).unzip())
    }

    /// Exchanges a part of all messages. It must be so small that all together have fewer than 2^31
    /// bytes.
    fn round(&mut self, outgoing: &[&[u8]], lengths: &[usize]) -> Result<Round, TransportError> {
        let sent: Vec<usize> = outgoing.iter().map(|part| part.len()).collect();
        let mut from = buffer(sent.iter().sum())?;
        outgoing
            .iter()
            .for_each(|part| from.extend_from_slice(part));
        let mut to = buffer(lengths.iter().sum())?;
        to.resize(lengths.iter().sum(), 0);
        let round = Round {
            from,
            to,
            sent: counts(&sent),
            received: counts(lengths),
        };
        self.complete("MPI_Ialltoallv", round, |round, comm, request| {
            // SAFETY: the buffers have the sum of their counts, and the offsets are the sums of the
            // counts before. Ranks agree on the counts by `lengths`.
            unsafe {
                ffi::MPI_Ialltoallv(
                    round.from.as_ptr().cast(),
                    round.sent.0.as_ptr(),
                    round.sent.1.as_ptr(),
                    ffi::RSMPI_UINT8_T,
                    round.to.as_mut_ptr().cast(),
                    round.received.0.as_ptr(),
                    round.received.1.as_ptr(),
                    ffi::RSMPI_UINT8_T,
                    comm,
                    request,
                )
            }
        })
    }

    /// Exchanges messages of any length.
    fn messages(&mut self, mut outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, TransportError> {
        let (given, ranks) = (outgoing.len(), self.size);
        if given != ranks {
            return Err(TransportError::Messages { given, ranks });
        }
        self.calls += 1;
        self.traffic.exchange(self.rank, &outgoing);
        let own = std::mem::take(&mut outgoing[self.rank]);
        let sent: Vec<u64> = outgoing.iter().map(|part| part.len() as u64).collect();
        let longest = sent.iter().copied().max().unwrap_or(0);
        let (lengths, longest) = self.lengths(&sent, longest)?;
        let longest = longest.into_iter().max().unwrap_or(0);
        let mut incoming = vec![Vec::new(); ranks];
        for (message, &length) in incoming.iter_mut().zip(&lengths) {
            reserve(message, length as usize)?;
        }
        let part = c_int::MAX as u64 / ranks as u64;
        for start in (0..longest).step_by(part as usize) {
            let of = |length: u64| length.saturating_sub(start).min(part) as usize;
            let slice = |message: &'_ Vec<u8>| {
                let start = message.len().min(start as usize);
                start..start + of(message.len() as u64)
            };
            let parts: Vec<&[u8]> = outgoing
                .iter()
                .map(|message| &message[slice(message)])
                .collect();
            let expected: Vec<usize> = lengths.iter().map(|&length| of(length)).collect();
            let round = self.round(&parts, &expected)?;
            let mut rest = &round.to[..];
            for (message, length) in incoming.iter_mut().zip(expected) {
                let (part, others) = rest.split_at(length);
                message.extend_from_slice(part);
                rest = others;
            }
        }
        incoming[self.rank] = own;
        Ok(incoming)
    }
}

/// The buffers of a round: bytes, and the count and offset of each rank.
struct Round {
    from: Vec<u8>,
    to: Vec<u8>,
    sent: (Vec<c_int>, Vec<c_int>),
    received: (Vec<c_int>, Vec<c_int>),
}

/// Returns lengths and their offsets as MPI takes them.
fn counts(lengths: &[usize]) -> (Vec<c_int>, Vec<c_int>) {
    let offsets = lengths.iter().scan(0, |end, &length| {
        let start = *end;
        *end += length as c_int;
        Some(start)
    });
    let offsets = offsets.collect();
    (
        lengths.iter().map(|&length| length as c_int).collect(),
        offsets,
    )
}

/// Returns an empty list with memory for some bytes. It has an address on the heap even for none:
/// Open MPI takes the address 1, which an empty list has otherwise, for `MPI_IN_PLACE`.
fn buffer(length: usize) -> Result<Vec<u8>, TransportError> {
    let mut buffer = Vec::new();
    reserve(&mut buffer, length.max(1))?;
    Ok(buffer)
}

fn reserve(list: &mut Vec<u8>, more: usize) -> Result<(), TransportError> {
    let bytes = more as u64;
    let reserved = list.try_reserve_exact(more);
    reserved.map_err(|_| TransportError::OutOfMemory { bytes })
}

pub(super) fn check(call: &'static str, code: c_int) -> Result<(), TransportError> {
    if code == ffi::MPI_SUCCESS as c_int {
        Ok(())
    } else {
        Err(TransportError::Library { call, code })
    }
}

impl Transport for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_gather(&mut self, words: &[u64]) -> Result<Vec<u64>, TransportError> {
        if words.is_empty() {
            // MPI need not wait for anybody if there is nothing to send.
            self.barrier()?;
            return Ok(Vec::new());
        }
        self.calls += 1;
        self.traffic.gather(words.len(), self.size);
        let buffers = (words.to_vec(), vec![0_u64; words.len() * self.size]);
        let (_, all) = self.complete("MPI_Iallgather", buffers, |(own, all), comm, request| {
            let count = own.len() as c_int;
            // SAFETY: `own` has `count` words, and `all` as many for each rank.
            unsafe {
                ffi::MPI_Iallgather(
                    own.as_ptr().cast(),
                    count,
                    ffi::RSMPI_UINT64_T,
                    all.as_mut_ptr().cast(),
                    count,
                    ffi::RSMPI_UINT64_T,
                    comm,
                    request,
                )
            }
        })?;
        Ok(all)
    }

    fn exchange(&mut self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, TransportError> {
        self.call(|mpi| mpi.messages(outgoing))
    }

    fn traffic(&self) -> Traffic {
        self.traffic
    }

    fn barrier(&mut self) -> Result<(), TransportError> {
        self.calls += 1;
        self.traffic.gather(0, self.size);
        self.complete("MPI_Ibarrier", (), |(), comm, request| {
            // SAFETY: the communicator is valid, and the call has no buffers.
            unsafe { ffi::MPI_Ibarrier(comm, request) }
        })
    }
}
