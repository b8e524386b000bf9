//! The window: passes winit's events to egui and draws frames, but only when something visible has
//! changed.

use super::error::Error;
use super::live::Home;
use super::overlay::{Below, Overlay};
use super::render::{Clock, Gpu, Picture, Quality, Renderer};
use super::save::{free_name, save, save_png};
use super::simulation::{Settings, Simulation};
use super::snapshot::Snapshot;
use super::state::{Request, Viewer};
use super::ui;
use egui::ViewportId;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use wgpu::{
    CurrentSurfaceTexture, Instance, PresentMode, Surface, SurfaceConfiguration, TextureUsages,
};
use winit::application::ApplicationHandler;
use winit::dpi::{LogicalSize, PhysicalSize};
use winit::event::{StartCause, WindowEvent};
use winit::event_loop::{ActiveEventLoop, ControlFlow, EventLoop, EventLoopProxy};
use winit::window::{Window, WindowId};

/// The event of another thread that has something new to show.
#[derive(Debug, Clone, Copy)]
struct Woken;

/// Min time between pictures: 60 per second, even where the driver does not wait for the screen.
const PERIOD: Duration = Duration::from_micros(16_600);
/// Delay before another try when a surface provided no picture.
const RETRY: Duration = Duration::from_millis(100);
/// Least width and height of the window, in points.
const MIN_SIZE: [f64; 2] = [480.0, 320.0];
/// Max successive failures of the device.
const MAX_FAILURES: u32 = 3;

/// Opens a window on the scene and returns when it is closed. `opened` is called once, as soon as
/// there is a window.
///
/// # Errors
///
/// [`Error::NoDisplay`] without a window system, [`Error::NoAdapter`] without a graphics driver,
/// [`Error::Device`] if the graphics device fails repeatedly.
pub fn window(settings: Settings, opened: impl FnOnce() + 'static) -> Result<(), Error> {
    let no_display = |error: winit::error::EventLoopError| no_display(&error.to_string());
    let events = EventLoop::with_user_event().build().map_err(no_display)?;
    let mut app = App {
        proxy: events.create_proxy(),
        viewer: Viewer::new(settings),
        opened: Some(Box::new(opened)),
        simulation: None,
        screen: None,
        redraw_at: None,
        failures: 0,
        error: None,
    };
    events.run_app(&mut app).map_err(no_display)?;
    app.error.map_or(Ok(()), Err)
}

struct App {
    proxy: EventLoopProxy<Woken>,
    viewer: Viewer,
    /// Called when the window has opened.
    opened: Option<Box<dyn FnOnce()>>,
    simulation: Option<Simulation>,
    screen: Option<Screen>,
    /// The time of the next picture, if there is anything new to show.
    redraw_at: Option<Instant>,
    failures: u32,
    error: Option<Error>,
}

/// The window and its renderers.
struct Screen {
    // Fields drop in order: the surface before its window.
    surface: Surface<'static>,
    renderer: Shaders,
    overlay: Overlay,
    clock: Clock,
    gpu: Gpu,
    instance: Instance,
    config: SurfaceConfiguration,
    input: egui_winit::State,
    window: Arc<Window>,
    visible: bool,
    drawn: Instant,
    /// A file to save the next picture in.
    save_to: Option<PathBuf>,
}

/// The scene's renderer. Compiling it takes a while, which the panels say.
enum Shaders {
    Compiling(Receiver<Renderer>),
    Ready(Box<Renderer>),
}

impl App {
    fn fail(&mut self, events: &ActiveEventLoop, error: Error) {
        self.error = Some(error);
        events.exit();
    }

    fn redraw_soon(&mut self) {
        let now = Instant::now();
        let soonest = self
            .screen
            .as_ref()
            .map_or(now, |screen| screen.drawn + PERIOD);
        self.redraw_by(soonest.max(now));
    }

    fn redraw_by(&mut self, time: Instant) {
        let earlier = self.redraw_at.is_none_or(|planned| time < planned);
        if earlier {
            self.redraw_at = Some(time);
        }
    }

    fn open(&mut self, events: &ActiveEventLoop) -> Result<(), Error> {
        let screen = match self.screen.take() {
            // The same window with a new device. A scene that lived on the old one starts again.
            Some(old) => {
                let lived = |shown: &Snapshot| shown.live.is_some();
                if self.viewer.snapshot.as_deref().is_some_and(lived) {
                    self.simulation = None;
                    self.viewer.snapshot = None;
                    self.viewer.past = None;
                }
                let window = Arc::clone(&old.window);
                drop(old);
                let instance = Gpu::instance(Some(events.owned_display_handle()))?;
                Screen::new(window, instance, events, &self.proxy)?
            }
            None => {
                // Without a driver no window opens, not even for a moment.
                let instance = Gpu::instance(Some(events.owned_display_handle()))?;
                let mut monitors = events.primary_monitor().into_iter();
                let monitor = monitors
                    .next()
                    .or_else(|| events.available_monitors().next());
                let monitor = monitor.map(|monitor| (monitor.size(), monitor.scale_factor()));
                let attributes = Window::default_attributes()
                    .with_title("radsweep")
                    .with_inner_size(opening(monitor))
                    .with_min_inner_size(LogicalSize::new(MIN_SIZE[0], MIN_SIZE[1]));
                let window = events.create_window(attributes);
                let window = window.map_err(|error| no_display(&error.to_string()))?;
                Screen::new(Arc::new(window), instance, events, &self.proxy)?
            }
        };
        if let Some(opened) = self.opened.take() {
            opened();
        }
        self.viewer.drawn_by(&screen.gpu);
        let home = Home::new(&screen.gpu);
        self.screen = Some(screen);
        // Draw at once, so that the window is not black while scene, kernels and shaders are
        // prepared.
        self.draw(events);
        if self.simulation.is_none() {
            let proxy = self.proxy.clone();
            // Fails only when the event loop has ended.
            let wake = move || proxy.send_event(Woken).unwrap_or_default();
            let simulation = Simulation::start(
                self.viewer.settings.clone(),
                home,
                self.viewer.playing,
                self.viewer.watched,
                self.viewer.paced,
                wake,
            );
            self.simulation = Some(simulation.map_err(Error::Thread)?);
        }
        Ok(())
    }

    fn draw(&mut self, events: &ActiveEventLoop) {
        let Some(screen) = &mut self.screen else {
            return;
        };
        self.redraw_at = None;
        if let Some(simulation) = &self.simulation {
            let update = simulation.take(self.viewer.snapshot.take());
            if let Err(error) = self.viewer.take(update) {
                return self.fail(events, error);
            }
            let wanted = self.viewer.wanted();
            self.viewer.past = simulation.recall(self.viewer.past.take(), wanted);
        }
        let drawn = screen.draw(&mut self.viewer);
        let requests = self.viewer.requests();
        match drawn {
            Ok(Drawn { again }) => {
                self.failures = 0;
                if let Some(wait) = again {
                    let time = Instant::now() + wait.max(PERIOD);
                    self.redraw_by(time);
                }
            }
            Err(error) => {
                self.failures += 1;
                let reopened = if self.failures < MAX_FAILURES {
                    self.open(events)
                } else {
                    Err(error)
                };
                if let Err(error) = reopened {
                    self.fail(events, error);
                }
                return;
            }
        }
        for request in requests {
            self.fulfil(request, events);
        }
    }

    fn fulfil(&mut self, request: Request, events: &ActiveEventLoop) {
        match request {
            Request::Quit => events.exit(),
            Request::Simulation(command) => {
                if let Some(simulation) = &self.simulation {
                    simulation.send(command);
                }
            }
            Request::SaveCsv => {
                let path = free_name(self.viewer.settings.kind.name(), "csv");
                let saved = save(&path, self.viewer.timeline.csv().as_bytes());
                self.viewer.saved(&path, saved);
                self.redraw_soon();
            }
            Request::SavePicture => {
                if let Some(screen) = &mut self.screen {
                    let path = free_name(self.viewer.settings.kind.name(), "png");
                    screen.save_to = Some(path);
                }
                self.redraw_soon();
            }
        }
    }
}

impl ApplicationHandler<Woken> for App {
    fn new_events(&mut self, _: &ActiveEventLoop, _: StartCause) {
        if self.redraw_at.is_some_and(|time| time <= Instant::now())
            && let Some(screen) = &self.screen
        {
            self.redraw_at = None;
            screen.window.request_redraw();
        }
    }

    fn resumed(&mut self, events: &ActiveEventLoop) {
        if self.screen.is_none()
            && let Err(error) = self.open(events)
        {
            self.fail(events, error);
        }
    }

    fn user_event(&mut self, _: &ActiveEventLoop, _: Woken) {
        self.redraw_soon();
    }

    fn window_event(&mut self, events: &ActiveEventLoop, _: WindowId, event: WindowEvent) {
        let Some(screen) = &mut self.screen else {
            return;
        };
        let response = screen.input.on_window_event(&screen.window, &event);
        match event {
            WindowEvent::CloseRequested | WindowEvent::Destroyed => events.exit(),
            WindowEvent::Occluded(occluded) => screen.visible = !occluded,
            WindowEvent::RedrawRequested => {
                self.draw(events);
                return;
            }
            _ => {}
        }
        if response.repaint {
            self.redraw_soon();
        }
    }

    fn about_to_wait(&mut self, events: &ActiveEventLoop) {
        let flow = self
            .redraw_at
            .map_or(ControlFlow::Wait, ControlFlow::WaitUntil);
        events.set_control_flow(flow);
    }
}

/// The result of drawing.
struct Drawn {
    /// The delay after which to draw again without an event.
    again: Option<Duration>,
}

impl Screen {
    fn new(
        window: Arc<Window>,
        instance: Instance,
        events: &ActiveEventLoop,
        proxy: &EventLoopProxy<Woken>,
    ) -> Result<Self, Error> {
        let surface = create_surface(&instance, &window)?;
        let gpu = Gpu::new(&instance, Some(&surface))?;
        let size = window.inner_size();
        let capabilities = surface.get_capabilities(&gpu.adapter);
        let config =
            surface.get_default_config(&gpu.adapter, size.width.max(1), size.height.max(1));
        let config = config.ok_or(Error::NoAdapter)?;
        // Where the CPU draws, shaders encode sRGB themselves: the panels are encoded already, and
        // decoding them for the driver to encode them again takes half of the time of a picture.
        let software = gpu.is_software();
        let mut formats = capabilities.formats.iter();
        let preferred = formats.find(|format| format.is_srgb() != software);
        let config = SurfaceConfiguration {
            usage: TextureUsages::RENDER_ATTACHMENT,
            format: preferred.copied().unwrap_or(config.format),
            present_mode: PresentMode::Fifo,
            ..config
        };
        surface.configure(&gpu.device, &config);
        let format = config.format;
        let (done, compiling) = mpsc::channel();
        let (gpu_there, proxy) = (gpu.clone(), proxy.clone());
        let quality = Quality::of(software);
        let compile = move || {
            // Both fail only when the window is already closed.
            let _ = done.send(Renderer::new(&gpu_there, format, quality));
            let _ = proxy.send_event(Woken);
        };
        std::thread::Builder::new()
            .name("shaders".into())
            .spawn(compile)
            .map_err(Error::Thread)?;
        let context = egui::Context::default();
        ui::style(&context);
        let scale = window.scale_factor() as f32;
        let limit = gpu.max_pixels() as usize;
        let input = egui_winit::State::new(
            context,
            ViewportId::ROOT,
            events,
            Some(scale),
            None,
            Some(limit),
        );
        Ok(Self {
            overlay: Overlay::new(&gpu, format),
            clock: Clock::new(&gpu),
            renderer: Shaders::Compiling(compiling),
            surface,
            gpu,
            instance,
            config,
            input,
            window,
            visible: true,
            drawn: Instant::now(),
            save_to: None,
        })
    }

    /// Draws the viewer into the window, if it is visible.
    fn draw(&mut self, viewer: &mut Viewer) -> Result<Drawn, Error> {
        if let Some(failure) = self.gpu.failure() {
            return Err(failure);
        }
        let nothing = Ok(Drawn { again: None });
        let later = Ok(Drawn { again: Some(RETRY) });
        // Resizing configures the surface once per picture, not once per event. A hidden window, or
        // one without area, waits for the event that shows it again.
        let PhysicalSize { width, height } = self.window.inner_size();
        if width == 0 || height == 0 || !self.visible {
            return nothing;
        }
        let limit = self.gpu.max_pixels();
        let size = [width.min(limit), height.min(limit)];
        if size != [self.config.width, self.config.height] {
            [self.config.width, self.config.height] = size;
            self.surface.configure(&self.gpu.device, &self.config);
        }
        let texture = match self.surface.get_current_texture() {
            CurrentSurfaceTexture::Success(texture)
            | CurrentSurfaceTexture::Suboptimal(texture) => texture,
            CurrentSurfaceTexture::Lost => {
                self.surface = create_surface(&self.instance, &self.window)?;
                self.surface.configure(&self.gpu.device, &self.config);
                return later;
            }
            CurrentSurfaceTexture::Outdated | CurrentSurfaceTexture::Validation => {
                self.surface.configure(&self.gpu.device, &self.config);
                return later;
            }
            CurrentSurfaceTexture::Timeout | CurrentSurfaceTexture::Occluded => return later,
        };
        self.drawn = Instant::now();
        let view = texture.texture.create_view(&Default::default());
        let mut encoder = self.gpu.device.create_command_encoder(&Default::default());
        self.clock.begin(&mut encoder);
        if let Shaders::Compiling(renderer) = &self.renderer
            && let Ok(renderer) = renderer.try_recv()
        {
            self.renderer = Shaders::Ready(Box::new(renderer));
        }
        let again = self.panels(viewer, size);
        let scale = self.input.egui_ctx().pixels_per_point();
        let [_, _, wide, high] = viewer.area(size, scale);
        viewer.aim(wide / high);
        let below = self.draw_scene(viewer, &mut encoder, &view, size);
        self.overlay.paint(&mut encoder, &view, below);
        // The times of a past frame are those of its first picture.
        let new = viewer
            .snapshot
            .as_ref()
            .filter(|_| below == Below::Scene && viewer.past.is_none());
        let shown = new.map(|snapshot| snapshot.frame);
        if let Some(frame) = shown {
            self.clock.end(&self.gpu.device, &mut encoder, frame);
        }
        self.gpu.queue.submit([encoder.finish()]);
        self.window.pre_present_notify();
        let ms = self.drawn.elapsed().as_secs_f64() * 1e3;
        self.gpu.queue.present(texture);
        if let Some(frame) = shown {
            viewer.timeline.drawn(frame, ms);
            viewer.rate.count(self.drawn);
        }
        for (frame, ms) in self.clock.submitted(&self.gpu.device) {
            viewer.timeline.rendered(frame, ms);
        }
        if let Some(path) = self.save_to.take() {
            let saved = self.save(&path, viewer, size);
            viewer.saved(&path, saved);
            self.window.request_redraw();
        }
        // A very long delay stands for never.
        let again = again.filter(|delay| *delay < Duration::from_secs(3600));
        let sharper = match &self.renderer {
            Shaders::Ready(renderer) if below == Below::Scene => renderer.again(),
            _ => None,
        };
        Ok(Drawn {
            again: again.into_iter().chain(sharper).min(),
        })
    }

    /// Runs the panels and uploads them. Returns the delay after which they want another picture.
    fn panels(&mut self, viewer: &mut Viewer, size: [u32; 2]) -> Option<Duration> {
        let input = self.input.take_egui_input(&self.window);
        let context = self.input.egui_ctx().clone();
        let compiling = matches!(self.renderer, Shaders::Compiling(_));
        if self.save_to.is_some() {
            viewer.message = None; // it is no part of the picture
        }
        if compiling && viewer.starting.is_none() {
            viewer.starting = Some("compiling shaders".into());
        }
        let output = context.run_ui(input, |ui| viewer.ui(ui));
        self.input
            .handle_platform_output(&self.window, output.platform_output.clone());
        let again = output
            .viewport_output
            .get(&ViewportId::ROOT)
            .map(|viewport| viewport.repaint_delay);
        self.overlay.prepare(&self.gpu, size, &context, output);
        again
    }

    /// Draws the scene, if there is one and the shaders are ready. Returns what the panels are to
    /// be drawn over.
    fn draw_scene(
        &mut self,
        viewer: &Viewer,
        encoder: &mut wgpu::CommandEncoder,
        view: &wgpu::TextureView,
        size: [u32; 2],
    ) -> Below {
        let pixels_per_point = self.input.egui_ctx().pixels_per_point();
        let is_drawn = match &mut self.renderer {
            Shaders::Ready(renderer) => {
                renderer.draw(encoder, view, size, pixels_per_point, viewer)
            }
            Shaders::Compiling(_) => false,
        };
        if is_drawn {
            Below::Scene
        } else {
            Below::Background
        }
    }

    /// Saves the picture that the window shows.
    fn save(&mut self, path: &Path, viewer: &Viewer, size: [u32; 2]) -> Result<(), Error> {
        let picture = Picture::new(&self.gpu, size, self.config.format)?;
        let mut encoder = self.gpu.device.create_command_encoder(&Default::default());
        let below = self.draw_scene(viewer, &mut encoder, &picture.view, size);
        self.overlay.paint(&mut encoder, &picture.view, below);
        save_png(path, size, &picture.read(&self.gpu, encoder)?)
    }
}

/// Returns the size of the window at the start, within a monitor of this size and scale. Around it
/// there is a frame with a title.
fn opening(monitor: Option<(PhysicalSize<u32>, f64)>) -> LogicalSize<f64> {
    let wanted = LogicalSize::new(1280.0, 800.0);
    let Some((size, scale)) = monitor.filter(|(size, _)| size.width > 0 && size.height > 0) else {
        return wanted;
    };
    let whole: LogicalSize<f64> = size.to_logical(scale);
    LogicalSize::new(
        wanted.width.min(whole.width - 20.0).max(MIN_SIZE[0]),
        wanted.height.min(whole.height - 50.0).max(MIN_SIZE[1]),
    )
}

/// Returns a surface for the window. It fails if no driver can show pictures in windows.
fn create_surface(instance: &Instance, window: &Arc<Window>) -> Result<Surface<'static>, Error> {
    let surface = instance.create_surface(Arc::clone(window));
    surface.map_err(|_| Error::NoAdapter)
}

/// Returns the error of a missing display. winit's messages begin with a line of its sources, which
/// tells a user nothing.
fn no_display(message: &str) -> Error {
    let plain = match message.strip_prefix("os error at ") {
        Some(rest) => rest.split_once(": ").map_or(rest, |(_, what)| what),
        None => message,
    };
    Error::NoDisplay(plain.trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_opens_within_the_screen() {
        let opens = |width, height, scale| {
            let size = opening(Some((PhysicalSize::new(width, height), scale)));
            [size.width, size.height]
        };
        assert_eq!(opens(2560, 1440, 1.0), [1280.0, 800.0]);
        assert_eq!(opens(2560, 1600, 2.0), [1260.0, 750.0]);
        assert_eq!(opens(1024, 768, 1.0), [1004.0, 718.0]);
        assert_eq!(opens(320, 200, 1.0), MIN_SIZE);
        assert_eq!(opens(0, 0, 1.0), [1280.0, 800.0]);
        assert_eq!(opening(None), LogicalSize::new(1280.0, 800.0));
    }

    #[test]
    fn a_missing_display_is_one_line_without_paths_of_sources() {
        let message = |text| no_display(text).to_string();
        assert_eq!(
            message(
                "os error at /somewhere/src/linux/mod.rs:765: neither WAYLAND nor DISPLAY is set"
            ),
            "cannot open a display: neither WAYLAND nor DISPLAY is set"
        );
        assert_eq!(
            message("not supported."),
            "cannot open a display: not supported"
        );
        assert!(no_display("").is_headless() && Error::NoAdapter.is_headless());
    }
}
