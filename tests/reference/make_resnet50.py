#!/usr/bin/env python3
"""Reference values of ResNet-50 training from PyTorch. Needs torch, torchvision and numpy, on any CPU.

    python3 make_resnet50.py reference --out ../data/resnet50_pytorch.json
        Trains torchvision's resnet50 from closed-form weights (closed_form.py) and writes what a C++ test
        (tests/kernels/pytorch_parity_test.cpp) must reproduce: losses of the steps, each parameter's gradient norm
        at step 0, the norms of the running statistics at the end; in fp32 and, as the truth, in fp64.

The same with real weights, through the program:

    python3 make_resnet50.py export --weights w.safetensors --batch b.safetensors [--state-dict resnet50.pth]
                                    [--batch-size 8] [--image-size 224]
        Writes weights and one batch for bench_resnet50. --state-dict: a torchvision checkpoint, e.g. of the public
        model zoo; without it, closed-form weights. The batch is the closed-form one.
    bench_resnet50 --bs 8 --fp32 --iters 4 --warmup 0 --lr 0.001 \\
                   --weights w.safetensors --batch b.safetensors --save-weights ours.safetensors
    python3 make_resnet50.py train --weights w.safetensors --batch b.safetensors --batch-size 8 --steps 4 --lr 0.001 \\
                                   [--compare ours.safetensors]
        Trains in PyTorch and prints losses; --compare prints, per kind of tensor, the largest relative distance of
        the saved weights to PyTorch's. A batch of your own: a safetensors file with "images" [n, 3, h, w] fp32,
        normalised, and "labels" [n] int64.

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
import safetensors_file

MOMENTUM, WEIGHT_DECAY, LABEL_SMOOTHING = 0.875, 2.0**-15, 0.1
CASES = [  # name, images, pixels, steps
    ("bs4_64px", 4, 64, 4),
    ("bs2_224px", 2, 224, 4),
]


def new_model(dtype: torch.dtype) -> torch.nn.Module:
    return torchvision.models.resnet50(weights=None).to(dtype).train()


def train(model, images, labels, steps: int, learning_rate: float):
    """`steps` steps on one batch; the losses, and the gradients of step 0 by name."""
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=LABEL_SMOOTHING)
    losses, gradients = [], {}
    for step in range(steps):
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        if step == 0:
            gradients = {name: p.grad.detach().double().clone() for name, p in model.named_parameters()}
        optimizer.step()
        losses.append(loss.item())
    return losses, gradients


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
        losses, gradients = train(model, torch.from_numpy(images).to(dtype), labels, steps, learning_rate)
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


def command_export(args) -> None:
    model = new_model(torch.float32)
    if args.state_dict:
        model.load_state_dict(torch.load(args.state_dict, map_location="cpu", weights_only=True))
    else:
        closed_form.fill(model)
    safetensors_file.write(args.weights, {name: t.numpy() for name, t in model.state_dict().items()})
    safetensors_file.write(args.batch, {"images": closed_form.images(args.batch_size, args.image_size),
                                        "labels": closed_form.labels(args.batch_size)})


def command_train(args) -> None:
    state = {name: torch.from_numpy(array.copy()) for name, array in safetensors_file.read(args.weights).items()}
    batch = safetensors_file.read(args.batch)
    rows = args.batch_size or len(batch["labels"])
    model = new_model(torch.float32)
    model.load_state_dict(state, strict=False)  # num_batches_tracked may be missing
    losses, _ = train(model, torch.from_numpy(batch["images"][:rows].copy()),
                      torch.from_numpy(batch["labels"][:rows].copy()), args.steps, args.lr)
    print(json.dumps({"losses": losses}))
    if args.compare:
        compare(model, safetensors_file.read(args.compare))


def compare(model, theirs: dict) -> None:
    worst = {}
    for name, tensor in model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        truth = tensor.double()
        distance = ((torch.from_numpy(theirs[name].copy()).double() - truth).norm() / truth.norm()).item()
        kind = f"{name.rsplit('.', 1)[-1]} of {truth.dim()} dims"
        worst[kind] = max(worst.get(kind, (0.0, "")), (distance, name))
    for kind, (distance, name) in sorted(worst.items()):
        print(f"{kind}: at most {distance:.2e} ({name})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="reference|export|train")
    reference = commands.add_parser("reference", help="write the JSON that the C++ test reads")
    reference.add_argument("--out", required=True)
    reference.set_defaults(run=command_reference)
    export = commands.add_parser("export", help="write weights and a batch for bench_resnet50")
    export.add_argument("--weights", required=True, help="safetensors file to write")
    export.add_argument("--batch", required=True, help="safetensors file to write")
    export.add_argument("--state-dict", help="torchvision checkpoint to take the weights from")
    export.add_argument("--batch-size", type=int, default=8)
    export.add_argument("--image-size", type=int, default=224)
    export.set_defaults(run=command_export)
    trainer = commands.add_parser("train", help="train in PyTorch from exported files")
    trainer.add_argument("--weights", required=True)
    trainer.add_argument("--batch", required=True)
    trainer.add_argument("--batch-size", type=int, help="rows of the batch file to use (all)")
    trainer.add_argument("--steps", type=int, default=4)
    trainer.add_argument("--lr", type=float, default=0.001)
    trainer.add_argument("--compare", help="weights saved by bench_resnet50 after as many steps")
    trainer.set_defaults(run=command_train)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
