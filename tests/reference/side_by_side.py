#!/usr/bin/env python3
"""A bench program and PyTorch on the same CPU, in turn, so that drift of the machine hits both alike. Needs torch and
torchvision for benchmark_pytorch.py, which it starts with the same python3.

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


def model_options(args, option: str) -> list:
    return [] if args.model == "resnet50" else [option, args.model, "--classes", str(args.classes)]


def run_ours(args) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        run = subprocess.run(
            [pathlib.Path(args.program).resolve(), *model_options(args, "--backbone"), "--device", "cpu",
             "--bs", str(args.batch), "--threads", str(args.threads), "--iters", str(args.warmup + args.iters),
             "--warmup", str(args.warmup), "--lr", "0.001", "--json", "--quiet"],
            cwd=folder, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        seconds = time.monotonic() - started
    result = json.loads(run.stdout)
    return {"ours": result["images_per_second"]["median"], "start": seconds - sum(result["step_seconds"])}


def run_pytorch(args) -> dict:
    script = pathlib.Path(__file__).with_name("benchmark_pytorch.py")
    run = subprocess.run(
        [sys.executable, script, *model_options(args, "--model"), "--threads", str(args.threads),
         "--batch", str(args.batch), "--iters", str(args.iters), "--warmup", str(args.warmup)],
        check=True, stdout=subprocess.PIPE)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    return {line["layout"]: line["images_per_second"] for line in lines}


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
        figures = run_ours(args) | run_pytorch(args)
        figures["ratio"] = figures["ours"] / max(figures["default"], figures["channels_last"])
        rounds.append(figures)
        print(number + 1, {name: round(value, 2) for name, value in figures.items()}, flush=True)
    print("median", {name: round(statistics.median(r[name] for r in rounds), 2) for name in rounds[0]})


if __name__ == "__main__":
    main()
