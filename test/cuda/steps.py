#!/usr/bin/env python3
"""Run emitted CUDA steps in the emulator and compare them with PyTorch and with themselves.

    steps.py --tmc TMC --library LIB [--cxx g++] [--only SUBSTRING] [--seeds N] [--full]

Each model of test/golden is compiled for cuda with all memory, and those of TIGHT once more with
a budget a hundredth of the way up from the smallest workable one. One step with
plain SGD gives every gradient (test/golden/check.py says how), and does the work that its plan says: as many
launches, as many products off 16 bytes. Each run is watched: a fault that
the emulator finds ends it. The gradients are PyTorch's; and the parameters after the step have
the same bits under both budgets and under every seed. Runs with seed 0 evaluate the batch before each step: they have the
step's loss, and change no bit. Of a model with both budgets each one runs with a seed
of its own. Two more steps follow from the first parameters. Every other run queues them as graphs: checkpoints
have the same bits with graphs and without.

Those of NARROW are compiled in TF32, 16 and 8 bits, too. What such a step is worth the interpreter says, which
rounds at the same points (`tmc verify`); bits are compared as those of the others. It isn't asked of those
of UNDECIDED: delayed scales follow the largest number of a tensor, and where attention in bf16 rounds that
one to its neighbour, all codes differ. One step has its frozen parameters in codes. In one cuDNN computes
attention, by its stand-in, unless TMC was built without cuDNN's frontend.

Those of COPIES are trained in both forms of a step in 16 bits: updates keep the copies that products
read, or casts make them. Checkpoints after COPY_STEPS steps are the same to the byte, also with a tight
budget and where each form goes on from what the other saved; the copies are the parameters, rounded. In
fp16 the first step overflows and is skipped.

Those of MOVED are trained with AdamW where parameters and moments leave the device and come back: their
checkpoints after MOVED_STEPS steps are those of the step that moves nothing, under each seed, and where each
goes on from what the other saved. In one case they go on to a file.

Those of ALGORITHMS are compiled with a table that names one algorithm of the stand-in for each of their
products: all products take it, with all memory and with a tight budget, and the bits are the same. With a table
of another version of the library the bits are those of the step without one.

From its second step on a run queues its steps as graphs, unless threads of the host take part. Each of COPIES and
MOVED also runs without: its checkpoint has the same bits.

Those of SPLIT are compiled in micro-batches, too, of which the last may be smaller, or in tiles, or whose
losses are taken in chunks: their gradients are PyTorch's of the whole batch.

With --full those of FULL_ONLY are checked, too, all models are also compiled with a tight budget, those of
COPIES in micro-batches, and there are six seeds in place of two, with a tight budget one more. As many models are checked at once as there
are processors. Ends with one line `N passed, M failed`. Needs only the standard library.
"""

import argparse
import array
import concurrent.futures
import ctypes
import glob
import hashlib
import json
import math
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
GOLDEN = os.path.join(ROOT, "test", "golden")
sys.path.insert(0, GOLDEN)

TIGHT = ["mlp-small", "gpt2-tiny", "gpt2-tiny, bf16", "gpt2-tiny, fp8:delayed", "resnet-tiny", "unet-tiny"]
NARROW = {"gpt2-tiny": ["tf32", "bf16", "fp16", "fp8:delayed", "fp8:block", "bf16 --freeze=*.h.* --base=nf4,*c_fc*=int8",
                        "bf16 --attention=cudnn"],
          "llama-tiny": ["bf16"],
          "mlp-small": ["fp8", "fp8:block", "fp8:delayed"], "unet-tiny": ["bf16"]}
UNDECIDED = ["gpt2-tiny, fp8:delayed"]  # By the interpreter.
COPIES = {"gpt2-tiny": ["bf16", "fp16"], "llama-tiny": ["bf16"]}
COPY_STEPS = 4
GRAPH_STEPS = 3  # The first one has no graph.
MOVED_STEPS = 2  # The second one fetches what the first one has moved.
# Flags, and whether there is a file because the host has less room than the plan without one takes.
MOVED = {"gpt2-tiny": [("", False), ("--micro-batches=2", False), ("", True)]}
HOST_SHARE = 0.6
ALGORITHMS = {"gpt2-tiny": ["bf16"]}
# An algorithm of emulator/CublasLtAlgorithm.h, and its way there.
BLOCKS, BLOCKS_WAY, WAYS = dict(id=11, tile=15, stages=6, splitK=1, reduction=0, swizzle=0, custom=2, innerShape=5, clusterShape=7), 2, 3
LIBRARY = 130100  # The stand-in's version.
SPLIT = {"mlp-small": ["--micro-batches=3"], "gpt2-tiny": ["--micro-batches=2 --loss-chunk=24", "--tiles=3"]}
SCALER = "dynamic(start=4294967296,growth=2,backoff=0.0000152587890625,interval=2)"  # 2^32 overflows, 2^16 doesn't.
SEEDS, FULL_SEEDS = 2, 6
WATCHED = ["-DTMC_CUDA_EMULATED", "-Dtmc_step_program=tmc_step_program_emitted", "-fsanitize=thread",
           "--param=tsan-instrument-func-entry-exit=0", "-fsanitize=alignment,bounds"]
# Read before each step, and precompiled; a step names those of the runtime again.
HEADERS = ["test/cuda/emulator/Emulator.h", "runtime/cuda/Fused.h", "runtime/kernels/Kernels.h", "runtime/step/Program.h"]
FLAGS = ["-std=c++20", "-O1", "-g1", "-fPIC", "-march=x86-64-v3", "-ffp-contract=off", "-fno-tree-sra", "-w",
         "-I", ROOT, "-isystem", os.path.join(HERE, "emulator", "include")]


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


class Work:
    """What the card does from here on, by the emulator's counts."""
    COUNTS = {"device_launches": "tmc_emulator_kernels", "unaligned_products": "tmc_emulator_unaligned_products"}
    BESIDE = {"device_launches": 1}  # At the end of a step: it gathers what the host reads.

    def __init__(self, step):
        self.counts = {key: getattr(step.api, name) for key, name in self.COUNTS.items()}
        for count in self.counts.values():
            count.restype = ctypes.c_int64
        self.before = {key: count() for key, count in self.counts.items()}

    def compare(self, directory):
        """Prints each count that isn't the plan's; returns how many."""
        with open(os.path.join(directory, "plan.json")) as file:
            plan = json.load(file)
        bad = 0
        for key, count in self.counts.items():
            made = count() - self.before[key] - self.BESIDE.get(key, 0)
            if made != plan[key]:
                print(f"{key}: the plan says {plan[key]}, the step did {made}")
                bad += 1
        return bad


class View(ctypes.Structure):
    """tmc_view."""
    _fields_ = [("size", ctypes.c_uint32), ("dtype", ctypes.c_int), ("data", ctypes.c_void_p), ("device", ctypes.c_int),
                ("device_number", ctypes.c_int32), ("rank", ctypes.c_int32), ("read_only", ctypes.c_int32),
                ("dims", ctypes.c_int64 * 8), ("strides", ctypes.c_int64 * 8), ("bytes", ctypes.c_int64)]


def unlike_views(step, values):
    """How many tensors aren't seen at their place on the card; its memory is the host's in the emulator."""
    bad = 0
    for name, want in values.items():
        view = View(ctypes.sizeof(View))
        code = step.api.tmc_step_view(step.step, name.encode(), ctypes.byref(view))
        if code == 4:
            continue  # The plan moves it.
        if code or view.device != 2 or view.device_number != 0:
            print(f"{name}: code {code}, a view of device {view.device}, number {view.device_number}")
            bad += 1
        elif view.dtype == 0 and ctypes.string_at(view.data, view.bytes) != want.tobytes():
            print(f"{name}: a view of other values")
            bad += 1
    return bad


def one(directory, path, steps, graph, compares):
    """In a process of its own: a digest of a step's parameters' bits, and whether its gradients are
    the golden ones, if that is asked. With more steps than one, the others begin with the same parameters; the
    digest has the checkpoint behind them, too."""
    import check
    with open(path) as file:
        golden = json.load(file)
    before = check.read_weights(golden, GOLDEN)
    step = check.start(directory, golden, GOLDEN, 1, graph=graph == "graph")
    check.feed(step, golden, GOLDEN)
    # Other runs don't evaluate, and have the same bits.
    evaluates = os.environ.get("TMC_EMULATOR_SEED") == "0"
    foretold = evaluated(step) if evaluates else None
    work = Work(step)
    loss = step.run(check.RATE)
    bad = work.compare(directory)
    if evaluates and foretold != loss:
        print(f"the step has a loss of {loss}, its evaluation has {foretold}")
        bad += 1
    digest = hashlib.sha256(repr(loss).encode())
    after = {}
    with open(os.path.join(directory, "step.mlir")) as file:  # Frozen parameters may be narrow, or codes.
        frozen = set(re.findall(r'\{train\.frozen, [^}]*?train\.name = "([^"]+)"', file.read()))
    trained = {name: want for name, want in golden["gradients"].items() if name not in frozen}
    for name, want in trained.items():
        after[name] = step.read(name, math.prod(want["shape"]))
        digest.update(after[name].tobytes())
    bad += unlike_views(step, after)
    if int(steps) > 1:
        for name in trained:
            step.write(name, before[name].tobytes())
        for _ in range(1, int(steps)):
            check.feed(step, golden, GOLDEN)
            if evaluates:
                evaluated(step)
            last = step.run(1e-3)
        digest.update(checkpoint(step, f"{directory}-{graph}") + repr(last).encode())
    print("digest", digest.hexdigest())
    step.api.tmc_emulator_graphs.restype = ctypes.c_int64
    print("graphs", step.api.tmc_emulator_graphs())
    print("ways", *[step.api.tmc_emulator_products_by_way(way) for way in range(WAYS)])
    if not compares:
        return 1 if bad else 0
    bad += check.compare_numbers("loss", [golden["loss"]], [loss], check.LOSS)
    bad += check.compare("gradient", golden["gradients"],
                         lambda name, _: [(p - q) / check.RATE for p, q in zip(before[name], after[name])],
                         lambda name: check.allowed_gradient(golden, name))
    return 1 if bad else 0


def evaluated(step):
    """The loss of the batch that was fed."""
    loss = ctypes.c_double()
    step.call("tmc_step_evaluate", ctypes.byref(loss))
    return loss.value


def checkpoint(step, directory):
    """The bytes of the checkpoint that `step` saves in `directory`."""
    step.call("tmc_step_save", directory.encode())
    with open(os.path.join(directory, "checkpoint.safetensors"), "rb") as file:
        return file.read()


def rounded(values, kind):
    """The bits of floats rounded to 16, to nearest, ties to even."""
    if kind == "f16":
        return b"".join(struct.pack("<e", value) for value in values)
    bits = array.array("I", values.tobytes())
    return array.array("H", (b + 0x7FFF + (b >> 16 & 1) >> 16 for b in bits)).tobytes()


def train(directory, path, save, resume, steps, graph):
    """In a process of its own: so many steps; a digest of the checkpoint and the last loss, the
    steps that were skipped and those that were graphs, the copies, and those that aren't their parameters."""
    import check
    with open(path) as file:
        golden = json.load(file)
    step = check.start(directory, golden, GOLDEN, 1, graph=graph == "graph")
    if resume != "none":
        step.call("tmc_step_resume", resume.encode())
    for _ in range(int(steps)):
        check.feed(step, golden, GOLDEN)
        loss = step.run(1e-3 / (1 + step.statistics().steps))
    print("digest", hashlib.sha256(checkpoint(step, save) + repr(loss).encode()).hexdigest())
    step.api.tmc_emulator_graphs.restype = ctypes.c_int64
    print("graphs", step.api.tmc_emulator_graphs())
    statistics = check.Statistics(ctypes.sizeof(check.Statistics))
    step.call("tmc_step_get_statistics", ctypes.byref(statistics))
    copies = wrong = 0
    for name, want in golden["gradients"].items():
        count = math.prod(want["shape"])
        for kind in "bf16", "f16":
            bits = ctypes.create_string_buffer(2 * count)
            if step.api.tmc_step_read(step.step, f"{name}.{kind}".encode(), bits, ctypes.c_int64(2 * count)) == 0:
                copies += 1
                wrong += bits.raw != rounded(step.read(name, count), kind)
    print("skipped", statistics.skipped_steps)
    print("copies", copies)
    print("wrong", wrong)
    return 0


class Failed(Exception):
    pass


def made(command):
    done = run(command)
    if done.returncode:
        raise Failed(done.stdout[-4000:])


def emit(options, directory, path, golden, precision, *more, optimizer=None, edit=None):
    """A compiled step's directory with its watched libstep.so, its text as `edit` makes it; returns its plan."""
    dims = [f"--dim={name}={value}" for name, value in golden["dims"].items()]
    if "lora" in golden:
        dims.append(f"--lora={golden['lora']}")
    graph = os.path.join(ROOT, golden["graphs"][0])
    precision, *flags = precision.split(" ")
    momentum = 0 if precision == "f32" else 0.9  # After one step it is the gradient, which verify compares.
    done = run([options.tmc, "compile", graph, "--target=cuda:sm_90", "--emit=source", *dims,
                f"--optimizer={optimizer or f'sgd(momentum={momentum},weight_decay=0)'}", f"--precision={precision}",
                "-o", directory, *flags, *more])
    if done.returncode:
        raise Failed(f"tmc compile ended with {done.returncode}\n{done.stdout}")
    at = lambda name: os.path.join(directory, name)
    if edit:
        with open(at("step.cu")) as file:
            text = file.read()
        with open(at("step.cu"), "w") as file:
            file.write(edit(text))
    made([options.cxx, *FLAGS, *WATCHED, "-include", options.headers, "-x", "c++", "-c", at("step.cu"), "-o", at("step.o")])
    made([options.cxx, "-shared", at("step.o"), options.watched, "-Wl,--whole-archive", options.library,
          "-Wl,--no-whole-archive", "-o", at("libstep.so")])
    with open(at("plan.json")) as file:
        return json.load(file)


def name_of(path):
    return os.path.basename(path).removesuffix(".json")


def plans_and_seeds(options, loose, tight):
    """Runs of a step: (label, directory, seed). Each has a seed of its own: two of them, one with a tight budget,
    show that neither the plan nor the order of blocks changes a bit."""
    seeds = options.seeds if options.full or not tight else options.seeds - 1
    return [("all memory", loose, seed) for seed in range(seeds)] + ([("tight", tight, seeds)] if tight else [])


def check_model(options, scratch, path, precision):
    """The rows of one model: (name, good, text)."""
    with open(path) as file:
        golden = json.load(file)
    rows = []
    report = lambda *row: rows.append(row)
    narrow = precision != "f32"
    name = name_of(path) + (f", {precision}" if narrow else "")
    wants_tight = options.full or name in TIGHT
    digests = {}
    first = zlib.crc32(name.encode()) % 2  # Of half of the models the first run has graphs.

    def measure(directory, label, seed):
        graph = (seed + first) % 2 == 0
        done = run([sys.executable, __file__, "--bits" if narrow else "--one", directory, path, str(GRAPH_STEPS),
                    "graph" if graph else "direct"], env=dict(os.environ, TMC_EMULATOR_SEED=str(seed)))
        found = re.search(r"^digest (\w+)\ngraphs (\d+)", done.stdout, re.M)
        label += ", graphs" if graph else ""
        report(f"{name}, {label}, seed {seed}", done.returncode == 0 and found and
               int(found[2]) == (GRAPH_STEPS - 1 if graph else 0), f"ended with {done.returncode}\n" + done.stdout)
        if found:
            digests[label, seed] = found[1]

    try:
        stem = re.sub(r"[^\w:]+", "-", f"{name_of(path)}-{precision}")
        loose = os.path.join(scratch, f"{stem}-loose")
        plan = emit(options, loose, path, golden, precision)
        least, most = plan["smallest_found_bytes"], plan["arena_bytes"]
        budget = least + (most - least) // 100
        tight = os.path.join(scratch, f"{stem}-tight") if wants_tight else None
        if tight:
            emit(options, tight, path, golden, precision, f"--budget={budget}")
    except Failed as failure:
        report(name, False, str(failure))
        return rows
    if narrow and name not in UNDECIDED:
        # The interpreter doesn't round probabilities of attention, and small models can't tell that from a fault.
        compared = loose
        with open(os.path.join(loose, "step.cu")) as file:
            text = file.read()
        has_attention = ".kvHeads = " in text
        # The stand-in of cuDNN doesn't round them either.
        by_cudnn = "--attention=cudnn" in precision
        if by_cudnn:
            kernels = sorted(set(re.findall(r"^  (\w*Attention\w*) ", text, re.M)))
            report(f"{name}: kernels", kernels == ["CudnnAttention", "CudnnAttentionGrad"], str(kernels))
        if has_attention and not by_cudnn:
            compared = os.path.join(scratch, f"{stem}-exact")
            word, *flags = precision.split(" ")
            try:
                emit(options, compared, path, golden, word + ",attention=exact", *flags)
            except Failed as failure:
                report(f"{name}: the interpreter's numbers", False, str(failure))
                return rows
        done = run([options.tmc, "verify", compared, "--steps=1", "--threads=1"],
                   env=dict(os.environ, TMC_EMULATOR_SEED="0"))
        report(f"{name}: the interpreter's numbers", done.returncode == 0, done.stdout)
    for label, directory, seed in plans_and_seeds(options, loose, tight):
        measure(directory, label, seed)
    report(f"{name}: the same bits", len(set(digests.values())) == 1,
           "\n".join(f"{label}, seed {seed}: {digest}" for (label, seed), digest in digests.items()))
    return rows


def trained(directory, path, save, resume, steps, graph, seed):
    """A run of train(): its exit code, its text and what it printed by name."""
    done = run([sys.executable, __file__, "--train", directory, path, save, resume, str(steps), "graph" if graph else "direct"],
               env=dict(os.environ, TMC_EMULATOR_SEED=str(seed)))
    return done, dict(re.findall(r"^(digest|graphs|skipped|copies|wrong) (\w+)$", done.stdout, re.M))


def check_algorithms(options, scratch, path, precision):
    """The rows of one model with a table of algorithms."""
    with open(path) as file:
        golden = json.load(file)
    name = f"{name_of(path)}, {precision}, algorithms"
    at = lambda label: os.path.join(scratch, f"{name_of(path)}-{precision}-algorithms-{label}")
    rows, found = [], {}

    def table(library, products):
        with open(at(str(library)), "w") as file:
            json.dump(dict(schema=1, device="emulator", library=library, products=[dict(product=each, **BLOCKS) for each in products]), file)
        return "--algorithms=" + file.name

    try:
        plan = emit(options, at("plain"), path, golden, precision)
        with open(os.path.join(at("plain"), "step.cu")) as file:
            products = sorted(set(re.findall(r'^    \{"\w+", "(Matmul [^"]*)"\},$', file.read(), re.M)))
        least, most = plan["smallest_found_bytes"], plan["arena_bytes"]
        emit(options, at("table"), path, golden, precision, table(LIBRARY, products))
        emit(options, at("tight"), path, golden, precision, table(LIBRARY, products), f"--budget={least + (most - least) // 100}")
        emit(options, at("older"), path, golden, precision, table(LIBRARY - 1, products))
    except Failed as failure:
        return [(name, False, str(failure))]
    for seed, label in enumerate(["plain", "table", "tight", "older"]):
        done = run([sys.executable, __file__, "--bits", at(label), path, "1", "direct"], env=dict(os.environ, TMC_EMULATOR_SEED=str(seed)))
        its = re.search(r"^digest (\w+)\ngraphs 0\nways ([\d ]+)$", done.stdout, re.M)
        rows.append((f"{name}: {label}", done.returncode == 0 and its, f"ended with {done.returncode}\n{done.stdout}"))
        found[label] = (its[1], [int(count) for count in its[2].split()]) if its else ("none", [0] * WAYS)
    ways = {label: its[1] for label, its in found.items()}
    rows.append((f"{name}: {len(products)} products take it", bool(products) and ways["plain"][BLOCKS_WAY] < sum(ways["plain"])
                 and all(sum(ways[label]) == ways[label][BLOCKS_WAY] > 0 for label in ("table", "tight")), str(ways)))
    rows.append((f"{name}: the same bits", found["table"][0] == found["tight"][0] != found["plain"][0] == found["older"][0] != "none", str(found)))
    return rows


def check_split(options, scratch, path, flags):
    """The rows of one model in micro-batches."""
    with open(path) as file:
        golden = json.load(file)
    name = f"{name_of(path)} {flags}"
    rows, digests = [], {}
    directory = os.path.join(scratch, name.replace(" ", ""))
    try:
        plan = emit(options, directory, path, golden, "f32", *flags.split())
        tight = directory + "-tight"
        least, most = plan["smallest_found_bytes"], plan["arena_bytes"]
        emit(options, tight, path, golden, "f32", *flags.split(), f"--budget={least + (most - least) // 100}")
    except Failed as failure:
        return [(name, False, str(failure))]
    for label, each, seed in plans_and_seeds(options, directory, tight):
        done = run([sys.executable, __file__, "--one", each, path, "1", "direct"], env=dict(os.environ, TMC_EMULATOR_SEED=str(seed)))
        found = re.search(r"^digest (\w+)", done.stdout, re.M)
        rows.append((f"{name}, {label}, seed {seed}", done.returncode == 0 and found, f"ended with {done.returncode}\n{done.stdout}"))
        digests[label, seed] = found.group(1) if found else "none"
    rows.append((f"{name}: the same bits", len(set(digests.values())) == 1 and "none" not in digests.values(), str(digests)))
    return rows


def check_copies(options, scratch, path, precision):
    """The rows of one model in both forms."""
    with open(path) as file:
        golden = json.load(file)
    rows = []
    name = f"{name_of(path)}, {precision}"
    at = lambda label: os.path.join(scratch, f"{name_of(path)}-{precision}-copies-{label}")
    made = lambda label, *more: emit(options, at(label), path, golden, precision, *more, optimizer="adamw(weight_decay=0.1)")
    more = ["--loss-scale=" + SCALER] if precision == "fp16" else []
    try:
        plans = {form: made(form, *more, f"--narrow-copies={form}") for form in ("kept", "cast")}
        least, most = plans["kept"]["smallest_found_bytes"], plans["kept"]["arena_bytes"]
        plans["tight"] = made("tight", *more, "--narrow-copies=kept", f"--budget={least + (most - least) // 100}")
        # Where only casts fit, the step casts.
        least = plans["cast"]["smallest_found_bytes"]
        plans["least"] = made("least", *more, f"--budget={least}")
        for form in ("kept", "cast") if options.full else ():
            plans[f"split-{form}"] = made(f"split-{form}", *more, f"--narrow-copies={form}", "--micro-batches=2")
    except Failed as failure:
        return [(name, False, str(failure))]
    kept = {label: plan["precision"]["kept_copies_bytes"] for label, plan in plans.items()}
    rows.append((f"{name}: who keeps copies", kept["kept"] == kept["tight"] > 0 == kept["cast"] == kept["least"]
                 and plans["least"]["smallest_found_bytes"] == least, str(kept)))
    digests = {}

    def measure(label, form, save, resume="none", seed=0, graph=True):
        steps = COPY_STEPS // (2 if resume != "none" or "half" in save else 1)
        done, found = trained(at(form), path, at(save), resume, steps, graph, seed)
        good = done.returncode == 0 and found.get("wrong") == "0" and (int(found["copies"]) > 0) == (kept[form] > 0) \
            and int(found["skipped"]) == (precision == "fp16")
        rows.append((f"{name}: {label}", good, f"ended with {done.returncode}\n{done.stdout}"))
        if "half" not in save:
            digests[label] = found.get("digest", "none")

    for form in plans:
        measure(form, form, f"{form}-saved", seed=len(digests))
    measure("kept, without graphs", "kept", "kept-direct-saved", graph=False)
    for form, other in ("kept", "cast"), ("cast", "kept"):
        measure(f"half of {form}", form, f"{form}-half")
        measure(f"{form}, then {other}", other, f"{form}-{other}-saved", at(f"{form}-half"))
    for what, same in ("", {label: d for label, d in digests.items() if "split" not in label}), \
            (", in micro-batches", {label: d for label, d in digests.items() if "split" in label}):
        if same:
            rows.append((f"{name}: the same checkpoints in both forms{what}", len(set(same.values())) == 1 and "none" not in same.values(),
                         "\n".join(f"{label}: {digest}" for label, digest in same.items())))
    return rows


def without_waits(text):
    """Kernels don't wait for copies."""
    return re.sub(r'^ *q\.wait\(engine\("compute"\), \d+\);\n', "", text, flags=re.M)


def check_moves(options, scratch, path, case):
    """The rows of one model that moves what it can."""
    flags, has_file = case
    with open(path) as file:
        golden = json.load(file)
    name = name_of(path) + (f" {flags}" if flags else "") + (" with a file" if has_file else "")
    rows, digests = [], {}
    at = lambda label: os.path.join(scratch, f"{name}-moves-{label}".replace(" ", ""))
    plan = [options.tmc, "plan", os.path.join(ROOT, golden["graphs"][0]), "--target=cuda:sm_90", "--optimizer=adamw(weight_decay=0.1)",
            *[f"--dim={key}={value}" for key, value in golden["dims"].items()], *flags.split(), "--json"]
    planned = lambda *more: json.loads(re.search(r"^\{.*^\}", run([*plan, *more]).stdout, re.M | re.S).group(0))
    made = lambda label, *more, edit=None: emit(options, at(label), path, golden, "f32", *flags.split(), *more,
                                                optimizer="adamw(weight_decay=0.1)", edit=edit)
    try:
        stays = made("stays")
        least, most = planned("--offload=all", "--budget=1")["smallest_found_bytes"], stays["arena_bytes"]
        budget = least + (most - least) // 20
        leaves = ["--offload=all", f"--budget={budget}"]
        if has_file:
            os.makedirs(at("swap"))
            host = planned(*leaves)["spaces"]["host"]["arena_bytes"]
            leaves += [f"--host-budget={int(host * HOST_SHARE)}", f"--nvme={at('swap')}"]
        moves = made("moves", *leaves)
        made("planted", *leaves, edit=without_waits)
    except Failed as failure:
        return [(name, False, str(failure))]
    with open(os.path.join(at("moves"), "step.cu")) as file:
        has_threads = has_file or ".beside(" in file.read()
    spaces = moves["spaces"]
    rows.append((f"{name}: less on the device", moves["arena_bytes"] <= budget < most and spaces["host"]["arena_bytes"] > 0,
                 f"{least} {moves['arena_bytes']} {budget} {most}"))
    written, read = spaces["moved_bytes"]["file-write"], spaces["moved_bytes"]["file-read"]
    rows.append((f"{name}: {written} bytes written and {read} read",
                 (min(written, read, spaces["file"]["arena_bytes"]) > 0) == has_file, str(spaces)))

    def measure(label, form, save, resume="none", seed=0, graph=True):
        steps = MOVED_STEPS // (2 if resume != "none" or "half" in save else 1)
        done, found = trained(at(form), path, at(save), resume, steps, graph, seed)
        good = done.returncode == 0 and int(found["graphs"]) == (steps - 1 if graph and (form == "stays" or not has_threads) else 0)
        rows.append((f"{name}: {label}", good, f"ended with {done.returncode}\n{done.stdout}"))
        if "half" not in save:
            digests[label] = found.get("digest", "none")

    measure("all stays", "stays", "stays-saved")
    for seed in range(options.seeds):
        measure(f"all that may moves, seed {seed}", "moves", f"moves-saved-{seed}", seed=seed)
    measure("all that may moves, without graphs", "moves", "moves-direct-saved", graph=False)
    for form, other in ("stays", "moves"), ("moves", "stays"):
        measure(f"half of {form}", form, f"{form}-half")
        measure(f"{form}, then {other}", other, f"{form}-{other}-saved", at(f"{form}-half"))
    done, _ = trained(at("planted"), path, at("planted-half"), "none", MOVED_STEPS, True, 0)
    # Whoever doesn't wait for a fetch races with it, or comes first.
    found = re.search("emulator: (race|uninitialised read)", done.stdout)
    rows.append((f"{name}: waits that are left out are found", done.returncode == 86 and found,
                 f"ended with {done.returncode}\n{done.stdout}"))
    rows.append((f"{name}: the same checkpoints, moved or not", len(set(digests.values())) == 1 and "none" not in digests.values(),
                 "\n".join(f"{label}: {digest}" for label, digest in digests.items())))
    return rows


# What others of the same code show in part.
FULL_ONLY = [(check_model, "decoder", "f32"), (check_model, "gpt2-tiny", "fp16"), (check_model, "gpt2-tiny", "fp8:delayed"),
             (check_copies, "gpt2-tiny", "bf16"), (check_copies, "llama-tiny", "bf16"),
             (check_moves, "gpt2-tiny", ("", False)), (check_moves, "gpt2-tiny", ("--micro-batches=2", False))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc")
    parser.add_argument("--library")
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--only", default="")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--bits", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--train", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        return train(*options.train)
    if options.one or options.bits:
        return one(*(options.one or options.bits), compares=bool(options.one))
    options.seeds = options.seeds or (FULL_SEEDS if options.full else SEEDS)
    counts = {True: 0, False: 0}
    asked = [options.tmc, "plan", os.path.join(ROOT, "examples", "mlp.onnx"), "--batch=1", "--target=cuda:sm_90"]
    if run([*asked, "--attention=cudnn"]).returncode and run(asked).returncode == 0:
        print("SKIP: --attention=cudnn, which this tmc was built without", flush=True)
        for name, forms in NARROW.items():
            NARROW[name] = [form for form in forms if "--attention=cudnn" not in form]

    def report(name, good, text):
        counts[bool(good)] += 1
        print(f"{'PASS' if good else 'FAIL'}: {name}", flush=True)
        if not good:
            print("    " + text.strip().replace("\n", "\n    "), flush=True)

    cases = []
    for path in sorted(glob.glob(os.path.join(GOLDEN, "*.json"))):
        name = name_of(path)
        if options.only in name:
            of = [(check_model, precision) for precision in ["f32", *NARROW.get(name, [])]]
            of += [(check_copies, precision) for precision in COPIES.get(name, [])]
            of += [(check_moves, case) for case in MOVED.get(name, [])]
            of += [(check_algorithms, precision) for precision in ALGORITHMS.get(name, [])]
            of += [(check_split, flags) for flags in SPLIT.get(name, [])]
            cases += [(check, path, what) for check, what in of if options.full or (check, name, what) not in FULL_ONLY]
    cases.sort(key=lambda case: case[0] is not check_copies)  # The longest first.
    with tempfile.TemporaryDirectory(prefix="emulated-") as scratch, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        # All steps begin with the same headers, and are watched by the same code.
        options.headers = os.path.join(scratch, "step.h")
        with open(options.headers, "w") as file:
            file.writelines(f'#include "{header}"\n' for header in HEADERS)
        made([options.cxx, *FLAGS, *WATCHED, "-x", "c++-header", options.headers, "-o", options.headers + ".gch"])
        options.watched = os.path.join(scratch, "watched.o")
        made([options.cxx, *FLAGS, "-c", os.path.join(HERE, "WatchedStep.cpp"), "-o", options.watched])

        def timed(case):
            begin = time.monotonic()
            return case[0](options, scratch, *case[1:]), time.monotonic() - begin

        for (check, path, what), (rows, seconds) in zip(cases, pool.map(timed, cases)):
            for row in rows:
                report(*row)
            print(f"TIME: {check.__name__} {name_of(path)} {what} ({seconds:.1f} s)", flush=True)
    print(f"{counts[True]} passed, {counts[False]} failed")
    return 1 if counts[False] or not counts[True] else 0


if __name__ == "__main__":
    sys.exit(main())
