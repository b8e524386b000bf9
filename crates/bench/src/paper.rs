//! `radsweep bench paper`: reproduces the figures of the papers.

use super::args::Paper;
use super::bench::Bench;
use super::busy::{self, Busy};
use super::figures::{self, Cell, Figure, Sizes, Unit};
use super::measure::{Contender, Effort, Measured, rate};
use super::output::{self, digits, quoted};
use super::plot::{self, Panel};
use super::sap::{Updates, updates};
use radsweep_common::Result;
use radsweep_common::terminal::{note, steps};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;

/// Few runs, enough for a median: there are a thousand measurements.
const EFFORT: Effort = Effort {
    warm_up: 2,
    runs: 9,
    seconds: 0.03,
    check: true,
    stages: false,
};

/// A measured figure.
struct Drawn {
    figure: &'static Figure,
    points: Vec<Point>,
}

struct Point {
    row: String,
    column: String,
    n: usize,
    /// The value in the figure's unit, or why there is none.
    value: Result<f64, String>,
    largest_bucket: u64,
}

pub(crate) fn run(args: &Paper) -> Result<()> {
    let figures: Vec<&Figure> = figures::all()
        .filter(|one| args.figure.is_empty() || args.figure.iter().any(|name| one.is(name)))
        .collect();
    if let Some(folder) = &args.plot {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    }
    let busy = Busy::before();
    let mut bench = Bench::new(args.common.backend)?;
    if bench.is_cpu() {
        note("the CPU has one sort: it is measured in place of each");
    }
    let plan: Vec<_> = figures
        .into_iter()
        .map(|figure| (figure, cells(figure, args.sizes, &bench)))
        .collect();
    let bar = steps(
        plan.iter().map(|(_, cells)| cells.len() as u64).sum(),
        "sorts",
    );
    let mut drawn = Vec::new();
    let mut measurements = Vec::new();
    // All figures of the broad phase show the same updates, which are measured once.
    let mut all_updates = None;
    for (figure, cells) in plan {
        let mut points = Vec::new();
        if figure.unit.is_of_updates() {
            let updates = match all_updates.take() {
                Some(updates) => updates,
                None => updates(&bench, args.sizes)?,
            };
            for one in all_updates.insert(updates) {
                points.extend(figure.unit.of_updates(one));
                measurements.push(one.measured.clone());
            }
        } else if cells.is_empty() {
            let (name, title) = (figure.name, figure.title);
            bar.suspend(|| note(&format!("{name} needs a GPU and is left out: {title}")));
            continue;
        }
        for cell in cells {
            let effort = Effort {
                stages: figure.unit == Unit::Stages,
                ..EFFORT
            };
            let measured = bench.measure(&cell.case, cell.contender, cell.parameter, effort)?;
            points.extend(figure.points(&cell, &measured));
            measurements.push(measured);
            bar.inc(1);
        }
        drawn.push(Drawn { figure, points });
    }
    bar.finish_and_clear();
    let times = measurements.iter().filter_map(|one| one.as_ref().ok());
    let busy = busy.after(times);
    print(args, &bench, &drawn, busy.as_deref())?;
    if let Some(folder) = &args.plot {
        drawn.iter().try_for_each(|one| one.draw(folder))?;
    }
    busy::report(busy);
    super::sort::refuse_wrong(measurements.iter())
}

/// Returns the measurements of a figure on this backend.
///
/// On the CPU its one sort stands for all, and measurements of a GPU sort's stages or parameters
/// are left out.
fn cells(figure: &Figure, sizes: Sizes, bench: &Bench) -> Vec<Cell> {
    let mut cells = (figure.cells)(sizes);
    if bench.is_cpu() {
        cells.retain(|cell| figure.unit != Unit::Stages && cell.parameter.is_none());
        for cell in &mut cells {
            cell.contender = Contender::Cpu;
            cell.column = Contender::Cpu.name().into();
        }
        cells.dedup_by(|a, b| a.row == b.row);
    }
    cells
}

impl Figure {
    fn points(&self, cell: &Cell, measured: &Measured) -> Vec<Point> {
        let point = |column: &str, value| Point {
            row: cell.row.clone(),
            column: column.into(),
            n: cell.case.n,
            value,
            largest_bucket: measured.as_ref().map_or(0, |times| times.largest_bucket),
        };
        let times = match measured {
            Ok(times) => times,
            Err(missing) => return vec![point(&cell.column, Err(missing.to_string()))],
        };
        match self.unit {
            Unit::Updates | Unit::Shares => Vec::new(),
            Unit::Rate => vec![point(&cell.column, Ok(rate(cell.case.n, times)))],
            Unit::Milliseconds => vec![point(&cell.column, Ok(times.median))],
            Unit::Stages => {
                let mut stages: Vec<(&str, f64)> = Vec::new();
                for &(name, ms) in &times.stages {
                    match stages.iter_mut().find(|stage| stage.0 == name) {
                        Some(stage) => stage.1 += ms,
                        None => stages.push((name, ms)),
                    }
                }
                stages.push(("total", times.median));
                stages
                    .iter()
                    .map(|&(name, ms)| point(name, Ok(ms)))
                    .collect()
            }
        }
    }
}

impl Unit {
    /// Returns the points of a figure of the broad phase.
    fn of_updates(self, one: &Updates) -> Vec<Point> {
        let point = |row: String, column: &str, value| Point {
            row,
            column: column.to_owned(),
            n: one.n,
            value,
            largest_bucket: 0,
        };
        let size = plot::size(one.n);
        match &one.measured {
            Err(missing) => vec![point(size, &one.name, Err(missing.to_string()))],
            Ok(times) if self == Self::Shares => {
                let row = format!("{size} {}", one.name);
                let stages = times.stages.iter().filter(|stage| stage.1 > 0.0);
                let share = |ms: f64| 100.0 * ms / times.median;
                stages
                    .map(|&(name, ms)| point(row.clone(), name, Ok(share(ms))))
                    .collect()
            }
            Ok(times) => vec![point(size, &one.name, Ok(times.median))],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Rate => "G/s",
            Self::Milliseconds | Self::Stages | Self::Updates => "ms",
            Self::Shares => "%",
        }
    }
}

impl Drawn {
    fn json(&self) -> Value {
        let figure = self.figure;
        let points = self.points.iter().map(|point| {
            let mut object = json!({"row": point.row, "column": point.column, "n": point.n});
            match &point.value {
                Ok(value) => object["value"] = digits(*value),
                Err(why) => object["error"] = why.as_str().into(),
            }
            if point.largest_bucket > 0 {
                object["largest_bucket"] = point.largest_bucket.into();
            }
            object
        });
        json!({
            "name": figure.name,
            "source": figure.source,
            "title": figure.title,
            "rows": figure.rows,
            "unit": figure.unit.name(),
            "points": points.collect::<Value>(),
        })
    }

    /// Returns the distinct names in the order of their first points.
    fn distinct(&self, name: impl Fn(&Point) -> &String) -> Vec<&String> {
        let mut found: Vec<&String> = Vec::new();
        for point in &self.points {
            let name = name(point);
            if !found.contains(&name) {
                found.push(name);
            }
        }
        found
    }

    fn at(&self, row: &str, column: &str) -> Option<&Point> {
        self.points
            .iter()
            .find(|point| point.row == row && point.column == column)
    }

    fn table(&self, out: &mut impl Write) -> Result<()> {
        let figure = self.figure;
        writeln!(
            out,
            "\n{}: {}\n{}, {}",
            figure.name,
            figure.source,
            figure.title,
            figure.unit.name()
        )?;
        let (rows, columns) = (
            self.distinct(|point| &point.row),
            self.distinct(|point| &point.column),
        );
        let first = rows
            .iter()
            .map(|row| row.len())
            .chain([figure.rows.len()])
            .max()
            .unwrap_or(0);
        let widths: Vec<usize> = columns.iter().map(|column| column.len().max(9)).collect();
        write!(out, "{:<first$}", figure.rows)?;
        for (column, width) in columns.iter().zip(&widths) {
            write!(out, " {column:>width$}")?;
        }
        writeln!(out)?;
        for row in rows {
            write!(out, "{row:<first$}")?;
            for (column, width) in columns.iter().zip(&widths) {
                match self.at(row, column).map(|point| &point.value) {
                    Some(Ok(value)) => write!(out, " {value:>width$.4}")?,
                    Some(Err(_)) => write!(out, " {:>width$}", "-")?,
                    None => write!(out, " {:>width$}", "")?,
                }
            }
            writeln!(out)?;
        }
        let mut reasons: Vec<String> = Vec::new();
        for point in &self.points {
            if let Err(why) = &point.value {
                let reason = format!("  - {}: {why}", point.column);
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
        }
        reasons
            .iter()
            .try_for_each(|reason| writeln!(out, "{reason}"))?;
        Ok(())
    }

    fn draw(&self, folder: &Path) -> Result<()> {
        let rows = self.distinct(|point| &point.row);
        let series = self
            .distinct(|point| &point.column)
            .into_iter()
            .map(|column| {
                let values = rows.iter().enumerate().filter_map(|(index, row)| {
                    Some((index, *self.at(row, column)?.value.as_ref().ok()?))
                });
                (column.clone(), values.collect())
            });
        let panel = Panel {
            title: format!("{} ({})", self.figure.title, self.figure.source),
            x: self.figure.rows.into(),
            y: self.figure.unit.name().into(),
            series: series.collect(),
            labels: rows.into_iter().cloned().collect(),
        };
        plot::write(&folder.join(format!("{}.svg", self.figure.name)), &[panel])
    }
}

fn print(args: &Paper, bench: &Bench, all: &[Drawn], busy: Option<&str>) -> Result<()> {
    let mut out = io::stdout().lock();
    if args.common.json {
        let mut record = output::head(bench, "paper", busy);
        record["figures"] = all.iter().map(Drawn::json).collect();
        return Ok(writeln!(out, "{record}")?);
    }
    if args.common.csv {
        writeln!(out, "figure,row,column,n,value,unit,error")?;
        for one in all {
            for point in &one.points {
                let value = point
                    .value
                    .as_ref()
                    .map_or(String::new(), |&value| digits(value).to_string());
                let error = point
                    .value
                    .as_ref()
                    .err()
                    .map_or(String::new(), |why| quoted(why));
                let (name, unit) = (one.figure.name, one.figure.unit.name());
                writeln!(
                    out,
                    "{name},{},{},{},{value},{unit},{error}",
                    quoted(&point.row),
                    quoted(&point.column),
                    point.n
                )?;
            }
        }
        return Ok(());
    }
    writeln!(out, "{}", output::heading(bench))?;
    all.iter().try_for_each(|one| one.table(&mut out))
}
