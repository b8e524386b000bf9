//! The configuration of a broad phase for C.

use crate::entry::entry;
use crate::error::{Failure, RadsweepStatus};
use crate::pointer;
use sap::{Backend, Config, OnInvalid, OverlapRule, Strategy};
use std::num::NonZero;

/// CUDA if there is a device, else another GPU if the library was built with `wgpu`, else
/// the CPU.
pub const RADSWEEP_BACKEND_AUTO: u32 = 0;
/// The CPU, on all cores.
pub const RADSWEEP_BACKEND_CPU: u32 = 1;
/// The first CUDA device; radsweep_create fails without one.
pub const RADSWEEP_BACKEND_CUDA: u32 = 2;
/// The best GPU through Vulkan, Metal or DirectX 12, if the library was built with `wgpu`;
/// radsweep_create fails without one. It has all strategies but ENDPOINTS.
pub const RADSWEEP_BACKEND_WGPU: u32 = 3;

/// Chosen from the boxes of each frame. All strategies give the same pairs.
pub const RADSWEEP_STRATEGY_AUTO: u32 = 0;
/// Sorts both ends of every box on one axis and scans them.
pub const RADSWEEP_STRATEGY_ENDPOINTS: u32 = 1;
/// Sorts the lower ends on the best axis; each box sweeps forward.
pub const RADSWEEP_STRATEGY_SWEEP: u32 = 2;
/// Divides the space into columns or cells first.
pub const RADSWEEP_STRATEGY_SUBDIVIDED: u32 = 3;

/// Boxes that only touch overlap.
pub const RADSWEEP_RULE_CLOSED: u32 = 0;
/// Boxes that only touch do not overlap.
pub const RADSWEEP_RULE_OPEN: u32 = 1;

/// An update with invalid boxes fails and reports the first.
pub const RADSWEEP_INVALID_ERROR: u32 = 0;
/// Invalid boxes overlap nothing; the report has their number and the first.
pub const RADSWEEP_INVALID_SKIP: u32 = 1;

/// The configuration of a broad phase. Fill it with radsweep_config_default, then change members.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RadsweepConfig {
    /// sizeof(RadsweepConfig).
    pub size: u64,
    /// RADSWEEP_BACKEND_*.
    pub backend: u32,
    /// RADSWEEP_STRATEGY_*.
    pub strategy: u32,
    /// RADSWEEP_RULE_*.
    pub rule: u32,
    /// RADSWEEP_INVALID_*.
    pub on_invalid: u32,
    /// 1 finds the pairs that started and ended; 0 does not, which is faster.
    pub events: u32,
    /// The margin by which boxes are loosened, in the unit of the coordinates; 0 is off. A loosened
    /// box stays unchanged while the given box is inside it. Pairs are those of the loosened boxes.
    pub margin: f32,
    /// Max bytes of the list of pairs, at 8 per pair; 0 means half of the available memory.
    pub pair_memory: u64,
    /// Initial capacity for pairs; it grows as needed.
    pub initial_pair_capacity: u64,
    /// Min number of unchanged boxes (on CUDA static and sleeping ones) that are neither sorted nor
    /// tested against each other, if they are a good part of all. 0 means 1,024 on the CPU and
    /// 32,768 on CUDA; UINT64_MAX means never. Only frames of more boxes than this have a neighbour
    /// list (0: any number on the CPU, more than 4,096 on CUDA). On CUDA frames of at least as many
    /// boxes go to regions of space before their cells, of 1,500,000 in any case. The pairs are the
    /// same.
    pub min_resting: u64,
    /// The number of threads that the broad phase works on, on the CPU; 0: all of the processor's.
    /// Small frames stay on the caller's thread in any case.
    pub threads: u64,
}

/// The size of the first version, which ends with `initial_pair_capacity`.
const FIRST_VERSION: usize =
    std::mem::offset_of!(RadsweepConfig, initial_pair_capacity) + size_of::<u64>();
// The members leave no padding.
const _: () = assert!(size_of::<RadsweepConfig>() == 8 + 6 * 4 + 4 * 8);

const DEFAULT: RadsweepConfig = RadsweepConfig {
    size: size_of::<RadsweepConfig>() as u64,
    backend: RADSWEEP_BACKEND_AUTO,
    strategy: RADSWEEP_STRATEGY_AUTO,
    rule: RADSWEEP_RULE_CLOSED,
    on_invalid: RADSWEEP_INVALID_ERROR,
    events: 1,
    margin: 0.0,
    pair_memory: 0,
    initial_pair_capacity: 0,
    min_resting: 0,
    threads: 0,
};

impl RadsweepConfig {
    /// Reads a configuration; null means the default.
    ///
    /// # Safety
    ///
    /// As for [`pointer::sized`].
    pub(crate) unsafe fn read(pointer: *const Self) -> Result<Config, Failure> {
        if pointer.is_null() {
            return Ok(Config::default());
        }
        // SAFETY: the members are plain numbers without padding, the size first.
        let given =
            unsafe { pointer::sized(pointer, FIRST_VERSION, DEFAULT, "the configuration")? };
        Ok(Config {
            backend: choose(
                "backend",
                given.backend,
                &[Backend::Auto, Backend::Cpu, Backend::Cuda, Backend::Wgpu],
            )?,
            strategy: choose(
                "strategy",
                given.strategy,
                &[
                    Strategy::Auto,
                    Strategy::Endpoints,
                    Strategy::Sweep,
                    Strategy::Subdivided,
                ],
            )?,
            rule: choose(
                "rule",
                given.rule,
                &[OverlapRule::Closed, OverlapRule::Open],
            )?,
            on_invalid: choose(
                "on_invalid",
                given.on_invalid,
                &[OnInvalid::Error, OnInvalid::Skip],
            )?,
            events: choose("events", given.events, &[false, true])?,
            margin: given.margin,
            pair_memory: (given.pair_memory > 0).then_some(given.pair_memory),
            initial_pair_capacity: match usize::try_from(given.initial_pair_capacity) {
                Ok(0) => None,
                Ok(capacity) if capacity <= isize::MAX as usize / size_of::<sap::Pair>() => {
                    Some(capacity)
                }
                _ => {
                    return Err(Failure::Argument {
                        what: "initial_pair_capacity",
                        given: given.initial_pair_capacity.to_string(),
                        allowed: "no more than fits in memory",
                    });
                }
            },
            device: None,
            sort: gpusort::Algorithm::Auto,
            // No frame has more boxes than a usize can count.
            min_resting: (given.min_resting > 0)
                .then(|| usize::try_from(given.min_resting).unwrap_or(usize::MAX)),
            threads: NonZero::new(usize::try_from(given.threads).unwrap_or(usize::MAX)),
            timings: true,
        })
    }
}

fn choose<T: Copy>(what: &'static str, given: u32, choices: &[T]) -> Result<T, Failure> {
    choices
        .get(given as usize)
        .copied()
        .ok_or_else(|| Failure::Argument {
            what,
            given: given.to_string(),
            allowed: "one of its RADSWEEP_ constants",
        })
}

/// Fills a configuration with the default. `size` is sizeof(RadsweepConfig).
///
/// # Safety
///
/// `config` points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_config_default(
    config: *mut RadsweepConfig,
    size: usize,
) -> RadsweepStatus {
    // SAFETY: guaranteed by the caller.
    entry(|| unsafe {
        pointer::write_sized(config, size, FIRST_VERSION, DEFAULT, "the configuration")
    })
}
