//===- ConvPointwise.cpp - 1 x 1 windows with few columns -----------------===//

#include "runtime/cpu/ConvPointwise.h"

#include "runtime/cpu/Simd.h"

namespace tmc::conv {

/// The product of a piece of `size`, with its scratch.
static Matmul::Params pieceOf(const Matmul::Params &product, int64_t size,
                              bool isSum) {
  Matmul::Params piece =
      isSum ? pieceOfSums(product, size) : pieceOfRows(product, size);
  piece.scratchBytes = pieceScratch(piece);
  return piece;
}

PointwisePieces::PointwisePieces(const Matmul::Params &product,
                                 const PointwiseCut &cut, bool isSum)
    : product(product), cut(cut), whole(pieceOf(product, cut.each, isSum)),
      last(
          pieceOf(product,
                  (isSum ? product.k : product.m) - (cut.pieces - 1) * cut.each,
                  isSum)),
      workerBytes(pieceOf(product, cut.each, isSum).scratchBytes) {}

void PointwisePieces::runRows(Stream &stream, const void *from,
                              const void *filter, void *to, char *scratch) {
  const int64_t lhsBytes = cut.each * product.k * sizeOf(product.lhs);
  const int64_t outBytes = cut.each * product.n * sizeOf(product.out);
  parallelFor(
      stream, cut.pieces, workersOf(cut.pieces),
      [&](int64_t number, int64_t worker) {
        Stream mine(&alone);
        piece(number).run(
            mine, {static_cast<const char *>(from) + number * lhsBytes, filter},
            {static_cast<char *>(to) + number * outBytes},
            scratch + worker * workerBytes);
      });
}

void PointwisePieces::runSums(Stream &stream, const void *dy, const void *x,
                              float *out, char *scratch, bool accumulate) {
  const int64_t elements = product.m * product.n;
  const int64_t sumFloats = alignScratch(elements * 4) / 4;
  float *sums =
      reinterpret_cast<float *>(scratch + workersOf(cut.pieces) * workerBytes);
  const int64_t dyBytes = cut.each * product.m * sizeOf(product.lhs);
  const int64_t xBytes = cut.each * product.n * sizeOf(product.rhs);
  parallelFor(stream, cut.pieces, workersOf(cut.pieces),
              [&](int64_t number, int64_t worker) {
                Stream mine(&alone);
                piece(number).run(
                    mine,
                    {static_cast<const char *>(dy) + number * dyBytes,
                     static_cast<const char *>(x) + number * xBytes},
                    {sums + number * sumFloats},
                    scratch + worker * workerBytes);
              });
  for (int64_t i = 0; i < elements; ++i) {
    float sum = sums[i];
    for (int64_t part = 1; part < cut.pieces; ++part)
      sum += sums[part * sumFloats + i];
    out[i] = accumulate ? out[i] + sum : sum;
  }
}

} // namespace tmc::conv
