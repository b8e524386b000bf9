//! Boxes that go to the buckets of a grid in two steps: to regions of space first, and then within
//! each (`kernels/sap/grid_regions.cuh`).

use crate::Result;
use crate::cuda::abi::{State, counter};
use crate::cuda::find::cut::{Cut, Record};
use crate::cuda::find::high::High;
use crate::cuda::find::sample::{Sampled, present};
use crate::cuda::find::search::Active;
use crate::cuda::input::scene::address;
use crate::cuda::launch::module;
use crate::cuda::offsets::Offsets;
use crate::cuda::tuning::{CROWDED, MANY_REGIONS, MIN_CROWD, REGION_BOXES, REGION_BOXES_OF_MANY};
use bytemuck::{Pod, Zeroable};
use gpu::{ByValue, Device, DevicePtr, Kernel, Launch, Stream, args, assert_layout, blocks};

/// Max regions: `MAX_REGIONS` of the kernels.
const MAX_REGIONS: usize = 8192;
/// Threads of a block: `REGION_THREADS` of the kernels.
const THREADS: u32 = 512;
/// Threads of a block for a large region: `LARGE_THREADS` of the kernels.
const LARGE_THREADS: u32 = 1024;
/// Boxes that a block of the partition takes: `REGION_THREADS * PARTITION_ITEMS` of the kernels.
const TILE: u32 = 2560;
/// Boxes of a region that a block of [`THREADS`] holds: half of `HELD * REGION_THREADS` of the
/// kernels.
const HELD: usize = 2304;
/// Buckets that a block counts at a time: `REGION_WINDOW` of the kernels. It reads regions of more
/// twice.
const WINDOW: usize = 4096;

/// How buckets are divided into regions: `Regions` of the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Division {
    count: u32,
    /// A region has `2^shift` buckets.
    shift: u32,
}

assert_layout!(Division, 8: count 0, shift 4);

impl Division {
    /// Divides the buckets of `n` boxes.
    pub(super) fn new(buckets: usize, n: usize) -> Self {
        // A region has few buckets for a box, so that a label has room for their numbers.
        let n = n.max(buckets / 8);
        let many = (n / REGION_BOXES_OF_MANY).clamp(MANY_REGIONS, MAX_REGIONS);
        let few = buckets.div_ceil(WINDOW).min(MAX_REGIONS);
        let max = (n / REGION_BOXES).clamp(1, many).max(few);
        let mut shift = 0;
        while buckets.div_ceil(1 << shift) > max {
            shift += 1;
        }
        Self {
            count: buckets.div_ceil(1 << shift) as u32,
            shift,
        }
    }

    /// Tells whether a region holds too many of `n` boxes for its block.
    pub(super) const fn is_crowded(self, boxes: u64, n: usize) -> bool {
        boxes * self.count as u64 > CROWDED * n as u64
    }

    /// Tells whether boxes are spread over the regions, by a sample of them.
    pub(super) fn is_spread(self, cut: &Cut, sample: &[Sampled]) -> bool {
        let mut boxes = vec![0; self.count as usize];
        for Sampled { aabb, world, .. } in present(sample) {
            boxes[cut.bucket(aabb, *world) >> self.shift] += 1;
        }
        let most = boxes.into_iter().max().unwrap_or(0);
        most < MIN_CROWD || !self.is_crowded(most, sample.len())
    }
}

/// The kernels of the two steps, and where regions begin and end.
pub(super) struct Regions {
    count: Kernel,
    partition: Kernel,
    arrange: Kernel,
    arrange_large: Kernel,
    /// Blocks of `count` that the device holds at once.
    resident: u32,
    ends: Offsets,
}

/// Memory for a record of each box on its way, for an offset of each bucket and one more, for a
/// record of each box, and counters that have been reset since boxes were arranged with them.
pub(super) struct Memory {
    pub(super) partitioned: DevicePtr<Record>,
    pub(super) starts: DevicePtr<u32>,
    pub(super) records: DevicePtr<Record>,
    pub(super) high: High,
    pub(super) state: DevicePtr<State>,
}

impl Regions {
    pub(super) fn new(device: &Device) -> Result<Self> {
        let module = module(device)?;
        let count = module.kernel("sap_region_count")?;
        let resident = count.blocks_per_multiprocessor(THREADS, 0)?.max(1);
        Ok(Self {
            count,
            partition: module.kernel("sap_region_partition")?,
            arrange: module.kernel("sap_region_arrange")?,
            arrange_large: module.kernel("sap_region_arrange_large")?,
            resident: device.info().multiprocessors * resident,
            ends: Offsets::new(device)?,
        })
    }

    /// Arranges boxes by way of the regions of a division.
    ///
    /// # Safety
    ///
    /// The boxes' indices are null, or one for each box. The addresses of `memory` are of what it
    /// says.
    pub(super) unsafe fn arrange(
        &mut self,
        stream: &Stream,
        active: Active,
        cut: &Cut,
        division: Division,
        memory: &Memory,
    ) -> Result<()> {
        self.ends.begin(stream, division.count as usize)?;
        let Active { scene, ids } = active;
        let (boxes, worlds, n) = (scene.boxes()?, address(&scene.worlds), scene.n as u32);
        let (by_value, regions) = (ByValue(*cut), ByValue(division));
        let (ends, buckets) = (self.ends.ptr(), cut.buckets() as u32);
        let &Memory {
            partitioned,
            starts,
            records,
            high,
            state,
        } = memory;
        let count = Launch::linear(self.resident.min(blocks(scene.n, THREADS)), THREADS);
        let partition = Launch::linear(blocks(scene.n, TILE), THREADS);
        let is_large = scene.n / division.count as usize > HELD * 9 / 10;
        let (arrange, threads) = match is_large {
            true => (&self.arrange_large, LARGE_THREADS),
            false => (&self.arrange, THREADS),
        };
        // SAFETY: the caller's promise; there is a count for each region.
        unsafe {
            let arguments = args![boxes, worlds, n, by_value, regions, ends, state];
            stream.launch(&self.count, &count, &arguments)?;
            let (crowded, placed) = (counter!(state, crowded), counter!(state, placed));
            self.ends.make(stream, crowded, placed)?;
            let arguments = args![boxes, worlds, ids, n, by_value, regions, ends, partitioned];
            stream.launch(&self.partition, &partition, &arguments)?;
            let (launch, high) = (Launch::linear(division.count, threads), ByValue(high));
            let arguments = args![partitioned, ends, regions, buckets, starts, records, high];
            stream.launch(arrange, &launch, &arguments)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_cover_all_buckets() {
        for buckets in [1, 2, 2047, 2048, 2049, 100_000, 10_350_000, 1 << 30] {
            for n in [1, REGION_BOXES, 100_000, 10_000_000, 1 << 31] {
                let Division { count, shift } = Division::new(buckets, n);
                assert!(
                    count as usize <= MAX_REGIONS && shift < 27,
                    "{count} {shift}"
                );
                assert_eq!(count as usize, buckets.div_ceil(1 << shift));
            }
        }
        let of = |n: usize| Division::new(n + n / 50, n);
        let division = |count, shift| Division { count, shift };
        assert_eq!(of(2_000_000), division(997, 11));
        assert_eq!(of(10_000_000), division(2491, 12));
        assert_eq!(of(20_000_000), division(4981, 12));
        assert_eq!(of(40_000_000), division(4981, 13));
    }

    #[test]
    fn crowds_are_beyond_the_mean() {
        let many = Division {
            count: 1000,
            shift: 13,
        };
        assert!(!many.is_crowded(CROWDED * 10_000, 10_000_000));
        assert!(many.is_crowded(CROWDED * 10_000 + 1, 10_000_000));
        // One region has all.
        let one = Division {
            count: 1,
            shift: 13,
        };
        assert!(!one.is_crowded(5000, 5000));
    }
}
