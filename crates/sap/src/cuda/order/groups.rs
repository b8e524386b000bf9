//! Pairs in order by groups (`kernels/sap/groups.cuh`): a sort of the top bits of their keys, then
//! groups of keys that agree in these are ordered on chip.

use super::rows::Packed;
use crate::Result;
use crate::cuda::abi::{self, State};
use crate::cuda::launch::module;
use crate::cuda::tuning::MEAN_GROUP;
use gpu::{ByValue, Device, DevicePtr, Kernel, Launch, SliceMut, Stream, args};

/// The bits of a digit of a sort.
const DIGIT: u32 = 8;
/// The threads of a block and its keys: `GROUP_THREADS` of the kernel, `GROUP_KEYS` for each warp.
const THREADS: u32 = 64;
const TILE: usize = 1024;

/// Returns the bits below those that make groups of about `pairs` pairs of `n` boxes: as few digits
/// as make them short. Returns none where that takes all bits.
pub(super) fn shift(n: usize, bits: u32, pairs: usize) -> Option<u32> {
    // All keys are below.
    let keys = (n as u64) << bits;
    let is_short = |shift: &u32| pairs as u64 / MEAN_GROUP <= keys >> shift;
    let mut shifts = (1..).map_while(|digits| (2 * bits).checked_sub(DIGIT * digits));
    shifts.find(is_short).filter(|&shift| shift > 0)
}

/// The means to put pairs in order by groups.
pub(super) struct Groups(Kernel);

impl Groups {
    pub(super) fn new(device: &Device) -> Result<Self> {
        Ok(Self(module(device)?.kernel("sap_order_groups")?))
    }

    /// Orders keys that are sorted by groups.
    ///
    /// # Safety
    ///
    /// `state` is the address of the counters. There is memory for as many pairs as keys.
    pub(super) unsafe fn order(
        &self,
        stream: &Stream,
        state: DevicePtr<State>,
        Packed { keys, bits }: Packed,
        shift: u32,
        pairs: SliceMut<u64>,
    ) -> Result<()> {
        let groups = abi::Groups {
            keys: keys.device_ptr(),
            capacity: keys.len() as u64,
            state,
            pairs: pairs.device_ptr(),
            bits,
            shift,
        };
        let launch = Launch::linear(keys.len().div_ceil(TILE) as u32, THREADS);
        // SAFETY: the caller's promise.
        unsafe { stream.launch(&self.0, &launch, &args![ByValue(groups)])? };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_few_digits_are_sorted_as_make_groups_short() {
        let digits = |n: usize, pairs| {
            let bits = usize::BITS - (n - 1).leading_zeros();
            Some((2 * bits - shift(n, bits, pairs)?) / DIGIT)
        };
        assert_eq!(digits(10_000_000, 13_700_000), Some(2));
        assert_eq!(digits(100_000_000, 137_000_000), Some(3));
        assert_eq!(digits(1_000_000, 12_700_000), Some(2));
        assert_eq!(digits(100_000, 50_000), Some(1));
        assert_eq!(digits(1_000_000, 0), Some(1));
        // Nearly all pairs of few boxes.
        assert_eq!(digits(16, 100), None);
        assert_eq!(digits(256, 32_000), Some(1));
    }
}
