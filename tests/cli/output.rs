//! Where results go: files, devices, pipes.

use crate::*;

#[test]
fn places_that_cannot_be_written_are_refused_before_the_work() {
    let folder = Folder::new();
    let boxes = folder.boxes("boxes.npy", &ROW);
    let in_file = format!("{boxes}/pairs.npy");
    for (output, part) in [
        (
            folder.string("missing/pairs.npy"),
            "No such file or directory",
        ),
        (folder.0.path().display().to_string(), "is a folder"),
        (in_file, "Not a directory"),
    ] {
        refuses_naming(1, &["pairs", &boxes, "-o", &output], &[&output, part]);
    }
    refuses_naming(2, &["pairs", &boxes, "-o", ""], &["--output"]);
    assert_eq!(folder.names(), ["boxes.npy"]);
}

#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    if Path::new("/dev/full").exists() {
        let folder = Folder::new();
        let boxes = folder.boxes("boxes.npy", &ROW);
        refuses_naming(
            1,
            &["pairs", &boxes, "-o", "/dev/full"],
            &["/dev/full", "No space left"],
        );
    }
}

#[test]
fn a_device_is_written_and_not_replaced() {
    let folder = Folder::new();
    succeeds(&["pairs", &folder.boxes("boxes.npy", &ROW), "-o", "/dev/null"]);
    assert!(!fs::metadata("/dev/null").expect("still there").is_file());
}

#[cfg(unix)]
#[test]
fn a_link_is_followed_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new();
    let boxes = folder.boxes("boxes.npy", &ROW);
    let target = folder.bytes("target.npy", b"old");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).expect("set");
    symlink(&target, folder.path("link.npy")).expect("linked");
    succeeds(&["pairs", &boxes, "-o", &folder.string("link.npy")]);
    assert!(
        fs::symlink_metadata(folder.path("link.npy"))
            .expect("there")
            .is_symlink()
    );
    assert_eq!(
        fs::metadata(&target).expect("there").permissions().mode() & 0o777,
        0o640
    );
    assert_eq!(array::<u32>(Path::new(&target)).0, [2, 2]);
}

#[test]
fn a_relative_name_is_written_where_the_program_runs() {
    let folder = Folder::new();
    folder.boxes("boxes.npy", &ROW);
    let args = ["pairs", "boxes.npy", "-o", "pairs.npy"];
    let output = command()
        .args(args)
        .current_dir(folder.0.path())
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(folder.names(), ["boxes.npy", "pairs.npy"]);
}

#[test]
fn the_input_may_be_the_output() {
    let folder = Folder::new();
    let keys = folder.array("keys.npy", &[3], &[3_u32, 1, 2]);
    succeeds(&["sort", &keys, "-o", &keys]);
    assert_eq!(array(Path::new(&keys)), (vec![3], vec![1_u32, 2, 3]));
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_program_quietly() {
    let mut child = command()
        .args([
            "run", "uniform", "--bodies", "500", "--frames", "100000", "--json",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe"))
        .read_line(&mut line)
        .expect("a line");
    assert!(line.contains("\"frame\":0"), "{line}");
    let mut errors = String::new();
    child
        .stderr
        .take()
        .expect("a pipe")
        .read_to_string(&mut errors)
        .expect("text");
    assert!(child.wait().expect("an end").success());
    assert_eq!(errors, "");
}

#[test]
fn a_stdout_that_is_full_is_an_error() {
    if let Ok(full) = fs::File::options().write(true).open("/dev/full") {
        let output = command()
            .arg("info")
            .stdout(full)
            .output()
            .expect("the program starts");
        assert_eq!(output.status.code(), Some(1));
        assert!(
            text(&output.stderr).starts_with("error: cannot write to stdout"),
            "{}",
            text(&output.stderr)
        );
    }
}
