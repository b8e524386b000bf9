"""The parts of the suite, and the hash of the sources that each depends on.

A part is one kind of run of a binary, or of a family of sorts in one: its tests at full size, its
tests under a sanitizer, the scenes, a bench. Its hash covers the kernel images in kernels/prebuilt,
which change only if the compiled code does, and the Rust of the device layer and the crates on top,
without the CPU engines and other families of sorts. The tests' own sources count only for the runs
at full size, which are cheap to repeat: a sanitizer checks the kernels. Racecheck checks what the
threads of a block share. That depends on the images and the constants in the tuning tables, so the
rest of the Rust does not count; after a change of a launch shape beside its launch, run it by hand.
On two GPUs it takes 23 minutes for all parts, so each image counts for one part: the sorts that
other parts launch too are checked in their own. Comments on lines of their own do not count, nor do
unit tests, which are in no binary of the suite. Items and statements of the feature `wgpu` count
only for its tests, which run on the Vulkan driver of the machine.
"""
import functools
import hashlib
import re
from fnmatch import fnmatch
from pathlib import Path

COMMENT_LINES = re.compile(rb"(?m)^[ \t]*//.*\n?")
UNIT_TESTS = re.compile(rb"(?m)^#\[cfg\(test\)\]\nmod \w+ \{\n(?:.*\n)*?\}\n")
# An item ends with the first line of the same indentation that can end one, as rustfmt lays it out,
# and a `let` with the first semicolon.
WGPU_ITEMS = re.compile(
    rb"""(?m)^([ \t]*)#\[cfg\(feature = "wgpu"\)\]\n"""
    rb"""(?:[ \t]*let (?:.*[^;]\n)*.*;\n|(?:(?!\1(?=\S).*[;,}]$).*\n)*\1(?=\S).*[;,}]\n)"""
)

ROOT = Path(__file__).resolve().parent.parent.parent

TESTS, VULKAN, MEMCHECK, RACECHECK, SCENES, BENCH = "tests", "vulkan", "memcheck", "racecheck", "scenes", "bench"
SANITIZERS = [MEMCHECK, RACECHECK]
KINDS = [TESTS, VULKAN, *SANITIZERS, SCENES, BENCH]

DEVICE = ["crates/libcuda-shim/src", "crates/gpu/src"]
SORTS = [*DEVICE, "crates/gpusort/src"]
PAIRS = [*SORTS, "crates/sap/src"]
PROGRAM = [*PAIRS, "crates/bench/src", "crates/common/src/byte_limit.rs"]
# Other sources that a scene runs through.
LIBRARIES = ["crates/common/src", "crates/radsweep/src", "crates/scenes/src"]
# The families with a folder in crates/gpusort/src/cuda and images of that name: they count for the
# parts that use these images.
FAMILIES = ["ha_radix", "satish_radix", "satish_merge", "quicksort", "bucket_sort"]
# Families whose tests have more than a file of their name.
TEST_FILES = {"onesweep": ["onesweep", "onesweep_small"]}
# The tests of every family sort by bit windows and move records, which Onesweep and the gather do.
ONESWEEP = ["onesweep_*", "adaptive_*", "gather"]
SORT_TESTS = ["crates/gpusort/tests/common", "crates/gpusort/tests/data", "crates/gpusort/tests/gpu_rig", "crates/gpusort/tests/suite", "crates/gpusort/tests/cuda_sort.rs"]


def of_sorts(family, images, more=()):
    """Returns the tests of a family of sorts: their images, sources, and tests."""
    return f"gpusort.cuda_sort/{family}", (ONESWEEP + images, [*SORTS, *more], [*SORT_TESTS, *(f"crates/gpusort/tests/cuda/{file}.rs" for file in TEST_FILES.get(family, [family]))])


# The tests of several devices see all of the machine.
ON_ALL_DEVICES = "radsweep-dist.cuda_dist"


def binary_of(name):
    """Returns the binary that a part runs."""
    return name.partition("/")[0]


def family_of(name):
    """Returns the family whose tests of the binary a part runs; "" for all tests."""
    return name.partition("/")[2]


# For each test binary, or family of sorts in one, the images that it loads, the sources that launch
# them, and the sources of the tests.
BINARIES = dict(
    [
        ("radsweep-gpu.cuda_gpu", ([], [*DEVICE, "crates/gpu/tests/ptx"], ["crates/gpu/tests/cuda_gpu.rs", "crates/gpu/tests/cuda_gpu"])),
        of_sorts("onesweep", []),
        of_sorts("adaptive", []),
        of_sorts("ha_radix", ["ha_radix_*", "baselines"]),
        of_sorts("satish_radix", ["satish_radix_*"]),
        # Its comparators are compiled at run time, with these headers.
        of_sorts("satish_merge", ["satish_merge_*"], ["kernels/src", "kernels/block", "kernels/common", "kernels/sort/satish_merge_records.cuh", "kernels/sort/satish_merge.cuh", "kernels/sort/outcome.cuh"]),
        of_sorts("quicksort", ["quicksort_*"]),
        of_sorts("bucket_sort", ["bucket_sort_*"]),
        ("radsweep-sap.cuda_sap", (["*"], PAIRS, ["crates/sap/tests/common", "crates/sap/tests/cuda", "crates/sap/tests/cuda_sap.rs"])),
        ("radsweep-dist.cuda_dist", (["*", "dist", "dist_segments_*", "dist_sort_32", "dist_sort_64"], [*PAIRS, "crates/sap-dist/src"], ["crates/sap-dist/tests/common", "crates/sap-dist/tests/cuda", "crates/sap-dist/tests/cuda_dist.rs"])),
        ("radsweep-cli.cuda_program", (["*", "demo"], [*PROGRAM, "crates/scenes/src/device"], ["src", *LIBRARIES, "tests/cuda_program.rs"])),
    ]
)
# The images that racecheck checks in a part, and the crate whose tuning tables count there. In
# other parts these are all images that the part loads, but those of Onesweep.
RACECHECKED = {
    "gpusort.cuda_sort/onesweep": (["onesweep_*", "gather"], "crates/gpusort"),
    "gpusort.cuda_sort/adaptive": (["adaptive_*"], "crates/gpusort"),
    "radsweep-sap.cuda_sap": (["sap", "sap_*"], "crates/sap"),
    "radsweep-dist.cuda_dist": (["dist", "dist_segments_*", "dist_sort_32", "dist_sort_64"], "crates/sap-dist"),
    "radsweep-cli.cuda_program": (["demo"], "crates/scenes"),
}
# The test binaries of the feature `wgpu`, and their sources.
ON_WGPU = ["crates/wgpu-device/src", "crates/wgpu-device/tests/validation", "kernels/wgsl", "kernels/src/wgsl.rs", "crates/gpusort/src"]
VULKAN_BINARIES = {
    "gpusort.wgpu_sort": [*ON_WGPU, "crates/gpusort/tests/common", "crates/gpusort/tests/wgpu_sort.rs"],
    "radsweep-sap.wgpu_sap": [*ON_WGPU, "crates/sap/src", "crates/sap/tests/common", "crates/sap/tests/wgpu", "crates/sap/tests/wgpu_sap.rs"],
}
# The benches: those that print one JSON object per line, and CUB's. What follows a slash is an
# option. Lines with the `what` and `n` of a CUB line are compared with it.
BENCHES = {
    "bench_onesweep": (ONESWEEP, [*SORTS, "crates/gpusort/benches/bench_onesweep.rs"]),
    "bench_nearly_sorted": (ONESWEEP, [*SORTS, "crates/gpusort/benches/bench_nearly_sorted.rs"]),
    "bench_sweep": (["*"], [*PAIRS, "crates/sap/benches/bench_sweep.rs"]),
    "bench_sweep/scenes": (["*"], [*PAIRS, "crates/sap/benches/bench_sweep.rs"]),
    "cub": ([], ["benches/cub/cub_sort.cu"]),
}
SCENE_PROGRAM = "radsweep"


def wanted():
    """Returns every part as (kind, name)."""
    binaries = [(kind, name) for kind in [TESTS, *SANITIZERS] for name in BINARIES]
    return binaries + [(VULKAN, name) for name in VULKAN_BINARIES] + [(SCENES, SCENE_PROGRAM)] + [(BENCH, name) for name in BENCHES]


def sources(kind, name, root=ROOT):
    """Returns the files that a part depends on."""
    if kind == BENCH:
        images, paths = BENCHES[name]
    elif kind == SCENES:
        images, paths = ["*"], PROGRAM
    elif kind == VULKAN:
        images, paths = [], VULKAN_BINARIES[name]
    else:
        images, paths, tests = BINARIES[name]
        paths = paths + tests if kind == TESTS else paths
        if kind == RACECHECK:
            images, crate = RACECHECKED.get(name) or ([image for image in images if image not in ONESWEEP], "crates/gpusort")
    left_out = {"cpu", "cpu.rs"} | ({"cuda", "cuda.rs"} if kind == VULKAN else {"wgpu", "wgsl.rs"})
    left_out |= {family for family in FAMILIES if not {"*", f"{family}_*"} & set(images)}
    if kind == RACECHECK and "onesweep_*" not in images:
        left_out.add("onesweep")
    prebuilt = root / "kernels" / "prebuilt"
    # The images of the demo scenes and of several ranks count only for parts that name them: the
    # broad phase of one device loads neither.
    is_named = lambda image: any(fnmatch(image, pattern) for pattern in images)
    is_meant = lambda image: image in images or (not image.startswith(("demo", "dist")) and is_named(image))
    found = {path for path in prebuilt.glob("*.ptx") if is_meant(path.stem)}
    for path in (root / path for path in paths):
        inside = [path] if path.is_file() else [file for file in path.rglob("*") if file.suffix in (".rs", ".ptx", ".cuh", ".wgsl")]
        if not inside:
            raise SystemExit(f"gpu-suite: {path} of {name} is not there")
        found |= {file for file in inside if not left_out & set(file.relative_to(path).parts)}
    if kind == RACECHECK:
        is_table = lambda file: "tuning" in file.name and root / crate in file.parents
        found = {file for file in found if file.suffix != ".rs" or is_table(file)}
    return sorted(found)


@functools.cache
def code(contents, with_wgpu):
    """Returns the contents of a file of Rust or shaders without what does not count."""
    contents = UNIT_TESTS.sub(b"", COMMENT_LINES.sub(b"", contents))
    return contents if with_wgpu else WGPU_ITEMS.sub(b"", contents)


def part_hash(kind, name, root=ROOT):
    """Returns the hash of the paths and code of a part's files."""
    digest = hashlib.sha256()
    for path in sources(kind, name, root):
        contents = path.read_bytes()
        if path.suffix != ".ptx":
            contents = code(contents, kind == VULKAN)
        digest.update(f"{path.relative_to(root).as_posix()}\n{len(contents)}\n".encode() + contents)
    return digest.hexdigest()[:16]


def kernels_hash(root=ROOT):
    """Returns the hash that kernels/build.rs stores beside the images: of images.txt and every .cu
    and .cuh."""
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
