//! Tests the built program: what it prints, what it writes, and its errors.

mod bench;
mod command_line;
mod output;
mod pairs;
mod program;
mod scenes;
mod sort;
mod streams;

use npyz::WriterBuilder;
use program::{by_itself, command};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const STRATEGIES: [&str; 4] = ["endpoints", "sweep", "subdivided", "auto"];

fn run<A: AsRef<OsStr>>(args: &[A]) -> Output {
    command().args(args).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// Runs the program, expects success, and returns its output.
#[track_caller]
fn succeeds<A: AsRef<OsStr>>(args: &[A]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[track_caller]
fn json<A: AsRef<OsStr>>(args: &[A]) -> Value {
    serde_json::from_str(&succeeds(args)).expect("one JSON object")
}

/// Runs the program, expects this exit code, nothing on stdout and an error on stderr, and returns
/// that. It is one line, unless the command line is wrong (code 2): then clap says how to go on.
#[track_caller]
fn refuses<A: AsRef<OsStr>>(code: i32, args: &[A]) -> String {
    let output = run(args);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert_eq!(text(&output.stdout), "");
    match code {
        2 => assert!(
            message.ends_with("For more information, try '--help'.\n"),
            "{message}"
        ),
        _ => assert_eq!(message.lines().count(), 1, "{message}"),
    }
    assert!(message.starts_with("error: "), "{message}");
    message
}

/// Runs the program with this input, expects success, and returns its output.
#[track_caller]
fn fed<A: AsRef<OsStr>>(args: &[A], input: &[u8]) -> Output {
    let mut child = command()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input).expect("taken");
    drop(stdin);
    let output = child.wait_with_output().expect("an end");
    assert!(output.status.success(), "{}", text(&output.stderr));
    output
}

#[track_caller]
fn refuses_naming<A: AsRef<OsStr>>(code: i32, args: &[A], parts: &[&str]) {
    let message = refuses(code, args);
    for part in parts {
        assert!(message.contains(part), "`{part}` is missing in: {message}");
    }
}

/// A temporary folder for the files of a test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn string(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn bytes(&self, name: &str, bytes: &[u8]) -> String {
        fs::write(self.path(name), bytes).expect("written");
        self.string(name)
    }

    /// Writes an array with `npyz`.
    fn array<T: npyz::AutoSerialize + Copy>(
        &self,
        name: &str,
        shape: &[u64],
        elements: &[T],
    ) -> String {
        let mut bytes = Vec::new();
        let mut writer = npyz::WriteOptions::new()
            .default_dtype()
            .shape(shape)
            .writer(&mut bytes)
            .begin_nd()
            .expect("a header");
        writer.extend(elements.iter().copied()).expect("elements");
        writer.finish().expect("complete");
        self.bytes(name, &bytes)
    }

    fn boxes(&self, name: &str, boxes: &[[f32; 6]]) -> String {
        self.array(name, &[boxes.len() as u64, 6], boxes.as_flattened())
    }

    /// Writes a file with this header dict and data.
    fn raw(&self, name: &str, version: u8, dict: &str, data: &[u8]) -> String {
        self.bytes(name, &npy(version, dict, data))
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .expect("a folder")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("text")
            })
            .collect();
        names.sort();
        names
    }
}

/// Returns the bytes of a file with this header dict and data.
fn npy(version: u8, dict: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x93, b'N', b'U', b'M', b'P', b'Y', version, 0];
    match version {
        1 => bytes.extend((dict.len() as u16).to_le_bytes()),
        _ => bytes.extend((dict.len() as u32).to_le_bytes()),
    }
    bytes.extend(dict.as_bytes());
    bytes.extend(data);
    bytes
}

/// Reads the shape and elements of a file with `npyz`.
#[track_caller]
fn array<T: npyz::Deserialize>(path: &Path) -> (Vec<u64>, Vec<T>) {
    let bytes = fs::read(path).expect("written by the program");
    let file = npyz::NpyFile::new(bytes.as_slice()).expect("an .npy file");
    (file.shape().to_vec(), file.into_vec().expect("elements"))
}

/// Three boxes in a row, each touching the next, and one far away.
const ROW: [[f32; 6]; 4] = [
    [0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
    [1.0, 0.0, 0.0, 2.0, 1.0, 1.0],
    [2.0, 0.0, 0.0, 3.0, 1.0, 1.0],
    [9.0, 9.0, 9.0, 9.5, 9.5, 9.5],
];

/// Returns the FNV-1a hash of pairs as little-endian numbers, independent of the library's code.
fn fnv(pairs: &[u32]) -> String {
    let bytes = pairs.iter().flat_map(|index| index.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}")
}
