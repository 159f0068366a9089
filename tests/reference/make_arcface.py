#!/usr/bin/env python3
"""Reference values of ArcFace training from PyTorch. Needs torch, torchvision and numpy, on any CPU; steps also run on a GPU.

    python3 make_arcface.py reference --out ../data/arcface_pytorch.json
        Trains the models of results/peers/arcface_models.py from closed-form weights (closed_form.py) and writes what
        C++ tests (pytorch_parity_test.cpp in tests/kernels and tests/cuda_host) must reproduce: losses of the steps,
        each trained parameter's gradient norm at step 0, the norms of the running statistics at the end; in fp32 and, as
        the truth, in fp64.
    python3 make_arcface.py steps --out FOLDER --model r50 --model r100 [--device cuda]
        Writes closed-form weights and one batch of 8 images for bench_arcface, and the losses and weights of four steps in
        every precision; on a GPU fp32 is without TF32.
    bench_arcface --backbone r50 --classes 1000 --bs 8 --lr 0.001 --dropout 0 --iters 4 --warmup 0 \\
                  --weights FOLDER/r50_start.safetensors --batch-file FOLDER/r50_batch.safetensors

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
from make_resnet50 import norms, rounded
from pytorch_steps import add_steps, print_losses, train, write_steps

sys.path.append(str(pathlib.Path(__file__).resolve().parent / "../../results/peers"))  # a bundle has all in one folder
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
        trained = {key: p for key, p in face.named_parameters() if p.requires_grad}
        typed = torch.from_numpy(images).to(dtype)
        losses, gradients = train(lambda: face(typed, labels), trained, steps, learning_rate, MOMENTUM, WEIGHT_DECAY)
        gradients = face.public(gradients.items())
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


def command_steps(args) -> None:
    batch, losses = args.batch_size or 8, {}
    for model in args.model or ["r50"]:
        def make_network():
            face = new_model(torch.float32, model, 112, 128 if model == "y1" else 512, args.classes, (1.0, 0.5, 0.0))
            return face, face.public

        losses[model] = write_steps(args, model, make_network, closed_form.images(batch, 112),
                                    closed_form.labels(batch, args.classes), MOMENTUM, WEIGHT_DECAY)
    print_losses(args, losses)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="reference|steps")
    reference = commands.add_parser("reference", help="write the JSON that the C++ tests read")
    reference.add_argument("--out", required=True)
    reference.set_defaults(run=command_reference)
    steps = add_steps(commands, command_steps)
    steps.add_argument("--model", action="append", choices=["r50", "r100", "y1"], help="(r50)")
    steps.add_argument("--classes", type=int, default=1000)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
