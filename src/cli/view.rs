//! `radsweep view`: a scene in a window, or in a picture, or neither where nothing can show it.

use super::args::{Run, View};
use super::run;
use radsweep_common::Result;
use radsweep_common::terminal::note;
#[cfg(feature = "viewer")]
use radsweep_common::terminal::progress;
#[cfg(feature = "viewer")]
use radsweep_scenes::Options;
#[cfg(feature = "viewer")]
use radsweep_viewer::{self as viewer, Screenshot, Settings};

/// Frames between two that a human reads where there is no window.
const EVERY: u32 = 20;

#[cfg(feature = "viewer")]
pub(super) fn view(args: View) -> Result<()> {
    let settings = Settings {
        kind: args.scene,
        options: Options {
            bodies: args.bodies,
            seed: args.seed,
            density: args.density,
        },
        config: args.engine.config(),
    };
    let Some(path) = args.picture.screenshot.clone() else {
        return match viewer::window(settings) {
            Err(error) if error.is_headless() => headless(args, &error.to_string()),
            shown => Ok(shown?),
        };
    };
    let frames = args.frames.unwrap_or(args.scene.default_frames());
    let bar = progress(frames.into(), "frames");
    let picture = args.picture;
    let wanted = Screenshot {
        settings,
        path,
        frames,
        every: picture.every,
        size: picture.size,
        overlay: !picture.no_overlay,
        colour: picture.colour,
        wireframes: picture.boxes,
        cells: picture.cells,
        body: picture.body,
    };
    Ok(viewer::screenshot(&wanted, || bar.inc(1))?)
}

#[cfg(not(feature = "viewer"))]
pub(super) fn view(args: View) -> Result<()> {
    headless(args, "this build has no feature `viewer`")
}

fn headless(args: View, why: &str) -> Result<()> {
    note(&format!("{why}; running {} without a window", args.scene));
    let run = Run {
        scene: args.scene,
        bodies: args.bodies,
        frames: args.frames,
        seed: args.seed,
        density: args.density,
        engine: args.engine,
        json: false,
    };
    run::run(&run, EVERY)
}
