//! Every WGSL module passes the validator of `naga`, and becomes SPIR-V, MSL and HLSL.

use naga::back::{hlsl, msl, spv};
use naga::valid::{Capabilities, ModuleInfo, SubgroupOperationSet, ValidationFlags, Validator};
use radsweep_kernels::wgsl::{
    Cells, Demo, Key, Radix, Resident, Subgroups, Sweep, Target, Tile, Value,
};

/// A module, and what it promises.
#[derive(Debug)]
struct Module {
    name: String,
    text: String,
    entry_points: &'static [&'static str],
    workgroup_bytes: u32,
    has_subgroups: bool,
}

impl From<Radix> for Module {
    fn from(radix: Radix) -> Self {
        Self {
            name: format!("{radix:?}"),
            text: radix.text(Target::Native),
            entry_points: radix.entry_points(),
            workgroup_bytes: radix.workgroup_bytes(),
            has_subgroups: radix.subgroups.is_some(),
        }
    }
}

impl From<Sweep> for Module {
    fn from(sweep: Sweep) -> Self {
        Self {
            name: format!("{sweep:?}"),
            text: sweep.text(),
            entry_points: sweep.entry_points(),
            workgroup_bytes: Sweep::WORKGROUP_BYTES,
            has_subgroups: false,
        }
    }
}

impl From<Cells> for Module {
    fn from(cells: Cells) -> Self {
        Self {
            name: format!("{cells:?}"),
            text: cells.text(),
            entry_points: cells.entry_points(),
            workgroup_bytes: Cells::WORKGROUP_BYTES,
            has_subgroups: false,
        }
    }
}

impl From<Resident> for Module {
    fn from(resident: Resident) -> Self {
        Self {
            name: format!("{resident:?}"),
            text: resident.text(),
            entry_points: resident.entry_points(),
            workgroup_bytes: resident.workgroup_bytes(),
            has_subgroups: false,
        }
    }
}

impl From<Demo> for Module {
    fn from(demo: Demo) -> Self {
        Self {
            name: format!("{demo:?}"),
            text: demo.text(),
            entry_points: demo.entry_points(),
            workgroup_bytes: Demo::WORKGROUP_BYTES,
            has_subgroups: false,
        }
    }
}

fn modules() -> Vec<Module> {
    let demos = [Demo::Particles, Demo::Galaxy].map(Module::from);
    exact().into_iter().chain(demos).collect()
}

/// Every module that a sort or a broad phase may ask for: those whose results are the same
/// everywhere.
fn exact() -> Vec<Module> {
    let sweeps = [Key::Bits32, Key::Bits64].map(|key| Sweep { key }.into());
    let residents = [Resident::Frame, Resident::Pairs].map(Module::from);
    sorts()
        .into_iter()
        .map(Module::from)
        .chain(sweeps)
        .chain([Cells.into()])
        .chain(residents)
        .collect()
}

/// Every module that a sort may ask for. Subgroups have 4 to 128 lanes on today's devices.
fn sorts() -> Vec<Radix> {
    let sizes = [(8, 8), (32, 32), (64, 64), (8, 32), (32, 64), (16, 128)];
    let subgroups = sizes.map(|(min, max)| Some(Subgroups { min, max }));
    let mut all = Vec::new();
    for key in [Key::Bits32, Key::Bits64] {
        for value in [Value::None, Value::U32, Value::Index] {
            for subgroups in std::iter::once(None).chain(subgroups) {
                for is_plain in [false, true] {
                    all.extend([Tile::Small, Tile::Large].map(|tile| Radix {
                        key,
                        value,
                        is_plain,
                        tile,
                        subgroups,
                    }));
                }
            }
        }
    }
    all
}

fn validated(module: &Module) -> (naga::Module, ModuleInfo) {
    let (name, text) = (&module.name, &module.text);
    let parsed = naga::front::wgsl::parse_str(text)
        .unwrap_or_else(|error| panic!("{name}: {}", error.emit_to_string(text)));
    let capabilities = if module.has_subgroups {
        Capabilities::SUBGROUP
    } else {
        Capabilities::empty()
    };
    let mut validator = Validator::new(ValidationFlags::all(), capabilities);
    validator.subgroup_operations(SubgroupOperationSet::all());
    validator.subgroup_stages(naga::valid::ShaderStages::COMPUTE);
    let info = validator
        .validate(&parsed)
        .unwrap_or_else(|error| panic!("{name}: {}", error.emit_to_string(text)));
    (parsed, info)
}

#[test]
fn every_module_becomes_spirv() {
    for module in modules() {
        let name = &module.name;
        let (parsed, info) = validated(&module);
        let options = spv::Options {
            lang_version: (1, 3),
            ..spv::Options::default()
        };
        let words = spv::write_vec(&parsed, &info, &options, None)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(words.first(), Some(&0x0723_0203), "{name}");
    }
}

#[test]
fn every_module_becomes_metal() {
    for module in modules() {
        let name = &module.name;
        let (parsed, info) = validated(&module);
        let options = msl::Options {
            lang_version: (2, 4),
            fake_missing_bindings: true,
            ..msl::Options::default()
        };
        let (text, translation) =
            msl::write_string(&parsed, &info, &options, &msl::PipelineOptions::default())
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(
            translation.entry_point_names.len(),
            module.entry_points.len()
        );
        assert!(
            translation.entry_point_names.iter().all(Result::is_ok),
            "{name}"
        );
        assert!(text.contains("kernel void"), "{name}");
    }
}

#[test]
fn every_module_becomes_hlsl() {
    for module in modules() {
        let name = &module.name;
        let (parsed, info) = validated(&module);
        let options = hlsl::Options {
            shader_model: hlsl::ShaderModel::V6_0,
            ..hlsl::Options::default()
        };
        let pipeline = hlsl::PipelineOptions::default();
        let mut text = String::new();
        let reflection = hlsl::Writer::new(&mut text, &options, &pipeline)
            .write(&parsed, &info, None)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(
            reflection.entry_point_names.iter().all(Result::is_ok),
            "{name}"
        );
        assert!(text.contains("numthreads"), "{name}");
    }
}

#[test]
fn no_module_needs_more_than_a_browser_promises() {
    for module in modules() {
        let name = &module.name;
        let (parsed, info) = validated(&module);
        let storage = |space| matches!(space, naga::AddressSpace::Storage { .. });
        for (at, entry) in parsed.entry_points.iter().enumerate() {
            let used = info.get_entry_point(at);
            let globals = parsed.global_variables.iter();
            let used_globals: Vec<_> = globals
                .filter(|(handle, _)| !used[*handle].is_empty())
                .collect();
            let buffers = used_globals
                .iter()
                .filter(|(_, global)| storage(global.space))
                .count();
            assert!(
                buffers <= 8,
                "{name} {}: {buffers} storage buffers",
                entry.name
            );
            let bytes: u32 = used_globals
                .iter()
                .filter(|(_, global)| global.space == naga::AddressSpace::WorkGroup)
                .map(|(_, global)| parsed.types[global.ty].inner.size(parsed.to_ctx()))
                .sum();
            assert!(
                bytes <= module.workgroup_bytes,
                "{name} {}: {bytes}",
                entry.name
            );
            assert!(module.has_subgroups || bytes <= 16384, "{name}: {bytes}");
            assert_eq!(entry.workgroup_size[0].max(256), 256);
        }
    }
}

#[test]
fn only_browsers_are_told_of_subgroups() {
    for sort in sorts() {
        let enables = |target| sort.text(target).starts_with("enable subgroups;");
        assert!(!enables(Target::Native));
        assert_eq!(enables(Target::Browser), sort.subgroups.is_some());
    }
}

#[test]
fn loops_over_items_are_written_out_where_subgroups_are_used() {
    for radix in sorts() {
        let (text, last) = (radix.text(Target::Native), radix.items() - 1);
        let is_written_out = radix.subgroups.is_some();
        assert_ne!(text.contains("i < ITEMS"), is_written_out, "{radix:?}");
        assert_eq!(
            text.contains(&format!("const i = {last}u;")),
            is_written_out
        );
        assert!(
            !text.contains(&format!("const i = {}u;", last + 1)),
            "{radix:?}"
        );
    }
}

#[test]
fn no_float_and_no_wide_atomic_is_in_a_module() {
    for module in exact() {
        let code = module
            .text
            .lines()
            .filter_map(|line| line.split("//").next());
        for word in code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_')) {
            assert!(
                !["f32", "f16", "f64", "bitcast", "u64", "i64"].contains(&word),
                "{word}"
            );
        }
    }
}
