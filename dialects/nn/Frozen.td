// Frozen.td - weights that aren't trained, stored as codes.

#ifndef TMC_DIALECTS_NN_FROZEN_TD
#define TMC_DIALECTS_NN_FROZEN_TD

include "dialects/nn/Base.td"

def NN_Codes : StaticShapeTensorOf<[I8]>;
def NN_Absmax : StaticShapeTensorOf<[I8, F32]>;

def NN_DequantizeOp : NN_Op<"dequantize", [NotDifferentiable, Kernel]> {
  let summary = "the numbers of a frozen weight, from its codes";
  let description = [{
    A weight that isn't trained is stored in 4 or 8 bits a number. The types of
    the operands say the format:

    - `nf4`: codes of 4 bits, two to a byte, the first in the high bits. A block
      of 64 numbers, in the order of memory, has one absmax in f32. A number is
      level[code] * absmax.
    - `nf4` with `nested`: absmax is itself a code of 8 bits, in blocks of 256:
      absmax = map[code] * nested[block] + offset. The offset stands behind the
      last nested maximum.
    - `int8`: codes of 8 bits; a row has one absmax in f32. A number is code *
      absmax * (1 / 127).

    Products and the sum are in f32, and the number is rounded once, to the type
    of the result. The tables of levels and of the map are those of bitsandbytes.

    The op reads few bytes and makes many. So it stands in the block of its
    reader, and a plan keeps its result, makes it again, or fetches its codes.

    Constraints:
    - C1: `codes` has half as many elements as the result, along one dimension,
      and 64 divides their number; or the result's shape, a matrix's.
    - C2: `absmax` of nf4 has an element for each 64 numbers, of f32, or of i8
      with `nested`, which then has one for each 256 of them and one more.
    - C3: `absmax` of int8 has an f32 for each row, and there is no `nested`.

    Example:

    ```mlir
    %w = nn.dequantize %q, %a nested(%s)
        : (tensor<8192xi8>, tensor<256xi8>, tensor<2xf32>) -> tensor<128x128xbf16>
    ```
  }];
  let arguments = (ins NN_Codes:$codes, NN_Absmax:$absmax,
                       Optional<1DTensorOf<[F32]>>:$nested);
  let results = (outs StaticShapeTensorOf<[F16, BF16, F32]>:$result);
  let assemblyFormat = [{
    $codes `,` $absmax (`nested` `(` $nested^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// True if the codes are of 8 bits, with a maximum for each row.
    bool isByRows() { return getCodes().getType().getRank() == 2; }
  }];
}

def NN_MatmulCodesOp : NN_Op<"matmul_codes", [
    AttrSizedOperandSegments, NotDifferentiable, AccumulatingKernel]> {
  let summary = "product by a frozen weight that is decoded as it is packed";
  let description = [{
    The `nn.matmul` of `lhs` and of `nn.dequantize` of the codes, bit for bit: each
    number of the weight is rounded to the element type of `lhs` before it is
    multiplied. The weight isn't written to memory. `transpose_rhs` reads it
    transposed: it is [n, k] then, else [k, n]. `bias` and `acc` are those of
    `nn.matmul`. For the cpu.

    Constraints:
    - C1: `lhs` and the result are matrices, of the same rows.
    - C2: codes and maxima are those of the weight, as of `nn.dequantize`.
    - C3: `bias` is a row of the result.
    - C4: `acc` has the result's type.

    Example:

    ```mlir
    %y = nn.matmul_codes %x, %q, %a transpose_rhs
        : (tensor<8x128xbf16>, tensor<4096xi8>, tensor<128xf32>) -> tensor<8x64xbf16>
    ```
  }];
  let arguments = (ins StaticShapeTensorOf<[F16, BF16, F32]>:$lhs,
                       NN_Codes:$codes, NN_Absmax:$absmax,
                       Optional<1DTensorOf<[F32]>>:$nested,
                       Optional<NN_Float>:$bias, Optional<NN_Float>:$acc,
                       UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs StaticShapeTensorOf<[F16, BF16, F32]>:$result);
  let assemblyFormat = [{
    $lhs `,` $codes `,` $absmax (`nested` `(` $nested^ `)`)?
    (`transpose_lhs` $transpose_lhs^)? (`transpose_rhs` $transpose_rhs^)?
    (`bias` `(` $bias^ `)`)? (`acc` `(` $acc^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    int64_t getBytesMoved();
    /// True if the codes are of 8 bits, with a maximum for each row.
    bool isByRows() { return getCodes().getType().getRank() == 2; }
    /// The numbers along which it adds up.
    int64_t getDepth();
  }];
}

#endif // TMC_DIALECTS_NN_FROZEN_TD
