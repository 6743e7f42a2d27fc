// Quantize.td - floats as 8-bit codes with their scales.

#ifndef TMC_DIALECTS_NN_QUANTIZE_TD
#define TMC_DIALECTS_NN_QUANTIZE_TD

include "dialects/nn/Base.td"

def NN_QuantizeOp : NN_Op<"quantize", [NotDifferentiable, Kernel, SameVariadicResultSize]> {
  let summary = "codes of 8 bits, and the scales by which they are multiplied";
  let description = [{
    Makes the range of a float of 8 bits fit the values: code times scale is the
    value, rounded. A scale is that of the whole tensor, or of a block of its two
    innermost dimensions; the shape of `scale` says which. Scale dimension i is
    dimension i of the input where each of its indices has scales of its own, or
    the number of blocks of 128 in it.

    In f32, with the largest magnitude `amax` of what shares a scale and the
    largest number `most` of the codes' type (448 or 57344):

    - of a whole tensor, scale = max(amax / most, 2^-126);
    - of a block, scale = the least power of two at least amax / most, and at
      least 2^-126: a product may multiply codes by it first, and loses nothing.

    Where amax is 0, scale is 1; where it is infinite or a NaN, scale and codes
    are NaN. code = round(x * (1 / scale)), to the nearest, ties to even, and to
    `most` where it is larger.

    With `history`, scaling is delayed: amax above is the largest magnitude in
    it, of steps before. `amax` is what the input's own is, for the history of
    the next step, or 0 where that isn't finite. What isn't finite becomes NaN,
    whatever the scale. `saturated` is how many numbers are finite and, divided
    by the scale, larger than `most`.

    Constraints:
    - C1: `codes` has the input's shape.
    - C2: `scale` is a scalar, or has the input's rank, at least 2; an innermost
      dimension is the input's or its number of blocks of 128, and the others are
      the input's.
    - C3: `history` goes with `amax` and `saturated`, and with a scale of the
      whole tensor.

    Example:

    ```mlir
    %q, %s = nn.quantize %x : (tensor<64x256xbf16>) -> (tensor<64x256xf8E4M3FN>, tensor<64x2xf32>)
    ```
  }];
  let extraClassDeclaration = "int64_t getBytesMoved();";
  let arguments = (ins StaticShapeTensorOf<[F16, BF16, F32]>:$input,
                       Optional<1DTensorOf<[F32]>>:$history);
  let results = (outs StaticShapeTensorOf<[F8E4M3FN, F8E5M2]>:$codes,
                      StaticShapeTensorOf<[F32]>:$scale,
                      Optional<0DTensorOf<[F32]>>:$amax,
                      Optional<0DTensorOf<[I64]>>:$saturated);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$input, "::mlir::Type":$codeElement)>];
  let assemblyFormat = [{
    $input (`history` `(` $history^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
}

def NN_QuantizeBothOp : NN_Op<"quantize_both", [
    NotDifferentiable, Kernel, SameVariadicResultSize]> {
  let summary = "codes of 8 bits in both orders of a matrix";
  let description = [{
    `nn.quantize` of a whole tensor, whose codes are written once more with the
    two innermost dimensions exchanged. A card's products of codes sum along what
    lies together in both factors, and the gradient of a product sums along the
    other dimension than the product.

    Constraints:
    - C1: `codes` has the input's shape, of rank at least 2.
    - C2: `scale` is a scalar.
    - C3: `history` goes with `amax` and `saturated`.
    - C4: `turned` has the type of `codes` with the two innermost dimensions
      exchanged.

    Example:

    ```mlir
    %q, %s, %t = nn.quantize_both %x : (tensor<64x256xbf16>)
        -> (tensor<64x256xf8E4M3FN>, tensor<f32>, tensor<256x64xf8E4M3FN>)
    ```
  }];
  let extraClassDeclaration = "int64_t getBytesMoved();";
  let arguments = (ins StaticShapeTensorOf<[F16, BF16, F32]>:$input,
                       Optional<1DTensorOf<[F32]>>:$history);
  let results = (outs StaticShapeTensorOf<[F8E4M3FN, F8E5M2]>:$codes,
                      0DTensorOf<[F32]>:$scale,
                      StaticShapeTensorOf<[F8E4M3FN, F8E5M2]>:$turned,
                      Optional<0DTensorOf<[F32]>>:$amax,
                      Optional<0DTensorOf<[I64]>>:$saturated);
  let assemblyFormat = [{
    $input (`history` `(` $history^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
}

def NN_QuantizeBlocksOp : NN_Op<"quantize_blocks", [
    NotDifferentiable, DroppingKernel]> {
  let summary = "codes of 8 bits in blocks, in both orders of a matrix";
  let description = [{
    `nn.quantize` with scales of blocks that go along rows, of a matrix and of
    what it is turned: a product sums along rows of one, its gradient along those
    of the other. Each is made of the input, not of the other's codes. A block is
    128 of a row, or a square of 128 x 128. Scales are packed, as a card's products
    read them. `unread` names by their first results the pairs of codes and scales
    that aren't made.

    Constraints:
    - C1: the input is a matrix; `codes` has its shape, and `turned` the type of
      `codes` with both dimensions exchanged.
    - C2: `scale` and `turned_scale` are packed scales of `codes` and of `turned`,
      both of rows or both of squares.
    - C3: `unread` holds 0 or 2.

    Example:

    ```mlir
    %q, %s, %t, %r = nn.quantize_blocks %x : (tensor<64x256xbf16>)
        -> (tensor<64x256xf8E4M3FN>, tensor<128xf32>, tensor<256x64xf8E4M3FN>, tensor<256xf32>)
    ```
  }];
  let extraClassDeclaration = "int64_t getBytesMoved();";
  let arguments = (ins StaticShapeTensorOf<[F16, BF16, F32]>:$input,
                       OptionalAttr<DenseI64ArrayAttr>:$unread);
  let results = (outs StaticShapeTensorOf<[F8E4M3FN, F8E5M2]>:$codes,
                      StaticShapeTensorOf<[F32]>:$scale,
                      StaticShapeTensorOf<[F8E4M3FN, F8E5M2]>:$turned,
                      StaticShapeTensorOf<[F32]>:$turned_scale);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$input, "::mlir::Type":$codeElement,
                   "bool":$areSquares)>];
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

#endif // TMC_DIALECTS_NN_QUANTIZE_TD
