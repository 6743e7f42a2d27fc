"""tmc_add_step of the package for CMake: cmake.py BUILD ROOT DIR GENERATOR.

A program with two steps is built in a path with spaces, by a moved installation. A second build
does nothing, and one file that changes has its step compiled again, once. The build folder of tmc
serves as well.
"""

import json
import os
import shutil
import subprocess
import sys
import time

BUILD, ROOT, HERE, GENERATOR = sys.argv[1:]
HERE = os.path.join(os.path.abspath(HERE), "a place with spaces")
SOURCE, BINARY, PREFIX = (os.path.join(HERE, each) for each in ("source", "out of source", "prefix"))
LISTS = """
cmake_minimum_required(VERSION 3.20)
project(app LANGUAGES C)
find_package(tmc 0.1 REQUIRED)
tmc_add_step(digits MODEL "the model.onnx" WEIGHTS values.safetensors BUDGET 64MiB TARGET cpu:v3)
tmc_add_step(other MODEL mlp.onnx TARGET cpu:v3 PREFIX other DIMS batch=16 FLAGS --optimizer sgd --effort 50)
add_executable(app app.c)
target_link_libraries(app PRIVATE digits other)
"""
PROGRAM = r"""
#include "step.h"
#include "other/step.h"
#include <stdio.h>
int main(void) {
  tmc_step *digits, *two;
  if (tmc_step_create(NULL, &digits) || tmc_step_load(digits, NULL))
    return puts(tmc_last_error());
  if (other_step_create(NULL, &two))
    return puts(other_last_error());
  printf("%d %d\n", (int)tmc_step_tensor_count(digits), (int)other_step_tensor_count(two));
  return 0;
}
"""


def run(*words, fails=False, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=500, **more)
    assert (done.returncode != 0) == fails, (words, done.stdout)
    return done.stdout


def write(name, text):
    with open(os.path.join(SOURCE, name), "w") as file:
        file.write(text)


def configure(binary=BINARY, place="-DCMAKE_PREFIX_PATH=" + PREFIX, **more):
    return run("cmake", "-S", SOURCE, "-B", binary, "-G", GENERATOR, place, **more)


def build(**more):
    """The steps that are compiled by a build, and if the program is linked."""
    text = run("cmake", "--build", BINARY, **more)
    steps = [each for each in ("digits", "other") if "Compiling the step " + each in text]
    return steps + ["app"] * ("Linking C executable app" in text)


def touch(path):
    time.sleep(1.1)  # Make compares whole seconds on some file systems.
    os.utime(path)


shutil.rmtree(HERE, ignore_errors=True)
os.makedirs(SOURCE)
run("cmake", "--install", BUILD, "--prefix", os.path.join(HERE, "made"))
os.rename(os.path.join(HERE, "made"), PREFIX)
for name, model in ("the model.onnx", os.environ["MODEL"]), ("mlp.onnx", os.path.join(ROOT, "examples", "mlp.onnx")):
    shutil.copy(model, os.path.join(SOURCE, name))
shutil.copy(os.environ["DATA"], os.path.join(SOURCE, "v.data"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import safetensors
safetensors.write(os.path.join(SOURCE, "values.safetensors"), ["u:F32:1=2", "w:F32:2x1=9"])
write("CMakeLists.txt", LISTS)
write("app.c", PROGRAM)
configure()
assert build() == ["digits", "other", "app"]
assert build() == [], "the second build has nothing to do"
print(run(os.path.join(BINARY, "app")).strip())
with open(os.path.join(BINARY, "tmc-steps", "digits", "plan.json")) as file:
    assert json.load(file)["budget_bytes"] == 64 << 20
for name in "the model.onnx", "v.data", "values.safetensors":
    touch(os.path.join(SOURCE, name))
    assert build() == ["digits", "app"], name
    assert build() == [], name
touch(os.path.join(SOURCE, "mlp.onnx"))
assert build() == ["other", "app"]
touch(os.path.join(PREFIX, "bin", "tmc"))
assert build() == ["digits", "other", "app"]
assert build() == []
run("cmake", "--build", BINARY, "--target", "clean")
assert build() == ["digits", "other", "app"], "after a clean"

beside = os.path.join(HERE, "from the build folder")
configure(binary=beside, place="-Dtmc_DIR=" + BUILD)
run("cmake", "--build", beside, "--target", "digits-step")

# A step that can't be compiled fails the build each time, with tmc's own message.
write("the model.onnx", "no model")
for _ in range(2):
    text = run("cmake", "--build", BINARY, fails=True)
    assert "not an ONNX model" in text, text

# Wishes that can't be fulfilled are refused where they are written.
for lists, said in (
        (LISTS.replace("PREFIX other", ""), "tmc_step_of_tmc"),
        (LISTS.replace("MODEL mlp.onnx", ""), "give MODEL FILE"),
        (LISTS.replace("--effort 50", "--emit exe"), "--emit is chosen by"),
        (LISTS.replace("TARGET cpu:v3 PREFIX", "GOAL cpu:v3 PREFIX"), "can't read 'GOAL"),
        (LISTS.replace("tmc 0.1", "tmc 9"), "version")):
    write("CMakeLists.txt", lists)
    assert said in " ".join(configure(binary=os.path.join(HERE, "refused"), fails=True).split()), said
print("built by " + GENERATOR)
