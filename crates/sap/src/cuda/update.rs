//! An update, from top to bottom: upload, prepare, find, publish. How pairs are found, put in order and compared is in
//! `find/attempt.rs`, whose steps chunks, two sets and graphs take too.
//!
//! What belongs to one call is in its [`Plan`]. Nothing that can be seen changes before [`Engine::publish`], the last step.

use crate::cuda::abi::State;
use crate::cuda::engine::{Engine, refuse};
use crate::cuda::events::Difference;
use crate::cuda::find::attempt::Found;
use crate::cuda::find::plan::{FoundBy, Plan};
use crate::cuda::find::sweep::index_bits;
use crate::cuda::input::device_frame::DeviceFrame;
use crate::cuda::input::scene::Tools;
use crate::cuda::input::source::Source;
use crate::cuda::limits::out_of_memory;
use crate::cuda::memory::HostPairs;
use crate::{Config, Error, Frame, Report, Result};
use std::mem;

impl Engine {
    pub(crate) fn update(&mut self, config: &Config, frame: &Frame) -> Result<Report> {
        self.update_from(config, Source::Host(frame))
    }

    pub(crate) fn update_device(&mut self, config: &Config, frame: &DeviceFrame) -> Result<Report> {
        self.update_from(config, Source::Device(frame))
    }

    fn update_from(&mut self, config: &Config, source: Source) -> Result<Report> {
        let result = self.run(config, source);
        if result.is_err() {
            self.forget_stages();
        }
        result
    }

    fn run(&mut self, config: &Config, source: Source) -> Result<Report> {
        self.renew_resting(config)?;
        let mut plan = Plan::new(config);
        let found = loop {
            self.read(&[source], config.margin, true)?;
            plan.may_rest = self.has_last && self.spare.like(&self.scene);
            if !plan.may_rest {
                self.resting.release();
            }
            plan.leaves_resting = self.resting.is_on();
            // Nothing moved in the last frame: likely it is so again, which is worth a wait.
            if plan.may_rest && self.rested {
                let state = self.sweep.read()?;
                if state.changed == 0 {
                    return self.rest(config, source, &state);
                }
                if plan.leaves_resting && state.still_changed != 0 {
                    self.resting.release();
                    continue;
                }
            }
            if plan.leaves_resting {
                self.resting.gather_moving(&self.stream, &self.spare)?;
            }
            self.arrange(config, &mut plan)?;
            let all = 0..source.len() as u64;
            match self.find_pairs(config, &mut plan, &[source], all, config.events)? {
                Some(found) => break found,
                None => self.resting.release(),
            }
        };
        if plan.may_rest && found.state.changed == 0 {
            return self.rest(config, source, &found.state);
        }
        self.publish(config, source, &plan, &found)
    }

    /// Puts the static and sleeping boxes of the last update into the resting set, if they have been unchanged for long enough.
    pub(crate) fn renew_resting(&mut self, config: &Config) -> Result<()> {
        if !self.resting.is_due() {
            return Ok(());
        }
        let accept = self.sweep.accept(&self.scene, 0..self.scene.n as u64);
        let bits = index_bits(&self.scene);
        let limit = self.pair_limit(config)?;
        let (stream, kernels) = (&self.stream, &self.sweep.kernels);
        // SAFETY: the addresses are those of this scene.
        let taken = unsafe {
            self.resting
                .take(stream, kernels, &self.scene, accept, bits, limit)
        };
        match taken {
            // There is no memory for it: frames are found as a whole, as before.
            Err(Error::TooManyPairs { .. }) => Ok(()),
            Err(error) if error.is_out_of_device_memory() => Ok(()),
            taken => taken,
        }
    }

    /// Uploads sets into the spare scene, checks and stores their boxes; with the last update in mind, or apart from it.
    fn read(&mut self, sets: &[Source], margin: f32, with_last: bool) -> Result<()> {
        let stream = self.stream.clone();
        self.uploader.start(&stream)?;
        if sets.iter().any(|set| matches!(set, Source::Host(_))) {
            self.stages.mark(&self.stream, "upload")?;
        }
        let mut tools = Tools {
            stream: &stream,
            kernels: &self.sweep.kernels,
            uploader: &mut self.uploader,
            state: &self.sweep.state,
        };
        let last = (with_last && self.has_last).then_some(&self.scene);
        self.spare.upload(&mut tools, sets, margin, last)?;
        self.stages.mark(&self.stream, "bounds")?;
        self.sweep.reset()?;
        let apart = self.resting.is_on() && last.is_some_and(|last| self.spare.like(last));
        let tools = Tools {
            stream: &stream,
            kernels: &self.sweep.kernels,
            uploader: &mut self.uploader,
            state: &self.sweep.state,
        };
        self.spare.prepare(&tools, sets, margin, last, apart)
    }

    /// Reads sets into the spare scene, without margin and apart from the last update.
    pub(crate) fn read_apart(&mut self, sets: &[Source]) -> Result<()> {
        self.read(sets, 0.0, false)
    }

    /// Ends an update: what was found takes the place of the last result.
    fn publish(
        &mut self,
        config: &Config,
        source: Source,
        plan: &Plan,
        found: &Found,
    ) -> Result<Report> {
        let (stream, state) = (self.stream.clone(), &found.state);
        let from_host = matches!(source, Source::Host(_));
        let invalid = source.invalid(&stream, state.invalid, state.first_invalid)?;
        let count = state.pairs as usize;
        let counts = if config.events {
            [state.started, state.ended]
        } else {
            [0; 2]
        };
        let lists = self.lists(count);
        let (events, kernels) = (&mut self.spare_events, &self.sweep.kernels);
        let totals = self.sweep.event_counts();
        // SAFETY: the lists are those which the differences were found in.
        unsafe { Difference::complete(events, &stream, kernels, lists, totals, counts) }
            .map_err(|error| out_of_memory(config, state.pairs, error))?;
        let [started, ended] = &self.spare_events;
        let found_by = FoundBy::new(plan, state.axis);
        let mut report = Report {
            pairs: state.pairs,
            started: started.len() as u64,
            ended: ended.len() as u64,
            tests: state.tests + state.between + plan.wasted,
            resting: self.resting.len() as u64,
            regrown: found.regrown,
            sorts: state.sorts(),
            ..found_by.report(source.len(), invalid)
        };

        self.stages.mark(&stream, "download")?;
        if from_host {
            let [pairs, of_started, of_ended] = &mut self.spare_host;
            pairs.download(&stream, self.ordered.part(count)?.cast()?)?;
            of_started.download(&stream, started.pairs()?)?;
            of_ended.download(&stream, ended.pairs()?)?;
        }
        report.timings = self.stages.timings(&stream)?;

        // Everything is there: the new takes the place of the last.
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
        self.rested = false;
        self.found_by = found_by;
        self.resting.note(plan.may_rest && state.still_changed == 0);
        Ok(report)
    }

    /// Ends an update that found everything as it was.
    fn rest(&mut self, config: &Config, source: Source, state: &State) -> Result<Report> {
        let invalid = source.invalid(&self.stream, state.invalid, state.first_invalid)?;
        refuse(config, invalid)?;
        if matches!(source, Source::Host(_)) {
            self.download()?;
        }
        let report = Report {
            pairs: self.pairs as u64,
            resting: self.resting.len() as u64,
            sorts: state.sorts(),
            timings: self.stages.timings(&self.stream)?,
            ..self.found_by.report(source.len(), invalid)
        };
        self.rested = true;
        self.clear_events();
        // Boxes that moved within their margin are not where they were.
        self.spare.has_bad = invalid.is_some();
        mem::swap(&mut self.scene, &mut self.spare);
        Ok(report)
    }
}
