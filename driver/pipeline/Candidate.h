// Candidate.h - the programs of one setting of the levers, phase by phase.
//
//     raise  split  layout  autodiff  precision  shape | plan  lower  place
//     one module ..............................  one or two forms
//
// A candidate follows from a forward function and from options whose levers are
// pinned, and from nothing else. The phases up to shape build its programs, a
// form for each allowed setting of --narrow-copies. StepForms.h plans them.

#ifndef TMC_DRIVER_PIPELINE_CANDIDATE_H
#define TMC_DRIVER_PIPELINE_CANDIDATE_H

#include "driver/pipeline/Forward.h"
#include "driver/pipeline/LeverSpace.h"
#include "driver/pipeline/StepForms.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tmc {

/// Stays where it is made: its programs are in its context.
struct Candidate {
  /// `options` have no free lever.
  Candidate(const Forward &forward, CompileOptions options);
  Candidate(const Candidate &) = delete;

  const Forward &forward;
  /// The number of micro-batches is the one that the batch was cut into.
  CompileOptions options;
  std::unique_ptr<mlir::MLIRContext> context;
  StepForm form;  // The form to run; before the plan phase the only one, or the
                  // first to be planned.
  StepForm other; // The other one, if there are two.
  /// The program before `-tmc-shard`, if tmc chooses the shards of ranks.
  StepForm unsharded;
  std::vector<std::string> warnings; // Of all phases that have run.
  bool isOneOfSeveral = false;       // It is compared with others.

  /// Every plan found so far: a cache for each form, the one to run first;
  /// empty before the plan phase.
  std::vector<planning::PlanCache *> caches() const;
};

/// Runs the phases from `first` on, at least Raise, up to `last`, at most
/// Shape.
Expected<void> buildPrograms(Candidate &candidate, Phase first, Phase last);

/// Lowers the tensors of `form` to kernels, in its settings.
Expected<void> shapeForm(Candidate &candidate, StepForm &form);

/// The request to plan the programs up to `last`. It refers to the candidate.
PlanRequest planRequest(Candidate &candidate, Phase last);

/// Plans the shaped programs of a candidate, up to `last`: Plan, Lower or
/// Place.
Expected<void> planCandidate(Candidate &candidate, Phase last);

/// Writes the bytes that the planned step would need without micro-batches into
/// its figures; leaves them open if that can't be planned.
void measureUnsplit(Candidate &candidate);

/// Candidates that have been built, for full plans; threads
/// remove the ones that they use.
class CandidateCache {
public:
  /// Null: there is none.
  std::unique_ptr<Candidate> take(const LeverSetting &setting);
  void keep(const LeverSetting &setting, std::unique_ptr<Candidate> candidate);

private:
  std::mutex mutex;
  std::map<LeverSetting, std::unique_ptr<Candidate>> kept;
};

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_CANDIDATE_H
