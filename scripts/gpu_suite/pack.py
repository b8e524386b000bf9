"""Builds the binaries and packs them with the test data and the CUB bench, for a machine without
Rust."""
import filecmp
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

from .parts import BENCHES, BINARIES, ROOT, VULKAN_BINARIES, binary_of, images_are_fresh
from .record import all_hashes
from .run import BUNDLE, PACK

PACKAGES = ["radsweep-gpu", "gpusort", "radsweep-sap", "radsweep-dist", "radsweep-cli"]
FEATURES = "gpusort/cuda,radsweep-sap/cuda,radsweep-dist/cuda,radsweep-cli/cuda"
CUB_HEADERS = "nvidia-cuda-cccl==13.3.5.0.6"
MAX_BYTES = 60 << 20


def cargo(*words):
    """Runs a cargo command that prints JSON lines."""
    done = subprocess.run(["cargo", *words], cwd=ROOT, stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"gpu-suite: cargo {words[0]} failed")
    return [json.loads(line) for line in done.stdout.splitlines()]


def executables(*words):
    """Returns {(package, target): file} of what a cargo command built with the images of
    kernels/prebuilt."""
    built = {}
    for message in cargo(*words, "--message-format", "json-render-diagnostics"):
        if message["reason"] == "compiler-artifact" and message.get("executable"):
            built[Path(message["manifest_path"]), message["target"]["name"]] = Path(message["executable"])
        if message["reason"] == "build-script-executed" and "radsweep-kernels" in message["package_id"]:
            images = [path.name for path in (ROOT / "kernels" / "prebuilt").glob("*.ptx")]
            _, other, missing = filecmp.cmpfiles(message["out_dir"], ROOT / "kernels" / "prebuilt", images, shallow=False)
            if other or missing:
                sys.exit(f"gpu-suite: not built with the images of kernels/prebuilt: {', '.join(other + missing)}; run scripts/kernel-images, or unset RADSWEEP_NVCC")
    return built


def pack():
    began = time.monotonic()
    hashes = all_hashes()
    if not images_are_fresh():
        sys.exit("gpu-suite: kernels/prebuilt is stale; run scripts/kernel-images")
    packages = {p["name"]: p for p in cargo("metadata", "--no-deps", "--format-version", "1")[0]["packages"] if p["name"] in PACKAGES}
    targets = [(name, t["name"], t["kind"][0]) for name in PACKAGES for t in packages[name]["targets"]]
    tests = {f"{package}.{name}": (package, name) for package, name, kind in targets if kind == "test" and name.startswith("cuda_")}
    benches = {name: (package, name) for package, name, kind in targets if kind == "bench" and name in map(binary_of, BENCHES)}
    unlike = set(tests) ^ set(map(binary_of, BINARIES)) | set(benches) ^ (set(map(binary_of, BENCHES)) - {"cub"})
    if unlike:
        sys.exit(f"gpu-suite: cargo and scripts/gpu_suite/parts.py do not both have {', '.join(sorted(unlike))}")

    on_vulkan = {name: tuple(name.split(".")) for name in VULKAN_BINARIES}
    # Without the viewer: no part of the suite uses it, and its release build takes ten minutes.
    choice = [word for name in PACKAGES for word in ("--package", name)] + ["--no-default-features", "--features", FEATURES]
    built = executables("test", "--no-run", *choice, *(word for _, name in tests.values() for word in ("--test", name)))
    built |= executables("build", "--release", *choice, "--bin", "radsweep", *(word for name in benches for word in ("--bench", name)))
    for package, name in on_vulkan.values():
        built |= executables("test", "--no-run", "--package", package, "--features", "wgpu", "--test", name)
    if all_hashes() != hashes:
        sys.exit("gpu-suite: the GPU sources changed while they were built; pack again")
    print(f"built in {time.monotonic() - began:.0f} s")

    shutil.rmtree(PACK, ignore_errors=True)
    for folder in ("tests", "benches", "cub"):
        (PACK / folder).mkdir(parents=True)
    places = {("radsweep-cli", "radsweep"): PACK / "radsweep"}
    places |= {target: PACK / "tests" / name for name, target in (tests | on_vulkan).items()}
    places |= {target: PACK / "benches" / name for name, target in benches.items()}
    for (package, name), place in places.items():
        if subprocess.run(["strip", "-o", place, built[Path(packages[package]["manifest_path"]), name]]).returncode:
            sys.exit(f"gpu-suite: {name} could not be stripped")

    missing = []
    data = os.environ.get("RADSWEEP_DATA")
    if data:
        shutil.copytree(data, PACK / "data", copy_function=shutil.copyfile)
        (PACK / "data").chmod(0o755)
    else:
        missing.append("no published scenes: RADSWEEP_DATA is not set, CONTRIBUTING.md says where they are from")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]
    if subprocess.run([*pip, "--dest", PACK / "cub", CUB_HEADERS]).returncode:
        missing.append(f"{CUB_HEADERS} could not be fetched, CUB comes from the toolkit")
    if peer := os.environ.get("RADSWEEP_LIBCUSORT"):
        shutil.copyfile(Path(peer) / "libcusort.cuh", PACK / "cub" / "libcusort.cuh")
    about = {"hashes": {" ".join(part): part_hash for part, part_hash in hashes.items()}, "missing": missing}
    (PACK / "pack.json").write_text(json.dumps(about, indent=2) + "\n")

    for place in places.values():
        print(f"{place.stat().st_size / 2**20:7.2f} MiB  {place.relative_to(PACK)}")
    for what in missing:
        print(f"MISSING: {what}")
    size = bundle()
    print(f"gpu-suite: {size / 2**20:.1f} MiB in .gpu/{BUNDLE.name}, {len(tests) + len(on_vulkan)} test binaries, {len(benches)} benches, {time.monotonic() - began:.0f} s")
    if size > MAX_BYTES:
        sys.exit(f"gpu-suite: more than {MAX_BYTES >> 20} MiB")


def bundle():
    """Packs everything into one file; returns its size."""
    gathered = sorted(PACK.iterdir())
    # The binaries contain the same images: a dictionary larger than several binaries finds the
    # copies.
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 64 << 20}]
    with lzma.open(BUNDLE, "wb", filters=filters) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for path in gathered:
            tar.add(path, path.name)
    for path in gathered:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return BUNDLE.stat().st_size
