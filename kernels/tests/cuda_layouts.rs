//! Structs that CUDA kernels and their hosts share have the same layout. Each side asserts its own
//! numbers when it is compiled; here the numbers of both are compared.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Host structs whose kernels call them otherwise.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("Aabb", "Box"),
    ("Args", "RecordArgs"),
    ("Differences", "Changes"),
    ("Division", "Regions"),
    ("Input", "GridInput"),
    ("Input", "TreeInput"),
    ("Pair", "Indices"),
    ("Rows", "Neighbours"),
    ("SortOutcome", "Outcome"),
];

/// Host structs of which kernels read other types: vectors, fields for arrays, or a struct that
/// ends earlier.
const READ_OTHERWISE: &[&str] = &["Aabb64", "Buffers", "Filter", "Motion", "Region", "State"];

/// The size of a struct, and the offsets of its fields.
#[derive(Debug, PartialEq)]
struct StructLayout {
    file: PathBuf,
    name: String,
    size: u32,
    fields: HashMap<String, u32>,
}

impl StructLayout {
    /// Tells whether sizes agree, and the offsets of all fields that have the same name in both,
    /// which half of them at least must have.
    fn agrees(&self, kernel: &Self) -> bool {
        let shared: Vec<_> = (self.fields.iter())
            .filter_map(|(field, offset)| Some((offset, kernel.fields.get(field)?)))
            .collect();
        self.size == kernel.size
            && 2 * shared.len() >= self.fields.len()
            && shared.iter().all(|(host, kernel)| host == kernel)
    }
}

#[test]
fn kernels_and_hosts_assert_the_same_layouts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kernels = layouts(root, &["cu", "cuh"], "ASSERT_LAYOUT(");
    let hosts = layouts(&root.join("../crates"), &["rs"], "assert_layout!(");
    assert!(kernels.len() >= 70 && hosts.len() >= 68);
    let is_read = |host: &&StructLayout| !READ_OTHERWISE.contains(&&*host.name);
    for host in hosts.iter().filter(is_read) {
        let is_same = |name: &str| {
            let other = |&(host_name, other)| host.name == host_name && name == other;
            host.name == name || OTHER_NAMES.iter().any(other)
        };
        let mut candidates = kernels.iter().filter(|kernel| is_same(&kernel.name));
        assert!(
            candidates.any(|kernel| host.agrees(kernel)),
            "no kernel has this layout: {host:?}"
        );
    }
}

#[test]
fn a_field_that_moved_is_noticed() {
    let of = |text| parse(Path::new("file"), text).expect("a layout");
    let host = of("Query, 16: first 0, last 8);");
    assert!(host.agrees(&of("Query, 16, AT(first, 0) AT(last, 8));")));
    assert!(!host.agrees(&of("Query, 16, AT(first, 8) AT(last, 0));")));
    assert!(!host.agrees(&of("Query, 24, AT(first, 0) AT(last, 8));")));
    assert!(!host.agrees(&of("Query, 16, AT(begin, 0) AT(end, 8));")));
}

/// Returns the layouts that the files below a folder assert with a macro.
fn layouts(folder: &Path, extensions: &[&str], macro_call: &str) -> Vec<StructLayout> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(layouts(&path, extensions, macro_call));
        } else if let Some(extension) = path.extension().and_then(|e| e.to_str())
            && extensions.contains(&extension)
        {
            let text = fs::read_to_string(&path).expect("a source");
            let calls = text.split(macro_call).skip(1);
            found.extend(calls.filter_map(|call| parse(&path, call)));
        }
    }
    found
}

/// Reads the arguments of a macro up to the end of its call: a name, a size, and fields with their
/// offsets. The macros' own definitions have none.
fn parse(file: &Path, call: &str) -> Option<StructLayout> {
    let words: Vec<&str> = (call.split(';').next()?)
        .split(|c: char| !(c.is_alphanumeric() || "_.[]".contains(c)))
        .filter(|word| !word.is_empty() && *word != "AT")
        .collect();
    let [name, size, fields @ ..] = &words[..] else {
        return None;
    };
    let fields =
        (fields.chunks_exact(2)).map(|field| Some((field[0].into(), field[1].parse().ok()?)));
    Some(StructLayout {
        file: file.to_owned(),
        name: (*name).to_owned(),
        size: size.parse().ok()?,
        fields: fields.collect::<Option<_>>()?,
    })
}
