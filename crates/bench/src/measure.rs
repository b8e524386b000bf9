//! What is measured: payloads, contenders and cases, and the times that result.

use crate::input::Distribution;
use radsweep::sort::{Algorithm, KeyType};
use radsweep_common::Result;
use radsweep_common::byte_limit::index_sort_bytes;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// What is sorted with the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// The keys alone.
    Keys,
    /// A value of 4 bytes, moved with its key.
    U32,
    /// A value of 8 bytes.
    U64,
    /// An index sort, which outputs no keys.
    Index,
    /// Records of this many bytes: an index sort, then one gather.
    Records(usize),
}

impl Load {
    /// The sizes of records that have a name.
    pub const RECORDS: [usize; 6] = [4, 8, 16, 32, 64, 128];

    pub fn all() -> impl Iterator<Item = Self> {
        let plain = [Self::Keys, Self::U32, Self::U64, Self::Index];
        plain.into_iter().chain(Self::RECORDS.map(Self::Records))
    }

    /// Returns all names; `records` alone has 32 bytes.
    pub fn names() -> impl Iterator<Item = String> {
        let names = Self::all().map(|load| load.to_string());
        names.chain(["records".into()])
    }

    /// Returns the bytes of input per element other than its key.
    pub fn bytes(self) -> usize {
        match self {
            Self::Keys | Self::Index => 0,
            Self::U32 => 4,
            Self::U64 => 8,
            Self::Records(bytes) => bytes,
        }
    }

    /// Returns the bytes that an algorithm moves per element.
    ///
    /// For records that is an index sort and a gather, which reads the index and the record, in
    /// sectors of 32 bytes, and writes the record.
    pub fn bytes_moved(self, algorithm: Algorithm, key_bytes: usize, n: u64) -> f64 {
        let table = |value_bytes| algorithm.bytes_per_element(key_bytes, value_bytes, n);
        let index = index_sort_bytes(algorithm, key_bytes, n);
        match self {
            Self::Keys | Self::U32 | Self::U64 => table(self.bytes()),
            Self::Index => index,
            Self::Records(bytes) => index + (4 + bytes.max(32) + bytes) as f64,
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&match self {
            Self::Keys => "keys".into(),
            Self::U32 => "u32".into(),
            Self::U64 => "u64".into(),
            Self::Index => "index".into(),
            Self::Records(bytes) => format!("records-{bytes}"),
        })
    }
}

impl FromStr for Load {
    type Err = String;

    /// Parses a name; `records` alone has 32 bytes.
    fn from_str(name: &str) -> Result<Self, String> {
        if name == "records" {
            return Ok(Self::Records(32));
        }
        let found = Self::all().find(|load| load.to_string() == name);
        found.ok_or_else(|| {
            let known: Vec<_> = Self::names().collect();
            format!("unknown payload `{name}`: known are {}", known.join(", "))
        })
    }
}

/// A sort that the papers compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Baseline {
    /// A bitonic network, as GPUSort (Govindaraju et al. 2005).
    Bitonic,
    /// A radix sort of 1-bit splits, as CUDPP (Sengupta et al. 2007).
    OneBit,
    /// A radix sort of 4-bit digits whose tiles are not sorted before the scatter, as Le Grand's
    /// (2007).
    Radix16,
}

/// A sort that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contender {
    Algorithm(Algorithm),
    Baseline(Baseline),
    /// The one sort of `radsweep::sort::cpu`.
    Cpu,
}

impl Contender {
    pub fn name(self) -> &'static str {
        match self {
            Self::Algorithm(algorithm) => algorithm.name(),
            Self::Baseline(Baseline::Bitonic) => "bitonic",
            Self::Baseline(Baseline::OneBit) => "one-bit",
            Self::Baseline(Baseline::Radix16) => "radix-16",
            Self::Cpu => "cpu",
        }
    }
}

/// One input to sort.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Case {
    pub key: KeyType,
    pub load: Load,
    pub distribution: Distribution,
    pub n: usize,
    /// The window of key bits to sort by; all other bits are equal in all keys.
    pub window: Option<Range<u32>>,
}

/// How long and how thoroughly a sort is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    pub warm_up: usize,
    pub runs: usize,
    /// No further run starts after this time; three are made in any case.
    pub seconds: f64,
    /// Whether to compare the first result with that of the CPU.
    pub check: bool,
    /// Whether to measure the stages too.
    #[cfg_attr(not(cuda), expect(dead_code, reason = "used on a GPU"))]
    pub stages: bool,
}

/// The times of one sort in milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Times {
    pub median: f64,
    /// The first and third quartile of the runs.
    pub quartiles: [f64; 2],
    pub min: f64,
    pub max: f64,
    pub runs: usize,
    /// What ran: the algorithm that `Auto` chose, or the library of a CPU sort.
    pub ran: &'static str,
    pub stages: Vec<(&'static str, f64)>,
    /// Keys in the largest bucket of bucket sort; 0 for other sorts.
    pub largest_bucket: u64,
}

impl Times {
    /// Summarizes times, of which there is at least one.
    pub fn new(mut all: Vec<f64>) -> Self {
        all.sort_by(f64::total_cmp);
        let at = |part: f64| all[((all.len() - 1) as f64 * part).round() as usize];
        Self {
            median: at(0.5),
            quartiles: [at(0.25), at(0.75)],
            min: at(0.0),
            max: at(1.0),
            runs: all.len(),
            ran: "",
            stages: Vec::new(),
            largest_bucket: 0,
        }
    }

    /// Returns the distance of the quartiles relative to the median.
    pub fn spread(&self) -> f64 {
        (self.quartiles[1] - self.quartiles[0]) / self.median
    }
}

/// Why a measurement has no times.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Missing {
    /// The sort does not support the case, or an allocation was refused.
    Unsupported(String),
    /// Its result differs from the CPU's.
    Wrong(String),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(why) => write!(f, "not run: {why}"),
            Self::Wrong(what) => write!(f, "WRONG RESULT: {what}"),
        }
    }
}

pub(crate) type Measured = Result<Times, Missing>;

/// Returns billions of elements per second.
pub(crate) fn rate(n: usize, times: &Times) -> f64 {
    n as f64 / times.median / 1e6
}

/// Repeats `once`, which returns milliseconds.
pub(crate) fn repeat(
    effort: Effort,
    mut once: impl FnMut(usize) -> Result<f64>,
) -> Result<Vec<f64>> {
    let begun = std::time::Instant::now();
    let mut times = Vec::new();
    for run in 0..effort.warm_up + effort.runs {
        let ms = once(run)?;
        if run >= effort.warm_up {
            times.push(ms);
        }
        if times.len() >= 3 && begun.elapsed().as_secs_f64() > effort.seconds {
            break;
        }
    }
    Ok(times)
}

/// Runs `work` and returns its milliseconds and its result.
pub(crate) fn milliseconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let begun = std::time::Instant::now();
    let done = work();
    (begun.elapsed().as_secs_f64() * 1e3, done)
}

/// Returns a word of the value of key `i`; the first word is `i` itself.
pub(crate) fn value_word(i: u32, word: usize) -> u32 {
    i ^ (word as u32).wrapping_mul(0x9e37_79b9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_parse_back_and_an_unknown_one_lists_the_known() {
        for load in Load::all() {
            assert_eq!(load.to_string().parse(), Ok(load));
        }
        assert_eq!("records".parse(), Ok(Load::Records(32)));
        let error = "u16".parse::<Load>().expect_err("unknown");
        assert!(error.contains("records-64"), "{error}");
    }

    #[test]
    fn index_sorts_move_less_than_pairs_and_record_sorts_add_the_records() {
        let moved = |load: Load| load.bytes_moved(Algorithm::Onesweep, 4, 1 << 20);
        assert_eq!(moved(Load::U32), 68.0);
        assert_eq!(moved(Load::Index), 60.0);
        assert_eq!(moved(Load::Records(16)), 60.0 + 4.0 + 32.0 + 16.0);
        assert_eq!(moved(Load::Records(64)), 60.0 + 4.0 + 128.0);
    }

    #[test]
    fn times_have_median_and_quartiles() {
        let times = Times::new(vec![5.0, 1.0, 2.0, 4.0, 3.0]);
        assert_eq!((times.min, times.median, times.max), (1.0, 3.0, 5.0));
        assert_eq!(times.quartiles, [2.0, 4.0]);
        assert!((times.spread() - 2.0 / 3.0).abs() < 1e-12);
        let one = Times::new(vec![7.0]);
        assert_eq!(
            (one.min, one.median, one.max, one.spread()),
            (7.0, 7.0, 7.0, 0.0)
        );
    }

    #[test]
    fn runs_stop_at_the_time_limit_but_not_before_the_third() {
        let effort = Effort {
            warm_up: 2,
            runs: 9,
            seconds: 0.0,
            check: false,
            stages: false,
        };
        let mut calls = 0;
        let times = repeat(effort, |run| {
            calls += 1;
            Ok(run as f64)
        });
        assert_eq!(times.expect("no error"), [2.0, 3.0, 4.0]);
        assert_eq!(calls, 5);
    }
}
