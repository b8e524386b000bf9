//! The frames of one case of `bench sap`, one after the other.

use super::input::Source;
use super::walk::walk;
use radsweep::Aabb;
use radsweep_common::Result;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use std::time::Duration;

/// How boxes move between frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Motion {
    /// Six frames of the scene, back and forth; boxes of a file move by up to 2.5 % of their size
    Moving,
    /// The same frame is repeated
    Still,
    /// All boxes walk by up to 10 % of their size
    All,
    /// All boxes walk by up to 1 % of their size
    Walk,
    /// One box in 100 walks by up to 10 % of its size
    Some,
    /// As `some`, with the moved boxes listed in `Frame::changed`
    Listed,
    /// Nothing moves, and an empty list says so
    None,
    /// One box in 5 walks by up to 5 % of its size; 16 ms of sleep before each update
    Game,
}

/// How boxes walk at random.
struct Walk {
    /// One box in this many walks, in turns; none at 0.
    one_in: usize,
    /// The max step, as a share of the size.
    share: f32,
}

impl Motion {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Moving => "moving",
            Self::Still => "still",
            Self::All => "all",
            Self::Walk => "walk",
            Self::Some => "some",
            Self::Listed => "listed",
            Self::None => "none",
            Self::Game => "game",
        }
    }

    const fn walk(self) -> Walk {
        let (one_in, share) = match self {
            Self::Moving | Self::Still | Self::None => (0, 0.0),
            Self::All => (1, 0.1),
            Self::Walk => (1, 0.01),
            Self::Some | Self::Listed => (100, 0.1),
            Self::Game => (5, 0.05),
        };
        Walk { one_in, share }
    }

    /// Returns how many updates are measured if the caller does not say.
    pub(super) fn runs(self, n: usize) -> usize {
        match self {
            Self::Moving | Self::Still => 21,
            Self::Game => 60,
            _ => (4_000_000 / n.max(1)).clamp(21, 2000),
        }
    }

    /// Returns the sleep before each update, after which caches and processors are as in a game.
    pub(super) const fn pause(self) -> Duration {
        match self {
            Self::Game => Duration::from_millis(16),
            _ => Duration::ZERO,
        }
    }
}

/// The seed of the walks.
const SEED: u64 = 7;
/// Distinct frames of a moving scene.
const FRAMES: usize = 6;

/// The frames of one case: the current one, and what changed.
pub(super) struct Frames {
    pub motion: Motion,
    /// The frames of a moving scene, else the first.
    given: Vec<Vec<Aabb>>,
    boxes: Vec<Aabb>,
    changed: Vec<u32>,
    rng: Xoshiro256PlusPlus,
}

impl Frames {
    pub fn new(source: &Source, motion: Motion, n: usize) -> Result<Self> {
        let count = if motion == Motion::Moving { FRAMES } else { 1 };
        let given = source.frames(n, count)?;
        Ok(Self {
            motion,
            boxes: given[0].clone(),
            given,
            changed: Vec::new(),
            rng: Xoshiro256PlusPlus::seed_from_u64(SEED),
        })
    }

    /// Goes to the frame of a round. Rounds are counted from 0, which has the first frame.
    pub fn go_to(&mut self, round: usize) {
        let n = self.boxes.len();
        self.changed.clear();
        if round == 0 {
            self.boxes.clone_from(&self.given[0]);
            self.rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
            return;
        }
        let Walk { one_in, share } = self.motion.walk();
        if self.motion == Motion::Moving {
            self.boxes.clone_from(&self.given[frame_of(round, FRAMES)]);
            self.changed.extend(0..n as u32);
        } else if one_in > 0 {
            let walking = (round % one_in..n).step_by(one_in);
            self.changed.extend(walking.map(|i| i as u32));
            for &i in &self.changed {
                walk(&mut self.boxes[i as usize], share, &mut self.rng);
            }
        }
    }

    pub fn boxes(&self) -> &[Aabb] {
        &self.boxes
    }

    /// Returns the boxes that differ from those of the round before.
    pub fn changed(&self) -> &[u32] {
        &self.changed
    }

    /// Returns the list of changed boxes, where the broad phase is told.
    pub fn listed(&self) -> Option<&[u32]> {
        let is_told = matches!(self.motion, Motion::Listed | Motion::None);
        is_told.then_some(&self.changed)
    }
}

/// Returns the frame of a round: 0, 1, 2, 1, 0, 1 and so on, so that each resembles the one before.
fn frame_of(round: usize, frames: usize) -> usize {
    let at = round % (2 * frames - 2);
    at.min(2 * frames - 2 - at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use radsweep_scenes::Kind;

    #[test]
    fn rounds_run_through_the_frames_back_and_forth() {
        let found: Vec<usize> = (0..9).map(|round| frame_of(round, 4)).collect();
        assert_eq!(found, [0, 1, 2, 3, 2, 1, 0, 1, 2]);
    }

    #[test]
    fn what_changed_is_what_differs() {
        for &motion in Motion::value_variants() {
            let mut frames =
                Frames::new(&Source::Scene(Kind::Uniform), motion, 300).expect("boxes");
            let mut before = frames.boxes().to_vec();
            for round in 0..9 {
                frames.go_to(round);
                let differs = |i: &u32| before[*i as usize] != frames.boxes()[*i as usize];
                let differing: Vec<u32> = (0..300).filter(differs).collect();
                let changed = frames.changed();
                assert!(differing.iter().all(|i| changed.contains(i)), "{motion:?}");
                let expected = match (motion, round) {
                    (Motion::Still | Motion::None, _) | (_, 0) => 0,
                    (Motion::Some | Motion::Listed, _) => 3,
                    (Motion::Game, _) => 60,
                    _ => 300,
                };
                assert_eq!(changed.len(), expected, "{motion:?}");
                assert_eq!(differing.is_empty(), expected == 0, "{motion:?}");
                before = frames.boxes().to_vec();
            }
        }
    }
}
