//! Sets `cfg(cuda)` where the `cuda` feature is on and the target can have a CUDA driver.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(cuda)");
    let var = |name| std::env::var(name).unwrap_or_default();
    let target = (var("CARGO_CFG_TARGET_OS"), var("CARGO_CFG_TARGET_ARCH"));
    let has_driver = target.0 == "linux" && ["x86_64", "aarch64"].contains(&target.1.as_str());
    if has_driver && std::env::var_os("CARGO_FEATURE_CUDA").is_some() {
        println!("cargo::rustc-cfg=cuda");
    }
}
