//! The state of the viewer, independent of any window or device.

use super::camera::{Camera, Ray};
use super::error::Error;
use super::lines::{Line, line};
use super::look::Look;
use super::pick::{self, Hit};
use super::rate::Rate;
use super::render::Gpu;
use super::simulation::{Command, Settings, Simulation, State, Update};
use super::snapshot::{Snapshot, Watch, World};
use super::timeline::{Record, Span, Timeline};
use egui::{Pos2, Rect, vec2};
use glam::{Quat, Vec2, Vec3};
use radsweep::sort::Algorithm;
use radsweep::{Backend, Config, Strategy};
use radsweep_scenes::{Mesh, chair_mesh};
use std::path::Path;
use std::time::{Duration, Instant};

/// A request of the viewer to the code that runs it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Request {
    Simulation(Command),
    SaveCsv,
    SavePicture,
    Quit,
}

/// A setting that a key changes to the next in its list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cycle {
    Strategy,
    Sort,
    Backend,
}

impl Cycle {
    fn step(self, config: &mut Config) {
        match self {
            Self::Strategy => config.strategy = next(Strategy::ALL, config.strategy),
            Self::Sort => config.sort = next(Algorithm::ALL, config.sort),
            Self::Backend => config.backend = next(Backend::ALL, config.backend),
        }
    }
}

/// The colour of the line from a held body to the pointer.
const SPRING: [f32; 4] = [0.10, 0.75, 0.25, 1.0];

/// Who moves the camera.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Aim {
    /// It jumps so that all bodies are in the picture, then follows them. With the serial number of
    /// the frame that it was fitted to: panels may still change their size in that frame.
    Fit(Option<u64>),
    /// It follows the bodies, so that all stay in the picture.
    Follow,
    /// It goes to the picked body, once a frame has its boxes.
    Picked,
    /// The user has moved it.
    Free,
}

/// A body that the pointer drags by a spring.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Dragged {
    pub body: u32,
    /// The held point, from the body's centre in its axes.
    pub anchor: Vec3,
    /// Depth of the plane in which the pointer moves.
    pub depth: f32,
    pub target: Vec3,
}

/// The state of the viewer: everything that is shown.
pub(super) struct Viewer {
    /// The requested settings, which the simulation follows.
    pub settings: Settings,
    pub look: Look,
    pub camera: Camera,
    /// Width of the picture over its height.
    pub aspect: f32,
    pub aim: Aim,
    pub timeline: Timeline,
    /// The last frame.
    pub snapshot: Option<Box<Snapshot>>,
    /// The inspected frame, if it is not the last and is still there.
    pub past: Option<Box<Snapshot>>,
    pub dragged: Option<Dragged>,
    pub playing: bool,
    /// Speed relative to 60 frames per second.
    pub speed: f64,
    pub picked: Option<u32>,
    /// A frame of the timeline that is shown instead of the last.
    pub inspected: Option<u64>,
    /// The area of the scene in the window, in points.
    pub area: Option<Rect>,
    /// Whether panels are drawn.
    pub panels: bool,
    /// Whether the panels on the left, on the right and below are folded.
    pub folded: [bool; 3],
    pub help: bool,
    /// The current step before the first frame of a scene.
    pub starting: Option<String>,
    /// When its first step began.
    pub starting_since: Option<Instant>,
    /// The last message to the user.
    pub message: Option<String>,
    /// Whether Escape was pressed in the last pass of the panels.
    pub escaped: bool,
    /// When the message goes away by itself.
    pub message_ends: Option<Instant>,
    /// The name of the graphics device.
    pub device: String,
    /// Whether the stacked bars include drawing.
    pub drawing: bool,
    /// Whether the stacked bars show the stages of the broad phase alone.
    pub broad_phase_only: bool,
    /// The part of the timeline that the stacked bars show.
    pub span: Span,
    pub rate: Rate,
    /// Whether the CPU draws.
    pub software: bool,
    /// Whether the simulation waits for pictures.
    pub held: bool,
    /// The last requested details; the simulation starts with the first.
    pub watched: Watch,
    /// The last requested max number of steps for each picture; the simulation starts with the
    /// first.
    pub paced: u32,
    /// What a key changed last, unless another setting was changed since.
    cycled: Option<Cycle>,
    scene: u64,
    /// The world that the camera was last fitted to.
    fitted: Option<World>,
    /// The serial number of the frame that the camera last followed, and the aspect of the picture.
    aimed: (u64, f32),
    requests: Vec<Request>,
    chair: Mesh,
}

impl Viewer {
    /// Min and max speed.
    pub const SPEEDS: (f64, f64) = (1.0 / 16.0, 16.0);
    /// The share of the way to the bodies that the camera moves in each frame.
    const FOLLOWING: f32 = 0.06;
    /// The aspect of the picture before the first.
    const ASPECT: f32 = 1.6;
    /// How long the message of a success is shown.
    const BRIEFLY: Duration = Duration::from_secs(4);
    /// Frames per second at speed 1.
    const RATE: f64 = 60.0;

    pub fn new(settings: Settings) -> Self {
        let look = Look::of(settings.kind);
        let camera = Camera::around(Vec3::ZERO, 10.0);
        Self {
            watched: Watch {
                view: camera.view(Self::ASPECT),
                ..look.watch(None)
            },
            look,
            settings,
            camera,
            aspect: Self::ASPECT,
            aim: Aim::Fit(None),
            timeline: Timeline::default(),
            snapshot: None,
            past: None,
            dragged: None,
            playing: true,
            speed: 1.0,
            picked: None,
            inspected: None,
            area: None,
            panels: true,
            folded: [false; 3],
            help: false,
            starting: Some("starting".into()),
            starting_since: None,
            message: None,
            escaped: false,
            message_ends: None,
            device: String::new(),
            drawing: true,
            broad_phase_only: false,
            span: Span::default(),
            rate: Rate::default(),
            software: false,
            held: true,
            paced: Simulation::STEPS,
            cycled: None,
            scene: 0,
            fitted: None,
            aimed: (0, 1.0),
            requests: Vec::new(),
            chair: chair_mesh(),
        }
    }

    /// Sets the graphics device. A software one is left out of the bars, where it would dwarf all
    /// else, and draws shadows only if asked to.
    pub fn drawn_by(&mut self, gpu: &Gpu) {
        self.device = gpu.name();
        self.software = gpu.is_software();
        self.drawing = !self.software;
        self.look.shadows = !self.software;
    }

    /// Takes over an update of the simulation.
    ///
    /// # Errors
    ///
    /// The error of a simulation that failed before its first frame.
    pub fn take(&mut self, update: Update) -> Result<(), Error> {
        for record in update.records {
            self.timeline.push(record);
        }
        match update.state {
            State::Starting(what) => {
                self.starting = Some(what);
                self.starting_since.get_or_insert_with(Instant::now);
            }
            State::Running => (self.starting, self.starting_since) = (None, None),
            State::Failed(message, _) if update.snapshot.is_none() => {
                return Err(Error::Start(message));
            }
            State::Failed(message, settings) => {
                self.say(message);
                (self.starting, self.starting_since) = (None, None);
                let refused = std::mem::replace(&mut self.settings, *settings);
                self.skip(refused);
            }
        }
        self.show(update.snapshot);
        Ok(())
    }

    /// Shows a frame. The camera moves to a new world.
    pub fn show(&mut self, snapshot: Option<Box<Snapshot>>) {
        self.snapshot = snapshot;
        let Some(snapshot) = &self.snapshot else {
            return;
        };
        if self.scene != snapshot.scene {
            self.scene = snapshot.scene;
            self.picked = None;
            self.inspected = None;
            self.dragged = None;
        }
        if let Some(extent) = snapshot.extent
            && self.fitted != snapshot.world
        {
            self.fitted = snapshot.world;
            self.camera = Camera::around(extent.center, extent.radius);
            self.aim = Aim::Fit(None);
        }
    }

    /// Returns the past frame whose picture is to be shown, as scene and number: the inspected one,
    /// unless it is the last.
    pub fn wanted(&self) -> Option<(u64, u64)> {
        let last = self.snapshot.as_ref().map(|snapshot| snapshot.frame);
        let past = self.inspected.filter(|_| self.inspected != last);
        past.map(|frame| (self.scene, frame))
    }

    /// Returns the frame whose picture is shown.
    pub fn shown(&self) -> Option<&Snapshot> {
        self.past.as_deref().or(self.snapshot.as_deref())
    }

    /// Returns a line from the held point of a body to where it is dragged.
    pub fn spring(&self) -> Option<Line> {
        let dragged = self.dragged?;
        let body = self.shown()?.instance(dragged.body)?;
        let turn = Quat::from_array(body.rotation);
        let from = Vec3::from(body.position) + turn * dragged.anchor;
        Some(line(from, dragged.target, SPRING, 3.0))
    }

    /// Moves the camera for a picture of this aspect, unless the user has moved it.
    pub fn aim(&mut self, aspect: f32) {
        self.aspect = aspect;
        self.aim_at_picked();
        let Some(snapshot) = self.shown() else {
            return;
        };
        let serial = snapshot.serial;
        let (seen, before) = self.aimed;
        let jump = match self.aim {
            Aim::Picked | Aim::Free => return,
            Aim::Fit(fitted) => fitted.is_none_or(|fitted| fitted == serial),
            Aim::Follow => false,
        };
        let jump = jump || (aspect / before - 1.0).abs() > 0.01;
        if !jump && seen == serial {
            return;
        }
        let mut there = self.camera;
        let view = there.view(aspect);
        // A frame of another view waits for one of this view, which `Viewer::watch` requests.
        let Some(reach) = snapshot.reach(&view) else {
            return;
        };
        there.fit(&reach, &view);
        match self.aim {
            Aim::Fit(None) => self.aim = Aim::Fit(Some(serial)),
            Aim::Fit(Some(fitted)) if fitted != serial => self.aim = Aim::Follow,
            _ => {}
        }
        self.aimed = (serial, aspect);
        if jump {
            self.camera = there;
        } else {
            // As far for a frame that was not shown as for one that was.
            let frames = serial.abs_diff(seen).clamp(1, 60) as i32;
            let part = 1.0 - (1.0 - Self::FOLLOWING).powi(frames);
            self.camera.approach(&there, part);
        }
    }

    /// Returns the details that the simulation must provide. Only frames on the device that draws
    /// depend on the view, and only while the camera follows them.
    pub fn watch(&self) -> Watch {
        let live = self.shown().is_some_and(|shown| shown.live.is_some());
        let view = match self.aim {
            Aim::Fit(_) | Aim::Follow if live => self.camera.view(self.aspect),
            _ => self.watched.view,
        };
        Watch {
            view,
            ..self.look.watch(self.picked)
        }
    }

    /// Returns and clears the pending requests.
    pub fn requests(&mut self) -> Vec<Request> {
        let watch = self.watch();
        if watch != self.watched {
            self.watched = watch;
            self.command(Command::Watch(watch));
        }
        let steps = self.steps();
        if steps != self.paced {
            self.paced = steps;
            self.command(Command::Ahead(steps));
        }
        std::mem::take(&mut self.requests)
    }

    /// Returns the max number of steps of the simulation for each picture. A driver on the CPU and
    /// the simulation share the processors: there each step is drawn, unless a higher speed is
    /// asked for.
    fn steps(&self) -> u32 {
        let steps = if self.software { 1 } else { Simulation::STEPS };
        match self.held {
            true => steps * self.speed.max(1.0).ceil() as u32,
            false => u32::MAX,
        }
    }

    pub fn request(&mut self, request: Request) {
        self.requests.push(request);
    }

    pub fn command(&mut self, command: Command) {
        self.request(Request::Simulation(command));
    }

    pub fn set_playing(&mut self, playing: bool) {
        self.playing = playing;
        if playing {
            self.inspected = None;
        }
        self.command(Command::Play(playing));
    }

    /// Pauses and runs one frame.
    pub fn step(&mut self) {
        self.set_playing(false);
        self.inspected = None;
        self.command(Command::Step);
    }

    pub fn reset(&mut self) {
        self.command(Command::Reset);
    }

    pub fn set_speed(&mut self, speed: f64) {
        self.speed = speed.clamp(Self::SPEEDS.0, Self::SPEEDS.1);
        self.command(Command::Rate(Self::RATE * self.speed));
    }

    /// Changes the settings: the scene, its options or the broad phase.
    pub fn change(&mut self, change: impl FnOnce(&mut Settings)) {
        let old = self.settings.clone();
        change(&mut self.settings);
        if self.settings.kind != old.kind {
            self.look = Look {
                shadows: self.look.shadows,
                ..Look::of(self.settings.kind)
            };
            self.settings.options.bodies = None;
        }
        if self.settings != old {
            (self.message, self.cycled) = (None, None);
            self.command(Command::Settings(Box::new(self.settings.clone())));
        }
    }

    /// Goes on to the next strategy, sort or backend that works.
    pub fn cycle(&mut self, what: Cycle) {
        self.change(|settings| what.step(&mut settings.config));
        self.cycled = Some(what);
    }

    /// Goes on after the settings that were refused, if a key chose them, unless none is left.
    fn skip(&mut self, refused: Settings) {
        let Some(what) = self.cycled.filter(|_| refused != self.settings) else {
            return;
        };
        let mut after = refused;
        what.step(&mut after.config);
        if after != self.settings {
            self.change(|settings| *settings = after);
            self.cycled = Some(what);
        }
    }

    /// Shows a message until it is closed or another one comes.
    pub fn say(&mut self, message: String) {
        (self.message, self.message_ends) = (Some(message), None);
    }

    /// Picks the first body that the ray hits, or none. The ground is no body to pick: it pairs
    /// with half of the scene.
    pub fn pick(&mut self, ray: Ray) {
        let hit = self.hit(ray).map(|hit| hit.body);
        let is_ground = |&body: &u32| self.shown().is_some_and(|shown| shown.is_static(body));
        self.picked = hit.filter(|body| !is_ground(body));
    }

    /// Returns the first body that the ray hits.
    pub fn hit(&self, ray: Ray) -> Option<Hit> {
        let snapshot = self.shown()?;
        let (eye, forward) = (self.camera.eye(), self.camera.forward());
        let radius = snapshot.extent.map_or(1.0, |extent| extent.radius);
        let cut = self.camera.cut(radius, self.look.cut);
        pick::pick(snapshot.bodies(), &self.chair, ray, |body| {
            (Vec3::from(body.position) - eye).dot(forward) >= cut
        })
    }

    /// Returns the ray through a point of the window, in points; through the centre of the scene's
    /// area for a point outside of it.
    pub fn ray_at(&self, at: Option<Pos2>) -> Ray {
        let area = self
            .area
            .unwrap_or(Rect::from_min_size(Pos2::ZERO, vec2(1.0, 1.0)));
        let at = at.filter(|&at| area.contains(at)).unwrap_or(area.center());
        let part = (at - area.center()) / (area.size() / 2.0);
        self.camera
            .ray(Vec2::new(part.x, -part.y), area.aspect_ratio())
    }

    /// Moves the camera to the picked body, or to all bodies, which it then follows.
    pub fn focus(&mut self) {
        self.aim = Aim::Picked;
        self.aim_at_picked();
    }

    /// Moves the camera as [`Self::focus`] says, if it waits for a frame with the boxes of the
    /// picked body. A past frame has those of the body that was picked then.
    fn aim_at_picked(&mut self) {
        let Some(snapshot) = self.shown().filter(|_| self.aim == Aim::Picked) else {
            return;
        };
        let picked = snapshot.picked.as_ref();
        let picked =
            picked.filter(|picked| self.past.is_some() || Some(picked.body) == self.picked);
        if picked.is_none() && self.picked.is_some() && self.past.is_none() {
            return;
        }
        let boxes = picked.iter().flat_map(|picked| &picked.boxes);
        let ends = boxes.map(|own| [Vec3::from(own.aabb.min), Vec3::from(own.aabb.max)]);
        let around = ends.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]);
        self.aim = match around {
            Some([low, high]) if low.is_finite() && high.is_finite() => {
                let radius = low.distance(high) / 2.0;
                // Wide enough to show its neighbours.
                self.camera.focus((low + high) / 2.0, 2.5 * radius);
                Aim::Free
            }
            _ => Aim::Fit(None),
        };
    }

    /// Pauses and shows a frame of the timeline: its figures, and its picture if it is still there.
    pub fn inspect(&mut self, frame: u64) {
        if self.timeline.find(frame).is_some() {
            self.inspected = Some(frame);
            if self.playing {
                self.set_playing(false);
            }
        }
    }

    /// Reports whether a file was saved.
    pub fn saved(&mut self, path: &Path, result: Result<(), Error>) {
        match result {
            Ok(()) => {
                self.say(format!("saved {}", path.display()));
                self.message_ends = Some(Instant::now() + Self::BRIEFLY);
            }
            Err(error) => self.say(error.to_string()),
        }
    }

    /// Returns the area of the scene in a picture of this size, in pixels: left, top, width,
    /// height.
    pub fn area(&self, size: [u32; 2], pixels_per_point: f32) -> [f32; 4] {
        let [width, height] = size.map(|pixels| pixels as f32);
        let whole = Rect::from_min_size(Pos2::ZERO, vec2(width, height));
        let area = self.area.map(|area| (area * pixels_per_point).round());
        let area = area.map(|area| area.intersect(whole));
        let area = area.filter(Rect::is_positive).unwrap_or(whole);
        [area.left(), area.top(), area.width(), area.height()]
    }

    /// Returns the record whose figures are shown.
    pub fn record(&self) -> Option<&Record> {
        let inspected = self.inspected.and_then(|frame| self.timeline.find(frame));
        inspected.or_else(|| self.timeline.last())
    }
}

/// Returns the next entry of a list; after the last comes the first.
pub(super) fn next<T: Copy + PartialEq>(all: &[T], now: T) -> T {
    let at = all.iter().position(|&one| one == now);
    at.and_then(|at| all.get(at + 1))
        .or(all.first())
        .copied()
        .unwrap_or(now)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::look::Colour;
    use super::super::snapshot::mark;
    use super::super::sorting::SortLimit;
    use super::super::timeline::tests::record;
    use super::*;
    use radsweep::BroadPhase;
    use radsweep_scenes::{Kind, Options, Scene};

    pub fn settings() -> Settings {
        Settings {
            kind: Kind::Uniform,
            options: Options {
                bodies: Some(200),
                ..Options::default()
            },
            config: Config {
                backend: Backend::Cpu,
                ..Config::default()
            },
        }
    }

    /// Returns a viewer that shows the first frame with the requested details.
    pub fn viewer() -> Viewer {
        let mut viewer = Viewer::new(settings());
        let mut scene = Scene::new(Kind::Uniform, &viewer.settings.options).expect("a scene");
        let mut broad_phase = BroadPhase::new(viewer.settings.config.clone()).expect("the CPU");
        let step = scene.step(&mut broad_phase).expect("valid");
        let mut snapshot = Box::new(Snapshot {
            scene: 1,
            frame: 1,
            world: Some((Kind::Uniform, Some(200))),
            ..Snapshot::default()
        });
        let taken = snapshot.take(&scene, &mut broad_phase, &[], viewer.look.watch(Some(5)));
        taken.expect("the scene is on the host");
        let taken = viewer.take(Update {
            snapshot: Some(snapshot),
            records: [Record::new(1, step, SortLimit::default(), 0)].into(),
            state: State::Running,
        });
        taken.expect("a frame");
        viewer.requests();
        viewer
    }

    fn commands(viewer: &mut Viewer) -> Vec<Command> {
        let requests = viewer.requests().into_iter();
        requests
            .map(|request| match request {
                Request::Simulation(command) => command,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn the_camera_moves_to_a_new_world_and_stays_for_the_same() {
        let mut viewer = viewer();
        let center = viewer.camera.target;
        assert!(center.distance(Vec3::splat(2.9)) < 0.8, "{center}");
        viewer.camera.target = Vec3::ZERO;
        viewer.picked = Some(3);
        let mut again = viewer.snapshot.take().expect("a frame");
        again.scene = 2;
        viewer.show(Some(again));
        assert_eq!(viewer.camera.target, Vec3::ZERO, "a reset keeps the view");
        assert_eq!(viewer.picked, None, "but not the body");
        let mut other = viewer.snapshot.take().expect("a frame");
        other.world = Some((Kind::Stack, None));
        viewer.show(Some(other));
        assert_ne!(viewer.camera.target, Vec3::ZERO);
    }

    #[test]
    fn the_camera_fits_follows_and_stays_where_the_user_puts_it() {
        let mut viewer = viewer();
        viewer.aim(1.0);
        let fitted = viewer.camera;
        viewer.aim(3.0); // the panels found their size: the same frame is fitted again
        assert!(viewer.camera.distance < fitted.distance);
        let shift = |viewer: &mut Viewer| {
            let snapshot = viewer.snapshot.as_mut().expect("a frame");
            snapshot.serial += 1;
            snapshot
                .picture
                .boxes
                .iter_mut()
                .for_each(|b| b.position[1] += 0.1);
        };
        let before = viewer.camera;
        shift(&mut viewer);
        viewer.aim(3.0);
        let moved = viewer.camera.target - before.target;
        assert!(moved.y > 0.0 && moved.y < 0.05, "{moved}");
        let before = viewer.camera;
        viewer.aim(3.0);
        assert_eq!(viewer.camera, before, "once a frame");
        viewer.aim = Aim::Free;
        shift(&mut viewer);
        viewer.aim(1.0);
        assert_eq!(viewer.camera, before);
        viewer.focus();
        viewer.aim(3.0);
        assert_ne!(viewer.camera, before);
    }

    #[test]
    fn playing_stepping_and_speed_reach_the_simulation() {
        let mut viewer = viewer();
        viewer.step();
        viewer.set_speed(1e9);
        viewer.reset();
        assert!(!viewer.playing);
        let fastest = Command::Rate(60.0 * Viewer::SPEEDS.1);
        let more = Command::Ahead(16 * Simulation::STEPS);
        let expected = [
            Command::Play(false),
            Command::Step,
            fastest,
            Command::Reset,
            more,
        ];
        assert_eq!(commands(&mut viewer), expected);
        viewer.set_speed(0.25);
        viewer.software = true;
        let slowly = [Command::Rate(15.0), Command::Ahead(1)];
        assert_eq!(commands(&mut viewer), slowly, "every step is drawn");
        viewer.held = false;
        assert_eq!(commands(&mut viewer), [Command::Ahead(u32::MAX)]);
    }

    #[test]
    fn only_a_real_change_reaches_the_simulation() {
        let mut viewer = viewer();
        viewer.change(|_| {});
        assert_eq!(commands(&mut viewer), []);
        viewer.change(|settings| settings.config.strategy = Strategy::Sweep);
        let mut expected = settings();
        expected.config.strategy = Strategy::Sweep;
        assert_eq!(
            commands(&mut viewer),
            [Command::Settings(Box::new(expected))]
        );
        // Another scene has its own number of bodies and its own look.
        viewer.change(|settings| settings.kind = Kind::FallingChairs);
        assert_eq!(viewer.settings.options.bodies, None);
        assert_eq!(viewer.look.colour, Colour::Body);
    }

    #[test]
    fn a_failure_is_shown_and_the_settings_are_restored() {
        let mut viewer = viewer();
        viewer.change(|settings| settings.config.backend = Backend::Cuda);
        let snapshot = viewer.snapshot.take();
        let failed = |snapshot| Update {
            snapshot,
            records: Default::default(),
            state: State::Failed("no CUDA".into(), Box::new(settings())),
        };
        assert!(viewer.take(failed(snapshot)).is_ok());
        assert_eq!(viewer.message.as_deref(), Some("no CUDA"));
        assert_eq!(viewer.settings, settings());
        // A failure before the first frame ends the viewer.
        let mut first = Viewer::new(settings());
        let error = first.take(failed(None)).expect_err("no frame");
        assert_eq!(error.to_string(), "no CUDA");
    }

    #[test]
    fn keys_skip_what_is_refused() {
        let mut viewer = viewer();
        let refuse = |viewer: &mut Viewer, kept: &Settings| {
            let update = Update {
                snapshot: viewer.snapshot.take(),
                records: Default::default(),
                state: State::Failed("refused".into(), Box::new(kept.clone())),
            };
            viewer.take(update).expect("there is a frame");
        };
        let sent = |viewer: &mut Viewer| match &commands(viewer)[..] {
            [Command::Settings(settings)] => {
                Some((settings.config.backend, settings.config.strategy))
            }
            [] => None,
            others => panic!("{others:?}"),
        };
        let auto = Strategy::Auto;
        let kept = viewer.settings.clone();
        viewer.cycle(Cycle::Backend);
        assert_eq!(sent(&mut viewer), Some((Backend::Cuda, auto)));
        refuse(&mut viewer, &kept);
        assert_eq!(sent(&mut viewer), Some((Backend::Wgpu, auto)));
        assert_eq!(viewer.message, None, "the key did something");
        refuse(&mut viewer, &kept);
        assert_eq!(sent(&mut viewer), Some((Backend::Auto, auto)));
        // It goes around once.
        refuse(&mut viewer, &kept);
        assert_eq!(sent(&mut viewer), None);
        assert_eq!(viewer.message.as_deref(), Some("refused"));
        assert_eq!(viewer.settings, kept);
        viewer.cycle(Cycle::Strategy);
        assert_eq!(sent(&mut viewer), Some((Backend::Cpu, Strategy::Endpoints)));
        refuse(&mut viewer, &kept);
        assert_eq!(sent(&mut viewer), Some((Backend::Cpu, Strategy::Sweep)));
        // Another failure is none of the settings, and a choice from a list is not replaced.
        let kept = viewer.settings.clone();
        refuse(&mut viewer, &kept);
        assert_eq!(sent(&mut viewer), None);
        viewer.change(|settings| settings.config.backend = Backend::Cuda);
        assert!(sent(&mut viewer).is_some());
        refuse(&mut viewer, &kept);
        assert_eq!(sent(&mut viewer), None);
        assert_eq!(viewer.settings, kept);
    }

    #[test]
    fn a_picked_body_is_watched_and_focused() {
        let mut viewer = viewer();
        let middle = viewer.camera.ray(glam::Vec2::ZERO, 1.0);
        viewer.pick(middle);
        let body = viewer.picked.expect("the middle of a crowd");
        let watch = Watch {
            overlaps: true,
            body: Some(body),
            ..viewer.watched
        };
        assert_eq!(commands(&mut viewer), [Command::Watch(watch)]);
        assert_eq!(commands(&mut viewer), [], "once");
        let far = viewer.camera.distance;
        viewer.focus(); // the frame has the details of body 5
        assert_eq!((viewer.camera.distance, viewer.aim), (far, Aim::Picked));
        let snapshot = viewer.snapshot.as_mut().expect("a frame");
        snapshot.picked.as_mut().expect("details").body = body;
        viewer.aim(1.0);
        assert_eq!(viewer.aim, Aim::Free);
        assert!(viewer.camera.distance < far);
        viewer.look.cut = 1.0;
        viewer.pick(middle);
        assert_ne!(viewer.picked, Some(body), "it is before the cut");
        let away = Ray {
            origin: Vec3::splat(-100.0),
            dir: Vec3::NEG_X,
        };
        viewer.pick(away);
        assert_eq!(viewer.picked, None);
        viewer.look.cut = 0.0;
        viewer
            .snapshot
            .as_mut()
            .expect("a frame")
            .by_body
            .fill(mark::STATIC);
        viewer.pick(middle);
        assert_eq!(viewer.picked, None, "the ground");
    }

    #[test]
    fn inspecting_a_frame_stops_and_shows_its_figures() {
        let mut viewer = viewer();
        for frame in 2..10 {
            viewer.timeline.push(record(frame, &[("sort", 1.0)]));
        }
        viewer.inspect(4);
        assert!(!viewer.playing);
        assert_eq!(viewer.record().map(|record| record.frame), Some(4));
        // Its picture is shown as soon as it is there.
        assert_eq!(viewer.shown().map(|shown| shown.frame), Some(1));
        assert_eq!(viewer.wanted(), Some((1, 4)));
        viewer.past = Some(Box::new(Snapshot {
            frame: 4,
            ..Snapshot::default()
        }));
        assert_eq!(viewer.shown().map(|shown| shown.frame), Some(4));
        viewer.inspect(99); // does not exist
        assert_eq!(viewer.record().map(|record| record.frame), Some(4));
        viewer.inspected = Some(1);
        assert_eq!(viewer.wanted(), None, "the last frame is there already");
        viewer.set_playing(true);
        assert_eq!(viewer.record().map(|record| record.frame), Some(9));
    }

    #[test]
    fn the_scene_is_within_the_picture() {
        let mut viewer = viewer();
        assert_eq!(viewer.area([30, 20], 1.0), [0.0, 0.0, 30.0, 20.0]);
        viewer.area = Some(Rect::from_min_size(Pos2::new(5.0, 2.0), vec2(5.0, 80.0)));
        assert_eq!(viewer.area([30, 20], 2.0), [10.0, 4.0, 10.0, 16.0]);
        viewer.area = Some(Rect::NOTHING);
        assert_eq!(viewer.area([30, 20], 2.0), [0.0, 0.0, 30.0, 20.0]);
    }

    #[test]
    fn next_goes_around() {
        assert_eq!([1, 2, 3].map(|one| next(&[1, 2, 3], one)), [2, 3, 1]);
        assert_eq!(next(&[1, 2], 9), 1);
        assert_eq!(next(&[], 9), 9);
    }
}
