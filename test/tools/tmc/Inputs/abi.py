"""The C interface over time: abi.py TMC ROOT DIR.

abi/tmc.h is the header of version 1 as it was. Its fields, constants and functions must be where
they were in today's header, and a program of it must run with a library of today. Programs of
headers that are to come, with fields at the end of each struct, must run as well.
"""

import os
import re
import shutil
import subprocess
import sys

TMC, ROOT, HERE = sys.argv[1:]
TODAY = os.path.join(ROOT, "runtime", "tmc.h")
FROZEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "abi", "tmc.h")
# It trains two steps from the same values. The second gets its batches by a view.
PROGRAM = r"""
#include "tmc.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes behind a struct, which no library may write. */
#define GUARDED(type, name) struct { type its; unsigned char after[256]; } name; \
  memset(&name, 0x5a, sizeof name); name.its.size = sizeof(type)
#define CHECK(name) intact(name.after, #name)

static void intact(const unsigned char *after, const char *name) {
  int i;
  for (i = 0; i < 256; ++i)
    if (after[i] != 0x5a) {
      printf("%s is overrun\n", name);
      exit(1);
    }
}
static void must(int code, int expected) {
  if (code != expected) {
    printf("code %d for %d: %s\n", code, expected, tmc_last_error());
    exit(1);
  }
}

int main(void) {
  int which, i, round;
  GUARDED(tmc_options, options);
  tmc_step *bad = NULL;
  if (tmc_abi_version() != TMC_ABI_VERSION)
    return 1;
  tmc_options_init(&options.its, sizeof(tmc_options));
  CHECK(options);
  options.its.threads = 1;
  for (which = 0; which < 2; ++which) {
    tmc_step *step;
    int64_t index;
    GUARDED(tmc_statistics, statistics);
    GUARDED(tmc_space, space);
    must(tmc_step_create(&options.its, &step), 0);
    must(tmc_step_init_random(step, 7), 0);
    for (round = 0; round < 3; ++round) {
      double loss;
      for (index = 0; index < tmc_step_tensor_count(step); ++index) {
        GUARDED(tmc_tensor, tensor);
        GUARDED(tmc_view, view);
        char *data;
        must(tmc_step_tensor(step, index, &tensor.its), 0);
        CHECK(tensor);
        if (tensor.its.role != TMC_BATCH || tensor.its.fed)
          continue;
        data = calloc(1, (size_t)tensor.its.bytes);
        for (i = 0; i < tensor.its.bytes / 4; i += tensor.its.dtype == TMC_F32 ? 1 : 2)
          if (tensor.its.dtype == TMC_F32)
            ((float *)data)[i] = (float)((i + round) % 44) / 44;
          else
            ((int64_t *)data)[i / 2] = (i / 2 + round) % 10;
        if (which && round) {
          must(tmc_step_view(step, tensor.its.name, &view.its), 0);
          CHECK(view);
          if (view.its.device != TMC_DEVICE_CPU || view.its.read_only || view.its.bytes != tensor.its.bytes)
            return 1;
          memcpy(view.its.data, data, (size_t)view.its.bytes);
        } else {
          must(tmc_step_write(step, tensor.its.name, data, tensor.its.bytes), 0);
        }
        free(data);
      }
      must(tmc_step_run(step, &loss), 0);
      printf("%d %.9g\n", which, loss);
    }
    must(tmc_step_get_statistics(step, &statistics.its), 0);
    CHECK(statistics);
    must(tmc_step_space(step, 0, &space.its), 0);
    CHECK(space);
    if (statistics.its.steps != 3 || statistics.its.arena_bytes != space.its.arena_bytes)
      return 1;
    statistics.its.size = 4;
    must(tmc_step_get_statistics(step, &statistics.its), 2);
    tmc_step_destroy(step);
  }
#ifdef LATER
  options.its.later = 1;
  must(tmc_step_create(&options.its, &bad), 4);
#endif
  options.its.size = 48;
  must(tmc_step_create(&options.its, &bad), 2);
  return bad != NULL;
}
"""


def run(*words, fails=False, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **more)
    assert (done.returncode != 0) == fails, (words, done.returncode, done.stdout)
    return done.stdout


def path(*names):
    return os.path.join(HERE, *names)


def write(name, text):
    os.makedirs(os.path.dirname(path(name)), exist_ok=True)
    with open(path(name), "w") as file:
        file.write(text)
    return path(name)


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def shape(name, text):
    """What a program of this header is compiled to: places of fields, constants, functions."""
    bare = without_comments(text)
    structs = {its: re.findall(r"(\w+)(?:\[\d+\])?;", body)
               for body, its in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", bare, re.S)}
    constants = ["TMC_ABI_VERSION"]
    for body in re.findall(r"typedef enum \w+ \{(.*?)\}", bare, re.S):
        constants += [each.split("=")[0].strip() for each in body.split(",")]
    lines = ["#include <stddef.h>", "#include <stdio.h>", '#include "tmc.h"', "int main(void) {"]
    for its, fields in structs.items():
        lines.append('  printf("sizeof(%s) %%d\\n", (int)sizeof(%s));' % (its, its))
        for field in fields:
            lines.append('  printf("%s.%s %%d %%d\\n", (int)offsetof(%s, %s), (int)sizeof(((%s *)0)->%s));'
                         % (its, field, its, field, its, field))
    lines += ['  printf("%s %%d\\n", (int)%s);' % (each, each) for each in constants]
    write(name + "/tmc.h", text)
    source = write(name + "/shape.c", "\n".join(lines + ["  return 0;\n}\n"]))
    run("cc", source, "-o", path(name, "shape"))
    found = dict(line.split(" ", 1) for line in run(path(name, "shape")).splitlines())
    for declaration in re.findall(r"TMC_API[^;]*;", bare):
        its = re.search(r"(\w+)\(", declaration).group(1)
        found[its + "()"] = " ".join(declaration.split())
    # Bytes behind the last field would become a field whose old programs never set it.
    for its, fields in structs.items():
        offset, size = map(int, found["%s.%s" % (its, fields[-1])].split())
        assert offset + size == int(found["sizeof(%s)" % its]), its + " has bytes behind its last field"
        assert found[its + ".size"] == "0 4", its
    return found


def broken(old, new):
    """The promises of `old` that `new` doesn't keep."""
    return [key for key, value in old.items()
            if (int(new[key]) < int(value) if key.startswith("sizeof") else new.get(key) != value)]


def program(header, name, *flags):
    """What the program prints that is compiled with this header and linked with today's library."""
    write(name + "/tmc.h", header)
    source = write(name + "/program.c", PROGRAM)
    run("cc", "-Wall", "-Werror", *flags, "-I", path(name), source, "-o", path(name, "program"),
        "-L" + path("step"), "-lstep", "-Wl,-rpath," + path("step"))
    lines = [line.split() for line in run(path(name, "program")).splitlines()]
    losses = [[loss for which, loss in lines if which == each] for each in "01"]
    assert len(losses[0]) == 3 and losses[0] == losses[1] and len(set(losses[0])) == 3, lines
    return losses[0]


shutil.rmtree(HERE, ignore_errors=True)
os.makedirs(HERE)
run(TMC, "compile", os.path.join(ROOT, "examples", "mlp.onnx"), "--target", "cpu:v3", "--emit", "lib", "-o", path("step"))

# Each language that may include the headers of a step.
includes = write("include.c", '#include "step.h"\ntmc_step *unused;\nint main(void) { return !TMC_STEP_IDENTITY[0]; }\n')
shutil.copy(includes, path("include.cpp"))
for compiler, plus in ("gcc", "g++"), ("clang-22", "clang++-22"), ("clang", "clang++"):
    if not shutil.which(plus):
        continue
    for standard in ("gnu89", "c89", "c11", "c++20"):
        cpp = standard.startswith("c++")
        run(plus if cpp else compiler, "-std=" + standard, "-pedantic", "-Wall", "-Wextra", "-Wstrict-prototypes" if not cpp
            else "-Wall", "-Werror", "-fsyntax-only", "-I", path("step"), path("include.cpp" if cpp else "include.c"))
print("tmc.h compiles as gnu89, c11, c++20")

with open(TODAY) as file:
    today = file.read()
with open(FROZEN) as file:
    frozen = file.read()
old, new = shape("old", frozen), shape("new", today)
assert not broken(old, new), broken(old, new)
print("%d fields, %d constants and %d functions are where they were" % (
    sum("." in key for key in old), sum(key.isupper() or key[:4] == "TMC_" for key in old),
    sum(key.endswith("()") for key in old)))

dynamic = run("readelf", "-dW", path("step", "libstep.so"))
assert "SYMBOLIC" in dynamic and "[libstep.so]" in dynamic, dynamic

# Each struct with one more field, as a header to come has it.
later = re.sub(r"(typedef struct \w+ \{.*?)(\} \w+;)", r"\1  int64_t later;\n\2", today, flags=re.S)
assert later.count("later;") == 6 and not broken(old, shape("later", later))
assert program(frozen, "as-it-was") == program(later, "to-come", "-DLATER")
print("programs: as it was, later, of another size")

# Changes that break programs are seen.
PLANTED = [
    ("  int32_t threads;", "  int64_t threads;"),  # another type
    ("  int32_t poison; ", "  int32_t first, poison; "),  # not at the end
    ("  int64_t bytes;\n  int32_t trainable;", "  int32_t trainable;\n  int64_t bytes;"),  # another order
    ("TMC_F32,", "TMC_F128,\n  TMC_F32,"),
    ("TMC_DEVICE_CUDA = 2", "TMC_DEVICE_CUDA = 3"),
    ("tmc_step_run(tmc_step *step, double *loss)", "tmc_step_run(tmc_step *step, float *loss)"),
    ("TMC_API int32_t tmc_abi_version(void);", ""),
    ("#define TMC_ABI_VERSION 1", "#define TMC_ABI_VERSION 2"),
]
for number, (before, after) in enumerate(PLANTED):
    assert frozen.count(before) >= 1, before
    try:
        found = broken(old, shape("planted%d" % number, frozen.replace(before, after, 1)))
    except AssertionError:
        found = ["bytes behind a field"]
    assert found, after
print("planted: %d changes of the header, all found" % len(PLANTED))
