//! The counters of an update: what the kernels count, and the host's one read of it.

use crate::Result;
use crate::cuda::abi::{Clear, State, counter};
use crate::cuda::launch::{WARP, module};
use crate::cuda::tuning::MAX_SPIN;
use bytemuck::{Pod, Zeroable};
use gpu::{Buffer, DevicePtr, Kernel, Launch, Pinned, Slice, SliceMut, Stream, args};
use gpusort::cuda::SortOutcome;
use std::mem::{self, offset_of};
use std::sync::atomic::{Ordering, fence};
use std::time::Instant;
use std::{hint, ptr};

const _: () = assert!(size_of::<State>().is_multiple_of(Clear::UNIT));

/// What the device sends to the host.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Sent {
    state: State,
    /// The number of the read that waits for them.
    number: u64,
}

/// The counters on the device, and memory to read them into.
pub(crate) struct Counters {
    send: Kernel,
    state: Buffer<State>,
    /// Those of the next update, which the kernels of this one set to zero, and whether they have.
    /// None where the address must stay.
    next: Option<Buffer<State>>,
    next_is_zero: bool,
    /// None where the system has refused it.
    sent: Option<Pinned<Sent>>,
    /// The number of the last read.
    number: u64,
    /// Whether what a search starts from is as it was when all were set to zero, or counted for it.
    is_fresh: bool,
}

impl Counters {
    pub(crate) fn new(stream: &Stream) -> Result<Self> {
        Ok(Self {
            send: module(stream.device())?.kernel("sap_send_counters")?,
            state: stream.alloc_zeroed(1)?,
            next: None,
            next_is_zero: false,
            // A device that has failed reports it at the next call too.
            sent: Pinned::new(stream.device(), 1).ok(),
            number: 0,
            is_fresh: false,
        })
    }

    /// Returns counters that an update sets to zero for the next one.
    pub(crate) fn alternating(stream: &Stream) -> Result<Self> {
        Ok(Self {
            next: Some(stream.alloc(1)?),
            ..Self::new(stream)?
        })
    }

    /// Returns their address.
    pub(crate) fn ptr(&self) -> DevicePtr<State> {
        self.state.slice().device_ptr()
    }

    /// Sets all to zero. The address may change.
    pub(crate) fn reset(&mut self, stream: &Stream) -> Result<()> {
        match &mut self.next {
            Some(next) if mem::take(&mut self.next_is_zero) => mem::swap(&mut self.state, next),
            _ => self.clear(stream, size_of::<State>())?,
        }
        self.is_fresh = true;
        Ok(())
    }

    /// Has the counters stay at one address, for a graph.
    pub(crate) fn stay(&mut self) {
        (self.next, self.next_is_zero) = (None, false);
    }

    /// Returns what is to be zero for the next update: the memory that this one does not count in.
    pub(crate) fn clear_ahead(&self) -> Clear {
        let clear = |next: &Buffer<State>| Clear {
            units: next.slice().device_ptr().cast(),
            len: (size_of::<State>() / Clear::UNIT) as u64,
        };
        self.next.as_ref().map_or(Clear::NOTHING, clear)
    }

    /// Notes that a kernel clears what `clear_ahead` has returned.
    pub(crate) const fn record_cleared(&mut self) {
        self.next_is_zero = self.next.is_some();
    }

    /// Sets those to zero that a sweep along an axis starts from. Its tests were counted before,
    /// with the work list.
    pub(crate) fn restart_sweep(&mut self, stream: &Stream) -> Result<()> {
        self.restart(stream, offset_of!(State, tests))
    }

    /// Sets those to zero that a search of cells or of the tree starts from, its tests included.
    pub(crate) fn restart_search(&mut self, stream: &Stream) -> Result<()> {
        self.restart(stream, offset_of!(State, invalid))
    }

    /// Notes that kernels count other than in a search: those of the neighbour list.
    pub(crate) const fn record_use(&mut self) {
        self.is_fresh = false;
    }

    /// Sets the first bytes to zero, unless they are.
    fn restart(&mut self, stream: &Stream, bytes: usize) -> Result<()> {
        if mem::take(&mut self.is_fresh) {
            return Ok(());
        }
        self.clear(stream, bytes)
    }

    fn clear(&mut self, stream: &Stream, bytes: usize) -> Result<()> {
        let first = self.state.slice_mut().cast::<u8>()?.range(..bytes)?;
        Ok(stream.fill_bytes(first, 0)?)
    }

    /// Returns the count of pairs found.
    pub(crate) fn pairs(&self) -> Result<Slice<'_, u64>> {
        Ok(self.state.slice().cast::<u64>()?.range(..1)?)
    }

    /// Returns the addresses of the counts of pairs started and ended.
    pub(crate) fn event_counts(&self) -> [DevicePtr<u64>; 2] {
        let state = self.ptr();
        [counter!(state, started), counter!(state, ended)]
    }

    /// Returns the memory for the outcome of a sort, by its index in [`State::sorts`].
    pub(crate) fn sort_outcome(&mut self, sort: usize) -> Result<SliceMut<'_, SortOutcome>> {
        let bytes = size_of::<SortOutcome>();
        let start = offset_of!(State, sorts) + sort * bytes;
        let state = self.state.slice_mut().cast::<u8>()?;
        Ok(state.range(start..start + bytes)?.cast()?)
    }

    /// Waits for the work so far and reads all.
    pub(crate) fn read(&mut self, stream: &Stream) -> Result<State> {
        let counters = self.ptr();
        let Some(sent) = &mut self.sent else {
            let copied = stream.to_vec(self.state.slice())?;
            return Ok(copied.first().copied().unwrap_or(State::zeroed()));
        };
        self.number += 1;
        let words = (size_of::<State>() / size_of::<u64>()) as u32;
        // Devices and the host have one address space.
        let to: DevicePtr<Sent> = DevicePtr::NULL.byte_add(sent.as_mut_ptr() as u64);
        let number = self.number;
        let arguments = args![counters, words, to, number];
        // SAFETY: there is memory for the counters and the number. It is read, and freed by
        // `Engine::drop`, only after waiting for the kernel.
        unsafe { stream.launch(&self.send, &Launch::linear(1, WARP), &arguments)? };
        wait(stream, &raw const sent[0].number, number)?;
        // SAFETY: the memory is live, and the kernel has written it.
        Ok(unsafe { ptr::read_volatile(&raw const sent[0].state) })
    }
}

/// Waits until the device has written `number`. The driver's wait ends some microseconds later than
/// a look at the memory, so that comes first.
fn wait(stream: &Stream, at: *const u64, number: u64) -> Result<()> {
    // Drivers that collect launches give them to the device when they are asked.
    if stream.is_idle()? {
        return Ok(());
    }
    let start = Instant::now();
    while start.elapsed() < MAX_SPIN {
        // SAFETY: the caller's memory is live; the device writes a word as a whole.
        if unsafe { ptr::read_volatile(at) } == number {
            fence(Ordering::Acquire);
            return Ok(());
        }
        hint::spin_loop();
    }
    Ok(stream.synchronize()?)
}
