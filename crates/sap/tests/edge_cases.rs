//! The edge cases on the CPU, for each strategy and both rules.

mod common;

use libtest_mimic::Arguments;
use sap::{Backend, Strategy};

fn main() {
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, common::trials(Backend::Cpu, Strategy::ALL)).exit();
}
