//! `radsweep calibrate`: measures the fastest sort for each size, for the algorithm `auto`.

#[cfg(cuda)]
mod measured;

use crate::args::Calibrate;
use radsweep_common::{Result, backend};

/// Measures the fastest sort for each size on this NVIDIA GPU, and saves the result for the
/// algorithm `auto`.
///
/// # Errors
///
/// There is no GPU, a sort fails, or the file cannot be written.
#[cfg_attr(not(cuda), expect(unused_variables, reason = "used on a GPU"))]
pub fn run(args: &Calibrate) -> Result<()> {
    match backend::device() {
        #[cfg(cuda)]
        Ok(device) => measured::run(args, &device),
        #[cfg(not(cuda))]
        Ok(device) => match device {},
        Err(why) => Err(format!(
            "nothing to calibrate: only CUDA has several sorts to choose from ({why})"
        )
        .into()),
    }
}
