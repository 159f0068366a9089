#!/usr/bin/env python3
"""A small trace of PyTorch's profiler, made like those of results/peers: two steps of one convolution, norm, ReLU, pool
and dense layer on a CPU, with the members of events that `plumbline explain` reads, and without the short operators
inside other ones. Needs torch.

    python3 make_trace.py ../data/explain/pytorch_cpu.json
"""
import argparse
import json
import pathlib
import sys
import tempfile

from torch import nn

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "results" / "peers"))
import pytorch_options  # noqa: E402
import pytorch_training  # noqa: E402


def network() -> nn.Module:
    layers = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
                           nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    return pytorch_training.WithLoss(layers, nn.CrossEntropyLoss())


def reduced(event: dict, first: float) -> dict:
    kept = {key: event[key] for key in ("ph", "cat", "name")} | {"tid": 1}
    return kept | {"ts": round(event["ts"] - first, 3), "dur": event["dur"]}


def is_inside(event: dict, operators: list) -> bool:
    return any(outer is not event and outer["tid"] == event["tid"] and outer["ts"] <= event["ts"] and
               event["ts"] + event["dur"] <= outer["ts"] + outer["dur"] for outer in operators)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    out = parser.parse_args().out
    options = pytorch_options.options("", batch=4, image_size=64, iterations=3, warmup=1, learning_rate=0.001)
    args = options.parse_args(["--device", "cpu", "--threads", "1"])
    job = pytorch_training.join(args)
    training = pytorch_training.Training(args, job, network, classes=10, momentum=0.9, decay=0)
    pytorch_training.TRACED_STEPS = 2
    description = {"framework": "PyTorch", "version": pytorch_training.torch.__version__, "compiled": False,
                   "model": "small", "device": "cpu", "precision": "fp32", "batch_per_device": 4, "image_size": 64,
                   "world_size": 1}
    with tempfile.TemporaryDirectory() as folder:
        whole = pathlib.Path(folder) / "whole.json"
        pytorch_training.write_trace(training, str(whole), description, True)
        trace = json.loads(whole.read_text())
    events = [event for event in trace["traceEvents"] if event.get("cat") in ("cpu_op", "user_annotation")]
    operators = [event for event in events if event["name"].startswith("aten::")]
    events = [event for event in events if event["dur"] >= 50 or not is_inside(event, operators)]
    first = min(event["ts"] for event in events)
    with open(out, "w", encoding="ascii") as file:
        file.write(json.dumps({"schemaVersion": trace["schemaVersion"], "plumbline_peer": trace["plumbline_peer"]})[:-1])
        file.write(', "traceEvents": [\n')
        file.write(",\n".join(json.dumps(reduced(event, first), separators=(",", ":")) for event in events))
        file.write("\n]}\n")


if __name__ == "__main__":
    main()
