//! Where scenes and their broad phases live.

#[cfg(feature = "wgpu")]
use super::{frame::Live, probe::Probe};
use crate::render::Gpu;
use crate::snapshot::{Snapshot, Watch};
#[cfg(feature = "wgpu")]
use radsweep::wgpu_device::Device;
use radsweep::{BroadPhase, Config, Pair};
use radsweep_common::backend;
use radsweep_scenes::{Kind, Options, Scene};

/// The device that draws, on which scenes and broad phases on `wgpu` live.
#[derive(Default)]
pub(crate) struct Home {
    #[cfg(feature = "wgpu")]
    device: Option<Device>,
    /// Made for the first frame that it looks at.
    #[cfg(feature = "wgpu")]
    probe: Option<Probe>,
}

impl Home {
    #[cfg(feature = "wgpu")]
    pub fn new(gpu: &Gpu) -> Self {
        let (device, queue) = (gpu.device.clone(), gpu.queue.clone());
        Self::on(&Device::from_parts(device, queue))
    }

    #[cfg(not(feature = "wgpu"))]
    pub fn new(_: &Gpu) -> Self {
        Self::default()
    }

    /// Creates a broad phase. On `wgpu` it works on the device that draws, and a device that fails
    /// is an error, also with [`Backend::Auto`](radsweep::Backend::Auto): the bodies may be there.
    ///
    /// # Errors
    ///
    /// As [`BroadPhase::new`].
    pub fn broad_phase(&self, config: &Config) -> radsweep::Result<BroadPhase> {
        let broad_phase = backend::broad_phase(config.clone())?;
        #[cfg(feature = "wgpu")]
        if let Some(device) = self.device_of(&broad_phase) {
            return BroadPhase::on_wgpu(device, config.clone());
        }
        Ok(broad_phase)
    }

    /// Builds a scene, on the device of the broad phase if it can live there.
    ///
    /// # Errors
    ///
    /// As [`Scene::new_on`].
    pub fn scene(
        &self,
        kind: Kind,
        options: &Options,
        on: &BroadPhase,
    ) -> Result<Scene, radsweep_scenes::Error> {
        #[cfg(feature = "wgpu")]
        if let Some(device) = self.device_of(on) {
            return Scene::on_wgpu(kind, options, device);
        }
        Scene::new_on(kind, options, on)
    }

    /// Takes the last frame of a scene, with these resting pairs. A frame on the device that draws
    /// stays there, unless a body is picked, whose details the host finds.
    ///
    /// # Errors
    ///
    /// Errors of the device; the snapshot is then incomplete.
    pub fn take(
        &mut self,
        snapshot: &mut Snapshot,
        scene: &Scene,
        broad_phase: &mut BroadPhase,
        resting: &[Pair],
        watch: Watch,
    ) -> radsweep::Result<()> {
        #[cfg(feature = "wgpu")]
        if watch.body.is_none()
            && let Some(live) = self.live(scene, broad_phase, watch)?
        {
            snapshot.take_live(live, scene, broad_phase, watch);
            return Ok(());
        }
        snapshot.take(scene, broad_phase, resting, watch)
    }
}

#[cfg(feature = "wgpu")]
impl Home {
    pub(super) fn on(device: &Device) -> Self {
        Self {
            device: Some(device.clone()),
            probe: None,
        }
    }

    /// Returns the device that draws, if the broad phase works there.
    fn device_of(&self, broad_phase: &BroadPhase) -> Option<&Device> {
        let backend = broad_phase.report().stats.backend;
        self.device
            .as_ref()
            .filter(|_| backend == radsweep::Backend::Wgpu)
    }

    /// Looks at the last frame of a scene on the device.
    fn live(
        &mut self,
        scene: &Scene,
        broad_phase: &BroadPhase,
        watch: Watch,
    ) -> radsweep::Result<Option<Live>> {
        let Some(balls) = scene.balls() else {
            return Ok(None);
        };
        let probe = match self.probe.take() {
            Some(probe) => probe,
            None => Probe::new(balls.device())?,
        };
        let probe = self.probe.insert(probe);
        let pairs = broad_phase.wgpu_pairs().filter(|_| watch.links);
        let lines = pairs.map(|pairs| probe.lines(balls, pairs)).transpose()?;
        Ok(Some(Live {
            overview: probe.look(balls, &watch.view)?,
            view: watch.view,
            boxed: watch.boxes,
            lines: lines.flatten(),
            picture: Default::default(),
            balls: balls.clone(),
        }))
    }
}
