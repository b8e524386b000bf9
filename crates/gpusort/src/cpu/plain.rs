//! Keys alone, by all their bits: sorted where they are, as plain unsigned numbers.
//!
//! Keys with equal ordered bits are the same key, bit by bit, so that nothing can be told about their order; but for
//! zeros. Those are taken note of before, in order, and put back in their places after.

use super::library::{Library, parallel};
use super::scratch::with_room;
use super::view::View;
use crate::{Key, KeyType, OrderedBits, Result};
use bytemuck::{Pod, cast_slice_mut};
use rayon::prelude::*;
use rdst::RadixSort;

/// Sorts `keys` by `view`, which is of the whole key. They are as before where memory for the zeros runs out.
pub(super) fn sort<K: Key>(keys: &mut [K], view: View<K::Bits>, library: Library) -> Result<()> {
    let zeros = match K::TYPE {
        KeyType::F32 | KeyType::F64 => zeros(keys)?,
        _ => Vec::new(),
    };
    let bits = cast_slice_mut::<K, K::Bits>(keys);
    each(bits, |bits| view.of(bytemuck::cast::<_, K>(bits)));
    match (library, K::BITS) {
        (Library::Std, _) => bits.sort_unstable(),
        (Library::Radsort, 32) => radsort::sort(cast_slice_mut::<_, u32>(bits)),
        (Library::Radsort, _) => radsort::sort(cast_slice_mut::<_, u64>(bits)),
        (Library::Rdst, 32) => cast_slice_mut::<_, u32>(bits).radix_sort_unstable(),
        (Library::Rdst, _) => cast_slice_mut::<_, u64>(bits).radix_sort_unstable(),
    }
    let zero = view.of(K::zeroed());
    let at = bits.partition_point(|&bits| bits < zero);
    each(bits, |bits| from_ordered_bits::<K>(view.flipped(bits)));
    keys[at..at + zeros.len()].copy_from_slice(&zeros);
    Ok(())
}

/// The zeros among the keys, each with its sign.
fn zeros<K: Key>(keys: &[K]) -> Result<Vec<K>> {
    let zeros = || keys.iter().copied().filter(|&key| key == K::zeroed());
    let mut all = with_room(zeros().count())?;
    all.extend(zeros());
    Ok(all)
}

fn each<B: Pod + Send + Sync>(all: &mut [B], f: impl Fn(B) -> B + Send + Sync) {
    if parallel(all.len()) {
        all.par_iter_mut().for_each(|bits| *bits = f(*bits));
    } else {
        all.iter_mut().for_each(|bits| *bits = f(*bits));
    }
}

/// The bits of the key that [`Key::to_ordered_bits`] maps to `ordered`: the inverse, but for `-0.0`.
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
