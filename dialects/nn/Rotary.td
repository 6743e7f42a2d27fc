// Rotary.td - positions as rotations.

#ifndef TMC_DIALECTS_NN_ROTARY_TD
#define TMC_DIALECTS_NN_ROTARY_TD

include "dialects/nn/Base.td"

def NN_RotaryEmbeddingOp : NN_InferredOp<"rotary_embedding", [
    Differentiable, Storing, DeclareOpInterfaceMethods<KernelOpInterface, [
        "acceptsStrides", "getOverwrites"]>]> {
  let summary = "rotation of pairs of columns by angles";
  let description = [{
    The first d columns of a row of `input`, where d is the size of a row of
    `cos` and `sin`, are d / 2 pairs: columns i and i + d / 2, or, if
    `interleaved`, columns 2 i and 2 i + 1. For the columns a and b of a pair,

    - y[a] = x[a] * cos[a] - x[b] * sin[a],
    - y[b] = x[b] * cos[b] + x[a] * sin[b].

    Columns from d on are unchanged. If `heads` is positive, so are all columns of
    the rows from `heads` on along the second innermost dimension: values behind
    queries and keys in one tensor. The adjoint, `transposed`, is

    - y[a] = x[a] * cos[a] + x[b] * sin[b],
    - y[b] = x[b] * cos[b] - x[a] * sin[a].

    `cos` and `sin` are one row for each row of `input`, or repeat along some of
    its dimensions. A kernel widens what it reads, computes in f32, and rounds
    the result once.

    Constraints:
    - C1: `input` has 1 to 4 dimensions.
    - C2: `cos` and `sin` have one type, in which sums of the input's elements
      are accumulated, and the input's rank. Along each dimension but the
      innermost they have the input's size, or 1.
    - C3: d is even, and at most the size of the input's rows.
    - C4: `heads` isn't negative. If it is positive, it is at most the size of the
      second innermost dimension, along which `cos` and `sin` have size 1.

    Example:

    ```mlir
    %q1 = nn.rotary_embedding %q, %cos, %sin : (tensor<2x8x4x16xbf16>, tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) -> tensor<2x8x4x16xbf16>
    ```
  }];
  let arguments = (ins NN_Float:$input, NN_Float:$cos, NN_Float:$sin,
                       UnitAttr:$interleaved, UnitAttr:$transposed,
                       DefaultValuedAttr<I64Attr, "0">:$heads);
  let results = (outs NN_Float:$result);
  let extraClassDeclaration = [{
    /// The elements that are rotated. The others are only copied, and stay where
    /// they are if the result takes the operand's place.
    int64_t getRotatedElements();
    int64_t getBytesMoved();
  }];
  let assemblyFormat = [{
    $input `,` $cos `,` $sin attr-dict `:` functional-type(operands, results)
  }];
}

#endif // TMC_DIALECTS_NN_ROTARY_TD
