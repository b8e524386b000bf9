//! Prefix sums of counts: `kernels/sap/scan.cuh`.

use crate::cuda::launch::module;
use gpu::{Device, DevicePtr, Kernel, Launch, Result, Slice, SliceMut, Stream, args};

/// Threads of the one block.
const THREADS: u32 = 1024;

/// The kernel, loaded on a device.
#[derive(Debug)]
pub struct Scan(Kernel);

impl Scan {
    /// Loads the kernel.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Self(module(device)?.kernel("sap_scan")?))
    }

    /// Writes the sum of the counts before each one, and at the end the sum of all.
    pub fn sums(&self, stream: &Stream, counts: Slice<u32>, sums: SliceMut<u64>) -> Result<()> {
        let sums = sums.range(..=counts.len())?;
        let total = DevicePtr::<u64>::NULL;
        // SAFETY: there is one sum more than counts, and no total is asked for.
        unsafe {
            stream.launch(
                &self.0,
                &Launch::linear(1, THREADS),
                &args![counts, counts.len() as u64, sums, total],
            )
        }
    }
}
