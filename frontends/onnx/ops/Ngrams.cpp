// Ngrams.cpp - counts short sequences of tokens in longer ones.
//
// A sequence of m tokens occurs at a place if each of its tokens does, one,
// two, ... places apart: products of comparisons, summed over places.

#include "frontends/common/ops/Linear.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/onnx/Node.h"

#include "onnx/onnx_pb.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// The most columns of a result.
constexpr int64_t kMaxColumns = 1 << 20;

namespace {
/// Sequences of one length, and the result's columns for their counts.
struct Sequences {
  int64_t length = 1;
  std::vector<int64_t> tokens; ///< `length` for each sequence.
  int64_t first = 0; ///< The index of the first one among all sequences.
  int64_t count() const { return tokens.size() / length; }
};
} // namespace

/// The node's sequences by length.
static FailureOr<std::vector<Sequences>> sequencesOf(Node &n,
                                                     const Dims &columns) {
  Dims starts = n.intsAttr("ngram_counts").value_or(Dims());
  auto pool = n.intsAttr("pool_int64s");
  if (!pool)
    return n.unsupported("sequences of texts");
  int64_t total = pool->size(), number = 0;
  std::vector<Sequences> all;
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t end = i + 1 < starts.size() ? starts[i + 1] : total;
    Sequences s;
    s.length = static_cast<int64_t>(i) + 1;
    if (starts[i] < 0 || starts[i] > end || end > total ||
        (end - starts[i]) % s.length)
      return n.error("ngram_counts are " + str(starts));
    s.tokens.assign(pool->begin() + starts[i], pool->begin() + end);
    s.first = number;
    number += s.count();
    all.push_back(std::move(s));
  }
  if (number != static_cast<int64_t>(columns.size()))
    return n.error("has " + Twine(columns.size()) + " indices for " +
                   Twine(number) + " sequences");
  return all;
}

/// The number of occurrences of each sequence of `s` in rows of `x` [B, C] with
/// its tokens `apart` places apart: [B, sequences] floats. Absent if the rows
/// are too short.
static FailureOr<Val> occurrences(Node &n, const Val &x, const Sequences &s,
                                  int64_t apart) {
  int64_t places = x.dims[1] - apart * (s.length - 1), count = s.count();
  if (places < 1 || !count)
    return Val();
  Val all;
  for (int64_t k = 0; k < s.length; ++k) {
    std::vector<int64_t> tokens;
    for (int64_t i = 0; i < count; ++i)
      tokens.push_back(s.tokens[i * s.length + k]);
    Array wanted = Array::ofInts(ElementType::I64, {1, 1, count}, tokens);
    ASSIGN_OR_FAIL(Val here, strided(n, x, 1, k * apart, 1, places));
    ASSIGN_OR_FAIL(here, unsqueeze(n, here, {2}));
    ASSIGN_OR_FAIL(Val same, equals(n, {here, Val(wanted.cast(x.type))}));
    if (all.isAbsent()) {
      all = same;
    } else {
      ASSIGN_OR_FAIL(all, conjunction(n, {all, same}));
    }
  }
  ASSIGN_OR_FAIL(Val ones, castTo(n, all, ElementType::F32));
  return reduceSum(n, ones, {1}, /*keep=*/false);
}

/// The matrix [sequences, columns] that moves counts to their columns.
static Val placing(const Sequences &s, const Dims &columns, int64_t width) {
  std::vector<double> m(s.count() * width, 0);
  for (int64_t i = 0; i < s.count(); ++i)
    m[i * width + columns[s.first + i]] = 1;
  return Val(
      Array::ofFloats(ElementType::F32, {s.count(), width}, std::move(m)));
}

static LogicalResult importTfIdfVectorizer(Node &n) {
  Val x = n.input(0);
  if (isFloat(x.type) || x.rank() < 1 || x.rank() > 2)
    return n.error("tokens of shape " + str(x.dims));
  Dims result(x.dims);
  if (x.rank() == 1) {
    ASSIGN_OR_FAIL(x, unsqueeze(n, x, {0}));
  }
  std::string mode = n.stringAttr("mode", "TF");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return n.unsupported("the mode '" + mode + "'");
  Dims columns = n.intsAttr("ngram_indexes").value_or(Dims());
  int64_t width = 0;
  for (int64_t column : columns) {
    if (column < 0 || column >= kMaxColumns)
      return n.error("ngram_indexes are " + str(columns));
    width = std::max(width, column + 1);
  }
  ASSIGN_OR_FAIL(std::vector<Sequences> all, sequencesOf(n, columns));
  int64_t least = n.intAttr("min_gram_length", 1);
  int64_t most = n.intAttr("max_gram_length", 1);
  int64_t skips = n.intAttr("max_skip_count", 0);
  constexpr int64_t kMaxSkips = 1 << 8;
  if (skips < 0 || width < 1)
    return n.error("max_skip_count is " + Twine(skips));
  if (skips > kMaxSkips ||
      static_cast<int64_t>(columns.size()) > kMaxFoldElements / width)
    return n.unsupported(Twine(columns.size()) + " sequences in " +
                         Twine(width) + " columns");
  Val total(Array::splat(ElementType::F32, {x.dims[0], width}, 0));
  for (const Sequences &s : all) {
    if (s.length < least || s.length > most)
      continue;
    // A sequence of one token has no distance.
    int64_t farthest = s.length == 1 ? 1 : skips + 1;
    for (int64_t apart = 1; apart <= farthest && apart <= x.dims[1]; ++apart) {
      ASSIGN_OR_FAIL(Val counts, occurrences(n, x, s, apart));
      if (counts.isAbsent())
        continue;
      ASSIGN_OR_FAIL(counts, matmul(n, counts, placing(s, columns, width)));
      ASSIGN_OR_FAIL(total, add(n, {total, counts}));
    }
  }
  if (mode == "IDF") {
    Val none(Array::splat(ElementType::F32, {}, 0));
    ASSIGN_OR_FAIL(total, greater(n, {total, none}));
    ASSIGN_OR_FAIL(total, castTo(n, total, ElementType::F32));
  }
  const auto *weights = n.attribute("weights");
  if (mode != "TF" && weights && weights->floats_size()) {
    if (weights->floats_size() != width)
      return n.error("has " + Twine(weights->floats_size()) + " weights");
    Val line(
        Array::ofFloats(ElementType::F32, {width},
                        {weights->floats().begin(), weights->floats().end()}));
    ASSIGN_OR_FAIL(total, multiply(n, {total, line}));
  }
  result.back() = width;
  return n.set(reshaped(n, total, result));
}
static Register tfIdfVectorizer("TfIdfVectorizer", importTfIdfVectorizer);
