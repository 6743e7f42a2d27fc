"""What must hold of the cache of compiled pieces: cache.py TMC MODEL DIR.

Each compilation must give the bytes of the first, whatever state the cache is in. That a
piece was taken from the cache shows where an entry, sound by its own hash, holds another
object: the link must fail.
"""

import hashlib
import os
import shutil
import subprocess
import sys

from plan_alone import alone, page_alone

TMC, MODEL, HERE = sys.argv[1:]
CACHE = os.path.join(HERE, "cache")
OBJECTS = os.path.join(CACHE, "tmc")
MAGIC = b"tmc-object 1 "


def start(name, *flags, cache=CACHE):
    return subprocess.Popen(
        [TMC, "compile", MODEL, "--target", "cpu", "--batch", "2", "-o", os.path.join(HERE, name), *flags],
        env=dict(os.environ, XDG_CACHE_HOME=cache), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def compile(name, *flags, cache=CACHE):
    process = start(name, *flags, cache=cache)
    text = process.communicate()[0]
    assert process.returncode == 0, text
    return files(name)


def files(name):
    result = {}
    for each in sorted(os.listdir(os.path.join(HERE, name))):
        with open(os.path.join(HERE, name, each), "rb") as file:
            result[each] = file.read()
    result["plan.json"] = alone(result["plan.json"])
    result["report.html"] = page_alone(result["report.html"])
    return result


def entries():
    return {each: open(os.path.join(OBJECTS, each), "rb").read() for each in sorted(os.listdir(OBJECTS))}


def overwrite(change):
    for name, content in entries().items():
        with open(os.path.join(OBJECTS, name), "wb") as file:
            file.write(change(content))


shutil.rmtree(HERE, ignore_errors=True)
os.makedirs(HERE)
first = compile("one")
assert {"train", "libstep.so", "step.cpp"} <= first.keys(), first.keys()
assert not [n for n in first if n.startswith("kernels") or n.endswith((".o", ".log"))], first.keys()
kept = entries()
assert len(kept) >= 2 and all(len(n) == 64 for n in kept), kept.keys()
print("kept:", len(kept))

assert compile("two") == first
assert entries() == kept, "a second compilation keeps nothing new"
print("the same bytes from the cache")

assert compile("none", "--no-cache") == first
assert entries() == kept
print("the same bytes without the cache")

# Sound entries of another object: it is the cache that is linked, and --no-cache leaves it.
another = b"\x7fELF of nothing"
overwrite(lambda content: MAGIC + hashlib.sha256(another).hexdigest().encode() + b"\n" + another)
process = start("wrong")
text = process.communicate()[0]
assert process.returncode == 74 and "failed with code" in text, (process.returncode, text)
assert not os.path.exists(os.path.join(HERE, "wrong"))
assert compile("right", "--no-cache") == first
print("taken from the cache")

for damage in (lambda c: b"", lambda c: c[:len(c) // 2], lambda c: c[:-1] + bytes([c[-1] ^ 1])):
    for name, content in kept.items():
        with open(os.path.join(OBJECTS, name), "wb") as file:
            file.write(damage(content))
    assert compile("mended") == first
    assert entries() == kept
print("damaged entries are recomputed")

with open(os.path.join(HERE, "file"), "w"):
    pass
assert compile("unwritable", cache=os.path.join(HERE, "file")) == first
assert compile("nowhere", cache="/proc/nowhere") == first
print("the same bytes where there can be no cache")

# Where somebody else could have put an entry, none is taken, and none is kept.
os.chmod(OBJECTS, 0o777)
overwrite(lambda content: MAGIC + hashlib.sha256(another).hexdigest().encode() + b"\n" + another)
planted = entries()
process = start("shared")
text = process.communicate()[0]
assert process.returncode == 0 and files("shared") == first, text
assert text.count("note: no compiled kernels are kept in '%s': other users can write in it" % OBJECTS) == 1, text
assert entries() == planted
shutil.rmtree(OBJECTS)
os.makedirs(os.path.join(HERE, "elsewhere"))
os.symlink(os.path.join(HERE, "elsewhere"), OBJECTS)
process = start("linked")
text = process.communicate()[0]
assert process.returncode == 0 and "it is no directory of its own" in text, text
assert not os.listdir(os.path.join(HERE, "elsewhere"))
print("no cache that others could write")

shutil.rmtree(CACHE)
both = [start("left"), start("right")]
for process in both:
    text = process.communicate()[0]
    assert process.returncode == 0, text
assert files("left") == files("right") == first
assert entries() == kept
assert os.stat(OBJECTS).st_mode & 0o7777 == 0o700
assert all(os.stat(os.path.join(OBJECTS, each)).st_mode & 0o7777 == 0o600 for each in kept)
print("two at once")
