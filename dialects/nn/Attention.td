// Attention.td - attention as one op.

#ifndef TMC_DIALECTS_NN_ATTENTION_TD
#define TMC_DIALECTS_NN_ATTENTION_TD

include "dialects/nn/Base.td"

/// Attributes and optional operands shared by attention and its gradient.
class NN_AttentionAttrs {
  dag operands = (ins Optional<NN_Tensor>:$mask, Optional<NN_Int>:$groups,
                      Optional<NN_Int>:$prefix, Optional<NN_Int>:$seed,
                      Optional<NN_Int>:$samples, Optional<NN_Float>:$bias);
  dag arguments = (ins F64Attr:$scale, UnitAttr:$causal,
                       DefaultValuedAttr<F64Attr, "0.0">:$softcap,
                       DefaultValuedAttr<I64Attr, "0">:$window,
                       DefaultValuedAttr<F64Attr, "0.0">:$dropout,
                       DefaultValuedAttr<I64Attr, "0">:$stream, UnitAttr:$exact,
                       UnitAttr:$tf32);
}

def NN_AttentionOp : NN_InferredOp<"attention", [
    AttrSizedOperandSegments, Differentiable, StridedKernel, NarrowingTF32]> {
  let summary = "scaled dot-product attention";
  let description = [{
    For each batch and head, softmax(cap(scale * q k^T) + mask + bias) v, with
    dropout on the probabilities, where cap(x) is softcap * tanh(x / softcap), or x if
    `softcap` is 0.

    Shapes: `q` [B, T, H, D]; `k` [B, S, G, D] and `v` [B, S, G, D] where G
    divides H (query head h reads key head h / (H / G)); `mask`, added to the
    scores or, if i1, true where attention is allowed, [B or 1, H or 1, T or 1,
    S]; results `out` [B, T, H, D] and `lse` [B, H, T] in f32 (f64 for f64),
    the log of the sum of exponentials of the scores. A row that sees nothing
    gives zeros and an lse of -inf.

    `bias`, of numbers and of a shape as `mask` may have, is what of the scores
    is trained, as tables of relative positions are: it has a gradient, and the
    mask has none. Both may be there, each without the dimensions along which it
    is constant, so that neither has the size of the scores.

    Query t stands at p = t + S - T. It sees key s if all of this holds:
    - the mask allows it;
    - if `causal`: s <= p, or s < prefix[b] where there is a `prefix`, one number
      for each sample, or one for all;
    - if `window` is positive: |s - p| < window;
    - if there are `groups`, [B or 1, S]: groups[b, s] = groups[b, p].

    A kernel may round probabilities, and in the gradient those of scores, to the
    operands' 16 bits before it multiplies them; not if `exact`. With `tf32` a
    kernel may round these and the operands, which are f32, to TF32.

    Of the last three no T x S tensor is held, and keys outside of the window are
    not looked at.

    Dropout keeps the probability of element ((b * H + h) * T + t) * S + s by
    the rule of `nn.random`, with b the sample.

    Constraints:
    - C1: q, k, v have rank 4, one element type, equal B and D; k and v agree.
    - C2: G divides H.
    - C3: mask dimensions are those above; it is i1 or of the type of lse.
    - C4: `seed` and `samples` are given if, and only if, dropout is positive;
      dropout is in [0, 1); they are as for `nn.random`, with B the batch.
    - C6: softcap and window aren't negative; groups are i64 [B or 1, S] with T
      at most S; prefix is i64 [B or 1], and the op is causal.
    - C7: bias dimensions are those of a mask; it is of the type of lse.
    - C8: with `tf32`, q is f32.

    Example:

    ```mlir
    %o, %lse = nn.attention %q, %k, %v {causal, scale = 0.125}
        : (tensor<4x64x12x64xf32>, tensor<4x64x12x64xf32>, tensor<4x64x12x64xf32>)
        -> (tensor<4x64x12x64xf32>, tensor<4x12x64xf32>)
    ```
  }];
  let arguments = !con((ins NN_Float:$q, NN_Float:$k, NN_Float:$v),
                       NN_AttentionAttrs<>.operands,
                       NN_AttentionAttrs<>.arguments);
  let results = (outs NN_Float:$out, NN_Float:$lse);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`mask` `(` $mask^ `)`)?
    (`groups` `(` $groups^ `)`)? (`prefix` `(` $prefix^ `)`)?
    (`random` `(` $seed^ `,` $samples `)`)? (`bias` `(` $bias^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_AttentionGradOp : NN_InferredOp<"attention_grad", [
    AttrSizedOperandSegments, NotDifferentiable, StridedKernel, NarrowingTF32]> {
  let summary = "gradient of attention, with the probabilities recomputed";
  let description = [{
    Gradients of q, k and v from the gradient of `out`, and that of `bias`, of
    its type, where there is one. Only `out` and `lse` were saved; probabilities
    and dropout masks are recomputed, tile by tile. Along a dimension of `bias`
    that is 1, its gradient is a sum, in f32 (f64 for f64), in an order that
    depends on nothing but the shapes.

    Constraints: those of `nn.attention`, and
    - C5: `out`, `grad` have the type of q; `lse` is that of the forward op.
  }];
  let arguments = !con((ins NN_Float:$q, NN_Float:$k, NN_Float:$v,
                            NN_Float:$out, NN_Float:$lse, NN_Float:$grad),
                       NN_AttentionAttrs<>.operands,
                       NN_AttentionAttrs<>.arguments);
  let results = (outs NN_Float:$dq, NN_Float:$dk, NN_Float:$dv,
                      Optional<NN_Float>:$dbias);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $out `,` $lse `,` $grad (`mask` `(` $mask^ `)`)?
    (`groups` `(` $groups^ `)`)? (`prefix` `(` $prefix^ `)`)?
    (`random` `(` $seed^ `,` $samples `)`)? (`bias` `(` $bias^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_PackedAttentionGradOp : NN_InferredOp<"packed_attention_grad", [
    AttrSizedOperandSegments, NotDifferentiable, StridedKernel, NarrowingTF32]> {
  let summary = "gradient of attention, as the heads of one tensor";
  let description = [{
    `nn.attention_grad` with one result [B, T, H + 2 G, D]: the heads of dq, then
    those of dk and of dv. So a projection that makes q, k and v at once gets its
    gradient without a concatenation.

    Constraints: those of `nn.attention_grad`, and
    - C9: T is S, and there is no bias.
  }];
  let arguments = !con((ins NN_Float:$q, NN_Float:$k, NN_Float:$v,
                            NN_Float:$out, NN_Float:$lse, NN_Float:$grad),
                       NN_AttentionAttrs<>.operands,
                       NN_AttentionAttrs<>.arguments);
  let results = (outs NN_Float:$dqkv);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $out `,` $lse `,` $grad (`mask` `(` $mask^ `)`)?
    (`groups` `(` $groups^ `)`)? (`prefix` `(` $prefix^ `)`)?
    (`random` `(` $seed^ `,` $samples `)`)? (`bias` `(` $bias^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
}

#endif // TMC_DIALECTS_NN_ATTENTION_TD
