// Loss.td - losses, and their chunks.

#ifndef TMC_DIALECTS_NN_LOSS_TD
#define TMC_DIALECTS_NN_LOSS_TD

include "dialects/nn/Base.td"

def NN_CrossEntropyOp : NN_InferredOp<"cross_entropy", [
    Differentiable, Kernel]> {
  let summary = "weighted sum of the rows' cross-entropies";
  let description = [{
    `logits` [R, V], `labels` [R], `weight` a scalar. `loss` is weight times the
    sum, over the rows whose label isn't `ignore_index`, of
    lse(row) - logit[label]; `lse` [R] holds the rows' log-sum-exp. Both are f32
    (f64 for f64). A mean is a sum whose weight is one over the number of rows
    that count *in the whole batch*: that number is an operand so that a
    micro-batch contributes its exact share. With `vocabulary` only so many
    columns are classes: the others pad the rows, and nothing reads them.

    Constraints:
    - C1: `logits` has rank 2, `labels` one label per row; `weight` is a scalar
      of the loss's type.
    - C2: `vocabulary` is positive and at most the number of columns.
  }];
  let arguments = (ins NN_Float:$logits, NN_Int:$labels, NN_Float:$weight,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index,
                       OptionalAttr<I64Attr>:$vocabulary);
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
    Columns from `vocabulary` on are zero.

    Constraints:
    - C1: as for `nn.cross_entropy`, with `lse` one number per row.
    - C2: as there.
  }];
  let arguments = (ins NN_Float:$logits, NN_Int:$labels, NN_Float:$lse,
                       NN_Float:$scale,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index,
                       OptionalAttr<I64Attr>:$vocabulary);
  let results = (outs NN_Float:$dlogits);
  let assemblyFormat = [{
    $logits `,` $labels `,` $lse `,` $scale attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_CrossEntropyWithGradOp : NN_InferredOp<"cross_entropy_with_grad", [
    NotDifferentiable, InPlaceKernel]> {
  let summary = "cross_entropy and its gradient at once";
  let description = [{
    The `loss` of `nn.cross_entropy` and the `dlogits` of `nn.cross_entropy_grad`,
    which may overwrite the logits, from one look at them.

    Constraints:
    - C1: as for both.
    - C2: as for both.
  }];
  let arguments = (ins NN_Float:$logits, NN_Int:$labels, NN_Float:$weight,
                       NN_Float:$scale,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index,
                       OptionalAttr<I64Attr>:$vocabulary);
  let results = (outs NN_Float:$loss, NN_Float:$dlogits);
  let assemblyFormat = [{
    $logits `,` $labels `,` $weight `,` $scale attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_LinearCrossEntropyOp : NN_InferredOp<"linear_cross_entropy", [
    Differentiable, Kernel, RoundingAsReadTF32]> {
  let summary = "cross-entropy of a product, in chunks of rows";
  let description = [{
    `nn.cross_entropy` of `x` [R, C] times the transpose of `table` [V, C], plus
    `bias` [V] in each row, without ever holding more than `chunk` rows of
    logits. A table of f32 beside 16-bit `x` is rounded to its type as it is
    read, and with `tf32` factors of f32 are rounded to TF32. With `vocabulary`
    the other rows of the table, and places of the bias, pad the logits' rows.

    Constraints:
    - C1: `x` and `table` have rank 2, equal C and one element type, or the table
      f32 and `x` 16 bits, or with `tf32` f32; `labels` one label per row;
      `weight` is a scalar of the loss's type.
    - C2: `chunk` is positive.
    - C3: `bias` is one number per row of the table, of the loss's element type.
    - C6: `vocabulary` is positive and at most the number of the table's rows.
  }];
  let arguments = (ins NN_Float:$x, NN_Float:$table, NN_Int:$labels,
                       NN_Float:$weight, Optional<NN_Float>:$bias,
                       I64Attr:$chunk,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index,
                       OptionalAttr<I64Attr>:$vocabulary,
                       UnitAttr:$tf32);
  let results = (outs NN_Float:$loss, NN_Float:$lse);
  let assemblyFormat = [{
    $x `,` $table `,` $labels `,` $weight (`bias` `(` $bias^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = "int64_t getBytesMoved();";
}

def NN_LinearCrossEntropyGradOp : NN_InferredOp<"linear_cross_entropy_grad", [
    AttrSizedOperandSegments, NotDifferentiable, AccumulatingDroppingKernel,
    RoundingAsReadTF32]> {
  let summary = "gradient of linear_cross_entropy, logits recomputed by chunks";
  let description = [{
    Gradients of `x`, in its type, of `table` and, where there is one, of `bias`,
    in the loss's type; `scale` is the loss's gradient times its weight. The
    logits' gradient is multiplied in the type of `x`. `acc` is added to that of
    `table` and gives it its bytes. Results whose numbers are in `unread` aren't
    made.

    Constraints:
    - C1: as for `nn.linear_cross_entropy`, with `lse` one number per row.
    - C2: `chunk` is positive.
    - C3: `bias` is one number per class, of the loss's element type.
    - C4: `unread` are numbers of gradients, each once, in order.
    - C5: `acc` has the type of the table's gradient, and goes without `bias`.
    - C6: `vocabulary` as there.
  }];
  let arguments = (ins NN_Float:$x, NN_Float:$table, NN_Int:$labels,
                       NN_Float:$lse, NN_Float:$scale, Optional<NN_Float>:$bias,
                       Optional<NN_Float>:$acc, I64Attr:$chunk,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index,
                       OptionalAttr<I64Attr>:$vocabulary,
                       OptionalAttr<DenseI64ArrayAttr>:$unread,
                       UnitAttr:$tf32);
  let results = (outs NN_Float:$dx, NN_Float:$dtable,
                      Optional<NN_Float>:$dbias);
  let assemblyFormat = [{
    $x `,` $table `,` $labels `,` $lse `,` $scale (`bias` `(` $bias^ `)`)?
    (`acc` `(` $acc^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = "int64_t getBytesMoved();";
}

def NN_LinearCrossEntropyWithGradOp
    : NN_InferredOp<"linear_cross_entropy_with_grad", [
    AttrSizedOperandSegments, NotDifferentiable, AccumulatingDroppingKernel,
    RoundingAsReadTF32]> {
  let summary = "linear_cross_entropy and its gradient, logits made once";
  let description = [{
    The loss of `nn.linear_cross_entropy` and the gradients of
    `nn.linear_cross_entropy_grad`: a chunk's logits become their own gradient as
    soon as they have given their share of the loss. `acc` is as there. Results
    whose numbers are in `unread` aren't made.

    Constraints:
    - C1: as for `nn.linear_cross_entropy`; `scale` is a scalar like `weight`.
    - C2: `chunk` is positive.
    - C3: `bias` is one number per class, of the loss's element type.
    - C4: `unread` are numbers of gradients, each once, in order.
    - C5: `acc` has the type of the table's gradient, and goes without `bias`.
    - C6: `vocabulary` as there.
  }];
  let arguments = (ins NN_Float:$x, NN_Float:$table, NN_Int:$labels,
                       NN_Float:$weight, NN_Float:$scale,
                       Optional<NN_Float>:$bias, Optional<NN_Float>:$acc,
                       I64Attr:$chunk,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index,
                       OptionalAttr<I64Attr>:$vocabulary,
                       OptionalAttr<DenseI64ArrayAttr>:$unread,
                       UnitAttr:$tf32);
  let results = (outs NN_Float:$loss, NN_Float:$dx, NN_Float:$dtable,
                      Optional<NN_Float>:$dbias);
  let assemblyFormat = [{
    $x `,` $table `,` $labels `,` $weight `,` $scale (`bias` `(` $bias^ `)`)?
    (`acc` `(` $acc^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = "int64_t getBytesMoved();";
}

#endif // TMC_DIALECTS_NN_LOSS_TD
