//! `radsweep calibrate`: which sort is the fastest here, by size, for `auto`.

#[cfg(cuda)]
mod measured;

use crate::args::Calibrate;
use radsweep_common::{Result, backend};

/// Measures which sort is the fastest on this GPU by size, and keeps it for the algorithm `auto`.
///
/// # Errors
///
/// There is no GPU, a sort fails, or the file cannot be written.
#[cfg_attr(not(cuda), expect(unused_variables, reason = "a GPU's"))]
pub fn run(args: &Calibrate) -> Result<()> {
    match backend::device() {
        #[cfg(cuda)]
        Ok(device) => measured::run(args, &device),
        #[cfg(not(cuda))]
        Ok(device) => match device {},
        Err(why) => Err(format!(
            "nothing to calibrate: the CPU has one sort, and there is no GPU here ({why})"
        )
        .into()),
    }
}
