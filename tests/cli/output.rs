//! Tests of outputs: files, devices, pipes.

use crate::*;

#[test]
fn unwritable_outputs_are_errors_before_the_work() {
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
        (folder.string("pairs.npy/"), "is a folder"),
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
fn a_closed_pipe_ends_the_program_without_an_error() {
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
    assert!(line.contains("\"frame\":1,"), "{line}");
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
fn a_full_stdout_is_an_error() {
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

/// The program reports the system's error, instead of ending by a signal.
#[cfg(unix)]
#[test]
fn a_file_beyond_the_size_limit_is_an_error_and_leaves_nothing() {
    let folder = Folder::new();
    let keys: Vec<u32> = (0..10_000).rev().collect();
    let keys = folder.array("keys.npy", &[10_000], &keys);
    let sorted = folder.string("sorted.npy");
    let output = Command::new("sh")
        .args(["-c", "ulimit -f 1; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_radsweep"))
        .args(["sort", &keys, "-o", &sorted, "--backend", "cpu"])
        .output()
        .expect("a shell starts");
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.starts_with(&format!("error: cannot write {sorted}: File too large")),
        "{message}"
    );
    assert_eq!(message.lines().count(), 1, "{message}");
    assert_eq!(folder.names(), ["keys.npy"]);
}

/// Returns SIGKILL where files without a name exist: on Linux, and most file systems. No handler
/// can see it, so other files would remain.
#[cfg(unix)]
fn killing() -> Option<rustix::process::Signal> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{Mode, OFlags, open};
        let flags = OFlags::TMPFILE | OFlags::WRONLY;
        if open(std::env::temp_dir(), flags, Mode::RUSR).is_ok() {
            return Some(rustix::process::Signal::KILL);
        }
    }
    println!("SIGKILL is not tested: no files without a name here");
    None
}

/// The signals arrive while the program reads its input from a pipe, after it has opened its
/// output.
#[cfg(unix)]
#[test]
fn a_signal_ends_the_program_and_leaves_no_temporary_file() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    let signals = [Signal::HUP, Signal::INT, Signal::TERM];
    for signal in signals.into_iter().chain(killing()) {
        for existing in [false, true] {
            let folder = Folder::new();
            let sorted = folder.string("sorted.npy");
            if existing {
                folder.bytes("sorted.npy", b"old");
            }
            let mut command = command();
            command.args(["sort", "/dev/stdin", "-o", &sorted, "--backend", "cpu"]);
            // The tests may have been started to ignore the signal.
            let heed = move || {
                // SAFETY: the default action of a signal may always be set.
                unsafe { libc::signal(signal.as_raw(), libc::SIG_DFL) };
                Ok(())
            };
            // SAFETY: `signal` may be called between fork and exec.
            unsafe { command.pre_exec(heed) };
            let mut child = command
                .stdin(Stdio::piped())
                .spawn()
                .expect("the program starts");
            let mut stdin = child.stdin.take().expect("a pipe");
            // More than fits in a pipe: it is all written once the program reads, after it has
            // opened its output.
            let dict = "{'descr': '<u4', 'fortran_order': False, 'shape': (1000000, ), }\n";
            stdin.write_all(&npy(1, dict, &[0; 1 << 20])).expect("read");
            let pid = Pid::from_child(&child);
            kill_process(pid, signal).expect("it runs");
            let status = child.wait().expect("an end");
            assert_eq!(status.signal(), Some(signal.as_raw()), "{status:?}");
            let left: &[&str] = if existing { &["sorted.npy"] } else { &[] };
            assert_eq!(folder.names(), left, "{signal:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_dangling_link_stays_a_link_and_its_target_is_created() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    let boxes = folder.boxes("boxes.npy", &ROW);
    fs::create_dir(folder.path("other")).expect("made");
    // One link leads to the next, each from its own folder.
    symlink("other/second.npy", folder.path("first.npy")).expect("linked");
    symlink("../target.npy", folder.path("other/second.npy")).expect("linked");
    for _ in 0..2 {
        succeeds(&["pairs", &boxes, "-o", &folder.string("first.npy")]);
        for link in ["first.npy", "other/second.npy"] {
            let metadata = fs::symlink_metadata(folder.path(link)).expect("there");
            assert!(metadata.is_symlink(), "{link}");
        }
        assert_eq!(array::<u32>(&folder.path("target.npy")).0, [2, 2]);
    }
}

#[cfg(unix)]
#[test]
fn a_broken_link_is_an_error_with_the_name_of_the_link() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    let boxes = folder.boxes("boxes.npy", &ROW);
    symlink("missing/pairs.npy", folder.path("lost.npy")).expect("linked");
    symlink("b.npy", folder.path("a.npy")).expect("linked");
    symlink("a.npy", folder.path("b.npy")).expect("linked");
    for (name, reason) in [
        ("lost.npy", "No such file or directory (os error 2)"),
        ("a.npy", "Too many levels of symbolic links"),
    ] {
        let output = folder.string(name);
        let message = refuses(1, &["pairs", &boxes, "-o", &output]);
        assert!(
            message.starts_with(&format!("error: cannot write {output}: {reason}")),
            "{message}"
        );
    }
}
