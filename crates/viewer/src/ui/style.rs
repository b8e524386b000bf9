//! The colours, the text sizes and the spacing of the panels.

use crate::render::BACKGROUND;
use egui::{Color32, Context, FontId, TextStyle, Ui};

/// Size of the smallest text, in points.
const SMALLEST: f32 = 11.0;
/// Height of a window, in points, below which the rows of lists are closer to each other.
const LOW: f32 = 720.0;

/// Sets the colours and the spacing of the panels.
pub(crate) fn style(context: &Context) {
    context.set_theme(egui::Theme::Dark);
    context.all_styles_mut(|style| {
        let [r, g, b] = BACKGROUND;
        style.visuals.panel_fill = Color32::TRANSPARENT;
        style.visuals.window_fill = Color32::from_rgb(r, g, b);
        style.visuals.override_text_color = Some(Color32::from_gray(212));
        style.visuals.widgets.inactive.bg_fill = Color32::from_gray(70);
        style.visuals.selection.bg_fill = Color32::from_rgb(32, 92, 140);
        // The default of 9 is too small to read.
        style
            .text_styles
            .insert(TextStyle::Small, FontId::proportional(SMALLEST));
        // All controls fit in 600 points.
        style.spacing.item_spacing = egui::vec2(6.0, 3.0);
    });
}

/// Sets the gaps between the rows of a list: the longest fits in a window of 600 points.
pub(super) fn set_gaps(ui: &mut Ui) {
    if ui.ctx().content_rect().height() < LOW {
        ui.spacing_mut().item_spacing.y = 1.0;
        ui.spacing_mut().interact_size.y = 16.0;
    }
}
