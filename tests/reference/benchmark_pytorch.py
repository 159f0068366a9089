#!/usr/bin/env python3
"""CPU training throughput of torchvision's resnet50 in PyTorch, to be held beside bench_resnet50's on the same
machine. Needs torch and torchvision. fp32, one synthetic batch, SGD (momentum 0.875, weight decay 2^-15), label
smoothing 0.1: the recipe of bench_resnet50. Prints one JSON line per memory layout:

    python3 benchmark_pytorch.py --threads 2 --batch 16 --image-size 224 --iters 12 --warmup 3
    {"framework": "pytorch", "layout": "channels_last", ..., "step_seconds_median": 2.9, "images_per_second": 5.5}
"""

import argparse
import json
import statistics
import time

import torch
import torchvision


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def step_seconds(args, memory_format) -> list:
    torch.manual_seed(0)
    model = torchvision.models.resnet50(weights=None).train().to(memory_format=memory_format)
    images = torch.randn(args.batch, 3, args.image_size, args.image_size).contiguous(memory_format=memory_format)
    labels = torch.randint(1000, (args.batch,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.875, weight_decay=2.0**-15)
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    seconds = []
    for _ in range(args.warmup + args.iters):
        started = time.perf_counter()
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - started)
    return seconds[args.warmup:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=positive, default=2)
    parser.add_argument("--batch", type=positive, default=16)
    parser.add_argument("--image-size", type=positive, default=224)
    parser.add_argument("--iters", type=positive, default=12, help="timed steps")
    parser.add_argument("--warmup", type=int, default=3, help="steps before them")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    for layout, memory_format in (("default", torch.contiguous_format), ("channels_last", torch.channels_last)):
        seconds = step_seconds(args, memory_format)
        median = statistics.median(seconds)
        print(json.dumps({"framework": "pytorch", "version": torch.__version__, "model": "resnet50", "layout": layout,
                          "precision": "fp32", "threads": args.threads, "batch": args.batch,
                          "image_size": args.image_size, "iterations": args.iters,
                          "step_seconds_median": round(median, 6),
                          "images_per_second": round(args.batch / median, 3)}), flush=True)


if __name__ == "__main__":
    main()
