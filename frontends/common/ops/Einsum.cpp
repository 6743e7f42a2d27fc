// Einsum.cpp - Einstein's summation, as products of matrices.
//
// Operands are contracted from the left, two at a time. The labels of a pair
// are of four kinds:
//
//   in both, wanted later       batch      b t h d , h d e -> b t h e
//   in both, not wanted later   summed     batch h, summed d,
//   in one, wanted later        rows (lhs) or columns (rhs): b t and e
//   in one, not wanted later    summed beforehand
//
// so that a pair is [batch, rows, summed] times [batch, columns, summed]
// transposed, or a product of broadcasts if nothing is summed.

#include "frontends/common/ops/Einsum.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Shape.h"

#include <map>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

namespace {
/// A letter is its own code. The dimensions that an ellipsis covers are counted
/// from the right, as numbers from kEllipsis on.
using Labels = llvm::SmallVector<int, 6>;
constexpr int kEllipsis = 256;

/// A tensor with a label for each dimension.
struct Term {
  Value value;
  Labels labels;
};
} // namespace

/// The labels of `text` ("b...ij") for `rank` dimensions (-1: the ellipsis
/// covers `covered` dimensions).
static FailureOr<Labels> labelsOf(Site &s, StringRef text, int64_t rank,
                                  int64_t &covered) {
  Labels labels;
  size_t dots = text.find("...");
  int64_t letters = llvm::count_if(text, llvm::isAlpha);
  if (dots != StringRef::npos && rank >= 0)
    covered = rank - letters;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == dots) {
      for (int64_t k = covered; k-- > 0;)
        labels.push_back(kEllipsis + k);
      i += 2;
    } else if (llvm::isAlpha(text[i])) {
      labels.push_back(text[i]);
    } else {
      return s.error("the equation has '" + text + "'");
    }
  }
  if (rank >= 0 && static_cast<int64_t>(labels.size()) != rank)
    return s.error("'" + text + "' for " + Twine(rank) + " dimensions");
  return labels;
}

/// The two dimensions of a label that occurs twice, in order.
static std::optional<std::pair<int64_t, int64_t>>
repeated(ArrayRef<int> labels) {
  for (int64_t i = 0; i < static_cast<int64_t>(labels.size()); ++i)
    for (int64_t k = 0; k < i; ++k)
      if (labels[i] == labels[k])
        return std::pair(k, i);
  return std::nullopt;
}

/// Takes diagonals until each label occurs once: steps of one row and one
/// column turn both dimensions into one.
static LogicalResult takeDiagonals(Site &s, Term &term) {
  while (auto both = repeated(term.labels)) {
    ArrayRef<int64_t> dims = nn::tensorType(term.value).getShape();
    int64_t rank = dims.size(), size = dims[both->first];
    if (dims[both->second] != size)
      return s.error("a diagonal of shape " + str(dims));
    Dims perm, lead;
    for (int64_t d = 0; d < rank; ++d)
      if (d != both->first && d != both->second) {
        perm.push_back(d);
        lead.push_back(dims[d]);
      }
    perm.append({both->first, both->second});
    Val x = term.value;
    ASSIGN_OR_FAIL(x, transpose(s, x, perm));
    Dims flat(lead);
    flat.push_back(size * size);
    ASSIGN_OR_FAIL(x, reshaped(s, x, flat));
    ASSIGN_OR_FAIL(x, strided(s, x, rank - 2, 0, size + 1, size));
    ASSIGN_OR_FAIL(term.value, s.materialise(x));
    int label = term.labels[both->first];
    term.labels.erase(term.labels.begin() + both->second);
    term.labels.erase(term.labels.begin() + both->first);
    term.labels.push_back(label);
  }
  return success();
}

/// `term` with its dimensions in the order of `order`, a permutation.
static Value inOrder(Site &s, const Term &term, ArrayRef<int> order) {
  Dims perm;
  for (int label : order)
    perm.push_back(llvm::find(term.labels, label) - term.labels.begin());
  if (llvm::is_sorted(perm))
    return term.value;
  return nn::TransposeOp::create(s.b, s.loc, term.value, ArrayRef(perm));
}

/// Sums over the labels for which `wanted` is false.
static void sumUnwanted(Site &s, Term &term,
                        llvm::function_ref<bool(int)> wanted) {
  Dims dims;
  Labels kept;
  for (auto [i, label] : llvm::enumerate(term.labels)) {
    if (wanted(label))
      kept.push_back(label);
    else
      dims.push_back(i);
  }
  term.value = nn::reduceSum(s.b, s.loc, term.value, dims);
  term.labels = kept;
}

static FailureOr<Term> contract(Site &s, Term lhs, Term rhs,
                                llvm::function_ref<bool(int)> wanted,
                                const std::map<int, int64_t> &sizes) {
  auto inLhs = [&](int l) { return llvm::is_contained(lhs.labels, l); };
  auto inRhs = [&](int l) { return llvm::is_contained(rhs.labels, l); };
  sumUnwanted(s, lhs, [&](int l) { return wanted(l) || inRhs(l); });
  sumUnwanted(s, rhs, [&](int l) { return wanted(l) || inLhs(l); });
  Labels batch, rows, columns, summed;
  for (int label : lhs.labels)
    (!inRhs(label) ? rows : wanted(label) ? batch : summed).push_back(label);
  for (int label : rhs.labels)
    if (!inLhs(label))
      columns.push_back(label);
  auto dimsOf = [&](ArrayRef<int> labels) {
    Dims dims;
    for (int label : labels)
      dims.push_back(sizes.at(label));
    return dims;
  };
  auto sizeOf = [&](ArrayRef<int> labels) {
    int64_t size = 1;
    for (int64_t dim : dimsOf(labels))
      size *= dim;
    return size;
  };
  auto join = [](ArrayRef<int> a, ArrayRef<int> b, ArrayRef<int> c = {}) {
    Labels all(a.begin(), a.end());
    all.append(b.begin(), b.end());
    all.append(c.begin(), c.end());
    return all;
  };
  Term result;
  result.labels = join(batch, rows, columns);
  Dims dims = dimsOf(result.labels);
  Value l = inOrder(s, lhs, join(batch, rows, summed));
  Value r = inOrder(s, rhs, join(batch, columns, summed));
  if (summed.empty()) {
    Dims column = dimsOf(join(batch, rows)), row = dimsOf(batch);
    column.append(columns.size(), 1);
    row.append(rows.size(), 1);
    row.append(dimsOf(columns));
    ASSIGN_OR_FAIL(l, s.broadcast(Val(s.reshape(l, column)), dims));
    ASSIGN_OR_FAIL(r, s.broadcast(Val(s.reshape(r, row)), dims));
    result.value = nn::mul(s.b, s.loc, l, r);
    return result;
  }
  Dims left{sizeOf(rows), sizeOf(summed)}, right{sizeOf(columns), left[1]};
  if (!batch.empty()) {
    left.insert(left.begin(), sizeOf(batch));
    right.insert(right.begin(), sizeOf(batch));
  }
  r = s.reshape(r, right);
  l = s.reshape(l, left);
  Value y = nn::MatmulOp::create(s.b, s.loc, l, r, /*transposeLhs=*/false,
                                 /*transposeRhs=*/true);
  result.value = s.reshape(y, dims);
  return result;
}

FailureOr<Val> tmc::frontend::einsum(Site &s, std::string equation,
                                     ArrayRef<Val> operands) {
  llvm::erase_if(equation, [](char c) { return c == ' '; });
  auto [left, right] = StringRef(equation).split("->");
  SmallVector<StringRef> texts;
  left.split(texts, ',');
  if (static_cast<int>(texts.size()) != static_cast<int>(operands.size()))
    return s.error("'" + equation + "' for " + Twine(operands.size()) +
                   " operands");
  std::map<int, int64_t> sizes;
  std::map<int, int> count;
  SmallVector<Term> terms;
  int64_t covered = 0;
  for (auto [i, text] : llvm::enumerate(texts)) {
    const Val &v = operands[i];
    if (!isFloat(v.type) || v.type != operands[0].type)
      return s.unsupported("elements of type " + nameOf(v.type));
    Term term;
    ASSIGN_OR_FAIL(term.value, s.materialise(v));
    int64_t here = 0;
    ASSIGN_OR_FAIL(term.labels, labelsOf(s, text, v.rank(), here));
    covered = std::max(covered, here);
    if (failed(takeDiagonals(s, term)))
      return failure();
    for (auto [label, dim] :
         llvm::zip(term.labels, nn::tensorType(term.value).getShape())) {
      auto [entry, isNew] = sizes.try_emplace(label, dim);
      if (label >= kEllipsis && entry->second != dim)
        return s.unsupported("an ellipsis that broadcasts");
      if (entry->second != dim)
        return s.error("label '" + Twine(static_cast<char>(label)) +
                       "' has sizes " + Twine(entry->second) + " and " +
                       Twine(dim));
      ++count[label];
    }
    terms.push_back(term);
  }
  Labels output;
  if (equation.find("->") != std::string::npos) {
    ASSIGN_OR_FAIL(output, labelsOf(s, right, -1, covered));
    if (repeated(output))
      return s.error("'" + equation + "' puts a label on two dimensions");
  } else {
    for (int64_t k = covered; k-- > 0;)
      output.push_back(kEllipsis + k);
    for (const auto &[label, times] : count)
      if (times == 1 && label < kEllipsis)
        output.push_back(label);
  }
  for (int label : output)
    if (!sizes.count(label))
      return s.error("'" + equation + "' wants a label that no operand has");
  Term result = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    auto wanted = [&](int label) {
      return llvm::is_contained(output, label) ||
             llvm::any_of(ArrayRef(terms).drop_front(i + 1),
                          [&](const Term &later) {
                            return llvm::is_contained(later.labels, label);
                          });
    };
    ASSIGN_OR_FAIL(result, contract(s, result, terms[i], wanted, sizes));
  }
  sumUnwanted(s, result,
              [&](int label) { return llvm::is_contained(output, label); });
  return Val(inOrder(s, result, output));
}
