//! The arguments of every command, and their help texts.

use clap::builder::{PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Args, ColorChoice, CommandFactory, Parser, Subcommand};
use radsweep::sort::Algorithm;
use radsweep::{Backend, Strategy};
#[cfg(feature = "viewer")]
use radsweep_bench::ending;
use radsweep_bench::{Calibrate, Command as Bench, one_of, sort_backends};
use radsweep_common::numbers::count;
use radsweep_common::output::is_text;
use radsweep_common::terminal::note;
use radsweep_scenes::{Kind, Options};
#[cfg(feature = "viewer")]
use radsweep_viewer::Colour;
use std::fmt::Display;
use std::path::PathBuf;

/// Exact broad-phase collision detection on CPUs and GPUs: boxes in, overlapping pairs out
///
/// Without a command, radsweep views a scene: `radsweep stack --bodies 10k` is short for
/// `radsweep view stack --bodies 10k`.
#[derive(Debug, Parser)]
#[command(
    name = "radsweep",
    version,
    max_term_width = 100,
    disable_help_flag = true,
    disable_version_flag = true,
    override_usage = "radsweep [OPTIONS] <COMMAND>\n       radsweep [SCENE] [OPTIONS OF view]"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// Number of CPU threads, 1 to 1024. Results do not depend on it [env: RAYON_NUM_THREADS]
    /// [default: one per core]
    #[arg(long, global = true, help_heading = FOR_ALL, value_name = "N", allow_negative_numbers = true, value_parser = threads)]
    pub threads: Option<usize>,
    /// When to colour messages and help; auto: on a terminal [env: NO_COLOR]
    #[arg(long = "colour", visible_alias = "color", global = true, help_heading = FOR_ALL, value_name = "WHEN", default_value = "auto")]
    pub colour: ColorChoice,
    /// Prints help: -h in short, --help in full
    #[arg(short, long, global = true, help_heading = FOR_ALL, action = ArgAction::Help)]
    help: Option<bool>,
    /// Prints the version
    #[arg(short = 'V', long, action = ArgAction::Version)]
    version: Option<bool>,
}

const FOR_ALL: &str = "Options of all commands";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Shows a scene in a window, with the pairs found and the time of each stage
    ///
    #[cfg_attr(
        feature = "viewer",
        doc = "A window runs until it is closed. --frames is for pictures (--screenshot), and for the table",
        doc = "that is printed where there is no display or no graphics driver."
    )]
    #[cfg_attr(
        not(feature = "viewer"),
        doc = "This build has no feature `viewer`: it prints the table of times instead."
    )]
    View(View),
    /// Runs a scene without a window and prints a line per frame, then the mean of each stage
    ///
    /// The column `ms` is the time of the whole frame. `hash` is one number for all pairs of the
    /// frame, equal for any number of threads, and on every backend but for `galaxy`, whose gravity
    /// a GPU sums in another way.
    Run(Run),
    /// Finds the overlapping pairs of the boxes in a file
    Pairs(Pairs),
    /// Sorts the keys in a file
    ///
    /// The sort is stable. -0.0 equals 0.0. NaNs with the sign bit set are below all numbers, other
    /// NaNs above; among themselves they sort by their bits.
    Sort(Sort),
    /// Measures how fast the sorts and the broad phase are
    #[command(subcommand, arg_required_else_help = false)]
    Bench(Bench),
    /// Finds the fastest sort for each size on this NVIDIA GPU, and saves the result for the
    /// algorithm auto
    ///
    /// The result is the file `radsweep/sort-DEVICE.txt` in your configuration folder.
    Calibrate(Calibrate),
    /// Shows the devices, the driver, and the chosen backend with the reason
    Info(Info),
    /// Prints a script that completes commands, options and names in a shell
    Completions(Completions),
    /// Prints a manual page
    Man(Man),
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub simulation: Simulation,
    /// Finds the pairs on several CUDA devices of this machine together, for more boxes than one
    /// holds: `all`, or the first N. The bodies move on the CPU. Not with --sort
    #[arg(long, value_name = "all|N", allow_negative_numbers = true, value_parser = devices, conflicts_with = "sort")]
    pub devices: Option<Devices>,
    /// Prints one JSON object per frame, each on its own line: `ms` has the stages, `sorts` what
    /// the sorts of the frame did, `tests` how many pairs of boxes were tested, `ranks` what each
    /// of several devices did
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct View {
    #[command(flatten)]
    pub simulation: Simulation,
    #[cfg(feature = "viewer")]
    #[command(flatten, next_help_heading = "Picture options (with --screenshot)")]
    pub picture: Picture,
}

/// A scene and how it is run.
#[derive(Debug, Args)]
pub(crate) struct Simulation {
    /// What moves
    #[arg(value_name = "SCENE", default_value = Kind::FallingChairs.name(), value_parser = scenes())]
    pub scene: Kind,
    /// Number of bodies, such as 1000, 10k, 1e6 or 2^20. A chair is nine boxes, any other body one
    /// [default: 1500 chairs, 50000 particles, 8192 galaxy bodies, 100000 boxes]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = bodies)]
    pub bodies: Option<usize>,
    /// Number of frames to run [default: 300 for falling-chairs, particles and galaxy, 60 for the
    /// others]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = frames)]
    pub frames: Option<u32>,
    /// Seed of the random arrangement, a number from 0. The same seed gives the same scene
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true, value_parser = seed)]
    pub seed: u64,
    /// Factor of the pairs per box of uniform, clustered and mixed-sizes, 0.001 to 1000. No effect
    /// on the others [default: 1]
    #[arg(long, value_name = "D", allow_negative_numbers = true, value_parser = density)]
    pub density: Option<f32>,
    #[command(flatten)]
    pub engine: Engine,
}

impl Simulation {
    pub fn options(&self) -> Options {
        Options {
            bodies: self.bodies,
            seed: self.seed,
            density: self.density.unwrap_or(1.0),
        }
    }

    /// Fails for what the scene refuses, before a window opens, and notes what it ignores.
    pub fn check(&self) -> Result<(), radsweep_scenes::Error> {
        if self.density.is_some() && !self.scene.has_density() {
            note(&format!("--density has no effect on {}", self.scene));
        }
        self.options().bodies(self.scene).map(drop)
    }

    pub fn frames(&self) -> u32 {
        self.frames.unwrap_or(self.scene.default_frames())
    }
}

/// The options of a screenshot, which replaces the window.
#[cfg(feature = "viewer")]
#[derive(Debug, Args)]
pub(crate) struct Picture {
    /// Draws the last frame into this file instead of opening a window; - for stdout
    #[arg(long, value_name = "F.png", value_parser = ending("png"))]
    pub screenshot: Option<PathBuf>,
    /// Also draws every K-th frame, into files with the frame's number in their names
    #[arg(long, value_name = "K", requires = "screenshot", allow_negative_numbers = true, value_parser = frames)]
    pub every: Option<u32>,
    /// Size of the picture in pixels
    #[arg(long, value_name = "WxH", requires = "screenshot", default_value = "1280x800", value_parser = parse_pixels)]
    pub size: [u32; 2],
    /// Draws the scene without the panels
    #[arg(long, requires = "screenshot")]
    pub no_overlay: bool,
    /// Draws the scene without shadows
    #[arg(long, requires = "screenshot")]
    pub no_shadows: bool,
    /// What the colours show [default: depends on the scene]
    #[arg(long = "colour-by", alias = "color-by", value_name = "C", requires = "screenshot", value_parser = one_of::<Colour>(Colour::ALL.map(Colour::name)))]
    pub colour_by: Option<Colour>,
    /// Draws the boxes that the broad phase sees
    #[arg(long, requires = "screenshot")]
    pub boxes: bool,
    /// Draws the sweep axis, and the columns or cells that the strategy divides space into
    #[arg(long, requires = "screenshot")]
    pub cells: bool,
    /// Selects this body, counted from 0, moves the camera to it and shows its boxes, its pairs and
    /// the sweep axis
    #[arg(long, value_name = "B", requires = "screenshot", allow_negative_numbers = true, value_parser = body)]
    pub body: Option<u32>,
}

/// Parses the index of a body.
#[cfg(feature = "viewer")]
fn body(text: &str) -> Result<u32, String> {
    count(text, 0..=u32::MAX.into()).map(|body| body as u32)
}

/// Parses a size in pixels, such as `1280x800`.
#[cfg(feature = "viewer")]
fn parse_pixels(text: &str) -> Result<[u32; 2], String> {
    let sides = text.split_once('x');
    let sides = sides.and_then(|(width, height)| Some([width.parse().ok()?, height.parse().ok()?]));
    match sides {
        None => Err(format!("`{text}` is not a size such as 1280x800")),
        Some(sides) if sides.contains(&0) => Err(format!("`{text}` has a side of 0 pixels")),
        Some(sides) => Ok(sides),
    }
}

/// Parses the path of an array, which is written as `.npy` whatever its name; text is refused.
fn array() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match is_text(&path) {
        true => Err("`sort` writes no text, only .npy files"),
        false => Ok(path),
    })
}

/// Parses the name of a scene.
fn scenes() -> impl TypedValueParser<Value = Kind> {
    let scene = |kind: &Kind| {
        let about = kind.about().trim_end_matches('.');
        PossibleValue::new(kind.name()).help(about)
    };
    one_of(Kind::ALL.iter().map(scene))
}

fn threads(text: &str) -> Result<usize, String> {
    count(text, 1..=1024).map(|threads| threads as usize)
}

fn bodies(text: &str) -> Result<usize, String> {
    let bodies = count(text, 1..=u32::MAX.into())?;
    usize::try_from(bodies).map_err(|error| error.to_string())
}

fn frames(text: &str) -> Result<u32, String> {
    count(text, 1..=u32::MAX.into()).map(|frames| frames as u32)
}

fn seed(text: &str) -> Result<u64, String> {
    count(text, 0..=u64::MAX)
}

fn density(text: &str) -> Result<f32, String> {
    let (low, high) = Options::DENSITIES;
    let density = text
        .parse()
        .map_err(|_| format!("`{text}` is not a number such as 0.5 or 2"))?;
    match (low..=high).contains(&density) {
        true => Ok(density),
        false => Err(format!("`{text}` is not between {low} and {high}")),
    }
}

/// The CUDA devices of a command.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(cuda), expect(dead_code, reason = "there are none"))]
pub(crate) enum Devices {
    All,
    First(usize),
}

impl Devices {
    /// Fails for a backend that has one device.
    pub fn check(self, backend: Backend) -> radsweep_common::Result<()> {
        match backend {
            Backend::Auto | Backend::Cuda => Ok(()),
            other => Err(misuse(format!(
                "--devices finds pairs on CUDA: leave out --backend {other}"
            ))),
        }
    }
}

fn devices(text: &str) -> Result<Devices, String> {
    match text {
        "all" => Ok(Devices::All),
        number => count(number, 1..=1024)
            .map(|count| Devices::First(count as usize))
            .map_err(|error| format!("{error}, nor `all`")),
    }
}

#[derive(Debug, Args)]
pub(crate) struct Pairs {
    /// File of boxes, or - for stdin: float32 or float64 of shape (n, 6), min x y z then max x y z,
    /// or (n, 2, 3). float64 is tested exactly
    #[arg(value_name = "BOXES.npy")]
    pub boxes: PathBuf,
    /// File to write all pairs to, or - for stdout: the indices of two boxes in each row, counted
    /// from 0, as uint32 of shape (m, 2), sorted. A name ending in .csv gets comma-separated values
    #[arg(short, long, value_name = "PAIRS.npy")]
    pub output: Option<PathBuf>,
    /// Writes all pairs as comma-separated values, to stdout without --output
    #[arg(long)]
    pub csv: bool,
    /// Finds pairs between the boxes of BOXES.npy and those of this file, instead of within
    /// BOXES.npy
    #[arg(long, value_name = "OTHER.npy")]
    pub between: Option<PathBuf>,
    /// Does not count boxes that only touch as overlapping
    #[arg(long)]
    pub open: bool,
    /// Skips boxes with a NaN or with min above max, instead of failing
    #[arg(long)]
    pub skip_invalid: bool,
    /// Finds the pairs on several CUDA devices of this machine together, for more boxes than one
    /// holds: `all`, or the first N. Boxes must be float32. Not with --sort or --between
    #[arg(long, value_name = "all|N", allow_negative_numbers = true, value_parser = devices, conflicts_with_all = ["between", "sort"])]
    pub devices: Option<Devices>,
    #[command(flatten)]
    pub engine: Engine,
    /// Prints one JSON object, without the pairs: `hash` is one number for all of them, equal on
    /// every backend; `ms` has the stages, `sorts` what the sorts did, `ranks` what each of several
    /// devices did
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Sort {
    /// File of keys, or - for stdin: a one-dimensional array of uint32, int32, float32, uint64,
    /// int64 or float64
    #[arg(value_name = "KEYS.npy")]
    pub keys: PathBuf,
    /// File to write the sorted keys to, of the same type; - for stdout
    #[arg(short, long, value_name = "SORTED.npy", value_parser = array())]
    pub output: Option<PathBuf>,
    /// File to write the stable argsort to: uint32; - for stdout
    #[arg(long, value_name = "PERM.npy", value_parser = array())]
    pub index: Option<PathBuf>,
    /// Sort to run on CUDA; auto: the fastest by size. No effect on the CPU, which has one sort
    #[arg(long, alias = "algorithm", value_name = "ALG", default_value_t, value_parser = algorithms())]
    pub sort: Algorithm,
    /// Sorts the largest key first
    #[arg(long)]
    pub descending: bool,
    /// Where the work is done; auto: on CUDA if there is a device, else on the CPU [env:
    /// RADSWEEP_BACKEND]
    #[arg(long, value_name = "B", default_value_t, value_parser = sort_backends())]
    pub backend: Backend,
    /// Prints one JSON object, without the keys
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Info {
    /// Prints one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell. For bash, put `source <(radsweep completions bash)` in ~/.bashrc
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Command to describe [default: the program], as in `radsweep man pairs | man -l -`
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// The options of the broad phase.
#[derive(Debug, Default, Args)]
pub(crate) struct Engine {
    /// Where the work is done; auto: on CUDA if there is a device, else on wgpu if there is another
    /// GPU, else on the CPU [env: RADSWEEP_BACKEND]
    #[arg(long, value_name = "B", default_value_t, value_parser = backends())]
    pub backend: Backend,
    /// How the broad phase finds pairs; auto chooses by a sample of the boxes
    #[arg(long, value_name = "S", default_value_t, value_parser = one_of::<Strategy>(Strategy::ALL.iter().map(|one| one.name())))]
    pub strategy: Strategy,
    /// Sort that the broad phase uses on CUDA; auto: the fastest by size. No effect elsewhere
    #[arg(long, value_name = "ALG", default_value_t, value_parser = algorithms())]
    pub sort: Algorithm,
}

/// Returns the program's commands and options, with help in our words.
pub(crate) fn program(colour: ColorChoice) -> clap::Command {
    fn worded(command: &mut clap::Command) {
        for command in command.get_subcommands_mut() {
            if command.get_name() == "help" {
                *command = command.clone().about("Prints the help of a command");
            }
            worded(command);
        }
    }
    let mut program = Cli::command().color(colour);
    // This adds clap's commands, and options of all commands to each.
    program.build();
    worded(&mut program);
    program
}

/// Returns an error of the command line that clap's parser does not see.
pub(crate) fn misuse(message: impl Display) -> Box<dyn std::error::Error> {
    clap::Error::raw(ErrorKind::ValueValidation, message).into()
}

/// Lists the commands of a command.
pub(crate) fn names(command: &clap::Command) -> String {
    let names: Vec<_> = command
        .get_subcommands()
        .map(clap::Command::get_name)
        .collect();
    names.join(", ")
}

/// Returns those of the names that are like this one.
pub(crate) fn similar<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    // Clap's suggestions for the value of an argument.
    let known: Vec<String> = known.map(str::to_owned).collect();
    let name = clap::Arg::new("name").value_parser(PossibleValuesParser::new(known));
    let parsed = clap::Command::new("").no_binary_name(true).arg(name);
    let given = given.to_lowercase();
    match parsed.try_get_matches_from([&given]) {
        Ok(_) => vec![given],
        Err(error) => match error.get(ContextKind::SuggestedValue) {
            Some(ContextValue::String(one)) => vec![one.clone()],
            Some(ContextValue::Strings(some)) => some.clone(),
            _ => Vec::new(),
        },
    }
}

fn backends() -> impl TypedValueParser<Value = Backend> {
    one_of(Backend::ALL.iter().map(|backend| backend.name()))
}

fn algorithms() -> impl TypedValueParser<Value = Algorithm> {
    one_of(Algorithm::ALL.iter().map(|algorithm| algorithm.name()))
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
    fn view_accepts_every_scene() {
        for kind in Kind::ALL {
            let parsed = Cli::parse_from(["radsweep", "view", kind.name(), "--bodies", "7"]);
            let Command::View(view) = parsed.command else {
                panic!("not view: {parsed:?}");
            };
            let view = view.simulation;
            assert_eq!((view.scene, view.bodies), (*kind, Some(7)));
        }
    }

    #[cfg(feature = "viewer")]
    #[test]
    fn a_picture_size_is_two_numbers() {
        assert_eq!(parse_pixels("480x300"), Ok([480, 300]));
        for bad in ["480", "480x", "x300", "480x300x2", "-1x3", "4 x 3"] {
            assert!(parse_pixels(bad).is_err(), "{bad}");
        }
    }
}
