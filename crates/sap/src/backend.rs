//! Chooses the engine for a backend, and replaces one that fails. A new backend is added here.

use crate::engine::Engine;
use crate::threads::OwnPool;
use crate::{Backend, Config, Error, Result, cpu};
#[cfg(cuda)]
use {crate::cuda, std::any::Any};
#[cfg(feature = "wgpu")]
use {
    crate::wgpu,
    wgpu_device::{Adapters, Device},
};

/// An engine, and how it came to be the one.
pub(crate) struct Chosen {
    pub(crate) engine: Box<dyn Engine>,
    /// Whether [`Backend::Auto`] found a GPU for it, so that the CPU may replace it.
    #[cfg_attr(
        not(on_device),
        expect(dead_code, reason = "no GPU without the feature")
    )]
    is_replaceable: bool,
    /// Why the CPU works although a GPU was tried.
    pub(crate) fallback: Option<Error>,
    /// The threads of [`Config::threads`].
    pub(crate) pool: OwnPool,
}

impl Chosen {
    /// Chooses the engine that the configuration asks for.
    ///
    /// # Errors
    ///
    /// [`Error::NoCuda`] and [`Error::NoWgpu`] where these are asked for and missing,
    /// [`Error::Unsupported`] for a strategy that the backend does not have.
    pub(crate) fn new(config: Config) -> Result<Self> {
        let pool = OwnPool::new(config.threads);
        let chosen = match config.backend {
            Backend::Auto => Self::auto(config),
            Backend::Cpu => Self::on_cpu(cpu::Engine::new(config), None),
            #[cfg(cuda)]
            Backend::Cuda => Self::with_engine(cuda::Engine::new(config)?),
            #[cfg(not(cuda))]
            Backend::Cuda => {
                return Err(Error::NoCuda {
                    looked_for: "this build has no feature `cuda`".to_owned(),
                });
            }
            #[cfg(feature = "wgpu")]
            Backend::Wgpu => Self::with_engine(wgpu::Engine::new(config, Adapters::Any)?),
            #[cfg(not(feature = "wgpu"))]
            Backend::Wgpu => {
                return Err(Error::NoWgpu {
                    looked_for: "this build has no feature `wgpu`".to_owned(),
                });
            }
        };
        Ok(Self { pool, ..chosen })
    }

    /// Takes a stream of the caller.
    ///
    /// # Errors
    ///
    /// [`Error::Gpu`] where the device cannot load the kernels or lacks memory.
    #[cfg(cuda)]
    pub(crate) fn on_stream(stream: &gpu::Stream, config: Config) -> Result<Self> {
        let pool = OwnPool::new(config.threads);
        let chosen = Self::with_engine(cuda::Engine::on(stream.clone(), config)?);
        Ok(Self { pool, ..chosen })
    }

    /// Takes a device of the caller.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`], and [`Error::Sort`] where the device is too small for the kernels.
    #[cfg(feature = "wgpu")]
    pub(crate) fn on_wgpu(device: &Device, config: Config) -> Result<Self> {
        let pool = OwnPool::new(config.threads);
        let chosen = Self::with_engine(wgpu::Engine::on(config, device)?);
        Ok(Self { pool, ..chosen })
    }

    fn with_engine(engine: impl Engine + 'static) -> Self {
        Self {
            engine: Box::new(engine),
            is_replaceable: false,
            fallback: None,
            pool: OwnPool::default(),
        }
    }

    /// Takes CUDA where a device answers, else another GPU, else the CPU.
    fn auto(config: Config) -> Self {
        let fallback = None;
        #[cfg(cuda)]
        let fallback = match cuda::Engine::new(config.clone()) {
            Ok(engine) => return Self::replaceable(engine),
            Err(error) => fallback.or(Some(error)),
        };
        #[cfg(feature = "wgpu")]
        let fallback = match wgpu::Engine::new(config.clone(), Adapters::Real) {
            Ok(engine) => return Self::replaceable(engine),
            Err(error) => Some(telling(fallback, error)),
        };
        Self::on_cpu(cpu::Engine::new(config), fallback)
    }

    /// Takes an engine on a device that nobody asked for by name.
    #[cfg(on_device)]
    fn replaceable(engine: impl Engine + 'static) -> Self {
        Self {
            is_replaceable: true,
            ..Self::with_engine(engine)
        }
    }

    fn on_cpu(engine: cpu::Engine, fallback: Option<Error>) -> Self {
        Self {
            fallback,
            ..Self::with_engine(engine)
        }
    }

    /// Runs a call, and once more on the CPU where [`Chosen::replace`] puts it in the engine's
    /// place.
    pub(crate) fn run<T>(
        &mut self,
        mut call: impl FnMut(&mut dyn Engine) -> Result<T>,
    ) -> Result<T> {
        let done = self.pool.run(|| call(&mut *self.engine));
        done.or_else(|error| self.replace(error, call))
    }

    /// Repeats a call on the CPU if a GPU has failed that nobody asked for by name; the CPU then
    /// stays the engine. Returns the error otherwise.
    #[cfg_attr(not(on_device), expect(unused_variables, reason = "no GPU to fail"))]
    pub(crate) fn replace<T>(
        &mut self,
        error: Error,
        call: impl FnOnce(&mut dyn Engine) -> Result<T>,
    ) -> Result<T> {
        #[cfg(on_device)]
        if self.is_replaceable && error.is_gpu_failure() {
            let last = self.engine.last()?;
            let mut engine = cpu::Engine::following(self.engine.config().clone(), last);
            // If this fails too, what has the last result is still there.
            let done = self.pool.run(|| call(&mut engine))?;
            let pool = std::mem::take(&mut self.pool);
            *self = Self {
                pool,
                ..Self::on_cpu(engine, Some(error))
            };
            return Ok(done);
        }
        Err(error)
    }

    /// The CUDA engine, for what only it can do.
    #[cfg(cuda)]
    pub(crate) fn cuda(&self) -> Option<&cuda::Engine> {
        let engine: &dyn Any = &*self.engine;
        engine.downcast_ref()
    }

    /// The CUDA engine, to be used.
    #[cfg(cuda)]
    pub(crate) fn cuda_mut(&mut self) -> Option<&mut cuda::Engine> {
        let engine: &mut dyn Any = &mut *self.engine;
        engine.downcast_mut()
    }
}

/// Returns the error that tells more: of a GPU that fails rather than of one that is missing.
#[cfg(feature = "wgpu")]
fn telling(of_cuda: Option<Error>, of_wgpu: Error) -> Error {
    match (of_cuda, &of_wgpu) {
        (Some(error @ Error::NoCuda { .. }), Error::NoWgpu { .. }) => error,
        (None | Some(Error::NoCuda { .. }), _) => of_wgpu,
        (Some(error), _) => error,
    }
}

#[cfg(all(test, feature = "wgpu"))]
mod tests {
    use super::*;
    use crate::{Aabb, Frame};

    #[test]
    fn the_cpu_replaces_an_adapter_that_is_lost() {
        let Ok(device) = Device::new(Adapters::Any) else {
            eprintln!("SKIPPED: no adapter");
            return;
        };
        let config = Config {
            backend: Backend::Wgpu,
            margin: 0.5,
            ..Config::default()
        };
        let mut chosen = Chosen {
            is_replaceable: true,
            ..Chosen::on_wgpu(&device, config).expect("the device is large enough")
        };
        let at = |x: f32| Aabb::new([x, 0.0, 0.0], [x + 1.0, 1.0, 1.0]);
        let first = [at(0.0), at(1.5), at(9.0)];
        let report = chosen.run(|engine| engine.update(&Frame::boxes(&first)));
        assert!(report.is_ok_and(|report| report.stats.backend == Backend::Wgpu));
        device.wgpu().destroy();
        // The second box stays within its margin, and the third comes near it.
        let second = [at(0.0), at(1.7), at(3.5)];
        let report = chosen.run(|engine| engine.update(&Frame::boxes(&second)));
        let report = report.expect("the CPU answers");
        assert_eq!(report.stats.backend, Backend::Cpu);
        assert_eq!((report.pairs, report.started, report.ended), (2, 1, 0));
        assert!(chosen.fallback.is_some_and(|error| error.is_gpu_failure()));
    }
}
