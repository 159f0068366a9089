#!/usr/bin/env python3
"""Runs the commands that the documents show and writes their outputs, reports and screenshots into the documents:

    docs/make_outputs.py [--programs FOLDER] [--check] [PAGE.md …]

PAGE: tutorial.md, how-to/ci.md, …; default: all. Commands of all pages run in one scratch folder that contains the programs
(default build/release/bin), in the pages' order, so that a later page reads what an earlier one's runs left. In a page

    <!-- run: COMMAND -->                       runs a command that readers don't see
    <!-- output of: COMMAND -->                 the code block below is its output
    <!-- timed output of: COMMAND -->           the same, and the output differs in each run
    <!-- picture of: FILE.html, SELECTOR -->    the picture below is the part of a page that a CSS selector selects
    <!-- copy of: FILE -->                      the link below leads to a copy of a file

It writes results/measured/README.md, too, the tables of all runs that launch/keep_runs.sh keeps there. Pictures need a headless
Chromium; without one they stay as they are. --check changes nothing: it compares the outputs that do not differ, the tables,
the pictures of make_pictures.py, all links, and the figures of README.md and performance.md with results/measured.
Exit codes: 0 done or current, 1 not current or a command failed, 64 usage.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

DOCS = pathlib.Path(__file__).resolve().parent
ROOT = DOCS.parent
MEASURED = ROOT / "results/measured/README.md"
sys.path.insert(0, str(ROOT / "tests/results/browser"))
import check_figures  # noqa: E402
import check_links  # noqa: E402
import devtools  # noqa: E402
import make_pictures  # noqa: E402

PAGES = ["tutorial.md", "reference/output.md", "how-to/real-images.md", "how-to/arcface.md", "reference/log-formats.md",
         "../results/appendix/scaling.md", "how-to/compare-a-framework.md", "reference/bench_allreduce.md", "how-to/launching.md",
         "how-to/ci.md"]
BLOCK = re.compile(r"<!-- run: (?P<run>.+?) -->\n"
                   r"|<!-- (?P<timed>timed )?output of: (?P<output>.+?) -->\n```\n(?P<old>.*?)```\n"
                   r"|<!-- picture of: (?P<page>\S+), (?P<selector>.+?) -->\n!\[.*?\]\((?P<picture>.+?)\)"
                   r"|<!-- copy of: (?P<file>\S+) -->\n\[.*?\]\((?P<copy>.+?)\)", re.DOTALL)


def shell(command, folder):
    """Standard output of a command; ends the program if it fails. Exit code 1 is an answer of plumbline gate."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1")
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"make_outputs.py: '{command}' ended with {done.returncode}: {done.stderr}")
    return done.stdout


def take_picture(chromium, page_file, selector, picture):
    with devtools.Browser(chromium) as browser:
        page = devtools.Page(browser, width=1000, height=800)
        page.open(page_file)
        page.settle()
        box = page.evaluate(f"(() => {{ const b = document.querySelector({selector!r}).getBoundingClientRect();"
                            " return {x: b.x, y: b.y + window.scrollY, width: b.width, height: b.height}; })()")
        page.screenshot(picture, clip=box)


def fill(page, folder, chromium, check):
    """The text of the page with the current outputs of its commands; with `check` only of those that do not differ by run."""
    def filled(block):
        if check and (block["timed"] or not block["output"]):
            return block[0]
        if block["run"]:
            shell(block["run"], folder)
        elif block["output"]:
            output = shell(block["output"], folder)
            return block[0].replace(f"```\n{block['old']}```", f"```\n{output.strip()}\n```")
        elif block["file"]:
            shutil.copyfile(folder / block["file"], page.parent / block["copy"])
        elif chromium:
            take_picture(chromium, folder / block["page"], block["selector"], page.parent / block["picture"])
        return block[0]
    return BLOCK.sub(filled, page.read_text())


def measured_page(programs):
    """The tables of all runs below results/measured."""
    machines = sorted(folder.relative_to(ROOT) for folder in MEASURED.parent.iterdir() if folder.is_dir())
    head = ("# Measured runs\n\nWritten by `docs/make_outputs.py` from the runs in this folder. Each run has every sample in its"
            " `result.json`, and its machine and commit in `env.json`.\n\n")
    return head + shell(shlex.join([str(programs.resolve() / "plumbline"), *"report --format markdown -o -".split(),
                                    *map(str, machines)]), ROOT)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("pages", nargs="*", default=PAGES, metavar="PAGE.md")
    arguments = parser.parse_args()
    chromium = devtools.find_chromium()
    stale = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for name in ("bench_resnet50", "bench_arcface", "bench_allreduce", "make_rec", "plumbline",
                     "published_scaling"):
            (folder / name).symlink_to((arguments.programs / name).resolve())
        for name in ("launch", "results", "tests"):
            (folder / name).symlink_to(ROOT / name)
        for name in arguments.pages:
            page = (DOCS / name).resolve()
            text = fill(page, folder, chromium, arguments.check)
            if not arguments.check:
                page.write_text(text)
            elif text != page.read_text():
                stale.append(f"{page.relative_to(ROOT)}: outputs are not current; run docs/make_outputs.py {name}")
    measured = measured_page(arguments.programs) if arguments.pages == PAGES else MEASURED.read_text()
    if not arguments.check:
        MEASURED.write_text(measured)
    elif measured != MEASURED.read_text():
        stale.append("results/measured/README.md is not current; run docs/make_outputs.py")
    if arguments.check:
        stale += [f"{name}.svg is not current; run docs/make_pictures.py {name}"
                  for name in make_pictures.stale(arguments.programs)]
        stale += [*check_links.findings(), *check_figures.findings(arguments.programs)]
    if stale:
        sys.exit("make_outputs.py: " + "\n".join(stale))


if __name__ == "__main__":
    main()
