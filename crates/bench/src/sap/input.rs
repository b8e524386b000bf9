//! The inputs of `bench sap`: frames of boxes, from a scene or from a file.

use super::walk::moved;
use radsweep::{Aabb, Backend, BroadPhase, Config};
use radsweep_common::Result;
use radsweep_common::npy;
use radsweep_common::output::{is_dash, name};
use radsweep_scenes::{Kind, Options, Scene};
use std::error::Error;
use std::fmt;
use std::path::PathBuf;

/// Boxes per chair of `falling-chairs`.
const CHAIR: usize = 9;
/// Frames until chairs, or particles, touch each other.
const FALL: usize = 60;

/// The source of the boxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Scene(Kind),
    /// A file of boxes, or `-`.
    File(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scene(kind) => kind.fmt(f),
            _ if self.is_stdin() => f.pad("stdin"),
            Self::File(path) => f.pad(&path.file_stem().unwrap_or_default().to_string_lossy()),
        }
    }
}

impl Source {
    pub fn is_stdin(&self) -> bool {
        matches!(self, Self::File(path) if is_dash(path))
    }

    /// Puts the name of the file before an error of its boxes.
    pub fn blame(&self, error: Box<dyn Error>) -> Box<dyn Error> {
        match self {
            Self::Scene(_) => error,
            Self::File(path) => format!("{}: {error}", name(path, "stdin").display()).into(),
        }
    }

    /// Returns `count` similar frames of about `n` boxes; a file ignores `n`.
    pub fn frames(&self, n: usize, count: usize) -> Result<Vec<Vec<Aabb>>> {
        match self {
            Self::Scene(kind) => of_scene(*kind, n, count),
            Self::File(path) => {
                let boxes = npy::read_boxes(path)?.outward();
                let moved = |frame: usize| match frame {
                    0 => boxes.clone(),
                    _ => moved(&boxes, frame as u64),
                };
                Ok((0..count).map(moved).collect())
            }
        }
    }
}

fn of_scene(kind: Kind, n: usize, count: usize) -> Result<Vec<Vec<Aabb>>> {
    let (bodies, skipped) = match kind {
        Kind::FallingChairs => (n.div_ceil(CHAIR), FALL),
        Kind::Particles => (n, FALL),
        _ => (n, 0),
    };
    let options = Options {
        bodies: Some(bodies),
        ..Options::default()
    };
    let mut scene = Scene::new(kind, &options)?;
    let mut broad_phase = BroadPhase::new(Config {
        backend: Backend::Cpu,
        ..Config::default()
    })?;
    let mut frames = Vec::new();
    for frame in 0..skipped + count {
        scene.step(&mut broad_phase)?;
        if frame >= skipped {
            frames.push(scene.boxes()?.to_vec());
        }
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_similar_and_repeatable() {
        for kind in [Kind::Uniform, Kind::FallingChairs, Kind::Particles] {
            let source = Source::Scene(kind);
            let frames = source.frames(500, 3).expect("frames");
            assert_eq!(frames, source.frames(500, 3).expect("frames"));
            assert_eq!(frames.len(), 3);
            assert!(frames[0].len() >= 500 && frames[0] != frames[1]);
            for (a, b) in frames[0].iter().zip(&frames[1]) {
                let near = (0..3).all(|k| (a.min[k] - b.min[k]).abs() < 0.5);
                assert!(near, "{kind}: {a:?} {b:?}");
            }
        }
    }
}
