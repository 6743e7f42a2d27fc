// Writes.cpp - calls that write in place, and the views that see it.
//
//   base ──slice──> row ──t──> column        row.copy_(x):
//    └────select──> other
//                          row'  = x
//                          base' = base with row' in place of its slice
//                          column' = t(row'), other' = select(base')
//
// A write gives a new value to what it writes. If another name of the same
// memory is read later, the new value climbs to the memory's first name, by the
// inverse of each view on the way, and the others are made again from there.

#include "frontends/torch/Importer.h"

#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/Scatter.h"
#include "frontends/common/ops/Shape.h"

#include <set>

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

bool tmc::torch_import::writesInPlace(StringRef op) {
  return op.ends_with("_") && !op.ends_with("__");
}

ImportFn tmc::torch_import::importerOf(const std::string &op, bool ofComplex) {
  StringRef stem = op;
  return findOperator(writesInPlace(op) ? stem.drop_back() : stem, ofComplex);
}

const std::string &TorchImporter::memoryOf(const std::string &name) const {
  auto found = memory.find(name);
  return found == memory.end() ? name : found->second;
}

const std::string &TorchImporter::nameOf(const std::string &name) const {
  auto found = same.find(name);
  return found == same.end() ? name : found->second;
}

//===----------------------------------------------------------------------===//
// Which values share memory
//===----------------------------------------------------------------------===//

/// True if the exported tensor lay row by row, nothing if the file doesn't say.
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

/// What a call's result is of its first argument.
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
  // Copies where the memory isn't in order, or the type is another.
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

/// Which values share memory, and which buffers of floats are written.
void TorchImporter::findWrites() {
  std::map<std::string, const InputSpec *> buffers;
  for (const InputSpec &input : program.inputs)
    if (input.kind == InputSpec::Buffer)
      buffers[input.value] = &input;
  for (auto [i, call] : llvm::enumerate(program.calls)) {
    if (call.arguments.empty() || call.arguments[0].second.kind != Arg::Tensor)
      continue;
    bool writes = writesInPlace(call.op());
    Sharing sharing = writes ? Sharing::View : sharingOf(program, call);
    if (sharing == Sharing::Copy)
      continue;
    const std::string &self = call.arguments[0].second.text;
    for (const std::string &made : call.makes()) {
      memory[made] = memoryOf(self);
      if (writes)
        same[made] = nameOf(self);
      else
        views[made] = {self, i, sharing == Sharing::View};
    }
    auto buffer = buffers.find(memoryOf(self));
    if (writes && buffer != buffers.end())
      mutated[buffer->second->target] = buffer->second->value;
  }
  for (const OutputSpec &output : program.outputs)
    if (output.kind == OutputSpec::BufferMutation)
      mutated[output.target] = output.value;
  // A count of batches is written, too. It is no float, and a step that doesn't
  // read it needs none.
  for (const InputSpec &input : program.inputs) {
    auto found = program.tensors.find(input.value);
    if (found == program.tensors.end() || !found->second.type ||
        !isFloat(*found->second.type))
      mutated.erase(input.target);
  }
}

//===----------------------------------------------------------------------===//
// A write
//===----------------------------------------------------------------------===//

/// `v` is the new value of `root`, and of its other names.
void TorchImporter::setAll(const std::string &root, const Val &v) {
  scopes.back().values[root] = v;
  for (const auto &[name, of] : same)
    if (of == root && lookup(name).kind != Val::Absent)
      scopes.back().values[name] = v;
}

/// Other views of the memory of `self` that are there, and read after call
/// `index`.
std::vector<std::string> TorchImporter::readLater(const std::string &self,
                                                  size_t index) const {
  std::vector<std::string> names;
  auto consider = [&](const std::string &name) {
    auto read = lastRead.find(name);
    if (nameOf(name) != nameOf(self) && read != lastRead.end() &&
        read->second > index && lookup(name).kind != Val::Absent)
      names.push_back(name);
  };
  consider(memoryOf(self)); // The memory's first name isn't in the table.
  for (const auto &[name, of] : memory)
    if (of == memoryOf(self) && name != of)
      consider(name);
  return names;
}

/// The value of what `view` is a view of, with `piece` in the view's place.
static FailureOr<Val>
withPiece(Call &view, const std::string &made, const Val &base,
          const Val &piece,
          llvm::function_ref<Val(const std::string &)> valueOf) {
  std::string op = view.data.op();
  // Of complex numbers, the dimension of pairs isn't counted.
  view.hidden = view.reader.isComplex(made) ? 1 : 0;
  int64_t rank = base.rank();
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
    ASSIGN_OR_FAIL(at, view.Site::axis(at, base.dims[dim])); // An entry of it.
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

/// The names of `stale` see what was written to `self`.
LogicalResult TorchImporter::spread(Call &call, const std::string &self,
                                    ArrayRef<std::string> stale) {
  auto refuse = [&](const std::string &of) {
    return call.unsupported("writes in place, and '" + of +
                            "' of the same storage is read later: export "
                            "with run_decompositions()");
  };
  std::set<std::string> fresh{nameOf(self)};
  std::string at = nameOf(self);
  for (auto view = views.find(at); view != views.end(); view = views.find(at)) {
    if (!view->second.isCertain)
      return refuse(stale[0]);
    const CallData &data = program.calls[view->second.call];
    Call maker(*this, data, locationOf(data, context));
    std::string base = nameOf(view->second.of);
    FailureOr<Val> whole =
        withPiece(maker, at, lookup(base), lookup(at),
                  [&](const std::string &name) { return lookup(name); });
    if (failed(whole))
      return failure || !refusals.empty() ? mlir::failure() : refuse(stale[0]);
    setAll(base, *whole);
    fresh.insert(base);
    at = base;
  }
  std::function<LogicalResult(const std::string &)> refresh =
      [&](const std::string &root) -> LogicalResult {
    auto view = views.find(root);
    if (fresh.count(root) || view == views.end())
      return success();
    if (!view->second.isCertain)
      return refuse(root);
    if (failed(refresh(nameOf(view->second.of))))
      return mlir::failure();
    const CallData &data = program.calls[view->second.call];
    for (const std::string &made : data.makes())
      scopes.back().values.erase(made);
    Call again(*this, data, locationOf(data, context));
    if (failed(importerOf(data.op(), isOfComplex(data))(again)))
      return mlir::failure();
    for (const std::string &made : data.makes()) {
      setAll(made, lookup(made));
      fresh.insert(made);
    }
    return success();
  };
  for (const std::string &name : stale)
    if (failed(refresh(nameOf(name))))
      return mlir::failure();
  return success();
}

/// A call that writes `self`: its result is the new value of all names of
/// `self`.
LogicalResult TorchImporter::importWrite(Call &call, size_t index,
                                         ImportFn fn) {
  const auto &arguments = call.data.arguments;
  if (arguments.empty() || arguments[0].second.kind != Arg::Tensor)
    return call.error("writes no tensor");
  const std::string self = arguments[0].second.text;
  const Val before = lookup(self);
  if (failed(fn(call)))
    return mlir::failure();
  if (call.data.results.size() != 1)
    return call.error("writes in place and has " +
                      Twine(call.data.results.size()) + " results");
  Val after = lookup(call.data.results[0].text);
  if (after.dims != before.dims)
    return call.error("writes shape " + str(after.dims) + " into shape " +
                      str(before.dims));
  FailureOr<Val> cast = castTo(call, after, before.type);
  if (failed(cast))
    return mlir::failure();
  scopes.back().values[call.data.results[0].text] = *cast;
  setAll(nameOf(self), *cast);
  std::vector<std::string> stale = readLater(self, index);
  return stale.empty() ? success() : spread(call, self, stale);
}
