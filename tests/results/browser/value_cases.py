"""What the charts, their tables and CSV files say, held against the runs' files."""

import csv
import json
import statistics
import urllib.parse

import made_runs
from page_cases import FIGURES, ReportCase

CASES = made_runs.CASES


class Values(ReportCase):
    def setUp(self):
        self.page = self.look_at(width=1200)

    def medians(self, value):
        """Of each case, over its runs."""
        return [statistics.median(value(r) for r in self.results.values() if r["world_size"] == devices)
                for devices in CASES]

    def points(self, figure, dataset=0):
        return self.page.evaluate(f"plumbline.charts.{figure}.data.datasets[{dataset}].data")

    def assert_near(self, got, wanted, places=9):
        self.assertEqual(len(got), len(wanted))
        for a, b in zip(got, wanted):
            self.assertAlmostEqual(a, b, delta=abs(b) * 10 ** -places + 1e-12)

    def assert_line(self, figure, wanted):
        points = self.points(figure)
        self.assertEqual([p["x"] for p in points], list(CASES))
        self.assert_near([p["y"] for p in points], wanted)

    def show(self, name):
        """Looks at the run of that folder; returns its result."""
        index = self.page.evaluate(f"plumbline.data.runs.findIndex((run) => run.origin.endsWith('/{name}'))")
        self.assertGreaterEqual(index, 0)
        self.page.evaluate(f"plumbline.showRun({index})")
        return self.results[name]

    def test_throughput(self):
        speed = lambda result: result["images_per_second"]["mean"]
        self.assert_line("throughput", self.medians(speed))
        for devices, interval in zip(CASES, self.page.evaluate("plumbline.charts.throughput.data.datasets[0].intervals")):
            runs = [speed(r) for r in self.results.values() if r["world_size"] == devices]
            self.assert_near(interval, [min(runs), max(runs)])  # 5 runs reach no more than 93.8 %
        for axis in "xy":
            self.assertEqual(self.page.evaluate(f"plumbline.charts.throughput.scales.{axis}.type"), "logarithmic")

    def test_bars(self):
        one = self.medians(lambda result: result["images_per_second"]["mean"])[0]
        self.assertEqual(self.page.evaluate("plumbline.charts.bars.data.labels"), ["Plumbline fp16, batch 128"])
        self.assert_near(self.points("bars"), [one])

    def test_efficiency(self):
        speeds = self.medians(lambda result: result["images_per_second"]["mean"])
        self.assert_line("efficiency", [speed / speeds[0] / devices for speed, devices in zip(speeds, CASES)])

    def test_ideal_lines(self):
        one = self.medians(lambda result: result["images_per_second"]["mean"])[0]
        ideal = self.page.evaluate("plumbline.charts.throughput.data.datasets.find((d) => d.label.startsWith('ideal')).data")
        self.assertEqual(ideal[0]["x"], 1)
        self.assert_near([p["y"] for p in ideal], [one * p["x"] for p in ideal])

    def test_published_lines_can_be_left_out(self):
        published = self.page.evaluate("plumbline.data.published.map((c) => c.label)")
        lines = "plumbline.charts.throughput.data.datasets.map((d) => d.label)"
        drawn = self.page.evaluate(lines)
        self.assertGreater(len(published), 0)
        self.assertLessEqual(set(published), set(drawn))
        click = f"""[...document.querySelectorAll('#series-shown label')]
          .find((l) => l.textContent.trim() === {json.dumps(published[0])}).querySelector('input').click()"""
        self.page.evaluate(click)
        self.assertNotIn(published[0], self.page.evaluate(lines))
        self.page.evaluate(click)
        self.assertEqual(drawn, self.page.evaluate(lines))

    def test_where_time_goes(self):
        exposed = self.medians(lambda r: r["exposed_communication_seconds"])
        data = self.medians(lambda r: r["data_wait_seconds"])
        steps = self.medians(lambda r: sum(r["step_seconds"][made_runs.WARMUP:]) / (made_runs.ITERATIONS - made_runs.WARMUP))
        self.assert_near(self.points("waits", 1), [1e3 * value for value in exposed])
        self.assert_near(self.points("waits", 2), [1e3 * value for value in data])
        self.assert_near(self.points("waits", 0), [1e3 * (a - b - c) for a, b, c in zip(steps, exposed, data)], 6)

    def test_step_times_of_every_run(self):
        self.page = self.open(width=1200)
        # In one call, so that nothing is painted between the runs.
        shown = self.page.evaluate("""plumbline.data.runs.map((run, index) => {
          plumbline.showRun(index);
          const [{data, pointBorderColor}] = plumbline.charts.timeline.data.datasets;
          return {name: run.origin.split('/').pop(), steps: data,
                  gray: pointBorderColor.lastIndexOf(pointBorderColor[0]) + 1};
        })""")
        self.assertEqual(sorted(run["name"] for run in shown), sorted(self.results))
        for run in shown:
            result = self.results[run["name"]]
            self.assertEqual([p["x"] for p in run["steps"]], list(range(made_runs.ITERATIONS)))
            self.assert_near([p["y"] for p in run["steps"]], [1e3 * s for s in result["step_seconds"]], 6)
            self.assertEqual(run["gray"], made_runs.WARMUP)
        self.assertEqual(self.page.complaints(), [])

    def test_ranks(self):
        result = self.show("resnet50_1n8g_2")
        self.assertEqual(self.page.evaluate("plumbline.charts.ranks.data.labels"), list(range(8)))
        self.assert_near(self.points("ranks"), [1e3 * rank["exposed_communication_seconds"] for rank in result["ranks"]], 6)
        flags = self.page.evaluate("document.getElementById('flag-list').innerText")
        self.assertIn(f"rank {made_runs.SLOW_RANK} on node2 is ", flags.lower())

    def test_scaling_comes_first(self):
        first = self.page.evaluate("document.querySelector('#flag-list li:not(.answer)').innerText")
        self.assertTrue(first.lower().startswith("scaling"), first)
        self.assertIn("1n4g to 1n8g: efficiency ", first)
        self.assertIn(f"waiting for rank {made_runs.SLOW_RANK} on node2", first)

    def test_the_answer_stands_above_all(self):
        answer = self.page.evaluate("document.querySelector('main li').innerText")
        self.assertTrue(answer.startswith("ResNet-50 v1.5 fp16 is held back by ranks that wait for each other: each of 8 devices (1n8g) reaches "), answer)

    def test_predictions_stand_beside_what_was_measured(self):
        for figure in ("throughput", "efficiency"):
            self.assertTrue(self.page.evaluate(f"plumbline.charts.{figure}.data.datasets[1].label").endswith(", predicted"))
            predicted = self.points(figure, 1)
            self.assertEqual([p["x"] for p in predicted], [1, 2, 4, 8, 16])  # both hosts of links.json
            self.assertAlmostEqual(predicted[0]["y"] / self.points(figure)[0]["y"], 1, places=2)
            self.assertGreater(predicted[3]["y"], self.points(figure)[3]["y"])

    def test_profile(self):
        result = self.show("resnet50_1n4g_1")
        profile = made_runs.profile(sorted(result["step_seconds"])[60])
        kinds = dict(zip(self.page.evaluate("plumbline.charts.kinds.data.labels"),
                         zip(self.points("kinds", 0), self.points("kinds", 1))))
        self.assertEqual(len(kinds), len(profile["kinds"]))
        for kind in profile["kinds"]:
            self.assert_near(kinds[kind["name"].replace("_", " ")], [1e3 * kind["seconds"], 1e3 * kind["roofline_seconds"]], 5)

    def test_trace_is_named(self):
        self.show("resnet50_1n8g_1")
        self.assertIn("trace.json at ui.perfetto.dev", self.page.evaluate("document.getElementById('trace-note').textContent"))

    def test_tables_have_a_row_per_point(self):
        for name in FIGURES:
            points, rows = self.page.evaluate(f"""(() => {{
              const chart = plumbline.charts.{name};
              const lines = chart.data.datasets.filter((d) => !/^ideal/.test(d.label ?? ''));
              return [chart.config.type === 'bar' ? lines[0].data.length : lines.reduce((sum, d) => sum + d.data.length, 0),
                      document.querySelectorAll('#{name} tbody tr').length];
            }})()""")
            self.assertGreater(points, 0, name)
            self.assertEqual(rows, points, name)

    def test_points_are_painted_where_the_axes_say(self):
        for name in ("throughput", "efficiency", "waits", "ranks", "kinds"):
            painted = self.page.evaluate(f"pageChecks.painted(plumbline.charts.{name})")
            self.assertGreater(painted["looked"], 2, name)
            self.assertEqual(painted["wrong"], [], name)

    def test_csv_has_the_numbers(self):
        self.page.allow_downloads(self.scratch)
        self.page.evaluate("document.querySelector('#throughput a.csv').click()")
        with open(self.page.downloaded(), newline="") as file:
            rows = list(csv.reader(file))
        self.assertEqual(rows[0], ["Line", "Case", "Devices", "Throughput (images/s)", "Interval from (images/s)",
                                   "Interval to (images/s)"])
        own = [row for row in rows[1:] if row[0] == self.page.evaluate("plumbline.data.curves[0].label")]
        self.assertEqual([(row[1], row[2]) for row in own], [(f"1n{devices}g", str(devices)) for devices in CASES])
        self.assert_near([float(row[3]) for row in own], self.medians(lambda r: r["images_per_second"]["mean"]))
        self.assertEqual(len(rows) - 1, self.page.evaluate("document.querySelectorAll('#throughput tbody tr').length"))

    def test_every_csv_has_as_many_rows_as_its_table(self):
        page = self.open()
        for name in FIGURES:
            link = f"document.querySelector('#{name} a.csv')"
            self.assertEqual(page.evaluate(link + ".download"), name + ".csv")
            rows = list(csv.reader(urllib.parse.unquote(page.evaluate(link + ".href").split(",", 1)[1]).splitlines()))
            cells = page.evaluate(f"""[document.querySelectorAll('#{name} tbody tr').length,
              document.querySelectorAll('#{name} thead th').length]""")
            self.assertEqual([len(rows) - 1, len(rows[0])], cells, name)
            self.assertEqual({len(row) for row in rows}, {len(rows[0])}, name)
