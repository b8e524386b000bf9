//! The sweep along one axis: keys, sorted boxes with a work list, and the search of it.
//! [`crate::Strategy::Endpoints`] has keys and a sort of its own ([`Endpoints`]).

use crate::cpu::sample_size;
use crate::cpu::tuning::MAX_PLAN_SAMPLE;
use crate::cuda::abi::{Keys, Sorted, State, SweepInput};
use crate::cuda::find::endpoints::Endpoints;
use crate::cuda::find::search::Search;
use crate::cuda::input::scene::{Scene, address};
use crate::cuda::launch::{THREADS, TILE, WARP, linear, module, tile_warps};
use crate::cuda::scan::Scan;
use crate::cuda::sorting::Sorting;
use crate::{Result, Strategy};
use gpu::{ByValue, Device, DevicePtr, Grow, Kernel, Launch, SliceMut, Stream, args};
use gpusort::cuda::Request;

// The kernel `sap_axis` has shared memory for 2,048 boxes.
const _: () = assert!(MAX_PLAN_SAMPLE <= 2048);

struct Kernels {
    axis: Kernel,
    keys: Kernel,
    keys_worlds: Kernel,
    order: Kernel,
    order_worlds: Kernel,
    sweep: Kernel,
    count: Kernel,
}

/// The sweep along one axis. Its memory is kept from update to update.
pub(crate) struct Sweep {
    kernels: Kernels,
    scan: Scan,
    /// The blocks of the sweep that fill the device.
    blocks: u32,
    /// What only the strategy `Endpoints` needs, once it was used.
    endpoints: Option<Endpoints>,
    keys: Grow<u32>,
    keys_sorted: Grow<u32>,
    world_keys: Grow<u64>,
    world_keys_sorted: Grow<u64>,
    /// The index of the box at each position of the sorted order.
    index: Grow<u32>,
    sides: Grow<[f32; 4]>,
    span: Grow<[f32; 2]>,
    end: Grow<u32>,
    slots: Grow<u32>,
    reach: Grow<[u32; 4]>,
    units: Grow<u32>,
    first_unit: Grow<u64>,
}

impl Sweep {
    pub(crate) fn new(device: &Device, strategy: Strategy) -> Result<Self> {
        let module = module(device)?;
        let sweep = module.kernel("sap_sweep")?;
        let resident = sweep.blocks_per_multiprocessor(THREADS, 0)?.max(1);
        let endpoints = strategy == Strategy::Endpoints;
        Ok(Self {
            kernels: Kernels {
                axis: module.kernel("sap_axis")?,
                keys: module.kernel("sap_keys")?,
                keys_worlds: module.kernel("sap_keys_worlds")?,
                order: module.kernel("sap_order")?,
                order_worlds: module.kernel("sap_order_worlds")?,
                sweep,
                count: module.kernel("sap_sweep_count")?,
            },
            scan: Scan::new(device)?,
            blocks: device.info().multiprocessors * resident,
            endpoints: endpoints.then(|| Endpoints::new(device)).transpose()?,
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
        })
    }

    /// Makes the sort keys, after the choice of the axis. That of endpoints is x.
    pub(crate) fn make_keys(
        &mut self,
        stream: &Stream,
        scene: &Scene,
        search: Search,
    ) -> Result<()> {
        if let Some(endpoints) = &mut self.endpoints {
            return endpoints.make_keys(stream, scene, search.is_open());
        }
        self.choose_axis(stream, scene, search.state)?;
        let (boxes, n) = (scene.boxes()?, scene.n);
        match &scene.worlds {
            None => {
                let keys = self.keys.reserve(stream, n)?;
                // SAFETY: the counters are this engine's; there are as many keys as boxes.
                unsafe {
                    stream.launch(
                        &self.kernels.keys,
                        &linear(n),
                        &args![boxes, n as u32, search.state, keys],
                    )?;
                }
            }
            Some(worlds) => {
                let keys = self.world_keys.reserve(stream, n)?;
                let (worlds, last) = (worlds.part(n)?, scene.last_world);
                // SAFETY: as above; there are as many worlds, none above `last`.
                unsafe {
                    stream.launch(
                        &self.kernels.keys_worlds,
                        &linear(n),
                        &args![boxes, n as u32, search.state, worlds, last, keys],
                    )?;
                }
            }
        }
        Ok(())
    }

    /// Chooses the axis by a sample as large as that of the CPU engine: one box from each of as
    /// many equal stretches of the boxes.
    fn choose_axis(&self, stream: &Stream, scene: &Scene, state: DevicePtr<State>) -> Result<()> {
        let n = scene.n;
        let sampled = sample_size(n) as u32;
        let launch = Launch::new((sampled.div_ceil(WARP), 3, 1), (THREADS, 1, 1));
        let (boxes, worlds) = (scene.boxes()?, address(&scene.worlds));
        // SAFETY: the counters are this engine's, and worlds come one for each box. `sampled` is at
        // most `n`, and what the kernel has shared memory for.
        unsafe {
            stream.launch(
                &self.kernels.axis,
                &launch,
                &args![boxes, worlds, n as u32, sampled, state],
            )?;
        }
        Ok(())
    }

    /// Sorts the boxes by their keys: writes `index`, and the sorted keys, which endpoints do
    /// without.
    pub(crate) fn sort(
        &mut self,
        stream: &Stream,
        sorting: &mut Sorting,
        scene: &Scene,
        search: Search,
    ) -> Result<()> {
        let n = scene.n;
        let index = self.index.reserve(stream, n)?;
        if let Some(endpoints) = &mut self.endpoints {
            return endpoints.sort(stream, sorting, scene, search.is_open(), index);
        }
        if scene.worlds.is_some() {
            let sorted = self.world_keys_sorted.reserve(stream, n)?;
            let request = Request::index(self.world_keys.part(n)?, index).keys_out(sorted);
            // A world above a float.
            let bits = u64::BITS - scene.last_world.leading_zeros();
            sorting.sort(stream, request, 0..bits)
        } else {
            let sorted = self.keys_sorted.reserve(stream, n)?;
            let request = Request::index(self.keys.part(n)?, index).keys_out(sorted);
            sorting.sort(stream, request, 0..u32::BITS)
        }
    }

    /// Stores the boxes in the order of `index`, and makes the work list of the sweep. If
    /// `may_skip`, the list is empty where nothing has changed.
    pub(crate) fn make_tiles(
        &mut self,
        stream: &Stream,
        scene: &Scene,
        search: Search,
        may_skip: bool,
    ) -> Result<()> {
        let tiles = scene.n.div_ceil(TILE);
        let padded = tiles * TILE;
        self.sides.reserve(stream, padded)?;
        self.span.reserve(stream, padded)?;
        self.end.reserve(stream, padded)?;
        self.slots.reserve(stream, padded / 4)?;
        self.reach.reserve(stream, tiles)?;
        self.units.reserve(stream, tiles)?;
        self.first_unit.reserve(stream, tiles + 1)?;
        let (n, boxes, index) = (scene.n, scene.boxes()?, self.index.part(scene.n)?);
        let (sorted, may_skip) = (ByValue(self.sorted()), u32::from(may_skip));
        let (kernel, keys) = match (&self.endpoints, &scene.worlds) {
            (Some(endpoints), _) => {
                // SAFETY: all arrays have memory for whole tiles; the counters are this engine's.
                unsafe {
                    endpoints.order(stream, index, scene, search.state, may_skip, sorted)?;
                }
                return self.list_units(stream, tiles);
            }
            (None, None) => (&self.kernels.order, self.keys_sorted.device_ptr()),
            (None, Some(_)) => (
                &self.kernels.order_worlds,
                self.world_keys_sorted.device_ptr().cast(),
            ),
        };
        let open = u32::from(search.is_open());
        // SAFETY: as above, and there are as many sorted keys as boxes.
        unsafe {
            stream.launch(
                kernel,
                &tile_warps(tiles),
                &args![
                    keys,
                    index,
                    boxes,
                    n as u32,
                    tiles as u32,
                    open,
                    may_skip,
                    search.state,
                    sorted
                ],
            )?;
        }
        self.list_units(stream, tiles)
    }

    fn list_units(&mut self, stream: &Stream, tiles: usize) -> Result<()> {
        let units = self.units.part(tiles)?;
        let sums = self.first_unit.part_mut(tiles + 1)?;
        Ok(self.scan.sums(stream, units, sums)?)
    }

    fn sorted(&self) -> Sorted {
        Sorted {
            sides: self.sides.device_ptr(),
            span: self.span.device_ptr(),
            end: self.end.device_ptr(),
            slots: self.slots.device_ptr(),
            reach: self.reach.device_ptr(),
            units: self.units.device_ptr(),
            first_unit: self.first_unit.device_ptr(),
        }
    }

    fn input(&self, n: usize, search: Search) -> ByValue<SweepInput> {
        ByValue(SweepInput {
            sorted: self.sorted(),
            index: self.index.device_ptr(),
            tiles: n.div_ceil(TILE) as u32,
            pad: 0,
            state: search.state,
            accept: search.accept,
            limit: search.limit,
        })
    }

    /// Returns the address of the boxes' indices in the order of the sweep.
    pub(crate) fn index(&self) -> DevicePtr<u32> {
        self.index.device_ptr()
    }

    /// Finds the pairs of the `n` boxes sorted, packed and in no order, as many as there is
    /// capacity for, and counts them all.
    ///
    /// # Safety
    ///
    /// `search` and `keys` have addresses of memory for as much as they say. The counters that a
    /// sweep starts from are zero, but for pairs that are in the list already.
    pub(crate) unsafe fn find(
        &self,
        stream: &Stream,
        n: usize,
        search: Search,
        keys: Keys,
    ) -> Result<()> {
        if n == 0 {
            return Ok(());
        }
        let launch = Launch::linear(self.blocks, THREADS);
        let input = self.input(n, search);
        // SAFETY: the caller's promise; the steps before have filled the arrays, and no more keys
        // are written than the capacity.
        unsafe { stream.launch(&self.kernels.sweep, &launch, &args![input, ByValue(keys)])? };
        Ok(())
    }

    /// Counts the pairs by `a`.
    ///
    /// # Safety
    ///
    /// As for `find`; `by_a` has a count for each box, zero.
    pub(crate) unsafe fn count_by_a(
        &self,
        stream: &Stream,
        n: usize,
        search: Search,
        by_a: SliceMut<u32>,
    ) -> Result<()> {
        if n == 0 {
            return Ok(());
        }
        let launch = Launch::linear(self.blocks, THREADS);
        let input = self.input(n, search);
        // SAFETY: the caller's promise.
        unsafe { stream.launch(&self.kernels.count, &launch, &args![input, by_a])? };
        Ok(())
    }
}
