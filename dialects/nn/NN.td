#ifndef TMC_DIALECTS_NN_NN_TD
#define TMC_DIALECTS_NN_NN_TD

include "dialects/interfaces/Interfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::tmc::nn";
  let summary = "Tensor operations of a neural network, as values";
}

//===----------------------------------------------------------------------===//
// What the records below are made of
//===----------------------------------------------------------------------===//

def NN_Float : StaticShapeTensorOf<[F16, BF16, F32, F64]>;
def NN_Int : StaticShapeTensorOf<[I32, I64]>;
def NN_Bool : StaticShapeTensorOf<[I1]>;
def NN_Tensor : StaticShapeTensorOf<[F16, BF16, F32, F64, I1, I8, I32, I64]>;

/// A pure op that answers every planner's question about cost and batch.
class NN_Op<string mnemonic, list<Trait> traits = []>
    : Op<NN_Dialect, mnemonic, !listconcat([
        Pure, DeclareOpInterfaceMethods<CostOpInterface>,
        DeclareOpInterfaceMethods<BatchSplitOpInterface>], traits)> {
  let hasVerifier = 1;
}

/// Result types follow from the operands: one function checks and infers.
class NN_InferredOp<string mnemonic, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat([InferTypeOpAdaptor], traits)> {
  let hasVerifier = 0;
}

defvar Differentiable = DeclareOpInterfaceMethods<DifferentiableOpInterface>;
defvar Kernel = DeclareOpInterfaceMethods<KernelOpInterface>;
defvar InPlaceKernel =
    DeclareOpInterfaceMethods<KernelOpInterface, ["getOverwrites"]>;
defvar AccumulatingKernel =
    DeclareOpInterfaceMethods<KernelOpInterface, ["getAccumulator"]>;
defvar StridedKernel =
    DeclareOpInterfaceMethods<KernelOpInterface, ["acceptsStrides"]>;
defvar View = DeclareOpInterfaceMethods<ViewOpInterface>;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

def NN_MatmulOp : NN_InferredOp<"matmul", [
    AttrSizedOperandSegments, Differentiable, AccumulatingKernel]> {
  let summary = "batched matrix product";
  let description = [{
    Multiplies the two innermost dimensions of `lhs` and `rhs`; leading
    dimensions are batch dimensions. Products accumulate in f32 whatever the
    element type. `bias` is added to each row of the result. `acc`, of the
    result's type, is added to the result and gives it its bytes: this is how a
    gradient accumulates in place.

    The transpose flags read an operand transposed in place. They exist so that
    the gradient of a matmul is two matmuls and nothing else.

    Constraints:
    - C1: operands have the same rank, at least 2, and the same element type.
    - C2: batch dimensions agree.
    - C3: contracted dimensions agree.
    - C4: `bias` is a vector as long as a row of the result.
    - C5: `acc` has the result's type.

    Example:

    ```mlir
    %y = nn.matmul %x, %w transpose_rhs bias(%b)
        : (tensor<128x64xf16>, tensor<256x64xf16>, tensor<256xf16>) -> tensor<128x256xf16>
    ```
  }];
  let arguments = (ins NN_Float:$lhs, NN_Float:$rhs, Optional<NN_Float>:$bias,
                       Optional<NN_Float>:$acc, UnitAttr:$transpose_lhs,
                       UnitAttr:$transpose_rhs);
  let results = (outs NN_Float:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs,
                   CArg<"bool", "false">:$transposeLhs,
                   CArg<"bool", "false">:$transposeRhs), [{
      build($_builder, $_state, lhs, rhs, ::mlir::Value(), ::mlir::Value(),
            transposeLhs, transposeRhs);
    }]>];
  let assemblyFormat = [{
    $lhs `,` $rhs (`transpose_lhs` $transpose_lhs^)?
    (`transpose_rhs` $transpose_rhs^)? (`bias` `(` $bias^ `)`)?
    (`acc` `(` $acc^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
}

/// Spatial parameters shared by convolutions and pools. The activation's layout
/// is [N, H, W, C] if `channels_last`, else [N, C, H, W]; filters are
/// [K, C / groups, R, S] in any case.
class NN_Spatial<dag more = (ins)> {
  dag arguments = !con(more, (ins
      DenseI64ArrayAttr:$strides,   // [h, w]
      DenseI64ArrayAttr:$padding,   // [top, left, bottom, right]
      DenseI64ArrayAttr:$dilations, // [h, w]
      UnitAttr:$channels_last));
}

def NN_ConvOp : NN_InferredOp<"conv", [Differentiable, Kernel]> {
  let summary = "two-dimensional convolution";
  let description = [{
    Correlates `input` with `filter` [K, C/groups, R, S]. `padding` is
    [top, left, bottom, right], in elements of the input. The activation is
    [N, C, H, W], or [N, H, W, C] if `channels_last`; only the latter has a
    kernel, and the layout pass gets there.

    Constraints:
    - C1: `input` and `filter` have rank 4 and one element type.
    - C2: `groups` divides C and K, and the filter's second dimension is
      C / groups.
    - C3: strides, dilations have 2 positive entries, padding 4 non-negative.
    - C4: the window, dilated, fits in the padded input.

    Example:

    ```mlir
    %y = nn.conv %x, %w {strides = array<i64: 2, 2>,
        padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>,
        groups = 1 : i64}
        : (tensor<8x3x32x32xf32>, tensor<16x3x3x3xf32>) -> tensor<8x16x16x16xf32>
    ```
  }];
  let arguments = !con((ins NN_Float:$input, NN_Float:$filter),
                       NN_Spatial<(ins)>.arguments, (ins I64Attr:$groups));
  let results = (outs NN_Float:$result);
  let assemblyFormat = [{
    $input `,` $filter attr-dict `:` functional-type(operands, results)
  }];
}

def NN_ConvGradInputOp : NN_Op<"conv_grad_input", [Differentiable, Kernel]> {
  let summary = "gradient of a convolution by its input; transposed convolution";
  let description = [{
    The `input` for which `nn.conv` with the same attributes is the adjoint:
    spreads each element of `grad` over its window. Its result type gives the
    input's height and width, which `grad` leaves open.

    Constraints:
    - C1: a convolution of the result's type with `filter` has the type of
      `grad`.
  }];
  let arguments = !con((ins NN_Float:$grad, NN_Float:$filter),
                       NN_Spatial<(ins)>.arguments, (ins I64Attr:$groups));
  let results = (outs NN_Float:$result);
  let assemblyFormat = [{
    $grad `,` $filter attr-dict `:` functional-type(operands, results)
  }];
}

def NN_ConvGradFilterOp : NN_Op<"conv_grad_filter", [Differentiable, Kernel]> {
  let summary = "gradient of a convolution by its filter";
  let description = [{
    Correlates `input` with `grad` into a filter.

    Constraints:
    - C1: a convolution of `input` with the result's type has the type of
      `grad`.
  }];
  let arguments = !con((ins NN_Float:$input, NN_Float:$grad),
                       NN_Spatial<(ins)>.arguments, (ins I64Attr:$groups));
  let results = (outs NN_Float:$result);
  let assemblyFormat = [{
    $input `,` $grad attr-dict `:` functional-type(operands, results)
  }];
}

def NN_MaxPoolOp : NN_InferredOp<"max_pool", [Differentiable, Kernel]> {
  let summary = "largest element of each window";
  let description = [{
    Padding never wins. Layout and constraints as for `nn.conv`, with `window`
    [h, w].

    Constraints:
    - C1: `input` has rank 4.
    - C3: strides, dilations, window have 2 positive entries, padding 4
      non-negative.
    - C4: the window, dilated, fits in the padded input.
  }];
  let arguments = !con((ins NN_Float:$input),
                       NN_Spatial<(ins)>.arguments,
                       (ins DenseI64ArrayAttr:$window));
  let results = (outs NN_Float:$result);
  let assemblyFormat = [{
    $input attr-dict `:` functional-type(operands, results)
  }];
}

def NN_MaxPoolGradOp : NN_Op<"max_pool_grad", [NotDifferentiable, Kernel]> {
  let summary = "gradient of max_pool";
  let description = [{
    Each element of `grad` goes to the first largest element of its window, in
    row-major order.

    Constraints:
    - C1: max_pool of `input` has the type of `grad`; the result has the type of
      `input`.
  }];
  let arguments = !con((ins NN_Float:$input, NN_Float:$grad),
                       NN_Spatial<(ins)>.arguments,
                       (ins DenseI64ArrayAttr:$window));
  let results = (outs NN_Float:$result);
  let assemblyFormat = [{
    $input `,` $grad attr-dict `:` functional-type(operands, results)
  }];
}

def NN_AvgPoolOp : NN_InferredOp<"avg_pool", [Differentiable, Kernel]> {
  let summary = "mean of each window";
  let description = [{
    Padding counts as zeros if `count_padding`, else the mean is over the
    elements that exist.

    Constraints:
    - C1: `input` has rank 4.
    - C3: strides, dilations, window have 2 positive entries, padding 4
      non-negative.
    - C4: the window, dilated, fits in the padded input.
  }];
  let arguments = !con((ins NN_Float:$input),
                       NN_Spatial<(ins)>.arguments,
                       (ins DenseI64ArrayAttr:$window,
                        UnitAttr:$count_padding));
  let results = (outs NN_Float:$result);
  let assemblyFormat = [{
    $input attr-dict `:` functional-type(operands, results)
  }];
}

def NN_AvgPoolGradOp : NN_Op<"avg_pool_grad", [Differentiable, Kernel]> {
  let summary = "gradient of avg_pool";
  let description = [{
    Spreads each element of `grad` evenly over its window. The result type gives
    the input's height and width.

    Constraints:
    - C1: avg_pool of the result's type has the type of `grad`.
  }];
  let arguments = !con((ins NN_Float:$grad),
                       NN_Spatial<(ins)>.arguments,
                       (ins DenseI64ArrayAttr:$window,
                        UnitAttr:$count_padding));
  let results = (outs NN_Float:$result);
  let assemblyFormat = [{
    $grad attr-dict `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Attributes shared by attention and its gradient.
class NN_AttentionAttrs {
  dag arguments = (ins F64Attr:$scale, UnitAttr:$causal,
                       DefaultValuedAttr<F64Attr, "0.0">:$dropout,
                       DefaultValuedAttr<I64Attr, "0">:$stream);
}

def NN_AttentionOp : NN_InferredOp<"attention", [
    AttrSizedOperandSegments, Differentiable, StridedKernel]> {
  let summary = "scaled dot-product attention";
  let description = [{
    For each batch and head, softmax(scale * q k^T + mask) v, with dropout on
    the probabilities.

    Shapes: `q` [B, T, H, D]; `k` [B, S, G, D] and `v` [B, S, G, D] where G
    divides H (query head h reads key head h / (H / G)); `mask`, added to the
    scores or, if i1, true where attention is allowed, [B or 1, H or 1, T or 1,
    S]; results `out` [B, T, H, D] and `lse` [B, H, T] in f32 (f64 for f64),
    the log of the sum of exponentials of the scores. If `causal`, query t sees
    keys s <= t + S - T. A row that sees nothing gives zeros and an lse of -inf.

    Dropout keeps the probability of element ((b * H + h) * T + t) * S + s by
    the rule of `nn.random`, with b the sample.

    Constraints:
    - C1: q, k, v have rank 4, one element type, equal B and D; k and v agree.
    - C2: G divides H.
    - C3: mask dimensions are those above; it is i1 or the element type.
    - C4: `seed` and `samples` are given if, and only if, dropout is positive;
      dropout is in [0, 1); they are as for `nn.random`, with B the batch.

    Example:

    ```mlir
    %o, %lse = nn.attention %q, %k, %v {causal, scale = 0.125}
        : (tensor<4x64x12x64xf32>, tensor<4x64x12x64xf32>, tensor<4x64x12x64xf32>)
        -> (tensor<4x64x12x64xf32>, tensor<4x12x64xf32>)
    ```
  }];
  let arguments = !con((ins NN_Float:$q, NN_Float:$k, NN_Float:$v,
                            Optional<NN_Tensor>:$mask, Optional<NN_Int>:$seed,
                            Optional<NN_Int>:$samples),
                       NN_AttentionAttrs<>.arguments);
  let results = (outs NN_Float:$out, NN_Float:$lse);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`mask` `(` $mask^ `)`)?
    (`random` `(` $seed^ `,` $samples `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_AttentionGradOp : NN_InferredOp<"attention_grad", [
    AttrSizedOperandSegments, NotDifferentiable, StridedKernel]> {
  let summary = "gradient of attention, with the probabilities recomputed";
  let description = [{
    Gradients of q, k and v from the gradient of `out`. Only `out` and `lse`
    were saved; probabilities and dropout masks are made again, tile by tile.

    Constraints: those of `nn.attention`, and
    - C5: `out`, `grad` have the type of q; `lse` is that of the forward op.
  }];
  let arguments = !con((ins NN_Float:$q, NN_Float:$k, NN_Float:$v,
                            NN_Float:$out, NN_Float:$lse, NN_Float:$grad,
                            Optional<NN_Tensor>:$mask, Optional<NN_Int>:$seed,
                            Optional<NN_Int>:$samples),
                       NN_AttentionAttrs<>.arguments);
  let results = (outs NN_Float:$dq, NN_Float:$dk, NN_Float:$dv);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $out `,` $lse `,` $grad (`mask` `(` $mask^ `)`)?
    (`random` `(` $seed^ `,` $samples `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Norms and activations: recognised whole, differentiated whole, then taken
// apart into pointwise work and row reductions, which fuse with what is around.
//===----------------------------------------------------------------------===//

def NN_LayerNormOp : NN_InferredOp<"layer_norm", [
    AttrSizedOperandSegments, Differentiable]> {
  let summary = "normalization over the innermost dimension";
  let description = [{
    (x - mean) / sqrt(variance + epsilon) * scale + shift, with the biased
    variance. `scale` and `shift` are vectors of the innermost dimension.

    Constraints:
    - C1: `scale` and `shift` are vectors as long as a row, of its element type.
  }];
  let arguments = (ins NN_Float:$input, Optional<NN_Float>:$scale,
                       Optional<NN_Float>:$shift, F64Attr:$epsilon);
  let results = (outs NN_Float:$result);
  let assemblyFormat = [{
    $input (`scale` `(` $scale^ `)`)? (`shift` `(` $shift^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_RMSNormOp : NN_InferredOp<"rms_norm", [Differentiable]> {
  let summary = "division by the root mean square of the innermost dimension";
  let description = [{
    x / sqrt(mean(x^2) + epsilon) * scale.

    Constraints:
    - C1: `scale` is a vector as long as a row, of its element type.
  }];
  let arguments = (ins NN_Float:$input, Optional<NN_Float>:$scale,
                       F64Attr:$epsilon);
  let results = (outs NN_Float:$result);
  let assemblyFormat = [{
    $input (`scale` `(` $scale^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_SoftmaxOp : NN_InferredOp<"softmax", [Differentiable]> {
  let summary = "softmax over the innermost dimension";
  let description = [{
    exp(x - max) / sum(exp(x - max)), row by row; its logarithm if `log`.
  }];
  let arguments = (ins NN_Float:$input, UnitAttr:$log);
  let results = (outs NN_Float:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def NN_GeluOp : NN_InferredOp<"gelu", [Differentiable]> {
  let summary = "Gaussian error linear unit";
  let description = [{
    x * (1 + erf(x / sqrt(2))) / 2, or, if `tanh`, its approximation
    x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2.
  }];
  let arguments = (ins NN_Float:$input, UnitAttr:$tanh);
  let results = (outs NN_Float:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def NN_BatchNormOp : NN_InferredOp<"batch_norm", [
    Differentiable, DeclareOpInterfaceMethods<KernelOpInterface, [
        "getOverwrites", "getDroppableResults"]>]> {
  let summary = "normalization over all dimensions but the channels";
  let description = [{
    Training mode: statistics come from the batch. Results are the normalized
    value, the running mean and variance after this step (momentum is the
    weight of the *new* value, as in PyTorch; the running variance is unbiased),
    and what the gradient needs: the batch's mean and reciprocal standard
    deviation. Pure: the caller decides what becomes of the new statistics.

    Channels are dimension 1, or the innermost one if `channels_last`.

    Constraints:
    - C1: `input` has rank at least 2; the other operands are vectors of its
      channels and element type.
  }];
  let arguments = (ins NN_Float:$input, NN_Float:$scale, NN_Float:$shift,
                       NN_Float:$running_mean, NN_Float:$running_var,
                       F64Attr:$epsilon, F64Attr:$momentum,
                       UnitAttr:$channels_last);
  let results = (outs NN_Float:$result, NN_Float:$new_mean, NN_Float:$new_var,
                      NN_Float:$mean, NN_Float:$rstd);
  let assemblyFormat = [{
    $input `,` $scale `,` $shift `,` $running_mean `,` $running_var attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_BatchNormGradOp : NN_InferredOp<"batch_norm_grad", [
    NotDifferentiable, Kernel]> {
  let summary = "gradient of batch_norm";
  let description = [{
    Gradients of input, scale and shift.

    Constraints:
    - C1: `grad` has the type of `input`; the others are vectors of channels.
  }];
  let arguments = (ins NN_Float:$input, NN_Float:$scale, NN_Float:$mean,
                       NN_Float:$rstd, NN_Float:$grad, UnitAttr:$channels_last);
  let results = (outs NN_Float:$dinput, NN_Float:$dscale, NN_Float:$dshift);
  let assemblyFormat = [{
    $input `,` $scale `,` $mean `,` $rstd `,` $grad attr-dict
    `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Lookups
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

def NN_CrossEntropyOp : NN_InferredOp<"cross_entropy", [
    Differentiable, Kernel]> {
  let summary = "weighted sum of the rows' cross-entropies";
  let description = [{
    `logits` [R, V], `labels` [R], `weight` a scalar. `loss` is weight times the
    sum, over the rows whose label isn't `ignore_index`, of
    lse(row) - logit[label]; `lse` [R] holds the rows' log-sum-exp. Both are f32
    (f64 for f64). A mean is a sum whose weight is one over the number of rows
    that count *in the whole batch*: that number is an operand so that a
    micro-batch contributes its exact share.

    Constraints:
    - C1: `logits` has rank 2, `labels` one label per row; `weight` is a scalar
      of the loss's type.
  }];
  let arguments = (ins NN_Float:$logits, NN_Int:$labels, NN_Float:$weight,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let results = (outs NN_Float:$loss, NN_Float:$lse);
  let assemblyFormat = [{
    $logits `,` $labels `,` $weight attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_CrossEntropyGradOp : NN_InferredOp<"cross_entropy_grad", [
    NotDifferentiable, InPlaceKernel]> {
  let summary = "gradient of cross_entropy by the logits";
  let description = [{
    scale * (exp(logits - lse) - onehot(label)), zero in rows that don't count;
    may overwrite the logits. `scale` is the loss's gradient times its weight.

    Constraints:
    - C1: as for `nn.cross_entropy`, with `lse` one number per row.
  }];
  let arguments = (ins NN_Float:$logits, NN_Int:$labels, NN_Float:$lse,
                       NN_Float:$scale,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let results = (outs NN_Float:$dlogits);
  let assemblyFormat = [{
    $logits `,` $labels `,` $lse `,` $scale attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_LinearCrossEntropyOp : NN_InferredOp<"linear_cross_entropy", [
    Differentiable, Kernel]> {
  let summary = "cross-entropy of a product, in chunks of rows";
  let description = [{
    `nn.cross_entropy` of `x` [R, C] times the transpose of `table` [V, C], plus
    `bias` [V] in each row, without ever holding more than `chunk` rows of
    logits.

    Constraints:
    - C1: `x` and `table` have rank 2, equal C and one element type; `labels`
      one label per row; `weight` is a scalar of the loss's type.
    - C2: `chunk` is positive.
    - C3: `bias` is one number per class, of the table's element type.
  }];
  let arguments = (ins NN_Float:$x, NN_Float:$table, NN_Int:$labels,
                       NN_Float:$weight, Optional<NN_Float>:$bias,
                       I64Attr:$chunk,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let results = (outs NN_Float:$loss, NN_Float:$lse);
  let assemblyFormat = [{
    $x `,` $table `,` $labels `,` $weight (`bias` `(` $bias^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_LinearCrossEntropyGradOp : NN_InferredOp<"linear_cross_entropy_grad", [
    NotDifferentiable, Kernel]> {
  let summary = "gradient of linear_cross_entropy, logits made again by chunks";
  let description = [{
    Gradients of `x`, `table` and, where there is one, `bias`; `scale` is the
    loss's gradient times its weight.

    Constraints:
    - C1: as for `nn.linear_cross_entropy`, with `lse` one number per row.
    - C2: `chunk` is positive.
    - C3: `bias` is one number per class, of the table's element type.
  }];
  let arguments = (ins NN_Float:$x, NN_Float:$table, NN_Int:$labels,
                       NN_Float:$lse, NN_Float:$scale, Optional<NN_Float>:$bias,
                       I64Attr:$chunk,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let results = (outs NN_Float:$dx, NN_Float:$dtable,
                      Optional<NN_Float>:$dbias);
  let assemblyFormat = [{
    $x `,` $table `,` $labels `,` $lse `,` $scale (`bias` `(` $bias^ `)`)?
    attr-dict
    `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

def NN_RandomOp : NN_Op<"random", [NotDifferentiable]> {
  let summary = "uniform numbers in [0, 1), the same wherever they are made";
  let description = [{
    Dimension 0 of the result is the batch (samples.size times a whole number of
    rows per sample). With n elements per sample, element e of the sample whose
    index in the whole batch is s has idx = s * n + e, and is (w >> 8) * 2^-24
    for w the word idx % 4 of Philox4x32-10 with the key (low and high word of
    seed[0]) and the counter (low and high word of idx / 4, stream, low word of
    seed[1]). seed[0] is the run's seed, seed[1] the step's number. So a clone,
    another split or another machine draws the same numbers.

    Constraints:
    - C1: `seed` has 2 elements; `samples` is a vector whose length divides
      dimension 0 of the result.
  }];
  let extraClassDeclaration = "int64_t getBytesMoved();";
  let arguments = (ins NN_Int:$seed, NN_Int:$samples, I64Attr:$stream);
  let results = (outs NN_Float:$result);
  let assemblyFormat = [{
    $seed `,` $samples attr-dict `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

def NN_ReduceKind : I32EnumAttr<"ReduceKind", "how elements combine", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">,
    I32EnumAttrCase<"Min", 2, "min">]> {
  let cppNamespace = "::tmc::nn";
}

def NN_ReduceOp : NN_InferredOp<"reduce", [Differentiable]> {
  let summary = "sum, maximum or minimum over dimensions";
  let description = [{
    `dims` vanish from the shape. Sums of f16 and bf16 accumulate in f32.

    Constraints:
    - C1: `dims` are distinct, ascending dimensions of the operand.
  }];
  let arguments = (ins NN_Tensor:$input, NN_ReduceKind:$kind,
                       DenseI64ArrayAttr:$dims);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $kind $input `over` $dims attr-dict `:` functional-type(operands, results)
  }];
}

def NN_BroadcastOp : NN_Op<"broadcast", [Differentiable]> {
  let summary = "repetition along new dimensions";
  let description = [{
    Dimension i of the operand is dimension dims[i] of the result; along the
    others the operand repeats.

    Constraints:
    - C1: `dims` has one ascending entry per dimension of the operand.
    - C2: sizes along them agree, and so do element types.

    Example:

    ```mlir
    %b = nn.broadcast %bias to [1] : (tensor<64xf32>) -> tensor<128x64xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, DenseI64ArrayAttr:$dims);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `to` $dims attr-dict `:` functional-type(operands, results)
  }];
}

def NN_TransposeOp : NN_InferredOp<"transpose", [Differentiable, Kernel]> {
  let summary = "permutation of dimensions, as a copy";
  let description = [{
    Dimension i of the result is dimension perm[i] of the operand.

    Constraints:
    - C1: `perm` is a permutation of the operand's dimensions.
  }];
  let arguments = (ins NN_Tensor:$input, DenseI64ArrayAttr:$perm);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input $perm attr-dict `:` functional-type(operands, results)
  }];
}

def NN_ReshapeOp : NN_Op<"reshape", [Differentiable, View]> {
  let summary = "the same elements in another shape";
  let description = [{
    Row-major order is kept; a view.

    Constraints:
    - C1: as many elements, of the same type.
  }];
  let extraClassDeclaration = "int64_t getBytesMoved();";
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def NN_SliceOp : NN_Op<"slice", [Differentiable, View]> {
  let summary = "a box of elements";
  let description = [{
    The result's shape is the box's; element i along a dimension is
    offset + i * step of the operand. A view, strided in general.

    Constraints:
    - C1: one offset (not negative) and one step (positive) per dimension, and
      equal ranks and element types.
    - C2: the box lies inside the operand.
  }];
  let extraClassDeclaration = "int64_t getBytesMoved();";
  let arguments = (ins NN_Tensor:$input, DenseI64ArrayAttr:$offsets,
                       DenseI64ArrayAttr:$steps);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input $offsets `step` $steps attr-dict
    `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
}

def NN_PadOp : NN_Op<"pad", [Differentiable, Kernel]> {
  let summary = "zeros around, or between, elements";
  let description = [{
    Element i along a dimension goes to low + i * step of the result; the rest
    is zero. The adjoint of `nn.slice`.

    Constraints:
    - C1: one low (not negative) and one step (positive) per dimension, and
      equal ranks and element types.
    - C2: the operand fits inside the result.
  }];
  let arguments = (ins NN_Tensor:$input, DenseI64ArrayAttr:$low,
                       DenseI64ArrayAttr:$steps);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input $low `step` $steps attr-dict
    `:` functional-type(operands, results)
  }];
  let hasCanonicalizer = 1;
}

def NN_ConcatOp : NN_InferredOp<"concat", [Differentiable, Kernel]> {
  let summary = "operands side by side along a dimension";
  let description = [{
    Constraints:
    - C1: operands have one rank and element type, and equal sizes except along
      `dim`, which is one of their dimensions.
  }];
  let arguments = (ins Variadic<NN_Tensor>:$inputs, I64Attr:$dim);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $inputs attr-dict `:` functional-type(operands, results)
  }];
}

def NN_CopyOp : NN_InferredOp<"copy", [Differentiable, StridedKernel]> {
  let summary = "the same value in bytes of its own, contiguous";
  let description = [{
    Made where a strided view meets a kernel that wants its elements in a row;
    the report counts it.
  }];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def NN_IotaOp : NN_Op<"iota", [NotDifferentiable]> {
  let summary = "0, 1, 2, ... along a dimension";
  let description = [{
    Constraints:
    - C1: `dim` is a dimension of the result.
  }];
  let arguments = (ins I64Attr:$dim);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Fusion
//===----------------------------------------------------------------------===//

def NN_FusedOp : NN_Op<"fused", [
    IsolatedFromAbove, Differentiable, InPlaceKernel,
    SingleBlock]> {
  let summary = "a group of ops that one kernel computes";
  let description = [{
    The region computes, on whole tensors, what one generated kernel computes
    element by element: pointwise ops, broadcasts, reductions, reshapes, splat
    constants, iota and random numbers. Only yielded values exist in memory.

    Constraints:
    - C1: the region's arguments have the operands' types, the yielded values
      the results'.

    Example:

    ```mlir
    %y = nn.fused (%a = %x, %c = %b) : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32> {
      %0 = nn.broadcast %c to [1] : (tensor<4xf32>) -> tensor<8x4xf32>
      %1 = arith.addf %a, %0 : tensor<8x4xf32>
      nn.yield %1 : tensor<8x4xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<NN_Tensor>:$inputs);
  let results = (outs Variadic<NN_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    ::mlir::Block &getBlock() { return getBody().front(); }
    YieldOp getYield();
  }];
}

def NN_YieldOp : Op<NN_Dialect, "yield", [
    Pure, Terminator, ParentOneOf<["FusedOp"]>]> {
  let summary = "the results of a region";
  let arguments = (ins Variadic<NN_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif // TMC_DIALECTS_NN_NN_TD
