"""A training loop in PyTorch as it is at its best: channels-last, autocast with loss scaling in half precision, fused
SGD, cuDNN's benchmark mode, DistributedDataParallel, on request torch.compile; on one synthetic batch that stays on the
device. Nothing is written or read back while it is timed."""
import argparse
import contextlib
import datetime
import json
import os
import time

import torch
from torch import nn

from peer_result import give_up, open_log, require_finite, speed
from pytorch_options import Job, job_of

TRACED_STEPS = 5


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


def join(args: argparse.Namespace) -> Job:
    """Settles the device; with several ranks, makes them a group."""
    job = job_of()
    there = torch.cuda.is_available()
    if args.device == "cuda" and not there:
        give_up(69, "option --device: PyTorch sees no GPU; give --device cpu")
    if args.device == "auto":
        args.device = "cuda" if there else "cpu"
    if args.device == "cpu":
        torch.set_num_threads(args.threads or max(1, len(os.sched_getaffinity(0)) // job.local_world))
    else:
        torch.cuda.set_device(job.local_rank % torch.cuda.device_count())
    if job.world > 1:
        if job.nodes > 1 and "MASTER_ADDR" not in os.environ:
            give_up(64, "several nodes want the first one's address: mpirun -x MASTER_ADDR=HOST, or torchrun")
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29511")
        torch.distributed.init_process_group("nccl" if args.device == "cuda" else "gloo", rank=job.rank,
                                             world_size=job.world)
    return job


def make_optimizer(parameters: list, lr: float, momentum: float, decay: float) -> torch.optim.SGD:
    """Fused SGD whose momentum starts at zero, which gives the same weights as PyTorch's own start: the first gradient.
    PyTorch (torch/optim/sgd.py, _fused_sgd, 2.11) allocates the momentum with empty_like and returns before it writes it
    if the GradScaler found an overflow. After a skipped first step, the next one would multiply uninitialized memory."""
    optimizer = torch.optim.SGD(parameters, lr=lr, momentum=momentum, weight_decay=decay, fused=True)
    for parameter in parameters:
        optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
    return optimizer


class Training:
    """make_network() gives a module from images and labels to the loss."""

    def __init__(self, args: argparse.Namespace, job: Job, make_network, classes: int, momentum: float,
                 decay: float) -> None:
        torch.manual_seed(args.seed)  # the same parameters on all ranks
        torch.backends.cudnn.benchmark = True
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
        network = make_network().to(args.device, memory_format=torch.channels_last).train()
        trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
        self.parameters = sum(parameter.numel() for parameter in trained)
        torch.manual_seed(args.seed + 1 + job.rank)
        images = torch.randn(args.bs, 3, args.image_size, args.image_size, device=args.device)
        self.images = images.contiguous(memory_format=torch.channels_last)
        self.labels = torch.randint(classes, (args.bs,), device=args.device)
        self.optimizer = make_optimizer(trained, args.lr, momentum, decay)
        self.scaler = torch.amp.GradScaler(args.device, enabled=args.precision == "fp16")
        half = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(args.precision)
        self.autocast = (lambda: torch.autocast(args.device, half)) if half else contextlib.nullcontext
        if job.world > 1:  # running statistics stay with their rank
            network = nn.parallel.DistributedDataParallel(network, broadcast_buffers=False, gradient_as_bucket_view=True)
        if args.compile:
            if args.trace and args.device == "cpu":  # else its kernels are one nameless stretch in the trace
                from torch._inductor import config
                config.cpp.enable_kernel_profile = True
            network = torch.compile(network, mode=args.compile)
        self.network = network

    def step(self) -> torch.Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast():
            loss = self.network(self.images, self.labels)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach().clone()  # with CUDA graphs the next step writes over the loss


def write_trace(training: Training, path: str, description: dict, writes: bool) -> None:
    """Steps under PyTorch's profiler, of which the first two are not kept. Its Chrome trace has `description` inside."""
    from torch.profiler import ProfilerActivity, profile, schedule
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities, schedule=schedule(wait=0, warmup=2, active=TRACED_STEPS, repeat=1),
                 on_trace_ready=lambda result: writes and result.export_chrome_trace(path)) as profiler:
        profiler.add_metadata_json("plumbline_peer", json.dumps(description))
        for _ in range(2 + TRACED_STEPS):
            training.step()
            profiler.step()


FRAMEWORKS = {None: "PyTorch", "default": "PyTorch compiled", "reduce-overhead": "PyTorch reduce-overhead"}


def case_of(args: argparse.Namespace, job: Job, model: str) -> dict:
    """Faces on several ranks have all class centres on each of them."""
    case = {"model": model, "framework": FRAMEWORKS[args.compile]}
    if "classes" in args:
        case["head"] = ("--head dp " if job.world > 1 else "") + f"--classes {args.classes}"
    return case


def run(args: argparse.Namespace, model: str, make_network, classes: int, momentum: float, decay: float) -> None:
    """Trains, writes log and trace, and prints one JSON object; all but the training on rank 0 alone."""
    job = join(args)
    with open_log(args, job, case_of(args, job, model)) as log:
        training = Training(args, job, make_network, classes, momentum, decay)
        clock, losses, start = Clock(args.device), [], datetime.datetime.now()
        clock.mark()
        for _ in range(args.iters):
            losses.append(training.step())
            clock.mark()
        seconds = clock.step_seconds()
        losses = [loss.item() for loss in losses]
        require_finite(losses)
        if log:
            log.write(seconds, losses, args.lr, start)
    description = {
        "framework": "PyTorch", "version": torch.__version__, "compiled": args.compile is not None,
        "compile_mode": args.compile,
        "model": model, "device": args.device, "device_name": device_name(args), "precision": args.precision,
        "batch_per_device": args.bs, "image_size": args.image_size, "world_size": job.world,
        "classes": classes}
    if args.trace:
        write_trace(training, args.trace, description, job.rank == 0)
    if job.rank == 0:
        print(json.dumps({
            **description, "trained_parameters": training.parameters, "log_files": [str(log.path)] if log else [],
            **speed(seconds, losses, args.warmup, args.bs * job.world)}))
    if job.world > 1:
        torch.distributed.destroy_process_group()


def device_name(args: argparse.Namespace) -> str:
    return torch.cuda.get_device_name() if args.device == "cuda" else f"cpu, {torch.get_num_threads()} threads"
