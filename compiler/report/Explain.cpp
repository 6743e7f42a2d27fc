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
  return llvm::any_of(value.gaps, [](const PlanTrace::Gap &g) {
    return !g.held && onDevice(g.space);
  });
}

static bool isMoved(const PlanTrace::Value &value) {
  return llvm::any_of(value.gaps, [](const PlanTrace::Gap &g) {
    return !g.held && !onDevice(g.space);
  });
}

/// "on the host", "in the file".
static std::string placeText(SpaceKind space) {
  return std::string(infoOf(space).hasAddresses ? "on the " : "in the ") +
         nameOf(space);
}

std::string tmc::decisionOf(const PlanTrace &trace, int32_t value,
                            const std::vector<int32_t> &tensors) {
  const PlanTrace::Value &reported = trace.values[value];
  if (reported.persistent)
    return onDevice(reported.space) ? "persistent"
                                    : "at home " + placeText(reported.space);
  if (isMoved(reported))
    return "moved";
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

/// The forms of each content.
struct Contents {
  explicit Contents(const PlanTrace &trace)
      : tensorsOf(trace.values.size()), homeOf(trace.values.size(), -1) {
    // In order of their beginnings.
    for (size_t t = 0; t < trace.tensors.size(); ++t)
      tensorsOf[trace.values[trace.tensors[t].value].content].push_back(
          int32_t(t));
    for (size_t v = 0; v < trace.values.size(); ++v)
      if (trace.values[v].persistent)
        homeOf[trace.values[v].content] = int32_t(v);
  }

  std::vector<std::vector<int32_t>> tensorsOf; // Per content, by begin.
  std::vector<int32_t> homeOf; // The content's form that persists, or -1.
};

/// Prints the text about one content: the value `index` and its other forms.
class Teller {
public:
  /// `tensors` are those of the value itself, `all` also those of its forms,
  /// both in order of their beginnings. `home` is the form that persists, or
  /// -1.
  Teller(const PlanTrace &trace, int32_t index,
         const std::vector<int32_t> &tensors, const std::vector<int32_t> &all,
         int32_t home)
      : trace(trace), index(index), value(trace.values[index]),
        tensors(tensors), all(all), home(home) {}

  std::string tell() {
    text = value.name + "\n";
    line(value.valueClass + ", " + readableBytes(value.bytes) + ": " +
         decisionOf(trace, home < 0 ? index : home, tensors));
    if (std::string type = typeText(value); !type.empty())
      line(type);
    for (int32_t t : all)
      tellTensor(trace.tensors[t]);
    for (const PlanTrace::Gap &gap : value.gaps)
      tellGap(gap);
    if (home >= 0)
      tellHome();
    else if (value.gaps.empty() && all.size() == tensors.size())
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
  const std::vector<int32_t> &tensors, &all;
  int32_t home;
  std::string text;

  void line(const std::string &words, int depth = 1) {
    text += std::string(size_t(depth) * 2, ' ') + words + "\n";
  }

  /// "stashed on the host by launch 7, d2h, 1.2 ms".
  std::string moveText(const PlanTrace::Tensor &tensor) const {
    const PlanTrace::Launch &move = trace.launches[tensor.begin];
    const EngineInfo &engine = infoOf(move.engine);
    std::string verb = !infoOf(engine.writes).hasAddresses  ? "written to the "
                       : !infoOf(engine.reads).hasAddresses ? "read from the "
                       : move.kind == "fetch" ? "fetched from the "
                                              : "stashed on the ";
    return verb + nameOf(move.kind == "fetch" ? engine.reads : engine.writes) +
           " by launch " + std::to_string(tensor.begin + 1) + ", " +
           engine.name + ", " + fromPs(move.costPs);
  }

  /// The time at which work runs, and the time that the kernels wait for it.
  std::string timeText(const PlanTrace::Launch &work) const {
    if (work.other < 0)
      return "";
    const PlanTrace::Launch &done = trace.launches[work.other];
    size_t shown = work.beginPs.size() > 1 ? 1 : 0;
    auto at = [](int64_t ps) {
      char text[32];
      snprintf(text, sizeof text, "%.2f ms", double(ps) * 1e-9);
      return std::string(text);
    };
    return "from " + at(work.beginPs[shown]) + " to " + at(work.endPs[shown]) +
           ", done at launch " + std::to_string(work.other + 1) +
           ", for which the kernels " +
           (done.endPs[shown] > done.beginPs[shown]
                ? "wait " + fromPs(done.endPs[shown] - done.beginPs[shown])
                : "don't wait");
  }

  void tellTensor(const PlanTrace::Tensor &tensor) {
    const PlanTrace::Value &form = trace.values[tensor.value];
    const PlanTrace::Launch &maker = trace.launches[tensor.begin];
    bool isThere = form.persistent && tensor.placeOf < 0;
    if (isThere)
      line("there from the beginning");
    else if (maker.isMove())
      line(moveText(tensor));
    else
      line(std::string(maker.recomputes ? "recomputed by " : "made by ") +
           launchText(trace, tensor.begin) + ", " + fromPs(maker.costPs));
    if (std::string time = timeText(maker); !isThere && !time.empty())
      line(time, 2);
    std::string where =
        (onDevice(form.space) ? "" : placeText(form.space) + ", ") +
        "alive to launch " + std::to_string(tensor.end);
    if (onDevice(form.space) && tensor.begin <= trace.peakLaunch &&
        trace.peakLaunch < tensor.end)
      where += ", at the peak too";
    if (tensor.placeOf >= 0)
      where += ", in the place of " +
               trace.values[trace.tensors[tensor.placeOf].value].name;
    if (tensor.buffer >= 0 && trace.buffers[tensor.buffer].offset >= 0)
      where += ", at +" + readableBytes(trace.buffers[tensor.buffer].offset);
    line(where, 2);
  }

  /// The bytes that would be alive on the device between two launches if the
  /// value were held over them, against the budget.
  std::string heldText(int32_t from, int32_t to) const {
    int64_t most = 0;
    for (int32_t l = from; l < to; ++l)
      most = std::max(most, trace.launches[l].liveBytes.device());
    most += value.bytes + trace.reservedBytes;
    std::string text = readableBytes(most) + " would be needed";
    if (trace.budgetBytes < 0)
      return text;
    return text + ", " +
           (most > trace.budgetBytes
                ? readableBytes(most - trace.budgetBytes) + " over the budget"
                : "which the budget has room for");
  }

  void tellHome() {
    const PlanTrace::Value &at = trace.values[home];
    if (onDevice(at.space)) {
      line("in memory during the whole step and between steps");
      return;
    }
    line("between steps " + placeText(at.space) + ": frees " +
         readableBytes(value.bytes) + " of the device");
    line("at home on the device, " +
             heldText(0, int32_t(trace.launches.size())),
         2);
  }

  /// The cost of recomputing a value that isn't held.
  static std::string againText(const PlanTrace::Gap &gap) {
    return gap.leastPs < 0
               ? "no kernel can make it again"
               : "making it again would cost at least " + fromPs(gap.leastPs);
  }

  void tellMoved(const PlanTrace::Gap &gap, const std::string &span) {
    line(placeText(gap.space) + ": frees " + readableBytes(value.bytes) +
             " over " + span,
         2);
    line("its moves take " + fromPs(gap.paidPs) +
             " of other engines, and the kernels " +
             (gap.waitedPs ? "wait " + fromPs(gap.waitedPs)
                           : std::string("don't wait")) +
             "; " + againText(gap),
         2);
    line("kept, " + heldText(gap.from + 1, gap.to) +
             (gap.worthPs >= 0
                  ? "; these bytes are worth " + fromPs(gap.worthPs) + " there"
                  : ""),
         2);
  }

  /// The cost of moving a value that stays.
  void tellLinks(const PlanTrace::Gap &gap) {
    if (gap.movePs >= 0)
      line("to the host and back would take " + fromPs(gap.movePs) +
               " of the links",
           2);
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
        line((!trace.leavesDevice() ? "the budget leaves room for "
                                      "everything; "
                                    : "") +
                 againText(gap),
             2);
      else if (gap.worthPs == 0 || gap.leastPs < 0)
        line((gap.worthPs == 0
                  ? "memory has no price there; "
                  : "these bytes are worth " + worth + " there; ") +
                 againText(gap),
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
      tellLinks(gap);
      return;
    }
    if (!onDevice(gap.space))
      return tellMoved(gap, span);
    line("recomputed: frees " + readableBytes(value.bytes) + " over " + span,
         2);
    line("pays " + fromPs(gap.paidPs) + " (the cheapest way costs " + least +
             ")" +
             (gap.worthPs >= 0 ? "; these bytes are worth " + worth + " there"
                               : ""),
         2);
    tellLinks(gap);
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
  auto countOf = [&](bool (*is)(const PlanTrace::Value &)) {
    return std::to_string(
        llvm::count_if(order, [&](int32_t v) { return is(trace.values[v]); }));
  };
  std::string text = "precision " + trace.precision + ": products in ";
  for (const PlanTrace::Products &products : trace.products)
    text += (&products == trace.products.data() ? "" : ", ") + products.name +
            " " + std::to_string(products.count);
  for (const PlanTrace::Products &exception : trace.exceptions)
    text += "; by " + exception.name + " " + std::to_string(exception.count);
  text +=
      "\n" + std::to_string(order.size()) +
      (!trace.leavesDevice()
           ? " tensors could be recomputed, " + countOf(isRecomputed) + " are"
           : " tensors could be recomputed or moved, " + countOf(isRecomputed) +
                 " are recomputed, " + countOf(isMoved) + " move") +
      "; the peak of " + readableBytes(trace.peakBytes) + " is at " +
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
      cost += gap.held ? gap.breakPs : gap.paidPs;
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

namespace {

/// The text about each content: several that are always there share a heading.
class Explainer {
public:
  explicit Explainer(const PlanTrace &trace)
      : trace(trace), tensors(trace.tensorsOf()), contents(trace) {}

  /// Content without a tensor is in no plan.
  bool isPlanned(int32_t content) const {
    return !contents.tensorsOf[content].empty();
  }
  /// True if it is on the device all the time, in one form.
  bool isAlwaysThere(int32_t content) const {
    return trace.values[content].persistent &&
           tensors[content] == contents.tensorsOf[content];
  }
  static constexpr const char *kAlwaysThere =
      "in memory during the whole step and between steps\n";
  std::string alwaysThere(int32_t content) const {
    const PlanTrace::Value &value = trace.values[content];
    return value.name + ": " + value.valueClass + ", " +
           readableBytes(value.bytes) + ", " + typeText(value) + "\n";
  }
  std::string decided(int32_t content) const {
    return Teller(trace, content, tensors[content], contents.tensorsOf[content],
                  contents.homeOf[content])
        .tell();
  }

private:
  const PlanTrace &trace;
  std::vector<std::vector<int32_t>> tensors;
  Contents contents;
};

} // namespace

std::vector<std::string> tmc::explainContents(const PlanTrace &trace) {
  Explainer explainer(trace);
  std::vector<std::string> texts(trace.values.size());
  for (size_t v = 0; v < trace.values.size(); ++v) {
    const int32_t content = trace.values[v].content;
    if (!texts[content].empty() || !explainer.isPlanned(content))
      continue;
    texts[content] =
        explainer.isAlwaysThere(content)
            ? Explainer::kAlwaysThere + explainer.alwaysThere(content)
            : explainer.decided(content);
  }
  return texts;
}

Expected<std::string> tmc::explainTensors(const PlanTrace &trace,
                                          const std::string &glob) {
  llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(glob);
  if (!pattern)
    return Failure::usage("--tensor=" + glob + ": " +
                          llvm::toString(pattern.takeError()));
  bool isPlain = glob.find_first_of("*?[") == std::string::npos;
  Explainer explainer(trace);
  std::string text, persistent;
  std::vector<char> isTold(trace.values.size(), 0);
  for (const PlanTrace::Value &value : trace.values) {
    llvm::StringRef name = value.name;
    bool matches = isPlain ? name == glob || name.starts_with(glob + " (") ||
                                 name.starts_with(glob + "#")
                           : pattern->match(name);
    int32_t content = value.content;
    if (!matches || isTold[content] || !explainer.isPlanned(content))
      continue;
    isTold[content] = 1;
    if (explainer.isAlwaysThere(content))
      persistent += explainer.alwaysThere(content);
    else
      text += (text.empty() ? "" : "\n") + explainer.decided(content);
  }
  if (!persistent.empty())
    text += (text.empty() ? "" : "\n") + (Explainer::kAlwaysThere + persistent);
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
