//! Streams: memory and copies in the order of their work.

use core::{fmt, iter, mem, ptr};
use std::sync::{Arc, PoisonError, RwLock};

use bytemuck::Pod;

use crate::driver::{self, CUstream};
use crate::memory::{Memory, Owner};
use crate::slice::same_len;
use crate::{Buffer, Device, Error, Event, Graph, Kernel, Result, Slice, SliceMut};
use crate::{capture, event};

/// A queue of work for a device, run in order, apart from that of other streams (it does not wait
/// for the legacy default stream either). Clones are the same stream. Any thread may use it; what
/// two threads give it at the same time runs in either order. While it is being captured only the
/// thread that captures may.
///
/// Unless its documentation says otherwise a call returns once the work is queued, and an error of
/// the work itself shows in a later call.
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

struct Inner {
    handle: Handle,
    /// Held, by any number of threads, from the look whether the stream is being captured until
    /// the work is given and, where the call lends memory to it, done. Held alone where a capture
    /// begins, ends, or is joined. No thread holds that of two streams.
    capture: RwLock<()>,
}

/// The driver's stream.
pub(crate) struct Handle {
    device: Device,
    raw: CUstream,
}
// SAFETY: the driver lets any thread use a stream.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // A stream of a capture must live until that ends.
        if let Ok(Some(id)) = capture::id(&self.device, self.raw) {
            let moved = Handle {
                device: self.device.clone(),
                raw: mem::replace(&mut self.raw, ptr::null_mut()),
            };
            match capture::keep(id, |kept| &mut kept.streams, moved) {
                None => return,
                Some(mut back) => mem::swap(self, &mut back),
            }
        }
        if !self.raw.is_null() && self.device.bind().is_ok() {
            // A drop can tell nobody; a device that has failed says so at the next call.
            // SAFETY: not used again. The driver lets the work already queued end.
            let _ = unsafe { driver::cuStreamDestroy_v2(self.raw) };
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
            handle: Handle {
                device: device.clone(),
                raw: handle,
            },
            capture: RwLock::default(),
        })))
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.0.handle.device
    }

    pub(crate) fn raw(&self) -> CUstream {
        self.0.handle.raw
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

    /// The capture that it is part of.
    pub(crate) fn capture_id(&self) -> Result<Option<u64>> {
        capture::id(self.device(), self.raw())
    }

    /// Fails, leaving the capture as it is, when the stream is being captured: the driver would
    /// break the capture off.
    pub(crate) fn refuse_capture(&self, call: &'static str) -> Result<()> {
        match self.capture_id()? {
            Some(_) => Err(Error::Capturing { call }),
            None => Ok(()),
        }
    }

    /// Runs `f`, which begins, ends or joins a capture, while no other thread gives work to the
    /// stream. `f` calls none of what follows.
    pub(crate) fn alone<R>(&self, f: impl FnOnce() -> R) -> R {
        let lock = &self.0.capture;
        let _alone = lock.write().unwrap_or_else(PoisonError::into_inner);
        f()
    }

    /// Runs `f`, which gives the stream what cannot be captured or waits for it, with the context
    /// current, while no capture can begin. `f` calls none of this and what follows.
    pub(crate) fn now<R>(&self, call: &'static str, f: impl FnOnce() -> Result<R>) -> Result<R> {
        let lock = &self.0.capture;
        let _no_capture_begins = lock.read().unwrap_or_else(PoisonError::into_inner);
        self.refuse_capture(call)?;
        self.device().bind()?;
        f()
    }

    /// Runs `f`, which gives the stream work with a kernel and memory, with the context current:
    /// work that runs now, or becomes part of the graph of this thread's capture, which then keeps
    /// the kernel and the memory. True when it was captured.
    pub(crate) fn give<'a>(
        &self,
        kernel: Option<&Kernel>,
        owners: impl Iterator<Item = Owner<'a>> + Clone,
        f: impl FnOnce() -> Result<()>,
    ) -> Result<bool> {
        owners.clone().try_for_each(|owner| owner.enter(self))?;
        {
            let lock = &self.0.capture;
            let _no_capture_begins = lock.read().unwrap_or_else(PoisonError::into_inner);
            let capture = self.own_capture()?;
            self.device().bind()?;
            f()?;
            if let Some(id) = capture {
                capture::with(id, |kept| kept.work(kernel, owners));
                return Ok(true);
            }
        }
        owners.for_each(|owner| owner.leave(self));
        Ok(false)
    }

    /// The capture that it is part of. Fails unless this thread captures: work of another is not
    /// meant for the graph.
    pub(crate) fn own_capture(&self) -> Result<Option<u64>> {
        match self.capture_id()? {
            Some(id) if !capture::of_this_thread(id) => Err(Error::Capturing {
                call: "work of a thread that does not capture",
            }),
            capture => Ok(capture),
        }
    }

    /// Has work given from now on run after that given to `other` so far.
    pub(crate) fn after(&self, other: &Stream) -> Result<()> {
        const CALL: &str = "the first or last use of a buffer by another stream";
        let event = Event::new(other.device())?;
        // SAFETY: live events and streams.
        other.now(CALL, || unsafe {
            driver::cuEventRecord(event.raw(), other.raw())
        })?;
        // SAFETY: as above.
        self.now(CALL, || unsafe {
            driver::cuStreamWaitEvent(self.raw(), event.raw(), 0)
        })
    }

    /// Waits for all work, with the lock held and the context current. Memory lent to the work may
    /// be given back then.
    fn finish(&self) -> Result<()> {
        // SAFETY: a live stream. An error may be of earlier work, with the wait left undone: the
        // second wait is undone only if the context is dead, and then nothing copies.
        unsafe {
            driver::cuStreamSynchronize(self.raw()).inspect_err(|_| {
                let _: Result<()> = driver::cuStreamSynchronize(self.raw());
            })
        }
    }

    /// Runs `f`, which gives the stream work that uses `memory` by address only, as a kernel does
    /// with addresses in its arguments: the memory is freed after that work, or after the graph
    /// that it becomes part of. Slices that are arguments themselves need no such care.
    ///
    /// # Errors
    ///
    /// Those of `f`; [`Error::OtherDevice`], [`Error::Capturing`] while another thread captures
    /// the stream; the driver's errors.
    pub fn using<R, E: From<Error>>(
        &self,
        memory: &[Memory],
        f: impl FnOnce() -> core::result::Result<R, E>,
    ) -> core::result::Result<R, E> {
        let owners = memory.iter().map(Memory::owner);
        let captured = self.give(None, owners.clone(), || Ok(()))?;
        let outcome = f();
        if !captured {
            owners.for_each(|owner| owner.leave(self));
        }
        outcome
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
        same_len("elements to upload", dst.len(), src.len())?;
        self.lend(dst.bytes(), dst.owner, "Stream::upload", || {
            // SAFETY: both sides have that many bytes; the copy is waited for while `src` is
            // borrowed, the slice's borrow or its maker's promise keeps the destination.
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

    /// Copies from the device to `dst`. When this returns, the copy and all work before it are
    /// done.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] when the lengths differ, [`Error::Capturing`]; the driver's errors, those
    /// of the work before among them. After an error the contents of `dst` are unspecified.
    pub fn download<T: Pod>(&self, src: Slice<'_, T>, dst: &mut [T]) -> Result<()> {
        same_len("elements to download", src.len(), dst.len())?;
        self.lend(src.bytes(), src.owner, "Stream::download", || {
            // SAFETY: both sides have that many bytes; the copy is waited for while `dst` is
            // borrowed, and any bytes are a value of a `Pod` type.
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

    /// Runs `copy`, of so many bytes between host memory that is borrowed and memory of `owner`,
    /// and waits for it, whether it fails or not: one step, in which no capture begins.
    fn lend(
        &self,
        bytes: usize,
        owner: Owner<'_>,
        call: &'static str,
        copy: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if bytes == 0 {
            return self.now(call, || self.finish());
        }
        owner.enter(self)?;
        self.now(call, || {
            let copied = copy();
            let done = self.finish();
            copied.and(done)
        })
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
        // SAFETY: both sides have that many bytes; the caller keeps the source, `give` or the
        // promise of the slice's maker the destination.
        self.give(None, iter::once(dst.owner), || unsafe {
            driver::cuMemcpyHtoDAsync_v2(dst.ptr(), src.as_ptr().cast(), dst.bytes(), self.raw())
        })?;
        Ok(())
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
        // SAFETY: both sides have that many bytes; the caller keeps the destination, and any bytes
        // are a value of a `Pod` type.
        self.give(None, iter::once(src.owner), || unsafe {
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
        // SAFETY: both sides have that many bytes of device memory, which buffers free only after
        // this copy.
        self.give(None, owners.iter().copied(), || unsafe {
            driver::cuMemcpyDtoDAsync_v2(dst.ptr(), src.ptr(), dst.bytes(), self.raw())
        })?;
        Ok(())
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
        // SAFETY: that many bytes of device memory, which a buffer frees only after this fill; any
        // bytes are a value of a `Pod` type.
        self.give(None, iter::once(dst.owner), || unsafe {
            driver::cuMemsetD8Async(dst.ptr(), byte, dst.bytes(), self.raw())
        })?;
        Ok(())
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
        // SAFETY: that many aligned words of device memory, which a buffer frees only after this
        // fill.
        self.give(None, iter::once(dst.owner), || unsafe {
            driver::cuMemsetD32Async(dst.ptr(), value, dst.len(), self.raw())
        })?;
        Ok(())
    }

    /// Waits until all work given to the stream is done.
    ///
    /// # Errors
    ///
    /// [`Error::Capturing`]; the driver's errors, those of the work among them.
    pub fn synchronize(&self) -> Result<()> {
        self.now("Stream::synchronize", || self.finish())
    }

    /// True when all work given to the stream is done.
    ///
    /// # Errors
    ///
    /// As [`Stream::synchronize`].
    pub fn is_idle(&self) -> Result<bool> {
        self.now("Stream::is_idle", || {
            // SAFETY: a live stream.
            event::ready(unsafe { driver::cuStreamQuery(self.raw()) })
        })
    }

    /// Collects the work that `f` gives to the stream into a graph, instead of running it.
    ///
    /// `f` may launch kernels, copy, fill, copy from and to pinned memory, record and wait for
    /// events (a stream that waits for an event of this one joins the capture, and must be
    /// waited for before `f` ends). What must run now, such as an allocation,
    /// [`Stream::upload`] or [`Stream::synchronize`], fails with [`Error::Capturing`] and does not
    /// disturb the capture; so does all work that another thread gives to the stream meanwhile.
    /// This call waits for the calls of other threads that are at work on the stream. If `f` fails
    /// or panics nothing is kept and the stream is usable as before.
    ///
    /// The graph keeps alive the kernels and buffers that its work uses, and the buffers that are
    /// dropped in `f`: see [`Graph`].
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
