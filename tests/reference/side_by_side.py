#!/usr/bin/env python3
"""Training on this machine's CPUs by Plumbline and by PyTorch, in turn, so that drift of the machine hits both alike:
for figures of a few iterations. Needs torch for the scripts of results/peers. Whole runs, with logs and tests of
significance: launch/compare_peers.sh.

    python3 side_by_side.py build/release/bin --models resnet50,r50 --precisions fp32,bf16 --layouts 1x2,2x1 --out sides.json

Prints images/s (median over the iterations behind the warm-up, then over rounds) and the ratio: Plumbline's divided by
PyTorch's best way of the same round, median over rounds. A layout is ranks x threads; ranks share the batch, and go
through mpirun (PyTorch: DistributedDataParallel over gloo). All processes get the same CPUs. "busy": runs beside which
other processes took more than --busy of a core. "start": Plumbline's seconds outside its iterations. Exit codes: 64
usage, 69 no PyTorch or no programs, else that of a run that failed.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time

PEERS = pathlib.Path(__file__).resolve().parents[2] / "results" / "peers"
sys.path.insert(0, str(PEERS))
from pytorch_options import Parser, number_from  # noqa: E402

WAYS = {"default": ["--layout", "default"], "channels-last": [], "compiled": ["--compile"]}


def give_up(code: int, sentence: str):
    print(f"side_by_side.py: {sentence}", file=sys.stderr)
    raise SystemExit(code)


def list_of(choices):
    def read(text: str) -> list:
        for word in text.split(","):
            if word not in choices:
                raise argparse.ArgumentTypeError(f"'{word}' is not one of {', '.join(choices)}")
        return text.split(",")
    return read


def layouts(text: str) -> list:
    try:
        found = [tuple(map(int, layout.split("x"))) for layout in text.split(",")]
        if all(len(layout) == 2 and min(layout) > 0 for layout in found):
            return found
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"'{text}' is no list of ranks x threads; give one such as 1x2,2x1")


def busy_seconds() -> float:
    """CPU time that the whole machine has spent, without waiting for disks."""
    user, nice, system, _, _, irq, softirq = map(int, pathlib.Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    children, own = resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)
    return children.ru_utime + children.ru_stime + own.ru_utime + own.ru_stime


def timed_run(what: str, command: list, ranks: int) -> dict:
    """The one JSON object that the command prints, its seconds, and the cores that others used meanwhile."""
    launcher = ["mpirun", "-np", str(ranks), "--bind-to", "none"] if ranks > 1 else []
    if launcher and os.getuid() == 0:
        launcher.append("--allow-run-as-root")
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/messages", "w+") as messages:
        busy, own, start = busy_seconds(), own_seconds(), time.monotonic()
        run = subprocess.run([*launcher, *map(str, command)], cwd=folder, stdout=subprocess.PIPE, stderr=messages)
        seconds = time.monotonic() - start
        others = max(0.0, busy_seconds() - busy - (own_seconds() - own)) / seconds
        if run.returncode:
            messages.seek(0)
            sys.stderr.writelines(messages.readlines()[-5:])
            give_up(run.returncode, f"{what} failed with exit code {run.returncode}; its last messages stand above")
    return {"result": json.loads(run.stdout), "seconds": seconds, "others": others}


class Case:
    """One model, precision and layout, by Plumbline and in PyTorch's ways."""

    def __init__(self, args, model: str, precision: str, ranks: int, threads: int) -> None:
        self.model, self.precision, self.ranks, self.threads = model, precision, ranks, threads
        faces = model != "resnet50"
        common = ["--device", "cpu", "--bs", args.batch // ranks, "--threads", threads, f"--{precision}", "--iters",
                  args.warmup + args.iters, "--warmup", args.warmup, "--lr", 0.001, "--image-size",
                  args.image_size or (112 if faces else 224)]
        if faces:
            common += ["--backbone", model, "--classes", args.classes]
        program = args.programs.resolve() / ("bench_arcface" if faces else "bench_resnet50")
        script = PEERS / ("pytorch_arcface.py" if faces else "pytorch_resnet50.py")
        self.commands = {"Plumbline": [program, *common, "--json", "--quiet",
                                       *(["--head", "dp"] if faces and ranks > 1 else [])]}
        self.commands |= {way: [sys.executable, "-B", script, *common, *WAYS[way]] for way in args.ways}
        self.rounds = []

    def why_not(self) -> str:
        """Empty, or Plumbline's sentence why it can't run this."""
        asked = subprocess.run([*map(str, self.commands["Plumbline"]), "--dry-run"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
        return " ".join(asked.stderr.split()) if asked.returncode else ""

    def run_round(self, busy: float) -> None:
        os.sched_setaffinity(0, sorted(ALL_CPUS)[:self.ranks * self.threads])
        figures, flagged = {}, []
        for way, command in self.commands.items():
            run = timed_run(f"{self.name()} by {way}", command, self.ranks)
            figures[way] = run["result"]["images_per_second"]["median"]
            if way == "Plumbline":
                figures["start"] = run["seconds"] - sum(run["result"]["step_seconds"])
            if run["others"] > busy:
                flagged.append({"run": way, "cores_of_others": round(run["others"], 2)})
        best = max(figures[way] for way in self.commands if way != "Plumbline")
        self.rounds.append(figures | {"ratio": figures["Plumbline"] / best, "busy": flagged})
        shown = {name: round(value, 2) for name, value in self.rounds[-1].items() if name != "busy"}
        print(self.name(), len(self.rounds), shown, *(["busy:", flagged] if flagged else []), file=sys.stderr, flush=True)

    def name(self) -> str:
        return f"{self.model} {self.precision} {self.ranks}x{self.threads}"

    def median(self, figure: str) -> float:
        return statistics.median(figures[figure] for figures in self.rounds)

    def to_json(self) -> dict:
        figures = [name for name in self.rounds[0] if name != "busy"]
        return {"model": self.model, "precision": self.precision, "ranks": self.ranks, "threads": self.threads,
                "median": {name: self.median(name) for name in figures}, "rounds": self.rounds}


def table(cases: list, ways: list) -> str:
    rows = [["case", "Plumbline", *ways, "ratio", "start s", "busy"]]
    for case in cases:
        busy = sum(len(figures["busy"]) for figures in case.rounds)
        rows.append([case.name(), *(f"{case.median(way):.2f}" for way in ("Plumbline", *ways, "ratio", "start")),
                     f"{busy} of {len(case.rounds) * len(case.commands)}"])
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def beside_one_rank(cases: list) -> list:
    """Sentences: several ranks beside one rank with as many threads in all."""
    ones = {(one.model, one.precision, one.threads): one for one in cases if one.ranks == 1}
    sentences = []
    for case in cases:
        one = ones.get((case.model, case.precision, case.ranks * case.threads))
        if case.ranks > 1 and one:
            sentences.append(f"{case.name()} reaches {case.median('Plumbline') / one.median('Plumbline'):.2f} of {one.name()}")
    return sentences


def cpu_name() -> str:
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def versions(program: pathlib.Path) -> dict:
    ours = json.loads(subprocess.run([program, "--version", "--json"], check=True, stdout=subprocess.PIPE).stdout)
    import torch
    return {"plumbline": ours["commit"], "oneDNN": ours["libraries"]["oneDNN"], "PyTorch": torch.__version__,
            "PyTorch's CPU capability": torch.backends.cpu.get_cpu_capability(), "cpu": cpu_name()}


def parse_options():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path, help="folder of bench_resnet50 and bench_arcface")
    parser.add_argument("--models", type=list_of(["resnet50", "r50", "r100", "y1"]), default=["resnet50", "r50"])
    parser.add_argument("--precisions", type=list_of(["fp32", "bf16"]), default=["fp32"])
    parser.add_argument("--layouts", type=layouts, help="ranks x threads, such as 1x2,2x1 (1 x all CPUs)")
    parser.add_argument("--ways", type=list_of(WAYS), default=list(WAYS), help="PyTorch's: " + ", ".join(WAYS))
    parser.add_argument("--classes", type=number_from(2), default=85742, help="of faces (85742)")
    parser.add_argument("--image-size", type=number_from(32), help="224, of faces 112")
    parser.add_argument("--batch", type=number_from(1), default=16, help="images of a step over all ranks (16)")
    parser.add_argument("--iters", type=number_from(1), default=4, help="behind the warm-up (4)")
    parser.add_argument("--warmup", type=number_from(0), default=2)
    parser.add_argument("--rounds", type=number_from(1), default=5)
    parser.add_argument("--busy", type=float, default=0.1, help="cores of others from which on a run is flagged (0.1)")
    parser.add_argument("--out", type=pathlib.Path, help="a JSON file for every figure")
    args = parser.parse_args()
    if args.out and not args.out.absolute().parent.is_dir():
        parser.error(f"option --out: there is not a folder {args.out.parent}; make it, or give another")
    args.layouts = args.layouts or [(1, len(ALL_CPUS))]
    for ranks, threads in args.layouts:
        if ranks * threads > len(ALL_CPUS):
            parser.error(f"option --layouts: {ranks}x{threads} wants {ranks * threads} CPUs, and {len(ALL_CPUS)} are here")
        if args.batch % ranks:
            parser.error(f"option --batch: {args.batch} can't be shared evenly by {ranks} ranks; give a multiple")
    return args


ALL_CPUS = os.sched_getaffinity(0)


def main() -> None:
    args = parse_options()
    if not importlib.util.find_spec("torch"):
        give_up(69, f"PyTorch is missing: {sys.executable} can't import torch; install it (pip install torch), or start "
                    "this with a python3 that has it")
    for name in ("bench_resnet50", "bench_arcface"):
        if not os.access(args.programs / name, os.X_OK):
            give_up(69, f"there is no {name} in {args.programs}; build it, or name its folder")
    cases = []
    for case in (Case(args, model, precision, *layout) for model in args.models for precision in args.precisions
                 for layout in args.layouts):
        if reason := case.why_not():
            print(f"{case.name()} is left out: {reason}")
        else:
            cases.append(case)
    for _ in range(args.rounds):
        for case in cases:
            case.run_round(args.busy)
    machine = versions(args.programs.resolve() / "bench_resnet50")
    print("\n".join([str(machine), *([table(cases, args.ways)] if cases else []), *beside_one_rank(cases)]))
    if args.out:
        args.out.write_text(json.dumps({"versions": machine, "batch": args.batch, "iterations": args.iters,
                                        "cases": [case.to_json() for case in cases]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
