//! What ranks need of each other: two calls, and what follows from them.

use thiserror::Error;

/// Says why the ranks could not talk to each other. A transport that returned one returns the same
/// error from then on: the ranks no longer know what the others have received.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TransportError {
    /// A rank did not join a call in time.
    #[error("rank {rank} did not join call {call} within {limit_ms} ms")]
    Timeout {
        /// The first rank that is missing, or this rank if all came late.
        rank: usize,
        /// The number of the call, from 0.
        call: u64,
        /// The time limit in milliseconds.
        limit_ms: u64,
    },
    /// A rank returned or panicked, while others still waited for it.
    #[error("rank {rank} left before call {call}")]
    Left {
        /// The rank.
        rank: usize,
        /// The number of the call that waited for it.
        call: u64,
    },
    /// Two ranks made different calls, or gathered different numbers of words.
    #[error("ranks {rank} and {other} made different calls as call {call}")]
    Mismatch {
        /// The rank that came later.
        rank: usize,
        /// A rank that came before.
        other: usize,
        /// The number of the call.
        call: u64,
    },
    /// An exchange has not one message for each rank.
    #[error("an exchange needs {ranks} messages, one for each rank, but was given {given}")]
    Messages {
        /// The number of messages.
        given: usize,
        /// The number of ranks.
        ranks: usize,
    },
    /// The system started no thread for a rank.
    #[error("no thread for rank {rank}")]
    NoThread {
        /// The rank.
        rank: usize,
    },
    /// There is no memory for a message.
    #[error("out of host memory: cannot allocate {bytes} bytes for messages")]
    OutOfMemory {
        /// The requested size.
        bytes: u64,
    },
    /// A rank sent another number of bytes to a device than was agreed on, since it failed.
    #[error("rank {rank} sent {given} bytes of device memory and not {expected}: it failed")]
    Lengths {
        /// The rank that sent them.
        rank: usize,
        /// The number of bytes agreed on.
        expected: u64,
        /// The number of bytes sent.
        given: u64,
    },
    /// A device failed between two ranks.
    #[error("a device failed in an exchange: {detail}")]
    Device {
        /// The error of the device in words.
        detail: String,
    },
    /// An exchange failed on another rank.
    #[error("a device failed in an exchange: the error on rank {rank} says more")]
    Elsewhere {
        /// The rank.
        rank: usize,
    },
    /// A rank is in another process than rank 0, where all must be in one.
    #[error("rank {rank} is in another process than rank 0: copies of the driver do not reach it")]
    OtherProcess {
        /// The rank.
        rank: usize,
    },
    /// A library below failed.
    #[error("{call} failed with code {code}")]
    Library {
        /// The function.
        call: &'static str,
        /// The code that it returned.
        code: i32,
    },
    /// A rank found no NCCL.
    #[error("rank {rank} has no NCCL: {detail}")]
    NoNccl {
        /// The rank.
        rank: usize,
        /// Where it looked and why that failed, on the rank itself.
        detail: String,
    },
    /// The NCCL that a rank found is too old.
    #[error("rank {rank} has NCCL {}, but {} or newer is needed", dotted(*.found), dotted(*.needed))]
    OldNccl {
        /// The rank.
        rank: usize,
        /// Its version: major, minor and patch.
        found: [u32; 3],
        /// The oldest version that can be used.
        needed: [u32; 3],
    },
    /// Two ranks are on one device, which NCCL does not support.
    #[error("ranks {rank} and {other} are on one device, but NCCL needs one for each rank")]
    SharedDevice {
        /// A rank.
        rank: usize,
        /// A later rank.
        other: usize,
    },
    /// A call of NCCL failed on a rank.
    #[error("{call} failed on rank {rank} with code {code} ({})", nccl_name(*.code))]
    Nccl {
        /// The rank.
        rank: usize,
        /// The function.
        call: &'static str,
        /// The code that it returned, or that NCCL reported later.
        code: i32,
    },
    /// A call of NCCL did not end in time on a rank.
    #[error("{call} did not end on rank {rank} within {limit_ms} ms")]
    NcclTimeout {
        /// The rank.
        rank: usize,
        /// The function.
        call: &'static str,
        /// The time limit in milliseconds.
        limit_ms: u64,
    },
}

fn dotted([major, minor, patch]: [u32; 3]) -> String {
    format!("{major}.{minor}.{patch}")
}

fn nccl_name(code: i32) -> &'static str {
    match code {
        1 => "an error of CUDA",
        2 => "an error of the system",
        3 => "an internal error",
        4 => "an invalid argument",
        5 => "invalid usage",
        6 => "an error of another rank or of the network",
        _ => "unknown",
    }
}

#[cfg(cuda)]
impl From<gpu::Error> for TransportError {
    fn from(error: gpu::Error) -> Self {
        Self::Device {
            detail: error.to_string(),
        }
    }
}

/// How [`Transport::all_reduce`] joins the words of all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reduce {
    /// The sum, modulo 2^64.
    Sum,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

/// What a rank sent so far. What it sends to itself does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Traffic {
    /// Calls of [`Transport::all_gather`], directly or by another call.
    pub gathers: u64,
    /// Bytes that these brought from other ranks.
    pub gathered_bytes: u64,
    /// Calls of [`Transport::exchange`].
    pub exchanges: u64,
    /// Messages that these sent. Empty ones do not count.
    pub messages: u64,
    /// Bytes of these messages.
    pub bytes: u64,
}

impl Traffic {
    /// Counts a gather of `words` words among `size` ranks.
    pub fn gather(&mut self, words: usize, size: usize) {
        self.gathers += 1;
        self.gathered_bytes += (words * 8 * size.saturating_sub(1)) as u64;
    }

    /// Counts an exchange of these messages, sent by `rank`.
    pub fn exchange(&mut self, rank: usize, outgoing: &[Vec<u8>]) {
        self.sent(rank, outgoing.iter().map(Vec::len));
    }

    /// Counts an exchange of messages of these lengths, one for each rank, sent by `rank`.
    pub(crate) fn sent(&mut self, rank: usize, lengths: impl Iterator<Item = usize>) {
        self.exchanges += 1;
        for (_, bytes) in lengths
            .enumerate()
            .filter(|&(to, bytes)| to != rank && bytes > 0)
        {
            self.messages += 1;
            self.bytes += bytes as u64;
        }
    }
}

/// The connection of a rank to all ranks, itself included.
///
/// All ranks make the same calls in the same order. Every call has a time limit, which belongs to
/// the transport: if a rank is missing, all others get an error, and nothing waits forever.
/// After an error every call fails with the same one.
///
/// [`Threads`](crate::Threads) connects the threads of a process. The package `radsweep-mpi` has
/// the transport over MPI. For another, implement `all_gather` and `exchange`.
///
/// ```
/// use sap_dist::{Reduce, Threads, Transport};
/// use std::time::Duration;
///
/// let sums = Threads::run(3, Duration::from_secs(10), |transport| {
///     let mut words = [transport.rank() as u64];
///     transport.all_reduce(&mut words, Reduce::Sum)?;
///     // A message to the next rank.
///     let (rank, size) = (transport.rank(), transport.size());
///     let mut outgoing = vec![Vec::new(); size];
///     outgoing[(rank + 1) % size] = vec![rank as u8];
///     let incoming = transport.exchange(outgoing)?;
///     assert_eq!(incoming[(rank + size - 1) % size], [((rank + size - 1) % size) as u8]);
///     Ok::<u64, sap_dist::TransportError>(words[0])
/// })?;
/// assert!(sums.into_iter().all(|sum| sum == Ok(3)));
/// # Ok::<(), sap_dist::TransportError>(())
/// ```
pub trait Transport {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// Gathers the words of all ranks, in the order of the ranks. All ranks give the same number of
    /// words.
    ///
    /// # Errors
    ///
    /// A [`TransportError`].
    fn all_gather(&mut self, words: &[u64]) -> Result<Vec<u64>, TransportError>;

    /// Sends a message to each rank and returns those that each rank sent here. Messages may be
    /// empty.
    ///
    /// # Errors
    ///
    /// A [`TransportError`].
    fn exchange(&mut self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, TransportError>;

    /// Returns what this rank sent so far.
    fn traffic(&self) -> Traffic;

    /// Replaces each word by the sum, minimum or maximum over all ranks.
    ///
    /// # Errors
    ///
    /// A [`TransportError`].
    fn all_reduce(&mut self, words: &mut [u64], reduce: Reduce) -> Result<(), TransportError> {
        let all = self.all_gather(words)?;
        let width = words.len().max(1);
        for (i, word) in words.iter_mut().enumerate() {
            let column = all.iter().skip(i).step_by(width).copied();
            let joined = match reduce {
                Reduce::Sum => Some(column.fold(0, u64::wrapping_add)),
                Reduce::Min => column.min(),
                Reduce::Max => column.max(),
            };
            *word = joined.unwrap_or(*word);
        }
        Ok(())
    }

    /// Waits for all ranks.
    ///
    /// # Errors
    ///
    /// A [`TransportError`].
    fn barrier(&mut self) -> Result<(), TransportError> {
        self.all_gather(&[]).map(drop)
    }
}

/// The connection of a rank may be lent.
impl<T: Transport> Transport for &mut T {
    fn rank(&self) -> usize {
        (**self).rank()
    }

    fn size(&self) -> usize {
        (**self).size()
    }

    fn all_gather(&mut self, words: &[u64]) -> Result<Vec<u64>, TransportError> {
        (**self).all_gather(words)
    }

    fn exchange(&mut self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, TransportError> {
        (**self).exchange(outgoing)
    }

    fn traffic(&self) -> Traffic {
        (**self).traffic()
    }

    fn barrier(&mut self) -> Result<(), TransportError> {
        (**self).barrier()
    }
}
