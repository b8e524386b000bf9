//! Buffers of a stream, and its copies and fills.

use core::iter;

use bytemuck::Pod;

use crate::memory::Owner;
use crate::slice::same_len;
use crate::{Buffer, Error, Result, Slice, SliceMut, Stream, driver};

impl Stream {
    /// Allocates a buffer of `len` elements with unspecified contents. It reuses memory that was
    /// freed before on this device, so it is cheap.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::TooLarge`], [`Error::Alignment`] for types aligned to more
    /// than 256 bytes, [`Error::Capturing`].
    pub fn alloc<T: Pod>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::new(self, len)
    }

    /// Allocates a buffer of `len` elements and sets all bytes to zero.
    ///
    /// # Errors
    ///
    /// As [`Stream::alloc`].
    pub fn alloc_zeroed<T: Pod>(&self, len: usize) -> Result<Buffer<T>> {
        let mut buffer = self.alloc(len)?;
        self.fill_bytes(buffer.slice_mut(), 0)?;
        Ok(buffer)
    }

    /// Allocates a buffer with a copy of `data`. The copy is done when this returns.
    ///
    /// # Errors
    ///
    /// As [`Stream::alloc`] and [`Stream::upload`].
    pub fn from_slice<T: Pod>(&self, data: &[T]) -> Result<Buffer<T>> {
        let mut buffer = self.alloc(data.len())?;
        self.upload(buffer.slice_mut(), data)?;
        Ok(buffer)
    }

    /// Copies `src` to the device, and waits for the copy and all work before it.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if the lengths differ; [`Error::Capturing`]; the driver's errors.
    pub fn upload<T: Pod>(&self, dst: SliceMut<'_, T>, src: &[T]) -> Result<()> {
        same_len("elements to upload", dst.len(), src.len())?;
        self.lend(dst.bytes(), dst.owner, "Stream::upload", || {
            // SAFETY: both sides have that many bytes. `lend` waits for the copy while `src` is
            // borrowed. The destination is kept by the slice's borrow, or by the promise of
            // `from_raw`.
            unsafe {
                driver::cuMemcpyHtoDAsync_v2(
                    dst.ptr(),
                    src.as_ptr().cast(),
                    dst.bytes(),
                    self.raw(),
                )
            }
        })
    }

    /// Copies from the device to `dst`, and waits for the copy and all work before it.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if the lengths differ; [`Error::Capturing`]; the driver's errors,
    /// including those of earlier work. After an error the contents of `dst` are unspecified.
    pub fn download<T: Pod>(&self, src: Slice<'_, T>, dst: &mut [T]) -> Result<()> {
        same_len("elements to download", src.len(), dst.len())?;
        self.lend(src.bytes(), src.owner, "Stream::download", || {
            // SAFETY: both sides have that many bytes. `lend` waits for the copy while `dst` is
            // borrowed. Any bytes are a valid value of a `Pod` type.
            unsafe {
                driver::cuMemcpyDtoHAsync_v2(
                    dst.as_mut_ptr().cast(),
                    src.ptr(),
                    src.bytes(),
                    self.raw(),
                )
            }
        })
    }

    /// Runs `copy`, which copies `bytes` bytes between borrowed host memory and memory of `owner`,
    /// and waits for it even if it fails. No capture can begin meanwhile.
    fn lend(
        &self,
        bytes: usize,
        owner: Owner<'_>,
        call: &'static str,
        copy: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if bytes == 0 {
            return self.immediate(call, || self.finish());
        }
        owner.begin_use(self)?;
        self.immediate(call, || {
            let copied = copy();
            let done = self.finish();
            copied.and(done)
        })
    }

    /// Returns a copy of `src` on the host, and waits as [`Stream::download`] does.
    ///
    /// # Errors
    ///
    /// As [`Stream::download`], and [`Error::OutOfHostMemory`].
    pub fn to_vec<T: Pod>(&self, src: Slice<'_, T>) -> Result<Vec<T>> {
        let mut vec = Vec::new();
        let requested = src.bytes() as u64;
        vec.try_reserve_exact(src.len())
            .map_err(|_| Error::OutOfHostMemory { requested })?;
        vec.resize(src.len(), T::zeroed());
        self.download(src, &mut vec)?;
        Ok(vec)
    }

    /// Copies `src`, all or a part of a [`Pinned`](crate::Pinned), to the device. The copy is
    /// asynchronous and can be captured.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] when the lengths differ; the driver's errors.
    ///
    /// # Safety
    ///
    /// `src` must stay allocated and unchanged until the copy is done. If the copy is captured,
    /// that is until the graph is dropped and its last run is done.
    pub unsafe fn upload_pinned<T: Pod>(&self, dst: SliceMut<'_, T>, src: &[T]) -> Result<()> {
        same_len("elements to upload", dst.len(), src.len())?;
        if dst.bytes() == 0 {
            return Ok(());
        }
        // SAFETY: both sides have that many bytes. The caller keeps the source; `submit`, or the
        // promise of `from_raw`, keeps the destination.
        self.submit(None, iter::once(dst.owner), || unsafe {
            driver::cuMemcpyHtoDAsync_v2(dst.ptr(), src.as_ptr().cast(), dst.bytes(), self.raw())
        })?;
        Ok(())
    }

    /// Copies from the device to `dst`, all or a part of a [`Pinned`](crate::Pinned). The copy is
    /// asynchronous and can be captured.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] when the lengths differ; the driver's errors.
    ///
    /// # Safety
    ///
    /// `dst` must stay allocated, and must not be read or written, until the copy is done. If the
    /// copy is captured, `dst` must stay allocated until the graph is dropped and its last run is
    /// done, and must not be read or written while a run is queued.
    pub unsafe fn download_pinned<T: Pod>(&self, src: Slice<'_, T>, dst: &mut [T]) -> Result<()> {
        same_len("elements to download", src.len(), dst.len())?;
        if src.bytes() == 0 {
            return Ok(());
        }
        // SAFETY: both sides have that many bytes. The caller keeps the destination. Any bytes are
        // a valid value of a `Pod` type.
        self.submit(None, iter::once(src.owner), || unsafe {
            driver::cuMemcpyDtoHAsync_v2(
                dst.as_mut_ptr().cast(),
                src.ptr(),
                src.bytes(),
                self.raw(),
            )
        })?;
        Ok(())
    }

    /// Copies within the device.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] when the lengths differ; the driver's errors.
    pub fn copy<T: Pod>(&self, dst: SliceMut<'_, T>, src: Slice<'_, T>) -> Result<()> {
        same_len("elements to copy", dst.len(), src.len())?;
        if dst.bytes() == 0 {
            return Ok(());
        }
        let owners = [dst.owner, src.owner];
        // SAFETY: both sides have that many bytes of device memory, which is freed only after this
        // copy.
        self.submit(None, owners.iter().copied(), || unsafe {
            driver::cuMemcpyDtoDAsync_v2(dst.ptr(), src.ptr(), dst.bytes(), self.raw())
        })?;
        Ok(())
    }

    /// Sets every byte of `dst` to `byte`.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn fill_bytes<T: Pod>(&self, dst: SliceMut<'_, T>, byte: u8) -> Result<()> {
        if dst.bytes() == 0 {
            return Ok(());
        }
        // SAFETY: `dst` has that many bytes of device memory, which is freed only after this fill.
        // Any bytes are a valid value of a `Pod` type.
        self.submit(None, iter::once(dst.owner), || unsafe {
            driver::cuMemsetD8Async(dst.ptr(), byte, dst.bytes(), self.raw())
        })?;
        Ok(())
    }

    /// Sets every element of `dst` to `value`.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn fill_u32(&self, dst: SliceMut<'_, u32>, value: u32) -> Result<()> {
        if dst.is_empty() {
            return Ok(());
        }
        // SAFETY: `dst` has that many aligned words of device memory, which is freed only after
        // this fill.
        self.submit(None, iter::once(dst.owner), || unsafe {
            driver::cuMemsetD32Async(dst.ptr(), value, dst.len(), self.raw())
        })?;
        Ok(())
    }
}
