"""The command from Python: flags, plans, exceptions with numbers, progress, interruptions."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

from . import helpers
from .helpers import BATCH, MLP, TARGET, tmc
from tmc import _command, _install, errors


class FlagsTest(unittest.TestCase):
    def words(self, **given: object) -> "list[str]":
        return _command.words_of("compile", given, {"o": "it is the argument 'directory'"})

    def test_values(self) -> None:
        self.assertEqual(
            self.words(batch=8, micro_batches="auto", dim={"sequence": 4}, freeze=["a*", "b"], force=True, no_cache=False,
                       loss=None, weights=Path("w.safetensors"), MF="x.d"),
            ["--batch=8", "--micro-batches=auto", "--dim=sequence=4", "--freeze=a*", "--freeze=b", "--force",
             "--weights=w.safetensors", "-MF=x.d"])  # fmt: skip

    def test_a_typo_names_the_nearest_flag(self) -> None:
        with self.assertRaises(tmc.UsageError) as caught:
            self.words(micro_batch=2)
        self.assertEqual(caught.exception.notes, ("did you mean 'micro_batches'?",))
        self.assertEqual(caught.exception.code, 2)
        with self.assertRaisesRegex(tmc.UsageError, "the flags are .*budget"):
            self.words(zzzzzz=2)

    def test_wrong_values(self) -> None:
        for wrong in (
            {"force": 1},
            {"force": "yes"},
            {"batch": True},
            {"batch": object()},
            {"freeze": [None]},
            {"o": "x"},
        ):
            with self.subTest(wrong), self.assertRaises(tmc.UsageError):
                self.words(**wrong)

    def test_the_table_is_the_commands_own(self) -> None:
        names = set(_command.flags_of("compile"))
        self.assertLessEqual({"budget", "batch", "no-cache", "MD", "messages", "emit"}, names)
        self.assertNotIn("help", names)
        self.assertFalse(_command.flags_of("compile")["MD"].takes_value)
        self.assertTrue(_command.flags_of("plan")["batchnorm"].takes_value)

    def test_flags_of_the_package_are_refused(self) -> None:
        for wrong in ({"to": "plan"}, {"o": "x"}, {"emit": "source"}, {"messages": "text"}):
            with self.subTest(wrong), self.assertRaises(tmc.UsageError):
                tmc.compile(MLP, batch=BATCH, target=TARGET, **wrong)
        with self.assertRaisesRegex(tmc.UsageError, "report_html"):
            tmc.plan(MLP, report="x.html")


class PlanTest(unittest.TestCase):
    def test_keys_are_attributes(self) -> None:
        plan = tmc.plan(MLP, batch=BATCH, target=TARGET, budget="8MiB")
        self.assertEqual(plan.budget_bytes, 8 << 20)
        self.assertLessEqual(plan.arena_bytes, plan.budget_bytes)
        self.assertEqual(plan["arena_bytes"], plan.arena_bytes)
        self.assertEqual(plan.peak.launch, plan["peak"]["launch"])
        self.assertGreater(plan.peak_by_class.parameters, 0)
        self.assertIsNone(plan.library)
        self.assertIn("arena_bytes", dir(plan))
        with self.assertRaisesRegex(AttributeError, "a plan has no 'arena'"):
            plan.arena
        self.assertIn("of a budget of 8.00 MiB", str(plan))

    def test_a_page_for_notebooks(self) -> None:
        plan = tmc.plan(MLP, batch=BATCH, target=TARGET)
        page = plan._repr_html_()
        self.assertTrue(page.startswith("<iframe srcdoc="))
        inside = page.split('srcdoc="')[1].split('" title')[0]
        self.assertNotIn('"', inside)
        bare = tmc.Plan({"model": "<img src=x>", "peak": {"at": "a"}})._repr_html_()
        self.assertIn("&lt;img src=x&gt;", bare)
        self.assertNotIn("<img", bare)

    def test_a_budget_in_bytes(self) -> None:
        self.assertEqual(tmc.plan(MLP, batch=BATCH, target=TARGET, budget=6_000_000).budget_bytes, 6_000_000)

    def test_warnings_are_kept(self) -> None:
        plan = tmc.plan(MLP, target=TARGET)  # The batch is open.
        self.assertTrue(any("--batch" in text for text in plan.warnings), plan.warnings)


class ErrorsTest(unittest.TestCase):
    def test_a_budget_that_is_too_small(self) -> None:
        with self.assertRaises(tmc.BudgetError) as caught:
            tmc.plan(MLP, batch=BATCH, target=TARGET, budget="1MiB")
        error = caught.exception
        self.assertEqual((error.code, error.budget), (3, 1 << 20))
        assert error.smallest_found is not None and error.impossible_below is not None
        self.assertLessEqual(error.impossible_below, error.smallest_found)
        plan = tmc.plan(MLP, batch=BATCH, target=TARGET, budget=error.smallest_found)
        self.assertLessEqual(plan.arena_bytes, error.smallest_found)
        with self.assertRaises(tmc.BudgetError):
            tmc.plan(MLP, batch=BATCH, target=TARGET, budget=error.impossible_below - 1)

    def test_all_that_is_unsupported(self) -> None:
        with self.assertRaises(tmc.UnsupportedError) as caught:
            tmc.plan(helpers.ROOT / "examples" / "resnet-tiny.onnx", target=TARGET, micro_batches=2)
        self.assertEqual(caught.exception.code, 4)
        self.assertTrue(caught.exception.nodes)
        self.assertIn("bn1", caught.exception.nodes[0].name)

    def test_files_that_are_no_models(self) -> None:
        with self.assertRaisesRegex(tmc.BadInputError, "there is no file"):
            tmc.plan("nowhere.onnx")
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "-text.onnx")
            Path(path).write_text("no model")
            with self.assertRaisesRegex(tmc.BadInputError, "not an ONNX model"):
                tmc.plan(path)
            here = os.getcwd()
            os.chdir(place)
            self.addCleanup(os.chdir, here)
            with self.assertRaisesRegex(tmc.BadInputError, "not an ONNX model"):
                tmc.plan("-text.onnx")

    def test_usage_by_the_command(self) -> None:
        with self.assertRaises(tmc.UsageError):
            tmc.plan(MLP, budget="8XB")
        for budget in (1.5, True, [1]):
            with self.assertRaisesRegex(tmc.UsageError, "a budget is a number of bytes"):
                tmc.plan(MLP, budget=budget)  # type: ignore[arg-type]
        with self.assertRaises(tmc.UsageError):
            tmc.plan(MLP, {"image": 1})
        with self.assertRaises(tmc.UsageError):
            tmc.plan(object())

    def test_nothing_is_left_of_a_failure(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            target = os.path.join(place, "step")
            with self.assertRaises(tmc.BudgetError):
                tmc.compile(MLP, batch=BATCH, target=TARGET, budget="1MiB", directory=target)
            self.assertEqual(os.listdir(place), [])
            Path(target).mkdir()
            Path(target, "mine.txt").write_text("mine")
            with self.assertRaises(tmc.Error):
                tmc.compile(MLP, batch=BATCH, target=TARGET, directory=target)
            self.assertEqual(os.listdir(target), ["mine.txt"])

    def test_exceptions_by_code(self) -> None:
        for code, kind in (
            (1, ValueError),
            (2, TypeError),
            (3, tmc.BudgetError),
            (4, tmc.UnsupportedError),
            (70, tmc.DefectError),
            (74, OSError),
        ):
            error = errors.error_of_code(code, "text", ["note"])
            self.assertIsInstance(error, kind)
            self.assertIsInstance(error, tmc.Error)
            self.assertEqual((error.code, str(error)), (code, "text\nnote: note"))
        self.assertEqual(errors.error_of_code(5, "text").code, 70)

    def test_exceptions_travel(self) -> None:
        error = tmc.BudgetError("text", ["note"], budget=3, smallest_found=5, impossible_below=4)
        back = pickle.loads(pickle.dumps(error))
        self.assertEqual(
            (str(back), back.budget, back.smallest_found, back.impossible_below), (str(error), 3, 5, 4)
        )
        for code in (1, 2, 4, 70, 74):
            error = errors.error_of_code(code, "text", ["note"])
            self.assertEqual(str(pickle.loads(pickle.dumps(error))), str(error))

    def test_a_program_that_isnt_there(self) -> None:
        before = os.environ[_install.VARIABLE]
        self.addCleanup(os.environ.__setitem__, _install.VARIABLE, before)
        for wrong in ("/nowhere/tmc", str(helpers.ROOT / "README.md")):
            os.environ[_install.VARIABLE] = wrong
            with self.assertRaisesRegex(tmc.MachineError, "which is no program"):
                tmc.plan(MLP)
        del os.environ[_install.VARIABLE]
        path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        with tempfile.TemporaryDirectory() as place:
            script = Path(place) / "tmc"
            script.write_text("#!/bin/sh\nexit 0\n")  # As pip writes one for this package.
            script.chmod(0o755)
            os.environ["PATH"] = place
            if not (_install.NATIVE / "bin" / "tmc").exists():
                with self.assertRaisesRegex(tmc.MachineError, "the command tmc isn't there"):
                    _install.program()
            os.environ["PATH"] = os.pathsep.join([place, str(Path(before).parent)])
            self.assertEqual(_install.program(), Path(before).resolve())


class ProgressTest(unittest.TestCase):
    def test_phases_are_heard(self) -> None:
        heard: list[str] = []
        with tmc.compile(MLP, batch=BATCH, target=TARGET, progress=heard.append):
            pass
        self.assertTrue(any(text.startswith("plan") for text in heard), heard)
        self.assertIn("link ...", heard)

    def test_an_exception_of_the_callback_ends_the_command(self) -> None:
        class Enough(Exception):
            pass

        def stop(text: str) -> None:
            raise Enough(text)

        with tempfile.TemporaryDirectory() as place:
            with self.assertRaises(Enough):
                tmc.compile(
                    MLP, batch=BATCH, target=TARGET, directory=os.path.join(place, "step"), progress=stop
                )
            self.assertEqual(os.listdir(place), [])

    def test_an_interruption_leaves_nothing(self) -> None:
        # The program interrupts itself when the host's compiler is about to run. Only the
        # program gets the signal, as in a notebook.
        program = textwrap.dedent(
            """
            import os, signal, sys
            signal.signal(signal.SIGINT, signal.default_int_handler)  # A job in the background ignores it.
            sys.path.insert(0, sys.argv[1])
            import tmc
            def interrupt(text):
                if text.startswith("link"):
                    os.kill(os.getpid(), signal.SIGINT)
            try:
                tmc.compile(sys.argv[2], batch=32, target=sys.argv[3], no_cache=True, progress=interrupt, **eval(sys.argv[4]))
            except KeyboardInterrupt:
                sys.exit(7)
            """
        )
        for kept in (False, True):
            with tempfile.TemporaryDirectory() as place:
                more = {"directory": os.path.join(place, "step")} if kept else {}
                done = subprocess.run(
                    [
                        sys.executable,
                        "-c",
                        program,
                        str(helpers.ROOT / "python"),
                        str(MLP),
                        TARGET,
                        repr(more),
                    ],
                    env=dict(os.environ, TMPDIR=place),
                    stderr=subprocess.PIPE,
                )
                self.assertEqual(done.returncode, 7, done.stderr.decode())
                self.assertEqual(os.listdir(place), [])
                self.assertEqual(self.children_of(place), [])

    def test_a_signal_to_the_whole_group(self) -> None:
        # As Ctrl-C in a terminal.
        program = textwrap.dedent(
            """
            import os, signal, sys
            signal.signal(signal.SIGINT, signal.default_int_handler)  # A job in the background ignores it.
            sys.path.insert(0, sys.argv[1])
            import tmc
            tmc.compile(sys.argv[2], batch=32, target=sys.argv[3], no_cache=True,
                        progress=lambda text: text.startswith("link") and os.killpg(0, signal.SIGINT))
            """
        )
        with tempfile.TemporaryDirectory() as place:
            done = subprocess.run(
                [sys.executable, "-c", program, str(helpers.ROOT / "python"), str(MLP), TARGET],
                env=dict(os.environ, TMPDIR=place), stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
            self.assertEqual(done.returncode, -signal.SIGINT)
            self.assertIn(b"KeyboardInterrupt", done.stderr)
            self.assertEqual(os.listdir(place), [])

    @staticmethod
    def children_of(place: str) -> "list[str]":
        """Command lines of running processes that name `place`."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                text = path.read_bytes()
            except OSError:
                continue
            if place.encode() in text:
                found.append(text.decode(errors="replace"))
        return found
