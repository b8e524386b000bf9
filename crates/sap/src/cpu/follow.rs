//! An engine that goes on where another one has failed.

use super::Engine;
use super::scene::Scene;
use crate::Config;
use crate::last::Last;

impl Engine {
    /// An engine with the last result of another one: events of the next update are against it, and margins go on from its
    /// stored boxes.
    pub(crate) fn following(config: &Config, last: Last) -> Self {
        let (boxes, tight) = if last.stored.is_empty() {
            (last.given, Vec::new())
        } else {
            (last.stored, last.given)
        };
        Self {
            pairs: last.pairs,
            started: last.started,
            ended: last.ended,
            scene: Scene {
                boxes,
                tight,
                ..Scene::default()
            },
            ..Self::new(config)
        }
    }
}
