#!/usr/bin/env python3
"""Draws the documents' pictures from stored results:

    docs/make_pictures.py [--programs FOLDER] [PICTURE …]

PICTURE: throughput, rooflines, milliseconds, winograd, winograd_rule, scaling, flow, block_end; default: all. Each goes to
docs/pictures/PICTURE.svg. Measured values come from results/measured and results/appendix, predictions and published values
from the programs (default build/release/bin). docs/make_outputs.py --check compares the pictures. Exit codes: 0 done, 64 usage.
"""

import argparse
import json
import math
import pathlib
import re
import statistics
import subprocess
from xml.sax.saxutils import escape

DOCS = pathlib.Path(__file__).resolve().parent
ROOT = DOCS.parent
MEASURED = ROOT / "results/measured"
STYLE = """<style>
text { font: 13px sans-serif; fill: #24292f } .title { font-weight: bold; font-size: 14px } .small { font-size: 11px }
.axis { stroke: #8c959f; fill: none } .line { stroke: #57606a; fill: none } .head { fill: #57606a }
.box { fill: #f6f8fa; stroke: #57606a } .gone { fill: none; stroke: #8c959f; stroke-dasharray: 4 3 }
.a { fill: #0969da } .b { fill: #bf8700 } .c { fill: #8c959f }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .line { stroke: #8b949e } .head { fill: #8b949e } .box { fill: #161b22; stroke: #8b949e }
  .a { fill: #4493f8 } .b { fill: #d29922 }
}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0,0 L8,4 L0,8 z" class="head"/></marker></defs>"""


class Picture:
    """Elements of an SVG, in pixels from the upper left corner."""

    def __init__(self, width, height, title):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
                      f"<title>{escape(title)}</title>", STYLE]
        self.text(10, 20, title, "title")

    def text(self, x, y, text, kind="", anchor="start"):
        self.parts.append(f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>')

    def bar(self, x, y, width, height, kind):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" class="{kind}"/>')

    def box(self, x, y, width, text, kind="box", height=30, below=""):
        self.bar(x, y, width, height, kind)
        self.text(x + width / 2, y + height / 2 + 5, text, "", "middle")
        if below:
            self.text(x + width / 2, y + height + 15, below, "small", "middle")

    def line(self, x1, y1, x2, y2):
        self.parts.append(f'<path d="M{x1:.1f},{y1:.1f} L{x2:.1f},{y2:.1f}" class="axis"/>')

    def arrow(self, *path):
        """Along the commands of an SVG path."""
        self.parts.append(f'<path d="{" ".join(path)}" class="line" marker-end="url(#head)"/>')

    def dot(self, x, y, kind):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" class="{kind}"/>')

    def legend(self, x, y, names):
        for kind, name in names:
            self.bar(x, y - 10, 12, 12, kind)
            self.text(x + 18, y, name)
            x += 40 + 7 * len(name)

    def svg(self):
        return "\n".join(self.parts + ["</svg>\n"])


def bars(title, names, groups, unit, largest, mark=None):
    """Horizontal bars: groups of (label, a value per name); names: (class, name). mark: a line at this value."""
    left, height = 190, 16
    picture = Picture(880, 70 + len(groups) * (len(names) * height + 12), title)
    picture.legend(10 if len(names) > 3 else left, 44, names)
    y = 58
    for label, values in groups:
        picture.text(left - 8, y + len(values) * height / 2 + 4, label, "", "end")
        for (kind, _), value in zip(names, values):
            width = 480 * value / largest
            picture.bar(left, y, width, height - 3, kind)
            picture.text(left + width + 6, y + 11, unit.format(value), "small")
            y += height
        y += 12
    if mark:
        picture.line(left + 480 * mark / largest, 52, left + 480 * mark / largest, y - 8)
    return picture


def scatter(title, names, points, across, up, label_across, label_up, line):
    """Points (x, y, class) and a line from corner to corner of a square; an axis is (from, to, step, text of a value)."""
    left, bottom, side = 70, 470, 400
    picture = Picture(660, 520, title)
    picture.legend(60, 44, names)

    def at(x, y):
        return left + 1.4 * side * (x - across[0]) / (across[1] - across[0]), bottom - side * (y - up[0]) / (up[1] - up[0])

    picture.line(*at(across[0], up[0]), *at(across[1], up[0]))
    picture.line(*at(across[0], up[0]), *at(across[0], up[1]))
    picture.line(*at(*line[0]), *at(*line[1]))
    for value in range(across[0], int(across[1]) + 1, across[2]):
        picture.text(at(value, up[0])[0], bottom + 18, across[3](value), "small", "middle")
    for value in range(up[0], int(up[1]) + 1, up[2]):
        picture.text(left - 6, at(across[0], value)[1] + 4, up[3](value), "small", "end")
    picture.text(at(across[1], up[0])[0], bottom + 36, label_across, "", "end")
    picture.text(left + 8, bottom - side + 4, label_up)
    for x, y, kind in points:
        picture.dot(*at(x, y), kind)
    return picture


def json_of(programs, program, *arguments):
    """What a program prints with --json."""
    done = subprocess.run([programs / program, *arguments, "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def roofline_seconds(programs, target, batch, *options):
    """Of a step of ResNet-50 in fp16, by a dry run."""
    return json_of(programs, "bench_resnet50", "--dry-run", "--target", target, "--fp16", "--bs", str(batch), *options)["roofline_seconds"]


def runs(gpu, batch):
    """result.json of ResNet-50 in fp16 on one GPU, of the build that trained last: the runs of one day."""
    found = sorted((MEASURED / gpu).glob(f"resnet50_1n1g_b{batch}_fp16_*/result.json"))
    day = found[-1].parent.name.split("_")[4].split("-")[0]
    return [json.loads(file.read_text()) for file in found if f"_{day}-" in file.parent.name]


def speed_of_peer(gpu, way):
    """Mean images/s of PyTorch's runs: eager or compiled."""
    return statistics.mean(json.loads(file.read_text())["images_per_second"]["mean"]
                           for file in (MEASURED / gpu).glob(f"peers/{way}_[0-9].json"))


GPUS = (("nvidia_h200", "h200", "H200"), ("nvidia_h100_80gb_hbm3", "h100", "H100 80GB"))  # folder, --target, as shown


def throughput(programs):
    groups = []
    for gpu, target, name in GPUS:
        ours = statistics.median(run["images_per_second"]["mean"] for run in runs(gpu, 256))
        published = max(result["images_per_second"] / result["nodes"] / result["devices_per_node"]
                        for result in json_of(programs, "plumbline", "published", "--gpu", target, "--model", "resnet50")["results"])
        groups.append((name, [ours, speed_of_peer(gpu, "compiled"), speed_of_peer(gpu, "eager"), published]))
    return bars("ResNet-50 fp16, images/s of one GPU: batch 256, synthetic images",
                [("a", "Plumbline"), ("b", "PyTorch 2.11 compiled"), ("c", "PyTorch 2.11 eager"),
                 ("gone", "best published: MLPerf, ImageNet, per GPU of 4 or 8")], groups, "{:,.0f}", 12500)


def rooflines(programs):
    groups = []
    for gpu, target, name in GPUS:
        measured = statistics.median(256 / run["images_per_second"]["mean"] * 1e3 for run in runs(gpu, 256))
        bounds = [roofline_seconds(programs, target, 256, *options) * 1e3 for options in (("--fusion", "off"), ())]
        groups.append((name, [measured] + bounds))
    return bars("ResNet-50 fp16, batch 256: a step and its rooflines",
                [("a", "measured"), ("c", "roofline, unfused"), ("b", "roofline, fused")], groups, "{:.1f} ms", 32)


KINDS = {"convolutions, forward": "conv_forward", "convolutions, data": "conv_backward_data",
         "convolutions, weights": "conv_backward_weights",
         "block ends": "block_end|product_norm|channel_products|sample_pixels|masked_gradient", "norms and pools": "norm_|pool_"}


def milliseconds(_):
    profile = json.loads((MEASURED / "nvidia_h200/checks/check_3/fp16_bs256_profile.steps.json").read_text())
    sums = {name: [0, 0] for name in [*KINDS, "everything else"]}
    for kind in profile["kinds"]:
        name = next((name for name, pattern in KINDS.items() if re.match(pattern, kind["name"])), "everything else")
        sums[name][0] += kind["seconds"] * 1e3
        sums[name][1] += kind["roofline_seconds"] * 1e3
    measured = [value[0] for value in sums.values()]
    return bars(f"Where {sum(measured):.1f} ms go: ResNet-50 fp16, batch 256, H200", [("a", "measured"), ("b", "roofline")],
                list(sums.items()), "{:.2f} ms", max(measured) * 1.1)


def rows_below(words):
    """The cells of the table in the appendix below a paragraph that contains the words."""
    text = (ROOT / "results/appendix/cpu.md").read_text()
    table = text[text.index(words):].split("\n\n")[1]
    return [row.strip("| ").split(" | ") for row in table.splitlines()[2:]]


def winograd(_):
    groups = [(f"{layer.replace(', ', ' channels, ')} px", [float(speed) for speed in speeds.replace("*", "").split()])
              for layer, speeds, *_ in rows_below("Stride 1, AVX-512, Zen 4, batch 16")]
    return bars("Speed of Winograd relative to a direct pass: fp32, Zen 4, batch 16",
                [("a", "forward"), ("b", "data gradient"), ("c", "weight gradient")], groups, "{:.2f}", 3.1, mark=1)


def winograd_rule(_):
    points = []
    for layer, *cells in rows_below("Stride 1, fp32, AVX2, Zen 3"):
        channels, side = int(layer.split()[0]), int(layer.split(", ")[1])
        for batch, cell in zip((1, 2, 4, 8, 16, 32), cells):
            used = False  # bold, over one speed or several
            for word in cell.split():
                used |= word.startswith("**")
                size = batch * math.ceil(side / 4) ** 2 * channels
                points.append((math.log2(size), float(word.strip("*")), "a" if used else "c"))
                used &= not word.endswith("**")
    return scatter("Measured speed of Winograd by size of the layer: Zen 3, AVX2, batch 1 to 32",
                   [("c", "the rule computes directly"), ("a", "the rule uses Winograd")], points,
                   (7, 19, 2, lambda value: f"{2 ** value:,}"), (0, 3.5, 1, str),
                   "tiles x channels of the input", "speed relative to a direct pass", ((7, 1), (19, 1)))


def scaling(programs):
    tables = json_of(programs, "published_scaling")["series"]
    points = [(table["measured"], table["predicted"], "a" if table["reference"] else "c")
              for table in sorted(tables, key=lambda table: table["reference"])]
    axis = (0, 36000, 10000, "{:,}".format)
    return scatter("32 V100s: predicted and measured images/s of published tables",
                   [("a", "judge the model"), ("c", "other tables")], points, axis, axis, "measured", "predicted",
                   ((0, 0), (36000, 36000)))


def flow(_):
    picture = Picture(920, 215, "From options to a log")
    stages = [("options", "bench/options"), ("Graph", "models"), ("Program", "kernels/program"),
              ("prepared ops", "kernels/cpu, cuda"), ("+ collectives", "comm"), ("memory plan", "kernels/program")]
    for i, (name, folder) in enumerate(stages):
        picture.box(10 + 152 * i, 40, 120, name, below=folder)
        if i:
            picture.arrow(f"M{152 * i - 22},55", "h30")
    results = [("bind, run, time", "bench/run"), ("log, result.json, …", "bench/output"),
               ("analyze, report, …", "plumbline, results")]
    for i, (name, folder) in enumerate(results):
        picture.box(750 - 304 * i, 140, 150, name, below=folder)
        if i:
            picture.arrow(f"M{1052 - 304 * i},155", "h-150")
    picture.arrow("M830,88", "v50")
    picture.text(690, 125, "or print: --dry-run", "small")
    return picture


def block_end(_):
    picture = Picture(800, 330, "What the end of a block reads and writes (a box is a tensor; its width is its size)")
    for left, title in ((20, "plain"), (420, "without x")):
        picture.text(left, 50, title, "title")
    for left, plain in ((20, True), (420, False)):
        picture.text(left, 72, "forward")
        picture.box(left, 90, 45, "a")
        picture.box(left + 75, 90, 120, "x" if plain else "x is not stored", "box" if plain else "gone")
        picture.box(left + 225, 90, 120, "output")
        picture.box(left + 225, 150, 120, "shortcut")
        picture.arrow(f"M{left + 285},150", "v-28")
        if plain:
            picture.arrow(f"M{left + 45},105", "h28")
            picture.arrow(f"M{left + 195},105", "h28")
        else:
            picture.arrow(f"M{left + 30},90", "c50,-16 150,-16 220,-2")
        picture.text(left, 206, "backward")
        picture.box(left + 225, 225, 120, "gradient g")
        picture.box(left + 75, 225, 120, "gradient of x" if plain else "not stored", "box" if plain else "gone")
        picture.box(left, 225, 45, "", below="gradient of a")
        picture.box(left + 75, 285, 120 if plain else 45, "x" if plain else "a")
        if plain:
            picture.arrow(f"M{left + 225},240", "h-28")
            picture.arrow(f"M{left + 75},240", "h-28")
            picture.arrow(f"M{left + 135},285", "v-28")
        else:
            picture.arrow(f"M{left + 250},225", "c-70,-16 -170,-16 -218,-2")
            picture.arrow(f"M{left + 85},285", "l-38,-35")
    return picture


PICTURES = {draw.__name__: draw for draw in (throughput, rooflines, milliseconds, winograd, winograd_rule, scaling, flow, block_end)}


def file_of(name):
    return DOCS / f"pictures/{name}.svg"


def stale(programs):
    """The names of pictures that are missing or differ from the stored results."""
    return [name for name, draw in PICTURES.items()
            if not file_of(name).exists() or file_of(name).read_text() != draw(programs).svg()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("pictures", nargs="*", metavar="PICTURE")
    arguments = parser.parse_args()
    for name in arguments.pictures or PICTURES:
        if name not in PICTURES:
            parser.exit(64, f"make_pictures.py: PICTURE '{name}' is unknown; use one of {', '.join(PICTURES)}\n")
        file_of(name).write_text(PICTURES[name](arguments.programs).svg())


if __name__ == "__main__":
    main()
