#include "driver/calibrate/Fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace tmc;

namespace {

/// Squared log errors, weighted by time: long launches must fit best.
double errorOf(const Roofline &roofline,
               const std::vector<MeasuredLaunch> &launches) {
  double sum = 0;
  for (const MeasuredLaunch &launch : launches) {
    double error =
        std::log(roofline.seconds(launch.flops, launch.bytes) / launch.seconds);
    sum += launch.seconds * error * error;
  }
  return sum;
}

/// A parameter that is searched on a logarithmic scale.
struct SearchAxis {
  double low, high;
  double at(int i, int points) const {
    return low * std::pow(high / low, double(i) / (points - 1));
  }
  /// `rate` is the fastest one measured. 0 means that no launch has such work;
  /// then the rate is set so high that it bounds nothing.
  static SearchAxis aroundFastest(double rate) {
    constexpr double kUnbounded = 1e18;
    return rate > 0 ? SearchAxis{rate / 100, rate * 10}
                    : SearchAxis{kUnbounded, kUnbounded};
  }
  /// Two steps of the old grid to each side of `value`.
  SearchAxis around(double value, int points) const {
    double step = std::pow(high / low, 2.0 / (points - 1));
    return {value / step, value * step};
  }
};

} // namespace

Roofline tmc::fitRoofline(const std::vector<MeasuredLaunch> &launches) {
  double flopRate = 0, byteRate = 0;
  double shortest = std::numeric_limits<double>::max();
  for (const MeasuredLaunch &launch : launches) {
    flopRate = std::max(flopRate, launch.flops / launch.seconds);
    byteRate = std::max(byteRate, launch.bytes / launch.seconds);
    shortest = std::min(shortest, launch.seconds);
  }
  constexpr int kPoints = 13, kRefinements = 7;
  SearchAxis flops = SearchAxis::aroundFastest(flopRate);
  SearchAxis bytes = SearchAxis::aroundFastest(byteRate);
  SearchAxis start{shortest / 1000, shortest};
  Roofline best;
  for (int round = 0; round < kRefinements; ++round) {
    double least = std::numeric_limits<double>::max();
    for (int i = 0; i < kPoints; ++i)
      for (int j = 0; j < kPoints; ++j)
        for (int k = 0; k < kPoints; ++k) {
          Roofline candidate{start.at(k, kPoints), flops.at(i, kPoints),
                             bytes.at(j, kPoints)};
          double error = errorOf(candidate, launches);
          if (error < least) {
            least = error;
            best = candidate;
          }
        }
    flops = flops.around(best.flopsPerSecond, kPoints);
    bytes = bytes.around(best.bytesPerSecond, kPoints);
    start = start.around(best.launchSeconds, kPoints);
  }
  return best;
}

double tmc::predictedRatio(const Roofline &roofline,
                           const std::vector<MeasuredLaunch> &launches) {
  double predicted = 0, measured = 0;
  for (const MeasuredLaunch &launch : launches) {
    predicted += roofline.seconds(launch.flops, launch.bytes);
    measured += launch.seconds;
  }
  return measured > 0 ? predicted / measured : 1;
}

void tmc::fitFamilies(const MeasuredFamilies &launches, Target &target) {
  for (const auto &[family, types] : launches)
    for (const auto &[type, some] : types)
      target.families[family][type] = fitRoofline(some);
  const auto generated = target.families.find("Fused");
  if (launches.contains("Fused") && generated != target.families.end())
    target.rooflines[ProductType::F32] = generated->second.at(ProductType::F32);
}
