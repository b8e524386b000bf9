//! Memory between the devices of processes, directly by an MPI that is CUDA-aware.

use crate::transport::{Mpi, check};
use gpu::{Slice, SliceMut, Stream};
use mpi::ffi::{self, MPI_Request};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{AsRaw, Communicator, FromRaw};
use sap_dist::{DeviceTransport, Reduce, Staged, Traffic, Transport, TransportError};
use std::ffi::{CStr, c_int, c_void};
use std::mem::ManuallyDrop;

/// The max bytes of a message between devices: MPI counts by 32 bits. In debug builds messages are
/// cut often, so that tests have some of several pieces.
const PIECE: usize = if cfg!(debug_assertions) {
    1 << 16
} else {
    1 << 30
};
/// The tag of these messages. `Mpi::missing` has another.
const TAG: c_int = 2;

/// Moves device memory over MPI: from device to device if MPI is CUDA-aware on all ranks, else over
/// the host by [`Staged`]. The results are the same.
///
/// A CUDA-aware MPI takes addresses of devices. It says so by `MPIX_Query_cuda_support`, an
/// extension of Open MPI that some others have too. For an MPI that cannot tell, set
/// `RADSWEEP_MPI_CUDA` in the environment: `1` is yes, `0` is no, and MPI is not asked. If `1` is
/// wrong, processes crash.
///
/// A direct exchange goes through a window: memory of this transport, with up to a quarter more
/// bytes than the largest exchange sent and received. The window is of `cuMemAlloc`. Other memory
/// of [`gpu`] is of pools, which many versions of MPI cannot share between processes.
///
/// A direct exchange waits on the host for the stream of the rank, since MPI knows no streams, and
/// then for the other ranks. Each message, or each GiB of a longer one, may take the time limit of
/// [`Mpi`]. A device that hangs has no limit.
///
/// MPI may use the window of an exchange that failed until the process ends, so it is never freed.
/// Such a process should end by [`DeviceMpi::abort`].
///
/// ```no_run
/// use sap::Aabb;
/// use sap_dist::{Config, DeviceDistributed, DeviceFrame, Transport};
/// use sap_mpi::{DeviceMpi, Mpi};
/// use std::time::Duration;
///
/// let universe = mpi::initialize().ok_or("MPI does not start")?;
/// let mpi = Mpi::new(&universe.world(), Duration::from_secs(60))?;
/// let mut transport = DeviceMpi::new(mpi)?;
/// let device = transport.rank() % gpu::Device::count()?; // with all ranks on one machine
/// let mut broad_phase = DeviceDistributed::new(Config::default(), device)?;
/// let boxes = [Aabb::new([0.0; 3], [1.0; 3])];
/// let boxes = broad_phase.stream().clone().from_slice(&boxes)?;
/// let frame = DeviceFrame::from_id(transport.rank() as u64, boxes.slice());
/// println!("{}", broad_phase.update(&mut transport, frame)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DeviceMpi {
    way: Way,
    /// That of `way`, which lives as long.
    communicator: ManuallyDrop<SimpleCommunicator>,
}

enum Way {
    Direct(Mpi, Option<Window>),
    Staged(Staged<Mpi>),
}

impl DeviceMpi {
    /// Asks all ranks whether MPI is CUDA-aware there. All ranks call this together.
    ///
    /// # Errors
    ///
    /// A [`TransportError`] of `mpi`.
    pub fn new(mut mpi: Mpi) -> Result<Self, TransportError> {
        let mut aware = [u64::from(is_cuda_aware())];
        mpi.all_reduce(&mut aware, Reduce::Min)?;
        // SAFETY: the communicator stays until the end of MPI, and is not freed here.
        let communicator = unsafe { SimpleCommunicator::from_raw(mpi.communicator.as_raw()) };
        Ok(Self {
            communicator: ManuallyDrop::new(communicator),
            way: match aware {
                [0] => Way::Staged(Staged::new(mpi)),
                _ => Way::Direct(mpi, None),
            },
        })
    }

    /// Returns whether MPI itself moves the memory of devices. It is the same on all ranks.
    #[must_use]
    pub const fn is_direct(&self) -> bool {
        matches!(self.way, Way::Direct(..))
    }

    /// Ends all processes of the communicator at once.
    pub fn abort(&self) -> ! {
        self.communicator.abort(1)
    }

    fn below(&self) -> &dyn Transport {
        match &self.way {
            Way::Direct(mpi, _) => mpi,
            Way::Staged(staged) => staged,
        }
    }

    fn below_mut(&mut self) -> &mut dyn Transport {
        match &mut self.way {
            Way::Direct(mpi, _) => mpi,
            Way::Staged(staged) => staged,
        }
    }
}

impl Transport for DeviceMpi {
    fn rank(&self) -> usize {
        self.below().rank()
    }

    fn size(&self) -> usize {
        self.below().size()
    }

    fn all_gather(&mut self, words: &[u64]) -> Result<Vec<u64>, TransportError> {
        self.below_mut().all_gather(words)
    }

    fn exchange(&mut self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, TransportError> {
        self.below_mut().exchange(outgoing)
    }

    fn traffic(&self) -> Traffic {
        self.below().traffic()
    }
}

impl DeviceTransport for DeviceMpi {
    fn exchange_device(
        &mut self,
        stream: &Stream,
        outgoing: &[Slice<u8>],
        incoming: &mut [SliceMut<u8>],
    ) -> Result<(), TransportError> {
        match &mut self.way {
            Way::Direct(mpi, window) => {
                mpi.call(|mpi| mpi.exchange_direct(window, stream, (outgoing, incoming)))
            }
            Way::Staged(staged) => staged.exchange_device(stream, outgoing, incoming),
        }
    }
}

impl Mpi {
    /// Gives the memory of a device to MPI itself, through the window that is kept.
    fn exchange_direct(
        &mut self,
        kept: &mut Option<Window>,
        stream: &Stream,
        (outgoing, incoming): (&[Slice<u8>], &mut [SliceMut<u8>]),
    ) -> Result<(), TransportError> {
        let (rank, ranks) = (self.rank, self.size);
        for given in [outgoing.len(), incoming.len()] {
            if given != ranks {
                return Err(TransportError::Messages { given, ranks });
            }
        }
        self.calls += 1;
        self.count(outgoing);
        let mut bytes = 0;
        let sent = parts(rank, outgoing.iter().map(Slice::len), &mut bytes);
        let got = parts(rank, incoming.iter().map(SliceMut::len), &mut bytes);
        let mut fill = || {
            stream.is_idle()?; // not while it is captured
            let mut window = Window::of(kept.take(), stream, bytes)?;
            for part in &sent {
                stream.copy(window.part_mut(part), outgoing[part.other])?;
            }
            stream.copy(incoming[rank].reborrow(), outgoing[rank])?;
            stream.synchronize()?;
            Ok(window)
        };
        let filled: Result<Window, TransportError> = fill();
        // A rank that fails must not keep the others waiting.
        let lengths: Vec<u64> = outgoing.iter().map(|part| part.len() as u64).collect();
        let (lengths, failed) = self.lengths(&lengths, u64::from(filled.is_err()))?;
        let window = filled?;
        if let Some(rank) = failed.iter().position(|&failed| failed != 0) {
            return Err(TransportError::Elsewhere { rank });
        }
        for (rank, (part, given)) in incoming.iter().zip(lengths).enumerate() {
            let expected = part.len() as u64;
            if given != expected {
                return Err(TransportError::Lengths {
                    rank,
                    expected,
                    given,
                });
            }
        }
        let window = stream.using(&[], || self.pass(window, &sent, &got))?;
        for part in &got {
            stream.copy(incoming[part.other].reborrow(), window.part(part))?;
        }
        *kept = Some(window);
        Ok(())
    }

    /// Sends parts of a window to the other ranks, and receives some from them. Its device is
    /// current.
    fn pass(&self, window: Window, sent: &[Part], got: &[Part]) -> Result<Window, TransportError> {
        // Not dropped unless all is done: MPI may use the memory until then.
        let window = ManuallyDrop::new(window);
        let communicator = self.communicator.as_raw();
        // SAFETY: a constant of MPI.
        let byte = unsafe { ffi::RSMPI_UINT8_T };
        let (mut receives, mut sends) = (Vec::new(), Vec::new());
        for part in got {
            for (at, count) in window.pieces(part) {
                let (at, from) = (at as *mut c_void, part.other as c_int);
                receives.push(begin("MPI_Irecv", |request| {
                    // SAFETY: MPI is CUDA-aware, and the device is current. Nothing else uses the
                    // piece, which stays until the request is complete.
                    unsafe { ffi::MPI_Irecv(at, count, byte, from, TAG, communicator, request) }
                })?);
            }
        }
        for part in sent {
            for (at, count) in window.pieces(part) {
                let (at, to) = (at as *const c_void, part.other as c_int);
                sends.push(begin("MPI_Isend", |request| {
                    // SAFETY: as above, and the piece is written.
                    unsafe { ffi::MPI_Isend(at, count, byte, to, TAG, communicator, request) }
                })?);
            }
        }
        self.wait("MPI_Irecv", &mut receives)?;
        self.wait("MPI_Isend", &mut sends)?;
        Ok(ManuallyDrop::into_inner(window))
    }

    /// Counts an exchange between devices.
    fn count(&mut self, outgoing: &[Slice<u8>]) {
        self.traffic.exchanges += 1;
        let parts = outgoing.iter().enumerate();
        for (_, part) in parts.filter(|(to, part)| *to != self.rank && !part.is_empty()) {
            self.traffic.messages += 1;
            self.traffic.bytes += part.len() as u64;
        }
    }
}

/// A part of a window, for a message to or from another rank.
struct Part {
    other: usize,
    start: usize,
    length: usize,
}

/// Places messages of these lengths in a window, those of other ranks, and moves its end.
fn parts(rank: usize, lengths: impl Iterator<Item = usize>, end: &mut usize) -> Vec<Part> {
    const ALIGNMENT: usize = 256; // as of `cuMemAlloc`
    let others = lengths.enumerate().filter(|&(other, _)| other != rank);
    let place = |(other, length): (usize, usize)| {
        let start = *end;
        *end += length.next_multiple_of(ALIGNMENT);
        Part {
            other,
            start,
            length,
        }
    };
    others.map(place).collect()
}

/// Memory of a device that MPI reads and writes.
struct Window {
    /// The stream that used it last.
    stream: Stream,
    start: u64,
    bytes: usize,
}

unsafe extern "C" {
    // The driver's, which `gpu` brings.
    fn cuMemAlloc_v2(start: *mut u64, bytes: usize) -> c_int;
    fn cuMemFree_v2(start: u64) -> c_int;
}

impl Window {
    /// Returns the window that was kept, or a larger one.
    fn of(kept: Option<Self>, stream: &Stream, bytes: usize) -> Result<Self, TransportError> {
        if let Some(mut window) = kept {
            window.stream.synchronize()?; // it may be another
            if window.bytes >= bytes && window.stream.device() == stream.device() {
                window.stream = stream.clone();
                return Ok(window);
            }
        }
        const OUT_OF_MEMORY: c_int = 2;
        let bytes = (bytes + bytes / 4).max(1); // it is seldom made anew
        let mut start = 0;
        let mut allocate = || {
            // SAFETY: the device is current, and the out pointer is valid.
            Ok::<_, gpu::Error>(unsafe { cuMemAlloc_v2(&mut start, bytes) })
        };
        let mut code = stream.using(&[], &mut allocate)?;
        if code == OUT_OF_MEMORY {
            stream.device().trim()?;
            code = stream.using(&[], allocate)?;
        }
        let stream = stream.clone();
        match code {
            0 => Ok(Self {
                stream,
                start,
                bytes,
            }),
            code => Err(TransportError::Library {
                call: "cuMemAlloc",
                code,
            }),
        }
    }

    fn part(&self, part: &Part) -> Slice<'_, u8> {
        // SAFETY: the part is in the window, which is memory of the device of its stream, and not
        // freed before that is done. Nothing writes it while it is borrowed.
        unsafe { Slice::from_raw(self.start + part.start as u64, part.length) }
    }

    fn part_mut(&mut self, part: &Part) -> SliceMut<'_, u8> {
        // SAFETY: as above. Nothing else uses it: parts do not overlap.
        unsafe { SliceMut::from_raw(self.start + part.start as u64, part.length) }
    }

    /// Divides a part into pieces that MPI can count. They arrive in order, as they have one tag.
    fn pieces(&self, part: &Part) -> impl Iterator<Item = (u64, c_int)> {
        let (start, length) = (self.start + part.start as u64, part.length);
        let starts = (0..length).step_by(PIECE);
        starts.map(move |at| (start + at as u64, PIECE.min(length - at) as c_int))
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // A drop cannot return an error.
        let _: gpu::Result<()> = self.stream.using(&[], || {
            self.stream.synchronize()?;
            // SAFETY: the device is current, the memory is of `cuMemAlloc`, and nothing uses it.
            unsafe { cuMemFree_v2(self.start) };
            Ok(())
        });
    }
}

/// Starts a request.
fn begin(
    name: &'static str,
    post: impl FnOnce(&mut MPI_Request) -> c_int,
) -> Result<MPI_Request, TransportError> {
    // SAFETY: a constant of MPI.
    let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
    check(name, post(&mut request))?;
    Ok(request)
}

/// Returns whether MPI takes addresses of devices, as far as it or the user tells.
fn is_cuda_aware() -> bool {
    match std::env::var("RADSWEEP_MPI_CUDA").as_deref() {
        Ok("0") => return false,
        Ok("1") => return true,
        _ => {}
    }
    const NAME: &CStr = c"MPIX_Query_cuda_support";
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, NAME.as_ptr()) };
    if found.is_null() {
        return false;
    }
    // SAFETY: the function of MPI of that name has this type.
    let query: unsafe extern "C" fn() -> c_int = unsafe { std::mem::transmute(found) };
    // SAFETY: it has no conditions.
    unsafe { query() == 1 }
}
