//! Chooses the engine for a backend, and replaces one that fails. A new backend is added here.

use crate::engine::Engine;
use crate::threads::OwnPool;
use crate::{Backend, Config, Error, Result, cpu};
#[cfg(cuda)]
use {crate::cuda, std::any::Any};

/// An engine, and how it came to be the one.
pub(crate) struct Chosen {
    pub(crate) engine: Box<dyn Engine>,
    /// Whether [`Backend::Auto`] found a GPU for it, so that the CPU may replace it.
    #[cfg_attr(not(cuda), expect(dead_code, reason = "no GPU without the feature"))]
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
    /// [`Error::NoCuda`] where CUDA is asked for and missing.
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
        };
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

    /// Takes CUDA where a device answers, else the CPU.
    fn auto(config: Config) -> Self {
        #[cfg(cuda)]
        let fallback = match cuda::Engine::new(config.clone()) {
            Ok(engine) => {
                return Self {
                    is_replaceable: true,
                    ..Self::with_engine(engine)
                };
            }
            Err(error) => Some(error),
        };
        #[cfg(not(cuda))]
        let fallback = None;
        Self::on_cpu(cpu::Engine::new(config), fallback)
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

    /// Does a call again on the CPU, which then stays, if a GPU has failed that nobody asked for by
    /// name. Returns the error otherwise.
    #[cfg_attr(not(cuda), expect(unused_variables, reason = "no GPU to fail"))]
    pub(crate) fn replace<T>(
        &mut self,
        error: Error,
        call: impl FnOnce(&mut dyn Engine) -> Result<T>,
    ) -> Result<T> {
        #[cfg(cuda)]
        if self.is_replaceable && error.is_of_gpu() {
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
