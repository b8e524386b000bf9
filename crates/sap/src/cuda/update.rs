//! An update, from top to bottom: `upload`, `bounds`, `keys`, `sort`, `sweep`, `order`, `events`,
//! `download`. The stages from `keys` to `events` are in `find/attempt.rs`; chunks, two sets and
//! graphs run them too.
//!
//! The state of one call is in its [`Plan`]. Nothing that can be seen changes before the end of
//! [`Engine::publish`], the last step.

use crate::cuda::abi::{Clear, State};
use crate::cuda::engine::Engine;
use crate::cuda::find::attempt::Searched;
use crate::cuda::find::plan::{FoundBy, Plan};
use crate::cuda::input::device_frame::DeviceFrame;
use crate::cuda::input::scene::{Beside, Last};
use crate::cuda::input::source::Source;
use crate::cuda::limits::out_of_memory;
use crate::cuda::memory::HostPairs;
use crate::cuda::tuning::MAX_CLEARED;
use crate::engine::Engine as _;
use crate::{Error, Invalid, Report, Result, Stats};
use std::mem;

/// The context in which sets of boxes are read.
#[derive(Clone, Copy)]
enum Reading {
    /// As the next frame: with a margin, and compared with the last update.
    Frame { margin: f32 },
    /// On their own.
    Alone,
}

/// A frame whose pairs are searched for.
struct Sought<'a> {
    source: Source<'a>,
    /// Whether the next round waits to learn whether any box has changed.
    asks_first: bool,
    /// Whether a neighbour list may serve it.
    may_have_list: bool,
}

/// How a round of a search ends.
enum Round {
    Found(Searched),
    /// No box has changed.
    Unchanged(State),
    /// The boxes must be read again: for a neighbour list, or without the resting set.
    Again,
}

impl Engine {
    /// Finds all pairs of a frame on the device, and leaves them there.
    pub(crate) fn update_device(&mut self, frame: &DeviceFrame) -> Result<Report> {
        self.update_from(frame.source)
    }

    /// Finds all pairs of a frame.
    pub(crate) fn update_from(&mut self, source: Source) -> Result<Report> {
        let result = self.run(source);
        if result.is_err() {
            self.drop_marks();
            // It may be of boxes with other filters than the last ones.
            if self.neighbours.is_new() {
                self.neighbours.release();
            }
        }
        result
    }

    fn run(&mut self, source: Source) -> Result<Report> {
        self.build_resting()?;
        let mut plan = Plan {
            compares: self.config.events,
            ..Plan::new(&self.config)
        };
        self.upload(&[source], self.as_next_frame())?;
        plan.may_skip = self.has_last && self.spare.is_like(&self.scene);
        if !plan.may_skip {
            self.resting.release();
        }
        let may_have_list = plan.may_skip && self.may_have_list();
        if !may_have_list {
            self.neighbours.release();
        }
        let mut sought = Sought {
            source,
            // Nothing moved in the last frame, so likely nothing has now, which is worth a wait.
            asks_first: plan.may_skip && self.was_unchanged,
            may_have_list,
        };
        let found = loop {
            match self.run_round(&mut sought, &mut plan)? {
                Round::Found(found) => break found,
                Round::Unchanged(state) => return self.publish_unchanged(source, &state),
                Round::Again => {}
            }
        };
        if plan.may_skip && found.state.changed == 0 {
            return self.publish_unchanged(source, &found.state);
        }
        self.publish(source, &plan, &found)
    }

    /// Reads the boxes and finds their pairs, unless they must be read again. Each round releases
    /// or builds what the next one needs, so there are few.
    fn run_round(&mut self, sought: &mut Sought, plan: &mut Plan) -> Result<Round> {
        let (source, asks_first) = (sought.source, mem::take(&mut sought.asks_first));
        let sets = [source];
        plan.leaves_resting = self.resting.in_use();
        plan.by_list = !asks_first && self.neighbours.in_use();
        plan.arranges = !asks_first && !plan.by_list;
        plan.by_list = self.check(&sets, self.as_next_frame(), plan)?;
        if asks_first {
            self.stages.pause(&self.stream)?;
            let state = self.counters.read(&self.stream)?;
            if state.changed == 0 {
                return Ok(Round::Unchanged(state));
            }
            if self.neighbours.in_use() {
                return Ok(Round::Again);
            }
            if plan.leaves_resting && state.resting_changed != 0 {
                self.resting.release();
                return Ok(Round::Again);
            }
        }
        if plan.by_list {
            if let Some(found) = self.read_neighbours(plan, source)? {
                return Ok(Round::Found(found));
            }
            plan.by_list = false;
        }
        if sought.may_have_list {
            if self.build_list()? {
                return Ok(Round::Again);
            }
            let Self {
                stream,
                spare,
                scene,
                ..
            } = self;
            self.neighbours.watch(stream, spare, scene)?;
        }
        if plan.leaves_resting {
            self.resting.gather_active(&self.stream, &self.spare)?;
        }
        self.arrange(plan)?;
        let all = 0..source.len() as u64;
        Ok(match self.find_pairs(plan, &sets, all)? {
            Some(found) => Round::Found(found),
            None => {
                self.resting.release();
                Round::Again
            }
        })
    }

    /// Returns how boxes of the next frame are read.
    fn as_next_frame(&self) -> Reading {
        Reading::Frame {
            margin: self.config.margin,
        }
    }

    /// Builds the resting set from the static and sleeping boxes of the last update, if they have
    /// been unchanged for long enough.
    fn build_resting(&mut self) -> Result<()> {
        if !self.resting.is_due() || self.neighbours.in_use() {
            return Ok(());
        }
        let accept = self.scene.accept(self.config.rule, 0..self.scene.n as u64);
        let limit = self.pair_limit()?;
        // SAFETY: the addresses are those of this scene.
        let built = unsafe { self.resting.build(&self.stream, &self.scene, accept, limit) };
        match built {
            // Memory is refused: frames are searched as a whole, as before.
            Err(Error::TooManyPairs { .. }) => Ok(()),
            Err(error) if error.is_out_of_device_memory() => Ok(()),
            built => built,
        }
    }

    /// Uploads sets into the spare scene: the stage `upload`.
    fn upload(&mut self, sets: &[Source], reading: Reading) -> Result<()> {
        let (stream, reader) = (&self.stream, &mut self.reader);
        reader.start(stream)?;
        if sets.iter().any(Source::is_on_host) {
            self.stages.mark(stream, "upload")?;
        }
        let (margin, last) = match reading {
            Reading::Frame { margin } => (margin, self.has_last.then_some(&self.scene)),
            Reading::Alone => (0.0, None),
        };
        self.spare.upload(stream, reader, sets, margin, last)
    }

    /// Checks and stores the boxes that were uploaded, and tests the neighbour list by the plan:
    /// the stage `bounds`. Returns whether the list was tested.
    fn check(&mut self, sets: &[Source], reading: Reading, plan: &Plan) -> Result<bool> {
        // Before the stage begins, which is of what the device does.
        let list = if plan.by_list {
            self.candidates()?
        } else {
            None
        };
        self.stages.mark(&self.stream, "bounds")?;
        self.counters.reset(&self.stream)?;
        if list.is_some() {
            self.counters.record_use();
        }
        let clear = self.clear_ahead(sets, plan);
        let (margin, last) = match reading {
            Reading::Frame { margin } => (margin, self.has_last.then_some(&self.scene)),
            Reading::Alone => (0.0, None),
        };
        let last = last.map(|scene| Last {
            scene,
            leaves_resting: plan.leaves_resting,
            list,
        });
        let beside = Beside {
            state: self.counters.ptr(),
            clear,
        };
        self.spare
            .prepare(&self.stream, &self.reader, beside, sets, margin, last)?;
        if self.spare.n > 0 {
            self.counters.record_cleared();
        }
        Ok(list.is_some())
    }

    /// Returns what is to be zero for the steps after the stage `bounds`, if these are known to
    /// come and it is little, and for the next update.
    fn clear_ahead(&mut self, sets: &[Source], plan: &Plan) -> [Clear; 3] {
        // The threads of the first launch, one for each box, do not clear what many boxes before
        // them needed.
        let first = sets.iter().map(Source::len).find(|&n| n > 0).unwrap_or(0);
        let max = if plan.arranges {
            MAX_CLEARED.min(2 * first as u64 + 1024)
        } else {
            0
        };
        [
            self.counters.clear_ahead(),
            self.grid.clear_ahead(max),
            self.pair_orders[0].clear_ahead(max),
        ]
    }

    /// Reads sets into the spare scene on their own, without margin.
    pub(crate) fn read_alone(&mut self, sets: &[Source]) -> Result<()> {
        self.upload(sets, Reading::Alone)?;
        self.check(sets, Reading::Alone, &Plan::new(&self.config))?;
        Ok(())
    }

    /// Ends an update: downloads what was found, and swaps it with the last result.
    fn publish(&mut self, source: Source, plan: &Plan, found: &Searched) -> Result<Report> {
        let (stream, state) = (self.stream.clone(), &found.state);
        let from_host = source.is_on_host();
        let invalid = source.invalid(&stream, state.invalid, state.first_invalid)?;
        let count = state.pairs as usize;
        let counts = if self.config.events {
            [state.started, state.ended]
        } else {
            [0; 2]
        };
        let (lists, totals) = (self.lists(count), self.counters.event_counts());
        let events = &mut self.spare_events;
        // SAFETY: the lists are those that were compared.
        let is_done = unsafe { events.complete(&stream, lists, totals, counts) }
            .map_err(|error| out_of_memory(&self.config, state.pairs, error))?;
        let [started, ended] = [events.started()?, events.ended()?];
        let found_by = if plan.by_list {
            self.found_by
        } else {
            FoundBy::new(plan, state.axis)
        };
        let report = found_by.report(source.len(), invalid);
        let mut report = Report {
            pairs: state.pairs,
            started: started.len() as u64,
            ended: ended.len() as u64,
            stats: Stats {
                tests: state.tests + state.resting_tests + plan.wasted,
                resting: self.resting.len() as u64,
                regrown: found.regrown,
                sorts: state.sorts(),
                ..report.stats
            },
            ..report
        };

        if from_host {
            self.stages.mark(&stream, "download")?;
            let [pairs, of_started, of_ended] = &mut self.spare_host;
            pairs.download(&stream, self.ordered.part(count)?.cast()?)?;
            of_started.download(&stream, started)?;
            of_ended.download(&stream, ended)?;
        }
        let is_done = is_done && !from_host;
        report.stats.timings = self.stages.timings(&stream, is_done)?;

        // Nothing can fail from here on: the new result is swapped with the last.
        self.spare.has_bad = invalid.is_some();
        mem::swap(&mut self.scene, &mut self.spare);
        mem::swap(&mut self.list, &mut self.ordered);
        mem::swap(&mut self.events, &mut self.spare_events);
        mem::swap(&mut self.host, &mut self.spare_host);
        self.is_on_host = from_host;
        if !from_host {
            self.host.iter_mut().for_each(HostPairs::clear);
        }
        self.pairs = count;
        self.has_last = true;
        self.was_unchanged = false;
        self.found_by = found_by;
        self.resting
            .record_frame(plan.may_skip && state.resting_changed == 0);
        if plan.by_list {
            self.neighbours.record_served(report.n, report.pairs);
        } else {
            self.neighbours.record_search(report.n, report.pairs);
        }
        Ok(report)
    }

    /// Ends an update that found everything unchanged: the last result is this one's.
    fn publish_unchanged(&mut self, source: Source, state: &State) -> Result<Report> {
        let invalid = source.invalid(&self.stream, state.invalid, state.first_invalid)?;
        Invalid::check(invalid, self.config.on_invalid)?;
        if source.is_on_host() {
            self.download()?;
        }
        let mut report = self.found_by.report(source.len(), invalid);
        report.pairs = self.pairs as u64;
        report.stats.resting = self.resting.len() as u64;
        report.stats.sorts = state.sorts();
        let is_done = !source.is_on_host();
        report.stats.timings = self.stages.timings(&self.stream, is_done)?;
        self.was_unchanged = true;
        self.clear_events();
        // Boxes may have moved within their margin.
        self.spare.has_bad = invalid.is_some();
        mem::swap(&mut self.scene, &mut self.spare);
        Ok(report)
    }
}
