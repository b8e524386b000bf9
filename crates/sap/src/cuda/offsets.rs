//! Counts that become offsets: `kernels/sap/offsets.cuh`.

use crate::Result;
use crate::cuda::launch::{THREADS, module};
use gpu::{Device, DevicePtr, Grow, Kernel, Launch, Stream, args, blocks};

/// Counts that a block takes.
const TILE: usize = 2048;

/// Memory for counts that become offsets, kept from update to update.
pub(crate) struct Offsets {
    kernel: Kernel,
    /// The words that blocks publish, then the counts and one more.
    memory: Grow<u32>,
    n: usize,
}

impl Offsets {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            kernel: module(device)?.kernel("sap_offsets")?,
            memory: Grow::default(),
            n: 0,
        })
    }

    /// Returns the words of 4 bytes that are published.
    fn words(&self) -> usize {
        2 * (self.n.div_ceil(TILE) + 1)
    }

    /// Sets `n` counts to zero.
    pub(crate) fn begin(&mut self, stream: &Stream, n: usize) -> Result<()> {
        self.n = n;
        let all = self.words() + n + 1;
        stream.fill_u32(self.memory.reserve(stream, all)?, 0)?;
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
        let launch = Launch::linear(blocks(self.n, TILE as u32), THREADS);
        let (words, counts) = (self.memory.device_ptr(), self.ptr());
        // SAFETY: the caller's promise; `begin` made the memory for the words and for one count
        // more.
        unsafe {
            stream.launch(
                &self.kernel,
                &launch,
                &args![counts, self.n as u32, words, max, total],
            )?;
        }
        Ok(())
    }
}
