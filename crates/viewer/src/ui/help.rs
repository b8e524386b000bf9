//! The list of keys.

use super::style::set_gaps;
use egui::{Context, Id, Pos2, ScrollArea};

/// The keys and pointer actions with their effects.
const HELP: [(&str, &str); 29] = [
    ("drag", "orbit"),
    ("right drag", "look around"),
    ("middle or shift drag", "pan"),
    ("wheel", "zoom"),
    ("W A S D Q E", "fly; faster with shift"),
    ("click", "pick a body"),
    ("double click, F", "focus on the picked body, or on all"),
    (
        "Escape",
        "deselect, return to the newest frame, close the message",
    ),
    ("bars: click, wheel, drag", "select a frame, zoom, scroll"),
    (
        "O  Z",
        "throw a ball at the pointer, set off an explosion there",
    ),
    ("Ctrl drag", "drag a body by a spring"),
    ("I", "add bodies"),
    ("Space", "play, pause"),
    (".", "run one frame"),
    ("R", "reset"),
    ("+  -", "faster, slower"),
    ("T", "next strategy"),
    ("Y", "next sort"),
    ("B", "next backend"),
    ("C", "next colour"),
    ("X  U", "boxes, shadows"),
    ("V", "sweep axis"),
    ("G", "columns or cells of subdivided"),
    ("L  N", "pairs of the picked body, of all bodies"),
    ("P  K", "save a picture, save the times as CSV"),
    ("[  ]", "cut away less, more of the scene from the front"),
    ("H  F1", "panels, this list"),
    ("1  2  3", "panel on the left, on the right, below"),
    ("Ctrl Q, Ctrl W", "close"),
];

/// Shows the list, at first here.
pub(super) fn show(context: &Context, open: &mut bool, at: Pos2) {
    egui::Window::new("Keys")
        .id(Id::unique("keys"))
        .open(open)
        .resizable(false)
        .default_pos(at)
        .show(context, |ui| {
            set_gaps(ui);
            // It scrolls in a very low window, in which its title needs room too.
            let height = context.content_rect().height() - 70.0;
            let list = ScrollArea::vertical().max_height(height);
            list.min_scrolled_height(height).show(ui, |ui| {
                egui::Grid::new("keys").num_columns(2).show(ui, |ui| {
                    for (key, what) in HELP {
                        ui.strong(key);
                        ui.label(what);
                        ui.end_row();
                    }
                });
            });
        });
}

#[cfg(test)]
mod tests {
    use super::super::style;
    use super::*;
    use egui::{RawInput, Rect, vec2};

    #[test]
    fn all_keys_are_listed_at_once() {
        for (height, row) in [(800.0, 23.0), (600.0, 17.0)] {
            let context = Context::default();
            style(&context);
            let size = vec2(800.0, height);
            for _ in 0..3 {
                let input = RawInput {
                    screen_rect: Some(Rect::from_min_size(Pos2::ZERO, size)),
                    ..RawInput::default()
                };
                let at = Pos2::new(222.0, 16.0);
                let mut output = context.run_ui(input, |ui| show(ui.ctx(), &mut true, at));
                output.textures_delta.clear(); // nothing draws
            }
            let list = context.memory(|memory| memory.area_rect(Id::unique("keys")));
            let list = list.expect("it is shown");
            let rows = row * HELP.len() as f32;
            assert!(list.height() > rows && list.bottom() <= height, "{list:?}");
        }
    }
}
