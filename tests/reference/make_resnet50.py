#!/usr/bin/env python3
"""Reference values of ResNet-50 training from PyTorch. Needs torch, torchvision and numpy, on any CPU; steps also run on a GPU.

    python3 make_resnet50.py reference --out ../data/resnet50_pytorch.json
        Trains torchvision's resnet50 from closed-form weights (closed_form.py) and writes what a C++ test
        (tests/kernels/pytorch_parity_test.cpp) must reproduce: losses of the steps, each parameter's gradient norm
        at step 0, the norms of the running statistics at the end; in fp32 and, as the truth, in fp64.

    python3 make_resnet50.py steps --out FOLDER [--device cuda] [--state-dict resnet50.pth]
        Writes weights and one batch for bench_resnet50, and the losses and weights of four steps in every precision; on a
        GPU fp32 is without TF32. --state-dict: a torchvision checkpoint, e.g. of the public model zoo; without it,
        closed-form weights. The batch is the closed-form one.
    bench_resnet50 --bs 16 --image-size 64 --fp32 --iters 4 --warmup 0 --lr 0.001 --weights FOLDER/resnet50_start.safetensors \\
                   --batch-file FOLDER/resnet50_batch.safetensors --save-weights ours.safetensors --json >ours.json
    ../gpu/compare_runs.py parity --precision fp32 --losses ours.json … --weights …

The recipe is SGD as torch.optim.SGD has it: momentum 0.875, weight decay 2^-15 on all parameters, label smoothing
0.1, constant learning rate. The weights are chosen for a well-conditioned step: in a fresh net the fp32 rounding of
a few activations near 0 flips their ReLU, and PyTorch's own fp32 gradients then differ by 2 % from fp64. Here the
last scale of each block is 0.2 and the biases of the norms lie around 3, so that about one ReLU in a hundred is
closed and hardly any is near its edge.
"""

import argparse
import json
import time

import numpy as np
import torch
import torchvision

import closed_form
from pytorch_steps import add_steps, print_losses, train, write_steps

MOMENTUM, WEIGHT_DECAY, LABEL_SMOOTHING = 0.875, 2.0**-15, 0.1
CASES = [  # name, images, pixels, steps
    ("bs4_64px", 4, 64, 4),
    ("bs2_224px", 2, 224, 4),
]


def new_model(dtype: torch.dtype) -> torch.nn.Module:
    return torchvision.models.resnet50(weights=None).to(dtype).train()


class WithLoss(torch.nn.Module):
    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model, self.loss = model, torch.nn.CrossEntropyLoss(label_smoothing=LABEL_SMOOTHING)

    def forward(self, images, labels):
        return self.loss(self.model(images), labels)


def statistics_of(model) -> dict:
    return {name: b.detach().double() for name, b in model.named_buffers() if "num_batches" not in name}


def norms(tensors: dict) -> list:
    return [tensor.norm().item() for tensor in tensors.values()]


def distances(tensors: dict, truth: dict) -> list:
    """‖tensor − truth‖ / ‖truth‖ of each tensor."""
    return [((tensors[name] - truth[name]).norm() / truth[name].norm()).item() for name in truth]


def run_case(name: str, batch: int, image_size: int, steps: int, learning_rate: float) -> dict:
    images, labels = closed_form.images(batch, image_size), torch.from_numpy(closed_form.labels(batch))
    results = {}
    for kind, dtype in (("fp32", torch.float32), ("fp64", torch.float64)):
        model = new_model(dtype)
        closed_form.fill(model)
        network, typed = WithLoss(model), torch.from_numpy(images).to(dtype)
        losses, gradients = train(lambda: network(typed, labels), dict(model.named_parameters()), steps, learning_rate,
                                  MOMENTUM, WEIGHT_DECAY)
        parameters = {key: p.detach().double() for key, p in model.named_parameters()}
        results[kind] = (losses, gradients, statistics_of(model), parameters)
    fp32, fp64 = results["fp32"], results["fp64"]
    return {
        "name": name, "batch": batch, "image_size": image_size, "steps": steps, "learning_rate": learning_rate,
        "images_sum": float(images.astype(np.float64).sum()),
        "losses_fp64": fp64[0], "losses_fp32": fp32[0],
        "gradient_names": list(fp64[1]),
        "gradient_norms_fp64": norms(fp64[1]), "gradient_norms_fp32": norms(fp32[1]),
        "gradient_distances_fp32": distances(fp32[1], fp64[1]),
        "statistic_names": list(fp64[2]),
        "statistic_norms_fp64": norms(fp64[2]), "statistic_norms_fp32": norms(fp32[2]),
        "parameter_norms_fp64": norms(fp64[3]), "parameter_distances_fp32": distances(fp32[3], fp64[3]),
    }


def rounded(value):
    """Twelve digits: more than fp32 can tell apart, and a small file."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, list):
        return [rounded(entry) for entry in value]
    return value


def command_reference(args) -> None:
    model = new_model(torch.float32)
    closed_form.fill(model)
    document = {
        "made_by": "tests/reference/make_resnet50.py reference",
        "torch": torch.__version__.split("+")[0], "torchvision": torchvision.__version__.split("+")[0],
        "momentum": MOMENTUM, "weight_decay": WEIGHT_DECAY, "label_smoothing": LABEL_SMOOTHING,
        "parameters_sum": rounded(sum(p.detach().double().sum().item() for p in model.parameters())),
        "cases": [],
    }
    for case in CASES:
        started = time.monotonic()
        result = run_case(*case, learning_rate=0.001)
        document["cases"].append({key: rounded(value) for key, value in result.items()})
        print(f"{case[0]}: {time.monotonic() - started:.1f} s, losses fp64 {result['losses_fp64']}, "
              f"fp32 {result['losses_fp32']}, worst fp32 gradient {max(result['gradient_distances_fp32']):.2e}")
    with open(args.out, "w") as file:
        json.dump(document, file, indent=0)
        file.write("\n")


def command_steps(args) -> None:
    def make_network():
        model = new_model(torch.float32)
        if args.state_dict:
            model.load_state_dict(torch.load(args.state_dict, map_location="cpu", weights_only=True))
        else:
            closed_form.fill(model)
        return WithLoss(model), lambda tensors: {name.removeprefix("model."): tensor for name, tensor in tensors}

    batch = args.batch_size or 16
    print_losses(args, {"resnet50": write_steps(args, "resnet50", make_network, closed_form.images(batch, args.image_size),
                                                closed_form.labels(batch), MOMENTUM, WEIGHT_DECAY)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="reference|steps")
    reference = commands.add_parser("reference", help="write the JSON that the C++ test reads")
    reference.add_argument("--out", required=True)
    reference.set_defaults(run=command_reference)
    steps = add_steps(commands, command_steps)
    steps.add_argument("--state-dict", help="torchvision checkpoint to take the weights from")
    steps.add_argument("--image-size", type=int, default=64)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
