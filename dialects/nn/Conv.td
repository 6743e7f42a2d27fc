// Conv.td - convolutions and pools.

#ifndef TMC_DIALECTS_NN_CONV_TD
#define TMC_DIALECTS_NN_CONV_TD

include "dialects/nn/Base.td"

/// Spatial parameters shared by convolutions and pools. The activation's layout
/// is [N, H, W, C] if `channels_last`, else [N, C, H, W]; filters are always
/// [K, C / groups, R, S].
class NN_Spatial<dag more = (ins)> {
  dag arguments = !con(more, (ins
      DenseI64ArrayAttr:$strides,   // [h, w]
      DenseI64ArrayAttr:$padding,   // [top, left, bottom, right]
      DenseI64ArrayAttr:$dilations, // [h, w]
      UnitAttr:$channels_last));
}

def NN_ConvOp : NN_InferredOp<"conv", [
    Differentiable, Kernel, RoundingAsRead]> {
  let summary = "two-dimensional convolution";
  let description = [{
    Correlates `input` with `filter` [K, C/groups, R, S]. `padding` is
    [top, left, bottom, right], in elements of the input. The activation is
    [N, C, H, W], or [N, H, W, C] if `channels_last`; only the latter has a
    kernel, and the layout pass gets there. A filter of f32 beside an input of
    16 bits is rounded to its type as it is read. Sums are in f32 (f64 where all
    is f64) and rounded once, to the input's type.

    Constraints:
    - C1: `input` and `filter` have rank 4 and one element type, or f32 for a
      filter beside 16 bits.
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

def NN_ConvGradInputOp : NN_Op<"conv_grad_input", [
    Differentiable, Kernel, RoundingAsRead]> {
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

def NN_ConvGradFilterOp : NN_Op<"conv_grad_filter", [
    Differentiable, Kernel,
    DeclareOpInterfaceMethods<PrecisionOpInterface, ["mayKeepSums"]>]> {
  let summary = "gradient of a convolution by its filter";
  let description = [{
    Correlates `input` with `grad` into a filter, of their type or, beside 16
    bits, of f32.

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

def NN_MaxPoolOp : NN_InferredOp<"max_pool", [
    Differentiable, Kernel, Storing]> {
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

def NN_MaxPoolGradOp : NN_Op<"max_pool_grad", [
    NotDifferentiable, Kernel, Storing]> {
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

def NN_AvgPoolOp : NN_InferredOp<"avg_pool", [
    Differentiable, Kernel, Storing]> {
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

def NN_AvgPoolGradOp : NN_Op<"avg_pool_grad", [
    Differentiable, Kernel, Storing]> {
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

#endif // TMC_DIALECTS_NN_CONV_TD
