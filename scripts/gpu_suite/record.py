"""Reads and writes gpu-suite.json: the results of the last run of each part, with the hash of its
sources.

It has {kind: {name: entry}}, and for planning "seconds", {"kind name": {trial: seconds}}: the times
of the slower trials, or estimates. An entry has `hash`, `device`, `driver`, `date`, and its
results: for trials `passed`, `failed`, `ignored`, the names `left` when the time was over or a
process failed, and what was `wrong`; for a bench its `lines`.
"""
import json
import time

from .figures import differing
from .parts import BENCH, BINARIES, KINDS, ROOT, SANITIZERS, SCENES, TESTS, VULKAN, VULKAN_BINARIES, images_are_fresh, part_hash, wanted

RECORD = ROOT / "gpu-suite.json"


def read(path=RECORD):
    try:
        return json.loads(path.read_text())
    except (OSError, json.JSONDecodeError):
        return {}


def write(record, path=RECORD):
    """Formats the record with one line per list of figures or seconds, to keep the file short."""
    lines = []
    for kind, entries in record.items():
        inner = [f'  {json.dumps(name)}: {json.dumps(entry)}' for name, entry in sorted(entries.items())]
        lines.append(f' {json.dumps(kind)}: {{\n' + ",\n".join(inner) + "\n }")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def kept(record, hashes):
    """Returns the record without the entries of other sources."""
    fresh = {
        kind: {name: entry for name, entry in record.get(kind, {}).items() if entry["hash"] == hashes.get((kind, name))}
        for kind in KINDS
    }
    return {**fresh, "seconds": record.get("seconds", {})}


def entry_of(part, device, driver, results):
    return {"hash": part, "device": device, "driver": driver, "date": time.strftime("%Y-%m-%d", time.gmtime()), **results}


def left(entry, every=None):
    """Returns the trials to run for an entry that is incomplete, or of which some failed: none if
    it was not one of `every`, as then others may be new."""
    names = (entry or {}).get("left", [])
    if not names or every is None:
        return names
    same = set(names) <= set(every) and entry["passed"] + entry["ignored"] + len(names) == len(every)
    return names if same else []


def added(before, now):
    """Adds the results of trials that were left to those of the run before."""
    counts = {key: before[key] + now[key] for key in ("passed", "ignored")}
    return {**now, **counts, "wrong": now["wrong"] or (before["wrong"] if now["left"] else [])}


def fault(kind, entry):
    """Says why an entry is not clean and complete; None if it is."""
    if entry is None:
        return "not run"
    if kind == BENCH:
        return None if entry["lines"] else "no figures"
    if entry["failed"] or entry["wrong"]:
        return f"FAILED: {'; '.join(entry['wrong']) or entry['failed']}"
    if entry["left"]:
        names = entry["left"]
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        return f"{len(names)} of {entry['passed'] + entry['ignored'] + len(names)} trials left ({shown})"
    if entry.get("devices") == 1:
        return "one device, of which its tests want several"
    return None if entry["passed"] else "nothing passed"


def faults(record, hashes):
    """Yields every part that is stale, missing, incomplete or failed, with the reason."""
    for kind, name in wanted():
        entry = record.get(kind, {}).get(name)
        if entry and entry["hash"] != hashes[kind, name]:
            yield kind, name, f"stale, its sources changed since {entry['date']}"
        elif said := fault(kind, entry):
            yield kind, name, said


def summed_up(found):
    """Formats faults in few lines: the names with the same kind and fault together, without their
    package."""
    groups = {}
    for kind, name, said in found:
        groups.setdefault((kind, said.splitlines()[0][:160]), []).append(name.split(".")[-1])
    return [f"{kind}: {said}: {' '.join(names)}" for (kind, said), names in groups.items()]


def all_hashes():
    return {part: part_hash(*part) for part in wanted()}


def check():
    if not images_are_fresh():
        raise SystemExit("gpu-suite: kernels/prebuilt is stale, so nothing recorded stands; run scripts/kernel-images")
    record = read()
    found = list(faults(record, all_hashes()))
    other = [f"docs/benchmarks.md has not the recorded figures: {row}" for row in differing(record)]
    for line in summed_up(found) + other:
        print(line, flush=True)
    if found:
        raise SystemExit(f"gpu-suite: {len(found)} of {len(wanted())} parts of gpu-suite.json do not stand; scripts/gpu-suite run --stale runs them")
    if other:
        raise SystemExit("gpu-suite: scripts/gpu-suite figures copies the recorded figures")
    devices = sorted({entry["device"] for kind in KINDS for entry in record[kind].values()})
    print(f"gpu-suite: all {len(wanted())} parts passed with these sources, on {', '.join(devices)}")


def compared(line):
    return line.get("what") in ("keys_u32", "pairs_u32_u32") and "gkeys" in line


def table(record, kinds):
    """Prints the recorded results of these kinds."""
    if {TESTS, *SANITIZERS} & set(kinds):
        print(f"\n{'binary':28} {'passed':>6} {'failed':>6} {'ignored':>7}  {'memcheck':14} racecheck")
        for name in BINARIES:
            counts = record[TESTS].get(name, {})
            numbers = [counts.get(key, "-") for key in ("passed", "failed", "ignored")]
            cells = [cell(kind, record[kind].get(name)) for kind in SANITIZERS]
            print(f"{name:28} {numbers[0]:>6} {numbers[1]:>6} {numbers[2]:>7}  {cells[0]:14} {cells[1]}")
    if VULKAN in kinds:
        print("\nthe feature wgpu on Vulkan:")
        for name in VULKAN_BINARIES:
            counts = record[VULKAN].get(name, {})
            print(f"{name:28} {' '.join(f'{counts.get(key, chr(45))} {key}' for key in ('passed', 'failed', 'ignored'))}")
    if SCENES in kinds:
        for entry in record[SCENES].values():
            print(f"\nscenes, both rules: {entry['passed']} passed, {entry['failed']} failed")
    if BENCH in kinds:
        bench_table(record[BENCH])
    print()


def cell(kind, entry):
    said = fault(kind, entry)
    return said.split(":")[0] if said else "clean"


def bench_table(entries):
    yardstick = entries.get("cub", {"lines": [], "device": None})
    cub = {(line["what"], line["n"]): line["gkeys"] for line in yardstick["lines"] if compared(line)}
    copies = [line["gb_s"] for line in yardstick["lines"] if line["what"] == "copy"]
    print(f"\ncopy: {copies[0] if copies else '-'} GB/s read plus written")
    print(f"{'bench':20} {'what':16} {'n':>11} {'Gkeys/s':>9} {'CUB':>9} {'ratio':>6}")
    for name, entry in entries.items():
        same_device = entry["device"] == yardstick["device"]
        for line in filter(compared, entry["lines"] if name != "cub" else []):
            theirs = cub.get((line["what"], line["n"])) if same_device else None
            beside = f"{theirs:9.3f} {line['gkeys'] / theirs:6.2f}" if theirs else f"{'-':>9} {'-':>6}"
            print(f"{name:20} {line['what']:16} {line['n']:11} {line['gkeys']:9.3f} {beside}")
    for line in (line for entry in entries.values() for line in entry["lines"] if "scene" in line):
        print(f"{line['scene']:37} {line['n']:11} {line['ms']:9.3f} ms {line['pairs']:9} pairs")
