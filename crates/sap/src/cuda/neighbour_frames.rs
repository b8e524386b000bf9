//! Frames by the neighbour list, and those that build it.

use crate::cuda::abi::{Candidates, HAS_LEFT};
use crate::cuda::engine::Engine;
use crate::cuda::events::Space;
use crate::cuda::find::attempt::Searched;
use crate::cuda::find::plan::Plan;
use crate::cuda::input::source::Source;
use crate::cuda::neighbours::Frames;
use crate::{Result, Strategy};

impl Engine {
    /// Tells whether the uploaded frame, which is like the last one, may have a neighbour list.
    pub(crate) fn may_have_list(&self) -> bool {
        self.config.strategy == Strategy::Auto
            && self.config.margin == 0.0
            && self.neighbours.suits(self.spare.n)
            && self.spare.is_plain()
            && !self.resting.in_use()
    }

    /// Returns the candidates of the neighbour list to test, with memory for the pairs of the
    /// uploaded frame. If that is refused, there is no list any more.
    pub(crate) fn candidates(&mut self) -> Result<Option<Candidates>> {
        match self.reserved_candidates() {
            Err(error) if error.is_out_of_device_memory() => {
                self.neighbours.release();
                Ok(None)
            }
            candidates => candidates.map(Some),
        }
    }

    fn reserved_candidates(&mut self) -> Result<Candidates> {
        self.raise_capacity_ahead();
        let capacity = self.packed.capacity();
        self.ordered.reserve_exact(&self.stream, capacity)?;
        let events = if self.config.events {
            self.spare_events
                .reserve(&self.stream, [capacity, self.pairs])?
        } else {
            Space::NONE
        };
        let pairs = self.ordered.part_mut(capacity)?;
        self.neighbours.candidates(self.config.rule, &pairs, events)
    }

    /// Reads what the neighbour list has found. Waits. Returns none where a box has left its
    /// loosened one, or the pairs exceed the capacity: there is no list any more.
    pub(crate) fn read_neighbours(
        &mut self,
        plan: &Plan,
        source: Source,
    ) -> Result<Option<Searched>> {
        if plan.compares && self.neighbours.is_new() {
            self.stages.mark(&self.stream, "events")?;
            let lists = self.lists(self.packed.capacity());
            let totals = self.counters.event_counts();
            // SAFETY: the lists and counts are this engine's.
            unsafe { self.spare_events.find(&self.stream, lists, totals)? };
        }
        self.stages.pause(&self.stream)?;
        let mut state = self.counters.read(&self.stream)?;
        if state.left & HAS_LEFT != 0 || state.pairs > self.packed.capacity() as u64 {
            self.neighbours.record_left();
            return Ok(None);
        }
        self.check_invalid(&[source], &state)?;
        if state.changed != 0 {
            state.tests = self.neighbours.len() as u64;
        }
        Ok(Some(Searched { state, regrown: 0 }))
    }

    /// Builds the neighbour list of the uploaded frame, if it is due. Returns whether there is one
    /// now. Waits.
    pub(crate) fn build_list(&mut self) -> Result<bool> {
        if !self.neighbours.is_due() {
            return Ok(false);
        }
        self.stages.mark(&self.stream, "sort")?;
        let frames = Frames {
            next: &self.spare,
            last: &self.scene,
            rule: self.config.rule,
        };
        let (stream, sorting) = (&self.stream, &mut self.sorting);
        self.neighbours
            .build(stream, sorting, frames, self.pairs as u64)?;
        Ok(self.neighbours.in_use())
    }
}
