// Norm.td - norms and activations: recognised and differentiated as one op,
// then decomposed into pointwise work and reductions, which fuse with the ops
// around them. Statistics of a batch have a kernel, which reads their input
// once.

#ifndef TMC_DIALECTS_NN_NORM_TD
#define TMC_DIALECTS_NN_NORM_TD

include "dialects/nn/Base.td"

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
    Differentiable, Storing]> {
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
      channels, of its element type or, beside 16 bits, of f32.
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
    NotDifferentiable, Storing]> {
  let summary = "gradient of batch_norm";
  let description = [{
    Gradients of input, scale and shift.

    Constraints:
    - C1: `grad` has the type of `input`; the others are vectors of channels, as
      in `nn.batch_norm`.
  }];
  let arguments = (ins NN_Float:$input, NN_Float:$scale, NN_Float:$mean,
                       NN_Float:$rstd, NN_Float:$grad, UnitAttr:$channels_last);
  let results = (outs NN_Float:$dinput, NN_Float:$dscale, NN_Float:$dshift);
  let assemblyFormat = [{
    $input `,` $scale `,` $mean `,` $rstd `,` $grad attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_BatchStatisticsOp : NN_InferredOp<"batch_statistics", [
    NotDifferentiable, DeclareOpInterfaceMethods<KernelOpInterface, [
        "getOverwrites", "getDroppableResults"]>]> {
  let summary = "mean and deviation of all dimensions but the channels";
  let description = [{
    The statistics of `nn.batch_norm`, with its attributes: the running mean and
    variance after this step, and the batch's mean and reciprocal standard
    deviation. An input of 16 bits is widened as it is read.

    Constraints:
    - C1: `input` has rank at least 2; the running values are vectors of its
      channels, of its element type or, beside 16 bits, of f32.
  }];
  let arguments = (ins NN_Float:$input, NN_Float:$running_mean,
                       NN_Float:$running_var, F64Attr:$epsilon,
                       F64Attr:$momentum, UnitAttr:$channels_last);
  let results = (outs NN_Float:$new_mean, NN_Float:$new_var, NN_Float:$mean,
                      NN_Float:$rstd);
  let assemblyFormat = [{
    $input `,` $running_mean `,` $running_var attr-dict
    `:` functional-type(operands, results)
  }];
}

#endif // TMC_DIALECTS_NN_NORM_TD
