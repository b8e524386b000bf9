//! Scenes to look at and to measure with: worlds of `bevy_ecs` whose boxes go through a [`BroadPhase`] every frame.
//!
//! Every scene is the same for the same seed, whatever the thread count and the backend: random numbers come from
//! Xoshiro256++ (`rand::rngs::Xoshiro256PlusPlus`), entities keep their box index for life, and what follows from the
//! pairs is computed in their sorted order. Rendering is no part of this.
//!
//! ```
//! use radsweep_scenes::{Kind, Options, Scene};
//! use radsweep::{BroadPhase, Config};
//!
//! let mut scene = Scene::new(Kind::Uniform, &Options { bodies: Some(1000), ..Options::default() })?;
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
use rand::rngs::Xoshiro256PlusPlus;
use std::fmt;
use std::str::FromStr;
use std::time::Instant;

/// Which scene. Parses from and displays as its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Chairs, each one rigid body of nine boxes, dropped onto a heap: full physics on the pairs found.
    FallingChairs,
    /// Balls that flow down a landscape and collide with it and with each other, through the pairs found.
    Particles,
    /// Two galaxies that meet: bodies under each other's gravity, which bounce where they touch.
    Galaxy,
    /// Boxes of similar size, spread evenly, drifting.
    Uniform,
    /// The same gathered in clusters of very different density.
    Clustered,
    /// Sizes evenly spread over six decades, drifting.
    MixedSizes,
    /// Towers of boxes that touch face to face, sheared by a travelling wave, on one ground plate.
    Stack,
}

impl Kind {
    /// Every scene there is.
    pub const ALL: &[Self] = &[
        Self::FallingChairs,
        Self::Particles,
        Self::Galaxy,
        Self::Uniform,
        Self::Clustered,
        Self::MixedSizes,
        Self::Stack,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FallingChairs => "falling-chairs",
            Self::Particles => "particles",
            Self::Galaxy => "galaxy",
            Self::Uniform => "uniform",
            Self::Clustered => "clustered",
            Self::MixedSizes => "mixed-sizes",
            Self::Stack => "stack",
        }
    }

    /// Bodies when none are asked for.
    #[must_use]
    pub const fn default_bodies(self) -> usize {
        match self {
            Self::FallingChairs => 1500,
            Self::Particles => 50_000,
            Self::Galaxy => 8192,
            _ => 100_000,
        }
    }

    /// Frames that show what the scene is about: for chairs, until the heap has come to rest.
    #[must_use]
    pub const fn default_frames(self) -> u32 {
        match self {
            Self::FallingChairs | Self::Particles | Self::Galaxy => 300,
            _ => 60,
        }
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

/// Why a scene was not made.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no scene of that name.
    #[error("unknown scene `{name}`: known are {}", Kind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", "))]
    UnknownScene {
        /// The name asked for.
        name: String,
    },
    /// A scene without bodies, or with too many.
    #[error("{bodies} bodies asked for, but a scene has 1 to {limit}")]
    Bodies {
        /// Bodies asked for.
        bodies: usize,
        /// The most there can be.
        limit: usize,
    },
    /// The density is not a positive number.
    #[error("density {density} is not between {} and {}", Options::DENSITIES.0, Options::DENSITIES.1)]
    Density {
        /// The density asked for.
        density: f32,
    },
    /// The GPU, or a call to it, failed.
    #[cfg(cuda)]
    #[error(transparent)]
    Gpu(#[from] radsweep::gpu::Error),
    /// A sort on the GPU cannot be had.
    #[cfg(cuda)]
    #[error(transparent)]
    Sort(#[from] radsweep::sort::Error),
}

/// What can be chosen about a scene.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Chairs, or boxes in the other scenes; `None` = [`Kind::default_bodies`].
    pub bodies: Option<usize>,
    /// Another seed is another arrangement.
    pub seed: u64,
    /// Multiplies the pairs per box of `uniform`, `clustered` and `mixed-sizes`.
    pub density: f32,
}

impl Options {
    /// The most boxes of a scene: memory for an entity and its row is some 200 bytes.
    pub const MAX_BOXES: usize = 1 << 26;
    const DENSITIES: (f32, f32) = (1e-3, 1e3);
}

impl Options {
    /// The number of bodies of a scene, if all can be had.
    fn bodies(&self, kind: Kind) -> Result<usize, Error> {
        let bodies = self.bodies.unwrap_or(kind.default_bodies());
        let limit = match kind {
            Kind::FallingChairs => Self::MAX_BOXES / 16,
            Kind::Galaxy => Self::MAX_BOXES / 64,
            _ => Self::MAX_BOXES,
        };
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

/// What one frame did.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What the broad phase did.
    pub report: Report,
    /// Milliseconds of the scene's own stages, in the order they run.
    pub stages: Vec<(&'static str, f64)>,
}

impl Step {
    /// Lists the stages of the whole frame with their milliseconds: the scene's `place`, those of the broad phase, then what the
    /// scene does with the pairs.
    pub fn all_stages(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let (before, after) = self.stages.split_at(self.stages.len().min(1));
        let before = before.iter().copied();
        let paired = self.report.timings.stages();
        before.chain(paired).chain(after.iter().copied())
    }

    /// Sums up the milliseconds of the whole frame, with what the broad phase spends between its stages.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.report.timings.total + self.stages.iter().map(|stage| stage.1).sum::<f64>()
    }
}

/// A world and the systems that move it.
pub struct Scene {
    world: World,
    /// Moves what moves by itself and brings [`Boxes`] up to date.
    place: Schedule,
    /// What follows from the pairs.
    respond: Vec<(&'static str, Schedule)>,
    /// Adds what there is to draw; [`draw_boxes`] where nothing better is known.
    draw: fn(&World, &mut Picture),
    /// The scene in the place of all this, where it lives on a device.
    #[cfg(cuda)]
    device: Option<device::OnDevice>,
}

impl Scene {
    /// Builds the scene before its first frame.
    ///
    /// # Errors
    ///
    /// [`Error::Bodies`] and [`Error::Density`].
    pub fn new(kind: Kind, options: &Options) -> Result<Self, Error> {
        let bodies = options.bodies(kind)?;
        let density = options.density;
        let rng = &mut Xoshiro256PlusPlus::seed_from_u64(options.seed);
        Ok(match kind {
            Kind::FallingChairs => falling_chairs::scene(bodies, rng),
            Kind::Particles => particles::scene(bodies, rng),
            Kind::Galaxy => galaxy::scene(bodies, rng),
            Kind::Uniform => drifting::uniform(bodies, density, rng),
            Kind::Clustered => drifting::clustered(bodies, density, rng),
            Kind::MixedSizes => drifting::mixed_sizes(bodies, density, rng),
            Kind::Stack => stack::scene(bodies, rng),
        })
    }

    /// As [`Scene::new`], on the device where the broad phase works on one and the scene can: `particles` and `galaxy` then
    /// live there, write their boxes there and react to the pairs there. `particles` are moved to the same bits as on the CPU;
    /// gravity is summed up over all, and not by a tree. Such a scene can only be stepped with broad phases on that device.
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
    /// As [`Scene::new`]; `Error::Gpu` where the device has no room or cannot load the kernels.
    #[cfg_attr(not(cuda), expect(unused_variables))]
    pub fn new_on(kind: Kind, options: &Options, broad_phase: &BroadPhase) -> Result<Self, Error> {
        #[cfg(cuda)]
        if let Some(stream) = broad_phase.stream() {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(options.seed);
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

    /// A world and what moves it, in the order of the fields.
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

    /// Runs one frame: the boxes are brought up to date, paired, and the world reacts.
    ///
    /// # Errors
    ///
    /// Those of [`BroadPhase::update`]; the world then has moved, but not reacted.
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
            let mut kept = self.world.resource_mut::<Pairs>();
            kept.0.clear();
            kept.0.extend_from_slice(broad_phase.pairs());
        }
        for (name, schedule) in &mut self.respond {
            run(name, schedule, &mut self.world);
        }
        Ok(Step { report, stages })
    }

    /// The boxes of the last frame, by box index; before the first frame all are [`Aabb::EMPTY`]. From a device they are downloaded by the
    /// first call after a frame.
    ///
    /// # Errors
    ///
    /// What the device reports.
    pub fn boxes(&self) -> radsweep::Result<&[Aabb]> {
        #[cfg(cuda)]
        if let Some(device) = &self.device {
            return device.boxes();
        }
        Ok(&self.world.resource::<Boxes>().aabbs)
    }

    /// What there is to draw of the last frame, into `picture`, whose lists are replaced. From a device every call downloads it.
    ///
    /// # Errors
    ///
    /// What the device reports.
    pub fn picture(&self, picture: &mut Picture) -> radsweep::Result<()> {
        picture.clear();
        #[cfg(cuda)]
        if let Some(device) = &self.device {
            return device.draw(picture);
        }
        (self.draw)(&self.world, picture);
        Ok(())
    }

    /// The ground below the bodies, where it is more than one of the boxes.
    #[must_use]
    pub fn landscape(&self) -> Option<&Landscape> {
        self.world.get_resource()
    }

    /// The body that each box belongs to, or nothing where each box is the body of its own number.
    #[must_use]
    pub fn body_of_box(&self) -> &[u32] {
        &self.world.resource::<Boxes>().bodies
    }

    /// A filter for each box, or nothing where all boxes may pair.
    #[must_use]
    pub fn filters(&self) -> &[Filter] {
        &self.world.resource::<Boxes>().filters
    }
}

/// The index of an entity's box, the same in every frame: what pairs refer to.
#[derive(Component, Debug, Clone, Copy)]
struct BoxIndex(u32);

/// What the broad phase reads, by [`BoxIndex`].
#[derive(Resource, Debug)]
struct Boxes {
    aabbs: Vec<Aabb>,
    filters: Vec<Filter>,
    /// The body of each box, or nothing: see [`Scene::body_of_box`].
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

/// Every box as a body of its own.
fn draw_boxes(world: &World, picture: &mut Picture) {
    let boxes = world.resource::<Boxes>().aabbs.iter().zip(0..);
    picture
        .boxes
        .extend(boxes.map(|(aabb, index)| Instance::of_box(aabb, index)));
}

/// A schedule of systems that run one after the other on this thread: each is parallel inside where that pays.
fn schedule<M>(systems: impl IntoScheduleConfigs<bevy_ecs::system::ScheduleSystem, M>) -> Schedule {
    let mut schedule = Schedule::default();
    schedule.set_executor(SingleThreadedExecutor::new());
    schedule.add_systems(systems);
    schedule
}

#[cfg(test)]
mod tests;

/// Compiles and runs what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
