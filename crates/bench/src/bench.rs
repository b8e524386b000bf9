//! Measures sorts on the CPU or on a device, behind one interface.

use crate::cpu;
#[cfg(cuda)]
use crate::cuda;
use crate::measure::{Case, Contender, Effort, Measured, Times};
use radsweep::Backend;
use radsweep::sort::Algorithm;
use radsweep_common::Result;
use radsweep_common::backend::{self, Device};
use radsweep_common::numbers::counted;

/// Measures sorts on one backend.
pub(crate) enum Bench {
    Cpu(cpu::Bench),
    #[cfg(cuda)]
    Cuda(Box<cuda::Bench>),
}

impl Bench {
    pub fn new(asked: Backend) -> Result<Self> {
        match backend::choose(asked)?.device {
            Some(device) => Self::on(&device),
            None => Ok(Self::Cpu(cpu::Bench::new())),
        }
    }

    #[cfg(cuda)]
    pub fn on(device: &Device) -> Result<Self> {
        let calibration = radsweep_common::calibration::load(device);
        Ok(Self::Cuda(Box::new(cuda::Bench::new(device, calibration)?)))
    }
    #[cfg(not(cuda))]
    pub fn on(device: &Device) -> Result<Self> {
        match *device {}
    }

    pub fn is_cpu(&self) -> bool {
        matches!(self, Self::Cpu(_))
    }

    pub fn backend(&self) -> Backend {
        match self.is_cpu() {
            true => Backend::Cpu,
            false => Backend::Cuda,
        }
    }

    pub fn device(&self) -> String {
        match self {
            Self::Cpu(_) => {
                let threads = rayon::current_num_threads() as u64;
                counted(threads, "CPU thread", "CPU threads")
            }
            #[cfg(cuda)]
            Self::Cuda(bench) => bench.device(),
        }
    }

    /// Returns the rate of a plain copy: GB/s read plus written.
    pub fn copy_rate(&self) -> f64 {
        match self {
            Self::Cpu(bench) => bench.copy_rate(),
            #[cfg(cuda)]
            Self::Cuda(bench) => bench.copy_rate(),
        }
    }

    /// Measures one sort by one contender, with the paper's parameter or else the library's.
    pub fn measure(
        &mut self,
        case: &Case,
        contender: Contender,
        #[cfg_attr(not(cuda), expect(unused_variables, reason = "used on a GPU"))]
        parameter: Option<u32>,
        effort: Effort,
    ) -> Result<Measured> {
        match self {
            Self::Cpu(bench) => bench.measure(case, contender, effort),
            #[cfg(cuda)]
            Self::Cuda(bench) => bench.measure(case, contender, parameter, effort),
        }
    }

    /// Returns the time to move the algorithm's bytes at the copy rate, as a share of the measured
    /// time.
    ///
    /// Returns `None` on the CPU, where memory traffic does not bound a sort, and for baselines.
    pub fn limit_share(&self, case: &Case, times: &Times) -> Option<f64> {
        let algorithm: Algorithm = times.ran.parse().ok().filter(|_| !self.is_cpu())?;
        let key_bytes = case.key.bits() as usize / 8;
        let moved = case.load.bytes_moved(algorithm, key_bytes, case.n as u64) * case.n as f64;
        Some(moved / self.copy_rate() / 1e6 / times.median)
    }
}
