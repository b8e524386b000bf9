//! The broad phase over all ranks, each on its device.

use super::engine::thread_of_engine;
use super::frame::DeviceFrame;
use super::transport::DeviceTransport;
use super::update::State;
use crate::config::Config;
use crate::error::{Result, failed};
use crate::report::Report;
use crate::{Cause, Pair};
use gpu::{Buffer, Device, Slice, Stream};
use rayon::ThreadPool;
use sap::{Aabb, Backend, BroadPhase};

/// Finds the overlapping pairs of boxes that lie on the CUDA devices of several ranks: the same
/// pairs, bit for bit, as [`Distributed`](crate::Distributed) finds. Boxes and pairs stay on the
/// devices.
///
/// Each rank works on one device; several ranks may share one. All ranks call
/// [`DeviceDistributed::update`] together, each with the boxes that it brings, whose ids ascend. A
/// pair belongs to the rank that brings the box of its smaller id.
///
/// A call that fails does so on all ranks and leaves the last result unchanged. After an
/// [`Error::Transport`](crate::Error::Transport) at its end some ranks may have the new one.
///
/// Memory on a device, besides that of its engine: an eighth of a byte a box, 28 to 56 a box that
/// travels, 40 to 60 a copy, 32 to 48 a pair, 32 more for one with a box of another rank; if many
/// boxes are brought by other ranks than their homes, 24 to 44 more for each box of a rank; 8 more
/// for each with events if ids are not consecutive; and with excluded pairs 32 to 48 more a pair.
/// With events it also keeps 32 to 48 for each pair that started or ended in the update that had
/// most of these: as a rule the first, in which all pairs start.
///
/// ```
/// use sap::Aabb;
/// use sap_dist::{Config, DeviceDistributed, DeviceFrame, Staged, Threads, Transport};
/// use std::time::Duration;
///
/// if gpu::Device::first().is_err() { return Ok(()) } // no GPU here
/// let results = Threads::run(2, Duration::from_secs(60), |threads| {
///     let rank = threads.rank() as u64;
///     let mut transport = Staged::new(threads);
///     let mut broad_phase = DeviceDistributed::new(Config::default(), 0)?;
///     let stream = broad_phase.stream().clone();
///     let x = rank as f32;
///     let boxes = stream.from_slice(&[Aabb::new([x, 0.0, 0.0], [x + 1.0, 1.0, 1.0])]);
///     let boxes = boxes.expect("the device has memory");
///     let frame = DeviceFrame::from_id(rank, boxes.slice());
///     broad_phase.update(&mut transport, frame).map(|report| report.pairs)
/// })?;
/// assert!(results.into_iter().all(|pairs| pairs == Ok(1)));
/// # Ok::<(), sap_dist::Error>(())
/// ```
pub struct DeviceDistributed {
    /// Finds the pairs of the boxes that this rank brings, or those of the homes ([`FoundBy`]).
    homes: BroadPhase,
    /// The thread of that engine.
    thread: ThreadPool,
    state: State,
}

impl DeviceDistributed {
    /// Makes a broad phase on the device of this number.
    ///
    /// # Errors
    ///
    /// [`Error::Rank`](crate::Error::Rank) with the rank 0 if there is no such device, or if it
    /// refuses memory.
    pub fn new(config: Config, device: usize) -> Result<Self> {
        Self::on(config, device).map_err(failed(0))
    }

    fn on(config: Config, device: usize) -> Result<Self, Cause> {
        let (planned, events) = (config.engine(Backend::Cuda, Some(device)), config.events);
        // What comes from other ranks is searched while the engine works on the homes. It is
        // little, but each of its kernels would wait for one of the engine's.
        let stream = Stream::urgent(&Device::open(device)?)?;
        Ok(Self {
            state: State::new(config, &planned, &stream)?,
            homes: BroadPhase::new(sap::Config { events, ..planned })?,
            thread: thread_of_engine()?,
        })
    }

    /// Finds the overlapping pairs of the boxes of all ranks. Every rank must call it, each with
    /// its own transport of one set.
    ///
    /// The lists are read on [`DeviceDistributed::stream`]: work that writes them on another stream
    /// must be ordered before by an event. They may be overwritten once this returns.
    ///
    /// With `n` boxes and `k` pairs of a rank, and `c` copies in its cell, it takes the time of an
    /// engine for its cell, `O(n + k)` more on the device, and `O(c)` bytes between ranks; boxes
    /// that a rank brings from other cells travel too.
    ///
    /// # Errors
    ///
    /// [`Error::Rank`](crate::Error::Rank) on all ranks if one fails,
    /// [`Error::Transport`](crate::Error::Transport) if a rank is missing, as
    /// [`Distributed::update`](crate::Distributed::update). The last result stays.
    pub fn update<T: DeviceTransport>(
        &mut self,
        transport: &mut T,
        frame: DeviceFrame,
    ) -> Result<&Report> {
        let engine = (&mut self.homes, &self.thread);
        self.state.update(transport, engine, &frame)?;
        Ok(&self.state.protocol.report)
    }

    /// Returns the pairs that this rank owns in the memory of its device, sorted. Read them on
    /// [`DeviceDistributed::stream`], or on a stream of your own that waits for an event of it.
    /// Before the next update, which may overwrite them, have [`DeviceDistributed::stream`] wait
    /// for an event of yours, recorded after the reads.
    #[must_use]
    pub fn pairs(&self) -> Slice<'_, Pair> {
        self.state.owned.pairs.slice()
    }

    /// Returns the pairs of [`DeviceDistributed::pairs`] that the update before did not have, in
    /// the memory of the device, to be read in the same way; none with [`Config::events`] off.
    #[must_use]
    pub fn started(&self) -> Slice<'_, Pair> {
        self.state.owned.started.slice()
    }

    /// Returns the pairs that this rank owned before the last update and that nobody has now, in
    /// the memory of the device, to be read as [`DeviceDistributed::pairs`]; none with
    /// [`Config::events`] off.
    #[must_use]
    pub fn ended(&self) -> Slice<'_, Pair> {
        self.state.owned.ended.slice()
    }

    /// Returns the report of the last update, the same on all ranks.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.state.protocol.report
    }

    /// Returns the configuration.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.state.protocol.config
    }

    /// Returns the stream that this rank works on.
    #[must_use]
    pub const fn stream(&self) -> &Stream {
        &self.state.kernels.stream
    }

    /// Returns the rank that is the home of a box by the last cuts; none before the first update,
    /// and for a box that is invalid or empty. A rank that brings only boxes whose home it is sends
    /// copies only.
    ///
    /// Ranks that keep the boxes of their cells hand over those that leave them. Boxes keep their
    /// ids, so that starts and ends nothing:
    ///
    /// ```
    /// use sap::Aabb;
    /// use sap_dist::{Config, DeviceDistributed, DeviceFrame, Staged, Threads, Transport};
    /// use std::time::Duration;
    ///
    /// if gpu::Device::first().is_err() { return Ok(()) } // no GPU here
    /// let at = |x: f32| Aabb::new([x, 0.0, 0.0], [x + 1.0, 1.0, 1.0]);
    /// let results = Threads::run(2, Duration::from_secs(60), |threads| {
    ///     let rank = threads.rank();
    ///     let mut transport = Staged::new(threads);
    ///     let mut broad_phase = DeviceDistributed::new(Config::default(), 0)?;
    ///     let stream = broad_phase.stream().clone();
    ///     // At first rank 0 has all boxes: their ids, and where they are.
    ///     let boxes = (0..1000_u64).filter(|_| rank == 0);
    ///     let mut boxes: Vec<(u64, Aabb)> = boxes.map(|id| (7 * id, at(id as f32))).collect();
    ///     for started in [999, 0] {
    ///         let (ids, bounds): (Vec<u64>, Vec<Aabb>) = boxes.iter().copied().unzip();
    ///         let ids = stream.from_slice(&ids).expect("the device has memory");
    ///         let bounds = stream.from_slice(&bounds).expect("the device has memory");
    ///         let frame = DeviceFrame::with_ids(ids.slice(), bounds.slice());
    ///         let report = broad_phase.update(&mut transport, frame)?;
    ///         assert_eq!((report.started, report.ended), (started, 0));
    ///
    ///         let mut outgoing = vec![Vec::new(); 2];
    ///         boxes.retain(|(id, bounds)| {
    ///             let home = broad_phase.home(bounds).unwrap_or(rank);
    ///             if home != rank {
    ///                 outgoing[home].extend_from_slice(bytemuck::bytes_of(id));
    ///                 outgoing[home].extend_from_slice(bytemuck::bytes_of(bounds));
    ///             }
    ///             home == rank
    ///         });
    ///         for message in transport.exchange(outgoing)? {
    ///             for one in message.chunks_exact(32) {
    ///                 let (id, bounds) = one.split_at(8);
    ///                 let id = bytemuck::pod_read_unaligned(id);
    ///                 boxes.push((id, bytemuck::pod_read_unaligned(bounds)));
    ///             }
    ///         }
    ///         boxes.sort_unstable_by_key(|&(id, _)| id); // ids of a rank ascend
    ///     }
    ///     Ok::<usize, sap_dist::Error>(boxes.len())
    /// })?;
    /// assert!(results.into_iter().all(|boxes| boxes == Ok(500)));
    /// # Ok::<(), sap_dist::Error>(())
    /// ```
    #[must_use]
    pub fn home(&self, aabb: &Aabb) -> Option<usize> {
        self.state.protocol.home(aabb)
    }

    /// Finds the home of each box in the memory of the device, as [`DeviceDistributed::home`]:
    /// `u32::MAX` where that is none. The work is on [`DeviceDistributed::stream`]. It takes
    /// `O(n log r)` for `n` boxes and `r` ranks.
    ///
    /// ```
    /// use sap::Aabb;
    /// use sap_dist::{Config, DeviceDistributed, DeviceFrame, Staged, Threads, Transport};
    /// use std::time::Duration;
    ///
    /// if gpu::Device::first().is_err() { return Ok(()) } // no GPU here
    /// let homes = Threads::run(2, Duration::from_secs(60), |threads| {
    ///     let mut broad_phase = DeviceDistributed::new(Config::default(), 0)?;
    ///     let stream = broad_phase.stream().clone();
    ///     let at = |i| Aabb::new([i as f32; 3], [i as f32 + 0.5; 3]);
    ///     let all: Vec<Aabb> = (0..10).map(at).collect();
    ///     let boxes = stream.from_slice(&all).expect("the device has memory");
    ///     // Rank 1 brings no boxes yet.
    ///     let brought = boxes.range(..if threads.rank() == 0 { 10 } else { 0 }).expect("a part");
    ///     broad_phase.update(&mut Staged::new(threads), DeviceFrame::from_id(0, brought))?;
    ///     let homes = broad_phase.homes(boxes.slice())?;
    ///     Ok::<Vec<u32>, sap_dist::Error>(stream.to_vec(homes.slice()).expect("the device works"))
    /// })?;
    /// assert_eq!(homes[0].as_deref(), Ok(&[0, 0, 0, 0, 0, 1, 1, 1, 1, 1][..]));
    /// # Ok::<(), sap_dist::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Rank`](crate::Error::Rank) with the rank 0 if the device failed.
    pub fn homes(&self, boxes: Slice<Aabb>) -> Result<Buffer<u32>> {
        self.state.homes(boxes).map_err(failed(0))
    }

    /// Forgets the last update and the cuts, on this rank. All ranks must do so together. Memory is
    /// kept, but for the cuts and the ids.
    pub fn clear(&mut self) {
        self.state.clear();
        self.homes.clear();
    }
}
