//! One call's work, from its buffers to its launches: named and measured, checked, carved, and given to a family.

use super::auto::{self, Calibration};
use super::buffers::Buffers;
use super::context::Context;
use super::family::{Request, Shape, measured};
use super::gather::{self, Records};
use super::order::KeyOrder;
use super::outcome::{SortOutcome, algorithm_id};
use super::registry::family;
use crate::{Algorithm, Error, Key, Result, SortOptions};
use gpu::{Layout, Slice, SliceMut, Stream};

/// Where a sort's data lies, as device addresses.
pub(super) struct Job {
    pub buffers: Buffers,
    /// Arrays of that length, sorted side by side.
    pub arrays: Vec<Array>,
    pub value_bytes: usize,
    pub device_count: u64,
    pub records: Option<Records>,
}

#[derive(Default)]
pub(super) struct Array {
    keys_in: u64,
    /// None: the sorted keys are not wanted.
    pub keys_out: Option<u64>,
    /// 0: the values are the keys' places.
    pub values_in: u64,
    pub values_out: u64,
}

impl Job {
    /// A sort of arrays of `n` keys, none named yet.
    pub fn new(n: usize) -> Self {
        Self {
            buffers: Buffers::new(n),
            arrays: Vec::new(),
            value_bytes: 0,
            device_count: 0,
            records: None,
        }
    }

    /// A sort of the keys into what its array is yet to name.
    pub fn of<K: Key>(what: &'static str, keys: &Slice<'_, K>) -> Result<Self> {
        let mut job = Self::new(keys.len());
        job.keys(what, keys)?;
        Ok(job)
    }

    pub fn in_place<K: Key>(what: &'static str, keys: &SliceMut<'_, K>) -> Result<Self> {
        let mut job = Self::new(keys.len());
        let address = job.buffers.writes(what, keys)?;
        job.arrays.push(Array {
            keys_in: address,
            keys_out: Some(address),
            ..Array::default()
        });
        Ok(job)
    }

    /// One more array, to be sorted beside those before.
    pub fn keys<K: Key>(&mut self, what: &'static str, keys: &Slice<'_, K>) -> Result<&mut Array> {
        let keys_in = self.buffers.reads(what, keys)?;
        let at = self.arrays.len();
        self.arrays.push(Array {
            keys_in,
            ..Array::default()
        });
        Ok(&mut self.arrays[at])
    }

    /// Checks everything, then launches the sort.
    pub fn run<K: Key>(
        self,
        (context, calibration): (&Context, &Calibration),
        stream: &Stream,
        scratch: SliceMut<'_, u8>,
        options: &SortOptions,
    ) -> Result<()> {
        let window = options.window::<K>()?;
        let mut plan = Plan {
            algorithm: options.algorithm,
            shape: Shape {
                n: self.buffers.keys() as u64,
                key: K::TYPE,
                value_bytes: self.value_bytes,
                large: context.config.force_large,
                parameter: context.config.parameter,
            },
            arrays: self.arrays.len(),
            implicit: self.value_bytes != 0 && self.arrays[0].values_in == 0,
            spare_keys: self.arrays[0].keys_out.is_none(),
            records: self.records.is_some(),
        };
        plan.check_count()?;
        let memory = self.buffers.check(&scratch, || plan.scratch_bytes())?;
        let as_measured = window == (0..K::BITS) && self.device_count == 0;
        plan.algorithm = calibration.resolve(plan.algorithm, &plan.shape, as_measured);
        let order = KeyOrder::new(K::TYPE, options.order, window);
        stream.using(&memory, || {
            let mut regions = plan.carve(&mut Layout::over(scratch)?)?;

            context.begin();
            if plan.shape.n == 0 {
                let mut outcome = regions.family.range(..size_of::<SortOutcome>())?.cast()?;
                stream.fill_bytes(outcome.reborrow(), 0)?;
                return Ok(stream.fill_u32(outcome.range(..1)?, algorithm_id(Algorithm::Onesweep))?);
            }
            let spare_bytes = plan.shape.n * plan.shape.key_bytes() as u64;
            let requests = (0..).zip(&self.arrays).map(|(i, array)| Request {
                shape: plan.shape,
                order,
                keys_in: array.keys_in,
                keys_out: array
                    .keys_out
                    .unwrap_or(regions.spare_keys.ptr() + i * spare_bytes),
                drop_keys: plan.spare_keys,
                values_in: array.values_in,
                values_out: if plan.records {
                    regions.index.ptr()
                } else {
                    array.values_out
                },
                device_count: self.device_count,
                nearly_sorted: options.nearly_sorted,
            });
            let requests: Vec<_> = requests.collect();
            family(plan.algorithm).sort_arrays(
                context,
                stream,
                &requests,
                regions.family.reborrow(),
            )?;
            if let Some(records) = &self.records {
                gather::launch(context, stream, plan.shape.n, regions.index.ptr(), records)?;
            }
            context.mark(stream, "end")
        })
    }
}

/// What a call's scratch memory depends on.
pub(super) struct Plan {
    pub algorithm: Algorithm,
    pub shape: Shape,
    pub arrays: usize,
    /// The values are the keys' places.
    pub implicit: bool,
    /// The sorted keys need a place, as the caller does not want them.
    pub spare_keys: bool,
    pub records: bool,
}

/// Scratch memory, carved.
struct Regions<'a> {
    family: SliceMut<'a, u8>,
    /// The sorted keys of each array, where the caller does not want them.
    spare_keys: SliceMut<'a, u8>,
    /// The sorted index of a record sort.
    index: SliceMut<'a, u32>,
}

impl Plan {
    /// Fails for more keys than the family takes, or, where places are numbered, than a `u32` counts.
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

    /// By `Auto` enough for whichever algorithm that may become.
    pub fn scratch_bytes(&self) -> Result<u64> {
        if self.algorithm == Algorithm::Auto {
            let needed = |algorithm| Self { algorithm, ..*self }.scratch_bytes();
            let others = auto::others(&self.shape).filter_map(|algorithm| needed(algorithm).ok());
            return Ok(others.max().unwrap_or(0).max(needed(Algorithm::Onesweep)?));
        }
        measured(|layout| self.carve(layout))
    }

    fn carve<'a>(&self, layout: &mut Layout<'a>) -> Result<Regions<'a>> {
        // A size beyond an address saturates, and `take` refuses it.
        let n = usize::try_from(self.shape.n).unwrap_or(usize::MAX);
        let family = family(self.algorithm).scratch_bytes_arrays(&self.shape, self.arrays)?;
        let spare = n.saturating_mul(self.shape.key_bytes() * self.arrays);
        Ok(Regions {
            family: layout.take(usize::try_from(family).unwrap_or(usize::MAX))?,
            spare_keys: layout.take(if self.spare_keys { spare } else { 0 })?,
            index: layout.take(if self.records { n } else { 0 })?,
        })
    }
}
