// Random.td - random numbers that don't depend on place or order.

#ifndef TMC_DIALECTS_NN_RANDOM_TD
#define TMC_DIALECTS_NN_RANDOM_TD

include "dialects/nn/Base.td"

def NN_RandomOp : NN_Op<"random", [NotDifferentiable]> {
  let summary = "uniform numbers in [0, 1), the same wherever they are made";
  let description = [{
    Dimension 0 of the result is the batch (samples.size times a whole number of
    rows per sample). With n elements per sample, element e of the sample whose
    index in the whole batch is s has idx = s * n + e, and is (w >> 8) * 2^-24
    for w the word idx % 4 of Philox4x32-10 with the key (low and high word of
    seed[0]) and the counter (low and high word of idx / 4, stream, low word of
    seed[1]). seed[0] is the run's seed, seed[1] the step's number. So a clone,
    another split or another machine draws the same numbers.

    Constraints:
    - C1: `seed` has 2 elements; `samples` is a vector whose length divides
      dimension 0 of the result.
  }];
  let extraClassDeclaration = "int64_t getBytesMoved();";
  let arguments = (ins NN_Int:$seed, NN_Int:$samples, I64Attr:$stream);
  let results = (outs NN_Float:$result);
  let assemblyFormat = [{
    $seed `,` $samples attr-dict `:` functional-type(operands, results)
  }];
}

#endif // TMC_DIALECTS_NN_RANDOM_TD
