//! Checks that `include/radsweep.h` is what cbindgen generates from the sources.
//!
//! `RADSWEEP_WRITE_HEADER=1 cargo test -p radsweep-capi --test header` writes it.

#![allow(clippy::unwrap_used)]

use std::path::Path;

#[test]
fn the_header_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    // cbindgen follows the modules of this file; naming them too would declare everything twice.
    let builder = cbindgen::Builder::new()
        .with_config(config)
        .with_src(root.join("src/lib.rs"));
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    // The top of the header states the rules of safety once.
    let made = without_safety(&made);
    let path = root.join("include/radsweep.h");
    if std::env::var_os("RADSWEEP_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let current = std::fs::read_to_string(&path).unwrap();
    assert!(
        current == made,
        "include/radsweep.h is out of date: run this test with RADSWEEP_WRITE_HEADER=1"
    );
}

/// Removes the lines from ` * # Safety` to the end of each comment, and the empty line before.
fn without_safety(header: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    let mut left_out = false;
    for line in header.lines() {
        let text = line.trim();
        if text == "* # Safety" {
            left_out = true;
            if lines.last().is_some_and(|last| last.trim() == "*") {
                lines.pop();
            }
        }
        left_out &= text != "*/";
        if !left_out {
            lines.push(line);
        }
    }
    lines.join("\n") + "\n"
}
