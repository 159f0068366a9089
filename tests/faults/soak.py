#!/usr/bin/env python3
"""Makes faults happen to short runs, at random times, and counts what they leave behind.

    tests/faults/soak.py --kills 100 --stops 20 --pauses 100 --lost-hosts 20 --full-disks 20

Not part of the test suite: a fault takes seconds. Lost hosts need root and the tools of tests/cluster/cluster.sh, full
disks root. Each run is its own: fault number n of a seed meets the same ranks, victim and moment however many are asked
for, though not the same step. Folders of runs that went wrong are kept. Exits with 1 if anything in the table's columns
"false_alarm" to "wrong_code" isn't 0.
"""
import argparse
import collections
import concurrent.futures
import contextlib
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
# more. Ranks after 0 wait another 8.
IN_TIME = {"kill": 10, "stop": TIMEOUT + 5, "lost host": 45}
BEFORE = {"stop": START_TIMEOUT + 8 - TIMEOUT, "lost host": START_TIMEOUT}
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
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "pause": signal.SIGSTOP}
FAILINGS = "false_alarm late left torn lost wrong wrong_code".split()
Outcome = collections.namedtuple("Outcome", ["fault", "lines_then", "exit_code", "seconds", "named", *FAILINGS])


class Run:
    """A run in a folder of its own, and its processes."""

    def __init__(self, fault, number, arguments):
        self.random = random.Random(f"{arguments.seed} {fault} {number}")
        self.fault = fault
        self.ranks_seen = {}
        self.folder = Path(tempfile.mkdtemp(prefix="soak."))
        (self.folder / "work").mkdir()
        self.program = self.random.choices(sorted(MODELS), weights=[4, 1])[0]  # the second computes much longer
        self.ranks = 2 if fault == "full disk" else self.random.randint(2, 4)
        timeout = 2 * PAUSE + 2 if fault == "pause" else TIMEOUT
        bench = (f"{arguments.programs}/{self.program} {MODELS[self.program]} --threads 1 --warmup 3 --iters {ITERATIONS} "
                 f"--timeout-s {timeout} --startup-timeout-s {8 * timeout if fault == 'pause' else START_TIMEOUT}")
        mpirun = f"mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np {self.ranks} {bench}"
        self.command = {
            "full disk": f"unshare -m sh -c 'mount -t tmpfs -o size=4m none . && cd \"$PWD\" && ({mpirun}); code=$?; "
                         f"rm -f filler; cp -r . ../kept; exit $code'",
            "lost host": f"{CLUSTER} mpirun -np {self.ranks} -H {','.join(f'n{i + 1}' for i in range(self.ranks))} {bench}",
        }.get(fault, mpirun)

    def start(self):
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                           OMP_WAIT_POLICY="passive", **{MARK: str(self.folder)})
        with open(self.folder / "said", "wb") as said:
            self.process = subprocess.Popen(self.command, shell=True, cwd=self.folder / "work", env=environment,
                                            start_new_session=True, stdin=subprocess.DEVNULL, stdout=said, stderr=said)

    def processes(self):
        """{pid: environment} of the run."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                environment = (process / "environ").read_bytes().split(b"\0")
                if f"{MARK}={self.folder}".encode() in environment:
                    found[int(process.name)] = environment
        return found

    def note_ranks(self):
        if len(self.ranks_seen) < self.ranks:
            for pid, environment in self.processes().items():
                with contextlib.suppress(OSError):
                    rank = [one.split(b"=")[1] for one in environment if one.startswith(b"OMPI_COMM_WORLD_RANK=")]
                    if rank and os.path.basename(os.readlink(f"/proc/{pid}/exe")) == self.program:
                        self.ranks_seen[int(rank[0])] = pid
        return self.ranks_seen

    def inside(self):
        """The folder as the ranks see it: theirs may be on a disk of their own."""
        return Path(f"/proc/{min(self.ranks_seen.values())}/cwd") if self.ranks_seen else self.folder

    def lines(self, folder, *endings):
        with contextlib.suppress(OSError):
            return max((path.read_bytes().count(b"\n") for end in endings for path in folder.rglob("*" + end)), default=0)
        return 0

    def ended(self):
        return self.process.poll() is not None

    def wait_for_moment(self, whole_run):
        """Half of the moments by the clock, start and end included, half between two lines."""
        began = time.monotonic()
        by_clock = self.random.random() < 0.5
        moment = self.random.random() * (whole_run if by_clock else 0.1)
        line = 0 if by_clock else self.random.randint(1, ITERATIONS)
        while not self.ended() and time.monotonic() - began < LONGEST:
            if time.monotonic() - began >= moment if by_clock else self.lines(self.inside(), ".log.part") >= line:
                break
            self.note_ranks()
            time.sleep(0.005)
        time.sleep(0 if by_clock else moment)
        while not self.note_ranks() and not self.ended():
            time.sleep(0.005)

    def do_damage(self):
        """What a rank says of its victim."""
        if self.fault == "lost host":
            host = f"n{self.random.randint(2, self.ranks)}"
            subprocess.run([CLUSTER, "link", host, "down"], check=True)
            return f"on {host} (pid"
        if self.fault == "full disk":
            with contextlib.suppress(OSError), open(self.inside() / "filler", "wb", buffering=0) as filler:
                while self.ranks_seen:
                    filler.write(bytes(512))
        elif self.ranks_seen:
            victim = self.random.choice(sorted(self.ranks_seen))
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.ranks_seen[victim], SIGNALS[self.fault])
                if self.fault == "pause":
                    time.sleep(PAUSE)
                    os.kill(self.ranks_seen[victim], signal.SIGCONT)
                return f"rank {victim} on "
        return "nobody"

    def wait(self):
        """Seconds until every process has gone, and how many were left and had to be killed."""
        start = time.monotonic()
        while (not self.ended() or self.processes()) and time.monotonic() - start < LONGEST:
            time.sleep(0.02)
        seconds, left = time.monotonic() - start, self.processes()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return seconds, len(left)

    def torn_lines(self):
        torn = 0
        for path in [*self.folder.rglob("*.log.part"), *self.folder.rglob("*.log")]:
            text = path.read_bytes().decode(errors="replace")
            torn += bool(text) and not text.endswith("\n")
            for number, line in enumerate(text.splitlines()):
                found = LINE.fullmatch(line)
                torn += not found or int(found[1]) != number
        return torn

    def wrong_scores(self, exit_code):
        """A finished log needs all its lines and a result that says ok; a failed run has neither."""
        wrong, good, logs = 0, [], list(self.folder.rglob("*.log"))
        for path in self.folder.rglob("result.json"):
            try:
                result = json.loads(path.read_text())
                good += [result] if result.get("status") == "ok" else []
            except ValueError:
                wrong += 1
        wrong += sum(log.read_bytes().count(b"\n") != ITERATIONS or not good for log in logs)
        wrong += sum(len(result["step_seconds"]) != ITERATIONS for result in good)
        return wrong + (exit_code == 0 and (len(logs) != 1 or len(good) != 1))

    def outcome(self, whole_run):
        self.start()
        self.wait_for_moment(whole_run)
        lines_then = self.lines(self.inside(), ".log.part")
        victim = self.do_damage()
        seconds, left = self.wait()
        code = self.process.wait()
        named = any("(pid " in line and victim in line for line in (self.folder / "said").read_text(errors="replace").splitlines())
        # Ranks surely watch each other once there is a line.
        late = seconds > IN_TIME.get(self.fault, LONGEST) + (0 if lines_then else BEFORE.get(self.fault, 0))
        outcome = Outcome(self.fault, lines_then, code, seconds, named, self.fault == "pause" and code != 0, late, left,
                          self.torn_lines(), self.lines(self.folder, ".log.part", ".log") < lines_then,
                          self.wrong_scores(code), code not in CODES[self.fault])
        if any(getattr(outcome, column) for column in FAILINGS):
            print(f"kept: {self.folder}: {outcome}", file=sys.stderr)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        return outcome


def make_fault(fault, number, arguments, whole_run):
    if fault == "lost host" and "CLUSTER" not in os.environ:  # again, inside a cluster of its own
        again = [CLUSTER, "4", "none", sys.executable, __file__, "--programs", arguments.programs, "--seed",
                 str(arguments.seed), "--only", str(number), "--whole-run", str(2 * whole_run)]
        said = subprocess.run(again, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        if not said or not said[-1].startswith("["):
            raise SystemExit("\n".join(said) or "the cluster said nothing")
        return Outcome(*json.loads(said[-1]))
    return Run(fault, number, arguments).outcome(whole_run)


def length_of_a_run(arguments, number):
    run = Run("none", number, arguments)
    start = time.monotonic()
    run.start()
    if run.process.wait() != 0:
        raise SystemExit(f"a run without a fault failed: {(run.folder / 'said').read_text()}")
    shutil.rmtree(run.folder)
    return time.monotonic() - start


def table(outcomes):
    """Prints it; how much went wrong."""
    print(f"{'fault':10} {'runs':>5} {'ended ok':>8} {'named':>6} {'longest s':>9} {'of watched':>10} "
          + " ".join(f"{column:>11}" for column in FAILINGS))
    bad = 0
    for fault in dict.fromkeys(outcome.fault for outcome in outcomes):
        rows = [outcome for outcome in outcomes if outcome.fault == fault]
        sums = [sum(getattr(row, column) for row in rows) for column in FAILINGS]
        bad += sum(sums)
        print(f"{fault:10} {len(rows):5} {sum(row.exit_code == 0 for row in rows):8} {sum(row.named for row in rows):6} "
              f"{max(row.seconds for row in rows):9.1f} {max((row.seconds for row in rows if row.lines_then), default=0):10.1f} "
              + " ".join(f"{value:11}" for value in sums))
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    faults = {"kill": "kills", "stop": "stops", "pause": "pauses", "lost host": "lost_hosts", "full disk": "full_disks"}
    for option in faults.values():
        parser.add_argument("--" + option.replace("_", "-"), type=int, default=0, metavar="N")
    parser.add_argument("--programs", default=str(HERE.parents[1] / "build/release/bin"))
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side (2)")
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--whole-run", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only is not None:
        print(json.dumps(make_fault("lost host", arguments.only, arguments, arguments.whole_run)))
        return 0
    print(f"--seed {arguments.seed}", flush=True)
    whole_run = min(length_of_a_run(arguments, number) for number in range(3))
    asked = [(fault, i) for fault, option in faults.items() for i in range(getattr(arguments, option))]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = list(pool.map(lambda one: make_fault(*one, arguments, whole_run), asked))
    return 1 if table(outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
