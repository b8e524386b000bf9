//! From stored boxes to pairs: keys, sort, work list, sweep, order of the pairs. `Endpoints` has its own keys and sort.

use crate::cuda::abi::{Accept, Keys, OF_BOXES, OF_PAIRS, Sorted, State, SweepInput};
use crate::cuda::find::endpoints::{Endpoints, Tools};
use crate::cuda::find::tree;
use crate::cuda::input::scene::{Scene, address};
use crate::cuda::kernels::{Kernels, SortedBoxes, SortedKeys, SweepRule, TILE};
use crate::cuda::memory::{Grow, HostBuffer};
use crate::cuda::order::rows::{RowCounts, Rows};
use crate::{Config, OverlapRule, Result, Strategy};
use bytemuck::Zeroable;
use gpu::{Buffer, Slice, SliceMut, Stream};
use gpusort::SortOptions;
use gpusort::cuda::{Payload, Request, SortOutcome, Sorter};
use std::ops::Range;

/// Boxes in sorted order, and what makes them; used again by every update.
pub(crate) struct Sweep {
    pub(crate) stream: Stream,
    pub(crate) kernels: Kernels,
    sorter: Sorter,
    options: SortOptions,
    open: bool,
    /// With that strategy.
    endpoints: Option<Endpoints>,
    pub(crate) state: Buffer<State>,
    state_read: HostBuffer<State>,
    n: usize,
    keys: Grow<u32>,
    keys_sorted: Grow<u32>,
    world_keys: Grow<u64>,
    world_keys_sorted: Grow<u64>,
    index: Grow<u32>,
    sides: Grow<[f32; 4]>,
    span: Grow<[f32; 2]>,
    end: Grow<u32>,
    slots: Grow<u32>,
    reach: Grow<[u32; 4]>,
    units: Grow<u32>,
    first_unit: Grow<u64>,
    scratch: gpu::Scratch,
    pub(crate) rows: Rows,
}

impl Sweep {
    pub(crate) fn new(stream: &Stream, config: &Config) -> Result<Self> {
        let device = stream.device();
        let sorter = Sorter::new(device, gpusort::cuda::SorterConfig::default())?;
        // Now, not in the first update: the keys of the sweep and those of pairs.
        sorter.prepare::<f32>(config.sort, 0)?;
        sorter.prepare::<u64>(config.sort, 0)?;
        let endpoints = config.strategy == Strategy::Endpoints;
        Ok(Self {
            endpoints: endpoints.then(|| Endpoints::load(device)).transpose()?,
            kernels: Kernels::load(device)?,
            sorter,
            options: SortOptions::new().algorithm(config.sort),
            open: config.rule == OverlapRule::Open,
            state: stream.alloc_zeroed(1)?,
            state_read: HostBuffer::new(device, 1)?,
            stream: stream.clone(),
            n: 0,
            keys: Grow::default(),
            keys_sorted: Grow::default(),
            world_keys: Grow::default(),
            world_keys_sorted: Grow::default(),
            index: Grow::default(),
            sides: Grow::default(),
            span: Grow::default(),
            end: Grow::default(),
            slots: Grow::default(),
            reach: Grow::default(),
            units: Grow::default(),
            first_unit: Grow::default(),
            scratch: gpu::Scratch::new(),
            rows: Rows::new(device)?,
        })
    }

    /// Sets all counters to zero.
    pub(crate) fn reset(&mut self) -> Result<()> {
        self.stream.fill_bytes(self.state.slice_mut(), 0)?;
        Ok(())
    }

    /// Chooses the axis for the stored boxes of `scene`; that of endpoints is x.
    pub(crate) fn choose_axis(&self, scene: &Scene) -> Result<()> {
        if scene.n == 0 || self.endpoints.is_some() {
            return Ok(());
        }
        // SAFETY: the counters are this engine's, and worlds come one for each box.
        unsafe {
            self.kernels.axis(
                &self.stream,
                scene.boxes()?,
                address(&scene.worlds),
                self.state.ptr(),
            )?
        };
        Ok(())
    }

    /// Makes the sort keys.
    pub(crate) fn make_keys(&mut self, scene: &Scene) -> Result<()> {
        self.n = scene.n;
        if scene.n == 0 {
            return Ok(());
        }
        if let Some(endpoints) = &mut self.endpoints {
            return endpoints.make_keys(&self.stream, scene, self.open);
        }
        let (stream, boxes, state) = (&self.stream, scene.boxes()?, self.state.ptr());
        match &scene.worlds {
            None => {
                let keys = self.keys.reserve(stream, scene.n)?;
                // SAFETY: the counters are this engine's.
                unsafe { self.kernels.keys(stream, boxes, state, keys)? };
            }
            Some(worlds) => {
                let keys = self.world_keys.reserve(stream, scene.n)?;
                // SAFETY: as above; `last_world` is the greatest world.
                unsafe {
                    self.kernels.keys_worlds(
                        stream,
                        boxes,
                        state,
                        worlds.part(scene.n)?,
                        scene.last_world,
                        keys,
                    )?
                };
            }
        }
        Ok(())
    }

    /// Sorts the keys, and makes the work list of the sweep. If `may_rest`, the list is empty where nothing has changed.
    pub(crate) fn sort(&mut self, scene: &Scene, may_rest: bool) -> Result<()> {
        if scene.n == 0 {
            return Ok(());
        }
        let keys = self.sort_boxes(scene)?;
        self.keep_outcome(OF_BOXES)?;
        let (stream, n) = (&self.stream, scene.n);
        let tiles = n.div_ceil(TILE);
        let padded = tiles * TILE;
        self.sides.reserve(stream, padded)?;
        self.span.reserve(stream, padded)?;
        self.end.reserve(stream, padded)?;
        self.slots.reserve(stream, padded / 4)?;
        self.reach.reserve(stream, tiles)?;
        self.units.reserve(stream, tiles)?;
        self.first_unit.reserve(stream, tiles + 1)?;
        let (index, boxes) = (self.index.part(n)?, scene.boxes()?);
        let (state, sorted) = (self.state.ptr(), self.sorted());
        // SAFETY: all arrays have room for whole tiles, and `keys` as many sorted keys as there are boxes.
        unsafe {
            match &self.endpoints {
                Some(endpoints) => {
                    endpoints.order(stream, index, scene, may_rest, state, sorted)?
                }
                None => {
                    let boxes = SortedBoxes {
                        keys,
                        index,
                        stored: boxes,
                    };
                    let open = self.open;
                    let rule = SweepRule { open, may_rest };
                    self.kernels.order(stream, boxes, rule, state, sorted)?
                }
            }
        }
        // SAFETY: no total is asked for.
        unsafe {
            self.kernels.scan(
                stream,
                self.units.part(tiles)?,
                self.first_unit.part_mut(tiles + 1)?,
                0,
            )?;
        }
        Ok(())
    }

    /// Puts the boxes in order, in `index`. Gives the address of the sorted keys; 0 for endpoints, which need them no more.
    fn sort_boxes(&mut self, scene: &Scene) -> Result<SortedKeys> {
        let (stream, n) = (&self.stream, scene.n);
        let index = self.index.reserve(stream, n)?;
        if let Some(endpoints) = &mut self.endpoints {
            let mut tools = Tools {
                stream,
                kernels: &self.kernels,
                sorter: &self.sorter,
                options: &self.options,
                scratch: &mut self.scratch,
                open: self.open,
            };
            endpoints.sort(&mut tools, scene, index)?;
            return Ok(SortedKeys::Plain(0));
        }
        Ok(if scene.worlds.is_some() {
            let bits = 64 - scene.last_world.leading_zeros();
            let options = self.options.clone().bits(0..bits);
            let scratch = self.scratch.reserve(
                stream,
                Sorter::scratch_bytes_for::<u64>(self.options.algorithm, n as u64, Payload::Index)?
                    as usize,
            )?;
            let sorted = self.world_keys_sorted.reserve(stream, n)?;
            self.sorter.sort(
                stream,
                Request::index(self.world_keys.part(n)?, index).keys_out(sorted),
                scratch,
                &options,
            )?;
            SortedKeys::WithWorlds(self.world_keys_sorted.ptr())
        } else {
            let scratch = self.scratch.reserve(
                stream,
                Sorter::scratch_bytes_for::<u32>(self.options.algorithm, n as u64, Payload::Index)?
                    as usize,
            )?;
            let sorted = self.keys_sorted.reserve(stream, n)?;
            self.sorter.sort(
                stream,
                Request::index(self.keys.part(n)?, index).keys_out(sorted),
                scratch,
                &self.options,
            )?;
            SortedKeys::Plain(self.keys_sorted.ptr())
        })
    }

    /// Copies what the last sort left to the counters, with which the host reads it.
    pub(crate) fn keep_outcome(&mut self, place: usize) -> Result<()> {
        let bytes = size_of::<SortOutcome>();
        let at = std::mem::offset_of!(State, sorts) + place * bytes;
        let state = self.state.slice_mut().cast::<u8>()?;
        // The memory that the sort was given: it is as large at least.
        let from = self.scratch.reserve(&self.stream, bytes)?;
        let to = state.range(at..at + bytes)?.cast()?;
        self.stream.copy(to, Sorter::outcome(from.as_slice())?)?;
        Ok(())
    }

    fn sorted(&self) -> Sorted {
        Sorted {
            sides: self.sides.ptr(),
            span: self.span.ptr(),
            end: self.end.ptr(),
            slots: self.slots.ptr(),
            reach: self.reach.ptr(),
            units: self.units.ptr(),
            first_unit: self.first_unit.ptr(),
        }
    }

    fn input(&self, scene: &Scene, a: Range<u64>, limit: u64) -> SweepInput {
        SweepInput {
            sorted: self.sorted(),
            index: self.index.ptr(),
            tiles: self.n.div_ceil(TILE) as u32,
            pad: 0,
            state: self.state.ptr(),
            accept: self.accept(scene, a),
            limit,
        }
    }

    /// What decides whether boxes that overlap are a pair to report.
    pub(crate) fn accept(&self, scene: &Scene, a: Range<u64>) -> Accept {
        let (excluded, excluded_len) = scene.excluded();
        Accept {
            filters: address(&scene.filters),
            exact: address(&scene.exact),
            excluded,
            excluded_len,
            split: scene.split as u64,
            a_begin: a.start,
            a_end: a.end,
            open: self.open.into(),
        }
    }

    /// What the tree needs to sort.
    pub(crate) fn sort_tools(&mut self) -> tree::Tools<'_> {
        tree::Tools {
            stream: &self.stream,
            sorter: &self.sorter,
            options: &self.options,
            scratch: &mut self.scratch,
        }
    }

    /// The address of the boxes' numbers in the order of the sweep.
    pub(crate) fn index(&self) -> u64 {
        self.index.ptr()
    }

    /// Finds the pairs with `a` in a range, packed, in no order, as many as there is room for; counts them all. The counters of a
    /// sweep must be zero, but for pairs that are in the list already. It is given up beyond `limit` tests.
    pub(crate) fn find(
        &mut self,
        scene: &Scene,
        a: Range<u64>,
        keys: Keys,
        limit: u64,
    ) -> Result<()> {
        if self.n == 0 {
            return Ok(());
        }
        // SAFETY: `sort` has filled the arrays of this scene.
        unsafe {
            self.kernels
                .sweep(&self.stream, self.input(scene, a, limit), keys)?
        };
        Ok(())
    }

    /// Counts the pairs by `a`; the counts must be zero, else as `find`.
    pub(crate) fn count_by_a(
        &mut self,
        scene: &Scene,
        by_a: SliceMut<u32>,
        limit: u64,
    ) -> Result<()> {
        if self.n == 0 {
            return Ok(());
        }
        // SAFETY: as in `find`; `by_a` has a count for each box.
        unsafe {
            let input = self.input(scene, 0..scene.n as u64, limit);
            self.kernels.sweep_count(&self.stream, input, by_a)?
        };
        Ok(())
    }

    /// Sets the first counters to zero: those that a sweep starts from.
    pub(crate) fn zero(&mut self, words: usize) -> Result<()> {
        let words = self.state.slice_mut().cast::<u64>()?.range(..words)?;
        self.stream.fill_bytes(words, 0)?;
        Ok(())
    }

    /// Where the numbers of pairs started and ended go.
    pub(crate) fn event_counts(&self) -> [u64; 2] {
        let state = self.state.ptr();
        [
            state + std::mem::offset_of!(State, started) as u64,
            state + std::mem::offset_of!(State, ended) as u64,
        ]
    }

    /// Bytes of scratch memory held, for pairs mostly.
    pub(crate) fn scratch_bytes(&self) -> u64 {
        self.scratch.capacity() as u64
    }

    /// Waits for the work so far and reads the counters.
    pub(crate) fn read(&mut self) -> Result<State> {
        // SAFETY: the counters are read after waiting for the stream only, which `Engine::drop` does too.
        unsafe {
            self.stream
                .download_pinned(self.state.slice(), &mut self.state_read)?
        };
        self.stream.synchronize()?;
        Ok(self.state_read.first().copied().unwrap_or(State::zeroed()))
    }

    /// Puts packed pairs, as many as the counters say and at most all, in order, and unpacks them: by rows where they were
    /// counted, else by a sort.
    pub(crate) fn put_in_order(
        &mut self,
        scene: &Scene,
        packed: Slice<u64>,
        mut pairs: SliceMut<u64>,
        by_rows: bool,
    ) -> Result<()> {
        let bits = index_bits(scene);
        let n = packed.len() as u64;
        if n == 0 {
            return Ok(());
        }
        if by_rows {
            let bytes = packed.bytes();
            let between = self
                .scratch
                .reserve(&self.stream, bytes)?
                .range(..bytes)?
                .cast()?;
            // SAFETY: the sweep has counted the pairs by row.
            return unsafe {
                self.rows
                    .order(&self.stream, self.state.ptr(), packed, between, pairs, bits)
            };
        }
        let options = self.options.clone().bits(0..2 * bits.max(1));
        let scratch = self.scratch.reserve(
            &self.stream,
            Sorter::scratch_bytes_for::<u64>(options.algorithm, n, Payload::None)? as usize,
        )?;
        let count = self.state.slice().cast::<u64>()?.range(..1)?;
        self.sorter.sort(
            &self.stream,
            Request::keys(packed, pairs.reborrow()).count(count),
            scratch,
            &options,
        )?;
        self.kernels.unpack(&self.stream, count, pairs, bits)?;
        self.keep_outcome(OF_PAIRS)
    }
}

/// Where packed pairs of a scene go, and where they are counted.
pub(crate) fn packed(scene: &Scene, keys: &SliceMut<u64>, counts: Option<RowCounts>) -> Keys {
    Keys {
        keys: keys.ptr(),
        capacity: keys.len() as u64,
        rows: counts.map_or(0, |counts| counts.rows),
        ranks: counts.map_or(0, |counts| counts.ranks),
        bits: index_bits(scene),
        pad: 0,
    }
}

/// Bits that an index of the scene takes; a packed pair has twice as many.
pub(crate) fn index_bits(scene: &Scene) -> u32 {
    usize::BITS - scene.n.saturating_sub(1).leading_zeros()
}
