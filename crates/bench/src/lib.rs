//! Measurements: the commands `radsweep bench` and `radsweep calibrate`, from their arguments to what they print and draw.
//!
//! `sort.rs`, `paper.rs` (with the figures of the papers in `figures.rs`), `sap/` and `calibrate.rs` are a command each. They
//! measure sorts through `bench.rs`, which takes the times by `cuda.rs` and `cpu.rs` over the inputs of `input.rs`,
//! and show them by `output.rs` and `plot.rs`.

mod args;
mod bench;
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

pub use args::{Calibrate, Command, Paper, Sap, Sort};
pub use calibrate::run as calibrate;
use radsweep_common::Result;

/// Measures what is asked for, and prints it.
///
/// # Errors
///
/// What is asked for cannot be had here, a file cannot be read or written, or a contender gave a wrong result.
pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Sort(args) => sort::run(args),
        Command::Sap(args) => sap::run(args),
        Command::Paper(args) => paper::run(args),
    }
}
