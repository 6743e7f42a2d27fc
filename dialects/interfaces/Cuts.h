// Cuts.h - the ways in which an op may be cut into pieces.
//
// Micro-batches cut the batch in time, and data parallelism cuts it in space.
// Tiles cut rows. Tensor parallelism cuts heads and hidden columns. All of them
// ask an op the same question: which dimensions of its operands may be cut
// together, and how do the results of the pieces make up the result of the
// whole? An op answers with the list of its cuts (CutOpInterface):
//
//                               operands             results       units
//   nn.matmul       rows        lhs 0                concat 0      m
//   [m, k] x [k, n] columns     rhs 1, bias 0        concat 1      n
//                   sum         lhs 1, rhs 0         sum           k
//                               bias on piece 0
//   nn.attention    batch       q 0, k 0, v 0        concat 0, 0   B
//   12 heads of q,  heads       q 2, k 2, v 2        concat 2, 1   4
//   4 of k and v
//   nn.reshape      outer part  operand 0            concat 0      3
//   [3, 4] to [12]
//
// An operand or result that isn't named there is whole in each piece.
//
// A cut consists of `units` equal units, which can't be divided further. A
// piece has one or more adjacent units, and pieces may differ in size. So each
// dimension that is cut is a multiple of `units`, and a piece of u units has
// u / units of it. With 12 heads of q and 4 of k and v, a unit is three heads
// of q and one of k and of v. Tensor parallelism over 2 ranks gives each rank 2
// of the 4 units. It can't cut these heads over 3 ranks.
//
// Each piece is the same op with the same attributes: only the types of its
// operands and results have smaller dimensions. A cut that needs another
// attribute (the groups of a convolution), or an attribute that the op doesn't
// have (the first row of a table's piece), isn't in the list.
//
// A client chains cuts: a reader is cut along the dimension in which the result
// that it reads rejoins. This is the pair of products of Megatron, whose hidden
// columns never leave a rank:
//
//   %h = nn.matmul %x, %w1 bias(%b1)   columns: %w1 1, %b1 0   -> concat 1
//   %a = nn.gelu %h                    every dimension: %h 1   -> concat 1
//   %y = nn.matmul %a, %w2 bias(%b2)   sum: %a 1, %w2 0,       -> sum
//                                      %b2 on piece 0
//
// The order of a list has no meaning, and no two of its cuts are the same. An
// op without any cut has an empty list. Tests run every cut of every op:
// interpreter(pieces, rejoined) = interpreter(whole).

#ifndef TMC_DIALECTS_INTERFACES_CUTS_H
#define TMC_DIALECTS_INTERFACES_CUTS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

#include <string>

namespace tmc {

/// The way in which the results of pieces form a result of the whole.
struct Rejoin {
  enum Kind {
    Whole,  ///< Each piece gives the whole result.
    Concat, ///< Pieces are adjacent along `dim`.
    Sum,    ///< Pieces are added up.
  };
  Kind kind = Whole;
  int64_t dim = -1;

  static Rejoin whole() { return {}; }
  static Rejoin concat(int64_t dim) { return {Concat, dim}; }
  static Rejoin sum() { return {Sum, -1}; }
  bool operator==(const Rejoin &) const = default;
};

/// One way to cut an op.
struct OpCut {
  /// For an operand that isn't cut: each piece takes all of it.
  static constexpr int64_t kWhole = -1;
  /// For an operand that is added to a sum of pieces: piece 0 takes all of it.
  /// The others have zeros instead, or do without an optional operand.
  static constexpr int64_t kOnFirst = -2;
  /// For the numbers of samples by which an op draws random numbers. Pieces are
  /// equal: piece i of n takes each number times n, plus i. So it draws the
  /// numbers that the whole has in its place.
  static constexpr int64_t kNumbered = -3;

  /// For each operand the dimension that is cut, or one of those above.
  llvm::SmallVector<int64_t> operands;
  /// For each result.
  llvm::SmallVector<Rejoin> results;
  /// At least 2. Divides each dimension that is cut.
  int64_t units;

  /// The type of a piece of `mine` units of a value of type `whole`, which is
  /// cut along `dim`; `whole` itself if `dim` is negative.
  mlir::RankedTensorType pieceOf(mlir::RankedTensorType whole, int64_t dim,
                                 int64_t mine) const;
};

/// The results of an op for one cut of its operands: one rejoin per result, or
/// the reason for a refusal.
struct BatchSplit {
  llvm::SmallVector<Rejoin> results;
  std::string refusal;

  static BatchSplit refuse(std::string why) { return {{}, std::move(why)}; }
  explicit operator bool() const { return refusal.empty(); }
};

/// A refusal: an operand isn't cut that would have to be.
constexpr const char *kOneForAll =
    "what it takes beside the batch is one for all samples";

/// The cuts of one op.
class OpCuts {
public:
  /// `otherwise`: the reason why a batch can't be in other dimensions than
  /// these cuts', as the end of a sentence.
  OpCuts(mlir::Operation *op, std::string otherwise)
      : op(op), otherwise(std::move(otherwise)) {}

  /// Adds the cut of these dimensions. Its units are the greatest common
  /// divisor of their sizes. Nothing is added if that is 1.
  void add(llvm::ArrayRef<int64_t> operands, llvm::ArrayRef<Rejoin> results);
  /// The same for an op with one operand and one result.
  void add(int64_t operand, Rejoin result) {
    add(llvm::ArrayRef(operand), llvm::ArrayRef(result));
  }

  auto begin() const { return list.begin(); }
  auto end() const { return list.end(); }
  size_t size() const { return list.size(); }

  /// The results of the cut with `dims`, each a dimension or kWhole for an
  /// operand. All results are whole if all operands are.
  BatchSplit find(llvm::ArrayRef<int64_t> dims) const;

private:
  mlir::Operation *op;
  std::string otherwise;
  llvm::SmallVector<OpCut> list;
};

/// The cuts of an op that makes each element of its only result from the
/// elements of its tensors at the same place: every dimension, of all tensors.
OpCuts pointwiseCuts(mlir::Operation *op);

} // namespace tmc

#endif // TMC_DIALECTS_INTERFACES_CUTS_H
