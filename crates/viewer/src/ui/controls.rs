//! The panel on the left: scene, broad phase, speed and drawing options.

use crate::look::Colour;
use crate::state::{Request, Viewer};
use egui::{Button, Checkbox, ComboBox, DragValue, Slider, TextStyle, Ui};
use radsweep::sort::Algorithm;
use radsweep::{Backend, Strategy};
use radsweep_common::numbers::count;
use radsweep_scenes::{Kind, Options};
use std::cell::Cell;
use std::fmt::Display;

impl Viewer {
    pub(super) fn controls(&mut self, ui: &mut Ui) {
        ui.heading("radsweep");
        ui.horizontal(|ui| {
            let play = if self.playing { "Pause" } else { "Play" };
            if ui.button(play).clicked() {
                self.set_playing(!self.playing);
            }
            if ui.button("Step").clicked() {
                self.step();
            }
            if ui.button("Reset").clicked() {
                self.reset();
            }
        });
        self.actions(ui);
        let mut speed = self.speed;
        let (slowest, fastest) = Self::SPEEDS;
        ui.spacing_mut().slider_width = 82.0;
        ui.horizontal(|ui| {
            ui.label("Speed");
            let slider = Slider::new(&mut speed, slowest..=fastest).logarithmic(true);
            if ui.add(slider.suffix("x").max_decimals(2)).changed() {
                self.set_speed(speed);
            }
        });
        let held = ui.checkbox(&mut self.held, "Wait for the screen");
        held.on_hover_text(
            "the simulation waits for pictures: at most one step for each, four on a GPU, \
             times the speed",
        );
        ui.separator();
        self.simulated(ui);
        ui.separator();
        self.drawn(ui);
        ui.separator();
        ui.horizontal(|ui| {
            if ui.button("Save CSV").clicked() {
                self.request(Request::SaveCsv);
            }
            if ui.button("Save picture").clicked() {
                self.request(Request::SavePicture);
            }
        });
        ui.horizontal(|ui| {
            if ui.button("Keys (F1)").clicked() {
                self.help ^= true;
            }
            if ui.button("Focus (F)").clicked() {
                self.focus();
            }
        });
        if !self.device.is_empty() {
            ui.small(format!("drawn by {}", self.device));
        }
    }

    /// Shows the buttons that act in the middle of the picture; grey where the scene refuses it.
    fn actions(&mut self, ui: &mut Ui) {
        let refusal = self.refusal().map(|refusal| refusal.to_string());
        let button = |ui: &mut Ui, name, what| {
            let button = ui.add_enabled(refusal.is_none(), Button::new(name));
            let button = button.on_hover_text(what);
            let why = refusal.as_deref().unwrap_or_default();
            button.on_disabled_hover_text(why).clicked()
        };
        ui.horizontal(|ui| {
            let middle = self.ray_at(None);
            if button(
                ui,
                "Throw",
                "throw a ball into the middle; O: at the pointer",
            ) {
                self.throw(middle);
            }
            if button(
                ui,
                "Explode",
                "set off an explosion in the middle; Z: at the pointer",
            ) {
                self.explode(middle);
            }
            if button(ui, "Add", "add bodies; I") {
                self.add();
            }
        });
    }

    fn simulated(&mut self, ui: &mut Ui) {
        let mut wanted = self.settings.clone();
        // Reads a typed number, or keeps why it is refused. After Escape it is dropped, which egui
        // forgets one pass later.
        let (dropped, refused) = (self.escaped, Cell::new(None));
        let read = |text: &str, range| match count(text.trim(), range) {
            _ if dropped => None,
            Ok(number) => Some(number),
            Err(why) => {
                refused.set(Some(why));
                None
            }
        };
        choice(ui, "Scene", &mut wanted.kind, Kind::ALL);
        let (config, options) = (&mut wanted.config, &mut wanted.options);
        ui.horizontal(|ui| {
            ui.label("Bodies");
            let mut bodies = options.bodies.unwrap_or(wanted.kind.default_bodies()) as u64;
            let speed = (bodies as f64 / 50.0).max(1.0);
            let largest = Options::MAX_BOXES as u64;
            let drag = DragValue::new(&mut bodies)
                .range(1..=largest)
                .custom_parser(|text| read(text, 1..=largest).map(|bodies| bodies as f64));
            // Updates while dragging or typing would build a scene for every value in between.
            let response = ui.add(drag.speed(speed).update_while_editing(false));
            let id = response.id.with("bodies");
            if response.changed() {
                ui.data_mut(|data| data.insert_temp(id, bodies));
            }
            if !response.dragged()
                && let Some(bodies) = ui.data_mut(|data| data.remove_temp::<u64>(id))
            {
                options.bodies = usize::try_from(bodies).ok();
            }
        });
        ui.horizontal(|ui| {
            ui.label("Seed");
            // Numbers of egui are f64, which does not hold every seed.
            let (seed, typed) = (options.seed, Cell::new(None));
            let drag = DragValue::new(&mut options.seed)
                .custom_formatter(|value, _| match value == seed as f64 {
                    true => seed.to_string(),
                    false => format!("{value:.0}"),
                })
                .custom_parser(|text| {
                    typed.set(read(text, 0..=u64::MAX));
                    typed.get().map(|seed| seed as f64)
                });
            if seed > 1 << 40 {
                // So that 20 digits fit.
                ui.style_mut().drag_value_text_style = TextStyle::Small;
            }
            ui.add(drag.update_while_editing(false));
            if let Some(seed) = typed.get() {
                options.seed = seed;
            }
        });
        choice(ui, "Backend", &mut config.backend, Backend::ALL);
        let strategies = with_first(Strategy::Auto, Strategy::ALL);
        choice(ui, "Strategy", &mut config.strategy, &strategies);
        let sorts = with_first(Algorithm::Auto, Algorithm::ALL);
        choice(ui, "Sort", &mut config.sort, &sorts);
        self.change(|settings| *settings = wanted);
        if let Some(why) = refused.take() {
            self.say(why);
        }
    }

    fn drawn(&mut self, ui: &mut Ui) {
        let look = &mut self.look;
        let mut name = look.colour.name();
        let names = Colour::ALL.map(Colour::name);
        choice(ui, "Colour", &mut name, &names);
        look.colour = name.parse().unwrap_or(look.colour);
        ui.horizontal(|ui| {
            ui.checkbox(&mut look.wireframes, "Boxes (AABBs)");
            let shadows = Checkbox::new(&mut look.shadows, "Shadows");
            ui.add_enabled(!look.space, shadows);
        });
        ui.checkbox(&mut look.axis, "Sweep axis");
        ui.checkbox(&mut look.cells, "Columns, cells");
        ui.checkbox(&mut look.pairs, "Pairs of the picked body");
        ui.checkbox(&mut look.links, "Pairs of all bodies");
        ui.horizontal(|ui| {
            ui.label("Cut")
                .on_hover_text("leaves out what is nearer than a plane; [ and ] move it");
            ui.add(Slider::new(&mut look.cut, 0.0..=1.0).max_decimals(2));
        });
        ui.checkbox(&mut self.drawing, "Include drawing in bars");
        ui.checkbox(&mut self.broad_phase_only, "Only broad phase in bars");
    }
}

/// Returns a list with this entry first.
fn with_first<T: Copy + PartialEq>(first: T, all: &[T]) -> Vec<T> {
    let others = all.iter().copied().filter(|&one| one != first);
    std::iter::once(first).chain(others).collect()
}

/// Adds a choice from a list of names.
fn choice<T: Copy + PartialEq + Display>(ui: &mut Ui, label: &str, chosen: &mut T, all: &[T]) {
    ui.horizontal(|ui| {
        ui.label(label);
        let list = ComboBox::from_id_salt(label).selected_text(chosen.to_string());
        list.show_ui(ui, |ui| {
            for &one in all {
                ui.selectable_value(chosen, one, one.to_string());
            }
        });
    });
}
