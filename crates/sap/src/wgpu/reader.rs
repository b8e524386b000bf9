//! Reads frames whose lists are in buffers of the caller: checks, margins, and what has changed.

use super::frame::WgpuFrame;
use super::gpu::{Gpu, ResidentKernels};
use super::input::{ABSENT, Given};
use super::launch::{Batch, start_of};
use super::memory::Grow;
use crate::cpu::shared::{Scene, sample_size};
use crate::query::Labels;
use crate::{Aabb, Error, Filter, Invalid, Pair, Result, try_alloc};
use bytemuck::{Pod, Zeroable};
use radsweep_kernels::wgsl::WORKGROUP;
use std::mem::offset_of;
use std::ops::Range;
use std::sync::Arc;
use wgpu_device::Device;
use wgpu_device::wgpu::{BindingResource, Buffer};

/// `ReadParams` in `kernels/wgsl/sap/read.wgsl`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct ReadParams {
    boxes: u32,
    last_boxes: u32,
    words: u32,
    from_word: u32,
    to_word: u32,
    margin: f32,
    drawn: u32,
    worlds_at: u32,
}

/// The counters of `kernels/wgsl/sap/read.wgsl`.
#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
struct Counted {
    bad: u32,
    /// The complement of the index of the first bad box.
    first_bad: u32,
    changed: u32,
}

/// A box that was drawn for a plan, with its world.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Drawn {
    bounds: Aabb,
    world: u32,
}

const _: () = {
    assert!(size_of::<ReadParams>() == 32);
    assert!(offset_of!(ReadParams, last_boxes) == 4);
    assert!(offset_of!(ReadParams, words) == 8);
    assert!(offset_of!(ReadParams, from_word) == 12);
    assert!(offset_of!(ReadParams, to_word) == 16);
    assert!(offset_of!(ReadParams, margin) == 20);
    assert!(offset_of!(ReadParams, drawn) == 24);
    assert!(offset_of!(ReadParams, worlds_at) == 28);
    assert!(size_of::<Counted>() == 12);
    assert!(offset_of!(Counted, first_bad) == 4);
    assert!(offset_of!(Counted, changed) == 8);
    assert!(size_of::<Drawn>() == 28);
    assert!(offset_of!(Drawn, world) == 24);
};

/// The words of a box, and of a filter.
const BOX_WORDS: usize = size_of::<Aabb>() / size_of::<u32>();
const FILTER_WORDS: usize = size_of::<Filter>() / size_of::<u32>();
/// The bytes of the most cuts of both axes.
const CUT_BYTES: usize = 2 * 255 * size_of::<f32>();

/// A frame on the device: checked boxes with their margin, and what decides about pairs. It keeps
/// nothing of the caller's.
pub(super) struct DeviceScene {
    pub(super) n: usize,
    /// The boxes that are swept; bad ones are empty.
    stored: Grow,
    /// With a margin, the boxes without it.
    tight: Grow,
    has_margin: bool,
    /// Filters and worlds, and room for what a search adds.
    tags: Grow,
    has_filters: bool,
    has_worlds: bool,
    pub(super) excluded: Vec<Pair>,
    /// Whether it has only the stored boxes of a frame of the host.
    is_partial: bool,
}

impl Default for DeviceScene {
    fn default() -> Self {
        Self {
            n: 0,
            stored: Grow::new("boxes"),
            tight: Grow::new("boxes without margin"),
            has_margin: false,
            tags: Grow::new("filters, worlds and excluded pairs"),
            has_filters: false,
            has_worlds: false,
            excluded: Vec::new(),
            is_partial: true,
        }
    }
}

impl DeviceScene {
    /// Takes the stored boxes of the last frame of the host, which decide about margins.
    pub(super) fn upload(&mut self, device: &Device, stored: &[Aabb]) -> Result<()> {
        self.stored.write(device, stored)?;
        (self.n, self.is_partial) = (stored.len(), true);
        Ok(())
    }

    /// Forgets the boxes.
    pub(super) const fn clear(&mut self) {
        (self.n, self.is_partial) = (0, true);
    }

    /// Tells whether both scenes have the same lists, so that they may be compared.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.n == other.n
            && !self.is_partial
            && !other.is_partial
            && self.has_filters == other.has_filters
            && self.has_worlds == other.has_worlds
            && self.excluded == other.excluded
    }

    pub(super) const fn has_worlds(&self) -> bool {
        self.has_worlds
    }

    /// Returns the lists for a search.
    pub(super) fn given(&mut self, device: &Device) -> Result<Given> {
        Ok(Given {
            n: self.n,
            boxes: self.stored.reserve(device, 0)?.clone(),
            tags: self.tags.reserve(device, 0)?.clone(),
            has_filters: self.has_filters,
            has_worlds: self.has_worlds,
        })
    }

    /// Downloads the boxes without margins.
    pub(super) fn boxes(&self, device: &Device) -> Result<Vec<Aabb>> {
        let list = if self.has_margin {
            &self.tight
        } else {
            &self.stored
        };
        self.read(device, Some(list), 0)
    }

    /// Downloads the filters and worlds.
    pub(super) fn labels(&self, device: &Device) -> Result<Labels<'static>> {
        let tags = |has_any: bool| has_any.then_some(&self.tags);
        let filters: Vec<Filter> = self.read(device, tags(self.has_filters), 0)?;
        let worlds: Vec<u32> = self.read(device, tags(self.has_worlds), self.worlds_at())?;
        Ok(Labels {
            filters: filters.into(),
            worlds: worlds.into(),
        })
    }

    /// Downloads all of it.
    pub(super) fn download(&self, device: &Device, invalid: Option<Invalid>) -> Result<Scene> {
        let labels = self.labels(device)?;
        let mut excluded = Vec::new();
        try_alloc::copy(&mut excluded, &self.excluded)?;
        Ok(Scene {
            boxes: self.read(device, Some(&self.stored), 0)?,
            tight: self.read(device, self.has_margin.then_some(&self.tight), 0)?,
            filters: self.has_filters.then(|| labels.filters.into_owned()),
            worlds: self.has_worlds.then(|| labels.worlds.into_owned()),
            excluded,
            exact: None,
            invalid,
        })
    }

    /// Downloads an element of a list for each box, from a word on.
    fn read<T: Pod>(&self, device: &Device, list: Option<&Grow>, word: usize) -> Result<Vec<T>> {
        let Some(buffer) = list.and_then(Grow::buffer).filter(|_| self.n > 0) else {
            return Ok(Vec::new());
        };
        let start = (word * size_of::<u32>()) as u64;
        let end = start + (self.n * size_of::<T>()) as u64;
        Ok(device.download(buffer, start..end)?.wait()?)
    }

    /// Returns where the tags have the worlds, in words.
    const fn worlds_at(&self) -> usize {
        if self.has_filters {
            FILTER_WORDS * self.n
        } else {
            0
        }
    }

    /// Returns the number of words of filters and worlds.
    const fn tag_words(&self) -> usize {
        self.worlds_at() + if self.has_worlds { self.n } else { 0 }
    }
}

/// What was found while a frame was read.
pub(super) struct Reading {
    /// The number of bad boxes, and the index of the first.
    pub(super) bad: Option<(u64, usize)>,
    /// Whether all is as in the last frame.
    pub(super) is_same: bool,
}

impl Reading {
    /// The bytes that [`Reader::counters`] has of it.
    pub(super) const BYTES: u64 = size_of::<Counted>() as u64;

    /// Takes the bytes, and whether the frame is compared with the last.
    pub(super) fn new(counted: &[u8], is_like: bool) -> Self {
        let counted: Counted = bytemuck::pod_read_unaligned(counted);
        Self {
            bad: (counted.bad > 0).then_some((counted.bad.into(), !counted.first_bad as usize)),
            is_same: is_like && counted.changed == 0,
        }
    }
}

/// Reads frames, with memory that is kept.
pub(super) struct Reader {
    gpu: Gpu,
    counters: Grow,
    sample: Grow,
    one: Grow,
}

impl Reader {
    pub(super) fn new(gpu: Gpu) -> Self {
        Self {
            gpu,
            counters: Grow::new("counters of a frame"),
            sample: Grow::new("sample of boxes"),
            one: Grow::new("a box"),
        }
    }

    /// Has a frame read into a scene. With a margin, a box keeps the bounds that the `last` scene
    /// has stored as long as they contain it. Returns whether it is compared with that scene.
    pub(super) fn read(
        &mut self,
        batch: &mut Batch,
        frame: &WgpuFrame,
        margin: f32,
        last: &DeviceScene,
        scene: &mut DeviceScene,
    ) -> Result<bool> {
        let (gpu, n) = (self.gpu.clone(), frame.len());
        let (device, kernels) = (gpu.device(), gpu.resident()?);
        scene.n = n;
        scene.has_margin = margin > 0.0;
        scene.has_filters = frame.filters.is_some();
        scene.has_worlds = frame.worlds.is_some();
        scene.is_partial = false;
        try_alloc::copy(&mut scene.excluded, frame.excluded)?;
        let is_like = scene.is_like(last);
        let counters = self.counters.reserve(device, Reading::BYTES)?;
        batch.clear(counters, Reading::BYTES);
        if n == 0 {
            return Ok(is_like);
        }
        let mut work = Work {
            device,
            kernels,
            counters,
            batch,
        };
        work.copy_tags(frame, scene)?;
        work.store_boxes(frame, margin, last, scene, is_like)?;
        if is_like {
            work.compare(last, scene)?;
        }
        Ok(is_like)
    }

    /// Returns what [`Reading::new`] takes.
    pub(super) const fn counters(&self) -> Option<&Buffer> {
        self.counters.buffer()
    }

    /// Has boxes of a scene drawn for its plan, with their worlds. Returns where they are.
    pub(super) fn sample(
        &mut self,
        batch: &mut Batch,
        scene: &mut DeviceScene,
    ) -> Result<(&Buffer, Range<u64>)> {
        let gpu = self.gpu.clone();
        let (device, kernels) = (gpu.device(), gpu.resident()?);
        let drawn = sample_size(scene.n);
        let worlds_at = if scene.has_worlds {
            scene.worlds_at() as u32
        } else {
            ABSENT
        };
        let params = ReadParams {
            boxes: scene.n as u32,
            drawn: drawn as u32,
            worlds_at,
            ..ReadParams::zeroed()
        };
        let Given { boxes, tags, .. } = scene.given(device)?;
        let bytes = (drawn * size_of::<Drawn>()) as u64;
        let sample = self.sample.reserve(device, bytes)?;
        let lists = [(1, &boxes), (2, &tags), (3, sample)];
        let groups = (drawn as u32).div_ceil(WORKGROUP);
        batch.step(device, &kernels.draw_sample, params, &lists, groups)?;
        Ok((sample, 0..bytes))
    }

    /// Draws boxes of a scene for its plan, and waits for them.
    pub(super) fn sample_now(
        &mut self,
        batch: &mut Batch,
        scene: &mut DeviceScene,
    ) -> Result<Vec<(Aabb, u32)>> {
        let gpu = self.gpu.clone();
        let part = self.sample(batch, scene)?;
        let drawn: Vec<u8> = batch.submit_and_download(gpu.device(), &[part])?.wait()?;
        Ok(drawn_boxes(&drawn))
    }

    /// Says what is wrong with the first bad box of a frame.
    pub(super) fn invalid(
        &mut self,
        batch: &mut Batch,
        frame: &WgpuFrame,
        bad: Option<(u64, usize)>,
    ) -> Result<Option<Invalid>> {
        let Some((count, first)) = bad else {
            return Ok(None);
        };
        let gpu = self.gpu.clone();
        let (device, kernels) = (gpu.device(), gpu.resident()?);
        let params = ReadParams {
            words: BOX_WORDS as u32,
            from_word: (BOX_WORDS * first) as u32,
            ..ReadParams::zeroed()
        };
        let one = self.one.reserve(device, size_of::<Aabb>() as u64)?;
        let resources = [
            (1, start_of(frame.boxes, box_bytes(frame.len()))),
            (3, one.as_entire_binding()),
        ];
        batch.step_of_caller(device, &kernels.copy_words, params, &resources, 1)?;
        let part = [(one, 0..size_of::<Aabb>() as u64)];
        let one: Vec<Aabb> = batch.submit_and_download(device, &part)?.wait()?;
        let reason = one.first().and_then(|bounds| bounds.check().err());
        Ok(reason.map(|reason| Invalid {
            count,
            first,
            reason,
        }))
    }
}

/// Returns the boxes in the bytes of a sample, with their worlds.
pub(super) fn drawn_boxes(bytes: &[u8]) -> Vec<(Aabb, u32)> {
    let drawn = bytes.chunks_exact(size_of::<Drawn>());
    let drawn = drawn.map(bytemuck::pod_read_unaligned::<Drawn>);
    drawn.map(|drawn| (drawn.bounds, drawn.world)).collect()
}

const fn box_bytes(n: usize) -> u64 {
    (n * size_of::<Aabb>()) as u64
}

/// The launches that read a frame.
struct Work<'a> {
    device: &'a Device,
    kernels: Arc<ResidentKernels>,
    counters: &'a Buffer,
    batch: &'a mut Batch,
}

impl Work<'_> {
    /// Copies filters and worlds.
    fn copy_tags(&mut self, frame: &WgpuFrame, scene: &mut DeviceScene) -> Result<()> {
        let bytes = 4 * scene.tag_words() + size_of_val(frame.excluded) + CUT_BYTES;
        let (n, worlds_at) = (scene.n, scene.worlds_at());
        let tags = scene.tags.reserve(self.device, bytes as u64)?;
        let filters = ("filters", frame.filters, FILTER_WORDS * n, 0);
        let worlds = ("worlds", frame.worlds, n, worlds_at);
        for (what, buffer, words, to) in [filters, worlds] {
            let Some(buffer) = buffer else { continue };
            let params = ReadParams {
                words: words as u32,
                to_word: to as u32,
                ..ReadParams::zeroed()
            };
            let resources = [
                (1, self.of_caller(what, buffer, 4 * words as u64)?),
                (3, tags.as_entire_binding()),
            ];
            let groups = (words as u32).div_ceil(WORKGROUP);
            let kernel = &self.kernels.copy_words;
            (self
                .batch
                .step_of_caller(self.device, kernel, params, &resources, groups))
            .map_err(foreign(what))?;
        }
        Ok(())
    }

    /// Checks boxes, and stores them with the margin. Without a margin, they are compared with
    /// those of the last frame if it is alike.
    fn store_boxes(
        &mut self,
        frame: &WgpuFrame,
        margin: f32,
        last: &DeviceScene,
        scene: &mut DeviceScene,
        is_like: bool,
    ) -> Result<()> {
        let (device, bytes) = (self.device, box_bytes(scene.n));
        let stored = scene.stored.reserve(device, bytes)?;
        let checked = if scene.has_margin {
            scene.tight.reserve(device, bytes)?
        } else {
            stored
        };
        let params = ReadParams {
            boxes: scene.n as u32,
            last_boxes: last.n as u32,
            margin,
            ..ReadParams::zeroed()
        };
        let groups = (scene.n as u32).div_ceil(WORKGROUP);
        let mut resources = vec![
            (1, self.of_caller("boxes", frame.boxes, bytes)?),
            (3, checked.as_entire_binding()),
            (4, self.counters.as_entire_binding()),
        ];
        let mut kernel = &self.kernels.check_boxes;
        if let (true, false, Some(last)) = (is_like, scene.has_margin, last.stored.buffer()) {
            kernel = &self.kernels.check_and_compare;
            resources.push((2, last.as_entire_binding()));
        }
        (self
            .batch
            .step_of_caller(device, kernel, params, &resources, groups))
        .map_err(foreign("boxes"))?;
        if scene.has_margin {
            // Without a last frame nothing is read of it.
            let last = last.stored.buffer().unwrap_or(checked);
            let lists = [(1, checked), (2, last), (3, stored)];
            (self.batch).step(device, &self.kernels.loosen, params, &lists, groups)?;
        }
        Ok(())
    }

    /// Compares all lists with those of the last frame, but for boxes that were compared when they
    /// were checked.
    fn compare(&mut self, last: &DeviceScene, scene: &DeviceScene) -> Result<()> {
        let boxes = [&scene.stored, &last.stored];
        let tags = [&scene.tags, &last.tags];
        let box_words = if scene.has_margin {
            BOX_WORDS * scene.n
        } else {
            0
        };
        let lists = [(boxes, box_words), (tags, scene.tag_words())];
        for (list, words) in lists.into_iter().filter(|(_, words)| *words > 0) {
            let [Some(new), Some(old)] = list.map(Grow::buffer) else {
                continue;
            };
            let params = ReadParams {
                words: words as u32,
                ..ReadParams::zeroed()
            };
            let lists = [(1, new), (2, old), (4, self.counters)];
            let groups = (words as u32).div_ceil(WORKGROUP);
            let kernel = &self.kernels.compare_words;
            (self.batch).step(self.device, kernel, params, &lists, groups)?;
        }
        Ok(())
    }

    /// Returns the start of a buffer of the caller.
    fn of_caller<'b>(
        &self,
        what: &'static str,
        buffer: &'b Buffer,
        bytes: u64,
    ) -> Result<BindingResource<'b>> {
        let limit = self.device.limits().max_storage_buffer_binding_size;
        self.device.within(what, bytes, limit)?;
        Ok(start_of(buffer, bytes))
    }
}

/// Returns the error of a list that cannot be bound: size and usage are right, so it is of another
/// device.
fn foreign(what: &'static str) -> impl Fn(Error) -> Error {
    move |error| match error {
        Error::Wgpu(wgpu_device::Error::Failed {
            adapter, reason, ..
        }) => Error::ForeignBuffer {
            what,
            adapter,
            reason,
        },
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Frame, OnInvalid};
    use wgpu_device::{Adapters, BufferUsages};

    /// Bounds of all magnitudes and kinds are loosened as on the host, bit for bit.
    #[test]
    fn margins_are_those_of_the_host() {
        let gpu = match Gpu::open(Adapters::Any) {
            Ok(gpu) => gpu,
            Err(error) => return eprintln!("SKIPPED: {error}"),
        };
        let device = gpu.device();
        let mut bits = 1_u32;
        let mut number = || loop {
            // A linear congruential generator, whose upper bits are random.
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = f32::from_bits(bits ^ (bits >> 15));
            if !value.is_nan() {
                return value;
            }
        };
        let special = [
            0.0,
            -0.0,
            1e-45,
            -1e-45,
            f32::MAX,
            f32::MIN,
            f32::MIN_POSITIVE,
            1.0,
        ];
        let mut boxes: Vec<Aabb> = special.map(|x| Aabb::new([x; 3], [x; 3])).to_vec();
        boxes.extend((0..50_000).map(|_| {
            let both: [[f32; 2]; 3] = std::array::from_fn(|_| [number(), number()]);
            Aabb::new(both.map(|[x, y]| x.min(y)), both.map(|[x, y]| x.max(y)))
        }));
        boxes.push(Aabb::EMPTY);
        let list = device.upload("boxes", &boxes, BufferUsages::STORAGE);
        let list = list.expect("there is memory");
        let mut reader = Reader::new(gpu.clone());
        let mut margins = vec![1e-45, f32::MIN_POSITIVE, 1.0, 0.1, 3.0, 1e10, f32::MAX];
        margins.extend(
            (0..20)
                .map(|_| number().abs())
                .filter(|margin| margin.is_finite()),
        );
        for margin in margins {
            let (last, mut scene) = (DeviceScene::default(), DeviceScene::default());
            let frame = WgpuFrame::boxes(&list, boxes.len());
            let mut batch = Batch::default();
            let read = reader.read(&mut batch, &frame, margin, &last, &mut scene);
            assert!(!read.expect("the device answers"));
            let counters = reader.counters().expect("the frame was read");
            let part = (counters, 0..Reading::BYTES);
            let counted = batch.submit_and_download(device, &[part]);
            let counted = counted.and_then(|counted| Ok(counted.wait::<u8>()?));
            let reading = Reading::new(&counted.expect("the device answers"), false);
            assert_eq!(reading.bad, None);
            let found = scene.download(device, None).expect("the device answers");
            let mut expected = Scene::default();
            let (frame, last) = (Frame::boxes(&boxes), Scene::default());
            let read = expected.read(&frame, OnInvalid::Error, margin, &last);
            assert!(read.is_ok());
            assert!(found.same_pairs(&expected), "{margin:e}");
            assert_eq!(found.tight, expected.tight);
        }
    }
}
