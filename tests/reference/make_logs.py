#!/usr/bin/env python3
"""Makes folders of synthetic logs in a framework's own lines, or in Plumbline's layout, which three published
analyzers read as it is.

    make_logs.py OUT [--dialect plumbline|mxnet_arcface|mxnet_partial_fc|oneflow_face|plsc]
                 [--cases 1n1g,1n4g,1n8g,2n8g,4n8g] [--runs 5] [--batch 128] [--iters 120] [--seed 1]
                 [--model rn50] [--precision fp32] [--elapse-decimals 6]

Files: OUT/<N>n<G>g/<model>_b<batch>_<precision>_<run>.log, runs counted from 1. The same arguments give the same
bytes. Speeds vary by run and by iteration; the wall stamps advance by each iteration's time, over midnight.
plsc: the log of a node, into which each of its ranks has written its line (on one device: one line).

tests/data/dialects/ was made with

    make_logs.py tests/data/dialects/tree --cases 1n1g,2n8g --runs 2 --seed 7

and tests/data/dialects/expected_<dialect>.json are what the original scripts of DLPerf make of it. To repeat:

    git clone https://github.com/Oneflow-Inc/DLPerf && git -C DLPerf checkout c89430b
    python3 -m venv venv && venv/bin/pip install numpy
    venv/bin/python DLPerf/PaddlePaddle/resnet50v1.5/extract_paddle_logs.py      --log_dir TREE --output_dir OUT
    venv/bin/python DLPerf/PaddlePaddle/resnet50v1.5/extract_paddle_logs_time.py --log_dir TREE --output_dir OUT
    venv/bin/python DLPerf/MxNet/Classification/RN50v1b/extract_mxnet_logs.py    --log_dir TREE --output_dir OUT

with absolute paths (the scripts change into their own folder), no slash at the end of TREE; each writes
OUT/<name of TREE>_result.json, in the order in which the file system lists the logs. The expected files hold the
same with sorted keys: json.dumps(json.load(open(FILE)), sort_keys=True). `plumbline analyze TREE --dialect NAME
--json FILE` writes the very same bytes.

The four other dialects, tests/data/dialects/<dialect>/, each with

    make_logs.py tests/data/dialects/<dialect> --dialect <dialect> --cases 1n1g,2n8g --runs 2 --seed 7 --model r50 \\
                 --batch 64 --iters 160        (plsc: --cases 1n1g,1n8g)

and expected_<dialect>.json in the same way by MxNet/InsightFace/ArcFace/extract_mxnet_logs.py, MxNet/InsightFace/
PartailFC/extract_mxnet_logs.py, OneFlow/Recognition/insightface/extract_oneflow_logs_time.py, and, of the branch
dev_paddle_plsc_arcface (7e236cf4), PaddlePaddle/PLSC/extract_paddle_logs.py. The last one takes warm-up lines of a
log of 8 ranks; expected_plsc.json has the right figures, by

    make_logs.py tests/data/dialects/plsc --plsc-figures >tests/data/dialects/expected_plsc.json
"""
import argparse
import datetime
import json
import pathlib
import random
import re


def speed_of(devices, rng):
    """Images per second of one run: sub-linear in the devices, a few percent of noise between runs."""
    return 390.0 * devices**0.97 * rng.uniform(0.97, 1.03)


def write_log(path, devices, batch, iterations, decimals, rng):
    images = devices * batch
    run_speed = speed_of(devices, rng)
    stamp = datetime.datetime(2025, 1, 2, 23, 59, 40) + datetime.timedelta(microseconds=rng.randrange(10**6))
    with open(path, "w", encoding="ascii", newline="\n") as log:
        for i in range(iterations):
            slow_start = 3.0 / (i + 1) ** 2
            seconds = images / run_speed * (rng.uniform(0.98, 1.02) + slow_start)
            stamp += datetime.timedelta(seconds=seconds)
            text = stamp.strftime("%Y-%m-%d %H:%M:%S") + ",%03d" % (stamp.microsecond // 1000)
            log.write(
                "%s-INFO: [Pass 0, train batch %d] \tloss %.5f, acc1 %.5f, acc5 %.5f, lr %.5f, elapse %.*f sec "
                "Epoch[0] Batch[%d]\tSpeed: %.2f samples/sec\n"
                % (text, i, 7.0 - 0.001 * i, 0.0, 0.0, 0.1, decimals, seconds, i + 1, images / seconds)
            )


class Iterations:
    """Times of a run's iterations, one after the other; seconds, and the wall clock at the end."""

    def __init__(self, images, rng):
        self.images = images
        self.run_speed = speed_of(images / 64, rng)
        self.stamp = datetime.datetime(2025, 1, 2, 23, 59, 40) + datetime.timedelta(microseconds=rng.randrange(10**6))
        self.rng = rng
        self.count = 0

    def next(self):
        self.count += 1
        seconds = self.images / self.run_speed * (self.rng.uniform(0.98, 1.02) + 3.0 / self.count**2)
        self.stamp += datetime.timedelta(seconds=seconds)
        return seconds

    def speed_of_next(self, count):
        return self.images * count / sum(self.next() for _ in range(count))

    def stamp_text(self):
        return self.stamp.strftime("%Y-%m-%d %H:%M:%S") + ",%03d" % (self.stamp.microsecond // 1000)


def mxnet_arcface_lines(run, nodes, devices, iterations):
    run.next()
    for batch in range(20, iterations + 1, 20):
        speed = run.speed_of_next(20) / nodes
        yield "INFO:root:Epoch[0] Batch [%d]\tSpeed: %.2f samples/sec\tacc=%.6f" % (batch, speed, 0)


def mxnet_partial_fc_lines(run, nodes, devices, iterations):
    run.next()
    for count in range(2, iterations + 1):
        total = run.speed_of_next(1)
        yield "rank-id:0:%s-Iter:%d Rank:%.2f it/sec Total:%.2f it/sec [0][loss]:%.2f " % (
            run.stamp_text(), count, total / nodes / devices, total, 45 - 0.01 * count)


def oneflow_face_lines(run, nodes, devices, iterations):
    for step in range(iterations):
        yield "train: iter %d, loss %s, throughput: %.3f" % (step, 45.2 - step / 100, run.speed_of_next(1))


def plsc_lines(run, nodes, devices, iterations):
    for batch in range(0, iterations, 10):
        speed = run.speed_of_next(10 if batch else 1)
        for _ in range(devices):
            qps = speed * run.rng.uniform(0.999, 1.001)
            yield "INFO %s entry.py:1020] Pass:0 batch:%d lr:%.8f loss:%.6f qps:%.2f" % (
                run.stamp_text(), batch, 0.0125, 40 - 0.01 * batch, qps)


def write_framework_log(path, dialect, nodes, devices, batch, iterations, rng):
    lines = globals()[dialect + "_lines"](Iterations(nodes * devices * batch, rng), nodes, devices, iterations)
    with open(path, "w", encoding="ascii", newline="\n") as log:
        log.write("Namespace(batch_size=%d)\n" % batch)
        for line in lines:
            log.write(line + "\n")


def plsc_figures(tree):
    """The dictionary of PLSC's logs by batch: all lines of batches 50 to 140."""
    import numpy as np

    figures = {}
    for path in sorted(tree.glob("*/*.log")):
        found = re.findall(r"batch:(\d+) .* qps:([0-9]+\.[0-9]+)", path.read_text())
        speeds = [float(qps) for batch, qps in found if 50 <= int(batch) <= 140]
        figures.setdefault(path.parent.name, []).append(round(np.mean(speeds), 2))
    model, batch = path.name.split("_")[0], int(path.name.split("_")[1].strip("b"))
    base = round(np.median(figures["1n1g"]), 2)
    cases = {}
    for case, speeds in figures.items():
        median = round(np.median(speeds), 2)
        cases[case] = {"average_speed": round(sum(speeds) / len(speeds), 2), "batch_size_per_device": batch,
                       "median_speed": median, "speedup": round(median / base, 2)}
    print(json.dumps({model: cases}, sort_keys=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--cases", default="1n1g,1n4g,1n8g,2n8g,4n8g")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--iters", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", default="rn50")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--elapse-decimals", type=int, default=6)
    parser.add_argument("--dialect", default="plumbline")
    parser.add_argument("--plsc-figures", action="store_true")
    args = parser.parse_args()
    if args.plsc_figures:
        plsc_figures(args.out)
        return
    rng = random.Random(args.seed)
    for case in args.cases.split(","):
        nodes, devices = (int(number) for number in case[:-1].split("n"))
        folder = args.out / case
        folder.mkdir(parents=True, exist_ok=True)
        for run in range(1, args.runs + 1):
            name = f"{args.model}_b{args.batch}_{args.precision}_{run}.log"
            if args.dialect == "plumbline":
                write_log(folder / name, nodes * devices, args.batch, args.iters, args.elapse_decimals, rng)
            else:
                write_framework_log(folder / name, args.dialect, nodes, devices, args.batch, args.iters, rng)


if __name__ == "__main__":
    main()
