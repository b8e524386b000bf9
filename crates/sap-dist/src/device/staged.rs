//! The transport between devices over the host.

use super::transport::{Below, DeviceTransport, check, delegate};
use super::tuning::STAGING;
use crate::transport::{Traffic, Transport, TransportError};
use gpu::{Pinned, Slice, SliceMut, Stream};

/// Moves device memory over any transport between hosts: through pinned memory, in which a message
/// is copied to and from its device piece by piece.
#[derive(Debug)]
pub struct Staged<T> {
    below: Below<T>,
    staging: Staging,
}

impl<T: Transport> Staged<T> {
    /// A transport over `transport`. It allocates its pinned memory, 16 MiB, when it is used first.
    pub const fn new(transport: T) -> Self {
        Self {
            below: Below::new(transport),
            staging: Staging(None),
        }
    }
}

/// Pinned memory, allocated when it is used first.
#[derive(Debug)]
struct Staging(Option<Pinned<u8>>);

impl Staging {
    fn pinned(&mut self, stream: &Stream) -> gpu::Result<&mut Pinned<u8>> {
        let staging = match self.0.take() {
            Some(staging) => staging,
            None => Pinned::new(stream.device(), STAGING)?,
        };
        Ok(self.0.insert(staging))
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
            let staged = &mut self.pinned(stream)?[..part.len()];
            stream.download(part, staged)?;
            message.extend_from_slice(staged);
        }
        Ok(message)
    }

    fn upload(&mut self, stream: &Stream, mut to: SliceMut<u8>, from: &[u8]) -> gpu::Result<()> {
        for piece in from.chunks(STAGING) {
            let (part, rest) = to.split_at(piece.len())?;
            let staged = &mut self.pinned(stream)?[..piece.len()];
            staged.copy_from_slice(piece);
            stream.upload(part, staged)?;
            to = rest;
        }
        Ok(())
    }

    fn exchange(
        &mut self,
        transport: &mut dyn Transport,
        stream: &Stream,
        (outgoing, incoming): (&[Slice<u8>], &mut [SliceMut<u8>]),
    ) -> Result<(), TransportError> {
        let rank = transport.rank();
        let mut sent = vec![Vec::new(); outgoing.len()];
        let mut state = Ok(());
        for (to, part) in outgoing.iter().enumerate() {
            if to != rank && state.is_ok() {
                // A rank that fails sends nothing, which tells the others.
                state = self
                    .download(stream, *part)
                    .map(|message| sent[to] = message);
            }
        }
        if state.is_err() {
            sent.iter_mut().for_each(Vec::clear);
        }
        let messages = transport.exchange(sent)?;
        state?;
        for (from, (message, part)) in messages.iter().zip(incoming).enumerate() {
            if from == rank {
                stream.copy(part.reborrow(), outgoing[from])?;
            } else if message.len() == part.len() {
                self.upload(stream, part.reborrow(), message)?;
            } else {
                return Err(TransportError::Lengths {
                    rank: from,
                    expected: part.len() as u64,
                    given: message.len() as u64,
                });
            }
        }
        Ok(())
    }
}

delegate!(Staged);

impl<T: Transport> DeviceTransport for Staged<T> {
    fn exchange_device(
        &mut self,
        stream: &Stream,
        outgoing: &[Slice<u8>],
        incoming: &mut [SliceMut<u8>],
    ) -> Result<(), TransportError> {
        let Self { below, staging } = self;
        below.call(|transport| {
            check(transport.size(), outgoing, incoming)?;
            staging.exchange(transport, stream, (outgoing, incoming))
        })
    }
}
