#ifndef TMC_DIALECTS_TRAIN_TRAIN_TD
#define TMC_DIALECTS_TRAIN_TRAIN_TD

include "dialects/interfaces/Interfaces.td"
include "dialects/interfaces/Machine.td"
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
    | `train.init` | argument | "normal", "ones", "zeros", a number or `#train.draw`: how a fresh one starts |
    | `train.adapter` | argument | the module to which a param was added: no file of the model has it |
    | `train.fan_in_fan_out` | argument | unit: that module's matrix is [in, out] |
    | `train.parts` | both | `#train.part`s: tensors of the model that this one holds, one after another along its first dimension |
    | `train.cut` | argument | `#train.cut`: each rank of tp has a piece of it |
    | `train.slot` | argument | the param's name, of which this is optimizer state |
    | `train.stored` | argument | `#train.stored`: these are codes of a frozen param |
    | `train.maxima_of` | argument | the name of the codes that these maxima belong to |
    | `train.copy_of` | argument | the param's name, of which this is a copy in 16 bits |
    | `train.feed` | argument | "seed", "samples", "tensor_place", "lr" or "step": the runtime fills it |
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
    static constexpr ::llvm::StringLiteral kAdapter = "train.adapter";
    static constexpr ::llvm::StringLiteral kFanInFanOut =
        "train.fan_in_fan_out";
    static constexpr ::llvm::StringLiteral kParts = "train.parts";
    static constexpr ::llvm::StringLiteral kSlot = "train.slot";
    static constexpr ::llvm::StringLiteral kStored = "train.stored";
    static constexpr ::llvm::StringLiteral kMaximaOf = "train.maxima_of";
    static constexpr ::llvm::StringLiteral kCopyOf = "train.copy_of";
    static constexpr ::llvm::StringLiteral kFeed = "train.feed";
    static constexpr ::llvm::StringLiteral kLimit = "train.limit";
    static constexpr ::llvm::StringLiteral kIgnore = "train.ignore";
    static constexpr ::llvm::StringLiteral kRanges = "train.ranges";
    static constexpr ::llvm::StringLiteral kLoss = "train.loss";
    static constexpr ::llvm::StringLiteral kUpdates = "train.updates";
    /// On `func.func @forward` after the split pass: the number of runs of the
    /// body.
    static constexpr ::llvm::StringLiteral kMicroBatches =
        "train.micro_batches";
    /// On `func.func @forward` after the split pass, and on the step: the ranks
    /// that the batch is dealt to.
    static constexpr ::llvm::StringLiteral kRanks = "train.ranks";
    /// On an argument of the step that is a rank's shard: the type of the whole.
    static constexpr ::llvm::StringLiteral kWhole = "train.whole";
    /// On `func.func @forward` after -tmc-cut, and on the step: the ranks that
    /// heads and columns are dealt to.
    static constexpr ::llvm::StringLiteral kTensorRanks = "train.tensor_ranks";
    /// On an argument of which each of those ranks has a piece: `#train.cut`.
    static constexpr ::llvm::StringLiteral kCut = "train.cut";
    /// On `func.func @forward` after the layout phase: the number of parts in
    /// which rows between wide products are computed.
    static constexpr ::llvm::StringLiteral kTiles = "train.tiles";
    /// On a product: the exception of `--precision` that decided its type.
    static constexpr ::llvm::StringLiteral kPrecision = "train.precision";
    /// On every op from `plan` on: the number of its execution among those of
    /// its original.
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

def Train_PartAttr : AttrDef<Train_Dialect, "Part"> {
  let mnemonic = "part";
  let summary = "a tensor of the model, as rows of a larger one";
  let description = [{
    Its name, its size along the first dimension, and the `train.init` that it
    has for itself.

        #train.part<"attn.q.weight", 768>
        #train.part<"attn.q.bias", 768, "zeros">
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$rows,
                        OptionalParameter<"::mlir::Attribute">:$init);
  let assemblyFormat = "`<` $name `,` $rows (`,` $init^)? `>`";
}

def Train_CutAttr : AttrDef<Train_Dialect, "Cut"> {
  let mnemonic = "cut";
  let summary = "the tensor of which each rank of tp has a piece";
  let description = [{
    The type of the whole, and the dimension that is cut. It consists of `runs`
    equal parts, one after another, and a rank's piece has a piece of each: the
    columns of queries, keys and values in one table are three.

        #train.cut<tensor<64x192xf32>, dim 1, runs 3>
  }];
  let parameters = (ins "::mlir::RankedTensorType":$whole, "int64_t":$dim,
                        "int64_t":$runs);
  let assemblyFormat = "`<` $whole `,` `dim` $dim `,` `runs` $runs `>`";
}

def Train_StoredAttr : AttrDef<Train_Dialect, "Stored"> {
  let mnemonic = "stored";
  let summary = "the parameter that an argument of codes stands for";
  let description = [{
    Its own type, the name of the argument with the maxima, and where they are
    codes themselves, of that with theirs. `nn.dequantize` says the format.

        #train.stored<tensor<64x64xf32>, "fc.weight.absmax">
        #train.stored<tensor<64x64xf32>, "fc.weight.absmax", "fc.weight.nested_absmax">
  }];
  let parameters = (ins "::mlir::RankedTensorType":$type,
                        "::mlir::StringAttr":$absmax,
                        OptionalParameter<"::mlir::StringAttr">:$nested);
  let assemblyFormat = "`<` $type `,` $absmax (`,` $nested^)? `>`";
}

def Train_DrawAttr : AttrDef<Train_Dialect, "Draw"> {
  let mnemonic = "draw";
  let summary = "the random numbers that a fresh tensor starts with";
  let description = [{
    Normal numbers of this standard deviation, or uniform ones in [-size, size).

        #train.draw<"normal", 6.250000e-02 : f64>
        #train.draw<"uniform", 1.250000e-01 : f64>
  }];
  let parameters = (ins "::mlir::StringAttr":$kind, "::mlir::FloatAttr":$size);
  let assemblyFormat = "`<` $kind `,` $size `>`";
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

def Train_SpaceAttr : Machine_SpaceAttr<Train_Dialect> {
  let summary = "the encoding of a tensor whose bytes aren't on the device";
  let description = [{
        tensor<768x768xf32>                      on the device
        tensor<768x768xf32, #train.space<host>>  in host memory
        tensor<768x768xf32, #train.space<file>>  in a file
  }];
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

/// Work beside the device's kernels is two ops of the schedule:
///
///     %h = train.stash_start %v          the copy may begin
///     %w = nn.matmul ...                 runs meanwhile
///     train.stash_done %h                the copy is over: %v's bytes are free
///
/// Values that the work reads and writes are alive from its start through its
/// done. Each engine does one thing at a time, in the order of the starts, and
/// the dones of one engine have the same order. Compute waits at the done of
/// work that reads or writes a value of the device, and at no other.
/// compiler/planning/model/Problem.h (R10 to R12) has the complete rules.
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

def Train_WorkDoneOp : Train_Done<"work_done"> {
  let summary = "the end of a kernel beside the device's";
  let description = [{
    An update with `train.on_host` is work of the host's engine: it reads and
    writes host memory, and ends here. So are `nn.exchange` and `nn.gather` work
    of the network. Before the plan they have no end: kernels wait for them.

    Constraints:
    - C1: `values` are results of one op of the same block, which is such work.
  }];
  let arguments = (ins Variadic<Train_AnyTensor>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

include "dialects/train/Updates.td"

#endif // TMC_DIALECTS_TRAIN_TRAIN_TD
