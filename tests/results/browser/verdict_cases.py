"""The page of an accept that failed before its runs: the verdict alone."""

import os

import made_runs
from page_cases import ReportCase

HOSTS = ["n1", "n2", "n3"]


def check(name, where, verdict, **more):
    return {"check": name, "where": where, "hosts": where, "expected": "", "measured": "", "source": "", "limit": None,
            "verdict": verdict, "remark": "", **more}


def make_accept(folder):
    os.makedirs(folder)
    device = {"name": "H100", "expected": 100, "limit": 0.05}
    made_runs.write(folder, "accept.json", {
        "schema": "plumbline.verdict/1", "verdict": "FAIL", "exit_code": 1, "began": "2026-11-29T08:07:39Z", "seconds": 56,
        "hosts": HOSTS, "excluded": ["n3"], "expected_link_bytes_per_second": 4e10,
        "checks": [check("facts", ["n1"], "pass"), check("facts", ["n2"], "pass"),
                   check("link", ["n3"], "FAIL", remark="look at <b>its</b> cable", limit=0.25)],
        "devices": [{**device, "device": "n1 GPU 0", "images_per_second": 101, "verdict": "pass"},
                    {**device, "device": "n2 GPU 0", "images_per_second": 60, "verdict": "FAIL"}]})
    pairs = [("n1", "n2", 4e10), ("n1", "n3", 4e9), ("n2", "n3", 4e9)]
    made_runs.write(folder, "links.json", {
        "schema": "plumbline.links/1", "comm": "mpi", "hosts": [{"name": name, "devices": 1} for name in HOSTS],
        "pairs": [{"first": a, "second": b, "latency_seconds": 1e-5, "bytes_per_second": speed} for a, b, speed in pairs]})


class VerdictCase(ReportCase):
    report = ""

    def test_the_first_screen_says_what_failed(self):
        page = self.open(width=1400)
        text = page.evaluate("document.getElementById('verdict').innerText")
        for words in ("FAIL 3 hosts, 1 bad: n3", "look at <b>its</b> cable", "srun --exclude=n3", "mpirun -H n1,n2"):
            self.assertIn(words, text)
        rows = page.evaluate("[...document.querySelectorAll('#verdict-parts table')].map((table) => table.tBodies[0].rows.length)")
        self.assertEqual(rows, [3, 3], "checks that pass are one row, a remark is one of its own; a row for each host")
        cells = page.evaluate("[...document.querySelectorAll('.matrix td[title]')].map((cell) => cell.innerText)")
        self.assertEqual(cells, ["100 %", "10 %", "100 %", "10 %", "10 %", "10 %"])
        bars = page.evaluate("[...document.querySelectorAll('.strip span')].map((bar) => bar.title)")
        self.assertEqual(bars[0], "n2 GPU 0: 60.00 images/s, 60.0 % of expected")
        self.assertEqual(page.evaluate("[...document.querySelectorAll('main > section')].filter((one) => !one.hidden).length"), 1)
        self.keep_screenshot(page, "verdict")
