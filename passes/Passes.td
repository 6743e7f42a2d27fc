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

#endif // TMC_PASSES_PASSES_TD
