// Writes.cpp - calls that write their operands, and the views of these.
//
//   base ──slice──> row ──t──> column        row.copy_(x):
//    └────select──> other
//                          row'  = x
//                          base' = base with row' in place of its slice
//                          column' = t(row'), other' = select(base')
//
// A write gives a new value to its operand. If another name of the same memory
// is read later, the new value moves up to the memory's first name, by the
// inverse of each view on the way, and the other views are made again from
// there. The next step reads stored tensors, so a write to one always moves up
// to it.

#include "frontends/torch/Importer.h"

#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/Scatter.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/torch/WrittenArguments.h"

#include <set>

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// "add" for "add_", and "__and__" for "__iand__".
static std::string withoutPlace(StringRef op) {
  if (op.ends_with("_") && !op.ends_with("__"))
    return op.drop_back().str();
  if (op.starts_with("__i") && op.ends_with("__") &&
      findOperator(("__" + op.drop_front(3)).str()))
    return ("__" + op.drop_front(3)).str();
  return op.str();
}

ImportFn tmc::torch_import::importerOf(const std::string &op, bool ofComplex) {
  return findOperator(withoutPlace(op), ofComplex);
}

/// The argument that states whether a normalization updates the given
/// statistics, which its schema doesn't mark; empty if `op` is no
/// normalization.
static StringRef flagOfStatistics(StringRef op) {
  if (op == "batch_norm" || op == "native_batch_norm" ||
      op == "_native_batch_norm_legit")
    return "training";
  return op == "instance_norm" ? "use_input_stats" : "";
}

bool tmc::torch_import::movesStatistics(const CallData &call) {
  StringRef flag = flagOfStatistics(call.op());
  const Arg *given = flag.empty() ? nullptr : call.argument(flag.str());
  return given && given->kind == Arg::Bool && given->integer;
}

std::vector<Write> tmc::torch_import::writesOf(const CallData &call) {
  SmallVector<StringRef> names;
  if (flagOfStatistics(call.op()).empty())
    names = writtenArguments(call.target);
  else if (movesStatistics(call))
    names = {"running_mean", "running_var"};
  std::vector<Write> writes;
  for (StringRef name : names) {
    const Arg *given = call.argument(name.str());
    if (!given && name == "self" && !call.arguments.empty())
      given = &call.arguments[0].second;
    if (!given)
      continue;
    if (given->kind == Arg::Tensor)
      writes.push_back({given->text, ""});
    for (const Arg &element : given->list)
      if (element.kind == Arg::Tensor)
        writes.push_back({element.text, ""});
  }
  std::vector<std::string> made = call.makes();
  if (made.size() == writes.size() && !movesStatistics(call))
    for (auto [write, result] : llvm::zip(writes, made))
      write.result = result;
  return writes;
}

const std::string &SharedNames::memoryOf(const std::string &name) const {
  auto found = memory.find(name);
  return found == memory.end() ? name : found->second;
}

const std::string &SharedNames::nameOf(const std::string &name) const {
  auto found = same.find(name);
  return found == same.end() ? name : found->second;
}

//===----------------------------------------------------------------------===//
// Values that share memory
//===----------------------------------------------------------------------===//

/// True if the exported tensor was row-major; nothing if the file doesn't say.
static std::optional<bool> isContiguous(const Program &program,
                                        const std::string &name) {
  auto found = program.tensors.find(name);
  if (found == program.tensors.end() ||
      found->second.strides.size() != found->second.dims.size())
    return std::nullopt;
  const TensorMeta &meta = found->second;
  int64_t stride = 1;
  for (size_t i = meta.dims.size(); i-- > 0;) {
    if (!meta.dims[i].symbol.empty())
      return std::nullopt;
    if (meta.dims[i].size != 1 && meta.strides[i] != stride)
      return false;
    stride *= meta.dims[i].size;
  }
  return true;
}

/// The relation of a call's result to its first argument.
enum class Sharing { Copy, View, Either };

static Sharing sharingOf(const Program &program, const CallData &call) {
  static const std::set<StringRef> views = {"view",
                                            "transpose",
                                            "permute",
                                            "expand",
                                            "expand_as",
                                            "slice",
                                            "select",
                                            "squeeze",
                                            "unsqueeze",
                                            "split",
                                            "t",
                                            "unbind",
                                            "chunk",
                                            "narrow",
                                            "alias",
                                            "detach",
                                            "unflatten",
                                            "split_with_sizes",
                                            "view_as",
                                            "numpy_T",
                                            "movedim",
                                            "as_strided",
                                            "broadcast_to",
                                            "diagonal",
                                            "linalg_diagonal",
                                            "unfold",
                                            "swapaxes",
                                            "swapdims",
                                            "moveaxis",
                                            "mT",
                                            "mH",
                                            "matrix_H",
                                            "adjoint",
                                            "tensor_split",
                                            "hsplit",
                                            "vsplit",
                                            "dsplit",
                                            "atleast_1d",
                                            "atleast_2d",
                                            "atleast_3d",
                                            "unsafe_chunk",
                                            "unsafe_split",
                                            "unsafe_split_with_sizes",
                                            "view_as_real",
                                            "view_as_complex",
                                            "real",
                                            "imag",
                                            "conj",
                                            "_conj"};
  // Copies if the memory isn't in order, or the type differs.
  static const std::set<StringRef> either = {
      "reshape", "flatten", "contiguous", "to", "reshape_as", "ravel"};
  std::string op = call.op();
  if (views.count(op))
    return Sharing::View;
  if (!either.count(op))
    return Sharing::Copy;
  const std::string &self = call.arguments[0].second.text;
  if (op == "to") {
    auto before = program.tensors.find(self);
    auto after = call.makes().size() == 1
                     ? program.tensors.find(call.makes()[0])
                     : program.tensors.end();
    if (before == program.tensors.end() || after == program.tensors.end())
      return Sharing::Either;
    return before->second.typeNumber == after->second.typeNumber
               ? Sharing::View
               : Sharing::Copy;
  }
  std::optional<bool> inOrder = isContiguous(program, self);
  if (inOrder == true)
    return Sharing::View;
  return inOrder == false && op == "contiguous" ? Sharing::Copy
                                                : Sharing::Either;
}

/// Finds the values that share memory, and the stored tensors that are written.
void TorchImporter::findWrites() {
  std::map<std::string, const InputSpec *> stored;
  for (const InputSpec &input : program.inputs)
    if (input.kind == InputSpec::Buffer || input.kind == InputSpec::Parameter)
      stored[input.value] = &input;
  for (auto [i, call] : llvm::enumerate(program.calls)) {
    std::vector<Write> writes = writesOf(call);
    for (const Write &write : writes) {
      if (!write.result.empty()) {
        shared.memory[write.result] = shared.memoryOf(write.value);
        shared.same[write.result] = shared.nameOf(write.value);
      }
      auto root = stored.find(shared.memoryOf(write.value));
      if (root == stored.end())
        continue;
      forward.mutated[root->second->target] = root->first;
      writer.try_emplace(root->second->target, i);
      lastRead[root->first] = program.calls.size(); // By the next step.
    }
    if (!writes.empty() || call.arguments.empty() ||
        call.arguments[0].second.kind != Arg::Tensor)
      continue;
    Sharing sharing = sharingOf(program, call);
    if (sharing == Sharing::Copy)
      continue;
    const std::string &self = call.arguments[0].second.text;
    for (const std::string &made : call.makes()) {
      shared.memory[made] = shared.memoryOf(self);
      shared.views[made] = {self, i, sharing == Sharing::View};
    }
  }
  for (const OutputSpec &output : program.outputs)
    if (output.kind == OutputSpec::Mutation && !output.target.empty())
      forward.mutated[output.target] = output.value;
}

/// Refuses a parameter that forward writes and the optimizer trains: the step
/// would have two new values for it.
void TorchImporter::refuseTrained(const StoredTensor &tensor) {
  std::string place;
  if (auto found = writer.find(tensor.name); found != writer.end())
    place = " at " + placeOf(locationOf(program.calls[found->second], context));
  refuse({"parameter", tensor.name, "",
          "forward writes it" + place +
              ", and the optimizer trains it (--freeze it, register it as a "
              "buffer, or compute what is read from it out of place)"});
}

//===----------------------------------------------------------------------===//
// A write
//===----------------------------------------------------------------------===//

/// Sets `v` as the new value of `root`, and of its other names.
void TorchImporter::setAll(const std::string &root, const Val &v) {
  scopes.back().values[root] = v;
  for (const auto &[name, of] : shared.same)
    if (of == root && lookup(name).kind != Val::Absent)
      scopes.back().values[name] = v;
}

/// Other defined views of the memory of `self` that are read after call
/// `index`.
std::vector<std::string> TorchImporter::readLater(const std::string &self,
                                                  size_t index) const {
  std::vector<std::string> names;
  auto consider = [&](const std::string &name) {
    auto read = lastRead.find(name);
    if (shared.nameOf(name) != shared.nameOf(self) && read != lastRead.end() &&
        read->second > index && lookup(name).kind != Val::Absent)
      names.push_back(name);
  };
  consider(
      shared.memoryOf(self)); // The memory's first name isn't in the table.
  for (const auto &[name, of] : shared.memory)
    if (of == shared.memoryOf(self) && name != of)
      consider(name);
  return names;
}

/// The new value of the source of `view`, with `piece` in the view's place;
/// fails if no inverse of the view is known.
static FailureOr<Val>
withPiece(Call &view, const std::string &made, const Val &base,
          const Val &piece,
          llvm::function_ref<Val(const std::string &)> valueOf) {
  std::string op = view.data.op();
  // For complex numbers, the dimension of pairs isn't counted.
  view.hidden = view.reader.isComplex(made) ? 1 : 0;
  int64_t rank = base.rank();
  // A write through a detached view must not change the gradients of the base.
  if (op == "detach")
    return base.isTensor() && view.importer.forward.isTrained(base.value)
               ? FailureOr<Val>(failure())
               : piece;
  if (op == "slice") {
    ASSIGN_OR_FAIL(int64_t dim, view.dim("dim", 0, rank));
    ASSIGN_OR_FAIL(int64_t start, view.integer("start", 0));
    ASSIGN_OR_FAIL(int64_t step, view.integer("step", 1));
    int64_t size = base.dims[dim];
    if (start < 0)
      start = start < -size ? 0 : start + size;
    return replaceSlice(view, base, piece, dim, std::min(start, size), step);
  }
  if (op == "select") {
    ASSIGN_OR_FAIL(int64_t dim, view.dim("dim", std::nullopt, rank));
    ASSIGN_OR_FAIL(int64_t at, view.integer("index", std::nullopt));
    // An index into it.
    ASSIGN_OR_FAIL(at, view.Site::axis(at, base.dims[dim]));
    ASSIGN_OR_FAIL(Val wide, unsqueeze(view, piece, {dim}));
    return replaceSlice(view, base, wide, dim, at, 1);
  }
  if (op == "narrow") {
    ASSIGN_OR_FAIL(int64_t dim, view.dim("dim", std::nullopt, rank));
    ASSIGN_OR_FAIL(int64_t start, view.integer("start", std::nullopt));
    return replaceSlice(view, base, piece, dim, start, 1);
  }
  if (op == "split" || op == "split_with_sizes" || op == "chunk" ||
      op == "unbind") {
    ASSIGN_OR_FAIL(int64_t dim, view.dim("dim", 0, rank));
    int64_t start = 0;
    for (const std::string &sibling : view.data.makes()) {
      if (sibling == made)
        break;
      start += op == "unbind" ? 1 : valueOf(sibling).dims[dim];
    }
    Val wide = piece;
    if (op == "unbind") {
      ASSIGN_OR_FAIL(wide, unsqueeze(view, piece, {dim}));
    }
    return replaceSlice(view, base, wide, dim, start, 1);
  }
  static const std::set<StringRef> shapes = {
      "view",    "reshape",   "flatten",      "unflatten",
      "view_as", "unsqueeze", "squeeze",      "contiguous",
      "to",      "alias",     "view_as_real", "view_as_complex"};
  if (shapes.count(op))
    return reshaped(view, piece, base.dims);
  if (op == "real" || op == "imag") {
    ASSIGN_OR_FAIL(Val wide, unsqueeze(view, piece, {piece.rank()}));
    return replaceSlice(view, base, wide, rank - 1, op == "imag", 1);
  }
  if (op == "t" || op == "numpy_T" || op == "transpose" || op == "permute") {
    Dims perm(nn::firstDims(rank));
    if (op == "transpose") {
      ASSIGN_OR_FAIL(int64_t a, view.dim("dim0", std::nullopt, rank));
      ASSIGN_OR_FAIL(int64_t b, view.dim("dim1", std::nullopt, rank));
      std::swap(perm[a], perm[b]);
    } else if (op == "permute") {
      ASSIGN_OR_FAIL(Dims forth, view.integers("dims", std::nullopt));
      for (auto [i, entry] : llvm::enumerate(forth)) {
        ASSIGN_OR_FAIL(int64_t dim, view.axis(entry, rank));
        perm[dim] = i;
      }
    } else {
      std::reverse(perm.begin(), perm.end() - view.hidden);
    }
    return transpose(view, piece, perm);
  }
  return failure();
}

/// Updates the names of `stale` after a write to `self`.
LogicalResult TorchImporter::spread(Call &call, const std::string &self,
                                    ArrayRef<std::string> stale) {
  auto refuse = [&](const std::string &of) {
    return call.unsupported("writes in place, and '" + of +
                            "' of the same storage is read later: export "
                            "with run_decompositions()");
  };
  std::set<std::string> fresh{shared.nameOf(self)};
  std::string at = shared.nameOf(self);
  for (auto view = shared.views.find(at); view != shared.views.end();
       view = shared.views.find(at)) {
    if (!view->second.isCertain)
      return refuse(stale[0]);
    const CallData &data = program.calls[view->second.call];
    Call maker(*this, data, locationOf(data, context));
    std::string base = shared.nameOf(view->second.of);
    FailureOr<Val> whole =
        withPiece(maker, at, lookup(base), lookup(at),
                  [&](const std::string &name) { return lookup(name); });
    if (failed(whole) && (diagnostics.failure || !diagnostics.refusals.empty()))
      return mlir::failure();
    if (failed(whole) && data.op() == "detach")
      return call.unsupported("writes through a detached view of '" + base +
                              "', which has gradients: make a new value in "
                              "place of it");
    if (failed(whole))
      return refuse(stale[0]);
    setAll(base, *whole);
    fresh.insert(base);
    at = base;
  }
  std::function<LogicalResult(const std::string &)> refresh =
      [&](const std::string &root) -> LogicalResult {
    auto view = shared.views.find(root);
    if (fresh.count(root) || view == shared.views.end())
      return success();
    if (!view->second.isCertain)
      return refuse(root);
    if (failed(refresh(shared.nameOf(view->second.of))))
      return mlir::failure();
    const CallData &data = program.calls[view->second.call];
    for (const std::string &made : data.makes())
      scopes.back().values.erase(made);
    Call again(*this, data, locationOf(data, context));
    if (failed(importerOf(data.op(), isOfComplex(program, data))(again)))
      return mlir::failure();
    for (const std::string &made : data.makes()) {
      setAll(made, lookup(made));
      fresh.insert(made);
    }
    return success();
  };
  for (const std::string &name : stale)
    if (failed(refresh(shared.nameOf(name))))
      return mlir::failure();
  return success();
}

/// Sets `next` as the new value of `value`, and of all values that share its
/// memory.
LogicalResult TorchImporter::written(Call &call, size_t index,
                                     const std::string &value,
                                     const Val &next) {
  setAll(shared.nameOf(value), next);
  std::vector<std::string> stale = readLater(value, index);
  return stale.empty() ? success() : spread(call, value, stale);
}

/// A call whose results are the new values of the operands that it writes.
LogicalResult TorchImporter::importWrite(Call &call, size_t index, ImportFn fn,
                                         ArrayRef<Write> writes) {
  SmallVector<Val> before;
  for (const Write &write : writes) {
    before.push_back(lookup(write.value));
    if (write.result.empty())
      return call.unsupported("writes " + Twine(writes.size()) +
                              " tensors, and has " +
                              Twine(call.data.makes().size()) + " results");
    if (call.data.noGrad &&
        !madeWithoutGrad.count(shared.memoryOf(write.value)) &&
        before.back().isTensor() && forward.isTrained(before.back().value))
      return call.unsupported(
          "writes a value that has gradients where none are recorded "
          "(torch.no_grad()): make a new value in place of it");
  }
  if (failed(fn(call)))
    return mlir::failure();
  for (auto [write, old] : llvm::zip(writes, before)) {
    Val after = lookup(write.result);
    // A tensor without elements takes any shape: out=torch.empty(0).
    if (after.dims != old.dims && !llvm::is_contained(old.dims, 0))
      return call.error("writes shape " + str(after.dims) + " into shape " +
                        str(old.dims));
    FailureOr<Val> next = castTo(call, after, old.type);
    if (failed(next))
      return mlir::failure();
    if (call.data.noGrad)
      next = forward.detached(*next, call.loc);
    scopes.back().values[write.result] = *next;
    if (failed(written(call, index, write.value, *next)))
      return mlir::failure();
  }
  return success();
}

/// A normalization: its importer updates the statistics, which aren't among the
/// results.
LogicalResult TorchImporter::moveStatistics(Call &call, size_t index,
                                            ImportFn fn,
                                            ArrayRef<Write> writes) {
  if (failed(fn(call)))
    return mlir::failure();
  for (const Write &write : writes) {
    // Null for a tensor that is no buffer.
    Value newest =
        forward.newValueOf(forward.storedBehind(lookup(write.value)));
    if (newest && failed(written(call, index, write.value, Val(newest))))
      return mlir::failure();
  }
  return success();
}

/// Cuts the gradients of values that `call` made without gradients, if they are
/// read with gradients.
void TorchImporter::cutGradients(const CallData &call, Location loc) {
  for (const std::string &name : call.makes()) {
    const Val v = lookup(name);
    if (!readWithGrad.count(name) || !v.isTensor() || !isFloat(v.type))
      continue;
    bool isNewState = llvm::any_of(forward.mutated, [&](const auto &entry) {
      return entry.second == shared.memoryOf(name);
    });
    auto detach = v.value.getDefiningOp<nn::DetachOp>();
    Value whole = detach ? detach.getInput() : v.value;
    if (forward.isTrained(whole) && !isNewState)
      forward.cut(whole);
    scopes.back().values[name] = forward.detached(v, loc);
  }
}

/// The last values of written tensors are their new values in the step.
void TorchImporter::updateWritten() {
  for (const auto &entry : forward.mutated) {
    auto found = forward.tensorOf.find(entry.first());
    const Val next = lookup(entry.second);
    if (found == forward.tensorOf.end() || !next.isTensor())
      continue;
    const StoredTensor &tensor = forward.tensors[found->second];
    if (tensor.argument && next.value.getType() == tensor.argument.getType() &&
        forward.newValueOf(found->second))
      forward.updateState(Val(Value(tensor.argument)), next.value);
  }
}
