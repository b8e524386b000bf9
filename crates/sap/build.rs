//! Sets `cfg(cuda)` where the `cuda` feature is on and the target can have a CUDA driver, and
//! `cfg(on_device)` where there is an engine on a device: on CUDA or on `wgpu`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(cuda, on_device)");
    let var = |name| std::env::var(name).unwrap_or_default();
    let target = (var("CARGO_CFG_TARGET_OS"), var("CARGO_CFG_TARGET_ARCH"));
    let has_driver = target.0 == "linux" && ["x86_64", "aarch64"].contains(&target.1.as_str());
    let has_feature = |name| std::env::var_os(name).is_some();
    let has_cuda = has_driver && has_feature("CARGO_FEATURE_CUDA");
    if has_cuda {
        println!("cargo::rustc-cfg=cuda");
    }
    if has_cuda || has_feature("CARGO_FEATURE_WGPU") {
        println!("cargo::rustc-cfg=on_device");
    }
}
