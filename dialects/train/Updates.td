// Updates.td - gradients' norms, the loss's scale, and the optimizers' rules.
//
// Included by Train.td, after the dialect and its types.

#ifndef TMC_DIALECTS_TRAIN_UPDATES_TD
#define TMC_DIALECTS_TRAIN_UPDATES_TD

/// `costs`: methods of `CostOpInterface` that the op defines itself.
class Train_Op<string mnemonic, list<Trait> traits = [],
               list<string> costs = []>
    : Op<Train_Dialect, mnemonic, !listconcat([
        Pure, NotDifferentiable, InferTypeOpAdaptor,
        DeclareOpInterfaceMethods<CostOpInterface, costs>,
        DeclareOpInterfaceMethods<KernelOpInterface>], traits)>;

def Train_SquareSumOp : Train_Op<"square_sum"> {
  let summary = "sum of the squares of a gradient's elements";
  let description = [{
    An f32 scalar (f64 for f64), accumulated in double in a fixed tree.
  }];
  let arguments = (ins Train_Float:$grad);
  let results = (outs Train_Float:$result);
  let assemblyFormat = "$grad attr-dict `:` functional-type(operands, results)";
}

def Train_GradNormOp : Train_Op<"grad_norm", [AttrSizedOperandSegments]> {
  let summary = "global norm of the gradients, and the factor that clips them";
  let description = [{
    `norm` is the square root of the sum, in order, of `squares`; `clip` is
    min(1, max_norm / (norm + 1e-6)), or 1 if `max_norm` is 0, and NaN if
    `norm` isn't finite. Where the gradients are those of the loss times
    `scale`, `norm` is divided by it, and then `clip`, too: that factor unscales
    and clips at once.

    Constraints:
    - C1: `squares` are scalars of one type, and `scale` is one.
  }];
  let arguments = (ins Variadic<Train_Float>:$squares,
                       Optional<Train_Float>:$scale, F64Attr:$max_norm);
  let results = (outs Train_Float:$norm, Train_Float:$clip);
  let assemblyFormat = [{
    $squares (`scale` `(` $scale^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def Train_LossScaleOp : Train_Op<"loss_scale"> {
  let summary = "whether the gradients are finite, and the loss's next scale";
  let description = [{
    What PyTorch's GradScaler does between two steps. `norm` is the gradients':
    if it is finite, `step` is the number of this update, `count` + 1, and so is
    `new_count`; after `interval` such steps in a row `scale` is multiplied by
    `growth`, unless that overflows. If it isn't, `step` is 0, which tells the
    updates to leave everything as it is, `count` stays, and `scale` is
    multiplied by `backoff`. `clean` counts the finite steps since the scale
    moved. With an `interval` of 0 it never moves.

    Constraints:
    - C1: all operands are scalars.
  }];
  let arguments = (ins Train_Float:$norm, Train_Float:$scale,
                       Train_AnyTensor:$clean, Train_AnyTensor:$count,
                       F64Attr:$growth, F64Attr:$backoff, I64Attr:$interval);
  let results = (outs Train_Float:$new_scale, Train_AnyTensor:$new_clean,
                      Train_AnyTensor:$new_count, Train_AnyTensor:$step);
  let assemblyFormat = [{
    $norm `scale` `(` $scale `)` `clean` `(` $clean `)` `count` `(` $count `)`
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getOverwrites() {
      return {{1, 0}, {2, 1}, {3, 2}};
    }
  }];
}

/// An optimizer's rule: operand 0 is the parameter, operand 1 its gradient, and
/// result 0 the new parameter. Each rule has its own states and types.
///
/// Parameter, gradient and moments have their own types; the arithmetic is f32.
/// If a parameter or a moment has 16 bits, its new value is rounded
/// stochastically (runtime/kernels/Stochastic.h): `stream` numbers the random
/// bits of this update.
///
/// `step` counts updates from 1. At 0 an update changes nothing:
/// `train.loss_scale` skips updates in this way. A NaN `clip` has the same
/// effect: if the norm of the gradients isn't finite, the finite gradients
/// aren't used either.
///
/// A parameter in f32 may have a 16-bit copy, for the products that multiply
/// it: the last operand, `copy`. The update rounds the new value, `new_copy`,
/// from the new parameter, to nearest, as a cast does. So the master weights
/// are read once, and no step begins with casts:
///
///     products --read--> copy <--rounds-- update --writes--> parameter
///
/// The copy is a state of the step (`train.copy_of`), and always its rounded
/// parameter: the runtime rounds it again each time a parameter gets a value,
/// from weights, at random, from a checkpoint or from outside. Files hold
/// parameters alone, so that the two can't differ. At step 0 both stay
/// unchanged. Like any new value, the new copy takes the bytes of the old one,
/// so an update comes after every product that reads the copy.
def Train_UpdateRule : NativeOpTrait<"UpdateRule"> {
  let cppNamespace = "::tmc::train";
}

/// Ops whose last result is the gradient's sum of squares; the result before it
/// is the new copy, if there is one.
class Train_Update<string mnemonic>
    : Train_Op<mnemonic, [Train_UpdateRule, AttrSizedOperandSegments],
               ["getBytesMoved"]>;

def Train_AdamWOp : Train_Update<"adamw"> {
  let summary = "one AdamW update";
  let description = [{
    In PyTorch's order: p *= 1 - lr * weight_decay; m and v move towards g and
    g^2; p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon).
    `step` is t, counted from 1, `clip` a factor of the gradient. `square` is
    the sum of squares of the gradient before clipping, so that its norm costs
    no pass of its own when nothing clips. New values take the old ones' bytes.

    Constraints:
    - C1: `grad`, `m` and `v` have the parameter's shape, `m` and `v` one type;
      `lr`, `step` and `clip` are scalars; there is a `stream` if, and only if,
      something kept has less than 32 bits.
    - C2: `copy` is a bf16 or f16 for each element of a parameter in f32.
  }];
  let arguments = (ins Train_Float:$param, Train_Float:$grad, Train_Float:$m,
                       Train_Float:$v, Train_Float:$lr, Train_AnyTensor:$step,
                       Optional<Train_Float>:$clip, Optional<Train_Float>:$copy,
                       F64Attr:$beta1, F64Attr:$beta2, F64Attr:$epsilon,
                       F64Attr:$weight_decay, OptionalAttr<I64Attr>:$stream);
  let results = (outs Train_Float:$new_param, Train_Float:$new_m,
                      Train_Float:$new_v, Optional<Train_Float>:$new_copy,
                      Train_Float:$square);
  let assemblyFormat = [{
    $param `,` $grad `,` $m `,` $v `lr` `(` $lr `)` `step` `(` $step `)`
    (`clip` `(` $clip^ `)`)? (`copy` `(` $copy^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getOverwrites();
  }];
}

def Train_AdamW8bitOp : Train_Update<"adamw8bit"> {
  let summary = "one AdamW update, with moments in 8 bits";
  let description = [{
    `train.adamw`, whose moments are codes: an i8 per element, whose bits are the
    number of a value in [-1, 1] (`m`) or [0, 1] (`v`), times the largest absolute
    value of the 256 elements around it (`m_max`, `v_max`), in the order of
    memory. runtime/kernels/Adam.h lists the values. The update reads the moments
    in f32 and codes the new ones to nearest. Elements whose gradient isn't finite
    stay as they are.

    Constraints:
    - C1: `grad` has the parameter's shape; so have `m` and `v`, of i8; `m_max`
      and `v_max` are f32, one per 256 elements; `lr`, `step` and `clip` are
      scalars; there is a `stream` if, and only if, the parameter has less than
      32 bits.
    - C2: `copy` is a bf16 or f16 for each element of a parameter in f32.
  }];
  let arguments = (ins Train_Float:$param, Train_Float:$grad,
                       Train_AnyTensor:$m, Train_Float:$m_max,
                       Train_AnyTensor:$v, Train_Float:$v_max, Train_Float:$lr,
                       Train_AnyTensor:$step, Optional<Train_Float>:$clip,
                       Optional<Train_Float>:$copy, F64Attr:$beta1,
                       F64Attr:$beta2, F64Attr:$epsilon, F64Attr:$weight_decay,
                       OptionalAttr<I64Attr>:$stream);
  let results = (outs Train_Float:$new_param, Train_AnyTensor:$new_m,
                      Train_Float:$new_m_max, Train_AnyTensor:$new_v,
                      Train_Float:$new_v_max, Optional<Train_Float>:$new_copy,
                      Train_Float:$square);
  let assemblyFormat = [{
    $param `,` $grad `,` $m `,` $m_max `,` $v `,` $v_max `lr` `(` $lr `)`
    `step` `(` $step `)` (`clip` `(` $clip^ `)`)? (`copy` `(` $copy^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Elements that share a maximum.
    static constexpr int64_t kBlock = 256;
    /// The types of codes and of maxima for the moments of `param`.
    static ::mlir::RankedTensorType codesOf(::mlir::RankedTensorType param);
    static ::mlir::RankedTensorType scalesOf(::mlir::RankedTensorType param);
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getOverwrites();
  }];
}

def Train_AdamW4bitOp : Train_Update<"adamw4bit"> {
  let summary = "one AdamW update, with moments in 4 bits";
  let description = [{
    `train.adamw`, whose moments are codes of 4 bits, two to an i8, the first
    element's above: the number of a value in [-1, 1] (`m`) or (0, 1] (`v`), times
    a scale that 128 elements share in the order of memory (`m_scale`, `v_scale`):
    their largest absolute value, but at least 1e-12. runtime/kernels/Adam4bit.h
    lists the values. The update reads the moments in f32 and codes the new ones to
    nearest. Elements whose gradient isn't finite stay as they are.

    Constraints:
    - C1: `grad` has the parameter's shape, whose elements are a multiple of 128;
      `m` and `v` are an i8 for each two of them, `m_scale` and `v_scale` an f32
      for each 128; `lr`, `step` and `clip` are scalars; there is a `stream` if,
      and only if, the parameter has less than 32 bits.
    - C2: `copy` is a bf16 or f16 for each element of a parameter in f32.
  }];
  let arguments = (ins Train_Float:$param, Train_Float:$grad,
                       Train_AnyTensor:$m, Train_Float:$m_scale,
                       Train_AnyTensor:$v, Train_Float:$v_scale,
                       Train_Float:$lr, Train_AnyTensor:$step,
                       Optional<Train_Float>:$clip, Optional<Train_Float>:$copy,
                       F64Attr:$beta1, F64Attr:$beta2, F64Attr:$epsilon,
                       F64Attr:$weight_decay, OptionalAttr<I64Attr>:$stream);
  let results = (outs Train_Float:$new_param, Train_AnyTensor:$new_m,
                      Train_Float:$new_m_scale, Train_AnyTensor:$new_v,
                      Train_Float:$new_v_scale, Optional<Train_Float>:$new_copy,
                      Train_Float:$square);
  let assemblyFormat = [{
    $param `,` $grad `,` $m `,` $m_scale `,` $v `,` $v_scale `lr` `(` $lr `)`
    `step` `(` $step `)` (`clip` `(` $clip^ `)`)? (`copy` `(` $copy^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Elements that share a scale.
    static constexpr int64_t kBlock = 128;
    /// The types of codes and of scales for the moments of `param`.
    static ::mlir::RankedTensorType codesOf(::mlir::RankedTensorType param);
    static ::mlir::RankedTensorType scalesOf(::mlir::RankedTensorType param);
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getOverwrites();
  }];
}

def Train_AdafactorOp : Train_Update<"adafactor"> {
  let summary = "one update of Adafactor";
  let description = [{
    In PyTorch's order (torch.optim.Adafactor). Of a parameter with two dimensions
    or more, matrices of the last two, `moments` are the squares' mean of each row
    and of each column; of others that of each element. At step t they move by
    w = t^beta2_decay towards those of the gradient:

        v = rows * columns / max(mean of rows, eps1), or the element's own
        u = grad / sqrt(max(v, eps1^2))
        alpha = max(eps2, rms(p)) * min(lr, 1 / sqrt(t))
        p *= 1 - lr * weight_decay; p -= alpha / max(1, rms(u) / d) * u

    Constraints:
    - C1: `grad` has the parameter's shape; `moments` are, in f32, two whose last
      dimension or whose last but one is 1, or one of the parameter's shape where
      that has less than two; `lr`, `step` and `clip` are scalars; there is a
      `stream` if, and only if, the parameter has less than 32 bits.
    - C2: `copy` is a bf16 or f16 for each element of a parameter in f32.
  }];
  let arguments = (ins Train_Float:$param, Train_Float:$grad,
                       Variadic<Train_Float>:$moments, Train_Float:$lr,
                       Train_AnyTensor:$step, Optional<Train_Float>:$clip,
                       Optional<Train_Float>:$copy, F64Attr:$beta2_decay,
                       F64Attr:$eps1, F64Attr:$eps2, F64Attr:$d,
                       F64Attr:$weight_decay, OptionalAttr<I64Attr>:$stream);
  // The new values of the moments and of the copy, if any.
  let results = (outs Train_Float:$new_param, Variadic<Train_Float>:$new_states,
                      Train_Float:$square);
  let assemblyFormat = [{
    $param `,` $grad `moments` `(` $moments `)` `lr` `(` $lr `)`
    `step` `(` $step `)` (`clip` `(` $clip^ `)`)? (`copy` `(` $copy^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// The types of the moments of `param`.
    static ::llvm::SmallVector<::mlir::RankedTensorType, 2> momentsOf(
        ::mlir::RankedTensorType param);
    ::mlir::ValueRange getNewMoments() {
      return getNewStates().take_front(getMoments().size());
    }
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getOverwrites();
  }];
}

def Train_LionOp : Train_Update<"lion"> {
  let summary = "one update of Lion";
  let description = [{
    p *= 1 - lr * weight_decay; p -= lr * sign(beta1 * m + (1 - beta1) * g);
    m = beta2 * m + (1 - beta2) * g. The sign of zero is zero, and so is a NaN's.

    Source: Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023.

    Constraints:
    - C1: `grad` and `m` have the parameter's shape; `lr`, `step` and `clip` are
      scalars; there is a `stream` if, and only if, something kept has less than
      32 bits.
    - C2: `copy` is a bf16 or f16 for each element of a parameter in f32.
  }];
  let arguments = (ins Train_Float:$param, Train_Float:$grad, Train_Float:$m,
                       Train_Float:$lr, Train_AnyTensor:$step,
                       Optional<Train_Float>:$clip, Optional<Train_Float>:$copy,
                       F64Attr:$beta1, F64Attr:$beta2, F64Attr:$weight_decay,
                       OptionalAttr<I64Attr>:$stream);
  let results = (outs Train_Float:$new_param, Train_Float:$new_m,
                      Optional<Train_Float>:$new_copy, Train_Float:$square);
  let assemblyFormat = [{
    $param `,` $grad `,` $m `lr` `(` $lr `)` `step` `(` $step `)`
    (`clip` `(` $clip^ `)`)? (`copy` `(` $copy^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getOverwrites();
  }];
}

def Train_SGDOp : Train_Update<"sgd"> {
  let summary = "one update of stochastic gradient descent";
  let description = [{
    In PyTorch's order: g += weight_decay * p; with momentum, m = momentum * m +
    (1 - dampening) * g (m = g at the first step), g = m, or g + momentum * m if
    `nesterov`; p -= lr * g.

    Constraints:
    - C1: `grad` and `momentum_buffer` have the parameter's shape; `lr`, `step`
      and `clip` are scalars; there is a buffer if, and only if, `momentum` is
      positive, and a `stream` if, and only if, something kept has less than 32
      bits.
    - C2: `copy` is a bf16 or f16 for each element of a parameter in f32.
  }];
  let arguments = (ins Train_Float:$param, Train_Float:$grad,
                       Optional<Train_Float>:$momentum_buffer, Train_Float:$lr,
                       Train_AnyTensor:$step, Optional<Train_Float>:$clip,
                       Optional<Train_Float>:$copy, F64Attr:$momentum,
                       F64Attr:$dampening, F64Attr:$weight_decay,
                       UnitAttr:$nesterov, OptionalAttr<I64Attr>:$stream);
  // The new values of the buffer and of the copy, if any.
  let results = (outs Train_Float:$new_param, Variadic<Train_Float>:$new_states,
                      Train_Float:$square);
  let assemblyFormat = [{
    $param `,` $grad (`momentum` `(` $momentum_buffer^ `)`)? `lr` `(` $lr `)`
    `step` `(` $step `)` (`clip` `(` $clip^ `)`)? (`copy` `(` $copy^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    ::mlir::Value getNewMomentumBuffer() {
      return getMomentumBuffer() ? getNewStates().front() : ::mlir::Value();
    }
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getOverwrites();
  }];
}

#endif // TMC_DIALECTS_TRAIN_UPDATES_TD
