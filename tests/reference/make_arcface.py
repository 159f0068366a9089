#!/usr/bin/env python3
"""Reference values of ArcFace training from PyTorch. Needs torch, torchvision and numpy, on any CPU.

    python3 make_arcface.py reference --out ../data/arcface_pytorch.json
        Trains the models of results/peers/arcface_models.py from closed-form weights (closed_form.py) and writes what
        C++ tests (pytorch_parity_test.cpp in tests/kernels and tests/cuda_host) must reproduce: losses of the steps,
        each trained parameter's gradient norm at step 0, the norms of the running statistics at the end; in fp32 and, as
        the truth, in fp64.
    python3 make_arcface.py export --model r50 --classes 1000 --weights w.safetensors --batch b.safetensors
        Writes closed-form weights and one batch of 4 images for bench_arcface; `--steps N` prints the losses that
        N steps with lr 0.001 must have:
    bench_arcface --backbone r50 --classes 1000 --bs 4 --lr 0.001 --dropout 0 --iters 4 --warmup 0 \\
                  --weights w.safetensors --batch b.safetensors

The recipe is SGD as torch.optim.SGD has it: momentum 0.9, weight decay 5e-4 on all parameters, constant learning
rate; dropout is off.
"""

import argparse
import json
import pathlib
import sys
import time

import numpy as np
import torch

import closed_form
import safetensors_file
from make_resnet50 import norms, rounded

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "results" / "peers"))
from arcface_models import Face  # noqa: E402

MOMENTUM, WEIGHT_DECAY = 0.9, 5e-4
CASES = [  # name, model, images, pixels, embedding, classes, margins, steps
    ("r50_bs8_32px", "r50", 8, 32, 64, 50, (1.0, 0.5, 0.0), 4),
    ("r50_bs4_112px", "r50", 4, 112, 512, 1000, (1.0, 0.5, 0.0), 4),
    ("y1_bs8_112px", "y1", 8, 112, 128, 200, (1.0, 0.3, 0.2), 4),
]


def new_model(dtype, model, image_size, embedding, classes, margins) -> Face:
    face = Face(model, classes, embedding, image_size, margins).to(dtype).train()
    closed_form.fill(face)
    return face


def train(face, images, labels, steps: int, learning_rate: float):
    """`steps` steps on one batch; the losses, and the gradients of step 0 by public name."""
    trained = [p for p in face.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=learning_rate, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
    losses, gradients = [], {}
    for step in range(steps):
        optimizer.zero_grad()
        loss = face(images, labels)
        loss.backward()
        if step == 0:
            gradients = face.public((name, p.grad.detach().double().clone())
                                    for name, p in face.named_parameters() if p.requires_grad)
        optimizer.step()
        losses.append(loss.item())
    return losses, gradients


def distances(gradients: dict, truth: dict) -> list:
    """‖gradient − truth‖ / ‖truth‖ of each tensor. Some are 0 but for rounding, like that of a bias in front of
    a norm: their distance is in parts of the largest one."""
    floor = 1e-6 * max(norms(truth))
    return [((gradients[name] - truth[name]).norm() / max(truth[name].norm(), floor)).item() for name in truth]


def run_case(name, model, batch, image_size, embedding, classes, margins, steps, learning_rate=0.001) -> dict:
    images = closed_form.images(batch, image_size)
    labels = torch.from_numpy(closed_form.labels(batch, classes))
    results = {}
    for kind, dtype in (("fp32", torch.float32), ("fp64", torch.float64)):
        face = new_model(dtype, model, image_size, embedding, classes, margins)
        losses, gradients = train(face, torch.from_numpy(images).to(dtype), labels, steps, learning_rate)
        parameters = face.public((key, p.detach().double()) for key, p in face.named_parameters())
        statistics = face.public((key, b.detach().double()) for key, b in face.named_buffers()
                                 if "num_batches" not in key)
        results[kind] = (losses, gradients, statistics, parameters)
    fp32, fp64 = results["fp32"], results["fp64"]
    return {
        "name": name, "model": model, "batch": batch, "image_size": image_size, "embedding": embedding,
        "classes": classes, "margins": list(margins), "steps": steps, "learning_rate": learning_rate,
        "images_sum": float(images.astype(np.float64).sum()),
        "losses_fp64": fp64[0], "losses_fp32": fp32[0],
        "gradient_names": list(fp64[1]),
        "gradient_norms_fp64": norms(fp64[1]), "gradient_distances_fp32": distances(fp32[1], fp64[1]),
        "statistic_names": list(fp64[2]), "statistic_norms_fp64": norms(fp64[2]),
        "parameter_names": list(fp64[3]), "parameter_norms_fp64": norms(fp64[3]),
    }


def command_reference(args) -> None:
    document = {
        "made_by": "tests/reference/make_arcface.py reference", "torch": torch.__version__.split("+")[0],
        "momentum": MOMENTUM, "weight_decay": WEIGHT_DECAY, "cases": [],
    }
    for case in CASES:
        started = time.monotonic()
        result = run_case(*case)
        document["cases"].append({key: rounded(value) for key, value in result.items()})
        print(f"{case[0]}: {time.monotonic() - started:.1f} s, losses fp64 {result['losses_fp64']}, "
              f"fp32 {result['losses_fp32']}, worst fp32 gradient {max(result['gradient_distances_fp32']):.2e}")
    with open(args.out, "w") as file:
        json.dump(document, file, indent=0)
        file.write("\n")


def command_export(args) -> None:
    embedding = args.embedding or (128 if args.model == "y1" else 512)
    face = new_model(torch.float32, args.model, 112, embedding, args.classes, (1.0, 0.5, 0.0))
    images, labels = closed_form.images(args.batch_size, 112), closed_form.labels(args.batch_size, args.classes)
    tensors = face.public(face.state_dict().items())
    safetensors_file.write(args.weights, {name: tensor.numpy() for name, tensor in tensors.items()})
    safetensors_file.write(args.batch, {"images": images, "labels": labels})
    if args.steps:
        losses, _ = train(face, torch.from_numpy(images), torch.from_numpy(labels), args.steps, 0.001)
        print(json.dumps({"losses": losses}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="reference|export")
    reference = commands.add_parser("reference", help="write the JSON that the C++ tests read")
    reference.add_argument("--out", required=True)
    reference.set_defaults(run=command_reference)
    export = commands.add_parser("export", help="write weights and a batch for bench_arcface")
    export.add_argument("--model", choices=["r50", "r100", "y1"], default="r50")
    export.add_argument("--classes", type=int, default=1000)
    export.add_argument("--embedding", type=int, help="512; y1 128")
    export.add_argument("--weights", required=True, help="safetensors file to write")
    export.add_argument("--batch", required=True, help="safetensors file to write")
    export.add_argument("--batch-size", type=int, default=4)
    export.add_argument("--steps", type=int, default=0, help="steps to train and print losses of")
    export.set_defaults(run=command_export)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
