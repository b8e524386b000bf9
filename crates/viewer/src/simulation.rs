//! The simulation in a thread of its own, so that the window stays quick whatever a step takes: commands go in by a channel,
//! the newest frame comes out, and none waits for the other.

use super::snapshot::{Snapshot, Watch};
use super::sorting::SortLimit;
use super::timeline::Record;
use radsweep::{BroadPhase, Config};
use radsweep_scenes::{Kind, Landscape, Options, Scene};
use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What is simulated, and how pairs are found.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The scene.
    pub kind: Kind,
    /// Its bodies, seed and density.
    pub options: Options,
    /// How the broad phase works.
    pub config: Config,
}

/// What can be asked of the simulation. All are taken between two frames.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Command {
    Play(bool),
    /// One frame.
    Step,
    /// Back to the beginning.
    Reset,
    /// Frames a second to aim at.
    Rate(f64),
    Settings(Box<Settings>),
    Watch(Watch),
}

/// How the simulation is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum State {
    /// What it is busy with before the first frame.
    Starting(&'static str),
    Running,
    /// What went wrong, once; the last good frame stays, with these settings.
    Failed(String, Box<Settings>),
}

/// What goes from the thread to the window.
struct Outbox {
    newest: Option<Box<Snapshot>>,
    /// A frame that was looked at, to be filled again.
    spare: Option<Box<Snapshot>>,
    records: VecDeque<Record>,
    state: State,
}

/// What came out since the last look.
pub(super) struct Update {
    /// The newest frame; the one seen before where there is none since.
    pub snapshot: Option<Box<Snapshot>>,
    pub records: VecDeque<Record>,
    pub state: State,
}

/// The thread, from outside. It ends when this is dropped.
pub(super) struct Simulation {
    commands: Option<Sender<Command>>,
    outbox: Arc<Mutex<Outbox>>,
    thread: Option<JoinHandle<()>>,
}

/// Records that wait while nobody looks: a minute and more.
const MOST_RECORDS: usize = 4096;
/// How long a step that is under way may go on when the window closes.
const PATIENCE: Duration = Duration::from_secs(2);

impl Simulation {
    /// Starts, at 60 frames a second if it plays. `wake` is called from the thread whenever there is something new.
    ///
    /// # Errors
    ///
    /// Where no thread can be started.
    pub fn start(
        settings: Settings,
        playing: bool,
        watch: Watch,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let (commands, inbox) = mpsc::channel();
        let outbox = Arc::new(Mutex::new(Outbox {
            newest: None,
            spare: None,
            records: VecDeque::new(),
            state: State::Starting("starting"),
        }));
        let shared = Arc::clone(&outbox);
        let work = move || {
            let mut worker = Worker {
                settings,
                scene: None,
                broad_phase: None,
                limit: SortLimit::default(),
                landscape: None,
                scenes: 0,
                frame: 0,
                shown: 0,
                playing,
                period: Duration::from_secs(1) / 60,
                watch,
                outbox: &shared,
                wake: &wake,
            };
            worker.run(&inbox);
        };
        let thread = thread::Builder::new().name("simulation".into());
        Ok(Self {
            commands: Some(commands),
            outbox,
            thread: Some(thread.spawn(work)?),
        })
    }

    /// Asks for something; what a thread that has ended does not hear does not matter any more.
    pub fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            let _ = commands.send(command);
        }
    }

    /// What is new; `seen` is the frame that is shown, which a newer one takes the place of.
    pub fn take(&self, seen: Option<Box<Snapshot>>) -> Update {
        let mut outbox = lock(&self.outbox);
        let state = outbox.state.clone();
        if matches!(state, State::Failed(..)) {
            outbox.state = State::Running;
        }
        let records = std::mem::take(&mut outbox.records);
        let snapshot = match outbox.newest.take() {
            Some(newest) => {
                outbox.spare = seen.or(outbox.spare.take());
                Some(newest)
            }
            None => seen,
        };
        Update {
            snapshot,
            records,
            state,
        }
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.commands = None;
        let asked = Instant::now();
        let Some(thread) = self.thread.take() else {
            return;
        };
        while !thread.is_finished() {
            if asked.elapsed() > PATIENCE {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        // A panic of the thread has been printed by then.
        let _ = thread.join();
    }
}

fn lock(outbox: &Mutex<Outbox>) -> MutexGuard<'_, Outbox> {
    // Nothing is left half done under the lock.
    outbox.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Worker<'a> {
    settings: Settings,
    scene: Option<Scene>,
    broad_phase: Option<BroadPhase>,
    limit: SortLimit,
    landscape: Option<Arc<Landscape>>,
    /// Scenes built, and frames since the last of them was.
    scenes: u64,
    frame: u64,
    /// Frames handed over.
    shown: u64,
    playing: bool,
    period: Duration,
    watch: Watch,
    outbox: &'a Mutex<Outbox>,
    wake: &'a dyn Fn(),
}

impl Worker<'_> {
    fn run(&mut self, inbox: &Receiver<Command>) {
        self.rebuild(self.settings.clone(), true, true);
        let mut due = Instant::now();
        loop {
            let command = if self.playing && self.scene.is_some() {
                match inbox.recv_timeout(due.saturating_duration_since(Instant::now())) {
                    Ok(command) => command,
                    Err(RecvTimeoutError::Timeout) => {
                        // A step that takes longer than its time delays those after it; none is caught up.
                        due = Instant::now().max(due) + self.period;
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
            let mut show = self.obey(command);
            while let Ok(command) = inbox.try_recv() {
                show |= self.obey(command);
            }
            if show {
                self.show();
            }
        }
    }

    /// Whether the last frame has to be shown again.
    fn obey(&mut self, command: Command) -> bool {
        match command {
            Command::Play(playing) => self.playing = playing,
            Command::Rate(rate) => {
                self.period = Duration::try_from_secs_f64(1.0 / rate).unwrap_or_default();
            }
            Command::Step => self.step(),
            Command::Reset => self.rebuild(self.settings.clone(), true, false),
            Command::Settings(new) => {
                let old = &self.settings;
                let scene = (new.kind, &new.options) != (old.kind, &old.options);
                let broad_phase = new.config != old.config;
                self.rebuild(*new, scene, broad_phase);
            }
            Command::Watch(watch) => {
                self.watch = watch;
                return true;
            }
        }
        false
    }

    /// Makes anew what has changed; where that fails, all stays as it was.
    fn rebuild(&mut self, settings: Settings, scene: bool, broad_phase: bool) {
        if let Err(message) = self.try_rebuild(settings, scene, broad_phase) {
            self.fail(message);
        }
    }

    fn try_rebuild(
        &mut self,
        settings: Settings,
        scene: bool,
        broad_phase: bool,
    ) -> Result<(), String> {
        let first = self.scene.is_none();
        let say = |what| {
            if first {
                lock(self.outbox).state = State::Starting(what);
                (self.wake)();
            }
        };
        let broad_phase = (broad_phase || first).then(|| {
            say("loading the broad phase");
            BroadPhase::new(settings.config.clone()).map_err(|error| error.to_string())
        });
        let broad_phase = broad_phase.transpose()?;
        // A scene on a device belongs to a broad phase on that device.
        let runs_on = |broad_phase: &BroadPhase| broad_phase.report().backend;
        let kept = self.broad_phase.as_ref();
        let moved = broad_phase.as_ref().map(runs_on) != kept.map(runs_on);
        let moved = broad_phase.is_some() && moved;
        let on = broad_phase.as_ref().or(kept);
        let scene = on.filter(|_| scene || first || moved).map(|on| {
            say("building the scene");
            Scene::new_on(settings.kind, &settings.options, on).map_err(|error| error.to_string())
        });
        let scene = scene.transpose()?;
        say("finding the first pairs");
        self.settings = settings;
        if let Some(broad_phase) = broad_phase {
            self.limit = SortLimit::new(&self.settings.config, &broad_phase);
            self.broad_phase = Some(broad_phase);
        }
        if let Some(scene) = scene {
            self.broad_phase.as_mut().map(BroadPhase::clear);
            self.landscape = scene.landscape().cloned().map(Arc::new);
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
        match scene.step(broad_phase) {
            Ok(step) => {
                self.frame += 1;
                let record = Record::new(self.frame, step, self.limit);
                let mut outbox = lock(self.outbox);
                if outbox.records.len() == MOST_RECORDS {
                    outbox.records.pop_front();
                }
                outbox.records.push_back(record);
                drop(outbox);
                self.show();
            }
            Err(error) => {
                self.playing = false;
                self.fail(format!("frame {}: {error}", self.frame + 1));
            }
        }
    }

    /// Hands over the last frame.
    fn show(&mut self) {
        let (Some(scene), Some(broad_phase)) = (&self.scene, &mut self.broad_phase) else {
            return;
        };
        let mut snapshot = lock(self.outbox).spare.take().unwrap_or_default();
        if let Err(error) = snapshot.take(scene, broad_phase, self.watch) {
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
        // One that nobody looked at is used again.
        if let Some(missed) = outbox.newest.replace(snapshot) {
            outbox.spare = Some(missed);
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

#[cfg(test)]
mod tests {
    use super::*;
    use radsweep::{Backend, Strategy};

    fn settings(bodies: usize) -> Settings {
        Settings {
            kind: Kind::Uniform,
            options: Options {
                bodies: Some(bodies),
                ..Options::default()
            },
            config: Config {
                backend: Backend::Cpu,
                ..Config::default()
            },
        }
    }

    /// A simulation of 100 boxes, and a way to wait for what it says.
    struct Seen {
        simulation: Simulation,
        woken: Receiver<()>,
        snapshot: Option<Box<Snapshot>>,
        records: Vec<Record>,
        failure: Option<String>,
    }

    impl Seen {
        fn start(playing: bool) -> Self {
            let (wake, woken) = mpsc::channel();
            let wake = move || wake.send(()).unwrap_or_default();
            Self {
                simulation: Simulation::start(settings(100), playing, Watch::default(), wake)
                    .expect("a thread"),
                woken,
                snapshot: None,
                records: Vec::new(),
                failure: None,
            }
        }

        #[track_caller]
        fn wait(&mut self, done: impl Fn(&Self) -> bool) {
            while !done(self) {
                let woken = self.woken.recv_timeout(Duration::from_secs(60));
                woken.expect("the simulation says something");
                let update = self.simulation.take(self.snapshot.take());
                self.snapshot = update.snapshot;
                self.records.extend(update.records);
                if let State::Failed(message, _) = update.state {
                    self.failure = Some(message);
                }
            }
        }

        fn frame(&self) -> (u64, u64) {
            let seen = self.snapshot.as_ref();
            seen.map_or((0, 0), |snapshot| (snapshot.scene, snapshot.frame))
        }
    }

    #[test]
    fn it_plays_pauses_steps_and_starts_again() {
        let mut seen = Seen::start(true);
        seen.wait(|seen| seen.records.len() >= 5);
        seen.simulation.send(Command::Play(false));
        seen.simulation.send(Command::Reset);
        seen.wait(|seen| seen.frame() == (2, 1));
        seen.simulation.send(Command::Step);
        seen.wait(|seen| seen.frame() == (2, 2));
        let frames: Vec<u64> = seen.records.iter().map(|record| record.frame).collect();
        let reset = frames.len() - 2;
        assert_eq!(frames[reset..], [1, 2], "nothing ran while it was paused");
        let counted: Vec<u64> = (1..=reset as u64).collect();
        assert_eq!(frames[..reset], counted, "no record is lost");
    }

    #[test]
    fn the_same_seed_is_the_same_again() {
        let mut seen = Seen::start(false);
        seen.wait(|seen| seen.frame() == (1, 1));
        let first = seen
            .snapshot
            .as_ref()
            .expect("a frame")
            .picture
            .boxes
            .clone();
        seen.simulation.send(Command::Reset);
        seen.wait(|seen| seen.frame() == (2, 1));
        assert_eq!(
            seen.snapshot.as_ref().expect("a frame").picture.boxes,
            first
        );
    }

    #[test]
    fn settings_change_what_they_name_and_nothing_else() {
        let mut seen = Seen::start(false);
        seen.wait(|seen| seen.frame() == (1, 1));
        let mut swept = settings(100);
        swept.config.strategy = Strategy::Sweep;
        seen.simulation
            .send(Command::Settings(Box::new(swept.clone())));
        seen.simulation.send(Command::Step);
        seen.wait(|seen| seen.frame() == (1, 2));
        let last = seen.records.last().expect("a record");
        assert_eq!(last.report.strategy, Strategy::Sweep);
        swept.options.bodies = Some(50);
        seen.simulation.send(Command::Settings(Box::new(swept)));
        seen.wait(|seen| seen.frame() == (2, 1));
        let last = seen.records.last().expect("a record");
        assert_eq!((last.report.n, last.report.strategy), (50, Strategy::Sweep));
        assert_eq!(
            (last.report.started, last.report.ended),
            (last.report.pairs, 0)
        );
    }

    #[test]
    fn what_cannot_be_is_said_and_changes_nothing() {
        let mut seen = Seen::start(false);
        seen.wait(|seen| seen.frame() == (1, 1));
        seen.simulation
            .send(Command::Settings(Box::new(settings(0))));
        seen.wait(|seen| seen.failure.is_some());
        let message = seen.failure.clone().unwrap_or_default();
        assert!(message.contains("0 bodies"), "{message}");
        seen.simulation.send(Command::Step);
        seen.wait(|seen| seen.frame() == (1, 2));
        assert_eq!(seen.records.last().expect("a record").report.n, 100);
    }

    #[test]
    fn what_is_watched_comes_without_a_step() {
        let mut seen = Seen::start(false);
        seen.wait(|seen| seen.frame() == (1, 1));
        let watch = Watch {
            body: Some(7),
            ..Watch::default()
        };
        seen.simulation.send(Command::Watch(watch));
        let picked = |seen: &Seen| {
            seen.snapshot
                .as_ref()
                .and_then(|s| Some(s.picked.as_ref()?.body))
        };
        seen.wait(|seen| picked(seen) == Some(7));
        assert_eq!(seen.frame(), (1, 1));
        assert_eq!(seen.records.len(), 1);
    }
}
