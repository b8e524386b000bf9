//! Plots results as an SVG: one panel per group. Sizes are a logarithmic axis with a line per
//! series; rows that have no order are groups of bars.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use radsweep_common::{Result, output};
use std::error::Error;
use std::io;
use std::ops::Range;
use std::path::Path;

/// Pixels of the picture, and of the legend at its right side.
const WIDTH: u32 = 960;
const LEGEND: u32 = 190;
/// Pixels of a panel with lines.
const HEIGHT: u32 = 440;
/// Pixels of a bar, of the gap between two groups of bars, and of what stands above and below.
const BAR: u32 = 10;
const GAP: u32 = 10;
const AROUND_BARS: u32 = 110;
/// Pixels of a letter of the labels, about.
const LETTER: u32 = 7;
/// The font of labels. The library's own is smaller in a low panel.
const LABEL: (&str, u32) = ("sans-serif", 14);
/// Colours that colour-blind readers can distinguish (Okabe and Ito), and four for the series
/// beyond those: enough for the contenders of `bench sap`. They repeat.
const COLOURS: [RGBColor; 12] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(150, 150, 150),
    RGBColor(110, 60, 160),
    RGBColor(120, 70, 20),
    RGBColor(130, 130, 0),
    RGBColor(20, 40, 120),
];

/// One chart.
pub(super) struct Panel {
    pub title: String,
    /// What the rows are.
    pub x: String,
    /// The unit of the values.
    pub y: String,
    /// The names of the rows. If all are sizes, they are an axis to scale.
    pub labels: Vec<String>,
    /// For each series its name, and its rows with their values.
    pub series: Vec<(String, Vec<(usize, f64)>)>,
}

/// Checks before the work that a path can be written.
pub(super) fn check(path: Option<&Path>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    output::check(path).map_err(|error| refused(path, error))
}

fn refused(path: &Path, error: io::Error) -> Box<dyn Error> {
    format!("cannot write {}: {error}", path.display()).into()
}

/// Writes the panels, one below the other, to one file.
pub(super) fn write(path: &Path, panels: &[Panel]) -> Result<()> {
    let mut svg = String::new();
    {
        let heights: Vec<u32> = panels.iter().map(Panel::height).collect();
        let size = (WIDTH, heights.iter().sum::<u32>().max(1));
        let mut rest = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        rest.fill(&WHITE)?;
        for (panel, height) in panels.iter().zip(heights) {
            let (area, below) = rest.split_vertically(height);
            panel.draw(&area)?;
            rest = below;
        }
        rest.present()?;
    }
    output::write(path, svg.as_bytes()).map_err(|error| refused(path, error))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

impl Panel {
    /// Adds a point to the series of that name.
    pub fn add(&mut self, name: &str, row: usize, value: f64) {
        match self.series.iter_mut().find(|series| series.0 == name) {
            Some(series) => series.1.push((row, value)),
            None => self.series.push((name.into(), vec![(row, value)])),
        }
    }

    /// Returns the sizes that the rows are, if there are several and all rows are sizes.
    fn sizes(&self) -> Option<Vec<f64>> {
        let sizes = self.labels.iter().map(|label| parse(label));
        let sizes: Option<Vec<f64>> = sizes.collect();
        sizes.filter(|sizes| sizes.len() > 1)
    }

    fn height(&self) -> u32 {
        let bars = (self.labels.len() * self.series.len()) as u32 * BAR;
        match self.sizes() {
            Some(_) => HEIGHT,
            None => {
                let legend = (self.series.len() as u32 + 1) * 20;
                AROUND_BARS + (bars + self.labels.len() as u32 * GAP).max(legend)
            }
        }
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        let points = self.series.iter().flat_map(|series| &series.1);
        points
            .map(|point| point.1)
            .filter(|value| value.is_finite())
    }

    fn draw(&self, area: &Area<'_>) -> Result<()> {
        let area = area.titled(&self.title, ("sans-serif", 18))?;
        let (chart, legend) = area.split_horizontally(WIDTH - LEGEND);
        self.draw_legend(&legend)?;
        match self.sizes() {
            Some(sizes) => self.draw_lines(&chart, &sizes),
            None => self.draw_bars(&chart),
        }
    }

    /// Returns the series with their colours.
    fn coloured(&self) -> impl Iterator<Item = (&str, &[(usize, f64)], RGBColor)> {
        let series = self.series.iter().zip(COLOURS.into_iter().cycle());
        series.map(|((name, points), colour)| (name.as_str(), points.as_slice(), colour))
    }

    fn draw_legend(&self, area: &Area<'_>) -> Result<()> {
        let style = LABEL.into_text_style(area);
        let style = style.pos(Pos::new(HPos::Left, VPos::Center));
        for (index, (name, _, colour)) in self.coloured().enumerate() {
            let y = 24 + 20 * index as i32;
            area.draw(&Rectangle::new([(4, y - 5), (22, y + 5)], colour.filled()))?;
            area.draw(&Text::new(name, (30, y), style.clone()))?;
        }
        Ok(())
    }

    fn draw_lines(&self, area: &Area<'_>, sizes: &[f64]) -> Result<()> {
        let x = Axis::sizes(sizes, &self.labels);
        let y = Axis::decades(self.values().filter(|&value| value > 0.0));
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(70)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .x_desc(&self.x)
            .y_desc(&self.y)
            .label_style(LABEL)
            .axis_desc_style(LABEL)
            .light_line_style(TRANSPARENT)
            .draw()?;
        for (_, points, colour) in self.coloured() {
            // Zero has no place on a logarithmic axis.
            let points = points.iter().filter(|point| point.1 > 0.0);
            let points = points.map(|&(row, value)| (sizes[row], value));
            let line = LineSeries::new(points, colour.stroke_width(2)).point_size(3);
            chart.draw_series(line)?;
        }
        Ok(())
    }

    fn draw_bars(&self, area: &Area<'_>) -> Result<()> {
        let letters = self.labels.iter().map(|label| label.chars().count());
        let letters = letters.max().unwrap_or(0) as u32;
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size((letters * LETTER + 50).min(WIDTH / 3))
            .build_cartesian_2d(
                Axis::from_zero(self.values().fold(0.0, f64::max)),
                Axis::rows(&self.labels),
            )?;
        chart
            .configure_mesh()
            .x_desc(&self.y)
            .y_desc(&self.x)
            .label_style(LABEL)
            .axis_desc_style(LABEL)
            .light_line_style(TRANSPARENT)
            .disable_y_mesh()
            .draw()?;
        // A row is as high as its bars and a gap.
        let group = self.series.len() as f64 * f64::from(BAR);
        let bar = f64::from(BAR) / (group + f64::from(GAP));
        let first = 0.5 - bar * self.series.len() as f64 / 2.0;
        for (index, (_, points, colour)) in self.coloured().enumerate() {
            let bars = points.iter().map(|&(row, value)| {
                let top = row as f64 + first + index as f64 * bar;
                Rectangle::new([(0.0, top), (value, top + bar)], colour.filled())
            });
            chart.draw_series(bars)?;
        }
        Ok(())
    }
}

/// An axis with marks and their labels.
struct Axis {
    /// The values at its two ends; the first may be the larger.
    ends: [f64; 2],
    is_logarithmic: bool,
    marks: Vec<(f64, String)>,
}

impl Axis {
    /// A logarithmic axis with a mark at each size, unless it would touch the mark before.
    fn sizes(sizes: &[f64], labels: &[String]) -> Self {
        let low = sizes.iter().copied().fold(f64::INFINITY, f64::min);
        let high = sizes.iter().copied().fold(0.0, f64::max);
        let pixels_of =
            |ratio: f64| ratio.ln() / (high / low).ln() * f64::from(WIDTH - LEGEND - 94);
        let mut marks: Vec<(f64, String)> = Vec::new();
        for (&size, label) in sizes.iter().zip(labels) {
            let needed = f64::from(LETTER) * (label.len() as f64 + 1.0);
            if marks
                .last()
                .is_none_or(|last| pixels_of(size / last.0) > needed)
            {
                marks.push((size, label.clone()));
            }
        }
        let edge = (high / low).powf(0.03);
        Self {
            ends: [low / edge, high * edge],
            is_logarithmic: true,
            marks,
        }
    }

    /// A logarithmic axis for these values, with marks at 1, 2 and 5 times powers of 10, or at
    /// powers of 10 alone where these are many.
    fn decades(values: impl Iterator<Item = f64>) -> Self {
        let all = values.fold(None, |ends: Option<[f64; 2]>, value| {
            let [low, high] = ends.unwrap_or([value; 2]);
            Some([low.min(value), high.max(value)])
        });
        let [low, high] = all.unwrap_or([1.0; 2]);
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let factors: &[f64] = if last - first > 3 {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        let powers = (first..=last).map(|power| 10_f64.powi(power));
        let marks = powers.flat_map(|power| factors.iter().map(move |factor| power * factor));
        let marks: Vec<f64> = marks.collect();
        // The axis begins and ends at a mark.
        let from = marks.iter().rposition(|&mark| mark <= low).unwrap_or(0);
        let to = marks.iter().position(|&mark| mark >= high);
        let to = to
            .unwrap_or(marks.len() - 1)
            .max(from + 1)
            .min(marks.len() - 1);
        Self {
            ends: [marks[from], marks[to]],
            is_logarithmic: true,
            marks: marks[from..=to]
                .iter()
                .map(|&mark| (mark, number(mark)))
                .collect(),
        }
    }

    /// An axis from zero to a little beyond `top`.
    fn from_zero(top: f64) -> Self {
        let top = if top > 0.0 { top } else { 1.0 };
        let power = 10_f64.powi((top / 4.0).log10().floor() as i32);
        let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = steps.into_iter().find(|step| top / step <= 6.0);
        let step = step.unwrap_or(10.0 * power);
        let marks = (0..=(top / step).ceil() as i32).map(|i| f64::from(i) * step);
        Self {
            ends: [0.0, top * 1.05],
            is_logarithmic: false,
            marks: marks
                .filter(|&mark| mark <= top * 1.05)
                .map(|mark| (mark, number(mark)))
                .collect(),
        }
    }

    /// An axis from the first row, at the top, to the last.
    fn rows(labels: &[String]) -> Self {
        let middle = |(row, label): (usize, &String)| (row as f64 + 0.5, label.clone());
        Self {
            ends: [labels.len().max(1) as f64, 0.0],
            is_logarithmic: false,
            marks: labels.iter().enumerate().map(middle).collect(),
        }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let at = |value: f64| {
            if self.is_logarithmic {
                value.ln()
            } else {
                value
            }
        };
        let [first, last] = self.ends.map(at);
        let part = (at(*value) - first) / (last - first);
        limit.0 + (part * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.marks.iter().map(|mark| mark.0).collect()
    }

    fn range(&self) -> Range<f64> {
        self.ends[0]..self.ends[1]
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        let mark = self.marks.iter().find(|mark| mark.0 == *value);
        mark.map_or_else(String::new, |mark| mark.1.clone())
    }
}

/// Formats a mark without the digits that its binary form adds.
fn number(mark: f64) -> String {
    let places = (2.0 - mark.abs().max(1e-9).log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{mark:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').into(),
        false => text,
    }
}

/// Formats powers of two such as 1024 as `2^10`, other numbers as digits.
pub(super) fn size(n: usize) -> String {
    if n.is_power_of_two() && n > 1 {
        format!("2^{}", n.trailing_zeros())
    } else {
        n.to_string()
    }
}

/// Returns the number that [`size`] formats, if the label is one above 0.
fn parse(label: &str) -> Option<f64> {
    let power = label
        .strip_prefix("2^")
        .and_then(|power| power.parse().ok());
    let plain = || label.parse::<u64>().ok().map(|n| n as f64);
    let found = power.map(|power: i32| 2_f64.powi(power)).or_else(plain);
    found.filter(|&n| n > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sap::Peer;
    use radsweep::Strategy;
    use std::collections::BTreeSet;

    fn panel(labels: &[&str]) -> Panel {
        Panel {
            title: "pairs".into(),
            x: "keys".into(),
            y: "G/s".into(),
            labels: labels.iter().map(|&label| label.into()).collect(),
            series: vec![
                ("onesweep".into(), vec![(0, 1.0), (1, 2.0), (2, 30.0)]),
                ("four-way".into(), vec![(0, 0.5), (2, 0.7)]),
            ],
        }
    }

    fn drawn(panels: &[Panel]) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("plot.svg");
        write(&path, panels).expect("written");
        let nowhere = folder.path().join("none").join("plot.svg");
        assert!(write(&nowhere, &[]).is_err());
        std::fs::read_to_string(&path).expect("there")
    }

    #[test]
    fn each_contender_has_a_colour_of_its_own() {
        let all = COLOURS.map(|colour| (colour.0, colour.1, colour.2));
        assert_eq!(BTreeSet::from(all).len(), all.len());
        assert!(Strategy::ALL.len() + Peer::ALL.len() <= all.len());
    }

    #[test]
    fn sizes_are_lines_and_other_rows_are_bars() {
        let sizes = panel(&["2^10", "2^12", "2^20"]);
        let names = panel(&["uniform", "sorted", "zipf"]);
        let lines = drawn(std::slice::from_ref(&sizes));
        assert!(lines.starts_with("<svg"), "{lines}");
        for text in ["onesweep", "four-way", "2^12", "G/s", "keys", "pairs"] {
            assert!(lines.contains(&format!("\n{text}\n")), "{text} is missing");
        }
        assert_eq!(lines.matches("<circle").count(), 5);
        let bars = drawn(std::slice::from_ref(&names));
        for text in ["uniform", "sorted", "zipf", "four-way", "G/s"] {
            assert!(bars.contains(&format!("\n{text}\n")), "{text} is missing");
        }
        assert_eq!(bars.matches("<circle").count(), 0);
        let low = drawn(&[panel(&["tuned"])]);
        for svg in [&lines, &bars, &low] {
            let sizes = svg.split("font-size=\"").skip(1);
            let sizes = sizes.filter_map(|rest| rest.split('"').next()?.parse::<f64>().ok());
            assert!(sizes.clone().count() > 5 && sizes.clone().all(|size| size > 11.0));
        }
        // The picture's ground, two in the legend, five bars.
        assert_eq!(bars.matches("<rect").count(), 8);
        let both = drawn(&[sizes, names]);
        assert_eq!(
            both.matches("<rect").count() + both.matches("<circle").count(),
            3 + 5 + 7
        );
        drawn(&[panel(&[])]); // nothing to draw
    }

    #[test]
    fn sizes_stand_to_scale() {
        let x = Axis::sizes(
            &[1024.0, 4096.0, 1_048_576.0],
            &["a", "b", "c"].map(Into::into),
        );
        let at = |n: f64| f64::from(x.map(&n, (0, 1000)));
        let (first, second, last) = (at(1024.0), at(4096.0), at(1_048_576.0));
        assert!(((last - second) / (second - first) - 4.0).abs() < 0.1);
        // Sizes whose labels would touch have one label.
        let near = Axis::sizes(
            &[1000.0, 1001.0, 2000.0],
            &["1000", "1001", "2000"].map(Into::into),
        );
        assert_eq!(near.marks.len(), 2);
    }

    #[test]
    fn marks_of_values_are_round_and_enclose_them() {
        let marks = |values: &[f64]| {
            let axis = Axis::decades(values.iter().copied());
            axis.marks
                .into_iter()
                .map(|mark| mark.1)
                .collect::<Vec<_>>()
        };
        assert_eq!(marks(&[0.3, 4.0]), ["0.2", "0.5", "1", "2", "5"]);
        assert_eq!(marks(&[1.0]), ["1", "2"]);
        assert_eq!(
            marks(&[0.001, 90.0]),
            ["0.001", "0.01", "0.1", "1", "10", "100"]
        );
        assert_eq!(marks(&[]), ["1", "2"]);
        let zero = Axis::from_zero(0.34);
        let texts: Vec<_> = zero.marks.into_iter().map(|mark| mark.1).collect();
        assert_eq!(texts, ["0", "0.1", "0.2", "0.3"]);
    }

    #[test]
    fn sizes_are_powers_where_they_are() {
        assert_eq!([1, 1000, 1024].map(size), ["1", "1000", "2^10"]);
        assert_eq!(
            ["2^10", "1000", "0", "4 bytes", "tuned"].map(parse),
            [Some(1024.0), Some(1000.0), None, None, None]
        );
    }
}
