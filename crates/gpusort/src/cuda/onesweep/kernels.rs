//! The loaded kernels of one image.

use super::tuning::{
    FINISHES, HISTOGRAM_SHARED, HISTOGRAM_THREADS, HISTOGRAM_WIDE_BYTES, SEGMENT, Shapes,
    WIDE_SHARED, histogram_copies,
};
use crate::cuda::tile::Tile;
use crate::{KeyType, Result};
use gpu::{Device, Kernel, Module};
use radsweep_kernels as images;

/// A kernel that counts digits.
#[derive(Debug)]
pub(super) struct Histogram {
    pub kernel: Kernel,
    /// How many of its blocks run at once.
    pub max_blocks: u32,
    /// The bytes of shared memory of a block.
    pub shared: u32,
}

/// A kernel that ends a sort on chip.
#[derive(Debug)]
pub(super) struct End {
    pub kernel: Kernel,
    pub tile: Tile,
    /// The bytes of shared memory of a block.
    pub shared: u32,
}

impl End {
    fn load(module: &Module, name: &str, tile: Tile, shared: u32) -> Result<Self> {
        let name = format!("onesweep_{name}_{}x{}", tile.threads, tile.items);
        let kernel = module.kernel(&name)?;
        kernel.set_max_dynamic_shared(shared)?;
        Ok(Self {
            kernel,
            tile,
            shared,
        })
    }
}

/// The kernels for one key width and one offset width.
#[derive(Debug)]
pub(super) struct Kernels {
    /// For each kind of key (integer, float), the kernel for few keys and that for many.
    histogram: [[Histogram; 2]; 2],
    /// For each kind of key (integer, float) and size of a value (0, 4, 8 bytes), the shapes, and a
    /// kernel for each shape.
    pass: [[(Shapes, [Kernel; 2]); 3]; 2],
    /// For each kind of key, what finds segments.
    segments: [Kernel; 2],
    /// For each kind of key and size of a value, the ends of a sort: for the keys of a digit and
    /// for segments, where the device has the shared memory for it.
    ends: [[[Option<End>; 2]; 3]; 2],
    /// The copy, for each size of a value (0, 4, 8 bytes).
    copy_back: [Kernel; 3],
}

impl Kernels {
    pub fn load(device: &Device, key_bytes: usize, large: bool) -> Result<Self> {
        let image = match (key_bytes, large) {
            (4, false) => &images::ONESWEEP_32,
            (4, true) => &images::ONESWEEP_32_LARGE,
            (_, false) => &images::ONESWEEP_64,
            (_, true) => &images::ONESWEEP_64_LARGE,
        };
        let module = device.load(image.name, image.ptx())?;
        let offset_bytes = if large { 8 } else { 4 };
        let pass = |kind: &str, value_bytes: usize| {
            let shared_bytes = device.info().shared_per_block_optin;
            let shapes = Shapes::new(key_bytes, value_bytes, shared_bytes, large);
            let load = |tile: Tile| {
                let (threads, items) = (tile.threads, tile.items);
                let name = format!("onesweep_pass_{kind}_{value_bytes}_{threads}x{items}");
                let kernel = module.kernel(&name)?;
                let shared = tile.pass_shared_bytes(key_bytes, value_bytes, offset_bytes);
                kernel.set_max_dynamic_shared(shared)?;
                Ok::<_, crate::Error>(kernel)
            };
            let [narrow, many] = shapes.both();
            Ok::<_, crate::Error>((shapes, [load(narrow)?, load(many)?]))
        };
        let passes = |kind| {
            let pass = |value_bytes| pass(kind, value_bytes);
            Ok::<_, crate::Error>([pass(0)?, pass(4)?, pass(8)?])
        };
        let histogram = |kind: &str, shared: u32| {
            let copies = histogram_copies(key_bytes, shared);
            let kernel = module.kernel(&format!("onesweep_histogram_{kind}_{copies}"))?;
            kernel.set_max_dynamic_shared(shared)?;
            let blocks = kernel.blocks_per_multiprocessor(HISTOGRAM_THREADS, shared)?;
            Ok::<_, crate::Error>(Histogram {
                kernel,
                max_blocks: blocks * device.info().multiprocessors,
                shared,
            })
        };
        let [few, wide] = HISTOGRAM_SHARED;
        let is_wide = device.info().shared_per_block_optin >= WIDE_SHARED;
        let many = if is_wide { wide } else { few };
        let histograms =
            |kind| Ok::<_, crate::Error>([histogram(kind, few)?, histogram(kind, many)?]);
        let end = |name: &str, value_bytes: usize, tile: Tile, shared: u32| {
            if large || shared > device.info().shared_per_block_optin {
                return Ok(None);
            }
            End::load(&module, &format!("{name}_{value_bytes}"), tile, shared).map(Some)
        };
        let finish = |kind: &str, value_bytes: usize| {
            let tile = Tile::of(&FINISHES, key_bytes, value_bytes);
            let shared = tile.finish_shared_bytes(key_bytes, value_bytes);
            end(&format!("finish_{kind}"), value_bytes, tile, shared)
        };
        let segment = |kind: &str, value_bytes: usize| {
            if key_bytes == 8 {
                return finish(kind, value_bytes);
            }
            if kind == "float" && value_bytes == 0 {
                return Ok(None);
            }
            let shared = SEGMENT.segment_shared_bytes(value_bytes);
            end(&format!("segment_{kind}"), value_bytes, SEGMENT, shared)
        };
        let ends = |kind| {
            let of = |bytes| Ok::<_, crate::Error>([finish(kind, bytes)?, segment(kind, bytes)?]);
            Ok::<_, crate::Error>([of(0)?, of(4)?, of(8)?])
        };
        let segments = |kind| module.kernel(&format!("onesweep_segments_{kind}"));
        let copy_back = |bytes| module.kernel(&format!("onesweep_copy_back_{bytes}"));
        Ok(Self {
            histogram: [histograms("integer")?, histograms("float")?],
            pass: [passes("integer")?, passes("float")?],
            segments: [segments("integer")?, segments("float")?],
            ends: [ends("integer")?, ends("float")?],
            copy_back: [copy_back("0")?, copy_back("4")?, copy_back("8")?],
        })
    }

    pub fn histogram(&self, key: KeyType, n: u64) -> &Histogram {
        let bytes = n.saturating_mul(u64::from(key.bits() / 8));
        &self.histogram[kind(key)][usize::from(bytes >= HISTOGRAM_WIDE_BYTES)]
    }

    pub fn pass(&self, key: KeyType, value_bytes: usize, n: u64) -> &Kernel {
        let (shapes, kernels) = &self.pass[kind(key)][value_bytes / 4];
        &kernels[shapes.at(n).0]
    }

    pub fn segments(&self, key: KeyType) -> &Kernel {
        &self.segments[kind(key)]
    }

    /// Returns the ends of a sort, for the keys of a digit and for segments, if there are any.
    pub fn ends(&self, key: KeyType, value_bytes: usize) -> &[Option<End>; 2] {
        &self.ends[kind(key)][value_bytes / 4]
    }

    pub fn copy_back(&self, value_bytes: usize) -> &Kernel {
        &self.copy_back[value_bytes / 4]
    }
}

fn kind(key: KeyType) -> usize {
    usize::from(key.is_float())
}
