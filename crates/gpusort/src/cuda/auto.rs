//! `Auto`: the choice of an algorithm by key, payload and size, from measurements of the device. Ha
//! et al. §5 proposes it: a calibration of a few sorts on a new system selects the best approach
//! for its hardware.
//!
//! A [`Calibration`] is stored as text, one entry a line:
//!
//! ```text
//! radsweep sort calibration 1
//! device NVIDIA H200
//! driver 13.0
//! library 0.1.0
//! keys 4 values 0 from 0 satish-merge
//! keys 4 values 0 from 23171 onesweep
//! end
//! ```

use super::family::Shape;
use super::payload::Payload;
use super::registry;
use crate::{Algorithm, KeyType};
use gpu::DeviceInfo;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

const HEADING: &str = "radsweep sort calibration 1";
const LIBRARY: &str = env!("CARGO_PKG_VERSION");

/// Bytes of a key and of a value.
type Width = (usize, usize);

/// The algorithm that [`Algorithm::Auto`] stands for, by the width of keys and values and by the
/// number of keys.
///
/// The default is the built-in table, which has [`Algorithm::Onesweep`] everywhere. `radsweep
/// calibrate` measures another table and stores it in a file, which is valid for one device, driver
/// and version of this library.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Calibration {
    /// `None` for the built-in table.
    measured_on: Option<Origin>,
    /// For each width, the algorithm from that many keys on.
    table: BTreeMap<Width, BTreeMap<u64, Algorithm>>,
}

/// The system that a calibration is valid for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin {
    device: String,
    driver: String,
    library: String,
}

impl Origin {
    fn of(device: &DeviceInfo) -> Self {
        let (major, minor) = device.driver_version;
        Self {
            device: device.name.clone(),
            driver: format!("{major}.{minor}"),
            library: LIBRARY.into(),
        }
    }

    fn facts(&self) -> [(&'static str, &str); 3] {
        [
            ("device", &self.device),
            ("driver", &self.driver),
            ("library", &self.library),
        ]
    }
}

/// The reason why a calibration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrationError {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The text is no calibration, or is incomplete.
    #[error("the calibration is damaged in line {line}: {reason}")]
    Damaged {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The calibration was measured on another device, with another driver, or by another version
    /// of the library.
    #[error("the calibration was measured with {what} {found}, but this is {expected}")]
    Foreign {
        /// `"device"`, `"driver"` or `"library"`.
        what: &'static str,
        /// The name or version in the calibration.
        found: String,
        /// The present name or version.
        expected: String,
    },
}

impl CalibrationError {
    /// Returns whether the file does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::File { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl Calibration {
    /// Makes an empty calibration for a device, to be filled with measurements.
    #[must_use]
    pub fn new(device: &DeviceInfo) -> Self {
        Self {
            measured_on: Some(Origin::of(device)),
            table: BTreeMap::new(),
        }
    }

    /// Sets the algorithm for sorts of `from` keys or more of that width and payload, up to the
    /// next entry. [`Algorithm::Auto`] counts as [`Algorithm::Onesweep`].
    pub fn set(&mut self, key: KeyType, payload: Payload, from: u64, algorithm: Algorithm) {
        let algorithm = match algorithm {
            Algorithm::Auto => Algorithm::Onesweep,
            other => other,
        };
        let width = (key.bits() as usize / 8, payload.value_bytes());
        self.table.entry(width).or_default().insert(from, algorithm);
    }

    /// Returns the algorithm that [`Algorithm::Auto`] stands for, for `n` keys sorted by all bits.
    /// An index or record sort counts as a sort with values of 4 bytes.
    #[must_use]
    pub fn algorithm(&self, key: KeyType, payload: Payload, n: u64) -> Algorithm {
        self.of_width((key.bits() as usize / 8, payload.value_bytes()), n)
    }

    fn of_width(&self, width: Width, n: u64) -> Algorithm {
        let rules = self.table.get(&width);
        let rule = rules.and_then(|rules| rules.range(..=n).next_back());
        rule.map_or(Algorithm::Onesweep, |(_, &algorithm)| algorithm)
    }

    /// Reads a file that [`Calibration::save`] wrote for this device, driver and version.
    ///
    /// # Errors
    ///
    /// [`CalibrationError`] of every kind. A caller then uses the default, the built-in table.
    pub fn load(path: &Path, device: &DeviceInfo) -> Result<Self, CalibrationError> {
        let text = fs::read_to_string(path).map_err(|source| CalibrationError::File {
            path: path.to_owned(),
            source,
        })?;
        let read: Self = text.parse()?;
        read.check(&Origin::of(device))?;
        Ok(read)
    }

    fn check(&self, here: &Origin) -> Result<(), CalibrationError> {
        let Some(there) = &self.measured_on else {
            return Ok(());
        };
        for ((what, found), (_, expected)) in there.facts().into_iter().zip(here.facts()) {
            if found != expected {
                return Err(CalibrationError::Foreign {
                    what,
                    found: found.to_owned(),
                    expected: expected.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Writes the calibration to a file beside `path` and renames it to `path`. Missing folders are
    /// made.
    ///
    /// # Errors
    ///
    /// [`CalibrationError::File`].
    pub fn save(&self, path: &Path) -> Result<(), CalibrationError> {
        let beside = path.with_extension(format!("{}.new", std::process::id()));
        let write = || {
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(&beside, self.to_string())?;
            fs::rename(&beside, path)
        };
        write().map_err(|source| {
            // The file may not exist, and the error of the write says more.
            let _ = fs::remove_file(&beside);
            CalibrationError::File {
                path: path.to_owned(),
                source,
            }
        })
    }

    /// Returns the algorithm that runs for the requested one. `as_measured` is false if a sort uses
    /// part of the key only, or reads the number of keys from the device; the measurements say
    /// nothing about such sorts, so that they take Onesweep.
    pub(super) fn resolve(&self, asked: Algorithm, shape: &Shape, as_measured: bool) -> Algorithm {
        if asked != Algorithm::Auto {
            return asked;
        }
        let chosen = self.of_width((shape.key_bytes(), shape.value_bytes), shape.n);
        let fits = || {
            let family = registry::family(chosen);
            shape.n <= family.limit(shape) && family.scratch_bytes(shape).is_ok()
        };
        if as_measured && fits() {
            chosen
        } else {
            Algorithm::Onesweep
        }
    }

    /// Returns every algorithm that may run for a request of up to `shape.n` keys.
    pub(super) fn may_run(&self, asked: Algorithm, shape: &Shape) -> Vec<Algorithm> {
        if asked != Algorithm::Auto {
            return vec![asked];
        }
        let rules = self.table.get(&(shape.key_bytes(), shape.value_bytes));
        let rules = rules.into_iter().flat_map(|rules| rules.range(..=shape.n));
        let mut all: Vec<_> = rules.map(|(_, &algorithm)| algorithm).collect();
        all.push(Algorithm::Onesweep);
        all.dedup();
        all
    }
}

/// Returns the algorithms other than Onesweep that [`Algorithm::Auto`] may stand for. A sort by
/// `Auto` has scratch memory enough for each of them.
pub(super) fn others(shape: &Shape) -> impl Iterator<Item = Algorithm> {
    let all = Algorithm::ALL.iter().copied();
    all.filter(|one| ![Algorithm::Auto, Algorithm::Onesweep].contains(one))
        .filter(|&one| shape.n <= registry::family(one).limit(shape))
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADING}")?;
        for (what, fact) in self.measured_on.iter().flat_map(Origin::facts) {
            writeln!(f, "{what} {fact}")?;
        }
        for ((key, value), rules) in &self.table {
            for (from, algorithm) in rules {
                writeln!(f, "keys {key} values {value} from {from} {algorithm}")?;
            }
        }
        writeln!(f, "end")
    }
}

impl FromStr for Calibration {
    type Err = CalibrationError;

    fn from_str(text: &str) -> Result<Self, CalibrationError> {
        let mut lines = text.lines().zip(1..);
        let mut facts = ["device", "driver", "library"].map(|fact| (fact, None));
        let mut calibration = Self::default();
        let damaged = |line, reason: &str| CalibrationError::Damaged {
            line,
            reason: reason.into(),
        };
        if lines.next().is_none_or(|(line, _)| line != HEADING) {
            return Err(damaged(1, "this is no sort calibration of this format"));
        }
        for (line, number) in lines {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            if word == "end" {
                let [Some(device), Some(driver), Some(library)] = facts.map(|fact| fact.1) else {
                    return Err(damaged(
                        number,
                        "the entry for device, driver or library is missing",
                    ));
                };
                calibration.measured_on = Some(Origin {
                    device,
                    driver,
                    library,
                });
                return Ok(calibration);
            }
            if let Some(fact) = facts.iter_mut().find(|fact| fact.0 == word) {
                fact.1 = Some(rest.to_owned());
                continue;
            }
            let (width, from, algorithm) =
                rule(line).ok_or_else(|| damaged(number, "this is no valid entry"))?;
            let rules = calibration.table.entry(width).or_default();
            if rules.insert(from, algorithm).is_some() {
                return Err(damaged(number, "this is a second entry for the same sorts"));
            }
        }
        Err(damaged(text.lines().count(), "the line `end` is missing"))
    }
}

/// Parses a line such as `keys 4 values 0 from 23171 onesweep`.
fn rule(line: &str) -> Option<(Width, u64, Algorithm)> {
    let words: Vec<&str> = line.split(' ').collect();
    let ["keys", key, "values", value, "from", from, algorithm] = words[..] else {
        return None;
    };
    let width = (key.parse().ok()?, value.parse().ok()?);
    let algorithm = algorithm.parse().ok()?;
    let known = [4, 8].contains(&width.0) && [0, 4, 8].contains(&width.1);
    (known && algorithm != Algorithm::Auto).then_some((width, from.parse().ok()?, algorithm))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::Sorter;

    fn here() -> Origin {
        Origin {
            device: "NVIDIA H200".into(),
            driver: "13.0".into(),
            library: LIBRARY.into(),
        }
    }

    fn example() -> Calibration {
        let mut example = Calibration {
            measured_on: Some(here()),
            ..Calibration::default()
        };
        example.set(KeyType::F32, Payload::None, 0, Algorithm::SatishMerge);
        example.set(KeyType::U32, Payload::None, 5000, Algorithm::Auto);
        example.set(KeyType::I64, Payload::U64, 100, Algorithm::BucketSort);
        example
    }

    fn shape(n: u64) -> Shape {
        Shape::new::<u32>(n, Payload::None)
    }

    #[test]
    fn the_built_in_table_is_onesweep() {
        let built_in = Calibration::default();
        for n in [0, 1, 1 << 20, u64::MAX] {
            assert_eq!(
                built_in.algorithm(KeyType::F64, Payload::Index, n),
                Algorithm::Onesweep
            );
        }
        assert!(built_in.check(&here()).is_ok());
    }

    #[test]
    fn entries_apply_up_to_the_next() {
        let example = example();
        let keys = |n| example.algorithm(KeyType::I32, Payload::None, n);
        assert_eq!(keys(0), Algorithm::SatishMerge);
        assert_eq!(keys(4999), Algorithm::SatishMerge);
        assert_eq!(keys(5000), Algorithm::Onesweep);
        let pairs = |n| example.algorithm(KeyType::U64, Payload::U64, n);
        assert_eq!(
            [pairs(99), pairs(100)],
            [Algorithm::Onesweep, Algorithm::BucketSort]
        );
        // What was not measured.
        let index = example.algorithm(KeyType::U32, Payload::Index, 9);
        assert_eq!(index, Algorithm::Onesweep);
    }

    #[test]
    fn only_measured_sorts_by_auto_are_resolved() {
        let example = example();
        let auto = |n, as_measured| example.resolve(Algorithm::Auto, &shape(n), as_measured);
        assert_eq!(auto(10, true), Algorithm::SatishMerge);
        assert_eq!(auto(10, false), Algorithm::Onesweep);
        assert_eq!(auto(u64::from(u32::MAX) + 1, true), Algorithm::Onesweep);
        let quick = example.resolve(Algorithm::Quicksort, &shape(10), false);
        assert_eq!(quick, Algorithm::Quicksort);
        let all = [Algorithm::SatishMerge, Algorithm::Onesweep];
        assert_eq!(example.may_run(Algorithm::Auto, &shape(10)), all);
        assert_eq!(example.may_run(Algorithm::Auto, &shape(9000)), all);
    }

    #[test]
    fn scratch_for_auto_is_enough_for_every_algorithm() {
        for payload in [
            Payload::None,
            Payload::U64,
            Payload::Index,
            Payload::Records,
        ] {
            for n in [0, 1, 1000, 1 << 20, 50_000_001] {
                let auto = Sorter::scratch_bytes::<f32>(n, payload).expect("a size");
                for &algorithm in Algorithm::ALL {
                    let one =
                        Sorter::scratch_bytes_for::<f32>(algorithm, n, payload).expect("a size");
                    assert!(one <= auto, "{algorithm} {payload:?} {n}: {one} > {auto}");
                }
            }
        }
    }

    #[test]
    fn text_round_trips() {
        let text = example().to_string();
        assert_eq!(text.parse::<Calibration>().expect("whole"), example());
        assert!(
            text.contains("\nkeys 4 values 0 from 5000 onesweep\n"),
            "{text}"
        );
    }

    #[test]
    fn damaged_text_is_an_error_with_its_line() {
        let text = example().to_string();
        let damaged = |text: &str| match text.parse::<Calibration>() {
            Err(CalibrationError::Damaged { line, .. }) => line,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(damaged(""), 1);
        assert_eq!(damaged("radsweep sort calibration 2\nend\n"), 1);
        for cut in 1..text.len() - 1 {
            damaged(&text[..text.floor_char_boundary(cut)]);
        }
        for (whole, broken) in [
            ("onesweep", "onesweeq"),
            ("onesweep", "auto"),
            ("keys 4", "keys 5"),
            ("values 0", "values x"),
            ("from 5000", "from -1"),
            ("from 5000", "from 0"),
            ("end", "\u{0}end"),
        ] {
            damaged(&text.replacen(whole, broken, 1));
        }
        assert_eq!(damaged("radsweep sort calibration 1\nend\n"), 2);
    }

    #[test]
    fn calibrations_of_other_systems_are_errors() {
        let example = example();
        assert!(example.check(&here()).is_ok());
        let other = Origin {
            driver: "12.4".into(),
            ..here()
        };
        let error = example.check(&other).expect_err("another driver");
        assert_eq!(
            error.to_string(),
            "the calibration was measured with driver 13.0, but this is 12.4"
        );
    }

    #[test]
    fn files_are_written_whole_and_missing_ones_are_errors() {
        let folder = std::env::temp_dir().join(format!("gpusort-auto-{}", std::process::id()));
        let path = folder.join("deeper").join("calibration.txt");
        example().save(&path).expect("saved");
        let names: Vec<_> = fs::read_dir(folder.join("deeper"))
            .expect("there")
            .collect();
        assert_eq!(names.len(), 1);
        let text = fs::read_to_string(&path).expect("read");
        assert_eq!(text, example().to_string());
        fs::remove_dir_all(&folder).expect("removed");
        let source = fs::read_to_string(&path).expect_err("gone");
        assert!(CalibrationError::File { path, source }.is_missing());
    }
}
