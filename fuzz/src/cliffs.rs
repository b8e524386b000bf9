//! Checks that updates of scenes that are hard to sweep stay below the bound on tests.

use crate::generators::Scene;
use crate::random::Random;
use crate::shapes::Shape;
use arbitrary::{Result, Unstructured};
use sap::{Backend, BroadPhase, Config, Error};

/// Boxes of a scene: the fewest for which testing every two boxes takes twice the bound of
/// `crates/sap/tests/cliffs.rs`.
const N: usize = 8_000;
const MOST_TESTS: u64 = 2_000;

pub fn target(data: &[u8]) {
    // The input may end early, which is no finding.
    let _ = run(&mut Unstructured::new(data));
}

fn run(bytes: &mut Unstructured) -> Result<()> {
    let shape = *bytes.choose(Shape::ALL)?;
    let mut scene = Scene::any(shape, N, &mut Random::new(bytes.arbitrary()?));
    for part in &mut scene.parts {
        part.knobs = bytes.arbitrary()?;
    }
    let config = Config {
        backend: Backend::Cpu,
        pair_memory: Some(8 << 20),
        ..Config::default()
    };
    let mut engine = BroadPhase::new(config).expect("the CPU is there");
    match engine.update(scene.make().frame()) {
        Ok(report) => {
            let most = MOST_TESTS * (report.n as u64 + report.pairs);
            assert!(
                report.stats.tests <= most,
                "{} tests, not {most}: {scene}",
                report.stats.tests
            );
        }
        Err(Error::TooManyPairs { .. }) => {}
        Err(error) => panic!("{error}: {scene}"),
    }
    Ok(())
}
