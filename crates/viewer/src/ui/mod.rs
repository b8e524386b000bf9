//! The panels, the keys and the pointer. They use only egui, so that tests run them without a
//! window or a device.

mod controls;
mod figures;
mod help;
mod picked;
mod style;

pub(super) use style::style;

use super::look::Colour;
use super::state::{Aim, Cycle, Request, Viewer, next};
use egui::{
    Align2, CentralPanel, Color32, Context, Event, Frame, Key, Panel, PointerButton, Pos2,
    Response, ScrollArea, Sense, Ui, vec2,
};
use glam::{Vec2, Vec3};
use std::time::{Duration, Instant};

/// Width of a window, in points, below which there is room for one panel beside the scene.
const NARROW: f32 = 700.0;
/// Time after which a step before the first frame of another scene is shown: most take less.
const LONG: Duration = Duration::from_millis(300);

impl Viewer {
    /// Runs one pass: the panels, then the scene's area of the window.
    pub fn ui(&mut self, ui: &mut Ui) {
        let (before, inspected) = (self.camera, self.inspected);
        self.keys(ui.ctx());
        if self.panels {
            let frame = Frame::side_top_panel(ui.style());
            let [left, right, below] = self.folded;
            // Two panels would leave no room for the scene: the figures wait until the other one is
            // folded.
            let right = right || !left && ui.max_rect().width() < NARROW;
            if !left {
                Panel::left("controls")
                    .exact_size(206.0)
                    .frame(frame)
                    .show(ui, |ui| {
                        ScrollArea::vertical().show(ui, |ui| self.controls(ui));
                    });
            }
            if !right {
                Panel::right("figures")
                    .exact_size(322.0)
                    .frame(frame)
                    .show(ui, |ui| {
                        ScrollArea::vertical().show(ui, |ui| {
                            self.figures(ui);
                            self.picked(ui);
                        });
                    });
            }
            if !below {
                Panel::bottom("timeline")
                    .exact_size(168.0)
                    .frame(frame)
                    .show(ui, |ui| self.stacked(ui));
            }
        }
        CentralPanel::no_frame().show(ui, |ui| self.scene(ui));
        if self.help {
            // Over the scene, not over the panel with its button.
            let at = self.area.map_or(Pos2::ZERO, |area| area.left_top());
            help::show(ui.ctx(), &mut self.help, at + vec2(16.0, 16.0));
        }
        self.escaped = ui.input(|input| input.key_pressed(Key::Escape));
        if self.camera != before {
            self.aim = Aim::Free;
        }
        if self.inspected != inspected {
            // Its picture comes from the simulation.
            ui.ctx().request_repaint();
        }
    }

    /// Handles the area of the scene, in which the pointer moves the camera and picks bodies.
    fn scene(&mut self, ui: &mut Ui) {
        let response = ui.allocate_response(ui.available_size(), Sense::click_and_drag());
        let area = response.rect;
        self.area = Some(area);
        let shift = ui.input(|input| input.modifiers.shift);
        let drags = self.drag_body(ui, &response);
        let delta = response.drag_delta() / area.height().max(1.0);
        let by = Vec2::new(delta.x, delta.y);
        if drags {
            // The camera rests.
        } else if response.dragged_by(PointerButton::Middle)
            || response.dragged_by(PointerButton::Primary) && shift
        {
            self.camera.pan(by);
        } else if response.dragged_by(PointerButton::Primary) {
            self.camera.orbit(by);
        } else if response.dragged_by(PointerButton::Secondary) {
            self.camera.look(by);
        }
        if response.hovered() {
            let (scroll, pinch) =
                ui.input(|input| (input.smooth_scroll_delta().y, input.zoom_delta()));
            self.camera.zoom(scroll / 40.0 + 8.0 * pinch.ln());
        }
        if response.clicked()
            && let Some(at) = response.interact_pointer_pos()
        {
            self.pick(self.ray_at(Some(at)));
        }
        if response.double_clicked() {
            self.focus();
        }
        if let Some(note) = self.note(ui.ctx()) {
            let painter = ui.painter_at(response.rect);
            let font = egui::FontId::proportional(16.0);
            let color = Color32::from_gray(235);
            let wrap = response.rect.width() * 0.8;
            let text = painter.layout(note, font, color, wrap);
            let at = Align2::CENTER_CENTER.anchor_size(response.rect.center(), text.size());
            let at = if self.snapshot.is_some() {
                at.translate(egui::vec2(0.0, response.rect.top() - at.top() + 20.0))
            } else {
                at
            };
            painter.rect_filled(at.expand(10.0), 6.0, Color32::from_black_alpha(200));
            painter.galley(at.min, text, color);
        }
    }

    /// Returns what is shown over the scene: the step before its first frame, or a message.
    fn note(&mut self, context: &Context) -> Option<String> {
        // Returns whether it is time, else sees to another pass then.
        let is_time = |then: Instant| {
            let wait = then.saturating_duration_since(Instant::now());
            if !wait.is_zero() {
                context.request_repaint_after(wait);
            }
            wait.is_zero()
        };
        let since = self.starting_since.filter(|_| self.snapshot.is_some());
        if let Some(what) = &self.starting
            && since.is_none_or(|since| is_time(since + LONG))
        {
            return Some(format!("{what} …"));
        }
        if self.message_ends.is_some_and(is_time) {
            (self.message, self.message_ends) = (None, None);
        }
        self.message.clone()
    }

    /// Drags a body, if Ctrl was down when the pointer took it. Returns whether one is held.
    fn drag_body(&mut self, ui: &Ui, response: &Response) -> bool {
        let (origin, ctrl) =
            ui.input(|input| (input.pointer.press_origin(), input.modifiers.command));
        if ctrl && origin.is_some() && response.drag_started_by(PointerButton::Primary) {
            self.grab(self.ray_at(origin));
        }
        if response.dragged_by(PointerButton::Primary)
            && let Some(at) = response.interact_pointer_pos()
        {
            self.drag(self.ray_at(Some(at)));
        }
        let held = self.dragged.is_some();
        if !response.is_pointer_button_down_on() {
            self.let_go();
        }
        held
    }

    /// Handles all keys.
    fn keys(&mut self, context: &Context) {
        if context.egui_wants_keyboard_input() {
            return;
        }
        // Read the events themselves, one by one: while a picture is drawn a key may be pressed and
        // released, more than once.
        for event in context.input(|input| input.events.clone()) {
            let Event::Key {
                key,
                pressed: true,
                repeat,
                modifiers,
                ..
            } = event
            else {
                continue;
            };
            // With Shift down a `+` may end as a `=`, so that egui takes the next for a repeat.
            let repeats = [Key::Period, Key::Plus, Key::Equals, Key::Minus];
            if repeat && !repeats.contains(&key) {
                continue;
            }
            if modifiers.command {
                if [Key::Q, Key::W].contains(&key) {
                    self.request(Request::Quit);
                }
                continue;
            }
            let pressed = |wanted| key == wanted;
            self.simulation_keys(&pressed);
            self.view_keys(&pressed);
            self.action_keys(&pressed, context.pointer_latest_pos());
        }
        self.fly(context);
    }

    /// Handles the keys that control the simulation.
    fn simulation_keys(&mut self, pressed: &dyn Fn(Key) -> bool) {
        if pressed(Key::Space) {
            self.set_playing(!self.playing);
        }
        if pressed(Key::Period) {
            self.step();
        }
        if pressed(Key::R) {
            self.reset();
        }
        if pressed(Key::Plus) || pressed(Key::Equals) {
            self.set_speed(self.speed * 2.0);
        }
        if pressed(Key::Minus) {
            self.set_speed(self.speed / 2.0);
        }
        if pressed(Key::T) {
            self.cycle(Cycle::Strategy);
        }
        if pressed(Key::Y) {
            self.cycle(Cycle::Sort);
        }
        if pressed(Key::B) {
            self.cycle(Cycle::Backend);
        }
    }

    /// Handles the keys that change the picture, and those that save files.
    fn view_keys(&mut self, pressed: &dyn Fn(Key) -> bool) {
        if pressed(Key::C) {
            self.look.colour = next(&Colour::ALL, self.look.colour);
        }
        if pressed(Key::X) {
            self.look.wireframes ^= true;
        }
        if pressed(Key::U) {
            self.look.shadows ^= true;
        }
        if pressed(Key::V) {
            self.look.axis ^= true;
        }
        if pressed(Key::G) {
            self.look.cells ^= true;
        }
        if pressed(Key::L) {
            self.look.pairs ^= true;
        }
        if pressed(Key::N) {
            self.look.links ^= true;
        }
        if pressed(Key::F) {
            self.focus();
        }
        for (folded, key) in self
            .folded
            .iter_mut()
            .zip([Key::Num1, Key::Num2, Key::Num3])
        {
            *folded ^= pressed(key);
        }
        for (key, by) in [(Key::OpenBracket, -0.05), (Key::CloseBracket, 0.05)] {
            if pressed(key) {
                self.look.cut = (self.look.cut + by).clamp(0.0, 1.0);
            }
        }
        if pressed(Key::H) {
            self.panels ^= true;
        }
        if pressed(Key::F1) {
            self.help ^= true;
        }
        if pressed(Key::Escape) {
            self.picked = None;
            self.inspected = None;
            self.message = None;
        }
        if pressed(Key::P) {
            self.request(Request::SavePicture);
        }
        if pressed(Key::K) {
            self.request(Request::SaveCsv);
        }
    }

    /// Handles the keys that act on the bodies, with the pointer there.
    fn action_keys(&mut self, pressed: &dyn Fn(Key) -> bool, pointer: Option<Pos2>) {
        if pressed(Key::O) {
            self.throw(self.ray_at(pointer));
        }
        if pressed(Key::Z) {
            self.explode(self.ray_at(pointer));
        }
        if pressed(Key::I) {
            self.add();
        }
    }

    /// Flies while keys are down.
    fn fly(&mut self, context: &Context) {
        let by = context.input(|input| {
            let down = |key| f32::from(u8::from(input.key_down(key) && !input.modifiers.command));
            let axes = Vec3::new(
                down(Key::D) - down(Key::A),
                down(Key::E) - down(Key::Q),
                down(Key::W) - down(Key::S),
            );
            let quick = if input.modifiers.shift { 4.0 } else { 1.0 };
            // A late frame must not move the camera far.
            axes * quick * input.stable_dt.min(0.1) * 0.6
        });
        if by != Vec3::ZERO {
            self.camera.fly(by);
            context.request_repaint();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{Command, Simulation};
    use super::super::state::tests::viewer;
    use super::*;
    use egui::{Modifiers, RawInput, pos2};
    use radsweep_scenes::Action;

    /// A context that runs passes.
    struct Window(Context);

    impl Window {
        fn new() -> Self {
            let context = Context::default();
            style(&context);
            Self(context)
        }

        fn pass(&self, viewer: &mut Viewer, events: Vec<Event>) {
            let size = egui::vec2(1280.0, 800.0);
            let input = RawInput {
                screen_rect: Some(egui::Rect::from_min_size(pos2(0.0, 0.0), size)),
                events,
                ..RawInput::default()
            };
            let mut output = self.0.run_ui(input, |ui| viewer.ui(ui));
            output.textures_delta.clear(); // nothing draws
            assert!(!output.shapes.is_empty());
        }

        /// Returns the texts that a pass shows.
        fn texts(&self, viewer: &mut Viewer, size: [f32; 2]) -> Vec<String> {
            let input = RawInput {
                screen_rect: Some(egui::Rect::from_min_size(pos2(0.0, 0.0), size.into())),
                ..RawInput::default()
            };
            let mut output = self.0.run_ui(input, |ui| viewer.ui(ui));
            output.textures_delta.clear(); // nothing draws
            let shown = output
                .shapes
                .into_iter()
                .filter_map(|shown| match shown.shape {
                    egui::Shape::Text(text) => Some(text.galley.text().to_owned()),
                    _ => None,
                });
            shown.collect()
        }

        /// Returns the text that appears while the pointer rests on this label.
        fn tooltip(&self, viewer: &mut Viewer, label: &str) -> String {
            let pass = |viewer: &mut Viewer, time, events| {
                let input = RawInput {
                    screen_rect: Some(egui::Rect::from_min_size(Pos2::ZERO, vec2(1280.0, 800.0))),
                    time: Some(time),
                    events,
                    ..RawInput::default()
                };
                let mut output = self.0.run_ui(input, |ui| viewer.ui(ui));
                output.textures_delta.clear(); // nothing draws
                let shown = output.shapes.into_iter();
                let texts = shown.filter_map(|shown| match shown.shape {
                    egui::Shape::Text(text) => {
                        let middle = text.visual_bounding_rect().center();
                        Some((text.galley.text().to_owned(), middle))
                    }
                    _ => None,
                });
                texts.collect::<Vec<_>>()
            };
            let before = pass(viewer, 0.0, Vec::new());
            let found = before.iter().find(|(text, _)| text.trim() == label);
            let (_, at) = *found.unwrap_or_else(|| panic!("no {label} in {before:?}"));
            pass(viewer, 1.0, vec![Event::PointerMoved(at)]);
            let mut after = Vec::new();
            for time in 2..6 {
                after = pass(viewer, f64::from(time), Vec::new());
            }
            // Tooltips are drawn last; texts of a chart may be new too, as its bounds settle.
            let mut texts = after.into_iter().rev().map(|(text, _)| text);
            let new = texts.find(|text| before.iter().all(|(known, _)| known != text));
            new.unwrap_or_default()
        }

        fn press(&self, viewer: &mut Viewer, key: Key, modifiers: Modifiers) {
            let event = |pressed| Event::Key {
                key,
                physical_key: None,
                pressed,
                repeat: false,
                modifiers,
            };
            self.pass(viewer, vec![event(true)]);
            self.pass(viewer, vec![event(false)]);
        }

        fn drag(&self, viewer: &mut Viewer, button: PointerButton, from: [f32; 2], to: [f32; 2]) {
            let event = |at: [f32; 2], pressed| Event::PointerButton {
                pos: at.into(),
                button,
                pressed,
                modifiers: Modifiers::NONE,
            };
            let moved = |at: [f32; 2]| Event::PointerMoved(at.into());
            self.pass(viewer, vec![moved(from)]);
            self.pass(viewer, vec![event(from, true)]);
            self.pass(viewer, vec![moved(to)]);
            self.pass(viewer, vec![event(to, false)]);
        }
    }

    /// The fields of the panel on the left.
    const BODIES: [f32; 2] = [80.0, 160.0];
    const SEED: [f32; 2] = [66.0, 183.0];
    /// The centre of the scene's area.
    const MIDDLE: [f32; 2] = [600.0, 300.0];

    #[test]
    fn every_key_does_what_the_help_says() {
        let (window, mut viewer) = (Window::new(), viewer());
        let sent = |viewer: &mut Viewer, key| {
            window.press(viewer, key, Modifiers::NONE);
            viewer.requests()
        };
        let play = |playing| Request::Simulation(Command::Play(playing));
        assert_eq!(sent(&mut viewer, Key::Space), [play(false)]);
        assert_eq!(sent(&mut viewer, Key::Space), [play(true)]);
        let step = Request::Simulation(Command::Step);
        assert_eq!(sent(&mut viewer, Key::Period), [play(false), step]);
        let reset = Request::Simulation(Command::Reset);
        assert_eq!(sent(&mut viewer, Key::R), [reset]);
        let rate = |rate| Request::Simulation(Command::Rate(rate));
        let ahead = |steps| Request::Simulation(Command::Ahead(steps * Simulation::STEPS));
        assert_eq!(sent(&mut viewer, Key::Plus), [rate(120.0), ahead(2)]);
        assert_eq!(sent(&mut viewer, Key::Minus), [rate(60.0), ahead(1)]);
        assert_eq!(sent(&mut viewer, Key::Equals), [rate(120.0), ahead(2)]);
        let act = |requests: Vec<Request>| match requests[..] {
            [Request::Simulation(Command::Act(action))] => action,
            _ => panic!("{requests:?}"),
        };
        let thrown = act(sent(&mut viewer, Key::O));
        assert!(matches!(thrown, Action::Throw { .. }), "{thrown:?}");
        let exploded = act(sent(&mut viewer, Key::Z));
        assert!(matches!(exploded, Action::Explode { .. }), "{exploded:?}");
        let added = act(sent(&mut viewer, Key::I));
        assert!(matches!(added, Action::Add { .. }), "{added:?}");
        assert_eq!(sent(&mut viewer, Key::P), [Request::SavePicture]);
        assert_eq!(sent(&mut viewer, Key::K), [Request::SaveCsv]);
        for key in [Key::T, Key::Y, Key::B] {
            let before = viewer.settings.clone();
            let requests = sent(&mut viewer, key);
            assert_ne!(viewer.settings, before, "{key:?}");
            let settings = Box::new(viewer.settings.clone());
            assert_eq!(requests, [Request::Simulation(Command::Settings(settings))]);
        }
        for key in [
            Key::C,
            Key::X,
            Key::U,
            Key::V,
            Key::G,
            Key::L,
            Key::N,
            Key::CloseBracket,
        ] {
            let before = viewer.look;
            sent(&mut viewer, key);
            assert_ne!(viewer.look, before, "{key:?}");
        }
        viewer.picked = Some(5); // the frame has its details
        for key in [Key::W, Key::A, Key::S, Key::D, Key::Q, Key::E, Key::F] {
            let before = viewer.camera;
            sent(&mut viewer, key);
            assert_ne!(viewer.camera, before, "{key:?}");
        }
        for key in [Key::Q, Key::W] {
            window.press(&mut viewer, key, Modifiers::COMMAND);
            assert_eq!(viewer.requests(), [Request::Quit], "{key:?}");
        }
        sent(&mut viewer, Key::OpenBracket);
        assert_eq!(viewer.look.cut, 0.0);
        let width = |viewer: &Viewer| viewer.area.expect("drawn before").width();
        let narrow = width(&viewer);
        for (key, least) in [(Key::Num1, 200.0), (Key::Num2, 520.0)] {
            sent(&mut viewer, key);
            assert!(width(&viewer) > narrow + least, "{key:?}");
        }
        sent(&mut viewer, Key::Num3);
        assert_eq!(viewer.area.map(|area| area.height()), Some(800.0));
        sent(&mut viewer, Key::H);
        assert!(!viewer.panels);
        sent(&mut viewer, Key::F1);
        assert!(viewer.help);
        viewer.message = Some("something".into());
        viewer.picked = Some(3);
        sent(&mut viewer, Key::Escape);
        assert_eq!((viewer.message, viewer.picked), (None, None));
    }

    #[test]
    fn keys_count_as_often_as_they_are_pressed_and_in_order() {
        let (window, mut viewer) = (Window::new(), viewer());
        let event = |key, pressed| Event::Key {
            key,
            physical_key: None,
            pressed,
            repeat: false,
            modifiers: Modifiers::NONE,
        };
        let press = |key| [event(key, true), event(key, false)];
        let strategy = viewer.settings.config.strategy;
        window.pass(&mut viewer, [Key::T; 4].map(press).concat());
        assert_eq!(viewer.settings.config.strategy, strategy);
        window.pass(&mut viewer, [Key::T; 3].map(press).concat());
        assert_ne!(viewer.settings.config.strategy, strategy);
        window.pass(&mut viewer, [Key::CloseBracket; 4].map(press).concat());
        assert!((viewer.look.cut - 0.2).abs() < 1e-6, "{}", viewer.look.cut);
        // Deselected first, so that all bodies are in the focus.
        viewer.picked = Some(3);
        window.pass(&mut viewer, [Key::Escape, Key::F].map(press).concat());
        assert!(matches!(viewer.aim, Aim::Fit(_)));
    }

    #[test]
    fn a_plus_counts_again_where_it_ended_as_another_key() {
        let (window, mut viewer) = (Window::new(), viewer());
        let event = |key, pressed| Event::Key {
            key,
            physical_key: Some(Key::Equals),
            pressed,
            repeat: false,
            modifiers: Modifiers::SHIFT,
        };
        for speed in [2.0, 4.0, 8.0] {
            window.pass(&mut viewer, vec![event(Key::Plus, true)]);
            window.pass(&mut viewer, vec![event(Key::Equals, false)]);
            assert_eq!(viewer.speed, speed);
        }
    }

    #[test]
    fn numbers_are_typed_as_on_the_command_line() {
        let (window, mut viewer) = (Window::new(), viewer());
        window.pass(&mut viewer, Vec::new());
        let key = |key, pressed| Event::Key {
            key,
            physical_key: None,
            pressed,
            repeat: false,
            modifiers: Modifiers::NONE,
        };
        let entered = |viewer: &mut Viewer, at: [f32; 2], text: &str, end: Key| {
            viewer.message = None;
            window.drag(viewer, PointerButton::Primary, at, at);
            window.pass(viewer, Vec::new());
            window.pass(viewer, vec![Event::Text(text.into())]);
            window.pass(viewer, vec![key(end, true)]);
            window.pass(viewer, vec![key(end, false)]);
            window.pass(viewer, Vec::new());
        };
        let bodies = |viewer: &Viewer| viewer.settings.options.bodies;
        for (text, end, expected) in [
            ("300", Key::Enter, 300),
            ("400", Key::Escape, 300),
            ("10k", Key::Enter, 10_000),
            ("1e4x", Key::Enter, 10_000),
            ("99999999999", Key::Enter, 10_000),
            ("99999999999", Key::Escape, 10_000),
            ("1e2", Key::Enter, 100),
        ] {
            entered(&mut viewer, BODIES, text, end);
            assert_eq!(bodies(&viewer), Some(expected), "{text} {end:?}");
            let is_refused = end == Key::Enter && (text.contains('x') || text.len() > 9);
            assert_eq!(viewer.message.is_some(), is_refused, "{text} {end:?}");
        }
        for seed in [7, u64::MAX, u64::MAX - 1, (1 << 53) + 1] {
            entered(&mut viewer, SEED, &seed.to_string(), Key::Enter);
            assert_eq!(viewer.settings.options.seed, seed);
            let texts = window.texts(&mut viewer, [1280.0, 800.0]);
            assert!(texts.contains(&seed.to_string()), "{texts:?}");
            assert!(viewer.area.expect("drawn").left() < 210.0);
        }
    }

    #[test]
    fn messages_of_success_go_away_and_others_stay() {
        let (window, mut viewer) = (Window::new(), viewer());
        let path = std::path::Path::new("f.png");
        let shown = |viewer: &mut Viewer| window.texts(viewer, [1280.0, 800.0]);
        viewer.saved(path, Ok(()));
        assert!(shown(&mut viewer).contains(&"saved f.png".to_owned()));
        viewer.message_ends = Some(Instant::now());
        assert!(!shown(&mut viewer).contains(&"saved f.png".to_owned()));
        viewer.message_ends = Some(Instant::now());
        viewer.say("no CUDA".into());
        assert!(shown(&mut viewer).contains(&"no CUDA".to_owned()));
        // A step is shown once it takes long, or if there is no picture yet.
        let step = "building 9 bodies …".to_owned();
        viewer.starting = Some("building 9 bodies".into());
        viewer.starting_since = Some(Instant::now());
        assert!(!shown(&mut viewer).contains(&step));
        viewer.starting_since = Instant::now().checked_sub(LONG);
        assert!(shown(&mut viewer).contains(&step));
        viewer.starting_since = Some(Instant::now());
        viewer.snapshot = None;
        assert!(shown(&mut viewer).contains(&step));
    }

    #[test]
    fn a_narrow_window_has_one_panel_beside_the_scene() {
        let (window, mut viewer) = (Window::new(), viewer());
        let shown = |viewer: &mut Viewer, width| {
            window.texts(viewer, [width, 320.0]);
            let texts = window.texts(viewer, [width, 320.0]);
            let has = |text: &str| texts.iter().any(|shown| shown == text);
            let area = viewer.area.expect("drawn");
            assert!(area.width() > 150.0, "{area:?}");
            [has("Scene"), has("Frame 1")]
        };
        assert_eq!(shown(&mut viewer, 710.0), [true, true]);
        assert_eq!(shown(&mut viewer, 480.0), [true, false]);
        viewer.folded[0] = true;
        assert_eq!(shown(&mut viewer, 480.0), [false, true]);
        viewer.folded[1] = true;
        assert_eq!(shown(&mut viewer, 480.0), [false, false]);
    }

    #[test]
    fn the_pointer_orbits_looks_pans_and_picks() {
        let (window, mut viewer) = (Window::new(), viewer());
        let to = [MIDDLE[0] + 80.0, MIDDLE[1] + 40.0];
        let before = viewer.camera;
        window.drag(&mut viewer, PointerButton::Primary, MIDDLE, to);
        assert_ne!(viewer.camera.yaw, before.yaw);
        assert_eq!(viewer.camera.target, before.target);
        let before = viewer.camera;
        window.drag(&mut viewer, PointerButton::Secondary, MIDDLE, to);
        assert!(viewer.camera.eye().abs_diff_eq(before.eye(), 1e-3));
        let before = viewer.camera;
        window.drag(&mut viewer, PointerButton::Middle, MIDDLE, to);
        assert_eq!(viewer.camera.yaw, before.yaw);
        assert_ne!(viewer.camera.target, before.target);
        assert_eq!(viewer.picked, None, "a drag is no click");
        viewer.focus();
        viewer.camera.target = viewer
            .snapshot
            .as_ref()
            .and_then(|s| s.extent)
            .expect("bodies")
            .center;
        let middle = viewer.area.expect("drawn before").center().into();
        window.drag(&mut viewer, PointerButton::Primary, middle, middle);
        assert!(viewer.picked.is_some());
    }

    #[test]
    fn ctrl_drags_a_body_and_not_the_camera() {
        let (window, mut viewer) = (Window::new(), viewer());
        window.pass(&mut viewer, Vec::new());
        let extent = viewer.snapshot.as_ref().and_then(|s| s.extent);
        viewer.camera.target = extent.expect("bodies").center;
        let (before, middle) = (viewer.camera, viewer.area.expect("drawn before").center());
        let button = |pos, pressed| Event::PointerButton {
            pos,
            button: PointerButton::Primary,
            pressed,
            modifiers: Modifiers::COMMAND,
        };
        let there = middle + vec2(60.0, 20.0);
        let events = [
            Event::ModifiersChanged(Modifiers::COMMAND),
            Event::PointerMoved(middle),
            button(middle, true),
            Event::PointerMoved(there),
            Event::PointerMoved(there + vec2(1.0, 0.0)),
            button(there, false),
        ];
        let mut sent = Vec::new();
        for event in events {
            window.pass(&mut viewer, vec![event]);
            sent.extend(viewer.requests());
        }
        let actions: Vec<&str> = sent
            .iter()
            .filter_map(|request| match request {
                Request::Simulation(Command::Act(action)) => Some(match action {
                    Action::Grab { .. } => "grab",
                    Action::Drag { .. } => "drag",
                    Action::Release => "release",
                    _ => "another",
                }),
                _ => None,
            })
            .collect();
        assert_eq!(actions, ["grab", "drag", "drag", "release"]);
        assert_eq!(viewer.camera, before);
        assert_eq!((viewer.dragged, viewer.picked), (None, None));
    }

    #[test]
    fn labels_quoted_in_the_page_of_the_viewer_exist() {
        let page = include_str!("../../../../docs/viewer.md");
        let quoted = page.split('`').skip(1).step_by(2);
        // A label has a capital letter, then small ones; names of files and variables do not.
        let is_label = |text: &&str| {
            let mut chars = text.chars();
            chars.next().is_some_and(char::is_uppercase)
                && chars.all(|c| c.is_lowercase() || c == ' ')
        };
        let (window, mut viewer) = (Window::new(), viewer());
        let texts = window.texts(&mut viewer, [1280.0, 800.0]);
        let labels: Vec<&str> = quoted.filter(is_label).collect();
        assert!(labels.len() >= 5, "{labels:?}");
        for label in labels {
            assert!(texts.iter().any(|text| text == label), "{label}");
        }
    }

    #[test]
    fn names_that_do_not_explain_themselves_have_tooltips() {
        let mut viewer = viewer();
        let mut record = viewer.timeline.last().expect("a frame").clone();
        record.frame += 1;
        record.sorting = Some(crate::sorting::Sorting {
            rate: 1e9,
            share: Some(0.9),
        });
        record.report.stats.sorts.keys = 9868;
        record.report.stats.regrown = 1;
        viewer.timeline.push(record);
        for (label, expected) in [
            ("Wait for the screen", "waits for pictures"),
            ("Cut", "nearer than a plane"),
            ("per pair", "for each pair found"),
            ("sweep axis", "ordered the boxes"),
            ("buffers grown", "a step was repeated"),
            ("last plan", "last planned search"),
            ("of the byte limit", "a plain copy of the bytes"),
            ("pairs", "two sleeping boxes"),
            ("p99", "99th percentile"),
        ] {
            let text = Window::new().tooltip(&mut viewer, label);
            assert!(text.contains(expected), "{label}: {text}");
        }
    }

    #[test]
    fn no_text_is_too_small_to_read() {
        let context = Window::new().0;
        for theme in [egui::Theme::Dark, egui::Theme::Light] {
            let style = context.style_of(theme);
            assert!(style.text_styles.values().all(|font| font.size >= 11.0));
        }
    }

    #[test]
    fn panels_show_whatever_state_there_is() {
        let (window, mut viewer) = (Window::new(), viewer());
        viewer.inspected = Some(1);
        viewer.help = true;
        window.pass(&mut viewer, Vec::new());
        viewer.snapshot = None;
        viewer.starting = Some("compiling shaders".into());
        viewer.timeline = Default::default();
        window.pass(&mut viewer, Vec::new());
        assert_eq!(viewer.requests(), [], "looking changes nothing");
    }
}
