"""Writes generated documentation and counts words; the standard library only.

    python3 tools/docs.py --build build --out build/docs       ninja docs
    python3 tools/docs.py --build build --commands > docs/commands.md
    python3 tools/docs.py --words

The first writes the reference of ops and passes. ops.md and passes.md are the
output of mlir-tblgen for the records. Where a record has no example of its own,
one is taken from tested or running IR: an op's from its case in
test/unit/dialects/cases, or from the step of EXAMPLE on its way through the
passes; a pass's from the IR before and after it there. So examples can't go
stale. It fails where a record has no summary, or where no example is found.

--commands prints docs/commands.md from the help that the built tools print.

--words prints the mean sentence length of README.md, of each page of docs/ and
of all pages of docs/ together. It counts sentences of prose:

- Code blocks (fenced, or indented by four spaces behind an empty line),
  headings, tables and pictures don't count.
- A paragraph is prose, and so is an item of a list without its marker. The end
  of either ends a sentence, with or without a full stop.
- Inside of a paragraph a sentence ends at a full stop, a question mark or an
  exclamation mark before a space. Colons and semicolons end no sentence, and
  neither do the full stops of abbreviations ("e.g.", "et al.") and of "...".
- A code span is one word. Of a link only the text counts. A word has at least
  one letter or digit.
- docs/commands.md is generated, and doesn't count.

It also lists sentences that begin with a word of BEGINNINGS, which hide their
subject.
"""

import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TBLGEN = "/usr/lib/llvm-22/bin/mlir-tblgen"
EXAMPLE = "test/passes/autodiff/doctest.mlir"
SLICE = "test/passes/copy-views/doctest.mlir"
# The way of EXAMPLE: the pass that is shown, if one is, and what runs.
WAY = [
    ("tmc-autodiff", ["-tmc-autodiff=optimizer=sgd(momentum=0.9)",
                      "-canonicalize"]),
    (None, ["-tmc-expand-composites", "-tmc-fold-into-kernels",
            "-canonicalize", "-tmc-fuse"]),
    ("tmc-plan", ["-pass-pipeline=builtin.module(train.step(tmc-plan{"
                  "budget=-1}))"]),
    ("tmc-lower", ["-tmc-lower"]),
    ("tmc-place", ["-pass-pipeline=builtin.module(mem.program(tmc-place))"]),
]
WIDTH = 110  # of a line of an example
# Generated, and so no page whose sentences somebody writes.
COMMANDS = "docs/commands.md"
BEGINNINGS = ("What", "Who", "Whose", "Whoever", "Of")
ABBREVIATIONS = ("e.g.", "i.e.", "et al.", "vs.", "cf.")


def run(command, text=None):
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, cwd=ROOT)
    if done.returncode != 0:
        sys.exit("docs: %s failed:\n%s" % (" ".join(command), done.stderr))
    return done.stdout


def without_comments(path):
    with open(os.path.join(ROOT, path)) as file:
        return "".join(line for line in file
                       if not line.lstrip().startswith("//"))


def shown(ir):
    """IR for people: no module around it, long lines cut."""
    lines = [line for line in ir.strip().splitlines() if line]
    if lines and lines[0].startswith("module"):
        lines = [line[2:] for line in lines[1:-1]]
    return "\n".join(line if len(line) <= WIDTH else line[:WIDTH - 4] + " ..."
                     for line in lines)


def block(text):
    return "```mlir\n%s\n```\n" % text


def example_of(op, texts):
    """The shortest statement of `op` in `texts`; a region is cut out."""
    found = []
    for text in texts:
        for line in text.splitlines():
            code = line.split("//")[0].strip()
            if re.search(r"(^|[ =])%s[ (]" % re.escape(op), code):
                found.append(code)
    if not found:
        return None
    best = min(found, key=len)
    best += " ... }" if best.endswith("{") else ""
    return textwrap.fill(best, WIDTH, subsequent_indent="    ",
                         break_long_words=False, break_on_hyphens=False)


class Steps:
    """EXAMPLE before and after each pass, and ops of a step with a loop."""

    def __init__(self, build):
        opt = os.path.join(build, "bin", "tmc-opt")
        self.ways, ir = {}, without_comments(EXAMPLE)
        self.texts = [ir]
        for name, flags in WAY:
            after = run([opt, *flags], ir)
            if name:
                self.ways[name] = (ir, after)
            ir = after
            self.texts.append(ir)
        before = self.ways["tmc-autodiff"][1]
        self.ways["tmc-precision"] = (before, run([
            opt, "-pass-pipeline=builtin.module(train.step(tmc-precision{"
            "spec=bf16}))"], before))
        before = without_comments(SLICE)
        self.ways["tmc-copy-views"] = (before,
                                       run([opt, "-tmc-copy-views"], before))
        tmc = os.path.join(build, "bin", "tmc")
        for phase, rule, scale in (("autodiff", "adamw(clip=1.0)", "none"),
                                   ("autodiff", "adamw8bit", "dynamic"),
                                   ("autodiff", "adamw4bit", "none"),
                                   ("autodiff", "adafactor", "none"),
                                   ("autodiff", "lion", "none"),
                                   ("place", "adamw(clip=1.0)", "none")):
            self.texts.append(run([
                tmc, "compile", "test/models/gpt2-tiny.onnx", "--batch", "4",
                "--dim", "sequence=8", "--target", "cpu", "--micro-batches",
                "2", "--optimizer", rule, "--loss-scale", scale, "--to",
                phase]))
        for pattern in ("test/unit/dialects/cases/*.mlir",
                        "test/dialects/mem/*.mlir",
                        "test/dialects/train/moves.mlir"):
            for path in sorted(glob.glob(os.path.join(ROOT, pattern))):
                self.texts.append(without_comments(path))


def sections(text, pattern):
    """The text before the first heading, then each heading with its text."""
    parts = re.split(r"^(?=%s)" % pattern, text, flags=re.M)
    return parts[0], parts[1:]


def ops(steps, lacking):
    out = ""
    for dialect, record in (("nn", "nn/NN"), ("train", "train/Train"),
                            ("mem", "mem/Mem")):
        text = run([TBLGEN, "-gen-dialect-doc", "-dialect=" + dialect, "-I", ".",
                    "-I", "/usr/lib/llvm-22/include",
                    "dialects/%s.td" % record])
        text = re.sub(r"<!-- Autogenerated.*?-->\n+", "", text)
        head, parts = sections(text.replace("[TOC]\n\n", ""), "### `")
        out += head
        for part in parts:
            name = re.match(r"### `([\w.]+)`", part)
            if not name:
                out += part
                continue
            name = name.group(1)
            if not re.search(r"\n\n_[^\n]+_\n", part):
                lacking.append(name + " has no summary")
            if "```mlir" not in part and "." in name:
                example = example_of(name, steps.texts)
                if not example:
                    lacking.append(name + " has no example")
                else:
                    at = re.search(r"^(Traits:|Interfaces:|#### )", part, re.M)
                    at = at.start() if at else len(part)
                    part = (part[:at] + "Example:\n\n" + block(example) + "\n" +
                            part[at:])
            out += part
    return out


def passes(steps, lacking):
    text = run([TBLGEN, "-gen-pass-doc", "-I", ".", "-I",
                "/usr/lib/llvm-22/include", "passes/Passes.td"])
    text = re.sub(r"<!-- Autogenerated.*?-->\n+", "", text)
    head, parts = sections(text, "### `-")
    out = "# Passes\n\n" + head
    for part in parts:
        name = re.match(r"### `-([\w-]+)`", part).group(1)
        checks = name.startswith("tmc-verify-")  # They leave all as it is.
        if not checks and not ("Before" in part and "After" in part):
            if name not in steps.ways:
                lacking.append(name + " shows nothing before and after it")
            else:
                before, after = steps.ways[name]
                at = part.find("#### Options")
                at = at if at >= 0 else len(part)
                part = (part[:at].rstrip() + "\n\nBefore:\n\n" +
                        block(shown(before)) +
                        "\nAfter:\n\n" + block(shown(after)) + "\n" + part[at:])
        out += part
    return out


PREFACE = """<!-- Written by tools/docs.py --commands; test/docs/commands.test compares. -->
# Commands

This page holds the help of each command as the command prints it.
`python3 tools/docs.py --build build --commands > docs/commands.md` writes it from a built tree.

- A flag takes its value as `--flag VALUE` or `--flag=VALUE`. A flag that occurs several times in one call
  (`--dim`, `--freeze`, `--keep-output`, `--data`) adds a value each time.
- SIZE is a number of bytes, or a number with KiB, MiB, GiB, TiB (binary) or KB, MB, GB, TB (decimal).
  Fractions are allowed. A letter alone is binary: 12G is 12GiB, and a note says so.
- `TARGET` in this page is the default target of the installation: `cuda:sm_90`, or the card of this machine, where cmake found a CUDA
  toolkit, else `cpu`.
- Standard output has data alone. Messages and progress go to standard error.
- With `--messages=json` each message is one JSON object on one line. It has a `kind` (`error`, `warning`, `note`,
  `progress` or `summary`) and a `message`. An error also has the exit `code`, its `notes`, its `numbers` by name
  (bytes end in `_bytes`) and the unsupported `nodes`, each with `op`, `name`, `line` and `reason`. An error is
  the last line.

## Flags from a file

`--config FILE.toml` gives flags to `tmc compile`, `plan` and `explain` from the table `[compile]`, and to a trainer
from `[train]`. A key is the name of a flag, and `model` is the model. A flag on the command line wins.

```toml
[compile]
model = "gpt2-124m.onnx"
target = "cuda:rtx3060"
budget = "12GiB"
dim = ["sequence=1024"]      # a flag that may occur several times

[train]
data = ["train-*.bin"]
steps = 2000
lr = 3e-4
quiet = true                 # a flag without a value
```

Paths are as on the command line. `tmc compile` writes `DIR/config.toml` with the flags of its call, and
`tmc compile --config DIR/config.toml` makes the same step again. A table has strings of one line, decimal numbers,
booleans and arrays of strings and numbers; other parts of TOML are refused.

## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | the input is at fault |
| 2 | usage |
| 3 | the budget isn't met |
| 4 | something is unsupported; the message lists all of it |
| 70 | a defect of tmc; tmc names a file that shows it again |
| 74 | the world is at fault: no compiler, a full disk, not enough memory |
"""
# The pages that say more of a command.
SEE = {
    "compile": "[runtime.md](runtime.md) describes the directory that it writes.",
    "plan": "[reports.md](reports.md) explains the table.",
    "explain": "[reports.md](reports.md#why-a-tensor-was-kept-or-recomputed) explains the answer.",
    "report": "[reports.md](reports.md#two-plans-and-a-measured-step) shows the output.",
    "verify": "The reference is the interpreter in `compiler/reference`, which computes in double.",
    "doctor": "",
    "calibrate": "[targets.md](targets.md#measuring) describes the measurement and the file.",
    "merge": "[runtime.md](runtime.md#merging-an-adapter) has the formats, and the cases that it refuses.",
}
SOLVE = "The planners on problems in files ([planning.md](planning.md))."
TRAIN = ("`tmc compile` writes the trainer into its directory ([runtime.md](runtime.md)). Where the plan has a\n"
         "file, the line of `--nvme` also has the directory that `tmc compile` was given.")
OTHERS = """## tmc-opt and tmc-import

`tmc-opt` runs passes over textual IR, and `tmc-import` prints the module that a frontend makes of a model.
Both are tools for developers. `ninja -C build docs` writes the reference of the passes with their options
to `build/docs/passes.md`. `tmc-import --operators` and `tmc-import --torch-operators` list the operators
that are read.
"""


def commands(build):
    """docs/commands.md: what the tools of this build say of themselves."""
    def section(name, see, text):
        return "\n## %s\n\n%s```text\n%s\n```\n" % (
            name, see + "\n\n" if see else "", re.sub(r" +$", "", text.strip(), flags=re.M))

    tmc = os.path.join(build, "bin", "tmc")
    default = re.search(r"default target: ([\w:]+)", run([tmc, "--version"])).group(1)
    overview = run([tmc, "--help"])
    out = PREFACE + section("tmc", "", overview)
    named = re.findall(r"^  tmc (\w+)", overview, re.M)
    if named != list(SEE):
        sys.exit("docs: the commands are %s; SEE has %s" % (named, list(SEE)))
    for name in named:
        text = run([tmc, name, "--help"]).replace("... (default: %s)" % default, "... (default: TARGET)")
        out += section("tmc " + name, SEE[name], text)
    with tempfile.TemporaryDirectory() as place:
        step = os.path.join(place, "step")
        run([tmc, "compile", "examples/mlp.onnx", "--target", "cpu", "-o", step])
        done = subprocess.run(["DIR/train", "--help"], executable=os.path.join(step, "train"),
                              stdout=subprocess.PIPE, text=True, check=True)
    out += section("DIR/train", TRAIN, done.stdout)
    out += section("tmc-solve", SOLVE, run([os.path.join(build, "bin", "tmc-solve"), "--help"]))
    return out + "\n" + OTHERS


def paragraphs(text):
    """The prose of a page: its paragraphs and items of lists, each as one line."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    parts, code, empty = [[]], False, True
    for line in text.splitlines():
        bare = line.strip()
        # An indented block begins behind an empty line and ends at one that isn't indented.
        code = bool(bare) and line.startswith("    ") and (empty or code)
        empty = not bare
        if code or not bare or bare.startswith(("|", "#", "![", "<")):
            parts.append([])
            continue
        item = re.match(r"([-*+]|\d+\.) +(.*)", bare)
        if item:
            parts.append([item.group(2)])
        else:
            parts[-1].append(bare)
    return [" ".join(part) for part in parts if part]


def sentences(text):
    """The sentences of a page, as the docstring above says."""
    found = []
    for part in paragraphs(text):
        part = re.sub(r"``.+?``|`[^`]+`", "code", part)
        part = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", part)
        part = part.replace("*", "").replace("...", "")
        for short in ABBREVIATIONS:
            part = part.replace(short, short.replace(".", ""))
        for each in re.split(r"(?<=[.!?])[)\"]? +|(?<=[.!?][)\"]) +", part):
            if re.search(r"\w", each):
                found.append(each.strip())
    return found


def count(sentence):
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())


def pages():
    """README.md, then the pages of docs/ that are written by hand."""
    under = glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True)
    names = sorted(os.path.relpath(path, ROOT) for path in under)
    return ["README.md"] + [name for name in names if name != COMMANDS]


def sentences_of(names):
    found = []
    for name in names:
        with open(os.path.join(ROOT, name)) as file:
            found += sentences(file.read())
    return found


def mean_words(names):
    """The mean number of words in the sentences of these pages."""
    found = sentences_of(names)
    return sum(map(count, found)) / max(1, len(found))


def anchors(text):
    """The names by which links reach the headings of a page."""
    heads = re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def broken_links():
    """Links of README.md, docs/ and bench/README.md to files or headings that aren't there."""
    bad = []
    for name in pages() + [COMMANDS, "bench/README.md"]:
        with open(os.path.join(ROOT, name)) as file:
            text = re.sub(r"^```.*?^```$|^    .*$", "", file.read(), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)]+)\)", text):
            path, _, head = target.partition("#")
            full = os.path.join(ROOT, os.path.dirname(name), path) if path else os.path.join(ROOT, name)
            found = os.path.exists(full)
            if found and head:
                with open(full) as file:
                    found = head in anchors(file.read())
            if not found:
                bad.append("%s: %s" % (name, target))
    return bad


def print_words():
    names = pages()
    for name in names:
        print("%5.1f words in each of %4d sentences  %s" %
              (mean_words([name]), len(sentences_of([name])), name))
    print("%5.1f words in each of %4d sentences  docs/ together" %
          (mean_words(names[1:]), len(sentences_of(names[1:]))))
    for name in names:
        for each in sentences_of([name]):
            if each.split()[0] in BEGINNINGS:
                print("%s: begins with '%s': %s" % (name, each.split()[0], each))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--out")
    parser.add_argument("--commands", action="store_true")
    parser.add_argument("--words", action="store_true")
    args = parser.parse_args()
    if args.words:
        return print_words()
    if args.commands:
        return print(commands(os.path.abspath(args.build)), end="")
    if not args.out:
        parser.error("--out, --commands or --words is missing")
    steps, lacking = Steps(os.path.abspath(args.build)), []
    os.makedirs(args.out, exist_ok=True)
    for name, text in (("ops.md", ops(steps, lacking)),
                       ("passes.md", passes(steps, lacking))):
        with open(os.path.join(args.out, name), "w") as file:
            file.write(text.rstrip() + "\n")
    if lacking:
        sys.exit("docs: " + "; ".join(lacking))


if __name__ == "__main__":
    main()
