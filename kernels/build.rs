//! Makes the kernel images of `images.txt`: takes the checked-in ones of `prebuilt/`, which must be
//! of these very sources, or compiles them with the `nvcc` that `RADSWEEP_NVCC` names.
//!
//! Left in `OUT_DIR`: `NAME.ptx` for each image and `SOURCES.sha256`, which `scripts/kernel-images`
//! copies to `prebuilt/`, so that there is one way in which an image is made; and
//! `NAME.ptx.deflate`, which goes into the binary.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() {
    if let Err(error) = run() {
        for line in error.to_string().lines() {
            println!("cargo::error={line}");
        }
        std::process::exit(1);
    }
}

fn run() -> Result<()> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-env-changed=RADSWEEP_NVCC");
    println!("cargo::rerun-if-changed=."); // a new folder of sources too

    let images = images(&here)?;
    let hash = source_hash(&here)?;
    let nvcc = env::var_os("RADSWEEP_NVCC").filter(|path| !path.is_empty());
    let origin = match nvcc.map(PathBuf::from) {
        None => prebuilt(&here, &out, &images, &hash)?,
        Some(nvcc) => compile_all(&nvcc, &out, &images)
            .map_err(|error| format!("RADSWEEP_NVCC={}: {error}", nvcc.display()))?,
    };
    for Image { name, .. } in &images {
        compress(&out.join(format!("{name}.ptx")))?;
    }
    fs::write(out.join("SOURCES.sha256"), format!("{hash}\n"))?;
    println!("cargo::rustc-env=RADSWEEP_SOURCE_HASH={hash}");
    println!("cargo::rustc-env=RADSWEEP_ORIGIN={origin}");
    Ok(())
}

/// One line of `images.txt`.
struct Image {
    name: String,
    source: String,
    arch: String,
    ptx: String,
    defines: Vec<String>,
}

fn images(here: &Path) -> Result<Vec<Image>> {
    let list = fs::read_to_string(here.join("images.txt"))?;
    let is_image = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    list.lines().filter(is_image).map(image).collect()
}

fn image(line: &str) -> Result<Image> {
    let mut words = line.split_whitespace().map(String::from);
    let missing = || format!("images.txt: a column is missing in: {line}");
    let mut word = || words.next().ok_or_else(missing);
    Ok(Image {
        name: word()?,
        source: word()?,
        arch: word()?,
        ptx: word()?,
        defines: words.collect(),
    })
}

/// SHA-256 over `images.txt` and every `.cu` and `.cuh` here, in order of their paths: path, length
/// and contents of each.
fn source_hash(here: &Path) -> Result<String> {
    let mut files = vec![here.join("images.txt")];
    sources(here, &mut files)?;
    let name = |path: &PathBuf| -> Result<String> {
        let inside = path.strip_prefix(here)?.to_string_lossy();
        Ok(inside.replace('\\', "/"))
    };
    let mut files: Vec<_> = files
        .iter()
        .map(|path| Ok((name(path)?, path)))
        .collect::<Result<_>>()?;
    files.sort();
    let mut hash = Sha256::new();
    for (name, path) in files {
        let mut contents = fs::read(path)?;
        // A checkout with Windows line ends holds the same sources.
        contents.retain(|&byte| byte != b'\r');
        hash.update(format!("{name}\n{}\n", contents.len()));
        hash.update(contents);
    }
    let digest = hash.finalize();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let kind = path.extension().unwrap_or_default();
        if path.is_dir() {
            sources(&path, files)?;
        } else if kind == "cu" || kind == "cuh" {
            files.push(path);
        }
    }
    Ok(())
}

/// Compiles every image into `out`; the answer says by which compiler.
fn compile_all(nvcc: &Path, out: &Path, images: &[Image]) -> Result<String> {
    println!("cargo::rerun-if-changed={}", nvcc.display());
    let version = output(Command::new(nvcc).arg("--version"))?;
    let version = version
        .lines()
        .find(|line| line.starts_with("Cuda compilation tools"))
        .unwrap_or("unknown version");
    std::thread::scope(|threads| {
        let running: Vec<_> = images
            .iter()
            .map(|image| threads.spawn(|| compile(nvcc, out, image)))
            .collect();
        running
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| "a compiling thread panicked")?)
    })?;
    Ok(format!("nvcc, {version}"))
}

/// Compiles one image (cargo runs a build in the folder of its package), declares the PTX version
/// of the list, and has the assembler prove that the text needs no later one.
fn compile(nvcc: &Path, out: &Path, image: &Image) -> Result<()> {
    let ptx = out.join(format!("{}.ptx", image.name));
    let mut to_ptx = Command::new(nvcc);
    to_ptx
        .args([
            "-ptx",
            "-std=c++17",
            "-I.",
            &format!("-arch={}", image.arch),
        ])
        .args(&image.defines);
    output(to_ptx.arg(&image.source).arg("-o").arg(&ptx))?;

    fs::write(&ptx, portable(&fs::read_to_string(&ptx)?, &image.ptx)?)?;

    let real = image.arch.replace("compute_", "sm_");
    let cubin = ptx.with_extension("cubin");
    output(
        Command::new(nvcc)
            .args(["-cubin", "-w", &format!("-arch={real}")])
            .arg(&ptx)
            .arg("-o")
            .arg(&cubin),
    )
    .map_err(|error| format!("{} is not PTX {}: {error}", image.name, image.ptx))?;
    Ok(())
}

/// The same PTX for everyone: `version` declared, no header comment, no hint that it does not have,
/// and no hash of the compiling machine's paths in the names of things with internal linkage.
fn portable(text: &str, version: &str) -> Result<String> {
    let start = text
        .find(".version ")
        .ok_or("the compiler wrote no .version line")?;
    let body = text[start..]
        .split_once('\n')
        .ok_or("the compiler wrote nothing after the .version line")?
        .1;
    // A hint from PTX 8.3 that older assemblers refuse.
    let lines = body.lines();
    let lines = lines.filter(|line| !line.trim().starts_with(".pragma \"used_bytes_mask"));
    let body = anonymous(&lines.map(|line| format!("{line}\n")).collect::<String>());
    Ok(format!(".version {version}\n{body}"))
}

/// Names with internal linkage without what differs from one compilation to the next. Such a name
/// holds a part `_INTERNAL_HASH_11_onesweep_cu_HASH_PROCESS` or the same after `_GLOBAL__N__`, with
/// the length of the part before it: the hashes, of paths too, and the number of the compiler's
/// process become zeros, and the length what it then is.
fn anonymous(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let next_mark = |text: &str| {
        ["_INTERNAL_", "_GLOBAL__N__"]
            .iter()
            .filter_map(|mark| text.find(mark))
            .min()
    };
    while let Some(at) = next_mark(rest) {
        let digits = rest[..at]
            .bytes()
            .rev()
            .take_while(u8::is_ascii_digit)
            .count();
        let length = rest[at - digits..at].parse().unwrap_or(0);
        let Some(name) = rest.get(at..at + length).filter(|name| !name.is_empty()) else {
            out.push_str(&rest[..at + 1]);
            rest = &rest[at + 1..];
            continue;
        };
        let is_hash =
            |word: &str| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut words: Vec<_> = name
            .split('_')
            .map(|word| if is_hash(word) { "00000000" } else { word })
            .collect();
        if let Some(last) = words.last_mut() {
            *last = "0";
        }
        let name = words.join("_");
        out.push_str(&rest[..at - digits]);
        out.push_str(&name.len().to_string());
        out.push_str(&name);
        rest = &rest[at + length..];
    }
    out + rest
}

/// Writes FILE.deflate beside a file. Level 6 of 10: the highest takes twice the time for 2
/// percent.
fn compress(file: &Path) -> Result<()> {
    let packed = miniz_oxide::deflate::compress_to_vec(&fs::read(file)?, 6);
    Ok(fs::write(file.with_extension("ptx.deflate"), packed)?)
}

/// Runs a compiler and gives what it printed; its warnings become warnings of the build.
fn output(command: &mut Command) -> Result<String> {
    let done = command
        .output()
        .map_err(|error| format!("cannot run it: {error}"))?;
    let (said, complained) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
    );
    if !done.status.success() {
        return Err(format!("{}\n{said}{complained}", done.status).into());
    }
    if !complained.trim().is_empty() {
        warn(&complained);
    }
    Ok(said.into_owned())
}

fn warn(text: &str) {
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        println!("cargo::warning={line}");
    }
}

/// Takes the checked-in images, if they are of these sources.
fn prebuilt(here: &Path, out: &Path, images: &[Image], hash: &str) -> Result<String> {
    const REMEDY: &str =
        "run scripts/kernel-images to rebuild them, or set RADSWEEP_NVCC to a CUDA compiler";
    let folder = here.join("prebuilt");
    let made_from = fs::read_to_string(folder.join("SOURCES.sha256")).unwrap_or_default();
    if made_from.trim() != hash {
        let made_from = if made_from.is_empty() {
            "nothing"
        } else {
            made_from.trim()
        };
        return Err(format!(
            "kernels/prebuilt is stale: its images were made from {made_from}, the sources are {hash}\n{REMEDY}"
        )
        .into());
    }
    for Image { name, .. } in images {
        let file = format!("{name}.ptx");
        fs::copy(folder.join(&file), out.join(&file))
            .map_err(|error| format!("kernels/prebuilt/{file}: {error}\n{REMEDY}"))?;
    }
    Ok("prebuilt".into())
}
