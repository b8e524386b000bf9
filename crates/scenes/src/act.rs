//! What a user can do to the bodies of a scene, and why a scene refuses it.

use bevy_ecs::prelude::{Resource, World};
use glam::Vec3;
use rand::rngs::Xoshiro256PlusPlus as Rng;

/// Something to do to the bodies of a scene. Lengths are in its coordinates, speeds per second.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// Adds a ball that flies.
    Throw {
        /// Its centre.
        from: [f32; 3],
        /// Its velocity.
        velocity: [f32; 3],
        /// Its radius.
        radius: f32,
    },
    /// Takes hold of a body instead of the one held before, and wakes it.
    Grab {
        /// The index of the body.
        body: u32,
        /// The point of the body that a spring pulls.
        point: [f32; 3],
    },
    /// Moves the other end of the spring. Without a held body nothing changes.
    Drag {
        /// The point to which the spring pulls.
        target: [f32; 3],
    },
    /// Lets the held body go.
    Release,
    /// Drives the bodies around a point away from it, and wakes them.
    Explode {
        /// The point.
        at: [f32; 3],
        /// The speed that a body at the point gains. It decreases linearly with the distance.
        speed: f32,
        /// The distance at which it is 0.
        radius: f32,
    },
    /// Adds bodies of the scene's own kind.
    Add {
        /// Their number.
        count: usize,
    },
}

/// Why a scene refuses an action.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The bodies are on a GPU.
    #[error("the bodies of this scene are on the GPU: choose the backend cpu to act on them")]
    OnDevice,
    /// The bodies follow fixed paths.
    #[error("the boxes of this scene follow fixed paths")]
    FixedPaths,
    /// The body cannot move, or does not exist.
    #[error("body {body} cannot be held: it does not move or does not exist")]
    Body {
        /// The index of the body.
        body: u32,
    },
    /// The scene would have too many boxes.
    #[error("{more} boxes cannot be added to {boxes}: a scene has at most {limit}")]
    TooMany {
        /// The number of boxes to add.
        more: usize,
        /// The number of boxes that it has.
        boxes: usize,
        /// The max number.
        limit: usize,
    },
    /// A value of the action is out of range.
    #[error("the {what} {value} is not between {} and {}", .range[0], .range[1])]
    Value {
        /// Which value.
        what: &'static str,
        /// The value.
        value: f32,
        /// Its min and max.
        range: [f32; 2],
    },
}

/// Carries out an action that passed [`Action::check`].
pub(super) type Act = fn(&mut World, &Action) -> Result<(), Refusal>;

/// Max magnitude of a coordinate of a point, for the precision of 32 bits.
const FAR: f32 = 1e6;
/// Max magnitude of a coordinate of a velocity.
const FAST: f32 = 1e4;
/// Min and max radius.
const RADII: [f32; 2] = [1e-3, 1e4];

impl Action {
    /// Checks that all values are finite and within their ranges.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let within = |what, values: &[f32], range: [f32; 2]| {
            let outside = |value: &&f32| !(range[0]..=range[1]).contains(*value);
            let outside = values.iter().find(outside);
            outside.map_or(Ok(()), |&value| Err(Refusal::Value { what, value, range }))
        };
        let point = |point: &[f32; 3]| within("coordinate", point, [-FAR, FAR]);
        match self {
            Self::Throw {
                from,
                velocity,
                radius,
            } => {
                point(from)?;
                within("speed", velocity, [-FAST, FAST])?;
                within("radius", &[*radius], RADII)
            }
            Self::Grab { point: at, .. } | Self::Drag { target: at } => point(at),
            Self::Explode { at, speed, radius } => {
                point(at)?;
                within("speed", &[*speed], [-FAST, FAST])?;
                within("radius", &[*radius], RADII)
            }
            Self::Release | Self::Add { .. } => Ok(()),
        }
    }
}

/// An explosion, as [`Action::Explode`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Blast {
    pub at: Vec3,
    pub speed: f32,
    pub radius: f32,
}

impl Blast {
    /// Returns the velocity that a body at this point gains; `None` outside of the radius.
    pub fn gain(&self, point: Vec3) -> Option<Vec3> {
        let way = point - self.at;
        let part = 1.0 - way.length() / self.radius;
        (part > 0.0).then(|| way.normalize_or(Vec3::Y) * (self.speed * part))
    }
}

/// The random numbers of bodies that are added to a scene.
#[derive(Resource)]
pub(super) struct Added(pub Rng);

/// The body that the user drags in a scene without forces on points: its velocity follows.
#[derive(Resource, Default)]
pub(super) struct Held(Option<Hold>);

/// A body, the held point from its centre, and where the point is dragged.
struct Hold {
    body: usize,
    point: Vec3,
    target: Vec3,
}

/// Frames in which a held body would reach its target.
const DRAG_FRAMES: f32 = 6.0;

impl Held {
    /// Grabs, drags or releases a body, given the centre of each that there is.
    pub fn act(
        &mut self,
        action: &Action,
        center: impl FnOnce(usize) -> Option<Vec3>,
    ) -> Result<(), Refusal> {
        match *action {
            Action::Grab { body, point } => {
                let target = Vec3::from(point);
                let center = center(body as usize).ok_or(Refusal::Body { body })?;
                self.0 = Some(Hold {
                    body: body as usize,
                    point: target - center,
                    target,
                });
            }
            Action::Drag { target } => {
                if let Some(hold) = &mut self.0 {
                    hold.target = target.into();
                }
            }
            Action::Release => self.0 = None,
            _ => {}
        }
        Ok(())
    }

    /// Returns the index of the held body.
    pub fn body(&self) -> Option<usize> {
        self.0.as_ref().map(|hold| hold.body)
    }

    /// Returns the motion per frame of the held body towards its target, given its centre.
    pub fn motion(&self, center: Vec3) -> Vec3 {
        let way = self
            .0
            .as_ref()
            .map(|hold| hold.target - hold.point - center);
        way.unwrap_or_default() / DRAG_FRAMES
    }
}

#[cfg(test)]
mod tests;
