// Fused.td - a region that becomes one kernel.

#ifndef TMC_DIALECTS_NN_FUSED_TD
#define TMC_DIALECTS_NN_FUSED_TD

include "dialects/nn/Base.td"

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
    int64_t getBytesMoved();
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

#endif // TMC_DIALECTS_NN_FUSED_TD
