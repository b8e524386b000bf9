//! The kernels of the sorts, compiled at their first use.

use super::config::{SorterConfig, Subgroups};
use super::scratch::{Payload, tiles};
use crate::{KeyType, Result};
use radsweep_kernels::wgsl::{self, RADIX_ITEMS, Radix, Target};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use wgpu_device::{Device, Kernel};

/// The max number of small tiles: about the multiprocessors of a large GPU. On an H200
/// (2026-11-26) 2^18 pairs were sorted at 3.1 G keys/s in 128 small tiles, and at 2.6 in 64 large
/// ones.
const SMALL_TILES: u32 = 128;

/// The kernels of the sorts of a key width and payload.
#[derive(Debug)]
pub(super) struct Kernels {
    pub inspect: Kernel,
    pub inspect_counted: Kernel,
    pub count: Kernel,
    pub scan: Kernel,
    pub scatter: Kernel,
    pub emit_keys: Kernel,
    /// `None` without values.
    pub emit_values: Option<Kernel>,
}

/// The kernels that were used so far.
#[derive(Debug)]
pub(super) struct Modules {
    subgroups: Option<wgsl::Subgroups>,
    compiled: Mutex<HashMap<Radix, Arc<Kernels>>>,
}

impl Modules {
    /// Chooses how digits are ranked. A workgroup must have memory and threads for it.
    pub fn new(device: &Device, config: SorterConfig) -> Result<Self> {
        let limits = device.limits();
        let bytes = |subgroups| {
            let module = Radix {
                key: wgsl::Key::Bits32,
                value: wgsl::Value::U32,
                is_plain: true,
                tile: wgsl::Tile::Large,
                subgroups,
            };
            module.workgroup_bytes()
        };
        let offered = [
            (
                "the memory of a workgroup",
                bytes(None),
                limits.max_compute_workgroup_storage_size,
            ),
            (
                "the threads of a workgroup",
                wgsl::WORKGROUP,
                limits
                    .max_compute_invocations_per_workgroup
                    .min(limits.max_compute_workgroup_size_x),
            ),
        ];
        for (what, needed, limit) in offered {
            device.within(what, needed.into(), limit.into())?;
        }
        let sizes = device
            .subgroups()
            .filter(|_| config.subgroups == Subgroups::Auto);
        let subgroups = sizes.map(|sizes| wgsl::Subgroups {
            min: sizes.min,
            max: sizes.max,
        });
        // The fewer lanes a subgroup has, the more counters a workgroup needs.
        let allowed = limits.max_compute_workgroup_storage_size;
        Ok(Self {
            subgroups: subgroups.filter(|&sizes| bytes(Some(sizes)) <= allowed),
            compiled: Mutex::default(),
        })
    }

    pub fn use_subgroups(&self) -> bool {
        self.subgroups.is_some()
    }

    /// Returns the module for so many keys of this type.
    pub fn module(&self, n: u32, key: KeyType, payload: Payload, is_plain: bool) -> Radix {
        Radix {
            key: match key.bits() {
                32 => wgsl::Key::Bits32,
                _ => wgsl::Key::Bits64,
            },
            value: payload.value(),
            is_plain,
            tile: if tiles(n, RADIX_ITEMS) <= SMALL_TILES {
                wgsl::Tile::Small
            } else {
                wgsl::Tile::Large
            },
            subgroups: self.subgroups,
        }
    }

    /// Returns the kernels of a module, and compiles them if these are the first.
    pub fn get(&self, device: &Device, module: Radix) -> Result<Arc<Kernels>> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernels) = compiled.get(&module) {
            return Ok(Arc::clone(kernels));
        }
        let kernels = Arc::new(compile(device, &module)?);
        compiled.insert(module, Arc::clone(&kernels));
        Ok(kernels)
    }
}

fn compile(device: &Device, module: &Radix) -> Result<Kernels> {
    // SAFETY: every index is below the bounds that `Sorter::encode` compares with the sizes of the
    // buffers, or below the constants that size the memory of a workgroup; and every loop ends.
    let compiled = unsafe { device.trusted_module("radix sort", &module.text(Target::Native)) }?;
    let kernel = |name| compiled.kernel(device, name);
    Ok(Kernels {
        inspect: kernel("inspect")?,
        inspect_counted: kernel("inspect_counted")?,
        count: kernel("count")?,
        scan: kernel("scan")?,
        scatter: kernel("scatter")?,
        emit_keys: kernel("emit_keys")?,
        emit_values: match module.value {
            wgsl::Value::None => None,
            _ => Some(kernel("emit_values")?),
        },
    })
}
