//! Constants that kernels and their hosts both have are the same. The sources are read, since no
//! compiler sees both sides.

use std::fs;
use std::path::Path;

/// A constant of a kernel, and those of hosts: each by its file and its name.
type Same = ([&'static str; 2], &'static [[&'static str; 2]]);

const SAP: &[Same] = &[
    (["sap/rows.cuh", "LONGEST_ROW"], &[["tuning.rs", "MAX_ROW"]]),
    (
        ["sap/bins.cuh", "BIN_THREADS"],
        &[["order/bins.rs", "BIN_THREADS"]],
    ),
    (
        ["sap/bins.cuh", "LONG_BIN_THREADS"],
        &[["order/bins.rs", "LONG_BIN_THREADS"]],
    ),
    (
        ["sap/bins.cuh", "LONGEST_BIN"],
        &[["order/bins.rs", "LONGEST_BIN"]],
    ),
    (
        ["sap/bins.cuh", "HUGE_KEY_BITS"],
        &[["order/bins.rs", "HUGE_KEY_BITS"]],
    ),
    (["sap/bins.cuh", "BIN_SLACK"], &[["order/bins.rs", "SLACK"]]),
    (
        ["sap/grid_regions.cuh", "MAX_REGIONS"],
        &[["find/regions.rs", "MAX_REGIONS"]],
    ),
    (
        ["sap/grid_regions.cuh", "REGION_THREADS"],
        &[["find/regions.rs", "THREADS"]],
    ),
    (
        ["sap/grid_regions.cuh", "REGION_THREADS * PARTITION_ITEMS"],
        &[["find/regions.rs", "TILE"]],
    ),
    (
        ["sap/grid_regions.cuh", "LARGE_THREADS"],
        &[["find/regions.rs", "LARGE_THREADS"]],
    ),
    (
        ["sap/grid_regions.cuh", "HELD * REGION_THREADS"],
        &[["find/regions.rs", "2 * HELD"]],
    ),
    (
        ["sap/grid_regions.cuh", "REGION_WINDOW"],
        &[["find/regions.rs", "WINDOW"]],
    ),
    (
        ["sap/grid.cuh", "NEAR_SAMPLE"],
        &[["find/grid.rs", "NEAR_SAMPLE"]],
    ),
    (["sap/grid.cuh", "MAX_HIGH"], &[["tuning.rs", "MAX_HIGH"]]),
    (
        ["sap/sweep.cuh", "SWEPT_A_TEST"],
        &[["tuning.rs", "SWEPT_A_TEST"]],
    ),
    (
        ["sap/neighbours.cuh", "KEEP_ITEMS"],
        &[["launch.rs", "KEEP_ITEMS"]],
    ),
    (
        ["sap/neighbours.cuh", "HAS_LEFT"],
        &[["abi.rs", "HAS_LEFT"]],
    ),
    (
        ["sap/neighbours.cuh", "KEEP_GROUP"],
        &[["launch.rs", "KEEP_GROUP"]],
    ),
    (
        ["sap/neighbours.cuh", "PUT_TILES"],
        &[["launch.rs", "PUT_TILES"]],
    ),
    (
        ["sap/endpoints.cuh", "RECORD_TILE"],
        &[["find/endpoints.rs", "RECORD_TILE"]],
    ),
    (
        ["sap/grid_sweep.cuh", "FEW_THREADS"],
        &[["find/grid.rs", "FEW_THREADS"]],
    ),
    (["sap/tree.cuh", "2 + LEFT"], &[["find/tree.rs", "LEFT"]]),
    (
        ["sap/tree.cuh", "TREE_LEVELS"],
        &[["find/tree.rs", "LEVELS"]],
    ),
    (
        ["sap/tree.cuh", "BY_CLASS"],
        &[["find/tree.rs", "BY_CLASS"]],
    ),
    (["common/warp.cuh", "WARP"], &[["launch.rs", "WARP"]]),
    (["sap/tiles.cuh", "CHUNK"], &[["launch.rs", "CHUNK"]]),
    (["sap/tiles.cuh", "TILE"], &[["launch.rs", "TILE"]]),
    (
        ["sap/offsets.cuh", "OFFSET_THREADS * OFFSET_ITEMS"],
        &[["offsets.rs", "TILE"]],
    ),
    (["sap/scan.cuh", "SCAN_THREADS"], &[["scan.rs", "THREADS"]]),
    (
        ["block/differences.cuh", "DIFFERENCE_ITEMS"],
        &[["differences.rs", "TILE"]],
    ),
];

const DIST: &[Same] = &[
    (["dist/types.cuh", "THREADS"], &[["kernels.rs", "THREADS"]]),
    (["dist/border.cuh", "ITEMS"], &[["kernels.rs", "ITEMS"]]),
    (["common/warp.cuh", "WARP"], &[["sort/kernels.rs", "WARP"]]),
];

const SORTS: &[Same] = &[
    (
        ["common/sort_args.cuh", "IN_PLACE"],
        &[["abi.rs", "IN_PLACE"]],
    ),
    (
        ["common/sort_args.cuh", "DROP_KEYS"],
        &[["abi.rs", "DROP_KEYS"]],
    ),
    (
        ["sort/outcome.cuh", "EARLY_EXIT"],
        &[["outcome.rs", "EARLY_EXIT"]],
    ),
    (
        ["sort/outcome.cuh", "ADAPTIVE"],
        &[["outcome.rs", "ADAPTIVE"]],
    ),
    (
        ["sort/adaptive_window.cuh", "REMOVED"],
        &[["tuning.rs", "MAX_REMOVED"]],
    ),
    (
        ["sort/baselines.cu", "TILE"],
        &[["baseline.rs", "RADIX16_TILE"]],
    ),
    (
        ["sort/baselines.cu", "BITONIC_TILE"],
        &[["baseline.rs", "BITONIC_TILE"]],
    ),
    (
        ["sort/bucket_tile.cuh", "TILE_THREADS"],
        &[["bucket_sort/tuning.rs", "TILE_THREADS"]],
    ),
    (
        ["sort/bucket_divide.cuh", "MAX_BUCKETS"],
        &[["bucket_sort/tuning.rs", "MAX_BUCKETS"]],
    ),
    (
        ["sort/bucket_divide.cuh", "COLUMN_THREADS"],
        &[["bucket_sort/mod.rs", "COLUMN_THREADS"]],
    ),
    (
        ["sort/bucket_divide.cuh", "SCAN_THREADS"],
        &[["bucket_sort/mod.rs", "SCAN_THREADS"]],
    ),
    (
        ["sort/bucket_sort.cu", "EXACT"],
        &[["bucket_sort/plan.rs", "EXACT"]],
    ),
    (
        ["common/warp.cuh", "WARP"],
        &[["bucket_sort/tuning.rs", "MAX_RUNS"]],
    ),
    (
        ["sort/onesweep_pass.cuh", "GROUP"],
        &[["onesweep/tuning.rs", "GROUP"]],
    ),
    (
        ["sort/onesweep_histogram.cuh", "HISTOGRAM_THREADS"],
        &[["onesweep/tuning.rs", "HISTOGRAM_THREADS"]],
    ),
    (
        ["sort/onesweep_types.cuh", "NEARLY_SORTED"],
        &[["onesweep/layout.rs", "NEARLY_SORTED"]],
    ),
    (
        ["sort/onesweep_types.cuh", "NEXT_HEADER"],
        &[["onesweep/layout.rs", "HEADER_BYTES"]],
    ),
    (
        ["sort/onesweep_finish.cuh", "SEGMENT_THREADS"],
        &[["onesweep/tuning.rs", "SEGMENT_THREADS"]],
    ),
    (
        ["sort/onesweep_types.cuh", "CLEARED"],
        &[["onesweep/layout.rs", "CLEARED"]],
    ),
    (
        ["sort/onesweep_block.cu", "ITEMS"],
        &[["onesweep/block.rs", "ITEMS"]],
    ),
    (
        ["sort/onesweep_block.cu", "MAX_THREADS"],
        &[["onesweep/block.rs", "MAX_THREADS"]],
    ),
    (
        ["sort/onesweep_block.cu", "HEADER_BYTES"],
        &[["onesweep/block.rs", "HEADER_BYTES"]],
    ),
    (
        ["sort/onesweep_small_types.cuh", "HEADER_BYTES"],
        &[["onesweep/layout.rs", "SMALL_HEADER_BYTES"]],
    ),
    (
        ["sort/quicksort_types.cuh", "COPY_PIECE"],
        &[["quicksort/tuning.rs", "COPY_PIECE"]],
    ),
    (
        ["sort/quicksort_types.cuh", "CLASSES"],
        &[["quicksort/layout.rs", "CLASSES"]],
    ),
    (
        ["sort/satish_radix.cu", "SCAN_THREADS"],
        &[["satish_radix/tuning.rs", "SCAN_THREADS"]],
    ),
    (
        ["sort/satish_radix.cu", "SCAN_ITEMS"],
        &[["satish_radix/tuning.rs", "SCAN_ITEMS"]],
    ),
    (
        ["sort/satish_radix.cuh", "SCANNED"],
        &[["satish_radix/layout.rs", "SCANNED"]],
    ),
    (
        ["sort/satish_merge.cuh", "SAMPLE"],
        &[["satish_merge/tuning.rs", "SAMPLE"]],
    ),
    (
        ["sort/satish_merge.cuh", "MAX_RUNS"],
        &[["satish_merge/tuning.rs", "MAX_RUNS"]],
    ),
    (
        ["sort/satish_merge.cuh", "LAST"],
        &[["satish_merge/layout.rs", "LAST"]],
    ),
    (
        ["sort/satish_merge_items.cuh", "RANK_THREADS"],
        &[["satish_merge/tuning.rs", "RANK_THREADS"]],
    ),
];

#[test]
fn kernels_and_hosts_have_the_same_constants() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = root.join("../crates");
    let parts = [
        (SAP, "sap/src/cuda"),
        (DIST, "sap-dist/src/device"),
        (SORTS, "gpusort/src/cuda"),
    ];
    for (all, folder) in parts {
        for ([file, expression], hosts) in all {
            let expected = value(&read(&root.join(file)), expression);
            assert!(expected.is_some(), "{file}: {expression}");
            for [host, name] in *hosts {
                let near = crates.join(folder).join(host);
                let path = if near.exists() {
                    near
                } else {
                    crates.join(host)
                };
                let found = value(&read(&path), name);
                assert_eq!(
                    found, expected,
                    "{host}: {name} is not {expression} of {file}"
                );
            }
        }
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the value of an expression of integers, sums, products and shifts, with constants of
/// this text.
fn value(text: &str, expression: &str) -> Option<u64> {
    let expression = expression.trim();
    if let Some((left, right)) = split(expression, "<<") {
        return Some(value(text, left)? << value(text, right)?);
    }
    if let Some((left, right)) = split(expression, "+") {
        return Some(value(text, left)? + value(text, right)?);
    }
    if let Some((left, right)) = split(expression, "*") {
        return Some(value(text, left)? * value(text, right)?);
    }
    if let Some(inner) = expression.strip_prefix('(') {
        return value(text, inner.strip_suffix(')')?);
    }
    if expression.starts_with(|c: char| c.is_ascii_digit()) {
        return expression.parse().ok();
    }
    match expression {
        "WARP" if !text.contains("WARP = ") && !text.contains("WARP: ") => Some(32),
        name => value(text, definition(text, name)?),
    }
}

/// Splits an expression at the first operator outside of parentheses.
fn split<'a>(expression: &'a str, operator: &str) -> Option<(&'a str, &'a str)> {
    let is_outside = |at: usize| {
        let before = &expression[..at];
        before.matches('(').count() == before.matches(')').count()
    };
    let (at, _) = expression
        .match_indices(operator)
        .find(|&(at, _)| is_outside(at))?;
    Some((&expression[..at], &expression[at + operator.len()..]))
}

/// Returns what a constant is defined as: `NAME = …` in CUDA C++, `NAME: type = …` in Rust.
fn definition<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.match_indices(name).find_map(|(at, _)| {
        let before = text[..at].chars().next_back()?;
        let rest = &text[at + name.len()..];
        let typed = rest
            .strip_prefix(": ")
            .and_then(|rest| rest.split_once(' '));
        let rest = typed.map_or(rest, |(_, rest)| rest);
        let rest = rest.trim_start().strip_prefix("= ")?;
        let end = rest.find([',', ';'])?;
        (before == ' ').then_some(&rest[..end])
    })
}

/// Launches of the broad phase begin early, which is safe only where each kernel waits.
#[test]
fn every_kernel_of_the_broad_phase_waits_for_the_stream() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sap");
    let mut kernels = 0;
    for file in fs::read_dir(folder).expect("a folder") {
        let text = fs::read_to_string(file.expect("a file").path()).expect("text");
        for kernel in text.split("__global__").skip(1) {
            let (before, _) = kernel
                .split_once("\n}")
                .and_then(|(body, _)| body.split_once("\n    wait_for_stream();\n"))
                .unwrap_or_else(|| panic!("a kernel does not wait:{kernel:.200}"));
            assert!(!before.contains("return"), "not all threads wait:{before}");
            kernels += 1;
        }
    }
    assert!(kernels > 60, "{kernels}");
}
