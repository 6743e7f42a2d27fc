"""The page of a plan in a browser: pins, keys, zoom, labels, colours, rows, and what axe finds."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

from .helpers import ROOT, has, needs

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SCHEMES = ("light", "dark")
WIDE, PHONE = 1200, 390
MODEL = ROOT / "examples" / "resnet-tiny.onnx"
FLAGS = ("--target", "cpu", "--effort", "20", "--emit", "source")


@needs("playwright")
@unittest.skipIf(CHROMIUM is None, "no chromium")
class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        from playwright.sync_api import sync_playwright

        place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(place.cleanup)
        cls.place = Path(place.name)
        cls.compile("tight", MODEL, "--budget", "3MiB")
        cls.compile("roomy", MODEL, "--budget", "3GiB")
        cls.compile("moved", MODEL, "--budget", "3MiB", "--offload", "all")
        playwright = sync_playwright().start()
        cls.addClassCleanup(playwright.stop)
        cls.browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        cls.addClassCleanup(cls.browser.close)

    @classmethod
    def compile(cls, name: str, model: Path, *flags: str) -> None:
        cls.tmc("compile", str(model), *FLAGS, *flags, "-o", str(cls.place / name))

    @staticmethod
    def tmc(*words: str) -> str:
        done = subprocess.run([os.environ["TMC_BIN"], *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def page(self, name: str, width: int = WIDE, scheme: str = "light") -> Any:
        """A page that asks for no other file and has nothing to say to the console."""
        page = self.browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.addCleanup(page.close)
        path = self.place / name
        path = path / "report.html" if path.is_dir() else path
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: (said.append("a dialog"), dialog.dismiss()))
        page.on("request", lambda asked: None if asked.url == path.as_uri() else said.append(asked.url))
        self.addCleanup(self.assertEqual, said, [])
        page.goto(path.as_uri())
        return page

    def told(self, page: Any) -> str:
        """The pinned text, which is that of the command."""
        text = page.locator("#pinned").text_content()
        name = text.split("\n")[0]
        said = self.tmc("explain", str(self.place / "tight"), "--tensor", name)
        self.assertIn(text + "\n", said + "\n")
        self.assertTrue(page.locator("#pin").is_visible())
        return name

    def chart(self, page: Any, panel: str) -> Any:
        return page.locator(f"#panel-{panel} canvas").first

    def test_a_click_pins_in_both_charts_and_the_table(self) -> None:
        page = self.page("tight")
        names = set()
        for kind in ("stack", "arena"):
            at = page.evaluate(
                """kind => {
                  const chart = charts.find(c => c.kind === kind), f = chart.f, i = D.peak;
                  const [t, from, to] = tensorsAt(chart, i).sort((a, b) => (b[2] - b[1]) - (a[2] - a[1]))[0];
                  return { x: (f.x(i) + f.x(i + 1)) / 2, y: f.y((from + to) / 2), name: V.name[T.value[t]] };
                }""", kind)  # fmt: skip
            self.chart(page, kind).click(position={"x": at["x"], "y": at["y"]})
            self.assertEqual(self.told(page), at["name"])
            page.locator("#unpin").click()
            self.assertFalse(page.locator("#pin").is_visible())
            names.add(at["name"])
        button = page.locator("#decisions button.name").first
        button.click()
        self.assertEqual(self.told(page), button.text_content())
        self.assertEqual(page.locator("#decisions tr.pinned").count(), 1)

    def test_keys_reach_everything(self) -> None:
        page = self.page("tight")
        self.chart(page, "arena").focus()
        keys = page.keyboard
        readout = page.locator("#panel-arena .readout")
        keys.press("p")
        peak = page.evaluate("D.peak") + 1
        self.assertTrue(readout.text_content().startswith(f"launch {peak}: "), readout.text_content())
        keys.press("ArrowRight")
        self.assertTrue(readout.text_content().startswith(f"launch {peak + 1}: "))
        keys.press("End")
        self.assertTrue(readout.text_content().startswith(f"launch {page.evaluate('N')}: "))
        keys.press("p")
        keys.press("ArrowUp")
        keys.press("ArrowUp")
        keys.press("Enter")
        first = self.told(page)
        keys.press("ArrowUp")
        keys.press("Enter")
        self.assertNotEqual(self.told(page), first)
        keys.press("Escape")
        self.assertFalse(page.locator("#pin").is_visible())
        # Tab goes through all charts, and the table's heads and names.
        reached = set()
        page.evaluate("document.activeElement.blur()")
        for _ in range(120):
            keys.press("Tab")
            reached.add(page.evaluate(
                "(e => e.tagName + ' ' + (e.closest('[id]') || e).id + ' ' + e.className)(document.activeElement)"))  # fmt: skip
        for wanted in ("CANVAS panel-stack ", "CANVAS panel-arena ", "BUTTON decisions ", "BUTTON decisions name", "INPUT persistent ", "INPUT filter ",
                       "BUTTON closer "):  # fmt: skip
            self.assertIn(wanted, reached)

    def test_zoom(self) -> None:
        page = self.page("tight")
        wide = "view.to - view.from"
        whole = page.evaluate(wide)
        chart = self.chart(page, "stack")
        chart.focus()
        page.keyboard.press("+")
        self.assertAlmostEqual(page.evaluate(wide), whole / 2)
        page.keyboard.press("0")
        self.assertEqual(page.evaluate(wide), whole)
        chart.hover()
        page.mouse.wheel(0, -100)
        self.assertLess(page.evaluate(wide), whole)
        page.locator("#farther").click()
        self.assertEqual(page.evaluate(wide), whole)
        # The wheel scrolls the page over a chart that nobody uses.
        page.evaluate("document.activeElement.blur()")
        chart.hover()
        page.mouse.wheel(0, -100)
        self.assertEqual(page.evaluate(wide), whole)

    def test_labels_keep_apart(self) -> None:
        for name in ("tight", "moved"):
            for width in (WIDE, PHONE):
                overlaps = self.page(name, width).evaluate(
                    """() => charts.flatMap(({ f }) => f.labels.flatMap(([, begin, row, text], k) => f.labels.slice(k + 1)
                      .filter(([, other, of, words]) => of === row && begin < other + f.g.measureText(words).width
                        && other < begin + f.g.measureText(text).width)))""")  # fmt: skip
                self.assertEqual(overlaps, [])

    def test_the_budget_is_a_line(self) -> None:
        """The row of pixels at the budget has the colour of the text; far above, words say it."""
        pixel = """() => {
          const f = charts.find(c => c.kind === "stack").f, ratio = devicePixelRatio;
          return [...f.g.getImageData((f.left + 3) * ratio, Math.floor(f.y(D.budget)) * ratio, 1, 1).data].slice(0, 3);
        }"""
        page = self.page("tight")
        self.assertLess(max(page.evaluate(pixel)), 110)
        text = page.locator("#base").text_content()
        self.assertRegex(text, r"^The axis begins at .* KiB: parameters, optimizer")
        page = self.page("roomy")
        self.assertGreater(page.evaluate("D.budget"), page.evaluate("charts.find(c => c.kind === 'stack').f.high"))

    def test_legends_say_what_occurs(self) -> None:
        page = self.page("roomy")
        legend = page.locator("#panel-stack .legend").text_content()
        self.assertIn("activations, kept", legend)
        self.assertNotIn("recomputed", legend)
        self.assertNotIn("moved", legend)
        self.assertNotIn("parameters", legend)
        page.locator("#persistent").check()
        page.wait_for_timeout(100)
        self.assertIn("parameters", page.locator("#panel-stack .legend").text_content())
        legend = self.page("moved").locator("#stacks .legend").first.text_content()
        self.assertIn("moved", legend)

    def test_a_colour_means_one_thing(self) -> None:
        page = self.page("moved")
        clashes = page.evaluate(
            """() => {
              const names = new Map();
              for (const span of document.querySelectorAll(".legend span")) {
                const colour = span.firstChild.style.background;
                names.set(colour, (names.get(colour) || new Set()).add(span.textContent));
              }
              return [...names.values()].filter(set => set.size > 1).map(set => [...set]);
            }""")  # fmt: skip
        self.assertEqual(clashes, [])
        self.assertGreater(page.locator(".legend span").count(), 8)

    def test_the_table_has_all_rows(self) -> None:
        page = self.page("tight")
        rows = page.locator("#decisions tbody tr")
        self.assertEqual(rows.count(), 40)
        paid = page.locator("#decisions tbody td:nth-child(2)").all_text_contents()
        self.assertTrue(paid[0].endswith("us") and paid[-1] == "-", paid)
        page.locator("#decisions .more button").last.click()
        count = page.evaluate("V.cost.filter(cost => cost >= 0).length")
        self.assertEqual(rows.count(), count)
        self.assertGreater(count, 40)
        page.locator("#filter").fill("layer3.0.bn3")
        self.assertLess(rows.count(), 10)
        self.assertGreater(rows.count(), 0)

    def test_each_chart_has_a_table(self) -> None:
        page = self.page("moved")
        for summary in page.locator(".panel details > summary").all():
            summary.click()
        charts = page.evaluate("charts.length")
        self.assertEqual(page.locator(".panel details .scroll table").count(), charts + 1)
        first = page.locator("#panel-stack details tbody tr").first.all_text_contents()
        self.assertIn("forward", first[0])

    def test_it_fits_and_axe_finds_nothing_serious(self) -> None:
        self.tmc("report", str(self.place / "tight"), str(self.place / "moved"), "-o", str(self.place / "two.html"))
        axe = None
        for package in ("axe_playwright_python", "axe_core_python"):
            if has(package):
                spec = importlib.util.find_spec(package)
                axe = (Path(spec.submodule_search_locations[0]) / "axe.min.js").read_text()  # type: ignore[index,union-attr]
        for name in ("tight", "moved", "two.html"):
            for width in (WIDE, PHONE):
                for scheme in SCHEMES:
                    with self.subTest(name=name, width=width, scheme=scheme):
                        page = self.page(name, width, scheme)
                        if name != "two.html":
                            page.locator("#decisions button.name").first.click()
                        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
                        page.wait_for_timeout(100)
                        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
                        # All of axe's rules on all of these take a minute and a half.
                        if axe and (width == PHONE) == (name == "moved"):
                            page.evaluate(axe)
                            found = page.evaluate("axe.run()")["violations"]
                            self.assertEqual([(v["id"], v["nodes"][0]["html"]) for v in found if v["impact"] in ("serious", "critical")], [])  # fmt: skip
        if not axe:
            self.skipTest("no axe_playwright_python or axe_core_python: the pages fit")

    def test_a_name_is_text(self) -> None:
        model = self.place / "<img src=x onerror=alert(1)>.onnx"
        shutil.copy(MODEL, model)
        self.compile("named", model, "--budget", "3MiB")
        page = self.page("named")
        self.assertEqual(page.locator("img").count(), 0)
        self.assertEqual(page.locator("h1").text_content(), model.stem)
        page.locator("#decisions button.name").first.click()
        self.assertEqual(page.locator("img").count(), 0)
