//! Every WGSL module passes the validator of `naga`, and becomes SPIR-V, MSL and HLSL.

use naga::back::{hlsl, msl, spv};
use naga::valid::{Capabilities, ModuleInfo, SubgroupOperationSet, ValidationFlags, Validator};
use radsweep_kernels::wgsl::{Key, Radix, Subgroups, Target, Value};

/// Every module that a sort may ask for. Subgroups have 4 to 128 lanes on today's devices.
fn modules() -> Vec<Radix> {
    let sizes = [(8, 8), (32, 32), (64, 64), (8, 32), (32, 64), (16, 128)];
    let subgroups = sizes.map(|(min, max)| Some(Subgroups { min, max }));
    let mut all = Vec::new();
    for key in [Key::Bits32, Key::Bits64] {
        for value in [Value::None, Value::U32, Value::Index] {
            for subgroups in std::iter::once(None).chain(subgroups) {
                all.push(Radix {
                    key,
                    value,
                    subgroups,
                });
            }
        }
    }
    all
}

fn validated(module: &Radix) -> (naga::Module, ModuleInfo) {
    let text = module.text(Target::Native);
    let parsed = naga::front::wgsl::parse_str(&text)
        .unwrap_or_else(|error| panic!("{module:?}: {}", error.emit_to_string(&text)));
    let capabilities = if module.subgroups.is_some() {
        Capabilities::SUBGROUP
    } else {
        Capabilities::empty()
    };
    let mut validator = Validator::new(ValidationFlags::all(), capabilities);
    validator.subgroup_operations(SubgroupOperationSet::all());
    validator.subgroup_stages(naga::valid::ShaderStages::COMPUTE);
    let info = validator
        .validate(&parsed)
        .unwrap_or_else(|error| panic!("{module:?}: {}", error.emit_to_string(&text)));
    (parsed, info)
}

#[test]
fn every_module_becomes_spirv() {
    for module in modules() {
        let (parsed, info) = validated(&module);
        let options = spv::Options {
            lang_version: (1, 3),
            ..spv::Options::default()
        };
        let words = spv::write_vec(&parsed, &info, &options, None)
            .unwrap_or_else(|error| panic!("{module:?}: {error}"));
        assert_eq!(words.first(), Some(&0x0723_0203), "{module:?}");
    }
}

#[test]
fn every_module_becomes_metal() {
    for module in modules() {
        let (parsed, info) = validated(&module);
        let options = msl::Options {
            lang_version: (2, 4),
            fake_missing_bindings: true,
            ..msl::Options::default()
        };
        let (text, translation) =
            msl::write_string(&parsed, &info, &options, &msl::PipelineOptions::default())
                .unwrap_or_else(|error| panic!("{module:?}: {error}"));
        assert_eq!(
            translation.entry_point_names.len(),
            module.entry_points().len()
        );
        assert!(
            translation.entry_point_names.iter().all(Result::is_ok),
            "{module:?}"
        );
        assert!(text.contains("kernel void"), "{module:?}");
    }
}

#[test]
fn every_module_becomes_hlsl() {
    for module in modules() {
        let (parsed, info) = validated(&module);
        let options = hlsl::Options {
            shader_model: hlsl::ShaderModel::V6_0,
            ..hlsl::Options::default()
        };
        let pipeline = hlsl::PipelineOptions::default();
        let mut text = String::new();
        let reflection = hlsl::Writer::new(&mut text, &options, &pipeline)
            .write(&parsed, &info, None)
            .unwrap_or_else(|error| panic!("{module:?}: {error}"));
        assert!(
            reflection.entry_point_names.iter().all(Result::is_ok),
            "{module:?}"
        );
        assert!(text.contains("numthreads"), "{module:?}");
    }
}

#[test]
fn no_module_needs_more_than_a_browser_promises() {
    for module in modules() {
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
                "{module:?} {}: {buffers} storage buffers",
                entry.name
            );
            let bytes: u32 = used_globals
                .iter()
                .filter(|(_, global)| global.space == naga::AddressSpace::WorkGroup)
                .map(|(_, global)| parsed.types[global.ty].inner.size(parsed.to_ctx()))
                .sum();
            assert!(
                bytes <= module.workgroup_bytes(),
                "{module:?} {}: {bytes}",
                entry.name
            );
            assert!(
                module.subgroups.is_some() || bytes <= 16384,
                "{module:?}: {bytes}"
            );
            assert_eq!(entry.workgroup_size[0].max(256), 256);
        }
    }
}

#[test]
fn only_browsers_are_told_of_subgroups() {
    for module in modules() {
        let enables = |target| module.text(target).starts_with("enable subgroups;");
        assert!(!enables(Target::Native));
        assert_eq!(enables(Target::Browser), module.subgroups.is_some());
    }
}

#[test]
fn no_float_and_no_wide_atomic_is_in_a_module() {
    for module in modules() {
        let text = module.text(Target::Native);
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        for word in words {
            assert!(
                !["f32", "f16", "f64", "bitcast", "u64", "i64"].contains(&word),
                "{word}"
            );
        }
    }
}
