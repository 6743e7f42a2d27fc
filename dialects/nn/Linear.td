// Linear.td - products, and rows of a table.

#ifndef TMC_DIALECTS_NN_LINEAR_TD
#define TMC_DIALECTS_NN_LINEAR_TD

include "dialects/nn/Base.td"

def NN_MatmulOp : NN_Op<"matmul", [
    AttrSizedOperandSegments, Differentiable, AccumulatingKernel,
    DeclareOpInterfaceMethods<PrecisionOpInterface,
                              ["roundsAsRead", "mayKeepSums", "takesTF32",
                               "getAddends", "takesCodes", "getSummedDim",
                               "setCodes"]>]> {
  let summary = "batched matrix product";
  let description = [{
    Multiplies the two innermost dimensions of `lhs` and `rhs`; leading
    dimensions are batch dimensions. Operands and result each have an element
    type of their own: products of 16-bit operands may end in f32. An operand of
    f32 beside one of 16 bits is rounded to its type as it is read, and with
    `tf32` operands of f32 are rounded to TF32. Sums are in f32 (f64 where all is
    f64) and rounded once, to the result. `bias` is added
    to each row of the result. `acc` is added to the result and gives it its
    bytes: this is how a gradient accumulates in place.

    `scales` are those of codes of 8 bits: a code times its scale is the factor.
    Their shapes say what shares a scale, as `nn.quantize` makes them. The
    product of codes whose scale is the whole tensor's is multiplied by it
    afterwards, in f32; blocks' scales are powers of two, by which codes are
    multiplied first. Packed scales are those of a card's product, which sums
    along the rows of both factors.

    The transpose flags read an operand transposed in place. They exist so that
    the gradient of a matmul is two matmuls and nothing else.

    Constraints:
    - C1: operands have the same rank, at least 2, and the same element type,
      or two of 8 bits, or f32 and one of 16; with `tf32`, f32.
    - C2: batch dimensions agree.
    - C3: contracted dimensions agree.
    - C4: `bias` is a row of the result.
    - C5: `acc` has the result's type.
    - C6: the result's shape is [batch..., m, n].
    - C7: scales go with factors of 8 bits, and are of a shape for theirs.
    - C8: packed scales are both factors', with `transpose_rhs` alone, and one's
      at least are of rows.

    Example:

    ```mlir
    %y = nn.matmul %x, %w transpose_rhs bias(%b)
        : (tensor<128x64xf16>, tensor<256x64xf16>, tensor<256xf16>) -> tensor<128x256xf16>
    ```
  }];
  let arguments = (ins NN_Factor:$lhs, NN_Factor:$rhs, Optional<NN_Float>:$bias,
                       Optional<NN_Float>:$acc, Optional<NN_Scale>:$lhs_scale,
                       Optional<NN_Scale>:$rhs_scale, UnitAttr:$transpose_lhs,
                       UnitAttr:$transpose_rhs, UnitAttr:$tf32);
  let results = (outs NN_Float:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs,
                   CArg<"bool", "false">:$transposeLhs,
                   CArg<"bool", "false">:$transposeRhs,
                   CArg<"::mlir::Type", "{}">:$resultElement)>,
    OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs,
                   "::mlir::Value":$bias, "::mlir::Value":$acc,
                   "bool":$transposeLhs, "bool":$transposeRhs)>];
  let extraClassDeclaration = [{
    /// Whether the scales of its factors are packed for a card.
    bool hasPackedScales();
  }];
  let assemblyFormat = [{
    $lhs `,` $rhs (`transpose_lhs` $transpose_lhs^)?
    (`transpose_rhs` $transpose_rhs^)? (`bias` `(` $bias^ `)`)?
    (`acc` `(` $acc^ `)`)?
    (`scales` `(` $lhs_scale^ `,` $rhs_scale `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
}

def NN_EmbeddingOp : NN_InferredOp<"embedding", [Differentiable, Kernel]> {
  let summary = "rows of a table";
  let description = [{
    `table` [V, ...], `ids` of any shape: the result has the shape of `ids`
    followed by a row's. An id outside [0, V) is an error of the input, which
    the runtime reports.

    Constraints:
    - C1: `table` has rank at least 1.
  }];
  let extraClassDeclaration = "int64_t getBytesMoved();";
  let arguments = (ins NN_Tensor:$table, NN_Int:$ids);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $table `,` $ids attr-dict `:` functional-type(operands, results)
  }];
}

def NN_EmbeddingGradOp : NN_Op<"embedding_grad", [
    Differentiable, AccumulatingKernel]> {
  let summary = "gradient of embedding: adds rows into a table";
  let description = [{
    A table of zeros, or `acc`, to whose row ids[i] row i of `grad` is added, in
    the order of i. `acc` gives the result its bytes.

    Constraints:
    - C1: `grad` has the shape of `ids` followed by a row of the result's.
    - C2: `acc` has the result's type.
  }];
  let extraClassDeclaration = "int64_t getBytesMoved();";
  let arguments = (ins NN_Int:$ids, NN_Float:$grad, Optional<NN_Float>:$acc);
  let results = (outs NN_Float:$result);
  let assemblyFormat = [{
    $ids `,` $grad (`acc` `(` $acc^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
}

#endif // TMC_DIALECTS_NN_LINEAR_TD
