//! The kernels of a rank (`kernels/dist`), and what it launches them on.

use gpu::{Arg, Buffer, Kernel, Launch, Slice, Stream, blocks};
use sap::internals::Scan;

/// Threads of a block.
pub(crate) const THREADS: u32 = 256;
/// The pairs of a block where their order counts.
pub(crate) const ITEMS: u32 = 1024;

/// The kernels, loaded on the device of a stream.
pub(crate) struct Kernels {
    pub(crate) stream: Stream,
    pub(crate) survey: Kernel,
    pub(crate) write: Kernel,
    pub(crate) homes: Kernel,
    pub(crate) home: Kernel,
    pub(crate) sample: Kernel,
    pub(crate) receive: Kernel,
    pub(crate) near: Kernel,
    pub(crate) name: Kernel,
    pub(crate) kept: Kernel,
    pub(crate) keep: Kernel,
    pub(crate) group: Kernel,
    pub(crate) split: Kernel,
    pub(crate) join: Kernel,
    pub(crate) merge: Kernel,
    pub(crate) differences: Kernel,
    pub(crate) moved: Kernel,
    scan: Scan,
}

impl Kernels {
    pub(crate) fn new(stream: &Stream) -> gpu::Result<Self> {
        let image = &radsweep_kernels::DIST;
        let dist = stream.device().load(image.name, image.ptx())?;
        Ok(Self {
            survey: dist.kernel("dist_survey")?,
            write: dist.kernel("dist_write")?,
            homes: dist.kernel("dist_homes")?,
            home: dist.kernel("dist_home")?,
            sample: dist.kernel("dist_sample")?,
            receive: dist.kernel("dist_receive")?,
            near: dist.kernel("dist_near")?,
            name: dist.kernel("dist_name")?,
            kept: dist.kernel("dist_kept")?,
            keep: dist.kernel("dist_keep")?,
            group: dist.kernel("dist_group")?,
            split: dist.kernel("dist_split")?,
            join: dist.kernel("dist_join")?,
            merge: dist.kernel("dist_merge")?,
            differences: dist.kernel("dist_differences")?,
            moved: dist.kernel("dist_moved")?,
            scan: Scan::new(stream.device())?,
            stream: stream.clone(),
        })
    }

    /// Launches a thread for each item, none for no items.
    ///
    /// # Safety
    ///
    /// That of [`Stream::launch`].
    pub(crate) unsafe fn for_each(
        &self,
        kernel: &Kernel,
        items: usize,
        args: &[Arg],
    ) -> gpu::Result<()> {
        if items == 0 {
            return Ok(());
        }
        let launch = Launch::linear(blocks(items, THREADS), THREADS);
        // SAFETY: the caller promises what the kernel does with its arguments.
        unsafe { self.stream.launch(kernel, &launch, args) }
    }

    /// Returns the sum of the counts before each, and at the end that of all.
    pub(crate) fn sums(&self, counts: Slice<u32>) -> gpu::Result<Buffer<u64>> {
        let mut sums = self.stream.alloc::<u64>(counts.len() + 1)?;
        self.scan.sums(&self.stream, counts, sums.slice_mut())?;
        Ok(sums)
    }

    /// Reads the last of some sums.
    pub(crate) fn last(&self, sums: &Buffer<u64>) -> gpu::Result<u64> {
        let last = sums.len().saturating_sub(1);
        Ok(self.stream.to_vec(sums.range(last..)?)?[0])
    }
}
