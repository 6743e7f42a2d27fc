#include "compiler/emit/StepInterface.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

using namespace tmc;
using llvm::StringRef;

namespace {

/// A function of runtime/tmc.h: `result` tmc_`name`(`parameters`).
struct Function {
  StringRef result, name, parameters, arguments;
};

/// All of them, in that file's order. A test compares the two.
constexpr Function kFunctions[] = {
    {"int32_t", "abi_version", "void", ""},
    {"void", "options_init", "tmc_options *options, uint32_t size",
     "options, size"},
    {"int", "step_create", "const tmc_options *options, tmc_step **step",
     "options, step"},
    {"int", "step_create_of",
     "const char *identity, const tmc_options *options, tmc_step **step",
     "identity, options, step"},
    {"void", "step_destroy", "tmc_step *step", "step"},
    {"const char *", "last_error", "void", ""},
    {"const char *", "step_identity", "void", ""},
    {"int", "step_load", "tmc_step *step, const char *path", "step, path"},
    {"int", "step_init_random", "tmc_step *step, uint64_t seed", "step, seed"},
    {"int64_t", "step_tensor_count", "const tmc_step *step", "step"},
    {"int", "step_tensor",
     "const tmc_step *step, int64_t index, tmc_tensor *tensor",
     "step, index, tensor"},
    {"int", "step_write",
     "tmc_step *step, const char *name, const void *data, int64_t bytes",
     "step, name, data, bytes"},
    {"int", "step_read",
     "tmc_step *step, const char *name, void *data, int64_t bytes",
     "step, name, data, bytes"},
    {"int", "step_view", "tmc_step *step, const char *name, tmc_view *view",
     "step, name, view"},
    {"int", "step_dlpack",
     "tmc_step *step, const char *name, struct DLManagedTensorVersioned "
     "**tensor",
     "step, name, tensor"},
    {"int", "step_dlpack_unversioned",
     "tmc_step *step, const char *name, struct DLManagedTensor **tensor",
     "step, name, tensor"},
    {"void", "step_set_learning_rate", "tmc_step *step, double learning_rate",
     "step, learning_rate"},
    {"int", "step_run", "tmc_step *step, double *loss", "step, loss"},
    {"int", "step_evaluate", "tmc_step *step, double *loss", "step, loss"},
    {"int", "step_save", "tmc_step *step, const char *directory",
     "step, directory"},
    {"int", "step_save_weights",
     "tmc_step *step, const char *directory, const char *type",
     "step, directory, type"},
    {"int", "step_resume", "tmc_step *step, const char *directory",
     "step, directory"},
    {"int", "step_save_adapter", "tmc_step *step, const char *directory",
     "step, directory"},
    {"int", "step_load_adapter", "tmc_step *step, const char *directory",
     "step, directory"},
    {"int", "step_get_statistics",
     "const tmc_step *step, tmc_statistics *statistics", "step, statistics"},
    {"int64_t", "step_space_count", "const tmc_step *step", "step"},
    {"int", "step_space",
     "const tmc_step *step, int64_t index, tmc_space *space",
     "step, index, space"},
};

/// "int gan_d_step_run(tmc_step *step, double *loss)".
std::string declaration(const Function &function, StringRef prefix) {
  const StringRef blank = function.result.ends_with("*") ? "" : " ";
  return (function.result + blank + prefix + "_" + function.name + "(" +
          function.parameters + ")")
      .str();
}

} // namespace

std::string tmc::identityOf(std::initializer_list<std::string> parts) {
  llvm::SHA256 hash;
  for (const std::string &part : parts) {
    hash.update(std::to_string(part.size()) + ":"); // Keeps them apart.
    hash.update(part);
  }
  constexpr size_t kDigits = 16;
  return llvm::toHex(hash.final(), /*LowerCase=*/true).substr(0, kDigits);
}

std::string tmc::interfaceText(const StepInterface &step) {
  std::string text = "extern \"C\" const char tmc_identity_of_step[] = \"" +
                     step.identity + "\";\n";
  if (step.name.empty())
    return text;
  text += "\n#include \"runtime/tmc.h\"\n\n// The functions of tmc.h by this "
          "step's own name.\nextern \"C\" {\n";
  for (const Function &function : kFunctions)
    text += "TMC_API " + declaration(function, step.name) + " {\n  " +
            (function.result == "void" ? "" : "return ") + "tmc_" +
            function.name.str() + "(" + function.arguments.str() + ");\n}\n";
  return text + "}\n";
}

std::string tmc::interfaceHeader(const StepInterface &step,
                                 int64_t arenaBytes) {
  const bool isNamed = !step.name.empty();
  const std::string prefix = isNamed ? step.name : "tmc";
  const std::string macro = isNamed ? step.name : "TMC_STEP";
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "#ifndef TMC_STEP_H" << (isNamed ? "_" : "") << step.name
     << "\n#define TMC_STEP_H" << (isNamed ? "_" : "") << step.name
     << "\n\n#include \"tmc.h\"\n\n";
  if (isNamed) {
    os << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
    for (const Function &function : kFunctions)
      os << "TMC_API " << declaration(function, prefix) << ";\n";
    os << "#ifdef __cplusplus\n}\n#endif\n\n";
  }
  os << "#define " << macro << "_ARENA_BYTES " << arenaBytes << "LL\n"
     << "#define " << macro << "_IDENTITY \"" << step.identity << "\"\n\n"
     << "/* A library of another compilation than this header is refused. */\n"
     << "#define " << prefix << "_step_create(options, step) " << prefix
     << "_step_create_of(" << macro << "_IDENTITY, options, step)\n\n#endif\n";
  return text;
}

std::string tmc::exportedNames(const StepInterface &step) {
  // Symbols that connect the runtime and the step stay local. An exact name
  // takes precedence over a pattern.
  return step.name.empty()
             ? "{\n  global: tmc_*;\n  local: tmc_step_program; "
               "tmc_step_compiled_for; tmc_runtime_instructions; "
               "tmc_identity_of_step; *;\n};\n"
             : "{\n  global: " + step.name + "_*;\n  local: *;\n};\n";
}

constexpr StringRef kComment = "// Identity: ";

std::string tmc::identityComment(const std::string &identity) {
  return kComment.str() + identity + "\n";
}

std::string tmc::identityIn(const std::string &text) {
  StringRef line = StringRef(text).split('\n').first;
  return line.consume_front(kComment) ? line.str() : "";
}
