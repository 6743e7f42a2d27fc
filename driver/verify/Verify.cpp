#include "driver/verify/Verify.h"

#include "compiler/emit/StepInterface.h"
#include "compiler/reference/Interpreter.h"
#include "compiler/support/FileWords.h"
#include "dialects/nn/NN.h"
#include "driver/pipeline/Dialects.h"
#include "driver/pipeline/Messages.h"
#include "driver/pipeline/OutputDirectory.h"
#include "driver/verify/Arguments.h"
#include "driver/verify/CompiledStep.h"
#include "driver/verify/GivenValues.h"
#include "driver/verify/WholeStep.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cmath>
#include <random>

using namespace mlir;
using namespace tmc;
using reference::Tensor;
using train::TrainDialect;

double Deviation::error() const {
  if (difference == 0)
    return 0;
  double error = difference / scale;
  return std::isnan(error) ? HUGE_VAL : error;
}

namespace {

/// The draws of one step that may be undecided. A large step has so many values
/// that rounding decides some of them in every draw.
constexpr int kDraws = 5, kDrawsOfLarge = 1;
/// The number of interpretations with changed inputs that test whether a draw
/// is decided, and the relative size of the change.
constexpr int kTrials = 6;
constexpr double kChange = 0x1p-20;
/// Changed inputs must explain at least this share of a difference.
constexpr double kShare = 0.125;
/// A tensor's scale is at least this share of the norm of its kind.
constexpr double kKindShare = 0.1;
/// An optimizer state is drawn with at least this share of its kind's size.
constexpr double kSlotShare = 1e-3;

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double normOf(const Tensor &tensor) {
  double sum = 0;
  for (int64_t i = 0; i < tensor.size(); ++i)
    sum += tensor.number(i) * tensor.number(i);
  return std::sqrt(sum);
}

/// The share of codes that may differ by one: if a moment lies half way between
/// two codes, rounding decides.
constexpr double kNextCodes = 0x1p-8;

/// For codes in 8 bits, which are unsigned although their type is signed.
double codeDifferenceOf(const Tensor &a, const Tensor &b) {
  double sum = 0, next = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    double d = double(uint8_t(a.ints[i])) - uint8_t(b.ints[i]);
    (std::abs(d) == 1 ? next : sum) += d * d;
  }
  return std::sqrt(next <= kNextCodes * double(a.size()) ? sum : sum + next);
}

double differenceOf(const Tensor &a, const Tensor &b) {
  if (a.element == reference::Element::I8)
    return codeDifferenceOf(a, b);
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    double d = a.number(i) - b.number(i);
    sum += d * d;
  }
  return std::sqrt(sum);
}

/// The identity in the text of a step; "" if it has none.
std::string identityOfFile(const std::string &path) {
  auto text = llvm::MemoryBuffer::getFile(path);
  return text ? identityIn((*text)->getBuffer().take_front(4096).str()) : "";
}

bool isGood(const Deviation &d) { return d.error() <= d.allowed; }

/// True if one more interpretation of the step is cheap enough.
bool isSmall(train::StepOp step) {
  constexpr int64_t kMostElements = int64_t(1) << 24;
  int64_t elements = 0;
  step.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(type))
        elements += tensor.getNumElements();
  });
  return elements <= kMostElements;
}

/// True if a step with codes differs only in tensors of one element. If
/// rounding moves a largest magnitude over a power of two, its block gets
/// other codes. Changed inputs seldom show that. The effect on a large tensor
/// is within the tolerance, but the effect on a norm or a loss may not be.
bool mayBeAScale(train::StepOp step, ArrayRef<Deviation> list) {
  bool hasCodes = false;
  step.walk([&](Operation *op) {
    hasCodes |=
        isa<nn::QuantizeOp, nn::QuantizeBothOp, nn::QuantizeBlocksOp>(op);
  });
  return hasCodes && llvm::all_of(list, [](const Deviation &d) {
           return isGood(d) || d.elements == 1;
         });
}

/// The name and the kind of result `index`.
std::pair<std::string, std::string> resultOf(train::StepOp step,
                                             unsigned index) {
  std::optional<unsigned> arg = train::updatedArg(step, index);
  if (!arg)
    return {train::resultName(step, index).str(),
            train::lossResult(step) == index ? "loss" : "output"};
  std::string name = train::argName(step, *arg).str();
  if (auto slot =
          step.getArgAttrOfType<StringAttr>(*arg, TrainDialect::kSlot)) {
    StringRef suffix = name;
    suffix.consume_front(slot.getValue());
    suffix.consume_front(".");
    return {name, suffix.str()};
  }
  return {name, train::roleOf(step, *arg) == train::Role::Param ? "parameter"
                                                                : "state"};
}

bool hasSlots(train::StepOp step, StringRef param) {
  for (unsigned i = 0; i < step.getNumArguments(); ++i)
    if (auto slot = step.getArgAttrOfType<StringAttr>(i, TrainDialect::kSlot))
      if (slot.getValue() == param)
        return true;
  return false;
}

void setScales(std::vector<Deviation> &list) {
  std::map<std::string, double> squares;
  for (const Deviation &d : list)
    squares[d.kind] += d.norm * d.norm;
  for (Deviation &d : list)
    d.scale = std::max(d.norm, kKindShare * std::sqrt(squares[d.kind]));
}

/// Fails if rounding explains so large a difference that the comparison says
/// nothing.
Expected<void> checkCoarsest(const std::string &directory,
                             const std::vector<Deviation> &list) {
  for (const Deviation &d : list)
    if (d.error() > kVerifyCoarsest) {
      std::string text;
      llvm::raw_string_ostream(text)
          << "nothing can be said of '" << directory
          << "': in each draw rounding alone decides a value, and '" << d.name
          << "' is off by " << llvm::format("%.2g", d.error())
          << ", as changing the inputs' last bits makes it";
      return Failure::input(text).note(
          "--weights F.safetensors gives it a model's own");
    }
  return {};
}

class Verifier {
public:
  explicit Verifier(const VerifyOptions &options) : options(options) {}

  Expected<VerifyReport> run() {
    TMC_TRY(open());
    TMC_TRY(compareSteps());
    if (report.agrees && isSmall(step))
      TMC_TRY(compareEdges());
    llvm::stable_sort(report.deviations, [](const auto &a, const auto &b) {
      return std::pair(a.error() > a.allowed, a.error()) >
             std::pair(b.error() > b.allowed, b.error());
    });
    return std::move(report);
  }

private:
  const VerifyOptions &options;
  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;
  train::StepOp step;
  std::unique_ptr<CompiledStep> compiled;
  GivenValues given;
  VerifyReport report;
  int64_t number = 0; ///< Steps that the library has run.
  /// The interpreter's last error message, if it failed.
  std::string said;

  //===--------------------------------------------------------------------===//
  // The two steps
  //===--------------------------------------------------------------------===//

  Expected<void> open() {
    const std::string name = stepNameIn(options.directory);
    const std::string text = options.directory + "/step.mlir",
                      binary = options.directory + "/" + libraryOf(name);
    for (const std::string &path : {text, binary}) {
      if (llvm::sys::fs::exists(path))
        continue;
      const std::vector<std::string> meshes =
          OutputDirectory::meshFoldersIn(options.directory);
      return Failure::input("'" + options.directory +
                            "' isn't a compiled step: it has no " +
                            llvm::StringRef(path).rsplit('/').second.str())
          .note(meshes.empty()
                    ? "tmc compile MODEL -o DIR makes one"
                    : "'" + options.directory + "/" + meshes.front() +
                          "' is one for some number of ranks");
    }
    DialectRegistry registry;
    registerAllDialects(registry);
    context = std::make_unique<MLIRContext>(registry,
                                            MLIRContext::Threading::DISABLED);
    context->loadAllAvailableDialects();
    context->printOpOnDiagnostic(false);
    context->getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      if (said.empty())
        said = diagnostic.str();
      return success();
    });
    module = parseSourceFile<ModuleOp>(text, context.get());
    if (!module)
      return Failure::input("'" + text + "' can't be read: " + said);
    auto steps = module->getOps<train::StepOp>();
    if (!llvm::hasSingleElement(steps))
      return Failure::input("'" + text + "' holds no training step");
    step = *steps.begin();
    makeWhole(step, meshOf(step));

    auto opened = CompiledStep::open(step, binary, name, options.directory,
                                     options.threads, options.seed);
    if (!opened)
      return std::move(opened.failure());
    compiled = std::move(*opened);
    if (compiled->library().identity() != identityOfFile(text))
      return Failure::input("'" + binary +
                            "' and step.mlir beside it are of "
                            "two compilations")
          .note("tmc compile MODEL -o DIR writes both again");
    TMC_TRY(compiled->values().check());
    for (int rank = 0; rank < compiled->ranks(); ++rank)
      compiled->library(rank).setLearningRate(kVerifyRate);
    report.ranks = compiled->ranks();
    const Expected<void> opens = given.open(options, step, *compiled);
    report.weights = given.weights();
    return opens;
  }

  RankTensors draw(const ArgumentDraw &how) {
    RankTensors drawn;
    for (int rank = 0; rank < compiled->ranks(); ++rank) {
      ArgumentDraw its = how;
      its.rank = compiled->mesh().place(tmc::Axis::Data, rank);
      its.tensorPlace = compiled->mesh().place(tmc::Axis::Tensor, rank);
      its.given = &given.of(rank);
      drawn.push_back(drawArguments(step, its));
    }
    return drawn;
  }

  Expected<std::vector<double>> runCompiled(const RankTensors &inputs) {
    double start = now();
    auto losses = compiled->run(inputs);
    report.stepSeconds += now() - start;
    return losses;
  }

  Expected<RankTensors>
  interpret(RankTensors inputs, bool roundsInputs = true,
            reference::Rounding rounding = reference::Rounding::Narrow) {
    reference::InterpreterOptions how;
    how.roundsInputs = roundsInputs;
    how.rounding = rounding;
    double start = now(), shown = start;
    int64_t ops = 0, all = 0;
    step.walk([&](Operation *) { ++all; });
    if (options.progress)
      how.observe = [&](Operation *, ArrayRef<Tensor>) {
        ++ops;
        if (now() - shown < 1)
          return;
        shown = now();
        showProgress("interpreting step " + std::to_string(number) + ": " +
                     std::to_string(ops) + " of " + std::to_string(all) +
                     " ops");
      };
    said.clear();
    auto results = reference::interpretRanks(step, compiled->mesh(),
                                             std::move(inputs), how);
    report.interpreterSeconds += now() - start;
    if (options.progress)
      showProgress("");
    if (failed(results))
      return Failure::input("the reference can't run the step: " + said);
    return std::move(*results);
  }

  //===--------------------------------------------------------------------===//
  // The comparison
  //===--------------------------------------------------------------------===//

  Expected<void> compareSteps() {
    std::map<unsigned, double> slotScale;
    int draws = isSmall(step) ? kDraws : kDrawsOfLarge;
    for (int64_t k = 0; k < options.steps; ++k) {
      for (int drawn = 1;; ++drawn) {
        ++number;
        TMC_TRY(given.readBatch(number));
        ArgumentDraw how{options.seed, number, slotScale};
        std::map<unsigned, double> nextScale;
        RankTensors expected;
        auto compared = compareStep(how, nextScale, expected);
        if (!compared)
          return std::move(compared.failure());
        bool good = llvm::all_of(*compared, isGood);
        if (!good) {
          TMC_TRY(allowRounding(how, expected, *compared));
          // Another draw may be exact; if no draw is, the last one counts with
          // the error that rounding explains.
          good = llvm::all_of(*compared, isGood);
          if (good && drawn == draws)
            TMC_TRY(checkCoarsest(options.directory, *compared));
          if ((good || mayBeAScale(step, *compared)) && drawn < draws) {
            ++report.undecided;
            continue;
          }
          // If five draws of a step decide nothing, five draws of the next step
          // won't either: one is enough.
          if (drawn == kDraws)
            draws = 1;
        }
        llvm::append_range(report.deviations, *compared);
        report.agrees &= good;
        ++report.steps;
        if (k == 0)
          slotScale = std::move(nextScale);
        break;
      }
      if (!report.agrees)
        break;
    }
    return {};
  }

  /// If values are large or equal, and the step computes with numbers in the
  /// range of f32, its results must be finite. Their accuracy isn't checked,
  /// because sums of such values cancel.
  Expected<void> compareEdges() {
    for (double largest : {1e4, 1e2}) {
      ++number;
      RankTensors inputs = draw(ArgumentDraw{options.seed, number, {}});
      for (SmallVector<Tensor> &its : inputs)
        drawEdges(step, its, options.seed ^ uint64_t(number), largest);
      if (auto losses = runCompiled(inputs); !losses)
        return std::move(losses.failure());
      bool overflows = false;
      reference::InterpreterOptions how;
      how.observe = [&](Operation *, ArrayRef<Tensor> results) {
        constexpr double kMost = 1e37; // Well below f32's largest number.
        for (const Tensor &result : results)
          for (double value : result.floats)
            overflows |= !(std::abs(value) <= kMost);
      };
      said.clear();
      double start = now();
      auto expected = reference::interpretRanks(step, compiled->mesh(),
                                                std::move(inputs), how);
      report.interpreterSeconds += now() - start;
      if (failed(expected) || overflows)
        continue;
      ++report.edges;
      for (int rank = 0; rank < compiled->ranks(); ++rank)
        TMC_TRY(readEdges(rank, (*expected)[rank]));
      break;
    }
    return {};
  }

  Expected<void> readEdges(int rank, ArrayRef<Tensor> expected) {
    for (auto [i, want] : llvm::enumerate(expected)) {
      auto [name, kind] = resultOf(step, i);
      if (!want.isFloat())
        continue;
      auto bytes = compiled->readResult(i, rank);
      if (!bytes)
        return std::move(bytes.failure());
      Tensor got = Tensor::fromBytes(want.element, want.shape, bytes->data());
      if (llvm::all_of(got.floats, [](double x) { return std::isfinite(x); }))
        continue;
      report.agrees = false;
      report.deviations.push_back({number, name, kind, want.size(), HUGE_VAL,
                                   normOf(want), 1, kVerifyTolerance});
    }
    return {};
  }

  /// Runs both on one draw. `slotScale` gets the sizes of states for the next
  /// draw.
  Expected<std::vector<Deviation>>
  compareStep(const ArgumentDraw &how, std::map<unsigned, double> &slotScale,
              RankTensors &expected) {
    RankTensors inputs = draw(how);
    auto losses = runCompiled(inputs);
    if (!losses)
      return std::move(losses.failure());
    Expected<RankTensors> interpreted = interpret(std::move(inputs));
    if (!interpreted)
      return std::move(interpreted.failure());
    expected = std::move(*interpreted);
    std::vector<Deviation> list;
    std::vector<unsigned> results; // Of the step, per deviation.
    for (unsigned i = 0; i < step.getNumResults(); ++i) {
      if (std::optional<unsigned> arg = train::updatedArg(step, i);
          arg && train::copiedArg(step, *arg))
        continue; // `checkCopies` compares it with its original.
      std::optional<Deviation> farthest;
      for (int rank = 0; rank < compiled->ranks(); ++rank) {
        auto its = compareResult(i, rank, how.number, (*losses)[rank],
                                 expected[rank][i]);
        if (!its)
          return std::move(its.failure());
        // A difference that is no number counts as the largest.
        if (!farthest || std::isnan(its->difference) ||
            its->difference > farthest->difference)
          farthest = std::move(*its);
      }
      list.push_back(std::move(*farthest));
      results.push_back(i);
    }
    setScales(list);
    scaleSlots(list, results, slotScale);
    // Rounding decides the first update of an adaptive rule.
    if (how.slotScale.empty())
      llvm::erase_if(list, [&](const Deviation &d) {
        return d.kind == "parameter" && hasSlots(step, d.name);
      });
    for (int rank = 0; rank < compiled->ranks(); ++rank) {
      TMC_TRY(checkFrozen(how, rank));
      TMC_TRY(checkCopies(compiled->values(rank)));
    }
    return list;
  }

  /// Result `i` of a rank, whose step said `loss`. The scale isn't set.
  Expected<Deviation> compareResult(unsigned i, int rank, int64_t number,
                                    double loss, const Tensor &want) {
    auto [name, kind] = resultOf(step, i);
    auto bytes = compiled->readResult(i, rank);
    if (!bytes)
      return std::move(bytes.failure());
    if (int64_t(bytes->size()) !=
        want.size() * reference::elementBytes(want.element))
      return Failure::input("the result '" + name + "' has " +
                            std::to_string(bytes->size()) + " bytes");
    Tensor got = Tensor::fromBytes(want.element, want.shape, bytes->data());
    if (kind == "loss" && !std::isfinite(want.number(0)))
      return Failure::input("the reference's loss isn't finite on " +
                            std::string(given.hasData() ? "these values"
                                                        : "random values"))
          .note("--weights F.safetensors gives it a model's own, --data "
                "NAME=FILE inputs of its domain");
    if (kind == "loss" && got.number(0) != loss)
      return Failure::input("the step says a loss of " + std::to_string(loss) +
                            " and holds one of " +
                            std::to_string(got.number(0)));
    return Deviation{number,
                     name,
                     kind,
                     want.size(),
                     differenceOf(got, want),
                     normOf(want),
                     0,
                     kVerifyTolerance};
  }

  /// The size of each optimizer state among this step's results; `list[i]` is
  /// of the result `results[i]`.
  void scaleSlots(const std::vector<Deviation> &list,
                  const std::vector<unsigned> &results,
                  std::map<unsigned, double> &scale) {
    std::map<std::string, std::pair<double, double>> kinds; // squares, elements
    for (const Deviation &d : list) {
      kinds[d.kind].first += d.norm * d.norm;
      kinds[d.kind].second += d.elements;
    }
    for (auto [d, result] : llvm::zip_equal(list, results)) {
      std::optional<unsigned> arg = train::updatedArg(step, result);
      if (!arg || !step.getArgAttr(*arg, TrainDialect::kSlot))
        continue;
      auto [squares, elements] = kinds[d.kind];
      scale[*arg] = std::max(d.norm / std::sqrt(double(d.elements)),
                             kSlotShare * std::sqrt(squares / elements));
    }
  }

  /// Checks that tensors without an update keep every bit.
  Expected<void> checkFrozen(const ArgumentDraw &how, int rank) {
    llvm::DenseSet<unsigned> updated;
    for (unsigned i = 0; i < step.getNumResults(); ++i)
      if (std::optional<unsigned> arg = train::updatedArg(step, i))
        updated.insert(*arg);
    SmallVector<Tensor> inputs;
    for (unsigned i = 0; i < step.getNumArguments(); ++i) {
      if (train::roleOf(step, i) != train::Role::Param || updated.count(i))
        continue;
      if (inputs.empty())
        inputs = draw(how)[rank];
      auto got = compiled->readArgument(i, rank);
      if (!got)
        return std::move(got.failure());
      std::vector<char> want(got->size());
      inputs[i].toBytes(want.data());
      if (want != *got)
        return Failure::input("the step changes '" +
                              train::argName(step, i).str() +
                              "', which it doesn't update");
    }
    return {};
  }

  /// Checks that each copy of a parameter is the rounded parameter, bit by bit.
  Expected<void> checkCopies(const StepValues &values) {
    for (unsigned i = 0; i < step.getNumArguments(); ++i) {
      std::optional<unsigned> param = train::copiedArg(step, i);
      if (!param)
        continue;
      auto type = cast<RankedTensorType>(step.getArgumentTypes()[*param]);
      std::string name = train::argName(step, i).str(),
                  copied = train::argName(step, *param).str();
      auto original = values.readArgument(*param), got = values.readArgument(i);
      if (!original || !got)
        return std::move(original ? got.failure() : original.failure());
      Tensor like(cast<RankedTensorType>(step.getArgumentTypes()[i]));
      like.floats =
          Tensor::fromBytes(reference::elementOf(type.getElementType()),
                            type.getShape(), original->data())
              .floats;
      like.roundToElement();
      std::vector<char> want(got->size());
      like.toBytes(want.data());
      if (want != *got)
        return Failure::input("the step's '" + name + "' isn't '" + copied +
                              "', rounded");
    }
    return {};
  }

  /// Changes inputs by a few roundings.
  void changeInputs(SmallVector<Tensor> &inputs, std::mt19937_64 &random) {
    std::uniform_real_distribution<double> change(-kChange, kChange);
    for (auto [i, input] : llvm::enumerate(inputs))
      if (!isFed(step, i))
        for (double &value : input.floats)
          value *= 1 + change(random);
    roundCopies(step, inputs);
  }

  /// If tensors differ by more than the tolerance, raises their tolerance to
  /// the difference that rounding explains: changes of the inputs by a few
  /// roundings, or rounding each result.
  Expected<void> allowRounding(const ArgumentDraw &how,
                               const RankTensors &expected,
                               std::vector<Deviation> &list) {
    llvm::StringMap<Deviation *> open;
    for (Deviation &d : list)
      if (!isGood(d))
        open[d.name] = &d;
    auto allow = [&](const RankTensors &moved, const RankTensors &from) {
      for (unsigned i = 0; i < step.getNumResults(); ++i) {
        auto it = open.find(resultOf(step, i).first);
        if (it == open.end())
          continue;
        Deviation &d = *it->second;
        double largest = 0;
        for (auto [its, before] : llvm::zip_equal(moved, from))
          largest = std::max(largest, differenceOf(its[i], before[i]));
        double explained = largest / kShare / d.scale;
        d.allowed = std::max(d.allowed, explained);
        if (isGood(d))
          open.erase(it);
      }
    };
    std::mt19937_64 random(how.number);
    for (int trial = 0; trial < kTrials && !open.empty(); ++trial) {
      RankTensors inputs = draw(how);
      const auto before = random;
      for (SmallVector<Tensor> &its : inputs) {
        random = before; // All ranks have the same parameters.
        changeInputs(its, random);
      }
      auto moved = interpret(inputs, /*roundsInputs=*/false);
      if (!moved)
        return std::move(moved.failure());
      allow(*moved, expected);
      // Changed inputs may move nearly equal numbers together, so that their
      // difference or sum doesn't show the error; rounding each result does.
      auto rounded = interpret(std::move(inputs), /*roundsInputs=*/false,
                               reference::Rounding::ToType);
      if (!rounded)
        return std::move(rounded.failure());
      allow(*rounded, *moved);
    }
    return {};
  }
};

} // namespace

Expected<VerifyReport> tmc::verifyStep(const VerifyOptions &options) {
  return Verifier(options).run();
}
