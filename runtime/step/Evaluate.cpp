//===- Evaluate.cpp - the loss of a batch, without a step -----------------===//

#include "runtime/step/Ranges.h"
#include "runtime/step/Step.h"
#include "runtime/step/Values.h"

#include <utility>

namespace tmc {

namespace {

/// Takes the observers of launches and work away for a while: an evaluation's
/// launches have no numbers in the program.
class Unobserved {
public:
  Unobserved(Device &device, WorkObserver *work)
      : device_(device), work_(work), launches_(device.queues().observer()) {
    set(nullptr, nullptr);
  }
  ~Unobserved() { set(launches_, work_); }
  Unobserved(const Unobserved &) = delete;
  Unobserved &operator=(const Unobserved &) = delete;

private:
  void set(LaunchObserver *launches, WorkObserver *work) {
    device_.queues().setObserver(launches);
    if (work_)
      device_.observeWork(work);
  }

  Device &device_;
  WorkObserver *work_;
  LaunchObserver *launches_;
};

/// The bytes of tensors that an evaluation changes.
using Kept = std::vector<std::vector<char>>;

Status keep(const StepProgram &program, const Homes &homes, Kept &kept) {
  for (int64_t i = 0; i < program.changedByEvaluationCount; ++i) {
    const TensorInfo &info = program.tensors[program.changedByEvaluation[i]];
    const auto [begin, end] = homes.heldBytes(info);
    kept.emplace_back(size_t(end - begin));
    if (Status s = homes.readHeld(info, begin, kept.back().data(), end - begin);
        !s)
      return s;
  }
  return Status::ok();
}

Status giveBack(const StepProgram &program, const Homes &homes,
                const Kept &kept) {
  for (int64_t i = 0; i < program.changedByEvaluationCount; ++i) {
    const TensorInfo &info = program.tensors[program.changedByEvaluation[i]];
    const auto [begin, end] = homes.heldBytes(info);
    if (Status s =
            homes.writeHeld(info, begin, kept[size_t(i)].data(), end - begin);
        !s)
      return s;
  }
  return Status::ok();
}

} // namespace

Status evaluate(Step &step, double &loss) {
  const StepProgram &program = step.program_;
  if (!program.evaluate)
    return {Code::Unsupported,
            std::string("the step can't evaluate a batch: ") +
                program.noEvaluation};
  if (!step.lost_)
    return step.lost_;
  if (Status s = values::checkParams(program, step.given_); !s)
    return s;
  if (Status s = values::checkInputs(program, step.given_); !s)
    return s;
  if (Status s = checkRanges(program, step.homes(), step.viewed_); !s)
    return s;
  Kept kept;
  if (Status s = keep(program, step.homes(), kept); !s)
    return s;
  if (Status s = step.feed(); !s)
    return s;
  Stream &stream = step.device_->compute();
  stream.fault = {};
  Status done;
  {
    Unobserved unobserved(*step.device_, step.trace_.get());
    program.evaluate(step.device_->queues(), step.kernels_);
    done = step.device_->synchronize();
  }
  const IndexFault fault = std::exchange(stream.fault, {});
  if (done)
    done = giveBack(program, step.homes(), kept);
  if (!done) {
    step.lost_ = {done.code(), done.message() +
                                   "; an evaluation wasn't done, and the "
                                   "values are lost: go on from a checkpoint"};
    return step.lost_;
  }
  if (fault.set)
    return faultOf(fault);
  return step.figures_.readLoss(step.homes(), loss);
}

} // namespace tmc
