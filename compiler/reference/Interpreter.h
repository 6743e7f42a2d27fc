// Interpreter.h - the meaning of our programs, in naive code.
//
// Kernels, passes and derivatives are compared with this definition. For each
// op there is one naive function over doubles; it ignores speed, layout,
// libraries and plans, and shares no code with the runtime. A pass is right if
// the interpreter gives the same numbers before and after it, a kernel if its
// numbers are as close to the interpreter's as its element type allows, a
// derivative if it agrees with differences of the interpreter's values.
//
//     FailureOr<SmallVector<Tensor>> results = interpret(function, inputs);
//
// `function` is a func.func, a train.step or any other op with one region of
// one block whose terminator's operands are the results. A value is dropped
// after its last use, so that a step of a real model fits in memory.
//
// ## A new op
// is one entry in the file of its family (Shapes.cpp, Losses.cpp, ...):
//
//     table.add<CopyOp>([](CopyOp op, OpCall &call) {
//       call.out(0) = call.in(op.getInput());
//       return success();
//     });
//
// `call.out(i)` already holds zeros of the result's type. A function fails,
// with a diagnostic at the op, if the *input* is at fault (an id outside its
// table); verified IR can't fail otherwise.
//
// ## Ranks
// A function with ops of a mesh is run once for each rank, by interpretRanks.
// Without other ranks each is taken to have the same values as this one.
//
// ## Rounding
// An op computes in doubles. By default a result narrower than f32 is rounded
// to its type, as every kernel must, inside fused kernels too, so that a cast
// has its effect. f32 stays a double, and two programs of one meaning agree to
// about 1e-12. `Rounding::ToType` rounds f32 as well, which bounds the accuracy
// of a perfect kernel. `Rounding::None` rounds nothing: differences of a
// function's values are its derivative only if it is smooth.

#ifndef TMC_COMPILER_REFERENCE_INTERPRETER_H
#define TMC_COMPILER_REFERENCE_INTERPRETER_H

#include "compiler/reference/Tensor.h"
#include "runtime/kernels/Mesh.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringMap.h"

namespace tmc::reference {

class Interpreter;
struct Scope;

/// One execution of one op: its inputs, and room for its outputs.
class OpCall {
public:
  OpCall(Interpreter &interpreter, const Scope *scope, mlir::Operation *op,
         llvm::ArrayRef<const Tensor *> inputs);

  mlir::Operation *getOp() const { return op; }
  /// The value of operand `index`.
  const Tensor &in(unsigned index) const { return *inputs[index]; }
  /// The value of `operand`, one of the op's.
  const Tensor &in(mlir::Value operand) const;
  /// The value of `operand`, or null if an optional operand is absent.
  const Tensor *inOrNull(mlir::Value operand) const {
    return operand ? &in(operand) : nullptr;
  }
  /// The value of a factor of a product in `type`, rounded to `type` if the
  /// factor is f32.
  Tensor factor(mlir::Value operand, mlir::Type type) const;
  unsigned getNumInputs() const { return inputs.size(); }
  /// True if a result of this type is rounded: for ops that don't round to
  /// nearest.
  bool isRounded(Element element) const;
  /// Result `index`: zeros of its type until it is written.
  Tensor &out(unsigned index) { return outputs[index]; }

  /// The values of all `ranks` ranks of this one's group, in the place of
  /// `mine`.
  mlir::FailureOr<std::vector<Tensor>> fromRanks(Axis axis, int64_t ranks,
                                                 const Tensor &mine);
  /// The place of this rank on an axis.
  int64_t placeOn(Axis axis) const;

  /// Runs `block`, of a region of the op, on `arguments`; the block may use
  /// values from around the op. Returns its terminator's operands.
  mlir::FailureOr<llvm::SmallVector<Tensor>>
  run(mlir::Block &block, llvm::SmallVector<Tensor> arguments);

private:
  friend class Interpreter;
  Interpreter &interpreter;
  const Scope *scope;
  mlir::Operation *op;
  llvm::SmallVector<const Tensor *> inputs;
  llvm::SmallVector<Tensor> outputs;
};

/// Op names and the functions that define the ops.
class OpTable {
public:
  using Function = std::function<mlir::LogicalResult(OpCall &)>;

  template <typename OpTy, typename F> void add(F function) {
    functions[OpTy::getOperationName()] = [function](OpCall &call) {
      return function(mlir::cast<OpTy>(call.getOp()), call);
    };
  }
  /// Null if the op has no entry.
  const Function *find(llvm::StringRef opName) const;

  /// The table of all ops of tmc.
  static const OpTable &all();

private:
  llvm::StringMap<Function> functions;
};

enum class Rounding {
  None,   ///< Doubles throughout.
  Narrow, ///< Results narrower than f32 are rounded to their element type.
  ToType, ///< Each result is rounded to its element type.
};

/// A rank's meetings with the others of a mesh.
class Meetings {
public:
  virtual ~Meetings() = default;
  virtual int64_t place(Axis axis) const = 0;
  /// The tensors of the ranks of the group, in their order; empty if another
  /// rank failed, or if there aren't `ranks` of them.
  virtual std::vector<Tensor> exchange(Axis axis, int64_t ranks,
                                       const Tensor &mine) = 0;
};

struct InterpreterOptions {
  Rounding rounding = Rounding::Narrow;
  /// Called with each op and its results, after it ran.
  std::function<void(mlir::Operation *, llvm::ArrayRef<Tensor>)> observe =
      nullptr;
  /// True if the inputs are rounded as results are. False if the caller has
  /// changed them by less than their type resolves, to measure the effect.
  bool roundsInputs = true;
  /// Null: there are no other ranks.
  Meetings *meetings = nullptr;
};

/// Runs the only block of `function` on `inputs`, one per block argument, and
/// returns its terminator's operands. Fails, with a diagnostic, if an op has no
/// entry or an input is at fault.
mlir::FailureOr<llvm::SmallVector<Tensor>>
interpret(mlir::Operation *function, llvm::SmallVector<Tensor> inputs,
          const InterpreterOptions &options = {});

/// Runs `function` on each rank of `mesh`: inputs and results by rank. One rank
/// runs at a time, so that `observe` needs no lock.
mlir::FailureOr<std::vector<llvm::SmallVector<Tensor>>>
interpretRanks(mlir::Operation *function, const Mesh &mesh,
               std::vector<llvm::SmallVector<Tensor>> inputs,
               const InterpreterOptions &options = {});

/// Runs one op on values for its operands.
mlir::FailureOr<llvm::SmallVector<Tensor>>
interpretOp(mlir::Operation *op, llvm::ArrayRef<const Tensor *> inputs,
            const InterpreterOptions &options = {});

// One function per family; each is in the file of its name.
void addArith(OpTable &table);
void addMath(OpTable &table);
void addProducts(OpTable &table);
void addQuantize(OpTable &table);
void addPools(OpTable &table);
void addAttention(OpTable &table);
void addNorms(OpTable &table);
void addLookups(OpTable &table);
void addLosses(OpTable &table);
void addRandom(OpTable &table);
void addRanks(OpTable &table);
void addRotary(OpTable &table);
void addShapes(OpTable &table);
void addFrozen(OpTable &table);
void addFused(OpTable &table);
void addTrain(OpTable &table);
void addUpdates(OpTable &table); // Called by addTrain.

} // namespace tmc::reference

#endif // TMC_COMPILER_REFERENCE_INTERPRETER_H
