//! A scene as a world of entities with systems, or on a device, and the frames that it runs.

use super::act::{Act, Action, Refusal};
#[cfg(cuda)]
use super::device::bodies::OnDevice;
use super::options::Options;
use super::picture::{Instance, Landscape, Picture};
use super::step::Step;
#[cfg(feature = "wgpu")]
use super::wgpu::bodies::OnWgpu;
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::SingleThreadedExecutor;
use bevy_ecs::system::ScheduleSystem;
use radsweep::{Aabb, BroadPhase, Filter, Frame, Pair};
use std::time::Instant;

/// A world and the systems that move it.
pub struct Scene {
    pub(super) world: World,
    /// Moves the bodies and updates [`Boxes`], before the broad phase.
    place: Schedule,
    /// The stages after the broad phase, which use the pairs.
    respond: Vec<(&'static str, Schedule)>,
    /// Adds the instances to draw; [`draw_boxes`] by default.
    draw: fn(&World, &mut Picture),
    /// Carries out actions; `None` where the boxes move on fixed paths.
    act: Option<Act>,
    /// A scene in device memory, which replaces all of the above.
    #[cfg(cuda)]
    device: Option<OnDevice>,
    /// A scene on a device of `wgpu`, which replaces all of the above.
    #[cfg(feature = "wgpu")]
    pub(super) wgpu: Option<OnWgpu>,
}

impl Scene {
    /// Creates a scene in host memory.
    pub(super) fn on_host(
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
            act: None,
            #[cfg(cuda)]
            device: None,
            #[cfg(feature = "wgpu")]
            wgpu: None,
        }
    }

    /// Sets the function that carries out actions.
    pub(super) fn acting(self, act: Act) -> Self {
        let act = Some(act);
        Self { act, ..self }
    }

    /// Creates a scene in device memory.
    #[cfg(cuda)]
    pub(super) fn on_device(device: OnDevice, ground: Option<Landscape>) -> Self {
        let mut world = World::new();
        world.insert_resource(Boxes::new(0));
        if let Some(ground) = ground {
            world.insert_resource(ground);
        }
        Self {
            device: Some(device),
            ..Self::on_host(world, schedule(|| {}), Vec::new(), |_, _| {})
        }
    }

    /// Does something to the bodies, between two frames. The next frame finds the pairs of new
    /// bodies, and those of bodies that an action wakes.
    ///
    /// # Errors
    ///
    /// A [`Refusal`]; then nothing has changed.
    pub fn act(&mut self, action: &Action) -> Result<(), Refusal> {
        let act = self.actions()?;
        action.check()?;
        act(&mut self.world, action)
    }

    /// Returns why the scene takes no actions, if so.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        self.actions().err()
    }

    fn actions(&self) -> Result<Act, Refusal> {
        #[cfg(cuda)]
        if self.device.is_some() {
            return Err(Refusal::OnDevice);
        }
        #[cfg(feature = "wgpu")]
        if self.wgpu.is_some() {
            return Err(Refusal::OnDevice);
        }
        self.act.ok_or(Refusal::FixedPaths)
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
        #[cfg(feature = "wgpu")]
        if let Some(scene) = &mut self.wgpu {
            return scene.step(broad_phase);
        }
        self.step_by(move |boxes, filters| {
            let mut frame = Frame::boxes(boxes);
            if !filters.is_empty() {
                frame = frame.filters(filters);
            }
            let report = broad_phase.update(frame)?.clone();
            Ok((report, broad_phase.pairs()))
        })
    }

    /// Runs one frame with pairs that `find` finds in another way, such as on several devices.
    ///
    /// It gets the boxes, and their filters as [`Scene::filters`] returns them. It returns a report
    /// and the sorted pairs. A scene on a device, which [`Scene::new_on`] may build, has no boxes
    /// here and does not move.
    ///
    /// ```
    /// use radsweep_scenes::{Kind, Options, Scene};
    ///
    /// let mut scene = Scene::new(Kind::Galaxy, &Options::default())?;
    /// let step = scene.step_by(|boxes, _| Ok::<_, radsweep::Error>((boxes.len(), &[][..])))?;
    /// assert_eq!(step.report, 8192); // no body bounces
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `find`. The bodies have then moved, but the world has not reacted.
    pub fn step_by<'a, R, E>(
        &mut self,
        find: impl FnOnce(&[Aabb], &[Filter]) -> Result<(R, &'a [Pair]), E>,
    ) -> Result<Step<R>, E> {
        let mut stages = Vec::new();
        let mut run = |name, schedule: &mut Schedule, world: &mut World| {
            let start = Instant::now();
            schedule.run(world);
            stages.push((name, start.elapsed().as_secs_f64() * 1e3));
        };
        run("place", &mut self.place, &mut self.world);
        let boxes = self.world.resource::<Boxes>();
        let (report, found) = find(&boxes.aabbs, &boxes.filters)?;
        if !self.respond.is_empty() {
            let mut pairs = self.world.resource_mut::<Pairs>();
            pairs.0.clear();
            pairs.0.extend_from_slice(found);
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
        #[cfg(feature = "wgpu")]
        if let Some(scene) = &self.wgpu {
            return scene.boxes();
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
        #[cfg(feature = "wgpu")]
        if let Some(scene) = &self.wgpu {
            return scene.draw(picture);
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
pub(super) struct BoxIndex(pub u32);

/// The input of the broad phase, by [`BoxIndex`].
#[derive(Resource, Debug)]
pub(super) struct Boxes {
    pub aabbs: Vec<Aabb>,
    pub filters: Vec<Filter>,
    /// The body of each box, or empty: see [`Scene::body_of_box`].
    pub bodies: Vec<u32>,
}

impl Boxes {
    pub fn new(count: usize) -> Self {
        Self {
            aabbs: vec![Aabb::EMPTY; count],
            filters: Vec::new(),
            bodies: Vec::new(),
        }
    }

    /// Returns the refusal of more boxes than a scene can have.
    pub fn check_capacity(&self, more: usize) -> Result<(), Refusal> {
        let (boxes, limit) = (self.aabbs.len(), Options::MAX_BOXES);
        if more > limit.saturating_sub(boxes) {
            return Err(Refusal::TooMany { more, boxes, limit });
        }
        Ok(())
    }

    pub fn set(&mut self, index: BoxIndex, center: glam::Vec3, half: glam::Vec3) {
        self.aabbs[index.0 as usize] = Aabb::new((center - half).into(), (center + half).into());
    }
}

/// The pairs of the last update, for scenes that react to them.
#[derive(Resource, Debug, Default)]
pub(super) struct Pairs(pub Vec<Pair>);

/// Draws every box as a body of its own.
pub(super) fn draw_boxes(world: &World, picture: &mut Picture) {
    let boxes = world.resource::<Boxes>().aabbs.iter().zip(0..);
    picture
        .boxes
        .extend(boxes.map(|(aabb, index)| Instance::of_box(aabb, index)));
}

/// Returns a schedule that runs its systems one after the other on this thread. A system uses more
/// threads itself where that pays.
pub(super) fn schedule<M>(systems: impl IntoScheduleConfigs<ScheduleSystem, M>) -> Schedule {
    let mut schedule = Schedule::default();
    schedule.set_executor(SingleThreadedExecutor::new());
    schedule.add_systems(systems);
    schedule
}
