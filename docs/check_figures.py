"""The figures of README.md and docs/performance.md, held against what is stored."""

import csv
import json
import pathlib
import re
import statistics

import make_pictures

DOCS = pathlib.Path(__file__).resolve().parent
ROOT = DOCS.parent
MEASURED = ROOT / "results/measured"


def per_device_published():
    with (ROOT / "results/published/published.csv").open() as file:
        return [float(row["throughput_samples_per_s"]) / int(row["nodes"]) / int(row["gpus_per_node"])
                for row in csv.DictReader(file) if row["throughput_samples_per_s"]]


def gpu_speeds():
    """Images/s that a table may show: of runs and groups of runs, of PyTorch's runs and their mean, and published per device."""
    speeds = [float(number) for number in re.findall(r"\| ([\d.]+)(?= \|)", (MEASURED / "README.md").read_text())]
    for gpu in MEASURED.iterdir():
        peers = {}
        for file in gpu.glob("peers/*_[0-9].json"):
            peers.setdefault(file.stem[:-2], []).append(json.loads(file.read_text())["images_per_second"]["mean"])
        for means in peers.values():
            speeds += means + [statistics.mean(means)]
    # A stored 11123.5 was rounded before, so it is 11,123 or 11,124.
    return {round(speed + part) for speed in speeds + per_device_published() for part in (-0.05, 0.05)}


def rows_of(page, heading):
    """The rows of tables below a heading, up to the next one of its level."""
    text = page.read_text()
    part = text[text.index(f"\n{heading}\n") + 1:]
    end = re.search(r"\n## ", part)
    return [line for line in part[:end.start() if end else None].splitlines() if line.startswith("| ")]


def unfounded_gpu_figures():
    known = gpu_speeds()
    for page, heading in ((ROOT / "README.md", "## What has been measured"), (DOCS / "performance.md", "## One GPU")):
        for row in rows_of(page, heading):
            for figure in re.findall(r"(?<![\d,])\d{1,2},\d{3}(?![\d,])", re.sub(r"[\d,]+ classes", "", row)):
                if int(figure.replace(",", "")) not in known:
                    yield f"{page.relative_to(ROOT)}: {figure} is not in results/measured or results/published, in '{row}'"


def unfounded_cpu_figures():
    """Figures of two CPU cores are in tables of the appendix, written by hand from the runs."""
    known = set(re.findall(r"\d+\.\d+", (ROOT / "results/appendix/cpu.md").read_text()))
    for row in rows_of(DOCS / "performance.md", "## Two CPU cores"):
        for figure in re.findall(r"\d+\.\d+", row):
            if figure not in known:
                yield f"docs/performance.md: {figure} is not in results/appendix/cpu.md, in '{row}'"


def claims(programs):
    """Each claim: a page, its words with {} for the figures, and the figures as they follow now."""
    h100 = "nvidia_h100_80gb_hbm3"
    in_turn = make_pictures.runs(h100, 256)[-2:]  # with PyTorch
    ours = statistics.mean(run["images_per_second"]["mean"] for run in in_turn)
    eager, compiled = (make_pictures.speed_of_peer(h100, way) for way in ("eager", "compiled"))
    energy = sorted(run["energy_joules_per_image"] * 1e3 for run in make_pictures.runs("nvidia_h200", 256))
    errors = make_pictures.json_of(programs, "published_scaling")["errors"]
    judged, every = ([errors[way][group]["mean"] * 100 for way in ("predicted", "naive")] for group in ("reference", "all"))
    readme, performance, model = ROOT / "README.md", DOCS / "performance.md", DOCS / "explanation/scaling-model.md"
    yield readme, "{:.2f} times as fast as eager and {:.2f} times as fast as compiled", (ours / eager, ours / compiled)
    yield readme, "needs {:.1f} and {:.1f} mJ", energy
    yield readme, "errs by {:.1f} % on average on the 12", judged[:1]
    yield readme, "by {:.1f} % on all 32. Doubling the 16-GPU figure errs by {:.1f} % and {:.1f} %", (every[0], judged[1], every[1])
    yield model, "mean error is {:.1f} %", judged[:1]
    yield model, "the model errs by {:.1f} % and doubling by {:.1f} %", every
    yield performance, "PyTorch reached {:.2f} (eager) and {:.2f} (compiled)", (eager / ours, compiled / ours)
    for row in rows_of(performance, "## One GPU"):
        name, batch, images, *shares = row.strip("| ").split(" | ")
        if len(shares) < 2 or not shares[0].endswith("%"):
            continue
        target = {"H200": "h200", "H100": "h100", "A100 80 GB": "a100-80gb"}[name.split(",")[0]]
        seconds = int(batch) / float(images.replace(",", ""))
        bounds = [make_pictures.roofline_seconds(programs, target, batch, *options) for options in (("--fusion", "off"), ())]
        yield (performance, f"| {name} | {batch} | {images} | {{:.0f}} % | {{:.0f}} % |",
               [bound / seconds * 100 for bound in bounds])


def findings(programs):
    """Sentences about figures that do not follow; programs: the folder of the programs."""
    yield from unfounded_gpu_figures()
    yield from unfounded_cpu_figures()
    for page, words, figures in claims(programs):
        expected = words.format(*figures)
        if expected not in page.read_text():
            yield f"{page.relative_to(ROOT)}: expected '{expected}'"
