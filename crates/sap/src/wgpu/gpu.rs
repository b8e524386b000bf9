//! The device with what is compiled for it, shared by all engines of the process.

use crate::{Error, Result};
use gpusort::wgpu::{Sorter, SorterConfig};
use radsweep_kernels::wgsl::{self, Cells, Key, Sweep};
use std::sync::{Arc, Mutex, PoisonError};
use wgpu_device::{Adapters, Device, Kernel, Module};

/// The kernels of a sweep, as `kernels/wgsl/sap/sweep.wgsl` describes them.
pub(super) struct Kernels {
    pub(super) make_keys: Kernel,
    pub(super) arrange: Kernel,
    pub(super) scan_sums: Kernel,
    pub(super) place_starts: Kernel,
    pub(super) find: Kernel,
    pub(super) count_rows: Kernel,
    /// The kernels that make columns, if keys are wide.
    pub(super) columns: Option<ColumnKernels>,
}

/// The kernels that copy boxes into columns.
pub(super) struct ColumnKernels {
    pub(super) count_copies: Kernel,
    pub(super) make_copies: Kernel,
}

/// The kernels that count instead of sorting, as `kernels/wgsl/sap/cells.wgsl` describes them.
pub(super) struct CellKernels {
    pub(super) count_cells: Kernel,
    pub(super) scan_counts: Kernel,
    pub(super) place_entries: Kernel,
    pub(super) number_tests: Kernel,
    pub(super) find_in_cells: Kernel,
    pub(super) place_pairs: Kernel,
    pub(super) store_rows: Kernel,
}

/// The kernels for lists that stay on the device, as `kernels/wgsl/sap/read.wgsl`,
/// `kernels/wgsl/sap/read_forms.wgsl` and `kernels/wgsl/sap/lists.wgsl` describe them.
pub(super) struct ResidentKernels {
    pub(super) merge_ends: Kernel,
    pub(super) round_outward: Kernel,
    pub(super) check_boxes: Kernel,
    pub(super) check_and_compare: Kernel,
    pub(super) loosen: Kernel,
    pub(super) copy_words: Kernel,
    pub(super) compare_words: Kernel,
    pub(super) draw_sample: Kernel,
    pub(super) store_pairs: Kernel,
    pub(super) count_common: Kernel,
}

/// A device, its sorts and its kernels.
#[derive(Clone)]
pub(super) struct Gpu(Arc<Inner>);

struct Inner {
    sorter: Sorter,
    /// The kernels of a sweep with narrow keys, and those with wide ones: for many worlds, or
    /// columns.
    kernels: [Mutex<Option<Arc<Kernels>>>; 2],
    resident: Mutex<Option<Arc<ResidentKernels>>>,
    cells: Mutex<Option<Arc<CellKernels>>>,
}

/// The devices that were opened so far, or why there is none.
static OPENED: Mutex<Vec<(Adapters, Result<Gpu>)>> = Mutex::new(Vec::new());

impl Gpu {
    /// Returns the best device of a kind. It is opened once for all engines, and again if it was
    /// lost.
    pub(super) fn open(adapters: Adapters) -> Result<Self> {
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = opened.iter().find(|(kind, _)| *kind == adapters);
        match known {
            Some((_, Ok(gpu))) if gpu.works() => return Ok(gpu.clone()),
            Some((_, Err(error))) => return Err(error.clone()),
            _ => opened.retain(|(kind, _)| *kind != adapters),
        }
        let gpu = match Device::new(adapters) {
            Ok(device) => Self::new(&device)?,
            Err(error) => {
                let looked_for = error.to_string();
                opened.push((
                    adapters,
                    Err(Error::NoWgpu {
                        looked_for: looked_for.clone(),
                    }),
                ));
                return Err(Error::NoWgpu { looked_for });
            }
        };
        opened.push((adapters, Ok(gpu.clone())));
        Ok(gpu)
    }

    /// Takes a device of the caller.
    pub(super) fn new(device: &Device) -> Result<Self> {
        Ok(Self(Arc::new(Inner {
            sorter: Sorter::new(device, SorterConfig::default())?,
            kernels: Default::default(),
            resident: Mutex::default(),
            cells: Mutex::default(),
        })))
    }

    fn works(&self) -> bool {
        self.device().checked("probe", || ()).is_ok()
    }

    pub(super) fn device(&self) -> &Device {
        self.0.sorter.device()
    }

    pub(super) fn sorter(&self) -> &Sorter {
        &self.0.sorter
    }

    /// Returns the kernels for keys of this width, and compiles them if these are the first.
    pub(super) fn kernels(&self, key: Key) -> Result<Arc<Kernels>> {
        let [one, many] = &self.0.kernels;
        let kept = match key {
            Key::Bits32 => one,
            Key::Bits64 => many,
        };
        compiled(kept, || {
            let device = self.device();
            let module = trusted(device, "sweep", &Sweep { key }.text())?;
            let kernel = |name| module.kernel(device, name);
            Ok(Kernels {
                make_keys: kernel("make_keys")?,
                arrange: kernel("arrange")?,
                scan_sums: kernel("scan_sums")?,
                place_starts: kernel("place_starts")?,
                find: kernel("find")?,
                count_rows: kernel("count_rows")?,
                columns: match key {
                    Key::Bits32 => None,
                    Key::Bits64 => Some(ColumnKernels {
                        count_copies: kernel("count_copies")?,
                        make_copies: kernel("make_copies")?,
                    }),
                },
            })
        })
    }

    /// Returns the kernels for lists that stay on the device, and compiles them if these are the
    /// first.
    pub(super) fn resident(&self) -> Result<Arc<ResidentKernels>> {
        compiled(&self.0.resident, || {
            let device = self.device();
            let frame = trusted(device, "resident frame", &wgsl::Resident::Frame.text())?;
            let pairs = trusted(device, "resident pairs", &wgsl::Resident::Pairs.text())?;
            Ok(ResidentKernels {
                merge_ends: frame.kernel(device, "merge_ends")?,
                round_outward: frame.kernel(device, "round_outward")?,
                check_boxes: frame.kernel(device, "check_boxes")?,
                check_and_compare: frame.kernel(device, "check_and_compare")?,
                loosen: frame.kernel(device, "loosen")?,
                copy_words: frame.kernel(device, "copy_words")?,
                compare_words: frame.kernel(device, "compare_words")?,
                draw_sample: frame.kernel(device, "draw_sample")?,
                store_pairs: pairs.kernel(device, "store_pairs")?,
                count_common: pairs.kernel(device, "count_common")?,
            })
        })
    }

    /// Returns the kernels that count instead of sorting, and compiles them if these are the first.
    pub(super) fn cells(&self) -> Result<Arc<CellKernels>> {
        compiled(&self.0.cells, || {
            let device = self.device();
            let module = trusted(device, "cells", &Cells.text())?;
            let kernel = |name| module.kernel(device, name);
            Ok(CellKernels {
                count_cells: kernel("count_cells")?,
                scan_counts: kernel("scan_counts")?,
                place_entries: kernel("place_entries")?,
                number_tests: kernel("number_tests")?,
                find_in_cells: kernel("find_in_cells")?,
                place_pairs: kernel("place_pairs")?,
                store_rows: kernel("store_rows")?,
            })
        })
    }
}

/// Returns what is kept, and compiles it if it is asked for first.
fn compiled<T>(
    kept: &Mutex<Option<Arc<T>>>,
    compile: impl FnOnce() -> Result<T>,
) -> Result<Arc<T>> {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kernels) = &*kept {
        return Ok(Arc::clone(kernels));
    }
    Ok(Arc::clone(kept.insert(Arc::new(compile()?))))
}

/// Reads a module whose indices and loops are not checked: on an H200 that takes a tenth off a
/// frame, and a third off the launch that reads it.
fn trusted(device: &Device, what: &str, text: &str) -> Result<Module> {
    // SAFETY: a kernel leaves out the elements beyond the numbers in its parameters, for which the
    // buffers were reserved. The indices that it reads from memory were written by kernels before
    // it, below these numbers, or are bounded where they are read; each loop has a bound.
    Ok(unsafe { device.trusted_module(what, text) }?)
}
