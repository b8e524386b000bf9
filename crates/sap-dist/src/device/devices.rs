//! Several devices of one machine behind one call: boxes come from the host, pairs go back to it.

use super::broad_phase::DeviceDistributed;
use super::frame::DeviceFrame;
use super::peers::{Board, Peers, lock, reach};
use crate::error::failed;
use crate::{Cause, Config, Error, List, Pair, Report, Result, Threads, Transport, TransportError};
use bytemuck::Pod;
use gpu::{Buffer, Slice, Stream};
use sap::{Aabb, Filter};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The time that a device waits for the others within an update.
const LIMIT: Duration = Duration::from_secs(600);

/// Finds the overlapping pairs of boxes of the host on several CUDA devices of this machine, a rank
/// each: the same pairs, bit for bit, as one [`sap::BroadPhase`] finds.
///
/// The ids of boxes are their indices. Each device takes an equal part of them and has a thread of
/// its own while an update runs. What goes from device to device is copied by the driver
/// ([`Peers`](crate::Peers)). It is for scenes that are too large for one device;
/// [`DeviceDistributed`] takes boxes that lie on the devices.
///
/// A call that fails leaves the last result unchanged. The exception is an [`Error::Transport`] at
/// the end of an update, after which some devices may have the new one: call [`Devices::clear`].
///
/// ```
/// use sap::Aabb;
/// use sap_dist::{Config, Devices, Pair};
///
/// let Ok(count @ 1..) = Devices::count() else { return Ok(()) }; // no GPU here
/// let mut devices = Devices::new(Config::default(), 0..count)?;
/// let report = devices.update(&[Aabb::new([0.0; 3], [1.0; 3]); 3])?;
/// assert_eq!((report.pairs, report.ranks.len()), (3, count));
/// let pairs = devices.pairs().collect::<Result<Vec<_>, _>>()?.concat();
/// assert_eq!(pairs[2], Pair { a: 1, b: 2 });
/// # Ok::<(), sap_dist::Error>(())
/// ```
pub struct Devices {
    /// Each is locked by its thread during an update. One that panics leaves nothing half done: a
    /// result is stored at the end.
    ranks: Vec<Mutex<Rank>>,
    board: Arc<Board>,
    report: Report,
}

/// A device, and its part of the boxes.
struct Rank {
    broad_phase: DeviceDistributed,
    boxes: Buffer<Aabb>,
    filters: Buffer<Filter>,
}

impl Devices {
    /// Returns the number of CUDA devices of this machine.
    ///
    /// # Errors
    ///
    /// [`Error::Rank`] with the rank 0 where there is no driver.
    pub fn count() -> Result<usize> {
        gpu::Device::count().map_err(failed(0))
    }

    /// Makes a broad phase on the devices of these numbers. One that is named twice has two ranks.
    ///
    /// # Errors
    ///
    /// [`Error::Rank`] with the rank of a device that does not exist or refuses memory, and if no
    /// device is named.
    pub fn new(config: Config, devices: impl IntoIterator<Item = usize>) -> Result<Self> {
        let one = |(rank, device)| {
            let broad_phase =
                DeviceDistributed::new(config.clone(), device).map_err(named(rank))?;
            Ok(Mutex::new(Rank {
                boxes: broad_phase.stream().alloc(0).map_err(failed(rank))?,
                filters: broad_phase.stream().alloc(0).map_err(failed(rank))?,
                broad_phase,
            }))
        };
        let ranks: Result<Vec<_>> = devices.into_iter().enumerate().map(one).collect();
        let ranks = ranks?;
        if ranks.is_empty() {
            let detail = "no device was named".to_owned();
            let cause = Cause::Engine { detail };
            return Err(Error::Rank { rank: 0, cause });
        }
        let devices = |rank: &Mutex<Rank>| lock(rank).broad_phase.stream().device().clone();
        let devices: Vec<_> = ranks.iter().map(devices).collect();
        for (rank, device) in devices.iter().enumerate() {
            let others = devices.iter().map(|other| other.info().ordinal);
            reach(device, others).map_err(failed(rank))?;
        }
        Ok(Self {
            ranks,
            board: Arc::default(),
            report: Report::default(),
        })
    }

    /// Finds the overlapping pairs of these boxes and, with [`Config::events`], which of them
    /// started and ended. It takes the time of [`DeviceDistributed::update`], and the upload of 24
    /// bytes a box.
    ///
    /// # Errors
    ///
    /// [`Error::Rank`] with the device that failed and the cause, such as an invalid box, whose id
    /// is its index; [`Error::Transport`] if the devices lose each other, or if the system starts
    /// no thread for one.
    pub fn update(&mut self, boxes: &[Aabb]) -> Result<&Report> {
        self.find(boxes, None)
    }

    /// Does the same as [`Devices::update`], with a filter for each box.
    ///
    /// # Errors
    ///
    /// As [`Devices::update`], and [`Error::Rank`] with the rank 0 if there are more or fewer
    /// filters than boxes.
    pub fn update_filtered(&mut self, boxes: &[Aabb], filters: &[Filter]) -> Result<&Report> {
        if filters.len() != boxes.len() {
            let cause = Cause::LengthMismatch {
                what: List::Filters,
                expected: boxes.len() as u64,
                given: filters.len() as u64,
            };
            return Err(Error::Rank { rank: 0, cause });
        }
        self.find(boxes, Some(filters))
    }

    fn find(&mut self, boxes: &[Aabb], filters: Option<&[Filter]>) -> Result<&Report> {
        self.board.clear();
        let (n, count) = (boxes.len(), self.ranks.len());
        let border = |rank: usize| (n as u128 * rank as u128 / count as u128) as usize;
        let (ranks, board) = (&self.ranks, &self.board);
        let results = Threads::run(count, LIMIT, |threads| {
            let rank = threads.rank();
            let part = border(rank)..border(rank + 1);
            let first = part.start as u64;
            let filters = filters.map(|filters| &filters[part.clone()]);
            let transport = Peers::on(threads, Arc::clone(board));
            lock(&ranks[rank]).update(transport, first, &boxes[part], filters)
        })?;
        // A rank that fails alone has the others miss it, so its error says more.
        let mut failed: Vec<Error> = results.into_iter().filter_map(Result::err).collect();
        failed.sort_by_key(|error| match error {
            Error::Transport(TransportError::Elsewhere { .. }) => 2,
            Error::Transport(_) => 1,
            _ => 0,
        });
        if let Some(error) = failed.into_iter().next() {
            return Err(error);
        }
        if let Some(first) = self.ranks.first_mut() {
            self.report = locked(first).broad_phase.report().clone();
        }
        Ok(&self.report)
    }

    /// Copies the pairs of the last update to the host: a list from each device, sorted over all
    /// lists.
    ///
    /// # Errors
    ///
    /// [`Error::Rank`] for a device that fails.
    pub fn pairs(&self) -> impl Iterator<Item = Result<Vec<Pair>>> {
        self.lists(DeviceDistributed::pairs)
    }

    /// Copies the pairs that the update before did not have, as [`Devices::pairs`]; none with
    /// [`Config::events`] off.
    ///
    /// # Errors
    ///
    /// [`Error::Rank`] for a device that fails.
    pub fn started(&self) -> impl Iterator<Item = Result<Vec<Pair>>> {
        self.lists(DeviceDistributed::started)
    }

    /// Copies the pairs that only the update before had, as [`Devices::pairs`]; none with
    /// [`Config::events`] off.
    ///
    /// # Errors
    ///
    /// [`Error::Rank`] for a device that fails.
    pub fn ended(&self) -> impl Iterator<Item = Result<Vec<Pair>>> {
        self.lists(DeviceDistributed::ended)
    }

    fn lists(
        &self,
        list: fn(&DeviceDistributed) -> Slice<'_, Pair>,
    ) -> impl Iterator<Item = Result<Vec<Pair>>> {
        self.ranks.iter().enumerate().map(move |(rank, one)| {
            let one = lock(one);
            let stream = one.broad_phase.stream();
            stream.to_vec(list(&one.broad_phase)).map_err(failed(rank))
        })
    }

    /// Returns the report of the last update.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// Forgets the last update: in the next one all pairs start. Needed after
    /// [`Cause::OutOfStep`], which an [`Error::Transport`] at the end of an update leads to.
    pub fn clear(&mut self) {
        for one in &mut self.ranks {
            locked(one).broad_phase.clear();
        }
        self.board.clear();
        self.report = Report::default();
    }
}

impl Rank {
    /// Updates by this rank's part of the boxes, the first of which has the id `first`.
    fn update(
        &mut self,
        mut transport: Peers<&mut Threads>,
        first: u64,
        boxes: &[Aabb],
        filters: Option<&[Filter]>,
    ) -> Result<()> {
        let rank = transport.rank();
        let stream = self.broad_phase.stream();
        upload(stream, &mut self.boxes, boxes).map_err(failed(rank))?;
        let mut frame = DeviceFrame::from_id(first, self.boxes.slice());
        if let Some(filters) = filters {
            upload(stream, &mut self.filters, filters).map_err(failed(rank))?;
            frame = frame.filters(self.filters.slice());
        }
        self.broad_phase.update(&mut transport, frame).map(drop)
    }
}

/// Copies a list to a buffer of its length.
fn upload<T: Pod>(stream: &Stream, to: &mut Buffer<T>, from: &[T]) -> gpu::Result<()> {
    if to.len() != from.len() {
        *to = stream.alloc(from.len())?;
    }
    stream.upload(to.slice_mut(), from)
}

/// Returns a rank that nothing else can lock.
fn locked(one: &mut Mutex<Rank>) -> &mut Rank {
    one.get_mut().unwrap_or_else(PoisonError::into_inner)
}

/// Names the rank in an error of its broad phase.
fn named(rank: usize) -> impl Fn(Error) -> Error {
    move |error| match error {
        Error::Rank { cause, .. } => Error::Rank { rank, cause },
        other => other,
    }
}
