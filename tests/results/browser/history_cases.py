"""The page of a history: its points, their verdicts and labels, and what a reader meets on it."""

import statistics

import made_runs
from page_cases import ReportCase

VERDICTS = ["first", "within noise", "within noise", "regression", "improvement"]
RADII = {"regression": 9, "improvement": 9}


class HistoryCase(ReportCase):
    figures, report = {}, ""

    def points(self, page, line):
        return page.evaluate(f"plumbline.charts.history.data.datasets[{line}].data.map(({{x, y}}) => ({{x, y}}))")

    def test_points_are_medians_with_their_spread_and_the_gates_verdicts(self):
        page = self.open()
        for line, nights in enumerate(self.figures.values()):
            points = self.points(page, line)
            dataset = f"plumbline.charts.history.data.datasets[{line}]"
            for point, figures in zip(points, nights, strict=True):
                self.assertAlmostEqual(point["y"], statistics.median(figures), delta=1e-6 * point["y"])
            for interval, figures in zip(page.evaluate(dataset + ".intervals"), nights, strict=True):
                self.assertAlmostEqual(interval[0], min(figures), delta=1e-6 * interval[0])
                self.assertAlmostEqual(interval[1], max(figures), delta=1e-6 * interval[1])
            self.assertEqual(page.evaluate(dataset + ".data.map(({point}) => point.verdict)"), VERDICTS)
            self.assertEqual(page.evaluate(dataset + ".pointRadius"), [RADII.get(verdict, 5) for verdict in VERDICTS])
        table = page.evaluate("document.querySelector('#history table').innerText")
        self.assertIn("% slower than the 10 runs before", table)
        self.assertEqual(page.evaluate("document.querySelectorAll('#history tbody tr').length"), 2 * len(VERDICTS))

    def test_points_are_labeled_with_commit_or_date(self):
        page = self.open()
        labels = page.evaluate("plumbline.charts.history.scales.x.ticks.map(({label}) => label)")
        wanted = [f"{night:x}" * 8 for night in range(len(VERDICTS))]
        wanted.insert(made_runs.UNKNOWN_NIGHT + 1, "2026-01-02")
        self.assertEqual(labels, wanted)

    def test_is_quiet_on_wide_and_narrow_screens(self):
        page = self.open()
        self.assertEqual(page.complaints(), [])
        self.assertEqual(page.requests(), ["file://" + self.report])
        self.assertIsNone(page.evaluate("window.hacked"))
        self.assertEqual(page.evaluate("pageChecks.poorContrast([255, 255, 255])")["poor"], [])
        self.keep_screenshot(page, "history_1400")
        page = self.open(width=390, height=844)
        self.assertEqual(page.evaluate("pageChecks.tooWide()"), [])
        self.assertLessEqual(page.evaluate("document.scrollingElement.scrollWidth"), 390)
