//! Differences of two sorted lists on a device (`kernels/block/differences.cuh`): how their kernels
//! are launched. One compares the pairs of this crate, one those of several ranks.

use crate::cuda::launch::THREADS;
use crate::cuda::tuning::CHANGED_SHARE;
use bytemuck::{Pod, Zeroable};
use gpu::{ByValue, DevicePtr, Kernel, Launch, Result, Stream, args, assert_layout, blocks};

/// Elements of both lists together that a block compares.
const TILE: usize = 1792;

/// A sorted list of `n` elements. If `count` is not null, it is of as many as stand there, at most
/// `n`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct List {
    items: DevicePtr<u8>,
    n: u64,
    count: DevicePtr<u64>,
}

assert_layout!(List, 24: items 0, n 8, count 16);

impl List {
    /// Names a list by its address, its length, and the address of the length or null.
    pub fn new<T>(items: DevicePtr<T>, n: usize, count: DevicePtr<u64>) -> Self {
        Self {
            items: items.cast(),
            n: n as u64,
            count,
        }
    }

    /// Returns the length, or what it is at most.
    pub(crate) fn len(self) -> usize {
        self.n as usize
    }
}

/// Where the elements go that only the first list has, and those that only the second has.
#[derive(Debug)]
pub struct Space<T> {
    /// The address of each list of differences.
    pub lists: [DevicePtr<T>; 2],
    /// The elements for which each has memory.
    pub capacity: [u64; 2],
}

impl<T> Clone for Space<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Space<T> {}

impl<T> Space<T> {
    /// No memory: nothing is written.
    pub const NONE: Self = Self {
        lists: [DevicePtr::NULL; 2],
        capacity: [0; 2],
    };
}

/// The argument of the kernels.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Differences {
    lists: [List; 2],
    words: [DevicePtr<u64>; 2],
    out: [DevicePtr<u8>; 2],
    capacity: [u64; 2],
    totals: [DevicePtr<u64>; 2],
}

assert_layout!(Differences, 112: lists 0, words 48, out 64, capacity 80, totals 96);

/// Returns the capacity for the differences of a list of `n` elements with its last state, as long
/// as no update has found more.
pub fn first_capacity(n: usize) -> usize {
    n.min(1024 + n / CHANGED_SHARE)
}

/// Returns the words with which [`find`] works, for lists of these lengths.
pub fn words(lens: [usize; 2]) -> usize {
    2 * tiles(lens) + 1
}

fn tiles([first, second]: [usize; 2]) -> usize {
    blocks(first + second, TILE as u32) as usize
}

/// Finds the elements of each list that the other lacks, as many as there is space for. The counts
/// of all go to `totals`. O(elements of both).
///
/// # Safety
///
/// The kernel, the lists and the space are of elements `T`. The lists' addresses are of as many
/// elements as they say and of a count, those of the space of as many as its capacity. `words` is
/// the address of as many words as [`words`] says, which are zero, and each total's that of one.
pub unsafe fn find<T>(
    stream: &Stream,
    kernel: &Kernel,
    lists: [List; 2],
    words: DevicePtr<u64>,
    space: Space<T>,
    totals: [DevicePtr<u64>; 2],
) -> Result<()> {
    let tiles = tiles(lists.map(List::len));
    let differences = Differences {
        lists,
        words: [
            words,
            words.byte_add(((tiles + 1) * size_of::<u64>()) as u64),
        ],
        out: space.lists.map(DevicePtr::cast),
        capacity: space.capacity,
        totals,
    };
    let launch = Launch::linear((tiles as u32).max(1), THREADS);
    // SAFETY: the caller's promise; nothing is written beyond the capacity.
    unsafe { stream.launch(kernel, &launch, &args![ByValue(differences)]) }
}
