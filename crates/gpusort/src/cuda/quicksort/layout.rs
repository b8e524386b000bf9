//! The structs and the scratch memory that host and kernels share. The kernels' side is
//! `kernels/sort/quicksort_types.cuh`.

use super::tuning::{self, COPY_PIECE, KernelShape, THREADS};
use crate::Result;
use crate::cuda::family::Shape;
use crate::cuda::order::KeyOrder;
use crate::cuda::outcome::SortOutcome;
use bytemuck::{Pod, Zeroable};
use gpu::{DevicePtr, Layout, SliceMut, assert_layout};

/// The arguments of the kernels: `Args` in quicksort_types.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Args {
    /// Input, output and temporary keys.
    pub keys: [DevicePtr<u8>; 3],
    /// Input, output and temporary values. A null input stands for 0, 1, 2, …
    pub values: [DevicePtr<u8>; 3],
    pub header: DevicePtr<u8>,
    /// The sequences that phase one partitions, of even and of odd levels.
    pub sequences: [DevicePtr<u8>; 2],
    /// The bounds between the classes of each sequence.
    pub bounds: DevicePtr<u8>,
    /// The sequence of each section.
    pub section_sequence: DevicePtr<u8>,
    /// Counts of each section by class, then the offsets that its keys go to.
    pub offsets: DevicePtr<u8>,
    /// The list of sequences that fit on chip.
    pub shorts: DevicePtr<u8>,
    /// The list of the other sequences of phase two.
    pub done: DevicePtr<u8>,
    /// Null, or the device address of the number of keys.
    pub device_count: DevicePtr<u64>,
    pub n: u64,
    pub order: KeyOrder,
    /// The number of levels of phase one.
    pub levels: u32,
    pub flags: u32,
    /// Phase one partitions sequences longer than this.
    pub min_length: u64,
    /// Keys of a section.
    pub section: u64,
}

assert_layout!(
    Args, 192:
    keys 0, values 24, header 48, sequences 56, bounds 72, section_sequence 80, offsets 88,
    shorts 96, done 104, device_count 112, n 120, order 128, levels 168, flags 172,
    min_length 176, section 184,
);

/// The number of classes that a partition divides a sequence into: `CLASSES` in
/// quicksort_types.cuh.
const CLASSES: u64 = 32;

/// The properties of a sort that determine its launches and its scratch memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub n: u64,
    pub key_bytes: usize,
    pub value_bytes: usize,
    pub shape: KernelShape,
    /// The number of levels of phase one.
    pub levels: u32,
    /// Phase one partitions sequences longer than this.
    pub min_length: u64,
    /// Keys of a section: what a block of phase one counts or moves.
    pub section: u64,
}

impl Sizes {
    pub fn new(shape: &Shape) -> Self {
        let (n, key_bytes) = (shape.n, shape.key_bytes());
        let kernel = tuning::shape_for(key_bytes);
        let min_length = tuning::min_length(n, shape.parameter, &kernel);
        Self {
            n,
            key_bytes,
            value_bytes: shape.value_bytes,
            shape: kernel,
            // Tests ask for `large` to do everything in phase two.
            levels: if shape.large {
                0
            } else {
                tuning::levels(n, min_length)
            },
            min_length,
            section: tuning::section(n, &kernel),
        }
    }

    /// Returns the max sequences of a level. All are longer than `min_length`.
    pub fn sequences(&self) -> u64 {
        self.n / self.min_length + 1
    }

    /// Returns the max sections of a level.
    pub fn sections(&self) -> u64 {
        self.n / self.section + self.sequences()
    }

    /// Returns about how many sequences are sorted on chip.
    pub fn leaves(&self) -> u64 {
        self.n.div_ceil(self.shape.leaf())
    }

    /// Returns the max short sequences. A level that partitions s keys, more than a leaf, leaves at
    /// most s / leaf sequences that are longer than a leaf. Of the sequences between these, any two
    /// neighbours together exceed a leaf.
    pub fn shorts(&self) -> u64 {
        (5 * self.leaves() * u64::from(self.levels)).max(1)
    }

    /// Returns the max entries of the done list: sequences longer than a leaf, or pieces of such.
    pub fn done(&self) -> u64 {
        2 * self.leaves() + self.n / COPY_PIECE
    }

    /// Returns the bytes of `PartitionShared`: the bounds; 2 + 16 + 32 arrays of 32 words; the
    /// class of each key, a byte; and the exchange.
    pub fn partition_shared(&self, value_bytes: usize) -> u32 {
        let fixed = 32 * self.key_bytes + (2 + THREADS as usize / 32 + 32) * 32 * 4;
        let tile = self.shape.tile() as usize;
        (fixed + tile + tile * self.key_bytes.max(value_bytes)) as u32
    }

    /// Returns the bytes of `LeafShared`: keys and their 16-bit indices.
    pub fn leaf_shared(&self) -> u32 {
        let leaf = self.shape.leaf() as usize;
        (leaf * self.key_bytes + leaf * 2).next_multiple_of(8) as u32
    }

    /// Returns the bytes of `Alone::Shared`: the stack, two words, totals, extremes, and the shared
    /// memory of a partition or a leaf.
    pub fn alone_shared(&self) -> u32 {
        let fixed = 160 * 16 + 2 * 4 + 32 * 4 + 2 * (THREADS as usize / 32) * self.key_bytes;
        fixed as u32
            + self
                .partition_shared(self.value_bytes)
                .max(self.leaf_shared())
    }
}

/// The regions of a sort's scratch memory; [`Args`] has their addresses.
#[derive(Debug)]
pub(super) struct Regions<'a> {
    pub header: SliceMut<'a, u8>,
    pub sequences: [SliceMut<'a, u8>; 2],
    pub bounds: SliceMut<'a, u8>,
    pub section_sequence: SliceMut<'a, u8>,
    pub offsets: SliceMut<'a, u8>,
    pub shorts: SliceMut<'a, u8>,
    pub done: SliceMut<'a, u8>,
    pub keys: SliceMut<'a, u8>,
    pub values: SliceMut<'a, u8>,
}

/// Bytes of `Header` in quicksort_types.cuh: the outcome, 9 + 9 counts by level, and 3 more counts.
const HEADER_BYTES: usize = size_of::<SortOutcome>() + 21 * 4;

/// Divides the scratch memory of a sort into its regions, or measures it.
pub(super) fn carve<'a>(layout: &mut Layout<'a>, sizes: &Sizes) -> Result<Regions<'a>> {
    let mut take = |elements: u64, bytes: usize| {
        // A size that overflows saturates, and `take` refuses it.
        let elements = usize::try_from(elements).unwrap_or(usize::MAX);
        layout.take(elements.saturating_mul(bytes))
    };
    let (sequences, sections) = match sizes.levels {
        0 => (0, 0),
        _ => (sizes.sequences(), sizes.sections()),
    };
    Ok(Regions {
        header: take(1, HEADER_BYTES)?,
        sequences: [take(sequences, 32)?, take(sequences, 32)?],
        bounds: take(sequences * CLASSES, sizes.key_bytes)?,
        section_sequence: take(sections, 4)?,
        offsets: take(sections * CLASSES, 4)?,
        shorts: take(sizes.shorts(), 16)?,
        done: take(sizes.done(), 16)?,
        keys: take(sizes.n, sizes.key_bytes)?,
        values: take(sizes.n, sizes.value_bytes)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn shared_memory_fits_the_oldest_device() {
        for key in [crate::KeyType::U32, crate::KeyType::F64] {
            for value_bytes in [0, 4, 8] {
                let shape = Shape {
                    n: 1 << 20,
                    key,
                    value_bytes,
                    large: false,
                    parameter: None,
                };
                assert!(Sizes::new(&shape).alone_shared() <= 64 * 1024);
            }
        }
    }
}
