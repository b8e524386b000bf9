//! Scenes of 33,000 boxes by every strategy of the CPU engine, pair by pair against parry's tree.
//!
//! `RADSWEEP_INDEPENDENT` is the number of random scenes of each shape, in addition to the worst
//! ones found.

mod common;

use common::generators::Scene;
use common::{independent, quick, worst};
use libtest_mimic::{Arguments, Trial};
use sap::{Backend, Strategy};

fn main() {
    let arguments = Arguments::from_args();
    let wished = std::env::var("RADSWEEP_INDEPENDENT").ok();
    let each = wished
        .as_ref()
        .map_or(1, |number| number.parse().expect("a number"));
    let n = if quick() { 700 } else { 33_000 };
    let scenes = worst::scenes(n, each).into_iter().enumerate();
    // Quadratic scenes take seconds.
    let few = |(turn, _): &(usize, _)| wished.is_some() || turn % 7 == 0;
    let trial = |(turn, scene): (usize, Scene)| {
        Trial::test(scene.to_string(), move || {
            independent::check(&scene, Backend::Cpu, Strategy::ALL, turn)
        })
    };
    let trials = scenes.filter(few).map(trial).collect();
    libtest_mimic::run(&arguments, trials).exit();
}
