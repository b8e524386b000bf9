//! Counts, and where what is counted begins: `kernels/sap/offsets.cuh`.

use crate::Result;
use crate::cuda::kernels::{blocks, module};
use crate::cuda::memory::Grow;
use gpu::{Device, Kernel, Launch, Stream, args};

const THREADS: u32 = 256;
/// Counts that a block takes.
const TILE: usize = 2048;

/// Memory for counts that become offsets, kept from update to update.
pub(crate) struct Offsets {
    kernel: Kernel,
    /// What the blocks publish, then the counts and one more.
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

    /// Words of 4 bytes that are published.
    fn words(&self) -> usize {
        2 * (self.n.div_ceil(TILE) + 1)
    }

    /// `n` counts of zero.
    pub(crate) fn begin(&mut self, stream: &Stream, n: usize) -> Result<()> {
        self.n = n;
        let all = self.words() + n + 1;
        stream.fill_u32(self.memory.reserve(stream, all)?, 0)?;
        Ok(())
    }

    /// The address of the counts, later of the offsets.
    pub(crate) fn ptr(&self) -> u64 {
        self.memory.ptr() + (self.words() * size_of::<u32>()) as u64
    }

    /// Makes offsets of the counts. The greatest count goes to the address `most` if it is more than what is there, their sum to
    /// `total`, unless that is 0.
    ///
    /// # Safety
    ///
    /// The addresses are of a number each, or 0.
    pub(crate) unsafe fn make(&self, stream: &Stream, most: u64, total: u64) -> Result<()> {
        let launch = Launch::linear(blocks(self.n, TILE as u32), THREADS);
        let (words, counts) = (self.memory.ptr(), self.ptr());
        // SAFETY: the caller's promise; there is room for what the blocks publish and for one count more.
        unsafe {
            stream.launch(
                &self.kernel,
                &launch,
                &args![counts, self.n as u32, words, most, total],
            )?;
        }
        Ok(())
    }
}
