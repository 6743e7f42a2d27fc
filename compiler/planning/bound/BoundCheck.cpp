// The checker of price certificates. `Bound.cpp` sums bytes moment by moment
// and subtracts the savings of broken gaps. The same number is summed here
// value by value: a gap contributes the smaller of its bytes times the prices
// inside it and its cost, so that
//
//   denominator * L = sum_k price_k (footprint_k - limit)
//                   + sum_gaps min(bytes * prices inside, cost * denominator).
//
// One pass forward over the instructions, all sums checked in 128 bits.

#include "compiler/planning/bound/BoundCheck.h"
#include "compiler/planning/bound/Bound.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

absl::Status tmc::planning::checkNothingMoves(const Problem &problem) {
  if (problem.spaces.size() == 1 && problem.engines.size() == 1)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the certificate is void: it counts on values that are recomputed where "
      "they are absent, but the problem has ",
      problem.spaces.size(), " spaces and ", problem.engines.size(),
      " engines, so they may be fetched"));
}

/// Prefix sums of the prices before each moment.
static absl::StatusOr<std::vector<Wide>>
readPrices(const Certificate &certificate, size_t moments) {
  if (certificate.denominator < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("the denominator is ", certificate.denominator));
  std::vector<int64_t> price(moments, 0);
  int64_t before = -1;
  for (auto [moment, p] : certificate.lambda) {
    if (moment <= before || size_t(moment) >= moments)
      return absl::InvalidArgumentError(absl::StrCat(
          "moment ", moment, " is out of order or past the last of ", moments));
    if (p < 0)
      return absl::InvalidArgumentError(
          absl::StrCat("the price at moment ", moment, " is ", p, ", below 0"));
    price[moment] = p;
    before = moment;
  }
  std::vector<Wide> upTo(moments + 1, 0);
  for (size_t k = 0; k < moments; ++k)
    upTo[k + 1] = upTo[k] + price[k]; // At most 2^31 terms of 63 bits.
  return upTo;
}

absl::StatusOr<int64_t>
tmc::planning::provenExtraCost(const Problem &problem,
                               const Certificate &certificate) {
  if (absl::Status status = checkNothingMoves(problem); !status.ok())
    return status;
  GapWalk walk(problem);
  absl::StatusOr<std::vector<Wide>> prices =
      readPrices(certificate, walk.order.size());
  if (!prices.ok())
    return prices.status();
  const std::vector<Wide> &upTo = *prices;
  Wide denominator = certificate.denominator;
  Wide limit = Wide(certificate.budgetBytes) - problem.reservedBytes;
  CheckedSum sum;
  walk.onMoment = [&](int64_t k, Wide bytes) {
    sum.addProduct(bytes - limit, upTo[k + 1] - upTo[k]);
  };
  walk.onGap = [&](const WalkedGap &gap) {
    Wide held = 0, broken = 0;
    sum.overflow |=
        __builtin_mul_overflow(Wide(problem.values[gap.value].bytes),
                               upTo[gap.end] - upTo[gap.begin], &held);
    if (gap.cost >= 0) {
      sum.overflow |=
          __builtin_mul_overflow(Wide(gap.cost), denominator, &broken);
      held = std::min(held, broken);
    }
    sum.add(held);
  };
  walk.run();
  sum.addProduct(walk.cheaperRecipes, denominator);
  if (sum.overflow)
    return absl::OutOfRangeError(
        "the sums of the certificate don't fit 128 bits");
  // Costs are integers, so a fractional bound rounds up.
  Wide whole = sum.value / denominator;
  if (sum.value % denominator > 0)
    ++whole;
  if (whole > std::numeric_limits<int64_t>::max())
    return absl::OutOfRangeError("the bound doesn't fit 63 bits");
  return int64_t(std::max<Wide>(whole, std::numeric_limits<int64_t>::min()));
}

std::optional<std::string>
tmc::planning::checkCertificate(const Problem &problem,
                                const Certificate &certificate) {
  absl::StatusOr<int64_t> proven = provenExtraCost(problem, certificate);
  if (!proven.ok())
    return std::string(proven.status().message());
  if (*proven < certificate.extraCost)
    return absl::StrCat("the prices prove an extra cost of ", *proven, ", not ",
                        certificate.extraCost, " as claimed");
  return std::nullopt;
}
