#!/usr/bin/env python3
"""CPU training throughput of PyTorch, to be held beside bench_resnet50's and bench_arcface's on the same machine. Needs
torch and torchvision. fp32, one synthetic batch, the recipe of the bench programs: torchvision's resnet50, or the faces
of arcface_models.py with all classes in one softmax. Prints one JSON line per memory layout:

    python3 benchmark_pytorch.py --threads 2 --batch 16 --iters 12 --warmup 3
    python3 benchmark_pytorch.py --model r50 --classes 85742 --threads 2 --batch 16
    {"framework": "pytorch", "layout": "channels_last", ..., "step_seconds_median": 2.9, "images_per_second": 5.5}
"""

import argparse
import json
import statistics
import time

import torch
import torchvision

from arcface_models import Face


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def make_case(args):
    """The model, the images' extent, the number of classes and the optimizer's numbers."""
    if args.model == "resnet50":
        model = torchvision.models.resnet50(weights=None)
        criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
        return model, lambda images, labels: criterion(model(images), labels), 224, 1000, (0.875, 2.0**-15)
    embedding = 128 if args.model == "y1" else 512
    model = Face(args.model, args.classes, embedding, 112, (1.0, 0.5, 0.0), dropout=0.4)
    torch.nn.init.normal_(model.head.weight, std=0.01)
    return model, model, 112, args.classes, (0.9, 5e-4)


def step_seconds(args, memory_format) -> list:
    torch.manual_seed(0)
    model, loss_of, image_size, classes, (momentum, weight_decay) = make_case(args)
    model.train().to(memory_format=memory_format)
    images = torch.randn(args.batch, 3, image_size, image_size).contiguous(memory_format=memory_format)
    labels = torch.randint(classes, (args.batch,))
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=0.001, momentum=momentum, weight_decay=weight_decay)
    seconds = []
    for _ in range(args.warmup + args.iters):
        started = time.perf_counter()
        optimizer.zero_grad()
        loss = loss_of(images, labels)
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - started)
    return seconds[args.warmup:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=positive, default=2)
    parser.add_argument("--batch", type=positive, default=16)
    parser.add_argument("--model", choices=["resnet50", "r50", "r100", "y1"], default="resnet50")
    parser.add_argument("--classes", type=positive, default=85742, help="of faces")
    parser.add_argument("--iters", type=positive, default=12, help="timed steps")
    parser.add_argument("--warmup", type=int, default=3, help="steps before them")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    for layout, memory_format in (("default", torch.contiguous_format), ("channels_last", torch.channels_last)):
        seconds = step_seconds(args, memory_format)
        median = statistics.median(seconds)
        print(json.dumps({"framework": "pytorch", "version": torch.__version__, "model": args.model, "layout": layout,
                          "precision": "fp32", "threads": args.threads, "batch": args.batch,
                          "iterations": args.iters,
                          "step_seconds_median": round(median, 6),
                          "images_per_second": round(args.batch / median, 3)}), flush=True)


if __name__ == "__main__":
    main()
