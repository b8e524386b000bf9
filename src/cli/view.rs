//! `radsweep view`: shows a scene in a window, draws it into a file, or prints it where there is no
//! display.

#[cfg(feature = "viewer")]
use super::args::misuse;
use super::args::{Run, View};
use super::run;
#[cfg(feature = "viewer")]
use radsweep::{Backend, sort::Algorithm};
use radsweep_common::Result;
#[cfg(feature = "viewer")]
use radsweep_common::backend::{self, note_sort};
#[cfg(feature = "viewer")]
use radsweep_common::output::is_dash;
use radsweep_common::terminal::note;
#[cfg(feature = "viewer")]
use radsweep_common::terminal::progress;
#[cfg(feature = "viewer")]
use radsweep_viewer::{self as viewer, Screenshot, Settings};

/// Without a window, every 20th frame is printed, with the first and the last.
const PRINTED_EVERY: u32 = 20;

#[cfg(feature = "viewer")]
pub(super) fn view(args: View) -> Result<()> {
    let mut args = args;
    let engine = &mut args.simulation.engine;
    // An unused sort is noted once, before the window opens. A missing backend is an error later.
    if engine.sort != Algorithm::Auto
        && let Ok((chosen, _)) = backend::of_pairs(engine.backend, &backend::adapters())
        && chosen != Backend::Cuda
    {
        note_sort(&[engine.sort], chosen);
        engine.sort = Algorithm::Auto;
    }
    let simulation = &args.simulation;
    let settings = Settings {
        kind: simulation.scene,
        options: simulation.options(),
        config: simulation.engine.config(),
    };
    let Some(path) = args.picture.screenshot.clone() else {
        let has_frames = simulation.frames.is_some();
        let opened = move || {
            if has_frames {
                note("--frames has no effect in a window");
            }
        };
        return match viewer::window(settings, opened) {
            Err(error) if error.is_headless() => headless(args, &error.to_string()),
            shown => Ok(shown?),
        };
    };
    if args.picture.every.is_some() && is_dash(&path) {
        return Err(misuse("--every needs a --screenshot with a name"));
    }
    let frames = simulation.frames();
    let bar = progress(frames.into(), "frames");
    let picture = args.picture;
    let wanted = Screenshot {
        settings,
        path,
        frames,
        every: picture.every,
        size: picture.size,
        overlay: !picture.no_overlay,
        shadows: !picture.no_shadows,
        colour: picture.colour_by,
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
    let simulation = args.simulation;
    note(&format!(
        "{why}; running {} without a window",
        simulation.scene
    ));
    let run = Run {
        simulation,
        devices: None,
        json: false,
    };
    run::run(&run, PRINTED_EVERY)
}
