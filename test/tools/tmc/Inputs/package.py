"""The package of Debian, and what it installs: package.py BUILD ROOT DIR.

It is unpacked in a folder. From there tmc compiles a step by the package's own files, and
pkg-config and man find theirs.
"""

import glob
import os
import re
import shutil
import subprocess
import sys

BUILD, ROOT, HERE = sys.argv[1:]
HERE = os.path.abspath(HERE)


def run(*words, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=500, **more)
    assert done.returncode == 0, (words, done.stdout)
    return done.stdout


shutil.rmtree(HERE, ignore_errors=True)
os.makedirs(HERE)
run("cpack", "-G", "DEB", "-B", HERE, "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip", cwd=BUILD)
package, = glob.glob(os.path.join(HERE, "*.deb"))
about = run("dpkg-deb", "-I", package)
depends = re.search(r"^ Depends: (.*)$", about, re.M).group(1)
assert re.search(r"^ Package: tmc$", about, re.M) and re.search(r"^ Maintainer: \S", about, re.M), about
for library in "g++", "libc6 (", "libmlir-22 (", "libstdc++6 (":
    assert library in depends, depends
files = {line.split()[5]: line.split()[0] for line in run("dpkg-deb", "-c", package).splitlines()}
for path in ("bin/tmc", "include/tmc/runtime/tmc.h", "lib/tmc/libtmc-trainer.a", "lib/tmc/libtmc-runtime-cpu-v3.a",
             "lib/cmake/tmc/tmcConfig.cmake", "lib/cmake/tmc/tmcAddStep.cmake", "lib/pkgconfig/tmc.pc",
             "share/doc/tmc/copyright", "share/man/man1/tmc.1", "share/man/man1/tmc-compile.1"):
    assert "./usr/" + path in files, (path, sorted(files))
# Nothing is another user's to write, and nothing lies outside of /usr.
assert not [path for path, mode in files.items() if mode[8] == "w" or not path.startswith("./usr/")], files
print("%d files" % len(files))

run("dpkg-deb", "-x", package, os.path.join(HERE, "root"))
usr = os.path.join(HERE, "root", "usr")
environment = dict(os.environ, PKG_CONFIG_PATH=os.path.join(usr, "lib", "pkgconfig"))
tmc = run("pkg-config", "--variable=tmc", "tmc", env=environment).strip()
assert os.path.samefile(tmc, os.path.join(usr, "bin", "tmc")), tmc
version = run("pkg-config", "--modversion", "tmc", env=environment).strip()
assert run(tmc, "--version").startswith("tmc %s " % version) and "_%s" % version in package
# tmc.h alone, for a program that opens a step by dlopen.
with open(os.path.join(HERE, "dl.c"), "w") as file:
    file.write('#include <tmc.h>\nint main(void) { return sizeof(tmc_options) != 64; }\n')
run("cc", *run("pkg-config", "--cflags", "tmc", env=environment).split(), os.path.join(HERE, "dl.c"), "-o", os.path.join(HERE, "dl"))
run(os.path.join(HERE, "dl"))
# The Makefile of the page.
with open(os.path.join(ROOT, "docs", "packages.md")) as file:
    block = re.search(r"^    TMC := .*\n(?:    .*\n)+", file.read(), re.M).group(0)
with open(os.path.join(HERE, "Makefile"), "w") as file:
    file.write(re.sub("^    ", "", block, flags=re.M))
shutil.copy(os.path.join(ROOT, "examples", "mlp.onnx"), HERE)
made = [run("make", "step/plan.json", cwd=HERE, env=environment) for _ in range(2)]
assert "compile mlp.onnx" in made[0] and "up to date" in made[1], made
shutil.rmtree(os.path.join(HERE, "step"))
step = os.path.join(HERE, "step")
run(tmc, "compile", os.path.join(ROOT, "examples", "mlp.onnx"), "--target", "cpu:v3", "-o", step)
data = [word for name in ("image", "label") for word in
        ("--data", "%s=%s" % (name, os.path.join(ROOT, "examples", "data", "digits-%s.npy" % name)))]
assert "loss" in run(os.path.join(step, "train"), *data, "--steps", "2", "--init", "random:1")
# Each command has a page, in the sections that a reader expects.
commands = re.findall(r"^  tmc (\w+)", run(tmc, "--help"), re.M)
for name in ["tmc"] + ["tmc-" + each for each in commands]:
    with open(os.path.join(usr, "share", "man", "man1", name + ".1")) as file:
        page = file.read()
    assert '.TH %s "1"' % name.upper() in page and "\n%s \\- " % name in page, page[:500]
    for section in ["DESCRIPTION", "SEE ALSO"] + ["SYNOPSIS"] * (name != "tmc"):
        assert re.search(r'^\.SH "?%s"?$' % section, page, re.M), (section, page[:500])
print("tmc, pkg-config and %d man pages" % (1 + len(commands)))
