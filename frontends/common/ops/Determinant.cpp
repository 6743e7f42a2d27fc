#include "frontends/common/ops/Expression.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/common/ops/Solve.h"

#include "llvm/ADT/bit.h"

#include <map>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

/// Rows are added from the last to the first; after k rows, the minors of all
/// choices of k columns are known. This takes n 2^(n - 1) products, so n is
/// small.
FailureOr<Val> tmc::frontend::determinantByMinors(Site &s, const Val &x) {
  int64_t rank = x.rank(), n = x.dims.back();
  std::map<unsigned, Expression> minors;
  for (int64_t row = n; row-- > 0;) {
    SmallVector<Expression> entries;
    ASSIGN_OR_FAIL(Val line, strided(s, x, rank - 2, row, 1, 1));
    for (int64_t column = 0; column < n; ++column) {
      ASSIGN_OR_FAIL(Val entry, strided(s, line, rank - 1, column, 1, 1));
      entries.push_back(
          Expression(s, squeeze(s, entry, Dims{rank - 2, rank - 1})));
    }
    std::map<unsigned, Expression> larger;
    for (unsigned columns = 1; columns < 1u << n; ++columns) {
      if (llvm::popcount(columns) != n - row)
        continue;
      std::optional<Expression> sum;
      bool isPositive = true;
      for (int64_t column = 0; column < n; ++column) {
        if (!(columns >> column & 1))
          continue;
        Expression term = entries[column];
        auto rest = minors.find(columns & ~(1u << column));
        if (rest != minors.end())
          term = term * rest->second;
        sum = !sum ? term : isPositive ? *sum + term : *sum - term;
        isPositive = !isPositive;
      }
      larger.insert_or_assign(columns, *sum);
    }
    minors = std::move(larger);
  }
  return minors.begin()->second.value();
}
