//! Draws pictures without a window.

use super::error::Error;
use super::live::Home;
use super::look::{Colour, Look};
use super::overlay::{Below, Overlay};
use super::render::{Clock, Gpu, Picture, Quality, Renderer};
use super::resting::Resting;
use super::save::{self, save_png};
use super::simulation::{Settings, State, Update};
use super::snapshot::{Snapshot, Watch};
use super::sorting::SortLimit;
use super::state::Viewer;
use super::timeline::Record;
use super::ui;
use egui::{RawInput, Rect, pos2, vec2};
use radsweep::BroadPhase;
use radsweep_scenes::Scene;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;
use wgpu::TextureFormat;

const FORMAT: TextureFormat = TextureFormat::Rgba8UnormSrgb;

/// A picture to draw.
#[derive(Debug, Clone)]
pub struct Screenshot {
    /// The scene and the broad phase.
    pub settings: Settings,
    /// The file of the last picture.
    pub path: PathBuf,
    /// The number of frames to run; the last is drawn.
    pub frames: u32,
    /// Also draws every frame whose number is a multiple of this, into files such as `F-0010.png`.
    pub every: Option<u32>,
    /// Width and height in pixels.
    pub size: [u32; 2],
    /// Whether the panels are drawn.
    pub overlay: bool,
    /// Whether bodies cast shadows.
    pub shadows: bool,
    /// What the colours show; `None` for the default of the scene.
    pub colour: Option<Colour>,
    /// Whether the boxes that the broad phase sees are drawn.
    pub wireframes: bool,
    /// Whether columns or cells are drawn.
    pub cells: bool,
    /// A body to pick and focus on.
    pub body: Option<u32>,
}

/// Runs the frames and writes the pictures, and calls `progress` after each frame.
///
/// It opens the graphics device first, so that it fails at once where there is none.
///
/// # Errors
///
/// [`Error::NoAdapter`] without a graphics driver; an error of the size, the scene, a file, a frame
/// or the device.
pub fn screenshot(wanted: &Screenshot, mut progress: impl FnMut()) -> Result<(), Error> {
    let mut studio = Studio::new(wanted.size)?;
    save::check(&wanted.path)?;
    let mut stage = Stage::new(&wanted.settings, Home::new(&studio.gpu))?;
    let mut viewer = Viewer::new(wanted.settings.clone());
    viewer.drawn_by(&studio.gpu);
    viewer.look = Look {
        colour: wanted.colour.unwrap_or(viewer.look.colour),
        shadows: wanted.shadows,
        wireframes: wanted.wireframes,
        cells: wanted.cells,
        axis: wanted.body.is_some() || wanted.cells,
        ..viewer.look
    };
    for frame in 1..=u64::from(wanted.frames) {
        let record = stage.step(frame)?;
        if frame == 1 {
            stage.check(wanted.body)?;
        }
        let every = wanted
            .every
            .is_some_and(|every| frame % u64::from(every) == 0);
        let last = frame == u64::from(wanted.frames);
        let shows = |viewer: &Viewer| Watch {
            body: wanted.body,
            ..viewer.watch()
        };
        let mut watch = shows(&viewer);
        let mut snapshot = viewer.snapshot.take();
        if every || last {
            stage.take(snapshot.get_or_insert_default(), frame, watch)?;
        }
        viewer.take(Update {
            snapshot,
            records: [record].into(),
            state: State::Running,
        })?;
        if every || last {
            if wanted.body.is_some() {
                viewer.picked = wanted.body;
                viewer.focus();
            }
            let mut pixels = Vec::new();
            // The panels find their sizes in the first pass, in which a driver may still compile.
            // The second pass gives the time of the drawing.
            let mut passes = if wanted.overlay { 3 } else { 1 };
            while passes > 0 {
                pixels = studio.draw(&mut viewer, frame, wanted.overlay)?;
                passes -= 1;
                // The view in which a frame on the device was looked at, once its size is known.
                if shows(&viewer) != watch {
                    watch = shows(&viewer);
                    if let Some(shown) = &mut viewer.snapshot {
                        stage.take(shown, frame, watch)?;
                    }
                    passes = passes.max(1);
                }
            }
            if every {
                save_png(&numbered(&wanted.path, frame), wanted.size, &pixels)?;
            }
            if last {
                save_png(&wanted.path, wanted.size, &pixels)?;
            }
        }
        progress();
    }
    Ok(())
}

/// The scene, and what shows its frames.
struct Stage<'a> {
    settings: &'a Settings,
    home: Home,
    broad_phase: BroadPhase,
    scene: Scene,
    resting: Resting,
    limit: SortLimit,
    /// Frames taken.
    taken: u64,
}

impl<'a> Stage<'a> {
    fn new(settings: &'a Settings, home: Home) -> Result<Self, Error> {
        let broad_phase = home.broad_phase(&settings.config)?;
        Ok(Self {
            scene: home.scene(settings.kind, &settings.options, &broad_phase)?,
            limit: SortLimit::new(&settings.config, &broad_phase),
            resting: Resting::default(),
            settings,
            home,
            broad_phase,
            taken: 0,
        })
    }

    /// Runs a frame.
    fn step(&mut self, frame: u64) -> Result<Record, Error> {
        let step = self.scene.step(&mut self.broad_phase);
        let step = step.map_err(|source| Error::Step { frame, source })?;
        let found = self.resting.update(&self.scene, &self.settings.config);
        found.map_err(|source| Error::Step { frame, source })?;
        let resting = self.resting.pairs().len() as u64;
        Ok(Record::new(frame, step, self.limit, resting))
    }

    /// Fails if the scene has no such body.
    fn check(&self, body: Option<u32>) -> Result<(), Error> {
        let Some(body) = body else { return Ok(()) };
        let bodies = match self.scene.body_of_box().iter().max() {
            Some(&last) => last as usize + 1,
            None => self.scene.boxes()?.len(),
        };
        if body as usize >= bodies {
            return Err(Error::Body { body, bodies });
        }
        Ok(())
    }

    /// Takes the last frame, with these details.
    fn take(&mut self, shown: &mut Snapshot, frame: u64, watch: Watch) -> Result<(), Error> {
        let (scene, resting) = (&self.scene, self.resting.pairs());
        let taken = self
            .home
            .take(shown, scene, &mut self.broad_phase, resting, watch);
        taken.map_err(|source| Error::Step { frame, source })?;
        self.taken += 1;
        shown.serial = self.taken;
        shown.scene = 1;
        shown.frame = frame;
        shown.world = Some((self.settings.kind, self.settings.options.bodies));
        if shown.landscape.is_none() {
            shown.landscape = scene.landscape().cloned().map(Into::into);
        }
        Ok(())
    }
}

/// The renderers and the picture that they draw.
struct Studio {
    gpu: Gpu,
    picture: Picture,
    renderer: Renderer,
    overlay: Overlay,
    clock: Clock,
    context: egui::Context,
}

impl Studio {
    fn new(size: [u32; 2]) -> Result<Self, Error> {
        let gpu = Gpu::new(&Gpu::instance(None)?, None)?;
        let context = egui::Context::default();
        ui::style(&context);
        Ok(Self {
            picture: Picture::new(&gpu, size, FORMAT)?,
            renderer: Renderer::new(&gpu, FORMAT, Quality::FULL),
            overlay: Overlay::new(&gpu, FORMAT),
            clock: Clock::new(&gpu),
            context,
            gpu,
        })
    }

    /// Draws one picture of the viewer and records its time.
    fn draw(&mut self, viewer: &mut Viewer, frame: u64, panels: bool) -> Result<Vec<u8>, Error> {
        let start = Instant::now();
        let Self { gpu, picture, .. } = self;
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        self.clock.begin(&mut encoder);
        let size = picture.size;
        if panels {
            let [width, height] = size.map(|pixels| pixels as f32);
            let input = RawInput {
                screen_rect: Some(Rect::from_min_size(pos2(0.0, 0.0), vec2(width, height))),
                max_texture_side: Some(gpu.max_pixels() as usize),
                ..RawInput::default()
            };
            let output = self.context.run_ui(input, |ui| viewer.ui(ui));
            self.overlay.prepare(gpu, size, &self.context, output);
        }
        let [_, _, width, height] = viewer.area(size, 1.0);
        viewer.aim(width / height);
        self.renderer
            .draw(&mut encoder, &picture.view, size, 1.0, viewer);
        if panels {
            self.overlay
                .paint(&mut encoder, &picture.view, Below::Scene);
        }
        self.clock.end(&gpu.device, &mut encoder, frame);
        let pixels = picture.read(gpu, encoder)?;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        viewer.timeline.drawn(frame, ms);
        for (frame, ms) in self.clock.submitted(&gpu.device) {
            viewer.timeline.rendered(frame, ms);
        }
        Ok(pixels)
    }
}

/// Adds the number of a frame to a path: `dir/name.png` becomes `dir/name-0042.png`.
fn numbered(path: &Path, frame: u64) -> PathBuf {
    let mut name = path.file_stem().map_or_else(OsString::new, OsString::from);
    name.push(format!("-{frame:04}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_before_the_extension() {
        let name = |path: &str| numbered(Path::new(path), 42).display().to_string();
        assert_eq!(name("a/b.c.png"), "a/b.c-0042.png");
        assert_eq!(name("b"), "b-0042");
    }
}
