//! The command line.

use clap::{Args, Parser, Subcommand, value_parser};
use radsweep::sort::Algorithm;
use radsweep::{Backend, Strategy};
use radsweep_bench::{Calibrate, Command as Bench};
use radsweep_scenes::Kind;
#[cfg(feature = "viewer")]
use radsweep_viewer::Colour;
use std::path::PathBuf;
use std::str::FromStr;

/// Broad-phase collision detection by GPU sorting: boxes in, exactly the overlapping pairs out.
///
/// Without a command, it shows the scene falling-chairs.
#[derive(Debug, Parser)]
#[command(name = "radsweep", version, max_term_width = 100)]
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
    pub fn config(&self) -> radsweep::Config {
        radsweep::Config {
            backend: self.backend,
            strategy: self.strategy,
            sort: self.sort,
            ..radsweep::Config::default()
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
