//! The program `radsweep`: `radsweep --help` lists its commands.

mod cli;

fn main() -> std::process::ExitCode {
    #[cfg(target_os = "linux")]
    silence_wayland();
    cli::main()
}

/// Names a place without sockets where the system names none.
///
/// A layer of Mesa's Vulkan drivers looks for a Wayland server, also for a picture without a window
/// or a window of X11. Without `XDG_RUNTIME_DIR` Wayland's library prints errors on stderr then.
#[cfg(target_os = "linux")]
fn silence_wayland() {
    const VARIABLE: &str = "XDG_RUNTIME_DIR";
    if std::env::var_os(VARIABLE).is_none() {
        // SAFETY: `main` calls this before anything that may start a thread, so no other thread
        // reads or writes the environment.
        unsafe { std::env::set_var(VARIABLE, "/dev/null") };
    }
}
