//! The reports and stage times of the last frames: the figures of the panels, and their CSV.

use super::sorting::{SortLimit, Sorting};
use radsweep::Report;
use radsweep_scenes::Step;
use std::collections::VecDeque;
use std::fmt::Write;

/// One simulated frame.
#[derive(Debug, Clone)]
pub(super) struct Record {
    /// The frame, counted from 1 since the scene was built.
    pub frame: u64,
    pub report: Report,
    /// The milliseconds of every stage of the scene and the broad phase, in the order they run.
    pub stages: Vec<(&'static str, f64)>,
    /// Milliseconds of the frame: the sum of its stages.
    pub total: f64,
    /// The rate of its sorts, if there were any.
    pub sorting: Option<Sorting>,
    /// Number of resting pairs, which the report leaves out.
    pub resting: u64,
    /// Milliseconds of the host to draw the frame, once it was drawn.
    pub draw: Option<f64>,
    /// Milliseconds of the device to draw the frame, if it has timestamps.
    pub render: Option<f64>,
}

impl Record {
    pub fn new(frame: u64, step: Step, limit: SortLimit, resting: u64) -> Self {
        Self {
            frame,
            stages: step.all_stages().collect(),
            total: step.total(),
            sorting: Sorting::of(&step.report, limit),
            report: step.report,
            resting,
            draw: None,
            render: None,
        }
    }

    /// Returns the milliseconds of a stage, of the whole frame or of drawing; `None` for an unknown
    /// name.
    pub fn stage(&self, name: &str) -> Option<f64> {
        match name {
            FRAME => Some(self.total),
            DRAW => self.draw,
            RENDER => self.render,
            _ => {
                let found = self.stages.iter().find(|stage| stage.0 == name);
                found.map(|stage| stage.1)
            }
        }
    }
}

/// Median and 99th percentile of a stage over all frames, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    pub name: &'static str,
    pub median: f64,
    pub p99: f64,
}

/// The newest records, oldest first.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    records: VecDeque<Record>,
}

/// The stage names of drawing, on the host and on the device.
pub(super) const DRAW: &str = "draw";
pub(super) const RENDER: &str = "render";
/// The name of the whole frame without drawing.
pub(super) const FRAME: &str = "frame";

impl Timeline {
    /// Max frames: ten seconds at 60 frames per second.
    pub const CAPACITY: usize = 600;

    pub fn push(&mut self, record: Record) {
        // A new scene counts from 1 again: the frames before it are dropped.
        if self
            .records
            .back()
            .is_some_and(|last| record.frame <= last.frame)
        {
            self.records.clear();
        }
        if self.records.len() == Self::CAPACITY {
            self.records.pop_front();
        }
        self.records.push_back(record);
    }

    /// Records the milliseconds in which the host drew a frame.
    pub fn drawn(&mut self, frame: u64, ms: f64) {
        if let Some(at) = self.index_of(frame) {
            self.records[at].draw = Some(ms);
        }
    }

    /// Records the milliseconds in which the device drew a frame.
    pub fn rendered(&mut self, frame: u64, ms: f64) {
        if let Some(at) = self.index_of(frame) {
            self.records[at].render = Some(ms);
        }
    }

    fn index_of(&self, frame: u64) -> Option<usize> {
        let found = self
            .records
            .binary_search_by_key(&frame, |record| record.frame);
        found.ok()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Record> + ExactSizeIterator {
        self.records.iter()
    }

    pub fn last(&self) -> Option<&Record> {
        self.records.back()
    }

    pub fn find(&self, frame: u64) -> Option<&Record> {
        self.index_of(frame).map(|at| &self.records[at])
    }

    /// Returns every stage of any record, in the order they run.
    pub fn stages(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for &(name, _) in self.records.iter().flat_map(|record| &record.stages) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Returns the median and the 99th percentile of every stage, of the whole frame and of
    /// drawing, in O(stages · records · log records).
    pub fn summary(&self) -> Vec<Row> {
        let row = |name: &'static str| {
            let times = self.records.iter().filter_map(|record| record.stage(name));
            let [median, p99] = quantiles(times.collect(), [0.5, 0.99])?;
            Some(Row { name, median, p99 })
        };
        let names = self.stages().into_iter().chain([FRAME, DRAW, RENDER]);
        names.filter_map(row).collect()
    }

    /// Returns a line of names, then one line per frame. Cells without a measurement are empty.
    pub fn csv(&self) -> String {
        let names = self.stages();
        let mut csv =
            String::from("frame,boxes,pairs,started,ended,tests,backend,strategy,axis,regrown");
        csv += ",sorted,passes_run,passes_skipped,early_exits,resting_pairs";
        let names = [names, vec![FRAME, DRAW, RENDER]].concat();
        for name in &names {
            // Writing to a string never fails.
            let _ = write!(csv, ",{name}_ms");
        }
        csv.push('\n');
        for record in &self.records {
            let (report, sorts) = (&record.report, &record.report.stats.sorts);
            // As above.
            let _ = write!(
                csv,
                "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                record.frame,
                report.n,
                report.pairs,
                report.started,
                report.ended,
                report.stats.tests,
                report.stats.backend,
                report.stats.strategy,
                axis_name(report.stats.axis),
                report.stats.regrown,
                sorts.keys,
                sorts.passes_run,
                sorts.passes_skipped,
                sorts.early_exits,
                record.resting
            );
            for ms in names.iter().map(|name| record.stage(name)) {
                csv.push(',');
                if let Some(ms) = ms {
                    // As above.
                    let _ = write!(csv, "{ms:.4}");
                }
            }
            csv.push('\n');
        }
        csv
    }
}

/// The part of the timeline that the stacked bars show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span {
    /// Number of frames.
    pub frames: f64,
    /// Frames after the last one that is shown.
    back: f64,
}

impl Default for Span {
    fn default() -> Self {
        Self {
            frames: 180.0,
            back: 0.0,
        }
    }
}

impl Span {
    /// Min and max number of frames.
    const FRAMES: (f64, f64) = (12.0, Timeline::CAPACITY as f64);

    /// Shows fewer frames (steps above 0) or more, in steps of the wheel.
    pub fn zoom(&mut self, steps: f64) {
        let frames = self.frames * 0.88_f64.powf(steps);
        self.frames = frames.clamp(Self::FRAMES.0, Self::FRAMES.1);
    }

    /// Moves back in time by a share of the shown frames, at most to the first of `all` frames.
    pub fn scroll(&mut self, part: f64, all: usize) {
        let oldest = (all as f64 - self.frames).max(0.0);
        self.back = (self.back + part * self.frames).clamp(0.0, oldest);
    }

    /// Returns the first and the last shown frame, where `last` is the newest.
    pub fn bounds(self, last: f64) -> (f64, f64) {
        let last = last - self.back.round();
        (last - self.frames.round() + 1.0, last)
    }
}

/// Returns `x`, `y` or `z`.
pub(super) const fn axis_name(axis: usize) -> &'static str {
    match axis {
        0 => "x",
        1 => "y",
        _ => "z",
    }
}

/// Returns the quantiles of a list (nearest rank); `None` for an empty list.
fn quantiles<const N: usize>(mut values: Vec<f64>, parts: [f64; N]) -> Option<[f64; N]> {
    let last = values.len().checked_sub(1)?;
    values.sort_unstable_by(f64::total_cmp);
    Some(parts.map(|part| {
        let rank = (part * values.len() as f64).ceil() as usize;
        values[rank.saturating_sub(1).min(last)]
    }))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use radsweep::{Aabb, Backend, BroadPhase, Config};

    /// A record of an update of two boxes, with these stages and their sum.
    pub fn record(frame: u64, stages: &[(&'static str, f64)]) -> Record {
        let config = Config {
            backend: Backend::Cpu,
            ..Config::default()
        };
        let mut broad_phase = BroadPhase::new(config).expect("the CPU is there");
        let boxes = [Aabb::new([0.0; 3], [1.0; 3]); 2];
        Record {
            frame,
            report: broad_phase.update(&boxes).expect("valid").clone(),
            stages: stages.to_vec(),
            total: stages.iter().map(|stage| stage.1).sum(),
            sorting: None,
            resting: 0,
            draw: None,
            render: None,
        }
    }

    #[test]
    fn the_bars_zoom_and_scroll_within_the_timeline() {
        let mut span = Span::default();
        assert_eq!(span.bounds(600.0), (421.0, 600.0));
        span.scroll(0.5, 600);
        assert_eq!(span.bounds(600.0), (331.0, 510.0));
        span.scroll(100.0, 600);
        assert_eq!(span.bounds(600.0), (1.0, 180.0));
        span.scroll(-100.0, 600);
        span.zoom(1e3);
        assert_eq!(span.bounds(600.0), (589.0, 600.0));
        span.zoom(-1e3);
        assert_eq!(span.bounds(600.0), (1.0, 600.0));
        span.scroll(0.5, 10);
        assert_eq!(span.back, 0.0, "few frames do not scroll");
    }

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let hundred = (1..=100).rev().map(f64::from).collect();
        assert_eq!(
            quantiles(hundred, [0.5, 0.99, 1.0]),
            Some([50.0, 99.0, 100.0])
        );
        assert_eq!(quantiles(vec![3.0], [0.0, 0.5, 0.99]), Some([3.0; 3]));
        assert_eq!(quantiles(Vec::new(), [0.5]), None);
    }

    #[test]
    fn the_summary_has_every_stage_the_frame_and_the_drawing() {
        let mut timeline = Timeline::default();
        for frame in 1..=100 {
            timeline.push(record(frame, &[("sort", frame as f64), ("sweep", 1.0)]));
        }
        timeline.drawn(100, 3.0);
        timeline.rendered(99, 7.0);
        timeline.rendered(101, 9.0); // does not exist
        let rows = timeline.summary();
        let row = |name: &str| rows.iter().find(|row| row.name == name).copied();
        let expected = |name, median, p99| Some(Row { name, median, p99 });
        assert_eq!(row("sort"), expected("sort", 50.0, 99.0));
        assert_eq!(row("sweep"), expected("sweep", 1.0, 1.0));
        assert_eq!(row(FRAME), expected(FRAME, 51.0, 100.0));
        assert_eq!(row(DRAW), expected(DRAW, 3.0, 3.0));
        assert_eq!(row(RENDER), expected(RENDER, 7.0, 7.0));
        assert_eq!(rows.len(), 5);
    }

    #[test]
    fn old_frames_are_dropped_and_a_new_scene_starts_over() {
        let mut timeline = Timeline::default();
        for frame in 1..=Timeline::CAPACITY as u64 + 5 {
            timeline.push(record(frame, &[]));
        }
        assert_eq!(timeline.iter().len(), Timeline::CAPACITY);
        assert_eq!(timeline.iter().next().map(|record| record.frame), Some(6));
        assert!(timeline.find(5).is_none() && timeline.find(6).is_some());
        timeline.push(record(1, &[]));
        assert_eq!(timeline.iter().len(), 1);
    }

    #[test]
    fn the_csv_has_a_column_for_every_stage_of_any_frame() {
        let mut timeline = Timeline::default();
        timeline.push(record(1, &[("sort", 0.5)]));
        timeline.push(record(2, &[("sort", 0.25), ("solve", 2.0)]));
        timeline.rendered(2, 3.0);
        let csv = timeline.csv();
        let lines: Vec<&str> = csv.lines().collect();
        let names = "frame,boxes,pairs,started,ended,tests,backend,strategy,axis,regrown,\
                     sorted,passes_run,passes_skipped,early_exits,resting_pairs";
        assert_eq!(
            lines[0],
            format!("{names},sort_ms,solve_ms,frame_ms,draw_ms,render_ms")
        );
        assert!(lines[1].starts_with("1,2,1,1,0,"), "{csv}");
        assert!(lines[1].ends_with(",0.5000,,0.5000,,"), "{csv}");
        assert!(lines[2].ends_with(",0.2500,2.0000,2.2500,,3.0000"), "{csv}");
        let columns = |line: &str| line.split(',').count();
        assert!(lines.iter().all(|line| columns(line) == columns(lines[0])));
    }
}
