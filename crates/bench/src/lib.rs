//! The commands `radsweep bench` and `radsweep calibrate`: arguments, measurements and output.
//!
//! - `sort.rs`, `paper.rs` (with the papers' figures in `figures/`), `sap/` and `calibrate.rs` are
//!   one command each.
//! - `bench.rs` measures sorts, on the CPU by `cpu.rs` and on a GPU by `cuda.rs`, with the keys of
//!   `input.rs`.
//! - `output.rs` and `plot.rs` print and draw the results; `busy.rs` says when not to trust them.

mod args;
mod bench;
mod busy;
mod calibrate;
mod cpu;
#[cfg(cuda)]
mod cuda;
mod figures;
mod input;
mod measure;
mod output;
mod paper;
mod plot;
mod sap;
mod sort;

pub use args::{Calibrate, Command, Paper, Sap, Sort, ending, one_of, sort_backends};
pub use calibrate::run as calibrate;
use radsweep_common::Result;

/// Runs a command of `radsweep bench` and prints the results.
///
/// # Errors
///
/// The backend is missing, a file cannot be read or written, or a contender gave a wrong result.
pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Sort(args) => sort::run(args),
        Command::Sap(args) => sap::run(args),
        Command::Paper(args) => paper::run(args),
    }
}
