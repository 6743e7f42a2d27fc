#include "compiler/planning/driver/Proofs.h"

using namespace tmc::planning;

namespace {

/// A proof by cases is sought up to this number of instructions.
constexpr size_t kMostForCases = 5000;
/// Counted work of the proof by cases of a plan that is chosen: about a tenth
/// of a second.
constexpr int64_t kCasesWork = 100'000'000;

} // namespace

void tmc::planning::recertify(const Problem &problem, Plan &plan,
                              int64_t budgetBytes) {
  if (!isOneSpace(problem)) {
    Problem within = problem;
    within.spaces[0].budgetBytes = budgetBytes;
    plan.provenMakespan = provenMakespan(within, plan.spaceProof).value_or(0);
    return;
  }
  if (plan.certificate.budgetBytes == budgetBytes)
    return;
  const Problem ordered = inOrder(problem, plan.orders);
  plan.certificate.budgetBytes = budgetBytes;
  absl::StatusOr<int64_t> proven = provenExtraCost(ordered, plan.certificate);
  if (proven.ok() && *proven > 0) {
    plan.certificate.extraCost = *proven;
  } else {
    plan.certificate.lambda.clear();
    plan.certificate.extraCost = 0;
  }
  if (!plan.cases)
    return;
  plan.cases->budgetBytes = budgetBytes;
  proven = provenByBranching(ordered, *plan.cases);
  if (proven.ok())
    plan.cases->extraCost = *proven;
  else
    plan.cases.reset();
}

void tmc::planning::proveByPrices(const Problem &problem, Plan &plan,
                                  int64_t budgetBytes) {
  int64_t extra = plan.cost - plan.baseCost;
  if (extra <= plan.certificate.extraCost)
    return;
  const Problem ordered = inOrder(problem, plan.orders);
  Relaxation relaxation = relax(ordered);
  DualOptions dual;
  dual.knownExtraCost = extra;
  Certificate found =
      certify(ordered, relaxation,
              ascend(relaxation, budgetBytes - problem.reservedBytes, dual),
              budgetBytes);
  if (found.extraCost > plan.certificate.extraCost)
    plan.certificate = std::move(found);
}

void tmc::planning::proveByCases(const Problem &problem, Plan &plan,
                                 int64_t budgetBytes) {
  int64_t extra = plan.cost - plan.baseCost;
  if (budgetBytes >= 0 && plan.certificate.lambda.empty())
    proveByPrices(problem, plan, budgetBytes);
  if (budgetBytes < 0 || extra <= plan.certificate.extraCost ||
      problem.instructions.size() > kMostForCases)
    return;
  const Problem ordered = inOrder(problem, plan.orders);
  Relaxation relaxation = relax(ordered);
  std::vector<double> prices(relaxation.live.size(), 0);
  for (auto [moment, lambda] : plan.certificate.lambda)
    prices[moment] = double(lambda) / double(plan.certificate.denominator);
  BranchOptions options;
  options.knownExtraCost = extra;
  options.work = kCasesWork;
  BranchCertificate found =
      branch(ordered, relaxation, prices, budgetBytes, options);
  if (found.extraCost > plan.certificate.extraCost)
    plan.cases = std::move(found);
}
