//! The figures: stage times as stacked bars and as a table, and the report of a frame.

use super::style::set_gaps;
use crate::state::Viewer;
use crate::timeline::{DRAW, RENDER, Record, Span, Timeline, axis_name};
use egui::{Color32, Grid, Rangef, Stroke, Ui, vec2};
use egui_plot::{Bar, BarChart, GridInput, GridMark, Plot, VLine};
use radsweep_common::numbers::grouped;

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

/// What the rows of a frame mean, where a name does not say it.
const ABOUT: [(&str, &str); 10] = [
    (
        "pairs",
        "what the broad phase found; resting are those of two sleeping boxes, which it leaves out",
    ),
    (
        "started, ended",
        "pairs that are new in this frame, and pairs that only the frame before had",
    ),
    ("tests", "how many times two boxes were tested"),
    (
        "per pair",
        "tests for each pair found; more where boxes have few pairs",
    ),
    (
        "sweep axis",
        "the axis along which the last full search ordered the boxes",
    ),
    (
        "last plan",
        "the strategy of the last planned search; a frame that is like the last one reuses its \
         pairs, its candidates or a tree",
    ),
    ("sorted", "boxes or their ends, and pairs"),
    (
        "rate",
        "sorted keys per second of the stages that sort them",
    ),
    (
        "of the byte limit",
        "the rate, compared with a plain copy of the bytes that the sort must move",
    ),
    (
        "buffers grown",
        "buffers that were too small, so that a step was repeated",
    ),
];

/// What the times in the reason of `Auto` are.
const ESTIMATES: &str = "estimates by a sample of the boxes, not measured: the time of one thread on \
                         the CPU, of the device on a GPU";

impl Viewer {
    /// Returns the stages of the bars with the index of their colour.
    fn barred(&self) -> Vec<(usize, &'static str)> {
        let mut stages = self.timeline.stages();
        stages.extend([DRAW, RENDER]);
        let last = self.timeline.last();
        let paired: Vec<&str> = match last {
            Some(last) => last.report.stats.timings.stages().map(|s| s.0).collect(),
            None => Vec::new(),
        };
        let shown = stages.into_iter().enumerate().filter(|(_, name)| {
            if self.broad_phase_only {
                paired.contains(name)
            } else {
                self.drawing || ![DRAW, RENDER].contains(name)
            }
        });
        shown.collect()
    }

    /// Shows the stages of frames as stacked bars. A click selects a frame, the wheel zooms, a drag
    /// scrolls.
    pub(super) fn stacked(&mut self, ui: &mut Ui) {
        let stages = self.barred();
        let last = self.timeline.last().map_or(1, |record| record.frame) as f64;
        let (first, end) = self.span.bounds(last);
        let inside = |record: &&Record| (first..=end).contains(&(record.frame as f64));
        let shown: Vec<&Record> = self.timeline.iter().filter(inside).collect();
        let height = |record: &&Record| {
            let times = stages.iter().filter_map(|&(_, name)| record.stage(name));
            times.sum::<f64>()
        };
        // A single slow frame, such as the first, must not flatten all others.
        let mut totals: Vec<f64> = shown.iter().map(height).collect();
        totals.sort_unstable_by(f64::total_cmp);
        let high = totals.get(totals.len() * 98 / 100);
        let highest = high.map_or(1.0, |&high| high * 1.25);
        let plot = Plot::new("stages")
            .allow_drag(false)
            .allow_zoom(false)
            .allow_scroll(false)
            .allow_boxed_zoom(false)
            .show_grid([false, true])
            .show_x(false)
            .show_y(false)
            .set_margin_fraction(vec2(0.0, 0.0))
            .grid_spacing(Rangef::new(1.0, 300.0))
            .x_grid_spacer(|axis| frame_marks(&axis))
            .y_grid_spacer(|axis| {
                let mut marks = marks(&axis, 32.0);
                // The label of a mark at the very top would be cut off.
                let highest = axis.bounds.1 - 7.0 * axis.base_step_size;
                marks.retain(|mark| mark.value <= highest);
                marks
            })
            .x_axis_formatter(|mark, _| mark.value.to_string())
            .y_axis_formatter(|mark, _| label(mark))
            .y_axis_label("ms");
        let inspected = self.inspected;
        let response = plot.show(ui, |plot| {
            let least = self.span.frames.min(Span::default().frames / 4.0);
            plot.set_plot_bounds_x(first.max(0.5) - 0.5..=(end + 0.5).max(least));
            plot.set_plot_bounds_y(0.0..=highest.max(1e-6));
            for (bars, (_, name)) in bars(&shown, &stages).into_iter().zip(&stages) {
                plot.bar_chart(BarChart::new(*name, bars).allow_hover(false));
            }
            if let Some(frame) = inspected {
                plot.vline(VLine::new("inspected", frame as f64).color(Color32::WHITE));
            }
        });
        let at = |position| response.transform.value_from_position(position).x.round();
        let hovered = response.response.hover_pos().map(at);
        let clicked = response.response.clicked();
        let (dragged, width) = (
            response.response.drag_delta().x,
            response.response.rect.width().max(1.0),
        );
        let wheel = ui.input(|input| input.smooth_scroll_delta().y);
        let record = hovered.and_then(|frame| self.timeline.find(frame.max(0.0) as u64));
        if let Some(record) = record {
            let about = about(record, &stages);
            response.response.on_hover_text_at_pointer(about);
        }
        if let Some(frame) = hovered {
            self.span.zoom(f64::from(wheel) / 40.0);
            if clicked && frame >= 1.0 {
                self.inspect(frame as u64);
            }
        }
        let all = self.timeline.iter().len();
        self.span.scroll(f64::from(dragged / width), all);
    }

    /// Shows the figures of one frame, and the stage times of all frames.
    pub(super) fn figures(&self, ui: &mut Ui) {
        set_gaps(ui);
        let Some(record) = self.record() else {
            ui.weak("no frame yet");
            return;
        };
        let shown = self.shown().map(|shown| shown.frame);
        let inspected = match self.inspected {
            None => "",
            Some(frame) if shown == Some(frame) => " (selected)",
            Some(_) => " (selected, picture dropped)",
        };
        let frame = format!("Frame {}{inspected}", grouped(record.frame));
        ui.horizontal(|ui| {
            ui.strong(frame);
            if let Some(rate) = self.rate.per_second() {
                ui.label(format!("{rate:.1} pictures per second"));
            }
        });
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
                let last = format!("the last {} frames", Timeline::CAPACITY);
                for (heading, about) in [
                    ("this", "of this frame".into()),
                    ("median", format!("half of {last} took less")),
                    ("p99", format!("99th percentile: 99 % of {last} took less")),
                ] {
                    ui.monospace(format!("{heading:>8}")).on_hover_text(about);
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

/// Returns the round numbers of an axis (one, two or five times a power of ten) that are at least
/// this many points apart.
fn marks(axis: &GridInput, apart: f64) -> Vec<GridMark> {
    // The base is the distance of the plot's `grid_spacing`: a point.
    let least = (axis.base_step_size * apart).max(f64::MIN_POSITIVE);
    let power = 10.0_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|times| times * power);
    let step = steps.into_iter().find(|&step| step >= least);
    let step_size = step.unwrap_or(10.0 * power);
    let (low, high) = axis.bounds;
    let mut marks = Vec::new();
    let mut value = (low / step_size).ceil() * step_size;
    while value <= high && step_size.is_finite() && marks.len() < 100 {
        marks.push(GridMark { value, step_size });
        value += step_size;
    }
    marks
}

/// Returns the marks of the axis of frames, which are whole. The label of one at the very left
/// would reach those of the other axis, and at the very right it would be cut off.
fn frame_marks(axis: &GridInput) -> Vec<GridMark> {
    let (point, (low, high)) = (axis.base_step_size, axis.bounds);
    let inner = low + 20.0 * point..=high - 12.0 * point;
    let mut marks = marks(axis, 80.0);
    marks.retain(|mark| inner.contains(&mark.value) && mark.value.fract() == 0.0);
    marks
}

/// Returns the label of a mark, with the decimals that its step needs.
fn label(mark: GridMark) -> String {
    let decimals = (-mark.step_size.log10() - 1e-9).ceil().clamp(0.0, 12.0) as usize;
    format!("{:.decimals$}", mark.value)
}

/// Returns the bars of each stage, in the order of the stages, one on top of the other.
fn bars(records: &[&Record], stages: &[(usize, &'static str)]) -> Vec<Vec<Bar>> {
    let mut bars: Vec<Vec<Bar>> = vec![Vec::new(); stages.len()];
    for record in records {
        let mut below = 0.0;
        for (bars, &(index, name)) in bars.iter_mut().zip(stages) {
            let ms = record.stage(name).unwrap_or(0.0);
            let bar = Bar::new(record.frame as f64, ms).width(1.0);
            let bar = bar.fill(colour(index)).stroke(Stroke::NONE);
            bars.push(bar.base_offset(below));
            below += ms;
        }
    }
    bars
}

/// Returns the times of a frame, a line for each stage that took any.
fn about(record: &Record, stages: &[(usize, &'static str)]) -> String {
    let mut text = format!("frame {}", grouped(record.frame));
    for &(_, name) in stages {
        if let Some(ms) = record.stage(name).filter(|&ms| ms > 0.0) {
            text += &format!("\n{name} {ms:.3} ms");
        }
    }
    text
}

/// Shows what the broad phase found in a frame, and how.
fn found(ui: &mut Ui, record: &Record) {
    let (report, stats) = (&record.report, &record.report.stats);
    let plan = format!("{} on {}", stats.strategy, stats.backend);
    Grid::new("found")
        .num_columns(2)
        .striped(true)
        .show(ui, |ui| {
            let mut row = |name: &str, value: String| {
                let label = ui.label(name);
                if let Some(&(_, about)) = ABOUT.iter().find(|about| about.0 == name.trim()) {
                    label.on_hover_text(about);
                }
                ui.monospace(value);
                ui.end_row();
            };
            row("boxes", grouped(report.n as u64));
            row("pairs", pairs(report.pairs, record.resting));
            row(
                "started, ended",
                format!("+{} -{}", grouped(report.started), grouped(report.ended)),
            );
            row("tests", grouped(stats.tests));
            if report.pairs > 0 {
                row(
                    "  per pair",
                    format!("{:.1}", stats.tests as f64 / report.pairs as f64),
                );
            }
            row("last plan", plan);
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
                row("buffers grown", stats.regrown.to_string());
            }
        });
    if let Some(choice) = &stats.choice {
        ui.small(format!("{}: {choice}", stats.strategy))
            .on_hover_text(ESTIMATES);
    }
}

#[cfg(test)]
mod tests {
    use super::super::style;
    use super::*;
    use crate::sorting::Sorting;
    use crate::state::tests::viewer;

    #[test]
    fn the_bars_can_show_the_broad_phase_alone() {
        let mut viewer = viewer();
        let names = |viewer: &Viewer| -> Vec<&str> {
            viewer.barred().into_iter().map(|stage| stage.1).collect()
        };
        let all = names(&viewer);
        assert!(all.contains(&"place") && all.contains(&"sweep") && all.contains(&DRAW));
        let coloured = viewer.barred();
        viewer.broad_phase_only = true;
        let alone = names(&viewer);
        assert!(!alone.contains(&"place") && alone.contains(&"sweep") && !alone.contains(&DRAW));
        // The colours stay those of the table.
        assert!(viewer.barred().iter().all(|stage| coloured.contains(stage)));
        let record = viewer.timeline.last().expect("a frame");
        let text = about(record, &viewer.barred());
        assert!(
            text.starts_with("frame 1\n") && text.contains("sweep"),
            "{text}"
        );
    }

    #[test]
    fn the_figures_of_the_longest_list_fit_in_a_low_window() {
        let mut viewer = viewer();
        let mut record = viewer.timeline.last().expect("a frame").clone();
        record.frame += 1;
        // `galaxy` has the most stages, and a GPU the most rows.
        for stage in ["gravity", "neighbours", "collide"] {
            record.stages.push((stage, 1.0));
        }
        record.sorting = Some(Sorting {
            rate: 1e9,
            share: Some(0.9),
        });
        let sorts = &mut record.report.stats.sorts;
        (sorts.keys, sorts.passes_run) = (9868, 4);
        record.report.stats.regrown = 1;
        (record.draw, record.render) = (Some(1.0), Some(1.0));
        viewer.timeline.push(record);
        viewer.snapshot = None; // no picked body
        let context = egui::Context::default();
        style(&context);
        let input = egui::RawInput {
            screen_rect: Some(egui::Rect::from_min_size(
                egui::Pos2::ZERO,
                vec2(800.0, 600.0),
            )),
            ..egui::RawInput::default()
        };
        let mut bottom = 0.0;
        let mut output = context.run_ui(input, |ui| {
            egui::Panel::right("figures")
                .exact_size(322.0)
                .show(ui, |ui| {
                    viewer.figures(ui);
                    viewer.picked(ui);
                    bottom = ui.min_rect().bottom();
                });
        });
        output.textures_delta.clear(); // nothing draws
        assert!((500.0..600.0).contains(&bottom), "{bottom}");
    }

    #[test]
    fn marks_are_round_and_far_enough_apart() {
        let at = |high: f64, points: f64| {
            let axis = GridInput {
                bounds: (0.0, high),
                base_step_size: high / points,
            };
            marks(&axis, 32.0)
                .iter()
                .map(|mark| mark.value)
                .collect::<Vec<_>>()
        };
        assert_eq!(at(90.0, 147.0), [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert_eq!(at(100.0, 147.0), [0.0, 50.0, 100.0]);
        assert_eq!(at(4e-3, 147.0), [0.0, 1e-3, 2e-3, 3e-3, 4e-3]);
        assert!(at(1e-6, 147.0).len() > 1 && at(1e9, 147.0).len() > 1);
        assert!(at(f64::NAN, 147.0).is_empty());
    }

    #[test]
    fn labels_of_marks_are_their_values() {
        let at = |high: f64| {
            let axis = GridInput {
                bounds: (0.0, high),
                base_step_size: high / 100.0,
            };
            marks(&axis, 32.0)
                .into_iter()
                .map(label)
                .collect::<Vec<_>>()
        };
        assert_eq!(at(1.5), ["0.0", "0.5", "1.0", "1.5"]);
        assert_eq!(at(0.14), ["0.00", "0.05", "0.10"]);
        assert_eq!(at(0.31), ["0.0", "0.1", "0.2", "0.3"]);
        assert_eq!(at(3.0), ["0", "1", "2", "3"]);
        assert_eq!(at(6000.0), ["0", "2000", "4000", "6000"]);
        for high in (1..400).map(|n| f64::from(n) * 0.0137) {
            let labels = at(high);
            let parsed: Vec<f64> = labels
                .iter()
                .map(|l| l.parse().expect("a number"))
                .collect();
            assert!(
                parsed.windows(2).all(|two| two[0] < two[1]),
                "{high}: {labels:?}"
            );
        }
    }

    #[test]
    fn labels_of_frames_are_whole_and_away_from_the_corners() {
        let at = |bounds: (f64, f64)| {
            let base_step_size = (bounds.1 - bounds.0) / 700.0;
            let axis = GridInput {
                bounds,
                base_step_size,
            };
            let marks = frame_marks(&axis).into_iter();
            marks.map(|mark| mark.value).collect::<Vec<_>>()
        };
        assert_eq!(at((120.0, 300.0)), [150.0, 200.0, 250.0]);
        assert_eq!(at((0.0, 45.0)), [10.0, 20.0, 30.0, 40.0]);
        assert_eq!(at((6.0, 10.0)), [7.0, 8.0, 9.0]);
    }

    #[test]
    fn resting_pairs_are_counted_beside_those_awake() {
        assert_eq!(pairs(1234, 0), "1,234");
        assert_eq!(pairs(0, 31_000), "0 awake, 31,000 resting");
    }
}
