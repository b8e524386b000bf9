//! Counts that become offsets: `kernels/sap/offsets.cuh`.

use crate::Result;
use crate::cuda::abi::{Bin, Clear};
use crate::cuda::launch::{THREADS, module};
use gpu::{Device, DevicePtr, Grow, Kernel, Launch, Stream, args, blocks};
use std::mem;

/// Counts that a block takes.
const TILE: usize = 2048;
/// Words of 4 bytes that are cleared at once.
const UNIT: usize = Clear::UNIT / size_of::<u32>();

/// Memory for counts that become offsets, kept from update to update.
pub(crate) struct Offsets {
    kernel: Kernel,
    /// The words that blocks publish, then the counts and one more.
    memory: Grow<u32>,
    n: usize,
    /// Whether there is memory for `n` counts, which were begun since the last `clear_ahead`.
    is_used: bool,
    /// Whether this frame's first kernel clears that memory.
    is_clear: bool,
}

impl Offsets {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            kernel: module(device)?.kernel("sap_offsets")?,
            memory: Grow::default(),
            n: 0,
            is_used: false,
            is_clear: false,
        })
    }

    /// Returns the words of 4 bytes that are published.
    fn words(&self) -> usize {
        2 * (self.n.div_ceil(TILE) + 1)
    }

    /// Returns the units that the words and counts take.
    fn units(&self) -> usize {
        (self.words() + self.n + 1).div_ceil(UNIT)
    }

    /// Returns what is to be zero for as many counts as in the last frame, if that had any and they
    /// take at most `max` units. The caller clears it, or ends the frame with an error before
    /// [`Offsets::begin`].
    pub(crate) fn clear_ahead(&mut self, max: u64) -> Clear {
        let len = self.units() as u64;
        self.is_clear = mem::take(&mut self.is_used) && len <= max;
        if !self.is_clear {
            return Clear::NOTHING;
        }
        let units = self.memory.device_ptr();
        Clear { units, len }
    }

    /// Sets `n` counts to zero.
    pub(crate) fn begin(&mut self, stream: &Stream, n: usize) -> Result<()> {
        let is_clear = mem::take(&mut self.is_clear) && n == self.n;
        (self.n, self.is_used) = (n, false);
        let memory = self.memory.reserve(stream, self.units() * UNIT)?;
        if !is_clear {
            stream.fill_u32(memory, 0)?;
        }
        self.is_used = true;
        Ok(())
    }

    /// Makes memory for `n` offsets and one more, which the caller writes.
    pub(crate) fn reserve(&mut self, stream: &Stream, n: usize) -> Result<()> {
        (self.n, self.is_used, self.is_clear) = (n, false, false);
        self.memory.reserve(stream, self.units() * UNIT)?;
        Ok(())
    }

    /// Returns the address of the counts, which is that of the offsets later.
    pub(crate) fn ptr(&self) -> DevicePtr<u32> {
        let words = self.words() * size_of::<u32>();
        self.memory.device_ptr().byte_add(words as u64)
    }

    /// Turns the counts into offsets. `max` is raised to the largest count, and `total` set to
    /// their sum, unless the address is null.
    ///
    /// # Safety
    ///
    /// Each address is null or that of a counter.
    pub(crate) unsafe fn make(
        &self,
        stream: &Stream,
        max: DevicePtr<u64>,
        total: DevicePtr<u64>,
    ) -> Result<()> {
        // SAFETY: the caller's promise; the counts are those that `begin` made.
        unsafe { self.run(stream, &self.kernel, self.ptr().cast(), max, total.cast()) }
    }

    /// Writes where bins begin, by their counts. `max` is raised to the largest one.
    ///
    /// # Safety
    ///
    /// `kernel` is `sap_bin_starts`. There are as many bins as `begin` was told, and `max` is the
    /// address of a counter.
    pub(crate) unsafe fn of_bins(
        &self,
        stream: &Stream,
        kernel: &Kernel,
        bins: DevicePtr<Bin>,
        max: DevicePtr<u64>,
    ) -> Result<()> {
        // SAFETY: the caller's promise; the offsets take the place of the counts that `begin` made.
        unsafe { self.run(stream, kernel, bins.cast(), max, self.ptr().cast()) }
    }

    /// Launches a kernel of `offsets.cuh`, or one like it.
    ///
    /// # Safety
    ///
    /// The addresses are those that the kernel wants before and behind its number and words.
    unsafe fn run(
        &self,
        stream: &Stream,
        kernel: &Kernel,
        counts: DevicePtr<u8>,
        max: DevicePtr<u64>,
        last: DevicePtr<u8>,
    ) -> Result<()> {
        let launch = Launch::linear(blocks(self.n, TILE as u32), THREADS);
        let (n, words) = (self.n as u32, self.memory.device_ptr());
        // SAFETY: the caller's promise; `begin` made the memory for the words and for one offset
        // more than there are counts.
        unsafe { stream.launch(kernel, &launch, &args![counts, n, words, max, last])? };
        Ok(())
    }
}
