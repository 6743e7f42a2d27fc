// RandomGraph.h - valid nn graphs at random, the same for the same seed.
//
// A graph is a module with one `func.func @forward` as a frontend would make
// it: parameters, batch inputs, a seed, states and their updates, further
// outputs, and a scalar loss that everything reaches. Tensors are tiny, so that
// thousands of graphs are interpreted in seconds; together the graphs hold
// every op that a frontend or the raise pass may make (RandomGraphTest.cpp
// counts them).
//
// Growth: a rule (RandomRules.cpp) takes values that are there already, or new
// arguments, and adds a few ops. What no op uses in the end goes into the loss:
//
//     loss = sum over leaves of sum(tanh(leaf)) / size(leaf) + other losses
//
// Values stay moderate (squashed where they would grow), so that a difference
// of two programs is the programs' and not rounding's.

#ifndef TMC_TEST_UNIT_PASSES_RANDOMGRAPH_H
#define TMC_TEST_UNIT_PASSES_RANDOMGRAPH_H

#include "test/unit/reference/Harness.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace tmc::test {

struct GraphOptions {
  /// Rules that are applied, each a few ops.
  int64_t rules = 12;
  /// Elements are f64 by default: then a pass's own constants are exact too.
  bool f32 = false;
  /// Dimension 0 of what depends on a batch input is always the batch, and the
  /// loss is a sum over it: the graph can be cut into micro-batches.
  bool batchSafe = false;
  int64_t batch = 4; ///< Samples.
  /// Products and lookups may accumulate onto a value. A plan then needs that
  /// nobody else reads it, which holds of what passes make, not of any graph.
  bool accumulates = true;
  /// Half of the rules are those of ExportRules.cpp.
  bool exported = false;
  /// Half of the rules are those of NarrowRules.cpp.
  bool narrow = false;
  /// A value that a rule takes is often a constant: equal elements, counted
  /// ones, or a table.
  bool constants = false;
};

/// A graph under construction; what the rules see.
class GraphBuilder {
public:
  GraphBuilder(mlir::MLIRContext &context, uint64_t seed,
               const GraphOptions &options);

  /// Grows the graph and closes it.
  mlir::OwningOpRef<mlir::ModuleOp> build();

  mlir::OpBuilder b;
  mlir::Location loc;
  Random random;
  const GraphOptions options;

  using Shape = llvm::ArrayRef<int64_t>;
  mlir::Type element() const;
  mlir::RankedTensorType tensor(Shape shape) const;
  mlir::RankedTensorType tensor(Shape shape, mlir::Type element) const;
  /// A small size of a dimension.
  int64_t size() { return random.between(2, 5); }
  /// A shape of such sizes whose dimension 0 can be the batch.
  llvm::SmallVector<int64_t> shape(int64_t rank);
  double number(double low, double high) {
    return low + (high - low) * random.unit();
  }

  /// New arguments.
  mlir::Value param(Shape shape);
  mlir::Value state(Shape shape);
  mlir::Value batch(mlir::RankedTensorType type, int64_t below = 0);
  /// Sets a unit attribute of an argument, one that Harness.h knows.
  void mark(mlir::Value argument, llvm::StringRef attribute) {
    unsigned index = mlir::cast<mlir::BlockArgument>(argument).getArgNumber();
    argAttrs[index].set(attribute, b.getUnitAttr());
  }
  /// The seed, one for all; and the samples' numbers, one vector per size.
  mlir::Value seed();
  mlir::Value samples(int64_t count);
  /// A number that no other op draws from.
  int64_t stream() { return nextStream++; }

  /// A float value of the given rank (any if negative), or a new one.
  mlir::Value pick(int64_t rank = -1);
  /// A float value of the type of `x`: another, a new one, or a broadcast.
  mlir::Value like(mlir::Value x);
  /// Constants, and values in safe ranges.
  mlir::Value constant(mlir::Value like, double value);
  mlir::Value anyConstant(mlir::RankedTensorType type);
  mlir::Value squash(mlir::Value x);
  mlir::Value positive(mlir::Value x);

  /// Offers a float value to later rules.
  void add(mlir::Value value) { pool.push_back(value); }
  /// A scalar that is part of the loss.
  void addLoss(mlir::Value value) { losses.push_back(value); }
  /// `value` is what becomes of the state.
  void addUpdate(mlir::Value value, mlir::Value state) {
    updates.push_back({value, state});
  }

private:
  mlir::Value argument(mlir::Type type, llvm::StringRef role,
                       llvm::StringRef prefix, int64_t below = 0);
  bool applyRule();
  bool keepsBatch(mlir::Operation *op);
  void close();

  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  mlir::Block *block;
  llvm::SmallVector<mlir::NamedAttrList> argAttrs;
  llvm::SmallVector<mlir::Value> pool, losses;
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> updates;
  llvm::DenseMap<int64_t, mlir::Value> samplesOf;
  llvm::DenseMap<mlir::Value, bool> isBatch; ///< Only where `batchSafe`.
  mlir::Value seedArgument;
  int64_t nextStream = 0;
};

/// One way of growing a graph. May give up, before it has added anything that
/// something else uses.
using Rule = void (*)(GraphBuilder &);
llvm::ArrayRef<Rule> allRules();
llvm::ArrayRef<Rule> exportRules();
llvm::ArrayRef<Rule> narrowRules();

mlir::OwningOpRef<mlir::ModuleOp> randomGraph(mlir::MLIRContext &context,
                                              uint64_t seed,
                                              const GraphOptions &options = {});

} // namespace tmc::test

#endif // TMC_TEST_UNIT_PASSES_RANDOMGRAPH_H
