//! The viewer: shows a scene while it runs, the pairs found, and the time of each stage.
//!
//! - `simulation/` runs the scene on a thread of its own and publishes its newest frame
//!   (`snapshot.rs`).
//! - `live/` keeps frames on the device that draws, where the scene lives there too.
//! - `state.rs` stores what is shown and requested.
//! - `ui/` has the panels and the input, `render/` draws.
//! - `window.rs` is the only file that uses a window; `screenshot.rs` shows the same without one.

mod act;
mod camera;
mod cells;
mod error;
mod lines;
mod live;
mod look;
mod mesh;
mod overlay;
mod pick;
mod rate;
mod render;
mod resting;
mod save;
mod screenshot;
mod simulation;
mod snapshot;
mod sorting;
mod state;
mod timeline;
mod ui;
mod window;

pub use error::Error;
pub use look::Colour;
pub use screenshot::{Screenshot, screenshot};
pub use simulation::Settings;
pub use window::window;
