#!/usr/bin/env python3
"""A bench program and PyTorch on the same CPU, in turn, so that drift of the machine hits both alike; for figures of a
few iterations, which no analyzer takes. Needs torch for the scripts of results/peers, which it starts with the same
python3. Whole runs, with logs and tests of significance: launch/compare_peers.sh.

    python3 side_by_side.py build/release/bin/bench_resnet50 --threads 2 --batch 16 --rounds 5
    python3 side_by_side.py build/release/bin/bench_arcface --model r50 --classes 85742

Prints, per round, images/s (median over the iterations after the warm-up) of ours and of PyTorch's layouts, then the
medians over rounds, and the median over rounds of ours divided by the better layout of the same round. "start": seconds
of our process outside its iterations, start-up and end together.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

PEERS = pathlib.Path(__file__).resolve().parents[2] / "results" / "peers"


def common_options(args) -> list:
    model = [] if args.model == "resnet50" else ["--backbone", args.model, "--classes", str(args.classes)]
    return [*model, "--device", "cpu", "--bs", str(args.batch), "--threads", str(args.threads),
            "--iters", str(args.warmup + args.iters), "--warmup", str(args.warmup), "--lr", "0.001"]


def run_ours(args) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        run = subprocess.run([pathlib.Path(args.program).resolve(), *common_options(args), "--json", "--quiet"],
                             cwd=folder, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        seconds = time.monotonic() - started
    result = json.loads(run.stdout)
    return {"ours": result["images_per_second"]["median"], "start": seconds - sum(result["step_seconds"])}


def run_pytorch(args, layout: str) -> dict:
    script = PEERS / ("pytorch_resnet50.py" if args.model == "resnet50" else "pytorch_arcface.py")
    run = subprocess.run([sys.executable, script, *common_options(args), "--layout", layout],
                         check=True, stdout=subprocess.PIPE)
    return {layout: json.loads(run.stdout)["images_per_second"]["median"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="bench_resnet50 or bench_arcface")
    parser.add_argument("--model", choices=["resnet50", "r50", "r100", "y1"], default="resnet50")
    parser.add_argument("--classes", type=int, default=85742, help="of faces")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--iters", type=int, default=6)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    rounds = []
    for number in range(args.rounds):
        figures = run_ours(args) | run_pytorch(args, "default") | run_pytorch(args, "channels-last")
        figures["ratio"] = figures["ours"] / max(figures["default"], figures["channels-last"])
        rounds.append(figures)
        print(number + 1, {name: round(value, 2) for name, value in figures.items()}, flush=True)
    print("median", {name: round(statistics.median(r[name] for r in rounds), 2) for name in rounds[0]})


if __name__ == "__main__":
    main()
