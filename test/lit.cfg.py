import importlib.util, os, shutil, sys, lit.formats

config.name = "tmc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
root = os.path.dirname(__file__)
config.test_source_root = root
# Unit tests and goldens hold .mlir files of their own, which are no lit tests.
config.excludes = ["unit", "golden", "models", "Inputs"]
build = os.environ.get("TMC_BUILD", os.path.join(root, "..", "build"))
config.test_exec_root = os.path.join(build, "lit")
llvm = "/usr/lib/llvm-22/bin"
# Compiled pieces of steps are kept apart from the user's own.
config.environment["XDG_CACHE_HOME"] = os.path.join(config.test_exec_root, "cache")
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(build, "bin"), llvm, os.environ["PATH"]])
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(
    ("%exits", sys.executable + " " + os.path.join(root, "exits.py")))
config.substitutions.append(("%tmc", os.path.join(build, "bin", "tmc")))
with open(os.path.join(build, "CMakeCache.txt")) as cache:
    if "TMC_SANITIZE:BOOL=ON" in cache.read():
        config.available_features.add("sanitized")
# Debian's python3-jsonschema.
if importlib.util.find_spec("jsonschema"):
    config.available_features.add("jsonschema")
# Whether tmc was built with graphs of cuDNN.
with open(os.path.join(build, "driver", "pipeline", "Config.h")) as header:
    if '#define TMC_CUDNN_FRONTEND ""' not in header.read():
        config.available_features.add("cudnn-frontend")
# Programs that some tests need.
for program in "dpkg-shlibdeps", "help2man", "pkg-config":
    if shutil.which(program):
        config.available_features.add(program)
config.substitutions.append(("%build", os.path.abspath(build)))
