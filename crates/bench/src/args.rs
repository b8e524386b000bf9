//! The arguments of `bench` and `calibrate`, and their help texts.

use crate::figures::{self, Sizes};
use crate::input::Distribution;
use crate::measure::Load;
use crate::sap::{Motion, Peer, Source};
use clap::builder::{PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args, Subcommand};
use radsweep::sort::{Algorithm, KeyType};
use radsweep::{Backend, Strategy};
use radsweep_common::backend::NOT_ON_WGPU;
use radsweep_common::numbers::count;
use radsweep_common::output::is_dash;
use radsweep_scenes::Kind;
use std::error::Error;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The commands of `radsweep bench`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measures the sorts by size, key type, payload and distribution
    Sort(Sort),
    /// Measures the broad phase (sap: sweep and prune) by scene, size and strategy, and compares it
    /// with other libraries
    Sap(Sap),
    /// Reproduces the figures and tables of the five papers on this machine
    Paper(Paper),
}

/// The options of every bench: the backend and the output format.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Where radsweep runs; auto: on CUDA if there is a device, else on the CPU [env:
    /// RADSWEEP_BACKEND]
    #[arg(long, value_name = "B", default_value_t, value_parser = sort_backends())]
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
    /// Numbers of elements, such as 1000, 10k, 1e6 or 2^20 [default: every second power of 2 from
    /// 2^10 to 2^24; on the CPU to 2^20]
    #[arg(long, value_name = "N,…", value_delimiter = ',', allow_negative_numbers = true, value_parser = parse_size)]
    pub(crate) sizes: Vec<usize>,
    /// Key types
    #[arg(long, value_name = "T,…", value_delimiter = ',', default_value = "u32", value_parser = PossibleValuesParser::new(KEY_TYPES.map(KeyType::name)).map(|name| key_type(&name)))]
    pub(crate) types: Vec<KeyType>,
    /// What is sorted with the keys: nothing (keys), a value of 4 or 8 bytes, the index, or records
    /// (of 32 bytes, unless another size is given)
    #[arg(long, value_name = "P,…", value_delimiter = ',', default_value = "keys,u32", value_parser = one_of::<Load>(Load::names()))]
    pub(crate) payload: Vec<Load>,
    /// Distributions of the keys
    #[arg(long, value_name = "D,…", value_delimiter = ',', default_value = "uniform", value_parser = one_of::<Distribution>(Distribution::ALL.map(|one| one.to_string())))]
    pub(crate) distributions: Vec<Distribution>,
    /// Sorts to measure on CUDA [default: all but auto]
    #[arg(long = "sort", alias = "algorithms", value_name = "ALG,…", value_delimiter = ',', value_parser = one_of::<Algorithm>(Algorithm::ALL.iter().map(|one| one.name())))]
    pub(crate) algorithms: Vec<Algorithm>,
    /// Number of runs of each sort; the median is reported. Fewer runs if they take more than two
    /// seconds
    #[arg(long, value_name = "N", default_value_t = 21, allow_negative_numbers = true, value_parser = runs)]
    pub(crate) runs: usize,
    #[command(flatten)]
    pub(crate) common: Common,
    /// File for a plot of billions of elements a second by number of elements; - for stdout
    #[arg(long, value_name = "F.svg", value_parser = ending("svg"))]
    pub(crate) plot: Option<PathBuf>,
}

/// The arguments of `bench sap`.
#[derive(Debug, Args)]
pub struct Sap {
    /// Scenes: falling-chairs, particles, galaxy, uniform, clustered, mixed-sizes, stack; or .npy
    /// files of boxes, as of the command pairs (- for stdin); float64 is rounded outward to float32
    /// [default: uniform,clustered,mixed-sizes,stack,falling-chairs]
    #[arg(long, value_name = "S,…", value_delimiter = ',', value_parser = SourceParser)]
    pub(crate) scenes: Vec<Source>,
    /// Numbers of boxes of a scene, such as 1000, 10k, 1e6 or 2^20. No effect on files of boxes
    /// [default: 1000,10000,100000]
    #[arg(long, value_name = "N,…", value_delimiter = ',', allow_negative_numbers = true, value_parser = parse_size)]
    pub(crate) sizes: Vec<usize>,
    /// How boxes move between frames
    #[arg(
        long,
        value_name = "M,…",
        value_delimiter = ',',
        default_value = "moving"
    )]
    pub(crate) motion: Vec<Motion>,
    /// Strategies [default: all; beyond 300000 boxes, subdivided and auto]
    #[arg(long = "strategy", alias = "strategies", value_name = "S,…", value_delimiter = ',', value_parser = one_of::<Strategy>(Strategy::ALL.iter().map(|one| one.name())))]
    pub(crate) strategies: Vec<Strategy>,
    /// Other libraries; obvhs and bvh need a build with `--features peers` [default: all in this
    /// build; beyond 300000 boxes, not plain-sweep]
    #[arg(long, value_name = "P,…", value_delimiter = ',', value_parser = one_of::<Peer>(Peer::ALL.map(Peer::name)), conflicts_with = "no_peers")]
    pub(crate) peers: Vec<Peer>,
    /// Measures radsweep alone
    #[arg(long)]
    pub(crate) no_peers: bool,
    /// Finds pairs only, without the started and ended events
    #[arg(long)]
    pub(crate) no_events: bool,
    /// Number of updates by each contender; the median is reported. Fewer updates if they take more
    /// than three seconds [default: 21 for moving and still, 60 for game, for others 21 to 2000 by
    /// the number of boxes]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = runs)]
    pub(crate) runs: Option<usize>,
    #[command(flatten)]
    pub(crate) common: Common,
    /// File for a plot of microseconds a frame by number of boxes; - for stdout
    #[arg(long, value_name = "F.svg", value_parser = ending("svg"))]
    pub(crate) plot: Option<PathBuf>,
}

/// The arguments of `bench paper`.
#[derive(Debug, Args)]
pub struct Paper {
    /// Figures, or all figures of one group of authors (ha, satish, cederman, dehne) [default: all]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = PossibleValuesParser::new(figures::names()))]
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
    #[arg(long, value_name = "N,…", value_delimiter = ',', allow_negative_numbers = true, value_parser = parse_size)]
    pub(crate) sizes: Vec<usize>,
    /// Time limit in seconds: no further size is measured after it
    #[arg(long, value_name = "S", default_value_t = 20.0, allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) seconds: f64,
}

/// Parses the name of a backend that sorts here. `wgpu` is refused with the reason.
pub fn sort_backends() -> impl TypedValueParser<Value = Backend> {
    let names = Backend::ALL
        .iter()
        .map(|&backend| PossibleValue::new(backend.name()).hide(backend == Backend::Wgpu));
    PossibleValuesParser::new(names).try_map(|name| match name.parse() {
        Ok(Backend::Wgpu) => Err(NOT_ON_WGPU.into()),
        parsed => parsed.map_err(Box::<dyn Error + Send + Sync>::from),
    })
}

/// Parses one of these names; the help lists them, and an error suggests the nearest.
pub fn one_of<T>(
    names: impl IntoIterator<Item = impl Into<clap::builder::PossibleValue>>,
) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: Into<Box<dyn Error + Send + Sync>>> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| T::from_str(&name))
}

/// How the list of scenes has a file of boxes.
const FILE: &str = "FILE.npy";

/// Parses the name of a scene, or the path of a file of boxes.
#[derive(Clone)]
struct SourceParser;

impl TypedValueParser for SourceParser {
    type Value = Source;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&Arg>,
        name: &OsStr,
    ) -> Result<Source, clap::Error> {
        let path = Path::new(name);
        if is_dash(path) || path.extension().is_some_and(|end| end == "npy") {
            return Ok(Source::File(path.into()));
        }
        let names = Kind::ALL.iter().map(|kind| kind.name());
        let kind = one_of::<Kind>(names.chain([FILE])).parse_ref(command, arg, name);
        kind.map(Source::Scene)
    }
}

/// Parses the path of a file whose name must have this ending, or `-`.
pub fn ending(ending: &'static str) -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(move |path| {
        let found = path.extension().and_then(|found| found.to_str());
        if is_dash(&path) || found.is_some_and(|found| found.eq_ignore_ascii_case(ending)) {
            return Ok(path);
        }
        Err(format!("only .{ending} files can be written"))
    })
}

/// Parses a number of runs, at least 1.
fn runs(text: &str) -> Result<usize, String> {
    count(text, 1..=1_000_000).map(|runs| runs as usize)
}

/// Parses a number of elements, between 1 and `u32::MAX`.
fn parse_size(text: &str) -> Result<usize, String> {
    let n = count(text, 1..=u32::MAX.into())?;
    usize::try_from(n).map_err(|error| error.to_string())
}

/// Parses a time limit.
fn seconds(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|&seconds| seconds >= 0.0);
    found.ok_or_else(|| format!("`{text}` is not a time of 0 seconds or more"))
}

const KEY_TYPES: [KeyType; 6] = {
    use KeyType::{F32, F64, I32, I64, U32, U64};
    [U32, I32, F32, U64, I64, F64]
};

/// Returns the key type of this name, which is one of [`KEY_TYPES`].
fn key_type(name: &str) -> KeyType {
    let found = KEY_TYPES.into_iter().find(|one| one.name() == name);
    found.unwrap_or(KeyType::U32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_scene_or_a_file() {
        let parse = |name: &str| {
            let name = OsStr::new(name);
            SourceParser.parse_ref(&clap::Command::new("bench"), None, name)
        };
        let scene = parse("uniform").expect("a scene");
        assert_eq!(scene, Source::Scene(Kind::Uniform));
        let file = parse("data/some_boxes.npy").expect("a file");
        assert_eq!(file.to_string(), "some_boxes");
        let error = parse("unifrm").expect_err("unknown").to_string();
        for part in ["stack", FILE, "a similar value exists: 'uniform'"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn sizes_are_numbers_or_powers() {
        assert_eq!(parse_size("2^20"), Ok(1 << 20));
        assert_eq!(parse_size("4294967295"), Ok(0xffff_ffff));
        for bad in ["", "x", "0", "-1", "2^32", "1e-6", "4294967296"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_and_runs_are_positive() {
        assert_eq!((seconds("0.5"), runs("1k")), (Ok(0.5), Ok(1000)));
        for bad in ["-1", "nan", "x", ""] {
            assert!(seconds(bad).is_err() && runs(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_key_type_has_its_name() {
        for one in KEY_TYPES {
            assert_eq!(key_type(one.name()), one);
        }
    }
}
