"""What the measurements of PyTorch share: their options, a training loop as it is at its best (channels-last, autocast
with loss scaling in half precision, fused SGD, cuDNN's benchmark mode, on request torch.compile) on one synthetic batch
that stays on the device, and the JSON object that they print."""
import argparse
import contextlib
import json
import statistics
import time

import torch
from torch import nn


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


class WithLoss(nn.Module):
    """Images and labels to the loss."""

    def __init__(self, model: nn.Module, loss) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return self.loss(self.model(images), labels)


def step_seconds(args: argparse.Namespace, make_network, classes: int, momentum: float, decay: float) -> list:
    """Seconds of the steps after the warm-up. make_network() gives a module from images and labels to the loss."""
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
    network = make_network().to(args.device, memory_format=torch.channels_last).train()
    images = torch.randn(args.batch, 3, args.image_size, args.image_size, device=args.device)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(classes, (args.batch,), device=args.device)
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=0.001, momentum=momentum, weight_decay=decay,
                                fused=args.device == "cuda" or None)
    half = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(args.precision)
    scaler = torch.amp.GradScaler(args.device, enabled=args.precision == "fp16")
    autocast = (lambda: torch.autocast(args.device, half)) if half else contextlib.nullcontext
    if args.compile:
        network = torch.compile(network)

    clock = Clock(args.device)
    clock.mark()
    for _ in range(args.iterations):
        optimizer.zero_grad(set_to_none=True)
        with autocast():
            value = network(images, labels)
        scaler.scale(value).backward()
        scaler.step(optimizer)
        scaler.update()
        clock.mark()
    return clock.step_seconds()[args.warmup:]


def options(description: str, batch: int, image_size: int, iterations: int, warmup: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--precision", choices=("fp32", "tf32", "fp16", "bf16"), default="fp32")
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--image-size", type=int, default=image_size)
    parser.add_argument("--iterations", type=int, default=iterations, help="steps in all")
    parser.add_argument("--warmup", type=int, default=warmup, help="leading steps left out of the figures")
    parser.add_argument("--compile", action="store_true", help="through torch.compile")
    return parser


def print_result(args: argparse.Namespace, model: str, seconds: list, **more) -> None:
    name = torch.cuda.get_device_name() if args.device == "cuda" else "cpu"
    print(json.dumps({
        "framework": "pytorch", "version": torch.__version__, "compiled": args.compile, "model": model,
        "device_name": name, "precision": args.precision, "batch_per_device": args.batch, "image_size": args.image_size,
        **more, "iterations": args.iterations, "warmup": args.warmup, "step_seconds": seconds,
        "images_per_second": {"mean": args.batch * len(seconds) / sum(seconds),
                              "median": args.batch / statistics.median(seconds)}}))
