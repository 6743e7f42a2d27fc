"""Several steps in one program: beside.py TMC MODEL DIR.

One program links three libraries and opens three more, of other batches; the loss of each
step must be what a program says that has nothing but it.
"""

import os
import re
import shutil
import subprocess
import sys

TMC, MODEL, HERE = sys.argv[1:]
HERE = os.path.abspath(HERE)
# Name, and batch: each step has other tensors.
LINKED = [("", 2), ("gan_d", 3), ("gan_g", 4)]
OPENED = [("", 5), ("", 6), ("seven", 7)]
# Two steps from drawn weights, on the same numbers.
PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
%(includes)s

struct step_functions {
  __typeof__(&tmc_options_init) options_init;
  __typeof__(&tmc_step_create_of) step_create_of;
  __typeof__(&tmc_step_identity) step_identity;
  __typeof__(&tmc_step_tensor_count) step_tensor_count;
  __typeof__(&tmc_step_tensor) step_tensor;
  __typeof__(&tmc_step_write) step_write;
  __typeof__(&tmc_step_init_random) step_init_random;
  __typeof__(&tmc_step_set_learning_rate) step_set_learning_rate;
  __typeof__(&tmc_step_run) step_run;
  __typeof__(&tmc_last_error) last_error;
};
static struct step_functions functions[6];
static tmc_step *steps[6];

static void must(int i, int code) {
  if (code) {
    printf("step %%d: code %%d, %%s\n", i, code, functions[i].last_error());
    exit(1);
  }
}

static void create(int i) {
  struct step_functions *f = &functions[i];
  tmc_options options;
  f->options_init(&options, sizeof options);
  options.threads = 1;
  must(i, f->step_create_of(f->step_identity(), &options, &steps[i]));
  must(i, f->step_init_random(steps[i], 7));
  for (int64_t k = 0; k < f->step_tensor_count(steps[i]); ++k) {
    tmc_tensor tensor;
    tensor.size = sizeof tensor;
    must(i, f->step_tensor(steps[i], k, &tensor));
    if (tensor.role != TMC_BATCH || (tensor.dtype != TMC_F32 && tensor.dtype != TMC_I64))
      continue;
    char *data = calloc(1, tensor.bytes);
    for (int64_t n = 0; n < tensor.bytes; n += tensor.dtype == TMC_F32 ? 4 : 8)
      if (tensor.dtype == TMC_F32)
        *(float *)(data + n) = (float)(n %% 44) / 44;
      else
        *(int64_t *)(data + n) = 1;
    must(i, f->step_write(steps[i], tensor.name, data, tensor.bytes));
    free(data);
  }
  f->step_set_learning_rate(steps[i], 1e-3);
}

int main(void) {
%(functions)s
  /* Created, and then run in turn: none is another's. */
  for (int i = 0; i < 6; ++i)
    if (functions[i].step_run)
      create(i);
  for (int round = 0; round < 2; ++round)
    for (int i = 5; i >= 0; --i)
      if (steps[i]) {
        double loss;
        must(i, functions[i].step_run(steps[i], &loss));
        printf("%%d %%d %%.9g\n", i, round, loss);
      }
  return 0;
}
"""
FIELDS = re.findall(r"\) (\w+);", PROGRAM.split("struct step_functions {")[1].split("};")[0])


def run(*words, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    assert done.returncode == 0, done.stdout
    return done.stdout


def directory(index):
    return os.path.join(HERE, "step%d" % index)


def library(index):
    return "lib%s.so" % ((LINKED + OPENED)[index][0] or "step")


def program(linked, opened):
    """Links the steps `linked`, opens those `opened`; what it prints."""
    name = "".join(map(str, linked)) + "_" + "".join(map(str, opened))
    includes = "".join('#include "step%d/step.h"\n' % i for i in linked) or '#include "step%d/tmc.h"\n' % opened[0]
    lines = []
    for index in linked + opened:
        prefix = (LINKED + OPENED)[index][0] or "tmc"
        if index in opened:
            lines.append('  void *of%d = dlopen("%s", RTLD_NOW | RTLD_GLOBAL);\n  if (!of%d) { puts(dlerror()); return 1; }'
                         % (index, os.path.join(directory(index), library(index)), index))
        for field in FIELDS:
            function = "%s_%s" % (prefix, field)
            lines.append("  functions[%d].%s = %s;" % (index, field, 'dlsym(of%d, "%s")' % (index, function)
                                                       if index in opened else function))
    source, made = os.path.join(HERE, name + ".c"), os.path.join(HERE, name)
    with open(source, "w") as file:
        file.write(PROGRAM % dict(includes=includes, functions="\n".join(lines)))
    links = []
    for index in linked:
        links += ["-L" + directory(index), "-l" + library(index)[3:-3], "-Wl,-rpath," + directory(index)]
    run("cc", "-Wall", "-Werror", "-I", HERE, source, "-o", made, *links, "-ldl")
    return run(made).splitlines()


shutil.rmtree(HERE, ignore_errors=True)
os.makedirs(HERE)
for index, (name, batch) in enumerate(LINKED + OPENED):
    run(TMC, "compile", MODEL, "--target", "cpu", "--emit", "lib", "--batch", str(batch), "-o", directory(index),
        *(["--name", name] if name else []))
    path = os.path.join(directory(index), library(index))
    assert "[%s]" % library(index) in next(l for l in run("readelf", "-dW", path).splitlines() if "SONAME" in l)
    exported = set(run("nm", "--dynamic", "--defined-only", "--format=just-symbols", path).split())
    with open(os.path.join(directory(index), "tmc.h")) as file:
        promised = set(re.findall(r"^TMC_API[^;(]*?(\w+)\(", file.read(), re.M))
    assert len(promised) > 10 and exported == {each.replace("tmc", name or "tmc", 1) for each in promised}, exported

alone = {}
for index in range(6):
    for line in program([], [index]):
        alone[tuple(map(int, line.split()[:2]))] = line
losses = [alone[i, 0].split()[2] for i in range(6)]
assert len(alone) == 12 and len(set(losses)) == 6, alone
for linked, opened in ([0, 1, 2], [3, 4, 5]), ([2, 1, 0], [5, 4, 3]):
    lines = program(linked, opened)
    assert sorted(lines) == sorted(alone.values()), "\n".join(lines + ["alone:"] + list(alone.values()))
# A program that links an unnamed step and opens others runs each of them.
assert sorted(program([0], [3, 4])) == sorted(alone[i, k] for i in (0, 3, 4) for k in (0, 1))
