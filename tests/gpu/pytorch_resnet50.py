#!/usr/bin/env python3
"""Training throughput of ResNet-50 v1.5 in PyTorch as it is at its best: channels-last, autocast with loss scaling in
half precision, fused SGD, cuDNN's benchmark mode, on request torch.compile. One synthetic batch that stays on the
device; the recipe of bench_resnet50. Needs torch, not torchvision. Prints one JSON object:

    python3 pytorch_resnet50.py --precision fp16 --batch 256 --compile
"""
import argparse
import contextlib
import json
import statistics
import time

import torch
from torch import nn


class Bottleneck(nn.Module):
    """1x1, 3x3 (with the stride, as in v1.5), 1x1 to four times the width, around a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.body(x) + self.shortcut(x))


def resnet50() -> nn.Module:
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width, stride if block == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


class Clock:
    """Marks between steps on the device's own clock, so that nothing waits for them."""

    def __init__(self, device: str) -> None:
        self.on_gpu = device == "cuda"
        self.marks = []

    def mark(self) -> None:
        if self.on_gpu:
            self.marks.append(torch.cuda.Event(enable_timing=True))
            self.marks[-1].record()
        else:
            self.marks.append(time.perf_counter())

    def step_seconds(self) -> list:
        pairs = zip(self.marks, self.marks[1:])
        if not self.on_gpu:
            return [b - a for a, b in pairs]
        torch.cuda.synchronize()
        return [a.elapsed_time(b) / 1000 for a, b in pairs]


def train(args: argparse.Namespace) -> list:
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
    model = resnet50().to(args.device, memory_format=torch.channels_last).train()
    images = torch.randn(args.batch, 3, args.image_size, args.image_size, device=args.device)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(1000, (args.batch,), device=args.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.875, weight_decay=2.0**-15,
                                fused=args.device == "cuda" or None)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    half = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(args.precision)
    scaler = torch.amp.GradScaler(args.device, enabled=args.precision == "fp16")
    autocast = (lambda: torch.autocast(args.device, half)) if half else contextlib.nullcontext
    if args.compile:
        model = torch.compile(model)

    clock = Clock(args.device)
    clock.mark()
    for _ in range(args.iterations):
        optimizer.zero_grad(set_to_none=True)
        with autocast():
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        clock.mark()
    return clock.step_seconds()[args.warmup:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--precision", choices=("fp32", "tf32", "fp16", "bf16"), default="fp32")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--iterations", type=int, default=120, help="steps in all")
    parser.add_argument("--warmup", type=int, default=20, help="leading steps left out of the figures")
    parser.add_argument("--compile", action="store_true", help="through torch.compile")
    args = parser.parse_args()
    seconds = train(args)
    median = statistics.median(seconds)
    name = torch.cuda.get_device_name() if args.device == "cuda" else "cpu"
    print(json.dumps({
        "framework": "pytorch", "version": torch.__version__, "compiled": args.compile, "model": "resnet50",
        "device_name": name, "precision": args.precision, "batch_per_device": args.batch, "image_size": args.image_size,
        "iterations": args.iterations, "warmup": args.warmup, "step_seconds": seconds,
        "images_per_second": {"mean": args.batch * len(seconds) / sum(seconds), "median": args.batch / median}}))


if __name__ == "__main__":
    main()
