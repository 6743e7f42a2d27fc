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
  if (plan.certificate.budgetBytes == budgetBytes)
    return;
  const Problem ordered = provenProblem(problem, plan);
  plan.certificate.budgetBytes = budgetBytes;
  if (!plan.certificate.weights.empty()) {
    const GapModel model(ordered);
    plan.certificate.provenCost =
        costProvenBy(model, plan.certificate).value_or(0);
    const Certificate plain = certify(model, {}, budgetBytes);
    if (plan.certificate.provenCost <= plain.provenCost)
      plan.certificate = plain;
  }
  if (!plan.cases)
    return;
  plan.cases->budgetBytes = budgetBytes;
  absl::StatusOr<int64_t> proven = provenByBranching(ordered, *plan.cases);
  if (proven.ok())
    plan.cases->extraCost = *proven;
  else
    plan.cases.reset();
}

void tmc::planning::proveByPrices(const Problem &problem, Plan &plan,
                                  int64_t budgetBytes) {
  AscentOptions ascent;
  ascent.knownExtraCost = plan.cost - plan.baseCost;
  if (ascent.knownExtraCost <= plan.provenExtraCost())
    return;
  const Problem ordered = inOrder(problem, plan.orders);
  const GapModel model(ordered);
  Certificate found =
      certify(model, ascend(model, limitsOf(ordered, budgetBytes), ascent),
              budgetBytes);
  if (found.provenCost > plan.provenCost())
    plan.certificate = std::move(found);
}

void tmc::planning::proveByCases(const Problem &problem, Plan &plan,
                                 int64_t budgetBytes) {
  if (budgetBytes >= 0 && plan.certificate.prices.empty())
    proveByPrices(problem, plan, budgetBytes);
  BranchOptions options;
  options.knownExtraCost = plan.cost - plan.baseCost;
  options.work = kCasesWork;
  if (budgetBytes < 0 || options.knownExtraCost <= plan.provenExtraCost() ||
      problem.instructions.size() > kMostForCases)
    return;
  const Problem ordered = inOrder(problem, plan.orders);
  const GapModel model(ordered);
  std::vector<double> priceOf(problem.instructions.size(), 0), prices;
  for (const Certificate::Price &price : plan.certificate.prices)
    priceOf[price.moment] =
        double(price.price) / double(plan.certificate.denominator);
  for (InstructionId i : model.order)
    prices.push_back(priceOf[i]);
  BranchCertificate found = branch(model, prices, budgetBytes, options);
  if (found.extraCost > plan.provenExtraCost())
    plan.cases = std::move(found);
}
