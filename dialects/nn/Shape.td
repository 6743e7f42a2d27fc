// Shape.td - reductions, broadcasts, views and copies.

#ifndef TMC_DIALECTS_NN_SHAPE_TD
#define TMC_DIALECTS_NN_SHAPE_TD

include "dialects/nn/Base.td"

def NN_ReduceKind : I32EnumAttr<"ReduceKind", "how elements combine", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">,
    I32EnumAttrCase<"Min", 2, "min">]> {
  let cppNamespace = "::tmc::nn";
}

def NN_ReduceOp : NN_InferredOp<"reduce", [Differentiable, MaybeLinear]> {
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

def NN_BroadcastOp : NN_Op<"broadcast", [Differentiable, Linear]> {
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

def NN_TransposeOp : NN_InferredOp<"transpose", [Differentiable, Kernel, Linear]> {
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

def NN_ReshapeOp : NN_Op<"reshape", [Differentiable, View, Linear]> {
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

def NN_SliceOp : NN_Op<"slice", [Differentiable, View, Linear]> {
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

def NN_DetachOp : NN_InferredOp<"detach", [NotDifferentiable]> {
  let summary = "the same value, through which no gradient flows";
  let description = [{
    PyTorch's `detach()`. Differentiation ends here; autodiff puts the operand
    in its place afterwards.
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

#endif // TMC_DIALECTS_NN_SHAPE_TD
