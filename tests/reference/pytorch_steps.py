"""Steps of SGD in PyTorch on one batch, on a CPU or GPU, in each precision that the programs have; and `steps`, the command
that writes what Plumbline's steps are compared with (tests/gpu/compare_runs.py parity)."""

import contextlib
import json
import pathlib

import torch

import closed_form
import safetensors_file

HALF = {"fp16": torch.float16, "bf16": torch.bfloat16}
LOSS_SCALE = 128.0  # in fp16; small batches overflow at the scale of large ones


def train(loss_of, named: dict, steps: int, learning_rate: float, momentum: float, decay: float, precision: str = "fp32"):
    """The losses of the steps, and the gradients of step 0 by name. loss_of() trains the parameters `named`."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    parameters = list(named.values())
    optimizer = torch.optim.SGD(parameters, lr=learning_rate, momentum=momentum, weight_decay=decay)
    scale = LOSS_SCALE if precision == "fp16" else 1.0
    half = HALF.get(precision)
    losses, gradients = [], {}
    for step in range(steps):
        optimizer.zero_grad()
        with torch.autocast(parameters[0].device.type, half) if half else contextlib.nullcontext():
            loss = loss_of()
        (scale * loss).backward()
        for parameter in parameters:
            parameter.grad /= scale
        if step == 0:
            gradients = {name: p.grad.detach().double().clone() for name, p in named.items()}
        optimizer.step()
        losses.append(loss.item())
    return losses, gradients


def add_steps(commands, run) -> None:
    parser = commands.add_parser("steps", help="write weights, a batch, and losses and weights after a few steps on it")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="folder for MODEL_start, MODEL_batch and "
                        "MODEL_PRECISION .safetensors, and MODEL_PRECISION.json with the losses")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", action="append", choices=("fp32", "tf32", *HALF), help="(all four)")
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.001)
    parser.set_defaults(run=run)
    return parser


def write_steps(args, model: str, make_network, images, labels, momentum: float, decay: float) -> dict:
    """make_network() gives a module from images and labels to the loss, and a function from its (name, tensor) pairs to those
    of the program. Returns the losses by precision."""
    args.out.mkdir(parents=True, exist_ok=True)
    of = lambda name: args.out / f"{model}_{name}.safetensors"
    write = lambda path, network, public: safetensors_file.write(
        path, {name: tensor.cpu().numpy() for name, tensor in public(network.state_dict().items()).items()})
    safetensors_file.write(of("batch"), {"images": images, "labels": labels})
    losses = {}
    for precision in args.precision or ("fp32", "tf32", "bf16", "fp16"):
        network, public = make_network()
        if not losses:
            write(of("start"), network, public)
        network.to(args.device)
        batch = [torch.from_numpy(array).to(args.device) for array in (images, labels)]
        trained = {name: p for name, p in network.named_parameters() if p.requires_grad}
        losses[precision], _ = train(lambda: network(*batch), trained, args.steps, args.lr, momentum, decay, precision)
        write(of(precision), network, public)
        with open(args.out / f"{model}_{precision}.json", "w") as file:
            json.dump({"framework": "PyTorch", "version": torch.__version__, "loss": losses[precision]}, file)
    return losses


def print_losses(args, losses: dict) -> None:
    """`losses`: by model, then by precision."""
    name = torch.cuda.get_device_name() if args.device == "cuda" else "cpu"
    first = next(iter(losses))
    print(json.dumps({"framework": "PyTorch", "version": torch.__version__, "device_name": name, "losses": losses,
                      "summary": f"{first}, losses " + ", ".join(f"{p} {l[-1]:.6g}" for p, l in losses[first].items())}))
