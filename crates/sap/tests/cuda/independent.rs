//! Large scenes pair by pair against parry's tree.

use super::{STRATEGIES, sized};
use crate::common::{independent, worst};
use libtest_mimic::Failed;
use sap::Backend;

pub const ALL: &[(&str, super::Other)] = &[("independent::scenes", scenes)];

fn scenes() -> Result<(), Failed> {
    let each = std::env::var("RADSWEEP_INDEPENDENT").ok();
    let each = each.map_or(1, |number| number.parse().expect("a number"));
    // Under emulation a scene of 600 boxes takes seconds.
    let step = sized(1, 6);
    for (turn, scene) in worst::scenes(sized(40_000, 600), each)
        .iter()
        .enumerate()
        .step_by(step)
    {
        independent::check(scene, Backend::Cuda, &STRATEGIES, turn)?;
    }
    Ok(())
}
