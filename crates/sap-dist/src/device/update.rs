//! The steps of an update of a rank on its device.

use super::abi::{self, HOME, PLACES};
use super::brought_ids::{Brought, moved};
use super::cells::DeviceCells;
use super::engine::Engine;
use super::exchange::{Flow, Inbox};
use super::format::Format;
use super::frame::DeviceFrame;
use super::kernels::{Kernels, THREADS};
use super::named_pairs::{Grouped, Named};
use super::owned_pairs::{Brings, Came, Own, Owned, Sorting};
use super::search::{About, Cell, Copies, FoundBy, search};
use super::survey::Surveyed;
use super::transport::DeviceTransport;
use crate::config::Config;
use crate::error::Result;
use crate::layout::Layout;
use crate::outline::Outline;
use crate::protocol::{Facts, Protocol, sampled};
use crate::report::{Clock, Work};
use crate::results;
use crate::{Cause, Transport};
use gpu::{Buffer, Launch, Scratch, Slice, Stream, args, blocks};
use rayon::{Scope, ThreadPool};
use sap::{Aabb, BroadPhase};
use std::mem;

/// What a rank has besides the engine for its homes, which may be at work on another thread.
pub(super) struct State {
    pub(super) protocol: Protocol,
    pub(super) kernels: Kernels,
    sorting: Sorting,
    cells: Option<DeviceCells>,
    copies: Copies,
    /// What comes from other ranks.
    incoming: Scratch,
    /// The lists of the last update, and memory for those of the next.
    pub(super) owned: Owned,
    spare: Owned,
    brought: Brought,
    /// What the ranks agreed on last, also in an update that failed then.
    found_by: FoundBy,
    /// Whether the engine has searched the boxes of the last update, so that it knows the events
    /// after it.
    follows: bool,
}

/// A frame, and the engine that may be at work on it.
struct Begun<'frame, 'scope, 'a> {
    frame: &'frame DeviceFrame<'a>,
    scope: &'frame Scope<'scope>,
    engine: Engine<'a>,
    /// Whether the engine knows the boxes of the last update.
    follows: bool,
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

impl State {
    /// Starts without a result. `planned` is the configuration of the engine for the homes.
    pub(super) fn new(
        config: Config,
        planned: &sap::Config,
        stream: &Stream,
    ) -> Result<Self, Cause> {
        let swept = sap::Config {
            strategy: sap::Strategy::Sweep,
            ..planned.clone()
        };
        Ok(Self {
            kernels: Kernels::new(stream)?,
            sorting: Sorting::new(stream.device())?,
            owned: Owned::default(),
            spare: Owned::default(),
            copies: Copies {
                few: BroadPhase::on_stream(stream, swept)?,
                many: BroadPhase::on_stream(stream, planned.clone())?,
                near: 0,
            },
            protocol: Protocol::on_device(config),
            cells: None,
            incoming: Scratch::new(),
            brought: Brought::NOTHING,
            found_by: FoundBy::Cell,
            follows: false,
        })
    }

    /// Forgets the last update and the cuts.
    pub(super) fn clear(&mut self) {
        self.owned.clear();
        self.protocol.clear();
        self.cells = None;
        self.brought = Brought::NOTHING;
        self.found_by = FoundBy::Cell;
        self.follows = false;
    }

    /// Finds the home of each box: `u32::MAX` where that is none.
    pub(super) fn homes(&self, boxes: Slice<Aabb>) -> gpu::Result<Buffer<u32>> {
        let kernels = &self.kernels;
        match (&self.protocol.layout, &self.cells) {
            (Some(layout), Some(cells)) if cells.is_of(layout) => cells.homes(kernels, boxes),
            // The device has the cells of an update that failed.
            (Some(layout), _) => DeviceCells::new(&kernels.stream, layout)?.homes(kernels, boxes),
            (None, _) => {
                let mut none = kernels.stream.alloc(boxes.len())?;
                kernels.stream.fill_u32(none.slice_mut(), u32::MAX)?;
                Ok(none)
            }
        }
    }

    /// Finds the pairs of the boxes of all ranks, those of the homes by their engine on its thread.
    pub(super) fn update(
        &mut self,
        transport: &mut dyn DeviceTransport,
        (homes, thread): (&mut BroadPhase, &ThreadPool),
        frame: &DeviceFrame,
    ) -> Result<()> {
        // Ranks that searched what they bring in the last update usually do so again, so the engine
        // starts before all have agreed on that. If they do not, what it found is dropped.
        let updated = thread.in_place_scope(|scope| {
            let follows = mem::take(&mut self.follows);
            let mut engine = Engine::Idle(homes);
            if self.found_by == FoundBy::Bringer {
                engine = engine.start(scope, &self.kernels.stream, *frame);
            }
            let begun = Begun {
                frame,
                scope,
                engine,
                follows,
            };
            self.take_steps(transport, begun)
        });
        if updated.is_err() {
            // Work that reads the frame may still be queued. The error of the update says more than
            // that of this wait.
            let _: gpu::Result<()> = self.kernels.stream.synchronize();
        }
        updated
    }

    fn take_steps<'scope, 'a: 'scope>(
        &mut self,
        transport: &mut dyn DeviceTransport,
        begun: Begun<'_, 'scope, 'a>,
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

        let filled = self.search(transport, begun, &outline, sent, &mut measured)?;
        let settles = self.protocol.config.events && self.protocol.updates > 0;
        let filled = if settles && outline.has_other_ids() {
            self.settle(transport, filled, frame)?
        } else {
            filled
        };
        measured.lap(4);
        let result = filled.and(brought);
        self.conclude(transport, &outline, &cuts, result, measured.work)
    }

    /// Finds the pairs of the cell of this rank, brings them to their owners, and fills the spare
    /// lists with those that this rank owns.
    ///
    /// By [`FoundBy::Bringer`] the engine needs nothing that travels: meanwhile it is at work.
    fn search<'scope, 'a: 'scope>(
        &mut self,
        transport: &mut dyn DeviceTransport,
        begun: Begun<'_, 'scope, 'a>,
        outline: &Outline,
        sent: Result<Sent, Cause>,
        measured: &mut Measured,
    ) -> Result<Result<(), Cause>> {
        let Begun {
            frame,
            scope,
            engine,
            follows,
        } = begun;
        let (rank, ranks) = (transport.rank(), transport.size());
        let (kernels, stream) = (&self.kernels, &self.kernels.stream);
        // A rank that fails says so where all agree on what travels next.
        let mut inbox = Inbox {
            memory: &mut self.incoming,
            stream,
            unit: Format::of(outline).words() * size_of::<u32>(),
        };
        let counts = |sent: &Sent| sent.survey.records.clone();
        let (flow, sent) = Flow::agree(transport, sent, (counts, PLACES), &mut inbox)?;
        let found_by = FoundBy::choose(outline, flow.all(HOME));
        self.found_by = found_by;
        let (of_frame, of_homes) = match found_by {
            FoundBy::Bringer => (Some(engine.start(scope, stream, *frame)), None),
            FoundBy::Cell => (None, Some(engine)),
        };
        let records = flow.exchange(transport, sent.records.slice(), inbox)?;
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
                    work.add(search(homes, (&stream.record()?, stream), cell.engine()?)?);
                    named.divide(kernels, homes.device_pairs()?, cell.abi())?
                }
                None => stream.alloc(0)?,
            };
            Ok((named.group(kernels)?, kept))
        });
        measured.lap(2);
        let compares = follows && self.knows_events(outline, frame);
        let (came, kept) = self.bring(transport, frame, found, compares)?;
        measured.lap(3);

        let own = match of_frame {
            None => Ok(Own::pairs(kept.slice())),
            Some(engine) => engine.join().and_then(|(engine, tested)| {
                measured.work.add(tested?);
                Own::of(engine)
            }),
        };
        measured.lap(2);
        let brings = Brings {
            frame,
            has_listed_ids: outline.has_listed_ids(),
        };
        let last = self.protocol.config.events.then_some(&self.owned);
        let filled = own.and_then(|own| self.spare.fill(&self.kernels, brings, (own, came?), last));
        measured.lap(4);
        Ok(filled)
    }

    /// Tells whether an engine that searched the boxes of the last update too knows what started
    /// and ended among those of the frame.
    fn knows_events(&self, outline: &Outline, frame: &DeviceFrame) -> bool {
        self.protocol.config.events
            && self.found_by == FoundBy::Bringer
            && !outline.has_other_ids()
            && self.owned.is_whole(frame)
    }

    /// Brings pairs to the ranks that own them, if all ranks found theirs. Returns those that came,
    /// in order and compared with the last ones if `compares` says so, and what else was found.
    fn bring<R>(
        &mut self,
        transport: &mut dyn DeviceTransport,
        frame: &DeviceFrame,
        found: Result<(Grouped, R), Cause>,
        compares: bool,
    ) -> Result<(Result<Came, Cause>, R)> {
        let mut inbox = Inbox {
            memory: &mut self.incoming,
            stream: &self.kernels.stream,
            unit: size_of::<abi::Found>(),
        };
        let counts = |(away, _): &(Grouped, R)| away.owners.clone();
        let (flow, (away, found)) = Flow::agree(transport, found, (counts, 1), &mut inbox)?;
        let came = flow.exchange(transport, away.pairs.slice(), inbox)?;
        let came = came.cast().map_err(Cause::from);
        let last = compares.then_some(&self.owned);
        let came =
            came.and_then(|came| Came::new(&self.kernels, &mut self.sorting, (came, frame), last));
        Ok((came, found))
    }

    /// Checks the boxes, agrees with all ranks on the cells, and writes what travels.
    fn plan(&mut self, transport: &mut dyn Transport, frame: &DeviceFrame) -> Result<Plan> {
        let (rank, ranks) = (transport.rank(), transport.size());
        let survey = self.survey(frame, (rank, ranks));
        let differs = |survey: &Surveyed| self.brought.differs(frame, survey);
        let other_ids = survey.as_ref().is_ok_and(differs);
        let outline = self.protocol.outline(
            transport,
            &Facts {
                boxes: frame.len(),
                first_id: frame.ids.first(),
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
    fn conclude(
        &mut self,
        transport: &mut dyn DeviceTransport,
        outline: &Outline,
        cuts: &(Layout, bool),
        result: Result<Option<Brought>, Cause>,
        mut work: Work,
    ) -> Result<()> {
        let (result, state) = match result {
            Ok(result) => (Some(result), Ok(())),
            Err(cause) => (None, Err(cause)),
        };
        work.lists = result.as_ref().map_or([0; 3], |_| self.spare.lengths());
        work.after = transport.traffic();
        let cuts = (&cuts.0, cuts.1);
        self.protocol
            .conclude(transport, outline, cuts, (&state, &work))?;
        if let Some(brought) = result {
            mem::swap(&mut self.owned, &mut self.spare);
            self.follows = self.found_by == FoundBy::Bringer;
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
    fn settle(
        &mut self,
        transport: &mut dyn Transport,
        filled: Result<(), Cause>,
        frame: &DeviceFrame,
    ) -> Result<Result<(), Cause>> {
        let (kernels, owned) = (&self.kernels, &mut self.spare);
        let asked = filled.and_then(|()| {
            let ended = moved(kernels, owned.ended.slice(), (frame.ids, frame.len()))?;
            let started = self.brought.moved(kernels, owned.started.slice())?;
            Ok([ended, started])
        });
        let (moved, filled) = match asked {
            Ok(moved) => (moved, Ok(())),
            Err(cause) => (Default::default(), Err(cause)),
        };
        let dropped = results::settle(transport, moved)?;
        Ok(filled.and_then(|()| Ok(owned.settle(kernels, &dropped)?)))
    }
}

/// Returns one box of each of `count` equal parts of the frame, empty where a part has none.
fn sample(kernels: &Kernels, frame: &DeviceFrame, count: usize) -> Result<Vec<Aabb>, Cause> {
    let stream = &kernels.stream;
    let drawn: Vec<Option<usize>> = sampled(frame.len(), count).collect();
    let indices: Vec<u64> = drawn.iter().flatten().map(|&index| index as u64).collect();
    let mut boxes = stream.alloc::<Aabb>(indices.len())?;
    let indices = stream.from_slice(&indices)?;
    let samples = indices.len();
    if samples > 0 {
        let launch = Launch::linear(blocks(samples, THREADS), THREADS);
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
    let take = |index: &Option<usize>| index.and_then(|_| found.next()).unwrap_or(Aabb::EMPTY);
    Ok(drawn.iter().map(take).collect())
}
