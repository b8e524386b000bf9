//! Finds the candidates of a list: the pairs of loosened boxes, in order.

use super::policy::Margin;
use crate::cuda::abi::{Keys, Loosen};
use crate::cuda::counters::Counters;
use crate::cuda::find::bound::Finder;
use crate::cuda::find::grid::Grid;
use crate::cuda::find::search::{Active, Search};
use crate::cuda::input::scene::{Scene, address};
use crate::cuda::launch::{linear, module};
use crate::cuda::order::PairOrder;
use crate::cuda::sorting::Sorting;
use crate::cuda::tuning::{FIRST_CANDIDATES, MAX_MARGIN};
use crate::{OverlapRule, Result};
use gpu::{ByValue, DevicePtr, Grow, Kernel, SliceMut, Stream, args};

/// The uploaded frame, which a list is built of, and the last one.
#[derive(Clone, Copy)]
pub(crate) struct Frames<'a> {
    pub(crate) next: &'a Scene,
    pub(crate) last: &'a Scene,
    pub(crate) rule: OverlapRule,
}

/// What builds lists. Its memory is kept from list to list.
pub(super) struct Builder {
    loosen: Kernel,
    depths: Kernel,
    grid: Grid,
    counters: Counters,
    order: PairOrder,
    loose: Scene,
    /// Candidates as they are found, packed.
    packed: Grow<u64>,
}

impl Builder {
    pub(super) fn new(stream: &Stream) -> Result<Self> {
        let device = stream.device();
        let module = module(device)?;
        Ok(Self {
            loosen: module.kernel("sap_loosen")?,
            depths: module.kernel("sap_depths")?,
            grid: Grid::new(device, None)?,
            counters: Counters::new(stream)?,
            order: PairOrder::new(device)?,
            loose: Scene::default(),
            packed: Grow::default(),
        })
    }

    /// Returns the loosened boxes.
    pub(super) fn loose(&self) -> Result<DevicePtr<crate::Aabb>> {
        Ok(self.loose.boxes()?.device_ptr())
    }

    /// Loosens the boxes of a frame.
    pub(super) fn loosen(&mut self, stream: &Stream, frames: Frames, margin: Margin) -> Result<()> {
        let n = frames.next.n;
        let (loose, loose_worlds) = self.loose.begin_part(stream, frames.next, n)?;
        let arguments = Loosen {
            boxes: frames.next.boxes()?.device_ptr(),
            last: frames.last.boxes()?.device_ptr(),
            worlds: address(&frames.next.worlds),
            loose,
            loose_worlds,
            n: n as u32,
            least: margin.least,
            steps: margin.steps,
            most: MAX_MARGIN,
        };
        // SAFETY: both frames have `n` boxes, and there is memory for as many.
        unsafe { stream.launch(&self.loosen, &linear(n), &args![ByValue(arguments)])? };
        Ok(())
    }

    /// Measures how deep the loosened boxes of each candidate overlap.
    pub(super) fn measure(
        &self,
        stream: &Stream,
        list: &Grow<u64>,
        units: f32,
        depths: SliceMut<u8>,
    ) -> Result<()> {
        let len = depths.len();
        if len == 0 {
            return Ok(());
        }
        let (loose, list, n) = (self.loose.boxes()?, list.part(len)?, len as u32);
        // SAFETY: there is a depth for each candidate, and these are of the loosened boxes.
        unsafe {
            let arguments = args![loose, list, n, units, depths];
            Ok(stream.launch(&self.depths, &linear(len), &arguments)?)
        }
    }

    /// Finds the candidates among the loosened boxes, at most `max`, and leaves them in `list` in
    /// order. Waits. Returns none where there are more, or cells do not suit them.
    pub(super) fn find(
        &mut self,
        stream: &Stream,
        sorting: &mut Sorting,
        frames: Frames,
        max: u64,
        list: &mut Grow<u64>,
    ) -> Result<Option<u64>> {
        let (scene, n) = (frames.next, frames.next.n);
        let active = Active {
            scene: &self.loose,
            ids: DevicePtr::NULL,
        };
        let search = Search {
            accept: scene.accept(frames.rule, 0..n as u64),
            worlds: address(&scene.worlds),
            state: self.counters.ptr(),
            limit: Finder::Cells.limit(n),
        };
        self.counters.reset(stream)?;
        self.grid.plan(stream, &self.loose)?;
        // SAFETY: the lists are those of these boxes, the counters this builder's.
        unsafe { self.grid.arrange(stream, active, search.state)? };
        if self.packed.capacity() == 0 {
            let first = (FIRST_CANDIDATES * n).min(max as usize);
            self.packed.reserve_exact(stream, first)?;
        }
        loop {
            self.grid.watch(stream, &self.loose)?;
            let capacity = self.packed.capacity();
            self.counters.restart_search(stream)?;
            let bits = scene.index_bits();
            let mut keys = Keys::new(&self.packed.part_mut(capacity)?, bits);
            let order = self.order.begin(stream, n, true, &mut keys)?;
            // SAFETY: the addresses are those of this frame and this builder.
            unsafe { self.grid.find(stream, n, search, keys)? };
            let (counters, lists) = (&mut self.counters, (&self.packed, &mut *list));
            self.order
                .order(stream, sorting, counters, order, bits, lists)?;
            // For the next list, which is mostly built many frames later.
            self.grid.plan_ahead(0.0)?;
            let state = self.counters.read(stream)?;
            self.grid.record_work(Finder::Cells, n, &state);
            if state.stopped != 0 || state.pairs > max {
                return Ok(None);
            }
            let (len, is_ordered) = (state.pairs as usize, self.order.record(order, bits, &state));
            if len > capacity {
                let generous = (len + len / 8).min(max as usize);
                self.packed.reserve_exact(stream, generous)?;
            } else if is_ordered {
                return Ok(Some(state.pairs));
            }
        }
    }
}
