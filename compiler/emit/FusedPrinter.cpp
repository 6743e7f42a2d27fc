// FusedPrinter.cpp - a fused region as the text of one kernel body.

#include "compiler/emit/FusedPrinter.h"

#include "compiler/emit/FusedIndex.h"
#include "compiler/support/Escape.h"
#include "dialects/interfaces/Expressions.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

namespace {

Type elementOf(Value value) { return tensorType(value).getElementType(); }

const char *kindName(ReduceOp reduce) {
  switch (reduce.getKind()) {
  case ReduceKind::Sum:
    return "Sum";
  case ReduceKind::Max:
    return "Max";
  case ReduceKind::Min:
    return "Min";
  }
  llvm_unreachable("a kind of reduction");
}

/// The name in the model of an op or value, or "".
std::string locationName(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (std::string name = locationName(part); !name.empty())
        return name;
  return "";
}

/// Statements under construction, and the names of the values that they
/// compute.
struct Scope {
  std::string text;
  unsigned indent = 6;
  DenseMap<Value, std::string> names;

  void line(const Twine &statement) {
    text.append(indent, ' ');
    text += statement.str();
    text += '\n';
  }
};

/// True if the numbers of `value`, which are computed in f32, are numbers of
/// `narrow`.
bool isExactIn(Value value, Type narrow) {
  if (auto number = splatValue(value))
    return *number == 0;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<arith::ExtFOp>(op))
    return elementOf(op->getOperand(0)) == narrow;
  if (isa<arith::SelectOp>(op))
    return isExactIn(op->getOperand(1), narrow) &&
           isExactIn(op->getOperand(2), narrow);
  return isa<BroadcastOp, ReshapeOp>(op) &&
         isExactIn(op->getOperand(0), narrow);
}

/// Rounds the result of `op` to its type. Kernels compute in f32; a narrower
/// type rounds, so that a value is the same whether a kernel reads it from
/// memory or recomputes it.
std::string rounded(Operation *op, const std::string &expression) {
  Type element = elementOf(op->getResult(0));
  auto pointwise = dyn_cast<PointwiseOpInterface>(op);
  if (!isNarrowFloat(element) || (pointwise && !pointwise.roundsResult()))
    return expression;
  if (isa<arith::TruncFOp>(op) && isExactIn(op->getOperand(0), element))
    return expression;
  return "rounded<" + storageType(element).str() + ">(" + expression + ")";
}

size_t indexOf(ArrayRef<ReduceOp> list, ReduceOp reduce) {
  return llvm::find(list, reduce) - list.begin();
}

std::string orZero(const std::string &text) {
  return text.empty() ? "0" : text;
}

std::string iota(Operation *op, const std::string &position) {
  Type element = elementOf(op->getResult(0));
  if (element.isInteger(64))
    return position;
  return std::string("convert<") +
         (isa<FloatType>(element) ? "float" : "int32_t") + ">(" + position +
         ")";
}

/// The index of an op's stream among the kernel's streams.
size_t streamOf(Block &block, RandomOp random) {
  size_t number = 0;
  for (auto other : block.getOps<RandomOp>()) {
    if (other == random)
      break;
    ++number;
  }
  return number;
}

class FusedPrinter {
public:
  FusedPrinter(llvm::raw_ostream &os, StringRef name, Block &block,
               const FusedPlan &plan)
      : os(os), name(name), block(block), plan(plan) {
    for (auto [i, value] : llvm::enumerate(plan.kept))
      slotOf[value] = i;
    for (Operation &op : block.without_terminator()) {
      auto reduction = plan.reductions.find(&op);
      if (reduction == plan.reductions.end())
        continue;
      auto reduce = cast<ReduceOp>(op);
      if (reduction->second == Reduction::Column)
        columnSums.push_back(reduce);
      else if (reduction->second == Reduction::Total)
        totals.push_back(reduce);
    }
  }

  void print(StringRef comment) {
    const FusedShape &shape = plan.shape;
    os << "/// " << inComment(comment) << ": " << shape.rows << " rows of "
       << shape.cols << ".\n";
    os << "struct " << name << " {\n";
    os << "  static constexpr const char *name = " << cppString(name) << ";\n";
    os << "  static constexpr tmc::FusedShape shape{.rows = " << shape.rows
       << ", .cols = " << shape.cols;
    if (shape.wholeRows)
      os << ", .wholeRows = true";
    if (shape.columnSums)
      os << ", .columnSums = " << shape.columnSums;
    if (shape.totals)
      os << ", .totals = " << shape.totals;
    if (shape.finish)
      os << ", .finish = true";
    if (shape.kept)
      os << ", .kept = " << shape.kept;
    os << "};\n";
    if (shape.columnSums + shape.totals > 0) {
      printKinds("ColumnSums", columnSums);
      printKinds("Totals", totals);
    }
    printMembers();
    printRow();
    if (shape.finish)
      printFinish();
    os << "};\n";
  }

private:
  llvm::raw_ostream &os;
  StringRef name;
  Block &block;
  const FusedPlan &plan;
  DenseMap<Value, unsigned> slotOf;
  SmallVector<ReduceOp> columnSums, totals;
  DenseMap<Value, std::string> valueNames;
  unsigned counter = 0;
  /// The function under construction: values that are computed once per row.
  Scope row;
  bool inFinish = false;
  unsigned pass = 0;
  /// Kept values that an earlier pass has already made.
  DenseSet<Value> made;

  ValueRange results() { return block.getTerminator()->getOperands(); }

  /// A caller that recomputes only some results passes null for the others.
  std::string ifWanted(unsigned result) {
    return results().size() > 1 ? llvm::formatv("if (out{0}) ", result).str()
                                : "";
  }

  std::string nameOf(Value value) {
    std::string &known = valueNames[value];
    if (known.empty())
      known = value.getDefiningOp()->getName().stripDialect().str() +
              std::to_string(counter++);
    return known;
  }

  //===--------------------------------------------------------------------===//
  // Members
  //===--------------------------------------------------------------------===//

  void printMembers() {
    auto member = [&](Value value, const Twine &memberName,
                      const char *prefix) {
      os << "  " << prefix << storageType(elementOf(value)) << " *"
         << memberName << "; // ";
      llvm::interleave(tensorType(value).getShape(), os, "x");
      std::string origin = locationName(value.getLoc());
      os << (tensorType(value).getRank() ? "" : "scalar")
         << (origin.empty() ? "" : " " + inComment(origin)) << ".\n";
    };
    for (BlockArgument argument : block.getArguments())
      member(argument, "in" + Twine(argument.getArgNumber()), "const ");
    for (auto [i, value] : llvm::enumerate(results()))
      member(value, "out" + Twine(i), "");
    size_t streams = llvm::range_size(block.getOps<RandomOp>());
    for (size_t i = 0; i < streams; ++i)
      os << "  uint32_t stream" << i << ";\n";
    os << "\n  " << name
       << "(tmc::In in, tmc::Out out, const int64_t *streams)";
    const char *separator = "\n      : ";
    for (BlockArgument argument : block.getArguments()) {
      os << separator
         << llvm::formatv("in{0}(static_cast<const {1} *>(tmc::operand(in, "
                          "{0})))",
                          argument.getArgNumber(),
                          storageType(elementOf(argument)));
      separator = ",\n        ";
    }
    for (auto [i, value] : llvm::enumerate(results())) {
      os << separator
         << llvm::formatv("out{0}(static_cast<{1} *>(tmc::result(out, {0})))",
                          i, storageType(elementOf(value)));
      separator = ",\n        ";
    }
    for (size_t i = 0; i < streams; ++i)
      os << llvm::formatv(",\n        stream{0}(uint32_t(streams[{0}]))", i);
    os << " {\n    (void)in, (void)streams;\n  }\n\n";
  }

  void openFunction(StringRef function) {
    os << "  template <typename R, typename S>\n  TMC_HD void " << function
       << "(const R &row, const S &sums) const {\n"
       << "    using namespace tmc;\n    (void)row, (void)sums;\n";
    row = Scope();
    row.indent = 4;
  }
  void closeFunction() { os << row.text << "  }\n"; }

  /// The kinds of sums over rows.
  void printKinds(StringRef list, ArrayRef<ReduceOp> sums) {
    os << "  using " << list << " = tmc::Combine<";
    llvm::interleaveComma(
        sums, os, [&](ReduceOp reduce) { os << "tmc::" << kindName(reduce); });
    os << ">;\n";
  }

  /// Column 0 of this row of a part of an operand, or of all of it, as a
  /// pointer; `own` names the part.
  std::string rowPointer(const FusedAccess &access, const std::string &base,
                         const std::string &own) {
    std::string from = rowOffset(plan, access);
    if (from.empty())
      return base;
    std::string pointer = own + "_row";
    if (row.names.try_emplace(access.value, "").second ||
        row.text.find("*" + pointer + " ") == std::string::npos)
      row.line(llvm::formatv("auto *{0} = {1} + {2};", pointer, base, from));
    return pointer;
  }

  //===--------------------------------------------------------------------===//
  // Values
  //===--------------------------------------------------------------------===//

  /// `value`, which is the same for all columns, as a name in the row's scope.
  std::string once(Value value) {
    if (auto number = splatValue(value))
      return literalOf(elementOf(value), *number);
    if (auto known = row.names.find(value);
        known != row.names.end() && !known->second.empty())
      return known->second;
    Operation *op = value.getDefiningOp();
    std::string expression, name;
    if (auto load = plan.loads.find(value); load != plan.loads.end()) {
      std::string at = rowOffset(plan, load->second);
      expression = "row.load(in" + std::to_string(load->second.number) +
                   (at.empty() ? "" : " + " + at) + ")";
      name = op ? nameOf(value) : "x" + std::to_string(load->second.number);
    } else if (isTransparent(op)) {
      return once(op->getOperand(0));
    } else {
      name = nameOf(value);
      expression = rounded(op, onceExpression(op));
    }
    row.line("const auto " + name + " = " + expression + ";");
    row.names[value] = name;
    return name;
  }

  std::string onceExpression(Operation *op) {
    if (isa<IotaOp>(op))
      return iota(op, "int64_t(" + orZero(iotaOffset(op, true)) + ")");
    if (auto random = dyn_cast<RandomOp>(op))
      return drawsOf(random) + ".template at<1>(0)";
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      // Row reductions have names already; totals belong to the finish.
      return llvm::formatv("row.template total<{0}>(sums, {1})",
                           kindName(reduce), indexOf(totals, reduce));
    }
    auto text = [&](unsigned i) { return once(op->getOperand(i)); };
    return cast<PointwiseOpInterface>(op).getExpression({text, text});
  }

  /// The elements of an access, whose part of the row begins at `base`.
  std::string lanesOfAccess(const FusedAccess &access,
                            const std::string &base) {
    if (plan.isContiguous(access))
      return "c.load(" + base + ")";
    const Places places = Places::of(plan, access);
    if (std::string same = sameOffset(plan, places); !same.empty())
      return "c.loadSame(" + base + ", " + same + ")";
    return "c.gather(" + base + ", " + colOffset(plan, places) + ")";
  }

  /// True if a value is stored and not used otherwise. Then the store rounds
  /// it.
  static bool isOnlyStored(Value value) {
    return llvm::all_of(value.getUsers(), [](Operation *user) {
      return user->hasTrait<OpTrait::IsTerminator>();
    });
  }

  /// `value` in a pass over the columns.
  std::string lanes(Value value, Scope &scope) {
    if (auto number = splatValue(value))
      return "c.spread(" + literalOf(elementOf(value), *number) + ")";
    if (!plan.variesByCol(value))
      return "c.spread(" + once(value) + ")";
    if (auto known = scope.names.find(value); known != scope.names.end())
      return known->second;
    Operation *op = value.getDefiningOp();
    if (op && isTransparent(op))
      return scope.names[value] = lanes(op->getOperand(0), scope);
    auto slot = slotOf.find(value);
    std::string name, expression;
    if (auto load = plan.loads.find(value); load != plan.loads.end()) {
      const FusedAccess &access = load->second;
      const std::string number = std::to_string(access.number);
      name = op ? nameOf(value) : "x" + number;
      std::string base =
          rowPointer(access, "in" + number, op ? name : "in" + number);
      expression = lanesOfAccess(access, base);
    } else {
      name = nameOf(value);
      if (slot != slotOf.end() && made.contains(value) && !inFinish)
        expression = llvm::formatv("c.load(row.kept({0}))", slot->second);
      else
        expression = isOnlyStored(value)
                         ? lanesExpression(op, scope)
                         : rounded(op, lanesExpression(op, scope));
    }
    scope.line("const auto " + name + " = " + expression + ";");
    scope.names[value] = name;
    if (op && slot != slotOf.end() && !inFinish && !made.contains(value)) {
      scope.line(
          llvm::formatv("c.store(row.kept({0}), {1});", slot->second, name));
      madeNow.push_back(value);
    }
    return name;
  }
  SmallVector<Value> madeNow;

  std::string lanesExpression(Operation *op, Scope &scope) {
    if (isa<IotaOp>(op)) {
      std::string perRow = iotaOffset(op, true), perCol = iotaOffset(op, false);
      return iota(op, perCol +
                          (perRow.empty() ? "" : " + int64_t(" + perRow + ")"));
    }
    if (auto random = dyn_cast<RandomOp>(op))
      return "c.random(" + drawsOf(random) + ")";
    if (auto reduce = dyn_cast<ReduceOp>(op))
      return llvm::formatv("c.template total<{0}>(sums, {1})", kindName(reduce),
                           indexOf(columnSums, reduce));
    auto text = [&](unsigned i) { return lanes(op->getOperand(i), scope); };
    bool literalUsed = false;
    auto mixed = [&](unsigned i) {
      auto number = splatValue(op->getOperand(i));
      if (!number || literalUsed)
        return text(i);
      literalUsed = true; // One of them must have lanes.
      return literalOf(elementOf(op->getOperand(i)), *number);
    };
    return cast<PointwiseOpInterface>(op).getExpression({text, mixed});
  }

  /// Ops whose result has their operand's elements under another shape.
  bool isTransparent(Operation *op) {
    return isa<BroadcastOp, ReshapeOp>(op) ||
           (isa<ReduceOp>(op) && !plan.reductions.contains(op));
  }

  /// The row's, or the column's, share of the position along iota's dimension.
  std::string iotaOffset(Operation *op, bool byRow) {
    auto iota = cast<IotaOp>(op);
    // The dimension's atoms are adjacent in the place; the division removes the
    // inner ones.
    int64_t inner = 1;
    auto shape = tensorType(iota.getResult()).getShape();
    for (int64_t size : shape.drop_front(iota.getDim() + 1))
      inner *= size;
    std::string whole = byRow ? rowOffset(plan, iota.getResult())
                              : colOffset(plan, iota.getResult());
    bool varies = byRow ? plan.variesByRow(iota.getResult())
                        : plan.variesByCol(iota.getResult());
    if (!varies || whole.empty())
      return "";
    auto number = [&](int64_t x) {
      return byRow ? std::to_string(x) : "int64_t(" + std::to_string(x) + ")";
    };
    std::string text = "(" + whole + ")";
    if (inner != 1)
      text += " / " + number(inner);
    return "(" + text + " % " + number(shape[iota.getDim()]) + ")";
  }

  /// The name of a row's random numbers.
  std::string drawsOf(RandomOp random) {
    std::string draws = "draws_" + nameOf(random.getResult());
    if (row.text.find("Draws " + draws + "(") != std::string::npos)
      return draws;
    unsigned seed = cast<BlockArgument>(random.getSeed()).getArgNumber();
    unsigned samples = cast<BlockArgument>(random.getSamples()).getArgNumber();
    int64_t perSample = tensorType(random.getResult()).getNumElements() /
                        tensorType(random.getSamples()).getNumElements();
    std::string at = orZero(rowOffset(plan, random.getResult()));
    row.line(llvm::formatv("const int64_t at_{0} = {1};", draws, at));
    row.line(llvm::formatv("Draws {0}(in{1}, stream{2}, uint64_t(in{3}[at_{0} "
                           "/ {4}] * {4} + at_{0} % "
                           "{4}));",
                           draws, seed, streamOf(block, random), samples,
                           perSample));
    return draws;
  }

  //===--------------------------------------------------------------------===//
  // The row
  //===--------------------------------------------------------------------===//

  void printRow() {
    openFunction("row");
    inFinish = false;
    made.clear();
    for (pass = 0; pass + 1 < plan.passes; ++pass)
      printReducingPass();
    printStoringPass();
    closeFunction();
  }

  /// Prints a pass with all reductions whose inputs are known after `pass`
  /// passes.
  void printReducingPass() {
    SmallVector<ReduceOp> reductions;
    for (Operation &op : block.without_terminator()) {
      auto kind = plan.reductions.find(&op);
      if (kind != plan.reductions.end() && kind->second != Reduction::Column &&
          !isSumOfRowNumbers(&op) &&
          plan.level.lookup(op.getOperand(0)) == pass)
        reductions.push_back(cast<ReduceOp>(op));
    }
    if (reductions.empty())
      return;
    Scope scope;
    std::string kinds, returned;
    for (ReduceOp reduce : reductions) {
      kinds += (kinds.empty() ? "" : ", ") + std::string(kindName(reduce));
      returned +=
          (returned.empty() ? "" : ", ") + lanes(reduce.getInput(), scope);
    }
    std::string sums = "reduced" + std::to_string(pass);
    row.line(llvm::formatv("const auto {0} = row.template reduce<{1}>("
                           "[&](auto c) {{",
                           sums, kinds));
    row.text += scope.text;
    row.line("  return results(" + returned + ");");
    row.line("});");
    for (auto [i, reduce] : llvm::enumerate(reductions)) {
      std::string value = llvm::formatv("{0}[{1}]", sums, i);
      if (plan.reductions.lookup(reduce) == Reduction::Total) {
        row.line(llvm::formatv("row.template add<{0}>(sums.total({1}), {2});",
                               kindName(reduce), indexOf(totals, reduce),
                               value));
        continue;
      }
      std::string name = nameOf(reduce.getResult());
      row.line("const float " + name + " = " + rounded(reduce, value) + ";");
      row.names[reduce.getResult()] = name;
    }
    made.insert(madeNow.begin(), madeNow.end());
    madeNow.clear();
  }

  /// A total of one number per row needs no pass.
  bool isSumOfRowNumbers(Operation *op) {
    return plan.reductions.lookup(op) == Reduction::Total &&
           !(plan.typeAtoms(op->getOperand(0)) & plan.colMask());
  }

  void printStoringPass() {
    Scope scope;
    SmallVector<std::string> stores;
    for (auto [i, reduce] : llvm::enumerate(columnSums))
      stores.push_back(
          llvm::formatv("c.template add<{0}>(sums.column({1}), {2});",
                        kindName(reduce), i, lanes(reduce.getInput(), scope)));
    for (auto [i, reduce] : llvm::enumerate(totals))
      if (isSumOfRowNumbers(reduce))
        row.line(llvm::formatv("row.template add<{0}>(sums.total({1}), {2});",
                               kindName(reduce), i, once(reduce.getInput())));
    for (auto [part, store] : llvm::enumerate(plan.stores)) {
      const Value value = store.value;
      if (plan.isFinished(value))
        continue;
      std::string out = "out" + std::to_string(store.number);
      const std::string wanted = ifWanted(store.number);
      if (plan.colMask() && !(plan.typeAtoms(value) & plan.colMask())) {
        std::string number = once(value), at = rowOffset(plan, value);
        row.line(wanted + "row.store(" + out + (at.empty() ? "" : " + " + at) +
                 ", " + number + ");");
        continue;
      }
      std::string text = lanes(value, scope);
      std::string from = rowOffset(plan, store), to = out;
      if (!from.empty()) {
        const bool isPart = results()[store.number] != value;
        to += (isPart ? "_" + std::to_string(part) : "") + "_row";
        row.line(llvm::formatv("auto *{0} = {1} + {2};", to, out, from));
      }
      const bool isRounded = elementOf(value).isBF16() && !isOnlyStored(value);
      stores.push_back(wanted + (isRounded ? "c.storeRounded(" : "c.store(") +
                       to + ", " + text + ");");
    }
    printPass(scope, stores);
  }

  void printPass(Scope &scope, ArrayRef<std::string> stores) {
    if (stores.empty())
      return;
    row.line("row.each([&](auto c) {");
    row.text += scope.text;
    for (const std::string &store : stores)
      row.line("  " + store);
    row.line("});");
  }

  //===--------------------------------------------------------------------===//
  // The finish
  //===--------------------------------------------------------------------===//

  void printFinish() {
    openFunction("finish");
    inFinish = true;
    Scope scope;
    SmallVector<std::string> stores;
    for (const FusedAccess &store : plan.stores) {
      const Value value = store.value;
      if (!plan.isFinished(value))
        continue;
      std::string out = "out" + std::to_string(store.number);
      const std::string wanted = ifWanted(store.number);
      if (plan.typeAtoms(value) & plan.colMask())
        stores.push_back(wanted + "c.store(" + out + ", " +
                         lanes(value, scope) + ");");
      else
        row.line(wanted + "row.store(" + out + ", " + once(value) + ");");
    }
    printPass(scope, stores);
    closeFunction();
  }
};

} // namespace

void tmc::printFused(llvm::raw_ostream &os, StringRef name, Block &block,
                     const FusedPlan &plan, StringRef comment) {
  FusedPrinter(os, name, block, plan).print(comment);
}
