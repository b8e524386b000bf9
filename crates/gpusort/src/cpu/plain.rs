//! Sorts keys alone by all bits, in place, as unsigned numbers.
//!
//! Keys with equal ordered bits are identical, so an unstable sort gives the same result. The
//! exception are float zeros, whose signs differ. They are copied before the sort, in their order,
//! and written back after it.

use super::library::{Library, parallel};
use super::scratch::try_with_capacity;
use super::tasks::{run, task_size};
use super::view::View;
use crate::{Key, KeyType, OrderedBits, Result};
use bytemuck::{Pod, cast_slice_mut};
use rdst::RadixSort;

/// Sorts `keys` by `view`, which covers the whole key. They are unchanged if memory for the zeros
/// runs out.
pub(super) fn sort<K: Key>(keys: &mut [K], view: View<K::Bits>, library: Library) -> Result<()> {
    let zeros = match K::TYPE {
        KeyType::F32 | KeyType::F64 => zeros(keys)?,
        _ => Vec::new(),
    };
    let bits = cast_slice_mut::<K, K::Bits>(keys);
    each(bits, |bits| view.of(bytemuck::cast::<_, K>(bits)));
    if K::BITS == 32 {
        sort_32(cast_slice_mut(bits), library);
    } else {
        sort_64(cast_slice_mut(bits), library);
    }
    let zero = view.of(K::zeroed());
    let at = bits.partition_point(|&bits| bits < zero);
    each(bits, |bits| from_ordered_bits::<K>(view.flipped(bits)));
    keys[at..at + zeros.len()].copy_from_slice(&zeros);
    Ok(())
}

// Both are compiled once, with this crate, and not with each that sorts keys.

fn sort_32(bits: &mut [u32], library: Library) {
    match library {
        Library::Std => bits.sort_unstable(),
        Library::Radsort => radsort::sort(bits),
        Library::Rdst => bits.radix_sort_unstable(),
    }
}

fn sort_64(bits: &mut [u64], library: Library) {
    match library {
        Library::Std => bits.sort_unstable(),
        Library::Radsort => radsort::sort(bits),
        Library::Rdst => bits.radix_sort_unstable(),
    }
}

/// Returns the zeros among the keys in their order, each with its sign.
fn zeros<K: Key>(keys: &[K]) -> Result<Vec<K>> {
    let zeros = || keys.iter().copied().filter(|&key| key == K::zeroed());
    let mut all = try_with_capacity(zeros().count())?;
    all.extend(zeros());
    Ok(all)
}

fn each<B: Pod + Send + Sync>(all: &mut [B], f: impl Fn(B) -> B + Send + Sync) {
    let each = |all: &mut [B]| all.iter_mut().for_each(|bits| *bits = f(*bits));
    if parallel(all.len()) {
        run(all.chunks_mut(task_size(all.len())).map(|all| || each(all)));
    } else {
        each(all);
    }
}

/// Returns the bits of the key that [`Key::to_ordered_bits`] maps to `ordered`: its inverse, except
/// for `-0.0`.
#[inline(always)]
fn from_ordered_bits<K: Key>(ordered: K::Bits) -> K::Bits {
    let sign = K::Bits::from_low_bits(1 << (K::BITS - 1));
    let all = K::Bits::from_low_bits(u64::MAX);
    match K::TYPE {
        KeyType::U32 | KeyType::U64 => ordered,
        KeyType::I32 | KeyType::I64 => ordered ^ sign,
        KeyType::F32 | KeyType::F64 if ordered & sign == sign => ordered ^ sign,
        KeyType::F32 | KeyType::F64 => ordered ^ all,
    }
}
