// PlanLevers.h - the choice among the settings of the free levers.
//
// Each visited setting is a candidate of its own (Candidate.h), of the same
// forward function, up to a coarse plan (LeverSearch.h chooses the settings).
// The best few are planned in full, and the best of them is the choice:
//
//     settings --coarse plans--> ranked --full plans--> one candidate
//
// Where nothing fits, the choice is the candidate with the smallest plan, and
// notes name other settings that would fit.

#ifndef TMC_DRIVER_PIPELINE_PLANLEVERS_H
#define TMC_DRIVER_PIPELINE_PLANLEVERS_H

#include "driver/pipeline/Candidate.h"
#include "driver/pipeline/LeverSearch.h"

#include <memory>

namespace tmc {

/// A search among the settings that `asked` allows. Candidates are kept for
/// full plans.
struct LeverJob {
  LeverJob(const Forward &forward, CompileOptions asked)
      : forward(forward), asked(std::move(asked)) {}

  const Forward &forward;
  CompileOptions asked;
  CandidateCache candidates;
};

/// The candidates of a search that are kept.
enum class Keep { None, Fitting };

/// Coarse plans of the settings that the job's flags allow, within its budgets.
Expected<LeverChoice> searchLevers(LeverJob &job, Keep keep);

/// The budget below which no setting has a plan, whether a search visited it
/// (`known`) or not.
Expected<int64_t> impossibleBelow(LeverJob &job, const LeverChoice &known);

/// A candidate, and the result of its plan: a failure of the kind OverBudget
/// comes with the figures of the smallest plan.
struct PlannedCandidate {
  std::unique_ptr<Candidate> candidate; // Null: no program was built.
  Expected<void> done;
};

/// Chooses the levers that `asked` leaves free, and runs the phases up to
/// `last`.
PlannedCandidate chooseCandidate(const Forward &forward,
                                 const CompileOptions &asked, Phase last);

/// Adds to `failure` the settings that would fit: for each lever that `given`,
/// the flags, pins the nearest value, or a change of all levers. `candidate`
/// doesn't fit.
void suggest(Failure &failure, const Candidate &candidate,
             const CompileOptions &given);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_PLANLEVERS_H
