#include "driver/calibrate/MoveProbe.h"

#include "compiler/emit/ProgramTable.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace llvm;
using namespace tmc;

namespace {

/// Offsets of scalars, the same in both memories.
constexpr int64_t kRate = 0, kStep = 256, kLoss = 512, kInput = 768;
constexpr int64_t kSum = 512; // In the host's memory.

/// Replaces "$NAME" in the text by the numbers in `values`; of several names
/// that match, the longest is replaced.
std::string filled(std::string text,
                   std::vector<std::pair<std::string, std::string>> values) {
  std::stable_sort(values.begin(), values.end(),
                   [](const auto &a, const auto &b) {
                     return a.first.size() > b.first.size();
                   });
  for (const auto &[name, value] : values)
    for (size_t at; (at = text.find("$" + name)) != std::string::npos;)
      text.replace(at, name.size() + 1, value);
  return text;
}

constexpr const char *kHeaders = "#include \"runtime/kernels/Kernels.h\"\n"
                                 "#include \"runtime/step/Program.h\"\n";

constexpr const char *kKernels = R"(
using namespace tmc;

namespace {

struct Kernels {
  Matmul product{{.lhs = DType::F32, .rhs = DType::F32, .out = DType::F32,
                  .batch = 1, .m = $SIZE, .n = $SIZE, .k = $SIZE,
                  .transposeLhs = false, .transposeRhs = true, .bias = false,
                  .tf32 = false, .scratchBytes = $SCRATCH}};
  OnHost<AdamW> update{{.param = DType::F32, .grad = DType::F32,
                        .moment = DType::F32, .count = $COUNT,
                        .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8,
                        .weightDecay = 0.01, .stream = 0,
                        .scratchBytes = $HOST_SCRATCH}};
};

void visitKernels(void *kernels, void *context,
                  void (*visit)(void *context, const char *name,
                                Kernel &kernel)) {
  auto &k = *static_cast<Kernels *>(kernels);
  visit(context, "product", k.product);
  visit(context, "update", k.update);
}

void run(Queues &q, void *kernels) {
  auto &k = *static_cast<Kernels *>(kernels);
  auto at = [arena = q.arena(space("device"))](int64_t offset) {
    return arena + offset;
  };
  auto host = [arena = q.arena(space("host"))](int64_t offset) {
    return arena + offset;
  };
)";

constexpr const char *kTensors = R"(
const TensorInfo tensors[] = {
    {.name = "kept", .type = DType::F32, .rank = 1, .dims = {$KEPT},
     .offset = $READ, .role = Role::Param, .init = Init::Normal,
     .initValue = 1, .space = space("file")},
    {.name = "lr", .type = DType::F32, .rank = 0, .dims = {}, .offset = $RATE,
     .role = Role::Scalar, .feed = Feed::LearningRate},
    {.name = "step", .type = DType::I64, .rank = 0, .dims = {},
     .offset = $STEP, .role = Role::Scalar, .feed = Feed::Step},
    {.name = "input", .type = DType::F32, .rank = 1, .dims = {1},
     .offset = $INPUT, .role = Role::Batch, .feed = Feed::Data},
    {.name = "loss", .type = DType::F32, .rank = 0, .dims = {},
     .offset = $LOSS, .role = Role::Output},
};

const StepProgram program = {
    .version = kProgramVersion,
    .backend = Backend::$BACKEND,
    .model = "moves",
    .fingerprint = "moves",
    .arenaBytes = $ARENAS,
    .eventCount = $EVENTS,
    .tensors = tensors,
    .tensorCount = 5,
    .constants = nullptr,
    .constantCount = 0,
    .launches = launches,
    .launchCount = $ROWS,
    .lossTensor = 4,
    .gradNormTensor = -1,
    .samplesPerStep = 1,
    .tokensPerStep = 0,
    .plan = {},
    .createKernels = [] { return static_cast<void *>(new Kernels); },
    .destroyKernels = [](void *k) { delete static_cast<Kernels *>(k); },
    .visitKernels = visitKernels,
    .run = run,
};

} // namespace

extern "C" const StepProgram *tmc_step_program() { return &program; }
const CompiledFor tmc_step_compiled_for = {"$COMPILED_FOR", kInstructions};
)";

/// Prints the list of calls and the table beside it: one row per piece, because
/// a step's queues are as long as its table.
class ProbePrinter {
public:
  ProbePrinter(const Target &target, const MoveWork &work)
      : target(target), work(work) {}

  std::string print() {
    // The scalars of the updates come first; nothing else has to wait.
    copy(infoOf(engine("d2h")), kRate, kRate, 4);
    copy(infoOf(engine("d2h")), kStep, kStep, 8);
    calls << "  q.record(engine(\"d2h\"), 0);\n"
             "  q.wait(engine(\"host\"), 0);\n";
    int64_t most = 0;
    for (auto [engine, count] : work.pieces)
      if (engine.kind != EngineKind::Compute)
        most = std::max(most, count);
    // All queues fill at about the same time.
    for (int64_t i = 0; i < most; ++i)
      for (auto [engine, count] : work.pieces) {
        if (i < count && engine.copies)
          transfer(engine, i);
        else if (i < count && engine.kind == EngineKind::Host)
          update();
      }
    for (int64_t i = 0; i < work.pieces[EngineKind::Compute]; ++i)
      product();
    int event = 0;
    for (auto [engine, count] : work.pieces)
      if (engine.kind != EngineKind::Compute) {
        ++event;
        calls << formatv("  q.record({0}, {1});\n"
                         "  q.wait(engine(\"compute\"), {1});\n",
                         literal(engine.kind), event);
      }
    return whole(event + 1);
  }

private:
  const Target &target;
  const MoveWork &work;
  std::string callText, tableText;
  raw_string_ostream calls{callText}, table{tableText};
  int64_t rows = 0;

  /// A row of the table; returns its number. `bytes` are a kernel's,
  /// `movedBytes` are moved.
  int64_t row(EngineKind engine, int64_t bytes, int64_t movedBytes) {
    table << formatv("    {{.name = \"{0}\", .location = \"\", .writes = "
                     "nullptr, .writeCount = 0, .deaths = nullptr, "
                     ".deathCount = 0, .bytes = {1}, .engine = {2}, "
                     ".movedBytes = {3}},\n",
                     nameOf(engine), bytes, literal(engine), movedBytes);
    return rows++;
  }

  /// `to` and `from`: offsets in the spaces that the engine writes and reads.
  void copy(const EngineInfo &engine, int64_t to, int64_t from, int64_t bytes) {
    const int64_t number = row(engine.kind, 0, bytes);
    calls << formatv("  q.copy({0}, {1}, {2}, {3}, {4});\n", number,
                     literal(engine.kind), to, from, bytes);
  }

  void transfer(const EngineInfo &engine, int64_t i) {
    const int64_t bytes = i % MoveWork::kSmallEvery == 0 ? MoveWork::kSmallBytes
                                                         : work.largeBytes;
    const int64_t at = i % MoveWork::kBuffers * work.largeBytes;
    copy(engine, work.piecesAt(engine.kind, engine.writes) + at,
         work.piecesAt(engine.kind, engine.reads) + at, bytes);
  }

  void update() {
    const int64_t number = row(EngineKind::Host, work.updateBytes(), 0);
    auto array = [&](int i) {
      return "host(" + std::to_string(work.update() + i * work.largeBytes) +
             ")";
    };
    calls << formatv(
        "  q.beside({0}, engine(\"host\"), k.update, {{{1}, {2}, {3}, {4}, "
        "host({5}), host({6})}, {{{1}, {3}, {4}, host({7})}, "
        "host({8}));\n",
        number, array(0), array(1), array(2), array(3), kRate, kStep, kSum,
        work.hostScratch());
  }

  void product() {
    const int64_t number =
        row(EngineKind::Compute, MoveWork::productBytes(), 0);
    auto matrix = [&](int i) {
      return "at(" +
             std::to_string(work.factors() + i * MoveWork::productBytes() / 3) +
             ")";
    };
    calls << formatv("  k.product.run(q.compute(), {{{0}, {1}}, {{{2}}, "
                     "at({3}));\n  q.launched({4});\n",
                     matrix(0), matrix(1), matrix(2), work.scratch(), number);
  }

  std::string whole(int events) const {
    auto number = [](int64_t value) { return std::to_string(value); };
    return filled(
        (Twine(kHeaders) + kKernels + callText +
         "}\n\nconst LaunchInfo launches[] = {\n" + tableText + "};\n" +
         kTensors)
            .str(),
        {{"SIZE", number(MoveWork::kProduct)},
         {"SCRATCH", number(MoveWork::kScratchBytes)},
         {"COUNT", number(work.updateCount())},
         {"HOST_SCRATCH", number(MoveWork::kHostScratchBytes)},
         {"KEPT", number(work.buffersBytes() / 4)},
         {"READ", number(work.piecesAt(engine("file-read"), space("file")))},
         {"RATE", number(kRate)},
         {"STEP", number(kStep)},
         {"INPUT", number(kInput)},
         {"LOSS", number(kLoss)},
         {"BACKEND", target.backend == Backend::Cuda ? "Cuda" : "Cpu"},
         {"ARENAS", literal(work.arenaBytes())},
         {"EVENTS", number(events)},
         {"ROWS", number(rows)},
         {"COMPILED_FOR", target.compiledFor()}});
  }
};

} // namespace

std::string tmc::moveProbeText(const Target &target, const MoveWork &work) {
  return ProbePrinter(target, work).print();
}
