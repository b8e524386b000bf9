"""Tests of the suite's scripts, with replacements for the device, the sanitizer and the binaries.

usage: cd scripts && python3 -B -m unittest gpu_suite.test_suite
"""
import functools
import io
import json
import os
import shutil
import tempfile
import threading
import time
import unittest
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from . import figures, parts, record, run, schedule
from .parts import BENCH, MEMCHECK, RACECHECK, TESTS, VULKAN
from .schedule import Job

SORT, GPU, WGPU = "gpusort.cuda_sort/onesweep", "radsweep-gpu.cuda_gpu", "gpusort.wgpu_sort"

# A binary of trials that the `exact` and `skip` options choose from, as libtest-mimic makes them. A
# trial named `slow` sleeps.
BINARY = """#!/usr/bin/env python3
import sys, time
names = {names}
words = sys.argv[1:]
if "--list" in words:
    print("\\n".join(f"{{name}}: test" for name in names), "\\n", sep="\\n")
    sys.exit()
assert "--exact" in words and "--test-threads=1" in words
skipped = {{after for word, after in zip(words, words[1:]) if word == "--skip"}}
chosen = [name for name in names if name not in skipped]
print(f"running {{len(chosen)}} tests", flush=True)
failed = 0
for name in chosen:
    time.sleep({slow} if "slow" in name else 0)
    failed += "broken" in name
    print(f"test {{name}} ... {{'FAILED' if 'broken' in name else 'ok'}}", flush=True)
print(f"test result: ok. {{len(chosen) - failed}} passed; {{failed}} failed; 0 ignored; 0 measured; {{len(skipped)}} filtered out")
sys.exit(101 if failed else 0)
"""
SANITIZER = """#!/usr/bin/env bash
while [ "${1#--}" != "$1" ]; do
    case $1 in --tool) tool=$2 ;; --force-blocking-launches) shift; continue ;; esac
    shift 2
done
"$@"; code=$?
if [ $tool = racecheck ]; then echo "========= RACECHECK SUMMARY: HAZARDS hazards displayed (0 errors, 0 warnings)"
else echo "========= ERROR SUMMARY: 0 errors"; fi
exit $code
"""
PART_HASH = functools.cache(parts.part_hash)  # no whole run changes a source


class Sources(unittest.TestCase):
    def test_every_part_has_files(self):
        for kind, name in parts.wanted():
            self.assertTrue(parts.sources(kind, name), (kind, name))

    def test_every_image_is_of_some_binary_that_is_not_of_all(self):
        named = {path for name, (images, _, _) in parts.BINARIES.items() if "*" not in images for path in parts.sources(RACECHECK, name)}
        lost = [path.name for path in (parts.ROOT / "kernels" / "prebuilt").glob("*.ptx") if path not in named]
        self.assertEqual(sorted(lost), ["demo.ptx", "dist.ptx", "dist_segments_0.ptx", "dist_segments_4.ptx", "dist_segments_8.ptx", "dist_sort_32.ptx", "dist_sort_64.ptx", "sap.ptx", "sap_90.ptx"])

    def test_a_change_is_of_the_parts_that_use_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for place in ("crates", "kernels", "src", "benches", "tests"):
                shutil.copytree(parts.ROOT / place, root / place)
            for image in (root / "kernels" / "prebuilt").glob("*.ptx"):
                image.write_bytes(b"short\n")  # they are long and hashed often
            before = {part: parts.part_hash(*part, root) for part in parts.wanted()}

            def changed(path, line=b"\n"):
                file = root / path
                kept = file.read_bytes()
                file.write_bytes(kept + line)
                now = {part for part in before if parts.part_hash(*part, root) != before[part]}
                file.write_bytes(kept)
                return now

            vulkan = {(VULKAN, name) for name in parts.VULKAN_BINARIES}
            everything = {part for part in before if part != (BENCH, "cub")} - vulkan
            whole = {(kind, name) for kind in (TESTS, MEMCHECK) for name in ("radsweep-sap.cuda_sap", "radsweep-dist.cuda_dist", "radsweep-cli.cuda_program")}
            whole |= {(parts.SCENES, "radsweep"), (BENCH, "bench_sweep"), (BENCH, "bench_sweep/scenes")}
            rust = lambda found: {part for part in found if part[0] != RACECHECK}
            raced = lambda found: {name for kind, name in found if kind == RACECHECK}
            self.assertEqual(changed("crates/gpu/src/stream.rs"), rust(everything))
            self.assertEqual(changed("kernels/prebuilt/sap.ptx"), whole | {(RACECHECK, "radsweep-sap.cuda_sap")})
            self.assertEqual(raced(changed("kernels/prebuilt/onesweep_32.ptx")), {SORT})
            self.assertEqual(raced(changed("kernels/prebuilt/demo.ptx")), {"radsweep-cli.cuda_program"})
            self.assertEqual(changed("crates/sap/src/cuda/find/sweep.rs"), rust(whole))
            self.assertEqual(changed("crates/sap/src/cpu/mod.rs"), set())
            self.assertEqual(changed("crates/gpu/src/stream.rs", b"    /// A comment.\n"), set())
            unit_tests = b"#[cfg(test)]\nmod tests {\n    fn f() {\n    }\n}\n"
            self.assertEqual(changed("crates/sap/src/cuda/events.rs", unit_tests), set())
            self.assertEqual(changed("crates/sap/src/cuda/events.rs", unit_tests + b"fn g() {}\n"), rust(whole))
            of_wgpu = b'#[cfg(feature = "wgpu")]\n#[must_use]\npub fn f(\n    a: u32,\n) -> u32 {\n    a;\n}\n'
            sap_on_vulkan = {(VULKAN, "radsweep-sap.wgpu_sap")}
            self.assertEqual(changed("crates/sap/src/lib.rs", of_wgpu), sap_on_vulkan)
            self.assertEqual(changed("crates/sap/src/lib.rs", of_wgpu + b"fn g() {}\n"), rust(whole) | sap_on_vulkan)
            self.assertEqual(changed("crates/sap/src/lib.rs", of_wgpu.replace(b"feature", b"not_feature")), rust(whole) | sap_on_vulkan)
            self.assertEqual(changed("crates/sap/src/wgpu/search.rs"), sap_on_vulkan)
            self.assertEqual(changed("kernels/wgsl/sort/radix.wgsl"), vulkan)
            self.assertEqual(changed("kernels/wgsl/sort/radix.wgsl", b"// A comment.\n"), set())
            quick = {(kind, "gpusort.cuda_sort/quicksort") for kind in (TESTS, RACECHECK, MEMCHECK)}
            self.assertEqual(changed("kernels/prebuilt/quicksort_64.ptx"), quick | whole)
            self.assertEqual(changed("crates/gpusort/src/cuda/quicksort/mod.rs"), rust(quick | whole))
            self.assertEqual(changed("crates/gpusort/src/cuda/quicksort/tuning.rs"), quick | whole)
            self.assertEqual(changed("crates/gpusort/tests/cuda/quicksort.rs"), {(TESTS, "gpusort.cuda_sort/quicksort")})
            self.assertEqual(changed("benches/cub/cub_sort.cu"), {(BENCH, "cub")})
            self.assertTrue(parts.images_are_fresh(root))
            with open(root / "kernels" / "sap" / "sap.cu", "a", encoding="utf-8") as file:
                file.write("\n")
            self.assertFalse(parts.images_are_fresh(root))


class Planning(unittest.TestCase):
    def test_shares_hold_every_trial_once_and_are_even(self):
        trials = [f"t{i}" for i in range(40)]
        slow = {"t3": 30.0, "t7": 28.0, "t9": 31.0}
        for takes, most in (({trial: slow.get(trial, 0.3) for trial in trials}, 31.0), ({trial: 5.0 for trial in trials}, 25.0)):
            shares = schedule.dealt(trials, takes, 25)
            self.assertEqual(sorted(sum(shares, [])), sorted(trials))
            self.assertEqual(max(sum(takes[trial] for trial in share) for share in shares), most)
        self.assertEqual(schedule.dealt([], {}, 25), [])

    def test_what_a_trial_will_take(self):
        self.assertEqual(schedule.guess(TESTS, "soak::closed"), 40)
        self.assertEqual(schedule.guess(RACECHECK, "soak::closed"), schedule.TRIAL[RACECHECK])
        seconds = {"a": 4.0, "b": 4.0, "c": 4.0}
        schedule.learn(seconds, {"a": 0.2, "b": 7.123})
        self.assertEqual(seconds, {"b": 7.1, "c": 4.0})
        (job,) = schedule.jobs_of(RACECHECK, SORT, ["a", "b", "c"], ["a", "b", "c"], seconds)
        self.assertAlmostEqual(job.seconds, 11.1 + schedule.QUICK_TRIAL)

    def test_racecheck_leaves_out_what_it_cannot_follow(self):
        every = ["fills", "many_threads", "scratch"]
        self.assertEqual(schedule.wanted_trials(RACECHECK, GPU, every), ["fills", "scratch"])
        self.assertEqual(schedule.wanted_trials(MEMCHECK, GPU, every), every)
        sap = ["size_9::sweep::open", "size_9::sweep::closed", "soak::open_with_margins"]
        self.assertEqual(schedule.wanted_trials(RACECHECK, "radsweep-sap.cuda_sap", sap), sap[1:])

    def test_trials_are_named_as_in_the_sources(self):
        named = [*schedule.ALONE.items(), *schedule.ALONE_IF_FULL.items(), *((name, pattern) for (_, name), pattern in schedule.LEFT_OUT.items())]
        for name, pattern in named:
            tests = "".join(path.read_text() for path in parts.sources(TESTS, name) if path.suffix == ".rs")
            for trial in pattern.split("|"):
                self.assertIn(trial.removesuffix(".*").removeprefix(".*::"), tests)

    def test_trials_that_need_a_device_have_their_own_jobs(self):
        every = ["fills", "events", "many_threads", "scratch", "done_before"]
        jobs = schedule.jobs_of(TESTS, GPU, every[:4], every, {})
        alone = [job for job in jobs if job.alone]
        self.assertEqual([job.trials for job in alone], [["events", "many_threads"]])
        self.assertEqual(sorted(alone[0].others), ["done_before", "fills", "scratch"])
        self.assertEqual(sorted(sum((job.trials for job in jobs), [])), sorted(every[:4]))
        sap, overlaps = "radsweep-sap.cuda_sap", ["memory::everything_overlaps_is_counted", "chunks"]
        for kind, count in ((TESTS, 1), (MEMCHECK, 0)):
            self.assertEqual(sum(job.alone for job in schedule.jobs_of(kind, sap, overlaps, overlaps, {})), count)

    def test_what_a_device_starts_next(self):
        def job(kind, seconds=10.0, alone=False):
            return Job(kind, SORT, ["t"], [], alone=alone, seconds=seconds)

        race, mem, alone = job(RACECHECK), job(MEMCHECK), job(MEMCHECK, alone=True)
        self.assertIs(schedule.pick([race, mem, alone], [], 99), alone)
        self.assertIs(schedule.pick([race, mem], [alone], 99), None)
        self.assertIs(schedule.pick([race, alone, mem], [mem], 99), mem)
        self.assertIs(schedule.pick([race], [mem], 99), None)
        self.assertIs(schedule.pick([race], [race] * schedule.AT_ONCE[RACECHECK], 99), None)
        self.assertIs(schedule.pick([race], [], 9), None)
        self.assertIs(schedule.pick([job(RACECHECK, 20), race], [], 12), race)

    def test_devices_are_kept_busy_with_what_may_share_them(self):
        lock, running, faults, done = threading.Lock(), [[], []], [], []

        def work(job, device):
            with lock:
                running[device].append(job)
                kinds = {other.kind for other in running[device]}
                if len(kinds) > 1 or len(running[device]) > schedule.AT_ONCE[job.kind] or (any(other.alone for other in running[device]) and len(running[device]) > 1):
                    faults.append(list(running[device]))
            time.sleep(job.seconds)
            with lock:
                running[device].remove(job)
                done.append((job, device))

        jobs = [Job(kind, SORT, ["t"], [], alone=alone, seconds=0.02 + 0.001 * i) for i in range(12) for kind in (RACECHECK, MEMCHECK) for alone in (False, i % 6 == 0)]
        began = time.monotonic()
        left = schedule.spread(schedule.in_order(jobs, [RACECHECK, MEMCHECK]), 2, work, lambda: 60)
        self.assertEqual((left, faults, len(done)), ([], [], len(jobs)))
        self.assertEqual({device for _, device in done}, {0, 1})
        self.assertLess(time.monotonic() - began, 0.6 * sum(job.seconds for job in jobs))

    def test_a_failing_scheduler_ends(self):
        def work(job, device):
            raise ValueError("broken")

        with self.assertRaises(ValueError):
            schedule.spread([Job(TESTS, SORT, ["t"], []) for _ in range(5)], 2, work, lambda: 60)


class Records(unittest.TestCase):
    ENTRY = {"hash": "h", "device": "d", "driver": "v", "date": "today", "passed": 5, "failed": 0, "ignored": 0, "left": [], "wrong": []}

    def test_faults(self):
        hashes = {part: "h" for part in parts.wanted()}
        full = {kind: {} for kind in parts.KINDS}
        for kind, name in hashes:
            full[kind][name] = {**self.ENTRY, "lines": [{"n": 1}]}
        self.assertEqual(list(record.faults(full, hashes)), [])
        for change, words in [
            ({"hash": "other"}, "stale"), ({"left": ["a"]}, "1 of 6 trials left (a)"), ({"wrong": ["it broke"]}, "FAILED: it broke"),
            ({"failed": 2}, "FAILED"), ({"passed": 0}, "nothing passed"),
        ]:
            full[RACECHECK][SORT] = {**self.ENTRY, **change}
            ((kind, name, said),) = record.faults(full, hashes)
            self.assertEqual((kind, name), (RACECHECK, SORT))
            self.assertIn(words, said)
        del full[RACECHECK][SORT]
        del full[RACECHECK][GPU]
        self.assertEqual(record.summed_up(record.faults(full, hashes)), ["racecheck: not run: cuda_gpu cuda_sort/onesweep"])

    def test_what_is_left_or_failed_is_run_again(self):
        self.assertEqual(record.left({**self.ENTRY, "left": ["a", "b"]}), ["a", "b"])
        self.assertEqual(record.left({**self.ENTRY, "left": ["a"], "wrong": ["it"]}), ["a"])
        self.assertEqual(record.left({**self.ENTRY, "left": ["a", "b"]}, list("abcdefg")), ["a", "b"])
        # A trial is new, or was renamed: all run again.
        self.assertEqual(record.left({**self.ENTRY, "left": ["a", "b"]}, list("abcdefgh")), [])
        self.assertEqual(record.left({**self.ENTRY, "left": ["a", "z"]}, list("abcdefg")), [])
        self.assertEqual(record.left(None), [])
        both = record.added({**self.ENTRY, "left": ["a", "b"]}, {"passed": 1, "failed": 0, "ignored": 0, "left": ["b"], "wrong": []})
        self.assertEqual((both["passed"], both["left"]), (6, ["b"]))
        failed = {**self.ENTRY, "failed": 1, "left": ["a"], "wrong": ["it"]}
        again = {"passed": 1, "failed": 0, "ignored": 0, "left": [], "wrong": []}
        both = record.added(failed, again)
        self.assertEqual((both["passed"], both["failed"], both["wrong"]), (6, 0, []))
        self.assertEqual(record.added(failed, {**again, "passed": 0, "left": ["a"]})["wrong"], ["it"])

    def test_other_sources_are_dropped_and_the_file_comes_back(self):
        old = {TESTS: {SORT: self.ENTRY, GPU: {**self.ENTRY, "hash": "other"}}, "seconds": {f"tests {SORT}": {"a": 2.0}}}
        kept = record.kept(old, {(TESTS, SORT): "h", (TESTS, GPU): "h"})
        self.assertEqual((kept[TESTS], kept["seconds"]), ({SORT: self.ENTRY}, old["seconds"]))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "record.json"
            record.write(kept, path)
            self.assertEqual(record.read(path), kept)


class Figures(unittest.TestCase):
    def test_figures_are_copied_to_every_row_that_has_some(self):
        page = figures.PAGE.read_text()
        sweep = [{"scene": scene + graph, "n": n, "ms": 1.234} for scene in figures.UPDATES.values() for n in (10**4, 92_230, 10**6) for graph in ("", ", as a graph")]
        lines = {"bench_sweep": sweep}
        for bench, prefix in figures.SORTS.values():
            rates = [{"what": prefix + what, "n": 1 << 20, "gkeys": 56.78} for what in ("keys_u32", "pairs_u32_u32")]
            lines.setdefault(bench, []).extend(rates)
        record_of = lambda device: {BENCH: {name: {"device": device, "lines": each} for name, each in lines.items()}}
        now = figures.filled(page, record_of(f"NVIDIA {figures.GPU}"))
        for name in (*figures.UPDATES, *figures.SORTS):
            rows = [row for row in now.splitlines() if row.startswith(f"| {name} |")]
            self.assertTrue(len(rows) == 1 and ("1.2 ms" in rows[0] or "57 / 57" in rows[0]), name)
        self.assertRegex(now, r"\n\| \| 1,000,000 \|.*\| 1\.2 ms \| 1\.2 ms \|")
        self.assertEqual(figures.filled(page, {}), page)
        self.assertEqual(figures.filled(page, record_of("NVIDIA of another page")), page)


class Devices(unittest.TestCase):
    def test_tests_of_several_devices_see_all_of_them(self):
        job = lambda kind, name: SimpleNamespace(kind=kind, name=name)
        self.assertEqual(run.visible(job(TESTS, "radsweep-dist.cuda_dist"), 1, 3), "1,0,2")
        self.assertEqual(run.visible(job(MEMCHECK, "radsweep-dist.cuda_dist"), 1, 3), "1")
        self.assertEqual(run.visible(job(TESTS, GPU), 2, 3), "2")
        self.assertIn(parts.ON_ALL_DEVICES, parts.BINARIES)
        passed = {"passed": 1, "failed": 0, "ignored": 0, "left": [], "wrong": []}
        found = [record.fault(TESTS, {**passed, "devices": devices}) is None for devices in (1, 2)]
        self.assertEqual(found, [False, True])


class WholeRun(unittest.TestCase):
    """Runs a packed folder with the replacements."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.pack = self.folder / "pack"
        for place in ("tests", "benches", "logs"):
            (self.pack / place).mkdir(parents=True)
        self.put(self.pack / "radsweep", "#!/bin/sh\n")
        self.put(self.folder / "nvidia-smi", "#!/bin/sh\necho 'Stand-in, 1.0'\necho 'Stand-in, 1.0'\n")
        self.tool("0")
        self.put(self.folder / "compiler", "import sys; print('x', file=open(sys.argv[1] + '.log', 'a')); sys.exit('bad' in sys.argv[1])")
        self.put(self.folder / "sap.ptx", "")
        binaries = {SORT: parts.BINARIES[SORT], GPU: parts.BINARIES[GPU]}
        for module, name, value in [
            (run, "PACK", self.pack), (run, "IMAGES", self.folder), (run, "COMPILER", self.folder / "compiler"),
            (run, "BUNDLE", self.pack / "none"), (record, "RECORD", self.folder / "record.json"),
            (run, "unpack", lambda hashes: {"missing": []}), (run, "BINARIES", binaries), (run, "VULKAN_BINARIES", [WGPU]), (record, "read", lambda: self.read()), (record, "part_hash", PART_HASH),
        ]:
            patch = mock.patch.object(module, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        patch = mock.patch.dict(os.environ, {"PATH": f"{self.folder}:{os.environ['PATH']}", "OUT": str(self.pack / "logs")})
        patch.start()
        self.addCleanup(patch.stop)

    def put(self, path, text):
        path.write_text(text)
        path.chmod(0o755)

    def tool(self, hazards):
        self.put(self.folder / "compute-sanitizer", SANITIZER.replace("HAZARDS", hazards))

    def binaries(self, more=(), slow=0.2):
        sort = [f"sorts: {i}" for i in range(20)] + list(more)
        self.put(self.pack / "tests" / parts.binary_of(SORT), BINARY.format(names=sort, slow=slow))
        self.put(self.pack / "tests" / GPU, BINARY.format(names=["fills", "many_threads", "scratch"], slow=slow))
        self.put(self.pack / "tests" / WGPU, BINARY.format(names=["on wgpu"], slow=slow))

    def read(self):
        path = self.folder / "record.json"
        return json.loads(path.read_text()) if path.is_file() else {}

    def run_suite(self, only, stale=False, within=60.0, limit=60.0):
        options = SimpleNamespace(only=only, stale=stale, filter="", within=within, limit=limit)
        said = io.StringIO()
        with redirect_stdout(said), self.assertRaises(SystemExit) as ended:
            run.run(options)
        return ended.exception.code, said.getvalue()

    def test_a_clean_run(self):
        self.binaries(["slow one"], slow=1.1)
        code, said = self.run_suite("tests,sanitizer")
        self.assertEqual(code, 0, said)
        found = self.read()
        for kind in (TESTS, RACECHECK, MEMCHECK):
            # Racecheck leaves out one of the three trials.
            on_gpu = 2 if kind == RACECHECK else 3
            self.assertEqual([found[kind][name]["passed"] for name in (SORT, GPU)], [21, on_gpu], said)
            self.assertEqual(record.fault(kind, found[kind][SORT]), None)
            self.assertEqual(f"{kind} cuda_gpu 2/2 alone: " in said, kind != RACECHECK)
        self.assertEqual(list(found["seconds"][f"tests {SORT}"]), ["slow one"])
        code, said = self.run_suite("vulkan")
        self.assertEqual((code, self.read()[VULKAN][WGPU]["passed"], "1 passed 0 failed" in said), (0, 1, True), said)
        found = self.read()
        # What is left of a list that is no longer so is replaced.
        entry = {**found[VULKAN][WGPU], "passed": 0, "left": ["device"]}
        record.write({**found, VULKAN: {WGPU: entry}}, self.folder / "record.json")
        code, said = self.run_suite("vulkan", stale=True)
        self.assertEqual((code, self.read()[VULKAN][WGPU]["passed"], self.read()[VULKAN][WGPU]["left"]), (0, 1, []), said)
        found = self.read()
        # Nothing is left to run.
        code, said = self.run_suite("tests,vulkan,sanitizer", stale=True)
        self.assertEqual((code, self.read()), (0, found))
        self.assertNotIn("trials", said)

    def test_each_image_is_compiled_once_before_the_trials(self):
        self.binaries()
        code, said = self.run_suite("tests")
        self.assertEqual((code, (self.folder / "sap.ptx.log").read_text()), (0, "x\n"), said)
        self.assertLess(said.index("1 images compiled"), said.index("passed"), said)
        self.put(self.folder / "bad.ptx", "")
        code, said = self.run_suite("tests")
        self.assertEqual(code, 1)
        self.assertIn("an image does not compile: exit 1", said)

    def test_failures_and_findings_are_recorded(self):
        self.binaries(["broken one"])
        code, said = self.run_suite("tests")
        self.assertEqual(code, 1)
        entry = self.read()[TESTS][SORT]
        self.assertEqual((entry["passed"], entry["failed"], len(entry["wrong"])), (20, 1, 1))
        self.assertIn("broken one", entry["wrong"][0])
        self.assertEqual(entry["left"], ["broken one"])
        code, said = self.run_suite("tests", stale=True)
        self.assertEqual((code, self.read()[TESTS][SORT]["passed"], self.read()[TESTS][SORT]["failed"]), (1, 20, 1), said)
        self.binaries()
        self.tool("3")
        code, said = self.run_suite("racecheck")
        self.assertEqual(code, 1)
        self.assertIn("3 hazards", self.read()[RACECHECK][GPU]["wrong"][0])
        self.tool("0")
        code, said = self.run_suite("racecheck", stale=True)
        self.assertEqual((code, self.read()[RACECHECK][GPU]["wrong"]), (0, []), said)

    def test_what_time_does_not_suffice_for_is_left_and_resumed(self):
        self.binaries([f"slow {i}" for i in range(4)] + ["last"], slow=2)
        code, said = self.run_suite("tests", within=5)
        self.assertEqual((code, SORT in self.read().get(TESTS, {})), (0, False), said)
        self.assertIn("tests cuda_sort/onesweep 1/2: not run, out of time", said)
        with mock.patch.dict(schedule.TRIAL, {TESTS: 0.01}):
            (self.folder / "record.json").unlink(missing_ok=True)
            code, said = self.run_suite("tests", within=3)
        self.assertEqual(code, 0, said)
        entry = self.read()[TESTS][SORT]
        self.assertGreater(len(entry["left"]), 0)
        self.assertEqual(entry["passed"] + len(entry["left"]), 25)
        self.assertIn("left", record.fault(TESTS, entry))
        self.assertIn("out of time after", said)
        code, said = self.run_suite("tests", stale=True)
        entry = self.read()[TESTS][SORT]
        self.assertEqual((code, entry["passed"], entry["left"]), (0, 25, []), said)

    def test_a_process_that_hangs_is_ended_and_fails(self):
        self.binaries(["slow one"], slow=30)
        code, said = self.run_suite("tests", limit=1.0)
        self.assertEqual(code, 1)
        self.assertIn("out of time", self.read()[TESTS][SORT]["wrong"][0])
        self.assertRegex((self.pack / "logs" / "tests.log").read_text(), r"stopped: thread \d+ of \w+: state [SR], ran \d")


if __name__ == "__main__":
    unittest.main()
