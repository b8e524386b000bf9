//! Tests the program on published data: counts and hashes of pairs, and sorted keys with their
//! argsort.
//!
//! `boxes.jsonl` and `keys.jsonl` in the folder that `RADSWEEP_DATA` names have the expected
//! results.

#[path = "cli/program.rs"]
mod program;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::Path;

const STRATEGIES: [&str; 4] = ["endpoints", "sweep", "subdivided", "auto"];

/// Returns the entries of a list.
fn entries(folder: &Path, list: &str) -> Vec<Value> {
    let path = folder.join(list);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("RADSWEEP_DATA: {}: {error}", path.display()));
    text.lines()
        .map(|line| serde_json::from_str(line).expect("one JSON object a line"))
        .collect()
}

/// Returns the path of the file of an entry.
fn file(folder: &Path, entry: &Value) -> String {
    let file = entry["file"].as_str().unwrap_or_default();
    folder.join(file).display().to_string()
}

fn run(args: &[&str]) -> Result<Value, Failed> {
    let output = program::command().args(args).output()?;
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

fn pairs(path: &str, scene: &Value, strategy: &str, open: bool) -> Result<(), Failed> {
    let mut args = vec!["pairs", path, "--json", "--strategy", strategy];
    args.extend(open.then_some("--open"));
    let record = run(&args)?;
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

fn sort(path: &str, entry: &Value) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let [sorted, index] =
        ["sorted.npy", "index.npy"].map(|name| folder.path().join(name).display().to_string());
    let record = run(&["sort", path, "-o", &sorted, "--index", &index, "--json"])?;
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
    let trials = match std::env::var_os("RADSWEEP_DATA") {
        Some(folder) => trials(Path::new(&folder)),
        None => {
            let name = "skipped: published results; RADSWEEP_DATA is not set, CONTRIBUTING.md says \
                        where data is from";
            vec![Trial::test(name, || Ok(())).with_ignored_flag(true)]
        }
    };
    libtest_mimic::run(&arguments, trials).exit();
}

fn trials(folder: &Path) -> Vec<Trial> {
    let mut trials = Vec::new();
    for scene in entries(folder, "boxes.jsonl") {
        let path = file(folder, &scene);
        for strategy in STRATEGIES {
            for open in [false, true] {
                let rule = if open { "open" } else { "closed" };
                let name = format!(
                    "pairs/{}/{strategy}/{rule}",
                    scene["file"].as_str().unwrap_or_default()
                );
                let (path, scene) = (path.clone(), scene.clone());
                trials.push(Trial::test(name, move || {
                    pairs(&path, &scene, strategy, open)
                }));
            }
        }
    }
    for entry in entries(folder, "keys.jsonl") {
        let name = format!("sort/{}", entry["file"].as_str().unwrap_or_default());
        let path = file(folder, &entry);
        trials.push(Trial::test(name, move || sort(&path, &entry)));
    }
    trials
}
