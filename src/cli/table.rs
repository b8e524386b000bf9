//! Prints stage times as a table and as JSON.

use radsweep::Sorts;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// The stages in order, with the milliseconds of each.
#[derive(Debug, Default, Clone)]
pub(crate) struct Stages(Vec<(&'static str, f64)>);

impl Stages {
    /// Adds to the stage of that name; appends it if it is new.
    pub fn add(&mut self, name: &'static str, ms: f64) {
        match self.0.iter_mut().find(|stage| stage.0 == name) {
            Some(stage) => stage.1 += ms,
            None => self.0.push((name, ms)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.0.iter().copied()
    }

    /// Prints a row per stage with its mean over `times` and its share of `total`, then the total.
    pub fn print(
        &self,
        out: &mut impl Write,
        total: (&'static str, f64),
        times: u32,
    ) -> io::Result<()> {
        let (name, total) = total;
        let heading = if times > 1 { "mean ms" } else { "ms" };
        writeln!(out, "{:<10} {heading:>10} {:>7}", "stage", "share")?;
        let rows = self.iter().chain([(name, total)]);
        for (name, ms) in rows {
            let share = if total > 0.0 { 100.0 * ms / total } else { 0.0 };
            writeln!(
                out,
                "{name:<10} {:>10.3} {share:>6.1}%",
                plain(ms / f64::from(times))
            )?;
        }
        Ok(())
    }

    pub fn json(&self, total: f64) -> Value {
        let mut object: Map<_, _> = self
            .iter()
            .map(|(name, ms)| (name.into(), round(ms)))
            .collect();
        object.insert("total".into(), round(total));
        object.into()
    }
}

impl FromIterator<(&'static str, f64)> for Stages {
    fn from_iter<I: IntoIterator<Item = (&'static str, f64)>>(stages: I) -> Self {
        let mut all = Self::default();
        stages.into_iter().for_each(|(name, ms)| all.add(name, ms));
        all
    }
}

/// Rounds milliseconds to a tenth of a microsecond; further digits are noise.
pub(super) fn round(ms: f64) -> Value {
    json!(plain((ms * 1e4).round() / 1e4))
}

/// Turns the zero of an empty sum, which is `-0.0`, into `0.0`.
fn plain(ms: f64) -> f64 {
    ms + 0.0
}

/// Returns the sorts of an update as JSON.
pub(super) fn sorts(sorts: &Sorts) -> Value {
    json!({
        "keys": sorts.keys,
        "passes_run": sorts.passes_run,
        "passes_skipped": sorts.passes_skipped,
        "early_exits": sorts.early_exits,
    })
}

pub(super) fn hex(hash: u64) -> String {
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_add_up_by_name_and_share_the_total() {
        let mut stages: Stages = [("sort", 1.0), ("sweep", 2.0)].into_iter().collect();
        stages.add("sort", 3.0);
        let mut table = Vec::new();
        stages
            .print(&mut table, ("frame", 8.0), 2)
            .expect("memory takes it");
        let table = String::from_utf8(table).expect("text");
        let rows: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        let expected = [
            ["stage", "mean", "ms", "share"].as_slice(),
            &["sort", "2.000", "50.0%"],
            &["sweep", "1.000", "25.0%"],
            &["frame", "4.000", "100.0%"],
        ];
        assert_eq!(rows, expected);
        assert_eq!(
            stages.json(8.0),
            json!({"sort": 4.0, "sweep": 2.0, "total": 8.0})
        );
    }

    #[test]
    fn no_zero_is_negative() {
        let stages: Stages = [("sort", -0.0)].into_iter().collect();
        let nothing = std::iter::empty::<f64>().sum();
        assert_eq!(
            stages.json(nothing).to_string(),
            r#"{"sort":0.0,"total":0.0}"#
        );
        assert_eq!(round(-0.00001).to_string(), "0.0");
        let mut table = Vec::new();
        let printed = stages.print(&mut table, ("total", nothing), 1);
        printed.expect("memory takes it");
        assert!(!String::from_utf8_lossy(&table).contains('-'));
    }

    #[test]
    fn an_empty_table_has_a_share_of_zero() {
        let mut table = Vec::new();
        Stages::default()
            .print(&mut table, ("total", 0.0), 1)
            .expect("memory takes it");
        assert!(String::from_utf8_lossy(&table).contains("0.0%"));
    }
}
