//! Kernel launches: shapes and arguments.

use core::ffi::c_void;
use core::ptr;

use bytemuck::Pod;

use crate::driver;
use crate::memory::Owner;
use crate::{DeviceInfo, DevicePtr, Error, Kernel, Result, Slice, SliceMut, Stream};

/// The shape of a launch: grid, block, shared memory.
///
/// ```
/// let launch = gpu::Launch::linear(1000, 256).dynamic_shared(64 * 1024);
/// assert_eq!(launch.grid, (1000, 1, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Launch {
    /// Blocks along each axis.
    pub grid: (u32, u32, u32),
    /// Threads of a block along each axis.
    pub block: (u32, u32, u32),
    /// Bytes of dynamic shared memory of a block, in addition to the kernel's static shared memory.
    pub dynamic_shared: u32,
    /// Whether all blocks run at once, so that they may wait for each other.
    pub cooperative: bool,
}

/// Returns the number of blocks for `items`, with `each` of them for a block. If a `u32` does not
/// count them, it is a number that no device launches.
///
/// ```
/// assert_eq!(gpu::blocks(1000, 256), 4);
/// ```
pub fn blocks(items: usize, each: u32) -> u32 {
    u32::try_from(items.div_ceil(each as usize)).unwrap_or(u32::MAX)
}

impl Launch {
    /// Returns a shape of that many blocks, of that many threads each, along each axis.
    pub fn new(grid: (u32, u32, u32), block: (u32, u32, u32)) -> Launch {
        Launch {
            grid,
            block,
            dynamic_shared: 0,
            cooperative: false,
        }
    }

    /// Returns a one-dimensional shape of `grid` blocks of `block` threads each.
    pub fn linear(grid: u32, block: u32) -> Launch {
        Launch::new((grid, 1, 1), (block, 1, 1))
    }

    /// Sets the dynamic shared memory of a block, in bytes.
    pub fn dynamic_shared(self, bytes: u32) -> Launch {
        Launch {
            dynamic_shared: bytes,
            ..self
        }
    }

    /// Makes the launch cooperative: all blocks run at once.
    pub fn cooperative(self) -> Launch {
        Launch {
            cooperative: true,
            ..self
        }
    }

    /// Fails unless the device can run this shape, for a kernel whose blocks have at most `threads`
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
                "the number of blocks along an axis of the grid",
                axes(self.grid),
                axes(device.max_grid),
            ),
            (
                "the number of threads along an axis of a block",
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
            return wrong(
                "the number of threads of a block",
                block,
                format!("at most {limit}"),
            );
        }
        if self.cooperative && !device.cooperative_launch {
            return Err(Error::Unsupported {
                device: device.ordinal,
                what: "cooperative launches",
            });
        }
        Ok(())
    }
}

/// A borrowed argument of a launch. [`args!`](crate::args) makes them.
#[derive(Clone, Copy, Debug)]
pub struct Arg<'a> {
    ptr: *const c_void,
    size: usize,
    owner: Owner<'a>,
}

/// A type that can be a kernel argument: a number, a device slice (passed as its 64-bit device
/// address; `None` as null), a [`DevicePtr`], or a struct in [`ByValue`].
///
/// # Safety
///
/// [`KernelArg::arg`] must return [`Arg::new`] of a value that lives as long as the borrow of
/// `self` and has the layout of the kernel's parameter.
pub unsafe trait KernelArg {
    /// Returns the argument.
    fn arg(&self) -> Arg<'_>;
}

impl<'a> Arg<'a> {
    /// Returns an argument that passes the bytes of `value`.
    pub fn new<T>(value: &'a T) -> Arg<'a> {
        Arg {
            ptr: ptr::from_ref(value).cast(),
            size: size_of::<T>(),
            owner: Owner::Unchecked,
        }
    }
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        // SAFETY: the number has the same layout in C, and lives as long as the borrow of `self`.
        unsafe impl KernelArg for $type {
            fn arg(&self) -> Arg<'_> {
                Arg::new(self)
            }
        }
    )*};
}
numbers!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

/// A `#[repr(C)]` struct or an array that is passed by value as one argument.
#[derive(Clone, Copy, Debug)]
pub struct ByValue<T>(pub T);

// SAFETY: a `Pod` type is plain data without padding, and lives as long as the borrow of `self`.
unsafe impl<T: Pod> KernelArg for ByValue<T> {
    fn arg(&self) -> Arg<'_> {
        Arg::new(&self.0)
    }
}

macro_rules! slices {
    ($($Slice:ident),*) => {$(
        // SAFETY: the argument is the address field, which has the 64 bits of a device pointer.
        unsafe impl<T> KernelArg for $Slice<'_, T> {
            fn arg(&self) -> Arg<'_> {
                Arg {
                    owner: self.owner,
                    ..Arg::new(&self.ptr)
                }
            }
        }
        // SAFETY: the argument is the slice's address field, or a null constant of the same size.
        unsafe impl<T> KernelArg for Option<$Slice<'_, T>> {
            fn arg(&self) -> Arg<'_> {
                self.as_ref().map_or(Arg::new(&0u64), KernelArg::arg)
            }
        }
    )*};
}
slices!(Slice, SliceMut);

// SAFETY: the argument is the address field, which has the 64 bits of a device pointer.
unsafe impl<T> KernelArg for DevicePtr<T> {
    fn arg(&self) -> Arg<'_> {
        Arg::new(&self.address)
    }
}

// SAFETY: the argument is that of the referenced value, which outlives the reference.
unsafe impl<T: KernelArg> KernelArg for &T {
    fn arg(&self) -> Arg<'_> {
        (**self).arg()
    }
}

/// Makes the array of launch arguments, `[Arg; N]`, from values that implement [`KernelArg`], in
/// the order of the kernel's parameters.
///
/// The array borrows the values. Use it within the call of [`Stream::launch`], or keep the values
/// in variables.
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
    /// Shape, shared memory and device are checked. From CUDA 12.4 on, where the driver reports a
    /// kernel's parameters, the number and sizes of the arguments are checked too.
    ///
    /// ```
    /// # use gpu::{Buffer, Kernel, Launch, Stream};
    /// # fn f(stream: &Stream, kernel: &Kernel, data: &mut Buffer<f32>) -> gpu::Result<()> {
    /// let n = data.len() as u32;
    /// let launch = Launch::linear(n.div_ceil(256), 256);
    /// // SAFETY: `scale(float* data, unsigned n, float factor)` writes data[0..n] only.
    /// unsafe { stream.launch(kernel, &launch, &gpu::args![data.slice_mut(), n, 2.0f32]) }
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Launch`], [`Error::Arguments`], [`Error::Unsupported`], [`Error::OtherDevice`]; the
    /// driver's errors. Nothing is launched then. An error inside the kernel is returned by a later
    /// call.
    ///
    /// # Safety
    ///
    /// - The arguments have the types of the kernel's parameters.
    /// - All memory that the kernel reads or writes exists and may be used so; it writes no buffer
    ///   that is borrowed for reading.
    /// - That memory stays allocated until the kernel is done. If the stream is being captured,
    ///   this holds for every run of the graph. Buffers that are passed as slices, or named by
    ///   [`Stream::using`], are kept for that time even if they are dropped. Other buffers of this
    ///   stream are kept too, unless the launch is captured.
    pub unsafe fn launch(&self, kernel: &Kernel, launch: &Launch, args: &[Arg<'_>]) -> Result<()> {
        self.check_device("the kernel", kernel.device())?;
        launch.check(
            kernel.name(),
            kernel.threads_per_block(),
            self.device().info(),
        )?;
        check_args(kernel.name(), kernel.parameters(), args)?;
        self.device().bind()?;
        let limit = kernel.max_dynamic_shared(launch.dynamic_shared)?;
        if launch.dynamic_shared > limit {
            return Err(Error::Launch {
                kernel: kernel.name().to_owned(),
                what: "the dynamic shared memory in bytes",
                given: launch.dynamic_shared.into(),
                allowed: format!("at most {limit}; Kernel::set_max_dynamic_shared may allow more"),
            });
        }
        let mut params: Vec<*mut c_void> = args.iter().map(|arg| arg.ptr.cast_mut()).collect();
        let (params, none) = (params.as_mut_ptr(), ptr::null_mut());
        let ((gx, gy, gz), (bx, by, bz)) = (launch.grid, launch.block);
        let owners = args.iter().map(|arg| arg.owner);
        // SAFETY: kernel and stream are live and of one device; the driver reads the arguments
        // before the call returns; the caller promises what the kernel does with memory.
        self.submit(Some(kernel), owners, || unsafe {
            if launch.cooperative {
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
            } else if kernel.begins_early() {
                let config = driver::CUlaunchConfig {
                    grid: [gx, gy, gz],
                    block: [bx, by, bz],
                    shared: launch.dynamic_shared,
                    stream: self.raw(),
                    attributes: &driver::EARLY,
                    count: 1,
                };
                driver::cuLaunchKernelEx(&config, kernel.raw(), params, none)
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

    fn device(cooperative_launch: bool) -> DeviceInfo {
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
            cooperative_launch,
            memory_pools: true,
        }
    }

    #[test]
    fn shapes_are_checked() {
        let good = Launch::linear(6, 256);
        for launch in [
            good,
            good.cooperative(),
            Launch::new((i32::MAX as u32, 65535, 65535), (4, 4, 64)),
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
            (Launch::new((0, 1, 1), (1, 1, 1)), 0, "1 to 2147483647"),
            (Launch::new((1, 65536, 1), (1, 1, 1)), 65536, "1 to 65535"),
            (
                Launch::new((1, 1, u32::MAX), (1, 1, 1)),
                u64::from(u32::MAX),
                "1 to 65535",
            ),
            (Launch::new((1, 1, 1), (1, 0, 1)), 0, "1 to 1024"),
            (Launch::new((1, 1, 1), (1, 1, 65)), 65, "1 to 64"),
            (
                Launch::new((1, 1, 1), (1024, 1024, 64)),
                1 << 26,
                "at most 1024",
            ),
        ] {
            assert_eq!(limit(launch, 1024), (given, allowed.to_owned()));
        }
        assert_eq!(
            limit(good, 128),
            (256, "at most 128".to_owned()),
            "the kernel's own limit"
        );
        let error = good
            .cooperative()
            .check("kernel", 1024, &device(false))
            .unwrap_err();
        assert!(
            matches!(error, Error::Unsupported { device: 3, .. }),
            "{error}"
        );
    }

    #[test]
    fn arguments_are_checked_where_the_sizes_are_known() {
        let (a, b) = (1u32, [2u8; 12]);
        assert_eq!(args![a, ByValue(b), 3u64].map(|arg| arg.size), [4, 12, 8]);
        // SAFETY: only the address is read, never the memory.
        let slice = unsafe { Slice::<u16>::from_raw(0x1234, 1) };
        for (arg, address) in [
            (slice.arg(), 0x1234),
            (Some(slice).arg(), 0x1234),
            (None::<Slice<u16>>.arg(), 0),
        ] {
            assert_eq!(arg.size, 8);
            // SAFETY: the argument borrows a live value of 64 bits.
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
