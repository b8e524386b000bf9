//! What the passes of a sort move.

use super::lsd::{Array, Target};
use bytemuck::{Pod, Zeroable};

/// A key, as the number it is compared by, and where it came from.
pub(super) trait Entry: Pod + Send + Sync {
    fn new(key: u64, index: u32) -> Self;
    fn key(&self) -> u64;
    fn index(&self) -> u32;
}

/// Keys that differ in 32 adjacent bits or fewer.
impl Entry for u64 {
    #[inline(always)]
    fn new(key: u64, index: u32) -> Self {
        key << 32 | u64::from(index)
    }
    #[inline(always)]
    fn key(&self) -> u64 {
        self >> 32
    }
    #[inline(always)]
    fn index(&self) -> u32 {
        *self as u32
    }
}

/// All others. Three words rather than two of 8 bytes: a quarter fewer bytes to move.
impl Entry for [u32; 3] {
    #[inline(always)]
    fn new(key: u64, index: u32) -> Self {
        [key as u32, (key >> 32) as u32, index]
    }
    #[inline(always)]
    fn key(&self) -> u64 {
        u64::from(self[0]) | u64::from(self[1]) << 32
    }
    #[inline(always)]
    fn index(&self) -> u32 {
        self[2]
    }
}

/// Takes the index of each entry.
#[derive(Clone, Copy)]
pub(super) struct IndexOf(pub(super) Array<u32>);

impl<E: Entry> Target<E> for IndexOf {
    #[inline(always)]
    unsafe fn write(self, place: usize, entry: E) {
        // SAFETY: as the caller says.
        unsafe { self.0.write(place, entry.index()) }
    }
}

/// A key and its value, without padding.
#[derive(Clone, Copy)]
#[repr(C, packed)]
pub(super) struct Carried<K, V> {
    pub(super) key: K,
    pub(super) value: V,
}

// SAFETY: both fields are valid as zeros.
unsafe impl<K: Pod, V: Pod> Zeroable for Carried<K, V> {}
// SAFETY: two `Pod` fields one after the other, no padding between or after them.
unsafe impl<K: Pod, V: Pod> Pod for Carried<K, V> {}

/// Takes keys and values apart.
pub(super) struct Apart<K, V>(pub(super) Array<K>, pub(super) Array<V>);

impl<K, V> Clone for Apart<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K, V> Copy for Apart<K, V> {}

impl<K: Pod + Send + Sync, V: Pod + Send + Sync> Target<Carried<K, V>> for Apart<K, V> {
    #[inline(always)]
    unsafe fn write(self, place: usize, pair: Carried<K, V>) {
        // SAFETY: as the caller says, for both arrays.
        unsafe {
            self.0.write(place, pair.key);
            self.1.write(place, pair.value);
        }
    }
}
