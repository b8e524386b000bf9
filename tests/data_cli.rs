//! Tests the program on published data: counts and hashes of pairs, and sorted keys with their
//! argsort.
//!
//! `boxes.jsonl` and `keys.jsonl` in the data folder (`RADSWEEP_DATA`, else `../shared/data`) have
//! the expected results.

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;

const STRATEGIES: [&str; 4] = ["endpoints", "sweep", "subdivided", "auto"];

fn data() -> PathBuf {
    std::env::var_os("RADSWEEP_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"),
        PathBuf::from,
    )
}

/// Returns the entries of a list; none if the folder is missing.
fn entries(list: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(data().join(list)).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).expect("one JSON object a line"))
        .collect()
}

fn program(args: &[&str]) -> Result<Value, Failed> {
    let output = Command::new(env!("CARGO_BIN_EXE_radsweep"))
        .args(args)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn expect(what: &str, found: &Value, expected: &Value) -> Result<(), Failed> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what} is {found}, expected {expected}").into())
    }
}

fn pairs(scene: &Value, strategy: &str, open: bool) -> Result<(), Failed> {
    let path = data().join(scene["file"].as_str().unwrap_or_default());
    let path = path.display().to_string();
    let mut args = vec!["pairs", &path, "--json", "--strategy", strategy];
    args.extend(open.then_some("--open"));
    let record = program(&args)?;
    let key = |name: &str| {
        if open {
            format!("{name}_open")
        } else {
            name.to_owned()
        }
    };
    expect("n", &record["n"], &scene["n"])?;
    expect("pairs", &record["pairs"], &scene[key("pairs")])?;
    expect("hash", &record["hash"], &scene[key("hash")])
}

fn sort(entry: &Value) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let input = data().join(entry["file"].as_str().unwrap_or_default());
    let [input, sorted, index] = [
        input,
        folder.path().join("sorted.npy"),
        folder.path().join("index.npy"),
    ]
    .map(|path| path.display().to_string());
    let record = program(&["sort", &input, "-o", &sorted, "--index", &index, "--json"])?;
    expect("n", &record["n"], &entry["n"])?;
    expect(
        "sorted keys",
        &sha256_of_data(&sorted)?,
        &entry["sorted_sha256"],
    )?;
    expect(
        "argsort",
        &sha256_of_data(&index)?,
        &entry["argsort_u32_sha256"],
    )
}

/// Returns the hash of the bytes after the header.
fn sha256_of_data(path: &str) -> Result<Value, Failed> {
    let bytes = std::fs::read(path)?;
    let mut data = bytes.as_slice();
    npyz::NpyHeader::from_reader(&mut data)?;
    let hash = Sha256::digest(data);
    Ok(hash
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>()
        .into())
}

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for scene in entries("boxes.jsonl") {
        for strategy in STRATEGIES {
            for open in [false, true] {
                let rule = if open { "open" } else { "closed" };
                let name = format!(
                    "pairs/{}/{strategy}/{rule}",
                    scene["file"].as_str().unwrap_or_default()
                );
                let scene = scene.clone();
                trials.push(Trial::test(name, move || pairs(&scene, strategy, open)));
            }
        }
    }
    for entry in entries("keys.jsonl") {
        let name = format!("sort/{}", entry["file"].as_str().unwrap_or_default());
        trials.push(Trial::test(name, move || sort(&entry)));
    }
    if trials.is_empty() {
        let name = format!(
            "skipped: no data in {}, so no published result was checked",
            data().display()
        );
        trials.push(Trial::test(name, || Ok(())).with_ignored_flag(true));
    }
    libtest_mimic::run(&arguments, trials).exit();
}
