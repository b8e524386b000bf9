//! Runs the simulation on a thread of its own, so that slow steps do not slow down the window.
//!
//! Commands go in through a channel, the newest frame comes out, and neither side waits for the
//! other.

mod mailbox;
mod past;
mod worker;

use crate::live::Home;
use crate::resting::Resting;
use crate::snapshot::{Snapshot, Watch};
use crate::sorting::SortLimit;
use crate::timeline::Record;
pub use mailbox::Settings;
pub(super) use mailbox::{Command, State};
use mailbox::{Outbox, lock};
use past::Past;
use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use worker::Worker;

/// The news since the last call of [`Simulation::take`].
pub(super) struct Update {
    /// The newest frame; without a new one, the frame passed in.
    pub snapshot: Option<Box<Snapshot>>,
    pub records: VecDeque<Record>,
    pub state: State,
}

/// The handle of the thread, which ends when the handle is dropped.
pub(super) struct Simulation {
    commands: Option<Sender<Command>>,
    outbox: Arc<Mutex<Outbox>>,
    thread: Option<JoinHandle<()>>,
}

/// Max time to wait for the current step when the window closes.
const MAX_WAIT: Duration = Duration::from_secs(2);

impl Simulation {
    /// Default max number of steps for each frame that is shown: the simulation keeps its speed
    /// where pictures take up to four times as long as a frame.
    pub const STEPS: u32 = 4;

    /// Starts a simulation, at 60 frames per second if it plays, with a max number of steps for
    /// each frame that is shown. The thread calls `wake` whenever there is something new.
    ///
    /// # Errors
    ///
    /// The thread could not be started.
    pub fn start(
        settings: Settings,
        home: Home,
        playing: bool,
        watch: Watch,
        steps: u32,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let (commands, inbox) = mpsc::channel();
        let outbox = Arc::new(Mutex::new(Outbox {
            newest: None,
            past: Past::default(),
            spare: None,
            records: VecDeque::new(),
            state: State::Starting("starting".into()),
        }));
        let shared = Arc::clone(&outbox);
        let work = move || {
            let mut worker = Worker {
                settings,
                home,
                scene: None,
                broad_phase: None,
                resting: Resting::default(),
                limit: SortLimit::default(),
                landscape: None,
                scenes: 0,
                frame: 0,
                shown: 0,
                playing,
                ahead: 0,
                max_ahead: steps,
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

    /// Sends a command. It is lost if the thread has ended.
    pub fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // A thread that has ended takes no commands.
            let _ = commands.send(command);
        }
    }

    /// Returns the news. A newer frame replaces `seen`, the frame that is shown.
    pub fn take(&self, seen: Option<Box<Snapshot>>) -> Update {
        let mut outbox = lock(&self.outbox);
        let state = outbox.state.clone();
        if matches!(state, State::Failed(..)) {
            outbox.state = State::Running;
        }
        let records = std::mem::take(&mut outbox.records);
        let snapshot = match outbox.newest.take() {
            Some(newest) => {
                self.send(Command::Shown);
                if let Some(seen) = seen {
                    outbox.keep(seen);
                }
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

    /// Returns a past frame, given its scene and number, in exchange for the one that was shown.
    /// `None` if none is wanted, or if it is no longer there.
    pub fn recall(
        &self,
        shown: Option<Box<Snapshot>>,
        wanted: Option<(u64, u64)>,
    ) -> Option<Box<Snapshot>> {
        let own = shown.as_ref().map(|shown| (shown.scene, shown.frame));
        if own == wanted {
            return shown;
        }
        let mut outbox = lock(&self.outbox);
        if let Some(shown) = shown {
            outbox.keep(shown);
        }
        outbox.past.take(wanted?)
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
            if asked.elapsed() > MAX_WAIT {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        // A panic of the thread was printed already.
        let _ = thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radsweep::{Backend, Config, Strategy};
    use radsweep_scenes::{Action, Kind, Options};
    use std::sync::mpsc::Receiver;

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

    /// A simulation of 100 boxes, and all that it has published.
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
                simulation: Simulation::start(
                    settings(100),
                    Home::default(),
                    playing,
                    Watch::default(),
                    Simulation::STEPS,
                    wake,
                )
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
                woken.expect("the simulation has news");
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
    fn it_plays_pauses_steps_and_resets() {
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
    fn it_waits_for_pictures_and_commands_still_work() {
        let mut seen = Seen::start(true);
        seen.simulation.send(Command::Rate(1e6));
        seen.simulation.send(Command::Ahead(3));
        seen.wait(|seen| seen.records.len() >= 9);
        // Without pictures it stops; each step wakes the window once.
        let waits = Duration::from_millis(500);
        let woken = std::iter::from_fn(|| seen.woken.recv_timeout(waits).ok()).count();
        assert!(woken <= 3 + 4, "{woken} steps without a picture");
        let before = seen.records.len();
        seen.simulation.send(Command::Play(false));
        seen.simulation.send(Command::Step);
        seen.wait(|seen| seen.records.len() > before);
        seen.simulation.send(Command::Ahead(u32::MAX));
        seen.simulation.send(Command::Play(true));
        let free = (0..50).map_while(|_| seen.woken.recv_timeout(waits).ok());
        assert_eq!(free.count(), 50, "it runs without pictures");
    }

    #[test]
    fn past_frames_come_back_as_they_were_even_those_that_were_never_shown() {
        let mut seen = Seen::start(false);
        let mut boxes = Vec::new();
        for frame in 1..=5 {
            seen.wait(|seen| seen.frame() == (1, frame));
            let snapshot = seen.snapshot.as_ref().expect("a frame");
            boxes.push(snapshot.picture.boxes.clone());
            seen.simulation.send(Command::Step);
        }
        // Three steps, of which the window sees only the last.
        for _ in 0..2 {
            seen.simulation.send(Command::Step);
        }
        let later = Instant::now() + Duration::from_secs(60);
        while lock(&seen.simulation.outbox)
            .newest
            .as_ref()
            .map(|s| s.frame)
            != Some(8)
        {
            assert!(Instant::now() < later);
            thread::sleep(Duration::from_millis(1));
        }
        seen.wait(|seen| seen.frame() == (1, 8));
        let mut past = None;
        for frame in [1, 7, 3, 2, 3, 6] {
            past = seen.simulation.recall(past, Some((1, frame)));
            let found = past.as_ref().expect("it is kept");
            assert_eq!(found.frame, frame);
            if let Some(boxes) = boxes.get(frame as usize - 1) {
                assert_eq!(found.picture.boxes, *boxes, "frame {frame}");
            }
        }
        past = seen.simulation.recall(past, Some((1, 8)));
        assert!(past.is_none(), "the last is shown already");
        assert!(seen.simulation.recall(past, None).is_none());
        seen.simulation.send(Command::Reset);
        seen.wait(|seen| seen.frame() == (2, 1));
        assert!(seen.simulation.recall(None, Some((2, 3))).is_none());
    }

    #[test]
    fn actions_reach_the_scene_and_refusals_the_window() {
        let mut seen = Seen::start(false);
        seen.wait(|seen| seen.frame() == (1, 1));
        let bodies = |seen: &Seen| seen.snapshot.as_ref().map(|s| s.picture.boxes.len());
        seen.simulation
            .send(Command::Act(Action::Add { count: 20 }));
        seen.wait(|seen| bodies(seen) == Some(120));
        assert_eq!(seen.frame(), (1, 1), "shown without a step");
        seen.simulation.send(Command::Step);
        seen.wait(|seen| seen.frame() == (1, 2));
        let last = seen.records.last().expect("a record");
        assert_eq!(last.report.n, 120);
        let count = usize::MAX;
        seen.simulation.send(Command::Act(Action::Add { count }));
        seen.wait(|seen| seen.failure.is_some());
        let message = seen.failure.clone().unwrap_or_default();
        assert!(message.contains("cannot be added"), "{message}");
        seen.simulation.send(Command::Step);
        seen.wait(|seen| seen.frame() == (1, 3));
    }

    #[test]
    fn a_reset_repeats_the_scene() {
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
    fn a_large_scene_says_what_is_built_while_the_last_one_stays() {
        let mut seen = Seen::start(false);
        seen.wait(|seen| seen.frame() == (1, 1));
        let large = Box::new(settings(300_000));
        seen.simulation.send(Command::Settings(large));
        let later = Instant::now() + Duration::from_secs(60);
        let mut said = Vec::new();
        while seen.frame() != (2, 1) {
            assert!(Instant::now() < later);
            let update = seen.simulation.take(seen.snapshot.take());
            seen.snapshot = update.snapshot;
            assert!(seen.snapshot.is_some());
            if let State::Starting(what) = update.state {
                said.push(what);
            }
        }
        said.dedup();
        let expected = ["building 300,000 bodies", "finding the first pairs"];
        assert_eq!(said, expected);
        assert_eq!(seen.simulation.take(None).state, State::Running);
    }

    #[test]
    fn settings_change_only_what_differs() {
        let mut seen = Seen::start(false);
        seen.wait(|seen| seen.frame() == (1, 1));
        let mut swept = settings(100);
        swept.config.strategy = Strategy::Sweep;
        seen.simulation
            .send(Command::Settings(Box::new(swept.clone())));
        seen.simulation.send(Command::Step);
        seen.wait(|seen| seen.frame() == (1, 2));
        let last = seen.records.last().expect("a record");
        assert_eq!(last.report.stats.strategy, Strategy::Sweep);
        swept.options.bodies = Some(50);
        seen.simulation.send(Command::Settings(Box::new(swept)));
        seen.wait(|seen| seen.frame() == (2, 1));
        let last = seen.records.last().expect("a record");
        assert_eq!(
            (last.report.n, last.report.stats.strategy),
            (50, Strategy::Sweep)
        );
        assert_eq!(
            (last.report.started, last.report.ended),
            (last.report.pairs, 0)
        );
    }

    #[test]
    fn impossible_settings_are_an_error_and_change_nothing() {
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
    fn requested_details_arrive_without_a_step() {
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
