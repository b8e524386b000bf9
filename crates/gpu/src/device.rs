//! Devices: their properties, and the memory that they have.

use core::ffi::{CStr, c_int};
use core::{fmt, ptr};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cust::sys::{self, CUdevice_attribute as Attribute, CUmemPool_attribute as PoolAttribute};

use crate::driver::{self, CUcontext, CUdevice, CUmemPoolProps, CUmemoryPool, driver_version};
use crate::{Error, Result};

/// A device of this machine, ready for work. Its primary context is retained as long as any handle
/// of it lives, or anything made with one. Then it is closed, and to open it again takes 0.4 to 2
/// seconds where it is busy, so a program should keep a handle.
///
/// The CUDA runtime uses the same context, so memory and streams can be shared with other libraries
/// in the process. Every call of this crate makes the context current on the calling thread. All
/// handles of one device are equal.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    handle: CUdevice,
    context: CUcontext,
    /// A pool of our own, so that the freed memory it keeps does not change what other libraries in
    /// the process see. `None` where the device has no pools.
    pool: Option<CUmemoryPool>,
    info: DeviceInfo,
}
// SAFETY: the driver lets any thread use contexts and pools.
unsafe impl Send for Inner {}
// SAFETY: the driver lets any number of threads use contexts and pools at once.
unsafe impl Sync for Inner {}

/// The properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The ordinal of the device, among those that this process may use.
    pub ordinal: usize,
    /// The name of the model.
    pub name: String,
    /// The compute capability, major and minor.
    pub compute_capability: (u32, u32),
    /// The number of multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// Bytes of level-two cache.
    pub l2_bytes: u64,
    /// Max bytes of shared memory of a block, unless the kernel opts in to more.
    pub shared_per_block: u32,
    /// Max bytes of shared memory of a block after
    /// [`Kernel::set_max_dynamic_shared`](crate::Kernel::set_max_dynamic_shared).
    pub shared_per_block_optin: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_per_multiprocessor: u32,
    /// Max threads that are resident on a multiprocessor.
    pub threads_per_multiprocessor: u32,
    /// Max threads of a block.
    pub threads_per_block: u32,
    /// Max threads of a block along each axis.
    pub max_block: (u32, u32, u32),
    /// Max blocks of a grid along each axis.
    pub max_grid: (u32, u32, u32),
    /// Clock rate of the multiprocessors in kHz; 0 if the driver does not report it.
    pub clock_khz: u32,
    /// Clock rate of the memory in kHz; 0 if the driver does not report it.
    pub memory_clock_khz: u32,
    /// Width of the memory bus in bits.
    pub memory_bus_bits: u32,
    /// The CUDA version that the driver supports, major and minor.
    pub driver_version: (u32, u32),
    /// Whether kernels whose blocks wait for each other can be launched.
    pub cooperative_launch: bool,
    /// Whether memory can be allocated in stream order.
    pub memory_pools: bool,
}

/// The open devices by ordinal, so that opening one again returns the same.
static OPEN: Mutex<Vec<(usize, Weak<Inner>)>> = Mutex::new(Vec::new());

impl Device {
    /// Returns the number of devices that this process may use.
    ///
    /// # Errors
    ///
    /// [`Error::NoDriver`]; the driver's errors. Without a device the count is 0, and no error.
    pub fn count() -> Result<usize> {
        let mut count = 0;
        // SAFETY: 0 is the only flag value, and the out pointer is valid.
        let counted =
            unsafe { driver::cuInit(0).and_then(|()| driver::cuDeviceGetCount(&mut count)) };
        match counted {
            Ok(()) => Ok(usize::try_from(count).unwrap_or(0)),
            Err(Error::NoDevice) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Opens device `ordinal`.
    ///
    /// # Errors
    ///
    /// [`Error::NoDriver`], [`Error::NoDevice`], [`Error::DeviceOrdinal`]; the driver's errors.
    pub fn open(ordinal: usize) -> Result<Device> {
        let count = Device::count()?;
        if count == 0 {
            return Err(Error::NoDevice);
        }
        let number = c_int::try_from(ordinal)
            .ok()
            .filter(|_| ordinal < count)
            .ok_or(Error::DeviceOrdinal { ordinal, count })?;
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, device)| device.strong_count() != 0);
        if let Some(device) = open
            .iter()
            .filter(|(number, _)| *number == ordinal)
            .find_map(|(_, device)| device.upgrade())
        {
            return Ok(Device(device));
        }
        let mut handle = 0;
        // SAFETY: the out pointer is valid.
        unsafe { driver::cuDeviceGet(&mut handle, number)? };
        let info = DeviceInfo::read(ordinal, handle)?;
        let mut context = ptr::null_mut();
        // SAFETY: the device and the out pointer are valid.
        unsafe { driver::cuDevicePrimaryCtxRetain(&mut context, handle)? };
        let mut inner = Inner {
            handle,
            context,
            pool: None,
            info,
        };
        if inner.info.memory_pools {
            inner.pool = Some(make_pool(number)?);
        }
        let inner = Arc::new(inner);
        open.push((ordinal, Arc::downgrade(&inner)));
        Ok(Device(inner))
    }

    /// Opens the first device that answers.
    ///
    /// # Errors
    ///
    /// [`Error::NoDriver`], [`Error::NoDevice`]; when no device opens, the error of the first.
    pub fn first() -> Result<Device> {
        let first = Device::open(0);
        if first.is_ok() {
            return first;
        }
        // The error of the first says more than those of the others.
        (1..Device::count()?)
            .find_map(|ordinal| Device::open(ordinal).ok())
            .map_or(first, Ok)
    }

    /// Returns the properties of the device.
    pub fn info(&self) -> &DeviceInfo {
        &self.0.info
    }

    /// Returns the number by which the device differs from those of all machines. Parts of a device
    /// have the same.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn uuid(&self) -> Result<[u8; 16]> {
        let mut uuid = [0; 16];
        // SAFETY: the device is valid, and the driver writes 16 bytes.
        unsafe { driver::cuDeviceGetUuid(&mut uuid, self.0.handle)? };
        Ok(uuid)
    }

    /// Returns the bytes of free memory and of all memory. Freed memory that this crate keeps for
    /// reuse counts as free.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn memory(&self) -> Result<(u64, u64)> {
        self.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both out pointers are valid.
        unsafe { driver::cuMemGetInfo_v2(&mut free, &mut total)? };
        let (reserved, used) = self.pool_bytes()?.unwrap_or((0, 0));
        Ok((free as u64 + reserved.saturating_sub(used), total as u64))
    }

    /// Returns the bytes of all live buffers of this process. `None` on a device without memory
    /// pools, where they are not counted.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn memory_used(&self) -> Result<Option<u64>> {
        self.bind()?;
        Ok(self.pool_bytes()?.map(|(_, used)| used))
    }

    /// Returns the bytes that the pool has reserved on the device, and how many of them are in use.
    fn pool_bytes(&self) -> Result<Option<(u64, u64)>> {
        let Some(pool) = self.0.pool else {
            return Ok(None);
        };
        let (mut reserved, mut used) = (0u64, 0u64);
        let (now, in_use) = (
            PoolAttribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
            PoolAttribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
        );
        // SAFETY: the pool is live, and both attributes are 64 bits wide.
        unsafe {
            driver::cuMemPoolGetAttribute(pool, now as c_int, (&raw mut reserved).cast())?;
            driver::cuMemPoolGetAttribute(pool, in_use as c_int, (&raw mut used).cast())?;
        }
        Ok(Some((reserved, used)))
    }

    /// Returns freed memory that is kept for reuse to the system.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn trim(&self) -> Result<()> {
        self.bind()?;
        match self.0.pool {
            // SAFETY: the pool is live.
            Some(pool) => unsafe { driver::cuMemPoolTrimTo(pool, 0) },
            None => Ok(()),
        }
    }

    /// Tells whether kernels can be launched early here ([`Module::launched_early`]): drivers
    /// before CUDA 12.3, and devices before compute capability 9.0, know none of this.
    ///
    /// [`Module::launched_early`]: crate::Module::launched_early
    pub fn launches_early(&self) -> bool {
        let info = self.info();
        // A captured launch may begin early from CUDA 12.3 on.
        info.compute_capability >= (9, 0)
            && info.driver_version >= (12, 3)
            && libcuda_shim::has("cuLaunchKernelEx")
    }

    /// Makes the device's context current on this thread.
    pub(crate) fn bind(&self) -> Result<()> {
        // SAFETY: the context is retained while the device lives.
        unsafe { driver::cuCtxSetCurrent(self.0.context) }
    }

    /// Returns the driver's handle of the device.
    pub(crate) fn raw(&self) -> CUdevice {
        self.0.handle
    }

    /// Returns the device's context.
    pub(crate) fn context(&self) -> CUcontext {
        self.0.context
    }

    /// Returns whether both are handles of one device.
    pub(crate) fn same(&self, other: &Device) -> bool {
        self.0.context == other.0.context
    }

    /// Returns the pool that the device's memory is allocated from, if it has one.
    pub(crate) fn pool(&self) -> Option<CUmemoryPool> {
        self.0.pool
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        self.same(other)
    }
}
impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(self.info()).finish()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: pool and context were acquired once and are released once. Nothing made with the
        // device is left, because all of it keeps the device alive.
        unsafe {
            if let Some(pool) = self.pool {
                let _: Result<()> = driver::cuCtxSetCurrent(self.context)
                    .and_then(|()| driver::cuMemPoolDestroy(pool));
            }
            let _: Result<()> = driver::cuDevicePrimaryCtxRelease_v2(self.handle);
        }
    }
}

/// Makes a memory pool that keeps freed memory. Allocating from the system takes about a
/// millisecond, reusing memory about a microsecond.
fn make_pool(number: c_int) -> Result<CUmemoryPool> {
    let properties = CUmemPoolProps {
        allocType: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: sys::CUmemLocation {
            type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: number,
        },
        win32SecurityAttributes: ptr::null_mut(),
        reserved: [0; 64],
    };
    let mut pool = ptr::null_mut();
    let mut threshold = u64::MAX;
    let attribute = PoolAttribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD as c_int;
    // SAFETY: the properties are complete, the out pointers valid, and the attribute is 64 bits
    // wide.
    unsafe {
        driver::cuMemPoolCreate(&mut pool, &properties)?;
        driver::cuMemPoolSetAttribute(pool, attribute, (&raw mut threshold).cast())?;
    }
    Ok(pool)
}

impl DeviceInfo {
    fn read(ordinal: usize, device: CUdevice) -> Result<DeviceInfo> {
        use Attribute::*;
        let number = |attribute: c_int| {
            let mut value = 0;
            // SAFETY: the device and the out pointer are valid.
            unsafe { driver::cuDeviceGetAttribute(&mut value, attribute, device)? };
            Ok::<u32, Error>(u32::try_from(value).unwrap_or(0))
        };
        let get = |attribute: Attribute| number(attribute as c_int);
        // A driver that is older than an attribute returns an error: the device lacks the feature.
        let has = |attribute: c_int| number(attribute).is_ok_and(|value| value != 0);
        let mut memory_bytes = 0;
        let mut name = [0; 256];
        // SAFETY: the device is valid, and so are the out pointers; the length leaves a byte for
        // the final zero.
        unsafe {
            driver::cuDeviceTotalMem_v2(&mut memory_bytes, device)?;
            driver::cuDeviceGetName(name.as_mut_ptr(), name.len() as c_int - 1, device)?;
        }
        // SAFETY: the last byte is zero, so this is a C string.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) };
        Ok(DeviceInfo {
            ordinal,
            name: name.to_string_lossy().into_owned(),
            compute_capability: (
                get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            multiprocessors: get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            memory_bytes: memory_bytes as u64,
            l2_bytes: get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
            shared_per_block: get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
            shared_per_block_optin: get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            shared_per_multiprocessor: get(
                CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
            )?,
            threads_per_multiprocessor: get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
            threads_per_block: get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            max_block: (
                get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
                get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
                get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
            ),
            max_grid: (
                get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ),
            clock_khz: get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE).unwrap_or(0),
            memory_clock_khz: get(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE).unwrap_or(0),
            memory_bus_bits: get(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?,
            driver_version: driver_version()?,
            cooperative_launch: has(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH as c_int),
            memory_pools: has(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED as c_int)
                && libcuda_shim::has("cuMemPoolCreate"),
        })
    }
}
