"""Builds the readers with libFuzzer and runs them.

    python3 bench/fuzz/run.py --build build --edges 8 --runs 8000   what tools/check does
    python3 bench/fuzz/run.py --build build --seconds 60 --seed 7   all edges, and a random run
    python3 bench/fuzz/run.py --build build --replay FILE           one input again

The readers' own files are compiled with clang for coverage and AddressSanitizer; the importers behind
them are the libraries of the build. Inputs begin with the models of test/models. First each integer of these
takes each value of EDGES, or every eighth of these changes with `--edges 8`: always the same inputs. Then
libFuzzer draws others. Of what is imported, `--steps`
inputs are compiled, and the host compiler checks the syntax of their steps. Exits with 1 where an input crashes,
hangs, takes more than 2 GiB, ends in a defect of tmc's own or in a step that is no C++, and keeps it.
"""

import argparse
import concurrent.futures
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
READERS = dict(
    onnx=["frontends/onnx/Wire.cpp", "frontends/onnx/Model.cpp", "frontends/onnx/Importer.cpp", "frontends/SafeFile.cpp"],
    torch=["frontends/torch/Archive.cpp", "frontends/torch/Program.cpp", "frontends/torch/Blocks.cpp", "frontends/torch/Importer.cpp",
           "frontends/SafeFile.cpp"],
    index=["runtime/step/SafetensorsSet.cpp", "runtime/step/WeightsRecord.cpp", "runtime/step/Safetensors.cpp", "runtime/step/File.cpp"],
    record=["runtime/step/WeightsRecord.cpp", "runtime/step/Safetensors.cpp", "runtime/step/File.cpp"],
    lines=["runtime/step/JsonLines.cpp", "runtime/step/Data.cpp", "runtime/step/DataFile.cpp", "runtime/step/DataSource.cpp",
           "runtime/step/Labels.cpp", "runtime/step/DataPaths.cpp", "runtime/step/Safetensors.cpp", "runtime/step/File.cpp"],
    adapter=["runtime/step/AdapterSettings.cpp", "driver/merge/AdapterConfig.cpp", "driver/merge/NamePattern.cpp"],
    state=["runtime/step/QuantState.cpp"])
# Larger seeds make slow runs: a program is parsed, imported and verified whole.
MAX_SEED_BYTES = dict(onnx=100_000, torch=10_000, index=4_000, record=4_000, lines=4_000, adapter=4_000, state=4_000)
# Indices of shards, of tensors a and b.
INDICES = [b'{"weight_map": {"a": "one", "b": "two"}}',
           b'{"metadata": {"total_size": 8, "more": [1.5e-3, null, {"x": "\\ud83d\\ude00"}]}, "weight_map": {"a": "one", "b": "two"}}',
           b'{"weight_map": {"a": "one"}}', b'{"weight_map": {"a": "../one"}}']
# Records of the weights of a step.
RECORDS = [b'{"made_by": "tmc compile", "step": "ab12", "prefix": {"in_file": "m.", "in_model": ""}, "files": [{"path": "/a", "header":'
           b' "0123456789abcdef"}, {"path": "/b", "header": "00000000000000ff"}], "beside": true}',
           b'{"made_by":"tmc compile","step":"","files":[],"beside":false,"more":[1.5e-3,null,{"x":"\\ud83d\\ude00"}]}']
# Samples of inputs [2, 3], [2, 3], [2, 3], [2] and [2, 3, 4] (Fuzz.cpp).
LINES = [b'{"ids": [1, 2, 3], "labels": [-100, 2, 3], "mask": [1, 1, 1], "grade": -1.5e2, "box": [[1,2,3,4],[5,6,7,8],[9,0.5,1e-3,2]]}\n',
         b'\n{"box":[[1,2,3,4],[5,6,7,8],[9,0,1,2]],"text":{"a":["\\u00e9",null,true]},"ids":[],"labels":[7],"mask":[1],"grade":0}\r\n' * 3]
# Configurations of adapters, and texts beside codes.
ADAPTERS = [b'{"peft_type": "LORA", "r": 16, "lora_alpha": 32, "use_rslora": true, "rank_pattern": {"down_proj": 8, "^a.*b": 4}, "alpha_pattern": {}}',
            b'{"peft_type": "LORA", "r": 4, "lora_alpha": 1.5e1, "alpha_pattern": {"layers.0.q_proj": 2}, "target_modules": ["q_proj"],'
            b' "fan_in_fan_out": null, "use_dora": false, "init_lora_weights": true, "modules_to_save": null, "bias": "none", "lora_dropout": 0.05}',
            b'{"peft_type": "IA3", "use_dora": true, "rank_pattern": null}']
STATES = [b'{"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [128, 64], "nested_blocksize": 256, "nested_dtype": "float32",'
          b' "nested_offset": 0.0519}', b'{"quant_type":"fp4","blocksize":128,"shape":[1,2,3,4,5,6,7,8],"more":{"a":[null,"\\u00e9",-1e-9]}}']
# The readers of texts that are no models.
TEXTS = dict(index=INDICES, record=RECORDS, lines=LINES, adapter=ADAPTERS, state=STATES)
WORDS = dict(index=("weight_map", "metadata", "one", "two", "../", "/dev/", "\\\\u", "\\\\ud83d", ".", "{", "["),
             record=("made_by", "tmc compile", "step", "prefix", "in_file", "in_model", "files", "path", "header", "beside", "true", "{", "["),
             lines=("ids", "labels", "mask", "grade", "box", "-100", "1e5", "\\\\u", "\\\\ud83d", "null", "{", "[", "]", "\\x0a"),
             adapter=("peft_type", "LORA", "r", "lora_alpha", "use_rslora", "use_dora", "rank_pattern", "alpha_pattern", "fan_in_fan_out",
                      "modules_to_save", "target_modules", "bias", "init_lora_weights", "null", "true", "1e999", "-1", ".*", "^", "\\\\u"),
             state=("quant_type", "blocksize", "nested_blocksize", "nested_offset", "shape", "nf4", "1e999", "NaN", "null", "[", "]"))
# What each integer of a seed becomes: codes of types, sizes and axes, and where arithmetic ends.
EDGES = [*range(-3, 18), 24, 28, *range(29, 34), 64, 100, 255, 65536, 2**31 - 1, 2**31, 2**62, 2**63 - 1, -2**63]
# Larger seeds have so many integers that the others would be a small share.
MAX_EDGE_BYTES = 3_500
SANITIZERS = ["-fsanitize=fuzzer-no-link,address", "-fno-omit-frame-pointer", "-g1"]


def compiler():
    """A clang that has libFuzzer, or None."""
    for name in ("clang++-22", "clang++-14", "clang++"):
        path = shutil.which(name)
        if not path:
            continue
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "t.cpp")
            with open(source, "w") as file:
                file.write('extern "C" int LLVMFuzzerTestOneInput(const unsigned char *, unsigned long) { return 0; }')
            tried = subprocess.run([path, "-fsanitize=fuzzer,address", source, "-o", os.path.join(folder, "t")], capture_output=True)
            if tried.returncode == 0:
                return path
    return None


def flags(build, source):
    """How the build compiles `source`, without what only gcc knows."""
    with open(os.path.join(build, "compile_commands.json")) as file:
        for entry in json.load(file):
            if entry["file"] == os.path.join(ROOT, source):
                words = shlex.split(entry["command"])
                break
        else:
            sys.exit("the build has no " + source)
    kept, skip = [], False
    start = next(i for i, word in enumerate(words) if word.endswith(("c++", "g++")))
    for word in words[start + 1:]:
        if skip:
            skip = False
        elif word in ("-o", "-c", "-include", "-MF", "-MT"):
            skip = True
        elif word not in ("-MD", "-Werror", "-Winvalid-pch"):
            kept.append(word)
    return [f for f in kept if not f.endswith(".cpp")]


def compile_one(clang, build, source, target, extra):
    like = source if source != "bench/fuzz/Fuzz.cpp" else "frontends/onnx/Import.cpp"
    command = [clang, *flags(build, like), *SANITIZERS, *extra, "-w", "-c", os.path.join(ROOT, source), "-o", target]
    done = subprocess.run(command, capture_output=True, text=True, cwd=build)
    if done.returncode:
        sys.exit(done.stderr[-4000:])


def link(clang, build, objects, target):
    """As the build links tmc-import, with `objects` before the libraries."""
    commands = subprocess.run(["ninja", "-C", build, "-t", "commands", "tmc-import"], capture_output=True, text=True, check=True).stdout
    line = next(c for c in reversed(commands.splitlines()) if "-o bin/tmc-import" in c)
    line = line.split("&&")[1]
    words = shlex.split(line)
    start = next(i for i, word in enumerate(words) if word.endswith(("c++", "g++")))
    rest = [w for w in words[start + 1:] if not w.endswith("tmc-import.cpp.o")]
    rest[rest.index("bin/tmc-import")] = target
    # The readers are in the libraries, too: the first definition holds.
    command = [clang, *objects, *rest, "-fsanitize=fuzzer,address", "-Wl,-z,muldefs"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=build)
    if done.returncode:
        sys.exit(done.stderr[-4000:])


def one_call(node, values):
    """A program of this call alone: what it reads are the inputs."""
    def names(argument):
        for kind, value in argument.items():
            if kind == "as_tensor":
                yield value["name"]
            elif kind in ("as_tensors", "as_optional_tensors"):
                for each in value:
                    yield from names(each if kind == "as_optional_tensors" else dict(as_tensor=each))

    read = list(dict.fromkeys(name for given in node["inputs"] for name in names(given["arg"])))
    made = [name for output in node["outputs"] for name in names(output)]
    if not made or not all(name in values for name in read + made):
        return None
    inputs, outputs = ([dict(as_tensor=dict(name=name)) for name in group] for group in (read, made))
    graph = dict(inputs=inputs, outputs=outputs, nodes=[dict(node, metadata={})], tensor_values={name: values[name] for name in read + made},
                 sym_int_values={}, sym_bool_values={}, is_single_tensor_return=False, custom_obj_values={})
    signature = dict(input_specs=[dict(user_input=dict(arg=each)) for each in inputs],
                     output_specs=[dict(user_output=dict(arg=each)) for each in outputs])
    return dict(graph_module=dict(graph=graph, signature=signature, module_call_graph=[]), opset_version=dict(aten=10), range_constraints={},
                schema_version=dict(major=8, minor=0), torch_version="unnamed")


def seeds(kind, folder):
    """The small models of the tests; of archives, the programs in them, too, and of programs each call that is like no other."""
    os.makedirs(folder)
    if kind in TEXTS:
        for number, text in enumerate(TEXTS[kind]):
            with open(os.path.join(folder, "%d.json" % number), "wb") as file:
                file.write(text)
        return
    calls = set()
    for path in sorted(glob.glob(os.path.join(ROOT, "test/models", "*.onnx" if kind == "onnx" else "*.pt2"))):
        name = os.path.basename(path)
        if os.path.getsize(path) <= MAX_SEED_BYTES[kind]:
            shutil.copy(path, os.path.join(folder, name))
        if kind == "onnx":
            continue
        with zipfile.ZipFile(path) as archive:
            program = json.loads(archive.read(next(n for n in archive.namelist() if n.endswith("/models/model.json"))))
        graph = program["graph_module"]["graph"]
        programs = {name: program}
        for node in graph["nodes"]:
            like = (node["target"], tuple((given["name"], *given["arg"]) for given in node["inputs"]))
            if like not in calls:
                calls.add(like)
                programs[f"{name}-{len(calls)}"] = one_call(node, graph["tensor_values"])
        for title, each in programs.items():
            text = json.dumps(each, separators=(",", ":"))
            if each is not None and len(text) <= MAX_SEED_BYTES[kind]:
                with open(os.path.join(folder, title + ".json"), "w") as file:
                    file.write(text)


def varint(value):
    """A number as protobuf writes it."""
    value %= 2**64
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes(encoded + bytes([value]))


def fields(message):
    """The fields of a protobuf message: (start, kind of value, start of the value, end); None if the bytes are none."""
    def number(at):
        value = shift = 0
        while at < len(message) and shift < 64:
            value |= (message[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if message[at - 1] < 128:
                return value, at
        return None, at

    found, at = [], 0
    while at < len(message):
        start = at
        key, at = number(at)
        if not key or key >> 3 == 0:
            return None
        kind = key & 7
        if kind == 0:
            value, end = number(at)
            if value is None:
                return None
        elif kind == 2:
            size, at = number(at)
            if size is None:
                return None
            end = at + size
        elif kind in (1, 5):
            end = at + (8 if kind == 1 else 4)
        else:
            return None
        if end > len(message):
            return None
        found.append((start, kind, at, end))
        at = end
    return found


def protobuf_edges(message):
    """The message with one of its integers, at any depth, changed."""
    for start, kind, value, end in fields(message) or []:
        if kind == 0:
            for edge in EDGES:
                yield message[:value] + varint(edge) + message[end:]
        elif kind == 2:
            key = re.match(rb"[\x80-\xff]*.", message[start:], re.DOTALL).group()
            for inner in protobuf_edges(message[value:end]):
                yield message[:start] + key + varint(len(inner)) + inner + message[end:]


def json_edges(text):
    for found in re.finditer(rb'(?<![\w."])-?\d+(?![\w."])', text):
        near = int(found.group())
        for edge in dict.fromkeys([*EDGES, near - 1, near + 1, 2 * near, near // 2]):
            yield text[:found.start()] + str(edge).encode() + text[found.end():]


def write_edges(seeds, folder, share):
    """Seeds with one integer changed; every `share`-th of them."""
    os.makedirs(folder)
    count = 0
    for name in sorted(os.listdir(seeds)):
        with open(os.path.join(seeds, name), "rb") as file:
            seed = file.read()
        if name.endswith(".pt2") or len(seed) > MAX_EDGE_BYTES:
            continue
        for changed in (json_edges if name.endswith(".json") else protobuf_edges)(seed):
            count += 1
            if count % share == 0:
                with open(os.path.join(folder, str(count)), "wb") as file:
                    file.write(changed)


def words(kind, build, path):
    """Operators and keys, as libFuzzer's dictionary."""
    if kind in WORDS:
        with open(path, "w") as file:
            file.writelines('"%s"\n' % word for word in WORDS[kind])
        return
    listed = subprocess.run([os.path.join(build, "bin", "tmc-import"), "--operators" if kind == "onnx" else "--torch-operators"],
                            capture_output=True, text=True, check=True).stdout.split()
    listed += ["*/", "/*", "//", "\\\\", "\\\"", "??/", "%s", "\\xe2\\x80\\xae", "\\xe2\\x80\\xa8", "</script>", "..", "int"]  # In names.
    keys = ["as_int", "as_tensor", "as_tensors", "as_float", "as_none", "as_graph", "sizes", "strides", "storage_offset", "9223372036854775807"]
    with open(path, "w") as file:
        for word in listed + (keys if kind == "torch" else []):
            file.write('"%s"\n' % word)


def check_steps(kind, build, kept, wanted, keep):
    """Compiles inputs of `kept` until the syntax of `wanted` steps has been checked; how many, and what is wrong."""
    checked, wrong = 0, []
    for name in sorted(os.listdir(kept)):
        if checked == wanted:
            break
        model = os.path.join(kept, name + (".onnx" if kind == "onnx" else ".pt2"))
        os.rename(os.path.join(kept, name), model)
        step = os.path.join(kept, name + ".step")
        try:
            done = subprocess.run([os.path.join(build, "bin", "tmc"), "compile", model, "--target=cpu:v3", "--effort=1", "--emit=source", "-o", step],
                                  capture_output=True, text=True, errors="replace", timeout=20)
        except subprocess.TimeoutExpired:
            continue  # A large step takes its time.
        if done.returncode in (1, 2, 3, 4, 74):
            continue
        if done.returncode == 0:
            checked += 1
            done = subprocess.run(["g++", "-std=c++20", "-march=x86-64-v3", "-Wno-psabi", "-fsyntax-only", "-I", ROOT, os.path.join(step, "step.cpp")],
                                  capture_output=True, text=True, errors="replace")
        if done.returncode:
            target = os.path.join(keep, f"{kind}-step-{name}{os.path.splitext(model)[1]}")
            shutil.copy(model, target)
            wrong.append(f"{target}: {done.stderr[-2000:]}")
    return checked, wrong


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", default="build")
    options.add_argument("--only", choices=sorted(READERS))
    options.add_argument("--seconds", type=int, default=0)
    options.add_argument("--runs", type=int, default=-1)
    options.add_argument("--seed", type=int, default=1, help="of the inputs that libFuzzer draws")
    options.add_argument("--edges", type=int, default=1, help="of the changed integers every so many")
    options.add_argument("--steps", type=int, default=4, help="steps whose syntax is checked, of each reader")
    options.add_argument("--replay")
    options.add_argument("--keep", help="where inputs are kept that fail (default: BUILD/fuzz)")
    given = options.parse_args()
    build = os.path.abspath(given.build)
    clang = compiler()
    if not clang:
        print("skipped: no clang with libFuzzer")
        return 77
    folder = os.path.join(build, "fuzz")
    os.makedirs(folder, exist_ok=True)
    keep = os.path.abspath(given.keep or folder)
    failed = 0
    for kind in [given.only] if given.only else sorted(READERS):
        sources = READERS[kind] + ["bench/fuzz/Fuzz.cpp"]
        objects = [os.path.join(folder, kind + "-" + source.replace("/", "-") + ".o") for source in sources]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for done in [pool.submit(compile_one, clang, build, source, target, ["-DTMC_FUZZ_" + kind.upper()])
                         for source, target in zip(sources, objects)]:
                done.result()
        program = os.path.join(folder, kind)
        link(clang, build, objects, program)
        if given.replay:
            failed |= subprocess.run([program, given.replay]).returncode != 0
            continue
        with tempfile.TemporaryDirectory() as corpus, tempfile.TemporaryDirectory() as kept:
            seeds(kind, os.path.join(corpus, "seeds"))
            words(kind, build, os.path.join(corpus, "words"))
            common = [program, "-timeout=20", "-rss_limit_mb=2048", "-max_len=%d" % MAX_SEED_BYTES[kind],
                      "-artifact_prefix=" + os.path.join(keep, kind + "-"), "-print_final_stats=1", "-verbosity=1", "-detect_leaks=0"]
            write_edges(os.path.join(corpus, "seeds"), os.path.join(corpus, "edges"), given.edges)
            edges = len(os.listdir(os.path.join(corpus, "edges")))
            done = subprocess.run([*common, "-runs=0", os.path.join(corpus, "edges")], capture_output=True, text=True, errors="replace")
            if done.returncode:
                failed = 1
                print(done.stderr[-4000:])
            command = [*common, "-dict=" + os.path.join(corpus, "words"), "-seed=%d" % given.seed]
            if given.seconds:
                command.append("-max_total_time=%d" % given.seconds)
            command += ["-runs=%d" % given.runs, os.path.join(corpus, "seeds")]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=dict(os.environ, TMC_FUZZ_KEEP=kept))
            checked, wrong = (0, []) if kind in TEXTS else check_steps(kind, build, kept, given.steps, keep)
            stats = dict(line[len("stat::"):].split(":") for line in done.stderr.splitlines() if line.startswith("stat::"))
            covered = [line.split("cov: ")[1].split()[0] for line in done.stderr.splitlines() if "cov: " in line]
            print("%s: %d changed integers, %s runs of seed %d, %s edges of the readers, %s MiB at most, %d steps checked" % (
                kind, edges, stats.get("number_of_executed_units", "?").strip(), given.seed, covered[-1] if covered else "?", stats.get("peak_rss_mb", "?").strip(), checked))
            for each in wrong:
                failed = 1
                print(each)
            if done.returncode:
                failed = 1
                print(done.stderr[-4000:])
    return failed


sys.exit(main())
