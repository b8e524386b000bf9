//! The loop of the simulation's thread.

use super::mailbox::{Command, Outbox, Settings, State, lock};
use crate::live::Home;
use crate::resting::Resting;
use crate::snapshot::Watch;
use crate::sorting::SortLimit;
use crate::timeline::Record;
use radsweep::BroadPhase;
use radsweep_common::numbers::grouped;
use radsweep_scenes::{Landscape, Scene};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Max records that wait for the window: more than a minute.
const MAX_RECORDS: usize = 4096;
/// The simulation, on its thread.
pub struct Worker<'a> {
    pub settings: Settings,
    pub home: Home,
    pub scene: Option<Scene>,
    pub broad_phase: Option<BroadPhase>,
    pub resting: Resting,
    pub limit: SortLimit,
    pub landscape: Option<Arc<Landscape>>,
    /// Number of scenes built.
    pub scenes: u64,
    /// Frames since the scene was built.
    pub frame: u64,
    /// Frames published.
    pub shown: u64,
    pub playing: bool,
    /// Steps since a frame was shown, and their max number.
    pub ahead: u32,
    pub max_ahead: u32,
    pub period: Duration,
    pub watch: Watch,
    pub outbox: &'a Mutex<Outbox>,
    pub wake: &'a dyn Fn(),
}

/// What a rebuild makes anew.
#[derive(Clone, Copy)]
struct Changed {
    scene: bool,
    broad_phase: bool,
}

impl Worker<'_> {
    /// Runs until the window closes the channel.
    pub fn run(&mut self, inbox: &Receiver<Command>) {
        let all = Changed {
            scene: true,
            broad_phase: true,
        };
        self.rebuild(self.settings.clone(), all);
        let mut due = Instant::now();
        loop {
            let plays = self.playing && self.ahead < self.max_ahead;
            let command = if plays && self.scene.is_some() {
                match inbox.recv_timeout(due.saturating_duration_since(Instant::now())) {
                    Ok(command) => command,
                    Err(RecvTimeoutError::Timeout) => {
                        // A step that takes longer than its period delays those after it.
                        due = Instant::now().max(due) + self.period;
                        self.ahead += 1;
                        self.step();
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            } else {
                match inbox.recv() {
                    Ok(command) => command,
                    Err(_) => return,
                }
            };
            let mut publish = self.handle(command);
            while let Ok(command) = inbox.try_recv() {
                publish |= self.handle(command);
            }
            if publish {
                self.publish();
            }
        }
    }

    /// Handles a command. Returns whether the last frame must be published again.
    fn handle(&mut self, command: Command) -> bool {
        match command {
            Command::Play(playing) => self.playing = playing,
            Command::Rate(rate) => {
                // At a rate without a period, such as 0, frames follow one another at once.
                self.period = Duration::try_from_secs_f64(1.0 / rate).unwrap_or_default();
            }
            Command::Ahead(steps) => self.max_ahead = steps,
            Command::Shown => self.ahead = 0,
            Command::Step => self.step(),
            Command::Reset => {
                let changed = Changed {
                    scene: true,
                    broad_phase: false,
                };
                self.rebuild(self.settings.clone(), changed);
            }
            Command::Settings(new) => {
                let old = &self.settings;
                let changed = Changed {
                    scene: (new.kind, &new.options) != (old.kind, &old.options),
                    broad_phase: new.config != old.config,
                };
                self.rebuild(*new, changed);
            }
            Command::Watch(watch) => {
                self.watch = watch;
                return true;
            }
            Command::Act(action) => {
                let acted = self.scene.as_mut().map(|scene| scene.act(&action));
                if let Some(Err(refusal)) = acted {
                    self.fail(refusal.to_string());
                }
                // New bodies appear at once.
                return !self.playing;
            }
        }
        false
    }

    /// Rebuilds what has changed; on failure everything stays unchanged.
    fn rebuild(&mut self, settings: Settings, changed: Changed) {
        if let Err(message) = self.try_rebuild(settings, changed) {
            self.fail(message);
        }
    }

    fn try_rebuild(&mut self, settings: Settings, changed: Changed) -> Result<(), String> {
        let first = self.scene.is_none();
        let say = |what| {
            lock(self.outbox).state = State::Starting(what);
            (self.wake)();
        };
        let broad_phase = (changed.broad_phase || first).then(|| {
            if first {
                say("loading the broad phase".into());
            }
            self.home
                .broad_phase(&settings.config)
                .map_err(|error| error.to_string())
        });
        let broad_phase = broad_phase.transpose()?;
        // A scene on a device belongs to a broad phase on that device.
        let runs_on = |broad_phase: &BroadPhase| broad_phase.report().stats.backend;
        let old = self.broad_phase.as_ref();
        let moved = broad_phase.as_ref().map(runs_on) != old.map(runs_on);
        let moved = broad_phase.is_some() && moved;
        let on = broad_phase.as_ref().or(old);
        let scene = on.filter(|_| changed.scene || first || moved).map(|on| {
            // A large scene takes many seconds, in which the last one stays.
            let default = settings.kind.default_bodies();
            let bodies = grouped(settings.options.bodies.unwrap_or(default) as u64);
            say(format!("building {bodies} bodies"));
            let scene = self.home.scene(settings.kind, &settings.options, on);
            scene.map_err(|error| error.to_string())
        });
        let scene = scene.transpose()?;
        if scene.is_some() {
            say("finding the first pairs".into());
        }
        self.settings = settings;
        if let Some(broad_phase) = broad_phase {
            self.limit = SortLimit::new(&self.settings.config, &broad_phase);
            self.broad_phase = Some(broad_phase);
        }
        if let Some(scene) = scene {
            self.broad_phase.as_mut().map(BroadPhase::clear);
            self.landscape = scene.landscape().cloned().map(Arc::new);
            self.resting = Resting::default();
            self.scene = Some(scene);
            self.scenes += 1;
            self.frame = 0;
            self.step();
        }
        Ok(())
    }

    fn step(&mut self) {
        let (Some(scene), Some(broad_phase)) = (&mut self.scene, &mut self.broad_phase) else {
            return;
        };
        let step = scene.step(broad_phase).and_then(|step| {
            self.resting.update(scene, &self.settings.config)?;
            Ok(step)
        });
        match step {
            Ok(step) => {
                self.frame += 1;
                let resting = self.resting.pairs().len() as u64;
                let record = Record::new(self.frame, step, self.limit, resting);
                let mut outbox = lock(self.outbox);
                if outbox.records.len() == MAX_RECORDS {
                    outbox.records.pop_front();
                }
                outbox.records.push_back(record);
                drop(outbox);
                self.publish();
            }
            Err(error) => {
                self.playing = false;
                self.fail(format!("frame {}: {error}", self.frame + 1));
            }
        }
    }

    /// Publishes the last frame.
    fn publish(&mut self) {
        let (Some(scene), Some(broad_phase)) = (&self.scene, &mut self.broad_phase) else {
            return;
        };
        let mut snapshot = lock(self.outbox).spare.take().unwrap_or_default();
        let resting = self.resting.pairs();
        let taken = self
            .home
            .take(&mut snapshot, scene, broad_phase, resting, self.watch);
        if let Err(error) = taken {
            self.playing = false;
            return self.fail(format!("frame {}: {error}", self.frame));
        }
        self.shown += 1;
        snapshot.serial = self.shown;
        snapshot.scene = self.scenes;
        snapshot.world = Some((self.settings.kind, self.settings.options.bodies));
        snapshot.frame = self.frame;
        snapshot.landscape.clone_from(&self.landscape);
        let mut outbox = lock(self.outbox);
        if let Some(missed) = outbox.newest.replace(snapshot) {
            outbox.keep(missed);
        }
        if matches!(outbox.state, State::Starting(_)) {
            outbox.state = State::Running;
        }
        drop(outbox);
        (self.wake)();
    }

    fn fail(&self, message: String) {
        let settings = Box::new(self.settings.clone());
        lock(self.outbox).state = State::Failed(message, settings);
        (self.wake)();
    }
}
