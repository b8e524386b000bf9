//! Declarations of the driver's functions, and the errors of their codes.
//!
//! The handle types come from `cust::sys`. The functions are declared again because `cust::sys`
//! declares their return type as a Rust `enum` of the codes of CUDA 11.4, so a new code from a
//! newer driver would be undefined behaviour. `libcuda-shim` defines the symbols.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

pub use cust::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphExec, CUmemAccessDesc,
};
pub use cust::sys::{CUmemPoolProps, CUmemoryPool, CUmodule, CUstream};

use libcuda_shim as _;

use crate::error::{NO_DEVICE, NOT_FOUND, STUB_LIBRARY};
use crate::{Error, Result};

macro_rules! functions {
    ($(fn $name:ident($($arg:ident: $type:ty),*);)*) => {
        /// The functions as the driver's header declares them.
        mod raw {
            use super::*;
            #[allow(non_snake_case)]
            unsafe extern "C" { $(pub fn $name($($arg: $type),*) -> i32;)* }
        }
        $(
            /// Calls the driver function of the same name. Its error names the function.
            ///
            /// # Safety
            ///
            /// Handles and pointers must be valid, as the driver's documentation asks.
            #[allow(non_snake_case, clippy::too_many_arguments)]
            pub unsafe fn $name($($arg: $type),*) -> Result<()> {
                // SAFETY: the caller of this wrapper promises valid handles and pointers.
                match unsafe { raw::$name($($arg),*) } {
                    0 => Ok(()),
                    code => Err(failed(stringify!($name), code)),
                }
            }
        )*
    };
}

functions! {
    fn cuInit(flags: c_uint);
    fn cuDriverGetVersion(version: *mut c_int);
    fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    fn cuDeviceGetCount(count: *mut c_int);
    fn cuDeviceGetName(name: *mut c_char, len: c_int, device: CUdevice);
    fn cuDeviceGetUuid(uuid: *mut [u8; 16], device: CUdevice);
    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: CUdevice);
    fn cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice);
    fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    fn cuDevicePrimaryCtxRelease_v2(device: CUdevice);
    fn cuCtxSetCurrent(context: CUcontext);
    fn cuCtxSynchronize();
    fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
    fn cuModuleLoadDataEx(module: *mut CUmodule, image: *const c_void, count: c_uint, options: *mut c_int, values: *mut *mut c_void);
    fn cuModuleUnload(module: CUmodule);
    fn cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: CUfunction);
    fn cuFuncSetAttribute(function: CUfunction, attribute: c_int, value: c_int);
    fn cuFuncGetParamInfo(function: CUfunction, index: usize, offset: *mut usize, size: *mut usize);
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: CUfunction, block: c_int, shared: usize);
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    fn cuMemAlloc_v2(pointer: *mut CUdeviceptr, bytes: usize);
    fn cuMemFree_v2(pointer: CUdeviceptr);
    fn cuMemAllocFromPoolAsync(pointer: *mut CUdeviceptr, bytes: usize, pool: CUmemoryPool, stream: CUstream);
    fn cuMemFreeAsync(pointer: CUdeviceptr, stream: CUstream);
    fn cuMemPoolCreate(pool: *mut CUmemoryPool, properties: *const CUmemPoolProps);
    fn cuMemPoolDestroy(pool: CUmemoryPool);
    fn cuMemPoolSetAccess(pool: CUmemoryPool, access: *const CUmemAccessDesc, count: usize);
    fn cuMemPoolTrimTo(pool: CUmemoryPool, keep: usize);
    fn cuMemPoolGetAttribute(pool: CUmemoryPool, attribute: c_int, value: *mut c_void);
    fn cuMemPoolSetAttribute(pool: CUmemoryPool, attribute: c_int, value: *mut c_void);
    fn cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint);
    fn cuMemFreeHost(pointer: *mut c_void);
    fn cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    fn cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
    fn cuMemcpyPeerAsync(to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext, bytes: usize, stream: CUstream);
    fn cuMemsetD8Async(to: CUdeviceptr, byte: u8, count: usize, stream: CUstream);
    fn cuMemsetD32Async(to: CUdeviceptr, word: c_uint, count: usize, stream: CUstream);
    fn cuStreamCreate(stream: *mut CUstream, flags: c_uint);
    fn cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int);
    fn cuStreamDestroy_v2(stream: CUstream);
    fn cuStreamQuery(stream: CUstream);
    fn cuStreamSynchronize(stream: CUstream);
    fn cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
    fn cuStreamBeginCapture_v2(stream: CUstream, mode: c_int);
    fn cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
    fn cuStreamGetCaptureInfo(stream: CUstream, status: *mut c_int, id: *mut u64);
    fn cuEventCreate(event: *mut CUevent, flags: c_uint);
    fn cuEventRecord(event: CUevent, stream: CUstream);
    fn cuEventQuery(event: CUevent);
    fn cuEventSynchronize(event: CUevent);
    fn cuEventDestroy_v2(event: CUevent);
    fn cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent);
    fn cuLaunchKernel(
        function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared: c_uint, stream: CUstream, params: *mut *mut c_void, extra: *mut *mut c_void
    );
    fn cuLaunchKernelEx(
        config: *const CUlaunchConfig, function: CUfunction, params: *mut *mut c_void, extra: *mut *mut c_void
    );
    fn cuLaunchCooperativeKernel(
        function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared: c_uint, stream: CUstream, params: *mut *mut c_void
    );
    fn cuGraphInstantiateWithFlags(exec: *mut CUgraphExec, graph: CUgraph, flags: u64);
    fn cuGraphUpload(exec: CUgraphExec, stream: CUstream);
    fn cuGraphLaunch(exec: CUgraphExec, stream: CUstream);
    fn cuGraphExecDestroy(exec: CUgraphExec);
    fn cuGraphDestroy(graph: CUgraph);
}

/// A launch with attributes, which `cust::sys` does not have.
#[repr(C)]
#[allow(non_camel_case_types)]
pub struct CUlaunchConfig {
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared: c_uint,
    pub stream: CUstream,
    pub attributes: *const CUlaunchAttribute,
    pub count: c_uint,
}

/// An attribute of a launch: a number, and a value of 64 bytes, most of which few attributes use.
#[repr(C)]
#[allow(non_camel_case_types)]
pub struct CUlaunchAttribute {
    pub id: c_int,
    pub pad: c_int,
    pub value: [c_int; 16],
}

/// The attribute of programmatic stream serialization: the launch does not wait for the kernel
/// ahead of it, which lets it begin.
pub const EARLY: CUlaunchAttribute = CUlaunchAttribute {
    id: 6,
    pad: 0,
    value: [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
};

const _: () = assert!(size_of::<CUlaunchConfig>() == 56 && size_of::<CUlaunchAttribute>() == 72);

unsafe extern "C" {
    /// Not wrapped like the others, because it is called while their errors are built.
    #[link_name = "cuGetErrorName"]
    pub fn error_name(code: c_int, text: *mut *const c_char) -> i32;
}

/// Returns the CUDA version that the driver supports, major and minor. It needs no device.
///
/// # Errors
///
/// [`Error::NoDriver`].
///
/// ```
/// match gpu::driver_version() {
///     Ok((major, minor)) => println!("a driver for CUDA {major}.{minor}"),
///     Err(error) => println!("{error}"),
/// }
/// ```
pub fn driver_version() -> Result<(u32, u32)> {
    let mut version = 0;
    // SAFETY: the out pointer is valid. (The first call of any driver function binds the driver.)
    unsafe { cuDriverGetVersion(&mut version)? };
    let version = u32::try_from(version).unwrap_or(0);
    Ok((version / 1000, version % 1000 / 10))
}

/// Returns the error for the nonzero code that a driver call returned.
fn failed(call: &'static str, code: i32) -> Error {
    match (code, libcuda_shim::load()) {
        (_, Err(missing)) => Error::NoDriver {
            looked_for: missing.names(),
            reason: missing.reason(),
        },
        (STUB_LIBRARY, Ok(library)) => Error::NoDriver {
            looked_for: library.to_owned(),
            reason: "a stub for linking, not a driver".to_owned(),
        },
        (NO_DEVICE, _) => Error::NoDevice,
        (NOT_FOUND, _) if !libcuda_shim::has(call) => Error::MissingFunction {
            call,
            driver: driver_version().unwrap_or_default(),
        },
        _ => Error::Call {
            call,
            code,
            name: code_name(code),
        },
    }
}

/// Returns the driver's name for a code, or a substitute if the driver does not know the code.
fn code_name(code: i32) -> &'static str {
    let mut text: *const c_char = core::ptr::null();
    // A failure leaves the pointer null. It must not be passed to `failed`, which calls this.
    // SAFETY: `text` is a valid out pointer.
    let _ = unsafe { error_name(code, &mut text) };
    if text.is_null() {
        return "a code that this driver has no name for";
    }
    // SAFETY: a non-null result is one of the driver's constant strings, and its library stays
    // open.
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .unwrap_or("a name that is not UTF-8")
}
