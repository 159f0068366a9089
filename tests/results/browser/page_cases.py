"""What a reader meets on the page, whatever its figures are: quiet console, no network, colors, narrow screens,
keyboard, screen reader."""

import os
import unittest

from devtools import Page

MOST_BYTES = 2_000_000
FIGURES = ("bars", "throughput", "efficiency", "waits", "timeline", "ranks", "kinds")
# Roles that say nothing without a name.
NAMED_ROLES = ("button", "checkbox", "link", "combobox", "image", "img", "region", "navigation", "table",
               "slider")

# Notes when the page says that it is ready: milliseconds since its loading began.
NOTE_READY = """Object.defineProperty(window, 'plumbline', {configurable: true, set(value) {
  window.readyAfter = performance.now();
  Object.defineProperty(window, 'plumbline', {value});
}})"""


class ReportCase(unittest.TestCase):
    results, report, scratch, screenshots, browser, pages = {}, "", "", "", None, {}

    def open(self, **options):
        """A page of its own, for cases that change it."""
        page = Page(self.browser, **options)
        self.addCleanup(page.close)
        return self.load(page)

    def look_at(self, **options):
        """A page that all cases share which ask for the same."""
        key = tuple(sorted(options.items()))
        if key not in self.pages:
            self.pages[key] = self.load(Page(self.browser, **options))
        return self.pages[key]

    def load(self, page):
        page.send("Page.addScriptToEvaluateOnNewDocument", source=NOTE_READY)
        page.open(self.report)
        self.assertTrue(page.evaluate("window.plumbline.ready"))
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "page_checks.js")) as file:
            page.evaluate(file.read() + "; undefined")
        return page

    def keep_screenshot(self, page, name):
        if self.screenshots:
            os.makedirs(self.screenshots, exist_ok=True)
            page.screenshot(os.path.join(self.screenshots, name + ".png"))


class Page1400(ReportCase):
    def test_every_section_is_named_by_its_heading(self):
        unnamed = self.look_at().evaluate("[...document.querySelectorAll('section')].filter("
                                     "(one) => !document.getElementById(one.getAttribute('aria-labelledby')))"
                                     ".map((one) => one.id)")
        self.assertEqual(unnamed, [])

    def test_is_quiet_and_asks_for_nothing(self):
        page = self.open()
        self.assertEqual(page.complaints(), [])
        self.assertEqual(page.requests(), ["file://" + self.report])
        self.keep_screenshot(page, "light_1400")

    def test_is_small_and_soon_ready(self):
        size = os.path.getsize(self.report)
        page = self.look_at()
        print(f"{len(self.results)} runs: {size} bytes, ready after {page.evaluate('readyAfter'):.0f} ms ... ",
              end="", flush=True)
        self.assertLess(size, MOST_BYTES)

    def test_text_of_others_is_only_text(self):
        page = self.look_at()
        self.assertIsNone(page.evaluate("window.hacked"))
        self.assertIn("<b>GPU</b> & co</script>", page.evaluate("document.body.innerText"))

    def test_every_chart_is_named_and_has_its_numbers(self):
        page = self.look_at()
        charts = page.evaluate("""[...document.querySelectorAll('canvas')].map((canvas) => {
          const figure = canvas.closest('figure');
          return [figure.id, canvas.getAttribute('role'), (canvas.getAttribute('aria-label') || '').length > 20,
                  figure.querySelector('figcaption').innerText.trim() !== '', figure.querySelectorAll('table').length];
        })""")
        self.assertEqual(charts, [[name, "img", True, True, 1] for name in FIGURES])

    def test_rows_of_cards_are_full(self):
        page = self.open()
        alone = next(i for i, run in enumerate(self.results.values()) if run["world_size"] == 1)
        for run in (len(self.results) - 1, alone):  # ranks that wait for each other are shown of several only
            page.evaluate(f"plumbline.showRun({run})")
            for width in (1400, 1100, 390):
                page.resize(width, 900)
                page.settle()
                self.assertEqual(page.evaluate("pageChecks.halfEmptyRows()"), [], (run, width))

    def test_headings_are_in_order(self):
        levels = self.look_at().evaluate("pageChecks.headings()")
        self.assertEqual(levels[0], 1)
        self.assertEqual(levels.count(1), 1)
        for above, below in zip(levels, levels[1:]):
            self.assertLessEqual(below, above + 1, levels)

    def test_a_screen_reader_has_a_name_for_everything(self):
        page = self.look_at()
        page.send("Accessibility.enable")
        nodes = page.send("Accessibility.getFullAXTree")["nodes"]
        roles = [node.get("role", {}).get("value") for node in nodes if not node["ignored"]]
        self.assertGreaterEqual(roles.count("link"), len(FIGURES))
        nameless = [node["role"]["value"] for node in nodes
                    if not node["ignored"] and node["role"]["value"] in NAMED_ROLES
                    and not node.get("name", {}).get("value")]
        self.assertEqual(nameless, [])
        self.assertNotEqual(page.evaluate("document.documentElement.lang"), "")
        self.assertNotEqual(page.evaluate("document.title"), "")

    def test_the_tab_key_goes_through_all_in_order(self):
        page = self.look_at()
        expected = page.evaluate("pageChecks.focusable()")
        self.assertGreater(len(expected), 2 * len(FIGURES))
        for index, name in enumerate(expected):
            page.press("Tab")
            focused = page.evaluate("pageChecks.focused()")
            self.assertEqual((focused["index"], focused["name"]), (index, name))
            self.assertTrue(focused["ring"], f"{name} doesn't show that it has the focus")
        page.press("Tab", shift=True)
        self.assertEqual(page.evaluate("pageChecks.focused()")["index"], len(expected) - 2)

    def test_works_by_keyboard(self):
        page = self.open()
        page.evaluate("document.querySelector('#throughput summary').focus()")
        page.press("Enter")
        self.assertTrue(page.evaluate("document.querySelector('#throughput details').open"))
        page.evaluate("document.querySelector('#series-shown input').focus()")
        lines = "plumbline.charts.throughput.data.datasets.map((d) => d.label)"
        own = page.evaluate("plumbline.data.curves[0].label")
        self.assertIn(own, page.evaluate(lines))
        page.press(" ")
        self.assertNotIn(own, page.evaluate(lines))
        page.press(" ")
        self.assertIn(own, page.evaluate(lines))
        page.evaluate("document.getElementById('run-choice').focus()")
        page.press("Home")
        self.assertIn(page.evaluate("plumbline.data.runs[0].origin"),
                      page.evaluate("document.getElementById('run-note').textContent"))


class Colors(ReportCase):
    def test_text_can_be_read(self):
        page = self.open()
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        seen = page.evaluate("pageChecks.poorContrast([255, 255, 255])")
        self.assertGreater(seen["looked"], 200)
        self.assertEqual(seen["poor"], [])
        self.assertGreaterEqual(page.evaluate("pageChecks.chartTextContrast([255, 255, 255])"), 4.5)


class Narrow(ReportCase):
    def test_needs_no_scrolling_sideways(self):
        page = self.open(width=390, height=844)
        self.keep_screenshot(page, "light_390")
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        self.assertLessEqual(page.evaluate("document.scrollingElement.scrollWidth"), 390)
        self.assertEqual(page.evaluate("pageChecks.tooWide()"), [])

    def test_charts_shrink_with_the_window(self):
        page = self.open()
        page.resize(390, 844)
        page.settle()
        self.assertLessEqual(page.evaluate("document.scrollingElement.scrollWidth"), 390)
        self.assertEqual(page.evaluate("pageChecks.tooWide()"), [])
