#ifndef TMC_PASSES_PASSES_TD
#define TMC_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

def Autodiff : Pass<"tmc-autodiff", "::mlir::ModuleOp"> {
  let summary = "derive the training step from the forward function";
  let description = [{
    Replaces `func.func @forward` by `train.step`: the forward ops, the loss's
    gradient by each trained param (one argument, one gradient, summed in the
    order of the uses from last to first), the optimizer's update of each, and
    the gradients' global norm. Optimizer states become arguments of their own.
    What a gradient uses of the forward values is what the step saves; there is
    no other list.

    With several micro-batches the differentiated body stands in a
    `train.micro_batch` that accumulates gradients and loss, and the updates
    after it.
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", /*default=*/"\"adamw\"",
           "adamw(beta1=0.9,...) or sgd(momentum=0.9,...)">,
    Option<"keepGradients", "keep-gradients", "bool", /*default=*/"false",
           "Return the gradients too, for tests">,
  ];
}

def Raise : Pass<"tmc-raise", "::mlir::func::FuncOp"> {
  let summary = "put together what an exporter took apart";
  let description = [{
    Recognises attention, layer_norm, rms_norm, softmax, gelu and cross_entropy
    in the pieces that exporters write, by structure alone: factors before or
    after, operands either way round, masks added or chosen, constant, compared
    from positions or given as inputs. Transposes go into the flags of products,
    or cancel: nn.attention reads the projections as they lie in memory.

    Before:

    ```mlir
    %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
    %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
    %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
    %s = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
    %f = arith.constant dense<0.25> : tensor<2x4x8x8xf32>
    %t = arith.mulf %s, %f : tensor<2x4x8x8xf32>
    %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
    %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
    %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
    ```

    After:

    ```mlir
    %r, %lse = nn.attention %q, %k, %v {scale = 2.5e-01 : f64}
        : (tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>)
        -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
    ```

    A softmax between two batched products that stays in pieces gets a warning
    that says why.
  }];
  let dependentDialects = ["::tmc::nn::NNDialect", "::mlir::arith::ArithDialect"];
  let options = [
    Option<"lossChunk", "loss-chunk", "int64_t", /*default=*/"0",
           "Rows of logits that a loss may hold at once; 0 holds all">,
  ];
}

#endif // TMC_PASSES_PASSES_TD
