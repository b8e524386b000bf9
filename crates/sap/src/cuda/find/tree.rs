//! The tree (`kernels/sap/tree.cuh`), which finds the pairs of scenes that cells and the sweep
//! would test far too much of.

use crate::Result;
use crate::cuda::abi::{Accept, Keys, State};
use crate::cuda::find::search::{Active, Search};
use crate::cuda::launch::{linear, module, warps};
use crate::cuda::sorting::Sorting;
use crate::{Aabb, Filter};
use bytemuck::{Pod, Zeroable};
use gpu::{ByValue, Device, DevicePtr, Grow, Kernel, SliceMut, Stream, args, assert_layout};
use gpusort::cuda::Request;

/// Children of a node, and the bits of their rank.
const CHILDREN: usize = 32;
const CHILD_BITS: u32 = 5;
/// Levels of 2^32 boxes: `TREE_LEVELS`.
const LEVELS: usize = 7;
/// Parts that a pass cuts a segment into, as a power of two.
const PASS_BITS: u32 = 3;
/// Words of the list of what warps leave to others: `Left`.
const LEFT: usize = 2 + (1 << 14);
/// The choice of a segment that is sorted by class: `BY_CLASS`.
const BY_CLASS: u32 = 7;

/// `TreeInput` of the kernels. Addresses of lists that a scene has none of are null.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Input {
    boxes: DevicePtr<Aabb>,
    ids: DevicePtr<u32>,
    order: DevicePtr<u32>,
    nodes: DevicePtr<[f32; 8]>,
    classes: DevicePtr<Filter>,
    worlds: DevicePtr<[u32; 2]>,
    kinds: DevicePtr<u64>,
    left: DevicePtr<u64>,
    first: [u64; LEVELS],
    n: u32,
    levels: u32,
    world_of: DevicePtr<u32>,
    state: DevicePtr<State>,
    accept: Accept,
}

assert_layout!(
    Input, 208:
    boxes 0, ids 8, order 16, nodes 24, classes 32, worlds 40, kinds 48, left 56, first 64, n 120,
    levels 124, world_of 128, state 136, accept 144,
);

/// A pass of the sort: what each segment of 2^`bits` boxes is sorted by.
#[derive(Clone, Copy)]
struct Pass {
    bits: u32,
    /// Whether all are sorted by class, and so the kinds are counted.
    by_class: bool,
}

/// The order of the boxes, and the nodes over them. Memory is reserved when a scene needs it first.
pub(crate) struct Tree {
    begin: Kernel,
    choose: Kernel,
    keys: Kernel,
    permute: Kernel,
    place: Kernel,
    union: Kernel,
    sweep: Kernel,
    count: Kernel,
    order: [Grow<u32>; 2],
    choices: Grow<u32>,
    sort_keys: Grow<u64>,
    index: Grow<u32>,
    nodes: Grow<[f32; 8]>,
    classes: Grow<Filter>,
    worlds: Grow<[u32; 2]>,
    kinds: Grow<u64>,
    left: Grow<u64>,
}

/// Returns the nodes of each level, boxes first, up to the level whose nodes are the children of
/// one.
fn levels(n: usize) -> Vec<usize> {
    let mut counts = vec![n];
    while let Some(&last) = counts.last().filter(|&&last| last > CHILDREN) {
        counts.push(last.div_ceil(CHILDREN));
    }
    counts
}

impl Tree {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        let module = module(device)?;
        Ok(Self {
            begin: module.kernel("sap_tree_begin")?,
            choose: module.kernel("sap_tree_choose")?,
            keys: module.kernel("sap_tree_keys")?,
            permute: module.kernel("sap_tree_permute")?,
            place: module.kernel("sap_tree_place")?,
            union: module.kernel("sap_tree_union")?,
            sweep: module.kernel("sap_tree_sweep")?,
            count: module.kernel("sap_tree_count")?,
            order: Default::default(),
            choices: Grow::default(),
            sort_keys: Grow::default(),
            index: Grow::default(),
            nodes: Grow::default(),
            classes: Grow::default(),
            worlds: Grow::default(),
            kinds: Grow::default(),
            left: Grow::default(),
        })
    }

    fn input(&self, active: Active, search: Search) -> Result<ByValue<Input>> {
        let n = active.scene.n;
        let counts = levels(n);
        let mut first = [0; LEVELS];
        let mut sum = 0;
        for (first, count) in first.iter_mut().zip(&counts) {
            *first = sum;
            sum += *count as u64;
        }
        let has_filters = !search.accept.filters.is_null();
        let has_worlds = !search.worlds.is_null();
        Ok(ByValue(Input {
            boxes: active.scene.boxes()?.device_ptr(),
            ids: active.ids,
            order: self.order[0].device_ptr(),
            nodes: self.nodes.device_ptr(),
            classes: if has_filters {
                self.classes.device_ptr()
            } else {
                DevicePtr::NULL
            },
            worlds: if has_worlds {
                self.worlds.device_ptr()
            } else {
                DevicePtr::NULL
            },
            kinds: self.kinds.device_ptr(),
            left: self.left.device_ptr(),
            first,
            n: n as u32,
            levels: counts.len() as u32,
            world_of: search.worlds,
            state: search.state,
            accept: search.accept,
        }))
    }

    /// Puts the boxes in order and makes the nodes.
    ///
    /// # Safety
    ///
    /// `search` has addresses of memory for as much as it says. The boxes' indices are null, or one
    /// for each box.
    pub(crate) unsafe fn arrange(
        &mut self,
        stream: &Stream,
        sorting: &mut Sorting,
        active: Active,
        search: Search,
    ) -> Result<()> {
        let n = active.scene.n;
        let counts = levels(n);
        let nodes = counts.iter().sum();
        for order in &mut self.order {
            order.reserve(stream, n)?;
        }
        self.choices.reserve(stream, n.div_ceil(CHILDREN))?;
        self.sort_keys.reserve(stream, n)?;
        self.index.reserve(stream, n)?;
        self.nodes.reserve(stream, nodes)?;
        self.kinds.reserve(stream, 1)?;
        self.left.reserve(stream, LEFT)?;
        stream.fill_bytes(self.kinds.part_mut(1)?, 0)?;
        if !search.accept.filters.is_null() {
            self.classes.reserve(stream, nodes)?;
        }
        if !search.worlds.is_null() {
            self.worlds.reserve(stream, nodes)?;
        }
        // SAFETY: memory for all boxes and nodes was reserved above; lists of the frame by the
        // caller's promise.
        unsafe {
            let order = self.order[0].device_ptr();
            stream.launch(&self.begin, &linear(n), &args![order, n as u32])?;
            self.sort(stream, sorting, active, search)?;
            let input = self.input(active, search)?;
            stream.launch(&self.place, &linear(n), &args![input])?;
            for (level, &count) in counts.iter().enumerate().skip(1) {
                let level = level as u32;
                stream.launch(&self.union, &warps(count), &args![input, level])?;
            }
        }
        Ok(())
    }

    /// Runs the passes: by class where boxes have some, then by what suits each segment.
    ///
    /// # Safety
    ///
    /// As for `arrange`.
    unsafe fn sort(
        &mut self,
        stream: &Stream,
        sorting: &mut Sorting,
        active: Active,
        search: Search,
    ) -> Result<()> {
        let n = active.scene.n;
        let nodes = n.div_ceil(CHILDREN).next_power_of_two();
        let mut bits = CHILD_BITS + nodes.trailing_zeros();
        if !search.accept.filters.is_null() || search.accept.split != 0 {
            let by_class = true;
            stream.fill_u32(self.choices.part_mut(1)?, BY_CLASS)?;
            // SAFETY: the caller's promise; the one segment has its choice.
            unsafe { self.pass(stream, sorting, active, search, Pass { bits, by_class })? };
        }
        let mut rank = 0_u32;
        while bits > CHILD_BITS {
            let by_class = false;
            let input = self.input(active, search)?;
            let launch = warps(n.div_ceil(1 << bits));
            let size = 1_u32.checked_shl(bits).unwrap_or(u32::MAX);
            let choices = self.choices.device_ptr();
            // SAFETY: the caller's promise; there is a choice for each segment.
            unsafe {
                stream.launch(&self.choose, &launch, &args![input, size, rank, choices])?;
                self.pass(stream, sorting, active, search, Pass { bits, by_class })?;
            }
            bits = bits.saturating_sub(PASS_BITS).max(CHILD_BITS);
            rank += 1;
        }
        Ok(())
    }

    /// Sorts each segment by what was chosen for it.
    ///
    /// # Safety
    ///
    /// As for `arrange`.
    unsafe fn pass(
        &mut self,
        stream: &Stream,
        sorting: &mut Sorting,
        active: Active,
        search: Search,
        Pass { bits, by_class }: Pass,
    ) -> Result<()> {
        let n = active.scene.n;
        let input = self.input(active, search)?;
        let (choices, keys) = (self.choices.device_ptr(), self.sort_keys.device_ptr());
        // SAFETY: the caller's promise; there is a key for each box.
        unsafe {
            stream.launch(&self.keys, &linear(n), &args![input, bits, choices, keys])?;
        }
        let segments = n.div_ceil(1 << bits).next_power_of_two();
        let request = Request::index(self.sort_keys.part(n)?, self.index.part_mut(n)?);
        let key_bits = 32 + segments.trailing_zeros();
        sorting.sort(stream, request, 0..key_bits)?;
        let [from, to] = &mut self.order;
        let (index, counts_kinds) = (self.index.part(n)?, u32::from(by_class));
        // SAFETY: the index has each position once.
        unsafe {
            let to = to.part_mut(n)?;
            let arguments = args![input, index, to, counts_kinds];
            stream.launch(&self.permute, &linear(n), &arguments)?;
        }
        std::mem::swap(from, to);
        Ok(())
    }

    /// Finds the pairs of the boxes arranged.
    ///
    /// # Safety
    ///
    /// As for [`crate::cuda::find::grid::Grid::find`], with the boxes and lists of
    /// [`Self::arrange`].
    pub(crate) unsafe fn find(
        &mut self,
        stream: &Stream,
        active: Active,
        search: Search,
        keys: Keys,
    ) -> Result<()> {
        let n = active.scene.n;
        if n == 0 {
            return Ok(());
        }
        stream.fill_bytes(self.left.part_mut(LEFT)?, 0)?;
        let input = self.input(active, search)?;
        // SAFETY: the caller's promise.
        unsafe { stream.launch(&self.sweep, &warps(n), &args![input, ByValue(keys)])? };
        Ok(())
    }

    /// Counts the pairs by `a`.
    ///
    /// # Safety
    ///
    /// As for `find`; `by_a` has a count for each box, zero.
    pub(crate) unsafe fn count_by_a(
        &mut self,
        stream: &Stream,
        active: Active,
        search: Search,
        by_a: SliceMut<u32>,
    ) -> Result<()> {
        let n = active.scene.n;
        if n == 0 {
            return Ok(());
        }
        stream.fill_bytes(self.left.part_mut(LEFT)?, 0)?;
        let input = self.input(active, search)?;
        // SAFETY: the caller's promise.
        unsafe { stream.launch(&self.count, &warps(n), &args![input, by_a])? };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{LEVELS, levels};

    #[test]
    fn levels_end_where_one_node_holds_all() {
        assert_eq!(levels(1), [1]);
        assert_eq!(levels(32), [32]);
        assert_eq!(levels(33), [33, 2]);
        assert_eq!(levels(32 * 32 + 1), [1025, 33, 2]);
        assert_eq!(levels(u32::MAX as usize).len(), LEVELS);
    }
}
