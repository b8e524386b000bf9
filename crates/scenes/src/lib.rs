//! The scenes of the program: worlds of `bevy_ecs` whose boxes a [`BroadPhase`] pairs every frame.
//!
//! The same seed gives the same scene in every run and with any number of threads: random numbers
//! come from Xoshiro256++ (`rand::rngs::Xoshiro256PlusPlus`), an entity's box index never changes,
//! and systems process the pairs in sorted order. On a GPU `galaxy` sums its gravity in another
//! way, and on `wgpu` `particles` differs by rounding. Rendering is done elsewhere.
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

mod act;
mod barnes_hut;
mod body;
mod chair;
mod colours;
mod constraint;
mod contacts;
#[cfg(cuda)]
mod device;
mod drifting;
mod falling_chairs;
mod galaxy;
mod grip;
mod ground;
mod islands;
mod lanes;
mod mesh;
mod neighbours;
mod options;
mod particles;
mod picture;
mod scene;
mod solver;
mod stack;
mod step;
#[cfg(feature = "wgpu")]
mod wgpu;

pub use act::{Action, Refusal};
#[cfg(cuda)]
use device::{bodies::OnDevice, galaxy::Galaxy, particles::OnLandscape};
pub use mesh::{Mesh, chair_mesh};
pub use options::{Error, Kind, Options};
pub use picture::{Instance, Landscape, Picture, Shape};
use radsweep::BroadPhase;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus as Rng;
pub use scene::Scene;
pub use step::Step;
#[cfg(feature = "wgpu")]
pub use wgpu::Balls;

impl Scene {
    /// Builds a scene as it is before its first frame.
    ///
    /// # Errors
    ///
    /// [`Error::Bodies`] and [`Error::Density`].
    pub fn new(kind: Kind, options: &Options) -> Result<Self, Error> {
        let bodies = options.bodies(kind)?;
        let density = options.density;
        let rng = &mut Rng::seed_from_u64(options.seed);
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

    /// Builds a scene on the device of the broad phase, if both support it; else as [`Scene::new`].
    ///
    /// The scenes `particles` and `galaxy` can run on a device: their bodies, boxes and pairs stay
    /// there. `particles` gives the same bits as on the CPU. In `galaxy` more bodies go through the
    /// tree together, so their gravity differs by some tenths of a percent. Such a scene can be
    /// stepped only with broad phases on that device.
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
            return match kind {
                Kind::Particles => {
                    let (ground, rules, particles) =
                        particles::start(options.bodies(kind)?, &mut rng);
                    let bodies = OnLandscape::new(stream, &ground, rules, &particles)?;
                    let device = OnDevice::new(stream, bodies);
                    Ok(Self::on_device(device, Some(ground)))
                }
                Kind::Galaxy => {
                    let bodies = galaxy::start(options.bodies(kind)?, &mut rng);
                    let device = OnDevice::new(stream, Galaxy::new(stream, &bodies)?);
                    Ok(Self::on_device(device, None))
                }
                _ => Self::new(kind, options),
            };
        }
        Self::new(kind, options)
    }
}

#[cfg(test)]
mod tests;

/// Tests the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
