//! The viewer: a scene while it runs, what the broad phase does with it, and where the time goes.
//!
//! The simulation has a thread of its own (`simulation.rs`) and hands over its newest frame (`snapshot.rs`). What is shown of it
//! and asked for is `state.rs`; panels and input are `ui/`, drawing is `render/`. Only `window.rs` knows of a window, so that
//! `screenshot.rs` shows the same without one.

mod camera;
mod cells;
mod look;
mod mesh;
mod overlay;
mod pick;
mod render;
mod save;
mod screenshot;
mod simulation;
mod snapshot;
mod sorting;
mod state;
mod timeline;
mod ui;
mod window;

pub use look::Colour;
pub use screenshot::{Screenshot, screenshot};
pub use simulation::Settings;
use std::io;
use std::path::PathBuf;
pub use window::window;

/// Why there is no window or no picture.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing can draw.
    #[error(
        "no graphics driver answers: install the Vulkan driver of your GPU, or a software one (Debian, Ubuntu: \
         apt install mesa-vulkan-drivers libvulkan1)"
    )]
    NoAdapter,
    /// The device that draws failed.
    #[error("the graphics device failed: {0}")]
    Device(String),
    /// A picture that cannot be.
    #[error("a picture of {}x{} pixels asked for, but a side has 1 to {most}", .size[0], .size[1])]
    Size {
        /// Width and height asked for.
        size: [u32; 2],
        /// The most of the device.
        most: u32,
    },
    /// There is no window system.
    #[error("no display answers: {0}")]
    NoDisplay(String),
    /// A scene that cannot be.
    #[error(transparent)]
    Scene(#[from] radsweep_scenes::Error),
    /// The broad phase failed.
    #[error("frame {frame}: {source}")]
    Step {
        /// Counted from 1.
        frame: u64,
        /// What it says.
        source: radsweep::Error,
    },
    /// The broad phase did not start.
    #[error(transparent)]
    BroadPhase(#[from] radsweep::Error),
    /// The scene or the broad phase did not start.
    #[error("{0}")]
    Start(String),
    /// A file that cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    Save {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// No thread for the simulation.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl Error {
    /// Whether the program can do without: the scene runs as well without a picture of it.
    pub const fn is_headless(&self) -> bool {
        matches!(self, Self::NoAdapter | Self::NoDisplay(_))
    }
}
