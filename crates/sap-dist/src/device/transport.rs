//! What ranks on devices need of each other besides [`Transport`], and what its implementations
//! have in common.

use crate::transport::{Traffic, Transport, TransportError};
use gpu::{Slice, SliceMut, Stream};

/// A [`Transport`] that also moves memory between the devices of its ranks.
///
/// ```
/// use sap_dist::{DeviceTransport, Staged, Threads, Transport};
/// use std::time::Duration;
///
/// let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
/// let results = Threads::run(2, Duration::from_secs(10), |threads| {
///     let mut transport = Staged::new(threads);
///     let stream = gpu::Stream::new(&device)?;
///     // Each rank sends its number to both.
///     let rank = transport.rank() as u8;
///     let sent = stream.from_slice(&[rank])?;
///     let mut got = stream.alloc::<u8>(2)?;
///     let (first, second) = got.slice_mut().split_at(1)?;
///     let done = transport.exchange_device(&stream, &[sent.slice(); 2], &mut [first, second]);
///     done.expect("both ranks are there");
///     stream.to_vec(got.slice())
/// })?;
/// assert!(results.into_iter().all(|got| got == Ok(vec![0, 1])));
/// # Ok::<(), sap_dist::TransportError>(())
/// ```
pub trait DeviceTransport: Transport {
    /// Sends device memory to each rank, itself included, and gets some from each: `outgoing[j]`
    /// goes to rank `j`, and what rank `i` sends comes to `incoming[i]`. All ranks know the
    /// lengths: that from `i` to `j` is the same on both.
    ///
    /// The work is on `stream`, after what is queued there. Work that is queued on `stream` after
    /// the call finds that all has come.
    ///
    /// # Errors
    ///
    /// A [`TransportError`].
    fn exchange_device(
        &mut self,
        stream: &Stream,
        outgoing: &[Slice<u8>],
        incoming: &mut [SliceMut<u8>],
    ) -> Result<(), TransportError>;
}

/// Checks that there is memory for each of some ranks.
pub(super) fn check(
    ranks: usize,
    outgoing: &[Slice<u8>],
    incoming: &[SliceMut<u8>],
) -> Result<(), TransportError> {
    match [outgoing.len(), incoming.len()]
        .into_iter()
        .find(|&given| given != ranks)
    {
        Some(given) => Err(TransportError::Messages { given, ranks }),
        None => Ok(()),
    }
}

/// The transport below one of device memory. Its first error stays, also if that was in an exchange
/// between devices.
#[derive(Debug)]
pub(super) struct Below<T> {
    transport: T,
    broken: Option<TransportError>,
    /// What was sent from device to device.
    sent: Traffic,
}

impl<T: Transport> Below<T> {
    pub const fn new(transport: T) -> Self {
        Self {
            transport,
            broken: None,
            sent: Traffic {
                gathers: 0,
                gathered_bytes: 0,
                exchanges: 0,
                messages: 0,
                bytes: 0,
            },
        }
    }

    pub const fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Counts an exchange between devices.
    pub fn count(&mut self, outgoing: &[Slice<u8>]) {
        let rank = self.rank();
        self.sent.sent(rank, outgoing.iter().map(Slice::len));
    }

    /// Makes a call, unless one failed before.
    pub fn call<R>(
        &mut self,
        call: impl FnOnce(&mut T) -> Result<R, TransportError>,
    ) -> Result<R, TransportError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let done = call(&mut self.transport);
        self.broken = done.as_ref().err().cloned();
        done
    }
}

impl<T: Transport> Transport for Below<T> {
    fn rank(&self) -> usize {
        self.transport.rank()
    }

    fn size(&self) -> usize {
        self.transport.size()
    }

    fn all_gather(&mut self, words: &[u64]) -> Result<Vec<u64>, TransportError> {
        self.call(|transport| transport.all_gather(words))
    }

    fn exchange(&mut self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, TransportError> {
        self.call(|transport| transport.exchange(outgoing))
    }

    fn traffic(&self) -> Traffic {
        let mut traffic = self.transport.traffic();
        traffic.exchanges += self.sent.exchanges;
        traffic.messages += self.sent.messages;
        traffic.bytes += self.sent.bytes;
        traffic
    }
}

/// Implements [`Transport`] for a type with a field `below`.
macro_rules! delegate {
    ($type:ident) => {
        impl<T: Transport> Transport for $type<T> {
            fn rank(&self) -> usize {
                self.below.rank()
            }

            fn size(&self) -> usize {
                self.below.size()
            }

            fn all_gather(&mut self, words: &[u64]) -> Result<Vec<u64>, TransportError> {
                self.below.all_gather(words)
            }

            fn exchange(&mut self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, TransportError> {
                self.below.exchange(outgoing)
            }

            fn traffic(&self) -> Traffic {
                self.below.traffic()
            }
        }
    };
}
pub(super) use delegate;
