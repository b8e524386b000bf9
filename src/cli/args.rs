//! The command line.

use clap::{Args, Parser, Subcommand, value_parser};
use gpusort::Algorithm;
use radsweep::scenes::Kind;
use sap::{Backend, Strategy};
use std::path::PathBuf;
use std::str::FromStr;

/// Broad-phase collision detection by GPU sorting: boxes in, exactly the overlapping pairs out.
///
/// Without a command, it runs the scene falling-chairs.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    /// CPU threads; as many as there are cores otherwise. The result is the same for any number
    #[arg(long, global = true, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Runs a scene without a window: one record a frame
    Run(Run),
    /// Finds the overlapping pairs of the boxes in a file
    Pairs(Pairs),
    /// Sorts the keys in a file
    Sort(Sort),
    /// Shows devices, driver, and the backend chosen and why
    Info(Info),
}

#[derive(Debug, Args)]
pub(super) struct Run {
    /// falling-chairs, uniform, clustered, mixed-sizes or stack
    #[arg(value_name = "SCENE", value_parser = Kind::from_str)]
    pub scene: Kind,
    /// Chairs, or boxes in the other scenes [default: 1500 chairs, 100000 boxes]
    #[arg(long, value_name = "N")]
    pub bodies: Option<usize>,
    /// Frames to run [default: 300 for falling-chairs, 60 for the others]
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
pub(super) struct Pairs {
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
pub(super) struct Sort {
    /// Keys: one-dimensional uint32, int32, float32, uint64, int64 or float64
    #[arg(value_name = "KEYS.npy")]
    pub keys: PathBuf,
    /// Where to write the sorted keys, of the same type
    #[arg(short, long, value_name = "SORTED.npy")]
    pub output: Option<PathBuf>,
    /// Where to write the stable argsort, uint32
    #[arg(long, value_name = "PERM.npy")]
    pub index: Option<PathBuf>,
    /// The sort that runs on a GPU: onesweep or auto
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
pub(super) struct Info {
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// How the broad phase works.
#[derive(Debug, Default, Args)]
pub(super) struct Engine {
    /// auto, cpu or cuda
    #[arg(long, value_name = "B", default_value_t, value_parser = Backend::from_str)]
    pub backend: Backend,
    /// endpoints, sweep, subdivided or auto
    #[arg(long, value_name = "S", default_value_t, value_parser = Strategy::from_str)]
    pub strategy: Strategy,
    /// The sort inside: onesweep or auto
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

impl Run {
    /// What `radsweep` alone does.
    pub fn falling_chairs() -> Self {
        Self {
            scene: Kind::FallingChairs,
            bodies: None,
            frames: None,
            seed: 1,
            density: 1.0,
            engine: Engine::default(),
            json: false,
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
    fn radsweep_alone_is_run_falling_chairs_with_every_default() {
        let parsed = Cli::parse_from(["radsweep", "run", "falling-chairs"]);
        let Some(Command::Run(run)) = parsed.command else {
            panic!("not run: {parsed:?}");
        };
        assert_eq!(format!("{run:?}"), format!("{:?}", Run::falling_chairs()));
    }
}
