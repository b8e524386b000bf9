//! Plots rates as an SVG: one panel per group, one line per series.

use plotters::coord::Shift;
use plotters::prelude::*;
use radsweep_common::Result;
use radsweep_common::output;
use std::error::Error;
use std::io;
use std::path::Path;

const WIDTH: u32 = 900;
const HEIGHT: u32 = 440;
/// Colours that colour-blind readers can distinguish (Okabe and Ito); they repeat.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(150, 150, 150),
];

/// One chart.
pub(super) struct Panel {
    pub title: String,
    pub x: String,
    pub y: String,
    /// Labels of the positions 0, 1, 2 and so on.
    pub labels: Vec<String>,
    /// For each series its name, positions and values.
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
        let height = HEIGHT * panels.len().max(1) as u32;
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE)?;
        let areas = root.split_evenly((panels.len().max(1), 1));
        for (panel, area) in panels.iter().zip(&areas) {
            panel.draw(area)?;
        }
        root.present()?;
    }
    output::write(path, svg.as_bytes()).map_err(|error| refused(path, error))
}

impl Panel {
    /// Adds a point to the series of that name.
    pub fn add(&mut self, name: &str, place: usize, value: f64) {
        match self.series.iter_mut().find(|series| series.0 == name) {
            Some(series) => series.1.push((place, value)),
            None => self.series.push((name.into(), vec![(place, value)])),
        }
    }

    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<()> {
        let values = self
            .series
            .iter()
            .flat_map(|(_, points)| points.iter().map(|point| point.1));
        let top = values.fold(0.0, f64::max).max(f64::MIN_POSITIVE) * 1.1;
        let last = self.labels.len().max(2) - 1;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(64)
            .build_cartesian_2d(-0.2..last as f64 + 0.2, 0.0..top)?;
        let label = |place: &f64| {
            let near = (place - place.round()).abs() < 1e-6;
            let label = self
                .labels
                .get(place.round() as usize)
                .filter(|_| near && *place > -0.5);
            label.cloned().unwrap_or_default()
        };
        chart
            .configure_mesh()
            .x_desc(&self.x)
            .y_desc(&self.y)
            .x_labels(self.labels.len().clamp(2, 20))
            .x_label_formatter(&label)
            .light_line_style(WHITE)
            .draw()?;
        for ((name, points), colour) in self.series.iter().zip(COLOURS.iter().cycle()) {
            let points = points.iter().map(|&(place, value)| (place as f64, value));
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(2)).point_size(3))?
                .label(name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2))
                });
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .draw()?;
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panel_has_a_line_for_each_series_and_labels_below() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("plot.svg");
        let panel = |title: &str| Panel {
            title: title.into(),
            x: "keys".into(),
            y: "G/s".into(),
            labels: vec!["2^10".into(), "2^12".into(), "2^14".into()],
            series: vec![
                ("onesweep".into(), vec![(0, 1.0), (1, 2.0), (2, 3.0)]),
                ("four-way".into(), vec![(0, 0.5), (2, 0.7)]),
            ],
        };
        write(&path, &[panel("pairs"), panel("keys")]).expect("written");
        let svg = std::fs::read_to_string(&path).expect("there");
        assert!(svg.starts_with("<svg"), "{svg}");
        for text in ["onesweep", "four-way", "2^12", "G/s", "pairs"] {
            assert!(svg.contains(text), "{text} is missing");
        }
        assert!(svg.matches("<polyline").count() >= 4);
        let nowhere = folder.path().join("none").join("plot.svg");
        assert!(write(&nowhere, &[]).is_err());
    }

    #[test]
    fn sizes_are_powers_where_they_are() {
        assert_eq!([1, 1000, 1024].map(size), ["1", "1000", "2^10"]);
    }
}
