//! The engine of a rank for its homes, which may be at work while the rank does something else.

use super::frame::DeviceFrame;
use super::search::search;
use crate::Cause;
use crate::report::Tested;
use gpu::Stream;
use sap::BroadPhase;
use std::io;
use std::panic;
use std::thread::{self, Builder, Scope, ScopedJoinHandle};

/// An engine, and the tests of its last search.
type Done<'a> = (&'a mut BroadPhase, Result<Tested, Cause>);

/// An engine that may be at work on a thread of its own.
pub(super) enum Engine<'scope, 'a> {
    Idle(&'a mut BroadPhase),
    AtWork(io::Result<ScopedJoinHandle<'scope, Done<'a>>>),
}

impl<'scope, 'a: 'scope> Engine<'scope, 'a> {
    /// Begins to search the boxes of a frame, after what `stream` has to do now, unless the engine
    /// is at work already.
    pub(super) fn start(
        self,
        scope: &'scope Scope<'scope, '_>,
        stream: &Stream,
        frame: DeviceFrame<'a>,
    ) -> Self {
        let Self::Idle(engine) = self else {
            return self;
        };
        // What this rank does meanwhile is not waited for.
        let (ready, stream) = (stream.record(), stream.clone());
        let find = move || {
            let found = ready.map_err(Cause::from);
            let found = found.and_then(|ready| search(engine, (&ready, &stream), frame.engine()));
            (engine, found)
        };
        Self::AtWork(Builder::new().spawn_scoped(scope, find))
    }

    /// Waits for the end of a search.
    pub(super) fn join(self) -> Result<Done<'a>, Cause> {
        let thread = match self {
            Self::Idle(engine) => return Ok((engine, Ok(Tested::default()))),
            Self::AtWork(thread) => thread.map_err(|error| Cause::Engine {
                detail: format!("no thread for the engine: {error}"),
            })?,
        };
        // The end of a search is so near, as a rule, that a sleeping thread would wake up too late.
        while !thread.is_finished() {
            thread::yield_now();
        }
        thread
            .join()
            .map_err(|payload| panic::resume_unwind(payload))
    }
}
