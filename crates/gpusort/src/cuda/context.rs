//! The state that the sorts of one device share.

use super::config::SorterConfig;
use crate::Result;
use gpu::{Device, Kernel, Launch, Stages, Stream};
use radsweep_kernels::Image;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The state that all families share on one device: loaded kernels, and the stage times.
#[derive(Debug)]
pub(super) struct Context {
    pub device: Device,
    pub config: SorterConfig,
    kernels: RwLock<HashMap<(&'static str, String), Kernel>>,
    loaded: RwLock<HashMap<(TypeId, usize), Arc<dyn Any + Send + Sync>>>,
    stages: Mutex<Stages>,
}

impl Context {
    pub fn new(device: &Device, config: SorterConfig) -> Self {
        Self {
            device: device.clone(),
            config,
            kernels: RwLock::default(),
            loaded: RwLock::default(),
            stages: Mutex::default(),
        }
    }

    /// Returns a kernel of an image, set up for `dynamic_shared` bytes of dynamic shared memory. It
    /// is loaded by the first call and cached.
    pub fn kernel(&self, image: &'static Image, name: &str, dynamic_shared: u32) -> Result<Kernel> {
        let key = (image.name, name.to_owned());
        if let Some(kernel) = self
            .kernels
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
        {
            return Ok(kernel.clone());
        }
        let kernel = self.device.load(image.name, image.ptx())?.kernel(name)?;
        kernel.set_max_dynamic_shared(dynamic_shared)?;
        self.kernels
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key, kernel.clone());
        Ok(kernel)
    }

    /// Returns a family's loaded kernels of type `T`, one set for each `which`. The first call
    /// loads them with `load` and caches them.
    pub fn loaded<T: Any + Send + Sync>(
        &self,
        which: usize,
        load: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        let key = (TypeId::of::<T>(), which);
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
        let kept = loaded.get(&key).cloned();
        drop(loaded);
        if let Some(kept) = kept.and_then(|kept| kept.downcast().ok()) {
            return Ok(kept);
        }
        let new = Arc::new(load()?);
        let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        loaded.insert(key, new.clone());
        Ok(new)
    }

    /// Returns whether small inputs may take one launch. Tests forbid it.
    pub fn may_take_one_launch(&self) -> bool {
        !self.config.knobs.no_small && self.config.knobs.stall.is_none()
    }

    /// Begins the stages of a new sort.
    pub fn begin(&self) {
        if self.config.timings {
            *self.stages() = Stages::new();
        }
    }

    /// Ends the current stage and begins stage `name`, if stages are timed.
    pub fn mark(&self, stream: &Stream, name: &'static str) -> Result<()> {
        if self.config.timings {
            self.stages().mark(stream, name)?;
        }
        Ok(())
    }

    /// Returns the stage times of the last sort, in milliseconds, and waits for them.
    pub fn times(&self, stream: &Stream) -> Result<Vec<(&'static str, f64)>> {
        if !self.config.timings {
            return Ok(Vec::new());
        }
        let mut times = self.stages().finish(stream)?;
        times.pop(); // from the sort's end to now
        Ok(times
            .into_iter()
            .map(|(stage, ms)| (stage, f64::from(ms)))
            .collect())
    }

    fn stages(&self) -> std::sync::MutexGuard<'_, Stages> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a launch of 256 threads a block, with blocks enough for `elements` or to fill the
    /// device several times.
    pub fn streaming_launch(&self, elements: u64) -> Launch {
        let max_blocks = u64::from(self.device.info().multiprocessors) * 32;
        Launch::linear(elements.div_ceil(256).clamp(1, max_blocks) as u32, 256)
    }
}
