//! `radsweep bench sort`: measures the sorts by size.

use super::args::Sort;
use super::bench::Bench;
use super::busy::{self, Busy};
use super::measure::{Case, Contender, Effort, Measured, Missing, rate};
use super::output::{self, Line};
use super::plot::{self, Panel};
use radsweep::sort::Algorithm;
use radsweep_common::Result;
use radsweep_common::backend::note_sort;
use radsweep_common::output::beside;
use radsweep_common::terminal::steps;
use serde_json::Value;
use std::io::Write;
use std::path::Path;

pub(crate) fn run(args: &Sort) -> Result<()> {
    plot::check(args.plot.as_deref())?;
    let busy = Busy::before();
    let mut bench = Bench::new(args.common.backend)?;
    note_sort(&args.algorithms, bench.backend());
    let contenders: Vec<Contender> = match (bench.is_cpu(), &args.algorithms[..]) {
        (true, _) => vec![Contender::Cpu],
        (false, []) => all().collect(),
        (false, some) => some.iter().map(|&one| Contender::Algorithm(one)).collect(),
    };
    let sizes = sizes(args, &bench);
    let mut cases = Vec::new();
    // The payloads of a case share its input, so they are measured one after the other.
    for &key in &args.types {
        for &distribution in &args.distributions {
            for &n in &sizes {
                for &load in &args.payload {
                    cases.push(Case {
                        key,
                        load,
                        distribution,
                        n,
                        window: None,
                    });
                }
            }
        }
    }
    let effort = Effort {
        warm_up: 3,
        runs: args.runs,
        seconds: 2.0,
        check: true,
        stages: false,
    };
    let bar = steps((cases.len() * contenders.len()) as u64, "sorts");
    let mut lines = Vec::new();
    for case in cases {
        for &contender in &contenders {
            let measured = bench.measure(&case, contender, None, effort)?;
            let limit_share = measured
                .as_ref()
                .ok()
                .and_then(|times| bench.limit_share(&case, times));
            lines.push(Line {
                case: case.clone(),
                contender,
                measured,
                limit_share,
            });
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    // By type, payload and distribution, then by size.
    lines.sort_by_key(|line| {
        let position = |found: Option<usize>| found.unwrap_or(0);
        let case = &line.case;
        (
            position(args.types.iter().position(|&key| key == case.key)),
            position(args.payload.iter().position(|&load| load == case.load)),
            position(
                args.distributions
                    .iter()
                    .position(|&one| one == case.distribution),
            ),
        )
    });
    let times = lines.iter().filter_map(|line| line.measured.as_ref().ok());
    let busy = busy.after(times);
    print(args, &bench, &lines, busy.as_deref())?;
    if let Some(path) = &args.plot {
        draw(path, &lines)?;
    }
    busy::report(busy);
    refuse_wrong(lines.iter().map(|line| &line.measured))
}

/// Returns all sorts but `auto`, which stands for another.
pub(super) fn all() -> impl Iterator<Item = Contender> {
    let all = Algorithm::ALL.iter().copied();
    all.filter(|&one| one != Algorithm::Auto)
        .map(Contender::Algorithm)
}

fn sizes(args: &Sort, bench: &Bench) -> Vec<usize> {
    if !args.sizes.is_empty() {
        return args.sizes.clone();
    }
    let last = if bench.is_cpu() { 20 } else { 24 };
    (10..=last).step_by(2).map(|power| 1 << power).collect()
}

fn print(args: &Sort, bench: &Bench, lines: &[Line], busy: Option<&str>) -> Result<()> {
    let mut out = beside([args.plot.as_deref()]);
    if args.common.csv {
        return output::csv(out, lines);
    }
    if args.common.json {
        let mut record = output::head(bench, "sort", busy);
        record["results"] = lines.iter().map(Line::json).collect::<Value>();
        return Ok(writeln!(out, "{record}")?);
    }
    output::table(out, bench, lines)
}

/// Fails if a sort gave a wrong result.
pub(super) fn refuse_wrong<'a>(all: impl Iterator<Item = &'a Measured>) -> Result<()> {
    let wrong = all
        .filter(|one| matches!(one, Err(Missing::Wrong(_))))
        .count();
    if wrong > 0 {
        return Err(format!("{wrong} sorts gave a wrong result").into());
    }
    Ok(())
}

fn draw(path: &Path, lines: &[Line]) -> Result<()> {
    let mut sizes: Vec<usize> = lines.iter().map(|line| line.case.n).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut panels: Vec<Panel> = Vec::new();
    for line in lines {
        let case = &line.case;
        let title = format!("{}, {}, {}", case.key, case.load, case.distribution);
        if panels.last().is_none_or(|panel| panel.title != title) {
            panels.push(Panel {
                title,
                x: "elements".into(),
                y: "G elements/s".into(),
                labels: sizes.iter().map(|&n| plot::size(n)).collect(),
                series: Vec::new(),
            });
        }
        let (Some(panel), Ok(times)) = (panels.last_mut(), &line.measured) else {
            continue;
        };
        let index = sizes.partition_point(|&n| n < case.n);
        panel.add(line.contender.name(), index, rate(case.n, times));
    }
    plot::write(path, &panels)
}
