//! A search in one submission, whose memory and launches come from the numbers of the last frame.
//!
//! Kernels take the true numbers from the device. The host checks them when all is done: if one is
//! beyond its memory, the search is repeated with a wait for each.

use super::engine::{Cost, Engine, check_listed, columns};
use super::launch::Batch;
use super::reader::{DeviceScene, drawn_boxes};
use super::resident::{Counts, KeptPlan};
use super::search::{Listed, Prepared};
use crate::cpu::shared::{max_copies, max_pairs};
use crate::{Result, Sorts};
use gpusort::wgpu::Scratch;
use std::ops::Range;
use wgpu_device::wgpu::Buffer;

/// A search that was encoded.
pub(super) struct Ahead {
    prepared: Prepared,
    /// The numbers that there is memory for.
    capacity: Counts,
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
        let (search, resident) = (&mut self.search, &mut self.resident);
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
        let given = scene.given(gpu.device())?;
        let input = plan.input(given, &scene.excluded, self.config.rule);
        let mut prepared = search.prepare(&input)?;
        if prepared.in_columns {
            search.count_copies(batch, &prepared)?;
            search.make_copies(batch, &mut prepared, capacity.copies as u32)?;
        }
        search.sort_boxes(batch, &prepared)?;
        search.clear_pairs(batch)?;
        let rows = prepared.rows();
        search.find_piece(batch, &prepared, 0..capacity.tests, &rows, capacity.pairs)?;
        let max = Listed {
            pairs: capacity.pairs,
            index_bits: prepared.index_bits(),
        };
        search.order_pairs(batch, max.pairs, max.index_bits)?;
        let (Some(ordered), [Some(found), _]) = (search.ordered(), search.counts()) else {
            return Ok(None);
        };
        resident.next.clear();
        let (next, lists) = (&mut resident.next, [ordered, found]);
        if self.config.events {
            let compared = (&resident.pairs, &mut resident.counters);
            next.store_and_count(&gpu, batch, lists, max, compared)?;
        } else {
            next.store(&gpu, batch, lists, max)?;
        }
        let sample = if plan.is_last() {
            let (drawn, bytes) = resident.reader.sample(batch, scene)?;
            Some((drawn.clone(), bytes))
        } else {
            None
        };
        Ok(Some(Ahead {
            prepared,
            capacity,
            sample,
        }))
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
        [
            part(counters, 0..2 * COUNT),
            search.box_scratch.get().map(Scratch::outcome),
            search.pair_scratch.get().map(Scratch::outcome),
            part(copied, COUNT..2 * COUNT),
            part(events, 0..COUNT),
            (ahead.sample.as_ref()).map(|(drawn, bytes)| (drawn, bytes.clone())),
        ]
        .into_iter()
        .flatten()
    }

    /// Takes what the host has read of a search. Returns None if it had too little memory.
    pub(super) fn take(
        &mut self,
        ahead: &Ahead,
        outcome: &[u8],
        scene: &DeviceScene,
    ) -> Result<Option<(Cost, [u64; 2])>> {
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
        let events = self.config.events.then(|| count(next(COUNT)));
        let resident = &mut self.resident;
        let Some(mut plan) = resident.plan.take() else {
            return Ok(None);
        };
        let counts = Counts {
            copies: copies.or(plan.counts.map(|last| last.copies)).unwrap_or(0),
            tests,
            pairs,
        };
        if !counts.is_within(&ahead.capacity) {
            resident.plan = Some(plan);
            return Ok(None);
        }
        check_listed(&self.config, scene.n, max_pairs(scene.n), pairs)?;
        resident.next.set_count(pairs);
        let cost = Cost {
            tests,
            sorts,
            axis: plan.axis,
            subdivision: (ahead.prepared.in_columns).then(|| columns(plan.axis, plan.cuts.clone())),
            ..Cost::default()
        };
        let holds = plan.holds(tests);
        if ahead.sample.is_some() {
            plan = KeptPlan::new(&drawn_boxes(rest), scene, self.config.strategy);
        }
        plan.counts = Some(counts);
        plan.given = Some(ahead.capacity);
        resident.plan = holds.then_some(plan);
        let last = resident.pairs.view().len();
        let events = events.map(|common| [pairs - common, last - common]);
        Ok(Some((cost, events.unwrap_or_default())))
    }
}
