//! The tree (`kernels/sap/tree.cuh`): what finds the pairs of a scene that cells and the sweep would test far too much of.

use crate::Result;
use crate::cuda::abi::{Accept, Keys};
use crate::cuda::find::grid::Asked;
use crate::cuda::input::scene::Scene;
use crate::cuda::kernels::{WARP, blocks, module};
use crate::cuda::memory::Grow;
use bytemuck::{Pod, Zeroable};
use gpu::{ByValue, Device, Kernel, Launch, Scratch, SliceMut, Stream, args};
use gpusort::SortOptions;
use gpusort::cuda::{Payload, Request, Sorter};

/// Threads of every block.
const THREADS: u32 = 256;
/// Children of a node, and binary digits of their number.
const CHILDREN: usize = 32;
const CHILD_BITS: u32 = 5;
/// Levels of 2^32 boxes: `TREE_LEVELS`.
const LEVELS: usize = 7;
/// Parts of a segment after a pass, as a power of two.
const PASS_BITS: u32 = 3;
/// Words of the list of what warps leave to others: `Left`.
const LEFT: usize = 2 + (1 << 14);
/// `BY_CLASS`.
const BY_CLASS: u32 = 7;

/// `TreeInput` of the kernels. Addresses are 0 for lists that there are not.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Input {
    boxes: u64,
    ids: u64,
    order: u64,
    nodes: u64,
    classes: u64,
    worlds: u64,
    kinds: u64,
    left: u64,
    first: [u64; LEVELS],
    n: u32,
    levels: u32,
    world_of: u64,
    state: u64,
    accept: Accept,
}

/// The order of the boxes and the nodes over them; memory is taken when a scene needs them first.
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
    classes: Grow<[u32; 4]>,
    worlds: Grow<[u32; 2]>,
    kinds: Grow<u64>,
    left: Grow<u64>,
}

/// What sorting needs of the engine.
pub(crate) struct Tools<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) sorter: &'a Sorter,
    pub(crate) options: &'a SortOptions,
    pub(crate) scratch: &'a mut Scratch,
}

/// Blocks for a thread an item, and for a warp an item.
fn threads(items: usize) -> Launch {
    Launch::linear(blocks(items, THREADS), THREADS)
}

fn warps(items: usize) -> Launch {
    Launch::linear(blocks(items, THREADS / WARP), THREADS)
}

/// Nodes of each level, boxes first, up to the level of which there are few enough to be the children of one node.
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

    fn input(&self, scene: &Scene, ids: u64, asked: Asked) -> Result<ByValue<Input>> {
        let counts = levels(scene.n);
        let mut first = [0; LEVELS];
        let mut sum = 0;
        for (first, count) in first.iter_mut().zip(&counts) {
            *first = sum;
            sum += *count as u64;
        }
        let some = |there: bool, address: u64| if there { address } else { 0 };
        Ok(ByValue(Input {
            boxes: scene.boxes()?.ptr(),
            ids,
            order: self.order[0].ptr(),
            nodes: self.nodes.ptr(),
            classes: some(asked.accept.filters != 0, self.classes.ptr()),
            worlds: some(asked.worlds != 0, self.worlds.ptr()),
            kinds: self.kinds.ptr(),
            left: self.left.ptr(),
            first,
            n: scene.n as u32,
            levels: counts.len() as u32,
            world_of: asked.worlds,
            state: asked.state,
            accept: asked.accept,
        }))
    }

    /// Puts the boxes in order and makes the nodes. `ids` is the address of their numbers in the frame, 0 where they are all of it.
    ///
    /// # Safety
    ///
    /// `asked` holds addresses of memory for as much as it says, `ids` is one for each box.
    pub(crate) unsafe fn arrange(
        &mut self,
        tools: &mut Tools,
        scene: &Scene,
        ids: u64,
        asked: Asked,
    ) -> Result<()> {
        let (stream, n) = (tools.stream, scene.n);
        if n == 0 {
            return Ok(());
        }
        let counts = levels(n);
        let all = counts.iter().sum();
        for order in &mut self.order {
            order.reserve(stream, n)?;
        }
        self.choices.reserve(stream, n.div_ceil(CHILDREN))?;
        self.sort_keys.reserve(stream, n)?;
        self.index.reserve(stream, n)?;
        self.nodes.reserve(stream, all)?;
        self.kinds.reserve(stream, 1)?;
        self.left.reserve(stream, LEFT)?;
        stream.fill_bytes(self.kinds.part_mut(1)?, 0)?;
        if asked.accept.filters != 0 {
            self.classes.reserve(stream, all)?;
        }
        if asked.worlds != 0 {
            self.worlds.reserve(stream, all)?;
        }
        // SAFETY: room for all boxes and nodes was made above; lists of the frame by the caller's promise.
        unsafe {
            let order = self.order[0].ptr();
            stream.launch(&self.begin, &threads(n), &args![order, n as u32])?;
            self.put_in_order(tools, scene, ids, asked)?;
            let input = self.input(scene, ids, asked)?;
            stream.launch(&self.place, &threads(n), &args![input])?;
            for (level, &count) in counts.iter().enumerate().skip(1) {
                let level = level as u32;
                stream.launch(&self.union, &warps(count), &args![input, level])?;
            }
        }
        Ok(())
    }

    /// The passes: by class where boxes have some, then by what suits each segment.
    ///
    /// # Safety
    ///
    /// As for `arrange`.
    unsafe fn put_in_order(
        &mut self,
        tools: &mut Tools,
        scene: &Scene,
        ids: u64,
        asked: Asked,
    ) -> Result<()> {
        let (stream, n) = (tools.stream, scene.n);
        let nodes = n.div_ceil(CHILDREN).next_power_of_two();
        let mut bits = CHILD_BITS + nodes.trailing_zeros();
        if asked.accept.filters != 0 || asked.accept.split != 0 {
            stream.fill_u32(self.choices.part_mut(1)?, BY_CLASS)?;
            // SAFETY: the caller's promise; the one segment has its choice.
            unsafe { self.pass(tools, scene, ids, asked, (bits, true))? };
        }
        let mut number = 0_u32;
        while bits > CHILD_BITS {
            let input = self.input(scene, ids, asked)?;
            let segments = n.div_ceil(1 << bits);
            let (size, choices) = (
                1_u32.checked_shl(bits).unwrap_or(u32::MAX),
                self.choices.ptr(),
            );
            // SAFETY: the caller's promise; there is a choice for each segment.
            unsafe {
                let launch = warps(segments);
                stream.launch(&self.choose, &launch, &args![input, size, number, choices])?;
                self.pass(tools, scene, ids, asked, (bits, false))?;
            }
            bits = bits.saturating_sub(PASS_BITS).max(CHILD_BITS);
            number += 1;
        }
        Ok(())
    }

    /// Sorts each segment of 2^`bits` boxes by what was chosen for it; counts the kinds if these are the classes.
    ///
    /// # Safety
    ///
    /// As for `arrange`.
    unsafe fn pass(
        &mut self,
        tools: &mut Tools,
        scene: &Scene,
        ids: u64,
        asked: Asked,
        (bits, kinds): (u32, bool),
    ) -> Result<()> {
        let (stream, n) = (tools.stream, scene.n);
        let input = self.input(scene, ids, asked)?;
        let (choices, keys) = (self.choices.ptr(), self.sort_keys.ptr());
        // SAFETY: the caller's promise; a key for each box.
        unsafe {
            stream.launch(&self.keys, &threads(n), &args![input, bits, choices, keys])?;
        }
        let segments = n.div_ceil(1 << bits).next_power_of_two();
        let options = tools
            .options
            .clone()
            .bits(0..32 + segments.trailing_zeros());
        let bytes = Sorter::scratch_bytes_for::<u64>(options.algorithm, n as u64, Payload::Index)?;
        tools.sorter.sort(
            stream,
            Request::index(self.sort_keys.part(n)?, self.index.part_mut(n)?),
            tools.scratch.reserve(stream, bytes as usize)?,
            &options,
        )?;
        let [from, to] = &mut self.order;
        let (index, kinds) = (self.index.part(n)?, u32::from(kinds));
        // SAFETY: the index has each position once.
        unsafe {
            let to = to.part_mut(n)?;
            let arguments = args![input, index, to, kinds];
            stream.launch(&self.permute, &threads(n), &arguments)?;
        }
        std::mem::swap(from, to);
        Ok(())
    }

    /// Finds the pairs of the boxes arranged.
    ///
    /// # Safety
    ///
    /// As for [`crate::cuda::find::grid::Grid::find`], with the scene, `ids` and lists of [`Self::arrange`].
    pub(crate) unsafe fn find(
        &mut self,
        stream: &Stream,
        scene: &Scene,
        ids: u64,
        asked: Asked,
        keys: Keys,
    ) -> Result<()> {
        if scene.n == 0 {
            return Ok(());
        }
        stream.fill_bytes(self.left.part_mut(LEFT)?, 0)?;
        let input = self.input(scene, ids, asked)?;
        // SAFETY: the caller's promise.
        unsafe { stream.launch(&self.sweep, &warps(scene.n), &args![input, ByValue(keys)])? };
        Ok(())
    }

    /// Counts the pairs by `a`.
    ///
    /// # Safety
    ///
    /// As for `find`; `by_a` has a count for each box.
    pub(crate) unsafe fn count_by_a(
        &mut self,
        stream: &Stream,
        scene: &Scene,
        asked: Asked,
        by_a: SliceMut<u32>,
    ) -> Result<()> {
        if scene.n == 0 {
            return Ok(());
        }
        stream.fill_bytes(self.left.part_mut(LEFT)?, 0)?;
        let input = self.input(scene, 0, asked)?;
        // SAFETY: the caller's promise.
        unsafe { stream.launch(&self.count, &warps(scene.n), &args![input, by_a])? };
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
