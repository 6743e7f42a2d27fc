// Table.cpp - the output of `tmc verify`.

#include "driver/verify/Verify.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace tmc;

std::string tmc::verifyTable(const VerifyReport &report) {
  constexpr size_t kRows = 10, kNameWidth = 40;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::format("%4s  %-40s  %-13s %10s %10s %9s\n", "step", "tensor",
                     "kind", "elements", "norm", "error");
  for (size_t i = 0; i < report.deviations.size() && i < kRows; ++i) {
    const Deviation &d = report.deviations[i];
    std::string name =
        d.name.size() <= kNameWidth
            ? d.name
            : ".." + d.name.substr(d.name.size() - kNameWidth + 2);
    os << llvm::format("%4lld  %-40s  %-13s %10lld %10.3g %9.2g\n",
                       (long long)d.step, name.c_str(), d.kind.c_str(),
                       (long long)d.elements, d.norm, d.error());
  }
  if (report.deviations.size() > kRows)
    os << "      and " << report.deviations.size() - kRows
       << " more with smaller errors\n";
  if (report.undecided)
    os << report.undecided
       << (report.undecided == 1 ? " draw was" : " draws were")
       << " left out: rounding alone decides a value there\n";
  auto coarse = llvm::count_if(report.deviations, [](const Deviation &d) {
    return d.error() > kVerifyTolerance && d.error() <= d.allowed;
  });
  if (coarse)
    os << coarse << " of " << report.deviations.size()
       << " tensors differ by more than "
       << llvm::format("%.0e", kVerifyTolerance)
       << ", as rounding the inputs alone makes them\n";
  os << "weights "
     << (report.weights.empty() ? "drawn" : "of " + report.weights) << "\n";
  os << report.steps << (report.steps == 1 ? " step" : " steps")
     << (report.ranks > 1 ? " of " + std::to_string(report.ranks) + " ranks"
                          : "")
     << ", "
     << llvm::format("%.2f s compiled, %.1f s interpreted\n",
                     report.stepSeconds, report.interpreterSeconds);
  return text;
}
