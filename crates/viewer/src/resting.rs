//! Finds the resting pairs: those of two sleeping boxes, which the filters of a scene leave out.
//!
//! A heap that sleeps has no pairs to show, but its boxes still touch. A broad phase of the
//! viewer's own finds these pairs, without the flag for sleep and only when a box falls asleep or
//! wakes up.

use radsweep::{Aabb, Backend, BroadPhase, Config, Filter, FilterFlags, Frame, Pair};
use radsweep_scenes::Scene;

/// The resting pairs of a scene.
#[derive(Default)]
pub(super) struct Resting {
    /// Created when the first box sleeps.
    broad_phase: Option<BroadPhase>,
    /// The sleeping boxes; others are empty.
    boxes: Vec<Aabb>,
    filters: Vec<Filter>,
}

impl Resting {
    /// Updates the pairs to the scene's last frame. The configuration of the scene's broad phase
    /// decides what overlaps.
    ///
    /// # Errors
    ///
    /// Errors of the scene's device and of [`BroadPhase::update`].
    pub fn update(&mut self, scene: &Scene, config: &Config) -> radsweep::Result<()> {
        let filters = scene.filters();
        let moves = |filter: &Filter| !filter.flags.contains(FilterFlags::STATIC);
        if !filters.iter().any(|filter| sleeps(filter) && moves(filter)) {
            *self = Self::default();
            return Ok(());
        }
        let sleeping = filters.iter().zip(scene.boxes()?);
        let sleeping = sleeping.map(|(filter, &aabb)| match sleeps(filter) {
            true => aabb,
            false => Aabb::EMPTY,
        });
        let known = self.boxes.iter().copied();
        if self.broad_phase.is_some() && known.eq(sleeping.clone()) {
            return Ok(());
        }
        self.boxes.clear();
        self.boxes.extend(sleeping);
        self.filters.clear();
        self.filters.extend(filters.iter().map(|filter| Filter {
            flags: FilterFlags(filter.flags.0 & !FilterFlags::ASLEEP.0),
            ..*filter
        }));
        if self.broad_phase.is_none() {
            self.broad_phase = Some(BroadPhase::new(Config {
                backend: Backend::Cpu,
                events: false,
                ..config.clone()
            })?);
        }
        if let Some(broad_phase) = &mut self.broad_phase {
            broad_phase.update(Frame::boxes(&self.boxes).filters(&self.filters))?;
        }
        Ok(())
    }

    /// Returns the pairs of the last update, sorted.
    pub fn pairs(&self) -> &[Pair] {
        self.broad_phase.as_ref().map_or(&[], BroadPhase::pairs)
    }
}

fn sleeps(filter: &Filter) -> bool {
    filter.flags.contains(FilterFlags::ASLEEP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use radsweep_scenes::{Action, Kind, Options};

    /// Returns the pairs of boxes that overlap, of different groups and asleep, by brute force.
    fn expected(scene: &Scene) -> Vec<Pair> {
        let (boxes, filters) = (scene.boxes().expect("host boxes"), scene.filters());
        let overlap = |a: &Aabb, b: &Aabb| {
            (0..3).all(|axis| a.min[axis] <= b.max[axis] && b.min[axis] <= a.max[axis])
        };
        let mut pairs = Vec::new();
        for b in 0..boxes.len() {
            for a in 0..b {
                let asleep = sleeps(&filters[a]) && sleeps(&filters[b]);
                let same = filters[a].group == filters[b].group;
                if asleep && !same && overlap(&boxes[a], &boxes[b]) {
                    pairs.push(Pair::new(a as u32, b as u32));
                }
            }
        }
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn a_heap_that_sleeps_has_the_pairs_of_its_boxes() {
        let options = Options {
            bodies: Some(12),
            ..Options::default()
        };
        let config = Config {
            backend: Backend::Cpu,
            ..Config::default()
        };
        let mut scene = Scene::new(Kind::FallingChairs, &options).expect("a scene");
        let mut broad_phase = BroadPhase::new(config.clone()).expect("the CPU is there");
        let mut resting = Resting::default();
        let (mut partly, mut wholly) = (false, false);
        for frame in 0..1500 {
            scene.step(&mut broad_phase).expect("valid");
            resting.update(&scene, &config).expect("valid");
            let asleep = scene.filters().iter().filter(|f| sleeps(f)).count();
            if asleep == 1 {
                assert_eq!(resting.pairs(), [], "only the floor");
            } else if frame % 8 == 0 {
                assert_eq!(resting.pairs(), expected(&scene), "frame {frame}");
                partly |= !resting.pairs().is_empty();
            }
            if asleep == scene.filters().len() {
                assert_eq!(broad_phase.pairs(), []);
                assert_eq!(resting.pairs(), expected(&scene));
                wholly = true;
                break;
            }
        }
        assert!(partly && wholly, "{partly} {wholly}");
        // A ball wakes the heap: its pairs rest no longer.
        let ball = Action::Throw {
            from: [0.0, 4.0, 0.0],
            velocity: [0.0, -10.0, 0.0],
            radius: 0.4,
        };
        scene.act(&ball).expect("there is room");
        let all = resting.pairs().len();
        let mut fewest = all;
        for frame in 0..90 {
            scene.step(&mut broad_phase).expect("valid");
            resting.update(&scene, &config).expect("valid");
            fewest = fewest.min(resting.pairs().len());
            if frame % 8 == 0 && fewest > 0 {
                assert_eq!(resting.pairs(), expected(&scene), "frame {frame}");
            }
        }
        assert!(fewest < all / 2, "{fewest} of {all} pairs rested on");
    }
}
