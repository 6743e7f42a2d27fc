#include "compiler/report/Explain.h"

#include "compiler/emit/Emit.h"
#include "compiler/report/PlanReport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/GlobPattern.h"

using namespace tmc;

static std::string fromPs(int64_t ps) {
  return readableSeconds(double(ps) * 1e-12);
}

static bool isRecomputed(const PlanTrace::Value &value) {
  return llvm::any_of(value.gaps,
                      [](const PlanTrace::Gap &g) { return !g.held; });
}

std::string tmc::decisionOf(const PlanTrace &trace, int32_t value,
                            const std::vector<int32_t> &tensors) {
  const PlanTrace::Value &reported = trace.values[value];
  if (reported.persistent)
    return "persistent";
  if (isRecomputed(reported))
    return "recomputed";
  if (!reported.gaps.empty())
    return "kept";
  for (int32_t t : tensors)
    if (trace.tensors[t].placeOf >= 0)
      return "in place";
  int32_t longest = 0;
  for (int32_t t : tensors)
    longest = std::max(longest, trace.tensors[t].end - trace.tensors[t].begin);
  return longest <= 2 ? "short-lived" : "kept";
}

std::string tmc::typeText(const PlanTrace::Value &value) {
  return value.type + (value.why.empty() ? "" : ": " + value.why);
}

/// "launch 41, h.3.mlp.c_fc (model.py:12), forward".
static std::string launchText(const PlanTrace &trace, int32_t index) {
  if (size_t(index) >= trace.launches.size())
    return "the end of the step";
  const PlanTrace::Launch &launch = trace.launches[index];
  return "launch " + std::to_string(index + 1) + ", " + launch.name +
         (launch.where.empty() ? "" : " (" + launch.where + ")") + ", " +
         nameOf(launch.phase);
}

namespace {

/// Tells of one value.
class Teller {
public:
  Teller(const PlanTrace &trace, int32_t index,
         const std::vector<int32_t> &tensors)
      : trace(trace), index(index), value(trace.values[index]),
        tensors(tensors) {}

  std::string tell() {
    text = value.name + "\n";
    line(value.valueClass + ", " + readableBytes(value.bytes) + ": " +
         decisionOf(trace, index, tensors));
    if (std::string type = typeText(value); !type.empty())
      line(type);
    for (int32_t t : tensors)
      tellTensor(trace.tensors[t]);
    for (const PlanTrace::Gap &gap : value.gaps)
      tellGap(gap);
    if (value.gaps.empty())
      line(value.canRemake
               ? "no other launch runs between its uses: there is nothing to "
                 "gain"
               : "no kernel can make it again: what makes it updates or adds "
                 "in place, or starts a sum");
    return text;
  }

private:
  const PlanTrace &trace;
  int32_t index;
  const PlanTrace::Value &value;
  const std::vector<int32_t> &tensors;
  std::string text;

  void line(const std::string &words, int depth = 1) {
    text += std::string(size_t(depth) * 2, ' ') + words + "\n";
  }

  void tellTensor(const PlanTrace::Tensor &tensor) {
    const PlanTrace::Launch &maker = trace.launches[tensor.begin];
    line(std::string(maker.recomputes ? "recomputed by " : "made by ") +
         launchText(trace, tensor.begin) + ", " + fromPs(maker.costPs));
    std::string where = "alive to launch " + std::to_string(tensor.end);
    if (tensor.begin <= trace.peakLaunch && trace.peakLaunch < tensor.end)
      where += ", at the peak too";
    if (tensor.placeOf >= 0)
      where += ", in the place of " +
               trace.values[trace.tensors[tensor.placeOf].value].name;
    if (tensor.buffer >= 0 && trace.buffers[tensor.buffer].offset >= 0)
      where += ", at +" + readableBytes(trace.buffers[tensor.buffer].offset);
    line(where, 2);
  }

  void tellGap(const PlanTrace::Gap &gap) {
    line("between " + launchText(trace, gap.from));
    line("and     " + launchText(trace, gap.to));
    std::string span = std::to_string(gap.to - gap.from - 1) + " launches" +
                       (gap.overPeak ? ", the peak among them" : "");
    std::string least = fromPs(gap.leastPs);
    std::string worth = fromPs(gap.worthPs);
    if (gap.held) {
      line("kept: holds " + readableBytes(value.bytes) + " over " + span, 2);
      if (gap.worthPs < 0)
        line("the budget leaves room for everything; making it again would "
             "cost at least " +
                 least,
             2);
      else if (gap.worthPs == 0)
        line("memory has no price there; making it again would cost at least " +
                 least,
             2);
      else if (gap.worthPs <= gap.leastPs)
        line("these bytes are worth " + worth +
                 " there, less than making it again would cost: at least " +
                 least,
             2);
      else
        line("these bytes are worth " + worth +
                 " there; making it again costs " + least +
                 " or more, with what it is made from, and no cheaper plan "
                 "without it was found",
             2);
      return;
    }
    line("recomputed: frees " + readableBytes(value.bytes) + " over " + span,
         2);
    line("pays " + fromPs(gap.paidPs) + " (the cheapest way costs " + least +
             ")" +
             (gap.worthPs >= 0 ? "; these bytes are worth " + worth + " there"
                               : ""),
         2);
  }
};

} // namespace

std::string tmc::explainAll(const PlanTrace &trace, int count) {
  std::vector<std::vector<int32_t>> tensors = trace.tensorsOf();
  std::vector<int32_t> order;
  for (size_t v = 0; v < trace.values.size(); ++v)
    if (!trace.values[v].gaps.empty())
      order.push_back(int32_t(v));
  auto worth = [&](int32_t v) {
    int64_t sum = 0;
    for (const PlanTrace::Gap &gap : trace.values[v].gaps)
      sum += std::max<int64_t>(gap.worthPs, 0);
    return sum;
  };
  llvm::stable_sort(order, [&](int32_t a, int32_t b) {
    return std::pair(trace.values[a].bytes, worth(a)) >
           std::pair(trace.values[b].bytes, worth(b));
  });
  int64_t again = llvm::count_if(
      order, [&](int32_t v) { return isRecomputed(trace.values[v]); });
  std::string text = "precision " + trace.precision + ": products in ";
  for (const PlanTrace::Products &products : trace.products)
    text += (&products == trace.products.data() ? "" : ", ") + products.name +
            " " + std::to_string(products.count);
  for (const PlanTrace::Products &exception : trace.exceptions)
    text += "; by " + exception.name + " " + std::to_string(exception.count);
  text += "\n" + std::to_string(order.size()) +
          " tensors could be recomputed, " + std::to_string(again) +
          " are; the peak of " + readableBytes(trace.peakBytes) + " is at " +
          launchText(trace, trace.peakLaunch) + "\n\n";
  auto row = [&](const std::string &bytes, const std::string &decision,
                 const std::string &price, const std::string &cost,
                 const std::string &type, const std::string &name) {
    char line[512];
    snprintf(line, sizeof line, "%10s  %-11s %11s %11s  %-5s ", bytes.c_str(),
             decision.c_str(), price.c_str(), cost.c_str(), type.c_str());
    text += line + name + "\n";
  };
  row("bytes", "decision", "worth", "cost", "type", "tensor");
  for (int32_t v : order) {
    if (count-- <= 0)
      break;
    const PlanTrace::Value &value = trace.values[v];
    int64_t cost = 0, priced = -1;
    for (const PlanTrace::Gap &gap : value.gaps) {
      cost += gap.held ? gap.leastPs : gap.paidPs;
      if (gap.worthPs >= 0)
        priced = std::max<int64_t>(priced, 0) + gap.worthPs;
    }
    row(readableBytes(value.bytes), decisionOf(trace, v, tensors[v]),
        priced < 0 ? "-" : fromPs(priced), fromPs(cost), value.type,
        value.name);
  }
  if (count < 0)
    text += "...\n";
  text += "\nworth: what the proof pays for the bytes over the gaps between "
          "uses; cost: of making the\ntensor again, at least, or as paid. "
          "--tensor NAME or GLOB tells more.\n";
  return text;
}

Expected<std::string> tmc::explainTensors(const PlanTrace &trace,
                                          const std::string &glob) {
  llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(glob);
  if (!pattern)
    return Failure::usage("--tensor=" + glob + ": " +
                          llvm::toString(pattern.takeError()));
  bool isPlain = glob.find_first_of("*?[") == std::string::npos;
  std::vector<std::vector<int32_t>> tensors = trace.tensorsOf();
  std::string text, persistent;
  for (size_t v = 0; v < trace.values.size(); ++v) {
    llvm::StringRef name = trace.values[v].name;
    bool matches = isPlain ? name == glob || name.starts_with(glob + " (") ||
                                 name.starts_with(glob + "#")
                           : pattern->match(name);
    if (!matches)
      continue;
    if (trace.values[v].persistent)
      persistent += name.str() + ": " + trace.values[v].valueClass + ", " +
                    readableBytes(trace.values[v].bytes) + ", " +
                    typeText(trace.values[v]) + "\n";
    else
      text += (text.empty() ? "" : "\n") +
              Teller(trace, int32_t(v), tensors[v]).tell();
  }
  if (!persistent.empty())
    text += (text.empty() ? "" : "\n") +
            std::string("in memory during the whole step and between steps\n") +
            persistent;
  if (!text.empty())
    return text;
  Failure failure = Failure::input("no tensor matches '" + glob + "'");
  std::vector<std::pair<unsigned, llvm::StringRef>> near;
  for (const PlanTrace::Value &value : trace.values)
    near.push_back({llvm::StringRef(value.name).edit_distance(glob, true, 40),
                    value.name});
  llvm::stable_sort(
      near, [](const auto &a, const auto &b) { return a.first < b.first; });
  std::string names;
  for (size_t i = 0; i < near.size() && i < 4; ++i)
    names += (i ? ", " : "") + near[i].second.str();
  return std::move(failure).note("there are " + names + ", ...");
}
