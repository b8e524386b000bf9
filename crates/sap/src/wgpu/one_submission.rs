//! A search in one submission, whose memory and launches come from the numbers of the last frame.
//!
//! Kernels take the true numbers from the device. The host checks them when all is done: if one is
//! beyond its memory, the search is repeated with a wait for each.

use super::cells::{Tallies, Task};
use super::counts::Counts;
use super::engine::{Cost, Engine, check_pairs, columns};
use super::launch::Batch;
use super::reader::drawn_boxes;
use super::resident::KeptPlan;
use super::scene::DeviceScene;
use super::search::{PackedList, Prepared};
use super::steps::Steps;
use crate::cpu::shared::{max_copies, max_pairs};
use crate::{Config, Result, Sorts};
use gpusort::wgpu::Scratch;
use std::ops::Range;
use wgpu_device::wgpu::Buffer;

/// A search that was encoded.
pub(super) struct Ahead {
    prepared: Prepared,
    /// The numbers that there is memory for.
    capacity: Counts,
    /// Whether it counts instead of sorting.
    by_cells: bool,
    /// Where the sample for the next plan is, if this frame is the last that follows its own.
    sample: Option<(Buffer, Range<u64>)>,
}

/// The bytes of a number of pairs, tests or copies.
const COUNT: u64 = size_of::<u64>() as u64;

impl Engine {
    /// Encodes a search by the plan of the last frame, if that says enough.
    pub(super) fn search_ahead(
        &mut self,
        batch: &mut Batch,
        scene: &mut DeviceScene,
    ) -> Result<Option<Ahead>> {
        let (search, resident) = (&mut self.search, &self.resident);
        let gpu = search.gpu().clone();
        let max = Counts {
            copies: max_copies(scene.n).min(search.max_list),
            tests: search.piece_tests,
            pairs: max_pairs(scene.n).min(search.max_list),
        };
        let plan = resident.plan.as_ref().filter(|plan| plan.suits(scene));
        let Some((plan, capacity)) = plan.and_then(|plan| Some((plan, plan.capacity(&max)?)))
        else {
            return Ok(None);
        };
        let (steps, is_last) = (plan.steps, plan.is_last());
        let given = scene.given(gpu.device())?;
        let input = plan.input(given, &scene.excluded, self.config.rule);
        let mut prepared = search.prepare(&input)?;
        let mut by_cells = false;
        if let Some(steps) = steps {
            by_cells = self.cells_ahead(batch, &prepared, steps, &capacity)?;
        }
        if !by_cells && !self.sorts_ahead(batch, &mut prepared, &capacity)? {
            return Ok(None);
        }
        let sample = if is_last {
            let (drawn, bytes) = self.resident.reader.sample(batch, scene)?;
            Some((drawn.clone(), bytes))
        } else {
            None
        };
        Ok(Some(Ahead {
            prepared,
            capacity,
            by_cells,
            sample,
        }))
    }

    /// Encodes a search that counts. Returns whether it can.
    fn cells_ahead(
        &mut self,
        batch: &mut Batch,
        prepared: &Prepared,
        steps: Steps,
        capacity: &Counts,
    ) -> Result<bool> {
        let resident = &mut self.resident;
        let last = resident.pairs.one();
        if last.is_none() && !resident.pairs.view().is_empty() {
            return Ok(false);
        }
        resident.next.clear();
        let device = self.search.gpu().device().clone();
        let stored = resident.next.add(&device, capacity.pairs)?;
        let last = last.filter(|_| self.config.events);
        let task = Task {
            params: prepared.params,
            lists: &prepared.lists,
            capacity,
        };
        let memory = &mut self.search.memory;
        (resident.cells).search(batch, memory, &task, steps, (stored, last))
    }

    /// Encodes a search that sorts boxes and pairs. Returns whether it can.
    fn sorts_ahead(
        &mut self,
        batch: &mut Batch,
        prepared: &mut Prepared,
        capacity: &Counts,
    ) -> Result<bool> {
        let (search, resident) = (&mut self.search, &mut self.resident);
        let gpu = search.gpu().clone();
        if prepared.in_columns {
            search.count_copies(batch, prepared)?;
            search.make_copies(batch, prepared, capacity.copies as u32)?;
        }
        search.sort_boxes(batch, prepared)?;
        search.clear_pairs(batch)?;
        let rows = prepared.rows();
        search.find_piece(batch, prepared, 0..capacity.tests, &rows, capacity.pairs)?;
        let max = PackedList {
            pairs: capacity.pairs,
            index_bits: prepared.index_bits(),
        };
        search.order_pairs(batch, max.pairs, max.index_bits)?;
        let (Some(ordered), [Some(found), _]) = (search.ordered(), search.counts()) else {
            return Ok(false);
        };
        resident.next.clear();
        let next = &mut resident.next;
        next.store(&gpu, batch, [ordered, found], max)?;
        if self.config.events {
            let (last, counters) = (&resident.pairs, &mut resident.counters);
            next.count_common(&gpu, batch, last, found, counters)?;
        }
        Ok(true)
    }

    /// Returns what the host reads of a search.
    pub(super) fn outcome<'a>(
        &'a self,
        ahead: &'a Ahead,
    ) -> impl Iterator<Item = (&'a Buffer, Range<u64>)> {
        let (search, events) = (&self.search, self.resident.counters.buffer());
        let [counters, copied] = search.counts();
        let part = |buffer: Option<&'a Buffer>, bytes| buffer.map(|buffer| (buffer, bytes));
        let copied = copied.filter(|_| ahead.prepared.in_columns);
        let events = events.filter(|_| self.config.events);
        let sorted = [
            part(counters, 0..2 * COUNT),
            search.box_scratch.get().map(Scratch::outcome),
            search.pair_scratch.get().map(Scratch::outcome),
            part(copied, COUNT..2 * COUNT),
            part(events, 0..COUNT),
        ];
        let counted = [self.resident.cells.tallies(), None, None, None, None];
        let sample = (ahead.sample.as_ref()).map(|(drawn, bytes)| (drawn, bytes.clone()));
        let parts = if ahead.by_cells { counted } else { sorted };
        parts.into_iter().chain([sample]).flatten()
    }

    /// Takes what the host has read of a search. Returns None if it had too little memory.
    pub(super) fn take(
        &mut self,
        ahead: &Ahead,
        outcome: &[u8],
        scene: &DeviceScene,
    ) -> Result<Option<(Cost, [u64; 2])>> {
        let Some(mut plan) = self.resident.plan.take() else {
            return Ok(None);
        };
        let (found, rest) = if ahead.by_cells {
            SearchOutcome::by_cells(outcome)
        } else {
            SearchOutcome::by_sorts(outcome, ahead, &self.config, &plan)
        };
        let counts = found.counts;
        if found.is_over || !counts.is_within(&ahead.capacity) {
            if ahead.by_cells {
                plan.cell_tests = Some(if found.is_over {
                    u64::MAX
                } else {
                    counts.tests
                });
            }
            self.resident.plan = Some(plan);
            return Ok(None);
        }
        let (resident, pairs) = (&mut self.resident, counts.pairs);
        check_pairs(&self.config, scene.n, max_pairs(scene.n), pairs)?;
        resident.next.set_count(pairs);
        let cost = Cost {
            tests: counts.tests,
            sorts: found.sorts,
            axis: plan.axis,
            subdivision: (ahead.prepared.in_columns).then(|| columns(plan.axis, plan.cuts.clone())),
            ..Cost::default()
        };
        let holds = plan.record_frame(counts.tests);
        if ahead.sample.is_some() {
            plan = KeptPlan::new(&drawn_boxes(rest), scene, self.config.strategy);
        }
        plan.counts = Some(counts);
        plan.given = Some(ahead.capacity);
        resident.plan = holds.then_some(plan);
        let last = resident.pairs.view().len();
        let events = (self.config.events).then(|| [pairs - found.common, last - found.common]);
        Ok(Some((cost, events.unwrap_or_default())))
    }
}

/// What the host has read of a search.
struct SearchOutcome {
    counts: Counts,
    sorts: Sorts,
    /// The pairs that the last list has too.
    common: u64,
    is_over: bool,
}

impl SearchOutcome {
    /// Takes what a search by cells has left, and returns the bytes behind it.
    fn by_cells(outcome: &[u8]) -> (Self, &[u8]) {
        let (tallies, rest) = outcome.split_at(Tallies::BYTES as usize);
        let Tallies {
            counts,
            common,
            is_over,
        } = Tallies::new(tallies);
        let sorts = Sorts {
            keys: counts.copies + counts.pairs,
            ..Sorts::default()
        };
        let found = Self {
            counts,
            sorts,
            common,
            is_over,
        };
        (found, rest)
    }

    /// Takes what a search that sorts has left, and returns the bytes behind it.
    fn by_sorts<'a>(
        outcome: &'a [u8],
        ahead: &Ahead,
        config: &Config,
        plan: &KeptPlan,
    ) -> (Self, &'a [u8]) {
        let mut rest = outcome;
        let mut next = |bytes: u64| {
            let (first, others) = rest.split_at(bytes as usize);
            rest = others;
            first
        };
        let count = |bytes: &[u8]| bytemuck::pod_read_unaligned::<u64>(bytes);
        let (pairs, tests) = (count(next(COUNT)), count(next(COUNT)));
        let mut sorts = Sorts::default();
        for _ in 0..2 {
            sorts += (&Scratch::report(next(Scratch::OUTCOME_BYTES))).into();
        }
        let copies = (ahead.prepared.in_columns).then(|| count(next(COUNT)));
        let common = config.events.then(|| count(next(COUNT)));
        let last = plan.counts.map(|last| last.copies);
        let found = Self {
            counts: Counts {
                copies: copies.or(last).unwrap_or(0),
                tests,
                pairs,
            },
            sorts,
            common: common.unwrap_or(0),
            is_over: false,
        };
        (found, rest)
    }
}
