//! Device memory: its allocation, its owners, and when it is freed.

use core::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::capture::Resources;
use crate::driver::{self, CUdeviceptr, CUstream};
use crate::error::OUT_OF_MEMORY;
use crate::{Device, Error, Result, Stream, capture};

/// Device memory, the stream that frees it, and the other streams that must be done with it before.
///
/// All work that uses the memory is queued between [`Allocation::begin_use`] and
/// [`Allocation::end_use`], which order it after the allocation and before the free. Work that is
/// part of a graph needs neither: the graph keeps the allocation, and makes the two calls when it
/// is launched and dropped.
#[derive(Debug)]
pub(crate) struct Allocation {
    ptr: u64,
    stream: Stream,
    /// Other streams that used the memory, and whose work `stream` does not wait for yet.
    others: Mutex<Vec<Stream>>,
}

/// Max other streams that an allocation keeps alive. When there are more, its own stream waits for
/// all of them.
const MAX_OTHERS: usize = 8;

impl Allocation {
    /// Allocates `bytes` bytes, which work queued on the stream from now on may use. No memory is
    /// allocated for 0 bytes.
    pub fn new(stream: &Stream, bytes: usize) -> Result<Arc<Allocation>> {
        let ptr = stream.immediate("an allocation", || match bytes {
            0 => Ok(0),
            _ => stream.device().allocate(stream.raw(), bytes),
        })?;
        Ok(Arc::new(Allocation {
            ptr,
            stream: stream.clone(),
            others: Mutex::default(),
        }))
    }

    pub fn ptr(&self) -> u64 {
        self.ptr
    }

    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    fn others(&self) -> MutexGuard<'_, Vec<Stream>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Orders work that is queued on `stream` next after the allocation. For captured work, the
    /// graph does that.
    pub fn begin_use(&self, stream: &Stream) -> Result<()> {
        if stream.same(&self.stream) {
            return Ok(());
        }
        stream.check_device("the buffer", self.stream.device())?;
        if self.ptr == 0
            || self.others().iter().any(|other| other.same(stream))
            || stream.this_threads_capture()?.is_some()
        {
            return Ok(());
        }
        stream.run_after(&self.stream)?;
        self.end_use(stream);
        Ok(())
    }

    /// Orders the free after the work queued on `stream` so far.
    pub fn end_use(&self, stream: &Stream) {
        if self.ptr == 0 || stream.same(&self.stream) {
            return;
        }
        let mut others = self.others();
        if others.iter().any(|other| other.same(stream)) {
            return;
        }
        if others.len() >= MAX_OTHERS {
            others.retain(|other| self.stream.run_after(other).is_err());
        }
        others.push(stream.clone());
    }

    /// Frees the memory after all work that used it. Fails with [`Error::Capturing`] while one of
    /// the streams is being captured. After any other error the context is dead, or the memory
    /// stays allocated.
    fn free(&mut self) -> Result<()> {
        let others = self
            .others
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        while let Some(other) = others.last() {
            self.stream.run_after(other)?;
            others.pop();
        }
        let device = self.stream.device();
        self.stream.immediate("a free", || {
            // SAFETY: this device allocated the memory, and it is freed only here, after all work
            // that uses it.
            unsafe { device.free(self.stream.raw(), self.ptr) }
        })
    }

    /// Returns the id of a capture that one of the streams is part of.
    fn capture(&self) -> Result<Option<u64>> {
        for stream in [&self.stream].into_iter().chain(&*self.others()) {
            if let Some(id) = stream.capture_id()? {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        while self.ptr != 0 {
            let Err(Error::Capturing { .. }) = self.free() else {
                return;
            };
            // The graph may use the memory, and a free cannot be captured, so the graph keeps the
            // memory. If there is no capture any more, it has just ended, and the free is tried
            // again.
            if let Ok(Some(id)) = self.capture() {
                let moved = Allocation {
                    ptr: mem::take(&mut self.ptr),
                    stream: self.stream.clone(),
                    others: mem::take(&mut self.others),
                };
                if let Some(mut back) = capture::keep(id, moved) {
                    mem::swap(self, &mut back);
                }
            }
        }
    }
}

impl Device {
    /// Allocates `bytes` bytes of device memory. With pools, work queued on `stream` from now on
    /// may use it; other streams must be ordered after it.
    fn allocate(&self, stream: CUstream, bytes: usize) -> Result<CUdeviceptr> {
        self.bind()?;
        match self.allocate_once(stream, bytes) {
            Err(Error::Call {
                code: OUT_OF_MEMORY,
                ..
            }) => {}
            allocated => return allocated,
        }
        // Freed memory may still wait for its streams, or be kept in pieces that are too small.
        // Collect it and try again. Errors of this wait belong to earlier work, and the next call
        // on its stream returns them.
        // SAFETY: the call has no conditions.
        let _: Option<Result<()>> = capture::outside(|| unsafe { driver::cuCtxSynchronize() });
        let _: Result<()> = self.trim();
        self.allocate_once(stream, bytes)
            .map_err(|error| match error {
                Error::Call {
                    code: OUT_OF_MEMORY,
                    ..
                } => {
                    let (free, total) = self.memory().unwrap_or((0, self.info().memory_bytes));
                    Error::OutOfMemory {
                        requested: bytes as u64,
                        free,
                        total,
                    }
                }
                error => error,
            })
    }

    fn allocate_once(&self, stream: CUstream, bytes: usize) -> Result<CUdeviceptr> {
        let mut ptr = 0;
        match self.pool() {
            // SAFETY: pool and stream are live, and the out pointer is valid.
            Some(pool) => unsafe {
                driver::cuMemAllocFromPoolAsync(&mut ptr, bytes, pool, stream)?
            },
            // SAFETY: the out pointer is valid.
            None => unsafe { driver::cuMemAlloc_v2(&mut ptr, bytes)? },
        }
        Ok(ptr)
    }

    /// Frees memory of [`Device::allocate`], after the work queued on `stream` so far.
    ///
    /// # Safety
    ///
    /// `ptr` came from `allocate`. It is not freed again, and not used by work queued on the stream
    /// later or by work of other streams that this stream does not wait for.
    unsafe fn free(&self, stream: CUstream, ptr: CUdeviceptr) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller promises that no later work uses `ptr`. Without pools the free is not
        // in stream order, so the stream must be done first.
        unsafe {
            match self.pool() {
                Some(_) => driver::cuMemFreeAsync(ptr, stream),
                None => {
                    driver::cuStreamSynchronize(stream).and_then(|()| driver::cuMemFree_v2(ptr))
                }
            }
        }
    }
}

/// The owner of a slice's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner<'a> {
    /// A buffer, which keeps the memory.
    Buffer(&'a Arc<Allocation>),
    /// The caller of `from_raw`, who promised to keep the memory.
    Unchecked,
    /// Nobody: the slice is of `Layout::measure` and has no memory.
    Measured,
}

impl Owner<'_> {
    pub fn begin_use(self, stream: &Stream) -> Result<()> {
        match self {
            Owner::Buffer(allocation) => allocation.begin_use(stream),
            Owner::Unchecked => Ok(()),
            Owner::Measured => Err(Error::Measured),
        }
    }

    /// Makes the graph of a capture keep the memory.
    pub fn share(self, graph: &mut Resources) {
        if let Owner::Buffer(allocation) = self
            && allocation.ptr != 0
        {
            graph.share(allocation.ptr, allocation);
        }
    }

    pub fn end_use(self, stream: &Stream) {
        if let Owner::Buffer(allocation) = self {
            allocation.end_use(stream);
        }
    }
}

/// A share in the memory of a slice, made by [`Slice::memory`](crate::Slice::memory) for
/// [`Stream::using`]. The memory is freed after the last share is dropped.
#[derive(Clone, Debug)]
pub struct Memory(Option<Arc<Allocation>>);

impl Memory {
    pub(crate) fn of(owner: Owner<'_>) -> Result<Memory> {
        match owner {
            Owner::Buffer(allocation) => Ok(Memory(Some(Arc::clone(allocation)))),
            Owner::Unchecked => Ok(Memory(None)),
            Owner::Measured => Err(Error::Measured),
        }
    }

    pub(crate) fn owner(&self) -> Owner<'_> {
        self.0.as_ref().map_or(Owner::Unchecked, Owner::Buffer)
    }
}
