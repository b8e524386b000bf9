//! A call's way from its request to its launches: checks, division of scratch memory, and the
//! family's launches.

use super::auto::{self, Calibration};
use super::context::Context;
use super::family::{Shape, Task, measured};
use super::gather;
use super::order::KeyOrder;
use super::outcome::{SortOutcome, algorithm_id};
use super::registry::family;
use super::request::{Moved, Parts, Request};
use crate::{Algorithm, Error, Key, Result, SortOptions};
use gpu::{DevicePtr, Layout, SliceMut, Stream};

/// Checks a request, then launches its sort.
pub(super) fn run<K: Key>(
    (context, calibration): (&Context, &Calibration),
    stream: &Stream,
    request: Request<'_, K>,
    scratch: SliceMut<'_, u8>,
    options: &SortOptions,
) -> Result<()> {
    let parts = request.into_parts()?;
    let window = options.window::<K>()?;
    let mut plan = Plan::new::<K>(options.algorithm, context, &parts);
    plan.check_count()?;
    let memory = parts.buffers.check(&scratch, || plan.scratch_bytes())?;
    let as_measured = window == (0..K::BITS) && parts.device_count.is_null();
    plan.algorithm = calibration.resolve(plan.algorithm, &plan.shape, as_measured);
    let order = KeyOrder::new(K::TYPE, options.order, window);
    stream.using(&memory, || {
        let mut regions = plan.carve(&mut Layout::over(scratch)?)?;
        context.begin();
        if plan.shape.n == 0 {
            let outcome = regions.family.range(..size_of::<SortOutcome>())?;
            let mut outcome = outcome.cast()?;
            stream.fill_bytes(outcome.reborrow(), 0)?;
            return Ok(stream.fill_u32(outcome.range(..1)?, algorithm_id(Algorithm::Onesweep))?);
        }
        let (values_in, values_out) = match parts.moved {
            Moved::Nothing => (DevicePtr::NULL, DevicePtr::NULL),
            Moved::Values { input, output, .. } => (input, output),
            Moved::Index(index) => (DevicePtr::NULL, index.cast()),
            Moved::Records(_) => (DevicePtr::NULL, regions.index.device_ptr().cast()),
        };
        let task = Task {
            shape: plan.shape,
            order,
            keys_in: parts.keys_in,
            keys_out: parts.keys_out.unwrap_or(regions.spare_keys.device_ptr()),
            drop_keys: plan.spare_keys,
            values_in,
            values_out,
            device_count: parts.device_count,
            nearly_sorted: options.nearly_sorted,
        };
        family(plan.algorithm).sort(context, stream, &task, regions.family.reborrow())?;
        if let Moved::Records(records) = &parts.moved {
            gather::launch(context, stream, plan.shape.n, values_out.cast(), records)?;
        }
        context.mark(stream, "end")
    })
}

/// The properties of a call that determine its scratch memory.
pub(super) struct Plan {
    pub algorithm: Algorithm,
    pub shape: Shape,
    /// Whether the values are the keys' indices.
    pub implicit: bool,
    /// Whether the sorted keys go to scratch memory, because the caller does not ask for them.
    pub spare_keys: bool,
    /// Whether records are moved.
    pub records: bool,
}

/// The regions of a call's scratch memory.
struct Regions<'a> {
    /// The scratch memory of the family, which begins with the outcome.
    family: SliceMut<'a, u8>,
    /// The sorted keys, if the caller does not ask for them.
    spare_keys: SliceMut<'a, u8>,
    /// The sorted index of a record sort.
    index: SliceMut<'a, u32>,
}

impl Plan {
    fn new<K: Key>(algorithm: Algorithm, context: &Context, parts: &Parts) -> Self {
        let (value_bytes, implicit) = match parts.moved {
            Moved::Nothing => (0, false),
            Moved::Values { bytes, .. } => (bytes, false),
            Moved::Index(_) | Moved::Records(_) => (size_of::<u32>(), true),
        };
        Self {
            algorithm,
            shape: Shape {
                n: parts.buffers.keys() as u64,
                key: K::TYPE,
                value_bytes,
                large: context.config.knobs.force_large,
                parameter: context.config.knobs.parameter,
            },
            implicit,
            spare_keys: parts.keys_out.is_none(),
            records: matches!(parts.moved, Moved::Records(_)),
        }
    }

    /// Fails for more keys than the family takes, or, if the values are indices, than a `u32`
    /// counts.
    pub fn check_count(&self) -> Result<()> {
        let (keys, numbered) = (self.shape.n, u64::from(u32::MAX));
        let limit = family(self.algorithm).limit(&self.shape);
        let limit = if self.implicit {
            limit.min(numbered)
        } else {
            limit
        };
        if keys > limit {
            return Err(Error::TooManyKeys { keys, limit });
        }
        Ok(())
    }

    /// Returns the bytes of scratch memory; for `Auto`, enough for every algorithm that may run.
    pub fn scratch_bytes(&self) -> Result<u64> {
        if self.algorithm == Algorithm::Auto {
            let needed = |algorithm| Self { algorithm, ..*self }.scratch_bytes();
            // Only a size that overflows is an error, and no memory can be of that size.
            let others = auto::others(&self.shape).filter_map(|algorithm| needed(algorithm).ok());
            return Ok(others.max().unwrap_or(0).max(needed(Algorithm::Onesweep)?));
        }
        measured(|layout| self.carve(layout))
    }

    fn carve<'a>(&self, layout: &mut Layout<'a>) -> Result<Regions<'a>> {
        // A size that overflows saturates, and `take` refuses it.
        let n = usize::try_from(self.shape.n).unwrap_or(usize::MAX);
        let family = family(self.algorithm).scratch_bytes(&self.shape)?;
        let spare = n.saturating_mul(self.shape.key_bytes());
        Ok(Regions {
            family: layout.take(usize::try_from(family).unwrap_or(usize::MAX))?,
            spare_keys: layout.take(if self.spare_keys { spare } else { 0 })?,
            index: layout.take(if self.records { n } else { 0 })?,
        })
    }
}
