#!/usr/bin/env python3
"""make_reference.py PLUMBLINE [--check]: results/published/reference.csv, what one device reached in the stored runs.

A row for each configuration of results/measured on one GPU with default settings: median, smallest and largest of its runs.
With --check nothing is written; the exit code is 1 if the file is not current."""
import csv
import io
import json
import pathlib
import statistics
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[1]
target = root / "results" / "published" / "reference.csv"
columns = ["device", "model", "precision", "batch_per_device", "image_size", "head", "classes", "options",
           "images_per_second", "low", "high", "runs", "source"]


def rows_of(folder):
    said = subprocess.run([sys.argv[1], "compare", str(folder), "--json"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True).stdout
    for published in json.loads(said)["published"]:
        sample = published["sample"]
        own, speeds = sample["configuration"], sample["images_per_second"]
        if own["settings"] or own["nodes"] * own["devices_per_node"] != 1 or own["data"] != "synthetic":
            continue
        options = " ".join(f"{name}={value}" for name, value in sorted(own["options"].items()))
        yield [own["device"], own["model"], own["precision"], own["batch_per_device"], own["image_size"], own["head"],
               own["classes"] or "", options, *(round(f(speeds), 1) for f in (statistics.median, min, max)), len(speeds),
               f"results/measured/{folder.name}"]


text = io.StringIO()
writer = csv.writer(text, lineterminator="\n")
writer.writerow(columns)
for folder in sorted((root / "results" / "measured").glob("nvidia_*")):
    writer.writerows(rows_of(folder))
if "--check" not in sys.argv[2:]:
    target.write_text(text.getvalue())
elif target.read_text() != text.getvalue():
    sys.exit(f"{target} is not current; run docs/make_reference.py")
