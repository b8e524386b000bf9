//! The sublists, samples and buckets of a sort, chosen by its number of keys, and the structs and
//! scratch memory that host and kernels share. The kernels' side is at the head of
//! `kernels/sort/bucket_sort.cu` and in `kernels/sort/bucket_divide.cuh`.

use super::tuning::{
    ELEMENT_BYTES, FILL, ITEMS, MAX_BUCKETS, MAX_GROUPS, MAX_RUNS, MAX_SPACING, MIN_SPACING,
    MIN_SPACING_OF_PARTS, PART_LEVELS, TILE_THREADS,
};
use crate::Result;
use crate::cuda::family::Shape;
use crate::cuda::order::KeyOrder;
use crate::cuda::outcome::SortOutcome;
use bytemuck::{Pod, Zeroable};
use gpu::{DevicePtr, Layout, SliceMut, assert_layout};

/// The kind of a tile: how bucket_tile.cuh sorts it on chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tile {
    pub key_bytes: usize,
    /// Whether elements are keys with their indices, or keys alone.
    pub indexed: bool,
}

impl Tile {
    /// Returns the kind of tile for a sort. `exact` says that the ordered bits in the window
    /// determine the key.
    pub fn new(shape: &Shape, exact: bool) -> Self {
        Self {
            key_bytes: shape.key_bytes(),
            indexed: !exact || shape.value_bytes != 0,
        }
    }

    /// Returns the kind of tile for the samples, which are an index sort.
    pub fn of_samples(self) -> Self {
        Self {
            indexed: true,
            ..self
        }
    }

    pub fn items(self) -> u32 {
        ITEMS[self.key_bytes / 8][usize::from(self.indexed)]
    }

    pub fn keys(self) -> u64 {
        u64::from(TILE_THREADS * self.items())
    }

    /// Returns the bytes of the kernels' `Tile::Shared`.
    pub fn shared_bytes(self) -> u32 {
        let element = ELEMENT_BYTES[self.key_bytes / 8][usize::from(self.indexed)];
        (self.keys() as u32 * element + TILE_THREADS / 32 * 4).next_multiple_of(16)
    }
}

/// The numbers of sublists, buckets and samples, which follow from the number of keys and the tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    pub n: u64,
    pub tile: Tile,
    /// The number of sublists, the paper's m.
    pub sublists: u64,
    /// The number of buckets, the paper's s. One if there is one sublist, whose local sort then is
    /// all.
    pub buckets: u64,
    /// Keys from one sample to the next; divides a tile.
    pub spacing: u64,
    /// Max keys of a bucket, for every input.
    pub largest_bucket: u64,
}

impl Plan {
    /// Makes a plan. Tests and measurements fix the number of buckets by `buckets`.
    pub fn new(n: u64, tile: Tile, buckets: Option<u32>) -> Self {
        let sublists = n.div_ceil(tile.keys()).max(1);
        let mut plan = Self {
            n,
            tile,
            sublists,
            buckets: 1,
            spacing: 1,
            largest_bucket: n,
        };
        if sublists == 1 {
            return plan;
        }
        // Buckets of one tile, or of the min number of tiles that allows the spacing.
        for levels in 0.. {
            plan.buckets = (n * 100).div_ceil((tile.keys() * FILL) << levels).max(2);
            if let Some(buckets) = buckets {
                plan.buckets = u64::from(buckets).clamp(2, MAX_BUCKETS);
            }
            plan.spacing = MAX_SPACING;
            while plan.spacing > 1 && plan.bound() * plan.buckets > 2 * n {
                plan.spacing /= 2;
            }
            let min_spacing = if levels == PART_LEVELS {
                MIN_SPACING_OF_PARTS
            } else {
                MIN_SPACING
            };
            if buckets.is_some()
                || plan.buckets == 2
                || plan.spacing >= min_spacing && plan.buckets <= MAX_BUCKETS
            {
                break;
            }
        }
        plan.largest_bucket = plan.bound();
        plan
    }

    /// Returns the max keys of a bucket. It has at most `ceil(samples / buckets)` samples, each
    /// with the keys up to the next sample, and in each sublist the keys before its first sample.
    fn bound(&self) -> u64 {
        let samples = self.samples().div_ceil(self.buckets);
        ((samples + self.sublists) * self.spacing - self.sublists).min(self.n)
    }

    pub fn samples(&self) -> u64 {
        self.n.div_ceil(self.spacing)
    }

    /// Returns the levels of merges after the tiles of the samples are sorted.
    pub fn sample_levels(&self) -> u32 {
        levels(self.samples(), self.tile.of_samples())
    }

    /// Returns the levels of merges of the largest possible bucket.
    pub fn bucket_levels(&self) -> u32 {
        levels(self.largest_bucket, self.tile)
    }

    /// Returns the max tiles of a bucket.
    fn bucket_runs(&self) -> u64 {
        self.largest_bucket.div_ceil(self.tile.keys())
    }

    /// Returns the keys from one sample to the next in the tiles of a bucket that is split into
    /// parts. 1 if no bucket has several tiles. `None` if buckets have too many tiles for this and
    /// are merged in pairs.
    pub fn part_spacing(&self) -> Option<u64> {
        let (runs, tile) = (self.bucket_runs(), self.tile.keys());
        // A block sorts all samples of a bucket.
        let capacity = self.tile.of_samples().keys();
        match runs {
            ..=1 => Some(1),
            2..=MAX_RUNS => Some((runs * tile).div_ceil(capacity).next_power_of_two().max(32)),
            _ => None,
        }
    }

    /// Returns the capacity for the samples of all buckets' tiles.
    pub fn part_samples(&self) -> u64 {
        let samples = |spacing| self.bucket_tiles() * (self.tile.keys() / spacing);
        self.part_spacing().map_or(0, samples)
    }

    /// Returns the capacity for the parts of all buckets: one more than twice the tiles of each.
    pub fn parts(&self) -> u64 {
        2 * self.bucket_tiles() + self.buckets
    }

    /// Returns the max tiles of all buckets together.
    pub fn bucket_tiles(&self) -> u64 {
        self.n / self.tile.keys() + self.buckets
    }

    /// Returns the sublists of a group of step 7, and the number of groups.
    pub fn groups(&self) -> (u64, u64) {
        let rows = self.sublists.div_ceil(MAX_GROUPS);
        (rows, self.sublists.div_ceil(rows))
    }
}

fn levels(keys: u64, tile: Tile) -> u32 {
    keys.div_ceil(tile.keys()).next_power_of_two().ilog2()
}

/// The addresses of keys and values: `Array` in bucket_divide.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Array {
    pub keys: DevicePtr<u8>,
    pub values: DevicePtr<u8>,
}

assert_layout!(Array, 16: keys 0, values 8);

/// The arguments of the kernels that sort and merge: `SortArgs` in bucket_sort.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct SortArgs {
    pub from: Array,
    pub to: [Array; 2],
    pub begins: DevicePtr<u8>,
    pub first_tiles: DevicePtr<u8>,
    pub piece_of_tile: DevicePtr<u8>,
    pub samples: DevicePtr<u8>,
    pub outcome: DevicePtr<SortOutcome>,
    pub bucket_of_part: DevicePtr<u8>,
    pub part_starts: DevicePtr<u8>,
    pub n: u64,
    pub order: KeyOrder,
    pub spacing: u32,
    pub levels: u32,
    pub value_bytes: u32,
    pub flags: u32,
    pub bucket_count: u32,
    pub unused: u32,
}

assert_layout!(
    SortArgs, 176:
    from 0, to 16, begins 48, first_tiles 56, piece_of_tile 64, samples 72, outcome 80,
    bucket_of_part 88, part_starts 96, n 104, order 112, spacing 152, levels 156,
    value_bytes 160, flags 164, bucket_count 168, unused 172,
);

/// Flag of [`SortArgs`]: the ordered bits in the window determine the key.
pub(super) const EXACT: u32 = 4;

/// The arguments of the kernels of steps 5 to 8: `BucketArgs` in bucket_divide.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct BucketArgs {
    pub sorted: Array,
    pub buckets: Array,
    pub samples: DevicePtr<u8>,
    pub sample_numbers: DevicePtr<u8>,
    pub splitters: DevicePtr<u8>,
    pub splitter_places: DevicePtr<u8>,
    pub locations: DevicePtr<u8>,
    pub targets: DevicePtr<u8>,
    pub group_sums: DevicePtr<u8>,
    pub begins: DevicePtr<u8>,
    pub first_tiles: DevicePtr<u8>,
    pub piece_of_tile: DevicePtr<u8>,
    pub outcome: DevicePtr<SortOutcome>,
    pub n: u64,
    pub sample_count: u64,
    pub order: KeyOrder,
    pub sublists: u32,
    pub bucket_count: u32,
    pub tile: u32,
    pub spacing: u32,
    pub group_rows: u32,
    pub groups: u32,
}

assert_layout!(
    BucketArgs, 200:
    sorted 0, buckets 16, samples 32, sample_numbers 40, splitters 48, splitter_places 56,
    locations 64, targets 72, group_sums 80, begins 88, first_tiles 96, piece_of_tile 104,
    outcome 112, n 120, sample_count 128, order 136, sublists 176, bucket_count 180, tile 184,
    spacing 188, group_rows 192, groups 196,
);

/// The regions of a sort's scratch memory.
#[derive(Debug)]
pub(super) struct Regions {
    pub outcome: DevicePtr<SortOutcome>,
    /// A copy of keys and values: the sorted sublists, and later a spare buffer.
    pub temp: Array,
    /// Two arrays of samples with their indices.
    pub samples: [Array; 2],
    pub splitters: DevicePtr<u8>,
    pub splitter_places: DevicePtr<u8>,
    pub locations: DevicePtr<u8>,
    pub targets: DevicePtr<u8>,
    pub group_sums: DevicePtr<u8>,
    pub begins: DevicePtr<u8>,
    pub first_tiles: DevicePtr<u8>,
    pub piece_of_tile: DevicePtr<u8>,
    pub part_samples: DevicePtr<u8>,
    pub bucket_of_part: DevicePtr<u8>,
    pub part_starts: DevicePtr<u8>,
}

/// Divides the scratch memory of a sort into its regions, or measures it.
pub(super) fn carve(layout: &mut Layout<'_>, plan: &Plan, value_bytes: usize) -> Result<Regions> {
    // A size that overflows saturates, and `take` refuses it.
    let mut take = |elements: u64, each: usize| -> Result<DevicePtr<u8>> {
        let elements = usize::try_from(elements).unwrap_or(usize::MAX);
        let region: SliceMut<'_, u8> = layout.take(elements.saturating_mul(each))?;
        Ok(region.device_ptr())
    };
    let key = plan.tile.key_bytes;
    let outcome = take(256, 1)?;
    // A single tile uses the outcome only.
    let one = u64::from(plan.buckets > 1);
    let (keys, samples, buckets) = (plan.n * one, plan.samples() * one, plan.buckets * one);
    let entries = plan.sublists * buckets;
    let parts = plan.part_spacing().map_or(0, |_| plan.parts() * one);
    let mut array = |elements, value_bytes| -> Result<Array> {
        Ok(Array {
            keys: take(elements, key)?,
            values: take(elements, value_bytes)?,
        })
    };
    Ok(Regions {
        outcome: outcome.cast(),
        temp: array(keys, value_bytes)?,
        samples: [array(samples, 4)?, array(samples, 4)?],
        splitters: take(buckets, key)?,
        splitter_places: take(buckets, 4)?,
        locations: take(entries, 2)?,
        targets: take(entries, 4)?,
        group_sums: take(plan.groups().1 * buckets, 4)?,
        begins: take(buckets + 1, 4)?,
        first_tiles: take(buckets + 1, 4)?,
        piece_of_tile: take(plan.bucket_tiles() * one, 4)?,
        part_samples: take(plan.part_samples() * one, key)?,
        bucket_of_part: take(parts, 4)?,
        part_starts: take(parts * MAX_RUNS, 2)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiles() -> impl Iterator<Item = Tile> {
        [(4, false), (4, true), (8, false), (8, true)]
            .into_iter()
            .map(|(key_bytes, indexed)| Tile { key_bytes, indexed })
    }

    #[test]
    fn tiles_fit_the_oldest_device() {
        for tile in tiles() {
            assert!(tile.shared_bytes() <= 64 * 1024, "{tile:?}");
            assert!(tile.items() % 2 == 1 && tile.keys() <= 1 << 16);
            assert!(tile.keys().is_multiple_of(MAX_SPACING));
        }
    }

    #[test]
    fn no_bucket_has_more_than_twice_the_average() {
        for tile in tiles() {
            let sizes = (1..64).map(|i| tile.keys() * i);
            let sizes = sizes.chain((14..32).map(|power| 1 << power));
            let sizes = sizes.flat_map(|n| [n - 1, n, n + 1, n + n / 3]);
            for (n, few) in sizes
                .chain([u32::MAX.into()])
                .flat_map(|n| [(n, false), (n, true)])
            {
                let plan = Plan::new(n, tile, few.then_some(2));
                assert!(plan.largest_bucket * plan.buckets <= 2 * n, "{plan:?}");
                assert!(plan.buckets <= MAX_BUCKETS && (few || plan.bucket_levels() < 16));
                assert!(tile.keys().is_multiple_of(plan.spacing));
                assert!(plan.buckets > 1 || n <= tile.keys());
                // Each bucket must begin at another sample.
                assert!(plan.samples() >= plan.buckets, "{plan:?}");
                let (rows, groups) = plan.groups();
                assert!(rows * groups >= plan.sublists && rows * (groups - 1) < plan.sublists);
                if few && n > 4 * tile.keys() {
                    assert!(plan.bucket_levels() >= 2, "{plan:?}");
                }
            }
        }
    }

    /// Divides buckets as `split_bucket` in bucket_sort.cu does.
    #[test]
    fn parts_fit_their_tile_and_their_capacity() {
        let powers = (17..32).flat_map(|power| [1_u64 << power, (1 << power) + (1 << power) / 3]);
        let mut split = 0;
        for (n, tile) in powers.flat_map(|n| tiles().map(move |tile| (n, tile))) {
            let plan = Plan::new(n, tile, None);
            let Some(spacing) = plan.part_spacing() else {
                assert!(n >= 1 << 26, "{plan:?}");
                continue;
            };
            let items = u64::from(tile.items());
            for runs in 2..=plan.bucket_runs() {
                let samples = runs * (tile.keys() / spacing);
                assert!(samples <= tile.of_samples().keys());
                let of_part = (tile.keys() - runs * (items - 1) + runs) / spacing - runs;
                let parts = samples.div_ceil(of_part);
                assert!(parts <= 2 * runs + 1, "{plan:?} {runs} {parts}");
                let largest_part = (samples.div_ceil(parts) + runs) * spacing - runs;
                assert!(largest_part + runs * (items - 1) <= tile.keys());
                split += 1;
            }
        }
        assert!(split > 100);
    }
}
