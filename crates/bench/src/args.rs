//! The arguments of `bench` and `calibrate`, and their help texts.

use crate::figures::{Sizes, parse_figure};
use crate::input::Distribution;
use crate::measure::Load;
use crate::sap::{Motion, Peer, Source};
use clap::{Args, Subcommand};
use radsweep::sort::{Algorithm, KeyType};
use radsweep::{Backend, Strategy};
use std::path::PathBuf;
use std::str::FromStr;

/// The commands of `radsweep bench`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measures the sorts by size, key type, payload and distribution
    Sort(Sort),
    /// Measures the broad phase by scene, size and strategy, and compares it with other libraries
    Sap(Sap),
    /// Reproduces the figures and tables of the five papers on this machine
    Paper(Paper),
}

/// The options of every bench: the backend and the output format.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Backend: auto, cpu or cuda
    #[arg(long, value_name = "B", default_value_t, value_parser = Backend::from_str)]
    pub(crate) backend: Backend,
    /// Prints one JSON object
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Prints comma-separated values
    #[arg(long)]
    pub(crate) csv: bool,
}

/// The arguments of `bench sort`.
#[derive(Debug, Args)]
pub struct Sort {
    /// Numbers of elements, such as 1000 or 2^20 [default: every fourth power of 2 from 2^10 to
    /// 2^24; on the CPU to 2^20]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = parse_size)]
    pub(crate) sizes: Vec<usize>,
    /// Key types: u32, i32, f32, u64, i64, f64
    #[arg(long, value_name = "T,…", value_delimiter = ',', default_value = "u32", value_parser = parse_type)]
    pub(crate) types: Vec<KeyType>,
    /// What is sorted with the keys: keys (nothing), u32, u64, index, records (of 32 bytes), or
    /// records-4 to records-128
    #[arg(long, value_name = "P,…", value_delimiter = ',', default_value = "keys,u32", value_parser = Load::from_str)]
    pub(crate) payload: Vec<Load>,
    /// Distributions of the keys: uniform, gaussian, sorted, reverse, zero, bucket, staggered,
    /// zipf, and-entropy-1 to and-entropy-5, bits-8, bits-16, bits-24, bits-32, nearly-sorted,
    /// distances
    #[arg(long, value_name = "D,…", value_delimiter = ',', default_value = "uniform", value_parser = Distribution::from_str)]
    pub(crate) distributions: Vec<Distribution>,
    /// Sorts to measure on a GPU: four-way, eight-way, satish-radix, satish-merge, quicksort,
    /// bucket, onesweep, auto [default: all but auto]
    #[arg(long, value_name = "ALG,…", value_delimiter = ',', value_parser = Algorithm::from_str)]
    pub(crate) algorithms: Vec<Algorithm>,
    /// Runs of each sort; the median is reported. Fewer runs if they take more than two seconds
    #[arg(long, value_name = "N", default_value_t = 21, value_parser = runs)]
    pub(crate) runs: usize,
    #[command(flatten)]
    pub(crate) common: Common,
    /// File for a plot of the rates
    #[arg(long, value_name = "F.svg")]
    pub(crate) plot: Option<PathBuf>,
}

/// The arguments of `bench sap`.
#[derive(Debug, Args)]
pub struct Sap {
    /// Scenes by name, or .npy files of boxes: float32 of shape (n, 6) [default:
    /// uniform,clustered,mixed-sizes,stack,falling-chairs]
    #[arg(long, value_name = "S,…", value_delimiter = ',', value_parser = Source::from_str)]
    pub(crate) scenes: Vec<Source>,
    /// Numbers of boxes, such as 1000 or 10^7 [default: 1000,10000,100000]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = parse_size)]
    pub(crate) sizes: Vec<usize>,
    /// How boxes move between frames: moving, still, all, walk, some, listed, none, game
    #[arg(
        long,
        value_name = "F,…",
        value_delimiter = ',',
        default_value = "moving"
    )]
    pub(crate) frames: Vec<Motion>,
    /// Strategies: endpoints, sweep, subdivided, auto [default: all; beyond 300000 boxes,
    /// subdivided and auto]
    #[arg(long, value_name = "S,…", value_delimiter = ',', value_parser = Strategy::from_str)]
    pub(crate) strategies: Vec<Strategy>,
    /// Other libraries: parry-rebuild, parry-update, parry-update-1, obvhs, bvh, plain-sweep
    /// [default: all in this build; beyond 300000 boxes, not plain-sweep]
    #[arg(long, value_name = "P,…", value_delimiter = ',', value_parser = Peer::from_str, conflicts_with = "no_peers")]
    pub(crate) peers: Vec<Peer>,
    /// Measures radsweep alone
    #[arg(long)]
    pub(crate) no_peers: bool,
    /// Finds pairs only, without the events started and ended
    #[arg(long)]
    pub(crate) no_events: bool,
    /// Updates by each contender; the median is reported. Fewer updates if they take more than
    /// three seconds [default: 21; up to 2000 of few boxes that walk or rest]
    #[arg(long, value_name = "N", value_parser = runs)]
    pub(crate) runs: Option<usize>,
    #[command(flatten)]
    pub(crate) common: Common,
    /// File for a plot of microseconds a frame by number of boxes
    #[arg(long, value_name = "F.svg")]
    pub(crate) plot: Option<PathBuf>,
}

/// The arguments of `bench paper`.
#[derive(Debug, Args)]
pub struct Paper {
    /// Figures, such as dehne-steps, or all figures of a paper: ha, satish, cederman, dehne
    /// [default: all]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = parse_figure)]
    pub(crate) figure: Vec<String>,
    /// Sizes of the inputs
    #[arg(long, value_name = "S", default_value = "small")]
    pub(crate) sizes: Sizes,
    #[command(flatten)]
    pub(crate) common: Common,
    /// Folder for the plots of the figures
    #[arg(long, value_name = "DIR")]
    pub(crate) plot: Option<PathBuf>,
}

/// The arguments of `calibrate`.
#[derive(Debug, Args)]
pub struct Calibrate {
    /// Numbers of keys to measure [default: every power of 2 from 2^8 to 2^24]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = parse_size)]
    pub(crate) sizes: Vec<usize>,
    /// Time limit in seconds: no further size is measured after it
    #[arg(long, value_name = "S", default_value_t = 20.0)]
    pub(crate) seconds: f64,
}

/// Parses a number of runs, at least 1.
fn runs(text: &str) -> Result<usize, String> {
    let found = text.parse().ok().filter(|&runs| runs > 0);
    found.ok_or_else(|| format!("`{text}` is not a number of runs"))
}

/// Parses a size such as `1000` or `2^20`, between 1 and `u32::MAX`.
fn parse_size(text: &str) -> Result<usize, String> {
    let wrong = || format!("`{text}` is not a number of elements such as 1000 or 2^20");
    let number = |text: &str| text.parse::<u64>().ok();
    let n = match text.split_once('^') {
        None => number(text),
        Some((base, power)) => match (number(base), power.parse().ok()) {
            (Some(base), Some(power)) => base.checked_pow(power),
            _ => None,
        },
    };
    match n {
        Some(n @ 1..=0xffff_ffff) => usize::try_from(n).map_err(|_| wrong()),
        Some(_) => Err(format!("`{text}` is not between 1 and {}", u32::MAX)),
        None => Err(wrong()),
    }
}

fn parse_type(text: &str) -> Result<KeyType, String> {
    use KeyType::{F32, F64, I32, I64, U32, U64};
    let found = [U32, I32, F32, U64, I64, F64]
        .into_iter()
        .find(|one| one.name() == text);
    found
        .ok_or_else(|| format!("unknown key type `{text}`: known are u32, i32, f32, u64, i64, f64"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_or_powers() {
        assert_eq!(parse_size("1000"), Ok(1000));
        assert_eq!(parse_size("2^20"), Ok(1 << 20));
        assert_eq!(parse_size("10^6"), Ok(1_000_000));
        assert_eq!(parse_size("4294967295"), Ok(0xffff_ffff));
        for bad in [
            "",
            "x",
            "0",
            "-1",
            "2^",
            "^3",
            "2^32",
            "2^400",
            "1e6",
            "2^-1",
            "4294967296",
        ] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_key_types_parse() {
        assert_eq!(parse_type("f64"), Ok(KeyType::F64));
        assert!(parse_type("u8").expect_err("no key").contains("i64"));
    }
}
