//! Launching kernels: shapes and arguments.

use core::ffi::c_void;
use core::ptr;

use bytemuck::Pod;

use crate::driver::{self, LaunchAttribute, LaunchConfig};
use crate::memory::Owner;
use crate::{DeviceInfo, DevicePtr, Error, Kernel, Result, Slice, SliceMut, Stream};

/// The shape of a launch.
///
/// ```
/// let launch = gpu::Launch::linear(1000, 256).dynamic_shared(64 * 1024);
/// assert_eq!(launch.grid, (1000, 1, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks along each axis.
    pub grid: (u32, u32, u32),
    /// Threads of a block along each axis.
    pub block: (u32, u32, u32),
    /// Bytes of shared memory of a block beyond what the kernel has fixed.
    pub dynamic_shared: u32,
    /// All blocks run at once and may wait for each other.
    pub cooperative: bool,
    /// Blocks along each axis of a cluster, whose blocks share their shared memory.
    pub cluster: Option<(u32, u32, u32)>,
}

impl Launch {
    /// `grid` blocks of `block` threads, in a row.
    pub fn linear(grid: u32, block: u32) -> Launch {
        Launch {
            grid: (grid, 1, 1),
            block: (block, 1, 1),
            dynamic_shared: 0,
            cooperative: false,
            cluster: None,
        }
    }

    /// With that many bytes of dynamic shared memory.
    pub fn dynamic_shared(self, bytes: u32) -> Launch {
        Launch {
            dynamic_shared: bytes,
            ..self
        }
    }

    /// With all blocks at once.
    pub fn cooperative(self) -> Launch {
        Launch {
            cooperative: true,
            ..self
        }
    }

    /// In clusters of that many blocks along each axis.
    pub fn cluster(self, blocks: (u32, u32, u32)) -> Launch {
        Launch {
            cluster: Some(blocks),
            ..self
        }
    }

    /// Fails unless the device can run this shape of a kernel with blocks of at most `threads`
    /// threads.
    fn check(&self, kernel: &str, threads: u32, device: &DeviceInfo) -> Result<()> {
        let wrong = |what, given: u64, allowed: String| {
            Err(Error::Launch {
                kernel: kernel.to_owned(),
                what,
                given,
                allowed,
            })
        };
        let axes = |v: (u32, u32, u32)| [v.0, v.1, v.2];
        for (what, sizes, limits) in [
            (
                "the grid along an axis, in blocks,",
                axes(self.grid),
                axes(device.max_grid),
            ),
            (
                "the block along an axis, in threads,",
                axes(self.block),
                axes(device.max_block),
            ),
        ] {
            for (size, limit) in sizes.into_iter().zip(limits) {
                if size == 0 || size > limit {
                    return wrong(what, size.into(), format!("1 to {limit}"));
                }
            }
        }
        // Each factor is within its axis's limit: no overflow.
        let block: u64 = axes(self.block).map(u64::from).iter().product();
        let limit = threads.min(device.threads_per_block);
        if block > limit.into() {
            return wrong("the block in threads", block, format!("at most {limit}"));
        }
        if self.cooperative && !device.cooperative_launch {
            return Err(Error::Unsupported {
                device: device.ordinal,
                what: "cooperative launches",
            });
        }
        let Some(cluster) = self.cluster else {
            return Ok(());
        };
        if !device.cluster_launch {
            return Err(Error::Unsupported {
                device: device.ordinal,
                what: "launches in clusters (compute capability 9.0, CUDA 11.8)",
            });
        }
        for (size, grid) in axes(cluster).into_iter().zip(axes(self.grid)) {
            if size == 0 || !grid.is_multiple_of(size) {
                return wrong(
                    "the cluster along an axis, in blocks,",
                    size.into(),
                    format!("a divisor of the grid's {grid}"),
                );
            }
        }
        Ok(())
    }
}

/// One argument of a launch, borrowed. Made by [`args!`](crate::args).
#[derive(Clone, Copy, Debug)]
pub struct Arg<'a> {
    ptr: *const c_void,
    size: usize,
    owner: Owner<'a>,
}

/// Types that are kernel arguments: numbers, device slices (as the 64-bit device address; `None` as
/// null), [`DevicePtr`], and [`ByValue`] for structs.
///
/// # Safety
///
/// [`KernelArg::arg`] must return [`Arg::new`] of something that lives as long as the borrow of
/// `self` and has the layout of the kernel's parameter.
pub unsafe trait KernelArg {
    /// The argument.
    fn arg(&self) -> Arg<'_>;
}

impl<'a> Arg<'a> {
    /// The bytes of `value`.
    pub fn new<T>(value: &'a T) -> Arg<'a> {
        Arg {
            ptr: ptr::from_ref(value).cast(),
            size: size_of::<T>(),
            owner: Owner::Promised,
        }
    }
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        // SAFETY: these have the same layout in C, and live where `self` does.
        unsafe impl KernelArg for $type {
            fn arg(&self) -> Arg<'_> {
                Arg::new(self)
            }
        }
    )*};
}
numbers!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

/// A `#[repr(C)]` struct (or an array) as one argument, passed by value as C does.
#[derive(Clone, Copy, Debug)]
pub struct ByValue<T>(pub T);

// SAFETY: plain data without padding, passed as its bytes.
unsafe impl<T: Pod> KernelArg for ByValue<T> {
    fn arg(&self) -> Arg<'_> {
        Arg::new(&self.0)
    }
}

macro_rules! slices {
    ($($Slice:ident),*) => {$(
        // SAFETY: the address field, 64 bits as device pointers are.
        unsafe impl<T> KernelArg for $Slice<'_, T> {
            fn arg(&self) -> Arg<'_> {
                Arg {
                    owner: self.owner,
                    ..Arg::new(&self.ptr)
                }
            }
        }
        // SAFETY: as above, or a null that lives for ever.
        unsafe impl<T> KernelArg for Option<$Slice<'_, T>> {
            fn arg(&self) -> Arg<'_> {
                self.as_ref().map_or(Arg::new(&0u64), KernelArg::arg)
            }
        }
    )*};
}
slices!(Slice, SliceMut);

// SAFETY: the address, 64 bits as device pointers are.
unsafe impl<T> KernelArg for DevicePtr<T> {
    fn arg(&self) -> Arg<'_> {
        Arg::new(&self.address)
    }
}

// SAFETY: the argument itself, which lives longer than the reference to the reference.
unsafe impl<T: KernelArg> KernelArg for &T {
    fn arg(&self) -> Arg<'_> {
        (**self).arg()
    }
}

/// An array of launch arguments, `[Arg; N]`, one for each value (of a type that is a
/// [`KernelArg`]), in the order of the kernel's parameters.
///
/// The values are borrowed: use it within the call of [`Stream::launch`], or keep the values in
/// variables.
///
/// ```
/// let (n, scale) = (1000u32, 0.5f32);
/// let args = gpu::args![n, scale];
/// assert_eq!(args.len(), 2);
/// ```
#[macro_export]
macro_rules! args {
    ($($value:expr),* $(,)?) => {
        [$($crate::KernelArg::arg(&$value)),*]
    };
}

impl Stream {
    /// Launches a kernel.
    ///
    /// Shape, shared memory and device are checked, and the number and sizes of the arguments where
    /// the driver tells what the kernel has (CUDA 12.4).
    ///
    /// ```
    /// # fn f(stream: &gpu::Stream, kernel: &gpu::Kernel, data: &mut gpu::Buffer<f32>) -> gpu::Result<()> {
    /// let (n, launch) = (data.len() as u32, gpu::Launch::linear(data.len().div_ceil(256) as u32, 256));
    /// // SAFETY: `scale(float* data, unsigned n, float factor)` writes data[0..n] only.
    /// unsafe { stream.launch(kernel, &launch, &gpu::args![data.slice_mut(), n, 2.0f32]) }
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Launch`], [`Error::Arguments`], [`Error::Unsupported`], [`Error::OtherDevice`]; the
    /// driver's errors. Nothing was launched then. An error inside the kernel shows in a later
    /// call.
    ///
    /// # Safety
    ///
    /// The arguments are what the kernel's parameters are. All memory that the kernel reads and
    /// writes exists, may be so used (no buffer borrowed for reading is written), and stays
    /// until the kernel is done, when the stream is being captured in every run of the graph.
    /// Buffers that are arguments as slices, or named by [`Stream::using`], stay whenever they are
    /// dropped; of others, buffers of this stream do, unless the launch is captured.
    pub unsafe fn launch(&self, kernel: &Kernel, launch: &Launch, args: &[Arg<'_>]) -> Result<()> {
        self.check_device("the kernel", kernel.device())?;
        launch.check(
            kernel.name(),
            kernel.threads_per_block(),
            self.device().info(),
        )?;
        check_args(kernel.name(), kernel.parameters(), args)?;
        self.device().bind()?;
        let most = kernel.max_dynamic_shared(launch.dynamic_shared)?;
        if launch.dynamic_shared > most {
            return Err(Error::Launch {
                kernel: kernel.name().to_owned(),
                what: "the dynamic shared memory in bytes",
                given: launch.dynamic_shared.into(),
                allowed: format!("at most {most}; Kernel::set_max_dynamic_shared may allow more"),
            });
        }
        let mut params: Vec<*mut c_void> = args.iter().map(|arg| arg.ptr.cast_mut()).collect();
        let (params, none) = (params.as_mut_ptr(), ptr::null_mut());
        let ((gx, gy, gz), (bx, by, bz)) = (launch.grid, launch.block);
        let attributes: Vec<LaunchAttribute> = [
            launch.cooperative.then(LaunchAttribute::cooperative),
            launch.cluster.map(LaunchAttribute::cluster),
        ]
        .into_iter()
        .flatten()
        .collect();
        let owners = args.iter().map(|arg| arg.owner);
        // SAFETY: a live kernel and stream of one device; the arguments are read before the call
        // returns; the rest is the caller's promise.
        self.give(Some(kernel), owners, || unsafe {
            if launch.cluster.is_some() {
                let config = LaunchConfig {
                    grid: [gx, gy, gz],
                    block: [bx, by, bz],
                    shared: launch.dynamic_shared,
                    stream: self.raw(),
                    attributes: attributes.as_ptr(),
                    attribute_count: attributes.len() as u32,
                };
                driver::cuLaunchKernelEx(&config, kernel.raw(), params, none)
            } else if launch.cooperative {
                driver::cuLaunchCooperativeKernel(
                    kernel.raw(),
                    gx,
                    gy,
                    gz,
                    bx,
                    by,
                    bz,
                    launch.dynamic_shared,
                    self.raw(),
                    params,
                )
            } else {
                driver::cuLaunchKernel(
                    kernel.raw(),
                    gx,
                    gy,
                    gz,
                    bx,
                    by,
                    bz,
                    launch.dynamic_shared,
                    self.raw(),
                    params,
                    none,
                )
            }
        })?;
        Ok(())
    }
}

fn check_args(kernel: &str, parameters: Option<&[usize]>, args: &[Arg<'_>]) -> Result<()> {
    let given = || args.iter().map(|arg| arg.size);
    match parameters {
        Some(needed) if !needed.iter().copied().eq(given()) => Err(Error::Arguments {
            kernel: kernel.to_owned(),
            needed: needed.to_vec(),
            given: given().collect(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(clusters: bool) -> DeviceInfo {
        DeviceInfo {
            ordinal: 3,
            name: String::new(),
            compute_capability: (9, 0),
            multiprocessors: 132,
            memory_bytes: 0,
            l2_bytes: 0,
            shared_per_block: 48 << 10,
            shared_per_block_optin: 227 << 10,
            shared_per_multiprocessor: 228 << 10,
            threads_per_multiprocessor: 2048,
            threads_per_block: 1024,
            max_block: (1024, 1024, 64),
            max_grid: (i32::MAX as u32, 65535, 65535),
            clock_khz: 0,
            memory_clock_khz: 0,
            memory_bus_bits: 0,
            driver_version: (12, 4),
            cooperative_launch: clusters,
            cluster_launch: clusters,
            memory_pools: true,
        }
    }

    #[test]
    fn shapes_are_checked() {
        let good = Launch::linear(6, 256);
        let shape = |grid, block| Launch {
            grid,
            block,
            ..good
        };
        for launch in [
            good,
            good.cooperative(),
            good.cluster((3, 1, 1)),
            shape((i32::MAX as u32, 65535, 65535), (4, 4, 64)),
        ] {
            launch.check("kernel", 1024, &device(true)).unwrap();
        }
        let limit = |launch: Launch, threads| match launch
            .check("kernel", threads, &device(true))
            .unwrap_err()
        {
            Error::Launch {
                kernel,
                given,
                allowed,
                ..
            } if kernel == "kernel" => (given, allowed),
            error => panic!("{error}"),
        };
        for (launch, given, allowed) in [
            (shape((0, 1, 1), (1, 1, 1)), 0, "1 to 2147483647"),
            (shape((1, 65536, 1), (1, 1, 1)), 65536, "1 to 65535"),
            (
                shape((1, 1, u32::MAX), (1, 1, 1)),
                u64::from(u32::MAX),
                "1 to 65535",
            ),
            (shape((1, 1, 1), (1, 0, 1)), 0, "1 to 1024"),
            (shape((1, 1, 1), (1, 1, 65)), 65, "1 to 64"),
            (shape((1, 1, 1), (1024, 1024, 64)), 1 << 26, "at most 1024"),
            (good.cluster((4, 1, 1)), 4, "a divisor of the grid's 6"),
            (good.cluster((2, 0, 1)), 0, "a divisor of the grid's 1"),
        ] {
            assert_eq!(limit(launch, 1024), (given, allowed.to_owned()));
        }
        assert_eq!(
            limit(good, 128),
            (256, "at most 128".to_owned()),
            "the kernel's own limit"
        );
        for launch in [good.cooperative(), good.cluster((1, 1, 1))] {
            let error = launch.check("kernel", 1024, &device(false)).unwrap_err();
            assert!(
                matches!(error, Error::Unsupported { device: 3, .. }),
                "{error}"
            );
        }
    }

    #[test]
    fn arguments_are_checked_where_the_sizes_are_known() {
        let (a, b) = (1u32, [2u8; 12]);
        assert_eq!(args![a, ByValue(b), 3u64].map(|arg| arg.size), [4, 12, 8]);
        // SAFETY: only its address is looked at.
        let slice = unsafe { Slice::<u16>::from_raw(0x1234, 1) };
        for (arg, address) in [
            (slice.arg(), 0x1234),
            (Some(slice).arg(), 0x1234),
            (None::<Slice<u16>>.arg(), 0),
        ] {
            assert_eq!(arg.size, 8);
            // SAFETY: the argument borrows 64 bits that live.
            assert_eq!(unsafe { arg.ptr.cast::<u64>().read() }, address);
        }
        check_args("kernel", Some(&[4, 12, 8]), &args![a, ByValue(b), slice]).unwrap();
        check_args("kernel", None, &args![a]).unwrap();
        for needed in [&[4usize, 12][..], &[4, 12, 8, 8], &[4, 12, 4], &[]] {
            let error =
                check_args("kernel", Some(needed), &args![a, ByValue(b), slice]).unwrap_err();
            let (kernel, needed) = ("kernel".to_owned(), needed.to_vec());
            assert_eq!(
                error,
                Error::Arguments {
                    kernel,
                    needed,
                    given: vec![4, 12, 8]
                }
            );
        }
    }
}
