//! Structs that WGSL modules and their hosts share have the same layout. A host asserts the size
//! and the offsets of its struct when it is compiled, and `naga` says those of the module's. The
//! sources of the hosts are read, since no compiler sees both sides.

use naga::TypeInner;
use radsweep_kernels::wgsl::{Cells, Demo, Key, Radix, Resident, Sweep, Target, Tile, Value};
use std::fs;
use std::path::Path;

/// Members of a module's struct that are fields of a part of the host's, or have another name: the
/// sum of the offsets that the host asserts for these fields. None are named for an element of an
/// array, which is not compared.
type Paths = &'static [(&'static str, &'static [&'static str])];

const SEARCH: Paths = &[
    ("steps", &["Params, grid"]),
    ("step_shift", &["Params, grid", "Grid, shift"]),
    ("first_step", &["Params, grid", "Grid, first"]),
    ("last_step", &["Params, grid", "Grid, last"]),
    ("exponent", &["Params, grid", "Grid, exponent"]),
    ("scanned", &["Params, blocks"]),
    ("scan_bits", &["Params, blocks", "Blocks, scan_bits"]),
    ("cell_bits", &["Params, blocks", "Blocks, cell_bits"]),
    ("entry_bits", &["Params, blocks", "Blocks, entry_bits"]),
    ("row_bits", &["Params, blocks", "Blocks, row_bits"]),
    ("blocks", &["Params, blocks", "Blocks, entered"]),
];

const PARTICLES: Paths = &[
    ("gravity", &["Rules, gravity"]),
    ("max_speed", &["Rules, max_speed"]),
    ("margin", &["Rules, margin"]),
    ("share", &["Rules, share"]),
    ("friction", &["Rules, friction"]),
    ("ground_friction", &["Rules, ground_friction"]),
    ("side", &["Rules, side"]),
];

#[test]
fn sorts_share_their_structs() {
    let radix = Radix {
        key: Key::Bits64,
        value: Value::U32,
        is_plain: false,
        tile: Tile::Large,
        subgroups: None,
    };
    let (text, host) = (radix.text(Target::Native), "gpusort/src/wgpu/params.rs");
    let paths: Paths = &[("pass_index", &["Params, pass"])];
    check(&text, "Params", host, "Params", paths);
    check_words(&text, &["UNSORTED", "DIFFERING"], host, "State");
}

#[test]
fn broad_phases_share_their_structs() {
    let host = "sap/src/wgpu/params.rs";
    for key in [Key::Bits32, Key::Bits64] {
        check(&Sweep { key }.text(), "Params", host, "Params", SEARCH);
    }
    check(&Cells.text(), "Params", host, "Params", SEARCH);
    let host = "sap/src/wgpu/pairs.rs";
    let lists = Resident::Pairs.text();
    check(&lists, "ListParams", host, "ListParams", &[]);
    let (text, host) = (Resident::Frame.text(), "sap/src/wgpu/reader.rs");
    check(&text, "ReadParams", host, "ReadParams", &[]);
    check_words(&text, &["FIRST_INVALID", "CHANGED"], host, "Counted");
}

#[test]
fn scenes_share_their_structs() {
    let (particles, galaxy) = (Demo::Particles.text(), Demo::Galaxy.text());
    let host = "scenes/src/wgpu/particles.rs";
    check(&particles, "Rules", host, "Params", PARTICLES);
    check(&galaxy, "Rules", "scenes/src/wgpu/galaxy.rs", "Params", &[]);
    check(&galaxy, "Run", "scenes/src/wgpu/neighbours.rs", "Run", &[]);
}

#[test]
fn the_viewer_shares_its_structs() {
    let text = read("viewer/src/render/scene.wgsl");
    let host = "viewer/src/render/globals.rs";
    check(&text, "Globals", host, "Globals", &[]);
    let text = read("viewer/src/live/overview.wgsl");
    let host = "viewer/src/live/overview.rs";
    check(&text, "Overview", host, "Overview", &[]);
    let axes: Paths = &[("up", &[]), ("forward", &[])];
    check(&text, "Params", "viewer/src/live/probe.rs", "Params", axes);
    let text = read("viewer/src/live/links.wgsl");
    let host = "viewer/src/live/probe.rs";
    check(&text, "Params", host, "LineParams", &[]);
}

/// Checks that a struct of a module has the size and the offsets that a host asserts.
fn check(text: &str, name: &str, file: &str, host: &str, paths: Paths) {
    let module = naga::front::wgsl::parse_str(text).unwrap_or_else(|error| panic!("{error}"));
    let mut types = module.types.iter().map(|(_, ty)| ty);
    let ty = types.find(|ty| ty.name.as_deref() == Some(name));
    let Some(TypeInner::Struct { members, span }) = ty.map(|ty| &ty.inner) else {
        panic!("no struct {name}, for {file}");
    };
    let asserts = read(file);
    let size = asserted(&asserts, &format!("size_of::<{host}>()"));
    assert_eq!(size, Some(*span), "{file}: the size of {host}");
    for member in members {
        let member_name = member.name.as_deref().unwrap_or_default();
        let path = paths.iter().find(|(name, _)| *name == member_name);
        let own = format!("{host}, {member_name}");
        let offset = match path {
            Some((_, [])) => continue,
            Some((_, path)) => path.iter().map(|field| offset(&asserts, field)).sum(),
            // Nothing is asserted of the first, and nothing depends on those that fill up.
            None if member.offset == 0 || member_name == "unused" => continue,
            None => offset(&asserts, &own),
        };
        assert_eq!(offset, member.offset, "{file}: {own}");
    }
}

/// Checks that constants of a module are the offsets in words that a host asserts.
fn check_words(text: &str, names: &[&str], file: &str, host: &str) {
    let asserts = read(file);
    for name in names {
        let field = format!("{host}, {}", name.to_lowercase());
        let word = number(text, &format!("const {name}: u32 = "));
        let offset = offset(&asserts, &field);
        assert_eq!(word, Some(offset / 4), "{file}: {field}");
    }
}

/// Returns the offset that is asserted of a field.
fn offset(asserts: &str, field: &str) -> u32 {
    asserted(asserts, &format!("offset_of!({field})"))
        .unwrap_or_else(|| panic!("no offset of {field} is asserted"))
}

fn asserted(asserts: &str, what: &str) -> Option<u32> {
    number(asserts, &format!("{what} == "))
}

/// Returns the number behind some text.
fn number(text: &str, before: &str) -> Option<u32> {
    let (_, rest) = text.split_once(before)?;
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    rest[..end].parse().ok()
}

/// Reads a file of a crate.
fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../crates")
        .join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
