#!/usr/bin/env python3
"""Holds training runs against each other, with nothing but Python's own library.

  compare_runs.py batch FILE --images N --size PIXELS            write images and labels that --batch takes
  compare_runs.py calm [--loud X] WEIGHTS OUT                    scale the last norm of each residual block down
  compare_runs.py losses --first X --rest Y [--count N] RUN REFERENCE   result JSON against result JSON, N losses at most;
                                                                 without the iterations whose update was skipped
  compare_runs.py weights --precision P START RUN REFERENCE      what one step changed, tensor by tensor
  compare_runs.py norms START FUSED PLAIN                        one step with fused norms against one without
  compare_runs.py share --aim X RUN LIMIT                        result JSON against a dry run's roofline
  compare_runs.py rates RUN,RUN…=LABEL RUN,RUN…=LABEL            medians of images/s, and ratios to the first

Prints one JSON object; exit code 1 if the runs differ by more than they may. Shares and rates are never failures.
"""
import argparse
import array
import json
import math
import mmap
import random
import statistics
import struct
import sys

# How far the change of all parameters together, and of the worst single one, may be from the reference's:
# |run - reference| / |reference|, Euclidean norms. From calm weights, 16 images of 64 pixels: fp32 on CPUs with different
# vectors 0.003 and 0.015, fp16 against fp32 0.09 and 0.12, bf16 0.25 and 0.33; a wrong gradient is about 1 away.
MAY_DIFFER = {"fp32": (0.01, 0.05), "tf32": (0.2, 0.5), "fp16": (0.25, 0.5), "bf16": (0.6, 0.9)}
# Norms undo what some biases before them add, so that their gradients are rounding: no tensor's change counts as less than
# this share of the median tensor's, per element. In y1, r50 and r100 such biases are below 0.00002, all others above 0.1.
LEAST_CHANGE = 0.01
CALM = 0.1  # factor on the weights of each block's last norm
ELEMENTS = 4096  # of every tensor, evenly spaced
STATISTICS = ("running_mean", "running_var")
NOT_TRAINED = STATISTICS + ("num_batches_tracked",)
UPDATE = 0.1  # share of a batch in the running statistics
# Batch statistics of a fused norm against a plain one, both in fp16: means in deviations, variances relative. On the
# emulated GPU they are 0.0008 apart.
STATISTICS_MAY_DIFFER = 0.01


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


def sampled_tensors(path, wanted=lambda name: not name.endswith(NOT_TRAINED)):
    """{name: up to ELEMENTS values} of the fp32 tensors with these names; default: all that are trained."""
    with open(path, "rb") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    (length,) = struct.unpack("<Q", data[:8])
    header, data = json.loads(bytes(data[8 : 8 + length])), data[8 + length :]
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32" or not wanted(name):
            continue
        values = data[slice(*entry["data_offsets"])].cast("f")
        tensors[name] = array.array("f", values[:: max(1, len(values) // ELEMENTS)])
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
    with blocks that add little to their shortcuts it doesn't, and every gradient still counts. --loud multiplies the
    weights of convolutions, which norms undo, so that sums over their outputs pass the largest number of fp16."""
    with open(options.weights, "rb") as file:
        head = file.read(8)
        (length,) = struct.unpack("<Q", head)
        text = file.read(length)
        data = bytearray(file.read())
    norms = 0
    for name, entry in json.loads(text).items():
        if name == "__metadata__":
            continue
        last = name.endswith(".bn3.weight") or (name.startswith("res_") and name.endswith("_conv_proj_batchnorm.weight"))
        factor = CALM if last else options.loud if len(entry["shape"]) == 4 else 1
        norms += factor == CALM
        if factor != 1:
            place = slice(*entry["data_offsets"])
            data[place] = array.array("f", (factor * value for value in array.array("f", bytes(data[place])))).tobytes()
    with open(options.out, "wb") as file:
        file.write(head + text + data)
    return {"summary": f"{norms} norms scaled by {CALM}, convolutions by {options.loud:g}", "within": norms > 0}


def losses_with_updates(result):
    """Losses of the iterations that changed the parameters: after an overflow the next loss scale is smaller."""
    scales = result.get("loss_scale") or []
    return [loss for i, loss in enumerate(result["loss"]) if i + 1 >= len(scales) or scales[i + 1] >= scales[i]]


def losses(options):
    results = [json.load(open(path)) for path in (options.run, options.reference)]
    if len(results[0]["loss"]) != len(results[1]["loss"]):
        return {"summary": f"{len(results[0]['loss'])} losses against {len(results[1]['loss'])}", "within": False}
    run, reference = map(losses_with_updates, results)
    count = min(len(run), len(reference), options.count or math.inf)
    if not count:
        return {"summary": "no iteration has updated anything", "within": False}
    skipped = [result.get("skipped_iterations", 0) for result in results]
    run, reference = run[:count], reference[:count]
    away = [abs(a - b) / max(abs(b), 1e-3) for a, b in zip(run, reference)]
    within = all(map(math.isfinite, run)) and away[0] <= options.first and max(away) <= options.rest
    note = f"; {skipped[0]} and {skipped[1]} iterations skipped" if any(skipped) else ""
    return {"summary": f"first loss {away[0]:.1e} away, worst {max(away):.1e}{note}", "within": within,
            "away": away, "run": run, "reference": reference}


def share(options):
    run, limit = (json.load(open(path)) for path in (options.run, options.limit))
    rate = run["images_per_second"]["mean"]
    most = run["batch_per_device"] * run["world_size"] / limit["roofline_seconds"]
    reached = "reached" if rate >= options.aim * most else "missed"
    return {"summary": f"{100 * rate / most:.1f} % of {most:.0f} images/s, aim of {100 * options.aim:.0f} % {reached}",
            "within": True, "images_per_second": rate, "limit_images_per_second": most, "share": rate / most,
            "aim": options.aim}


def update_distances(start, run, reference):
    """How far apart the changes of two runs are: all tensors together, and {name: each}."""
    squares = {}  # name: (of the difference, of the reference's change)
    for name, before in start.items():
        squares[name] = (sum((a - b) ** 2 for a, b in zip(run[name], reference[name])),
                         sum((b - c) ** 2 for b, c in zip(reference[name], before)))
    changes = [change / len(start[name]) for name, (_, change) in squares.items() if change > 0]
    least = LEAST_CHANGE**2 * statistics.median(changes) if changes else 0
    changed = sum(change for _, change in squares.values())
    together = math.sqrt(sum(difference for difference, _ in squares.values()) / changed) if changed else math.inf
    each = {name: math.sqrt(difference / max(change, least * len(start[name]))) if change else (math.inf if difference else 0.0)
            for name, (difference, change) in squares.items()}
    return together, each


def worst_first(distances):
    """NaN before everything else."""
    order = sorted(distances, key=lambda name: (not math.isnan(distances[name]), -distances[name]))
    return {name: round(distances[name], 6) if math.isfinite(distances[name]) else None for name in order}


def weights(options):
    start, run, reference = map(sampled_tensors, (options.start, options.run, options.reference))
    if start.keys() != run.keys() or start.keys() != reference.keys():
        return {"summary": "the files hold different tensors", "within": False}
    together, each = update_distances(start, run, reference)
    tensors = worst_first(each)
    worst = next(iter(tensors))
    may_all, may_one = MAY_DIFFER[options.precision]
    return {"summary": f"updates {together:.1e} away together, worst {worst} {each[worst]:.1e}",
            "within": together <= may_all and each[worst] <= may_one, "tensors": tensors}


def batch_statistics(before, after):
    return [old + (new - old) / UPDATE for old, new in zip(before, after)]


def statistics_distances(start, fused, plain):
    """{name: distance} of the batch's means, in deviations, and of its variances, relative."""
    distances = {}
    for name in start:
        norm, kind = name.rsplit(".", 1)
        one, other = (batch_statistics(start[name], run[name]) for run in (fused, plain))
        difference = sum((a - b) ** 2 for a, b in zip(one, other))
        variances = norm + ".running_var"
        variance = batch_statistics(start[variances], plain[variances])
        whole = sum(variance) if kind == "running_mean" else sum(value**2 for value in variance)
        distances[name] = math.sqrt(difference / whole) if whole > 0 else math.inf
    return distances


def norms(options):
    files = (options.start, options.fused, options.plain)
    runs = [sampled_tensors(path, lambda name: name.endswith(STATISTICS)) for path in files]
    trained = [sampled_tensors(path) for path in files]
    if not runs[0] or any(run.keys() != runs[0].keys() for run in runs):
        return {"summary": "the files hold different norms, or none", "within": False}
    apart = worst_first(statistics_distances(*runs))
    together, each = update_distances(*trained)
    gradients = worst_first(each)
    worst, worst_gradient = next(iter(apart)), next(iter(gradients))
    may_all, may_one = MAY_DIFFER["fp16"]
    # What isn't finite stands as None.
    within = all(value is not None and value <= STATISTICS_MAY_DIFFER for value in apart.values()) and \
        together <= may_all and all(value is not None and value <= may_one for value in gradients.values())
    return {"summary": f"statistics: worst {worst} {apart[worst]}; updates: {together:.1e} apart together, "
                       f"worst {worst_gradient} {gradients[worst_gradient]}",
            "within": within, "statistics": apart, "updates": gradients}


def rates(options):
    medians, runs = {}, {}
    for group in options.groups:
        files, _, label = group.partition("=")
        runs[label] = [json.load(open(path))["images_per_second"]["mean"] for path in files.split(",")]
        medians[label] = statistics.median(runs[label])
    first = next(iter(medians.values()))
    return {"summary": "; ".join(f"{label}: {median:.1f} images/s, {median / first:.3f}" for label, median in
                                 medians.items()),
            "within": True, "median_images_per_second": medians, "images_per_second": runs,
            "ratios": {label: median / first for label, median in medians.items()}}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    kind = kinds.add_parser("batch")
    kind.add_argument("file")
    kind.add_argument("--images", type=int, required=True)
    kind.add_argument("--size", type=int, required=True)
    kind = kinds.add_parser("calm")
    kind.add_argument("--loud", type=float, default=1)
    kind.add_argument("weights")
    kind.add_argument("out")
    kind = kinds.add_parser("losses")
    kind.add_argument("--first", type=float, required=True)
    kind.add_argument("--rest", type=float, required=True)
    kind.add_argument("--count", type=int)
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
    kind = kinds.add_parser("norms")
    for file in ("start", "fused", "plain"):
        kind.add_argument(file)
    kind = kinds.add_parser("rates")
    kind.add_argument("groups", nargs="+", metavar="RUN,RUN=LABEL")
    return parser.parse_args()


def main():
    options = parse()
    answer = {"batch": batch, "calm": calm, "losses": losses, "norms": norms, "rates": rates, "share": share,
              "weights": weights}[options.kind](options)
    print(json.dumps(answer))
    return 0 if answer["within"] else 1


if __name__ == "__main__":
    sys.exit(main())
