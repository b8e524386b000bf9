//! Device memory: who keeps it, and when it is freed.

use core::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Error, Result, Stream, capture};

/// Device memory, the stream that it is freed on, and those that must be done with it before.
///
/// All work that uses it is given between [`Allocation::enter`] and [`Allocation::leave`], which
/// order it after the allocation and before the free; or it is part of a graph, which keeps the
/// allocation and does the same where it is launched.
#[derive(Debug)]
pub(crate) struct Allocation {
    ptr: u64,
    stream: Stream,
    /// Other streams that used it. Their work so far has not been waited for by `stream`.
    others: Mutex<Vec<Stream>>,
}

/// Other streams that an allocation tells apart; then its own stream waits for all of them, so that
/// it does not keep any number of them alive.
const MAX_OTHERS: usize = 8;

impl Allocation {
    /// `bytes` of memory, usable by work given to the stream from now on. No bytes need none.
    pub fn new(stream: &Stream, bytes: usize) -> Result<Arc<Allocation>> {
        let ptr = stream.now("an allocation", || match bytes {
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

    /// Orders work that `stream` is given next after the allocation. For work that is captured the
    /// graph does so.
    pub fn enter(&self, stream: &Stream) -> Result<()> {
        if stream.same(&self.stream) {
            return Ok(());
        }
        stream.check_device("the buffer", self.stream.device())?;
        if self.ptr == 0
            || self.others().iter().any(|other| other.same(stream))
            || stream.own_capture()?.is_some()
        {
            return Ok(());
        }
        stream.after(&self.stream)?;
        self.leave(stream);
        Ok(())
    }

    /// Orders the free after the work that `stream` was given up to now.
    pub fn leave(&self, stream: &Stream) {
        if self.ptr == 0 || stream.same(&self.stream) {
            return;
        }
        let mut others = self.others();
        if others.iter().any(|other| other.same(stream)) {
            return;
        }
        if others.len() >= MAX_OTHERS {
            others.retain(|other| self.stream.after(other).is_err());
        }
        others.push(stream.clone());
    }

    /// Frees it after all work that used it. Refused while one of the streams is being captured;
    /// any other error means that the context is gone, or that the memory stays allocated.
    fn free(&mut self) -> Result<()> {
        let others = self
            .others
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        while let Some(other) = others.last() {
            self.stream.after(other)?;
            others.pop();
        }
        let device = self.stream.device();
        self.stream.now("a free", || {
            // SAFETY: allocated by this device, and freed only here, after all work that uses it.
            unsafe { device.free(self.stream.raw(), self.ptr) }
        })
    }

    /// A capture that one of its streams is part of.
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
            // The graph may use it, and a free cannot be part of the graph: the graph keeps it.
            // Without a capture the one in the way has just ended.
            if let Ok(Some(id)) = self.capture() {
                let moved = Allocation {
                    ptr: mem::take(&mut self.ptr),
                    stream: self.stream.clone(),
                    others: mem::take(&mut self.others),
                };
                if let Some(mut back) = capture::keep(id, |kept| &mut kept.dropped, moved) {
                    mem::swap(self, &mut back);
                }
            }
        }
    }
}

/// What a slice knows of its memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner<'a> {
    Buffer(&'a Arc<Allocation>),
    /// The maker of the slice promised for it.
    Promised,
    /// There is no memory: the slice was only measured.
    Nobody,
}

impl Owner<'_> {
    pub fn enter(self, stream: &Stream) -> Result<()> {
        match self {
            Owner::Buffer(allocation) => allocation.enter(stream),
            Owner::Promised => Ok(()),
            Owner::Nobody => Err(Error::Measured),
        }
    }

    pub fn leave(self, stream: &Stream) {
        if let Owner::Buffer(allocation) = self {
            allocation.leave(stream);
        }
    }
}

/// A share in the memory of a slice: it is freed after the last of them is dropped. Made by
/// [`Slice::memory`](crate::Slice::memory), for [`Stream::using`].
#[derive(Clone, Debug)]
pub struct Memory(Option<Arc<Allocation>>);

impl Memory {
    pub(crate) fn of(owner: Owner<'_>) -> Result<Memory> {
        match owner {
            Owner::Buffer(allocation) => Ok(Memory(Some(Arc::clone(allocation)))),
            Owner::Promised => Ok(Memory(None)),
            Owner::Nobody => Err(Error::Measured),
        }
    }

    pub(crate) fn owner(&self) -> Owner<'_> {
        self.0.as_ref().map_or(Owner::Promised, Owner::Buffer)
    }
}
