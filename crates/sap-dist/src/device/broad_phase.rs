//! The broad phase over all ranks, each on its device.

use super::abi::{self, HOME, PLACES};
use super::brought::{Brought, moved};
use super::cells::DeviceCells;
use super::engine::Engine;
use super::exchange::{Flow, Room};
use super::format::Format;
use super::frame::DeviceFrame;
use super::kernels::{Kernels, THREADS, blocks};
use super::owned::{Came, Own, Owned, Sorting};
use super::search::{About, Cell, Copies, FoundBy, Grouped, Named, pairs_of, search};
use super::survey::Surveyed;
use super::transport::DeviceTransport;
use crate::config::Config;
use crate::error::{Result, failed};
use crate::layout::Layout;
use crate::outline::Outline;
use crate::protocol::{Facts, Protocol, sampled};
use crate::report::{Clock, Report, Work};
use crate::results;
use crate::{Cause, Pair, Transport};
use gpu::{Buffer, Device, Launch, Scratch, Slice, Stream, args};
use sap::{Aabb, Backend, BroadPhase};
use std::thread::{self, Scope};

/// Finds the overlapping pairs of boxes that lie on the CUDA devices of several ranks: the same
/// pairs, bit for bit, as [`Distributed`](crate::Distributed) finds. Boxes and pairs stay on the
/// devices.
///
/// Each rank works on one device; several ranks may share one. All ranks call
/// [`DeviceDistributed::update`] together, each with the boxes that it brings, whose ids ascend. A
/// pair belongs to the rank that brings the box of its smaller id.
///
/// A call that fails does so on all ranks and leaves the last result unchanged. Memory on a device,
/// besides that of its engine: 28 to 56 bytes a box that travels, 40 to 60 a copy, 32 a pair; if
/// many boxes are brought by other ranks than their homes, 24 to 44 more for each box of a rank; 8
/// more for each with events if ids are not consecutive; and with excluded pairs 32 more a pair for
/// a moment.
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
    state: State,
}

/// What a rank has besides the engine for its homes, which may be at work on another thread.
struct State {
    protocol: Protocol,
    kernels: Kernels,
    sorting: Sorting,
    cells: Option<DeviceCells>,
    copies: Copies,
    /// What comes from other ranks.
    incoming: Scratch,
    owned: Owned,
    brought: Brought,
    /// What the ranks agreed on last, also in an update that failed then.
    found_by: FoundBy,
}

/// Where threads are started that end before the update does.
type Spawn<'scope, 'env> = &'scope Scope<'scope, 'env>;

/// A frame, and the engine that may be at work on it.
struct Begun<'frame, 'scope, 'env, 'a> {
    frame: &'frame DeviceFrame<'a>,
    scope: Spawn<'scope, 'env>,
    engine: Engine<'scope, 'a>,
}

/// What an update measures of itself.
struct Measured {
    work: Work,
    clock: Clock,
}

impl Measured {
    /// Ends a lap, as a part of a stage of [`Work::times`].
    fn lap(&mut self, stage: usize) {
        self.work.times[stage] += self.clock.lap();
    }
}

/// What a rank has to send.
struct Sent {
    survey: Surveyed,
    records: Buffer<u32>,
}

/// What all ranks agree on before boxes travel.
struct Plan {
    outline: Outline,
    /// The cells, and whether they are new.
    cuts: (Layout, bool),
    sent: Result<Sent, Cause>,
    /// The ids of the frame, if they differ from those of the last update.
    brought: Result<Option<Brought>, Cause>,
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
        let planned = config.engine(Backend::Cuda, Some(device));
        let swept = sap::Config {
            strategy: sap::Strategy::Sweep,
            ..planned.clone()
        };
        // What comes from other ranks is searched while the engine works on the homes. It is
        // little, but each of its kernels would wait for one of the engine's.
        let stream = Stream::urgent(&Device::open(device)?)?;
        let state = State {
            kernels: Kernels::new(&stream)?,
            sorting: Sorting::new(stream.device())?,
            owned: Owned::none(&stream)?,
            copies: Copies {
                few: BroadPhase::on_stream(&stream, swept)?,
                many: BroadPhase::on_stream(&stream, planned.clone())?,
                near: 0,
            },
            protocol: Protocol::on_device(config),
            cells: None,
            incoming: Scratch::new(),
            brought: Brought::NOTHING,
            found_by: FoundBy::Cell,
        };
        Ok(Self {
            homes: BroadPhase::new(planned)?,
            state,
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
        let Self { homes, state } = self;
        // Where ranks find the pairs of what they bring they do so again, as a rule, so the engine
        // need not wait until all have agreed on that. If they do not, what it found is dropped.
        thread::scope(|scope| {
            let mut engine = Engine::Idle(homes);
            if state.found_by == FoundBy::Bringer {
                engine = engine.start(scope, &state.kernels.stream, frame);
            }
            let frame = &frame;
            let begun = Begun {
                frame,
                scope,
                engine,
            };
            state.update(transport, begun)
        })?;
        Ok(&self.state.protocol.report)
    }

    /// Returns the pairs that this rank owns in the memory of its device, sorted. Read them on
    /// [`DeviceDistributed::stream`], or on another stream that waits for an event of it.
    #[must_use]
    pub fn pairs(&self) -> Slice<'_, Pair> {
        self.state.owned.pairs.slice()
    }

    /// Returns the pairs of [`DeviceDistributed::pairs`] that the update before did not have, in
    /// the memory of the device; none with [`Config::events`] off.
    #[must_use]
    pub fn started(&self) -> Slice<'_, Pair> {
        self.state.owned.started.slice()
    }

    /// Returns the pairs that this rank owned before the last update and that nobody has now, in
    /// the memory of the device; none with [`Config::events`] off.
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
    ///         let (ids, places): (Vec<u64>, Vec<Aabb>) = boxes.iter().copied().unzip();
    ///         let ids = stream.from_slice(&ids).expect("the device has memory");
    ///         let places = stream.from_slice(&places).expect("the device has memory");
    ///         let frame = DeviceFrame::with_ids(ids.slice(), places.slice());
    ///         let report = broad_phase.update(&mut transport, frame)?;
    ///         assert_eq!((report.started, report.ended), (started, 0));
    ///
    ///         let mut outgoing = vec![Vec::new(); 2];
    ///         boxes.retain(|(id, place)| {
    ///             let home = broad_phase.home(place).unwrap_or(rank);
    ///             if home != rank {
    ///                 outgoing[home].extend_from_slice(bytemuck::bytes_of(id));
    ///                 outgoing[home].extend_from_slice(bytemuck::bytes_of(place));
    ///             }
    ///             home == rank
    ///         });
    ///         for message in transport.exchange(outgoing)? {
    ///             for one in message.chunks_exact(32) {
    ///                 let (id, place) = one.split_at(8);
    ///                 let id = bytemuck::pod_read_unaligned(id);
    ///                 boxes.push((id, bytemuck::pod_read_unaligned(place)));
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
        let kernels = &self.state.kernels;
        let find = || match (&self.state.protocol.layout, &self.state.cells) {
            (Some(layout), Some(cells)) if cells.is_of(layout) => cells.homes(kernels, boxes),
            // The device has the cells of an update that failed.
            (Some(layout), _) => DeviceCells::new(&kernels.stream, layout)?.homes(kernels, boxes),
            (None, _) => {
                let mut none = kernels.stream.alloc(boxes.len())?;
                kernels.stream.fill_u32(none.slice_mut(), u32::MAX)?;
                Ok(none)
            }
        };
        find().map_err(failed(0))
    }

    /// Forgets the last update and the cuts, on this rank. All ranks must do so together. Memory is
    /// kept, but for the lists of pairs, the cuts and the ids.
    ///
    /// # Errors
    ///
    /// [`Error::Rank`](crate::Error::Rank) with the rank 0 if the device failed.
    pub fn clear(&mut self) -> Result<()> {
        self.state.owned = Owned::none(&self.state.kernels.stream).map_err(failed(0))?;
        self.homes.clear();
        self.state.protocol.clear();
        self.state.cells = None;
        self.state.brought = Brought::NOTHING;
        self.state.found_by = FoundBy::Cell;
        Ok(())
    }
}

impl State {
    fn update<'scope, 'a: 'scope, T: DeviceTransport>(
        &mut self,
        transport: &mut T,
        begun: Begun<'_, 'scope, '_, 'a>,
    ) -> Result<()> {
        let frame = begun.frame;
        let mut measured = Measured {
            work: Work::default(),
            clock: Clock::start(),
        };
        let work = &mut measured.work;
        (work.boxes, work.before) = (frame.len(), transport.traffic());
        let Plan {
            outline,
            cuts,
            sent,
            brought,
        } = self.plan(transport, frame)?;
        measured.lap(0);

        let owned = self.search(transport, begun, &outline, sent, &mut measured)?;
        let settles = self.protocol.config.events && self.protocol.updates > 0;
        let owned = if settles && outline.has_other_ids() {
            self.settle(transport, owned, frame)?
        } else {
            owned
        };
        measured.lap(4);
        let owned = owned.and_then(|owned| Ok((owned, brought?)));
        self.conclude(transport, &outline, &cuts, owned, measured.work)
    }

    /// Finds the pairs of the cell of this rank, brings them to their owners, and returns those
    /// that this rank owns.
    ///
    /// By [`FoundBy::Bringer`] the engine needs nothing that travels: meanwhile it is at work.
    fn search<'scope, 'a: 'scope, T: DeviceTransport>(
        &mut self,
        transport: &mut T,
        begun: Begun<'_, 'scope, '_, 'a>,
        outline: &Outline,
        sent: Result<Sent, Cause>,
        measured: &mut Measured,
    ) -> Result<Result<Owned, Cause>> {
        let Begun {
            frame,
            scope,
            engine,
        } = begun;
        let (rank, ranks) = (transport.rank(), transport.size());
        let (kernels, stream) = (&self.kernels, &self.kernels.stream);
        // A rank that fails says so where all agree on what travels next.
        let mut room = Room {
            memory: &mut self.incoming,
            stream,
            unit: Format::of(outline).words() * size_of::<u32>(),
        };
        let counts = |sent: &Sent| sent.survey.records.clone();
        let (flow, sent) = Flow::agree(transport, sent, (counts, PLACES), &mut room)?;
        let found_by = FoundBy::choose(outline, flow.all(HOME));
        self.found_by = found_by;
        let (of_frame, of_homes) = match found_by {
            FoundBy::Bringer => (Some(engine.start(scope, stream, *frame)), None),
            FoundBy::Cell => (None, Some(engine)),
        };
        let records = flow.exchange(transport, sent.records.slice(), room)?;
        measured.lap(1);

        let cell = records.cast().map_err(Cause::from).and_then(|records| {
            let about = About {
                outline,
                rank,
                found_by,
            };
            Cell::new(kernels, *frame, &sent.survey, about, &flow, records)
        });
        let found = cell.and_then(|cell| {
            let [homes_came, copies] = cell.came();
            let work = &mut measured.work;
            work.cell = [sent.survey.homes() + homes_came, copies, 0];
            let mut named = Named::new(stream, ranks)?;
            work.cell[2] = self.copies.find(kernels, &cell, &mut named)?;
            let kept = match of_homes {
                Some(engine) => {
                    // What it may have found is of no use, and neither is its error.
                    let (homes, _) = engine.join()?;
                    work.cell[2] += search(homes, (&stream.record()?, stream), cell.engine()?)?;
                    named.divide(kernels, pairs_of(homes)?, cell.abi())?
                }
                None => stream.alloc(0)?,
            };
            Ok((named.group(kernels)?, kept))
        });
        measured.lap(2);
        let (came, kept) = self.bring(transport, found)?;
        measured.lap(3);

        let kept = match of_frame {
            None => Ok(kept.slice()),
            Some(engine) => engine.join().and_then(|(engine, tests)| {
                measured.work.cell[2] += tests?;
                pairs_of(engine)
            }),
        };
        measured.lap(2);
        let last = self.protocol.config.events.then_some(&self.owned);
        let owned = kept.and_then(|pairs| {
            let own = Own {
                pairs,
                frame,
                has_listed_ids: outline.has_listed_ids(),
            };
            Owned::new(&self.kernels, own, &came?, last)
        });
        measured.lap(4);
        Ok(owned)
    }

    /// Brings pairs to the ranks that own them, if all ranks found theirs. Returns those that came,
    /// in order, and what else was found.
    fn bring<T: DeviceTransport, R>(
        &mut self,
        transport: &mut T,
        found: Result<(Grouped, R), Cause>,
    ) -> Result<(Result<Came, Cause>, R)> {
        let mut room = Room {
            memory: &mut self.incoming,
            stream: &self.kernels.stream,
            unit: size_of::<abi::Found>(),
        };
        let counts = |(away, _): &(Grouped, R)| away.owners.clone();
        let (flow, (away, found)) = Flow::agree(transport, found, (counts, 1), &mut room)?;
        let came = flow.exchange(transport, away.pairs.slice(), room)?;
        let came = came.cast().map_err(Cause::from);
        let came = came.and_then(|came| Came::new(&self.kernels, &mut self.sorting, came));
        Ok((came, found))
    }

    /// Checks the boxes, agrees with all ranks on the cells, and writes what travels.
    fn plan<T: Transport>(&mut self, transport: &mut T, frame: &DeviceFrame) -> Result<Plan> {
        let (rank, ranks) = (transport.rank(), transport.size());
        let survey = self.survey(frame, (rank, ranks));
        let differs = |survey: &Surveyed| self.brought.differs(frame, survey);
        let other_ids = survey.as_ref().is_ok_and(differs);
        let outline = self.protocol.outline(
            transport,
            &Facts {
                boxes: frame.len(),
                first_id: frame.first_id(),
                lists: frame.lists(),
                other_ids,
                invalid: survey.as_ref().map(Surveyed::invalid).map_err(Clone::clone),
            },
        )?;
        let kernels = &self.kernels;
        let keeps = other_ids && self.protocol.config.events;
        let brought = keeps
            .then(|| Brought::of(&kernels.stream, frame))
            .transpose();
        let mut state = Ok(());
        let sample = |count| match sample(kernels, frame, count) {
            Ok(boxes) => boxes,
            Err(cause) => {
                state = Err(cause);
                vec![Aabb::EMPTY; count]
            }
        };
        let cuts = self.protocol.cut(transport, &outline, sample)?;
        let sent = state.and_then(|()| {
            // The survey was by the last cells.
            let has_cells = self
                .cells
                .as_ref()
                .is_some_and(|cells| cells.is_of(&cuts.0));
            let survey = if has_cells {
                survey?
            } else {
                self.cells = Some(DeviceCells::new(&self.kernels.stream, &cuts.0)?);
                self.survey(frame, (rank, ranks))?
            };
            self.write(frame, survey, Format::of(&outline))
        });
        Ok(Plan {
            outline,
            cuts,
            sent,
            brought: brought.map_err(Cause::from),
        })
    }

    /// Agrees with all ranks on the end of the update, and keeps the new result if all succeeded.
    fn conclude<T: DeviceTransport>(
        &mut self,
        transport: &mut T,
        outline: &Outline,
        cuts: &(Layout, bool),
        result: Result<(Owned, Option<Brought>), Cause>,
        mut work: Work,
    ) -> Result<()> {
        let (result, state) = match result {
            Ok(result) => (Some(result), Ok(())),
            Err(cause) => (None, Err(cause)),
        };
        work.lists = result.as_ref().map_or([0; 3], |(owned, _)| owned.lengths());
        work.after = transport.traffic();
        let cuts = (&cuts.0, cuts.1);
        self.protocol
            .conclude(transport, outline, cuts, (&state, &work))?;
        if let Some((owned, brought)) = result {
            self.owned = owned;
            if let Some(brought) = brought {
                self.brought = brought;
            }
        }
        Ok(())
    }

    /// Checks the boxes, and counts what travels by the cells that the device has.
    fn survey(
        &self,
        frame: &DeviceFrame,
        (rank, ranks): (usize, usize),
    ) -> Result<Surveyed, Cause> {
        let cells = self.cells.as_ref().filter(|cells| cells.ranks() == ranks);
        let cells = cells.map(|cells| cells.abi(rank));
        let last_ids = self.brought.comparable(frame);
        Surveyed::new(&self.kernels, frame, last_ids, (cells, ranks))
    }

    fn write(&self, frame: &DeviceFrame, survey: Surveyed, format: Format) -> Result<Sent, Cause> {
        let count = survey.records.iter().sum::<u64>() as usize;
        let mut records = self.kernels.stream.alloc::<u32>(count * format.words())?;
        survey.write(&self.kernels, frame, format, records.slice_mut())?;
        Ok(Sent { survey, records })
    }

    /// Drops events of pairs whose box `a` another rank brings now. Those that may be such travel
    /// over the host: they are few.
    fn settle<T: Transport>(
        &self,
        transport: &mut T,
        owned: Result<Owned, Cause>,
        frame: &DeviceFrame,
    ) -> Result<Result<Owned, Cause>> {
        let kernels = &self.kernels;
        let asked = owned.and_then(|owned| {
            let ended = moved(kernels, owned.ended.slice(), (frame.ids, frame.len()))?;
            let started = self.brought.moved(kernels, owned.started.slice())?;
            Ok(([ended, started], owned))
        });
        let (moved, owned) = match asked {
            Ok((moved, owned)) => (moved, Ok(owned)),
            Err(cause) => (Default::default(), Err(cause)),
        };
        let dropped = results::settle(transport, moved)?;
        Ok(owned.and_then(|owned| Ok(owned.settled(kernels, &dropped)?)))
    }
}

/// Returns one box of each of `count` equal parts of the frame, empty where a part has none.
fn sample(kernels: &Kernels, frame: &DeviceFrame, count: usize) -> Result<Vec<Aabb>, Cause> {
    let stream = &kernels.stream;
    let places: Vec<Option<usize>> = sampled(frame.len(), count).collect();
    let indices: Vec<u64> = places.iter().flatten().map(|&index| index as u64).collect();
    let mut boxes = stream.alloc::<Aabb>(indices.len())?;
    let indices = stream.from_slice(&indices)?;
    let samples = indices.len();
    if samples > 0 {
        let launch = Launch::linear(blocks(samples, THREADS as usize), THREADS);
        // SAFETY: the indices are of the frame, and there is memory for as many boxes.
        unsafe {
            stream.launch(
                &kernels.sample,
                &launch,
                &args![
                    frame.boxes,
                    indices.slice(),
                    samples as u32,
                    boxes.slice_mut()
                ],
            )?
        };
    }
    let mut found = stream.to_vec(boxes.slice())?.into_iter();
    let take = |place: &Option<usize>| place.and_then(|_| found.next()).unwrap_or(Aabb::EMPTY);
    Ok(places.iter().map(take).collect())
}
