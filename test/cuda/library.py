"""libstep.so of a CUDA step, as a program that embeds it meets it.

    library.py TMC ROOT OUT MODEL OPTION...     made by `tmc compile --emit lib`
    library.py --of LIBRARY ROOT                made before

It has to export every function that
runtime/tmc.h declares, to load where there is no GPU and no cuDNN (the model has
no convolution), and there to fail only when a step is created: with code 74 and
a sentence that names the device.
"""

import ctypes
import os
import re
import subprocess
import sys

WORLD = 74


def declared(header):
    with open(header) as file:
        return set(re.findall(r"^TMC_API[^;(]*?(\w+)\(", file.read(), re.M))


def words(*command):
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.split()


def main(tmc, root, out, model, *options):
    done = subprocess.run([tmc, "compile", os.path.join(root, model), "--target=cuda:sm_90",
                           "--emit=lib", "-o", out, *options], capture_output=True, text=True)
    if done.returncode != 0:
        return [f"tmc compile ended with {done.returncode}: {done.stderr}"]
    return check(os.path.join(out, "libstep.so"), os.path.join(out, "tmc.h"))


def check(library, header):
    """What is wrong with the library, a line each."""
    promised = declared(header)
    exported = set(words("nm", "--dynamic", "--defined-only", "--format=just-symbols", library))
    wrong = []
    if "tmc_step_create" not in promised:
        wrong.append(f"tmc.h isn't understood: it declares {sorted(promised)}")
    if missing := promised - exported:
        wrong.append(f"of {len(promised)} functions of tmc.h, {len(missing)} aren't exported: "
                     + ", ".join(sorted(missing)))
        return wrong
    if any("cudnn" in word for word in words("readelf", "--dynamic", "--wide", library)):
        wrong.append("the library needs cuDNN, which the model doesn't")

    step = ctypes.CDLL(library, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    step.tmc_last_error.restype = ctypes.c_char_p
    settings = ctypes.create_string_buffer(256)
    step.tmc_options_init(settings, len(settings))
    created = ctypes.c_void_p()
    code = step.tmc_step_create(settings, ctypes.byref(created))
    said = step.tmc_last_error().decode()
    if code == 0:
        step.tmc_step_destroy(created)
    elif code != WORLD or "cuda device" not in said or created:
        wrong.append(f"tmc_step_create gives {code} and says '{said}'")
    print(f"{len(promised)} functions; tmc_step_create: {code} {said}")
    return wrong


if __name__ == "__main__":
    if sys.argv[1] == "--of":
        found = check(sys.argv[2], os.path.join(sys.argv[3], "runtime", "tmc.h"))
    else:
        found = main(*sys.argv[1:])
    print("\n".join(found))
    sys.exit(1 if found else 0)
