// DoubleProduct.h - matrix products in double.
//
// Verifying a step of a real model takes minutes of products, so only this part
// of the interpreter is optimized: blocks of both matrices are packed in the
// order in which a small product of registers reads them, and rows go to as
// many threads as there are processors.
//
//     out[i][j] += sum over p of x[i][p] y[p][j]
//
// The order of a sum depends only on the shapes, not on the number of threads.
// Source: Goto, van de Geijn, "Anatomy of high-performance matrix
// multiplication", ACM Transactions on Mathematical Software, 2008.

#ifndef TMC_COMPILER_REFERENCE_DOUBLEPRODUCT_H
#define TMC_COMPILER_REFERENCE_DOUBLEPRODUCT_H

#include <cstdint>
#include <functional>

namespace tmc::reference {

/// Element (i, j) is data[i * rowStep + j * columnStep].
struct MatrixView {
  const double *data;
  int64_t rowStep, columnStep;

  /// A row-major matrix of `columns` columns; if transposed, the transpose of a
  /// row-major matrix of `columns` rows.
  static MatrixView of(const double *data, int64_t rows, int64_t columns,
                       bool isTransposed = false) {
    return isTransposed ? MatrixView{data, 1, rows}
                        : MatrixView{data, columns, 1};
  }
};

/// out += x y, for m x k, k x n and a row-major m x n.
void addProduct(double *out, MatrixView x, MatrixView y, int64_t m, int64_t k,
                int64_t n);

/// Calls body(begin, end) for parts of [0, count), on several threads if
/// `work`, in elements, is large enough. Parts must write disjoint data.
void inParts(int64_t count, int64_t work,
             const std::function<void(int64_t, int64_t)> &body);

} // namespace tmc::reference

#endif // TMC_COMPILER_REFERENCE_DOUBLEPRODUCT_H
