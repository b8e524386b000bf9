//! The contenders of `bench sap`: a strategy of radsweep on a backend, or a peer.

use super::peers::{Peer, Running};
use crate::measure::milliseconds;
use radsweep::{Aabb, Backend, BroadPhase, Config, Pair, Report, Strategy};
use radsweep_common::Result;
use rayon::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contender {
    /// A strategy of radsweep, on the backend of the bench.
    Ours(Strategy),
    Peer(Peer),
}

impl Contender {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours(strategy) => strategy.name(),
            Self::Peer(peer) => peer.name(),
        }
    }
}

/// One update.
pub(super) struct Update {
    /// Milliseconds from boxes to all pairs: sorted for radsweep, in any order for a peer.
    pub ms: f64,
    /// Milliseconds including sorting the pairs.
    pub sorted_ms: f64,
    /// The report; radsweep only.
    pub report: Option<Report>,
}

/// A contender with its state between frames.
pub(super) enum Ready {
    Ours {
        broad_phase: Box<BroadPhase>,
        #[cfg(cuda)]
        on_device: Vec<radsweep::gpu::Buffer<Aabb>>,
    },
    Peer {
        running: Box<Running>,
        pairs: Vec<Pair>,
    },
}

impl Ready {
    /// Prepares a contender. On CUDA it uploads the frames: updates read them on the device and
    /// leave the pairs there.
    pub fn new(
        contender: Contender,
        config: &Config,
        #[cfg_attr(not(cuda), expect(unused_variables, reason = "used on a GPU"))] frames: &[Vec<
            Aabb,
        >],
    ) -> Result<Self> {
        let strategy = match contender {
            Contender::Ours(strategy) => strategy,
            Contender::Peer(peer) => {
                let running = Running::new(peer).ok_or("build with `--features peers`")?;
                let running = Box::new(running);
                let pairs = Vec::new();
                return Ok(Self::Peer { running, pairs });
            }
        };
        let broad_phase = BroadPhase::new(Config {
            strategy,
            ..config.clone()
        })?;
        #[cfg(cuda)]
        let on_device = match broad_phase.stream() {
            Some(stream) => frames
                .iter()
                .map(|frame| stream.from_slice(frame))
                .collect::<std::result::Result<_, _>>()?,
            None => Vec::new(),
        };
        Ok(Self::Ours {
            broad_phase: Box::new(broad_phase),
            #[cfg(cuda)]
            on_device,
        })
    }

    /// Finds the pairs of a frame and measures it.
    pub fn update(&mut self, frames: &[Vec<Aabb>], frame: usize) -> Result<Update> {
        match self {
            #[cfg(cuda)]
            Self::Ours {
                broad_phase,
                on_device,
            } if broad_phase.stream().is_some() => {
                let report = broad_phase.update_device(on_device[frame].slice())?.clone();
                Ok(Update::new(report.stats.timings.total, report))
            }
            Self::Ours { broad_phase, .. } => {
                let (ms, report) = milliseconds(|| broad_phase.update(&frames[frame]));
                Ok(Update::new(ms, report?.clone()))
            }
            Self::Peer { running, pairs } => {
                // Freeing the last frame's pairs is not measured.
                pairs.clear();
                let ms;
                (ms, *pairs) = milliseconds(|| running.find(&frames[frame]));
                let (sorting, ()) = milliseconds(|| pairs.par_sort_unstable());
                Ok(Update {
                    ms,
                    sorted_ms: ms + sorting,
                    report: None,
                })
            }
        }
    }

    /// Returns the number and the hash of the last frame's pairs.
    pub fn found(&mut self) -> Result<(u64, u64)> {
        let pairs = match self {
            Self::Ours { broad_phase, .. } => {
                broad_phase.download()?;
                broad_phase.pairs()
            }
            Self::Peer { pairs, .. } => pairs,
        };
        Ok((pairs.len() as u64, radsweep::internals::pair_hash(pairs)))
    }
}

impl Update {
    fn new(ms: f64, report: Report) -> Self {
        Self {
            ms,
            sorted_ms: ms,
            report: Some(report),
        }
    }
}

/// Returns the number and the hash of a frame's pairs, which all contenders must match.
pub(super) fn expected(boxes: &[Aabb]) -> Result<(u64, u64)> {
    let mut broad_phase = BroadPhase::new(Config {
        backend: Backend::Cpu,
        events: false,
        ..Config::default()
    })?;
    broad_phase.update(boxes)?;
    let pairs = broad_phase.pairs();
    Ok((pairs.len() as u64, radsweep::internals::pair_hash(pairs)))
}
