//! The kernels of one image, loaded.

use super::tuning::tile_for;
use crate::{KeyType, Result};
use gpu::{Device, Kernel};
use radsweep_kernels as images;

/// Kernels for one key width and one offset width.
#[derive(Debug)]
pub(in crate::cuda) struct Kernels {
    histogram: [Kernel; 2],
    /// By kind of key (integer, float), then bytes of a value (0, 4, 8).
    pass: [[Kernel; 3]; 2],
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
        let module = device.load(image.name, image.ptx)?;
        let values = |kernel: &dyn Fn(usize) -> Result<Kernel>| {
            Ok::<_, crate::Error>([kernel(0)?, kernel(4)?, kernel(8)?])
        };
        let pass = |kind: &str| {
            values(&|value_bytes| {
                let most = device.info().shared_per_block_optin;
                let tile = tile_for(key_bytes, value_bytes, if large { 0 } else { most });
                let name = format!(
                    "onesweep_pass_{kind}_{value_bytes}_{}x{}",
                    tile.threads, tile.items
                );
                let kernel = module.kernel(&name)?;
                kernel.set_max_dynamic_shared(tile.shared_bytes(
                    key_bytes,
                    value_bytes,
                    if large { 8 } else { 4 },
                ))?;
                Ok(kernel)
            })
        };
        let named = |name: &str| module.kernel(name);
        Ok(Self {
            histogram: [
                named("onesweep_histogram_integer")?,
                named("onesweep_histogram_float")?,
            ],
            pass: [pass("integer")?, pass("float")?],
            copy_back: values(&|bytes| Ok(named(&format!("onesweep_copy_back_{bytes}"))?))?,
        })
    }

    pub fn histogram(&self, key: KeyType) -> &Kernel {
        &self.histogram[kind(key)]
    }

    pub fn pass(&self, key: KeyType, value_bytes: usize) -> &Kernel {
        &self.pass[kind(key)][value_bytes / 4]
    }

    pub fn copy_back(&self, value_bytes: usize) -> &Kernel {
        &self.copy_back[value_bytes / 4]
    }
}

fn kind(key: KeyType) -> usize {
    usize::from(matches!(key, KeyType::F32 | KeyType::F64))
}
