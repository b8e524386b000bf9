//! Streams: memory and copies in the order of their work.

use core::fmt;
use core::ptr;
use std::sync::Arc;

use bytemuck::Pod;

use crate::driver::{self, CUstream};
use crate::slice::same_len;
use crate::{Buffer, Device, Error, Graph, Result, Slice, SliceMut, capture, event};

/// A queue of work for a device, run in order, apart from that of other streams (it does not wait
/// for the legacy default stream either). Clones are the same stream. Any thread may use it; what
/// two threads give it at the same time runs in either order.
///
/// Unless its documentation says otherwise a call returns once the work is queued, and an error of
/// the work itself shows in a later call.
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

struct Inner {
    device: Device,
    handle: CUstream,
}
// SAFETY: the driver lets any thread use a stream.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: not used again. The driver lets the work already queued end.
            let _ = unsafe { driver::cuStreamDestroy_v2(self.handle) };
        }
    }
}

impl Stream {
    /// A new stream.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn new(device: &Device) -> Result<Stream> {
        /// `CU_STREAM_NON_BLOCKING`.
        const NON_BLOCKING: u32 = 1;
        device.bind()?;
        let mut handle = ptr::null_mut();
        // SAFETY: a place to write to.
        unsafe { driver::cuStreamCreate(&mut handle, NON_BLOCKING)? };
        Ok(Stream(Arc::new(Inner {
            device: device.clone(),
            handle,
        })))
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    pub(crate) fn raw(&self) -> CUstream {
        self.0.handle
    }

    /// True for clones of one stream.
    pub(crate) fn same(&self, other: &Stream) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn check_device(&self, what: &'static str, other: &Device) -> Result<()> {
        let (stream, other_ordinal) = (self.device().info().ordinal, other.info().ordinal);
        if other.same(self.device()) {
            Ok(())
        } else {
            Err(Error::OtherDevice {
                what,
                other: other_ordinal,
                stream,
            })
        }
    }

    /// Fails, leaving the capture as it is, when the stream is being captured: the driver would
    /// break the capture off.
    pub(crate) fn refuse_capture(&self, call: &'static str) -> Result<()> {
        if capture::id(self)?.is_some() {
            Err(Error::Capturing { call })
        } else {
            Ok(())
        }
    }

    /// A buffer of `len` elements with unspecified contents. Memory that was freed before on this
    /// device is reused, which makes it cheap.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::TooLarge`], [`Error::Alignment`] for types aligned to more
    /// than 256 bytes, [`Error::Capturing`].
    pub fn alloc<T: Pod>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::new(self, len)
    }

    /// A buffer of `len` elements, all bytes zero.
    ///
    /// # Errors
    ///
    /// As [`Stream::alloc`].
    pub fn alloc_zeroed<T: Pod>(&self, len: usize) -> Result<Buffer<T>> {
        let mut buffer = self.alloc(len)?;
        self.fill_bytes(buffer.slice_mut(), 0)?;
        Ok(buffer)
    }

    /// A buffer with a copy of `data`, which may be reused when this returns.
    ///
    /// # Errors
    ///
    /// As [`Stream::alloc`] and [`Stream::upload`].
    pub fn from_slice<T: Pod>(&self, data: &[T]) -> Result<Buffer<T>> {
        let mut buffer = self.alloc(data.len())?;
        self.upload(buffer.slice_mut(), data)?;
        Ok(buffer)
    }

    /// Copies `src` to the device. When this returns, the copy and all work before it are done.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] when the lengths differ, [`Error::Capturing`]; the driver's errors.
    pub fn upload<T: Pod>(&self, dst: SliceMut<'_, T>, src: &[T]) -> Result<()> {
        self.refuse_capture("Stream::upload")?;
        // SAFETY: the copy is waited for, below, while `src` is borrowed. (For memory that is not
        // pinned most drivers would have staged it by now, but not all must, and `src` may
        // well be pinned.)
        unsafe { self.upload_pinned(dst, src)? };
        self.synchronize()
    }

    /// Copies from the device to `dst`. When this returns, the copy and all work before it are
    /// done.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] when the lengths differ, [`Error::Capturing`]; the driver's errors, those
    /// of the work before among them. After an error the contents of `dst` are unspecified.
    pub fn download<T: Pod>(&self, src: Slice<'_, T>, dst: &mut [T]) -> Result<()> {
        self.refuse_capture("Stream::download")?;
        // SAFETY: the copy is waited for, below, while `dst` is borrowed; should waiting fail, the
        // context is dead and nothing copies.
        unsafe { self.download_pinned(src, dst)? };
        self.synchronize()
    }

    /// A copy of `src` on the host; waits as [`Stream::download`] does.
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

    /// Copies `src`, all or a part of a [`Pinned`](crate::Pinned), to the device. Asynchronous, and
    /// may be captured.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] when the lengths differ; the driver's errors.
    ///
    /// # Safety
    ///
    /// `src` must stay where it is, unchanged, until the stream is past this copy; when it is
    /// captured, until the graph is dropped and its last run is done.
    pub unsafe fn upload_pinned<T: Pod>(&self, dst: SliceMut<'_, T>, src: &[T]) -> Result<()> {
        same_len("elements to upload", dst.len(), src.len())?;
        if dst.bytes() == 0 {
            return Ok(());
        }
        self.device().bind()?;
        // SAFETY: both sides have that many bytes; the caller keeps the source, the slice's borrow
        // or its maker's promise the destination.
        unsafe {
            driver::cuMemcpyHtoDAsync_v2(dst.ptr(), src.as_ptr().cast(), dst.bytes(), self.raw())
        }
    }

    /// Copies from the device to `dst`, all or a part of a [`Pinned`](crate::Pinned). Asynchronous,
    /// and may be captured.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] when the lengths differ; the driver's errors.
    ///
    /// # Safety
    ///
    /// `dst` must stay where it is, and must not be read or written, until the stream is past this
    /// copy; when it is captured, until the graph is dropped and its last run is done, except
    /// while no run is queued.
    pub unsafe fn download_pinned<T: Pod>(&self, src: Slice<'_, T>, dst: &mut [T]) -> Result<()> {
        same_len("elements to download", src.len(), dst.len())?;
        if src.bytes() == 0 {
            return Ok(());
        }
        self.device().bind()?;
        // SAFETY: both sides have that many bytes; the caller keeps the destination, and any bytes
        // are a value of a `Pod` type.
        unsafe {
            driver::cuMemcpyDtoHAsync_v2(
                dst.as_mut_ptr().cast(),
                src.ptr(),
                src.bytes(),
                self.raw(),
            )
        }
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
        self.device().bind()?;
        // SAFETY: both sides have that many bytes of device memory, which buffers free only after
        // this copy or on their own stream.
        unsafe { driver::cuMemcpyDtoDAsync_v2(dst.ptr(), src.ptr(), dst.bytes(), self.raw()) }
    }

    /// Sets every byte.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn fill_bytes<T: Pod>(&self, dst: SliceMut<'_, T>, byte: u8) -> Result<()> {
        if dst.bytes() == 0 {
            return Ok(());
        }
        self.device().bind()?;
        // SAFETY: that many bytes of device memory; any bytes are a value of a `Pod` type.
        unsafe { driver::cuMemsetD8Async(dst.ptr(), byte, dst.bytes(), self.raw()) }
    }

    /// Sets every element.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn fill_u32(&self, dst: SliceMut<'_, u32>, value: u32) -> Result<()> {
        if dst.is_empty() {
            return Ok(());
        }
        self.device().bind()?;
        // SAFETY: that many aligned words of device memory.
        unsafe { driver::cuMemsetD32Async(dst.ptr(), value, dst.len(), self.raw()) }
    }

    /// Waits until all work given to the stream is done.
    ///
    /// # Errors
    ///
    /// [`Error::Capturing`]; the driver's errors, those of the work among them.
    pub fn synchronize(&self) -> Result<()> {
        self.refuse_capture("Stream::synchronize")?;
        self.device().bind()?;
        // SAFETY: a live stream.
        unsafe { driver::cuStreamSynchronize(self.raw()) }
    }

    /// True when all work given to the stream is done.
    ///
    /// # Errors
    ///
    /// As [`Stream::synchronize`].
    pub fn is_idle(&self) -> Result<bool> {
        self.refuse_capture("Stream::is_idle")?;
        self.device().bind()?;
        // SAFETY: a live stream.
        event::ready(unsafe { driver::cuStreamQuery(self.raw()) })
    }

    /// Collects the work that `f` gives to the stream into a graph, instead of running it.
    ///
    /// `f` may launch kernels, copy, fill, copy from and to pinned memory, record and wait for
    /// events (a stream that waits for an event of this one joins the capture, and must be
    /// waited for before `f` ends). What must run now, such as an allocation,
    /// [`Stream::upload`] or [`Stream::synchronize`], fails with [`Error::Capturing`] and does not
    /// disturb the capture. A buffer dropped in `f` lives as long as the graph. If `f` fails or
    /// panics nothing is kept and the stream is usable as before.
    ///
    /// # Errors
    ///
    /// The first error of `f`; [`Error::Capturing`] inside another capture; the driver's errors.
    ///
    /// ```
    /// # fn f(stream: &gpu::Stream) -> gpu::Result<()> {
    /// let mut counter = stream.alloc_zeroed::<u32>(1)?;
    /// let graph = stream.capture(|stream| stream.fill_u32(counter.slice_mut(), 7))?;
    /// graph.launch(stream)?;
    /// assert_eq!(stream.to_vec(counter.slice())?, [7]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn capture(&self, f: impl FnOnce(&Stream) -> Result<()>) -> Result<Graph> {
        Graph::capture(self, f)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("device", &self.device().info().ordinal)
            .field("handle", &self.raw())
            .finish()
    }
}
