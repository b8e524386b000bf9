//! Reads frames whose lists are in buffers of the caller: checks, margins, and what has changed.

use super::frame::{BoxBuffers, WgpuFrame};
use super::gpu::{Gpu, ResidentKernels};
use super::input::{ABSENT, Given};
use super::launch::{Batch, start_of};
use super::memory::Grow;
use super::scene::{BOX_WORDS, DeviceScene, EXACT_WORDS, FILTER_WORDS};
use crate::cpu::sample_size;
use crate::{Aabb, Aabb64, Error, Invalid, InvalidReason, Result, try_alloc};
use bytemuck::{Pod, Zeroable};
use radsweep_kernels::wgsl::WORKGROUP;
use std::mem::offset_of;
use std::ops::Range;
use std::sync::Arc;
use wgpu_device::wgpu::{BindingResource, Buffer};
use wgpu_device::{Device, Kernel};

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
    invalid: u32,
    /// The complement of the index of the first invalid box.
    first_invalid: u32,
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
    assert!(offset_of!(Counted, first_invalid) == 4);
    assert!(offset_of!(Counted, changed) == 8);
    assert!(size_of::<Drawn>() == 28);
    assert!(offset_of!(Drawn, world) == 24);
};

/// The bytes of the most cuts of both axes.
const CUT_BYTES: usize = 2 * 255 * size_of::<f32>();

/// What was found while a frame was read.
pub(super) struct ReadResult {
    /// The number of invalid boxes, and the index of the first.
    pub(super) invalid: Option<(u64, usize)>,
    /// Whether all is as in the last frame.
    pub(super) is_same: bool,
}

impl ReadResult {
    /// The bytes that [`Reader::counters`] has of it.
    pub(super) const BYTES: u64 = size_of::<Counted>() as u64;

    /// Takes the bytes, and whether the frame is compared with the last.
    pub(super) fn new(counted: &[u8], is_like: bool) -> Self {
        let counted: Counted = bytemuck::pod_read_unaligned(counted);
        Self {
            invalid: (counted.invalid > 0)
                .then_some((counted.invalid.into(), !counted.first_invalid as usize)),
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
    /// The boxes of a frame of another form as plain ones.
    plain: Grow,
}

impl Reader {
    pub(super) fn new(gpu: Gpu) -> Self {
        Self {
            gpu,
            counters: Grow::new("counters of a frame"),
            sample: Grow::new("sample of boxes"),
            one: Grow::new("a box"),
            plain: Grow::new("swept or f64 boxes"),
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
        scene.has_exact = matches!(frame.boxes, BoxBuffers::Exact(_)) && margin == 0.0;
        scene.is_partial = false;
        try_alloc::copy(&mut scene.excluded, frame.excluded)?;
        let is_like = scene.is_like(last);
        let counters = self.counters.reserve(device, ReadResult::BYTES)?;
        batch.clear(counters, ReadResult::BYTES);
        if n == 0 {
            return Ok(is_like);
        }
        let mut work = Work {
            device,
            kernels,
            counters,
            plain: &mut self.plain,
            batch,
        };
        work.copy_tags(frame, scene)?;
        work.store_boxes(frame, margin, last, scene, is_like)?;
        if is_like {
            work.compare(last, scene)?;
        }
        Ok(is_like)
    }

    /// Returns what [`ReadResult::new`] takes.
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

    /// Says what is wrong with the first invalid box of a frame.
    pub(super) fn invalid(
        &mut self,
        batch: &mut Batch,
        frame: &WgpuFrame,
        invalid: Option<(u64, usize)>,
    ) -> Result<Option<Invalid>> {
        let Some((count, first)) = invalid else {
            return Ok(None);
        };
        let reason = match frame.boxes {
            BoxBuffers::Plain(boxes) => self.reason(batch, boxes, first, Aabb::check)?,
            BoxBuffers::Exact(boxes) => self.reason(batch, boxes, first, Aabb64::check)?,
            BoxBuffers::Swept(start, end) => {
                match self.reason(batch, start, first, Aabb::check)? {
                    None => self.reason(batch, end, first, Aabb::check)?,
                    of_start => of_start,
                }
            }
        };
        Ok(reason.map(|reason| Invalid {
            count,
            first,
            reason,
        }))
    }

    /// Downloads a box of the caller and checks it. Returns what is wrong with it.
    fn reason<T: Pod>(
        &mut self,
        batch: &mut Batch,
        boxes: &Buffer,
        index: usize,
        check: fn(&T) -> Result<(), InvalidReason>,
    ) -> Result<Option<InvalidReason>> {
        let gpu = self.gpu.clone();
        let (device, kernels) = (gpu.device(), gpu.resident()?);
        let bytes = size_of::<T>() as u64;
        let words = size_of::<T>() / size_of::<u32>();
        let params = ReadParams {
            words: words as u32,
            from_word: (words * index) as u32,
            ..ReadParams::zeroed()
        };
        let one = self.one.reserve(device, bytes)?;
        let resources = [
            (1, start_of(boxes, bytes * (index as u64 + 1))),
            (3, one.as_entire_binding()),
        ];
        batch.step_of_caller(device, &kernels.copy_words, params, &resources, 1)?;
        let part = [(one, 0..bytes)];
        let one: Vec<T> = batch.submit_and_download(device, &part)?.wait()?;
        Ok(one.first().and_then(|bounds| check(bounds).err()))
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
    plain: &'a mut Grow,
    batch: &'a mut Batch,
}

impl Work<'_> {
    /// Copies filters, worlds and `f64` boxes.
    fn copy_tags(&mut self, frame: &WgpuFrame, scene: &mut DeviceScene) -> Result<()> {
        let bytes = 4 * scene.tag_words() + size_of_val(frame.excluded) + CUT_BYTES;
        let (n, worlds_at, exact_at) = (scene.n, scene.worlds_at(), scene.exact_at());
        let tags = scene.tags.reserve(self.device, bytes as u64)?;
        let filters = ("filters", frame.filters, FILTER_WORDS * n, 0);
        let worlds = ("worlds", frame.worlds, n, worlds_at);
        let exact = match frame.boxes {
            BoxBuffers::Exact(boxes) if scene.has_exact => Some(boxes),
            _ => None,
        };
        let exact = ("boxes", exact, EXACT_WORDS * n, exact_at);
        for (what, buffer, words, to) in [filters, worlds, exact] {
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
        let kernels = Arc::clone(&self.kernels);
        let made;
        let boxes = match frame.boxes {
            BoxBuffers::Plain(boxes) => self.of_caller("boxes", boxes, bytes)?,
            BoxBuffers::Swept(start, end) => {
                let lists = [(1, start, bytes), (2, end, bytes)];
                let what = "start or end boxes";
                made = self.make_plain(&kernels.merge_ends, scene.n, what, &lists)?;
                start_of(&made, bytes)
            }
            BoxBuffers::Exact(boxes) => {
                let lists = [(1, boxes, (scene.n * size_of::<Aabb64>()) as u64)];
                made = self.make_plain(&kernels.round_outward, scene.n, "boxes", &lists)?;
                start_of(&made, bytes)
            }
        };
        let mut resources = vec![
            (1, boxes),
            (3, checked.as_entire_binding()),
            (4, self.counters.as_entire_binding()),
        ];
        let mut kernel = &kernels.check_boxes;
        if let (true, false, Some(last)) = (is_like, scene.has_margin, last.stored.buffer()) {
            kernel = &kernels.check_and_compare;
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

    /// Has a kernel make plain boxes of those of another form, from lists of the caller: each with
    /// its binding and its bytes.
    fn make_plain(
        &mut self,
        kernel: &Kernel,
        n: usize,
        what: &'static str,
        lists: &[(u32, &Buffer, u64)],
    ) -> Result<Buffer> {
        let plain = self.plain.reserve(self.device, box_bytes(n))?.clone();
        let params = ReadParams {
            boxes: n as u32,
            ..ReadParams::zeroed()
        };
        let mut resources = vec![(3, plain.as_entire_binding())];
        for &(binding, buffer, bytes) in lists {
            resources.push((binding, self.of_caller(what, buffer, bytes)?));
        }
        let groups = (n as u32).div_ceil(WORKGROUP);
        (self
            .batch
            .step_of_caller(self.device, kernel, params, &resources, groups))
        .map_err(foreign(what))?;
        Ok(plain)
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
    use crate::cpu::shared::Scene;
    use crate::wgpu::or_skipped;
    use crate::{Frame, OnInvalid};
    use wgpu_device::{Adapters, BufferUsages};

    /// Reads boxes on a device and on the host.
    struct Both {
        gpu: Gpu,
        reader: Reader,
        numbers: Numbers,
    }

    impl Both {
        fn open() -> Option<Self> {
            let gpu = or_skipped(Gpu::open(Adapters::Any))?;
            Some(Self {
                reader: Reader::new(gpu.clone()),
                gpu,
                numbers: Numbers(1),
            })
        }

        fn upload<T: Pod>(&self, list: &[T]) -> Buffer {
            let list = (self.gpu.device()).upload("boxes", list, BufferUsages::STORAGE);
            list.expect("there is memory")
        }

        /// Fails unless a frame without invalid boxes is the same scene on both, bit for bit.
        fn check(&mut self, given: &WgpuFrame, frame: &Frame, margin: f32) {
            let device = self.gpu.device();
            let (last, mut scene) = (DeviceScene::default(), DeviceScene::default());
            let mut batch = Batch::default();
            let read = (self.reader).read(&mut batch, given, margin, &last, &mut scene);
            let is_like = read.expect("the device answers");
            assert!(!is_like);
            let counters = self.reader.counters().expect("the frame was read");
            let part = (counters, 0..ReadResult::BYTES);
            let counted = batch.submit_and_download(device, &[part]);
            let counted = counted.and_then(|counted| Ok(counted.wait::<u8>()?));
            let reading = ReadResult::new(&counted.expect("the device answers"), is_like);
            assert_eq!(reading.invalid, None);
            let found = scene.download(device, None).expect("the device answers");
            let mut expected = Scene::default();
            let read = expected.read(frame, OnInvalid::Error, margin, &Scene::default());
            assert!(read.is_ok());
            assert!(found.same_pairs(&expected), "{margin:e}");
            assert_eq!(found.tight, expected.tight);
        }
    }

    /// A linear congruential generator, whose upper bits are random.
    struct Numbers(u64);

    impl Numbers {
        fn bits(&mut self) -> u64 {
            self.0 = (self.0)
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            self.0 ^ (self.0 >> 33)
        }

        /// Returns a number of any magnitude.
        fn single(&mut self) -> f32 {
            loop {
                let value = f32::from_bits(self.bits() as u32);
                if !value.is_nan() {
                    return value;
                }
            }
        }

        /// Returns a number of any magnitude. Half of them are those of `f32`, or nearly.
        fn double(&mut self) -> f64 {
            loop {
                let bits = self.bits();
                let value = match bits % 4 {
                    0 => f64::from(self.single()),
                    1 => {
                        let near = f64::from(self.single());
                        f64::from_bits(near.to_bits().wrapping_add(bits >> 62))
                    }
                    _ => f64::from_bits(self.bits()),
                };
                if !value.is_nan() {
                    return value;
                }
            }
        }

        fn bounds(&mut self) -> Aabb {
            let both: [[f32; 2]; 3] = std::array::from_fn(|_| [self.single(), self.single()]);
            Aabb::new(both.map(|[x, y]| x.min(y)), both.map(|[x, y]| x.max(y)))
        }

        fn bounds_64(&mut self) -> Aabb64 {
            let both: [[f64; 2]; 3] = std::array::from_fn(|_| [self.double(), self.double()]);
            Aabb64::new(both.map(|[x, y]| x.min(y)), both.map(|[x, y]| x.max(y)))
        }
    }

    const SPECIAL: [f32; 10] = [
        0.0,
        -0.0,
        1e-45,
        -1e-45,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        1.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
    ];

    /// Bounds of all magnitudes and kinds are loosened as on the host, bit for bit.
    #[test]
    fn margins_are_those_of_the_host() {
        let Some(mut both) = Both::open() else { return };
        let mut boxes: Vec<Aabb> = (SPECIAL[..8].iter())
            .map(|&x| Aabb::new([x; 3], [x; 3]))
            .collect();
        boxes.extend((0..50_000).map(|_| both.numbers.bounds()));
        boxes.push(Aabb::EMPTY);
        let list = both.upload(&boxes);
        let mut margins = vec![1e-45, f32::MIN_POSITIVE, 1.0, 0.1, 3.0, 1e10, f32::MAX];
        let random = (0..20).map(|_| both.numbers.single().abs());
        margins.extend(random.filter(|margin| margin.is_finite()));
        for margin in margins {
            let given = WgpuFrame::boxes(&list, boxes.len());
            both.check(&given, &Frame::boxes(&boxes), margin);
        }
    }

    /// Swept and `f64` boxes of all magnitudes and kinds become those of the host, bit for bit.
    #[test]
    fn forms_are_those_of_the_host() {
        let Some(mut both) = Both::open() else { return };
        let mut start = Vec::new();
        let mut end = Vec::new();
        let mut exact = vec![Aabb64::EMPTY];
        for x in SPECIAL {
            for y in SPECIAL {
                start.push(Aabb::new([x; 3], [x; 3]));
                end.push(Aabb::new([y; 3], [y; 3]));
            }
            let near = [f64::from(x).next_down(), f64::from(x).next_up()];
            exact.push(Aabb64::new([near[0]; 3], [near[1]; 3]));
        }
        start.extend([Aabb::EMPTY, Aabb::EMPTY]);
        end.extend([Aabb::EMPTY, Aabb::new([1.0; 3], [2.0; 3])]);
        for _ in 0..50_000 {
            start.push(both.numbers.bounds());
            end.push(both.numbers.bounds());
            exact.push(both.numbers.bounds_64());
        }
        let lists = [both.upload(&start), both.upload(&end), both.upload(&exact)];
        for margin in [0.0, 0.1] {
            let given = WgpuFrame::swept(&lists[0], &lists[1], start.len());
            both.check(&given, &Frame::swept(&start, &end), margin);
            let given = WgpuFrame::exact(&lists[2], exact.len());
            both.check(&given, &Frame::exact(&exact), margin);
        }
    }
}
