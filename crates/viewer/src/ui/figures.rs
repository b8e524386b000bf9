//! The figures: stage times as stacked bars and as a table, and the report of a frame.

use super::grouped;
use crate::state::Viewer;
use crate::timeline::{DRAW, RENDER, Record, axis_name};
use egui::{Color32, Grid, Stroke, Ui, vec2};
use egui_plot::{Bar, BarChart, Plot, VLine};

/// Frames that the stacked bars show.
const SHOWN: usize = 180;

/// Returns the colour of a stage by its index; neighbours differ.
fn colour(index: usize) -> Color32 {
    const COLOURS: [[u8; 3]; 14] = [
        [110, 118, 129],
        [86, 180, 233],
        [0, 114, 178],
        [0, 158, 115],
        [240, 196, 66],
        [230, 126, 34],
        [213, 80, 62],
        [204, 121, 167],
        [148, 103, 189],
        [120, 200, 160],
        [190, 150, 110],
        [150, 170, 220],
        [225, 225, 225],
        [128, 96, 60],
    ];
    let [r, g, b] = COLOURS[index % COLOURS.len()];
    Color32::from_rgb(r, g, b)
}

impl Viewer {
    /// Shows the stages of the last frames as stacked bars; a click selects a frame.
    pub(super) fn stacked(&mut self, ui: &mut Ui) {
        let mut stages = self.timeline.stages();
        if self.drawing {
            stages.extend([DRAW, RENDER]);
        }
        let skipped = self.timeline.iter().len().saturating_sub(SHOWN);
        let mut bars: Vec<Vec<Bar>> = vec![Vec::new(); stages.len()];
        for record in self.timeline.iter().skip(skipped) {
            let mut below = 0.0;
            for ((index, bars), name) in bars.iter_mut().enumerate().zip(&stages) {
                let ms = record.stage(name).unwrap_or(0.0);
                let bar = Bar::new(record.frame as f64, ms).width(1.0);
                let bar = bar.fill(colour(index)).stroke(Stroke::NONE);
                bars.push(bar.base_offset(below));
                below += ms;
            }
        }
        let last = self.timeline.last().map_or(1, |record| record.frame) as f64;
        let first = (last - SHOWN as f64).max(0.0) + 0.5;
        let highest = {
            let shown = self.timeline.iter().skip(skipped);
            // A single slow frame, such as the first, must not flatten all others.
            let height = |record: &Record| {
                let times = stages.iter().filter_map(|name| record.stage(name));
                times.sum::<f64>()
            };
            let mut totals: Vec<f64> = shown.map(height).collect();
            totals.sort_unstable_by(f64::total_cmp);
            totals
                .get(totals.len() * 98 / 100)
                .map_or(1.0, |&high| high * 1.25)
        };
        let plot = Plot::new("stages")
            .allow_drag(false)
            .allow_zoom(false)
            .allow_scroll(false)
            .allow_boxed_zoom(false)
            .show_grid([false, true])
            .set_margin_fraction(vec2(0.0, 0.0))
            .y_axis_label("ms");
        let response = plot.show(ui, |plot| {
            plot.set_plot_bounds_x(first..=(last + 0.5).max(SHOWN as f64 / 4.0));
            plot.set_plot_bounds_y(0.0..=highest.max(1e-6));
            for (bars, name) in bars.into_iter().zip(&stages) {
                plot.bar_chart(BarChart::new(*name, bars).allow_hover(false));
            }
            if let Some(frame) = self.inspected {
                plot.vline(VLine::new("inspected", frame as f64).color(Color32::WHITE));
            }
        });
        let pointer = response.response.interact_pointer_pos();
        if response.response.clicked()
            && let Some(at) = pointer
        {
            let frame = response.transform.value_from_position(at).x.round();
            if frame >= 1.0 {
                self.inspect(frame as u64);
            }
        }
    }

    /// Shows the figures of one frame, and the stage times of all frames.
    pub(super) fn figures(&self, ui: &mut Ui) {
        let Some(record) = self.record() else {
            ui.weak("no frame yet");
            return;
        };
        let inspected = if self.inspected.is_some() {
            " (selected)"
        } else {
            ""
        };
        ui.strong(format!("Frame {}{inspected}", grouped(record.frame)));
        found(ui, record);
        ui.separator();
        self.times(ui, record);
    }

    /// Shows each stage's time in this frame, its median and its 99th percentile.
    fn times(&self, ui: &mut Ui, record: &Record) {
        let mut stages = self.timeline.stages();
        stages.extend([DRAW, RENDER]);
        Grid::new("times")
            .num_columns(4)
            .striped(true)
            .show(ui, |ui| {
                ui.strong("ms");
                for heading in ["this", "median", "99 %"] {
                    ui.monospace(format!("{heading:>8}"));
                }
                ui.end_row();
                for row in self.timeline.summary() {
                    let swatch = stages.iter().position(|&stage| stage == row.name);
                    ui.horizontal(|ui| {
                        let (rect, _) =
                            ui.allocate_exact_size(vec2(9.0, 9.0), egui::Sense::hover());
                        let fill = swatch.map_or(Color32::TRANSPARENT, colour);
                        ui.painter().rect_filled(rect, 2.0, fill);
                        ui.label(row.name);
                    });
                    let this = record.stage(row.name);
                    for ms in [this, Some(row.median), Some(row.p99)] {
                        let text = ms.map_or_else(|| "-".into(), |ms| format!("{ms:.3}"));
                        ui.monospace(format!("{text:>8}"));
                    }
                    ui.end_row();
                }
            });
    }
}

/// Returns the number of pairs, and if boxes sleep that of resting ones.
fn pairs(awake: u64, resting: u64) -> String {
    let awake = grouped(awake);
    match resting {
        0 => awake,
        _ => format!("{awake} awake, {} resting", grouped(resting)),
    }
}

/// Shows what the broad phase found in a frame, and how.
fn found(ui: &mut Ui, record: &Record) {
    let (report, stats) = (&record.report, &record.report.stats);
    let ran = format!("{} on {}", stats.strategy, stats.backend);
    Grid::new("found")
        .num_columns(2)
        .striped(true)
        .show(ui, |ui| {
            let mut row = |name: &str, value: String| {
                ui.label(name);
                ui.monospace(value);
                ui.end_row();
            };
            row("boxes", grouped(report.n as u64));
            row("pairs", pairs(report.pairs, record.resting));
            row(
                "started, ended",
                format!("+{} -{}", grouped(report.started), grouped(report.ended)),
            );
            row("candidates", grouped(stats.tests));
            if report.pairs > 0 {
                row(
                    "  per pair",
                    format!("{:.1}", stats.tests as f64 / report.pairs as f64),
                );
            }
            row("ran", ran);
            row("sweep axis", axis_name(stats.axis).into());
            let sorts = &stats.sorts;
            if sorts.keys > 0 {
                row("sorted", format!("{} keys", grouped(sorts.keys)));
            }
            if let Some(sorting) = record.sorting {
                row("  rate", format!("{:.1} M keys/s", sorting.rate / 1e6));
                if let Some(share) = sorting.share {
                    row("  of the byte limit", format!("{:.1} %", share * 1e2));
                }
            }
            if sorts.passes_run + sorts.passes_skipped > 0 {
                let (run, skipped) = (sorts.passes_run, sorts.passes_skipped);
                row("  passes", format!("{run} run, {skipped} skipped"));
                row("  early exits", sorts.early_exits.to_string());
            }
            if stats.regrown > 0 {
                row("repeated", format!("{} times, for capacity", stats.regrown));
            }
        });
    if let Some(choice) = &stats.choice {
        ui.small(format!("{}: {choice}", stats.strategy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resting_pairs_are_counted_beside_those_awake() {
        assert_eq!(pairs(1234, 0), "1,234");
        assert_eq!(pairs(0, 31_000), "0 awake, 31,000 resting");
    }
}
