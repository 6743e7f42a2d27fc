// PrimalDual.h - prices for the rows of a covering program.
//
//     minimize  costs . x    with  row . x >= least  for each row, 0 <= x <= 1
//
// Any prices y >= 0 of the rows prove
//
//     costs . x >= least . y + sum over x_j of min(0, costs_j - (y . rows)_j).
//
// The method is PDHG with steps from the rows' and columns' sums of
// magnitudes (Pock and Chambolle, 2011), restarted at the mean of the points
// since the last restart where that proves more (Applegate et al., 2021). It
// takes products with the rows alone. So a program of some ten thousand entries
// is solved to four digits in a tenth of a second.

#ifndef TMC_COMPILER_PLANNING_BOUND_PRIMALDUAL_H
#define TMC_COMPILER_PLANNING_BOUND_PRIMALDUAL_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tmc::planning {

struct CoveringProgram {
  struct Entry {
    int32_t column = 0;
    double factor = 0;
  };
  /// Adds a row, and returns its number. The factors of a program are best of
  /// one magnitude.
  int32_t addRow(double needed) {
    begins.push_back(entries.size());
    least.push_back(needed);
    return int32_t(least.size()) - 1;
  }
  /// Adds an entry of the newest row.
  void add(int32_t column, double factor) {
    entries.push_back({column, factor});
  }

  std::vector<double> costs;  // By column.
  std::vector<double> least;  // By row.
  std::vector<size_t> begins; // The first entry, by row.
  std::vector<Entry> entries; // By row.
};

/// The best prices that so many steps find. A step takes two operations per
/// entry. It stops early where the proved value no longer rises.
std::vector<double> priceRows(const CoveringProgram &program, int64_t steps);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_PRIMALDUAL_H
