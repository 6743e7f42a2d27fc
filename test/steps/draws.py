#!/usr/bin/env python3
"""What must hold of any budget with any levers, by random draws; needs only the standard library.

    draws.py --build build [--draws N] [--from N] [--seed S] [--minutes M] [--only SUBSTRING] [--jobs N] [--log FILE]
             [--table FILE] [--keep DIR] [--found] [--frozen]

A draw is a model, a batch, levers (micro-batches, precision, optimizer, rows of logits, tiles, what may
leave the device and to where), for some adapters and the storage of frozen parameters, and a budget, from below the smallest that is known to the unconstrained
need. tmc compile ends with 0 or 3, never otherwise. With 0 three steps touch no more than the budget,
and what was planned in each space, allocate nothing, and have the losses, gradient norms, parameters,
states and moments, bit for bit, of the step of the same levers that has no budget and moves nothing;
what `auto` chose is given to that one as a value. With 3 there is a smallest budget; the step compiled
with it is held to the same. A draw depends on the seed and its number alone. --log keeps a line of JSON
for each that passed; one that is in it isn't run again, so that a long run may be cut in pieces. --table writes
the counts of all as Markdown. --found adds those beyond N that have found a defect.
--frozen leaves the others out of N draws. Ends with one line
`N passed, M failed`.
"""

import collections
import json
import math
import os
import random
import re
import shlex
import shutil
import sys
import threading
import time

import trained
from case import Case, run_cases
from trained import ROOT, Run

DRAWS, SEED, STEPS = 10, 226, 3
# Draws that have found a defect.
FOUND = [254, 279, 317, 691, 776, 803, 950]
PAGE = os.sysconf("SC_PAGE_SIZE")
TEXT = ["--dim=sequence=8"]
# Of a graph's inputs: name, shape of a sample, kind (test/steps/models.py).
SENTENCES = [("input_ids", [8], "below 128"), ("labels", [8], "below 128"), ("attention_mask", [8], "mask")]
CLASSES = [SENTENCES[0], ("labels", [], "below 3"), SENTENCES[2]]


def picture(side, classes):
    return [("image", [3, side, side], "normal"), ("label", [], f"below {classes}")]


def model(graph, batches, options=(), inputs=(), norm=False, fixed=False, weight=1):
    """`norm`: its batch norms have to be told what to do with a split batch; `fixed`: its batch is given and whole;
    `weight`: how often it is drawn."""
    return dict(graph=graph, batches=batches, options=list(options), inputs=inputs, norm=norm, fixed=fixed, weight=weight)


MODELS = {
    "gpt2-tiny-dropout": model("test/models/gpt2-tiny-dropout.onnx", [3, 4], TEXT, weight=3),
    "gpt2-tiny-half": model("test/models/gpt2-tiny-half.onnx", [3], TEXT),
    "llama-tiny": model("test/models/llama-tiny.onnx", [3], TEXT),
    "decoder-opset23": model("test/models/decoder-opset23.onnx", [4], TEXT),
    "bert-tiny-mlm": model("test/models/bert-tiny-mlm.onnx", [3], TEXT, SENTENCES),
    "bert-tiny-classify": model("test/models/bert-tiny-classify.onnx", [4], TEXT, CLASSES),
    "vit-tiny.pt2": model("test/models/vit-tiny.pt2", [3], inputs=picture(32, 10)),
    "unet-tiny": model("test/models/unet-tiny.onnx", [2],
                       inputs=[(name, [3, 32, 32], "normal") for name in ("image", "target")]),
    "noted-tiny": model("test/models/noted-tiny.onnx", [6], inputs=[("cats", [2], "below 5"), ("label", [], "below 6")],
                        fixed=True, weight=3),
    # Compiled soonest.
    "mlp-small": model("test/models/mlp-small.onnx", [4, 7], inputs=[("image", [64], "normal"), ("label", [], "below 10")],
                       weight=6),
    "mlp": model("examples/mlp.onnx", [4, 16], inputs=[("image", [784], "normal"), ("label", [], "below 10")], weight=4),
    "resnet-tiny": model("examples/resnet-tiny.onnx", [4], inputs=picture(24, 8), norm=True),
}

CLIP = "clip=1.0"
PRECISIONS = ["f32", "f32", "bf16", "fp16", "fp8", "fp8:delayed", "fp8:block", "auto"]
OPTIMIZERS = ["adamw", f"adamw(weight_decay=0.1,{CLIP})", "adamw8bit", f"adamw8bit({CLIP})", "adamw4bit", f"adamw4bit({CLIP})",
              "lion", f"lion(weight_decay=0.1,{CLIP})", "adafactor", f"adafactor(weight_decay=0.1,{CLIP})",
              "sgd(momentum=0.9)", f"sgd(momentum=0.9,{CLIP})", f"adamw(master=none,moments=bf16,{CLIP})", "auto", f"auto({CLIP})"]
CHUNKS = [None, None, "all", "5", "16", "auto"]
TILES = [None, None, None, "3", "auto"]
OFFLOADS = ["none", "none", "none", "activations", "optimizer", "parameters", "optimizer,parameters", "all", "all", "auto"]
# Parameters that some draws freeze, and how those are stored.
FREEZES = {"gpt2-tiny-dropout": "*.h.*", "gpt2-tiny-half": "*.h.*", "llama-tiny": "*layers*", "bert-tiny-mlm": "*encoder*"}
BASES = ["nf4", "nf4:plain", "int8", "bf16"]
# Products that some of these draws give adapters.
TARGETS = {"gpt2-tiny-dropout": "c_attn,c_fc", "gpt2-tiny-half": "c_attn", "llama-tiny": "all-linear", "bert-tiny-mlm": "all-linear"}
ADAPTERS = ["r=2", "r=4,dropout=0.1", "r=3,alpha=8,rslora=true"]
# What `auto` leaves as it is costs most: the need of such a step is what budgets are shares of.
MILDEST = {"micro-batches": "1", "precision": "f32", "optimizer": "adamw", "loss-chunk": "auto", "tiles": "1",
            "base": "keep"}
SMALLEST = re.compile(r"the smallest budget for which a plan is known is [\d.]+ [KMGT]iB \((\d+) bytes\)")
IMPOSSIBLE = re.compile(r"no plan can exist below [\d.]+ [KMGT]iB \((\d+) bytes\)")
FITS, REFUSED, FAILED = OUTCOMES = "fits", "refused, the smallest works", "failed"


def is_free(value):
    return (value or "").startswith("auto")


class Draw(Case):
    def __init__(self, number, options, scratch):
        draw = random.Random(f"{options.seed}:{number}")
        self.kind = draw.choices(list(MODELS), [known["weight"] for known in MODELS.values()])[0]
        known = MODELS[self.kind]
        batch = draw.choice(known["batches"])
        pieces = draw.choice(["1", "1", "2", str(min(3, batch)), str(batch), "auto"]) if not known["fixed"] else "1"
        self.levers = {"micro-batches": pieces, "precision": draw.choice(PRECISIONS), "optimizer": draw.choice(OPTIMIZERS),
                       "loss-chunk": draw.choice(CHUNKS), "tiles": draw.choice(TILES)}
        self.offload = draw.choice(OFFLOADS)
        self.has_file = self.offload != "none" and draw.random() < 0.35
        self.host_share = draw.uniform(0.2, 1.2) if self.offload != "none" and draw.random() < 0.35 else None
        # Without moves a plan has to hold what lasts from step to step.
        self.share = draw.uniform(-0.1, 1) if self.offload == "none" else draw.uniform(0.1, 1)
        self.threads, self.poisons = draw.choice([1, 2]), draw.random() < 0.3
        norm = [f"--batchnorm={draw.choice(['per-micro-batch', 'frozen'])}"] if known["norm"] and pieces != "1" else []
        flags = [] if known["fixed"] else [f"--batch={batch}"]
        base = random.Random(f"{options.seed}:{number}:base")  # The other draws stay what they were.
        self.base_format = base.choice(BASES) if self.kind in FREEZES and base.random() < 0.5 else ""
        if self.levers["precision"].startswith("fp8"):
            self.base_format = ""  # Products of codes take no other codes.
        more = random.Random(f"{options.seed}:{number}:lora")
        self.lora = ""
        if self.base_format and more.random() < 0.3 and number not in FOUND:
            self.base_format = "auto"
        if self.kind in TARGETS and more.random() < 0.5 and number not in FOUND:
            self.lora = f"{more.choice(ADAPTERS)},targets={TARGETS[self.kind]}"
            flags.append(f"--lora={self.lora}")
        if self.base_format:
            self.levers["base"] = self.base_format
        if self.base_format and not self.lora:
            flags.append(f"--freeze={FREEZES[self.kind]}")
        case = dict(graph=known["graph"], options=flags + known["options"] + norm,
                    inputs={name: ([3 * batch, *shape], kind) for name, shape, kind in known["inputs"]})
        super().__init__(f"draw {number}", case, options, scratch)
        self.outcome, self.ratio, self.did = None, 0.0, collections.Counter()
        self.commands, self.batch, self.host_budget = [], batch, None

    def pinned(self, values):
        """The levers with these values of those that are free, asked for or not; a loss in the chunks that are taken unasked has
        no flag."""
        levers = {**self.levers, **values}
        return {name: value for name, value in levers.items() if (name, value) != ("loss-chunk", "auto")}

    def compile(self, name, levers, *flags):
        """(exit code, output) of a step's compilation."""
        command = [self.tmc, "compile", os.path.join(ROOT, self.model["graph"]), f"--target={self.options.target}",
                   *self.model["options"], *trained.EFFORT, *[f"--{lever}={value}" for lever, value in levers.items() if value],
                   *flags, "-o", os.path.join(self.directory, name)]
        begin = time.monotonic()
        code, text = trained.run(command)
        self.commands.append(f"{shlex.join(command)}  # {time.monotonic() - begin:.1f} s")
        return code, text

    def check(self, tally):
        if kept := self.options.kept.get(self.name):
            self.outcome, self.ratio, self.did = kept["outcome"], kept["ratio"], collections.Counter(kept["did"])
            return
        if time.monotonic() > self.options.until:
            return
        try:
            fault = self.fault()
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
        text = ", ".join([self.kind, f"batch {self.batch}", *[f"{n} {v}" for n, v in self.levers.items() if v],
                          f"offload {self.offload}", *([f"lora {self.lora}"] if self.lora else [])])
        if not fault:
            self.options.remember(self)
        if fault:
            self.outcome = FAILED
            fault += "\n" + "\n".join(self.commands)
        tally.test(f"{self.name}: {text}", fault, f"{self.outcome}, {self.ratio:.3f} of the budget touched" if self.ratio else "")
        if not self.options.keep and not fault:
            shutil.rmtree(self.directory, ignore_errors=True)

    def fault(self):
        free = any(is_free(value) for value in self.levers.values())
        mildest = {name: re.sub("^auto", MILDEST[name], value) for name, value in self.levers.items() if value}
        code, text = self.compile("stays", self.pinned(mildest), *(["--emit=plan"] if free else []))
        if code:
            return f"without a budget tmc compile ended with {code}\n{text}"
        self.base = None if free else "stays"
        plan = self.plan(os.path.join(self.directory, "stays"))
        need = plan["arena_bytes"]
        least = plan["smallest_found_bytes"] if self.offload == "none" else 0
        if self.host_share is not None:
            self.host_budget = int(self.host_share * need)
        # Whole pages, which are what is measured.
        budget = max(1, int(least + self.share * (need - least)) // PAGE) * PAGE
        code, text = self.planned(budget)
        if code == 0:
            self.outcome = FITS
            return self.steps_fault(budget)
        return self.refusal(budget, text) if code == 3 else f"tmc compile ended with {code}\n{text}"

    def planned(self, budget):
        flags = [f"--budget={budget}"]
        if self.offload != "none":
            flags.append(f"--offload={self.offload}")
        if self.host_budget is not None:
            flags.append(f"--host-budget={self.host_budget}")
        if self.has_file:
            swap = os.path.join(self.directory, "swap")
            os.makedirs(swap, exist_ok=True)
            flags.append(f"--nvme={swap}")
        return self.compile("step", self.levers, *flags)

    def refusal(self, budget, text):
        """What was refused says a smallest budget, which works."""
        least, bound = SMALLEST.search(text), IMPOSSIBLE.search(text)
        if not least:
            return f"no smallest budget is named\n{text}"
        smallest = int(least[1])
        if smallest <= budget or bound and int(bound[1]) > smallest:
            return f"{budget} bytes are refused\n{text}"
        code, text = self.planned(smallest)
        if code:
            return f"with the smallest budget, {smallest}, tmc compile ended with {code}\n{text}"
        self.outcome = REFUSED
        return self.steps_fault(smallest)

    def steps_fault(self, budget):
        """Three steps beside those of the same levers without a budget."""
        directory = os.path.join(self.directory, "step")
        plan = self.plan(directory)
        pinned = self.pinned({lever["lever"]: lever["value"] for lever in (plan["chosen_levers"] or {}).get("levers", [])})
        if any(is_free(value) for value in pinned.values()):
            return f"what was chosen is {plan['chosen_levers']}"
        if self.base is None:
            code, text = self.compile("base", pinned)
            if code:
                return f"with what was chosen tmc compile ended with {code}\n{text}"
            self.base = "base"
        base = os.path.join(self.directory, self.base)
        first = Run(base, "first", self.data, "--threads=1", steps=STEPS)
        threads = [f"--threads={self.threads}"] + ([f"--host-threads={self.threads}"] if plan["spaces"] else [])
        done = Run(directory, "draw", self.data, *threads, *(["--poison"] if self.poisons else []), steps=STEPS)
        return done.difference(first) or self.memory(done, directory) or self.over(done, plan, budget)

    def over(self, done, plan, budget):
        """What is touched is within the budgets, in each space."""
        if plan["budget_bytes"] != budget:
            return f"the plan says a budget of {plan['budget_bytes']} bytes, {budget} were given"
        touched = max(line["high_water_bytes"] for line in done.lines)
        if touched > -(-budget // PAGE) * PAGE:
            return f"{touched} bytes are touched, the budget is {budget}"
        # Of the last page what is beyond the arena isn't the step's.
        self.ratio = min(touched, plan["arena_bytes"]) / budget
        self.did["recomputes"] += (plan["recomputed_ops"] or 0) > 0
        self.did["splits the batch"] += plan["micro_batches"] > 1
        spaces = plan["spaces"]
        if not spaces:
            return ""
        host, file = spaces["host"]["arena_bytes"] or 0, spaces["file"]["arena_bytes"] or 0
        self.did["moves"] += any(spaces["moved_bytes"].values())
        self.did["writes a file"] += spaces["moved_bytes"]["file-write"] > 0
        self.did["updates on the host"] += spaces["host_updates"] > 0
        if self.host_budget is not None and host > self.host_budget:
            return f"the host's arena takes {host} bytes, its budget is {self.host_budget}"
        for line in done.lines:
            if line.get("host_arena_bytes", 0) != host or line.get("file_arena_bytes", 0) != file:
                return f"beside the device are {host} and {file} bytes planned; the log says {line}"
            if line.get("host_high_water_bytes", 0) > -(-host // PAGE) * PAGE:
                return f"{line['host_high_water_bytes']} bytes of the host's arena are touched, {host} were planned"
        return ""


def table(draws, options):
    """The outcomes, by model and by lever, as Markdown."""
    draws = [draw for draw in draws if draw.outcome]

    def rows(head, keys):
        counts = collections.defaultdict(collections.Counter)
        for draw in draws:
            counts[keys(draw)][draw.outcome] += 1
        yield f"| {head} | draws | {' | '.join(OUTCOMES)} |"
        yield "|---|" + "---:|" * (1 + len(OUTCOMES))
        for key in sorted(counts):
            yield f"| {key} | {sum(counts[key].values())} | {' | '.join(str(counts[key][o]) for o in OUTCOMES)} |"
        yield ""

    yield from ["# Draws", "", "Random models, levers and budgets (`test/steps/draws.py` says what is held), from", ""]
    yield from [f"    draws.py --draws {len(draws)} --seed {options.seed}", ""]
    total = collections.Counter(draw.outcome for draw in draws)
    worst = max((draw.ratio for draw in draws), default=0)
    yield f"{len(draws)} draws: " + ", ".join(f"{total[o]} {o}" for o in OUTCOMES) + "."
    plans = sum(bool(draw.did) for draw in draws)
    yield f"The most of a budget that a step touched is {worst:.4f}. Of {plans} plans:"
    did = sum((draw.did for draw in draws), collections.Counter())
    yield from ["", "| the step | plans |", "|---|---:|", *[f"| {what} | {count} |" for what, count in sorted(did.items())], ""]
    yield from rows("model", lambda draw: draw.kind)
    for lever in MILDEST:
        yield from rows(lever, lambda draw: f"`{draw.levers[lever]}`" if draw.levers[lever] else "not given")
    yield from rows("offload", lambda draw: f"`{draw.offload}`")
    yield from rows("beside the device", lambda draw: " and ".join(
        ["a file"] * draw.has_file + ["a host's budget"] * (draw.host_share is not None)) or "nothing said")
    yield from rows("threads", lambda draw: f"{draw.threads}{', dead buffers poisoned' if draw.poisons else ''}")


def add_options(parser):
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--from", type=int, default=0, dest="begin", help="the number of the first draw")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--minutes", type=float, help="begin no draw after so long")
    parser.add_argument("--found", action="store_true", help="also those that have found a defect")
    parser.add_argument("--frozen", action="store_true", help="only those with adapters or with frozen parameters in another form")
    parser.add_argument("--log", help="a file of draws that passed: read, and added to")
    parser.add_argument("--table", help="a Markdown file for the counts")


def cases(options, scratch):
    options.until = time.monotonic() + 60 * options.minutes if options.minutes else math.inf
    options.kept, lock = {}, threading.Lock()
    if options.log and os.path.exists(options.log):
        with open(options.log) as file:
            options.kept = {entry["draw"]: entry for entry in map(json.loads, file) if entry["seed"] == options.seed}

    def remember(draw):
        if options.log:
            with lock, open(options.log, "a") as file:
                print(json.dumps(dict(draw=draw.name, seed=options.seed, outcome=draw.outcome, ratio=draw.ratio, did=draw.did)), file=file)

    options.remember = remember
    end = options.begin + options.draws
    numbers = [*range(options.begin, end), *(number for number in FOUND if options.found and number >= end)]
    draws = (Draw(number, options, scratch) for number in numbers if options.only in f"draw {number}:")
    return [draw for draw in draws if not options.frozen or draw.lora or draw.base_format]


def write_table(options, draws):
    if options.table:
        with open(options.table, "w") as file:
            file.write("\n".join(table(draws, options)).rstrip() + "\n")


if __name__ == "__main__":
    sys.exit(run_cases(__doc__, "draws", cases, add_options, write_table))
