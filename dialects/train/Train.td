#ifndef TMC_DIALECTS_TRAIN_TRAIN_TD
#define TMC_DIALECTS_TRAIN_TRAIN_TD

include "dialects/interfaces/Interfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Train_Dialect : Dialect {
  let name = "train";
  let cppNamespace = "::tmc::train";
  let summary = "What a training step is";
  let description = [{
    Attributes that this dialect gives meaning to, on the arguments and results
    of `func.func @forward` and of `train.step`:

    | attribute | on | meaning |
    |---|---|---|
    | `train.role` | argument | `#train.role<param, state, batch or scalar>` |
    | `train.name` | both | the model's own name |
    | `train.aliases` | argument | other names that the model has for it, of tied weights |
    | `train.frozen` | argument | unit: a param that isn't trained |
    | `train.init` | argument | "normal", "ones", "zeros" or a number: how a fresh one starts |
    | `train.slot` | argument | the param's name, of which this is optimizer state |
    | `train.copy_of` | argument | the param's name, of which this is a copy in 16 bits |
    | `train.feed` | argument | "seed", "samples", "lr" or "step": the runtime fills it |
    | `train.limit` | argument | integers must be in [0, limit) |
    | `train.ignore` | argument | or may be this, a label that doesn't count |
    | `train.ranges` | argument | the same of boxes of elements, as `#train.range` |
    | `train.loss` | result | unit: the loss, one f32 scalar |
    | `train.updates` | result | the number of the argument whose new value it is |

    A tensor's type says where its bytes are, if not on the device:
    `#train.space<host>` or `#train.space<file>` as its encoding. That of a
    parameter or state of the step is its home, where it is between steps.
  }];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kRole = "train.role";
    static constexpr ::llvm::StringLiteral kName = "train.name";
    static constexpr ::llvm::StringLiteral kAliases = "train.aliases";
    static constexpr ::llvm::StringLiteral kFrozen = "train.frozen";
    static constexpr ::llvm::StringLiteral kInit = "train.init";
    static constexpr ::llvm::StringLiteral kSlot = "train.slot";
    static constexpr ::llvm::StringLiteral kCopyOf = "train.copy_of";
    static constexpr ::llvm::StringLiteral kFeed = "train.feed";
    static constexpr ::llvm::StringLiteral kLimit = "train.limit";
    static constexpr ::llvm::StringLiteral kIgnore = "train.ignore";
    static constexpr ::llvm::StringLiteral kRanges = "train.ranges";
    static constexpr ::llvm::StringLiteral kLoss = "train.loss";
    static constexpr ::llvm::StringLiteral kUpdates = "train.updates";
    /// On `func.func @forward` after the split pass: how often the body runs.
    static constexpr ::llvm::StringLiteral kMicroBatches =
        "train.micro_batches";
    /// On a product: the exception of `--precision` that decided its type.
    static constexpr ::llvm::StringLiteral kPrecision = "train.precision";
    /// On every op from `plan` on: which execution of its original it is.
    static constexpr ::llvm::StringLiteral kInstance = "train.instance";
    /// On an update that the host runs: unit.
    static constexpr ::llvm::StringLiteral kOnHost = "train.on_host";
  }];
}

def Train_Role : I32EnumAttr<"Role", "what an argument of a step is", [
    I32EnumAttrCase<"Param", 0, "param">, I32EnumAttrCase<"State", 1, "state">,
    I32EnumAttrCase<"Batch", 2, "batch">,
    I32EnumAttrCase<"Scalar", 3, "scalar">]> {
  let cppNamespace = "::tmc::train";
  let genSpecializedAttr = 0;
}

def Train_RoleAttr : EnumAttr<Train_Dialect, Train_Role, "role"> {
  let assemblyFormat = "`<` $value `>`";
}

def Train_RangeAttr : AttrDef<Train_Dialect, "Range"> {
  let mnemonic = "range";
  let summary = "what the integers in a box of an input may be";
  let description = [{
    Elements offset + i * step, 0 <= i < size, along each dimension must be in
    [0, `limit`), or `ignore`.

        #train.range<[0, 1] sizes[6, 1] steps[1, 1] below 7>
        #train.range<[0, 1] sizes[6, 3] steps[1, 1] below 7 or -100>
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$offsets,
                        ArrayRefParameter<"int64_t">:$sizes,
                        ArrayRefParameter<"int64_t">:$steps,
                        "int64_t":$limit,
                        OptionalParameter<"std::optional<int64_t>">:$ignore);
  let assemblyFormat = [{
    `<` `[` $offsets `]` `sizes` `[` $sizes `]` `steps` `[` $steps `]`
    `below` $limit (`or` $ignore^)? `>`
  }];
}

def Train_Space : I32EnumAttr<"Space", "where bytes are", [
    I32EnumAttrCase<"Device", 0, "device">, I32EnumAttrCase<"Host", 1, "host">,
    I32EnumAttrCase<"File", 2, "file">]> {
  let cppNamespace = "::tmc::train";
  let genSpecializedAttr = 0;
}

def Train_SpaceAttr : EnumAttr<Train_Dialect, Train_Space, "space"> {
  let summary = "the encoding of a tensor whose bytes aren't on the device";
  let description = [{
        tensor<768x768xf32>                      on the device
        tensor<768x768xf32, #train.space<host>>  in host memory
        tensor<768x768xf32, #train.space<file>>  in a file
  }];
  let assemblyFormat = "`<` $value `>`";
}

def Train_AnyTensor : StaticShapeTensorOf<kElementTypes>;
def Train_Float : StaticShapeTensorOf<[F16, BF16, F32, F64]>;

//===----------------------------------------------------------------------===//
// The step
//===----------------------------------------------------------------------===//

def Train_StepOp : Op<Train_Dialect, "step", [
    FunctionOpInterface, IsolatedFromAbove,
    SingleBlock]> {
  let summary = "one training step, as a function";
  let description = [{
    Takes parameters, states, a batch and scalars; returns the new values of the
    parameters and states (`train.updates`), the loss and further outputs. The
    order of the ops in its block is the schedule.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}

def Train_ReturnOp : Op<Train_Dialect, "return", [
    Pure, Terminator, ParentOneOf<["StepOp"]>]> {
  let summary = "the results of a step";
  let arguments = (ins Variadic<Train_AnyTensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Train_MicroBatchOp : Op<Train_Dialect, "micro_batch", [
    Pure, SingleBlock]> {
  let summary = "the body of a step, run once for each piece of the batch";
  let description = [{
    Runs its region `count` times. The first block arguments are the pieces of
    `slices`, cut along dimension 0 in order; the others are the values carried
    from one run to the next, which begin as zeros (the first run writes where
    the others add) and of which the op returns the last. The region may read
    values from outside, which are the same for every run.

    Constraints:
    - C1: the region takes the pieces of `slices`, then the carried values;
      `count` divides dimension 0 of each slice.
    - C2: carried values, yielded values and results agree in type.
  }];
  let arguments = (ins I64Attr:$count, Variadic<Train_AnyTensor>:$slices);
  let results = (outs Variadic<Train_AnyTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $count (`slices` `(` $slices^ `:` type($slices) `)`)?
    (`->` type($results)^)? attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    ::mlir::Block &getBlock() { return getBody().front(); }
    /// The block arguments that carry values from run to run.
    ::mlir::Block::BlockArgListType getCarried() {
      return getBlock().getArguments().drop_front(getSlices().size());
    }
  }];
}

def Train_YieldOp : Op<Train_Dialect, "yield", [
    Pure, Terminator, ParentOneOf<["MicroBatchOp"]>]> {
  let summary = "what one run of the body carries to the next";
  let arguments = (ins Variadic<Train_AnyTensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

//===----------------------------------------------------------------------===//
// Moves and other work beside the device's kernels
//===----------------------------------------------------------------------===//

/// Work that runs beside the device's kernels is two ops of the schedule:
///
///     %h = train.stash_start %v          the copy may begin
///     %w = nn.matmul ...                 runs meanwhile
///     train.stash_done %h                the copy is over: %v's bytes are free
///
/// What the work reads and writes is alive from its start through its done.
/// Each engine does one thing at a time, in the order of the starts, and dones
/// of one engine stand in that order. Compute waits at the done of work that
/// reads or writes a value of the device, and at no other.
/// compiler/planning/model/Problem.h (R10 to R12) is the whole of it.
class Train_Move<string mnemonic> : Op<Train_Dialect, mnemonic> {
  let arguments = (ins Train_AnyTensor:$source);
  let results = (outs Train_AnyTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

class Train_Done<string mnemonic> : Op<Train_Dialect, mnemonic> {
  let hasVerifier = 1;
}

def Train_StashStartOp : Train_Move<"stash_start"> {
  let summary = "begins to copy a value away from the device";
  let description = [{
    From the device to host memory, or from host memory to a file.

    Constraints:
    - C1: `source` and `result` differ in their space alone.
    - C2: the copy goes one space away from the device.
  }];
}

def Train_FetchStartOp : Train_Move<"fetch_start"> {
  let summary = "begins to copy a value towards the device";
  let description = [{
    From a file to host memory, or from host memory to the device.

    Constraints:
    - C1: `source` and `result` differ in their space alone.
    - C2: the copy goes one space towards the device.
  }];
}

def Train_StashDoneOp : Train_Done<"stash_done"> {
  let summary = "the end of a stash";
  let description = [{
    Constraints:
    - C1: `value` is the result of a `train.stash_start` of the same block.
  }];
  let arguments = (ins Train_AnyTensor:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Train_FetchDoneOp : Train_Done<"fetch_done"> {
  let summary = "the end of a fetch: kernels may read the value";
  let description = [{
    Constraints:
    - C1: `value` is the result of a `train.fetch_start` of the same block.
  }];
  let arguments = (ins Train_AnyTensor:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Train_UpdateDoneOp : Train_Done<"update_done"> {
  let summary = "the end of an update that the host runs";
  let description = [{
    An update with `train.on_host` is work of the host's engine: it reads and
    writes host memory, and ends here.

    Constraints:
    - C1: `values` are results of one op of the same block with `train.on_host`.
  }];
  let arguments = (ins Variadic<Train_AnyTensor>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

//===----------------------------------------------------------------------===//
// Gradients and updates
//===----------------------------------------------------------------------===//

/// `costs`: methods of `CostOpInterface` whose default isn't the op's.
class Train_Op<string mnemonic, list<Trait> traits = [],
               list<string> costs = []>
    : Op<Train_Dialect, mnemonic, !listconcat([
        Pure, NotDifferentiable, InferTypeOpAdaptor,
        DeclareOpInterfaceMethods<CostOpInterface, costs>,
        DeclareOpInterfaceMethods<KernelOpInterface>], traits)>;

def Train_SquareSumOp : Train_Op<"square_sum"> {
  let summary = "sum of the squares of a gradient's elements";
  let description = [{
    An f32 scalar (f64 for f64), accumulated in double in a fixed tree.
  }];
  let arguments = (ins Train_Float:$grad);
  let results = (outs Train_Float:$result);
  let assemblyFormat = "$grad attr-dict `:` functional-type(operands, results)";
}

def Train_GradNormOp : Train_Op<"grad_norm", [AttrSizedOperandSegments]> {
  let summary = "global norm of the gradients, and the factor that clips them";
  let description = [{
    `norm` is the square root of the sum, in order, of `squares`; `clip` is
    min(1, max_norm / (norm + 1e-6)), or 1 if `max_norm` is 0. Where the
    gradients are those of the loss times `scale`, `norm` is divided by it, and
    then `clip`, too: that factor unscales and clips at once.

    Constraints:
    - C1: `squares` are scalars of one type, and `scale` is one.
  }];
  let arguments = (ins Variadic<Train_Float>:$squares,
                       Optional<Train_Float>:$scale, F64Attr:$max_norm);
  let results = (outs Train_Float:$norm, Train_Float:$clip);
  let assemblyFormat = [{
    $squares (`scale` `(` $scale^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def Train_LossScaleOp : Train_Op<"loss_scale"> {
  let summary = "whether the gradients are finite, and the loss's next scale";
  let description = [{
    What PyTorch's GradScaler does between two steps. `norm` is the gradients':
    if it is finite, `step` is the number of this update, `count` + 1, and so is
    `new_count`; after `interval` such steps in a row `scale` is multiplied by
    `growth`, unless that overflows. If it isn't, `step` is 0, which tells the
    updates to leave everything as it is, `count` stays, and `scale` is
    multiplied by `backoff`. `clean` counts the finite steps since the scale
    moved. With an `interval` of 0 it never moves.

    Constraints:
    - C1: all operands are scalars.
  }];
  let arguments = (ins Train_Float:$norm, Train_Float:$scale,
                       Train_AnyTensor:$clean, Train_AnyTensor:$count,
                       F64Attr:$growth, F64Attr:$backoff, I64Attr:$interval);
  let results = (outs Train_Float:$new_scale, Train_AnyTensor:$new_clean,
                      Train_AnyTensor:$new_count, Train_AnyTensor:$step);
  let assemblyFormat = [{
    $norm `scale` `(` $scale `)` `clean` `(` $clean `)` `count` `(` $count `)`
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getOverwrites() {
      return {{1, 0}, {2, 1}, {3, 2}};
    }
  }];
}

/// An optimizer's rule: operand 0 is the parameter, operand 1 its gradient, and
/// result 0 the new parameter. State and its types are the rule's own.
///
/// Parameter, gradient and moments have types of their own; what is computed of
/// them is f32. Where a parameter or a moment has 16 bits, its new value is
/// rounded by chance, as runtime/kernels/Stochastic.h says: `stream` numbers the
/// draws of this update.
///
/// `step` counts updates from 1. At 0 an update leaves everything as it is; so
/// `train.loss_scale` skips one.
///
/// A parameter in f32 may have a copy in 16 bits, for the products that multiply
/// those: the last operand, `copy`, whose new value `new_copy` the update rounds
/// from the new parameter as it writes that, to nearest, as a cast does. So the
/// masters are read once, and no step begins with casts:
///
///     products --read--> copy <--rounds-- update --writes--> parameter
///
/// The copy is a state of the step (`train.copy_of`), and always its parameter
/// rounded: the runtime makes it anew wherever a parameter gets a value, from
/// weights, at random, from a checkpoint or from outside, and files hold
/// parameters alone, so that the two can't disagree. At step 0 both stay. As any
/// new value the new copy takes the old one's bytes, so that an update comes
/// after every product that reads the copy.
def Train_UpdateRule : NativeOpTrait<"UpdateRule"> {
  let cppNamespace = "::tmc::train";
}

/// Ops whose last result is the gradient's sum of squares, and the one before
/// it the new copy, if there is one.
class Train_Update<string mnemonic>
    : Train_Op<mnemonic, [Train_UpdateRule, AttrSizedOperandSegments],
               ["getBytesMoved"]>;

def Train_AdamWOp : Train_Update<"adamw"> {
  let summary = "one AdamW update";
  let description = [{
    In PyTorch's order: p *= 1 - lr * weight_decay; m and v move towards g and
    g^2; p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon).
    `step` is t, counted from 1, `clip` a factor of the gradient. `square` is
    the sum of squares of the gradient before clipping, so that its norm costs
    no pass of its own when nothing clips. New values take the old ones' bytes.

    Constraints:
    - C1: `grad`, `m` and `v` have the parameter's shape, `m` and `v` one type;
      `lr`, `step` and `clip` are scalars; there is a `stream` if, and only if,
      something kept has less than 32 bits.
    - C2: `copy` is a bf16 or f16 for each element of a parameter in f32.
  }];
  let arguments = (ins Train_Float:$param, Train_Float:$grad, Train_Float:$m,
                       Train_Float:$v, Train_Float:$lr, Train_AnyTensor:$step,
                       Optional<Train_Float>:$clip, Optional<Train_Float>:$copy,
                       F64Attr:$beta1, F64Attr:$beta2, F64Attr:$epsilon,
                       F64Attr:$weight_decay, OptionalAttr<I64Attr>:$stream);
  let results = (outs Train_Float:$new_param, Train_Float:$new_m,
                      Train_Float:$new_v, Optional<Train_Float>:$new_copy,
                      Train_Float:$square);
  let assemblyFormat = [{
    $param `,` $grad `,` $m `,` $v `lr` `(` $lr `)` `step` `(` $step `)`
    (`clip` `(` $clip^ `)`)? (`copy` `(` $copy^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getOverwrites();
  }];
}

def Train_AdamW8bitOp : Train_Update<"adamw8bit"> {
  let summary = "one AdamW update, with moments in 8 bits";
  let description = [{
    `train.adamw`, whose moments are codes: an i8 per element, whose bits are the
    number of a value in [-1, 1] (`m`) or [0, 1] (`v`), times the largest absolute
    value of the 256 elements around it (`m_max`, `v_max`), in the order of
    memory. runtime/kernels/Adam.h lists the values. The update reads the moments
    in f32 and codes the new ones to nearest. Elements whose gradient isn't finite
    stay as they are.

    Constraints:
    - C1: `grad` has the parameter's shape; so have `m` and `v`, of i8; `m_max`
      and `v_max` are f32, one per 256 elements; `lr`, `step` and `clip` are
      scalars; there is a `stream` if, and only if, the parameter has less than
      32 bits.
    - C2: `copy` is a bf16 or f16 for each element of a parameter in f32.
  }];
  let arguments = (ins Train_Float:$param, Train_Float:$grad,
                       Train_AnyTensor:$m, Train_Float:$m_max,
                       Train_AnyTensor:$v, Train_Float:$v_max, Train_Float:$lr,
                       Train_AnyTensor:$step, Optional<Train_Float>:$clip,
                       Optional<Train_Float>:$copy, F64Attr:$beta1,
                       F64Attr:$beta2, F64Attr:$epsilon, F64Attr:$weight_decay,
                       OptionalAttr<I64Attr>:$stream);
  let results = (outs Train_Float:$new_param, Train_AnyTensor:$new_m,
                      Train_Float:$new_m_max, Train_AnyTensor:$new_v,
                      Train_Float:$new_v_max, Optional<Train_Float>:$new_copy,
                      Train_Float:$square);
  let assemblyFormat = [{
    $param `,` $grad `,` $m `,` $m_max `,` $v `,` $v_max `lr` `(` $lr `)`
    `step` `(` $step `)` (`clip` `(` $clip^ `)`)? (`copy` `(` $copy^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Elements that share a maximum.
    static constexpr int64_t kBlock = 256;
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getOverwrites();
  }];
}

def Train_SGDOp : Train_Update<"sgd"> {
  let summary = "one update of stochastic gradient descent";
  let description = [{
    In PyTorch's order: g += weight_decay * p; with momentum, m = momentum * m +
    (1 - dampening) * g (m = g at the first step), g = m, or g + momentum * m if
    `nesterov`; p -= lr * g.

    Constraints:
    - C1: `grad` and `momentum_buffer` have the parameter's shape; `lr`, `step`
      and `clip` are scalars; there is a buffer if, and only if, `momentum` is
      positive, and a `stream` if, and only if, something kept has less than 32
      bits.
    - C2: `copy` is a bf16 or f16 for each element of a parameter in f32.
  }];
  let arguments = (ins Train_Float:$param, Train_Float:$grad,
                       Optional<Train_Float>:$momentum_buffer, Train_Float:$lr,
                       Train_AnyTensor:$step, Optional<Train_Float>:$clip,
                       Optional<Train_Float>:$copy, F64Attr:$momentum,
                       F64Attr:$dampening, F64Attr:$weight_decay,
                       UnitAttr:$nesterov, OptionalAttr<I64Attr>:$stream);
  // The buffer's new value and the copy's, where there are such.
  let results = (outs Train_Float:$new_param, Variadic<Train_Float>:$new_states,
                      Train_Float:$square);
  let assemblyFormat = [{
    $param `,` $grad (`momentum` `(` $momentum_buffer^ `)`)? `lr` `(` $lr `)`
    `step` `(` $step `)` (`clip` `(` $clip^ `)`)? (`copy` `(` $copy^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    ::mlir::Value getNewMomentumBuffer() {
      return getMomentumBuffer() ? getNewStates().front() : ::mlir::Value();
    }
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getOverwrites();
  }];
}

#endif // TMC_DIALECTS_TRAIN_TRAIN_TD
