//! The engine of a rank for its homes, which may be at work while the rank does something else.

use super::frame::DeviceFrame;
use super::search::search;
use crate::Cause;
use crate::report::Tested;
use gpu::Stream;
use rayon::{Scope, ThreadPool, ThreadPoolBuilder};
use sap::BroadPhase;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;

/// An engine, and the tests of its last search.
type Done<'a> = (&'a mut BroadPhase, Result<Tested, Cause>);

/// An engine that may be at work on another thread.
pub(super) enum Engine<'a> {
    Idle(&'a mut BroadPhase),
    AtWork(Receiver<Done<'a>>),
}

/// Starts the thread on which an engine works, which sleeps between updates. To start a thread in
/// each update took 50 us, and at times 2 ms (four H200s, 2026-11-28).
pub(super) fn thread_of_engine() -> Result<ThreadPool, Cause> {
    let threads = ThreadPoolBuilder::new().num_threads(1);
    threads.build().map_err(|error| Cause::Engine {
        detail: format!("no thread for the engine: {error}"),
    })
}

impl<'a> Engine<'a> {
    /// Begins to search the boxes of a frame, after what `stream` has to do now, unless the engine
    /// is at work already.
    pub(super) fn start<'scope>(
        self,
        scope: &Scope<'scope>,
        stream: &Stream,
        frame: DeviceFrame<'a>,
    ) -> Self
    where
        'a: 'scope,
    {
        let Self::Idle(engine) = self else {
            return self;
        };
        // What this rank does meanwhile is not waited for.
        let (ready, stream) = (stream.record(), stream.clone());
        let (done, result) = sync_channel(1);
        scope.spawn(move |_| {
            let found = ready.map_err(Cause::from);
            let found = found.and_then(|ready| search(engine, (&ready, &stream), frame.engine()));
            // After an error the rank does not wait for it.
            let _ = done.send((engine, found));
        });
        Self::AtWork(result)
    }

    /// Waits for the end of a search.
    pub(super) fn join(self) -> Result<Done<'a>, Cause> {
        let result = match self {
            Self::Idle(engine) => return Ok((engine, Ok(Tested::default()))),
            Self::AtWork(result) => result,
        };
        // The end of a search is so near, as a rule, that a sleeping thread would wake up too late.
        loop {
            match result.try_recv() {
                Ok(done) => return Ok(done),
                Err(TryRecvError::Empty) => thread::yield_now(),
                // The scope panics in the end, as the search did.
                Err(TryRecvError::Disconnected) => {
                    let detail = "it panicked".to_owned();
                    return Err(Cause::Engine { detail });
                }
            }
        }
    }
}
