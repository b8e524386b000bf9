//! The stages from `keys` to `events`: from boxes that are stored to pairs in order, in as many
//! attempts as it takes.

use crate::cuda::abi::{BOX_SORT, Keys, State};
use crate::cuda::engine::Engine;
use crate::cuda::find::bound::{Bound, Finder};
use crate::cuda::find::plan::Plan;
use crate::cuda::find::search::{Active, Search};
use crate::cuda::input::scene::{Scene, address};
use crate::cuda::input::source::Source;
use crate::cuda::limits::out_of_memory;
use crate::cuda::order::Order;
use crate::cuda::resting::RestingSet;
use crate::cuda::tuning::PLAN_MS;
use crate::{Result, Strategy};
use gpu::{DevicePtr, SliceMut};
use gpusort::Algorithm;
use std::ops::Range;

/// The outcome of an attempt to find all pairs.
#[expect(clippy::large_enum_variant, reason = "one at a time, and not kept")]
enum Attempt {
    /// The pairs are in order.
    Done(State),
    /// The number of pairs exceeds the capacity.
    Grow(u64),
    /// The search must be repeated by the plan, which may have changed.
    Retry,
    /// The frame must be searched with the resting set among the other boxes: it has changed, or
    /// takes too many tests.
    Whole,
}

/// The counters of a search whose pairs are in order, and how often the capacity was raised.
pub(crate) struct Searched {
    pub(crate) state: State,
    pub(crate) regrown: u32,
}

impl Engine {
    /// Plans the search of the uploaded frame, and arranges its boxes: the stages `keys`, where it
    /// makes a new plan of cells or keys, and `sort`.
    pub(crate) fn arrange(&mut self, plan: &mut Plan) -> Result<()> {
        loop {
            self.choose_finder(plan)?;
            match self.arrange_boxes(plan) {
                Err(error) if plan.finder == Finder::Tree && error.is_out_of_device_memory() => {
                    self.do_without_tree(plan);
                }
                arranged => return arranged,
            }
        }
    }

    fn choose_finder(&mut self, plan: &mut Plan) -> Result<()> {
        let is_auto = self.config.strategy == Strategy::Auto;
        let takes_tree = is_auto && self.bound.begin_frame(self.spare.n);
        if takes_tree {
            (plan.finder, plan.choice) = (Finder::Tree, self.bound.choice());
            return Ok(());
        }
        plan.choice = None;
        plan.finder = match self.config.strategy {
            Strategy::Auto | Strategy::Subdivided => {
                let active = active(&self.resting, &self.spare, plan);
                if !self.grid.keep_plan(active.scene) {
                    self.stages.mark(&self.stream, "keys")?;
                    self.grid.plan_anew(&self.stream, active.scene)?;
                }
                Finder::Cells
            }
            strategy => Finder::Axis(strategy),
        };
        if !is_auto {
            return Ok(());
        }
        let choice = self.grid.choice();
        plan.choice = choice.map(|(choice, _)| choice);
        if choice.is_some_and(|(_, takes_sweep)| takes_sweep) {
            plan.finder = Finder::Axis(Strategy::Sweep);
        }
        Ok(())
    }

    /// Lets the call make any number of tests: there is no memory for the tree.
    fn do_without_tree(&mut self, plan: &mut Plan) {
        self.bound = Bound::default();
        plan.is_bounded = false;
    }

    fn arrange_boxes(&mut self, plan: &Plan) -> Result<()> {
        let search = self.search(plan, 0..self.spare.n as u64);
        let active = active(&self.resting, &self.spare, plan);
        if active.scene.n == 0 {
            return self.stages.mark(&self.stream, "sort");
        }
        let (stream, scene) = (&self.stream, active.scene);
        if plan.finder == Finder::Cells {
            self.stages.mark(stream, "sort")?;
            // SAFETY: the lists are those of this frame, the counters this engine's.
            return unsafe { self.grid.arrange(stream, active, search.state) };
        }
        if plan.finder == Finder::Tree {
            self.stages.mark(stream, "sort")?;
            let sorting = &mut self.sorting;
            // SAFETY: as above.
            unsafe { self.tree.arrange(stream, sorting, active, search)? };
        } else {
            self.stages.mark(stream, "keys")?;
            self.sweep.make_keys(stream, scene, search)?;
            self.stages.mark(stream, "sort")?;
            self.sweep.sort(stream, &mut self.sorting, scene, search)?;
        }
        let outcome = self.counters.sort_outcome(BOX_SORT)?;
        self.sorting.copy_outcome(stream, outcome)?;
        if plan.finder == Finder::Tree {
            return Ok(());
        }
        self.sweep
            .make_tiles(stream, scene, search, plan.may_skip)?;
        if plan.leaves_resting {
            // SAFETY: `index` has an entry for each of the boxes that were sorted.
            unsafe { self.resting.translate(stream, self.sweep.index())? };
        }
        Ok(())
    }

    /// Finds the pairs of the arranged frame with `a` in a range and puts them in order in
    /// `ordered`, whose capacity grows until all fit: the stages `sweep`, `order` and `events`.
    /// Waits once for each attempt. Returns none where the resting set must be searched with the
    /// other boxes. Invalid boxes of the `sets` are an error first.
    pub(crate) fn find_pairs(
        &mut self,
        plan: &mut Plan,
        sets: &[Source],
        a: Range<u64>,
    ) -> Result<Option<Searched>> {
        if self.packed.capacity() == 0 && self.config.initial_pair_capacity.is_none() {
            let limit = usize::try_from(self.pair_limit()?).unwrap_or(usize::MAX);
            // Two pairs a box at first.
            let wished = 2 * self.spare.n + 1024;
            // If memory is refused, the attempt counts the pairs all the same, and asks for theirs.
            let _ = self.packed.reserve_exact(&self.stream, wished.min(limit));
        }
        let mut regrown = 0;
        loop {
            match self.attempt(plan, sets, a.clone())? {
                Attempt::Done(state) => return Ok(Some(Searched { state, regrown })),
                Attempt::Grow(pairs) => {
                    self.raise_capacity(pairs, self.pair_limit()?)?;
                    regrown += 1;
                }
                Attempt::Retry => {}
                Attempt::Whole => return Ok(None),
            }
        }
    }

    fn attempt(&mut self, plan: &mut Plan, sets: &[Source], a: Range<u64>) -> Result<Attempt> {
        let scene = active(&self.resting, &self.spare, plan).scene;
        self.grid.watch(&self.stream, scene)?;
        self.raise_capacity_ahead();
        let order = self.sweep(plan, a)?;
        // If memory to order them is refused, the pairs are counted all the same.
        let ordered = self.order(plan, order);
        self.stages.pause(&self.stream)?;
        self.grid.plan_ahead(PLAN_MS)?;
        let state = self.counters.read(&self.stream)?;
        let bits = self.spare.index_bits();
        let is_ordered = self.pair_orders[self.spare.sets()].record(order, bits, &state);
        // A sweep of boxes that are all unchanged does nothing.
        if state.changed != 0 || !plan.may_skip {
            let active = active(&self.resting, &self.spare, plan);
            self.grid.record_work(plan.finder, active.scene.n, &state);
        }
        if plan.leaves_resting && state.resting_changed != 0 {
            return Ok(Attempt::Whole);
        }
        self.check_invalid(sets, &state)?;
        if state.stopped != 0 {
            self.take_tree(plan, &state)?;
            return Ok(if plan.leaves_resting {
                Attempt::Whole
            } else {
                Attempt::Retry
            });
        }
        self.record_kept(plan);
        if state.pairs > self.packed.capacity() as u64 {
            return Ok(Attempt::Grow(state.pairs));
        }
        if !is_ordered {
            return Ok(Attempt::Retry);
        }
        ordered.map_err(|error| out_of_memory(&self.config, state.pairs, error))?;
        Ok(Attempt::Done(state))
    }

    /// Finds the pairs of the arranged frame with `a` in a range, by any finder, packed and in no
    /// order, as many as the capacity takes, and counts them all. Returns the way to put them in
    /// order.
    pub(crate) fn sweep(&mut self, plan: &Plan, a: Range<u64>) -> Result<Order> {
        self.stages.mark(&self.stream, "sweep")?;
        let (stream, capacity) = (&self.stream, self.packed.capacity());
        let mut keys = Keys::new(&self.packed.part_mut(capacity)?, self.spare.index_bits());
        let order = match self.config.sort {
            Algorithm::Auto => {
                let are_all = a == (0..self.spare.smaller_indices() as u64);
                let order = &mut self.pair_orders[self.spare.sets()];
                order.begin(stream, self.spare.n, are_all, &mut keys)?
            }
            _ => Order::Sort(None),
        };
        self.restart_counters(plan)?;
        let search = self.search(plan, a);
        let (stream, active) = (&self.stream, active(&self.resting, &self.spare, plan));
        // SAFETY: the addresses are those of this frame and this engine.
        unsafe {
            if plan.leaves_resting {
                self.resting.add_pairs(stream, keys, search.state)?;
                let limit = plan.limit(Finder::Cells, self.spare.n);
                let search = Search { limit, ..search };
                self.resting.find(stream, search, keys)?;
            }
            match plan.finder {
                Finder::Cells => self.grid.find(stream, active.scene.n, search, keys)?,
                Finder::Tree => self.tree.find(stream, active, search, keys)?,
                Finder::Axis(_) => self.sweep.find(stream, active.scene.n, search, keys)?,
            }
        }
        Ok(order)
    }

    /// Counts the pairs of the arranged frame by `a`, and returns the counters. Waits.
    pub(crate) fn count_by_a(&mut self, plan: &mut Plan, mut by_a: SliceMut<u32>) -> Result<State> {
        loop {
            let search = self.search(plan, 0..self.spare.n as u64);
            self.restart_counters(plan)?;
            self.stream.fill_u32(by_a.reborrow(), 0)?;
            let (stream, counts, n) = (&self.stream, by_a.reborrow(), self.spare.n);
            let all = Active {
                scene: &self.spare,
                ids: DevicePtr::NULL,
            };
            // SAFETY: as in `sweep`.
            unsafe {
                match plan.finder {
                    Finder::Cells => self.grid.count_by_a(stream, n, search, counts)?,
                    Finder::Tree => self.tree.count_by_a(stream, all, search, counts)?,
                    Finder::Axis(_) => self.sweep.count_by_a(stream, n, search, counts)?,
                }
            }
            let state = self.counters.read(stream)?;
            if state.stopped == 0 {
                self.record_kept(plan);
                return Ok(state);
            }
            self.take_tree(plan, &state)?;
        }
    }

    /// Puts the pairs found in order, and compares them with the last list if the plan says so: the
    /// stages `order` and `events`.
    pub(crate) fn order(&mut self, plan: &Plan, order: Order) -> Result<()> {
        let capacity = self.packed.capacity();
        self.stages.mark(&self.stream, "order")?;
        let bits = self.spare.index_bits();
        let lists = (&self.packed, &mut self.ordered);
        let (sorting, counters) = (&mut self.sorting, &mut self.counters);
        let pair_order = &mut self.pair_orders[self.spare.sets()];
        pair_order.order(&self.stream, sorting, counters, order, bits, lists)?;

        self.spare_events.clear();
        if plan.compares {
            self.stages.mark(&self.stream, "events")?;
            let (lists, totals) = (self.lists(capacity), self.counters.event_counts());
            // SAFETY: the lists and counts are this engine's.
            unsafe { self.spare_events.find(&self.stream, lists, totals)? };
        }
        Ok(())
    }

    /// Plans the tree instead of the finder that exceeded its bound. If the resting set was left
    /// out, the frame must be arranged again.
    fn take_tree(&mut self, plan: &mut Plan, state: &State) -> Result<()> {
        self.bound.record_exceeded(self.spare.n, plan.choice);
        plan.wasted += plan.finder.tests_made(state);
        self.grid.drop_plan();
        if plan.leaves_resting {
            return Ok(());
        }
        let stopped = (plan.finder, plan.choice);
        (plan.finder, plan.choice) = (Finder::Tree, self.bound.choice());
        match self.arrange_boxes(plan) {
            // The boxes are still arranged for the finder that was stopped.
            Err(error) if error.is_out_of_device_memory() => {
                (plan.finder, plan.choice) = stopped;
                self.do_without_tree(plan);
                Ok(())
            }
            arranged => arranged,
        }
    }

    /// Returns the search of the uploaded frame for pairs with `a` in a range.
    fn search(&self, plan: &Plan, a: Range<u64>) -> Search {
        Search {
            accept: self.spare.accept(self.config.rule, a),
            worlds: address(&self.spare.worlds),
            state: self.counters.ptr(),
            limit: plan.limit(plan.finder, self.spare.n),
        }
    }

    fn restart_counters(&mut self, plan: &Plan) -> Result<()> {
        match plan.finder {
            Finder::Axis(_) => self.counters.restart_sweep(&self.stream),
            Finder::Cells | Finder::Tree => self.counters.restart_search(&self.stream),
        }
    }

    fn record_kept(&mut self, plan: &Plan) {
        if plan.is_bounded && plan.finder != Finder::Tree {
            self.bound.record_kept();
        }
    }
}

/// Returns the boxes of the frame `spare` that are sorted and searched.
fn active<'a>(resting: &'a RestingSet, spare: &'a Scene, plan: &Plan) -> Active<'a> {
    if plan.leaves_resting {
        resting.active()
    } else {
        Active {
            scene: spare,
            ids: DevicePtr::NULL,
        }
    }
}
