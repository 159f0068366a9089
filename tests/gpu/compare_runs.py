#!/usr/bin/env python3
"""Holds training runs against each other, with nothing but Python's own library.

  compare_runs.py batch FILE --images N --size PIXELS            write images and labels that --batch-file takes
  compare_runs.py calm [--loud X] WEIGHTS OUT                    scale the last norm of each residual block down
  compare_runs.py losses --first X --rest Y RUN REFERENCE        result JSON against result JSON
  compare_runs.py norms START FUSED PLAIN                        one step in fp16 against another: statistics of norms, and updates
  compare_runs.py same FILE FILE…                                losses of result JSONs, tensors of safetensors: equal to the bit
  compare_runs.py parity --precision P --losses RUN PEER PEER_FP32 --weights START RUN PEER PEER_FP32
                                                                 in fp32 the run is the peer's; in other precisions it is no
                                                                 further from the peer's fp32 than the peer's own
  compare_runs.py rates RUN,RUN…=LABEL RUN,RUN…=LABEL            medians of images/s, and ratios to the first

Prints one JSON object; exit code 1 if the runs differ by more than they may, 77 if a file is missing. Rates are never failures.
"""
import argparse
import array
import json
import math
import mmap
import os
import random
import statistics
import struct
import sys

# How far the change of all parameters together, and of the worst single one, may be from the reference's after a step in
# fp16: |run - reference| / |reference|, Euclidean norms. From calm weights, 16 images of 64 pixels: fp16 against fp32 0.09 and
# 0.12; a wrong gradient is about 1 away.
MAY_DIFFER = (0.25, 0.5)
# parity, after four steps in fp32: losses, and updates. On CPUs 9e-7, 0.0033 and 0.025 (ResNet-50, 8 images), 1.3e-5, 0.0052
# and 0.059 (r50, 2 images). In other precisions as many times the peer's distance to fp32, or the same as in fp32 where that is
# more. Updates of equally good sums are about as far away: in fp16 0.017 where PyTorch's are 0.019, in bf16 0.050 and 0.064. The
# distance of single losses is 0 or twice as large by chance.
PEER_MAY_DIFFER = {"loss": 0.0005, "together": 0.02, "worst_distance": 0.15}
FURTHER = {"loss": 4, "together": 1.25, "worst_distance": 2}
# Norms undo what some biases before them add, so that their gradients are rounding: no tensor's change counts as less than
# this share of the median tensor's, per element. In y1, r50 and r100 such biases are below 0.00002, all others above 0.1.
LEAST_CHANGE = 0.01
CALM = 0.1  # factor on the weights of each block's last norm
ELEMENTS = 4096  # of every tensor, evenly spaced
STATISTICS = ("running_mean", "running_var")
NOT_TRAINED = STATISTICS + ("num_batches_tracked",)
UPDATE = 0.1  # share of a batch in the running statistics
# Batch statistics of a norm against another: means in deviations, variances relative. On the
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


def losses(options):
    run, reference = (json.load(open(path))["loss"] for path in (options.run, options.reference))
    if len(run) != len(reference):
        return {"summary": f"{len(run)} losses against {len(reference)}", "within": False}
    away = [abs(a - b) / max(abs(b), 1e-3) for a, b in zip(run, reference)]
    within = all(map(math.isfinite, run)) and away[0] <= options.first and max(away) <= options.rest
    return {"summary": f"first loss {away[0]:.1e} away, worst {max(away):.1e}", "within": within,
            "away": away, "run": run, "reference": reference}


def same(options):
    differ = []
    for kind, content in ((".json", lambda path: json.load(open(path))["loss"]),
                          (".safetensors", lambda path: open(path, "rb").read())):
        files = [path for path in options.files if path.endswith(kind)]
        contents = [content(path) for path in files]
        differ += [path.rsplit("/", 1)[-1] for path, one in zip(files, contents) if one != contents[0]]
    text = f"{', '.join(differ)} differ" if differ else f"{len(options.files)} files equal to the bit"
    return {"summary": text, "within": not differ, "files": [path.rsplit("/", 1)[-1] for path in options.files]}


def parity(options):
    run, peer, fp32 = (json.load(open(path))["loss"] for path in options.losses)
    start, *after = map(sampled_tensors, options.weights)
    if len(run) != len(fp32) or any(tensors.keys() != start.keys() for tensors in after):
        return {"summary": "the files hold different tensors or numbers of losses", "within": False}
    answer = {"losses": {"run": run, "peer": peer, "peer_fp32": fp32}}
    for name, losses, tensors in (("run", run, after[0]), ("peer", peer, after[1])):
        together, each = update_distances(start, tensors, after[2])
        worst = next(iter(worst_first(each)))
        answer[name] = {"loss": max(abs(a / b - 1) for a, b in zip(losses, fp32)), "together": together, "worst": worst,
                        "worst_distance": each[worst]}
    ours, theirs = answer["run"], answer["peer"]
    answer["within"] = all(ours[name] <= max(limit, (options.precision != "fp32") * FURTHER[name] * theirs[name])
                           for name, limit in PEER_MAY_DIFFER.items())
    answer["summary"] = "; ".join(f"{name}: losses {one['loss']:.1e} from fp32, updates {one['together']:.1e}, worst "
                                  f"{one['worst']} {one['worst_distance']:.1e}" for name, one in (("run", ours), ("peer", theirs)))
    return answer


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
    may_all, may_one = MAY_DIFFER
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
    kind.add_argument("run")
    kind.add_argument("reference")
    kinds.add_parser("same").add_argument("files", nargs="+")
    kind = kinds.add_parser("parity")
    kind.add_argument("--precision", choices=("fp32", "tf32", "fp16", "bf16"), required=True)
    kind.add_argument("--losses", nargs=3, required=True)
    kind.add_argument("--weights", nargs=4, required=True)
    kind = kinds.add_parser("norms")
    for file in ("start", "fused", "plain"):
        kind.add_argument(file)
    kind = kinds.add_parser("rates")
    kind.add_argument("groups", nargs="+", metavar="RUN,RUN=LABEL")
    return parser.parse_args()


def without_result(options):
    """Files to read that a run that failed or was left out did not write."""
    files = [word for word in sys.argv[2:] if word.endswith((".json", ".safetensors"))]
    written = {getattr(options, name, None) for name in ("file", "out")}
    return [path.rsplit("/", 1)[-1] for path in files if path not in written and not (os.path.exists(path) and os.path.getsize(path))]


def main():
    options = parse()
    missing = without_result(options)
    if missing:
        print(json.dumps({"summary": f"{missing[0].rsplit('.', 1)[0]} gave no result", "within": False}))
        return 77
    answer = {"batch": batch, "calm": calm, "losses": losses, "norms": norms, "parity": parity, "rates": rates,
              "same": same}[options.kind](options)
    print(json.dumps(answer))
    return 0 if answer["within"] else 1


if __name__ == "__main__":
    sys.exit(main())
