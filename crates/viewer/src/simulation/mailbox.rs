//! The messages between the window and the thread of the simulation.

use super::past::Past;
use crate::snapshot::{Snapshot, Watch};
use crate::timeline::Record;
use radsweep::Config;
use radsweep_scenes::{Action, Kind, Options};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The settings of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The scene.
    pub kind: Kind,
    /// Its bodies, seed and density.
    pub options: Options,
    /// The configuration of the broad phase.
    pub config: Config,
}

/// A command to the simulation, which handles it between two frames.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    Play(bool),
    /// Runs one frame.
    Step,
    /// Builds the scene again.
    Reset,
    /// Sets the frames per second.
    Rate(f64),
    /// Sets the max number of steps for each frame that is shown.
    Ahead(u32),
    /// The newest frame is being shown.
    Shown,
    Settings(Box<Settings>),
    Watch(Watch),
    /// Does something to the bodies.
    Act(Action),
}

/// The state of the simulation.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// The current step before the first frame of a scene.
    Starting(String),
    Running,
    /// An error, and the settings of the last good frame, which stays. Reported once.
    Failed(String, Box<Settings>),
}

/// What the thread has for the window.
pub struct Outbox {
    pub newest: Option<Box<Snapshot>>,
    /// The frames before it.
    pub past: Past,
    /// A frame for reuse.
    pub spare: Option<Box<Snapshot>>,
    pub records: VecDeque<Record>,
    pub state: State,
}

impl Outbox {
    /// Takes back a frame that is no longer shown, or never was.
    pub fn keep(&mut self, snapshot: Box<Snapshot>) {
        let unused = self.past.push(snapshot);
        self.spare = unused.or(self.spare.take());
    }
}

/// Locks the outbox.
pub fn lock(outbox: &Mutex<Outbox>) -> MutexGuard<'_, Outbox> {
    // A panic under the lock leaves nothing half done.
    outbox.lock().unwrap_or_else(PoisonError::into_inner)
}
