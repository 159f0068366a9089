#!/usr/bin/env python3
"""report_in_browser.py PLUMBLINE [SCREENSHOT_FOLDER]: opens what `plumbline report` makes of 20 runs, and
`--history` of a week, in a headless Chromium and reads it as a reader would. 77 where there is no Chromium."""

import os
import subprocess
import sys
import tempfile
import unittest

import history_cases
import made_runs
import page_cases
import value_cases
import verdict_cases
from devtools import Browser, find_chromium
from history_cases import HistoryCase
from page_cases import ReportCase
from verdict_cases import VerdictCase


def main(plumbline, screenshots=""):
    """True if all cases hold."""
    suite = unittest.TestSuite(map(unittest.defaultTestLoader.loadTestsFromModule, (page_cases, value_cases, history_cases, verdict_cases)))
    with tempfile.TemporaryDirectory(prefix="plumb_report_") as scratch:
        runs = os.path.join(scratch, "runs")
        ReportCase.scratch, ReportCase.screenshots = scratch, screenshots
        ReportCase.results = made_runs.make_runs(runs)
        made_runs.write(runs, "links.json", made_runs.links())
        ReportCase.report = os.path.join(scratch, "report.html")
        subprocess.run([plumbline, "report", runs, "-o", ReportCase.report], check=True)
        history = os.path.join(scratch, "history")
        HistoryCase.figures = made_runs.make_history(history)
        HistoryCase.report = os.path.join(scratch, "history.html")
        subprocess.run([plumbline, "report", "--history", history, "-o", HistoryCase.report], check=True)
        accept = os.path.join(scratch, "accept")
        verdict_cases.make_accept(accept)
        VerdictCase.report = os.path.join(scratch, "verdict.html")
        subprocess.run([plumbline, "report", accept, "-o", VerdictCase.report], check=True)
        with Browser(find_chromium()) as ReportCase.browser:
            return unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("report_in_browser.py: wants the program plumbline")
    if not find_chromium():
        print("skipped: no Chromium on this machine; PLUMB_TEST_PACKAGES=1 launch/install_deps.sh installs it")
        sys.exit(77)
    sys.exit(0 if main(*sys.argv[1:]) else 1)
