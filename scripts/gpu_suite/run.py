"""Runs the packed suite on a machine with GPUs, and records the results."""
from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from . import record as records
from .parts import BENCH, BENCHES, BINARIES, KINDS, MEMCHECK, ON_ALL_DEVICES, RACECHECK, ROOT, SANITIZERS, SCENE_PROGRAM, SCENES, TESTS, VULKAN, VULKAN_BINARIES, binary_of, family_of
from .schedule import guess, in_order, jobs_of, learn, spread, wanted_trials

PACK = ROOT / ".gpu"
BUNDLE = PACK / "pack.tar.xz"
IMAGES = ROOT / "kernels" / "prebuilt"
COMPILER = Path(__file__).with_name("compile_image.py")
# The options of each tool, and its summary of a clean run, which each process of a job prints. API
# errors that a test provokes are no findings. Racecheck looks at one block at a time, so launches
# may wait for each other. Where they do not, and several threads launch, it may never end (version
# 2025.3.1: it was seen to wait for a lock of the driver that a waiting copy held).
TOOLS = {
    RACECHECK: (["--force-blocking-launches"], r"RACECHECK SUMMARY: 0 hazards"),
    MEMCHECK: (["--report-api-errors", "no"], r"ERROR SUMMARY: 0 errors"),
}


class Done(NamedTuple):
    """A finished process: its exit code (None: out of time), whether the time of the whole run was
    over, its output, its seconds, and the seconds at which each line arrived."""

    code: int | None
    cut: bool
    out: str
    err: str
    seconds: float
    times: list

    def why(self):
        return "out of time" if self.code is None else f"exit {self.code}"


def threads_of(session):
    """Returns a line for each thread of a session: its state and the seconds that it ran tell a
    thread that waits from one that works."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/task/[0-9]*/stat"):
        try:
            head, _, tail = path.read_text(errors="replace").rpartition(")")
        except OSError:
            continue  # it has ended
        fields = tail.split()
        if int(fields[3]) == session:
            ran = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            lines.append(f"stopped: thread {head.replace(' (', ' of ', 1)}: state {fields[0]}, ran {ran:.1f} s\n")
    return lines


class Run:
    def __init__(self, options):
        self.options = options
        self.began = time.monotonic()
        self.deadline = self.began + options.within
        self.failures = []
        self.resumed = set()  # the parts of which only what was left runs
        self.lock = threading.Lock()
        self.logs = Path(os.environ.get("OUT") or PACK / "logs")
        self.logs.mkdir(parents=True, exist_ok=True)
        self.data = PACK / "data"
        self.environment = {**os.environ, "RADSWEEP_REQUIRE_CUDA": "1"}
        if self.data.is_dir():
            self.environment["RADSWEEP_DATA"] = str(self.data)
        self.environment["PATH"] += ":/usr/local/cuda/bin"
        for program in [PACK / "radsweep", *(PACK / "tests").iterdir(), *(PACK / "benches").iterdir()]:
            program.chmod(0o755)

    def remaining(self):
        return self.deadline - time.monotonic()

    def say(self, line):
        print(f"{time.monotonic() - self.began:5.0f} s  {line}", flush=True)

    def fail(self, line):
        self.failures.append(line)
        self.say(f"FAILED {line}")

    def tool(self, name):
        return shutil.which(name, path=self.environment["PATH"])

    def chosen(self, names):
        return [name for name in names if self.options.filter in name]

    def call(self, log, command, **environment):
        """Runs one process under the limits; its output goes to the log too, and its threads if it
        is stopped."""
        began = time.monotonic()
        killed = threading.Event()
        threads = []
        with tempfile.TemporaryFile("w+", errors="replace") as errors, subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, text=True,
            errors="replace", cwd=PACK, env={**self.environment, **environment}, start_new_session=True,
        ) as process:

            def kill():
                killed.set()
                threads.extend(threads_of(process.pid))
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

            timer = threading.Timer(max(0.0, min(self.options.limit, self.remaining())), kill)
            timer.start()
            lines = [(time.monotonic() - began, line) for line in process.stdout]
            code = process.wait()
            timer.cancel()
            errors.seek(0)
            err = errors.read()
        times, out = [at for at, _ in lines], "".join(line for _, line in lines)
        code, cut = (None, self.remaining() <= 0) if killed.is_set() else (code, False)
        done = Done(code, cut, out, err, time.monotonic() - began, times)
        words = " ".join(str(word).removeprefix(f"{PACK}/") for word in command)
        words = re.sub(r"(--skip .+?)( --skip .+)+", r"\1 ...", words)
        with self.lock, open(self.logs / f"{log}.log", "a", encoding="utf-8") as file:
            file.write(f"\n=== {words}  ({done.why()}, {done.seconds:.1f} s)\n{out}{err}" + "".join(threads))
        return done

    def device(self):
        """Returns the name and driver of the first device, and counts the devices."""
        done = self.call("device", ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
        if done.code != 0:
            raise SystemExit(f"gpu-suite: nvidia-smi found no device: {done.err.strip()}")
        self.devices = len(done.out.splitlines())
        return [word.strip() for word in done.out.splitlines()[0].split(",")]

    def compile_images(self):
        """Has the driver compile each image once. Without that, each process that starts before the
        first one is done compiles what it loads again."""
        images = sorted(IMAGES.glob("*.ptx"), key=lambda image: -image.stat().st_size)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            done = list(pool.map(lambda image: self.call("device", [sys.executable, "-B", COMPILER, image]), images))
        for one in done:
            if one.code != 0:
                self.fail(f"an image does not compile: {one.why()} {last(one.err)}")
        self.say(f"{len(images)} images compiled, {sum(one.seconds for one in done):.0f} s together")

    # Trials

    def listed(self, kind, name):
        """Returns the names of a part's trials, at the sizes of this kind of run."""
        done = self.call("device", [PACK / "tests" / binary_of(name), "--list"], **choice(kind, name))
        names = re.findall(r"^(?:\[[^\]]*\] )?(.+): test$", done.out, re.M)
        if done.code != 0 or not names:
            self.fail(f"{kind} {name}: no list of trials, {done.why()} {last(done.err)}")
        return names

    def trials(self, kinds, record, enter):
        """Runs the tests of these kinds on all devices; `enter(kind, name, results)` records the
        results of a binary."""
        if set(kinds) & set(SANITIZERS) and self.tool("compute-sanitizer") is None:
            self.fail("compute-sanitizer is not on the PATH")
            kinds = [kind for kind in kinds if kind not in SANITIZERS]
        due = [(kind, name) for kind in kinds for name in self.chosen(VULKAN_BINARIES if kind == VULKAN else BINARIES) if self.due(record, kind, name)]
        with ThreadPoolExecutor(4 * self.devices) as pool:
            # Both sanitizers run the same trials.
            which = {(kind in SANITIZERS, name): (kind, name) for kind, name in due}
            lists = dict(zip(which, pool.map(lambda part: self.listed(*part), which.values())))
        jobs, results = [], {}
        for kind, name in due:
            every = lists[kind in SANITIZERS, name]
            wanted = wanted_trials(kind, name, every)
            left = records.left(record[kind].get(name), wanted) if self.options.stale else []
            if left:
                self.resumed.add((kind, name))
            left = left or wanted
            seconds = record["seconds"].setdefault(f"{kind} {name}", {trial: guess(kind, trial) for trial in every})
            jobs += jobs_of(kind, name, left, every, seconds)
            results[kind, name] = {"passed": 0, "failed": 0, "ignored": 0, "left": left, "wrong": []}
            if sees_all(kind, name):
                results[kind, name]["devices"] = self.devices

        def work(job, device):
            found, took, line = self.job(job, device)
            with self.lock:
                result = results[job.kind, job.name]
                for key in ("passed", "failed", "ignored"):
                    result[key] += found[key]
                result["wrong"] = result["wrong"] + found["wrong"]
                gone = set(found["ran"])
                result["left"] = [trial for trial in result["left"] if trial not in gone]
                learn(record["seconds"][f"{job.kind} {job.name}"], took)
                if gone or found["wrong"]:
                    enter(job.kind, job.name, result)
            if found["wrong"]:
                self.fail(f"{job}: {'; '.join(found['wrong'])}\n{line}")
            else:
                self.say(line)

        for job in spread(in_order(jobs, kinds), self.devices, work, self.remaining):
            self.say(f"{job}: not run, out of time")

    def due(self, record, kind, name):
        """Returns whether a part is to run: all chosen ones, or with --stale those that are not
        complete and clean."""
        return not self.options.stale or records.fault(kind, record[kind].get(name)) is not None

    def job(self, job, device):
        """Runs a job; returns its counts, the seconds of its trials, and a line about it."""
        command = [PACK / "tests" / binary_of(job.name), "--test-threads=1", "--exact", *(word for trial in job.others for word in ("--skip", trial))]
        if job.kind in SANITIZERS:
            options, clean = TOOLS[job.kind]
            command = [self.tool("compute-sanitizer"), "--tool", job.kind, "--error-exitcode", "99", *options, *command]
        done = self.call(job.kind, command, CUDA_VISIBLE_DEVICES=visible(job, device, self.devices), **choice(job.kind, job.name))
        counts = tally(done.out)
        summaries = re.findall(r"=+ ((?:ERROR|RACECHECK) SUMMARY: .*)", done.out + done.err)
        is_clean = job.kind not in SANITIZERS or summaries and all(re.match(clean, summary) for summary in summaries)
        found = {**counts, "ran": job.trials, "wrong": []}
        # The trials that passed before an end in time or a failure count, except under a sanitizer,
        # which reports at the end.
        passed = re.findall(r"^test (.+?) +\.\.\. ok$", done.out, re.M) if job.kind in (TESTS, VULKAN) else []
        if done.cut:
            found |= {"passed": len(passed), "failed": 0, "ignored": 0, "ran": passed}
            verdict = f"out of time after {len(passed)}" if passed else "not run, out of time"
        elif done.code == 0 and sum(counts.values()) == len(job.trials) and is_clean:
            verdict = "clean" if summaries else "passed"
        else:
            failed = re.findall(r"^test (.+?) +\.\.\. FAILED", done.out, re.M)
            verdict = " ".join([f"{done.why()}, {counts['passed']} of {len(job.trials)} passed", *summaries, *failed])
            if len(passed) == len(job.trials):
                passed = []  # none of them is known to be at fault
            found |= {"passed": len(passed), "ignored": 0, "ran": passed, "wrong": [f"{verdict} {last(done.err, 4)}"]}
        return found, trial_times(done), f"{job}: {verdict}, {len(job.trials)} trials, {done.seconds:.0f} s, device {device}"

    # Scenes and benches

    def scenes(self):
        if not self.data.is_dir():
            return self.fail("no scenes were packed")
        counts = {"passed": 0, "failed": 0, "ignored": 0, "left": [], "wrong": []}

        def check(case):
            number, scene, rule, flags = case
            if self.remaining() <= 0:
                counts["left"].append(scene["file"] + rule)
                return
            command = [PACK / "radsweep", "pairs", self.data / scene["file"], "--json", "--backend", "cuda", *flags]
            done = self.call(SCENES, command, CUDA_VISIBLE_DEVICES=str(number % self.devices))
            expected = (scene["n"], scene["pairs" + rule], scene["hash" + rule], "cuda")
            answer = (objects(done.out) or [{}])[-1] if done.code == 0 else {}
            got = tuple(answer.get(key) for key in ("n", "pairs", "hash", "backend"))
            with self.lock:
                counts["passed" if got == expected else "failed"] += 1
            if got != expected:
                counts["wrong"].append(scene["file"] + rule)
                self.fail(f"{scene['file']}{rule}: expected {expected}, got {got} ({done.why()}) {last(done.err)}")

        lines = map(json.loads, (self.data / "boxes.jsonl").read_text().splitlines())
        cases = [(scene, rule, flags) for scene in lines for rule, flags in (("", []), ("_open", ["--open"]))]
        with ThreadPoolExecutor(4 * self.devices) as pool:
            list(pool.map(check, ((number, *case) for number, case in enumerate(cases))))
        return counts

    def bench(self, name, record):
        """Runs a bench alone on the first device and returns its lines; CUB's uses the sizes of the
        others."""
        command = [PACK / "benches" / binary_of(name), *(f"--{option}" for option in name.split("/")[1:])]
        if name == "cub":
            program = self.cub()
            if not program:
                return []
            entries = [entry for other, entry in record[BENCH].items() if other != "cub"]
            command = [program, *sorted({line["n"] for entry in entries for line in entry["lines"] if records.compared(line)})]
        done = self.call(BENCH, command)
        lines = objects(done.out)
        if done.code != 0 or not lines:
            self.fail(f"bench {name}: {done.why()} {last(done.err)}")
            return []
        return lines

    def cub(self):
        """Compiles the CUB bench with the toolkit of this machine and the packed headers."""
        nvcc = self.tool("nvcc")
        if nvcc is None:
            return self.fail("nvcc is not on the PATH: no CUB bench")
        headers = []
        for wheel in (PACK / "cub").glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(PACK / "cub" / "headers")
            headers = ["-I", next((PACK / "cub" / "headers").glob("nvidia/cu*/include/cccl"))]
        if (PACK / "cub" / "libcusort.cuh").exists():
            headers += ["-DLIBCUSORT", "-I", PACK / "cub"]
        program = PACK / "cub" / "cub_sort"
        source = ROOT / "benches" / "cub" / "cub_sort.cu"
        done = self.call(BENCH, [nvcc, "-O3", "-std=c++17", "-arch=native", *headers, source, "-o", program])
        return program if done.code == 0 else self.fail(f"the CUB bench does not compile: {done.why()} {last(done.err)}")


def sees_all(kind, name):
    return kind == TESTS and name == ON_ALL_DEVICES


def visible(job, device, devices):
    """Returns the devices that a job sees, its own first."""
    others = range(devices) if sees_all(job.kind, job.name) else []
    return ",".join(map(str, [device, *(other for other in others if other != device)]))


def choice(kind, name):
    """Returns the environment that chooses a part's sizes, its family of sorts, and a real driver
    of Vulkan with its validation layer."""
    if kind == VULKAN:
        return {"RADSWEEP_QUICK": "0", "RADSWEEP_WGPU": "real", "RADSWEEP_VALIDATION": "required", "WGPU_DEBUG": "0"}
    return {"RADSWEEP_QUICK": "1" if kind in SANITIZERS else "0", "RADSWEEP_SORTS": family_of(name)}


def last(text, lines=12):
    return "\n".join(text.strip().splitlines()[-lines:])


def tally(out):
    found = re.findall(r"test result: .*? (\d+) passed; (\d+) failed; (\d+) ignored", out)
    return dict(zip(("passed", "failed", "ignored"), map(int, found[-1] if found else (0, 0, 0))))


def trial_times(done):
    """Returns the seconds of each trial, from the times of its lines; those of the first count from
    the start of the trials."""
    took, before = {}, 0.0
    for at, line in zip(done.times, done.out.splitlines()):
        ended = re.match(r"test (?:\[[^\]]*\] )?(.+?) +\.\.\. (?:ok|FAILED)", line)
        if ended:
            took[ended[1]] = at - before
        if ended or line.startswith("running "):
            before = at
    return took


def objects(out):
    """Returns the JSON objects among the lines of a program's output."""
    found = []
    for line in out.splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                pass
    return found


def unpack(hashes):
    """Returns what was packed, if it is of these sources."""
    if BUNDLE.is_file():
        with tarfile.open(BUNDLE) as bundle:
            bundle.extractall(PACK)
        BUNDLE.unlink()
    if not (PACK / "pack.json").is_file():
        raise SystemExit("gpu-suite: nothing is packed; run scripts/gpu-suite pack where there is Rust")
    about = json.loads((PACK / "pack.json").read_text())
    packed = {tuple(part.split(" ")): part_hash for part, part_hash in about["hashes"].items()}
    changed = [" ".join(part) for part in hashes if packed.get(part) != hashes[part]]
    if changed:
        raise SystemExit(f"gpu-suite: the sources of {', '.join(changed)} changed since they were packed; run scripts/gpu-suite pack again")
    return about


def run(options):
    words = options.only.replace("sanitizer", ",".join(SANITIZERS)).split(",")
    if not set(words) <= set(KINDS):
        raise SystemExit(f"gpu-suite: the parts are {','.join(KINDS)}, and sanitizer for {','.join(SANITIZERS)}")
    kinds = [kind for kind in KINDS if kind in words]
    hashes = records.all_hashes()
    about = unpack(hashes)
    suite = Run(options)
    device, driver = suite.device()
    record = records.kept(records.read(), hashes)
    before = {part: record[part[0]].get(part[1]) for part in hashes}
    for kind in kinds:
        (suite.logs / f"{kind}.log").unlink(missing_ok=True)

    def enter(kind, name, results):
        """Records results, and adds them to the last ones if only the left trials ran. Writes the
        file at once, since a run may be interrupted."""
        if (kind, name) in suite.resumed:
            results = records.added(before[kind, name], results)
        record[kind][name] = records.entry_of(hashes[kind, name], device, driver, results)
        for place in {records.RECORD, suite.logs / records.RECORD.name}:
            records.write(record, place)

    suite.compile_images()
    suite.trials([kind for kind in kinds if kind not in (SCENES, BENCH)], record, enter)
    if SCENES in kinds and suite.due(record, SCENES, SCENE_PROGRAM) and suite.chosen([SCENE_PROGRAM]) and suite.remaining() > 0:
        results = suite.scenes()
        if results:
            enter(SCENES, SCENE_PROGRAM, results)
            suite.say(f"scenes: {results['passed']} passed, {results['failed']} failed")
    for name in suite.chosen(BENCHES if BENCH in kinds else []):
        if not suite.due(record, BENCH, name):
            continue
        if suite.remaining() <= 0:
            suite.say(f"bench {name}: not run, out of time")
            continue
        enter(BENCH, name, {"lines": suite.bench(name, record)})
        suite.say(f"bench {name}: {len(record[BENCH][name]['lines'])} lines")

    records.table(record, kinds)
    for what in about["missing"]:
        print(f"MISSING: {what}")
    for line in records.summed_up(records.faults(record, hashes)):
        print(line)
    print(f"gpu-suite: {device}, driver {driver}, {time.monotonic() - suite.began:.0f} s: {'FAILED' if suite.failures else 'passed'}")
    raise SystemExit(1 if suite.failures else 0)
