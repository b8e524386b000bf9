//! The panel on the left: scene, broad phase, speed and drawing options.

use crate::look::Colour;
use crate::state::{Request, Viewer};
use egui::{Button, Checkbox, ComboBox, DragValue, Slider, Ui};
use radsweep::sort::Algorithm;
use radsweep::{Backend, Strategy};
use radsweep_scenes::{Kind, Options};
use std::fmt::Display;

impl Viewer {
    pub(super) fn controls(&mut self, ui: &mut Ui) {
        ui.heading("radsweep");
        ui.horizontal(|ui| {
            let play = if self.playing { "Pause" } else { "Play" };
            if ui.button(play).clicked() {
                self.play(!self.playing);
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
        ui.checkbox(&mut self.held, "No faster than the screen");
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
        choice(ui, "Scene", &mut wanted.kind, Kind::ALL);
        let (config, options) = (&mut wanted.config, &mut wanted.options);
        ui.horizontal(|ui| {
            ui.label("Bodies");
            let mut bodies = options.bodies.unwrap_or(wanted.kind.default_bodies());
            let speed = (bodies as f64 / 50.0).max(1.0);
            let drag = DragValue::new(&mut bodies).range(1..=Options::MAX_BOXES);
            // Updates while dragging or typing would build a scene for every value in between.
            let response = ui.add(drag.speed(speed).update_while_editing(false));
            let id = response.id.with("bodies");
            if response.changed() {
                ui.data_mut(|data| data.insert_temp(id, bodies));
            }
            if !response.dragged()
                && let Some(bodies) = ui.data_mut(|data| data.remove_temp(id))
            {
                options.bodies = Some(bodies);
            }
        });
        ui.horizontal(|ui| {
            ui.label("Seed");
            ui.add(DragValue::new(&mut options.seed).update_while_editing(false));
        });
        choice(ui, "Backend", &mut config.backend, Backend::ALL);
        choice(ui, "Strategy", &mut config.strategy, Strategy::ALL);
        choice(ui, "Sort", &mut config.sort, Algorithm::ALL);
        self.change(|settings| *settings = wanted);
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
            ui.label("Cut");
            ui.add(Slider::new(&mut look.cut, 0.0..=1.0).max_decimals(2));
        });
        ui.checkbox(&mut self.drawing, "Include drawing in bars");
        ui.checkbox(&mut self.broad_phase_only, "Only broad phase in bars");
    }
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
