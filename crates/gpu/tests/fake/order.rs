//! The order of work on streams, by vector clocks: each stream's clock counts its work, and events
//! carry clocks from stream to stream. Memory that is used before its allocation, or freed before
//! the end of its use, aborts the process.

use std::collections::HashMap;
use std::sync::Mutex;

/// For each stream, how much of its work is known to be done.
type Clock = HashMap<u64, u64>;

#[derive(Default)]
struct State {
    streams: HashMap<u64, Clock>,
    events: HashMap<u64, Clock>,
    /// The work that the host has waited for.
    done: Clock,
    /// The stream that allocated each piece of memory, and the count of its work then.
    made: HashMap<u64, (u64, u64)>,
        /// The last work of each stream that used each piece of memory.
    uses: HashMap<u64, Clock>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

fn state<R>(f: impl FnOnce(&mut State) -> R) -> R {
    f(STATE.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert_default())
}

fn merge(into: &mut Clock, from: &Clock) {
    for (&stream, &count) in from {
        let known = into.entry(stream).or_default();
        *known = count.max(*known);
    }
}

impl State {
    /// Counts one more piece of work on the stream, and returns the count.
    fn tick(&mut self, stream: u64) -> u64 {
        let count = self.streams.entry(stream).or_default().entry(stream).or_default();
        *count += 1;
        *count
    }

    fn past(&self, stream: u64, (other, count): (u64, u64)) -> bool {
        let known = |clock: &Clock| clock.get(&other).is_some_and(|&known| known >= count);
        count == 0 || known(&self.done) || self.streams.get(&stream).is_some_and(known)
    }
}

/// Records memory that was allocated in the order of a stream. Memory of no stream (0) is usable at
/// once.
pub fn made(stream: u64, memory: u64) {
    state(|state| {
        let count = if stream == 0 { 0 } else { state.tick(stream) };
        state.made.insert(memory, (stream, count));
    });
}

/// Records work that uses memory.
pub fn used(stream: u64, memory: &[u64]) {
    state(|state| {
        let count = state.tick(stream);
        for memory in memory {
            assert!(state.past(stream, state.made[memory]), "used by a stream that does not know of its allocation");
            state.uses.entry(*memory).or_default().insert(stream, count);
        }
    });
}

/// Records memory that was freed in the order of a stream, or at once (0).
pub fn freed(stream: u64, memory: u64) {
    state(|state| {
        let uses = state.uses.remove(&memory).unwrap_or_default();
        for work in uses {
            assert!(work.0 == stream || state.past(stream, work), "freed while another stream may use it");
        }
    });
}

pub fn recorded(event: u64, stream: u64) {
    state(|state| {
        let clock = state.streams.entry(stream).or_default().clone();
        state.events.insert(event, clock);
    });
}

pub fn waited(stream: u64, event: u64) {
    state(|state| {
        let clock = state.events.get(&event).cloned().unwrap_or_default();
        merge(state.streams.entry(stream).or_default(), &clock);
    });
}

/// Records that the host waited for these streams.
pub fn done(streams: &[u64]) {
    state(|state| {
        for stream in streams {
            let clock = state.streams.entry(*stream).or_default().clone();
            merge(&mut state.done, &clock);
        }
    });
}
