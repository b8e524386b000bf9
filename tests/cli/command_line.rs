//! Tests of the help, of bad arguments, and of the choice of the backend.

use crate::*;

#[test]
fn every_command_has_help_and_the_program_a_version() {
    for command in ["run", "pairs", "sort", "bench", "calibrate", "info"] {
        let help = succeeds(&[command, "--help"]);
        assert!(help.contains(&format!("radsweep {command}")), "{help}");
    }
    assert!(succeeds(&["--help"]).contains("falling-chairs"));
    assert_eq!(
        succeeds(&["--version"]),
        concat!("radsweep ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn unknown_commands_options_and_names_are_errors() {
    let folder = Folder::new();
    let boxes = folder.boxes("boxes.npy", &ROW);
    refuses_naming(2, &["dance"], &["dance"]);
    refuses_naming(2, &["view"], &["SCENE"]);
    refuses_naming(2, &["--dance"], &["--dance"]);
    refuses_naming(2, &["pairs"], &["BOXES.npy"]);
    refuses_naming(
        2,
        &["pairs", &boxes, "--strategy", "guess"],
        &["guess", "endpoints", "sweep", "subdivided", "auto"],
    );
    refuses_naming(
        2,
        &["pairs", &boxes, "--sort", "bogo"],
        &["bogo", "onesweep", "auto"],
    );
    refuses_naming(
        2,
        &["pairs", &boxes, "--backend", "tpu"],
        &["tpu", "auto", "cpu", "cuda"],
    );
    refuses_naming(
        2,
        &["sort", &boxes, "--algorithm", "bogo"],
        &["bogo", "onesweep", "auto"],
    );
    refuses_naming(
        2,
        &["sort", &boxes, "--backend", "tpu"],
        &["tpu", "auto", "cpu", "cuda"],
    );
}

#[test]
fn missing_cuda_is_an_error_that_says_what_was_looked_for() {
    let folder = Folder::new();
    let boxes = folder.boxes("boxes.npy", &ROW);
    let keys = folder.array("keys.npy", &[1], &[3_u32]);
    for args in [["run", "uniform"], ["pairs", &boxes], ["sort", &keys]] {
        // Hides the device, if there is one.
        let output = command()
            .args(args)
            .args(["--backend", "cuda"])
            .env("CUDA_VISIBLE_DEVICES", "")
            .output();
        let output = output.expect("the program starts");
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert_eq!(text(&output.stdout), "");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.starts_with("error: no CUDA backend: "), "{message}");
    }
}

#[test]
fn the_environment_decides_the_backend() {
    let with = |value: &str, args: &[&str]| {
        let mut command = command();
        command
            .env("RADSWEEP_BACKEND", value)
            .env("CUDA_VISIBLE_DEVICES", "");
        command.args(args).output().expect("the program starts")
    };
    let folder = Folder::new();
    let boxes = folder.boxes("boxes.npy", &ROW);
    let keys = folder.array("keys.npy", &[1], &[3_u32]);
    for args in [
        ["info"].as_slice(),
        &["pairs", &boxes],
        &["sort", &keys],
        &["run", "stack", "--bodies", "9"],
    ] {
        assert!(with("cpu", args).status.success(), "{args:?}");
        assert!(with("", args).status.success(), "{args:?}");
        for (value, part) in [
            ("cuda", "no CUDA backend"),
            ("tpu", "unknown backend `tpu`"),
        ] {
            let output = with(value, args);
            let message = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{args:?} {message}");
            assert!(
                message.contains(part) && message.lines().count() == 1,
                "{args:?} {message}"
            );
        }
    }
    // The command line takes precedence.
    assert!(
        with("cuda", &["pairs", &boxes, "--backend", "cpu"])
            .status
            .success()
    );
}

#[test]
fn info_says_which_backend_and_why() {
    let info = json(&["info", "--json"]);
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    assert!(
        ["cpu", "cuda"].contains(&info["backend"].as_str().expect("text")),
        "{info}"
    );
    assert!(!info["why"].as_str().expect("text").is_empty());
    let devices = info["cuda"]["devices"].as_array().expect("a list");
    assert_eq!(info["backend"] == "cuda", !devices.is_empty(), "{info}");
    let printed = succeeds(&["info"]);
    assert!(printed.contains("\nbackend "), "{printed}");
}

#[test]
fn a_file_name_with_line_breaks_prints_one_line() {
    refuses_naming(1, &["pairs", "no\nsuch\nfile.npy"], &["no such file.npy"]);
}
