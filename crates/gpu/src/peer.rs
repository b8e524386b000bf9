//! Copies from device to device, within one process.

use core::ffi::c_int;

use bytemuck::Pod;
use cust::sys::{CUmemAccess_flags, CUmemLocation, CUmemLocationType};

use crate::driver::{self, CUmemAccessDesc};
use crate::{Device, DevicePtr, Result, SliceMut, Stream};

impl Device {
    /// Lets `other` reach the memory of this device directly, where the two are connected. Returns
    /// whether it can; if not, [`Stream::copy_from_device`] goes over the host.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn let_reach(&self, other: &Device) -> Result<bool> {
        if self.same(other) {
            return Ok(true);
        }
        let mut can = 0;
        // SAFETY: both devices are valid, and so is the out pointer.
        unsafe { driver::cuDeviceCanAccessPeer(&mut can, other.raw(), self.raw())? };
        let Some(pool) = self.pool().filter(|_| can != 0) else {
            return Ok(false);
        };
        let access = CUmemAccessDesc {
            location: CUmemLocation {
                type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                id: other.info().ordinal as c_int,
            },
            flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        self.bind()?;
        // SAFETY: the pool is live, and there is one description.
        unsafe { driver::cuMemPoolSetAccess(pool, &access, 1)? };
        Ok(true)
    }
}

impl Stream {
    /// Copies memory of `device`, which may be another one than that of this stream. The copy is
    /// queued on this stream.
    ///
    /// # Errors
    ///
    /// [`Error::Capturing`](crate::Error::Capturing); the driver's errors.
    ///
    /// # Safety
    ///
    /// There are `dst.len()` elements at `src`. They are neither freed nor written until the copy
    /// is done, and what writes them is done or comes before the copy, by [`Stream::wait`].
    pub unsafe fn copy_from_device<T: Pod>(
        &self,
        dst: SliceMut<'_, T>,
        src: DevicePtr<T>,
        device: &Device,
    ) -> Result<()> {
        if dst.bytes() == 0 {
            return Ok(());
        }
        dst.owner.begin_use(self)?;
        let (to, from) = (self.device().context(), device.context());
        // SAFETY: both sides have that many bytes, and both contexts are live. The caller keeps the
        // source; the slice's owner, or the promise of `from_raw`, keeps the destination.
        self.immediate("a copy from another device", || unsafe {
            let (dst_ptr, bytes) = (dst.ptr(), dst.bytes());
            driver::cuMemcpyPeerAsync(dst_ptr, to, src.address, from, bytes, self.raw())
        })?;
        dst.owner.end_use(self);
        Ok(())
    }
}
