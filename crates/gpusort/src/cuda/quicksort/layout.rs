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
    pub header: DevicePtr<Header>,
    /// The sequences that phase one partitions, of even and of odd levels.
    pub sequences: [DevicePtr<Sequence>; 2],
    /// The bounds between the classes of each sequence.
    pub bounds: DevicePtr<u8>,
    /// The sequence of each section.
    pub section_sequence: DevicePtr<u32>,
    /// Counts of each section by class, then the offsets that its keys go to.
    pub offsets: DevicePtr<u32>,
    /// The list of sequences that fit on chip.
    pub shorts: DevicePtr<Work>,
    /// The list of the other sequences of phase two.
    pub done: DevicePtr<Work>,
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

/// The header at the start of scratch memory: `Header` in quicksort_types.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Header {
    outcome: SortOutcome,
    /// The sequences of each level, and their sections.
    sequences: [u32; 9],
    sections: [u32; 9],
    /// The lengths of the two lists, and the next entry of `done` to take.
    shorts: u32,
    done: u32,
    next: u32,
    unused: u32,
}

assert_layout!(
    Header, 120:
    outcome 0, sequences 32, sections 68, shorts 104, done 108, next 112, unused 116,
);

/// A sequence of phase one: `Sequence` in quicksort_types.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Sequence {
    begin: u32,
    size: u32,
    first_section: u32,
    sections: u32,
    finished: u32,
    unused: [u32; 3],
}

assert_layout!(
    Sequence, 32:
    begin 0, size 4, first_section 8, sections 12, finished 16, unused 20,
);

/// A sequence for phase two: `Work` in quicksort_types.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Work {
    begin: u32,
    size: u32,
    source: u32,
    state: u32,
}

assert_layout!(Work, 16: begin 0, size 4, source 8, state 12);

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
    pub header: SliceMut<'a, Header>,
    pub sequences: [SliceMut<'a, Sequence>; 2],
    pub bounds: SliceMut<'a, u8>,
    pub section_sequence: SliceMut<'a, u32>,
    pub offsets: SliceMut<'a, u32>,
    pub shorts: SliceMut<'a, Work>,
    pub done: SliceMut<'a, Work>,
    pub keys: SliceMut<'a, u8>,
    pub values: SliceMut<'a, u8>,
}

/// Divides the scratch memory of a sort into its regions, or measures it.
pub(super) fn carve<'a>(layout: &mut Layout<'a>, sizes: &Sizes) -> Result<Regions<'a>> {
    // A length that overflows saturates, and `take` refuses it.
    let len = |elements: u64| usize::try_from(elements).unwrap_or(usize::MAX);
    let bytes = |elements, each| len(elements).saturating_mul(each);
    let (sequences, sections) = match sizes.levels {
        0 => (0, 0),
        _ => (sizes.sequences(), sizes.sections()),
    };
    Ok(Regions {
        header: layout.take(1)?,
        sequences: [layout.take(len(sequences))?, layout.take(len(sequences))?],
        bounds: layout.take(bytes(sequences * CLASSES, sizes.key_bytes))?,
        section_sequence: layout.take(len(sections))?,
        offsets: layout.take(len(sections * CLASSES))?,
        shorts: layout.take(len(sizes.shorts()))?,
        done: layout.take(len(sizes.done()))?,
        keys: layout.take(bytes(sizes.n, sizes.key_bytes))?,
        values: layout.take(bytes(sizes.n, sizes.value_bytes))?,
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
