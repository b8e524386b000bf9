//! From a frame to its pairs in order: what an update, chunks, two sets and a graph have in common.

use super::bound::{Bound, Finder};
use super::engine::Engine;
use super::events::Difference;
use super::grid::Asked;
use super::held::Held;
use super::params::{GRID_WORDS, List, OF_BOXES, SWEEP_WORDS, State};
use super::scene::{Scene, Tools, address};
use super::source::Source;
use super::sweep::{index_bits, packed};
use crate::{Choice, Config, Error, Pair, Result, Strategy};
use gpu::SliceMut;
use gpusort::Algorithm;
use std::ops::Range;

/// `Auto` takes the sweep where it is expected to take less than this part of what cells take: where boxes crowd, the sample
/// tells less of cells than of intervals.
const SURE: f64 = 0.5;

/// The name of the time in which the device waits for the host.
pub(super) const HOST: &str = "host";

impl Engine {
    /// Uploads sets into the spare scene, checks and stores their boxes; with the last update in mind, or apart from it.
    pub(super) fn read(&mut self, sets: &[Source], margin: f32, with_last: bool) -> Result<()> {
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
        let apart = self.held.is_on() && last.is_some_and(|last| self.spare.like(last));
        let tools = Tools {
            stream: &stream,
            kernels: &self.sweep.kernels,
            uploader: &mut self.uploader,
            state: &self.sweep.state,
        };
        self.spare.prepare(&tools, sets, margin, last, apart)
    }

    /// Reads sets into the spare scene, without margin and apart from the last update.
    pub(super) fn read_apart(&mut self, sets: &[Source]) -> Result<()> {
        self.apart = false;
        self.read(sets, 0.0, false)
    }

    /// Chooses what finds the pairs of the frame at hand, and puts its boxes in order for that.
    pub(super) fn arrange(&mut self, config: &Config, may_rest: bool) -> Result<()> {
        self.stages.mark(&self.stream, "keys")?;
        self.choice = None;
        let scene = swept(&self.held, &self.spare, self.apart);
        self.finder = match config.strategy {
            Strategy::Auto if self.bound.begin(self.spare.n) => Finder::Tree,
            Strategy::Auto | Strategy::Subdivided => {
                self.grid.plan(&self.stream, scene)?;
                Finder::Cells
            }
            strategy => Finder::Axis(strategy),
        };
        if config.strategy == Strategy::Auto {
            self.choice = self.grid.choice();
            let sweeps = |choice: Choice| {
                let cells = choice.subdivided_ms;
                cells.is_none_or(|ms| choice.sweep_ms < SURE * ms)
            };
            if self.finder == Finder::Cells && self.choice.is_some_and(sweeps) {
                self.finder = Finder::Axis(Strategy::Sweep);
            }
        }
        let arranged = self.put_boxes_in_order(may_rest);
        if self.finder == Finder::Tree && arranged.as_ref().is_err_and(is_out_of_memory) {
            self.do_without_tree();
            return self.arrange(config, may_rest);
        }
        arranged
    }

    /// Lets the call take any number of tests: there is no memory for the tree.
    fn do_without_tree(&mut self) {
        self.bound = Bound::default();
        self.is_bounded = false;
    }

    fn put_boxes_in_order(&mut self, may_rest: bool) -> Result<()> {
        let asked = self.asked(0..self.spare.n as u64);
        let scene = swept(&self.held, &self.spare, self.apart);
        let ids = if self.apart {
            self.held.moving_ids()
        } else {
            0
        };
        match self.finder {
            Finder::Cells => {
                self.stages.mark(&self.stream, "sort")?;
                self.grid.arrange(&self.stream, scene, ids, asked.state)
            }
            Finder::Tree => {
                self.stages.mark(&self.stream, "sort")?;
                let mut tools = self.sweep.sort_tools();
                // SAFETY: the lists are those of this frame.
                unsafe { self.tree.arrange(&mut tools, scene, ids, asked)? };
                self.choice = self.bound.choice();
                self.sweep.keep_outcome(OF_BOXES)
            }
            Finder::Axis(_) => {
                self.sweep.choose_axis(scene)?;
                self.sweep.make_keys(scene)?;
                self.stages.mark(&self.stream, "sort")?;
                self.sweep.sort(scene, may_rest)?;
                if self.apart {
                    // SAFETY: the boxes that were sorted have a place each.
                    unsafe { self.held.number(&self.stream, self.sweep.index())? };
                }
                Ok(())
            }
        }
    }

    /// Takes the tree where what was chosen has been given up. Answers whether the pairs are to be found again.
    fn is_given_up(&mut self, state: &State) -> Result<bool> {
        if state.stopped == 0 {
            if self.is_bounded && self.finder != Finder::Tree {
                self.bound.kept();
            }
            return Ok(false);
        }
        self.bound.exceeded(self.spare.n, self.choice);
        self.wasted += self.finder.made(state);
        self.grid.forget();
        // The boxes held apart, if any, are to be found with the others.
        if !self.apart {
            let given_up = std::mem::replace(&mut self.finder, Finder::Tree);
            match self.put_boxes_in_order(false) {
                // The boxes are in the order of what was given up still.
                Err(error) if is_out_of_memory(&error) => {
                    self.finder = given_up;
                    self.do_without_tree();
                }
                arranged => arranged?,
            }
        }
        Ok(true)
    }

    /// What is asked of a grid for the frame at hand.
    fn asked(&self, a: Range<u64>) -> Asked {
        Asked {
            accept: self.sweep.accept(&self.spare, a),
            worlds: address(&self.spare.worlds),
            state: self.sweep.state.ptr(),
            limit: if self.is_bounded {
                self.finder.limit(self.spare.n)
            } else {
                u64::MAX
            },
        }
    }

    /// Finds the pairs of the frame arranged with `a` in a range, packed, in no order, as many as there is room for; counts
    /// them all.
    pub(super) fn sweep(&mut self, config: &Config, a: Range<u64>) -> Result<()> {
        let capacity = self.found.capacity();
        let rows = match config.sort {
            Algorithm::Auto if self.stages.on => {
                self.sweep
                    .rows
                    .begin(&self.stream, self.spare.n, capacity)?
            }
            _ => None,
        };
        self.by_rows = rows.is_some();
        let keys = packed(&self.spare, &self.found.part_mut(capacity)?, rows);
        let on_axis = matches!(self.finder, Finder::Axis(_));
        self.sweep
            .zero(if on_axis { SWEEP_WORDS } else { GRID_WORDS })?;
        let asked = self.asked(a.clone());
        // SAFETY: the addresses are those of this frame and this engine.
        unsafe {
            if self.apart {
                self.held.seed(&self.stream, keys, asked.state)?;
                let limit = Finder::Cells.limit(self.spare.n);
                let limit = if self.is_bounded { limit } else { u64::MAX };
                let asked = Asked { limit, ..asked };
                self.held.find(&self.stream, asked, keys)?;
            }
            match self.finder {
                Finder::Cells => self.grid.find(&self.stream, self.swept().n, asked, keys),
                Finder::Tree => {
                    let (scene, ids) = if self.apart {
                        (self.held.moving(), self.held.moving_ids())
                    } else {
                        (&self.spare, 0)
                    };
                    self.tree.find(&self.stream, scene, ids, asked, keys)
                }
                Finder::Axis(_) => self.sweep.find(&self.spare, a, keys, asked.limit),
            }
        }
    }

    /// Counts the pairs of the frame arranged by `a`, and gives the counters. Waits.
    pub(super) fn count_by_a(&mut self, mut by_a: SliceMut<u32>) -> Result<State> {
        loop {
            let asked = self.asked(0..self.spare.n as u64);
            let on_axis = matches!(self.finder, Finder::Axis(_));
            self.sweep
                .zero(if on_axis { SWEEP_WORDS } else { GRID_WORDS })?;
            self.stream.fill_u32(by_a.reborrow(), 0)?;
            let (stream, counts) = (&self.stream, by_a.reborrow());
            // SAFETY: as in `sweep`.
            unsafe {
                match self.finder {
                    Finder::Cells => self.grid.count_by_a(stream, self.spare.n, asked, counts)?,
                    Finder::Tree => self.tree.count_by_a(stream, &self.spare, asked, counts)?,
                    Finder::Axis(_) => {
                        self.sweep.count_by_a(&self.spare, counts, asked.limit)?;
                    }
                }
            }
            let state = self.sweep.read()?;
            if !self.is_given_up(&state)? {
                return Ok(state);
            }
        }
    }

    /// Finds the pairs of the frame at hand with `a` in a range and puts them in order in `room`, which grows until all fit;
    /// with `events` they are compared with the last list too. Waits once for each time. Gives the counters, and how often
    /// it grew. Bad boxes of the `sets` are an error first.
    pub(super) fn find_pairs(
        &mut self,
        config: &Config,
        sets: &[Source],
        a: Range<u64>,
        events: bool,
    ) -> Result<(State, u32)> {
        if self.found.capacity() == 0 && config.initial_pair_capacity.is_none() {
            // At first two pairs a box. No room yet is no error: the sweep tells how much is needed.
            let limit = usize::try_from(self.pair_limit(config)?).unwrap_or(usize::MAX);
            let wished = 2 * self.spare.n + 1024;
            let _ = self.found.reserve_exact(&self.stream, wished.min(limit));
        }
        let mut regrown = 0;
        loop {
            self.stages.mark(&self.stream, "sweep")?;
            self.sweep(config, a.clone())?;
            // Should there be no room to order them, the sweep still tells how many there are.
            let ordered = self.order_and_compare(events);
            self.stages.mark(&self.stream, HOST)?;
            let state = self.sweep.read()?;
            let short = !self.by_rows || self.sweep.rows.are_short(&state);
            if self.finder == Finder::Cells {
                self.grid.note(self.swept().n, &state);
            }
            if self.apart && state.still_changed != 0 {
                return Ok((state, regrown));
            }
            self.refuse_invalid(config, sets, &state)?;
            if self.is_given_up(&state)? {
                if self.apart {
                    return Ok((state, regrown));
                }
                continue;
            }
            if state.pairs > self.found.capacity() as u64 {
                let limit = self.pair_limit(config)?;
                self.make_room(config, state.pairs, limit)?;
                regrown += 1;
            } else if short {
                ordered.map_err(|error| out_of_memory(config, state.pairs, error))?;
                return Ok((state, regrown));
            }
        }
    }

    /// Puts the pairs found in order, and compares them with the last list.
    pub(super) fn order_and_compare(&mut self, events: bool) -> Result<()> {
        let capacity = self.found.capacity();
        self.stages.mark(&self.stream, "compact")?;
        self.room.reserve_exact(&self.stream, capacity)?;
        let (found, room) = (self.found.part(capacity)?, self.room.part_mut(capacity)?);
        self.sweep
            .put_in_order(&self.spare, found, room, self.by_rows)?;

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

    /// Makes room for `count` pairs and an eighth more.
    pub(super) fn make_room(&mut self, config: &Config, count: u64, limit: u64) -> Result<()> {
        let too_many = Error::TooManyPairs { count, limit };
        let exact = usize::try_from(count)
            .ok()
            .filter(|_| count <= limit)
            .ok_or(too_many)?;
        let generous = (exact + exact / 8).min(usize::try_from(limit).unwrap_or(usize::MAX));
        let grown = self.found.reserve_exact(&self.stream, generous);
        grown
            .or_else(|_| self.found.reserve_exact(&self.stream, exact))
            .map_err(|error| out_of_memory(config, count, error))
    }

    /// The most pairs that may be kept: as configured, else what half of the memory holds that is free or taken for pairs.
    pub(super) fn pair_limit(&self, config: &Config) -> Result<u64> {
        match config.pair_memory {
            Some(bytes) => Ok(bytes / size_of::<Pair>() as u64),
            None => {
                let lists = self.list.capacity() + self.room.capacity() + self.found.capacity();
                let held = (lists * size_of::<Pair>()) as u64 + self.sweep.scratch_bytes();
                let (free, _) = self.stream.device().memory()?;
                Ok((free + held) / 2 / bytes_a_pair(config))
            }
        }
    }

    /// The new list, of at most `n` pairs, and the last, each to be compared with the other.
    pub(super) fn lists(&self, n: usize) -> [List; 2] {
        let new = List {
            pairs: self.room.ptr(),
            n: n as u64,
            count: self.sweep.state.ptr(),
        };
        let last = List {
            pairs: self.list.ptr(),
            n: self.pairs as u64,
            count: 0,
        };
        [new, last]
    }

    /// Holds static and sleeping boxes of the last update apart, if they have stayed as they were for long enough.
    pub(super) fn hold(&mut self, config: &Config) -> Result<()> {
        if !self.held.is_due() {
            return Ok(());
        }
        let accept = self.sweep.accept(&self.scene, 0..self.scene.n as u64);
        let bits = index_bits(&self.scene);
        let limit = self.pair_limit(config)?;
        let (stream, kernels) = (&self.stream, &self.sweep.kernels);
        // SAFETY: the addresses are those of this scene.
        let held = unsafe {
            self.held
                .take(stream, kernels, &self.scene, accept, bits, limit)
        };
        match held {
            // There is no memory for it: frames are found as a whole, as before.
            Err(Error::TooManyPairs { .. }) => Ok(()),
            Err(error) if is_out_of_memory(&error) => Ok(()),
            held => held,
        }
    }

    /// The boxes of the frame at hand that are sorted and swept.
    pub(super) const fn swept(&self) -> &Scene {
        swept(&self.held, &self.spare, self.apart)
    }
}

/// The boxes of the frame `spare` that are sorted and swept: without those held apart, if they are.
const fn swept<'a>(held: &'a Held, spare: &'a Scene, apart: bool) -> &'a Scene {
    if apart { held.moving() } else { spare }
}

/// Device bytes that a pair takes: as found, in the list, in that of the last update and while it is sorted; with events it may
/// be in those of both updates too.
const fn bytes_a_pair(config: &Config) -> u64 {
    let lists = if config.events { 6 } else { 4 };
    lists * size_of::<Pair>() as u64
}

pub(super) const fn is_out_of_memory(error: &Error) -> bool {
    matches!(
        error,
        Error::Gpu(gpu::Error::OutOfMemory { .. })
            | Error::Sort(gpusort::Error::Gpu(gpu::Error::OutOfMemory { .. }))
    )
}

/// Device memory that ran out for the sake of `count` pairs means that they are too many.
pub(super) fn out_of_memory(config: &Config, count: u64, error: Error) -> Error {
    match error {
        Error::Gpu(gpu::Error::OutOfMemory { free, .. })
        | Error::Sort(gpusort::Error::Gpu(gpu::Error::OutOfMemory { free, .. })) => {
            Error::TooManyPairs {
                count,
                limit: (free / bytes_a_pair(config)).min(count.saturating_sub(1)),
            }
        }
        error => error,
    }
}
