#include "compiler/planning/bound/PrimalDual.h"

#include <algorithm>
#include <cmath>

using namespace tmc::planning;

namespace {

/// Steps between two looks at the proved value, and between two restarts. A
/// rise below a part of the value over one restart's steps ends the ascent.
constexpr int64_t kLook = 50, kRestart = 400;
constexpr double kLeastRise = 1e-4;

class PrimalDual {
public:
  explicit PrimalDual(const CoveringProgram &program)
      : program(program), xs(program.costs.size()), ahead(xs), reduced(xs),
        columnSteps(xs), sumOfXs(xs), ys(program.least.size()), rowSteps(ys),
        sumOfYs(ys), best(ys) {
    for (size_t r = 0; r < ys.size(); ++r)
      for (size_t e = begin(r); e < end(r); ++e) {
        const CoveringProgram::Entry &entry = program.entries[e];
        rowSteps[r] += std::abs(entry.factor);
        columnSteps[entry.column] += std::abs(entry.factor);
      }
    for (std::vector<double> *steps : {&rowSteps, &columnSteps})
      for (double &step : *steps)
        step = step > 0 ? 1 / step : 0;
  }

  std::vector<double> run(int64_t steps) {
    double most = 0, atRestart = 0;
    int64_t since = 0;
    for (int64_t i = 1; i <= steps; ++i) {
      step();
      ++since;
      if (i % kLook != 0 && i != steps)
        continue;
      const double own = proved(ys);
      std::vector<double> mean = sumOfYs;
      for (double &y : mean)
        y /= double(since);
      const double ofMean = proved(mean);
      if (const double now = std::max(own, ofMean); now > most) {
        most = now;
        best = own >= ofMean ? ys : mean;
      }
      if (since < kRestart)
        continue;
      if (most > 0 && most - atRestart <= kLeastRise * most)
        break;
      atRestart = most;
      if (ofMean > own) {
        ys = std::move(mean);
        for (size_t c = 0; c < xs.size(); ++c)
          xs[c] = sumOfXs[c] / double(since);
      }
      std::fill(sumOfXs.begin(), sumOfXs.end(), 0.0);
      std::fill(sumOfYs.begin(), sumOfYs.end(), 0.0);
      since = 0;
    }
    return best;
  }

private:
  size_t begin(size_t r) const { return program.begins[r]; }
  size_t end(size_t r) const {
    return r + 1 < program.begins.size() ? program.begins[r + 1]
                                         : program.entries.size();
  }

  /// Costs less the rows' prices, by column.
  void reduce(const std::vector<double> &prices) {
    reduced = program.costs;
    for (size_t r = 0; r < prices.size(); ++r)
      for (size_t e = begin(r); e < end(r); ++e)
        reduced[program.entries[e].column] -=
            prices[r] * program.entries[e].factor;
  }

  double proved(const std::vector<double> &prices) {
    reduce(prices);
    double sum = 0;
    for (size_t r = 0; r < prices.size(); ++r)
      sum += prices[r] * program.least[r];
    for (double cost : reduced)
      sum += std::min(0.0, cost);
    return sum;
  }

  void step() {
    reduce(ys);
    for (size_t c = 0; c < xs.size(); ++c) {
      const double next =
          std::clamp(xs[c] - columnSteps[c] * reduced[c], 0.0, 1.0);
      ahead[c] = 2 * next - xs[c];
      xs[c] = next;
      sumOfXs[c] += next;
    }
    for (size_t r = 0; r < ys.size(); ++r) {
      double open = program.least[r];
      for (size_t e = begin(r); e < end(r); ++e)
        open -= program.entries[e].factor * ahead[program.entries[e].column];
      ys[r] = std::max(0.0, ys[r] + rowSteps[r] * open);
      sumOfYs[r] += ys[r];
    }
  }

  const CoveringProgram &program;
  std::vector<double> xs, ahead, reduced, columnSteps, sumOfXs; // By column.
  std::vector<double> ys, rowSteps, sumOfYs, best;              // By row.
};

} // namespace

std::vector<double> tmc::planning::priceRows(const CoveringProgram &program,
                                             int64_t steps) {
  return PrimalDual(program).run(steps);
}
