//! Tests of the shim. A process binds the driver once, so every case runs in a process of its own:
//! this binary starts itself with the case's name. The driver that they bind is compiled from
//! `fake/driver.rs`.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;

use libcuda_shim::library::AlreadyBound;
use libcuda_shim::{NO_DEVICE, NOT_FOUND, SYMBOLS, has, load, set_library};
use libtest_mimic::{Arguments, Failed, Trial};

unsafe extern "C" {
    fn cuInit(flags: u32) -> i32;
    fn cuDriverGetVersion(version: *mut i32) -> i32;
    fn cuGetErrorName(code: i32, text: *mut *const c_char) -> i32;
    fn cuGetErrorString(code: i32, text: *mut *const c_char) -> i32;
    fn cuMemAlloc_v2(pointer: *mut u64, bytes: usize) -> i32;
    fn cuTexRefSetMipmapLevelClamp(reference: u64, min: f32, max: f32) -> i32;
    #[allow(clippy::too_many_arguments)]
    fn cuLaunchKernel(
        f: u64,
        gx: u32,
        gy: u32,
        gz: u32,
        bx: u32,
        by: u32,
        bz: u32,
        shared: u32,
        s: u64,
        p: usize,
        e: usize,
    ) -> i32;
}

/// The variables that name the case of a process, and the library that it sets.
const CASE: &str = "LIBCUDA_SHIM_TEST_CASE";
const LIBRARY: &str = "LIBCUDA_SHIM_TEST_LIBRARY";
/// The name that stands for the compiled fake driver in [`CASES`].
const FAKE: &str = "fake";
/// The name that the dynamic linker finds the fake driver by, in its folder.
const USUAL: &str = "libcuda.so.1";

/// The name, the library that is set before the case, and the function that runs in the process.
/// [`USUAL`] is not set, but found in `LD_LIBRARY_PATH`.
type Case = (&'static str, Option<&'static str>, fn());
const CASES: [Case; 11] = [
    ("no_driver", Some("/nowhere/libcuda.so.1"), no_driver),
    (
        "no_driver_first_call_by_launch",
        Some("/nowhere/libcuda.so.1"),
        || assert_eq!(launch(), NO_DEVICE),
    ),
    ("not_a_driver", Some("libm.so.6"), not_a_driver),
    ("default_paths", None, default_paths),
    ("a_driver_on_the_paths", Some(USUAL), || {
        assert_eq!((launch(), load()), (0, Ok(USUAL)))
    }),
    ("a_name_that_comes_late", Some(FAKE), a_name_that_comes_late),
    ("first_call_by_init", Some(FAKE), first_call_by_init),
    ("first_call_with_many_arguments", Some(FAKE), || {
        assert_eq!([launch(), launch(), clamp()], [0; 3])
    }),
    ("first_call_with_floats", Some(FAKE), || {
        assert_eq!([clamp(), clamp(), launch()], [0; 3])
    }),
    (
        "first_call_by_many_threads",
        Some(FAKE),
        first_call_by_many_threads,
    ),
    (
        "driver_lacks_a_function",
        Some(FAKE),
        driver_lacks_a_function,
    ),
];

pub fn main() {
    if let Some(name) = std::env::var_os(CASE) {
        let (_, _, run) = CASES.into_iter().find(|case| *case.0 == *name).unwrap();
        if let Some(library) = std::env::var_os(LIBRARY) {
            set_library(library).unwrap();
        }
        return run();
    }
    let arguments = Arguments::from_args();
    let folder = tempfile::tempdir().unwrap();
    let fake = (!arguments.list).then(|| compile_fake(folder.path()));
    let cases = CASES.into_iter().map(|(name, library, _)| {
        let fake = fake.clone();
        Trial::test(name, move || run_alone(name, library, fake.as_deref()))
    });
    let table = Trial::test("table_has_all_that_cust_raw_declares", || {
        table_has_all_that_cust_raw_declares();
        Ok(())
    });
    let conclusion = libtest_mimic::run(&arguments, cases.chain([table]).collect());
    drop(folder);
    conclusion.exit();
}

fn run_alone(name: &str, library: Option<&str>, fake: Option<&Path>) -> Result<(), Failed> {
    let mut command = Command::new(std::env::current_exe()?);
    let fake = || fake.ok_or("the fake driver was not compiled");
    command.env(CASE, name);
    match library {
        Some(FAKE) => _ = command.env(LIBRARY, fake()?),
        Some(USUAL) => _ = command.env("LD_LIBRARY_PATH", fake()?.with_file_name("")),
        Some(library) => _ = command.env(LIBRARY, library),
        None => {}
    }
    let output = command.output()?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned().into())
    }
}

fn compile_fake(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/driver.rs");
    let library = folder.join(USUAL);
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "cdylib",
            "--crate-name",
            "fakecuda",
            "-o",
        ])
        .arg(&library)
        .arg(source);
    assert!(
        command.status().unwrap().success(),
        "the fake driver does not compile"
    );
    library
}

fn launch() -> i32 {
    // SAFETY: the fake driver follows none of these addresses.
    unsafe { cuLaunchKernel(1 << 40, 2, 3, 4, 5, 6, 7, 8, 1 << 41, 10, 11) }
}

fn clamp() -> i32 {
    // SAFETY: the fake driver does not follow the address.
    unsafe { cuTexRefSetMipmapLevelClamp(1 << 42, 0.25, 1e30) }
}

/// Calls one of the two text functions. Returns its code, and the text, which it must have set.
fn text(
    function: unsafe extern "C" fn(i32, *mut *const c_char) -> i32,
    code: i32,
) -> (i32, Option<String>) {
    let unset: *const c_char = std::ptr::without_provenance(1);
    let mut text = unset;
    // SAFETY: the out pointer is valid.
    let answer = unsafe { function(code, &mut text) };
    assert_ne!(text, unset, "the text for {code} was not set");
    // SAFETY: the function set it, so it is null or a C string.
    let text =
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned());
    (answer, text)
}

fn no_driver() {
    let mut unchanged = 7u64;
    // SAFETY: the out pointer is valid.
    let answers = unsafe {
        [
            cuInit(0),
            cuMemAlloc_v2(&mut unchanged, 1),
            launch(),
            clamp(),
        ]
    };
    assert_eq!((answers, unchanged), ([NO_DEVICE; 4], 7));
    let error = load().unwrap_err();
    assert_eq!(error.looked_for, ["/nowhere/libcuda.so.1"]);
    assert!(
        error.reasons.len() == 1 && error.reasons[0].starts_with("cannot open"),
        "{error:?}"
    );
    assert!(
        error
            .to_string()
            .starts_with("looked for /nowhere/libcuda.so.1 ("),
        "{error}"
    );
    assert!(!has("cuInit"));
    assert_eq!(
        text(cuGetErrorName, NO_DEVICE),
        (0, Some("CUDA_ERROR_NO_DEVICE".to_owned()))
    );
    assert_eq!(
        text(cuGetErrorString, NO_DEVICE),
        (0, Some("no CUDA driver was found".to_owned()))
    );
    assert_eq!(text(cuGetErrorName, 12345), (1, None));
    // SAFETY: null is allowed.
    assert_eq!(unsafe { cuGetErrorString(0, std::ptr::null_mut()) }, 1);
}

fn not_a_driver() {
    let error = load().unwrap_err();
    assert!(error.reasons[0].contains("not a CUDA driver"), "{error:?}");
    // SAFETY: the call has no conditions.
    assert_eq!(unsafe { cuInit(0) }, NO_DEVICE);
}

/// Passes on machines with a driver and without.
fn default_paths() {
    match load() {
        Ok(library) => {
            assert!(
                library.ends_with("libcuda.so.1") && has("cuInit"),
                "{library}"
            );
            assert!(set_library("libcuda.so.1").is_err());
        }
        Err(error) => {
            assert_eq!(error.looked_for[0], "libcuda.so.1");
            assert!(
                error.looked_for.len() > 1 && error.looked_for.len() == error.reasons.len(),
                "{error:?}"
            );
        }
    }
}

fn first_call_by_init() {
    let mut version = 0;
    // SAFETY: the out pointer is valid.
    let answers = unsafe { [cuInit(0), cuInit(1), cuDriverGetVersion(&mut version)] };
    assert_eq!((answers, version), ([0, 1000, 0], 12_092));
    assert_eq!(load().unwrap(), std::env::var(LIBRARY).unwrap());
}

/// A name after another one, and one after the driver was bound.
fn a_name_that_comes_late() {
    let late = || set_library("libcuda.so.1").unwrap_err();
    let text = late().to_string();
    assert!(text.starts_with("the process has looked for"), "{text}");
    let driver = load().unwrap();
    let _: AlreadyBound = late();
    assert_eq!(load().unwrap(), driver);
}

fn first_call_by_many_threads() {
    let barrier = Barrier::new(32);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..32)
            .map(|i| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    [
                        if i % 2 == 0 { launch() } else { clamp() },
                        launch(),
                        clamp(),
                    ]
                })
            })
            .collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), [0; 3]);
        }
    });
}

fn driver_lacks_a_function() {
    let mut unchanged = 7;
    // SAFETY: the out pointer is valid.
    let answer = unsafe { cuMemAlloc_v2(&mut unchanged, 1) };
    assert_eq!((answer, unchanged), (NOT_FOUND, 7));
    assert!(
        has("cuLaunchKernel")
            && !has("cuMemAlloc_v2")
            && !has("cuLaunchKernelEx")
            && !has("cu\0Init")
    );
    assert_eq!(
        text(cuGetErrorName, NOT_FOUND),
        (0, Some("CUDA_ERROR_NOT_FOUND".to_owned()))
    );
    assert_eq!(launch(), 0);
}

/// Every function that `cust` or a user of `cust_raw` may call has a slot. The declarations are
/// read from the source that this build uses.
fn table_has_all_that_cust_raw_declares() {
    let source = source_of_cust_raw().with_file_name("cuda.rs");
    let source = std::fs::read_to_string(source).unwrap();
    let declared: BTreeSet<&str> = source
        .split("pub fn cu")
        .skip(1)
        .map(|rest| &rest[..rest.find('(').unwrap()])
        .collect();
    assert!(
        declared.len() > 300,
        "only {} functions were found in cust_raw",
        declared.len()
    );
    let table: BTreeSet<&str> = SYMBOLS
        .iter()
        .map(|name| name.strip_prefix("cu").unwrap())
        .collect();
    assert_eq!(
        table.len(),
        SYMBOLS.len(),
        "a function is in the table twice"
    );
    let missing: Vec<_> = declared.difference(&table).collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
}

/// Returns the first source file of `cust_raw` in the version that is locked here. It asks cargo
/// for the metadata of a package that needs this crate alone. For the metadata of this workspace,
/// cargo would ask for crates that no build on this platform has downloaded.
fn source_of_cust_raw() -> PathBuf {
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("Cargo.toml");
    let package =
        "[package]\nname = \"lone\"\n[lib]\npath = \"lib.rs\"\n[dependencies]\ncust_raw = \"*\"\n";
    std::fs::write(&manifest, package).unwrap();
    let locked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    std::fs::copy(locked, folder.path().join("Cargo.lock")).unwrap();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline"])
        .arg("--manifest-path")
        .arg(manifest)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages
        .iter()
        .find(|package| package["name"] == "cust_raw");
    package.unwrap()["targets"][0]["src_path"]
        .as_str()
        .unwrap()
        .into()
}
