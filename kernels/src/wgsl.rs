//! The WGSL kernels, put together from one file for each primitive.
//!
//! ```
//! use radsweep_kernels::wgsl::{Key, Radix, Target, Tile, Value};
//!
//! let (key, value) = (Key::Bits32, Value::None);
//! let kernels = Radix { key, value, is_plain: true, tile: Tile::Small, subgroups: None };
//! let text = kernels.text(Target::Native);
//! assert!(kernels.entry_points().iter().all(|name| text.contains(&format!("fn {name}("))));
//! ```

/// The number of threads of a workgroup: all that WebGPU promises.
pub const WORKGROUP: u32 = 256;
/// The number of keys of a thread in a small tile of the radix sort.
pub const RADIX_ITEMS: u32 = 8;
/// The number of keys of a thread in a large tile of keys of 32 bits with values, where subgroups
/// are small or not used. It takes all of the 16 KiB of memory of a workgroup that WebGPU promises.
pub const RADIX_ITEMS_WITH_VALUES: u32 = 12;
/// The number of keys of a thread in a large tile of keys of 32 bits where subgroups have at least
/// 16 lanes: their counters leave memory for it. On an H200 (2026-11-26), 2^20 and 2^24 keys were
/// sorted with 8 / 12 / 16 / 20 at 9.3 / 8.6 / 10.2 / 7.7 and 21.0 / 20.6 / 21.6 / 15.6 G keys/s,
/// and pairs with 12 / 16 / 20 / 24 at 7.4 / 8.7 / 6.5 / 5.9 and 15.3 / 16.8 / 12.8 / 13.0. 2^16
/// keys took 1.07 / 0.99 / 0.92 / 0.84, so that few keys have small tiles.
pub const RADIX_ITEMS_WITH_SUBGROUPS: u32 = 16;
/// The max number of workgroups that are few: each pass is one launch then. On an H200
/// (2026-11-26) 2^19 pairs in 128 workgroups were sorted at 5.2 G keys/s with three launches a
/// pass, and at 4.2 with one.
pub const RADIX_FEW: u32 = 64;
/// The values of a digit.
const RADIX: u32 = 256;

/// A reader of WGSL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// `naga`, which refuses `enable subgroups;`.
    Native,
    /// A browser, which demands it.
    Browser,
}

/// The width of the keys of a sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// 32 bits.
    Bits32,
    /// 64 bits, as two words.
    Bits64,
}

/// What a sort moves with each key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Value {
    /// Nothing.
    None,
    /// A value of 32 bits.
    U32,
    /// The index of the key, which is not read from memory.
    Index,
}

/// The number of keys that a workgroup of a sort takes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tile {
    /// So few that few keys have many workgroups.
    Small,
    /// As many as registers and the memory of a workgroup allow.
    Large,
}

/// The sizes of the subgroups of an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Subgroups {
    /// The min number of lanes of a subgroup.
    pub min: u32,
    /// The max number of lanes of a subgroup.
    pub max: u32,
}

/// The kernels of a radix sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Radix {
    /// The keys.
    pub key: Key,
    /// What moves with the keys.
    pub value: Value,
    /// Whether keys are ordered as the numbers that they are stored as.
    pub is_plain: bool,
    /// The keys of a workgroup.
    pub tile: Tile,
    /// The subgroups to rank digits with; `None` to rank them without.
    pub subgroups: Option<Subgroups>,
}

/// The kernels of the sweep of a broad phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sweep {
    /// The keys: of 64 bits for boxes in worlds or columns, which are their high words.
    pub key: Key,
}

/// The kernels of a broad phase that counts instead of sorting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cells;

/// The kernels for lists that stay on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resident {
    /// The kernels that read a frame.
    Frame,
    /// The kernels of lists of pairs.
    Pairs,
}

/// The kernels of a demo scene whose bodies stay on the device, with those that list the neighbours
/// of every body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Demo {
    /// Balls that flow down a landscape.
    Particles,
    /// Two galaxies that meet.
    Galaxy,
}

/// The number of tests of a thread of the sweep.
pub const SWEEP_ITEMS: u32 = 16;

macro_rules! file {
    ($path:literal) => {
        include_str!(concat!("../wgsl/", $path))
    };
}

impl Radix {
    /// Returns the number of keys of a thread in a tile.
    #[must_use]
    pub const fn items(&self) -> u32 {
        match (self.tile, self.key, self.subgroups, self.value) {
            (Tile::Large, Key::Bits32, Some(Subgroups { min: 16.., .. }), _) => {
                RADIX_ITEMS_WITH_SUBGROUPS
            }
            (Tile::Large, Key::Bits32, _, Value::U32 | Value::Index) => RADIX_ITEMS_WITH_VALUES,
            _ => RADIX_ITEMS,
        }
    }

    /// Returns the bytes of workgroup memory that a kernel takes at most.
    #[must_use]
    pub const fn workgroup_bytes(&self) -> u32 {
        // The tile, and where each digit goes.
        let common = WORKGROUP * self.items() + RADIX;
        let ranks = match self.subgroups {
            // A prefix sum, and the counts of digits.
            None => 2 * WORKGROUP + RADIX,
            // The starts of digits, and of each subgroup its counters, lanes and sum.
            Some(subgroups) => RADIX + WORKGROUP / subgroups.min * (128 + 2),
        };
        4 * (common + ranks)
    }

    /// Returns the names of the entry points.
    #[must_use]
    pub const fn entry_points(&self) -> &'static [&'static str] {
        const WITH_VALUES: [&str; 7] = [
            "inspect",
            "inspect_counted",
            "count",
            "scan",
            "scatter",
            "emit_keys",
            "emit_values",
        ];
        let [keys_only @ .., _emit_values] = &WITH_VALUES;
        match self.value {
            Value::None => keys_only,
            _ => &WITH_VALUES,
        }
    }

    /// Returns the text of the module.
    #[must_use]
    pub fn text(&self, target: Target) -> String {
        let mut text = String::new();
        if self.subgroups.is_some() && target == Target::Browser {
            text += "enable subgroups;\n";
        }
        text += &constants(self.items());
        text += &constant("FEW", RADIX_FEW);
        if let Some(subgroups) = self.subgroups {
            text += &constant("SUBGROUPS", WORKGROUP / subgroups.min);
        }
        text += &self.files().concat();
        match self.subgroups {
            None => text,
            Some(_) => unrolled(&text, self.items()),
        }
    }

    fn files(&self) -> Vec<&'static str> {
        let mut files = vec![
            file!("sort/radix.wgsl"),
            file!("sort/radix_inspect.wgsl"),
            file!("sort/radix_count.wgsl"),
            file!("sort/radix_scatter.wgsl"),
            file!("sort/radix_emit.wgsl"),
            file!("block/exchange.wgsl"),
        ];
        files.push(match self.key {
            Key::Bits32 => file!("common/key_32.wgsl"),
            Key::Bits64 => file!("common/key_64.wgsl"),
        });
        files.push(match (self.is_plain, self.key) {
            (true, _) => file!("common/ordered_plain.wgsl"),
            (false, Key::Bits32) => file!("common/ordered_32.wgsl"),
            (false, Key::Bits64) => file!("common/ordered_64.wgsl"),
        });
        let moved = [
            file!("common/value_moved.wgsl"),
            file!("sort/radix_emit_values.wgsl"),
        ];
        match self.value {
            Value::None => files.push(file!("common/value_none.wgsl")),
            Value::U32 => files.extend(moved.into_iter().chain([file!("common/value_u32.wgsl")])),
            Value::Index => {
                files.extend(moved.into_iter().chain([file!("common/value_index.wgsl")]));
            }
        }
        match self.subgroups {
            None => files.extend([
                file!("block/scan.wgsl"),
                file!("block/rank.wgsl"),
                file!("sort/radix_plain.wgsl"),
            ]),
            Some(subgroups) => files.extend([
                file!("block/enter_subgroups.wgsl"),
                file!("block/scan_subgroup.wgsl"),
                file!("block/rank_subgroup.wgsl"),
                file!("sort/radix_subgroup.wgsl"),
                if subgroups.max <= 32 {
                    file!("common/ballot_32.wgsl")
                } else {
                    file!("common/ballot_128.wgsl")
                },
            ]),
        }
        files
    }
}

impl Sweep {
    /// The bytes of workgroup memory that a kernel takes at most.
    pub const WORKGROUP_BYTES: u32 = 9 * WORKGROUP;

    /// Returns the names of the entry points.
    #[must_use]
    pub const fn entry_points(&self) -> &'static [&'static str] {
        match self.key {
            Key::Bits32 => &[
                "make_keys",
                "arrange",
                "scan_sums",
                "place_starts",
                "find",
                "count_rows",
            ],
            Key::Bits64 => &[
                "make_keys",
                "arrange",
                "scan_sums",
                "place_starts",
                "find",
                "count_rows",
                "count_copies",
                "make_copies",
            ],
        }
    }

    /// Returns the text of the module, which is the same for every target.
    #[must_use]
    pub fn text(&self) -> String {
        let keys = match self.key {
            Key::Bits32 => vec![file!("common/sweep_key_32.wgsl")],
            Key::Bits64 => vec![
                file!("common/sweep_key_64.wgsl"),
                file!("sap/sweep_columns.wgsl"),
                file!("sap/columns.wgsl"),
            ],
        };
        let files = [
            file!("sap/sweep.wgsl"),
            file!("sap/sweep_keys.wgsl"),
            file!("sap/sweep_arrange.wgsl"),
            file!("sap/sweep_test.wgsl"),
            file!("sap/tallies.wgsl"),
            file!("sap/sweep_find.wgsl"),
            file!("common/ordered.wgsl"),
            file!("common/groups.wgsl"),
            file!("common/words_64.wgsl"),
            file!("block/scan.wgsl"),
        ];
        constants(SWEEP_ITEMS) + &files.concat() + &keys.concat()
    }
}

impl Cells {
    /// The number of blocks that counts are scanned in, at most: the kernels have it as a constant.
    pub const MAX_BLOCKS: u32 = 1024;
    /// The bytes of workgroup memory that a kernel takes at most.
    pub const WORKGROUP_BYTES: u32 = 4 * Self::MAX_BLOCKS + 9 * WORKGROUP;

    /// Returns the names of the entry points.
    #[must_use]
    pub const fn entry_points(&self) -> &'static [&'static str] {
        &[
            "count_cells",
            "scan_counts",
            "place_entries",
            "number_tests",
            "find_in_cells",
            "place_pairs",
            "store_rows",
        ]
    }

    /// Returns the text of the module, which is the same for every target.
    #[must_use]
    pub fn text(&self) -> String {
        let files = [
            file!("sap/sweep.wgsl"),
            file!("sap/columns.wgsl"),
            file!("sap/sweep_test.wgsl"),
            file!("sap/tallies.wgsl"),
            file!("sap/cells.wgsl"),
            file!("sap/cells_find.wgsl"),
            file!("sap/last_list.wgsl"),
            file!("common/ordered.wgsl"),
            file!("common/groups.wgsl"),
            file!("common/words_64.wgsl"),
            file!("block/scan.wgsl"),
        ];
        constants(SWEEP_ITEMS) + &constant("MAX_BLOCKS", Self::MAX_BLOCKS) + &files.concat()
    }
}

impl Resident {
    /// Returns the bytes of workgroup memory that a kernel takes at most.
    #[must_use]
    pub const fn workgroup_bytes(self) -> u32 {
        match self {
            Self::Frame => 0,
            Self::Pairs => 8 * WORKGROUP,
        }
    }

    /// Returns the names of the entry points.
    #[must_use]
    pub const fn entry_points(self) -> &'static [&'static str] {
        match self {
            Self::Frame => &[
                "check_boxes",
                "check_and_compare",
                "loosen",
                "copy_words",
                "compare_words",
                "draw_sample",
                "merge_ends",
                "round_outward",
            ],
            Self::Pairs => &["store_pairs", "count_common"],
        }
    }

    /// Returns the text of the module, which is the same for every target.
    #[must_use]
    pub fn text(self) -> String {
        let files = match self {
            Self::Frame => vec![
                file!("sap/read.wgsl"),
                file!("sap/read_forms.wgsl"),
                file!("common/ordered.wgsl"),
                file!("common/sum_f32.wgsl"),
                file!("common/words_64.wgsl"),
            ],
            Self::Pairs => vec![
                file!("sap/lists.wgsl"),
                file!("sap/last_list.wgsl"),
                file!("common/words_64.wgsl"),
                file!("block/scan.wgsl"),
            ],
        };
        constant("WORKGROUP", WORKGROUP) + &files.concat() + file!("common/groups.wgsl")
    }
}

impl Demo {
    /// The bytes of workgroup memory that a kernel takes at most.
    pub const WORKGROUP_BYTES: u32 = 16 * WORKGROUP;

    /// Returns the names of the entry points.
    #[must_use]
    pub const fn entry_points(&self) -> &'static [&'static str] {
        match self {
            Self::Particles => &[
                "split",
                "mark_below",
                "mark_above",
                "fall",
                "push",
                "settle",
            ],
            Self::Galaxy => &[
                "split",
                "mark_below",
                "mark_above",
                "advance",
                "gravity",
                "kick",
                "find_partner",
                "bounce",
            ],
        }
    }

    /// Returns the text of the module, which is the same for every target.
    #[must_use]
    pub fn text(&self) -> String {
        let files = [
            file!("demo/neighbours.wgsl"),
            file!("demo/balls.wgsl"),
            match self {
                Self::Particles => file!("demo/particles.wgsl"),
                Self::Galaxy => file!("demo/galaxy.wgsl"),
            },
        ];
        constant("WORKGROUP", WORKGROUP) + &files.concat() + file!("common/groups.wgsl")
    }
}

/// Writes out the loops over the items of a thread, which have no other loop over items in them.
/// Drivers do not unroll a loop with operations of a subgroup, and an array that it indexes is then
/// kept in memory instead of registers. On an H200 (2026-11-26) 2^16, 2^20, 2^24 and 2^26 pairs are
/// sorted at 0.85, 8.6, 16.5 and 16.1 G keys/s with it, and at 0.69, 7.6, 13.7 and 14.0 without.
fn unrolled(text: &str, items: u32) -> String {
    let mut loops = text.split("for (var i = 0u; i < ITEMS; i += 1u) {");
    let mut written = loops.next().unwrap_or_default().to_owned();
    for rest in loops {
        let mut depth = 1;
        let end = rest.find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth == 0
        });
        let (body, rest) = rest.split_at(end.unwrap_or(rest.len()));
        for i in 0..items {
            written += &format!("{{ const i = {i}u;{body}}}\n");
        }
        written += rest.strip_prefix('}').unwrap_or(rest);
    }
    written
}

/// Returns the constants of every module.
fn constants(items: u32) -> String {
    constant("WORKGROUP", WORKGROUP) + &constant("ITEMS", items)
}

fn constant(name: &str, value: u32) -> String {
    format!("const {name}: u32 = {value}u;\n")
}
