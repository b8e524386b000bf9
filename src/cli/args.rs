//! The command line.

use crate::bench::{
    Distribution, Load, Motion, Peer, Sizes, Source, parse_figure, parse_size, parse_type,
};
#[cfg(feature = "viewer")]
use crate::viewer::Colour;
use clap::{Args, Parser, Subcommand, value_parser};
use gpusort::{Algorithm, KeyType};
use radsweep::scenes::Kind;
use sap::{Backend, Strategy};
use std::path::PathBuf;
use std::str::FromStr;

/// Broad-phase collision detection by GPU sorting: boxes in, exactly the overlapping pairs out.
///
/// Without a command, it shows the scene falling-chairs.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    /// CPU threads; as many as there are cores otherwise. The result is the same for any number
    #[arg(long, global = true, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Shows a scene in a window, with what each frame found and where its time went
    View(View),
    /// Runs a scene without a window: one record a frame
    Run(Run),
    /// Finds the overlapping pairs of the boxes in a file
    Pairs(Pairs),
    /// Sorts the keys in a file
    Sort(Sort),
    /// Measures how fast the sorts and the broad phase are
    #[command(subcommand, arg_required_else_help = false)]
    Bench(Bench),
    /// Measures which sort is the fastest on this GPU by size, and keeps it for the algorithm auto
    Calibrate(Calibrate),
    /// Shows devices, driver, and the backend chosen and why
    Info(Info),
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// falling-chairs, particles, galaxy, uniform, clustered, mixed-sizes or stack
    #[arg(value_name = "SCENE", value_parser = Kind::from_str)]
    pub scene: Kind,
    /// Chairs, or boxes in the other scenes [default: 1500 chairs, 50000 particles, 8192 bodies of galaxies, 100000 boxes]
    #[arg(long, value_name = "N")]
    pub bodies: Option<usize>,
    /// Frames to run [default: 300 for falling-chairs, particles and galaxy, 60 for the others]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub frames: Option<u32>,
    /// Another seed is another arrangement
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Multiplies the pairs per box of uniform, clustered and mixed-sizes
    #[arg(long, value_name = "D", default_value_t = 1.0)]
    pub density: f32,
    #[command(flatten)]
    pub engine: Engine,
    /// One JSON object a line and frame
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct View {
    /// falling-chairs, particles, galaxy, uniform, clustered, mixed-sizes or stack
    #[arg(value_name = "SCENE", value_parser = Kind::from_str)]
    pub scene: Kind,
    /// Chairs, or boxes in the other scenes [default: 1500 chairs, 50000 particles, 8192 bodies of galaxies, 100000 boxes]
    #[arg(long, value_name = "N")]
    pub bodies: Option<usize>,
    /// Frames to run for a picture, or where no display answers [default: 300 for falling-chairs, particles and
    /// galaxy, 60 for the others]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub frames: Option<u32>,
    /// Another seed is another arrangement
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Multiplies the pairs per box of uniform, clustered and mixed-sizes
    #[arg(long, value_name = "D", default_value_t = 1.0)]
    pub density: f32,
    #[command(flatten)]
    pub engine: Engine,
    #[cfg(feature = "viewer")]
    #[command(flatten)]
    pub picture: Picture,
}

/// A picture instead of a window.
#[cfg(feature = "viewer")]
#[derive(Debug, Args)]
pub(crate) struct Picture {
    /// Draws the last frame into this file, without a window
    #[arg(long, value_name = "F.png")]
    pub screenshot: Option<PathBuf>,
    /// A picture each so many frames too, with the number of the frame in its name
    #[arg(long, value_name = "K", requires = "screenshot", value_parser = value_parser!(u32).range(1..))]
    pub every: Option<u32>,
    /// Size of the picture in pixels
    #[arg(long, value_name = "WxH", requires = "screenshot", default_value = "1280x800", value_parser = parse_pixels)]
    pub size: [u32; 2],
    /// The scene alone, without the panels
    #[arg(long, requires = "screenshot")]
    pub no_overlay: bool,
    /// What colours tell: body, overlaps, sleeping or speed [default: what suits the scene]
    #[arg(long, value_name = "C", requires = "screenshot", value_parser = Colour::from_str)]
    pub colour: Option<Colour>,
    /// Draws the boxes that the broad phase sees
    #[arg(long, requires = "screenshot")]
    pub boxes: bool,
    /// Draws the sweep axis, and the columns or cells that the strategy cuts the space into
    #[arg(long, requires = "screenshot")]
    pub cells: bool,
    /// Picks this body, counted from 0: its boxes and pairs are shown, from near
    #[arg(long, value_name = "B", requires = "screenshot")]
    pub body: Option<u32>,
}

/// `1280x800`.
#[cfg(feature = "viewer")]
fn parse_pixels(text: &str) -> Result<[u32; 2], String> {
    let sides = text.split_once('x');
    let sides = sides.and_then(|(width, height)| Some([width.parse().ok()?, height.parse().ok()?]));
    sides.ok_or_else(|| format!("`{text}` is no size such as 1280x800"))
}

#[derive(Debug, Args)]
pub(crate) struct Pairs {
    /// Boxes: float32 of shape (n, 6), min x y z then max x y z
    #[arg(value_name = "BOXES.npy")]
    pub boxes: PathBuf,
    /// Where to write the pairs: uint32 of shape (m, 2), sorted
    #[arg(short, long, value_name = "PAIRS.npy")]
    pub output: Option<PathBuf>,
    /// Pairs between the boxes and these instead of among the boxes
    #[arg(long, value_name = "OTHER.npy")]
    pub between: Option<PathBuf>,
    /// Boxes that only touch do not overlap
    #[arg(long)]
    pub open: bool,
    /// Boxes that are NaN or inverted overlap nothing, instead of being an error
    #[arg(long)]
    pub skip_invalid: bool,
    #[command(flatten)]
    pub engine: Engine,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Sort {
    /// Keys: one-dimensional uint32, int32, float32, uint64, int64 or float64
    #[arg(value_name = "KEYS.npy")]
    pub keys: PathBuf,
    /// Where to write the sorted keys, of the same type
    #[arg(short, long, value_name = "SORTED.npy")]
    pub output: Option<PathBuf>,
    /// Where to write the stable argsort, uint32
    #[arg(long, value_name = "PERM.npy")]
    pub index: Option<PathBuf>,
    /// The sort that runs on a GPU: four-way, eight-way, satish-radix, satish-merge, quicksort, bucket, onesweep or auto
    #[arg(long, value_name = "ALG", default_value_t, value_parser = Algorithm::from_str)]
    pub algorithm: Algorithm,
    /// Largest key first
    #[arg(long)]
    pub descending: bool,
    /// auto, cpu or cuda
    #[arg(long, value_name = "B", default_value_t, value_parser = Backend::from_str)]
    pub backend: Backend,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Rates of the sorts by size, key type, payload and distribution
    Sort(BenchSort),
    /// Times of the broad phase by scene, size and strategy, beside what others use
    Sap(BenchSap),
    /// The figures and tables of the five papers again, on this machine
    Paper(BenchPaper),
}

/// Where a bench runs, and how it prints.
#[derive(Debug, Args)]
pub(crate) struct BenchCommon {
    /// auto, cpu or cuda
    #[arg(long, value_name = "B", default_value_t, value_parser = Backend::from_str)]
    pub backend: Backend,
    /// One JSON object
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Comma-separated values
    #[arg(long)]
    pub csv: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchSort {
    /// Numbers of elements, such as 1000 or 2^20 [default: 2^10 to 2^24 by fours; 2^20 on the CPU]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = parse_size)]
    pub sizes: Vec<usize>,
    /// u32, i32, f32, u64, i64 or f64
    #[arg(long, value_name = "T,…", value_delimiter = ',', default_value = "u32", value_parser = parse_type)]
    pub types: Vec<KeyType>,
    /// keys, u32, u64, index, or records of 32 bytes, or of 4 to 128: records-16
    #[arg(long, value_name = "P,…", value_delimiter = ',', default_value = "keys,u32", value_parser = Load::from_str)]
    pub payload: Vec<Load>,
    /// uniform, gaussian, sorted, reverse, zero, bucket, staggered, zipf, and-entropy-1 to and-entropy-5, bits-8, bits-16, bits-24,
    /// bits-32, nearly-sorted, distances
    #[arg(long, value_name = "D,…", value_delimiter = ',', default_value = "uniform", value_parser = Distribution::from_str)]
    pub distributions: Vec<Distribution>,
    /// Sorts that run on a GPU: four-way, eight-way, satish-radix, satish-merge, quicksort, bucket, onesweep, auto [default: all but
    /// auto]
    #[arg(long, value_name = "ALG,…", value_delimiter = ',', value_parser = Algorithm::from_str)]
    pub algorithms: Vec<Algorithm>,
    /// Runs of each sort, of which the median counts; fewer where they take more than two seconds
    #[arg(long, value_name = "N", default_value_t = 21, value_parser = runs)]
    pub runs: usize,
    #[command(flatten)]
    pub common: BenchCommon,
    /// Where to draw the rates
    #[arg(long, value_name = "F.svg")]
    pub plot: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchSap {
    /// Scenes by name, or .npy files of boxes, float32 of shape (n, 6) [default: uniform,clustered,mixed-sizes,stack,falling-chairs]
    #[arg(long, value_name = "S,…", value_delimiter = ',', value_parser = Source::from_str)]
    pub scenes: Vec<Source>,
    /// Numbers of boxes, such as 1000 or 10^7 [default: 1000,10000,100000]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = parse_size)]
    pub sizes: Vec<usize>,
    /// Whether boxes move between frames: moving, still
    #[arg(
        long,
        value_name = "F,…",
        value_delimiter = ',',
        default_value = "moving"
    )]
    pub frames: Vec<Motion>,
    /// endpoints, sweep, subdivided, auto [default: all; without endpoints and sweep beyond 300000 boxes]
    #[arg(long, value_name = "S,…", value_delimiter = ',', value_parser = Strategy::from_str)]
    pub strategies: Vec<Strategy>,
    /// parry-rebuild, parry-update, parry-update-1, obvhs, bvh, plain-sweep [default: all in this build; without plain-sweep beyond
    /// 300000 boxes]
    #[arg(long, value_name = "P,…", value_delimiter = ',', value_parser = Peer::from_str, conflicts_with = "no_peers")]
    pub peers: Vec<Peer>,
    /// Ours alone
    #[arg(long)]
    pub no_peers: bool,
    /// Pairs only, not which of them started and ended
    #[arg(long)]
    pub no_events: bool,
    /// Updates of each, of which the median counts; fewer where they take more than three seconds
    #[arg(long, value_name = "N", default_value_t = 21, value_parser = runs)]
    pub runs: usize,
    #[command(flatten)]
    pub common: BenchCommon,
    /// Where to draw boxes a second by number of boxes
    #[arg(long, value_name = "F.svg")]
    pub plot: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchPaper {
    /// Only these, such as dehne-steps, or those of a paper: ha, satish, cederman, dehne [default: all]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = parse_figure)]
    pub figure: Vec<String>,
    /// How large the inputs are
    #[arg(long, value_name = "S", default_value = "small")]
    pub sizes: Sizes,
    #[command(flatten)]
    pub common: BenchCommon,
    /// A folder to draw the figures in
    #[arg(long, value_name = "DIR")]
    pub plot: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Calibrate {
    /// Numbers of keys to measure [default: 2^8 to 2^24 by twos]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = parse_size)]
    pub sizes: Vec<usize>,
    /// Measures no further sizes after so many seconds
    #[arg(long, value_name = "S", default_value_t = 20.0)]
    pub seconds: f64,
}

/// A number from 1 on.
fn runs(text: &str) -> Result<usize, String> {
    let found = text.parse().ok().filter(|&runs| runs > 0);
    found.ok_or_else(|| format!("`{text}` is not a number of runs"))
}

#[derive(Debug, Args)]
pub(crate) struct Info {
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// How the broad phase works.
#[derive(Debug, Default, Args)]
pub(crate) struct Engine {
    /// auto, cpu or cuda
    #[arg(long, value_name = "B", default_value_t, value_parser = Backend::from_str)]
    pub backend: Backend,
    /// endpoints, sweep, subdivided or auto
    #[arg(long, value_name = "S", default_value_t, value_parser = Strategy::from_str)]
    pub strategy: Strategy,
    /// The sort inside: four-way, eight-way, satish-radix, satish-merge, quicksort, bucket, onesweep or auto
    #[arg(long, value_name = "ALG", default_value_t, value_parser = Algorithm::from_str)]
    pub sort: Algorithm,
}

impl Engine {
    pub fn config(&self) -> sap::Config {
        sap::Config {
            backend: self.backend,
            strategy: self.strategy,
            sort: self.sort,
            ..sap::Config::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_lists_every_scene_algorithm_strategy_and_backend() {
        let help = |name| {
            let mut command = Cli::command();
            let command = command.find_subcommand_mut(name).expect("a command");
            command.render_help().to_string()
        };
        let (run, sort) = (help("run"), help("sort"));
        let scenes = Kind::ALL.iter().map(|kind| kind.name());
        let strategies = Strategy::ALL.iter().map(|strategy| strategy.name());
        let backends = Backend::ALL.iter().map(|backend| backend.name());
        for name in scenes.chain(strategies).chain(backends) {
            assert!(run.contains(name), "{name} is missing in:\n{run}");
        }
        for algorithm in Algorithm::ALL {
            assert!(run.contains(algorithm.name()) && sort.contains(algorithm.name()));
        }
    }

    #[test]
    fn view_is_there_for_every_scene() {
        for kind in Kind::ALL {
            let parsed = Cli::parse_from(["radsweep", "view", kind.name(), "--bodies", "7"]);
            let Some(Command::View(view)) = parsed.command else {
                panic!("not view: {parsed:?}");
            };
            assert_eq!((view.scene, view.bodies), (*kind, Some(7)));
        }
    }

    #[cfg(feature = "viewer")]
    #[test]
    fn sizes_of_pictures_are_two_numbers() {
        assert_eq!(parse_pixels("480x300"), Ok([480, 300]));
        for bad in ["480", "480x", "x300", "480x300x2", "-1x3", "4 x 3"] {
            assert!(parse_pixels(bad).is_err(), "{bad}");
        }
    }
}
