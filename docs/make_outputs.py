#!/usr/bin/env python3
"""Runs the commands that the documents show and writes their outputs, reports and screenshots into the documents:

    docs/make_outputs.py [--programs FOLDER] [PAGE.md …]

PAGE: tutorial.md, how-to/ci.md, …; default: all. Commands of all pages run in one scratch folder that holds the programs
(default build/release/bin), in the pages' order, so that a later page reads what an earlier one's runs left. In a page

    <!-- run: COMMAND -->                       runs a command that readers don't see
    <!-- output of: COMMAND -->                 its output stands in the code block below
    <!-- picture of: FILE.html, SELECTOR -->    the part of a page that a CSS selector names stands in the picture below
    <!-- copy of: FILE -->                      a file stands where the link below leads

Pictures want a headless Chromium; without one they stay as they are. Exit codes: 0 done, 1 a command failed, 64 usage.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

DOCS = pathlib.Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT / "tests/results/browser"))
import devtools  # noqa: E402

PAGES = ["tutorial.md", "reference/output.md", "how-to/real-images.md", "how-to/arcface.md", "reference/log-formats.md",
         "../results/appendix/scaling.md", "how-to/compare-a-framework.md", "reference/bench_allreduce.md", "how-to/launching.md",
         "how-to/ci.md"]
BLOCK = re.compile(r"<!-- run: (?P<run>.+?) -->\n"
                   r"|<!-- output of: (?P<output>.+?) -->\n```\n(?P<old>.*?)```\n"
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


def fill(page, folder, chromium):
    """The text of the page with what its commands say now."""
    def filled(block):
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("pages", nargs="*", default=PAGES, metavar="PAGE.md")
    arguments = parser.parse_args()
    chromium = devtools.find_chromium()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for name in ("bench_resnet50", "bench_arcface", "bench_allreduce", "make_rec", "plumbline"):
            (folder / name).symlink_to((arguments.programs / name).resolve())
        for name in ("launch", "results", "tests"):
            (folder / name).symlink_to(ROOT / name)
        for name in arguments.pages:
            page = DOCS / name
            page.write_text(fill(page, folder, chromium))


if __name__ == "__main__":
    main()
