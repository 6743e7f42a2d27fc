#include "compiler/emit/Emit.h"

#include "compiler/analysis/KernelObject.h"
#include "compiler/analysis/MemLiveness.h"
#include "compiler/emit/Evaluation.h"
#include "compiler/emit/FusedBody.h"
#include "compiler/emit/FusedPrinter.h"
#include "compiler/emit/KernelPieces.h"
#include "compiler/emit/ProgramTable.h"
#include "compiler/support/Escape.h"
#include "dialects/interfaces/Interfaces.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;
using namespace tmc;

std::string tmc::readableBytes(int64_t bytes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (bytes >= int64_t(1) << 30)
    os << llvm::format("%.2f GiB", double(bytes) / (int64_t(1) << 30));
  else if (bytes >= 1 << 20)
    os << llvm::format("%.1f MiB", double(bytes) / (1 << 20));
  else if (bytes >= 1 << 10)
    os << llvm::format("%.1f KiB", double(bytes) / (1 << 10));
  else
    os << bytes << " B";
  return text;
}

std::string tmc::literal(Attribute value) {
  return (isa<TypeAttr>(value) ? "DType::" : "") + parameterText(value);
}

/// The emitted function that adds an offset to a space's arena.
static std::string addressIn(SpaceKind space) {
  return onDevice(space) ? "at" : nameOf(space);
}

static int64_t bytesOfElement(MemRefType type) {
  return (type.getElementTypeBitWidth() + 7) / 8;
}

/// The offset of `memref` in its arena; that of a piece moves with i.
static std::string offset(Value memref) {
  int64_t offset = 0;
  std::string moving;
  while (!memref.getDefiningOp<mem::BufferOp>()) {
    Operation *op = memref.getDefiningOp();
    auto type = cast<MemRefType>(memref.getType());
    if (isa<mem::PieceOp>(op)) {
      moving = " + i * " + std::to_string(sizeInBytes(type));
    } else {
      SmallVector<int64_t> strides;
      int64_t elements = 0, before = 0;
      (void)type.getStridesAndOffset(strides, elements);
      auto source = cast<MemRefType>(op->getOperand(0).getType());
      (void)source.getStridesAndOffset(strides, before);
      offset += (elements - before) * bytesOfElement(type);
    }
    memref = op->getOperand(0);
  }
  offset += int64_t(memref.getDefiningOp<mem::BufferOp>().getOffset());
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format_hex(offset, 1) << moving;
  return text;
}

static std::string address(Value memref) {
  return addressIn(mem::spaceOf(bufferOf(memref).getType())) + "(" +
         offset(memref) + ")";
}

static std::string arguments(OperandRange values, ArrayRef<int64_t> order) {
  SmallVector<std::string> list;
  if (order.empty())
    for (Value value : values)
      list.push_back(address(value));
  for (int64_t index : order)
    list.push_back(index < 0 ? "nullptr" : address(values[index]));
  return "{" + llvm::join(list, ", ") + "}";
}

/// Operands, results and scratch of a run.
static std::string operands(mem::LaunchOp launch) {
  return arguments(launch.getInputs(), launch.getInOrder()) + ", " +
         arguments(launch.getOutputs(), launch.getOutOrder()) + ", " +
         (launch.getScratch() ? address(launch.getScratch()) : "nullptr");
}

static std::string placeOf(mem::BufferOp buffer) {
  SpaceKind space = mem::spaceOf(buffer.getType());
  return (onDevice(space) ? "+" : std::string(nameOf(space)) + " +") +
         readableBytes(buffer.getOffset());
}

namespace {

constexpr const char *kKernelsInclude =
    "#include \"runtime/kernels/Kernels.h\"\n"
    "#include \"runtime/step/Program.h\"\n\n";

/// Shared by a step's own files; the library exports nothing of it.
constexpr const char *kMakersBegin =
    "namespace tmc __attribute__((visibility(\"hidden\"))) {\n";
constexpr const char *kMakersEnd = "} // namespace tmc\n\n";

/// Statements of one function. At this length g++ takes 0.7 ms per statement,
/// at thirty times this length more than twice as much.
constexpr int64_t kStatementsOfPart = 512;

/// The text by which prices know the kernel of `launch`.
std::string pricedAs(mem::ProgramOp program, mem::LaunchOp launch) {
  if (launch.getGenerated())
    return objectOfFused(SymbolTable::lookupNearestSymbolFrom<mem::KernelOp>(
                             program, launch.getCalleeAttr())
                             .getBlock());
  std::vector<std::pair<std::string, Attribute>> params;
  for (Attribute param : launch.getParams()) {
    auto pair = cast<ArrayAttr>(param);
    params.emplace_back(cast<StringAttr>(pair[0]).str(), pair[1]);
  }
  return objectOf(launch.getCallee(), params);
}

/// Prints one step.
class Emitter {
public:
  Emitter(ModuleOp module, mem::ProgramOp program, const Evaluation &evaluation,
          const EmitOptions &options)
      : module(module), program(program), evaluation(evaluation),
        options(options), liveness(memLiveness(program)) {
    for (auto [buffer, span] : llvm::zip(liveness.buffers, liveness.spans))
      spanOf[buffer] = span;
  }

  FailureOr<StepText> run() {
    if (failed(checkKnown()))
      return failure();
    std::string body;
    llvm::raw_string_ostream bodyStream(body);
    printBlock(program.getBlock(), bodyStream, 1);
    std::string evaluated = evaluationText();
    std::string table;
    llvm::raw_string_ostream tableStream(table);
    printProgramTable(tableStream, program, evaluation, liveness, kernelOf,
                      priced, options);
    if (failed(printKernelBodies()))
      return failure();

    auto print = [&](raw_ostream &os, bool whole) {
      os << "using namespace tmc;\n\n";
      if (!whole)
        printMakers(os);
      os << "namespace {\n\n";
      for (const KernelBody &kernel : bodies)
        os << (whole ? kernel.text : "");
      printKernelObjects(os, whole);
      os << parts << "/// One whole step, in the order of the plan.\n"
         << "void run(Queues &q, void *kernels) {\n"
         << "  auto &k = *static_cast<Kernels *>(kernels);\n"
         << places() << body << "}\n\n"
         << evaluated << table << "} // namespace\n\n"
         << "extern \"C\" const StepProgram *tmc_step_program() { return "
            "&program; }\n"
         << "const CompiledFor tmc_step_compiled_for = {"
         << cppString(options.target) << ", kInstructions};\n";
    };
    StepText text;
    llvm::raw_string_ostream whole(text.whole), main(text.main);
    printHead(whole);
    whole << fusedInclude(options.backend) << kKernelsInclude;
    print(whole, true);
    main << kKernelsInclude << "#include \"runtime/kernels/Generated.h\"\n";
    print(main, false);
    text.kernels = kernelFiles();
    return text;
  }

private:
  ModuleOp module;
  mem::ProgramOp program;
  Evaluation evaluation;
  const EmitOptions &options;
  MemLiveness liveness;
  DenseMap<Operation *, MemLiveness::Span> spanOf;
  std::vector<KernelBody> bodies; // Generated kernels.
  /// The same for the step's pieces, and the names of the bodies there.
  std::vector<KernelBody> pieceBodies;
  std::map<std::string, std::string, std::less<>> nameInPiece;
  /// Kernel objects by type and arguments: `Matmul{{...}}` -> `matmul_3`.
  std::vector<std::pair<std::string, std::string>> objects;
  std::vector<EmittedObject> priced; // For profiles.
  std::map<std::string, size_t> objectIndex;
  std::map<std::string, int> objectCount;
  int64_t moment = 0;
  /// The functions into which a long step is split.
  std::string parts;
  int64_t partCount = 0;
  /// The evaluation is printed: nothing observes it, and no launch has a
  /// number.
  bool evaluates = false;
  /// The object that runs each launch.
  std::vector<std::string> kernelOf;
  /// Joined launches that aren't printed yet.
  SmallVector<mem::LaunchOp> joined;

  /// False for a string that isn't a C++ name: words are printed verbatim, so a
  /// file's text must not become code.
  static bool isOurs(Attribute attr) {
    auto word = dyn_cast<StringAttr>(attr);
    return !word || isCppName(word.getValue());
  }

  /// Fails for the first op, or parameter of a kernel, that has no text:
  /// without it the text would be another step.
  LogicalResult checkKnown() {
    WalkResult walked = program.getBody().walk([](Operation *op) {
      if (!isa<mem::BufferOp, mem::ViewOp, mem::PieceOp, mem::LaunchOp,
               mem::FillOp, mem::LoopOp, mem::CopyOp, mem::RecordOp,
               mem::WaitOp, mem::DoneOp>(op)) {
        op->emitError("'") << op->getName() << "' can't be printed";
        return WalkResult::interrupt();
      }
      auto launch = dyn_cast<mem::LaunchOp>(op);
      if (!launch)
        return WalkResult::advance();
      if (!isCppName(launch.getCallee())) {
        op->emitError("its kernel has a name that can't be printed");
        return WalkResult::interrupt();
      }
      for (Attribute param : launch.getParams()) {
        auto pair = cast<ArrayAttr>(param);
        if (!isa<BoolAttr, IntegerAttr, FloatAttr, TypeAttr, StringAttr,
                 DenseI64ArrayAttr>(pair[1]) ||
            !isOurs(pair[0]) || !isOurs(pair[1])) {
          op->emitError("'") << launch.getCallee() << "' has a parameter "
                             << pair[0] << " that can't be printed";
          return WalkResult::interrupt();
        }
      }
      return WalkResult::advance();
    });
    return failure(walked.wasInterrupted());
  }

  void printHead(raw_ostream &os) {
    bool cuda = options.backend == Backend::Cuda;
    os << "// " << (cuda ? "step.cu" : "step.cpp") << " - one training step of "
       << inComment(options.model) << ", compiled by tmc for "
       << inComment(options.target) << ".\n"
       << "//\n// Arena: " << int64_t(program.deviceArenaBytes()) << " bytes ("
       << readableBytes(program.deviceArenaBytes()) << "), "
       << liveness.moments.size() << " launches. Offsets are bytes from its "
       << "start; a\n// buffer is alive from launch a up to launch b, [a, b)."
       << "\n\n";
  }

  LogicalResult printKernelBodies() {
    for (auto kernel : module.getOps<mem::KernelOp>()) {
      KernelBody &body = bodies.emplace_back();
      body.name = kernel.getSymName().str();
      llvm::raw_string_ostream os(body.text);
      if (failed(printFusedBody(kernel, os)))
        return failure();
      os << "\n";
      pieceBodies.push_back(options.backend == Backend::Cpu
                                ? canonicalBody(body.name, body.text)
                                : KernelBody{body.name, body.text});
      nameInPiece[body.name] = pieceBodies.back().name;
    }
    return success();
  }

  /// Declares the functions that make the kernels whose bodies are in other
  /// files.
  void printMakers(raw_ostream &os) {
    os << kMakersBegin;
    // Repeated declarations do no harm.
    for (const KernelBody &body : pieceBodies)
      os << "Kernel *make_" << body.name << "(const FusedParams &);\n";
    os << kMakersEnd;
  }

  std::vector<std::string> kernelFiles() const {
    std::vector<std::string> files;
    for (const std::vector<KernelBody> &group : groupBodies(pieceBodies)) {
      std::string makers;
      llvm::raw_string_ostream os(files.emplace_back());
      os << fusedInclude(options.backend)
         << "\nusing namespace tmc;\n\nnamespace {\n\n";
      for (const KernelBody &body : group) {
        os << body.text;
        makers += "Kernel *make_" + body.name +
                  "(const FusedParams &params) {\n  return new Fused<" +
                  body.name + ">(params);\n}\n";
      }
      os << "} // namespace\n\n" << kMakersBegin << makers << kMakersEnd;
    }
    return files;
  }

  /// `whole`: the bodies are in the same file.
  void printKernelObjects(raw_ostream &os, bool whole) {
    os << "/// One object per different kernel: what a library has to prepare "
          "is\n/// prepared once, at load.\nstruct Kernels {\n";
    for (auto &[what, name] : objects) {
      auto [type, arguments] = StringRef(what).split('{');
      if (!whole && type.consume_front("Fused<"))
        os << "  Generated " << name << "{make_"
           << nameInPiece.find(type.drop_back())->second << ", " << arguments
           << ";\n";
      else
        os << "  " << type << " " << name << "{" << arguments << ";\n";
    }
    os << "};\n\n"
       << "void visitKernels(void *kernels, void *context,\n"
          "                  void (*visit)(void *context, const char *name, "
          "Kernel &kernel)) {\n"
          "  auto &k = *static_cast<Kernels *>(kernels);\n";
    for (auto &[what, name] : objects)
      os << "  visit(context, " << cppString(name) << ", k." << name << ");\n";
    os << "}\n\n";
  }

  /// The local names that statements use, except the queues and kernels.
  std::string places() {
    std::string text = "  Stream &s = q.compute();\n";
    for (const SpaceInfo &space : kSpaces)
      if (space.hasAddresses &&
          (onDevice(space.kind) || program.arenaBytesIn(space.kind) > 0))
        text += "  auto " + addressIn(space.kind) + " = [arena = q.arena(" +
                literal(space.kind) +
                ")](int64_t offset) { return arena + offset; };\n";
    return text;
  }

  /// The function that evaluates a batch, or "".
  std::string evaluationText() {
    if (!evaluation.program)
      return "";
    std::string text = "/// The loss alone, without dropout.\n"
                       "void evaluate(Queues &q, void *kernels) {\n"
                       "  auto &k = *static_cast<Kernels *>(kernels);\n" +
                       places();
    llvm::raw_string_ostream os(text);
    evaluates = true;
    printBlock(evaluation.program.getBlock(), os, 1);
    evaluates = false;
    return text + "}\n\n";
  }

  /// Splits a long block into functions: a compiler takes more than twice the
  /// time for a function of twice the length.
  void printBlock(Block &block, raw_ostream &os, int depth) {
    auto prints = [](Operation &op) {
      return !isa<mem::BufferOp, mem::ViewOp, mem::PieceOp>(op);
    };
    if (llvm::count_if(block, prints) <= kStatementsOfPart)
      return printOps(llvm::make_range(block.begin(), block.end()), os, depth);
    const bool inLoop = isa<mem::LoopOp>(block.getParentOp());
    for (auto at = block.begin(); at != block.end();) {
      auto end = at;
      bool isInside = false; // Joined launches aren't divided.
      for (int64_t count = 0;
           end != block.end() && (isInside || count < kStatementsOfPart);
           ++end) {
        count += prints(*end);
        if (auto launch = dyn_cast<mem::LaunchOp>(*end))
          isInside = launch.getJoinsNext();
      }
      std::string text;
      llvm::raw_string_ostream part(text);
      printOps(llvm::make_range(at, end), part, 1);
      // The functions of a loop inside this part stand before it.
      const std::string name = "part_" + std::to_string(partCount++);
      parts += "__attribute__((noinline)) void " + name +
               "(Queues &q, Kernels &k" + (inLoop ? ", int64_t i" : "") +
               ") {\n" + places() + text + "}\n\n";
      os.indent(2 * depth) << name << (inLoop ? "(q, k, i);\n" : "(q, k);\n");
      at = end;
    }
  }

  void printOps(llvm::iterator_range<Block::iterator> ops, raw_ostream &os,
                int depth) {
    for (Operation &op : ops) {
      if (auto launch = dyn_cast<mem::LaunchOp>(op))
        printOrJoin(launch, os, depth);
      else if (auto fill = dyn_cast<mem::FillOp>(op))
        printFill(fill, os, depth);
      else if (auto copy = dyn_cast<mem::CopyOp>(op))
        printCopy(copy, os, depth);
      else if (auto record = dyn_cast<mem::RecordOp>(op))
        printEvent("record", record.getEngine(), record.getEvent(), os, depth);
      else if (auto wait = dyn_cast<mem::WaitOp>(op))
        printEvent("wait", wait.getEngine(), wait.getEvent(), os, depth);
      else if (isa<mem::DoneOp>(op)) {
        kernelOf.push_back("");
        os.indent(2 * depth) << "q.done(" << moment++ << ");\n";
      } else if (auto loop = dyn_cast<mem::LoopOp>(op)) {
        os.indent(2 * depth) << "for (int64_t i = 0; i < "
                             << int64_t(loop.getCount()) << "; ++i) {\n";
        printBlock(loop.getBlock(), os, depth + 1);
        os.indent(2 * depth) << "}\n";
      }
    }
  }

  /// The name of the object `what`; empty if the object is new.
  std::string &nameOfObject(const std::string &what) {
    auto [at, isNew] = objectIndex.try_emplace(what, objects.size());
    if (isNew)
      objects.emplace_back(what, "");
    return objects[at->second].second;
  }

  /// The object that runs `launch`.
  std::string objectFor(mem::LaunchOp launch) {
    std::string what = launch.getCallee().str();
    if (launch.getGenerated())
      what = "Fused<" + what + ">";
    else if (mem::engineOf(launch) == EngineKind::Host)
      what = "OnHost<" + what + ">";
    what += "{{";
    for (Attribute param : launch.getParams()) {
      auto pair = cast<ArrayAttr>(param);
      what += "." + cast<StringAttr>(pair[0]).str() + " = " + literal(pair[1]) +
              ", ";
    }
    int64_t scratch =
        launch.getScratch() ? sizeInBytes(launch.getScratch().getType()) : 0;
    what += ".scratchBytes = " + std::to_string(scratch) + "}}";
    std::string &name = nameOfObject(what);
    if (name.empty()) {
      name = launch.getGenerated() ? launch.getCallee().str() + "_kernel"
                                   : launch.getCallee().lower();
      if (mem::engineOf(launch) == EngineKind::Host)
        name += "_on_host";
      int64_t number = objectCount[name]++;
      if (!launch.getGenerated() || number > 0)
        name += "_" + std::to_string(number);
      priced.push_back({name, pricedAs(program, launch)});
    }
    return name;
  }

  void printComment(StringRef name, int64_t instance, ValueRange writes,
                    raw_ostream &os, int depth) {
    if (evaluates) {
      os.indent(2 * depth) << "// " << inComment(name) << "\n";
      return;
    }
    os.indent(2 * depth) << "// " << moment << " " << inComment(name);
    if (instance > 0)
      os << " (recomputed, " << instance << ")";
    StringRef separator = ": ";
    for (Value value : writes) {
      mem::BufferOp buffer = bufferOf(value);
      os << separator
         << readableBytes(sizeInBytes(buffer.getMemref().getType())) << " at "
         << placeOf(buffer);
      if (buffer.getPersistent())
        os << ", " << inComment(buffer.getName());
      else
        os << ", alive [" << spanOf[buffer].begin << ", " << spanOf[buffer].end
           << ")";
      separator = "; ";
    }
    os << ".\n";
  }

  void printEvent(StringRef verb, EngineKind engine, int64_t event,
                  raw_ostream &os, int depth) {
    os.indent(2 * depth) << "q." << verb << "(" << literal(engine) << ", "
                         << event << ");\n";
  }

  void printCopy(mem::CopyOp copy, raw_ostream &os, int depth) {
    printComment(copy.getOp(), copy.getInstance(), copy.getTarget(), os, depth);
    if (!evaluates)
      kernelOf.push_back("");
    int64_t bytes = sizeInBytes(copy.getSource().getType());
    os.indent(2 * depth) << "q.copy(" << moment << ", "
                         << literal(copy.getEngine()) << ", "
                         << offset(copy.getTarget()) << ", "
                         << offset(copy.getSource()) << ", " << bytes << ");\n";
    moment += !evaluates;
  }

  void printComment(mem::LaunchOp launch, raw_ostream &os, int depth) {
    printComment(launch.getOp(), launch.getInstance(), launch.getOutputs(), os,
                 depth);
  }

  /// Joined launches are printed with the last of them.
  void printOrJoin(mem::LaunchOp launch, raw_ostream &os, int depth) {
    joined.push_back(launch);
    if (launch.getJoinsNext())
      return;
    if (joined.size() == 1)
      printLaunch(launch, os, depth);
    else
      printJoined(os, depth);
    joined.clear();
  }

  void printJoined(raw_ostream &os, int depth) {
    const int64_t first = moment;
    for (mem::LaunchOp launch : joined) {
      printComment(launch, os, depth);
      ++moment;
    }
    os.indent(2 * depth) << joined[0].getCallee() << "::runJoined(s, {";
    for (auto [i, launch] : llvm::enumerate(joined)) {
      const std::string object = objectFor(launch);
      // Profiles find all of the time at the first object.
      kernelOf.push_back(i ? kernelOf.back() : object);
      os << (i ? "," : "") << "\n";
      os.indent(2 * depth + 4)
          << "{k." << object << ", " << operands(launch) << "}";
    }
    os << "});\n";
    for (int64_t at = first; at < moment; ++at)
      os.indent(2 * depth) << "q.launched(" << at << ");\n";
  }

  void printLaunch(mem::LaunchOp launch, raw_ostream &os, int depth) {
    printComment(launch, os, depth);
    const std::string object = objectFor(launch);
    if (!evaluates)
      kernelOf.push_back(object);
    const EngineKind engine = mem::engineOf(launch);
    os.indent(2 * depth);
    if (engine != EngineKind::Compute)
      os << "q.beside(" << moment << ", " << literal(engine) << ", k." << object
         << ", ";
    else
      os << "k." << object << ".run(s, ";
    os << operands(launch);
    if (launch.getAccumulate())
      os << (launch.getFirstWrites() ? ", i > 0" : ", true");
    os << ");\n";
    if (engine == EngineKind::Compute)
      printLaunched(os, depth);
    else
      moment += !evaluates;
  }

  void printFill(mem::FillOp fill, raw_ostream &os, int depth) {
    printComment("zeros", 0, fill.getTarget(), os, depth);
    std::string &name =
        nameOfObject("Fill{{.bytes = " +
                     std::to_string(sizeInBytes(fill.getTarget().getType())) +
                     ", .scratchBytes = 0}}");
    if (name.empty())
      name = "fill_" + std::to_string(objectCount["fill"]++);
    if (!evaluates)
      kernelOf.push_back(name);
    os.indent(2 * depth) << "k." << name << ".run(s, {}, {"
                         << address(fill.getTarget()) << "}, nullptr);\n";
    printLaunched(os, depth);
  }

  void printLaunched(raw_ostream &os, int depth) {
    if (!evaluates)
      os.indent(2 * depth) << "q.launched(" << moment++ << ");\n";
  }
};

} // namespace

FailureOr<StepText> tmc::emitStep(ModuleOp module, const EmitOptions &options) {
  // The evaluation's program and kernels are in a copy: the caller's stays.
  OwningOpRef<ModuleOp> own(cast<ModuleOp>(module->clone()));
  auto programs = own->getOps<mem::ProgramOp>();
  assert(!programs.empty() && "lowering makes the program");
  mem::ProgramOp program = *programs.begin();
  const Evaluation evaluation = addEvaluation(*own, program);
  return Emitter(*own, program, evaluation, options).run();
}
