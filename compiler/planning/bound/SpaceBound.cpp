#include "compiler/planning/bound/SpaceBound.h"

#include "compiler/planning/bound/SpaceRelax.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tmc::planning {

namespace {

using Wide = __int128;

/// Whether all sums at `point` fit 128 bits, by a generous estimate.
bool isSmall(const SpaceModel &model, const SpacePoint<Wide> &point) {
  const Problem &p = model.problem;
  double bytes = 0, costs = 0, trips = 0, weight = 0, price = 0, copies = 1;
  for (const MemorySpace &space : p.spaces)
    bytes += std::fabs(double(space.budgetBytes)) + double(space.reservedBytes);
  bytes += double(p.reservedBytes);
  for (const Value &v : p.values)
    bytes += double(v.bytes);
  for (const Recipe &r : p.recipes) {
    costs += double(r.cost);
    bytes += double(r.workspaceBytes);
  }
  for (const Segment &s : p.segments)
    trips += double(s.trips), copies = std::max(copies, double(s.trips));
  for (const std::vector<Wide> &row : point.weights)
    for (Wide w : row)
      weight += double(w);
  for (const std::vector<Wide> &row : point.prices)
    for (Wide x : row)
      price += double(x);
  double variants = double(p.recipes.size() + model.gaps.size() + 1);
  return (weight * costs + price * bytes * copies) * trips * 2 * variants <
         1e37;
}

/// An error if the certificate's numbers don't belong to this problem.
absl::Status wellFormed(const Problem &p, const SpaceCertificate &c) {
  auto bad = [](const char *what) {
    return absl::InvalidArgumentError(std::string("the certificate ") + what);
  };
  if (c.denominator <= 0)
    return bad("has no denominator");
  if (c.weights.size() != p.segments.size())
    return bad("has weights of other segments");
  for (const std::vector<int64_t> &row : c.weights) {
    if (row.size() != p.engines.size())
      return bad("has weights of other engines");
    int64_t left = c.denominator;
    for (int64_t w : row) {
      if (w < 0 || w > left)
        return bad("has weights of more than 1 in all");
      left -= w;
    }
  }
  std::vector<std::vector<char>> seen(
      p.spaces.size(), std::vector<char>(p.instructions.size(), 0));
  for (const SpaceCertificate::Price &x : c.prices) {
    if (x.moment < 0 || size_t(x.moment) >= p.instructions.size() ||
        x.space < 0 || size_t(x.space) >= p.spaces.size() ||
        p.spaces[x.space].budgetBytes < 0)
      return bad("has a price where no budget is");
    if (x.price < 0 || seen[x.space][x.moment]++)
      return bad("has a price below 0 or two in one place");
  }
  return absl::OkStatus();
}

} // namespace

SpaceCertificate plainCertificate(const Problem &problem) {
  SpaceCertificate out;
  out.weights.assign(problem.segments.size(),
                     std::vector<int64_t>(problem.engines.size(), 0));
  for (std::vector<int64_t> &row : out.weights)
    row[0] = 1;
  return out;
}

absl::StatusOr<int64_t> provenMakespan(const Problem &problem,
                                       const SpaceCertificate &certificate) {
  return provenBy(SpaceModel(problem), certificate);
}

absl::StatusOr<int64_t> provenBy(const SpaceModel &model,
                                 const SpaceCertificate &certificate) {
  const Problem &problem = model.problem;
  if (absl::Status status = wellFormed(problem, certificate); !status.ok())
    return status;
  SpacePoint<Wide> point(model);
  for (size_t s = 0; s < point.weights.size(); ++s)
    for (size_t e = 0; e < point.weights[s].size(); ++e)
      point.weights[s][e] = certificate.weights[s][e];
  std::vector<int32_t> momentOf(problem.instructions.size(), kNone);
  for (size_t k = 0; k < model.order.size(); ++k)
    momentOf[model.order[k]] = int32_t(k);
  for (const SpaceCertificate::Price &p : certificate.prices)
    point.prices[p.space][momentOf[p.moment]] = p.price;
  if (!isSmall(model, point))
    return absl::OutOfRangeError("the certificate's numbers are too large");
  Wide sum = SpaceRelax<Wide>(model).sum(point, nullptr);
  Wide den = certificate.denominator;
  Wide bound = sum <= 0 ? Wide(0) : (sum + den - 1) / den;
  // A bound beyond all plans means that no plan exists.
  return int64_t(std::min<Wide>(bound, std::numeric_limits<int64_t>::max()));
}

} // namespace tmc::planning

int64_t tmc::planning::fetchableValues(const Problem &problem) {
  std::vector<char> isFetchable(problem.values.size(), 0);
  for (const Recipe &r : problem.recipes)
    if (problem.isFetch(r))
      isFetchable[r.writes[0]] = 1;
  return std::count(isFetchable.begin(), isFetchable.end(), 1);
}
