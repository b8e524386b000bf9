//! The scenes of the program: worlds of `bevy_ecs` whose boxes a [`BroadPhase`] pairs every frame.
//!
//! The same seed gives the same scene on every backend and number of threads: random numbers come
//! from Xoshiro256++ (`rand::rngs::Xoshiro256PlusPlus`), an entity's box index never changes, and
//! systems process the pairs in sorted order. Rendering is done elsewhere.
//!
//! ```
//! use radsweep_scenes::{Kind, Options, Scene};
//! use radsweep::{BroadPhase, Config};
//!
//! let options = Options { bodies: Some(1000), ..Options::default() };
//! let mut scene = Scene::new(Kind::Uniform, &options)?;
//! let mut broad_phase = BroadPhase::new(Config::default())?;
//! let first = scene.step(&mut broad_phase)?;
//! assert_eq!(first.report.n, 1000);
//! assert!(first.report.pairs > 100);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod barnes_hut;
mod chair;
mod colours;
mod constraint;
mod contacts;
#[cfg(cuda)]
mod device;
mod drifting;
mod falling_chairs;
mod galaxy;
mod ground;
mod islands;
mod mesh;
mod neighbours;
mod particles;
mod picture;
mod solver;
mod stack;

use bevy_ecs::prelude::*;
use bevy_ecs::schedule::SingleThreadedExecutor;
pub use mesh::{Mesh, chair_mesh};
pub use picture::{Instance, Landscape, Picture, Shape};
use radsweep::{Aabb, BroadPhase, Filter, Frame, Pair, Report};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus as Rng;
use std::fmt;
use std::str::FromStr;
use std::time::Instant;

/// Defines [`Kind`] and its methods from a table with an entry for each scene: its name, default
/// bodies and frames, the boxes that a body counts for in the limit, and the function that builds
/// it.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($name:literal) {
        bodies: $bodies:literal, frames: $frames:literal, boxes: $boxes:literal, build: $build:expr
    })*) => {
        /// A scene. It parses from and displays as its name on the command line.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// All scenes.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Returns the name on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// Returns the default number of bodies.
            #[must_use]
            pub const fn default_bodies(self) -> usize {
                match self { $(Self::$kind => $bodies,)* }
            }

            /// Returns the default number of frames. The chairs come to rest within theirs.
            #[must_use]
            pub const fn default_frames(self) -> u32 {
                match self { $(Self::$kind => $frames,)* }
            }

            /// Returns the max number of bodies: [`Options::MAX_BOXES`] over the boxes of a body.
            const fn max_bodies(self) -> usize {
                Options::MAX_BOXES / match self { $(Self::$kind => $boxes,)* }
            }

            /// Builds the scene with this many bodies and this density.
            fn build(self, bodies: usize, density: f32, rng: &mut Rng) -> Scene {
                let build: fn(usize, f32, &mut Rng) -> Scene = match self {
                    $(Self::$kind => $build,)*
                };
                build(bodies, density, rng)
            }
        }
    };
}

kinds! {
    /// Chairs that fall onto a heap: rigid bodies of nine boxes, with full physics.
    FallingChairs("falling-chairs") {
        bodies: 1500, frames: 300, boxes: 16, build: |bodies, _, rng| falling_chairs::scene(bodies, rng)
    }
    /// Balls that flow down a landscape and collide with it and with each other.
    Particles("particles") {
        bodies: 50_000, frames: 300, boxes: 1, build: |bodies, _, rng| particles::scene(bodies, rng)
    }
    /// Two galaxies that meet: bodies attract each other by gravity and bounce where they touch.
    Galaxy("galaxy") {
        bodies: 8192, frames: 300, boxes: 64, build: |bodies, _, rng| galaxy::scene(bodies, rng)
    }
    /// Drifting boxes of similar size, uniformly distributed.
    Uniform("uniform") {
        bodies: 100_000, frames: 60, boxes: 1, build: drifting::uniform
    }
    /// Drifting boxes in clusters of very different density.
    Clustered("clustered") {
        bodies: 100_000, frames: 60, boxes: 1, build: drifting::clustered
    }
    /// Drifting boxes with sizes over six decades.
    MixedSizes("mixed-sizes") {
        bodies: 100_000, frames: 60, boxes: 1, build: drifting::mixed_sizes
    }
    /// Towers of boxes on a ground plate, face to face, sheared by a travelling wave.
    Stack("stack") {
        bodies: 100_000, frames: 60, boxes: 1, build: |bodies, _, rng| stack::scene(bodies, rng)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.iter().find(|kind| kind.name() == name);
        found
            .copied()
            .ok_or_else(|| Error::UnknownScene { name: name.into() })
    }
}

/// Why a scene could not be created.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No scene has this name.
    #[error("unknown scene `{name}`: known are {}", Kind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", "))]
    UnknownScene {
        /// The unknown name.
        name: String,
    },
    /// The number of bodies is zero or too large.
    #[error("{bodies} bodies requested, but this scene can have 1 to {limit}")]
    Bodies {
        /// The requested number of bodies.
        bodies: usize,
        /// The max number of bodies of this scene.
        limit: usize,
    },
    /// The density is out of range.
    #[error("density {density} is not between {} and {}", Options::DENSITIES.0, Options::DENSITIES.1)]
    Density {
        /// The requested density.
        density: f32,
    },
    /// The GPU, or a call to it, failed.
    #[cfg(cuda)]
    #[error(transparent)]
    Gpu(#[from] radsweep::gpu::Error),
    /// A sort on the GPU failed.
    #[cfg(cuda)]
    #[error(transparent)]
    Sort(#[from] radsweep::sort::Error),
}

/// The options of a scene.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Number of chairs, or of boxes in the other scenes; `None` for [`Kind::default_bodies`].
    pub bodies: Option<usize>,
    /// Seed of the random arrangement.
    pub seed: u64,
    /// Multiplies the pairs per box of `uniform`, `clustered` and `mixed-sizes`.
    pub density: f32,
}

impl Options {
    /// Max boxes of a scene. An entity and its row take some 200 bytes.
    pub const MAX_BOXES: usize = 1 << 26;
    const DENSITIES: (f32, f32) = (1e-3, 1e3);
}

impl Options {
    /// Checks the options and returns the number of bodies.
    fn bodies(&self, kind: Kind) -> Result<usize, Error> {
        let bodies = self.bodies.unwrap_or(kind.default_bodies());
        let limit = kind.max_bodies();
        if !(1..=limit).contains(&bodies) {
            return Err(Error::Bodies { bodies, limit });
        }
        let density = self.density;
        if !(Self::DENSITIES.0..=Self::DENSITIES.1).contains(&density) {
            return Err(Error::Density { density });
        }
        Ok(bodies)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bodies: None,
            seed: 1,
            density: 1.0,
        }
    }
}

/// The results of one frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The report of the broad phase.
    pub report: Report,
    /// Milliseconds of the scene's own stages, in the order they run.
    pub stages: Vec<(&'static str, f64)>,
}

impl Step {
    /// Returns all stages of the frame with their milliseconds: the scene's `place`, those of the
    /// broad phase, then the scene's others.
    pub fn all_stages(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let (before, after) = self.stages.split_at(self.stages.len().min(1));
        let before = before.iter().copied();
        let paired = self.report.stats.timings.stages();
        before.chain(paired).chain(after.iter().copied())
    }

    /// Returns the milliseconds of the whole frame, including the time between the broad phase's
    /// stages.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.report.stats.timings.total + self.stages.iter().map(|stage| stage.1).sum::<f64>()
    }
}

/// A world and the systems that move it.
pub struct Scene {
    world: World,
    /// Moves the bodies and updates [`Boxes`], before the broad phase.
    place: Schedule,
    /// The stages after the broad phase, which use the pairs.
    respond: Vec<(&'static str, Schedule)>,
    /// Adds the instances to draw; [`draw_boxes`] by default.
    draw: fn(&World, &mut Picture),
    /// A scene in device memory, which replaces all of the above.
    #[cfg(cuda)]
    device: Option<device::OnDevice>,
}

impl Scene {
    /// Builds a scene as it is before its first frame.
    ///
    /// # Errors
    ///
    /// [`Error::Bodies`] and [`Error::Density`].
    pub fn new(kind: Kind, options: &Options) -> Result<Self, Error> {
        let bodies = options.bodies(kind)?;
        let rng = &mut Rng::seed_from_u64(options.seed);
        Ok(kind.build(bodies, options.density, rng))
    }

    /// Builds a scene on the device of the broad phase, if both support it; else as [`Scene::new`].
    ///
    /// The scenes `particles` and `galaxy` can run on a device: their bodies, boxes and pairs stay
    /// there. `particles` gives the same bits as on the CPU. `galaxy` sums the gravity of all
    /// bodies instead of using a tree. Such a scene can be stepped only with broad phases on that
    /// device.
    ///
    /// ```
    /// use radsweep_scenes::{Kind, Options, Scene};
    /// use radsweep::{BroadPhase, Config};
    ///
    /// let mut broad_phase = BroadPhase::new(Config::default())?;
    /// let options = Options { bodies: Some(1000), ..Options::default() };
    /// let mut scene = Scene::new_on(Kind::Galaxy, &options, &broad_phase)?;
    /// scene.step(&mut broad_phase)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Scene::new`]; `Error::Gpu` if the device refuses memory or cannot load the kernels.
    #[cfg_attr(not(cuda), expect(unused_variables))]
    pub fn new_on(kind: Kind, options: &Options, broad_phase: &BroadPhase) -> Result<Self, Error> {
        #[cfg(cuda)]
        if let Some(stream) = broad_phase.stream() {
            let mut rng = Rng::seed_from_u64(options.seed);
            let mut world = World::new();
            let device = match kind {
                Kind::Particles => {
                    let (ground, rules, particles) =
                        particles::start(options.bodies(kind)?, &mut rng);
                    let bodies = device::OnLandscape::new(stream, &ground, rules, &particles)?;
                    world.insert_resource(ground);
                    device::OnDevice::new(stream, bodies)
                }
                Kind::Galaxy => {
                    let bodies = galaxy::start(options.bodies(kind)?, &mut rng);
                    device::OnDevice::new(stream, device::Galaxy::new(stream, &bodies)?)
                }
                _ => return Self::new(kind, options),
            };
            world.insert_resource(Boxes::new(0));
            return Ok(Self {
                device: Some(device),
                ..Self::on_host(world, schedule(|| {}), Vec::new(), |_, _| {})
            });
        }
        Self::new(kind, options)
    }

    /// Creates a scene in host memory.
    fn on_host(
        world: World,
        place: Schedule,
        respond: Vec<(&'static str, Schedule)>,
        draw: fn(&World, &mut Picture),
    ) -> Self {
        Self {
            world,
            place,
            respond,
            draw,
            #[cfg(cuda)]
            device: None,
        }
    }

    /// Runs one frame: moves the bodies, finds the pairs of their boxes, and lets the world react
    /// to them.
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::update`]. The bodies have then moved, but the world has not reacted.
    pub fn step(&mut self, broad_phase: &mut BroadPhase) -> radsweep::Result<Step> {
        #[cfg(cuda)]
        if let Some(device) = &mut self.device {
            return device.step(broad_phase);
        }
        let mut stages = Vec::new();
        let mut run = |name, schedule: &mut Schedule, world: &mut World| {
            let start = Instant::now();
            schedule.run(world);
            stages.push((name, start.elapsed().as_secs_f64() * 1e3));
        };
        run("place", &mut self.place, &mut self.world);
        let boxes = self.world.resource::<Boxes>();
        let mut frame = Frame::boxes(&boxes.aabbs);
        if !boxes.filters.is_empty() {
            frame = frame.filters(&boxes.filters);
        }
        let report = broad_phase.update(frame)?.clone();
        if !self.respond.is_empty() {
            let mut pairs = self.world.resource_mut::<Pairs>();
            pairs.0.clear();
            pairs.0.extend_from_slice(broad_phase.pairs());
        }
        for (name, schedule) in &mut self.respond {
            run(name, schedule, &mut self.world);
        }
        Ok(Step { report, stages })
    }

    /// Returns the boxes of the last frame by box index. Before the first frame all are
    /// [`Aabb::EMPTY`].
    ///
    /// The first call after a frame downloads them if the scene is on a device.
    ///
    /// # Errors
    ///
    /// Errors of the device.
    pub fn boxes(&self) -> radsweep::Result<&[Aabb]> {
        #[cfg(cuda)]
        if let Some(device) = &self.device {
            return device.boxes();
        }
        Ok(&self.world.resource::<Boxes>().aabbs)
    }

    /// Writes the instances to draw into `picture` and removes those of the last frame.
    ///
    /// Each call downloads them if the scene is on a device.
    ///
    /// # Errors
    ///
    /// Errors of the device.
    pub fn picture(&self, picture: &mut Picture) -> radsweep::Result<()> {
        picture.clear();
        #[cfg(cuda)]
        if let Some(device) = &self.device {
            return device.draw(picture);
        }
        (self.draw)(&self.world, picture);
        Ok(())
    }

    /// Returns the landscape below the bodies; `None` where the ground is a box or absent.
    #[must_use]
    pub fn landscape(&self) -> Option<&Landscape> {
        self.world.get_resource()
    }

    /// Returns the body of each box; empty where each box is the body of its own index.
    #[must_use]
    pub fn body_of_box(&self) -> &[u32] {
        &self.world.resource::<Boxes>().bodies
    }

    /// Returns the filter of each box; empty where all boxes may pair.
    #[must_use]
    pub fn filters(&self) -> &[Filter] {
        &self.world.resource::<Boxes>().filters
    }
}

/// The index of an entity's box, to which pairs refer. It never changes.
#[derive(Component, Debug, Clone, Copy)]
struct BoxIndex(u32);

/// The input of the broad phase, by [`BoxIndex`].
#[derive(Resource, Debug)]
struct Boxes {
    aabbs: Vec<Aabb>,
    filters: Vec<Filter>,
    /// The body of each box, or empty: see [`Scene::body_of_box`].
    bodies: Vec<u32>,
}

impl Boxes {
    fn new(count: usize) -> Self {
        Self {
            aabbs: vec![Aabb::EMPTY; count],
            filters: Vec::new(),
            bodies: Vec::new(),
        }
    }

    fn set(&mut self, index: BoxIndex, center: glam::Vec3, half: glam::Vec3) {
        self.aabbs[index.0 as usize] = Aabb::new((center - half).into(), (center + half).into());
    }
}

/// The pairs of the last update, for scenes that react to them.
#[derive(Resource, Debug, Default)]
struct Pairs(Vec<Pair>);

/// Draws every box as a body of its own.
fn draw_boxes(world: &World, picture: &mut Picture) {
    let boxes = world.resource::<Boxes>().aabbs.iter().zip(0..);
    picture
        .boxes
        .extend(boxes.map(|(aabb, index)| Instance::of_box(aabb, index)));
}

/// Returns a schedule that runs its systems one after the other on this thread. A system uses more
/// threads itself where that pays.
fn schedule<M>(systems: impl IntoScheduleConfigs<bevy_ecs::system::ScheduleSystem, M>) -> Schedule {
    let mut schedule = Schedule::default();
    schedule.set_executor(SingleThreadedExecutor::new());
    schedule.add_systems(systems);
    schedule
}

#[cfg(test)]
mod tests;

/// Tests the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
