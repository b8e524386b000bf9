"""Assigns trials to processes, and processes to devices.

A device runs jobs of one kind at a time, as many at once as that kind allows, the longest first. A
job that needs a device to itself runs before those that share. A job that cannot end in time is not
started.
"""
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from .parts import MEMCHECK, RACECHECK, TESTS, VULKAN

# Processes at once on each device. Under racecheck they slow each other down.
AT_ONCE = {TESTS: 8, VULKAN: 8, MEMCHECK: 8, RACECHECK: 3}
# Seconds that one process should take: much more than its start.
JOB_SECONDS = {TESTS: 12, VULKAN: 20, MEMCHECK: 25, RACECHECK: 40}
# Estimated seconds of trials without an earlier run, by name, or else by the kind of run.
LONG_TRIALS = {TESTS: [(r"soak::.*", 40.0), (r".*/2\^2\d keys.*|memory::everything_.*", 10.0)], VULKAN: [], MEMCHECK: [], RACECHECK: []}
TRIAL = {TESTS: 1.0, VULKAN: 0.5, MEMCHECK: 1.5, RACECHECK: 4.0}
# Trials from this many seconds on are recorded as slow; the estimate of all others.
SLOW, QUICK_TRIAL = 1.0, 0.3

# Trials that need a device to themselves: they measure time, use most of its memory, or lose
# launches under racecheck when other processes use the device.
ALONE = {"radsweep-gpu.cuda_gpu": r"many_threads|events|stages|two_streams|freed_memory_is_reused|out_of_memory_reports_sizes"}
# Trials that a kind of run leaves out. Racecheck cannot follow launches from several threads at
# once ("failure to track a kernel launch"), and their kernel shares nothing. The open rule changes
# only comparisons, not what is shared.
LEFT_OUT = {(RACECHECK, "radsweep-gpu.cuda_gpu"): r"many_threads|captures_beside_other_threads", (RACECHECK, "radsweep-sap.cuda_sap"): r".*::open"}
# The same, only at full size.
ALONE_IF_FULL = {"radsweep-sap.cuda_sap": r"memory::everything_overlaps_.*"}


@dataclass
class Job:
    """The trials of one process of a binary; `others` are the binary's other trials."""

    kind: str
    name: str
    trials: list
    others: list
    number: int = 0
    count: int = 1
    alone: bool = False
    seconds: float = 0.0

    def __str__(self):
        return f"{self.kind} {self.name.split('.')[-1]} {self.number + 1}/{self.count}" + (" alone" if self.alone else "")


def jobs_of(kind, name, trials, every_trial, seconds):
    """Returns the jobs that run these trials of a binary. `seconds` has the times of its slow
    trials."""
    pattern = ALONE.get(name) or kind == TESTS and ALONE_IF_FULL.get(name) or r"(?!)"
    takes = {trial: seconds.get(trial, QUICK_TRIAL) for trial in trials}
    alone = [trial for trial in trials if re.fullmatch(pattern, trial)]
    shared = [trial for trial in trials if trial not in set(alone)]
    shares = [(share, some is alone) for some in (shared, alone) for share in dealt(some, takes, JOB_SECONDS[kind])]
    jobs = []
    for number, (share, is_alone) in enumerate(shares):
        chosen = set(share)
        others = [trial for trial in every_trial if trial not in chosen]
        jobs.append(Job(kind, name, share, others, number, len(shares), is_alone, sum(takes[trial] for trial in share)))
    return jobs


def wanted_trials(kind, name, every_trial):
    """Returns the trials of a binary that this kind of run includes."""
    pattern = LEFT_OUT.get((kind, name), r"(?!)")
    return [trial for trial in every_trial if not re.fullmatch(pattern, trial)]


def guess(kind, trial):
    """Estimates the seconds of a trial without an earlier run."""
    guesses = (took for pattern, took in LONG_TRIALS[kind] if re.fullmatch(pattern, trial))
    return next(guesses, TRIAL[kind])


def learn(seconds, took):
    """Updates the seconds of the slow trials with measured ones."""
    for trial, measured in took.items():
        if measured >= SLOW:
            seconds[trial] = round(measured, 1)
        else:
            seconds.pop(trial, None)


def dealt(trials, takes, job_seconds):
    """Distributes trials over shares of about equal length: the longest first, each to the shortest
    share."""
    count = min(len(trials), max(1, round(sum(takes[trial] for trial in trials) / job_seconds)))
    shares, loads = [[] for _ in range(count)], [0.0] * count
    for trial in sorted(trials, key=lambda trial: -takes[trial]):
        least = loads.index(min(loads))
        shares[least].append(trial)
        loads[least] += takes[trial]
    return shares


def in_order(jobs, kinds):
    """Sorts jobs by kind, the longest first."""
    return sorted(jobs, key=lambda job: (kinds.index(job.kind), -job.seconds))


def pick(pending, running, remaining):
    """Returns the next job of a device, given its running jobs and the remaining seconds; None to
    wait."""
    in_time = [job for job in pending if job.seconds <= remaining]
    if not running:
        return next((job for job in in_time if job.alone), in_time[0] if in_time else None)
    kind = running[0].kind
    if running[0].alone or len(running) >= AT_ONCE[kind]:
        return None
    return next((job for job in in_time if job.kind == kind and not job.alone), None)


def spread(jobs, devices, work, remaining):
    """Calls `work(job, device)` for the jobs in order on all devices, while `remaining()` seconds
    suffice. Returns the jobs that were never started."""
    pending, running = list(jobs), [[] for _ in range(devices)]
    changed, errors = threading.Condition(), []

    def done(job, device):
        try:
            work(job, device)
        except BaseException as error:
            errors.append(error)
        with changed:
            running[device].remove(job)
            changed.notify()

    with ThreadPoolExecutor(devices * max(AT_ONCE.values())) as pool, changed:
        while not errors:
            # One job per device and round, so that the long jobs do not all go to the first device.
            started = True
            while started:
                started = False
                for device in range(devices):
                    job = pick(pending, running[device], remaining())
                    if job:
                        pending.remove(job)
                        running[device].append(job)
                        pool.submit(done, job, device)
                        started = True
            if not any(running):
                break
            changed.wait()
    if errors:
        raise errors[0]
    return pending
