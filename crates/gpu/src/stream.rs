//! Streams: queues of allocations, copies, fills and launches.

use core::{fmt, iter, mem, ptr};
use std::sync::{Arc, PoisonError, RwLock};

use bytemuck::Pod;

use crate::driver::{self, CUstream};
use crate::memory::{Memory, Owner};
use crate::slice::same_len;
use crate::{Buffer, Device, Error, Event, Graph, Kernel, Result, Slice, SliceMut};
use crate::{capture, event};

/// A queue of work for a device, which runs in order and independently of other streams, the legacy
/// default stream included. Clones are handles of the same stream. Any thread may use it; work that
/// two threads queue at the same time runs in either order. While the stream is being captured,
/// only the capturing thread may use it.
///
/// Unless its documentation says otherwise, a call returns as soon as the work is queued, and a
/// later call returns the errors of that work.
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

struct Inner {
    handle: Handle,
    /// Locked for reading, by any number of threads, from the check whether the stream is being
    /// captured until the work is queued, or done if the call lends host memory to it. Locked for
    /// writing while a capture begins, ends, or is joined. No thread locks those of two streams.
    capture: RwLock<()>,
}

/// The driver's handle of a stream.
pub(crate) struct Handle {
    device: Device,
    raw: CUstream,
}
// SAFETY: the driver lets any thread use a stream.
unsafe impl Send for Handle {}
// SAFETY: the driver lets any number of threads use a stream at once.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // A stream that is part of a capture must live until the capture ends.
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
            // A drop cannot return an error; if the device has failed, the next call returns it.
            // SAFETY: the stream is not used again, and the driver lets its queued work end.
            let _ = unsafe { driver::cuStreamDestroy_v2(self.raw) };
        }
    }
}

impl Stream {
    /// Makes a stream.
    ///
    /// # Errors
    ///
    /// The driver's errors.
    pub fn new(device: &Device) -> Result<Stream> {
        /// `CU_STREAM_NON_BLOCKING`.
        const NON_BLOCKING: u32 = 1;
        device.bind()?;
        let mut handle = ptr::null_mut();
        // SAFETY: the out pointer is valid.
        unsafe { driver::cuStreamCreate(&mut handle, NON_BLOCKING)? };
        Ok(Stream(Arc::new(Inner {
            handle: Handle {
                device: device.clone(),
                raw: handle,
            },
            capture: RwLock::default(),
        })))
    }

    /// Returns the device of the stream.
    pub fn device(&self) -> &Device {
        &self.0.handle.device
    }

    pub(crate) fn raw(&self) -> CUstream {
        self.0.handle.raw
    }

    /// Returns whether both are handles of one stream.
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

    /// Returns the id of the capture that the stream is part of.
    pub(crate) fn capture_id(&self) -> Result<Option<u64>> {
        capture::id(self.device(), self.raw())
    }

    /// Fails if the stream is being captured. The capture continues, while the driver's own refusal
    /// would invalidate it.
    pub(crate) fn refuse_capture(&self, call: &'static str) -> Result<()> {
        match self.capture_id()? {
            Some(_) => Err(Error::Capturing { call }),
            None => Ok(()),
        }
    }

    /// Runs `f`, which begins, ends or joins a capture, while no other thread queues work on the
    /// stream. `f` must not call this method or the two that follow.
    pub(crate) fn exclusive<R>(&self, f: impl FnOnce() -> R) -> R {
        let lock = &self.0.capture;
        let _alone = lock.write().unwrap_or_else(PoisonError::into_inner);
        f()
    }

    /// Runs `f`, which waits for the stream or queues what cannot be captured, with the context
    /// current. No capture can begin meanwhile. `f` must not call this method or the next.
    pub(crate) fn immediate<R>(
        &self,
        call: &'static str,
        f: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let lock = &self.0.capture;
        let _no_capture_begins = lock.read().unwrap_or_else(PoisonError::into_inner);
        self.refuse_capture(call)?;
        self.device().bind()?;
        f()
    }

    /// Runs `f`, which queues work that uses `kernel` and the memory of `owners`, with the context
    /// current. If this thread captures the stream, the work becomes part of the graph, which then
    /// keeps the kernel and the memory. Returns whether the work was captured.
    pub(crate) fn submit<'a>(
        &self,
        kernel: Option<&Kernel>,
        owners: impl Iterator<Item = Owner<'a>> + Clone,
        f: impl FnOnce() -> Result<()>,
    ) -> Result<bool> {
        owners.clone().try_for_each(|owner| owner.begin_use(self))?;
        {
            let lock = &self.0.capture;
            let _no_capture_begins = lock.read().unwrap_or_else(PoisonError::into_inner);
            let capture = self.this_threads_capture()?;
            self.device().bind()?;
            f()?;
            if let Some(id) = capture {
                capture::with(id, |kept| kept.work(kernel, owners));
                return Ok(true);
            }
        }
        owners.for_each(|owner| owner.end_use(self));
        Ok(false)
    }

    /// Returns the id of the capture that the stream is part of. Fails if another thread captures
    /// it, because this thread's work is not meant for that graph.
    pub(crate) fn this_threads_capture(&self) -> Result<Option<u64>> {
        match self.capture_id()? {
            Some(id) if !capture::of_this_thread(id) => Err(Error::Capturing {
                call: "work of another thread than the capturing one",
            }),
            capture => Ok(capture),
        }
    }

    /// Orders work queued from now on after the work queued on `other` so far.
    pub(crate) fn run_after(&self, other: &Stream) -> Result<()> {
        const CALL: &str = "the first or last use of a buffer by another stream";
        let event = Event::new(other.device())?;
        // SAFETY: event and stream are live.
        other.immediate(CALL, || unsafe {
            driver::cuEventRecord(event.raw(), other.raw())
        })?;
        // SAFETY: event and stream are live.
        self.immediate(CALL, || unsafe {
            driver::cuStreamWaitEvent(self.raw(), event.raw(), 0)
        })
    }

    /// Waits for all work; the caller has locked `capture` and made the context current. Afterwards
    /// no work uses host memory that was lent to it.
    fn finish(&self) -> Result<()> {
        // SAFETY: the stream is live. The first wait may return early with an error of earlier
        // work. A second wait returns early only if the context is dead, and then nothing copies
        // any more.
        unsafe {
            driver::cuStreamSynchronize(self.raw()).inspect_err(|_| {
                let _: Result<()> = driver::cuStreamSynchronize(self.raw());
            })
        }
    }

    /// Runs `f`, which queues work that knows `memory` by address only, such as a kernel with
    /// addresses inside a struct. The memory is freed after that work, or after the graph that the
    /// work becomes part of. Slices that are arguments themselves need no such call.
    ///
    /// # Errors
    ///
    /// The errors of `f`; [`Error::OtherDevice`]; [`Error::Capturing`] while another thread
    /// captures the stream; the driver's errors.
    pub fn using<R, E: From<Error>>(
        &self,
        memory: &[Memory],
        f: impl FnOnce() -> core::result::Result<R, E>,
    ) -> core::result::Result<R, E> {
        let owners = memory.iter().map(Memory::owner);
        let captured = self.submit(None, owners.clone(), || Ok(()))?;
        let outcome = f();
        if !captured {
            owners.for_each(|owner| owner.end_use(self));
        }
        outcome
    }

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

    /// Waits until all work queued on the stream is done.
    ///
    /// # Errors
    ///
    /// [`Error::Capturing`]; the driver's errors, including those of the work.
    pub fn synchronize(&self) -> Result<()> {
        self.immediate("Stream::synchronize", || self.finish())
    }

    /// Returns whether all work queued on the stream is done.
    ///
    /// # Errors
    ///
    /// As [`Stream::synchronize`].
    pub fn is_idle(&self) -> Result<bool> {
        self.immediate("Stream::is_idle", || {
            // SAFETY: the stream is live.
            event::ready(unsafe { driver::cuStreamQuery(self.raw()) })
        })
    }

    /// Captures the work that `f` queues on the stream into a graph, instead of running it.
    ///
    /// `f` may launch kernels, fill, copy within the device and from and to pinned memory, and
    /// record and wait for events. A stream that waits for an event of this stream joins the
    /// capture; this stream must wait for it in turn before `f` ends.
    ///
    /// Calls that cannot be captured, such as an allocation, [`Stream::upload`] or
    /// [`Stream::synchronize`], fail with [`Error::Capturing`], and the capture continues. The same
    /// holds for all work that another thread queues on the stream meanwhile. This call first waits
    /// for calls of other threads that are using the stream. If `f` fails or panics, nothing is
    /// captured, and the stream is usable again.
    ///
    /// The graph keeps alive the kernels and buffers that its work uses, and the buffers that are
    /// dropped in `f` ([`Graph`]).
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
