//! From boxes that are stored to pairs in order: planned, arranged, found, ordered and compared, in as many attempts as it takes.

use crate::cuda::abi::{GRID_WORDS, OF_BOXES, SWEEP_WORDS, State};
use crate::cuda::engine::Engine;
use crate::cuda::events::Difference;
use crate::cuda::find::bound::{Bound, Finder};
use crate::cuda::find::grid::Asked;
use crate::cuda::find::plan::Plan;
use crate::cuda::find::sweep::packed;
use crate::cuda::input::scene::{Scene, address};
use crate::cuda::input::source::Source;
use crate::cuda::limits::out_of_memory;
use crate::cuda::order::rows::Rows;
use crate::cuda::resting::RestingSet;
use crate::cuda::stages::HOST;
use crate::{Choice, Config, Result, Strategy};
use gpu::SliceMut;
use gpusort::Algorithm;
use std::ops::Range;

/// `Auto` takes the sweep where it is expected to take less than this part of what cells take: where boxes crowd, the sample
/// tells less of cells than of intervals.
const SURE: f64 = 0.5;

/// What an attempt to find all pairs came to.
#[expect(clippy::large_enum_variant, reason = "one at a time, and not kept")]
enum Attempt {
    /// They are in order.
    Done(State),
    /// They are so many, more than there is memory for yet.
    Grow(u64),
    /// Once more, in the way that is planned now.
    Retry,
    /// Once more with the resting set among the other boxes: it has changed, or takes too many tests.
    Whole,
}

/// Pairs found and in order, and how often memory for them has grown.
pub(crate) struct Found {
    pub(crate) state: State,
    pub(crate) regrown: u32,
}

impl Engine {
    /// Plans what finds the pairs of the frame at hand, and puts its boxes in order for that.
    pub(crate) fn arrange(&mut self, config: &Config, plan: &mut Plan) -> Result<()> {
        self.stages.mark(&self.stream, "keys")?;
        loop {
            self.choose(config, plan)?;
            match self.put_boxes_in_order(plan) {
                Err(error) if plan.finder == Finder::Tree && error.is_out_of_device_memory() => {
                    self.do_without_tree(plan);
                }
                arranged => return arranged,
            }
        }
    }

    fn choose(&mut self, config: &Config, plan: &mut Plan) -> Result<()> {
        plan.choice = None;
        plan.finder = match config.strategy {
            Strategy::Auto if self.bound.begin(self.spare.n) => Finder::Tree,
            Strategy::Auto | Strategy::Subdivided => {
                let scene = swept(&self.resting, &self.spare, plan);
                self.grid.plan(&self.stream, scene)?;
                Finder::Cells
            }
            strategy => Finder::Axis(strategy),
        };
        if config.strategy != Strategy::Auto {
            return Ok(());
        }
        if plan.finder == Finder::Tree {
            plan.choice = self.bound.choice();
            return Ok(());
        }
        plan.choice = self.grid.choice();
        let sweeps = |choice: Choice| {
            let cells = choice.subdivided_ms;
            cells.is_none_or(|ms| choice.sweep_ms < SURE * ms)
        };
        if plan.choice.is_some_and(sweeps) {
            plan.finder = Finder::Axis(Strategy::Sweep);
        }
        Ok(())
    }

    /// Lets the call take any number of tests: there is no memory for the tree.
    fn do_without_tree(&mut self, plan: &mut Plan) {
        self.bound = Bound::default();
        plan.is_bounded = false;
    }

    fn put_boxes_in_order(&mut self, plan: &Plan) -> Result<()> {
        let asked = self.asked(plan, 0..self.spare.n as u64);
        let (scene, ids) = (
            swept(&self.resting, &self.spare, plan),
            ids(&self.resting, plan),
        );
        match plan.finder {
            Finder::Cells => {
                self.stages.mark(&self.stream, "sort")?;
                self.grid.arrange(&self.stream, scene, ids, asked.state)
            }
            Finder::Tree => {
                self.stages.mark(&self.stream, "sort")?;
                let mut tools = self.sweep.sort_tools();
                // SAFETY: the lists are those of this frame.
                unsafe { self.tree.arrange(&mut tools, scene, ids, asked)? };
                self.sweep.keep_outcome(OF_BOXES)
            }
            Finder::Axis(_) => {
                self.sweep.choose_axis(scene)?;
                self.sweep.make_keys(scene)?;
                self.stages.mark(&self.stream, "sort")?;
                self.sweep.sort(scene, plan.may_rest)?;
                if plan.leaves_resting {
                    // SAFETY: the boxes that were sorted have a place each.
                    unsafe { self.resting.number(&self.stream, self.sweep.index())? };
                }
                Ok(())
            }
        }
    }

    /// Finds the pairs of the frame arranged with `a` in a range and puts them in order in `ordered`, whose memory grows until all
    /// fit; with `events` they are compared with the last list too. Waits once for each attempt. None where the resting set must be
    /// found with the other boxes. Bad boxes of the `sets` are an error first.
    pub(crate) fn find_pairs(
        &mut self,
        config: &Config,
        plan: &mut Plan,
        sets: &[Source],
        a: Range<u64>,
        events: bool,
    ) -> Result<Option<Found>> {
        if self.packed.capacity() == 0 && config.initial_pair_capacity.is_none() {
            // At first two pairs a box. No memory yet is no error: the attempt tells how much is needed.
            let limit = usize::try_from(self.pair_limit(config)?).unwrap_or(usize::MAX);
            let wished = 2 * self.spare.n + 1024;
            let _ = self.packed.reserve_exact(&self.stream, wished.min(limit));
        }
        let mut regrown = 0;
        loop {
            match self.attempt(config, plan, sets, a.clone(), events)? {
                Attempt::Done(state) => return Ok(Some(Found { state, regrown })),
                Attempt::Grow(pairs) => {
                    self.make_room(config, pairs, self.pair_limit(config)?)?;
                    regrown += 1;
                }
                Attempt::Retry => {}
                Attempt::Whole => return Ok(None),
            }
        }
    }

    fn attempt(
        &mut self,
        config: &Config,
        plan: &mut Plan,
        sets: &[Source],
        a: Range<u64>,
        events: bool,
    ) -> Result<Attempt> {
        self.stages.mark(&self.stream, "sweep")?;
        let by_rows = self.sweep(config, plan, a)?;
        // Should there be no memory to order them, the sweep still tells how many there are.
        let ordered = self.order_and_compare(by_rows, events);
        self.stages.mark(&self.stream, HOST)?;
        let state = self.sweep.read()?;
        let is_ordered = !by_rows || Rows::are_short(&state);
        if !is_ordered {
            self.sweep.rows.give_up();
        }
        if plan.finder == Finder::Cells {
            self.grid
                .note(swept(&self.resting, &self.spare, plan).n, &state);
        }
        if plan.leaves_resting && state.still_changed != 0 {
            return Ok(Attempt::Whole);
        }
        self.refuse_invalid(config, sets, &state)?;
        if state.stopped != 0 {
            self.take_the_tree(plan, &state)?;
            return Ok(if plan.leaves_resting {
                Attempt::Whole
            } else {
                Attempt::Retry
            });
        }
        self.kept_within_bound(plan);
        if state.pairs > self.packed.capacity() as u64 {
            return Ok(Attempt::Grow(state.pairs));
        }
        if !is_ordered {
            return Ok(Attempt::Retry);
        }
        ordered.map_err(|error| out_of_memory(config, state.pairs, error))?;
        Ok(Attempt::Done(state))
    }

    /// Finds the pairs of the frame arranged with `a` in a range, packed, in no order, as many as there is memory for; counts
    /// them all. Answers whether they are counted by rows too.
    pub(crate) fn sweep(&mut self, config: &Config, plan: &Plan, a: Range<u64>) -> Result<bool> {
        let capacity = self.packed.capacity();
        let rows = match config.sort {
            Algorithm::Auto if self.stages.on => {
                self.sweep
                    .rows
                    .begin(&self.stream, self.spare.n, capacity)?
            }
            _ => None,
        };
        let by_rows = rows.is_some();
        let keys = packed(&self.spare, &self.packed.part_mut(capacity)?, rows);
        self.zero_counters(plan)?;
        let asked = self.asked(plan, a.clone());
        let ids = ids(&self.resting, plan);
        // SAFETY: the addresses are those of this frame and this engine.
        unsafe {
            if plan.leaves_resting {
                self.resting.seed(&self.stream, keys, asked.state)?;
                let limit = plan.limit(Finder::Cells, self.spare.n);
                let asked = Asked { limit, ..asked };
                self.resting.find(&self.stream, asked, keys)?;
            }
            let scene = swept(&self.resting, &self.spare, plan);
            match plan.finder {
                Finder::Cells => self.grid.find(&self.stream, scene.n, asked, keys)?,
                Finder::Tree => self.tree.find(&self.stream, scene, ids, asked, keys)?,
                Finder::Axis(_) => self.sweep.find(&self.spare, a, keys, asked.limit)?,
            }
        }
        Ok(by_rows)
    }

    /// Counts the pairs of the frame arranged by `a`, and gives the counters. Waits.
    pub(crate) fn count_by_a(&mut self, plan: &mut Plan, mut by_a: SliceMut<u32>) -> Result<State> {
        loop {
            let asked = self.asked(plan, 0..self.spare.n as u64);
            self.zero_counters(plan)?;
            self.stream.fill_u32(by_a.reborrow(), 0)?;
            let (stream, counts) = (&self.stream, by_a.reborrow());
            // SAFETY: as in `sweep`.
            unsafe {
                match plan.finder {
                    Finder::Cells => self.grid.count_by_a(stream, self.spare.n, asked, counts)?,
                    Finder::Tree => self.tree.count_by_a(stream, &self.spare, asked, counts)?,
                    Finder::Axis(_) => {
                        self.sweep.count_by_a(&self.spare, counts, asked.limit)?;
                    }
                }
            }
            let state = self.sweep.read()?;
            if state.stopped == 0 {
                self.kept_within_bound(plan);
                return Ok(state);
            }
            self.take_the_tree(plan, &state)?;
        }
    }

    /// Puts the pairs found in order, and compares them with the last list.
    pub(crate) fn order_and_compare(&mut self, by_rows: bool, events: bool) -> Result<()> {
        let capacity = self.packed.capacity();
        self.stages.mark(&self.stream, "compact")?;
        self.ordered.reserve_exact(&self.stream, capacity)?;
        let packed = self.packed.part(capacity)?;
        let ordered = self.ordered.part_mut(capacity)?;
        self.sweep
            .put_in_order(&self.spare, packed, ordered, by_rows)?;

        self.stages.mark(&self.stream, "events")?;
        self.spare_events.iter_mut().for_each(Difference::clear);
        if events {
            let (lists, totals) = (self.lists(capacity), self.sweep.event_counts());
            let (events, kernels) = (&mut self.spare_events, &self.sweep.kernels);
            // SAFETY: the lists and numbers are this engine's.
            unsafe { Difference::find(events, &self.stream, kernels, lists, totals)? };
        }
        Ok(())
    }

    /// Plans the tree in the place of what went beyond its bound. With the resting set left out, the frame is to be arranged anew.
    fn take_the_tree(&mut self, plan: &mut Plan, state: &State) -> Result<()> {
        self.bound.exceeded(self.spare.n, plan.choice);
        plan.wasted += plan.finder.made(state);
        self.grid.forget();
        if plan.leaves_resting {
            return Ok(());
        }
        let given_up = (plan.finder, plan.choice);
        (plan.finder, plan.choice) = (Finder::Tree, self.bound.choice());
        match self.put_boxes_in_order(plan) {
            // The boxes are in the order of what was given up still.
            Err(error) if error.is_out_of_device_memory() => {
                (plan.finder, plan.choice) = given_up;
                self.do_without_tree(plan);
                Ok(())
            }
            arranged => arranged,
        }
    }

    /// What is asked of a finder for the frame at hand.
    fn asked(&self, plan: &Plan, a: Range<u64>) -> Asked {
        Asked {
            accept: self.sweep.accept(&self.spare, a),
            worlds: address(&self.spare.worlds),
            state: self.sweep.state.ptr(),
            limit: plan.limit(plan.finder, self.spare.n),
        }
    }

    fn zero_counters(&mut self, plan: &Plan) -> Result<()> {
        let on_axis = matches!(plan.finder, Finder::Axis(_));
        self.sweep
            .zero(if on_axis { SWEEP_WORDS } else { GRID_WORDS })
    }

    fn kept_within_bound(&mut self, plan: &Plan) {
        if plan.is_bounded && plan.finder != Finder::Tree {
            self.bound.kept();
        }
    }
}

/// The boxes of the frame `spare` that are sorted and swept.
const fn swept<'a>(resting: &'a RestingSet, spare: &'a Scene, plan: &Plan) -> &'a Scene {
    if plan.leaves_resting {
        resting.moving()
    } else {
        spare
    }
}

/// The address of their numbers in the frame; 0 where they are all of it.
fn ids(resting: &RestingSet, plan: &Plan) -> u64 {
    if plan.leaves_resting {
        resting.moving_ids()
    } else {
        0
    }
}
