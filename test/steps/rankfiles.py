"""Files that several ranks write together."""

import os
import resource
import signal
import time

from case import Case
from trained import Checkpoint, Run
from worlds import RankRun, Ranks, libraries

FILE = "checkpoint.safetensors"
WORLD = 74
DISK = 100000  # Bytes that a file may have on a full disk: less than a checkpoint.
KILLS = 8
# The steps whose checkpoints each of them goes on from. A budget moves shards to the host, and one of the host to a file.
STEPS = {"one device": (1, []),
         "2 ranks, zero=0": (2, ["--parallel=dp=2,zero=0"]),
         "2 ranks, zero=3": (2, ["--parallel=dp=2,zero=3"]),
         "2 ranks, zero=3, host": (2, ["--parallel=dp=2,zero=3", "--offload=all", "--budget=1100KiB"]),
         "2 ranks, zero=3, file": (2, ["--parallel=dp=2,zero=3", "--offload=all", "--budget=1100KiB", "--host-budget=100KiB"]),
         "4 ranks, zero=0": (4, ["--parallel=dp=4,zero=0"]),
         "4 ranks, zero=3": (4, ["--parallel=dp=4,zero=3"])}


def bytes_of(directory):
    with open(os.path.join(directory, FILE), "rb") as file:
        return file.read()


def limit_files():
    """The full disk that any user can make."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (DISK, DISK))


class RankFiles(Case):
    def check(self, tally):
        steps = {}
        for name, (ranks, flags) in STEPS.items():
            if "file" in name:
                flags = [*flags, f"--nvme={self.directory}"]
            steps[name], fault = self.compile(name, *flags)
            if fault:
                return tally.test(f"saved files: {name}", fault)
        for name, space in ("2 ranks, zero=3, host", "host"), ("2 ranks, zero=3, file", "file"):
            if self.plan(steps[name])["spaces"][space]["arena_bytes"] == 0:
                return tally.test(f"saved files: {name}", f"nothing is in the {space}")
        if "gloo" not in libraries(steps["2 ranks, zero=3"]):
            return tally.skip("saved files: there is no Gloo")
        self.check_meshes(tally, steps)
        step = steps["2 ranks, zero=3"]
        self.check_folders(tally, step)
        self.check_disks(tally, step)
        self.check_kills(tally, step)

    def check_meshes(self, tally, steps):
        """Any mesh resumes any other's checkpoint, and saves the same bytes."""
        for name in steps:
            first = self.train_on(steps, name, "first", steps=3)
            fault = first.text if first.code else ""
            for other in steps:
                if fault:
                    break
                again = self.train_on(steps, other, "again", f"--resume={first.directory}", steps=0, init=False)
                fault = f"{other}: {again.text}" if again.code else ""
                if not fault and bytes_of(again.directory) != bytes_of(first.directory):
                    fault = f"{other} saves other bytes: {again.checkpoint.difference(first.checkpoint)}"
                if not fault and sorted(os.listdir(again.directory)) != [FILE, "log.jsonl"]:
                    fault = f"{other} leaves {os.listdir(again.directory)}"
            tally.test(f"saved files: {len(steps)} meshes save the bytes of {name}", fault)

    def train_on(self, made, name, *args, **kwargs):
        ranks = STEPS[name][0]
        if ranks == 1:
            return Run(made[name], args[0], self.data, *args[1:], **kwargs)
        return RankRun("gloo", ranks, made[name], args[0], self.data, *args[1:], **kwargs)

    def train(self, step, *flags):
        return [os.path.join(step, "train"), *[f"--data={d}" for d in self.data], "--init=random:1", "--quiet", "--network=gloo", *flags]

    def check_folders(self, tally, step):
        """Ranks without a folder in common: what rank 1 may write is too little for its shards, and it writes none."""
        places = [os.path.join(self.directory, place) for place in ("here", "there", "shared")]
        for place in places:
            os.makedirs(place)
        train = self.train(step, "--steps=2", "--save=run", "--save-weights")
        code, texts = Ranks([train] * 2, [{"cwd": places[0]}, {"cwd": places[1], "preexec_fn": limit_files}]).wait()
        shared, its = Ranks([train] * 2, [{"cwd": places[2]}] * 2).wait()
        fault = f"{code}, {shared}: {texts} {its}" if code or shared else ""
        for name in (FILE, "model.safetensors"):
            if not fault and Checkpoint(os.path.join(places[0], "run"), name).difference(Checkpoint(os.path.join(places[2], "run"), name)):
                fault = f"{name} has other bytes than in one folder"
        if not fault and os.listdir(places[1]):
            fault = f"rank 1 has written {os.listdir(places[1])}"
        tally.test("saved files: ranks without a folder in common save by rank 0", fault)

    def check_disks(self, tally, step):
        """A full disk of one rank or of all ends all, and the checkpoint of before stays."""
        for name, full in ("rank 1", [1]), ("rank 0", [0]), ("both ranks", [0, 1]):
            saved = os.path.join(self.directory, f"full {name}")
            code, texts = Ranks([self.train(step, "--steps=1", f"--save={saved}")] * 2).wait()
            before = bytes_of(saved) if not code else b""
            begin = time.monotonic()
            each = [{"preexec_fn": limit_files} if rank in full else {} for rank in (0, 1)]
            full_code, full_texts = Ranks([self.train(step, "--steps=2", f"--save={saved}")] * 2, each).wait(60)
            seconds = time.monotonic() - begin
            words = f"can't write '{saved}/{FILE}': File too large; what was saved there before is untouched"
            culprit = full[0]
            is_named = full_texts[culprit].strip() == f"error: {words}"
            is_told = full_texts[1 - culprit].startswith(f"error: rank {culprit} (host ") and f"ended: {words}" in full_texts[1 - culprit]
            fault = f"{code}: {texts}" if code else ""
            if not fault and (full_code != WORLD or not is_named or not is_told or any(text.count("error") != 1 for text in full_texts)):
                fault = f"{full_code}: {full_texts}"
            if not fault and (bytes_of(saved) != before or os.listdir(saved) != [FILE]):
                fault = f"the folder has {os.listdir(saved)}"
            tally.test(f"saved files: a full disk of {name} ends all", fault, f"{seconds:.1f} s")

    def check_kills(self, tally, step):
        """A rank is killed while almost all of the time goes to saving."""
        saved, fault = os.path.join(self.directory, "killed"), ""
        for kill in range(KILLS):
            ranks = Ranks([self.train(step, "--steps=100000", "--save-every=1", f"--save={saved}", f"--resume-if-there={saved}")] * 2)
            deadline = time.monotonic() + 60
            while not os.path.exists(os.path.join(saved, FILE)) and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(0.4 + 0.017 * kill)
            ranks.processes[kill % 2].send_signal(signal.SIGKILL)
            code, texts = ranks.wait(60)
            if ranks.processes[1 - kill % 2].returncode != WORLD:
                fault = f"{code}: {texts}"
        # Its checksum is right, and what the killed ones left goes.
        goes_on = [word for word in self.train(step, "--steps=0", f"--save={saved}", f"--resume={saved}") if not word.startswith("--init")]
        code, texts = Ranks([goes_on] * 2).wait()
        fault = fault or (f"{code}: {texts}" if code else "")
        if not fault and os.listdir(saved) != [FILE]:
            fault = f"the folder has {os.listdir(saved)}"
        tally.test(f"saved files: {KILLS} kills in saves leave a whole checkpoint", fault)
