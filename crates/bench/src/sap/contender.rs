//! The contenders of `bench sap`: a strategy of radsweep on a backend, or a peer.

use super::frames::Frames;
use super::peers::{Peer, Running};
use crate::measure::milliseconds;
use radsweep::{Aabb, Backend, BroadPhase, Config, Frame, Pair, Report, Strategy};
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
        /// The boxes of the frame on the device.
        #[cfg(cuda)]
        on_device: Option<radsweep::gpu::Buffer<Aabb>>,
    },
    Peer {
        running: Box<Running>,
        pairs: Vec<Pair>,
    },
}

impl Ready {
    /// Prepares a contender.
    pub fn new(contender: Contender, config: &Config) -> Result<Self> {
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
        Ok(Self::Ours {
            broad_phase: Box::new(broad_phase),
            #[cfg(cuda)]
            on_device: None,
        })
    }

    /// Finds the pairs of the current frame, and measures what a caller waits for. On CUDA boxes
    /// and pairs stay on the device; the upload of the boxes is not measured.
    pub fn update(&mut self, frames: &Frames) -> Result<Update> {
        match self {
            #[cfg(cuda)]
            Self::Ours {
                broad_phase,
                on_device,
            } if broad_phase.stream().is_some() => {
                let stream = broad_phase.stream().ok_or("no stream")?;
                let boxes = match on_device {
                    Some(boxes) => {
                        stream.upload(boxes.slice_mut(), frames.boxes())?;
                        boxes
                    }
                    None => on_device.insert(stream.from_slice(frames.boxes())?),
                };
                stream.synchronize()?;
                let (ms, report) = milliseconds(|| broad_phase.update_device(boxes.slice()));
                Ok(Update::new(ms, report?.clone()))
            }
            Self::Ours { broad_phase, .. } => {
                let frame = Frame::boxes(frames.boxes());
                let frame = match frames.listed() {
                    Some(listed) => frame.changed(listed),
                    None => frame,
                };
                let (ms, report) = milliseconds(|| broad_phase.update(frame));
                Ok(Update::new(ms, report?.clone()))
            }
            Self::Peer { running, pairs } => {
                // Freeing the last frame's pairs is not measured.
                pairs.clear();
                let ms;
                (ms, *pairs) = milliseconds(|| running.find(frames.boxes(), frames.changed()));
                if let Some(kept) = running.kept() {
                    *pairs = kept;
                }
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
