//! How a broad phase works, as C sees it.

use crate::error::{Failure, RadsweepStatus, entry};
use crate::pointer;
use sap::{Backend, Config, OnInvalid, OverlapRule, Strategy};

/// CUDA where a device answers, else the CPU; the environment variable RADSWEEP_BACKEND decides otherwise.
pub const RADSWEEP_BACKEND_AUTO: u32 = 0;
/// All cores.
pub const RADSWEEP_BACKEND_CPU: u32 = 1;
/// The first CUDA device; radsweep_create fails where there is none.
pub const RADSWEEP_BACKEND_CUDA: u32 = 2;

/// Chosen from the boxes of each frame. All strategies give the same pairs.
pub const RADSWEEP_STRATEGY_AUTO: u32 = 0;
/// Both ends of every box sorted on one axis and scanned.
pub const RADSWEEP_STRATEGY_ENDPOINTS: u32 = 1;
/// Least ends sorted on the best axis, each box sweeps forward.
pub const RADSWEEP_STRATEGY_SWEEP: u32 = 2;
/// The space cut into columns or cells first.
pub const RADSWEEP_STRATEGY_SUBDIVIDED: u32 = 3;

/// Boxes that touch overlap.
pub const RADSWEEP_RULE_CLOSED: u32 = 0;
/// Boxes that only touch do not overlap.
pub const RADSWEEP_RULE_OPEN: u32 = 1;

/// An update with an invalid box fails and names the first.
pub const RADSWEEP_INVALID_ERROR: u32 = 0;
/// Invalid boxes overlap nothing; the report counts them and names the first.
pub const RADSWEEP_INVALID_SKIP: u32 = 1;

/// How a broad phase works. Fill it with radsweep_config_default, then change what should differ.
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
    /// 1: pairs that start and end are found; 0: they are not, which is faster.
    pub events: u32,
    /// How far boxes are loosened, in the unit of the coordinates; 0 is off. A box is kept loosened while the one given stays inside, and
    /// pairs are those of the loosened boxes.
    pub margin: f32,
    /// The most bytes that the list of pairs may take, at 8 a pair; 0: half of the memory available at the time.
    pub pair_memory: u64,
    /// Pairs to make room for at first; more are made as needed.
    pub initial_pair_capacity: u64,
    /// Static and sleeping boxes that stayed as they were for some frames are held apart, neither sorted nor tested against each other,
    /// where there are this many or more, and they are a good part of all; 0: as many as are worth it, by measurement; UINT64_MAX: never.
    /// The pairs are the same.
    pub hold_from: u64,
}

/// Ends with `initial_pair_capacity`.
const FIRST_VERSION: usize =
    std::mem::offset_of!(RadsweepConfig, initial_pair_capacity) + size_of::<u64>();
// No padding: the members fill it.
const _: () = assert!(size_of::<RadsweepConfig>() == 8 + 6 * 4 + 3 * 8);

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
    hold_from: 0,
};

impl RadsweepConfig {
    /// The configuration behind a pointer from outside.
    ///
    /// # Safety
    ///
    /// As for [`pointer::sized`]; null is the default.
    pub(crate) unsafe fn read(pointer: *const Self) -> Result<Config, Failure> {
        if pointer.is_null() {
            return Ok(Config::default());
        }
        // SAFETY: plain numbers without padding, the size first.
        let given =
            unsafe { pointer::sized(pointer, FIRST_VERSION, DEFAULT, "the configuration")? };
        Ok(Config {
            backend: choose(
                "backend",
                given.backend,
                &[Backend::Auto, Backend::Cpu, Backend::Cuda],
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
                        allowed: "no more than memory can hold",
                    });
                }
            },
            sort: gpusort::Algorithm::Auto,
            // More than a usize counts is more than there can be.
            hold_from: (given.hold_from > 0)
                .then(|| usize::try_from(given.hold_from).unwrap_or(usize::MAX)),
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
            allowed: "one of the RADSWEEP_ constants for it",
        })
}

/// Fills a configuration with the default. `size` is sizeof(RadsweepConfig).
///
/// # Safety
///
/// `config` points at `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn radsweep_config_default(
    config: *mut RadsweepConfig,
    size: usize,
) -> RadsweepStatus {
    // SAFETY: the caller's promise.
    entry(|| unsafe {
        pointer::write_sized(config, size, FIRST_VERSION, DEFAULT, "the configuration")
    })
}
