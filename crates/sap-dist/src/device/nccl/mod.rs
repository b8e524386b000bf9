//! The transport between devices by NCCL.

mod communicator;
mod library;

use communicator::Communicator;
pub use library::set_nccl_library;

use super::transport::{Below, DeviceTransport, delegate};
use crate::transport::{Traffic, Transport, TransportError};
use gpu::{Slice, SliceMut, Stream};
use std::time::Duration;

/// Moves device memory from device to device by NCCL, the library of NVIDIA that uses the fastest
/// way there is between two devices. All else goes over another transport.
///
/// Each rank needs a device of its own, and `libnccl.so.2` of version 2.23 or newer, which is
/// opened when it is first needed: from the paths of the dynamic linker, or from the one that
/// [`set_nccl_library`] names. The environment variables of NCCL, such as `NCCL_DEBUG=WARN`, work
/// as always. No exchange uses NVLink multicast, but NCCL prepares it, unless `NCCL_NVLS_ENABLE=0`
/// is set.
///
/// The error of a rank ends a call on all, and the connections with it. A rank that is missing is
/// an error after the time limit.
///
/// ```
/// use sap_dist::{DeviceTransport, Nccl, Threads, Transport, TransportError};
/// use std::time::Duration;
///
/// let Ok(2..) = gpu::Device::count() else { return Ok(()) }; // needs two GPUs
/// let limit = Duration::from_secs(60);
/// let results = Threads::run(2, limit, |threads| {
///     let device = gpu::Device::open(threads.rank())?;
///     let stream = gpu::Stream::new(&device)?;
///     let mut transport = match Nccl::new(threads, &stream, limit) {
///         Err(TransportError::NoNccl { .. }) => return Ok(vec![0, 1]), // no library here
///         made => made?,
///     };
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
pub struct Nccl<T: Transport> {
    below: Below<T>,
    communicator: Communicator,
}

impl<T: Transport> Nccl<T> {
    /// Connects the device of `stream` to those of all ranks, which call this together. That takes
    /// time, and memory of each device.
    ///
    /// `limit` is the time that this call waits for the other ranks, and then each exchange. The
    /// transport below has its own, which should not be shorter.
    ///
    /// # Errors
    ///
    /// The same on all ranks: [`TransportError::NoNccl`], [`TransportError::OldNccl`],
    /// [`TransportError::SharedDevice`], [`TransportError::Nccl`], [`TransportError::NcclTimeout`],
    /// or an error of the transport below; [`TransportError::Device`] if the device fails, and
    /// [`TransportError::Elsewhere`] on the others.
    pub fn new(transport: T, stream: &Stream, limit: Duration) -> Result<Self, TransportError> {
        let mut transport = transport;
        let communicator = Communicator::new(&mut transport, stream, limit)?;
        Ok(Self {
            below: Below::new(transport),
            communicator,
        })
    }
}

impl<T: Transport> Drop for Nccl<T> {
    fn drop(&mut self) {
        if self.below.is_broken() {
            // The other ranks may be gone.
            self.communicator.abort();
        }
    }
}

delegate!(Nccl);

impl<T: Transport> DeviceTransport for Nccl<T> {
    fn exchange_device(
        &mut self,
        stream: &Stream,
        outgoing: &[Slice<u8>],
        incoming: &mut [SliceMut<u8>],
    ) -> Result<(), TransportError> {
        self.below.count(outgoing);
        let Self {
            below,
            communicator,
        } = self;
        let both = (outgoing, incoming);
        let done = below.call(|transport| communicator.exchange(transport, stream, both));
        if done.is_err() {
            communicator.abort();
        }
        done
    }
}
