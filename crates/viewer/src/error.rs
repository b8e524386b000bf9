//! Why there is no window or no picture.

use std::io;
use std::path::PathBuf;

/// Why there is no window or no picture.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No graphics driver was found.
    #[error(
        "no graphics driver was found{}: install the Vulkan or OpenGL driver of your GPU, or a software one (Debian, \
         Ubuntu: apt install mesa-vulkan-drivers libvulkan1)",
        restriction()
    )]
    NoAdapter,
    /// The graphics device failed.
    #[error("the graphics device failed: {0}")]
    Device(String),
    /// The size of the picture is out of range.
    #[error("a picture of {}x{} pixels was requested, but a side can have 1 to {limit} pixels", .size[0], .size[1])]
    Size {
        /// Requested width and height.
        size: [u32; 2],
        /// The device's max width and height.
        limit: u32,
    },
    /// The body to select does not exist.
    #[error("body {body} was requested, but the scene has {bodies} bodies, counted from 0")]
    Body {
        /// The requested body.
        body: u32,
        /// The number of bodies, with the ground where it is a box.
        bodies: usize,
    },
    /// There is no window system.
    #[error("cannot open a display: {0}")]
    NoDisplay(String),
    /// The scene could not be created.
    #[error(transparent)]
    Scene(#[from] radsweep_scenes::Error),
    /// The broad phase failed.
    #[error("frame {frame}: {source}")]
    Step {
        /// The frame, counted from 1.
        frame: u64,
        /// The error of the broad phase.
        source: radsweep::Error,
    },
    /// The broad phase did not start.
    #[error(transparent)]
    BroadPhase(#[from] radsweep::Error),
    /// The scene or the broad phase did not start.
    #[error("{0}")]
    Start(String),
    /// A file could not be written.
    #[error("cannot write {}: {source}", .path.display())]
    Save {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The thread of the simulation could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl Error {
    /// Tells whether only the display or the driver is missing, so that the scene can still run
    /// without a window.
    pub const fn is_headless(&self) -> bool {
        matches!(self, Self::NoAdapter | Self::NoDisplay(_))
    }
}

/// Returns the restriction to some graphics APIs, if there is one.
fn restriction() -> String {
    match std::env::var("WGPU_BACKEND") {
        Ok(names) if !names.is_empty() => format!(" (WGPU_BACKEND is {names})"),
        _ => String::new(),
    }
}
