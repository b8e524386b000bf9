//! An update whose boxes are on the device, and whose pairs stay there.
//!
//! The host reads counters only: the invalid boxes and whether any has changed, the copies in
//! columns, the tests, the pairs, and those that both the last lists have. Every few frames it also
//! reads a sample of the boxes for a new plan. The lists of events are made where they are
//! downloaded.
//!
//! A frame like the last is one submission and one wait
//! ([`one_submission`](super::one_submission)). Where the last says too little about it, or it has
//! outgrown what that promised, the host waits for each number.

use super::counts::Counts;
use super::engine::{Cost, Engine, check_pairs, unchanged};
use super::frame::WgpuFrame;
use super::lists::PairLists;
use super::reader::ReadResult;
use super::resident::KeptPlan;
use super::scene::DeviceScene;
use super::search::Arranged;
use crate::cpu::shared::{Clock, max_pairs};
use crate::{Invalid, Report, Result};

impl Engine {
    /// Finds all pairs of a frame on the device, and leaves them there.
    pub(crate) fn update_wgpu(&mut self, frame: &WgpuFrame) -> Result<Report> {
        let mut clock = Clock::start();
        if !self.is_on_device {
            self.bring_to_device()?;
        }
        let mut scene = std::mem::take(&mut self.resident.spare);
        let result = self.update_resident(frame, &mut scene, &mut clock);
        if result.is_ok() {
            std::mem::swap(&mut self.resident.scene, &mut scene);
        }
        self.resident.spare = scene;
        let report = result?;
        self.last = Some(report.clone());
        Ok(report)
    }

    /// Uploads what the next update needs of one whose boxes were on the host.
    fn bring_to_device(&mut self) -> Result<()> {
        self.resident.clear();
        let gpu = self.search.gpu();
        if self.last.is_some() && self.config.margin > 0.0 {
            let stored = &self.scene.boxes;
            self.resident.scene.upload(gpu.device(), stored)?;
        }
        if self.config.events {
            self.resident
                .upload(gpu, &self.pairs, self.search.max_list)?;
        }
        Ok(())
    }

    fn update_resident(
        &mut self,
        frame: &WgpuFrame,
        scene: &mut DeviceScene,
        clock: &mut Clock,
    ) -> Result<Report> {
        let gpu = self.search.gpu().clone();
        let mut batch = std::mem::take(&mut self.search.batch);
        let (resident, margin) = (&mut self.resident, self.config.margin);
        let is_like = (resident.reader).read(&mut batch, frame, margin, &resident.scene, scene)?;
        // Nothing moved in the last frame, so likely nothing has now, which is worth a wait. A
        // search ahead only saves time: one that was refused memory is made again below, by the
        // true numbers, and a lost device is the error of the submission below.
        let ahead = if resident.was_same {
            None
        } else {
            let read = batch.len();
            let ahead = self.search_ahead(&mut batch, scene).ok().flatten();
            if ahead.is_none() {
                batch.truncate(read);
            }
            ahead
        };
        clock.lap(|timings| &mut timings.bounds);
        let mut parts: Vec<_> = (self.resident.reader.counters().into_iter())
            .map(|counters| (counters, 0..ReadResult::BYTES))
            .collect();
        if let Some(ahead) = &ahead {
            parts.extend(self.outcome(ahead));
        }
        let outcome = batch.submit_and_download(gpu.device(), &parts)?;
        let outcome: Vec<u8> = outcome.wait()?;
        clock.lap(|timings| &mut timings.sweep);
        let (counted, outcome) = outcome.split_at(ReadResult::BYTES as usize);
        let reading = ReadResult::new(counted, is_like);
        let invalid = (self.resident.reader).invalid(&mut batch, frame, reading.invalid)?;
        self.search.batch = batch;
        Invalid::check(invalid, self.config.on_invalid)?;
        if let (true, Some(last)) = (reading.is_same, &self.last) {
            let report = unchanged(last, invalid, clock);
            self.started.clear();
            self.ended.clear();
            (self.resident.was_same, self.resident.has_events) = (true, false);
            return Ok(report);
        }
        let found = match ahead {
            Some(ahead) => self.take(&ahead, outcome, scene)?,
            None => None,
        };
        let (cost, [started, ended]) = match found {
            Some(found) => found,
            None => self.search_waiting(scene, clock)?,
        };
        let report = Report {
            pairs: self.resident.next.view().len(),
            started,
            ended,
            invalid,
            ..cost.report(&self.config, scene.n, clock)
        };
        // Nothing can fail from here on.
        self.resident.publish();
        (self.resident.was_same, self.resident.has_events) = (false, self.config.events);
        self.subdivision = cost.subdivision;
        (self.is_on_device, self.is_on_host) = (true, false);
        self.pairs.clear();
        self.started.clear();
        self.ended.clear();
        Ok(report)
    }

    /// Finds the next list of pairs, and waits for each number that a launch depends on.
    fn search_waiting(
        &mut self,
        scene: &mut DeviceScene,
        clock: &mut Clock,
    ) -> Result<(Cost, [u64; 2])> {
        let arranged = self.arrange_resident(scene, clock)?;
        self.find_resident(arranged, scene, clock)
    }

    /// Brings the boxes of a scene in order by a plan, by a new one where the last does no longer
    /// suit. Returns None where there can be no pair.
    fn arrange_resident(
        &mut self,
        scene: &mut DeviceScene,
        clock: &mut Clock,
    ) -> Result<Option<Arranged>> {
        if max_pairs(scene.n) == 0 {
            return Ok(None);
        }
        let kept = self.resident.plan.take();
        if let Some(mut plan) = kept.filter(|plan| plan.suits(scene)) {
            let arranged = self.arrange_by(&plan, scene, clock)?;
            if plan.record_frame(arranged.tests) {
                self.resident.plan = Some(plan);
                return Ok(Some(arranged));
            }
        }
        let drawn = (self.resident.reader).sample_now(&mut self.search.batch, scene)?;
        let mut plan = KeptPlan::new(&drawn, scene, self.config.strategy);
        let arranged = self.arrange_by(&plan, scene, clock)?;
        plan.record_frame(arranged.tests);
        self.resident.plan = Some(plan);
        Ok(Some(arranged))
    }

    fn arrange_by(
        &mut self,
        plan: &KeptPlan,
        scene: &mut DeviceScene,
        clock: &mut Clock,
    ) -> Result<Arranged> {
        let given = scene.given(self.search.gpu().device())?;
        let input = plan.input(given, &scene.excluded, self.config.rule);
        clock.lap(|timings| &mut timings.bounds);
        self.search.arrange(&input, clock)
    }

    /// Finds the next list of pairs, and counts those that started and ended.
    fn find_resident(
        &mut self,
        arranged: Option<Arranged>,
        scene: &DeviceScene,
        clock: &mut Clock,
    ) -> Result<(Cost, [u64; 2])> {
        let gpu = self.search.gpu().clone();
        let next = &mut self.resident.next;
        next.clear();
        let (Some(arranged), Some(plan)) = (arranged, &mut self.resident.plan) else {
            return Ok((
                Cost::default(),
                (self.resident).count_events(&gpu, &mut self.search.batch, &self.config)?,
            ));
        };
        let (axis, cuts) = (plan.axis, plan.cuts.clone());
        let max = max_pairs(scene.n);
        let first = self.config.initial_pair_capacity.unwrap_or(0).max(scene.n) as u64;
        let expected = self.resident.pairs.view().len().max(first).min(max);
        let mut lists = PairLists::new(&mut self.search, arranged, expected)?;
        clock.lap(|timings| &mut timings.sweep);
        let count = lists.count();
        check_pairs(&self.config, scene.n, max, count)?;
        lists.deliver(count, clock, |search, packed, clock| {
            let lists = (search.ordered().cloned(), search.counts()[0].cloned());
            if let (Some(ordered), Some(found)) = lists {
                let mut batch = std::mem::take(&mut search.batch);
                next.store(&gpu, &mut batch, [&ordered, &found], packed)?;
                batch.submit(gpu.device())?;
                search.batch = batch;
            }
            clock.lap(|timings| &mut timings.order);
            Ok(())
        })?;
        let counts = Counts {
            copies: lists.copies(),
            tests: lists.tests(),
            pairs: count,
        };
        // Boxes that the plan wants in columns, but that have too many copies, are counted first.
        let as_planned = lists.in_columns() == cuts.iter().any(|cuts| !cuts.is_empty());
        if as_planned {
            plan.take_sorted(counts);
        } else {
            plan.counts = None;
        }
        // One wait for what these count and for the reports of the sorts.
        let batch = &mut lists.search().batch;
        let events = self.resident.count_events(&gpu, batch, &self.config)?;
        clock.lap(|timings| &mut timings.events);
        Ok((Cost::new(lists, axis, cuts)?, events))
    }
}
