//! Checks the pages: their links have targets, and the messages of the guide are those of the
//! program.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn pages() -> Vec<PathBuf> {
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let crates = crates.map(|entry| entry.unwrap().path());
    let folders = ["", "docs", "docs/guide", "examples"].map(|folder| root().join(folder));
    let files = folders
        .into_iter()
        .chain(crates)
        .flat_map(|folder| fs::read_dir(folder).unwrap());
    let mut pages: Vec<_> = files
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    pages.sort();
    pages
}

/// Returns the anchors of a page: those of its headings, and `<a id="…">`.
fn anchors(page: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(page).unwrap();
    let slug = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter_map(|c| match c {
            ' ' => Some('-'),
            c => (c.is_alphanumeric() || "-_".contains(c)).then_some(c),
        });
        kept.collect::<String>()
    };
    let headings = text.lines().filter(|line| line.starts_with('#')).map(slug);
    let ids = text.split("<a id=\"").skip(1);
    let ids = ids.map(|rest| rest.split('"').next().unwrap().to_owned());
    headings.chain(ids).collect()
}

#[test]
fn links_have_targets() {
    assert!(pages().len() >= 20);
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in text
            .split("](")
            .skip(1)
            .map(|rest| rest.split(')').next().unwrap())
        {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            if path.starts_with("http") {
                continue;
            }
            let target = match path {
                "" => page.clone(),
                path => page.parent().unwrap().join(path),
            };
            assert!(target.exists(), "{}: {link}", page.display());
            let has_anchor = anchor.is_empty() || anchors(&target).contains(anchor);
            assert!(has_anchor, "{}: {link}", page.display());
        }
        for name in text
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|name| name.starts_with("examples/") || name.starts_with("scripts/"))
        {
            let path = name.split(' ').next().unwrap();
            let has = |folder: &Path| folder.join(path).exists();
            let is_there = has(&root()) || page.parent().is_some_and(has);
            assert!(is_there, "{}: {path}", page.display());
        }
    }
}

/// Appends all Rust sources of a folder to `text`.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|end| end == "rs") {
            *text += &fs::read_to_string(path).unwrap();
        }
    }
}

/// Returns the beginnings of the texts between the `{…}` of each `#[error("…")]`.
fn messages(text: &str) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    for attribute in text.split("#[error(").skip(1) {
        let Some(quoted) = attribute.trim_start().strip_prefix('"') else {
            continue;
        };
        let message = quoted.split('"').next().unwrap().replace("\\\n", " ");
        let pieces = message
            .split('{')
            .map(|piece| piece.rsplit('}').next().unwrap());
        let trimmed = pieces.map(|piece| piece.trim_matches([' ', ',', ':', '(', ')', '`']));
        let telling = trimmed.filter(|piece| piece.contains(' '));
        let beginning = |piece: &str| piece.chars().take(30).collect();
        found.insert(telling.map(beginning).collect());
    }
    found
}

#[test]
fn messages_are_those_of_the_program() {
    let page = fs::read_to_string(root().join("docs/guide/troubleshooting.md")).unwrap();
    let mut text = String::new();
    for folder in [
        "src",
        "crates/bench/src",
        "crates/common/src",
        "crates/scenes/src",
        "crates/viewer/src",
        "crates/sap/src",
        "crates/sap-dist/src",
        "crates/sap-ecs/src",
        "crates/gpu/src",
        "crates/gpusort/src",
        "crates/capi/src",
        "crates/wgpu-device/src",
    ] {
        sources(&root().join(folder), &mut text);
    }
    // Strings over several lines of source are one.
    let text = text.split("\\\n").map(str::trim_start).collect::<String>();
    let first_cells = page
        .lines()
        .filter_map(|line| line.strip_prefix("| <a id=\""))
        .map(|line| line.split(" | ").next().unwrap())
        .map(|cell| cell.split_once("</a>").unwrap().1)
        // Others say what stands in quotation marks.
        .filter(|cell| cell.starts_with('`'));
    let mut checked = 0;
    let mut unknown = Vec::new();
    for cell in first_cells {
        let quoted = cell.split('`').filter(|piece| piece.contains(' '));
        for fragment in quoted.flat_map(|quoted| quoted.split('…')) {
            let fragment = fragment.trim_matches([' ', '(', ')', ':', ',']);
            checked += 1;
            if fragment.len() > 3 && !text.contains(fragment) {
                unknown.push(fragment);
            }
        }
    }
    assert!(unknown.is_empty(), "the program never says {unknown:?}");
    assert!(checked > 60, "{checked}");

    // The guide has every error value of all packages.
    let all = messages(&text);
    assert!(all.len() >= 60);
    let missing: Vec<_> = all
        .iter()
        .filter(|pieces| !pieces.is_empty())
        .filter(|pieces| !pieces.iter().any(|piece| page.contains(&**piece)))
        .collect();
    assert!(missing.is_empty(), "not in the guide: {missing:?}");
}
