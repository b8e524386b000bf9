"""Compares the GPU figures of docs/benchmarks.md with those of gpu-suite.json, or copies them.

A table is found by its head. Its rows are named by their first cell; one without a name is the next
size of the row above. What is not recorded on the GPU of the page stays as it is.
"""
from .parts import BENCH, ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
GPU = "H200"
UPDATES = {
    "`uniform`, random boxes": "uniform",
    "the same, 99 of 100 static": "uniform, 99 % static",
    "the same, not moving": "uniform, not moving",
    "`ccd_cloth-ball_faces`, cloth triangles": "ccd_cloth-ball_faces",
}
# The bench of a sort, and how the names in its lines begin.
SORTS = {"`onesweep`": ("bench_onesweep", ""), "CUB 3.5": ("cub", ""), "libcusort": ("cub", "libcusort_")}


def shown(figure, unit=""):
    return f"{figure:#.2g}".rstrip(".") + unit


def update(cells, name, lines):
    n = int(cells[2].replace(",", ""))
    ms = {line["scene"]: line["ms"] for line in lines.get("bench_sweep", []) if line["n"] == n}
    for column, scene in ((5, UPDATES.get(name)), (6, f"{UPDATES.get(name)}, as a graph")):
        if scene in ms:
            cells[column] = f" {shown(ms[scene], ' ms')} "


def sort(cells, name, lines):
    bench, prefix = SORTS.get(name, (None, ""))
    rates = {(line["n"], line["what"]): line["gkeys"] for line in lines.get(bench, []) if "gkeys" in line}
    for column, exponent in enumerate((16, 20, 24, 26), 2):
        both = [rates.get((1 << exponent, prefix + what)) for what in ("keys_u32", "pairs_u32_u32")]
        if all(both):
            cells[column] = f" {' / '.join(map(shown, both))} "


def filled(page, record):
    """Returns the page with the figures of the record."""
    lines = {name: entry["lines"] for name, entry in record.get(BENCH, {}).items() if GPU in entry["device"]}
    fill, name, rows = None, "", []
    for row in page.splitlines():
        cells = row.split("|")
        if f"NVIDIA {GPU} (boxes on the device)" in row or f"pairs, {GPU}, G/s" in row:
            fill = update if "boxes" in cells[1] else sort
        elif not row.startswith("|"):
            fill = None
        elif fill and not row.startswith("|---"):
            name = cells[1].strip() or name
            fill(cells, name, lines)
        rows.append("|".join(cells))
    return "\n".join(rows) + "\n"


def differing(record):
    """Returns the rows of the page that differ from the record."""
    page = PAGE.read_text()
    return [row for row, is_now in zip(page.splitlines(), filled(page, record).splitlines()) if row != is_now]
