//! Prints measurements of sorts as tables, CSV and JSON.

use super::bench::Bench;
use super::measure::{Case, Contender, Measured, rate};
use radsweep_common::Result;
use serde_json::{Value, json};
use std::io::Write;

/// One measurement with its case.
pub(super) struct Line {
    pub case: Case,
    pub contender: Contender,
    pub measured: Measured,
    pub limit_share: Option<f64>,
}

impl Line {
    /// Returns one JSON object.
    pub fn json(&self) -> Value {
        let case = &self.case;
        let mut object = json!({
            "algorithm": self.contender.name(),
            "type": case.key.name(),
            "payload": case.load.to_string(),
            "distribution": case.distribution.to_string(),
            "n": case.n,
        });
        let more = match &self.measured {
            Ok(times) => json!({
                "ran": times.ran,
                "ms": digits(times.median),
                "gelements_per_s": digits(rate(case.n, times)),
                "byte_limit_share": self.limit_share.map(digits),
                "spread": digits(times.spread()),
                "min_ms": digits(times.min),
                "max_ms": digits(times.max),
                "runs": times.runs,
            }),
            Err(missing) => json!({ "error": missing.to_string() }),
        };
        if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
            object.extend(more);
        }
        object
    }
}

/// Returns the JSON members that describe the machine, and why its times are not to be trusted.
pub(super) fn head(bench: &Bench, what: &str, busy: Option<&str>) -> Value {
    json!({
        "bench": what,
        "version": env!("CARGO_PKG_VERSION"),
        "backend": bench.backend().name(),
        "device": bench.device(),
        "copy_gb_per_s": digits(bench.copy_rate()),
        "busy": busy,
    })
}

pub(super) fn heading(bench: &Bench) -> String {
    let (backend, device, copy) = (bench.backend(), bench.device(), bench.copy_rate());
    format!("{backend}: {device}, copy {copy:.0} GB/s (read plus written)")
}

const COLUMNS: [&str; 14] = [
    "algorithm",
    "type",
    "payload",
    "distribution",
    "n",
    "ran",
    "ms",
    "gelements_per_s",
    "byte_limit_share",
    "spread",
    "min_ms",
    "max_ms",
    "runs",
    "error",
];

/// Prints the objects of [`Line::json`] as CSV below a line of names.
pub(super) fn csv(mut out: impl Write, lines: &[Line]) -> Result<()> {
    writeln!(out, "{}", COLUMNS.join(","))?;
    for line in lines {
        let object = line.json();
        let cells = COLUMNS.map(|name| match &object[name] {
            Value::Null => String::new(),
            Value::String(text) => quoted(text),
            other => other.to_string(),
        });
        writeln!(out, "{}", cells.join(","))?;
    }
    Ok(())
}

/// Quotes a CSV cell where needed, as in RFC 4180.
pub(super) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}

pub(super) fn table(mut out: impl Write, bench: &Bench, lines: &[Line]) -> Result<()> {
    writeln!(out, "{}", heading(bench))?;
    let mut group = String::new();
    for line in lines {
        let case = &line.case;
        let this = format!("{}, {}, {}", case.key, case.load, case.distribution);
        if this != group {
            writeln!(
                out,
                "\n{this}\n{:>11} {:<14} {:>11} {:>9} {:>6} {:>7}  ran",
                "n", "algorithm", "ms", "G/s", "limit", "spread"
            )?;
            group = this;
        }
        let name = line.contender.name();
        write!(out, "{:>11} {name:<14} ", case.n)?;
        match &line.measured {
            Ok(times) => {
                let share = line
                    .limit_share
                    .map_or("-".into(), |share| format!("{share:.3}"));
                let (ms, rate, spread) =
                    (times.median, rate(case.n, times), 100.0 * times.spread());
                writeln!(
                    out,
                    "{ms:>11.4} {rate:>9.3} {share:>6} {spread:>6.1}%  {}",
                    times.ran
                )?;
            }
            Err(missing) => writeln!(out, "{missing}")?,
        }
    }
    Ok(())
}

/// Rounds to six digits; further ones are noise.
pub(super) fn digits(number: f64) -> Value {
    if number == 0.0 || !number.is_finite() {
        return json!(0.0);
    }
    let scale = 10_f64.powi(5 - number.abs().log10().floor() as i32);
    json!((number * scale).round() / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_six_digits() {
        assert_eq!(digits(1.234_567_89), json!(1.23457));
        assert_eq!(digits(0.000_123_456_78), json!(0.000_123_457));
        assert_eq!(digits(4270.1234), json!(4270.12));
        assert_eq!(digits(0.0), json!(0.0));
        assert_eq!(digits(f64::NAN), json!(0.0));
    }

    #[test]
    fn cells_with_commas_and_quotes_are_quoted() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"x\""), "\"say \"\"x\"\"\"");
    }
}
