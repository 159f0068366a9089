#!/usr/bin/env python3
"""Makes faults happen to short runs, at random times, and counts what they leave behind.

    tests/faults/soak.py --kills 100 --stops 20 --pauses 100 --lost-hosts 20 --full-disks 20 --csv soak.csv

Not part of the test suite: a fault takes seconds. Lost hosts need root and the tools of tests/cluster/cluster.sh, full
disks root. Each run is its own: fault number n of a seed meets the same ranks, victim and moment however many are asked
for, though not the same step. Exits with 1 if anything in the table's columns "false_alarm" to "wrong_code" isn't 0.
"""
import argparse
import collections
import concurrent.futures
import csv
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CLUSTER = HERE.parent / "cluster" / "cluster.sh"
MARK = "PLUMB_SOAK"  # in the environment of every process of a run: its folder
ITERATIONS, TIMEOUT, START_TIMEOUT, PAUSE = 20, 4, 30, 5
LONGEST = 300  # seconds until a run that hangs is given up
# Seconds until every process has gone, where ranks watch each other; before that, where only a timeout tells, so many
# more.
IN_TIME = {"kill": 10, "stop": TIMEOUT + 5, "lost host": 45}
LOWER_RANKS = 8  # that ranks after 0 wait longer
BEFORE = {"stop": START_TIMEOUT + LOWER_RANKS - TIMEOUT, "lost host": START_TIMEOUT}
MODELS = {
    "bench_resnet50": "--image-size 32 --bs 1 --lr 0.001",
    "bench_arcface": "--backbone y1 --head dp --classes 100 --bs 1 --lr 0.001",
}
LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}-INFO: \[Pass 0, train batch (\d+)\] \tloss \S+, acc1 \d\.\d{5}, "
    r"acc5 (?:\d\.\d{5}|nan), lr \S+, elapse \d+\.\d{6} sec Epoch\[0\] Batch\[\d+\]\tSpeed: \d+\.\d\d samples/sec"
)
# 0: the run ended before. 1: mpirun's own, of a rank that is lost before it is initialized.
CODES = {"kill": [0, 1, 75, 137], "stop": [0, 75], "pause": [0], "lost host": [0, 75, 137], "full disk": [0, 73, 74]}
Outcome = collections.namedtuple(
    "Outcome",
    "fault number program ranks victim moment lines_then exit_code seconds named "
    "false_alarm late left torn lost wrong wrong_code said",
)
FAILINGS = "false_alarm late left torn lost wrong wrong_code".split()


def environment_of(pid):
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


class Run:
    """A run in a folder of its own, and its processes."""

    def __init__(self, fault, number, seed, programs):
        self.random = random.Random(f"{seed} {fault} {number}")
        self.fault, self.number = fault, number
        self.noted = {}
        self.folder = Path(tempfile.mkdtemp(prefix="soak."))
        self.work = self.folder / "work"
        self.work.mkdir()
        self.program = self.random.choices(sorted(MODELS), weights=[4, 1])[0]  # the second computes much longer
        self.ranks = 2 if fault == "full disk" else self.random.randint(2, 4)
        timeout = 2 * PAUSE + 2 if fault == "pause" else TIMEOUT
        self.bench = (
            f"{programs}/{self.program} {MODELS[self.program]} --threads 1 --warmup 3 --iters {ITERATIONS} "
            f"--timeout-s {timeout} --startup-timeout-s {8 * timeout if fault == 'pause' else START_TIMEOUT}"
        )

    def start(self, command):
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                           OMP_WAIT_POLICY="passive", **{MARK: str(self.folder)})
        with open(self.folder / "said", "wb") as said:
            self.process = subprocess.Popen(command, shell=True, cwd=self.work, env=environment, start_new_session=True,
                                            stdin=subprocess.DEVNULL, stdout=said, stderr=said)

    def pids(self):
        own = f"{MARK}={self.folder}".encode()
        return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and own in environment_of(p.name)]

    def rank_pids(self):
        ranks = {}
        for pid in self.pids():
            try:
                if os.path.basename(os.readlink(f"/proc/{pid}/exe")) != self.program:
                    continue
            except OSError:
                continue
            for one in environment_of(pid):
                if one.startswith(b"OMPI_COMM_WORLD_RANK="):
                    ranks[int(one.split(b"=")[1])] = pid
        return ranks

    def logs(self, suffix):
        return [path for path in self.folder.rglob("*" + suffix)] if self.folder.exists() else []

    def inside(self):
        """The folder as the ranks see it: theirs may be on a disk of their own."""
        return Path(f"/proc/{min(self.noted.values())}/cwd") if self.noted else self.folder

    def lines(self):
        try:
            return max((path.read_bytes().count(b"\n") for path in self.inside().rglob("*.log.part")), default=0)
        except OSError:
            return 0

    def ended(self):
        return self.process.poll() is not None

    def wait_for_moment(self, whole_run):
        """Half of the moments by the clock, start and end included, half between two lines."""
        if self.random.random() < 0.5:
            moment = self.random.random() * whole_run
            end = time.monotonic() + moment
            while time.monotonic() < end and not self.ended():
                time.sleep(0.005)
                self.note_ranks()
            text = f"{moment:.2f} s"
        else:
            line, more = self.random.randint(1, ITERATIONS), self.random.random() * 0.1
            while self.lines() < line and not self.ended() and self.waits_no_longer():
                time.sleep(0.005)
                self.note_ranks()
            time.sleep(more)
            text = f"line {line} + {more:.3f} s"
        while not self.note_ranks() and not self.ended():
            time.sleep(0.005)
        return text

    def note_ranks(self):
        if len(self.noted) < self.ranks:
            self.noted = self.rank_pids()
        return self.noted

    def waits_no_longer(self):
        return time.monotonic() - self.began < LONGEST

    def wait(self):
        """Seconds until every process has gone, and how many were left and had to be killed."""
        start = time.monotonic()
        while (not self.ended() or self.pids()) and time.monotonic() - start < LONGEST:
            time.sleep(0.02)
        seconds, left = time.monotonic() - start, self.pids()
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return seconds, len(left)

    def torn_lines(self):
        torn = 0
        for path in self.logs(".log.part") + self.logs(".log"):
            text = path.read_bytes().decode(errors="replace")
            torn += 0 if not text or text.endswith("\n") else 1
            for number, line in enumerate(text.splitlines()):
                found = LINE.fullmatch(line)
                torn += 0 if found and int(found[1]) == number else 1
        return torn

    def wrong_scores(self, exit_code):
        """A finished log needs all its lines and a result that says ok; a failed run has neither."""
        wrong = 0
        results = []
        for path in self.folder.rglob("result.json"):
            try:
                results.append(json.loads(path.read_text()))
            except ValueError:
                wrong += 1
        good = [result for result in results if result.get("status") == "ok"]
        for log in self.logs(".log"):
            wrong += log.read_bytes().count(b"\n") != ITERATIONS or not good
        for result in good:
            wrong += len(result["step_seconds"]) != ITERATIONS
        if exit_code == 0:
            wrong += len(self.logs(".log")) != 1 or len(good) != 1
        return wrong

    def is_late(self, seconds, lines_then):
        """Ranks surely watch each other once there is a line."""
        if self.fault not in IN_TIME:
            return False
        return seconds > IN_TIME[self.fault] + (0 if lines_then else BEFORE.get(self.fault, 0))

    def outcome(self, victim, moment, lines_then, exit_code, seconds, left, false_alarm=False):
        said = (self.folder / "said").read_text(errors="replace")
        alarms = [line for line in said.splitlines() if "(pid " in line]
        lines_now = max((p.read_bytes().count(b"\n") for p in self.logs(".log.part") + self.logs(".log")), default=0)
        named = sum(f"rank {victim} on " in line or f"on {victim} (pid" in line for line in alarms)
        return Outcome(self.fault, self.number, self.program, self.ranks, victim, moment, lines_then, exit_code,
                       f"{seconds:.1f}", named, int(false_alarm), int(self.is_late(seconds, lines_then)), left,
                       self.torn_lines(),
                       int(lines_now < lines_then), self.wrong_scores(exit_code),
                       int(exit_code not in CODES[self.fault]),
                       " / ".join(line for line in said.splitlines() if line.startswith(self.program + ": ")))


def mpirun(run):
    program = os.environ.get("MPIRUN", "mpirun")
    return f"{program} --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np {run.ranks} {run.bench}"


def signal_fault(run, whole_run, number):
    run.start(mpirun(run))
    moment = run.wait_for_moment(whole_run)
    lines_then, ranks = run.lines(), run.noted
    victim = run.random.choice(sorted(ranks)) if ranks else -1
    try:
        if ranks:
            os.kill(ranks[victim], number)
            if run.fault == "pause":
                time.sleep(PAUSE)
                os.kill(ranks[victim], signal.SIGCONT)
    except ProcessLookupError:
        victim = -1
    seconds, left = run.wait()
    code = run.process.wait()
    return run.outcome(victim, moment, lines_then, code, seconds, left, run.fault == "pause" and code != 0)


def full_disk(run, whole_run):
    run.start(f"unshare -m sh -c 'mount -t tmpfs -o size=4m none . && cd \"$PWD\" && ({mpirun(run)}); code=$?; "
              f"rm -f filler; cp -r . ../kept; exit $code'")
    moment = run.wait_for_moment(whole_run)
    if run.noted:
        try:
            with open(run.inside() / "filler", "wb", buffering=0) as filler:
                while True:
                    filler.write(bytes(512))
        except OSError:
            pass
    lines_then = run.lines()
    seconds, left = run.wait()
    return run.outcome(-1, moment, lines_then, run.process.wait(), seconds, left)


def lost_host(run, whole_run):
    """Inside a cluster of its own (see main): a host's cable is pulled."""
    hosts = ",".join(f"n{i + 1}" for i in range(run.ranks))
    run.start(f"{CLUSTER} mpirun -np {run.ranks} -H {hosts} {run.bench}")
    moment = run.wait_for_moment(whole_run)
    lines_then = run.lines()
    victim = f"n{run.random.randint(2, run.ranks)}"
    subprocess.run([CLUSTER, "link", victim, "down"], check=True)
    seconds, left = run.wait()
    return run.outcome(victim, moment, lines_then, run.process.wait(), seconds, left)


def make_fault(fault, number, arguments, whole_run):
    if fault == "lost host" and "CLUSTER" not in os.environ:
        again = [str(CLUSTER), "4", "none", sys.executable, __file__, "--programs", arguments.programs, "--seed",
                 str(arguments.seed), "--only", str(number), "--whole-run", str(2 * whole_run)]
        said = subprocess.run(again, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        if not said or not said[-1].startswith("["):
            raise SystemExit("\n".join(said) or "the cluster said nothing")
        return Outcome(*json.loads(said[-1]))
    run = Run(fault, number, arguments.seed, arguments.programs)
    run.began = time.monotonic()
    if fault == "full disk":
        outcome = full_disk(run, whole_run)
    elif fault == "lost host":
        outcome = lost_host(run, whole_run)
    else:
        number = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "pause": signal.SIGSTOP}[fault]
        outcome = signal_fault(run, whole_run, number)
    if arguments.keep and any(getattr(outcome, column) for column in FAILINGS):
        print(f"kept: {run.folder}", file=sys.stderr)
    else:
        shutil.rmtree(run.folder, ignore_errors=True)
    return outcome


def length_of_a_run(arguments, number):
    run = Run("none", number, arguments.seed, arguments.programs)
    start = time.monotonic()
    run.start(mpirun(run))
    if run.process.wait() != 0:
        raise SystemExit(f"a run without a fault failed: {(run.folder / 'said').read_text()}")
    shutil.rmtree(run.folder)
    return time.monotonic() - start


def table(outcomes):
    head = " ".join(f"{column:>11}" for column in FAILINGS)
    print(f"{'fault':10} {'runs':>5} {'ended ok':>8} {'named':>6} {'longest s':>9} {'of watched':>10} {head}")
    bad = 0
    for fault in dict.fromkeys(outcome.fault for outcome in outcomes):
        rows = [outcome for outcome in outcomes if outcome.fault == fault]
        sums = [sum(getattr(row, column) for row in rows) for column in FAILINGS]
        bad += sum(sums)
        longest = max(float(row.seconds) for row in rows)
        of_watched = max((float(row.seconds) for row in rows if row.lines_then), default=0)
        print(f"{fault:10} {len(rows):5} {sum(row.exit_code == 0 for row in rows):8} "
              f"{sum(row.named > 0 for row in rows):6} {longest:9.1f} {of_watched:10.1f} "
              f"{' '.join(f'{value:11}' for value in sums)}")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    faults = {"kill": "kills", "stop": "stops", "pause": "pauses", "lost host": "lost_hosts", "full disk": "full_disks"}
    for option in faults.values():
        parser.add_argument("--" + option.replace("_", "-"), type=int, default=0, metavar="N")
    parser.add_argument("--programs", default=str(HERE.parents[1] / "build/release/bin"))
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side (2)")
    parser.add_argument("--csv", help="a line per fault")
    parser.add_argument("--keep", action="store_true", help="keep the folders of runs that went wrong")
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--whole-run", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only is not None:
        print(json.dumps(make_fault("lost host", arguments.only, arguments, arguments.whole_run)))
        return 0
    print(f"--seed {arguments.seed}", flush=True)
    whole_run = min(length_of_a_run(arguments, number) for number in range(3))
    asked = [(fault, i) for fault, option in faults.items() for i in range(getattr(arguments, option))]
    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for outcome in pool.map(lambda one: make_fault(*one, arguments, whole_run), asked):
            outcomes.append(outcome)
            if arguments.csv:
                with open(arguments.csv, "w", newline="") as file:
                    csv.writer(file).writerows([Outcome._fields, *outcomes])
    return 1 if table(outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
