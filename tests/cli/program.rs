//! Starts the program, in these tests and those of published data.

use std::process::Command;
use std::sync::OnceLock;

/// Returns the program with the backend that it takes on this machine. Where that is the CPU, it is
/// told so: to look for a device takes longer than most of the commands.
pub fn command() -> Command {
    static CPU: OnceLock<bool> = OnceLock::new();
    let cpu = CPU.get_or_init(|| {
        let output = by_itself().args(["info", "--json"]).output();
        let info = output.expect("the program starts").stdout;
        let info: serde_json::Value = serde_json::from_slice(&info).expect("one JSON object");
        info["backend"] == "cpu"
    });
    let mut command = by_itself();
    command.envs(cpu.then_some(("RADSWEEP_BACKEND", "cpu")));
    command
}

/// Returns the program, which looks for a device.
pub fn by_itself() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_radsweep"));
    command.env_remove("RADSWEEP_BACKEND");
    command
}
