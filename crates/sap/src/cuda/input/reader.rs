//! The steps that bring lists of a frame to the device and check its boxes, each as a call.

use crate::cuda::abi::{Candidates, Prepare};
use crate::cuda::input::patch::Patch;
use crate::cuda::input::source::{List, Source};
use crate::cuda::launch::{PUT_TILES, THREADS, linear, module};
use crate::cuda::memory::Uploader;
use crate::try_alloc::resize;
use crate::{Aabb, Aabb64, Filter, Result};
use bytemuck::Pod;
use gpu::{ByValue, Device, DevicePtr, Grow, Kernel, Launch, Slice, SliceMut, Stream, args};

/// The addresses of a set's boxes on the device, in their form.
#[derive(Clone, Copy)]
pub(crate) enum RawBoxes {
    Plain(DevicePtr<Aabb>),
    /// Starts and ends.
    Swept(DevicePtr<Aabb>, DevicePtr<Aabb>),
    Exact(DevicePtr<Aabb64>),
}

/// The kernels that read a frame, and the memory that uploads pass through.
pub(crate) struct Reader {
    prepare_plain: Kernel,
    prepare_swept: Kernel,
    prepare_exact: Kernel,
    check: Kernel,
    keep: Kernel,
    put: Kernel,
    widen: Kernel,
    patch: Kernel,
    uploader: Uploader,
}

impl Reader {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        let module = module(device)?;
        Ok(Self {
            prepare_plain: module.kernel("sap_prepare_plain")?,
            prepare_swept: module.kernel("sap_prepare_swept")?,
            prepare_exact: module.kernel("sap_prepare_exact")?,
            check: module.kernel("sap_check")?,
            keep: module.kernel("sap_keep")?,
            put: module.kernel("sap_put")?,
            widen: module.kernel("sap_widen")?,
            patch: module.kernel("sap_patch")?,
            uploader: Uploader::default(),
        })
    }

    /// Starts a frame: waits until no earlier upload is under way.
    pub(crate) fn start(&mut self, stream: &Stream) -> Result<()> {
        self.uploader.start(stream)
    }

    /// Queues the copy of a list, from wherever it is.
    pub(crate) fn copy<T: Pod>(
        &mut self,
        stream: &Stream,
        to: SliceMut<T>,
        from: List<T>,
    ) -> Result<()> {
        match from {
            List::Host(list) => self.uploader.upload(stream, to, list),
            List::Device(list) => Ok(stream.copy(to, list)?),
        }
    }

    /// Returns the address of boxes on the device: their own if kernels can read them there, else
    /// that of a copy in `memory`. Kernels read 8 bytes at once, 16 of `f64` boxes.
    pub(crate) fn on_device<T: Pod>(
        &mut self,
        stream: &Stream,
        boxes: List<T>,
        memory: &mut Grow<u64>,
    ) -> Result<DevicePtr<T>> {
        let alignment = if size_of::<T>().is_multiple_of(16) {
            16
        } else {
            8
        };
        if let List::Device(boxes) = boxes
            && boxes.ptr().is_multiple_of(alignment)
        {
            // Boxes of another device, or of no memory, are an error. No memory is freed before
            // the host has waited for the search.
            stream.using(&[boxes.memory()?], || Ok::<_, gpu::Error>(()))?;
            return Ok(boxes.device_ptr());
        }
        let words = boxes.len() * size_of::<T>() / size_of::<u64>();
        let mut copy = memory.reserve(stream, words)?.cast()?;
        self.copy(stream, copy.reborrow(), boxes)?;
        Ok(copy.device_ptr())
    }

    /// Makes a list with an element for each box, if any set has such a list. The boxes of a set
    /// that has none get `default`.
    pub(crate) fn list<'a, T: Pod>(
        &mut self,
        stream: &Stream,
        list: &mut Option<Grow<T>>,
        sets: &[Source<'a>],
        of: impl Fn(&Source<'a>) -> Option<List<'a, T>>,
        default: T,
    ) -> Result<()> {
        if sets.iter().all(|set| of(set).is_none()) {
            *list = None;
            return Ok(());
        }
        let n = sets.iter().map(Source::len).sum();
        let mut rest = list.get_or_insert_default().reserve(stream, n)?;
        for set in sets {
            let (part, behind) = rest.split_at(set.len())?;
            match of(set) {
                Some(list) => self.copy(stream, part, list)?,
                None => {
                    let mut defaults = Vec::new();
                    resize(&mut defaults, set.len(), default)?;
                    self.copy(stream, part, List::Host(&defaults))?;
                }
            }
            rest = behind;
        }
        Ok(())
    }

    /// Queues the stage `bounds` of one set: checks its boxes, and stores them in `f32` with the
    /// margin. Plain boxes are tested by a neighbour list, if there is one.
    ///
    /// # Safety
    ///
    /// At `boxes` are `set.n` boxes, at a multiple of 8, or of 16 for `f64` ones. The addresses in
    /// `set` and `list` are of memory for as many elements as they say. All candidates are of these
    /// boxes.
    pub(crate) unsafe fn prepare(
        &self,
        stream: &Stream,
        boxes: RawBoxes,
        set: Prepare,
        list: Option<Candidates>,
    ) -> Result<()> {
        let launch = linear(set.n as usize);
        let (state, set) = (set.state, ByValue(set));
        // SAFETY: the caller's promise.
        unsafe {
            match (boxes, list) {
                (RawBoxes::Plain(boxes), Some(list)) => {
                    let tests = Launch::linear(list.tiles, THREADS);
                    let writes = Launch::linear(list.tiles.div_ceil(PUT_TILES), THREADS);
                    let list = ByValue(list);
                    stream.launch(&self.check, &launch, &args![boxes, set, list])?;
                    if list.0.tiles > 0 {
                        stream.launch(&self.keep, &tests, &args![boxes, state, list])?;
                        stream.launch(&self.put, &writes, &args![state, list])?;
                    }
                }
                (RawBoxes::Plain(boxes), None) => {
                    stream.launch(&self.prepare_plain, &launch, &args![boxes, set])?;
                }
                (RawBoxes::Swept(start, end), _) => {
                    stream.launch(&self.prepare_swept, &launch, &args![start, end, set])?;
                }
                (RawBoxes::Exact(boxes), _) => {
                    stream.launch(&self.prepare_exact, &launch, &args![boxes, set])?;
                }
            }
        }
        Ok(())
    }

    /// Writes `f32` boxes as `f64` boxes.
    pub(crate) fn widen(
        &self,
        stream: &Stream,
        boxes: Slice<Aabb>,
        wide: SliceMut<Aabb64>,
    ) -> Result<()> {
        let values = 6 * boxes.len();
        // SAFETY: there are as many wide boxes.
        unsafe {
            stream.launch(
                &self.widen,
                &linear(values),
                &args![boxes, values as u64, wide],
            )?;
        }
        Ok(())
    }

    /// Writes changed boxes at their indices, with their filters and worlds.
    ///
    /// # Safety
    ///
    /// At `filters` and `worlds` is one for each box, or they are null. The patches are of those
    /// boxes.
    pub(crate) unsafe fn patch(
        &self,
        stream: &Stream,
        patches: Slice<Patch>,
        boxes: SliceMut<Aabb>,
        filters: DevicePtr<Filter>,
        worlds: DevicePtr<u32>,
    ) -> Result<()> {
        let n = patches.len();
        if n == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe {
            stream.launch(
                &self.patch,
                &linear(n),
                &args![patches, n as u64, boxes, filters, worlds],
            )?;
        }
        Ok(())
    }
}
