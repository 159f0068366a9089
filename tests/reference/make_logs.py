#!/usr/bin/env python3
"""Makes folders of synthetic logs in Plumbline's layout, which three published analyzers read as it is.

    make_logs.py OUT [--cases 1n1g,1n4g,1n8g,2n8g,4n8g] [--runs 5] [--batch 128] [--iters 120] [--seed 1]
                 [--model rn50] [--precision fp32] [--elapse-decimals 6]

Files: OUT/<N>n<G>g/<model>_b<batch>_<precision>_<run>.log, runs counted from 1. The same arguments give the same
bytes. Speeds vary by run and by iteration; the wall stamps advance by each iteration's time, over midnight.

tests/data/analyze/ was made with

    make_logs.py tests/data/analyze/tree --cases 1n1g,2n8g --runs 2 --seed 7

and tests/data/analyze/expected_<dialect>.json are what the original scripts of DLPerf make of it. To repeat:

    git clone https://github.com/Oneflow-Inc/DLPerf && git -C DLPerf checkout c89430b
    python3 -m venv venv && venv/bin/pip install numpy
    venv/bin/python DLPerf/PaddlePaddle/resnet50v1.5/extract_paddle_logs.py      --log_dir TREE --output_dir OUT
    venv/bin/python DLPerf/PaddlePaddle/resnet50v1.5/extract_paddle_logs_time.py --log_dir TREE --output_dir OUT
    venv/bin/python DLPerf/MxNet/Classification/RN50v1b/extract_mxnet_logs.py    --log_dir TREE --output_dir OUT

with absolute paths (the scripts change into their own folder), no slash at the end of TREE; each writes
OUT/<name of TREE>_result.json, in the order in which the file system lists the logs. The expected files hold the
same with sorted keys: json.dumps(json.load(open(FILE)), sort_keys=True). `plumbline analyze TREE --dialect NAME
--json FILE` writes the very same bytes.
"""
import argparse
import datetime
import pathlib
import random


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
    args = parser.parse_args()
    rng = random.Random(args.seed)
    for case in args.cases.split(","):
        nodes, devices = (int(number) for number in case[:-1].split("n"))
        folder = args.out / case
        folder.mkdir(parents=True, exist_ok=True)
        for run in range(1, args.runs + 1):
            name = f"{args.model}_b{args.batch}_{args.precision}_{run}.log"
            write_log(folder / name, nodes * devices, args.batch, args.iters, args.elapse_decimals, rng)


if __name__ == "__main__":
    main()
