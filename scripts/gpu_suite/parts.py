"""The parts of the suite, and the hash of the sources that each depends on.

A part is something done with a binary: its tests at full size, its tests under a sanitizer, the
scenes, a bench. What runs on the device is counted by the kernel images, kernels/prebuilt, which
are the same as long as the sources compile to the same code; what drives it by the Rust of the
device layer and of the crates on top, without the CPU engines and other families of sorts. The
tests' own sources count for the runs at full size only: repeating those is cheap, and a sanitizer
looks at the kernels. Racecheck looks at what the threads of a block share, which the images decide
and the shapes of launches in tables of tuning: the rest of the Rust does not count.
"""
import hashlib
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

TESTS, MEMCHECK, RACECHECK, SCENES, BENCH = "tests", "memcheck", "racecheck", "scenes", "bench"
SANITIZERS = [MEMCHECK, RACECHECK]
KINDS = [TESTS, *SANITIZERS, SCENES, BENCH]

DEVICE = ["crates/libcuda-shim/src", "crates/gpu/src"]
SORTS = [*DEVICE, "crates/gpusort/src"]
PAIRS = [*SORTS, "crates/sap/src"]
PROGRAM = [*PAIRS, "crates/bench/src", "crates/common/src/byte_limit.rs"]
# What else of the program a scene goes through.
LIBRARIES = ["crates/common/src", "crates/radsweep/src", "crates/scenes/src"]
# Families that have a folder in crates/gpusort/src/cuda and images of that name: counted where the
# images are.
FAMILIES = ["ha_radix", "satish_radix", "satish_merge", "quicksort", "bucket_sort"]
# Every family's tests sort by bit windows and move records, which Onesweep and the gather do.
ONESWEEP = ["onesweep_*", "adaptive_*", "gather"]
SORT_TESTS = ["crates/gpusort/tests/common", "crates/gpusort/tests/data", "crates/gpusort/tests/gpu_rig", "crates/gpusort/tests/onesweep", "crates/gpusort/tests/suite"]


def of_gpusort(name, images, more=()):
    """A test binary of gpusort: its images, sources, and tests."""
    return f"gpusort.{name}", (ONESWEEP + images, [*SORTS, *more], [*SORT_TESTS, f"crates/gpusort/tests/{name}.rs"])


# Of each test binary: the images that it loads, the sources that drive them, and the sources of the
# tests.
BINARIES = dict(
    [
        ("radsweep-gpu.cuda_gpu", ([], [*DEVICE, "crates/gpu/tests/ptx"], ["crates/gpu/tests/cuda_gpu.rs", "crates/gpu/tests/cuda_gpu"])),
        of_gpusort("cuda_sort", []),
        of_gpusort("cuda_adaptive", []),
        of_gpusort("cuda_ha_radix", ["ha_radix_*", "baselines"]),
        of_gpusort("cuda_satish_radix", ["satish_radix_*"]),
        # Its order by source is compiled at run time, from the headers.
        of_gpusort("cuda_satish_merge", ["satish_merge_*"], ["kernels/src", "kernels/sort/satish_merge_records.cuh", "kernels/sort/satish_merge.cuh", "kernels/sort/outcome.cuh"]),
        of_gpusort("cuda_quicksort", ["quicksort_*"]),
        of_gpusort("cuda_bucket_sort", ["bucket_sort_*"]),
        ("radsweep-sap.cuda_sap", (["*"], PAIRS, ["crates/sap/tests/common", "crates/sap/tests/cuda", "crates/sap/tests/cuda_sap.rs"])),
        ("radsweep-cli.cuda_program", (["*", "demo"], [*PROGRAM, "crates/scenes/src/device"], ["src", *LIBRARIES, "tests/cuda_program.rs"])),
    ]
)
# The benches are examples that print one JSON object a line, and CUB's. A line with the `what` and
# `n` of a CUB line is set beside it.
BENCHES = {
    "bench_onesweep": (ONESWEEP, [*SORTS, "crates/gpusort/examples/bench_onesweep.rs"]),
    "bench_nearly_sorted": (ONESWEEP, [*SORTS, "crates/gpusort/examples/bench_nearly_sorted.rs"]),
    "bench_sweep": (["*"], [*PAIRS, "crates/sap/examples/bench_sweep.rs"]),
    "cub": ([], ["benches/cub/cub_sort.cu"]),
}
SCENE_PROGRAM = "radsweep"


def wanted():
    """Every part, as (kind, name)."""
    binaries = [(kind, name) for kind in [TESTS, *SANITIZERS] for name in BINARIES]
    return binaries + [(SCENES, SCENE_PROGRAM)] + [(BENCH, name) for name in BENCHES]


def sources(kind, name, root=ROOT):
    """The files that a part depends on."""
    if kind == BENCH:
        images, paths = BENCHES[name]
    elif kind == SCENES:
        images, paths = ["*"], PROGRAM
    else:
        images, paths, tests = BINARIES[name]
        paths = paths + tests if kind == TESTS else paths
    left_out = {"cpu"} | {family for family in FAMILIES if not {"*", f"{family}_*"} & set(images)}
    prebuilt = root / "kernels" / "prebuilt"
    # The demo scenes' image is of those only that name it: no library loads it.
    is_meant = lambda image: any(fnmatch(image, pattern) for pattern in images) and (image != "demo" or "demo" in images)
    found = {path for path in prebuilt.glob("*.ptx") if is_meant(path.stem)}
    for path in (root / path for path in paths):
        inside = [path] if path.is_file() else [file for file in path.rglob("*") if file.suffix in (".rs", ".ptx")]
        if not inside:
            raise SystemExit(f"gpu-suite: {path} of {name} is not there")
        found |= {file for file in inside if not left_out & set(file.relative_to(path).parts)}
    if kind == RACECHECK:
        found = {file for file in found if file.suffix != ".rs" or "tuning" in file.name}
    return sorted(found)


def part_hash(kind, name, root=ROOT):
    """A hash over path and contents of a part's files."""
    digest = hashlib.sha256()
    for path in sources(kind, name, root):
        contents = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\n{len(contents)}\n".encode() + contents)
    return digest.hexdigest()[:16]


def kernels_hash(root=ROOT):
    """The hash that kernels/build.rs keeps beside the images: over images.txt and every .cu and
    .cuh."""
    kernels = root / "kernels"
    files = {path.relative_to(kernels).as_posix(): path for path in kernels.rglob("*.cu*") if path.suffix in (".cu", ".cuh")}
    files["images.txt"] = kernels / "images.txt"
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        contents = path.read_bytes().replace(b"\r", b"")
        digest.update(f"{name}\n{len(contents)}\n".encode() + contents)
    return digest.hexdigest()


def images_are_fresh(root=ROOT):
    made_from = root / "kernels" / "prebuilt" / "SOURCES.sha256"
    return made_from.is_file() and made_from.read_text().strip() == kernels_hash(root)
