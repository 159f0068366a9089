#!/usr/bin/env python3
"""Makes run folders as a bench program with --profile and --trace leaves them, of a cluster that doesn't exist:
ResNet-50 on 1, 2, 4 and 8 devices, as large as real ones. The same every time.

made_runs.py FOLDER [RUNS_PER_CASE]: a folder per run, named like <case>_<run>."""

import json
import os
import random
import sys

ITERATIONS, WARMUP, BATCH = 120, 20, 128
CASES = (1, 2, 4, 8)
LAYERS = 54                       # forward, two backward steps and updates of each make about 440 steps
DEVICE = "H800 <b>GPU</b> & co</script><script>window.hacked = true</script>"
SLOW_RANK = 5                     # of 8
THROTTLED = (2, 3)                # devices and number of the run


def write(folder, name, value):
    with open(os.path.join(folder, name), "w") as file:
        file.write(json.dumps(value))


def op_names():
    for i in range(LAYERS):
        yield f"layer{i}.conv.forward", "conv_forward", "forward", 1
        yield f"layer{i}.norm.forward", "norm_forward", "forward", 0.3
    for i in reversed(range(LAYERS)):
        yield f"layer{i}.norm.backward", "norm_backward", "backward", 0.4
        yield f"layer{i}.conv.backward_data", "conv_backward_data", "backward", 1.1
        yield f"layer{i}.conv.backward_weights", "conv_backward_weights", "backward", 0.9
    for i in range(LAYERS * 3):
        yield f"layer{i // 3}.update{i % 3}", "update", "update", 0.05


def program():
    """Three persistent buffers and an activation per layer; an activation lives from forward to backward."""
    buffers, ops, offset = [], [], 0
    for i in range(LAYERS):
        for role in ("parameter", "optimizer", "gradient"):
            size = 4096 * (1 + i)
            buffers.append({"name": f"layer{i}.weight.{role}", "role": role, "dtype": "f32", "dims": [size // 4],
                            "bytes": size, "persistent": True, "offset": offset})
            offset += size
    activations = len(buffers)
    for i in range(LAYERS):
        size = (1 + i % 4) << 20
        buffers.append({"name": f"layer{i}.output", "role": "activation", "dtype": "f32", "dims": [size // 4],
                        "bytes": size, "offset": offset})
        offset += size
    for name, kind, phase, _ in op_names():
        layer = int(name.split(".")[0][len("layer"):])
        uses = [{"buffer": layer * 3, "access": "r"}]
        if kind in ("conv_backward_weights", "update"):
            uses.append({"buffer": layer * 3 + 2, "access": "r" if kind == "update" else "w"})
        if phase != "update":
            uses.append({"buffer": activations + layer, "access": "w" if phase == "forward" else "r"})
        ops.append({"name": name, "kind": kind, "phase": phase, "lane": "compute", "uses": uses,
                    "workspace_bytes": 0, "macs": 1e9, "bytes": 1e6})
    return {"format": "plumbline.program/2", "arena_bytes": offset, "buffers": buffers, "ops": ops}


def profile(step_seconds):
    names = list(op_names())
    unit = 0.9 * step_seconds / sum(weight for *_, weight in names)
    ops = [{"name": name, "kind": kind, "phase": phase, "lane": "compute", "seconds": unit * weight,
            "min_seconds": unit * weight * 0.99, "max_seconds": unit * weight * 1.02, "share": unit * weight / step_seconds,
            "flops_per_second": 4e14 * weight, "bytes_per_second": 2e12, "roofline_seconds": unit * weight * 0.7,
            "roofline_share": 0.7, "bound_by": "compute" if "conv" in kind else "bandwidth"}
           for name, kind, phase, weight in names]

    def sums(key):
        groups = {}
        for op in ops:
            group = groups.setdefault(op[key], {"name": op[key], "ops": 0, "seconds": 0, "roofline_seconds": 0})
            group["ops"] += 1
            group["seconds"] += op["seconds"]
            group["roofline_seconds"] += op["roofline_seconds"]
        return sorted(groups.values(), key=lambda group: -group["seconds"])

    return {"format": "plumbline.profile/2", "device": "Imagined GPU", "precision": "fp16",
            "peak_flops_per_second": 1e15, "peak_bytes_per_second": 4e12, "iterations": 10,
            "iteration_seconds": step_seconds, "run_step_seconds": step_seconds, "busy_seconds": 0.9 * step_seconds,
            "gap_seconds": 0.1 * step_seconds, "step_seconds": 0.9 * step_seconds,
            "roofline_seconds": 0.63 * step_seconds, "phases": sums("phase"), "kinds": sums("kind"), "ops": ops}


def gpu(rank, dice, seconds, throttled):
    """`throttled`: every fourth moment."""
    clocks = [1980 - 15 * dice.randrange(4) for _ in range(120)]
    record = {"rank": rank, "name": DEVICE, "id": f"GPU-{rank}", "driver_version": "570.00",
              "highest_sm_clock_mhz": 1980, "window_seconds": seconds, "sample_count": len(clocks),
              "sm_clock_mhz": {"min": min(clocks), "median": sorted(clocks)[60], "max": max(clocks)},
              "memory_clock_mhz": {"min": 3201, "median": 3201, "max": 3201},
              "temperature_celsius": {"min": 50, "median": 62, "max": 66},
              "power_watts": {"min": 480, "median": 640, "max": 695},
              "throttle_reasons": {"power cap": 0.25} if throttled else {}, "throttled_share": 0.25 * throttled, "joules": 640 * seconds}
    return record


def links():
    """What bench_allreduce --out would measure on both hosts."""
    return {"schema": "plumbline.links/1", "comm": "nccl", "hosts": [{"name": name, "devices": 8} for name in ("node1", "node2")],
            "within_host": {"latency_seconds": 3e-6, "bytes_per_second": 2e11},
            "between_hosts": {"latency_seconds": 1e-5, "bytes_per_second": 4e10}}


def host_of(rank, devices):
    """Eight ranks are dealt out to two hosts in turn."""
    return f"node{rank % 2 + 1}" if devices == 8 else "node1"


def result(devices, run):
    dice = random.Random(1000 * devices + run)
    exposed = 0.0004 * (devices - 1)
    base = 0.0105 + exposed + 0.0001 * dice.random()
    steps = [base * (4 if i == 0 else 1.2 if i < 5 else 1) * (1 + 0.01 * dice.random()) for i in range(ITERATIONS)]
    window = sum(steps[WARMUP:])
    images = BATCH * devices
    in_window = sorted(steps[WARMUP:])
    middle = (in_window[49] + in_window[50]) / 2
    return {"schema": "plumbline.result/2", "status": "ok", "failure": "", "model": "resnet50", "precision": "fp16",
            "device": "cuda", "device_name": DEVICE, "batch_per_device": BATCH, "world_size": devices, "nodes": 1,
            "devices_per_node": devices, "iterations": ITERATIONS, "warmup": WARMUP, "step_seconds": steps,
            "loss": [7 * 0.97 ** i for i in range(ITERATIONS)],
            "images_per_second": {"mean": images * (ITERATIONS - WARMUP) / window, "median": images / middle,
                                  "min": images / in_window[-1], "max": images / in_window[0]},
            "rank_window_seconds": [window * (1 - 0.001 * rank) for rank in range(devices)],
            "exposed_communication_seconds": exposed, "data_wait_seconds": 0.0001,
            "parameters": 25557032, "macs_per_image": 4089184256,
            "memory_bytes": {"parameters": 204 << 20, "gradients": 51 << 20, "optimizer": 102 << 20,
                             "activations": 9000 << 20, "workspace": 64 << 20, "planned": 9421 << 20,
                             "peak": 9800 << 20},
            "checks": {"replicas_identical": True, "parameters_moved": True, "loss_finite": True},
            "config": {"batch_per_device": BATCH, "iterations": ITERATIONS, "warmup": WARMUP, "precision": "fp16",
                       "data": "synthetic", "image_size": 224, "optimizer": "sgd", "note": "</script>\u2028'\"&"},
            "log_files": [],
            "ranks": [{"host": host_of(rank, devices),
                       "exposed_communication_seconds": exposed * (0.05 if rank == SLOW_RANK else 1)}
                      for rank in range(devices)],
            "energy_joules_per_image": 640 * window * devices / (images * (ITERATIONS - WARMUP)),
            "gpus": [gpu(rank, dice, window, (devices, run) == THROTTLED) for rank in range(devices)]}


def environment():
    return {"host": "node1", "kernel": "Linux 6.1.0 x86_64", "cpu": "Imagined CPU", "cpus": 64, "affinity": "0-63",
            "memory_bytes": 1 << 38, "build": {"version": "0.1.0", "commit": "0123456789ab", "compiler": "GNU 12.2.0",
                                               "libraries": {"cuDNN": "9.10"}},
            "variables": {"OMP_NUM_THREADS": "8", "NCCL_DEBUG": "<i>WARN</i>"}}


def make_runs(folder, runs_per_case=5):
    """Returns {name of the run's folder: its result}."""
    made = {}
    for devices in CASES:
        for run in range(1, runs_per_case + 1):
            name = f"resnet50_1n{devices}g_{run}"
            path = os.path.join(folder, name)
            os.makedirs(path)
            made[name] = result(devices, run)
            step_seconds = sorted(made[name]["step_seconds"])[60]
            write(path, "result.json", made[name])
            write(path, "env.json", environment())
            write(path, "program.json", program())
            write(path, "profile.json", profile(step_seconds))
            write(path, "trace.json", {"traceEvents": []})
    return made


NIGHTS = (1, 1.002, 0.999, 0.95, 1.03)          # speeds, over that of the first night
UNKNOWN_NIGHT = 1                               # whose runs on 8 devices have no env.json


def make_history(folder, runs_per_night=5):
    """Runs of five nights, a commit each, on 1 and 8 devices. Returns {devices: [[images/s, …] of a night, …]}."""
    made = {}
    for devices in (1, 8):
        dice = random.Random(devices)
        record = result(devices, 1)
        speeds = record["images_per_second"]
        usual = dict(speeds)
        for night, speed in enumerate(NIGHTS):
            figures = []
            for run in range(runs_per_night):
                factor = speed * (1 + 0.002 * dice.uniform(-1, 1))
                speeds.update({key: value * factor for key, value in usual.items()})
                figures.append(speeds["mean"])
                path = os.path.join(folder, f"resnet50_1n{devices}g_b128_fp16_2026010{night + 1}-02{run:02}{devices:02}_1")
                os.makedirs(path)
                write(path, "result.json", record)
                machine = environment()
                machine["build"].update(commit=f"{night:x}" * 12)
                if (night, devices) != (UNKNOWN_NIGHT, 8):
                    write(path, "env.json", machine)
            made.setdefault(devices, []).append(figures)
    return made


if __name__ == "__main__":
    make_runs(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5)
