//! Makes what the validation layer of Vulkan complains about a failure of the test program.
//!
//! `wgpu` asks for the layer in builds with debug assertions, and logs what it says. Where it is
//! not installed nothing is validated, unless `RADSWEEP_VALIDATION=required`: that is a failure
//! then. Old layers refuse the debug information of WGSL; `WGPU_DEBUG=0` leaves it out.

use log::{Level, LevelFilter, Log, Metadata, Record};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The complaints so far.
static COMPLAINTS: AtomicUsize = AtomicUsize::new(0);

struct Watch;

impl Log for Watch {
    fn enabled(&self, metadata: &Metadata) -> bool {
        metadata.target().starts_with("wgpu_hal::vulkan")
    }

    fn log(&self, record: &Record) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let text = record.args().to_string();
        let is_missing = text.contains("unable to find layer");
        let is_required =
            std::env::var("RADSWEEP_VALIDATION").is_ok_and(|value| value == "required");
        if record.level() == Level::Error || is_missing && is_required {
            COMPLAINTS.fetch_add(1, Ordering::Relaxed);
            eprintln!("{text}");
        }
    }

    fn flush(&self) {}
}

/// Begins to count. It comes before the first device.
pub fn watch() {
    if log::set_logger(&Watch).is_ok() {
        log::set_max_level(LevelFilter::Debug);
    }
}

/// Ends the program: with 101 if a trial has failed or the layer has complained, else with 0. No
/// exit handler runs: those of a software driver once freed memory twice beside its own threads,
/// since the devices are still there.
pub fn exit(has_failed: bool) -> ! {
    let complaints = COMPLAINTS.load(Ordering::Relaxed);
    if complaints > 0 {
        eprintln!("FAILED: {complaints} complaints of the validation layer, listed above");
    }
    let code = if has_failed || complaints > 0 { 101 } else { 0 };
    #[cfg(unix)]
    // SAFETY: the call takes any number, and does not return. Each line printed was flushed.
    unsafe {
        libc::_exit(code)
    }
    #[cfg(not(unix))]
    std::process::exit(code)
}
