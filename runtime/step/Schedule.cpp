//===- Schedule.cpp - the learning rate over the steps --------------------===//

#include "runtime/step/Schedule.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tmc {

Status Schedule::parse(const std::string &text, Schedule &schedule) {
  auto bad = [&](const std::string &why) {
    return Status(Code::Usage, "--lr-schedule " + text + ": " + why);
  };
  schedule = {};
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  if (kind == "constant")
    schedule.kind = Kind::Constant;
  else if (kind == "linear")
    schedule.kind = Kind::Linear;
  else if (kind == "cosine")
    schedule.kind = Kind::Cosine;
  else
    return bad("'" + kind + "' isn't one of constant, linear, cosine");
  size_t at = colon == std::string::npos ? text.size() : colon + 1;
  while (at < text.size()) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    at = end + 1;
    const size_t equals = item.find('=');
    if (equals == std::string::npos)
      return bad("'" + item + "' isn't of the form KEY=VALUE");
    const std::string key = item.substr(0, equals);
    const char *value = item.c_str() + equals + 1;
    char *rest;
    const double number = std::strtod(value, &rest);
    if (rest == value || *rest || !(number >= 0) || number > 1e15)
      return bad(std::string("'") + value + "' isn't a usable number");
    const bool whole = number == std::floor(number);
    if (key == "warmup" && whole)
      schedule.warmup = int64_t(number);
    else if (key == "total" && whole && number > 0)
      schedule.total = int64_t(number);
    else if (key == "min" && number <= 1)
      schedule.least = number;
    else
      return bad("'" + item +
                 "' isn't one of warmup=STEPS, min=FRACTION, "
                 "total=STEPS");
  }
  return Status::ok();
}

double Schedule::factor(int64_t step, int64_t lastStep) const {
  if (step <= warmup)
    return double(step) / double(warmup);
  if (kind == Kind::Constant)
    return 1;
  const int64_t end = total ? total : lastStep;
  const double span = double(std::max<int64_t>(1, end - warmup));
  const double done = std::min(1.0, double(step - warmup) / span);
  const double left = kind == Kind::Linear
                          ? 1 - done
                          : 0.5 * (1 + std::cos(3.14159265358979323846 * done));
  return least + (1 - least) * left;
}

} // namespace tmc
