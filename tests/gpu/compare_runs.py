#!/usr/bin/env python3
"""Holds two training runs against each other, with nothing but Python's own library.

  compare_runs.py batch FILE --images N --size PIXELS            write images and labels that --batch takes
  compare_runs.py calm WEIGHTS OUT                               scale the last norm of each residual block down
  compare_runs.py losses --first X --rest Y RUN REFERENCE        result JSON against result JSON
  compare_runs.py weights --precision P START RUN REFERENCE      what one step changed, tensor by tensor
  compare_runs.py share --aim X RUN LIMIT                        result JSON against a dry run's roofline

Prints one JSON object; exit code 1 if the runs differ by more than they may. A share below its aim is no failure.
"""
import argparse
import array
import json
import math
import random
import struct
import sys

# How far the change of all parameters together, and of the worst single one, may be from the reference's:
# |run - reference| / |reference|, Euclidean norms. From calm weights, 16 images of 64 pixels: fp32 on CPUs with different
# vectors 0.003 and 0.015, fp16 against fp32 0.09 and 0.12, bf16 0.25 and 0.33; a wrong gradient is about 1 away.
MAY_DIFFER = {"fp32": (0.01, 0.05), "tf32": (0.2, 0.5), "fp16": (0.25, 0.5), "bf16": (0.6, 0.9)}
CALM = 0.1  # factor on the weights of each block's last norm
ELEMENTS = 4096  # of every tensor, evenly spaced
NOT_TRAINED = ("running_mean", "running_var", "num_batches_tracked")


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            file.write(data)


def sampled_tensors(path):
    """{name: up to ELEMENTS values} of all fp32 tensors that are trained."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32" or name.endswith(NOT_TRAINED):
            continue
        values = array.array("f", data[slice(*entry["data_offsets"])])
        tensors[name] = values[:: max(1, len(values) // ELEMENTS)]
    return tensors


def batch(options):
    generator = random.Random(1)
    n, size = options.images, options.size
    images = array.array("f", (generator.gauss(0, 1) for _ in range(n * 3 * size * size)))
    labels = array.array("q", (generator.randrange(1000) for _ in range(n)))
    write_safetensors(options.file, {"images": ("F32", [n, 3, size, size], images.tobytes()),
                                     "labels": ("I64", [n], labels.tobytes())})
    return {"summary": f"{n} images of {size} pixels", "within": True}


def calm(options):
    """Drawn at random, ResNet-50 magnifies rounding so much that two correct fp32 devices differ by 3 % in one update;
    with blocks that add little to their shortcuts it doesn't, and every gradient still counts."""
    with open(options.weights, "rb") as file:
        head = file.read(8)
        (length,) = struct.unpack("<Q", head)
        text = file.read(length)
        data = bytearray(file.read())
    scaled = 0
    for name, entry in json.loads(text).items():
        if name.endswith(".bn3.weight"):
            place = slice(*entry["data_offsets"])
            data[place] = array.array("f", (CALM * value for value in array.array("f", bytes(data[place])))).tobytes()
            scaled += 1
    with open(options.out, "wb") as file:
        file.write(head + text + data)
    return {"summary": f"{scaled} norms scaled by {CALM}", "within": scaled > 0}


def losses(options):
    run, reference = (json.load(open(path))["loss"] for path in (options.run, options.reference))
    if len(run) != len(reference) or not run:
        return {"summary": f"{len(run)} losses against {len(reference)}", "within": False}
    away = [abs(a - b) / max(abs(b), 1e-3) for a, b in zip(run, reference)]
    within = all(map(math.isfinite, run)) and away[0] <= options.first and max(away) <= options.rest
    return {"summary": f"first loss {away[0]:.1e} away, worst {max(away):.1e}", "within": within,
            "away": away, "run": run, "reference": reference}


def share(options):
    run, limit = (json.load(open(path)) for path in (options.run, options.limit))
    rate = run["images_per_second"]["mean"]
    most = run["batch_per_device"] * run["world_size"] / limit["roofline_seconds"]
    reached = "reached" if rate >= options.aim * most else "missed"
    return {"summary": f"{100 * rate / most:.1f} % of {most:.0f} images/s, aim of {100 * options.aim:.0f} % {reached}",
            "within": True, "images_per_second": rate, "limit_images_per_second": most, "share": rate / most,
            "aim": options.aim}


def weights(options):
    start, run, reference = map(sampled_tensors, (options.start, options.run, options.reference))
    if start.keys() != run.keys() or start.keys() != reference.keys():
        return {"summary": "the files hold different tensors", "within": False}
    squares = {}  # name: (of the difference, of the reference's change)
    for name, before in start.items():
        squares[name] = (sum((a - b) ** 2 for a, b in zip(run[name], reference[name])),
                         sum((b - c) ** 2 for b, c in zip(reference[name], before)))
    changed = sum(change for _, change in squares.values())
    together = math.sqrt(sum(difference for difference, _ in squares.values()) / changed) if changed else math.inf
    each = {name: math.sqrt(difference / change) if change else (math.inf if difference else 0.0)
            for name, (difference, change) in squares.items()}
    worst = max(each, key=lambda name: each[name])
    may_all, may_one = MAY_DIFFER[options.precision]
    return {"summary": f"updates {together:.1e} away together, worst {worst} {each[worst]:.1e}",
            "within": together <= may_all and each[worst] <= may_one,
            "tensors": {name: round(value, 6) if math.isfinite(value) else None for name, value in each.items()}}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    kind = kinds.add_parser("batch")
    kind.add_argument("file")
    kind.add_argument("--images", type=int, required=True)
    kind.add_argument("--size", type=int, required=True)
    kind = kinds.add_parser("calm")
    kind.add_argument("weights")
    kind.add_argument("out")
    kind = kinds.add_parser("losses")
    kind.add_argument("--first", type=float, required=True)
    kind.add_argument("--rest", type=float, required=True)
    kind.add_argument("run")
    kind.add_argument("reference")
    kind = kinds.add_parser("share")
    kind.add_argument("--aim", type=float, required=True)
    kind.add_argument("run")
    kind.add_argument("limit")
    kind = kinds.add_parser("weights")
    kind.add_argument("--precision", choices=MAY_DIFFER, required=True)
    for file in ("start", "run", "reference"):
        kind.add_argument(file)
    return parser.parse_args()


def main():
    options = parse()
    answer = {"batch": batch, "calm": calm, "losses": losses, "share": share, "weights": weights}[options.kind](options)
    print(json.dumps(answer))
    return 0 if answer["within"] else 1


if __name__ == "__main__":
    sys.exit(main())
