//! Prints and plots the results of `bench sap`.

use super::race::Line;
use crate::args::Sap;
use crate::bench::Bench;
use crate::output::{self, digits, quoted};
use crate::plot::{self, Panel};
use radsweep_common::Result;
use radsweep_common::numbers::counted;
use radsweep_common::output::beside;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

impl Line {
    /// Returns one JSON object.
    fn json(&self, bench: &Bench) -> Value {
        let mut object = json!({
            "scene": self.source,
            "frames": self.motion.name(),
            "n": self.n,
            "contender": self.contender.name(),
        });
        let measured = match &self.measured {
            Ok(measured) => measured,
            Err(missing) => {
                object["error"] = missing.to_string().into();
                return object;
            }
        };
        let times = &measured.times;
        object["ms"] = digits(times.median);
        object["ms_sorted"] = digits(measured.sorted.median);
        object["spread"] = digits(times.spread());
        object["min_ms"] = digits(times.min);
        object["max_ms"] = digits(times.max);
        object["runs"] = times.runs.into();
        object["mboxes_per_s"] = digits(self.n as f64 / times.median / 1e3);
        object["pairs"] = measured.pairs.into();
        if let Some(report) = &measured.report {
            object["strategy"] = report.stats.strategy.name().into();
            object["axis"] = report.stats.axis.into();
            object["choice"] = report.stats.choice.map(|choice| choice.to_string()).into();
            object["tests"] = report.stats.tests.into();
            object["tests_per_pair"] = measured.tests_per_pair().map(digits).into();
            let stages = times.stages.iter();
            object["stages"] = stages.map(|&(name, ms)| (name, digits(ms))).collect();
        }
        if let Some(bytes) = measured.bytes(self.n) {
            object["bytes"] = digits(bytes);
            object["byte_limit_share"] = digits(bytes / bench.copy_rate() / 1e6 / times.median);
        }
        object
    }
}

/// The columns of the CSV; a column per stage follows.
const COLUMNS: [&str; 19] = [
    "scene",
    "frames",
    "n",
    "contender",
    "ms",
    "ms_sorted",
    "spread",
    "min_ms",
    "max_ms",
    "runs",
    "pairs",
    "strategy",
    "axis",
    "choice",
    "tests",
    "tests_per_pair",
    "bytes",
    "byte_limit_share",
    "error",
];

pub(super) fn print(args: &Sap, bench: &Bench, lines: &[Line], busy: Option<&str>) -> Result<()> {
    let mut out = beside([args.plot.as_deref()]);
    if args.common.json {
        let mut record = output::head(bench, "sap", busy);
        record["events"] = (!args.no_events).into();
        record["results"] = lines.iter().map(|line| line.json(bench)).collect::<Value>();
        return Ok(writeln!(out, "{record}")?);
    }
    if args.common.csv {
        let timings = radsweep::Timings::default();
        let stages = || timings.stages().map(|(name, _)| name);
        let names = COLUMNS.map(str::to_owned).into_iter();
        let names: Vec<String> = names
            .chain(stages().map(|name| format!("{name}_ms")))
            .collect();
        writeln!(out, "{}", names.join(","))?;
        for line in lines {
            let object = line.json(bench);
            let cell = |value: &Value| match value {
                Value::Null => String::new(),
                Value::String(text) => quoted(text),
                other => other.to_string(),
            };
            let cells = COLUMNS.map(|name| cell(&object[name])).into_iter();
            let cells: Vec<String> = cells
                .chain(stages().map(|name| cell(&object["stages"][name])))
                .collect();
            writeln!(out, "{}", cells.join(","))?;
        }
        return Ok(());
    }
    let events = if args.no_events { "off" } else { "on" };
    writeln!(
        out,
        "{}, events {events}\nms: median time from boxes to all pairs; best: the fastest; sorted: the median with the pairs sorted, as radsweep's always are\nspread: of the middle half of the times, relative to the median; tests/pair: pairs of boxes tested for each pair found; limit: the time to copy the bytes that must move, as a share of the median (above 1 where they are in cache)",
        output::heading(bench)
    )?;
    let mut group = String::new();
    for line in lines {
        let pairs = line.measured.as_ref().map_or(0, |measured| measured.pairs);
        let pairs = counted(pairs, "pair", "pairs");
        let this = format!(
            "{} of {}, {}",
            line.source,
            counted(line.n as u64, "box", "boxes"),
            line.motion.name()
        );
        if this != group {
            writeln!(
                out,
                "\n{this}, {pairs}\n{:<15} {:>10} {:>10} {:>10} {:>7} {:>10} {:>6}  plan: stages, ms",
                "contender", "ms", "best", "sorted", "spread", "tests/pair", "limit"
            )?;
            group = this;
        }
        writeln!(out, "{}", line.row(bench))?;
    }
    Ok(())
}

impl Line {
    fn row(&self, bench: &Bench) -> String {
        let name = self.contender.name();
        let measured = match &self.measured {
            Ok(measured) => measured,
            Err(missing) => return format!("{name:<15} {missing}"),
        };
        let times = &measured.times;
        let or_dash = |number: Option<f64>, digits: usize| {
            number.map_or("-".into(), |number| format!("{number:.digits$}"))
        };
        let share = measured
            .bytes(self.n)
            .map(|bytes| bytes / bench.copy_rate() / 1e6 / times.median);
        let stages: Vec<String> = times
            .stages
            .iter()
            .filter(|stage| stage.1 > 0.0)
            .map(|(name, ms)| format!("{name} {ms:.3}"))
            .collect();
        let ran = measured.report.as_ref().map_or(String::new(), |report| {
            format!("{}: ", report.stats.strategy)
        });
        format!(
            "{name:<15} {:>10.5} {:>10.5} {:>10.5} {:>6.1}% {:>10} {:>6}  {ran}{}",
            times.median,
            times.min,
            measured.sorted.median,
            100.0 * times.spread(),
            or_dash(measured.tests_per_pair(), 1),
            or_dash(share, 3),
            stages.join(", ")
        )
    }
}

/// Plots microseconds a frame by number of boxes: one panel per scene, one line per contender.
pub(super) fn draw(path: &Path, lines: &[Line]) -> Result<()> {
    let mut panels: Vec<(Panel, Vec<usize>)> = Vec::new();
    for line in lines {
        let title = format!("{}, {}", line.source, line.motion.name());
        if panels.last().is_none_or(|(panel, _)| panel.title != title) {
            let mut sizes: Vec<usize> = lines
                .iter()
                .filter(|other| other.source == line.source && other.motion == line.motion)
                .map(|other| other.n)
                .collect();
            sizes.sort_unstable();
            sizes.dedup();
            let panel = Panel {
                title,
                x: "boxes".into(),
                y: "microseconds a frame".into(),
                labels: sizes.iter().map(|&n| plot::size(n)).collect(),
                series: Vec::new(),
            };
            panels.push((panel, sizes));
        }
        let (Some((panel, sizes)), Ok(measured)) = (panels.last_mut(), &line.measured) else {
            continue;
        };
        let us = 1e3 * measured.sorted.median;
        let position = sizes.partition_point(|&n| n < line.n);
        panel.add(line.contender.name(), position, us);
    }
    let panels: Vec<Panel> = panels.into_iter().map(|(panel, _)| panel).collect();
    plot::write(path, &panels)
}
