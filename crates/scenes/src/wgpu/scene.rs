//! The calls of a scene on a device of `wgpu`.

use super::bodies::OnWgpu;
use super::{Balls, galaxy, particles};
use crate::scene::{Boxes, schedule};
use crate::{Error, Kind, Landscape, Options, Scene};
use bevy_ecs::prelude::World;
use radsweep::wgpu_device::Device;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus as Rng;
use std::sync::Arc;

impl Scene {
    /// Builds a scene on a device of `wgpu`, if it can live there; else as [`Scene::new`].
    ///
    /// The scenes `particles` and `galaxy` can: their bodies, boxes and pairs stay on the device,
    /// and a renderer of the same device draws them from [`Scene::balls`]. They move as on the CPU,
    /// up to rounding, which WGSL leaves to the device. On one device each run gives the same bits.
    /// `galaxy` sums the gravity of all bodies instead of using a tree, for up to 131,072 bodies.
    /// Such a scene can be stepped only with broad phases on that device.
    ///
    /// ```
    /// use radsweep::wgpu_device::{Adapters, Device};
    /// use radsweep::{BroadPhase, Config};
    /// use radsweep_scenes::{Kind, Options, Scene};
    ///
    /// let Ok(device) = Device::new(Adapters::Any) else { return Ok(()) }; // no driver here
    /// let options = Options { bodies: Some(1000), ..Options::default() };
    /// let mut scene = Scene::on_wgpu(Kind::Particles, &options, &device)?;
    /// let mut broad_phase = BroadPhase::on_wgpu(&device, Config::default())?;
    /// scene.step(&mut broad_phase)?;
    /// let balls = scene.balls().expect("particles live on the device");
    /// assert_eq!((balls.count(), balls.at().size()), (1000, 16_000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Scene::new`]; [`Error::Wgpu`] if the device refuses memory or cannot compile the
    /// kernels.
    pub fn on_wgpu(kind: Kind, options: &Options, device: &Device) -> Result<Self, Error> {
        let bodies = options.bodies(kind)?;
        let mut rng = Rng::seed_from_u64(options.seed);
        match kind {
            Kind::Particles => {
                let (ground, rules, particles) = crate::particles::start(bodies, &mut rng);
                let scene = particles::scene(device, &ground, rules, &particles)?;
                Ok(Self::with_wgpu(scene, Some(ground)))
            }
            Kind::Galaxy if bodies <= galaxy::MAX_BODIES => {
                let start = crate::galaxy::start(bodies, &mut rng);
                Ok(Self::with_wgpu(galaxy::scene(device, &start)?, None))
            }
            _ => Self::new(kind, options),
        }
    }

    fn with_wgpu(bodies: OnWgpu, ground: Option<Landscape>) -> Self {
        let mut world = World::new();
        world.insert_resource(Boxes::new(0));
        if let Some(ground) = ground {
            world.insert_resource(ground);
        }
        let mut scene = Self::on_host(world, schedule(|| {}), Vec::new(), |_, _| {});
        scene.wgpu = Some(bodies);
        scene
    }

    /// Returns the balls of the last frame in buffers of the device of [`Scene::on_wgpu`]; `None`
    /// for scenes that do not live there.
    #[must_use]
    pub fn balls(&self) -> Option<&Arc<Balls>> {
        self.wgpu.as_ref().map(|scene| scene.balls())
    }
}
