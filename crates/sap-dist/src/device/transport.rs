//! What ranks on devices need of each other besides [`Transport`], and how to do it over the host.

use crate::transport::{Traffic, Transport, TransportError};
use gpu::{Pinned, Slice, SliceMut, Stream};

/// What a rank sends to each rank: ranges of device memory side by side, in the order of the ranks.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// All ranges.
    pub bytes: Slice<'a, u8>,
    /// The bytes for each rank.
    pub lengths: &'a [usize],
}

/// Where a rank puts what it gets from each rank: ranges side by side, in the order of the ranks.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// All ranges.
    pub bytes: SliceMut<'a, u8>,
    /// The bytes from each rank.
    pub lengths: &'a [usize],
}

/// A [`Transport`] that also moves memory between the devices of its ranks.
///
/// ```
/// use sap_dist::{DeviceTransport, Incoming, Outgoing, Staged, Threads, Transport};
/// use std::time::Duration;
///
/// let Ok(device) = gpu::Device::first() else { return Ok(()) }; // no GPU here
/// let results = Threads::run(2, Duration::from_secs(10), |threads| {
///     let mut transport = Staged::new(threads);
///     let stream = gpu::Stream::new(&device)?;
///     // Each rank sends its number to both.
///     let rank = transport.rank() as u8;
///     let sent = stream.from_slice(&[rank; 2])?;
///     let mut got = stream.alloc::<u8>(2)?;
///     let outgoing = Outgoing { bytes: sent.slice(), lengths: &[1, 1] };
///     let incoming = Incoming { bytes: got.slice_mut(), lengths: &[1, 1] };
///     transport.exchange_device(&stream, outgoing, incoming).expect("both ranks are there");
///     stream.to_vec(got.slice())
/// })?;
/// assert!(results.into_iter().all(|got| got == Ok(vec![0, 1])));
/// # Ok::<(), sap_dist::TransportError>(())
/// ```
pub trait DeviceTransport: Transport {
    /// Sends a range of device memory to each rank, itself included, and gets one from each. All
    /// ranks know the lengths: that from `i` to `j` is the same on both.
    ///
    /// The work is on `stream`, after what is queued there. When the call returns, all has come.
    ///
    /// # Errors
    ///
    /// A [`TransportError`].
    fn exchange_device(
        &mut self,
        stream: &Stream,
        outgoing: Outgoing,
        incoming: Incoming,
    ) -> Result<(), TransportError>;
}

/// The bytes that are copied between the device and messages at once.
const STAGING: usize = 16 << 20;

/// Moves device memory over any transport between hosts: through pinned memory, in which a message
/// is copied to and from its device piece by piece.
#[derive(Debug)]
pub struct Staged<T> {
    transport: T,
    staging: Option<Pinned<u8>>,
    broken: Option<TransportError>,
}

impl<T: Transport> Staged<T> {
    /// A transport over `transport`. It allocates its pinned memory, 16 MiB, when it is used first.
    pub const fn new(transport: T) -> Self {
        Self::with(transport, None)
    }

    /// A transport that uses the pinned memory of one that was used before.
    pub(super) const fn with(transport: T, staging: Option<Pinned<u8>>) -> Self {
        Self {
            transport,
            staging,
            broken: None,
        }
    }

    /// Returns the pinned memory, for the next transport.
    pub(super) fn into_staging(self) -> Option<Pinned<u8>> {
        self.staging
    }

    fn staging(&mut self, stream: &Stream) -> gpu::Result<&mut Pinned<u8>> {
        let staging = match self.staging.take() {
            Some(staging) => staging,
            None => Pinned::new(stream.device(), STAGING)?,
        };
        Ok(self.staging.insert(staging))
    }

    fn download(&mut self, stream: &Stream, from: Slice<u8>) -> gpu::Result<Vec<u8>> {
        let mut message = Vec::new();
        let requested = from.len() as u64;
        message
            .try_reserve_exact(from.len())
            .map_err(|_| gpu::Error::OutOfHostMemory { requested })?;
        while message.len() < from.len() {
            let end = from.len().min(message.len() + STAGING);
            let part = from.range(message.len()..end)?;
            let staged = &mut self.staging(stream)?[..part.len()];
            stream.download(part, staged)?;
            message.extend_from_slice(staged);
        }
        Ok(message)
    }

    fn upload(&mut self, stream: &Stream, mut to: SliceMut<u8>, from: &[u8]) -> gpu::Result<()> {
        for piece in from.chunks(STAGING) {
            let (part, rest) = to.split_at(piece.len())?;
            let staged = &mut self.staging(stream)?[..piece.len()];
            staged.copy_from_slice(piece);
            stream.upload(part, staged)?;
            to = rest;
        }
        Ok(())
    }

    fn exchange_staged(
        &mut self,
        stream: &Stream,
        outgoing: Outgoing,
        incoming: Incoming,
    ) -> Result<(), TransportError> {
        let rank = self.transport.rank();
        let mut sent = vec![Vec::new(); outgoing.lengths.len()];
        let (mut rest, mut own) = (outgoing.bytes, None);
        let mut state = Ok(());
        for (to, &length) in outgoing.lengths.iter().enumerate() {
            let part = rest.range(..length).map_err(device)?;
            rest = rest.range(length..).map_err(device)?;
            if to == rank {
                own = Some(part);
            } else if state.is_ok() {
                // A rank that fails sends nothing, which tells the others.
                match self.download(stream, part) {
                    Ok(message) => sent[to] = message,
                    Err(error) => state = Err(device(error)),
                }
            }
        }
        if state.is_err() {
            sent.iter_mut().for_each(Vec::clear);
        }
        let messages = self.transport.exchange(sent)?;
        state?;
        let mut rest = incoming.bytes;
        for (from, (message, &length)) in messages.iter().zip(incoming.lengths).enumerate() {
            let (part, others) = rest.split_at(length).map_err(device)?;
            rest = others;
            match own.filter(|_| from == rank) {
                Some(own) => stream.copy(part, own).map_err(device)?,
                None if message.len() == length => {
                    self.upload(stream, part, message).map_err(device)?;
                }
                None => {
                    return Err(TransportError::Lengths {
                        rank: from,
                        expected: length as u64,
                        given: message.len() as u64,
                    });
                }
            }
        }
        Ok(())
    }
}

/// Returns the error of a device that failed in an exchange.
pub(crate) fn device(error: gpu::Error) -> TransportError {
    TransportError::Device {
        detail: error.to_string(),
    }
}

impl<T: Transport> Transport for Staged<T> {
    fn rank(&self) -> usize {
        self.transport.rank()
    }

    fn size(&self) -> usize {
        self.transport.size()
    }

    fn all_gather(&mut self, words: &[u64]) -> Result<Vec<u64>, TransportError> {
        match &self.broken {
            Some(error) => Err(error.clone()),
            None => self.transport.all_gather(words),
        }
    }

    fn exchange(&mut self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, TransportError> {
        match &self.broken {
            Some(error) => Err(error.clone()),
            None => self.transport.exchange(outgoing),
        }
    }

    fn traffic(&self) -> Traffic {
        self.transport.traffic()
    }
}

impl<T: Transport> DeviceTransport for Staged<T> {
    fn exchange_device(
        &mut self,
        stream: &Stream,
        outgoing: Outgoing,
        incoming: Incoming,
    ) -> Result<(), TransportError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let done = self.exchange_staged(stream, outgoing, incoming);
        self.broken = done.clone().err();
        done
    }
}
