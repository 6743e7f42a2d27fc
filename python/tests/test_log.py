"""Logs as tables and event files."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

from . import helpers
from .helpers import needs, tmc
from tmc import log


class LogTest(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = Path(place.name)
        self.path = self.place / "run.jsonl"
        self.path.write_text(
            '{"step":1,"loss":2.5,"grad_norm":null,"seconds":0.5}\n{"step":2,"loss":2.25,"lr":0.001,"seconds":0.5}\n'
        )

    def table(self) -> "list[dict[str, str]]":
        out = io.StringIO()
        log.write_csv(self.path, out)
        return list(csv.DictReader(io.StringIO(out.getvalue())))

    def test_a_table(self) -> None:
        self.assertEqual(self.table(), [
            {"step": "1", "loss": "2.5", "grad_norm": "", "seconds": "0.5", "lr": ""},
            {"step": "2", "loss": "2.25", "grad_norm": "", "seconds": "0.5", "lr": "0.001"}])  # fmt: skip

    def test_a_line_that_is_being_written(self) -> None:
        with open(self.path, "a") as file:
            file.write('{"step":3,"lo')
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(len(self.table()), 2)
        self.assertIn("line 3", said.getvalue())

    def test_files_that_are_no_logs(self) -> None:
        for text in ("no log\n", "[]\n", "3\n", '{"a":1}\n{"b"\n{"c":1}\n', "[" * 100_000 + "\n"):
            self.path.write_text(text)
            with (
                self.assertRaisesRegex(tmc.BadInputError, "is no object of JSON"),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                self.table()
        with self.assertRaisesRegex(tmc.BadInputError, "can't read"):
            list(log.entries(self.place / "none"))
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(log.main([str(self.place / "none"), "--csv"]), 1)
            with self.assertRaises(SystemExit):
                log.main([str(self.path)])

    def test_the_checksum(self) -> None:
        # RFC 3720, B.4: 32 bytes of 0, and 0 to 31.
        for data, crc in (
            (bytes(32), 0x8A9136AA),
            (bytes(range(32)), 0x46DD794E),
            (b"123456789", 0xE3069283),
        ):
            masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
            self.assertEqual(log._masked_crc(data), masked)

    def test_records_frame_themselves(self) -> None:
        path = log.write_tensorboard(self.path, self.place / "events")
        text, count = path.read_bytes(), 0
        while text:
            (length,) = struct.unpack("<Q", text[:8])
            self.assertEqual(struct.unpack("<I", text[8:12])[0], log._masked_crc(text[:8]))
            data = text[12 : 12 + length]
            self.assertEqual(struct.unpack("<I", text[12 + length : 16 + length])[0], log._masked_crc(data))
            text, count = text[16 + length :], count + 1
        self.assertEqual(count, 3)
        self.assertEqual([p.name for p in (self.place / "events").iterdir()], [path.name])

    @needs("tensorboard")
    def test_tensorboard_reads_it(self) -> None:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        with open(self.path, "a") as file:
            file.write('{"step":3,"loss":1e300,"flag":true,"arena_bytes":123456789}\n')
        path = log.write_tensorboard(self.path, self.place / "events")
        events = EventAccumulator(str(path))
        events.Reload()
        self.assertEqual(sorted(events.Tags()["scalars"]), ["arena_bytes", "loss", "lr", "seconds"])
        self.assertEqual(
            [(e.step, e.value) for e in events.Scalars("loss")], [(1, 2.5), (2, 2.25), (3, float("inf"))]
        )
        times = [e.wall_time for e in events.Scalars("loss")]
        self.assertAlmostEqual(times[1] - times[0], 0.5, places=3)

    def test_the_log_of_a_trainer(self) -> None:
        step, data = self.place / "step", helpers.ROOT / "examples" / "data"
        helpers.compile_mlp(directory=step, emit="exe").close()
        command = [str(step / "train"), "--data", f"image={data}/digits-image.npy", "--data", f"label={data}/digits-label.npy", "--steps", "3",
                   "--init", "random:1", "--log", str(self.path), "--quiet"]  # fmt: skip
        subprocess.run(command, check=True)
        lines = [json.loads(line) for line in self.path.read_text().splitlines()]
        self.assertEqual([line["kind"] for line in lines], ["run", "step", "step", "step"])
        losses = [line["loss"] for line in lines[1:]]
        self.assertEqual([float(row["loss"]) for row in self.table()], losses)
        self.assertEqual(len(losses), 3)
        times = [line["time"] for line in lines]
        self.assertEqual(times, sorted(times))
        log.write_tensorboard(self.path, self.place / "events")

    def test_runs_and_checkpoints_are_no_rows(self) -> None:
        self.path.write_text('{"kind":"run","schema":2,"time":5}\n{"kind":"step","step":1,"loss":2.5,"time":6.5}\n'
                             '{"kind":"save","step":1,"path":"run","time":7}\n{"kind":"eval","step":1,"eval_loss":3.5,"time":8}\n')  # fmt: skip
        self.assertEqual([row["step"] for row in self.table()], ["1", "1"])
        self.assertEqual([row["eval_loss"] for row in self.table()], ["", "3.5"])

    @needs("wandb")
    def test_wandb_offline(self) -> None:
        import os

        os.environ["WANDB_MODE"] = "offline"
        os.environ["WANDB_DIR"] = str(self.place)
        log.write_wandb(self.path, "test")
