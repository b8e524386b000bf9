//! Tests `radsweep view`: what its options draw, its errors, and its messages without a driver or a
//! display.
//!
//! `RADSWEEP_VIEWER=required` makes a missing driver a failure.

#[path = "../crates/viewer/tests/pictures/image.rs"]
mod image;

use image::{Image, Result, check, scale};
use libtest_mimic::Trial;
use radsweep_scenes::Kind;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn main() {
    let drawn = vec![
        Trial::test("a_picked_body_and_boxes_are_drawn", picked),
        Trial::test("shadows_are_left_out_if_asked_to", shadows),
        Trial::test("numbered_pictures_show_the_frames_in_between", numbered),
        Trial::test("bad_sizes_and_folders_are_errors", refused),
        Trial::test("a_reader_that_has_enough_is_no_error", closed_pipe),
    ];
    let others = vec![
        Trial::test("without_a_display_the_scene_runs_with_a_note", no_display),
        Trial::test("without_a_driver_one_line_says_what_to_install", no_driver),
    ];
    image::run(missing(), drawn, others);
}

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_radsweep"));
    // Every backend finds the same pairs, so the pictures are the same, but the report in the
    // panels is not.
    command.env("RADSWEEP_BACKEND", "cpu");
    for variable in ["DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR"] {
        command.env_remove(variable);
    }
    command
}

fn error_of(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    // A driver may print lines of its own.
    let ours = stderr.lines().filter(|line| line.starts_with("error: "));
    ours.collect::<Vec<_>>().join("\n")
}

/// Returns why nothing can be drawn here, if so.
fn missing() -> Option<String> {
    let folder = TempDir::new().expect("a temporary folder");
    let output = take(
        &folder.path().join("probe.png"),
        Kind::Uniform,
        &["--size", "8x8"],
    );
    let error = error_of(&output);
    error.contains("no graphics driver").then_some(error)
}

fn take(path: &Path, kind: Kind, more: &[&str]) -> Output {
    let (bodies, frames) = scale(kind);
    let mut command = program();
    let (bodies, frames) = (bodies.to_string(), frames.to_string());
    command.args([
        "view",
        kind.name(),
        "--bodies",
        &bodies,
        "--frames",
        &frames,
    ]);
    command.arg("--screenshot").arg(path).args(more);
    command.output().expect("the program starts")
}

/// Takes a picture of a scene.
fn picture(kind: Kind, more: &[&str]) -> Result<Image> {
    let folder = TempDir::new()?;
    let path = folder.path().join("picture.png");
    let size = ["--size", "480x300"];
    let size = if more.contains(&"--size") {
        &[]
    } else {
        &size[..]
    };
    let output = take(&path, kind, &[size, more].concat());
    let error = error_of(&output);
    check(output.status.success() && error.is_empty(), error)?;
    Image::read(&path)
}

fn picked() -> Result {
    let plain = picture(Kind::Stack, &["--no-overlay"])?;
    for more in [
        ["--body", "700"].as_slice(),
        &["--boxes"],
        &["--colour-by", "overlaps"],
    ] {
        let other = picture(Kind::Stack, &[&["--no-overlay"], more].concat())?;
        let (mean, worst) = plain.difference(&other);
        check(mean > 0.2 && worst > 10.0, (more, mean, worst))?;
    }
    Ok(())
}

fn shadows() -> Result {
    let with = picture(Kind::FallingChairs, &["--no-overlay"])?;
    let without = picture(Kind::FallingChairs, &["--no-overlay", "--no-shadows"])?;
    let (mean, worst) = with.difference(&without);
    check(mean > 0.1 && worst > 20.0, (mean, worst))
}

fn numbered() -> Result {
    let folder = TempDir::new()?;
    let path = folder.path().join("f.png");
    let size = ["--size", "480x300", "--no-overlay", "--every", "30"];
    let output = take(&path, Kind::FallingChairs, &size);
    check(output.status.success(), error_of(&output))?;
    let read = |name: &str| Image::read(&folder.path().join(name));
    let (first, second, last) = (read("f-0030.png")?, read("f-0060.png")?, read("f.png")?);
    check(first.difference(&second).0 > 0.5, "the chairs fell")?;
    check(second.difference(&last).0 > 0.05, "and fell on")?;
    check(
        std::fs::read_dir(folder.path())?.count() == 3,
        "no other file",
    )
}

fn refused() -> Result {
    let folder = TempDir::new()?;
    let path = folder.path().join("f.png");
    for (size, part) in [("0x5", "0x5"), ("100000x5", "100000x5"), ("5", "`5`")] {
        let output = take(&path, Kind::Uniform, &["--size", size]);
        let error = error_of(&output);
        check(!output.status.success() && error.contains(part), error)?;
    }
    let output = take(&folder.path().join("no/f.png"), Kind::Uniform, &[]);
    let error = error_of(&output);
    check(
        !output.status.success() && error.contains("no/f.png"),
        error,
    )?;
    let output = take(&path, Kind::Stack, &["--body", "999999"]);
    let error = error_of(&output);
    check(output.status.code() == Some(2), &error)?;
    check(
        error.contains("body 999999 was requested, but the scene has"),
        error,
    )?;
    let none = ["--bodies", "0"];
    let mut command = program();
    command
        .args(["view", "uniform"])
        .args(none)
        .arg("--screenshot")
        .arg(&path);
    let output = command.output()?;
    let error = error_of(&output);
    check(
        !output.status.success() && error.contains("`0` is not between 1"),
        error,
    )?;
    check(!path.exists(), "nothing was written")
}

fn closed_pipe() -> Result {
    let mut command = program();
    command.args([
        "stack",
        "--bodies",
        "9",
        "--frames",
        "1",
        "--screenshot",
        "-",
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    drop(child.stdout.take());
    let output = child.wait_with_output()?;
    check(output.status.success(), error_of(&output))
}

fn no_display() -> Result {
    for (args, scene) in [
        (&["view", "uniform"][..], "uniform"),
        (&["uniform"], "uniform"),
        (&[], "falling-chairs"),
    ] {
        let mut command = program();
        command
            .args(args)
            .args(["--bodies", "300", "--frames", "2"]);
        let output = command.output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let note = String::from_utf8_lossy(&output.stderr);
        check(output.status.success(), &note)?;
        check(note.contains("note: cannot open a display"), &note)?;
        check(note.contains(&format!("running {scene} without")), &note)?;
        check(
            text.contains("pairs per frame") && text.contains("sweep"),
            text,
        )?;
    }
    Ok(())
}

fn no_driver() -> Result {
    let folder = TempDir::new()?;
    let path = folder.path().join("f.png");
    let mut command = program();
    // Neither Vulkan nor OpenGL.
    for variable in [
        "VK_DRIVER_FILES",
        "VK_ICD_FILENAMES",
        "__EGL_VENDOR_LIBRARY_FILENAMES",
    ] {
        command.env(variable, "/dev/null");
    }
    command.args(["view", "uniform", "--bodies", "9", "--frames", "1"]);
    let output = command.arg("--screenshot").arg(&path).output()?;
    if cfg!(not(target_os = "linux")) {
        return Ok(()); // these variables are those of Linux
    }
    let error = error_of(&output);
    check(output.status.code() == Some(1), &error)?;
    check(
        error.contains("mesa-vulkan-drivers") && error.lines().count() == 1,
        &error,
    )?;
    let output = command.env("WGPU_BACKEND", "metal").output()?;
    let error = error_of(&output);
    check(error.contains("(WGPU_BACKEND is metal)"), &error)?;
    check(!path.exists(), "nothing was written")
}
