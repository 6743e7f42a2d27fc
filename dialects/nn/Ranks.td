// Ranks.td - values that the ranks of a mesh exchange.
//
// A step for several devices is one program that each rank runs on its own
// values. Ranks that differ in one axis of the mesh alone are a group:
//
//     dp   each rank has other samples of the batch
//     tp   each rank has other heads or columns of products, and all that isn't
//          cut is the same on all ranks
//
// A *shard* of a value is one rank's piece of its elements in memory order.
// Pieces are equal, of whole pages (dialects/nn/Ranks.h): the last of them may
// be padded with zeros, and the padding never travels.
//
// A network library moves bytes, and never adds: its sums depend on sizes,
// topology and version. So a sum over ranks is an exchange of pieces, a kernel
// that adds them in the order of the ranks, and a gather. All ranks of a group
// get the same bits.
//
//     %y = nn.sum_over %x over dp of 2 : tensor<4x8xf32>
//
// is in kernels, if its pieces are worth a message each,
//
//     %p = nn.exchange %x over dp of 2 : tensor<128x128xf32>
//     %s = nn.sum_pieces %p : tensor<2x8192xf32>
//     %y = nn.gather %s over dp of 2 : tensor<8192xf32> to tensor<128x128xf32>
//
// and else a gather of the whole, and the same sum:
//
//     %p = nn.gather %x over dp of 2 : tensor<4x8xf32> to tensor<2x4x8xf32>
//     %y = nn.sum_pieces %p : tensor<2x4x8xf32>

#ifndef TMC_DIALECTS_NN_RANKS_TD
#define TMC_DIALECTS_NN_RANKS_TD

include "dialects/nn/Base.td"

def NN_Axis : I32EnumAttr<"Axis", "an axis of a mesh of ranks", [
    I32EnumAttrCase<"Data", 0, "dp">, I32EnumAttrCase<"Tensor", 1, "tp">,
    I32EnumAttrCase<"Pipeline", 2, "pp">]> {
  let cppNamespace = "::tmc::nn";
}

def NN_SumOverOp : NN_InferredOp<"sum_over", [Differentiable]> {
  let summary = "the sum of a value over the ranks of an axis";
  let description = [{
    Each rank of a group of `ranks` gets the sum of all ranks' operands, added
    in the order of the ranks, in f32 for narrower floats.

    Over dp the loss of the mesh is the sum of the ranks' losses: the gradient of
    the operand is the sum of the ranks' gradients of the result. Over tp all
    ranks have the whole loss, and the result's gradient is the operand's.

    Constraints:
    - C1: `ranks` is at least 1.
  }];
  let arguments = (ins NN_Tensor:$input, NN_Axis:$axis, I64Attr:$ranks);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `over` $axis `of` $ranks attr-dict `:` type($input)
  }];
}

def NN_SpreadOp : NN_InferredOp<"spread", [Differentiable]> {
  let summary = "a value of all ranks of an axis, each of which reads it in part";
  let description = [{
    The result is the operand. Each rank of the group makes its part of
    something of it, so the operand's gradient is the sum of the ranks'
    gradients of the result: the adjoint of `nn.sum_over` over tp. It has no
    kernel: autodiff leaves none behind.

    Constraints:
    - C1: `ranks` is at least 1.
  }];
  let arguments = (ins NN_Tensor:$input, NN_Axis:$axis, I64Attr:$ranks);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `over` $axis `of` $ranks attr-dict `:` type($input)
  }];
}

def NN_ExchangeOp : NN_InferredOp<"exchange", [NotDifferentiable, Kernel]> {
  let summary = "each rank's pieces of one number, of all ranks";
  let description = [{
    Row r of the result is this rank's shard of rank r's operand.

    Constraints:
    - C1: `ranks` is at least 1.
  }];
  let extraClassDeclaration = [{
    /// Bytes that a rank sends.
    int64_t getBytesMoved();
    bool isOnNetwork() { return true; }
  }];
  let arguments = (ins NN_Tensor:$input, NN_Axis:$axis, I64Attr:$ranks);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `over` $axis `of` $ranks attr-dict `:` type($input)
  }];
}

def NN_SumPiecesOp : NN_InferredOp<"sum_pieces", [NotDifferentiable, Kernel]> {
  let summary = "the sum of rows, in their order";
  let description = [{
    The sum over dimension 0, added row by row from the first on, in f32 for
    narrower floats, and rounded once.

    Constraints:
    - C1: the operand has at least one row.
  }];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def NN_GatherOp : NN_Op<"gather", [NotDifferentiable, Kernel]> {
  let summary = "the values of all ranks, one after another";
  let description = [{
    The result's elements, in memory order, are those of rank 0's operand, then
    those of rank 1's, and so on. Elements beyond the result are padding.

    Constraints:
    - C1: `ranks` is at least 1, and the result has the operand's element type
      and at most `ranks` times its elements.
  }];
  let extraClassDeclaration = [{
    /// Bytes that a rank sends.
    int64_t getBytesMoved();
    bool isOnNetwork() { return true; }
  }];
  let arguments = (ins NN_Tensor:$input, NN_Axis:$axis, I64Attr:$ranks);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `over` $axis `of` $ranks attr-dict
    `:` type($input) `to` type($result)
  }];
}

def NN_ShardOfOp : NN_InferredOp<"shard_of", [NotDifferentiable, Kernel]> {
  let summary = "this rank's shard of a value";
  let description = [{
    The result is `nn.exchange`'s row of this rank: nothing travels.

    Constraints:
    - C1: `ranks` is at least 1.
  }];
  let arguments = (ins NN_Tensor:$input, NN_Axis:$axis, I64Attr:$ranks);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `over` $axis `of` $ranks attr-dict `:` type($input)
  }];
}

def NN_EmbeddingPiecesOp : NN_InferredOp<"embedding_pieces", [
    NotDifferentiable, Kernel]> {
  let summary = "rows of a table of which ranks keep shards";
  let description = [{
    `ids` has the indices of all ranks, rank by rank. Row r of the result has
    the rows of `table` that rank r looks up, as far as they lie in this rank's
    shard, one after another; -0 in the place of what lies in other shards; and
    then padding. So `nn.exchange` and `nn.sum_pieces` of it begin with this
    rank's rows, to the bit. A bad index of this rank's is an error that the
    runtime reports.

    Constraints:
    - C1: `table` has rank at least 1.
    - C2: `shard` is a shard of `table` among `ranks`.
    - C3: dimension 0 of `ids` is `ranks`.
  }];
  let extraClassDeclaration = "int64_t getBytesMoved();";
  let arguments = (ins NN_Float:$shard, NN_Int:$ids, NN_Axis:$axis,
                   I64Attr:$ranks, TypeAttr:$table);
  let results = (outs NN_Float:$result);
  let assemblyFormat = [{
    $shard `,` $ids `of` $table `over` $axis `of` $ranks attr-dict
    `:` type($shard) `,` type($ids)
  }];
}

def NN_EmbeddingGradShardOp : NN_InferredOp<"embedding_grad_shard", [
    NotDifferentiable, AccumulatingKernel]> {
  let summary = "this rank's shard of a table's gradient";
  let description = [{
    This rank's shard of `nn.embedding_grad` of the indices and the gradients of
    all ranks, rank by rank, or of `acc` and them. `acc` gives the result its
    bytes.

    Constraints:
    - C1: `table` has rank at least 1.
    - C2: `grad` has the shape of `ids` followed by a row of `table`, and
      `table`'s element type.
    - C3: dimension 0 of `ids` is `ranks`.
    - C4: `acc` has the result's type.
  }];
  let extraClassDeclaration = "int64_t getBytesMoved();";
  let arguments = (ins NN_Int:$ids, NN_Float:$grad, Optional<NN_Float>:$acc,
                   NN_Axis:$axis, I64Attr:$ranks, TypeAttr:$table);
  let results = (outs NN_Float:$result);
  let assemblyFormat = [{
    $ids `,` $grad (`acc` `(` $acc^ `:` type($acc) `)`)?
    `of` $table `over` $axis `of` $ranks attr-dict
    `:` type($ids) `,` type($grad)
  }];
}

#endif // TMC_DIALECTS_NN_RANKS_TD
